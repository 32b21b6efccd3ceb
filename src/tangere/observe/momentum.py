"""The momentum observer: external torque from applied torque, position and velocity, without accelerations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.observe.balance import LagFilter, MomentumBalance, TorqueBalance, compiled_momentum
from tangere.observe.inputs import initial_residual, longest_period, per_joint, torque_delay
from tangere.robots import Robot
from tangere.types import Array, Friction, State

# [1/s] 20 ms time constant. A push is felt to 95 % after 60 ms, while the velocity noise of a UR (some 1e-3 rad/s)
# times M and K stays below about 1 Nm at the shoulder.
GAIN = 50.0


@dataclass(frozen=True, eq=False, slots=True)
class Choices:
    """What a momentum observer was made with, beside its robot and its gain."""

    friction: Friction | None
    residual: Array  # (n,) [Nm] where it starts
    first: bool  # or with the first balance
    delay: float  # [s]
    gap: float  # [s]
    euler: bool


class MomentumObserver:
    """Residual r -> tau_ext with a first-order lag of 1/K (000 eqs 105-108).

        p = M qd,   beta = C^T qd - g - friction,   dp/dt = tau + tau_ext + beta
        r = K [p - p(0) - int (tau + beta + r)]   <=>   dr/dt = K (tau_ext - r)

    000 eq 107 is this without friction. Computed in the form that is exact for a tau_ext constant over a period h and
    stable for every K h > 0 (forward Euler in r is biased, and diverges for K h > 2):

        y_k = (p_k - p_{k-1}) / h - tau_{k-1} - (beta_{k-1} + beta_k) / 2
        r_k = a r_{k-1} + (1 - a) y_k,   a = exp(-K h)

    y_k is the mean external torque since the sample before; a push of s Nm gives r = s (1 - exp(-K t)). tau_{k-1} is
    state.tau. h is state.period: any, and another one each time. The trapezium for beta errs by h^2/12 d2(beta)/dt2,
    3e-5 Nm on a moving UR10e at 1 kHz.

    robot: what the observer believes; with rotor inertia if it was made with it. gain: K [1/s], one or one per joint.
    friction: what it believes of that, None for none; a DriveModel counts whole, with its law of q, qd and g and its
    delay.
    delay: s by which reported torque lags reported motion (None: what friction says, else 0): y_k then compares tau
    with the motion between t_{k-1} - delay and t_k - delay, on lines between the samples, and r refers to t - delay.
    residual: where r starts (n,) [Nm], for a warm start. start="first": r is the first y after a reset or a break
    instead, for a log that begins in motion. gap: s; a longer period is a break, over which nothing is said.
    plant="euler": for a simulator that steps M(q_{k-1}) (qd_k - qd_{k-1}) / h + bias_{k-1} + friction(qd_k) =
    tau + tau_ext, as MuJoCo's Euler integrator with implicit damping does; y_k is then exactly that sum minus tau
    (1e-13 Nm instead of some 0.01 Nm). Useless for anything real: it is the acceleration residual, filtered.

    Sample not usable (period <= 0 or beyond the gap, anything not finite): r is held, and y is taken up again from the
    next good sample. A stamp that repeats is a lost sample, and ignored.
    One compiled call for a UR with no friction (0.2 us), JointFriction (0.3 us) or a DriveModel (0.5 us); else the same
    in Python, some 10 us and more.
    """

    __slots__ = ("_core", "_gain", "choices", "robot")

    def __init__(
        self,
        robot: Robot,
        gain: ArrayLike = GAIN,
        friction: Friction | None = None,
        *,
        residual: ArrayLike | None = None,
        plant: Literal["continuous", "euler"] = "continuous",
        start: Literal["residual", "first"] = "residual",
        gap: float | None = None,
        delay: float | None = None,
    ) -> None:
        if plant not in ("continuous", "euler"):
            raise InvalidValue(f"plant: must be 'continuous' or 'euler', got {plant!r}")
        first = starts_first(start)
        self.robot = robot
        self._gain = per_joint(gain, robot.dof, "gain", "1/s")
        self._gain.flags.writeable = False
        begin = initial_residual(residual, robot.dof)
        lag, longest = torque_delay(friction, delay), longest_period(gap)
        self.choices = Choices(friction, begin, first, lag, longest, plant == "euler")
        self._core: Any = None
        if plant == "euler":
            balance = TorqueBalance(robot, friction, at="euler", delay=delay, gap=gap)
            self._core = LagFilter(robot, balance, gain, residual, first)
        else:
            self._core = compiled_momentum(
                robot, friction, self._gain, begin, delay=lag, gap=longest, first=first
            ) or LagFilter(robot, MomentumBalance(robot, friction, delay=delay, gap=gap), gain, residual, first)

    @property
    def gain(self) -> Array:
        """K (n,) [1/s]."""
        return self._gain

    @property
    def residual(self) -> Array:
        """The newest estimate (n,) [Nm]; a new array at each sample, not to be written to."""
        newest: Array = self._core.residual
        return newest

    def reset(self, state: State) -> None:
        """Start again from this sample, with the residual given at construction."""
        self._core.reset(state)

    def update(self, state: State) -> Array:
        """The residual (n,) [Nm] after a new sample; not to be written to."""
        return self._core.update(state)  # type: ignore[no-any-return]  # not one statement more: it runs each period


def starts_first(start: str) -> bool:
    """Whether r begins with the first y; refuses what is no way to start."""
    if start not in ("residual", "first"):
        raise InvalidValue(f"start: must be 'residual' or 'first', got {start!r}")
    return start == "first"
