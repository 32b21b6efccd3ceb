"""What was run: command, parameters, summary, and the parts that took part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from tangere.figures.arm import scene
from tangere.figures.diagram import diagram
from tangere.figures.markup import Raw, join, number, tag
from tangere.report.data import RunData, entries_of
from tangere.report.section import (
    Section,
    again,
    alone,
    command_line,
    drawable,
    folded,
    link_words,
    robot_of,
    staged,
    stamp,
    table,
    unit_words,
)
from tangere.report.sentence import beyond, false_size
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.robots import Robot
    from tangere.types import Event

# Keys of the summary in words; what is not here is shown under its own name.
WORDS = {
    "tracking_rms_mm": "tracking error, rms after the start ramp and without pushes [mm]",
    "tracking_max_mm": "tracking error, most, likewise [mm]",
    "tracking_push_max_mm": "tracking error, most from a push to 1 s after it [mm]",
    "residual_rms_nm": "residual before a push, rms [Nm]",
    "residual_noise_nm momentum": "noise of the momentum residual while nothing pushes [Nm]",
    "residual_noise_nm acceleration": "noise of the acceleration residual, likewise [Nm]",
    "duration_s": "duration [s]",
    "thresholds_nm": "thresholds of the detection [Nm]",
    "log_error": "why the log file is not complete",
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
    "force lever_m": "lever of the force about the wrist, least and most [m]",
    "force samples": "samples with the pen on the wall",
    "force mean_n": "force of the wall, mean [N]",
    "force rms_error_n": "force of the wall, error rms [N]",
    "force min_n": "force of the wall, least [N]",
    "force max_n": "force of the wall, most [N]",
    "force within_2_percent": "share of these samples within 2 % of the wanted force",
    "samples": "samples",
    "script name": "name of the program",
    "script frames": "frames of the program",
    "script ended": "how the program ended",
    "arm host": "address of the arm",
    "arm frames": "frames of the arm",
    "arm late_frames": "frames that came late",
    "arm late_share": "share of late frames",
    "arm lost_samples": "samples lost",
}
# endings of keys and the units that they stand for; the first that fits
UNITS = {"_rad_s": "rad/s", "_m_s": "m/s", "_mm": "mm", "_ms": "ms", "_us": "µs", "_nm": "Nm", "_ns": "Ns", "_kg": "kg",
         "_hz": "Hz", "_percent": "%", "_n": "N", "_m": "m", "_s": "s", "_j": "J"}  # fmt: skip
# figures that are shares, written as per cents
SHARES = ("touch torque_share", "force within_2_percent", "arm late_share")
_NOTHING = 1e-14  # a number that is smaller has no digit that was not rounded: quantities here are near 1
_ROUNDING = 1e-9  # share of what stands beside it below which a number is rounding
UNSEEN = 1e-6  # below it a figure says 0: nobody measures a nanometre, or a nanoradian a second
LEAST, MEASURED = 1e-4, ("mm", "Nm", "N", "ms", "mrad", "rad/s")  # below it a figure in these units says just that
_SHOWN = 40  # notes in the page; the log has all of them


def what(data: RunData) -> Section | None:
    """What makes the run again: its command, and behind a line to open every setting, seed and version."""
    parts = [command_line(data.command)] if data.command else []
    if data.parameters:
        texts = {key: value for key, value in data.parameters.items() if isinstance(value, str) and "\n" in value}
        rows = [(words(key), value_text(value)) for key, value in data.parameters.items() if key not in texts]
        half = -(-len(rows) // 2)  # two tables side by side
        told = tag("div", *(table((), part) for part in (rows[:half], rows[half:]) if part), class_="pair")
        parts.append(folded(f"All {len(data.parameters)} settings, seeds and versions", told))
        for key, text in texts.items():
            parts.append(folded(words(key), tag("pre", tag("code", text), class_="command")))
    if alone(data):
        return None
    if not parts:
        parts.append(tag("p", "The run did not say with which command and parameters it was made."))
    return Section("what", "Reproduce", join(*parts))


def settings(data: RunData) -> Section | None:
    """The settings that are not at their defaults, where that is known."""
    if data.changed is None or not data.parameters:
        return None
    rows = [(words(key), value_text(data.parameters[key])) for key in data.changed if key in data.parameters]
    rows = [(key, "see Reproduce" if "\n" in text else text) for key, text in rows]
    if not rows:
        return Section("settings", "Set for this run", tag("p", "Nothing: every setting is at its default."))
    return Section("settings", "Set for this run", table((), rows, "facts"))


def words(key: str) -> str:
    """A setting's name as people say it: "observer_gain [1/s]" is observer gain [1/s]."""
    name, bracket, unit = key.partition(" [")
    return name.replace("_", " ") + bracket + unit


