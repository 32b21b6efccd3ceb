"""Newton-Euler recursions over any number type: inverse dynamics, momentum, gravity, energy.

    M(q) qdd + C(q, qd) qd + g(q) = tau

Each link is (m, h, S) about its joint frame (kinematics.chain). With U = [alpha]x + [omega]x[omega]x, the matrix that
gives accelerations U r relative to the frame's origin, force and moment of a body are

    f = m a + U h,      n = h x a + axial(U S - (U S)^T)

which is Newton's and Euler's law (003) in moments of mass: cheaper than I alpha + omega x I omega.
"""

from __future__ import annotations

from dataclasses import dataclass

from tangere.kinematics import vectors as v
from tangere.kinematics.chain import Body, Chain, Step, steps
from tangere.kinematics.vectors import Matrix, Scalar, Vector


def _acceleration_matrix(omega: Vector, alpha: Vector) -> Matrix:
    """U = [alpha]x + [omega]x [omega]x."""
    x, y, z = omega
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return [
        [-(yy + zz), xy - alpha[2], xz + alpha[1]],
        [xy + alpha[2], -(xx + zz), yz - alpha[0]],
        [xz - alpha[1], yz + alpha[0], -(xx + yy)],
    ]


def _axial(U: Matrix, S: Matrix, omega: Vector) -> Vector:
    """axial(U S - (U S)^T); differences of U's diagonal are differences of omega's squares."""
    xx, yy, zz = (w * w for w in omega)
    return [
        (zz - yy) * S[1][2] + U[2][0] * S[0][1] + U[2][1] * S[1][1] - U[1][0] * S[0][2] - U[1][2] * S[2][2],
        (xx - zz) * S[0][2] + U[0][1] * S[1][2] + U[0][2] * S[2][2] - U[2][0] * S[0][0] - U[2][1] * S[0][1],
        (yy - xx) * S[0][1] + U[1][0] * S[0][0] + U[1][2] * S[0][2] - U[0][1] * S[1][1] - U[0][2] * S[1][2],
    ]


def body_wrench(body: Body, x: Motion) -> tuple[Vector, Vector]:
    """Force and moment, about the frame's origin, that make the body move so."""
    force = v.add(v.scale(body.m, x.a), v.matvec(x.U, body.h))
    return force, v.add(v.cross(body.h, x.a), _axial(x.U, body.S, x.omega))


@dataclass(frozen=True)
class Motion:
    """Working frame i in motion: angular velocity and acceleration, that of its origin (gravity included), and U."""

    omega: Vector
    alpha: Vector
    a: Vector
    U: Matrix


def motions(chain: Chain, path: list[Step], qd: Vector, qdd: Vector, *, gravity: bool) -> list[Motion]:
    """Velocities and accelerations of all working frames, from the base up.

    Joints with parallel axes are taken together: with (w, b) the motion before the group and (r, rr) the sums of their
    rates and accelerations, omega = w + z r and alpha = b + w x z r + z rr.
    """
    omega, alpha = [0.0] * 3, [0.0] * 3
    a = [-x for x in chain.gravity] if gravity else [0.0] * 3  # gravity as an acceleration of the base
    U: Matrix = [[0.0] * 3 for _ in range(3)]
    w, b, rate, rate2 = omega, alpha, 0.0, 0.0
    out = []
    for i, step in enumerate(path):
        a = step.into(v.add(a, v.matvec(U, step.p)))
        if not step.continues:
            w, b, rate, rate2 = step.into(omega), step.into(alpha), 0.0, 0.0
        rate, rate2 = rate + chain.turns[i] * qd[i], rate2 + chain.turns[i] * qdd[i]
        slide, slide2 = chain.slides[i] * qd[i], chain.slides[i] * qdd[i]
        a = [a[0] + 2.0 * (w[1] * slide), a[1] - 2.0 * (w[0] * slide), a[2] + slide2]
        omega = [w[0], w[1], w[2] + rate]
        alpha = [b[0] + w[1] * rate, b[1] - w[0] * rate, b[2] + rate2]
        U = _acceleration_matrix(omega, alpha)
        out.append(Motion(omega, alpha, a, U))
    return out


