"""Laws of a tool: the error of its pose, hybrid force-motion control of a tip, springs and dampers at the tcp.

Written over any number type, as rows of kernels.table: an arm's chain and parameters in, state in, state out.
"""

from __future__ import annotations

from tangere.codegen.functions import absolute, atan2, maximum, minimum, sqrt, where
from tangere.dynamics import composite, newton_euler
from tangere.kinematics import forward
from tangere.kinematics import vectors as v
from tangere.kinematics.chain import Chain, pieces
from tangere.kinematics.vectors import Matrix, Scalar, Vector

POSE = 16  # numbers of a pose, row by row


def pose_error(D: Vector, T: Vector) -> list[Scalar]:
    """(r_d - r; log(R_d R^T)) of two poses, row by row: the step that takes T to D (003), base axes [m, rad].

    The quaternion's largest part decides which of four forms is taken; at exactly half a turn the direction is any.
    """
    R = [[v.dot(D[4 * i : 4 * i + 3], T[4 * j : 4 * j + 3]) for j in range(3)] for i in range(3)]
    (a, b, c), (d, e, f), (g, h, i) = R
    forms = [
        (1.0 + a + e + i, h - f, c - g, d - b),
        (h - f, 1.0 + a - e - i, b + d, c + g),
        (c - g, b + d, 1.0 - a + e - i, f + h),
        (d - b, c + g, f + h, 1.0 - a - e + i),
    ]
    quaternion = forms[3]
    for chosen, form in ((i <= e, forms[2]), ((e <= a) & (i <= a), forms[1]), (1.0 < forms[0][0], forms[0])):
        quaternion = tuple(where(chosen, x, y) for x, y in zip(form, quaternion, strict=True))
    w, axis = quaternion[0], list(quaternion[1:])
    s = sqrt(v.dot(axis, axis))
    angle = atan2(s, absolute(w))  # the shorter way round
    factor = where(0.0 < s, 2.0 * where(w < 0.0, 0.0 - angle, angle) / where(0.0 < s, s, 1.0), 0.0)
    return [*(D[4 * k + 3] - T[4 * k + 3] for k in range(3)), *v.scale(factor, axis)]


def solved(A: Matrix, x: Vector) -> tuple[list[Scalar], Scalar]:
    """A^-1 x by elimination with the largest pivot of each column, and the smallest pivot's size: 0, A is singular."""
    n = len(x)
    rows = [[*row, y] for row, y in zip(A, x, strict=True)]
    least: Scalar = 1e300
    for k in range(n):
        for i in range(k + 1, n):
            larger = absolute(rows[k][k]) < absolute(rows[i][k])
            pairs = [(where(larger, b, a), where(larger, a, b)) for a, b in zip(rows[k][k:], rows[i][k:], strict=True)]
            rows[k][k:], rows[i][k:] = [p[0] for p in pairs], [p[1] for p in pairs]
        least = minimum(absolute(rows[k][k]), least)
        pivot = where(0.0 < absolute(rows[k][k]), rows[k][k], 1.0)
        rows[k][k] = pivot
        for i in range(k + 1, n):
            share = rows[i][k] / pivot
            rows[i][k + 1 :] = [a - share * b for a, b in zip(rows[i][k + 1 :], rows[k][k + 1 :], strict=True)]
    out: list[Scalar] = [0.0] * n
    for k in reversed(range(n)):
        total = rows[k][n]
        for j in range(k + 1, n):
            total = total - rows[k][j] * out[j]
        out[k] = total / rows[k][k]
    return out, least


def _times(rows: list[Scalar], x: Vector) -> list[Scalar]:
    """A x of a matrix given row by row."""
    n = len(x)
    out: list[Scalar] = []
    for k in range(0, len(rows), n):
        total: Scalar = 0.0
        for a, b in zip(rows[k : k + n], x, strict=True):
            total = total + a * b
        out.append(total)
    return out


def _columns(rows: list[Scalar], n: int) -> list[Scalar]:
    """A^T, row by row, of a matrix with n columns."""
    return [rows[k] for j in range(n) for k in range(j, len(rows), n)]


# ---- a tip that presses ---------------------------------------------------------------------------------------------


def tip_start(n: int) -> list[float]:
    """The state of tip_sense: stamp of the last sample, its q, the filtered speed, what the model lacks [rad/s2]."""
    return [0.0] * (1 + 3 * n)


def tip_sensed(n: int) -> int:
    """Numbers of an answer of tip_sense beside the state: what is felt, q, speed, torque of the wrench, J, T, J qd."""
    return 6 + 3 * n + 6 * n + POSE + 6


