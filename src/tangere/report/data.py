"""What a report is made of: one run as plain columns, from a result, a folder or a log, or put together by hand."""

from __future__ import annotations

import base64
import datetime as dates
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tangere import foreign
from tangere.errors import InvalidValue
from tangere.logs.log import NO_END, Log
from tangere.logs.recordings import READERS, read
from tangere.logs.thinned import thinned
from tangere.types import KINDS, Array, Event

if TYPE_CHECKING:
    from tangere.robots import Robot

# A clip larger than this is left beside the report instead of inside it [bytes]: 150 frames take a tenth of it.
_CLIP = 8_000_000
_LOGO = 1_000_000  # bytes of a logo: it is in the page, and a page is 2 MB
MOST = 32  # joints that an event may name where the log does not say how many there are
# columns of a log that the report shows under the same name
_SAME = ("q", "qd", "q_des", "qd_des", "tau_ext_true", "score")


@dataclass(frozen=True)
class About:
    """What somebody wants at the top of a page: a title in place of the run's name, who made it, a logo, a date."""

    title: str = ""
    author: str = ""
    logo: str = ""  # a data: address of a picture
    date: str = ""

    @classmethod
    def given(cls, title: str = "", author: str = "", logo: str = "", date: str = "") -> About:
        """As options give it: logo a file (svg, png, jpg); a page with any of these has today's date if no other."""
        if (author or logo) and not date:
            date = dates.date.today().isoformat()
        return cls(title, author, _picture(logo) if logo else "", date)


def _picture(path: str) -> str:
    """A picture as a data: address."""
    kind = {"svg": "svg+xml", "png": "png", "jpg": "jpeg", "jpeg": "jpeg"}.get(path.rpartition(".")[2].lower())
    if kind is None:
        raise InvalidValue(f"--logo: a file that ends with .svg, .png or .jpg, got {path!r}")
    try:
        raw = foreign.read_bytes(path, _LOGO)
    except InvalidValue as problem:
        raise InvalidValue(f"--logo: {problem}") from problem
    return f"data:image/{kind};base64,{base64.b64encode(raw).decode('ascii')}"


@dataclass(frozen=True)
class RunData:
    """One run as the report shows it. Every column may be absent (None) or hold NaN: that is said, not drawn.

    Columns: time (N,) s; q, qd, q_des, qd_des, tau, tau_ext_true (N, n) rad, rad/s, Nm; tcp, tcp_des (N, 3) m in the
    base frame; timing_us (N,) what controller and observer took in each period. residuals: name of the observer ->
    (N, n) Nm. Signs as everywhere: tau includes gravity, tau_ext is what the environment does to the robot.
    """

    name: str
    command: str = ""  # what makes the run again
    parameters: Mapping[str, Any] = field(default_factory=dict)  # "radius [m]" -> 0.15
    robot: Robot | str | None = None
    blocks: Mapping[str, str] = field(default_factory=dict)  # reference, controller, plant, observer, detection
    time: Array = field(default_factory=lambda: np.zeros(0))
    q: Array | None = None
    qd: Array | None = None
    q_des: Array | None = None
    qd_des: Array | None = None
    tau: Array | None = None
    residuals: Mapping[str, Array] = field(default_factory=dict)
    tau_ext_true: Array | None = None
    tcp: Array | None = None
    tcp_des: Array | None = None
    wrench: Array | None = None  # (N, 6) at the tcp, of the environment on the robot, base axes [N, Nm]
    timing_us: Array | None = None
    lateness_us: Array | None = None  # (N,) how long after its due time a paced period began
    score: Array | None = None  # (N,) the largest signal against its threshold, 1 is an alarm
    thresholds: Array | None = None  # (n,) Nm
    tau_max: Array | None = None  # (n,) Nm; the robot's where it is absent
    period: float | None = None  # s, nominal
    events: tuple[Event, ...] = ()
    notes: tuple[tuple[float, str], ...] = ()  # (s, what the controller had to limit, hold or ramp down)
    summary: Mapping[str, Any] = field(default_factory=dict)
    aborted: str = ""  # why the run ended early; "" if it did not
    doubtful: str = ""  # what may be missing of the log; "": nothing
    video: bytes | None = None  # an mp4 to embed
    did: str = ""  # what the arm did, after its name: "drew a circle"
    changed: tuple[str, ...] | None = None  # parameters that are not at their defaults; None: not known
    bodies: tuple[Mapping[str, Any], ...] = ()  # what stood around the arm, as figures.things.thing reads it
    live: bool = False  # an arm that is there: no simulation, and no factor of real time
    about: About = field(default_factory=lambda: About())  # title, author, logo and date that somebody gave

    def __post_init__(self) -> None:
        time = np.asarray(self.time, dtype=np.float64)
        if time.ndim != 1:
            raise InvalidValue(f"time must be (N,), got shape {time.shape}")
        made: dict[str, Any] = {"time": time}
        for names, width in ((("q", "qd", "q_des", "qd_des", "tau", "tau_ext_true"), 0), (("tcp", "tcp_des"), 3),
                             (("wrench",), 6)):  # fmt: skip
            given = {name: getattr(self, name) for name in names}
            made |= {name: _column(name, v, len(time), width) for name, v in given.items() if v is not None}
        made["residuals"] = {str(k): _column(f"residual {k!r}", v, len(time), 0) for k, v in self.residuals.items()}
        for name in ("timing_us", "lateness_us", "score", "thresholds", "tau_max"):
            if (value := getattr(self, name)) is not None:
                made[name] = np.atleast_1d(np.asarray(value, dtype=np.float64))
                if made[name].ndim != 1:
                    raise InvalidValue(f"{name} must be (N,), got shape {made[name].shape}")
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, source: Any, **changes: Any) -> RunData:
        """Of a run's folder, its log (.mcap, .csv, Log) or its result; `changes` are fields that are known better."""
        if isinstance(source, RunData) or hasattr(source, "data"):
            data: RunData = source if isinstance(source, RunData) else source.data()
            return replace(data, **changes)
        return run_data(source, **changes)

    @property
    def judged(self) -> list[tuple[Event, Mapping[str, Any]]]:
        """Each event with its entry in the summary, which knows more: torque_nm as its mean, true_torque_nm, delay_ms.

        Where the summary has none, the entry is what the event itself says.
        """
        at = {_number(entry.get("time_s")): entry for entry in entries_of(self.summary, "events")}
        return [(event, at.get(event.time_s, {"torque_nm": event.torque_nm})) for event in self.events]

    @property
    def dof(self) -> int:
        """Number of joints, from the first column that has any; 0 for an empty run."""
        for column in (self.q, self.q_des, self.tau, self.tau_ext_true, *self.residuals.values()):
            if column is not None:
                return int(column.shape[1])
        return 0


