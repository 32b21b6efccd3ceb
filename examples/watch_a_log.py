"""Find touches in a log, three ways: without any model, with an identified one, and line by line as it is written.

The log is a csv as a UR's RTDE client writes it; in it somebody pushes on joint 2 from 6 s on, for half a second.
Without a model friction is learned from the log itself, and the push still stands out. Which link was touched, and
where, follows from how the push is shared among the joints: tau_ext = J_link(point)^T force.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from identify_an_arm import free_motion

import tangere
from tangere.logs.csv_log import write_csv
from tangere.plants import Push

PUSH = Push(joint=2, torque=-40.0, start=6.0, duration=0.5)  # Nm, s


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tangere-"))
    path = folder / "log.csv"
    write_csv(free_motion(7, seconds=12.0, pushes=(PUSH,)), path)
    model = tangere.identify([free_motion(seed) for seed in (1, 2)], "ur10e", hold_out=0, inertial="none")

    plain = tangere.watch(path, "ur10e")
    known = tangere.watch(path, model=model)
    told: list[str] = []
    with path.open() as lines:  # anything that gives lines: a pipe, a socket, a file that is still being written
        stream = tangere.watch(lines, model=model, tell=lambda event: told.append(event.phase))

    print(f"{-PUSH.torque:g} Nm on joint {PUSH.joint} from {PUSH.start:g} s on")
    for name, watched in (("no model", plain), ("identified", known), ("line by line", stream)):
        for event in watched.alarms:
            late = 1e3 * (event.time_s - PUSH.start)
            print(f"{name:13s} {event.kind:9s} joint {event.joint} at {event.time_s:.3f} s ({late:.0f} ms after it "
                  f"began), {event.torque_nm:.1f} Nm, score {event.score:.1f}")  # fmt: skip
    print(f"phases that the stream told: {', '.join(told)}")
    print(f"largest score before the push: {np.nanmax(known.score[: round(PUSH.start / 0.004)]):.2f} of 1")
    log = tangere.read(path)
    print(f"picture: {log.plot('q', 'tau').save(folder / 'log.svg')}")
    print(f"page:    {known.report(folder / 'watched.html')}")


if __name__ == "__main__":
    main()
