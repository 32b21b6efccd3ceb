"""Inverse kinematics as a value: all solutions of a pose with their branches, flags, and the choice among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue, NoSolution
from tangere.kinematics.checks import checked
from tangere.kinematics.inverse_closed_form import LIMIT_SLACK, SIGNS, TURN, whole_turns
from tangere.model.model import Array

if TYPE_CHECKING:
    from tangere.figures.plots import Figure
    from tangere.robots import Robot

_SIGNS = np.array(SIGNS)
# Bits of `flags`, in the order of the kernels' outputs.
SHOULDER, ELBOW, WRIST, ELBOW_UP = 1, 2, 4, 8
MORE = 128  # among those of a pose's first place, in what the compiled batch hands over: it had to leave solutions out
NO_BRANCH = 255  # lane of a solution of an arm that has no branches as a UR has


@cache
def _endless(dof: int) -> tuple[Array, Array]:
    """Limits of joints that have none."""
    return np.full(dof, -np.inf), np.full(dof, np.inf)


def turns_to(
    q: Array, q_ref: Array, q_min: Array, q_max: Array, revolute: NDArray[np.bool_]
) -> tuple[Array, NDArray[np.bool_]]:
    """q plus the whole turns that bring it nearest to q_ref within the limits, and whether the limits allow any."""
    moved, allowed = whole_turns(q, q_ref, q_min, q_max)
    slides = (q_min - LIMIT_SLACK <= q) & (q <= q_max + LIMIT_SLACK)  # a slider has no turns
    every: NDArray[np.bool_] = np.all(np.where(revolute, allowed, slides), axis=-1)
    return np.where(revolute, moved, q), every


class IKSolutions:
    """Solutions of one pose. A sequence of joint vectors: len(), iteration and indexing go over the rows of q.

    q (k, n): each revolute angle in (-pi, pi]. Labels: shoulder "left"/"right", elbow "up"/"down", wrist "flip"
    (q5 < 0) / "no flip"; docs/conventions.md shows them; "" for arms that are no UR. correction: largest change that
    was made to an entry of the given rotation; distance: how far [m] the pose is out of reach, 0 where it is not.
    robot: who was asked.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        q: Array
        flags: NDArray[np.uint8]
        lanes: NDArray[np.uint8]
        correction: float
        distance: float
        robot: Robot

    def __len__(self) -> int:
        return len(self.q)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[Array]:
        return iter(self.q)

    def __getitem__(self, index: int) -> Array:
        row: Array = self.q[index]
        return row

    def _named(self, column: int, positive: str, negative: str) -> tuple[str, ...]:
        """A word for each solution by the sign of its branch; "" where the arm has no branches."""
        lanes = self.lanes
        return tuple("" if i == NO_BRANCH else positive if _SIGNS[i, column] > 0 else negative for i in lanes)

    @property
    def shoulder(self) -> tuple[str, ...]:
        """ "left" where the arm reaches backwards from joint 1's frame (the usual posture), else "right"."""
        return self._named(0, "right", "left")

    @property
    def wrist(self) -> tuple[str, ...]:
        """ "flip" where q5 < 0, else "no flip"."""
        return self._named(1, "no flip", "flip")

    @property
    def elbow(self) -> tuple[str, ...]:
        """ "up" where the elbow lies above the line from shoulder to wrist, else "down" (base z is up)."""
        pairs = zip(self.lanes, self.flags & ELBOW_UP, strict=True)
        return tuple("" if lane == NO_BRANCH else "up" if up else "down" for lane, up in pairs)

    @property
    def singular_shoulder(self) -> NDArray[np.bool_]:
        """(k,) the wrist lies above the shoulder: q1 is a double root."""
        return (self.flags & SHOULDER) > 0

    @property
    def singular_elbow(self) -> NDArray[np.bool_]:
        """(k,) the arm is stretched or folded: q3 is a double root."""
        return (self.flags & ELBOW) > 0

    @property
    def singular_wrist(self) -> NDArray[np.bool_]:
        """(k,) axes 4 and 6 are parallel: only q4 +- q6 is determined, q6 is the reference's (or 0)."""
        return (self.flags & WRIST) > 0

    @property
    def within_limits(self) -> NDArray[np.bool_]:
        """(k,) some whole turns of the joints bring the solution within the joint limits."""
        r = self.robot
        return turns_to(self.q, np.zeros(r.dof), r.q_min, r.q_max, r.revolute)[1]

    def nearest(self, q_ref: ArrayLike, *, limits: bool = True) -> Array:
        """The solution (n,) nearest to q_ref (Euclidean distance in joint space), whole turns included.

        With limits (default) only what the joint limits allow. Raises NoSolution where there is none.
        """
        r = self.robot
        low, high = (r.q_min, r.q_max) if limits else _endless(r.dof)
        compiled = getattr(r, "_nearest", None)
        if compiled is not None:
            chosen: Array | None = compiled(self.q, q_ref, low, high, r.revolute)
            if chosen is not None:
                return chosen
        ref = checked(q_ref, (r.dof,), "q_ref")
        if ref.ndim != 1:
            raise InvalidValue(f"q_ref: expected shape ({r.dof},), got {ref.shape}")
        if not self:
            raise NoSolution(f"the pose has no solution: it is {self.distance:.6g} m out of reach")
        moved, inside = turns_to(self.q, ref, low, high, r.revolute)
        if not inside.any():
            raise NoSolution(f"all {len(self)} solutions of the pose lie outside the joint limits")
        distance = np.where(inside, np.sum((moved - ref) ** 2, axis=-1), np.inf)
        best: Array = moved[np.argmin(distance)]
        return best

    def turns(self) -> Array:
        """Every solution with every combination of whole turns that the joint limits allow, (m, n).

        A joint without limits contributes its angle in (-pi, pi] only.
        """
        r = self.robot
        rows = []
        for q in self.q:
            choices = []
            for i in range(r.dof):
                endless = not (np.isfinite(r.q_min[i]) and np.isfinite(r.q_max[i]))
                if endless or not r.revolute[i]:
                    k = np.zeros(1)
                else:
                    low = np.ceil((r.q_min[i] - LIMIT_SLACK - q[i]) / TURN)
                    high = np.floor((r.q_max[i] + LIMIT_SLACK - q[i]) / TURN)
                    k = np.arange(low, high + 1.0)
                choices.append(q[i] + TURN * k)
            grid = np.meshgrid(*choices, indexing="ij")
            rows.append(np.stack([g.ravel() for g in grid], axis=-1))
        return np.concatenate(rows) if rows else np.empty((0, r.dof))

    def only(self, keep: ArrayLike) -> IKSolutions:
        """The solutions that a mask (k,) or a list of indices picks."""
        chosen: Any = np.asarray(keep)
        return FoundSolutions(
            self.q[chosen], self.flags[chosen], self.lanes[chosen], self.correction, self.distance, self.robot
        )

    def elbow_up(self) -> IKSolutions:
        """Only the solutions with the elbow up (004's first filter)."""
        return self.only((self.flags & ELBOW_UP) > 0)

    def plot(self) -> Figure:
        """Every solution as a small arm of its own."""
        from tangere.figures.arm import solutions_figure

        return solutions_figure(self)

    def _repr_html_(self) -> str:
        from tangere.figures.arm import solutions_table

        return solutions_table(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (FoundSolutions, (self.q, self.flags, self.lanes, self.correction, self.distance, self.robot))

    def __repr__(self) -> str:
        head = f"IKSolutions: {len(self)} of {self.robot.name}"
        if not self:
            return f"{head}, out of reach by {self.distance:.6g} m"
        rows = [
            ("  " + " ".join(f"{x:9.4f}" for x in q) + f"  {s:5} {e:4} {w}").rstrip()
            for q, s, e, w in zip(self.q, self.shoulder, self.elbow, self.wrist, strict=True)
        ]
        return "\n".join([head + " [rad]", *rows])


class FoundSolutions(IKSolutions):
    """Solutions held in arrays: from the Python form, from numeric search, or picked out of others."""

    __slots__ = ("_values",)

    def __init__(
        self,
        q: Array,
        flags: NDArray[np.uint8],
        lanes: NDArray[np.uint8],
        correction: float,
        distance: float,
        robot: Robot,
    ) -> None:
        self._values = (q, flags, lanes, float(correction), float(distance), robot)

    # copies, as the compiled answer gives: writing to what was handed out changes nothing here
    q = property(lambda self: self._values[0].copy())
    flags = property(lambda self: self._values[1].copy())
    lanes = property(lambda self: self._values[2].copy())
    correction = property(lambda self: self._values[3])
    distance = property(lambda self: self._values[4])
    robot = property(lambda self: self._values[5])

    @property
    def count(self) -> int:
        """Number of solutions."""
        return len(self._values[0])


class Branches(NamedTuple):
    """Solutions of many poses as arrays of any package, in eight branches each: what `valid` masks out is none.

    q (..., 8, 6) [rad], valid (..., 8), flags (..., 8): bits singular shoulder 1, elbow 2, wrist 4, elbow up 8;
    correction (...): largest change made to the given rotation, distance (...): how far [m] a pose is out of reach.
    """

    q: Any
    valid: Any
    flags: Any
    correction: Any
    distance: Any


@dataclass(frozen=True, repr=False)
class IKBatch:
    """Solutions of many poses, in eight branches each: what `valid` masks out is no solution.

    q (..., 8, 6), valid (..., 8), flags (..., 8), correction (...), distance (...) as in IKSolutions. A calibrated arm
    has more than eight solutions next to two singularities at once: where one of the poses has, all have more places.
    """

    q: Array
    valid: NDArray[np.bool_]
    flags: NDArray[np.uint8]
    correction: Array
    distance: Array
    robot: Robot

    @property
    def count(self) -> NDArray[np.intp]:
        """(...) number of solutions of each pose."""
        total: NDArray[np.intp] = np.sum(self.valid, axis=-1)
        return total

    def __repr__(self) -> str:
        poses, reached = self.count.size, int(np.count_nonzero(self.count))
        return f"IKBatch: {poses} poses {self.count.shape} of {self.robot.name}, {reached} of them within reach"

    def _repr_html_(self) -> str:
        from tangere.figures.arm import batch_table

        return batch_table(self)

    def nearest(self, q_ref: ArrayLike, *, limits: bool = True) -> tuple[Array, NDArray[np.bool_]]:
        """For each pose the solution nearest to q_ref (6,) or (..., 6), and whether there is one.

        Rows without a solution repeat q_ref. Distances and limits as in IKSolutions.nearest.
        """
        r = self.robot
        ref = np.broadcast_to(checked(q_ref, (r.dof,), "q_ref"), (*self.q.shape[:-2], r.dof))
        low, high = (r.q_min, r.q_max) if limits else _endless(r.dof)
        moved, inside = turns_to(self.q, ref[..., None, :], low, high, r.revolute)
        usable = inside & self.valid
        distance = np.where(usable, np.sum((moved - ref[..., None, :]) ** 2, axis=-1), np.inf)
        best = np.argmin(distance, axis=-1)[..., None, None]
        found: NDArray[np.bool_] = np.any(usable, axis=-1, keepdims=True)
        chosen = np.take_along_axis(moved, best, axis=-2)[..., 0, :]
        return np.where(found, chosen, ref), found[..., 0]
