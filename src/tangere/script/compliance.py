"""An arm that gives way: force mode and freedrive. Both are modelled; UR does not publish its laws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from tangere.kernels.periods import finite
from tangere.script.host import STILL, Setpoint
from tangere.script.poses import Frame, rotation_vector
from tangere.script.values import ScriptException
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.script.arm import Arm

# Force mode: speed per missing force [m/s per N] and moment [rad/s per Nm]. 10 N missing move the tool with 5 mm/s; on
# a wall of 1e5 N/m the force settles with 50 1/s, slower than the arm follows and a tenth of the frame rate.
PER_FORCE, PER_MOMENT = 5e-4, 5e-3
LEAST = 1e-6  # [m] or [m/s]: below it a vector has no direction
# 1/s: how fast an axis that is not compliant comes back to the program's path
RETURN = 10.0
# Freedrive: spring and damper of axes that are not free [N/m, Nm/rad, Ns/m, Nms/rad]: stiff to a hand, soft to an arm
STIFF = np.array([4000.0] * 3 + [400.0] * 3)
DAMP = np.array([300.0] * 3 + [30.0] * 3)
# Shares of friction that the drives make up for by default, as UR documents them for direct_torque.
VISCOUS = np.array([0.9, 0.9, 0.8, 0.9, 0.9, 0.9])
COULOMB = np.array([0.8, 0.8, 0.7, 0.8, 0.8, 0.8])


class Compliance(Protocol):
    """What stands between the program's target and the arm."""

    def setpoint(self, arm: Arm) -> Setpoint:
        """The answer of this frame."""

    def released(self, arm: Arm) -> None:
        """It ends: the program's target is where the arm was led."""


class ForceMode:
    """Along the selected axes of a frame the tool moves until the force is as asked; the others follow the program.

        v = PER_FORCE (F + F_env) along compliant axes, at most the limit     (F_env: of the environment on the arm)

    F is what the arm applies to its environment, so F_env = -F where both agree. frame: task frame in base axes; kind,
    as UR numbers it: 1 its y axis points from the tool to its origin, 2 as it is, 3 its x axis is the way of the tool,
    as far as that lies in its xy plane.
    """

    def __init__(self, arm: Arm, frame: Frame, selection: Array, wrench: Array, kind: int, limits: Array) -> None:
        self.frame, self.kind = frame, kind
        self.R: Array = np.array(frame[0])
        self.selected, self.wrench, self.limits = selection, wrench, limits
        self.q = arm.q
        self._v = np.zeros(6)

    def changed(self, other: ForceMode) -> None:
        """The same motion with new numbers: force_mode is called again and again."""
        self.frame, self.kind, self.R = other.frame, other.kind, other.R
        self.selected, self.wrench, self.limits = other.selected, other.wrench, other.limits

    def _turned(self, p: Array, v: Array) -> Array:
        """Axes of the task frame, as columns, for a tool at p that moves by v (3,) each."""
        R: Array = np.array(self.frame[0])
        origin: Array = np.array(self.frame[1])
        if self.kind == 1:
            y, along = origin - p, R[:, 2]
            if np.linalg.norm(y) > LEAST:
                y = y / np.linalg.norm(y)
                x = np.cross(y, along)
                if np.linalg.norm(x) > LEAST:
                    x = x / np.linalg.norm(x)
                    return np.stack([x, y, np.cross(x, y)], axis=1)
        elif self.kind == 3:
            z = R[:, 2]
            x = v - (v @ z) * z
            if np.linalg.norm(x) > LEAST:
                x = x / np.linalg.norm(x)
                return np.stack([x, np.cross(z, x), z], axis=1)
        return self.R  # 2, or no direction: as before

    def setpoint(self, arm: Arm) -> Setpoint:
        """One frame further along the compliant axes."""
        felt = np.array(arm.wrench())
        if self.kind != 2:
            self.R = self._turned(np.array(arm.frame_at(self.q)[1]), (arm.jacobian(arm.q) @ arm.qd)[:3])
        R = self.R
        missing = self.wrench + np.concatenate([R.T @ felt[:3], R.T @ felt[3:]])
        wish = np.concatenate([missing[:3] * PER_FORCE, missing[3:] * PER_MOMENT]) * arm.force_gain
        wish = np.clip(wish, -self.limits, self.limits)
        # the speed follows its wish within some frames; the more damping, the sooner it is forgotten
        self._v += (wish - self._v) * (0.2 + 0.8 * arm.force_damping)
        J = arm.jacobian(self.q)
        nominal = arm.jacobian(arm.q) @ arm.qd if arm.qd is not STILL else np.zeros(6)
        R_n, p_n = arm.frame_at(arm.q)
        R_q, p_q = arm.frame_at(self.q)
        turn = rotation_vector((np.array(R_n) @ np.array(R_q).T).tolist())
        back = nominal + RETURN * np.array([*np.subtract(p_n, p_q), *turn])
        program = np.concatenate([R.T @ back[:3], R.T @ back[3:]])
        twist = np.where(self.selected, self._v, program)
        try:
            qd = np.linalg.solve(J, np.concatenate([R @ twist[:3], R @ twist[3:]]))
        except np.linalg.LinAlgError:
            qd = STILL  # singular: it stays until the arm is led out of it
        qd = np.clip(qd, -arm.robot.qd_max, arm.robot.qd_max)
        self.q = self.q + qd * arm.frame
        return Setpoint(self.q, qd, STILL)

    def released(self, arm: Arm) -> None:
        """The program goes on from where the arm was led."""
        arm.q, arm.qd, arm.qdd = self.q, STILL, STILL


class Freedrive:
    """The arm can be led by hand along the free axes of a frame; gravity and friction are made up for.

        tau = J^T (spring and damper along the axes that are not free)
    """

    def __init__(self, arm: Arm, free: Array, frame: Frame) -> None:
        self.R: Array = np.array(frame[0])
        self.locked = np.logical_not(free)
        self._R, self._p = (np.array(part) for part in arm.frame_at(arm.state.q))

    def setpoint(self, arm: Arm) -> Setpoint:
        """Torques beside gravity."""
        state = arm.state
        arm.q, arm.qd, arm.qdd = state.q, STILL, STILL
        tau = np.zeros(6)
        if self.locked.any():
            J = arm.jacobian(state.q)
            R, p = arm.frame_at(state.q)
            off = np.array([*(self._p - p), *rotation_vector((self._R @ np.array(R).T).tolist())])
            v, Rt = J @ state.qd, self.R.T
            force = STIFF * np.concatenate([Rt @ off[:3], Rt @ off[3:]])
            force -= DAMP * np.concatenate([Rt @ v[:3], Rt @ v[3:]])
            force = np.where(self.locked, force, 0.0)
            tau = J.T @ np.concatenate([self.R @ force[:3], self.R @ force[3:]])
        return Setpoint(state.q, state.qd, STILL, tau, VISCOUS, COULOMB)

    def released(self, arm: Arm) -> None:
        """The target is where the arm is."""
        arm.q, arm.qd, arm.qdd = arm.state.q, arm.state.qd, STILL


def six(value: object, what: str) -> Array:
    """Six finite numbers of a program, as an array."""
    if not isinstance(value, tuple) or len(value) != 6:
        raise ScriptException(f"{what}: six numbers are needed")
    try:
        found = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ScriptException(f"{what}: six numbers are needed") from None
    if not finite(found):
        raise ScriptException(f"{what}: must be finite")
    return found
