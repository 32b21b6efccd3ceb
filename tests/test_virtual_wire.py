"""A virtual controller's ports as bytes: a transcript, hostile messages by the thousand, clients that behave badly."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from virtual_arms import address, listening, ready, until, virtual

import tangere
from tangere.apps.virtual_ur import primary_port, server
from tangere.apps.virtual_ur.command import profile_of
from tangere.apps.virtual_ur.controller import Controller
from tangere.apps.virtual_ur.inside import Inside
from tangere.apps.virtual_ur.modes import Profile
from tangere.model.loading import load
from tangere.rtde import wire
from tangere.rtde.client import Rtde

SOAK = bool(os.environ.get("TANGERE_SOAK"))
SECONDS = 600  # of three arms on the real clock


def made(version: tuple[int, int, int, int] = (5, 26, 0, 0)) -> Controller:
    """A controller without ports, its clock in our hands."""
    return Controller(Inside(load("ur5e"), plant="rigid"), Profile(version))


def test_outputs_stand_where_the_realtime_port_has_them() -> None:
    """Bytes 1044 to 1052 of port 30003 since version 3.0: the digital outputs as a double; then the program's state."""
    controller = made()
    controller.signals.digital_out[3] = True
    package = primary_port.realtime(controller)()
    assert struct.unpack_from(">2d", package, 1044) == (8.0, float(controller.runtime))
    assert struct.unpack_from(">d", package, 972) == (48.0,)  # [V] of the mains


def test_a_version_that_nobody_knows_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    profile_of("5.99", None)
    assert "behaves as 5.26" in capsys.readouterr().err
    profile_of("5.26.0", None)
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------------------------------------------------- transcript

# Question and answer of two clients, as hexadecimal numbers and quoted text.
FIRST = """
> 000556 0003                                        < 000456 00
> 000556 0002                                        < 000456 01
> 000376                                             < 001376 000000050000001a0000000000000000
> 001c4f 405f400000000000 "actual_q,nonsense"        < 00164f 00 "VECTOR6D,NOT_FOUND"
> 004a4f 405f400000000000 "timestamp,robot_mode,safety_status_bits,output_int_register_24,"
  < 001d4f 01 "DOUBLE,INT32,UINT32,INT32"
> 003149 "input_int_register_24,input_double_register_24"   < 001049 01 "INT32,DOUBLE"
> 002a52 "v1.software.version,v1.control_box.type"   < 001e52 000d "UINT64,UINT32" 0005001a00000000 01020000
> 000a52 "v1.none"                                   < 000e52 0009 "NOT_FOUND"
"""
SECOND = """
> 001849 "input_int_register_24"                     < 000a49 00 "IN_USE"
> 000353                                             < 000453 00
"""
STARTED = """
> 001055 01 00000007 3ff8000000000000 000353         < 000453 01
"""


def read(text: str) -> list[tuple[bytes, bytes]]:
    """(question, answer) of a transcript."""
    return [(_bytes(question), _bytes(answer)) for question, answer in re.findall(r">([^<>]*)<([^<>]*)", text)]


def _bytes(text: str) -> bytes:
    words = re.findall(r'"[^"]*"|\S+', text)
    return b"".join(word[1:-1].encode() if word.startswith('"') else bytes.fromhex(word) for word in words)


def exchange(sock: socket.socket, text: str) -> None:
    for question, answer in read(text):
        sock.sendall(question)
        found = b""
        while len(found) < len(answer):
            found += sock.recv(len(answer) - len(found))
        assert found == answer, question


def test_transcript_byte_by_byte() -> None:
    with (
        virtual("--plant", "rigid") as host,
        socket.create_connection((host, 30004), 20) as one,
        socket.create_connection((host, 30004), 20) as two,
    ):
        exchange(one, FIRST)
        exchange(two, SECOND)
        exchange(one, STARTED)
        cut, data = wire.Packages(), []
        while len(data) < 5:
            data += [wire.package(kind, payload) for kind, payload in cut.feed(one.recv(4096))]
        for package in data:
            assert package[:4] == bytes.fromhex("00185501")
            assert package[12:] == bytes.fromhex("000000070000000100000000")
        stamps = [struct.unpack_from(">d", package, 4)[0] for package in data]
        assert np.diff(stamps) == pytest.approx(8e-3, abs=1e-9)  # 125 Hz were asked for: every fourth frame
        one.sendall(bytes.fromhex("000350"))
        seen: list[int] = []
        while 80 not in seen:  # data may stand between question and answer
            seen += [kind for kind, _ in cut.feed(one.recv(4096))]
        assert set(seen) <= {80, 85}


