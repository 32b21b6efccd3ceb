"""The report: sections in order, written as one HTML file that asks nothing of anyone else."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from tangere.figures.markup import WHOLE, Raw, floats, join, json_block, number, tag
from tangere.logs.files import write_text
from tangere.report.data import RunData, entries_of
from tangere.report.section import Section, axis, joint_units, origin, page_head, robot_of, stamp
from tangere.report.sections_curves import force, joints, residual, timing, torques, tracking
from tangere.report.sections_glance import glance
from tangere.report.sections_run import figure, settings, setup, summary, what
from tangere.report.sentence import beyond, beyond_words, false_size, sentence
from tangere.types import Array

SECTIONS: tuple[Callable[[RunData], Section | None], ...] = (
    glance,
    settings,
    summary,
    residual,
    force,
    tracking,
    joints,
    torques,
    setup,
    timing,
    what,
)


# what to do about an alarm though nothing touched
FALSE = (
    "What the model does not explain looks like a touch. Give controller and observer the arm's own model, tell them "
    "the payload (believed_payload), or allow for more (uncertainty_mass, uncertainty_friction, threshold)."
)


def write_report(source: Any, path: str | os.PathLike[str], **changes: Any) -> Path:
    """Write the report of a run to `path` and say where it is. The file is whole or not there.

    source: a RunData, the folder of a run, a log file, a Log, or what tangere.loop.run returned. changes: fields of
    RunData that are known better, e.g. name, command, robot, blocks, thresholds.
    """
    return write_text(path, report_html(RunData.of(source, **changes)))


def report_html(data: RunData) -> str:
    """The page of a run as text."""
    sections = [section for make in SECTIONS if (section := make(data)) is not None]
    return page_html(data.about.title or data.name, head(data), sections, axis(data))


def page_html(
    title: str, top: Raw, sections: Sequence[Section], time: Array | None = None, *, frames: bool = False
) -> str:
    """A page as text: its head (section.page_head), its sections, and the time that whole columns of figures share.

    frames: whether a section holds another page in a frame, whose scripts may run; nothing is fetched in any case.
    """
    script = "".join(_asset(f"{name}.js") for name in ("decode", "plot", "scene", "pdf", "export", "start"))
    # only our own script may run, whatever else came into the page: its hash is the one that is allowed
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    own = "style-src 'unsafe-inline'; media-src data:; img-src data:"
    policy = f"default-src 'none'; {own}; script-src 'sha256-{digest}'"
    if frames:  # a page in a frame has the policy of the one around it
        policy = "default-src 'unsafe-inline' 'unsafe-eval' blob: data:; connect-src blob: data:"
    page = join(
        Raw("<!doctype html>\n"),
        tag(
            "html",
            tag(
                "head",
                tag("meta", charset="utf-8"),
                tag("meta", http_equiv="Content-Security-Policy", content=policy),
                tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
                tag("meta", name="color-scheme", content="light dark"),
                tag("title", f"{title} – Tangere"),
                Raw(f"<style>{_asset('style.css')}</style>"),
            ),
            tag(
                "body",
                top,
                tag("nav", *(tag("a", s.title, href=f"#{s.identifier}") for s in sections), aria_label="Sections"),
                tag("main", *(_section(section) for section in sections)),
                _foot(),
                json_block("data", _data(time, sections)),
                Raw(f"<script>{script}</script>"),
            ),
            lang="en",
        ),
    )
    return str(page) + "\n"


def _data(time: Array | None, sections: Sequence[Section]) -> dict[str, Any]:
    """Figures, and the time that the whole columns among them share; a longer run has no whole columns."""
    shared = np.zeros(0) if time is None or len(time) > WHOLE else time
    return {"t": floats(shared), "figures": [figure for section in sections for figure in section.figures]}


def _section(section: Section) -> Raw:
    return tag("section", tag("h2", section.title), section.body, id=section.identifier)


def _foot() -> Raw:
    import tangere

    hint = Raw("<noscript><p>Without JavaScript the figures are still drawings: no zoom, no read-out.</p></noscript>")
    text = f"Written by Tangere {tangere.__version__}. One file, no network. The detector is not a safety function."
    return tag("footer", hint, tag("p", text))


def _asset(name: str) -> str:
    return resources.files("tangere.report").joinpath(name).read_text(encoding="utf-8")


def head(data: RunData) -> Raw:
    """Title, an abort if there was one, and the few figures that one looks for first."""
    robot, _ = robot_of(data)
    title = robot.model.title if robot is not None else str(data.robot or "")
    time = data.time
    lasts = float(time[-1] - time[0]) + (data.period or 0.0) if len(time) else 0.0  # the last sample lasts a period
    told = data.summary.get("samples")  # of a long run the page has fewer
    samples = max(len(time), told) if isinstance(told, int) else len(time)
    long = f"{number(lasts)} s, {samples} samples" if len(time) else "no samples were recorded"
    if zero := origin(data):
        long += f" from {stamp(zero)} s, where the figures' time is 0"
    line = " · ".join(part for part in (title, long) if part)
    alarm = None
    if data.aborted:
        alarm = ("The run ended early", data.aborted)
    elif not len(time):
        alarm = ("The log is empty", "Nothing to draw.")
    elif beyond(data):
        alarm = ("The arm went beyond its limits", beyond_words(data))
    false = any(entry.get("false") for event, entry in data.judged if event.alarm)
    doubt = ("The end may be missing", data.doubtful) if data.doubtful else None
    caution = ("False alarm", FALSE) if false else doubt
    return page_head(data.name, line, _tiles(data), alarm, caution, sentence=sentence(data), about=data.about)


def _tiles(data: RunData) -> list[tuple[str, object, str]]:
    """What one looks for first: how well it tracked, what it felt, how hard it was; only what is known."""
    told = data.summary
    tiles: list[tuple[str, object, str]] = []
    units = joint_units(data, "Nm")
    if _known(told, "tracking_rms_mm"):
        tiles.append(("tracking error, rms", figure(float(told["tracking_rms_mm"]), "mm"), " mm"))
    quiet = told.get("residual_rms_nm")
    if "force" in told:  # in contact all along nothing is quiet
        quiet = None
    if isinstance(quiet, (list, tuple)) and quiet and all(isinstance(v, (int, float)) for v in quiet):
        unit = units[quiet.index(max(quiet)) + 1]
        tiles.append(("quiet residual, worst joint", figure(float(max(quiet)), unit), f" {unit}"))
    for part, key, words in (("touch", "peak_n", "largest force"), ("force", "mean_n", "force, mean")):
        inner = told.get(part)
        if isinstance(inner, Mapping) and _known(inner, key):
            tiles.append((words, number(float(inner[key]), 3), " N"))
    alarms = sorted((judged for judged in data.judged if judged[0].alarm), key=lambda one: bool(one[1].get("false")))
    for event, entry in alarms[:1]:  # a true one, where there is any
        if entry.get("torque_nm") is not None and entry.get("false"):
            off, unit = false_size(entry, told.get("residual_rms_nm")), units[event.joint]
            tiles.append((f"false alarm at joint {event.joint}", number(off, 3), f" {unit}"))
        elif entry.get("torque_nm") is not None:
            known = entry.get("true_torque_nm") is not None and event.kind != "fault"  # a drive: nobody pushed
            true = f" of {number(entry['true_torque_nm'], 3)}" if known else ""
            felt = join(number(entry["torque_nm"], 3), tag("small", true))
            tiles.append((f"felt at joint {event.joint}", felt, f" {units[event.joint]}"))
        if entry.get("delay_ms") is not None:
            tiles.append(("noticed after", number(entry["delay_ms"], 3), " ms"))
    pushes = entries_of(told, "pushes")
    felt_of = sum(_known(push, "felt_ms") for push in pushes)
    if felt_of < len(pushes):
        tiles.append(("pushes felt", f"{felt_of} of {len(pushes)}", ""))
    return tiles


def _known(summary: Mapping[str, object], key: str) -> bool:
    value = summary.get(key)
    return isinstance(value, (int, float)) and value == value
