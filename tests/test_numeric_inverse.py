"""Inverse kinematics by iteration: calibrated URs keep their branches and their singular poses, other chains answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.kinematics.inverse_closed_form import wrapped

ROUND = 1e-12  # pose error that Newton's method is asked for
SAME = 1e-6  # rad: two solutions closer than this are one


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> tangere.Robot:
    """A UR10e whose frames are off by 0.3 mm and 0.3 mrad, as a factory calibration may say."""
    yaml = pytest.importorskip("yaml")
    rng = np.random.default_rng(3)
    places = {
        "shoulder": (0, 0, 0.1807, 0, 0, 0),
        "upper_arm": (0, 0, 0, np.pi / 2, 0, 0),
        "forearm": (-0.6127, 0, 0, 0, 0, 0),
        "wrist_1": (-0.57155, 0, 0.17415, 0, 0, 0),
        "wrist_2": (0, -0.11985, 0, np.pi / 2, 0, 0),
        "wrist_3": (0, 0.11655, 0, np.pi / 2, np.pi, np.pi),
    }
    names = ("x", "y", "z", "roll", "pitch", "yaw")
    data: dict[str, Any] = {
        part: {name: float(value + 3e-4 * rng.normal()) for name, value in zip(names, values, strict=True)}
        for part, values in places.items()
    }
    file: Path = tmp_path_factory.mktemp("calibration") / "calibration.yaml"
    file.write_text(yaml.safe_dump({"kinematics": {**data, "hash": "calib_1"}}))
    return tangere.robot("ur10e", calibration=file)


def gap(a: Any, b: Any) -> Any:
    return np.max(np.abs(wrapped(np.asarray(a) - b)), axis=-1)


@pytest.mark.parametrize("fixed", [{}, {4: 0.0}, {4: 0.01}, {2: 0.0}, {2: 0.01}, {4: np.pi}], ids=str)
def test_a_calibrated_arm_finds_the_source_again(calibrated: tangere.Robot, fixed: dict[int, float]) -> None:
    """Random poses, and those that are singular for the nominal arm; every solution reaches, none twice."""
    rng = np.random.default_rng(4)
    for q in rng.uniform(-np.pi, np.pi, (8, 6)):
        for joint, value in fixed.items():
            q[joint] = value
        T = calibrated.pose(q)
        answer: Any = calibrated.inverse_kinematics(T, q)
        assert np.min(gap(answer.q, q)) < SAME
        assert max(np.max(np.abs(calibrated.pose(x) - T)) for x in answer.q) < ROUND
        assert all(gap(answer.q[i], answer.q[j]) > SAME for i in range(len(answer)) for j in range(i))


def test_branches_of_a_calibrated_arm_are_those_of_its_twin(calibrated: tangere.Robot) -> None:
    """Far from singularities a calibration of tenths of a millimetre changes no branch: the same eight labels."""
    nominal = tangere.robot("ur10e")
    q = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
    mine: Any = calibrated.inverse_kinematics(calibrated.pose(q))
    theirs: Any = nominal.inverse_kinematics(nominal.pose(q))
    for word in ("shoulder", "elbow", "wrist"):
        assert getattr(mine, word) == getattr(theirs, word)
    assert np.max(gap(mine.q, theirs.q)) < 0.05


def test_a_calibrated_arm_says_by_how_much_it_misses(calibrated: tangere.Robot) -> None:
    T = np.eye(4)
    T[0, 3] = 5.0
    answer: Any = calibrated.inverse_kinematics(T)
    nominal: Any = tangere.robot("ur10e").inverse_kinematics(T)
    assert not answer
    assert answer.distance == pytest.approx(nominal.distance, abs=0.01)


def test_batches(calibrated: tangere.Robot) -> None:
    """Leading axes: every pose as by itself, each solution at the place of its branch."""
    q = np.random.default_rng(5).uniform(-2, 2, (2, 2, 6))
    T = calibrated.pose(q)
    many: Any = calibrated.inverse_kinematics(T, q)
    assert many.q.shape == (2, 2, 8, 6)
    for index in np.ndindex(2, 2):
        one: Any = calibrated.inverse_kinematics(T[index], q[index])
        assert many.count[index] == len(one)
        found = many.q[index][many.valid[index]]
        assert max(np.min(gap(found, x)) for x in one.q) < 1e-9
    scara = tangere.robot("scara")
    q4 = np.array([[0.2, 0.4, -0.3, -0.1], [0.1, -0.6, 0.5, -0.05]])  # the slide goes down from 0
    some: Any = scara.inverse_kinematics(scara.pose(q4), q4)
    assert some.count.tolist() == [1, 1]
    assert np.max(np.abs(some.q[:, 0] - q4)) < 1e-9


def test_other_chains_have_no_labels_and_wrapped_angles() -> None:
    arm = tangere.robot("pendulum")
    answer: Any = arm.inverse_kinematics(arm.pose([1.0]), [1.0 + 2 * np.pi])
    assert answer.q[0] == pytest.approx([1.0], abs=1e-9)
    assert (answer.shoulder, answer.elbow, answer.wrist) == (("",), ("",), ("",))
    crooked = arm.pose([1.0])
    crooked[0, 1] += 4e-6
    assert 1e-6 < arm.inverse_kinematics(crooked).correction < 1e-5
    far = arm.pose([1.0])
    far[:3, 3] *= 2.0
    assert not arm.inverse_kinematics(far)
    assert arm.inverse_kinematics(far).distance > 0.1
