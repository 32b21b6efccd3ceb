"""From what a run left - its log, and its manifest and summary as plain data - to the values that the report shows."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from tangere.errors import InvalidValue
from tangere.logs.log import Log
from tangere.report.data import Event, RunData

# A clip larger than this is left beside the report instead of inside it [bytes]: 150 frames take a tenth of it.
_CLIP = 8_000_000
# columns of a log that the report shows under the same name
_SAME = ("q", "qd", "q_des", "qd_des", "tau_ext_true")


def run_data(source: str | os.PathLike[str] | Log, **changes: Any) -> RunData:
    """RunData of a folder, a log file (.mcap, .csv) or a Log; `changes` replace what was found.

    A folder needs no more than a log: manifest.json, summary.json and video.mp4 are used where they are there.
    """
    if isinstance(source, Log):
        return put_together(source, **changes)
    if not isinstance(source, str | os.PathLike):
        raise InvalidValue(f"a report is made of a run's folder, log file, Log or result, got {type(source).__name__}")
    path = Path(source)
    if path.is_file():
        return put_together(_read_log(path), **({"name": path.stem} | changes))
    if not path.is_dir():
        raise InvalidValue(f"no run at {path}: expected the folder of a run or a log file (.mcap, .csv)")
    logs = sorted([*path.glob("*.mcap"), *path.glob("*.csv")], key=lambda p: (p.suffix != ".mcap", p.name))
    summary = _read_json(path / "summary.json")
    manifest = _read_json(path / "manifest.json")
    if not logs and not summary and not manifest:
        raise InvalidValue(f"no run in {path}: no log (*.mcap, *.csv), no summary.json, no manifest.json")
    named = {"name": _name(manifest) or path.resolve().name, "video": clip_of(path)}
    return put_together(_read_log(logs[0]) if logs else None, manifest, summary, **(named | changes))


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
    found |= {"summary": summary, "events": events_of(summary)}
    thresholds = summary.get("thresholds_nm")
    if isinstance(thresholds, list) and all(_number(value) is not None for value in thresholds):
        found["thresholds"] = np.array(thresholds, dtype=np.float64)
    if summary.get("aborted"):
        found["aborted"] = str(summary["aborted"])
    # names of blocks are added to those found before, everything else takes the place of what was found
    own = summary.get("blocks")
    own = {str(k): str(v) for k, v in own.items()} if isinstance(own, Mapping) else {}
    blocks = {"blocks": {**found.get("blocks", {}), **own, **changes.get("blocks", {})}}
    return RunData(**(found | changes | blocks))


def clip_of(folder: Path) -> bytes | None:
    """The clip of a run's folder; None where there is none or it is too large to be embedded."""
    clip = folder / "video.mp4"
    return clip.read_bytes() if clip.is_file() and clip.stat().st_size <= _CLIP else None


def of_log(log: Log) -> dict[str, Any]:
    """The columns of a log under the report's names."""
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
    if "cost" in log:
        cost = np.array(log["cost"])
        if "cost_log" in log:
            cost[:-1] += log["cost_log"][1:]  # the time of recording a row is known with the next one
        found["timing_us"] = 1e6 * cost
    if "lateness" in log:
        found["lateness_us"] = 1e6 * log["lateness"]
    if len(log) > 1:
        found["period"] = float(np.median(np.diff(log.time)))
    found["notes"] = tuple((note.time, note.text) for note in log.notes)
    if not log.complete:
        last = f"{log.time[-1]:.3f} s" if len(log) else "the start"
        found["aborted"] = f"The log was not closed (the run was killed, or goes on); it is whole up to {last}."
    return found


def events_of(summary: Mapping[str, Any]) -> tuple[Event, ...]:
    """The events of a summary.json; entries without time or joint are left out."""
    out = []
    entries = summary.get("events")
    for entry in entries if isinstance(entries, (list, tuple)) else ():
        if not isinstance(entry, Mapping):
            continue
        if _number(entry.get("time_s")) is not None and isinstance(entry.get("joint"), int):
            torque, true, delay, end = (
                _number(entry.get(key)) for key in ("torque_nm", "true_torque_nm", "delay_ms", "end_s")
            )
            out.append(Event(float(entry["time_s"]), entry["joint"], end, torque, true, delay))
    return tuple(out)


def _of_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Command, parameters and robot; scenario is whatever plain data the run was told."""
    scenario = manifest.get("scenario")
    scenario = scenario if isinstance(scenario, Mapping) else {}
    words = manifest.get("command")
    units = manifest.get("units")
    units = units if isinstance(units, Mapping) else {}
    named = {f"{key} [{units[key]}]" if units.get(key) else key: value for key, value in _flat(scenario)}
    found: dict[str, Any] = {"parameters": named, "blocks": _blocks(scenario)}
    if isinstance(words, (list, tuple)):
        found["command"] = shlex.join(str(word) for word in words)
    if isinstance(scenario.get("robot"), str):
        found["robot"] = _robot(scenario["robot"], scenario.get("parameters"))
    for kind in ("seeds", "versions"):
        inner = manifest.get(kind)
        if isinstance(inner, Mapping):
            word = kind.removesuffix("s")
            found["parameters"] |= {
                f"{word} {key}": value for key, value in inner.items() if value != "" and key not in scenario
            }
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


def _blocks(scenario: Mapping[str, Any]) -> dict[str, str]:
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
        blocks["push"] = push_words(first)
    return blocks


def push_words(push: Mapping[str, Any]) -> str:
    """A push (joint and torque, or link and force) in the few words that fit beside an arrow."""
    if _number(push.get("torque")) is not None:
        return f"{push['torque']:g} Nm at joint {push.get('joint')}"
    return f"a force on link {push.get('link')}"


def _name(manifest: Mapping[str, Any]) -> str:
    """The title that a manifest gives to its run; "": none."""
    scenario = manifest.get("scenario")
    for key in ("title", "name", "scenario"):
        if isinstance(scenario, Mapping) and isinstance(scenario.get(key), str) and scenario[key]:
            return str(scenario[key])
    return ""


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Nested parameters as "outer inner" -> value."""
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key} ")
        elif value is not None and value != []:
            yield f"{before}{key}", value


def _read_log(path: Path) -> Log:
    if path.suffix == ".csv":
        from tangere.logs.csv_log import read_csv

        return read_csv(path)
    from tangere.logs.mcap_read import read_mcap

    return read_mcap(path)


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file; empty where there is none. A file that is no JSON is said, not passed over."""
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InvalidValue(f"cannot read {path}: {problem}") from problem
    if not isinstance(data, dict):
        raise InvalidValue(f"{path}: expected an object, got {type(data).__name__}")
    return data


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
