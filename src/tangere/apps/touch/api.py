"""Touch from Python: excite, identify, tune, watch as functions that take files, logs or lines and give values."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tangere.apps.touch.options import model_file
from tangere.errors import InvalidValue
from tangere.figures.markup import join, tag
from tangere.figures.plots import number_row, small_table
from tangere.identification.belief import belief, read
from tangere.identification.excite import ExcitingMotion
from tangere.identification.excite import excite as plan
from tangere.identification.identify_logs import Identification, identification
from tangere.identification.model import IdentifiedModel, read_model
from tangere.logs.log import Log
from tangere.logs.recordings import Recording, all_recordings, cleaned, recordings
from tangere.loop.follow import Follower, watch_recording
from tangere.loop.tuning import Tuned, tuning
from tangere.loop.watching import Watched
from tangere.report.terminal import plural
from tangere.robots import Robot, as_robot
from tangere.types import Array, Event

if TYPE_CHECKING:
    from tangere.observe.detect import PayloadChange, Thresholds, Wanted

Source: TypeAlias = str | os.PathLike[str] | Log | Recording
Named: TypeAlias = Robot | str | os.PathLike[str]


@dataclass(frozen=True, repr=False)
class LearnedModel:
    """A model that identify or tune learned: kept by `save`, shown by `report`, taken by tune, watch and run."""

    model: IdentifiedModel
    robot: Robot  # the arm by its data sheet, as it was given
    learned: Identification | Tuned  # all that is known of how it came about

    @property
    def thresholds(self) -> Thresholds | None:
        """Those that tune has learned; None before."""
        return self.learned.thresholds if isinstance(self.learned, Tuned) else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences: what the logs could not tell, what looks wrong in them."""
        said = self.learned.doubts if isinstance(self.learned, Tuned) else self.model.findings
        return tuple(str(text) for text in said)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model file (.toml), which `tangere.robot(..., parameters=)`, tune, watch and --model take."""
        where = model_file(path)
        self.model.write(where)
        return where

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the page: the fit and its judges, or the residuals of the free logs with the thresholds."""
        if isinstance(self.learned, Tuned):
            from tangere.apps.touch.page_watched import write_watched

            return write_watched(self.learned.logs, path, learned=True)
        from tangere.apps.touch.page_identified import write_identified

        return write_identified(self.learned, path)

    def __str__(self) -> str:
        if isinstance(self.learned, Tuned):
            from tangere.apps.touch.learn_commands import promise

            return promise(self.learned, self.learned.thresholds.rate)
        from tangere.apps.touch.learn_commands import summary

        return summary(self.learned)

    def __repr__(self) -> str:
        logs = self.learned.logs if isinstance(self.learned, Tuned) else self.learned.used
        how = "identified" if self.thresholds is None else "tuned"
        return f"LearnedModel({self.model.name!r}, {how} from {plural(len(logs), 'log')})"

    def _repr_html_(self) -> str:
        return tag("pre", str(self))


