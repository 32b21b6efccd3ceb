"""The C sources of one kind of FMU, the same for every arm: hand-written runtime, generated tables and kernels.

The kernels are the library's own traces, printed once for single numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from tangere.apps.fmu.arrays import arrays_text
from tangere.apps.fmu.kinds import KINDS
from tangere.apps.fmu.part import Kind
from tangere.apps.fmu.variables import CHOICES, REFERENCE_OF, Group, Table
from tangere.codegen.functions import ANGLE_MAX, cos, sin, sqrt, where
from tangere.codegen.trace import Graph, Symbol, derivative
from tangere.kernels import ur
from tangere.kernels.emit import c as emit_c
from tangere.kernels.table import IK_BRANCH_INPUTS, IK_BRANCH_OUTPUTS, IK_MERGE_INPUTS, KERNELS, Trace, trace, trace_ik
from tangere.kinematics import inverse_closed_form as inverse
from tangere.kinematics.chain import Body
from tangere.kinematics.checks import LENGTH_MAX
from tangere.kinematics.vectors import Matrix, Vector

VALUE_MAX = 1e100  # of anything else: beyond any machine, and the product of three is still finite

_RUNTIME = (
    "fmu.c", "fmi2.h", "scalar.h", "instance.h", "resources.h", "linear.h", "part_pose.h", "block.h", "values.h",
    "lifecycle.h", "states.h", "exchange.h", "cosimulation.h",
)  # fmt: skip
_RUNTIME_3 = ("fmu3.c", "fmi3.h", "instance3.h", "values3.h", "modes3.h")  # beside them, for FMI 3.0
_LINK = 1 + 3 + 6  # mass, centre of mass, inertia
RAW_KINEMATIC = 6 + 6  # lengths, tool
RAW = RAW_KINEMATIC + 3 + 6 * _LINK + _LINK + 6  # gravity, links, payload, rotor inertia


def _access(g: Group) -> int:
    if g.causality == "parameter":
        return int(g.variability == "tunable")
    return 2 if g.causality == "input" else 3


def _bounds(g: Group) -> tuple[float, float]:
    """What a value must lie within; the same for all arms, so limits of one arm's joints do not count."""
    if isinstance(g.declared, str) and g.declared in CHOICES:
        return 1, len(CHOICES[g.declared].items)
    kinds = {g.declared} if isinstance(g.declared, str) else set(g.declared)
    limit = 2147483647 if g.kind == "Integer" else VALUE_MAX
    if kinds & {"Position", "Length"}:
        limit = LENGTH_MAX
    elif kinds & {"Angle", "RotationVector"}:
        limit = ANGLE_MAX
    low = g.low if isinstance(g.low, (int, float)) else -limit
    high = g.high if isinstance(g.high, (int, float)) else limit
    return low, high


def _table(table: Table, kind: str) -> list[str]:
    rows = []
    for p in table:
        g = p.group
        if g.kind == kind:
            low, high = _bounds(g)
            begin, discrete = int(g.key in ("PL_q_start", "PL_qd_start")), int(g.variability == "discrete")
            first = p.reference - REFERENCE_OF[g.kind]
            rows.append(f'    {{"{g.name}", {first}, {_access(g)}, {discrete}, {begin}, {low!r}, {high!r}}},')
    rows = rows or ['    {"", 0, 3, 0, 0, 0, 0},']  # C knows no empty table
    name = kind.lower()
    return [f"#define N_{name.upper()}_GROUPS {len(rows)}", f"static const tg_group tg_{name}s[] = {{", *rows, "};"]


def header_text(kind: Kind, table: Table, layout: int) -> str:
    """model.h: which parts the block has, where its variables are, what they may be."""
    lines = ["/* Generated: the variables of this block. */", f'#define TG_KIND "{kind.name}"']
    lines += [f"#define HAS_{part.name} 1" for part in kind.parts]
    lines += [f"#define N_{k.upper()} {n}" for k, n in table.count.items()]
    lines += [f"#define INTEGER_BASE {REFERENCE_OF['Integer']}u", f"#define BOOLEAN_BASE {REFERENCE_OF['Boolean']}u"]
    states = [p.reference + i for p in table.states for i in range(p.group.size)]
    of = {p.group.derivative_of: p for p in table if p.group.derivative_of}
    derivatives = [of[p.group.key].reference + i for p in table.states for i in range(p.group.size)]
    lines += [
        f"#define N_STATES {len(states)}",
        f"#define ANGLE_MAX {ANGLE_MAX!r}",
        f"#define TG_DIRECTIONAL {int(kind.directional)}",
        f"#define TG_LAYOUT {layout:#018x}ULL",
        "",
        "/* first element of each group in the list of its type */",
        "enum {",
        *(f"    {p.group.key} = {p.reference - REFERENCE_OF[p.group.kind]}," for p in table),
        "};",
    ]
    places, at = [], 0
    for part in kind.parts:
        for name, size in part.memory:
            places.append(f"    {name} = {at},")
            at += size
    lines += [
        f"#define MEMORY {at}",
        *(["enum {", *places, "};"] if places else []),
        "",
        "typedef struct {",
        "    const char *name;",
        "    int first;               /* element in the list of its type */",
        "    unsigned char access;    /* 0 fixed, 1 tunable, 2 input, 3 computed */",
        "    unsigned char discrete;",
        "    unsigned char start;     /* the start value of a state */",
        "    double low, high;",
        "} tg_group;",
        *(line for base in table.count for line in _table(table, base)),
        f"static const int tg_states[] = {{{', '.join(map(str, states or [0]))}}};",
        f"static const int tg_derivatives[] = {{{', '.join(map(str, derivatives or [0]))}}};",
    ]
    return "\n".join(lines) + "\n"