def _column(name: str, value: ArrayLike, rows: int, width: int) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != rows or (width and array.shape[1] != width):
        raise InvalidValue(f"{name} must be ({rows}, {width or 'n'}), got shape {array.shape}")
    return array


def run_data(source: str | os.PathLike[str] | Log, *, log: Log | None = None, **changes: Any) -> RunData:
    """RunData of a folder, a log file (.mcap, .csv) or a Log; `changes` replace what was found.

    A folder needs no more than a log: manifest.json, summary.json and video.mp4 are used where they are there. log: in
    place of the one in the folder, where it was read before.
    """
    if isinstance(source, Log):
        return put_together(source, **changes)
    if not isinstance(source, str | os.PathLike):
        raise InvalidValue(f"a report is made of a run's folder, log file, Log or result, got {type(source).__name__}")
    path = Path(source)
    if path.is_file():
        return put_together(read(path, long=True), **({"name": path.stem} | changes))
    if not path.is_dir():
        raise InvalidValue(f"no run at {path}: expected the folder of a run or a log file (.mcap, .csv)")
    logs = [file for ending in (*READERS, ".csv") for file in sorted(path.glob(f"*{ending}"))]
    summary = _read_json(path / "summary.json")
    manifest = _read_json(path / "manifest.json")
    if not logs and not summary and not manifest:
        raise InvalidValue(f"no run in {path}: no log (*.mcap, *.csv), no summary.json, no manifest.json")
    named = {"name": _name(manifest) or path.resolve().name, "video": clip_of(path)}
    found = log if log is not None or not logs else read(logs[0], long=True)
    return put_together(found, manifest, summary, **(named | changes))


def put_together(
    log: Log | None, manifest: Mapping[str, Any] | None = None, summary: Mapping[str, Any] | None = None, **changes: Any
) -> RunData:
    """RunData of a log and of what manifest.json and summary.json hold; `changes` are fields that are known better."""
    known = {f.name for f in fields(RunData)}
    if not set(changes) <= known:
        raise InvalidValue(f"no such fields: {sorted(set(changes) - known)}; known: {', '.join(sorted(known))}")
    manifest, summary = manifest or {}, summary or {}
    found: dict[str, Any] = {"name": _name(manifest) or "run"}
    found |= of_log(log) if log is not None else {"aborted": "The run left no log."}
    found |= _of_manifest(manifest) if manifest else {}
    found["summary"] = summary
    thresholds = summary.get("thresholds_nm")
    if isinstance(thresholds, list) and all(_number(value) is not None for value in thresholds):
        found["thresholds"] = np.array(thresholds, dtype=np.float64)
    if summary.get("aborted"):
        found["aborted"] = str(summary["aborted"])
    # names of blocks are added to those found before, everything else takes the place of what was found
    own = {str(k): str(v) for k, v in _mapping(summary.get("blocks")).items()}
    blocks = {"blocks": {**found.get("blocks", {}), **own, **changes.get("blocks", {})}}
    made = RunData(**(found | changes | blocks))
    if "events" in changes:
        return made
    return replace(made, events=events_of(summary, made.dof or MOST, () if log is None else log.events))


