"""Messages, services and actions by name, as a ROS 2 distribution has them, and their type hashes (RIHS01)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from tangere.errors import InvalidValue, unknown
from tangere.logs.ros_types import MESSAGES, Field, parsed

SHARE = Path(__file__).parent / "share"  # packages for a ROS 2 workspace; our own message is defined there
TOUCH = "tangere_msgs/msg/Touch"
FOLLOW = "control_msgs/action/FollowJointTrajectory"
CANCEL = "action_msgs/srv/CancelGoal"
GRAPH = "rmw_dds_common/msg/ParticipantEntitiesInfo"

Distro = Literal["humble", "iron", "jazzy", "kilted", "lyrical", "rolling"]
DISTROS: tuple[Distro, ...] = ("humble", "iron", "jazzy", "kilted", "lyrical", "rolling")
DEFAULT: Distro = "jazzy"
# Feedback of the action has two more fields from control_msgs 6.3 on, which these are built from.
_WITH_INDEX = ("kilted", "lyrical", "rolling")

_SERVICES: Mapping[str, tuple[str, str]] = {
    "std_srvs/srv/Trigger": ("", "bool success\nstring message"),
    "example_interfaces/srv/AddTwoInts": ("int64 a\nint64 b", "int64 sum"),
    CANCEL: ("action_msgs/GoalInfo goal_info", "int8 return_code\naction_msgs/GoalInfo[] goals_canceling"),
}
_POINT, _MULTI = "trajectory_msgs/JointTrajectoryPoint", "trajectory_msgs/MultiDOFJointTrajectoryPoint"
_GOAL = """trajectory_msgs/JointTrajectory trajectory
trajectory_msgs/MultiDOFJointTrajectory multi_dof_trajectory
control_msgs/JointTolerance[] path_tolerance
control_msgs/JointComponentTolerance[] component_path_tolerance
control_msgs/JointTolerance[] goal_tolerance
control_msgs/JointComponentTolerance[] component_goal_tolerance
builtin_interfaces/Duration goal_time_tolerance"""
_RESULT = "int32 error_code\nstring error_string"


def _feedback(index: bool) -> str:
    three = ("desired", "actual", "error")
    lines = ["std_msgs/Header header", "string[] joint_names", *(f"{_POINT} {name}" for name in three)]
    lines += ["int32 index"] if index else []
    lines += ["string[] multi_dof_joint_names", *(f"{_MULTI} multi_dof_{name}" for name in three)]
    return "\n".join(lines + (["int32 multi_dof_index"] if index else []))


# type_id of a single value; arrays, bounded sequences and sequences of it count from 48, 96 and 144
_IDS = {
    "int8": 2, "uint8": 3, "char": 3, "int16": 4, "uint16": 5, "int32": 6, "uint32": 7, "int64": 8, "uint64": 9,
    "float32": 10, "float64": 11, "bool": 15, "byte": 16, "string": 17,
}  # fmt: skip
_BOUNDED_STRING, _NESTED = 21, 1
_MANY = {"one": 0, "array": 48, "bounded": 96, "sequence": 144}


class Interfaces:
    """The types of one distribution. `fields` of a name such as sensor_msgs/msg/JointState, its `hash`.

    A service S has S_Request and S_Response, an action A has A_Goal, A_Result, A_Feedback, A_FeedbackMessage and the
    services A_SendGoal and A_GetResult. Humble knows identifiers of 24 bytes instead of 16, and no hashes.
    """

    def __init__(self, distro: Distro = DEFAULT) -> None:
        if distro not in DISTROS:
            raise unknown("distribution of ROS 2", distro, DISTROS)
        self.distro = distro
        self.gid_size = 24 if distro == "humble" else 16
        self.hashes = distro != "humble"
        self._texts = dict(MESSAGES)
        self._texts[TOUCH] = (SHARE / "tangere_msgs" / "msg" / "Touch.msg").read_text(encoding="utf-8")
        self._texts["rmw_dds_common/msg/Gid"] = f"char[{self.gid_size}] data"
        for name, parts in _SERVICES.items():
            self._service(name, *parts)
        self._action(FOLLOW, _GOAL, _RESULT, _feedback(distro in _WITH_INDEX))
        self._fields: dict[str, tuple[Field, ...]] = {}
        self._hashes: dict[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Every type, also those that services and actions are made of."""
        return tuple(self._texts)

    def fields(self, name: str) -> tuple[Field, ...]:
        """The fields of a type in their order."""
        if name not in self._fields:
            if name not in self._texts:
                raise unknown("message type", name, self._texts)
            self._fields[name] = parsed(self._texts[name], name.split("/")[0])
        return self._fields[name]

    def define(self, name: str, text: str) -> None:
        """One more message type: pkg/msg/Name and the text of its .msg file."""
        if name.count("/") != 2:
            raise InvalidValue(f"a message type is called package/msg/Name, got {name!r}")
        self._texts[name] = text
        self._fields.pop(name, None)
        self._hashes.clear()

    def hash(self, name: str) -> str:
        """RIHS01_ and the SHA-256 of the type's description."""
        if name not in self._hashes:
            self._hashes[name] = "RIHS01_" + hashlib.sha256(self.described(name).encode()).hexdigest()
        return self._hashes[name]

    def described(self, name: str) -> str:
        """The text that is hashed: the type and all that it refers to, by name, as JSON."""
        seen: set[str] = set()
        todo = [name]
        while todo:
            new = {field.base for field in self.fields(todo.pop()) if field.nested} - seen
            seen |= new
            todo += new
        whole = {
            "type_description": self._description(name),
            "referenced_type_descriptions": [self._description(other) for other in sorted(seen)],
        }
        return json.dumps(whole)

    def _description(self, name: str) -> dict[str, Any]:
        fields = []
        for field in self.fields(name):
            kind = _NESTED if field.nested else _BOUNDED_STRING if field.string_capacity else _IDS[field.base]
            its = {
                "type_id": kind + _MANY[field.many], "capacity": field.capacity,
                "string_capacity": field.string_capacity, "nested_type_name": field.base if field.nested else "",
            }  # fmt: skip
            fields.append({"name": field.name, "type": its})
        return {"type_name": name, "fields": fields}

    def _service(self, name: str, request: str, response: str) -> None:
        nothing = "uint8 structure_needs_at_least_one_member"
        self._texts[f"{name}_Request"] = request or nothing
        self._texts[f"{name}_Response"] = response or nothing
        self._texts[f"{name}_Event"] = (
            f"service_msgs/ServiceEventInfo info\n{name}_Request[<=1] request\n{name}_Response[<=1] response"
        )
        self._texts[name] = (
            f"{name}_Request request_message\n{name}_Response response_message\n{name}_Event event_message"
        )

    def _action(self, name: str, goal: str, result: str, feedback: str) -> None:
        uuid = "unique_identifier_msgs/UUID goal_id"
        for part, text in (("Goal", goal), ("Result", result), ("Feedback", feedback)):
            self._texts[f"{name}_{part}"] = text
        self._service(f"{name}_SendGoal", f"{uuid}\n{name}_Goal goal", "bool accepted\nbuiltin_interfaces/Time stamp")
        self._service(f"{name}_GetResult", uuid, f"int8 status\n{name}_Result result")
        self._texts[f"{name}_FeedbackMessage"] = f"{uuid}\n{name}_Feedback feedback"
        self._texts[name] = (
            f"{name}_Goal goal\n{name}_Result result\n{name}_Feedback feedback\n{name}_SendGoal send_goal_service\n"
            f"{name}_GetResult get_result_service\n{name}_FeedbackMessage feedback_message"
        )


@cache
def interfaces_of(distro: Distro = DEFAULT) -> Interfaces:
    """The types of a distribution, made once."""
    return Interfaces(distro)
