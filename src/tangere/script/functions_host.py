"""Builtins about the world: time, messages, registers, signals, sockets."""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import Any

from tangere.script.builtin import builtin
from tangere.script.host import Host
from tangere.script.values import List, ScriptException, Text, Value, numbers, shown, text

Answer = Generator[None, None, Value]
SOCKET = Text("socket_0")  # UR's name of the socket where none is given
EMPTY, PAUSE = Text(""), Text("pause")
WAIT = 2.0  # [s] that reading waits where nothing is said
LONGEST_LINE = 1 << 16  # bytes that wait to be read; beyond it the oldest are lost
FIRST = {"standard": 0, "configurable": 8, "tool": 16}  # among the signals
WIDTH = {"standard": 8, "configurable": 8, "tool": 2}

# Builtins of a kind, that differ in what they read or write, are made from one function each.


def _read(name: str, of: str) -> Any:
    """Read a register: one from outside, or one that the program itself has written."""

    def read(self: HostFunctions, address: Value) -> Value:
        entries = getattr(self._host.registers, of)
        return entries[self._entry(entries, address, name)]

    return builtin(name)(read)


def _write(name: str, of: str, kind: type[float] | type[bool]) -> Any:
    """Write a register, to outside."""

    def write(self: HostFunctions, address: Value, value: Value) -> None:
        entries = getattr(self._host.registers, of)
        entries[self._entry(entries, address, name)] = kind(value)

    return builtin(name)(write)


def _signal(kind: str, n: Value, what: str) -> int:
    if not 0 <= n < WIDTH[kind]:
        raise ScriptException(f"{what}: signals 0 to {WIDTH[kind] - 1}, got {shown(n)}")
    return FIRST[kind] + int(n)


def _get(kind: str, side: str) -> Any:
    """An input, or an output as it was set."""
    name = f"get_{kind}_digital_{side}"
    return builtin(name)(lambda self, n: getattr(self._host.signals, f"digital_{side}")[_signal(kind, n, name)])


def _set(kind: str) -> Any:
    """Set an output."""
    name = f"set_{kind}_digital_out"

    def change(self: HostFunctions, n: Value, b: Value) -> None:
        self._host.signals.digital_out[_signal(kind, n, name)] = bool(b)

    return builtin(name)(change)


