"""What a watch does beside watching: it says at intervals that it lives, a line and what systemd waits for; and when a
live arm is touched a command is run, a digital output is raised. None of it holds the watch up.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, Full, Queue
from time import monotonic
from types import TracebackType

from tangere.errors import InvalidValue, PlantLost
from tangere.logs.files import plain
from tangere.rtde.client import Address, Rtde
from tangere.types import Event


def notify(text: str) -> None:
    """Tell systemd (sd_notify), where it asks to be told (NOTIFY_SOCKET); else nothing."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    if place and hasattr(socket, "AF_UNIX"):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.sendto(text.encode(), "\0" + place[1:] if place.startswith("@") else place)


class Heartbeat:
    """Calls `beat` every `seconds` in a thread of its own while the block lasts; None: never."""

    def __init__(self, seconds: float | None, beat: Callable[[], None]) -> None:
        self._seconds, self._beat = seconds, beat
        self._over = threading.Event()

    def __enter__(self) -> Heartbeat:
        notify("READY=1")
        if self._seconds is not None:
            threading.Thread(target=self._work, args=(self._seconds,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        notify("STOPPING=1")

    def _work(self, seconds: float) -> None:
        while not self._over.wait(seconds):
            notify("WATCHDOG=1")
            with suppress(OSError):  # a reader that is gone
                self._beat()


WAITING = 100  # events that wait for a slow command; more are dropped, and counted
PATIENCE = 10.0  # [s] that a command may take, and that its end is waited for
# [s] for which an output stays high after a touch has ended: who lets go swings the arm back, which is one touch for
# whoever waits for the output, and a programmable controller may look every 100 ms only
LINGER = 0.5


class Alerts:
    """Runs `command` for every event (JSON on its standard input), raises `output` of the arm while it is touched.

    The output falls LINGER seconds after the touch. tell(sentence): told of a failure when it happens first.
    """

    def __init__(
        self, command: str | None, arm: Address | None, output: int | None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:  # fmt: skip
        self._words = _words(command)
        self._tell = tell
        if output is not None and arm is None:
            raise InvalidValue("--set-output: goes with a live arm")
        self.problems: Counter[str] = Counter()
        self._queue: Queue[Event | None] = Queue(WAITING)
        self._raise = _Output(arm, output) if arm is not None and output is not None else None
        self._thread: threading.Thread | None = None
        if self._words or self._raise is not None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def event(self, event: Event) -> None:
        """Hand an event on; returns at once."""
        if self._thread is not None:
            try:
                self._queue.put_nowait(event)
            except Full:
                self._problem("events dropped: the command of --on-event is too slow")

    def close(self) -> list[str]:
        """Wait for what is under way; what went wrong."""
        if self._thread is not None:
            with suppress(Full):
                self._queue.put(None, timeout=PATIENCE)
            self._thread.join(PATIENCE)
        if self._raise is not None:
            self._raise.close()
        return [f"{count} {what}" for what, count in self.problems.items()]

    def _problem(self, what: str) -> None:
        self.problems[what] += 1
        if self.problems[what] == 1:
            self._tell(what)

    def _work(self) -> None:
        falls: float | None = None  # when the output is due to fall
        while True:
            try:
                event = self._queue.get(timeout=None if falls is None else max(falls - monotonic(), 0.0))
            except Empty:
                falls = None
                self._set(False)
                continue
            if event is None:
                break
            if event.alarm and event.phase in ("raised", "changed"):
                falls = None
                self._set(True)
            elif event.alarm and event.phase == "ended":
                falls = monotonic() + LINGER if self._raise is not None else None
            if self._words:
                self._call(event)
        if falls is not None:
            self._set(False)

    def _set(self, high: bool) -> None:
        if self._raise is not None:
            try:
                self._raise.set(high)
            except PlantLost as problem:
                self._problem(f"times that the output could not be set: {problem}")

    def _call(self, event: Event) -> None:
        text = json.dumps(plain(event.record()), allow_nan=False)
        try:
            done = subprocess.run(self._words, input=text.encode(), timeout=PATIENCE, check=False)
            if done.returncode:
                self._problem(f"times that --on-event ended with exit code {done.returncode}")
        except (OSError, subprocess.TimeoutExpired) as problem:
            self._problem(f"times that --on-event failed: {problem}")


def _words(command: str | None) -> list[str]:
    """The words of a command that can be run; InvalidValue now, not at the first touch in a month."""
    if command is None:
        return []
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise InvalidValue(f"--on-event: {command!r}: {problem}") from None
    if not words:
        raise InvalidValue("--on-event: a command is needed")
    if shutil.which(words[0]) is None:
        why = f"there is no command {words[0]!r}"
        if Path(words[0]).is_file():
            why = f"{words[0]} is there and cannot be run: `chmod +x {words[0]}`, and `#!/bin/sh` as its first line"
        raise InvalidValue(f"--on-event: {why}")
    return words


class _Output:
    """A standard digital output of the arm, by an RTDE connection of its own."""

    def __init__(self, arm: Address, number: int) -> None:
        self._bit = 1 << number
        self._rtde = Rtde(arm.host, arm.port)
        self._recipe = self._rtde.inputs(("standard_digital_output_mask", "standard_digital_output"))

    def set(self, high: bool) -> None:
        self._rtde.send(self._recipe, (self._bit, self._bit if high else 0))

    def close(self) -> None:
        self._rtde.close()
