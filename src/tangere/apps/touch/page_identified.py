"""The report of an identification: what was learned, how surely, and how well it predicts what it has not seen."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np

from tangere.figures.markup import Raw, join, number, tag
from tangere.figures.plots import Panel, Series, TimeFigure
from tangere.figures.stills import XY, xy_figure
from tangere.identification import Motion, momentum_residual
from tangere.identification.findings import sentences
from tangere.identification.identify_logs import Identification
from tangere.identification.samples import TERMS, midpoints
from tangere.logs.files import write_text
from tangere.observe.drive_model import DriveModel
from tangere.report.page import page_html
from tangere.report.section import Section, again, bar, command_line, many, page_head, table, time_section, titles
from tangere.report.sections_run import row
from tangere.report.terminal import plural
from tangere.types import Array

_UNITS = {
    "coulomb": "Nm", "viscous": "Nm s/rad", "offset": "Nm", "rotor_inertia": "kg m²", "quadratic": "Nm s²/rad²",
    "load": "", "m": "kg", "hx": "kg m", "hy": "kg m", "hz": "kg m",
}  # fmt: skip
_LONGEST = 60.0  # s of a log that the torque figure shows


def write_identified(done: Identification, path: str | os.PathLike[str], command: str = "") -> Path:
    """Write the page to `path` and say where it is."""
    return write_text(path, identified_html(done, command))


def identified_html(done: Identification, command: str = "") -> str:
    """The page as text."""
    shown = _shown(done)
    sections = [
        _fit(done), _torque(done, shown, command), _friction(done, command), _twin(done), _drives(done),
        _bodies(done), _excitation(done), _logs(done, command),
    ]  # fmt: skip
    shown_sections = [section for section in sections if section is not None]
    return page_html(f"{done.robot.model.title} identified", _head(done), shown_sections, shown.time)


def _shown(done: Identification) -> Motion:
    """The judging log in which the joints move most, free ones first, its clock from 0, cut where it is long."""
    free = [motion for motion in done.judged if motion.free is None]
    motion = max(
        free or done.judged, key=lambda m: float(np.abs(m.qd).max(axis=0).sum()) * min(1.0, float(np.ptp(m.time)) / 5.0)
    )
    time = motion.time - motion.time[0]
    rows = slice(0, int(np.searchsorted(time, _LONGEST)))
    return Motion(time[rows], motion.q[rows], motion.qd[rows], motion.tau[rows], motion.name)


def _head(done: Identification) -> Raw:
    model = done.model
    seconds = sum(float(np.ptp(log.motion.time)) for log in done.used)
    ratio = np.nanmedian(model.before / model.after)
    twin = 1e3 * done.twin["identified"].median
    tiles: list[tuple[str, object, str]] = [
        ("logs used", len(done.used), f" {seconds:.0f} s"),
        ("logs that judge", len(done.judges) if model.unseen else "the same", ""),
        ("residual smaller by", number(float(ratio), 3), " ×"),
        ("twin after 200 ms, worst joint", number(float(np.nanmax(twin)), 2), " mrad"),
    ]
    if model.inertial == "links":
        tiles.append(("base parameters told", f"{model.excitation.told} of {model.excitation.base}", ""))
    if model.payload is not None:
        tiles.append(("payload", number(model.payload.mass, 4), " kg"))
    limits = ("What to know", "\n".join(sentences(model.findings[:8]))) if model.findings else None
    what = "friction" if model.inertial == "none" else model.inertial
    line = f"{done.robot.model.title}: drives and {what} from logs"
    known = "logs that it had not seen" if model.unseen else "the same logs"
    said = (
        f"From {plural(len(done.used), 'log')} ({seconds:.0f} s) of a {done.robot.model.title}: on {known} the model "
        f"leaves a residual {number(float(ratio), 2)} times smaller than the data sheet does."
    )
    return page_head(f"{done.robot.model.title} identified", line, tiles, None, limits, sentence=said)


def _fit(done: Identification) -> Section:
    model = done.model
    rows = []
    figures = zip(titles(done.robot), model.before, model.after, model.following, strict=True)
    for title, before, after, following in figures:
        share = after / before if before > 0.0 else np.nan
        shown = (number(float(value), 3) for value in (before, after, following, 100.0 * share))
        rows.append((title, *shown, bar(100.0 * share)))
    unseen = "logs that were not used" if model.unseen else "the logs that were used themselves: none was held out"
    text = (
        f"Root mean square of the momentum residual while the joint moves, on {unseen}: with the arm's data alone, and "
        "with this model. It is what a detector of touch has to live with. Following: after taking off what each log "
        "had shown of its friction by then (how much there is that day, and the lag of a lubricant film where one is "
        "found), as a detector can do while it watches. Left: after, as a share of before."
    )
    unit = done.robot.units("Nm")
    head = ("", f"before [{unit}]", f"after [{unit}]", f"following [{unit}]", "left [%]", "")
    return Section("fit", "How well it fits", join(tag("p", text), table(head, rows, "bars")))


def _torque(done: Identification, motion: Motion, command: str) -> Section:
    robot, drive = done.model.robot(done.robot), done.model.drive
    m = midpoints(motion, drive.delay)
    predicted = robot.inverse_dynamics(m.q, m.qd, _smooth(m.qdd, m.h)) + drive.friction(
        m.q, m.qd, robot.gravity_torque(m.q)
    )
    whole = np.full(motion.tau.shape, np.nan)
    whole[m.index] = predicted
    late = np.clip(np.searchsorted(motion.time, motion.time - drive.delay), 0, len(motion.time) - 1)
    whole = whole[late]  # shown where the torque is reported
    residual = momentum_residual(robot, drive, motion)
    panels, left = [], []
    for j, title in enumerate(titles(done.robot)):
        curves = (Series("measured", motion.tau[:, j], "soft"), Series("predicted", whole[:, j], "b"))
        unit = done.robot.unit(j + 1, "Nm")
        panels.append(Panel(title, unit, curves, at_least=1e-2))
        left.append(Panel(title, unit, (Series("residual", residual[:, j], "a"),), at_least=1e-2))
    first = TimeFigure(
        "torque", f"Torque of the drives, measured and predicted, {motion.name}.", motion.time, tuple(panels)
    )
    second = TimeFigure(
        "residual", "What is left: the momentum residual. At rest friction holds anything within its stiction.",
        motion.time, tuple(left),
    )  # fmt: skip
    return time_section("torques", "Torque, measured and predicted", command, first, second)


def _smooth(qdd: Array, h: Array) -> Array:
    """Acceleration averaged over 20 ms, as the residual's own filter does: single differences are noise."""
    size = max(1, round(0.02 / float(np.median(h))))
    kernel = np.ones(size) / size
    return np.stack([np.convolve(column, kernel, mode="same") for column in qdd.T], axis=1)


