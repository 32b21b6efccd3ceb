"""From a picture to a drawing in a folder: strokes, canvas, plan, preview, the drawing itself and its figures."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tangere import ends
from tangere.apps.drawing.drawing import DrawingResult, Simulated, draw, drawing_robot, heavier, probe
from tangere.apps.drawing.files import ink_lines, ink_picture, png_bytes, preview_png, write_bytes, write_ink, write_svg
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.motion import DrawingPlan, PenMotion
from tangere.apps.drawing.plan.plan import canvas_of as canvas_of
from tangere.apps.drawing.plan.plan import placed, plan_drawing
from tangere.apps.drawing.settings import BOTH
from tangere.apps.drawing.settings import DrawingSettings as DrawingSettings
from tangere.apps.drawing.strokes.hatch import Hatch
from tangere.apps.drawing.strokes.make import strokes_of
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.apps.drawing.summary import DrawingFigures
from tangere.errors import InvalidValue, UnknownName
from tangere.logs.files import Attempts
from tangere.loop.folder import CSV, LOG, REPORT, SUMMARY, VIDEO, Claim, Manifest, holds, write_json, write_manifest
from tangere.model.loading import load
from tangere.plants.joints import assumed, friction_of, sensors_of, with_drives, with_rotors
from tangere.report.terminal import plural
from tangere.robots import Robot

SHIPPED = Path(__file__).parent / "picture" / "pictures"
PREVIEW, PLAN = "preview.png", "plan.svg"
# of the drawing itself; a second controller's have its name before the dot
INK, DRAWN_SVG, DRAWN_PNG = "ink.csv", "drawn.svg", "drawn.png"
COPY = "picture"  # a folder beside them with the picture itself: with it the drawing can be made again
STEPS = ("reading", "tracing", "merging", "hatching", "ordering", "placing", "planning")  # what `say` is called with
JOINTS = 6
OFF_PAPER = 0.005  # of the drawing time without contact: the mark of a good drawing; beyond, it is said

Say = Callable[[str], None]
Progress = Callable[[float, float], None]


@dataclass(frozen=True)
class Prepared:
    """A drawing before anything moves."""

    picture: Path
    settings: DrawingSettings
    robot: Robot
    strokes: Strokes
    canvas: Canvas
    plan: DrawingPlan
    notes: tuple[str, ...] = ()  # what was chosen, reduced, ignored or moved
    seconds: Mapping[str, float] = field(default_factory=dict)  # wall time of the steps


@dataclass(frozen=True)
class Drawn:
    """A drawing that was made, by one controller or two, and the folder that holds it."""

    prepared: Prepared
    results: Mapping[str, DrawingResult]  # by controller, the first is the main one
    summary: dict[str, Any]
    folder: Path
    claim: Claim | None = None  # nobody else writes into the folder while this is here
    attempt: Attempts = field(default_factory=Attempts)  # which of its files could be written

    @property
    def main(self) -> DrawingResult:
        """Of the first controller."""
        return next(iter(self.results.values()))

    @property
    def aborted(self) -> str:
        """Why a drawing ended early, "" if none did."""
        return next((result.aborted for result in self.results.values() if result.aborted), "")

    @property
    def missing(self) -> int:
        """Strokes that were not drawn, or not whole; of all controllers."""
        return sum(r.figures.strokes - r.figures.strokes_drawn for r in self.results.values())

    @property
    def incomplete(self) -> str:
        """What the drawing lacks, in words: strokes, or contact for long; "" if it is whole."""
        said = []
        for name, result in self.results.items():
            lacks = lacking(result.figures)
            if lacks:
                said.append(f"{name}: {lacks}" if len(self.results) > 1 else lacks)
        return "; ".join(said)


def lacking(figures: DrawingFigures) -> str:
    """What one controller's drawing lacks, by its figures; "" if nothing."""
    said = []
    missing = figures.strokes - figures.strokes_drawn
    if missing > 0:
        verb = "was" if missing == 1 else "were"
        said.append(f"{missing} of {plural(figures.strokes, 'stroke')} {verb} not drawn, or not whole")
    lost = figures.contact_lost_s
    if lost > OFF_PAPER * figures.draw_s:
        share = 100.0 * lost / figures.draw_s
        said.append(f"the pen was off the paper for {lost:.2g} s, {share:.1f} % of the time it drew")
    return ", ".join(said)


def shipped_pictures() -> tuple[str, ...]:
    """Names of the pictures in the package: a line drawing, twice, and a shaded still life."""
    return tuple(sorted(path.name for path in SHIPPED.iterdir() if path.suffix in (".png", ".svg")))


def find_picture(name: str | os.PathLike[str]) -> Path:
    """A picture file, or a picture of the package by its name with or without ending (snail, still_life)."""
    path = Path(name)
    if path.is_file():
        return path
    shipped = shipped_pictures()
    for candidate in (str(name), f"{name}.png", f"{name}.svg"):
        if candidate in shipped:  # also where a folder of that name is there: that of an earlier drawing
            return SHIPPED / candidate
    if path.exists():
        raise InvalidValue(f"{path} is no picture but a folder or device")
    raise UnknownName(f"no picture {str(name)!r}: no such file, and none of those that ship: {', '.join(shipped)}")


