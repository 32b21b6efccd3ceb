"""Public clients, unmodified, in processes of their own, drive a virtual arm: what they are told is checked by physics.

ur_rtde 1.6.5 (Control, Receive, IO, Dashboard, Script client), UR's own RTDE client (in the package urinterface), and
the torque worker of airo-robots.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from virtual_arms import AT_WALL, HOME, WALL, Driven, in_child, listening, virtual

pytest.importorskip("rtde_control", reason="ur_rtde is not installed: its calls are not tried")

# ------------------------------------------------------------------------------------------------------ ur_rtde, motion


@in_child
def test_moves_end_where_they_were_told(arm: str) -> None:
    robot = Driven(arm, HOME)
    c = robot.control
    goal = [0.2, -1.4, 1.8, -1.97, -1.57, 0.3]
    assert c.moveJ(goal)
    assert np.abs(robot.q() - goal).max() < 1e-4  # [rad]
    pose = robot.tool() + [0.0, -0.05, 0.1, 0.0, 0.0, 0.0]
    assert c.moveL(pose.tolist(), 0.5, 1.2)
    assert np.abs(robot.tool() - pose)[:3].max() < 1e-3  # [m]
    assert c.moveJ_IK((pose - [0.0, 0.0, 0.1, 0.0, 0.0, 0.0]).tolist(), 2.0, 4.0)
    assert np.abs(robot.tool() - pose + [0.0, 0.0, 0.1, 0.0, 0.0, 0.0])[:3].max() < 1e-3
    assert c.moveL_FK(goal, 0.5, 1.2)
    assert np.abs(robot.q() - goal).max() < 1e-4


@in_child
def test_speeds_are_reached_and_stopped(arm: str) -> None:
    robot = Driven(arm, HOME)
    c = robot.control
    assert c.speedL([0.0, 0.05, 0.0, 0.0, 0.0, 0.0], 0.5, 0.0)
    robot.wait(0.4)
    assert robot.speed()[:3] == pytest.approx([0.0, 0.05, 0.0], abs=2e-3)
    assert c.speedStop()
    robot.wait(0.3)
    assert np.abs(robot.speed()).max() < 3e-3
    assert c.speedJ([0.3, 0.0, 0.0, 0.0, 0.0, 0.0], 2.0, 0.0)
    robot.wait(0.4)
    assert np.mean([robot.now.getActualQd()[0] for _ in range(30) if not robot.wait(0.004)]) == pytest.approx(
        0.3, abs=5e-3
    )
    assert c.speedStop()


@in_child
def test_servo_follows_a_stream_of_goals(arm: str) -> None:
    robot = Driven(arm, HOME)
    goal = np.array(HOME)
    for _ in range(500):  # so small a step that it does not matter how many frames pass between two calls
        goal = goal + np.array([4e-4, 0.0, 0.0, 0.0, 0.0, -4e-4])
        assert robot.control.servoJ(goal.tolist(), 0.5, 0.5, 0.002, 0.05, 600)
        robot.wait(0.001)
    assert np.abs(robot.q() - goal).max() < 1e-3
    assert robot.control.servoStop()
    pose = robot.tool()
    for _ in range(100):
        pose[2] += 2e-4
        assert robot.control.servoL(pose.tolist(), 0.5, 0.5, 0.002, 0.05, 600)
        robot.wait(0.001)
    assert np.abs(robot.tool() - pose)[:3].max() < 1e-3
    assert robot.control.servoStop()


@in_child
def test_jog_in_three_frames(arm: str) -> None:
    robot = Driven(arm, HOME)
    c = robot.control
    assert c.moveJ_IK([0.4, 0.1, 0.4, 0.0, math.pi / 2, 0.0], 2.0, 6.0)
    turned = [0.0, 0.0, 0.0, 0.0, 0.0, math.pi / 2]
    for feature, frame, way in (
        (c.FEATURE_BASE, [0.0] * 6, [1, 0, 0]),
        (c.FEATURE_TOOL, [0.0] * 6, [0, 0, -1]),  # the tool's x axis looks down
        (c.FEATURE_CUSTOM, turned, [0, 1, 0]),
    ):
        assert c.jogStart([0.03, 0.0, 0.0, 0.0, 0.0, 0.0], feature, 0.5, frame)
        robot.wait(0.3)
        assert robot.speed()[:3] == pytest.approx(0.03 * np.array(way), abs=2e-3)
        assert c.jogStop()
        robot.wait(0.2)


@in_child
def test_path_with_blends(arm: str) -> None:
    import rtde_control

    robot = Driven(arm, HOME)
    path, kinds = rtde_control.Path(), rtde_control.PathEntry
    base = robot.tool()
    corners = [base + [dx, dy, 0.0, 0.0, 0.0, 0.0] for dx, dy in ((-0.1, 0.0), (-0.1, 0.1), (0.0, 0.1))]
    for corner, blend in zip(corners, (0.02, 0.02, 0.0), strict=True):
        entry = [*corner.tolist(), 0.025, 1.2, blend]  # slowly: so that a client that is held up sees its corners
        path.addEntry(kinds(kinds.MoveL, kinds.PositionTcpPose, entry))
    nearest = [9.0, 9.0]
    assert robot.control.movePath(path, True)

    def seen() -> bool:
        at = np.array(robot.now.getActualTCPPose())
        for k in range(2):
            nearest[k] = min(nearest[k], float(np.linalg.norm(at[:3] - corners[k][:3])))
        return robot.control.getAsyncOperationProgress() < 0

    assert robot.wait(60.0, seen)
    assert np.abs(robot.tool() - corners[-1])[:3].max() < 1e-3
    assert all(1e-3 < gap < 0.02 for gap in nearest), nearest  # rounded, within the blend radius


@in_child
def test_an_asynchronous_move_is_stopped_on_its_way(arm: str) -> None:
    robot = Driven(arm, HOME)
    c = robot.control
    goal = [1.0, *HOME[1:]]
    assert c.moveJ(goal, 0.02, 1.4, True)  # 50 s of the controller's clock: seconds of the client's, however fast
    assert robot.wait(60.0, lambda: robot.now.getActualQ()[0] > 0.05)
    assert c.getAsyncOperationProgress() >= 0
    c.stopJ(2.0)
    at = robot.q()[0]
    assert 0.05 < at < 0.9
    robot.wait(0.5)
    assert robot.q()[0] == pytest.approx(at, abs=1e-4)  # it stands
    assert c.moveJ(goal, 3.0, 8.0)  # and goes on when told
    assert np.abs(robot.q() - goal).max() < 1e-4


# ----------------------------------------------------------------------------------------------------- ur_rtde, contact


@in_child
def test_a_move_until_contact_ends_at_the_wall(arm: str) -> None:
    robot = Driven(arm, HOME)
    robot.to_wall()
    assert robot.control.moveUntilContact([0.05, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert robot.tool()[0] == pytest.approx(WALL, abs=1e-4)  # [m]
    assert robot.control.moveJ_IK(AT_WALL, 1.0, 2.0)


@in_child
def test_force_mode_holds_ten_newtons_for_five_seconds(arm: str) -> None:
    robot = Driven(arm, HOME)
    robot.to_wall()
    c = robot.control
    assert c.moveL([WALL - 0.002, *AT_WALL[1:]], 0.1, 0.5)
    assert c.forceMode([0.0] * 6, [1, 0, 0, 0, 0, 0], [10.0, 0, 0, 0, 0, 0], 2, [0.05] * 3 + [0.3] * 3)
    assert robot.wait(10.0, lambda: robot.now.getActualTCPForce()[0] < -9.5)
    robot.wait(0.5)
    began, felt = robot.now.getTimestamp(), []
    while robot.now.getTimestamp() < began + 5.0:
        felt.append(robot.now.getActualTCPForce()[:3])
        time.sleep(2e-4)
    force = np.array(felt)
    assert len(force) > 50
    assert np.abs(force[:, 0] + 10.0).max() < 1.0  # [N]; the wall pushes back
    # along the wall the arm is held: friction there is anything within its cone (0.5), for single frames up to its edge
    assert np.linalg.norm(force[:, 1:], axis=1).max() < 0.5 * 11.0
    assert np.abs(force[:, 1:].mean(axis=0)).max() < 0.5
    assert c.forceModeStop()
    assert c.moveJ_IK(AT_WALL, 1.0, 2.0)


@in_child
def test_contact_is_detected_while_it_moves(arm: str) -> None:
    robot = Driven(arm, HOME)
    robot.to_wall()
    c = robot.control
    assert c.toolContact([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]) == 0
    assert c.startContactDetection([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert not c.readContactDetection()
    assert c.moveL([WALL + 0.001, *AT_WALL[1:]], 0.05, 0.5)  # 1 mm into it: 20 N
    assert c.readContactDetection()
    assert c.stopContactDetection()
    assert c.moveJ_IK(AT_WALL, 1.0, 2.0)


# ----------------------------------------------------------------------------------------------------------- the others


@in_child
def test_universal_robots_own_client(arm: str) -> None:
    rtde = pytest.importorskip("third_party.rtde.rtde", reason="urinterface is not installed")
    client = rtde.RTDE(arm, 30004)
    client.connect()
    assert client.get_controller_version()[:2] == (5, 26)
    with pytest.raises(ValueError, match="NOT_FOUND"):
        client.send_output_setup(["actual_q", "nonsense"], ["VECTOR6D", "DOUBLE"])
    assert client.send_output_setup(["timestamp", "actual_q"], ["DOUBLE", "VECTOR6D"], 250)
    inputs = client.send_input_setup(["input_int_register_30"], ["INT32"])
    other = rtde.RTDE(arm, 30004)
    other.connect()
    with pytest.raises(ValueError, match="already in use"):
        other.send_input_setup(["input_int_register_30"], ["INT32"])
    other.disconnect()
    with listening(arm, "input_int_register_30") as seen:
        assert client.send_start()
        inputs.input_int_register_30 = 17
        assert client.send(inputs)
        stamps = [client.receive().timestamp for _ in range(250)]
        while (values := seen.receive(5.0)) is not None and values["input_int_register_30"] != 17:
            pass
        assert values is not None
    steps = np.diff(stamps)
    assert np.abs(steps[steps < 5e-3] - 4e-3).max() < 1e-9  # 250 Hz: every other frame
    assert client.send_pause()
    client.disconnect()


def test_torque_worker_of_airo() -> None:
    pytest.importorskip(
        "airo_robots.manipulators.hardware.ur_rtde_torque", reason="airo-robots is not installed: not tried"
    )
    with virtual(robot="ur3e", clock="real") as host:
        airo(host=host)


@in_child
def airo(host: str) -> None:
    from airo_robots.manipulators.hardware.ur_rtde_torque import URrtdeTorque

    robot = URrtdeTorque(host)
    start = robot.get_joint_configuration()
    robot.enable_torque_control()
    end = time.monotonic() + 60.0
    robot.target_joint_configuration = start + [0, 0, 0, 0, 0, 0.6]
    while abs(robot.get_joint_configuration()[5] - start[5]) < 0.2:  # friction scales do not arrive: it stops short
        assert time.monotonic() < end
        time.sleep(0.01)
    robot.disable_torque_control()
    robot.move_to_joint_configuration(start, 1.0).wait()
    assert np.abs(robot.get_joint_configuration() - start).max() < 1e-2
