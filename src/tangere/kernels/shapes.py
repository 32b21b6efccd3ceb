"""Arguments of the kernels: arrays of real numbers with leading batch axes, checked with errors of our own."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import checked
from tangere.kinematics.rotation import pose_from_ur, ur_from_pose
from tangere.model.model import Array

if TYPE_CHECKING:
    from tangere.robots import Robot

# [rad] twice the two turns of a UR's joint: beyond it an angle is looked at twice (TG_FAR in core.c)
MANY_TURNS = 4.0 * np.pi
FORMS = ("matrix", "ur")  # of a pose: T (4, 4), or UR's x y z rx ry rz


def broadcast(*arrays: Array) -> list[Array]:
    """The arrays with equal leading axes (numpy's rules), contiguous; the last axis of each stays as it is."""
    try:
        lead = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise InvalidValue(f"leading axes do not fit together: shapes {shapes}") from None
    return [np.ascontiguousarray(np.broadcast_to(a, (*lead, a.shape[-1]))) for a in arrays]


def refuse(value: ArrayLike, name: str, *tail: int) -> None:
    """Raise for an argument that the compiled kernels did not accept, with the sentence that says why."""
    checked(value, tail, name)
    raise InvalidValue(f"{name}: cannot be used as an array of float64 with shape (..., {', '.join(map(str, tail))})")


def transforms(value: ArrayLike) -> Array:
    """A pose argument as T (..., 4, 4): given so, or as UR's x y z rx ry rz (..., 6) in m and rad."""
    try:
        six = np.shape(value)[-1:] == (6,)
    except (TypeError, ValueError):  # no array at all: `checked` finds the words
        six = False
    if six:
        return checked(pose_from_ur(value), (4, 4), "T")
    return checked(value, (4, 4), "T")


def formed(T: Array, form: object) -> Array:
    """T (..., 4, 4) in the form that was asked for, one of FORMS."""
    if form not in FORMS:
        raise InvalidValue(f"form: got {form!r}, valid are {', '.join(map(repr, FORMS))}")
    return ur_from_pose(T) if form == "ur" else T


_said = False


def far(robot: Robot, q: Array) -> None:
    """Warn, the first time only, that joint positions q (..., n) look like degrees."""
    global _said
    if not _said and (why := like_degrees(robot, q)):
        _said = True
        warnings.warn(f"q: {why}", UserWarning, stacklevel=3)


def like_degrees(robot: Robot, q: Array) -> str:
    """Why joint positions q (..., n) look like degrees; "": they do not.

    They do where a joint is beyond MANY_TURNS and twice its own limits; a joint that turns without end never does.
    """
    reach = np.maximum(MANY_TURNS, 2.0 * np.maximum(np.abs(robot.q_min), np.abs(robot.q_max)))
    looks = (np.abs(q) > reach) & robot.revolute
    if not np.any(looks):
        return ""
    worst: Any = q[looks][np.argmax(np.abs(q[looks]))]
    return (
        f"{worst:g} rad is {abs(worst) / (2.0 * np.pi):.0f} turns, far beyond the limits of {robot.name}: angles "
        "are in radians (np.radians(q) turns degrees into them)"
    )
