"""The serial chain as the algorithms see it: joint frames, bodies as moments of their mass, steps from joint to joint.

Frame i of the chain sits on joint axis i (z along the axis) and moves with link i:

    T_{i-1,i} = [R_i, p_i] motion(q_i),      motion = Rz(turns q_i + offset) Tz(slides q_i)

A revolute joint has turns = 1 and slides = 0, a prismatic one 0 and 1. Written so, one text serves both, and a chain
whose kinds of joints are known only at run time as well; where they are known, the zeros fold away.

These are "proximal" frames; the link frames that users see (DH: distal) hang off them by a fixed transform.
A body is (m, h, S): its mass, first moment h = int r dm [kg m] and second moment S = int r r^T dm [kg m2], about the
origin of its frame; the inertia tensor is I = tr(S) 1 - S. Moments are linear in the mass, which makes shifting,
merging and regrouping bodies plain additions.

The recursions step from one working frame to the next and back. A working frame sits on its joint's axis (z along it).
For a joint that stands alone it turns with its link. Joints with parallel axes (2, 3, 4 of a UR) share the orientation
that the first of them has before its turn: between them vectors need no rotation at all, and the links' moments of mass
are turned into that frame instead. For a UR this saves about a third of all arithmetic.

Every number may be a float or a traced symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tangere.codegen.functions import cos, sin
from tangere.kinematics import vectors as v
from tangere.kinematics.vectors import Matrix, Scalar, Vector
from tangere.model.inertia import with_payload
from tangere.model.model import Array, Link, Model


@dataclass(frozen=True)
class Body:
    """Mass, first moment and second moment of a rigid body about the origin of its frame."""

    m: Scalar
    h: Vector
    S: Matrix
    turned: Scalar | None = None  # Sxx + Syy, where it was known before a turn about z, which leaves it as it is

    @property
    def polar(self) -> Scalar:
        """Moment of inertia about z: Sxx + Syy."""
        return self.S[0][0] + self.S[1][1] if self.turned is None else self.turned

    @property
    def com(self) -> Vector:
        """Centre of mass."""
        return [h / self.m for h in self.h]

    def moved(self, R: Matrix, p: Vector) -> Body:
        """The same body seen from a frame in which its own frame stands at [R, p]."""
        h = v.matvec(R, self.h)
        S = v.conjugate_symmetric(R, self.S)
        return Body(self.m, v.add(h, v.scale(self.m, p)), shifted(S, h, self.m, p))

    def plus(self, other: Body) -> Body:
        """Both bodies as one."""
        polar = self.polar + other.polar
        return Body(self.m + other.m, v.add(self.h, other.h), v.matadd(self.S, other.S), polar)


def shifted(S: Matrix, h: Vector, m: Scalar, p: Vector) -> Matrix:
    """Second moment after moving the body by p: S + h p^T + p h^T + m p p^T."""
    out: Matrix = [[0.0] * 3 for _ in range(3)]
    for i in range(3):
        for j in range(i, 3):
            out[i][j] = out[j][i] = S[i][j] + (h[i] * p[j] + p[i] * h[j]) + m * (p[i] * p[j])
    return out


def is_number(x: Scalar, value: float) -> bool:
    """Whether x is that number, now: a traced symbol is none, whatever it may become."""
    return isinstance(x, float) and x == value


def is_identity(R: Matrix) -> bool:
    """Whether R is the identity, now."""
    return all(is_number(R[i][j], float(i == j)) for i in range(3) for j in range(3))


EMPTY = Body(0.0, [0.0] * 3, [[0.0] * 3 for _ in range(3)])


@dataclass(frozen=True)
class Chain:
    """Numbers of a serial arm, ready for the recursions (see the module's text)."""

    turns: list[Scalar]  # how far each joint turns per unit of q: 1 revolute, 0 prismatic
    slides: list[Scalar]  # how far it slides along its axis: 0 revolute, 1 prismatic
    offsets: list[Scalar]  # [rad] turn of a joint at q = 0
    R: list[Matrix]
    p: list[Vector]
    R_link: list[Matrix]  # link frame in its joint frame
    p_link: list[Vector]
    R_tcp: Matrix  # tcp in the last joint frame
    p_tcp: Vector
    bodies: list[Body]
    com: list[Vector]  # centre of mass of each link in its joint frame, payload included in the last
    gravity: Vector
    rotor: list[Scalar]  # reflected rotor inertia, added to the diagonal of M
    fixed_h: Vector  # first moment of what regrouping moved into the base (potential energy only)
    fixed_m: Scalar

    @property
    def dof(self) -> int:
        """Number of joints."""
        return len(self.turns)

    def regrouped(self) -> Chain:
        """The same dynamics with fewer numbers: mass on a revolute joint's axis is moved to the previous link.

        A mass distribution on the axis (m, h = (0, 0, hz), S = diag(0, 0, Szz)) does not notice the joint turn, so it
        may as well belong to the link before. Link i keeps hx, hy, Sxx, Syy, Sxy, Sxz, Syz: the base parameters of
        Gautier and Khalil (1990), in moments instead of inertias. tau, M, C, g and both energies are unchanged.
        """
        bodies = list(self.bodies)
        h, m = list(self.fixed_h), self.fixed_m
        for i in reversed(range(self.dof)):
            if not is_number(self.slides[i], 0.0):
                continue
            b = bodies[i]
            on_axis = Body(b.m, [0.0, 0.0, b.h[2]], [[0.0] * 3, [0.0] * 3, [0.0, 0.0, b.S[2][2]]])
            S = [[*b.S[0]], [*b.S[1]], [b.S[2][0], b.S[2][1], 0.0]]
            bodies[i] = Body(0.0, [b.h[0], b.h[1], 0.0], S)
            moved = on_axis.moved(self.R[i], self.p[i])
            if i > 0:
                bodies[i - 1] = bodies[i - 1].plus(moved)
            else:
                h, m = v.add(h, moved.h), m + moved.m
        return replace(self, bodies=bodies, fixed_h=h, fixed_m=m)


def body_of(link: Link) -> Body:
    """Moments of a link about its frame's origin from mass, centre of mass and inertia about it."""
    S = 0.5 * np.trace(link.inertia) * np.eye(3) - link.inertia + link.mass * np.outer(link.com, link.com)
    return Body(float(link.mass), [float(x) for x in link.mass * link.com], _floats(S))


def link_bodies(model: Model) -> list[Body]:
    """Every link as a body in its own frame, the payload merged into the last."""
    return [body_of(link) for link in (*model.links[:-1], with_payload(model.links[-1], model.payload))]


def _floats(A: Array) -> list[list[float]]:
    return [[float(x) for x in row] for row in A]


def chain_of(model: Model, *, rotor_inertia: Array | None = None) -> Chain:
    """The chain of a model, payload merged into the last link; reflected rotor inertia (n,) only where given."""
    link_frames = [j.T_joint_link for j in model.joints]
    joint_frames = [
        (link_frames[i - 1] if i else np.eye(4)) @ j.T_parent_joint for i, j in enumerate(model.joints)
    ]
    bodies = [
        body.moved(_floats(T[:3, :3]), T[:3, 3].tolist())
        for body, T in zip(link_bodies(model), link_frames, strict=True)
    ]
    tcp = link_frames[-1] @ model.T_flange_tcp
    rotor = np.zeros(model.dof) if rotor_inertia is None else rotor_inertia
    return Chain(
        turns=[float(j.kind == "revolute") for j in model.joints],
        slides=[float(j.kind != "revolute") for j in model.joints],
        offsets=[0.0] * model.dof,
        R=[_floats(T[:3, :3]) for T in joint_frames],
        p=[T[:3, 3].tolist() for T in joint_frames],
        R_link=[_floats(T[:3, :3]) for T in link_frames],
        p_link=[T[:3, 3].tolist() for T in link_frames],
        R_tcp=_floats(tcp[:3, :3]),
        p_tcp=tcp[:3, 3].tolist(),
        bodies=bodies,
        com=[body.com for body in bodies],
        gravity=model.gravity.tolist(),
        rotor=[float(x) for x in rotor],
        fixed_h=[0.0] * 3,
        fixed_m=0.0,
    )


def pieces(values: Sequence[Scalar], *sizes: int) -> list[list[Scalar]]:
    """A flat list cut into consecutive parts of the given sizes."""
    out, start = [], 0
    for n in sizes:
        out.append(list(values[start : start + n]))
        start += n
    return out


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

    @property
    def tilts(self) -> bool:
        """Whether R is a turn about x by an angle that is not known yet."""
        first = [self.R[0], [row[0] for row in self.R]]
        return all(is_number(x, float(k == 0)) for row in first for k, x in enumerate(row)) and not isinstance(
            self.R[1][1], float
        )

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
        if self.tilts:
            S = v.tilt_symmetric(self.R[2][1], self.R[1][1], S)
        else:
            S = v.conjugate_symmetric(self.R, S)
        if self.before is not None:
            S = v.turn_symmetric(*self.before, S)
        return shifted(S, h_out, m, self.p)

    def of_link(self, x: Vector) -> Vector:
        """A vector of the link's joint frame in the working frame."""
        return _turn(self.angle, x)

    def to_link(self, x: Vector) -> Vector:
        """A vector of the working frame in the link's joint frame."""
        return _unturn(self.angle, x)

    def of_body(self, body: Body) -> Body:
        """A body of the link's joint frame in the working frame."""
        if self.angle is None:
            return body
        return Body(body.m, v.turn(*self.angle, body.h), v.turn_symmetric(*self.angle, body.S), body.polar)


def parallel_groups(chain: Chain) -> list[int]:
    """For each joint the first joint of its group of parallel revolute axes (itself where it stands alone)."""
    leader = list(range(chain.dof))
    for i in range(1, chain.dof):
        if is_number(chain.slides[i], 0.0) and is_number(chain.slides[i - 1], 0.0) and is_identity(chain.R[i]):
            leader[i] = leader[i - 1]
    return leader


def steps(chain: Chain, q: Vector) -> list[Step]:
    """The step to each working frame from the one before."""
    leader = parallel_groups(chain)
    out: list[Step] = []
    angle: Turn = None
    for i in range(chain.dof):
        before, p = angle, _turn(angle, chain.p[i])
        slide = chain.slides[i] * q[i]
        if not is_number(chain.slides[i], 0.0):
            p = v.add(p, _turn(before, [slide * row[2] for row in chain.R[i]]))
        if is_number(chain.turns[i], 0.0):
            out.append(Step(before, chain.R[i], None, p, None))
            angle = None
            continue
        own_angle = chain.turns[i] * q[i] + chain.offsets[i]
        own = (sin(own_angle), cos(own_angle))
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