def _friction(done: Identification, command: str) -> Section:
    robot, drive = done.model.robot(done.robot), done.model.drive
    clouds: list[tuple[Array, Array]] = []
    for log in done.used[:20]:
        motion = dataclasses.replace(log.motion, tau=log.motion.tau * done.model.scale)
        m = midpoints(motion, drive.delay)
        size = max(1, round(0.02 / float(np.median(m.h))))
        rest = m.tau - robot.inverse_dynamics(m.q, m.qd, _smooth(m.qdd, m.h))
        clouds.append((m.qd[::size], rest[::size]))
    qd, rest = (np.concatenate(part) for part in zip(*clouds, strict=True))
    panels = []
    for j, title in enumerate(titles(done.robot)):
        use = drive.moving(qd)[:, j]
        top = max(float(np.abs(qd[:, j]).max()), 0.05)
        # dense about zero, where friction turns round
        speed = top * np.sinh(np.linspace(-4.0, 4.0, 241)) / np.sinh(4.0)
        law = np.zeros((len(speed), drive.dof))
        law[:, j] = speed
        curves = [("identified law at the mean load", "b", speed, drive.torque(law)[:, j])]
        known = done.robot.drives
        if np.isfinite(known.coulomb[j]) and np.isfinite(known.viscous[j]):
            sheet = dataclasses.replace(DriveModel.of(known), width=drive.width)
            curves.append(("the arm's data", "limit", speed, sheet.torque(law)[:, j]))
        across, up = (done.robot.unit(j + 1, turning) for turning in ("rad/s", "Nm"))
        panels.append(XY(title, across, up, (qd[use, j], rest[use, j]), tuple(curves)))
    caption = (
        "Friction over speed: torque less rigid body and rotor, each dot the mean of 20 ms of motion (grey), and the "
        "law. Dots scatter by the load that the gear carries, by the ripple of its teeth and by temperature."
    )
    drawn = xy_figure("friction-curves", caption, tuple(panels), again(command, "friction"))
    return Section("friction", "Friction", drawn)


