"""What detection reports: an event with its kind, from onset to end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tangere.types import Array, Contact

Kind = Literal["collision", "push", "payload", "drift", "stop", "fault", "wanted"]
KINDS: tuple[Kind, ...] = ("collision", "push", "payload", "drift", "stop", "fault", "wanted")
# Kinds that a reaction is told of. A payload that nobody announced and a faulty drive are as unexpected as a touch; a
# stop, a wanted contact and slow drift are not.
ALARMS: frozenset[Kind] = frozenset(("collision", "push", "payload", "fault"))


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
    confidence: float  # of `kind`, 0 to 1
    channel: str  # what raised it: level, change, impact or shock of that joint (Signals), or arm: all together
    end_s: float | None = None  # stamp of the sample that ended it
    alternatives: tuple[tuple[Kind, float], ...] = ()  # other kinds and their probability, likeliest first
    link: int | None = None  # counted from 1, from a probability of one half; None: not isolated, or cannot be told
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
    why_no_link: str = ""  # where none is named: "too weak", "ambiguous", "not one push", ... (ContactIsolator)

    @property
    def alarm(self) -> bool:
        """Whether a reaction should be told: not for stops, wanted contacts and drift."""
        return self.kind in ALARMS and not self.masked

    @property
    def force_n(self) -> float | None:
        """Size of the force [N], where it was isolated."""
        return None if self.force is None else float(np.linalg.norm(self.force))

    @property
    def contact(self) -> Contact:
        """As reactions are given it."""
        return Contact(self.time_s, self.joint, self.residual_nm)

    def record(self) -> dict[str, object]:
        """Plain numbers, lists and words, for one line of JSON."""
        return {
            "time_s": self.time_s, "onset_s": self.onset_s, "end_s": self.end_s, "kind": self.kind, "link": self.link,
            "joint": self.joint, "torque_nm": self.torque_nm, "residual_nm": self.residual_nm.tolist(),
            "force_n": self.force_n, "confidence": self.confidence, "alarm": self.alarm, "channel": self.channel,
            "alternatives": [[kind, p] for kind, p in self.alternatives],
            "link_probability": self.link_probability, "links": [[link, p] for link, p in self.links],
            "why_no_link": self.why_no_link,
            "force": None if self.force is None else self.force.tolist(),
            "point": None if self.point is None else self.point.tolist(), "mass_kg": self.mass_kg,
        }  # fmt: skip
