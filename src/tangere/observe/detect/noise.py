"""Thresholds from what is declared: noise of the sensors, and how well mass and friction of the model are believed."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kernels.laws.detection import BASELINE, CHANNELS
from tangere.observe.detect.signals import GAIN, Signals
from tangere.observe.detect.thresholds import STICTION_MARGIN, Thresholds
from tangere.observe.drive_model import STANDSTILL
from tangere.robots import Robot
from tangere.types import Array

MASS_ERROR = 0.05  # of every mass and inertia: what a data sheet with its cables and screws is worth
FRICTION_ERROR = 0.2  # of the friction: what it changes with temperature within a day on a UR
# Standard deviations of noise at which thresholds lie: normal noise that is new every 10 ms, on 6 joints and in 4
# channels, goes beyond 6 of them once in 60 h
SIGMAS = 6.0
# [rad/s] and [rad/s2] of each joint that the model's error is thought of with: a UR's own defaults for a joint move.
# Beyond this speed thresholds grow (Thresholds.speed)
SPEED, ACCELERATION = 1.05, 1.4
POSTURES = 400  # drawn at random: largest gravity torque, its slope and inertia are known to some per cent by then
LEAST = 0.1  # [Nm] keeps a perfect model of perfect sensors from thresholds that rounding crosses
BEFOREHAND = 0.5  # [s] of nothing before it: until 0.36 s after a start the mean before is a plain one
MEMORY = 2.0  # [s] of a signal's answer to one sample that are summed up: eight time constants of the mean before


class Noise(Protocol):
    """What sensors declare of themselves, such as plants.sensors.SensorModel: one number or one per joint."""

    @property
    def noise_qd(self) -> ArrayLike:
        """[rad/s] standard deviation of white noise."""

    @property
    def noise_tau(self) -> ArrayLike:
        """[Nm]."""

    @property
    def step_qd(self) -> ArrayLike:
        """[rad/s] resolution."""

    @property
    def step_tau(self) -> ArrayLike:
        """[Nm]."""


class DryFriction(Protocol):
    """A friction law in its numbers, such as dynamics.friction.JointFriction or a DriveModel."""

    @property
    def coulomb(self) -> Array:
        """(n,) [Nm]."""

    @property
    def viscous(self) -> Array:
        """(n,) [Nm s/rad]."""

    @property
    def width(self) -> Array | float:
        """[rad/s] over which Coulomb friction turns round."""


@dataclass(frozen=True)
class Size:
    """The largest that a model can ask of each joint (n,), over postures: gravity, its slope, and the mass matrix."""

    gravity: Array  # [Nm]
    slope: Array  # [Nm/rad] with all joints turning together
    inertia: Array  # [kg m2] length of the row of M


def size_of(robot: Robot) -> Size:
    """From POSTURES postures drawn with a fixed seed: the same arm has the same thresholds."""
    rng = np.random.default_rng(1)
    q = rng.uniform(-np.pi, np.pi, (POSTURES, robot.dof))
    way = rng.choice((-1.0, 1.0), q.shape)
    step = 1e-4
    slope = (robot.gravity_torque(q + step * way) - robot.gravity_torque(q)) / step
    return Size(
        np.abs(robot.gravity_torque(q)).max(axis=0), np.sqrt(np.mean(slope**2, axis=0)),
        np.linalg.norm(robot.mass_matrix(q), axis=2).max(axis=0),
    )  # fmt: skip


def answers(gain: float, period: float) -> Array:
    """Level, change, impact and shock after one sample of y = 1 Nm among zeros (N, 4) [Nm]: their impulse response.

        r_k = a r_{k-1} + (1 - a) y_k,   a = exp(-gain period)

    then Signals' own arithmetic, once the mean before has its own lag. `two` is left out: it only makes signals
    smaller.
    """
    signals, moving = Signals(1, gain), np.ones(1)
    r, lag, first = -expm1(-gain * period), exp(-gain * period), round(BEFOREHAND / period)
    out = []
    for k in range(first + round(MEMORY / period)):
        signals.update(k * period, np.array([r * lag ** (k - first) if k >= first else 0.0]), moving)
        out.append(signals.linear[:, 0])
    return np.array(out[first:])


def of_noise(
    robot: Robot,
    period: float,
    sensors: Noise | None = None,
    friction: DryFriction | None = None,
    *,
    gain: float = GAIN,
    mass_error: float = MASS_ERROR,
    friction_error: float = FRICTION_ERROR,
    sticks: bool = False,
) -> Thresholds:
    """Thresholds without any free motion, from what is declared; nothing is promised. See Thresholds.of_noise."""
    for name, share in (("mass_error", mass_error), ("friction_error", friction_error)):
        if not 0.0 <= share < 1.0:
            raise InvalidValue(f"{name}: a share from 0 to below 1, got {share!r}")
    n = robot.dof
    size = size_of(robot)
    dry, viscous, width = (np.zeros(n), np.zeros(n), np.ones(n)) if friction is None else (
        np.broadcast_to(np.asarray(value, dtype=np.float64), (n,))
        for value in (friction.coulomb, friction.viscous, friction.width)
    )  # fmt: skip
    qd, tau = (_declared(sensors, name, n) for name in ("qd", "tau"))
    # of y, sample by sample: torque, and the velocity in p = M qd and, where a joint stands, in the friction law
    shaken = size.inertia * np.sqrt(np.mean(qd**2)) / period
    standing = np.hypot(tau, dry / width * qd)
    w = answers(gain, period)
    per_tau, per_qd = (np.sqrt(np.sum(x * x, axis=0)) for x in (w, np.diff(w, axis=0, prepend=0.0)))
    noise = np.hypot(
        np.array([np.outer(per_tau, each) for each in (tau, standing, standing)]), np.outer(per_qd, shaken)
    )
    # of the model's mass: what is wrong all along, and what of it changes faster than the mean before follows
    heavy, stirred = size.gravity + size.inertia * (ACCELERATION + SPEED**2), size.slope * SPEED * BASELINE
    mass = mass_error * np.array([heavy, *[stirred + size.inertia * ACCELERATION] * 3])
    # of its friction, by regime: where a joint turns round, so does the error of what it has at any speed
    law, grown = dry + viscous * SPEED, viscous * ACCELERATION * BASELINE
    rubs = friction_error * np.array([[law, *[grown + share * dry] * 3] for share in (1.0, 2.0, 1.0)])
    if sticks:  # a joint that stands holds any torque up to this, and lets go of it all at once
        rubs[1:] = np.maximum(rubs[1:], STICTION_MARGIN * dry)
        rubs[1, 1:] = np.maximum(rubs[1, 1:], 2.0 * STICTION_MARGIN * dry)
    # the level stays wrong by the sum; changes of mass, friction and noise do not come at the same moment
    model = np.hypot(mass, rubs)
    model[:, 0] = mass[0] + rubs[:, 0]
    rows = np.swapaxes(np.maximum(np.hypot(model, SIGMAS * noise), LEAST), 0, 1)
    spread = np.maximum(np.hypot(noise[:, 1], model[:, 1] / 2.0), LEAST / 2.0)
    note = (
        f"from the declared sensors and a model believed to {100.0 * mass_error:g} % of its masses and "
        f"{100.0 * friction_error:g} % of its friction: no rate of false alarms is promised"
    )
    level, change, impact, shock = rows
    return Thresholds(
        level, change, impact, shock, spread, np.eye(n), np.zeros((len(CHANNELS) - 1, n, n)), gain, STANDSTILL,
        notes=(note,), speed=np.full(n, SPEED), sticks=sticks,
    )  # fmt: skip


def _declared(sensors: Noise | None, what: str, n: int) -> Array:
    """Standard deviation (n,) of a reading: white noise, and a resolution as noise of step / sqrt 12."""
    if sensors is None:
        return np.zeros(n)
    noise, step = (np.asarray(getattr(sensors, f"{part}_{what}"), dtype=np.float64) for part in ("noise", "step"))
    return np.broadcast_to(np.hypot(noise, step / np.sqrt(12.0)), (n,)).copy()
