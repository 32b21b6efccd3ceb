"""The arm as a program sees it: what was measured, where it shall be next, tool and payload, kinematics at the tool."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, NoSolution
from tangere.kinematics.vectors import add, matmul, matvec, transposed
from tangere.model.frames import gravity_vector
from tangere.model.inertia import payload_body
from tangere.model.model import Model, Payload
from tangere.robots import Robot
from tangere.script.host import FRAME, STILL, Setpoint
from tangere.script.poses import Frame, composed, inverted, rotation_vector
from tangere.script.values import ScriptException
from tangere.types import Array, State

if TYPE_CHECKING:
    from tangere.script.compliance import Compliance
    from tangere.script.segments import Segment

# [rad/s2] by which a moving arm is stopped in a frame in which no thread commands it (modelled: not published)
BRAKE = 15.0
# Newton's method from the frame before: one step leaves 1e-12 m at usual speeds. CLOSE [m, rad] ends it.
STEPS, CLOSE = 8, 1e-9
NO_PAYLOAD = Payload(0.0, np.zeros(3), np.zeros((3, 3)))
HISTORY = 1000  # frames of measured positions that get_actual_joint_positions_history reaches back


class ProtectiveStop(ScriptException):
    """The arm cannot or must not go on: singular, too fast, or the program said so. The program ends."""


def needs_six_joints(robot: Robot) -> None:
    """InvalidValue for an arm that has more joints or fewer: the language has lists of six."""
    if robot.dof != 6:
        raise InvalidValue(f"URScript is for arms with 6 joints; {robot.name} has {robot.dof}")


class Arm:
    """Measured state, target of the next frame, tool, payload. The target is a program's, moved by one thread a frame.

    robot: the believed arm with six joints; the tool that it has is the TCP at the start, its payload the payload.
    """

    def __init__(self, robot: Robot, start: ArrayLike, frame: float = FRAME) -> None:
        needs_six_joints(robot)
        q = np.array(start, dtype=np.float64)
        if q.shape != (6,) or not np.isfinite(q).all():
            raise InvalidValue(f"q: six finite numbers [rad], got {q.tolist()}")
        self.robot, self.frame = robot, frame
        self._made = robot
        self.state = State(0.0, frame, q, STILL, STILL)
        self.q, self.qd, self.qdd = q, STILL, STILL  # (6,) target: where the arm shall be at the end of this frame
        self.commanded = False  # whether a thread has moved the arm in this frame
        self.tail: tuple[Segment, float] | None = None  # the rest of a move that is to be blended, and its time
        self.compliance: Compliance | None = None  # force mode or freedrive, while it is on
        self.history: deque[State] = deque([self.state], HISTORY)
        self.steady = 0  # frames for which the arm has stood still
        self.wrench_zero = [0.0] * 6
        self.waypoint: Frame | None = None  # where the present move of the tool ends
        self.force_damping, self.force_gain = 0.005, 1.0  # of force mode, as the program has set them; UR's defaults
        payload = robot.model.payload
        self.payload = NO_PAYLOAD if payload is None else payload
        self._torque: Setpoint | None = None
        self._rest = Setpoint(q, STILL, STILL)
        flange = robot.model.T_flange_tcp.tolist()
        self._robot_tcp: Frame = ([row[:3] for row in flange[:3]], [row[3] for row in flange[:3]])
        self.tcp = self._robot_tcp  # T_flange_tcp of the program
        self._moved: Frame | None = None  # from the robot's own tcp to the program's; None: the same

    # ------------------------------------------------------------------------------------------------------- frames

    def begin(self, state: State) -> None:
        """A new frame with a new sample."""
        self.state = state
        self.history.append(state)
        self.commanded = False
        speed = state.qd
        self.steady = self.steady + 1 if speed.dot(speed) < 1e-4 else 0  # 0.01 rad/s, all joints together
        if self._torque is not None:  # it went where torques took it; what follows begins there
            self.q, self.qd, self.qdd = state.q, state.qd, STILL
            self._torque = None

    def end(self, speed: float) -> Setpoint:
        """What the frame came to: a torque, a position, or the way to rest where no thread moved the arm."""
        if self._torque is not None:
            return self._torque
        if not self.commanded:
            if self.tail is not None:
                self._finish_tail(speed)
            elif self.qd is not STILL:
                self._brake()
            else:
                self.qdd = STILL  # that of the last frame of a move is over
        if self.compliance is not None:
            return self.compliance.setpoint(self)
        if self._rest.q is not self.q or self._rest.qd is not self.qd or self._rest.qdd is not self.qdd:
            self._rest = Setpoint(self.q, self.qd, self.qdd)
        return self._rest

    def take(self) -> None:
        """A thread moves the arm in this frame; only one may."""
        if self.commanded:
            raise ScriptException("another thread already controls the robot")
        self.commanded = True

    def move(self, q: Array, qd: Array, qdd: Array = STILL) -> None:
        """The target of this frame [rad]."""
        self.take()
        self.q, self.qd, self.qdd = q, qd, qdd

    def change(self, qd: Array) -> None:
        """Another speed (6,) at the end of this frame, evenly."""
        self.move(self.q + (self.qd + qd) * (0.5 * self.frame), qd, (qd - self.qd) / self.frame)

    def torque(self, tau: Array, viscous: Array, coulomb: Array) -> None:
        """Torques for this frame."""
        self.take()
        self.tail = None
        self._torque = Setpoint(self.state.q, self.state.qd, STILL, tau, viscous, coulomb)

    def _brake(self) -> None:
        """Towards rest; every joint slows down by the same share."""
        fastest, most = float(np.abs(self.qd).max()), BRAKE * self.frame
        slower = STILL if fastest <= most else self.qd * (1.0 - most / fastest)
        self.q = self.q + (self.qd + slower) * (0.5 * self.frame)
        self.qdd = STILL if slower is STILL else (slower - self.qd) / self.frame
        self.qd = slower

    def _finish_tail(self, speed: float) -> None:
        """No move came to blend with: the last one goes to its end."""
        assert self.tail is not None
        segment, time = self.tail
        time += self.frame * speed
        self.tail = (segment, time) if time < segment.law.duration else None
        self.q, self.qd = segment.joints(self, time, speed)
        if self.tail is None:
            self.qd = STILL

    # --------------------------------------------------------------------------------------------------- kinematics

    def frame_at(self, q: Array | Sequence[float]) -> Frame:
        """The tool in the base at q (6,)."""
        a, b, c, _ = self.robot.pose(q).tolist()
        own = [a[:3], b[:3], c[:3]], [a[3], b[3], c[3]]
        return own if self._moved is None else composed(own, self._moved)

    def frame_with(self, q: Array | Sequence[float], tcp: Frame) -> Frame:
        """The same with another tool, T_flange_tcp."""
        a, b, c, _ = self.robot.pose(q).tolist()
        return composed(([a[:3], b[:3], c[:3]], [a[3], b[3], c[3]]), composed(inverted(self._robot_tcp), tcp))

    def jacobian(self, q: Array | Sequence[float], tcp: Frame | None = None) -> Array:
        """J (6, 6) at the tool, base axes: the point moves with the last link."""
        J = self.robot.jacobian(q)
        moved = self._moved if tcp is None else composed(inverted(self._robot_tcp), tcp)
        if moved is None:
            return J
        arm = np.array(matvec([row[:3] for row in self.robot.pose(q).tolist()[:3]], moved[1]))
        J = J.copy()
        J[:3] += np.cross(J[3:], arm, axisa=0, axisb=0).T
        return J

    def nearest(self, goal: Frame, near: Array | Sequence[float], tcp: Frame | None = None) -> Array | None:
        """The solution (6,) of a pose of the tool that is nearest to `near`, within the joint limits; None: none."""
        moved = self._moved if tcp is None else composed(inverted(self._robot_tcp), tcp)
        R, p = goal if moved is None else composed(goal, inverted(moved))
        T = np.array([[*R[0], p[0]], [*R[1], p[1]], [*R[2], p[2]], [0.0, 0.0, 0.0, 1.0]])
        try:
            found: Array = self.robot.inverse_kinematics(T, near).nearest(near)
            return found
        except (NoSolution, InvalidValue):
            return None

    def followed(self, goal: Frame, q: Array) -> tuple[Array, Array]:
        """The joints (6,) of a pose near q, on the same branch, and J^-1 there; Newton's method.

        Raises ProtectiveStop where it does not get there: singular, or out of reach.
        """
        R, p = goal
        for _ in range(STEPS):
            R_now, p_now = self.frame_at(q)
            turn = rotation_vector(matmul(R, transposed(R_now)))
            error = np.array([p[0] - p_now[0], p[1] - p_now[1], p[2] - p_now[2], *turn])
            try:
                inverse: Array = np.linalg.inv(self.jacobian(q)).astype(np.float64, copy=False)
            except np.linalg.LinAlgError:
                break
            step = inverse.dot(error)
            size = float(step.dot(step))
            if not size < 1.0:
                break
            q = q + step
            if size < CLOSE:  # its square root is 3e-5: the step after it would be some 1e-9
                return q, inverse
        raise ProtectiveStop("the tool cannot follow its path: the arm is singular there, or it is out of reach")

    def checked_speed(self, qd: Array) -> Array:
        """The same joint speeds; raises ProtectiveStop where a joint cannot turn so fast."""
        share = np.abs(qd) / self.robot.qd_max
        if share.max() > 1.0:
            joint = int(share.argmax())
            limit = self.robot.qd_max[joint]
            raise ProtectiveStop(f"joint {joint + 1} would turn at {abs(qd[joint]):.3g} rad/s, at most {limit:.3g}")
        return qd

    def wrench(self) -> list[float]:
        """Force [N] and moment [Nm] (6,) of the environment on the arm at the tool, base axes, less the zero."""
        measured = self.state.wrench
        if measured is None:
            return [0.0] * 6
        found = measured.tolist()
        if self._moved is not None:  # measured at the robot's own tcp: the moment about the program's differs
            R = [row[:3] for row in self.robot.pose(self.state.q).tolist()[:3]]
            x, y, z = matvec(R, self._moved[1])
            fx, fy, fz = found[:3]
            found[3:] = add(found[3:], [z * fy - y * fz, x * fz - z * fx, y * fx - x * fy])
        return [a - b for a, b in zip(found, self.wrench_zero, strict=True)]

    # ------------------------------------------------------------------------------------------------------ settings

    def set_tcp(self, tcp: Frame) -> None:
        """T_flange_tcp of the program."""
        self.tcp = tcp
        moved = composed(inverted(self._robot_tcp), tcp)
        same = max(map(abs, [*moved[1], *rotation_vector(moved[0])])) < 1e-12  # m, rad: rounding of two inversions
        self._moved = None if same else moved

    def set_payload(self, mass: float, com: Sequence[float], inertia: Array | None = None) -> None:
        """What hangs at the flange: mass [kg], centre of mass (3,) [m], inertia about it (3, 3) [kg m2]."""
        about = np.zeros((3, 3)) if inertia is None else inertia
        try:
            nothing = replace(NO_PAYLOAD, com=np.array(com, dtype=np.float64))
            body = payload_body((mass, tuple(com), about)) if mass else nothing
        except (InvalidValue, ValueError, TypeError) as problem:
            raise ScriptException(str(problem)) from None
        before, self.payload = self.payload, body
        if body.mass != before.mass or np.any(body.com != before.com) or np.any(body.inertia != before.inertia):
            self._rebuild(payload=body if body.mass else None)

    def set_gravity(self, up: Sequence[float]) -> None:
        """URScript gives the acceleration that the arm feels: (0, 0, 9.82) stands upright."""
        if len(up) != 3:
            raise ScriptException(f"set_gravity: three numbers [m/s2], got {len(up)}")
        self._rebuild(gravity=gravity_vector([-float(x) for x in up]))

    def _rebuild(self, **changes: Any) -> None:
        model: Model = replace(self.robot.model, **changes)
        self.robot = Robot(model, self._made.rotor_inertia, self._made._nominal)
