"""Prints traced kernels as C, and writes those of the UR arm for the extension (run by setup.py when it is built).

The text is a template over the number type: it is included once with V = double and once per SIMD width, with the
macros of kernels/lanes.h giving V, the mask type and the few operations that C has no vector operator for. Every
operation is a single IEEE operation, so all widths give the same bits (contraction is switched off at compile time).
Names in the text are made here from numbers and from the kernel names of our own table, never from data.

`write` makes the files of the extension: `tg_kernels.h`, the template that the hand-written core includes once per
vector width, and `tg_table.h`, the list of kernels with their sizes and shapes; `tg_rollouts.h`, the template of the
closed loop; for arms that are no UR `tg_math.h`, `tg_structures.h` and one template for each structure of
kernels/general.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tangere.codegen.functions import ANGLE_MAX
from tangere.codegen.packs import FOUR, Packs, statements
from tangere.codegen.polynomials import (
    DOUBLE,
    SINGLE,
    Coefficients,
    arctangent2,
    exponential_minus_one,
    hyperbolic_tangent,
    logarithm,
    reduced,
    sincos,
)
from tangere.codegen.trace import Graph, Node, Symbol
from tangere.kernels import closed_loop, ur
from tangere.kernels.general import JOINTS_MAX, SIX, STRUCTURES, Structure, trace_polish
from tangere.kernels.joint_laws import JOINT_LAWS, trace_joint_law
from tangere.kernels.laws import detection
from tangere.kernels.table import (
    IK_BRANCH_INPUTS,
    IK_BRANCH_OUTPUTS,
    IK_MERGE_INPUTS,
    IK_PREPARE_OUTPUTS,
    LAW_DOFS,
    LAWS,
    Kernel,
    Law,
    all_kernels,
    trace,
    trace_ik,
    trace_law,
)
from tangere.kinematics import inverse_closed_form as inverse
from tangere.kinematics import inverse_polish as polish
from tangere.kinematics.checks import LENGTH_MAX, NUMBER_MAX

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_CALLS = {"sqrt": "TG_SQRT", "abs": "TG_ABS", "round": "TG_ROUND", "lt": "TG_LT", "le": "TG_LE"}
_LANES_ONLY = {"power_of_two": "TG_POWER_OF_TWO", "exponent": "TG_EXPONENT", "mantissa": "TG_MANTISSA"}
# functions of one number that are polynomials of our own, with the parts of the precision that they are printed for
_ELEMENTARY = {"expm1": exponential_minus_one, "tanh": hyperbolic_tangent, "log": logarithm}
POLISH = {"DONE": polish.DONE, "FAILED_MAX": polish.FAILED_MAX, "UNKNOWN": polish.NOT_YET}
_SCALAR_ONLY = ("ik_prepare", "ik_project", "ik_merge")  # branches of one pose are the lanes; these run once per pose


def function(
    name: str,
    graph: Graph,
    inputs: Sequence[str],
    outputs: Sequence[Symbol],
    *,
    parameters: str = "P",
    number: str = "double",
    angles: int = 0,
    inline: bool = False,
    packed: bool = False,
) -> str:
    """A C function `TG_FN(name)(inputs..., P, out)` that computes the outputs.

    inputs: names of the argument groups that differ between samples, in the order of the call; each is an array of V.
    parameters: name of the group that is equal for all samples, an array of `number`. angles: how many numbers of the
    first group are joint angles: their sines and cosines are computed once, by TG_ANGLES. packed: of one state, with
    what is alike in vectors of four (codegen.packs).
    """
    if not name.isidentifier():
        raise ValueError(f"kernel name {name!r} is not an identifier")
    arguments = [f"const V *restrict {g}" for g in inputs]
    arguments += [f"const {number} *restrict {parameters}", "V *restrict out"]
    lines = [f"{'TG_INLINE' if inline else 'TG_KERNEL'} void TG_FN({name})({', '.join(arguments)})", "{"]
    lines += [f"    (void){group};" for group in (parameters, *inputs[1:])]
    done: set[int] = set()
    joints = {i: k for i in graph.live(outputs) if (k := _joint_angle(graph, i, inputs[0], angles)) is not None}
    if joints:
        lines.append(f"    TG_ANGLES({inputs[0]})")
    if packed:
        each = statements(graph, outputs, Packs(graph, outputs), lambda i: _statement(graph, i, done, joints))
    else:
        each = [_statement(graph, i, done, joints) for i in graph.live(outputs)]
    lines += ["    " + line for line in each if line]
    at = 0
    while at < len(outputs):
        if packed and len(outputs) >= at + FOUR and all(o.constant == 0.0 for o in outputs[at : at + FOUR]):
            lines.append(f"    *(tg_four_at *)(out + {at}) = (tg_four_at){{0.0}};")
            at += FOUR
            continue
        lines.append(f"    out[{at}] = {_vector(graph, outputs[at].index)};")
        at += 1
    lines.append("}")
    return "\n".join(lines) + "\n"


def _reference(graph: Graph, i: int) -> str:
    node = graph.nodes[i]
    if node.op == "const":
        assert isinstance(node.value, float)
        return f"({node.value.hex()})" if node.value < 0 else node.value.hex()
    if node.op == "input":
        assert isinstance(node.value, tuple)
        return f"{node.value[0]}[{node.value[1]}]"
    return f"t{i}"


def _vector(graph: Graph, i: int) -> str:
    """The node as a V (or mask), spread over the lanes if it is a scalar."""
    node = graph.nodes[i]
    text = _reference(graph, i)
    if not node.uniform:
        return text
    return f"TG_SPREAD_MASK({text})" if node.mask else f"TG_SPREAD({text})"


def _statement(graph: Graph, i: int, done: set[int], joints: dict[int, int]) -> str:
    node = graph.nodes[i]
    if i in done or node.op in ("const", "input"):
        return ""
    done.add(i)
    if node.op in ("sin", "cos"):
        return _sincos(graph, node, i, done, joints.get(i))
    expression = _expression(graph, node)
    if node.mask:
        return f"const {'int' if node.uniform else 'TG_MASK'} t{i} = {expression};"
    return f"const {'double' if node.uniform else 'V'} t{i} = {expression};"


def _expression(graph: Graph, node: Node) -> str:
    # An operation on scalars only stays scalar; otherwise scalars are spread, so that types always agree.
    read = _reference if node.uniform else _vector
    a = [read(graph, k) for k in node.args]
    prefix = "TG_U" if node.uniform else "TG"  # scalar twins of the lane macros
    if node.op in _ARITHMETIC:
        return f"{a[0]} {_ARITHMETIC[node.op]} {a[1]}"
    if node.op in ("neg", "copy"):
        return f"{'-' if node.op == 'neg' else ''}{a[0]}"
    if node.op == "where":
        return f"{prefix}_SELECT({a[0]}, {a[1]}, {a[2]})"
    if node.op in ("and", "or"):
        return f"{a[0]} {'&' if node.op == 'and' else '|'} {a[1]}"
    if node.op in ("atan2", *_ELEMENTARY, *_LANES_ONLY):
        if node.uniform:
            raise ValueError(f"{node.op} of parameters alone belongs into the parameters themselves")
        return f"{_LANES_ONLY.get(node.op, f'TG_FN({node.op})')}({', '.join(a)})"
    if node.op in _CALLS:
        return f"{_CALLS[node.op].replace('TG', prefix, 1)}({', '.join(a)})"
    raise ValueError(f"no C form for the operation {node.op!r}")


def _joint_angle(graph: Graph, i: int, group: str, angles: int) -> int | None:
    """Which joint's angle a sine or cosine is of: its argument is one of the first `angles` numbers of the group."""
    node = graph.nodes[i]
    if node.op in ("sin", "cos"):
        value = graph.nodes[node.args[0]].value
        if isinstance(value, tuple) and value[0] == group and value[1] < angles:
            return value[1]
    return None


