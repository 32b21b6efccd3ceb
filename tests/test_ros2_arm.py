"""A virtual arm as a robot of ROS 2, in a process of its own: what it publishes, what moves it, what does no harm."""

from __future__ import annotations

import socket
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from ros2_peer import network, process, until

import tangere
from tangere.ros2.arm_node import Stamps
from tangere.ros2.cdr import Message
from tangere.ros2.interfaces import FOLLOW, TOUCH
from tangere.ros2.node import Node, Publisher, seconds_of
from tangere.ros2.participant import LATCHED, TF, Quality
from tangere.ros2.services import ABORTED, CANCELED, SUCCEEDED, UNKNOWN, UNKNOWN_GOAL, ActionClient

pytest.importorskip("cyclonedds")
JOINTS = tuple(f"{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"))
DOMAIN = network().domain


class Robot:
    """A node that listens to the arm and talks to it."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.heard: dict[str, list[Message]] = defaultdict(list)
        self.readers = [
            node.subscription(topic, kind, self.heard[topic].append, quality)
            for topic, kind, quality in (
                ("/joint_states", "sensor_msgs/msg/JointState", Quality(1000)),
                ("/tf", "tf2_msgs/msg/TFMessage", TF),
                ("/tf_static", "tf2_msgs/msg/TFMessage", LATCHED),
                ("/robot_description", "std_msgs/msg/String", LATCHED),
                ("/force_torque_sensor_broadcaster/wrench", "geometry_msgs/msg/WrenchStamped", Quality(10)),
                ("/tangere/touch", TOUCH, Quality(10)),
            )
        ]
        self.action = ActionClient(
            node, "/joint_trajectory_controller/follow_joint_trajectory", FOLLOW, self.heard["feedback"].append
        )
        self.trajectory = node.publisher(
            "/joint_trajectory_controller/joint_trajectory", "trajectory_msgs/msg/JointTrajectory"
        )
        self.torque = node.publisher("/forward_effort_controller/commands", "std_msgs/msg/Float64MultiArray")
        until(lambda: all(reader.matched for reader in self.readers), "every topic")
        until(lambda: self.trajectory.writer.matched and self.torque.writer.matched)
        assert self.action.ready(60.0)

    @property
    def q(self) -> np.ndarray[Any, Any]:
        """The newest joint positions that are there after this call."""
        before = len(self.heard["/joint_states"])
        until(lambda: len(self.heard["/joint_states"]) > before + 1)
        return np.array(self.heard["/joint_states"][-1].position)

    def goal(self, q: Any, seconds: int = 1, names: tuple[str, ...] = JOINTS, **more: Any) -> dict[str, Any]:
        """A goal of one point."""
        point = {"positions": q, "time_from_start": {"sec": seconds}}
        return {"trajectory": {"joint_names": list(names), "points": [point]}, **more}

    def near(self, q: Any, tolerance: float = 1e-4) -> bool:
        """Whether the arm is there, to 0.1 mrad, in its newest sample."""
        return bool(np.abs(self.heard["/joint_states"][-1].position - q).max() < tolerance)


@pytest.fixture(scope="module")
def arm() -> Iterator[Robot]:
    words = ("virtual", "ur5e", "--ros2", "--domain", str(DOMAIN), "--address", f"127.0.7.{DOMAIN}")
    with process(*words, ready="ready"), Node("client", network()) as node:
        yield Robot(node)


def test_it_is_seen_and_publishes_what_a_robot_does(arm: Robot) -> None:
    until(lambda: arm.node.others() == ("/tangere",), "the node")
    until(lambda: all(arm.heard[t] for t in ("/joint_states", "/tf", "/force_torque_sensor_broadcaster/wrench")))
    state = arm.heard["/joint_states"][-1]
    assert tuple(state.name) == JOINTS
    assert len(state.position) == len(state.velocity) == len(state.effort) == 6
    assert abs(state.effort[1]) > 5.0  # gravity is in it
    assert abs(seconds_of(state.header.stamp) - time.time()) < 60.0
    assert arm.heard["/force_torque_sensor_broadcaster/wrench"][-1].header.frame_id == "tool0"


def test_stamps_always_go_forward(arm: Robot) -> None:
    first = len(arm.heard["/joint_states"])
    until(lambda: len(arm.heard["/joint_states"]) > first + 500)
    stamps = [m.header.stamp for m in arm.heard["/joint_states"][first:]]
    assert (np.diff([s.sec * 10**9 + s.nanosec for s in stamps]) > 1_000_000).all()


def test_stamps_follow_the_computer_s_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the jitter of a frame that is late, never backwards, and forward at once where time was dropped."""
    now = 10**18
    monkeypatch.setattr("tangere.ros2.arm_node.time.time_ns", lambda: now)
    stamps, told = Stamps(simulated=False), []
    for k in range(400):
        late = 60_000_000 if 100 <= k < 110 else 0
        now = 10**18 + k * 2_000_000 + late + (10**9 if k >= 200 else 0)
        told.append(stamps.tick(100.0 + 0.002 * k))
    steps = np.diff(told)
    assert (steps >= 1_500_000).all()
    assert np.abs(np.delete(steps, [199]) - 2_000_000).max() <= 1
    assert told[200] == 10**18 + 400_000_000 + 10**9
    assert stamps.of(100.7) == told[350]
    early = Stamps(simulated=False)  # the first frame was late: ahead of the clock, until it has come near
    now = 10**18 + 50_000_000
    told = [early.tick(100.0)]
    for k in range(1, 400):
        now = 10**18 + k * 2_000_000
        told.append(early.tick(100.0 + 0.002 * k))
    assert (np.diff(told) >= 1_499_999).all()
    assert told[-1] == now


