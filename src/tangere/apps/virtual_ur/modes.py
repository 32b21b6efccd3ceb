"""Modes of a controller as RTDE numbers them, and what differs between controllers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class RobotMode(IntEnum):
    """As RTDE numbers them."""

    NO_CONTROLLER = -1
    DISCONNECTED = 0
    CONFIRM_SAFETY = 1
    BOOTING = 2
    POWER_OFF = 3
    POWER_ON = 4
    IDLE = 5
    BACKDRIVE = 6
    RUNNING = 7


class SafetyMode(IntEnum):
    """As RTDE numbers them."""

    NORMAL = 1
    REDUCED = 2
    PROTECTIVE_STOP = 3
    RECOVERY = 4
    SAFEGUARD_STOP = 5
    SYSTEM_EMERGENCY_STOP = 6
    ROBOT_EMERGENCY_STOP = 7
    VIOLATION = 8
    FAULT = 9


class Runtime(IntEnum):
    """State of the program, as RTDE numbers it."""

    STOPPING = 0
    STOPPED = 1
    PLAYING = 2
    PAUSING = 3
    PAUSED = 4
    RESUMING = 5


@dataclass(frozen=True, slots=True)
class Profile:
    """What differs between controllers: version of PolyScope, and how this one was set up."""

    version: tuple[int, int, int, int] = (5, 26, 0, 0)
    remote: bool = True  # whether remote control is on
    field_bus: bool = False  # EtherNet/IP holds registers 0 to 23 and the speed slider
    booting: bool = False  # the arm is powered off, as after switching on

    @property
    def e_series(self) -> bool:
        """Whether it is newer than CB3: 500 frames a second and a force sensor."""
        return self.version[0] >= 5

    @property
    def taken(self) -> frozenset[str]:
        """Inputs that a field bus holds."""
        if not self.field_bus:
            return frozenset()
        names = [f"input_{kind}_register_{k}" for kind in ("int", "double") for k in range(24)]
        return frozenset((*names, "speed_slider_mask", "speed_slider_fraction"))
