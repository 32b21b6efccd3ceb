"""A simulated arm by our own forward dynamics: no contacts, no limits of the joints, any arm, numpy only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, UnknownName
from tangere.kernels.periods import held
from tangere.plants.pushes import Fault, Push, braked
from tangere.plants.sensors import SensorModel
from tangere.plants.simulated import SimulatedArm, changeable, initial, refuse_stiff_friction
from tangere.robots import Robot
from tangere.types import Array, Command, State, Truth


class RigidPlant(SimulatedArm):
    """Integrates qdd = M^-1 (tau + tau_ext - C qd - g - friction) under a torque held for one period.

    method "rk4": classical Runge-Kutta, error O(h^4) while nothing changes inside a step. "semi-implicit":

        (M + h B) (qd' - qd) = h (tau + tau_ext - C qd - g - friction(qd)),  q' = q + h qd'

    with B the viscous friction: MuJoCo's Euler step, first order, and what MujocoPlant computes to rounding.
    substeps: integration steps per period. The smooth Coulomb friction is explicit in both: it needs
    coulomb / width * step < 2 inertia of the joint, which a UR has only with its rotor inertia.
    force_sensor: whether State.wrench is measured (e-Series arms have a sensor at the flange, CB3 arms none).
    """

    def __init__(
        self,
        robot: Robot,
        period: float = 1e-3,
        *,
        friction: JointFriction | None = None,
        substeps: int = 1,
        method: Literal["rk4", "semi-implicit"] = "rk4",
        sensors: SensorModel | None = None,
        faults: Sequence[Fault] = (),
        pushes: Sequence[Push] = (),
        force_sensor: bool = True,
    ) -> None:
        if method not in ("rk4", "semi-implicit"):
            raise UnknownName(f"unknown method {method!r}; known: rk4, semi-implicit")
        super().__init__(robot, period, friction, sensors, faults, pushes, force_sensor)
        if not (isinstance(substeps, int) and substeps >= 1):
            raise InvalidValue(f"substeps: a whole number >= 1, got {substeps!r}")
        still = friction is None or not (np.any(friction.coulomb) or np.any(friction.viscous))
        self._friction = self._law = None if still else friction
        self._h, self._substeps = period / substeps, substeps
        self._step = self._runge_kutta if method == "rk4" else self._semi_implicit
        self._prepare()
        self.reset(np.zeros(robot.dof))

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> State:
        """Place the arm at q (n,) [rad] with velocity qd (n,) (at rest if not given); time starts at 0."""
        start, speed = initial(q, qd, self.dof)
        if self._friction is not None:
            refuse_stiff_friction(self._friction, self.robot.mass_matrix(start), self._h)
        return self._begin(start, speed)

    def write(self, command: Command) -> None:
        """Hold the torque for one period and move on by it. Torques beyond robot.tau_max are cut."""
        if self._failed:
            return
        tau, _ = self._loaded(command)
        if self._actuators.stuck != self._stuck:
            self._stuck = self._actuators.stuck
            if self._stuck:
                self._qd = braked(self.robot.mass_matrix(self._q), self._qd, self._stuck)
        try:
            for _ in range(self._substeps):
                self._step(tau)
        except InvalidValue:  # the kernels refuse a state that is not finite; the next read says so
            self._failed = True
        self._count += 1
        if self._failed or not math.isfinite(self._qd @ self._qd):
            self._failed = True
            return
        self._q, self._qd = held(self._q, self._qd)
        self._sampled()

    def change(self, name: str, value: float) -> None:
        """While the plant runs: payload [kg] at the flange, friction as a factor on the law it was made with."""
        if changeable(name, value) == "payload":
            self.robot = self.robot.with_payload(value or None)
        else:
            self._friction = None if self._law is None else self._law.scaled(value)
        self._prepare()

    def truth(self) -> Truth:
        """The noise-free state now, and tau_ext and wrench as they acted since the sample before."""
        return Truth(self._q, self._qd, self._push, self.robot.pose(self._q), self._wrench)

    def close(self) -> None:
        """Nothing to release."""

    def _prepare(self) -> None:
        """The compiled step, where there is one for this arm, and what it is told of friction."""
        f = self._friction
        self._quick = getattr(self.robot, "_runge_kutta", None) if f is None or type(f) is JointFriction else None
        self._rubbed = None if f is None else np.column_stack((f.coulomb, np.full(self.dof, 1.0 / f.width), f.viscous))

    def _acceleration(self, q: Array, qd: Array, tau: Array) -> Array:
        if self._pushed:
            tau = tau + self._pushes.torque(q)
        if self._held is not None:
            tau = tau + self._held
        if self._friction is not None:
            tau = tau - self._friction.torque(qd)
        if not self._stuck:
            return self.robot.forward_dynamics(q, qd, tau)
        free = np.delete(np.arange(self.dof), self._stuck)
        qdd = np.zeros(self.dof)
        rest = tau - self.robot.bias_torque(q, qd)
        qdd[free] = np.linalg.solve(self.robot.mass_matrix(q)[np.ix_(free, free)], rest[free])
        return qdd

    def _runge_kutta(self, tau: Array) -> None:
        q, v, h = self._q, self._qd, self._h
        if self._quick is not None and not (self._stuck or self._pushed):
            moved = self._quick(q, v, tau, self._rubbed, h)
            if moved is not None:
                self._q, self._qd = moved
                return
        a1 = self._acceleration(q, v, tau)
        v2 = v + (0.5 * h) * a1
        a2 = self._acceleration(q + (0.5 * h) * v, v2, tau)
        v3 = v + (0.5 * h) * a2
        a3 = self._acceleration(q + (0.5 * h) * v2, v3, tau)
        v4 = v + h * a3
        a4 = self._acceleration(q + h * v3, v4, tau)
        self._q = q + (h / 6.0) * (v + 2.0 * (v2 + v3) + v4)
        self._qd = v + (h / 6.0) * (a1 + 2.0 * (a2 + a3) + a4)

    def _semi_implicit(self, tau: Array) -> None:
        q, v, h = self._q, self._qd, self._h
        a = self._acceleration(q, v, tau)
        if self._friction is not None and np.any(self._friction.viscous):
            M = self.robot.mass_matrix(q)
            free = np.delete(np.arange(self.dof), self._stuck)
            M = M[np.ix_(free, free)]
            a = a.copy()
            a[free] = np.linalg.solve(M + np.diag(h * self._friction.viscous[free]), M @ a[free])
        self._qd = v + h * a
        self._q = q + h * self._qd
