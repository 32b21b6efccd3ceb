"""The studio's side of the simulation: starts its process, sends it what the hand does, hears what the arm feels."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tangere.errors import InvalidValue, TangereError
from tangere.robots import robot
from tangere.studio.ring import Ring
from tangere.studio.settings import WorldSettings
from tangere.types import Array

BEAT = 0.1  # [s] between two signs of life: a fifth of the silence that the simulation takes
SILENCE = 0.5  # [s] without a sign of life from the studio after which the hand is taken off the arm
PATIENCE = 15.0  # [s] for which the end of the simulation is waited for: its log is closed
UNLOGGED = 3.0  # [s] the same without a log, where nothing is lost: a signal ends the command in 8 s however busy it is


@dataclass(frozen=True)
class Begin:
    """The first message."""

    ring: str
    settings: WorldSettings
    log: str | None = None  # an .mcap file that is written meanwhile
    start: tuple[float, ...] | None = None  # [rad]
    silence: float = SILENCE  # [s]


@dataclass(frozen=True)
class Tempo:
    """How time passes: speed 1 is real time, 0 is a pause; steps: so many periods, and then a pause."""

    speed: float = 1.0
    steps: int = 0


@dataclass(frozen=True)
class Anew:
    """Another world; the arm stays where it is, or (home) goes back to where it began."""

    settings: WorldSettings
    home: bool = False


@dataclass(frozen=True)
class Beat:
    """The studio lives."""


@dataclass(frozen=True)
class End:
    """End at once, with the log closed."""


class Body:
    """A simulation that is started in a process of its own; `begin` waits until it runs.

    Nothing that simulates is imported on this side, and the process starts while the page is being made.
    """

    def __init__(
        self,
        settings: WorldSettings,
        *,
        log: str | os.PathLike[str] | None = None,
        start: Array | None = None,
        silence: float = SILENCE,
    ) -> None:
        self.settings = settings
        self._patience = UNLOGGED if log is None else PATIENCE
        self.ring = Ring(robot(settings.robot).dof)
        self._on_message: Callable[..., None] = lambda *_: None
        self._lock, self._done = threading.Lock(), threading.Event()
        paths = os.pathsep.join(path for path in sys.path if path)
        one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # small matrices: threads only wait
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from tangere.studio.physics import serve; serve()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **one, "PYTHONPATH": paths},
        )  # fmt: skip
        place = None if start is None else tuple(start.tolist())
        self.send(Begin(str(self.ring.path), settings, None if log is None else os.fspath(log), place, silence))

    def begin(self, on_message: Callable[..., None]) -> None:
        """Wait until it runs; on_message(kind, ...) is called in a thread of its own from then on."""
        self._on_message = on_message
        try:
            first = self._answer()
        finally:
            self.ring.forget_file()
        if first is None or first[0] == "failed":
            self._process.wait()
            if first is None:
                raise TangereError("the simulation ended before it began; what it said is above")
            raise InvalidValue(first[1])
        for work in (self._listen, self._live):
            threading.Thread(target=work, daemon=True).start()

    @property
    def pid(self) -> int:
        """Of the process that simulates."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def send(self, message: Any) -> None:
        """A live input (Push, Pull, Change ...), a Tempo or another world."""
        with self._lock:
            try:
                assert self._process.stdin is not None
                pickle.dump(message, self._process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
                self._process.stdin.flush()
            except (OSError, ValueError):  # it has ended; whoever listens is told so
                pass

    def pace(self, speed: float = 1.0, steps: int = 0) -> None:
        """How time passes: 1 is real time, 0 a pause; steps: so many periods and then a pause."""
        self.send(Tempo(speed, steps))

    def rebuild(self, settings: WorldSettings, home: bool = False) -> None:
        """Another world, from where the arm is now (home: from where it began)."""
        self.settings = settings
        self.send(Anew(settings, home))

    def close(self) -> None:
        """End it; may be called twice."""
        self._done.set()
        if self._process.poll() is None:
            self.send(End())
            try:
                self._process.wait(self._patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self.ring.forget_file()  # it may have been ended before it began

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)
        except (EOFError, OSError):
            return None

    def _listen(self) -> None:
        while (message := self._answer()) is not None:
            self._on_message(*message)
        if not self._done.is_set():
            self._on_message("lost")

    def _live(self) -> None:
        while not self._done.wait(BEAT):
            self.send(Beat())
