"""MujocoPlant: the same arm as ours step by step, contacts that balance, friction that holds."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, MissingExtra, UnknownName
from tangere.plants import Camera, MujocoPlant, PlantLost, Push, RigidPlant, Stuck, TorqueLoss
from tangere.plants.scene.bodies import surface, table, wall
from tangere.plants.scene.scene import Pen, Scene
from tangere.robots import Robot
from tangere.types import Array, Command, Plant, State, Truth

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed (extra sim)")

BARE = tangere.robot("ur10e", payload=(1.0, (0.0, 0.02, 0.05), np.diag((2e-3, 2e-3, 1e-3))))
GEARED = tangere.robot("ur10e", rotor_inertia=True)
START = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
SPEED = np.array([0.3, -0.2, 0.3, 0.2, -0.3, 0.2])
WAVE = np.array([20.0, 15.0, 9.0, 2.0, 1.5, 1.0])  # Nm


def driven(plant: Plant, arm: Robot, seconds: float, scale: float = 1.0) -> Array:
    """q and qd (2 n,) after gravity compensation at START and a sine on every joint."""
    plant.reset(START, SPEED)
    for k in range(round(seconds / plant.period)):
        wave = WAVE * np.sin(2.0 * np.pi * (k * plant.period * np.arange(1, 7) / 2.0))
        plant.write(Command(arm.gravity_torque(plant.read().q) + scale * wave))
    state = plant.read()
    return np.concatenate((state.q, state.qd))


FORCE = Push(link=5, point=(0.0, 0.05, 0.02), force=(5.0, -4.0, 8.0), start=0.4, duration=0.3)
PUSHES = (Push(2, 20.0, 0.2, 0.3), FORCE)


@pytest.mark.parametrize("kind", ["bare", "rotors", "friction", "pushes", "loss", "stuck"])
def test_it_steps_as_our_semi_implicit_plant_does(kind: str) -> None:
    """Two implementations of one step, 1 s of motion: 1e-7 relative, 1e-9 per evaluation grown over 1000."""
    arm = BARE if kind == "bare" else GEARED
    options: dict[str, Any] = {}
    if kind == "friction":
        options["friction"] = JointFriction.of(arm.drives)
    if kind == "pushes":
        options["pushes"] = PUSHES
    if kind == "loss":
        options["faults"] = [TorqueLoss(3, 0.8, 0.5)]
    if kind == "stuck":
        options["faults"] = [Stuck(2, 0.2, 0.4), Stuck(5, 0.3, 0.5)]
        options["friction"] = JointFriction(np.zeros(6), GEARED.drives.viscous)
    scale = 0.02 if kind == "bare" else 1.0  # without rotors a Nm on the wrist is 3000 rad/s2
    theirs = driven(MujocoPlant(arm, joint_limits=False, **options), arm, 1.0, scale)
    ours = driven(RigidPlant(arm, method="semi-implicit", **options), arm, 1.0, scale)
    assert np.max(np.abs(theirs - ours)) < 1e-7 * np.max(np.abs(ours))
    assert np.max(np.abs(ours[:6] - START)) > 0.05  # it moved


def test_against_runge_kutta_within_the_order_of_the_integrator() -> None:
    """MuJoCo's Euler is of first order: 1 s apart from RK4 by O(h), halved with h; its RK4 agrees with ours to 1e-8."""
    exact = driven(RigidPlant(GEARED, 5e-4), GEARED, 1.0)
    apart = [float(np.linalg.norm(driven(MujocoPlant(GEARED, h), GEARED, 1.0) - exact)) for h in (2e-3, 1e-3)]
    # the sine is held over each period, which is of first order as well: hence the loose ratio
    assert apart[0] / apart[1] == pytest.approx(2.0, rel=0.5)
    assert apart[1] < 0.02
    same = driven(RigidPlant(GEARED, 1e-3), GEARED, 1.0)
    assert np.max(np.abs(driven(MujocoPlant(GEARED, integrator="rk4"), GEARED, 1.0) - same)) < 1e-8


