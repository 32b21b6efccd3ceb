"""The C sources of one kind of FMU, the same for a family of arms: hand-written runtime, generated tables, kernels.

The kernels are the library's own traces, printed once for single numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from tangere.apps.fmu.families import Family
from tangere.apps.fmu.kinds import KINDS
from tangere.apps.fmu.part import Kind
from tangere.apps.fmu.variables import CHOICES, REFERENCE_OF, Group, Table, arrays_text
from tangere.codegen.functions import ANGLE_MAX
from tangere.codegen.trace import Graph, Symbol, derivative
from tangere.dynamics import laws
from tangere.kernels.emit import c as emit_c
from tangere.kernels.joint_laws import JOINT_LAWS, JointLaw, trace_joint_law
from tangere.kernels.table import IK_BRANCH_INPUTS, IK_BRANCH_OUTPUTS, IK_MERGE_INPUTS, KERNELS, Trace, trace, trace_ik
from tangere.kinematics import inverse_closed_form as inverse
from tangere.kinematics.checks import LENGTH_MAX
from tangere.kinematics.vectors import Scalar

VALUE_MAX = 1e100  # of anything else: beyond any machine, and the product of three is still finite

_RUNTIME = (
    "fmu.c", "fmi2.h", "scalar.h", "instance.h", "resources.h", "linear.h", "part_pose.h", "block.h", "values.h",
    "lifecycle.h", "states.h", "exchange.h", "cosimulation.h",
)  # fmt: skip
_RUNTIME_3 = ("fmu3.c", "fmi3.h", "instance3.h", "values3.h", "modes3.h")  # beside them, for FMI 3.0
# laws of one joint that the parts call; what of them has a row in the table of kernels is taken from there
_SERVO = JointLaw(
    "servo_acceleration", ("q", "qd", "q_des", "qd_des", "qdd_des"), ("kp", "kv"), ("qdd",),
    lambda q, qd, q_des, qd_des, qdd_des, kp, kv: laws.servo_acceleration(kp, kv, q, qd, q_des, qd_des, qdd_des),
    "what computed torque asks of the arm [rad/s2]",
)  # fmt: skip
_LAWS = {law.name: law for law in (*JOINT_LAWS, _SERVO)}


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


def header_text(kind: Kind, table: Table, family: Family, layout: int) -> str:
    """model.h: which parts the block has, where its variables are, what they may be."""
    lines = ["/* Generated: the variables of this block. */", f'#define TG_KIND "{kind.name}"']
    lines += [f"#define HAS_{part.name} 1" for part in kind.parts]
    lines += [f"#define DOF {family.dof}", *["#define TG_UR 1"] * family.closed]
    sentences = (f'"arm.inertia: no body has the inertia of link {i + 1}"' for i in range(family.dof))
    lines.append(f"#define TG_INERTIA_SENTENCES {', '.join(sentences)}")
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
        for name, each, more in part.memory:
            places.append(f"    {name} = {at},")
            at += each * family.dof + more
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


def _parameters(name: str, count: int, of: Callable[[list[Scalar]], list[Scalar]]) -> str:
    g = Graph()
    return emit_c.function(name, g, ["raw"], [g.lift(y) for y in of(g.inputs("raw", count))])


def _jacobian_rate(family: Family) -> str:
    """dJ (6, n) for q and a direction dq: x is q, then dq."""
    t, n = _trace("jacobian", family), family.dof
    q, dq = t.graph.inputs("x", n), [t.graph.input("x", n + i) for i in range(n)]
    seeds: dict[int, float | Symbol] = {q[i].index: dq[i] for i in range(n)}
    return emit_c.function("jacobian_rate", t.graph, ["x"], derivative(t.graph, t.outputs, seeds), angles=t.angles)


def _law(name: str) -> str:
    """A law of one joint; friction_slope is the derivative of friction by the velocity."""
    if name == "friction_slope":
        t = trace_joint_law(_LAWS["plain_friction"])
        (qd,) = t.graph.inputs("x", 1)
        t = Trace(t.graph, derivative(t.graph, t.outputs, {qd.index: 1.0}))
    else:
        t = trace_joint_law(_LAWS[name])
    return emit_c.function(name, t.graph, ["x"], t.outputs, inline=True)


def _trace(name: str, family: Family) -> Trace:
    kernel = next(k for k in KERNELS if k.name == name)
    return trace(kernel, family.dof, family.chain, family.parameter_count)


@cache
def _text(name: str, family: Family) -> str:
    """A kernel as C."""
    if name == "jacobian_rate":
        return _jacobian_rate(family)
    if name == "parameters":
        return _parameters(name, family.raw, family.dynamic)
    if name == "kinematic_parameters":
        return _parameters(name, family.raw_kinematic, family.kinematic)
    if name == "friction_slope" or name in _LAWS:
        return _law(name)
    t = trace_ik(family.parameter_count)[name] if name.startswith("ik_") else _trace(name, family)
    text = emit_c.function(name, t.graph, ["x"], t.outputs, angles=t.angles)
    return text.replace("(void)P;\n", "(void)P;\n    (void)x;\n", 1)  # M of a pendulum depends on no angle


def kernels_text(kind: Kind, family: Family) -> str:
    """The C text of the kernels that the block's parts call, mathematics first."""
    wanted = dict.fromkeys(name for part in kind.parts for name in part.kernels)
    if "parameters" in wanted:
        wanted.pop("kinematic_parameters", None)
    lines = [
        "/* Generated from the traced kernels of Tangere: straight-line arithmetic, one IEEE operation each. */",
        f"#define TG_PARAMETERS {family.parameter_count}",
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
    mathematics = emit_c.math_functions(("tanh", "expm1") if kind.has("MASS") else ())
    return "\n".join([*lines, "", mathematics, *(_text(name, family) for name in wanted)])


@cache
def _runtime() -> dict[str, str]:
    folder = files("tangere.apps.fmu") / "c"
    names = {*_RUNTIME, *_RUNTIME_3, *(part.header for kind in KINDS.values() for part in kind.parts if part.header)}
    return {name: (folder / name).read_text(encoding="ascii") for name in sorted(names)}


def sources_of(kind: Kind, table: Table, family: Family, fmi: int = 2) -> dict[str, str]:
    """Every file of sources/, by name; fmu.c (for FMI 3.0: fmu3.c) is the one to compile."""
    wanted = {*_RUNTIME, *(_RUNTIME_3 if fmi == 3 else ()), *(part.header for part in kind.parts)}
    texts = {name: text for name, text in _runtime().items() if name in wanted}
    texts["kernels.h"] = kernels_text(kind, family)
    if fmi == 3:
        texts["arrays.h"] = arrays_text(table)
    draft = header_text(kind, table, family, 0)
    digest = hashlib.sha256("".join([draft, *texts.values()]).encode()).digest()
    texts["model.h"] = header_text(kind, table, family, int.from_bytes(digest[:8], "big"))
    return dict(sorted(texts.items()))
