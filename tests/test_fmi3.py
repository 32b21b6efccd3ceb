"""FMI 3.0: every kind validates, answers with the bits of FMI 2.0, and withstands misuse."""

from __future__ import annotations

import ctypes
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fmi3_host import DISCARD, ERROR, OK, WARNING, Host3
from fmpy.validation import validate_fmu
from fmu_block import Block

import tangere
from tangere.apps.fmu import KINDS, write_fmu
from tangere.apps.fmu.build import LINUX
from tangere.apps.fmu.check import check_fmu
from tangere.apps.fmu.package import Written, arms
from tangere.apps.fmu.variables import all_arrays
from tangere.errors import InvalidValue


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Written, Written]]:
    """Every kind of a UR10e in both versions."""
    folder = tmp_path_factory.mktemp("fmus")
    robot = tangere.robot("ur10e")
    out = {}
    for kind in KINDS:
        for fmi in (2, 3):
            (folder / str(fmi)).mkdir(exist_ok=True)
        out[kind] = tuple(write_fmu(kind, robot, folder / str(f), platforms=(LINUX,), fmi=f) for f in (2, 3))
    return out  # type: ignore[return-value]


@pytest.mark.parametrize("kind", list(KINDS))
def test_valid(written: dict[str, tuple[Written, Written]], kind: str) -> None:
    assert validate_fmu(str(written[kind][1].path)) == []


@pytest.mark.parametrize("arm", arms())
def test_every_arm_is_valid(arm: str, tmp_path: Path) -> None:
    """The description differs from arm to arm, the binary does not."""
    assert validate_fmu(str(write_fmu("arm", arm, tmp_path, platforms=(LINUX,), fmi=3).path)) == []


