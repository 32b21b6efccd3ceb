"""Forward and differential kinematics of a serial chain, over any number type.

All results are in base axes. Geometric Jacobians have the linear rows first: (v, omega) = J qd.
"""

from __future__ import annotations

from dataclasses import dataclass

from tangere.kinematics import vectors as v
from tangere.kinematics.chain import Chain, is_identity, steps
from tangere.kinematics.vectors import Matrix, Scalar, Vector


@dataclass(frozen=True)
class Frames:
    """Joint axes and origins, and the links' orientations (with their joints' turns), in the base frame."""

    R: list[Matrix]
    o: list[Vector]
    axes: list[Vector]

    def axis(self, i: int) -> Vector:
        """z axis of joint i."""
        return self.axes[i]


def frames(chain: Chain, q: Vector) -> Frames:
    """All joint frames: T_i = T_{i-1} [R_i, p_i] motion(q_i) (000 eqs 2-52 corrected)."""
    W, start = v.IDENTITY, [0.0, 0.0, 0.0]  # orientation of the working frame, and a point to count from
    arm = [0.0, 0.0, 0.0]  # from that point to the joint, in working axes: summed there, turned once
    out = Frames([], [], [])
    for step in steps(chain, q):
        arm = v.add(arm, step.p)
        origin = v.add(start, v.matvec(W, arm))
        if step.before is not None or not is_identity(step.R) or step.after is not None:
            W = [step.into(row) for row in W]  # W Rz(before) R Rz(after), row by row
            start, arm = origin, [0.0, 0.0, 0.0]
        out.o.append(origin)
        out.axes.append([row[2] for row in W])
        out.R.append(W if step.angle is None else [v.unturn(*step.angle, row) for row in W])
    return out


def _pose(R: Matrix, o: Vector, R_local: Matrix, p_local: Vector) -> list[Scalar]:
    """[R, o] [R_local, p_local] as sixteen numbers, row by row."""
    p = v.add(o, v.matvec(R, p_local))
    A = v.matmul(R, R_local)
    rows = [[*A[i], p[i]] for i in range(3)]
    return [*rows[0], *rows[1], *rows[2], 0.0, 0.0, 0.0, 1.0]


def pose(chain: Chain, q: Vector) -> list[Scalar]:
    """T_base_tcp, row by row."""
    f = frames(chain, q)
    T = _pose(f.R[-1], f.o[-1], chain.R_tcp, chain.p_tcp)
    v.alike([[T[:4], T[4:8], T[8:12]]])
    return T


def link_poses(chain: Chain, q: Vector) -> list[Scalar]:
    """T_base_link of every link (the frames users see, DH for a UR), row by row."""
    f = frames(chain, q)
    poses = [_pose(f.R[i], f.o[i], chain.R_link[i], chain.p_link[i]) for i in range(chain.dof)]
    v.alike([[pose[:4], pose[4:8], pose[8:12]] for pose in poses])
    return [x for pose in poses for x in pose]


def _columns(chain: Chain, f: Frames, point: Vector, last: int) -> tuple[Matrix, Matrix]:
    """Columns z_i x (point - o_i) and z_i of the joints up to `last`; zero beyond."""
    linear, angular = [], []
    for i in range(chain.dof):
        if i > last:
            linear.append([0.0] * 3)
            angular.append([0.0] * 3)
        else:
            turning = v.cross(f.axis(i), v.subtract(point, f.o[i]))
            linear.append(v.add(v.scale(chain.turns[i], turning), v.scale(chain.slides[i], f.axis(i))))
            angular.append(v.scale(chain.turns[i], f.axis(i)))
    return linear, angular


def _rows(linear: Matrix, angular: Matrix) -> list[Scalar]:
    return [column[k] for block in (linear, angular) for k in range(3) for column in block]


def jacobian(chain: Chain, q: Vector) -> list[Scalar]:
    """Geometric Jacobian (6, n) at the tcp: J_i = (z_i x (p - o_i), z_i)."""
    f = frames(chain, q)
    point = v.add(f.o[-1], v.matvec(f.R[-1], chain.p_tcp))
    return _rows(*_columns(chain, f, point, chain.dof - 1))


def point_jacobian(chain: Chain, link: int, q: Vector, point: Vector) -> list[Scalar]:
    """Geometric Jacobian (6, n) at a point given in the frame of link number `link` (counted from 0)."""
    f = frames(chain, q)
    local = v.add(chain.p_link[link], v.matvec(chain.R_link[link], point))
    return _rows(*_columns(chain, f, v.add(f.o[link], v.matvec(f.R[link], local)), link))


def link_jacobians(chain: Chain, q: Vector) -> list[Scalar]:
    """Jv (n, 3, n) and Jw (n, 3, n) at every link's centre of mass (000 eqs 7-55 with eqs 50 and 55 corrected)."""
    f = frames(chain, q)
    linear, angular = [], []
    for k in range(chain.dof):
        com = v.add(f.o[k], v.matvec(f.R[k], chain.com[k]))
        lin, ang = _columns(chain, f, com, k)
        linear += [column[r] for r in range(3) for column in lin]
        angular += [column[r] for r in range(3) for column in ang]
    return linear + angular


def jacobian_rate_times_velocity(chain: Chain, q: Vector, qd: Vector) -> list[Scalar]:
    """Jdot qd (6,): acceleration of the tcp, linear and angular, while qdd = 0.

    alpha_i = alpha_{i-1} + omega_{i-1} x z_i qd_i and the acceleration of the point by the rigid-body rule
    a + alpha x r + omega x (omega x r).
    """
    f = frames(chain, q)
    omega, alpha, a = [0.0] * 3, [0.0] * 3, [0.0] * 3
    origin = [0.0] * 3
    for i in range(chain.dof):
        r = v.subtract(f.o[i], origin)
        a = _carried(a, alpha, omega, r)
        rate = v.scale(qd[i], f.axis(i))
        swing = v.cross(omega, rate)
        a = v.add(a, v.scale(2.0 * chain.slides[i], swing))
        alpha = v.add(alpha, v.scale(chain.turns[i], swing))
        omega = v.add(omega, v.scale(chain.turns[i], rate))
        origin = f.o[i]
    a = _carried(a, alpha, omega, v.matvec(f.R[-1], chain.p_tcp))
    return [*a, *alpha]


def _carried(a: Vector, alpha: Vector, omega: Vector, r: Vector) -> Vector:
    """Acceleration of the point at r on a body whose origin accelerates with a."""
    return v.add(a, v.add(v.cross(alpha, r), v.cross(omega, v.cross(omega, r))))
