"""The data exchange of a virtual controller: the value of every output field, and what every input field does."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.rtde import fields
from tangere.rtde.wire import TYPES, Kind, Recipe, Value
from tangere.script.poses import rotation_vector
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.apps.virtual_ur.controller import Controller

# joint modes, as RTDE numbers them
RUNNING, IDLE, OFF = 253, 255, 239
TEMPERATURE = 30.0  # [C] of motors that nobody heats


class Exchange:
    """Output and input fields of one controller, as functions that are made once and called in every frame.

    What takes time (poses, torques of the model) is computed once a frame, however many clients ask for it.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._by: dict[str, Callable[[], Value]] = {}
        registers, signals = controller.registers, controller.signals
        self._tables: dict[tuple[str, str], list[Any]] = {
            ("input", "int"): registers.in_int, ("input", "double"): registers.in_float,
            ("input", "bit"): registers.in_bit, ("output", "int"): registers.out_int,
            ("output", "double"): registers.out_float, ("output", "bit"): registers.out_bit,
        }  # fmt: skip
        self._digital, self._analog = signals.digital_out, signals.analog_out

    def shown(self, name: str) -> Callable[[], Value]:
        """A function that gives the field's value at the end of a frame; zeros for what a simulation does not have."""
        if name not in self._by:
            self._by[name] = self._made(name)
        return self._by[name]

    def _made(self, name: str) -> Callable[[], Value]:
        held = fields.register(name)
        if held is not None:
            way, kind, number = held
            table = self._tables[way, kind]
            return lambda: table[number]
        c = self._controller
        if name in _ARM:
            return _once(c, _ARM[name])
        if name in _NOW:
            now = _NOW[name]
            return lambda: now(c)
        code = TYPES[fields.output_type(name, (99,)) or "DOUBLE"]
        count = int(code[0]) if code[0].isdigit() else 0
        nothing: Value = False if code == "?" else 0.0 if code == "d" else 0
        empty: Value = ((0.0 if code.endswith("d") else 0),) * count if count else nothing
        return lambda: empty

    def packer(self, recipe: Recipe, protocol: int) -> Callable[[], bytes]:
        """A function that gives the data package of a frame."""
        kinds = [TYPES[kind] for kind in recipe.types]
        layout = struct.Struct((">HBB" if protocol >= 2 else ">HB") + "".join(kinds))
        head = (layout.size, int(Kind.DATA), recipe.number)[: 3 if protocol >= 2 else 2]
        parts = self._parts(recipe.names, [len(kind) > 1 for kind in kinds])

        def packed() -> bytes:
            flat: list[Any] = [*head]
            for get, many in parts:
                if many:
                    flat += get()
                else:
                    flat.append(get())
            return layout.pack(*flat)

        return packed

    def _parts(self, names: Sequence[str], many: Sequence[bool]) -> list[tuple[Callable[[], Any], bool]]:
        """Functions for the fields in their order; registers that follow each other are read at once."""
        parts: list[tuple[Callable[[], Any], bool]] = []
        run: tuple[list[Any], int, int] | None = None  # table, first, behind the last
        for name, vector in zip(names, many, strict=True):
            held = fields.register(name)
            table = None if held is None else self._tables[held[0], held[1]]
            if held is None or table is None:
                run = None
                parts.append((self.shown(name), vector))
            elif run is not None and run[0] is table and run[2] == held[2]:
                run = (table, run[1], held[2] + 1)
                parts[-1] = (partial(table.__getitem__, slice(run[1], run[2])), True)
            else:
                run = (table, held[2], held[2] + 1)
                parts.append((partial(table.__getitem__, slice(run[1], run[2])), True))
        return parts

    def taker(self, names: Sequence[str]) -> Callable[[Sequence[Any]], None]:
        """A function that takes a package of input values, in the order of the names."""
        places = []
        others: list[tuple[str, int]] = []
        for k, name in enumerate(names):
            held = fields.register(name)
            if held is None:
                others.append((name, k))
            else:
                places.append((self._tables["input", held[1]], held[2], k))
        written = frozenset(names)
        c = self._controller

        def take(values: Sequence[Any]) -> None:
            for table, number, k in places:
                table[number] = values[k]
            c.written |= written
            if others:
                self._act({name: values[k] for name, k in others})

        return take

    def _act(self, values: dict[str, Any]) -> None:
        """Inputs with a mask: they act once for each package."""
        c = self._controller
        if values.get("speed_slider_mask"):
            wish = float(values.get("speed_slider_fraction", c.slider))
            c.slider = min(max(wish, 0.0), 1.0) if wish == wish else c.slider
        for kind, first, count in (("standard", 0, 8), ("configurable", 8, 8), ("tool", 16, 2)):
            mask, bits = values.get(f"{kind}_digital_output_mask", 0), values.get(f"{kind}_digital_output", 0)
            for k in range(count):
                if int(mask) >> k & 1:
                    self._digital[first + k] = bool(int(bits) >> k & 1)
        mask = int(values.get("standard_analog_output_mask", 0))
        for k in range(2):
            if mask >> k & 1 and f"standard_analog_output_{k}" in values:
                self._analog[k] = float(values[f"standard_analog_output_{k}"])
        for name in ("input_bit_registers0_to_31", "input_bit_registers32_to_63"):
            if name in values:
                first = 0 if name.endswith("31") else 32
                table = self._tables["input", "bit"]
                table[first : first + 32] = [bool(int(values[name]) >> k & 1) for k in range(32)]


