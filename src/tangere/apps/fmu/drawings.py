"""Pictures of a block: its ports, the arm, its frames, the double cover (SVG, for the data sheet); its icon (PNG)."""

from __future__ import annotations

import struct
import textwrap
import zlib
from functools import cache
from itertools import pairwise
from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray

from tangere.apps.fmu.part import ArmNumbers, Kind
from tangere.apps.fmu.variables import Group, Table, units_of
from tangere.figures.axes import drawing
from tangere.figures.markup import Raw, tag

Pixels = NDArray[np.float64]

SIZE = 96  # [px] of the icon
_ARM = ((20, 82), (20, 56), (46, 26), (74, 40), (74, 60))  # [px] base, shoulder, elbow, wrist, tool
_ROW = 24  # [px] between ports


def _label(g: Group) -> str:
    size = f"[{','.join(map(str, g.shape))}]" if g.shape else ""
    unit = units_of(g)
    return f"{g.name}{size}" + (f"  {unit}" if unit not in ("", "1") else "")


def _text(text: str, x: float, y: float, size: float, colour: str, *, anchor: str = "middle", mono: bool = False,
          weight: int = 400) -> Raw:  # fmt: skip
    """A line of text; its style stands above the page's own for drawings."""
    family = "var(--mono)" if mono else "var(--sans)"
    style = f"font:{weight} {size}px {family};fill:{colour};text-anchor:{anchor}"
    return tag("text", text, x=x, y=y, style=style)


def block_diagram(kind: Kind, arm: ArmNumbers, table: Table) -> Raw:
    """The block: inputs at the left, outputs at the right, tunable parameters from below."""
    inputs = [p.group for p in table.with_causality("input")]
    outputs = [p.group for p in table.with_causality("output")]
    tunable = [p.group.name for p in table.with_causality("parameter") if p.group.variability == "tunable"]
    rows = max(len(inputs), len(outputs), 3)
    top, left, width = 16, 235, 290
    height = _ROW * rows + 46
    parts = [
        tag("rect", x=left, y=top, width=width, height=height, rx=9, fill="var(--card)", stroke="var(--a)",
            stroke_width=2),
        _text(kind.identifier(arm), left + width / 2, top + height / 2 - 4, 18, "var(--ink)", weight=640),
    ]  # fmt: skip
    for i, line in enumerate(textwrap.wrap(kind.title, 36)):
        parts.append(_text(line, left + width / 2, top + height / 2 + 18 + 16 * i, 13, "var(--dim)"))
    for groups, outward in ((inputs, False), (outputs, True)):
        first = top + height / 2 - _ROW * (len(groups) - 1) / 2
        for i, g in enumerate(groups):
            y = first + _ROW * i
            x = left + width if outward else left
            tip = x + 34 if outward else x
            start = x if outward else x - 34
            parts += [
                tag("line", x1=start, y1=y, x2=tip - 5, y2=y, stroke="var(--dim)", stroke_width=1.4),
                tag("path", d=f"M{tip} {y} l-8 -4 v8 z", fill="var(--dim)"),
                _text(_label(g), x + 42 if outward else x - 42, y + 4.5, 12.5, "var(--ink)", mono=True,
                      anchor="start" if outward else "end"),
            ]  # fmt: skip
    y = top + height + 34
    if tunable:
        parts.append(tag("path", d=f"M{left + width / 2} {top + height + 4} l-4 8 h8 z", fill="var(--c)"))
        lines = textwrap.wrap(", ".join(tunable), 92)
        for i, line in enumerate(lines):
            parts.append(_text(line, left + width / 2, y + 17 * i, 12, "var(--c)", mono=True))
        y += 17 * len(lines)
    title = f"Block diagram of {kind.identifier(arm)}: inputs left, outputs right, parameters below"
    return drawing(title, 760, y + 4, *parts, style="max-width:760px;width:100%")


def picture(arm: ArmNumbers) -> Raw:
    """The arm at its start pose, to scale."""
    figure = arm.robot.plot(arm.q_start)
    return drawing(figure.title, figure.width, figure.height, figure.parts, style="max-width:520px;width:100%")


