"""Events are judged again outside the control period, and handed to the loop at a later sample."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import replace
from time import sleep
from typing import IO, Any

from tangere import ends
from tangere.observe.detect import Detector
from tangere.observe.detect.refine import Evidence, Gathered, Refiner
from tangere.observe.detect.replay import TICK
from tangere.types import Event

# [s] after which a simulation that no clock drives delivers: what a worker needs on an idle machine (isolation 20 ms)
LATENCY = 0.03
REFINING_LOOK = 0.01  # [s] between two looks for something to refine, of a worker
WORKER_PATIENCE = 2.0  # [s] that the end of a run waits for a worker


class Refining:
    """Refines what a detector defers.

    Without a clock (clocked False) the loop calls `work` between two periods, and an event is ready LATENCY seconds of
    the run's own time after the sample that asked: the same in each rerun. With one, a thread and, with an isolator, a
    process of its own do it, and an event is ready when it is: the thread only gathers samples, some 0.1 ms at once, so
    that no period waits for it. problems: what went wrong, in sentences; the event then stays as it was.
    """

    def __init__(self, detector: Detector, clocked: bool) -> None:
        self.detector, self.problems = detector, deque[str]()
        detector.deferred = self.due = deque[Evidence]()
        self.ready: deque[tuple[float, Event]] = deque()
        self._last: Event | None = None
        self._process = _Process(detector.refiner) if clocked and detector.isolator is not None else None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="refining", daemon=True) if clocked else None
        if self._thread is not None:
            self._thread.start()

    @classmethod
    def of(cls, detector: Any, clocked: bool) -> Refining | None:
        """For a detector that refines; None for others (constant thresholds, one's own)."""
        refines = isinstance(detector, Detector) and detector.thresholds.hysteresis is None
        return cls(detector, clocked) if refines else None

    def work(self, time: float) -> None:
        """Between two periods, after the sample of `time` [s]: refine what it asked for."""
        if self.due and self._thread is None:
            self._refine(time + LATENCY)

    def take(self, time: float) -> list[Event]:
        """Events that are ready at the sample of `time` [s], in the detector's newest form; costs 0.1 us if none is."""
        found: list[Event] = []
        while self.ready and self.ready[0][0] <= time + TICK:
            event = self.detector.deliver(self.ready.popleft()[1])
            if event is not None:
                found.append(event)
        return found

    def close(self) -> list[Event]:
        """The run is over: what is still to come. The detector refines in place again."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(WORKER_PATIENCE)
        if self._process is not None:
            self._process.close()
        if self._thread is None:
            self._refine(0.0)
        self.detector.deferred = None
        return self.take(float("inf"))

    def _watch(self) -> None:
        while True:
            done = self._done.wait(REFINING_LOOK)
            self._refine(0.0)
            if done:
                return

    def _refine(self, ready: float) -> None:
        while self.due:
            evidence = self.due.popleft()
            last = self._last  # may not have been delivered yet
            if last is not None and last.number == evidence.event.number and last.masked == evidence.event.masked:
                evidence = replace(evidence, event=last)
            try:
                if self._thread is None:
                    self._last = self.detector.refiner.refine(evidence.gathered())
                else:
                    known = evidence.gathered(_let_others)
                    refine = self.detector.refiner.refine if self._process is None else self._process.refine
                    self._last = refine(known)
                self.ready.append((ready, self._last))
            except Exception as problem:  # the event stays as it was raised
                self.problems.append(f"event {evidence.event.number} not refined: {problem or type(problem).__name__}")


def _let_others() -> None:
    sleep(1e-4)


class _Process:
    """A refiner in a process of its own: it never holds this one's interpreter. Ends with the pipe."""

    def __init__(self, refiner: Refiner) -> None:
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from tangere.loop.refining import serve; serve()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
        self._send(refiner)
        self._answer()  # it has imported what it needs

    def refine(self, known: Gathered) -> Event:
        """As Refiner.refine; waits without holding the interpreter."""
        self._send(known)
        answer = self._answer()
        if not isinstance(answer, Event):
            raise RuntimeError(str(answer))
        return answer

    def close(self) -> None:
        """End it."""
        stdin, stdout = self._pipes()
        stdin.close()
        try:
            self._process.wait(WORKER_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        stdout.close()

    def _send(self, what: Any) -> None:
        stdin, _ = self._pipes()
        pickle.dump(what, stdin, protocol=pickle.HIGHEST_PROTOCOL)
        stdin.flush()

    def _answer(self) -> Any:
        return pickle.load(self._pipes()[1])

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout


def serve() -> None:
    """The process's side: a refiner, then evidence, from stdin; events, or why there is none, to stdout."""
    ends.child()  # a signal ends the run, which ends this
    source, target = sys.stdin.buffer, sys.stdout.buffer
    answer: Any = "ready"
    with suppress(EOFError, pickle.UnpicklingError, BrokenPipeError):  # the run has ended, or was killed in a word
        refiner = pickle.load(source)
        while True:
            pickle.dump(answer, target, protocol=pickle.HIGHEST_PROTOCOL)
            target.flush()
            evidence = pickle.load(source)
            try:
                answer = refiner.refine(evidence)
            except Exception as problem:
                answer = f"{problem or type(problem).__name__}"
