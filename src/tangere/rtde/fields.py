"""Which fields a controller has, by the version of its software.

From UR's RTDE guide and from what public clients ask of which version. Where a field's first version is not documented,
the version of the first client that asks for it stands here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

Version = tuple[int, ...]

# type, first version ("-": every one; CB3/e-Series where they differ; "5.x" alone: not on CB3), names
_OUTPUTS = """
VECTOR6D      -            target_q target_qd target_qdd target_current target_moment actual_q actual_qd actual_current
VECTOR6D      -            joint_control_output actual_TCP_pose actual_TCP_speed actual_TCP_force target_TCP_pose
VECTOR6D      -            target_TCP_speed joint_temperatures actual_joint_voltage actual_current_window
VECTOR6D      3.12/5.5.1   tcp_offset
VECTOR6D      5.9          ft_raw_wrench
VECTOR6D      3.15/5.11    payload_inertia
VECTOR6D      5.20         wrench_calc_from_currents
VECTOR6D      5.23         actual_current_as_torque
VECTOR6D      5.25         actual_TCP_acceleration target_TCP_acceleration
VECTOR6D      5.26         target_base_acceleration target_base_wrench
VECTOR3D      -            actual_tool_accelerometer elbow_position elbow_velocity
VECTOR3D      3.11/5.6     payload_cog
VECTOR3D      5.23         target_gravity
DOUBLE        -            timestamp actual_execution_time target_execution_time speed_scaling target_speed_fraction
DOUBLE        -            actual_momentum actual_main_voltage actual_robot_voltage actual_robot_current
DOUBLE        -            standard_analog_input0 standard_analog_input1 standard_analog_output0
DOUBLE        -            standard_analog_output1 io_current tool_analog_input0 tool_analog_input1
DOUBLE        -            tool_output_current tool_temperature tcp_force_scalar
DOUBLE        -            euromap67_24V_voltage euromap67_24V_current
DOUBLE        3.11/5.6     payload
DOUBLE        5.15         joint_position_deviation_ratio collision_detection_ratio
DOUBLE        5.15         actual_robot_energy_consumed actual_robot_braking_energy_dissipated
DOUBLE        5.26         dexterity
INT32         -            robot_mode safety_mode safety_status tool_output_voltage encoder0_raw encoder1_raw
INT32         5.17         time_scale_source
VECTOR6INT32  -            joint_mode
UINT32        -            runtime_state robot_status_bits safety_status_bits analog_io_types tool_mode
UINT32        -            tool_analog_input_types script_control_line euromap67_input_bits euromap67_output_bits
UINT32        -            output_bit_registers0_to_31 output_bit_registers32_to_63
UINT32        -            input_bit_registers0_to_31 input_bit_registers32_to_63
UINT64        -            actual_digital_input_bits actual_digital_output_bits
UINT64        -            actual_configurable_digital_input_bits actual_configurable_digital_output_bits
UINT64        5.26/10.13   control_step
UINT8         -            tool_output_mode tool_digital_output0_mode tool_digital_output1_mode
"""
_INPUTS = """
UINT32    -           speed_slider_mask input_bit_registers0_to_31 input_bit_registers32_to_63
DOUBLE    -           speed_slider_fraction standard_analog_output_0 standard_analog_output_1
UINT8     -           standard_digital_output_mask standard_digital_output configurable_digital_output_mask
UINT8     -           configurable_digital_output tool_digital_output_mask tool_digital_output
UINT8     -           standard_analog_output_mask standard_analog_output_type
VECTOR6D  3.3         external_force_torque
"""
# registers: kind -> type, how many from 0 (bits: the single ones begin at 64)
_REGISTERS = {"int": ("INT32", 0, 48), "double": ("DOUBLE", 0, 48), "bit": ("BOOL", 64, 128)}


@dataclass(frozen=True, slots=True)
class Field:
    """Type of a field and the first versions that have it, one for each major version that is named."""

    type: str
    since: tuple[Version, ...]

    def within(self, version: Version) -> bool:
        """Whether a controller of that version has it. A later major version has what an earlier one has."""
        if not self.since:
            return True
        same = [first for first in self.since if first[0] == version[0]]
        if same:
            return tuple(version) >= same[0]
        return version[0] > min(first[0] for first in self.since)


@cache
def _table(text: str) -> dict[str, Field]:
    out: dict[str, Field] = {}
    for line in text.strip().splitlines():
        kind, since, *names = line.split()
        first = () if since == "-" else tuple(_numbers(part) for part in since.split("/"))
        out.update(dict.fromkeys(names, Field(kind, first)))
    return out


def _numbers(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))


def register(name: str) -> tuple[str, str, int] | None:
    """("input" or "output", "int", "double" or "bit", number) of a register's name; None: it is none."""
    way, _, rest = name.partition("_")
    kind, _, number = rest.partition("_register_")
    if way not in ("input", "output") or kind not in _REGISTERS or not (number.isascii() and number.isdigit()):
        return None
    _, low, high = _REGISTERS[kind]
    return (way, kind, int(number)) if low <= int(number) < high else None


def output_type(name: str, version: Version) -> str | None:
    """Type of an output field on a controller of that version; None: it has no such field."""
    held = register(name)
    if held is not None:
        return _REGISTERS[held[1]][0]
    field = _table(_OUTPUTS).get(name)
    return field.type if field is not None and field.within(version) else None


def input_type(name: str, version: Version) -> str | None:
    """Type of an input field on a controller of that version; None: it has no such field."""
    held = register(name)
    if held is not None:
        return _REGISTERS[held[1]][0] if held[0] == "input" else None
    field = _table(_INPUTS).get(name)
    return field.type if field is not None and field.within(version) else None


def outputs(version: Version) -> tuple[str, ...]:
    """Every output field of that version, registers left out."""
    return tuple(name for name, field in _table(_OUTPUTS).items() if field.within(version))


def inputs(version: Version) -> tuple[str, ...]:
    """Every input field of that version, registers left out."""
    return tuple(name for name, field in _table(_INPUTS).items() if field.within(version))
