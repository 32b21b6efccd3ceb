"""ROS 2 message types as their .msg files define them: the one table of definitions, and its parser.

Types of fields are written with their package. Constants and comments of the original files are left out: neither
changes a byte of a message or its type's hash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tangere.errors import InvalidValue

_TIME = "int32 sec\nuint32 nanosec"
_VECTOR = "float64 x\nfloat64 y\nfloat64 z"
_HEADER = "std_msgs/Header header\n"
_STAMPED_POINT = "builtin_interfaces/Duration time_from_start"

MESSAGES: Mapping[str, str] = {
    "builtin_interfaces/msg/Time": _TIME,
    "builtin_interfaces/msg/Duration": _TIME,
    "std_msgs/msg/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "std_msgs/msg/String": "string data",
    "std_msgs/msg/Bool": "bool data",
    "std_msgs/msg/Float64": "float64 data",
    "std_msgs/msg/MultiArrayDimension": "string label\nuint32 size\nuint32 stride",
    "std_msgs/msg/MultiArrayLayout": "std_msgs/MultiArrayDimension[] dim\nuint32 data_offset",
    "std_msgs/msg/Float64MultiArray": "std_msgs/MultiArrayLayout layout\nfloat64[] data",
    "std_msgs/msg/UInt8MultiArray": "std_msgs/MultiArrayLayout layout\nuint8[] data",
    "sensor_msgs/msg/JointState": _HEADER + "string[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort",
    "sensor_msgs/msg/Image": _HEADER
    + "uint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\nuint32 step\nuint8[] data",
    "geometry_msgs/msg/Vector3": _VECTOR,
    "geometry_msgs/msg/Point": _VECTOR,
    "geometry_msgs/msg/Quaternion": _VECTOR + "\nfloat64 w",
    "geometry_msgs/msg/Pose": "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation",
    "geometry_msgs/msg/PoseStamped": _HEADER + "geometry_msgs/Pose pose",
    "geometry_msgs/msg/Transform": "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation",
    "geometry_msgs/msg/TransformStamped": _HEADER + "string child_frame_id\ngeometry_msgs/Transform transform",
    "geometry_msgs/msg/Twist": "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular",
    "geometry_msgs/msg/TwistStamped": _HEADER + "geometry_msgs/Twist twist",
    "geometry_msgs/msg/Wrench": "geometry_msgs/Vector3 force\ngeometry_msgs/Vector3 torque",
    "geometry_msgs/msg/WrenchStamped": _HEADER + "geometry_msgs/Wrench wrench",
    "nav_msgs/msg/Path": _HEADER + "geometry_msgs/PoseStamped[] poses",
    "tf2_msgs/msg/TFMessage": "geometry_msgs/TransformStamped[] transforms",
    "trajectory_msgs/msg/JointTrajectoryPoint": "float64[] positions\nfloat64[] velocities\nfloat64[] accelerations\n"
    "float64[] effort\n" + _STAMPED_POINT,
    "trajectory_msgs/msg/JointTrajectory": _HEADER
    + "string[] joint_names\ntrajectory_msgs/JointTrajectoryPoint[] points",
    "trajectory_msgs/msg/MultiDOFJointTrajectoryPoint": "geometry_msgs/Transform[] transforms\n"
    "geometry_msgs/Twist[] velocities\ngeometry_msgs/Twist[] accelerations\n" + _STAMPED_POINT,
    "trajectory_msgs/msg/MultiDOFJointTrajectory": _HEADER
    + "string[] joint_names\ntrajectory_msgs/MultiDOFJointTrajectoryPoint[] points",
    "rosgraph_msgs/msg/Clock": "builtin_interfaces/Time clock",
    "rcl_interfaces/msg/Log": "builtin_interfaces/Time stamp\nuint8 level\nstring name\nstring msg\nstring file\n"
    "string function\nuint32 line",
    "rcl_interfaces/msg/ParameterValue": "uint8 type\nbool bool_value\nint64 integer_value\nfloat64 double_value\n"
    "string string_value\nbyte[] byte_array_value\nbool[] bool_array_value\nint64[] integer_array_value\n"
    "float64[] double_array_value\nstring[] string_array_value",
    "diagnostic_msgs/msg/KeyValue": "string key\nstring value",
    "diagnostic_msgs/msg/DiagnosticStatus": "byte level\nstring name\nstring message\nstring hardware_id\n"
    "diagnostic_msgs/KeyValue[] values",
    "diagnostic_msgs/msg/DiagnosticArray": _HEADER + "diagnostic_msgs/DiagnosticStatus[] status",
    "unique_identifier_msgs/msg/UUID": "uint8[16] uuid",
    "service_msgs/msg/ServiceEventInfo": "uint8 event_type\nbuiltin_interfaces/Time stamp\nchar[16] client_gid\n"
    "int64 sequence_number",
    "action_msgs/msg/GoalInfo": "unique_identifier_msgs/UUID goal_id\nbuiltin_interfaces/Time stamp",
    "action_msgs/msg/GoalStatus": "action_msgs/GoalInfo goal_info\nint8 status",
    "action_msgs/msg/GoalStatusArray": "action_msgs/GoalStatus[] status_list",
    "control_msgs/msg/JointTolerance": "string name\nfloat64 position\nfloat64 velocity\nfloat64 acceleration",
    "control_msgs/msg/JointComponentTolerance": "string joint_name\nuint16 component\nfloat64 position\n"
    "float64 velocity\nfloat64 acceleration",
    "rmw_dds_common/msg/Gid": "char[16] data",
    "rmw_dds_common/msg/NodeEntitiesInfo": "string<=256 node_namespace\nstring<=256 node_name\n"
    "rmw_dds_common/Gid[] reader_gid_seq\nrmw_dds_common/Gid[] writer_gid_seq",
    "rmw_dds_common/msg/ParticipantEntitiesInfo": "rmw_dds_common/Gid gid\n"
    "rmw_dds_common/NodeEntitiesInfo[] node_entities_info_seq",
}

# primitive type -> code of Python's struct, which has its size, too
PRIMITIVES: Mapping[str, str] = {
    "bool": "?", "byte": "B", "char": "B", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
    "uint32": "I", "int64": "q", "uint64": "Q", "float32": "f", "float64": "d",
}  # fmt: skip

Several = Literal["one", "array", "bounded", "sequence"]


@dataclass(frozen=True)
class Field:
    """One line of a definition."""

    name: str
    base: str  # a primitive type, "string", or the full name of a message: pkg/msg/Name
    many: Several = "one"
    capacity: int = 0  # of an array or a bounded sequence
    string_capacity: int = 0  # of a bounded string

    @property
    def nested(self) -> bool:
        """Whether it is a message itself."""
        return "/" in self.base


_LINE = re.compile(r"([A-Za-z][\w/]*)(?:<=(\d+))?(?:\[(<=)?(\d*)\])?\s+([a-z]\w*)")


def parsed(text: str, package: str) -> tuple[Field, ...]:
    """The fields of a .msg file's text; comments and constants are left out. package: of types without one."""
    fields = []
    for raw in text.splitlines():
        line = raw.partition("#")[0].strip()
        if not line or re.match(r"[\w/<=]+\s+[A-Z][A-Z0-9_]*\s*=", line):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise InvalidValue(f"not a line of a message definition: {raw!r}")
        base, string_bound, bounded, count, name = found.groups()
        if base not in PRIMITIVES and base != "string":
            base = full_name(base, package)
        many: Several = "one" if count is None else "bounded" if bounded else "array" if count else "sequence"
        fields.append(Field(name, base, many, int(count or 0), int(string_bound or 0)))
    return tuple(fields)


def full_name(name: str, package: str = "") -> str:
    """pkg/msg/Name of pkg/Name, or of Name in a package."""
    parts = name.split("/")
    if len(parts) == 1:
        return f"{package}/msg/{name}"
    return name if len(parts) == 3 else f"{parts[0]}/msg/{parts[1]}"


def definition(name: str) -> str:
    """A message definition with those it needs, in the form that MCAP's and Foxglove's "ros2msg" schemas have."""
    seen = {name: None}
    needed: list[str] = []

    def collect(of: str) -> None:
        for field in parsed(MESSAGES[of], of.split("/")[0]):
            if field.nested and field.base not in seen:
                seen[field.base] = None
                needed.append(field.base)
                collect(field.base)

    collect(name)
    rule = "\n" + "=" * 80 + "\n"
    return MESSAGES[name] + "".join(f"{rule}MSG: {part.replace('/msg/', '/')}\n{MESSAGES[part]}" for part in needed)
