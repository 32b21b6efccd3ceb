"""The FMU as a file: identical for identical input, small, complete, and its sources compile anywhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

if shutil.which("cc") is None:
    pytest.skip("needs a C compiler", allow_module_level=True)

import tangere
from tangere.apps.fmu import KINDS, write_fmu
from tangere.apps.fmu.build import LINUX, WINDOWS, CompilerMissing, Platform, binary, compiler_of
from tangere.apps.fmu.families import UR
from tangere.apps.fmu.pages import licence_text
from tangere.apps.fmu.sources import sources_of
from tangere.cli.main import main
from tangere.errors import InvalidValue, UnknownName

# what glibc offers since long before 2.17: a block runs on systems of ten years ago
LIBRARY = {
    "calloc", "ceil", "expm1", "fclose", "floor", "fopen", "fread", "free", "memcmp", "memcpy", "memset",
    "sqrt", "strcmp", "strlen", "strncmp", "strtol", "tanh", "vsnprintf", "__stack_chk_fail", "strcat",
    # of the loader, weak, in every shared library
    "__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable",
}  # fmt: skip
ROBOT = tangere.robot("ur10e")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fmus")
    return {kind: write_fmu(kind, ROBOT, folder) for kind in KINDS}


def test_identical_input_identical_bytes(files, tmp_path):
    for kind in ("fk", "arm"):
        again = write_fmu(kind, tangere.robot("ur10e"), tmp_path / "again.fmu")
        assert again.path.read_bytes() == files[kind].path.read_bytes()
        other = write_fmu(kind, tangere.robot("ur10e", tool=(0, 0, 0.1)), tmp_path / "other.fmu")
        assert other.guid != again.guid


def test_compiling_again_gives_the_same_bytes(files, monkeypatch, tmp_path):
    """Not only the cache: a second compilation, elsewhere, as well."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    again = write_fmu("observer", ROBOT, tmp_path / "again.fmu")
    assert again.path.read_bytes() == files["observer"].path.read_bytes()
    assert len(list((tmp_path / "tangere" / "fmu").iterdir())) == len(again.platforms)


