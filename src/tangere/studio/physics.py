"""The simulated arm of the studio, in a process of its own: the one loop with live inputs, paced by the clock.

It is told what to do by pickled messages on its standard input and tells of events on its standard output; rows go
through a Ring. It never waits for the page: nobody reads what it writes but through memory.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter, sleep
from typing import IO, Any

import numpy as np

from tangere import ends
from tangere.errors import TangereError
from tangere.loop.result import RunResult
from tangere.loop.run import run
from tangere.loop.sinks import Change, Input, RunInfo
from tangere.plants.pull import Load, Pull, Pulled, Release
from tangere.plants.pushes import Push
from tangere.studio.body import Anew, Begin, End, Tempo
from tangere.studio.ring import Ring
from tangere.studio.scenery import Place
from tangere.studio.world import World, built
from tangere.types import Array, Command, State

LINGER = 5.0  # [s] for which the simulation goes on when the studio is gone
MADE_UP = 0.1  # [s] by which a busy machine may hold it up without the arm falling behind the clock
NAP = 0.005  # [s] between two looks at the messages while the simulation is paused


class Stoppable:
    """A controller that can be ended from outside, and the run with it; notes what else belongs to each sample."""

    def __init__(self, world: World) -> None:
        self.controller = world.controller
        self.finished = False
        # time, score, what the hand did, where the thing to touch is
        self.seen: deque[tuple[float, float, Pulled | None, Array]] = deque(maxlen=4096)
        self._world, self._place = world, Place(world.plant, world.bodies)

    @property
    def abort(self) -> BaseException | None:
        """Why the guard gave up, if it did."""
        found: BaseException | None = getattr(self.controller, "abort", None)
        return found

    def start(self, state: State) -> None:
        """As the controller."""
        self.state = state
        self.controller.start(state)

    def step(self, state: State) -> Command:
        """As the controller. Whoever fills rows is a thread of its own, later: what they hold is taken here."""
        self.state, world = state, self._world
        pulled = getattr(world.plant, "pulled", None)  # in the period that ended with this sample, as truth has it
        self.seen.append((state.time, world.detector.score, pulled, self._place.read()))
        return self.controller.step(state)

    def stop(self) -> None:
        """As the controller."""
        self.controller.stop()


class Hand:
    """Live inputs of the loop: what the studio sends, and what is done when it falls silent."""

    def __init__(self, period: float, silence: float, tell: Callable[[Any], None]) -> None:
        self.period, self.silence, self._tell, self.speed, self.steps = period, silence, tell, 1.0, 0
        self.walls: deque[tuple[float, float, float]] = deque(maxlen=4096)  # time, wall, interval beyond the nominal
        self.told = perf_counter()  # when the studio was last heard of
        self.gone = False
        self.waiting: deque[Input] = deque()
        self.anew: Anew | None = None
        self._pulling = False
        self._due = self._last = 0.0

    def again(self, period: float) -> None:
        """Before another run: nobody pulls. What has come meanwhile still counts."""
        self.period, self._pulling = period, False
        self.walls.clear()

    @property
    def called_off(self) -> bool:
        """Whether the run should end: another world is wanted, or none."""
        return self.anew is not None or self.gone

    def take(self, time: float) -> list[Input]:
        """What came since the last call. While paused it waits, which is what a pause is."""
        while self.speed == 0.0 and self.steps <= 0 and not self.called_off:
            sleep(NAP)
        self.steps -= self.steps > 0
        now = perf_counter()
        if 0.0 < self.speed < 1.0:  # slow motion: a schedule of our own, later than that of the loop
            self._due = max(self._due + self.period / self.speed, now)
            sleep(self._due - now)
            now = perf_counter()
        self.walls.append((time, now, now - self._last - self.period))
        self._last = now
        taken: list[Input] = []
        while self.waiting:
            taken.append(self.waiting.popleft())
        for item in taken:
            self._pulling = isinstance(item, Pull) or (self._pulling and not isinstance(item, Release))
        if self._pulling and (self.gone or now - self.told > self.silence):
            self._pulling = False
            why = "the studio is gone" if self.gone else f"the studio was silent for {self.silence:g} s"
            taken = [item for item in taken if not isinstance(item, Pull)]
            taken.append(Release(why))
            threading.Thread(target=self._tell, args=(("released", why),), daemon=True).start()  # who reads may be slow
        return taken


class Rows:
    """The sink that fills the ring and tells of events."""

    def __init__(self, ring: Ring, stoppable: Stoppable, hand: Hand, number: int, tell: Any) -> None:
        self._ring, self._seen, self._hand, self._number, self._tell = ring, stoppable.seen, hand, number, tell
        self._row = np.zeros(ring.layout.width)

    def open(self, run: RunInfo) -> None:
        """Nothing to prepare."""

    def row(self, state: Any, command: Any, residual: Any, reference: Any, truth: Any) -> None:
        """One period into the ring."""
        row, at, walls = self._row, self._ring.fields, self._hand.walls
        wall = late = 0.0
        while walls and walls[0][0] <= state.time + 1e-9:
            _, wall, late = walls.popleft()
        pulled, score, body = None, 0.0, self._row[at["body"]]
        while self._seen and self._seen[0][0] <= state.time + 1e-9:
            _, score, pulled, body = self._seen.popleft()
        row[at["run"]], row[at["time"]], row[at["wall"]], row[at["lateness"]] = self._number, state.time, wall, late
        row[at["score"]] = score
        row[at["q"]], row[at["qd"]], row[at["tau"]] = state.q, state.qd, state.tau
        row[at["residual"]] = 0.0 if residual is None else residual
        row[at["tau_ext"]] = 0.0 if truth is None else truth.tau_ext
        row[at["force"]] = 0.0 if pulled is None else pulled.force
        row[at["body"]] = body
        row[at["point"]] = 0.0 if pulled is None else pulled.point
        self._ring.append(row)

    def event(self, event: Any) -> None:
        """To the studio."""
        self._tell(("event", self._number, event))

    def close(self, result: RunResult) -> None:
        """Nothing to release."""


class Physics:
    """The process's side: messages in, events out, one run after the other."""

    def __init__(self, source: IO[bytes], target: IO[bytes]) -> None:
        self._source, self._target = source, target
        self._lock = threading.Lock()
        begin = pickle.load(source)
        assert isinstance(begin, Begin)
        self._begin = begin
        self._hand = Hand(begin.settings.period, begin.silence, self._tell)
        self._stoppable: Stoppable | None = None
        self._wake = threading.Event()

    def serve(self) -> None:
        """Until the studio ends it, or has been gone for LINGER seconds."""
        settings = self._begin.settings
        home = np.array(self._begin.start) if self._begin.start else None
        try:
            world = built(settings, home)
        except TangereError as problem:
            self._tell(("failed", str(problem)))
            return
        home = world.start
        try:
            ring = Ring(world.believed.dof, self._begin.ring)
        except FileNotFoundError:  # the studio has ended meanwhile
            return
        self._tell(("ready", world.believed.dof))
        threading.Thread(target=self._listen, name="messages", daemon=True).start()
        number = 0
        while True:
            number += 1
            end = self._run(world, ring, number)
            if self._hand.anew is None and not self._hand.gone:
                self._tell(("ended", end))
                self._wake.wait()
            self._wake.clear()
            anew, self._hand.anew = self._hand.anew, None
            if anew is None:
                return
            q = home if anew.home or self._stoppable is None else self._stoppable.state.q
            try:
                world = built(anew.settings, q)
                settings = anew.settings
            except TangereError as problem:
                self._tell(("refused", str(problem)))
                world = built(settings, q)
            self._hand.again(world.plant.period)

    def _run(self, world: World, ring: Ring, number: int) -> str:
        """One run; why it ended."""
        self._stoppable = stoppable = Stoppable(world)
        if self._hand.called_off:  # while it was built; from here on `_end` finds it
            stoppable.finished = True
        self._tell(("run", number, world.settings, world.bodies))
        log = self._begin.log if number == 1 or self._begin.log is None else _numbered(self._begin.log, number)
        result = run(
            world.plant, stoppable, world.observer, detector=world.detector, reaction=world.reaction,
            trajectory=world.trajectory, start=world.start, live=self._hand,
            sinks=[Rows(ring, stoppable, self._hand, number, self._tell)], paced=MADE_UP, keep=False, log=log,
            robot=world.believed,
        )  # fmt: skip
        return result.aborted

    def _listen(self) -> None:
        """Messages as they come; the end of the stream is the end of the studio."""
        while True:
            try:
                message = pickle.load(self._source)
            except (EOFError, OSError, pickle.UnpicklingError):
                break
            hand = self._hand
            hand.told = perf_counter()
            if isinstance(message, Push | Pull | Release | Load | Change):
                hand.waiting.append(message)
            elif isinstance(message, Tempo):
                hand.speed, hand.steps = message.speed, message.steps
            elif isinstance(message, Anew):
                hand.anew = message
                self._end()
            elif isinstance(message, End):
                hand.gone = True
                self._end()
                return
        self._hand.gone = True
        sleep(LINGER)
        self._end()

    def _end(self) -> None:
        """End the run that is going on."""
        if self._stoppable is not None:
            self._stoppable.finished = True
        self._wake.set()

    def _tell(self, message: Any) -> None:
        with self._lock:
            try:
                pickle.dump(message, self._target, protocol=pickle.HIGHEST_PROTOCOL)
                self._target.flush()
            except (OSError, ValueError):  # nobody listens any more: the simulation goes on
                pass


def _numbered(path: str, number: int) -> str:
    """run.mcap -> run-2.mcap: a world that was changed has a log of its own."""
    stem, ending = os.path.splitext(path)
    return f"{stem}-{number}{ending}"


def serve() -> None:
    """The process: whatever a library prints goes to standard error, standard output is for messages alone."""
    ends.deaf()  # a signal ends the studio, which ends this
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    code = 1
    try:
        Physics(sys.stdin.buffer, target).serve()
        code = 0
    except EOFError:  # the studio ended before it began
        pass
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)  # the thread that waits for messages cannot be ended otherwise
