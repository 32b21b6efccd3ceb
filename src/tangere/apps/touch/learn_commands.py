"""The commands that learn from logs of free motion: identify (a model), tune (thresholds)."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tangere.apps.touch.options import (
    RecordedArm,
    arm_of,
    extrapolated,
    hours_text,
    model_file,
    model_of,
    note,
    sample_rate,
    tell,
)
from tangere.errors import InvalidValue
from tangere.logs.files import Attempts
from tangere.logs.recordings import LOGS
from tangere.options import add_json, add_options, group_from
from tangere.report.terminal import Bar, paint, plural, show, table, wants_colour
from tangere.settings import flag, numbers, other, repeated, word

if TYPE_CHECKING:
    from tangere.identification.identify_logs import Identification
    from tangere.loop.tuning import Tuned

IDENTIFY = """examples:
  tangere identify free_motion.csv --robot ur5e --out model.toml
                                            an RTDE recording with its header
  tangere identify run_*.csv --robot ur10e --columns t,q,qd,current,target_current,target_moment --out model.toml
                                            csv without a header: every name but t stands for six columns, _:6 skips six
  tangere identify 'runs.npz:*_func*' --rate 500 --robot ur3e --out model.toml
                                            arrays of an npz: q, qd, current (or --columns), 500 samples per second
  tangere identify loaded.csv --robot ur3e --inertial payload --out with_tool.toml
                                            what is mounted: mass and centre
  tangere check ur3e --parameters model.toml
                                            the numbers; also: tangere run circle --robot ur3e --model model.toml

What helps: 30 s or more of free motion, every joint in both directions, slow (0.1 rad/s) and fast, with the arm
stretched and folded, no contacts. What a log cannot tell is said, and keeps the data sheet's number."""
TUNE = """examples:
  tangere tune free_*.csv --robot ur5e --model model.toml --rate 0.1/h --out tuned.toml
                                            one false alarm in ten hours; also 1/day, 0.5/min
  tangere tune 'runs.npz:*' --robot ur3e --model model.toml --rate 0.1/h --sample-rate 500 --out tuned.toml
                                            arrays without stamps: 500 samples per second (--rate 500Hz says the same)

What helps: free motion as it will be at work - speeds, payload, a warm and a cold arm - that the model was not
identified from; hours of it. From little motion a lower rate cannot be promised: what can be is said. What clearly
looks touched is left out and said."""

_COLUMNS = (
    "coulomb_nm", "viscous_nm_s_per_rad", "offset_nm", "rotor_inertia_kg_m2", "stiction_nm", "rms_before_nm",
    "rms_after_nm", "rms_following_nm", "twin_mrad",
)  # fmt: skip
# what stands in each column of the table
COLUMN_WORDS = (
    "gain: torque per motor current and where it is from (log: its targets at rest; arm: data sheet; gravity: fitted;",
    "assumed: by the joint's size); x: what gravity corrects it by",
    "Coulomb [Nm], viscous [Nm s/rad], offset [Nm]: friction is Coulomb sign(speed) + viscous speed + offset",
    "rotor: inertia of motor and gear, at the joint; stiction: what a standing joint may hide",
    "rms before, after: momentum residual while the joint moves, with the arm's data alone and with this model",
    "following: the same less what the log had shown of its own friction by then",
    "twin: error after 200 ms of free running with measured torque; -: the joint moved too little to tell",
)
_NOTES = 8  # doubts that are told one by one
_RATE = re.compile(r"([0-9.eE+-]+)\s*(?:(?:/|per)\s*)(s|sec|min|h|hr|hour|d|day|week)")
_PER_HOUR = {
    "s": 3600.0, "sec": 3600.0, "min": 60.0, "h": 1.0, "hr": 1.0, "hour": 1.0, "d": 1 / 24, "day": 1 / 24,
    "week": 1 / 168,
}  # fmt: skip


@dataclass(frozen=True)
class IdentifySettings(RecordedArm):
    """What is learned from free motion, and what judges it."""

    out: str = word("model.toml", "the model file", metavar="FILE")
    rate: float | None = other(None, "samples per second of data without stamps", sample_rate, metavar="HZ")
    gain: str | None = word(None, "Nm per A of motor current, if you know better than log and arm", metavar="K1,..,K6")
    holdout: str | None = word(
        None, "share of the logs that only judge (default 0.25; 0: none), or names of logs with commas between",
        metavar="SHARE|NAMES",
    )  # fmt: skip
    inertial: Literal["links", "payload", "none"] = word(
        "links", "what else is identified beside the drives: all links, the payload, or nothing",
        ("links", "payload", "none"),
    )  # fmt: skip
    keep_gains: bool = flag(False, "do not let gravity correct the gains of the joints")
    no_report: bool = flag(False, "the model file only")


