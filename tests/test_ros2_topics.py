"""Topics of ROS 2: names, qualities, the graph, and what does no harm."""

from __future__ import annotations

import pytest
from ros2_peer import network, until

import tangere
from tangere.errors import InvalidValue, MissingExtra, TangereError, UnknownName
from tangere.identification.belief import belief
from tangere.ros2 import library, names
from tangere.ros2.interfaces import GRAPH, Distro
from tangere.ros2.network import Network, NetworkSettings, network_of
from tangere.ros2.node import Node, Publisher, stamp_of
from tangere.ros2.participant import LATCHED, SENSOR, Quality
from tangere.ros2.touching import WatchNode

pytest.importorskip("cyclonedds")
JOINTS, TEXT = "sensor_msgs/msg/JointState", "std_msgs/msg/String"


def test_messages_arrive_in_order_and_nodes_are_seen() -> None:
    with Node("teller", network()) as teller, Node("hearer", network(), "lab") as hearer:
        got: list[float] = []
        states = teller.publisher("/joint_states", JOINTS, Quality(1000))
        reader = hearer.subscription("/joint_states", JOINTS, lambda m: got.append(m.position[0]), Quality(1000))
        until(lambda: states.writer.matched and reader.matched)
        until(lambda: teller.others() == ("/lab/hearer",) and hearer.others() == ("/teller",))
        for k in range(500):
            assert states.publish({"name": ["a"], "position": [float(k)]})
        until(lambda: len(got) >= 500)
        assert got == [float(k) for k in range(500)]
        teller.close()
        until(lambda: hearer.others() == (), "a node that left is gone")


def test_who_comes_late_is_told_what_is_kept() -> None:
    with Node("teller", network()) as teller:
        teller.publisher("/kept", TEXT, LATCHED).publish({"data": "x" * 100_000})
        teller.publisher("/passing", TEXT).publish({"data": "gone"})
        with Node("late", network()) as late:
            kept: list[str] = []
            passing: list[str] = []
            late.subscription("/kept", TEXT, lambda m: kept.append(m.data), LATCHED)
            late.subscription("/passing", TEXT, lambda m: passing.append(m.data))
            until(lambda: kept)
            assert (len(kept[0]), passing) == (100_000, [])


def test_qualities_match_as_in_ros() -> None:
    with Node("a", network()) as a, Node("b", network()) as b:
        loose = a.publisher("/loose", TEXT, SENSOR).writer
        sure = a.publisher("/sure", TEXT).writer
        readers = [b.subscription(*args) for args in (
            ("/loose", TEXT, print), ("/loose", TEXT, print, SENSOR), ("/sure", TEXT, print, SENSOR),
            ("/sure", TEXT, print, LATCHED))]  # fmt: skip
        until(lambda: loose.matched == 1 and sure.matched == 1)
        assert [reader.matched for reader in readers] == [0, 1, 1, 0]


@pytest.mark.parametrize(("distro", "hashed", "size"), [("jazzy", True, 16), ("humble", False, 24)])
def test_others_read_who_we_are(distro: Distro, hashed: bool, size: int) -> None:
    """User data and identifiers of endpoints, as another participant of the domain sees them."""
    with Node("teller", network(distro=distro)) as teller, Node("hearer", network(distro=distro)) as hearer:
        writer = teller.publisher("/joint_states", JOINTS).writer
        seen: list[int] = []
        reader = hearer.reader(names.topic("/joint_states"), JOINTS, lambda _, handle: seen.append(handle))
        until(lambda: writer.matched and reader.matched)
        writer.write(teller.participant.codec.encode(JOINTS, {}))
        until(lambda: seen)
        typed = "typehash=RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e;"
        assert reader.writer(seen[0]) == (typed if hashed else "")
        assert teller.participant.interfaces.gid_size == size
        until(lambda: hearer.others() == ("/teller",), "the graph in this layout")
        assert writer.guid[:12] == teller.participant.guid[:12]
        assert (writer.guid[15], reader.guid[15]) == (0x03, 0x04)  # without keys


def test_a_message_that_breaks_its_receiver_does_not_end_the_others() -> None:
    with Node("a", network()) as a, Node("b", network()) as b:
        got: list[str] = []

        def callback(message: object) -> None:
            got.append(message.data)  # type: ignore[attr-defined]
            if len(got) == 1:
                raise ValueError("broken")

        text = a.publisher("/text", TEXT)
        reader = b.subscription("/text", TEXT, callback)
        until(lambda: text.writer.matched and reader.matched)
        for k in range(3):
            text.publish({"data": str(k)})
        until(lambda: len(got) == 3)
        assert b.problems == {"rt/text: broken": 1}


