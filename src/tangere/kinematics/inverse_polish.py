"""A joint vector made exact for any chain of six joints: damped Newton's method as one traced round.

    e = (p_des - p, 2 tan(theta/2) n),   R_des R^T = exp(theta [n]x),      dq = (J^T J + mu 1)^-1 J^T e

A round looks at the trial q + dq. It is taken if the pose is nearer from there, or if the next step would be shorter;
else the step is shortened. The second criterion matters next to a singularity: the way to the solution is a narrow
curved valley, along which every good step climbs for a moment. Each round costs one evaluation and has no branch: eight
searches run in the lanes of one processor core, each at its own pace.

mu = |e|^2 vanishes with the error: quadratic convergence, also towards a double root that is not quite reached. The
squared condition number of J^T J does no harm: it slows the last digits down next to a singularity, and errors of a
step are found by the next round.
"""

from __future__ import annotations

from tangere.codegen.functions import absolute, maximum, minimum, where
from tangere.kinematics import vectors as v
from tangere.kinematics.chain import Chain
from tangere.kinematics.forward import frames
from tangere.kinematics.vectors import Scalar, Vector

JOINTS = 6
# What a search carries from round to round: q, the step to try next, squared error at q, failed trials in a row, how
# firm J^T J + mu holds q (the square of J's smallest singular value, or down to a sixth of it), the error [rad] in the
# direction that a singular wrist has lost, and the length [rad] of the step before it was shortened.
STATE = 2 * JOINTS + 5
# [rad] no longer step is believed: the closed form of the nominal arm is nearer than that, except where it is singular
STEP_MAX = 0.5
# A failed step is shortened to this part of itself.
SHORTEN = 0.3
# Keeps J^T J + mu regular where J is exactly singular: a singular value of 3e-9, felt only where q is as uncertain.
MU_MIN = 1e-17
# [m, rad] squared: ten roundings of a pose. A search that is there is done.
DONE = 1e-28
# Failed trials in a row after which a search has given up: the step is then 2e-4 of what it was.
FAILED_MAX = 7.0
# A squared error that no pose has: of a search before its first round.
NOT_YET = 1e300


def start(q: Vector) -> list[Scalar]:
    """The state of a search from q before its first round."""
    return [*q, *[0.0] * JOINTS, NOT_YET, 0.0, 1.0, 0.0, NOT_YET]


def round_of(chain: Chain, state: Vector, target: Vector, free: Scalar) -> list[Scalar]:
    """The state after one more round; a search that is done or has given up stays as it is.

    target: R row by row, then p. free: 1, or 0 to hold the last joint where it is: then the error has a least value
    that is not 0.
    """
    q, dq, (cost, failed, firm, lost, length) = state[:6], state[6:12], state[12:]
    trial = v.add(q, dq)
    cost_trial, step, firm_trial, lost_trial, length_trial = _newton(chain, trial, target, free)
    over = (cost <= DONE) | (FAILED_MAX <= failed)
    better = (length_trial < length) | (cost_trial < cost)
    taken = [where(better, a, b) for a, b in zip(trial, q, strict=True)]
    next_step = [where(better, a, SHORTEN * b) for a, b in zip(step, dq, strict=True)]
    new = [
        *taken, *next_step, where(better, cost_trial, cost), where(better, 0.0, failed + 1.0),
        where(better, firm_trial, firm), where(better, lost_trial, lost),
        where(better, length_trial, length),
    ]  # fmt: skip
    return [where(over, a, b) for a, b in zip(state, new, strict=True)]


def _newton(chain: Chain, q: Vector, target: Vector, free: Scalar) -> tuple[Scalar, Vector, Scalar, Scalar, Scalar]:
    """Squared error at q, the damped step from there, how firm q is, error in the lost direction, full length."""
    f = frames(chain, q)
    p = v.add(f.o[-1], v.matvec(f.R[-1], chain.p_tcp))
    R = v.matmul(f.R[-1], chain.R_tcp)
    E = v.matmul([target[0:3], target[3:6], target[6:9]], v.transposed(R))
    scale = 2.0 / maximum(1.0 + v.trace(E), 1e-3)  # half a turn off: any long step will do
    turn = v.scale(scale, [E[2][1] - E[1][2], E[0][2] - E[2][0], E[1][0] - E[0][1]])
    e = [*v.subtract(target[9:12], p), *turn]
    columns = [[*v.cross(f.axis(i), v.subtract(p, f.o[i])), *f.axis(i)] for i in range(chain.dof)]
    columns[-1] = v.scale(free, columns[-1])
    cost = _dot(e, e)
    mu = cost + MU_MIN
    A = [[_dot(columns[i], columns[j]) + (mu if i == j else 0.0) for j in range(i + 1)] for i in range(chain.dof)]
    dq, firm = _solved(A, [_dot(column, e) for column in columns])
    longest: Scalar = 0.0
    for x in dq:
        longest = maximum(absolute(x), longest)
    brake = minimum(STEP_MAX / maximum(longest, 1e-30), 1.0)
    # axes 4 and 6 parallel: no joint turns the tool about the common perpendicular of axes 4 and 5
    lost = v.dot(turn, v.cross(f.axis(3), f.axis(4)))
    return cost, v.scale(brake, dq), firm, lost, longest


def _dot(a: Vector, b: Vector) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def _solved(A: list[list[Scalar]], b: Vector) -> tuple[Vector, Scalar]:
    """A^-1 b for a symmetric positive A (its lower triangle), and 1 / tr(A^-1); L D L^T from the first row.

    No pivot serves for the second: where the weakest direction hardly moves the last joint, they are all far above A's
    smallest eigenvalue.
    """
    n = len(b)
    x = list(b)
    L: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    inverse: list[Scalar] = [0.0] * n
    for k in range(n):
        # rounding may leave a pivot negative next to a singularity; the step is then found to fail, and shortened
        pivot = maximum(A[k][k], MU_MIN)
        inverse[k] = 1.0 / pivot
        for i in range(k + 1, n):
            L[i][k] = A[i][k] * inverse[k]
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                A[i][j] = A[i][j] - L[i][k] * A[j][k]
            x[i] = x[i] - L[i][k] * x[k]
    trace: Scalar = 0.0
    below: list[list[Scalar]] = [[0.0] * n for _ in range(n)]  # of L^-1, with the other sign
    for k in range(n):
        squares: Scalar = 1.0
        for i in range(k):
            below[k][i] = L[k][i]
            for j in range(i + 1, k):
                below[k][i] = below[k][i] - L[k][j] * below[j][i]
            squares = squares + below[k][i] * below[k][i]
        trace = trace + inverse[k] * squares
    for k in reversed(range(n)):
        x[k] = x[k] * inverse[k]
        for i in range(k + 1, n):
            x[k] = x[k] - L[i][k] * x[i]
    return x, 1.0 / trace
