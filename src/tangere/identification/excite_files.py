"""An exciting motion as a file: csv for whoever follows joint positions, URScript for a UR's own controller."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tangere.errors import InvalidValue
from tangere.logs.csv_log import write_csv
from tangere.logs.files import write_text
from tangere.logs.log import Log

if TYPE_CHECKING:
    from tangere.identification.excite import ExcitingMotion

APPROACH = (0.3, 0.5)  # [rad/s], [rad/s2] of the move to the start, which nobody has checked: slow enough to be stopped
FOLLOW = (0.1, 300)  # lookahead [s] and gain of servoj: UR's own defaults, the softest that its manual names as usual
HERALD = 2.0  # [s] to stand at the start: who records sees where it begins
ENDINGS = (".csv", ".script")


def save(motion: ExcitingMotion, path: str | os.PathLike[str]) -> Path:
    """Write FILE.csv or FILE.script; another ending is refused. Returns the path."""
    where = checked_path(path)
    if where.suffix == ".script":
        return write_text(where, script_text(motion))
    write_csv(Log({"time": motion.time, "q": motion.q, "qd": motion.qd, "qdd": motion.qdd}), where, names={"time": "t"})
    return where


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The path, if such a file can be written there."""
    where = Path(path)
    if where.suffix not in ENDINGS:
        raise InvalidValue(f"--out: a motion ends in {' or '.join(ENDINGS)}, got {os.fspath(path)!r}")
    if not where.parent.is_dir():
        raise InvalidValue(f"--out: there is no folder {where.parent}")
    return where


def script_text(motion: ExcitingMotion) -> str:
    """A program of URScript: slowly to the start, then move after move by servoj. Six joints are needed."""
    from tangere.identification.excite import PAUSE

    if motion.robot.dof != 6:
        raise InvalidValue(f"--out: URScript is for arms of six joints, {motion.robot.name} has {motion.robot.dof}")
    lookahead, gain = FOLLOW
    speed, acceleration = APPROACH
    cells = [f"a[{j}] + (b[{j}] - a[{j}]) * p + c[{j}] * e * sin(k[{j}] * w)" for j in range(6)]
    where = "the whole arm" if motion.whole else "wrist and tool"
    lines = [
        "def excitation():",
        f"  # {motion.robot.name}: {motion.seconds:.1f} s to identify the arm from, in {len(motion.moves)} moves;",
        f"  # {where} inside {motion.box}, by simple shapes of the links.",
        "  # The move to the start is checked by nobody: bring the arm near it first, and keep a hand on the stop.",
        "  # from a to b in so many seconds; each joint swings by c to the side of its way, k times",
        "  def go(a, b, c, k, duration):",
        "    t = 0.0",
        "    while t < duration:",
        "      s = t / duration",
        "      r = s * (1.0 - s)",
        "      p = s * s * s * (10.0 + s * (6.0 * s - 15.0))",
        "      e = 64.0 * r * r * r",
        "      w = 6.283185307179586 * s",
        "      servoj([" + ",\n              ".join(cells)
        + f"],\n             t=get_steptime(), lookahead_time={lookahead}, gain={gain})",
        "      t = t + get_steptime()",
        "    end",
        "    t = 0.0",
        f"    while t < {PAUSE:g}:",
        f"      servoj(b, t=get_steptime(), lookahead_time={lookahead}, gain={gain})",
        "      t = t + get_steptime()",
        "    end",
        "  end",
        "",
        f"  movej({_list(motion.moves[0].start)}, a={acceleration}, v={speed})",
        f"  sleep({HERALD})",
        '  textmsg("the motion begins")',
    ]  # fmt: skip
    for move in motion.moves:
        turns = "[" + ", ".join(str(int(turn)) for turn in move.turns) + "]"
        lines.append(
            f"  go({_list(move.start)}, {_list(move.end)}, {_list(move.swing)}, {turns}, {move.duration:.3f})"
        )
    lines += ["  stopj(2.0)", '  textmsg("the motion is over")', "end", ""]
    return "\n".join(lines)


def _list(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    return "[" + ", ".join(f"{value:.6f}" for value in values + 0.0) + "]"