def tip_sense(chain: Chain, P: Vector, clock: Vector, q: Vector, qd: Vector, tau: Vector, F: Vector, state: Vector
              ) -> list[Scalar]:  # fmt: skip
    """What a tip feels, and the filter of its joint speeds:

        v- = v + h (qdd_model + d),  v = v- + 2 L h (qd - v-),  d = d + L^2 h (qd - v-)

    P: L (n) [rad/s], axes of the canvas (9, rows x y n), its origin (3). clock: stamp, period h [s]; F (6): wrench on
    the tool. Outputs: force along the normal, its whole size [N]; x, y, height [m]; speed along the normal [m/s]; then
    what tip_torque is given. A sample whose stamp is the last one's, or without a period, leaves the filter as it is.
    """
    n = chain.dof
    bandwidth, axes, origin = pieces(P, n, 9, 3)
    (time, h), ((last,), q0, v0, d0) = clock, pieces(state, 1, n, n, n)
    J, T = forward.jacobian(chain, q), forward.pose(chain, q)
    external = _times(_columns(J, n), F)
    model = composite.forward_dynamics(chain, q0, v0, v.add(tau, external))
    fresh = ((time < last) | (last < time)) & (0.0 < h)
    speed, lacking = [], []
    for j in range(n):
        predicted = (model[j] + d0[j]) * h + v0[j]
        innovation = qd[j] - predicted
        fast, slow = minimum(2.0 * bandwidth[j] * h, 1.0), bandwidth[j] * bandwidth[j] * h
        speed.append(where(fresh, predicted + innovation * fast, v0[j]))
        lacking.append(where(fresh, d0[j] + slow * innovation, d0[j]))
    moved = _times(J, speed)
    place = _times(axes, [T[4 * i + 3] - origin[i] for i in range(3)])
    felt = [v.dot(axes[6:], F[:3]), sqrt(v.dot(F[:3], F[:3])), *place, v.dot(axes[6:], moved[:3])]
    kept = [where(fresh, a, b) for a, b in zip([time, *q], [last, *q0], strict=True)]
    return [*kept, *speed, *lacking, *felt, *q, *speed, *external, *J, *T, *moved]


def tip_torque(chain: Chain, P: Vector, sensed: Vector, D: Vector, vd: Vector, ad: Vector, knobs: Vector, state: Vector
               ) -> list[Scalar]:  # fmt: skip
    """The torque of hybrid force-motion control, after tip_sense:

        wdot* = (1 - S) [a_d + kp e + kv ed] + n along + b,      S = n n^T where the tip presses, else 0
        b     = b + ki h (1 - S) e + n integral, within its limit
        tau   = M J^-1 (wdot* - Jdot qd) + C qd + g - J^T F

    P: kp, kv, ki, limit of b (6), largest sum of squares of qdd, normal (3). sensed: state and outputs of tip_sense. D,
    vd, ad: pose, speed, acceleration that the tool should have. knobs: h [s], whether the tip presses (1 or 0), along
    [m/s2], integral [m/s2]. State: b (6). Outputs: whether there is a torque (0: the pose is singular, or nearly),
    whether b is at its limit, tau (n), and what J qdd was to be (6).
    """
    n = chain.dof
    (kp, kv, ki), limit, (wild,), normal = pieces(P, 3, 6, 1, 3)
    h, pressing, along, integral = knobs
    _, q, speed, external, J, T, moved = pieces(sensed, len(tip_start(n)) + 6, n, n, n, 6 * n, POSE, 6)
    error = pose_error(D, T)
    pull = [a + (kp * e + kv * (w - x)) for a, e, w, x in zip(ad, error, vd, moved, strict=True)]
    presses = 0.5 < pressing
    away = where(presses, v.dot(normal, error[:3]), 0.0)
    up = where(presses, along - v.dot(normal, pull[:3]), along)
    b = [state[i] + (ki * h * (error[i] - away * normal[i]) + integral * normal[i]) for i in range(3)]
    b += [state[i] + ki * h * error[i] for i in range(3, 6)]
    full = _any([limit[i] <= absolute(b[i]) for i in range(6)])
    b = [maximum(minimum(b[i], limit[i]), 0.0 - limit[i]) for i in range(6)]
    rate = forward.jacobian_rate_times_velocity(chain, q, speed)
    pull = [x + up * y for x, y in zip(pull[:3], normal, strict=True)] + pull[3:]
    pull = [(x + y) - z for x, y, z in zip(pull, b, rate, strict=True)]
    if n != 6:  # how to go on is the caller's affair
        return [*b, 0.0, where(full, 1.0, 0.0), *[0.0] * n, *pull]
    qdd, pivot = solved([J[6 * i : 6 * i + 6] for i in range(6)], pull)
    size: Scalar = 0.0
    for x in qdd:
        size = size + x * x
    regular = (0.0 < pivot) & (size < wild)
    tau = v.subtract(newton_euler.inverse_dynamics(chain, q, speed, qdd), external)
    return [*b, where(regular, 1.0, 0.0), where(full, 1.0, 0.0), *tau, *pull]


def _any(conditions: list[Scalar]) -> Scalar:
    out = conditions[0]
    for condition in conditions[1:]:
        out = out | condition
    return out


# ---- springs and dampers at the tcp ---------------------------------------------------------------------------------

TRIANGLE = 21  # numbers of a symmetric (6, 6), its rows up to the diagonal
SWEEPS = 7  # of Jacobi's method: five make six modes exact to rounding, two more cost a microsecond
_PAIRS = [(p, q) for q in range(1, 6) for p in range(q)]


