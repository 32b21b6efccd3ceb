"""The value that describes a serial arm: joints, links, limits, drives, and where each number comes from."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
JointKind = Literal["revolute", "prismatic"]
Grade = Literal["vendor", "measured", "approximated"]


T = TypeVar("T")


def frozen(value: T) -> T:
    """The same dataclass with its arrays made read-only, so that a Model cannot change behind its holder's back."""
    for entry in fields(value):  # type: ignore[arg-type]
        member = getattr(value, entry.name)
        if isinstance(member, np.ndarray):
            member.setflags(write=False)
    return value


@dataclass(frozen=True)
class Source:
    """Where a group of numbers comes from, and how far to trust it."""

    group: str  # what it covers: "kinematics", "mass", "inertia", "limits.tau_max", ...
    grade: Grade
    text: str  # document, article or data set, with version


@dataclass(frozen=True)
class Joint:
    """One joint: where it sits on the previous link, how it moves, where its own link frame is.

    With T_prev the frame of the previous link (the base for the first joint) the frame of this joint's link is

        T_base_link = T_prev @ T_parent_joint @ motion(q) @ T_joint_link

    where motion(q) turns about z (revolute, q in rad) or slides along z (prismatic, q in m).
    For standard DH, T_parent_joint is the identity and T_joint_link = Tz(d) Tx(a) Rx(alpha).
    """

    name: str
    kind: JointKind
    T_parent_joint: Array  # (4, 4)
    T_joint_link: Array  # (4, 4)
    q_min: float  # rad or m; -inf where the joint turns without end
    q_max: float
    qd_max: float  # rad/s or m/s; inf where unknown
    tau_max: float  # Nm or N; inf where unknown


@dataclass(frozen=True)
class Link:
    """A rigid body: mass [kg], centre of mass [m] and inertia about it [kg m2], in the link's own frame."""

    name: str
    mass: float
    com: Array  # (3,) in the link frame (DH: the distal frame)
    inertia: Array  # (3, 3) about the centre of mass, link-frame axes


@dataclass(frozen=True)
class Drives:
    """Drive data per joint; an entry is nan where it is not known (never invented).

    friction: torque opposing motion = coulomb * sign(qd) + viscous * qd (+ offset).
    """

    gain: Array  # (n,) Nm per A of motor current
    rotor_inertia: Array  # (n,) kg m2, reflected to the joint side
    coulomb: Array  # (n,) Nm
    viscous: Array  # (n,) Nm s/rad


@dataclass(frozen=True)
class DH:
    """Standard Denavit-Hartenberg parameters: A_i = Rz(q_i) Tz(d_i) Tx(a_i) Rx(alpha_i)."""

    a: Array  # (n,) m
    d: Array  # (n,) m
    alpha: Array  # (n,) rad


@dataclass(frozen=True)
class Payload:
    """A body fixed to the flange: mass [kg], centre of mass [m] and inertia about it [kg m2], flange axes."""

    mass: float
    com: Array = field(default_factory=lambda: np.zeros(3))  # (3,) in the flange frame
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))


@dataclass(frozen=True, repr=False)
class Model:
    """A serial arm as data. Links do not contain the payload; `payload` is added by whoever computes."""

    name: str  # "ur10e"
    title: str  # "Universal Robots UR10e"
    parameters: str  # name of the parameter set
    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    drives: Drives
    gravity: Array  # (3,) m/s2, base axes, (0, 0, -9.81) for a table mounting
    T_flange_tcp: Array  # (4, 4)
    payload: Payload | None
    dh: DH | None  # set if and only if the whole chain is standard DH
    sources: tuple[Source, ...]
    weight: float | None = None  # kg, of the whole arm with its base, as the maker states it; for checks only

    @property
    def dof(self) -> int:
        """Number of joints."""
        return len(self.joints)

    def __repr__(self) -> str:
        return f"Model({self.name!r}, parameters={self.parameters!r}, dof={self.dof})"
