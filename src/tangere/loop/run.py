"""The loop: the one place where source, observers, detector, reaction and controller meet."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, thread_time, time_ns
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere import ends
from tangere.kernels.periods import finite
from tangere.logs.log import Log, StoredColumns
from tangere.logs.mcap_log import mcap_sink
from tangere.logs.recordings import Recording
from tangere.loop.given import end_of, no_command, parts_of, raised_at, refuse_controller, refuse_reaction, started
from tangere.loop.recorder import Limits, Parts, Reached, Recorder, Spilled, by_joint
from tangere.loop.refining import Refining
from tangere.loop.result import Pacer, RunResult, Setup, Timing
from tangere.loop.sinks import Feed, Live, RunInfo, Sink, apply
from tangere.observe.detect import Thresholds
from tangere.robots import Robot
from tangere.types import (
    Array,
    Controller,
    Detector,
    Event,
    Observer,
    Plant,
    Reaction,
    Reference,
    Source,
    State,
    Trajectory,
)

# [s] for which a run goes on after its controller gave up: a guard ramps down within 0.2 s and brakes within 0.5 s
WIND_DOWN = 1.0
# [s] of wall time between two calls of `progress`: what an eye can follow
PROGRESS = 0.1

Progress = Callable[[float, float], None]


def run(
    source: Plant | Source | Log | Recording | str | os.PathLike[str],
    controller: Controller | None = None,
    observers: Observer | Sequence[Observer] | Mapping[str, Observer] = (),
    *,
    detector: Detector | Thresholds | float | None = None,
    reaction: Reaction | None = None,
    until: float | str | None = None,
    trajectory: Trajectory | None = None,
    sinks: Sequence[Sink] = (),
    live: Live | None = None,
    start: ArrayLike | Reference | None = None,
    robot: Robot | None = None,
    log: str | os.PathLike[str] | None = None,
    joints: Sequence[str] | None = None,
    progress: Progress | None = None,
    paced: bool | float = False,
    keep: bool = True,
    max_log: float | None = None,
    durable: bool = False,
) -> RunResult:
    """Run a source (a plant, a recording, a stream), with a controller or without, and record everything.

    In every period: sample -> live inputs -> observers -> detector -> reaction -> controller -> plant -> log and sinks.
    Each sample that the controller sees carries the first observer's estimate (State.tau_ext_hat), which the detector
    watches too. On a source that takes no torque the controller's answer is only logged (tau_cmd).

    source: a Log or a file of one is a recording. With `robot` and neither observer nor detector it is watched as
    `tangere.watch` does without a model; currents, where it has no torques, become torques by the gains of that arm.
    observers: one or several; the first one's residual is the column "residual"; the others' are "residual_NAME" (2, 3,
    ... where they have no names). detector: also thresholds, or one for all joints [Nm]. until [s], or "3 s": the
    duration; where not given, the trajectory's, else the run ends when the controller has finished or the source has no
    more samples. A controller that can finish has failed if `until` comes first.
    start (n,): where a plant is placed, at rest; a Reference: with its velocity; else the trajectory's start, at rest.
    trajectory: what the controller follows, for the columns of the reference. sinks: who sees rows and events
    meanwhile. live: where inputs come from while it runs; each is a note in the log. robot: the arm as it is believed,
    for the page; found by itself where the controller has one. log: an .mcap file that is written meanwhile; without,
    rows are held in memory, those of a run of more than 240 000 in a temporary file that goes with the result. joints:
    their names in it. progress(elapsed, until): called ten times a second. paced: periods begin by the clock (a
    simulator in real time; a number: so many seconds of delay are made up for); hardware sets its own pace. keep: False
    for a run without end, whose result holds the newest rows only. max_log [bytes]: of the log and the part before it,
    NAME.1.mcap, together. durable: what is written is on the disk before more is (a power cut).

    Errors before the first step and of the controller's first step are raised. After it nothing is: a lost source, a
    controller that raises, gives up or answers a torque that is no number, Ctrl-C end the run, `aborted` says why, and
    the log so far is in the result and in the file. Limits of the arm (speed, torque, range) that a plant went beyond
    are notes, interventions and a warning (errors.BeyondLimits). Source, controller, sinks and log are closed in any
    case.
    """
    origin, named, felt = parts_of(source, observers, detector, robot)
    plant: Any = origin if hasattr(origin, "write") else None
    with ends.in_periods() as end, ExitStack() as stack:
        stack.callback(origin.close)
        refuse_controller(controller, plant)
        refuse_reaction(reaction)
        state = started(origin, plant, start, trajectory)
        period = float(getattr(origin, "period", state.period))
        robots = (getattr(part, "robot", None) for part in (controller, origin, *named.values()))
        robot = robot or next((found for found in robots if isinstance(found, Robot)), None)
        joints = joints if joints is not None or robot is None else [joint.name for joint in robot.model.joints]
        for observer in named.values():
            observer.reset(state)
        if felt is not None:
            felt.reset()
        if controller is not None:
            controller.start(state)
            stack.callback(controller.stop)
        until = end_of(until, trajectory, controller, plant)
        scalars = ["time", "period", "cost", "cost_log"] + (["lateness", "cpu"] if paced else [])
        scorer = felt if plant is not None and named else None  # of a recording whoever watches keeps the score
        parts = Parts(state, controller, trajectory, list(named), getattr(origin, "truth", None), scorer)
        scalars += [*parts.extra_scalars, *(["score"] if parts.scorer is not None else [])]
        vectors = parts.columns(len(state.q))
        columns = dict.fromkeys(scalars, 0) | vectors
        file, clocked = None, bool(paced) or parts.truth is None
        start_ns = time_ns() - round(state.time * 1e9)  # time of day at which a clock like the source's showed 0
        how: Any = {"joints": joints, "robot": robot, "start_ns": start_ns, "gently": clocked}
        if log is not None:
            file = mcap_sink(log, columns, most=max_log, durable=durable, **how)
        own = Spilled(columns, how)
        limits = None if plant is None or robot is None or not keep else Limits(robot)
        gone = (lambda rows: None) if limits is None else limits.take
        reached: list[Reached] = []
        recorder = Recorder(scalars, vectors, file, keep, gone, own if keep else lambda: None)
        stack.callback(recorder.close)
        info = RunInfo(period, len(state.q), columns, robot, tuple(joints or ()))
        feeds = tuple(Feed(sink, info) for sink in sinks)
        refining = None if plant is None else Refining.of(felt, clocked)
        if refining is not None:
            stack.callback(refining.close)
        loop = _Loop(origin, plant, controller, tuple(named.values()), felt, reaction, trajectory, live, recorder,
                     parts, feeds, refining, end)  # fmt: skip
        # Collection stays on, but where a clock counts what exists already (modules, models: some 1e5 objects) is set
        # aside for the run: a full pass over it takes 13 ms, seen once in 10 minutes at 500 Hz.
        if clocked:
            gc.collect()
            gc.freeze()
            stack.callback(gc.unfreeze)
        begin = perf_counter()
        pacer = Pacer(period, 0.0 if paced is True else paced) if paced else None
        loop.go(state, until, period, pacer, progress)
        for what, close in (("controller", getattr(controller, "stop", lambda: None)), ("plant", origin.close)):
            try:
                close()
            except Exception as problem:
                recorder.note(loop.time, f"{what} could not be closed: {problem}")
        loop.refined()
        if limits is not None:
            limits.take(recorder.log())
            reached = limits.told(recorder, loop.interventions)
            loop.interventions |= {one.text: one.periods for one in reached}
        if loop.aborted:
            recorder.note(loop.time, f"ended: {loop.aborted}")
        recorder.close()
        wall = perf_counter() - begin
        if clocked:
            gc.unfreeze()
        stack.pop_all()
    recorded = recorder.kept(own.path if log is None else log, start_ns)
    own.belongs_to(recorded)
    result = RunResult(
        recorded,
        () if felt is None else felt.events,
        loop.aborted,
        Timing.of(recorded, period, pacer),
        wall,
        period,
        loop.abort,
        by_joint(loop.interventions),
        None if log is None else Path(log),
        getattr(recorder.sink, "error", ""),
        setup=Setup.of(origin, controller, named.values(), felt, trajectory),
        limits={one.text: one.beyond for one in reached},
    )
    if isinstance(recorded.columns, StoredColumns):
        recorded.columns.release()
    said = [*map(str, getattr(origin, "said", ())), *(text for feed in feeds if (text := feed.close(result)))]
    if loop.misuse and loop.abort is not None:
        raise loop.abort
    return replace(result, said=tuple(said)) if said else result


@dataclass
class _Loop:
    source: Any
    plant: Plant | None
    controller: Controller | None
    observers: tuple[Observer, ...]
    detector: Detector | None
    reaction: Reaction | None
    trajectory: Trajectory | None
    live: Live | None
    recorder: Recorder
    parts: Parts
    feeds: tuple[Feed, ...]
    refining: Refining | None
    ends: ends.Ends

    def __post_init__(self) -> None:
        self.aborted = self._said = self._within = ""  # within: what of the observers' stage is somebody else's code
        self.abort: BaseException | None = None
        self.interventions: dict[str, int] = {}
        self.time, self.misuse = 0.0, False  # misuse: the controller's first step failed
        self._link = (0, 0)  # number of the event and link that were noted last

    def go(self, state: State, until: float, period: float, pacer: Pacer | None, progress: Progress | None) -> None:
        """Step until the end, whatever ends it."""
        stage = "controller"
        source, plant, controller, observers, recorder, parts, feeds = (
            self.source, self.plant, self.controller, self.observers, self.recorder, self.parts, self.feeds,
        )  # fmt: skip
        lost_wrench, told = np.full(6, np.nan), self.ends
        guard: Any = controller if hasattr(controller, "abort") else None
        task: Any = controller if hasattr(controller, "finished") else None
        said: Any = getattr(controller, "said", None)
        start, end = state.time, until - 0.5 * period
        cost_log, next_progress, lateness, cpu, first, elapsed = 0.0, 0.0, 0.0, 0.0, True, 0.0
        cpu_begin = thread_time()
        nothing = np.zeros(len(state.q))
        residuals: list[Array] = [getattr(observer, "residual", nothing) for observer in observers]
        updates = [observer.update for observer in observers]
        detector, refining, trajectory, live = self.detector, self.refining, self.trajectory, self.live
        extra, scorer, ask_truth, wrenches = parts.extra, parts.scorer, parts.truth, parts.wrench
        append, only = recorder.append, updates[0] if len(updates) == 1 else None
        ready, due = ((), ()) if refining is None else (refining.ready, refining.due)
        touching = detector is not None and detector.touching
        command = reference = truth = None
        try:
            # the end is asked for within: Python 3.11 makes a loop quick at jumps back that have no condition
            while True:
                if task is not None and task.finished:
                    break
                self.time = now = state.time
                if told.heard is not None:  # between two rows: none is cut in two
                    raise told.heard
                elapsed = now - start
                if elapsed >= end:
                    if task is not None:
                        self.aborted = f"the controller had not finished after {until:g} s"
                    break
                if live is not None:
                    self._live(now)
                stage = "observer"
                t0 = perf_counter()
                if updates:
                    if not first:
                        residuals = [update(state) for update in updates] if only is None else [only(state)]
                    r, target = residuals[0], state.qd_target
                    # what was wanted a period ago, where nobody says better: it tells a stop from a push
                    if target is None and reference is not None:
                        target = reference.qd
                    state = State(now, state.period, state.q, state.qd, state.tau, state.wrench, r, target)
                    if detector is not None:
                        refined = refining.take(now) if ready and refining is not None else []
                        event = detector.update(state, r)
                        before, touching = touching, detector.touching
                        if event is not None or refined or before != touching:
                            self._felt(now, refined, event, before and not touching)
                stage = "controller"
                if controller is not None:
                    command = controller.step(state)
                t1 = perf_counter()
                stage = "plant"
                if ask_truth is not None:
                    truth = ask_truth()
                if plant is not None and command is not None:
                    if not finite(command.tau):
                        self._no_torque(command.tau)
                        break
                    plant.write(command)
                stage = "log"
                t2 = perf_counter()
                scalars = [now, state.period, t1 - t0, cost_log]
                if pacer is not None:
                    scalars += (lateness, cpu)
                row: list[Array] = [state.q, state.qd, state.tau]
                if wrenches:
                    row.append(lost_wrench if state.wrench is None else state.wrench)
                row += residuals
                if command is not None:
                    row.append(command.tau)
                if trajectory is not None:
                    reference = trajectory.at(elapsed)
                    row += (reference.q, reference.qd, reference.qdd)
                    if reference.T is not None:
                        row.append(reference.T)
                if truth is not None:
                    row += (truth.q, truth.qd, truth.tau_ext, truth.T, truth.wrench)
                if extra is not None:
                    more = extra()
                    scalars += parts.more_scalars(more)
                    row += parts.more_vectors(more)
                if scorer is not None:
                    scalars.append(scorer.score)
                append(scalars, row, t2)
                for feed in feeds:
                    feed.row(state, command, residuals[0] if residuals else None, reference, truth)
                if command is not None and (command.note or self._said):
                    self._intervened(now, command.note)
                if said is not None:
                    for sentence in said():
                        recorder.note(now, sentence)
                cost_log = perf_counter() - t2
                if progress is not None and t2 > next_progress:
                    next_progress = t2 + PROGRESS
                    progress(elapsed, until)
                if guard is not None and guard.abort is not None and not self.aborted:
                    self.abort = guard.abort
                    self.aborted = f"the controller gave up: {self.abort}"
                    end = min(end, elapsed + WIND_DOWN)
                if due and refining is not None:
                    refining.work(now)
                stage = "plant"
                if pacer is not None:
                    cpu = thread_time() - cpu_begin
                    lateness = pacer.wait()
                    cpu_begin = thread_time()
                sample = source.read()
                if sample is None:
                    break
                state, first = sample, False
            self.aborted = self.aborted or getattr(controller, "failed", "")
            if progress is not None:
                progress(min(elapsed, until), until)
        except KeyboardInterrupt as interrupt:
            self.abort, self.aborted = interrupt, str(interrupt) or "interrupted from the keyboard"
            self.ends.take()
        except Exception as problem:  # a run ends with its log, whatever happened
            self.abort = problem
            what = "the plant was lost" if stage == "plant" else f"the {self._within or stage} failed"
            self.aborted = f"{what}: {problem or type(problem).__name__}{raised_at(problem)}"
            asked = stage in ("plant", "log") and controller is not None
            if asked and (wrong := no_command(command, len(nothing))) is not None:
                stage, self.abort, self.aborted = "controller", wrong, f"the controller failed: {wrong}"
            self.misuse = first and stage == "controller"

    def _no_torque(self, tau: Array) -> None:
        """A torque that is no number ends the run before the plant is given it."""
        bad = np.flatnonzero(~np.isfinite(tau)).tolist()
        joints = ", ".join(f"{tau[j]:g} for joint {j + 1}" for j in bad)
        self.aborted = f"the controller failed: it answered a torque of {joints} at {self.time:.6g} s"
        self.recorder.note(self.time, self.aborted)

    def _live(self, time: float) -> None:
        assert self.live is not None
        for item in self.live.take(time):
            self.recorder.note(time, apply(item, time, self.plant, self.controller))

    def _felt(self, time: float, events: list[Event], new: Event | None, ended: bool) -> None:
        """Tell of events: those that were refined meanwhile, and what the newest sample raised or ended."""
        if new is not None:
            events.append(new)
        elif ended and self.detector is not None:
            self.recorder.note(time, "touch: ended")
            events.append(self.detector.events[-1])
        for event in events:
            if event.begins:
                word = "touch" if event.kind in ("unknown", "collision", "push") else event.kind
                self.recorder.note(time, f"{word}: {event.reason or f'joint {event.joint}'}")
            if self.reaction is not None and event.alarm and event.phase != "ended":
                self._within = "reaction"
                self.reaction.on_event(event)
                self._within = ""
            self._tell(event)

    def _tell(self, event: Event) -> None:
        if event.phase == "refined" and event.link is not None and (event.number, event.link) != self._link:
            when, self._link = "now" if event.number == self._link[0] else "at first", (event.number, event.link)
            sure = f"{when} link {event.link} ({100.0 * event.link_probability:.0f} %), {event.force_n or 0.0:.3g} N"
            self.recorder.note(self.time, f"touch {event.number}: {sure}")
        self.recorder.event(event)
        for feed in self.feeds:
            feed.event(event)

    def refined(self) -> None:
        """After the last period: events that were still being judged."""
        if self.refining is not None:
            for event in self.refining.close():
                self._tell(event)
            for problem in self.refining.problems:
                self.recorder.note(self.time, problem)

    def _intervened(self, time: float, note: str) -> None:
        """Count what the controller noted; write it down when it begins, not in every period."""
        kind = note.partition(":")[0]
        if kind and kind != self._said:
            self.recorder.note(time, note)
        if kind:
            self.interventions[kind] = self.interventions.get(kind, 0) + 1
        self._said = kind
