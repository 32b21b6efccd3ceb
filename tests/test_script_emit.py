"""Programs for the inside of a controller: what they compute is what our own observer and controllers compute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import relative_error

from tangere.apps.virtual_ur.controller import Controller
from tangere.apps.virtual_ur.inside import Inside
from tangere.apps.virtual_ur.modes import Profile
from tangere.cli.main import main
from tangere.control.computed_torque import ComputedTorque
from tangere.control.joint_impedance import JointImpedance
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.model.loading import load, names
from tangere.observe.drive_model import RIPPLES, DriveModel
from tangere.observe.momentum import MomentumObserver
from tangere.plants.inside import LAWS, emitted
from tangere.robots import Robot, robot
from tangere.script.compiler import load as compiled
from tangere.script.host import QuietHost
from tangere.script.machine import Machine
from tangere.script.resolve import check
from tangere.types import Command, State

VERSION = (5, 26, 0)
HOME = np.array((0.3, -1.4, 1.5, -1.6, -1.5, 0.2))
FRAME = 2e-3
LIMIT = 4.0  # [Nm]
UR_ARMS = [name for name in names() if name.startswith("ur")]


class Told(QuietHost):
    """A host that has the currents which a test gives it."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, list[float]] = {}

    def value(self, name: str) -> Any:
        return list(self.fields[name])


