"""A log format of one's own: a reader of twenty lines makes a Log, and everything else takes it.

Some logger wrote a line per sample: a stamp in microseconds, then `joint: position current` in degrees and ampere. A
Log is columns with known names in SI: time [s], q, qd [rad], [rad/s] and tau [Nm] or actual_current [A]. Velocities
that nobody recorded are differences of positions, taken in the middle: qd(t) = (q(t + h) - q(t - h)) / 2h.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import numpy as np
from identify_an_arm import free_motion

import tangere
from tangere.plants import Push

SAMPLE = re.compile(r"(\d+):\s*(\S+)\s+(\S+)")  # joint: position [deg] current [A]
PUSH = Push(joint=3, torque=-30.0, start=5.0, duration=0.5)  # Nm, s


def read_my_log(path: Path) -> tangere.Log:
    """The reader: a line that cannot be understood costs that line, and the log says so."""
    time, q, current, bad = [], [], [], 0
    for line in path.read_text().splitlines():
        stamp, _, rest = line.partition(" ")
        values = np.array(SAMPLE.findall(rest), dtype=float)
        if not stamp.isdigit() or values.shape != (6, 3):
            bad += 1
            continue
        time.append(1e-6 * int(stamp))
        q.append(np.radians(values[:, 1]))
        current.append(values[:, 2])
    qd = np.gradient(np.array(q), np.array(time), axis=0)
    problems = (f"{bad} lines could not be read",) if bad else ()
    columns = {"time": np.array(time), "q": np.array(q), "qd": qd, "actual_current": np.array(current)}
    return tangere.Log(columns, problems=problems)


def write_as_my_logger_does(log: tangere.Log, gain: np.ndarray, path: Path) -> None:
    """Stands for the logger: one broken line included."""
    lines = ["started"]
    for t, q, tau in zip(log.time, np.degrees(log["q"]), log["tau"], strict=True):
        cells = "  ".join(f"{j + 1}: {q[j]:.5f} {tau[j] / gain[j]:.4f}" for j in range(6))
        lines.append(f"{round(1e6 * t)} {cells}")
    path.write_text("\n".join(lines))


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tangere-"))
    robot = tangere.robot("ur10e")
    write_as_my_logger_does(free_motion(8, 10.0, (PUSH,)), robot.drives.gain, folder / "mine.log")

    log = read_my_log(folder / "mine.log")
    print(f"{log!r}: {', '.join(log.problems)}")
    watched = tangere.watch(log, robot)
    for event in watched.alarms:
        print(f"{event.kind} on joint {event.joint} at {event.time_s:.2f} s: {event.torque_nm:.0f} Nm; pushed with "
              f"{-PUSH.torque:g} Nm on joint {PUSH.joint} from {PUSH.start:g} s on")  # fmt: skip
    print(f"picture: {log.plot('q', 'actual_current').save(folder / 'mine.svg')}")
    print(f"page:    {watched.report(folder / 'mine.html')}")


if __name__ == "__main__":
    main()
