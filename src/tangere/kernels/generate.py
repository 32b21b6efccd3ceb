"""Writes the C text of all kernels of the UR arm; run by setup.py when the extension is built.

Two files: `tg_kernels.h`, a template that the hand-written core includes once per vector width, and `tg_table.h`, the
list of kernels with their sizes and shapes.
"""

from __future__ import annotations

from pathlib import Path

from tangere.codegen.polynomials import ANGLE_MAX
from tangere.kernels import ur
from tangere.kernels.emit import c as emit_c
from tangere.kernels.shapes import LENGTH_MAX
from tangere.kernels.table import (
    IK_BRANCH_INPUTS,
    IK_BRANCH_OUTPUTS,
    IK_MERGE_INPUTS,
    IK_PREPARE_OUTPUTS,
    all_kernels,
    trace,
    trace_ik,
)
from tangere.kinematics import inverse_closed_form as inverse

_SCALAR_ONLY = ("ik_prepare", "ik_project", "ik_merge")  # branches of one pose are the lanes; these run once per pose


def kernels_text() -> str:
    """Template text: math functions, then one function per kernel."""
    parts = ["/* Generated from tangere/kernels/table.py when the extension is built. */\n", emit_c.math_functions()]
    for kernel in all_kernels(ur.DOF):
        t = trace(kernel, ur.DOF, ur.chain, ur.PARAMETER_COUNT)
        parts.append(emit_c.function(kernel.name, t.graph, ["x"], t.outputs, inline=False))
    for name, t in trace_ik(ur.PARAMETER_COUNT).items():
        text = emit_c.function(name, t.graph, ["x"], t.outputs, inline=False)
        parts.append(f"#ifdef TG_IS_SCALAR\n{text}#endif\n" if name in _SCALAR_ONLY else text)
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
    lines.append(f"#define TG_EXACT_ROTATION {inverse.EXACT_ROTATION!r}")
    lines.append(f"#define TG_LENGTH_MAX {LENGTH_MAX!r}")
    lines.append(f"#define TG_ANGLE_MAX {ANGLE_MAX!r}")
    signs = ", ".join("{" + ", ".join(map(repr, s)) + "}" for s in zip(*inverse.SIGNS, strict=True))
    lines.append(f"static const double tg_ik_signs[3][TG_IK_LANES] = {{{signs}}};")
    lines.append("#define TG_EACH_KERNEL(X) \\")
    lines += [f"    X({k.name}) \\" for k in kernels]
    lines.append("")
    lines.append("static const tg_shape tg_shapes[TG_KERNELS] = {")
    for k in kernels:
        shapes = k.outputs(ur.DOF)
        dims = ", ".join("{" + ", ".join(map(str, [len(s), *s, 0, 0, 0][:4])) + "}" for s in shapes)
        names = ", ".join(f'"{n}"' for n in k.inputs)
        sizes = ", ".join(map(str, k.input_sizes(ur.DOF)))
        limits = ", ".join("TG_ANGLE_MAX" if n == "q" else "DBL_MAX" for n in k.inputs)
        inputs = f"{len(k.inputs)}, {{{names}}}, {{{sizes}}}, {{{limits}}}"
        lines.append(f'    {{"{k.name}", {inputs}, {len(shapes)}, {{{dims}}}, {k.size(ur.DOF)}}},')
    lines.append("};")
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """Both files into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tg_kernels.h").write_text(kernels_text(), encoding="ascii")
    (folder / "tg_table.h").write_text(table_text(), encoding="ascii")