def motion(k: int, speed: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """q and qd of all joints at frame k, each with an own frequency."""
    w, t = speed * np.array([0.7, 1.1, 1.3, 1.9, 2.3, 2.9]), k * FRAME
    return HOME + 0.4 * np.sin(w * t), 0.4 * w * np.cos(w * t)


def drive(rng: np.random.Generator) -> DriveModel:
    """Every term that the law of a drive has."""
    numbers = {name: rng.uniform(0.1, 2.0, 6) for name in ("gain", "coulomb", "viscous", "offset", "load", "spread")}
    rest = {name: np.zeros(6) for name in ("rotor_inertia", "stiction", "mean_load")}
    thin = {"quadratic": rng.uniform(-0.3, 0.0, 6), "orders": (1, 2)}
    thin |= {name: rng.normal(0.0, 0.2, (6, 4)) for name in RIPPLES}
    return DriveModel(**numbers, **rest, **thin, width=rng.uniform(0.01, 0.1, 6))


@pytest.mark.parametrize("kind", ["none", "joint", "drive"])
@pytest.mark.parametrize("arm", ["ur5e", "ur10e"])
def test_observer_is_ours(arm: str, kind: str, rng: np.random.Generator) -> None:
    """300 frames of a motion with any torques: the residual of the compiled observer, to 1e-12."""
    bare = robot(arm)
    model = drive(rng)
    plain = JointFriction(rng.uniform(1.0, 5.0, 6), rng.uniform(1.0, 9.0, 6))
    friction = {"none": None, "joint": plain, "drive": model}[kind]
    ours = MomentumObserver(bare, 50.0, friction)
    gains = np.asarray(model.gain)
    program = emitted("observer", bare, version=VERSION, friction=friction, gains=gains, threshold=LIMIT, output=3)
    host = Told()
    machine = Machine(compiled(program.text, VERSION), bare, HOME, host)
    felt = []
    for k in range(300):
        q, qd = motion(k)
        current = rng.normal(0.0, 3.0, 6)
        host.fields["actual_current"] = current.tolist()
        state = State(k * FRAME, FRAME, q, qd, gains * current)
        if k == 0:
            ours.reset(state)
            machine.frame(state)
            continue
        machine.frame(state)
        expected = ours.update(state)
        told = np.array(host.registers.out_float[24:30])
        assert relative_error(told, expected) < 1e-12, k
        most = int(np.argmax(np.abs(told))) + 1 if np.max(np.abs(told)) > LIMIT else 0
        assert host.registers.out_int[25] == most
        assert host.signals.digital_out[3] == (most > 0)
        felt.append(most)
    assert host.registers.out_int[24] == 299
    assert machine.ended is None
    assert any(felt)


def test_observer_on_the_virtual_controller() -> None:
    """As a client sees it: the program runs beside the arm's own motion, and its registers feel a push."""
    inside = Inside(load("ur5e"), plant="rigid", sensors=False)
    controller = Controller(inside, Profile(VERSION))
    arm = Robot(inside.belief.model, inside.belief.rotor_inertia)
    controller.upload(emitted("observer", arm, version=VERSION, friction=inside.typical, gains=None).text)
    ours: MomentumObserver | None = None
    before: State | None = None
    for k in range(200):
        if k == 120:
            controller.push("joint=3,torque=10,start=0,duration=10")
        state = inside.state
        full = State(state.time, FRAME, state.q, state.qd, state.tau)
        if ours is None:
            ours = MomentumObserver(arm, 50.0, inside.typical)
            ours.reset(full)
        elif before is not None:
            expected = ours.update(full)
        controller.tick()
        if before is not None:
            told = np.array(controller.registers.out_float[24:30])
            assert relative_error(told, expected) < 1e-12, k
        before = full
    assert abs(controller.registers.out_float[26]) > 5.0  # the push on joint 3


@pytest.mark.parametrize("arm", ["ur3e", "ur10e"])
def test_computed_torque_is_ours(arm: str) -> None:
    """Along a motion beside the reference: our controller's torque less the gravity that the arm's controller adds."""
    own = robot(arm, payload=(1.0, (0.0, 0.02, 0.05)))
    program = emitted("computed-torque", own, version=VERSION, amplitude=0.05, frequency=0.5, kp=80.0, seconds=2.0)
    machine = Machine(compiled(program.text, VERSION), own, HOME, QuietHost())
    compare(machine, own, reference_law(own))


def reference_law(own: Robot) -> Any:
    def torque(k: int, state: State) -> np.ndarray:
        w, s, c = np.pi, np.sin(np.pi * k * FRAME), np.cos(np.pi * k * FRAME)
        wanted = (0.05 * s**3, 0.15 * w * s * s * c, 0.15 * w * w * (2.0 * s * c * c - s**3))
        e, ed = HOME + wanted[0] - state.q, wanted[1] - state.qd
        asked = wanted[2] + 80.0 * e + 2.0 * np.sqrt(80.0) * ed
        return np.asarray(own.inverse_dynamics(state.q, state.qd, asked) - own.gravity_torque(state.q))

    return torque


def compare(machine: Machine, own: Robot, torque: Any, frames: int = 400) -> None:
    """Frames of a slow motion about the start: the torque passed on is the law's, once its rate has caught up."""
    for k in range(frames):
        w, t = np.array([0.7, 1.1, 1.3, 1.9, 2.3, 2.9]), k * FRAME
        q, qd = HOME + 1e-3 * np.sin(w * t), 1e-3 * w * np.cos(w * t)
        q, qd = (HOME, np.zeros(6)) if k == 0 else (q, qd)
        state = State(t, FRAME, q, qd, np.zeros(6))
        setpoint = machine.frame(state)
        assert setpoint.tau is not None
        assert relative_error(setpoint.tau, torque(k, state)) < 1e-12, k
    assert machine.ended is None


def test_computed_torque_is_the_class(rng: np.random.Generator) -> None:
    """The same controller object that runs elsewhere gives what the test above expects."""
    own = robot("ur10e")
    controller = ComputedTorque(own, HOME, kp=80.0)
    state = State(0.0, FRAME, HOME + 0.01 * rng.normal(size=6), 0.1 * rng.normal(size=6), np.zeros(6))
    controller.start(State(0.0, FRAME, HOME, np.zeros(6), np.zeros(6)))
    command: Command = controller.step(state)
    expected = reference_law(own)(0, state) + own.gravity_torque(state.q)
    assert relative_error(command.tau, expected) < 1e-12


@pytest.mark.parametrize("stiffness", [None, (300.0, 300.0, 200.0, 50.0, 40.0, 30.0)])
def test_impedance_is_ours(stiffness: Any) -> None:
    own = robot("ur5e", rotor_inertia=[2.0, 2.0, 1.0, 0.3, 0.3, 0.3])
    program = emitted("impedance", own, version=VERSION, stiffness=stiffness)
    machine = Machine(compiled(program.text, VERSION), own, HOME, QuietHost())
    ours = JointImpedance(own, HOME, stiffness=stiffness)
    ours.start(State(0.0, FRAME, HOME, np.zeros(6), np.zeros(6)))
    compare(machine, own, lambda k, state: ours.step(state).tau - own.gravity_torque(state.q))


def test_it_holds_an_arm_and_ends() -> None:
    """On the virtual controller: the arm stays where it was, and after its seconds the program fades and is over."""
    controller = Controller(Inside(load("ur5e"), plant="rigid", sensors=False), Profile(VERSION))
    start = controller.inside.state.q.copy()
    arm = controller.inside.belief
    controller.upload(emitted("impedance", arm, version=VERSION, seconds=1.0).text)
    for _ in range(500):
        controller.tick()
    assert controller.registers.out_int[25] == 2
    assert np.max(np.abs(controller.inside.state.q - start)) < 2e-3
    for _ in range(200):
        controller.tick()
    assert controller.registers.out_int[25] == 5
    assert controller.registers.out_int[30] == 3
    assert not controller.playing
    assert np.max(np.abs(controller.inside.state.qd)) < 1e-3


def test_too_fast_fades() -> None:
    own = robot("ur5e")
    host = QuietHost()
    machine = Machine(compiled(emitted("impedance", own, version=VERSION).text, VERSION), own, HOME, host)
    rest = State(0.0, FRAME, HOME, np.zeros(6), np.zeros(6))
    machine.frame(rest)
    fast = np.zeros(6)
    fast[2] = 2.5
    machine.frame(State(0.0, FRAME, HOME, fast, np.zeros(6)))
    for _ in range(60):
        machine.frame(rest)
    assert host.registers.out_int[30] == 13
    assert machine.ended is not None


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("arm", UR_ARMS)
def test_programs_of_every_arm_are_sound(law: str, arm: str) -> None:
    program = emitted(law, robot(arm), version=(5, 25, 1))
    assert check(program.text, (5, 25, 1)) == []
    assert 20 < program.operations < 1000


def test_versions_and_mistakes() -> None:
    own = robot("ur5e")
    gains = np.full(6, 10.0)
    for version in ((5, 23, 0), (5, 26, 0), (10, 10, 0), (10, 12, 1)):
        assert all(check(emitted(law, own, version=version).text, version) == [] for law in LAWS)
    assert check(emitted("observer", own, version=(5, 9, 0), gains=gains).text, (5, 9, 0)) == []
    with pytest.raises(InvalidValue, match=r"actual_current_as_torque .* from PolyScope 5.23 on, not in 5.22.0"):
        emitted("observer", robot("ur20"), version=(5, 22, 0), gains=None)  # its motors' gains are not known
    with pytest.raises(InvalidValue, match=r"PolyScope 5\.22\.0 takes no torques"):
        emitted("impedance", own, version=(5, 22, 0))
    with pytest.raises(InvalidValue, match=r"unknown law 'observe'.*did you mean 'observer'"):
        emitted("observe", own, version=VERSION)
    with pytest.raises(InvalidValue, match="six joints, scara has 4"):
        emitted("observer", robot("scara"), version=VERSION)
    with pytest.raises(InvalidValue, match="output: a standard digital output"):
        emitted("observer", own, version=VERSION, output=9)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.script"
    words = ["script", "emit", "computed-torque", "--robot", "ur5e", "--kp", "50", "--out", str(out), "--json"]
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["operations_per_frame"] > 300
    assert out.read_text().startswith("def tangere_computed_torque():")
    assert main(["script", "check", str(out)]) == 0
    capsys.readouterr()
    assert main(["script", "emit", "impedance", "--kp", "50"]) == 1
    assert "--kp belongs to computed-torque, not to impedance" in capsys.readouterr().err
    assert main(["script", "emit", "observer", "--out", "-"]) == 0
    assert capsys.readouterr().out.startswith("def tangere_observer():")