def _sincos(graph: Graph, node: Node, i: int, done: set[int], joint: int | None) -> str:
    """sin and cos of one angle come from one call; the twin node may or may not be needed."""
    twin_op = "cos" if node.op == "sin" else "sin"
    twin = graph.find(twin_op, node.args)
    pair = {node.op: f"t{i}", twin_op: f"t{twin}" if twin is not None else f"unused{i}"}
    if twin is not None:
        done.add(twin)
    if node.uniform:
        raise ValueError("trigonometry of parameters belongs into the parameters themselves")
    argument = _vector(graph, node.args[0])
    if joint is not None:
        return f"TG_SINCOS({joint}, {argument}, {pair['sin']}, {pair['cos']})"
    return f"V {pair['sin']}, {pair['cos']}; TG_FN(sincos)({argument}, &{pair['sin']}, &{pair['cos']});"


def math_functions(elementary: Sequence[str] = (), of: Coefficients = DOUBLE, quarters: bool = False) -> str:
    """The C forms of sincos and atan2, and of the elementary functions named, traced from codegen.polynomials.

    quarters: sines and cosines are swapped and negated as device.h does it; the same bits.
    """
    g = Graph()
    (x,) = g.inputs("x", 1)
    body = function("sincos_", g, ["x"], list(reduced(x, of)[:2] if quarters else sincos(x, of)), inline=True)
    g = Graph()
    y, x = g.inputs("p", 2)
    body += "\n" + function("atan2_", g, ["p"], [arctangent2(y, x, of)], inline=True)
    left = "TG_FN(sincos_)(&x, 0, out);\n"
    body += _WRAPPERS.replace(left, f"{left}    TG_FN(quarters)(x, out);\n") if quarters else _WRAPPERS
    for name in elementary:
        g = Graph()
        (x,) = g.inputs("x", 1)
        body += "\n" + function(f"{name}_", g, ["x"], [_ELEMENTARY[name](x, of)], inline=True)
        body += f"\nTG_INLINE V TG_FN({name})(V x)\n{{\n"
        body += f"    V out[1];\n    TG_FN({name}_)(&x, 0, out);\n    return out[0];\n}}\n"
    return body


