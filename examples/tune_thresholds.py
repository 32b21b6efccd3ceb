"""Thresholds for a promised rate of false alarms, learned from free motion that the model was not identified from.

    residual r = observer's estimate of the external torque; an alarm where |r_j| > threshold_j

What a model leaves of free motion is not white noise: friction warms up, gears turn, a payload differs. So thresholds
are learned per joint and per regime (moving, turning, standing) from the tail of what free motion leaves, and the rate
that little motion can promise is said, not more.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from identify_an_arm import free_motion

import tangere

RATE = "1/h"  # false alarms that are accepted


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tangere-"))
    identified = tangere.identify([free_motion(seed) for seed in (1, 2)], "ur10e", hold_out=0, inertial="none")
    free = [free_motion(seed) for seed in (3, 4)]
    tuned = tangere.tune(identified, free, rate=RATE)

    thresholds = tuned.thresholds
    assert thresholds is not None
    print(f"asked for {RATE}, {3600.0 * thresholds.hours:.0f} s of free motion promise {thresholds.rate:.3g} per hour")
    print("joint   level of an alarm while moving [Nm]: tuned   without free motion")
    wide = tangere.watch(free[0], model=identified).logs[0].belief.thresholds
    for j in range(6):
        print(f"{j + 1:5d}   {thresholds.level[0, j]:44.2f} {wide.level[0, j]:21.2f}")
    print(f"sensitivity gained: {np.median(wide.level[0] / thresholds.level[0]):.1f} times (median of the joints)")
    again = tangere.watch(free_motion(5), model=tuned)
    print(f"another {again.seconds:.0f} s of free motion: {len(again.alarms)} alarms, "
          f"largest score {np.nanmax(again.score):.2f} of 1")  # fmt: skip
    print(f"model: {tuned.save(folder / 'tuned.toml')}")
    print(f"page:  {tuned.report(folder / 'tuned.html')}")


if __name__ == "__main__":
    main()
