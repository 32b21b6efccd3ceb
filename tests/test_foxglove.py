"""A run live in Foxglove, seen by a WebSocket client of our own; and that its layout and our logs go together."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.control.computed_torque import ComputedTorque
from tangere.errors import InvalidValue, MissingExtra, TangereError
from tangere.logs.ros_types import definition
from tangere.loop.foxglove import LAYOUT, FoxgloveSink, sink_of
from tangere.loop.sinks import RunInfo
from tangere.planning.joint_motions import Hold
from tangere.plants.pushes import Push
from tangere.plants.rigid import RigidPlant
from tangere.ros2.cdr import Codec
from tangere.ros2.interfaces import interfaces_of
from tangere.types import Event, Reference, State

pytest.importorskip("foxglove")
client = pytest.importorskip("websockets.sync.client")
ROBOT = tangere.robot("ur5e")
JOINTS = tuple(joint.name for joint in ROBOT.model.joints)
CODEC = Codec(interfaces_of())
Q = np.array([0.1, -1.2, 1.4, -1.6, -1.5, 0.2])


class Viewer:
    """Speaks Foxglove's protocol: subscribes to everything, decodes by the schema's name."""

    def __init__(self, address: str) -> None:
        self.socket = client.connect(address, subprotocols=["foxglove.sdk.v1"], max_size=None, open_timeout=60)
        self.channels: dict[int, dict[str, Any]] = {}
        self.got: dict[str, list[tuple[int, Any]]] = defaultdict(list)

    def until(self, ready: Any) -> None:
        while not ready():
            message = self.socket.recv(timeout=60)
            if isinstance(message, str):
                told = json.loads(message)
                if told["op"] == "advertise":
                    self.channels |= {channel["id"]: channel for channel in told["channels"]}
                    wanted = [{"id": channel["id"], "channelId": channel["id"]} for channel in told["channels"]]
                    self.socket.send(json.dumps({"op": "subscribe", "subscriptions": wanted}))
            elif message[0] == 1:
                number, ns = struct.unpack_from("<IQ", message, 1)
                channel = self.channels[number]
                self.got[channel["topic"]].append((ns, CODEC.decode(channel["schemaName"], message[13:])))

    def topics(self) -> set[str]:
        return {channel["topic"] for channel in self.channels.values()}


@pytest.fixture
def sink() -> Any:
    shown = FoxgloveSink(0)
    shown.open(RunInfo(2e-3, 6, {}, ROBOT, JOINTS))
    yield shown
    shown.close()


def state(t: float) -> State:
    return State(t, 2e-3, Q + t, Q, 2.0 * Q)


def test_what_is_shown_is_what_was_measured(sink: FoxgloveSink) -> None:
    viewer = Viewer(sink.address)
    viewer.until(lambda: len(viewer.channels) >= 10 and viewer.got["/robot_description"] and viewer.got["/tf_static"])
    for k in range(50):
        sink.row(state(0.002 * k), None, 3.0 * Q, Reference(Q, Q, Q), None)
    sink.event(Event.sample(0.05, 2, Q))
    viewer.until(lambda: viewer.got["/tangere/events"] and len(viewer.got["/joint_states"]) >= 10)
    assert all(channel["encoding"] == "cdr" for channel in viewer.channels.values())
    for channel in viewer.channels.values():
        assert channel["schemaEncoding"] == "ros2msg"
        assert channel["schema"] == definition(channel["schemaName"])
    states = viewer.got["/joint_states"]
    assert len(states) == 10  # 100 a second
    start = states[0][0]
    for ns, message in states:
        t = (ns - start) * 1e-9
        assert tuple(message.name) == JOINTS
        assert np.abs(message.position - (Q + t)).max() < 1e-9
        assert np.array_equal(message.effort, 2.0 * Q)
        assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == ns
    assert np.array_equal(viewer.got["/tangere/residual"][0][1].effort, 3.0 * Q)
    assert np.array_equal(viewer.got["/tangere/reference"][0][1].position, Q)
    assert not viewer.got["/tangere/truth"]  # nobody knows it here
    told = json.loads(viewer.got["/tangere/events"][0][1].data)
    assert (told["joint"], told["phase"]) == (2, "raised")
    assert len(viewer.got["/tf"][0][1].transforms) == 6


def test_who_comes_late_sees_the_arm(sink: FoxgloveSink) -> None:
    for k in range(10):
        sink.row(state(0.01 * k), None, None, None, None)
    for _ in range(2):
        viewer = Viewer(sink.address)
        viewer.until(lambda viewer=viewer: viewer.got["/robot_description"] and viewer.got["/tf_static"])
        assert "<robot" in viewer.got["/robot_description"][0][1].data
        viewer.socket.close()


def test_a_run_is_shown_and_is_the_same_run() -> None:
    def run(*sinks: FoxgloveSink) -> Any:
        plant = RigidPlant(ROBOT, 2e-3)
        plant.push(Push(2, 40.0, 0.5, 0.3))
        plant.reset(Q)
        controller = ComputedTorque(ROBOT, Hold(ROBOT, Q))
        return tangere.run(plant, controller, until=1.0, trajectory=Hold(ROBOT, Q), sinks=sinks, robot=ROBOT)

    said: list[str] = []
    shown = FoxgloveSink(0, said.append)
    seen, alone = run(shown), run()
    assert re.fullmatch(
        r"Foxglove: open connection ws://127\.0\.0\.1:\d+, import layout .*foxglove_layout\.json", said[0]
    )
    assert np.array_equal(seen.log["q"], alone.log["q"])
    assert seen.said == alone.said


def test_a_port_that_is_taken_is_said(sink: FoxgloveSink) -> None:
    second = FoxgloveSink(sink.port)
    with pytest.raises(TangereError, match=f"port {sink.port} cannot be had .* Give another number"):
        second.open(RunInfo(2e-3, 6, {}, ROBOT, JOINTS))


@pytest.mark.parametrize("text", ["x", "70000", "-1", "1.5"])
def test_ports_that_are_none(text: str) -> None:
    with pytest.raises(InvalidValue, match="a port from 0"):
        sink_of(text, print)
    assert sink_of(None, print) is None


def test_without_the_package_the_line_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "foxglove", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tangere\[foxglove\]'"):
        FoxgloveSink().open(RunInfo(2e-3, 6, {}, ROBOT, JOINTS))


def test_the_layout_shows_topics_that_runs_and_logs_have(sink: FoxgloveSink, tmp_path: Path) -> None:
    layout = json.loads(LAYOUT.read_text())
    paths = {path["value"] for panel in layout["configById"].values() for path in panel.get("paths", ())}
    topics = {path.rpartition(".")[0] for path in paths} | {"/robot_description", "/tangere/events"}
    viewer = Viewer(sink.address)
    viewer.until(lambda: topics <= viewer.topics())
    panels: list[str] = []

    def leaves(node: Any) -> None:
        if isinstance(node, str):
            panels.append(node)
        else:
            leaves(node["first"])
            leaves(node["second"])

    leaves(layout["layout"])
    assert sorted(panels) == sorted(layout["configById"])
    words = [
        "run",
        "hold",
        "--plant",
        "rigid",
        "--set",
        "duration=1",
        "--push",
        "joint=2,torque=40,start=0.5,duration=0.3",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tangere", *words, "--foxglove", "0", "--out", str(tmp_path / "run"), "--json"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Foxglove: open connection ws://127.0.0.1:" in done.stderr
    reader = pytest.importorskip("mcap.reader")
    with (tmp_path / "run" / "log.mcap").open("rb") as file:
        read = reader.make_reader(file, validate_crcs=True)
        summary = read.get_summary()
        counted = {c.topic: summary.statistics.channel_message_counts.get(i, 0) for i, c in summary.channels.items()}
        assert all(counted.get(topic, 0) > 0 for topic in topics), counted
        schemas = {schema.name: schema.data.decode() for schema in summary.schemas.values()}
        assert all(text == definition(name) for name, text in schemas.items())
        assert sum(1 for _ in read.iter_messages()) == summary.statistics.message_count