def _once(c: Controller, compute: Callable[[Controller], Value]) -> Callable[[], Value]:
    """The value at the end of a frame, computed when it is first asked for."""
    step: int = -1
    value: Value = 0

    def get() -> Value:
        nonlocal step, value
        if step != c.step:
            step, value = c.step, compute(c)
        return value

    return get


def _six(values: Array) -> tuple[float, ...]:
    return tuple(values.tolist())


def _pose(c: Controller, q: Array) -> tuple[float, ...]:
    """The tool as x y z rx ry rz."""
    R, p = c.arm.frame_at(q)
    return (*p, *rotation_vector(R))


def _tcp_speed(c: Controller, q: Array, qd: Array) -> tuple[float, ...]:
    return _six(c.arm.jacobian(q) @ qd)


def _moment(c: Controller) -> Array:
    """The model's torque for the target, gravity included."""
    if c.setpoint.tau is not None:
        return c.setpoint.tau + c.inside.belief.gravity_torque(c.inside.state.q)
    return c.inside.belief.inverse_dynamics(c.setpoint.q, c.setpoint.qd, c.setpoint.qdd)


def _current(c: Controller, tau: Array) -> tuple[float, ...]:
    return _six(tau / c.inside.belief.drives.gain)


def _safety_bits(c: Controller) -> int:
    mode = int(c.safety_mode)
    stopped = mode not in (1, 2)
    return 1 << (mode - 1) | (1 << 10 if stopped else 0)


def _robot_bits(c: Controller) -> int:
    return int(c.robot_mode >= 4) | (2 if c.playing else 0) | 8


def _bits(values: Sequence[bool]) -> int:
    return sum(1 << k for k, value in enumerate(values) if value)


def _joint_mode(c: Controller) -> tuple[int, ...]:
    return ((RUNNING if c.robot_mode == 7 else IDLE if c.robot_mode == 5 else OFF),) * 6


def _as_torque(c: Controller) -> tuple[float, ...]:
    """Current as torque, without gravity."""
    state = c.inside.state
    return _six(state.tau - c.inside.belief.gravity_torque(state.q))


def _force(c: Controller) -> tuple[float, ...]:
    return tuple(c.arm.wrench())


def _raw_force(c: Controller) -> tuple[float, ...]:
    wrench = c.inside.state.wrench
    return (0.0,) * 6 if wrench is None else _six(wrench)


def _deviation(c: Controller) -> float:
    return float(np.abs(c.setpoint.q - c.inside.state.q).max() / 0.2) if c.setpoint.tau is None else 0.0


