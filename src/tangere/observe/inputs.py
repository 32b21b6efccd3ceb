"""What observers share: gains per joint, and the friction they believe in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.observe.drive_model import DriveModel
from tangere.types import Array


class Friction(Protocol):
    """Anything with a friction torque, such as dynamics.friction.JointFriction.

    Where it also has `friction(q, qd, gravity_torque)`, as a DriveModel has, that whole law is used, and its `delay`.
    """

    def torque(self, qd: Array) -> Array:
        """Torque (n,) that opposes the motion qd (n,): M qdd + C qd + g + friction = tau + tau_ext."""


def friction_torque(friction: Friction, q: Array, qd: Array, gravity_torque: Array) -> Array:
    """The friction (..., n) [Nm] at a state: the whole law where there is one, else that of the velocity alone."""
    whole = getattr(friction, "friction", None)
    out: Array = friction.torque(qd) if whole is None else whole(q, qd, gravity_torque)
    return out


def fitting(friction: Friction | None, n: int) -> None:
    """Refuse a friction law of another number of joints, where it says how many it has."""
    joints = np.shape(getattr(friction, "coulomb", np.zeros(n)))
    if joints != (n,):
        raise InvalidValue(f"friction: of {n} joints, as the robot, got one of shape {joints}")


def torque_delay(friction: Friction | None, delay: float | None) -> float:
    """Seconds by which reported torque lags reported motion: as told, else what the drive model says, else none."""
    value = float(getattr(friction, "delay", 0.0) if delay is None else delay)
    if not 0.0 <= value < 1.0:
        raise InvalidValue(f"delay: 0 to 1 s, got {delay!r}")
    return value


def longest_period(gap: float | None) -> float:
    """The period [s] beyond which two samples are no neighbours; infinite for None."""
    value = np.inf if gap is None else float(gap)
    if not value > 0.0:
        raise InvalidValue(f"gap: > 0 [s] or None, got {gap!r}")
    return value


@dataclass(frozen=True, slots=True)
class Law:
    """A friction law in numbers, as the compiled observer takes it."""

    terms: Array | None  # (6, n): coulomb, 1 / width, viscous, quadratic, load, offset; None: no friction
    orders: tuple[float, ...]
    ripple: Array  # (n, 2 len(orders))


def law_of(friction: Friction | None, n: int) -> Law | None:
    """The law of a friction whose equation is known for n joints, None for one that must be asked each time."""
    zero = np.zeros(n)
    if friction is None:
        return Law(None, (), np.zeros((n, 0)))
    if type(friction) is JointFriction and len(friction.coulomb) == n:
        scale = np.full(n, 1.0 / friction.width)
        return Law(np.array([friction.coulomb, scale, friction.viscous, zero, zero, zero]), (), np.zeros((n, 0)))
    if type(friction) is DriveModel and friction.dof == n:
        d = friction
        terms = np.array([d.coulomb, 1.0 / d.width, d.viscous, d.quadratic, d.load, d.offset])
        return Law(terms, tuple(float(k) for k in d.orders), d.ripple)
    return None


def per_joint(value: ArrayLike, n: int, name: str, unit: str) -> Array:
    """One number for all joints or one for each, all positive -> (n,) of its own."""
    array = np.array(value, dtype=np.float64)
    if array.shape not in ((), (n,)) or not np.all(np.isfinite(array) & (array > 0.0)):
        raise InvalidValue(f"{name}: one number > 0 or {n} of them [{unit}], got {value!r}")
    return np.ascontiguousarray(np.broadcast_to(array, (n,))).copy()


def initial_residual(residual: ArrayLike | None, n: int) -> Array:
    """Zeros, or the residual that an observer shall start from (n,) [Nm]."""
    if residual is None:
        return np.zeros(n)
    array = np.array(residual, dtype=np.float64)
    if array.shape != (n,) or not np.all(np.isfinite(array)):
        raise InvalidValue(f"residual: {n} finite numbers [Nm], got {residual!r}")
    return array
