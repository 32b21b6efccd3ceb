"""The commands that draw: draw and write."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tangere.apps.drawing.settings import DrawingSettings
from tangere.apps.drawing.text.settings import TextSettings
from tangere.errors import InvalidValue, NoSolution
from tangere.foreign import standard_input
from tangere.options import add_options, group_from
from tangere.report.terminal import Clock, Line, table
from tangere.settings import settings_of

if TYPE_CHECKING:
    from tangere.apps.drawing.draw_picture import Drawn, Prepared

PAPER_ONLY = ("paper_friction",)  # settings without an option: what the simulated paper is
# what a text has of its own (its size follows from its letters), or what is said of pictures only
NOT_OF_TEXT = (*PAPER_ONLY, "size", "style", "thresholds", "font")

EXAMPLES = """examples:
  tangere draw snail                        the line drawing that ships, with a UR5e on a table: about two minutes of
                                            drawing in some seconds; out/snail/report.html shows all of it
  tangere draw still_life --preview         strokes, length and time only; nothing moves
  tangere draw photo.jpg --style edges --size 150mm --out out/photo
  tangere draw photo.jpg --style tones --size 150mm
                                            its tones, by more or fewer parallel lines
  tangere draw logo.svg --hatch lines --hatch-angle 30deg --hatch-distance 0.8mm
                                            filled areas are filled
  tangere draw logo.svg --robot ur10e --canvas wall
  tangere draw logo.svg --robot ur10e --canvas 30deg --force 3
  tangere draw logo.svg --canvas 0.4,0,0.1,0,0,-1.5708
                                            paper by its middle: x,y,z,rx,ry,rz in m and rad, as RTDE has poses,
                                            z axis out of the paper, y axis up
  tangere draw snail --canvas-error 3mm,2deg --sensor builtin
                                            the paper lies elsewhere than planned, the sensor is a real one
  tangere draw snail --canvas-error 3mm,2deg --probe
                                            the same, found by touch before the drawing
  tangere draw snail --drives --friction full --sensors typical
                                            with the rotors, the friction and the noise of a UR5e's joints
  tangere draw snail --controller both      hybrid force-motion control and the height PI on the same drawing
  tangere draw --list                       the pictures that ship"""

TEXTS = r"""examples:
  tangere write "Hello" --height 12mm --out out/hello
  tangere write "two\nlines" --align centre --height 8mm --canvas wall
  tangere write "Grüße" --font "DejaVu Serif" --height 20mm
                                            the outlines of a font of the system; --hatch lines fills them
  tangere write "Grüße" --font list         an unknown name: the error lists the fonts that there are
  tangere write - --wrap 150mm < letter.txt"""


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
    )
    p.add_argument("picture", nargs="?", metavar="PICTURE", help="a file, or the name of a picture that ships")
    p.add_argument("--list", action="store_true", help="list the pictures that ship")
    add_options(p, DrawingSettings, [name for name in settings_of(DrawingSettings) if name not in PAPER_ONLY])
    _add_folder(p, "out/PICTURE")
    p.set_defaults(run=draw)
    p = commands.add_parser(
        "write", help="write a text with a pen pressed with a steady force: plan, simulation, report",
        description="Set a text in a single-line font made for a pen, or in the outlines of a font of the system, and\n"
        "draw it as `tangere draw` draws a picture; the paper is as large as the text. It leaves the same files.",
        epilog=TEXTS,
    )  # fmt: skip
    p.add_argument("text", metavar="TEXT", help=r"what to write; \n begins a new line; - reads it from standard input")
    add_options(p, TextSettings)
    add_options(p, DrawingSettings, [name for name in settings_of(DrawingSettings) if name not in NOT_OF_TEXT])
    _add_folder(p, "out/TEXT")
    p.set_defaults(run=write)


def _add_folder(p: Any, usual: str) -> None:
    p.add_argument(
        "--out", metavar="DIR", help=f"folder for the drawing (default: {usual}; {usual}-2 where that holds one)"
    )
    p.add_argument("--replace", action="store_true", help="replace the earlier drawing in the default folder")
    p.add_argument("--preview", action="store_true", help="strokes, plan and preview.png only; nothing moves")
    p.add_argument("--video", action="store_true", help="also a clip of the motion (off-screen rendering)")


def draw(arguments: argparse.Namespace) -> int:
    """Draw a picture into a folder, and say how it went."""
    from tangere.apps.drawing.draw_picture import find_picture, shipped_pictures

    if arguments.list:
        print("\n".join(shipped_pictures()))
        return 0
    if arguments.picture is None:
        raise InvalidValue(f"which picture? A file, or one that ships: {', '.join(shipped_pictures())}")
    picture = find_picture(arguments.picture)
    return made(picture, group_from(DrawingSettings, arguments), arguments, Path("out") / picture.stem)


def write(arguments: argparse.Namespace) -> int:
    """Write a text into a folder, and say how it went."""
    from tangere.apps.drawing.text.layout import sized, written

    text = standard_input().rstrip("\n") if arguments.text == "-" else arguments.text
    settings = group_from(DrawingSettings, arguments)
    with written(text, group_from(TextSettings, arguments), settings.hatch != "none") as (picture, size):
        try:
            return made(picture, sized(settings, size), arguments, Path("out") / picture.stem)
        except NoSolution as problem:
            tall = arguments.height or settings_of(TextSettings)["height"].default_text
            wide, high = (1e3 * side for side in size)
            raise NoSolution(f"{problem} (with --height {tall} the text is {wide:.0f} x {high:.0f} mm)") from problem


def made(picture: Path, settings: DrawingSettings, arguments: argparse.Namespace, usual: Path) -> int:
    """Draw a picture file as the arguments say (out, preview, video), say how it went; the exit code."""
    from tangere.apps.drawing.draw_picture import PREVIEW, execute_drawing, prepare, write_preview
    from tangere.loop.folder import REPORT

    out = Path(arguments.out or usual)
    fresh = arguments.out is None and not arguments.replace
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
        folder = write_preview(prepared, out, fresh)
        if folder != out:
            print(f"note: {out} is taken and stays as it is: the preview is in {folder}", file=sys.stderr)
        print(f"preview: {folder / PREVIEW}")
        return 0
    with Clock() as bar:
        done = execute_drawing(prepared, out=out, command=["tangere", *arguments.words], progress=bar, fresh=fresh)
    if done.claim is not None and done.claim.said:
        print(f"note: {done.claim.said}", file=sys.stderr)
    if arguments.video:
        _video(done)
    from tangere.apps.drawing.page import write_drawn

    where = done.folder / REPORT
    done.attempt(REPORT, lambda: write_drawn(done, where, ["tangere", *arguments.words]))
    _tell(done)
    if REPORT in done.attempt.kept:
        print(f"report: {where}")
    done.attempt.settle(done.folder)
    return 1 if done.aborted or done.missing else 0


def _tell_plan(prepared: Prepared) -> None:
    from tangere.apps.drawing.files import figures, time_figures

    print(figures(prepared.strokes, seconds=prepared.plan.duration))
    print(time_figures(prepared.plan))
    for text in prepared.strokes.missing:
        if text not in prepared.notes:
            print(f"not all is drawn: {text}")
    for note in prepared.notes:
        print(f"note: {note}")


def _video(done: Drawn) -> None:
    from tangere.apps.drawing.files import ink_marks
    from tangere.plants.scene.scene import Pen, Scene
    from tangere.report.video import INK, write_video

    result = done.main
    pen = Pen(length=float(result.robot.model.T_flange_tcp[2, 3]))
    filmed = SimpleNamespace(robot=result.robot, scene=Scene(() if result.paper is None else (result.paper,), pen))
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
        for remark in result.figures.remarks:
            print(f"note: {remark}")
    for note in done.prepared.notes if "probe" in done.summary else ():
        if note.startswith("the paper was found"):
            print(f"note: {note}")
    rows = []
    for key, label, unit in FIGURES:
        values = [getattr(result.figures, key) for result in done.results.values()]
        factor = 100.0 if unit == "%" else 1.0
        rows.append((label, *("-" if value is None else f"{factor * value:.4g}" for value in values), unit))
    if done.incomplete:
        print(done.incomplete)
    lines = table(rows, ("", *names, ""), "l" + "r" * len(names) + "l", indent=0)
    print("\n".join(lines if len(names) > 1 else lines[2:]))


