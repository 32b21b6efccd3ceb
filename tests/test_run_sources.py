"""What the loop takes and gives beside plant and log: sources, columns, sinks, live inputs."""

from __future__ import annotations

import json
import re
import threading
from time import time_ns
from types import SimpleNamespace

import numpy as np
import pytest
from test_run_loop import Q0, Arm, H, Hold

import tangere
from tangere.control.computed_torque import ComputedTorque
from tangere.control.guard import Guarded
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.logs.log import Log
from tangere.logs.mcap_read import read_mcap
from tangere.loop import sinks
from tangere.loop.run import run
from tangere.loop.sinks import Change, LiveChannel
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.momentum import MomentumObserver
from tangere.plants.mujoco_plant import MujocoPlant
from tangere.plants.pushes import Push
from tangere.plants.rigid import RigidPlant
from tangere.types import Command, State


@pytest.fixture(scope="module")
def robot():
    return tangere.robot("ur10e")


def recording(robot):
    """A log of the pushed arm under Hold, without truth."""
    log = run(Arm(robot, (0.1, 0.3)), Hold(robot), until=0.4, start=Q0).log
    return Log({name: log[name] for name in ("time", "q", "qd", "tau")})


def test_a_recording_is_a_source_and_a_controller_beside_it_is_only_logged(robot):
    log = recording(robot)
    controller = Hold(robot)
    result = run(log, controller, [MomentumObserver(robot)], detector=Detector(Thresholds.constant(1.0)))
    assert result.aborted == ""
    assert np.array_equal(result.log["q"], log["q"])
    assert np.array_equal(result.log["tau"], log["tau"])
    # on the same samples the same controller says the same torque; the recorded one came a sample later
    assert np.array_equal(result.log["tau_cmd"][:-1], log["tau"][1:])
    assert [touch.joint for touch in result.events] == [2]
    assert "tau_ext_true" not in result.log
    listened = run(log, observers=[MomentumObserver(robot)])
    assert "tau_cmd" not in listened.log
    assert np.array_equal(listened.log["residual"], result.log["residual"])
    assert len(run(log, until=0.1).log) == 100


def test_a_source_of_ones_own_ends_where_it_has_no_more(robot):
    class Three:
        dof, closed, left = 6, 0, 3

        def start(self):
            return State(5.0, H, Q0, np.zeros(6), np.zeros(6))

        def read(self):
            self.left -= 1
            return State(5.0 + H * (3 - self.left), H, Q0, np.zeros(6), np.zeros(6)) if self.left else None

        def close(self):
            self.closed += 1

    source = Three()
    result = run(source)
    assert (len(result.log), result.aborted, source.closed) == (3, "", 1)
    assert result.log.time[0] == 5.0


class Counting(Hold):
    """Finishes after so many steps; adds columns."""

    def __init__(self, robot, count, failed=""):
        super().__init__(robot)
        self.count, self.failed = count, failed

    @property
    def finished(self):
        return len(self.states) >= self.count

    def columns(self):
        return {"count": len(self.states), "twice": np.full(3, 2.0 * len(self.states))}


def test_a_controller_ends_the_run_where_it_has_finished_and_adds_its_columns(robot):
    log = run(Arm(robot), Counting(robot, 25), start=Q0).log
    assert np.array_equal(log["count"], np.arange(1, 26))
    assert np.array_equal(log["twice"], np.repeat(2.0 * np.arange(1, 26)[:, None], 3, axis=1))
    late = run(Arm(robot), Counting(robot, 250), start=Q0, until=0.1)
    assert (len(late.log), late.aborted) == (100, "the controller had not finished after 0.1 s")
    assert run(Arm(robot), Counting(robot, 9, "no paper"), start=Q0).aborted == "no paper"


def test_columns_of_a_controller_must_not_be_the_loops_own(robot):
    controller = Counting(robot, 25)
    controller.columns = lambda: {"q": np.zeros(6)}
    with pytest.raises(InvalidValue, match="q are the loop's own"):
        run(Arm(robot), controller, start=Q0)


