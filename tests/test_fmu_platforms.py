"""Binaries for other systems: what is in them, and those for Windows run under wine to the numbers of Linux."""

from __future__ import annotations

import importlib.util
import struct
import zipfile
from pathlib import Path

import pytest
from fmu_block import FRICTION, ROBOT

from tangere.apps.fmu import build, write_fmu
from tangere.apps.fmu.build import (
    AARCH64,
    DARWIN,
    LINUX,
    WINDOWS,
    CompilerMissing,
    compiler_of,
    platforms_of,
    universal,
)
from tangere.apps.fmu.check_block import _windows
from tangere.apps.fmu.driver import wine
from tangere.apps.fmu.opened import opened
from tangere.cli.main import main
from tangere.errors import UnknownName

zig = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="needs ziglang (tangere[cross])")
windows = pytest.mark.skipif(wine() is None or compiler_of(WINDOWS) is None, reason="needs wine and mingw")
INTEL, ARM = 0x01000007, 0x0100000C  # <mach/machine.h>: CPU_TYPE_X86_64, CPU_TYPE_ARM64
LC_SYMTAB = 2


def macho_exports(data: bytes) -> tuple[int, set[str]]:
    """Processor and external defined symbols of a Mach-O file, after <mach-o/loader.h>."""
    magic, processor, _, kind, commands = struct.unpack_from("<IIIII", data)
    assert magic == 0xFEEDFACF
    assert kind == 6
    at, found = 32, set()
    for _ in range(commands):
        command, size = struct.unpack_from("<II", data, at)
        if command == LC_SYMTAB:
            symbols, count, strings, _ = struct.unpack_from("<IIII", data, at + 8)
            for k in range(count):
                name, kinds = struct.unpack_from("<IB", data, symbols + 16 * k)
                if kinds & 0x01 and kinds & 0x0E:  # external, and defined somewhere
                    start = strings + name
                    found.add(data[start : data.index(b"\0", start)].decode())
        at += size
    return processor, found


@zig
def test_macos_and_arm_in_both_versions(tmp_path):
    for fmi, functions in ((2, 44), (3, 75)):
        path = write_fmu("fk", ROBOT, tmp_path / f"{fmi}.fmu", platforms=(*DARWIN, AARCH64), fmi=fmi).path
        with zipfile.ZipFile(path) as archive:
            found = {n.split("/")[1]: archive.read(n) for n in archive.namelist() if n.startswith("binaries/")}
        elf = found.pop("aarch64-linux")
        assert elf[:5] == b"\x7fELF\x02"
        assert struct.unpack_from("<H", elf, 18) == (183,)
        if fmi == 2:
            fat = found.pop("darwin64")
            magic, count = struct.unpack_from(">II", fat)
            assert (magic, count, found) == (0xCAFEBABE, 2, {})
            parts = [struct.unpack_from(">IIIII", fat, 8 + 20 * k) for k in range(count)]
            assert all(at % (1 << align) == 0 for _, _, at, _, align in parts)
            slices = [fat[at : at + size] for _, _, at, size, _ in parts]
            assert [p[0] for p in parts] == [INTEL, ARM]
        else:
            slices = [found.pop("x86_64-darwin"), found.pop("aarch64-darwin")]
            assert found == {}
        for processor, data in zip((INTEL, ARM), slices, strict=True):
            told, names = macho_exports(data)
            assert told == processor
            names = {n for n in names if n.startswith("_fmi")}
            assert len(names) == functions
            assert f"_fmi{fmi}DoStep" in names


@zig
def test_compiled_again_they_are_the_same_bytes(monkeypatch, tmp_path):
    made, kept = [], build.cache_folder() / "zig"
    kept.mkdir(parents=True, exist_ok=True)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "zig").symlink_to(kept)  # zig's own parts are not what is asked for, and take a minute
        monkeypatch.setattr(build, "cache_folder", lambda name=name: tmp_path / name)
        source = {"fmu.c": '__attribute__((visibility("default"))) double half(double x) { return 0.5 * x; }'}
        made.append([build.binary(source, p) for p in (*DARWIN, AARCH64)])
    assert made[0] == made[1]


def test_a_universal_file_of_three():
    parts = [struct.pack("<III", 0xFEEDFACF, k, 0) + bytes([k]) * size for k, size in ((1, 5), (2, 40000), (3, 0))]
    fat = universal(parts)
    for k, part in enumerate(parts):
        processor, _, at, size, _ = struct.unpack_from(">IIIII", fat, 8 + 20 * k)
        assert (processor, fat[at : at + size]) == (k + 1, part)


def test_names():
    with pytest.raises(UnknownName, match="linux64, win64, darwin64, aarch64-linux, all"):
        platforms_of(["linux64", "vax"])
    assert platforms_of(["linux64"]) == (LINUX,)


def test_without_zig_a_sentence_says_what_to_install(monkeypatch, tmp_path, capsys):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ziglang" else real(name))
    with pytest.raises(CompilerMissing, match=r"no C compiler for darwin64 .*tangere\[cross\]"):
        platforms_of(["darwin64"])
    assert main(["fmu", "fk", "--platforms", "aarch64-linux", "--out", str(tmp_path / "x.fmu")]) == 1
    assert "tangere[cross]" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@windows
@pytest.mark.parametrize(("kind", "fmi"), [("arm", 2), ("all", 2), ("arm", 3)])
def test_windows_gives_the_numbers_of_linux(kind, fmi, tmp_path):
    path = write_fmu(kind, ROBOT, tmp_path, friction=FRICTION, platforms=(LINUX, WINDOWS), fmi=fmi).path
    found = _windows(opened(path, tmp_path / "x"))
    assert (found.outcome, "to the last bit" in found.text) == ("good", True), found.text


@windows
@pytest.mark.parametrize("fmi", [2, 3])
def test_a_windows_library_of_another_arm_is_found(fmi, tmp_path):
    path = write_fmu("inverse-dynamics", ROBOT, tmp_path, platforms=(LINUX, WINDOWS), fmi=fmi).path
    fmu = opened(path, tmp_path / "x")
    text = (fmu.folder / "sources" / "part_mass.h").read_text()
    wrong = {p.name: p.read_text() for p in Path(fmu.folder / "sources").glob("*.[ch]")}
    wrong["part_mass.h"] = text.replace("P[2] = r[VISCOUS + i];", "P[2] = r[VISCOUS + i] + 1e-3;")
    assert wrong["part_mass.h"] != text
    fmu.library_of(WINDOWS).write_bytes(build.binary(wrong, WINDOWS))
    found = _windows(fmu)
    assert found.outcome == "bad"
    assert "differ" in found.text
