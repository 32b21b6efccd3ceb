"""Our torque loop as a program: what it passes on, what it refuses, how it ends. One frame after the other, no sockets.

The properties that it must have, whatever comes: torques are those of this run, within their limits, and change no
faster than allowed; without news the last is held, then fades, then the arm is stopped; too fast or too far fades too.
"""

from __future__ import annotations

import numpy as np
import pytest

from tangere.plants import torque_loop as loop
from tangere.robots import robot
from tangere.script.compiler import load
from tangere.script.host import QuietHost, Setpoint
from tangere.script.machine import Machine
from tangere.types import State

ROBOT = robot("ur5e")
HOME = np.array((0.0, -1.5, 1.5, -1.5, -1.5, 0.0))
RUN = 77


class Loop:
    """The program with its registers; each frame is given a sample and, where something comes, a torque."""

    def __init__(self, version=(5, 26, 0), **limits) -> None:
        self.limits = loop.Limits.of(ROBOT, **limits)
        self.host = QuietHost()
        self.machine = Machine(load(loop.program(self.limits, RUN, version), version), ROBOT, HOME, self.host)
        self.sequence = 0

    def frame(self, tau=None, *, wish=loop.Wish.TORQUE, run=RUN, q=HOME, qd=None) -> Setpoint:
        if tau is not None:
            self.sequence += 1
            ints, floats = self.host.registers.in_int, self.host.registers.in_float
            ints[24:27] = [self.sequence, int(wish), run]
            floats[24:30] = np.broadcast_to(np.asarray(tau, dtype=float), (6,)).tolist()
        speed = np.zeros(6) if qd is None else np.asarray(qd, dtype=float)
        return self.machine.frame(State(0.0, 2e-3, np.asarray(q), speed, np.zeros(6)))

    def out(self, name: str) -> int:
        return self.host.registers.out_int[int(name.rpartition("_")[2])]

    @property
    def mode(self) -> int:
        return self.out(loop.MODE)

    @property
    def passed(self) -> np.ndarray:
        return np.array(self.host.registers.out_float[24:30])


def test_it_is_a_program_of_every_version_that_takes_torques() -> None:
    for version in ((5, 23, 0), (5, 25, 0), (5, 25, 1), (5, 26, 0), (10, 10, 0), (10, 12, 1)):
        one = Loop(version)
        one.frame()
        assert one.frame(1.0).tau is not None
        np.testing.assert_allclose(one.passed, 1.0)
    assert "friction_comp=True" in loop.program(one.limits, RUN, (5, 24, 0), friction=True)
    assert not loop.torque_known((5, 22, 1))
    assert not loop.torque_known((3, 15, 8))


def test_it_is_a_program_of_every_arm() -> None:
    """Also of one with a joint that turns without end (the UR3e's last)."""
    for arm in ("ur3e", "ur5", "ur10e", "ur30"):
        load(loop.program(loop.Limits.of(robot(arm)), RUN, (5, 26, 0)), (5, 26, 0))


def test_torques_are_passed_on_within_their_limits_and_rate() -> None:
    one = Loop()
    rng = np.random.default_rng(1)
    one.frame()
    before = np.zeros(6)
    for _ in range(500):
        wanted = rng.normal(0.0, 2.0, 6) * ROBOT.tau_max * rng.choice((0.01, 1.0))
        setpoint = one.frame(wanted)
        assert setpoint.tau is not None
        np.testing.assert_array_equal(setpoint.tau, one.passed)
        step, most = loop.CHANGE * ROBOT.tau_max, ROBOT.tau_max
        expected = np.clip(before + np.clip(wanted - before, -step, step), -most, most)
        np.testing.assert_allclose(one.passed, expected, rtol=1e-12)
        before = one.passed
        assert one.mode == loop.Mode.TORQUE
    assert one.out(loop.LATE) == 0
    assert one.out(loop.FRAMES) == 500


