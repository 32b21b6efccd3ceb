"""The documentation tells the truth: every test and name that docs/equations.md gives exists, every equation of 000 has
its row, and every link of the README and of docs/ leads somewhere."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import tangere
from tangere.model.loading import names, parameter_sets

ROOT = Path(__file__).resolve().parent.parent
EQUATIONS = ROOT / "docs" / "equations.md"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
HEAD = ["number", "what it says", "in print", "ours", "proved by"]
VERDICTS = ("right", "typo", "wrong", "ambiguous")
PACKAGES = (
    "Robot", "apps", "cli", "codegen", "control", "dynamics", "figures", "identification", "kernels", "kinematics",
    "logs", "loop", "model", "observe", "planning", "plants", "report", "types",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One line of a table of equations."""

    document: str  # "000"
    number: str
    says: str
    print: str
    ours: str
    tests: str


def rows(text: str) -> list[Row]:
    """The rows of every table headed by HEAD, with the document whose section they stand in."""
    found, document, inside = [], "", False
    for line in text.splitlines():
        if heading := re.match(r"## (\d{3}):", line):
            document = heading[1]
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if cells == HEAD:
            inside = True
        elif not cells:
            inside = False
        elif inside and not set(line) <= set("|-: "):
            assert len(cells) == len(HEAD), f"{len(cells)} cells instead of {len(HEAD)}: {line}"
            found.append(Row(document, *cells))
    return found


def equation_numbers(cell: str) -> list[int]:
    """Of "eqs 11-13" 11, 12, 13; of "eq 45" 45; of anything else nothing."""
    match = re.fullmatch(r"eqs? (\d+)(?:-(\d+))?", cell)
    return list(range(int(match[1]), int(match[2] or match[1]) + 1)) if match else []


@cache
def defined_in(file: str) -> frozenset[str]:
    """The test functions that a file of tests/ defines."""
    path = ROOT / "tests" / file
    tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def missing_tests(text: str) -> list[str]:
    """Tests that are named and do not exist."""
    named = re.findall(r"tests/(\w+\.py)::(\w+)", text)
    return [f"{file}::{name}" for file, name in named if name not in defined_in(file)]


def code_names(text: str) -> list[str]:
    """Plain dotted names in code spans that begin with one of our packages."""
    spans = re.findall(r"`([A-Za-z_]\w*(?:\.\w+)+)`", text)
    return [span for span in spans if span.split(".")[0] in (*PACKAGES, "tangere") and not span.endswith(".py")]


def exists(name: str) -> bool:
    """Whether a dotted name below tangere (or a method, Robot.x) can be reached by imports and attributes."""
    parts = name.removeprefix("tangere.").split(".")
    if parts[0] == "Robot":
        return len(parts) == 2 and callable(getattr(tangere.Robot, parts[1], None))
    thing: object = tangere
    for i, part in enumerate(parts):
        try:
            thing = importlib.import_module(".".join(["tangere", *parts[: i + 1]]))
        except ImportError:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
    return True


def unknown_models(text: str) -> list[str]:
    """Calls robot("name") and robot("name", parameters="set") in code spans that name none of ours."""
    calls = re.findall(r'`robot\("([^"]+)"(?:, parameters="([^"]+)")?\)`', text)
    return [f"{arm} {s}" for arm, s in calls if arm not in names() or (s and s not in parameter_sets(arm))]


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings get."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def broken_links(page: Path, text: str) -> list[str]:
    """Relative links of a page that lead to no file or to no heading."""
    bad = []
    for target in re.findall(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)", re.sub(r"```.*?```", "", text, flags=re.S)):
        file, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        goal = (page.parent / file).resolve() if file else page
        if not goal.exists() or (anchor and anchor not in anchors(goal)):
            bad.append(target)
    return bad


def missing_places(text: str) -> list[str]:
    """Files and folders of the package in code spans that are not there; NAME and * stand for any name."""
    places = re.findall(r"`([\w*/]+(?:/|/[\w*]+\.(?:py|h|toml)))`", text)
    package = ROOT / "src" / "tangere"
    return [place for place in places if not any(package.glob(place.rstrip("/").replace("NAME", "*")))]


def contract() -> list[list[str]]:
    """The rooms from high to low, siblings together, as import-linter proves them."""
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[room.strip() for room in layer.split("|")] for layer in layers if layer != "__main__"]


ROWS = rows(EQUATIONS.read_text())


def test_every_test_that_is_named_exists() -> None:
    text = EQUATIONS.read_text()
    assert len(re.findall(r"tests/\w+\.py::\w+", text)) > 100
    assert missing_tests(text) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_in_code_exists(page: Path) -> None:
    assert [name for name in code_names(page.read_text()) if not exists(name)] == []
    assert unknown_models(page.read_text()) == []


def test_every_equation_of_000_has_exactly_one_row() -> None:
    counts = Counter(number for row in ROWS if row.document == "000" for number in equation_numbers(row.number))
    assert counts == Counter(range(1, 109))


