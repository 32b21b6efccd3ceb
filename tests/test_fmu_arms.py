"""Blocks of arms that are no UR: teaching arms, URDFs, calibrated URs; answers of the library, both versions alike."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fmi3_host import OK, Host3
from fmpy.validation import validate_fmu
from fmu_block import Block
from foreign_arms import ARMS, written

import tangere
from tangere.apps.fmu import KINDS, write_fmu
from tangere.apps.fmu.build import LINUX
from tangere.apps.fmu.check import check_fmu
from tangere.cli.main import main
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.model.calibration import calibrated_by, dh_frames
from tangere.robots import Robot

SOAK = bool(os.environ.get("TANGERE_SOAK"))
SERIAL = [name for name, kind in KINDS.items() if not kind.closed]
# every arm with one kind, every kind with one arm; the long form has all of both
SHORT = {
    "pendulum": "dynamics", "planar3r": "observer", "scara": "arm", "seven": "fk", "sorter": "controller",
    "six": "inverse-dynamics",
}  # fmt: skip
CASES = [(name, kind) for name in SHORT for kind in SERIAL] if SOAK else list(SHORT.items())
LONG = [(name, kind) for name in ("scara", "seven") for kind in SERIAL]
BOTH = LONG if SOAK else [("scara", "fk"), ("scara", "arm"), ("seven", "dynamics")]


def robot_of(name: str, folder: Path, **options: object) -> Robot:
    if name in ARMS:
        written(folder, name)
        return tangere.robot(folder / f"{name}.urdf", **options)
    return tangere.robot(name, **options)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_answers_are_the_librarys(name: str, kind: str, tmp_path: Path) -> None:
    """Tool, payload, wall mounting, rotor inertia and friction are in the numbers."""
    plain = robot_of(name, tmp_path, payload=(0.3, (0.01, 0.02, 0.03)), tool=[0.01, 0.02, 0.1, 0.3, 0.1, 0.2],
                     gravity="wall")  # fmt: skip
    n = plain.dof
    arm = Robot(plain.model, np.linspace(0.01, 0.05, n))
    friction = JointFriction(np.linspace(0.2, 0.4, n), np.linspace(0.5, 0.1, n))
    found = check_fmu(write_fmu(kind, arm, tmp_path, friction=friction, platforms=(LINUX,)).path, quick=True)
    assert [f for f in found if f.outcome == "bad"] == []
    assert [f.outcome for f in found if f.part == "answers"] == ["good"]


@pytest.mark.parametrize(("name", "kind"), BOTH)
def test_both_versions_are_valid_and_alike(name: str, kind: str, tmp_path: Path, rng: np.random.Generator) -> None:
    arm = robot_of(name, tmp_path)
    two, three = (write_fmu(kind, arm, tmp_path / f"{f}.fmu", platforms=(LINUX,), fmi=f) for f in (2, 3))
    assert validate_fmu(str(two.path)) == []
    assert validate_fmu(str(three.path)) == []
    old, new = Block(two, tmp_path / "2"), Host3(three.path, tmp_path / "3").begin()
    by_name = {p.group.name: p for p in two.table}
    for k in range(3):
        for known in new.names("input"):
            at = new.reference(known)
            values = np.array(old.fmu.getReal(range(at, at + new.size(known)))) + rng.normal(0.0, 0.01, new.size(known))
            old.fmu.setReal(list(range(at, at + len(values))), values.tolist())
            assert new.set(known, values) == OK
        old.step()
        assert new.step(1e-3 * k, 1e-3)[0] == OK
        for told in new.names("output"):
            at = new.reference(told)
            assert new.get(told).tobytes() == np.array(old.fmu.getReal(range(at, at + new.size(told)))).tobytes(), told
    if kind == "fk" and name == "scara":
        # three joints turn and one slides: two variables, each of one unit
        assert {"q.angle", "q.position"} <= set(new.variables)
        assert by_name["q"].group.shape == (4,)
    old.close()
    new.close()


def measured(nominal: Robot, rng: np.random.Generator) -> Robot:
    """The arm as a controller would have calibrated it: every DH number off by some 0.1 mm and 0.1 mrad."""
    off = rng.normal(0.0, 1e-4, (4, 6))
    off[[1, 3], 5] = 0.0  # a calibration file has no place for them
    dh = nominal.model.dh
    assert dh is not None
    table = dh_frames(nominal.model, off[0], dh.a + off[1], dh.d + off[2], dh.alpha + off[3])
    return Robot(calibrated_by(nominal.model, table, "measured"), nominal=nominal.model)


def test_a_calibrated_arm(tmp_path: Path, rng: np.random.Generator) -> None:
    nominal = tangere.robot("ur5e")
    arm = measured(nominal, rng)
    block = Block(write_fmu("fk", arm, tmp_path, platforms=(LINUX,)), tmp_path)
    q = rng.uniform(-3.0, 3.0, 6)
    block.set("q", q)
    assert np.abs(block.get("R") - arm.pose(q)[:3, :3]).max() < 1e-12
    assert np.abs(block.get("position") - arm.pose(q)[:3, 3]).max() < 1e-12
    assert np.abs(block.get("position") - nominal.pose(q)[:3, 3]).max() > 1e-5  # it is not the nominal arm
    block.close()


def test_arms_with_the_same_joints_share_a_binary(tmp_path: Path, rng: np.random.Generator) -> None:
    made = []
    for arm in (measured(tangere.robot("ur3e"), rng), robot_of("six", tmp_path)):
        with zipfile.ZipFile(write_fmu("fk", arm, tmp_path, platforms=(LINUX,)).path) as archive:
            made.append(next(archive.read(n) for n in archive.namelist() if n.startswith("binaries/")))
    assert made[0] == made[1]


@pytest.mark.parametrize("kind", ["ik", "all"])
def test_what_needs_the_closed_form_says_so(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidValue, match=r"closed form .* which scara has not; fk, dynamics"):
        write_fmu(kind, "scara", tmp_path)
    assert main(["fmu", kind, "--robot", "scara", "--out", str(tmp_path / "x.fmu")]) == 1
    assert "closed form" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_where_it_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Degrees, and metres for the joint that slides; limits in the unit that was typed."""
    out = str(tmp_path / "x.fmu")
    assert main(["fmu", "dynamics", "--robot", "scara", "--start", "10,20,30,-0.1", "--out", out]) == 0
    block = Block(write_fmu("dynamics", "scara", tmp_path, q_start=np.radians([10, 20, 30, 0]) + [0, 0, 0, -0.1]),
                  tmp_path)  # fmt: skip
    assert np.allclose(block.get("q"), [*np.radians([10, 20, 30]), -0.1])
    block.close()
    capsys.readouterr()
    for start, words in (("10,20,30,-5", "joint 4 of scara at -5 m is outside its limits, -0.2 to 0 m"),
                         ("10,20,30", "start: 4 numbers, in degrees (joint 4: metres), for scara, got 3")):  # fmt: skip
        assert main(["fmu", "dynamics", "--robot", "scara", f"--start={start}", "--out", out]) == 1
        assert words in capsys.readouterr().err
