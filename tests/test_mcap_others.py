"""MCAP logs and others: what a viewer shows, how small they are, older logs, ROS 2 bags of anybody."""

from __future__ import annotations

import contextlib
import sqlite3
import sys

import numpy as np
import pytest
from test_mcap import some_log

import tangere
from tangere import foreign
from tangere.errors import InvalidValue, MissingExtra
from tangere.kinematics.rotation import matrix_from_quaternion
from tangere.logs.channels import JOINT_STATE, WRENCH, Views, channel_of, channels_of
from tangere.logs.log import Log
from tangere.logs.mcap_log import write_mcap
from tangere.logs.mcap_read import read_mcap
from tangere.logs.recordings import read, recordings
from tangere.logs.ros_messages import DEFINITIONS
from tangere.studio.recorded import recorded


@pytest.mark.parametrize("arm", ["ur5e", "scara"])
def test_a_viewer_finds_the_arm_its_frames_and_poses(rng, tmp_path, arm):
    """/robot_description, /tf and /tf_static together place the tcp where the robot's own kinematics does."""
    reader = pytest.importorskip("mcap.reader", reason="the package mcap is not installed")
    decoder = pytest.importorskip("mcap_ros2.decoder", reason="the package mcap-ros2-support is not installed")
    robot = tangere.robot(arm, tool=(0.01, 0.02, 0.1, 0.3, -0.2, 0.1))
    n = 1000
    q = np.cumsum(rng.normal(scale=0.01, size=(n, robot.dof)), axis=0)
    T = robot.pose(q)
    wrench = rng.normal(size=(n, 6))
    log = Log({"time": np.arange(n) * 1e-3, "q": q, "T_des": T[:, :3].reshape(n, 12), "wrench_true": wrench})
    write_mcap(log, tmp_path / "log.mcap", robot=robot)
    assert read_mcap(tmp_path / "log.mcap") == log
    found: dict[str, list] = {}
    with (tmp_path / "log.mcap").open("rb") as file:
        mcap = reader.make_reader(file, decoder_factories=[decoder.DecoderFactory()])
        for _, channel, message, ros in mcap.iter_decoded_messages():
            found.setdefault(channel.topic, []).append((message.log_time, ros))
    ((_, urdf),) = found["/robot_description"]
    assert list(found["/joint_states"][0][1].name) == [joint.name for joint in robot.model.joints]
    assert all(joint.name in urdf.data for joint in robot.model.joints)
    assert urdf.data.count("<visual>") > 2 * robot.dof
    ((_, still),) = found["/tf_static"]
    slots = np.array([round(ns * 1e-6) for ns, _ in found["/tf"]])
    assert slots.tolist() == [int(np.ceil(k * 1000 / 30 - 1e-3)) for k in range(30)]
    for k, (_, moving) in zip(slots, found["/tf"], strict=True):
        frames = {t.child_frame_id: t for t in [*still.transforms, *moving.transforms]}
        at, pose = "tcp", np.eye(4)
        while at != "base":
            t = frames[at].transform
            r, p = t.rotation, t.translation
            R = matrix_from_quaternion([r.w, r.x, r.y, r.z])
            pose = np.block([[R, np.array([[p.x], [p.y], [p.z]])], [np.zeros((1, 3)), np.ones((1, 1))]]) @ pose
            at = frames[at].header.frame_id
        np.testing.assert_allclose(pose, T[k], atol=1e-12)
    for topic in ("/tangere/tcp_pose", "/tangere/tcp_pose_des"):
        for k, (_, ros) in zip(slots, found[topic], strict=True):
            p, o = ros.pose.position, ros.pose.orientation
            np.testing.assert_allclose([p.x, p.y, p.z], T[k, :3, 3], atol=1e-12)
            np.testing.assert_allclose(matrix_from_quaternion([o.w, o.x, o.y, o.z]), T[k, :3, :3], atol=1e-12)
            assert ros.header.frame_id == "base"
    assert [ros.wrench.torque.z for _, ros in found["/tangere/wrench_true"]] == log["wrench_true"][slots, 5].tolist()


