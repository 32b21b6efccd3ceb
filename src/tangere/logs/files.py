"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tangere.errors import InvalidValue


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path in the same folder that takes the place of `path` when the block ends without an error.

    A process killed meanwhile leaves the old file, if there was one, and a stray file that begins with a dot. A device
    or pipe is never replaced: it is `path` itself that is yielded.
    """
    target = Path(path)
    if target.is_char_device() or target.is_fifo():
        try:
            yield target
        except OSError as problem:
            raise InvalidValue(f"cannot write {target}: {problem.strerror or problem}") from problem
        return
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as problem:
        raise InvalidValue(f"cannot write {target}: {problem.strerror or problem}") from problem
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
        raise InvalidValue(f"cannot write {target}: {problem.strerror or problem}") from problem
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