def clip_of(folder: Path) -> bytes | None:
    """The clip of a run's folder; None where there is none or it is too large to be embedded."""
    clip = folder / "video.mp4"
    return clip.read_bytes() if clip.is_file() and clip.stat().st_size <= _CLIP else None


def of_log(whole: Log) -> dict[str, Any]:
    """The columns of a log under the report's names; of a long one the rows that tell most (thinned)."""
    log = thinned(whole)
    found: dict[str, Any] = {name: log[name] for name in _SAME if name in log} | {"time": log.time}
    for name, column in (("tcp_des", "T_des"), ("tcp", "T_true")):
        if column in log:
            found[name] = log.position(column)
    for column in ("tau_cmd", "tau"):  # what was applied, where the plant reports it
        if column in log:
            found["tau"] = np.array(log[column])
    if len(log) > 1 and "tau" in found and not np.any(found["tau"][0]):
        found["tau"][0] = np.nan  # before the first command nothing was applied: no torque, not a torque of 0
    for column in ("wrench", "wrench_true"):  # the true one, where it is known
        if column in log:
            found["wrench"] = log[column]
    residuals = {"": log["residual"]} if "residual" in log else {}
    residuals |= {name.removeprefix("residual_"): log[name] for name in log.columns if name.startswith("residual_")}
    found["residuals"] = residuals
    if "cost" in whole:
        cost = np.array(whole["cost"])
        if "cost_log" in whole:
            cost[:-1] += whole["cost_log"][1:]  # the time of recording a row is known with the next one
        cost *= 1e6
        found["timing_us"] = cost
    if "lateness" in whole:
        found["lateness_us"] = 1e6 * whole["lateness"]
    if len(whole) > 1:
        found["period"] = float(np.median(np.diff(whole.time)))
    # in the order of time: some are known at the end only
    found["notes"] = tuple(sorted(((note.time, note.text) for note in log.notes), key=lambda one: one[0]))
    if NO_END in whole.problems:
        found["doubtful"] = f"{NO_END[:1].upper()}{NO_END[1:]}: its last number was left out."
    elif not log.complete:
        last = f"{log.time[-1]:.3f} s" if len(log) else "the start"
        found["aborted"] = f"The log was not closed (the run was killed, or goes on); it is whole up to {last}."
    return found


def events_of(summary: Mapping[str, Any], dof: int, logged: Iterable[Any] = ()) -> tuple[Event, ...]:
    """The events of a summary.json, as far as it tells them; entries without time or joint are left out.

    logged: what the log says of them, phase by phase: point and force stand there. Without a summary it alone tells.
    """
    newest = {_number(entry.get("time_s")): entry for entry in map(_mapping, logged)}
    entries = entries_of(summary, "events") if isinstance(summary.get("events"), list | tuple) else [*newest.values()]
    out: list[Event] = []
    for entry in entries:
        told = {"channel": "residual", **newest.get(_number(entry.get("time_s")), {}), **entry}
        time, joint = _number(told.get("time_s")), told.get("joint")
        if time is not None and isinstance(joint, int) and 1 <= joint <= dof:
            residual = np.zeros(dof)
            residual[joint - 1] = _number(told.get("torque_nm")) or 0.0
            kind = told.get("kind") if told.get("kind") in KINDS else "unknown"
            more = {"end_s": _number(told.get("end_s")), "kind": kind, "masked": told.get("alarm") is False}
            if isinstance(told.get("link"), int) and 1 <= told["link"] <= dof:
                more |= {"link": told["link"], "link_probability": _number(told.get("link_probability")) or 0.0}
                more |= {name: _vector(told.get(name)) for name in ("point", "force")}
            more |= {name: str(told.get(name) or "") for name in ("why_no_link", "reason", "channel")}
            out.append(Event.sample(time, joint, residual, len(out) + 1, **more))
    return tuple(out)


