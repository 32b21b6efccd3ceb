"""The momentum observer: external torque from applied torque, position and velocity, without accelerations."""

from __future__ import annotations

from math import isfinite, nan
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.observe.inputs import Friction, initial_residual, per_joint
from tangere.robot import Robot
from tangere.types import Array, State

# 1/s: 20 ms time constant. A push is felt to 95 % after 60 ms, while the velocity noise of a UR (some 1e-3 rad/s)
# times M and K stays below about 1 Nm at the shoulder.
GAIN = 50.0


class MomentumObserver:
    """Residual r -> tau_ext with a first-order lag of 1/K (000 eqs 105-108).

        p = M qd,   beta = C^T qd - g - friction(qd),   dp/dt = tau + tau_ext + beta
        r = K [p - p(0) - int (tau + beta + r)]   <=>   dr/dt = K (tau_ext - r)

    000 eq 107 is this without friction. Computed in the form that is exact for a tau_ext constant over a period h and
    stable for every K h > 0 (forward Euler in r is biased, and diverges for K h > 2):

        y_k = (p_k - p_{k-1}) / h - tau_{k-1} - (beta_{k-1} + beta_k) / 2
        r_k = a r_{k-1} + (1 - a) y_k,   a = exp(-K h)

    y_k is the mean external torque since the sample before; a push of s Nm gives r = s (1 - exp(-K t)). tau_{k-1} is
    state.tau. h is state.period: any, and another one each time. The trapezium for beta errs by h^2/12 d2(beta)/dt2,
    3e-5 Nm on a moving UR10e at 1 kHz.

    robot: what the observer believes; with rotor inertia if it was made with it. friction: likewise, None for none.
    gain: K [1/s], one or one per joint. residual: where r starts (n,) [Nm], for a warm start.
    plant="euler": for a simulator that steps M(q_{k-1}) (qd_k - qd_{k-1}) / h + bias_{k-1} + friction(qd_k) =
    tau + tau_ext, as MuJoCo's Euler integrator with implicit damping does; y_k is then exactly that sum minus tau
    (1e-13 Nm instead of some 0.01 Nm). Useless for anything real: it is the acceleration residual, filtered.

    Sample not usable (period <= 0, anything not finite): r is held, and y is taken up again from the next good sample.
    """

    __slots__ = (
        "_anchored", "_beta", "_euler", "_friction", "_gain", "_h", "_p", "_q", "_qd", "_r", "_start", "_time",
        "_weight", "residual", "robot",
    )  # fmt: skip

    residual: Array  # (n,) Nm, the newest estimate; a new array at each sample

    def __init__(
        self,
        robot: Robot,
        gain: ArrayLike = GAIN,
        friction: Friction | None = None,
        *,
        residual: ArrayLike | None = None,
        plant: Literal["continuous", "euler"] = "continuous",
    ) -> None:
        if plant not in ("continuous", "euler"):
            raise InvalidValue(f"plant: must be 'continuous' or 'euler', got {plant!r}")
        self.robot = robot
        self._gain = per_joint(gain, robot.dof, "gain", "1/s")
        self._gain.flags.writeable = False
        self._friction = friction
        self._euler = plant == "euler"
        self._start = initial_residual(residual, robot.dof)
        self._h = -1.0  # the period that _weight belongs to: none yet
        # plain lists: for six joints one comprehension costs half of the ten array operations that it replaces
        self._weight: list[float] = []  # 1 - a
        self._p: list[float] = []
        self._beta: list[float] = []
        self._q = self._qd = self._start
        self._anchored = False
        self._time = nan  # stamp of the newest sample
        self._r: list[float] = self._start.tolist()
        self.residual = self._start

    @property
    def gain(self) -> Array:
        """K (n,) [1/s]."""
        return self._gain

    def reset(self, state: State) -> None:
        """Start again from this sample, with the residual given at construction."""
        self._r = self._start.tolist()
        self.residual = self._start
        self._time = state.time
        self._anchor(state)

    def update(self, state: State) -> Array:
        """The residual (n,) [Nm] after a new sample; not to be written to."""
        h = state.period
        if state.time == self._time:  # a lost sample: the one before was handed out again
            return self.residual
        self._time = state.time
        if not self._anchored or not h > 0.0:
            self._anchor(state)
            return self.residual
        if h != self._h:
            self._h = h
            self._weight = (-np.expm1(-h * self._gain)).tolist()
        try:
            r = self._stepped(state, h)
        except InvalidValue:  # the kernels refuse what is not finite
            r = [nan]
        if not isfinite(sum(r)):
            self._anchored = False
            return self.residual
        self._r = r
        self.residual = np.array(r)
        return self.residual

    def _stepped(self, state: State, h: float) -> list[float]:
        """r_k."""
        tau = state.tau.tolist()
        if self._euler:
            y = self.robot.inverse_dynamics(self._q, self._qd, (state.qd - self._qd) / h)
            if self._friction is not None:
                y += self._friction.torque(state.qd)
            self._q, self._qd = state.q, state.qd
            joints = zip(self._r, self._weight, y.tolist(), tau, strict=True)
            return [r + w * (y - t - r) for r, w, y, t in joints]
        p0, beta0 = self._p, self._beta
        p1, beta1 = self._p, self._beta = self._terms(state)
        terms = zip(self._r, self._weight, p0, p1, beta0, beta1, tau, strict=True)
        return [r + w * ((b - a) / h - t - 0.5 * (c + d) - r) for r, w, a, b, c, d, t in terms]

    def _terms(self, state: State) -> tuple[list[float], list[float]]:
        """p and beta."""
        p, CTqd, g = self.robot.momentum_terms(state.q, state.qd)
        CTqd -= g
        if self._friction is not None:
            CTqd -= self._friction.torque(state.qd)
        return p.tolist(), CTqd.tolist()

    def _anchor(self, state: State) -> None:
        """Take this sample as the one before the next, if it is finite."""
        try:
            self._p, self._beta = self._terms(state)
        except InvalidValue:
            self._anchored = False
            return
        self._q, self._qd = state.q, state.qd
        self._anchored = True
