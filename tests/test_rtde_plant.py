"""A UR arm as a plant, against the virtual controller in a process of its own: it stands, sags, follows, feels."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from virtual_arms import listening, virtual

import tangere
from tangere.apps.virtual_ur.inside import HOME
from tangere.control.computed_torque import ComputedTorque
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, PlantLost
from tangere.model.joint_sizes import typical_drives
from tangere.model.loading import load
from tangere.observe.momentum import MomentumObserver
from tangere.planning.path_trajectory import ramped_circle
from tangere.plants import RigidPlant, RtdePlant, twin
from tangere.plants import torque_loop as loop
from tangere.robots import Robot
from tangere.rtde.client import Rtde
from tangere.rtde.dashboard import Dashboard
from tangere.types import Command, State, Trajectory

KILLS = 100 if os.environ.get("TANGERE_SOAK") else 20
FRAME = 2e-3  # [s]


@contextmanager
def plant(host: str, **options) -> Iterator[RtdePlant]:
    arm = RtdePlant(host, **options)
    try:
        yield arm
    finally:
        arm.close()


def weightless(arm: RtdePlant, state: State) -> Command:
    """No torque beside gravity."""
    return Command(arm.robot.gravity_torque(state.q))


def standing(host: str) -> np.ndarray:
    with listening(host, "actual_q") as rtde:
        values = rtde.receive(5.0)
        assert values is not None
        return np.array(values["actual_q"])


def test_zero_torque_holds() -> None:
    with virtual("--plant", "mujoco", "--wait-for-ever", clock="lockstep") as host, plant(host) as arm:
        state = arm.reset(HOME)
        away = 0.0
        while state.time < 10.0:
            arm.write(weightless(arm, state))
            state = arm.read()
            away = max(away, float(np.abs(state.q - HOME).max()))
        assert away < 1e-3  # [rad]
        assert (arm.late, arm.lost, arm.frames) == (0, 0, 5000)


def test_a_payload_that_nobody_told_of_sags_as_the_model_says() -> None:
    """1 kg at the flange of an arm stretched out: the shoulder gives way, friction holds the other joints.

    The model is that of one joint: M22 qdd = what the payload weighs there - what is left of the friction. The drives
    make up for friction by the speed, so that a joint at rest has all of it.
    """
    stretched = np.array((0.0, 0.0, 0.0, -np.pi / 2, 0.0, 0.0))
    viscous, coulomb, seconds = 0.9, 0.8, 0.4
    options = ("--plant", "mujoco", "--payload", "1", "--sensors", "ideal", "--start", "0,0,0,-90,0,0")
    options += ("--wait-for-ever",)
    with virtual(*options, clock="lockstep") as host, plant(host, friction=(viscous, coulomb)) as arm:
        state = arm.reset(stretched)
        while state.time < seconds:
            arm.write(weightless(arm, state))
            state = arm.read()
        sunk = state.q - stretched

    believed = Robot(typical_drives(load("ur5e")), rotor_inertia=True)
    law, loaded = JointFriction.of(believed.drives), twin(believed, payload=1.0)
    q, qd, step = stretched.copy(), 0.0, 1e-4
    for _ in range(round(seconds / step)):
        weight = float((believed.gravity_torque(q) - loaded.gravity_torque(q))[1])
        rest = law.coulomb[1] * (1 - coulomb * np.tanh(qd / law.width)) + (1 - viscous) * law.viscous[1] * qd
        qd += step * (weight - rest) / float(loaded.mass_matrix(q)[1, 1])
        q[1] += step * qd
    said = q[1] - stretched[1]
    assert said > 0.02  # [rad] downwards: more than any drift
    assert sunk[1] == pytest.approx(said, rel=0.1)
    assert np.abs(np.delete(sunk, 1)).max() < 1e-3


class Frames(RigidPlant):
    """The rigid arm at 500 Hz, without any controller around it: steps of 1 ms, the torque held for a frame.

    A sample is answered within its frame, so that a torque shows in the next one. As over RTDE, the torque travels
    without gravity, and gravity is added by the model at the sample that the torque was computed from.
    """

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot, 1e-3, friction=JointFriction.of(robot.drives))
        self.period = FRAME

    def write(self, command: Command) -> None:
        self.period = 1e-3
        g = self.robot.gravity_torque(self.read().q)
        total = Command((command.tau - g) + g)
        super().write(total)
        super().write(total)
        self.period = FRAME

    def read(self) -> State:
        now = super().read()
        return State(now.time, FRAME, now.q, now.qd, now.tau, now.wrench)


class Pushed:
    """The same controller; at a time something pushes the virtual arm."""

    def __init__(self, controller: ComputedTorque, host: str, at: float) -> None:
        self._inner, self._desk, self._at = controller, Dashboard(host), at
        self.robot, self.pushed = controller.robot, np.inf

    def start(self, state: State) -> None:
        self._inner.start(state)

    def step(self, state: State) -> Command:
        if state.time >= self._at and self.pushed == np.inf:
            assert self._desk.ask("push joint=2,torque=20,duration=1") == "Pushing"
            self.pushed = state.time
        return self._inner.step(state)

    def stop(self) -> None:
        self._inner.stop()
        self._desk.close()


@contextmanager
def at_the_circle() -> Iterator[tuple[str, ComputedTorque, Trajectory]]:
    """A virtual UR10e in lock-step at the start of 000's circle, and the controller of that circle."""
    believed = Robot(typical_drives(load("ur10e")), rotor_inertia=True)
    circle = ramped_circle(believed, period=FRAME)
    degrees = ",".join(repr(float(x)) for x in np.degrees(circle.at(0.0).q))
    options = ("--plant", "rigid", "--sensors", "ideal", "--wait-for-ever", "--start", degrees)
    with virtual(*options, robot="ur10e", clock="lockstep") as host:
        yield host, ComputedTorque(believed, circle, friction=JointFriction.of(believed.drives)), circle


