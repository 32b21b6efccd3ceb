"""One loop for files, pipes and one's own run: the same events, whichever way a log comes in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from watched_logs import ROBOT, TORQUE, columns_of, log_of, tuned_model

import tangere
from tangere.identification.belief import Belief, belief, read
from tangere.identification.touch_logs import TouchLog
from tangere.logs.recordings import recordings
from tangere.loop.follow import Follower
from tangere.loop.run import run
from tangere.loop.watching import Watcher, watch
from tangere.observe.momentum import MomentumObserver
from tangere.types import Event, State


def told(events: tuple[Event, ...] | list[Event]) -> list[tuple[Any, ...]]:
    """What is compared: everything that decides."""
    return [(e.number, e.time_s, e.onset_s, e.end_s, e.kind, e.joint, e.channel, e.link, e.alarm) for e in events]


class Samples:
    """A recording as a source of one's own: three methods."""

    def __init__(self, log: TouchLog) -> None:
        self.log, self.dof = log, log.motion.q.shape[1]

    def start(self) -> State:
        self.k = 0
        return self._sample()

    def read(self) -> State | None:
        self.k += 1
        return self._sample() if self.k < len(self.log.motion.time) else None

    def close(self) -> None: ...

    def _sample(self) -> State:
        motion, k = self.log.motion, self.k
        before = max(k - 1, 0)
        target = None if self.log.qd_des is None else self.log.qd_des[k]
        tau = 0.5 * (motion.tau[before] + motion.tau[k])  # mean over the period
        h = float(motion.time[k] - motion.time[before])
        return State(float(motion.time[k]), h, motion.q[k], motion.qd[k], tau, qd_target=target)


def ran(log: TouchLog, believed: Belief) -> tuple[Event, ...]:
    """The log through run(), with the parts that everybody has."""
    gain = believed.thresholds.gain
    observer = MomentumObserver(believed.robot, gain, believed.drive, start="first", delay=0.0)
    return run(Samples(log), observers=[observer], detector=Watcher(believed)).events


@pytest.mark.parametrize("seed", [1, 2])
def test_a_simulated_log_has_the_same_events_by_every_way(seed: int) -> None:
    model = tuned_model()
    columns = columns_of(push=(3.0, 4.0, 0.3 * TORQUE), seed=seed)
    log, believed = log_of(columns, model), belief(ROBOT, model)
    whole = watch(log, believed).events
    assert len(whole) == 1
    names = [f"{name}_{j}" for name in ("actual_q", "actual_qd", "tau") for j in range(6)]
    rows = np.column_stack([columns[name] for name in ("time", "q", "qd", "tau")])
    lines = [",".join(["timestamp", *names]) + "\n", *(",".join(map(repr, row)) + "\n" for row in rows.tolist())]
    follower = Follower(ROBOT, believed)
    follower.follow(lines)
    assert told(follower.events) == told(whole)
    assert told(ran(log, believed)) == told(whole)


@pytest.mark.parametrize("name", ["ur-static.csv", "link4.csv", "no_torque.csv"])
def test_a_recording_has_the_same_events_by_every_way(name: str, data_dir: Path) -> None:
    file = data_dir / "ur10e_contacts" / name
    robot = tangere.robot("ur10e")
    columns = "t,q,qd,current,..."
    (recording,) = recordings(file, columns=columns)
    follower = Follower(robot, belief(robot), columns=columns)
    with file.open() as lines:
        follower.follow(lines)
    # without a model a stream learns the friction's size from its first second: the file is watched with the same
    whole = watch(read(recording, robot), follower.belief).events
    assert told(follower.events) == told(whole)
    assert len(whole) >= {"ur-static.csv": 4, "link4.csv": 3, "no_torque.csv": 0}[name]
