"""What the tests of URScript share: an arm that is where it shall be, and running a program on it."""

from __future__ import annotations

from functools import cache

import numpy as np

import tangere
from tangere.script.builtin import NEWEST, Version
from tangere.script.compiler import load
from tangere.script.host import FRAME, QuietHost
from tangere.script.machine import Machine
from tangere.types import State

GOAL = "[0.5, -1.2, 1.3, -1.6, -1.4, -0.4]"  # rad: another such posture, as a program writes it
START = np.array([0.1, -1.5, 1.6, -1.7, -1.5, 0.2])  # rad: elbow up, nothing singular


@cache
def arm() -> tangere.Robot:
    return tangere.robot("ur5e")


class Bench:
    """A machine whose arm follows perfectly: measured is what was wanted a frame before."""

    def __init__(self, text: str, *, version: Version = NEWEST, host: QuietHost | None = None, **more: object) -> None:
        self.host = QuietHost() if host is None else host
        self.machine = Machine(load(text, version), arm(), START, self.host, **more)  # type: ignore[arg-type]
        self.count = 0
        self.state = State(0.0, FRAME, START, np.zeros(6), arm().gravity_torque(START), np.zeros(6))
        self.setpoint = None
        self.targets: list[np.ndarray] = []

    def frame(self) -> None:
        self.setpoint = self.machine.frame(self.state)
        self.count += 1
        q, qd = self.setpoint.q, self.setpoint.qd
        self.targets.append(q)
        tau = arm().gravity_torque(q)
        self.state = State(self.count * FRAME, FRAME, q, qd, tau, self.state.wrench)

    def run(self, frames: int = 20_000) -> Bench:
        """Until it ends, or so many frames."""
        while self.machine.running and frames:
            self.frame()
            frames -= 1
        return self

    @property
    def said(self) -> list[str]:
        return [text for kind, text in self.host.said if kind == "text"]

    def __getitem__(self, name: str) -> object:
        return self.machine.value(name)


def outcome(text: str, **more: object) -> object:
    """The variable `x` of a program that ran to its end; "line N: ..." of one that failed."""
    bench = Bench(text, **more).run()  # type: ignore[arg-type]
    ended = bench.machine.ended
    assert ended is not None, "the program goes on and on"
    return bench["x"] if ended.how in ("finished", "halted") else f"line {ended.line}: {ended.message}"


def targets(bench: Bench) -> tuple[np.ndarray, np.ndarray]:
    """Target positions, start included, and their speeds by differences."""
    q = np.array([START, *bench.targets])
    return q, np.diff(q, axis=0) / FRAME


def places(bench: Bench) -> np.ndarray:
    return np.asarray(arm().pose(np.array(bench.targets))[:, :3, 3])


def done(text: str, **more: object) -> Bench:
    bench = Bench(text, **more).run()  # type: ignore[arg-type]
    ended = bench.machine.ended
    assert ended is not None
    assert not ended.failed, ended
    return bench
