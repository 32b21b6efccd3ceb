"""The UR arm as a chain whose numbers are run-time parameters: one set of kernels serves every UR and payload.

All UR arms share one structure, alpha = (90, 0, 0, 90, -90, 0) deg with a2, a3, d1, d4, d5, d6; its zeros
and quarter turns are written into the kernels, its lengths and moments of mass are parameters. Joint frames are taken
where the arithmetic is cheapest: d4, d5, d6 before their joints' turns.
"""

from __future__ import annotations

import numpy as np

from tangere.kinematics.chain import Body, Chain, link_bodies, pieces
from tangere.kinematics.vectors import IDENTITY, Matrix, Scalar
from tangere.model.model import Array, Model

DOF = 6
# [deg] elbow bent, tool down, far from every singularity: where an arm stands unless told otherwise
READY = (0.0, -90.0, 90.0, -90.0, -90.0, 0.0)
# d1 a2 a3 d4 d5 d6, tool (rotation 9, translation 3), gravity 3, seven moments per link, rotor inertia 6,
# centres of mass 18, first moment of what regrouping moved into the base 3.
_SIZES = (6, 9, 3, 3, 7 * DOF, DOF, 3 * DOF, 3)
PARAMETER_COUNT = sum(_SIZES)
COM_AT = sum(_SIZES[:6])  # where the centres of mass begin
ROTOR = sum(_SIZES[:5])  # where the rotor inertia begins

_TURNS: list[Scalar] = [1.0] * DOF
_SLIDES: list[Scalar] = [0.0] * DOF
_QUARTER: Matrix = [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]  # Rx(90 deg)
_BACK: Matrix = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]  # Rx(-90 deg)


def _place(values: list[Scalar]) -> tuple[list[Matrix], list[list[Scalar]], list[Matrix], list[list[Scalar]]]:
    """Joint frames and link (DH) frames from the six lengths."""
    d1, a2, a3, d4, d5, d6 = values
    R = [IDENTITY, _QUARTER, IDENTITY, IDENTITY, _QUARTER, _BACK]
    p = [[0.0, 0.0, d1], [0.0] * 3, [a2, 0.0, 0.0], [a3, 0.0, d4], [0.0, -d5, 0.0], [0.0, d6, 0.0]]
    R_link = [_QUARTER, IDENTITY, IDENTITY, _QUARTER, _BACK, IDENTITY]
    p_link = [[0.0] * 3, [a2, 0.0, 0.0], [a3, 0.0, 0.0], [0.0] * 3, [0.0] * 3, [0.0] * 3]
    return R, p, R_link, p_link


def is_ur(model: Model) -> bool:
    """Whether the model has the UR structure exactly, so that its kernels and closed-form IK apply."""
    dh = model.dh
    if dh is None or model.dof != DOF or any(j.kind != "revolute" for j in model.joints):
        return False
    quarter = np.pi / 2
    return bool(
        np.array_equal(dh.alpha, [quarter, 0.0, 0.0, quarter, -quarter, 0.0])
        and np.array_equal(dh.a[[0, 3, 4, 5]], np.zeros(4))
        and np.array_equal(dh.d[[1, 2]], np.zeros(2))
        and dh.a[1] * dh.a[2] > 0.0
        and np.all(dh.d[[3, 4]] > 0.0)  # inverse kinematics counts on it
    )


def mass_parameters(
    lengths: list[Scalar], links: list[Body], gravity: list[Scalar], rotor: list[Scalar], *, centres: bool = True
) -> list[Scalar]:
    """What follows lengths and tool in the parameter vector, of floats or of traced symbols.

    links: moments of mass about the origins of the link (DH) frames. centres: False leaves the centres of mass zero,
    for kernels that do not ask for Jacobians there: a symbolic body may have no mass, and so no centre.
    """
    R, p, R_link, p_link = _place(lengths)
    bodies = [body.moved(R_link[i], p_link[i]) for i, body in enumerate(links)]
    com: list[list[Scalar]] = [body.com if centres else [0.0] * 3 for body in bodies]
    tool: Matrix = [[0.0] * 3 for _ in range(3)]  # masses do not depend on it
    place = (_TURNS, _SLIDES, _SLIDES, R, p, R_link, p_link, tool, [0.0] * 3)
    reduced = Chain(*place, bodies, com, gravity, rotor, [0.0] * 3, 0.0).regrouped()
    moments = [
        x
        for b in reduced.bodies
        for x in (b.S[0][0], b.S[1][1], b.S[0][1], b.S[0][2], b.S[1][2], b.h[0], b.h[1])
    ]
    return [*gravity, *moments, *rotor, *(x for c in com for x in c), *reduced.fixed_h]


def parameters_of(model: Model, *, rotor_inertia: Array | None = None) -> Array:
    """The kernels' parameter vector of a UR model, payload and tool included."""
    assert model.dh is not None
    a, d = model.dh.a, model.dh.d
    lengths = [float(x) for x in (d[0], a[1], a[2], d[3], d[4], d[5])]
    T = model.T_flange_tcp
    rotor = np.zeros(DOF) if rotor_inertia is None else rotor_inertia
    rest = mass_parameters(lengths, link_bodies(model), model.gravity.tolist(), rotor.tolist())
    return np.array([*lengths, *T[:3, :3].ravel(), *T[:3, 3], *rest], dtype=np.float64)


def chain(P: list[Scalar]) -> Chain:
    """The UR chain over a parameter vector, of floats or of traced symbols."""
    lengths, R_tool, p_tool, gravity, moments, rotor, com, fixed_h = pieces(P, *_SIZES)
    R, p, R_link, p_link = _place(lengths)
    bodies = []
    for i in range(DOF):
        xx, yy, xy, xz, yz, hx, hy = moments[7 * i : 7 * i + 7]
        bodies.append(Body(0.0, [hx, hy, 0.0], [[xx, xy, xz], [xy, yy, yz], [xz, yz, 0.0]]))
    return Chain(
        turns=_TURNS,
        slides=_SLIDES,
        offsets=_SLIDES,
        R=R,
        p=p,
        R_link=R_link,
        p_link=p_link,
        R_tcp=[R_tool[0:3], R_tool[3:6], R_tool[6:9]],
        p_tcp=p_tool,
        bodies=bodies,
        com=[com[3 * i : 3 * i + 3] for i in range(DOF)],
        gravity=gravity,
        rotor=rotor,
        fixed_h=fixed_h,
        fixed_m=0.0,
    )