class HostFunctions:
    """Functions of one host."""

    def __init__(self, host: Host, frame: float) -> None:
        self._host, self._frame = host, frame
        self._waiting: dict[str, bytes] = {}

    # ------------------------------------------------------------------------------------------- time and messages

    @builtin(blocking=True)
    def sleep(self, t: Value) -> Answer:
        """Wait for a time [s], one frame at least."""
        for _ in range(max(1, round(t / self._frame))):
            yield

    @builtin()
    def textmsg(self, s1: Value, s2: Value = EMPTY) -> None:
        """Say something."""
        self._host.message("text", shown(s1) + shown(s2))

    @builtin(blocking=True)
    def popup(
        self, s: Value, title: Value = EMPTY, warning: Value = False, error: Value = False,
        blocking: Value = False,
    ) -> Answer:  # fmt: skip
        """Show something; blocking: until somebody closes it, a frame at least."""
        self._host.message("popup", shown(s))
        while blocking:
            yield
            blocking = self._host.popup_open()

    # ---------------------------------------------------------------------------------------------------- registers

    def _entry(self, of: list[Value], address: Value, what: str) -> int:
        if type(address) is int and 0 <= address < len(of):  # what nearly all of them are
            return address
        if isinstance(address, bool) or not isinstance(address, int | float) or address != int(address):
            raise ScriptException(f"{what}: the address is a whole number, got {shown(address)}")
        if not 0 <= address < len(of):
            raise ScriptException(f"{what}: addresses 0 to {len(of) - 1}, got {shown(address)}")
        return int(address)

    read_input_integer_register = _read("read_input_integer_register", "in_int")
    read_input_float_register = _read("read_input_float_register", "in_float")
    read_input_boolean_register = _read("read_input_boolean_register", "in_bit")
    read_output_integer_register = _read("read_output_integer_register", "out_int")
    read_output_float_register = _read("read_output_float_register", "out_float")
    read_output_boolean_register = _read("read_output_boolean_register", "out_bit")
    write_output_float_register = _write("write_output_float_register", "out_float", float)
    write_output_boolean_register = _write("write_output_boolean_register", "out_bit", bool)

    @builtin()
    def write_output_integer_register(self, address: Value, value: Value) -> None:
        """To outside; 32 bits."""
        number = int(value)
        if not -(2**31) <= number < 2**31:
            raise ScriptException(f"write_output_integer_register: 32 bits, got {shown(value)}")
        of = self._host.registers.out_int
        of[self._entry(of, address, "write_output_integer_register")] = number

    @builtin(since="5.9")
    def get_rtde_value(self, variable_name: Value) -> Value:
        """A field of the data exchange by name."""
        found = self._host.value(str(variable_name))
        return numbers(found) if isinstance(found, list) else found

    @builtin()
    def rtde_set_watchdog(self, variable_name: Value, min_frequency: Value, action: Value = PAUSE) -> None:
        """Watch that an input is written so often [Hz]; action: pause, stop or ignore."""
        if action not in ("pause", "stop", "ignore"):
            raise ScriptException(f"rtde_set_watchdog: pause, stop or ignore, got {shown(action)}")
        self._host.watchdog(str(variable_name), float(min_frequency), str(action))

    # ------------------------------------------------------------------------------------------------------ signals

    get_standard_digital_in = _get("standard", "in")
    get_configurable_digital_in = _get("configurable", "in")
    get_tool_digital_in = _get("tool", "in")
    get_standard_digital_out = _get("standard", "out")
    get_configurable_digital_out = _get("configurable", "out")
    get_tool_digital_out = _get("tool", "out")
    set_standard_digital_out = _set("standard")
    set_configurable_digital_out = _set("configurable")
    set_tool_digital_out = _set("tool")

    @staticmethod
    def _numbered(n: Value, what: str, count: int) -> int:
        if not 0 <= n < count:
            raise ScriptException(f"{what}: signals 0 to {count - 1}, got {shown(n)}")
        return int(n)

    @builtin()
    def get_digital_in(self, n: Value) -> bool:
        """Any input: 0-7 standard, 8, 9 at the tool (older form)."""
        n = self._numbered(n, "get_digital_in", 10)
        return self._host.signals.digital_in[n if n < 8 else n + 8]

    @builtin()
    def get_digital_out(self, n: Value) -> bool:
        """Any output: 0-7 standard, 8, 9 at the tool (older form)."""
        n = self._numbered(n, "get_digital_out", 10)
        return self._host.signals.digital_out[n if n < 8 else n + 8]

    @builtin()
    def set_digital_out(self, n: Value, b: Value) -> None:
        """Any output: 0-7 standard, 8, 9 at the tool (older form)."""
        n = self._numbered(n, "set_digital_out", 10)
        self._host.signals.digital_out[n if n < 8 else n + 8] = bool(b)

    @builtin("get_standard_analog_in", "get_analog_in")
    def get_standard_analog_in(self, n: Value) -> float:
        """[V] or [A]; 2, 3 at the tool in the older form."""
        return self._host.signals.analog_in[self._numbered(n, "get_standard_analog_in", 4)]

    @builtin()
    def get_tool_analog_in(self, n: Value) -> float:
        """[V] or [A]."""
        return self._host.signals.analog_in[2 + self._numbered(n, "get_tool_analog_in", 2)]

    @builtin("get_standard_analog_out", "get_analog_out")
    def get_standard_analog_out(self, n: Value) -> float:
        """Share 0 ... 1."""
        return self._host.signals.analog_out[self._numbered(n, "get_standard_analog_out", 2)]

    @builtin("set_standard_analog_out", "set_analog_out")
    def set_standard_analog_out(self, n: Value, f: Value) -> None:
        """Share 0 ... 1."""
        n = self._numbered(n, "set_standard_analog_out", 2)
        self._host.signals.analog_out[n] = min(1.0, max(0.0, float(f)))

    @builtin()
    def set_tool_voltage(self, voltage: Value) -> None:
        """0, 12 or 24 V."""
        if voltage not in (0, 12, 24):
            raise ScriptException(f"set_tool_voltage: 0, 12 or 24 V, got {shown(voltage)}")
        self._host.signals.tool_voltage = int(voltage)

    @builtin(since="3.14.1 5.9.1")
    def ft_rtde_input_enable(
        self, enable: Value, sensor_mass: Value = 0.0, sensor_measuring_offset: Value = None, sensor_cog: Value = None
    ) -> None:
        """An external force sensor; not modelled, the arm's own goes on."""
        self._host.message("warning", "external force sensors are not modelled: the arm's own is used")

    @builtin()
    def enable_external_ft_sensor(
        self, enable: Value, sensor_mass: Value = 0.0, sensor_measuring_offset: Value = None, sensor_cog: Value = None
    ) -> None:
        """The older name."""
        self.ft_rtde_input_enable(enable)

    # ------------------------------------------------------------------------------------------------------ sockets

    @builtin(blocking=True)
    def socket_open(self, address: Value, port: Value, socket_name: Value = SOCKET) -> Answer:
        """Connect; whether it worked."""
        yield
        self._waiting.pop(str(socket_name), None)
        return self._host.socket_open(str(socket_name), str(address), int(port))

    @builtin()
    def socket_close(self, socket_name: Value = SOCKET) -> None:
        """Close."""
        self._waiting.pop(str(socket_name), None)
        self._host.socket_close(str(socket_name))

    def _send(self, data: bytes, name: Value) -> bool:
        return self._host.socket_send(str(name), data)

    @builtin()
    def socket_send_string(self, str: Value, socket_name: Value = SOCKET) -> bool:
        """A text as it is."""
        return self._send(shown(str).encode(), socket_name)

    @builtin()
    def socket_send_line(self, str: Value, socket_name: Value = SOCKET) -> bool:
        """A text and the end of its line."""
        return self._send(shown(str).encode() + b"\n", socket_name)

    @builtin()
    def socket_send_int(self, value: Value, socket_name: Value = SOCKET) -> bool:
        """Four bytes, the highest first."""
        number = int(value)
        if not -(2**31) <= number < 2**31:
            raise ScriptException(f"socket_send_int: 32 bits, got {shown(value)}")
        return self._send(struct.pack(">i", number), socket_name)

    @builtin()
    def socket_send_byte(self, value: Value, socket_name: Value = SOCKET) -> bool:
        """One byte."""
        return self._send(bytes([int(value) & 0xFF]), socket_name)

    def _received(self, name: str) -> tuple[bytes, bool]:
        """What waits to be read, and whether more can come."""
        new = self._host.socket_receive(name)
        waiting = self._waiting.get(name, b"") + (new or b"")
        self._waiting[name] = waiting[-LONGEST_LINE:]
        return self._waiting[name], new is not None

    def _read(
        self, name: Value, timeout: Value, size: int = 0, until: bytes = b""
    ) -> Generator[None, None, bytes | None]:
        """So many bytes, or all up to an end that is left out; None: not in time, or closed. timeout 0: for ever."""
        key, left = str(name), round(timeout / self._frame) if timeout > 0 else -1
        while True:
            waiting, open_ = self._received(key)
            found = waiting.find(until) if until else (size if len(waiting) >= size else -1)
            if found >= 0:
                self._waiting[key] = waiting[found + len(until) :]
                return waiting[:found]
            if not open_ or left == 0:
                yield
                return None
            left -= 1
            yield

    @builtin(blocking=True)
    def socket_read_binary_integer(self, number: Value, socket_name: Value = SOCKET, timeout: Value = WAIT) -> Answer:
        """Whole numbers of four bytes, their count first; [0]: not in time."""
        count = int(number)
        if not 1 <= count <= 30:
            raise ScriptException(f"socket_read_binary_integer: 1 to 30 numbers, got {shown(number)}")
        data = yield from self._read(socket_name, timeout, size=4 * count)
        return List((0,)) if data is None else List((count, *struct.unpack(f">{count}i", data)))

    @builtin(blocking=True)
    def socket_read_byte_list(self, number: Value, socket_name: Value = SOCKET, timeout: Value = WAIT) -> Answer:
        """Bytes, their count first; [0]: not in time."""
        count = int(number)
        if not 1 <= count <= 30:
            raise ScriptException(f"socket_read_byte_list: 1 to 30 bytes, got {shown(number)}")
        data = yield from self._read(socket_name, timeout, size=count)
        return List((0,)) if data is None else List((count, *data))

    @builtin(blocking=True)
    def socket_read_ascii_float(self, number: Value, socket_name: Value = SOCKET, timeout: Value = WAIT) -> Answer:
        """Numbers of a text (1.5, 2), their count first; [0]: not in time, or no numbers."""
        data = yield from self._read(socket_name, timeout, until=b")")
        try:
            found = [float(word) for word in (data or b"").decode().strip().lstrip("(").split(",")]
        except (ValueError, UnicodeDecodeError):
            return List((0,))
        return List((len(found), *found)) if len(found) == int(number) else List((0,))

    @builtin(blocking=True)
    def socket_read_line(self, socket_name: Value = SOCKET, timeout: Value = WAIT) -> Answer:
        """A line without its end; an empty text: not in time."""
        data = yield from self._read(socket_name, timeout, until=b"\n")
        return text((data or b"").decode(errors="replace").rstrip("\r"))

    @builtin(blocking=True)
    def socket_read_string(
        self, socket_name: Value = SOCKET, prefix: Value = EMPTY, suffix: Value = EMPTY,
        interpret_escape: Value = False, timeout: Value = WAIT,
    ) -> Answer:  # fmt: skip
        """What has come, or what stands between a prefix and a suffix; an empty text: nothing in time."""
        if str(suffix):
            data = yield from self._read(socket_name, timeout, until=str(suffix).encode())
            found = (data or b"").decode(errors="replace")
            return text(found.rpartition(str(prefix))[2] if str(prefix) else found)
        data = yield from self._read(socket_name, timeout, size=1)
        if data is None:
            return Text("")
        rest, self._waiting[str(socket_name)] = self._waiting.get(str(socket_name), b""), b""
        return text((data + rest).decode(errors="replace"))
