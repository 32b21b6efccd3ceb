"""Services, and the nodes that feel, compute joints and draw."""

from __future__ import annotations

import re
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from ros2_peer import PATIENCE, network, process, until
from watched_logs import ROBOT, columns_of

import tangere
from tangere.errors import InvalidValue, NoSolution, TangereError
from tangere.identification.belief import belief
from tangere.logs.log import Log
from tangere.logs.recordings import Recording
from tangere.logs.ros_types import parsed
from tangere.loop.follow import Follower
from tangere.ros2 import names
from tangere.ros2.cdr import Message
from tangere.ros2.draw import image_message, png_of
from tangere.ros2.ik import PATH, PATH_TYPE, POSE_TYPE, TARGET, TRAJECTORY, IkNode, path_message, pose_of
from tangere.ros2.interfaces import SHARE, TOUCH, interfaces_of
from tangere.ros2.node import Node, seconds_of, stamp_of
from tangere.ros2.participant import LATCHED, Quality
from tangere.ros2.services import Client, Service, answering
from tangere.ros2.touching import WatchNode

pytest.importorskip("cyclonedds")
ADD, STATES = "example_interfaces/srv/AddTwoInts", "sensor_msgs/msg/JointState"


@pytest.fixture
def two() -> Iterator[tuple[Node, Node]]:
    with Node("one", network()) as one, Node("two", network()) as two:
        yield one, two


# ------------------------------------------------------------------------------------------------------------ services


def test_a_service_answers_each_client_its_own(two: tuple[Node, Node]) -> None:
    Service(two[0], "/add", ADD, answering(lambda request: {"sum": request.a + request.b}))
    first, second = Client(two[1], "/add", ADD), Client(two[1], "/add", ADD)
    assert first.ready(PATIENCE)
    assert second.ready(PATIENCE)
    for k in range(250):
        assert first.call({"a": k, "b": 1}, PATIENCE).sum == k + 1
        assert second.call({"a": k, "b": -1}, PATIENCE).sum == k - 1


def test_an_answer_for_a_stranger_is_not_taken(two: tuple[Node, Node]) -> None:
    """A server that answers with another client's number first, as a reader of everybody's replies sees it."""
    codec = two[0].participant.codec
    writer = two[0].writer(names.reply("/add"), f"{ADD}_Response")

    def asked(data: bytes, _: int) -> None:
        (guid, number), _request = codec.decode_service(f"{ADD}_Request", data)
        for who, count, value in ((guid ^ 1, number, 1), (guid, number + 1, 2), (guid, number, 3)):
            writer.write(codec.encode(f"{ADD}_Response", {"sum": value}, struct.pack("<Qq", who, count)))

    two[0].reader(names.request("/add"), f"{ADD}_Request", asked)
    client = Client(two[1], "/add", ADD)
    assert client.ready(PATIENCE)
    assert client.call({}, PATIENCE).sum == 3


def test_a_service_that_is_gone_is_said_and_one_that_comes_back_answers(two: tuple[Node, Node]) -> None:
    client = Client(two[1], "/add", ADD)
    with Node("server", network()) as server:
        Service(server, "/add", ADD, answering(lambda request: {"sum": 7}))
        assert client.ready(PATIENCE)
        assert client.call({}, PATIENCE).sum == 7
    with pytest.raises(TangereError, match=r"/add: no answer within 0\.05 s; does a server run"):
        client.call({}, 0.05)
    with Node("server", network()) as server:
        Service(server, "/add", ADD, answering(lambda request: {"sum": 8}))
        until(lambda: client._writer.matched and client._reader.matched)
        assert client.call({}, PATIENCE).sum == 8


# --------------------------------------------------------------------------------------------------------------- watch


