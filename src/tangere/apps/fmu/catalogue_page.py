"""The index page of a catalogue of FMUs: what there is, the arms, and a data sheet of every kind."""

from __future__ import annotations

from collections.abc import Sequence

from tangere.apps.fmu.drawings import block_diagram, frames_drawing
from tangere.apps.fmu.numbers import Arm
from tangere.apps.fmu.package import Written
from tangere.apps.fmu.pages import STYLE, equations_of, variables_section
from tangere.figures.markup import Raw, join, tag
from tangere.report.page import page_html
from tangere.report.section import Section, page_head, table

_STYLE = Raw(
    "<style>a{color:var(--a)}table.grid td,table.grid thead th+th{text-align:left;white-space:nowrap}"
    "table.facts th{width:11em}table.facts td:last-child{width:auto}"
    "table.grid td small{color:var(--dim)}details{margin:10px 0 0}summary{cursor:pointer;color:var(--a)}"
    "section h3:first-of-type{margin-top:12px}pre{overflow-x:auto;font:13px/1.5 var(--mono)}</style>"
)


def _link(w: Written, words: object) -> Raw:
    return tag("a", words, href=w.path.name, download=w.path.name)


def _overview(written: Sequence[Written]) -> Section:
    """Arms down, kinds across: every cell is a file and its sheet."""
    kinds = list({w.kind.name: w.kind for w in written}.values())
    arms = list(dict.fromkeys(w.arm.name for w in written))
    cell = {(w.arm.name, w.kind.name): w for w in written}
    rows: list[tuple[object, ...]] = []
    for arm in arms:
        cells: list[object] = [arm]
        for kind in kinds:
            w = cell[arm, kind.name]
            size = tag("small", f" {w.size / 1000:.0f} kB")
            sheet = tag("a", "sheet", href=f"sheets/{w.path.stem}.html")
            cells.append(join(_link(w, "fmu"), " · ", sheet, size))
        rows.append(tuple(cells))
    header = ("arm", *(k.name for k in kinds))
    text = tag(
        "p", "Every file is FMI 2.0 for model exchange and co-simulation, plain C with its sources: nothing has to be "
        "installed on the host. One binary serves all arms of a kind; the arm's numbers are parameters.",
    )  # fmt: skip
    return Section("overview", "Overview", join(STYLE, _STYLE, text, table(header, rows, "grid")))


def _arms(arms: Sequence[Arm]) -> Section:
    """Lengths and masses, as 001 prints them for four arms (there rounded to mm)."""

    def mm(x: float) -> str:
        return f"{1e3 * abs(x):.2f}".rstrip("0").rstrip(".")

    lengths: list[tuple[object, ...]] = [
        (a.name, *(mm(x) for x in a.lengths), f"{sum(a.mass):.1f}", a.parameters) for a in arms
    ]
    header = ("arm", "d1 [mm]", "|a2| [mm]", "|a3| [mm]", "d4 [mm]", "d5 [mm]", "d6 [mm]", "mass [kg]", "parameter set")
    example = arms[0] if all(a.name != "UR10e" for a in arms) else next(a for a in arms if a.name == "UR10e")
    links: list[tuple[object, ...]] = []
    for i in range(6):
        com = ", ".join(f"{x + 0.0:.4g}" for x in example.com[3 * i : 3 * i + 3])
        inertia = ", ".join(f"{x + 0.0:.4g}" for x in example.inertia[6 * i : 6 * i + 6])
        links.append((i + 1, f"{example.mass[i]:.4g}", com, inertia))
    return Section(
        "arms", "Arms",
        join(
            table(header, lengths),
            tag("h3", f"{example.name}: frames and links"),
            tag("p", "Standard Denavit-Hartenberg: joint i turns about z of frame i-1; x red, y green, z blue. Joint "
                "angles are those of the teach pendant."),
            frames_drawing(example),
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
    # join: a separator between links
    files: list[object] = []
    for x in written:
        files += [", " if files else None, _link(x, x.path.name)]
    events = "a time event every period" if "OBSERVER" in kind.parts else "none"
    rows: list[tuple[object, ...]] = [
        ("FMU names", join(*files)),
        ("FMI standard", "2.0, model exchange and co-simulation"),
        ("Kind", tag("code", kind.name)),
        ("What it does", kind.text),
        ("States and events", f"{states or 'no'} continuous states; events: {events}"),
        ("Derivatives", "directional derivatives, analytic" if kind.directional else "none: every output is sampled"),
        ("Again", tag("code", f"tangere fmu {kind.name} --robot NAME")),
    ]
    body: list[object] = [table((), rows, "notes facts")]
    body += [tag("h3", "Block diagram"), block_diagram(kind, w.arm, w.table)]
    for e in equations_of(kind):
        body += [tag("h3", e.title), tag("pre", "\n".join(e.lines)), tag("p", e.text)]
        body.append(tag("p", "Sources: " + "; ".join(e.sources) + ".", class_="sub"))
    count = sum(p.group.size for p in w.table)
    body.append(
        tag("details", tag("summary", f"Variables and parameters ({count} numbers; start values of the {w.arm.name})"),
            variables_section(w.table).body)
    )  # fmt: skip
    return Section(kind.name, kind.title, join(*body))


def _use(written: Sequence[Written]) -> Section:
    name = written[0].path.name
    rows: list[tuple[object, ...]] = [
        ("Check a file", tag("code", f"tangere fmu check {name}")),
        ("In fmpy", tag("code", f"fmpy simulate {name} --show-plot")),
        ("From source", "sources/CMakeLists.txt in every file, or the one command on its data sheet; C99, libm only"),
        ("Signs", "M qdd + C qd + g + friction = tau + tau_ext + J^T wrench; a wrench is what the environment does to "
         "the robot, tau includes gravity"),
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
    sections.append(_use(written))
    line = f"Universal Robots arms as FMI 2.0 blocks: {', '.join(a.name for a in arms)}. Tangere {version}."
    return page_html("FMU library catalogue", page_head("FMU library catalogue", line, tiles), sections)
