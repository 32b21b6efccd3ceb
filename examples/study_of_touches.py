"""How well are touches found? Many simulated contacts, counted, with the interval that the count allows.

A study learns thresholds from free motion, then judges them on other motion: free motion counts false alarms, contacts
of known size, link and place count what was found, how late, and whether the right link was named. Everything is done
twice: with a model that is exact, and with masses and friction 10 % off. Rates have Wilson's 95 % interval

    (p + z^2/2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2/n),  z = 1.96

so that 20 of 20 does not read as certainty.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tangere.apps.study.page import write_studied
from tangere.apps.study.study import study
from tangere.apps.study.tables import false_alarms, found_rows
from tangere.apps.study.world import WORLDS, Plan

# small, so that it takes seconds: `tangere study` does a thousand contacts
PLAN = Plan(trials=16, free_minutes=0.2, learn_minutes=0.4, seed=3)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tangere-"))
    done = study(PLAN, workers=1)
    print(f"{len(done.touches)} contacts on a {PLAN.robot}, half of them with {PLAN.force:g} N")
    for world in WORLDS:
        alarms = false_alarms(done, world)
        print(f"model {world}: {alarms.count} false alarms in {60 * done.hours(world):.1f} min")
        for row in found_rows(done, world):
            if row.trials == 0:
                continue
            found = row.found_all
            print(f"   {row.size:5.0f} N: {row.trials:2d} contacts, {100 * found.value:4.0f} % found "
                  f"(95 %: {100 * found.low:.0f} to {100 * found.high:.0f} %)")  # fmt: skip
    print(f"page: {write_studied(done, folder / 'study.html')}")


if __name__ == "__main__":
    main()
