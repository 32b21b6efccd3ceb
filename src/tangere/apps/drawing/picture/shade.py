"""Paints of an SVG: how dark a colour is, and gradients, whose tone changes from place to place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from xml.etree import ElementTree

import numpy as np

from tangere.apps.drawing.picture.svg_attributes import NUMBER, length_of, matrix_of
from tangere.apps.drawing.picture.svg_style import Style, plain, share, tag_of
from tangere.types import Array

DEPTH_MAX = 8  # gradients that refer to others
FOCUS_MAX = 0.99  # radii that a focus is off the centre at most: on the circle itself every ray would end
LINK = "{http://www.w3.org/1999/xlink}href"
Ids = Mapping[str, ElementTree.Element]


@dataclass(frozen=True, eq=False)
class Shade:
    """A gradient: the tone of a point (x, y) of the picture follows from t, by straight lines between its stops.

    (u, v, 1) = matrix (x, y, 1). Linear: t = u. Radial: t is the share of the circle through (u, v) that has grown from
    the focus f to the unit circle about 0, |(u, v) - (1 - t) f| = t.
    """

    matrix: Array  # (3, 3)
    offsets: tuple[float, ...]
    tones: tuple[float, ...]  # at the offsets, share of black
    radial: bool = False
    focus: tuple[float, float] = (0.0, 0.0)
    spread: str = "pad"  # beyond the ends: as there; or "reflect", "repeat"

    def tone(self, points: Array) -> Array:
        """Share of black (...) at points (..., 2) of the picture."""
        p = points @ self.matrix[:2, :2].T + self.matrix[:2, 2]
        t = p[..., 0]
        if self.radial:
            f = np.array(self.focus)
            d, rest = p - f, 1.0 - f @ f
            t = (d @ f + np.sqrt((d @ f) ** 2 + rest * (d * d).sum(axis=-1))) / rest
        if self.spread == "repeat":
            t = t % 1.0
        elif self.spread == "reflect":
            t = 1.0 - np.abs(t % 2.0 - 1.0)
        return np.asarray(np.interp(t, self.offsets, self.tones))

    def moved(self, matrix: Array) -> Shade:
        """The same for a picture whose points went to matrix (x, y, 1)."""
        return replace(self, matrix=self.matrix @ np.linalg.inv(matrix))

    def weaker(self, through: float) -> Shade:
        """The same, letting the paper through."""
        return replace(self, tones=tuple(through * tone for tone in self.tones))


def dark_of(paint: str, style: Style, ids: Ids, depth: int = 0) -> float:
    """How dark a paint is, 0 white to 1 black: of a gradient the mean of its stops; what is unknown is black.

    1 - (0.299 r + 0.587 g + 0.114 b), as television weighs colours for the eye.
    """
    if paint == "currentcolor":
        return dark_of(style["color"], style, ids, depth + 1) if depth < DEPTH_MAX else 1.0
    if (element := painter(paint, ids)) is not None or paint.startswith("url("):
        tones = [tone for _, tone in _stops(_chain(element, ids), style, ids, depth)]
        return sum(tones) / len(tones) if tones else 1.0
    from PIL import ImageColor

    try:
        red, green, blue, *alpha = ImageColor.getrgb(paint)
    except ValueError:
        return 1.0
    return (1.0 - (0.299 * red + 0.587 * green + 0.114 * blue) / 255.0) * (alpha[0] / 255.0 if alpha else 1.0)


def painter(link: str, ids: Ids) -> ElementTree.Element | None:
    """The element that url(#name) names, None where it names none."""
    found = re.match(r"url\(\s*[\"']?#([^)\"']+)", link)
    return ids.get(found[1]) if found else None


def shade_of(
    paint: str, style: Style, ids: Ids, lines: list[Array], matrix: Array, frame: tuple[float, float]
) -> Shade | None:
    """The gradient that paints a shape, in the picture's units; None where the paint is no gradient with two stops.

    lines, each (k, 2): of the shape in the picture; matrix (3, 3): from the shape's own units to the picture's.
    frame: what percentages refer to where the gradient is not given in shares of the shape's box.
    """
    chain = _chain(painter(paint, ids), ids)
    stops = _stops(chain, style, ids, 0)
    inverse = _inverse(matrix)
    if len(stops) < 2 or not lines or inverse is None:
        return None

    def said(key: str, default: str) -> str:
        return next((element.get(key, "") for element in chain if element.get(key)), default)

    boxed = said("gradientUnits", "objectBoundingBox") == "objectBoundingBox"
    box = np.eye(3)
    if boxed:
        own = np.concatenate(lines) @ inverse[:2, :2].T + inverse[:2, 2]
        low, size = own.min(axis=0), np.ptp(own, axis=0)
        box = np.array([[size[0], 0.0, low[0]], [0.0, size[1], low[1]], [0.0, 0.0, 1.0]])

    def number(key: str, default: str) -> float:
        sides = {"x": frame[0], "y": frame[1], "r": float(np.hypot(*frame)) / 2**0.5}
        found = length_of(said(key, default), 1.0 if boxed else sides[key.strip("cf12")])
        return 0.0 if found is None else found

    radial = tag_of(chain[0]) == "radialGradient"
    if radial:
        x, y, radius = number("cx", "50%"), number("cy", "50%"), number("r", "50%")
        own_matrix = np.array([[radius, 0.0, x], [0.0, radius, y], [0.0, 0.0, 1.0]])
        focus = np.array([number("fx", str(x)) - x, number("fy", str(y)) - y]) / (radius or 1.0)
        focus *= min(1.0, FOCUS_MAX / max(float(np.hypot(*focus)), 1e-12))
    else:
        x, y = number("x1", "0%"), number("y1", "0%")
        wide, high = number("x2", "100%") - x, number("y2", "0%") - y
        own_matrix = np.array([[wide, -high, x], [high, wide, y], [0.0, 0.0, 1.0]])
        focus = np.zeros(2)
    whole = matrix @ box @ matrix_of(said("gradientTransform", "")) @ own_matrix
    if (back := _inverse(whole)) is None:
        return None
    offsets = np.maximum.accumulate(np.clip([offset for offset, _ in stops], 0.0, 1.0))
    return Shade(back, tuple(offsets.tolist()), tuple(tone for _, tone in stops), radial,
                 (float(focus[0]), float(focus[1])), said("spreadMethod", "pad"))  # fmt: skip


def _inverse(matrix: Array) -> Array | None:
    """The inverse, None where there is none: a shape or gradient without width."""
    try:
        inverse: Array = np.asarray(np.linalg.inv(matrix), dtype=float)
    except np.linalg.LinAlgError:
        return None
    return inverse if np.isfinite(inverse).all() else None


def _chain(element: ElementTree.Element | None, ids: Ids) -> list[ElementTree.Element]:
    """A gradient and those it refers to for what it does not say itself; [] where it is none."""
    chain: list[ElementTree.Element] = []
    while element is not None and tag_of(element).endswith("Gradient") and len(chain) < DEPTH_MAX:
        chain.append(element)
        element = ids.get((element.get("href") or element.get(LINK) or "")[1:])
    return chain


def _stops(chain: list[ElementTree.Element], style: Style, ids: Ids, depth: int) -> list[tuple[float, float]]:
    """(offset, share of black) of the stops of the first gradient in the chain that has any."""
    for element in chain if depth < DEPTH_MAX else []:
        stops = []
        for stop in element:
            if tag_of(stop) == "stop":
                said = {**stop.attrib, **dict(re.findall(r"([\w-]+)\s*:\s*([^;]+)", stop.get("style", "")))}
                through, offset = (said.get(key, default).strip() for key, default in
                                   (("stop-opacity", "1"), ("offset", "0")))  # fmt: skip
                colour = dark_of(plain(said.get("stop-color", "black")), style, ids, depth + 1)
                seen = min(1.0, share(through) if NUMBER.match(through) else 1.0)
                stops.append((share(offset) if NUMBER.match(offset) else 0.0, colour * seen))
        if stops:
            return stops
    return []
