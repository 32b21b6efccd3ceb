"""The momentum observer over a whole log at once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.codegen.functions import ANGLE_MAX
from tangere.errors import InvalidValue
from tangere.observe.balance import compiled_momentum
from tangere.observe.inputs import friction_torque, initial_residual, longest_period, per_joint, torque_delay
from tangere.observe.momentum import GAIN, MomentumObserver, starts_first
from tangere.robots import Robot
from tangere.types import Array, Friction, State


def replay_momentum(
    robot: Robot,
    time: ArrayLike,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    gain: ArrayLike = GAIN,
    friction: Friction | None = None,
    *,
    period: ArrayLike | None = None,
    residual: ArrayLike | None = None,
    start: Literal["residual", "first"] = "residual",
    gap: float | None = None,
    delay: float | None = None,
) -> Array:
    """Residuals (N, n) [Nm] that MomentumObserver gives sample by sample, its reset at the first, in one go.

        y_k = (p_k - p_{k-1}) / h_k - tau_k - (beta_{k-1} + beta_k) / 2
        r_k = r_{k-1} + (1 - exp(-K h_k)) (y_k - r_{k-1})

    time (N,) [s], q, qd, tau (N, n); tau[k] is the torque held since sample k - 1, as State.tau. period (N,) [s]: what
    State.period would be; None: the differences of time. gain, friction, residual, start, gap, delay: as
    MomentumObserver, and samples are taken as it takes them: a repeated stamp is a lost sample and ignored; where the
    period is not positive or anything is not finite the residual is held.
    Equal to the observer up to rounding (1e-12 Nm). Compiled where the observer is: about 0.06 us per sample, 0.14 with
    a whole DriveModel. Else the observer goes through the log in Python, some 10 us per sample, with the robot's and
    the friction's torques (which then must take (N, n)) computed beforehand.
    """
    n = robot.dof
    stamps = np.ascontiguousarray(time, dtype=np.float64)
    if stamps.ndim != 1 or len(stamps) == 0:
        raise InvalidValue(f"time: one number per sample (N,), N > 0, got shape {stamps.shape}")
    q, qd, tau = (_log(value, (len(stamps), n), name) for value, name in ((q, "q"), (qd, "qd"), (tau, "tau")))
    periods = None if period is None else _log(period, stamps.shape, "period")
    compiled = compiled_momentum(
        robot, friction, per_joint(gain, n, "gain", "1/s"), initial_residual(residual, n),
        delay=torque_delay(friction, delay), gap=longest_period(gap), first=starts_first(start),
    )  # fmt: skip
    if compiled is not None:
        r: Array = compiled.replay(stamps, periods, q, qd, tau)[0]
        return r
    if periods is None:
        periods = np.diff(stamps, prepend=np.nan)
    samples = [State(*values) for values in zip(stamps.tolist(), periods.tolist(), q, qd, tau, strict=True)]
    recorded: Any = _Recorded(robot, samples, friction)
    observer = MomentumObserver(
        recorded, gain, residual=residual, start=start, gap=gap, delay=torque_delay(friction, delay)
    )
    observer.reset(samples[0])
    return np.array([observer.residual, *map(observer.update, samples[1:])])


class _Recorded:
    """The robot and its friction as the observer asks for them along one log, computed for all samples at once.

    Where the observer asks for a motion between samples (a delay) it is computed then.
    """

    def __init__(self, robot: Robot, samples: list[State], friction: Friction | None) -> None:
        self.dof = robot.dof
        self._robot = robot
        self._friction = friction
        self._rows = {id(state.q): k for k, state in enumerate(samples)}
        q, qd = np.array([state.q for state in samples]), np.array([state.qd for state in samples])
        good = (np.abs(q).max(axis=1) <= ANGLE_MAX) & np.isfinite(qd).all(axis=1)  # the others are never asked for
        self._terms = self._computed(np.where(good[:, None], q, 0.0), np.where(good[:, None], qd, 0.0))

    def momentum_terms(self, q: Array, qd: Array) -> tuple[Array, Array, Array]:
        """p, C^T qd - friction and g at a sample of the log, or at any other motion."""
        k = self._rows.get(id(q))
        if k is None:
            return self._computed(q, qd)
        p, beta, g = self._terms
        return p[k], beta[k], g[k]  # asked for once each: the balance may write to it

    def _computed(self, q: Array, qd: Array) -> tuple[Array, Array, Array]:
        p, beta, g = self._robot.momentum_terms(q, qd)
        if self._friction is not None:
            beta -= friction_torque(self._friction, q, qd, g)
        return p, beta, g


def _log(values: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InvalidValue(f"{name}: must have shape {shape} as time has {shape[0]} samples, got {array.shape}")
    return array
