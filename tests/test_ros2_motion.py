"""What moves a virtual arm from ROS 2, frame by frame and without a clock; and peers that announce their types."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterator
from types import new_class
from typing import Any

import numpy as np
import pytest
from ros2_peer import network, until

from tangere.apps.virtual_ur.controller import Controller
from tangere.apps.virtual_ur.inside import Inside
from tangere.apps.virtual_ur.modes import Profile
from tangere.apps.virtual_ur.server import Server
from tangere.model.loading import load
from tangere.ros2 import names
from tangere.ros2.arm_node import ArmNode
from tangere.ros2.cdr import Message
from tangere.ros2.interfaces import FOLLOW
from tangere.ros2.node import Node, Publisher, seconds_of
from tangere.ros2.participant import Quality
from tangere.ros2.services import ABORTED, SUCCEEDED, ActionClient

pytest.importorskip("cyclonedds")
TRAJECTORY, TORQUES = "trajectory_msgs/msg/JointTrajectory", "std_msgs/msg/Float64MultiArray"


class Bench:
    """An arm whose frames are counted, not timed, and a node that talks to it."""

    def __init__(self) -> None:
        self.controller = Controller(Inside(load("ur5e"), plant="rigid", sensors=False), Profile())
        self.server = Server(self.controller, f"127.0.9.{network().domain}", clock="fast")
        self.said: list[str] = []
        self.arm = ArmNode(self.server, Node("tangere", network()), touch=False, tell=self.said.append)
        self.node = Node("client", network())
        self.joints = list(self.arm.joints)

    def close(self) -> None:
        self.node.close()
        self.server.close()
        self.controller.inside.close()

    @property
    def q(self) -> Any:
        return self.controller.inside.state.q

    def talker(self, topic: str, kind: str) -> Publisher:
        publisher = self.node.publisher(topic, kind)
        until(lambda: publisher.writer.matched)
        return publisher

    def frames(self, count: int, each: Callable[[], None] = lambda: None) -> None:
        for _ in range(count):
            self.server.frame()
            each()

    def waiting(self) -> None:
        """Until a message has come in; the next frame takes it."""
        until(lambda: len(self.arm.motion._waiting))

    def trajectory(self, q: Any, *times: float, **more: Any) -> dict[str, Any]:
        rows = np.atleast_2d(q)
        points = []
        for k, t in enumerate(times):
            ns = round(t * 1e9)
            since = {"sec": ns // 10**9, "nanosec": ns % 10**9}
            extra = {name: values[k] for name, values in more.items()}
            points.append({"positions": rows[k], "time_from_start": since, **extra})
        return {"joint_names": self.joints, "points": points}


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def test_a_trajectory_is_followed_as_it_is_sent(bench: Bench) -> None:
    """Positions, velocities and accelerations at the points, at their times, to 0.1 mrad all along."""
    sent = bench.talker("/joint_trajectory_controller/joint_trajectory", TRAJECTORY)
    t = np.linspace(0.2, 2.0, 10)
    swing = np.array([0.2, 0.1, -0.1, 0.2, 0.3, -0.4])

    def wanted(s: Any, order: int) -> Any:
        """Starts and ends at rest: 1 - cos, over a whole turn."""
        w = np.pi  # rad/s: one swing in 2 s
        shape = (1.0 - np.cos(w * s), w * np.sin(w * s), w**2 * np.cos(w * s))[order]
        return np.multiply.outer(shape, swing)

    start = bench.q.copy()
    message = bench.trajectory(start + wanted(t, 0), *t, velocities=wanted(t, 1), accelerations=wanted(t, 2))
    sent.publish(message)
    bench.waiting()
    worst = 0.0
    for k in range(1, 1001):
        bench.server.frame()
        if k >= 100:  # the first 0.2 s begin with another acceleration than the arm at rest
            worst = max(worst, float(np.abs(bench.q - start - wanted(min(0.002 * k, 2.0), 0)).max()))
    assert worst < 2.5e-3  # one step of the servo behind, 1 ms at up to 1.3 rad/s, and what that costs to catch up
    bench.frames(250)
    assert np.abs(bench.q - start).max() < 1e-4


def test_points_in_the_past_are_left_out_and_old_ones_refused(bench: Bench) -> None:
    """The clock is the controller's: stamps say when a trajectory begins."""
    sent = bench.talker("/joint_trajectory_controller/joint_trajectory", TRAJECTORY)
    start, now = bench.q.copy(), bench.controller.time
    goal = start + 0.1
    past = bench.trajectory([start, goal], 1.0, 3.0)
    past["header"] = {"stamp": {"sec": int(now) - 2, "nanosec": round((now % 1) * 1e9)}}
    sent.publish(past)
    bench.waiting()
    bench.frames(300)  # 0.6 s: the second point is due after 1 s
    assert 1e-3 < np.abs(bench.q - start).max() < 0.099
    bench.frames(400)
    assert np.abs(bench.q - goal).max() < 1e-4
    past["header"] = {"stamp": {"sec": 1}}
    sent.publish(past)
    until(lambda: any("would have ended" in text for text in bench.arm.node.problems))


