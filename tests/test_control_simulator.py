"""The small simulator that the tests of the controllers share, and the proof that it can be believed.

Runge-Kutta of the robot's own forward dynamics under a torque held for one period. Written here and not taken from
tangere.plants, so that a fault there cannot hide one in a controller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.dynamics.friction import JointFriction
from tangere.types import Array, Reference, State


@dataclass
class Run:
    """What happened: one row per period."""

    time: Array
    q: Array
    qd: Array
    tau: Array
    notes: list[str]
    robot: Any

    @property
    def position(self) -> Array:
        return self.robot.pose(self.q)[..., :3, 3]  # type: ignore[no-any-return]


def simulate(
    robot: tangere.Robot,
    controller: Any,
    q: Any,
    *,
    duration: float,
    period: float = 1e-3,
    qd: Any = None,
    push: Callable[[float, Array], Array] | None = None,
    friction: JointFriction | None = None,
    measure: Callable[[int, State], State] | None = None,
    wrench: Callable[[float], Array] | None = None,
) -> Run:
    """Run a controller on a robot; push(time, q) is tau_ext, measure(k, state) breaks a sample on purpose."""
    q = np.array(q, float)
    qd = np.zeros(robot.dof) if qd is None else np.array(qd, float)
    tau = np.zeros(robot.dof)
    rows, notes = [], []

    def acceleration(time: float, q: Array, qd: Array) -> Array:
        total = tau if push is None else tau + push(time, q)
        return robot.forward_dynamics(q, qd, total if friction is None else total - friction.torque(qd))

    h = period
    for k in range(round(duration / period)):
        t = k * h
        state = State(t, h, q, qd, tau, wrench=None if wrench is None else wrench(t))
        if k == 0:
            controller.start(state)
        command = controller.step(state if measure is None else measure(k, state))
        tau = command.tau
        rows.append((t, q, qd, tau))
        notes.append(command.note)
        a1 = acceleration(t, q, qd)
        v2 = qd + h / 2 * a1
        a2 = acceleration(t + h / 2, q + h / 2 * qd, v2)
        v3 = qd + h / 2 * a2
        a3 = acceleration(t + h / 2, q + h / 2 * v2, v3)
        v4 = qd + h * a3
        a4 = acceleration(t + h, q + h * v3, v4)
        q = q + h / 6 * (qd + 2 * v2 + 2 * v3 + v4)
        qd = qd + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    controller.stop()
    time, *columns = (np.array(column) for column in zip(*rows, strict=True))
    return Run(time, *columns, notes, robot)


class Circle:
    """The circle of 000 with a smooth start: p = c + R (cos th, sin th, 0), tool down, from rest to w in `ramp` s."""

    duration = float("inf")

    def __init__(self, robot: tangere.Robot) -> None:
        self.robot, self.centre, self.radius, self.w, self.ramp = robot, np.array([0.7, 0.1, 0.3]), 0.15, 1.0, 1.0
        self.R = np.diag([1.0, -1.0, -1.0])  # tool down
        self.q = np.array([0.0, -1.5, 1.8, -1.9, -1.5, 0.0])

    def at(self, time: float) -> Reference:
        th, thd, thdd = self._angle(time)
        c, s = np.cos(th), np.sin(th)
        radial, along = np.array([c, s, 0.0]), np.array([-s, c, 0.0])
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = self.R, self.centre + self.radius * radial
        v, a = np.zeros(6), np.zeros(6)
        v[:3] = self.radius * thd * along
        a[:3] = self.radius * (thdd * along - thd**2 * radial)
        self.q = self.robot.inverse_kinematics(T, self.q).nearest(self.q)
        J = self.robot.jacobian(self.q)
        qd = np.linalg.solve(J, v)
        qdd = np.linalg.solve(J, a - self.robot.jacobian_rate_times_velocity(self.q, qd))
        return Reference(self.q, qd, qdd, T, v, a)

    def _angle(self, time: float) -> tuple[float, float, float]:
        w, Tr, u = self.w, self.ramp, time / self.ramp
        if u >= 1.0:
            return w * (time - Tr / 2), w, 0.0
        return (
            w * Tr * (2.5 * u**4 - 3 * u**5 + u**6),
            w * (10 * u**3 - 15 * u**4 + 6 * u**5),
            w / Tr * (30 * u**2 - 60 * u**3 + 30 * u**4),
        )


class Wave:
    """Joints on sines of their own: q = middle + swing sin(w t), smooth for all times."""

    duration = float("inf")

    def __init__(self, middle: Any, swing: Any, w: Any) -> None:
        self.middle, self.swing, self.w = (np.array(x, float) for x in (middle, swing, w))

    def at(self, time: float) -> Reference:
        s, c = np.sin(self.w * time), np.cos(self.w * time)
        return Reference(self.middle + self.swing * s, self.swing * self.w * c, -self.swing * self.w**2 * s)


class Nothing:
    """No torque."""

    def __init__(self, n: int) -> None:
        self.tau = np.zeros(n)

    def start(self, state: State) -> None: ...
    def stop(self) -> None: ...
    def step(self, state: State) -> Any:
        from tangere.types import Command

        return Command(self.tau)


def test_the_falling_arm_keeps_its_energy(rng: np.random.Generator) -> None:
    """1e-6 of the energy exchanged: Runge-Kutta of order 4 at 1 ms leaves 1e-9 at these speeds, Euler 1e-2."""
    robot = tangere.robot("ur10e", rotor_inertia=True)
    run = simulate(robot, Nothing(6), rng.uniform(-2, 2, 6), duration=0.5)
    kinetic, potential = robot.energy(run.q, run.qd)
    assert kinetic.max() > 1.0
    assert np.ptp(kinetic + potential) < 1e-6 * kinetic.max()


def test_the_circle_is_what_it_says() -> None:
    """Joints, velocity and acceleration belong to the path: against differences, 1e-7 with h = 1e-4 (h^2 of O(1))."""
    robot, h = tangere.robot("ur10e"), 1e-4
    circle = Circle(robot)
    for time in (0.4, 1.7, 3.0):
        before, now, after = (circle.at(time + k * h) for k in (-1, 0, 1))
        assert robot.pose(now.q) == pytest.approx(now.T, abs=1e-12)
        assert (after.q - before.q) / (2 * h) == pytest.approx(now.qd, abs=1e-7)
        assert (after.qd - before.qd) / (2 * h) == pytest.approx(now.qdd, abs=1e-6)
