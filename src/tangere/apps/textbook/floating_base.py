"""Any arm on a floating base: coordinates, the map between rates and velocities, dynamics, contacts, momentum.

    coordinates  q = (r_IB, chi_R, q_j)   body origin in inertial axes [m], orientation of the body, joints
    velocities   u = (I_v_B, B_omega_IB, qd_j)   body origin velocity in INERTIAL axes, angular velocity in BODY axes
    dynamics     M(q) udot + b(q, u) + g(q) = S^T tau + J_c^T F_c,   S = [0_{n x 6}  I]

chi_R is a quaternion (w, x, y, z) or yaw-pitch-roll. 003 writes the equation with tau instead of S^T tau, which holds
for a fixed base only. The last axis of q, u and forces is the coordinate, leading axes are batch axes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tangere.apps.textbook.coordinates import (
    apply,
    block_diagonal,
    quaternion_rate_inverse,
    quaternion_rate_matrix,
    ypr_rate_inverse,
    ypr_rate_matrix,
)
from tangere.errors import InvalidValue
from tangere.kinematics.checks import Array, checked
from tangere.kinematics.rotation import matrix_from_quaternion, matrix_from_ypr, pose, skew
from tangere.model.frames import check_transform
from tangere.model.inertia import check_body, with_payload
from tangere.model.model import Link, Model

Orientation = Literal["quaternion", "ypr"]


@dataclass(frozen=True)
class _Geometry:
    """Where everything is, in inertial axes; positions relative to the body origin r (small numbers, no cancelling)."""

    r: Array  # (..., 3) body origin
    R: Array  # (..., 3, 3) body axes
    z: list[Array]  # n joint axes (..., 3)
    o: list[Array]  # n joint origins (..., 3), relative to r
    rotations: list[Array]  # 1 + n: body, links
    origins: list[Array]  # 1 + n frame origins (..., 3), relative to r


@dataclass(frozen=True)
class FloatingBase:
    """An arm (Model, its payload included) whose base is fixed to a free rigid body.

    model.gravity is read in inertial axes. Joint friction and rotor inertia are not part of it (pure rigid bodies).
    """

    model: Model
    body: Link  # the base body: mass, centre of mass and inertia in the frame B, whose origin r_IB follows
    orientation: Orientation = "quaternion"
    T_body_arm: Array = field(default_factory=lambda: np.eye(4))  # (4, 4) where the arm's base sits on the body

    def __post_init__(self) -> None:
        if self.orientation not in ("quaternion", "ypr"):
            raise InvalidValue(f"orientation: got {self.orientation!r}, valid are 'quaternion' and 'ypr'")
        check_body(f"body {self.body.name}", self.body.mass, self.body.com, self.body.inertia)
        object.__setattr__(self, "T_body_arm", check_transform(self.T_body_arm, "T_body_arm"))  # lists become arrays

    @property
    def dof(self) -> int:
        """Number of velocities: 6 + joints."""
        return 6 + self.model.dof

    @property
    def coordinates(self) -> int:
        """Number of coordinates: 7 + joints with a quaternion, 6 + joints with yaw-pitch-roll."""
        return self.model.dof + (7 if self.orientation == "quaternion" else 6)

    # ------------------------------------------------------------------------------------------------- coordinates

    def velocity_map(self, q: ArrayLike) -> Array:
        """E_fb (..., 6 + n, coordinates) with u = E_fb qdot; E_fb = blkdiag(I, E_R, I), E_R for BODY omega (003)."""
        of = quaternion_rate_matrix if self.orientation == "quaternion" else ypr_rate_matrix
        return self._block(of(self._chi(self._q(q)), "body"))

    def velocity_map_inverse(self, q: ArrayLike) -> Array:
        """E_fb^+ (..., coordinates, 6 + n) with qdot = E_fb^+ u. Quaternion: 1/2 Hbar^T, valid everywhere, and qdot is
        tangent to the unit sphere; yaw-pitch-roll: refused in gimbal lock."""
        of = quaternion_rate_inverse if self.orientation == "quaternion" else ypr_rate_inverse
        return self._block(of(self._chi(self._q(q)), "body"))

    def selection(self) -> Array:
        """S (n, 6 + n) with S u = qd_j: the actuated part; generalised forces of the joints are S^T tau."""
        return np.eye(self.dof)[6:]

    # -------------------------------------------------------------------------------------------------- kinematics

    def body_pose(self, q: ArrayLike) -> Array:
        """T_inertial_body (..., 4, 4)."""
        q = self._q(q)
        return pose(self._rotation(q), q[..., :3])

    def link_poses(self, q: ArrayLike) -> Array:
        """T_inertial_link (..., n, 4, 4) of every link of the arm."""
        at = self._geometry(self._q(q))
        frames = zip(at.rotations[1:], at.origins[1:], strict=True)
        return np.stack([pose(R, at.r + origin) for R, origin in frames], axis=-3)

    def jacobian(self, q: ArrayLike, link: int | None = None, point: ArrayLike | None = None) -> Array:
        """Geometric Jacobian J (..., 6, 6 + n): (v, omega) = J u in inertial axes, linear rows first.

        At a point [m, link axes] of link 1 ... n, or of link 0, the floating body; without point at its origin; with
        neither at the tcp. A contact wrench F_c = (f, n) acting ON the arm there enters as J^T F_c; a force alone uses
        J[:3].
        """
        at = self._geometry(self._q(q))
        n = self.model.dof
        if link is not None and not (isinstance(link, int) and 0 <= link <= n):
            raise InvalidValue(f"link: got {link!r}, valid are 0 (the body), 1 to {n}, or None for the tcp")
        index = n if link is None else link
        if point is not None:
            local = checked(point, (3,), "point")
        else:
            local = np.asarray(self.model.T_flange_tcp)[:3, 3] if link is None else np.zeros(3)
        p = at.origins[index] + apply(at.rotations[index], local)
        J = np.zeros((*p.shape[:-1], 6, self.dof))
        J[..., :3, :3] = np.eye(3)
        J[..., :3, 3:6] = -skew(p) @ at.R
        J[..., 3:, 3:6] = at.R
        for i in range(index):
            if self.model.joints[i].kind == "revolute":
                J[..., :3, 6 + i] = np.cross(at.z[i], p - at.o[i])
                J[..., 3:, 6 + i] = at.z[i]
            else:
                J[..., :3, 6 + i] = at.z[i]
        return J

    # ---------------------------------------------------------------------------------------------------- dynamics

    def inverse_dynamics(self, q: ArrayLike, u: ArrayLike, udot: ArrayLike) -> Array:
        """M udot + b + g (..., 6 + n) by recursive Newton-Euler: the generalised force that this motion needs.

        Entries: force [N, inertial axes] and moment about the body origin [Nm, body axes] on the body, then joints.
        """
        return self._newton_euler(self._q(q), self._u(u, "u"), self._u(udot, "udot"), np.asarray(self.model.gravity))

    def bias_force(self, q: ArrayLike, u: ArrayLike) -> Array:
        """b(q, u) (..., 6 + n): Coriolis, centrifugal and gyroscopic forces, without gravity."""
        u = self._u(u, "u")
        return self._newton_euler(self._q(q), u, np.zeros_like(u), np.zeros(3))

    def gravity_force(self, q: ArrayLike) -> Array:
        """g(q) (..., 6 + n) = dU/dq in the directions of u."""
        q, rest = self._q(q), np.zeros(self.dof)
        return self._newton_euler(q, rest, rest, np.asarray(self.model.gravity))

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M(q) (..., 6 + n, 6 + n) by composite rigid bodies; kinetic energy is 1/2 u^T M u.

        Column k is the force of a unit acceleration: that of the composite body beyond joint k, taken about the joint.
        """
        at = self._geometry(self._q(q))
        n, bodies = self.model.dof, self._bodies()
        revolute = [joint.kind == "revolute" for joint in self.model.joints]
        pivots = [np.zeros(3), *at.o]
        M = np.zeros((*at.r.shape[:-1], self.dof, self.dof))
        m, h, inertia = 0.0, np.zeros(3), np.zeros((3, 3))  # of everything from link k outwards, about pivots[k]
        for k in reversed(range(n + 1)):
            R, link = at.rotations[k], bodies[k]
            c = at.origins[k] - pivots[k] + apply(R, link.com)
            m, h = m + link.mass, h + link.mass * c
            inertia = inertia + R @ link.inertia @ np.swapaxes(R, -1, -2) - link.mass * skew(c) @ skew(c)
            if k == 0:
                break
            z = at.z[k - 1]  # unit speed of this joint gives the outer part momentum P and, about its pivot, L
            P = np.cross(z, h) if revolute[k - 1] else m * z
            L = apply(inertia, z) if revolute[k - 1] else np.cross(h, z)
            for j in range(1, k + 1):
                about_j = L + np.cross(pivots[k] - pivots[j], P)
                M[..., 5 + j, 5 + k] = np.sum(at.z[j - 1] * (about_j if revolute[j - 1] else P), axis=-1)
            M[..., :3, 5 + k] = P
            M[..., 3:6, 5 + k] = apply(np.swapaxes(at.R, -1, -2), L + np.cross(pivots[k], P))
            M[..., 5 + k, : 5 + k] = M[..., : 5 + k, 5 + k]
            d = pivots[k] - pivots[k - 1]
            D, H = skew(d), skew(h)
            inertia = inertia - H @ D - D @ H - m * D @ D
            h = h + m * d
        M[..., :3, :3] = m * np.eye(3)
        M[..., :3, 3:6] = -skew(h) @ at.R
        M[..., 3:6, :3] = np.swapaxes(M[..., :3, 3:6], -1, -2)
        M[..., 3:6, 3:6] = np.swapaxes(at.R, -1, -2) @ inertia @ at.R
        return M

    def forward_dynamics(self, q: ArrayLike, u: ArrayLike, tau: ArrayLike, force: ArrayLike | None = None) -> Array:
        """udot (..., 6 + n) = M^-1 (S^T tau + force - b - g).

        tau (..., n) joint torques [Nm] or forces [N], gravity included; force (..., 6 + n) any other generalised force,
        such as J_c^T F_c of contacts or thrusters on the body.
        """
        q, u = self._q(q), self._u(u, "u")
        tau = checked(tau, (self.model.dof,), "tau")
        bias = self._newton_euler(q, u, np.zeros_like(u), np.asarray(self.model.gravity))
        right = -bias if force is None else self._u(force, "force") - bias
        right = np.array(np.broadcast_to(right, (*np.broadcast_shapes(right.shape[:-1], tau.shape[:-1]), self.dof)))
        right[..., 6:] += tau
        return np.asarray(np.linalg.solve(self.mass_matrix(q), right[..., None])[..., 0])

    def momentum(self, q: ArrayLike, u: ArrayLike) -> Array:
        """(..., 6): linear momentum [N s], then angular momentum about the INERTIAL origin [Nm s], inertial axes.

        Constant while no gravity, contact or thruster acts, whatever the joints do.
        """
        q, u = self._q(q), self._u(u, "u")
        p = apply(self.mass_matrix(q)[..., :6, :], u)  # conjugate to (I_v, B_omega): force axes as there
        about_body = apply(self._rotation(q), p[..., 3:])
        return np.concatenate([p[..., :3], about_body + np.cross(q[..., :3], p[..., :3])], axis=-1)

    def energy(self, q: ArrayLike, u: ArrayLike) -> tuple[Array, Array]:
        """(kinetic, potential) [J], each (...): 1/2 u^T M u and - sum m g . c, zero at the inertial origin."""
        q, u = self._q(q), self._u(u, "u")
        at = self._geometry(q)
        kinetic = 0.5 * np.sum(u * apply(self.mass_matrix(q), u), axis=-1)
        height = sum(
            link.mass * ((at.r + at.origins[k] + apply(at.rotations[k], link.com)) @ self.model.gravity)
            for k, link in enumerate(self._bodies())
        )
        return kinetic, np.asarray(-height)

    # ---------------------------------------------------------------------------------------------------- internal

    def _bodies(self) -> list[Link]:
        links = self.model.links
        return [self.body, *links[:-1], with_payload(links[-1], self.model.payload)]

    def _q(self, q: ArrayLike) -> Array:
        return checked(q, (self.coordinates,), "q")

    def _u(self, u: ArrayLike, name: str) -> Array:
        return checked(u, (self.dof,), name)

    def _chi(self, q: Array) -> Array:
        return q[..., 3 : self.coordinates - self.model.dof]

    def _rotation(self, q: Array) -> Array:
        return (matrix_from_quaternion if self.orientation == "quaternion" else matrix_from_ypr)(self._chi(q))

    def _block(self, E: Array) -> Array:
        return block_diagonal(np.eye(3), E, np.eye(self.model.dof))

    def _geometry(self, q: Array) -> _Geometry:
        R = self._rotation(q)
        R_prev, p_prev = R @ self.T_body_arm[:3, :3], R @ self.T_body_arm[:3, 3]
        at = _Geometry(q[..., :3], R, [], [], [R], [np.zeros_like(q[..., :3])])
        for joint, value in zip(self.model.joints, np.moveaxis(q[..., -self.model.dof :], -1, 0), strict=True):
            o = p_prev + R_prev @ joint.T_parent_joint[:3, 3]
            R_joint = R_prev @ joint.T_parent_joint[:3, :3]
            z = R_joint[..., 2]
            at.z.append(z)
            at.o.append(o)
            if joint.kind == "revolute":
                turn = np.zeros((*value.shape, 3, 3))
                turn[..., 0, 0], turn[..., 0, 1] = np.cos(value), -np.sin(value)
                turn[..., 1, 0], turn[..., 1, 1], turn[..., 2, 2] = np.sin(value), np.cos(value), 1.0
                R_joint = R_joint @ turn
            else:
                o = o + z * value[..., None]
            R_prev, p_prev = R_joint @ joint.T_joint_link[:3, :3], o + R_joint @ joint.T_joint_link[:3, 3]
            at.rotations.append(R_prev)
            at.origins.append(p_prev)
        return at

    def _newton_euler(self, q: Array, u: Array, udot: Array, gravity: Array) -> Array:
        """Recursive Newton-Euler: accelerations outwards, forces summed inwards; inertial axes.

        Gravity enters as an acceleration -g of everything, so that no weight has to be added link by link. Moments are
        taken about each joint's own origin: about a far point a light wrist would drown in the rounding of the arm.
        """
        at = self._geometry(q)
        omega, alpha = apply(at.R, u[..., 3:6]), apply(at.R, udot[..., 3:6])
        a = udot[..., :3] - gravity  # acceleration of the point s, which moves with the link now being looked at
        s = np.zeros(3)
        pivots = [s, *at.o]
        forces, moments = [], []
        for k, link in enumerate(self._bodies()):
            if k > 0:
                z, o, rate, change = at.z[k - 1], at.o[k - 1], u[..., 5 + k, None], udot[..., 5 + k, None]
                if self.model.joints[k - 1].kind == "revolute":
                    a, s = a + _rigid(omega, alpha, o - s), o
                    alpha = alpha + z * change + np.cross(omega, z * rate)
                    omega = omega + z * rate
                else:
                    a, s = a + _rigid(omega, alpha, at.origins[k] - s), at.origins[k]
                    a = a + z * change + 2.0 * np.cross(omega, z * rate)
            c = at.origins[k] + apply(at.rotations[k], link.com)
            inertia = at.rotations[k] @ link.inertia @ np.swapaxes(at.rotations[k], -1, -2)
            f = link.mass * (a + _rigid(omega, alpha, c - s))
            n = apply(inertia, alpha) + np.cross(omega, apply(inertia, omega))
            forces.append(f)
            moments.append(n + np.cross(c - pivots[k], f))
        shape = np.broadcast_shapes(q.shape[:-1], u.shape[:-1], udot.shape[:-1])
        out = np.zeros((*shape, self.dof))
        F, N = np.zeros(3), np.zeros(3)
        for k in reversed(range(self.model.dof + 1)):
            F, N = F + forces[k], N + moments[k]
            if k == 0:
                out[..., :3], out[..., 3:6] = F, apply(np.swapaxes(at.R, -1, -2), N)
            else:
                revolute = self.model.joints[k - 1].kind == "revolute"
                out[..., 5 + k] = np.sum(at.z[k - 1] * (N if revolute else F), axis=-1)
                N = N + np.cross(pivots[k] - pivots[k - 1], F)
        return out


def _rigid(omega: Array, alpha: Array, d: Array) -> Array:
    """alpha x d + omega x (omega x d): how the acceleration differs at a distance d on the same rigid body."""
    return np.asarray(np.cross(alpha, d) + np.cross(omega, np.cross(omega, d)))
