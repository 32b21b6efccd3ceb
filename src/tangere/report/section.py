"""What a report is a list of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tangere.figures.markup import Raw, join, number, tag, text
from tangere.figures.plots import Band, Level, Panel, Series, TimeFigure
from tangere.report.data import About, RunData, loaded
from tangere.types import Array, Event

if TYPE_CHECKING:
    from tangere.robots import Robot


# rad or m; a joint that went further has left the room: a log with such values is shown, the arm is not drawn there
_LARGEST = 1e3
NAME = 34  # characters of a name in a table that does not wrap
LONG = 12  # rows of a table that are shown without being asked for
NEAR = 0.8  # of a threshold: what comes so near without an event is a near miss
BESIDE = 1.0  # [s] around it that belong to it
STAMP = 0.1  # of a period: stamps that are off by more are seen as stairs where a figure is zoomed
MUCH = 0.8  # share of a run that events may fill and still be shaded: beyond it everything would be


@dataclass(frozen=True)
class Section:
    """A titled part of the page, and the data of its live figures."""

    identifier: str  # the anchor
    title: str
    body: Raw
    figures: tuple[dict[str, Any], ...] = ()


def page_head(
    title: str, line: str, tiles: list[tuple[str, object, str]], alarm: tuple[str, str] | None = None,
    caution: tuple[str, str] | None = None, *, sentence: str = "", about: About | None = None,
) -> Raw:  # fmt: skip
    """The head of a page: title, line below it, alarm and caution (heading, sentence), tiles (name, value, unit).

    Red (alarm) is what is wrong, amber (caution) what has its limits. sentence: what happened, in plain words.
    """
    about = about or About()
    boxes = [tag("div", tag("dt", name), tag("dd", value, tag("small", unit))) for name, value, unit in tiles]
    warning = None
    if alarm is not None:
        warning = tag("div", tag("b", alarm[0]), tag("p", alarm[1]), class_="alarm", role="alert")
    return tag(
        "header",
        tag("p", tag("img", src=about.logo, alt="") if about.logo else "Tangere", class_="brand"),
        tag("h1", about.title or title),
        tag("p", sentence, class_="said") if sentence else None,
        tag("p", " · ".join(part for part in (line, about.author, about.date) if part), class_="sub"),
        warning,
        None if caution is None else tag("div", tag("b", caution[0]), tag("p", caution[1]), class_="alarm caution"),
        tag("dl", *boxes, class_="tiles") if boxes else None,
    )


def again(command: str, anchor: str) -> Raw:
    """The tools of a figure: a link to it that says how to make it again; the script adds what it can be saved as."""
    words = f"Make it again: {command} → #{anchor}" if command else "Link to this figure"
    return tag("span", tag("a", "#", href=f"#{anchor}", title=words, aria_label=words, class_="again"), class_="tools")


def by_hand(words: str) -> Raw:
    """What can be done with a figure on a screen: it is neither printed nor saved with it."""
    return tag("span", words, class_="by-hand")


def folded(words: str, *parts: object, open_: bool = False, **attributes: object) -> Raw:
    """What few want to read: a line that opens it."""
    return tag("details", tag("summary", words), *parts, open="" if open_ else None, **attributes)


def alone(data: RunData) -> bool:
    """Whether it is a log and nothing else: a recording of somebody, no run of ours that could tell more."""
    return len(data.time) > 0 and not (data.summary or data.command or data.parameters)


def command_line(command: str) -> Raw | None:
    """The command as a line of its own; None where there was none."""
    return tag("pre", tag("code", command), class_="command") if command else None


def staged(drawn: Raw, caption: object, line: Raw | None = None, *between: object, **attributes: object) -> Raw:
    """A figure: a drawing on its stage, what stands beneath it, the caption and the line that says how to make it."""
    below = tag("figcaption", caption, line)
    return tag("figure", tag("div", drawn, class_="stage"), *between, below, **attributes)


def time_section(identifier: str, title: str, command: str, *parts: TimeFigure | Raw | None) -> Section:
    """A section of figures over time, each with the line that says how to make it again, and what else it holds."""
    drawn = (part.html(again(command, part.identifier)) if isinstance(part, TimeFigure) else part for part in parts)
    return Section(identifier, title, join(*drawn), tuple(p.data() for p in parts if isinstance(p, TimeFigure)))


def bar(percent: float, class_: str = "bar") -> Raw:
    """A bar in a table of the class "bars"; what is no number has none."""
    return tag("i", class_=class_, style=f"width:{min(100.0, float(np.nan_to_num(percent))):.1f}%")


def table(header: tuple[str, ...], rows: Iterable[Sequence[object]], class_: str = "") -> Raw:
    """A table whose cells are escaped; columns after the first are numbers and set to the right."""
    every = [tuple(row) for row in rows]
    # names that are short stay in one line, however narrow the table: a file, an arm, a joint
    name = "name" if all(len(text(row[0])) <= NAME for row in every) else None
    cells = [
        tag("tr", tag("th", row[0], scope="row", class_=name), *(tag("td", cell) for cell in row[1:])) for row in every
    ]
    if every and max(len(row) for row in every) <= 3 and "bars" not in class_ and "notes" not in class_:
        class_ = f"{class_} facts".strip()  # few columns stay beside each other, not at the edges of the page
    top = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in header))) if header else None
    return tag("div", tag("table", top, tag("tbody", *cells), class_=class_ or None), class_="scroll")


def many(header: tuple[str, ...], rows: Sequence[Sequence[object]], class_: str = "") -> Raw:
    """A table that is folded where it is long."""
    made = table(header, rows, class_)
    return made if len(rows) <= LONG else folded(f"All {len(rows)}", made)


def robot_of(data: RunData) -> tuple[Robot | None, str]:
    """The robot of a run (loaded by name where only that is known), or None and a sentence why not."""
    return loaded(data.robot)


def drawable(q: Array) -> NDArray[np.bool_]:
    """Rows of q (N, n) that are joint positions: finite, and not so large that nobody can have meant them."""
    return np.asarray(np.all(np.abs(np.nan_to_num(q, nan=np.inf)) <= _LARGEST, axis=1))


def tool_positions(robot: Robot, q: Array) -> Array:
    """Where the tool is (N, 3) [m] for q (N, n); NaN where q is no joint position."""
    good = drawable(q)
    out = np.full((len(q), 3), np.nan)
    if np.any(good):
        out[good] = robot.pose(q[good])[:, :3, 3]
    return out


def link_words(event: Event) -> str:
    """Which link was touched, and how surely; or why that cannot be told, with the likeliest ones; a payload's mass."""
    if event.mass_interval_kg is not None and event.mass_kg is not None:
        low, high = event.mass_interval_kg
        return f"{event.mass_kg:.3g} kg ({low:.3g} to {high:.3g})"
    if event.link is not None:
        return f"{event.link} ({100.0 * event.link_probability:.0f} %)" if event.link_probability else str(event.link)
    rest = " or ".join(f"{link_name(link)} {100.0 * p:.0f} %" for link, p in event.links[:2])
    why = event.why_no_link or ("cannot tell" if rest else "–")
    said = why == "not one push" and bool(event.links) and event.links[0][0] is None  # the reason is the likeliest one
    return rest if said else f"{why}: {rest}" if rest else why


