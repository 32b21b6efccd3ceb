"""Faults of ur_rtde 1.6.5 that an honest controller shows: each is seen here, so that its users can be told.

A later version that mends one of them makes its test fail: then the note in docs/clients.md goes, too.
"""

from __future__ import annotations

import math
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from virtual_arms import HOME, Driven, address, in_child, ready, recover, virtual

import tangere
from tangere.apps.virtual_ur.controller import Controller
from tangere.apps.virtual_ur.inside import Inside
from tangere.apps.virtual_ur.modes import Profile, Runtime
from tangere.model.loading import load

pytest.importorskip("rtde_control", reason="ur_rtde is not installed: its faults are not tried")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the arm keeps the programs that clients upload."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def watched(kept: Path) -> Iterator[str]:
    with virtual("--programs", str(kept)) as host:
        yield host


@pytest.fixture
def arm(watched: str) -> Iterator[str]:
    yield watched
    recover(watched)


def turned(robot: Driven, torque: float, *scales: list[float]) -> float:
    """How far the last joint turns [rad] within half a second of a torque [Nm]."""
    before, end = robot.q()[5], robot.now.getTimestamp() + 0.5
    while robot.now.getTimestamp() < end:
        assert robot.control.directTorque([0.0] * 5 + [torque], *scales)
        robot.wait(0.002)
    after, end = robot.now.getActualQ()[5], robot.now.getTimestamp() + 0.5
    while robot.now.getTimestamp() < end:  # friction stops it
        assert robot.control.directTorque([0.0] * 6)
        robot.wait(0.002)
    return float(abs(after - before))


def test_direct_torque_does_nothing_below_5_26_and_says_true() -> None:
    with virtual("--plant", "rigid", "--polyscope", "5.25.1") as host:
        old(host=host)


@in_child
def old(host: str) -> None:
    assert turned(Driven(host, HOME), 5.0) < 1e-3


@in_child
def test_friction_scales_do_not_arrive(arm: str) -> None:
    """1.2 Nm is below the joint's dry friction of 1.7 Nm: it goes on turning only where friction is made up for."""
    robot = Driven(arm, HOME)
    assert turned(robot, 2.5) > 0.05  # torque does arrive, and without it the joint comes to rest
    assert robot.control.moveJ(HOME, 3.0, 10.0)

    def torque(value: float, seconds: float) -> float:
        end = robot.now.getTimestamp() + seconds
        while robot.now.getTimestamp() < end:
            assert robot.control.directTorque([0.0] * 5 + [value], [1.0] * 6, [1.0] * 6)
            robot.wait(0.002)
        return abs(robot.now.getActualQd()[5])

    assert torque(2.5, 0.2) > 0.1
    assert torque(1.2, 1.0) < 0.05
    before = robot.q()[5]
    robot.control.stopScript()
    robot.control.disconnect()
    ones = "[1,1,1,1,1,1]"
    push = "  n = 0\n  while n < {}:\n    direct_torque([0,0,0,0,0,{}], {}, {})\n    n = n + 1\n  end\n"
    with socket.create_connection((arm, 30002), 5) as sock:
        sock.sendall(f"def own():\n{push.format(50, 2.5, ones, ones)}{push.format(100, 1.2, ones, ones)}end\n".encode())
        # it stands again before a client that is held up has seen it turn: how far it came stays
        assert robot.wait(60.0, lambda: abs(robot.now.getActualQ()[5] - before) > 0.2)
        robot.wait(2.0)  # it brakes


@in_child
def test_some_queries_answer_what_was_asked_before(arm: str) -> None:
    """The client does not wait for the script's answer: it reads what the registers held."""
    robot = Driven(arm, HOME)
    c = robot.control
    first, later = [], []
    for _ in range(20):
        assert c.poseTrans([0.7, 0, 0, 0, 0, 0], [0.0] * 6)[0] == pytest.approx(0.7)
        robot.wait(0.02)
        first.append(c.getStepTime())
        robot.wait(0.02)
        later.append(c.getStepTime())
        robot.wait(0.02)
    assert max(first) == pytest.approx(0.7)  # the pose of the question before
    assert min(later) == pytest.approx(0.002)


@in_child
def test_arguments_of_model_queries_are_ignored(arm: str) -> None:
    robot = Driven(arm, HOME)

    def matrix(q: list[float]) -> np.ndarray:
        for _ in range(3):
            found = robot.control.getMassMatrix(q, False)
            robot.wait(0.05)
        return np.array(found)

    other = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert np.abs(matrix(HOME) - matrix(other)).max() < 1e-3
    ours = tangere.robot("ur5e")
    assert np.abs(ours.mass_matrix(HOME) - ours.mass_matrix(other)).max() > 1.0


@in_child
def test_after_servo_c_the_next_call_fails(arm: str) -> None:
    robot = Driven(arm, HOME)
    pose = robot.tool()
    pose[2] += 0.05
    # Seven hours of the controller's clock: the client gives up after 4 s of its own, however fast that clock runs.
    assert robot.control.servoC(pose.tolist(), 2e-6, 1.2, 0.0)
    robot.wait(0.05)
    assert not robot.control.moveJ(HOME)
    assert robot.control.isProgramRunning()
    assert robot.control.jogStart([0.0, 0.0, 0.01, 0.0, 0.0, 0.0], 0)  # a second thread that moves: the program ends
    assert robot.wait(2.0, lambda: not robot.control.isProgramRunning())


