"""The folder of a drawing read back, and the drawing made once more from its manifest and its copy of the picture."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from tangere.errors import InvalidValue
from tangere.planning.drawing.canvas import Canvas
from tangere.run.draw_picture import (
    COPY,
    LOG,
    SUMMARY,
    Drawn,
    Prepared,
    Progress,
    execute_drawing,
    namer,
    on_found,
    prepare,
)  # fmt: skip
from tangere.run.drawing import DrawingResult, drawn_ink, heavier, real_paper
from tangere.run.drawing_settings import DrawingSettings
from tangere.run.log import Log
from tangere.run.manifest import Manifest, load_manifest
from tangere.run.mcap_read import read_mcap
from tangere.run.result import RunResult, Timing


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
    paper = real_paper(prepared.canvas, settings.surface, settings.stiffness, settings.friction, settings.seed)
    if "probe" in summary:
        found = Canvas.from_pose(summary["plan"]["canvas"], prepared.canvas.size)
        prepared = on_found(prepared, found, summary["probe"])
    results: dict[str, DrawingResult] = {}
    for controller in settings.controllers:
        log = read_mcap(place / namer(settings, controller)(LOG))
        own = summary.get("controllers", {}).get(controller, summary)
        period = own["duration_s"] / max(len(log), 1)
        run = RunResult(
            log, (), own["aborted"], Timing.of(log, period), own["duration_s"] / own["realtime_factor"], period,
            interventions=own["interventions"],
        )  # fmt: skip
        results[controller] = DrawingResult(
            run, drawn_ink(log, prepared.canvas), own, paper, heavier(robot, settings.model_error)
        )
    return Drawn(prepared, results, summary, place)


def draw_again(folder: str | os.PathLike[str], *, progress: Progress | None = None) -> Mapping[str, tuple[Log, Log]]:
    """The drawing of a folder made once more in a temporary folder: of each controller the kept log and the new."""
    place = Path(folder)
    manifest = load_manifest(place)
    prepared = _prepared(place, manifest)
    kept: dict[str, Log] = {}
    for name in prepared.settings.controllers:
        kept[name] = read_mcap(place / namer(prepared.settings, name)(LOG))
    out = tempfile.mkdtemp(prefix="tangere-rerun-")
    try:
        done = execute_drawing(prepared, out=out, command=manifest.command, progress=progress)
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return {name: (kept[name], result.log) for name, result in done.results.items()}


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
