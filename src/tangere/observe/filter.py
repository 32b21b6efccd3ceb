"""What observers have in common: a balance, a filter of its own, and a residual that is held where there is no news."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tangere.dynamics.laws import lag, lag_weight
from tangere.observe.balance import Balance
from tangere.observe.inputs import initial_residual, per_joint
from tangere.robots import Robot
from tangere.types import Array, State


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