def test_one_step_balances_with_armature_and_damping() -> None:
    """M (qd' - qd) / h + C qd + g + B qd' - tau = tau_ext in every step: the exact form for an observer, here by Robot.

    1e-8 Nm: 1e-9 of torques of 100 Nm, and 1e-16 of a velocity over 1 ms times 10 kg m2.
    """
    friction = JointFriction(np.zeros(6), GEARED.drives.viscous)
    plant = MujocoPlant(GEARED, friction=friction, pushes=PUSHES)
    before = plant.reset(START, SPEED)
    pushed = 0
    for k in range(800):
        plant.write(Command(GEARED.gravity_torque(before.q) + WAVE * np.sin(0.01 * k)))
        state, truth = plant.read(), plant.truth()
        momentum = GEARED.mass_matrix(before.q) @ (state.qd - before.qd) / plant.period
        bias = GEARED.bias_torque(before.q, before.qd)
        seen = momentum + bias + friction.viscous * state.qd - state.tau
        assert np.max(np.abs(seen - truth.tau_ext)) < 1e-8
        pushed += bool(np.any(truth.tau_ext))
        before = state
    assert pushed == 500  # 0.2 to 0.7 s


def test_free_fall() -> None:
    """Nothing holds: the energy stays while MuJoCo integrates by RK4, and kinetic energy is what height was lost."""
    plant = MujocoPlant(BARE, integrator="rk4", joint_limits=False)
    plant.reset(START)
    for _ in range(300):
        plant.write(Command(np.zeros(6)))
    kinetic, potential = BARE.energy(plant.read().q, plant.read().qd)
    assert kinetic > 10.0
    assert kinetic + potential == pytest.approx(sum(BARE.energy(START, np.zeros(6))), abs=1e-5)


# ------------------------------------------------------------------------------------------------------------ friction


def test_stiction_holds_below_breakaway_and_lets_go_above() -> None:
    """Without gravity: 0.9 of the Coulomb torque moves nothing in 1 s (10 urad of MuJoCo's softness), 1.2 moves."""
    arm = tangere.robot("ur10e", rotor_inertia=True, gravity=(0.0, 0.0, 0.0))
    friction = JointFriction.of(arm.drives)

    def moved(stiction: bool, share: float) -> Array:
        plant = MujocoPlant(arm, friction=friction, stiction=stiction)
        plant.reset(START)
        for _ in range(1000):
            plant.write(Command(share * friction.coulomb))
        assert not np.any(plant.truth().tau_ext)  # friction is nobody's push
        return np.abs(plant.read().q - START)

    assert np.max(moved(True, 0.9)) < 1e-5
    assert np.min(moved(True, 1.2)) > 1e-2
    assert np.min(moved(False, 0.9)) > 1e-3  # the smooth law creeps, as it says


def test_smooth_friction_is_compensated_exactly() -> None:
    """Coulomb only: adding the law's own torque to the command gives the motion without friction, to rounding."""
    friction = JointFriction(GEARED.drives.coulomb, np.zeros(6))
    rough, free = MujocoPlant(GEARED, friction=friction), MujocoPlant(GEARED)
    for plant in (rough, free):
        plant.reset(START, SPEED)
        for _ in range(500):
            s = plant.read()
            extra = friction.torque(s.qd) if plant is rough else 0.0
            plant.write(Command(GEARED.gravity_torque(s.q) + 0.2 * WAVE + extra))
    assert np.max(np.abs(rough.read().q - free.read().q)) < 1e-10
    with pytest.raises(InvalidValue, match="rotor_inertia=True"):
        MujocoPlant(BARE, friction=friction)


# ------------------------------------------------------------------------------------------------------------ contacts

DOWN = np.array([0.0, -1.9, 2.2, -np.pi / 2 - 0.3, -np.pi / 2, 0.0])  # tool down
CALM = np.array([40.0, 40.0, 40.0, 8.0, 2.0, 0.1])  # Nm s/rad, so that the arm comes to rest; stable at 1 ms


def pressed(plant: MujocoPlant, wrench: Array, seconds: float = 4.0) -> tuple[State, Truth]:
    """Press by tau = g - J^T F with damping: where it comes to rest the environment answers F."""
    arm = plant.robot
    plant.reset(DOWN)
    for _ in range(round(seconds / plant.period)):
        s = plant.read()
        plant.write(Command(arm.gravity_torque(s.q) - wrench @ arm.jacobian(s.q) - CALM * s.qd))
    return plant.read(), plant.truth()