def summary(data: RunData) -> Section | None:
    """The figures of summary.json, joint by joint where they are so, the events and what the controller had to say."""
    known = [(key, value) for key, value in entries(data.summary) if value is not None and value not in ("", [])]
    each = [(key, value) for key, value in known if _by_joint(value, data.dof)]
    rows = [fact(key, value) for key, value in known if not _by_joint(value, data.dof)]
    half = -(-len(rows) // 2) if len(rows) > 8 else len(rows)  # two tables side by side
    shown = [table((), part, "facts") for part in (rows[:half], rows[half:]) if part]
    parts = [tag("div", *shown, class_="pair")] if shown else []
    if each:
        header = ("joint by joint", *(str(i + 1) for i in range(data.dof)))
        unit = unit_words(data, "Nm")
        cells = [(label(key).replace("[Nm]", f"[{unit}]"), *row([float(v) for v in value])) for key, value in each]
        parts.append(table(header, cells, "joints"))
    if not parts and alone(data) and not data.events and not data.notes:
        return None
    if not parts:
        parts = [tag("p", "The run left no summary.")]
    said = data.summary.get("notes")
    if isinstance(said, list | tuple) and said:
        parts += [tag("h3", "Notes"), tag("ul", *(tag("li", text) for text in said))]
    if data.events:
        parts.append(tag("h3", "Events"))
        unit = unit_words(data, "Nm")
        header = ("joint", "from [s]", "to [s]", f"felt [{unit}]", f"true [{unit}]", "noticed after [ms]", "link")
        rows_of_events = [_event_row(event, entry, data.summary.get("residual_rms_nm")) for event, entry in data.judged]
        parts.append(table(header, rows_of_events, "events"))
    elif "events" in data.summary and data.thresholds is not None:
        parts.append(tag("p", "No event: nothing rose above its threshold."))
    elif "events" in data.summary:
        parts.append(tag("p", "No event, and no thresholds: without a detector nobody looks for one."))
    elif data.residuals:
        parts.append(tag("p", "Events were not evaluated: the run left no summary. What was noted meanwhile is below."))
    if failed := entries_of(data.summary, "faults"):
        parts.append(tag("h3", "Drives that failed"))
        header = ("joint", "how", "from [s]", "noticed after [ms]", f"felt [{unit_words(data, 'Nm')}]", "told as", "")
        parts.append(table(header, [_fault_row(one) for one in failed], "events"))
    interventions = data.summary.get("interventions")
    noted = interventions if isinstance(interventions, Mapping) else {}
    limits = beyond(data)
    own = {note: count for note, count in noted.items() if note not in limits}
    for heading, counts in (("Limits exceeded", limits), ("Interventions of the controller", own)):
        if counts:
            counted = [(note, value_text(count)) for note, count in counts.items()]
            parts += [tag("h3", heading), table(("", "periods"), counted, "facts")]
    if data.notes:
        notes = table((), [(f"{stamp(time)} s", note) for time, note in data.notes[:_SHOWN]], "notes")
        more = len(data.notes) - _SHOWN
        rest = tag("p", f"and {more} more, in the log.") if more > 0 else None
        few = len(data.notes) <= 6
        parts += [tag("h3", "What happened"), notes, rest] if few else [folded("What happened", notes, rest)]  # type: ignore[list-item]
    return Section("summary", "Figures", join(*parts))


def _by_joint(value: object, dof: int) -> TypeGuard[Sequence[float]]:
    """Whether a figure is a list of numbers, one for each joint."""
    numbers = isinstance(value, list | tuple) and all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in value
    )
    return numbers and dof > 1 and len(value) == dof  # type: ignore[arg-type]


def label(key: str) -> str:
    """A key of the summary in words, with its unit in brackets."""
    if key in WORDS:
        return WORDS[key]
    name, unit = key, ""
    for ending, written in UNITS.items():
        if name.endswith(ending):
            name, unit = name.removesuffix(ending), f" [{written}]"
            break
    return name.replace("_", " ") + unit


def figure(value: float, unit: str) -> str:
    """A measured figure with three digits: what nobody can measure is 0, or below the least that somebody can."""
    if abs(value) < UNSEEN:
        return "0"
    return "< 0.0001" if 0.0 < value < LEAST and unit in MEASURED else short(value)


def fact(key: str, value: object) -> tuple[str, str]:
    """A figure and its words, the unit beside the number."""
    name, _, unit = label(key).rpartition(" [")
    unit = unit.removesuffix("]")
    if isinstance(value, float) and key in SHARES:
        return label(key), f"{number(100.0 * value, 3)}\N{NO-BREAK SPACE}%"
    text = figure(value, unit) if isinstance(value, float) else value_text(value)
    return (name, f"{text}\N{NO-BREAK SPACE}{unit}") if name and text and text[-1].isdigit() else (label(key), text)


