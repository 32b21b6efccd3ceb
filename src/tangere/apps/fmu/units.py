"""Units and types that the variables of all FMUs share, as FMI 2.0 wants them: SI exponents, display units."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tangere.apps.fmu.variables import Group

# unit: SI exponents of FMI's BaseUnit, and display units (name, factor: display = factor * value)
UNITS: dict[str, tuple[dict[str, int], tuple[tuple[str, float], ...]]] = {
    "1": ({}, ()),
    "s": ({"s": 1}, (("ms", 1e3),)),
    "rad": ({"rad": 1}, (("deg", 180.0 / math.pi),)),
    "rad/s": ({"rad": 1, "s": -1}, (("deg/s", 180.0 / math.pi),)),
    "rad/s2": ({"rad": 1, "s": -2}, (("deg/s2", 180.0 / math.pi),)),
    "m": ({"m": 1}, (("mm", 1e3),)),
    "m/s2": ({"m": 1, "s": -2}, ()),
    "kg": ({"kg": 1}, ()),
    "kg.m2": ({"kg": 1, "m": 2}, ()),
    "N": ({"kg": 1, "m": 1, "s": -2}, ()),
    "N.m": ({"kg": 1, "m": 2, "s": -2}, ()),
    "N.m.s/rad": ({"kg": 1, "m": 2, "s": -1, "rad": -1}, ()),
    "J": ({"kg": 1, "m": 2, "s": -2}, ()),
    "1/s": ({"s": -1}, ()),
    "1/s2": ({"s": -2}, ()),
}


@dataclass(frozen=True)
class RealType:
    """A named kind of quantity."""

    unit: str
    text: str
    display: str = ""
    quantity: str = ""


@dataclass(frozen=True)
class Choice:
    """A choice: names with what they mean, counted from 1.

    An Integer in the file, not an Enumeration: masters that know no enumerations (libcosim) can still set it.
    """

    text: str
    items: tuple[tuple[str, str], ...] = field(default_factory=tuple)

    @property
    def meaning(self) -> str:
        """All of them as one sentence."""
        return "; ".join(f"{i} {name}: {text}" for i, (name, text) in enumerate(self.items, 1))


TYPES: dict[str, RealType] = {
    "Duration": RealType("s", "Length of time", "ms", "Time"),
    "Angle": RealType("rad", "Joint position or angle", "deg", "Angle"),
    "RotationVector": RealType("rad", "Component of axis times angle", "deg", "Angle"),
    "AngularVelocity": RealType("rad/s", "Joint velocity", "deg/s", "AngularVelocity"),
    "AngularAcceleration": RealType("rad/s2", "Joint acceleration", "deg/s2", "AngularAcceleration"),
    "Position": RealType("m", "Coordinate of a point", quantity="Length"),
    "Length": RealType("m", "Length of the arm", "mm", "Length"),
    "Acceleration": RealType("m/s2", "Linear acceleration", quantity="Acceleration"),
    "Mass": RealType("kg", "Mass", quantity="Mass"),
    "Inertia": RealType("kg.m2", "Moment or product of inertia", quantity="MomentOfInertia"),
    "Force": RealType("N", "Force", quantity="Force"),
    "Torque": RealType("N.m", "Joint torque or moment", quantity="Torque"),
    "Damping": RealType("N.m.s/rad", "Viscous friction", quantity="RotationalDampingConstant"),
    "Energy": RealType("J", "Energy", quantity="Energy"),
    "Rate": RealType("1/s", "Inverse of a time constant"),
    "SquaredRate": RealType("1/s2", "Gain from position to acceleration"),
    "Cosine": RealType("1", "Entry of a rotation matrix or of a quaternion"),
}

CHOICES: dict[str, Choice] = {
    "QuaternionSign": Choice(
        "Which of q and -q is put out",
        (
            ("continuous", "the one nearer to the quaternion of the step before"),
            ("canonical", "the one whose first nonzero component is positive"),
        ),
    ),
    "Orientation": Choice(
        "Which input carries the orientation",
        (("matrix", "R"), ("quaternion", "quaternion (w, x, y, z)"), ("ypr", "yaw, pitch, roll")),
    ),
    "Selection": Choice(
        "How one of the solutions is chosen",
        (("nearest", "nearest to the solution of the step before"), ("branch", "the branch that the parameter names")),
    ),
}


def units_of(group: Group) -> str:
    """Units of a group for people: "N, N.m" where its rows differ, "" for what has none."""
    declared = (group.declared,) if isinstance(group.declared, str) else group.declared
    units = dict.fromkeys(TYPES[name].unit for name in declared if name in TYPES)
    return ", ".join(units) if group.kind == "Real" else ""
