"""Composite-body recursions over any number type: mass matrix, Christoffel Coriolis matrix, forward dynamics.

For a particle system the Christoffel matrix is C_jk = sum_particles m J_j . d/dt J_k, where J_k = dr/dq_k. For a
subtree it therefore needs only sums over its mass: with r and rdot relative to the joint's origin and its motion,

    m, h = int r, S = int r r^T           (as for M)
    P = int rdot, K = int rdot r^T        (how the moments move)

which are carried from the tip to the base like composite inertias.
"""

from __future__ import annotations

from dataclasses import dataclass

from tangere.dynamics.newton_euler import Motion, bias_torque, body_wrench, motions, wrench_out
from tangere.kinematics import vectors as v
from tangere.kinematics.chain import EMPTY, Body, Chain, Step, steps
from tangere.kinematics.vectors import Matrix, Scalar, Vector


def _mass_column(composite: Body, turns: Scalar, slides: Scalar) -> tuple[Vector, Vector]:
    """Linear and angular momentum of a subtree whose joint moves with unit rate."""
    h, S = composite.h, composite.S
    linear = [-(turns * h[1]), turns * h[0], slides * composite.m]
    turning, sliding = [-S[0][2], -S[1][2], composite.polar], [h[1], -h[0], 0.0]
    return linear, v.add(v.scale(turns, turning), v.scale(slides, sliding))


def mass_matrix_rows(chain: Chain, path: list[Step]) -> list[list[Scalar]]:
    """M by the composite-rigid-body algorithm (000 eq 84 as a recursion), rotor inertia on the diagonal."""
    n = chain.dof
    M: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    composite = EMPTY
    beside: list[list[Vector]] = [[] for _ in range(n)]  # at joint k, of each joint from there on
    for j in reversed(range(n)):
        composite = path[j].of_body(chain.bodies[j]).plus(composite)
        P, L = v.fresh(_mass_column(composite, chain.turns[j], chain.slides[j]), composite.h[0])
        beside[j].append([*P, *L])
        M[j][j] = (chain.turns[j] * L[2] + chain.slides[j] * P[2]) + chain.rotor[j]
        for k in reversed(range(j)):
            step = path[k + 1]
            P, L = step.out(P), step.out(L)
            L = v.add(L, v.cross(step.p, P))
            M[k][j] = M[j][k] = chain.turns[k] * L[2] + chain.slides[k] * P[2]
            beside[k].append([*P, *L])
        h = path[j].out(composite.h)
        S = path[j].second_moment(composite.S, h, composite.m)
        composite = Body(composite.m, v.add(h, v.scale(composite.m, path[j].p)), S)
    v.alike(beside)
    return M


def mass_matrix(chain: Chain, q: Vector) -> list[Scalar]:
    """M(q), row by row."""
    return [x for row in mass_matrix_rows(chain, steps(chain, q)) for x in row]


@dataclass(frozen=True)
class _Moving:
    """A subtree's moments and their rates, relative to its joint's origin."""

    m: Scalar
    h: Vector
    S: Matrix
    P: Vector
    K: Matrix


def _moving_body(body: Body, omega: Vector) -> _Moving:
    """A single body turning with omega about its frame's origin: P = omega x h, K = [omega]x S."""
    x, y, z = omega
    skew: Matrix = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
    return _Moving(body.m, body.h, body.S, v.cross(omega, body.h), v.matmul(skew, body.S))


def _moving_out(c: _Moving, step: Step, pdot: Vector) -> _Moving:
    """The subtree seen from the previous joint frame, whose distance p to it changes at the rate pdot."""
    h, P = step.out(c.h), step.out(c.P)
    S = step.second_moment(c.S, h, c.m)
    K = step.out_matrix(c.K)
    K = v.matadd(K, v.matadd(v.outer(P, step.p), v.outer(pdot, v.add(h, v.scale(c.m, step.p)))))
    return _Moving(c.m, v.add(h, v.scale(c.m, step.p)), S, v.add(P, v.scale(c.m, pdot)), K)


def _sum(a: _Moving, b: _Moving) -> _Moving:
    return _Moving(a.m + b.m, v.add(a.h, b.h), v.matadd(a.S, b.S), v.add(a.P, b.P), v.matadd(a.K, b.K))


def coriolis_matrix(chain: Chain, q: Vector, qd: Vector) -> list[Scalar]:
    """C(q, qd) with the Christoffel symbols (000 eqs 77-79), row by row: Mdot = C + C^T."""
    return [x for row in _matrices(chain, q, qd).C for x in row]


@dataclass(frozen=True)
class _Matrices:
    """(n, n) each: M without rotors, C, and where accelerations are known d tau/dq."""

    M: list[list[Scalar]]
    C: list[list[Scalar]]
    D: list[list[Scalar]]


