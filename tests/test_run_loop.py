"""The loop: who sees what and when, what is recorded, and that every end leaves a log and closes everything."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.logs.mcap_log import McapFile
from tangere.logs.mcap_read import read_mcap
from tangere.loop import result as pacing
from tangere.loop.run import WIND_DOWN, run
from tangere.observe.acceleration import AccelerationObserver
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.momentum import MomentumObserver
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
    assert [note.text for note in log.notes] == [f"touch: {touch.reason}", "touch: ended"]
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
    own = r"the controller failed: no idea \(RuntimeError in test_run_loop\.py, line \d+\)"
    assert re.fullmatch(own, result.aborted)
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
    assert np.min(late[1:]) < H  # microseconds on an idle machine; one that does something else meets some of them
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
    asleep = pacing.Pacer(2e-3, made_up=0.1)  # what makes up for lateness need not begin to the microsecond
    assert max(asleep.wait() for _ in range(10)) < 1e-5
    assert asleep.waited < 10 * 1e-5


def test_what_is_made_up_for_keeps_the_clock_and_a_longer_delay_starts_the_schedule_anew(monkeypatch):
    clock = [0.0]

    def reading():
        clock[0] += 1e-6
        return clock[0]

    monkeypatch.setattr(pacing, "perf_counter", reading)
    monkeypatch.setattr(pacing, "sleep", lambda s: clock.__setitem__(0, clock[0] + s))

    def ends(made_up, delay):  # 100 periods, of which the tenth is held up
        clock[0] = 0.0
        pacer = pacing.Pacer(2e-3, made_up)
        for k in range(100):
            pacer.wait()
            clock[0] += delay if k == 9 else 1e-4
        return clock[0]

    assert ends(0.1, 0.05) == pytest.approx(0.2, abs=1e-3)
    assert ends(0.0, 0.05) == pytest.approx(0.248, abs=1e-3)
    assert ends(0.1, 0.15) == pytest.approx(0.348, abs=1e-3)