def test_the_client_sends_and_reads_the_same_bytes() -> None:
    names = ("timestamp", "robot_mode", "safety_status_bits", "output_int_register_24")
    assert wire.version_request(2) == bytes.fromhex("0005560002")
    assert wire.outputs_request((*names, ""), 125.0, 2) == _bytes('004a4f 405f400000000000 "' + ",".join(names) + ',"')
    inputs = wire.Recipe(1, ("input_int_register_24", "input_double_register_24"), ("INT32", "DOUBLE"))
    assert wire.inputs_request(inputs.names) == _bytes('003149 "input_int_register_24,input_double_register_24"')
    assert wire.data(inputs, (7, 1.5)) == bytes.fromhex("00105501000000073ff8000000000000")
    assert wire.text("hello", "RTDE", 3, 2) == _bytes('000f4d 05 "hello" 04 "RTDE" 03')
    recipe = wire.read_recipe(wire.Kind.OUTPUTS, names, b"\x01DOUBLE,INT32,UINT32,INT32", 2)
    values = recipe.unpack(bytes.fromhex("4059160418937484000000070000000100000000"))
    assert list(values.values()) == pytest.approx([100.344, 7, 1, 0])


# --------------------------------------------------------------------------------------------------------------- fuzzed


# ----------------------------------------------------------------------------------------------------- clients and ends


def test_messages_have_the_sizes_of_their_version() -> None:
    for version, size in (((3, 4, 0, 0), 46), ((3, 15, 8, 0), 47), ((5, 26, 0, 0), 47)):
        state = primary_port.state(made(version), whole=True)
        parts, k = {}, 5
        while k < len(state):
            length, kind = struct.unpack_from(">iB", state, k)
            parts[kind], k = length, k + length
        assert k == len(state) == struct.unpack_from(">i", state)[0]
        assert parts == {0: size, 1: 251, 2: 37, 3: 75, 4: 101, 5: 225, 6: 445, 7: 61, 8: 8}


def test_a_client_that_never_reads_harms_nobody() -> None:
    with virtual("--plant", "rigid") as host, listening(host, "actual_q") as rtde:
        deaf = [socket.create_connection((host, 30004), 5) for _ in range(3)]
        for sock in deaf:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(wire.version_request(2))
            sock.sendall(wire.outputs_request(("timestamp", "actual_q", "actual_qd", "target_q"), 500.0, 2))
            sock.sendall(wire.package(wire.Kind.START))
        deaf.append(socket.create_connection((host, 30003), 5))
        stamps = [until(rtde, lambda v: True)["timestamp"] for _ in range(20_000 if SOAK else 4_000)]
        assert np.diff(stamps) == pytest.approx(2e-3, abs=1e-9)  # those who read miss nothing
        for sock in deaf:
            sock.close()


