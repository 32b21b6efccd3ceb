"""Isolation: which link was touched, where on it and with which force, with a probability; or why it cannot be told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.model.link_shapes import link_surfaces
from tangere.observe.isolation_evidence import Hypotheses, Patches, Prior, explain, placed, two_pushes
from tangere.robots import Robot
from tangere.types import Array

# N and Nm (standard deviation): a wrench that is not known this well in its worst direction is not given. A touch of
# some tens of N is then known to a third or better; near a singularity the figures grow without bound.
FORCE_SD_MAX = 10.0
MOMENT_SD_MAX = 1.0
ANSWER = 0.84  # probability from which a link is named: in simulation such answers are right in about 97 %
MU = 0.5  # friction of skin, cloth or wood on a painted or rubber-clad link: 0.3 to 0.7
FORCES = (10.0, 300.0)  # N; below nothing is isolated, above it is an accident. Flat in log(force) between
RATIO = 1.5  # of neighbouring sizes of force: with 20 % spread around each the row is flat to a few per cent
SPACING = 0.02  # [m] between patches: half the radius of a wrist, over which the surface is still nearly a parabola
TWO = 0.02  # prior probability of more than one push at a time: rare, and no more than a guess
SHOWN = 0.01  # alternatives less likely than this are not worth a line
WEAK = 7.0  # standard deviations of chi2 above its mean: below, the residual itself is hardly more than noise
COUNTED = 400  # hypotheses of a link that place its point: they hold nearly all of its weight, pairs of them are formed
FIFTHS = (-1.28, -0.52, 0.0, 0.52, 1.28)  # middles of the five equal parts of a normal distribution
Reason = Literal["", "too weak", "ambiguous", "not one push"]


@dataclass(frozen=True, slots=True)
class ToolWrench:
    """Force and moment of the environment on the robot at the tcp, base axes."""

    wrench: Array  # (6,) [N] and [Nm]
    covariance: Array  # (6, 6)


def tool_wrench(robot: Robot, q: Array, residual: Array, covariance: Array) -> ToolWrench | None:
    """The wrench w with J^T w = residual, by weighted least squares at the tcp; None where the posture does not allow.

        w = (J S^-1 J^T)^-1 J S^-1 r,   covariance (J S^-1 J^T)^-1

    q (n,), residual (n,) [Nm], covariance S (n, n) [Nm2]. Right only if nothing else is touched. None with fewer than
    six joints, near a singularity, and wherever the noise leaves more than FORCE_SD_MAX or MOMENT_SD_MAX in the worst
    direction.
    """
    if robot.dof < 6:
        return None
    J = robot.jacobian(q)
    weighted = np.linalg.solve(covariance, J.T)  # (n, 6) S^-1 J^T
    information = J @ weighted
    scale = np.repeat((1.0 / FORCE_SD_MAX, 1.0 / MOMENT_SD_MAX), 3)  # so that both limits read: eigenvalues >= 1
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    if values[0] < 1.0:
        return None
    spread = (vectors / values) @ vectors.T / np.outer(scale, scale)
    return ToolWrench(spread @ (weighted.T @ residual), spread)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One explanation. link None stands for all that is not one push: two at once, a moment, a wrong model."""

    link: int | None  # counted from 1
    probability: float
    point: Array | None = None  # (3,) m in the link's own frame (DH: the distal frame)
    point_in_base: Array | None = None  # (3,) [m]
    force: Array | None = None  # (3,) [N] of the environment on the robot, base axes
    normal: Array | None = None  # (3,) outwards, base axes
    spread: float = math.nan  # [m] expected distance of the true point from this one, if the link is right
    force_range: tuple[float, float] = (math.nan, math.nan)  # [N] central 95 % of its size


