"""ur_rtde, unmodified: what the other files do not try. Model queries in motion, settings of force mode, files.

Where a client asks twice, the first answer is an old one: see test_virtual_faults.py.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from virtual_arms import HOME, Driven, in_child, listening

import tangere
from tangere.types import Array

pytest.importorskip("rtde_control", reason="ur_rtde is not installed: its calls are not tried")

MOVE = "movej([{}, -1.57, 1.57, -1.57, -1.57, 0.0], a=5, v=2)\n"


def settled(robot: Driven, ask: Callable[[], list[float]]) -> Array:
    """What is answered once the registers have held nothing else for some frames."""
    for _ in range(2):
        ask()
        robot.wait(0.05)
    return np.array(ask())


def coriolis(arm: tangere.Robot, q: Array, qd: Array, step: float = 1e-6) -> Array:
    """C(q, qd) qd by differences of the mass matrix: sum_k qd_k dM/dq_k qd - 1/2 grad(qd^T M qd)."""
    slopes = np.array([
        (arm.mass_matrix(q + step * e) - arm.mass_matrix(q - step * e)) / (2.0 * step) for e in np.eye(6)
    ])  # fmt: skip
    found: Array = np.einsum("kij,k,j->i", slopes, qd, qd) - 0.5 * np.einsum("kij,i,j->k", slopes, qd, qd)
    return found


@in_child
def test_queries_of_an_arm_in_motion(arm: str) -> None:
    """The base alone turns evenly: what depends on speeds stays the same on the way, but for its direction."""
    robot = Driven(arm, [-3.0, *HOME[1:]])
    ours = tangere.robot("ur5e", tool=(0.0, 0.0, 0.1), rotor_inertia=False)
    q, qd = np.array([0.0, *HOME[1:]]), np.array([0.2, 0.0, 0.0, 0.0, 0.0, 0.0])
    c, step = robot.control, 1e-6
    assert c.speedJ(qd.tolist(), 0.02, 0.0)  # 10 s of the controller's clock until that speed is reached
    robot.wait(0.05)  # a question within the frame would overwrite it
    assert settled(robot, c.getTargetJointAccelerations) == pytest.approx([0.02, 0, 0, 0, 0, 0], abs=1e-9)
    assert robot.wait(60.0, lambda: robot.now.getTargetQd()[0] > 0.2 - 1e-9)
    expected = coriolis(ours, q, qd)
    assert np.abs(expected).max() > 0.01
    # the calls return at once; the arm's own speed, with a tachometer's noise, is what the program asks of
    found = np.mean([settled(robot, c.getCoriolisAndCentrifugalTorques) for _ in range(10)], axis=0)
    assert found == pytest.approx(expected, abs=0.2 * np.abs(expected).max())
    turning = (ours.jacobian(q + step * qd) - ours.jacobian(q - step * qd)) / (2.0 * step)
    found = settled(robot, c.getJacobianTimeDerivative).reshape(6, 6)
    assert np.linalg.norm(found) == pytest.approx(np.linalg.norm(turning), rel=0.1)
    assert c.speedStop()
    goal = robot.tool()
    goal[2] += 0.1
    assert c.moveL(goal.tolist(), 0.005, 0.5, True)  # 20 s of the controller's clock
    assert settled(robot, c.getTargetWaypoint)[:3] == pytest.approx(goal[:3], abs=1e-6)
    assert c.getAsyncOperationProgressEx().isAsyncOperationRunning()
    assert c.getRobotStatus() & 0b11 == 0b11  # power, a program
    c.stopL(1.0)
    assert robot.wait(60.0, lambda: not c.getAsyncOperationProgressEx().isAsyncOperationRunning())


@in_child
def test_force_mode_is_faster_by_its_gain(arm: str) -> None:
    """Nothing is touched: the tool moves by the force that is missing, twice as fast with twice the gain."""
    robot = Driven(arm, HOME)
    c = robot.control
    speeds = []
    for gain in (0.5, 1.0, 2.0):
        assert c.moveJ(HOME, 3.0, 10.0)
        assert robot.wait(10.0, c.isSteady)
        assert c.zeroFtSensor()
        assert c.forceModeSetDamping(0.5)
        assert c.forceModeSetGainScaling(gain)
        assert c.forceMode([0.0] * 6, [0, 0, 1, 0, 0, 0], [0, 0, 10.0, 0, 0, 0], 2, [0.1] * 6)
        robot.wait(0.5)
        began, at = robot.now.getTimestamp(), robot.now.getActualTCPPose()[2]
        robot.wait(2.0)
        speeds.append((robot.now.getActualTCPPose()[2] - at) / (robot.now.getTimestamp() - began))
        assert c.forceModeStop()
    assert np.divide(speeds, speeds[1]) == pytest.approx([0.5, 1.0, 2.0], rel=0.2), speeds
    assert speeds[1] > 1e-3  # [m/s]


@in_child
def test_what_is_received_is_that_of_an_arm_at_rest(arm: str) -> None:
    robot = Driven(arm, HOME)
    assert robot.control.setPayload(0.0, [0.0, 0.0, 0.0])
    assert robot.wait(10.0, robot.control.isSteady)
    robot.wait(0.2)
    now, ours = robot.now, tangere.robot("ur5e", tool=(0.0, 0.0, 0.1))
    gravity = ours.gravity_torque(now.getTargetQ())
    assert now.getTargetMoment() == pytest.approx(gravity, abs=0.05)
    assert np.sign(now.getTargetCurrent()[1:3]).tolist() == np.sign(gravity[1:3]).tolist()
    assert now.getTargetTCPPose() == pytest.approx(ours.pose(now.getTargetQ(), form="ur"), abs=1e-6)
    assert now.getTargetQdd() == pytest.approx([0.0] * 6, abs=1e-9)
    felt = np.array(now.getActualToolAccelerometer())  # a sensor at rest feels what holds it up, in the tool's axes
    assert np.linalg.norm(felt) == pytest.approx(9.81, abs=0.1)
    assert felt == pytest.approx(-9.81 * ours.pose(now.getActualQ())[2, :3], abs=0.1) or felt == pytest.approx(
        9.81 * ours.pose(now.getActualQ())[2, :3], abs=0.1
    )
    assert now.getJointMode() == [253] * 6
    assert now.getSafetyStatusBits() == 1
    assert now.getRobotStatus() & 1
    assert not now.isEmergencyStopped()
    assert now.getActualMainVoltage() == 48.0
    assert now.getSpeedScalingCombined() == 1.0
    assert now.getActualExecutionTime() < 2.0  # [ms]
    assert np.abs(now.getFtRawWrench()).max() < 50.0


@in_child
def test_registers_currents_and_a_recording(arm: str, tmp_path: Path) -> None:
    import rtde_io

    robot = Driven(arm, HOME)
    io = rtde_io.RTDEIOInterface(arm)
    with listening(arm, "input_double_register_19") as seen:
        assert io.setInputDoubleRegister(19, 2.5)
        while (values := seen.receive(20.0)) is not None and values["input_double_register_19"] != 2.5:
            pass
        assert values is not None
    assert io.setAnalogOutputCurrent(0, 0.5)
    assert robot.wait(10.0, lambda: robot.now.getStandardAnalogOutput0() == 0.5)
    assert io.setStandardDigitalOut(4, True)
    assert robot.wait(10.0, lambda: robot.now.getDigitalOutState(4))
    assert io.setStandardDigitalOut(4, False)
    assert robot.wait(10.0, lambda: not robot.now.getDigitalOutState(4))
    path = tmp_path / "recorded.csv"
    assert robot.now.startFileRecording(str(path), ["timestamp", "actual_q"])
    robot.wait(0.5)
    assert robot.now.stopFileRecording()
    with path.open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["timestamp", *(f"actual_q_{k}" for k in range(6))]
    kept = np.array(rows[1:], dtype=float)
    assert np.ptp(kept[:, 0]) > 0.1
    assert np.abs(kept[:, 1:] - HOME).max() < 1e-3
    robot.control.waitPeriod(robot.control.initPeriod())
    for one in (robot.control, robot.now, io):
        one.disconnect()
        assert one.reconnect()
    assert robot.wait(60.0, lambda: robot.control.moveJ([0.1, *HOME[1:]], 3.0, 10.0))
    assert robot.control.enableExternalFtSensor(True, 0.1, [0.0, 0.0, 0.0], [0.0, 0.0, 0.01])
    assert robot.control.ftRtdeInputEnable(False)
    assert robot.control.moveJ(HOME, 3.0, 10.0)


@in_child
def test_programs_from_files(arm: str, tmp_path: Path) -> None:
    import script_client

    robot = Driven(arm, HOME)
    path = tmp_path / "own.script"
    says = "  write_output_integer_register(0, {})\n"
    path.write_text(f"def own():\n{says.format(1)}  {MOVE.format(0.2)}{says.format(2)}end\n")
    assert robot.control.sendCustomScriptFile(str(path))
    assert robot.wait(10.0, lambda: abs(robot.now.getActualQ()[0] - 0.2) < 1e-4)
    robot.control.disconnect()
    script = script_client.ScriptClient(arm, 5, 26)
    script.connect()
    path.write_text(f"def own():\n  {MOVE.format(0.4)}end\n")
    assert script.sendScript(str(path))
    assert robot.wait(10.0, lambda: abs(robot.now.getActualQ()[0] - 0.4) < 1e-4)


@in_child
def test_dashboard_client(arm: str) -> None:
    import dashboard_client

    robot = Driven(arm, HOME)
    desk = dashboard_client.DashboardClient(arm)
    desk.connect()
    assert desk.getRobotModel() == "UR5"
    assert desk.getSerialNumber().startswith("20")
    assert desk.getLoadedProgram() == "No program loaded"
    assert not desk.isProgramSaved()
    with pytest.raises(RuntimeError, match="not found"):
        desk.loadURP("nowhere.urp")
    for call in (desk.closePopup, desk.closeSafetyPopup):
        call()
    desk.pause()
    assert robot.wait(10.0, lambda: robot.now.getRuntimeState() == 4)
    desk.play()
    assert robot.wait(600.0, robot.control.isProgramRunning)  # it hears of it by a connection of its own
    assert robot.control.moveJ([0.1, *HOME[1:]], 3.0, 10.0)
    desk.stop()
    assert robot.wait(10.0, lambda: robot.now.getRuntimeState() == 1)
    desk.restartSafety()
    assert robot.wait(10.0, lambda: robot.now.getRobotMode() == 3)  # powered off
