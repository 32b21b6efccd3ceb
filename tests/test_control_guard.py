"""The guard: limits are reported, broken samples and missed periods held, then ramped down; the black box is full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_control_simulator import Run, Wave, simulate

import tangere
from tangere.control import ComputedTorque, ControlAborted, Guarded
from tangere.control.guard import HOLD, RAMP, SILENCE
from tangere.errors import InvalidValue, TangereError
from tangere.types import Array, Command, State

ROBOT = tangere.robot("ur10e", rotor_inertia=True)
Q = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
WAVE = Wave(Q, [0.3, 0.2, 0.3, 0.4, 0.3, 0.5], [1.0, 1.3, 0.7, 1.9, 1.1, 1.5])
PERIOD = 1e-3


def sample(q: Any = Q, qd: Any = None, time: float = 0.0, period: float = PERIOD) -> State:
    return State(time, period, np.array(q, float), np.zeros(6) if qd is None else np.array(qd, float), np.zeros(6))


class Says:
    """A controller that answers what it is told to."""

    def __init__(self, answer: Callable[[State], Array]) -> None:
        self.answer, self.stopped = answer, False

    def start(self, state: State) -> None: ...
    def step(self, state: State) -> Command:
        return Command(self.answer(state), "own note")

    def stop(self) -> None:
        self.stopped = True


def constant(tau: Any, **options: Any) -> Guarded:
    guard = Guarded(Says(lambda _: np.array(tau, float)), ROBOT, period=PERIOD, **options)
    guard.start(sample())
    return guard


def guarded_run(broken: dict[int, Callable[[State], State]], duration: float = 1.5) -> tuple[Guarded, Run]:
    """Computed torque on the wave, with some samples replaced."""
    guard = Guarded(ComputedTorque(ROBOT, WAVE), ROBOT, period=PERIOD)
    start = WAVE.at(0.0)

    def measure(k: int, state: State) -> State:
        return broken[k](state) if k in broken else state

    return guard, simulate(ROBOT, guard, start.q, qd=start.qd, duration=duration, measure=measure)


def nan_q(state: State) -> State:
    return replace(state, q=np.where(np.arange(6) == 2, np.nan, state.q))


FAULTS: dict[str, tuple[Callable[[State], State], str]] = {
    "nan in q": (nan_q, "q of joint 3 is not finite"),
    "nan in qd": (lambda s: replace(s, qd=np.where(np.arange(6) == 1, np.nan, s.qd)), "qd of joint 2 is not finite"),
    "inf in qd": (lambda s: replace(s, qd=np.where(np.arange(6) == 4, -np.inf, s.qd)), "qd of joint 5 is not finite"),
    "everything nan": (lambda s: replace(s, q=s.q * np.nan, qd=s.qd * np.nan), "q of joint 1 is not finite"),
    "too fast": (lambda s: replace(s, qd=s.qd + np.array([0, 9.0, 0, 0, 0, 0])), "joint 2 reports"),
    "missed period": (lambda s: replace(s, period=4 * PERIOD), "period of 4 ms, nominal 1 ms"),
    "no period": (lambda s: replace(s, period=0.0), "period of 0 ms"),
    "nan period": (lambda s: replace(s, period=np.nan), "period of nan ms"),
}


def test_nothing_happens_while_all_is_well() -> None:
    guard, run = guarded_run({})
    bare = simulate(ROBOT, ComputedTorque(ROBOT, WAVE), WAVE.at(0.0).q, qd=WAVE.at(0.0).qd, duration=1.5)
    assert np.all(run.tau == bare.tau)
    assert set(run.notes) == {""}
    assert guard.abort is None
    assert (guard.limited, guard.rate_limited, guard.held) == (0, 0, 0)


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_few_broken_samples_are_held(name: str) -> None:
    """The last good torque, a note, and then on as before."""
    fault, words = FAULTS[name]
    guard, run = guarded_run(dict.fromkeys(range(500, 500 + HOLD), fault))
    assert guard.abort is None
    assert guard.held == HOLD
    for k in range(500, 500 + HOLD):
        assert np.all(run.tau[k] == run.tau[499])
        assert run.notes[k].startswith("held: ")
        assert words in run.notes[k]
    assert set(run.notes[:500] + run.notes[500 + HOLD :]) == {""}
    error = np.abs(run.q - [WAVE.at(t).q for t in run.time]).max()
    assert error < 1e-3  # 5 ms of constant torque: hardly seen


@pytest.mark.parametrize("name", list(FAULTS))
def test_too_many_broken_samples_end_it(name: str) -> None:
    """Ramp to gravity compensation, the arm comes to rest, the abort says why and carries the states before."""
    fault, words = FAULTS[name]
    guard, run = guarded_run(dict.fromkeys(range(500, 5000), fault), duration=3.0)
    assert np.all(np.isfinite(run.tau))
    assert all(note.startswith("held: ") for note in run.notes[500 : 500 + HOLD])
    assert all(note.startswith("aborted: ") for note in run.notes[500 + HOLD :])
    assert np.abs(np.diff(run.tau[500:], axis=0)).max() < 5.0  # no jump: a ramp of 0.2 s
    assert guard.abort is not None
    assert words in guard.abort.reason
    assert guard.abort.time == pytest.approx((500 + HOLD) * PERIOD)
    states = guard.abort.states
    assert len(states) == 200
    assert [s.time for s in states] == pytest.approx((np.arange(200) + 306) * PERIOD)  # oldest first
    ramp = 500 + HOLD + round(RAMP / PERIOD)
    if "period" in name:  # it can still be measured: it brakes
        assert np.abs(run.qd[-1]).max() < 1e-3
        assert run.tau[-1] == pytest.approx(ROBOT.gravity_torque(run.q[-1]), abs=0.1)
    else:  # blind: gravity of the last good place
        assert run.tau[ramp:] == pytest.approx(np.tile(ROBOT.gravity_torque(run.q[499]), (len(run.tau) - ramp, 1)))


def test_only_faults_in_a_row_count() -> None:
    """Four broken, one good, four broken, ...: held each time, never given up."""
    guard, _ = guarded_run({k: nan_q for k in range(500, 700) if k % HOLD})
    assert guard.abort is None
    assert guard.held == 160


def test_it_stays_aborted_when_the_samples_are_good_again() -> None:
    guard, run = guarded_run(dict.fromkeys(range(500, 520), nan_q), duration=2.0)
    assert guard.abort is not None
    assert np.abs(run.qd[-1]).max() < 1e-3  # and brakes with them
    assert run.notes[-1].startswith("aborted: q of joint 3")


def test_a_jump_of_the_encoder_is_noted() -> None:
    offset = np.array([0, 0, 0, 0.2, 0, 0])
    guard, run = guarded_run({500: lambda s: replace(s, q=s.q + offset)})
    assert run.notes[500] == "held: q of joint 4 jumped"
    assert run.notes[501] == "held: q of joint 4 jumped"  # and back again
    assert set(run.notes[502:]) == {""}
    assert guard.abort is None


def test_a_jump_away_from_zero_is_noted() -> None:
    guard = Guarded(Says(lambda _: np.zeros(6)), ROBOT, period=PERIOD)
    guard.start(sample(np.zeros(6)))
    assert guard.step(sample(np.zeros(6))).note == "own note"
    assert guard.step(sample(0.2 * (np.arange(6) == 3))).note == "held: q of joint 4 jumped"


def test_a_jump_is_measured_against_the_time_that_passed() -> None:
    """The same step within two periods is half the speed."""
    step = 1.5 * 2.0 * ROBOT.qd_max[3] * PERIOD * (np.arange(6) == 3)
    guard = constant(np.zeros(6))
    guard.step(sample())
    assert guard.step(sample(Q + step)).note == "held: q of joint 4 jumped"
    guard = constant(np.zeros(6))
    guard.step(sample())
    assert guard.step(sample(Q + step, period=2 * PERIOD)).note == "own note"


def test_silence_ends_it_at_once() -> None:
    guard = constant(ROBOT.gravity_torque(Q))
    guard.step(sample())
    command = guard.step(sample(period=1.5 * SILENCE))
    assert command.note.startswith("aborted: period of 150 ms")
    assert isinstance(guard.abort, TangereError)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda s: np.full(6, np.nan), "controller answered"),
        (lambda s: np.array([0, 0, np.inf, 0, 0, 0]), "controller answered"),
        (lambda s: np.zeros(5), "controller raised ValueError"),
        (lambda s: [0.0] * 6, "controller raised AttributeError"),
        (lambda s: np.zeros((6, 1)), "controller answered"),
        (lambda s: 1 / 0, "controller raised ZeroDivisionError"),
        (lambda s: ROBOT.gravity_torque(s.q * np.nan), "controller raised InvalidValue: q: every entry must be finite"),
    ],
    ids=["nan", "inf", "too short", "a list", "a column", "division", "our own error"],
)
def test_a_broken_controller(answer: Any, words: str) -> None:
    good = ROBOT.gravity_torque(Q)
    guard = Guarded(Says(lambda s: good if s.time < 0.0105 else answer(s)), ROBOT, period=PERIOD)
    guard.start(sample())
    commands = [guard.step(sample(time=k * PERIOD)) for k in range(400)]
    assert commands[10].note == "own note"
    for command in commands[11 : 11 + HOLD]:
        assert np.all(command.tau == good)
        assert command.note.startswith("held: " + words)
    assert all(c.note.startswith("aborted: " + words) for c in commands[11 + HOLD :])
    assert commands[-1].tau == pytest.approx(ROBOT.gravity_torque(Q))
    assert guard.abort is not None


def test_a_controller_broken_from_the_first_step() -> None:
    guard = constant(np.full(6, np.nan))
    command = guard.step(sample())
    assert command.note.startswith("aborted: ")
    assert command.tau == pytest.approx(ROBOT.gravity_torque(Q))  # there is no last torque: gravity is the best guess


def test_torque_limit_is_reported_not_hidden() -> None:
    tau = ROBOT.tau_max * [0.5, -1.2, 0.1, 0.0, 0.0, 1.1]
    guard = constant(tau)
    command = guard.step(sample())
    assert command.tau == pytest.approx(ROBOT.tau_max * [0.5, -1.0, 0.1, 0.0, 0.0, 1.0])
    assert command.note == "own note; torque of joint 2 limited: -396 Nm to 330 Nm"
    assert guard.limited == 1


@pytest.mark.parametrize("over", [1.001, 1.04])
def test_a_little_more_than_one_joint_bears_is_cut_off(over: float) -> None:
    """The sum of squares is looked at first, and one joint alone makes it little more than 1."""
    tau = np.zeros(6)
    tau[3] = over * ROBOT.tau_max[3]
    command = constant(tau).step(sample())
    assert command.tau[3] == pytest.approx(ROBOT.tau_max[3], rel=1e-12)
    assert "joint 4" in command.note


def test_many_torques_below_their_limits_pass() -> None:
    tau = 0.9 * ROBOT.tau_max  # each below, all together beyond the cheap test
    command = constant(tau).step(sample())
    assert np.all(command.tau == tau)
    assert command.note == "own note"


def test_torque_rate_is_limited_and_the_goal_reached() -> None:
    rate = np.array([1000.0] * 6)
    values = [np.zeros(6), *[np.array([10.0, -5.0, 0.5, 0, 0, 0])] * 12]
    guard = Guarded(Says(lambda s: values[round(s.time / PERIOD)]), ROBOT, period=PERIOD, rate_max=rate)
    guard.start(sample())
    commands = [guard.step(sample(time=k * PERIOD)) for k in range(12)]
    tau = np.array([c.tau for c in commands])
    assert np.abs(np.diff(tau, axis=0)).max() <= 1.0 + 1e-12
    assert commands[1].note == "own note; torque rate of joint 1 limited"
    assert commands[11].note == "own note"
    assert tau[11] == pytest.approx(values[-1])
    assert guard.rate_limited == 9


def test_black_box_before_it_is_full() -> None:
    guard = constant(np.zeros(6), history=5)
    for k in range(3):
        guard.step(sample(time=k * PERIOD))
    assert [s.time for s in guard.states()] == [0.0, PERIOD, 2 * PERIOD]
    for k in range(3, 12):
        guard.step(sample(time=k * PERIOD))
    assert [round(s.time / PERIOD) for s in guard.states()] == [7, 8, 9, 10, 11]


def test_start_refuses_a_broken_first_sample() -> None:
    guard = Guarded(Says(lambda _: np.zeros(6)), ROBOT, period=PERIOD)
    with pytest.raises(InvalidValue, match="first sample is broken: q of joint 1 is not finite"):
        guard.start(sample(Q * np.nan))


def test_stop_reaches_the_controller_and_start_begins_anew() -> None:
    inner = Says(lambda _: np.full(6, np.nan))
    guard = Guarded(inner, ROBOT, period=PERIOD)
    guard.start(sample())
    guard.step(sample())
    assert guard.abort is not None
    guard.stop()
    assert inner.stopped
    guard.start(sample())
    assert guard.abort is None
    assert guard.states() == ()


def test_the_error_carries_its_states() -> None:
    error = ControlAborted("why", 1.25, (sample(), sample()))
    assert (error.reason, error.time, len(error.states)) == ("why", 1.25, 2)
    assert "control aborted at 1.2500 s: why" in str(error)


@pytest.mark.parametrize(
    "bad", [{"period": 0.0}, {"period": np.nan}, {"period": 1e-3, "torque_max": 0.0}, {"period": 1e-3, "hold": -1}]
)
def test_misuse(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Guarded(Says(lambda _: np.zeros(6)), ROBOT, **bad)
