"""Many closed loops at once: one fused kernel for all of them, and any one of them again as an ordinary run."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, UnknownName, unknown
from tangere.kernels import rollouts as kernel
from tangere.kernels.device import DEVICES
from tangere.loop.given import refuse_controller, watchers
from tangere.loop.result import RunResult, Setup
from tangere.loop.rollout_plan import Plan, begun, per_robot, refuse_stiff
from tangere.loop.run import run
from tangere.plants.pushes import pushes_of
from tangere.plants.random_pushes import RandomPushes
from tangere.plants.rigid import RigidPlant
from tangere.plants.sensors import SensorModel, sensor_model
from tangere.plants.simulated import refuse_friction
from tangere.robots import Robot, as_robot
from tangere.types import Array, Command, Controller, Detector, Observer, Reference, State, Truth

SLAB = 4096  # robots whose numbers are in memory at once: 6 MB
LATE = 0.1  # [s] after a push has ended in which an alarm still counts as found: what was pushed swings back
LOGGED = ("q_true", "qd_true", "q", "qd", "tau", "residual", "tau_cmd", "tau_ext_true")  # columns of `record`


@dataclass(frozen=True, eq=False)
class Rollouts:
    """What N rollouts leave, one row per robot; arrays are float64 whatever the precision of the simulation.

    q, qd (N, n): true, at the end. residual (N, n) [Nm]: the observer's last; residual_peak: its largest size.
    error_peak (N, n) [rad]: largest distance from the reference. score (N,): largest residual against its threshold.
    events (N,): touches that were felt, early (N,): of them before the first push. alarm_s (N,): the first event,
    delay_s (N,): from the start of the first push to the first alarm after it, at most LATE seconds after its end; nan
    where there is none. pushed_s (N, k, 2): when each push began and ended, in whole periods; force (N, k, 3) [N]: base
    axes. failed (N,): left the finite numbers. log: name -> (N, rows, n), every `record`-th sample, where asked for.
    instruction_set: "python" where the Python loop served; `why` then says why.
    """

    q: Array
    qd: Array
    residual: Array
    residual_peak: Array
    error_peak: Array
    score: Array
    events: NDArray[np.int64]
    early: NDArray[np.int64]
    alarm_s: Array
    delay_s: Array
    pushed_s: Array
    force: Array
    failed: NDArray[np.bool_]
    log: Mapping[str, Array]
    period: float
    seconds: float
    seed: int
    dtype: str
    instruction_set: str
    why: str
    plan: Plan = field(repr=False)

    def __len__(self) -> int:
        return len(self.q)

    def __repr__(self) -> str:
        found = int(np.count_nonzero(np.isfinite(self.delay_s)))
        felt = f", {found} of {len(self)} pushes felt" if self.pushed_s.shape[1] else ""
        return f"Rollouts({len(self)} x {self.seconds:g} s, {self.dtype}, {self.instruction_set}{felt})"

    def replay(self, i: int, *, log: str | os.PathLike[str] | None = None) -> RunResult:
        """Rollout i alone as an ordinary run, with log, events and page: the same numbers, bit by bit.

        log: an .mcap file that is written meanwhile. `replay(i).save(folder)` keeps everything.
        """
        if not (isinstance(i, int | np.integer) and 0 <= i < len(self)):
            raise InvalidValue(f"i: a rollout from 0 to {len(self) - 1}, got {i!r}")
        plan, i = self.plan, int(i)
        if self.why:
            return _ordinary(plan, i, log)[0]
        again = kernel.fused(plan.job(i, 1), first=i, single=self.dtype == "float32", every=1)
        assert again.log is not None
        played = _Played(plan, i, again.log[0])
        observers = [] if plan.observer is None else [played.observer]
        controller, begin, trajectory = plan.motion(i)
        result = run(
            played, played.controller, observers, detector=plan.detector, until=self.seconds, start=begin,
            trajectory=trajectory, log=log,
        )  # fmt: skip
        own = [] if plan.observer is None else [plan.observer]
        whole = Setup.of(plan.plant(i), controller, own, plan.detector, trajectory)
        return replace(result, setup=whole)  # the page names the parts themselves, not who plays them


def rollouts(
    robot: Robot | str | Sequence[Robot],
    *,
    controller: Controller | Sequence[Controller] | None = None,
    observer: Observer | None = None,
    detector: Detector | None = None,
    pushes: Any = (),
    sensors: SensorModel | None = None,
    count: int = 1000,
    seconds: float = 5.0,
    seed: int = 0,
    dtype: Any = "float64",
    period: float = 1e-3,
    friction: JointFriction | None = None,
    payload: ArrayLike | None = None,
    friction_scale: ArrayLike = 1.0,
    method: Literal["rk4", "semi-implicit"] = "rk4",
    start: ArrayLike | Reference | None = None,
    record: int = 0,
    progress: Callable[[int, int], None] | None = None,
    device: str = "cpu",
    exact: bool = True,
) -> Rollouts:
    """`count` closed loops of `seconds` each: simulated arm, controller, observer, thresholds; noise and pushes drawn.

        rolls = tangere.rollouts("ur10e", controller=..., observer=..., pushes=RandomPushes(), count=100_000)
        rolls.delay_s;  rolls.replay(17).save("out/17")

    robot: the true arm, as RigidPlant takes it, or one for each rollout, with the same torque limits for the kernel;
    controller and observer keep their own belief; where RandomPushes touch them is drawn on the first one's shape.
    controller: one for all, or several: rollout i has the i-th of them, over and over; several motions in one call.
    friction: of the true arm; payload [kg]: what hangs at its flange in place of its own; friction_scale: times its
    friction; one number or one for each. pushes: as a plant takes them, the same for all, or RandomPushes. sensors: its
    seed is not used. seed: noise and pushes follow from it and from the number of the rollout alone: rollout 17 of 100
    is rollout 17 of a million. dtype: float64 or float32. start: where the arms start; else where the reference begins.
    record: every n-th sample is kept; 0: none. progress(done, count): now and then. device: "cpu", or "cuda" for a
    thread of a GPU for each robot: the same bits with exact=True, a little faster without.

    UR arms, ComputedTorque or JointImpedance, MomentumObserver, Detector and white noise run in one fused kernel,
    several robots in the lanes of a vector and in tangere.threads(n) threads: the same bits for every processor, number
    of threads and count. Anything else runs in the Python loop, some hundred times slower, and a warning says why.
    Ctrl-C ends it within 0.2 s. Of a Detector the law of detection alone decides there: that the arm stops by itself,
    and the search for the onset of an event, which moves its mean, are left to `replay`.
    """
    if controller is None:
        raise InvalidValue("controller: rollouts need one, or nothing moves the arms; such as ComputedTorque(robot, q)")
    controllers = tuple(controller) if isinstance(controller, list | tuple) else (controller,)
    if not controllers:
        raise InvalidValue("controller: at least one, got none")
    several = isinstance(robot, list | tuple)
    arms: Any = [as_robot(one) for one in robot] if several else as_robot(robot)  # type: ignore[union-attr, arg-type]
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InvalidValue(f"count: a whole number >= 1, got {count!r}")
    if several and len(arms) != count:
        raise InvalidValue(f"robot: one, or one for each of {count} rollouts, got {len(arms)}")
    arm: Robot = arms[0] if several else arms
    if several and (other := next((one for one in arms if one.dof != arm.dof), None)) is not None:
        raise InvalidValue(f"robot: arms of {arm.dof} joints like the first, got {other.name} with {other.dof}")
    for one in controllers:
        refuse_controller(one, arm)
    _, detector = watchers(() if observer is None else observer, detector, arm.dof)
    refuse_friction(friction, arm.dof)
    for name, value in (("seconds", seconds), ("period", period)):
        plain = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not (plain and math.isfinite(value) and value > 0.0):
            raise InvalidValue(f"{name}: positive and finite [s], got {value!r}")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise InvalidValue(f"seed: a whole number from 0 to 2^64 - 1, got {seed!r}")
    if isinstance(record, bool) or not isinstance(record, int | np.integer) or record < 0:
        raise InvalidValue(f"record: every how many samples, a whole number, 0 for none, got {record!r}")
    count, record = int(count), int(record)
    if method not in ("rk4", "semi-implicit"):
        raise UnknownName(f"unknown method {method!r}; known: rk4, semi-implicit")
    single = _single(dtype)
    if device not in DEVICES:
        raise unknown("device", str(device), DEVICES)
    seconds, period = float(seconds), float(period)
    steps = math.ceil(seconds / period - 0.5)
    if not 1 <= steps < kernel.ENDLESS:
        raise InvalidValue(f"seconds: one period ({period:g} s) to {kernel.ENDLESS:.0f} of them, got {seconds!r}")
    rows = -(-steps // record) if record else 0
    kernel.refuse_more("count: rollouts", count, (1 + rows) * kernel.ROW)
    motions = [begun(one, start, period, arm) for one in controllers]
    begins, trajectories = zip(*motions, strict=True)
    plan = Plan(
        arms, controllers, observer, detector, pushes if isinstance(pushes, RandomPushes) else pushes_of(pushes),
        sensor_model(sensors), friction,
        None if payload is None else per_robot(payload, count, "payload", "kg"),
        per_robot(friction_scale, count, "friction_scale", "1"), begins, trajectories, period, steps, int(seed),
        method == "rk4",
    )  # fmt: skip
    plan.plant(0)  # refuses what a plant refuses
    refuse_stiff(plan)
    why = plan.unfit_for(device)
    if why and device == "cuda":
        raise InvalidValue(f"device 'cuda': {why}")
    if why:
        warnings.warn(f"rollouts: {why}; the Python loop serves, some hundred times slower", RuntimeWarning, 2)
        answer, used = _looped(plan, count, record, progress), "python"
    else:
        answer = _fused(plan, count, single, record, progress, device, exact)
        used = "cuda" if device == "cuda" else kernel.available()[0]
    return _result(plan, answer, count, record, seconds, "float32" if single and not why else "float64", used, why)


def _single(dtype: Any) -> bool:
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in ("float64", "float32"):
        raise InvalidValue(f"dtype: float64 or float32, got {dtype!r}")
    return bool(name == "float32")


def _fused(
    plan: Plan, count: int, single: bool, record: int, progress: Any, device: str, exact: bool
) -> list[kernel.Answer]:
    out = []
    if device == "cuda":
        from tangere.kernels import rollouts_cuda

        for first in range(0, count, rollouts_cuda.SLAB):
            job = plan.job(first, min(rollouts_cuda.SLAB, count - first))
            out.append(rollouts_cuda.fused(job, first=first, single=single, every=record, exact=exact))
            if progress is not None:
                progress(min(first + rollouts_cuda.SLAB, count), count)
        return out
    for first in range(0, count, SLAB):
        job = plan.job(first, min(SLAB, count - first))
        tell = None if progress is None else lambda done, first=first: progress(first + done, count)
        out.append(kernel.fused(job, first=first, single=single, every=record, progress=tell))
    return out


def _result(
    plan: Plan, answers: list[kernel.Answer], count: int, record: int, seconds: float, dtype: str, used: str, why: str
) -> Rollouts:
    numbers = np.concatenate([answer.numbers for answer in answers])
    n = plan.begins[0].q.shape[0]
    q, qd, residual, peak, error = (numbers[:, n * i : n * i + n] for i in range(5))
    score, events, alarm, found, early, _ = numbers[:, 5 * n :].T
    h = plan.period
    slabs = [np.arange(i, min(i + SLAB, count)) for i in range(0, count, SLAB)]
    spans = np.concatenate([plan.pushes_rows(rows)[:, :, :2] for rows in slabs])
    times = np.where(spans < kernel.ENDLESS, spans * h, np.inf)
    delay = np.full(count, np.nan)
    if times.shape[1]:
        late = found * h - times[:, 0, 0]
        felt = (found >= 0.0) & (found * h <= times[:, 0, 1] + LATE)
        delay = np.where(felt, late, np.nan)
    log: dict[str, Array] = {}
    if record:
        rows = np.concatenate([answer.log for answer in answers if answer.log is not None])
        log = {name: rows[:, :, k] for k, name in enumerate(LOGGED)}
    return Rollouts(
        q, qd, residual, peak, error, score, events.astype(np.int64), early.astype(np.int64),
        np.where(alarm >= 0.0, alarm * h, np.nan), delay, times, np.concatenate([answer.forces for answer in answers]),
        ~np.all(np.isfinite(numbers[:, : 5 * n]), axis=1), log, h, seconds, plan.seed, dtype, used, why, plan,
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------------- the Python loop


def _ordinary(plan: Plan, i: int, log: str | os.PathLike[str] | None = None) -> tuple[RunResult, RigidPlant]:
    """Rollout i by the ordinary parts."""
    plant = plan.plant(i)
    observers = [] if plan.observer is None else [plan.observer]
    controller, begin, trajectory = plan.motion(i)
    done = run(
        plant, controller, observers, detector=plan.detector, until=plan.steps * plan.period, start=begin,
        trajectory=trajectory, log=log,
    )  # fmt: skip
    return done, plant


def _looped(plan: Plan, count: int, record: int, progress: Any) -> list[kernel.Answer]:
    """What the fused kernel answers, from one ordinary run after the other."""
    out = []
    for i in range(count):
        done, plant = _ordinary(plan, i)
        if isinstance(done.abort, KeyboardInterrupt):
            raise done.abort
        log, truth = done.log, plant.truth()
        columns = {name: log[name] if name in log.columns else np.zeros_like(log["q"]) for name in LOGGED}
        residual = columns["residual"]
        spans = plan.pushes_rows(np.array([i]))[0]
        begun_at = [round(event.time_s / plan.period) for event in done.events]
        after = [k for k in begun_at if len(spans) and k > spans[0, 0]]
        early = len(begun_at) - len(after) if len(spans) else 0
        first, found = (ks[0] if ks else -1 for ks in (begun_at, after))
        limits = plan.limits
        score = max([event.score for event in done.events], default=0.0)
        score = score if limits is None else float((np.abs(residual) / limits.on).max())
        error = np.abs(log["q_des"] - log["q_true"]).max(axis=0)
        parts = (truth.q, truth.qd, residual[-1], np.abs(residual).max(axis=0), error)
        numbers = np.concatenate([*parts, [score, len(begun_at), first, found, early, 0.0]])
        if done.aborted:
            numbers[: truth.q.size] = np.nan
        forces = np.array([plant.force_of(push) for push in plant.pushes]).reshape(1, -1, 3)
        rows = np.stack(list(columns.values()), axis=1)
        out.append(kernel.Answer(numbers[None], forces, rows[None, ::record] if record else None))
        if progress is not None:
            progress(i + 1, count)
    return out


# --------------------------------------------------------------------------------------------- a rollout played again


class _Played:
    """A plant whose samples the fused kernel has computed already; it takes the torques that they come from."""

    def __init__(self, plan: Plan, i: int, rows: Array) -> None:
        self.period, self.dof = plan.period, rows.shape[-1]
        self.robot, self.pushes = plan.robot(i), plan.pushes_of(i)
        self._rows, self._k = rows, 0
        self.controller = _Told(self, plan.motion(i)[0])
        self.observer = _Heard(self, plan.observer)

    def row(self, name: str) -> Array:
        """A column at the newest sample (n,)."""
        newest: Array = self._rows[min(self._k, len(self._rows) - 1), LOGGED.index(name)]
        return newest

    def reset(self, q: Array, qd: Array | None = None) -> State:
        """From the beginning."""
        self._k = 0
        return self.read()

    def read(self) -> State:
        """The newest sample."""
        return State(self._k * self.period, self.period, self.row("q"), self.row("qd"), self.row("tau"))

    def write(self, command: Command) -> None:
        """On to the next sample."""
        self._k += 1

    def truth(self) -> Truth:
        """Noise-free; of the wrench nothing is known."""
        q = self.row("q_true")
        return Truth(q, self.row("qd_true"), self.row("tau_ext_true"), self.robot.pose(q), np.zeros(6))

    def close(self) -> None:
        """Nothing to release."""


class _Told:
    """The controller of a rollout: says what it said."""

    def __init__(self, plant: _Played, controller: Any) -> None:
        self._plant, self.robot = plant, controller.robot

    def start(self, state: State) -> None:
        """Nothing to prepare."""

    def step(self, state: State) -> Command:
        """The torque of that period."""
        return Command(self._plant.row("tau_cmd"))

    def stop(self) -> None:
        """Nothing to release."""


class _Heard:
    """The observer of a rollout: says what it said."""

    def __init__(self, plant: _Played, observer: Any) -> None:
        self._plant, self.robot, self.gain = plant, getattr(observer, "robot", None), getattr(observer, "gain", None)

    @property
    def residual(self) -> Array:
        """The newest (n,) [Nm]."""
        return self._plant.row("residual")

    def reset(self, state: State) -> None:
        """Nothing to forget."""

    def update(self, state: State) -> Array:
        """The newest (n,) [Nm]."""
        return self.residual
