"""The loop: the one place where plant, controller, observers and reaction meet."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.logs.mcap_log import McapFile, McapSink
from tangere.loop.pacing import Pacer
from tangere.loop.recorder import Recorder
from tangere.loop.result import RunResult, Setup, Timing
from tangere.observe.threshold import Detection
from tangere.types import Array, Contact, Controller, Observer, Plant, State, Trajectory

# s for which a run goes on after its controller gave up: a guard ramps down within 0.2 s and brakes within 0.5 s
WIND_DOWN = 1.0
# s of wall time between two calls of `progress`: what an eye can follow
PROGRESS = 0.1

Progress = Callable[[float, float], None]


class Detector(Protocol):
    """Finds touches in a residual, such as observe.threshold.ThresholdDetector."""

    touching: bool

    @property
    def detections(self) -> tuple[Detection, ...]:
        """Every touch so far."""

    def reset(self) -> None:
        """Forget every touch."""

    def update(self, time: float, residual: Array) -> Contact | None:
        """The onset of a touch, else None."""


class Reaction(Protocol):
    """Whoever wants to know of a touch; mostly the controller itself, or one inside it."""

    def on_contact(self, contact: Contact) -> None:
        """Called in the loop, before the controller's step of the same sample."""


def run(
    plant: Plant,
    controller: Controller,
    observers: Sequence[Observer] | Mapping[str, Observer] = (),
    *,
    duration: float | None = None,
    start: ArrayLike | None = None,
    trajectory: Trajectory | None = None,
    detector: Detector | None = None,
    reaction: Reaction | None = None,
    log: str | os.PathLike[str] | None = None,
    joints: Sequence[str] | None = None,
    progress: Progress | None = None,
    paced: bool = False,
) -> RunResult:
    """Run a controller on a plant and record everything.

    In every period: sample -> observers -> detector -> reaction -> controller -> plant -> log. Each sample that the
    controller sees carries the first observer's estimate (State.tau_ext_hat), which the detector watches too.

    observers: the first one's residual is the column "residual"; the others' are "residual_NAME" (2, 3, ... where they
    have no names). duration [s]: that of the trajectory where not given. start (n,): where the plant is placed; the
    trajectory's start where not given. trajectory: what the controller follows, for the columns of the reference.
    log: an .mcap file that is written meanwhile. joints: their names in it. progress(elapsed, duration): called ten
    times a second. paced: periods begin by the clock (a simulator in real time); hardware sets its own pace.

    Errors before the first step are raised. After it nothing is: a plant that is lost, a controller that raises or
    gives up, Ctrl-C end the run, `aborted` says why, and the log so far is in the result and in the file. Plant,
    controller and log are closed in any case.
    """
    with ExitStack() as stack:
        stack.callback(plant.close)
        if duration is None and trajectory is not None:
            duration = trajectory.duration
        if duration is None or not (isfinite(duration) and duration > 0.0):
            raise InvalidValue(f"duration: positive and finite [s], or a trajectory that ends, got {duration!r}")
        if start is None and trajectory is None:
            raise InvalidValue("start: where the plant is placed (n,) [rad], or a trajectory that starts somewhere")
        q = trajectory.at(0.0).q if start is None and trajectory is not None else np.asarray(start, dtype=np.float64)
        named = _named(observers)
        state = plant.reset(q)
        truth: Any = getattr(plant, "truth", None)
        scalars = ["time", "period", "cost", "cost_log"] + (["lateness", "cpu"] if paced else [])
        parts = _Parts(state, trajectory, len(named), truth)
        vectors = parts.columns(plant.dof, list(named))
        sink = None
        if log is not None:
            columns = dict.fromkeys(scalars, 0) | vectors
            sink = McapSink(McapFile(log, columns, joints=joints))
            stack.callback(sink.close)
        recorder = Recorder(scalars, vectors, sink)
        for observer in named.values():
            observer.reset(state)
        if detector is not None:
            detector.reset()
        controller.start(state)
        stack.callback(controller.stop)
        loop = _Loop(plant, controller, tuple(named.values()), detector, reaction, trajectory, recorder, parts)
        # Collection stays on, but what exists already (modules, models: some 1e5 objects) is set aside for the run: a
        # full pass over it takes 13 ms, seen once in 10 minutes at 500 Hz.
        gc.collect()
        gc.freeze()
        stack.callback(gc.unfreeze)
        begin = perf_counter()
        pacer = Pacer(plant.period) if paced else None
        loop.go(state, duration, pacer, progress)
        if loop.aborted:
            recorder.note(loop.time, f"ended: {loop.aborted}")
        recorder.flush()
        for what, close in (("controller", controller.stop), ("plant", plant.close)):
            try:
                close()
            except Exception as problem:
                recorder.note(loop.time, f"{what} could not be closed: {problem}")
        if sink is not None:
            sink.close()
        wall = perf_counter() - begin
        gc.unfreeze()
        stack.pop_all()
    recorded = recorder.log()
    return RunResult(
        recorded,
        () if detector is None else detector.detections,
        loop.aborted,
        Timing.of(recorded, plant.period, pacer),
        wall,
        plant.period,
        loop.abort,
        loop.interventions,
        None if log is None else Path(log),
        "" if sink is None else sink.error,
        setup=Setup.of(plant, controller, named.values(), detector, trajectory),
    )


def _named(observers: Sequence[Observer] | Mapping[str, Observer]) -> dict[str, Observer]:
    """Column name -> observer."""
    if isinstance(observers, Mapping):
        pairs = [(str(name), observer) for name, observer in observers.items()]
    else:
        pairs = [(str(i + 1), observer) for i, observer in enumerate(observers)]
    return {"residual" if i == 0 else f"residual_{name}": observer for i, (name, observer) in enumerate(pairs)}


