"""The report of a drawing: picture, plan and ink side by side, how steady the force was, how true the line."""

from __future__ import annotations

import base64
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np

from tangere.apps.drawing.draw_picture import DRAWN_PNG, Drawn, drawn_png, namer
from tangere.apps.drawing.files import encoded
from tangere.apps.drawing.force.task import MODES
from tangere.apps.drawing.ink import coloured_map, distance, plan_view
from tangere.apps.drawing.picture.picture import read_picture
from tangere.apps.drawing.picture.svg_file import is_svg, shown_svg
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.summary import DrawingFigures
from tangere.errors import TangereError
from tangere.figures.markup import Raw, join, number, tag
from tangere.figures.plots import Panel, Series, TimeFigure
from tangere.logs.files import write_text
from tangere.report.data import put_together
from tangere.report.page import page_html
from tangere.report.section import Section, again, folded, page_head, table
from tangere.report.sections_curves import joints, timing, torques
from tangere.report.sections_glance import space
from tangere.report.sections_run import value_text
from tangere.report.terminal import plural
from tangere.types import Array

TITLE = 48  # letters of a title, at most
_SHEET = 4e-3  # m, thickness of the paper in the picture of the arm: seen from the side it is a line
SIDE = 720  # px of the picture in the page: half a screen
PUBLISHED = 0.38  # N, mean deviation of a real UR5e in force mode at 1 to 10 N
# key of the summary -> what it is called; the factor makes the unit
ROWS: tuple[tuple[str, str, float], ...] = (
    ("path_rms_mm", "distance from the pen's smooth path, rms [mm]", 1.0),
    ("path_max_mm", "distance from the pen's smooth path, max [mm]", 1.0),
    ("strokes_rms_mm", "distance from the lines of plan.svg, rms [mm]", 1.0),
    ("strokes_max_mm", "distance from the lines of plan.svg, max [mm]", 1.0),
    ("path_time_rms_mm", "distance from the planned point of that instant, rms [mm]", 1.0),
    ("force_mean_n", "force, mean [N]", 1.0),
    ("force_rms_error_n", "force error, rms [N]", 1.0),
    ("force_mean_deviation_n", "force error, mean deviation [N]", 1.0),
    ("force_min_n", "force while drawing, least [N]", 1.0),
    ("force_max_n", "force while drawing, most [N]", 1.0),
    ("force_touch_max_n", "force at touch-down and in the air, most [N]", 1.0),
    ("settle_s", "time the pen pressed without drawing, to settle [s]", 1.0),
    ("force_settle_rms_error_n", "force error while it settled, against the rising force wanted, rms [N]", 1.0),
    ("force_settle_max_n", "force while it settled, most [N]", 1.0),
    ("contact_lost_s", "drawing time without contact [s]", 1.0),
    ("ink_coverage", "planned lines with ink within 0.5 mm [%]", 100.0),
    ("ink_stray", "ink farther than 0.5 mm from any line [%]", 100.0),
    ("strokes_drawn", "strokes drawn, along 99 % of their line", 1.0),
    ("integral_limit_s", "pressing time with the integral at its limit [s]", 1.0),
    ("draw_s", "time the pen draws [s]", 1.0),
    ("duration_s", "duration [s]", 1.0),
    ("realtime_factor", "simulated seconds per second, log included", 1.0),
)
# settings in words, where the name alone has no unit
UNITS = {
    "force": "force [N]", "size": "size [m]", "stiffness": "stiffness of pen and paper [N/m]",
    "model_error": "masses and inertias larger by", "noise": "noise, times 0.1 N and 0.002 rad/s",
    "canvas_error": "canvas error [m, rad]", "speed": "speed [m/s]", "margin": "margin [m]",
    "place": "offered placement taken", "tolerance": "tolerance of the lines [m]",
    "canvas_points": "canvas by three points [m]", "probe": "paper touched first",
}  # fmt: skip


