"""Judging an event again: what it added to the residual and how well that is known, kind, payload, and with an isolator
link, point and force.

Takes 1 to 20 ms and more, and so has no place in a control period: a Detector hands out Evidence, whoever has the time
makes Gathered of it, and a Refiner the event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tangere.kernels.laws.detection import CHANNELS, LEVEL
from tangere.observe.detect.classify import History, judged
from tangere.observe.detect.past import Part, Samples
from tangere.observe.isolation import Candidate, ContactIsolator, Isolation
from tangere.observe.isolation_added import Added
from tangere.observe.isolation_added import added as what_was_added
from tangere.robots import Robot
from tangere.types import Array, Event

PLATEAU = 0.04  # s over which a residual is averaged for isolation: two time constants of the observer
# rad/s below which friction is not what the model says: gears stick, and a push turns a slow joint round, which turns
# its friction round. The standstill speed; wider (0.03, 0.05) gave away more joints than it saved in simulation.
SLOW_SPEED = 0.02
STICKS = 0.15  # s after a slow moment in which that is still so: as long as a joint counts as turning
# of the stiction, standard deviation: friction is anywhere within its half width, 1 / sqrt 3
HIDDEN = 0.6
# times the spread of the change in free motion: on motion that the thresholds were not learned from (simulated UR10e:
# median error 1.2 to 2 of these spreads)
UNSEEN = 1.5
AGE = 0.5  # s after the onset in which the variance against the mean before doubles: twice the time it was learned over
GAIN_ERROR = 0.07  # of a torque: what drive gains and gear efficiency make uncertain in what was added


@dataclass(frozen=True)
class Felt:
    """What was added (n,) [Nm] as a mean over PLATEAU around row `at`, its variances (n,) [Nm2], and when [s]."""

    added: Array
    variance: Array
    at: int
    time: float


def felt(time: Array, added: Array, qd: Array, spread: Array, stiction: Array) -> Felt:
    """The moment of an event at which the residual says most against what is not known of it.

        variance_j = (UNSEEN spread_j)^2 (1 + age / AGE) + (GAIN_ERROR added_j)^2 + slow_j (HIDDEN stiction_j)^2
        at = argmax sum_j added_j^2 / variance_j

    A joint that stands, turns round or creeps (slow_j towards 1) hides up to its stiction; the largest residual of an
    event is often such a joint that sticks, after what touched the arm has gone. time (m,) from the onset on, added
    (m, n): mean before taken off, qd (m, n). Chosen on simulated logs of a UR10e with friction, model error and noise
    as recorded.
    """
    m = len(time)
    stuck = sticking(time, qd)
    low, high = (np.searchsorted(time, time + side * 0.5 * PLATEAU + 1e-9) for side in (-1.0, 1.0))
    total = np.concatenate((np.zeros((1, added.shape[1])), np.cumsum(added, axis=0)))
    low, high = np.minimum(low, np.arange(m)), np.maximum(high, np.arange(m) + 1)
    mean = (total[high] - total[low]) / (high - low)[:, None]
    older = 1.0 + (time - time[0]) / AGE
    variance = np.outer(older, (UNSEEN * spread) ** 2) + (GAIN_ERROR * mean) ** 2 + stuck * (HIDDEN * stiction) ** 2
    at = int(np.argmax(np.sum(mean * mean / variance, axis=1)))
    return Felt(mean[at], variance[at], at, float(time[low[at] : high[at]].mean()))


def sticking(time: Array, qd: Array) -> Array:
    """How far the friction of each joint is not what the model says (m, n), 0 to 1: it stands, creeps or has turned."""
    slow = np.exp(-((qd / SLOW_SPEED) ** 2))
    turned = np.sign(qd[1:]) != np.sign(qd[:-1])  # between two samples that were both fast
    slow[1:][turned] = 1.0
    # the largest since `first`, of each row: windows of 1, 2, 4, ... rows, two of which cover any other
    first, rows = np.searchsorted(time, time - STICKS), np.arange(len(time))
    out, length, top = slow.copy(), 1, slow
    widths = rows - first + 1
    while length <= int(widths.max()):
        mine = (widths >= length) & (widths < 2 * length)
        out[mine] = np.maximum(top[rows[mine]], top[first[mine] + length - 1])
        top = np.concatenate((top[:length], np.maximum(top[length:], top[:-length])))
        length *= 2
    return np.asarray(out)


# Probability from which an event names its link: more likely than all else together. An isolator's own limit asks for
# near certainty, which a log with friction and model error seldom gives; the probability stands beside the name.
# Simulated logs of a UR10e: 0.72 of all contacts named, 0.83 of these right; on three other arms 0.79 and 0.74
NAMED = 0.5
# [N] that no hand holds: two arms push some 250 N. An obstacle may have it, but then joints feel much of it
STRONGEST = 250.0
HELD = 0.05  # [s] over which that is a mean: for some milliseconds an impact has more
# [m] torque against force below which nearly all of the force passes through the axes: it is inferred, not felt. The
# housing of a shoulder has less, everything beyond the elbow mostly more
LEVER = 0.15
FELT_BY = 3  # joints from which on a link's force is felt rather than inferred: a tool on a table may have any force
INTERVAL = 1.96  # standard deviations either side that hold 95 % of a normal distribution


@dataclass(frozen=True, slots=True)
class Gathered:
    """What an event is judged from."""

    event: Event  # as it is known so far
    baseline: Array  # (n,) Nm, the residual's mean before the onset
    noise: Array  # (n,) Nm, standard deviation of the residual
    score: float  # largest so far
    ended: bool
    before: Samples  # for a second before the onset
    during: Samples


@dataclass(frozen=True, slots=True)
class Evidence:
    """The same as the detector has it."""

    event: Event
    baseline: Array
    noise: Array
    score: float
    ended: bool
    before: Part
    during: Part

    def gathered(self, pause: Callable[[], None] | None = None) -> Gathered:
        """As arrays; up to 1 ms, with a pause after each 0.1 ms where one is given."""
        before, during = self.before.samples(pause), self.during.samples(pause)
        return Gathered(self.event, self.baseline, self.noise, self.score, self.ended, before, during)


@dataclass(frozen=True)
class Refiner:
    """Judges events; for the fields see Detector."""

    robot: Robot | None
    isolator: ContactIsolator | None
    stiction: Array
    gain_error: float
    answered: bool = False
    drives_fail: bool = False
    named: float = NAMED

    def refine(self, known: Gathered) -> Event:
        """The event judged again: phase "refined", or "changed" if it alarms only now."""
        before, during, noise = known.event, known.during, known.noise
        added = during.residual - known.baseline
        top = int(np.argmax(np.linalg.norm(added / noise, axis=1)))
        best = felt(during.time, _let_go(added, known, self.stiction), during.qd, noise, self.stiction)
        j = before.joint - 1
        torque, sigma = float(best.added[j]), float(best.variance[j]) ** 0.5
        event = replace(
            before, residual_nm=best.added, residual_s=best.time, torque_nm=torque, peak_nm=added[top],
            torque_interval_nm=(torque - INTERVAL * sigma, torque + INTERVAL * sigma), phase="refined",
            score=known.score,
        )  # fmt: skip
        explained, isolated = None, None
        if self.isolator is not None:
            event, explained, isolated = self._isolated(self.isolator, event, known)
        if known.ended and event.force is not None and isolated is not None:
            event = replace(event, impulse=_impulse(event.force, isolated, during.time, added))
        if not event.masked:
            slow = before.channel == CHANNELS[LEVEL]
            moved = np.ptp(known.before.q, axis=0) if len(known.before.q) else np.zeros(added.shape[1])
            history = History(during.time, added, during.q, during.tau, noise, known.ended, slow, moved)
            # whoever answers a touch answers two at once, or a torque on one joint, as well: that is no fault to him
            kind = judged(
                history, self.robot, None if self.answered else explained, drives_fail=self.drives_fail
            )
            event = replace(
                event, kind=kind.kind, confidence=kind.confidence, alternatives=kind.alternatives, rise_s=kind.rise,
                mass_kg=kind.mass, first_kind=before.first_kind or before.kind,
            )  # fmt: skip
        return replace(event, phase="changed") if event.alarm and not before.alarm else event

    def _isolated(
        self, isolator: ContactIsolator, event: Event, known: Gathered
    ) -> tuple[Event, float | None, Added | None]:
        time, y, q, qd = (
            np.concatenate((getattr(known.before, name), getattr(known.during, name)))
            for name in ("time", "raw", "q", "qd")
        )
        band = self.stiction * sticking(time, qd)
        stood = len(known.before.qd) > 0 and bool(np.all(np.abs(known.before.qd) < SLOW_SPEED))
        best = what_was_added(
            isolator.robot, time, y, q, qd, event.onset_s, known.noise, gain_error=self.gain_error,
            hidden=None if stood else HIDDEN * band, band=band if stood else None,
        )  # fmt: skip
        if best is None:
            return event, None, None
        found = isolator.isolate(best.q, best.torque, best.covariance)
        if found.link is None and found.reason == "not one push" and best.seconds < HELD:
            # for some milliseconds an impact is stronger than any push: its impulse, as if it had lasted HELD seconds
            short = best.seconds / HELD
            best = replace(
                best, torque=short * best.torque, covariance=short**2 * best.covariance, seconds=HELD,
                stretch=(best.stretch[0], best.stretch[1] / short),
            )  # fmt: skip
            found = isolator.isolate(best.q, best.torque, best.covariance)
        links = [(c.link, c.probability) for c in found.alternatives]
        answer: Isolation | Candidate = found
        if found.link is None and found.alternatives and found.alternatives[0].probability >= self.named:
            answer = found.alternatives[0]
            del links[0]
        why: str = found.reason if answer.link is None else ""
        if answer.force is not None and (answer.link or 0) < FELT_BY and _no_hand(answer.force, best):
            links, why = [(answer.link, answer.probability), *links], "stronger than a hand"
            answer = Candidate(None, 0.0)
        return replace(
            event, link=answer.link, link_probability=answer.probability, links=tuple(links), point=answer.point,
            force=answer.force, isolated_s=best.time, why_no_link=why,
            force_interval_n=None if answer.force is None else _stretched(answer.force_range, best.stretch),
            point_spread_m=None if answer.point is None else answer.spread,
        ), found.explained, best  # fmt: skip


def _let_go(added: Array, known: Gathered, stiction: Array) -> Array:
    """What an event added (m, n) [Nm]; of a joint that stood before it without what stiction (n,) [Nm] had held.

    Stiction held the mean before it at some torque within its band, which the push has let go: what counts is the
    residual itself where that is less, by the band at most.
    """
    if len(known.before.time) == 0:
        return added
    stood = sticking(known.before.time, known.before.qd)[-1] > 0.5
    size = np.abs(added)
    less = np.maximum(np.minimum(size, np.abs(known.during.residual)), size - stiction)
    return np.where(stood, np.copysign(less, added), added)


def _no_hand(force: Array, isolated: Added) -> bool:
    """Whether a force is more than a hand has, and hardly anything of it is felt."""
    size = float(np.linalg.norm(force))
    held = size * min(1.0, isolated.seconds / HELD)
    return held > STRONGEST and float(np.linalg.norm(isolated.torque)) < LEVER * size


def _stretched(force: tuple[float, float], by: tuple[float, float]) -> tuple[float, float]:
    """An interval [N] of a mean force as one of the force while it lasted."""
    return force[0] * by[0], force[1] * by[1]


def _impulse(force: Array, isolated: Added, time: Array, added: Array) -> Array:
    """Impulse (3,) [N s] of an isolated event, from what it added (m, n) [Nm] to the residual at `time` (m,) [s].

        impulse = force int (added . w / r . w) dt,   r: what it added when the force was isolated, w = covariance^-1 r;
                                                      of it the share that the residual showed

    An observer's lag moves the residual in time and leaves its integral as it is. The force is taken to keep its place
    and direction; what friction holds back at the end is not in it.
    """
    r = isolated.torque
    w = np.linalg.solve(isolated.covariance, r)
    share = added @ w / max(isolated.shown * float(r @ w), 1e-12)
    return np.asarray(force * float(np.sum(0.5 * (share[1:] + share[:-1]) * np.diff(time))))
