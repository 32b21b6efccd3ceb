"""Any serial arm as a chain whose numbers are run-time parameters: calibrated URs, other six-axis arms, sliding joints.

A frame on a joint's axis may be turned about it and moved along it without changing the arm. Both freedoms are used up
so that a step from axis to axis is as cheap as it can be, for any pair of axes:

    T_{i-1,i} = [Rx(alpha_i), (x_i, y_i, 0)] Rz(turns_i q_i + offset_i) Tz(slides_i q_i)

Denavit and Hartenberg ask for y_i = 0 as well and pay with lengths that grow without bound as axes become parallel (2,
3 and 4 of a calibrated UR are, within a milliradian); here the lengths stay those of the arm. Only the base (T_base_1),
the tool and the link frames that users see are general transforms.

Kernels of a structure without sliding joints take turned angles, q_i + offset_i, in place of q: whoever calls them adds
the offsets, the first of the parameters.

A structure is traced for `joints` joints. An arm with fewer is served by the next larger one: what is left over are
joints without mass at the tip that never move. `sliding` structures take the kinds of the joints as parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import atan2, cos, hypot, sin

import numpy as np

from tangere.codegen.trace import Graph
from tangere.kernels.table import Trace
from tangere.kinematics import inverse_polish as polish
from tangere.kinematics import vectors as v
from tangere.kinematics.chain import EMPTY, Body, Chain, chain_of, pieces
from tangere.kinematics.vectors import IDENTITY, Matrix, Scalar, Vector
from tangere.model.model import Array, Model

JOINTS_MAX = 8


@dataclass(frozen=True)
class Structure:
    """What is written into a set of kernels; everything else about an arm is in its parameters."""

    name: str
    joints: int
    sliding: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """Lengths of the parts of the parameter vector, in the order of `chain`."""
        n = self.joints
        return (n, 12, 4 * n, 2 * n * self.sliding, 12 * n, 12, (10 if self.sliding else 7) * n, 3 * n, 3, n, 3)

    @property
    def parameter_count(self) -> int:
        """Length of the parameter vector."""
        return sum(self.sizes)

    def com_at(self, joint: int) -> int:
        """Where the centre of mass of a link begins in the parameter vector."""
        return sum(self.sizes[:7]) + 3 * joint

    def chain(self, P: list[Scalar]) -> Chain:
        """The chain over a parameter vector, of floats or of traced symbols."""
        n = self.joints
        offsets, base, joints, kinds, links, tcp, moments, com, gravity, rotor, fixed_h = pieces(P, *self.sizes)
        R, p, R_link, p_link, bodies = [_rotation(base)], [base[9:]], [], [], []
        for i in range(n):
            if i:
                s, c, x, y = joints[4 * i : 4 * i + 4]
                R.append([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
                p.append([x, y, 0.0])
            R_link.append(_rotation(links[12 * i :]))
            p_link.append(links[12 * i + 9 : 12 * i + 12])
            bodies.append(self._body(moments, i))
        return Chain(
            turns=kinds[:n] if self.sliding else [1.0] * n,
            slides=kinds[n:] if self.sliding else [0.0] * n,
            offsets=offsets if self.sliding else [0.0] * n,
            R=R,
            p=p,
            R_link=R_link,
            p_link=p_link,
            R_tcp=_rotation(tcp),
            p_tcp=tcp[9:],
            bodies=bodies,
            com=[com[3 * i : 3 * i + 3] for i in range(n)],
            gravity=gravity,
            rotor=rotor,
            fixed_h=fixed_h,
            fixed_m=0.0,
        )

    def with_offsets(self, P: list[Scalar]) -> Chain:
        """The same for laws, which take q as it is."""
        return replace(self.chain(P), offsets=P[: self.joints])

    def _body(self, moments: list[Scalar], i: int) -> Body:
        """A link's moments; regrouping has left seven to a link whose joint turns."""
        if not self.sliding:
            xx, yy, xy, xz, yz, hx, hy = moments[7 * i : 7 * i + 7]
            return Body(0.0, [hx, hy, 0.0], [[xx, xy, xz], [xy, yy, yz], [xz, yz, 0.0]])
        m, hx, hy, hz, xx, yy, zz, xy, xz, yz = moments[10 * i : 10 * i + 10]
        return Body(m, [hx, hy, hz], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


SIX = Structure("six", 6)
SEVEN = Structure("seven", 7)
EIGHT = Structure("eight", 8, sliding=True)
STRUCTURES = (SIX, SEVEN, EIGHT)


def _rotation(values: list[Scalar]) -> Matrix:
    return [list(values[0:3]), list(values[3:6]), list(values[6:9])]


def trace_polish(structure: Structure) -> Trace:
    """One round of inverse_polish: x is the state of a search, the pose (R row by row, p), whether joint 6 is free."""
    graph = Graph()
    P = graph.inputs("P", structure.parameter_count, uniform=True)
    state, target, (free,) = pieces(graph.inputs("x", polish.STATE + 13), polish.STATE, 12, 1)
    return Trace(graph, [graph.lift(y) for y in polish.round_of(structure.chain(P), state, target, free)])


def structure_of(model: Model) -> Structure | None:
    """The smallest structure that serves the model; None for an arm with more than JOINTS_MAX joints."""
    slides = any(j.kind != "revolute" for j in model.joints)
    fitting = (s for s in STRUCTURES if s.joints >= model.dof and (s.sliding or not slides))
    return next(fitting, None)


def parameters_of(structure: Structure, model: Model, *, rotor_inertia: Array) -> Array:
    """The kernels' parameter vector of a model, payload and tool included."""
    return np.array(vector(structure, canonical(chain_of(model, rotor_inertia=rotor_inertia))), dtype=np.float64)


def vector(structure: Structure, own: Chain) -> list[Scalar]:
    """The parameters of a canonical chain; its bodies may hold any numbers."""
    chain, dof = own.regrouped(), own.dof
    spare = structure.joints - dof
    joints: list[float] = []
    for i in range(dof):
        s, c, x, y = (chain.R[i][2][1], chain.R[i][1][1], *chain.p[i][:2]) if i else (0.0, 1.0, 0.0, 0.0)
        joints += [s, c, x, y]
    joints += [0.0, 1.0, 0.0, 0.0] * spare
    kinds = [*chain.turns, *[1.0] * spare, *chain.slides, *[0.0] * spare] if structure.sliding else []
    links = [x for R, p in zip(chain.R_link, chain.p_link, strict=True) for x in _flat(R, p)]
    moments: list[Scalar] = []
    for b in [*chain.bodies, *[EMPTY] * spare]:
        S = b.S
        if structure.sliding:
            moments += [b.m, *b.h, S[0][0], S[1][1], S[2][2], S[0][1], S[0][2], S[1][2]]
        else:
            moments += [S[0][0], S[1][1], S[0][1], S[0][2], S[1][2], b.h[0], b.h[1]]
    return [
        *chain.offsets, *[0.0] * spare, *_flat(chain.R[0], chain.p[0]), *joints, *kinds,
        *links, *_flat(IDENTITY, [0.0] * 3) * spare, *_flat(chain.R_tcp, chain.p_tcp), *moments,
        *(x for c in chain.com for x in c), *[0.0] * (3 * spare), *chain.gravity,
        *chain.rotor, *[1.0] * spare,  # [kg m2] any: M of the joints that never move must not be singular
        *chain.fixed_h,
    ]  # fmt: skip


def _flat(R: Matrix, p: Vector) -> list[float]:
    return [*R[0], *R[1], *R[2], *p]


def canonical(chain: Chain) -> Chain:
    """The same arm of floats with the frames of the module's text: R_i = Rx(alpha_i), p_i = (x_i, y_i, 0) for i > 0."""
    n = chain.dof
    before, tilt, after = zip(*(_turns(R) for R in chain.R), strict=True)
    turn = [*before[1:], 0.0]  # how far each frame is turned about its axis, and moved along it
    offsets = [turn[0]]
    for i in range(1, n):
        offsets.append(chain.offsets[i] + after[i] + turn[i])
    move = [0.0] * n
    p: list[Vector] = [[]] * n
    for i in reversed(range(1, n)):
        x, y, z = v.unturn(sin(before[i]), cos(before[i]), chain.p[i])
        s, c = sin(tilt[i]), cos(tilt[i])
        p[i], move[i - 1] = [x, y - s * move[i], 0.0], z + c * move[i]
    p[0] = v.add(chain.p[0], [row[2] * move[0] for row in chain.R[0]])

    def seen(i: int, x: Vector) -> Vector:
        return v.unturn(sin(turn[i]), cos(turn[i]), x)

    def place(i: int, x: Vector) -> Vector:
        return seen(i, [x[0], x[1], x[2] - move[i]])

    def rotated(i: int, R: Matrix) -> Matrix:
        return v.transposed([seen(i, column) for column in v.transposed(R)])

    tilts = [[[1.0, 0.0, 0.0], [0.0, cos(a), -sin(a)], [0.0, sin(a), cos(a)]] for a in tilt]
    return replace(
        chain,
        offsets=offsets,
        R=[chain.R[0], *tilts[1:]],
        p=p,
        R_link=[rotated(i, R) for i, R in enumerate(chain.R_link)],
        p_link=[place(i, x) for i, x in enumerate(chain.p_link)],
        R_tcp=rotated(n - 1, chain.R_tcp),
        p_tcp=place(n - 1, chain.p_tcp),
        bodies=[b.moved(rotated(i, IDENTITY), place(i, [0.0] * 3)) for i, b in enumerate(chain.bodies)],
        com=[place(i, x) for i, x in enumerate(chain.com)],
    )


def _turns(R: Matrix) -> tuple[float, float, float]:
    """Angles with R = Rz(before) Rx(tilt) Rz(after).

    Where the axes are parallel `before` is any angle: it is then that of rounding, and `after` makes up for it.
    """
    before = atan2(R[0][2], -R[1][2]) if hypot(R[0][2], R[1][2]) > 0.0 else 0.0
    tilt = atan2(hypot(R[0][2], R[1][2]), R[2][2])
    s, c = sin(before), cos(before)
    rest = v.transposed([v.unturn(s, c, column) for column in v.transposed(R)])  # Rx(tilt) Rz(after)
    return before, tilt, atan2(-rest[0][1], rest[0][0])
