"""From a picture to a drawing in a folder: strokes, canvas, plan, preview, the drawing itself and its figures."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, get_args

from tangere.errors import InvalidValue, NoSolution, UnknownName
from tangere.model.scene_paper import Bump, Hole
from tangere.planning.drawing.canvas import Canvas
from tangere.planning.drawing.demo_pictures import shipped_picture, shipped_pictures
from tangere.planning.drawing.drawing_plan import DrawingPlan
from tangere.planning.drawing.make import strokes_of
from tangere.planning.drawing.placement import DoesNotFit
from tangere.planning.drawing.plan import plan_drawing
from tangere.planning.drawing.strokes import Strokes
from tangere.planning.drawing.svg_write import write_svg
from tangere.robot import Robot
from tangere.run.drawing import CanvasError, Controllers, DrawingResult, SensorName, draw, drawing_robot, heavier
from tangere.run.drawing_files import ink_lines, ink_png, preview_png, write_bytes, write_ink
from tangere.run.manifest import Manifest, write_json, write_manifest

PREVIEW, PLAN, SUMMARY, REPORT, MANIFEST = "preview.png", "plan.svg", "summary.json", "report.html", "manifest.json"
# of the drawing itself; a second controller's have its name before the dot
LOG, INK, DRAWN_SVG, DRAWN_PNG = "log.mcap", "ink.csv", "drawn.svg", "drawn.png"
VIDEO = "video.mp4"
BOTH = ("hybrid", "height-pi")
STEPS = ("reading", "tracing", "merging", "ordering", "placing", "planning")  # what `say` is called with
JOINTS = 6
# deg: a board may lean from a table to beyond a wall; nothing hangs from the ceiling by an angle alone
TILT_MAX = 135.0

Say = Callable[[str], None]
Progress = Callable[[float, float], None]


@dataclass(frozen=True)
class DrawingSettings:
    """Everything that a drawing may be told; the values are the defaults of `tangere draw`."""

    robot: str = "ur5e"
    force: float = 5.0  # N
    size: float | tuple[float, float] = 0.2  # m: the longer side, or width and height in which the picture is centred
    canvas: str = "table"  # table, wall, an angle such as 30deg, or x,y,z,rx,ry,rz
    controller: str = "hybrid"  # hybrid, height-pi or both
    sensor: SensorName = "ideal"
    stiffness: float = 2e4  # N/m of pen and paper together
    model_error: float = 0.05  # share by which all masses and inertias are larger than believed
    noise: float = 1.0  # times 0.1 N and 0.002 rad/s per sample of 1 kHz
    canvas_error: tuple[float, float] = (0.0, 0.0)  # m and rad, unknown to planner and controller
    bump: tuple[float, float, float, float] | None = None  # x, y, height, radius [m] of a cap on the paper; likewise
    hole: tuple[float, float, float, float] | None = None  # x, y, width, height [m] of a hole in it; likewise
    seed: int = 0
    style: str = "auto"
    speed: float = 0.05  # m/s on the paper
    margin: float = 0.0  # m of empty paper all round
    friction: float = 0.3  # of pen and paper
    place: bool = False  # accept the placement that is offered where the drawing does not fit

    def __post_init__(self) -> None:
        if self.controller not in (*BOTH, "both"):
            raise UnknownName(f"unknown controller {self.controller!r}; known: hybrid, height-pi, both")
        if self.sensor not in get_args(SensorName):
            raise UnknownName(f"unknown sensor {self.sensor!r}; known: {', '.join(get_args(SensorName))}")
        for name in ("force", "stiffness", "speed"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise InvalidValue(f"{name}: must be positive and finite, got {value!r}")
        if self.seed < 0:
            raise InvalidValue(f"seed: a whole number from 0 on, got {self.seed!r}")
        self.surface  # noqa: B018 - raises for a bump or hole that cannot be, before anything is planned

    @property
    def surface(self) -> CanvasError:
        """How the real paper differs from the planned one."""
        bumps = () if self.bump is None else (Bump(*self.bump),)
        return CanvasError(*self.canvas_error, bumps=bumps, hole=None if self.hole is None else Hole(*self.hole))

    @property
    def controllers(self) -> tuple[Controllers, ...]:
        """The controllers that draw, one after the other."""
        return get_args(Controllers) if self.controller == "both" else (self.controller,)


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

    @property
    def main(self) -> DrawingResult:
        """Of the first controller."""
        return next(iter(self.results.values()))

    @property
    def aborted(self) -> str:
        """Why a drawing ended early, "" if none did."""
        return next((result.aborted for result in self.results.values() if result.aborted), "")


def find_picture(name: str | os.PathLike[str]) -> Path:
    """A picture file, or a picture of the package by its name with or without ending (snail, still_life)."""
    path = Path(name)
    if path.is_file():
        return path
    shipped = shipped_pictures()
    for candidate in (str(name), f"{name}.png", f"{name}.svg"):
        if candidate in shipped:  # also where a folder of that name is there: that of an earlier drawing
            return shipped_picture(candidate)
    if path.exists():
        raise InvalidValue(f"{path} is no picture but a folder or device")
    raise UnknownName(f"no picture {str(name)!r}: no such file, and none of those that ship: {', '.join(shipped)}")


def canvas_of(text: str, robot: Robot, size: tuple[float, float]) -> Canvas:
    """table, wall, an angle to which a board leans (30deg), or x,y,z,rx,ry,rz [m, rad] of the paper's middle."""
    word = text.strip().lower()
    if word == "table":
        return Canvas.table(robot, size)
    if word == "wall":
        return Canvas.wall(robot, size)
    if word.endswith("deg") and "," not in word:
        try:
            tilt = float(word.removesuffix("deg"))
        except ValueError:
            raise InvalidValue(f"canvas {text!r}: an angle such as 30deg") from None
        if not 0.0 <= tilt <= TILT_MAX:
            raise InvalidValue(f"canvas {text!r}: 0deg (a table) to 90deg (a wall), at most {TILT_MAX:g}deg")
        return Canvas.tilted(robot, math.radians(tilt), size)
    if word.count(",") != 5 and len(word.split()) != 6:
        raise UnknownName(
            f"unknown canvas {text!r}; known: table, wall, an angle such as 30deg, "
            "or x,y,z,rx,ry,rz of its middle in m and rad (z axis out of the paper, y axis up)"
        )
    return Canvas.from_pose(text, size)