@pytest.mark.parametrize("bad", [np.nan, 2.0])
def test_poses_that_are_none_are_not_shown_and_cost_nothing(rng, tmp_path, bad):
    T = np.tile(np.eye(4)[:3].ravel(), (100, 1))
    T[50, 0] = bad
    log = Log({"time": np.arange(100) * 0.1, "T_des": T})
    write_mcap(log, tmp_path / "log.mcap")
    assert read_mcap(tmp_path / "log.mcap") == log


def test_an_older_log_with_one_message_per_row_and_topic_is_read(rng, tmp_path):
    """Files written before blocks were: wrench_true as a topic of its own, wide columns among the numbers of a row."""
    log = some_log(rng, 20)
    order = list(log.columns)

    def old(columns, joints):
        new, blocks = channels_of(columns, joints)
        rest = [name for name in order if name in blocks and name != "wrench_true"]
        holes = {"data": [*new[-1].columns["data"], *rest]}
        new[-1] = channel_of("/tangere/columns", new[-1].type, holes, columns, joints)
        new.append(channel_of("/tangere/wrench_true", WRENCH, {"wrench": ["wrench_true"]}, columns, joints))
        return new, []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tangere.logs.mcap_log.channels_of", old)
        patch.setattr("tangere.logs.mcap_log.Views", lambda layout, robot: Views({}, None))
        write_mcap(log, tmp_path / "log.mcap")
    assert read_mcap(tmp_path / "log.mcap") == log


def test_a_log_is_small(tmp_path):
    """A run as the README's, exact and noisy: at most 0.6 and 0.7 MB for a second at 1 kHz (2.3 before)."""
    rng = np.random.default_rng(1)
    robot = tangere.robot("ur10e")
    t = np.arange(2000) * 1e-3
    q = 0.3 * np.sin(np.outer(t, np.arange(1.0, 7.0))) + np.array([0.1, -1.2, 1.3, -0.4, 1.1, 0.2])
    qd = 0.3 * np.arange(1.0, 7.0) * np.cos(np.outer(t, np.arange(1.0, 7.0)))
    tau, T, none = robot.gravity_torque(q), robot.pose(q)[:, :3].reshape(-1, 12), np.zeros((2000, 6))
    for noise, most in ((0.0, 0.6), (1e-3, 0.7)):
        exact = {"q": q, "qd": qd, "tau": tau}
        felt = {name: value + noise * rng.normal(size=(2000, 6)) for name, value in exact.items()}
        columns = {"time": t, "period": np.full(2000, 1e-3), "cost": rng.random(2000).astype(np.float32) * 1e-5,
                   "cost_log": rng.random(2000).astype(np.float32) * 1e-5, **felt, "residual": felt["tau"] - 1.1 * tau,
                   "tau_cmd": np.roll(felt["tau"], 1, axis=0), "q_des": q, "qd_des": qd, "qdd_des": -q, "T_des": T,
                   "q_true": q, "qd_true": qd, "tau_ext_true": none, "T_true": T, "wrench": none,
                   "wrench_true": none}  # fmt: skip
        write_mcap(Log(columns), tmp_path / "log.mcap", robot=robot)
        assert (tmp_path / "log.mcap").stat().st_size < 2 * most * 1e6


NAMES = ["elbow_joint", "shoulder_lift_joint", "shoulder_pan_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint"]
UR = [2, 1, 0, 3, 4, 5]  # from base to flange, as places in NAMES


