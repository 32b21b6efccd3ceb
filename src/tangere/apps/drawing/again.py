"""The folder of a drawing read back, and the drawing made once more from its manifest and its copy of the picture."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from tangere.apps.drawing.draw_picture import (
    COPY,
    Drawn,
    Prepared,
    Progress,
    execute_drawing,
    namer,
    on_found,
    prepare,
)  # fmt: skip
from tangere.apps.drawing.drawing import DrawingResult, Simulated, heavier
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.settings import DrawingSettings
from tangere.apps.drawing.summary import DrawingFigures, drawn_ink
from tangere.errors import InvalidValue
from tangere.logs.log import Log
from tangere.logs.mcap_read import read_mcap
from tangere.loop.folder import LOG, SUMMARY, Manifest, load_manifest, scratch
from tangere.loop.result import RunResult, Timing


def is_drawing(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds what `tangere draw` left, by its manifest."""
    try:
        return "picture" in load_manifest(folder).scenario
    except InvalidValue:
        return False


def read_drawing(folder: str | os.PathLike[str]) -> Drawn:
    """The drawing that a folder holds, planned again, everything that moved from its logs."""
    place = Path(folder)
    manifest = load_manifest(place)
    prepared = _prepared(place, manifest)
    settings, robot = prepared.settings, prepared.robot
    summary = _summary(place)
    prepared = replace(prepared, seconds=summary["plan"]["seconds"])  # of the run, not of having planned it again
    stage = Simulated.told(settings, prepared.canvas)
    if "probe" in summary:
        found = Canvas.from_pose(summary["plan"]["canvas"], prepared.canvas.size)
        prepared = on_found(prepared, found, summary["probe"])
    results: dict[str, DrawingResult] = {}
    for controller in summary.get("controllers", (summary["controller"],)):  # fewer than asked for if interrupted
        log = read_mcap(place / namer(settings, controller)(LOG))
        own = summary.get("controllers", {}).get(controller, summary)
        period = own["duration_s"] / max(len(log), 1)
        wall = own["duration_s"] / (own["realtime_factor"] or 1.0)
        run = RunResult(
            log, (), own["aborted"], Timing.of(log, period), wall, period, interventions=own["interventions"]
        )
        ink = drawn_ink(log, prepared.canvas, robot)
        real = heavier(robot, settings.model_error)
        results[controller] = DrawingResult(run, ink, DrawingFigures.of_record(own), stage.paper, real)
    return Drawn(prepared, results, summary, place)


def draw_again(folder: str | os.PathLike[str], *, progress: Progress | None = None) -> Mapping[str, tuple[Log, Log]]:
    """The drawing of a folder made once more in a temporary folder: of each controller the kept log and the new.

    Of a drawing that was interrupted the new log is cut where the kept one ends: what is there is compared.
    """
    place = Path(folder)
    manifest = load_manifest(place)
    prepared = _prepared(place, manifest)
    broken = interrupted(place)
    kept: dict[str, Log] = {}
    for name in prepared.settings.controllers:
        path = place / namer(prepared.settings, name)(LOG)
        if path.exists() or not broken:
            kept[name] = read_mcap(path)
    if not any(len(log) for log in kept.values()):
        raise InvalidValue(f"{place}: the drawing was interrupted before anything moved, there is nothing to compare")
    if len(kept) == 1:  # the other was not begun
        prepared = replace(prepared, settings=replace(prepared.settings, controller=next(iter(kept))))
    with scratch() as out:
        done = execute_drawing(prepared, out=out, command=manifest.command, progress=progress)
    logs = {name: result.log for name, result in done.results.items()}
    return {name: (log, logs[name][: len(log)] if broken else logs[name]) for name, log in kept.items()}


def interrupted(folder: str | os.PathLike[str]) -> str:
    """How a drawing was stopped from outside (the keyboard, a kill), "" if it came to an end of its own.

    A pen that lost the paper is such an end: made again, it loses the paper again.
    """
    try:
        summary = _summary(Path(folder))
    except InvalidValue:
        return "killed before its end"
    parts = summary.get("controllers", {"": summary}).values()
    return next((part["aborted"] for part in parts if part["aborted"].startswith("interrupted")), "")


def _prepared(folder: Path, manifest: Manifest) -> Prepared:
    told = dict(manifest.scenario)
    if "picture" not in told:
        raise InvalidValue(f"{folder}: the manifest names no picture, it is not the folder of a drawing")
    picture = folder / COPY / Path(told["picture"]).name
    try:
        digest = hashlib.sha256(picture.read_bytes()).hexdigest()
    except OSError as problem:
        raise InvalidValue(f"the picture that was drawn is not there: {picture}: {problem.strerror}") from problem
    if digest != told.get("picture_sha256"):
        raise InvalidValue(f"{picture} is not the picture that was drawn: its SHA-256 is another than the manifest's")
    known = {part.name for part in fields(DrawingSettings)}
    return prepare(picture, DrawingSettings(**{key: _tuples(told[key]) for key in known & set(told)}))


def _tuples(value: Any) -> Any:
    """JSON has lists where settings have tuples."""
    return tuple(_tuples(entry) for entry in value) if isinstance(value, list) else value


def _summary(folder: Path) -> dict[str, Any]:
    try:
        summary: dict[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InvalidValue(f"cannot read {folder / SUMMARY}, the drawing is not whole: {problem}") from None
    return summary
