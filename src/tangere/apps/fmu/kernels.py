"""The C text of the kernels of one kind of FMU: the library's own traces, printed once for single numbers."""

from __future__ import annotations

from functools import cache

from tangere.codegen.functions import cos, sin, sqrt, where
from tangere.codegen.trace import Graph, Symbol, derivative
from tangere.kernels import ur
from tangere.kernels.emit import c as emit_c
from tangere.kernels.table import IK_BRANCH_INPUTS, IK_BRANCH_OUTPUTS, IK_MERGE_INPUTS, KERNELS, trace, trace_ik
from tangere.kinematics import inverse
from tangere.kinematics.chain import Body, Chain
from tangere.kinematics.vectors import Matrix, Vector

# kernels that each part of a block calls
NEEDED: dict[str, tuple[str, ...]] = {
    "MASS": ("parameters",),
    "POSE": ("kinematic_parameters", "pose", "jacobian"),
    "FK": ("jacobian_rate",),
    "IK": ("kinematic_parameters", "pose", "jacobian", "ik_prepare", "ik_project", "ik_regular", "ik_branch",
           "ik_merge"),
    "PLANT": ("forward_dynamics", "energy", "mass_matrix", "jacobian_rate", "inverse_dynamics_derivatives",
              "momentum_terms"),
    "INVERSE": ("inverse_dynamics", "inverse_dynamics_derivatives", "gravity_torque"),
    "CONTROL": ("inverse_dynamics", "inverse_dynamics_derivatives", "jacobian", "jacobian_rate"),
    "OBSERVER": ("momentum_terms",),
}  # fmt: skip
_LINK = 1 + 3 + 6  # mass, centre of mass, inertia
RAW_KINEMATIC = 6 + 6  # lengths, tool
RAW = RAW_KINEMATIC + 3 + 6 * _LINK + _LINK + 6  # gravity, links, payload, rotor inertia


def _rotation(v: Vector) -> Matrix:
    """R of a rotation vector, by way of its quaternion: nothing cancels near zero."""
    t = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    small = t <= 1e-9  # rad: sin(t/2)/t is 1/2 to the last digit below
    s = where(small, 0.5, sin(0.5 * t) / where(small, 1.0, t))
    w, x, y, z = cos(0.5 * t), s * v[0], s * v[1], s * v[2]
    return [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]


def _body(m: Symbol, c: list[Symbol], inertia: list[Symbol]) -> Body:
    """Moments of a body about its frame's origin from mass, centre of mass and xx, yy, zz, xy, xz, yz about it."""
    xx, yy, zz, xy, xz, yz = inertia
    half = 0.5 * (xx + yy + zz)
    S: Matrix = [[half - xx, -xy, -xz], [-xy, half - yy, -yz], [-xz, -yz, half - zz]]
    h = [m * x for x in c]
    return Body(m, h, [[S[i][j] + h[i] * c[j] for j in range(3)] for i in range(3)])


def _kinematic(x: list[Symbol]) -> list[Symbol | float]:
    """The head of the parameter vector that poses need: lengths, tool rotation, tool position."""
    R = _rotation(x[9:12])
    return [*x[:6], *R[0], *R[1], *R[2], *x[6:9]]


def _dynamic(x: list[Symbol]) -> list[Symbol | float]:
    """kernels.ur.parameters_of over numbers that are known at run time only."""
    gravity, rest = x[12:15], x[15:]
    masses, coms, inertias, load, rotor = rest[:6], rest[6:24], rest[24:60], rest[60:70], rest[70:76]
    links = [_body(masses[i], coms[3 * i : 3 * i + 3], inertias[6 * i : 6 * i + 6]) for i in range(6)]
    links[5] = links[5].plus(_body(load[0], load[1:4], load[4:10]))
    R, p, R_link, p_link = ur._place(list(x[:6]))
    bodies = [body.moved(R_link[i], p_link[i]) for i, body in enumerate(links)]
    com = [[0.0] * 3 for _ in bodies]  # only the Jacobians at the centres of mass need them; no block has those
    tool: Matrix = [[0.0] * 3 for _ in range(3)]
    chain = Chain(
        (True,) * 6, R, p, R_link, p_link, tool, [0.0] * 3, bodies, com, list(gravity), list(rotor), [0.0] * 3, 0.0
    )
    reduced = chain.regrouped()
    moments = [
        m
        for b in reduced.bodies
        for m in (b.S[0][0], b.S[1][1], b.S[0][1], b.S[0][2], b.S[1][2], b.h[0], b.h[1])
    ]
    flat = [c for v in com for c in v]
    return [*_kinematic(x), *gravity, *moments, *rotor, *flat, *reduced.fixed_h]


