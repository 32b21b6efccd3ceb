"""UR's factory calibration: the nominal file changes nothing, a real one moves joints and leaves bodies in place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import frames, pinocchio_model, relative_error

import tangere
from tangere.errors import InvalidValue, MissingExtra, ModelFileError
from tangere.model.loading import load

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed (extra calibration)")
UR = tuple(name for name in tangere.models() if name.startswith("ur"))
PARTS = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")
# A UR10e as it may leave the factory: a few tenths of a millimetre and of a milliradian off, in UR's own notation
# (the forearm's -pi, pi, pi is a turn by nearly nothing).
REAL = """
kinematics:
  shoulder: {x: 0, y: 0, z: 0.1809324, roll: -0, pitch: 0, yaw: 2.1e-05}
  upper_arm: {x: 0.0001873, y: 0, z: 0, roll: 1.5704471, pitch: 0, yaw: -4e-05}
  forearm: {x: -0.6130211, y: 0, z: 0, roll: 3.1392813, pitch: 3.1405187, yaw: 3.1415411}
  wrist_1: {x: -0.5709433, y: 0.0009417, z: 0.1742218, roll: 0.0054012, pitch: 0.0003355, yaw: 0.0001114}
  wrist_2: {x: 4.6612e-05, y: -0.1196931, z: 0.0001203, roll: 1.5697913, pitch: 0, yaw: -1.34e-05}
  wrist_3: {x: -0.0000871, y: 0.1166502, z: -9.1e-05, roll: 1.5715762, pitch: 3.1415926, yaw: -3.1413518}
  hash: calib_1234567890
"""


def proximal(text: str, q: Any) -> list[Any]:
    """Poses of the proximal link frames straight from the file: P_i = P_{i-1} [R(rpy), xyz] Rz(q_i)."""
    from scipy.spatial.transform import Rotation

    places, P, out = yaml.safe_load(text)["kinematics"], np.eye(4), []
    for part, angle in zip(PARTS, q, strict=True):
        place = {key: float(value) for key, value in places[part].items()}
        K, turn = np.eye(4), np.eye(4)
        K[:3, :3] = Rotation.from_euler("xyz", [place[k] for k in ("roll", "pitch", "yaw")]).as_matrix()
        K[:3, 3] = [place[k] for k in "xyz"]
        turn[:3, :3] = Rotation.from_euler("z", angle).as_matrix()
        P = P @ K @ turn
        out.append(P)
    return out


@pytest.fixture
def real(tmp_path: Path) -> Path:
    path = tmp_path / "calibration.yaml"
    path.write_text(REAL)
    return path


@pytest.mark.parametrize("arm", UR)
def test_nominal_calibration_changes_nothing(arm: str, data_dir: Path, rng: np.random.Generator) -> None:
    """UR's default file: the nominal model comes back, and the file's own chain agrees to 1e-9 (it prints pi/2 with
    nine digits, 2e-10 rad off at up to 1.8 m of arm)."""
    path = data_dir / "ur_description" / arm / "default_kinematics.yaml"
    model = load(arm, calibration=path)
    assert model.dh is not None
    for q in rng.uniform(-np.pi, np.pi, (20, 6)):
        assert relative_error(frames(model, q)[1][5], proximal(path.read_text(), q)[5]) < 1e-9


def test_real_calibration_is_the_files_chain(real: Path, rng: np.random.Generator) -> None:
    """The flange against the file's own chain, 1e-12 (thirty products); it lies 0.1 to 10 mm off the nominal."""
    model, nominal = load("ur10e", calibration=real), load("ur10e")
    assert model.dh is None
    moved = []
    for q in rng.uniform(-np.pi, np.pi, (50, 6)):
        flange = frames(model, q)[1][5]
        assert relative_error(flange, proximal(REAL, q)[5]) < 1e-12
        moved.append(np.linalg.norm((flange - frames(nominal, q)[1][5])[:3, 3]))
    assert 1e-4 < np.mean(moved) < 1e-2


def test_bodies_stay_with_their_links(real: Path, rng: np.random.Generator) -> None:
    """COMs in the proximal frames (where UR gives them) are the nominal ones, whatever the calibration."""
    nominal, model = load("ur10e"), load("ur10e", calibration=real)
    for q in rng.uniform(-np.pi, np.pi, (5, 6)):
        for i, link in enumerate(model.links):
            ours = np.linalg.inv(proximal(REAL, q)[i]) @ frames(model, q)[1][i]
            N = ours @ np.array([*link.com, 1.0])
            a, alpha = nominal.dh.a[i], nominal.dh.alpha[i]  # type: ignore[union-attr]
            c, s = np.cos(alpha), np.sin(alpha)
            x, y, z = link.com
            np.testing.assert_allclose(N[:3], (x + a, c * y - s * z, s * y + c * z), atol=1e-12)
    assert [k.mass for k in model.links] == [k.mass for k in nominal.links]


def test_dynamics_follow(real: Path, rng: np.random.Generator) -> None:
    """Gravity torques change by a little, not by nothing and not by much."""
    import pinocchio as pin

    (a, da), (b, db) = pinocchio_model(load("ur10e")), pinocchio_model(load("ur10e", calibration=real))
    q = rng.uniform(-np.pi, np.pi, 6)
    change = np.array(pin.computeGeneralizedGravity(a, da, q)) - np.array(pin.computeGeneralizedGravity(b, db, q))
    assert 1e-3 < np.max(np.abs(change)) < 1.0


def test_source_names_file_and_hash(real: Path) -> None:
    source = next(s for s in load("ur10e", calibration=real).sources if s.group == "kinematics")
    assert source.grade == "measured"
    assert "calibration.yaml, calib_1234567890" in source.text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  wrist_3:", "  wrist_4:", "kinematics.wrist_4 is unknown"),
        ("z: 0.1809324", "z: nan", "kinematics.shoulder.z must be a number|must be finite"),
        ("z: 0.1809324", "z: high", "kinematics.shoulder.z must be a number"),
        ("z: 0.1809324, ", "", "kinematics.shoulder.z is missing"),
        ("z: 0.1809324", "z: 0.15185", "another arm"),
        ("roll: 1.5704471", "roll: 1.2", "another arm"),
        ("kinematics:", "- kinematics:", "not valid YAML|must be a YAML mapping"),
        ("kinematics:", "kinematic:", "kinematic is unknown"),
        ("hash: calib_1234567890", "hash: !!python/object/apply:os.getcwd []", "not valid YAML"),
    ],
)
def test_bad_files(real: Path, old: str, new: str, message: str) -> None:
    assert old in REAL
    real.write_text(REAL.replace(old, new, 1))
    with pytest.raises(ModelFileError, match=rf"calibration\.yaml: (field )?.*({message})"):
        load("ur10e", calibration=real)


def test_calibration_of_another_arm_is_refused(data_dir: Path) -> None:
    """The pairs that are most alike are told apart."""
    for arm, other in (("ur3e", "ur3"), ("ur3", "ur3e"), ("ur5", "ur5e"), ("ur10", "ur10e"), ("ur10e", "ur16e")):
        with pytest.raises(ModelFileError, match="another arm"):
            load(arm, calibration=data_dir / "ur_description" / other / "default_kinematics.yaml")


def test_only_for_a_ur(real: Path) -> None:
    with pytest.raises(InvalidValue, match="scara is not one"):
        load("scara", calibration=real)


def test_missing_yaml_says_which_extra(real: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtra, match=r"tangere\[calibration\]"):
        load("ur10e", calibration=real)
