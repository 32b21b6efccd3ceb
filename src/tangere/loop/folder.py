"""The folder of a run: what lies in it, and how it is made ready without touching what is not ours."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tangere.errors import InvalidValue
from tangere.logs.log import Log
from tangere.loop.manifest import NAME as MANIFEST

LOG, CSV, SUMMARY, REPORT, VIDEO = "log.mcap", "log.csv", "summary.json", "report.html", "video.mp4"
# columns that are measured time, not part of what is computed
CLOCK = ("cost", "cost_log", "lateness", "cpu")
# samples up to which a run leaves a csv beside its MCAP without being asked: 2 kB each, and 0.1 ms of writing
CSV_MAX = 20_000


def holds(out: str | os.PathLike[str]) -> bool:
    """Whether an earlier run or drawing lies in a folder."""
    return (Path(out) / MANIFEST).is_file()


def cleared(
    out: str | os.PathLike[str],
    ours: Sequence[str] = (SUMMARY, REPORT, LOG, CSV, VIDEO),
    *,
    what: str = "run",
    harmless: Collection[str] = (),
) -> Path:
    """The folder, made and proven writable, without the files of an earlier run; those of others stay.

    ours: names that a run leaves there, what makes the folder look whole first. Where some are there without a
    manifest.json it is not the folder of a run: InvalidValue, unless all of them are `harmless`. what: "run",
    "drawing", for the message.
    """
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = [name for name in ours if (folder / name).exists()]
        if foreign and not holds(folder) and not set(foreign) <= set(harmless):
            raise InvalidValue(
                f"{folder} holds {', '.join(foreign)} but no {MANIFEST}: not the folder of a {what}, so nothing is "
                "overwritten there; choose another --out"
            )
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
        for name in (*ours, MANIFEST):
            (folder / name).unlink(missing_ok=True)
            for stray in folder.glob(f".{name}.*.part"):  # of a run that was killed
                stray.unlink(missing_ok=True)
    except OSError as problem:
        raise InvalidValue(f"cannot write into {folder}: {problem.strerror or problem}") from None
    return folder


@contextmanager
def scratch() -> Iterator[str]:
    """A folder for a run that is made again, gone afterwards."""
    place = tempfile.mkdtemp(prefix="tangere-rerun-")
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def difference(one: Log, other: Log) -> str:
    """"" if every column is the same bit by bit (the clock's aside); else the first that is not."""
    for name in dict.fromkeys((*one.columns, *other.columns)):
        if name in CLOCK:
            continue
        if name not in one:
            return f"column {name}: none against {other[name].shape}"
        if name not in other or one[name].shape != other[name].shape:
            return f"column {name}: {one[name].shape} against {other[name].shape if name in other else 'none'}"
        same = np.array_equal(one[name].view(np.uint64), other[name].view(np.uint64))
        if not same:
            row = int(np.argmax(np.any(np.atleast_2d((one[name] != other[name]).T).T, axis=-1)))
            return f"column {name} from {one.time[row]:.6f} s on"
    return ""
