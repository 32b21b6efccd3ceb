"""Our torque loop inside a controller, from outside: the program's text, its registers, its states, its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from importlib.resources import files

import numpy as np

from tangere.errors import InvalidValue
from tangere.robots import Robot
from tangere.types import Array

PROTOCOL = 1  # of registers 24 ... 47, as torque_loop.script has them
FRAME = 2e-3  # [s] of an e-Series controller
# direct_torque at all, and with friction scales: by major version (5: e-Series, 10: PolyScope X)
TORQUE_FROM = {5: (5, 23), 10: (10, 10)}
SCALES_FROM = {5: (5, 25, 1), 10: (10, 12, 1)}
HOLD = 3  # frames for which the last torque is held when nothing comes: 6 ms, what an ordinary network misses
FADE = 25  # frames in which a torque fades: 50 ms, short beside what an arm of 1 rad/s travels (25 mrad)
STOP = 10.0  # [rad/s2] by which the arm is stopped at the end: rest from 2 rad/s within 0.2 s
CHANGE = 0.1  # share of a joint's torque by which it may change in a frame: all of it takes 20 ms
SPEED, SPEED_SHARE = 2.0, 0.9  # [rad/s] of any joint, and share of its own limit: beyond the lower one it fades
MARGIN = 0.05  # [rad] before the end of a joint's range at which it fades while it goes on outward
ENDLESS = 1e9  # [rad]
DAMPING = 0.25  # [s/rad] share of a joint's torque per speed while it fades: slows a UR5e's shoulder within 0.1 s


class Mode(IntEnum):
    """States of the loop (output_int_register_25)."""

    IDLE = 1
    TORQUE = 2
    HELD = 3
    FADING = 4
    STOPPED = 5


class Wish(IntEnum):
    """What the computer wants (input_int_register_25)."""

    IDLE = 0
    TORQUE = 1
    END = 9


IN_SEQUENCE, IN_WISH, IN_RUN = (f"input_int_register_{k}" for k in (24, 25, 26))
INPUTS = (
    IN_SEQUENCE, IN_WISH, IN_RUN, *(f"input_double_register_{k}" for k in (*range(24, 30), *range(36, 48)))
)  # fmt: skip
SEQUENCE, MODE, LATE, FRAMES, SPOKEN, RUN, WHY = (f"output_int_register_{k}" for k in range(24, 31))
PASSED = tuple(f"output_double_register_{k}" for k in range(24, 30))
OUTPUTS = (SEQUENCE, MODE, LATE, FRAMES, SPOKEN, RUN, WHY, *PASSED)


def torque_known(version: Sequence[int]) -> bool:
    """Whether a controller of that version takes torques at all."""
    return version[0] in TORQUE_FROM and tuple(version[:2]) >= TORQUE_FROM[version[0]]


def scales_known(version: Sequence[int]) -> bool:
    """Whether friction is made up for by shares; before that it is on or off."""
    return version[0] in SCALES_FROM and tuple(version[:3]) >= SCALES_FROM[version[0]]


@dataclass(frozen=True)
class Limits:
    """What the loop in the controller holds to, whatever is asked of it."""

    torque_max: Array  # (6,) [Nm] beside gravity
    speed_max: Array  # (6,) [rad/s]: beyond it the torque fades
    q_min: Array  # (6,) [rad]: further outward the torque fades
    q_max: Array
    hold: int = HOLD
    fade: int = FADE

    @classmethod
    def of(
        cls, robot: Robot, torque_max: Array | None = None, speed_max: Array | None = None, hold: int = HOLD,
        fade: int = FADE,
    ) -> Limits:  # fmt: skip
        """Those of an arm, or lower ones."""
        if not (0 <= hold <= 50 and 1 <= fade <= 250):
            raise InvalidValue(f"hold: 0 to 50 frames, fade: 1 to 250 frames of 2 ms, got {hold!r} and {fade!r}")
        fastest = np.minimum(SPEED, SPEED_SHARE * robot.qd_max)
        given = {"torque_max": (torque_max, robot.tau_max), "speed_max": (speed_max, fastest)}
        found = {}
        for name, (value, most) in given.items():
            asked = most if value is None else np.broadcast_to(np.asarray(value, dtype=np.float64), most.shape)
            if not np.all((asked > 0.0) & (asked <= most)):
                raise InvalidValue(f"{name}: above 0 and at most {most.tolist()}, got {asked.tolist()}")
            found[name] = asked
        # URScript has no infinity: a joint that turns without end gets ends that it never comes to
        low, high = np.maximum(robot.q_min + MARGIN, -ENDLESS), np.minimum(robot.q_max - MARGIN, ENDLESS)
        return cls(found["torque_max"], found["speed_max"], low, high, hold, fade)


def program(limits: Limits, run: int, version: Sequence[int], friction: bool = False) -> str:
    """The program's text for one run. friction: on or off, for versions without scales."""
    call = f"direct_torque(passed, friction_comp={friction})"
    if scales_known(version):
        call = "direct_torque(passed, viscous_scale=six(36), coulomb_scale=six(42))"
    text = files("tangere.plants").joinpath("torque_loop.script").read_text(encoding="utf-8")
    return text.format(
        run=run, hold=limits.hold, fade=limits.fade, protocol=PROTOCOL, stop=STOP, direct_torque=call,
        torque_max=limits.torque_max.tolist(), change_max=(CHANGE * limits.torque_max).tolist(),
        speed_max=limits.speed_max.tolist(), q_min=limits.q_min.tolist(), q_max=limits.q_max.tolist(),
        damping=(DAMPING * limits.torque_max).tolist(),
        # [Hz] half as often as hold and fade last together: the loop itself is always faster
        watchdog=round(0.5 / (FRAME * (limits.hold + limits.fade)), 2),
    )  # fmt: skip


LATE_WORDS = (
    "torques did not come in time (this computer was busy: hold=10, or --hold 10, bears longer gaps; a virtual arm "
    "started with --clock lockstep waits for them)"
)


def reason(why: int) -> str:
    """Why the loop faded, from output_int_register_30."""
    if 11 <= why <= 16:
        return f"joint {why - 10} was faster than its limit"
    if 21 <= why <= 26:
        return f"joint {why - 20} came to the end of its range"
    return {1: LATE_WORDS, 2: "the torque was no longer wanted"}.get(why, "it was ended")
