"""Files that appear whole or not at all, and values as JSON knows them."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from tangere.errors import CannotWrite, InvalidValue


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path in the same folder that takes the place of `path` when the block ends without an error.

    A process killed meanwhile leaves the old file, if there was one, and a stray file that begins with a dot. A device
    or pipe is never replaced: it is `path` itself that is yielded.
    """
    target = Path(path)
    try:
        itself = target.is_char_device() or target.is_fifo()
        if not itself:  # the name is cut: with what is added it is not longer than a name may be
            handle, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", suffix=".part", dir=target.parent)
    except (OSError, ValueError) as problem:  # ValueError: a null character in the name
        raise CannotWrite(f"cannot write {target}: {getattr(problem, 'strerror', None) or problem}") from problem
    if itself:
        try:
            yield target
        except OSError as problem:
            raise CannotWrite(f"cannot write {target}: {problem.strerror or problem}") from problem
        return
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)  # mkstemp makes a private file; this one is a result like any other
        with temporary.open("rb") as written:
            os.fsync(written.fileno())  # the name must not be on the disk before the content is
        temporary.replace(target)
    except OSError as problem:  # a full disk, a folder where the file should be
        raise CannotWrite(f"cannot write {target}: {problem.strerror or problem}") from problem
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


class Attempts:
    """Files written one after the other, in the order of their worth: one that fails costs itself only."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.lost: list[str] = []  # sentences: which file, and why

    def __call__(self, name: str, write: Callable[[], object]) -> None:
        """Write a file; `write` raises CannotWrite where it cannot be."""
        try:
            write()
        except CannotWrite as problem:
            self.lost.append(str(problem))
        else:
            self.kept.append(name)

    def cut(self, name: str, why: str) -> None:
        """A file that is there, but not whole."""
        if why:
            self.kept.append(f"{name} as far as it goes")
            self.lost.append(f"{name} is not complete: {why}")

    def settle(self, folder: object) -> None:
        """CannotWrite where something is missing: what, and what there is."""
        if self.lost:
            kept = f"; kept in {folder}: {', '.join(self.kept)}" if self.kept else ""
            raise CannotWrite("; ".join(self.lost) + kept)


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text file, whole or not at all, and say where it is."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")  # a name of bytes that are no text
    return Path(path)


def plain(value: Any) -> Any:
    """A value as JSON knows it: arrays and tuples as lists, paths as text, NaN and infinity as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise InvalidValue(f"{value!r} ({type(value).__name__}) cannot be written as JSON")
