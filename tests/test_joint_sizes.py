"""Drives by joint size: one table, what it fills, how far it may be off; and a controller's own motor calibration."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.apps.scenarios.build import build
from tangere.errors import InvalidValue, ModelFileError
from tangere.identification.prior import prior_drive, type_friction
from tangere.model.calibration import RATIO, read_motor_calibration
from tangere.model.joint_sizes import (
    SIZES,
    friction_spread,
    grades,
    size_of,
    typical_drives,
    typical_gain,
    unknown_joints,
)
from tangere.model.loading import load
from tangere.plants.sensors import SensorModel

UR = tuple(name for name in tangere.models() if name.startswith("ur"))
GUESSED = ("ur8long", "ur15", "ur18", "ur20", "ur30")  # nothing was found of their drives
SPEEDS = (-3.2, -1.5, -0.5, -0.01, 0.0, 0.01, 0.5, 1.5, 3.2)


def test_every_torque_limit_has_the_nearest_size() -> None:
    assert [size_of(torque)[0].name for torque in (9, 12, 28, 54, 56, 70, 107, 150, 204, 330, 433, 738)] == [
        "0", "0", "1", "2", "2", "2", "3", "3", "3", "4", "4", "4"
    ]  # fmt: skip
    for size in SIZES:
        for torque in size.torque:
            assert size_of(torque) == (size, 1.0)
    assert size_of(738.0)[1] == pytest.approx(738 / 330)
    assert typical_gain(math.inf) == 10.0


@pytest.mark.parametrize("name", UR)
def test_measured_arms_lie_within_the_spread_of_their_sizes(name: str) -> None:
    """The table is the middle of what is known: gains within 19 % (CB3), rotor inertia 30 %, dry friction 40 %."""
    model = load(name)
    if name in GUESSED:
        assert unknown_joints(model) == [1, 2, 3, 4, 5, 6]
        return
    assert unknown_joints(model) == []
    for i, joint in enumerate(model.joints):
        size, times = size_of(joint.tau_max)
        assert times == 1.0
        assert model.drives.gain[i] == pytest.approx(size.gain, rel=0.2)
        assert model.drives.rotor_inertia[i] == pytest.approx(size.rotor_inertia, rel=0.3)
        assert model.drives.coulomb[i] == pytest.approx(size.coulomb, rel=0.4)
        assert model.drives.viscous[i] == pytest.approx(size.viscous, rel=1.0)


def test_typical_drives_fill_only_what_is_missing() -> None:
    known, guessed = load("ur5e"), load("ur20")
    assert np.array_equal(typical_drives(known).drives.coulomb, known.drives.coulomb)
    filled = typical_drives(guessed).drives
    assert np.all(np.isfinite([filled.gain, filled.rotor_inertia, filled.coulomb, filled.viscous]))
    assert np.all(np.isnan(guessed.drives.coulomb))  # the arm's own data says what is known, no more
    assert filled.rotor_inertia[0] == pytest.approx(16.0, rel=0.1)  # the power law of the torque limits
    assert np.all(np.isnan(typical_drives(load("scara")).drives.coulomb))


def test_the_spread_follows_the_grade() -> None:
    assert friction_spread(load("ur5e")).tolist() == [0.25] * 6  # measured
    assert friction_spread(load("ur16e")).tolist() == [0.6] * 6  # carried over by size
    assert friction_spread(load("ur20")).tolist() == [0.8] * 6  # of no size that is known
    assert grades(load("ur10e"), "drives.gain") == ["approximated", *["measured"] * 4, "approximated"]
    assert grades(load("ur20"), "drives.gain") == [None] * 6


def test_what_was_seen_on_the_type_goes_before_its_data() -> None:
    """The touch pipeline keeps the terms that were fitted together, and trusts what was carried over less."""
    terms, share = type_friction(load("ur3e"))
    assert terms["coulomb"][0] == 3.57
    assert set(share) == {0.25}
    assert set(type_friction(load("ur5e"))[1]) == {0.5}  # at the factory only
    assert set(type_friction(load("ur10e"))[1]) == {0.25}
    assert set(type_friction(load("ur16e"))[1]) == {0.5}
    assert prior_drive(tangere.robot("ur5e")).coulomb.tolist() == load("ur5e").drives.coulomb.tolist()


def test_typical_sensors_follow_the_limits() -> None:
    ur10e = SensorModel.preset("ur10e", 1e-3)
    assert np.allclose(SensorModel.typical((330, 330, 150, 56, 56, 56), 1e-3).noise_tau, ur10e.noise_tau)
    seven = np.asarray(SensorModel.typical((100.0,) * 7, 0.01).noise_tau)
    assert seven.shape == (7,)
    assert np.allclose(seven, 0.64, atol=0.02)
    with pytest.raises(InvalidValue, match="torque limit"):
        SensorModel.typical((1.0, math.inf), 1e-3)


def test_typical_friction_in_a_run() -> None:
    built = build("hold", {"robot": "ur20", "friction": "typical", "sensors": "typical"})
    assert built.world.friction is not None
    assert built.world.friction.coulomb[0] == pytest.approx(16.8 * 738 / 330)
    assert built.world.true.rotor_inertia[0] > 10.0
    assert "joints 1, 2, 3, 4, 5, 6 of ur20 are not known: by joint size, perhaps 80 % off" in built.notes[0]
    known = build("hold", {"robot": "ur5e", "friction": "typical"})
    assert known.notes == ()
    with pytest.raises(InvalidValue, match="joint 1 of scara states no torque limit"):
        build("hold", {"robot": "scara", "friction": "typical"})
    with pytest.raises(InvalidValue, match="friction=typical"):
        build("hold", {"robot": "ur20", "friction": "full"})


def summary(constants: list[float], coulomb: float = 0.5, viscous: float = 0.3) -> str:
    """A controller's file, as one would write it: currents coulomb + viscous |v|."""
    lines = []
    for i, constant in enumerate(constants):
        lines += [f"**** Joint {i} : ", "  Calibration revision : v12.0.1"]
        lines += ["  K_tau    tau_avg  Stiction-  Stiction+  TauMax-  TauMax+  Avg. temp. "]
        lines += [f"  {constant:+.4f}   0.1  -0.05    +0.05  -0.18   0.17     +40.03", ""]
        lines += ["  Ang. vel.    U        I      Temp     Tau       Km "]
        for speed in SPEEDS:
            current = math.copysign(coulomb + viscous * abs(speed), speed) if speed else 0.0
            rest = "+45.00   -0.181   +0.072" if speed else " +0.00   +0.000     -nan"
            lines.append(f"    {speed:+.2f}   +23.862   {current:+.3f}  {rest}")
        lines += ["-" * 66, ""]
    return "\n".join(lines)


