"""ROS 2 bags of others as logs: joint states as q, qd, tau, and the wrench beside."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue, MissingExtra
from tangere.logs.channels import JOINT_STATE, WRENCH
from tangere.logs.log import CUT, Log, Note
from tangere.logs.mcap_records import MESSAGE_HEAD
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.logs.mcap_read import McapReader

# the joints of a UR from base to flange: drivers sort them by name
_UR = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")


class Bag:
    """A ROS 2 bag of others: joint states as q, qd, tau, the newest wrench before each of them beside.

    Time counts from the first stamp. The joints are in the order of the first message; those of a UR from base to
    flange, without a gripper's. Rows are those of the topic with the most messages. A wrench in frame `base` is the
    column wrench, in another frame wrench_FRAME: turning it takes the arm's pose. Bad messages cost themselves and are
    in problems.
    """

    def __init__(self, reader: McapReader) -> None:
        self.path = reader.path
        self.problems: list[str] = []
        try:
            factory = import_module("mcap_ros2.decoder").DecoderFactory()
            schema = import_module("mcap.records").Schema
        except ImportError as problem:
            raise MissingExtra(
                f"{reader.path} is a ROS 2 bag: reading it needs mcap and mcap-ros2-support: pip install 'tangere[log]'"
            ) from problem
        self.found: dict[tuple[str, str], list[tuple[int, Any]]] = {}  # topic, type -> messages with log time [ns]
        bad = 0
        for number, messages in reader.messages.items():
            topic, kind, _ = reader.channels[number]
            decode = factory.decoder_for("cdr", schema(**reader.schemas[reader.schema_of[number]]))
            found = self.found.setdefault((topic, kind), [])
            for message in messages:
                try:
                    ns = int.from_bytes(message[6:14], "little")
                    found.append((ns, decode(bytes(message[MESSAGE_HEAD.size - 9 :]))))
                except Exception:  # whatever the decoder says of bytes that are no such message
                    bad += 1
        if bad:
            self.problems.append(f"{bad} messages could not be decoded and were left out")

    def log(self, complete: bool) -> Log:
        """The messages as columns."""
        states = self._topic(JOINT_STATE)
        if not states:
            raise InvalidValue(f"{self.path}: has no message of {JOINT_STATE} that can be read")
        names = list(states[0][1].name)
        order = _from_base(names)
        joints = [names[k] for k in order]
        if len(joints) < len(names):
            self.problems.append(f"joints beside the arm's were left out: {', '.join(set(names) - set(joints))}")
        fields = {"q": "position", "qd": "velocity", "tau": "effort"}
        present = {ours: field for ours, field in fields.items() if len(getattr(states[0][1], field)) == len(names)}
        rows: dict[str, list[Any]] = {name: [] for name in present}
        stamps: list[int] = []
        other = 0
        for ns, message in states:
            here = list(message.name)
            if sorted(here) != sorted(names) or any(len(getattr(message, f)) != len(here) for f in present.values()):
                other += 1
                continue
            at = [here.index(name) for name in joints]
            stamps.append(_stamp(message, ns))
            for ours, field in present.items():
                values = getattr(message, field)
                rows[ours].append([values[k] for k in at])
        if other:
            self.problems.append(f"{other} joint states with other joints or fields were left out")
        if "tau" in present:
            self.problems.append("effort was taken as torque [Nm]; UR's own driver puts motor currents [A] there")
        start = stamps[0]
        columns = {"time": (np.array(stamps) - start) * 1e-9} | {name: np.array(v) for name, v in rows.items()}
        columns |= self._wrench(np.array(stamps))
        self.problems += [] if complete else [CUT]
        units = {name: "N, Nm" for name in columns if name.startswith("wrench")}
        note = Note(0.0, f"joints: {', '.join(joints)}")
        return Log(columns, units, (note,), complete, tuple(self.problems), start_ns=start)

    def _topic(self, kind: str) -> list[Any]:
        """The messages of the topic of a type that has the most; the others are named in problems."""
        topics = {topic: messages for (topic, found), messages in self.found.items() if found == kind}
        if not topics:
            return []
        best = max(topics, key=lambda topic: len(topics[topic]))
        if len(topics) > 1:
            others = ", ".join(topic for topic in topics if topic != best)
            self.problems.append(f"{best} was read; topics of the same type were not: {others}")
        return topics[best]

    def _wrench(self, stamps: NDArray[np.int64]) -> dict[str, Array]:
        """The newest wrench at each stamp; nan before the first."""
        found = self._topic(WRENCH)
        if not found:
            return {}
        at = np.array([_stamp(message, ns) for ns, message in found])
        parts = [(message.wrench.force, message.wrench.torque) for _, message in found]
        values = np.array([[np.nan] * 6, *([f.x, f.y, f.z, m.x, m.y, m.z] for f, m in parts)])
        order = np.argsort(at, kind="stable")
        frame = found[0][1].header.frame_id.strip("/")
        name = "wrench" if frame in ("", "base") else f"wrench_{frame}"
        if name != "wrench":
            self.problems.append(f"the wrench is in frame {frame}: column {name}, not turned into base axes")
        newest = np.searchsorted(at[order], stamps, side="right")
        return {name: values[np.concatenate([[0], order + 1])[newest]]}


def _stamp(message: Any, ns: int) -> int:
    """[ns] of a message's header, its log time where the header has none."""
    return int(message.header.stamp.sec) * 1_000_000_000 + int(message.header.stamp.nanosec) or ns


def _from_base(names: list[str]) -> list[int]:
    """Places of the six joints from base to flange where a UR's are among them (any prefix), else all as they are."""
    found = [[k for k, name in enumerate(names) if name.removesuffix("_joint").endswith(joint)] for joint in _UR]
    if all(len(places) == 1 for places in found):
        return [places[0] for places in found]
    return list(range(len(names)))
