"""Factory calibration of a Universal Robots arm: UR's calibration.yaml laid over the nominal model."""

from __future__ import annotations

import dataclasses
import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from tangere import foreign
from tangere.errors import InvalidValue, MissingExtra, ModelFileError
from tangere.model.assemble import dh_transform
from tangere.model.fields import Fields, read_text
from tangere.model.frames import TURNS_MAX, inverse, rotation_rpy, rpy_from_rotation, transform
from tangere.model.model import Array, Joint, Model, Source, frozen

_PARTS = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")
# A chain this close to the nominal one is the nominal one: UR prints pi/2 with nine digits (off by 2e-10 rad) and
# leaves 2e-11 m of rounding; no calibration resolves a nanometre.
_NOMINAL = 1e-9
# A factory calibration moves a joint by a few millimetres and milliradians. Beyond these the file is that of another
# arm (the most similar pair, UR3 and UR3e, differs by 18.7 mm in d4), and the centres of mass would not fit.
_FAR_M, _FAR_RAD = 0.015, 0.1


def calibrated(model: Model, path: str | os.PathLike[str]) -> Model:
    """The model with the kinematics of a calibration file in place of the nominal ones.

    The file gives each proximal link frame in the previous one, K_i = [Rz(yaw) Ry(pitch) Rx(roll), xyz], so that
    P_i = P_{i-1} K_i Rz(q_i). Link i keeps its frame L_i = P_i N_i with the nominal N_i = Tx(a_i) Rx(alpha_i), hence

        L_i = L_{i-1} T_parent_joint Rz(q_i) T_joint_link,
        T_parent_joint = N_{i-1}^-1 K_i Tz(-d_i),   T_joint_link = Tz(d_i) N_i  (nominal DH)

    All that the calibration changes is in T_parent_joint, nearly the identity. Link frames stay as close to DH as a
    calibrated arm allows, and masses, centres of mass and inertias stay with their links (UR does not calibrate them).
    A chain that equals the nominal one within 1e-9 gives the nominal model back; otherwise `dh` is None, and
    closed-form IK no longer applies.

    Needs the extra `calibration` (PyYAML). Only for arms given by standard DH with UR's six joints.
    """
    return _calibrated(model, _read(Path(path)), Path(path).name)


def dh_frames(model: Model, theta: Array, a: Array, d: Array, alpha: Array) -> dict[str, dict[str, float]]:
    """A controller's own DH parameters (n,) [rad, m], nominal plus calibration, as the table of a calibration file.

    L_i = L_{i-1} Rz(q_i + theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i), hence
    K_i = Tx(a_{i-1}) Rx(alpha_{i-1}) Rz(theta_i) Tz(d_i).
    Axes 2, 3 and 4 are nearly parallel: there a calibration gives d of metres that cancel one another. A shift along an
    axis commutes with the turn about it, so what joints 2 and 3 have beyond the nominal d goes into the next frame.
    """
    if model.dh is None or model.dof != len(_PARTS):
        raise InvalidValue(f"a calibration needs a Universal Robots arm given by standard DH, {model.name} is not one")
    given = np.array([theta, a, d, alpha], dtype=np.float64)
    if given.shape != (4, model.dof) or not np.all(np.isfinite(given)):
        raise InvalidValue(f"theta, a, d, alpha: {model.dof} finite numbers each")
    if abs(given[1, -1] - model.dh.a[-1]) > _NOMINAL or abs(given[3, -1] - model.dh.alpha[-1]) > _NOMINAL:
        raise InvalidValue("a and alpha of the last joint: a calibration file has no place for them")
    table = {}
    before = nominal = np.eye(4)  # what stands between the axis before and this one
    for i, part in enumerate(_PARTS):
        K = before @ transform(rotation_rpy(0.0, 0.0, float(theta[i]), snap=False), (0.0, 0.0, float(d[i])))
        shift = 0.0
        if part in ("upper_arm", "forearm"):
            expected = (nominal @ transform(np.eye(3), (0.0, 0.0, float(model.dh.d[i]))))[:3, 3]
            shift = float(K[:3, 2] @ (K[:3, 3] - expected))
            K = K @ transform(np.eye(3), (0.0, 0.0, -shift))
        numbers = (*(float(v) for v in K[:3, 3]), *rpy_from_rotation(K[:3, :3]))
        table[part] = dict(zip(("x", "y", "z", "roll", "pitch", "yaw"), numbers, strict=True))
        link = transform(rotation_rpy(float(alpha[i]), 0.0, 0.0, snap=False), (float(a[i]), 0.0, 0.0))
        before = transform(np.eye(3), (0.0, 0.0, shift)) @ link
        nominal = transform(rotation_rpy(float(model.dh.alpha[i]), 0.0, 0.0), (float(model.dh.a[i]), 0.0, 0.0))
    return table


