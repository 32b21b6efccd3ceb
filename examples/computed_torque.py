"""Computed torque: with the right model a nonlinear arm becomes six independent springs with dampers.

The law (000 eqs 98 to 104, with the sign of eq 100 corrected to e'' = -u)

    e = q_des - q,   u = Kp e + Kv e',   tau = M(q) (qdd_des + u) + C(q, qd) qd + g(q)

put into M qdd + C qd + g = tau leaves e'' + Kv e' + Kp e = 0. With Kv = 2 sqrt(Kp) that is critically damped, and the
error is known in closed form, e(t) = e(0) (1 + w t) exp(-w t) with w = sqrt(Kp). This file integrates the arm and
compares.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere

KP = 25.0  # 1/s2: w = 5 rad/s, an error is down to 4 % after one second
KV = 2.0 * np.sqrt(KP)  # 1/s: critical damping
H = 0.002  # s: step of the integration, the cycle of a UR e-Series controller
OFFSET = np.radians([20.0, -15.0, 25.0, -30.0, 20.0, 40.0])  # rad: initial error, large enough for C to matter


def torque(robot: tangere.Robot, q: np.ndarray, qd: np.ndarray, q_des: np.ndarray) -> np.ndarray:
    """Computed torque (6,) [Nm] that holds q_des."""
    u = KP * (q_des - q) - KV * qd
    return robot.inverse_dynamics(q, qd, u)


def step(robot: tangere.Robot, q: np.ndarray, qd: np.ndarray, q_des: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One step of the classical Runge-Kutta method for the controlled arm."""

    def rate(q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return qd, robot.forward_dynamics(q, qd, torque(robot, q, qd, q_des))

    v1, a1 = rate(q, qd)
    v2, a2 = rate(q + 0.5 * H * v1, qd + 0.5 * H * a1)
    v3, a3 = rate(q + 0.5 * H * v2, qd + 0.5 * H * a2)
    v4, a4 = rate(q + H * v3, qd + H * a3)
    return q + H / 6.0 * (v1 + 2 * v2 + 2 * v3 + v4), qd + H / 6.0 * (a1 + 2 * a2 + 2 * a3 + a4)


def main() -> None:
    robot = tangere.robot("ur10e")
    q_des = np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
    q, qd = q_des - OFFSET, np.zeros(6)
    w = np.sqrt(KP)
    worst, errors = 0.0, []
    print("   t [s]   largest error [deg]   by the formula")
    for k in range(1, 501):
        q, qd = step(robot, q, qd, q_des)
        t = k * H
        formula = OFFSET * (1.0 + w * t) * np.exp(-w * t)
        errors.append(q_des - q)
        worst = max(worst, float(np.abs(q_des - q - formula).max()))
        if k % 100 == 0:
            largest = np.degrees([np.abs(q_des - q).max(), np.abs(formula).max()])
            print(f"   {t:5.2f}   {largest[0]:19.5f}   {largest[1]:14.5f}")
    print(f"largest deviation from the formula: {worst:.1e} rad")
    log = tangere.Log({"time": H * np.arange(1, 501), "error": np.array(errors)})
    print(f"picture: {log.plot('error').save(Path(tempfile.mkdtemp(prefix='tangere-')) / 'error.svg')}")


if __name__ == "__main__":
    main()
