"""A controller's own motor calibration, robot_calibration_summary.txt, read as drive data of that arm.

The file lies on every e-Series controller (in its folder .urcontrol). For each joint it holds the torque constant
K_tau [Nm/A] and the current [A] at some constant speeds [rad/s] in both directions, measured at the factory without
load. At the joint, with the gear ratio N,

    gain = N K_tau,    friction(v) = N K_tau |I(v)| = coulomb + viscous |v|   (least squares over all speeds)

Friction is what one arm had when warm; the true curve is concave, a line misses it by up to a fifth.
"""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import numpy as np

from tangere import foreign
from tangere.errors import ModelFileError
from tangere.model.joint_sizes import typical_drives
from tangere.model.model import Drives, Model, Source, frozen

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
    """The joints of a robot_calibration_summary.txt, in order; ModelFileError names the joint that is not whole."""
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