class Seen:
    """A sink that keeps what it is given; slow or broken if asked."""

    def __init__(self, wait=None, fault=None):
        self.rows, self.events, self.info, self.result = [], [], None, None
        self.wait, self.fault = wait, fault

    def open(self, run):
        self.info = run

    def row(self, state, command, residual, reference, truth):
        if self.wait is not None:
            self.wait.wait()
        if self.fault is not None:
            raise self.fault
        self.rows.append((state.time, command.tau, residual, truth))

    def event(self, event):
        self.events.append(event)

    def close(self, result):
        self.result = result


def test_sinks_see_every_row_and_event(robot):
    seen = Seen()
    result = run(
        Arm(robot, (0.1, 0.3)), Hold(robot), [MomentumObserver(robot)], until=0.4, start=Q0,
        detector=Detector(Thresholds.constant(1.0)), sinks=[seen],
    )  # fmt: skip
    assert seen.info.robot is robot
    assert seen.info.columns["q"] == 6
    assert [row[0] for row in seen.rows] == result.log.time.tolist()
    assert np.array_equal([row[2] for row in seen.rows], result.log["residual"])
    assert [event.phase for event in seen.events] == ["raised", "ended"]
    assert seen.result is not None
    assert result.said == ()


def test_a_sink_that_is_stuck_or_broken_does_not_hold_the_run_up(robot, monkeypatch):
    monkeypatch.setattr(sinks, "QUEUE", 50)
    monkeypatch.setattr(sinks, "SINK_PATIENCE", 0.05)
    gate = threading.Event()
    stuck, broken = Seen(wait=gate), Seen(fault=RuntimeError("no screen"))
    result = run(Arm(robot), Hold(robot), until=0.4, start=Q0, sinks=[stuck, broken])
    assert len(result.log) == 400
    assert result.aborted == ""
    assert result.said == ("sink Seen did not take its rows within 0.05 s", "sink Seen failed: no screen")
    gate.set()
    slow = Seen(wait=gate)
    feed = sinks.Feed(slow, None)
    gate.clear()
    for k in range(200):
        feed.row(SimpleNamespace(time=k), SimpleNamespace(tau=0), None, None, None)
    assert feed.dropped >= 200 - 50 - 1  # one may be in the sink's hands
    gate.set()
    assert "rows dropped" in feed.close(result)
    assert len(slow.rows) == 200 - feed.dropped


def test_live_inputs_act_from_their_sample_on_and_are_kept_in_the_log(robot):
    class At:
        """Brings what is due."""

        def __init__(self, *due):
            self.due = list(due)

        def take(self, time):
            now = [item for at, item in self.due if at <= time + 1e-9]
            self.due = [(at, item) for at, item in self.due if at > time + 1e-9]
            return now

    live = At((0.1, Push(2, 20.0, 0.0, 0.05)), (0.2, Change("controller", "ki", 3.0)), (0.3, Push(9, 1.0, 0.0)))
    plant = RigidPlant(robot)
    log = run(plant, Hold(robot), [MomentumObserver(robot)], until=0.4, start=Q0, live=live).log
    pushed = log.time[np.abs(log["tau_ext_true"][:, 1]) > 0]
    assert pushed.min() == pytest.approx(0.101)  # the period that begins at 0.1 s
    assert pushed.max() == pytest.approx(0.150)
    told = [(note.time, note.text) for note in log.notes]
    assert told[0][0] == pytest.approx(0.1)
    assert json.loads(told[0][1]) == {"live": "push", "joint": 2, "torque": 20.0, "start": told[0][0], "duration": 0.05}
    assert told[1][1].startswith("live: refused: Hold has no gain 'ki'")
    assert told[2][1].startswith("live: refused: joint of a push: got 9")
    channel = LiveChannel()
    channel.put(Push(1, 1.0, 0.0))
    assert channel.take(0.0) == [Push(1, 1.0, 0.0)]
    assert channel.take(0.0) == []