def _twin(done: Identification) -> Section:
    head = ("", *done.twin)
    rows = []
    for j, title in enumerate(titles(done.robot)):
        cells = [float(1e3 * run.median[j]) for run in done.twin.values()]
        rows.append((title, *("> 1000" if value > 1000.0 else number(value, 3) for value in cells)))
    windows = len(next(iter(done.twin.values())).start)
    text = (
        f"The model as a twin: let go at measured position and velocity with measured torque, run freely for 200 ms, "
        f"{windows} times. Median distance from the real arm at the end [mrad], where the joint moves."
    )
    if done.model.twin is not None:
        text += (
            " This arm runs with drives of its own ([identified.twin] in the model file): rotors as known of the arm, "
            "and viscous friction that follows the speed late. Last column: the drives that explain torque best."
        )
    return Section("twin", "The twin", join(tag("p", text), table(head, rows)))


def _bar(value: float, sigma: float) -> Raw:
    """How sure a value is: its standard deviation to both sides of it, in shares of the value; the edge is 100 %."""
    if not (np.isfinite(value) and np.isfinite(sigma)) or value == 0.0 or sigma == 0.0:
        return Raw("")
    half = 56.0 * min(sigma / abs(value), 1.0)
    return tag(
        "svg", tag("title", f"± {number(100.0 * sigma / abs(value), 2)} %"), tag("path", class_="grid", d="M2 8H118"),
        tag("path", class_="line a", d=f"M{60.0 - half:.1f} 8H{60.0 + half:.1f}"),
        tag("path", class_="line b", d="M60 3V13"), viewBox="0 0 120 16", width=120, height=16, style="max-width:120px",
    )  # fmt: skip


def _parameters(done: Identification, title: str, prefix: str, keys: tuple[str, ...], **attributes: object) -> Raw:
    """A table to unfold: each parameter with its standard deviation and who told it."""
    model = done.model
    rows = []
    at = {name: k for k, name in enumerate(model.parameters)}
    for key in keys:
        for j in range(done.robot.dof):
            k = at[f"{prefix} {j + 1} {key}"]
            value, sigma, told = float(model.values[k]), float(model.sigma[k]), model.told[k]
            value = 0.0 if abs(value) < 1e-6 * sigma else value  # digits of rounding
            said = "left out: not supported" if sigma == 0.0 else "told by the logs" if told else "the data sheet's"
            rows.append((
                f"{prefix} {j + 1}, {key.replace('_', ' ')}", f"{number(value)} {_UNITS.get(key, 'kg m²')}",
                "–" if sigma == 0.0 else f"± {number(sigma, 2)}", said, _bar(value, sigma),
            ))  # fmt: skip
    head = ("", "value", "", "", "± σ of the value; edge: 100 %")
    return tag("details", tag("summary", f"Every {title} with its standard deviation"), table(head, rows), **attributes)


def _drives(done: Identification) -> Section:
    model, drive = done.model, done.model.drive
    gains = []
    names = {
        "log": "the log's own targets at rest", "arm": "the arm's data", "model": "the model", "given": "given",
        "gravity": "fitted to gravity", "assumed": "assumed by the joint's size", "torque": "the log holds torque",
    }  # fmt: skip
    for j, title in enumerate(titles(done.robot)):
        gains.append((
            title, number(float(done.gain[j])), names[done.source[j]], number(float(model.scale[j]), 4),
            number(float(drive.gain[j])) if np.isfinite(done.gain[j]) else "–",
            number(float(drive.stiction[j]), 3), number(float(drive.spread[j]), 3),
            number(1e3 * float(drive.width[j]), 2),
        ))  # fmt: skip
    gain, torque, speed = (done.robot.units(turning) for turning in ("Nm/A", "Nm", "mrad/s"))
    head = (
        "", f"gain [{gain}]", "from", "× by gravity", f"used [{gain}]", f"stiction [{torque}]", f"spread [{torque}]",
        f"turns round in [{speed}]",
    )  # fmt: skip
    lag = f" Reported torque lags the motion by {1e3 * drive.delay:.1f} ms." if drive.delay > 0.0 else ""
    text = (
        "Stiction: what a standing joint may hide. Spread: standard deviation of what is left in motion, per 20 ms."
        + lag
    )
    fold = _parameters(done, "term", "joint", TERMS)
    return Section("drives", "Drives", join(table(head, gains), tag("p", text), fold))


