"""What a virtual controller shows: the value of every output field, from its state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.rtde import fields
from tangere.rtde.wire import TYPES, Value
from tangere.script.poses import rotation_vector
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.apps.virtual_ur.controller import Controller

# joint modes, as RTDE numbers them
RUNNING, IDLE, OFF = 253, 255, 239
TEMPERATURE = 30.0  # [C] of motors that nobody heats


def shown(controller: Controller, name: str) -> Callable[[], Value]:
    """A function that gives the field's value at the end of a frame."""
    held = fields.register(name)
    if held is not None:
        way, kind, number = held
        registers = controller.registers
        sides: dict[str, dict[str, list[Any]]] = {
            "input": {"int": registers.in_int, "double": registers.in_float, "bit": registers.in_bit},
            "output": {"int": registers.out_int, "double": registers.out_float, "bit": registers.out_bit},
        }
        table = sides[way][kind]
        return lambda: table[number]
    special = _TABLE.get(name)
    if special is not None:
        return lambda: special(controller)
    kind = fields.output_type(name, (99,)) or "DOUBLE"
    code = TYPES[kind]
    count = int(code[0]) if code[0].isdigit() else 0
    nothing: Value = False if code == "?" else 0.0 if code == "d" else 0
    empty: Value = ((0.0 if code.endswith("d") else 0),) * count if count else nothing
    return lambda: empty


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


_TABLE: dict[str, Callable[[Controller], Value]] = {
    "timestamp": lambda c: c.time,
    "control_step": lambda c: c.step,
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
    "tcp_offset": lambda c: (*c.arm.tcp[1], *rotation_vector(c.arm.tcp[0])),
    "payload": lambda c: float(c.arm.payload.mass),
    "payload_cog": lambda c: tuple(float(x) for x in c.arm.payload.com),
    "payload_inertia": lambda c: tuple(
        float(c.arm.payload.inertia[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    ),
    "target_gravity": lambda c: tuple(float(-x) for x in c.inside.belief.model.gravity),
    "actual_tool_accelerometer": lambda c: tuple(
        float(x) for x in np.array(c.arm.frame_at(c.inside.state.q)[0]).T @ -c.inside.belief.model.gravity
    ),
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
    "actual_robot_current": lambda c: float(np.abs(c.inside.state.tau / c.inside.belief.drives.gain).sum()),
    "joint_position_deviation_ratio": _deviation,
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
