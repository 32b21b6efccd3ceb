"""What the controllers share: references that stand still, following one from the start, and gains as arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kernels.shapes import transforms
from tangere.kinematics.checks import checked
from tangere.types import Array, Friction, Reference, State, Trajectory

if TYPE_CHECKING:
    from tangere.robots import Robot

Goal = Trajectory | ArrayLike | None  # a motion, joint angles (n,) to stay at, or None: where the robot is at the start
Wrench = ArrayLike | Callable[[float], Array] | None  # (6,) constant, or a function of the time since the start


class Setpoint:
    """A trajectory that stands still at q (n,), with the tcp pose that belongs to it unless another is given.

    T: (4, 4), or UR's x y z rx ry rz.
    """

    duration = float("inf")  # it goes on

    def __init__(self, robot: Robot, q: ArrayLike, T: ArrayLike | None = None) -> None:
        q = checked(q, (robot.dof,), "q").copy()
        pose = robot.pose(q) if T is None else transforms(T).copy()
        rest, still = np.zeros(robot.dof), np.zeros(6)
        self._reference = Reference(q, rest, rest, pose, still, still)

    def at(self, time: float) -> Reference:
        """The same reference at any time."""
        return self._reference


def is_trajectory(goal: Goal) -> TypeGuard[Trajectory]:
    """Whether it is a motion over time (it has `at`), not joint angles."""
    return hasattr(goal, "at")


def trajectory_of(robot: Robot, goal: Goal) -> Trajectory | None:
    """The motion itself; joint angles become a Setpoint; None stays None until `started` knows where the robot is."""
    if goal is None or is_trajectory(goal):
        return goal
    return Setpoint(robot, goal)  # type: ignore[arg-type]


def started(robot: Robot, trajectory: Trajectory | None, state: State) -> Trajectory:
    """The trajectory, or a Setpoint where the robot is now."""
    return Setpoint(robot, state.q) if trajectory is None else trajectory


class Follower:
    """What controllers that follow a goal have in common: the reference since the start, and nothing to release."""

    def __init__(self, robot: Robot, goal: Goal, friction: Friction | None) -> None:
        self.robot = robot
        self.friction = friction
        self._goal = trajectory_of(robot, goal)

    def start(self, state: State) -> None:
        """Time counts from here."""
        self.trajectory = started(self.robot, self._goal, state)
        self._t0 = state.time

    def stop(self) -> None:
        """Nothing to release."""


def gain(value: ArrayLike, n: int, name: str) -> Array:
    """A gain as (n,), from one number or n; refused if negative: it would push away from the goal."""
    array = checked(value, (), name)
    if array.shape not in ((), (n,)):
        raise InvalidValue(f"{name}: expected one number or {n}, got shape {array.shape}")
    if np.any(array < 0.0):
        raise InvalidValue(f"{name}: must not be negative, got {array.tolist()}")
    return np.array(np.broadcast_to(array, (n,)))


def positive(value: float, name: str, unit: str = "") -> float:
    """The value, refused unless it is positive and finite; unit: " [s]", for the message."""
    if not (np.isfinite(value) and value > 0.0):
        raise InvalidValue(f"{name}: must be positive and finite{unit}, got {value!r}")
    return float(value)


def critical(kp: Array, ratio: float = 1.0) -> Array:
    """kv = 2 zeta sqrt(kp): the damping of edd + kv ed + kp e = 0 (000 eq 103); zeta = 1 does not overshoot."""
    return np.asarray(2.0 * ratio * np.sqrt(kp))


def wrench_of(wrench: Wrench) -> Callable[[float], Array] | None:
    """A wrench as a function of time, or None."""
    if wrench is None or callable(wrench):
        return wrench
    constant = checked(wrench, (6,), "wrench").copy()
    return lambda _: constant