def prepare(picture: str | os.PathLike[str], settings: DrawingSettings, say: Say | None = None) -> Prepared:
    """Strokes, canvas and plan; nothing is written. DoesNotFit says where the drawing would fit.

    say: called with the name of each step as it begins.
    """
    tell = say or (lambda step: None)
    source = find_picture(picture)
    begin = perf_counter()
    robot = with_rotors(with_drives(drawing_robot(settings.robot), settings.friction), settings.drives)
    if robot.dof != JOINTS:
        raise InvalidValue(f"drawing needs an arm of the UR kind with {JOINTS} joints, {robot.name} has {robot.dof}")
    if not robot.closed_form:
        raise InvalidValue(
            f"drawing needs an arm of the UR kind, nominal or calibrated: all its solutions are known; {robot.name} "
            "has another geometry"
        )
    said = assumed(load(settings.robot)) if settings.friction == "typical" else ()
    if settings.drives and not robot.rotor_inertia.any():
        said += (f"the rotor inertia of {robot.name} is not known, it is left out; friction typical has one by size",)
    _ = friction_of(robot, settings.friction), sensors_of(robot, settings.sensors, 1.0, 0)  # refused here, or never
    strokes = strokes_of(
        source, settings.size, style=settings.style, margin=settings.margin, tolerance=settings.tolerance,
        thresholds=settings.thresholds, hatch=hatch_of(settings), font=settings.font, progress=say,
    )  # fmt: skip
    traced = perf_counter()
    strokes, canvas, plan, more = placed(robot, strokes, settings, tell)
    notes = [*said, *strokes.notes, *more]
    seconds = {"strokes": traced - begin, "plan": perf_counter() - traced}
    return Prepared(source, settings, robot, strokes, canvas, plan, tuple(notes), seconds)


def hatch_of(settings: DrawingSettings) -> Hatch | None:
    """How areas are filled; None: not at all. The tones of a photograph are hatched in any case."""
    if settings.hatch == "none" and settings.style != "tones":
        return None
    return Hatch(settings.hatch == "cross", settings.hatch_angle, settings.hatch_distance)


def write_preview(prepared: Prepared, out: str | os.PathLike[str], fresh: bool = False) -> Path:
    """preview.png and plan.svg into the folder, before anything moves.

    An earlier preview there is replaced, an earlier drawing or run never: the folder is then out-2, out-3, ...
    """
    claim = claimed(out, fresh or holds(Path(out)))
    _write_plan(prepared, claim.path)
    return claim.path


def draw_picture(
    picture: str | os.PathLike[str], settings: DrawingSettings | None = None, *, out: str | os.PathLike[str],
    command: Sequence[str] = (), say: Say | None = None, progress: Progress | None = None,
    fresh: bool = False,
) -> Drawn:  # fmt: skip
    """Draw a picture and leave everything in a folder.

    preview.png, plan.svg and manifest.json come before anything moves; then log.mcap, ink.csv, drawn.svg, drawn.png;
    summary.json last: where it is there, the drawing is whole. With two controllers the second's files have its name
    (log-height-pi.mcap). Nothing is written where the picture cannot be read or the drawing does not fit.
    """
    prepared = prepare(picture, settings or DrawingSettings(), say)
    return execute_drawing(prepared, out=out, command=command, progress=progress, fresh=fresh)


def execute_drawing(
    prepared: Prepared, *, out: str | os.PathLike[str], command: Sequence[str] = (), progress: Progress | None = None,
    fresh: bool = False,
) -> Drawn:  # fmt: skip
    """Draw what was prepared, into a folder; fresh: an earlier drawing there stays, the folder is out-2, out-3, ...

    What cannot be written (a full disk) is in `attempt`.
    """
    settings, plan = prepared.settings, prepared.plan
    ends.hold()
    picture = prepared.picture.read_bytes()  # before anything goes: it may be the copy of an earlier drawing
    claim, attempt = claimed(out, fresh), Attempts()
    folder = claim.path
    told: dict[str, Any] = {"picture": prepared.picture.name, "picture_sha256": hashlib.sha256(picture).hexdigest()}
    told |= {**asdict(settings), "canvas_pose": prepared.canvas.as_pose()}
    seeds, models = {"seed": settings.seed}, {"plant": heavier(prepared.robot, settings.model_error)}
    models["controller"] = prepared.robot
    write_manifest(Manifest.of(command, told, seeds=seeds, models=models), folder)
    (folder / COPY).mkdir(exist_ok=True)
    write_bytes(picture, folder / COPY / prepared.picture.name)
    _write_plan(prepared, folder)
    results: dict[str, DrawingResult] = {}
    stage = Simulated.told(settings, prepared.robot, prepared.canvas)
    friction = stage.friction if settings.friction_model == "same" else None
    probed = None
    if settings.probe:
        area = _box(prepared.strokes)
        probed = probe(prepared.robot, prepared.canvas, stage, area=area, friction=friction, progress=progress)
        prepared = on_found(prepared, probed.canvas, probed.summary)
        plan = prepared.plan
    for controller in settings.controllers:
        name = namer(settings, controller)
        result = draw(
            prepared.robot, plan, stage, force=settings.force, controller=controller, friction=friction,
            log=folder / name(LOG), progress=progress,
        )  # fmt: skip
        results[controller] = result
        if result.run.log_error:
            attempt.cut(name(LOG), result.run.log_error)
        else:
            attempt.kept.append(name(LOG))
        _write_ink(result, prepared, folder, name, attempt)
        if isinstance(result.run.abort, KeyboardInterrupt) or ends.told() is not None:
            break  # who interrupts one drawing does not ask for the next
    summary = summary_of(prepared, results)
    if probed is not None:
        summary["probe"] = probed.summary
    attempt(SUMMARY, lambda: write_json(summary, folder / SUMMARY))
    return Drawn(prepared, results, summary, folder, claim, attempt)


