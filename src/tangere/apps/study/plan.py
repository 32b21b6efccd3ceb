"""What a study may be told: in simulation, and on real logs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tangere.settings import check, count, numbers, other, setting, word

ALARM_RATE = 0.1  # 1/h: one false alarm in ten hours of work, what `tune` promises if nothing else is said
EVERY = 0.5  # s between injected steps: shorter than what is replayed for each, but every onset is judged by itself


def _step(given: Any, name: str) -> tuple[int, float]:
    """Joint (from 1) and torque [Nm]."""
    joint, torque = numbers(given, name, ",Nm", (2,))
    return int(joint), torque


@dataclass(frozen=True)
class Plan:
    """What a study simulates. Hashable and small: every process makes its arms from it."""

    robot: str = word("ur10e", "the arm", metavar="NAME|FILE")
    parameters: str | None = word(None, "another parameter set of the arm")
    trials: int = count(1000, "contacts, half of them with each model", low=1, high=10**7, metavar="N")
    seed: int = count(0, "of everything random", low=0, metavar="N")
    frequency: float = setting(500.0, "Hz", "samples per second", low=50.0, high=5000.0, metavar="HZ")
    noise: float = setting(1.0, "", "times the sensor noise of a real arm", low=0.0, high=100.0)
    mass: float = setting(1.1, "", "true masses of the wrong world against believed ones", low=0.1, high=10.0)
    friction: float = setting(1.1, "", "true friction of the wrong world against the believed", low=0.0, high=10.0)
    # the other contacts are a sixth to three times as strong
    force: float = setting(60.0, "N", "size of half of the contacts", low=1.0, high=1e4)
    free_minutes: float = setting(
        10.0, "min", "free motion that judges false alarms, in each world", low=0.1, high=1e5, option="minutes",
        metavar="MIN",
    )  # fmt: skip
    learn_minutes: float = setting(
        4.0, "min", "other free motion to learn thresholds from, in each world", low=0.1, high=1e4, option="learn",
        metavar="MIN",
    )  # fmt: skip
    alarm_rate: float = setting(
        ALARM_RATE, "1/h", "false alarms per hour that thresholds are learned for", low=1e-6, high=1e4, metavar="1/H"
    )
    step: tuple[int, float] = other((2, 20.0), "step whose delay is shown", _step, metavar="JOINT,NM")
    plant: str = word(
        "servo", "servo: follows its path exactly; rigid: closed loop, integrated, some 5 times slower",
        ("servo", "rigid"),
    )  # fmt: skip

    arm: str = ""  # of an arm from a file: the digest of its numbers, see world.with_arm

    def __post_init__(self) -> None:
        check(self)

    @property
    def told(self) -> dict[str, Any]:
        """The plan as data, for a manifest."""
        return {name: value for name, value in asdict(self).items() if value or name != "arm"}

    @property
    def off(self) -> str:
        """How wrong the wrong world's model is, in words."""
        return f"masses {100 * abs(self.mass - 1.0):.0f} % and friction {100 * abs(self.friction - 1.0):.0f} % off"


@dataclass(frozen=True)
class LogsPlan:
    """What a study of real logs may be told beside the logs and the arm."""

    model: str | None = word(None, "model file of identify or tune", metavar="FILE")
    folds: int | None = count(
        None, "identify and tune on the other K-1 parts; logs are dealt out in order of their names", low=0, metavar="K"
    )
    skip: str | None = word(None, "logs to leave out: names with commas between, globs allowed", metavar="NAMES")
    teach: str | None = word(
        None, "logs that only teach and may be touched or stopped: names with commas between, globs allowed",
        metavar="NAMES",
    )  # fmt: skip
    torque: tuple[float, ...] | None = setting(
        None, "Nm", "steps per joint (default: 5 % of the peak torque)", size=(), metavar="T1,..,T6"
    )
    columns: str | None = word(None, "columns of data without a header: t,q,qd,current,_:6", metavar="LIST")
    rate: float | None = setting(
        None, "Hz", "samples per second of data without stamps", low=0.0, above=True, metavar="HZ"
    )
    every: float = setting(EVERY, "s", "between injected steps", low=0.0, above=True, metavar="S")

    def __post_init__(self) -> None:
        check(self)
