"""A trajectory held as samples, and joint limits along it.

Samples: the grid values on the grid, quintic Hermite interpolation between. Limits: where they are broken, by how much,
and how much slower would do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, NoSolution
from tangere.kernels.periods import Records
from tangere.planning.paths import positive
from tangere.robots import Robot
from tangere.types import Array, Reference

# A time this share of a period off a grid point counts as on it. Sums of 1e6 periods drift by 1e-10 of a period;
# at 3 rad/s and 1 ms the error is 3e-9 rad, a thousandth of an encoder's count.
ON_GRID = 1e-6
# Default sampling period [s]: the control period of the simulated runs; at 500 Hz every second sample is hit.
PERIOD = 1e-3


# Column k: coefficients of 1, u, .. u^5 of the polynomial that has one of the six end values (unit interval).
HERMITE = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.0, 0.0, 0.0],
        [-10.0, -6.0, -1.5, 10.0, -4.0, 0.5],
        [15.0, 8.0, 1.5, -15.0, 7.0, -1.0],
        [-6.0, -3.0, -0.5, 6.0, -3.0, 0.5],
    ]
)


# Samples from which on a motion is no longer held with everything that belongs to it (0.5 kB each), but made again page
# by page when its time comes: 100 s at 1 kHz.
LONG = 100_000
PAGE = 64  # samples: made in half a millisecond, which a period of 1 ms has room for

Piece = tuple[Array, Array, Array]  # q, qd, qdd (k, n) of neighbouring samples


class Pages:
    """References of samples that `make(first, end)` gives, from sample `first` to before `end`: a page at a time.

    first, end: the page that is here, records: its references by their place on it.
    """

    __slots__ = ("_count", "_make", "_robot", "_samples", "_size", "end", "first", "records")

    def __init__(self, robot: Robot, count: int, make: Callable[[int, int], Piece]) -> None:
        self._robot, self._count = robot, count
        self._make: Callable[[int, int], Piece] | None = make
        self._size = count if count <= LONG else PAGE
        self.first = self.end = 0
        self._load(0)
        if self._size == count:  # all of it is here
            self._make = None

    def __call__(self, i: int) -> Reference:
        """The reference at sample i."""
        if not self.first <= i < self.end:
            self._load(i)
        return self.records(i - self.first)  # type: ignore[no-any-return]

    def pair(self, i: int) -> Array:
        """Samples i and i + 1, (2, 3, n)."""
        if not self.first <= i < self.end:
            self._load(i)
        return self._samples[i - self.first : i - self.first + 2]

    def samples(self) -> Array:
        """All samples (k, 3, n)."""
        if self._make is None:
            return self._samples
        found = np.stack(self._make(0, self._count), axis=1)
        found.flags.writeable = False
        return found

    def _load(self, i: int) -> None:
        if self._make is None:
            raise InvalidValue(f"sample {i} of {self._count} is none")
        first = i - i % self._size
        end = min(first + self._size + 1, self._count)  # one more, for what lies between two pages
        self._samples = np.stack(self._make(first, end), axis=1)  # (k, 3, n): two neighbours are one block
        self._samples.flags.writeable = False
        q, qd, qdd = (self._samples[:, i] for i in range(3))
        J = self._robot.jacobian(q)
        v = (J @ qd[:, :, None])[:, :, 0]
        a = (J @ qdd[:, :, None])[:, :, 0] + self._robot.jacobian_rate_times_velocity(q, qd)
        tool = (self._robot.pose(q), v, a)
        for array in tool:
            array.flags.writeable = False
        self.records = Records(Reference, q, qd, qdd, *tool)
        self.first, self.end = first, min(first + self._size, self._count)


def cut(whole: Piece, first: int, end: int) -> Piece:
    """The samples from `first` to before `end`."""
    q, qd, qdd = (array[first:end] for array in whole)
    return q, qd, qdd


class Sampled:
    """q, qd, qdd (k, n) every `period` from t = 0, with the tool's pose, velocity and acceleration that belong to them.

    `at` costs about a microsecond on the grid. Between two samples a polynomial of degree five takes over position,
    velocity and acceleration of both, so all three are continuous; the pose follows from the joints.
    Implements types.Trajectory.
    """

    __slots__ = ("_after", "_before", "_end", "_last", "_newest", "_on_grid", "_rate", "duration", "period", "robot")

    def __init__(self, robot: Robot, q: Array, qd: Array, qdd: Array, period: float, duration: float) -> None:
        """The samples cover the duration: (k - 1) period >= duration."""
        n = robot.dof
        if not (q.shape == qd.shape == qdd.shape == (len(q), n)) or (len(q) - 1) * period < duration - ON_GRID * period:
            raise InvalidValue(
                f"samples: q, qd, qdd need the shape (k, {n}) with k > duration/period = {duration / period:g}, "
                f"got {q.shape}, {qd.shape}, {qdd.shape}"
            )
        self._made(robot, len(q), partial(cut, (q, qd, qdd)), period, duration)

    def _made(
        self, robot: Robot, count: int, make: Callable[[int, int], Piece], period: float, duration: float
    ) -> None:
        """From `count` samples that are made when they are asked for, as Pages has it."""
        self.robot = robot
        self.period = positive(period, "period", "s")
        self.duration = float(duration)
        self._on_grid = Pages(robot, count, make)
        self._rate = 1.0 / self.period
        self._last = count - 1
        self._before = at_rest(robot, self._on_grid.pair(0)[0, 0])
        self._newest = (-1.0, self._before)  # a time and its reference: controller and log ask for the same
        self._end = self.duration + ON_GRID * self.period
        end = self.duration * self._rate
        i = round(end)
        self._after = at_rest(robot, (self._on_grid(i) if abs(end - i) < ON_GRID else self._between(end)).q)

    @property
    def q(self) -> Array:
        """(k, n) rad; of a long motion made anew at each call."""
        return self._on_grid.samples()[:, 0]

    @property
    def qd(self) -> Array:
        """(k, n) rad/s."""
        return self._on_grid.samples()[:, 1]

    @property
    def qdd(self) -> Array:
        """(k, n) rad/s2."""
        return self._on_grid.samples()[:, 2]

    @property
    def times(self) -> Array:
        """(k,) s."""
        return np.arange(self._last + 1, dtype=np.float64) * self.period

    def at(self, time: float) -> Reference:
        """The reference at that time [s]; the start at rest before 0, the end at rest after the duration."""
        when, newest = self._newest
        if time == when:
            return newest
        x = time * self._rate
        if not x >= 0.0:
            return self._before
        if time > self._end:
            return self._after
        i, grid = int(x + 0.5), self._on_grid
        if not -ON_GRID < x - i < ON_GRID:
            newest = self._between(x)
        elif grid.first <= i < grid.end:
            newest = grid.records(i - grid.first)
        else:
            newest = grid(i)
        self._newest = (time, newest)
        return newest

    def _between(self, x: float) -> Reference:
        i = min(int(x), self._last - 1)
        q, qd, qdd = basis(x - i, self.period) @ self._on_grid.pair(i).reshape(6, -1)
        J = self.robot.jacobian(q)
        a = J @ qdd + self.robot.jacobian_rate_times_velocity(q, qd)
        return Reference(q, qd, qdd, self.robot.pose(q), J @ qd, a)


def basis(u: float, h: float) -> Array:
    """(3, 6): times (q_0, qd_0, qdd_0, q_1, qd_1, qdd_1) it gives q, qd, qdd at the share u of an interval h [s].

    The polynomial of degree five is the only one with these six values at its ends.
    """
    u2, u3 = u * u, u * u * u
    powers = np.array(
        (
            (1.0, u, u2, u3, u2 * u2, u2 * u3),
            (0.0, 1.0, 2 * u, 3 * u2, 4 * u3, 5 * u2 * u2),
            (0.0, 0.0, 2.0, 6 * u, 12 * u2, 20 * u3),
        )
    )
    scale = np.array(
        (
            (1.0, h, h * h, 1.0, h, h * h),
            (1 / h, 1.0, h, 1 / h, 1.0, h),
            (1 / (h * h), 1 / h, 1.0, 1 / (h * h), 1 / h, 1.0),
        )
    )
    return np.asarray(powers @ HERMITE * scale)


def at_rest(robot: Robot, q: Array) -> Reference:
    """The reference of standing still at q (n,)."""
    zero, zero_6 = np.zeros(robot.dof), np.zeros(6)
    T = robot.pose(q)
    for array in (q, zero, zero_6, T):
        array.flags.writeable = False
    return Reference(q, zero, zero, T, zero_6, zero_6)


# Excess (share of the limit) that counts as none: rounding of a stretch that meets the limit exactly.
SLACK = 1e-9
# A stretched motion ends this much below the limit that made it slow: between two samples h apart the velocity may
# rise above both by |qddd| h^2/8 (1e-5 rad/s at 100 rad/s3 and 1 ms), so that it also holds on any finer grid.
MARGIN = 1e-3
# A gravity torque above this share of the torque limit leaves nothing that going slower could bring.
HOPELESS = 0.999


@dataclass(frozen=True, slots=True)
class Limits:
    """Symmetric limits per joint, (n,) each; None: not asked."""

    velocity: Array  # [rad/s]
    acceleration: Array | None = None  # [rad/s2]
    torque: Array | None = None  # [Nm] of the rigid body; friction is not in it

    @classmethod
    def of(cls, robot: Robot, *, acceleration: ArrayLike | None = None, torque: bool | ArrayLike = False) -> Limits:
        """The arm's own velocities; accelerations as given; torque=True: the arm's own torques, or n numbers."""
        tau = None if torque is False else robot.tau_max if torque is True else _n(torque, robot.dof, "torque")
        return cls(robot.qd_max, None if acceleration is None else _n(acceleration, robot.dof, "acceleration"), tau)


@dataclass(frozen=True, slots=True)
class Violation:
    """One limit that is broken, where it is broken most."""

    kind: str  # "position", "velocity", "acceleration", "torque"
    joint: int  # counted from 1
    index: int  # sample
    value: float  # [rad, rad/s, rad/s2, Nm], or those of a sliding joint
    limit: float
    factor: float  # so many times slower would do; inf where no slowness helps

    def text(self, robot: Robot, period: float, q: Array) -> str:
        """A sentence for people. period [s] of the samples, q (n,) of this one."""
        turning = {"position": "rad", "velocity": "rad/s", "acceleration": "rad/s2", "torque": "Nm"}[self.kind]
        unit = robot.unit(self.joint, turning)
        place = ", ".join(f"{x:.3f}" for x in robot.pose(q)[:3, 3])
        return (
            f"joint {self.joint} would need a {self.kind} of {self.value:.4g} {unit} at t = "
            f"{self.index * period:.4g} s, tool at ({place}) m; its limit is {self.limit:.4g} {unit}"
        )


def violations(robot: Robot, limits: Limits, period: float, q: Array, qd: Array, qdd: Array) -> list[Violation]:
    """Every kind of limit that the samples (k, n) break, worst joint and sample of each, position first.

    The velocity is checked twice, as given and as step over period: a jump between two samples has no other trace.
    """
    found = []
    outside = np.maximum(robot.q_min - q, q - robot.q_max)
    if np.any(outside > SLACK):
        i, j = _worst(outside)
        limit = robot.q_max[j] if q[i, j] > robot.q_max[j] else robot.q_min[j]
        found.append(Violation("position", j + 1, i, float(q[i, j]), float(limit), np.inf))
    step = np.zeros_like(q)
    step[:-1] = np.diff(q, axis=0) / period
    fastest = np.where(np.abs(step) > np.abs(qd), step, qd)
    found += _symmetric(robot, "velocity", fastest, limits.velocity, 1.0)
    if limits.acceleration is not None:
        found += _symmetric(robot, "acceleration", qdd, limits.acceleration, 0.5)
    if limits.torque is not None:
        found += _torque(robot, limits.torque, q, qd, qdd)
    return found


def refuse_violations(robot: Robot, limits: Limits | None, period: float, q: Array, qd: Array, qdd: Array) -> None:
    """Raise NoSolution with the first limit that samples (k, n) break; limits None: the arm's own."""
    for found in violations(robot, limits or Limits.of(robot), period, q, qd, qdd):
        raise NoSolution(found.text(robot, period, q[found.index]))