def _write_ink(
    result: DrawingResult, prepared: Prepared, folder: Path, name: Callable[[str], str], attempt: Attempts
) -> None:
    size = prepared.canvas.size
    attempt(name(INK), lambda: write_ink(result.ink, folder / name(INK)))
    attempt(name(DRAWN_SVG), lambda: write_svg(ink_lines(result.ink, size), folder / name(DRAWN_SVG)))
    attempt(name(DRAWN_PNG), lambda: write_bytes(drawn_png(result, prepared), folder / name(DRAWN_PNG)))


def drawn_png(result: DrawingResult, prepared: Prepared) -> bytes:
    """What the pen left on the paper, as a picture."""
    return png_bytes(ink_picture(result.ink, prepared.canvas.size, prepared.settings.force))


def _box(strokes: Strokes) -> tuple[float, float]:
    """Width and height [m] about the canvas's middle in which all strokes lie, a tenth of the paper at least."""
    reach = 2.0 * np.max(np.abs(np.stack(strokes.bounds)), axis=0)
    width, height = np.maximum(reach, 0.1 * np.asarray(strokes.size)).tolist()
    return width, height


def on_found(prepared: Prepared, canvas: Canvas, found: Mapping[str, Any]) -> Prepared:
    """The same drawing, planned on the paper as it was found; found: summary of the probing."""
    settings = prepared.settings
    how = PenMotion(speed=settings.speed, force=settings.force)
    plan = plan_drawing(prepared.robot, prepared.strokes, canvas, how, offer=False)
    above = "above" if found["offset_mm"] > 0.0 else "below"
    note = (
        f"the paper was found {abs(found['offset_mm']):.2f} mm {above} the plan, tilted by {found['tilt_deg']:.2f} "
        "degrees; planned again on it"
    )
    return replace(prepared, canvas=canvas, plan=plan, notes=(*prepared.notes, note))


def summary_of(prepared: Prepared, results: Mapping[str, DrawingResult]) -> dict[str, Any]:
    """The figures of the main controller, what was planned, and with two controllers those of each."""
    settings, plan = prepared.settings, prepared.plan
    main = next(iter(results))
    summary: dict[str, Any] = {"picture": prepared.picture.name, "robot": settings.robot, "controller": main}
    summary |= {"sensor": settings.sensor, **results[main].summary}
    summary["plan"] = {
        "size_mm": [1e3 * side for side in prepared.strokes.size],
        "canvas": prepared.canvas.as_pose(),
        "estimated_s": plan.duration,
        "seconds": dict(prepared.seconds),
        **asdict(plan.check),
    }
    several = len(results) > 1
    said = [f"{name}: {r}" if several else r for name, result in results.items() for r in result.figures.remarks]
    summary["notes"] = [*prepared.notes, *said]
    summary["not_drawn"] = list(prepared.strokes.missing)
    if len(results) > 1:
        summary["controllers"] = {name: result.summary for name, result in results.items()}
    return summary


def namer(settings: DrawingSettings, controller: str) -> Callable[[str], str]:
    """File names of one controller's drawing: the main one's as they are, another's with its name before the dot."""
    if controller == settings.controllers[0]:
        return lambda name: name
    return lambda name: f"{Path(name).stem}-{controller}{Path(name).suffix}"


def claimed(out: str | os.PathLike[str], fresh: bool = False) -> Claim:
    """The folder, made and proven writable, without the files of an earlier drawing; those of others stay."""
    drawn = [LOG, INK, DRAWN_SVG, DRAWN_PNG, VIDEO]
    ours = [SUMMARY, REPORT, *drawn, *(f"{Path(n).stem}-{c}{Path(n).suffix}" for n in drawn for c in BOTH)]
    ours += [PREVIEW, PLAN, CSV]
    return Claim(out, ours, what="drawing", harmless=(PREVIEW, PLAN), fresh=fresh)


def _write_plan(prepared: Prepared, folder: Path) -> None:
    write_svg(prepared.strokes, folder / PLAN)
    title = f"{prepared.picture.name}, {prepared.settings.robot}, {prepared.settings.force:g} N"
    write_bytes(preview_png(prepared.strokes, seconds=prepared.plan.duration, title=title), folder / PREVIEW)
