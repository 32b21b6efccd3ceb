"""What columns are called and in which unit: the one place where names of others become ours.

Ours are short (q, qd, tau); UR's real-time data exchange (RTDE) says actual_q, ROS position, people t or TimeStamp.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from tangere import foreign
from tangere.errors import InvalidValue
from tangere.types import Array

# Columns that a run records, with units; joints along the second axis unless said otherwise. "rad" stands for m with
# prismatic joints. A row belongs to one sample: what was measured there, what was estimated from it, what it was
# answered.
UNITS: Mapping[str, str] = MappingProxyType(
    {
        "time": "s",
        "period": "s",  # since the sample before
        "q": "rad",  # measured
        "qd": "rad/s",
        "qdd": "rad/s2",  # of a planned motion
        "tau": "Nm",  # torque applied since the sample before, as reported, gravity included
        "wrench": "N, Nm",  # (6) measured at the tcp, base axes, environment on robot
        "q_des": "rad",
        "qd_des": "rad/s",
        "qdd_des": "rad/s2",
        "T_des": "1, m",  # (12) upper three rows of T_base_tcp, row by row
        "tau_cmd": "Nm",  # commanded for the coming period
        "residual": "Nm",  # of the first observer; residual_NAME of the others
        "q_true": "rad",
        "qd_true": "rad/s",
        "tau_ext_true": "Nm",
        "T_true": "1, m",  # (12) as T_des
        "wrench_true": "N, Nm",  # (6) as wrench
        "score": "",  # of the detector: the largest signal against its threshold, 1 is an alarm
        "cost": "s",  # wall time of observers, detector and controller
        "cost_log": "s",  # wall time of recording the row before
        "lateness": "s",  # how long after its due time a paced period began
        "cpu": "s",  # processor time that the paced period before took, simulator included
        # what a robot's recording holds beyond these, by RTDE's documentation
        "actual_current": "A",
        "target_current": "A",
        "actual_current_as_torque": "Nm",
        "joint_control_output": "A",
        "joint_temperatures": "degC",
        "actual_TCP_pose": "m, rad",
        "target_TCP_pose": "m, rad",
        "actual_TCP_speed": "m/s, rad/s",
        "target_TCP_speed": "m/s, rad/s",
        "actual_execution_time": "ms",
        "actual_tool_accelerometer": "m/s2",
        "actual_main_voltage": "V",
        "actual_robot_voltage": "V",
        "actual_robot_current": "A",
        "actual_joint_voltage": "V",
        "payload": "kg",
        "payload_cog": "m",
    }
)
# Our columns that RTDE has a name for; vectors get _0 ... _5 appended, counted from 0 as RTDE's recorder does. Ours
# without one keep their own name: `tau` above all, since RTDE reports currents, and torque without gravity only
# (actual_current_as_torque). target_moment is the controller's torque, gravity included: our command.
RTDE_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "time": "timestamp",
        "q": "actual_q",
        "qd": "actual_qd",
        "q_des": "target_q",
        "qd_des": "target_qd",
        "qdd_des": "target_qdd",
        "tau_cmd": "target_moment",
        "wrench": "actual_TCP_force",
    }
)
# Names of the stamp, the best first: recorders number their rows by "time" and have the robot's clock in "timestamp".
_STAMPS = ("timestamp", "time_stamp", "stamp", "time", "t")
# What people call the others, in small letters; used where the log has no column of our name or RTDE's.
_ALIASES = {
    "current": "actual_current", "currents": "actual_current", "effort": "tau", "torque": "tau", "efforts": "tau",
    "torques": "tau", "joint_torque": "tau", "joint_effort": "tau", "position": "q", "positions": "q",
    "joint_position": "q", "joint_positions": "q", "velocity": "qd", "velocities": "qd", "joint_velocity": "qd",
    "joint_velocities": "qd", "dq": "qd", "qdot": "qd", "pos": "q", "vel": "qd",
}  # fmt: skip
_OURS = {name.lower(): ours for ours, name in RTDE_NAMES.items()}
# What to do where no column has a name that is known.
RENAME = "name them time [ms], q_1 [deg], tau_1 [Nm] and so on, or list them: --columns 't [ms],q [deg],qd [deg/s],tau'"
# Without a number in each of these a line is no use; in another column it is nan.
NEEDED = frozenset(
    {
        "time", "q", "qd", "tau", "actual_current", "actual_current_as_torque", "qd_des", "tau_cmd", "target_current",
        "payload", "payload_cog",
    }
)  # fmt: skip
# unit in the brackets of a name, such as `q_0 [deg]` -> our unit, and what numbers are multiplied by
_SPELT_UNITS = {
    "deg": ("rad", math.pi / 180.0), "deg/s": ("rad/s", math.pi / 180.0), "ms": ("s", 1e-3), "us": ("s", 1e-6),
    "ns": ("s", 1e-9), "mm": ("m", 1e-3), "mA": ("A", 1e-3),
}  # fmt: skip
# the same at the end of a name, such as `time_ms` and `joint1_pos_deg`; read so where the rest is a name that we know
_ENDINGS = {
    "deg": "deg", "rad": "rad", "deg_s": "deg/s", "rad_s": "rad/s", "degps": "deg/s", "ms": "ms", "us": "us",
    "ns": "ns", "s": "s", "sec": "s", "nm": "Nm", "a": "A", "ma": "mA",
}  # fmt: skip


def unit_of(name: str) -> str:
    """Unit of a column by its name, "" where not known."""
    return UNITS.get(name) or ("Nm" if name.startswith("residual_") else "")


@dataclass(frozen=True)
class Arrangement:
    """Which cells of a line make which column."""

    width: int  # cells of a line
    where: Mapping[str, int | Sequence[int]]  # one cell: a column (N,); several: (N, k)
    units: Mapping[str, str] = field(default_factory=dict)  # where the names say other units than ours have
    factors: Mapping[str, float] = field(default_factory=dict)  # by which such numbers become ours

    def columns(self, table: Array) -> dict[str, Array]:
        """Columns (...,) or (..., k) of a table (..., width)."""
        found = {name: table[..., at] for name, at in self.where.items()}
        return found | {name: factor * found[name] for name, factor in self.factors.items() if name in found}


def listed(columns: str, count: int, where: str) -> Arrangement:
    """The arrangement of a column list such as "t [ms],q [deg],qd,current,_:6" for lines of `count` cells.

    Every name but t stands for six columns, NAME:K for K, `_` for columns to skip, `...` at the end for all that
    follow. A unit in brackets is that of the numbers; without one they are in s, rad, rad/s, Nm, A. A name for each
    cell, numbered as in a header (t,q_1,qd_1,q_2,...), says any order. where: what an error is about.
    """
    entries = [entry.strip() for entry in columns.split(",")]
    if len(entries) == count and re.search(r"_\d", columns):
        return named(["" if entry == "_" else entry for entry in entries], where)
    text, rest = (columns.rstrip()[:-3].rstrip(", "), True) if columns.rstrip().endswith("...") else (columns, False)
    found: dict[str, int | Sequence[int]] = {}
    units: dict[str, str] = {}
    at = 0
    for entry in text.split(","):
        spelt = re.search(r"\s*\[([^\]]*)\]\s*", entry)
        name, _, size = entry.replace(spelt[0] if spelt else "", "", 1).strip().partition(":")
        if not name or (size and not size.isdigit()):
            raise InvalidValue(f"{where}: columns are NAME or NAME:COUNT with commas between, got {columns!r}")
        name = "time" if name in _STAMPS else _OURS.get(name.lower()) or _ALIASES.get(name.lower(), name)
        if name in found:
            raise InvalidValue(f"{where}: column {name!r} is named twice in {columns!r}")
        k = int(size) if size else 1 if name in ("time", "_") else 6
        if name != "_":
            found[name] = at if name == "time" else range(at, at + k)
            units |= {name: spelt[1].strip()} if spelt else {}
        at += k
    if at > count or (at < count and not rest):
        raise InvalidValue(
            f"{where}: {columns!r} stands for {at} columns, the first line has {count}: every name but t counts for "
            "six; leave out what is not there, skip six with _:6; or name every one: t,q_1,qd_1,..."
        )
    return _ours(found, units, count)


def named(header: Sequence[str], where: str) -> Arrangement:
    """The arrangement that a header says: names of ours, of RTDE or of others, vectors by their numbers.

    name_0, name_1, ... (also from 1, also name0, name[0], joint1_name) are one column (N, k); numbers with gaps are
    none. A unit in brackets is understood, or at the end (time_ms). A name that nobody knows is kept.
    """
    names = [foreign.clean(name.strip()) for name in header]  # they are shown in terminals
    given = [name for name in names if name]
    if len(set(given)) != len(given):
        raise InvalidValue(f"{where}: a name stands twice in the header: {foreign.names(given)}")
    units: dict[str, str] = {}
    groups: dict[str, dict[int, int]] = {}  # name without its number -> number -> cell
    singles: dict[str, int] = {}
    for cell, full in enumerate(names):
        match = re.fullmatch(r"(.+?)\s*[\[(]([^\d\])][^\])]*)[\])]", full)
        name, unit = (match[1], match[2].strip()) if match else _ending(full)
        if of_joint := re.fullmatch(r"(?:joint|axis|j)_?(\d)_([a-z]+)", name, re.I):
            name = f"{of_joint[2]}_{of_joint[1]}"
        vector = re.fullmatch(r"(.*\D)_(\d{1,6})|(.*\D)\[(\d{1,6})\]|(.*[^\W\d_])([1-9]?\d)|(.*\d)_(\d{1,6})", name)
        if vector:
            base, number = [part for part in vector.groups() if part is not None]
            groups.setdefault(base, {})[int(number)] = cell
        else:
            base = name
            singles[name] = cell
        units |= {base: unit} if unit else {}
    found: dict[str, int | Sequence[int]] = {}
    for base, numbers in groups.items():
        order = sorted(numbers)
        if order == list(range(len(order))) or (len(order) > 1 and order == list(range(1, len(order) + 1))):
            found[base] = [numbers[number] for number in order]
        else:  # gaps: no vector
            singles |= {names[cell]: cell for cell in numbers.values()}
    found |= singles
    found.pop("", None)  # a column without a name is an index
    return _ours(dict(sorted(found.items(), key=lambda item: _first(item[1]))), units, len(names))


def _ending(name: str) -> tuple[str, str]:
    """A name and the unit that it ends with, where what stands before is a name that we know."""
    for ending, unit in _ENDINGS.items():
        if name.lower().endswith(f"_{ending}"):
            rest = name[: -len(ending) - 1]
            words = re.sub(r"\d", "", rest.lower()).strip("_").removeprefix("joint_")
            if words in {*_STAMPS, *_OURS, *_ALIASES, *UNITS, "q", "qd", "tau"}:
                return rest, unit
    return name, ""


def _ours(found: Mapping[str, int | Sequence[int]], units: Mapping[str, str], width: int) -> Arrangement:
    """The same columns under our names."""
    ours = our_names(list(found))
    where = {ours[name]: at for name, at in found.items() if name in ours}
    said = {ours[name]: _SPELT_UNITS.get(unit, (unit, 1.0)) for name, unit in units.items() if name in ours}
    factors = {name: factor for name, (_, factor) in said.items() if factor != 1.0}
    return Arrangement(width, where, {name: unit for name, (unit, _) in said.items()}, factors)


def our_names(names: Sequence[str]) -> dict[str, str]:
    """Names of others -> ours; of several stamps the best, the others are left out; one that nobody knows is kept."""
    stamps = [name for word in _STAMPS for name in names if (name if word == "t" else name.lower()) == word]
    ours = {name: _OURS.get(name.lower(), name) for name in names} | dict.fromkeys(stamps[:1], "time")
    taken = set(ours.values())
    for name in names:
        alias = _ALIASES.get(name.lower(), name)
        if ours[name] == name and alias not in taken:
            ours[name] = alias
            taken.add(alias)
    return {name: our for name, our in ours.items() if name not in stamps[1:]}


def _first(at: int | Sequence[int]) -> int:
    return at if isinstance(at, int) else at[0]
