"""What happens when a live arm is touched: a command is run, a digital output is raised. Neither holds the watch up."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from collections import Counter
from contextlib import suppress
from queue import Full, Queue

from tangere.errors import InvalidValue, PlantLost
from tangere.logs.files import plain
from tangere.rtde.client import Address, Rtde
from tangere.types import Event

WAITING = 100  # events that wait for a slow command; more are dropped, and counted
PATIENCE = 10.0  # [s] that a command may take, and that its end is waited for


class Alerts:
    """Runs `command` for every event (JSON on its standard input), raises `output` of the arm while it is touched."""

    def __init__(self, command: str | None, arm: Address | None, output: int | None) -> None:
        self._words = shlex.split(command) if command else []
        if command is not None and not self._words:
            raise InvalidValue("--on-event: a command is needed")
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
                self.problems["events dropped: the command of --on-event is too slow"] += 1

    def close(self) -> list[str]:
        """Wait for what is under way; what went wrong."""
        if self._thread is not None:
            with suppress(Full):
                self._queue.put(None, timeout=PATIENCE)
            self._thread.join(PATIENCE)
        if self._raise is not None:
            self._raise.close()
        return [f"{count} {what}" for what, count in self.problems.items()]

    def _work(self) -> None:
        while (event := self._queue.get()) is not None:
            if self._raise is not None and event.alarm and event.phase in ("raised", "changed", "ended"):
                try:
                    self._raise.set(event.phase != "ended")
                except PlantLost as problem:
                    self.problems[f"times that the output could not be set: {problem}"] += 1
            if self._words:
                self._call(event)

    def _call(self, event: Event) -> None:
        text = json.dumps(plain(event.record()), allow_nan=False)
        try:
            done = subprocess.run(self._words, input=text.encode(), timeout=PATIENCE, check=False)
            if done.returncode:
                self.problems[f"times that --on-event ended with exit code {done.returncode}"] += 1
        except (OSError, subprocess.TimeoutExpired) as problem:
            self.problems[f"times that --on-event failed: {problem}"] += 1


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
