"""The folder of a run: what lies in it, and how it is made ready without touching what is not ours."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from tangere.errors import InvalidValue
from tangere.loop.manifest import NAME as MANIFEST

LOG, CSV, SUMMARY, REPORT, VIDEO = "log.mcap", "log.csv", "summary.json", "report.html", "video.mp4"
CSV_MAX = 100_000  # samples; a csv takes 2 kB each: longer runs leave the MCAP only


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
        if foreign and not (folder / MANIFEST).exists() and not set(foreign) <= set(harmless):
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
