"""Composite-body recursions over any number type: mass matrix, Christoffel Coriolis matrix, forward dynamics.

For a particle system the Christoffel matrix is C_jk = sum_particles m J_j . d/dt J_k, where J_k = dr/dq_k. For a
subtree it therefore needs only sums over its mass: with r and rdot relative to the joint's origin and its motion,

    m, h = int r, S = int r r^T           (as for M)
    P = int rdot, K = int rdot r^T        (how the moments move)

which are carried from the tip to the base like composite inertias.
"""

from __future__ import annotations

from dataclasses import dataclass

from tangere.dynamics.newton_euler import bias_torque, inverse_dynamics
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
    for j in reversed(range(n)):
        composite = path[j].of_body(chain.bodies[j]).plus(composite)
        P, L = _mass_column(composite, chain.turns[j], chain.slides[j])
        M[j][j] = (chain.turns[j] * L[2] + chain.slides[j] * P[2]) + chain.rotor[j]
        for k in reversed(range(j)):
            step = path[k + 1]
            P, L = step.out(P), step.out(L)
            L = v.add(L, v.cross(step.p, P))
            M[k][j] = M[j][k] = chain.turns[k] * L[2] + chain.slides[k] * P[2]
        h = path[j].out(composite.h)
        S = path[j].second_moment(composite.S, h, composite.m)
        composite = Body(composite.m, v.add(h, v.scale(composite.m, path[j].p)), S)
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
    C: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    composite = _moving_body(EMPTY, [0.0] * 3)
    for j in reversed(range(n)):
        composite = _sum(_moving_body(path[j].of_body(chain.bodies[j]), omegas[j]), composite)
        _fill(C, chain, path, omegas, pdots, composite, j)
        composite = _moving_out(composite, path[j], pdots[j])
    return [x for row in C for x in row]


def _fill(
    C: list[list[Scalar]],
    chain: Chain,
    path: list[Step],
    omegas: list[Vector],
    pdots: list[Vector],
    c: _Moving,
    j: int,
) -> None:
    """Column j above and row j left of the diagonal, from the subtree of joint j."""
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
    C[j][j] = turns * N[2] + slides * F[2]
    for k in reversed(range(j)):
        step, pdot = path[k + 1], pdots[k + 1]
        F, N = step.out(F), step.out(N)
        N = v.add(N, v.cross(step.p, F))
        P, L, Q = step.out(P), step.out(L), step.out(Q)
        L, Q = v.add(L, v.cross(step.p, P)), v.add(Q, v.cross(pdot, P))
        w = omegas[k]
        turning, sliding = (w[1] * L[0] - w[0] * L[1]) + Q[2], w[1] * P[0] - w[0] * P[1]
        C[k][j] = chain.turns[k] * N[2] + chain.slides[k] * F[2]
        C[j][k] = chain.turns[k] * turning + chain.slides[k] * sliding


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
    """d tau/dq, d tau/dqd, d tau/dqdd of inverse dynamics, each (n, n), row by row; for traced symbols only.

    d tau/dqdd = M; d tau/dqd = 2 C, because C qd is quadratic in qd with the symmetric (Christoffel) coefficients;
    d tau/dq by differentiating the traced recursion.
    """
    from tangere.codegen.trace import derivative

    tau = inverse_dynamics(chain, q, qd, qdd)
    graph = q[0].graph
    tau = [graph.lift(t) for t in tau]
    columns = [derivative(graph, tau, {x.index: 1.0}) for x in q]
    dq = [columns[k][i] for i in range(chain.dof) for k in range(chain.dof)]
    dqd = [2.0 * x for x in coriolis_matrix(chain, q, qd)]
    return [*dq, *dqd, *mass_matrix(chain, q)]
