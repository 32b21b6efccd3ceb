"""How a program is told to end: Ctrl-C, SIGTERM, SIGHUP (a closed terminal) and a parent that is gone, by one path.

The first signal is raised as `Ended` where nothing can be lost. A loop takes it between two periods, so that no row is
cut in two; while results are written it waits until they are. A second signal ends the program at once. Signals belong
to the whole process, and so does what is kept here.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from types import FrameType
from typing import Literal

# [s] that a loop has to take a signal by itself; then it is raised wherever the loop is: a source that waits for ever
GRACE = 0.25
# [s] from the first signal to the end of the program, whatever is still to be written: containers and services are
# killed after 10 s
PATIENCE = 8.0
LOOK = 0.5  # [s] between two looks whether the parent is still there

Phase = Literal["free", "loop", "results"]


class Ended(KeyboardInterrupt):
    """Somebody wants the program to end; code: its exit code where it leaves no result, 128 + the signal's number."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.code = code


def _signals() -> dict[int, str]:
    known = {signal.SIGINT: "interrupted from the keyboard", signal.SIGTERM: "interrupted: told to end (SIGTERM)"}
    if hasattr(signal, "SIGHUP"):
        known[signal.SIGHUP] = "interrupted: the terminal was closed (SIGHUP)"
    return {int(number): words for number, words in known.items()}


class Ends:
    """What was heard while a program runs; `heard` is looked at by whoever works in periods."""

    def __init__(self, patience: float | None) -> None:
        self.heard: Ended | None = None
        self.taken = False  # it was raised, or a loop has ended for it
        self.phase: Phase = "free"
        self._patience = patience
        self._over = threading.Event()  # nobody listens any more
        self._prodded = self._orphan = False
        self._terminals = [fd for fd in (0, 1, 2) if _is_terminal(fd)]
        self._before: dict[int, object] = {}

    def take(self) -> Ended | None:
        """What was heard, from now on in good hands."""
        self.taken = self.taken or self.heard is not None
        return self.heard

    def listen(self, parent: bool) -> None:
        """Be told of signals; those that are ignored (nohup) or that somebody else handles stay as they are."""
        ours = (signal.SIG_DFL, signal.default_int_handler)
        for number in _signals():
            if signal.getsignal(number) in ours:
                self._before[number] = signal.signal(number, self._signal)
        hangup = getattr(signal, "SIGHUP", None)
        if parent and hangup in self._before and os.getppid() > 1:
            threading.Thread(target=self._watch_parent, args=(os.getppid(),), daemon=True).start()

    def leave(self) -> None:
        """Everything as it was before."""
        self._over.set()
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _signal(self, number: int, _: FrameType | None) -> None:
        prodded, self._prodded = self._prodded, False
        if self.heard is not None and not prodded:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        if self.heard is None:
            words = "interrupted: the program that started it is gone" if self._orphan else _signals()[number]
            self.heard = Ended(words, 128 + number)
            if number == getattr(signal, "SIGHUP", None):
                self._mute()
            threading.Thread(target=self._hurry, args=(number,), daemon=True).start()
        if not self.taken and (self.phase == "free" or (prodded and self.phase == "loop")):
            self.taken = True
            raise self.heard

    def _hurry(self, number: int) -> None:
        """After the first signal: wake a loop that does not come to its next period, end a program that does not."""
        begin = monotonic()
        while not self._over.wait(GRACE):
            if not self.taken and self.phase == "loop":
                self._prod(number)
            if self._patience is not None and monotonic() - begin > self._patience:
                text = f"error: ended {self._patience:g} s after the signal, before all files were written\n"
                with suppress(OSError):
                    os.write(2, text.encode())
                os._exit(128 + number)

    def _prod(self, number: int) -> None:
        self._prodded = True
        _interrupt(number)

    def _watch_parent(self, parent: int) -> None:
        while not self._over.wait(LOOK):
            if os.getppid() != parent:
                self._orphan = True
                _interrupt(signal.SIGTERM)
                return

    def _mute(self) -> None:
        """What is written to a closed terminal would be an error each time."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in self._terminals:
            os.dup2(nothing, fd)
        os.close(nothing)


_current: Ends | None = None


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def _interrupt(number: int) -> None:
    """A signal for the main thread, which ends a wait of the system's, too."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


def _mine() -> Ends | None:
    """Signals reach the main thread only: a loop in another one is ended by whoever started it."""
    return _current if threading.current_thread() is threading.main_thread() else None


@contextmanager
def ending(patience: float | None = None, *, parent: bool = False) -> Iterator[Ends]:
    """Listen to signals; within another such block: the same. Afterwards what nobody has taken is raised.

    patience [s]: the program ends at the latest so long after the first signal; None: it takes its time. parent: a
    parent that is gone ends it, too, unless SIGHUP is ignored (nohup).
    """
    global _current
    if _current is not None or threading.current_thread() is not threading.main_thread():
        yield _mine() or Ends(None)
        return
    _current = ends = Ends(patience)
    ends.listen(parent)
    try:
        yield ends
    finally:
        _current = None
        ends.leave()
    if ends.heard is not None and not ends.taken:
        raise ends.heard


@contextmanager
def in_periods() -> Iterator[Ends]:
    """For a loop: a signal is not raised but is `heard`, to be looked at in each period and taken."""
    with ending() as ends:
        before, ends.phase = ends.phase, "loop"
        try:
            yield ends
        finally:
            ends.phase = before
        if ends.phase == "free" and ends.heard is not None and not ends.taken:
            ends.taken = True
            raise ends.heard


def hold() -> None:
    """From here to the end of the command a first signal waits until the results are written; loops still hear it."""
    ends = _mine()
    if ends is not None:
        ends.phase = "results"


def told() -> Ended | None:
    """What was heard so far, None if nothing."""
    ends = _mine()
    return None if ends is None else ends.heard


def deaf() -> None:
    """For a process that belongs to another: the parent decides when it ends. A terminal tells both."""
    with suppress(ValueError):  # not in the main thread
        for number in _signals():
            signal.signal(number, signal.SIG_IGN)


def child() -> None:
    """For a worker process: as `deaf`, and it never outlives the parent."""
    deaf()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    nothing = threading.Event()
    while not nothing.wait(LOOK):
        if os.getppid() != parent:
            os._exit(1)
