"""The raw external torque over one period, as a balance of momentum or of torques, and filters of it for observers.

All forms share one set of rules about which samples can be compared (Neighbours), and answer None where they cannot.
"""

from __future__ import annotations

from math import inf, isfinite, nan
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.dynamics.laws import lag, lag_weight, momentum_balance
from tangere.errors import InvalidValue
from tangere.kernels.backend import Momentum
from tangere.observe.inputs import (
    Motion,
    Neighbours,
    fitting,
    friction_torque,
    initial_residual,
    law_of,
    longest_period,
    per_joint,
    torque_delay,
)
from tangere.robots import Robot
from tangere.types import Array, Friction, State


def compiled_momentum(
    robot: Robot,
    friction: Friction | None,
    gain: Array,
    start: Array,
    *,
    delay: float = 0.0,
    gap: float = inf,
    first: bool = False,
) -> Any:
    """The compiled observer (_kernels.Momentum), or None for robots and friction laws that only Python computes."""
    fitting(friction, robot.dof)
    law = law_of(friction, robot.dof) if Momentum is not None and type(robot) is Robot and robot.ur_kernels else None
    if law is None or len(law.orders) > _ORDERS:
        return None
    return Momentum(robot, gain, start, law.terms, law.orders, law.ripple, delay, gap, first)


_ORDERS = 16  # of the ripple that the compiled law has room for (TG_ORDERS in kernels/c/momentum.h)


class Balance:
    """Mean external torque since the sample before; what the forms below have in common."""

    __slots__ = ("_friction", "_neighbours", "_robot")

    def __init__(self, robot: Robot, friction: Friction | None, delay: float | None, gap: float | None) -> None:
        fitting(friction, robot.dof)
        self._robot = robot
        self._friction = friction
        self._neighbours = Neighbours(torque_delay(friction, delay), longest_period(gap))

    @property
    def fresh(self) -> bool:
        """Whether the newest answer is the first after a start or a break."""
        return self._neighbours.fresh

    def reset(self, state: State) -> None:
        """Take this sample as the one before the next, if it is finite."""
        self._neighbours.reset(state)

    def update(self, state: State) -> list[float] | None:
        """y_k [Nm], one per joint, or None where this sample gives none (see Neighbours)."""
        pair = self._neighbours.update(state)
        if pair is None:
            return None
        try:
            y = self._external(*pair, float(state.period), state.tau)
        except InvalidValue:  # the kernels refuse what is not finite
            if not state.q.shape == state.qd.shape == (self._robot.dof,):  # no state of this robot: that is misuse
                raise
            y = [nan]
        if y is None or isfinite(sum(y)):
            return y
        self._neighbours.drop()
        return None

    def _external(self, before: Motion, now: Motion, h: float, tau: Array) -> list[float] | None:
        raise NotImplementedError

    def _rubbing(self, q: Array, qd: Array) -> Array | float:
        """Friction at that state (n,) [Nm]."""
        if self._friction is None:
            return 0.0
        return friction_torque(self._friction, q, qd, self._robot.gravity_torque(q))


class MomentumBalance(Balance):
    """External torque from torque, position and velocity, without accelerations.

        y_k = (p_k - p_{k-1}) / h - tau_{k-1} - (beta_{k-1} + beta_k) / 2
        p = M qd,   beta = C^T qd - g - friction                                       (000 eqs 105-107, plus friction)

    tau_{k-1} is state.tau, h is state.period. Exact up to the trapezium in beta, which errs by h^2/12 d2(beta)/dt2.
    friction, delay, gap: as MomentumObserver, which puts this through a first-order lag. Compiled for a UR with a
    friction law that is known as an equation.
    """

    __slots__ = ("_compiled", "_last")

    def __init__(
        self, robot: Robot, friction: Friction | None, *, delay: float | None = None, gap: float | None = None
    ) -> None:
        super().__init__(robot, friction, delay, gap)
        lag, longest = torque_delay(friction, delay), longest_period(gap)
        unused = np.zeros(robot.dof)  # the filter of the compiled observer is not asked
        self._compiled = compiled_momentum(robot, friction, unused, unused, delay=lag, gap=longest)
        self._last: tuple[Motion | None, list[float], list[float]] = (None, [], [])  # motion, p, beta

    @property
    def fresh(self) -> bool:
        """Whether the newest answer is the first after a start or a break."""
        return bool(self._neighbours.fresh if self._compiled is None else self._compiled.fresh)

    def reset(self, state: State) -> None:
        """Take this sample as the one before the next, if it is finite."""
        if self._compiled is not None:
            self._compiled.reset(state)
        else:
            self._neighbours.reset(state)

    def update(self, state: State) -> list[float] | None:
        """y_k [Nm], one per joint, or None where this sample gives none (see Neighbours)."""
        if self._compiled is not None:
            y: list[float] | None = self._compiled.balance(state)
            return y
        return super().update(state)

    def _external(self, before: Motion, now: Motion, h: float, tau: Array) -> list[float]:
        _, p0, beta0 = self._last if self._last[0] is before else self._terms(before)
        _, p1, beta1 = self._last = self._terms(now)
        # plain lists: for six joints one comprehension costs half of the ten array operations that it replaces
        terms = zip(p0, p1, beta0, beta1, tau.tolist(), strict=True)
        return [momentum_balance(a, b, c, d, t, h) for a, b, c, d, t in terms]

    def _terms(self, motion: Motion) -> tuple[Motion, list[float], list[float]]:
        p, beta, g = self._robot.momentum_terms(*motion)
        beta -= g
        if self._friction is not None:
            beta -= friction_torque(self._friction, *motion, g)
        return motion, p.tolist(), beta.tolist()


