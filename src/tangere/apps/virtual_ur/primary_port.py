"""Primary, secondary and realtime interfaces of a virtual controller: state messages out, programs in."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.rtde.primary import Configuration, Kind, Note, Part, message, pack_configuration, pack_version

if TYPE_CHECKING:
    from tangere.apps.virtual_ur.controller import Controller

EVERY = 50  # frames between two state messages: 10 per second
TEXT_BYTES = 1 << 22  # [bytes] of one program: more is no program
_OPENS = re.compile(rb"^\s*(def|sec|thread)\b")
_WORDS = re.compile(r'"[^"\n]*"|#[^\n]*|[A-Za-z_]\w*')


class Programs:
    """Cuts the text that comes on a port into programs.

    From `def`, `sec` or `thread` to its `end` is one program; any other line is a program of its own.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[str] = []
        self._depth = self._size = 0  # of what is open, and of all its lines [bytes]

    def feed(self, data: bytes) -> list[str]:
        """Programs that are whole by now."""
        self._rest += data
        found: list[str] = []
        *lines, self._rest = self._rest.split(b"\n")
        if len(self._rest) > TEXT_BYTES:
            self._rest = b""
        for raw in lines:
            line = raw.decode("utf-8", "replace").rstrip("\r")
            if not self._lines and not _OPENS.match(raw):
                if line.strip():
                    found.append(line + "\n")
                continue
            self._lines.append(line)
            self._size += len(raw) + 1
            for word in _WORDS.findall(line):
                if word in ("def", "sec", "thread", "if", "while"):
                    self._depth += 1
                elif word == "end":
                    self._depth -= 1
            if self._depth <= 0 or self._size > TEXT_BYTES:
                found.append("\n".join(self._lines) + "\n")
                self._lines, self._depth, self._size = [], 0, 0
        return found


def introduction(c: Controller) -> bytes:
    """What a client is told first: version, then a whole state with calibration and configuration."""
    version = pack_version(_micro(c), "URControl", c.version, "01-01-2026, 00:00:00")
    return version + state(c, whole=True)


def state(c: Controller, *, whole: bool = False) -> bytes:
    """A state message; whole: with what does not change, too."""
    parts = [_mode(c), _joints(c), _tool(c), _board(c), _cartesian(c)]
    if whole:
        parts += [c.inside.calibration.pack(), _configuration(c)]
    parts += [message(Part.FORCE, struct.pack(">7d", *c.arm.wrench(), 0.0)), message(Part.ADDITIONAL, bytes(3))]
    return message(Kind.STATE, b"".join(parts))


def note(c: Controller, kind: str, text: str, line: int) -> bytes:
    """What a program or the controller says, as a robot message; of a stop the mode, and why as text (modelled)."""
    said = text.encode()[:2000]
    if kind == "exception":
        return _robot(c, Note.EXCEPTION, struct.pack(">ii", line, 0) + said)
    mode = struct.pack(">iiBII", 0, 0, int(c.safety_mode), 0, 0)
    before = _robot(c, Note.SAFETY, mode) if kind == "safety" else b""
    return before + _robot(c, Note.TEXT, said)


# Port 30003: fields in the documented order; a number: so many doubles that a simulation does not have.
_REALTIME: tuple[str | int, ...] = (
    "timestamp", "target_q", "target_qd", "target_qdd", "target_current", "target_moment", "actual_q", "actual_qd",
    "actual_current", "joint_control_output", "actual_TCP_pose", "actual_TCP_speed", "actual_TCP_force",
    "target_TCP_pose", "target_TCP_speed", "actual_digital_input_bits", "joint_temperatures", 2, "robot_mode",
    "joint_mode", "safety_mode", 6, "actual_tool_accelerometer", 6, "speed_scaling", 3, "actual_main_voltage",
    "actual_robot_voltage", "actual_robot_current", "actual_joint_voltage", "actual_digital_output_bits",
    "runtime_state",
)  # fmt: skip
_REALTIME_LAYOUT = struct.Struct(">i152d")  # 1220 bytes (layout of later versions: modelled)


def realtime(c: Controller) -> Callable[[], bytes]:
    """A function that gives the package of port 30003 of a frame."""
    parts = [(0.0,) * part if isinstance(part, int) else c.exchange.shown(part) for part in _REALTIME]

    def packed() -> bytes:
        flat: list[Any] = [_REALTIME_LAYOUT.size]
        for part in parts:
            value = part if isinstance(part, tuple) else part()
            if isinstance(value, tuple):
                flat += value
            else:
                flat.append(value)
        return _REALTIME_LAYOUT.pack(*flat, *(0.0,) * (153 - len(flat)))

    return packed


def _micro(c: Controller) -> int:
    return round(c.time * 1e6)


def _robot(c: Controller, kind: Note, content: bytes) -> bytes:
    return message(Kind.ROBOT, struct.pack(">QbB", _micro(c), -1, kind) + content)


def _mode(c: Controller) -> bytes:
    flags = (True, True, c.robot_mode >= 4, False, c.safety_mode == 3, c.playing, c.paused)
    head = struct.pack(">Q7?BB3d", _micro(c), *flags, max(0, int(c.robot_mode)), 0, c.slider, c.speed, 1.0)
    return message(Part.MODE, head + (b"\0" if c.version[:2] >= (3, 5) else b""))


def _joints(c: Controller) -> bytes:
    s = c.inside.state
    current = s.tau / c.inside.belief.drives.gain
    mode = c.exchange.shown("joint_mode")()[0]  # type: ignore[index]
    rows = [
        struct.pack(">3d4fB", s.q[k], c.setpoint.q[k], s.qd[k], current[k], 48.0, 30.0, 30.0, mode) for k in range(6)
    ]
    return message(Part.JOINTS, b"".join(rows))


def _tool(c: Controller) -> bytes:
    analog = c.signals.analog_in
    return message(Part.TOOL, struct.pack(">BBddfBffB", 0, 0, analog[2], analog[3], 48.0, 0, 0.0, 30.0, 253))


def _board(c: Controller) -> bytes:
    signals = c.signals
    bits_in = sum(1 << k for k, on in enumerate(signals.digital_in) if on)
    bits_out = sum(1 << k for k, on in enumerate(signals.digital_out) if on)
    first = struct.pack(">IIBBddbbdd", bits_in, bits_out, 0, 0, *signals.analog_in[:2], 0, 0, *signals.analog_out)
    return message(
        Part.BOARD, first + struct.pack(">4fBBBIBBB", 30.0, 48.0, 1.0, 0.0, int(c.safety_mode), 0, 0, 0, 0, 0, 0)
    )


def _cartesian(c: Controller) -> bytes:
    pose, offset = (c.exchange.shown(name)() for name in ("actual_TCP_pose", "tcp_offset"))
    return message(Part.CARTESIAN, struct.pack(">12d", *pose, *offset))  # type: ignore[misc]


def _configuration(c: Controller) -> bytes:
    robot, dh = c.inside.belief, c.inside.nominal.dh
    assert dh is not None
    ranges = np.stack([robot.q_min, robot.q_max], axis=1).ravel()
    speeds = np.stack([robot.qd_max, np.full(6, 40.0)], axis=1).ravel()
    limits = [*ranges, *speeds, 1.05, 1.4, 0.25, 1.2, 0.0]
    rows = [tuple(float(x) for x in row) for row in (dh.a, dh.d, dh.alpha, np.zeros(6))]
    configuration = Configuration(c.robot_type, 1, rows[0], rows[1], rows[2], rows[3])
    return pack_configuration(configuration, limits, 2 if c.profile.e_series else 1)
