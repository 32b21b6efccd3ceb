"""Moves over time: a trapezoid of speed along a joint move, a line or an arc, and two of them blended.

UR documents trapezoids: full acceleration, constant speed, full deceleration. A move with a blend radius hands over
when the tool is that near to its end. From there it slows down evenly to its end, the waypoint, while the move that
follows speeds up evenly in the same time; the arm goes

    p(t) = p_first(t) + p_second(t) - waypoint

so that the speed is continuous, the tool leaves the first line and joins the second at the blend radius (where both
have the same speed), and three points in a line are passed without slowing down.
"""

from __future__ import annotations

from math import cos, sin, sqrt
from typing import TYPE_CHECKING, Protocol

from tangere.errors import InvalidValue
from tangere.kinematics.vectors import Vector, add, matmul, matvec, scale, subtract, transposed
from tangere.planning.paths import arc
from tangere.script.host import STILL
from tangere.script.poses import Frame, rotation, rotation_vector
from tangere.script.values import ScriptException
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.script.arm import Arm

# [m/rad] by which a turn counts as a length where a tool both moves and turns: UR's usual 0.25 m/s then is 1.05 rad/s
TURN_AS_LENGTH = 0.25 / 1.05
# where braking begins both formulas agree; after `hand_over` only that of braking is right, from its first instant on
ROUNDING = 1.0 + 1e-12
NOTHING = 1e-9  # [m] or [rad] below which there is nothing to move


class Trapezoid:
    """s(t) from 0 to `length`: acceleration, constant speed, deceleration; a triangle where it is too short for that.

    time > 0: it takes so long instead; the speed follows from the acceleration, which is raised where it must be.
    start: [s] that speeding up takes at least.
    """

    __slots__ = ("begin", "brake", "duration", "length", "ramp", "speed")

    def __init__(
        self, length: float, speed: float, acceleration: float, time: float = 0.0, start: float = 0.0
    ) -> None:
        for name, value in (("speed", speed), ("acceleration", acceleration)):
            if not (value > 0.0 or time > 0.0):
                raise ScriptException(f"the {name} of a move must be positive, got {value:g}")
        self.length = length
        if length < NOTHING:
            self.length = self.speed = self.ramp = self.duration = self.begin = self.brake = 0.0
            return
        if time > 0.0:
            acceleration = max(acceleration, 4.0 * length / time**2)
            reach = acceleration * time
            speed = 0.5 * (reach - sqrt(max(0.0, reach**2 - 4.0 * acceleration * length)))
            start = 0.0
        self.begin = min(acceleration, speed / start) if start > 0.0 else acceleration
        self.brake = acceleration
        self.speed = min(speed, sqrt(2.0 * length * self.begin * self.brake / (self.begin + self.brake)))
        self.ramp = self.speed / self.begin
        self.duration = length / self.speed + 0.5 * (self.ramp + self.speed / self.brake)

    def at(self, time: float) -> tuple[float, float]:
        """s and its rate."""
        left = self.duration - time
        if left <= 0.0:
            return self.length, 0.0
        if time < self.ramp:
            return 0.5 * self.begin * time * time, self.begin * time
        if left * self.brake <= self.speed * ROUNDING:
            return self.length - 0.5 * self.brake * left * left, self.brake * left
        return self.speed * (time - 0.5 * self.ramp), self.speed

    def hand_over(self, time: float) -> None:
        """From that time on, after speeding up: slow down evenly, to rest at the end."""
        s, rate = self.at(time)
        if rate > 0.0:
            self.speed, self.ramp = rate, 0.0
            self.duration = time + 2.0 * (self.length - s) / rate
            self.brake = rate / (self.duration - time)


class Segment(Protocol):
    """One move."""

    law: Trapezoid
    end: Frame  # the tool at its end

    def joints(self, arm: Arm, time: float, speed: float) -> tuple[Array, Array]:
        """q, qd (6,) at a time; speed: the share at which time passes. Called frame by frame."""


class JointSegment:
    """All joints start and arrive together."""

    def __init__(self, arm: Arm, start: Array, goal: Array, law: Trapezoid) -> None:
        self.start, self.goal, self.law = start, goal, law
        self._way = (goal - start) / law.length if law.length else STILL
        self.end = arm.frame_at(goal)

    def joints(self, arm: Arm, time: float, speed: float) -> tuple[Array, Array]:
        """On the straight way in joint space."""
        if time >= self.law.duration:
            return self.goal, STILL
        s, rate = self.law.at(time)
        return self.start + self._way * s, self._way * (rate * speed)


class ToolSegment:
    """The tool on a line or an arc; turning goes along with it."""

    def __init__(self, arm: Arm, start: Frame, goal: Frame, law: Trapezoid, curve: _Curve) -> None:
        self.start, self.end, self.law, self._curve = start, goal, law, curve
        self._q, self._qd = arm.q, arm.qd

    def tool(self, time: float, speed: float) -> tuple[Frame, Vector]:
        """Pose, and velocity (6,) in base axes."""
        s, rate = self.law.at(time)
        share = s / self.law.length if self.law.length else 1.0
        return self._curve.at(share, rate * speed / self.law.length if self.law.length else 0.0)

    def joints(self, arm: Arm, time: float, speed: float) -> tuple[Array, Array]:
        """On the branch of the frame before."""
        self._q, self._qd = followed(arm, *self.tool(time, speed), self._q, self._qd)
        return self._q, self._qd