def _bodies(done: Identification) -> Section | None:
    model = done.model
    if model.inertial == "payload" and model.payload is not None:
        n = done.robot.dof
        at = [model.parameters.index(f"link {n} {key}") for key in ("m", "hx", "hy", "hz")]
        sigma = model.sigma[at]
        com = model.payload.com
        rows = [("mass", f"{number(model.payload.mass)} kg", f"± {number(float(sigma[0]), 2)}")]
        for axis, value, error in zip("xyz", com, sigma[1:], strict=True):
            spread = 1e3 * float(error) / model.payload.mass
            rows.append((f"centre of mass, {axis}", f"{number(1e3 * float(value))} mm", f"± {number(spread, 2)}"))
        return Section("payload", "Payload", table(("in flange axes", "", ""), rows))
    if model.inertial != "links":
        return None
    masses = []
    for pair in zip(model.links, done.robot.model.links, strict=True):
        centres = (", ".join(row([1e3 * float(v) for v in link.com])) for link in pair)
        masses.append((pair[0].name.replace("_", " "), *(number(link.mass) for link in pair), *centres))
    text = (
        "Only combinations of these numbers move the joints: masses pass from link to link as far as the data sheet "
        "allows, and the torque is the same. Every link is a body that can exist."
    )
    terms = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
    fold = _parameters(done, "parameter", "link", terms)
    head = ("link", "mass [kg]", "data sheet", "centre of mass x, y, z [mm]", "data sheet")
    return Section("links", "Links", join(table(head, masses), tag("p", text), fold))


def _excitation(done: Identification) -> Section:
    rows = []
    drive = done.model.drive
    q = np.concatenate([log.motion.q for log in done.used])
    qd = np.concatenate([log.motion.qd for log in done.used])
    for j, title in enumerate(titles(done.robot)):
        fast = drive.moving(qd)[:, j]
        ahead, back = (100.0 * float(np.mean(fast & (sign * qd[:, j] > 0.0))) for sign in (1.0, -1.0))
        rows.append((
            title, number(float(np.rad2deg(np.ptp(q[:, j]))), 3), number(float(np.abs(qd[:, j]).max()), 3),
            number(ahead, 2), number(back, 2),
        ))  # fmt: skip
    head = ("", "range [deg]", "fastest [rad/s]", "moving forwards [% of the time]", "backwards [%]")
    parts = [table(head, rows)]
    seen = done.model.excitation
    if done.model.inertial == "links":
        parts.append(tag("p",
            f"Of {seen.base} base parameters (combinations that can move a joint at all) the logs tell {seen.told} "
            "better than the data sheet does. Condition number of the observations, in units of how far a real arm may "
            f"be from its sheet: {number(seen.condition, 3)}; below 100 all are well told, above 10 000 "
            "some are not told at all and keep the sheet's value. More poses, faster and slower motion help.",
        ))  # fmt: skip
    return Section("excitation", "How exciting the motion was", join(*parts))


def _logs(done: Identification, command: str) -> Section:
    used = {log.name for log in done.used}
    seen = [*done.used, *(log for log in done.judges if log.name not in used)]
    rows = [
        (log.name, "used" if log.name in used else "judges", number(float(np.ptp(log.motion.time)), 4),
         number(1.0 / float(np.median(np.diff(log.motion.time))), 3), tag("code", log.motion.digest[:16]),
         "; ".join(log.problems) or "–")
        for log in seen
    ]  # fmt: skip
    head = ("log", "", "duration [s]", "rate [Hz]", "sha256", "remarks")
    return Section("logs", "Logs and how to do it again", join(command_line(command), many(head, rows, "wide")))
