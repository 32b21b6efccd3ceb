"""Values that cross a folder border: what plants report, controllers answer, trajectories prescribe and runs record.

Signs as everywhere: M qdd + C qd + g + friction = tau + tau_ext; tau is the full joint torque including gravity,
tau_ext what the environment does to the robot; a wrench is (force, moment) of the environment ON the robot at the tcp,
base axes. SI and radians. Arrays in these values are not copied and must not be written to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal, Protocol

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


Kind = Literal["collision", "push", "payload", "drift", "stop", "fault", "wanted", "unknown"]
KINDS: tuple[Kind, ...] = ("collision", "push", "payload", "drift", "stop", "fault", "wanted", "unknown")
# Kinds that a reaction is told of. A payload that nobody announced and a faulty drive are as unexpected as a touch, and
# so is what was not judged (unknown); a stop, a wanted contact and slow drift are not.
ALARMS: frozenset[Kind] = frozenset(("collision", "push", "payload", "fault", "unknown"))
# raised: by this sample; changed: it became an alarm only now; refined: judged or isolated again; ended; open: it lasts
# beyond the end of the log
Phase = Literal["raised", "changed", "refined", "ended", "open"]


@dataclass(frozen=True, slots=True)
class Event:
    """One event. Values of an open event (end_s None) are of its newest refinement; `number` stays the same."""

    number: int  # counted from 1 in the order in which they were raised
    time_s: float  # stamp of the sample that raised it
    onset_s: float  # estimated backwards: when it began
    kind: Kind
    joint: int  # counted from 1: the largest residual against its threshold
    torque_nm: float  # of that joint: what the event added, at `residual_s`
    residual_nm: Array  # (n,) what the event added to the residual: the mean before its onset is taken off
    residual_s: float  # stamp of the sample(s) that residual_nm belongs to; the longer after the onset the better
    confidence: float  # of `kind`, 0 to 1; 0 for one that was not judged
    channel: str  # what raised it: level, change, impact or shock of that joint (observe.detect.Signals), arm: all
    # joints together, residual: the residual itself against a constant
    end_s: float | None = None  # stamp of the sample that ended it
    alternatives: tuple[tuple[Kind, float], ...] = ()  # other kinds and their probability, likeliest first
    link: int | None = None  # counted from 1, likelier than all else together; None: not isolated, or cannot be told
    link_probability: float = 0.0
    links: tuple[tuple[int | None, float], ...] = ()  # other links (all, where none is named); None: "not one push"
    point: Array | None = None  # (3,) m in the link's frame
    force: Array | None = None  # (3,) N, base axes, on the robot
    isolated_s: float | None = None  # stamp of the residual that link, point and force come from
    rise_s: float = 0.0  # from onset to nine tenths of the largest residual so far
    peak_nm: Array = field(default_factory=lambda: np.zeros(0))  # (n,) residual at its largest
    mass_kg: float | None = None  # of the payload that would explain it, where that was fitted
    first_kind: Kind | None = None  # the guess at the sample that raised it; None: nothing was changed since
    masked: bool = False  # expected: a stop, a wanted contact, a payload change that was announced
    why_no_link: str = ""  # where none is named: "too weak", "ambiguous", "not one push", "stronger than a hand"
    score: float = 1.0  # the largest signal against its threshold so far; 1 is an alarm
    impulse: Array | None = None  # (3,) N s, base axes, on the robot: of an event that was isolated and has ended,
    # force times the integral of the residual along the one that was isolated, over that one's size
    reason: str = ""  # why it was raised, in a sentence: joint and channel, times its threshold, how fast
    phase: Phase = "raised"
    torque_interval_nm: tuple[float, float] | None = None  # that holds torque_nm with 95 %; None: not known
    force_interval_n: tuple[float, float] | None = None  # the same of the force's size
    mass_interval_kg: tuple[float, float] | None = None  # the same of mass_kg, of a payload that was named
    com: Array | None = None  # (3,) m in flange axes, of that payload
    point_spread_m: float | None = None  # m, expected distance of the true point from `point`

    @classmethod
    def sample(cls, time: float, joint: int, residual: Array, number: int = 1, **more: Any) -> Event:
        """A touch of which no more is known than the residual (n,) [Nm] of the sample that raised it.

        time [s], joint: counted from 1. more: any other field.
        """
        known: dict[str, Any] = {
            "onset_s": time, "kind": "unknown", "torque_nm": float(residual[joint - 1]), "residual_nm": residual,
            "residual_s": time, "confidence": 0.0, "channel": "residual", "peak_nm": residual,
        }  # fmt: skip
        return cls(number=number, time_s=time, joint=joint, **(known | more))

    @property
    def alarm(self) -> bool:
        """Whether a reaction should be told: not for stops, wanted contacts and drift."""
        return self.kind in ALARMS and not self.masked

    @property
    def name(self) -> str:
        """Its kind as people read it in a sentence."""
        return "touch (kind not known)" if self.kind == "unknown" else self.kind

    @property
    def begins(self) -> bool:
        """Whether it is told of for the first time: raised, or changed into an alarm; else it is known already."""
        return self.phase in ("raised", "changed")

    @property
    def force_n(self) -> float | None:
        """Size of the force [N], where it was isolated."""
        return None if self.force is None else float(np.linalg.norm(self.force))

    def _repr_html_(self) -> str:
        """What is known of it as a small table for a notebook; what is not known is left out."""
        known = {key: value for key, value in self.record().items() if value not in (None, [], "")}
        rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(_shown(v))}</td></tr>" for k, v in known.items())
        return f"<table>{rows}</table>"

    def record(self) -> dict[str, object]:
        """Plain numbers, lists and words, for one line of JSON."""
        return {name: _listed(getattr(self, name)) for name in _RECORDED}


# keys of an event as JSON has it, in their order
_RECORDED = (
    "time_s", "onset_s", "end_s", "kind", "link", "joint", "torque_nm", "residual_nm", "force_n", "confidence", "alarm",
    "channel", "alternatives", "link_probability", "links", "why_no_link", "force", "point", "mass_kg", "score",
    "reason", "phase", "impulse", "torque_interval_nm", "force_interval_n",
    "mass_interval_kg", "com", "point_spread_m", "first_kind",
)  # fmt: skip


def _listed(value: Any) -> Any:
    """Arrays and tuples as lists, whatever is in them."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_listed(entry) for entry in value] if isinstance(value, tuple) else value