def write_drawn(done: Drawn, path: str | os.PathLike[str], command: Sequence[str] = ()) -> Path:
    """Write the page to `path` and say where it is; whole or not at all."""
    return write_text(path, drawn_html(done, shlex.join(command)))


def drawn_html(done: Drawn, command: str = "") -> str:
    """The page as text."""
    run = done.main.run
    data = put_together(
        run.log, None, done.summary, name=titled(done.prepared.picture), command=command, robot=done.main.robot,
        period=run.period, aborted=run.aborted, bodies=(_sheet(done.prepared.canvas),),
    )  # fmt: skip
    time = done.main.log.time
    sections = [_side_by_side(done, command), _figures(done), *_force(done, command)]
    # the error on the paper is shown above; in space the arm alone is of interest
    arm = space(replace(data, tcp_des=None, q_des=None))
    sections += [s for s in (arm, joints(data), torques(data), timing(data)) if s is not None]
    sections.append(_what(done, command))
    return page_html(f"{titled(done.prepared.picture)} drawn", _head(done), sections, time)


def titled(picture: Path) -> str:
    """What a drawing is called: the title that an SVG has, such as the text that is written, else the file's name."""
    found = None
    if picture.suffix == ".svg" and picture.is_file():
        with picture.open(encoding="utf-8", errors="replace") as file:
            found = re.search(r"<svg[^>]*>\s*<title>([^<]+)</title>", file.read(4096))
    title = " ".join(unescape(found[1]).split()) if found is not None else ""
    if not title:
        return picture.name
    return f"“{title if len(title) <= TITLE else title[: TITLE - 1].rstrip() + '…'}”"


def _sheet(canvas: Canvas) -> dict[str, Any]:
    """The paper as the picture of the arm shows it: a sheet as thick as cardboard."""
    T = canvas.T_base_canvas.copy()
    T[:3, 3] -= 0.5 * _SHEET * T[:3, 2]
    size = [0.5 * canvas.size[0], 0.5 * canvas.size[1], 0.5 * _SHEET]
    return {"name": "paper", "kind": "paper", "parts": [{"kind": "box", "size": size, "T": T[:3].ravel().tolist()}]}


def _head(done: Drawn) -> Raw:
    settings, summary, strokes = done.prepared.settings, done.summary, done.prepared.strokes
    size = " x ".join(f"{1e3 * side:.0f}" for side in strokes.size)
    line = (
        f"{done.main.robot.model.title} · {size} mm · {plural(len(strokes), 'stroke')}, "
        f"{strokes.draw_length:.2f} m drawn, {strokes.pen_up_length:.2f} m pen up · {settings.force:g} N · "
        f"{summary['controller']}, sensor {settings.sensor}"
    )
    tiles: list[tuple[str, object, str]] = []
    for key, name, unit, factor in (
        ("path_rms_mm", "off the line, rms", " mm", 1.0),
        ("force_rms_error_n", "force error, rms", " N", 1.0),
        ("force_max_n", "largest force", " N", 1.0),
        ("ink_coverage", "of the planned lines drawn", " %", 100.0),
        ("ink_stray", "stray ink", " %", 100.0),
        ("realtime_factor", "faster than real time", " ×", 1.0),
    ):
        if summary.get(key) is not None:
            tiles.append((name, number(factor * float(summary[key]), 3), unit))
    return page_head(
        titled(done.prepared.picture), line, tiles, alarm_of(done), lacks_of(done), sentence=_sentence(done)
    )


def _sentence(done: Drawn) -> str:
    """Who drew what, with which force, and how true."""
    drawn, told = done.main.figures, done.summary
    who = f"A {done.main.robot.model.title} drew {drawn.strokes_drawn} of {plural(drawn.strokes, 'stroke')}"
    true = told.get("path_rms_mm")
    force = told.get("force_mean_n")
    words = f"{who} of {titled(done.prepared.picture)}"
    words += f", pressing with {number(force, 3)} N on average" if isinstance(force, int | float) else ""
    return words + (f", {number(true, 2)} mm (rms) off its path." if isinstance(true, int | float) else ".")