def springs_sensed(n: int) -> int:
    """Numbers that springs_sense hands on: where `modes` begins, a, b, f, J and a torque."""
    return len(modes_start(n)) + 18 + 6 * n + n


def springs_sense(chain: Chain, P: Vector, q: Vector, qd: Vector, D: Vector, vd: Vector, ad: Vector, F: Vector
                  ) -> list[Scalar]:  # fmt: skip
    """What springs and dampers at the tcp work on:

        H = K^1/2 (J M^-1 J^T) K^1/2,   a = K^1/2 (wdot_d - Jdot qd - J y),   b = K^1/2 (w_d - w),
        f = K_s e - F,   tau = M y + C qd + g   with y = -rest qd

    P: stiffness K_s (6), roots of the design stiffness K^1/2 (6), rest [1/s]. F (6): wrench to press with.
    """
    n = chain.dof
    stiffness, root, (rest,) = pieces(P, 6, 6, 1)
    J = forward.jacobian(chain, q)
    moved, rate = _times(J, qd), forward.jacobian_rate_times_velocity(chain, q, qd)
    M = composite.mass_matrix(chain, q)
    rows = [J[n * i : n * i + n] for i in range(6)]
    # M^-1 J^T; the factors of M are the same nodes in all six
    light = [composite.solve_symmetric([M[n * i : n * i + n] for i in range(n)], row) for row in rows]
    H = [root[i] * root[j] * _times(light[i], rows[j])[0] for i in range(6) for j in range(i + 1)]
    a = [root[i] * (ad[i] - rate[i] + rest * moved[i]) for i in range(6)]
    b = [root[i] * (vd[i] - moved[i]) for i in range(6)]
    error = pose_error(D, forward.pose(chain, q))
    force = [stiffness[i] * error[i] - F[i] for i in range(6)]
    tau = newton_euler.inverse_dynamics(chain, q, qd, [0.0 - rest * x for x in qd])
    return [*H, *modes_start(n)[TRIANGLE:], *a, *b, *force, *J, *tau]


def modes_start(n: int) -> list[float]:
    """The state of `modes`: H by rows up to the diagonal, and W of what was turned so far, (6, 6)."""
    return [0.0] * TRIANGLE + [float(i == j) for i in range(6) for j in range(6)]


def modes(n: int, P: Vector, state: Vector) -> list[Scalar]:
    """One sweep of Jacobi's method: H = W diag(w) W^T in the end; each turn makes one entry beside the diagonal zero.

        t = 2 h_pq / (d + sign(d) sqrt(d^2 + 4 h_pq^2)),   d = h_qq - h_pp,   c = 1 / sqrt(1 + t^2),   s = t c
    """
    H = {(i, j): state[i * (i + 1) // 2 + j] for i in range(6) for j in range(i + 1)}
    W = [state[TRIANGLE + 6 * i : TRIANGLE + 6 * i + 6] for i in range(6)]
    for p, q in _PAIRS:
        off, gap = H[q, p], H[q, q] - H[p, p]
        size = absolute(gap) + sqrt(gap * gap + 4.0 * off * off)
        t = where(0.0 < size, 2.0 * off / where(0.0 < size, size, 1.0), 0.0)
        t = where(gap < 0.0, 0.0 - t, t)
        c = 1.0 / sqrt(1.0 + t * t)
        s = t * c
        H[p, p], H[q, q], H[q, p] = H[p, p] - t * off, H[q, q] + t * off, 0.0
        for k in range(6):
            if k not in (p, q):
                at_p, at_q = (max(k, p), min(k, p)), (max(k, q), min(k, q))
                H[at_p], H[at_q] = c * H[at_p] - s * H[at_q], s * H[at_p] + c * H[at_q]
        for row in W:
            row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
    return [*(H[i, j] for i in range(6) for j in range(i + 1)), *(x for row in W for x in row)]


def springs_torque(n: int, P: Vector, sensed: Vector, turned: Vector) -> list[Scalar]:
    """tau (n,) from what springs_sense and `modes` found:

        F = K^1/2 W (a_m / w + 2 zeta b_m / sqrt(w)) + f,   w raised to at least w_min,   tau + J^T F

    a_m, b_m: a and b in the modes. P: roots of the design stiffness (6), zeta, w_min [1/s2].
    """
    root, (zeta, least) = pieces(P, 6, 2)
    _, a, b, force, J, tau = pieces(sensed, len(turned), 6, 6, 6, 6 * n, n)
    w = [maximum(turned[i * (i + 3) // 2], least) for i in range(6)]
    W = turned[TRIANGLE:]
    a_m, b_m = _times(_columns(W, 6), a), _times(_columns(W, 6), b)
    pull = _times(W, [a_m[i] / w[i] + 2.0 * zeta * b_m[i] / sqrt(w[i]) for i in range(6)])
    F = [root[i] * pull[i] + force[i] for i in range(6)]
    return v.add(tau, _times(_columns(J, n), F))
