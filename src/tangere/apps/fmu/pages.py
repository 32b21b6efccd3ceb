"""Pages about FMUs: the data sheet of a block (its documentation/index.html), and the index page of a catalogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from tangere.apps.fmu.description import AUTHOR
from tangere.apps.fmu.drawings import block_diagram, double_cover, frames_drawing, picture
from tangere.apps.fmu.formulas import STYLE as STYLE_OF_FORMULAS
from tangere.apps.fmu.formulas import forward_formulas, rotation_formulas
from tangere.apps.fmu.part import ArmNumbers, Kind, six_of
from tangere.apps.fmu.variables import CHOICES, Choice, Group, Table, units_of
from tangere.figures.markup import Raw, join, tag
from tangere.report.data import About
from tangere.report.page import page_html
from tangere.report.section import Section, page_head, table
from tangere.report.terminal import plural

if TYPE_CHECKING:
    from tangere.apps.fmu.package import Written
    from tangere.types import Array

# the page's tables set numbers to the right; these hold words
STYLE = Raw(
    "<style>table.notes thead th{text-align:left;padding-left:14px}table.notes thead th:first-child{padding-left:0}"
    "table.notes:not(.facts) td:last-child{width:46%}table.notes:not(.facts) td:nth-child(4){min-width:11em}</style>"
)
# of the blocks, their equations and the arms' numbers; set with a change of them, and to the day of a release. Not the
# day of writing: identical input, identical file
EDITION = "2026-11-16"
COMPILE = "cc -std=c99 -O2 -ffp-contract=off -fPIC -shared -fvisibility=hidden sources/fmu.c -lm -o {name}.so"
CATALOGUE_STYLE = Raw(
    "<style>a{color:var(--a)}table.grid td,table.grid thead th+th{text-align:left;white-space:nowrap}"
    "table.facts th{width:11em}table.facts td:last-child{width:auto}"
    "table.grid td small{color:var(--dim)}details{margin:10px 0 0}summary{cursor:pointer;color:var(--a)}"
    "section h3:first-of-type{margin-top:12px}pre{overflow-x:auto;font:13px/1.5 var(--mono)}</style>"
)


def _edition(version: str) -> About:
    """Author, date and version, as 001 has them on top."""
    return About(author=AUTHOR, date=f"{EDITION} · Tangere {version}")


def licence_text() -> str:
    """The licence of the sources."""
    return (files("tangere.apps.fmu") / "c" / "LICENSE.txt").read_text(encoding="utf-8")


def _start(g: Group) -> str:
    if g.start is None:
        return ""
    if g.kind == "Boolean":
        return "true" if g.start[0] else "false"
    if (choice := _choice(g)) is not None:
        return f"{int(g.start[0])} {choice.items[int(g.start[0]) - 1][0]}"
    values = [f"{x if abs(x) > 1e-12 else 0.0:.6g}" for x in g.start]
    if len(set(values)) == 1:
        return values[0] if len(values) == 1 else f"{values[0]} each"
    return ", ".join(values) if len(values) <= 9 else "see modelDescription.xml"


def _choice(g: Group) -> Choice | None:
    return CHOICES.get(g.declared) if isinstance(g.declared, str) else None


def _variables(block: Table) -> Raw:
    """Inputs, outputs and parameters with sizes, units and start values."""
    columns: dict[str, Callable[[Group], object]] = {
        "name": lambda g: tag("code", g.name), "size": lambda g: " × ".join(map(str, g.shape)) or "1",
        "unit": lambda g: units_of(g) or g.kind, "start": _start, "when": lambda g: g.variability,
        "what": lambda g: g.text if (choice := _choice(g)) is None else f"{g.text}. {choice.meaning}",
    }  # fmt: skip
    body: list[Raw] = []
    for causality, without in (("input", {"when"}), ("output", {"start", "when"}), ("parameter", set[str]())):
        shown = {name: cell for name, cell in columns.items() if name not in without}
        rows = [tuple(cell(p.group) for cell in shown.values()) for p in block.with_causality(causality)]
        body += [tag("h3", f"{causality.capitalize()}s"), table(tuple(shown), rows, "notes")]
    return join(*body)


def _equations(kind: Kind, arm: ArmNumbers) -> Raw:
    """Mathematics of the block's parts."""
    body: list[Raw] = []
    for e in (part.equations_of(arm.family) for part in kind.parts):
        if e is not None:
            body += [tag("h3", e.title), tag("pre", "\n".join(e.lines)), tag("p", e.text)]
            if e.title == "Forward kinematics":
                body += [STYLE_OF_FORMULAS, forward_formulas() if arm.family.closed else Raw(""),
                         rotation_formulas(double_cover())]  # fmt: skip
            body.append(tag("p", "Sources: " + "; ".join(e.sources) + ".", class_="sub"))
    return join(*body)


def _frames_section(arm: ArmNumbers) -> Section:
    if not arm.family.closed:
        return _serial_frames(arm)
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