def test_the_circle_is_the_same_as_in_process() -> None:
    with at_the_circle() as (host, controller, circle):
        robot = controller.robot
        arm = RtdePlant(host, robot)
        over_rtde = tangere.run(arm, controller, until=3.0, trajectory=circle)
    assert not over_rtde.aborted
    assert (arm.late, arm.lost) == (0, 0)
    in_process = tangere.run(Frames(robot), controller, until=3.0, trajectory=circle)
    assert len(over_rtde.log) == len(in_process.log) == 1500
    assert np.ptp(over_rtde.log["q"], axis=0).max() > 0.2  # [rad] it went somewhere
    np.testing.assert_allclose(over_rtde.log["q"], in_process.log["q"], atol=1e-9, rtol=0.0)
    # what the observer is given is the torque that was passed on since the sample before
    np.testing.assert_allclose(over_rtde.log["tau"][1:], over_rtde.log["tau_cmd"][:-1], atol=1e-9, rtol=0.0)


def test_a_push_is_felt_within_12_ms() -> None:
    with at_the_circle() as (host, controller, circle):
        pushed = Pushed(controller, host, 1.5)
        observer = MomentumObserver(controller.robot, 50.0, friction=controller.friction)
        arm = RtdePlant(host, controller.robot)
        felt = tangere.run(arm, pushed, observer, detector=5.0, until=2.0, trajectory=circle)
    assert not felt.aborted
    (event,) = felt.events
    assert event.joint == 2
    assert 0.0 < event.time_s - pushed.pushed <= 0.012


def swing(host: str, sign: float) -> None:
    """A torque client that swings the arm until somebody kills it."""
    arm = RtdePlant(host, "ur5e")
    start = standing(host)
    state = arm.reset(start)
    amplitude = sign * np.array((0.4, 0.15, -0.3, 0.4, 0.4, 0.6))
    stiff = np.array((800.0, 800.0, 400.0, 80.0, 80.0, 80.0))
    while True:
        t = 2.5 * state.time
        away = start + amplitude * (1.0 - np.cos(t)) / 2.0 - state.q
        speed = amplitude * 1.25 * np.sin(t) - state.qd
        arm.write(Command(stiff * away + 0.1 * stiff * speed + arm.robot.gravity_torque(state.q)))
        state = arm.read()


def test_a_killed_client_leaves_the_arm_stopped() -> None:
    """Killed while it moves: state 5 within 60 ms of the controller's clock after its last torque, rest in 250 ms."""
    rng = np.random.default_rng(3)
    context = multiprocessing.get_context("fork")
    names = ("actual_qd", "runtime_state", loop.MODE, loop.SEQUENCE, loop.WHY)
    with virtual("--sensors", "ideal", "--wait-for-ever", clock="lockstep") as host, listening(host, *names) as rtde:
        for k in range(KILLS):
            client = context.Process(target=swing, args=(host, (-1.0) ** k), daemon=True)
            client.start()
            fast = rng.uniform(0.1, 0.5)  # [rad/s]
            while True:
                values = rtde.receive(30.0)
                assert values is not None
                assert client.is_alive()
                if values[loop.MODE] == loop.Mode.TORQUE and np.abs(values["actual_qd"]).max() > fast:
                    break
            client.kill()
            client.join()
            last = stopped = None
            sequence = values[loop.SEQUENCE]
            while stopped is None:
                values = rtde.receive(5.0)
                assert values is not None
                if values[loop.SEQUENCE] != sequence or last is None:
                    sequence, last = values[loop.SEQUENCE], values["timestamp"]
                if values[loop.MODE] == loop.Mode.STOPPED:
                    stopped = values["timestamp"]
            assert stopped - last < 0.060
            assert values[loop.WHY] == 1
            while np.abs(values["actual_qd"]).max() >= 0.01:
                values = rtde.receive(5.0)
                assert values is not None
                assert values["timestamp"] - last < 0.250
            while values["runtime_state"] != 1:
                values = rtde.receive(5.0)
                assert values is not None