_WRAPPERS = """
TG_INLINE void TG_FN(sincos)(V x, V *s, V *c)
{
    V out[2];
    TG_FN(sincos_)(&x, 0, out);
    *s = out[0];
    *c = out[1];
}

TG_INLINE V TG_FN(atan2)(V y, V x)
{
    V in[2] = {y, x}, out[1];
    TG_FN(atan2_)(in, 0, out);
    return out[0];
}
"""


# Geometries that laws of an arm are compiled for: a UR's own, and six axes in general, such as a calibrated UR's.
ARMS = {
    "ur": (ur.chain, ur.PARAMETER_COUNT),
    SIX.name: (SIX.with_offsets, SIX.parameter_count),
}


def compiled_laws() -> list[tuple[str, Law, int, str]]:
    """Name, law, number of joints and geometry ("": any) of every law that is compiled."""
    free = [(f"{law.name}_{n}", law, n, "") for law in LAWS if not law.arm for n in LAW_DOFS]
    return free + [(f"{law.name}_{arm}", law, ur.DOF, arm) for law in LAWS if law.arm for arm in ARMS]


def kernels_text() -> str:
    """Template text: math functions, laws, then one function per kernel."""
    parts = ["/* Generated from tangere/kernels/table.py when the extension is built. */\n"]
    parts.append(math_functions(("expm1", "tanh")))
    for joint in JOINT_LAWS:
        t = trace_joint_law(joint)
        parts.append(function(joint.name, t.graph, ["x"], t.outputs, inline=True))
    for kernel in all_kernels(ur.DOF):
        t = trace(kernel, ur.DOF, ur.chain, ur.PARAMETER_COUNT)
        parts.append(function(kernel.name, t.graph, ["x"], t.outputs, angles=t.angles))
    for name, t in trace_ik(ur.PARAMETER_COUNT).items():
        text = function(name, t.graph, ["x"], t.outputs, angles=t.angles)
        parts.append(f"#ifdef TG_IS_SCALAR\n{text}#endif\n" if name in _SCALAR_ONLY else text)
    for name, law, dof, arm in compiled_laws():
        t = trace_law(law, dof, *ARMS[arm]) if arm else trace_law(law, dof)
        text = function(name, t.graph, ["x"], t.outputs)
        parts.append(f"#ifdef TG_IS_SCALAR\n{text}#endif\n")  # each sample waits for the one before
    return "\n".join(parts)


