"""A folder that a run has for itself: found without overwriting anybody's, locked while it is written."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from weakref import WeakValueDictionary

from tangere.errors import CannotWrite, InvalidValue
from tangere.loop.folder import MANIFEST, holds

if sys.platform != "win32":  # there two runs into one folder are not noticed
    import fcntl

MOST = 10_000  # folders of one name that are looked at: out/circle-2, out/circle-3, ...


class _Lock:
    """No other process works in a folder while this object lives; it ends with the process, however that ends."""

    def __init__(self, folder: Path) -> None:
        if sys.platform == "win32":
            return
        self._fd = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = f"{folder} is being written by another run; choose another --out, or wait for its end"
            raise InUse(text) from None
        except OSError:
            pass  # a file system without locks

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            with suppress(OSError):
                os.close(self._fd)


class InUse(CannotWrite):
    """Another process writes into a folder."""


_held: WeakValueDictionary[tuple[int, int], _Lock] = WeakValueDictionary()  # locks of this process, by folder


def _locked(folder: Path) -> _Lock:
    about = folder.stat()
    lock = _held.get((about.st_dev, about.st_ino))
    if lock is None:
        lock = _held[about.st_dev, about.st_ino] = _Lock(folder)
    return lock


class Claim:
    """The folder `path`, made, proven writable and locked as long as this object lives.

    ours: names that a run leaves there, what makes the folder look whole first. Those of an earlier run are removed,
    files of others stay: where some of these names are there without a manifest.json of ours it is not the folder of a
    run (InvalidValue), unless all of them are `harmless`. what: "run", "drawing", for the message. fresh: an earlier
    run stays, too: the folder is then out-2, out-3, ...
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        ours: Sequence[str],
        *,
        what: str = "run",
        harmless: Collection[str] = (),
        fresh: bool = False,
    ) -> None:
        self.asked, self._what = Path(out), what
        self.path, self.replaced = self.asked, False  # replaced: an earlier run was there
        try:
            for path in _names(self.asked) if fresh else [self.asked]:
                self.path = path
                self.path.mkdir(parents=True, exist_ok=True)
                try:
                    self._lock = _locked(self.path)
                except InUse:
                    if not fresh:
                        raise
                    continue
                there = [name for name in (*ours, MANIFEST) if (self.path / name).exists()]
                if not (fresh and there):
                    break
            else:
                raise InvalidValue(f"{self.asked} and {MOST} more of the name are taken; choose another --out")
            self.replaced = holds(self.path)
            if there and not self.replaced and not set(there) <= set(harmless):
                also = "" if MANIFEST in there else f" but no {MANIFEST}"
                raise InvalidValue(
                    f"{self.path} holds {', '.join(there)}{also} of others: not the folder of a {what}, so nothing is "
                    "overwritten there; choose another --out"
                )
            with tempfile.NamedTemporaryFile(dir=self.path):
                pass
            for name in (*ours, MANIFEST):
                (self.path / name).unlink(missing_ok=True)
                for stray in self.path.glob(f".{name}.*.part"):  # of a run that was killed
                    stray.unlink(missing_ok=True)
        except OSError as problem:
            raise CannotWrite(f"cannot write into {self.path}: {problem.strerror or problem}") from None

    @property
    def said(self) -> str:
        """What became of an earlier run, in a sentence; "" where there was none."""
        if self.path != self.asked:
            return f"{self.asked} is taken: this {self._what} is in {self.path} (--replace replaces what is there)"
        return f"{self.path} held an earlier {self._what}, which this one replaced" if self.replaced else ""


def _names(folder: Path) -> Iterator[Path]:
    yield folder
    for k in count(2):
        if k > MOST:
            return
        yield folder.with_name(f"{folder.name}-{k}")