def calibrated_by(model: Model, table: dict[str, dict[str, float]], name: str) -> Model:
    """The model with the frames of `dh_frames`; name: where they come from, for the list of sources."""
    return _calibrated(model, Fields({"kinematics": table}, name), name)


def calibration_text(table: dict[str, dict[str, float]], checksum: str) -> str:
    """The text of a calibration file (YAML), readable by `calibrated` and by UR's ROS description."""
    lines = ["kinematics:"]
    for part, numbers in table.items():
        lines += [f"  {part}:", *(f"    {key}: {value!r}" for key, value in numbers.items())]
    return "\n".join([*lines, f"  hash: calib_{checksum}", ""])


def _calibrated(model: Model, root: Fields, name: str) -> Model:
    if model.dh is None or model.dof != len(_PARTS):
        raise InvalidValue(f"calibration= needs a Universal Robots arm given by standard DH, {model.name} is not one")
    root.only("kinematics")
    kinematics = root.table("kinematics")
    kinematics.only(*_PARTS, "hash")
    joints = []
    previous = np.eye(4)  # N_{i-1}
    for i, part in enumerate(_PARTS):
        alpha_deg = round(float(np.rad2deg(model.dh.alpha[i])), 9)  # back to the whole degrees of the model file
        N = dh_transform(float(model.dh.a[i]), 0.0, alpha_deg)
        back = transform(np.eye(3), (0.0, 0.0, -float(model.dh.d[i])))
        joints.append(_shifted(model.joints[i], inverse(previous) @ _frame(kinematics, part) @ back, kinematics, part))
        previous = N
    if all(np.max(np.abs(joint.T_parent_joint - np.eye(4))) < _NOMINAL for joint in joints):
        return model
    source = Source("kinematics", "measured", f"factory calibration, {name}{_hash(kinematics)}")
    sources = (*(entry for entry in model.sources if entry.group != "kinematics"), source)
    return dataclasses.replace(model, joints=tuple(joints), dh=None, sources=sources)


def _shifted(joint: Joint, T: Array, kinematics: Fields, part: str) -> Joint:
    """The joint with T in front of it, unless T is too far from the identity to be a calibration."""
    distance = float(np.linalg.norm(T[:3, 3]))
    angle = float(np.arccos(np.clip(0.5 * (np.trace(T[:3, :3]) - 1.0), -1.0, 1.0)))
    if distance > _FAR_M or angle > _FAR_RAD:
        raise kinematics.error(
            part,
            f"lies {1e3 * distance:.1f} mm and {angle:.3f} rad from the nominal {joint.name}; a calibration stays "
            f"within {1e3 * _FAR_M:.0f} mm and {_FAR_RAD} rad: is this the file of another arm?",
        )
    return frozen(dataclasses.replace(joint, T_parent_joint=T + 0.0))


def _frame(kinematics: Fields, part: str) -> Array:
    table = kinematics.table(part)
    table.only("x", "y", "z", "roll", "pitch", "yaw")
    x, y, z, roll, pitch, yaw = (table.number(key) for key in ("x", "y", "z", "roll", "pitch", "yaw"))
    if max(map(abs, (roll, pitch, yaw))) > TURNS_MAX:
        raise kinematics.error(part, f"has an angle beyond {TURNS_MAX:g} rad")
    return transform(rotation_rpy(roll, pitch, yaw), (x, y, z))


def _hash(kinematics: Fields) -> str:
    return f", {kinematics.name('hash')}" if "hash" in kinematics else ""


def _read(path: Path) -> Fields:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise MissingExtra("reading a calibration needs PyYAML: pip install 'tangere[calibration]'") from None
    text = read_text(path)
    data = foreign.yaml(text, path, yaml, ModelFileError)
    if not isinstance(data, dict):
        raise ModelFileError(f"{path}: must be a YAML mapping with the field kinematics, got {type(data).__name__}")
    return Fields(_plain(data), str(path))


def _plain(data: dict[Any, Any]) -> dict[str, Any]:
    """The mapping with text keys, and numbers like 4e-05, which YAML 1.1 reads as text, made numbers."""
    return {str(key): _plain(value) if isinstance(value, dict) else _value(key, value) for key, value in data.items()}


def _value(key: Any, value: Any) -> Any:
    if key == "hash" or not isinstance(value, str):
        return str(value) if key == "hash" else value
    try:
        return float(value)
    except ValueError:
        return value