def table_text() -> str:
    """Sizes and shapes of the kernels, and the constants that the core shares with Python."""
    kernels = all_kernels(ur.DOF)
    lines = ["/* Generated from tangere/kernels/table.py when the extension is built. */"]
    for name, value in {
        "TG_DOF": ur.DOF,
        "TG_PARAMETERS": ur.PARAMETER_COUNT,
        "TG_KERNELS": len(kernels),
        "TG_MAX_INPUT": max(sum(k.input_sizes(ur.DOF)) for k in kernels),
        "TG_MAX_OUTPUT": max(k.size(ur.DOF) for k in kernels),
        "TG_IK_BRANCH_INPUTS": IK_BRANCH_INPUTS,
        "TG_IK_BRANCH_OUTPUTS": IK_BRANCH_OUTPUTS,
        "TG_IK_PREPARE_OUTPUTS": IK_PREPARE_OUTPUTS,
        "TG_IK_MERGE_INPUTS": IK_MERGE_INPUTS,
        "TG_IK_LANES": inverse.LANES,
    }.items():
        lines.append(f"#define {name} {value}")
    lines.append(f"#define TG_ROTATION_TOLERANCE {inverse.ROTATION_TOLERANCE!r}")
    lines.append(f"#define TG_RESCUE {inverse.RESCUE!r}")
    lines.append(f"#define TG_LIMIT_SLACK {inverse.LIMIT_SLACK!r}")
    lines.append(f"#define TG_EXACT_ROTATION {inverse.EXACT_ROTATION!r}")
    lines.append(f"#define TG_LENGTH_MAX {LENGTH_MAX!r}")
    lines.append(f"#define TG_ANGLE_MAX {ANGLE_MAX!r}")
    lines.append(f"#define TG_NUMBER_MAX {NUMBER_MAX!r}")
    signs = ", ".join("{" + ", ".join(map(repr, s)) + "}" for s in zip(*inverse.SIGNS, strict=True))
    lines.append(f"static const double tg_ik_signs[3][TG_IK_LANES] = {{{signs}}};")
    lines.append("#define TG_EACH_KERNEL(X) \\")
    lines += [f"    X({k.name}) \\" for k in kernels]
    lines.append("")
    lines.append("static const tg_shape tg_shapes[TG_KERNELS] = {")
    lines += [_shape(k, ur.DOF) for k in kernels]
    lines.append("};")
    rows = compiled_laws()
    lines.append(f"#define TG_LAWS {len(rows)}")
    lines.append("#define TG_EACH_LAW(X) \\")
    lines += [f"    X({name}) \\" for name, *_ in rows]
    lines.append("")
    lines.append("static const tg_law_shape tg_law_shapes[TG_LAWS] = {")
    for name, law, n, arm in rows:
        inputs = f"{len(law.inputs(n))}, {{{', '.join(map(str, law.inputs(n))) or 0}}}"
        names = ", ".join(f'"{x}"' for x in law.names) or "NULL"
        parameters = law.parameters(n) + (ARMS[arm][1] if arm else 0)
        sizes = f"{law.state(n)}, {parameters}, {law.outputs(n)}, {law.rounds}"
        lines.append(f'    {{"{name}", {inputs}, {{{names}}}, {sizes}}},')
    lines.append("};")
    return "\n".join(lines) + "\n"


def rollouts_text(quarters: bool = False) -> str:
    """The parts of the closed loop for rollouts, in either precision: TG_SINGLE decides when the text is included."""
    lines = ["/* Generated from tangere/kernels/closed_loop.py when the extension is built. */"]
    elementary = ("tanh", "log")
    single, double = (math_functions(elementary, of, quarters) for of in (SINGLE, DOUBLE))
    lines += ["#ifdef TG_SINGLE", single, "#else", double, "#endif"]
    lines.append(f"#define TG_WATCH_STATE {detection.state_size(ur.DOF)}")
    lines.append(f"#define TG_SURFACE {closed_loop.SURFACE}")
    for part in closed_loop.parts().values():
        groups, shared = (["x"], "u") if part.shared else (["x", "u"], "none")
        lines.append(f"#define TG_CONSTANTS_{part.name} {len(part.heads)}")
        graph = part.outputs[0].graph
        lines.append(function(part.name, graph, groups, part.outputs, parameters=shared, number="TG_REAL"))
    return "\n".join(lines)