def test_a_controllers_motor_calibration_is_drive_data(tmp_path: Path) -> None:
    file = tmp_path / "robot_calibration_summary.txt"
    file.write_text(summary([0.1, 0.1, 0.1, 0.08, 0.08, 0.08]), newline="\r\n")
    model = load("ur5e", parameters=file)
    assert model.parameters == "robot_calibration_summary"
    assert np.allclose(model.drives.gain, np.multiply([0.1, 0.1, 0.1, 0.08, 0.08, 0.08], RATIO))
    assert np.allclose(model.drives.coulomb, 0.5 * model.drives.gain)
    assert np.allclose(model.drives.viscous, 0.3 * model.drives.gain)
    assert np.array_equal(model.drives.rotor_inertia, load("ur5e").drives.rotor_inertia)
    assert set(grades(model, "drives.coulomb")) == {"measured"}
    assert "45 C" in next(s.text for s in model.sources if s.group == "drives.viscous")
    told = {"robot": "ur5e", "parameters": str(file), "friction": "full"}
    law = build("hold", told).world.friction
    assert law is not None
    assert np.allclose(law.coulomb, model.drives.coulomb)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing", 'no line "\\*\\*\\*\\* Joint 0 :"'),
        (summary([0.1] * 3), "an arm with 3 joints, ur5e has 6"),
        (summary([0.1, 0.1, 0.1, 0.036, 0.036, 0.036]), "joint 3 has 3.64 Nm/A, where a ur5e has about 8.1"),
        (summary([0.1, 0.1, 0.1, 0.08, 0.08, 0.08]).replace("K_tau", "K_phi", 1), "joint 0: has no K_tau"),
        (summary([0.1, 0.1, 0.1, 0.08, 0.08, 0.08]).replace("Joint 1", "Joint 4"), "joint 4 stands where joint 1"),
        (summary([0.1, 0.1, 0.1, 0.08, 0.08, 0.08], viscous=-0.1), "less friction the faster it turns"),
        ("**** Joint 0 :\n  K_tau\n  0.1\n", "joint 0: friction needs currents at two speeds"),
    ],
)
def test_a_file_that_is_none_is_refused_with_the_reason(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "summary.txt"
    file.write_text(text)
    with pytest.raises(ModelFileError, match=words):
        load("ur5e", parameters=file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_motor_calibration(tmp_path / "none.txt")
