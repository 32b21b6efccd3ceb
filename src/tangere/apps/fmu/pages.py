"""documentation/index.html of an FMU: a data sheet of the block."""

from __future__ import annotations

from importlib.resources import files

from tangere.apps.fmu.drawings import block_diagram, frames_drawing
from tangere.apps.fmu.equations import PARTS, Equations
from tangere.apps.fmu.kinds import Kind
from tangere.apps.fmu.numbers import Arm
from tangere.apps.fmu.units import CHOICES, units_of
from tangere.apps.fmu.variables import Group, Table
from tangere.figures.markup import Raw, join, tag
from tangere.report.page import page_html
from tangere.report.section import Section, page_head, table

# the page's tables set numbers to the right; these hold words
STYLE = Raw(
    "<style>table.notes thead th{text-align:left;padding-left:14px}table.notes thead th:first-child{padding-left:0}"
    "table.notes td:last-child{width:46%}</style>"
)
COMPILE = "cc -std=c99 -O2 -ffp-contract=off -fPIC -shared -fvisibility=hidden sources/fmu.c -lm -o {name}.so"


def licence_text() -> str:
    """The licence of the sources."""
    return (files("tangere.apps.fmu") / "c" / "LICENSE.txt").read_text(encoding="utf-8")


def equations_of(kind: Kind) -> list[Equations]:
    """What the block's parts compute."""
    return [PARTS[part] for part in kind.parts if part in PARTS]


def _size(g: Group) -> str:
    return " × ".join(map(str, g.shape)) or "1"


def _start(g: Group) -> str:
    if g.start is None:
        return ""
    if g.kind == "Boolean":
        return "true" if g.start[0] else "false"
    if isinstance(g.declared, str) and g.declared in CHOICES:
        return f"{int(g.start[0])} " + CHOICES[g.declared].items[int(g.start[0]) - 1][0]
    values = [f"{x if abs(x) > 1e-12 else 0.0:.6g}" for x in g.start]
    if len(set(values)) == 1:
        return values[0] if len(values) == 1 else f"{values[0]} each"
    return ", ".join(values) if len(values) <= 9 else "see modelDescription.xml"


def variables_section(block: Table) -> Section:
    """Inputs, outputs and parameters with sizes, units and start values."""
    body: list[Raw] = []
    for title, causality in (("Inputs", "input"), ("Outputs", "output"), ("Parameters", "parameter")):
        rows: list[tuple[object, ...]] = []
        for p in block.with_causality(causality):
            g = p.group
            what = g.text
            if isinstance(g.declared, str) and g.declared in CHOICES:
                what += ". " + CHOICES[g.declared].meaning
            cells: tuple[object, ...] = (tag("code", g.name), _size(g), units_of(g) or g.kind, what)
            if causality == "parameter":
                cells = (*cells[:3], _start(g), g.variability, what)
            elif causality == "input":
                cells = (*cells[:3], _start(g), what)
            rows.append(cells)
        header = ("name", "size", "unit", "what")
        if causality == "parameter":
            header = ("name", "size", "unit", "start", "when", "what")  # type: ignore[assignment]
        elif causality == "input":
            header = ("name", "size", "unit", "start", "what")  # type: ignore[assignment]
        body.append(tag("h3", title))
        body.append(table(header, rows, "notes"))
    return Section("variables", "Variables", join(*body))


def equations_section(kind: Kind) -> Section:
    """Mathematics of the block."""
    body: list[Raw] = []
    for e in equations_of(kind):
        body += [tag("h3", e.title), tag("pre", "\n".join(e.lines)), tag("p", e.text)]
        body.append(tag("p", "Sources: " + "; ".join(e.sources) + ".", class_="sub"))
    return Section("equations", "Equations", join(*body))


def _frames_section(arm: Arm) -> Section:
    d1, a2, a3, d4, d5, d6 = (f"{x:.6g}" for x in arm.lengths)
    rows: list[tuple[object, ...]] = [
        ("1", "0", d1, "90"), ("2", a2, "0", "0"), ("3", a3, "0", "0"),
        ("4", "0", d4, "90"), ("5", "0", d5, "-90"), ("6", "0", d6, "0"),
    ]  # fmt: skip
    text = (
        "Standard Denavit-Hartenberg: joint i turns about z of frame i-1, frame i sits at the far end of link i. x "
        "red, y green, z blue. Base z is up on a table; poses, wrenches and the Jacobian are in base axes, at the "
        "tcp. Joint angles are those of the teach pendant. A wrench is what the environment does to the "
        "robot; tau includes gravity."
    )
    return Section(
        "frames-and-signs", "Frames and signs",
        join(frames_drawing(arm), table(("joint", "a [m]", "d [m]", "alpha [deg]"), rows), tag("p", text)),
    )  # fmt: skip


def _use_section(kind: Kind, arm: Arm) -> Section:
    name = kind.identifier(arm)
    rows: list[tuple[object, ...]] = [
        ("Interfaces", "FMI 2.0 model exchange and co-simulation in one file; any step length, also changing"),
        ("State", "can be read, set and serialised; a restored block goes on bit by bit"),
        ("Directional derivatives", "analytic, of all continuous outputs in inputs and states"
         if kind.directional else "none: every output is sampled"),
        ("Events", "a time event at every sample; no state events" if "OBSERVER" in kind.parts else "none"),
        ("Bad input", "a value that is not finite or out of bounds is discarded (fmi2Discard) and the one before "
         "stays; misuse is answered with fmi2Error and a message, the block stays as it was"),
        ("Start values", "resources/parameters.txt, the same numbers as in modelDescription.xml; the binary serves "
         "every arm of this kind"),
        ("From source", tag("code", COMPILE.format(name=name))),
        ("Parameter set", f"{arm.title}, {arm.parameters}"),
        *(("", text) for text in arm.sources),
    ]  # fmt: skip
    return Section("use", "Use", table((), rows, "notes"))


def documentation_html(kind: Kind, arm: Arm, block: Table, version: str) -> str:
    """The data sheet as one page."""
    name = kind.identifier(arm)
    inputs = sum(p.group.size for p in block.with_causality("input"))
    outputs = sum(p.group.size for p in block.with_causality("output"))
    states = sum(p.group.size for p in block.states)
    tiles: list[tuple[str, object, str]] = [
        ("Inputs", inputs, ""), ("Outputs", outputs, ""), ("Continuous states", states, ""),
        ("FMI", "2.0", " ME + CS"),
    ]  # fmt: skip
    sections = [
        Section("block", "Block", join(STYLE, block_diagram(kind, arm, block))),
        equations_section(kind),
        variables_section(block),
        _frames_section(arm),
        _use_section(kind, arm),
    ]
    return page_html(name, page_head(name, f"{arm.title}: {kind.title.lower()}. {kind.text}", tiles), sections)
