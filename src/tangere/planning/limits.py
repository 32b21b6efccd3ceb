"""Joint limits along a trajectory: where they are broken, by how much, and how much slower would do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.robots import Robot
from tangere.types import Array

# Excess (share of the limit) that counts as none: rounding of a stretch that meets the limit exactly.
SLACK = 1e-9
# A stretched motion ends this much below the limit that made it slow: between two samples h apart the velocity may
# rise above both by |qddd| h^2/8 (1e-5 rad/s at 100 rad/s3 and 1 ms), so that it also holds on any finer grid.
MARGIN = 1e-3
# A gravity torque above this share of the torque limit leaves nothing that going slower could bring.
HOPELESS = 0.999


@dataclass(frozen=True, slots=True)
class Limits:
    """Symmetric limits per joint, (n,) each; None: not asked."""

    velocity: Array  # [rad/s]
    acceleration: Array | None = None  # [rad/s2]
    torque: Array | None = None  # [Nm] of the rigid body; friction is not in it

    @classmethod
    def of(cls, robot: Robot, *, acceleration: ArrayLike | None = None, torque: bool | ArrayLike = False) -> Limits:
        """The arm's own velocities; accelerations as given; torque=True: the arm's own torques, or n numbers."""
        tau = None if torque is False else robot.tau_max if torque is True else _n(torque, robot.dof, "torque")
        return cls(robot.qd_max, None if acceleration is None else _n(acceleration, robot.dof, "acceleration"), tau)


@dataclass(frozen=True, slots=True)
class Violation:
    """One limit that is broken, where it is broken most."""

    kind: str  # "position", "velocity", "acceleration", "torque"
    joint: int  # counted from 1
    index: int  # sample
    value: float  # [rad, rad/s, rad/s2, Nm]
    limit: float
    factor: float  # so many times slower would do; inf where no slowness helps

    def text(self, time: float, T: Array) -> str:
        """A sentence for people."""
        unit = {"position": "rad", "velocity": "rad/s", "acceleration": "rad/s2", "torque": "Nm"}[self.kind]
        place = ", ".join(f"{x:.3f}" for x in T[:3, 3])
        return (
            f"joint {self.joint} would need a {self.kind} of {self.value:.4g} {unit} at t = {time:.4g} s, tool at "
            f"({place}) m; its limit is {self.limit:.4g} {unit}"
        )


def violations(robot: Robot, limits: Limits, period: float, q: Array, qd: Array, qdd: Array) -> list[Violation]:
    """Every kind of limit that the samples (k, n) break, worst joint and sample of each, position first.

    The velocity is checked twice, as given and as step over period: a jump between two samples has no other trace.
    """
    found = []
    outside = np.maximum(robot.q_min - q, q - robot.q_max)
    if np.any(outside > SLACK):
        i, j = _worst(outside)
        limit = robot.q_max[j] if q[i, j] > robot.q_max[j] else robot.q_min[j]
        found.append(Violation("position", j + 1, i, float(q[i, j]), float(limit), np.inf))
    step = np.zeros_like(q)
    step[:-1] = np.diff(q, axis=0) / period
    fastest = np.where(np.abs(step) > np.abs(qd), step, qd)
    found += _symmetric("velocity", fastest, limits.velocity, 1.0)
    if limits.acceleration is not None:
        found += _symmetric("acceleration", qdd, limits.acceleration, 0.5)
    if limits.torque is not None:
        found += _torque(robot, limits.torque, q, qd, qdd)
    return found


def _symmetric(kind: str, x: Array, limit: Array, power: float) -> list[Violation]:
    share = np.abs(x) / limit
    i, j = _worst(share)
    if share[i, j] <= 1.0 + SLACK:
        return []
    return [Violation(kind, j + 1, i, float(x[i, j]), float(limit[j]), float(share[i, j] ** power))]


def _torque(robot: Robot, limit: Array, q: Array, qd: Array, qdd: Array) -> list[Violation]:
    """tau(k times slower) = g + (tau - g)/k^2: k from the room that gravity leaves."""
    g = robot.gravity_torque(q)
    tau = robot.inverse_dynamics(q, qd, qdd)
    share = np.abs(tau) / limit
    i, j = _worst(share)
    if share[i, j] <= 1.0 + SLACK:
        return []
    moving = tau - g
    room = np.where(moving > 0.0, limit - g, limit + g)
    hopeless = np.any(np.abs(g) > HOPELESS * limit)
    factor = np.inf if hopeless else float(np.sqrt(np.max(np.abs(moving) / np.maximum(room, 1e-9 * limit))))
    return [Violation("torque", j + 1, i, float(tau[i, j]), float(limit[j]), factor)]


def _worst(x: Array) -> tuple[int, int]:
    i, j = np.unravel_index(int(np.argmax(x)), x.shape)
    return int(i), int(j)


def _n(value: ArrayLike, n: int, name: str) -> Array:
    limit = np.broadcast_to(np.asarray(value, dtype=np.float64), (n,))
    if not np.all(limit > 0.0):
        raise InvalidValue(f"{name}: limits must be positive, got {np.asarray(value).tolist()}")
    return np.asarray(limit)