def _serial_frames(arm: ArmNumbers) -> Section:
    """Frames of an arm that is no UR: its joints one after another."""

    def six(T: Array) -> str:
        return ", ".join(f"{x if abs(x) > 1e-12 else 0.0:.6g}" for x in six_of(T))

    rows: list[tuple[object, ...]] = [
        (f"{i + 1} {j.name}", "turns" if j.kind == "revolute" else "slides", six(j.T_parent_joint), six(j.T_joint_link))
        for i, j in enumerate(arm.model.joints)
    ]
    text = (
        "Each joint stands in the frame of the link before and turns about, or slides along, its own z; the frame of "
        "its link follows. x red, y green, z blue. Poses, wrenches and the Jacobian are in base axes, at the tcp. A "
        "wrench is what the environment does to the robot; tau includes gravity."
    )
    header = ("joint", "moves", "in the link before: x, y, z [m], rx, ry, rz [rad]", "its link, in it")
    return Section("frames-and-signs", "Frames and signs",
                   join(frames_drawing(arm), table(header, rows, "notes"), tag("p", text)))  # fmt: skip


def _use_section(kind: Kind, arm: ArmNumbers, fmi: int, version: str) -> Section:
    name = kind.identifier(arm)
    rows: list[tuple[object, ...]] = [
        ("Interfaces", f"FMI {fmi}.0 model exchange and co-simulation in one file; any step length, also changing"),
        ("State", "can be read, set and serialised; a restored block goes on bit by bit"),
        ("Directional derivatives", "analytic, of all continuous outputs in inputs and states"
         if kind.directional else "none: every output is sampled"),
        ("Events", "a time event at every sample; no state events" if kind.has("OBSERVER") else "none"),
        ("Bad input", f"a value that is not finite or out of bounds is discarded (fmi{fmi}Discard) and the one before "
         f"stays; misuse is answered with fmi{fmi}Error and a message, the block stays as it was"),
        ("Start values", "resources/parameters.txt, the same numbers as in modelDescription.xml; the binary serves "
         f"every {'UR arm' if arm.family.closed else 'arm whose joints turn and slide in this order'}"),
        ("From source", tag("code", COMPILE.format(name=name).replace("fmu.c", "fmu3.c" if fmi == 3 else "fmu.c"))),
        ("Author", AUTHOR), ("Date", f"{EDITION}, of this edition: the same file whenever it is written"),
        ("Version", f"Tangere {version}"),
        ("Binaries", "linux64 and win64 are run by the tests (win64 under wine); those for macOS (darwin64) and Linux "
         "on ARM are built only, nobody has run them here"),
        ("Parameter set", f"{arm.model.title}, {arm.model.parameters}"),
        *(("", text) for text in arm.sources),
    ]  # fmt: skip
    return Section("use", "Use", table((), rows, "notes facts"))


def documentation_html(kind: Kind, arm: ArmNumbers, block: Table, version: str, fmi: int = 2) -> str:
    """The data sheet as one page; fmi: version of the standard."""
    name = kind.identifier(arm)
    inputs = sum(p.group.size for p in block.with_causality("input"))
    outputs = sum(p.group.size for p in block.with_causality("output"))
    states = sum(p.group.size for p in block.states)
    tiles: list[tuple[str, object, str]] = [
        ("Inputs", inputs, ""), ("Outputs", outputs, ""), ("Continuous states", states, ""),
        ("FMI", f"{fmi}.0", " ME + CS"),
    ]  # fmt: skip
    sections = [
        Section("block", "Block", join(STYLE, block_diagram(kind, arm, block), picture(arm))),
        Section("equations", "Equations", _equations(kind, arm)),
        Section("variables", "Variables", _variables(block)),
        _frames_section(arm),
        _use_section(kind, arm, fmi, version),
    ]
    line = f"{arm.model.title}: {kind.title.lower()}. {kind.text}"
    return page_html(name, page_head(name, line, tiles, about=_edition(version)), sections)


def _link(w: Written, words: object) -> Raw:
    return tag("a", words, href=w.path.name, download=w.path.name)


def _overview(written: Sequence[Written]) -> Section:
    """Arms down, kinds across: every cell is a file and its sheet."""

    def files(w: Written) -> Raw:
        sheet = tag("a", "sheet", href=f"sheets/{w.path.stem}.html")
        return join(_link(w, "fmu"), " · ", sheet, tag("br"), tag("small", f"{w.size / 1000:.0f} kB"))

    cell = {(w.arm.name, w.kind.name): w for w in written}
    arms, kinds = (list(dict.fromkeys(names)) for names in zip(*cell, strict=True))
    rows: list[tuple[object, ...]] = [
        (arm, *(files(cell[arm, kind]) if (arm, kind) in cell else "–" for kind in kinds)) for arm in arms
    ]
    text = tag(
        "p", "Every file is FMI 2.0 for model exchange and co-simulation, plain C with its sources: nothing has to be "
        "installed on the host. One binary serves all arms of a kind; the arm's numbers are parameters.",
    )  # fmt: skip
    return Section("overview", "Overview", join(STYLE, CATALOGUE_STYLE, text, table(("arm", *kinds), rows, "grid")))