def test_two_clients_are_told_who_holds_the_registers() -> None:
    with virtual(clock="lockstep") as host, plant(host) as first:
        first.reset(HOME)
        with plant(host) as second, pytest.raises(PlantLost, match=rf"process {os.getpid()} ") as problem:
            second.reset(HOME)
        assert "input_int_register_24" in str(problem.value)
    with virtual(clock="fast") as host, Rtde(host) as other:
        other.inputs(loop.INPUTS[:2])
        with plant(host) as arm, pytest.raises(PlantLost, match="another program or a field bus"):
            arm.reset(HOME)


def test_silence_is_told_and_the_next_run_starts_anew() -> None:
    with virtual("--sensors", "ideal", clock="lockstep") as host, plant(host) as arm:
        state = arm.reset(HOME)
        for _ in range(10):
            arm.write(weightless(arm, state))
            state = arm.read()
        with pytest.raises(PlantLost, match="did not come in time"):
            deque((arm.read() for _ in range(100)), 0)  # without a torque: lock-step goes on by itself after a while
        arm.close()
        state = arm.reset(HOME)
        for _ in range(10):
            arm.write(weightless(arm, state))
            state = arm.read()
        assert arm.frames > 5


def test_close_leaves_a_moving_arm_stopped() -> None:
    names = ("actual_qd", "runtime_state", loop.MODE)
    with virtual("--sensors", "ideal", "--wait-for-ever", clock="lockstep") as host, listening(host, *names) as rtde:
        with plant(host) as arm:
            state = arm.reset(HOME)
            while np.abs(state.qd).max() < 0.3:
                arm.write(Command(arm.robot.gravity_torque(state.q) + np.array((25.0, 0, 0, 0, 0, 0))))
                state = arm.read()
        while rtde.waiting:
            values = rtde.receive(5.0)
        assert values is not None
        assert np.abs(values["actual_qd"]).max() < 0.02
        assert values["runtime_state"] == 1
        assert values[loop.MODE] == loop.Mode.STOPPED
        assert arm.said[-1].startswith("0 of ")


@pytest.mark.parametrize(
    ("options", "start", "said"),
    [
        (("--polyscope", "5.22.1"), HOME, "5.23"),
        (("--profile", "remote-off"), HOME, "remote control"),
        (("--profile", "booting"), HOME, "powered off"),
        ((), np.add(HOME, (0.1, 0, 0, 0, 0, 0)), "stands elsewhere: joint 1"),
    ],
)
def test_what_is_not_ready_is_refused(options, start, said) -> None:
    with virtual(*options) as host, plant(host) as arm, pytest.raises((InvalidValue, PlantLost), match=said):
        arm.reset(start)


def test_another_arm_is_noticed_by_its_gravity() -> None:
    with (
        virtual() as host,
        plant(host, arm=tangere.robot("ur10e")) as arm,
        pytest.raises(InvalidValue, match="by our model of ur10e"),
    ):
        arm.reset(HOME)


def test_versions_without_scales_have_friction_on_or_off() -> None:
    options = ("--polyscope", "5.24.0", "--wait-for-ever")
    with virtual(*options, clock="lockstep") as host, plant(host, friction=(0.5, 0.5)) as arm:
        state = arm.reset(HOME)
        for _ in range(20):
            arm.write(weightless(arm, state))
            state = arm.read()
        assert "wholly" in arm.said[0]
        assert state.time == pytest.approx(0.04)  # no control_step there: by the clock


def test_a_torque_that_is_no_number_is_never_sent() -> None:
    arm = object.__new__(RtdePlant)  # of no controller: it is refused before anything could be sent
    arm._gravity = np.zeros(6)
    for bad in (np.nan, np.inf):
        with pytest.raises(InvalidValue, match="a torque that is no number"):
            arm.write(Command(np.array([0.0, bad, 0.0, 0.0, 0.0, 0.0])))
