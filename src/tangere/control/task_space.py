"""For the controllers that work in task space, cheap, since needed every period: error and inertia of the tool, bounds.

Bounds keep their torques within the arm: a brake for joints that get too fast, and torque limits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tangere.errors import InvalidValue
from tangere.kernels.laws import task
from tangere.kernels.periods import squared
from tangere.types import Array, Command, Reference

if TYPE_CHECKING:
    from tangere.robots import Robot

# m per rad: how much turning counts as how much moving where both are compared. 0.2 m: the hand of a UR is about that
# long; it makes the inertia of a UR10e's tool about its axes (0.03 ... 0.3 kg m2) comparable to its mass (7 ... 10 kg).
LENGTH = 0.2
# The cap on the apparent mass is this many times the median (over all poses) of its largest value at a pose. Measured
# on a UR10e, tool driven at 0.22 m/s against its reach and back: at 4 the joints pass their speed limits by a third, at
# 1 they stay within them, at 0.25 the tool gets sluggish in half of its workspace.
SINGULAR = 1.0
POSES = 128  # seeded random poses for that median: it is known to some 10 % then, which is plenty for a threshold


def pose_error(T_des: Array, T: Array) -> Array:
    """(r_d - r; dphi) (6,) [m, rad] in base axes, dphi = log(R_d R^T): the step that takes T to T_des (003).

    The law pose_error of the kernel table on plain numbers; controllers step it compiled. The same as
    kinematics.rotation.rotation_error, for one pose and without checks.
    """
    return np.array(task.pose_error(T_des.ravel().tolist(), T.ravel().tolist()))


def tool_reference(robot: Robot, reference: Reference) -> tuple[Array, Array, Array]:
    """T (4, 4), v (6,), a (6,) of the tcp, from the joints where the reference has none at the tool."""
    if reference.T is not None and reference.v is not None and reference.a is not None:
        return reference.T, reference.v, reference.a
    J = robot.jacobian(reference.q)
    a = J.dot(reference.qdd) + robot.jacobian_rate_times_velocity(reference.q, reference.qd)
    return robot.pose(reference.q), J.dot(reference.qd), a


class ToolInertia:
    """The apparent inertia of the tool, capped near singularities.

        Lambda = S (S J M^-1 J^T S, eigenvalues raised to at least 1 / mass_max)^-1 S,  S = diag(1, 1, 1, l, l, l)

    Away from singularities this is 003's Lambda = (J M^-1 J^T)^-1. Near them Lambda grows beyond all bounds; here each
    eigen-direction keeps min(1 / s^2, mass_max): a damped inverse with lam^2 = max(0, 1/mass_max - s^2) per direction,
    continuous, exact wherever s^2 >= 1/mass_max, with s the singular values of S J M^-1/2. J^T Lambda J M^-1 then has
    eigenvalues min(1, s^2 mass_max): the share of each joint-space direction that the task still commands.
    """

    def __init__(self, robot: Robot, mass_max: float | None = None, length: float = LENGTH) -> None:
        if not (math.isfinite(length) and length > 0.0):
            raise InvalidValue(f"length: must be positive [m per rad], got {length!r}")
        self.robot = robot
        n = robot.dof
        S = np.repeat([1.0, length], 3)
        self._scale = np.outer(S, S)
        self._per_scale = 1.0 / S**2
        self._q = np.zeros((6, n))
        self._rest = np.zeros((6, n))
        self.mass_max = self._regular() * SINGULAR if mass_max is None else float(mass_max)
        if not (math.isfinite(self.mass_max) and self.mass_max > 0.0):
            raise InvalidValue(f"mass_max: must be positive [kg], got {mass_max!r}")
        self._floor = 1.0 / self.mass_max

    def mobility(self, q: Array, J: Array) -> Array:
        """J M^-1 J^T (6, 6), the inverse of Lambda, defined everywhere: [1/kg], [1/(kg m)], [1/(kg m2)].

        M^-1 J^T comes from the forward dynamics at rest, a joint torque of J's row plus gravity each: faster than
        factoring M.
        """
        self._q[:] = q
        rows = self.robot.forward_dynamics(self._q, self._rest, J + self.robot.gravity_torque(q))
        return np.asarray(rows.dot(J.T))

    def capped(self, q: Array, J: Array) -> tuple[Array, float]:
        """(Lambda (6, 6), share of the weakest direction that the task commands: 1 where the cap is not at work)."""
        A = self.mobility(q, J)
        try:
            Lambda: Array = np.asarray(np.linalg.inv(A), dtype=np.float64)
            if 0.0 < Lambda.diagonal().dot(self._per_scale) < self.mass_max:
                return Lambda, 1.0  # the trace of S^-1 Lambda S^-1 is no less than its largest eigenvalue
        except np.linalg.LinAlgError:
            pass  # exactly singular
        A *= self._scale
        w, V = np.linalg.eigh(A)
        share = min(1.0, float(w[0]) * self.mass_max)
        np.maximum(w, self._floor, out=w)
        Lambda = (V / w).dot(V.T)
        Lambda *= self._scale
        return Lambda, share

    def _regular(self) -> float:
        """Median over poses of the largest apparent mass [kg] in those directions the arm has (a planar arm has 3)."""
        robot, rng = self.robot, np.random.default_rng(1)
        low, high = np.maximum(robot.q_min, -math.pi), np.minimum(robot.q_max, math.pi)
        largest = []
        for q in rng.uniform(low, high, (POSES, robot.dof)):
            w = np.linalg.eigvalsh(self.mobility(q, robot.jacobian(q)) * self._scale)
            largest.append(1.0 / w[w > 1e-12 * w[-1]][0])  # 1e-12: rounding of the directions the arm does not have
        return float(np.median(largest))


SPEED = 0.8  # of qd_max, where the brake begins: the rest is room to brake in before the arm's own supervision trips
BRAKE = 20.0  # 1/s: excess speed dies out with this rate through M_ii: ten periods or more of any control loop
TORQUE = 0.95  # of tau_max: the rest is left to friction compensation errors and to the drives


class Bounds:
    """Limits a task-space torque: joint speeds first, then torques.

        tau -= M_ii BRAKE (qd_i beyond SPEED qd_max_i),  tau = h + alpha (tau - h),  h = C qd + g

    with the largest alpha in [0, 1] for which |tau| <= TORQUE tau_max: gravity stays compensated and the task keeps
    its direction, it only gets slower. Near a singularity a straight path asks for any joint speed; this bounds it.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._speed = SPEED * robot.qd_max
        self._torque = TORQUE * robot.tau_max
        self._per_speed = 1.0 / self._speed
        self._per_torque = 1.0 / self._torque

    def command(self, q: Array, qd: Array, tau: Array, note: str = "") -> Command:
        """The torque within the bounds; tau (n,) may be changed. Below a microsecond while nothing is at one."""
        if squared(qd, self._per_speed) > 1.0:  # cheaper than joint by joint, and mostly below
            excess = qd - np.minimum(np.maximum(qd, -self._speed), self._speed)
            if excess.any():
                tau -= BRAKE * self.robot.mass_matrix(q).diagonal() * excess
                note = f"{note}; joint speed limited" if note else "joint speed limited"
        if squared(tau, self._per_torque) > 1.0 and abs(tau * self._per_torque).max() > 1.0:
            tau = self._shortened(q, qd, tau)
            note = f"{note}; torque limited" if note else "torque limited"
        return Command(tau, note)

    def _shortened(self, q: Array, qd: Array, tau: Array) -> Array:
        h = self.robot.bias_torque(q, qd)
        task = tau - h
        size = np.abs(task)
        room = self._torque - np.sign(task) * h
        alpha = np.min(room[size > 0.0] / size[size > 0.0])
        return np.clip(h + min(max(alpha, 0.0), 1.0) * task, -self._torque, self._torque)
