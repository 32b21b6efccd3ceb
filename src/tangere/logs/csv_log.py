"""Logs as csv with the names of UR's real-time data exchange (RTDE); recordings of a robot are read too."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from tangere.errors import InvalidValue
from tangere.logs.files import replacing
from tangere.logs.log import Log
from tangere.types import Array

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
_OURS = {name: ours for ours, name in RTDE_NAMES.items()}
# units of what a robot's recording holds beyond these, by RTDE's documentation
_RTDE_UNITS = {
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
}


def write_csv(log: Log, path: str | os.PathLike[str]) -> None:
    """Write the columns, comma-separated, every number in the shortest form that reads back to the same bits.

    Notes and units are not in it (MCAP has them). The file appears when it is complete.
    """
    names: list[str] = []
    for name, array in log.columns.items():
        label = RTDE_NAMES.get(name, name)
        names += [label] if array.ndim == 1 else [f"{label}_{i}" for i in range(array.shape[1])]
    table = np.concatenate([a if a.ndim == 2 else a[:, None] for a in log.columns.values()], axis=1)
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        file.write(",".join(names) + "\n")
        file.writelines(",".join(map(repr, row)) + "\n" for row in table.tolist())


def read_csv(path: str | os.PathLike[str]) -> Log:
    """Read a csv log: ours, bit by bit, or a recording of a robot, with commas, semicolons, tabs or blanks between.

    RTDE names become ours where we have one (actual_q -> q); others are kept, grouped by their numbers
    (actual_current_0 ... _5 -> actual_current (N, 6)). Columns that hold anything but numbers (dates) are left out.
    Stamps stay as they are: a robot's count from its power-on. A last line that is cut off is left out, and
    log.complete is False.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # any line ends; some recorders write a byte order mark
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidValue(f"cannot read {path}: {problem}") from problem
    header, _, body = text.partition("\n")
    delimiter = max(",;\t ", key=header.count)
    rows = csv.reader(body.splitlines(), delimiter=delimiter, skipinitialspace=delimiter == " ")
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter)) if name.strip()]
    if len(set(names)) != len(names):
        raise InvalidValue(f"{path}: a name stands twice in the header: {header!r}")
    cells = [row for row in rows if any(row)]
    complete = not cells or len(cells[-1]) >= len(names)
    cells = cells if complete else cells[:-1]
    columns = _numbers(names, cells, path)
    log = grouped_columns(columns)
    if "time" not in log:
        raise InvalidValue(f"{path}: no column 'timestamp' (or 'time') of numbers among {', '.join(names) or 'none'}")
    return Log(log, {name: _RTDE_UNITS[name] for name in log if name in _RTDE_UNITS}, complete=complete)


def _numbers(names: Sequence[str], cells: Sequence[Sequence[str]], path: Path) -> dict[str, Array]:
    """The columns that hold numbers only."""
    columns: dict[str, Array] = {}
    for i, row in enumerate(cells):
        if len(row) < len(names):
            raise InvalidValue(f"{path}, line {i + 2}: {len(row)} cells, the header names {len(names)}")
    for name, column in zip(names, zip(*cells, strict=False) if cells else [()] * len(names), strict=False):
        try:
            columns[name] = np.array([float(cell) for cell in column], dtype=np.float64)
        except ValueError:
            continue
    return columns


def grouped_columns(columns: Mapping[str, Array]) -> dict[str, Array]:
    """name_0, name_1, ... side by side as one column, under our name."""
    groups: dict[str, dict[int, Array]] = {}
    singles: dict[str, Array] = {}
    for name, values in columns.items():
        match = re.fullmatch(r"(.+)_(\d+)", name)
        if match:
            groups.setdefault(match[1], {})[int(match[2])] = values
        else:
            singles[name] = values
    taken = set(columns)  # "time" beside "timestamp", as recorders number their rows, must not win
    out: dict[str, Array] = {}
    for name in _in_order(columns, groups, singles):
        group = groups.get(name)
        ours = _OURS.get(name, name)
        if name == "time" and "timestamp" in taken:
            continue
        if group is None:
            out[ours] = singles[name]
        elif sorted(group) == list(range(len(group))):
            out[ours] = np.stack([group[i] for i in range(len(group))], axis=1)
        else:  # gaps: no vector
            out.update({f"{name}_{i}": values for i, values in group.items()})
    return out


def _in_order(columns: Iterable[str], groups: Mapping[str, object], singles: Mapping[str, object]) -> list[str]:
    names = (name if name in singles else name.rpartition("_")[0] for name in columns)
    return [name for name in dict.fromkeys(names) if name in groups or name in singles]
