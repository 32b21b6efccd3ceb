"""Drives by the size of a joint: what is known of UR's joints, and what may be assumed where nothing was measured.

UR builds its arms from a few sizes of joint, told apart by their torque limits. Figures of one size agree between arms,
so that they may be carried over, with the spread that is given here. Where they come from: docs/conventions.md.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from tangere.model.model import Drives, Grade, Model, frozen

KEYS = ("gain", "rotor_inertia", "coulomb", "viscous")
# Exponent of the torque limit that rotor inertia follows from size to size (1.1 to 1.6 between neighbours); friction
# grows about in proportion. Used beside the sizes that are known.
ROTOR_POWER = 1.3
WITHIN = 1.05  # times a size's torque limits within which a joint is of that size
# Share of itself that a number carried over to another arm may be off, one standard deviation.
SPREAD = {"gain": 0.08, "rotor_inertia": 0.12, "coulomb": 0.35, "viscous": 0.6}
SMALL_ROTOR = 0.3  # the same for the rotor inertia of size 1, 0.16 to 0.21 kg m2
GUESSED = 0.8  # the same for a joint that is of none of the sizes: within a factor of two or so
MEASURED = 0.25  # friction of one arm of the type: single gears differ by a fifth, grease by more from cold to warm
UNLIMITED_GAIN = 10.0  # [Nm/A] about the mean of those known, for a joint that states no torque limit


@dataclass(frozen=True)
class JointSize:
    """A size of UR's joints: the middle of what is known of e-Series arms."""

    name: str
    torque: tuple[float, float]  # Nm, limits of the arms that have it
    gain: float  # Nm per A of motor current
    rotor_inertia: float  # kg m2 at the joint
    coulomb: float  # Nm
    viscous: float  # Nm s/rad, up to 1 rad/s on sizes 3 and 4; over 3 rad/s it is half of that


SIZES = (
    JointSize("0", (9.0, 12.0), 3.7, 0.07, 0.9, 1.0),
    JointSize("1", (28.0, 28.0), 8.0, 0.21, 1.7, 0.9),
    JointSize("2", (54.0, 56.0), 10.8, 0.59, 3.2, 3.0),
    JointSize("3", (150.0, 150.0), 10.0, 1.9, 7.2, 5.0),
    JointSize("4", (330.0, 330.0), 12.0, 6.0, 16.8, 20.0),
)


def size_of(torque: float) -> tuple[JointSize, float]:
    """The size nearest to a torque limit [Nm] by ratio, and how many times its limit that is; 1.0: it is that size."""

    def times(size: JointSize) -> float:
        low, high = size.torque
        return torque / high if torque > high * WITHIN else torque / low if torque < low / WITHIN else 1.0

    nearest = min(SIZES, key=lambda size: abs(math.log(times(size))))
    return nearest, times(nearest)


def typical_gain(torque: float) -> float:
    """Gain [Nm/A] of a joint with that torque limit."""
    return size_of(torque)[0].gain if math.isfinite(torque) else UNLIMITED_GAIN


def unknown_joints(model: Model, *keys: str) -> list[int]:
    """Numbers, from 1, of the joints whose drives miss one of these quantities (all of them where none is named)."""
    values = [getattr(model.drives, key) for key in keys or KEYS]
    return [i + 1 for i in range(model.dof) if not all(np.isfinite(value[i]) for value in values)]


def typical_drives(model: Model) -> Model:
    """The model with typical drives by joint size wherever its data has none; nan where a joint has no size.

    No size: a prismatic joint, and one without a torque limit.
    """
    filled = {key: np.array(getattr(model.drives, key)) for key in KEYS}
    for i, joint in enumerate(model.joints):
        if joint.kind != "revolute" or not math.isfinite(joint.tau_max):
            continue
        size, times = size_of(joint.tau_max)
        factor = {"gain": 1.0, "rotor_inertia": times**ROTOR_POWER, "coulomb": times, "viscous": times}
        for key, values in filled.items():
            if math.isnan(values[i]):
                values[i] = getattr(size, key) * factor[key]
    return dataclasses.replace(model, drives=frozen(Drives(**filled)))


def friction_spread(model: Model) -> np.ndarray:
    """Share (n,) of itself that the friction of typical_drives may be off, one standard deviation.

    25 % where it was measured on the type, 60 % where it is carried over by size (of the viscous part; dry friction
    35 %), 80 % where the joint is of no size that is known.
    """
    given = grades(model, "drives.coulomb")
    share = np.empty(model.dof)
    for i, joint in enumerate(model.joints):
        known = math.isfinite(model.drives.coulomb[i])
        if known and given[i] != "approximated":
            share[i] = MEASURED
        elif known or (math.isfinite(joint.tau_max) and size_of(joint.tau_max)[1] == 1.0):
            share[i] = SPREAD["viscous"]
        else:
            share[i] = GUESSED
    return share


def grades(model: Model, group: str) -> list[Grade | None]:
    """Grade of a group of numbers ("drives.coulomb"), joint by joint; None where no source names it."""
    found: list[Grade | None] = [None] * model.dof
    for source in model.sources:
        named, _, listed = source.group.partition(" (joints ")
        if group != named and not group.startswith(named + "."):
            continue
        some = [int(word) - 1 for word in listed.rstrip(")").split(", ")] if listed else range(model.dof)
        for i in some:
            if 0 <= i < model.dof:
                found[i] = source.grade
    return found
