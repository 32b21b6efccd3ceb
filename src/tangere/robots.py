"""The robot: a model with its kernels."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.kernels.backend import COMPILED, Arm, say_once
from tangere.kernels.traced import TracedKernels
from tangere.kinematics.checks import checked
from tangere.model.loading import load
from tangere.model.model import Array, Drives, Model, Payload


class Robot(Arm):
    """A serial arm that computes: kinematics, inverse kinematics and dynamics of its model.

        M(q) qdd + C(q, qd) qd + g(q) = tau + tau_ext

    All methods take one state or any leading batch axes, as arrays or lists. The rigid body only: friction and motor
    currents are in `drives`; rotor inertia is in M if and only if the robot was made with it. Made by tangere.robot().
    """

    __slots__ = ("__weakref__", "_nominal", "model", "q_max", "q_min", "qd_max", "revolute", "rotor_inertia", "tau_max")

    model: Model
    q_min: Array  # (n,) rad or m
    q_max: Array
    qd_max: Array  # (n,) rad/s or m/s
    tau_max: Array  # (n,) Nm or N
    rotor_inertia: Array  # (n,) kg m2, what is on the diagonal of M beyond the links
    revolute: NDArray[np.bool_]  # (n,)

    def __init__(self, model: Model, rotor_inertia: bool | ArrayLike = False, nominal: Model | None = None) -> None:
        rotor = _rotor(model, rotor_inertia)
        traced = None
        if COMPILED and ur.is_ur(model):
            super().__init__(ur.parameters_of(model, rotor_inertia=rotor))
        else:
            say_once()
            traced = TracedKernels(model, rotor_inertia=rotor, nominal=nominal)
            super().__init__(None, traced)
        self.model = model
        self._nominal = nominal
        self.rotor_inertia = rotor
        self.q_min = np.array([j.q_min for j in model.joints])
        self.q_max = np.array([j.q_max for j in model.joints])
        self.qd_max = np.array([j.qd_max for j in model.joints])
        self.tau_max = np.array([j.tau_max for j in model.joints])
        self.revolute = np.array([j.kind == "revolute" for j in model.joints])
        for array in (rotor, self.q_min, self.q_max, self.qd_max, self.tau_max, self.revolute):
            array.flags.writeable = False
        if traced is not None:
            traced.robot = weakref.ref(self)  # no cycle: the kernels live as long as the robot

    @property
    def name(self) -> str:
        """Name of the arm, as tangere.robot() takes it."""
        return self.model.name

    @property
    def dof(self) -> int:
        """Number of joints."""
        return self.model.dof

    @property
    def drives(self) -> Drives:
        """Gains, rotor inertia and friction of the joints; nan where not known."""
        return self.model.drives

    def __repr__(self) -> str:
        return f"Robot({self.model.name!r}, parameters={self.model.parameters!r}, dof={self.dof})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Robot, (self.model, self.rotor_inertia, self._nominal))


def _rotor(model: Model, rotor_inertia: bool | ArrayLike) -> Array:
    if rotor_inertia is False:
        return np.zeros(model.dof)
    if rotor_inertia is True:
        values = np.array(model.drives.rotor_inertia, dtype=np.float64)
        if not np.all(np.isfinite(values)):
            raise InvalidValue(
                f"the rotor inertia of {model.name} is not known for every joint ({values}): "
                f"pass rotor_inertia=[...] with {model.dof} numbers in kg m2"
            )
        return values
    values = np.array(checked(rotor_inertia, (model.dof,), "rotor_inertia"))
    if values.ndim != 1 or np.any(values < 0.0):
        raise InvalidValue(f"rotor_inertia must be {model.dof} numbers >= 0 in kg m2, got {rotor_inertia!r}")
    return values


def robot(
    name_or_path: str | os.PathLike[str],
    *,
    payload: Payload | float | Sequence[Any] | None = None,
    tool: Sequence[float] | Array | None = None,
    gravity: str | Sequence[float] | Array | None = None,
    parameters: str | os.PathLike[str] | None = None,
    rotor_inertia: bool | ArrayLike = False,
    calibration: str | os.PathLike[str] | None = None,
    tip: str | None = None,
) -> Robot:
    """The robot of that name (tangere.models() lists them) or of that file (.toml, .urdf).

    payload: mass [kg], (mass, com) or (mass, com, inertia about the com), in flange axes.
    tool: T_flange_tcp as 4x4, as x y z rx ry rz (UR's TCP form) or as x y z.
    gravity: vector in base axes [m/s2], or "table", "wall", "ceiling".
    parameters: another set of numbers for the arm, by name or as a model file.
    rotor_inertia: True adds the drives' reflected rotor inertia to M; six numbers [kg m2] add those.
    calibration: the arm's own UR calibration.yaml. tip: last link of a URDF with branches.
    """
    options: dict[str, Any] = {
        "payload": payload, "tool": tool, "gravity": gravity, "parameters": parameters, "tip": tip
    }  # fmt: skip
    model = load(name_or_path, calibration=calibration, **options)
    nominal = None
    if calibration is not None:
        uncalibrated = load(name_or_path, **options)
        nominal = uncalibrated if ur.is_ur(uncalibrated) else None
    return Robot(model, rotor_inertia, nominal)