def frames_drawing(arm: ArmNumbers) -> Raw:
    """The arm at its start pose with the frames of base, links and tcp: x red, y green, z blue."""
    placed = np.array([np.eye(4), *arm.robot.link_poses(arm.q_start), arm.T_start])  # base, link frames, tcp
    view = np.array([[-0.92, -0.39, 0.0], [0.13, -0.32, 0.94]])  # from the front and right, a little above
    points = np.array([T[:3, 3] for T in placed]) @ view.T
    scale = 330.0 / max(float(np.ptp(points[:, 0])), float(np.ptp(points[:, 1])), 0.3)
    axis = 34.0 / scale  # [m] every triad is as long on paper
    low, high = points.min(axis=0), points.max(axis=0)
    width, height = scale * (high[0] - low[0]) + 190, scale * (high[1] - low[1]) + 130

    def at(p: NDArray[np.float64]) -> tuple[float, float]:
        x, y = view @ p
        return round(float(95 + scale * (x - low[0])), 1), round(float(65 + scale * (high[1] - y)), 1)

    # the arm runs along its links: DH frames 4 and 5 sit at the wrist's corners
    outline = " ".join(f"{x},{y}" for x, y in (at(T[:3, 3]) for T in placed))
    parts = [
        tag("polyline", points=outline, fill="none", stroke="var(--link)", stroke_width=13, stroke_linejoin="round",
            stroke_linecap="round"),
        tag("polyline", points=outline, fill="none", stroke="var(--joint)", stroke_width=1.5),
    ]  # fmt: skip
    names = ["base", *(f"{i}" for i in range(1, arm.dof + 1)), "tcp"]
    same = np.allclose(placed[-1], placed[-2])
    for k, T in enumerate(placed[: -1 if same else None]):
        x0, y0 = at(T[:3, 3])
        for j, colour in enumerate(("#d64541", "#2e9e5b", "#2f7ed8")):
            x1, y1 = at(T[:3, 3] + axis * T[:3, j])
            parts.append(tag("line", x1=x0, y1=y0, x2=x1, y2=y1, stroke=colour, stroke_width=2.2))
        name = f"{k} = tcp" if same and k == arm.dof else names[k]
        parts.append(_text(name, x0 + 9, y0 + 17, 12.5, "var(--ink)", anchor="start"))
    title = "The arm at its start pose with its frames"
    return drawing(title, round(width), round(height), *parts, style="max-width:520px;width:100%")