class Blend:
    """What is left of a move, and the one that follows, as one motion; in tool space where both are of the tool."""

    def __init__(self, arm: Arm, first: Segment, time: float, second: Segment) -> None:
        self.first, self.second, self._left = first, second, time
        self.tool_space = isinstance(first, ToolSegment) and isinstance(second, ToolSegment)
        self.handed_over = max(0.0, first.law.duration - time)  # [s] after which only the second is left
        if not self.tool_space:
            self._waypoint = arm.followed(first.end, first.joints(arm, time, 1.0)[0])[0]
        self._q, self._qd = arm.q, arm.qd

    def joints(self, arm: Arm, time: float, speed: float) -> tuple[Array, Array]:
        """Both added, less the waypoint between them."""
        first, second = self.first, self.second
        if isinstance(first, ToolSegment) and isinstance(second, ToolSegment):
            (R_a, p_a), v_a = first.tool(self._left + time, speed)
            (R_b, p_b), v_b = second.tool(time, speed)
            R_w, p_w = first.end
            goal = matmul(matmul(R_a, transposed(R_w)), R_b), subtract(add(p_a, p_b), p_w)
            self._q, self._qd = followed(arm, goal, [x + y for x, y in zip(v_a, v_b, strict=True)], self._q, self._qd)
            second._q, second._qd = self._q, self._qd
            return self._q, self._qd
        q_a, qd_a = first.joints(arm, self._left + time, speed)
        q_b, qd_b = second.joints(arm, time, speed)
        return q_a + q_b - self._waypoint, qd_a + qd_b


def followed(arm: Arm, goal: Frame, velocity: Vector, q: Array, qd: Array) -> tuple[Array, Array]:
    """q, qd (6,) that bring the tool to a pose with a velocity, from those of the frame before."""
    q, inverse = arm.followed(goal, q + qd * arm.frame)
    return q, arm.checked_speed(inverse.dot(velocity)) if any(velocity) else STILL


# --------------------------------------------------------------------------------------------------------------- curves


class _Curve(Protocol):
    def at(self, share: float, rate: float) -> tuple[Frame, Vector]:
        """Pose, and velocity (6,) where the share goes on by `rate` [1/s]."""


class Straight:
    """From one pose to another, straight, turning about one axis."""

    def __init__(self, start: Frame, goal: Frame) -> None:
        self._start, self._way = start, subtract(goal[1], start[1])
        self._turn = rotation_vector(matmul(transposed(start[0]), goal[0]))
        self._spin = matvec(start[0], self._turn)
        self._turns = max(map(abs, self._turn)) > 0.0
        way, turn = (sqrt(sum(x * x for x in v)) for v in (self._way, self._turn))
        self.length = max(way, TURN_AS_LENGTH * turn)

    def at(self, share: float, rate: float) -> tuple[Frame, Vector]:
        """Pose and velocity."""
        R, p = self._start
        x, y, z = self._way
        if self._turns:
            R = matmul(R, rotation(scale(share, self._turn)))
        position = [p[0] + share * x, p[1] + share * y, p[2] + share * z]
        return (R, position), [rate * x, rate * y, rate * z, *scale(rate, self._spin)]


class Arc:
    """From one pose over a point to another on a circle. fixed: the tool keeps its angle to the circle's tangent."""

    def __init__(self, start: Frame, via: Vector, goal: Frame, fixed: bool) -> None:
        try:
            self._circle = arc(start[1], via, goal[1], start[0])
        except InvalidValue as problem:
            raise ScriptException(f"movec: {problem}") from None
        self._x, self._y = self._circle.x_axis.tolist(), self._circle.y_axis.tolist()
        self._centre, self._R = self._circle.centre.tolist(), start[0]
        self.length = float(self._circle.length)
        normal = self._circle.normal.tolist()
        turn = rotation_vector(matmul(goal[0], transposed(start[0])))  # base axes: the whole turn on the way
        self._turn = scale(self._circle.angle, normal) if fixed else turn

    @property
    def goal(self) -> Frame:
        """The pose at the end."""
        return self.at(1.0, 0.0)[0]

    def at(self, share: float, rate: float) -> tuple[Frame, Vector]:
        """Pose and velocity."""
        angle, radius = self._circle.angle * share, self._circle.radius
        c, s, v = radius * cos(angle), radius * sin(angle), rate * self._circle.angle
        p = [o + c * x + s * y for o, x, y in zip(self._centre, self._x, self._y, strict=True)]
        velocity = [v * (c * y - s * x) for x, y in zip(self._x, self._y, strict=True)]
        return (matmul(rotation(scale(share, self._turn)), self._R), p), [*velocity, *scale(rate, self._turn)]
