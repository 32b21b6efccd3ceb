"""Record what an arm does, from its network port into a log; and its factory calibration into a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tangere import ends
from tangere.errors import CannotWrite, InvalidValue, PlantLost
from tangere.logs.csv_log import CsvSink
from tangere.logs.files import write_text
from tangere.logs.mcap_log import McapSink, mcap_sink
from tangere.loop.recorder import Recorder
from tangere.model.calibration import calibration_text, dh_frames
from tangere.model.loading import load
from tangere.robots import Robot
from tangere.rtde.client import Address
from tangere.rtde.primary import PORT, Told, arm_name, introduction, refuse_another
from tangere.rtde.rows import RtdeRows


@dataclass(frozen=True)
class Recorded:
    """What a recording came to."""

    path: Path
    samples: int
    seconds: float
    problems: dict[str, int]
    columns: tuple[str, ...]


def record(
    address: Address,
    out: str | os.PathLike[str],
    *,
    seconds: float,
    robot: Robot | None = None,
    progress: Callable[[float], None] | None = None,
    tell: Callable[[str], None] | None = None,
    max_log: float | None = None,
    durable: bool = False,
) -> Recorded:
    """Listen for that long [s] and leave a log, written meanwhile: .mcap, or .csv (unfinished-NAME until its end).

    Ctrl-C and other signals end it early; what was recorded stays. max_log [bytes]: of the .mcap and the part before
    it, NAME.1.mcap, together. durable: what is written is on the disk before more is (a power cut).
    """
    path = Path(out)
    if path.suffix not in (".mcap", ".csv"):
        raise InvalidValue(f"--out: a log ends in .mcap or .csv, got {os.fspath(out)!r}")
    if path.suffix == ".csv" and (max_log is not None or durable):
        raise InvalidValue("--max-log, --durable: of an .mcap, which is written while it is recorded")
    if not path.parent.is_dir():
        raise InvalidValue(f"--out: there is no folder {path.parent}")
    if robot is not None:
        refuse_another(address.host, robot)
    if path.exists() and max_log is None and tell is not None:
        tell(f"{path} held an earlier log, which this one replaces")
    rows = RtdeRows(address, seconds=seconds, tell=tell)
    recorder: Recorder | None = None
    sink: McapSink | CsvSink | None = None
    start = 0.0
    last = 0.0
    scalars: tuple[str, ...] = ()
    vectors: dict[str, int] = {}
    ends.hold()
    try:
        with ends.in_periods() as end, suppress(KeyboardInterrupt), closing(rows):
            for row in rows:
                if end.take() is not None:
                    break
                if recorder is None:
                    scalars = ("time", *(name for name, value in row.values.items() if value.ndim == 0))
                    vectors = {name: value.size for name, value in row.values.items() if value.ndim}
                    columns = dict.fromkeys(scalars, 0) | vectors
                    if path.suffix == ".csv":
                        sink = CsvSink(path, columns)
                    else:
                        how: Any = {"joints": None if robot is None else robot.joint_names, "robot": robot}
                        sink = mcap_sink(path, columns, most=max_log, durable=durable, **how)
                    recorder = Recorder(scalars, vectors, sink, keep=False)
                    start = row.time
                numbers = (row.time, *(float(row.values[name]) for name in scalars[1:]))
                recorder.append(numbers, tuple(row.values[name] for name in vectors), perf_counter())
                last = row.time
                if progress is not None and recorder.samples % 100 == 0:
                    progress(min(1.0, (row.time - start) / seconds))
    finally:
        if recorder is not None:
            recorder.flush()
        if sink is not None:
            sink.close()
    if recorder is None:
        raise PlantLost(f"{rows.name}: no sample came")
    if sink is not None and sink.error:
        raise CannotWrite(f"{path} is not complete: {sink.error}")
    return Recorded(path, recorder.samples, last - start, dict(rows.problems), (*scalars, *vectors))


def calibration(address: Address, out: str | os.PathLike[str], robot: str | None = None) -> tuple[Path, Told, str]:
    """Read the arm's DH parameters from its primary interface and write them as calibration.yaml.

    robot: which arm it is; by default what the controller says (an e-Series arm from version 5 on). Gives the path,
    what the controller told, and the name of the arm.
    """
    told = introduction(address.host, PORT, wait=3.0)
    if told.calibration is None:
        raise PlantLost(f"{address.host}: the primary interface (port {PORT}) did not tell its calibration within 3 s")
    name = robot or arm_name(told)
    model = load(name)
    found = told.calibration
    rows = [np.array(row) for row in (found.theta, found.a, found.d, found.alpha)]
    table = dh_frames(model, *rows)
    checksum = "_".join(f"{number:08x}" for number in found.checksum)
    return write_text(out, calibration_text(table, checksum)), told, name
