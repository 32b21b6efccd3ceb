"""The model file: a parameter set that reads back bit by bit, with tables that others own."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere import Robot
from tangere.errors import InvalidValue, ModelFileError
from tangere.identification import IdentifiedModel, Motion, identify, prior_drive, read_model
from tangere.identification.findings import Finding
from tangere.identification.model import table
from tangere.model.model import Payload

N = 6


def _motion(robot: Robot, seed: int = 1, seconds: float = 6.0) -> Motion:
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 0.004)
    rate, phase = rng.uniform(0.5, 2.0, (3, N)), rng.uniform(0.0, 6.0, (3, N))
    angle = t[:, None, None] * rate + phase
    q = rng.uniform(-1.0, 1.0, N) + 0.3 * np.sin(angle).sum(axis=1)
    qd, qdd = 0.3 * (rate * np.cos(angle)).sum(axis=1), -0.3 * (rate**2 * np.sin(angle)).sum(axis=1)
    drive = prior_drive(robot)
    tau = robot.inverse_dynamics(q, qd, qdd) + drive.rotor_inertia * qdd
    tau += drive.friction(q, qd, robot.gravity_torque(q)) + 0.01 * rng.normal(size=q.shape)
    return Motion(t, q, qd, tau, "a log", f"{seed:064x}")


@pytest.fixture(scope="module")
def base() -> Robot:
    return tangere.robot("ur3e")


@pytest.fixture(scope="module")
def model(base: Robot) -> IdentifiedModel:
    return identify(base, [_motion(base)], gain=base.drives.gain)


DETECTION: dict[str, Any] = {
    "rate": 0.1, "joints": [1.5, 2.5, math.inf], "on": True, "text": 'with "quotes" and \n lines', "count": 3,
    "moving": {"level": [1.0, 2.0], "deep": {"x": -1e-300}}, "channels": [{"name": "a"}, {"name": "b", "y": [0.5]}],
    "empty": [], "a key": 1,
}  # fmt: skip


FOUND = (Finding("unmoved", 'says "so"', 3), Finding("other arm", "and more"))


def test_every_table_reads_back(model: IdentifiedModel, tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    tuned = dataclasses.replace(model, detection=DETECTION, findings=FOUND)
    tuned.write(file)
    back = read_model(file)
    assert back.detection == DETECTION
    assert back.findings == tuned.findings
    older = "\n".join(line for line in tuned.text().splitlines() if not line.startswith("finding_"))
    file.write_text(older)  # sentences alone: their kind is not known, and they are passed on
    assert read_model(file).findings == tuple(Finding("unknown", found.sentence) for found in FOUND)
    assert back.text() == tuned.text()  # every bit: numbers are written so that they read back the same
    for name in ("values", "covariance", "before", "after", "scale"):
        np.testing.assert_array_equal(getattr(back, name), getattr(tuned, name))
    for name in ("parameters", "told", "logs", "moved", "inertial", "unseen", "name"):
        assert getattr(back, name) == getattr(tuned, name)
    for entry in (one for one in dataclasses.fields(model.drive) if one.init):  # the others follow from these
        np.testing.assert_array_equal(getattr(back.drive, entry.name), getattr(model.drive, entry.name))
    assert back.excitation == model.excitation
    tangere.robot("ur3e", parameters=file)  # and it is still a parameter set


def test_the_file_is_for_people(model: IdentifiedModel) -> None:
    data = tomllib.loads(model.text())
    assert data["identified"]["parameters"]["joint 2 coulomb"][0] == model.drive.coulomb[1]
    assert data["identified"]["logs"] == [{"name": "a log", "sha256": f"{1:064x}"}]
    assert len(data["identified"]["covariance"]["rows"]) == int(np.sum(np.diag(model.covariance) > 0.0))
    assert max(len(line) for line in model.text().splitlines() if "coulomb" in line) < 200


def test_mounting_and_payload_travel_with_the_file(tmp_path: Path) -> None:
    load = Payload(1.5, np.array([0.0, 0.01, 0.06]))
    hung = tangere.robot("ur3e", gravity="ceiling", payload=load)
    file = tmp_path / "m.toml"
    identify(hung, [_motion(hung)], inertial="none").write(file)
    back = read_model(file)
    np.testing.assert_array_equal(back.gravity, [0.0, 0.0, 9.81])
    loaded = tangere.robot("ur3e", parameters=file, rotor_inertia=True)
    q = np.array([0.1, -1.0, 1.2, 0.3, 0.4, 0.5])
    np.testing.assert_allclose(loaded.gravity_torque(q), hung.gravity_torque(q), rtol=1e-12)
    np.testing.assert_allclose(back.robot(tangere.robot("ur3e")).gravity_torque(q), hung.gravity_torque(q), rtol=1e-12)


def test_a_model_is_of_one_arm(model: IdentifiedModel, tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    model.write(file)
    with pytest.raises(ModelFileError, match="identified on that arm"):
        tangere.robot("ur10e", parameters=file)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[identified]", "[other]", "unknown|no identified"),
        ("coulomb = [", "coulomb = [-1.0, ", "coulomb"),
        ("schema_version = 1", "schema_version = 2", "schema_version"),
        ("told = ", "tolled = ", "identified"),
        ("  [0.", "  [0.1, 0.", "lower triangle|cannot be read"),
    ],
)
def test_damaged_files_are_refused(model: IdentifiedModel, tmp_path: Path, old: str, new: str, words: str) -> None:
    file = tmp_path / "m.toml"
    text = model.text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(ModelFileError, match=words):
        read_model(file)


def test_what_toml_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidValue, match="model file holds"):
        table("x", {"y": object()})
    text = "\n".join(table("x", {"a": -math.inf, "b": math.nan, "c": np.float64(0.1), "d": np.arange(3)}))
    back = tomllib.loads(text)["x"]
    assert back["a"] == -math.inf
    assert math.isnan(back["b"])
    assert back["c"] == 0.1
    assert back["d"] == [0, 1, 2]
