"""The loop of a drawing: as run.run, but it ends when the drawing does, which no clock knows beforehand."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from tangere.apps.drawing.force.task import PenTask
from tangere.logs.mcap_log import McapFile, McapSink
from tangere.loop.recorder import Recorder
from tangere.loop.result import RunResult, Timing
from tangere.types import Array, Command, Observer, Plant, State

MODES = ("free", "listen", "touch", "settle", "draw", "away")  # numbers of the column "mode"
PROGRESS = 0.1  # s of wall time between two calls of `progress`
# s beyond the plan's duration that a stroke may take to find the paper (20 mm and more at 2 mm/s, then settle)
PER_STROKE = 15.0


class Draughtsman(Protocol):
    """A controller that draws: control.HybridForce, control.HeightPI."""

    task: PenTask
    force: float
    stiffness: float
    saturated: float

    @property
    def learned(self) -> bool:
        """Whether the stiffness was given or found."""

    @property
    def finished(self) -> bool:
        """Whether the drawing is over."""

    def start(self, state: State) -> None: ...
    def step(self, state: State) -> Command: ...
    def stop(self) -> None: ...


def drive(
    plant: Plant,
    controller: Draughtsman,
    observer: Observer | None = None,
    *,
    log: str | os.PathLike[str] | None = None,
    progress: Callable[[float, float], None] | None = None,
    start: Array | None = None,
) -> RunResult:
    """Draw until the controller has finished; everything is recorded. start (n,): joints, if not those of the plan.

    Columns beyond those of run.run: mode (number in MODES), stroke (from 1, 0 before the first), plan_time [s],
    force [N] as the controller felt it along the normal, force_des [N]. After the first step nothing is raised:
    `aborted` says why it ended early, and the log so far is there.
    """
    task = controller.task
    n, period = plant.dof, plant.period
    scalars = ["time", "period", "cost", "cost_log", "mode", "stroke", "plan_time", "force", "force_des"]
    vectors = {"q": n, "qd": n, "tau": n, "wrench": 6}
    vectors |= {"residual": n} if observer is not None else {}
    vectors |= {"tau_cmd": n, "q_des": n, "qd_des": n, "qdd_des": n, "T_des": 12}
    vectors |= {"q_true": n, "qd_true": n, "tau_ext_true": n, "T_true": 12, "wrench_true": 6}
    duration = task.plan.duration
    strokes = sum(phase == "draw" for phase, _, _ in task.segments)
    limit = duration + PER_STROKE * strokes
    aborted = ""
    abort: BaseException | None = None
    numbers = {mode: float(i) for i, mode in enumerate(MODES)}
    lost_wrench = np.full(6, np.nan)
    interventions: dict[str, int] = {}
    with ExitStack() as stack:
        stack.callback(plant.close)
        state = plant.reset(task.plan.at(0.0).q if start is None else start)
        truth_of: Any = plant.truth  # type: ignore[attr-defined]
        sink = None
        if log is not None:
            sink = McapSink(McapFile(log, dict.fromkeys(scalars, 0) | vectors))
            stack.callback(sink.close)
        recorder = Recorder(scalars, vectors, sink)
        if observer is not None:
            observer.reset(state)
        controller.start(state)
        stack.callback(controller.stop)
        gc.collect()
        gc.freeze()
        stack.callback(gc.unfreeze)
        begin = perf_counter()
        cost_log, next_progress, said, first = 0.0, 0.0, "", True
        residual: Array = np.zeros(n)
        try:
            while not controller.finished:
                if state.time > limit:
                    aborted = f"the drawing did not end within {limit:.0f} s"
                    break
                t0 = perf_counter()
                if observer is not None:
                    if not first:
                        residual = observer.update(state)
                    first = False
                    state = State(state.time, state.period, state.q, state.qd, state.tau, state.wrench, residual)
                command = controller.step(state)
                t1 = perf_counter()
                truth = truth_of()
                plant.write(command)
                t2 = perf_counter()
                reference = task.reference
                assert reference.T is not None
                wrench = lost_wrench if state.wrench is None else state.wrench
                row: tuple[Array, ...] = (state.q, state.qd, state.tau, wrench)
                row += () if observer is None else (residual,)
                row += (command.tau, reference.q, reference.qd, reference.qdd, reference.T.ravel()[:12])
                row += (truth.q, truth.qd, truth.tau_ext, truth.T.ravel()[:12], truth.wrench)
                recorder.append(
                    (
                        state.time, state.period, t1 - t0, cost_log, numbers[task.mode], task.stroke, task.clock,
                        controller.force, task.force,
                    ),
                    row, t2,
                )  # fmt: skip
                note = command.note
                if note:
                    kind = note.partition(":")[0]
                    if kind != said:
                        recorder.note(state.time, note)
                    interventions[kind] = interventions.get(kind, 0) + 1
                    said = kind
                cost_log = perf_counter() - t2
                if progress is not None and t2 > next_progress:
                    next_progress = t2 + PROGRESS
                    progress(task.clock, duration)
                state = plant.read()
            aborted = aborted or task.lost
            if progress is not None:
                progress(task.clock if aborted else duration, duration)
        except KeyboardInterrupt as interrupt:
            abort, aborted = interrupt, "interrupted from the keyboard"
        except Exception as problem:  # a run ends with its log, whatever happened
            abort, aborted = problem, f"the drawing failed: {problem or type(problem).__name__}"
        if aborted:
            recorder.note(state.time, f"ended: {aborted}")
        recorder.flush()
        if sink is not None:
            sink.close()
        wall = perf_counter() - begin
    recorded = recorder.log()
    return RunResult(
        recorded, (), aborted, Timing.of(recorded, period), wall, period, abort, interventions,
        None if log is None else Path(log), "" if sink is None else sink.error,
    )  # fmt: skip
