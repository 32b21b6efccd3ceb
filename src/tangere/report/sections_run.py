"""What was run: command, parameters, summary, and the parts that took part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tangere.figures.arm import scene
from tangere.figures.axes import drawing
from tangere.figures.markup import Raw, join, number, tag
from tangere.report.data import RunData
from tangere.report.section import Section, again, command_line, drawable, link_words, robot_of, staged, table
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.robots import Robot
    from tangere.types import Event

# Keys of the summary in words; what is not here is shown under its own name.
WORDS = {
    "tracking_rms_mm": "tracking error rms, after the start ramp and without the push [mm]",
    "tracking_max_mm": "tracking error max, likewise [mm]",
    "tracking_push_max_mm": "tracking error max from push to 1 s after it [mm]",
    "residual_rms_nm": "residual rms before the push, joint by joint [Nm]",
    "realtime_factor": "simulated seconds per second, log included",
    "duration_s": "duration [s]",
    "thresholds_nm": "thresholds of the detection [Nm]",
    "log_error": "why the log file is not complete",
    "step_us controller_and_observer": "controller and observer of a period [us]",
    "step_us bare_mj_step": "MuJoCo's own step [us]",
    "touch obstacle": "obstacle",
    "touch reaction": "reaction",
    "touch speed_m_s": "speed of the tcp just before the touch [m/s]",
    "touch effective_mass_kg": "mass felt there along the motion [kg]",
    "touch contact_s": "first touch at [s]",
    "touch felt_ms": "felt after [ms]",
    "touch peak_n": "largest force [N]",
    "touch peak_after_ms": "after the touch [ms]",
    "touch late_peak_n": "largest force later than 50 ms after the touch [N]",
    "touch impulse_ns": "impulse [Ns]",
    "touch energy_j": "most energy given to the obstacle [J]",
    "touch received_j": "most energy taken from it [J]",
    "touch contact_ms": "time in contact [ms]",
    "touch remaining_n": "force one second after the touch [N]",
    "touch torque_share": "largest torque, of its limit",
    "touch end_speed_rad_s": "fastest joint at the end [rad/s]",
    "touch backed_mm": "backed off by [mm]",
}
BOX_W, BOX_H = 178, 62  # px
_LONGEST = 24  # characters of a name that fit into a box at 13 px
_SHOWN = 40  # notes in the page; the log has all of them


def what(data: RunData) -> Section:
    """Command and parameters."""
    parts = [command_line(data.command)] if data.command else []
    if data.parameters:
        texts = {key: value for key, value in data.parameters.items() if isinstance(value, str) and "\n" in value}
        others = {key: value for key, value in data.parameters.items() if key not in texts}
        rows = [(key, value_text(value)) for key, value in others.items()]
        half = -(-len(rows) // 2)  # two tables side by side
        parts.append(tag("div", *(table((), part) for part in (rows[:half], rows[half:]) if part), class_="pair"))
        for key, text in texts.items():
            parts.append(join(tag("h3", key), tag("pre", tag("code", text), class_="command")))
    if data.video:
        import base64

        clip = "data:video/mp4;base64," + base64.b64encode(data.video).decode("ascii")
        player = tag("video", src=clip, controls="", loop="", muted="")
        parts.append(tag("figure", player, tag("figcaption", "The run.", again(data.command, "what"))))
    if not parts:
        parts.append(tag("p", "The run did not say with which command and parameters it was made."))
    return Section("what", "What was run", join(*parts))


def summary(data: RunData) -> Section:
    """The figures of summary.json, the events and what the controller had to say."""
    rows = [
        (WORDS.get(key, key.replace("_", " ")), value_text(value))
        for key, value in entries(data.summary)
        if value is not None and value != ""
    ]
    parts = [table((), rows, "wide")] if rows else [tag("p", "The run left no summary.")]
    said = data.summary.get("notes")
    if isinstance(said, list | tuple) and said:
        parts += [tag("h3", "Notes"), tag("ul", *(tag("li", text) for text in said))]
    if data.events:
        parts.append(tag("h3", "Events"))
        header = ("joint", "from [s]", "to [s]", "felt [Nm]", "true [Nm]", "noticed after [ms]", "link")
        parts.append(table(header, [_event_row(*judged) for judged in data.judged]))
    elif "events" in data.summary:
        parts.append(tag("p", "No event: nothing rose above its threshold."))
    elif data.residuals:
        parts.append(tag("p", "Events were not evaluated: the run left no summary. What was noted meanwhile is below."))
    interventions = data.summary.get("interventions")
    if isinstance(interventions, Mapping) and interventions:
        parts.append(tag("h3", "Interventions of the controller"))
        parts.append(table(("", "periods"), [(note, value_text(count)) for note, count in interventions.items()]))
    if data.notes:
        parts.append(tag("h3", "What happened"))
        parts.append(table((), [(f"{number(time, 6)} s", note) for time, note in data.notes[:_SHOWN]], "notes"))
        if len(data.notes) > _SHOWN:
            parts.append(tag("p", f"and {len(data.notes) - _SHOWN} more, in the log."))
    return Section("summary", "Summary", join(*parts))


def setup(data: RunData) -> Section:
    """Block diagram, and the frames of the arm where its model is known."""
    names = dict(data.blocks)
    robot, reason = robot_of(data)
    names.setdefault("reference", data.name)
    names.setdefault("plant", robot.name if robot is not None else str(data.robot or ""))
    names.setdefault("observer", ", ".join(data.residuals))
    parts = [
        tag(
            "figure",
            diagram(names),
            diagram(names, tall=True),
            tag("figcaption", "Who hands what to whom in this run.", again(data.command, "setup")),
            class_="diagram",
        )
    ]
    figures = []
    if robot is None:
        parts.append(tag("p", f"The frames of the arm are not drawn: {reason}"))
    else:
        first = data.q[:1] if data.q is not None and data.dof == robot.dof and np.all(drawable(data.q[:1])) else None
        q = first if first is not None and len(first) else np.zeros((1, robot.dof))
        arm = scene(robot, q, np.zeros(1), "frames", frames=True)
        kind = "Denavit-Hartenberg frames 0 to" if robot.model.dh is not None else "Link frames up to"
        where = "where the run starts" if q is first else "with every joint at zero"
        caption = f"{kind} {robot.dof} of {robot.model.title}, {where}; to scale, floor lines 0.2 m apart."
        picture = staged(arm.still(), caption, again(data.command, "frames"), id="frames", class_="scene")
        parts.append(tag("div", picture, _joint_table(robot, q[0]), class_="pair uneven"))
        figures.append(arm.data())
    return Section("setup", "The parts and the frames", join(*parts), tuple(figures))


def entries(summary: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Key and value, nested ones as "outer inner"; what has a place of its own in the page is left out."""
    for key, value in summary.items():
        if not before and key in ("events", "shares", "aborted", "interventions", "period_us", "blocks", "remark",
                                 "notes"):  # fmt: skip
            continue
        if isinstance(value, Mapping):
            yield from entries(value, f"{before}{key} ")
        else:
            yield f"{before}{key}", value