def short(value: float, beside: Sequence[float] = ()) -> str:
    """A number with three digits; 0 where it is only the rounding of the others beside it, or of anything."""
    largest = max((abs(v) for v in beside if v == v and abs(v) != float("inf")), default=abs(value))
    if abs(value) < max(_ROUNDING * largest, _NOTHING):
        return "0"
    return number(value, 3)


def row(values: Sequence[float]) -> list[str]:
    """Numbers of one unit side by side: digits behind the point as the largest needs to have three, five at most."""
    known = [abs(v) for v in values if v == v and abs(v) != float("inf")]
    largest = max(known, default=0.0)
    if largest < UNSEEN:
        return ["0" if v == v else number(v) for v in values]
    decimals = min(max(0, 2 - math.floor(math.log10(largest))), 5)  # five: a hundredth of what is measured

    def one(v: float) -> str:
        if abs(v) < 0.5 * 10.0**-decimals:
            return "0"
        return f"{v:.{decimals}f}".replace("-", "\N{MINUS SIGN}") if abs(v) < LEAST else number(v, 3)

    return [one(v) for v in values]


def setup(data: RunData) -> Section | None:
    """Block diagram, and the frames of the arm where its model is known."""
    if alone(data) and not data.blocks and data.robot is None:
        return None
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
            tag("figcaption", "The parts of this run, and what each gives to the next.", again(data.command, "setup")),
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


# keys of the summary that have a place of their own in the page
PLACED = {
    "events", "shares", "aborted", "interventions", "limits_exceeded", "period_us", "blocks", "remark", "notes",
    "faults", "step_us", "realtime_factor", "pushes",
}  # fmt: skip


def entries(summary: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Key and value, nested ones as "outer inner"; what has a place of its own in the page is left out."""
    for key, value in summary.items():
        if not before and key in PLACED:
            continue
        if isinstance(value, Mapping):
            inner = {name: one for name, one in value.items() if not isinstance(one, Mapping)}
            same = {name for name, one in value.items() if isinstance(one, Mapping) and _within(one, inner)}
            yield from entries({name: one for name, one in value.items() if name not in same}, f"{before}{key} ")
        else:
            yield f"{before}{key}", value


def _within(part: Mapping[str, object], whole: Mapping[str, object]) -> bool:
    """Whether a part says nothing that the whole does not say already: the same figures under the same names."""
    return bool(part) and all(name in whole and whole[name] == value for name, value in part.items())


def _fault_row(told: Mapping[str, object]) -> tuple[object, ...]:
    """What became of a drive's fault."""
    how = "stuck" if "stuck" in told else ""
    if "offset" in told:
        how = f"off by {number(told['offset'], 3)} Nm"
    elif "gain" in told:
        how = f"gives {number(told['gain'], 3)} of its torque"
    felt = (number(told.get(key), 3) for key in ("start", "felt_ms", "felt_nm"))
    return (str(told.get("joint", "–")), how, *felt, str(told.get("kind") or "–"), str(told.get("why") or ""))


def _event_row(event: Event, entry: Mapping[str, object], quiet: object) -> tuple[object, ...]:
    end = "not ended" if event.end_s is None else stamp(event.end_s)
    felt, true, late = (number(entry.get(key), 3) for key in ("torque_nm", "true_torque_nm", "delay_ms"))
    joint = str(event.joint) if event.alarm else f"{event.joint} ({event.kind}, no alarm)"
    if entry.get("false"):  # what it is off by, as above: the mean of what changes its sign tells less
        joint, felt = f"{joint} (false alarm)", f"{number(false_size(entry, quiet), 3)} rms"
    return (joint, stamp(event.time_s), end, felt, true, late, link_words(event))


def _joint_table(robot: Robot, q: Array) -> Raw:
    """DH parameters, or names where the chain is not DH, with the position that is drawn."""
    dh = robot.model.dh
    if dh is None:
        names = [(i + 1, joint.name, number(round(float(q[i]), 6))) for i, joint in enumerate(robot.model.joints)]
        return table(("joint", "name", "q [rad, m]"), names)
    rows = [
        (i + 1, *(number(float(v), 6) for v in (dh.a[i], dh.d[i], dh.alpha[i])), number(round(float(q[i]), 6), 5))
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
        sizes = [float(v) for v in value if isinstance(v, float)]
        return ", ".join(short(v, sizes) if isinstance(v, float) else value_text(v) for v in value)
    return short(value) if isinstance(value, float) else number(value)