def on_table(pen: Pen, **options: float) -> MujocoPlant:
    """A UR10e whose pen is 0.1 mm above a table."""
    arm = tangere.robot("ur10e", tool=(0.0, 0.0, pen.length), payload=pen.payload(0.2))
    height = float(arm.pose(DOWN)[2, 3]) - 1e-4
    return MujocoPlant(arm, scene=Scene((table(height, **options),), pen))


def test_a_pen_on_a_table_feels_what_it_presses() -> None:
    """5 N up and 1 N sideways, inside the friction cone: within 0.5 % (the last micrometres per second of creep)."""
    plant = on_table(Pen())
    asked = np.array([1.0, 0.0, 5.0, 0.0, 0.0, 0.0])
    state, truth = pressed(plant, asked)
    assert truth.wrench[:3] == pytest.approx(asked[:3], abs=0.025)
    assert state.wrench == pytest.approx(truth.wrench)
    # the joint torque by MuJoCo's constraint Jacobian and by ours; the tip is round, so the point moves by a micrometre
    assert plant.robot.jacobian(state.q).T @ truth.wrench == pytest.approx(truth.tau_ext, abs=1e-4)
    height = truth.T[2, 3] - (plant.robot.pose(DOWN)[2, 3] - 1e-4)
    assert abs(height) < 1e-6  # m: as hard as the surface says (0.1 um static for 5 N)


@pytest.mark.parametrize("pushes", [(), (Push(link=6, point=(0.02, -0.03, 0.01), force=(3.0, -2.0, -4.0), start=0.1),)])
def test_the_wrench_is_at_the_tcp_wherever_that_is(pushes: tuple[Push, ...]) -> None:
    """A tcp beside the pen: force and moment about it still give the joint torque of MuJoCo's own Jacobian.

    Also where somebody pushes the hand while the pen touches.
    """
    pen = Pen()
    arm = tangere.robot("ur10e", tool=(0.06, -0.04, 0.13), payload=pen.payload(0.2))
    tip = (arm.link_poses(DOWN)[-1] @ [0.0, 0.0, pen.length, 1.0])[:3]
    plant = MujocoPlant(arm, scene=Scene((table(float(tip[2]) - 1e-4),), pen), pushes=pushes)
    plant.reset(DOWN)
    met = 0
    for _ in range(400):
        before = plant.read()
        plant.write(Command(arm.gravity_torque(before.q) + np.array([2.0, 3.0, 3.0, 0.2, 0.1, 0.0]) - CALM * before.qd))
        truth = plant.truth()
        if np.any(truth.wrench):
            met += 1
            # the contact was computed where the step began; to rounding of numbers of order 10
            assert arm.jacobian(before.q).T @ truth.wrench == pytest.approx(truth.tau_ext, abs=1e-9)
            assert np.min(np.abs(truth.wrench[3:])) > 1e-3
    assert met > 100


def test_friction_of_a_surface_ends_at_its_cone() -> None:
    """Sideways 2.5 N with 5 N down: mu 0.6 holds (3 N), mu 0.3 slips and pulls back with 1.5 N."""
    asked = np.array([2.5, 0.0, 5.0, 0.0, 0.0, 0.0])
    for mu, slips in ((0.6, False), (0.3, True)):
        plant = on_table(Pen(), friction=mu)
        before = plant.robot.pose(DOWN)[0, 3]
        state, truth = pressed(plant, asked, 1.5)
        assert (abs(float(plant.robot.pose(state.q)[0, 3]) - before) > 5e-3) == slips
        sideways = float(np.hypot(truth.wrench[0], truth.wrench[1]))
        assert sideways / truth.wrench[2] == pytest.approx(mu if slips else 0.5, rel=0.02)