def _arms(arms: Sequence[ArmNumbers]) -> Section:
    """Lengths and masses, as 001 prints them for four arms (there rounded to mm)."""

    def mm(x: float) -> str:
        return f"{1e3 * abs(x):.2f}".rstrip("0").rstrip(".")

    lengths: list[tuple[object, ...]] = [
        (a.name, *(map(mm, a.lengths) if a.family.closed else ["–"] * 6),
         f"{sum(link.mass for link in a.model.links):.1f}", a.model.parameters)
        for a in arms
    ]  # fmt: skip
    header = ("arm", "d1 [mm]", "|a2| [mm]", "|a3| [mm]", "d4 [mm]", "d5 [mm]", "d6 [mm]", "mass [kg]", "parameter set")
    example = next((a for a in arms if a.name == "UR10e"), arms[0])
    links: list[tuple[object, ...]] = [
        (i, f"{link.mass:.4g}", *(", ".join(f"{x + 0.0:.4g}" for x in row) for row in (link.com, inertia)))
        for i, (link, inertia) in enumerate(zip(example.model.links, example.inertia, strict=True), 1)
    ]
    return Section(
        "arms", "Arms",
        join(
            table(header, lengths),
            tag("h3", f"{example.name}: frames and links"),
            tag("p", "Standard Denavit-Hartenberg: joint i turns about z of frame i-1; x red, y green, z blue. Joint "
                "angles are those of the teach pendant."),
            picture(example), frames_drawing(example),
            table(("link", "mass [kg]", "centre of mass [m]", "inertia xx, yy, zz, xy, xz, yz [kg m2]"), links),
            tag("details", tag("summary", f"Where the numbers of the {example.name} come from"),
                tag("ul", *(tag("li", s) for s in example.sources))),
        ),
    )  # fmt: skip


def _kind(written: Sequence[Written]) -> Section:
    """The data sheet of one kind: name, type, diagram, equations with sources, variables and parameters."""
    w = next((x for x in written if x.arm.name == "UR10e"), written[0])
    kind = w.kind
    states = sum(p.group.size for p in w.table.states)
    events = "a time event every period" if kind.has("OBSERVER") else "none"
    rows: list[tuple[object, ...]] = [
        ("FMU names", Raw(", ".join(_link(x, x.path.name) for x in written))),
        ("FMI standard", "2.0, model exchange and co-simulation"),
        ("Kind", tag("code", kind.name)),
        ("What it does", kind.text),
        ("States and events", f"{states or 'no'} continuous states; events: {events}"),
        ("Derivatives", "directional derivatives, analytic" if kind.directional else "none: every output is sampled"),
        ("Again", tag("code", f"tangere fmu {kind.name} --robot NAME")),
    ]
    count = sum(p.group.size for p in w.table)
    summary = f"Variables and parameters ({count} numbers; start values of the {w.arm.name})"
    return Section(kind.name, kind.title, join(
        table((), rows, "notes facts"), tag("h3", "Block diagram"), block_diagram(kind, w.arm, w.table),
        _equations(kind, w.arm), tag("details", tag("summary", summary), _variables(w.table)),
    ))  # fmt: skip


def _catalogue_use(written: Sequence[Written]) -> Section:
    name = written[0].path.name
    rows: list[tuple[object, ...]] = [
        ("Check a file", tag("code", f"tangere fmu check {name}")),
        ("In fmpy", tag("code", f"fmpy simulate {name} --show-plot")),
        ("From source", "sources/CMakeLists.txt in every file, or the one command on its data sheet; C99, libm only"),
        ("Signs", "M qdd + C qd + g + friction = tau + tau_ext + J^T wrench; a wrench is what the environment does to "
         "the robot, tau includes gravity"),
        ("Run here", "binaries for linux64, and win64 under wine, to the same numbers; those for macOS and Linux on "
         "ARM are built only"),
        ("Licence", "Apache-2.0, in every file"),
    ]  # fmt: skip
    return Section("use", "Use", table((), rows, "notes facts"))


def catalogue_html(written: Sequence[Written], version: str) -> str:
    """The page."""
    kinds = list(dict.fromkeys(w.kind.name for w in written))
    arms = list({w.arm.name: w.arm for w in written}.values())
    platforms = sorted({p for w in written for p in w.platforms})
    tiles: list[tuple[str, object, str]] = [
        ("Blocks", len(written), ""), ("Arms", len(arms), ""), ("Kinds", len(kinds), ""),
        ("FMI", "2.0", " ME + CS"), ("Platforms", len(platforms), f" {', '.join(platforms)}"),
        ("Largest", f"{max(w.size for w in written) / 1000:.0f}", " kB"),
    ]  # fmt: skip
    sections = [_overview(written), _arms(arms)]
    sections += [_kind([w for w in written if w.kind.name == k]) for k in kinds]
    sections.append(_catalogue_use(written))
    line = ", ".join(a.name for a in arms)
    told = (
        f"{plural(len(kinds), 'kind')} of block for {plural(len(arms), 'arm')}: files that simulation tools with "
        "FMI 2.0 open, without Tangere."
    )
    title = "FMU library catalogue"
    return page_html(title, page_head(title, line, tiles, about=_edition(version), sentence=told), sections)