def _distance(x: Pixels, y: Pixels, a: tuple[int, int], b: tuple[int, int]) -> Pixels:
    """Distance of every pixel from the segment a b."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    t = np.clip(((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy), 0.0, 1.0)
    return np.asarray(np.hypot(x - a[0] - t * dx, y - a[1] - t * dy))


def _over(image: Pixels, colour: tuple[int, int, int, int], cover: Pixels) -> None:
    """Paint a colour where cover is 1, a share of it at the edges."""
    share = np.clip(cover, 0.0, 1.0)[..., None]
    image += share * (np.array(colour, dtype=np.float64) - image)


def double_cover() -> Raw:
    """q and -q: opposite points of the circle of quaternions with one axis, and the two ways to turn."""
    half = 0.62  # [rad] half of the angle that is drawn
    parts: list[Raw] = []
    blue, orange = "var(--a)", "var(--b)"

    def arc(cx: float, cy: float, r: float, start: float, end: float, colour: str, width: float = 2.0) -> Raw:
        """From angle to angle [rad], counted from the right, up is positive."""
        x0, y0, x1, y1 = cx + r * cos(start), cy - r * sin(start), cx + r * cos(end), cy - r * sin(end)
        large, sweep = int(abs(end - start) > pi), int(end < start)
        d = f"M{x0:.1f} {y0:.1f} A{r} {r} 0 {large} {sweep} {x1:.1f} {y1:.1f}"
        return tag("path", d=d, fill="none", stroke=colour, stroke_width=width)

    def tip(x: float, y: float, angle: float, colour: str) -> Raw:
        """An arrow's head at (x, y) that points along the angle [rad]."""
        points = [(x + 10 * cos(angle + a), y - 10 * sin(angle + a)) for a in (0.0, 2.5, -2.5)]
        return tag("path", d="M" + " L".join(f"{a:.1f} {b:.1f}" for a, b in points) + " z", fill=colour)

    # left: the circle w = cos(angle / 2), along n: sin(angle / 2)
    cx, cy, r = 150.0, 130.0, 86.0
    parts += [
        arc(cx, cy, r, -pi / 2, pi / 2, blue, 3.0), arc(cx, cy, r, pi / 2, 3 * pi / 2, orange, 3.0),
        tag("line", x1=cx - r - 24, y1=cy, x2=cx + r + 24, y2=cy, stroke="var(--dim)", stroke_width=1),
        tag("line", x1=cx, y1=cy + r + 18, x2=cx, y2=cy - r - 18, stroke="var(--dim)", stroke_width=1),
        _text("w = cos(θ/2)", cx + r + 30, cy + 18, 12, "var(--dim)", anchor="start"),
        _text("sin(θ/2), along n", cx, cy - r - 24, 12, "var(--dim)"),
    ]  # fmt: skip
    for angle, name, colour in ((half, "q", blue), (half + pi, "−q", orange)):
        x, y = cx + r * cos(angle), cy - r * sin(angle)
        out = 18.0 if name == "q" else -20.0
        parts += [
            tag("line", x1=cx, y1=cy, x2=round(x, 1), y2=round(y, 1), stroke=colour, stroke_width=2),
            tag("circle", cx=round(x, 1), cy=round(y, 1), r=5, fill=colour),
            _text(name, x + out, y - 0.4 * out + 2, 15, colour, weight=640),
        ]  # fmt: skip
    parts += [arc(cx, cy, 30, 0.0, half, blue, 1.4), _text("θ/2", cx + 44, cy - 10, 12, blue)]
    parts += [_text("canonical: w ≥ 0", cx + 52, cy + r + 34, 12, blue),
              _text("the same rotations", cx - 68, cy + r + 34, 12, orange)]  # fmt: skip
    # right: the two ways to turn, seen along the axis
    cx = 530.0
    start, end = 0.25, 0.25 + 2 * half
    parts += [
        arc(cx, cy, 78, start, end, blue, 3.0), arc(cx, cy, 56, start + 2 * pi, end, orange, 3.0),
        tip(cx + 78 * cos(end), cy - 78 * sin(end), end + pi / 2, blue),
        tip(cx + 56 * cos(end), cy - 56 * sin(end), end - pi / 2, orange),
        *(tag("line", x1=cx, y1=cy, x2=round(cx + 96 * cos(a), 1), y2=round(cy - 96 * sin(a), 1), stroke="var(--ink)",
              stroke_width=1.6) for a in (start, end)),
        tag("circle", cx=cx, cy=cy, r=4, fill="var(--ink)"),
        _text("before", cx + 104, cy - 22, 12, "var(--dim)", anchor="start"),
        _text("after", cx + 16, cy - 102, 12, "var(--dim)", anchor="start"),
        _text("θ about n", cx + 84, cy - 70, 13, blue, anchor="start"),
        _text("2π − θ about −n", cx, cy + 80, 13, orange),
    ]  # fmt: skip
    title = "Double cover: q and −q are the same rotation; the half with w ≥ 0 is canonical"
    return drawing(title, 760, 270, *parts, style="max-width:760px;width:100%")


@cache
def icon_png(kind: Kind) -> bytes:
    """The arm in a rounded square; the colour of the tool tells the kinds apart."""
    y, x = np.mgrid[0:SIZE, 0:SIZE] + 0.5
    image = np.zeros((SIZE, SIZE, 4))
    inside = np.hypot(np.maximum(np.abs(x - 48) - 34, 0), np.maximum(np.abs(y - 48) - 34, 0))
    _over(image, (23, 43, 77, 255), 12.5 - inside)
    for a, b in pairwise(_ARM):
        _over(image, (226, 232, 240, 255), 5.5 - _distance(x, y, a, b))
    for a in _ARM[1:4]:
        _over(image, (96, 165, 250, 255), 7.0 - np.hypot(x - a[0], y - a[1]))
    _over(image, (*kind.colour, 255), 8.0 - np.hypot(x - 74, y - 66))
    _over(image, (148, 163, 184, 255), 4.0 - _distance(x, y, (10, 84), (40, 84)))
    pixels = np.round(image).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
