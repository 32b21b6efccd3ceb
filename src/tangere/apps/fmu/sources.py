"""The C sources of one kind of FMU, the same for every arm: hand-written runtime, generated tables and kernels."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from tangere.apps.fmu.kernels import kernels_text
from tangere.apps.fmu.kinds import Kind
from tangere.apps.fmu.units import CHOICES
from tangere.apps.fmu.variables import REFERENCE_OF, Group, Table
from tangere.codegen.polynomials import ANGLE_MAX
from tangere.kernels.shapes import LENGTH_MAX

VALUE_MAX = 1e100  # of anything else: beyond any machine, and the product of three is still finite

# memory of the parts, in doubles; the observer's first three must follow each other
_MEMORY: dict[str, tuple[tuple[str, int], ...]] = {
    "FK": (("FK_before", 4),),
    "PLANT": (("PL_before", 4),),
    "IK": (("IK_before", 6),),
    "OBSERVER": (
        ("OB_terms", 12), ("OB_torque", 6), ("OB_time", 1), ("OB_old", 19), ("OB_old_residual", 6),
        ("OB_old_contact", 1), ("OB_old_joint", 1), ("OB_anchored", 1), ("OB_held", 1), ("TICK", 1),
    ),
}  # fmt: skip
_RUNTIME = (
    "fmu.c", "fmi2.h", "scalar.h", "instance.h", "resources.h", "linear.h", "part_pose.h", "block.h", "values.h",
    "lifecycle.h", "states.h", "exchange.h", "cosimulation.h",
)  # fmt: skip
_OF_PART = {
    "MASS": ("part_mass.h",),
    "IK": ("part_ik.h",),
    "PLANT": ("part_plant.h",),
    "INVERSE": ("part_control.h",),
    "CONTROL": ("part_control.h",),
    "OBSERVER": ("part_observer.h",),
}


def _access(g: Group) -> str:
    if g.causality == "parameter":
        return "1" if g.variability == "tunable" else "0"
    return {"input": "2", "output": "3", "local": "3"}[g.causality]


def _bounds(g: Group) -> tuple[float, float]:
    """What a value must lie within; the same for all arms, so limits of one arm's joints do not count."""
    if isinstance(g.declared, str) and g.declared in CHOICES:
        return 1, len(CHOICES[g.declared].items)
    kinds = {g.declared} if isinstance(g.declared, str) else set(g.declared)
    if kinds & {"Angle", "RotationVector"} or kinds & {"Position", "Length"}:
        limit = LENGTH_MAX if kinds & {"Position", "Length"} else ANGLE_MAX
    else:
        limit = 2147483647 if g.kind == "Integer" else VALUE_MAX
    low = g.low if isinstance(g.low, (int, float)) else -limit
    high = g.high if isinstance(g.high, (int, float)) else limit
    return low, high


def _table(name: str, table: Table, kind: str) -> list[str]:
    rows = []
    for p in table:
        g = p.group
        if g.kind == kind:
            low, high = _bounds(g)
            begin = int(g.key in ("PL_q_start", "PL_qd_start"))
            discrete = int(g.variability == "discrete")
            first = p.reference - REFERENCE_OF[g.kind]
            rows.append(f'    {{"{g.name}", {first}, {_access(g)}, {discrete}, {begin}, {low!r}, {high!r}}},')
    count = len(rows)
    rows = rows or ['    {"", 0, 3, 0, 0, 0, 0},']
    head = f"static const tg_group tg_{name}[] = {{"
    return [f"#define N_{name[:-1].upper()}_GROUPS {max(count, 1)}", head, *rows, "};"]


def header_text(kind: Kind, table: Table, layout: int) -> str:
    """model.h: which parts the block has, where its variables are, what they may be."""
    lines = ["/* Generated: the variables of this block. */", f'#define TG_KIND "{kind.name}"']
    lines += [f"#define HAS_{part} 1" for part in kind.parts]
    lines += [
        f"#define N_{'REAL' if k == 'Real' else k.upper()} {n}" for k, n in table.count.items()
    ]
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
        for name, size in _MEMORY.get(part, ()):
            places.append(f"    {name} = {at},")
            at += size
    lines += [f"#define MEMORY {at}"]
    if places:
        lines += ["enum {", *places, "};"]
    lines += [
        "",
        "typedef struct {",
        "    const char *name;",
        "    int first;               /* element in the list of its type */",
        "    unsigned char access;    /* 0 fixed, 1 tunable, 2 input, 3 computed */",
        "    unsigned char discrete;",
        "    unsigned char start;     /* the start value of a state */",
        "    double low, high;",
        "} tg_group;",
        *_table("reals", table, "Real"),
        *_table("integers", table, "Integer"),
        *_table("booleans", table, "Boolean"),
        f"static const int tg_states[] = {{{', '.join(map(str, states or [0]))}}};",
        f"static const int tg_derivatives[] = {{{', '.join(map(str, derivatives or [0]))}}};",
    ]
    return "\n".join(lines) + "\n"


@cache
def _runtime() -> dict[str, str]:
    folder = files("tangere.apps.fmu") / "c"
    names = {*_RUNTIME, *(name for part in _OF_PART.values() for name in part)}
    return {name: (folder / name).read_text(encoding="ascii") for name in sorted(names)}


def sources_of(kind: Kind, table: Table) -> dict[str, str]:
    """Every file of sources/, by name; fmu.c is the one to compile."""
    wanted = {*_RUNTIME, *(name for part in kind.parts for name in _OF_PART.get(part, ()))}
    texts = {name: text for name, text in _runtime().items() if name in wanted}
    texts["kernels.h"] = kernels_text(kind.parts)
    draft = header_text(kind, table, 0)
    digest = hashlib.sha256("".join([draft, *texts.values()]).encode()).digest()
    texts["model.h"] = header_text(kind, table, int.from_bytes(digest[:8], "big"))
    return dict(sorted(texts.items()))