def _matrices(chain: Chain, q: Vector, qd: Vector, qdd: Vector | None = None) -> _Matrices:
    """One sweep from the tip to the base: what reaches joint k of the subtree of each joint j beyond it."""
    path = steps(chain, q)
    n = chain.dof
    omegas: list[Vector] = []
    pdots: list[Vector] = []
    omega = [0.0] * 3
    for i, step in enumerate(path):
        pdot = v.cross(omega, step.p)
        omega = step.into(omega)
        omega = [omega[0], omega[1], omega[2] + chain.turns[i] * qd[i]]
        pdot = v.add(pdot, step.out([0.0, 0.0, chain.slides[i] * qd[i]]))
        omegas.append(omega)
        pdots.append(pdot)
    motion = None if qdd is None else motions(chain, path, qd, qdd, gravity=True)
    made = _Matrices(*([[0.0] * n for _ in range(n)] for _ in range(3)))
    composite = _moving_body(EMPTY, [0.0] * 3)
    f, m = [0.0] * 3, [0.0] * 3  # force and moment that move the subtree
    beside: list[list[Vector]] = [[] for _ in range(2 * n)]  # at joint k, of each joint from there on; then beyond
    for j in reversed(range(n)):
        body = path[j].of_body(chain.bodies[j])
        composite = _sum(_moving_body(body, omegas[j]), composite)
        if motion is not None:
            force, moment = body_wrench(body, motion[j])
            f, m = v.add(force, f), v.add(moment, m)
        _fill(made, chain, path, omegas, pdots, composite, j, motion, f, m, beside)
        composite = _moving_out(composite, path[j], pdots[j])
        if motion is not None:
            f, m = wrench_out(path[j], f, m)
    v.alike(beside)
    return made


def _fill(
    made: _Matrices,
    chain: Chain,
    path: list[Step],
    omegas: list[Vector],
    pdots: list[Vector],
    c: _Moving,
    j: int,
    motion: list[Motion] | None,
    f: Vector,
    m: Vector,
    beside: list[list[Vector]],
) -> None:
    """Column j above and row j left of the diagonal, from the subtree of joint j and the wrench that moves it.

    d tau_j/dq_k, k <= j: turning joint k takes the field J_j and the subtree along; what is left of r'' is that of
    z x (r - o) with the axis and the origin moving, z'' x r + 2 z' x r' - z x o'' (o'' with gravity).
    d tau_k/dq_j, k < j: only the subtree of j moves: force and moment of its field's second derivative, and the moment
    of r'' at places that moved, which Jacobi's identity makes z x m + h x (o'' x z).
    """
    turns, slides = chain.turns[j], chain.slides[j]
    P, L = _mass_column(Body(c.m, c.h, c.S), turns, slides)  # int J_j and int r x J_j
    w = omegas[j]
    zdot = [w[1], -w[0], 0.0]  # omega x z
    S, K = c.S, c.K
    # wrench of the field d/dt J_j, zdot x r + z x rdot for a turn and zdot for a slide, and Q = int rdot x J_j
    spin = v.subtract(v.scale(v.trace(S), zdot), v.matvec(S, zdot))
    F = v.add(v.scale(turns, v.add(v.cross(zdot, c.h), [-c.P[1], c.P[0], 0.0])), v.scale(slides, v.scale(c.m, zdot)))
    N = v.scale(turns, v.add(spin, [-K[0][2], -K[1][2], K[0][0] + K[1][1]]))
    N = v.add(N, v.scale(slides, v.cross(c.h, zdot)))
    Q = v.scale(turns, [-K[2][0], -K[2][1], K[0][0] + K[1][1]])
    Q = v.add(Q, v.scale(slides, [c.P[1], -c.P[0], 0.0]))
    X, Y = ([0.0] * 3, [0.0] * 3) if motion is None else _turned_subtree(c, zdot, motion[j], f, m, turns, slides)
    P, L, Q, F, N, X, Y = v.fresh((P, L, Q, F, N, X, Y), c.h[0])
    beside[j].append([*P, *L, *Q, *F, *N, *X, *Y])
    made.M[j][j] = turns * L[2] + slides * P[2]
    made.C[j][j] = turns * N[2] + slides * F[2]
    if motion is not None:
        made.D[j][j] = _turned_along(motion[j], zdot, P, L, Q, turns, slides)
    for k in reversed(range(j)):
        step, pdot = path[k + 1], pdots[k + 1]
        F, N = wrench_out(step, F, N)
        P, L, Q = step.out(P), step.out(L), step.out(Q)
        L, Q = v.add(L, v.cross(step.p, P)), v.add(Q, v.cross(pdot, P))
        w = omegas[k]
        turning, sliding = (w[1] * L[0] - w[0] * L[1]) + Q[2], w[1] * P[0] - w[0] * P[1]
        made.M[k][j] = made.M[j][k] = chain.turns[k] * L[2] + chain.slides[k] * P[2]
        made.C[k][j] = chain.turns[k] * N[2] + chain.slides[k] * F[2]
        made.C[j][k] = chain.turns[k] * turning + chain.slides[k] * sliding
        if motion is not None:
            X, Y = wrench_out(step, X, Y)
            made.D[k][j] = chain.turns[k] * Y[2] + chain.slides[k] * X[2]
            made.D[j][k] = _turned_along(motion[k], [w[1], -w[0], 0.0], P, L, Q, chain.turns[k], chain.slides[k])
        beside[k].append([*P, *L, *Q, *F, *N, *X, *Y])
        beside[len(path) + k].append([made.C[j][k], made.C[k][j], made.D[j][k]])