@pytest.mark.parametrize("plant_of", [RigidPlant, MujocoPlant])
def test_payload_friction_and_gains_change_while_it_runs(robot, plant_of):
    pytest.importorskip("mujoco", reason="MuJoCo is not installed (extra sim)")
    law = JointFriction(np.full(6, 0.2), np.full(6, 0.1), width=0.2)
    robot = tangere.robot("ur10e", rotor_inertia=True)
    heavy, qd = tangere.robot("ur10e", payload=3.0, rotor_inertia=True), np.array([0.1, -0.2, 0.1, 0.3, -0.1, 0.2])
    ends = []
    for changed in (True, False):
        plant = plant_of(robot if changed else heavy, friction=law if changed else law.scaled(0.5))
        plant.reset(Q0, qd)
        if changed:
            plant.change("payload", 3.0)
            plant.change("friction", 0.5)
            plant.reset(Q0, qd)
        for _ in range(50):
            plant.write(Command(robot.gravity_torque(Q0)))
        ends.append((plant.read().q, plant.read().qd))
    assert np.abs(np.subtract(*ends)).max() < 1e-9
    with pytest.raises(InvalidValue, match="payload, friction"):
        plant.change("colour", 1.0)
    controller = Guarded(ComputedTorque(robot, Q0), robot, period=H)
    live = LiveChannel()
    live.put(Change("controller", "kp", 400.0))
    run(RigidPlant(robot), controller, until=0.01, start=Q0, live=live)
    assert np.array_equal(controller.controller.kp, np.full(6, 400.0))


def test_what_a_controller_does_wrong_is_said_of_it(robot):
    with pytest.raises(InvalidValue, match="a plant needs one"):
        run(RigidPlant(robot), until=0.1, start=Q0)

    class Odd(Hold):
        """Says in start() when it has finished, and answers what it was given."""

        def __init__(self, robot, answer):
            super().__init__(robot)
            self.answer = answer

        def start(self, state):
            self.finished = False

        def step(self, state):
            return self.answer

    class Late(Odd):
        """Answers well three times before that."""

        def step(self, state):
            return super(Odd, self).step(state) if len(self.states) < 3 else self.answer

        def start(self, state):
            self.goal = state.q

    for answer, got in (
        (Command(np.zeros(5)), "Command of shape (5,)"),
        (None, "None"),
        (np.zeros(6), "ndarray of shape (6,)"),
    ):
        plant, odd = RigidPlant(robot), Odd(robot, answer)
        with pytest.raises(InvalidValue, match=rf"step\(\) must return tangere.Command.* got {re.escape(got)}"):
            run(plant, odd, start=Q0)  # at once: before the plant was given anything
        late = Late(robot, answer)
        result = run(RigidPlant(robot), late, start=Q0, until=0.1)
        assert result.aborted.endswith(f"with 6 torques, got {got}")
        assert len(result.log) == 3


def test_a_first_step_that_fails_is_raised_and_all_is_closed(robot, tmp_path):
    class Closing:
        closed = 0

        def open(self, run): ...

        def row(self, *row): ...

        def close(self, result):
            self.closed += 1

    class Typo(Hold):
        def step(self, state):
            return state.quick

    plant, controller, seen = Arm(robot), Typo(robot), Closing()
    with pytest.raises(AttributeError, match="quick"):
        run(plant, controller, until=0.1, start=Q0, sinks=[seen], log=tmp_path / "log.mcap")
    assert (plant.closed, controller.stopped) == (1, 1)
    assert seen.closed == 1
    assert len(read_mcap(tmp_path / "log.mcap")) == 0


def test_a_log_knows_the_time_of_day_at_which_it_began(robot, tmp_path):
    before = time_ns()
    result = run(Arm(robot), Hold(robot), until=0.01, start=Q0)
    assert before <= result.log.start_ns <= time_ns()
    result.save(tmp_path / "mine")
    assert read_mcap(tmp_path / "mine" / "log.mcap").start_ns == result.log.start_ns