def test_a_sliding_tip_is_a_spring_and_changes_no_inertia() -> None:
    """Compression (F - m g) / k; M of the arm's joints with the tip at rest is M of the model, to 1e-9."""
    pen = Pen(stiffness=1e4)
    plant = on_table(pen)
    M = np.zeros((7, 7))
    mujoco.mj_fullM(plant.model, plant.data, M)
    zero = plant.robot.mass_matrix(plant.read().q)
    assert np.max(np.abs(M[:6, :6] - zero)) < 1e-9 * np.max(np.abs(zero))
    _, truth = pressed(plant, np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.0]), 5.0)
    weight = pen.tip_mass * 9.81
    # 1e-4: at rest but for micrometres per second; the two are MuJoCo's contact force and our spring law
    assert plant.data.qpos[6] == pytest.approx(-(truth.wrench[2] - weight) / 1e4, rel=1e-4)
    assert truth.wrench[2] == pytest.approx(5.0, rel=1e-3)
    # the tcp that truth shows is the end of the tip, on the surface but for its softness under so light a body
    assert truth.T[2, 3] - (plant.robot.pose(DOWN)[2, 3] - 1e-4) == pytest.approx(0.0, abs=5e-5)
    for unfit in (Pen(stiffness=1e5), Pen(stiffness=1e4, damping=30.0)):  # the second was seen to bounce for ever
        with pytest.raises(InvalidValue, match="too light for a period"):
            on_table(unfit)
    with pytest.raises(InvalidValue, match=r"payload=pen\.payload"):
        MujocoPlant(GEARED, scene=Scene(tool=Pen(stiffness=1e4, tip_mass=1.0)))  # heavier than link 6


def test_a_wall_pushes_back() -> None:
    """A wall in front of a tool-down pen, pressed sideways: the force on the robot points along its normal."""
    pen = Pen()
    arm = tangere.robot("ur10e", tool=(0.0, 0.0, pen.length), payload=pen.payload(0.2))
    tip = arm.pose(DOWN)[:3, 3]
    away = float(np.hypot(tip[0], tip[1]))
    azimuth = float(np.arctan2(tip[1], tip[0]))
    barrier = wall(away + pen.radius + 1e-4, azimuth, height=float(tip[2]))
    normal = np.array([-np.cos(azimuth), -np.sin(azimuth), 0.0])  # towards the robot
    assert barrier.T[:3, 2] == pytest.approx(normal)
    plant = MujocoPlant(arm, scene=Scene((barrier,), pen))
    _, truth = pressed(plant, np.concatenate((5.0 * normal, np.zeros(3))), 2.0)
    assert truth.wrench[:3] == pytest.approx(5.0 * normal, abs=0.1)


def test_links_meet_the_table_only_where_asked() -> None:
    """An arm without torque falls; its shapes stop it on the table, or it falls through."""
    lowest = {}
    for collide in (True, False):
        scene = Scene((table(0.0),), links_collide=collide)
        plant = MujocoPlant(GEARED, scene=scene, friction=JointFriction(np.zeros(6), GEARED.drives.viscous))
        plant.reset(START)
        for _ in range(6000):  # it lies still from 4.5 s on
            plant.write(Command(np.zeros(6)))
        assert bool(np.any(plant.truth().tau_ext)) == collide
        lowest[collide] = float(plant.robot.link_poses(plant.read().q)[:, 2, 3].min())
    assert lowest[True] > -0.05
    assert lowest[False] < -0.3


def test_end_stops() -> None:
    """The elbow driven against +180 degrees: it stops, and the stop shows as external torque; or there is none."""
    for limits in (True, False):
        plant = MujocoPlant(tangere.robot("ur10e", rotor_inertia=True, gravity=(0, 0, 0)), joint_limits=limits)
        plant.reset([0.0, -1.0, 3.0, 0.0, 0.0, 0.0])
        for _ in range(1500):
            s = plant.read()
            plant.write(Command(np.array([0.0, 0.0, 10.0, 0.0, 0.0, 0.0]) - 20.0 * s.qd))
        assert (plant.read().q[2] < np.pi + 0.01) == limits
        if limits:
            assert plant.truth().tau_ext[2] == pytest.approx(-10.0, rel=0.02)


def test_stiction_beside_an_end_stop_is_not_external() -> None:
    """Joint 1 held by its stiction while the elbow leans on its stop: only the stop is in tau_ext."""
    arm = tangere.robot("ur10e", rotor_inertia=True, gravity=(0, 0, 0))
    plant = MujocoPlant(arm, friction=JointFriction.of(arm.drives), stiction=True)
    plant.reset([0.0, -1.0, 3.1, 0.0, 0.0, 0.0])
    for _ in range(1500):
        plant.write(Command(np.array([5.0, 0.0, 20.0, 0.0, 0.0, 0.0])))
    tau_ext = plant.truth().tau_ext
    assert tau_ext[2] < -5.0
    assert np.max(np.abs(np.delete(tau_ext, 2))) == 0.0


# -------------------------------------------------------------------------------------------------------------- border


