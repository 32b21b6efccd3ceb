"""A scenario of one's own: settings with units, a motion, a figure of its own, and the page that every run gets.

A scenario is a group of settings that stands on RunSettings (a frozen dataclass, each field with unit, range and help),
a function that makes a motion of a world, and what it adds to the summary. Everything else (arm, plant, friction,
sensors, observer, detector, guard, log, page) is put together by `execute` as for the scenarios that ship; texts with
units are understood, and a value that cannot be is refused before anything moves.

Here one joint waves, and somebody takes the hand: what it felt at most is the scenario's own figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tangere.apps.scenarios.build import Built
from tangere.apps.scenarios.common import Findings, Motion, RunSettings, Scenario, World
from tangere.apps.scenarios.execute import execute
from tangere.apps.scenarios.hold import posture_setting
from tangere.errors import InvalidValue
from tangere.loop.result import RunResult
from tangere.planning.joint_motions import Sine
from tangere.planning.posture import posture
from tangere.settings import count, setting

OUT = Path("out") / "wave"


@dataclass(frozen=True)
class WaveSettings(RunSettings):
    """Which joint waves, how far and how fast."""

    q: tuple[float, ...] = posture_setting()
    joint: int = count(4, "that waves, counted from 1", low=1)
    swing: float = setting(0.3, "rad", "to each side", low=0.0, above=True, high=1.0)
    frequency: float = setting(0.5, "Hz", "of the wave", low=0.0, above=True)


def motion(world: World) -> Motion:
    """One joint swings, the others stand."""
    s = world.settings
    arm = world.believed
    trajectory = Sine(
        arm, posture(s.q, arm), s.swing, s.frequency, joints=(s.joint,), ramp=1.0, duration=s.duration
    )  # fmt: skip
    return Motion(trajectory, world.computed_torque(trajectory), settle=1.0)


def findings(built: Built, result: RunResult) -> Findings:
    """The largest residual of the joint that waves [Nm]."""
    felt = np.abs(result.log["residual"][:, built.settings.joint - 1])
    return Findings({"felt_most_nm": float(felt.max())})


WAVE = Scenario("wave", "one joint waves", WaveSettings, motion, findings=findings)


def main() -> None:
    told = {"plant": "rigid", "duration": "5 s", "swing": "20deg", "push": "joint=4,torque=8 Nm,start=3,duration=500ms"}
    done = execute(WAVE, told, out=OUT)
    s = done.built.settings
    print(f"joint {s.joint} waves by {s.swing:.4f} rad, {s.frequency:g} times a second")
    for event in done.summary["events"]:
        print(f"touch at {event['time_s']:.3f} s on joint {event['joint']}, {event['delay_ms']:.0f} ms after it began")
    print(f"felt at most {done.summary['felt_most_nm']:.2f} Nm")
    page = done.result.report(OUT / "report.html")
    print(f"page of {page.stat().st_size // 1000 * 1000} bytes: {page}")
    try:
        execute(WAVE, told | {"swing": "20"}, out=OUT)
    except InvalidValue as refused:
        print(f"refused: {refused}")


if __name__ == "__main__":
    main()
