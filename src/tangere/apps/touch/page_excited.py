"""The page of a planned motion: what it will identify, how it looks, and in which box."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np

from tangere.figures.arm import HEIGHT, WIDTH, scene
from tangere.figures.axes import drawing
from tangere.figures.markup import Raw, join, number, tag
from tangere.figures.plots import Panel, Series, TimeFigure
from tangere.identification.excite import ExcitingMotion
from tangere.logs.files import write_text
from tangere.report.page import page_html
from tangere.report.section import (
    Section,
    again,
    bar,
    command_line,
    folded,
    page_head,
    staged,
    table,
    time_section,
    titles,
)
from tangere.report.terminal import plural
from tangere.types import Array

_TERMS = (("coulomb", "Coulomb [Nm]"), ("viscous", "viscous [Nm s/rad]"), ("rotor_inertia", "rotor [kg m²]"))
PM = "±\N{NO-BREAK SPACE}"
NEAR = 1.6  # a box is drawn that is no larger than so many times what the tool sees of it
_SHOWN = 4  # rows of the motion in one of the page's figures: 125 per second draw every bend of it


def write_excited(motion: ExcitingMotion, path: str | os.PathLike[str], command: str = "") -> Path:
    """Write the page to `path` and say where it is."""
    return write_text(path, excited_html(motion, command))


def excited_html(motion: ExcitingMotion, command: str = "") -> str:
    """The page as text."""
    sections = [_space(motion, command), _drives(motion), _base(motion), _curves(motion, command)]
    sections.append(_moves(motion, command))
    return page_html(f"{motion.robot.model.title}: a motion to record", _head(motion), sections, motion.time[::_SHOWN])


def _head(motion: ExcitingMotion) -> Raw:
    said = motion.forecast
    tiles: list[tuple[str, object, str]] = [
        ("length", number(motion.seconds, 3), " s"),
        ("moves", len(motion.moves), ""),
        ("base parameters told", f"{said.told} of {len(said.base)}", ""),
        ("fastest joint", number(float(np.abs(motion.qd).max()), 3), " rad/s"),
    ]
    alarm = None
    if not motion.whole:
        alarm = ("The shoulder is outside the box", "Wrist and tool stay in it; upper arm and forearm do not.")
    line = f"{motion.robot.model.title}: planned for identification, nothing has moved yet"
    sentence = (
        f"{plural(len(motion.moves), 'move')} in {number(motion.seconds, 3)} s tell {said.told} of {len(said.base)} "
        f"combinations of the masses of a {motion.robot.model.title} better than its data sheet, and its friction."
    )
    return page_head(f"{motion.robot.model.title}: a motion to record", line, tiles, alarm, sentence=sentence)


def _space(motion: ExcitingMotion, command: str) -> Section:
    postures = np.stack([motion.moves[0].start, *(move.end for move in motion.moves)])
    path = motion.robot.pose(motion.q[::25])[:, :3, 3]
    edges = [("limit", edge) for edge in _edges(motion.box.low, motion.box.high)]
    if max(np.abs(motion.box.low).max(), np.abs(motion.box.high).max()) > NEAR * np.abs(path).max():
        edges = []  # far from the arm, which would be a dot in it
    when = np.arange(len(postures), dtype=np.float64)
    drawn = scene(motion.robot, postures, when, "postures", frames=False, paths=(*edges, ("a", path)))
    title = "The arm at its start, the path of its tool and the box"
    still = drawing(title, WIDTH, HEIGHT, drawn.drawn(0))
    caption = (
        f"The arm at its start, the path of its tool, and the box ({motion.box}). Links are taken as simple shapes "
        "with 5 cm around them; the move to the start is not checked."
    )
    figure = staged(still, caption, again(command, "space"))
    return Section("space", "Where it moves", figure)


def _edges(low: Array, high: Array) -> list[Array]:
    """The twelve edges of the box, (2, 3) each [m]."""
    ends = np.stack([low, high])
    corners = [np.array([ends[i, 0], ends[j, 1], ends[k, 2]]) for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    return [np.stack([a, b]) for n, a in enumerate(corners) for b in corners[:n] if np.sum(a != b) == 1]


def _drives(motion: ExcitingMotion) -> Section:
    rows = []
    for j, title in enumerate(titles(motion.robot)):
        cells: list[object] = []
        for name, _ in _TERMS:
            value, before, after = (float(part[j]) for part in motion.forecast.friction[name])
            cells += [number(value, 3), f"{PM}{number(before, 2)}", f"{PM}{number(after, 2)}"]
        rows.append((title, *cells))
    head = ("", *(text for _, title in _TERMS for text in (title, "before", "after")))
    text = (
        "Expected value, and its standard deviation before (from the data sheet and other arms) and after the motion, "
        "if a model misses as much as on arms of its kind: 7 % of the Coulomb friction in every 20 ms, much the same "
        "for a third of a second."
    )
    return Section("drives", "What it will tell of the drives", join(tag("p", text), table(head, rows)))


def _base(motion: ExcitingMotion) -> Section:
    rows = []
    for one in motion.forecast.base:
        share = 100.0 * one.after / one.before
        said = "told" if one.told else "keeps the data sheet's"
        # digits of the data sheet that are not lost in what is unsure of them
        digits = max(0, 1 - math.floor(math.log10(min(one.before, one.after))))
        value = f"{round(one.value, digits) + 0.0:.{digits}f}".replace("-", "−")
        rows.append((
            one.name, f"{value} {one.unit.replace('m2', 'm²')}",
            f"{PM}{number(one.before, 2)}", f"{PM}{number(one.after, 2)}", said, bar(share),
        ))  # fmt: skip
    head = ("named by its first term", "data sheet", "before", "after", "", "uncertainty left")
    whole = [(one.name, one.combination) for one in motion.forecast.base]
    fold = tag("details", tag("summary", "Every combination in full"), table(("", ""), whole))
    text = (
        "Combinations of masses m, first moments h and inertias I (about the origins of the links' frames) that joints "
        "can feel at all. Told: at least half of the variance is gone."
    )
    return Section("base", "Base parameters", join(tag("p", text), table(head, rows, "bars"), fold))


def _curves(motion: ExcitingMotion, command: str) -> Section:
    time = motion.time[::_SHOWN]
    figures = []
    for key, unit, caption in (
        ("q", "rad", "Joint positions."),
        ("qd", "rad/s", "Joint velocities: slow and fast, both ways."),
        ("qdd", "rad/s²", "Joint accelerations; each begins and ends at zero in every move."),
    ):
        values = getattr(motion, key)[::_SHOWN]
        panels = tuple(
            Panel(title, unit, (Series("planned", values[:, j], "b"),), at_least=1e-2)
            for j, title in enumerate(titles(motion.robot))
        )
        figures.append(TimeFigure(f"planned-{key}", caption, time, panels))
    return time_section("motion", "The motion", command, *figures)


def _moves(motion: ExcitingMotion, command: str) -> Section:
    """The command, and behind a line to open every move."""
    rows = []
    begin = 0.0
    for k, move in enumerate(motion.moves, start=1):
        goal = (f"{value:.1f}".replace("-", "\N{MINUS SIGN}") for value in np.rad2deg(move.end).tolist())
        rows.append((str(k), number(begin, 4), number(move.duration, 3), *goal))
        begin += move.duration + 0.1
    ends = (f"joint {j + 1} ends at [deg]" if j == 0 else f"joint {j + 1}" for j in range(motion.robot.dof))
    told = folded(f"All {len(motion.moves)} moves", table(("move", "begins [s]", "takes [s]", *ends), rows))
    return Section("moves", "Reproduce", join(command_line(command), told))
