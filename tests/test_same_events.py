"""One loop for files, pipes and one's own run: the same events, whichever way a log comes in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from watched_logs import ROBOT, TORQUE, columns_of, log_of, tuned_model

import tangere
from tangere.identification.belief import Belief, belief
from tangere.identification.touch_logs import TouchLog
from tangere.logs.log import Log
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


REAL = {  # log -> arm, columns, alarms
    "ur10e_contacts/ur-static.csv": ("ur10e", "t,q,qd,current,...", 4),
    "ur10e_contacts/link4.csv": ("ur10e", "t,q,qd,current,...", 3),
    "ur10e_contacts/no_torque.csv": ("ur10e", "t,q,qd,current,...", 0),
    "ur10_excitation/ur10_exciting_trajectory.csv": ("ur10", None, 0),
    **{f"ur3e_rtde/L{k}L{k + 1}.csv": ("ur3e", None, 0) for k in range(5)},
}


@pytest.mark.parametrize("name", REAL)
def test_a_recording_has_the_same_events_by_every_way_without_a_model(name: str, data_dir: Path) -> None:
    """A file learns from what it has shown so far, as a pipe does: nothing of later samples is used."""
    arm, columns, alarms = REAL[name]
    file = data_dir / name
    whole = tangere.watch(file, arm, columns=columns)
    assert len(whole.alarms) == alarms
    with file.open() as lines:
        assert told(tangere.watch(lines, arm, columns=columns).events) == told(whole.events)


@pytest.mark.parametrize("touched", [False, True])
def test_a_run_of_a_ur3e_with_a_tool_that_nobody_mentioned(touched: bool, data_dir: Path) -> None:
    """Its contact at 7.0 s is found by what its first 5 s have taught; a free one has no alarm, from its start on."""
    key = "jtraj__trayectoria_105" if touched else "jtraj__trayectoria_208"
    seen = tangere.watch(f"{data_dir}/ur3e_runs/ur3e_runs_500Hz.npz:{key}", "ur3e", sample_rate=500.0)
    assert [round(event.time_s, 1) for event in seen.alarms] == ([7.0] if touched else [])


def test_nothing_is_learned_from_later_samples() -> None:
    """The same beginning has the same residual, whatever follows."""
    columns = columns_of(12.0, push=(8.0, 9.0, TORQUE))
    short = {name: values[:1600] for name, values in columns.items()}  # 8 s of 200 Hz
    whole, begun = (tangere.watch(Log(part), "ur10e").logs[0].residual for part in (columns, short))
    np.testing.assert_array_equal(whole[:1600], begun)