def test_the_fast_clock_waits_for_clients_that_read_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that takes longer for a package than the arm for a frame loses none."""
    monkeypatch.setattr(server, "BUFFER", 4096)
    monkeypatch.setattr(server, "STOPPED", 60.0)  # [s] a busy computer may keep this client from reading for seconds
    arm = server.Server(made(), address(), clock="fast")
    frames = threading.Thread(target=arm.serve)
    frames.start()
    try:
        with Rtde(arm.address) as rtde:
            for sock in (rtde._sock, arm._connections[0].sock):
                for side in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                    sock.setsockopt(socket.SOL_SOCKET, side, 4096)
            rtde.outputs(("timestamp", "actual_q", "actual_qd", "target_q"))
            rtde.start()
            stamps = []
            for _ in range(600):
                time.sleep(1e-3)
                stamps.append(until(rtde, lambda v: True)["timestamp"])
    finally:
        arm.stop()
        frames.join()
        arm.close()
    assert np.diff(stamps) == pytest.approx(2e-3, abs=1e-9)


def test_memory_stays_flat() -> None:
    """A minute of the arm's clock, an hour in the long form: moves, programs that replace each other, clients that go.

    What is there after the first quarter is there at the end: an object kept in each frame would be megabytes.
    """
    seconds, rss = (3600.0 if SOAK else 60.0), []
    host = address()
    with ready(host) as process, listening(host, "actual_q") as rtde:
        status = Path(f"/proc/{process.pid}/status")
        began = until(rtde, lambda v: True)["timestamp"]
        for k in range(12):
            with socket.create_connection((host, 30002), 20) as port, socket.create_connection((host, 29999), 20):
                moves = f"    movej([0.{k},-1.57,1.57,-1.57,-1.57,0])\n    movej([0,-1,1,-1,-1,0])\n"
                port.sendall(f"def go():\n  while True:\n{moves}  end\nend\n".encode())
                until(rtde, lambda v, end=began + (k + 1) * seconds / 12: v["timestamp"] > end, seconds)
            rss.append(int(re.search(r"VmRSS:\s+(\d+) kB", status.read_text())[1]))
    assert max(rss[3:]) - rss[2] < 3000, rss  # [kB]


def test_half_packages_arrive_whole() -> None:
    with virtual("--plant", "rigid") as host, socket.create_connection((host, 30004), 20) as sock:
        for byte in bytes.fromhex("0005560002"):
            sock.sendall(bytes([byte]))
            time.sleep(0.01)
        assert sock.recv(10) == bytes.fromhex("00045601")


@pytest.mark.parametrize("moment", range(6 if SOAK else 3))
def test_ends_cleanly_at_any_moment(moment: int) -> None:
    """SIGTERM while it starts, while clients connect, while a program moves the arm: exit 0."""
    host = address()
    with ready(host, "--plant", "rigid", clock="fast") as process:
        if moment >= 1:
            socks = [socket.create_connection((host, port), 5) for port in (29999, 30001, 30002, 30003, 30004)]
        if moment >= 2:
            moves = b"    movej([0,-1,1,-1,-1,0])\n    movej([1,-1,1,-1,-1,0])\n"
            socks[2].sendall(b"def go():\n  while True:\n" + moves + b"  end\nend\n")
            time.sleep(0.1 * moment)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_two_arms_beside_each_other_and_none_twice() -> None:
    with virtual("--plant", "rigid") as one, virtual("--plant", "rigid", robot="ur10e") as two:
        with listening(one, "actual_q") as a, listening(two, "actual_q") as b:
            until(a, lambda v: True)
            until(b, lambda v: True)
        words = [sys.executable, "-m", "tangere", "virtual", "ur5e", "--address", one]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 1
        assert "another virtual arm" in done.stderr


def test_a_program_that_replaces_a_moving_one_lets_the_arm_rest_first() -> None:
    """Else its first move begins at rest on an arm that is not: a jolt that the controller takes for a collision."""
    controller = Controller(Inside(load("ur5e"), plant="rigid"), Profile())
    far, back = "def a():\n  movej([2.5,-1,1,-1,-1,0], a=8, v=3)\nend\n", "def b():\n  movej([0,-1,1,-1,-1,0])\nend\n"
    controller.upload(far)
    while controller.arm.qd[0] < 2.5:
        controller.tick()
    controller.upload(back)
    speeds = [controller.arm.qd[0]]
    while controller.playing:
        controller.tick()
        speeds.append(controller.arm.qd[0])
    assert np.abs(np.diff(speeds)).max() < 0.05  # [rad/s] in a frame; 15 rad/s2 are 0.03
    assert controller.safety_mode_name == "NORMAL"
    np.testing.assert_allclose(controller.arm.q, [0, -1, 1, -1, -1, 0], atol=1e-9)


def test_a_drawn_arm_is_the_same_again() -> None:
    from tangere.apps.virtual_ur.inside import Drawn

    def first(seed: int) -> tuple[object, ...]:
        inside = Inside(load("ur5e"), plant="rigid", drawn=Drawn(seed))
        for _ in range(20):
            inside.follow(inside.state.q * 0.0 + inside._hold, np.zeros(6), np.zeros(6))
        return inside.calibration, inside.belief.model.payload.mass, *inside.friction.coulomb, *inside.state.qd

    assert first(7) == first(7)
    assert first(7) != first(8)


@pytest.mark.skipif(not SOAK, reason="long form, of an idle computer: TANGERE_SOAK=1")
def test_real_clock_with_three_arms(tmp_path: Path) -> None:
    """500 frames a second, none lost, on three arms at once; on one of them our client has its detector and log."""
    line = [sys.executable, "-m", "tangere", "run", "circle", "--robot", "ur5e", "--approach", "--hold", "10",
            "--out", str(tmp_path / "run"), "--set", f"duration={SECONDS}", "friction=full"]  # fmt: skip
    with virtual(clock="real") as one, virtual(clock="real") as two, virtual(clock="real") as three:
        arms = [listening(host, "control_step") for host in (one, two, three)]
        came: list[list[tuple[float, int]]] = [[], [], []]
        line += ["--arm", three]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
            while run.poll() is None:
                for rtde, rows in zip(arms, came, strict=True):
                    values = rtde.receive(5.0)
                    assert values is not None
                    rows.append((time.monotonic(), values["control_step"]))
            assert run.returncode == 0, run.communicate()[0]
    for rows in came:
        at, step = (np.array(column) for column in zip(*rows, strict=True))
        assert len(at) > 500.0 * SECONDS
        assert np.all(np.diff(step) == 1)
        assert np.median(np.diff(at)) == pytest.approx(2e-3, abs=2e-5)
    arm = json.loads((tmp_path / "run" / "summary.json").read_text())["arm"]
    assert arm["lost_samples"] == 0, arm
    assert arm["frames"] >= 500 * SECONDS, arm  # and those in which the arm held a torque
    log = tangere.read(tmp_path / "run" / "log.mcap")
    assert np.quantile(log["cost"] + log["cost_log"], 0.999) < 1e-3
