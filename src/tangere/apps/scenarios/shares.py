"""What a wrong model costs: the tracking error that inertia, friction and kinematics each would leave (000, 4.3.1)."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from tangere.logs.log import Log
from tangere.robots import Robot
from tangere.types import Array


class _Friction(Protocol):
    def torque(self, qd: Array, /) -> Array:
        """(..., n) Nm for qd (..., n)."""


def error_shares(
    log: Log,
    true: Robot,
    believed: Robot,
    friction: _Friction | None,
    believed_friction: _Friction | None,
    kp: float,
    settle: float = 0.0,
) -> dict[str, Any]:
    """Error of the tool [mm rms] that each difference between plant and model alone would leave along the reference.

        edd + kv ed + kp e = Mhat^-1 ((M - Mhat) qdd + (C - Chat) qd + (g - ghat) + friction - believed friction)

    with e = q_des - q, kv = 2 sqrt(kp): each term on the right drives the computed-torque loop by itself, from rest;
    J e is its error at the tool. kinematics: how far the true arm's tool is from the path when the joints are where
    they should be. The causes add up as vectors, not as numbers: together_mm is the rms of their sum, to be compared
    with the error that was measured. Samples before `settle` [s] do not count. To first order in e; pushes and torque
    limits are not in it.
    """
    q, qd, qdd = log["q_des"], log["qd_des"], log["qdd_des"]
    Mhat = believed.mass_matrix(q)
    gravity = true.gravity_torque(q) - believed.gravity_torque(q)
    rubbing = np.zeros_like(qd)
    for sign, law in ((1.0, friction), (-1.0, believed_friction)):
        if law is not None:
            rubbing = rubbing + sign * law.torque(qd)
    causes = {
        "inertia_mm": true.inverse_dynamics(q, qd, qdd) - believed.inverse_dynamics(q, qd, qdd) - gravity,
        "gravity_mm": gravity,
        "friction_mm": rubbing,
    }
    J = true.jacobian(q)[:, :3]
    errors = {}
    for cause, torque in causes.items():
        drive = np.asarray(np.linalg.solve(Mhat, torque[..., None])[..., 0], dtype=np.float64)
        e = _response(log.time, drive, kp)
        errors[cause] = -(J @ e[..., None])[..., 0]  # the tool lags where the joints lag
    errors["kinematics_mm"] = true.pose(q)[:, :3, 3] - log.position("T_des")
    errors["together_mm"] = np.sum(list(errors.values()), axis=0)
    counted = log.time >= settle
    return {cause: _rms_mm(error[counted]) for cause, error in errors.items()}


def _response(time: Array, drive: Array, kp: float) -> Array:
    """e (N, n) of edd + 2 sqrt(kp) ed + kp e = drive, from rest; drive (N, n) held from sample to sample.

    Semi-implicit steps with both gains implicit: stable at any step, first order (1 % at 1 ms and kp = 100).
    """
    kv = 2.0 * math.sqrt(kp)
    e, rate = np.zeros(drive.shape[1]), np.zeros(drive.shape[1])
    out = np.empty_like(drive)
    for k, h in enumerate(np.diff(time, prepend=time[0])):
        rate = (rate + h * (drive[k] - kp * e)) / (1.0 + h * kv + h * h * kp)
        e = e + h * rate
        out[k] = e
    return out


def _rms_mm(error: Array) -> float:
    return float(1e3 * np.sqrt(np.mean(np.sum(error**2, axis=1)))) if len(error) else 0.0
