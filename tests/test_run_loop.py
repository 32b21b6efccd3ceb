"""The loop: who sees what and when, what is recorded, and that every end leaves a log and closes everything."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from time import time_ns
from types import SimpleNamespace

import numpy as np
import pytest

import tangere
from tangere.control.computed_torque import ComputedTorque
from tangere.control.guard import Guarded
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.logs.log import Log
from tangere.logs.mcap_log import McapFile
from tangere.logs.mcap_read import read_mcap
from tangere.loop import pacing, sinks
from tangere.loop.live import Change, LiveChannel
from tangere.loop.run import WIND_DOWN, run
from tangere.observe.acceleration import AccelerationObserver
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.momentum import MomentumObserver
from tangere.plants.mujoco_plant import MujocoPlant
from tangere.plants.pushes import Push
from tangere.plants.rigid import RigidPlant
from tangere.types import Command, Reference, State, Truth

Q0 = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
H = 1e-3
TIMES = ("cost", "cost_log")  # wall time: never twice the same


@pytest.fixture(scope="module")
def robot():
    return tangere.robot("ur10e")


class Arm:
    """The smallest plant: one RK2 step per period, a push on joint 2, and a fault if asked for."""

    def __init__(self, robot, push=(math.inf, math.inf), fail_at=math.inf, fault=None):
        self.robot, self.period, self.dof = robot, H, 6
        self.push, self.fail_at, self.fault = push, fail_at, fault
        self.closed = 0

    def reset(self, q, qd=None):
        self.k, self.q, self.qd, self.tau, self.ext = 0, np.array(q), np.zeros(6), np.zeros(6), np.zeros(6)
        return self.read()

    def read(self):
        if self.k >= self.fail_at:
            raise self.fault
        return State(self.k * H, H, self.q, self.qd, self.tau)

    def write(self, command):
        self.ext = np.zeros(6)
        self.ext[1] = 20.0 * (self.push[0] <= (self.k + 0.5) * H < self.push[1])
        self.tau = command.tau
        a = self.robot.forward_dynamics(self.q, self.qd, self.tau + self.ext)
        mid = self.q + H / 2 * self.qd, self.qd + H / 2 * a
        a = self.robot.forward_dynamics(*mid, self.tau + self.ext)
        self.q, self.qd, self.k = self.q + H * mid[1], self.qd + H * a, self.k + 1

    def truth(self):
        return Truth(self.q, self.qd, self.ext, self.robot.pose(self.q), np.zeros(6))

    def close(self):
        self.closed += 1


class Hold:
    """PD with gravity; keeps the states that it was given."""

    def __init__(self, robot, fail_at=math.inf, note=""):
        self.robot, self.fail_at, self.note = robot, fail_at, note
        self.states, self.events, self.stopped = [], [], 0

    def start(self, state):
        self.goal = state.q

    def step(self, state):
        if len(self.states) >= self.fail_at:
            raise RuntimeError("no idea")
        self.states.append(state)
        tau = self.robot.inverse_dynamics(state.q, state.qd, 100.0 * (self.goal - state.q) - 20.0 * state.qd)
        return Command(tau, self.note.format(len(self.states)) if len(self.states) % 100 > 50 else "")

    def on_event(self, event):
        self.events.append((event, len(self.states)))

    def stop(self):
        self.stopped += 1


class Still:
    duration = 0.4

    def __init__(self, robot):
        self.reference = Reference(Q0, np.zeros(6), np.zeros(6), robot.pose(Q0))

    def at(self, time):
        still = self.reference
        return Reference(still.q, still.qd, np.full(6, time), still.T)  # a mark of when it was asked


def test_a_push_is_recorded_felt_and_handed_to_the_reaction(robot):
    plant, controller, detector = Arm(robot, (0.1, 0.3)), Hold(robot), Detector(Thresholds.constant(1.0))
    observers = {"momentum": MomentumObserver(robot), "acceleration": AccelerationObserver(robot)}
    result = run(plant, controller, observers, trajectory=Still(robot), detector=detector, reaction=controller)
    log = result.log
    assert result.aborted == ""
    assert (plant.closed, controller.stopped) == (1, 1)
    assert len(log) == 400
    assert np.array_equal(log.time, np.arange(400) * H)
    # what was measured, commanded and true, row by row
    assert np.array_equal(log["q"], [s.q for s in controller.states])
    assert np.array_equal(log["tau"][1:], log["tau_cmd"][:-1])
    assert np.array_equal(log["q_true"], log["q"])
    assert np.array_equal(log["tau_ext_true"][:, 1], 20.0 * ((log.time > 0.1) & (log.time < 0.3 + H / 2)))
    assert np.array_equal(log.position("T_true")[7], robot.pose(log["q"][7])[:3, 3])
    assert np.array_equal(log["T_des"][0], robot.pose(Q0).ravel()[:12])
    assert np.array_equal(log["qdd_des"], np.repeat(log.time[:, None], 6, axis=1))
    # the estimate: exact, in the log, and in the very state that the controller saw
    since = np.clip(log.time - 0.1, 0.0, None)
    before_end = log.time < 0.3 + H / 2
    # 5e-3 Nm: the plant's second-order step, h^2/12 d3(M qd)/dt3 as the arm is pushed away with 3 rad/s2
    assert np.abs(log["residual"][:, 1] - 20 * -np.expm1(-50 * since))[before_end].max() < 5e-3
    assert np.array_equal(log["residual"], [s.tau_ext_hat for s in controller.states])
    assert np.abs(log["residual_acceleration"][150, 1] - 20.0) < 0.05
    # the touch: at the first sample above 1 Nm, given to the reaction before the step of the same sample
    (touch,) = result.events
    first = int(np.argmax(log["residual"][:, 1] > 1.0))
    assert touch.time_s == log.time[first]
    assert touch.joint == 2
    assert touch.end_s == log.time[int(np.argmax((log["residual"][:, 1] < 0.5) & (log.time > 0.3)))]
    ((event, steps),) = controller.events
    assert (event.time_s, event.phase, steps) == (touch.time_s, "raised", first)
    assert [note.text for note in log.notes] == [f"touch: joint 2, {touch.residual_nm[1]:.3g} Nm", "touch: ended"]
    # cost of each period
    assert np.all(log["cost"] > 0.0)
    assert result.timing.periods == 400
    assert result.timing.median <= result.timing.p99 <= result.timing.worst
    assert result.realtime_factor == pytest.approx(0.4 / result.wall)


def test_the_same_run_gives_the_same_bits_and_the_file_holds_them(robot, tmp_path):
    logs = []
    for name in ("a.mcap", "b.mcap"):
        plant = Arm(robot, (0.1, 0.3))
        result = run(
            plant, Hold(robot), [MomentumObserver(robot), MomentumObserver(robot, 100.0)], until=0.4, start=Q0,
            detector=Detector(Thresholds.constant(1.0)), log=tmp_path / name,
        )  # fmt: skip
        assert result.log_error == ""
        assert result.log_file == tmp_path / name
        kept = read_mcap(tmp_path / name)
        assert kept == result.log
        raised = [event["time_s"] for event in kept.events if event["phase"] == "raised"]
        assert raised == [event.time_s for event in result.events] != []
        ended = [event["end_s"] for event in kept.events if event["phase"] == "ended"]
        assert ended == [event.end_s for event in result.events if event.end_s is not None] != []
        logs.append(result.log.without(TIMES))
    assert logs[0] == logs[1]
    assert "residual_2" in logs[0]


def test_without_observer_truth_or_trajectory_there_are_no_such_columns(robot):
    plant = Arm(robot)
    bare = SimpleNamespace(
        period=H, dof=6, reset=plant.reset, read=plant.read, write=plant.write, close=plant.close
    )
    controller = Hold(robot)
    log = run(bare, controller, until=0.05, start=Q0).log
    assert list(log.columns) == ["time", "period", *TIMES, "q", "qd", "tau", "tau_cmd"]
    assert controller.states[0].tau_ext_hat is None


class Lost(Exception):
    pass


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Lost("robot is silent"), "the plant was lost: robot is silent"),
        (OSError(104, "Connection reset"), "the plant was lost"),
        (KeyboardInterrupt(), "interrupted from the keyboard"),
    ],
)
def test_a_plant_that_fails_and_a_user_who_has_enough_leave_the_log_so_far(robot, tmp_path, fault, said):
    plant, controller = Arm(robot, fail_at=100, fault=fault), Hold(robot)
    result = run(plant, controller, [MomentumObserver(robot)], until=1.0, start=Q0, log=tmp_path / "log.mcap")
    assert result.aborted.startswith(said)
    assert result.abort is fault
    assert len(result.log) == 100
    assert result.log.notes[-1].text.startswith(f"ended: {said}")
    assert (plant.closed, controller.stopped) == (1, 1)
    back = read_mcap(tmp_path / "log.mcap")
    assert back == result.log
    assert back.complete  # the run ended early, its record did not


def test_a_controller_that_raises_ends_the_run(robot):
    plant, controller = Arm(robot), Hold(robot, fail_at=30)
    result = run(plant, controller, until=1.0, start=Q0)
    assert result.aborted == "the controller failed: no idea"
    assert len(result.log) == 30
    assert (plant.closed, controller.stopped) == (1, 1)


def test_a_controller_that_gives_up_is_let_ramp_down(robot):
    class GivesUp(Hold):
        abort = None

        def step(self, state):
            if len(self.states) == 50:
                self.abort = RuntimeError("measurements broken")
            return super().step(state)

    result = run(Arm(robot), GivesUp(robot), until=5.0, start=Q0)
    assert result.aborted == "the controller gave up: measurements broken"
    assert len(result.log) == pytest.approx(50 + WIND_DOWN / H, abs=2)


def test_interventions_are_counted_and_said_once_each_time_they_begin(robot):
    controller = Hold(robot, note="torque limited: {} Nm")
    result = run(Arm(robot), controller, until=0.3, start=Q0)
    assert result.interventions == {"torque limited": 147}  # 51..99 of every hundred steps
    assert [note.text for note in result.log.notes] == [f"torque limited: {k} Nm" for k in (51, 151, 251)]


def test_a_log_file_that_cannot_be_made_is_refused_at_once(robot, tmp_path):
    with pytest.raises(InvalidValue, match="cannot write"):
        run(Arm(robot), Hold(robot), until=0.1, start=Q0, log=tmp_path / "no" / "log.mcap")
    if Path("/dev/full").exists():  # where writing fails and opening does not
        with pytest.raises(InvalidValue, match="cannot write /dev/full: No space left"):
            run(Arm(robot), Hold(robot), until=0.1, start=Q0, log="/dev/full")


def test_a_disk_that_fills_up_is_reported_and_the_run_goes_on(robot, tmp_path, monkeypatch):
    def full(self, *args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(McapFile, "write", full)
    result = run(Arm(robot), Hold(robot), until=0.1, start=Q0, log=tmp_path / "log.mcap")
    assert result.aborted == ""
    assert len(result.log) == 100
    assert "No space left on device" in result.log_error
    assert not read_mcap(tmp_path / "log.mcap").complete


def test_what_is_wrong_before_the_first_step_is_raised_and_the_plant_closed(robot):
    plant = Arm(robot)
    for duration, start, said in ((0.1, None, "start"), (None, Q0, "until"), (math.inf, Q0, "inf"), (-1, Q0, "-1")):
        with pytest.raises(InvalidValue, match=said):
            run(plant, Hold(robot), until=duration, start=start)

    class Broken(Hold):
        def start(self, state):
            raise InvalidValue("the first sample is broken")

    controller = Broken(robot)
    with pytest.raises(InvalidValue, match="first sample"):
        run(plant, controller, until=0.1, start=Q0)
    assert plant.closed == 5


def test_progress_ends_at_the_end(robot):
    seen = []
    run(Arm(robot), Hold(robot), until=0.1, start=Q0, progress=lambda done, whole: seen.append((done, whole)))
    assert seen[0] == (0.0, 0.1)
    assert seen[-1] == (pytest.approx(0.1), 0.1)


def test_paced_periods_begin_by_the_clock(robot):
    result = run(Arm(robot), Hold(robot), until=0.3, start=Q0, paced=True)
    assert result.wall > 0.29
    assert result.realtime_factor < 1.04
    late = result.log["lateness"]
    assert late[0] == 0.0
    assert np.all(late >= 0.0)
    assert np.median(late) < H  # microseconds alone; the rest is for a machine that does something else
    assert result.timing.late == np.count_nonzero(late > H)
    assert result.timing.latest == late.max()
    # processor time, not waiting time: 300 periods of 1 ms, of which the work takes some 30 us
    assert 0.0 < result.log["cpu"][1:].min()
    assert np.median(result.log["cpu"]) < H / 2
    assert result.timing.busiest == result.log["cpu"].max()


def test_a_pause_of_the_machine_while_only_waiting_is_told_from_our_own_work(monkeypatch):
    clock, stops = [0.0], [0.0139]  # s; between two readings of the clock the machine once stops for 1.6 ms

    def reading():
        clock[0] += 1e-6
        if stops and clock[0] > stops[0]:
            stops.pop()
            clock[0] += 1.6e-3
        return clock[0]

    monkeypatch.setattr(pacing, "perf_counter", reading)
    monkeypatch.setattr(pacing, "sleep", lambda s: clock.__setitem__(0, clock[0] + s))
    pacer = pacing.Pacer(2e-3)
    late = [pacer.wait() for _ in range(10)]
    assert pacer.pauses == 1
    assert pacer.longest_pause == pytest.approx(1.6e-3, abs=2e-6)  # a reading before and after
    assert np.count_nonzero(np.array(late) > 1e-3) == 1
    assert 0.9 * 10 * pacing.SPIN < pacer.waited < 1.1 * 10 * pacing.SPIN + 1.6e-3


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

    for answer in (Command(np.zeros(5)), None, np.zeros(6)):
        assert run(RigidPlant(robot), Odd(robot, answer), start=Q0).aborted.startswith("the controller failed")


def test_a_log_knows_the_time_of_day_at_which_it_began(robot, tmp_path):
    before = time_ns()
    result = run(Arm(robot), Hold(robot), until=0.01, start=Q0)
    assert before <= result.log.start_ns <= time_ns()
    result.save(tmp_path / "mine")
    assert read_mcap(tmp_path / "mine" / "log.mcap").start_ns == result.log.start_ns