def alarm_of(done: Drawn) -> tuple[str, str] | None:
    """Heading and sentence where the drawing ended early or is not whole."""
    if not (done.aborted or done.incomplete):
        return None
    heading = "The drawing ended early" if done.aborted else "The drawing is not whole"
    sentence = "; ".join(part for part in (done.aborted, done.incomplete) if part)
    return heading, f"{sentence[0].upper()}{sentence[1:]}."


def lacks_of(done: Drawn) -> tuple[str, str] | None:
    """Heading and sentence where the plan leaves out a part of the picture; the figures are those of the plan."""
    missing = done.prepared.strokes.missing
    if not missing:
        return None
    sentence = "; ".join(missing)
    return "Not all of the picture is drawn", f"{sentence[0].upper()}{sentence[1:]}."


def _side_by_side(done: Drawn, command: str) -> Section:
    strokes = done.prepared.strokes
    views = [("Picture", _picture(done)), ("Plan", plan_view(strokes.lines, strokes.size, "the strokes as planned"))]
    for controller, result in done.results.items():
        name = "Drawn" if len(done.results) == 1 else f"Drawn, {controller}"
        path = done.folder / namer(done.prepared.settings, controller)(DRAWN_PNG)
        inked = path.read_bytes() if path.is_file() else drawn_png(result, done.prepared)  # none: the disk was full
        views.append((name, _image("image/png", inked, name)))
    paper = "padding:8px;background:#fff"
    boxes = [
        tag("figure", tag("div", view, class_="stage", style=paper), tag("figcaption", name), style="margin:0")
        for name, view in views
        if view is not None
    ]
    wide, high = strokes.size
    least = min(1000.0 / len(boxes) - 20.0, 200.0) if wide < 3.0 * high else 500.0  # [px]: a line of writing is long
    grid = f"display:grid;gap:16px;grid-template-columns:repeat(auto-fit,minmax(min(100%,{least:.0f}px),1fr))"
    text = (
        "The ink as a camera would see it: width by the cube root of the true force, paler where the pen hardly "
        "pressed."
    )
    body = join(tag("div", *boxes, style=grid), tag("p", text, again(command, "drawing")))
    return Section("drawing", "Picture, plan, drawing", body)


def _image(kind: str, data: bytes, label: str) -> Raw:
    source = f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
    return tag("img", src=source, alt=label, style="width:100%;display:block;background:#fff")


def _picture(done: Drawn) -> Raw | None:
    """The customer's own picture. An SVG is an image of the page: browsers run and fetch nothing in one."""
    source = done.prepared.picture
    try:
        if is_svg(source):
            return _image("image/svg+xml", shown_svg(source.read_bytes()), "the picture")
        rgb = read_picture(source, side_max=SIDE).rgb
        from PIL import Image

        return _image("image/jpeg", encoded(Image.fromarray(rgb), "JPEG", quality=85), "the picture")
    except (TangereError, OSError):  # it was moved or changed since it was read; the report must not be lost over it
        return None