def test_another_type_on_the_topic_does_not_match() -> None:
    with Node("a", network()) as a, Node("b", network()) as b:
        wrong = a.publisher("/joint_states", TEXT)
        right = a.publisher("/other", TEXT)
        got: list[object] = []
        b.subscription("/joint_states", JOINTS, got.append)
        b.subscription("/other", TEXT, got.append)
        until(lambda: right.writer.matched)
        assert wrong.writer.matched == 0
        wrong.publish({"data": "no joints"})
        right.publish({"data": "yes"})
        until(lambda: got)
        assert [m.data for m in got] == ["yes"]  # type: ignore[attr-defined]


def test_bytes_that_are_no_message_are_not_sent() -> None:
    with Node("a", network()) as a:
        writer = a.publisher("/joint_states", JOINTS).writer
        with pytest.raises(TangereError, match="these bytes are no sensor_msgs/msg/JointState"):
            writer.write(b"\x00\x01\x00\x00\xff\xff")


@pytest.mark.parametrize("name", ["/a__b", "/1a", "a/", "//a", "/a b", "", "/ä"])
def test_names_that_ros_refuses(name: str) -> None:
    with pytest.raises(InvalidValue, match="no name of ROS 2"):
        names.full(name)


def test_names_and_types_as_dds_has_them() -> None:
    assert names.topic(names.full("joint_states", "/lab")) == "rt/lab/joint_states"
    assert (names.request("/add"), names.reply("/add")) == ("rq/addRequest", "rr/addReply")
    assert names.dds_type(JOINTS) == "sensor_msgs::msg::dds_::JointState_"
    assert names.dds_type(GRAPH) == "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_"


def test_where_it_is_from_options_and_environment() -> None:
    plain = network_of(NetworkSettings(), {})
    assert (plain.domain, plain.local, plain.distro) == (0, True, "jazzy")
    env = {"ROS_DOMAIN_ID": "7", "ROS_DISTRO": "humble", "ROS_STATIC_PEERS": "10.0.0.2;10.0.0.3", "CYCLONEDDS_URI": "x"}
    assert network_of(NetworkSettings(), env) == Network(7, distro="humble")
    assert network_of(NetworkSettings(domain=3, distro="kilted"), env) == Network(3, distro="kilted")
    wide = network_of(NetworkSettings(interface="all"), env)
    assert wide.own
    assert wide.config() == ""
    one = network_of(NetworkSettings(interface="eth0"), env)
    assert not one.own
    assert 'name="eth0"' in one.config()
    assert one.peers == ("10.0.0.2", "10.0.0.3")
    assert "127.0.0.1" in plain.config()
    assert "<AllowMulticast>false" in plain.config()
    with pytest.raises(InvalidValue, match="0 to 232"):
        network_of(NetworkSettings(domain=233), {})
    with pytest.raises(InvalidValue, match="ROS_DOMAIN_ID"):
        network_of(NetworkSettings(), {"ROS_DOMAIN_ID": "x"})
    with pytest.raises(UnknownName, match="did you mean 'humble'"):
        network_of(NetworkSettings(distro="humbel"), {})


def test_a_network_that_is_not_there_is_said() -> None:
    with pytest.raises(TangereError, match="nowhere0"):
        Node("a", Network(network().domain + 101, "nowhere0"))


def test_without_the_package_the_line_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cyclonedds.__library__", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tangere\[ros2\]'"):
        library.library.__wrapped__()


@pytest.mark.parametrize("quality", [Quality(100), Quality(100, reliable=False), Quality(100, transient=True)])
def test_watch_takes_everybodys_states_once(quality: Quality) -> None:
    """Publishers that promise delivery and those that do not; joints with a prefix, as tf_prefix makes them."""
    with Node("teller", network()) as teller, Node("watch", network()) as node:
        _watched_once(teller.publisher("/joint_states", JOINTS, quality), node, quality)


def _watched_once(states: Publisher, node: Node, quality: Quality) -> None:
    robot = tangere.robot("ur5e")
    watching = WatchNode(node, robot, belief(robot))
    until(lambda: states.writer.matched == (2 if quality.reliable else 1))
    joints, right = ([f"{side}_{joint.name}" for joint in robot.model.joints] for side in ("left", "right"))
    sent = 0

    def send(names: list[str]) -> None:
        nonlocal sent
        sent += 1
        zeros = [0.0] * len(names)
        stamp = {"stamp": stamp_of(sent * 2_000_000)}
        states.publish({"header": stamp, "name": names, "position": zeros, "effort": zeros})

    def some() -> bool:
        send(joints)
        return watching.used > 50  # of a publisher that promises nothing one may be lost

    until(some)
    if quality.reliable:
        until(lambda: watching.used == sent)
    assert watching.used <= sent
    until(lambda: send(joints + right) or watching.problems["messages with several arms: left_, right_"])
    watching.close()
    assert watching.watch.rows.problems["stamps that repeat or go back"] == 0