@in_child
def test_after_servo_c_the_program_must_be_sent_again(arm: str) -> None:
    """It arrives; but nobody tells the script that its end was seen, so that the next call fails all the same."""
    robot = Driven(arm, HOME)
    pose = robot.tool()
    pose[2] += 0.05
    assert robot.control.servoC(pose.tolist(), 0.25, 1.2, 0.0)
    assert robot.wait(60.0, lambda: abs(robot.now.getActualTCPPose()[2] - pose[2]) < 1e-5)
    assert np.abs(robot.tool() - pose)[:3].max() < 1e-3
    assert not robot.control.moveJ(HOME)
    robot.control.stopScript()
    assert robot.control.reuploadScript()
    assert robot.wait(60.0, lambda: robot.control.moveJ(HOME))


@in_child
def test_forward_kinematics_of_other_joints_takes_an_old_tool(arm: str) -> None:
    """Without a tool of its own the question leaves the tool's registers as they were: here speed and acceleration."""
    robot = Driven(arm, HOME)
    q = [0.3, -1.2, 1.4, -1.7, -1.5, 0.2]
    assert robot.control.moveJ(HOME, 1.05, 1.4)
    found = robot.control.getForwardKinematics(q)
    assert np.linalg.norm(np.array(found[:3]) - tangere.robot("ur5e").pose(q, form="ur")[:3]) > 1.0


@in_child
def test_an_external_wrench_is_lost(arm: str) -> None:
    """It is sent with the recipe of another command, four bytes short; the controller says that it drops it."""
    robot = Driven(arm, HOME)
    with socket.create_connection((arm, 30001), 20) as told:
        robot.control.setExternalForceTorque([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
        heard = b""
        while b"inputs dropped: 52 bytes, its recipe has 56" not in heard:
            heard = heard[-200:] + told.recv(1 << 16)


def test_the_upper_registers_cannot_be_used() -> None:
    """The script is told to use registers from 24 on, the client goes on with those from 0."""
    with virtual("--plant", "rigid") as host:
        upper(host=host)


@in_child
def upper(host: str) -> None:
    import rtde_control

    kind = rtde_control.RTDEControlInterface
    control = kind(host, 500.0, kind.FLAG_UPLOAD_SCRIPT | kind.FLAG_UPPER_RANGE_REGISTERS)
    assert not control.moveJ(HOME)


@pytest.mark.parametrize("call", ["stopL", "stopJ"])
@in_child
def test_stop_l_stops_joints_and_stop_j_at_once_the_tool(arm: str, call: str) -> None:
    """A tool at 0.02 m/s stands after 4 s at 0.005 m/s2; joints at 0.005 rad/s2 take as long as their speed says.

    Slowly: the move must not end before a client that is held up has stopped it.
    """
    robot = Driven(arm, HOME)
    goal = robot.tool()
    goal[2] += 0.2
    assert robot.control.moveL(goal.tolist(), 0.02, 2.0, True)
    assert robot.wait(5.0, lambda: np.linalg.norm(robot.now.getTargetTCPSpeed()[:3]) > 0.0199)
    fastest, began = float(np.abs(robot.now.getTargetQd()).max()), robot.now.getTimestamp()
    getattr(robot.control, call)(0.005, call == "stopJ")
    assert robot.wait(60.0, lambda: np.abs(robot.now.getTargetQd()).max() < 1e-9)
    tool, joints = 4.0, fastest / 0.005
    took, wrong, right = robot.now.getTimestamp() - began, joints, tool
    if call == "stopJ":
        wrong, right = tool, joints
    assert took == pytest.approx(wrong, rel=0.2)
    assert not math.isclose(took, right, rel_tol=0.2)


def test_reupload_script_does_not_wait_for_the_program() -> None:
    host = address()
    with ready(host, "--plant", "rigid") as process:
        again(host=host, pid=process.pid)


@in_child
def again(host: str, pid: int) -> None:
    robot = Driven(host)
    robot.control.stopScript()
    assert robot.wait(5.0, lambda: not robot.control.isProgramRunning())
    os.kill(pid, signal.SIGSTOP)  # a controller that cannot run anything
    try:
        assert robot.control.reuploadScript()
        assert not robot.control.isProgramRunning()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert robot.wait(5.0, robot.control.isProgramRunning)


def test_a_watchdog_is_lost_when_a_package_follows_within_the_frame(arm: str, kept: Path) -> None:
    """The client does not wait for it; the script sees what stands in the registers when the frame begins."""

    @in_child
    def connect() -> None:
        Driven(arm)

    connect()
    text = sorted(kept.iterdir())[0].read_text()
    for lost in (True, False):
        controller = Controller(Inside(load("ur5e"), plant="rigid"), Profile())
        controller.upload(text)
        for _ in range(50):
            controller.tick()
        assert controller.registers.out_int[0] == 1  # ready
        take = controller.exchange.taker(("input_int_register_0", "input_double_register_0"))
        take((35, 10.0))
        if not lost:
            controller.tick()
        take((0, 10.0))
        for _ in range(500):
            controller.tick()
        assert controller.runtime == (Runtime.PLAYING if lost else Runtime.STOPPED)
