"""What a script machine needs of the world around it: registers, signals, sockets, a slider, and somebody to talk to.

The arm is not in it: `Machine.frame` is given a State and answers with a Setpoint. A virtual controller, a simulated
run and a test are hosts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from tangere.script.values import ScriptException, Value
from tangere.types import Array

FRAME = 2e-3  # [s] of an e-Series controller: URScript's own unit of time
CB3_FRAME = 8e-3  # [s] of a CB3 controller (PolyScope 3)

# text: textmsg; popup; warning: of the machine itself, about the program
Kind = Literal["text", "popup", "warning"]


@dataclass(frozen=True, slots=True)
class Setpoint:
    """What the arm shall do in the coming frame: follow joint positions, or apply joint torques.

    q, qd, qdd (6,): where it shall be at the end of the frame [rad], in torque mode where it is. tau (6,) [Nm]: the
    torque beside gravity, which the host adds; viscous, coulomb (6,): share 0 ... 1 of each joint's friction that the
    drives make up for. None: position mode.
    """

    q: Array
    qd: Array
    qdd: Array
    tau: Array | None = None
    viscous: Array | None = None
    coulomb: Array | None = None


@dataclass
class Registers:
    """The registers that programs, field buses and clients share: from outside (in) and to outside (out)."""

    in_int: list[int] = field(default_factory=lambda: [0] * 48)
    in_float: list[float] = field(default_factory=lambda: [0.0] * 48)
    in_bit: list[bool] = field(default_factory=lambda: [False] * 128)
    out_int: list[int] = field(default_factory=lambda: [0] * 48)
    out_float: list[float] = field(default_factory=lambda: [0.0] * 48)
    out_bit: list[bool] = field(default_factory=lambda: [False] * 128)


@dataclass
class Signals:
    """Digital and analogue signals: 0-7 standard, then 8-15 configurable, then 16 and 17 at the tool."""

    digital_in: list[bool] = field(default_factory=lambda: [False] * 18)
    digital_out: list[bool] = field(default_factory=lambda: [False] * 18)
    analog_in: list[float] = field(default_factory=lambda: [0.0] * 4)  # [V] or [A]: 0, 1 standard, 2, 3 tool
    analog_out: list[float] = field(default_factory=lambda: [0.0] * 2)  # share 0 ... 1
    tool_voltage: int = 0  # V


class Host(Protocol):
    """The world of a program."""

    registers: Registers
    signals: Signals
    speed: float  # 0 ... 1: how fast moves go, by the slider and by whatever else scales it

    def message(self, kind: Kind, text: str) -> None:
        """Something that the program says."""

    def popup_open(self) -> bool:
        """Whether the popup of the newest message is still shown."""

    def socket_open(self, name: str, address: str, port: int) -> bool:
        """Connect; must not wait long. False: nobody there."""

    def socket_send(self, name: str, data: bytes) -> bool:
        """Send; False: the socket is not open."""

    def socket_receive(self, name: str) -> bytes | None:
        """What has come since; None: the socket is not open, or the other side has closed it and all was read."""

    def socket_close(self, name: str) -> None:
        """Close; nothing happens where it is not open."""

    def value(self, name: str) -> Value:
        """The field of that name of the data exchange; raises ScriptException where there is none."""

    def watchdog(self, name: str, hertz: float, action: str) -> None:
        """Watch that an input is written; action: pause, stop or ignore."""


class QuietHost:
    """A host without a network: nothing is there to connect to, and what is said is kept in `said`."""

    def __init__(self) -> None:
        self.registers, self.signals, self.speed = Registers(), Signals(), 1.0
        self.said: list[tuple[Kind, str]] = []

    def message(self, kind: Kind, text: str) -> None:
        """Keep it."""
        self.said.append((kind, text))

    def popup_open(self) -> bool:
        """Nobody is there to read it: closed at once."""
        return False

    def socket_open(self, name: str, address: str, port: int) -> bool:
        """Never."""
        self.message("warning", f"socket_open({address!r}, {port}): there is no network here, the answer is False")
        return False

    def socket_send(self, name: str, data: bytes) -> bool:
        """Never."""
        return False

    def socket_receive(self, name: str) -> bytes | None:
        """Never."""
        return None

    def socket_close(self, name: str) -> None:
        """Nothing is open."""

    def value(self, name: str) -> Value:
        """There is no data exchange."""
        raise ScriptException(f"get_rtde_value: there is no {name!r} here")

    def watchdog(self, name: str, hertz: float, action: str) -> None:
        """Nobody writes inputs."""


STILL = np.zeros(6)
STILL.flags.writeable = False