def test_frames_add_up_to_the_arm_s_own_kinematics(arm: Robot) -> None:
    """/tf and /tf_static from base to tool0 against forward kinematics of the joint state."""
    until(lambda: arm.heard["/tf"] and arm.heard["/tf_static"])
    message = arm.heard["/tf"][-1]
    stamp = message.transforms[0].header.stamp
    state = until(lambda: next((m for m in arm.heard["/joint_states"] if m.header.stamp == stamp), None))
    links = {t.child_frame_id: t for t in (*message.transforms, *arm.heard["/tf_static"][0].transforms)}
    T, frame = np.eye(4), "tool0"
    while frame != "base":
        its = links[frame]
        T = _matrix(its.transform) @ T
        frame = its.header.frame_id
    assert np.abs(T - tangere.robot("ur5e").pose(state.position)).max() < 1e-9


def _matrix(transform: Message) -> np.ndarray[Any, Any]:
    from tangere.kinematics.rotation import matrix_from_quaternion

    r, t = transform.rotation, transform.translation
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = matrix_from_quaternion([r.w, r.x, r.y, r.z]), (t.x, t.y, t.z)
    return T


def test_late_joiners_get_the_description(arm: Robot) -> None:
    text = until(lambda: arm.heard["/robot_description"])[0].data
    names = [
        joint.get("name") for joint in ElementTree.fromstring(text).iter("joint") if joint.get("type") == "revolute"
    ]
    assert tuple(names) == JOINTS


def test_a_trajectory_by_topic_moves_the_arm_there(arm: Robot) -> None:
    """Joints in another order; 0.1 mrad."""
    start = arm.q
    goal = start + np.array([0.3, -0.2, 0.25, 0.1, -0.4, 0.5])
    order = [4, 0, 3, 5, 1, 2]
    point = {"positions": goal[order], "time_from_start": {"sec": 1}}
    arm.trajectory.publish({"joint_names": [JOINTS[i] for i in order], "points": [point]})
    until(lambda: arm.near(goal), "the arm at its goal")


