"""The command that draws: draw."""

from __future__ import annotations

import argparse
import math
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tangere.errors import InvalidValue, NoSolution
from tangere.report.progress import Clock, Line
from tangere.report.terminal import table

if TYPE_CHECKING:
    from tangere.apps.drawing.draw_picture import DrawingSettings, Drawn, Prepared

EXAMPLES = """examples:
  tangere draw snail                        the line drawing that ships, with a UR5e on a table: about two minutes of
                                            drawing in some seconds; out/snail/report.html shows all of it
  tangere draw still_life --preview         strokes, length and time only; nothing moves
  tangere draw photo.jpg --style edges --size 150mm --out out/photo
  tangere draw logo.svg --robot ur10e --canvas wall
  tangere draw logo.svg --robot ur10e --canvas 30deg --force 3
  tangere draw logo.svg --canvas 0.4,0,0.1,0,0,-1.5708
                                            paper by its middle: x,y,z,rx,ry,rz in m and rad, as RTDE has poses,
                                            z axis out of the paper, y axis up
  tangere draw snail --canvas-error 3mm,2deg --sensor builtin
                                            the paper lies elsewhere than planned, the sensor is a real one
  tangere draw snail --canvas-error 3mm,2deg --probe
                                            the same, found by touch before the drawing
  tangere draw snail --controller both      hybrid force-motion control and the height PI on the same drawing
  tangere draw --list                       the pictures that ship"""


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "draw",
        help="draw a picture with a pen pressed with a steady force: plan, simulation, report",
        description="Turn a picture (PNG, JPEG, SVG) into strokes, check that the arm can draw them there, draw them\n"
        "in simulation with a pen pressed on paper with a steady force, and leave preview.png, plan.svg, log.mcap,\n"
        "ink.csv (t in s, x and y in m from the paper's middle, force in N), drawn.svg, drawn.png, manifest.json,\n"
        "summary.json and report.html in a folder.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # a value such as -0.4,0,0.1,0,0,0 or -3mm,2deg is a value, not an option: argparse knows that of plain numbers only
    p._negative_number_matcher = re.compile(r"-\.?\d")
    p.add_argument("picture", nargs="?", metavar="PICTURE", help="a file, or the name of a picture that ships")
    p.add_argument("--list", action="store_true", help="list the pictures that ship")
    p.add_argument("--robot", default="ur5e", metavar="NAME|FILE", help="the arm (default: ur5e)")
    p.add_argument("--force", default="5", metavar="N", help="with which the pen is pressed (default: 5)")
    p.add_argument(
        "--size", default="200mm", metavar="LENGTH|WxH",
        help="longer side of the drawing, or width and height such as 200x150mm (default: 200mm)",
    )  # fmt: skip
    p.add_argument("--margin", default="0mm", metavar="LENGTH", help="of empty paper all round (default: 0mm)")
    p.add_argument(
        "--canvas", default="table", metavar="table|wall|ANGLE|POSE",
        help="where the paper is: on the table, on a wall in front, on a board that leans (30deg), or x,y,z,rx,ry,rz "
        "of its middle in m and rad (default: table)",
    )  # fmt: skip
    p.add_argument(
        "--canvas-points", metavar='"X,Y,Z X,Y,Z X,Y,Z"',
        help="instead: the paper's lower left, lower right and upper left corner in m, as touched by the pen",
    )  # fmt: skip
    p.add_argument(
        "--probe", action="store_true",
        help="touch the paper at five points first (marks of 0.3 mm), then plan on the plane that was found",
    )  # fmt: skip
    p.add_argument(
        "--place", action="store_true", help="where the drawing does not fit: take the placement that is offered"
    )
    p.add_argument(
        "--controller", choices=("hybrid", "height-pi", "both"), default="hybrid",
        help="hybrid force-motion control, the height PI of document 004, or both for comparison (default: hybrid)",
    )  # fmt: skip
    p.add_argument(
        "--sensor", choices=("ideal", "builtin", "none"), default="ideal",
        help="where the force comes from: an ideal wrist sensor, the one in a UR's flange, or none: the momentum "
        "observer (default: ideal)",
    )  # fmt: skip
    p.add_argument(
        "--stiffness", default="2e4", metavar="N/m", help="of pen and paper together, 2e3 to 1e5 (default: 2e4)"
    )
    p.add_argument(
        "--model-error", default="0.05", metavar="SHARE",
        help="by which the masses and inertias of the arm are larger than believed, -0.5 to 1 (default: 0.05)",
    )  # fmt: skip
    p.add_argument(
        "--noise", default="default", metavar="default|off|FACTOR",
        help="of force and speed, 0.1 N and 0.002 rad/s per sample of 1 kHz, or so many times that (default: default)",
    )  # fmt: skip
    p.add_argument(
        "--canvas-error", default="0mm,0deg", metavar="LENGTH,ANGLE",
        help="how much higher and tilted the paper really lies, up to 20mm and 20deg; nobody is told "
        "(default: 0mm,0deg)",
    )  # fmt: skip
    p.add_argument(
        "--bump", metavar="X,Y,HEIGHT,RADIUS", help="a cap on the paper, in mm from its middle; nobody is told"
    )
    p.add_argument(
        "--hole", metavar="X,Y,W,H", help="a hole in the paper, in mm: the pen loses the surface; nobody is told"
    )
    p.add_argument(
        "--style", choices=("auto", "lines", "edges"), default="auto",
        help="centre lines of a line drawing, edges of a photograph, or what the picture looks like (default: auto)",
    )  # fmt: skip
    p.add_argument(
        "--thresholds", metavar="LOW,HIGH",
        help="of the edges of a photograph, in grey levels per pixel (default: found in the picture)",
    )  # fmt: skip
    p.add_argument(
        "--tolerance", default="0.1mm", metavar="LENGTH",
        help="by which the lines may be simplified (default: 0.1mm)",
    )  # fmt: skip
    p.add_argument("--speed", default="50mm/s", metavar="SPEED", help="of the pen on the paper (default: 50mm/s)")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="of everything random (default: 0)")
    p.add_argument("--out", metavar="DIR", help="folder for the drawing (default: out/PICTURE)")
    p.add_argument("--preview", action="store_true", help="strokes, plan and preview.png only; nothing moves")
    p.add_argument("--video", action="store_true", help="also a clip of the motion (off-screen rendering)")
    p.set_defaults(run=draw)