def inverse_dynamics(chain: Chain, q: Vector, qd: Vector, qdd: Vector, *, gravity: bool = True) -> list[Scalar]:
    """tau = M qdd + C qd + g by the recursive Newton-Euler algorithm (003; 000 eq 87)."""
    path = steps(chain, q)
    moving = motions(chain, path, qd, qdd, gravity=gravity)
    bodies = [step.of_body(body) for step, body in zip(path, chain.bodies, strict=True)]
    tau = _projected(chain, path, [body_wrench(b, x) for b, x in zip(bodies, moving, strict=True)])
    return [t + b * x for t, b, x in zip(tau, chain.rotor, qdd, strict=True)]


def _projected(chain: Chain, path: list[Step], wrenches: list[tuple[Vector, Vector]]) -> list[Scalar]:
    """Joint torques of the links' wrenches, summed from the tip down."""
    tau: list[Scalar] = [0.0] * chain.dof
    f, n = [0.0] * 3, [0.0] * 3
    for i in reversed(range(chain.dof)):
        f, n = v.add(wrenches[i][0], f), v.add(wrenches[i][1], n)
        tau[i] = chain.turns[i] * n[2] + chain.slides[i] * f[2]
        f, n = wrench_out(path[i], f, n)
    return tau


def wrench_out(step: Step, f: Vector, n: Vector) -> tuple[Vector, Vector]:
    """A force and a moment about frame i's origin, in frame i-1 about that one's."""
    force = step.out(f)
    return force, v.add(step.out(n), v.cross(step.p, force))


def bias_torque(chain: Chain, q: Vector, qd: Vector) -> list[Scalar]:
    """C qd + g: the torque that keeps qdd = 0."""
    return inverse_dynamics(chain, q, qd, [0.0] * chain.dof)


def gravity_torque(chain: Chain, q: Vector) -> list[Scalar]:
    """g(q) = dU/dq (000 eqs 69, 80-83): the moment of each subtree's weight about its joint axis."""
    path = steps(chain, q)
    weight = []  # minus gravity, in each frame
    a = [-x for x in chain.gravity]
    for step in path:
        a = step.into(a)
        weight.append(a)
    tau: list[Scalar] = [0.0] * chain.dof
    h, m = [0.0] * 3, 0.0
    for i in reversed(range(chain.dof)):
        h, m = v.add(path[i].of_link(chain.bodies[i].h), h), chain.bodies[i].m + m
        a = weight[i]
        tau[i] = chain.turns[i] * (h[0] * a[1] - h[1] * a[0]) + chain.slides[i] * (m * a[2])
        h = v.add(path[i].out(h), v.scale(m, path[i].p))
    return tau


def _velocities(chain: Chain, path: list[Step], qd: Vector) -> list[tuple[Vector, Vector]]:
    """(omega, v) of every joint frame, in its own axes."""
    omega, vel = [0.0] * 3, [0.0] * 3
    out = []
    for i, step in enumerate(path):
        vel = step.into(v.add(vel, v.cross(omega, step.p)))
        omega = step.into(omega)
        omega = [omega[0], omega[1], omega[2] + chain.turns[i] * qd[i]]
        vel = [vel[0], vel[1], vel[2] + chain.slides[i] * qd[i]]
        out.append((omega, vel))
    return out


def _body_momentum(body: Body, omega: Vector, vel: Vector) -> tuple[Vector, Vector]:
    """Linear momentum m v + omega x h and angular momentum I omega + h x v about the frame's origin."""
    S = body.S
    inertia = [
        [S[1][1] + S[2][2], -S[0][1], -S[0][2]],
        [-S[0][1], S[0][0] + S[2][2], -S[1][2]],
        [-S[0][2], -S[1][2], body.polar],
    ]
    linear = v.add(v.scale(body.m, vel), v.cross(omega, body.h))
    return linear, v.add(v.matvec(inertia, omega), v.cross(body.h, vel))


def momentum_terms(chain: Chain, q: Vector, qd: Vector) -> list[Scalar]:
    """p = M qd, C^T qd and g (000 eqs 105-108), without any matrix.

    With the Christoffel C, C^T qd = dT/dq. Let (omega, v) be the velocity of joint frame j and (P, L) the momentum of
    everything beyond it, about its origin; turning the joint by dq turns that subtree while its joint rates stay:

        p_j = L_z,      (C^T qd)_j = (omega x z) . L + (v x z) . P
    """
    path = steps(chain, q)
    velocities = _velocities(chain, path, qd)
    p: list[Scalar] = [0.0] * chain.dof
    CTqd: list[Scalar] = [0.0] * chain.dof
    P, L = [0.0] * 3, [0.0] * 3
    for i in reversed(range(chain.dof)):
        omega, vel = velocities[i]
        linear, angular = _body_momentum(path[i].of_body(chain.bodies[i]), omega, vel)
        P, L = v.add(linear, P), v.add(angular, L)
        turning = (omega[1] * L[0] - omega[0] * L[1]) + (vel[1] * P[0] - vel[0] * P[1])
        sliding = omega[1] * P[0] - omega[0] * P[1]
        p[i] = (chain.turns[i] * L[2] + chain.slides[i] * P[2]) + chain.rotor[i] * qd[i]
        CTqd[i] = chain.turns[i] * turning + chain.slides[i] * sliding
        P, L = wrench_out(path[i], P, L)
    return [*p, *CTqd, *gravity_torque(chain, q)]


