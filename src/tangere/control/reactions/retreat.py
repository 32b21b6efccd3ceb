"""Reaction: back off along the force, a stated distance at a stated speed, then hold."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import numpy as np

from tangere.control.reactions.handover import BRAKE, RELEASE, Handover, residual_of, soft_hold
from tangere.control.setpoint import positive
from tangere.kinematics.resolution import damped_inverse
from tangere.types import Array, Command, Controller, Event, Friction, State

if TYPE_CHECKING:
    from tangere.robots import Robot

DISTANCE = 0.08  # m: a hand fits between (its thickness is 30 mm) and can be drawn out
SPEED = 0.25  # m/s: what is taken as slow beside a person (ISO 10218-1, reduced speed)
RAMP = 0.08  # s from rest to that speed and back: 1.5 * 0.25 / 0.08 = 5 m/s2 at most
KP = 100.0  # 1/s2: computed torque's own default
KV = 20.0  # 1/s: critical
# m: damping of J_point^+. A direction in which a rad of any joint moves the point by less than 5 cm is given up: the
# other joints would have to turn by a radian and more for the 8 cm
DAMPING = 0.05
EDGE = 0.02  # rad (m) kept from the joint limits


class Retreat(Handover):
    """Runs a controller until an Event is given, then backs off along the force and holds.

    The direction e (n,) of the joints:

        M^-1 r             the acceleration that the touch itself causes, where only the residual r is known: the
                           touched point moves with F^T (J M^-1 J^T) F > 0, away from what pushes, wherever it is
        J_point^+ F        where the event says link, point and force: the point straight along F

    scaled so that the fastest of the touched point (if known), the link origins and the tcp moves at `speed` [m/s] and
    travels `distance` [m] from q_c, where the arm was when it was told. It brakes and turns back at once:

        qdd = e sdd + (kv + BRAKE exp(-t / RELEASE)) (e sd - qd) + kp (q_c + e s - q),   kp = KP, kv critical
        tau = M qdd + C qd + g + friction

    A joint limit ends the motion before. A second touch from the other side ends it where the arm is: it then holds
    softly. Without a direction (a residual of zero) it brakes and holds.
    """

    note = "retreating after a touch"
    brakes = False  # the way back brakes itself, against its own speed

    def __init__(
        self,
        controller: Controller,
        robot: Robot,
        *,
        distance: float = DISTANCE,
        speed: float = SPEED,
        friction: Friction | None = None,
    ) -> None:
        super().__init__(controller, robot)
        self.distance, self.speed = positive(distance, "distance"), positive(speed, "speed")
        self.friction = friction
        self._direction = np.zeros(robot.dof)
        self.blocked = False  # whether something else was touched on the way

    def start(self, state: State) -> None:
        """Start the controller; an event from before is forgotten."""
        self.blocked = False
        self._direction = np.zeros(self.robot.dof)
        super().start(state)

    def on_event(self, event: Event) -> None:
        """The touch to retreat from; a later one against the retreat ends it."""
        if self.event is not None and event.begins:
            self.blocked |= float(residual_of(event, self.robot.dof) @ self._direction) < 0.0
        super().on_event(event)

    def answer(self, event: Event, state: State) -> Controller:
        """The way back from here."""
        self._direction = direction(self.robot, event, state.q)
        share = _within_limits(self.robot, state.q, self.distance * self._direction)
        return _Way(self, self._direction, share * self.distance)


class _Way:
    """Computed torque along the retreat, and the soft hold if something is in its way."""

    def __init__(self, retreat: Retreat, direction: Array, distance: float) -> None:
        self._retreat, self._direction, self._distance = retreat, direction, distance
        self._soft: Controller | None = None

    def start(self, state: State) -> None:
        self._q0, self._t0 = state.q, state.time

    def step(self, state: State) -> Command:
        retreat = self._retreat
        if retreat.blocked:
            if self._soft is None:
                self._soft = soft_hold(retreat.robot, state.q, retreat.friction)
                self._soft.start(state)
            return Command(self._soft.step(state).tau, "held: touched from the other side")
        t = state.time - self._t0
        s, sd, sdd = stroke(t, self._distance, retreat.speed)
        e = self._direction
        qdd = KP * (self._q0 + s * e - state.q)
        qdd += (KV + BRAKE * exp(-t / RELEASE)) * (sd * e - state.qd)
        qdd += sdd * e
        tau = retreat.robot.inverse_dynamics(state.q, state.qd, qdd)
        if retreat.friction is not None:
            tau += retreat.friction.torque(state.qd)
        return Command(tau)

    def stop(self) -> None:
        """Nothing to release."""


def direction(robot: Robot, event: Event, q: Array) -> Array:
    """Joint motion (n,) [rad/m] away from the touch: per metre of the fastest point; zero where nothing tells it."""
    n = robot.dof
    r = residual_of(event, n)
    points = [robot.jacobian(q)[:3], *(robot.jacobian(q, link=i + 1)[:3] for i in range(n))]
    e = np.asarray(np.linalg.solve(robot.mass_matrix(q), r))
    point, force = (np.asarray(x, dtype=np.float64) for x in (event.point, event.force))  # None becomes NaN
    said = event.link in range(1, n + 1) and point.shape == force.shape == (3,)
    if said and np.isfinite(point).all() and np.isfinite(force).all():
        J = robot.jacobian(q, link=event.link, point=point)[:3]
        along = damped_inverse(J, DAMPING) @ force
        points.append(J)
        if float(J.dot(along) @ force) > 0.0:  # else the joints cannot move it that way
            e = along
    fastest = max(float(np.linalg.norm(J.dot(e))) for J in points)
    return e / fastest if fastest > 1e-9 else np.zeros(n)


def stroke(t: float, distance: float, speed: float, ramp: float = RAMP) -> tuple[float, float, float]:
    """s [m], sd, sdd at t of a way from rest to rest: up to `speed` within `ramp` [s] as 3 u^2 - 2 u^3, and down again.

    A way shorter than both ramps takes a lower speed.
    """
    top = min(speed, distance / ramp)
    if top <= 0.0:
        return 0.0, 0.0, 0.0
    end = distance / top + ramp
    if t >= end:
        return distance, 0.0, 0.0
    back = end - t
    v = min(max(t, 0.0), back) / ramp  # the end is the start run backwards
    if v >= 1.0:
        return top * (t - 0.5 * ramp), top, 0.0
    s = top * ramp * v**3 * (1.0 - 0.5 * v)
    sign = 1.0 if t <= back else -1.0
    return (s if sign > 0.0 else distance - s), top * v * v * (3.0 - 2.0 * v), sign * top * 6.0 * v * (1.0 - v) / ramp


def _within_limits(robot: Robot, q: Array, way: Array) -> float:
    """The share (0 to 1) of a joint motion that stays EDGE away from every joint limit."""
    room = np.where(way > 0.0, robot.q_max - EDGE - q, q - robot.q_min - EDGE)
    moving = np.abs(way) > 1e-12
    return float(np.clip(np.min(room[moving] / np.abs(way[moving]), initial=1.0), 0.0, 1.0))