class _Parts:
    """Which vectors a row has: fixed by the first sample, so that every row has the same."""

    def __init__(self, state: State, trajectory: Trajectory | None, observers: int, truth: Any) -> None:
        self.wrench = state.wrench is not None
        self.reference = trajectory is not None
        self.pose = trajectory is not None and trajectory.at(0.0).T is not None
        self.observers = observers
        self.truth = truth

    def columns(self, n: int, residuals: list[str]) -> dict[str, int]:
        """Name -> width, in the order of a row."""
        columns = {"q": n, "qd": n, "tau": n}
        columns |= {"wrench": 6} if self.wrench else {}
        columns |= dict.fromkeys(residuals, n)
        columns["tau_cmd"] = n
        columns |= {"q_des": n, "qd_des": n, "qdd_des": n} if self.reference else {}
        columns |= {"T_des": 12} if self.pose else {}
        if self.truth is not None:
            columns |= {"q_true": n, "qd_true": n, "tau_ext_true": n, "T_true": 12, "wrench_true": 6}
        return columns


@dataclass
class _Loop:
    plant: Plant
    controller: Controller
    observers: tuple[Observer, ...]
    detector: Detector | None
    reaction: Reaction | None
    trajectory: Trajectory | None
    recorder: Recorder
    parts: _Parts

    def __post_init__(self) -> None:
        self.aborted = ""
        self.abort: BaseException | None = None
        self.interventions: dict[str, int] = {}
        self.time = 0.0
        self._said = ""

    def go(self, state: State, duration: float, pacer: Pacer | None, progress: Progress | None) -> None:
        """Step until the end, whatever ends it."""
        stage = "controller"
        plant, controller, observers, recorder, parts = (
            self.plant, self.controller, self.observers, self.recorder, self.parts,
        )  # fmt: skip
        lost_wrench = np.full(6, np.nan)
        guard: Any = controller if hasattr(controller, "abort") else None
        start, end = state.time, duration - 0.5 * plant.period
        cost_log, next_progress, lateness, cpu, first = 0.0, 0.0, 0.0, 0.0, True
        cpu_begin = thread_time()
        nothing = np.zeros(plant.dof)
        residuals: tuple[Array, ...] = tuple(getattr(observer, "residual", nothing) for observer in observers)
        try:
            while True:
                self.time = now = state.time
                elapsed = now - start
                if elapsed >= end:
                    break
                stage = "observer"
                t0 = perf_counter()
                if observers:
                    if not first:
                        residuals = tuple([observer.update(state) for observer in observers])
                    r = residuals[0]
                    state = State(now, state.period, state.q, state.qd, state.tau, state.wrench, r)
                    if self.detector is not None:
                        self._detect(now, r)
                stage = "controller"
                command = controller.step(state)
                t1 = perf_counter()
                stage = "plant"
                truth = parts.truth() if parts.truth is not None else None
                plant.write(command)
                stage = "log"
                t2 = perf_counter()
                row: tuple[Array, ...] = (state.q, state.qd, state.tau)
                if parts.wrench:
                    row += (lost_wrench if state.wrench is None else state.wrench,)
                row += (*residuals, command.tau)
                if self.trajectory is not None:
                    reference = self.trajectory.at(elapsed)
                    row += (reference.q, reference.qd, reference.qdd)
                    if reference.T is not None:
                        row += (reference.T.ravel()[:12],)
                if truth is not None:
                    row += (truth.q, truth.qd, truth.tau_ext, truth.T.ravel()[:12], truth.wrench)
                scalars = (now, state.period, t1 - t0, cost_log)
                recorder.append(scalars if pacer is None else (*scalars, lateness, cpu), row, t2)
                if command.note or self._said:
                    self._intervened(now, command.note)
                cost_log = perf_counter() - t2
                if progress is not None and t2 > next_progress:
                    next_progress = t2 + PROGRESS
                    progress(elapsed, duration)
                if guard is not None and guard.abort is not None and not self.aborted:
                    self.abort = guard.abort
                    self.aborted = f"the controller gave up: {self.abort}"
                    end = min(end, elapsed + WIND_DOWN)
                stage = "plant"
                if pacer is not None:
                    cpu = thread_time() - cpu_begin
                    lateness = pacer.wait()
                    cpu_begin = thread_time()
                state = plant.read()
                first = False
            if progress is not None:
                progress(min(elapsed, duration), duration)
        except KeyboardInterrupt as interrupt:
            self.abort, self.aborted = interrupt, "interrupted from the keyboard"
        except Exception as problem:  # a run ends with its log, whatever happened
            self.abort = problem
            what = "the plant was lost" if stage == "plant" else f"the {stage} failed"
            self.aborted = f"{what}: {problem or type(problem).__name__}"

    def _detect(self, time: float, residual: Array) -> None:
        detector = self.detector
        assert detector is not None
        touching = detector.touching
        contact = detector.update(time, residual)
        if contact is not None:
            size = float(contact.residual[contact.joint - 1])
            self.recorder.note(time, f"touch: joint {contact.joint}, {size:.3g} Nm")
            if self.reaction is not None:
                self.reaction.on_contact(contact)
        elif touching and not detector.touching:
            self.recorder.note(time, "touch: ended")

    def _intervened(self, time: float, note: str) -> None:
        """Count what the controller noted; write it down when it begins, not in every period."""
        kind = note.partition(":")[0]
        if kind and kind != self._said:
            self.recorder.note(time, note)
        if kind:
            self.interventions[kind] = self.interventions.get(kind, 0) + 1
        self._said = kind