def test_watch_tells_what_a_file_of_the_same_samples_tells(two: tuple[Node, Node]) -> None:
    """Joints in another order, with a gripper between, and rubbish among them."""
    columns = columns_of(push=(3.0, 4.0, 45.0))
    ns = np.round((columns["time"] - columns["time"][0]) * 1e9).astype(int)
    columns["time"] = ns * 1e-9
    rows = Recording("log", Log(columns), (), "0" * 64).rows()
    told: list[Any] = []
    Follower(ROBOT, belief(ROBOT), name="file").follow(_Rows(rows), told.append)
    assert any(event.alarm for event in told)

    heard: list[Message] = []
    reader = two[0].subscription("/tangere/touch", TOUCH, heard.append, Quality(100))
    states = two[0].publisher("/joint_states", STATES, Quality(5000))
    watching = WatchNode(two[1], ROBOT, belief(ROBOT))
    until(lambda: states.writer.matched == 2 and reader.matched)  # watch has two readers
    joints = [joint.name for joint in ROBOT.model.joints]
    order = [2, 0, 1, 5, 4, 3]
    start = 1_700_000_000 * 10**9

    def put(values: Any) -> list[float]:
        return [*values[order[:3]], 0.5, *values[order[3:]]]

    mixed = [*(joints[i] for i in order[:3]), "finger", *(joints[i] for i in order[3:])]
    for k in range(len(ns)):
        message = {
            "header": {"stamp": stamp_of(start + int(ns[k]))}, "name": mixed, "position": put(columns["q"][k]),
            "velocity": put(columns["qd"][k]), "effort": put(columns["tau"][k]),
        }  # fmt: skip
        assert states.publish(message)
        if k % 100 == 50:
            states.publish({"name": ["finger"], "position": [0.1]})
            states.publish(message | {"effort": []})
            states.publish(message | {"position": put(columns["q"][k] * np.nan)})
            states.publish(message | {"header": {}})
            states.publish(message)
        if k % 200 == 0:
            until(lambda k=k: watching.used > k)
    until(lambda: watching.used >= len(columns["time"]))
    watching.close()
    assert watching.watch.error == ""
    until(lambda: len(heard) == len(told))
    for message, event in zip(heard, told, strict=True):
        assert (message.number, message.phase, message.kind) == (event.number, event.phase, event.kind)
        assert seconds_of(message.header.stamp) - 1_700_000_000 == pytest.approx(event.time_s, abs=1e-6)
        assert message.torque == pytest.approx(event.torque_nm, rel=1e-3)
        assert message.joint_name == joints[event.joint - 1]
        assert message.located == (event.force is not None)
    count = len(range(50, len(columns["time"]), 100))
    assert watching.problems["messages without this arm's joints"] == count
    assert watching.problems["messages without position or effort"] == count
    assert watching.problems["messages with numbers that are not finite"] == count
    assert watching.problems["messages without a stamp"] == count
    assert watching.watch.rows.problems["stamps that repeat or go back"] == count


class _Rows:
    def __init__(self, rows: Any) -> None:
        from collections import Counter

        self.problems: Counter[str] = Counter()
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)


@pytest.mark.parametrize("words", [("ik", "--robot", "ur5e"), ("watch", "--robot", "ur5e"), ("draw",)])
def test_a_node_ends_in_order_when_it_is_told_to(words: tuple[str, ...]) -> None:
    with process("ros2", *words, "--domain", str(network().domain), ready="ready") as done:
        done.terminate()
        _, errors = done.communicate(timeout=PATIENCE)
    assert "Traceback" not in errors
    assert done.returncode == 0, errors

def test_watch_says_what_is_missing(two: tuple[Node, Node]) -> None:
    watching = WatchNode(two[1], ROBOT, belief(ROBOT), topic="/states")
    with pytest.raises(TangereError, match="nobody publishes /states here; same --domain"):
        watching.wait(0.01)
    states = two[0].publisher("/states", STATES)
    until(lambda: states.writer.matched == 2)
    states.publish({"name": ["x"]})
    until(lambda: watching.problems)
    assert watching.missing == "no message of /states could be used: 1 messages without this arm's joints"
    watching.close()
    assert "too short to watch" in watching.watch.error


