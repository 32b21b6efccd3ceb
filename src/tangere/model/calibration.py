"""Factory calibration of a Universal Robots arm: UR's calibration.yaml laid over the nominal model."""

from __future__ import annotations

import dataclasses
import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from tangere.errors import InvalidValue, MissingExtra, ModelFileError
from tangere.model.assemble import dh_transform, frozen
from tangere.model.fields import Fields, read_text
from tangere.model.frames import inverse, rotation_rpy, transform
from tangere.model.model import Array, Joint, Model, Source

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
    if model.dh is None or model.dof != len(_PARTS):
        raise InvalidValue(f"calibration= needs a Universal Robots arm given by standard DH, {model.name} is not one")
    root = _read(Path(path))
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
    source = Source("kinematics", "measured", f"factory calibration, {Path(path).name}{_hash(kinematics)}")
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
    return transform(rotation_rpy(roll, pitch, yaw), (x, y, z))


def _hash(kinematics: Fields) -> str:
    return f", {kinematics.name('hash')}" if "hash" in kinematics else ""


def _read(path: Path) -> Fields:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise MissingExtra("reading a calibration needs PyYAML: pip install 'tangere[calibration]'") from None
    text = read_text(path)
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        raise ModelFileError(f"{path}: is not valid YAML: {problem}") from problem
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
