"""Settings of the simulated arm: options of the command and widgets of the page are made from them. Light to load."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from typing import Any

from tangere.settings import check, setting, word

CONTROLLERS = ("computed torque", "joint impedance", "cartesian impedance", "hand guiding")
MOTIONS = ("hold", "sine")
REACTIONS = ("none", "soft", "float", "retreat")
SCENES = ("none", "table", "wall", "hand", "ball")
PERIOD = 2e-3  # [s] 500 Hz, what a UR e-Series controls with


@dataclass(frozen=True)
class WorldSettings:
    """The simulated arm of the studio: every option is a widget of its page, too."""

    robot: str = word("ur10e", "arm: a name from `tangere models`, or a file", metavar="NAME|FILE")
    controller: str = word("computed torque", "what moves the arm", CONTROLLERS)
    motion: str = word("hold", "what it does by itself", MOTIONS)
    reaction: str = word("none", "what it does when it feels a touch", REACTIONS)
    kp: float = setting(100.0, "1/s2", "gain of computed torque", low=0.0, high=1e4)
    stiffness: float = setting(1.0, "", "of the impedance controllers, against their own", low=0.0, high=10.0)
    observer_gain: float = setting(50.0, "1/s", "K of the momentum observer", low=0.0, above=True, high=500.0)
    payload: float = setting(0.0, "kg", "mass at the flange", low=0.0, high=50.0)
    believed_payload: float = setting(0.0, "kg", "what controller and observer are told of it", low=0.0, high=50.0)
    friction: float = setting(0.0, "", "of the joints, against what is known of the drives", low=0.0, high=3.0)
    sensors: str = word("ideal", "noise and resolution of the measurements", ("ideal", "ur10e"))
    alarms: float = setting(
        0.0, "1/h", "false alarms that the detector promises, learned from free motion with noise; 0: no promise, "
        "thresholds from what is declared", low=0.0, high=1000.0,
    )  # fmt: skip
    scene: str = word("none", "what the arm can touch", SCENES)
    mass: float = setting(1.0, "", "masses of the arm against those believed", low=0.2, high=5.0)
    period: float = setting(PERIOD, "s", "control period", low=2e-4, high=2e-3)

    def __post_init__(self) -> None:
        check(self)

    def changed(self) -> dict[str, Any]:
        """Settings that are not the defaults."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}

    def command(self, between: str = " ") -> str:
        """The command line that opens the studio with these settings; between: what stands between its options."""
        words = ["tangere studio"]
        for name, value in self.changed().items():
            text = f"{value:g}" if isinstance(value, float) else str(value)
            words.append(f"--{name.replace('_', '-')} {shlex.quote(text)}")
        return between.join(words)

    def python(self) -> str:
        """The parts of the simulation as Python to copy."""
        told = "".join(f"\n    {name}={value!r}," for name, value in self.changed().items())
        told = f"{told}\n" if told else ""
        # lines of at most 35 letters, the width of the page's panel
        return f"""import tangere
from tangere.studio import (
    settings, world)

s = settings.WorldSettings({told})
w = world.built(s)
result = tangere.run(
    w.plant, w.controller,
    w.observer,
    detector=w.detector,
    reaction=w.reaction,
    trajectory=w.trajectory,
    start=w.start, until=10.0)"""
