"""The two pictures that ship with the package, and how they were made: a line drawing and a shaded still life."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import UnknownName
from tangere.types import Array

FOLDER = Path(__file__).parent / "pictures"


def shipped_pictures() -> tuple[str, ...]:
    """Names of the pictures in the package."""
    return tuple(sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".png", ".svg")))


def shipped_picture(name: str) -> Path:
    """The path of a picture in the package: "snail.png", "snail.svg" (the same lines) or "still_life.png"."""
    if name not in shipped_pictures():
        raise UnknownName(f"no picture {name!r} in the package; there are {', '.join(shipped_pictures())}")
    return FOLDER / name


def snail() -> Strokes:
    """A snail in a meadow: 200 mm square; long curves, loops, crossings, small details, a line of handwriting."""
    lines: list[Array] = []

    def curve(x: object, y: object) -> None:
        lines.append(np.stack(np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float)), axis=-1) * 1e-3)

    def ring(x: float, y: float, rx: float, ry: float, points: int = 97) -> None:
        t = np.linspace(0.0, 2.0 * np.pi, points)
        curve(x + rx * np.cos(t), y + ry * np.sin(t))
        lines[-1][-1] = lines[-1][0]

    def bezier(*handles: tuple[float, float]) -> None:
        p = np.array(handles)
        t = np.linspace(0.0, 1.0, 60)[:, None]
        s = 1.0 - t
        xy = s**3 * p[0] + 3 * s * s * t * p[1] + 3 * s * t * t * p[2] + t**3 * p[3]
        curve(xy[:, 0], xy[:, 1])

    turn = np.linspace(0.0, 2.0 * np.pi * 3.1, 500)
    radius = 2.0 + 34.0 * (turn / turn[-1]) ** 1.15
    curve(-18.0 + radius * np.cos(turn - 0.9), -8.0 + radius * np.sin(turn - 0.9))  # shell
    bezier((-80.0, -44.0), (-45.0, -30.0), (-40.0, -47.0), (20.0, -46.0))  # back of the foot
    bezier((20.0, -46.0), (55.0, -45.0), (66.0, -33.0), (62.0, 2.0))  # belly and throat
    bezier((62.0, 2.0), (60.0, 16.0), (42.0, 16.0), (40.0, 2.0))  # head
    bezier((40.0, 2.0), (38.0, -14.0), (34.0, -22.0), (14.0, -26.0))  # neck
    bezier((57.0, 11.0), (62.0, 20.0), (68.0, 28.0), (70.0, 37.0))  # feelers with their eyes
    bezier((47.0, 11.5), (46.0, 22.0), (44.0, 30.0), (46.0, 40.0))
    ring(71.0, 40.5, 3.6, 3.6)
    ring(46.5, 43.6, 3.6, 3.6)
    bezier((60.0, -6.0), (56.0, -10.0), (52.0, -10.0), (49.0, -7.0))  # smile
    x = np.linspace(-95.0, 95.0, 400)
    curve(x, -55.0 + 2.5 * np.sin(x / 9.0) + 1.2 * np.sin(x / 3.7))  # ground
    for foot in (-88.0, -70.0, 76.0, 88.0):  # tufts that cross the ground
        for lean in (-7.0, 0.0, 6.0):
            bezier(
                (foot + 0.3 * lean, -60.0), (foot + 0.4 * lean, -50.0), (foot + lean, -44.0), (foot + 1.6 * lean, -36.0)
            )
    t = np.linspace(0.0, 2.0 * np.pi, 721)
    petal = 15.0 * np.cos(2.5 * t) ** 2 + 4.0
    curve(-72.0 + petal * np.cos(t), 24.0 + petal * np.sin(t))  # flower
    lines[-1][-1] = lines[-1][0]
    ring(-72.0, 24.0, 4.0, 4.0)
    bezier((-72.0, 4.5), (-74.0, -10.0), (-66.0, -30.0), (-69.0, -54.0))
    ring(70.0, 74.0, 13.0, 13.0)  # sun and its rays
    for k in range(12):
        a = 2.0 * np.pi * k / 12.0
        curve(70.0 + np.array([16.5, 22.0]) * np.cos(a), 74.0 + np.array([16.5, 22.0]) * np.sin(a))
    s = np.linspace(0.0, 2.0 * np.pi * 9.0, 700)
    curve(-86.0 + 1.75 * s - 4.6 * np.sin(s), 70.0 - (6.0 + 3.0 * np.sin(s / 4.3)) * np.cos(s))  # a line of handwriting
    curve(-62.0 + 0.9 * s, -78.0 + 5.0 * np.sin(2.0 * s / 3.0) * np.cos(s / 9.0))  # water
    curve(-62.0 + 0.9 * s, -78.0 - 5.0 * np.sin(2.0 * s / 3.0) * np.cos(s / 9.0))
    return Strokes(tuple(lines), (0.2, 0.2))


def still_life(side: int = 320, *, noise: float = 0.008, seed: int = 3) -> NDArray[np.uint8]:
    """(side, side) a mug and three balls on a striped table, soft light from the upper left, with a camera's noise."""
    rows, columns = np.mgrid[0:side, 0:side]
    u, v = (columns + 0.5) / side * 2.0 - 1.0, 1.0 - (rows + 0.5) / side * 2.0
    light = np.array([-0.5, 0.6, 0.62]) / np.linalg.norm([-0.5, 0.6, 0.62])
    border = side / 2.0  # pixels per unit: borders are one pixel soft
    wall = 0.75 - 0.18 * (0.4 * u - 0.3 * v) + 0.05 * np.sin(3.0 * u + 1.0)
    table = 0.50 + 0.12 * (v + 1.0) + 0.02 * np.sin(30.0 * u * (1.2 - v))
    image = _over(wall, table, (-0.25 - v) * border)
    for x, y, a, b, depth in ((0.05, -0.52, 0.55, 0.12, 0.5), (0.62, -0.35, 0.4, 0.1, 0.45)):  # shadows
        image = image * (1.0 - depth * np.exp(-((((u - x) / a) ** 2 + ((v - y) / b) ** 2) ** 2)))
    # the mug: handle, wall, opening
    x, y, half, tall = 0.42, 0.02, 0.24, 0.34
    hx, hy = (u - x - 1.05 * half) / 0.13, (v - y) / 0.2
    r = np.hypot(hx, hy)
    handle = np.minimum(0.22 - np.abs(r - 1.0), (u - x - 0.98 * half) / 0.13) * 0.16
    image = _over(image, 0.35 + 0.3 * np.clip(1.0 - 2.0 * (r - 1.0) - 0.3 * hx, 0.0, 1.0), handle * border)
    s = np.clip((u - x) / half, -1.0, 1.0)
    bulge = np.sqrt(1.0 - s * s)
    wall_of_mug = np.minimum(half - np.abs(u - x), tall + 0.06 * bulge - np.abs(v - y))
    image = _over(image, 0.25 + 0.55 * np.clip(0.75 * bulge - 0.5 * s, 0.0, 1.0), wall_of_mug * border)
    opening = 1.0 - np.hypot((u - x) / half, (v - y - tall) / 0.06)
    image = _over(image, 0.30 + 0.25 * np.clip(0.5 * s + 0.5, 0.0, 1.0), opening * 0.06 * border)
    for x, y, a, b, albedo, gloss in (
        (-0.28, -0.22, 0.34, 0.34, 0.85, 0.4),
        (-0.68, -0.42, 0.20, 0.19, 0.50, 0.4),
        (0.02, -0.55, 0.16, 0.14, 0.62, 0.3),
    ):
        dx, dy = (u - x) / a, (v - y) / b
        square = dx * dx + dy * dy
        normal = np.stack([dx / a, dy / b, np.sqrt(np.clip(1.0 - square, 0.0, 1.0)) * 2.0 / (a + b)])
        normal = normal / np.maximum(np.linalg.norm(normal, axis=0), 1e-9)
        lit = np.clip(np.tensordot(light, normal, 1), 0.0, 1.0)
        half_way = (light + [0.0, 0.0, 1.0]) / np.linalg.norm(light + [0.0, 0.0, 1.0])
        shine = np.clip(np.tensordot(half_way, normal, 1), 0.0, 1.0) ** 40
        image = _over(image, albedo * (0.22 + 0.8 * lit) + gloss * shine, (1.0 - np.sqrt(square)) * min(a, b) * border)
    image = image + noise * np.random.default_rng(seed).normal(size=image.shape)
    # steps of three levels hide in the noise and halve the file
    result: NDArray[np.uint8] = (3.0 * np.rint(85.0 * np.clip(image, 0.0, 1.0))).astype(np.uint8)
    return result


def _over(below: Array, above: Array, inside: Array) -> Array:
    """`above` laid over `below` where `inside` [pixels] is positive, one pixel soft."""
    cover = np.clip(inside + 0.5, 0.0, 1.0)
    return below * (1.0 - cover) + above * cover
