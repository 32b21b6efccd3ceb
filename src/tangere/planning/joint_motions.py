"""Motions given in joints: a jerk-limited move, standing still, a sine, and one motion after another."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence as Several
from math import cos, inf, pi, sin

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, NoSolution
from tangere.kinematics.checks import checked
from tangere.planning.path_trajectory import grid
from tangere.planning.paths import positive
from tangere.planning.samples import PERIOD, Limits, Sampled, at_rest, refuse_violations
from tangere.planning.timing import SmoothRate, jerk_limited
from tangere.robots import Robot
from tangere.types import Array, Reference, Trajectory

# What UR's own movej takes when nothing is said: 1.05 rad/s and 1.4 rad/s2 (URScript manual). The jerk is ours: the
# acceleration builds up over a tenth of a second, longer than one swing of a UR's first bending mode (about 10 Hz).
VELOCITY, ACCELERATION, JERK = 1.05, 1.4, 14.0
# Joints of neighbouring motions may differ by this [rad] where one follows the other: a thousandth of an encoder count.
SAME_JOINTS = 1e-6
# Joint speed [rad/s] that counts as rest where one motion follows another: 1e-6 rad in a period of 1 ms.
AT_REST = 1e-3


class JointMove(Sampled):
    """From one joint vector to another, jerk-limited, all joints starting and arriving together; rest to rest.

    Limits per joint or one for all; velocities are capped at the arm's own. duration_min [s] asks for a slower move.
    The duration is a whole number of periods.
    """

    __slots__ = ()

    def __init__(
        self, robot: Robot, q_start: ArrayLike, q_end: ArrayLike, *, velocity: ArrayLike = VELOCITY,
        acceleration: ArrayLike = ACCELERATION, jerk: ArrayLike = JERK, duration_min: float = 0.0,
        period: float = PERIOD, limits: Limits | None = None,
    ) -> None:  # fmt: skip
        """q_start, q_end (n,) [rad]; velocity [rad/s], acceleration [rad/s2], jerk [rad/s3]."""
        a, b = checked(q_start, (robot.dof,), "q_start"), checked(q_end, (robot.dof,), "q_end")
        zero = np.zeros(robot.dof)
        v_max = np.minimum(np.broadcast_to(np.asarray(velocity, dtype=np.float64), zero.shape), robot.qd_max)
        begin, end = (a, zero, zero), (b, zero, zero)
        profile = jerk_limited(begin, end, v_max, acceleration, jerk, duration_min)
        times = grid(profile.duration, positive(period, "period", "s"))
        if profile.duration < times[-1]:  # a little slower, so that it ends on a sample
            profile = jerk_limited(begin, end, v_max, acceleration, jerk, float(times[-1]))
        q, qd, qdd = profile.at(times)
        q[-1], qd[-1], qdd[-1] = b, 0.0, 0.0  # the end is asked for, not approached
        refuse_violations(robot, limits, period, q, qd, qdd)
        super().__init__(robot, q, qd, qdd, period, float(times[-1]))


class Hold:
    """Stand still at q (n,), for ever or for `duration` seconds."""

    __slots__ = ("_reference", "duration")

    def __init__(self, robot: Robot, q: ArrayLike, duration: float = inf) -> None:
        self._reference = at_rest(robot, checked(q, (robot.dof,), "q").copy())
        self.duration = duration if duration == inf else positive(duration, "duration", "s")

    def at(self, time: float) -> Reference:
        """Always the same."""
        return self._reference


class Sine:
    """Some joints swing about q_0: q_j = q_0j + A_j sin(2 pi f_j x(t)), x(t) a clock that starts smoothly.

    x is SmoothRate's start with rate 1: velocity and acceleration begin at zero and reach the pure sine after
    `ramp` seconds. With a duration it stops as smoothly, wherever the joints are then. joints are counted from 1.
    The tool's pose follows from the joints only where the robot computes it: T, v, a are None here.
    """

    __slots__ = ("_law", "_moving", "_q_0", "_ramp", "_stand", "duration")

    def __init__(
        self, robot: Robot, q_0: ArrayLike, amplitude: ArrayLike, frequency: ArrayLike,
        joints: Several[int] | None = None, *, ramp: float = 1.0, duration: float = inf,
    ) -> None:  # fmt: skip
        """amplitude [rad] and frequency [Hz]: one number or one per moving joint; joints None: all."""
        q = checked(q_0, (robot.dof,), "q_0")
        which = tuple(range(1, robot.dof + 1)) if joints is None else tuple(joints)
        if not which or any(not 1 <= j <= robot.dof for j in which) or len(set(which)) < len(which):
            raise InvalidValue(f"joints: must be different numbers from 1 to {robot.dof}, got {joints!r}")
        A = np.broadcast_to(checked(amplitude, (), "amplitude"), (len(which),))
        f = np.broadcast_to(checked(frequency, (), "frequency"), (len(which),))
        if np.any(f <= 0.0):
            raise InvalidValue(f"frequency: must be positive [Hz], got {f.tolist()}")
        for j, swing, rate in zip(which, A, 2.0 * pi * f * np.abs(A), strict=True):
            low, high, top = robot.q_min[j - 1], robot.q_max[j - 1], robot.qd_max[j - 1]
            unit = "rad" if robot.revolute[j - 1] else "m"
            if q[j - 1] - abs(swing) < low or q[j - 1] + abs(swing) > high:
                about = f"joint {j} would swing {abs(swing):.4g} {unit} about {q[j - 1]:.4g}"
                raise NoSolution(f"{about}, beyond its limits {low:.4g} to {high:.4g} {unit}")
            if rate > top:
                raise NoSolution(f"joint {j} would need {rate:.4g} {unit}/s, its limit is {top:.4g} {unit}/s")
        self._moving = tuple((j - 1, float(a), 2.0 * pi * float(w)) for j, a, w in zip(which, A, f, strict=True))
        self._q_0, self._ramp = q.copy(), ramp
        self._law = SmoothRate(1.0, ramp, 2.0 * ramp + 1.0 if duration == inf else duration, stop=duration != inf)
        self.duration = float(duration)
        self._stand = np.zeros(robot.dof)

    def at(self, time: float) -> Reference:
        """q, qd, qdd at that time [s]."""
        x, xd, xdd = self._clock(time)
        q, qd, qdd = self._q_0.copy(), self._stand.copy(), self._stand.copy()
        for j, A, w in self._moving:
            s, c = A * sin(w * x), A * w * cos(w * x)
            q[j] += s
            qd[j] = c * xd
            qdd[j] = c * xdd - w * w * s * xd * xd
        return Reference(q, qd, qdd)

    def _clock(self, t: float) -> tuple[float, float, float]:
        """The smooth clock; past both ramps without numpy."""
        if self._ramp <= t <= self.duration - self._ramp:
            return t - 0.5 * self._ramp, 1.0, 0.0
        if t <= 0.0:
            return 0.0, 0.0, 0.0
        if t >= self.duration:
            return self.duration - self._ramp, 0.0, 0.0
        x, xd, xdd = self._law.at(np.array([t]))
        return float(x[0]), float(xd[0]), float(xdd[0])


class Sequence:
    """One trajectory after another; each must begin where the one before ends, at rest.

    Each begins on the grid of `period` [s], so up to one period after the end of the one before: then samples of the
    same period are hit, not interpolated.
    """

    __slots__ = ("_starts", "duration", "trajectories")

    def __init__(self, trajectories: Several[Trajectory], period: float = PERIOD) -> None:
        self.trajectories = tuple(trajectories)
        if not self.trajectories:
            raise InvalidValue("trajectories: at least one is needed, got none")
        starts = [0.0]
        for i, (one, other) in enumerate(zip(self.trajectories, self.trajectories[1:], strict=False), start=1):
            if one.duration == inf:
                raise InvalidValue(f"trajectory {i} of {len(self.trajectories)} never ends, nothing can follow it")
            end, begin = one.at(one.duration), other.at(0.0)
            for moving, when in ((end, f"trajectory {i} ends"), (begin, f"trajectory {i + 1} begins")):
                if np.max(np.abs(moving.qd)) > AT_REST:
                    j = int(np.argmax(np.abs(moving.qd)))
                    raise InvalidValue(f"{when} with joint {j + 1} moving at {moving.qd[j]:.4g} rad/s, not at rest")
            gap = np.abs(end.q - begin.q)
            if np.max(gap) > SAME_JOINTS:
                j = int(np.argmax(gap))
                raise InvalidValue(
                    f"trajectory {i + 1} begins {gap[j]:.4g} rad away from the end of the one before (joint {j + 1}); "
                    "put a JointMove between them"
                )
            starts.append(starts[-1] + float(grid(one.duration, period)[-1]))
        self._starts = starts
        self.duration = starts[-1] + self.trajectories[-1].duration

    def at(self, time: float) -> Reference:
        """The reference of the trajectory whose turn it is."""
        i = max(bisect_right(self._starts, time) - 1, 0)
        return self.trajectories[i].at(time - self._starts[i])


def moved_to(robot: Robot, q: Array, then: Trajectory, period: float = PERIOD) -> Sequence:
    """A joint move (JointMove's own limits) from q (n,) to the start of a trajectory, then the trajectory."""
    return Sequence([JointMove(robot, q, then.at(0.0).q, period=period), then], period)
