"""Peers that are not ours: Fast DDS, which ROS 2 has by default, and the Cyclone DDS of its older generation, in C.

They are compiled from tests/dds where Debian's packages are installed (libfastrtps-dev; cyclonedds-dev and -tools).
Also: joint states at 500 Hz between two processes of our own, none lost.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ros2_peer import PATIENCE, network, until

from tangere.ros2.cdr import Message
from tangere.ros2.node import Node
from tangere.ros2.participant import LATCHED, Quality

pytest.importorskip("cyclonedds")
SOURCES = Path(__file__).parent / "dds"
STATES, TEXT = "sensor_msgs/msg/JointState", "std_msgs/msg/String"
SOAK = bool(os.environ.get("TANGERE_SOAK"))
HASH = "typehash=RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e;"


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> str:
    if not (shutil.which("g++") and Path("/usr/include/fastdds").is_dir()):
        pytest.skip("Fast DDS is not installed (Debian: g++ libfastrtps-dev)")
    out = str(tmp_path_factory.mktemp("fast") / "fast_peer")
    _compile("g++", "-O0", "-w", str(SOURCES / "fast_peer.cpp"), "-lfastrtps", "-lfastcdr", "-o", out)
    return out


@pytest.fixture(scope="module")
def cyclone(tmp_path_factory: pytest.TempPathFactory) -> str:
    if not (shutil.which("idlc") and Path("/usr/include/dds/dds.h").is_file()):
        pytest.skip("Cyclone DDS in C is not installed (Debian: cyclonedds-dev cyclonedds-tools)")
    folder = tmp_path_factory.mktemp("cyclone")
    _compile("idlc", "-l", "c", str(SOURCES / "joint_state.idl"), cwd=folder)
    _compile("cc", str(SOURCES / "cyclone_peer.c"), "joint_state.c", "-I.", "-lddsc", "-o", "cyclone_peer", cwd=folder)
    return str(folder / "cyclone_peer")


def _compile(*words: str, **more: Any) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, **more)
    assert done.returncode == 0, done.stderr


def both_ways(peer: str, node: Node) -> tuple[str, list[Message]]:
    """A peer's lines after 6 s, and what it sent; meanwhile a counting joint state every 2 ms."""
    got: list[Message] = []
    states = node.publisher("/joint_states", STATES, Quality(1000))
    reader = node.subscription("/joint_commands", STATES, got.append)
    node.publisher("/robot_description", TEXT, LATCHED).publish({"data": "x" * 10_000})
    done = subprocess.Popen([peer, str(node.participant.network.domain), "6"], stdout=subprocess.PIPE, text=True)
    try:
        until(lambda: states.writer.matched and reader.matched)
        count = 0
        while done.poll() is None:
            count += 1
            states.publish({
                "header": {"frame_id": "base"}, "name": ["j1", "j2"], "position": [float(count), 2.0],
                "effort": [1.0, 2.0],
            })  # fmt: skip
            time.sleep(0.002)
        text, _ = done.communicate(timeout=PATIENCE)
    finally:
        done.kill()
    return text, got


def test_topics_both_ways_with_fast_dds(fast: str) -> None:
    with Node("tangere", network()) as node:
        text, got = both_ways(fast, node)
    lines = text.splitlines()
    assert "participant enclave=/;" in lines
    assert f"writer rt/joint_states sensor_msgs::msg::dds_::JointState_ {HASH} keyless" in lines
    assert "reader rt/joint_commands sensor_msgs::msg::dds_::JointState_" in lines
    assert "first base j1 2 0" in lines
    assert "description 10012" in lines  # head, length, 10000 letters and a zero, padded: kept for who comes late
    graph = [int(line.split()[1]) for line in lines if line.startswith("graph")]
    assert graph  # what `ros2 node list` is made from
    found = re.search(r"received (\d+) last [\d.]+ (\w+)", text)
    assert found is not None
    assert int(found[1]) > 10
    assert found[2] == "whole"  # from the first on none is missing
    assert len(got) > 10
    for message in got:
        assert (message.header.frame_id, message.name, message.header.stamp.nanosec) == ("fast", ["a", "bcd"], 7)
        assert message.position.tolist() == [1.5, float(message.header.stamp.sec)]
        assert (len(message.velocity), message.effort.tolist()) == (0, [2.5])