def energy(chain: Chain, q: Vector, qd: Vector) -> list[Scalar]:
    """Kinetic energy 1/2 qd^T M qd and potential energy - sum m g . r (zero at the base's origin) [J]."""
    path = steps(chain, q)
    kinetic: Scalar = 0.0
    for i, (omega, vel) in enumerate(_velocities(chain, path, qd)):
        linear, angular = _body_momentum(path[i].of_body(chain.bodies[i]), omega, vel)
        kinetic = kinetic + (v.dot(linear, vel) + v.dot(angular, omega))
    for b, x in zip(chain.rotor, qd, strict=True):
        kinetic = kinetic + b * (x * x)
    h, m = [0.0] * 3, 0.0
    for i in reversed(range(chain.dof)):
        h, m = v.add(path[i].of_link(chain.bodies[i].h), h), chain.bodies[i].m + m
        h = v.add(path[i].out(h), v.scale(m, path[i].p))
    return [0.5 * kinetic, -v.dot(chain.gravity, v.add(h, chain.fixed_h))]


def regressor(chain: Chain, q: Vector, qd: Vector, qdd: Vector) -> list[Scalar]:
    """Y (n, 10 n) with tau = Y pi, pi = (m, hx, hy, hz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz) of link 1, then link 2, ...

    h = m c and the inertia tensor I about the *origin* of the link frame (DH for a UR), link axes, payload included in
    the last link. tau is linear in them; a column is the torque of the unit body for that parameter. Rotor inertia is
    not part of Y.

    Let link i move with omega, alpha and a of its origin, and (w, v) be its velocities while joint j alone moves with
    unit rate, all in link axes. By virtual work joint j feels v . f + w . n of a body's force f and moment n:

        m: v . a,    h: U^T v + a x w,    I_kk: w_k alpha_k + omega_k c_k,   c = w x omega
        I_km: w_k alpha_m + w_m alpha_k + omega_m c_k + omega_k c_m
    """
    n = chain.dof
    rows: list[list[Scalar]] = [[0.0] * (10 * n) for _ in range(n)]
    path = steps(chain, q)
    axes: list[tuple[Vector, Vector]] = []  # (w, v) of each joint so far, in the working frame
    for i, (step, motion) in enumerate(zip(path, motions(chain, path, qd, qdd, gravity=True), strict=True)):
        axes = [(step.into(w), step.into(v.add(vel, v.cross(w, step.p)))) for w, vel in axes]
        w, vel = v.fresh(([0.0, 0.0, chain.turns[i]], [0.0, 0.0, chain.slides[i]]), motion.a[0])
        axes.append((w, vel))
        v.alike([[[*w, *vel] for w, vel in axes]])
        turned, p = v.transposed(chain.R_link[i]), step.of_link(chain.p_link[i])
        omega, alpha = v.matvec(turned, step.to_link(motion.omega)), v.matvec(turned, step.to_link(motion.alpha))
        a = v.matvec(turned, step.to_link(v.add(motion.a, v.matvec(motion.U, p))))
        U = v.transposed(_acceleration_matrix(omega, alpha))
        seen = []
        for j, (w, vel) in enumerate(axes):
            vel = v.matvec(turned, step.to_link(v.add(vel, v.cross(w, p))))
            w = v.matvec(turned, step.to_link(w))
            across = v.cross(w, omega)
            row = [v.dot(vel, a), *v.add(v.matvec(U, vel), v.cross(a, w))]
            for k in range(3):
                row.append(w[k] * alpha[k] + omega[k] * across[k])
                for m in range(k + 1, 3):
                    row.append((w[k] * alpha[m] + w[m] * alpha[k]) + (omega[m] * across[k] + omega[k] * across[m]))
            rows[j][10 * i : 10 * i + 10] = row
            seen.append([*w, *vel, *row])
        v.alike([seen])
    return [x for row in rows for x in row]