def test_the_same_run_twice_is_the_same_bit_by_bit() -> None:
    plant = MujocoPlant(GEARED, pushes=PUSHES, faults=[Stuck(5, 0.1, 0.1)])
    first = driven(plant, GEARED, 0.3)
    assert np.array_equal(driven(plant, GEARED, 0.3), first)  # a reset forgets everything, warm starts included
    assert np.array_equal(driven(MujocoPlant(GEARED, pushes=PUSHES, faults=[Stuck(5, 0.1, 0.1)]), GEARED, 0.3), first)


def test_limits_bad_commands_and_divergence(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes MUJOCO_LOG.TXT where it is
    plant = MujocoPlant(BARE)
    state = plant.reset(START)
    plant.write(Command(np.full(6, 1e4)))
    assert np.array_equal(plant.read().tau, BARE.tau_max)
    plant.write(Command(np.full(6, np.nan)))
    assert np.array_equal(plant.read().tau, BARE.tau_max)
    assert np.array_equal(state.q, START)  # a sample handed out stays
    plant.reset(START)
    plant.data.qvel[:] = 1e200
    plant.write(Command(np.zeros(6)))
    with pytest.raises(PlantLost, match="left the finite numbers"):
        plant.read()
    assert np.array_equal(plant.reset(START).q, START)


def test_the_cost_beyond_mj_step() -> None:
    """Below 10 us per write beside a bare mj_step, of computing: the best of 20 rounds of 100."""
    plant = MujocoPlant(GEARED, pushes=[Push(2, 20.0, 3.0, 2.0)])
    command = Command(GEARED.gravity_torque(START))

    def best(call: Any) -> float:
        times = []
        for _ in range(20):
            plant.reset(START)
            begin = time.thread_time()
            for _ in range(100):
                call()
            times.append((time.thread_time() - begin) / 100)
        return min(times)

    whole = best(lambda: plant.write(command))
    bare = best(lambda: mujoco.mj_step(plant.model, plant.data))
    assert whole - bare < 10e-6


def test_without_mujoco_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tangere\[sim\]'"):
        MujocoPlant(GEARED)


def test_misuse_is_refused() -> None:
    with pytest.raises(UnknownName, match="known: euler, implicitfast, rk4"):
        MujocoPlant(GEARED, integrator="midpoint")  # type: ignore[arg-type]
    for options in ({"period": -1.0}, {"friction": JointFriction.none(3)}):
        with pytest.raises(InvalidValue):
            MujocoPlant(GEARED, **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="no direction"):
        surface("x", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    with pytest.raises(InvalidValue, match="names of their own"):
        Scene((table(), table(0.1)))
    with pytest.raises(InvalidValue, match="impedance"):
        wall(1.0, impedance=1.0)
    with pytest.raises(InvalidValue, match="radius"):
        Pen(length=0.01, radius=0.01)


# ------------------------------------------------------------------------------------------------------------ pictures


def test_pictures() -> None:
    """The arm is in it, moves with it, and the size is what was asked."""
    plant = MujocoPlant(GEARED, scene=Scene((table(),), Pen()))
    plant.reset(START)
    try:
        first = plant.render(160, 120)
    except MissingExtra as problem:
        pytest.skip(str(problem))
    assert first.shape == (120, 160, 3)
    assert first.dtype == np.uint8
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 50
    assert np.array_equal(plant.render(160, 120), first)
    plant.reset(START + 0.5)
    assert np.mean(plant.render(160, 120) != first) > 0.01
    slow = MujocoPlant(GEARED, 0.05, scene=plant.scene)  # one step of 50 ms: the picture must show its end
    slow.reset(START, np.full(6, 3.0))
    slow.write(Command(np.zeros(6)))
    plant.reset(slow.read().q)
    assert np.array_equal(slow.render(160, 120), plant.render(160, 120))
    slow.close()
    assert plant.render(100, 80, Camera(distance=1.0, azimuth=10.0)).shape == (80, 100, 3)
    with pytest.raises(InvalidValue, match="at most 1920 x 1080"):
        plant.render(4000, 100)
    plant.close()
    plant.close()


def test_without_a_library_to_draw_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr("tangere.plants.render._found", lambda libraries: False)
    with pytest.raises(MissingExtra, match="apt-get install libosmesa6"):
        MujocoPlant(GEARED).render(64, 48)