def _rotation(v: Vector) -> Matrix:
    """R of a rotation vector, by way of its quaternion: nothing cancels near zero."""
    t = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    small = t <= 1e-9  # [rad] sin(t/2)/t is 1/2 to the last digit below
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
    """The whole parameter vector: kernels.ur.parameters_of over numbers that are known at run time only."""
    gravity, rest = x[12:15], x[15:]
    masses, coms, inertias, load, rotor = rest[:6], rest[6:24], rest[24:60], rest[60:70], rest[70:76]
    links = [_body(masses[i], coms[3 * i : 3 * i + 3], inertias[6 * i : 6 * i + 6]) for i in range(6)]
    links[5] = links[5].plus(_body(load[0], load[1:4], load[4:10]))
    tail = ur.mass_parameters(list(x[:6]), links, list(gravity), list(rotor), centres=False)
    return [*_kinematic(x), *tail]


def _parameters(name: str, count: int, of: Callable[[list[Symbol]], list[Symbol | float]]) -> str:
    g = Graph()
    return emit_c.function(name, g, ["raw"], [g.lift(y) for y in of(g.inputs("raw", count))])


def _trace(name: str) -> Trace:
    kernel = next(k for k in KERNELS if k.name == name)
    return trace(kernel, ur.DOF, ur.chain, ur.PARAMETER_COUNT)


def _jacobian_rate() -> str:
    """dJ (36) for q and a direction dq: x is q, then dq."""
    t = _trace("jacobian")
    q, dq = t.graph.inputs("x", 6), [t.graph.input("x", 6 + i) for i in range(6)]
    seeds: dict[int, float | Symbol] = {q[i].index: dq[i] for i in range(6)}
    return emit_c.function("jacobian_rate", t.graph, ["x"], derivative(t.graph, t.outputs, seeds), angles=t.angles)


@cache
def _texts() -> dict[str, str]:
    """Every kernel that any block needs."""
    wanted = {name for kind in KINDS.values() for part in kind.parts for name in part.kernels}
    traces = {k.name: _trace(k.name) for k in KERNELS if k.name in wanted} | trace_ik(ur.PARAMETER_COUNT)
    texts = {name: emit_c.function(name, t.graph, ["x"], t.outputs, angles=t.angles) for name, t in traces.items()}
    return texts | {
        "jacobian_rate": _jacobian_rate(),
        "parameters": _parameters("parameters", RAW, _dynamic),
        "kinematic_parameters": _parameters("kinematic_parameters", RAW_KINEMATIC, _kinematic),
    }


def kernels_text(kind: Kind) -> str:
    """The C text of the kernels that the block's parts call, mathematics first."""
    wanted = {name for part in kind.parts for name in part.kernels}
    if "parameters" in wanted:
        wanted.discard("kinematic_parameters")
    lines = [
        "/* Generated from the traced kernels of Tangere: straight-line arithmetic, one IEEE operation each. */",
        f"#define TG_PARAMETERS {ur.PARAMETER_COUNT}",
    ]
    if kind.has("IK"):
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


@cache
def _runtime() -> dict[str, str]:
    folder = files("tangere.apps.fmu") / "c"
    names = {*_RUNTIME, *_RUNTIME_3, *(part.header for kind in KINDS.values() for part in kind.parts if part.header)}
    return {name: (folder / name).read_text(encoding="ascii") for name in sorted(names)}


def sources_of(kind: Kind, table: Table, fmi: int = 2) -> dict[str, str]:
    """Every file of sources/, by name; fmu.c (for FMI 3.0: fmu3.c) is the one to compile."""
    wanted = {*_RUNTIME, *(_RUNTIME_3 if fmi == 3 else ()), *(part.header for part in kind.parts)}
    texts = {name: text for name, text in _runtime().items() if name in wanted}
    texts["kernels.h"] = kernels_text(kind)
    if fmi == 3:
        texts["arrays.h"] = arrays_text(table)
    draft = header_text(kind, table, 0)
    digest = hashlib.sha256("".join([draft, *texts.values()]).encode()).digest()
    texts["model.h"] = header_text(kind, table, int.from_bytes(digest[:8], "big"))
    return dict(sorted(texts.items()))
