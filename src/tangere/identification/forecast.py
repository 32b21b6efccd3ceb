"""What a motion will identify, before anybody moves an arm: base parameters and friction with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tangere.identification.around_fit import excitation_of
from tangere.identification.model import Excitation
from tangere.identification.prior import LINK_SIGMA, drive_information, link_prior, type_friction
from tangere.identification.samples import TERMS, friction_terms
from tangere.observe.drive_model import STANDSTILL
from tangere.observe.inertial import SIZE
from tangere.robots import Robot
from tangere.types import Array

WINDOW = 0.02  # [s] between the rows that are looked at: identification takes means over as long
# What a model leaves of a window while a joint moves, as a share of its Coulomb friction: 6 to 9 % on a UR3e (40 runs)
LEFT = 0.07
DEPENDENT = 15.0  # windows that are worth one independent one: friction that drifts lasts a second; 5 to 40 on a UR3e
TOLD = 0.5  # of its variance before that must be gone, for a number to be told by the motion (as identify says it)
_NAMES = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
_UNITS = ("kg", "kg m", "kg m", "kg m", *["kg m2"] * 6)
_ORDER = (9, 4, 5, 6, 7, 8, 1, 2, 3, 0)  # in which columns of a link are chosen: the mass last, others can carry it
_STATES = 200  # random ones, for the rank
_NOTHING = 1e-9  # of the largest: a column that the others make is left with rounding, 1e-12


@dataclass(frozen=True)
class BaseParameter:
    """A combination of link parameters that joints can feel, with its standard deviation before and after."""

    name: str  # of its first parameter, such as "link 2 hx"
    combination: str  # the whole of it: link 2 hx + 0.613 link 3 m + ...
    unit: str
    value: float  # by the data sheet
    before: float  # standard deviation by the data sheet
    after: float  # once the motion was recorded

    @property
    def told(self) -> bool:
        """Whether the motion, not the data sheet, will decide it."""
        return self.after**2 < TOLD * self.before**2


@dataclass(frozen=True)
class Forecast:
    """What identification will know of links and drives, if the arm leaves what arms of this kind leave (LEFT)."""

    seconds: float
    base: tuple[BaseParameter, ...]
    friction: dict[str, tuple[Array, Array, Array]]  # term -> expected value, standard deviation before, after (n,)
    excitation: Excitation  # as identify reports it of a log

    @property
    def told(self) -> int:
        """How many base parameters the motion will decide."""
        return sum(parameter.told for parameter in self.base)


class Expectation:
    """The information about links and drives that motions of an arm bring, in units of what is known before.

        theta = theta0 + L z,   z ~ N(0, 1),   information(z) = 1 + sum_j A_j^T A_j / (s_j^2 DEPENDENT)

    A_j: the row of joint j, its regressor and its friction terms times L, where it moves; s_j = LEFT coulomb_j [Nm].
    Whatever the torque will be: rows follow from the motion alone.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        mean, links = link_prior(robot.model, LINK_SIGMA)
        self._mean = mean
        self._links = _root(links)
        self._drive_mean, drives = drive_information(robot.model)
        self._drives = np.stack([_root(own) for own in drives])
        terms, _ = type_friction(robot.model)
        self._spread = LEFT * terms["coulomb"]
        self.size = SIZE * robot.dof + robot.dof * len(TERMS)

    def information(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Of rows (K, n), one every WINDOW [s], about z (size, size); without what was known before."""
        n, terms = self.robot.dof, len(TERMS)
        links = SIZE * n
        Y = self.robot.regressor(q, qd, qdd)
        F = friction_terms(qd, qdd, self.robot.gravity_torque(q))
        out = np.zeros((self.size, self.size))
        for j in range(n):
            moving = np.abs(qd[:, j]) > STANDSTILL
            if not np.any(moving):
                continue
            weight = 1.0 / (self._spread[j] * np.sqrt(DEPENDENT))
            A = weight * np.concatenate([Y[moving, j] @ self._links, F[moving, j] @ self._drives[j]], axis=1)
            H, own = A.T @ A, slice(links + j * terms, links + (j + 1) * terms)
            out[:links, :links] += H[:links, :links]
            out[:links, own] += H[:links, links:]
            out[own, :links] += H[links:, :links]
            out[own, own] += H[links:, links:]
        return out

    def forecast(self, information: Array, seconds: float) -> Forecast:
        """What is known after a motion of that information."""
        n, links = self.robot.dof, SIZE * self.robot.dof
        covariance = np.linalg.inv(np.eye(self.size) + information)
        combine, chosen = self._base
        spread = combine @ self._links
        before = np.sqrt(np.sum(spread**2, axis=1))
        after = np.sqrt(np.einsum("bi,ij,bj->b", spread, covariance[:links, :links], spread))
        value = combine @ self._mean
        base = tuple(
            BaseParameter(
                _name(at), _combination(row), _UNITS[at % SIZE], float(value[k]), float(before[k]), float(after[k])
            )
            for k, (at, row) in enumerate(zip(chosen, combine, strict=True))
        )
        friction = {}
        for name in ("coulomb", "viscous", "rotor_inertia"):
            k = TERMS.index(name)
            first = np.linalg.norm(self._drives[:, k], axis=1)
            then = np.empty(n)
            for j in range(n):
                own = slice(links + j * len(TERMS), links + (j + 1) * len(TERMS))
                then[j] = np.sqrt(self._drives[j, k] @ covariance[own, own] @ self._drives[j, k])
            friction[name] = (self._drive_mean[:, k], first, then)
        inverse = np.linalg.inv(self._links)
        seen = excitation_of(self.robot, inverse.T @ information[:links, :links] @ inverse)
        return Forecast(seconds, base, friction, seen)

    @cached_property
    def _base(self) -> tuple[Array, NDArray[np.int64]]:
        """Base parameters as combinations (r, 10 n) of all, and which parameter leads each (r,).

        Column by column from the base on: what the columns before can make is added to them (Gautier, Khalil).
        """
        n = self.robot.dof
        random = np.random.default_rng(1)
        q, qd, qdd = random.uniform(-np.pi, np.pi, (3, _STATES, n))
        Y = self.robot.regressor(q, qd, qdd).reshape(-1, SIZE * n)
        order = np.array([SIZE * i + k for i in range(n) for k in _ORDER])
        R: Array = np.asarray(np.linalg.qr(Y[:, order], mode="r"))
        chosen: list[int] = []
        others: list[int] = []
        rest = R / np.maximum(np.linalg.norm(R, axis=0), 1e-300)
        basis = np.zeros((len(R), 0))
        for k in range(SIZE * n):
            left = rest[:, k] - basis @ (basis.T @ rest[:, k])
            left -= basis @ (basis.T @ left)
            size = float(np.linalg.norm(left))
            if size > np.sqrt(_NOTHING) and np.linalg.norm(R[:, k]) > _NOTHING * np.abs(R).max():
                chosen.append(k)
                basis = np.column_stack([basis, left / size])
            else:
                others.append(k)
        make = np.linalg.lstsq(R[:, chosen], R[:, others], rcond=None)[0]
        combine = np.zeros((len(chosen), SIZE * n))
        combine[np.arange(len(chosen)), order[chosen]] = 1.0
        combine[:, order[others]] = np.where(np.abs(make) > _NOTHING, make, 0.0)
        return combine, order[chosen]


def _root(information: Array) -> Array:
    """L with L L^T = information^-1."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(information)).T)


def _name(at: int) -> str:
    return f"link {at // SIZE + 1} {_NAMES[at % SIZE]}"


def _combination(row: Array, digits: int = 3) -> str:
    """link 2 hx + 0.613 link 3 m - ..., the leading one first."""
    lead = int(np.flatnonzero(row == 1.0)[0])
    text = _name(lead)
    for k in np.flatnonzero(np.abs(row) > 1e-6).tolist():
        if k == lead:
            continue
        size = abs(float(row[k]))
        factor = "" if abs(size - 1.0) < 1e-6 else f"{size:.{digits}g} "
        text += f" {'+' if row[k] > 0.0 else '-'} {factor}{_name(k)}"
    return text