@dataclass(frozen=True, kw_only=True)
class TuneSettings(RecordedArm):
    """Whose thresholds are learned, and what they promise."""

    model: str = word(MISSING, "the model file that `tangere identify` wrote", metavar="FILE")
    rate: tuple[str, ...] = repeated(
        "false alarms that are accepted: 0.1/h (default), 1/day, 0.5/min; a number without / or with Hz is the sample "
        "rate, as in identify and watch", metavar="R/h",
    )  # fmt: skip
    sample_rate: float | None = other(None, "samples per second of data without stamps", sample_rate, metavar="HZ")
    out: str = word("tuned.toml", "the tuned model file", metavar="FILE")
    report: str | None = word(None, "a page with the residuals of these logs and the thresholds (HTML)", metavar="FILE")
    explain: bool = flag(False, "which second of which log comes nearest to each threshold")


def add(commands: Any) -> None:
    """Add both commands to the parser's."""
    p = commands.add_parser(
        "identify",
        help="learn drives, friction, payload and links from logs: a model file and a report",
        description="Identify drive gains, friction, rotor inertia, payload or links of an arm from ordinary logs of\n"
        "free motion, judge the model on logs that were not used, and write a model file (TOML, accepted wherever a\n"
        "parameter set is) with a report beside it.",
        epilog=IDENTIFY,
    )
    p.add_argument("logs", nargs="+", metavar="LOG", help=LOGS)
    add_options(p, IdentifySettings)
    add_json(p)
    p.set_defaults(run=identify)

    p = commands.add_parser(
        "tune",
        help="learn thresholds for a promised rate of false alarms from free motion",
        description="Learn the thresholds of detection from logs of free motion, for a promised rate of false alarms,\n"
        "and write the model with them to a new file, which `tangere watch --model` takes.",
        epilog=TUNE,
    )
    p.add_argument("logs", nargs="+", metavar="LOG", help=LOGS)
    add_options(p, TuneSettings)
    add_json(p)
    p.set_defaults(run=tune)


def identify(arguments: argparse.Namespace) -> int:
    """Identify, write, and say what was found."""
    from tangere.identification.identify_logs import identification

    told = group_from(IdentifySettings, arguments)
    out = model_file(told.out, "--out")
    arm, _ = arm_of(arguments)
    gain = None if told.gain is None else numbers(told.gain, "--gain", "Nm/A", (1, arm.dof))
    with Bar() as bar:
        done = identification(
            arm, arguments.logs, columns=told.columns, rate=told.rate,
            gain=gain * arm.dof if gain is not None and len(gain) == 1 else gain,
            hold_out=told.holdout, inertial=told.inertial, refine_gains=not told.keep_gains, progress=bar,
        )  # fmt: skip
    attempt = Attempts()
    attempt(out.name, lambda: done.model.write(out))
    where = None
    if not told.no_report:
        from tangere.apps.touch.page_identified import write_identified

        where = out.with_suffix(".html")
        attempt(where.name, lambda: write_identified(done, where, "tangere " + " ".join(arguments.words)))
    text = summary(done, wants_colour()) + _files(out, where, attempt)
    show(found(done) | {"model": out, "report": where}, text, arguments.json)
    attempt.settle(out.parent)
    return 0


def _files(model: Path, report: Path | None, attempt: Attempts) -> str:
    """Where the model file and the page are, as far as they could be written."""
    there = {"model:  ": model, "report: ": report}
    return "\n" + "".join(f"\n{what}{path}" for what, path in there.items() if path and path.name in attempt.kept)


