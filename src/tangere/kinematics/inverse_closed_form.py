"""Closed-form inverse kinematics of a UR arm: one branch, over any number type.

A pose has up to eight solutions, 2 (shoulder) x 2 (wrist) x 2 (elbow). `branch` computes the one that three signs pick,
without a conditional, so that eight lanes of a vector unit evaluate the eight signs of one pose at once. It is
004's sequence of steps, corrected (000 eqs 89-97 are its tool-down case), arranged so that nothing is divided by
sin q5 or cos q5, and so that singular poses are solved:

- shoulder: rho - d4 slightly negative is clamped to 0, both shoulder branches coincide;
- elbow: a reach slightly too long or short is clamped, both elbow branches coincide;
- at both, the pose determines the angle only to the root of the rounding (1e-8 rad): the reference's angle is taken
  where it gives the pose as exactly;
- wrist (sin q5 = 0): only q4 +- q6 is determined. q6 is taken from the caller's reference, moved to the nearest value
  for which the elbow still reaches: those values of theta = q2 + q3 + q4 form arcs
  |a2| - |a3| <= |(Rr - d5 sin theta, H + d5 cos theta)| <= |a2| + |a3|.

The same clamp serves near-singular wrists: a change of q6 by delta turns the tool by h delta, h = |sin q5|, and is
made only if that stays below the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tangere.codegen.functions import absolute, atan2, cos, maximum, minimum, rounded, sin, sqrt, where
from tangere.kinematics import vectors as v
from tangere.kinematics.vectors import Matrix, Scalar, Vector

# Moving or turning the tool by this much [m, rad] is no error: about 1000 roundings, a fifth of the promised 1e-12.
NO_ERROR = 2e-13
# Square of the distance from a root within which the reference may replace it, in units of error / length: at a
# double root an angle off by delta errs by length delta^2 / 2, and both roots may be off; a factor 4 of room.
SAME_ROOT = 16.0
# Largest correction of a rotation that is still taken as rounding of the input, not as another matrix.
ROTATION_TOLERANCE = 1e-5
# Closer than this to a singularity (|sin q5|, |sin q3|, or arm plane distance in m) a solution is flagged.
SINGULAR = 1e-6
# Farther than this from every singularity (same measures) the short form `regular_branch` is exact: its errors grow
# with the inverse of the distance, 1e-16 / 1e-3.
NEAR = 1e-3
# An empty answer that misses by less than this [m] is looked at again: where shoulder and elbow are singular at once,
# q1 is only known to 1e-8 rad and the reach with it; iteration finds the solution that rounding hides.
RESCUE = 1e-6
# A rotation whose error is below this is taken as it is: twenty roundings of a product of rotations.
EXACT_ROTATION = 4e-15
# Two solutions closer than this [rad] in every joint are one: at a double root, rounding splits by about 3e-8.
MERGE = 1e-6

LANES = 8
# Signs of shoulder, wrist and elbow of the eight lanes.
SIGNS = tuple((s, w, e) for s in (1.0, -1.0) for w in (1.0, -1.0) for e in (1.0, -1.0))
# What `branch` returns: six angles, then these.
OUTPUTS = ("valid", "miss", "singular_shoulder", "singular_elbow", "singular_wrist", "elbow_up")


def prepare(tool: tuple[Matrix, Vector], T: Vector, *, project: bool) -> list[Scalar]:
    """Flange pose from a tcp pose of sixteen numbers: R (9), p (3), then correction, determinant, error of last row.

    With `project` the rotation is first made exact, by two Newton steps R := R (3 - R^T R)/2 towards the nearest one:
    from an error of 1e-5 to 1e-10 to 1e-20; correction is the largest change of an entry. Without, R is taken as it is
    and correction says by how much it would have to change: half the largest error of R^T R.
    """
    given: Matrix = [[T[4 * i + j] for j in range(3)] for i in range(3)]
    p = [T[4 * i + 3] for i in range(3)]
    R = given
    correction: Scalar = 0.0
    if project:
        for _ in range(2):
            G = _gram(R)
            R = v.matmul(R, [[1.5 * (i == j) - 0.5 * G[i][j] for j in range(3)] for i in range(3)])
        for i in range(3):
            for j in range(3):
                correction = maximum(absolute(R[i][j] - given[i][j]), correction)
    else:
        G = _gram(R)
        for i in range(3):
            for j in range(i, 3):
                correction = maximum(absolute(G[i][j] - float(i == j)), correction)
        correction = 0.5 * correction
    determinant = v.dot(R[0], v.cross(R[1], R[2]))
    last = (absolute(T[12]) + absolute(T[13])) + (absolute(T[14]) + absolute(T[15] - 1.0))
    R_tool, p_tool = tool
    R_flange = v.matmul(R, v.transposed(R_tool))
    p_flange = v.subtract(p, v.matvec(R_flange, p_tool))
    return [*R_flange[0], *R_flange[1], *R_flange[2], *p_flange, correction, determinant, last]


def _gram(R: Matrix) -> Matrix:
    """R^T R."""
    columns = v.transposed(R)
    return [[v.dot(a, b) for b in columns] for a in columns]


def regular_branch(
    lengths: Vector, flange: Vector, signs: tuple[Scalar, Scalar, Scalar], near: Sequence[float] = (NEAR, NEAR, NEAR),
    mirror: bool = False,
) -> list[Scalar]:  # fmt: skip
    """One solution of a flange pose that is not near a singularity; outputs as `branch`.

    In place of `miss` it says 1 where the pose is near one (or the answer near the edge of the reach), so that
    `branch` must decide. near: how near that is, by shoulder [m], wrist and elbow; float32 loses its digits sooner.
    mirror: the other sign of the wrist; its numbers are those of this one negated, so both together are cheaper.
    """
    d1, a2, a3, d4, d5, d6 = lengths
    r11, r12, r13, r21, r22, r23, r31, r32, r33, px, py, pz = flange
    shoulder, wrist, elbow = signs
    x, y, height = px - d6 * r13, py - d6 * r23, (pz - d6 * r33) - d1
    rho2 = x * x + y * y
    k2 = rho2 - d4 * d4
    side = shoulder * sqrt(maximum(k2, 0.0))
    scale = 1.0 / _nonzero(rho2)
    s1, c1 = (d4 * x + side * y) * scale, (side * x - d4 * y) * scale
    c5 = s1 * r13 - c1 * r23
    n1, n2 = s1 * r11 - c1 * r21, s1 * r12 - c1 * r22
    h2 = n1 * n1 + n2 * n2
    h = sqrt(h2)
    inverse = wrist / _nonzero(h)
    c6, s6 = n1 * inverse, -(n2 * inverse)
    ax, ay = c1 * r11 + s1 * r21, c1 * r12 + s1 * r22
    s234, c234 = -(ax * s6 + ay * c6), r31 * s6 + r32 * c6
    if mirror:
        c6, s6, s234, c234, wrist = -c6, -s6, -s234, -c234, -wrist
    X, Y = (c1 * x + s1 * y) - d5 * s234, height + d5 * c234
    c3 = ((X * X + Y * Y) - (a2 * a2 + a3 * a3)) * (1.0 / (2.0 * (a2 * a3)))
    s3_squared = (1.0 - c3) * (1.0 + c3)
    s3 = elbow * sqrt(maximum(s3_squared, 0.0))
    along, across = a2 + a3 * c3, a3 * s3
    q2 = _angle(Y * along - X * across, X * along + Y * across)
    q3 = _angle(s3, c3)
    q4 = wrapped((atan2(s234, c234) - q2) - q3)
    shoulder_near, wrist_near, elbow_near = (x * x for x in near)
    close = (k2 <= shoulder_near) | (h2 <= wrist_near) | (absolute(s3_squared) <= elbow_near)
    return [
        _angle(s1, c1), q2, q3, q4, _angle(wrist * h, c5), _angle(s6, c6),
        where((k2 >= 0.0) & (s3_squared >= 0.0), 1.0, 0.0), where(close, 1.0, 0.0),
        0.0, 0.0, 0.0, where(s3 * X <= 0.0, 1.0, 0.0),
    ]  # fmt: skip


def branch(
    lengths: Vector,
    flange: Vector,
    reference: tuple[Scalar, Scalar, Scalar, Scalar],
    correction: Scalar,
    signs: tuple[Scalar, Scalar, Scalar],
) -> list[Scalar]:
    """One solution of any flange pose (R row by row, then p): six angles in (-pi, pi], then OUTPUTS.

    reference: q1, q3, q6 of the caller and 1; or 0, 0, 0 and 0 for none (then q6 = 0 at a wrist singularity).
    correction is what `prepare` had to change in the rotation: a pose given with few digits is answered within them.
    `miss` is the distance [m] by which the branch is out of reach, 0 where it is not.
    """
    d1, a2, a3, d4, d5, d6 = lengths
    r11, r12, r13, r21, r22, r23, r31, r32, r33, px, py, pz = flange
    shoulder, wrist, elbow = signs
    exact = NO_ERROR + correction
    slack = NO_ERROR + 10.0 * correction  # reach: the position was rounded as the rotation was, and adds up
    q1_ref, q3_ref, q6_ref, given = reference

    # Shoulder: the point p5 lies beside the arm's plane by d4.
    x, y, height = px - d6 * r13, py - d6 * r23, (pz - d6 * r33) - d1
    rho2 = x * x + y * y
    k = sqrt(maximum(rho2 - d4 * d4, 0.0))
    side = shoulder * k
    s1, c1 = d4 * x + side * y, side * x - d4 * y
    n = _nonzero(sqrt(s1 * s1 + c1 * c1))
    s1, c1 = s1 / n, c1 / n
    s_ref, c_ref = sin(q1_ref), cos(q1_ref)
    keep = (absolute((s_ref * x - c_ref * y) - d4) <= exact) & (given > 0.5)
    keep = keep & (sum_squares([s_ref - s1, c_ref - c1]) <= SAME_ROOT * exact / d4)
    s1, c1 = where(keep, s_ref, s1), where(keep, c_ref, c1)
    miss_shoulder = d4 - sqrt(rho2)

    # Wrist: (n1, n2) = sin q5 (cos q6, -sin q6).
    c5 = s1 * r13 - c1 * r23
    n1, n2 = s1 * r11 - c1 * r21, s1 * r12 - c1 * r22
    h = sqrt(n1 * n1 + n2 * n2)
    s5 = wrist * h
    inverse = wrist / _nonzero(h)
    c6, s6 = n1 * inverse, -(n2 * inverse)
    s_ref, c_ref = sin(q6_ref), cos(q6_ref)
    keep = h * _distance(c6 - c_ref, s6 - s_ref) <= exact
    c6, s6 = where(keep, c_ref, c6), where(keep, s_ref, s6)

    # Arm plane: the direction theta = q2 + q3 + q4 follows from q6; move both where the elbow cannot reach.
    ax, ay = c1 * r11 + s1 * r21, c1 * r12 + s1 * r22
    s234, c234 = -(ax * s6 + ay * c6), r31 * s6 + r32 * c6
    reach = c1 * x + s1 * y
    cd, sd = _into_arc(lengths, reach, height, s234, c234, h, exact)
    s234, c234 = s234 * cd + c234 * sd, c234 * cd - s234 * sd
    toward = where(c5 < 0.0, -sd, sd)  # q4 + q6 is fixed where the axes agree, q4 - q6 where they oppose
    s6, c6 = s6 * cd - c6 * toward, c6 * cd + s6 * toward

    # Elbow: two links to the point (X, Y).
    X, Y = reach - d5 * s234, height + d5 * c234
    r2 = X * X + Y * Y
    c3 = (r2 - (a2 * a2 + a3 * a3)) / (2.0 * (a2 * a3))
    c3 = minimum(maximum(c3, -1.0), 1.0)
    s3 = elbow * sqrt((1.0 - c3) * (1.0 + c3))
    far, near = absolute(a2) + absolute(a3), absolute(absolute(a2) - absolute(a3))
    distance = sqrt(r2)
    s_ref, c_ref = sin(q3_ref), cos(q3_ref)
    r_ref = sqrt((a2 * a2 + a3 * a3) + (2.0 * (a2 * a3)) * c_ref)
    keep = (absolute(r_ref - distance) <= exact) & (given > 0.5)
    keep = keep & (sum_squares([s_ref - s3, c_ref - c3]) <= SAME_ROOT * exact * far / (a2 * a3))
    s3, c3 = where(keep, s_ref, s3), where(keep, c_ref, c3)
    miss_elbow = maximum(distance - far, near - distance)

    along, across = a2 + a3 * c3, a3 * s3
    q2 = _angle(Y * along - X * across, X * along + Y * across)
    q3 = _angle(s3, c3)
    q4 = wrapped((atan2(s234, c234) - q2) - q3)
    miss = maximum(maximum(miss_shoulder, miss_elbow), 0.0)
    return [
        _angle(s1, c1), q2, q3, q4, _angle(s5, c5), _angle(s6, c6),
        where(miss <= slack, 1.0, 0.0), miss,
        where(k <= SINGULAR, 1.0, 0.0), where(absolute(s3) <= SINGULAR, 1.0, 0.0), where(h <= SINGULAR, 1.0, 0.0),
        where(s3 * X <= 0.0, 1.0, 0.0),
    ]  # fmt: skip


def _into_arc(
    lengths: Vector, reach: Scalar, height: Scalar, s: Scalar, c: Scalar, h: Scalar, slack: Scalar
) -> tuple[Scalar, Scalar]:
    """Cosine and sine of the smallest change of theta that brings the elbow into reach, if the wrist allows it.

    |(reach - d5 sin, height + d5 cos)|^2 = A^2 + d5^2 + 2 d5 A cos(w) with w = theta + phi, A = |(reach, height)|:
    reachable are low <= cos w <= high. Clamping cos w and keeping the sign of sin w moves w to the nearest end.
    """
    _, a2, a3, _, d5, _ = lengths
    A2 = reach * reach + height * height
    A = maximum(sqrt(A2), 1e-9)  # the point on the axis: then theta does not change the reach at all
    cw, sw = (height * c - reach * s) / A, (height * s + reach * c) / A
    far, near = absolute(a2) + absolute(a3), absolute(a2) - absolute(a3)
    base, unit = A2 + d5 * d5, 2.0 * d5 * A
    low, high = (near * near - base) / unit, (far * far - base) / unit
    target = minimum(maximum(minimum(maximum(cw, low), high), -1.0), 1.0)
    other = sqrt((1.0 - target) * (1.0 + target))
    other = where(sw < 0.0, -other, other)
    outside = (cw < low) | (high < cw)
    allowed = h * _distance(target - cw, other - sw) <= slack
    move = outside & allowed
    return where(move, target * cw + other * sw, 1.0), where(move, other * cw - target * sw, 0.0)


def _angle(y: Scalar, x: Scalar) -> Scalar:
    """Angle of (x, y) in (-pi, pi] to the last bit: just below the negative x axis it rounds to -pi, which is pi."""
    a = atan2(y, x)
    return where(a <= -math.pi, math.pi, a)


def _distance(dx: Scalar, dy: Scalar) -> Scalar:
    return sqrt(dx * dx + dy * dy)


def _nonzero(x: Scalar) -> Scalar:
    """x, or 1 where x is 0: what is divided by it then is 0 as well."""
    return where(x <= 0.0, 1.0, x)


def wrapped(x: Any) -> Any:
    """The angle in (-pi, pi]."""
    y = x - (2.0 * math.pi) * rounded(x * (0.5 / math.pi))
    return where(y <= -math.pi, y + 2.0 * math.pi, y)


def merge(q: Vector, valid: Vector, reference: Vector, use_reference: Scalar) -> list[Scalar]:
    """Which of the eight lanes stay (1) when solutions closer than MERGE are taken as one.

    Of two that coincide the one nearer to the reference stays (use_reference = 1), else the first. Lanes can only
    coincide next to a singularity, so callers need this only where one is flagged.
    """
    n = 6
    rows = [q[n * i : n * i + n] for i in range(LANES)]
    off = [sum_squares([wrapped(a - b) for a, b in zip(row, reference, strict=True)]) for row in rows]
    keep = list(valid)
    for i in range(LANES):
        for j in range(i + 1, LANES):
            gap: Scalar = 0.0
            for a, b in zip(rows[i], rows[j], strict=True):
                gap = maximum(absolute(wrapped(a - b)), gap)
            same = (gap < MERGE) & (keep[i] > 0.5) & (keep[j] > 0.5)
            second = (off[j] < off[i]) & (use_reference > 0.5)
            keep[i] = where(same, where(second, 0.0, keep[i]), keep[i])
            keep[j] = where(same, where(second, keep[j], 0.0), keep[j])
    return keep


def sum_squares(x: Vector) -> Scalar:
    """Sum of the squares."""
    total: Scalar = 0.0
    for a in x:
        total = total + a * a
    return total


TURN = 6.283185307179586  # rad
# A joint this far [rad] beyond its limit still counts as within: rounding of an angle near pi is 4e-16.
LIMIT_SLACK = 1e-9


def whole_turns(q: Scalar, reference: Scalar, low: Scalar, high: Scalar) -> tuple[Scalar, Scalar]:
    """q plus the whole turns that bring one joint nearest to the reference within its limits [rad]; whether any does.

        q + 2 pi k,   k = round((reference - q) / 2 pi), held within ceil((low - q) / 2 pi) and floor((high - q) / 2 pi)

    Joints are independent, so the nearest turn of each joint alone gives the nearest joint vector.
    """
    bottom, top = low - LIMIT_SLACK, high + LIMIT_SLACK
    first, last = _ceiling((bottom - q) / TURN), 0.0 - _ceiling((q - top) / TURN)
    k = minimum(maximum(rounded((reference - q) / TURN), first), maximum(first, last))
    moved = q + k * TURN
    return moved, (first <= last) & (bottom <= moved) & (moved <= top)


def _ceiling(x: Scalar) -> Scalar:
    whole = rounded(x)
    return where(whole < x, whole + 1.0, whole)
