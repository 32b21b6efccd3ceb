"""What a builtin function of URScript is: its name, parameters, whether it takes time, and the versions that have it.

A builtin is a method of one of the classes in `functions_*.py`, marked with `@builtin`. Its parameters have URScript's
names and order: calls are checked against them, by `tangere script check` without any arm.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from tangere.errors import InvalidValue

Version = tuple[int, int, int]
Function = TypeVar("Function", bound=Callable[..., Any])
NEWEST: Version = (5, 26, 0)  # PolyScope that is taken where none is named: the newest whose functions were read


def version(text: str) -> Version:
    """5.26, 5.26.0 or 5.26.0.1234 as three numbers."""
    parts = text.strip().split(".")
    if not 2 <= len(parts) <= 4 or not all(part.isdigit() for part in parts):
        raise InvalidValue(f"a PolyScope version such as 5.26.0 is needed, got {text!r}")
    major, minor, *rest = (int(part) for part in parts)
    if major not in (3, 5, 10):
        raise InvalidValue(f"PolyScope 3 (CB3), 5 (e-Series) or 10 (PolyScope X), got {text!r}")
    return major, minor, rest[0] if rest else 0


@cache
def _since(text: str) -> dict[int, Version]:
    return {found[0]: found for found in (version(word) for word in text.split())}


def exists(since: str, running: Version) -> bool:
    """Whether something is there in the running version. since: "3.15 5.10": the first of each line; "": always.

    A line that is not named has it where it is newer than all that are.
    """
    if not since:
        return True
    first = _since(since)
    major = running[0]
    return running >= first[major] if major in first else major > max(first)


@dataclass(frozen=True)
class Builtin:
    """One builtin."""

    name: str
    parameters: tuple[str, ...]
    required: int
    blocking: bool = False  # takes physical time: a frame at least
    since: str = ""
    later: Mapping[str, str] = field(default_factory=dict)  # parameter -> since when
    owner: str = ""  # name of its class, and of its method there
    method: str = ""

    @property
    def signature(self) -> str:
        """As a person writes it."""
        return f"{self.name}({', '.join(self.parameters)})"


def builtin(
    *names: str, since: str = "", blocking: bool = False, later: Mapping[str, str] | None = None
) -> Callable[[Function], Function]:
    """Mark a method as a builtin, under its own name or others. A blocking one is a generator: one yield, one frame."""

    def mark(method: Function) -> Function:
        method.__dict__["builtin"] = (names or (method.__name__,), since, blocking, later or {})
        return method

    return mark


def collected(*classes: type[Any]) -> dict[str, Builtin]:
    """Name -> builtin, of the marked methods of some classes."""
    found: dict[str, Builtin] = {}
    for one in classes:
        for attribute, method in vars(one).items():
            function = method.__func__ if isinstance(method, staticmethod) else method
            marked = getattr(function, "__dict__", {}).get("builtin")
            if marked is None:
                continue
            names, since, blocking, later = marked
            given = list(inspect.signature(function).parameters.values())
            given = given if isinstance(method, staticmethod) else given[1:]
            required = sum(parameter.default is parameter.empty for parameter in given)
            for name in names:
                parameters = tuple(parameter.name for parameter in given)
                found[name] = Builtin(name, parameters, required, blocking, since, later, one.__name__, attribute)
    return found


# Functions of URScript that this machine knows by name only: a program may name them, a call is a runtime exception.
NOT_MODELLED = frozenset(
    ("assert", "clear_interpreter", "collision_detection_settings", "conveyor_pulse_decode",
     "encoder_enable_pulse_decode", "encoder_enable_set_tick_count", "encoder_get_tick_count",
     "encoder_set_tick_count", "encoder_unwind_delta_tick_count", "end_interpreter_mode", "end_screw_driving",
     "get_controller_temp", "get_conveyor_tick_count", "get_euromap_input", "get_euromap_output",
     "get_inverse_kin_all", "get_joint_temp", "get_tcp_wrench_in_feature", "get_tool_current", "gripper_grip",
     "gripper_release", "interpreter_mode", "mc_add_circular", "mc_add_linear", "mc_add_path",
     "mc_get_target_rtcp_speed", "mc_initialize", "mc_load_path", "mc_run_motion", "mc_set_pcs",
     "mc_set_speed_factor", "modbus_add_signal", "modbus_delete_signal", "modbus_get_error", "modbus_get_signal",
     "modbus_get_signal_status", "modbus_get_time_since_signal_invalid", "modbus_send_custom_command",
     "modbus_set_digital_input_action", "modbus_set_output_register", "modbus_set_output_signal",
     "modbus_set_runstate_dependent_choice", "modbus_set_signal_update_frequency", "modbus_set_signal_watchdog",
     "path_offset_disable", "path_offset_enable", "path_offset_get", "path_offset_set",
     "path_offset_set_alpha_filter", "path_offset_set_max_offset", "powerdown", "read_port_bit",
     "read_port_register", "request_boolean_from_primary_client", "request_float_from_primary_client",
     "request_integer_from_primary_client", "request_string_from_primary_client", "rpc_factory", "screw_driving",
     "screwdriver_activate", "select_trajectory", "set_conveyor_tick_count", "set_euromap_output",
     "set_euromap_runstate_dependent_choice", "set_input_actions_to_default",
     "set_runstate_standard_digital_output_to_value", "set_safety_mode_transition_hardness", "simulate",
     "socket_get_var", "socket_get_var_value", "socket_set_var", "stop_conveyor_tracking",
     "tool_wrench_limit_disable", "tool_wrench_limit_enable", "tool_wrench_limit_set", "track_conveyor_circular",
     "track_conveyor_linear", "write_port_bit", "write_port_register")
)  # fmt: skip