def test_an_action_succeeds_with_feedback(arm: Robot) -> None:
    start, arm.heard["feedback"] = arm.q, arm.heard["feedback"]
    arm.heard["feedback"].clear()
    goal = start + 0.2
    key, accepted = arm.action.send(arm.goal(goal), 60.0)
    assert accepted
    status, result = arm.action.result(key)
    assert (status, result.error_code, result.error_string) == (SUCCEEDED, 0, "")
    until(lambda: arm.near(goal))
    told = [m.feedback for m in arm.heard["feedback"]]
    assert len(told) >= 10
    assert tuple(told[0].joint_names) == JOINTS
    assert np.abs(told[0].desired.positions - start).max() < 1e-3
    assert all(np.abs(f.error.positions - (f.desired.positions - f.actual.positions)).max() < 1e-12 for f in told)


def test_an_action_is_canceled_on_its_way(arm: Robot) -> None:
    start = arm.q
    key, accepted = arm.action.send(arm.goal(start + 1.0, 20), 60.0)
    assert accepted
    until(lambda: np.abs(arm.q - start).max() > 1e-3, "the arm moves")
    assert arm.action.cancel(key, 60.0) == 0
    assert arm.action.result(key)[0] == CANCELED
    until(lambda: np.abs(arm.heard["/joint_states"][-1].velocity).max() < 0.01, "it stands")
    assert np.abs(arm.q - start).max() < 0.9
    assert arm.action.cancel(key, 60.0) == 3  # ended already


def test_unknown_goals_and_wrong_joints_are_refused(arm: Robot) -> None:
    stranger = bytes(range(16))
    assert arm.action.cancel(stranger, 60.0) == UNKNOWN_GOAL
    assert arm.action.result(stranger)[0] == UNKNOWN
    q = arm.q
    moving = arm.goal(q)
    moving["trajectory"]["points"][0]["velocities"] = [0.3, 0.0, 0.0, 0.0, 0.0, 0.0]
    for bad, code, says in (
        (arm.goal(q, names=("x", *JOINTS[1:])), -2, "this arm has shoulder_pan_joint"),
        (arm.goal(q[:5], names=JOINTS[:5]), -2, "each is needed once"),
        (arm.goal(q[:5]), -1, "6 numbers"),
        (arm.goal(q * np.nan), -1, "finite"),
        (arm.goal(q + 3.0, 0), -1, "due at once"),
        (arm.goal(q - np.array([0.0, 0.0, 0.0, 0.0, 0.0, 4.0]), 1), -1, "rad/s, at most"),
        (arm.goal(q + 9.0, 20), -1, "cannot turn so far"),
        (moving, -1, "turns at 0.3 rad/s in the last point"),
        (arm.goal(q) | {"goal_tolerance": [{"name": "x", "position": 1.0}]}, -2, "tolerance for 'x'"),
        ({"trajectory": {"joint_names": list(JOINTS)}}, -1, "0 points"),
    ):
        key, accepted = arm.action.send(bad, 60.0)
        assert not accepted
        status, result = arm.action.result(key)
        assert (status, result.error_code) == (UNKNOWN, code)
        assert says in result.error_string
    assert arm.near(q, 1e-3)


def test_a_new_goal_ends_the_one_that_runs(arm: Robot) -> None:
    start = arm.q
    first, _ = arm.action.send(arm.goal(start + 0.5, 20), 60.0)
    second, _ = arm.action.send(arm.goal(start, 1), 60.0)
    status, result = arm.action.result(first)
    assert (status, result.error_string) == (ABORTED, "another command came")
    assert arm.action.result(second)[0] == SUCCEEDED


def test_a_torque_moves_the_arm_and_its_end_stops_it(arm: Robot) -> None:
    """About the vertical axis, where it takes long to get fast."""
    before = arm.q
    deadline = time.monotonic() + 60.0
    while arm.q[0] - before[0] < 0.02:
        assert time.monotonic() < deadline
        arm.torque.publish({"data": [10.0, 0.0, 0.0, 0.0, 0.0, 0.0]})
    until(lambda: np.abs(arm.heard["/joint_states"][-1].velocity).max() < 0.01, "it stands")
    moved = arm.q - before
    assert moved[0] > 0.02
    assert np.abs(moved[1:3]).max() < 0.05  # gravity is the arm's own business
    key, _ = arm.action.send(arm.goal(before), 60.0)
    assert arm.action.result(key)[0] == SUCCEEDED