def test_without_news_it_holds_then_fades_then_stops() -> None:
    one = Loop(hold=3, fade=25)
    one.frame()
    one.frame(5.0)
    for _ in range(3):
        np.testing.assert_array_equal(one.frame().tau, np.full(6, 5.0))
        assert one.mode == loop.Mode.HELD
    for k in range(1, 25):
        np.testing.assert_allclose(one.frame().tau, 5.0 * (1.0 - k / 25.0))
        assert one.mode == loop.Mode.FADING
    assert one.frame().tau is None
    assert one.mode == loop.Mode.STOPPED
    assert one.out(loop.WHY) == 1
    one.frame()
    assert not one.machine.running
    assert one.out(loop.LATE) == 4  # three held, and the one with which the fading began


def test_fading_is_for_good() -> None:
    one = Loop()
    one.frame()
    one.frame(5.0)
    for _ in range(6):
        one.frame()
    assert one.mode == loop.Mode.FADING
    for _ in range(40):
        one.frame(5.0)  # news come again: too late
    assert one.mode == loop.Mode.STOPPED


def test_inputs_of_another_run_count_as_silence() -> None:
    one = Loop()
    for _ in range(5):
        one.frame(5.0, run=RUN - 1)  # left there by a client before
        assert one.mode == loop.Mode.IDLE
        np.testing.assert_array_equal(one.passed, 0.0)
    one.frame(5.0)
    assert one.mode == loop.Mode.TORQUE
    for _ in range(40):
        one.frame(5.0, run=RUN + 1)
    assert one.mode == loop.Mode.STOPPED


@pytest.mark.parametrize("joint", range(6))
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_too_fast_or_too_far_fades(joint: int, sign: float) -> None:
    unit = sign * np.eye(6)[joint]
    one = Loop()
    one.frame()
    one.frame(1.0, qd=0.99 * one.limits.speed_max[joint] * unit)
    assert one.mode == loop.Mode.TORQUE
    one.frame(1.0, qd=1.01 * one.limits.speed_max[joint] * unit)
    assert one.mode == loop.Mode.FADING
    assert loop.reason(one.out(loop.WHY)) == f"joint {joint + 1} was faster than its limit"
    one = Loop()
    one.frame()
    far = HOME.copy()
    far[joint] = (one.limits.q_max if sign > 0 else one.limits.q_min)[joint] + sign * 0.01
    one.frame(1.0, q=far, qd=-0.1 * unit)
    assert one.mode == loop.Mode.TORQUE  # on its way back
    one.frame(1.0, q=far, qd=0.1 * unit)
    assert one.mode == loop.Mode.FADING
    assert loop.reason(one.out(loop.WHY)) == f"joint {joint + 1} came to the end of its range"


def test_fading_brakes_what_moves() -> None:
    one = Loop()
    one.frame()
    qd = np.full(6, 0.1)
    one.frame(0.0, qd=qd)
    for _ in range(5):
        setpoint = one.frame(qd=qd)
    assert setpoint.tau is not None
    np.testing.assert_allclose(setpoint.tau, -loop.DAMPING * ROBOT.tau_max * 0.1)


def test_the_wish_to_end_stops_at_once_and_the_watchdog_is_set() -> None:
    one = Loop()
    watched: list[tuple[str, float, str]] = []
    one.host.watchdog = lambda *what: watched.append(what)  # type: ignore[method-assign]
    one.frame()
    assert watched == []
    one.frame(1.0)
    ((name, hertz, action),) = watched
    assert (name, action) == ("input_int_register_24", "stop")
    assert 1.0 / hertz > (loop.HOLD + loop.FADE) * 2e-3  # a second net: behind the first
    one.frame(1.0, wish=loop.Wish.END)
    assert one.mode == loop.Mode.STOPPED


def test_limits_only_go_down() -> None:
    with pytest.raises(ValueError, match="torque_max"):
        loop.Limits.of(ROBOT, torque_max=np.array(1000.0))
    with pytest.raises(ValueError, match="hold"):
        loop.Limits.of(ROBOT, hold=1000)
    assert loop.Limits.of(ROBOT, torque_max=np.array(5.0)).torque_max.tolist() == [5.0] * 6