def test_the_other_documents_are_covered() -> None:
    """What they number or name; the rest of 003 and 002 has no numbers."""
    wanted = {
        "000": ("table 1", "table 2", "table 3, masses", "table 3, centres of mass", "table 4"),
        "001": ("table 7", "table 8, UR16e", "r33", "(3.43)-(3.46)", "(8), (9a)-(9d), table of signs", "double cover"),
        "002": ("D-H table", "vector Xdot", "tau = g - J^T F", "centres of mass"),
        "003": ("quaternion example", "planar 3R", "equal priority", "(1)", "pendulum", "joint impedance"),
        "004": (
            "table 1",
            "step 1",
            "step 2",
            "step 3",
            "step 4",
            "V = J qd",
            "A = J qdd + Jdot qd",
            "(1)",
            "(2)",
            "(3)",
        ),
    }
    for document, labels in wanted.items():
        numbers = [row.number for row in ROWS if row.document == document]
        assert [label for label in labels if not any(number.startswith(label) for number in numbers)] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.document} {row.number}")
def test_a_row_has_a_verdict_a_place_and_a_proof(row: Row) -> None:
    verdict = re.match(r"\*\*(\w+)\*\*", row.print)
    assert verdict, row.print
    assert verdict[1] in VERDICTS
    assert code_names(row.ours) or '`robot("' in row.ours
    assert "tests/" in row.tests


def test_nothing_is_left_for_later() -> None:
    assert [(row.document, row.number) for row in ROWS if "not yet" in row.ours] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text()) == []


def test_the_map_shows_every_room_in_the_order_of_the_contract() -> None:
    rooms = (ROOT / "docs" / "architecture.md").read_text().split("## One")[0]
    table = re.findall(r"^\| [\w ]*\| (`[^|]*`) \|", rooms, re.M)
    shown = [re.findall(r"`(\w+)(?:\.py)?`", cell) for cell in table]
    row_of = {room: i for i, rooms in enumerate(shown) for room in rooms}
    order = [row_of.get(room) for siblings in contract() for room in siblings]
    assert None not in order, f"not on the map: {[r for s in contract() for r in s if r not in row_of]}"
    assert order == sorted(order)
    assert len(row_of) == len(order)


def test_the_places_on_the_map_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert len(re.findall(r"`[\w*/]+/", text)) > 12
    assert missing_places(text) == []


def test_the_glossary_has_the_words_that_the_code_is_full_of() -> None:
    """Each table in the order of the alphabet, each word once."""
    tables = (ROOT / "docs" / "glossary.md").read_text().split("\n## ")
    lists = [re.findall(r"^\| \*\*([^*]+)\*\* \|", table, re.M) for table in tables]
    words = [word for each in lists for word in each]
    wanted = "belief change felt free impact judge level regime shock told twin wanted"
    assert set(wanted.split()) <= set(words)
    assert [sorted(each, key=str.lower) for each in lists] == lists
    assert len(set(words)) == len(words)


def test_the_checks_can_fail(tmp_path: Path) -> None:
    """Each finder finds what is wrong in a text made for it."""
    assert missing_tests("`tests/test_docs.py::test_the_checks_can_fail`") == []
    assert missing_tests("`tests/test_docs.py::test_nothing`, `tests/test_no.py::test_x`") == [
        "test_docs.py::test_nothing",
        "test_no.py::test_x",
    ]
    assert code_names("`Robot.pose`, `kinematics.rotation.skew`, `numpy.eye`, `q2`") == [
        "Robot.pose",
        "kinematics.rotation.skew",
    ]
    assert code_names("`loop.shares.error_shares`, `planning.path_trajectory`, `control.x`") == [
        "loop.shares.error_shares",
        "planning.path_trajectory",
        "control.x",
    ]
    assert exists("kinematics.rotation.skew")
    assert exists("observe.momentum.MomentumObserver")
    assert not exists("observe.momentum.MomentumObservers")
    assert exists("kernels.solutions.IKSolutions.nearest")
    assert exists("tangere.model.conventions")
    for name in ("Robot.poses", "kinematics.rotation.screw", "kinematics.rotations", "kernels.solutions.IKSolutions.x"):
        assert not exists(name)
    assert unknown_models('`robot("ur10e", parameters="000-C")`, `robot("scara")`') == []
    assert unknown_models('`robot("ur10e", parameters="000-X")`, `robot("ur11")`') == ["ur10e 000-X", "ur11 "]
    assert missing_places("`control/`, `model/data/NAME.toml`, `report/sections_*.py`, `kernels/c/arm.h`") == []
    assert missing_places("`steering/`, `apps/fmu/knids.py`") == ["steering/", "apps/fmu/knids.py"]
    assert equation_numbers("eqs 3-5") == [3, 4, 5]
    assert equation_numbers("eq 45") == [45]
    assert equation_numbers("table 1") == []
    page = tmp_path / "page.md"
    page.write_text(
        '# One: two\n[a](page.md#one-two) [b](gone.md) [c](#three) [d](https://example.org/x) [e](no.py "picture")\n'
    )
    assert broken_links(page, page.read_text()) == ["gone.md", "#three", "no.py"]
    table = "## 000: x\n| " + " | ".join(HEAD) + " |\n|---|---|---|---|---|\n| eq 1 | a | b | c | d |\n"
    assert rows(table) == [Row("000", "eq 1", "a", "b", "c", "d")]
    with pytest.raises(AssertionError, match="4 cells"):
        rows(table + "| eq 2 | a | b | c |\n")
