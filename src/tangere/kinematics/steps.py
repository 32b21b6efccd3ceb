"""Working frames of the recursions: from one joint to the next and back, over any number type.

A working frame sits on its joint's axis (z along it). For a joint that stands alone it turns with its link. Joints
with parallel axes (2, 3, 4 of a UR) share the orientation that the first of them has before its turn: between them
vectors need no rotation at all, and the links' moments of mass are turned into that frame instead. For a UR this
saves about a third of all arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

from tangere.codegen.functions import cos, sin
from tangere.kinematics import vectors as v
from tangere.kinematics.chain import Body, Chain, shifted
from tangere.kinematics.vectors import Matrix, Scalar, Vector

Turn = tuple[Scalar, Scalar] | None  # sine and cosine of an angle about z; None for no turn


def _turn(t: Turn, x: Vector) -> Vector:
    return x if t is None else v.turn(*t, x)


def _unturn(t: Turn, x: Vector) -> Vector:
    return x if t is None else v.unturn(*t, x)


@dataclass(frozen=True)
class Step:
    """Working frame i seen from working frame i-1: rotation Rz(before) R Rz(after), origin p."""

    before: Turn  # turn of the previous link that its working frame left out
    R: Matrix
    after: Turn  # turn of this joint, where the working frame takes part in it
    p: Vector
    angle: Turn  # turn of link i against its working frame
    continues: bool = False  # the axis is parallel to the previous one and the orientation is shared

    def into(self, x: Vector) -> Vector:
        """A vector of frame i-1 in frame i."""
        return _unturn(self.after, v.matvec(v.transposed(self.R), _unturn(self.before, x)))

    def out(self, x: Vector) -> Vector:
        """A vector of frame i in frame i-1."""
        return _turn(self.before, v.matvec(self.R, _turn(self.after, x)))

    def out_matrix(self, A: Matrix) -> Matrix:
        """Any matrix of frame i in frame i-1."""
        rows = v.transposed([self.out(column) for column in v.transposed(A)])
        return [self.out(row) for row in rows]

    def second_moment(self, S: Matrix, h_out: Vector, m: Scalar) -> Matrix:
        """Second moment of a body about the origin of frame i-1; h_out its first moment, turned already."""
        if self.after is not None:
            S = v.turn_symmetric(*self.after, S)
        S = v.conjugate_symmetric(self.R, S)
        if self.before is not None:
            S = v.turn_symmetric(*self.before, S)
        return shifted(S, h_out, m, self.p)

    def of_link(self, x: Vector) -> Vector:
        """A vector of the link's joint frame in the working frame."""
        return _turn(self.angle, x)

    def of_body(self, body: Body) -> Body:
        """A body of the link's joint frame in the working frame."""
        if self.angle is None:
            return body
        return Body(body.m, v.turn(*self.angle, body.h), v.turn_symmetric(*self.angle, body.S), body.polar)


def _grouped(chain: Chain) -> list[int]:
    """For each joint the first joint of its group of parallel revolute axes (itself where it stands alone)."""
    leader = list(range(chain.dof))
    for i in range(1, chain.dof):
        if chain.revolute[i] and chain.revolute[i - 1] and chain.R[i] == v.IDENTITY:
            leader[i] = leader[i - 1]
    return leader


def steps(chain: Chain, q: Vector) -> list[Step]:
    """The step to each working frame from the one before."""
    leader = _grouped(chain)
    out: list[Step] = []
    angle: Turn = None
    for i in range(chain.dof):
        before, p = angle, _turn(angle, chain.p[i])
        if not chain.revolute[i]:
            slide = _turn(before, [q[i] * row[2] for row in chain.R[i]])
            out.append(Step(before, chain.R[i], None, v.add(p, slide), None))
            angle = None
            continue
        own = (sin(q[i]), cos(q[i]))
        if leader[i] != i:  # further joint of a group: same orientation, the angles add up
            assert before is not None
            angle = (own[0] * before[1] + own[1] * before[0], own[1] * before[1] - own[0] * before[0])
            out.append(Step(None, v.IDENTITY, None, p, angle, continues=True))
        elif i + 1 < chain.dof and leader[i + 1] == i:  # first joint of a group
            angle = own
            out.append(Step(before, chain.R[i], None, p, angle))
        else:
            angle = None
            out.append(Step(before, chain.R[i], own, p, None))
    return out