def _event_row(event: Event, entry: Mapping[str, object]) -> tuple[object, ...]:
    end = "not ended" if event.end_s is None else number(event.end_s, 6)
    felt = (number(entry.get(key)) for key in ("torque_nm", "true_torque_nm", "delay_ms"))
    joint = str(event.joint) if event.alarm else f"{event.joint} ({event.kind}, no alarm)"
    return (joint, number(event.time_s, 6), end, *felt, link_words(event))


def _joint_table(robot: Robot, q: Array) -> Raw:
    """DH parameters, or names where the chain is not DH, with the position that is drawn."""
    dh = robot.model.dh
    if dh is None:
        names = [(i + 1, joint.name, number(float(q[i]))) for i, joint in enumerate(robot.model.joints)]
        return table(("joint", "name", "q [rad, m]"), names)
    rows = [
        (i + 1, *(number(float(v), 6) for v in (dh.a[i], dh.d[i], dh.alpha[i])), number(float(q[i]), 5))
        for i in range(robot.dof)
    ]
    return table(("joint", "a [m]", "d [m]", "α [rad]", "q [rad]"), rows)


def value_text(value: object) -> str:
    """A parameter or result as people read it: numbers short, lists with commas."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {value_text(inner)}" for key, inner in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(value_text(inner) for inner in value)
    return number(value)


def diagram(names: Mapping[str, str], tall: bool = False) -> Raw:
    """reference -> controller -> robot -> observer -> detection as SVG; `tall` for narrow screens.

    names: what stands in the boxes reference, controller, plant, observer, detection, push; absent ones get a dash.
    """
    order = ("reference", "controller", "plant", "observer", "detection")
    titles = ("Reference", "Controller", "Robot", "Observer", "Detection")
    if tall:
        at = {key: (44.0, 16.0 + 104.0 * k) for k, key in enumerate(order)}
        width, height = 360, 520
    else:
        at = {"reference": (16.0, 52.0), "controller": (290.0, 52.0), "plant": (564.0, 52.0),
              "observer": (564.0, 196.0), "detection": (290.0, 196.0)}  # fmt: skip
        width, height = 788, 276
    parts: list[Raw] = []
    for key, title in zip(order, titles, strict=True):
        x, y = at[key]
        name = names.get(key) or "–"
        parts += [
            tag("rect", tag("title", name), class_=f"box {key}", x=x, y=y, width=BOX_W, height=BOX_H, rx=7),
            tag("text", title, class_="kind", x=x + BOX_W / 2, y=y + 23),
            tag("text", _short(name), class_="name", x=x + BOX_W / 2, y=y + 44),
        ]
    parts += _tall_arrows(names) if tall else _wide_arrows(names)
    title = "Block diagram: reference, controller, robot, observer, detection"
    return drawing(title, width, height, *parts, class_="tall" if tall else "wide")


def _wide_arrows(names: Mapping[str, str]) -> list[Raw]:
    out = [
        *_arrow("M194 83H284", "q, q̇, q̈ desired", 239, 75),
        *_arrow("M468 83H558", "torque τ", 513, 75),
        *_arrow("M653 114V190", "q, q̇, τ", 661, 157, "start"),
        *_arrow("M564 227H474", "residual r", 519, 219),
        *_arrow("M607 114V140H379V120", "q, q̇ measured", 493, 155),
        *_arrow("M290 227H200", "events", 245, 219),
    ]
    if names.get("push"):
        out += _arrow("M653 14V46", _short(names["push"]), 663, 27, "start", "arrow outside")
    return out


def _tall_arrows(names: Mapping[str, str]) -> list[Raw]:
    labels = ("q, q̇, q̈ desired", "torque τ", "q, q̇, τ", "residual r")
    out: list[Raw] = []
    for k, label in enumerate(labels):
        top = 16 + 104 * k + BOX_H
        out += _arrow(f"M133 {top}v36", label, 143, top + 25, "start")
    out += _arrow("M44 255H16V151H38", "feedback", 21, 206, "start")
    if names.get("push"):
        out += _arrow("M330 255H228", _short(names["push"]), 354, 246, "end", "arrow outside")
    return out


def _arrow(d: str, label: str, x: float, y: float, anchor: str = "middle", class_: str = "arrow") -> list[Raw]:
    """A line that ends in a head, and its label."""
    line = tag("path", class_=class_, d=d)
    tip = tag("path", class_=class_.replace("arrow", "tip"), d=_head(d))
    return [line, tip, tag("text", label, class_="flow", x=x, y=y, text_anchor=anchor)]


def _head(d: str) -> str:
    """A triangle at the end of a path of absolute H, V and M and relative v, in the direction of its last piece."""
    x = y = 0.0
    direction = (0.0, 0.0)
    for letter, numbers in re.findall(r"([MHVv])([-\d. ]+)", d):
        values = [float(v) for v in numbers.split()]
        before = (x, y)
        if letter == "M":
            x, y = values
        elif letter == "H":
            x = values[0]
        else:
            y = y + values[0] if letter == "v" else values[0]
        direction = ((x > before[0]) - (x < before[0]), (y > before[1]) - (y < before[1]))
    dx, dy = direction
    tip = (x + 6 * dx, y + 6 * dy)
    left, right = (x - 4 * dx - 4 * dy, y - 4 * dy - 4 * dx), (x - 4 * dx + 4 * dy, y - 4 * dy + 4 * dx)
    return f"M{tip[0]:g} {tip[1]:g}L{left[0]:g} {left[1]:g}L{right[0]:g} {right[1]:g}Z"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