def _turned_along(
    x: Motion, zdot: Vector, P: Vector, L: Vector, Q: Vector, turns: Scalar, slides: Scalar
) -> Scalar:
    """d tau_j/dq_k of a joint k before j: zddot . L + 2 zdot . Q - (z x o'') . P for a turn, zddot . P for a slide."""
    zddot = [row[2] for row in x.U]
    turning = (v.dot(zddot, L) + 2.0 * v.dot(zdot, Q)) + (x.a[1] * P[0] - x.a[0] * P[1])
    return turns * turning + slides * v.dot(zddot, P)


def _turned_subtree(
    c: _Moving, zdot: Vector, x: Motion, f: Vector, m: Vector, turns: Scalar, slides: Scalar
) -> tuple[Vector, Vector]:
    """Change of the force and moment that move a subtree, about its joint's origin, by the joint's own displacement."""
    zddot, a, S, K = [row[2] for row in x.U], x.a, c.S, c.K
    rest = v.subtract(f, v.scale(c.m, a))
    X = v.add(v.add(v.cross(zddot, c.h), v.scale(2.0, v.cross(zdot, c.P))), [-rest[1], rest[0], 0.0])
    Y = v.subtract(v.scale(v.trace(S), zddot), v.matvec(S, zddot))
    Y = v.add(Y, v.scale(2.0, v.subtract(v.scale(v.trace(K), zdot), v.matvec(K, zdot))))
    Y = v.add(v.add(Y, [-m[1], m[0], 0.0]), v.cross(c.h, [a[1], -a[0], 0.0]))
    sliding = v.add(v.cross(c.h, zddot), [-f[1], f[0], 0.0])
    return (
        v.add(v.scale(turns, X), v.scale(slides, v.scale(c.m, zddot))),
        v.add(v.scale(turns, Y), v.scale(slides, sliding)),
    )


def forward_dynamics(chain: Chain, q: Vector, qd: Vector, tau: Vector) -> list[Scalar]:
    """qdd = M^-1 (tau - C qd - g), by the factorisation M = L D L^T (no square roots, no pivoting: M > 0)."""
    M = mass_matrix_rows(chain, steps(chain, q))
    x = [t - b for t, b in zip(tau, bias_torque(chain, q, qd), strict=True)]
    return solve_symmetric(M, x)


def solve_symmetric(M: list[list[Scalar]], x: Vector) -> Vector:
    """M^-1 x for a symmetric positive M.

    Eliminated from the last row upwards: joint n moves least mass, and M's large entries (joints 1, 2) come last.
    """
    n = len(x)
    A = [list(row) for row in M]  # only the lower triangle is read
    x = list(x)
    pivot: list[Scalar] = [0.0] * n
    for k in reversed(range(n)):
        pivot[k] = 1.0 / A[k][k]
        row = [a * pivot[k] for a in A[k][:k]]
        for i in range(k):
            for j in range(i + 1):
                A[i][j] = A[i][j] - row[i] * A[k][j]
            x[i] = x[i] - row[i] * x[k]
        A[k][:k] = row  # the multipliers, where the eliminated entries were
    for k in range(n):
        x[k] = x[k] * pivot[k]
        for i in range(k):
            x[k] = x[k] - A[k][i] * x[i]
    return x


def inverse_dynamics_derivatives(chain: Chain, q: Vector, qd: Vector, qdd: Vector) -> list[Scalar]:
    """d tau/dq, d tau/dqd, d tau/dqdd of inverse dynamics, each (n, n), row by row.

    d tau/dqdd = M; d tau/dqd = 2 C, because C qd is quadratic in qd with the symmetric (Christoffel) coefficients; the
    three come of one sweep.
    """
    made = _matrices(chain, q, qd, qdd)
    for j in range(chain.dof):
        made.M[j][j] = made.M[j][j] + chain.rotor[j]
    return [x for part in (made.D, [v.scale(2.0, row) for row in made.C], made.M) for row in part for x in row]
