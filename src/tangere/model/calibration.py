"""A controller's own numbers: calibration.yaml laid over the nominal model, and its motor calibration as drive data."""

from __future__ import annotations

import dataclasses
import importlib
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from tangere import foreign
from tangere.errors import InvalidValue, ModelFileError, extra
from tangere.model.assemble import dh_transform
from tangere.model.fields import Fields, read_text
from tangere.model.frames import TURNS_MAX, inverse, rotation_rpy, rpy_from_rotation, transform
from tangere.model.joint_sizes import typical_drives
from tangere.model.model import Array, Drives, Joint, Model, Source, frozen

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
    with extra("reading a calibration needs PyYAML: pip install 'tangere[calibration]'"):
        yaml = importlib.import_module("yaml")
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


# Gear ratio of all joints. UR does not print it; 101 is what is usually given, one paper has 100: 1 % of all numbers.
RATIO = 101.0
# Times the gain of the arm's joint, either way, beyond which the file is another arm's: sizes differ by 2 and more,
# arms of one type by 8 %.
PLAUSIBLE = 1.8
_JOINT = re.compile(r"^\**\s*Joint\s+(\d+)\s*:", re.IGNORECASE)
_COLUMNS = 6  # speed, voltage, current, temperature, torque, motor constant


@dataclasses.dataclass(frozen=True)
class MotorCalibration:
    """One joint: its torque constant, and the current that it needs at some speeds."""

    torque_constant: float  # Nm/A, motor side
    speed: tuple[float, ...]  # rad/s, at the joint
    current: tuple[float, ...]  # A
    temperature: float  # deg C, mean over the rows

    def friction(self, ratio: float = RATIO) -> tuple[float, float]:
        """Coulomb [Nm] and viscous [Nm s/rad] friction at the joint."""
        torque = ratio * self.torque_constant * np.abs(self.current)
        columns = np.column_stack([np.ones(len(self.speed)), np.abs(self.speed)])
        (coulomb, viscous), *_ = np.linalg.lstsq(columns, torque, rcond=None)
        return float(coulomb), float(viscous)


def read_motor_calibration(path: Path) -> tuple[MotorCalibration, ...]:
    """The joints of a robot_calibration_summary.txt, in order; ModelFileError names the joint that is not whole.

    The file lies on every e-Series controller (in its folder .urcontrol). For each joint it holds the torque constant
    K_tau [Nm/A] and the current [A] at some constant speeds [rad/s] in both directions, measured at the factory without
    load. At the joint, with the gear ratio N,

        gain = N K_tau,    friction(v) = N K_tau |I(v)| = coulomb + viscous |v|   (least squares over all speeds)

    Friction is what one arm had when warm; the true curve is concave, a line misses it by up to a fifth.
    """
    try:
        data = foreign.read_bytes(path, foreign.TEXT_MAX, ModelFileError)
    except ModelFileError as problem:
        cause = problem.__cause__
        if isinstance(cause, OSError):
            raise ModelFileError(f"{path}: cannot be read: {cause.strerror}") from None
        raise
    lines = data.decode("utf-8", errors="replace").splitlines()
    blocks: list[list[str]] = []
    for line in lines:
        if found := _JOINT.match(line.strip()):
            if int(found[1]) != len(blocks):
                raise ModelFileError(f"{path}: joint {found[1]} stands where joint {len(blocks)} should (from 0)")
            blocks.append([])
        elif blocks:
            blocks[-1].append(line)
    if not blocks:
        raise ModelFileError(f'{path}: no motor calibration of a UR controller, it has no line "**** Joint 0 :"')
    return tuple(_joint(block, f"{path}: joint {i}") for i, block in enumerate(blocks))


def _numbers(line: str) -> list[float]:
    """The numbers of a line that holds nothing else, else none."""
    try:
        return [float(word) for word in line.split()]
    except ValueError:
        return []


def _joint(lines: list[str], where: str) -> MotorCalibration:
    heads = [i for i, line in enumerate(lines) if line.split()[:1] == ["K_tau"]]
    if not heads or heads[0] + 1 >= len(lines) or not (row := _numbers(lines[heads[0] + 1])):
        raise ModelFileError(f"{where}: has no K_tau")
    if not 0.0 < row[0] < math.inf:
        raise ModelFileError(f"{where}: K_tau must be positive, got {row[0]:g}")
    rows = [values for line in lines[heads[0] + 2 :] if len(values := _numbers(line)) == _COLUMNS]
    moving = [values for values in rows if values[0] != 0.0 and math.isfinite(values[0]) and math.isfinite(values[2])]
    if len({abs(values[0]) for values in moving}) < 2:
        raise ModelFileError(f"{where}: friction needs currents at two speeds at least, got {len(moving)} rows")
    speed, current = (tuple(values[k] for values in moving) for k in (0, 2))
    return MotorCalibration(row[0], speed, current, float(np.mean([values[3] for values in moving])))


def with_motor_calibration(model: Model, path: Path) -> Model:
    """The model with gains and friction of the arm whose controller wrote the file; rotor inertia stays as it was."""
    joints = read_motor_calibration(path)
    if len(joints) != model.dof:
        raise ModelFileError(f"{path}: is of an arm with {len(joints)} joints, {model.name} has {model.dof}")
    gain = np.array([RATIO * joint.torque_constant for joint in joints])
    expected = typical_drives(model).drives.gain
    for i in range(model.dof):
        if math.isfinite(expected[i]) and not 1.0 / PLAUSIBLE < gain[i] / expected[i] < PLAUSIBLE:
            raise ModelFileError(
                f"{path}: joint {i} has {gain[i]:.3g} Nm/A, where a {model.name} has about {expected[i]:.3g}: "
                "the file of another arm?"
            )
    friction = np.array([joint.friction() for joint in joints])
    for i, (coulomb, viscous) in enumerate(friction.tolist()):
        if coulomb < 0.0 or viscous < 0.0:
            raise ModelFileError(
                f"{path}: joint {i} would have less friction the faster it turns, or less than none at rest "
                f"({coulomb:.3g} Nm, {viscous:.3g} Nm s/rad)"
            )
    drives = Drives(gain, np.array(model.drives.rotor_inertia), friction[:, 0].copy(), friction[:, 1].copy())
    fastest = max(abs(v) for joint in joints for v in joint.speed)
    warm = np.mean([joint.temperature for joint in joints])
    text = f"{path.name}, motor calibration of this arm's controller; gear ratio {RATIO:g} assumed"
    line = f"{text}; a line through friction up to {fastest:g} rad/s, motor at {warm:.0f} C, no load"
    own = {"drives.gain": text, "drives.coulomb": line, "drives.viscous": line}
    kept = [source for source in model.sources if source.group.split(" (")[0] not in own]
    if any(source.group == "drives" for source in kept):  # one that covers all of them now covers the rotor inertia
        kept = [dataclasses.replace(s, group="drives.rotor_inertia") if s.group == "drives" else s for s in kept]
    sources = (*kept, *(Source(group, "measured", words) for group, words in own.items()))
    return dataclasses.replace(model, drives=frozen(drives), sources=sources, parameters=path.stem)
