"""A text file that is still being written: its lines as they come, through rotation, truncation and removal."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tangere.errors import InvalidValue
from tangere.foreign import LONGEST

POLL = 0.05  # [s] between two looks at a file that grows
SILENT = 5.0  # [s] without a line after which that is said: a robot writes many in each
PIECE = 1 << 16  # [bytes] read at once


def lines_of(
    path: str | Path,
    *,
    patience: float = np.inf,
    tell: Callable[[str], None] = lambda text: None,
    silent: float = SILENT,
) -> Iterator[str]:
    """Lines of a file, those that are still to be written included; ends after `patience` seconds without any.

    A file that is replaced (rotated) is read to its end, then the new one from its beginning; one that was truncated
    from its beginning; one that was removed is waited for. Bytes that are no UTF-8 are replaced, so that they cost
    their line. A line of more than a million characters is left out. tell: called with a sentence about each of these,
    and where nothing has come for `silent` seconds.
    """
    return _Growing(Path(path), tell).lines(patience, silent)


class _Growing:
    def __init__(self, path: Path, tell: Callable[[str], None]) -> None:
        self._path, self._tell = path, tell
        self._missing = False
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as problem:
            raise InvalidValue(f"cannot read {path}: {problem.strerror or problem}") from problem

    def lines(self, patience: float, silent: float) -> Iterator[str]:
        rest, long, waited, first = b"", False, 0.0, True
        while True:
            piece = self._file.read(PIECE)
            if not piece:
                if self._turned():
                    rest, first = b"", True
                    continue
                if waited >= patience:
                    break
                clock.sleep(POLL)
                before, waited = waited, waited + POLL
                if before < silent <= waited:
                    self._tell(f"no line has come for {silent:g} s")
                continue
            if waited >= silent:
                self._tell(f"lines come again, after {waited:.0f} s")
            waited = 0.0
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                text = line.decode("utf-8-sig" if first else "utf-8", errors="replace")
                first = False
                if not long:
                    yield text + "\n"
                long = False
            if len(rest) > LONGEST:
                if not long:
                    self._tell(f"a line of more than {LONGEST} characters was left out")
                rest, long = b"", True
        self._file.close()
        if rest.strip() and not long:
            yield rest.decode("utf-8", errors="replace")

    def _turned(self) -> bool:
        """At the end of what there is: whether it goes on elsewhere."""
        try:
            about = os.stat(self._path)
        except OSError:
            if not self._missing:
                self._tell("the file was removed; waiting for it")
            self._missing = True
            return False
        here = os.fstat(self._file.fileno())
        if (about.st_dev, about.st_ino) != (here.st_dev, here.st_ino):
            try:
                new = self._path.open("rb")
            except OSError:
                return False
            self._file.close()
            self._file, self._missing = new, False
            self._tell("the file was replaced: read on from the beginning of the new one")
            return True
        self._missing = False
        if about.st_size < self._file.tell():
            self._file.seek(0)
            self._tell("the file was truncated: read on from its beginning")
            return True
        return False
