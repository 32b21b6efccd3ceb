"""Arms that stick and are handled, without targets: what a stop may mask, and what of hands and obstacles is told."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import pytest
from handled_arms import Arms, Hand, Handled, Push, Wall

from tangere.identification.belief import Belief, belief, read
from tangere.identification.touch_logs import TouchLog
from tangere.logs.log import Log
from tangere.logs.recordings import Recording
from tangere.loop.tuning import tuning
from tangere.loop.watching import Watched, watch
from tangere.types import Array

SOAK = bool(os.environ.get("TANGERE_SOAK"))
COUNT, SEED = (20, 11) if SOAK else (2, 11)
HOLDS = 6 if SOAK else 2  # of each arm and way to give way
BRISK = 20.0  # [rad/s2] of joints at abrupt waypoints
MOVING, STANDING = 0, 2  # rows of thresholds


@dataclass(frozen=True)
class World:
    """Arms, and what is believed of each before and after tuning."""

    arms: Arms
    plain: list[Belief]
    tuned: list[Belief]
    rng: np.random.Generator

    def seen(self, b: int, log: Log, known: Belief) -> Watched:
        return watch(_read(self.arms, log, known), known)

    def limit(self, b: int, qd: Array) -> Array:
        """Stated limit (N, n) [Nm]: the level of joints that move, or of those that stand."""
        level = self.tuned[b].thresholds.level
        return np.where(np.abs(qd) > self.tuned[b].thresholds.standstill, level[MOVING], level[STANDING])

    def ways(self, low: float, high: float) -> Array:
        way = self.rng.standard_normal((self.arms.count, 3))
        size = self.rng.uniform(low, high, (self.arms.count, 1))
        return np.asarray(size * way / np.linalg.norm(way, axis=1)[:, None])


def _read(arms: Arms, log: Log, known: Belief) -> TouchLog:
    return read(Recording("log", log, (), "0" * 64), arms.base, known.model)


@pytest.fixture(scope="module")
def world() -> World:
    arms = Arms(COUNT, SEED)
    runs = [arms.run(arms.waypoints(32.0, brisk)) for brisk in (2.5, BRISK)]
    plain = [belief(arms.base, arms.model(b)) for b in range(COUNT)]
    tuned = []
    for b, known in enumerate(plain):
        done = tuning(arms.base, [_read(arms, run.logs[b], known) for run in runs], known, 0.1)
        assert not any(seen.alarms for seen in done.logs)  # its own free motion
        tuned.append(belief(arms.base, done.model))
    return World(arms, plain, tuned, np.random.default_rng(SEED))


def test_waypoints_are_hardly_masked_and_raise_no_alarm(world: World) -> None:
    """Abrupt ones, that thresholds were learned from, too; at other places and speeds."""
    run = world.arms.run(world.arms.waypoints(20.0, BRISK))
    stops, alarms = 0, 0
    for b, log in enumerate(run.logs):
        seen = world.seen(b, log, world.tuned[b])
        for event in seen.events:
            last = 20.0 if event.end_s is None else event.end_s
            assert not event.masked or last - event.onset_s <= 0.2
            stops += event.masked
        alarms += len(seen.alarms)
        assert seen.masked < 0.15
    assert stops > 3 * COUNT  # they are told
    assert alarms <= COUNT // 10


def _held(run: Handled, hand: Hand, b: int, limit: Array, seen: Watched) -> float | None:
    """Seconds from twice the limit to an alarm, inf: none, None: the hand never came to twice the limit."""
    over = np.abs(run.tau_ext[:, b]).max(axis=1, initial=0.0, where=np.abs(run.tau_ext[:, b]) > 2.0 * limit) > 0.0
    rows = np.flatnonzero(over & (run.time >= hand.start) & (run.time < hand.end))
    if len(rows) == 0:
        return None
    at = float(run.time[rows[0]])
    known = [e for e in seen.alarms if hand.start <= e.time_s <= hand.end]
    return min((max(e.time_s - at, 0.0) for e in known), default=np.inf)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("floating", marks=pytest.mark.xfail(SOAK, reason="20 arms: 94 % of the holds")),
        "yielding",
    ],
)
def test_hands_that_guide_the_arm_are_told(world: World, how: str) -> None:
    hands = []
    for k in range(HOLDS):
        start, rng = 1.5 + 5.0 * k, world.rng
        hands.append(Hand(int(rng.integers(3, 7)), start, start + rng.uniform(1.5, 3.0), world.ways(0.1, 0.3)))
    run = world.arms.run(world.arms.stand(5.0 * HOLDS + 2.0), hands, how)
    delays = []
    for b, log in enumerate(run.logs):
        seen = world.seen(b, log, world.tuned[b])
        found = (_held(run, hand, b, world.limit(b, run.qd[:, b]), seen) for hand in hands)
        delays += [delay for delay in found if delay is not None]
    assert len(delays) >= COUNT
    assert np.mean(np.array(delays) <= 0.3) >= 0.95


@pytest.mark.xfail(SOAK, reason="not run with 20 arms since an alarm in the sample of the contact counts", strict=False)
def test_an_obstacle_that_stops_the_arm_is_told_within_50_ms(world: World) -> None:
    walls = [Wall(int(world.rng.integers(3, 7)), 2.0 + 4.0 * k, 2.4 + 4.0 * k) for k in range(2 * HOLDS)]
    run = world.arms.run(world.arms.waypoints(8.0 * HOLDS + 2.0, 3.0, rest=0.05), walls)
    delays = []
    for b, log in enumerate(run.logs):
        alarms = world.seen(b, log, world.tuned[b]).alarms
        for wall in walls:
            during = (run.time >= wall.start - 1e-9) & (run.time < wall.end)
            torque, limit = np.abs(run.tau_ext[during, b]), world.limit(b, run.qd[during, b])
            if np.any(torque > 2.0 * limit):
                at = float(run.time[during][np.argmax(torque.max(axis=1) > 0.0)])
                delays.append(min((e.time_s - at for e in alarms if -1e-9 < e.time_s - at < 0.5), default=np.inf))
    assert len(delays) >= 3 * COUNT
    assert np.mean(np.array(delays) <= 0.05) >= (0.95 if SOAK else 1.0)


def test_pushes_on_a_standing_arm_that_sticks_are_found_and_no_fault(world: World) -> None:
    """Of those whose torque on some joint is half more than what static friction holds; tuning never finds fewer."""
    pushes = [
        Push(int(world.rng.integers(2, 7)), 1.0 + 3.0 * k, 2.2 + 3.0 * k, world.ways(15.0, 100.0))
        for k in range(2 * HOLDS)
    ]
    run = world.arms.run(world.arms.stand(6.0 * HOLDS + 2.0), pushes)
    found: dict[str, list[bool]] = {"plain": [], "tuned": []}
    for b, log in enumerate(run.logs):
        for name, known in (("plain", world.plain[b]), ("tuned", world.tuned[b])):
            events = world.seen(b, log, known).events
            assert all(event.kind != "fault" for event in events)
            for push in pushes:
                during = (run.time >= push.start) & (run.time < push.end)
                if np.any(np.abs(run.tau_ext[during, b]) > 1.5 * world.arms.static[b]):
                    found[name].append(any(e.alarm and push.start < e.time_s < push.end for e in events))
    assert len(found["tuned"]) >= COUNT
    assert np.mean(found["tuned"]) >= 0.8
    assert sum(found["tuned"]) >= sum(found["plain"])


def test_the_force_of_a_push_on_the_tool_of_a_standing_arm_is_known(world: World) -> None:
    """Six joints feel it: within 30 % where it is half more than static friction, although that takes a part of it."""
    pushes = [Push(6, 1.0 + 3.0 * k, 2.2 + 3.0 * k, world.ways(40.0, 100.0)) for k in range(8)]
    run = world.arms.run(world.arms.stand(26.0), pushes)
    near, inside = [], []
    for b, log in enumerate(run.logs):
        events = world.seen(b, log, world.tuned[b]).alarms
        for push in pushes:
            during = (run.time >= push.start) & (run.time < push.end)
            if np.any(np.abs(run.tau_ext[during, b]) > 1.5 * world.arms.static[b]):
                (event,) = (e for e in events if push.start < e.time_s < push.end)
                true = float(np.linalg.norm(push.size[b]))
                near.append(event.force_n is not None and abs(event.force_n / true - 1.0) < 0.3)
                inside += [x[0] < true < x[1] for x in (event.force_interval_n,) if x is not None]
    assert len(near) >= 4 * COUNT
    assert np.mean(near) >= 0.8
    assert np.mean(inside) >= 0.85


def test_twice_as_fast_as_it_was_tuned_is_said_and_no_touch() -> None:
    """Of 20 arms in 400 s: two alarms, of another 20 (seed 113) four; ten times what was promised would be none."""
    arms = Arms(COUNT if SOAK else 1, SEED + 1)
    slow = [arms.run(arms.waypoints(32.0, 2.5, speed=0.4)) for _ in range(2)]
    fast = arms.run(arms.waypoints(20.0, 2.5, speed=0.8))
    alarms = 0
    for b in range(arms.count):
        known = belief(arms.base, arms.model(b))
        done = tuning(arms.base, [_read(arms, run.logs[b], known) for run in slow], known, 0.1)
        known = belief(arms.base, done.model)
        assert not any(finding.kind == "faster" for seen in done.logs for finding in seen.findings)
        seen = watch(_read(arms, fast.logs[b], known), known, isolate=False)
        (said,) = (finding for finding in seen.findings if finding.kind == "faster")
        assert "promise does not hold" in str(said)
        alarms += len(seen.alarms)
    assert alarms <= arms.count // 10