def link_name(link: int | None) -> str:
    """A link in words; None is what no single push explains."""
    return "not one push" if link is None else f"link {link}"


def links_meant(robot: Robot, events: Iterable[Event]) -> str:
    """What the links that events name are, in a sentence; "" where none is named."""
    numbers = sorted({link for event in events for link in (event.link, *(k for k, _ in event.links[:2])) if link})
    names = [body.name.replace("_", " ") for body in robot.model.links]
    known = ", ".join(f"link {k}: {names[k - 1]}" for k in numbers if k <= len(names))
    return f"{known} (a link is what the joint of its number moves, up to the next joint)" if known else ""


def near_rows(time: Array, score: Array, events: Iterable[Event]) -> list[tuple[float, float, int]]:
    """Stamp [s], score and row where the score (N,) came to NEAR or more without an event, the largest first."""
    left = np.nan_to_num(score)
    for event in events:
        last = np.inf if event.end_s is None else event.end_s + BESIDE
        left[(time >= event.onset_s - BESIDE) & (time <= last)] = 0.0
    found = []
    while left.max(initial=0.0) >= NEAR:
        k = int(np.argmax(left))
        found.append((float(time[k]), float(left[k]), k))
        left[np.abs(time - time[k]) <= BESIDE] = 0.0
    return found


def joint_titles(data: RunData) -> list[str]:
    """1 shoulder pan, 2 shoulder lift, ...: as the model names them, or just counted."""
    robot, _ = robot_of(data)
    if robot is None or robot.dof != data.dof:
        return [f"Joint {i + 1}" for i in range(data.dof)]
    return titles(robot)


def joint_units(data: RunData, turning: str) -> Mapping[int, str]:
    """The unit of each joint (from 1): `turning`, or what it is for one that slides; where no arm is known all turn."""
    robot, _ = robot_of(data)
    joints = range(0) if robot is None or robot.dof != data.dof else range(1, robot.dof + 1)
    return defaultdict(lambda: turning, {j: robot.unit(j, turning) for j in joints if robot is not None})


