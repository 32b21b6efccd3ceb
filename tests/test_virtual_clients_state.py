"""ur_rtde, unmodified, asks and sets: settings, queries, outputs, own programs, modes, and torque mode."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from virtual_arms import HOME, Driven, in_child

import tangere

pytest.importorskip("rtde_control", reason="ur_rtde is not installed: its calls are not tried")


@in_child
def test_settings_are_seen_by_others(arm: str) -> None:
    robot = Driven(arm, HOME)
    c = robot.control
    before = c.getTCPOffset()
    robot.wait(0.05)
    before = c.getTCPOffset()
    assert before[2] == pytest.approx(0.1)  # the rod
    assert c.setPayload(1.5, [0.01, 0.0, 0.05])
    robot.wait(0.05)
    assert robot.now.getPayload() == 1.5
    assert robot.now.getPayloadCog() == pytest.approx([0.01, 0.0, 0.05])
    assert c.setTargetPayload(2.0, [0.0, 0.0, 0.04], [0.01, 0.01, 0.01, 0.0, 0.0, 0.0])
    robot.wait(0.05)
    assert robot.now.getPayload() == 2.0
    assert c.setPayload(0.0, [0.0, 0.0, 0.0])
    at = robot.tool()
    assert c.setTcp([0.0, 0.0, 0.25, 0.0, 0.0, 0.0])
    moved = robot.tool()
    assert np.linalg.norm(moved[:3] - at[:3]) == pytest.approx(0.15, abs=1e-4)
    assert c.setTcp(before)
    assert c.setGravity([0.0, 0.0, 9.82])


@in_child
def test_queries_agree_with_our_model(arm: str) -> None:
    robot = Driven(arm, HOME)
    c = robot.control
    ours = tangere.robot("ur5e", tool=(0.0, 0.0, 0.1), rotor_inertia=False)
    q = [0.3, -1.2, 1.4, -1.7, -1.5, 0.2]
    assert np.abs(np.array(c.getForwardKinematics()) - ours.pose(HOME, form="ur")).max() < 1e-3
    pose = ours.pose(q, form="ur").tolist()
    assert c.getInverseKinematics(pose, q) == pytest.approx(q, abs=1e-6)
    assert c.getInverseKinematicsHasSolution(pose)
    assert not c.getInverseKinematicsHasSolution([3.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert c.isPoseWithinSafetyLimits(pose)
    assert c.isJointsWithinSafetyLimits(q)
    assert not c.isJointsWithinSafetyLimits([9.0, *q[1:]])
    assert c.poseTrans([0.1, 0, 0, 0, 0, math.pi / 2], [0.1, 0, 0, 0, 0, 0]) == pytest.approx(
        [0.1, 0.1, 0, 0, 0, math.pi / 2]
    )
    assert robot.wait(10.0, c.isSteady)
    now = robot.q()
    M = np.array(second(robot, lambda: c.getMassMatrix(now.tolist(), False))).reshape(6, 6)
    assert np.abs(M - ours.mass_matrix(now)).max() < 0.05 * np.abs(M).max()
    J = np.array(second(robot, lambda: c.getJacobian())).reshape(6, 6)
    expected = ours.jacobian(now)
    assert min(np.abs(J - expected).max(), np.abs(J.T - expected).max()) < 1e-3
    assert np.abs(second(robot, c.getJointTorques)).max() < 30.0
    assert second(robot, c.getActualToolFlangePose)[:3] == pytest.approx(
        tangere.robot("ur5e").pose(now, form="ur")[:3], abs=1e-3
    )
    assert second(robot, lambda: c.getActualJointPositionsHistory(5)) == pytest.approx(now, abs=1e-3)


def second(robot: Driven, ask: Callable[[], list[float]]) -> list[float]:
    """The answer to the second question: that to the first is what the registers held before (see below)."""
    ask()
    robot.wait(0.05)
    ask()
    robot.wait(0.05)
    return ask()


@in_child
def test_outputs_slider_and_registers(arm: str) -> None:
    import rtde_io

    robot = Driven(arm, HOME)
    io = rtde_io.RTDEIOInterface(arm)
    assert io.setStandardDigitalOut(3, True)
    assert io.setConfigurableDigitalOut(2, True)
    assert io.setToolDigitalOut(1, True)
    assert robot.wait(2.0, lambda: robot.now.getActualDigitalOutputBits() == 1 << 3 | 1 << 10 | 1 << 17)
    for set_one in (io.setStandardDigitalOut, io.setConfigurableDigitalOut, io.setToolDigitalOut):
        for k in range(2 if set_one == io.setToolDigitalOut else 8):
            assert set_one(k, False)
            robot.wait(0.01)
    assert robot.wait(2.0, lambda: robot.now.getActualDigitalOutputBits() == 0)
    assert io.setAnalogOutputVoltage(1, 0.25)
    assert robot.wait(2.0, lambda: abs(robot.now.getStandardAnalogOutput1() - 0.25) < 1e-9)
    assert io.setInputIntRegister(19, 42)
    assert io.setSpeedSlider(0.5)
    assert robot.wait(2.0, lambda: robot.now.getTargetSpeedFraction() == 0.5)
    began = robot.now.getTimestamp()
    assert robot.control.moveJ([0.5, *HOME[1:]], 0.1, 10.0)  # long moves: the client sees their ends late by its period
    slow = robot.now.getTimestamp() - began
    assert io.setSpeedSlider(1.0)
    assert robot.wait(2.0, lambda: robot.now.getTargetSpeedFraction() == 1.0)
    began = robot.now.getTimestamp()
    assert robot.control.moveJ(HOME, 0.1, 10.0)
    assert slow / (robot.now.getTimestamp() - began) == pytest.approx(2.0, rel=0.15)


@in_child
def test_freedrive_and_teach_mode(arm: str) -> None:
    robot = Driven(arm, HOME)
    c = robot.control
    before = robot.q()
    assert c.teachMode()
    robot.wait(1.0)
    assert np.abs(robot.q() - before).max() < 5e-3  # nobody leads it: it stays
    assert c.endTeachMode()
    assert c.freedriveMode([1, 1, 1, 0, 0, 0])
    robot.wait(0.5)
    assert c.getFreedriveStatus() in (0, 1, 2, 3)
    assert c.endFreedriveMode()
    assert c.moveJ(HOME, 1.0, 2.0)


@in_child
def test_programs_of_ones_own(arm: str) -> None:
    import script_client

    robot = Driven(arm, HOME)
    assert robot.control.sendCustomScriptFunction("TURN", "movej([0.4, -1.57, 1.57, -1.57, -1.57, 0.0], a=5, v=2)\n")
    assert robot.q()[0] == pytest.approx(0.4, abs=1e-4)
    # what sendCustomScriptFunction wraps around a body: the client waits until the first output register says done
    says = "  write_output_integer_register(0, {})\n"
    back = "  movej([0.1, -1.57, 1.57, -1.57, -1.57, 0.0], a=5, v=2)\n"
    assert robot.control.sendCustomScript(f"def back():\n{says.format(1)}{back}{says.format(2)}end\n")
    assert robot.wait(5.0, lambda: abs(robot.now.getActualQ()[0] - 0.1) < 1e-4)
    robot.control.disconnect()
    script = script_client.ScriptClient(arm, 5, 26)
    assert script.connect() is None or script.isConnected()
    assert script.sendScriptCommand("movej([0.3, -1.57, 1.57, -1.57, -1.57, 0.0], a=5, v=2)\n")
    assert robot.wait(5.0, lambda: abs(robot.now.getActualQ()[0] - 0.3) < 1e-4)


# -------------------------------------------------------------------------------------- ur_rtde, modes and torque mode


@in_child
def test_watchdog_ends_the_program_of_a_silent_client(arm: str) -> None:
    robot = Driven(arm, HOME)
    # [Hz] slow: on the fast clock a client that a busy computer holds up for a moment misses much of the arm's time
    assert robot.control.setWatchdog(0.05)
    robot.wait(0.05)
    began = robot.now.getTimestamp()
    while robot.now.getTimestamp() < began + 1.0:
        assert robot.control.kickWatchdog()
        time.sleep(2e-3)
    assert robot.control.isProgramRunning()
    assert robot.wait(60.0, lambda: robot.now.getRuntimeState() == 1)  # stopped
    assert robot.control.reuploadScript()  # returns before the program runs: calls fail until the client has seen it
    assert robot.wait(60.0, lambda: robot.control.moveJ([0.1, *HOME[1:]], 3.0, 10.0))
    assert robot.q()[0] == pytest.approx(0.1, abs=1e-4)


@in_child
def test_protective_stop_and_unlock(arm: str) -> None:
    import dashboard_client

    robot = Driven(arm, HOME)
    desk = dashboard_client.DashboardClient(arm)
    desk.connect()
    assert desk.robotmode() == "Robotmode: RUNNING"
    assert desk.safetystatus() == "Safetystatus: NORMAL"
    assert desk.running()
    robot.control.triggerProtectiveStop()
    assert robot.wait(2.0, lambda: robot.now.getSafetyMode() == 3)
    assert robot.now.isProtectiveStopped()
    assert not robot.control.moveJ([0.3, *HOME[1:]])
    robot.wait(5.1)
    desk.unlockProtectiveStop()
    assert robot.wait(2.0, lambda: robot.now.getSafetyMode() == 1)
    desk.powerOff()
    assert robot.wait(2.0, lambda: robot.now.getRobotMode() == 3)
    desk.powerOn()
    assert robot.wait(5.0, lambda: robot.now.getRobotMode() == 5)
    desk.brakeRelease()
    assert robot.wait(5.0, lambda: robot.now.getRobotMode() == 7)
    assert desk.polyscopeVersion().startswith("5.26")
    assert desk.isInRemoteControl()
    assert robot.control.reuploadScript()  # returns before the program runs: calls fail until the client has seen it
    assert robot.wait(60.0, lambda: robot.control.moveJ([0.1, *HOME[1:]], 3.0, 10.0))
    assert robot.q()[0] == pytest.approx(0.1, abs=1e-4)


@in_child
def test_zero_torque_holds(arm: str) -> None:
    robot = Driven(arm, HOME)
    before, began = robot.q(), robot.now.getTimestamp()
    while robot.now.getTimestamp() < began + 3.0:
        assert robot.control.directTorque([0.0] * 6)
        robot.wait(0.002)
    assert np.abs(np.array(robot.now.getActualQ()) - before).max() < 1e-3  # [rad]
    assert robot.control.moveJ(HOME, 3.0, 10.0)