@dataclass(frozen=True, repr=False)
class WatchedLogs:
    """What was felt in one log or several."""

    logs: tuple[Watched, ...]  # each with residual, signals, bounds and events; none for a stream
    events: tuple[Event, ...]  # of all logs, in their order
    seconds: float  # that were watched
    notes: tuple[str, ...] = field(default=())  # sentences about logs and model

    @property
    def alarms(self) -> tuple[Event, ...]:
        """Events that a reaction would have been told of."""
        return tuple(event for event in self.events if event.alarm)

    @property
    def score(self) -> Array:
        """(N,) the largest signal against its threshold, sample by sample; 1 is an alarm, nan: not watched."""
        parts = [seen.traces.score for seen in self.logs]
        return np.concatenate(parts) if parts else np.zeros(0)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the page with residuals, thresholds and events."""
        if not self.logs:
            raise InvalidValue("of a stream no page is written; record it and watch the file")
        from tangere.apps.touch.page_watched import write_watched

        return write_watched(self.logs, path)

    def __repr__(self) -> str:
        alarms, events = plural(len(self.alarms), "alarm"), plural(len(self.events), "event")
        return f"WatchedLogs({alarms}, {events} in {self.seconds:.1f} s)"

    def _repr_html_(self) -> str:
        rows = [
            (*number_row([e.time_s, e.onset_s], 6), e.kind, str(e.link or "?"), str(e.joint),
             *number_row([e.torque_nm]), "alarm" if e.alarm else "")
            for e in self.events
        ]  # fmt: skip
        unit = self.logs[0].belief.robot.units("Nm") if self.logs else "Nm"
        head = ("time [s]", "onset [s]", "what", "link", "joint", f"torque [{unit}]", "")
        return join(repr(self), small_table(head, rows))


def excite(robot: Named, box: Sequence[float] | None = None, **how: Any) -> ExcitingMotion:
    """Plan the motion worth recording for identify, in a box of free space; `save` writes it as .csv or .script.

    robot: a name, a file or a Robot. box: x, y, z of two opposite corners in base axes [m]; None: all on the arm's side
    of its mounting. how: seconds, seed, start, speed, tool_speed, tool, progress, as
    tangere.identification.excite.excite has them. What it will identify is in `forecast`.
    """
    return plan(as_robot(robot), box, **how)


def identify(
    logs: Source | Sequence[Source],
    robot: Named,
    *,
    columns: str | None = None,
    sample_rate: float | None = None,
    gain: Sequence[float] | None = None,
    hold_out: str | float | None = None,
    inertial: Literal["links", "payload", "none"] = "links",
    refine_gains: bool = True,
    progress: Callable[[str, float], None] = lambda what, share: None,
) -> LearnedModel:
    """Learn drives, friction, payload or links of an arm from logs of free motion (`tangere identify`).

    logs: files (csv, mcap, npz, npz:KEY-GLOB, with * and ?) or Logs; robot: the arm, or its name. columns: of a csv
    without a header; sample_rate [1/s]: of data without stamps; gain (n,) [Nm/A]: where it is known better; hold_out:
    share of the logs, or names of them, that only judge (default 0.25); inertial: what else is identified beside the
    drives; refine_gains: let gravity correct the gains. progress(what, share): called meanwhile.
    """
    arm = as_robot(robot)
    options: dict[str, Any] = {"gain": gain, "hold_out": hold_out, "inertial": inertial, "refine_gains": refine_gains}
    done = identification(arm, recorded(logs, columns, sample_rate, learned=True), progress=progress, **options)
    return LearnedModel(done.model, arm, done)


def tune(
    model: LearnedModel | IdentifiedModel | str | os.PathLike[str],
    logs: Source | Sequence[Source],
    *,
    rate: str | float = "0.1/h",
    robot: Named | None = None,
    columns: str | None = None,
    sample_rate: float | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> LearnedModel:
    """Learn thresholds for a promised rate of false alarms from other free motion (`tangere tune`).

    model: of identify, or its file; logs as identify takes them; rate: "0.1/h", "1/day", or a number per hour. robot:
    the arm that the model is one of, where its name does not say it (an own file, a payload, a mounting).
    """
    alarms = per_hour(rate)
    known, arm = _model(model, robot)
    assert known is not None
    believed = belief(arm, known, payload=arm.model.payload)
    read_logs = [read(r, arm, known, arm.model.payload) for r in recorded(logs, columns, sample_rate, learned=True)]
    done = tuning(arm, read_logs, believed, alarms, progress=progress)
    return LearnedModel(done.model, arm, done)


def watch(
    logs: Source | Sequence[Source] | Iterator[str],
    robot: Named | None = None,
    model: LearnedModel | IdentifiedModel | str | os.PathLike[str] | None = None,
    *,
    wanted: Sequence[Wanted] = (),
    payload_changes: Sequence[PayloadChange] = (),
    columns: str | None = None,
    sample_rate: float | None = None,
    tell: Callable[[Event], None] = lambda event: None,
    progress: Callable[[float], None] = lambda share: None,
) -> WatchedLogs:
    """Find touches in logs (`tangere watch`), or in a stream while it lasts.

    logs: files or Logs as identify takes them, or an iterator over lines of csv (an open file, a socket), which is
    followed to its end. robot: the arm, or its name; not needed where a model says it. Without a model friction is
    learned from what each log has shown so far (after 5 and 15 s), of a file as of a stream. wanted, payload_changes:
    when contacts are expected (observe.detect). tell: is given each event of a stream in each of its phases. None of
    this is a safety function.
    """
    known, arm = _model(model, robot)
    payload = arm.model.payload
    believed = belief(arm, known, payload=payload)
    masks: dict[str, Any] = {"wanted": wanted, "payload_changes": payload_changes}
    if isinstance(logs, Iterator):
        follower = Follower(arm, believed, payload=payload, columns=columns, rate=sample_rate, **masks)
        follower.follow(logs, tell)
        problems = [f"{count} {what}" for what, count in follower.problems.items()]
        return WatchedLogs((), follower.events, follower.seconds, (*map(str, follower.said), *problems))
    done, notes = [], []
    read_logs = recorded(logs, columns, sample_rate)
    for k, recording in enumerate(read_logs):
        seen = watch_recording(
            recording, arm, believed, payload, **masks,
            progress=lambda share, k=k: progress((k + share) / len(read_logs)),  # type: ignore[misc]
        )  # fmt: skip
        notes += [f"{recording.name}: {text}" for text in (*seen.log.problems, *seen.said)]
        done.append(seen)
    events = tuple(event for seen in done for event in seen.events)
    return WatchedLogs(tuple(done), events, sum(seen.seconds for seen in done), tuple(notes))


def per_hour(rate: str | float) -> float:
    """False alarms per hour from "0.1/h", "1/day", or a number of them."""
    from tangere.apps.touch.learn_commands import rates

    return rates([rate if isinstance(rate, str) else f"{rate!r}/h"], None)[0]


def recorded(
    logs: Source | Sequence[Source], columns: str | None, rate: float | None, *, learned: bool = False
) -> list[Recording]:
    """Everything that was given as recordings: files by name or glob, logs, recordings; one, or a sequence of them.

    learned: they are learned from, all of them at once, for which stretches of a long file are enough (recordings).
    """
    given = [logs] if isinstance(logs, str | os.PathLike | Log | Recording) else list(logs)
    found: list[Recording] = []
    for k, source in enumerate(given):
        if isinstance(source, Recording):
            found.append(source)
        elif isinstance(source, Log):
            digest = hashlib.sha256(b"".join(np.ascontiguousarray(c).tobytes() for c in source.columns.values()))
            found.append(cleaned(f"log {k + 1}", source, digest.hexdigest()))
        else:
            for name in _files(os.fspath(source)):
                found += recordings(name, columns=columns, rate=rate, share=1.0 / len(given) if learned else None)
    if not found:
        raise InvalidValue("logs: at least one file or log")
    return all_recordings(found)  # each with a name of its own


def _files(name: str) -> list[str]:
    """The files that a name with * or ? stands for, in order of their names; the keys of an npz are not files."""
    if Path(name).exists() or ".npz:" in name or not glob.has_magic(name):
        return [name]
    files = sorted(glob.glob(name))
    if not files:
        raise InvalidValue(f"{name}: no file of that name")
    return files


def _model(
    model: LearnedModel | IdentifiedModel | str | os.PathLike[str] | None, robot: Named | None
) -> tuple[IdentifiedModel | None, Robot]:
    """The model, and the arm that it is one of: the one given, that of a learned model, or the one of its name."""
    if isinstance(model, LearnedModel):
        return model.model, model.robot if robot is None else as_robot(robot)
    if model is None:
        if robot is None:
            raise InvalidValue("robot: the arm that was recorded, or its name; or a model that says it")
        return None, as_robot(robot)
    if not isinstance(model, IdentifiedModel):
        own = robot if isinstance(robot, str) and robot.endswith((".toml", ".urdf")) else None
        model = read_model(model, own)
    return model, as_robot(model.name if robot is None else robot)
