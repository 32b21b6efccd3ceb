"""The report of watching: events, what the detector looked at against its thresholds, and where the arm was touched."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tangere.apps.touch.explained import alien, besides, reasons
from tangere.apps.touch.options import extrapolated
from tangere.figures.arm import scene
from tangere.figures.markup import Raw, join, number, tag
from tangere.figures.plots import Band, Panel, Series, TimeFigure
from tangere.logs.files import write_text
from tangere.loop.watching import Watched
from tangere.observe.detect import REGIMES
from tangere.observe.isolation import ANSWER
from tangere.report.page import page_html
from tangere.report.section import (
    Section,
    bar,
    command_line,
    folded,
    link_name,
    link_words,
    links_meant,
    many,
    page_head,
    table,
    time_section,
    titles,
)
from tangere.robots import Robot
from tangere.types import Array, Event

NB = "\N{NO-BREAK SPACE}"
_SHOWN = 6  # logs with figures: a page with more takes a browser seconds to open; the table has them all
_DRAWN = 12  # events with a drawing of the arm


def write_watched(
    done: Sequence[Watched], path: str | os.PathLike[str], command: str = "", learned: bool = False
) -> Path:
    """Write the page to `path` and say where it is."""
    return write_text(path, watched_html(done, command, learned))


def watched_html(done: Sequence[Watched], command: str = "", learned: bool = False) -> str:
    """The page as text. Times count from the first sample of each log. learned: thresholds come from these logs."""
    if not done:
        return page_html("Nothing watched", page_head("Nothing watched", "no log", []), [], None)
    ranked = sorted(done, key=lambda seen: (-len(seen.alarms), -len(seen.events)))[:_SHOWN]
    chosen = [seen for seen in done if any(seen is entry for entry in ranked)]
    sections = [_events(done)]
    for k, seen in enumerate(chosen):
        sections += [section for section in (_residual(seen, k, command), _places(seen, k)) if section is not None]
    sections += [_thresholds(done[0]), _logs(done, command)]
    return page_html(_title(done, learned), _head(done, learned), sections, None)


def _title(done: Sequence[Watched], learned: bool) -> str:
    if learned:
        return f"{done[0].belief.robot.model.title} tuned"
    return done[0].log.name if len(done) == 1 else f"{done[0].log.name} and {len(done) - 1} more"


def _start(seen: Watched) -> float:
    return float(seen.log.motion.time[0])


def _head(done: Sequence[Watched], learned: bool) -> Raw:
    believed = done[0].belief
    kinds = Counter(event.kind for seen in done for event in seen.events)
    told = ", ".join(f"{count} {kind}" if len(kinds) > 1 else kind for kind, count in kinds.most_common())
    seconds = sum(seen.seconds for seen in done)
    tiles: list[tuple[str, object, str]] = [
        ("alarms", sum(len(seen.alarms) for seen in done), ""),
        ("events in all", sum(len(seen.events) for seen in done), f" {told}" if told else ""),
        ("watched", number(seconds, 4), " s"),
        ("masked by stops", number(100.0 * sum(x.masked * x.seconds for x in done) / max(seconds, 1e-9), 2), " %"),
        ("logs", len(done), ""),
        ("false alarms promised", number(believed.thresholds.rate, 3) if believed.tuned else "none", " per hour"
         if believed.tuned else ""),
    ]  # fmt: skip
    known = (
        "an identified and tuned model" if believed.tuned
        else "an identified model, thresholds not tuned" if believed.model is not None
        else "its data sheet: no model was given"
    )  # fmt: skip
    problems = [f"{seen.log.name}: {text}" for seen in done for text in (*seen.log.problems, *seen.said)]
    more = [f"and {len(problems) - 8} more, under Logs"] if len(problems) > 8 else []
    limits = ("What these logs cannot tell", "\n".join([*problems[:8], *more])) if problems else None
    line = f"{believed.robot.model.title}, held against {known}"
    said = _learned(done, seconds) if learned else _sentence(done, seconds)
    doubt = next((f"{seen.log.name}: {why}" for seen in done if (why := alien(seen))), "")
    wrong = ("Not to be trusted: these are not the torques of this arm", doubt) if doubt else None
    return page_head(_title(done, learned), line, tiles, wrong, limits, sentence=said)


def _learned(done: Sequence[Watched], seconds: float) -> str:
    """What thresholds that were learned from these logs promise."""
    alarms, rate = sum(len(seen.alarms) for seen in done), done[0].belief.thresholds.rate
    told = "nothing in these logs raises one, which is no proof, as they set the thresholds"
    if alarms:
        touches = "one touch was" if alarms == 1 else f"{alarms} touches were"
        told = f"{touches} felt in these logs, see below"
    logs = "one log" if len(done) == 1 else f"{len(done)} logs"
    alarm = "false alarm" if rate == 1.0 else "false alarms"
    return (
        f"Thresholds from {number(seconds, 3)} s of free motion in {logs} promise {number(rate, 2)} {alarm} per hour; "
        f"{told}."
    )


def _sentence(done: Sequence[Watched], seconds: float) -> str:
    """How often the arm was touched, and the first time."""
    alarms = [(seen, event) for seen in done for event in seen.alarms]
    where = f"in {number(seconds, 3)} s of {'one log' if len(done) == 1 else f'{len(done)} logs'}"
    if not alarms:
        return f"Nothing touched the arm {where}."
    seen, first = alarms[0]
    sure = first.link is not None and first.link_probability >= ANSWER
    hard = f" with {first.force_n:.0f} N" if sure and first.force_n is not None else ""
    if hard and first.force_interval_n is not None:
        hard += " ({:.0f} to {:.0f})".format(*first.force_interval_n)
    named = f"on link {first.link} ({100.0 * first.link_probability:.0f} %)"  # never more surely than it is known
    link = f" {named}" if sure else f" at joint {first.joint}"
    if first.link is not None and not sure:
        link += f", most likely {named}"
    times = "once" if len(alarms) == 1 else f"{len(alarms)} times"
    name = f" of {seen.log.name}" if len(done) > 1 else ""
    at = f"{first.time_s - _start(seen):.2f} s{name}"
    return f"The arm was touched {times} {where}{', ' if len(alarms) == 1 else ', first '}at {at}{link}{hard}."


def _events(done: Sequence[Watched]) -> Section:
    rows = []
    for seen in done:
        first = _start(seen)
        for event in seen.events:
            name = f"{seen.log.name} · {event.number}" if len(done) > 1 else str(event.number)
            others = ", ".join(f"{kind} {100.0 * p:.0f} %" for kind, p in event.alternatives[:2])
            lasts = "open" if event.end_s is None else number(event.end_s - event.onset_s, 3)
            below = join(tag("br"), tag("small", others)) if others else None
            rows.append((
                name, f"{event.time_s - first:.3f}", f"{event.onset_s - first:.3f}",
                number(1e3 * (event.time_s - event.onset_s), 3), lasts,
                join(tag("b", event.kind), f"{NB}{100.0 * event.confidence:.0f}{NB}%", below),
                "yes" if event.alarm else "no", link_words(event).replace(" %", f"{NB}%"), event.joint,
                number(event.torque_nm, 3), _force(event), event.channel,
            ))  # fmt: skip
    if not rows:
        return Section("events", "Events", tag("p", "Nothing touched the arm."))
    head = (
        "event", "alarm at [s]", "began [s]", "after [ms]", "lasts [s]", "what", "alarm", "link", "joint",
        f"added [{done[0].belief.robot.units('Nm')}]", "force [N], 95 %", "raised by",
    )  # fmt: skip
    text = (
        "Times from the first sample of the log. Began: estimated backwards; after: from there to the alarm. Added: "
        "what the event added to the torque of that joint. Stops, wanted contacts and drift raise no alarm."
    )
    meant = links_meant(done[0].belief.robot, [event for seen in done for event in seen.events])
    said = [tag("li", text) for seen in done for text in reasons(seen)]
    more = (tag("p", meant) if meant else None, tag("p", text), folded("What raised each of them", tag("ul", *said)))
    return Section("events", "Events", join(table(head, rows), *more))


def _force(event: Event) -> str:
    """Size of the force with its interval."""
    if event.force_n is None:
        return "–"
    low, high = event.force_interval_n or (event.force_n, event.force_n)
    return f"{number(event.force_n, 3)}{NB}({number(low, 2)}{NB}to{NB}{number(high, 2)})"


def _bands(seen: Watched) -> tuple[Band, ...]:
    first, last = _start(seen), float(seen.log.motion.time[-1])
    return tuple(
        Band(e.onset_s - first, (e.end_s or last) - first, f"{e.number}: {e.kind}, joint {e.joint}")
        for e in seen.events
    )


def _residual(seen: Watched, k: int, command: str) -> Section:
    """Level and change of each joint against their thresholds."""
    time, traces = seen.log.motion.time - _start(seen), seen.traces
    level, change = [], []
    for j, title in enumerate(titles(seen.belief.robot)):
        unit = seen.belief.robot.unit(j + 1, "Nm")
        level.append(Panel(title, unit, (
            Series("residual", seen.residual[:, j], "soft"), Series("level", traces.level[:, j], "a"),
            *_both(traces.level_bound[:, j]),
        ), at_least=1e-2, quiet=_quiet(traces.level[:, j], traces.level_bound[:, j])))  # fmt: skip
        change.append(Panel(title, unit, (
            Series("change", traces.change[:, j], "b"), *_both(traces.change_bound[:, j]),
        ), at_least=1e-2, quiet=_quiet(traces.change[:, j], traces.change_bound[:, j])))  # fmt: skip
    suffix = f"-{k + 1}" if k else ""
    limit = Series("alarm", np.ones(len(time)), "limit")
    score = Panel("all joints", "1 = alarm", (Series("score", traces.score, "a"), limit))
    figures = (
        TimeFigure(
            f"score{suffix}", f"{seen.log.name}: score, the largest signal of any joint against its threshold. At 1 an "
            "alarm is raised; what passes 1 while an event lasts or in the quarter second after it is part of it.",
            time, (score,), _bands(seen), own_time=True,
        ),
        TimeFigure(
            f"level{suffix}", f"{seen.log.name}: residual of the momentum observer, its slow level, and the level's "
            "thresholds: lower while a joint moves, higher where stiction hides something. Friction is followed: what "
            "the log has shown of its level and film by then is taken off. Events shaded from their onset to their "
            "end.", time, tuple(level), _bands(seen), own_time=True,
        ),
        TimeFigure(
            f"change{suffix}", f"{seen.log.name}: change against the mean of the last quarter of a second, which a "
            "wrong mass or a warm gear leaves quiet, and its thresholds.", time, tuple(change), _bands(seen),
            own_time=True,
        ),
    )  # fmt: skip
    near = tag("ul", *(tag("li", line.strip()) for line in besides(seen)))
    return time_section(f"touch{suffix}", f"Residual, {seen.log.name}", command, figures[0], near, *figures[1:])


def _quiet(values: Array, bound: Array) -> bool:
    """Whether a joint stayed inside its thresholds all the time."""
    return not bool(np.any(np.abs(np.nan_to_num(values)) > np.nan_to_num(bound, nan=np.inf)))


def _both(bound: Array) -> tuple[Series, Series]:
    return Series("threshold", bound, "limit"), Series("threshold", -bound, "limit")


def _places(seen: Watched, k: int) -> Section | None:
    """The arm at each alarm, with the push where it could be placed, and how likely each link is."""
    touches = [event for event in seen.alarms if event.link is not None or event.links][:_DRAWN]
    if not touches:
        return None
    parts = []
    for event in touches:
        row = int(np.argmin(np.abs(seen.log.motion.time - event.residual_s)))
        q = seen.log.motion.q[row]
        arrows: tuple[tuple[Array, Array], ...] = ()
        if event.link is not None and event.point is not None and event.force is not None:
            arrows = ((point_of(seen.belief.robot, q, event.link, event.point), event.force),)
        name = f"arm-{k + 1}-{event.number}"
        drawing = scene(seen.belief.robot, q[None], np.zeros(1), name, frames=False, arrows=arrows)
        size = "" if event.force_n is None else f", {event.force_n:.0f} N"
        which = link_words(event) if event.link is None else f"link {link_words(event)}"
        said = f"Event {event.number}, {event.name} at {event.time_s - _start(seen):.2f} s: {which}{size}."
        likely = list(event.links)
        if event.link is not None:
            likely.insert(0, (event.link, event.link_probability))
        rows = [(link_name(link), f"{100.0 * p:.0f} %", bar(100.0 * p)) for link, p in likely[:5]]
        drawn = tag("div", drawing.still(), class_="stage")
        parts.append(tag("figure", drawn, tag("figcaption", said), table((), rows, "bars")))
    text = (
        "The posture at each alarm. Where the torques tell the link, the arrow is the push on its surface; bars say "
        "how likely each link is. Few joints feel the first links, so that these are told least often."
    )
    identifier = f"places-{k + 1}" if k else "places"
    return Section(identifier, f"Where, {seen.log.name}", join(tag("p", text), tag("div", *parts, class_="pair")))


def point_of(robot: Robot, q: Array, link: int, point: Array) -> Array:
    """A point (3,) [m] of a link, counted from 1, in base axes."""
    T = robot.link_poses(q)[link - 1]
    return np.asarray(T[:3, :3] @ point + T[:3, 3])


def _thresholds(seen: Watched) -> Section:
    t = seen.belief.thresholds
    rows = []
    for j, title in enumerate(titles(seen.belief.robot)):
        cells = (number(float(row[g, j]), 3) for row in (t.level, t.change, t.impact) for g in range(len(REGIMES)))
        rows.append((title, *cells))
    unit = seen.belief.robot.units("Nm")
    head = (f"[{unit}]", *(f"{what}, {regime}" for what in ("level", "change", "impact") for regime in REGIMES))
    of = extrapolated(t, f"{number(t.hours, 3)} h of free motion")
    promised = (
        f"Tuned for {number(t.rate, 3)} false alarms per hour, {of}."
        if t.tuned else "Not tuned: from the uncertainty of the drive model; no rate of false alarms is promised."
    )  # fmt: skip
    notes = tag("ul", *(tag("li", note) for note in t.notes)) if t.notes else None
    return Section("thresholds", "Thresholds", join(tag("p", promised), table(head, rows), notes))


def _logs(done: Sequence[Watched], command: str) -> Section:
    rows = []
    for seen in done:
        time = seen.log.motion.time
        period = float(np.median(np.diff(time))) if seen.period is None else seen.period
        gains = "torque" if seen.log.torque else ", ".join(
            f"{gain:.4g} ({source})" for gain, source in zip(seen.log.gain, seen.log.source, strict=True)
        )  # fmt: skip
        rows.append((
            seen.log.name, number(float(np.ptp(time)), 4), number(1.0 / period, 3),
            number(_start(seen), 9), gains, tag("code", seen.log.motion.digest[:16]),
            "; ".join((*seen.log.problems, *seen.said)) or "–",
        ))  # fmt: skip
    head = ("log", "duration [s]", "rate [Hz]", "first stamp [s]", "gains [Nm/A]", "sha256", "remarks")
    left = len(done) - min(len(done), _SHOWN)
    text = tag("p", f"Figures of {_SHOWN} logs, those with most events; {left} more were watched.") if left else None
    return Section("logs", "Logs and how to do it again", join(command_line(command), text, many(head, rows, "wide")))