def test_torque_moves_as_much_as_mechanics_says(bench: Bench) -> None:
    """10 Nm about the vertical axis for 0.1 s; the arm adds gravity and most of friction."""
    sent = bench.talker("/forward_effort_controller/commands", TORQUES)
    robot = bench.controller.inside.belief
    before = bench.q.copy()
    sent.publish({"data": [10.0, 0.0, 0.0, 0.0, 0.0, 0.0]})
    bench.waiting()
    bench.frames(50)
    state = bench.controller.inside.state
    expected = np.linalg.solve(robot.mass_matrix(before), [10.0, 0, 0, 0, 0, 0])[0] * 0.1
    assert 0.5 * expected < state.qd[0] <= 1.01 * expected  # friction that is not made up for takes the rest
    assert np.abs(bench.q[1:3] - before[1:3]).max() < 2e-3
    bench.frames(2)  # 0.1 s are over: it brakes, and is not stopped for a collision
    bench.frames(250)
    assert np.abs(bench.controller.inside.state.qd).max() < 1e-3
    assert bench.controller.may_move, list(bench.controller.said)


def test_an_arm_that_torques_made_fast_is_stopped_without_a_jerk(bench: Bench) -> None:
    """At more than 1 rad/s the servo takes over: evenly, at the 15 rad/s2 of a UR that nobody commands."""
    sent = bench.talker("/forward_effort_controller/commands", TORQUES)
    for _ in range(8):
        sent.publish({"data": [12.0, 0.0, 0.0, 0.0, 0.0, 0.0]})
        bench.waiting()
        bench.frames(40)
    speeds: list[float] = []
    bench.frames(250, lambda: speeds.append(float(bench.controller.inside.state.qd[0])))
    assert max(speeds) > 1.0
    assert bench.controller.may_move, list(bench.controller.said)
    assert -0.05 < min(np.diff(speeds)) < -0.02  # in a frame of 2 ms
    assert max(np.diff(speeds)) < 0.015
    assert abs(speeds[-1]) < 1e-3


def test_a_protective_stop_ends_a_goal(bench: Bench) -> None:
    action = ActionClient(bench.node, "/joint_trajectory_controller/follow_joint_trajectory", FOLLOW)
    assert action.ready(60.0)
    key, accepted = action.send({"trajectory": bench.trajectory(bench.q + 0.5, 5.0)}, 60.0)
    assert accepted
    bench.frames(100)
    bench.controller.protective_stop("somebody")
    bench.frames(2)
    status, result = action.result(key)
    assert status == ABORTED
    assert "PROTECTIVE_STOP" in result.error_string
    again, accepted = action.send({"trajectory": bench.trajectory(bench.q, 1.0)}, 60.0)
    assert not accepted
    assert "PROTECTIVE_STOP" in action.result(again)[1].error_string


def test_tolerances_are_kept(bench: Bench) -> None:
    """A path and a goal that the arm cannot keep to so closely, and one that says nothing of it."""
    action = ActionClient(bench.node, "/joint_trajectory_controller/follow_joint_trajectory", FOLLOW)
    assert action.ready(60.0)
    tight = [{"name": bench.joints[0], "position": 1e-9}]
    key, _ = action.send({"trajectory": bench.trajectory(bench.q + 0.5, 1.0), "path_tolerance": tight}, 60.0)
    bench.frames(100)
    status, result = action.result(key)
    assert (status, result.error_code) == (ABORTED, -4)
    assert "shoulder_pan_joint is" in result.error_string
    hurried = {"goal_tolerance": tight, "goal_time_tolerance": {"nanosec": 10_000_000}}
    key, _ = action.send({"trajectory": bench.trajectory(bench.q + 0.3, 0.5), **hurried}, 60.0)
    bench.frames(300)
    status, result = action.result(key)
    assert (status, result.error_code) == (ABORTED, -5)
    assert "rad from the goal" in result.error_string
    key, _ = action.send({"trajectory": bench.trajectory(bench.q, 0.1)}, 60.0)
    bench.frames(100)
    assert action.result(key)[0] == SUCCEEDED