def prepare(picture: str | os.PathLike[str], settings: DrawingSettings, say: Say | None = None) -> Prepared:
    """Strokes, canvas and plan; nothing is written. DoesNotFit says where the drawing would fit.

    say: called with the name of each step as it begins.
    """
    tell = say or (lambda step: None)
    source = find_picture(picture)
    begin = perf_counter()
    robot = drawing_robot(settings.robot)
    if robot.dof != JOINTS:
        raise InvalidValue(f"drawing needs an arm of the UR kind with {JOINTS} joints, {robot.name} has {robot.dof}")
    strokes = strokes_of(source, settings.size, style=settings.style, margin=settings.margin, progress=say)
    traced = perf_counter()
    tell("placing")
    notes = list(strokes.notes)
    try:
        canvas = canvas_of(settings.canvas, robot, strokes.size)
    except NoSolution as problem:
        share = _largest(settings.canvas, robot, strokes.size)
        longest = 1e3 * max(strokes.size)
        if share == 0.0 or not settings.place:
            way = f": {share * longest:.0f} mm of {longest:.0f} would fit" if share else ""
            raise NoSolution(f"{problem}{way}") from problem
        notes.append(f"scaled to {100 * share:.0f} %: {problem}")
        strokes = strokes.transformed(scale=share)
        canvas = canvas_of(settings.canvas, robot, strokes.size)
    tell("planning")
    try:
        plan = plan_drawing(robot, strokes, canvas, speed=settings.speed, force=settings.force)
    except DoesNotFit as problem:
        offer = problem.suggestion
        if offer is None or not settings.place:
            raise
        notes.append(f"placed elsewhere: {'; '.join(problem.problems)}: {offer}")
        canvas = offer.canvas
        if offer.scale != 1.0:
            strokes = strokes.transformed(scale=offer.scale)
        plan = plan_drawing(robot, strokes, canvas, speed=settings.speed, force=settings.force)
    seconds = {"strokes": traced - begin, "plan": perf_counter() - traced}
    return Prepared(source, settings, robot, strokes, canvas, plan, tuple(notes), seconds)


def _largest(text: str, robot: Robot, size: tuple[float, float]) -> float:
    """The largest share of a size for which there is a place, in steps of 5 %; 0 where there is none."""
    for percent in range(95, 0, -5):
        share = percent / 100.0
        try:
            canvas_of(text, robot, (share * size[0], share * size[1]))
        except NoSolution:
            continue
        return share
    return 0.0


def write_preview(prepared: Prepared, out: str | os.PathLike[str]) -> Path:
    """preview.png and plan.svg into the folder, before anything moves; what an earlier drawing left there goes."""
    folder = cleared(out)
    _write_plan(prepared, folder)
    return folder


