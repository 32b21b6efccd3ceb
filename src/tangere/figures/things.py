"""What stands around an arm, as faces and balls: wall, hand, ball, paper; and the arrow of a force."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.figures.axes import polyline
from tangere.figures.markup import Raw, floats, join, tag
from tangere.types import Array

PATCH = 0.3  # m: of a wall or a table no more than this to each side of what meets it is drawn
FAR = 1e3  # m: what is farther away or larger stands around no arm
WORDS = {"surface": "wall", "pad": "hand", "paper": "paper", "ball": "ball"}
# corners of a box by sign, and its six faces as corners that go round
_CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
_FACES = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])


@dataclass(frozen=True)
class Thing:
    """Faces (F, 4, 3) [m] that go round, seen from outside against the clock, and balls (B, 4): middle and radius."""

    name: str
    faces: Array
    balls: Array

    @property
    def points(self) -> Array:
        """(N, 3) what has to be inside the drawing."""
        around = [self.balls[:, :3] + sign * self.balls[:, 3:] for sign in (-1.0, 1.0)]
        return np.concatenate([self.faces.reshape(-1, 3), *around])

    @property
    def middle(self) -> Array:
        """(3,) of what is drawn."""
        return np.asarray(self.points.mean(axis=0))

    def data(self) -> dict[str, Any]:
        """For the page's script."""
        return {"name": self.name, "faces": floats(self.faces.reshape(-1)), "balls": floats(self.balls.reshape(-1))}


def thing(told: Mapping[str, Any], near: Array) -> Thing | None:
    """A body of a manifest: {"name", "kind", "parts": [{"kind", "size", "T"}]}; None where it is not understood.

    near (3,): what meets it; of a large face only the part around that is drawn.
    """
    faces, balls = [], []
    try:
        for part in told["parts"]:
            T = np.array(part["T"], dtype=np.float64).reshape(3, 4)
            size = np.array(part["size"], dtype=np.float64)
            if not (np.all(np.abs(T) <= FAR) and np.all(size <= FAR) and np.all(size > 0.0)):
                return None
            if part["kind"] == "sphere":
                balls.append([*T[:, 3], float(size[0])])
            else:
                faces.append(_box(T, size, near))
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    if not faces and not balls:
        return None
    name = str(told.get("name") or WORDS.get(str(told.get("kind")), ""))
    if isinstance(mass := told.get("mass"), int | float):
        name = f"{name}, {mass:g} kg"
    return Thing(name, np.concatenate(faces) if faces else np.zeros((0, 4, 3)), np.array(balls).reshape(-1, 4))


def _box(T: Array, half: Array, near: Array) -> Array:
    """Faces (6, 4, 3) of a box of half edges (3,), cut to PATCH around `near`."""
    at = T[:, :3].T @ (near - T[:, 3])
    low, high = np.maximum(-half, at - PATCH), np.minimum(half, at + PATCH)
    wrong = (low >= high) | ~np.isfinite(low + high)  # what meets it is far away: all of it
    low, high = np.where(wrong, -half, low), np.where(wrong, half, high)
    corners = 0.5 * (low + high) + 0.5 * (high - low) * _CORNERS
    return np.asarray((corners @ T[:, :3].T + T[:, 3])[_FACES])


def drawn(one: Thing, flat: Any, eye: Array, scale: float) -> Raw:
    """A thing with its name; flat: points to px; faces that look away are left out."""
    parts = []
    for face in one.faces:
        if float(np.cross(face[1] - face[0], face[2] - face[1]) @ eye) > 0.0:
            parts.append(tag("path", class_="thing", d=polyline(flat(face)) + "Z"))
    for ball in one.balls:
        x, y = flat(ball[:3])
        parts.append(tag("circle", class_="thing", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{scale * ball[3]:.1f}"))
    corners = flat(one.points)
    most = corners[int(np.argmax(corners[:, 0]))]
    parts.append(tag("text", one.name, class_="thing", x=f"{most[0] + 7:.1f}", y=f"{most[1] + 4:.1f}"))
    return join(*parts)


def arrow(start: Array, tip: Array, label: str) -> Raw:
    """A thick arrow [px] that ends at its tip, with its label at the start."""
    along = tip - start
    length = float(np.hypot(*along))
    if not (math.isfinite(length) and length > 1.0):
        return join()
    u = along / length
    side, neck = np.array([-u[1], u[0]]), tip - min(14.0, 0.6 * length) * u
    head = np.stack([tip, neck + 8.0 * side, neck - 8.0 * side])
    x, y = start - 12.0 * u
    return join(
        tag("path", class_="force", d=polyline(np.stack([start, neck]))),
        tag("path", class_="force tip", d=polyline(head) + "Z"),
        tag("text", label, class_="force", x=f"{x:.1f}", y=f"{y + 4:.1f}"),
    )
