"""The block diagram of a run: who hands what to whom, with the names of this run."""

from __future__ import annotations

from collections.abc import Mapping

from tangere.figures.axes import drawing
from tangere.figures.markup import Raw, tag

BOX_W, BOX_H = 178, 62  # px
_LONGEST = 24  # characters of a name that fit into a box at 13 px


def diagram(names: Mapping[str, str], tall: bool = False) -> Raw:
    """reference -> controller -> robot -> observer -> detection as SVG; `tall` for narrow screens.

    names: what stands in the boxes reference, controller, plant, observer, detection, push; absent ones get a dash.
    """
    order = ("reference", "controller", "plant", "observer", "detection")
    titles = ("Reference", "Controller", "Robot", "Observer", "Detection")
    if tall:
        at = {key: (44.0, 16.0 + 104.0 * k) for k, key in enumerate(order)}
        width, height = 360, 520
    else:
        at = {"reference": (16.0, 52.0), "controller": (290.0, 52.0), "plant": (564.0, 52.0),
              "observer": (564.0, 196.0), "detection": (290.0, 196.0)}  # fmt: skip
        width, height = 788, 276
    parts: list[Raw] = []
    for key, title in zip(order, titles, strict=True):
        x, y = at[key]
        name = names.get(key) or "–"
        parts += [
            tag("rect", tag("title", name), class_=f"box {key}", x=x, y=y, width=BOX_W, height=BOX_H, rx=7),
            tag("text", title, class_="kind", x=x + BOX_W / 2, y=y + 23),
            tag("text", _short(name), class_="name", x=x + BOX_W / 2, y=y + 44),
        ]
    parts += _tall_arrows(names) if tall else _wide_arrows(names)
    title = "Block diagram: reference, controller, robot, observer, detection"
    return drawing(title, width, height, *parts, class_="tall" if tall else "wide")


def _wide_arrows(names: Mapping[str, str]) -> list[Raw]:
    out = [
        *_arrow("M194 83H284", "q, q̇, q̈ desired", 239, 75),
        *_arrow("M468 83H558", "torque τ", 513, 75),
        *_arrow("M653 114V190", "q, q̇, τ", 661, 157, "start"),
        *_arrow("M564 227H474", "residual r", 519, 219),
        *_arrow("M607 114V140H379V120", "q, q̇ measured", 493, 155),
        *_arrow("M290 227H200", "events", 245, 219),
    ]
    if names.get("push"):
        out += _arrow("M653 14V46", _short(names["push"]), 663, 27, "start", "arrow outside")
    return out


def _tall_arrows(names: Mapping[str, str]) -> list[Raw]:
    labels = ("q, q̇, q̈ desired", "torque τ", "q, q̇, τ", "residual r")
    out: list[Raw] = []
    for k, label in enumerate(labels):
        top = 16 + 104 * k + BOX_H
        out += _arrow(f"M133 {top}v36", label, 143, top + 25, "start")
    out += _arrow("M44 255H16V151H38", "feedback", 21, 206, "start")
    if names.get("push"):
        out += _arrow("M330 255H228", _short(names["push"]), 354, 246, "end", "arrow outside")
    return out


def _arrow(d: str, label: str, x: float, y: float, anchor: str = "middle", class_: str = "arrow") -> list[Raw]:
    """A line that ends in a head, and its label."""
    line = tag("path", class_=class_, d=d)
    tip = tag("path", class_=class_.replace("arrow", "tip"), d=_head(d))
    return [line, tip, tag("text", label, class_="flow", x=x, y=y, text_anchor=anchor)]


def _head(d: str) -> str:
    """A triangle at the end of a path of absolute H, V and M and relative v, in the direction of its last piece."""
    import re

    x = y = 0.0
    direction = (0.0, 0.0)
    for letter, numbers in re.findall(r"([MHVv])([-\d. ]+)", d):
        values = [float(v) for v in numbers.split()]
        before = (x, y)
        if letter == "M":
            x, y = values
        elif letter == "H":
            x = values[0]
        else:
            y = y + values[0] if letter == "v" else values[0]
        direction = ((x > before[0]) - (x < before[0]), (y > before[1]) - (y < before[1]))
    dx, dy = direction
    tip = (x + 6 * dx, y + 6 * dy)
    left, right = (x - 4 * dx - 4 * dy, y - 4 * dy - 4 * dx), (x - 4 * dx + 4 * dy, y - 4 * dy + 4 * dx)
    return f"M{tip[0]:g} {tip[1]:g}L{left[0]:g} {left[1]:g}L{right[0]:g} {right[1]:g}Z"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
