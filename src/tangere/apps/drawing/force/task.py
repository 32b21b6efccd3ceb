"""What a pen does next: travel, come down until it touches, press, draw, lift; the clock waits where the paper does."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Protocol

import numpy as np

from tangere.apps.drawing.force.surface import FALL, Found, blind_touch_speed, touch_speed
from tangere.errors import InvalidValue
from tangere.types import Array, Reference

FREE, LISTEN, TOUCH, SETTLE, DRAW, AWAY = "free", "listen", "touch", "settle", "draw", "away"
CONTACT = frozenset((SETTLE, DRAW))
MODES = (FREE, LISTEN, TOUCH, SETTLE, DRAW, AWAY)  # numbers of the column "mode"

SCAN = 0.004  # s between the looks at a plan for its phases: shorter ones than this do not occur (blends take longer)
DESCENT = 0.1  # m/s towards the paper while it is surely far
BRAKING = 1.0  # m/s2 of that descent: a tenth of what a UR can, so that the touch speed is reached before the paper
LEAD = 0.06  # s of even descent before the paper, at least: until then nobody knows how the joints move by themselves
SEARCH = 0.02  # m below the planned plane where the search for paper ends: three times a canvas error of 3 mm and 2 deg
# A touch is two samples in a row above the first number times the noise, or their mean over some 12 above the second:
# 5 sigma each, 0.5 N at once or 0.25 N within 10 ms with 0.1 N of noise (the mean has 0.28 sigma: 9 of its own)
FELT, FELT_MEAN = (5.0, 2.5), 0.15
RISE = 60.0  # N/s, ramp of the wanted force after a touch: 5 N in 80 ms, slower than the loop (50 ms) can follow
SETTLED = (0.1, 0.03)  # share of the force, s: within this for so long before the pen moves
PATIENCE = 0.6  # s, after which it moves anyway: with a noisy sensor the share may never be kept
LOST = 0.1  # of the force: below, for LOST_TIME, the pen has left the paper
LOST_TIME = 0.1  # s; a pen that hops over an edge is back within 20 ms
# m below what was drawn last: a hole, whatever force is felt: the edge of a hole carries a pen by friction. Beside the
# last firm point so much more per metre as paper may lean and a bump's flank falls (20 degrees), within the spacing
DROP, FIRM_SPACING = 1.5e-3, 1e-3
# Until the stiffness is known [N/m] a pen may press as deep into the paper as into the softest, and half as much again
SOFTEST, GIVE = 2e3, 1.5
FIRM = 0.7  # of the force: below, what the pen stands on is no paper to be remembered
# A push that nothing here makes: more than so many times the force wanted and so many N above it, in two samples (one
# may be a spike). A touch overshoots by a third of the force, see touch_speed
GUARD, GUARD_ABOVE = 3.0, 10.0
HIGHER = 1e-3  # m above the plan's first point: a pen that waits there; ten times an arm's own error
LIFT = 0.02  # m above the paper as found, or the plane where none was, at the end
SLEW = (15.0, 0.05)  # rad/s, m/s: how a free pen takes up the height of the paper that was found
SPACING = 5e-3  # m between the points of the paper that are remembered

Point = tuple[float, float, float]


class PenPlan(Protocol):
    """What the controllers need of a drawing: plan.motion's DrawingPlan, or one's own."""

    @property
    def duration(self) -> float:
        """s."""

    def at(self, time: float) -> Reference:
        """Reference with T, v, a of the tip, on the nominal plane."""

    def phase(self, time: float) -> str:
        """travel, approach, draw or lift."""


class PenTask:
    """The reference of a pen, and where force is wanted, from what is felt.

    The plan's own clock stands still while the pen looks for the paper: in an approach the pen comes down on its own,
    fast while the paper is surely far, then with the touch speed; where it touches the clock goes on with the line.
    Heights are along the canvas normal, from the nominal plane.

    After `update`: mode; reference (of the plan); rise, rise_rate, rise_acc: what is added to it along the normal, in
    free modes; force (wanted now, ramped) and pressing; finished; lost: why it ended early, "" if not.
    """

    def __init__(self, plan: PenPlan, T_canvas: Array, force: float, *, listen: float = 0.0) -> None:
        if not (math.isfinite(force) and force > 0.0):
            raise InvalidValue(f"force: positive and finite [N], got {force!r}")
        self.plan, self.force_des, self._listen = plan, force, listen
        self.normal = np.array(T_canvas[:3, 2])
        self._axes = np.array(T_canvas[:3, :3].T)
        self._origin = np.array(T_canvas[:3, 3])
        self.segments = phases(plan)
        if not any(phase == "draw" for phase, _, _ in self.segments):
            raise InvalidValue("the plan draws nothing")
        self.touch_speed = 2e-3
        self.noise = 0.1  # N per sample
        self.push_max = max(GUARD * force, force + GUARD_ABOVE)  # N, of any direction: beyond, the pen stops and lifts
        self.sink = 0.0  # m that the paper is higher where nothing presses on it than where it was drawn on
        self.give = GIVE * force / SOFTEST  # m that the pen may press into the paper; controllers that know k say less
        self.start()

    def approach(self, stiffness: float, known: float | None, mass: float, *, blind: bool) -> None:
        """How the pen comes down on paper of `stiffness` [N/m], `known` where it is sure, with `mass` [kg] behind it.

        blind: no sensor, the touch is felt in the joints. Soft paper rises by millimetres when the pen leaves it: the
        pen must come slowly, and listen, above it.
        """
        self.sink = 0.0 if known is None else self.force_des / known
        if blind:
            self.touch_speed = blind_touch_speed(self.force_des, known, mass)
        else:
            self.touch_speed = touch_speed(self.force_des, stiffness, mass)

    def start(self) -> None:
        """From the beginning, which is when the first update comes."""
        self.mode = LISTEN if self._listen else FREE
        self._next = FREE  # after listening
        self.clock = 0.0  # s of the plan
        self.reference = self.plan.at(0.0)
        self.rise = self.rise_rate = self.rise_acc = 0.0
        self.force, self.pressing, self.finished, self.lost = 0.0, False, False, ""
        self.found = Found()
        self.touches: list[tuple[int, float, float, float]] = []  # stroke, time, x, y
        self.stroke = 0
        self._i, self._since, self._count, self._goal = 0, 0.0, 0, 0.0
        self._slow, self._bottom, self._mean = math.inf, -SEARCH, 0.0
        self._last = 0.0
        self._place = (math.inf, math.inf)
        self._mark = (0.0, 0.0, 0.0)
        self._pushed = 0
        self._begins = True
        self._look_ahead()

    def columns(self, force: float) -> dict[str, float | Array]:
        """Columns of a drawing's log; force [N] as the controller felt it along the normal.

        mode: number in MODES, stroke: from 1 (0 before the first), plan_time [s], force, force_des [N]; the reference.
        """
        reference = self.reference
        assert reference.T is not None
        return {
            "mode": float(MODES.index(self.mode)), "stroke": self.stroke, "plan_time": self.clock, "force": force,
            "force_des": self.force, "q_des": reference.q, "qd_des": reference.qd, "qdd_des": reference.qdd,
            "T_des": reference.T.ravel()[:12],
        }  # fmt: skip

    def place(self, p: Array) -> tuple[float, float, float]:
        """x, y and height of a point (3,) in the canvas frame."""
        x, y, z = self._axes.dot(p - self._origin).tolist()
        return x, y, z

    def planned(self, reference: Reference) -> Point:
        """x, y and height of the tip that a reference of the plan asks for; PenPlan says that it has a T."""
        assert reference.T is not None
        return self.place(reference.T[:3, 3])

    def update(
        self, time: float, h: float, tip: Point, W: float, height_ref: float, knock: bool = False, push: float = 0.0
    ) -> None:
        """One period: tip in the canvas frame, W [N] felt along the normal, height_ref: where a lift would begin.

        knock: another sense than W says that the pen has just touched. push [N]: the whole force, sideways included.
        """
        mode = self.mode
        if self._begins:  # a pen that waits higher than planned comes down from there
            self._begins, self._since = False, time
            higher = tip[2] - self.planned(self.reference)[2]
            self.rise = higher if higher > HIGHER else 0.0
        self._pushed = self._pushed + 1 if max(W, push) > self.push_max else 0
        if self._pushed >= 2 and mode != AWAY:
            self._too_hard(tip, max(W, push), height_ref)
        elif mode == FREE:
            self._free(time, h)
        elif mode == LISTEN:
            if time - self._since >= self._listen:
                self.mode, self._next = self._next, TOUCH
        elif mode == TOUCH:
            self._touch(time, h, tip, W, knock)
        elif mode in CONTACT:
            self._press(time, h, tip, W, height_ref)
        else:
            self._slew(h)
            self.finished = self.rise > self._goal - 1e-3

    def _free(self, time: float, h: float) -> None:
        _, _, end = self.segments[self._i]
        self.clock = (round(self.clock / h) + 1) * h  # on the grid of a plan that is sampled with our period
        self._slew(h)
        while self.clock >= end:
            self._i += 1
            if self._i == len(self.segments):
                self._i -= 1
                self.clock, self.finished = self.plan.duration, True
                break
            phase, start, end = self.segments[self._i]
            if phase in ("approach", "draw"):
                self.clock, self.mode, self._since = start, LISTEN if self._listen else TOUCH, time
                self.reference = self.plan.at(start)
                x, y, _ = self.planned(self.reference)
                height, margin = self.found.expected(x, y)
                self._slow = height + max(margin, LEAD * self.touch_speed)  # below this height: touch speed
                self._bottom = max(self.found.lowest(x, y), -SEARCH)
                self.rise_rate = self.rise_acc = self._mean = 0.0
                return
        self.reference = self.plan.at(self.clock)

    def _slew(self, h: float) -> None:
        omega, speed = SLEW
        acc = omega * (omega * (self._goal - self.rise) - 2.0 * self.rise_rate)
        rate = min(max(self.rise_rate + h * acc, -speed), speed)
        self.rise_acc = (rate - self.rise_rate) / h
        self.rise_rate = rate
        self.rise += h * rate

    def _touch(self, time: float, h: float, tip: Point, W: float, knock: bool) -> None:
        self._mean += (W - self._mean) * FELT_MEAN
        self._count = self._count + 1 if W > FELT[0] * self.noise else 0
        if knock or self._count >= 2 or self._mean > FELT[1] * self.noise:
            self._touched(time, tip, W)
            return
        x, y, height = self.planned(self.reference)
        height += self.rise
        away = height - self._slow
        speed = -min(DESCENT, math.sqrt(self.touch_speed**2 + 2.0 * BRAKING * max(away, 0.0)))
        step = min(max(speed - self.rise_rate, -BRAKING * h), BRAKING * h)
        self.rise_acc = step / h
        self.rise_rate += step
        self.rise += h * self.rise_rate
        if height < self._bottom:
            place = f"{1e3 * x:.1f}, {1e3 * y:.1f} mm"
            below = f"{-1e3 * self._bottom:.0f} mm below the plan"
            if self._bottom > -SEARCH:
                near = self.found.expected(x, y)[0]
                below = f"{1e3 * (near - self._bottom):.1f} mm below where it was touched near by"
            self._leave(f"no paper found within {below}, at {place}", tip)

    def _touched(self, time: float, tip: Point, W: float) -> None:
        self.touches.append((self.stroke + 1, time, tip[0], tip[1]))
        while self.segments[self._i][0] != "draw":
            self._i += 1
        self.stroke += 1
        self.clock = self.segments[self._i][1]
        self.reference = self.plan.at(self.clock)
        self.mode, self.pressing, self.force = SETTLE, True, min(max(W, 0.0), self.force_des)
        self._begun = self._since = self._alive = time
        self._count = 0
        self._last = tip[2]
        self._place = (math.inf, math.inf)
        self._mark = tip

    def _press(self, time: float, h: float, tip: Point, W: float, height_ref: float) -> None:
        self.force = min(self.force + RISE * h, self.force_des)
        self._mean += (W - self._mean) * FELT_MEAN
        beside = abs(tip[0] - self._mark[0]) + abs(tip[1] - self._mark[1])
        deepest = DROP + FALL * min(beside, FIRM_SPACING) + (self.give if self.mode == SETTLE else 0.0)
        sunk = self._mark[2] - tip[2] > deepest
        lost = False
        if self._mean > LOST * self.force_des:
            self._alive, self._last = time, tip[2]
            if self.mode == DRAW and self._mean > FIRM * self.force_des and not sunk:
                if beside > FIRM_SPACING:
                    self._mark = tip
                if abs(tip[0] - self._place[0]) + abs(tip[1] - self._place[1]) > SPACING:
                    self._place = tip[:2]
                    self.found.add((tip[0], tip[1], tip[2] + self.sink))
        else:
            patience = LOST_TIME if self.mode == DRAW else PATIENCE
            lost = time - self._alive > patience or self._last - tip[2] > DROP
        if sunk or lost:
            self._goal_from(height_ref)
            place = f"in stroke {self.stroke} at {1e3 * tip[0]:.1f}, {1e3 * tip[1]:.1f} mm"
            drawn = self.mode == DRAW
            self._leave(f"the pen lost the paper {place}" if drawn else f"a touch was felt {place}, but no paper", tip)
            return
        if self.mode == SETTLE:
            if abs(W - self.force_des) > SETTLED[0] * self.force_des:
                self._since = time
            if time - self._since < SETTLED[1] and time - self._begun < PATIENCE:
                return
            self.found.add((tip[0], tip[1], tip[2] + self.sink))
            self._mark = tip
            self.mode = DRAW
        self.clock = (round(self.clock / h) + 1) * h
        if self.clock < self.segments[self._i][2]:
            self.reference = self.plan.at(self.clock)
            return
        self.found.add((tip[0], tip[1], tip[2] + self.sink))
        self._goal_from(height_ref)
        self.mode, self.pressing, self.force = FREE, False, 0.0
        self._i += 1
        if self._i == len(self.segments):
            self._leave("", tip)
            return
        self.clock = self.segments[self._i][1]
        self.reference = self.plan.at(self.clock)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """How much higher than planned the pen travels: so that it comes to the next stroke above the margin there."""
        following = next((start for phase, start, _ in self.segments[self._i :] if phase in ("approach", "draw")), None)
        if following is not None:
            x, y, z = self.planned(self.plan.at(following))
            height, margin = self.found.expected(x, y)
            self._goal = height + max(0.0, margin - z)

    def _goal_from(self, height_ref: float) -> None:
        """Free motion begins where the pen is."""
        self.rise = height_ref - self.planned(self.reference)[2]
        self.rise_rate = self.rise_acc = 0.0

    def _too_hard(self, tip: Point, push: float, height_ref: float) -> None:
        """Something pushes far harder than wanted: stop and lift."""
        if self.mode in CONTACT:
            what = f"pressed with {push:.0f} N instead of {self.force_des:g} in stroke {self.stroke}"
        else:
            what = f"pressed with {push:.0f} N where no paper was expected"
        height = 1e3 * tip[2]
        side = f"{abs(height):.1f} mm {'above' if height > 0.0 else 'below'} the planned paper"
        higher = ": the paper is higher than planned, or something lies on it"
        if height <= 0.0:
            higher = ": an edge, a hole or a thing in the way"
        self._goal_from(height_ref if self.mode in CONTACT else tip[2])
        self._leave(f"{what}, at {1e3 * tip[0]:.1f}, {1e3 * tip[1]:.1f} mm, {side}{higher}", tip)

    def _leave(self, why: str, tip: Point) -> None:
        """Stop and lift, for good: straight up from where the pen is, until it is LIFT above the paper."""
        self.mode, self.pressing, self.force, self.lost = AWAY, False, 0.0, why
        reference = self.reference
        still = np.zeros(6)
        none = np.zeros(len(reference.q))
        assert reference.T is not None
        x, y, z = self.planned(reference)
        T = reference.T.copy()
        T[:3, 3] += self._axes[0] * (tip[0] - x) + self._axes[1] * (tip[1] - y)
        self.reference = Reference(reference.q, none, none, T, still, still)
        # the paper is where it was found near by; where the pen is, if that is higher
        self._goal = max(self.found.expected(tip[0], tip[1])[0], tip[2]) + LIFT - z


def phases(plan: PenPlan) -> list[tuple[str, float, float]]:
    """(phase, start, end) [s] of a plan, in order; borders to 1 us."""
    count = max(math.ceil(plan.duration / SCAN), 1)
    times = np.linspace(0.0, plan.duration, count + 1).tolist()
    found: list[tuple[str, float, float]] = []
    phase, start = plan.phase(0.0), 0.0
    for before, now in pairwise(times):
        new = plan.phase(now)
        if new == phase:
            continue
        low, high = before, now
        while high - low > 1e-6:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if plan.phase(middle) == phase else (low, middle)
        found.append((phase, start, high))
        phase, start = plan.phase(high), high
    found.append((phase, start, plan.duration))
    return found