def _symmetric(robot: Robot, kind: str, x: Array, limit: Array, power: float) -> list[Violation]:
    share = np.abs(x) / limit
    i, j = _worst(share)
    if share[i, j] <= 1.0 + SLACK:
        return []
    value, factor = float(x[i, j]), float(share[i, j] ** power)
    return [Violation(kind, j + 1, i, value, float(limit[j]), factor)]


def _torque(robot: Robot, limit: Array, q: Array, qd: Array, qdd: Array) -> list[Violation]:
    """tau(k times slower) = g + (tau - g)/k^2: k from the room that gravity leaves."""
    g = robot.gravity_torque(q)
    tau = robot.inverse_dynamics(q, qd, qdd)
    share = np.abs(tau) / limit
    i, j = _worst(share)
    if share[i, j] <= 1.0 + SLACK:
        return []
    moving = tau - g
    room = np.where(moving > 0.0, limit - g, limit + g)
    hopeless = np.any(np.abs(g) > HOPELESS * limit)
    factor = np.inf if hopeless else float(np.sqrt(np.max(np.abs(moving) / np.maximum(room, 1e-9 * limit))))
    return [Violation("torque", j + 1, i, float(tau[i, j]), float(limit[j]), factor)]


def _worst(x: Array) -> tuple[int, int]:
    i, j = np.unravel_index(int(np.argmax(x)), x.shape)
    return int(i), int(j)


def _n(value: ArrayLike, n: int, name: str) -> Array:
    limit = np.broadcast_to(np.asarray(value, dtype=np.float64), (n,))
    if not np.all(limit > 0.0):
        raise InvalidValue(f"{name}: limits must be positive, got {np.asarray(value).tolist()}")
    return np.asarray(limit)
