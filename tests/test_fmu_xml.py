"""modelDescription.xml: no checker complains, and what it says about the block is true."""

from __future__ import annotations

import argparse
import logging
import shutil
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fmpy", reason="needs fmpy (tangere[test])")
if shutil.which("cc") is None:
    pytest.skip("needs a C compiler", allow_module_level=True)

from fmpy.validation import validate_fmu
from fmu_block import Block

import tangere
from tangere.apps.fmu import command
from tangere.apps.fmu.build import LINUX
from tangere.apps.fmu.description import description_text
from tangere.apps.fmu.kinds import KINDS
from tangere.apps.fmu.package import Written, write_fmu
from tangere.apps.fmu.part import arm_of
from tangere.apps.fmu.variables import TYPES, UNITS

ARMS = tuple(name for name in tangere.models() if name.startswith("ur"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fmus")


@pytest.fixture(scope="module")
def written(folder) -> dict[str, Written]:
    robot = tangere.robot("ur10e", payload=1.5, tool=(0.0, 0.0, 0.1))
    return {kind: write_fmu(kind, robot, folder, platforms=(LINUX,)) for kind in KINDS}


def root_of(w: Written) -> ET.Element:
    with zipfile.ZipFile(w.path) as archive:
        return ET.fromstring(archive.read("modelDescription.xml"))


@pytest.mark.parametrize("kind", list(KINDS))
def test_fmpy_has_no_complaint(written, kind):
    assert validate_fmu(str(written[kind].path)) == []


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_has_the_same_structure(written, arm):
    """All arms pass where one does: their files differ in names, GUID, description and numbers only."""
    numbers = arm_of(tangere.robot(arm))
    assert numbers.name == arm.upper().replace("E", "e").replace("LONG", "Long")
    for kind in KINDS:
        text = description_text(KINDS[kind], numbers, KINDS[kind].table(numbers), "{}", "0")
        mine, theirs = ET.fromstring(text), root_of(written[kind])
        assert mine.get("modelName") == theirs.get("modelName").replace("UR10e", numbers.name)
        assert ET.tostring(mine.find("ModelStructure")) == ET.tostring(theirs.find("ModelStructure"))
        ours = [(v.get("name"), v.get("valueReference"), v[0].tag) for v in mine.find("ModelVariables")]
        assert ours == [(v.get("name"), v.get("valueReference"), v[0].tag) for v in theirs.find("ModelVariables")]
        for v in mine.find("ModelVariables"):
            if (start := v[0].get("start")) and v[0].tag == "Real":
                assert np.isfinite(float(start))


@pytest.mark.parametrize("kind", list(KINDS))
def test_fmutool_has_no_complaint(written, kind, caplog):
    checker = pytest.importorskip("fmu_manipulation_toolbox.checker", reason="needs fmu-manipulation-toolbox")
    from fmu_manipulation_toolbox.operations import FMU

    fmu = FMU(str(written[kind].path))
    with caplog.at_level(logging.INFO, logger="fmu_manipulation_toolbox"):
        for make in (checker.OperationGenericCheck, checker.OperationSemanticCheck):
            fmu.apply_operation(make())
    worse = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert worse == []
    assert any("compliant with FMI-2.0" in r.getMessage() for r in caplog.records)


@pytest.mark.parametrize("kind", list(KINDS))
def test_start_values_are_those_of_the_block(written, folder, kind):
    block = Block(written[kind], Path(folder))
    for v in root_of(written[kind]).find("ModelVariables"):
        start, reference = v[0].get("start"), int(v.get("valueReference"))
        if start is None:
            continue
        if v[0].tag == "Real":
            assert block.fmu.getReal([reference]) == [float(start)], v.get("name")
        elif v[0].tag == "Boolean":
            assert block.fmu.getBoolean([reference]) == [start == "true"]
        else:
            assert block.fmu.getInteger([reference]) == [int(start)]


@pytest.mark.parametrize("kind", list(KINDS))
def test_nothing_depends_on_what_is_not_named(written, folder, kind):
    """Every input and every parameter is changed: outputs that do not name it must keep their bits."""
    w = written[kind]
    structure = root_of(w).find("ModelStructure")
    first = {
        int(u.get("index")): set(map(int, u.get("dependencies").split())) for u in structure.find("InitialUnknowns")
    }
    outputs = w.table.with_causality("output", "local")
    rng = np.random.default_rng(5)

    def values(change=None) -> dict[int, bytes]:
        block = Block(w, Path(folder), begin=False)
        base = {p.group.key: np.array(p.group.start) for p in w.table.with_causality("input") if p.group.kind == "Real"}
        for key, value in base.items():
            shift = np.random.default_rng(len(key)).uniform(0.01, 0.02, value.size) if key not in ("IK_R",) else 0.0
            block.set(w.table[key].group.name, value + shift)
        if change is not None:
            g = change.group
            now = np.array(g.start, dtype=float)
            if g.kind == "Boolean":
                block.set(g.name, 1 - now)
            elif g.kind == "Integer":
                block.set(g.name, now + 1)
            elif g.name.endswith(".inertia"):  # still of a body
                block.set(g.name, now + np.resize([0.1, 0.1, 0.1, 1e-3, 1e-3, 1e-3], g.size))
            else:
                block.set(g.name, np.abs(now) + rng.uniform(0.01, 0.02, g.size) if g.low == 0.0 else now * 1.01 + 1e-3)
        block.fmu.setupExperiment(startTime=0.0)
        block.fmu.enterInitializationMode()
        found = {}
        for p in outputs:
            for i, value in enumerate(np.ravel(block.get(p.group.name))):
                found[p.index + i] = np.array(value).tobytes()
        block.close()
        return found

    before = values()
    for p in w.table.with_causality("input", "parameter"):
        after = values(p)
        named = range(p.index, p.index + p.group.size)
        for index, bits in after.items():
            if bits != before[index]:
                assert first[index] & set(named), (p.group.key, index)


def test_units_and_types_are_complete():
    for name, t in TYPES.items():
        assert t.unit in UNITS, name
        assert not t.display or t.display in [d for d, _ in UNITS[t.unit][1]]
    assert TYPES["Angle"].display == "deg"
    assert dict(UNITS["rad"][1])["deg"] == pytest.approx(57.29577951308232, abs=1e-13)


def test_names_of_the_command_line():
    commands = argparse.ArgumentParser().add_subparsers()
    command.add(commands)
    offered = next(a.choices for a in commands.choices["fmu"]._actions if a.dest == "kind")
    assert list(offered) == [*KINDS, "system", "catalogue", "check", "bench"]
    assert all(kind.summary in offered[name].description for name, kind in KINDS.items())


def test_what_the_file_says_about_itself(written):
    root = root_of(written["arm"])
    assert root.get("fmiVersion") == "2.0"
    assert root.get("license") == "Apache-2.0"
    assert "generationDateAndTime" not in root.attrib  # identical input, identical file
    for name in ("ModelExchange", "CoSimulation"):
        part = root.find(name)
        for word in ("canGetAndSetFMUstate", "canSerializeFMUstate", "providesDirectionalDerivative"):
            assert part.get(word) == "true"
        assert [f.get("name") for f in part.find("SourceFiles")] == ["fmu.c"]
    names = [v.get("name") for v in root.find("ModelVariables")]
    for name in ("q[1]", "qd[6]", "qdd[1]", "tau[1]", "position[3]", "R[1,1]", "quaternion[4]", "residual[1]"):
        assert name in names
    by_index = dict(enumerate(root.find("ModelVariables"), 1))
    for u in root.find("ModelStructure").find("Derivatives"):
        rate = by_index[int(u.get("index"))]
        state = by_index[int(rate[0].get("derivative"))]
        assert (rate.get("name").replace("qdd", "qd"), state.get("name")) in (
            (f"der({state.get('name')})", state.get("name")), (state.get("name"), state.get("name")),
        )  # fmt: skip
