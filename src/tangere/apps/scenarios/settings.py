"""What every scenario can be told. Light: the command line makes its options of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tangere.errors import InvalidValue
from tangere.settings import check, count, flag, other, setting, word

if TYPE_CHECKING:
    from tangere.plants.pushes import Push, PushForce

# samples of the longest run: each takes some 0.8 kB in memory until the report is written; 1.4 h at 1 kHz
LONGEST = 5_000_000


def _pushes(given: Any, name: str) -> tuple[Push | PushForce, ...]:
    from tangere.plants.pushes import pushes_of

    return pushes_of(given)


def _records(pushes: Any) -> list[dict[str, Any]]:
    from tangere.plants.pushes import push_record

    return [push_record(push) for push in pushes]


@dataclass(frozen=True)
class RunSettings:
    """What every scenario can be told."""

    robot: str = word("ur10e", "arm: a name from `tangere models`, or a file", metavar="NAME|FILE")
    parameters: str | None = word(None, "parameter set of the simulated arm")
    model: str | None = word(
        None, "what controller and observer believe: a parameter set, or a model file of identify or tune",
        metavar="NAME|FILE",
    )  # fmt: skip
    path_by: str = word("model", "whose lengths turn the path into joint positions", ("model", "plant"))
    plant: str = word("mujoco", "what is simulated with", ("mujoco", "rigid"))
    # beyond 20 ms no arm is controlled by torque; below 0.1 ms no controller keeps up
    period: float = setting(1e-3, "s", "control period", low=0.0, above=True, usual=(1e-4, 0.02))
    duration: float | None = setting(10.0, "s", "length of the run")
    seed: int = count(0, "of everything random", low=0, metavar="N")
    drives: bool = flag(True, "rotor inertia of the arm's drives, where it is known, in plant and model")
    friction: str = word("none", "of the plant's joints", ("none", "viscous", "full", "stiction"))
    friction_model: str = word("same", "what the controller compensates", ("same", "none"))
    mass: float = setting(1.0, "", "masses and inertias of the plant against the model, as a factor")
    payload: float | None = setting(None, "kg", "mass at the plant's flange that the controller does not know")
    sensors: str = word("ideal", "noise and resolution of the measurements", ("ideal", "ur10e"))
    # poles at -sqrt(kp): 1e5 is one period of 3 ms, faster than any drive; below 1 a joint takes seconds
    kp: float = setting(100.0, "1/s2", "gain of computed torque and operational space", usual=(1.0, 1e5))
    observer_gain: float = setting(50.0, "1/s", "K of the momentum observer")
    threshold: tuple[float, ...] | None = setting(
        None, "Nm", "residual that counts as a touch, one or one per joint; else from sensors and uncertainty", size=()
    )  # fmt: skip
    uncertainty_mass: float = setting(0.05, "", "of the believed masses, as a share: detection allows for it")
    uncertainty_friction: float = setting(0.2, "", "of the believed friction, as a share: detection allows for it")
    acceleration_residual: bool = flag(
        False, "also the residual from differentiated velocities (000 section 5.1)"
    )  # fmt: skip
    push: tuple[Push | PushForce, ...] = other(
        (), "what pushes the arm, and when; none: nothing", _pushes,
        plain=_records, metavar="joint=2,torque=20,start=3,duration=2",
    )  # fmt: skip

    def __post_init__(self) -> None:
        check(self)
        possible_time("duration", self.duration, self.period)


def possible_time(name: str, time: float | None, period: float) -> None:
    """Refuse a time [s] that no run can have, before anything is computed with it."""
    if time is not None and not period <= time <= LONGEST * period:
        valid = f"{period:g} to {LONGEST * period:g} s with a period of {period:g} s"
        raise InvalidValue(f"{name}: {valid}, got {time:g} s")