# ------------------------------------------------------------------------------------------------------------------ ik


@pytest.fixture
def ik(two: tuple[Node, Node]) -> tuple[Node, list[Message], list[str]]:
    said: list[str] = []
    got: list[Message] = []
    node = IkNode(two[1], tangere.robot("ur5e"), tell=said.append)
    two[0].subscription("/joint_trajectory_controller/joint_trajectory", TRAJECTORY, got.append)
    states = two[0].publisher("/joint_states", STATES, LATCHED)
    until(lambda: states.writer.matched == 2 and node._publisher.writer.matched)
    states.publish({"name": list(node.joints), "position": [0.1, -1.2, 1.4, -1.6, -1.5, 0.2]})
    until(lambda: node._q is not None)
    return two[0], got, said


def test_a_pose_becomes_joint_targets(ik: tuple[Node, list[Message], list[str]]) -> None:
    node, got, said = ik
    robot = tangere.robot("ur5e")
    T = robot.pose([0.3, -1.0, 1.2, -1.7, -1.4, 0.5])
    poses = node.publisher(TARGET, POSE_TYPE)
    until(lambda: poses.writer.matched)
    single = path_message(T[None], [0.0]).poses[0]
    turned = path_message((np.diag([-1.0, -1.0, 1.0, 1.0]) @ T)[None], [0.0], "base_link").poses[0]
    for message in (single, turned):
        got.clear()
        said.clear()
        poses.publish(message)
        until(lambda: got and said)  # the node tells of it after it was sent
        last = got[0].points[-1]
        assert np.abs(robot.pose(last.positions) - T).max() < 1e-9
        assert np.abs(last.velocities).max() == 0.0
        times = [seconds_of(point.time_from_start) for point in got[0].points]
        assert (np.diff(times) > 0.0).all()
    got.clear()
    for bad, says in (
        (path_message(T[None] + np.diag([0, 0, 0, 0])[None] + _shift(5.0), [0.0]).poses[0], "reach"),
        (Message(header=Message(frame_id="world"), pose=single.pose), "not in 'world'"),
        (Message(header=single.header, pose=Message(position=single.pose.position)), "quaternion"),
        (Message(header=single.header, pose=Message(position=Message(x=np.nan), orientation=Message(w=1.0))), "finite"),
    ):
        said.clear()
        poses.publish(bad)
        until(lambda: said)
        assert says in said[0]
    assert not got


def _shift(x: float) -> Any:
    T = np.zeros((1, 4, 4))
    T[0, 0, 3] = x
    return T


def test_a_path_keeps_its_time_and_its_poses(ik: tuple[Node, list[Message], list[str]]) -> None:
    node, got, said = ik
    robot = tangere.robot("ur5e")
    q = np.linspace([0.3, -1.0, 1.2, -1.7, -1.4, 0.5], [0.5, -1.1, 1.3, -1.8, -1.3, 0.4], 40)
    T, times = robot.pose(q), (100.0 + 0.05 * np.arange(40)).tolist()
    paths = node.publisher(PATH, PATH_TYPE)
    until(lambda: paths.writer.matched)
    paths.publish(path_message(T, times))
    until(lambda: got and said)  # the node tells of it after it was sent
    followed = got[0].points[-39:]
    for point, pose in zip(followed, T[1:], strict=True):
        assert np.abs(robot.pose(point.positions) - pose).max() < 1e-9
    stamps = np.array([seconds_of(point.time_from_start) for point in followed])
    assert np.diff(stamps) == pytest.approx(np.full(38, 0.05), abs=1e-8)
    speeds = np.gradient(np.array([p.positions for p in followed]), stamps, axis=0)
    assert np.abs(speeds[5:-5] - np.array([p.velocities for p in followed])[5:-5]).max() < 1e-9
    for bad, says in ((path_message(T[:1], times[:1]), "2 to"), (path_message(T[::-1], times[::-1]), "must increase")):
        said.clear()
        paths.publish(bad)
        until(lambda: said)
        assert says in said[0]