def entries_of(summary: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The mappings of a list in the summary, which may come from a file."""
    listed = summary.get(key)
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list | tuple) else []


def _vector(value: Any) -> Array | None:
    """Three finite numbers; None where there is anything else."""
    if not isinstance(value, list | tuple) or len(value) != 3 or any(_number(one) is None for one in value):
        return None
    found = np.array(value, dtype=np.float64)
    return found if bool(np.isfinite(found).all()) else None


def _of_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Command, parameters and robot; scenario is whatever plain data the run was told."""
    scenario, units = _mapping(manifest.get("scenario")), _mapping(manifest.get("units"))
    words = manifest.get("command")
    named = {f"{key} [{units[key]}]" if units.get(key) else key: value for key, value in _flat(scenario)}
    found: dict[str, Any] = {"parameters": named, "did": str(manifest.get("did") or "")}
    if isinstance(manifest.get("changed"), (list, tuple)):
        found["changed"] = tuple(name for name in named if name.partition(" ")[0] in manifest["changed"])
    told = manifest.get("bodies")
    found["bodies"] = tuple(_mapping(one) for one in told) if isinstance(told, (list, tuple)) else ()
    found["live"] = "arm" in scenario
    if isinstance(words, (list, tuple)):
        found["command"] = shlex.join(str(word) for word in words)
    if isinstance(scenario.get("robot"), str):
        found["robot"] = _robot(scenario["robot"], scenario.get("parameters"))
    found["blocks"] = _blocks(scenario, found.get("robot"))
    for kind in ("seed", "version"):
        inner = _mapping(manifest.get(f"{kind}s")).items()
        named |= {f"{kind} {key}": value for key, value in inner if value != "" and key not in scenario}
    return found


def _robot(name: str, parameters: Any) -> Any:
    """The simulated arm where it has a parameter set of its own; its name where that is all, or cannot be loaded."""
    if not isinstance(parameters, str):
        return name
    import tangere

    try:
        return tangere.robot(name, parameters=parameters)
    except (tangere.TangereError, OSError):
        return name  # the section that draws the arm says what is wrong with it


def loaded(robot: Robot | str | None) -> tuple[Robot | None, str]:
    """A robot, loaded where only its name is known; or None and a sentence why not."""
    if robot is None:
        return None, "the run does not name its robot."
    if not isinstance(robot, str):
        return robot, ""
    import tangere

    try:
        return tangere.robot(robot), ""
    except (tangere.TangereError, OSError) as error:
        return None, str(error)


def _blocks(scenario: Mapping[str, Any], robot: Robot | str | None) -> dict[str, str]:
    """Names for the block diagram, as far as the scenario tells them."""
    blocks = {
        name: str(scenario[key]) for name, key in (("reference", "scenario"), ("plant", "plant")) if key in scenario
    }
    threshold = _number(scenario.get("threshold"))
    if threshold is not None:
        blocks["detection"] = f"threshold {threshold:g} Nm"
    gain = _number(scenario.get("observer_gain"))
    if gain is not None:
        blocks["observer"] = f"momentum, K {gain:g}/s"
    pushes = scenario.get("push")
    first = pushes[0] if isinstance(pushes, list | tuple) and pushes else pushes
    if isinstance(first, Mapping):
        blocks["push"] = push_words(first, loaded(robot)[0])
    return blocks


def push_words(push: Mapping[str, Any], robot: Robot | None = None) -> str:
    """A push (joint and torque, or link and force) in the few words that fit beside an arrow."""
    if _number(push.get("torque")) is not None:
        joint = push.get("joint")
        unit = robot.unit(joint, "Nm") if robot is not None and isinstance(joint, int) else "Nm"
        return f"{push['torque']:g} {unit} at joint {joint}"
    return f"a force on link {push.get('link')}"


def _name(manifest: Mapping[str, Any]) -> str:
    """The title that a manifest gives to its run; "": none."""
    told = (_mapping(manifest.get("scenario")).get(key) for key in ("title", "name", "scenario"))
    return next((name for name in told if isinstance(name, str) and name), "")


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Nested parameters as "outer inner" -> value."""
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key} ")
        elif value is not None and value != []:
            yield f"{before}{key}", value


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file; empty where there is none. A file that is no JSON is said, not passed over."""
    if not path.is_file():
        return {}
    try:
        data = foreign.loads(foreign.read_bytes(path, foreign.TEXT_MAX), path)
    except InvalidValue as problem:
        raise InvalidValue(f"cannot read {path}: {foreign.shown(problem.__cause__ or problem, 200)}") from problem
    if not isinstance(data, dict):
        raise InvalidValue(f"{path}: expected an object, got {type(data).__name__}")
    return data


def _mapping(value: Any) -> Mapping[str, Any]:
    """What should be an object of JSON; empty where a file holds something else."""
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
