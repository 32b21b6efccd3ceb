"""A run or a log as the studio replays it: where the arm was, what it felt, when something happened; and the same as
one page that needs no server and asks nothing of anyone."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tangere.errors import InvalidValue
from tangere.figures.markup import Raw, tag
from tangere.logs.files import write_text
from tangere.logs.mcap_pieces import Pieces, pieces
from tangere.logs.recordings import bag_file, read
from tangere.loop.folder import MANIFEST, SUMMARY
from tangere.loop.watching import near_misses
from tangere.report.data import RunData, put_together, run_data
from tangere.report.page import head, page_html
from tangere.report.section import Section
from tangere.report.sections_curves import joints, residual
from tangere.robots import Robot, robot
from tangere.studio.curves import picked
from tangere.studio.door import guarded_server, stop
from tangere.studio.stage import Stage
from tangere.types import Array, Event

MARKED = 20  # marks on a timeline, at most: more cover each other
# columns of a log that say what the drives did: with one of them touches can be looked for
TORQUES = ("tau", "actual_current", "actual_current_as_torque")


@dataclass(frozen=True)
class Recorded:
    """Columns of a run that a page shows. time starts where the log's does."""

    name: str
    robot: Robot
    time: Array  # (N,) [s], rising
    q: Array  # (N, n) [rad]
    residual: Array | None  # (N, n) [Nm]
    tau: Array | None  # (N, n) [Nm]
    events: tuple[Event, ...]
    notes: tuple[tuple[float, str], ...]
    said: tuple[str, ...] = ()  # what is missing, in sentences
    near: tuple[tuple[float, int, float], ...] = ()  # near misses: stamp [s], joint and share of an alarm
    unfelt: str = ""  # the file in which nobody has looked for touches yet, though one could
    how: tuple[tuple[str, Any], ...] = ()  # it is read: columns, rate
    pieces: Pieces | None = None  # of a long log: the columns are an overview, the rows come from here

    def index(self, time: float) -> int:
        """The sample nearest to that time."""
        return nearest(self.time, time)

    def samples(self, time: float) -> tuple[Array, Array]:
        """Stamps (k,) [s] and positions (k, n) [rad] of all samples around that time."""
        if self.pieces is None:
            return self.time, self.q
        log = self.pieces.around(time)
        return log.time, log["q"]

    @property
    def marks(self) -> tuple[tuple[float, str], ...]:
        """When something was felt, or nearly, with what stands at the timeline."""
        found = [(event.time_s, str(event.number)) for event in self.events]
        found += [(time, "near") for time, _, _ in self.near]
        return tuple(sorted(found[:MARKED]))

    def watched(self, progress: Callable[[float], None]) -> Recorded:
        """The same with touches that are looked for in its file now, as `tangere watch` does."""
        from tangere.apps.touch.api import watch

        told = dict(self.how)
        (seen,) = watch(
            self.unfelt, self.robot, progress=progress, columns=told.get("columns"), sample_rate=told.get("rate")
        ).logs
        residual = np.full(self.q.shape, np.nan)
        stamps = seen.log.motion.time
        at = np.clip(np.searchsorted(stamps, self.time - 1e-9), 0, len(stamps) - 1)
        same = np.abs(stamps[at] - self.time) < 1e-6  # samples that were of no use to it are left out
        residual[same] = seen.residual[at[same]]
        said = tuple(text for text in self.said if "residual" not in text) + seen.said
        return replace(self, residual=residual, events=seen.events, near=seen.near, said=said, unfelt="")


def nearest(stamps: Array, time: float) -> int:
    """The sample nearest to that time."""
    after = int(np.searchsorted(stamps, time))
    if after == 0:
        return 0
    if after == len(stamps):
        return after - 1
    return after if stamps[after] - time < time - stamps[after - 1] else after - 1


def recorded(
    source: str | os.PathLike[str] | RunData, arm: Robot | str | None = None,
    progress: Callable[[str, float], None] = lambda what, share: None, **how: Any,
) -> Recorded:  # fmt: skip
    """A run's folder, a log (.mcap, .db3, .csv, .npz:KEY) or RunData; arm: whose it is, where the log does not say.

    how: columns and rate, as logs.read takes them.
    """
    data, log, parts, file = _read(source, progress, how)
    name = data.name
    if isinstance(source, str | os.PathLike) and (not name or Path(source).is_dir()):
        name = Path(source).resolve().name  # two runs of one scenario stand in two folders
    if data.q is None or not len(data.time):
        raise InvalidValue(f"{name}: no joint positions in it, so there is nothing to show")
    found = arm if arm is not None else data.robot
    if found is None:
        raise InvalidValue(f"{name}: it does not say which arm it is of; name it with --robot NAME")
    body = found if isinstance(found, Robot) else robot(found)
    if body.dof != data.q.shape[1]:
        raise InvalidValue(f"{name}: {data.q.shape[1]} joints in the log, but {body.name} has {body.dof}")
    whole = np.isfinite(data.q).all(axis=1) & np.isfinite(data.time)
    whole[1:] &= np.diff(data.time) > 0.0
    if not whole.any():
        raise InvalidValue(f"{name}: no sample with finite joint positions")
    residual = next(iter(data.residuals.values()), None)
    can = any(column in log for column in TORQUES) if log is not None else data.tau is not None
    said, unfelt = [], ""
    if not can:
        said.append("the log has no torque: what the arm felt cannot be shown, only how it moved")
    elif residual is None:
        said.append("the log has no residual; `tangere watch` finds touches in it")
        unfelt = file if log is not None else ""
    if data.aborted:
        said.append(data.aborted)
    return Recorded(
        name, body, data.time[whole], data.q[whole], None if residual is None else residual[whole],
        None if data.tau is None else data.tau[whole], data.events, data.notes, tuple(said), _near(data, residual),
        unfelt, tuple(how.items()), parts,
    )  # fmt: skip


