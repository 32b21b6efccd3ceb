"""Actuators that fail: torque lost, torque offset, a joint that sticks; per joint and time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tangere.errors import InvalidValue
from tangere.types import Array


@dataclass(frozen=True)
class TorqueLoss:
    """The joint gives only a part of its torque: applied = factor * commanded."""

    joint: int  # counted from 1
    factor: float  # what is left: 0 is a dead motor, 1 a sound one
    start: float = 0.0  # s
    duration: float = math.inf  # s


@dataclass(frozen=True)
class TorqueOffset:
    """The joint gives something on top of what it is told: applied = commanded + torque."""

    joint: int
    torque: float  # Nm
    start: float = 0.0
    duration: float = math.inf


@dataclass(frozen=True)
class Stuck:
    """The joint's brake closes: its velocity is zero at once, whatever the torque, until the fault ends."""

    joint: int
    start: float = 0.0
    duration: float = math.inf


Fault = TorqueLoss | TorqueOffset | Stuck


class Actuators:
    """From commanded to applied torque: limits of the drives first, then the faults at work.

    The hardware does not know of its faults: `reported` is the limited command, `applied` what really acts, so that
    an observer sees applied - reported as if somebody had pushed. A command that is not finite is not taken: the
    torque of the period before goes on. Like pushes, faults act in whole periods.
    """

    def __init__(self, tau_max: Array, faults: Sequence[Fault] = ()) -> None:
        self._high, self._low = np.array(tau_max), -np.array(tau_max)
        self._faults = [_checked(fault, len(tau_max)) for fault in faults]
        self.stuck: tuple[int, ...] = ()  # joints (from 0) whose brake is closed
        self.reset()

    def reset(self) -> None:
        """No torque yet, every brake open."""
        self.reported = np.zeros(len(self._high))
        self.stuck = ()

    def apply(self, tau: Array, middle: float) -> Array:
        """The torque (n,) that acts in the period around `middle` [s]; sets `reported` and `stuck`."""
        # one product tells whether all are finite; an overflow of it (1e154 Nm) would be refused as well
        if math.isfinite(tau.dot(tau)):
            self.reported = np.minimum(np.maximum(tau, self._low), self._high)
        if not self._faults:
            return self.reported
        applied = self.reported.copy()
        stuck = set()
        for fault in self._faults:
            if fault.start <= middle < fault.start + fault.duration:
                if isinstance(fault, TorqueLoss):
                    applied[fault.joint - 1] *= fault.factor
                elif isinstance(fault, TorqueOffset):
                    applied[fault.joint - 1] += fault.torque
                else:
                    stuck.add(fault.joint - 1)
        self.stuck = tuple(sorted(stuck))
        return applied


def braked(M: Array, qd: Array, stuck: tuple[int, ...]) -> Array:
    """Velocities (n,) just after brakes closed: zero there, and the momentum of the free joints unchanged.

        M_ff (qd_f' - qd_f) = M_fs qd_s

    because the brakes' impulse acts on the stuck joints only.
    """
    held = np.array(stuck)
    free = np.setdiff1d(np.arange(len(qd)), held)
    after = np.zeros_like(qd)
    if free.size:
        after[free] = qd[free] + np.linalg.solve(M[np.ix_(free, free)], M[np.ix_(free, held)] @ qd[held])
    return after


def _checked(fault: Fault, dof: int) -> Fault:
    if not (isinstance(fault.joint, int) and 1 <= fault.joint <= dof):
        raise InvalidValue(f"joint of a fault: got {fault.joint!r}, valid are 1 to {dof}")
    if not math.isfinite(fault.start) or not fault.duration > 0.0:
        raise InvalidValue(f"a fault starts at a finite time and lasts > 0 s, got {fault!r}")
    if isinstance(fault, TorqueLoss) and not 0.0 <= fault.factor <= 1.0:
        raise InvalidValue(f"factor of a torque loss: what is left, 0 to 1, got {fault.factor!r}")
    if isinstance(fault, TorqueOffset) and not math.isfinite(fault.torque):
        raise InvalidValue(f"torque of a fault: must be finite [Nm], got {fault.torque!r}")
    return fault