@dataclass(frozen=True, slots=True)
class Isolation:
    """The answer. Without one (link None) the reason says why and the alternatives what it may be, likeliest first."""

    link: int | None  # counted from 1; None: cannot be told
    probability: float  # of that link, or of the likeliest alternative
    alternatives: tuple[Candidate, ...]  # what else (all of it, where there is no answer) from SHOWN up
    reason: Reason = ""
    point: Array | None = None  # as in Candidate
    point_in_base: Array | None = None
    force: Array | None = None
    normal: Array | None = None
    spread: float = math.nan
    force_range: tuple[float, float] = (math.nan, math.nan)
    explained: float = 0.0  # share of the residual's squared Mahalanobis length that the best push explains
    wrench: ToolWrench | None = None  # at the tcp, where the last link is the answer and the posture allows


class ContactIsolator:
    """A posterior over link, point of its surface and force of one push that explains a residual:

        residual = J_point(q)^T force + noise,   the force into the surface, within the cone of friction

    Every link is as likely as any other, every m2 of it, every logarithm of the force's size. The evidence of a link
    is the integral over its surface and the forces (isolation_evidence), not the last joint with a residual: a push
    straight through a joint's axis leaves that joint alone, and of a wrist's housing that is the rule.

    A link is named from a probability of `answer`. Two pushes at once have more unknowns than six joints have torques:
    they are told from one push only where no single push explains the residual ("not one push": 22 % of random pairs
    on a UR10e), and never from each other. Where a single push does explain them that one is named, and its
    probability is only as good as the prior of two (0.02).

    Simulated on a UR10e (60 N, random postures, noise of its torques behind a momentum observer of 50/s at 500 Hz, any
    joint six standard deviations off): answered in 67.5 %, then right in 97.3 %, of those 83 % within 5 cm. On a
    moving arm, with what `added` (isolation_added) takes from a residual: 67 % and 98 %, and the same with masses and
    friction 10 % off (68 % and 97 %).
    Links 2 and 3 are told least often: few joints feel them. These pushes are drawn as this class believes they are, on
    the same shapes; a real arm has model error, which belongs into the covariance, and a skin of its own.

    robot: with its tool, if any. mu: coefficient of friction; every direction in its cone is as likely. forces: N,
    range looked for. spacing: m between patches of surface (model.link_shapes).
    """

    def __init__(
        self,
        robot: Robot,
        *,
        answer: float = ANSWER,
        mu: float = MU,
        forces: tuple[float, float] = FORCES,
        spacing: float = SPACING,
    ) -> None:
        if not 0.5 <= answer < 1.0:
            raise InvalidValue(f"answer: a probability from 0.5 to below 1, got {answer!r}")
        if not (math.isfinite(mu) and 0.0 < mu <= 2.0):
            raise InvalidValue(f"mu: above 0 and up to 2, got {mu!r}")
        low, high = forces
        if not (math.isfinite(high) and 0.0 < low < high):
            raise InvalidValue(f"forces: two numbers 0 < low < high [N], got {forces!r}")
        self.robot = robot
        self.answer = float(answer)
        self.surfaces = link_surfaces(robot.model, spacing)
        count = math.ceil(math.log(high / low) / math.log(RATIO)) + 1
        ratio = (high / low) ** (1.0 / (count - 1))
        self.prior = Prior(low * ratio ** np.arange(count), 0.5 * math.log(ratio), 0.5 * mu)

    def isolate(self, q: ArrayLike, residual: ArrayLike, covariance: ArrayLike) -> Isolation:
        """What touched the robot at posture q (n,) to leave this residual (n,) [Nm] with that covariance.

        covariance: (n, n) [Nm2], or (n,) variances; of everything that makes the residual differ from tau_ext: sensor
        noise after the observer's filter, friction that is not modelled, a wrong mass. Some 20 ms: not for the loop.
        """
        q_, r, S = self._checked(q, residual, covariance)
        white = np.linalg.inv(np.linalg.cholesky(S))
        length = float(np.sum((white @ r) ** 2))
        if length < len(r) + WEAK * math.sqrt(2.0 * len(r)):
            return Isolation(None, 0.0, (), "too weak")
        patches = placed(self.robot, q_, self.surfaces)
        found = explain(patches, self.prior, white, r)
        two = two_pushes(patches, self.prior, white, r) + math.log(TWO)
        one = found.log_evidence + math.log1p(-TWO)
        top = max(two, float(one.max()))
        weight = np.exp(one - top)
        rest = math.exp(two - top)
        total = float(weight.sum()) + rest
        weight /= total
        links = patches.link[found.patch]
        candidates = [Candidate(None, rest / total)]
        for link in np.unique(links):
            mine = links == link
            if weight[mine].sum() >= SHOWN:
                candidates.append(self._candidate(int(link), mine, weight, patches, found, q_))
        candidates = [c for c in candidates if c.probability >= SHOWN]
        candidates.sort(key=lambda candidate: -candidate.probability)
        best = candidates[0]
        explained = max(0.0, 1.0 - float(found.misfit[np.argmax(weight)]) / length)
        if best.link is None or best.probability < self.answer:
            reason: Reason = "not one push" if best.link is None else "ambiguous"
            return Isolation(None, best.probability, tuple(candidates), reason, explained=explained)
        at_tool = best.link == self.robot.dof
        return Isolation(
            best.link, best.probability, tuple(candidates[1:]), "", best.point, best.point_in_base, best.force,
            best.normal, best.spread, best.force_range, explained,
            tool_wrench(self.robot, q_, r, S) if at_tool else None,
        )  # fmt: skip

    def _candidate(
        self, link: int, mine: Array, weight: Array, patches: Patches, found: Hypotheses, q: Array
    ) -> Candidate:
        """The explanation by one link: its point is the one from which the others are nearest on average."""
        probability = float(weight[mine].sum())
        rows = np.flatnonzero(mine)
        rows = rows[np.argsort(-weight[rows])[:COUNTED]]
        w = weight[rows] / weight[rows].sum()
        points = found.point[rows]
        square = np.sum((points[:, None] - points) ** 2, axis=2) + found.point_sd[rows] ** 2
        distance = np.sqrt(square) @ w
        nearest = int(np.argmin(distance))
        same = rows[found.patch[rows] == found.patch[rows[nearest]]]
        chosen = same[np.argmax(weight[same])]
        T = self.robot.link_poses(q)[link - 1]
        size = (np.linalg.norm(found.force[rows], axis=1) + np.outer(FIFTHS, found.size_sd[rows])).ravel()
        order = np.argsort(size)
        share = np.tile(w, len(FIFTHS))[order] / len(FIFTHS)
        low, high = np.interp((0.025, 0.975), np.cumsum(share) - 0.5 * share, size[order])
        return Candidate(
            link, probability, (found.point[chosen] - T[:3, 3]) @ T[:3, :3], found.point[chosen], found.force[chosen],
            found.normal[chosen], float(distance[nearest]), (float(low), float(high)),
        )  # fmt: skip

    def _checked(self, q: ArrayLike, residual: ArrayLike, covariance: ArrayLike) -> tuple[Array, Array, Array]:
        n = self.robot.dof
        vectors = []
        for name, value in (("q", q), ("residual", residual)):
            array = np.asarray(value, dtype=np.float64)
            if array.shape != (n,) or not np.all(np.isfinite(array)):
                raise InvalidValue(f"{name}: {n} finite numbers, got {value!r}")
            vectors.append(array)
        S = np.asarray(covariance, dtype=np.float64)
        if S.shape == (n,):
            S = np.diag(S)
        if S.shape != (n, n) or not np.all(np.isfinite(S)):
            raise InvalidValue(f"covariance: finite ({n}, {n}) or ({n},) [Nm2], got shape {S.shape}")
        if not np.allclose(S, S.T) or np.linalg.eigvalsh(S)[0] <= 0.0:
            raise InvalidValue(f"covariance: symmetric with positive eigenvalues, got {S.tolist()}")
        return vectors[0], vectors[1], S