def draw(arguments: argparse.Namespace) -> int:
    """Draw a picture into a folder, and say how it went."""
    from tangere.apps.drawing.draw_picture import PREVIEW, execute_drawing, find_picture, prepare, write_preview
    from tangere.apps.drawing.picture.shipped import shipped_pictures

    if arguments.list:
        print("\n".join(shipped_pictures()))
        return 0
    if arguments.picture is None:
        raise InvalidValue(f"which picture? A file, or one that ships: {', '.join(shipped_pictures())}")
    settings = settings_of(arguments)
    picture = find_picture(arguments.picture)
    out = Path(arguments.out or Path("out") / picture.stem)
    steps = Line()
    try:
        prepared = prepare(picture, settings, steps)
    except NoSolution as problem:
        if settings.place or "would fit" not in str(problem):
            raise
        raise NoSolution(f"{problem}; --place takes the first that is offered") from problem
    finally:
        steps.end()
    _tell_plan(prepared)
    if arguments.preview:
        folder = write_preview(prepared, out)
        print(f"preview: {folder / PREVIEW}")
        return 0
    bar = Clock()
    try:
        done = execute_drawing(prepared, out=out, command=["tangere", *arguments.words], progress=bar)
    finally:
        bar.end()
    if arguments.video:
        _video(done)
    from tangere.apps.drawing.page import write_drawn

    where = write_drawn(done, done.folder / "report.html", ["tangere", *arguments.words])
    _tell(done)
    print(f"report: {where}")
    return 1 if done.aborted or done.missing else 0