def test_simulated_time_is_published(bench: Bench) -> None:
    clocks: list[Message] = []
    states: list[Message] = []
    readers = [
        bench.node.subscription("/clock", "rosgraph_msgs/msg/Clock", clocks.append, Quality(1000)),
        bench.node.subscription("/joint_states", "sensor_msgs/msg/JointState", states.append, Quality(1000)),
    ]
    until(lambda: all(reader.matched for reader in readers))
    bench.frames(20)
    until(lambda: len(clocks) >= 20 and len(states) >= 20)
    assert [seconds_of(m.clock) for m in clocks] == [seconds_of(m.header.stamp) for m in states]
    assert seconds_of(clocks[-1].clock) == pytest.approx(bench.controller.time, abs=1e-9)
    assert np.diff([seconds_of(m.clock) for m in clocks]) == pytest.approx(np.full(len(clocks) - 1, 0.002), abs=1e-9)


def test_messages_in_a_flood_are_bounded(bench: Bench) -> None:
    sent = bench.talker("/forward_effort_controller/commands", TORQUES)
    for _ in range(1000):
        sent.publish({"data": [0.0] * 6})
    until(lambda: len(bench.arm.motion._waiting) > 0)
    assert len(bench.arm.motion._waiting) <= 64
    bench.frames(5)
    assert bench.controller.may_move


def test_a_peer_that_announces_a_type_without_our_head_still_matches() -> None:
    """ROS 2 Lyrical announces types of services as they are defined, without the 16 bytes that it sends before them."""
    domain, idl, types, sub, topic, core = (
        importlib.import_module(f"cyclonedds.{name}") for name in ("domain", "idl", "idl.types", "sub", "topic", "core")
    )
    fields = {"structure_needs_at_least_one_member": types.uint8}
    made = new_class(
        "Trigger_Request_", (idl.IdlStruct,), {"typename": "std_srvs.srv.dds_.Trigger_Request_"},
        lambda body: body.update(__annotations__=fields),
    )  # fmt: skip
    asked = importlib.import_module("cyclonedds.idl.annotations").final(dataclasses.dataclass(made))
    with Node("tangere", network()) as node:
        writer = node.writer(names.request("/zero"), "std_srvs/srv/Trigger_Request")
        other = domain.DomainParticipant(network().domain)
        plain = core.Policy.DataRepresentation(use_cdrv0_representation=True, use_xcdrv2_representation=False)
        reader = sub.DataReader(other, topic.Topic(other, "rq/zeroRequest", asked), qos=core.Qos(plain))
        until(lambda: writer.matched == 1 and len(reader.get_matched_publications()) == 1)


def test_why_a_command_was_refused_is_said_once(bench: Bench) -> None:
    """Who sends on a topic has no answer: the arm's own terminal says why it does not move."""
    torques = bench.talker("/forward_effort_controller/commands", TORQUES)
    for count in (5, 5, 7):
        torques.publish({"data": [0.0] * count})
    until(lambda: sum(bench.arm.node.problems.values()) == 3)
    bench.frames(3)
    assert bench.said == ["/forward_effort_controller/commands: 6 finite torques [Nm] in the arm's order"]
    torques.publish({"data": [1e9, 0.0, 0.0, 0.0, 0.0, 0.0]})  # as much as the joint can: soon it is too fast
    bench.waiting()
    bench.frames(60)
    assert bench.controller.safety_mode_name == "PROTECTIVE_STOP"
    q = bench.q.copy()
    bench.talker("/joint_trajectory_controller/joint_trajectory", TRAJECTORY).publish(bench.trajectory(q, 1.0))
    bench.waiting()
    bench.frames(2)
    assert bench.said[1:] == ["a command was refused: robot mode RUNNING, safety mode PROTECTIVE_STOP"]
