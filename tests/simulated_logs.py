"""Three logs of 30 s that our own twin made, so that identify, tune and watch have reference logs on every clone.

    python tests/simulated_logs.py        writes tests/data/ur5e_simulated.npz anew

A UR5e of the data sheet with friction of its size, positions, velocities and joint torques (gravity included) at 100 Hz
with a UR's noise, rounded to steps well below it. Keys: free (nobody touches it), touched (five touches, TOUCHES), stop
(free, but braked hard three times, STOPS). No recording of a real arm.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tangere
from tangere.dynamics.friction import JointFriction
from tangere.robots import Robot
from tangere.types import Array

FILE = Path(__file__).resolve().parent / "data" / "ur5e_simulated.npz"
RATE = 100.0  # [Hz]
SECONDS = 30.0  # [s]
COLUMNS = "q,qd,torque"  # as --columns wants them
FRICTION = JointFriction(
    np.array([8.5, 8.0, 7.5, 1.6, 1.5, 1.7]), np.array([9.0, 8.5, 8.0, 1.7, 1.6, 1.8]), width=0.008
)
ROTOR = np.array([2.2, 2.2, 2.2, 0.42, 0.42, 0.42])  # [kg m2] on the joint side: 0.015 per Nm of peak torque
# start, end [s], link, force [N] in base axes at the link's own origin: three pushes and two short knocks
TOUCHES = (
    (5.0, 6.5, 4, (0.0, 0.0, -80.0)),
    (10.0, 10.15, 6, (70.0, 0.0, 0.0)),
    (14.0, 16.0, 3, (0.0, 80.0, 0.0)),
    (20.0, 20.2, 5, (0.0, -70.0, 40.0)),
    (25.0, 26.0, 6, (-80.0, 0.0, 0.0)),
)
STOPS = (7.0, 15.0, 23.0)  # [s] at which a running motion is braked within BRAKE, to go on after STAND
BRAKE, STAND, RESUME = 0.08, 1.5, 0.6  # [s]
NOISE = (2e-5, 1e-3, np.array([0.4, 0.4, 0.3, 0.08, 0.08, 0.08]))  # [rad], [rad/s], [Nm] standard deviations
STEPS = (2.0**-15, 2.0**-11, 2.0**-6)  # [rad], [rad/s], [Nm] to which the logs are rounded: powers of 2 pack well


def clock(time: Array, stops: tuple[float, ...]) -> tuple[Array, Array, Array]:
    """Path time s [s], its rate and its acceleration (N,), with hard stops at these times."""
    rate, slope = np.ones_like(time), np.zeros_like(time)
    for at in stops:
        for start, length, sign in ((at, BRAKE, -1.0), (at + BRAKE + STAND, RESUME, 1.0)):
            x = np.clip((time - start) / length, 0.0, 1.0)
            rate += sign * (3.0 * x**2 - 2.0 * x**3)
            slope += sign * 6.0 * x * (1.0 - x) / length
    s = np.concatenate(([0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(time))))
    return s, rate, slope


def log(
    robot: Robot, seed: int, touches: tuple[tuple[float, float, int, tuple[float, ...]], ...], stops: tuple[float, ...]
) -> Array:
    """q, qd, tau side by side (N, 18), rounded to STEPS."""
    random = np.random.default_rng(seed)
    fine = np.arange(0.0, SECONDS, 0.1 / RATE)  # the path time is an integral
    s, rate, slope = (values[::10] for values in clock(fine, stops))
    t = fine[::10]
    speed = random.uniform(0.35, 1.6, (3, 6)) * np.array([[0.6], [1.0], [1.7]])
    size = np.array([[0.35], [0.25], [0.1]]) * random.uniform(0.7, 1.3, (3, 6))
    angle = s[:, None, None] * speed + random.uniform(0.0, 6.0, (3, 6))
    q = np.array([0.3, -1.4, 1.5, -1.2, -1.3, 0.2]) + (size * np.sin(angle)).sum(axis=1)
    d1, d2 = (size * speed * np.cos(angle)).sum(axis=1), -(size * speed**2 * np.sin(angle)).sum(axis=1)
    qd, qdd = d1 * rate[:, None], d2 * rate[:, None] ** 2 + d1 * slope[:, None]
    tau = robot.inverse_dynamics(q, qd, qdd) + FRICTION.torque(qd)
    for start, end, link, force in touches:
        ramp = np.clip((t - start) / 0.03, 0.0, 1.0) * np.clip((end - t) / 0.03, 0.0, 1.0)  # a hand is soft
        for k in np.flatnonzero(ramp):
            J = robot.jacobian(q[k], link=link, point=np.zeros(3))
            tau[k] -= ramp[k] * (J[:3].T @ np.array(force))
    parts = []
    for values, noise, step in zip((q, qd, tau), NOISE, STEPS, strict=True):
        parts.append(np.round((values + noise * random.standard_normal(q.shape)) / step) * step)
    return np.concatenate(parts, axis=1)


def logs() -> dict[str, Array]:
    """The three logs, as the file holds them."""
    arm = tangere.robot("ur5e")
    robot = Robot(arm.model, ROTOR)
    return {
        "free": log(robot, 1, (), ()),
        "touched": log(robot, 2, TOUCHES, ()),
        "stop": log(robot, 3, (), STOPS),
    }


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    np.savez_compressed(FILE, **{name: values.astype(np.float32) for name, values in logs().items()})
    print(f"{FILE}: {FILE.stat().st_size / 1e3:.0f} kB")