@pytest.mark.parametrize("data", [[np.nan] * 6, [1.0] * 5, [], [np.inf, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0] * 100_000])
def test_torques_that_are_none_do_no_harm(arm: Robot, data: list[float]) -> None:
    q = arm.q
    arm.torque.publish({"data": data})
    assert np.abs(arm.q - q).max() < 1e-3


def test_huge_and_foreign_messages_do_no_harm(arm: Robot) -> None:
    q = arm.q
    names = ["x" * 1000] * 5000
    arm.trajectory.publish({"joint_names": names, "points": []})
    points = [{"positions": [1e300] * 6, "time_from_start": {"sec": k}} for k in range(20_000)]
    arm.trajectory.publish({"joint_names": list(JOINTS), "points": points})
    foreign = arm.node.publisher("/joint_trajectory_controller/joint_trajectory", "std_msgs/msg/String")
    foreign.publish({"data": "go"})
    arm.node.participant.forget(foreign.writer)
    assert np.abs(arm.q - q).max() < 1e-3
    key, accepted = arm.action.send(arm.goal(q), 60.0)
    assert (accepted, arm.action.result(key)[0]) == (True, SUCCEEDED), arm.action.result(key)


def test_a_client_that_dies_leaves_the_arm_as_it_is(arm: Robot) -> None:
    """Without a goodbye: its goal goes on, and others are served."""
    start = arm.q
    with Node("mortal", network()) as mortal:
        action = ActionClient(mortal, "/scaled_joint_trajectory_controller/follow_joint_trajectory", FOLLOW)
        assert action.ready(60.0)
        _, accepted = action.send(arm.goal(start + 0.1), 60.0)
        assert accepted
        mortal.participant.close()
    until(lambda: arm.near(start + 0.1))
    assert arm.action.cancel(seconds=60.0) == 0  # nothing runs, nothing is refused


def _desk(*lines: str) -> None:
    """Lines to the controller's dashboard."""
    with socket.create_connection((f"127.0.7.{DOMAIN}", 29999), 60.0) as desk:
        desk.recv(1000)
        for line in lines:
            desk.sendall(f"{line}\n".encode())
            desk.recv(1000)


def test_a_push_is_felt(arm: Robot) -> None:
    arm.heard["/tangere/touch"].clear()
    _desk("push joint=2,torque=40,duration=1")
    touch = until(lambda: next((t for t in arm.heard["/tangere/touch"] if t.alarm), None), "a touch")
    assert touch.joint_name in JOINTS[:3]
    assert touch.phase in ("raised", "changed")
    assert abs(seconds_of(touch.header.stamp) - time.time()) < 60.0
    assert touch.torque > 10.0
    until(lambda: any(t.phase == "ended" for t in arm.heard["/tangere/touch"]), "its end")


def test_while_a_program_runs_ros_does_not_move_the_arm(arm: Robot) -> None:
    q = arm.q
    with socket.create_connection((f"127.0.7.{DOMAIN}", 30002), 60.0) as port:
        port.sendall(b"def busy():\n  while True:\n    sleep(0.1)\n  end\nend\n")
        refused = until(lambda: (found := arm.action.send(arm.goal(q + 0.1), 60.0))[1] is False and found)
        assert "a program runs" in arm.action.result(refused[0])[1].error_string
        _desk("stop")
    until(lambda: arm.action.send(arm.goal(q), 60.0)[1], "the arm is free again")


def test_publishers_of_the_arm_keep_to_the_quality_of_ros(arm: Robot) -> None:
    with Node("late", network()) as late:
        best = late.subscription("/joint_states", "sensor_msgs/msg/JointState", print, Quality(5, reliable=False))
        kept = late.subscription("/joint_states", "sensor_msgs/msg/JointState", print, LATCHED)
        until(lambda: best.matched)
        assert kept.matched == 0
    assert isinstance(arm.trajectory, Publisher)
