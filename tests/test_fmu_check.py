"""`tangere fmu check`: nothing wrong with ours, and every kind of damage is found and named."""

from __future__ import annotations

import re
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

if shutil.which("cc") is None or not sys.platform.startswith("linux"):
    pytest.skip("needs a C compiler on Linux", allow_module_level=True)

import tangere
from tangere.apps.fmu import KINDS, write_fmu
from tangere.apps.fmu.build import LINUX
from tangere.apps.fmu.check import check_fmu
from tangere.apps.fmu.opened import LETTERS, WORDS, Finding, NotAnFmu, judged
from tangere.apps.fmu.part import Kind
from tangere.cli.main import main
from tangere.dynamics.friction import JointFriction

ROBOT = tangere.robot(
    "ur10e", tool=[0.01, 0.02, 0.13, 0.3, -0.2, 0.5], payload=(2.0, (0.01, 0.02, 0.03)), gravity="wall",
    rotor_inertia=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("fmus")
    friction = JointFriction.of(ROBOT.drives)
    return {k: write_fmu(k, ROBOT, folder, friction=friction, platforms=(LINUX,)).path for k in KINDS}


@pytest.fixture(scope="module")
def files3(tmp_path_factory) -> dict[str, Path]:
    """Of FMI 3.0: a UR, an arm whose joints turn and slide."""
    folder, friction = tmp_path_factory.mktemp("fmus3"), JointFriction.of(ROBOT.drives)
    of = {k: write_fmu(k, ROBOT, folder, friction=friction, platforms=(LINUX,), fmi=3).path for k in KINDS}
    return of | {"scara": write_fmu("dynamics", "scara", folder, platforms=(LINUX,), fmi=3).path}


def damaged(path: Path, out: Path, name: str, change: Callable[[str], str | None]) -> Path:
    """A copy of the FMU with one of its text files changed, or left out."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            data: bytes | None = old.read(info)
            if info.filename == name:
                assert data is not None
                text = change(data.decode())
                assert text != data.decode(), "the damage changes nothing"
                data = None if text is None else text.encode()
            if data is not None:
                new.writestr(info, data)
    return out


def bad(found: list[Finding]) -> dict[str, str]:
    return {f"{f.part} {f.what}": f.text for f in found if f.outcome == "bad"}


@pytest.mark.parametrize("kind", list(KINDS))
def test_nothing_is_wrong_with_ours(files, kind):
    found = check_fmu(files[kind], quick=True)  # fmpy and fmutool: test_fmu_xml.py
    assert bad(found) == {}
    assert {f.part for f in found} == {"file", "block", "answers"}
    # the observer has no directional derivatives: that is noted
    assert {f.outcome for f in found} == ({"good", "note"} if kind == "observer" else {"good"})


@pytest.mark.parametrize("kind", [*KINDS, "scara"])
def test_nothing_is_wrong_with_ours_of_fmi_3(files3, kind):
    """Arrays are driven element by element: the same checks, the same answers of the library."""
    found = check_fmu(files3[kind], quick=True)
    assert bad(found) == {}
    named = {f.what: f.outcome for f in found if f.part == "block"}
    assert set(named) == {"functions", "start values", "steps", "state", "dependencies", "derivatives", "refusals"}
    assert {f.outcome for f in found if f.part == "answers"} == {"good"}
    assert [f.what for f in found if f.outcome == "not checked"] == ["description"]


def test_a_new_kind_of_known_parts_is_one_description(tmp_path, monkeypatch):
    """Forward kinematics and inverse dynamics in one block: written, compiled, and right, from a `Kind` alone."""
    fk, dynamics = KINDS["fk"], KINDS["inverse-dynamics"]

    def groups(arm):
        own = [replace(g, name=f"fk.{g.name}") for g in fk.groups(arm) if g.key not in ("LENGTHS", "TOOL")]
        return [*dynamics.groups(arm), *own]

    kind = Kind(
        name="both", suffix="Both", title="Both", summary="two in one", text="Two in one.", colour=(1, 2, 3),
        parts=(*dynamics.parts, *fk.parts), groups=groups,
        answers=(*dynamics.answers, *(replace(a, prefix="fk.") for a in fk.answers)),
    )  # fmt: skip
    monkeypatch.setitem(KINDS, "both", kind)
    written = write_fmu("both", ROBOT, tmp_path, platforms=(LINUX,))
    assert written.path.name == "UR10e_Both.fmu"
    found = check_fmu(written.path, quick=True)
    assert bad(found) == {}
    assert [f.what for f in found if f.part == "answers"] == ["inverse dynamics", "forward kinematics"]


def test_checkers_of_others_are_asked(files):
    for name in ("fmpy", "fmu_manipulation_toolbox"):
        pytest.importorskip(name)
    found = {f.what: f for f in check_fmu(files["fk"]) if f.part == "checkers"}
    assert {f.outcome for f in found.values()} == {"good"}
    assert set(found) == {"fmpy validation", "fmutool -check", "symbols"}


XML = "modelDescription.xml"


@pytest.mark.parametrize(
    ("pattern", "by", "where", "words"),
    [
        (r'causality="input"', 'causality="output"', "file structure", "not in Outputs"),
        (r' start="0\.0"', "", "file variables", "needs a start value"),
        (r'name="q\[2\]"', 'name="q[1]"', "file variables", "two variables"),
        (r'(name="q\[1\]".*?\n.*?)max="[^"]*"', r'\1max="-99"', "file variables", "not within"),
        (r'declaredType="Angle"', 'declaredType="Angel"', "file units", "'Angel' is not defined"),
        (r'<Unknown index="\d+"', '<Unknown index="999"', "file structure", "no variable 999"),
        (r'dependencies="[^"]+"', 'dependencies=""', "block dependencies", "does not name it"),
        (r'variability="tunable"', 'variability="continuous"', "file variables", "must not be continuous"),
        (r'guid="\{.', 'guid="{z', "block start values", "GUID"),
        (r'guid="[^"]*"', 'guid=""', "file content", "the GUID is empty"),
        (r'modelIdentifier="UR10e_FK"', 'modelIdentifier="Other"', "file content", "no binary is called Other"),
        (r'start="-1\.57', 'start="-1.56', "block start values", "the file says"),
    ],
)
def test_damaged_descriptions(files, tmp_path, pattern, by, where, words):
    path = damaged(
        files["fk"], tmp_path / "bad.fmu", XML,
        lambda text: re.sub(pattern, by, text, count=0 if "Angle" in pattern or "depend" in pattern else 1, flags=re.S),
    )  # fmt: skip
    found = bad(check_fmu(path, quick=True))
    assert where in found, found
    assert words in found[where]


@pytest.mark.parametrize(
    ("kind", "name"),
    [("fk", "tool[1]"), ("inverse-dynamics", "arm.mass[2]"), ("dynamics", "arm.com[2,1]"), ("arm", "kp[2]"),
     ("observer", "gain[3]"), ("controller", "friction.viscous[1]"), ("ik", "arm.dh[2]"), ("all", "rotor_inertia[1]")],
)  # fmt: skip
def test_other_numbers_are_found(files, tmp_path, kind, name):
    """The block computes with a number that differs by 1e-6 from what the description says."""

    def change(text: str) -> str:
        line = next(x for x in text.splitlines() if x.split()[1:2] == [name])
        value = struct.unpack(">d", bytes.fromhex(line.split()[0]))[0]
        return text.replace(line, f"{struct.pack('>d', value + 1e-6).hex()} {name} 0")

    found = bad(check_fmu(damaged(files[kind], tmp_path / "bad.fmu", "resources/parameters.txt", change), quick=True))
    assert "block start values" in found
    assert any(key.startswith("answers") for key in found), found


@pytest.mark.parametrize("fmi", [2, 3])
def test_a_start_value_that_is_no_number_is_a_finding(files, files3, tmp_path, fmi):
    def change(text: str) -> str:
        at = text.index('start="', text.index('"q[1]"' if fmi == 2 else 'name="q"')) + len('start="')
        return f"{text[:at]}abc{text[text.index(' ' if fmi == 3 else chr(34), at) :]}"

    whole = (files if fmi == 2 else files3)["fk"]
    found = bad(check_fmu(damaged(whole, tmp_path / "bad.fmu", XML, change), quick=True))
    assert "the file says abc" in found["block start values"]


def test_a_library_that_crashes_is_a_finding(files, tmp_path):
    import subprocess

    source, library = tmp_path / "crash.c", tmp_path / "crash.so"
    source.write_text('int fmi2DoStep(void) { __builtin_trap(); }\nchar *fmi2GetVersion(void) { return "2.0"; }\n')
    subprocess.run(["cc", "-shared", "-fPIC", "-w", source, "-o", library], check=True)
    for name, pattern in (("both", "(?!)"), ("steps", "<ModelExchange.*?</ModelExchange>")):
        with zipfile.ZipFile(files["fk"]) as old, zipfile.ZipFile(tmp_path / f"{name}.fmu", "w") as new:
            for info in old.infolist():
                data = library.read_bytes() if info.filename.endswith(".so") else old.read(info)
                if info.filename == XML:
                    data = re.sub(pattern, "", data.decode(), flags=re.S).encode()
                new.writestr(info, data)
    # what an interface needs is missed where the file has that interface
    found = bad(check_fmu(tmp_path / "steps.fmu", quick=True))["block functions"]
    assert "fmi2CancelStep is absent" in found
    assert "fmi2CompletedIntegratorStep" not in found
    found = bad(check_fmu(tmp_path / "both.fmu", quick=True))
    for name in ("CancelStep", "CompletedIntegratorStep"):
        assert f"fmi2{name} is absent" in found["block functions"]
    assert "fmi2Instantiate is absent" in found["block steps"]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("d_ypr[1] = c * w[1]", "d_ypr[1] = -c * w[1]", "block derivatives"),
        ("position[i] = T[4 * i + 3];", "position[i] = 1.000001 * T[4 * i + 3];", "answers forward kinematics"),
        ("/ length * sign + 0.0;", "/ length * 1.000001 * sign + 0.0;", "answers forward kinematics"),
        ("memcpy(&I->now, &s->values, sizeof I->now);", "", "block state"),
        ("if (strcmp(line + 5, guid) != 0)", "if (0)", "block refusals"),
    ],
)
@pytest.mark.parametrize("fmi", [2, 3])
def test_faults_in_the_binary_are_found(files, files3, tmp_path, old, new, where, fmi):
    """The sources with one fault, compiled into the file."""
    import subprocess

    whole, main_file = (files["fk"], "fmu.c") if fmi == 2 else (files3["fk"], "fmu3.c")
    with zipfile.ZipFile(whole) as archive:
        archive.extractall(tmp_path / "fmu")
    texts = {p: p.read_text() for p in (tmp_path / "fmu" / "sources").iterdir()}
    assert sum(text.count(old) for text in texts.values()) == 1
    for path, text in texts.items():
        path.write_text(text.replace(old, new))
    library = tmp_path / "fault.so"
    flags = ["-std=c99", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-w"]
    subprocess.run(["cc", *flags, main_file, "-o", library, "-lm"], cwd=tmp_path / "fmu" / "sources", check=True)
    with zipfile.ZipFile(whole) as old_file, zipfile.ZipFile(tmp_path / "bad.fmu", "w") as new_file:
        for info in old_file.infolist():
            new_file.writestr(info, library.read_bytes() if info.filename.endswith(".so") else old_file.read(info))
    assert where in bad(check_fmu(tmp_path / "bad.fmu", quick=True))


def test_many_and_long_complaints_are_shortened():
    assert judged("file", "units", [], "all known") == Finding("file", "units", "good", "all known")
    long = "x" * (LETTERS + 1)
    said = judged("file", "units", ["y" * LETTERS, long, *"abcdefg"])
    assert said.outcome == "bad"
    first, second, *_, last = said.text.split("; ")
    assert (first, len(second), second[-4:]) == ("y" * LETTERS, LETTERS, "x...")
    assert (len(said.text.split("; ")), last) == (WORDS + 1, "and 4 more")


def test_what_is_no_fmu(tmp_path, capsys):
    text = tmp_path / "text.fmu"
    text.write_text("not a zip file")
    empty, outside, broken = (tmp_path / f"{n}.fmu" for n in ("empty", "outside", "broken"))
    for path, name, content in (
        (empty, "a.txt", "x"), (outside, "../modelDescription.xml", "x"), (broken, XML, "<fmiModelDescription"),
    ):  # fmt: skip
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, content)
    for path, words in (
        (text, "not a zip file"), (empty, "holds no modelDescription"), (outside, "leads out"),
        (broken, "not well-formed"), (tmp_path / "none.fmu", "no such file"),
    ):  # fmt: skip
        with pytest.raises(NotAnFmu, match=words):
            check_fmu(path)
        assert main(["fmu", "check", str(path)]) == 1
        assert words in capsys.readouterr().out


def test_a_folder_is_no_fmu(tmp_path, capsys):
    assert main(["fmu", "check", str(tmp_path)]) == 1
    assert "is a folder" in capsys.readouterr().out


def test_another_version_is_left_alone(tmp_path, capsys):
    with zipfile.ZipFile(tmp_path / "one.fmu", "w") as archive:
        archive.writestr(XML, '<fmiModelDescription fmiVersion="1.0" modelName="x" guid="y"/>')
    for quick in (True, False):
        found = check_fmu(tmp_path / "one.fmu", quick=quick)
        assert [(f.outcome, "FMI 1.0" in f.text) for f in found] == [("not checked", True)]
    assert main(["fmu", "check", str(tmp_path / "one.fmu")]) == 0
    assert "one.fmu: not checked: FMI 1.0" in capsys.readouterr().out


def test_command_line(files, capsys):
    assert main(["fmu", "check", "--quick", str(files["fk"])]) == 0
    out = capsys.readouterr().out
    assert "nothing wrong" in out
    assert "forward kinematics" in out
    assert main(["fmu", "check", "--quick", str(files["fk"]), str(files["ik"])]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2  # a line each where nothing is wrong


def test_without_a_compiler_it_says_what_was_not_done(files, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    found = check_fmu(files["fk"], quick=True)
    assert bad(found) == {}
    assert [f.what for f in found if f.outcome == "not checked"] == ["driven", "forward kinematics"]
