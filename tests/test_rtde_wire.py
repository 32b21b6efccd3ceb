"""RTDE, primary interface and addresses as bytes: the transcript of a controller, torn streams, damaged packages."""

from __future__ import annotations

import random
import struct

import pytest

from tangere.errors import InvalidValue
from tangere.rtde import fields, primary, wire
from tangere.rtde.client import Address, address
from tangere.rtde.wire import Kind, ProtocolError, Recipe


def test_transcript_of_a_controller() -> None:
    """Questions and answers as a controller of version 5.26.0 exchanges them with a client, byte by byte."""
    assert wire.version_request(3).hex() == "0005560003"
    assert wire.accepted(Kind.VERSION, False).hex() == "00045600"
    assert wire.version_request(2).hex() == "0005560002"
    assert wire.accepted(Kind.VERSION, True).hex() == "00045601"
    assert wire.package(Kind.CONTROLLER).hex() == "000376"
    assert wire.controller_answer((5, 26, 0, 0)).hex() == "001376000000050000001a0000000000000000"
    asked = wire.outputs_request(["actual_q", "nonsense"], 125.0, 2)
    assert asked == bytes.fromhex("001c4f405f400000000000") + b"actual_q,nonsense"
    answer = Recipe(0, ("actual_q", "nonsense"), ("VECTOR6D", "NOT_FOUND"))
    assert wire.recipe_answer(Kind.OUTPUTS, answer, 2) == bytes.fromhex("00164f00") + b"VECTOR6D,NOT_FOUND"
    assert answer.missing == ("nonsense",)
    inputs = Recipe(1, ("input_int_register_24", "input_double_register_24"), ("INT32", "DOUBLE"))
    assert wire.inputs_request(inputs.names) == bytes.fromhex("003149") + ",".join(inputs.names).encode()
    assert wire.recipe_answer(Kind.INPUTS, inputs, 2) == bytes.fromhex("00104901") + b"INT32,DOUBLE"
    taken = Recipe(0, ("input_int_register_24",), ("IN_USE",))
    assert wire.recipe_answer(Kind.INPUTS, taken, 2) == bytes.fromhex("000a4900") + b"IN_USE"
    assert wire.data(inputs, (7, 1.5)).hex() == "00105501000000073ff8000000000000"
    out = Recipe(1, ("timestamp", "robot_mode", "bits", "register"), ("DOUBLE", "INT32", "UINT32", "INT32"))
    sent = wire.data(out, (struct.unpack(">d", bytes.fromhex("4059160418937484"))[0], 7, 1, 0), 2, output=True)
    assert sent.hex() == "001855014059160418937484" + "000000070000000100000000"
    assert wire.text("hello", "RTDE", 3, 2).hex() == "000f4d0568656c6c6f045254444503"
    assert wire.package(Kind.PROPERTIES, b"v1.software.version,v1.control_box.type")[:3].hex() == "002a52"


@pytest.mark.parametrize("protocol", [1, 2])
def test_what_one_side_packs_the_other_reads(protocol: int) -> None:
    names = (
        "actual_q",
        "robot_mode",
        "actual_tool_accelerometer",
        "joint_mode",
        "output_bit_register_64",
        "control_step",
    )
    types = tuple(fields.output_type(name, (5, 26, 0)) or "" for name in names)
    asked = wire.outputs_request(names, 250.0, protocol)
    frequency, read = wire.read_outputs_request(asked[3:], protocol)
    assert read == names
    assert frequency == (250.0 if protocol == 2 else 0.0)
    recipe = Recipe(1, names, types)
    assert (
        wire.read_recipe(Kind.OUTPUTS, names, wire.recipe_answer(Kind.OUTPUTS, recipe, protocol)[3:], protocol)
        == recipe
    )
    values = ((0.1, 0.2, 0.3, -0.4, 0.5, 0.6), 7, (1.0, -2.0, 3.0), (253, 255, 239, 252, 251, 253), True, 2**40 + 1)
    payload = wire.data(recipe, values, protocol, output=True)[3:]
    assert tuple(recipe.unpack(payload[protocol - 1 :]).values()) == values
    assert wire.read_text(wire.text("too fast", "joint 3", 1, protocol)[3:], protocol) == (
        "too fast", "joint 3" if protocol == 2 else "", 1,
    )  # fmt: skip


def test_a_stream_torn_anywhere_gives_the_same_packages() -> None:
    rng = random.Random(3)
    sent = [(rng.choice(b"VvMUOISP"), rng.randbytes(rng.randrange(0, 400))) for _ in range(200)]
    stream = b"".join(wire.package(*one) for one in sent)
    messages = b"".join(primary.message(*one) for one in sent)
    for one, cut in ((stream, wire.Packages()), (messages, primary.Messages())):
        got, k = [], 0
        while k < len(one):
            step = rng.randrange(1, 60)
            got += list(cut.feed(one[k : k + step]))
            k += step
        assert got == sent