def test_poses_are_read_as_ros_writes_them() -> None:
    with pytest.raises(InvalidValue, match="length 1"):
        pose_of(Message(header=Message(frame_id=""), pose=Message(
            position=Message(x=0.0, y=0.0, z=0.0), orientation=Message(x=0.0, y=0.0, z=0.0, w=0.5))))  # fmt: skip
    assert issubclass(NoSolution, TangereError)


# ------------------------------------------------------------------------------------------------------------- drawing


def test_pictures_in_every_encoding() -> None:
    image = pytest.importorskip("PIL.Image")
    import io

    rng = np.random.default_rng(6)
    for encoding, channels, back in (
        ("mono8", 1, [0]), ("rgb8", 3, [0, 1, 2]), ("bgr8", 3, [2, 1, 0]), ("rgba8", 4, [0, 1, 2, 3]),
        ("bgra8", 4, [2, 1, 0, 3]),
    ):  # fmt: skip
        pixels = rng.integers(0, 256, (5, 7, channels), dtype=np.uint8)
        padded = np.concatenate([pixels.reshape(5, -1), np.zeros((5, 3), np.uint8)], axis=1)
        message = Message(height=5, width=7, encoding=encoding, step=7 * channels + 3, data=padded.reshape(-1))
        found = np.array(image.open(io.BytesIO(png_of(message)))).reshape(5, 7, -1)
        assert np.array_equal(found, pixels[..., back])
    good = vars(image_message(np.zeros((5, 7))))
    for change, says in (
        ({"encoding": "16UC1"}, "known are"), ({"step": 6}, "does not go"), ({"width": 10**9}, "does not go"),
        ({"data": b"1"}, "does not go"),
    ):  # fmt: skip
        with pytest.raises(InvalidValue, match=says):
            png_of(Message(**(good | change | {"data": np.frombuffer((good | change)["data"], np.uint8)})))


def test_a_picture_message_becomes_a_drawing(tmp_path: Path) -> None:
    """Document 004's chain as three processes: image node, inverse kinematics, arm."""
    pytest.importorskip("cv2")
    pytest.importorskip("mujoco")
    domain = network().domain
    where = ("--domain", str(domain))
    arm = ("virtual", "ur5e", "--ros2", "--address", f"127.0.8.{domain}", *where)
    out = tmp_path / "drawn.svg"
    draw = ("ros2", "draw", "--pictures", "1", "--size", "40mm", "--out", str(out), *where)
    pixels = np.full((80, 80), 255)
    pixels[38:42, 10:70] = 0
    with (
        process(*arm, ready="ready"), process("ros2", "ik", "--robot", "ur5e", *where, ready="ready"),
        process(*draw, ready="ready") as drawing, Node("camera", network()) as camera,
    ):  # fmt: skip
        pictures = camera.publisher("/image", "sensor_msgs/msg/Image")
        until(lambda: pictures.writer.matched == 2)  # for publishers that promise delivery, and for cameras
        pictures.publish(image_message(pixels))
        text, errors = drawing.communicate(timeout=5 * PATIENCE)
        assert drawing.returncode == 0, errors
    found = re.search(
        r"drawn: ([\d.]+) m of ink in (\d+) lines, at most ([\d.]+) mm from the plan, .* ([\d.]+) mm", text
    )
    assert found is not None, text
    length, lines, astray, missing = (float(part) for part in found.groups())
    assert lines == 1
    assert length == pytest.approx(0.03, rel=0.05)  # 60 of 80 pixels
    assert max(astray, missing) < 0.2  # half of the plan's 0.25 mm between points, and what the arm is late by
    assert out.read_text().startswith("<?xml")


# ------------------------------------------------------------------------------------------------------------- package


