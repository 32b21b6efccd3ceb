"""What happens when a live arm is touched: commands can be run, outputs do not flicker, failures are told at once."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tangere.apps.touch import alerts
from tangere.apps.touch.alerts import Alerts
from tangere.errors import InvalidValue, PlantLost
from tangere.rtde.client import Address
from tangere.types import Event


class Wire:
    """An output that notes what it was set to; broken: it cannot be set."""

    def __init__(self, broken: bool = False) -> None:
        self.levels: list[bool] = []
        self.fell = threading.Event()
        self.broken = broken

    def set(self, high: bool) -> None:
        if self.broken:
            raise PlantLost("gone")
        self.levels.append(high)
        if not high:
            self.fell.set()

    def close(self) -> None:
        pass


def event(phase: str, time: float = 1.0) -> Event:
    return replace(Event.sample(time, 2, np.ones(6)), phase=phase)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    made = Wire()
    monkeypatch.setattr(alerts, "_Output", lambda arm, number: made)
    return made


def test_two_touches_close_together_are_one_pulse(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who lets go swings the arm back: the output stays high from the first touch until LINGER after the last."""
    monkeypatch.setattr(alerts, "LINGER", 60.0)
    served = Alerts(None, Address("127.0.0.1"), 3)
    for phase in ("raised", "changed", "ended", "raised", "ended"):
        served.event(event(phase))
    assert served.close() == []
    assert wire.levels[-1] is False
    assert wire.levels.count(False) == 1


def test_the_output_falls_by_itself(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "LINGER", 0.05)
    served = Alerts(None, Address("127.0.0.1"), 3)
    served.event(event("raised"))
    served.event(event("ended"))
    assert wire.fell.wait(60.0)
    assert served.close() == []
    assert wire.levels == [True, False]


def test_a_failure_is_told_when_it_happens_first(wire: Wire) -> None:
    wire.broken = True
    told: list[str] = []
    served = Alerts("false", Address("127.0.0.1"), 3, told.append)
    for _ in range(3):
        served.event(event("raised"))
    counted = served.close()
    command, output = "times that --on-event ended with exit code 1", "times that the output could not be set: gone"
    assert sorted(told) == [command, output]
    assert sorted(counted) == [f"3 {text}" for text in sorted(told)]


def test_a_command_that_cannot_be_run_is_refused_at_once(tmp_path: Path) -> None:
    script = tmp_path / "alarm.sh"
    script.write_text("#!/bin/sh\ntrue\n")
    for command, said in (
        (str(tmp_path / "nothere.sh"), "there is no command"),
        (str(script), "chmod"),
        ("", "a command is needed"),
        ("'open", "quotation"),
    ):
        with pytest.raises(InvalidValue, match=said):
            Alerts(command, None, None)
    script.chmod(0o755)
    assert Alerts(str(script), None, None).close() == []
