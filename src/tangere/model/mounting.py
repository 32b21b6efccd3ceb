"""What is fixed to an arm and how it is mounted: payload, tool and gravity, in the forms a caller may give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tangere.errors import InvalidValue, UnknownName
from tangere.model.frames import check_transform, rotation_vector, transform
from tangere.model.inertia import check_body
from tangere.model.model import Array, Payload

G0 = 9.81  # [m/s2] the value of the documents (000 eq 69, 002 section 4) and of the golden numbers, not a local one

# Direction of gravity in base axes. "wall" is UR's own wall mounting, the base tilted by 90 degrees about its x axis:
# the base z axis points away from the wall, the base y axis points up. Another wall is a vector, e.g. (-9.81, 0, 0)
# with the base x axis up.
MOUNTINGS = {"table": (0.0, 0.0, -G0), "wall": (0.0, -G0, 0.0), "ceiling": (0.0, 0.0, G0)}


def _array(value: Any, what: str) -> Array:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidValue(f"{what} must be numbers, got {value!r}") from None
    if not np.all(np.isfinite(array)):
        raise InvalidValue(f"{what} must be finite, got {value!r}")
    return array


def gravity_vector(gravity: str | Sequence[float] | Array) -> Array:
    """Gravity in base axes, (3,) in m/s2: a vector, or "table", "wall" (base y axis up), "ceiling" with 9.81 m/s2."""
    if isinstance(gravity, str):
        if gravity not in MOUNTINGS:
            raise UnknownName(f"unknown mounting {gravity!r}; known: {', '.join(MOUNTINGS)}, or a vector in base axes")
        gravity = MOUNTINGS[gravity]
    vector = _array(gravity, "gravity")
    if vector.shape != (3,):
        raise InvalidValue(f"gravity must be 3 numbers in base axes [m/s2], got shape {vector.shape}")
    vector.setflags(write=False)
    return vector


def tool_transform(tool: Sequence[float] | Array) -> Array:
    """T_flange_tcp, (4, 4): from a 4x4 matrix, from x y z rx ry rz (UR's TCP: m, rotation vector), or from x y z."""
    array = _array(tool, "tool")
    if array.shape == (3,):
        T = transform(np.eye(3), array)
    elif array.shape == (6,):
        T = transform(rotation_vector(array[3:].tolist()), array[:3])
    elif array.shape == (4, 4):
        T = check_transform(array, "tool")
    else:
        raise InvalidValue(
            f"tool must be a 4x4 transform, 6 numbers x y z rx ry rz (UR's TCP form) or 3 numbers x y z, "
            f"got shape {array.shape}"
        )
    T.setflags(write=False)
    return T


def payload_body(payload: Payload | float | Sequence[Any]) -> Payload:
    """A validated Payload from a Payload, a mass, (mass, com) or (mass, com, inertia); flange axes, SI.

    com (3,) defaults to the flange's origin; inertia (3, 3) about the COM defaults to zero, a point mass.
    """
    if isinstance(payload, Payload):
        parts: tuple[Any, ...] = (payload.mass, payload.com, payload.inertia)
    elif isinstance(payload, int | float | np.number):
        parts = (payload,)
    elif isinstance(payload, Sequence | np.ndarray) and not isinstance(payload, str):
        parts = tuple(payload)
    else:
        raise InvalidValue(f"payload must be a mass, (mass, com) or (mass, com, inertia), got {payload!r}")
    if not 1 <= len(parts) <= 3:
        raise InvalidValue(f"payload must be a mass, (mass, com) or (mass, com, inertia), got {len(parts)} entries")
    shapes = ((), (3,), (3, 3))
    arrays = [np.zeros(shape) for shape in shapes]
    for i, (part, what) in enumerate(zip(parts, ("mass", "com", "inertia"), strict=False)):
        arrays[i] = _array(part, f"payload {what}")
        if arrays[i].shape != shapes[i]:
            raise InvalidValue(f"payload {what} must have shape {shapes[i]}, got {arrays[i].shape}")
    mass, com, inertia = float(arrays[0]), arrays[1], arrays[2]
    check_body("payload", mass, com, inertia, point_mass=True)
    for array in (com, inertia):
        array.setflags(write=False)
    return Payload(mass, com, inertia)