def unit_words(data: RunData, turning: str) -> str:
    """The same in words for a heading: "Nm", or "Nm, joint 4: N"."""
    robot, _ = robot_of(data)
    return turning if robot is None or robot.dof != data.dof else robot.units(turning)


def titles(robot: Robot) -> list[str]:
    """The joints of a robot as headings: "Joint 1 · shoulder pan"."""
    names = (joint.name.removesuffix("_joint").replace("_", " ") for joint in robot.model.joints)
    return [f"Joint {i} · {name}" for i, name in enumerate(names, start=1)]


def tool_paths(data: RunData) -> tuple[Array | None, Array | None]:
    """tcp and tcp_des (N, 3): as logged, else from the joints by the robot's kinematics, else None."""
    robot, _ = robot_of(data)
    tcp, tcp_des = data.tcp, data.tcp_des
    if robot is not None and data.dof == robot.dof and len(data.time):
        if tcp is None and data.q is not None:
            tcp = tool_positions(robot, data.q)
        if tcp_des is None and data.q_des is not None:
            tcp_des = tool_positions(robot, data.q_des)
    return tcp, tcp_des


def sized(name: str, vectors: Array) -> tuple[Series, ...]:
    """The size of vectors (N, 3) under that name, and their parts along x, y, z."""
    parts = (Series(axis, part, style) for axis, part, style in zip("xyz", vectors.T, "bcd", strict=True))
    return (Series(name, np.linalg.norm(vectors, axis=1), "a"), *parts)


def both(name: str, value: float) -> tuple[Level, ...]:
    """A bound in both directions; none where it is not known."""
    return (Level(name, value), Level(name, -value)) if np.isfinite(value) else ()


def residual_panel(data: RunData, i: int, title: str) -> Panel:
    """What joint i (from 0) felt, what was true, and its threshold; quiet where it stayed inside of it."""
    thresholds = data.thresholds
    limit = float(thresholds[i]) if thresholds is not None and len(thresholds) == data.dof else np.nan
    curves = []
    if data.tau_ext_true is not None:
        curves.append(Series("true external torque", data.tau_ext_true[:, i], "soft"))
    for k, (name, values) in enumerate(data.residuals.items()):
        label = f"residual, {name}" if name else "residual"
        curves.append(Series(label, values[:, i], "abcdef"[k % 6]))
    peak = max((float(np.max(np.abs(np.nan_to_num(s.values)), initial=0.0)) for s in curves), default=0.0)
    mine = any(event.joint == i + 1 for event in data.events)
    quiet = bool(np.isfinite(limit)) and peak < limit and not mine
    unit = joint_units(data, "Nm")[i + 1]
    return Panel(title, unit, tuple(curves), both("threshold", limit), at_least=1e-3, quiet=quiet)


def origin(data: RunData) -> float:
    """What the figures' time counts from [s]: the first stamp where stamps are large, as those of a clock; else 0.

    A page keeps numbers in 4 bytes; of such stamps many samples would share one, and curves become stairs.
    """
    known = data.time[np.isfinite(data.time)]
    whole = float(known[-1] - known[0]) if len(known) > 1 else 0.0
    if not 0.0 < whole < abs(known[0]):
        return 0.0
    coarse = float(np.spacing(np.float32(np.max(np.abs(known)))))
    return float(known[0]) if coarse > STAMP * whole / (len(known) - 1) else 0.0


def axis(data: RunData) -> Array:
    """(N,) the figures' time [s]: the log's stamps, counted from the origin. Tables have the stamps themselves."""
    return data.time - origin(data)


def stamp(seconds: float) -> str:
    """A time as tables have it, to the millisecond where it is a clock's."""
    return number(seconds, 6) if abs(seconds) < 1e3 else f"{seconds:.3f}".replace("-", "−")


def event_marks(data: RunData) -> tuple[Band, ...]:
    """The events as they are shaded: all of it, or only their onsets where they fill more than MUCH of the run."""
    bands = event_bands(data)
    if not bands or not len(data.time):
        return bands
    whole = float(data.time[-1] - data.time[0])
    if not sum(band.end - band.start for band in bands) > MUCH * whole:
        return bands
    return tuple(Band(band.start, band.start + 0.004 * whole, band.label) for band in bands)


def event_bands(data: RunData) -> tuple[Band, ...]:
    """The events as stretches of the figures' time; one that did not end lasts until the last sample."""
    last, zero = float(data.time[-1]) if len(data.time) else 0.0, origin(data)
    return tuple(
        Band(e.time_s - zero, (last if e.end_s is None else e.end_s) - zero, f"event {k}: joint {e.joint}")
        for k, e in enumerate(data.events, start=1)
    )
