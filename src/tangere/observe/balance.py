"""The balance of momentum over one period: the raw external torque that several observers filter in their own ways."""

from __future__ import annotations

from math import isfinite, nan

from tangere.errors import InvalidValue
from tangere.observe.inputs import Friction
from tangere.robot import Robot
from tangere.types import State


class MomentumBalance:
    """Mean external torque since the sample before, from torque, position and velocity, without accelerations.

        y_k = (p_k - p_{k-1}) / h - tau_{k-1} - (beta_{k-1} + beta_k) / 2
        p = M qd,   beta = C^T qd - g - friction(qd)                                    (000 eqs 105-107, plus friction)

    tau_{k-1} is state.tau, h is state.period. Exact up to the trapezium in beta, which errs by h^2/12 d2(beta)/dt2.
    What MomentumObserver puts through a first-order lag; DisturbanceObserver alone has a balance of its own.
    """

    __slots__ = ("_anchored", "_beta", "_friction", "_p", "_robot", "_time")

    def __init__(self, robot: Robot, friction: Friction | None) -> None:
        self._robot = robot
        self._friction = friction
        self._p: list[float] = []  # plain lists: for six joints cheaper than arrays
        self._beta: list[float] = []
        self._anchored = False
        self._time = nan  # stamp of the newest sample

    def reset(self, state: State) -> None:
        """Take this sample as the one before the next, if it is finite."""
        self._time = state.time
        self._anchor(state)

    def update(self, state: State) -> list[float] | None:
        """y_k [Nm], one per joint, or None where this sample gives none.

        None for a repeated stamp (a lost sample), a period <= 0, anything not finite, and for the first good sample
        after those.
        """
        if state.time == self._time:
            return None
        self._time = state.time
        h = state.period
        if not self._anchored or not h > 0.0:
            self._anchor(state)
            return None
        p0, beta0 = self._p, self._beta
        if not self._anchor(state):
            return None
        terms = zip(p0, self._p, beta0, self._beta, state.tau.tolist(), strict=True)
        y = [(b - a) / h - t - 0.5 * (c + d) for a, b, c, d, t in terms]
        if not isfinite(sum(y)):
            self._anchored = False
            return None
        return y

    def _anchor(self, state: State) -> bool:
        """Take this sample as the one before the next; whether it is finite."""
        try:
            p, beta, g = self._robot.momentum_terms(state.q, state.qd)
        except InvalidValue:  # the kernels refuse what is not finite
            self._anchored = False
            return False
        beta -= g
        if self._friction is not None:
            beta -= self._friction.torque(state.qd)
        self._p, self._beta, self._anchored = p.tolist(), beta.tolist(), True
        return True