def settings_of(arguments: argparse.Namespace) -> DrawingSettings:
    """The options with their units, in SI."""
    from tangere.apps.drawing.draw_picture import DrawingSettings

    return DrawingSettings(
        robot=arguments.robot,
        force=_value("--force", "force", arguments.force),
        size=_size(arguments.size),
        canvas=arguments.canvas,
        controller=arguments.controller,
        sensor=arguments.sensor,
        stiffness=_value("--stiffness", "stiffness", arguments.stiffness),
        model_error=_value("--model-error", "number", arguments.model_error),
        noise=_noise(arguments.noise),
        canvas_error=_error(arguments.canvas_error),
        bump=_spot("--bump", arguments.bump),
        hole=_spot("--hole", arguments.hole),
        seed=arguments.seed,
        style=arguments.style,
        speed=_value("--speed", "speed", arguments.speed),
        margin=_length("--margin", arguments.margin),
        place=arguments.place,
        tolerance=_length("--tolerance", arguments.tolerance),
        thresholds=_thresholds(arguments.thresholds),
        canvas_points=_points(arguments.canvas_points),
        probe=arguments.probe,
    )


def _value(option: str, kind: str, text: str) -> float:
    from tangere.settings import numbers

    unit = {"force": "N", "stiffness": "N/m", "number": "", "speed": "m/s", "length": "m", "angle": "rad"}[kind]
    return numbers(text, option, unit, (1,))[0]


def _length(option: str, text: str) -> float:
    """A length whose unit must be said where it could be mistaken: nobody draws several metres."""
    value = _value(option, "length", text)
    if abs(value) >= 5.0:  # m, beyond any arm
        if text.strip()[-1:].isalpha():
            raise InvalidValue(f"{option}: no arm reaches {text.strip()}; a length such as 200mm")
        raise InvalidValue(f"{option}: {text!r} is {value:g} m; millimetres? write {text.strip()}mm")
    return value


def _size(text: str) -> float | tuple[float, float]:
    parts = text.lower().replace("×", "x").split("x")
    if len(parts) > 2:
        raise InvalidValue(f"--size: a length such as 200mm, or 200x150mm, got {text!r}")
    unit = parts[-1].strip().lstrip("0123456789.eE+- ")
    whole = [part if part.strip()[-1:].isalpha() else f"{part}{unit}" for part in parts]
    sides = [_length("--size", part) for part in whole]
    if min(sides) <= 0.0:
        raise InvalidValue(f"--size: a positive length, got {text!r}")
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def _noise(text: str) -> float:
    words = {"default": 1.0, "on": 1.0, "off": 0.0}
    if text in words:
        return words[text]
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not (math.isfinite(factor) and factor >= 0.0):
        raise InvalidValue(f"--noise: default, off, or a factor from 0 on, got {text!r}")
    return factor


def _error(text: str) -> tuple[float, float]:
    parts = text.split(",")
    if len(parts) > 2:
        raise InvalidValue(f"--canvas-error: a length and an angle such as 3mm,2deg, got {text!r}")
    if len(parts) == 1 and text.strip().endswith(("deg", "rad")):
        parts = ["0mm", text]
    for part in parts:
        if not part.strip()[-1:].isalpha() and part.strip().strip("0.+-"):
            raise InvalidValue(f"--canvas-error: with units, such as 3mm,2deg, got {text!r}")
    offset = _length("--canvas-error", parts[0])
    return offset, _value("--canvas-error", "angle", parts[1]) if len(parts) == 2 else 0.0