def test_the_packages_for_a_workspace_are_whole(tmp_path: Path) -> None:
    from tangere.cli.main import main

    assert main(["ros2", "package", str(tmp_path / "src")]) == 0
    files = {str(path.relative_to(tmp_path / "src")): path for path in (tmp_path / "src").rglob("*") if path.is_file()}
    touch = parsed(files["tangere_msgs/msg/Touch.msg"].read_text(), "tangere_msgs")
    assert touch == interfaces_of().fields(TOUCH)
    needed = {field.base.split("/")[0] for field in touch if field.nested}
    for package in ("tangere_msgs", "tangere_ros2"):
        about = ElementTree.fromstring(files[f"{package}/package.xml"].read_text())
        assert about.findtext("name") == package
        assert about.findtext("license") == "Apache-2.0"
        if package == "tangere_msgs":
            assert needed <= {tag.text for tag in about.iter("depend")}
            assert all(
                f"find_package({name} REQUIRED)" in files["tangere_msgs/CMakeLists.txt"].read_text() for name in needed
            )
    for name, path in files.items():
        if name.endswith(".py"):
            compile(path.read_text(), name, "exec")
    robot = ElementTree.fromstring(files["tangere_ros2/description/arm.ros2_control.xacro"].read_text())
    macros = "{http://www.ros.org/wiki/xacro}"
    named = [(joint.get("name"), joint.get("effort")) for joint in robot.iter(f"{macros}tangere_joint")]
    model = tangere.robot("ur5e").model
    assert named == [(joint.name, f"{joint.tau_max:g}") for joint in model.joints]
    controllers = yaml.safe_load(files["tangere_ros2/config/controllers.yaml"].read_text())
    for controller in ("forward_effort_controller", "joint_trajectory_controller"):
        assert controllers[controller]["ros__parameters"]["joints"] == [joint.name for joint in model.joints]
    assert main(["ros2", "package", str(tmp_path / "src")]) == 1  # what is there is not overwritten


def test_the_launch_file_starts_commands_that_exist() -> None:
    """Its words, read by our own parser."""
    from tangere.cli.main import parser

    text = (SHARE / "tangere_ros2" / "launch" / "virtual_arm.launch.py.in").read_text()
    commands = re.findall(r"cmd=\[([^\]]*)\]", text)
    assert len(commands) == 2
    for command in commands:
        words = [
            {"robot": "ur5e", "interface": "lo"}.get(word.strip(), word.strip(' "')) for word in command.split(",")
        ]
        assert words[0] == "tangere"
        assert parser(words[1]).parse_args(words[1:]).interface == "lo"


# ------------------------------------------------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["virtual", "ur5e", "--domain", "3"], 1, "--domain goes with --ros2"),
        (["virtual", "ur5e", "--ros2", "--interface", "eth0"], 1, "--anywhere"),
        (["virtual", "ur5e", "--ros2", "--domain", "400"], 1, "0 to 232"),
        (["ros2", "watch"], 2, "--robot"),
        (["ros2", "watsh"], 2, "did you mean 'watch'"),
        (["ros2", "draw", "nothing.png"], 1, "no picture 'nothing.png'"),
        (["ros2", "draw", "snail", "--out", "x.png"], 1, "ends in .svg"),
        (["ros2", "ik", "--robot", "ur55"], 1, "ur5e"),
    ],
)
def test_typical_mistakes_are_a_sentence(words: list[str], code: int, says: str) -> None:
    where = [] if "--domain" in words or code == 2 else ["--domain", str(network().domain)]
    held = f"127.0.8.{network().domain}"
    where += ["--address", held] if words[0] == "virtual" else []
    with socket.create_server((held, 29999)):  # of another arm: a wrong option is said before a port is opened
        done = subprocess.run(
            [sys.executable, "-m", "tangere", *words, *where], capture_output=True, text=True, timeout=PATIENCE
        )
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
