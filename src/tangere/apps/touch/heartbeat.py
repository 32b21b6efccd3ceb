"""A watch that runs as a service says at intervals that it lives: a line, and what systemd waits for."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType


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