def _shown(value: object) -> str:
    """A number with four digits; lists of them with spaces between; words as they are."""
    if isinstance(value, list | tuple):
        return "  ".join(_shown(entry) for entry in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class Trajectory(Protocol):
    """A motion over time. `at` must be cheap: it is called every period."""

    @property
    def duration(self) -> float:
        """Seconds from start to rest (inf for one that goes on)."""

    def at(self, time: float) -> Reference:
        """The reference at that time; before 0 the start, after the duration the end, at rest."""


class Friction(Protocol):
    """A friction law: dynamics.friction.JointFriction, a DriveModel, or one's own.

    Observers use the whole law of one that also has `friction(q, qd, gravity_torque)`, as a DriveModel has, and its
    `delay`.
    """

    def torque(self, qd: Array, /) -> Array:
        """Torque (n,) [Nm] that opposes the motion qd (n,) [rad/s]: M qdd + C qd + g + friction = tau + tau_ext."""


class Controller(Protocol):
    """start once, step every period, stop once. step never raises for a bad measurement: it holds or ramps down.

    It may also have `finished` (a run ends where it is true), `failed` (a sentence: why its task ended early, "" if it
    did not), `abort` (an exception that ends the run after a moment), `columns()` (extra columns of the log, name ->
    number or array, the same names in every period) and `said()` (sentences since the last period, for the log).
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


class Detector(Protocol):
    """Turns a residual into events, one sample at a time, such as observe.detect.Detector. Not a safety function."""

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event so far in its newest form; the last has end_s None while it lasts."""

    @property
    def score(self) -> float:
        """The largest signal against its threshold at the newest sample; above 1 an event is raised."""

    @property
    def touching(self) -> bool:
        """Whether an event that alarms is going on."""

    def update(self, state: State, residual: Array) -> Event | None:
        """The event that this sample raises, or that it turns into an alarm; else None. residual (n,) [Nm]."""

    def reset(self) -> None:
        """Forget every event and sample."""


class Reaction(Protocol):
    """Who wants to know of a touch; mostly the controller itself, or one inside it."""

    def on_event(self, event: Event) -> None:
        """Called in the loop, before the controller's step of the same sample; the same event comes again refined."""


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