def draw_picture(
    picture: str | os.PathLike[str],
    settings: DrawingSettings | None = None,
    *,
    out: str | os.PathLike[str],
    command: Sequence[str] = (),
    say: Say | None = None,
    progress: Progress | None = None,
) -> Drawn:
    """Draw a picture and leave everything in a folder.

    preview.png, plan.svg and manifest.json come before anything moves; then log.mcap, ink.csv, drawn.svg, drawn.png;
    summary.json last: where it is there, the drawing is whole. With two controllers the second's files have its name
    (log-height-pi.mcap). Nothing is written where the picture cannot be read or the drawing does not fit.
    """
    prepared = prepare(picture, settings or DrawingSettings(), say)
    return execute_drawing(prepared, out=out, command=command, progress=progress)


def execute_drawing(
    prepared: Prepared, *, out: str | os.PathLike[str], command: Sequence[str] = (), progress: Progress | None = None
) -> Drawn:
    """Draw what was prepared, into a folder."""
    settings, plan = prepared.settings, prepared.plan
    folder = cleared(out)
    told = {"picture": prepared.picture.name, **asdict(settings), "canvas_pose": prepared.canvas.as_pose()}
    seeds, models = {"seed": settings.seed}, {"plant": heavier(prepared.robot, settings.model_error)}
    models["controller"] = prepared.robot
    write_manifest(Manifest.of(command, told, seeds=seeds, models=models), folder)
    _write_plan(prepared, folder)
    results: dict[str, DrawingResult] = {}
    for controller in settings.controllers:
        name = namer(settings, controller)
        result = draw(
            prepared.robot, plan, force=settings.force, controller=controller, sensor=settings.sensor,
            stiffness=settings.stiffness, friction=settings.friction, model_error=settings.model_error,
            noise=settings.noise, canvas_error=settings.surface, seed=settings.seed,
            log=folder / name(LOG), progress=progress,
        )  # fmt: skip
        results[controller] = result
        write_ink(result.ink, folder / name(INK))
        write_svg(ink_lines(result.ink, prepared.canvas.size), folder / name(DRAWN_SVG))
        write_bytes(ink_png(result.ink, prepared.canvas.size, settings.force), folder / name(DRAWN_PNG))
    summary = summary_of(prepared, results)
    write_json(summary, folder / SUMMARY)
    return Drawn(prepared, results, summary, folder)


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
    summary["notes"] = list(prepared.notes)
    if len(results) > 1:
        summary["controllers"] = {name: result.summary for name, result in results.items()}
    return summary


def namer(settings: DrawingSettings, controller: str) -> Callable[[str], str]:
    """File names of one controller's drawing: the main one's as they are, another's with its name before the dot."""
    if controller == settings.controllers[0]:
        return lambda name: name
    return lambda name: f"{Path(name).stem}-{controller}{Path(name).suffix}"


def cleared(out: str | os.PathLike[str]) -> Path:
    """The folder, made and proven writable, without the files of an earlier drawing; those of others stay."""
    folder = Path(out)
    drawn = [LOG, INK, DRAWN_SVG, DRAWN_PNG, VIDEO]
    ours = [SUMMARY, REPORT, *drawn, *(f"{Path(n).stem}-{c}{Path(n).suffix}" for n in drawn for c in BOTH)]
    ours += [PREVIEW, PLAN, "log.csv"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = [name for name in ours if (folder / name).exists()]
        if foreign and not (folder / MANIFEST).exists() and not set(foreign) <= {PREVIEW, PLAN}:
            raise InvalidValue(
                f"{folder} holds {', '.join(foreign)} but no {MANIFEST}: not the folder of a drawing, so nothing is "
                "overwritten there; choose another --out"
            )
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
        for name in (*ours, MANIFEST):  # what makes it look whole first
            (folder / name).unlink(missing_ok=True)
            for stray in folder.glob(f".{name}.*.part"):  # of a drawing that was killed
                stray.unlink(missing_ok=True)
    except OSError as problem:
        raise InvalidValue(f"cannot write into {folder}: {problem.strerror or problem}") from None
    return folder


def _write_plan(prepared: Prepared, folder: Path) -> None:
    write_svg(prepared.strokes, folder / PLAN)
    title = f"{prepared.picture.name}, {prepared.settings.robot}, {prepared.settings.force:g} N"
    write_bytes(preview_png(prepared.strokes, seconds=prepared.plan.duration, title=title), folder / PREVIEW)