# What follows from the arm's state and target: the same for everybody until the next frame.
_ARM: dict[str, Callable[[Controller], Value]] = {
    "target_q": lambda c: _six(c.setpoint.q),
    "target_qd": lambda c: _six(c.setpoint.qd),
    "target_qdd": lambda c: _six(c.setpoint.qdd),
    "target_moment": lambda c: _six(_moment(c)),
    "target_current": lambda c: _current(c, _moment(c)),
    "actual_q": lambda c: _six(c.inside.state.q),
    "actual_qd": lambda c: _six(c.inside.state.qd),
    "actual_current": lambda c: _current(c, c.inside.state.tau),
    "actual_current_as_torque": _as_torque,
    "joint_control_output": lambda c: _current(c, c.inside.state.tau),
    "actual_TCP_pose": lambda c: _pose(c, c.inside.state.q),
    "target_TCP_pose": lambda c: _pose(c, c.setpoint.q),
    "actual_TCP_speed": lambda c: _tcp_speed(c, c.inside.state.q, c.inside.state.qd),
    "target_TCP_speed": lambda c: _tcp_speed(c, c.setpoint.q, c.setpoint.qd),
    "actual_TCP_force": _force,
    "ft_raw_wrench": _raw_force,
    "wrench_calc_from_currents": _raw_force,
    "tcp_force_scalar": lambda c: float(np.linalg.norm(c.arm.wrench()[:3])),
    "actual_tool_accelerometer": lambda c: tuple(
        float(x) for x in np.array(c.arm.frame_at(c.inside.state.q)[0]).T @ -c.inside.belief.model.gravity
    ),
    "actual_robot_current": lambda c: float(np.abs(c.inside.state.tau / c.inside.belief.drives.gain).sum()),
    "joint_position_deviation_ratio": _deviation,
}
# What clients and programs may change at any time.
_NOW: dict[str, Callable[[Controller], Value]] = {
    "timestamp": lambda c: c.time,
    "control_step": lambda c: c.step,
    "tcp_offset": lambda c: (*c.arm.tcp[1], *rotation_vector(c.arm.tcp[0])),
    "payload": lambda c: float(c.arm.payload.mass),
    "payload_cog": lambda c: tuple(float(x) for x in c.arm.payload.com),
    "payload_inertia": lambda c: tuple(
        float(c.arm.payload.inertia[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    ),
    "target_gravity": lambda c: tuple(float(-x) for x in c.inside.belief.model.gravity),
    "speed_scaling": lambda c: c.speed,
    "target_speed_fraction": lambda c: c.slider,
    "robot_mode": lambda c: int(c.robot_mode),
    "safety_mode": lambda c: int(c.safety_mode),
    "safety_status": lambda c: int(c.safety_mode),
    "runtime_state": lambda c: int(c.runtime),
    "robot_status_bits": _robot_bits,
    "safety_status_bits": _safety_bits,
    "joint_mode": _joint_mode,
    "joint_temperatures": lambda c: (TEMPERATURE,) * 6,
    "actual_joint_voltage": lambda c: (48.0,) * 6,
    "actual_main_voltage": lambda c: 48.0,
    "actual_robot_voltage": lambda c: 48.0,
    "script_control_line": lambda c: c.line,
    "actual_execution_time": lambda c: 0.1,
    "actual_digital_input_bits": lambda c: _bits(c.signals.digital_in),
    "actual_digital_output_bits": lambda c: _bits(c.signals.digital_out),
    "standard_analog_input0": lambda c: c.signals.analog_in[0],
    "standard_analog_input1": lambda c: c.signals.analog_in[1],
    "standard_analog_output0": lambda c: c.signals.analog_out[0],
    "standard_analog_output1": lambda c: c.signals.analog_out[1],
    "tool_analog_input0": lambda c: c.signals.analog_in[2],
    "tool_analog_input1": lambda c: c.signals.analog_in[3],
    "tool_output_voltage": lambda c: c.signals.tool_voltage,
    "output_bit_registers0_to_31": lambda c: _bits(c.registers.out_bit[:32]),
    "output_bit_registers32_to_63": lambda c: _bits(c.registers.out_bit[32:64]),
    "input_bit_registers0_to_31": lambda c: _bits(c.registers.in_bit[:32]),
    "input_bit_registers32_to_63": lambda c: _bits(c.registers.in_bit[32:64]),
}