def found(done: Identification) -> dict[str, Any]:
    """What was found, as figures: per joint in Nm, rad and s; None where a joint did not move enough to tell."""
    model, drive = done.model, done.model.drive
    moved = np.where(model.moved, 0.0, np.nan)
    columns = {
        "gain_nm_per_a": done.gain, "scale": model.scale, "coulomb_nm": drive.coulomb + moved,
        "viscous_nm_s_per_rad": drive.viscous + moved, "offset_nm": drive.offset + moved,
        "rotor_inertia_kg_m2": drive.rotor_inertia + moved, "stiction_nm": drive.stiction + moved,
        "rms_before_nm": model.before, "rms_after_nm": model.after, "rms_following_nm": model.following,
        "twin_mrad": 1e3 * done.twin["identified"].median,
    }  # fmt: skip
    payload = None if model.payload is None else {"mass_kg": model.payload.mass, "com_m": model.payload.com}
    return {
        "robot": model.name, "logs": len(done.used),
        "seconds": sum(float(np.ptp(log.motion.time)) for log in done.used),
        "judged_on_other_logs": model.unseen, "gain_from": list(done.source), **columns, "payload": payload,
        "base_parameters": model.excitation.base, "told": model.excitation.told,
        "condition": model.excitation.condition, "delay_ms": 1e3 * drive.delay,
        "notes": [str(finding) for finding in model.findings],
        "findings": [finding.record() for finding in model.findings],
    }  # fmt: skip


def summary(done: Identification, colour: bool = False) -> str:
    """What was found, for a terminal."""
    model, drive = done.model, done.model.drive
    told = found(done)
    others = f"{len(done.judges)} that {'was' if len(done.judges) == 1 else 'were'} not used"
    judged = f"judged on {others}" if model.unseen else "judged on the same (none was held out)"
    logs = plural(len(done.used), "log")
    lines = [f"{model.name}: identified from {logs}, {told['seconds']:.0f} s; {judged}"]
    lines += [paint("note: ", "bad", colour) + str(finding) for finding in model.findings[:12]]
    if len(model.findings) > 12:
        lines.append(f"note: and {len(model.findings) - 12} more, in the model file")
    rows = []
    for j in range(drive.dof):
        gain = "torque" if np.isnan(done.gain[j]) else f"{done.gain[j]:.3f} {done.source[j]}"
        rest = (_plain(told[key][j], ".2g" if key == "twin_mrad" else ".3g") for key in _COLUMNS)
        rows.append((str(j + 1), gain, f"{model.scale[j]:.3f}", *rest))
    head = (
        "joint", "gain [Nm/A]", "x", "Coulomb", "viscous", "offset", "rotor [kg m2]", "stiction [Nm]",
        "rms before", "after [Nm]", "following", "twin [mrad]",
    )  # fmt: skip
    slides = [str(j + 1) for j in np.flatnonzero(~done.robot.revolute)]
    lines += ["", *table(rows, head, "rlrrrrrrrrrr", indent=0), ""]
    if model.payload is not None:
        com = ", ".join(f"{1e3 * value:.1f}" for value in model.payload.com)
        from_where = {"given": "as given", "log": "as the logs state"}.get(done.payload_from, "identified")
        sigma = ""
        if model.inertial == "payload":
            at = model.parameters.index(f"link {drive.dof} m")
            sigma, from_where = f" +- {model.sigma[at]:.2g}", "identified"
        lines.append(f"payload {model.payload.mass:.4g}{sigma} kg at {com} mm from the flange ({from_where})")
    if model.inertial == "links":
        seen = model.excitation
        lines.append(
            f"base parameters: the logs tell {seen.told} of {seen.base} better than the data sheet does; condition "
            f"number {seen.condition:.3g}"
        )
    if drive.delay > 0.0:
        lines.append(f"reported torque lags the motion by {1e3 * drive.delay:.1f} ms")
    lines += COLUMN_WORDS
    if slides:
        lines.append(f"joint {', '.join(slides)} slides: N for Nm, m for rad, mm for mrad, kg for kg m2")
    return "\n".join(lines)


def _plain(value: float, form: str = ".3g") -> str:
    return "-" if np.isnan(value) else format(value, form)


def rates(words: Sequence[str], hertz: float | None) -> tuple[float, float | None]:
    """False alarms per hour and samples per second from tune's --rate (any number of them) and --sample-rate."""
    from tangere.observe.detect import RATE

    alarms = RATE
    for text in words:
        if found := _RATE.fullmatch(text.strip()):
            alarms = float(found[1]) * _PER_HOUR[found[2]]
            if not (np.isfinite(alarms) and alarms > 0.0):
                raise InvalidValue(f"--rate: false alarms above zero, such as 0.1/h, got {text!r}")
            continue
        if "/" in text or not re.match(r"[\d.+-]", text.strip()):
            raise InvalidValue(
                f"--rate: false alarms as NUMBER/h, /min, /day or /week (0.1/h), or a sample rate (500Hz), got {text!r}"
            )
        told = sample_rate(text, "--rate")
        # slower than two samples per second is no recording of an arm: who types 0.1 means false alarms
        if told is not None and told < 2.0 and "hz" not in text.lower():
            raise InvalidValue(f"--rate {text}: say {text}/h for false alarms per hour, or {text}Hz for a sample rate")
        hertz = told
    return alarms, hertz