def _thresholds(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidValue(f"--thresholds: two numbers LOW,HIGH such as 8,20, got {text!r}") from None
    return low, high


def _points(text: str | None) -> tuple[tuple[float, ...], ...] | None:
    if text is None:
        return None
    try:
        points = tuple(tuple(float(x) for x in word.split(",")) for word in text.replace(";", " ").split())
    except ValueError:
        points = ()
    if [len(point) for point in points] != [3, 3, 3]:
        raise InvalidValue(f'--canvas-points: three points in m, "0.3,-0.1,0 0.5,-0.1,0 0.3,0.1,0", got {text!r}')
    return points


def _spot(option: str, text: str | None) -> tuple[float, float, float, float] | None:
    """Four lengths, in mm where no unit is said."""
    if text is None:
        return None
    parts = [part if part.strip()[-1:].isalpha() else f"{part}mm" for part in text.split(",")]
    if len(parts) != 4:
        raise InvalidValue(f"{option}: four lengths with commas between, got {text!r}")
    a, b, c, d = (_length(option, part) for part in parts)
    return a, b, c, d


def _tell_plan(prepared: Prepared) -> None:
    from tangere.apps.drawing.svg.preview import figures, time_figures

    print(figures(prepared.strokes, seconds=prepared.plan.duration))
    print(time_figures(prepared.plan))
    for note in prepared.notes:
        print(f"note: {note}")


def _video(done: Drawn) -> None:
    from tangere.apps.drawing.files import ink_marks
    from tangere.plants.scene.scene import Pen, Scene
    from tangere.report.video import INK, write_video

    result = done.main
    pen = Pen(length=float(result.robot.model.T_flange_tcp[2, 3]))
    filmed = SimpleNamespace(robot=result.robot, scene=Scene(pen=pen, paper=result.paper))
    marks = ink_marks(result.ink, done.prepared.canvas, INK)
    try:
        write_video(filmed, result.log, done.folder / "video.mp4", marks=marks)
    except Exception as problem:  # graphics libraries raise what they like; the report must not be lost over a clip
        print(f"no video: {problem}", file=sys.stderr)


# key of the summary, what it is called, unit
FIGURES = (
    ("path_rms_mm", "distance from the planned path, rms", "mm"),
    ("path_max_mm", "distance from the planned path, max", "mm"),
    ("strokes_max_mm", "distance from the lines of plan.svg, max", "mm"),
    ("force_mean_n", "force, mean", "N"),
    ("force_rms_error_n", "force error, rms", "N"),
    ("force_max_n", "force after touch-down, max", "N"),
    ("force_touch_max_n", "force at touch-down, max", "N"),
    ("settle_s", "time in which the pen pressed and waited", "s"),
    ("contact_lost_s", "contact lost", "s"),
    ("ink_coverage", "planned lines drawn within 0.5 mm", "%"),
    ("ink_stray", "stray ink", "%"),
    ("duration_s", "duration", "s"),
    ("realtime_factor", "faster than real time", "x"),
)


def _tell(done: Drawn) -> None:
    """The few numbers that matter, and where the rest is."""
    names = list(done.results)
    for name, result in done.results.items():
        if result.aborted:
            print(f"aborted{f' ({name})' if len(names) > 1 else ''}: {result.aborted}")
        if result.run.log_error:
            print(f"the log is not complete: {result.run.log_error}")
        for remark in result.summary["remarks"]:
            print(f"note: {remark}")
    for note in done.prepared.notes if "probe" in done.summary else ():
        if note.startswith("the paper was found"):
            print(f"note: {note}")
    rows = []
    for key, label, unit in FIGURES:
        values = [result.summary.get(key) for result in done.results.values()]
        factor = 100.0 if unit == "%" else 1.0
        rows.append((label, *("-" if value is None else f"{factor * value:.4g}" for value in values), unit))
    if done.incomplete:
        print(done.incomplete)
    lines = table(rows, ("", *names, ""), "l" + "r" * len(names) + "l", indent=0)
    print("\n".join(lines if len(names) > 1 else lines[2:]))