def _shape(k: Kernel, dof: int) -> str:
    """A tg_shape: name, inputs and outputs of a kernel for that number of joints."""
    shapes = k.outputs(dof)
    dims = ", ".join("{" + ", ".join(map(str, [len(s), *s, 0, 0, 0][:4])) + "}" for s in shapes)
    names = ", ".join(f'"{n}"' for n in k.inputs)
    sizes = ", ".join(map(str, k.input_sizes(dof)))
    limits = ", ".join(repr(ANGLE_MAX if n == "q" else NUMBER_MAX) for n in k.inputs)
    inputs = f"{len(k.inputs)}, {{{names}}}, {{{sizes}}}, {{{limits}}}"
    return f'    {{"{k.name}", {inputs}, {len(shapes)}, {{{dims}}}, {k.size(dof)}}},'


def structure_text(structure: Structure) -> str:
    """Template text of the kernels of arms in general, NAME_kernel, for as many joints as the structure has."""
    parts = ["/* Generated from tangere/kernels/general.py when the extension is built. */\n"]
    for kernel in all_kernels(structure.joints):
        t = trace(kernel, structure.joints, structure.chain, structure.parameter_count)
        angles = 0 if structure.sliding else structure.joints
        name = f"{structure.name}_{kernel.name}"
        text = function(name, t.graph, ["x"], t.outputs, angles=angles)
        if t.graph.alike and structure.joints == ur.DOF:
            t = trace(kernel, structure.joints, structure.chain, structure.parameter_count, unfolded=True)
            fours = function(name, t.graph, ["x"], t.outputs, angles=angles, packed=True)
            text = f"#ifdef TG_FOURS\n{fours}#else\n{text}#endif\n"
        parts.append(text)
    if structure.joints == polish.JOINTS:
        t = trace_polish(structure)
        parts.append(function(f"{structure.name}_round", t.graph, ["x"], t.outputs))
    each = f"TG_EACH_{structure.name.upper()}"
    listed = " ".join(f"X({structure.name}_{k.name})" for k in all_kernels(structure.joints))
    return "\n".join([*parts, f"#undef {each}", f"#define {each}(X) {listed}", ""])


def structures_table() -> str:
    """Sizes of the structures, and the shapes of their kernels for every number of joints."""
    kernels = all_kernels(JOINTS_MAX)
    count = len(kernels)
    lines = ["/* Generated from tangere/kernels/general.py when the extension is built. */"]
    lines.append(f"#define TG_JOINTS_MAX {JOINTS_MAX}")
    lines.append(f"#define TG_KERNELS_MAX {count}")
    lines.append(f"#define TG_GENERAL_INPUT {max(sum(k.input_sizes(JOINTS_MAX)) for k in kernels)}")
    lines.append(f"#define TG_GENERAL_OUTPUT {max(k.size(JOINTS_MAX) for k in kernels)}")
    lines.append(f"#define TG_SEARCH {polish.STATE}")
    lines += [f"#define TG_SEARCH_{name} {value!r}" for name, value in POLISH.items()]
    lines.append("#define TG_EACH_STRUCTURE(X) \\")
    lines += [f"    X({s.name}, {s.joints}, {int(s.sliding)}, {s.parameter_count}) \\" for s in STRUCTURES]
    lines += ["", "static const tg_shape tg_shapes_of[TG_JOINTS_MAX + 1][TG_KERNELS_MAX] = {", "    {{0}},"]
    for dof in range(1, JOINTS_MAX + 1):
        lines += ["    {", *(f"    {_shape(k, dof)}" for k in all_kernels(dof)), "    },"]
    return "\n".join([*lines, "};", ""])


def write(folder: Path) -> None:
    """All files into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tg_rollouts.h").write_text(rollouts_text(), encoding="ascii")
    (folder / "tg_kernels.h").write_text(kernels_text(), encoding="ascii")
    (folder / "tg_table.h").write_text(table_text(), encoding="ascii")
    (folder / "tg_math.h").write_text(math_functions(), encoding="ascii")
    (folder / "tg_structures.h").write_text(structures_table(), encoding="ascii")
    for structure in STRUCTURES:
        (folder / f"tg_{structure.name}.h").write_text(structure_text(structure), encoding="ascii")