def test_validation_looks(written: dict[str, tuple[Written, Written]], tmp_path: Path) -> None:
    """A derivative of a variable that is none is found: the checks above can fail."""
    source, broken = written["dynamics"][1].path, tmp_path / "UR10e_Dynamics.fmu"
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(broken, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "modelDescription.xml":
                data = data.replace(b'causality="independent"', b'causality="local"')
            new.writestr(name, data)
    assert validate_fmu(str(broken))


def test_arrays_are_arrays(written: dict[str, tuple[Written, Written]], tmp_path: Path) -> None:
    """One variable for six joints, a matrix with two dimensions, force and torque apart with their own units."""
    host = Host3(written["fk"][1].path, tmp_path)
    assert host.lib.fmi3GetVersion() == b"3.0"
    for name, shape in (("R", ["3", "3"]), ("J.length", ["3", "6"]), ("J.cosine", ["3", "6"]), ("q", ["6"])):
        assert [d.get("start") for d in host.variables[name].findall("Dimension")] == shape
    assert len(str(host.variables["q"].get("start")).split()) == 6
    host.close()
    wrench = Host3(written["dynamics"][1].path, tmp_path).variables
    assert wrench["wrench.force"].get("declaredType") == "Force"
    assert wrench["wrench.torque"].get("declaredType") == "Torque"
    with zipfile.ZipFile(written["fk"][1].path) as archive:
        names = set(archive.namelist())
        build = ET.fromstring(archive.read("sources/buildDescription.xml"))
    assert {"sources/fmu3.c", "terminalsAndIcons/icon.png", "binaries/x86_64-linux/UR10e_FK.so"} <= names
    assert build.find(".//SourceFile").get("name") == "fmu3.c"  # type: ignore[union-attr]


def both(written: dict[str, tuple[Written, Written]], kind: str, folder: Path) -> tuple[Block, Host3]:
    old, new = written[kind]
    (folder / "2").mkdir()
    (folder / "3").mkdir()
    return Block(old, folder / "2"), Host3(new.path, folder / "3").begin()


@pytest.mark.parametrize("kind", list(KINDS))
def test_same_bits_in_co_simulation(
    written: dict[str, tuple[Written, Written]], kind: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    """Random inputs over twenty steps: every output of both versions, bit by bit."""
    old, new = both(written, kind, tmp_path)
    table, time = written[kind][1].table, 0.0
    for k in range(20):
        for a in all_arrays(table):
            g = a.placed.group
            if g.causality == "input" and g.kind == "Real":
                start = np.array(g.start[a.offset : a.offset + a.size])  # type: ignore[index]
                values = start + rng.normal(0.0, 0.02, a.size)
                assert new.set(a.name, values) == OK, new.said[-1:]
                names = list(g.names())[a.offset : a.offset + a.size]
                for name, value in zip(names, values, strict=True):
                    reference = a.reference + names.index(name)
                    old.fmu.setReal([reference], [value])
        assert new.step(time, 1e-3)[0] <= WARNING
        old.step(1e-3)
        time += 1e-3  # as the other host counts
        for a in all_arrays(table):
            g = a.placed.group
            if g.causality == "output" and g.kind == "Real":
                theirs = old.fmu.getReal(list(range(a.reference, a.reference + a.size)))
                assert new.get(a.name).tobytes() == np.array(theirs).tobytes(), (k, a.name)
    assert new.get("time")[0] == pytest.approx(0.02)
    new.close()


def test_states_and_restart(written: dict[str, tuple[Written, Written]], tmp_path: Path) -> None:
    """A state that was kept, written as bytes and read again goes on bit by bit."""
    host = Host3(written["arm"][1].path, tmp_path).begin()
    for k in range(5):
        assert host.step(1e-3 * k, 1e-3)[0] == OK
    state = ctypes.c_void_p()
    assert host.call("GetFMUState", ctypes.byref(state)) == OK
    size = ctypes.c_size_t()
    assert host.call("SerializedFMUStateSize", state, ctypes.byref(size)) == OK
    kept = (ctypes.c_uint8 * size.value)()
    assert host.call("SerializeFMUState", state, kept, size) == OK
    host.step(5e-3, 1e-3)
    after = host.get("q")
    again = ctypes.c_void_p()
    assert host.call("DeserializeFMUState", kept, size, ctypes.byref(again)) == OK
    assert host.call("SetFMUState", again) == OK
    assert host.step(5e-3, 1e-3) == (OK, 6e-3)
    assert host.get("q").tobytes() == after.tobytes()
    kept[40] ^= 1
    assert host.call("DeserializeFMUState", kept, size, ctypes.byref(again)) == ERROR
    assert host.said[-1][1].startswith("fmi3DeserializeFMUState")
    for one in (state, again):
        assert host.call("FreeFMUState", ctypes.byref(one)) == OK
    host.close()


@pytest.mark.parametrize(
    ("kind", "known", "unknown"), [("fk", ["q"], ["position"]), ("dynamics", ["tau", "qd"], ["qdd"])]
)
def test_derivatives_agree(
    written: dict[str, tuple[Written, Written]], kind: str, known: list[str], unknown: list[str], tmp_path: Path,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """s . (J d) = (J^T s) . d for any seeds."""
    host = Host3(written[kind][1].path, tmp_path, exchange=True).begin()
    d = rng.normal(size=sum(map(host.size, known)))
    s = rng.normal(size=sum(map(host.size, unknown)))
    forward, back = host.derivative("Directional", unknown, known, d), host.derivative("Adjoint", unknown, known, s)
    assert np.any(forward)
    assert s @ forward == pytest.approx(back @ d, rel=1e-12)
    host.close()


def test_model_exchange(written: dict[str, tuple[Written, Written]], tmp_path: Path) -> None:
    """The host integrates a falling arm; the block's own co-simulation agrees."""
    fall, own = (Host3(written["dynamics"][1].path, tmp_path, exchange=x).begin() for x in (True, False))
    flags = [ctypes.c_bool() for _ in range(5)]
    when = ctypes.c_double()
    assert fall.call("UpdateDiscreteStates", *map(ctypes.byref, flags), ctypes.byref(when)) == OK
    assert not any(flag.value for flag in flags)
    assert fall.call("EnterContinuousTimeMode") == OK
    count = ctypes.c_size_t()
    assert fall.call("GetNumberOfContinuousStates", ctypes.byref(count)) == OK
    x, rate = (ctypes.c_double * count.value)(), (ctypes.c_double * count.value)()
    assert fall.call("GetContinuousStates", x, count) == OK

    def rates(values: np.ndarray) -> np.ndarray:
        assert fall.call("SetContinuousStates", (ctypes.c_double * count.value)(*values), count) == OK
        assert fall.call("GetContinuousStateDerivatives", rate, count) == OK
        return np.array(rate)

    h, state = 1e-3, np.array(x)
    for k in range(50):
        a = rates(state)
        b = rates(state + 0.5 * h * a)
        c = rates(state + 0.5 * h * b)
        d = rates(state + h * c)
        state = state + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
        assert fall.call("SetTime", ctypes.c_double(h * (k + 1))) == OK
        assert own.step(h * k, h)[0] == OK
    np.testing.assert_allclose(np.concatenate([own.get("q"), own.get("qd")]), state, atol=1e-9)
    for host in (fall, own):
        host.close()


def test_misuse_is_answered(written: dict[str, tuple[Written, Written]], tmp_path: Path) -> None:
    """A status and a sentence with the function's own name; the block stays as it was."""
    path = written["controller"][1].path
    assert Host3(path, tmp_path, token="{another}").instance is None
    host = Host3(path, tmp_path)
    assert host.step(0.0, 1e-3)[0] == ERROR  # not initialised
    assert "fmi3DoStep must not be called" in host.said[-1][1]
    host.begin()
    before = host.get("q").tobytes()
    assert host.set("q", [np.nan] * 6) == DISCARD
    assert "fmi3SetFloat64: q" in host.said[-1][1]
    assert host.set("q", [0.0] * 5) == ERROR
    assert "5 values were given room, the variables have 6" in host.said[-1][1]
    assert host.get("q").tobytes() == before
    vr, out = (ctypes.c_uint32 * 1)(77777), (ctypes.c_double * 6)()
    assert host.call("GetFloat64", vr, ctypes.c_size_t(1), out, ctypes.c_size_t(6)) == ERROR
    assert host.call("GetFloat32", vr, ctypes.c_size_t(1), out, ctypes.c_size_t(1)) == ERROR
    assert host.call("GetClock", vr, ctypes.c_size_t(1), out) == ERROR
    assert host.call("EnterConfigurationMode") == ERROR
    assert host.call("EnterEventMode") == ERROR  # co-simulation
    many = (ctypes.c_uint32 * 100_000)(*([host.reference("q")] * 100_000))
    assert host.call("GetFloat64", many, ctypes.c_size_t(100_000), out, ctypes.c_size_t(6)) == ERROR
    assert host.step(0.0, 1e-3)[0] <= WARNING
    host.close()


def test_checkers_of_others(written: dict[str, tuple[Written, Written]]) -> None:
    """`tangere fmu check`: fmpy, fmutool and the symbols that the library shows; more in test_fmu_check.py."""
    found = {f.what: f.outcome for f in check_fmu(written["arm"][1].path) if f.part == "checkers"}
    assert found == {"fmpy validation": "good", "fmutool -check": "good", "symbols": "good"}


def test_versions() -> None:
    with pytest.raises(InvalidValue, match="fmi: 2 or 3, got 4"):
        write_fmu("fk", "ur10e", fmi=4)
