"""The report of a study: how often, how soon and how rightly touches are found."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tangere.apps.study import tables
from tangere.apps.study.figures import Chart, Curve, arm_title, bars, charts, interval, matrix, percent
from tangere.apps.study.injected import InjectedStudy
from tangere.apps.study.statistics import quantile, rate
from tangere.apps.study.study import Study
from tangere.apps.study.trials import FACTORS
from tangere.apps.study.world import WORLDS, WorldName
from tangere.figures.markup import Raw, join, number, tag
from tangere.logs.files import write_text
from tangere.report.page import page_html
from tangere.report.section import Section, again, command_line, page_head, table

_LATEST = 0.1  # s, the last bar of the delays
_SOURCES: tuple[tuple[tables.Source, str], ...] = (
    ("isolated", "isolator that knows the noise"),
    ("told", "events of the detector, which allow for 7 % of error in the drive gains"),
)


def write_studied(done: Study | InjectedStudy, path: str | os.PathLike[str], command: str = "") -> Path:
    """Write the page to `path` and say where it is."""
    return write_text(path, studied_html(done, command) if isinstance(done, Study) else injected_html(done, command))


def studied_html(done: Study, command: str = "") -> str:
    """The page of a simulated study as text."""
    sections = [
        _found(done), _roc(done, command), _delays(done, command), _steps(done, command), _isolation(done, command),
        _calibration(done, command), _observers(done), _how(done, command),
    ]  # fmt: skip
    return page_html(f"Study of a {arm_title(done.plan.robot)}", _head(done), [s for s in sections if s is not None])


def _title(done: Study, world: WorldName) -> str:
    plan = done.plan
    return "Exact model" if world == "exact" else f"Masses × {plan.mass:g}, friction × {plan.friction:g}"


def _head(done: Study) -> Raw:
    plan = done.plan
    delays = tables.step_delays(done, "wrong")
    size = plan.force
    found = {row.size: row for row in tables.found_rows(done, "wrong")}
    isolation = tables.isolation_rows(done, "exact", "isolated", size)[0]
    alarms = tables.false_alarms(done, "wrong")
    tiles: list[tuple[str, object, str]] = [
        ("false alarms, wrong model", alarms.count, f" in {60 * done.hours('wrong'):.0f} min"),
    ]
    if size in found and found[size].found.known:
        tiles.append((f"{size:g} N found of detectable", number(100 * found[size].found.value, 4), " %"))
    if len(delays):
        soon = rate(int(np.sum(delays <= tables.SOON + 1e-9)), len(delays))
        step = f"{plan.step[1]:g} {done.unit(plan.step[0])} on joint {plan.step[0]}"
        tiles.append((f"{step} within 20 ms", number(100 * soon.value, 3), " %"))
        tiles.append(("its delay, median", number(1e3 * quantile(delays, 0.5).value, 3), " ms"))
    if isolation.answered.known:
        tiles.append(("link named", number(100 * isolation.answered.value, 3), " %"))
        tiles.append(("then right", number(100 * isolation.right.value, 3), " %"))
    line = f"{len(done.touches)} contacts on a simulated {arm_title(plan.robot)}, seed {plan.seed}; intervals hold 95 %"
    alarm = ("Interrupted", "What is shown is what was done by then.") if done.interrupted else None
    return page_head(f"How well a {arm_title(plan.robot)} feels", line, tiles, alarm, sentence=_sentence(done))


def _sentence(done: Study) -> str:
    """What was found with the wrong model, which is the honest one."""
    size = done.plan.force
    found = {row.size: row for row in tables.found_rows(done, "wrong")}
    if size not in found or not found[size].found.known:
        return ""
    share, soon = found[size].found, found[size].median
    late = f", half of them within {number(1e3 * soon.value, 2)} ms" if np.isfinite(soon.value) else ""
    return (
        f"With {done.plan.off}, {100 * share.value:.0f} % of the touches of {size:g} N that some joint can feel were "
        f"found{late}."
    )


def _found(done: Study) -> Section:
    parts: list[Raw] = []
    head = ("force", "contacts", "detectable [%]", "found of these [%]", "found of all [%]", "median [ms]", "95 %")
    for name in WORLDS:
        rows: list[tuple[object, ...]] = [
            (f"{r.size:.0f} N", r.trials, percent(r.detectable), percent(r.found), percent(r.found_all),
             interval(r.median, 1e3), interval(r.late, 1e3))
            for r in tables.found_rows(done, name)
        ]  # fmt: skip
        alarms, promised = tables.false_alarms(done, name), done.learned[name].thresholds.rate
        less = f", which is too little for the {done.plan.alarm_rate:g} that were asked for" if promised > (
            1.01 * done.plan.alarm_rate) else ""  # fmt: skip
        text = (
            f"False alarms: {alarms.count} in {60 * done.hours(name):.1f} min of other free motion, {interval(alarms)} "
            f"per hour. Thresholds were learned for {number(promised, 2)} per hour from {done.plan.learn_minutes:g} min"
            f"{less}."
        )
        parts += [tag("h3", _title(done, name)), table(head, rows, "spans"), tag("p", text)]
    note = (
        "Detectable: some joint's torque is six standard deviations of the noise or more. A push along a joint's axis, "
        "or on the first link towards the column, moves no joint and cannot be felt by any observer of torques."
    )
    return Section("found", "What is found", join(*parts, tag("p", note, class_="sub")))


def _roc(done: Study, command: str) -> Section:
    panels = []
    at = int(np.argmin(np.abs(FACTORS - 1.0)))
    for name in WORLDS:
        least = 0.5 / max(done.hours(name), 1e-9)  # half an alarm: where none was seen
        curves = []
        for k, size in enumerate(tables.sizes(done)):
            points = tables.roc(done, name, size)
            x = [max(p.false_alarms.value, least) for p in points]
            curves.append(Curve(f"{size:.0f} N", x, [p.found for p in points], style=f"r{min(k, 5) + 1}", mark=at))
        panels.append(Chart(_title(done, name), "false alarms per hour", tuple(curves), least, 3600.0, log=True))
    caption = (
        "Found share of all contacts, undetectable ones included, against false alarms per hour, all thresholds scaled "
        "by one factor. The dot is where they were learned; at the left edge no false alarm was seen in the time "
        "simulated."
    )
    return Section("roc", "ROC", charts("roc-curves", caption, panels, again(command, "roc")))


def _delays(done: Study, command: str) -> Section:
    boxes = []
    edges = np.linspace(0.0, 1e3 * _LATEST, 26)
    for name in WORLDS:
        delays = np.array([1e3 * t.delay for t in done.of(name) if t.detectable])
        never = int(np.sum(~np.isfinite(delays)))
        boxes.append(bars(_title(done, name), "ms", delays[np.isfinite(delays)], edges, never))
    caption = "From the onset to the sample that raised the alarm; detectable contacts of every size."
    below = tag("figcaption", caption, again(command, "delays"))
    figure = tag("figure", tag("div", *boxes, class_="panels many"), below)
    rows: list[tuple[object, ...]] = []
    joint, torque = done.plan.step
    for name in WORLDS:
        delays = tables.step_delays(done, name)
        soon = rate(int(np.sum(delays <= tables.SOON + 1e-9)), len(delays))
        worst = number(1e3 * float(delays.max()), 3) if len(delays) else "–"
        rows.append((_title(done, name), len(delays), percent(soon), interval(quantile(delays, 0.5), 1e3),
                     interval(quantile(delays, 0.95), 1e3), worst))  # fmt: skip
    what = f"step of {torque:g} {done.unit(joint)} on joint {joint}"
    head = (what, "onsets", "within 20 ms [%]", "median [ms]", "95 % [ms]", "worst")
    return Section("delays", "How soon", join(figure, table(head, rows, "spans")))


def _steps(done: Study, command: str) -> Section:
    line = again(command, "steps")
    unit = done.unit()
    parts = [
        _ladder(_title(done, name), tables.smallest_rows(done, name), f"steps-{name}", line, unit) for name in WORLDS
    ]
    return Section("steps", "Smallest torque", join(*parts))


def _ladder(title: str, rows: list[tables.StepRow], identifier: str, line: Raw | None, unit: str) -> Raw:
    """Found rate over size of a step, a curve per joint, and the smallest found in 99 %."""
    curves = tuple(
        Curve(f"joint {r.joint}", [s for s, _ in r.rates], [e for _, e in r.rates], bars=True, style=r.joint - 1)
        for r in rows
    )
    sizes = [s for r in rows for s, _ in r.rates]
    chart = Chart(title, unit, curves, min(sizes), max(sizes), log=True)
    caption = "Steps on single joints while they move, found within 0.4 s; bars are 95 % intervals."
    cells: list[tuple[object, ...]] = [
        (f"joint {r.joint}", interval(r.smallest), r.smallest.count) for r in rows
    ]  # fmt: skip
    head = ("", f"smallest step found in 99 % [{unit}]", "onsets")
    return tag("div", charts(identifier, caption, [chart], line), table(head, cells), class_="pair")


def _isolation(done: Study, command: str) -> Section:
    parts: list[Raw] = []
    size = done.plan.force
    head = ("touched", "detectable", "answered [%]", "then right [%]", "point within 5 cm [%]", "median error [cm]",
            "likeliest link right [%]")  # fmt: skip
    for name in WORLDS:
        boxes = []
        for source, who in _SOURCES:
            rows: list[tuple[object, ...]] = [
                ("all links" if r.link is None else f"link {r.link}", r.trials, percent(r.answered), percent(r.right),
                 percent(r.near), number(100 * r.median_error, 2), percent(r.likeliest))
                for r in tables.isolation_rows(done, name, source, size)
            ]  # fmt: skip
            parts += [tag("h3", f"{_title(done, name)}: {who}"), table(head, rows)]
            boxes.append(matrix(f"{_title(done, name)}: {who}", tables.isolation_matrix(done, name, source, size)))
        parts.append(tag("div", *boxes, class_="pair"))
    text = (
        f"Contacts of {size:g} N on any link, any point of its surface, any direction within the friction cone; "
        "detectable ones only. Points are judged where the link is right."
    )
    return Section("isolation", "Which link", join(tag("p", text), *parts, again(command, "isolation")))


def _calibration(done: Study, command: str) -> Section:
    panels = []
    for name in WORLDS:
        curves = []
        for k, (source, who) in enumerate(_SOURCES):
            rows = tables.calibration_rows(done, name, source)
            curves.append(Curve(who, [100 * r.stated for r in rows], [r.right for r in rows], bars=True, style=k))
        unit = "stated probability of the likeliest link [%]"
        panels.append(Chart(_title(done, name), unit, tuple(curves), 0.0, 100.0, diagonal=True))
    caption = (
        "How often the likeliest link is right, over the probability that was stated for it; detectable contacts of "
        "every size. On the dashed line probabilities are honest, above it too modest, below it too bold."
    )
    return Section("calibration", "Are the probabilities honest?", charts("reliability", caption, panels,
                                                                           again(command, "calibration")))  # fmt: skip


def _observers(done: Study) -> Section | None:
    if not done.observers:
        return None
    joint, torque = done.plan.step
    unit = done.unit(joint)
    rows: list[tuple[object, ...]] = [
        (f"{o.name}, {_title(done, o.world).lower()}", number(1e3 * o.delay, 3) if np.isfinite(o.delay) else "never",
         f"{o.found} of {o.motions}".replace(" ", "\N{NO-BREAK SPACE}"), number(1e3 * o.half_rise, 3),
         number(o.peak_error, 3), number(o.rms, 3), number(1e6 * o.cost, 3))
        for o in done.observers
    ]  # fmt: skip
    head = ("", "delay [ms]", "found", "half rise [ms]", f"peak error [{unit}]", f"rms [{unit}]", "cost per step [µs]")
    text = (
        f"The same motions and noise with a step of {torque:g} {unit} on joint {joint}; medians, all of equal "
        "bandwidth. Delay: until the residual exceeds its largest value before the push. The model's error is the "
        "same for all."
    )
    return Section("observers", "Observers side by side", join(tag("p", text), table(head, rows)))


def _how(done: Study, command: str) -> Section:
    plan = done.plan
    rows: list[tuple[object, ...]] = [
        ("motion", "moves between random postures (rest to rest, 0.2 to 1.05 rad/s) and circles of the tool"),
        ("arm", "follows its path exactly" if plan.plant == "servo" else "closed loop of computed torque, integrated"),
        ("noise", f"{plan.noise:g} × what a resting UR10e shows: 2.3 2.0 0.9 0.29 0.43 0.30 Nm per 100 Hz sample, "
         f"scaled to {plan.frequency:g} Hz as white noise; 0.002 rad/s"),
        ("contacts", f"half of {plan.force:g} N, others a sixth to three times that; 0.15 to 1 s; full force at once"),
        ("not in it", "stiction of a standing arm, elastic gears, self-collision, two contacts at once"),
        ("seed", str(plan.seed)), ("took", f"{done.seconds:.0f} s on {done.workers} processes"),
    ]  # fmt: skip
    return Section("how", "How it was done", join(command_line(command), table((), rows, "notes")))


def injected_html(done: InjectedStudy, command: str = "") -> str:
    """The page of pushes injected into real logs."""
    alarms = done.false_alarms
    tiles: list[tuple[str, object, str]] = [
        ("logs", len(done.logs), f" {60 * done.hours:.1f} min"),
        ("false alarms", alarms.count, ""),
        ("onsets", len(done.steps()), ""),
    ]
    alarm = ("Interrupted", "What is shown is what was done by then.") if done.interrupted else None
    line = f"real logs, seed {done.seed}; intervals hold 95 %"
    head: tuple[str, ...] = (
        "", f"step [{done.unit()}]", "onsets, moving", "found [%]", "median delay [ms]", "turning or standing",
        "found [%]",
    )  # fmt: skip
    rows: list[tuple[object, ...]] = []
    asked, found_of = 0, 0
    for j, torque in enumerate(done.torque.tolist()):
        moving, delay = done.asked(j + 1, True)
        asked, found_of = asked + moving.count, found_of + round(moving.count * moving.value if moving.count else 0.0)
        standing, _ = done.asked(j + 1, False)
        rows.append((f"joint {j + 1}", number(torque, 3), moving.count, percent(moving), interval(delay, 1e3),
                     standing.count, percent(standing)))  # fmt: skip
    said = (
        f"{found_of} of {asked} steps of torque added to moving joints were found; {alarms.count} false alarms in "
        f"{60 * done.hours:.1f} min of motion that nobody touched."
    )
    top = page_head(f"Pushes injected into free motion of a {arm_title(done.robot)}", line, tiles, alarm, sentence=said)
    text = (
        "A step is injected by taking it off the measured torque: an observer of momentum cannot tell that from a push "
        "on a joint that its servo does not let move. A joint that stands or turns hides pushes in its stiction; there "
        "the injected figure flatters, for a real push would have to overcome stiction first."
    )
    found = Section("found", "What is found", join(table(head, rows), tag("p", text)))
    ladder = Section("steps", "Smallest torque", _ladder(
        "Found", done.ladder(), "ladder", again(command, "steps"), done.unit()
    ))  # fmt: skip
    logs: list[tuple[object, ...]] = [
        (log.name, log.fold + 1, number(log.seconds, 4), log.false_alarms, len(log.steps),
         "; ".join(f"{e.kind} at {e.time_s:.2f} s" for e in log.events) or "–")
        for log in done.logs
    ]  # fmt: skip
    per = f"{alarms.count} false alarms, {interval(alarms)} per hour."
    parts = [tag("p", per), table(("log", "part", "watched [s]", "false alarms", "onsets", "events"), logs)]
    notes = tag("ul", *(tag("li", note) for note in done.notes)) if done.notes else None
    last = Section("logs", "Logs as they are", join(command_line(command), *parts, notes))
    return page_html(f"Pushes injected, {arm_title(done.robot)}", top, [found, ladder, last])
