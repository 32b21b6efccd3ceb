"""The command that learns thresholds from free motion: tune."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.apps.touch import options
from tangere.errors import InvalidValue
from tangere.report.terminal import Bar, table

if TYPE_CHECKING:
    from tangere.loop.tuning import Tuned

EXAMPLES = """examples:
  tangere tune free_*.csv --robot ur5e --model model.toml --rate 0.1/h --out tuned.toml
                                            one false alarm in ten hours; also 1/day, 0.5/min
  tangere tune 'runs.npz:*' --robot ur3e --model model.toml --rate 0.1/h --sample-rate 500 --out tuned.toml
                                            arrays without stamps: 500 samples per second (--rate 500Hz says the same)

What helps: free motion as it will be at work - speeds, payload, a warm and a cold arm - that the model was not
identified from; hours of it. From little motion a lower rate cannot be promised: what can be is said. What clearly
looks touched is left out and said."""

_NOTES = 8  # doubts that are told one by one
_RATE = re.compile(r"([0-9.eE+-]+)\s*(?:(?:/|per)\s*)(s|sec|min|h|hr|hour|d|day|week)")
_PER_HOUR = {
    "s": 3600.0, "sec": 3600.0, "min": 60.0, "h": 1.0, "hr": 1.0, "hour": 1.0, "d": 1 / 24, "day": 1 / 24,
    "week": 1 / 168,
}  # fmt: skip


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "tune",
        help="learn thresholds for a promised rate of false alarms from free motion",
        description="Learn the thresholds of detection from logs of free motion, for a promised rate of false alarms,\n"
        "and write the model with them to a new file, which `tangere watch --model` takes.",
        epilog=EXAMPLES,
    )
    p.add_argument("logs", nargs="+", metavar="LOG", help="FILE.csv, FILE.mcap, FILE.npz or FILE.npz:KEY-GLOB")
    options.arm_options(p)
    p.add_argument("--model", required=True, metavar="FILE", help="the model file that `tangere identify` wrote")
    p.add_argument(
        "--rate", action="append", default=[], metavar="R/h",
        help="false alarms that are accepted: 0.1/h (default), 1/day, 0.5/min; a number without / or with Hz is the "
        "sample rate, as in identify and watch",
    )  # fmt: skip
    p.add_argument("--sample-rate", metavar="HZ", help="samples per second of data without stamps")
    p.add_argument("--out", default="tuned.toml", metavar="FILE", help="the tuned model file (default: tuned.toml)")
    p.add_argument("--report", metavar="FILE", help="a page with the residuals of these logs and the thresholds (HTML)")
    p.set_defaults(run=tune)


def rates(words: list[str], sampling: str | None) -> tuple[float, float | None]:
    """False alarms per hour and samples per second from tune's --rate (any number of them) and --sample-rate."""
    from tangere.observe.detect import RATE

    alarms, hertz = RATE, options.sample_rate(sampling, "--sample-rate")
    for word in words:
        if found := _RATE.fullmatch(word.strip()):
            alarms = float(found[1]) * _PER_HOUR[found[2]]
            if not (np.isfinite(alarms) and alarms > 0.0):
                raise InvalidValue(f"--rate: false alarms above zero, such as 0.1/h, got {word!r}")
            continue
        if "/" in word:
            raise InvalidValue(f"--rate: false alarms as NUMBER/h, /min or /day, got {word!r}")
        told = options.sample_rate(word, "--rate")
        # slower than two samples per second is no recording of an arm: who types 0.1 means false alarms
        if told is not None and told < 2.0 and "hz" not in word.lower():
            raise InvalidValue(f"--rate {word}: say {word}/h for false alarms per hour, or {word}Hz for a sample rate")
        hertz = told
    return alarms, hertz


def tune(arguments: argparse.Namespace) -> int:
    """Learn thresholds, write them, and say what they promise."""
    from tangere.identification.belief import belief, read
    from tangere.logs.recordings import recordings
    from tangere.loop.tuning import tuning

    out = Path(arguments.out)
    if out.suffix != ".toml":
        raise InvalidValue(f"--out: a model file ends in .toml, got {arguments.out!r}")
    alarms, hertz = rates(arguments.rate, arguments.sample_rate)
    arm, payload = options.arm_of(arguments)
    model = options.model_of(arguments, arm, thresholds=False)
    believed = belief(arm, model, payload=payload)
    bar = Bar()
    logs = []
    try:
        for k, source in enumerate(arguments.logs):
            bar(f"reading {source}", 0.3 * k / len(arguments.logs))
            logs += [read(r, arm, model, payload) for r in recordings(source, columns=arguments.columns, rate=hertz)]
        done = tuning(arm, logs, believed, alarms, progress=lambda share: bar("learning thresholds", 0.3 + 0.7 * share))
    finally:
        bar.end()
    for log in logs:
        options.tell(log.name, log.problems)
    for text in done.doubts[:_NOTES]:
        options.note(text)
    if len(done.doubts) > _NOTES:
        options.note(f"and {len(done.doubts) - _NOTES} more of the kind")
    done.model.write(out)
    print(promise(done, alarms))
    print(f"\nmodel:  {out}")
    if arguments.report:
        from tangere.apps.touch.page_watched import write_watched

        where = write_watched(done.logs, arguments.report, "tangere " + " ".join(arguments.words))
        print(f"report: {where}")
    return 0


def promise(done: Tuned, asked: float) -> str:
    """Thresholds and what they promise, for a terminal."""
    t = done.thresholds
    of = options.extrapolated(t, f"{options.hours_text(t.hours)} of free motion")
    lines = [f"{done.model.name}: thresholds for {t.rate:.3g} false alarms per hour, {of}"]
    if t.rate > 1.001 * asked:
        lines[0] += f" ({asked:.3g}/h was asked for)"
    lines += [*t.notes, ""]
    rows = [
        (str(j + 1), *(" / ".join(f"{rows[g, j]:.3g}" for g in range(3)) for rows in (t.level, t.change, t.impact)))
        for j in range(t.dof)
    ]
    lines += table(rows, ("joint", "level [Nm]", "change [Nm]", "impact [Nm]"), "rrrr", indent=0)
    found = sum(len(seen.alarms) for seen in done.logs)
    stops = sum(event.kind == "stop" for seen in done.logs for event in seen.events)
    hours = sum(seen.seconds for seen in done.logs) / 3600.0
    within = " (what was left out is watched too)" if any("left out" in text for text in done.doubts) else ""
    lines += [
        "moving / turning (starts, stops, reverses) / standing",
        "",
        f"on the same {options.hours_text(hours)}: {found} alarms{within}, {stops} stops recognised; these logs set "
        "the thresholds, so that they are no judge of them",
    ]
    return "\n".join(lines)
