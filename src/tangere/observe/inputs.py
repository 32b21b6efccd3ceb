"""What observers take in: which samples may be compared, gains per joint, and the friction they believe in."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, nan

import numpy as np
from numpy.typing import ArrayLike

from tangere.codegen.functions import ANGLE_MAX
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.observe.drive_model import DriveModel
from tangere.types import Array, Friction, State

Motion = tuple[Array, Array]  # q, qd (n,)


class Neighbours:
    """Takes samples one by one and hands out the motions of the last two, where they can be compared.

    A stamp that repeats is a lost sample (the one before handed out again): ignored. A period that is not positive,
    not a number or longer than `gap` breaks the row, and so does a motion that is not finite: the next good sample is
    a new beginning.
    With a delay > 0 the motions are those at t - delay, on a line between the samples around it, since the torque
    reported at t belongs to them; until the samples since the last break reach back that far there is none. A line
    misses q by h^2/8 qdd: 2e-6 rad at 500 Hz and 4 rad/s2.
    """

    __slots__ = ("_before", "_broken", "_delay", "_gap", "_history", "_time", "fresh")

    fresh: bool  # whether the newest pair is the first after a beginning

    def __init__(self, delay: float = 0.0, gap: float = inf) -> None:
        self._delay = delay
        self._gap = gap
        self._begin()

    def _begin(self) -> None:
        self._before: Motion | None = None
        self._broken = self.fresh = True
        self._history: list[tuple[float, Motion]] = []
        self._time = nan  # stamp of the newest sample

    def reset(self, state: State) -> None:
        """Forget everything and begin with this sample, whatever its period."""
        self._begin()
        self._time = state.time
        self._before = self._motion(state, nan)

    def update(self, state: State) -> tuple[Motion, Motion] | None:
        """The motion before and the motion now, state.period apart; None where this sample cannot be compared."""
        if state.time == self._time:
            return None
        self._time = state.time
        h = state.period
        before = self._before
        now = self._before = self._motion(state, h)
        if before is None or not 0.0 < h <= self._gap:
            self._broken = True
            return None
        if now is None:
            return None
        self.fresh, self._broken = self._broken, False
        return before, now

    def drop(self) -> None:
        """What came of the newest pair was not finite: begin anew with the next sample."""
        self._before = None

    def _motion(self, state: State, h: float) -> Motion | None:
        q, qd = state.q, state.qd
        # joint angles are exact up to ANGLE_MAX only; comparing squares refuses what is not a number as well
        good = bool(q.dot(q) <= ANGLE_MAX**2) and isfinite(qd.dot(qd))
        if self._delay == 0.0:
            return (q, qd) if good else None
        history, t = self._history, float(state.time)
        if not good or not 0.0 < h <= self._gap or not (not history or t > history[-1][0]):
            history.clear()
        if not good or not isfinite(t):
            return None
        history.append((t, (q, qd)))
        then = t - self._delay
        if then < history[0][0] or len(history) < 2:
            return None
        while len(history) > 2 and history[1][0] <= then:
            del history[0]
        (t0, (q0, qd0)), (t1, (q1, qd1)) = history[:2]
        share = (then - t0) / (t1 - t0)
        return q0 + share * (q1 - q0), qd0 + share * (qd1 - qd0)


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
    ripple: Array  # (n, 6 len(orders)): of each order sine and cosine, then those of the load and of the direction


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
        return Law(terms, tuple(float(k) for k in d.orders), np.hstack((d.ripple, d.ripple_load, d.ripple_drag)))
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