def _header(ns, frame=""):
    return {"stamp": {"sec": ns // 10**9, "nanosec": ns % 10**9}, "frame_id": frame}


def _vector(values):
    return dict(zip("xyz", values, strict=True))


@pytest.fixture
def bag(tmp_path, rng):
    """A bag as UR's ROS 2 driver leaves it, by the MCAP project's own writer: joints by name, wrench of the tool."""
    writer = pytest.importorskip("mcap_ros2.writer", reason="the package mcap-ros2-support is not installed")
    path, start = tmp_path / "bag.mcap", 1_700_000_000_123_456_789
    q, force = rng.normal(size=(50, 6)), rng.normal(size=(25, 6))
    with path.open("wb") as file:
        out = writer.Writer(file)
        kinds = {kind: out.register_msgdef(kind, DEFINITIONS[kind]) for kind in (JOINT_STATE, WRENCH)}
        for k in range(50):
            ns = start + k * 2_000_000
            names = NAMES if k != 20 else ["gripper"]
            values = q[k].tolist() if k != 20 else [0.5]
            message = {"header": _header(ns), "name": names, "position": values, "velocity": values,
                       "effort": [] if k == 30 else values}  # fmt: skip
            out.write_message("/joint_states", kinds[JOINT_STATE], message, log_time=ns, publish_time=ns)
            if k % 2 and k > 4:
                f, m = force[k // 2].tolist()[:3], force[k // 2].tolist()[3:]
                message = {"header": _header(ns, "tool0"), "wrench": {"force": _vector(f), "torque": _vector(m)}}
                out.write_message("/ft/wrench", kinds[WRENCH], message, log_time=ns, publish_time=ns)
        message = {"header": _header(start), "name": ["x"], "position": [1.0], "velocity": [], "effort": []}
        out.write_message("/other", kinds[JOINT_STATE], message, log_time=start, publish_time=start)
        out.finish()
    return path, start, q, force


def test_a_bag_of_anybody(bag):
    path, start, q, force = bag
    log = read(path)
    kept = [k for k in range(50) if k not in (20, 30)]
    assert np.array_equal(log["q"], q[kept][:, UR])
    assert np.array_equal(log["qd"], log["q"])
    assert np.array_equal(log["tau"], log["q"])
    assert (log.unit("q"), log.unit("tau"), log.unit("wrench_tool0")) == ("rad", "Nm", "N, Nm")
    np.testing.assert_allclose(log.time, 2e-3 * np.array(kept), atol=1e-12)
    assert log.start_ns == start
    assert np.all(np.isnan(log["wrench_tool0"][:5]))
    for row, k in enumerate(kept):
        if k >= 5:  # the newest before, or at the same time
            assert np.array_equal(log["wrench_tool0"][row], force[(k - 1) // 2])
    said = " / ".join(log.problems)
    for words in ("2 joint states with other joints", "/other", "motor currents [A]", "in frame tool0"):
        assert words in said
    assert log.complete
    assert "shoulder_pan_joint, shoulder_lift_joint, elbow_joint" in log.notes[0].text


@pytest.fixture
def db3(bag, tmp_path):
    """The same bag in SQLite, by the package rosbags; its folder."""
    rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="the package rosbags is not installed")
    from mcap.reader import make_reader
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    with bag[0].open("rb") as file, rosbag2.Writer(tmp_path / "bag", version=8) as out:
        topics = {}
        for schema, channel, message in make_reader(file).iter_messages():
            if channel.topic not in topics:
                topics[channel.topic] = out.add_connection(channel.topic, schema.name, typestore=store)
            out.write(topics[channel.topic], message.log_time, message.data)
    return tmp_path / "bag"


def test_a_bag_in_sqlite_is_the_same_log(bag, db3):
    assert [file.suffix for file in sorted(db3.iterdir())] == [".db3", ".yaml"]
    log = read(bag[0])
    for source in (db3, next(db3.glob("*.db3"))):
        assert read(source) == log
    (found,) = recordings(db3)
    assert found.log["q"].tobytes() == log["q"].tobytes()
    assert recorded(db3, "ur5e").q.tobytes() == log["q"].tobytes()
    (db3 / "more.mcap").touch()
    with pytest.raises(InvalidValue, match=r"holds 2 logs, name one: bag\.db3, more\.mcap"):
        read(db3)


def test_sqlite_files_that_are_no_whole_bag(bag, db3, tmp_path):
    file, q = next(db3.glob("*.db3")), bag[2]
    data = file.read_bytes()
    page = data.index(q[40].tobytes()) // 4096 * 4096  # the page of the 41st sample
    hurt = tmp_path / "hurt.db3"
    hurt.write_bytes(data[:page] + b"\xaa" * 4096 + data[page + 4096 :])
    log, whole = read(hurt), read(file)
    assert not log.complete
    assert 0 < len(log) < len(whole)
    assert np.array_equal(log["q"], whole["q"][: len(log)])

    def refused(sentence, *statements):
        other = tmp_path / "other.db3"
        other.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(other)) as base, base:
            for statement in statements:
                base.execute(statement)
        with pytest.raises(InvalidValue, match=sentence):
            read(other)

    topics = "CREATE TABLE topics AS SELECT 1 AS id, '/j' AS name, 'sensor_msgs/msg/JointState' AS type"
    message = "AS SELECT 1 AS topic_id, 5 AS timestamp, x'{}' AS data"
    refused("without its tables", "CREATE TABLE a (b)")
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT 2 topic_id, 1 timestamp, x data"
    refused("without its tables", topics, f"CREATE VIEW messages AS {endless} FROM n")
    refused(r"no message .* it has the topics /j$", topics, f"CREATE TABLE messages {message.format('00')}")
    refused("compressed one by one", topics, f"CREATE TABLE messages {message.format('28b52ffd00')}")
    large = "CREATE TABLE messages (topic_id, timestamp, data AS (zeroblob(1000000000)))"
    refused("damaged|no message", topics, large, "INSERT INTO messages VALUES (1, 2)")
    (tmp_path / "text.db3").write_text("no")
    with pytest.raises(InvalidValue, match="is not an SQLite file"):
        read(tmp_path / "text.db3")
    with pytest.raises(InvalidValue, match="No such file"):
        read(tmp_path / "nowhere.db3")
    assert not (tmp_path / "nowhere.db3").exists()


def test_a_bag_in_sqlite_takes_no_more_than_it_may(db3, monkeypatch):
    monkeypatch.setattr(foreign, "budget", lambda size: 5_000)  # some twenty messages
    with pytest.raises(InvalidValue, match=r"at most .* are read"):
        read(next(db3.glob("*.db3")))


def test_a_bag_that_was_cut(bag, tmp_path):
    path, _, q, _ = bag
    data = path.read_bytes()
    (tmp_path / "cut.mcap").write_bytes(data[: len(data) - 40])
    log = read(tmp_path / "cut.mcap")
    assert not log.complete
    assert np.array_equal(log["q"][:20], q[:20][:, UR])


def test_a_bag_without_the_packages_says_which(bag, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcap_ros2.decoder", None)
    with pytest.raises(MissingExtra, match=r"ROS 2 bag.*tangere\[log\]"):
        read(bag[0])


def test_a_bag_without_joint_states_is_refused(tmp_path):
    writer = pytest.importorskip("mcap_ros2.writer", reason="the package mcap-ros2-support is not installed")
    with (tmp_path / "a.mcap").open("wb") as file:
        out = writer.Writer(file)
        schema = out.register_msgdef("std_msgs/msg/String", "string data")
        out.write_message("/chatter", schema, {"data": "hello"}, log_time=1, publish_time=1)
        out.finish()
    with pytest.raises(InvalidValue, match=r"no topic is of sensor_msgs/msg/JointState; it has /chatter"):
        read(tmp_path / "a.mcap")


def test_a_log_of_ours_is_a_bag_for_others(rng, tmp_path):
    """Without our own record in it the same file is read as anybody's: joints as named, the wrench in base axes."""
    pytest.importorskip("mcap_ros2.decoder", reason="the package mcap-ros2-support is not installed")
    log = some_log(rng, 40)
    write_mcap(log, tmp_path / "log.mcap")
    data = (tmp_path / "log.mcap").read_bytes()
    (tmp_path / "bag.mcap").write_bytes(data.replace(b"\x07\x00\x00\x00tangere", b"\x07\x00\x00\x00another"))
    back = read(tmp_path / "bag.mcap")
    for name in ("q", "qd", "tau"):  # the topic with the most messages: all have as many, the first is /joint_states
        assert back[name].tobytes() == log[name].tobytes()
    assert back["wrench"].tobytes() == log["wrench"].tobytes()


def test_the_joint_of_a_gripper_is_none_of_the_arm(tmp_path):
    writer = pytest.importorskip("mcap_ros2.writer", reason="the package mcap-ros2-support is not installed")
    with (tmp_path / "a.mcap").open("wb") as file:
        out = writer.Writer(file)
        schema = out.register_msgdef(JOINT_STATE, DEFINITIONS[JOINT_STATE])
        names = [f"left_{name}" for name in ["finger_joint", *NAMES]]
        message = {"header": _header(5), "name": names, "position": list(range(7)), "velocity": [], "effort": []}
        out.write_message("/joint_states", schema, message, log_time=5, publish_time=5)
        out.finish()
    log = read(tmp_path / "a.mcap")
    assert log["q"].tolist() == [[3.0, 2.0, 1.0, 4.0, 5.0, 6.0]]
    assert log.problems == ("joints beside the arm's were left out: left_finger_joint",)