def shown_data(source: str | os.PathLike[str] | RunData) -> RunData:
    """What a page shows of a source; of a long log its overview."""
    return _read(source, lambda what, share: None, {})[0]


def _read(
    source: Any, progress: Callable[[str, float], None], how: dict[str, Any]
) -> tuple[RunData, Any, Pieces | None, str]:
    """What is shown, the log where it is a file by itself, the pieces of a long one, and the file."""
    if not isinstance(source, str | os.PathLike):
        return RunData.of(source), None, None, ""
    path = Path(source)
    folder = path.is_dir()
    of_ours = any((path / name).is_file() for name in (MANIFEST, SUMMARY))
    if folder and not of_ours and (bag := bag_file(path)) != path:
        return _read(bag, progress, how)
    file = next(iter(sorted(path.glob("*.mcap"))), path) if folder else path
    parts = pieces(file) if file.suffix == ".mcap" else None
    if parts is not None:
        log = parts.overview()
        data = run_data(path, log=log) if folder else put_together(log, name=path.stem)
        return data, log, parts, str(file)
    if folder or not (path.is_file() or ".npz:" in os.fspath(source)):
        return RunData.of(source), None, None, ""
    log = read(source, progress=lambda share: progress(f"reading {path.name}", share), **how)
    return put_together(log, name=path.stem), log, None, os.fspath(source)


def _near(data: RunData, residual: Array | None) -> tuple[tuple[float, int, float], ...]:
    """Where the residual came near its thresholds, as the run states them, without an event."""
    if residual is None or data.thresholds is None or len(data.thresholds) != residual.shape[1]:
        return ()
    share = np.nan_to_num(np.abs(residual) / np.maximum(data.thresholds, 1e-12))
    return near_misses(data.time, share.max(axis=1), share.argmax(axis=1) + 1, data.events)


PICTURES = 25.0  # [1/s] of the arm: smooth, and some 9 kB a second
MOST = 1500  # pictures in all: of a long run fewer a second, so that the page stays below 2 MB
SAMPLES = 240  # of a curve, the largest of each bin among them: two figures take some 150 kB


def export(source: str | os.PathLike[str] | RunData, out: str | os.PathLike[str], arm: Any = None) -> Path:
    """Write the page of a run to `out` and say where it is."""
    path = Path(out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidValue(f"--out: a file that ends with .html, got {os.fspath(out)!r}")
    data = shown_data(source)
    run = recorded(data, arm)
    length = float(run.time[-1] - run.time[0])
    count = int(np.clip(np.ceil(length * PICTURES), 2, MOST))
    server, _ = guarded_server()
    try:
        stage = Stage(server, run.robot)
        stage.arm.place(run.q[0])
        serializer = server.get_scene_serializer()
        times = np.linspace(run.time[0], run.time[-1], count)
        for time in times.tolist():
            stage.arm.place(run.q[run.index(time)])
            here = [e for e in run.events if e.time_s <= time <= (e.end_s or e.time_s + 1.0)]
            for link in range(1, run.robot.dof + 1):
                stage.arm.paint(link, here[-1].link_probability if here and here[-1].link == link else 0.0)
            serializer.insert_sleep(length / count)
        scene = serializer.as_html()
    finally:
        stop(server)
    frame = tag("iframe", srcdoc=scene, title="The arm in space; drag to turn", style=(
        "width:100%;height:min(70vh,640px);border:1px solid #8885;border-radius:8px"), sandbox="allow-scripts")
    said = [tag("p", sentence) for sentence in run.said]
    first = Section("arm", "The arm", Raw("".join(str(part) for part in (frame, *said))))
    few = _thinned(data)
    sections = [first, *(found for make in (residual, joints) if (found := make(few)) is not None)]
    return write_text(path, page_html(run.name, head(data), sections, few.time, frames=True))


def _thinned(data: RunData) -> RunData:
    """The run with some SAMPLES samples: those at which the residual is largest stay."""
    most = next(iter(data.residuals.values()), data.q)
    if most is None or len(data.time) <= SAMPLES:
        return data
    keep = picked(data.time, most, SAMPLES)
    columns = ("q", "qd", "q_des", "qd_des", "tau", "tau_ext_true", "tcp", "tcp_des", "wrench")
    changes: dict[str, Any] = {name: getattr(data, name)[keep] for name in columns if getattr(data, name) is not None}
    changes["residuals"] = {name: values[keep] for name, values in data.residuals.items()}
    return replace(data, time=data.time[keep], timing_us=None, lateness_us=None, **changes)
