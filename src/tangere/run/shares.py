"""What a wrong model costs: the tracking error that inertia, friction and kinematics each would leave (000, 4.3.1)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tangere.robot import Robot
from tangere.run.log import Log
from tangere.types import Array


class _Friction(Protocol):
    def torque(self, qd: Array, /) -> Array:
        """Nm."""


def error_shares(
    log: Log, true: Robot, believed: Robot, friction: _Friction | None, believed_friction: _Friction | None, kp: float
) -> dict[str, Any]:
    """rms of the tool's displacement [mm] that each cause alone would leave along the reference, to first order.

    A torque d that the model lacks leaves, in a computed-torque loop, M_hat^-1 d / kp in the joints once the loop has
    settled; J takes it to the tool. Inertia: d = ID_true - ID_believed along the reference, gravity included; friction:
    the difference of the two laws; kinematics: where the true arm's tool is when the joints are where they should be.
    """
    q, qd, qdd = log["q_des"], log["qd_des"], log["qdd_des"]
    wanted = log.position("T_des")
    J, M = believed.jacobian(q)[:, :3], believed.mass_matrix(q)

    def moved(torque: Array) -> float:
        joints = np.linalg.solve(M, torque[..., None]) / kp
        return _rms((J @ joints)[..., 0])

    lacking = true.inverse_dynamics(q, qd, qdd) - believed.inverse_dynamics(q, qd, qdd)
    rubbing = np.zeros_like(qd)
    for sign, law in ((1.0, friction), (-1.0, believed_friction)):
        if law is not None:
            rubbing = rubbing + sign * np.array([law.torque(row) for row in qd])
    return {
        "inertia_mm": moved(lacking),
        "friction_mm": moved(rubbing),
        "kinematics_mm": _rms(true.pose(q)[:, :3, 3] - wanted),
    }


def _rms(displacement: Array) -> float:
    return float(1e3 * np.sqrt(np.mean(np.sum(displacement**2, axis=-1))))