def _parameters(name: str) -> str:
    g = Graph()
    x = g.inputs("raw", RAW if name == "parameters" else RAW_KINEMATIC)
    outputs = _dynamic(x) if name == "parameters" else _kinematic(x)
    return emit_c.function(name, g, ["raw"], [g.lift(y) for y in outputs], inline=False)


def _jacobian_rate() -> str:
    """dJ (36) for q and a direction dq: x is q, then dq."""
    kernel = next(k for k in KERNELS if k.name == "jacobian")
    t = trace(kernel, ur.DOF, ur.chain, ur.PARAMETER_COUNT)
    q, dq = t.graph.inputs("x", 6), [t.graph.input("x", 6 + i) for i in range(6)]
    seeds: dict[int, float | Symbol] = {q[i].index: dq[i] for i in range(6)}
    return emit_c.function("jacobian_rate", t.graph, ["x"], derivative(t.graph, t.outputs, seeds), inline=False)


@cache
def _texts() -> dict[str, str]:
    """Every kernel that any block needs."""
    wanted = {name for names in NEEDED.values() for name in names}
    texts = {}
    for kernel in KERNELS:
        if kernel.name in wanted:
            t = trace(kernel, ur.DOF, ur.chain, ur.PARAMETER_COUNT)
            texts[kernel.name] = emit_c.function(kernel.name, t.graph, ["x"], t.outputs, inline=False)
    for name, t in trace_ik(ur.PARAMETER_COUNT).items():
        texts[name] = emit_c.function(name, t.graph, ["x"], t.outputs, inline=False)
    texts["jacobian_rate"] = _jacobian_rate()
    for name in ("parameters", "kinematic_parameters"):
        texts[name] = _parameters(name)
    return texts


def kernels_text(parts: tuple[str, ...]) -> str:
    """The C text of the kernels that these parts call, mathematics first."""
    wanted = {name for part in parts for name in NEEDED[part]}
    if "parameters" in wanted:
        wanted.discard("kinematic_parameters")
    lines = [
        "/* Generated from the traced kernels of Tangere: straight-line arithmetic, one IEEE operation each. */",
        f"#define TG_PARAMETERS {ur.PARAMETER_COUNT}",
    ]
    if "IK" in parts:
        signs = ", ".join("{" + ", ".join(map(repr, s)) + "}" for s in zip(*inverse.SIGNS, strict=True))
        lines += [
            f"#define TG_IK_LANES {inverse.LANES}",
            f"#define TG_IK_BRANCH_INPUTS {IK_BRANCH_INPUTS}",
            f"#define TG_IK_BRANCH_OUTPUTS {IK_BRANCH_OUTPUTS}",
            f"#define TG_IK_MERGE_INPUTS {IK_MERGE_INPUTS}",
            f"#define TG_ROTATION_TOLERANCE {inverse.ROTATION_TOLERANCE!r}",
            f"#define TG_EXACT_ROTATION {inverse.EXACT_ROTATION!r}",
            f"#define TG_RESCUE {inverse.RESCUE!r}",
            f"#define TG_MERGE {inverse.MERGE!r}",
            f"static const double tg_ik_signs[3][TG_IK_LANES] = {{{signs}}};",
        ]
    texts = _texts()
    mathematics = emit_c.math_functions()
    return "\n".join([*lines, "", mathematics, *(texts[name] for name in texts if name in wanted)])
