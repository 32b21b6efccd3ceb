"""Progress of long work, on a terminal only: standard error, one line that is written over and over."""

from __future__ import annotations

import sys
import time

_WIDTH = 30  # characters of the bar
_LINE = 100  # characters that are cleared at the end: bar and words


def _drawn(share: float) -> str:
    full = int(_WIDTH * min(1.0, max(0.0, share)))
    return "[" + "#" * full + "-" * (_WIDTH - full) + "]"


class Line:
    """What is being done: `say(text)`; at the end the line is cleared."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        if self._shown:
            print(f"\r{text[: _LINE - 1].ljust(_LINE - 1)}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clear the line; may be called twice."""
        if self._shown:
            print("\r" + " " * _LINE + "\r", end="", file=sys.stderr, flush=True)

    def leave(self) -> None:
        """Let the line stay and go to the next."""
        if self._shown:
            print(file=sys.stderr)


class Bar(Line):
    """Work of a known size: `bar(what, share)` with the seconds that are left once they can be told."""

    def __init__(self) -> None:
        super().__init__()
        self._start = time.perf_counter()

    def __call__(self, what: str, share: float = 0.0) -> None:
        past = time.perf_counter() - self._start
        # before a tenth of the work and half a second of time an estimate is a guess
        left = f", {past / share - past:.0f} s left" if share > 0.1 and past > 0.5 else ""
        super().__call__(f"{_drawn(share)} {what}{left}")


class Clock:
    """A simulation: `clock(elapsed, duration)` in simulated seconds, with the real-time factor; the line stays."""

    def __init__(self) -> None:
        self._line = Line()
        self._start = time.perf_counter()

    def __call__(self, elapsed: float, duration: float) -> None:
        factor = elapsed / max(1e-9, time.perf_counter() - self._start)
        self._line(f"{_drawn(elapsed / duration)} {elapsed:6.1f} of {duration:.1f} s, {factor:.1f}x real time")

    def end(self) -> None:
        """Leave the line."""
        self._line.leave()
