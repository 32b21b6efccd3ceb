"""Files that appear whole or not at all, and values as JSON knows them."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from tangere.errors import CannotWrite, InvalidValue

if sys.platform != "win32":  # there two that write one file are not noticed
    import fcntl


class InUse(CannotWrite):
    """Another process, or another run of this one, writes there."""

    def __init__(self, path: str | os.PathLike[str], option: str) -> None:
        super().__init__(f"{path} is being written by another run; choose another {option}, or wait for its end")


def locked(fd: int) -> bool:
    """Lock an open file or folder until it is closed, however its process ends; False where somebody else has it."""
    if sys.platform != "win32":
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # a file system without locks
    return True


@contextmanager
def sole(path: Path) -> Iterator[None]:
    """Nobody else begins the log `path` while the block runs; InUse where somebody writes it."""
    while os.path.isfile(path):  # no device, which many may write
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError:  # what cannot be read is told by whoever writes
            break
        try:
            if not locked(fd):
                raise InUse(path, "log file")
            try:
                still = os.path.samestat(os.fstat(fd), path.stat())  # not replaced before it was locked
            except FileNotFoundError:
                still = False
            if still:
                yield
                return
        finally:
            os.close(fd)
    yield


@contextmanager
def replacing(path: str | os.PathLike[str], *, log: bool = False) -> Iterator[Path]:
    """A temporary path in the same folder that takes the place of `path` when the block ends without an error.

    A process killed meanwhile leaves the old file, if there was one, and a stray file that begins with a dot. A device
    or pipe is never replaced: it is `path` itself that is yielded. log: whoever writes on afterwards locks the
    temporary file, and the file of somebody who does so is not replaced (InUse).
    """
    target = Path(path)
    if log and os.path.isfile(target):
        with sole(target), replacing(target) as temporary:
            yield temporary
        return
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
        if not (log and _linked(temporary, target)):
            temporary.replace(target)
    except OSError as problem:  # a full disk, a folder where the file should be
        raise CannotWrite(f"cannot write {target}: {problem.strerror or problem}") from problem
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def _linked(temporary: Path, target: Path) -> bool:
    """Give a new file its name where nobody else was quicker (InUse); False where it cannot be given so."""
    try:
        target.hardlink_to(temporary)
    except OSError:
        if os.path.isfile(target):
            raise InUse(target, "log file") from None
        return False
    return True


def put_by(log: Path, most: float) -> None:
    """NAME.mcap becomes NAME.1.mcap, that NAME.2.mcap and so on: the newest of them that have `most` bytes together.

    InUse where somebody writes NAME.mcap.
    """
    with sole(log):
        parts = [log]
        while os.path.isfile(parts[-1]):
            parts.append(log.with_name(f"{log.stem}.{len(parts)}{log.suffix}"))
        sizes = np.cumsum([part.stat().st_size for part in parts[:-1]])
        for k in reversed(range(len(sizes))):  # where not even the log is there, none is moved
            if k == 0 or sizes[k] <= most:
                parts[k].replace(parts[k + 1])
            else:
                parts[k].unlink()


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
