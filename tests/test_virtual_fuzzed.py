"""What others send to a virtual arm, broken at random: RTDE, dashboard, programs."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pytest
from test_virtual_wire import SOAK, made

from tangere.apps.virtual_ur import primary_port
from tangere.apps.virtual_ur.dashboard_port import DashboardPort
from tangere.apps.virtual_ur.primary_port import Programs
from tangere.apps.virtual_ur.rtde_port import Owners, RtdePort
from tangere.rtde import wire

MESSAGES = 100_000 if SOAK else 2_000


def broken(rng: np.random.Generator, good: list[bytes], count: int) -> Iterator[bytes]:
    """Good messages with bytes changed, cut, repeated or glued together, and plain noise."""
    for _ in range(count):
        message = bytearray(good[int(rng.integers(len(good)))])
        how = int(rng.integers(6))
        if how == 0:
            message = bytearray(rng.bytes(int(rng.integers(1, 60))))
        elif how == 1 and message:
            for _ in range(int(rng.integers(1, 4))):
                message[int(rng.integers(len(message)))] = int(rng.integers(256))
        elif how == 2:
            message = message[: int(rng.integers(len(message) + 1))]
        elif how == 3:
            message += rng.bytes(int(rng.integers(1, 20)))
        elif how == 4:
            message *= int(rng.integers(2, 5))
        yield bytes(message)


def test_fuzzed_rtde() -> None:
    """Every message is answered with whole packages, or the connection is closed: nothing else comes out."""
    controller = made()
    rng = np.random.default_rng(3)
    names = ("timestamp", "actual_q", "actual_TCP_pose", "robot_mode")
    good = [
        wire.version_request(2), wire.version_request(1), wire.package(wire.Kind.CONTROLLER),
        wire.outputs_request(names, 125.0, 2), wire.inputs_request(("input_int_register_24", "speed_slider_mask")),
        wire.package(wire.Kind.START), wire.package(wire.Kind.PAUSE), bytes.fromhex("000c5501000000073f800000"),
        wire.package(wire.Kind.TEXT, b"\x05hello\x00\x03"), wire.package(wire.Kind.PROPERTIES, b"v1.software.version"),
        wire.outputs_request(names, float("nan"), 2), wire.package(wire.Kind.INPUTS, b"external_force_torque,,"),
    ]  # fmt: skip
    owners = Owners()
    port, closed, answered = RtdePort(controller, owners), 0, 0
    for k, message in enumerate(broken(rng, good, MESSAGES)):
        answer = b""
        try:
            answer = port.feed(message)
        except wire.ProtocolError:
            closed += 1
            port.close()
            port = RtdePort(controller, owners)
        whole = list(wire.Packages().feed(answer))  # raises for what is no package
        assert sum(len(payload) + 3 for _, payload in whole) == len(answer)
        answered += len(whole)
        if k % 8 == 0:  # a size that is too large swallows what follows: a new connection every now and then
            port.close()
            port = RtdePort(controller, owners)
        if k % 20 == 4:
            controller.tick()
            out = port.outputs()
            assert not out or struct.unpack_from(">H", out)[0] == len(out)
    assert closed > MESSAGES / 200
    assert answered > MESSAGES / 10
    assert np.isfinite(controller.inside.state.q).all()
    assert controller.safety_mode == 1


def test_fuzzed_dashboard() -> None:
    """One line in, one line out, whatever stands in it."""
    controller = made()
    rng = np.random.default_rng(4)
    good = [
        b"robotmode\n", b"power on\n", b"brake release\n", b"popup hello\n", b"load x.urp\n", b"play\n",
        b"set operational mode automatic\n", b"unlock protective stop\n", b"addToLog x\n", b"push joint=2,torque=1\n",
        b"programState\r\n", b"push joint=99,torque=1e999\n", b"\xff\xfe\n",
        b"load installation " + b"x" * 5000 + b"\n", b"get robot model\n",
    ]  # fmt: skip
    port = DashboardPort(controller)
    for k, message in enumerate(broken(rng, good, MESSAGES)):
        answer = port.feed(message)
        assert answer.count(b"\n") <= message.count(b"\n") + message.count(b"\r")
        assert not answer or answer.endswith(b"\n")
        if port.ended:
            port = DashboardPort(controller)
        if k % 50 == 0:
            controller.tick()


def test_a_program_without_end_has_a_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty lines count, too: else they would fill the memory, and each be counted anew with every one that comes."""
    monkeypatch.setattr(primary_port, "TEXT_BYTES", 10_000)
    cut = Programs()
    assert cut.feed(b"def go():\n" + b"\n" * 9_000) == []
    assert next(len(text) for text in cut.feed(b"\n" * 2_000)) > 10_000
    assert cut.feed(b"def go():\nend\n") == ["def go():\nend\n"]


def test_fuzzed_programs() -> None:
    """Text that is no program is told about, and the controller goes on with the next one."""
    controller = made()
    rng = np.random.default_rng(5)
    good = [
        b"def go():\n  movej([0,-1.5,1.5,-1.5,-1.5,0])\nend\n", b"sec s():\n  set_digital_out(1, True)\nend\n",
        b"thread t():\n  sync()\nend\n", b"stopj(2)\n", b"def a():\n  while True:\n    speedl([0,0,0.1,0,0,0],1,0.1)\n",
        b"end\n", b"textmsg(1)\n", b"def f():\n  x = [1,2\n end\n", b"set_payload(1, [0,0,0])\n",
    ]  # fmt: skip
    cut = Programs()
    uploads = 0
    for k, message in enumerate(broken(rng, good, MESSAGES)):
        if k % 4 == 0:  # a program without an end waits for it: a new connection every now and then
            cut = Programs()
        for text in cut.feed(message):
            controller.upload(text)
            uploads += 1
            controller.tick()
    assert uploads > MESSAGES / 4
    assert np.isfinite(controller.inside.state.q).all()
    controller.restart_safety()
    controller.brake_release()
    for _ in range(2000):
        controller.tick()
    controller.upload("def go():\n  write_output_integer_register(5, 11)\nend\n")
    controller.tick()
    assert controller.registers.out_int[5] == 11
