"""The command that plans the motion worth recording, and says beforehand what will be identified from it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.apps.touch.options import RecordedArm, arm_of, note
from tangere.options import add_json, add_options, group_from
from tangere.report.terminal import Bar, filled, show, table, terminal_width
from tangere.settings import USUAL_LENGTHS, count, doubts, setting, word

if TYPE_CHECKING:
    from tangere.identification.excite import ExcitingMotion

EXAMPLES = """examples:
  tangere excite --robot ur5e --box -0.6,-0.6,0.05,0.6,0.6,1.2 --out excitation.script
                                            60 s in that box, as a program for the arm's own controller
  tangere excite --robot ur10e --seconds 90 --seed 3 --out excitation.csv
                                            all on the arm's side of its mounting: t, q, qd, qdd every 2 ms
  tangere script run excitation.script --robot ur5e
                                            look at it on a simulated arm first
  tangere record 192.168.0.10 --robot ur5e --seconds 80 --out free.csv
                                            record it while the program runs, for tangere identify

The box is x, y, z of two opposite corners in the axes of the arm's base: free space for the whole arm beyond its first
link (where the shoulder itself is outside it: for wrist and tool). Links are simple shapes with 5 cm around them: look
at the simulated run, let the first real one go slowly, and keep a hand on the stop."""
_TERMS = (("coulomb", "Coulomb [Nm]"), ("viscous", "viscous [Nm s/rad]"), ("rotor_inertia", "rotor [kg m2]"))


@dataclass(frozen=True)
class Wanted:
    """What motion is wanted, and where it may be."""

    box: tuple[float, ...] | None = setting(
        None, "m",
        "free space: two opposite corners in base axes, a unit at the end (1400mm) holds for all; none: all on the "
        "arm's side of its mounting",
        size=(6,), metavar="X,Y,Z,X,Y,Z", usual=(-10.0, 10.0),
    )  # fmt: skip
    seconds: float = setting(60.0, "s", "length of the motion", low=5.0, high=3600.0)
    seed: int = count(0, "another number, another motion", low=0, metavar="N")
    start: tuple[float, ...] | None = setting(
        None, "rad", "posture to begin at, in degrees; none: one is chosen", typed="deg", size=(), metavar="J1,..,J6"
    )
    speed: float = setting(0.6, "", "share of the joints' top speed", low=0.0, high=1.0, above=True)
    tool_speed: float = setting(1.0, "m/s", "most speed of tool and elbow", low=0.0, high=10.0, above=True)
    tool: float = setting(
        0.1, "m", "length of what is mounted, from the flange", low=0.0, high=2.0, usual=USUAL_LENGTHS
    )
    out: str = word("excitation.csv", "FILE.csv (t, q, qd, qdd) or FILE.script (URScript)", metavar="FILE")


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "excite",
        help="plan the motion worth recording for identify, in a box of free space",
        description="Plan a motion that tells most of an arm's links, rotors and friction, within joint limits and a\n"
        "box of free space, and say what it will identify, before anybody moves an arm. Nothing moves here.",
        epilog=EXAMPLES,
    )
    add_options(p, RecordedArm, ("robot",))
    add_options(p, Wanted)
    add_options(p, RecordedArm, ("payload", "gravity"))
    p.add_argument("--no-report", action="store_true", help="the motion only, without a page beside it")
    add_json(p)
    p.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Plan, write, and say what it is worth."""
    from tangere.identification.excite import excite
    from tangere.identification.excite_files import checked_path

    wanted = group_from(Wanted, arguments)
    for text in doubts(wanted, {name: value for name, value in vars(arguments).items() if value is not None}):
        note(text)
    out = checked_path(wanted.out)
    arm, _ = arm_of(arguments)
    with Bar() as bar:
        motion = excite(
            arm, wanted.box, seconds=wanted.seconds, seed=wanted.seed, start=wanted.start, speed=wanted.speed,
            tool_speed=wanted.tool_speed, tool=wanted.tool, progress=lambda share: bar("planning", share),
        )  # fmt: skip
    motion.save(out)
    where = None
    if not arguments.no_report:
        from tangere.apps.touch.page_excited import write_excited

        where = write_excited(motion, out.with_suffix(".html"), "tangere " + " ".join(arguments.words))
    text = summary(motion) + f"\n\nmotion: {out}" + ("" if where is None else f"\nreport: {where}")
    show(figures(motion) | {"motion": out, "report": where}, text, arguments.json)
    return 0


def figures(motion: ExcitingMotion) -> dict[str, Any]:
    """What was planned and what it will identify: SI units and radians."""
    said = motion.forecast
    friction = {
        name: {"expected": value, "sigma_before": before, "sigma": after}
        for name, (value, before, after) in said.friction.items()
    }
    return {
        "robot": motion.robot.name, "seconds": motion.seconds, "seed": motion.seed, "moves": len(motion.moves),
        "box_low_m": motion.box.low, "box_high_m": motion.box.high, "whole_arm_in_box": motion.whole,
        "start_rad": motion.moves[0].start, "qd_max": np.abs(motion.qd).max(axis=0),
        "qdd_max": np.abs(motion.qdd).max(axis=0), "base_parameters": len(said.base), "told": said.told,
        "condition": said.excitation.condition, "friction": friction,
        "parameters": [
            {"name": one.name, "combination": one.combination, "unit": one.unit, "value": one.value,
             "sigma_before": one.before, "sigma": one.after, "told": one.told}
            for one in said.base
        ],
    }  # fmt: skip


def summary(motion: ExcitingMotion) -> str:
    """The same for a terminal."""
    said = motion.forecast
    where = "the whole arm stays" if motion.whole else "the shoulder is outside it, wrist and tool stay"
    lines = [
        f"{motion.robot.name}: {motion.seconds:.1f} s in {len(motion.moves)} moves, at most "
        f"{np.abs(motion.qd).max():.2f} rad/s and {np.abs(motion.qdd).max():.2f} rad/s2",
        f"box: {motion.box}: {where} in it",
        "start: " + ", ".join(f"{angle:.1f}" for angle in np.rad2deg(motion.moves[0].start)) + " deg",
        "",
        filled("what identify will know of the drives, if they are as those of such an arm: expected value +- one "
               "standard deviation, before (data sheet and other arms) and after the motion", terminal_width() or 110),
    ]
    rows = []
    for j in range(motion.robot.dof):
        terms = (said.friction[name] for name, _ in _TERMS)
        rows.append((
            str(j + 1), *(f"{value[j]:.3g} +- {before[j]:.2g} -> {after[j]:.2g}" for value, before, after in terms)
        ))  # fmt: skip
    lines += [*table(rows, ("joint", *(title for _, title in _TERMS)), "rrrr", indent=0), ""]
    lines.append(filled(
        f"base parameters (combinations of masses, first moments and inertias that joints can feel): {said.told} of "
        f"{len(said.base)} will be told better than by the data sheet", terminal_width(),
    ))  # fmt: skip
    rows = [
        (one.name, f"{one.value + 0.0:.3g}", f"{one.before:.2g}", f"{one.after:.2g}", one.unit)
        for one in said.base if one.told
    ]  # fmt: skip
    head = ("named by its first term", "data sheet", "+- before", "+- after", "")
    lines += table(rows, head, "lrrrl", indent=0)
    kept = ", ".join(one.name for one in said.base if not one.told)
    if kept:
        lines.append(filled(f"these keep the data sheet's number: {kept}", terminal_width()))
    return "\n".join(lines)