def _figures(done: Drawn) -> Section:
    rows: list[tuple[object, ...]] = []
    for key, name, factor in ROWS:
        values = [getattr(result.figures, key) for result in done.results.values()]
        if all(value is None for value in values):
            continue
        shown = ("–" if v is None else number(factor * v if factor != 1.0 else v, 3) for v in values)
        rows.append(beside_units(name, *shown))
    delays = [result.figures.touch_delay_ms for result in done.results.values()]
    if any(delays):
        cells = ("–" if d is None else f"{number(d['mean'], 3)}, {number(d['max'], 3)}" for d in delays)
        rows.append(beside_units("contact found after, mean and longest [ms]", *cells))
    stiffness = (stiffness_text(result.figures) for result in done.results.values())
    rows.append(beside_units("paper and pen: stiffness found [N/m]", *stiffness))
    head = ("", *done.results) if len(done.results) > 1 else ()
    half = len(rows) if head else -(-len(rows) // 2)  # two tables side by side
    shown_rows = tag("div", *(table(head, part, "facts") for part in (rows[:half], rows[half:]) if part), class_="pair")
    text = (
        "Against the true tip and the true contact force, which only the simulator knows; forces while the pen draws, "
        "from the end of each touch-down on. The smooth path is what the pen is to follow; it rounds the corners of "
        "the lines in plan.svg. ink.csv: t in s, x and y in m from the paper's middle, force in N. For comparison: a "
        f"real UR5e in force mode at 1 to 10 N deviates by {PUBLISHED} N on average."
    )
    parts = [tag("p", text), shown_rows]
    said = [remark for result in done.results.values() for remark in result.figures.remarks]
    if said:
        parts.append(tag("ul", *(tag("li", remark) for remark in said)))
    found = done.summary.get("probe")
    if found:
        text = f"Found by touch before the drawing: {number(found['offset_mm'], 3)} mm off along the normal, tilted by "
        parts.append(tag("p", f"{text}{number(found['tilt_deg'], 3)} degrees."))
    notes = [(f"{number(n.time, 6)} s", n.text) for n in done.main.log.notes[:40]]
    if notes:
        parts += [tag("h3", "What happened"), table((), list(notes), "notes")]
    return Section("figures", "How it went", join(*parts))


def stiffness_text(figures: DrawingFigures) -> str:
    """The stiffness that was found; where none was, the one that the controller used instead."""
    value = number(int(round(figures.stiffness_hat, -2)))
    return value if figures.stiffness_learned else f"none, the controller took {value}"


def _force(done: Drawn, command: str) -> list[Section]:
    """Force and distance over time, and both on the paper."""
    result, canvas = done.main, done.prepared.canvas
    whose = "" if len(done.results) == 1 else f" Controller: {next(iter(done.results))}."
    log = result.log
    if not len(log):
        return [Section("force", "Force and line", tag("p", "Nothing was recorded."))]
    normal = canvas.normal
    drawing = log["mode"] == MODES.index("draw")
    curves = [
        Series("wanted", log["force_des"], "soft"),
        Series("true", log.each(lambda part: part["wrench_true"][:, :3] @ normal), "a"),
        Series("felt", log["force"], "b"),
    ]
    off = np.full(len(log), np.nan)
    lines = [np.asarray(line) for line in done.prepared.plan.polylines()]
    tip = log.each(lambda part: canvas.from_base(part["T_true"].reshape(-1, 3, 4)[:, :, 3])[:, :2])
    off[drawing] = 1e3 * distance(tip[drawing], lines)
    figures = [
        TimeFigure(
            "pen-force",
            f"Force along the paper's normal: as wanted, as it truly was, and as the controller felt it.{whose}",
            log.time, (Panel("Force", "N", tuple(curves), at_least=1.0),), hidden=("felt",),
        ),
        TimeFigure(
            "line-error", f"Distance of the true tip from the planned lines while the pen draws.{whose}",
            log.time, (Panel("Off the line", "mm", (Series("distance", off, "c"),), at_least=0.01),),
        ),
    ]  # fmt: skip
    parts = [figure.html(again(command, figure.identifier)) for figure in figures]
    if len(result.ink):
        parts.insert(0, _maps(done, off, whose, command))
    return [Section("force", "Force and line", join(*parts), tuple(figure.data() for figure in figures))]


def _maps(done: Drawn, off: Array, whose: str, command: str) -> Raw:
    ink, time, size, force = done.main.ink, done.main.log.time, done.prepared.canvas.size, done.prepared.settings.force
    row = np.searchsorted(time, ink.t).clip(0, len(time) - 1)
    error = np.nan_to_num(off[row])
    drawn = np.isfinite(off[row])
    # the scale is that of the drawing; a touch-down, which goes through all forces from 0, shows its end colours
    inner = max(0.1, float(np.percentile(np.abs(ink.force[drawn] - force), 99.0))) if drawn.any() else force
    views = (
        ("force-map", f"Force on the paper. Below and above the scale: its end colours.{whose}",
         coloured_map(ink, ink.force, size, "N", "ink coloured by force", (max(0.0, force - inner), force + inner))),
        ("error-map", f"Distance from the planned line, on the paper.{whose}",
         coloured_map(ink, error, size, "mm", "ink coloured by its distance from the plan",
                      (0.0, max(1e-3, float(np.percentile(error, 99.5)))))),
    )  # fmt: skip
    figures = [
        tag("figure", tag("div", view, class_="stage", style="padding:8px"),
            tag("figcaption", caption, again(command, name)), id=name)
        for name, caption, view in views
    ]  # fmt: skip
    return tag("div", *figures, class_="pair")


def beside_units(name: str, *values: str) -> tuple[object, ...]:
    """A row of figures with the unit beside the numbers, not in the name."""
    words, bracket, unit = name.rpartition(" [")
    if not bracket:
        return (name, *values)
    unit = unit.removesuffix("]")
    return (words, *(f"{value}\N{NO-BREAK SPACE}{unit}" if value[-1:].isdigit() else value for value in values))


def _what(done: Drawn, command: str) -> Section:
    """Command, settings, what the plan's checks found, and what was noted on the way."""
    prepared = done.prepared
    check: Mapping[str, Any] = asdict(prepared.plan.check)
    usual = asdict(type(prepared.settings)())
    settings = {key: value for key, value in asdict(prepared.settings).items() if value is not None}
    named = {key: (UNITS.get(key, key.replace("_", " ")), value_text(value)) for key, value in settings.items()}
    left: list[tuple[object, ...]] = list(named.values())
    own = [named[key] for key, value in settings.items() if value != usual[key]]
    right: list[tuple[object, ...]] = [
        ("canvas x, y, z, rx, ry, rz [m, rad]", value_text(prepared.canvas.as_pose())),
        ("most force the arm can press with there [N]", number(check["force_max"])),
        ("smallest singular value of the Jacobian", number(check["sigma_min"])),
        ("links to the surface, least [mm]", number(1e3 * check["surface_distance"])),
        ("to the nearest joint limit [deg]", number(float(np.degrees(check["joint_margin"])))),
        ("largest share of a joint's speed [%]", number(100.0 * check["velocity_share"])),
        ("largest share of a joint's torque [%]", number(100.0 * check["torque_share"])),
        ("inertia felt at the tip [kg]", number(check["tip_mass"])),
        ("pen's way off the strokes, at most [mm]", number(1e3 * check["deviation"])),
        ("estimated time [s]", number(prepared.plan.duration)),
        *((f"wall time: {step} [s]", number(value, 3)) for step, value in prepared.seconds.items()),
    ]
    parts = [tag("pre", tag("code", command), class_="command")] if command else []
    if own:
        parts += [tag("h3", "Set for this drawing"), table((), own, "facts")]
    both = tag("div", table((), left), table((), right), class_="pair")
    parts.append(folded(f"All {len(left)} settings, and what the plan's checks found", both))
    if prepared.notes:
        parts += [tag("h3", "Notes"), tag("ul", *(tag("li", note) for note in prepared.notes))]
    clip = done.folder / "video.mp4"
    if clip.is_file() and clip.stat().st_size < 8_000_000:  # larger ones stay beside the page
        source = "data:video/mp4;base64," + base64.b64encode(clip.read_bytes()).decode("ascii")
        parts.append(tag("figure", tag("video", src=source, controls="", loop="", muted=""), style="max-width:640px"))
    return Section("what", "Reproduce", join(*parts))
