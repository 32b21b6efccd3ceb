"""Messages of ROS 2: bytes and type hashes equal to published ones, foreign readers, and whatever bytes come in."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tangere.errors import InvalidValue
from tangere.logs.ros_types import PRIMITIVES, Field, definition, parsed
from tangere.ros2.cdr import Codec, Message, MessageError
from tangere.ros2.interfaces import DISTROS, FOLLOW, GRAPH, TOUCH, interfaces_of
from tangere.ros2.layout import Layout

INTERFACES = interfaces_of()
CODEC = Codec(INTERFACES)
GID = bytes.fromhex("0110c3cb52d32465a544419b000001c1")
SERVICE = struct.pack("<Qq", 0x1122334455667788, 1)
NODE = {"node_namespace": "/", "node_name": "tangere"}

# published, or the same from two packages that are not ours
HASHES = {
    "std_msgs/msg/String": "df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18",
    "std_msgs/msg/Header": "f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01",
    "builtin_interfaces/msg/Time": "b106235e25a4c5ed35098aa0a61a3ee9c9b18d197f398b0e4206cea9acf9c197",
    "sensor_msgs/msg/JointState": "a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e",
    "sensor_msgs/msg/Image": "d31d41a9a4c4bc8eae9be757b0beed306564f7526c88ea6a4588fb9582527d47",
    "geometry_msgs/msg/WrenchStamped": "8dc3deaf06b2ab281f9f9a742a8961c328ca7cec16e3fd6586d3a5c83fa78f77",
    "geometry_msgs/msg/PoseStamped": "10f3786d7d40fd2b54367835614bff85d4ad3b5dab62bf8bca0cc232d73b4cd8",
    "geometry_msgs/msg/TwistStamped": "5f0fcd4f81d5d06ad9b4c4c63e3ea51b82d6ae4d0558f1d475229b1121db6f64",
    "tf2_msgs/msg/TFMessage": "e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087",
    "std_msgs/msg/Float64MultiArray": "1025ddc6b9552d191f89ef1a8d2f60f3d373e28b283d8891ddcc974e8c55397f",
    "trajectory_msgs/msg/JointTrajectory": "179b33eba59d676f6d967ac71fe35e7ca2f64b2f3928f4a018cec115e213796e",
    "rosgraph_msgs/msg/Clock": "692f7a66e93a3c83e71765d033b60349ba68023a8c689a79e48078bcb5c58564",
    "diagnostic_msgs/msg/DiagnosticArray": "5a8a36efb05fb25070fa0fb3810290c0e6cd4862b54a8fb975a1ee8dc55a333e",
    "diagnostic_msgs/msg/KeyValue": "d68081eaa540288c5440753baecef0c4e16e81a5f78ad68902ded5100413bb42",
    "rcl_interfaces/msg/ParameterValue": "115fc089a387e23c7ecd3525c9189c379109119d6ab82e8dfbde0fdf6a7f9b68",
    GRAPH: "91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e",
    "example_interfaces/srv/AddTwoInts": "e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a",
    "std_srvs/srv/Trigger": "eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f",
    "action_msgs/msg/GoalStatusArray": "6c1684b00f177d37438febe6e709fc4e2b0d4248dca4854946f9ed8b30cda83e",
}  # fmt: skip

JOINT_STATE = {
    "header": {"stamp": {"sec": 1, "nanosec": 2}, "frame_id": "base"}, "name": ["a", "bc"], "position": [1.0, 2.0],
    "effort": [3.0, 4.0],
}  # fmt: skip
GOLDEN = [
    ("std_msgs/msg/String", {"data": "hello"}, b"", "000100000600000068656c6c6f000000"),
    ("std_msgs/msg/String", {"data": ""}, b"", "000100000100000000000000"),
    ("builtin_interfaces/msg/Time", {"sec": 1, "nanosec": 2}, b"", "000100000100000002000000"),
    ("rosgraph_msgs/msg/Clock", {"clock": {"sec": 3, "nanosec": 4}}, b"", "000100000300000004000000"),
    ("sensor_msgs/msg/JointState", JOINT_STATE, b"",
     "00010000 01000000 02000000 05000000 62617365 00000000 02000000 02000000 61000000 03000000 62630000"
     "02000000 00000000 000000000000f03f 0000000000000040 00000000 02000000 0000000000000840 0000000000001040"),
    ("geometry_msgs/msg/WrenchStamped", {"header": {"frame_id": "t"}, "wrench": {"force": {"x": 1.0}}}, b"",
     "0001000000000000000000000200000074000000000000000000f03f" + "00" * 40),
    ("std_msgs/msg/Float64MultiArray", {"data": [1.5]}, b"",
     "0001000000000000000000000100000000000000000000000000f83f"),
    ("sensor_msgs/msg/Image",
     {"height": 1, "width": 2, "encoding": "mono8", "step": 2, "data": b"\x07\x08"}, b"",
     "00010000000000000000000001000000000000000100000002000000060000006d6f6e6f38000000020000000200000007080000"),
    (GRAPH,
     {"gid": {"data": GID}, "node_entities_info_seq": [NODE | {"writer_gid_seq": [{"data": GID[:14] + b"\5\3"}]}]},
     b"", "00010000 0110c3cb52d32465a544419b000001c1 01000000 02000000 2f000000 08000000 74616e6765726500 00000000"
     "01000000 0110c3cb52d32465a544419b00000503"),
    ("action_msgs/msg/GoalStatusArray",
     {"status_list": [{"goal_info": {"goal_id": {"uuid": bytes(range(16))}, "stamp": {"sec": 1}}, "status": 2}]}, b"",
     "00010000 01000000 000102030405060708090a0b0c0d0e0f 01000000 00000000 02000000"),
    ("example_interfaces/srv/AddTwoInts_Request", {"a": 40, "b": 2}, SERVICE,
     "00010000 8877665544332211 0100000000000000 2800000000000000 0200000000000000"),
    ("std_srvs/srv/Trigger_Request", {}, SERVICE, "00010000 8877665544332211 0100000000000000 00000000"),
    ("std_srvs/srv/Trigger_Response", {"success": True, "message": "ok"}, SERVICE,
     "00010000 8877665544332211 0100000000000000 01000000 03000000 6f6b0000"),
    (f"{FOLLOW}_GetResult_Response", {"status": 4}, SERVICE,
     "00010000 8877665544332211 0100000000000000 04000000 00000000 01000000 00000000"),
]  # fmt: skip


@pytest.mark.parametrize("name", HASHES)
def test_type_hashes_equal_published_ones(name: str) -> None:
    assert INTERFACES.hash(name) == f"RIHS01_{HASHES[name]}"


def test_feedback_has_its_index_from_kilted_on() -> None:
    without, with_index = (interfaces_of(name).hash(f"{FOLLOW}_FeedbackMessage") for name in ("jazzy", "kilted"))
    assert without == "RIHS01_80398fcb9674a79081a9906e2ccf0c804dd7cb15e22e362e606ee87186beab71"
    assert with_index == "RIHS01_95618cc73912d99b9acaa17d2da5e832cb0bfdeede7534fa8ec600feca2a6c4b"


def test_the_hashed_text_is_the_documented_one() -> None:
    assert INTERFACES.described("std_msgs/msg/String") == (
        '{"type_description": {"type_name": "std_msgs/msg/String", "fields": [{"name": "data", "type": {"type_id": 17, '
        '"capacity": 0, "string_capacity": 0, "nested_type_name": ""}}]}, "referenced_type_descriptions": []}'
    )


@pytest.mark.parametrize(("name", "message", "head", "expected"), GOLDEN)
def test_golden_bytes(name: str, message: dict[str, object], head: bytes, expected: str) -> None:
    data = CODEC.encode(name, message, head)
    assert data.hex() == expected.replace(" ", "")
    numbers, read = CODEC.decode_service(name, data, "Qq" if head else "")
    assert numbers == ((0x1122334455667788, 1) if head else ())
    assert CODEC.encode(name, read, head) == data


def test_humble_has_longer_identifiers_and_no_hashes() -> None:
    humble = interfaces_of("humble")
    message = {"gid": {"data": GID + bytes(8)}, "node_entities_info_seq": [NODE]}
    data = Codec(humble).encode(GRAPH, message)
    assert not humble.hashes
    assert data.hex().startswith("00010000" + GID.hex() + "00" * 8 + "01000000020000002f000000")
    with pytest.raises(MessageError, match="16 values, got 24"):
        CODEC.encode(GRAPH, message)


def random_message(rng: np.random.Generator, name: str) -> Message:
    """A message of a type with random values, lengths and texts."""

    def one(field: Field) -> object:
        if field.nested:
            return random_message(rng, field.base)
        if field.base == "string":
            return "".join(rng.choice(list("aä_/0 "), rng.integers(0, 9)))
        if field.base.startswith("float"):
            return float(np.float32(rng.normal()))
        if field.base == "bool":
            return bool(rng.integers(0, 2))
        size = 8 * struct.calcsize("<" + PRIMITIVES[field.base])
        low, high = (-(2 ** (size - 1)), 2 ** (size - 1)) if field.base.startswith("int") else (0, 2**size)
        return int(rng.integers(low, high, dtype=np.int64 if low else np.uint64))

    values = {}
    for field in INTERFACES.fields(name):
        count = field.capacity if field.many == "array" else int(rng.integers(0, 4))
        count = min(count, field.capacity) if field.many == "bounded" else count
        values[field.name] = one(field) if field.many == "one" else [one(field) for _ in range(count)]
    return Message(**values)


def test_random_messages_of_every_type_come_back() -> None:
    rng = np.random.default_rng(1)
    for name in INTERFACES.names:
        for _ in range(3):
            data = CODEC.encode(name, random_message(rng, name))
            assert CODEC.encode(name, CODEC.decode(name, data)) == data, name


def test_rosbags_reads_and_writes_the_same_bytes() -> None:
    typesys = pytest.importorskip("rosbags.typesys")
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    rng, seen = np.random.default_rng(2), 0
    touch = definition_of(TOUCH)
    store.register(typesys.get_types_from_msg(touch, TOUCH))
    for name in INTERFACES.names:
        if name not in store.fielddefs or "/msg/" not in name:
            continue
        seen += 1
        for _ in range(3):
            data = CODEC.encode(name, random_message(rng, name))
            again = bytes(store.serialize_cdr(store.deserialize_cdr(data, name), name))
            assert data[: len(again)] == again, name
            assert not any(data[len(again) :]), name
    assert seen > 35


def definition_of(name: str) -> str:
    from tangere.ros2.interfaces import SHARE

    package, kind, own = name.split("/")
    return (SHARE / package / kind / f"{own}.msg").read_text()


def test_mcap_ros2_support_reads_the_same_values() -> None:
    dynamic = pytest.importorskip("mcap_ros2._dynamic")
    rng = np.random.default_rng(3)
    for name in ("sensor_msgs/msg/JointState", "trajectory_msgs/msg/JointTrajectory", "tf2_msgs/msg/TFMessage"):
        decode = dynamic.generate_dynamic(name, definition(name))[name]
        for _ in range(5):
            data = CODEC.encode(name, random_message(rng, name))
            ours, theirs = CODEC.decode(name, data), decode(data)
            assert _plain(ours) == _plain(theirs), name


def test_foxglove_s_own_reader_reads_the_same_values() -> None:
    """In JavaScript: npm install @foxglove/rosmsg @foxglove/rosmsg2-serialization, and NODE_PATH to find them."""
    node = shutil.which("node")
    reader = Path(__file__).parent / "dds" / "foxglove_reader.cjs"
    if node is None or subprocess.run([node, str(reader)], input=b"", capture_output=True).stderr.count(b"MODULE_NOT"):
        pytest.skip("Foxglove's reader is not installed (npm), or NODE_PATH does not lead to it")
    rng = np.random.default_rng(7)
    kinds = (
        "sensor_msgs/msg/JointState", "sensor_msgs/msg/Image", "tf2_msgs/msg/TFMessage", "nav_msgs/msg/Path",
        "trajectory_msgs/msg/JointTrajectory", "geometry_msgs/msg/WrenchStamped", "std_msgs/msg/Float64MultiArray",
    )  # fmt: skip
    sent = [(name, random_message(rng, name)) for name in kinds for _ in range(5)]
    lines = [json.dumps({"definition": definition(name), "data": CODEC.encode(name, m).hex()}) for name, m in sent]
    done = subprocess.run([node, str(reader)], input="\n".join(lines), capture_output=True, text=True, check=True)
    for line, (name, message) in zip(done.stdout.splitlines(), sent, strict=True):
        assert json.loads(line) == _plain(message), name


def _plain(value: object) -> object:
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(entry) for entry in (value.tolist() if isinstance(value, np.ndarray) else value)]
    names = vars(value) if isinstance(value, Message) else value.__slots__  # type: ignore[attr-defined]
    return {name: _plain(getattr(value, name)) for name in names}


def test_big_endian_is_read_too() -> None:
    data = b"\x00\x00\x00\x00" + struct.pack(">iI", -5, 7)
    assert vars(CODEC.decode("builtin_interfaces/msg/Time", data)) == {"sec": -5, "nanosec": 7}


def test_no_bytes_do_harm() -> None:
    """Cut, changed and random bytes: a message, or the one error."""
    rng = np.random.default_rng(4)
    kinds = ("sensor_msgs/msg/JointState", "sensor_msgs/msg/Image", f"{FOLLOW}_SendGoal_Request", GRAPH, TOUCH)
    refused = 0
    for name in kinds:
        data = bytearray(CODEC.encode(name, random_message(rng, name)))
        for k in range(300):
            bad = bytearray(data)
            if k % 3 == 0:
                bad = bad[: rng.integers(0, len(bad))]
            elif k % 3 == 1:
                bad[rng.integers(0, len(bad))] = rng.integers(0, 256)
            else:
                bad[4:] = rng.bytes(len(bad) - 4)
            try:
                CODEC.decode(name, bytes(bad))
            except MessageError:
                refused += 1
    assert refused > 300


def test_a_count_beyond_the_bytes_is_not_believed() -> None:
    data = b"\x00\x01\x00\x00" + struct.pack("<I", 0xFFFFFFFF) + bytes(8)
    for name in ("tf2_msgs/msg/TFMessage", "std_msgs/msg/UInt8MultiArray"):
        with pytest.raises(MessageError, match="end before"):
            CODEC.decode(name, data)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"positoin": [1.0]}, "no field 'positoin'"),
        ({"position": ["x"]}, "numbers of float64"),
        ({"header": {"stamp": {"sec": 2**40}}}, "does not fit"),
        ({"name": "ab", "position": [[1.0]]}, "in one row"),
    ],
)
def test_wrong_values_are_refused_with_a_sentence(message: dict[str, object], says: str) -> None:
    with pytest.raises(MessageError, match=says):
        CODEC.encode("sensor_msgs/msg/JointState", message)


def test_definitions_are_parsed_as_ros_has_them() -> None:
    text = "# c\nuint8 A=1\nstring<=5[<=3] names # d\nGid gid\nfloat64[9] k\n\nbool b"
    assert parsed(text, "pkg") == (
        Field("names", "string", "bounded", 3, 5), Field("gid", "pkg/msg/Gid"), Field("k", "float64", "array", 9),
        Field("b", "bool"),
    )  # fmt: skip
    with pytest.raises(InvalidValue, match="not a line"):
        parsed("float64 Position", "pkg")


def test_every_type_has_a_layout() -> None:
    for distro in DISTROS:
        for name in interfaces_of(distro).names:
            assert Layout(interfaces_of(distro), name).size >= 8
