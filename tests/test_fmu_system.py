"""The SSP package: it validates, runs in fmpy, holds its posture and feels a push."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fmpy", reason="needs fmpy (tangere[test])")

from fmpy.ssp.simulation import simulate_ssp
from fmpy.ssp.ssd import read_ssd

import tangere
from tangere.apps.fmu.build import LINUX
from tangere.apps.fmu.package import WIRES, write_system
from tangere.cli.main import main
from tangere.errors import InvalidValue


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_system("ur10e", tmp_path_factory.mktemp("ssp") / "UR10e.ssp", platforms=(LINUX,))[0]


def test_valid(package: Path) -> None:
    """The schema of the standard; every connection begins and ends at a connector that is there."""
    description = read_ssd(str(package), validate=True)
    ends = {("", c.name): c.kind for c in description.system.connectors}
    for block in description.system.elements:
        ends |= {(block.name, c.name): c.kind for c in block.connectors}
    wires = description.system.connections
    assert len(wires) == 6 * (len(WIRES) - 2) + 2
    for wire in wires:
        source, target = (wire.startElement or "", wire.startConnector), (wire.endElement or "", wire.endConnector)
        assert ends[source] == ("input" if not source[0] else "output")
        assert ends[target] == ("output" if not target[0] else "input")


def test_same_bytes_twice(package: Path, tmp_path: Path) -> None:
    again = write_system("ur10e", tmp_path / "UR10e.ssp", platforms=(LINUX,))[0]
    assert again.read_bytes() == package.read_bytes()
    with zipfile.ZipFile(package) as archive:
        assert archive.namelist()[0] == "SystemStructure.ssd"


def test_a_constant_push_is_felt(package: Path) -> None:
    """10 Nm on joint 2 after 0.2 s: ten time constants of the observer later the residual is the push, within 1e-6."""
    pushed = {"tau_ext[2]": lambda t: 10.0 if t >= 0.2 else 0.0}
    result = simulate_ssp(str(package), stop_time=2.5, step_size=1e-3, input=pushed)
    before, after = result["time"] < 0.19, result["time"] > 2.4
    assert np.max(np.abs(result["residual[2]"][before])) < 1e-6
    assert np.max(np.abs(result["residual[2]"][after] - 10.0)) < 1e-6
    for j in (1, 3, 4, 5, 6):
        assert np.max(np.abs(result[f"residual[{j}]"][after])) < 1e-6
    assert result["contact"][after].all()
    assert np.all(result["contact_joint"][after] == 2)
    # kp = 100 / s2 of computed torque: M (kp e) balances the push, at the posture where the arm comes to rest
    q = np.array([result[f"q[{j}]"][-1] for j in range(1, 7)])
    push = tangere.robot("ur10e").mass_matrix(q) @ (100.0 * q)
    np.testing.assert_allclose(push, [0.0, 10.0, 0.0, 0.0, 0.0, 0.0], atol=1e-3)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmu", "system", "--robot", "ur5e", "--out", str(tmp_path / "mine.ssp")]) == 0
    assert "86 connections" in capsys.readouterr().out
    assert main(["fmu", "system", "--out", str(tmp_path / "mine.fmu")]) == 1
    assert "a system is written as *.ssp" in capsys.readouterr().err
    with pytest.raises(InvalidValue, match=r"\*\.ssp"):
        write_system("ur10e", tmp_path)
