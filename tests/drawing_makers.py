"""Pictures whose lines are known: a renderer, and how the pictures of the package were made."""

import numpy as np

from tangere.apps.drawing.strokes.strokes import Strokes


def rendered(strokes: Strokes, *, pixel: float = 0.2e-3, pen: float = 0.5e-3) -> np.ndarray:
    """(h, w) the drawing as a camera would see it: black lines of width `pen` [m] on white, `pixel` [m] per pixel.

    Grey is by the distance of the pixel's middle from the line, one pixel of slope at its border.
    """
    columns, rows = (max(1, round(side / pixel)) for side in strokes.size)
    clear = np.full((rows, columns), np.inf)
    half = 0.5 * pen / pixel
    reach = half + 1.0
    scale = np.array([columns, rows]) / np.array(strokes.size)
    for line in strokes.lines:
        points = line * [1.0, -1.0] * scale + np.array([columns, rows]) / 2.0
        for (ax, ay), (bx, by) in zip(points[:-1].tolist(), points[1:].tolist(), strict=True):
            # long lines in short pieces: the box round a slanted one is mostly empty
            pieces = max(1, int(max(abs(bx - ax), abs(by - ay)) / 64.0))
            for k in range(pieces):
                s, t = k / pieces, (k + 1) / pieces
                _stamp(clear, ax + s * (bx - ax), ay + s * (by - ay), ax + t * (bx - ax), ay + t * (by - ay), reach)
    return np.rint(255.0 * np.clip(clear - half + 0.5, 0.0, 1.0)).astype(np.uint8)


def _stamp(clear: np.ndarray, ax: float, ay: float, bx: float, by: float, reach: float) -> None:
    """Lower the distances `clear` near one segment."""
    rows, columns = clear.shape
    left, right = max(0, int(min(ax, bx) - reach)), min(columns, int(max(ax, bx) + reach) + 2)
    top, bottom = max(0, int(min(ay, by) - reach)), min(rows, int(max(ay, by) + reach) + 2)
    if left >= right or top >= bottom:
        return
    x = np.arange(left, right) + 0.5 - ax
    y = (np.arange(top, bottom) + 0.5 - ay)[:, None]
    dx, dy = bx - ax, by - ay
    square = dx * dx + dy * dy
    share = np.clip((x * dx + y * dy) / square, 0.0, 1.0) if square > 0.0 else np.zeros((1, 1))
    distance = np.hypot(x - share * dx, y - share * dy)
    window = clear[top:bottom, left:right]
    np.minimum(window, distance, out=window)


def snail() -> Strokes:
    """A snail in a meadow: 200 mm square; long curves, loops, crossings, small details, a line of handwriting."""
    lines: list[np.ndarray] = []

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


def still_life(side: int = 320, *, noise: float = 0.008, seed: int = 3) -> np.ndarray:
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
    return (3.0 * np.rint(85.0 * np.clip(image, 0.0, 1.0))).astype(np.uint8)


def _over(below, above, inside) -> np.ndarray:
    """`above` laid over `below` where `inside` [pixels] is positive, one pixel soft."""
    cover = np.clip(inside + 0.5, 0.0, 1.0)
    return below * (1.0 - cover) + above * cover
