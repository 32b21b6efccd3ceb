"""A path in space with a time law, as joint motion: branch-continuous inverse kinematics and its derivatives.

Two circles of the documents are ready made: 000's above a table, tool down, and 002's upright one on a wall.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, NoSolution
from tangere.kinematics.checks import checked
from tangere.kinematics.resolution import damped_inverse, damping_schedule
from tangere.planning.branches import BRANCHES, COARSE, best_start, branch_start, joint_path, turns
from tangere.planning.paths import Circle, Path, positive, unit
from tangere.planning.samples import (
    LONG,
    MARGIN,
    ON_GRID,
    PAGE,
    PERIOD,
    Limits,
    Piece,
    Sampled,
    Violation,
    cut,
    violations,
)
from tangere.planning.timing import SmoothRate, Stretched, TimeLaw
from tangere.robots import Robot
from tangere.types import Array

# Below this smallest singular value J^-1 is damped. The joints follow the path exactly all the same (they come from
# inverse kinematics); only their derivatives are softened where 3 mm/s would already ask for 3 rad/s.
SINGULAR = 1e-3
# A step between samples beyond so many times what the joint's top speed allows means that the branch has jumped.
JUMP = 2.0
# Named in a message: below this value singularity is likely what made the joints fast.
NEAR_SINGULAR = 0.05
# Stretching is repeated as the samples lie elsewhere after it; the second pass is already a formality.
PASSES = 4
# Tool down, its x axis along base x: R = Rz(psi) Rx(pi) with yaw psi = 0. 000 leaves psi open (eq 93); another yaw
# only turns joint 6.
TOOL_DOWN = np.diag([1.0, -1.0, -1.0])
# [m] upper arm and forearm of the UR10e, the arm that the default numbers of `ramped_circle` fit; for another arm they
# are scaled with its length
UR10E_ARM = 0.6127 + 0.57155


class PathTrajectory(Sampled):
    """The tool follows a path with a time law.

        q = IK(T(s(t))) along one branch,  qd = J^-1 v,  qdd = J^-1 (a - Jdot qd)      (000 gives q only)

    Precomputed every `period`; see Sampled for `at`. Joint limits (velocity, and what `limits` asks for) are checked
    on that grid. Where one is broken: NoSolution that says which joint, where and by how much, or with slower=True the
    whole motion is stretched (`stretch` says by what factor) until it fits.
    """

    __slots__ = ("_joints", "law", "mismatch", "path", "stretch")

    def __init__(
        self, robot: Robot, path: Path, law: TimeLaw, *, q_start: ArrayLike | None = None, period: float = PERIOD,
        limits: Limits | None = None, slower: bool = False,
    ) -> None:  # fmt: skip
        """q_start (n,): where the arm stands, to choose the branch (None: the best one for the whole path)."""
        period = positive(period, "period", "s")
        start = None if q_start is None else checked(q_start, (robot.dof,), "q_start")
        asked = Limits.of(robot) if limits is None else limits
        stretch = 1.0
        for _ in range(PASSES):
            used: TimeLaw = law if stretch == 1.0 else Stretched(law, stretch)
            joints = _Joints(robot, path, used, start, period)
            worst = joints.worst(asked)
            if worst is None:
                break
            if not slower or not np.isfinite(worst.factor):
                raise NoSolution(_sentence(robot, worst, joints))
            said = f"after slowing down by {stretch:.3g}: " + _sentence(robot, worst, joints)
            stretch *= worst.factor * (1.0 + MARGIN)
        else:
            raise NoSolution(said)
        self.path, self.law, self.stretch = path, used, stretch
        self._joints = joints
        # rad/s by which step/period and the mean of qd differ at most: rounding and curvature (1e-6) on regular paths,
        # more where qd was damped or jumps at a singularity (`velocity_ik.follow` gives joints and rates that agree)
        self.mismatch = joints.mismatch
        self._made(robot, joints.count, joints, period, used.duration)

    @property
    def sigma_min(self) -> Array:
        """(k,) smallest singular value of J, a lower bound where J is far from singular; of a long motion made anew."""
        return self._joints.sigma()


def grid(duration: float, period: float) -> Array:
    """Times every `period` from 0 to the first that is not before the duration."""
    if not np.isfinite(duration):
        raise InvalidValue("a trajectory held as samples needs a finite duration")
    return np.arange(int(np.ceil(duration / period - ON_GRID)) + 1, dtype=np.float64) * period


class _Joints:
    """The joints along a path, sample by sample: short motions are held, long ones (LONG) made again page by page.

    Of a long one only the joints at the beginning of each page stay, from which its branch goes on.
    """

    def __init__(self, robot: Robot, path: Path, law: TimeLaw, q_start: Array | None, period: float) -> None:
        self._robot, self._path, self._law, self.period = robot, path, law, period
        self.count = len(grid(law.duration, period))
        self._size = self.count if self.count <= LONG else PAGE
        for k in range(0, self.count, LONG):
            s = law.at(self._times(k, k + LONG))[0]
            if not path.closed and (s.min() < -1e-9 or s.max() > path.length * (1.0 + 1e-9)):
                raise InvalidValue(
                    f"the time law runs from s = {s.min():g} to {s.max():g} m, the path from 0 to {path.length:g} m"
                )
        if q_start is None and self._size == PAGE and robot.closed_form:  # the best branch is that of the whole path
            some = np.unique(np.linspace(0, self.count - 1, COARSE).round())
            q_start = best_start(robot, path.at(law.at(some * period)[0]).T)
            self._starts: list[Array | None] = [q_start]
            low = high = q_start
            for first in range(0, self.count, self._size):
                q = self._page(first)[0]
                low, high = np.minimum(low, q.min(axis=0)), np.maximum(high, q.max(axis=0))
            q_start = q_start - turns(robot, low, high)
        self._starts = [q_start]
        self.mismatch = 0.0
        self.sigma_there = np.inf  # at the limit that is broken most
        self._held: Piece | None = None
        self._sigma: Array | None = None

    def __call__(self, first: int, end: int) -> Piece:
        """q, qd, qdd of the samples from `first` to before `end`."""
        if self._held is not None:
            return cut(self._held, first, end)
        if first % self._size == 0 and end <= first + self._size + 1:
            return self._page(first)[:3]
        found = [self._page(k)[:3] for k in range(first - first % self._size, end, self._size)]
        whole = [np.concatenate([page[i][: self._size] for page in found]) for i in range(3)]
        return cut((whole[0], whole[1], whole[2]), first % self._size, first % self._size + end - first)

    def sigma(self) -> Array:
        """(k,) of all samples."""
        if self._sigma is not None:
            return self._sigma
        pages = [self._page(first)[3][: self._size] for first in range(0, self.count, self._size)]
        return np.concatenate(pages)

    def worst(self, limits: Limits) -> Violation | None:
        """The limit that is broken most, None where none is; goes once along the whole path."""
        found: Violation | None = None
        for first in range(0, self.count, self._size):
            q, qd, qdd, sigma = self._page(first)
            if len(q) > 1:
                off = np.abs(np.diff(q, axis=0) / self.period - 0.5 * (qd[1:] + qd[:-1]))
                self.mismatch = max(self.mismatch, float(np.max(off)))
            for one in violations(self._robot, limits, self.period, q, qd, qdd):
                if found is None or one.factor > found.factor:
                    found, self.sigma_there = replace(one, index=first + one.index), float(sigma[one.index])
            if self._size == self.count:
                self._held, self._sigma = (q, qd, qdd), sigma
        return found

    def _times(self, first: int, end: int) -> Array:
        return np.arange(first, min(end, self.count), dtype=np.float64) * self.period

    def _page(self, first: int) -> tuple[Array, Array, Array, Array]:
        """From sample `first`, where a page begins, to the beginning of the next, which belongs to both."""
        k = first // self._size
        times = self._times(first, first + self._size + 1)
        found = _follow(self._robot, self._path, self._law.at(times), times, self._starts[k], self.period)
        if k + 1 == len(self._starts):
            self._starts.append(found[0][-1].copy())  # a view would keep the whole page
        return found


def _follow(
    robot: Robot, path: Path, along: tuple[Array, Array, Array], times: Array, q_start: Array | None, period: float
) -> tuple[Array, Array, Array, Array]:
    """Joints, their first and second derivatives and a bound of sigma_min for these times."""
    s, sd, sdd = along
    points = path.at(s)
    v = points.first * sd[:, None]
    a = points.first * sdd[:, None] + points.second * (sd**2)[:, None]
    q = joint_path(robot, points.T, times, q_start, JUMP * robot.qd_max * period)
    inverse, sigma = softened_inverse(robot.jacobian(q))
    qd = (inverse @ v[:, :, None])[:, :, 0]
    drift = robot.jacobian_rate_times_velocity(q, qd)
    qdd = (inverse @ (a - drift)[:, :, None])[:, :, 0]
    return q, qd, qdd, sigma


def softened_inverse(J: Array) -> tuple[Array, Array]:
    """J^-1 (k, n, 6), damped where J is nearly singular, and a lower bound of sigma_min (k,), exact below SINGULAR.

    sigma_min >= 1/|J^-1| (Frobenius) decides cheaply that most samples are regular.
    """
    bound = np.zeros(len(J))
    inverse = np.empty((len(J), J.shape[2], J.shape[1]))
    if J.shape[1] == J.shape[2]:
        regular = np.abs(np.linalg.det(J)) > 1e-12  # below, the inverse has no digits (columns are of order one)
        inverse[regular] = np.linalg.inv(J[regular])
        bound[regular] = 1.0 / np.linalg.norm(inverse[regular], axis=(1, 2))
    rest = np.nonzero(bound < SINGULAR)[0]
    if len(rest):
        bound[rest] = np.linalg.svd(J[rest], compute_uv=False)[:, -1]
        inverse[rest] = damped_inverse(J[rest], damping_schedule(J[rest], SINGULAR, SINGULAR))
    return inverse, bound


def _sentence(robot: Robot, worst: Violation, joints: _Joints) -> str:
    i, sigma = worst.index, joints.sigma_there
    q = joints(i, i + 1)[0]
    message = worst.text(robot, joints.period, q[0])
    if sigma < NEAR_SINGULAR:
        message += f"; the arm is near a singularity there (smallest singular value of J {sigma:.2g})"
    if np.isfinite(worst.factor):
        return message + f"; {worst.factor:.3g} times slower would do (slower=True)"
    return message + "; no slower motion helps"


def ramped_circle(
    robot: Robot, *, centre: ArrayLike = (0.7, 0.1, 0.3), radius: float = 0.15, rate: float = 1.0, ramp: float = 1.0,
    duration: float = 10.0, stop: bool = True, orientation: ArrayLike = TOOL_DOWN, branch: str = BRANCHES[0],
    q_start: ArrayLike | None = None, **how: Any,
) -> PathTrajectory:  # fmt: skip
    """000's horizontal circle, tool down, with the smooth start that 000 eq 88 lacks; the one of `tangere run circle`.

    The default numbers are those of docs/results.md (000 itself names none), for a UR10e: 0.15 m
    radius, 1 rad/s, centre [m] in base axes. ramp [s]: until the full rate is reached. With stop (default) it comes to
    rest within the last `ramp` seconds; without, run it for less than the duration. branch: shoulder, elbow and wrist
    of a UR on its way (planning.branches.BRANCHES), or "best": the one that suits the whole path; q_start (n,) says it
    by joints instead. how: as PathTrajectory has it.
    """
    path = Circle(centre, radius, orientation)
    if q_start is None and branch != "best":
        q_start = branch_start(robot, path.at(np.zeros(1)).T[0], branch)
    law = SmoothRate(positive(rate, "rate", "rad/s") * radius, ramp, duration, stop=stop)
    return PathTrajectory(robot, path, law, q_start=q_start, **how)


def facing(normal: ArrayLike) -> Array:
    """R_base_tcp of a tool that looks straight at a wall: z against the wall's outward normal, x across and level.

    Right for walls that are not level (a table): there the level direction is not unique, base x is taken.
    """
    z = -unit(normal, "normal")
    x = np.cross(z, (0.0, 0.0, 1.0))
    x = np.array([1.0, 0.0, 0.0]) if np.linalg.norm(x) < 1e-9 else unit(x, "x")
    return np.stack([x, np.cross(z, x), z], axis=1)


def wall_circle(
    robot: Robot, *, centre: ArrayLike = (0.0, -0.8, 0.5), radius: float = 0.1, normal: ArrayLike = (0.0, 1.0, 0.0),
    round_time: float = 200.0, rounds: float = 1.0, ramp: float = 2.0, **how: Any,
) -> PathTrajectory:  # fmt: skip
    """002's upright circle (radius 100 mm, 200 s, from the top) in a pose where the arm can push on the wall.

    The default place, for a UR10 or UR10e that holds a pen of 0.1 m: the wall is the plane y = -0.8 m, the circle's
    centre 0.5 m above the base, the pen at right angles to the wall. The smallest singular value of J stays above 0.3
    all the way round (it is 0.36 at the best place there is; in 002's own pose it is 0), so that every joint torque of
    the 5 N is what the model says. normal: out of the wall, towards the robot. It runs the way 002 does: from the top
    to the robot's base -x. round_time [s] per round at full speed; the ramps add `ramp` seconds. how: as PathTrajectory
    has it.
    """
    path = Circle.about(centre, radius, facing(normal), normal=-unit(normal, "normal"))
    speed = path.length / positive(round_time, "round_time", "s")
    law = SmoothRate.over(rounds * path.length, speed, ramp)
    return PathTrajectory(robot, path, law, **how)
