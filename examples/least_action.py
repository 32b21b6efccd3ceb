"""Least action: of all ways from here to there in a given time, nature takes one on which the action is stationary.

    S[q] = int_0^T L dt,   L = T(q, qd) - V(q),   S[q + e eta] - S[q] = e dS + e^2/2 d2S + ...,   dS = 0

for every disturbance eta that vanishes at both ends: d/dt dL/dqd = dL/dq is the same statement. "Least" is too much
said. For a short time d2S > 0 and the true path is a minimum; once it lasts longer than half a swing there are
disturbances with d2S < 0, and the true path is a saddle. The pendulum of 003 shows both; a UR10e that falls for a
tenth of a second shows that six joints are no different.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere

STEPS = 2000  # of Runge-Kutta and of Simpson's rule: both err by less than 1e-12
SIZE = 1e-5  # rad: the cubic term then leaves some 1e-9 in dS, and rounding not more


def true_path(robot: tangere.Robot, q: np.ndarray, qd: np.ndarray, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """q and qd (STEPS + 1, n) of the free arm, tau = 0."""

    def rate(y: np.ndarray) -> np.ndarray:
        return np.stack([y[1], robot.forward_dynamics(y[0], y[1], np.zeros(robot.dof))])

    h, path = duration / STEPS, [np.stack([q, qd])]
    for _ in range(STEPS):
        y = path[-1]
        k1 = rate(y)
        k2 = rate(y + 0.5 * h * k1)
        k3 = rate(y + 0.5 * h * k2)
        k4 = rate(y + h * k3)
        path.append(y + h / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4))
    states = np.array(path)
    return states[:, 0], states[:, 1]


def action(robot: tangere.Robot, q: np.ndarray, qd: np.ndarray, duration: float) -> float:
    """S [J s] by Simpson's rule."""
    kinetic, potential = robot.energy(q, qd)
    weights = np.full(STEPS + 1, 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    return float(weights @ (kinetic - potential) * duration / STEPS / 3.0)


def variations(robot: tangere.Robot, q: np.ndarray, qd: np.ndarray, duration: float) -> tuple[float, float]:
    """dS and d2S for the disturbance sin(pi t / T) in every joint, by central differences."""
    t = np.linspace(0.0, duration, STEPS + 1)[:, None]
    eta, etad = np.sin(np.pi * t / duration), np.pi / duration * np.cos(np.pi * t / duration)
    here = action(robot, q, qd, duration)
    more, less = (action(robot, q + e * eta, qd + e * etad, duration) for e in (SIZE, -SIZE))
    return (more - less) / (2.0 * SIZE), (more - 2.0 * here + less) / SIZE**2


def main() -> None:
    pendulum, arm = tangere.robot("pendulum"), tangere.robot("ur10e")
    bent = np.radians([0.0, -45.0, 60.0, -105.0, -90.0, 0.0])
    cases = (
        ("pendulum, 0.6 s", pendulum, np.array([0.5]), 0.6),  # a swing there takes half of 2.04 s
        ("pendulum, 1.6 s", pendulum, np.array([0.5]), 1.6),
        ("ur10e falling, 0.1 s", arm, bent, 0.1),
    )
    print(f"{'':<22} {'S [J s]':>10} {'dS true path':>14} {'dS straight':>13} {'d2S':>10}   the true path is")
    for name, robot, q0, duration in cases:
        q, qd = true_path(robot, q0, np.zeros(robot.dof), duration)
        first, second = variations(robot, q, qd, duration)
        # the same ends at constant speed: no solution of the equations of motion
        speed = (q[-1] - q[0]) / duration
        straight = q[0] + np.linspace(0.0, duration, STEPS + 1)[:, None] * speed
        false, _ = variations(robot, straight, np.broadcast_to(speed, straight.shape), duration)
        kind = "a minimum for this disturbance" if second > 0.0 else "no minimum: a saddle"
        print(f"{name:<22} {action(robot, q, qd, duration):10.5f} {first:14.1e} {false:13.1e} {second:10.2f}   {kind}")

    q, qd = true_path(pendulum, np.array([0.5]), np.zeros(1), 0.6)
    here, t = action(pendulum, q, qd, 0.6), np.linspace(0.0, 1.0, STEPS + 1)[:, None]
    print("pendulum, 0.6 s: ten times the disturbance costs a hundred times the action")
    for e in (1e-3, 1e-2, 1e-1):
        change = action(pendulum, q + e * np.sin(np.pi * t), qd + e * np.pi / 0.6 * np.cos(np.pi * t), 0.6) - here
        print(f"   {e:5.3f} rad: {change:12.5e} J s")
    log = tangere.Log({"time": 0.6 * t[:, 0], "q": q, "qd": qd})
    print(f"the true path: {log.plot('q', 'qd').save(Path(tempfile.mkdtemp(prefix='tangere-')) / 'path.svg')}")


if __name__ == "__main__":
    main()