def tune(arguments: argparse.Namespace) -> int:
    """Learn thresholds, write them, and say what they promise."""
    from tangere.identification.belief import belief, read
    from tangere.logs.recordings import all_recordings
    from tangere.loop.tuning import tuning

    said = group_from(TuneSettings, arguments)
    out = model_file(said.out, "--out")
    alarms, hertz = rates(said.rate, said.sample_rate)
    arm, payload = arm_of(arguments)
    model = model_of(arguments, arm, thresholds=False)
    believed = belief(arm, model, payload=payload)
    with Bar() as bar:
        found = all_recordings(
            arguments.logs, columns=said.columns, rate=hertz, progress=lambda what, share: bar(what, 0.3 * share)
        )
        logs = [read(recording, arm, model, payload) for recording in found]
        done = tuning(arm, logs, believed, alarms, progress=lambda share: bar("learning thresholds", 0.3 + 0.7 * share))
    for log in logs:
        tell(log.name, log.problems)
    for text in done.doubts[:_NOTES]:
        note(text)
    if len(done.doubts) > _NOTES:
        note(f"and {len(done.doubts) - _NOTES} more of the kind")
    attempt = Attempts()
    attempt(out.name, lambda: done.model.write(out))
    where = None
    if said.report:
        from tangere.apps.touch.page_watched import write_watched

        where, command = Path(said.report), "tangere " + " ".join(arguments.words)
        attempt(where.name, lambda: write_watched(done.logs, where, command, learned=True))
    about: dict[str, Any] = {"asked_per_hour": alarms, "model": out, "report": where}
    text = promise(done, alarms)
    if said.explain:
        from tangere.apps.touch.explained import peaks, peaks_text

        nearest = peaks(done.logs)
        about["explained"] = [vars(peak) for peak in nearest]
        text = "\n".join((text, *peaks_text(nearest)))
    show(promised(done) | about, text + _files(out, where, attempt), arguments.json)
    attempt.settle(out.parent)
    return 0


def promised(done: Tuned) -> dict[str, Any]:
    """Thresholds [Nm] (moving, turning, standing; each per joint) and what they promise, as figures."""
    t = done.thresholds
    return {
        "robot": done.model.name, "per_hour": t.rate, "expected_per_hour": t.expected,
        "hours": t.hours, "level_nm": t.level, "change_nm": t.change, "felt_nm": t.felt(done.model.drive.stiction),
        "impact_nm": t.impact, "alarms_here": sum(len(seen.alarms) for seen in done.logs),
        "stops_here": sum(event.kind == "stop" for seen in done.logs for event in seen.events),
        "hours_here": sum(seen.seconds for seen in done.logs) / 3600.0, "notes": [*t.notes, *done.doubts],
        "findings": [finding.record() for finding in done.findings],
    }  # fmt: skip


def promise(done: Tuned, asked: float) -> str:
    """Thresholds and what they promise, for a terminal."""
    t = done.thresholds
    of = extrapolated(t, f"{hours_text(t.hours)} of free motion")
    lines = [f"{done.model.name}: thresholds for {t.rate:.3g} false alarms per hour, {of}"]
    if t.rate > 1.001 * asked:
        lines[0] += f" ({asked:.3g}/h was asked for)"
    lines += [*t.notes, ""]
    shown = (t.level, t.change, t.impact, t.felt(done.model.drive.stiction))
    rows = [(str(j + 1), *(" / ".join(f"{rows[g, j]:.3g}" for g in range(3)) for rows in shown)) for j in range(t.dof)]
    unit = done.logs[0].belief.robot.units("Nm") if done.logs else "Nm"
    names = (f"{what} [{unit}]" for what in ("level", "change", "impact", "felt from"))
    lines += table(rows, ("joint", *names), "rrrrr", indent=0)
    told = promised(done)
    alarms, stops = plural(told["alarms_here"], "alarm"), plural(told["stops_here"], "stop")
    within = " (what was left out is watched too)" if any(one.kind == "touched" for one in done.findings) else ""
    lines += [
        "moving / turning (starts, stops, reverses) / standing; felt from: a push that lasts (stiction hides some)",
        "",
        f"on the same {hours_text(told['hours_here'])}: {alarms}{within}, {stops} recognised; these logs set "
        "the thresholds, so that they are no judge of them",
    ]
    return "\n".join(lines)
