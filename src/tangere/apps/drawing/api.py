"""Drawings from Python: one made as `tangere draw` does it; the folder of one read back, and made once more."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tangere import foreign
from tangere.apps.drawing import draw_picture as maker
from tangere.apps.drawing.draw_picture import COPY, Drawn, Prepared, Progress, Say
from tangere.apps.drawing.drawing import DrawingResult, Simulated, heavier
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.settings import DrawingSettings
from tangere.apps.drawing.summary import DrawingFigures, drawn_ink
from tangere.errors import InvalidValue
from tangere.logs.log import Log
from tangere.logs.mcap_read import read_mcap
from tangere.loop.folder import LOG, REPORT, SUMMARY, load_manifest, scratch
from tangere.loop.result import RunResult, Timing
from tangere.model.loading import load
from tangere.robots import Robot
from tangere.settings import merged, settings_of


def draw(
    picture: str | os.PathLike[str], robot: Robot | str = "ur5e", *, out: str | os.PathLike[str] | None = None,
    report: bool = True, say: Say | None = None, progress: Progress | None = None, **settings: Any,
) -> Drawn:  # fmt: skip
    """Draw a picture with a simulated arm and leave log, ink, figures and page in a folder (`tangere draw`).

    picture: a file, or the name of one that ships ("snail"). robot: the arm, or its name; the drawing gives it its own
    pen. out: the folder; where none is given out/PICTURE, or out/PICTURE-2, ... settings: those of
    apps.drawing.settings.DrawingSettings, numbers in SI or texts as the options have them: force=5 [N], size=0.2 [m] or
    "200mm", speed=0.05 [m/s], controller="hybrid", sensor="ideal", ... Needs the extra `draw`.
    """
    told = merged(DrawingSettings, {"robot": _named(robot), **settings})
    folder = Path("out") / Path(picture).stem if out is None else Path(out)
    done = maker.draw_picture(picture, told, out=folder, say=say, progress=progress, fresh=out is None)
    return _settled(done, report)


def write(
    text: str, robot: Robot | str = "ur5e", *, out: str | os.PathLike[str] | None = None, report: bool = True,
    say: Say | None = None, progress: Progress | None = None, **settings: Any,
) -> Drawn:  # fmt: skip
    """Write a text with a simulated arm and leave what a drawing leaves in a folder (`tangere write`).

    settings: those of apps.drawing.text.settings.TextSettings: height=0.012 [m] of a capital or "12mm", font="single-
    line", align="centre", ...; and those of a drawing but its size. out: the folder, out/TEXT where none is given.
    """
    from tangere.apps.drawing.text.layout import sized, written
    from tangere.apps.drawing.text.settings import TextSettings

    own = {key: settings.pop(key) for key in settings_of(TextSettings) if key in settings}
    drawing = merged(DrawingSettings, {"robot": _named(robot), **settings})
    with written(text, merged(TextSettings, own), drawing.hatch != "none") as (picture, size):
        told = sized(drawing, size)
        folder = Path("out") / picture.stem if out is None else Path(out)
        done = maker.draw_picture(picture, told, out=folder, say=say, progress=progress, fresh=out is None)
        done = replace(done, prepared=replace(done.prepared, picture=done.folder / COPY / picture.name))
    return _settled(done, report)


def _settled(done: Drawn, report: bool) -> Drawn:
    """The drawing with its page, where that is wanted."""
    if report:
        from tangere.apps.drawing.page import write_drawn

        done.attempt(REPORT, lambda: write_drawn(done, done.folder / REPORT))
    done.attempt.settle(done.folder)
    return done


def _named(robot: Robot | str) -> str:
    """The name of an arm that is as it ships: a drawing mounts its own pen and knows the arm by its name."""
    if isinstance(robot, str):
        return robot
    own, shipped = robot.model, load(robot.name)
    same = own.payload is None and own.parameters == shipped.parameters and np.array_equal(own.gravity, shipped.gravity)
    if not (same and np.array_equal(own.T_flange_tcp, shipped.T_flange_tcp)):
        raise InvalidValue(f"robot: a drawing mounts its own pen; give the arm as it ships ({robot.name!r}), or a file")
    return robot.name


def is_drawing(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds what `tangere draw` left, by its manifest."""
    try:
        return "picture" in load_manifest(folder).scenario
    except InvalidValue:
        return False


def read_drawing(folder: str | os.PathLike[str]) -> Drawn:
    """The drawing that a folder holds, planned again, everything that moved from its logs."""
    place = Path(folder)
    prepared = _prepared(place)
    settings, robot = prepared.settings, prepared.robot
    summary = _summary(place)
    prepared = replace(prepared, seconds=summary["plan"]["seconds"])  # of the run, not of having planned it again
    stage = Simulated.told(settings, robot, prepared.canvas)
    if "probe" in summary:
        found = Canvas.from_pose(summary["plan"]["canvas"], prepared.canvas.size)
        prepared = maker.on_found(prepared, found, summary["probe"])
    results: dict[str, DrawingResult] = {}
    for controller in summary.get("controllers", (summary["controller"],)):  # fewer than asked for if interrupted
        log = read_mcap(place / maker.namer(settings, controller)(LOG), long=True)
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
    prepared = _prepared(place)
    broken = interrupted(place)
    kept: dict[str, Log] = {}
    for name in prepared.settings.controllers:
        path = place / maker.namer(prepared.settings, name)(LOG)
        if path.exists() or not broken:
            kept[name] = read_mcap(path, long=True)
    if not any(len(log) for log in kept.values()):
        raise InvalidValue(f"{place}: the drawing was interrupted before anything moved, there is nothing to compare")
    if len(kept) == 1:  # the other was not begun
        prepared = replace(prepared, settings=replace(prepared.settings, controller=next(iter(kept))))
    with scratch() as out:
        done = maker.execute_drawing(prepared, out=out, command=load_manifest(place).command, progress=progress)
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
    parts = summary.get("controllers")
    every = (one for one in (parts.values() if isinstance(parts, dict) else (summary,)) if isinstance(one, dict))
    return next((how for one in every if (how := str(one.get("aborted"))).startswith("interrupted")), "")


def _prepared(folder: Path) -> Prepared:
    told = load_manifest(folder).scenario
    if not isinstance(told.get("picture"), str):
        raise InvalidValue(f"{folder}: the manifest names no picture, it is not the folder of a drawing")
    picture = folder / COPY / Path(told["picture"]).name
    try:
        digest = hashlib.sha256(picture.read_bytes()).hexdigest()
    except OSError as problem:
        raise InvalidValue(f"the picture that was drawn is not there: {picture}: {problem.strerror}") from problem
    if digest != told.get("picture_sha256"):
        raise InvalidValue(f"{picture} is not the picture that was drawn: its SHA-256 is another than the manifest's")
    if not isinstance(told.get("friction", ""), str):  # before there was any of the joints it was the paper's
        told = {**told, "paper_friction": told["friction"], "friction": DrawingSettings.friction}
    known = settings_of(DrawingSettings).keys() & told.keys()
    return maker.prepare(picture, merged(DrawingSettings, {key: told[key] for key in known}))


def _summary(folder: Path) -> dict[str, Any]:
    try:
        summary = foreign.loads(foreign.read_bytes(folder / SUMMARY, foreign.TEXT_MAX), folder / SUMMARY)
    except InvalidValue as problem:
        raise InvalidValue(f"the drawing is not whole: {problem}") from None
    if not isinstance(summary, dict):
        raise InvalidValue(f"{folder / SUMMARY}: expected an object, got {type(summary).__name__}")
    return summary