def test_damaged_packages_are_errors_of_ours() -> None:
    for bad in (b"\x00\x02\x55", b"\x00\x00\x00"):
        with pytest.raises(ProtocolError, match="cannot have"):
            list(wire.Packages().feed(bad))
    for bad in (struct.pack(">iB", 4, 16), struct.pack(">iB", -1, 16), struct.pack(">iB", 1 << 30, 16)):
        with pytest.raises(ProtocolError, match="cannot have"):
            list(primary.Messages().feed(bad))
    recipe = Recipe(1, ("timestamp",), ("DOUBLE",))
    with pytest.raises(ProtocolError, match="the recipe has 8"):
        recipe.unpack(b"\x00" * 7)
    assert recipe.unpack(struct.pack(">d", 2.5) + b"more") == {"timestamp": 2.5}
    with pytest.raises(ProtocolError, match="1 fields were asked for, 2"):
        wire.read_recipe(Kind.OUTPUTS, ("timestamp",), b"\x01DOUBLE,INT32", 2)
    with pytest.raises(ProtocolError, match="type that is not known"):
        wire.read_recipe(Kind.OUTPUTS, ("timestamp",), b"\x01FLOAT", 2)
    with pytest.raises(ProtocolError, match="2048"):
        wire.inputs_request(["input_int_register_24"] * 100)
    assert wire.names_of(b" a, b ,,c,") == ("a", "b", "c")


@pytest.mark.parametrize(
    ("name", "version", "kind"),
    [
        ("actual_q", (3, 4, 0), "VECTOR6D"),
        ("tcp_offset", (3, 11, 9), None),
        ("tcp_offset", (3, 12, 0), "VECTOR6D"),
        ("tcp_offset", (5, 5, 0), None),
        ("tcp_offset", (5, 5, 1), "VECTOR6D"),
        ("ft_raw_wrench", (3, 15, 8), None),
        ("ft_raw_wrench", (5, 9, 0), "VECTOR6D"),
        ("actual_current_as_torque", (5, 22, 9), None),
        ("actual_current_as_torque", (5, 23, 0), "VECTOR6D"),
        ("actual_current_as_torque", (10, 11, 0), "VECTOR6D"),
        ("control_step", (5, 25, 1), None),
        ("control_step", (5, 26, 0), "UINT64"),
        ("control_step", (10, 12, 0), None),
        ("control_step", (10, 13, 0), "UINT64"),
        ("output_int_register_47", (3, 4, 0), "INT32"),
        ("output_int_register_48", (5, 26, 0), None),
        ("output_bit_register_63", (5, 26, 0), None),
        ("input_bit_register_127", (5, 26, 0), "BOOL"),
        ("output_double_register_٣", (5, 26, 0), None),
    ],
)
def test_fields_by_version(name: str, version: tuple[int, ...], kind: str | None) -> None:
    assert fields.output_type(name, version) == kind


def test_inputs_and_lists() -> None:
    assert fields.input_type("output_int_register_1", (5, 26, 0)) is None
    assert fields.input_type("input_double_register_24", (5, 26, 0)) == "DOUBLE"
    assert fields.input_type("actual_q", (5, 26, 0)) is None
    for version in ((3, 15, 0), (5, 4, 0), (5, 26, 0), (10, 13, 0)):
        assert all(fields.output_type(name, version) in wire.TYPES for name in fields.outputs(version))
        assert all(fields.input_type(name, version) in wire.TYPES for name in fields.inputs(version))
    assert set(fields.outputs((5, 9, 0))) > set(fields.outputs((5, 4, 0)))


def test_calibration_configuration_and_version_pass_the_wire() -> None:
    angles = tuple(0.001 * k for k in range(6))
    calibration = primary.Calibration(
        angles, (0.0, -0.425, -0.392, 0.0, 0.0, 0.0), angles[::-1], angles, (1, 2, 3, 4, 5, 6)
    )
    packed = calibration.pack()
    assert len(packed) == 225
    assert packed[4] == primary.Part.KINEMATICS
    assert primary.Calibration.read(packed[5:]) == calibration
    configuration = primary.Configuration(2, 5, angles, angles, angles, angles)
    packed = primary.pack_configuration(configuration, [float(k) for k in range(29)], 2)
    assert len(packed) == 445
    assert primary.Configuration.read(packed[5:]) == configuration
    assert configuration.model == "UR10"
    told = primary.pack_version(12345, "URControl", (5, 26, 0, 7), "01-01-2026")
    assert primary.read_version(told[5:]) == ("URControl", (5, 26, 0, 7))
    for cut in range(len(told) - 15):
        with pytest.raises(ProtocolError):
            primary.read_version(told[5 : 5 + cut])


def test_addresses(tmp_path, monkeypatch) -> None:
    assert address("rtde://arm.local") == Address("arm.local", 30004)
    assert address("rtde://10.0.0.2:30104") == Address("10.0.0.2", 30104)
    assert address("rtde://[::1]:5") == Address("::1", 5)
    assert Address("::1").loopback
    assert address("192.168.0.10") == Address("192.168.0.10")
    assert not Address("192.168.0.10").loopback
    assert Address("127.0.0.42").loopback
    assert not Address("arm.local").loopback
    assert address("log.csv") is None
    assert address("-") is None
    assert address("1.2.3") is None
    monkeypatch.chdir(tmp_path)
    (tmp_path / "192.168.0.10").write_text("a log")
    assert address("192.168.0.10") is None
    for wrong in ("rtde://", "rtde://a:0", "rtde://a:70000", "rtde://a:b", "rtde://a/b"):
        with pytest.raises(InvalidValue, match="rtde://HOST"):
            address(wrong)