@pytest.mark.parametrize("kind", list(KINDS))
def test_size_and_content(files, kind):
    w = files[kind]
    assert w.size == w.path.stat().st_size < 400_000
    with zipfile.ZipFile(w.path) as archive:
        names = archive.namelist()
        assert {i.date_time for i in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        page = archive.read("documentation/index.html").decode()
        png = archive.read("model.png")
        texts = {n: archive.read(n).decode() for n in names if n.startswith("sources/")}
    identifier = w.path.stem
    assert names[0] == "modelDescription.xml"
    assert f"binaries/linux64/{identifier}.so" in names
    assert (f"binaries/win64/{identifier}.dll" in names) == (compiler_of(WINDOWS) is not None)
    wanted = {"model.png", "documentation/licenses/license.txt", "resources/parameters.txt", "sources/fmu.c"}
    assert wanted <= set(names)
    assert re.search(rf"add_library\({identifier}\b", texts["sources/CMakeLists.txt"])  # for whoever builds it anew
    assert png.startswith(b"\x89PNG")
    assert identifier in page
    assert "<svg" in page
    assert not re.search(r"(src|href)=.?https?:", page)
    for text in texts.values():
        for name in re.findall(r'#include "([^"]+)"', text):  # complete, or left out where the part is not there
            assert f"sources/{name}" in texts or name.startswith("part_")


def test_licence_is_ours():
    root = Path(__file__).parent.parent / "LICENSE"
    assert licence_text() == root.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["ik", "arm"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_sources_compile_on_their_own(files, tmp_path, kind, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    with zipfile.ZipFile(files[kind].path) as archive:
        archive.extractall(tmp_path, [n for n in archive.namelist() if n.startswith("sources/")])
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O0", "-fPIC", "-c"]
    prefix = [f"-DFMI2_FUNCTION_PREFIX={files[kind].path.stem}_"]  # as static linking wants it
    for options in ([], prefix):
        command = [compiler, *flags, *options, "fmu.c", "-o", "fmu.o"]
        done = subprocess.run(command, cwd=tmp_path / "sources", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    symbols = subprocess.run(["nm", "fmu.o"], cwd=tmp_path / "sources", capture_output=True, text=True, check=True)
    assert f" T {files[kind].path.stem}_fmi2DoStep" in symbols.stdout


@pytest.mark.parametrize("kind", list(KINDS))
def test_no_symbol_beyond_the_c_library(files, tmp_path, kind):
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    library = tmp_path / "fmu.so"
    w = files[kind]
    with zipfile.ZipFile(w.path) as archive:
        library.write_bytes(archive.read(f"binaries/linux64/{w.path.stem}.so"))
    lines = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout.splitlines()
    needed = {line.split()[-1].split("@")[0] for line in lines if " U " in line or " w " in line}
    offered = {line.split()[-1] for line in lines if " T " in line}
    assert needed <= LIBRARY
    assert all(name.startswith("fmi2") for name in offered)
    assert len(offered) == 44  # every function of FMI 2.0, both interfaces
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", "\n".join(lines))]
    assert max(versions) <= (2, 17)
    writable = subprocess.run(["size", "-A", library], capture_output=True, text=True, check=True).stdout
    sizes = {row.split()[0]: int(row.split()[1]) for row in writable.splitlines() if row.startswith(".")}
    assert sizes.get(".data", 0) + sizes.get(".bss", 0) <= 32  # the loader's own: no globals of ours


def test_one_binary_serves_all_arms(files, tmp_path):
    other = write_fmu("ik", tangere.robot("ur3e"), tmp_path)
    with zipfile.ZipFile(other.path) as a, zipfile.ZipFile(files["ik"].path) as b:
        assert a.read("binaries/linux64/UR3e_IK.so") == b.read("binaries/linux64/UR10e_IK.so")


def test_writing_from_the_cache_takes_no_time(files, tmp_path):
    begin = time.process_time()
    write_fmu("all", ROBOT, tmp_path)
    assert time.process_time() - begin < 3.0  # [s] of computing; a tenth of that as a rule, and compiling takes more


def test_refusals(tmp_path):
    with pytest.raises(UnknownName, match="inverse-dynamics"):
        write_fmu("kinematics", ROBOT, tmp_path)
    with pytest.raises(InvalidValue, match="closed form"):
        write_fmu("ik", tangere.robot("scara"), tmp_path)
    with pytest.raises(InvalidValue, match="q_start"):
        write_fmu("fk", ROBOT, tmp_path, q_start=[0.0, float("nan"), 0, 0, 0, 0])
    with pytest.raises(InvalidValue, match="joint 2 of ur10e at 400 deg is outside its limits, -360 to 360 deg"):
        write_fmu("fk", ROBOT, tmp_path, q_start=[0.0, 4e2 * 3.141592653589793 / 180, 0, 0, 0, 0])
    with pytest.raises(InvalidValue, match="1e\\+06"):
        write_fmu("fk", ROBOT, tmp_path, q_start=[0.0, 2e6, 0, 0, 0, 0])
    with pytest.raises(InvalidValue, match="cannot be written"):
        write_fmu("fk", ROBOT, "/dev/null/x.fmu", platforms=())
    table = KINDS["fk"].table(write_fmu("fk", ROBOT, tmp_path, platforms=()).arm)
    nowhere = Platform("atari", ".so", ("no-such-compiler",), ())
    with pytest.raises(CompilerMissing, match="no-such-compiler"):
        binary(sources_of(KINDS["fk"], table, UR), nowhere)
    with pytest.raises(tangere.TangereError, match="failed"):
        binary({"fmu.c": "this is not C"}, LINUX)


def test_an_error_leaves_what_was_there(tmp_path, monkeypatch):
    """A disk that is full half way: the old file stays, no new one, no part of one, no folder."""
    old = write_fmu("fk", ROBOT, tmp_path, platforms=()).path
    content = old.read_bytes()

    def full(self, data):
        with self.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    other = tangere.robot("ur10e", tool=(0, 0, 0.1))
    for out in (old, tmp_path / "new.fmu", tmp_path / "a" / "b" / "new.fmu", f"{tmp_path}/c/"):
        with pytest.raises(InvalidValue, match="No space left"):
            write_fmu("fk", other, out, platforms=())
    assert list(tmp_path.iterdir()) == [old]
    assert old.read_bytes() == content
    monkeypatch.undo()
    assert write_fmu("fk", other, f"{tmp_path}/c/", platforms=()).path == tmp_path / "c" / "UR10e_FK.fmu"


def test_where_to(tmp_path, monkeypatch):
    with pytest.raises(InvalidValue, match=r"for a new folder write .*blocks/"):
        write_fmu("fk", ROBOT, tmp_path / "blocks", platforms=())
    with pytest.raises(InvalidValue, match="neither a file"):
        write_fmu("fk", ROBOT, tmp_path / "UR10e.zip", platforms=())
    assert list(tmp_path.iterdir()) == []
    monkeypatch.chdir(tmp_path)
    assert write_fmu("fk", ROBOT, platforms=()).path.resolve() == tmp_path / "UR10e_FK.fmu"
    assert write_fmu("fk", ROBOT, "X.FMU", platforms=()).path == Path("X.FMU")
    (tmp_path / "folder.fmu").mkdir()
    assert write_fmu("fk", ROBOT, "folder.fmu", platforms=()).path == Path("folder.fmu/UR10e_FK.fmu")


def test_compiler_with_options(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shown = '__attribute__((visibility("default")))'
    source = {"fmu.c": f"#ifndef WITH\n#error without\n#endif\n{shown} int f(void);\nint f(void) {{ return WITH; }}\n"}
    monkeypatch.setenv("CC", "cc -DWITH=7 '-DOTHER=a b'")
    assert compiler_of(LINUX) == (shutil.which("cc"), "-DWITH=7", "-DOTHER=a b")
    seven = binary(source, LINUX)
    monkeypatch.setenv("CC", "cc -DWITH=8")
    assert binary(source, LINUX) != seven  # not from the cache
    for wrong, words in (("no-such-cc -O1", "CC = 'no-such-cc -O1'"), ("cc 'x", "CC is")):
        monkeypatch.setenv("CC", wrong)
        with pytest.raises(tangere.TangereError, match=re.escape(words)):
            binary(source, LINUX)
    monkeypatch.setenv("CC", "")
    assert compiler_of(LINUX) is not None


def test_cmake_builds_optimised(files, tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    with zipfile.ZipFile(files["fk"].path) as archive:
        archive.extractall(tmp_path, [n for n in archive.namelist() if n.startswith("sources/")])
    done = subprocess.run(
        ["cmake", "-S", "sources", "-B", "build", "-DCMAKE_VERBOSE_MAKEFILE=ON"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["cmake", "--build", "build"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "-O3" in done.stdout
    assert (tmp_path / "build" / "UR10e_FK.so").is_file()


def test_command_line(tmp_path, capsys):
    assert main(["fmu", "fk", "--robot", "ur10e", "--out", str(tmp_path), "--tool", "0,0,0.1,0,90,0"]) == 0
    assert "UR10e_FK.fmu" in capsys.readouterr().out
    assert (tmp_path / "UR10e_FK.fmu").is_file()
    assert main(["fmu", "ik", "--robot", "scara", "--out", str(tmp_path)]) == 1
    assert main(["fmu", "dynamics", "--robot", "ur20", "--drives", "full", "--out", str(tmp_path)]) == 1
    assert "drives of ur20 are not known" in capsys.readouterr().err
    assert main(["fmu", "fk", "--start", "1,2,3", "--out", str(tmp_path)]) == 1
    assert main(["fmu", "fk", "--start", "0,0,0,0,0,400", "--out", str(tmp_path)]) == 1
    assert "joint 6 of ur10e at 400 deg is outside its limits, -360 to 360 deg" in capsys.readouterr().err
    assert main(["fmu", "fk", "--out", str(tmp_path / "none")]) == 1
    assert "for a new folder" in capsys.readouterr().err
    with pytest.raises(SystemExit) as wrong:
        main(["fmu", "nonsense"])
    assert wrong.value.code == 2
    assert "inverse-dynamics" in capsys.readouterr().err
