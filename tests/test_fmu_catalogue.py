"""The catalogue: every kind for every arm, a page that names them all, and files that are those of `tangere fmu`."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest

if shutil.which("cc") is None:
    pytest.skip("needs a C compiler", allow_module_level=True)

import tangere
from tangere.apps.fmu import KINDS, write_fmu
from tangere.apps.fmu.package import arms, write_catalogue
from tangere.apps.fmu.pages import EDITION
from tangere.cli.main import main

ROOT = Path(__file__).parents[1]
ARMS = ["UR3e", "UR5e", "UR10e", "UR16e", "UR7e", "UR12e", "UR3", "UR5", "UR10"]
ARMS += ["UR8Long", "UR15", "UR18", "UR20", "UR30"]


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    folder = tmp_path_factory.mktemp("catalogue")
    told = []
    page, written = write_catalogue(folder, tell=lambda *x: told.append(x))
    return folder, page.read_text(encoding="utf-8"), written, told


def test_every_kind_for_every_arm(catalogue):
    folder, _page, written, told = catalogue
    assert [w.arm.name for w in written[:: len(KINDS)]] == ARMS
    assert len(written) == len(ARMS) * len(KINDS) == len({w.path.name for w in written}) == len(told)
    assert len({w.guid for w in written}) == len(written)
    assert sorted(p.name for p in folder.glob("*.fmu")) == sorted(w.path.name for w in written)
    assert max(w.size for w in written) < 400_000
    assert told[0][1] == len(written)


def test_the_page_names_everything(catalogue):
    folder, page, written, _ = catalogue
    links = set(re.findall(r'href="([^"#]+)"', page))
    assert {w.path.name for w in written} <= links
    for link in links:  # nothing leads nowhere, nothing leads out
        assert (folder / link).is_file(), link
    for kind in KINDS.values():
        assert f'id="{kind.name}"' in page
        assert kind.text in page
    for name in ("q_des", "threshold_on", "payload.mass", "quaternion_sign", "solutions", "kinetic_energy"):
        assert name in page
    assert "Williams" in page
    assert page.count("Block diagram of UR10e") == len(KINDS)
    assert "612.7" in page  # |a2| of the UR10e in mm


def test_a_sheet_is_the_one_in_the_file(catalogue):
    folder, _page, written, _ = catalogue
    for w in written[:9]:
        with zipfile.ZipFile(w.path) as archive:
            inside = archive.read("documentation/index.html").decode()
        assert (folder / "sheets" / f"{w.path.stem}.html").read_text(encoding="utf-8") == inside


def test_pages_are_dated_by_their_edition(catalogue, tmp_path, monkeypatch):
    """The day of the edition, not of the writing: identical input, identical file. A release bears its own day."""
    assert f" · {EDITION} · Tangere " in catalogue[1]
    monkeypatch.setattr("tangere.apps.fmu.pages.EDITION", "2001-02-03")
    page, _ = write_catalogue(tmp_path, ["ur3e"], ["fk"])
    for file in (page, tmp_path / "sheets" / "UR3e_FK.html"):
        head = file.read_text(encoding="utf-8").split("</header>")[0]
        assert re.findall(r"20\d\d-\d\d-\d\d", head) == ["2001-02-03"]
    heading = re.search(r"^## [\d.]+ \((.*)\)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert heading
    assert heading[1] in ("unreleased", EDITION)


def test_a_file_is_the_one_of_the_command(catalogue, tmp_path):
    folder, *_ = catalogue
    alone = write_fmu("arm", tangere.robot("ur16e"), tmp_path)
    assert alone.path.read_bytes() == (folder / alone.path.name).read_bytes()


@pytest.mark.parametrize("kind", list(KINDS))
def test_all_arms_pass_the_checkers(catalogue, kind):
    """fmpy, for every file with TANGERE_FMU_ALL=1; the structure is the same for all arms (test_fmu_xml.py)."""
    validation = pytest.importorskip("fmpy.validation", reason="needs fmpy (tangere[test])")
    some = ARMS if os.environ.get("TANGERE_FMU_ALL") else ["UR3e", "UR30"][: 1 if kind in ("arm", "all") else 2]
    for w in catalogue[2]:
        if w.kind.name == kind and w.arm.name in some:
            assert validation.validate_fmu(str(w.path)) == []


def test_arms_are_those_that_blocks_fit():
    assert arms() == [name.lower() for name in ARMS]


def test_command_line(tmp_path, capsys):
    out = tmp_path / "some"
    assert main(["fmu", "catalogue", "--robot", "ur3e", "--kind", "fk", "--kind", "ik", "--out", str(out)]) == 0
    assert "2 FMUs" in capsys.readouterr().out
    assert sorted(p.name for p in out.iterdir()) == ["UR3e_FK.fmu", "UR3e_IK.fmu", "index.html", "sheets"]
    none = tmp_path / "a" / "none"
    for wrong, words in (
        (["--robot", "ur3e", "--robot", "ur99"], "ur99"),
        (["--robot", "scara", "--kind", "ik"], "which scara has not"),
    ):
        assert main(["fmu", "catalogue", *wrong, "--out", str(none)]) == 1
        assert words in capsys.readouterr().err
        assert not none.parent.exists()  # not even a folder


def test_an_arm_is_left_out_of_kinds_that_cannot_serve_it(tmp_path, capsys):
    chosen = ["--robot", "ur3e", "--robot", "scara", "--kind", "fk", "--kind", "ik"]
    assert main(["fmu", "catalogue", *chosen, "--out", str(tmp_path)]) == 0
    assert "3 FMUs" in capsys.readouterr().out
    names = sorted(p.stem.lower() for p in tmp_path.glob("*.fmu"))
    assert names == ["scara_fk", "ur3e_fk", "ur3e_ik"]


def test_without_a_compiler_nothing_is_left(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CC", "no-such-cc")
    assert main(["fmu", "catalogue", "--robot", "ur3e", "--kind", "fk", "--out", str(tmp_path / "a" / "b")]) == 1
    assert "no-such-cc" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written(capsys):
    assert main(["fmu", "catalogue", "--kind", "fk", "--out", "/dev/null/x"]) == 1
    assert "cannot be written" in capsys.readouterr().err
