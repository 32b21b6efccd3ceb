"""The command that learns a model from logs: identify."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.apps.touch.options import arm_of, arm_options, sample_rate
from tangere.errors import InvalidValue
from tangere.report.terminal import Bar, paint, table, wants_colour
from tangere.settings import numbers

if TYPE_CHECKING:
    from tangere.identification.identify_logs import Identification

EXAMPLES = """examples:
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


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "identify",
        help="learn drives, friction, payload and links from logs: a model file and a report",
        description="Identify drive gains, friction, rotor inertia, payload or links of an arm from ordinary logs of\n"
        "free motion, judge the model on logs that were not used, and write a model file (TOML, accepted wherever a\n"
        "parameter set is) with a report beside it.",
        epilog=EXAMPLES,
    )
    p.add_argument("logs", nargs="+", metavar="LOG", help="FILE.csv, FILE.mcap, FILE.npz or FILE.npz:KEY-GLOB")
    arm_options(p)
    p.add_argument("--out", default="model.toml", metavar="FILE", help="the model file (default: model.toml)")
    p.add_argument("--rate", metavar="HZ", help="samples per second of data without stamps")
    p.add_argument("--gain", metavar="K1,..,K6", help="Nm per A of motor current, if you know better than log and arm")
    p.add_argument(
        "--holdout", metavar="SHARE|NAMES",
        help="share of the logs that only judge (default 0.25; 0: none), or names of logs with commas between",
    )  # fmt: skip
    p.add_argument(
        "--inertial", choices=("links", "payload", "none"), default="links",
        help="what else is identified beside the drives: all links (default), the payload, or nothing",
    )  # fmt: skip
    p.add_argument("--keep-gains", action="store_true", help="do not let gravity correct the gains of the joints")
    p.add_argument("--no-report", action="store_true", help="the model file only")
    p.set_defaults(run=identify)


def identify(arguments: argparse.Namespace) -> int:
    """Identify, write, and say what was found."""
    from tangere.identification.identify_logs import identification

    out = Path(arguments.out)
    if out.suffix != ".toml":
        raise InvalidValue(f"--out: a model file ends in .toml, got {arguments.out!r}")
    arm, _ = arm_of(arguments)
    gain = None if arguments.gain is None else numbers(arguments.gain, "--gain", "Nm/A", (1, arm.dof))
    bar = Bar()
    try:
        done = identification(
            arm, arguments.logs, columns=arguments.columns, rate=sample_rate(arguments.rate, "--rate"),
            gain=gain * arm.dof if gain is not None and len(gain) == 1 else gain,
            hold_out=arguments.holdout, inertial=arguments.inertial, refine_gains=not arguments.keep_gains,
            progress=bar,
        )  # fmt: skip
    finally:
        bar.end()
    done.model.write(out)
    print(summary(done, wants_colour()))
    print(f"\nmodel:  {out}")
    if not arguments.no_report:
        from tangere.apps.touch.page_identified import write_identified

        where = write_identified(done, out.with_suffix(".html"), "tangere " + " ".join(arguments.words))
        print(f"report: {where}")
    return 0


def summary(done: Identification, colour: bool = False) -> str:
    """What was found, for a terminal."""
    model, drive = done.model, done.model.drive
    seconds = sum(float(log.motion.time[-1] - log.motion.time[0]) for log in done.used)
    others = f"{len(done.judges)} that {'was' if len(done.judges) == 1 else 'were'} not used"
    judged = f"judged on {others}" if model.unseen else "judged on the same (none was held out)"
    logs = "1 log" if len(done.used) == 1 else f"{len(done.used)} logs"
    lines = [f"{model.name}: identified from {logs}, {seconds:.0f} s; {judged}"]
    lines += [paint("note: ", "bad", colour) + str(finding) for finding in model.findings[:12]]
    if len(model.findings) > 12:
        lines.append(f"note: and {len(model.findings) - 12} more, in the model file")
    rows = []
    for j in range(drive.dof):
        gain = "torque" if np.isnan(done.gain[j]) else f"{done.gain[j]:.3f} {done.source[j]}"
        kept = model.moved[j]
        rows.append((
            str(j + 1), gain, f"{model.scale[j]:.3f}", *(
                f"{value[j]:.3g}" if kept else "-"
                for value in (drive.coulomb, drive.viscous, drive.offset, drive.rotor_inertia, drive.stiction)
            ), _plain(model.before[j]), _plain(model.after[j]),
            _plain(model.following[j]),
            _plain(1e3 * done.twin["identified"].median[j], ".2g"),
        ))  # fmt: skip
    head = (
        "joint", "gain [Nm/A]", "x", "Coulomb", "viscous", "offset", "rotor [kg m2]", "stiction [Nm]",
        "rms before", "after [Nm]", "following", "twin [mrad]",
    )  # fmt: skip
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
    lines.append(
        "rms: momentum residual while the joint moves; following: less what the log had shown of its own friction by "
        "then\ntwin: error after 200 ms of free running with measured torque"
    )
    return "\n".join(lines)


def _plain(value: float, form: str = ".3g") -> str:
    return "-" if np.isnan(value) else format(value, form)