class TorqueBalance(Balance):
    """External torque by inverse dynamics of the difference quotient of two velocities.

        y_k = M (qd_k - qd_{k-1}) / h + C qd + g + friction - tau_{k-1}

    at="middle": everything in the middle of the period, which agrees with the momentum balance to O(h^2).
    at="euler": M, C, g at the sample before and friction at the new one, as an Euler integrator with implicit damping
    steps: exact for such a plant.
    """

    __slots__ = ("_euler", "q")

    q: Array  # (n,) where the newest answer was evaluated

    def __init__(
        self, robot: Robot, friction: Friction | None, *, at: Literal["middle", "euler"] = "middle",
        delay: float | None = None, gap: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(robot, friction, delay, gap)
        self._euler = at == "euler"

    def _external(self, before: Motion, now: Motion, h: float, tau: Array) -> list[float]:
        (q0, qd0), (q1, qd1) = before, now
        qdd = (qd1 - qd0) / h
        if self._euler:
            self.q = q0
            y = self._robot.inverse_dynamics(q0, qd0, qdd) + self._rubbing(q1, qd1) - tau
        else:
            self.q, qd = 0.5 * (q0 + q1), 0.5 * (qd0 + qd1)
            y = self._robot.inverse_dynamics(self.q, qd, qdd) + self._rubbing(self.q, qd) - tau
        out: list[float] = y.tolist()
        return out


class PositionBalance(Balance):
    """The torque balance from positions alone, at the middle one of three samples.

        v_k = (q_k - q_{k-1}) / h_k,   qdd_hat = 2 (v_k - v_{k-1}) / (h_k + h_{k-1})

    The first period after a break gives v only: None, as where samples cannot be compared.
    """

    __slots__ = ("_last",)

    def __init__(
        self, robot: Robot, friction: Friction | None, *, delay: float | None = None, gap: float | None = None
    ) -> None:
        super().__init__(robot, friction, delay, gap)
        self._last: tuple[Array, float, Array] = (np.zeros(0), 0.0, np.zeros(0))  # v, h, tau of the period before

    def _external(self, before: Motion, now: Motion, h: float, tau: Array) -> list[float] | None:
        (v0, h0, tau0), q = self._last, before[0]
        v = (now[0] - q) / h
        self._last = v, h, tau
        if self._neighbours.fresh:
            return None
        whole = h + h0
        qd = (v * h0 + v0 * h) / whole
        y = self._robot.inverse_dynamics(q, qd, (v - v0) * (2.0 / whole)) + self._rubbing(q, qd)
        out: list[float] = (y - (tau0 * h0 + tau * h) / whole).tolist()
        return out


class BalanceFilter:
    """reset, update and residual of an observer that filters a balance; how is said by `_begun` and `_filtered`."""

    __slots__ = ("_balance", "_gain", "_start", "residual", "robot")

    residual: Array  # (n,) [Nm], the newest estimate; a new array at each sample

    def __init__(self, robot: Robot, balance: Balance, gain: ArrayLike | None, residual: ArrayLike | None) -> None:
        self.robot = robot
        self._balance = balance
        self._gain = np.full(robot.dof, np.inf) if gain is None else per_joint(gain, robot.dof, "gain", "1/s")
        self._start = initial_residual(residual, robot.dof)
        for array in (self._gain, self._start):
            array.flags.writeable = False
        self.residual = self._start

    @property
    def gain(self) -> Array:
        """K (n,) [1/s]: lag 1/K, or the bandwidth; infinite for a residual that is not filtered."""
        return self._gain

    def reset(self, state: State) -> None:
        """Start again from this sample, with the residual given at construction."""
        self.residual = self._start
        self._balance.reset(state)
        self._begun(state)

    def update(self, state: State) -> Array:
        """The residual (n,) [Nm] after a new sample; not to be written to. Held where the sample is not usable."""
        y = self._balance.update(state)
        if y is not None:
            self.residual = self._filtered(y, float(state.period), state)
        return self.residual

    def _begun(self, state: State) -> None:
        """Put the filter back to its beginning."""

    def _filtered(self, y: list[float], h: float, state: State) -> Array:
        """The residual after y [Nm], the mean external torque of a period of h [s]."""
        raise NotImplementedError


class LagFilter(BalanceFilter):
    """First-order lag of 1/K, exact for an input constant over the period h, any h: r += (1 - exp(-K h)) (y - r).

    first: whether the first y after a start or a break is taken as it is.
    """

    __slots__ = ("_first", "_h", "_r", "_weight")

    def __init__(
        self, robot: Robot, balance: Balance, gain: ArrayLike, residual: ArrayLike | None = None, first: bool = False
    ) -> None:
        super().__init__(robot, balance, gain, residual)
        self._first = first
        self._h = -1.0  # the period that _weight belongs to: none yet
        self._weight: list[float] = []
        self._r: list[float] = self._start.tolist()

    def _begun(self, state: State) -> None:
        self._r = self._start.tolist()

    def _filtered(self, y: list[float], h: float, state: State) -> Array:
        if h != self._h:
            self._h = h
            self._weight = lag_weight(self._gain, h).tolist()
        if self._first and self._balance.fresh:
            self._r = y
        else:
            self._r = [lag(r, y, w) for r, w, y in zip(self._r, self._weight, y, strict=True)]
        return np.array(self._r)
