"""A virtual arm as a ROS 2 robot: what it publishes in every frame, and what moves it."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tangere.apps.virtual_ur.server import Server
from tangere.identification.belief import belief
from tangere.logs import ros_messages
from tangere.logs.channels import FRAMES, JOINT_STATE, TEXT, WRENCH, Views
from tangere.logs.ros_messages import Filled
from tangere.model.urdf_text import to_urdf
from tangere.ros2.interfaces import TOUCH
from tangere.ros2.motion import Motion
from tangere.ros2.node import Node, stamp_of
from tangere.ros2.participant import DEFAULT, LATCHED, TF, Quality
from tangere.ros2.touching import TouchWatch, touch_message
from tangere.types import Array, Event

# [ns] A controller that is late makes up for less than 0.1 s and drops more: stamps that lie farther behind the
# computer's clock are set forward at once. Those ahead of it are slowed down, by so much a frame: never backwards.
BEHIND, SLOWER = 150_000_000, 500_000
# Readers of ROS 2 that are late by up to 0.2 s at 500 Hz lose nothing.
STATES = Quality(100)
SAID = 20  # reasons of refusals that are told; a peer could make up more without end


class Stamps:
    """Stamps of samples: the controller's clock, which has no jitter, set to the computer's.

    Where the controller does not run in real time, they are its own clock alone, which is published as /clock.
    """

    def __init__(self, simulated: bool) -> None:
        self.simulated = simulated
        self._offset = 0

    def tick(self, seconds: float) -> int:
        """[ns] of the sample at this time of the controller."""
        own = round(seconds * 1e9)
        if self.simulated:
            return own
        ahead = own + self._offset - time.time_ns()
        if ahead < -BEHIND:
            self._offset -= ahead
        elif ahead > 0:
            self._offset -= min(ahead, SLOWER)
        return own + self._offset

    def of(self, seconds: float) -> int:
        """[ns] of an earlier time of the controller."""
        return max(round(seconds * 1e9) + self._offset, 0)


class ArmNode:
    """The face of a virtual controller towards ROS 2. Everything is sent from the controller's own thread, at once.

    A write never waits: samples that a reader is too slow for are dropped, and counted by the writers. tell: is given
    every reason for which a message was refused, once; who sends on a topic has no answer.
    """

    def __init__(
        self, server: Server, node: Node, *, touch: bool = True, tell: Callable[[str], None] | None = None
    ) -> None:
        self.node, self._server, self._controller = node, server, server.controller
        self._tell, self._told = tell, 0
        controller = self._controller
        robot = controller.inside.belief
        self._robot = robot
        self.joints = tuple(joint.name for joint in robot.model.joints)
        self.stamps = Stamps(simulated=server.clock != "real")
        self._views = Views({"q": slice(0, robot.dof)}, robot)
        self._often = []  # writer, message, and where the numbers of its holes stand
        for channel in self._views.often.channels:
            writer = node.publisher(channel.topic, channel.type, TF if channel.type == FRAMES else DEFAULT).writer
            places = {hole: self._views.often.layout[name] for hole, (name,) in channel.columns.items()}
            self._often.append((writer, Filled(channel.template), places))
        self._states = node.publisher("/joint_states", JOINT_STATE, STATES).writer
        self._state = Filled(ros_messages.joint_state(self.joints, ("position", "velocity", "effort")))
        self._wrenches = node.publisher("/force_torque_sensor_broadcaster/wrench", WRENCH).writer
        self._wrench = Filled(ros_messages.stamped("tool0", "wrench", 6))
        self._clock = node.publisher("/clock", "rosgraph_msgs/msg/Clock") if self.stamps.simulated else None
        self._touches = node.publisher("/tangere/touch", TOUCH)
        self._watch = TouchWatch(robot, belief(robot), self._touched, name=controller.name) if touch else None
        T = robot.model.T_flange_tcp
        x, y, z = T[:3, 3]
        self._R_tcp = T[:3, :3]
        self._lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])  # moment about tool0 of a force at the tcp
        self._describe()
        self.motion = Motion(node, controller, self.joints, self.stamps.simulated)
        server.faces.append(self)

    def frame(self) -> None:
        """Publish what the frame has measured."""
        controller = self._controller
        state = controller.inside.state
        ns = self.stamps.tick(controller.time)
        self._states.write(self._state.bytes(ns, {"position": state.q, "velocity": state.qd, "effort": state.tau}))
        if state.wrench is not None:
            self._wrenches.write(self._wrench.bytes(ns, {"wrench": self._at_tool0(state.q, state.wrench)}))
        shown, values = self._views.table(state.q[None], np.array([controller.time]))
        if len(shown):
            for writer, filled, holes in self._often:
                writer.write(filled.bytes(ns, {hole: values[0, place] for hole, place in holes.items()}))
        if self._clock is not None:
            self._clock.publish({"clock": stamp_of(ns)})
        self.motion.frame()
        if self._tell is not None and len(self.node.problems) > self._told < SAID:
            for reason in list(self.node.problems)[self._told : SAID]:
                self._tell(reason.removeprefix("rt"))
                self._told += 1
        if self._watch is not None:
            self._watch.rows.put(controller.time, {"q": state.q, "qd": state.qd, "tau": state.tau})

    def close(self) -> None:
        """End the watch, say goodbye."""
        self.motion.close()
        if self._watch is not None:
            self._watch.close()
        self.node.close()

    def _describe(self) -> None:
        """What late joiners are told, too: the arm's description and the frames that never move."""
        urdf = to_urdf(self._robot.model, shapes=True)
        self.node.publisher("/robot_description", TEXT, LATCHED).publish({"data": urdf})
        still = next(channel for channel in self._views.once.channels if channel.type == FRAMES)
        layout = self._views.once.layout
        numbers = {hole: self._views.first[layout[name]] for hole, (name,) in still.columns.items()}
        writer = self.node.publisher("/tf_static", FRAMES, LATCHED).writer
        writer.write(Filled(still.template).bytes(self.stamps.tick(self._controller.time), numbers))

    def _at_tool0(self, q: Array, wrench: Array) -> Array:
        """Force and moment (6,) in the axes of tool0, about its origin; wrench: in base axes at the tcp."""
        R = self._robot.pose(q)[:3, :3] @ self._R_tcp.T
        force, moment = R.T @ wrench[:3], R.T @ wrench[3:]
        return np.concatenate((force, moment + self._lever @ force))

    def _touched(self, event: Event) -> None:
        self._touches.publish(touch_message(event, self.joints, self.stamps.of))
