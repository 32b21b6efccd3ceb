"""ROS 2 bags of others as logs, MCAP or SQLite: joint states as q, qd, tau, and the wrench beside."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from tangere import foreign
from tangere.errors import InvalidValue, extra
from tangere.logs.channels import JOINT_STATE, WRENCH
from tangere.logs.log import CUT, Log, Note
from tangere.logs.ros_types import definition
from tangere.types import Array

# of one topic: its name, the definition of its type as MCAP has it, messages with log time [ns]
Stream = tuple[str, dict[str, Any], Iterable[tuple[int, bytes]]]

# the joints of a UR from base to flange: drivers sort them by name
_UR = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")


class Bag:
    """A ROS 2 bag of others: joint states as q, qd, tau, the newest wrench before each of them beside.

    Time counts from the first stamp. The joints are in the order of the first message; those of a UR from base to
    flange, without a gripper's. Rows are those of the topic with the most messages. A wrench in frame `base` is the
    column wrench, in another frame wrench_FRAME: turning it takes the arm's pose. Bad messages cost themselves and are
    in problems.
    """

    def __init__(self, path: Path, streams: Iterable[Stream]) -> None:
        self.path = path
        self.problems: list[str] = []
        with extra(f"{path} is a ROS 2 bag: reading it needs mcap and mcap-ros2-support: pip install 'tangere[log]'"):
            factory = import_module("mcap_ros2.decoder").DecoderFactory()
            schema = import_module("mcap.records").Schema
        self.found: dict[tuple[str, str], list[tuple[int, Any]]] = {}  # topic, type -> messages with log time [ns]
        bad = 0
        for topic, text, messages in streams:
            decode = factory.decoder_for("cdr", schema(**text))
            found = self.found.setdefault((topic, text["name"]), [])
            for ns, message in messages:
                try:
                    found.append((ns, decode(message)))
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


def read_db3(path: Path) -> Log:
    """The log of a ROS 2 bag in SQLite, as rosbag2 wrote them before MCAP.

    Where pages of it are damaged, everything before them is read, and log.complete is False.
    """
    size = path.stat().st_size if path.is_file() else 0
    with foreign.reading(path, size):
        tables = _Tables(path, size)
        bag = Bag(path, tables.streams())
        if not any(bag.found.values()):
            raise InvalidValue(f"{path} holds no log: {tables.why}")
        return bag.log(tables.complete)


class _Tables:
    """The tables of a bag: plain ones only, read with a bare SELECT; a file can make SQLite do more than that."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.complete, self.why = path, True, ""
        self._room = foreign.budget(size)  # [bytes] that messages may have

    def streams(self) -> Iterator[Stream]:
        """Topics of joint states and wrenches with their messages."""
        with self.path.open("rb") as file:  # its own words for what is missing, and nothing is made that was not there
            if file.read(16) != b"SQLite format 3\0":
                raise InvalidValue(f"{self.path} is no bag: it is not an SQLite file")
        where = f"file:{quote(os.path.abspath(self.path))}?mode=ro"
        with closing(sqlite3.connect(where, uri=True)) as base:
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(self._room, 2**31 - 1))
            kinds = dict(base.execute("SELECT name, type || coalesce(substr(sql, 1, 12), '') FROM sqlite_master"))
            if any(kinds.get(name) != "tableCREATE TABLE" for name in ("topics", "messages")):
                raise InvalidValue(f"{self.path} is no bag of ROS 2: an SQLite file without its tables")
            base.set_authorizer(_only_reads)
            topics = base.execute("SELECT id, name, type FROM topics").fetchall()
            has = ", ".join(str(topic) for _, topic, _ in topics) or "none"
            self.why = f"no message of {JOINT_STATE} in it can be read; it has the topics {foreign.clean(has)}"
            for number, topic, kind in topics:
                if kind in (JOINT_STATE, WRENCH):
                    text = {"id": number, "name": kind, "encoding": "ros2msg", "data": definition(kind).encode()}
                    yield foreign.clean(str(topic)), text, self._messages(base, number)

    def _messages(self, base: sqlite3.Connection, topic: int) -> Iterator[tuple[int, bytes]]:
        rows = base.execute("SELECT timestamp, data FROM messages WHERE topic_id = ? ORDER BY rowid", (topic,))
        try:
            for ns, data in rows:
                self._room -= len(data)
                if self._room < 0:
                    raise foreign.too_large(self.path, foreign.allowed() - self._room, foreign.allowed())
                if data[:4] == b"\x28\xb5\x2f\xfd":
                    self.why = "its messages are compressed one by one; `ros2 bag convert` writes them plain"
                yield int(ns), data
        except sqlite3.DatabaseError:  # damaged from here on
            self.complete = False


def _only_reads(action: int, *_: Any) -> int:
    """What a statement may do: read columns."""
    return sqlite3.SQLITE_OK if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ) else sqlite3.SQLITE_DENY
