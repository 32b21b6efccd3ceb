"""Values that cross a folder border: what plants report, controllers answer, trajectories prescribe and runs record.

Signs as everywhere: M qdd + C qd + g + friction = tau + tau_ext; tau is the full joint torque including gravity,
tau_ext what the environment does to the robot; a wrench is (force, moment) of the environment ON the robot at the tcp,
base axes. SI and radians. Arrays in these values are not copied and must not be written to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class State:
    """What is known of the robot at one instant."""

    time: float  # s since the start of the run
    period: float  # s since the sample before (the nominal period at the first)
    q: Array  # (n,) measured
    qd: Array  # (n,) measured
    tau: Array  # (n,) torque that was applied since the sample before, as the hardware reports it (gravity included)
    wrench: Array | None = None  # (6,) measured at the tcp by a force sensor, where there is one
    tau_ext_hat: Array | None = None  # (n,) estimate of an observer, filled in by run
    qd_target: Array | None = None  # (n,) what the robot's own controller wanted, where it says so


@dataclass(frozen=True, slots=True)
class Reference:
    """Where the robot should be at one instant: in joints, and at the tcp where the trajectory has a path there."""

    q: Array  # (n,)
    qd: Array
    qdd: Array
    T: Array | None = None  # (4, 4) T_base_tcp
    v: Array | None = None  # (6,) linear and angular velocity of the tcp, base axes
    a: Array | None = None  # (6,)


@dataclass(frozen=True, slots=True)
class Command:
    """What a controller answers: full joint torques (gravity included), and a word if it had to intervene."""

    tau: Array  # (n,)
    note: str = ""  # "": all is well; else what was limited, held or ramped down, in a few words


@dataclass(frozen=True, slots=True)
class Truth:
    """What only a simulator knows: noise-free state and what really acted."""

    q: Array
    qd: Array
    tau_ext: Array  # (n,) joint torque of pushes and contacts
    T: Array  # (4, 4) true pose of the tcp
    wrench: Array  # (6,) true contact wrench at the tcp, base axes


@dataclass(frozen=True, slots=True)
class Contact:
    """A touch as an observer reports it; reactions are controllers that are given one."""

    time: float  # s, stamp of the sample that raised it
    joint: int  # counted from 1: the joint with the largest residual against its threshold
    residual: Array  # (n,) Nm at that sample
    link: int | None = None  # counted from 1; None: not known (see observe.isolation)
    point: Array | None = None  # (3,) m, where it was touched, in the link's own frame
    force: Array | None = None  # (3,) N of the environment on the robot, base axes


class Trajectory(Protocol):
    """A motion over time. `at` must be cheap: it is called every period."""

    @property
    def duration(self) -> float:
        """Seconds from start to rest (inf for one that goes on)."""

    def at(self, time: float) -> Reference:
        """The reference at that time; before 0 the start, after the duration the end, at rest."""


class Controller(Protocol):
    """start once, step every period, stop once. step never raises for a bad measurement: it holds or ramps down.

    It may also have `finished` (a run ends where it is true), `failed` (a sentence: why its task ended early, "" if it
    did not), `abort` (an exception that ends the run after a moment) and `columns()` (extra columns of the log, name ->
    number or array, the same names in every period).
    """

    def start(self, state: State) -> None:
        """Prepare; the robot may already move."""

    def step(self, state: State) -> Command:
        """The torque for the coming period."""

    def stop(self) -> None:
        """Release what was taken."""


class Observer(Protocol):
    """Estimates the external torque from what was applied and what moved."""

    def reset(self, state: State) -> None:
        """Forget everything; the state is the first sample."""

    def update(self, state: State) -> Array:
        """Estimate tau_ext (n,) from a new sample; state.tau is the torque held since the sample before."""


class Source(Protocol):
    """Where samples come from: a recording, a stream, a robot that is only listened to.

    It may also have `period` [s] (nominal) and `truth() -> Truth` (simulators).
    """

    dof: int

    def start(self) -> State:
        """The first sample."""

    def read(self) -> State | None:
        """The next sample; None: there are no more."""

    def close(self) -> None:
        """Release what was taken; may be called twice."""


class Plant(Protocol):
    """A source that also takes torques: a robot, simulated or real. Its `start` is `reset`, which places the robot.

    tau includes gravity. A plant whose hardware adds gravity or friction itself converts at its own border. Simulators
    also have `truth() -> Truth`; nothing may need it.
    """

    period: float  # s
    dof: int

    def reset(self, q: Array, qd: Array | None = None) -> State:
        """Place the robot (a simulator) or make ready (hardware); the first sample."""

    def read(self) -> State:
        """The newest sample."""

    def write(self, command: Command) -> None:
        """Apply the torque for one period; a simulator moves on by it."""

    def close(self) -> None:
        """Release what was taken; may be called twice."""