def test_topics_both_ways_with_the_older_cyclone_in_c(cyclone: str) -> None:
    with Node("tangere", network()) as node:
        text, got = both_ways(cyclone, node)
    assert "first base j1 2 0" in text
    found = re.search(r"received (\d+) last [\d.]+ (\w+)", text)
    assert found is not None
    assert int(found[1]) > 10
    assert found[2] == "whole"
    assert len(got) > 10
    assert {message.header.frame_id for message in got} == {"cyclone"}
    stamps = [message.header.stamp.sec for message in got]
    assert stamps == sorted(set(stamps))  # in order, none twice; a reader that is held up keeps the newest alone


TELLER = """
import sys, time
from tangere.ros2.network import Network
from tangere.ros2.node import Node, now
from tangere.ros2.participant import Quality
with Node("teller", Network(int(sys.argv[1]))) as node:
    states = node.publisher("/joint_states", "sensor_msgs/msg/JointState", Quality(5000))
    go = []
    node.subscription("/go", "std_msgs/msg/String", go.append)
    while not go:
        time.sleep(0.01)
    begin, lost = time.monotonic(), 0
    for k in range(int(sys.argv[2])):
        wait = begin + 0.002 * k - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        lost += not states.publish({"header": {"stamp": now()}, "name": ["a"] * 6, "position": [float(k)] * 6,
                                    "velocity": [0.0] * 6, "effort": [1.0] * 6})
    print(lost, flush=True)
    sys.stdin.readline()
"""


def test_500_samples_a_second_between_processes_none_lost() -> None:
    """5 s; in the long form 10 minutes."""
    count = 300_000 if SOAK else 2_500
    got = np.zeros(count)
    seen = 0

    def heard(message: Message) -> None:
        nonlocal seen
        if seen < count:
            got[seen] = message.position[0]
        seen += 1

    with Node("hearer", network()) as node:
        reader = node.subscription("/joint_states", STATES, heard, Quality(5000))
        go = node.publisher("/go", TEXT)
        words = [sys.executable, "-c", TELLER, str(network().domain), str(count)]
        teller = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            until(lambda: reader.matched and go.writer.matched and node.others() == ("/teller",))
            time.sleep(0.2)  # its side of the match may be a moment later
            go.publish({"data": "go"})
            assert teller.stdout is not None
            assert teller.stdout.readline() == "0\n"  # none was dropped there
            until(lambda: seen >= count, "every sample")
            teller.communicate("\n", timeout=PATIENCE)
        finally:
            teller.kill()
    assert seen == count
    assert np.array_equal(got, np.arange(count))


def test_a_participant_that_is_killed_does_no_harm() -> None:
    """Its writers' samples stay, its name goes when its lease is over, others are served meanwhile."""
    with Node("hearer", network()) as node:
        got: list[Message] = []
        node.subscription("/joint_states", STATES, got.append, Quality(5000))
        go = node.publisher("/go", TEXT, LATCHED)
        words = [sys.executable, "-c", TELLER, str(network().domain), "1000000"]
        victim = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        until(lambda: go.writer.matched and node.others() == ("/teller",))
        go.publish({"data": "go"})
        until(lambda: len(got) > 50)
        victim.kill()
        victim.communicate()
        with Node("other", network()) as other:
            states = other.publisher("/joint_states", STATES)
            until(lambda: states.writer.matched)
            for k in range(500):  # a dead reader of /go does not hold writers up
                go.publish({"data": str(k)})
                states.publish({"position": [-1.0 - k]})
            assert go.writer.dropped + states.writer.dropped < 500
            until(lambda: any(len(m.position) and m.position[0] < 0.0 for m in got))
            until(lambda: node.others() == ("/other",), "the dead is not listed any more")
