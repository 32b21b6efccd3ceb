"""The block diagram of a run: who hands what to whom, the inner loop of torques and the outer one of touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tangere.figures.axes import drawing, polyline
from tangere.figures.markup import Raw, tag

BOX_W, BOX_H = 184, 66  # px
LINE = 25  # characters that fit into a line of a box at 13 px
TITLES = {"reference": "Reference", "controller": "Controller", "plant": "Robot", "observer": "Observer",
          "detection": "Detection", "reaction": "Reaction"}  # fmt: skip
Points = Sequence[tuple[float, float]]


def diagram(names: Mapping[str, str], tall: bool = False) -> Raw:
    """reference -> controller -> robot, and back by observer -> detection -> reaction, as SVG; `tall`: narrow screens.

    names: what stands in the boxes reference, controller, plant, observer, detection, reaction, and beside the arrow
    push; absent ones get a dash. An event that nobody reacts to ends in the log.
    """
    if tall:
        at = {key: (64.0, 26.0 + 108.0 * k) for k, key in enumerate(TITLES)}
        width, height = 380, 26 + 108 * len(TITLES) - 30
    else:
        at = {"reference": (14.0, 64.0), "controller": (318.0, 64.0), "plant": (622.0, 64.0),
              "observer": (622.0, 214.0), "detection": (318.0, 214.0), "reaction": (14.0, 214.0)}  # fmt: skip
        width, height = 820, 308
    reacts = bool(names.get("reaction"))
    parts: list[Raw] = [] if tall else _loops(reacts)
    for key, title in TITLES.items():
        x, y = at[key]
        name = names.get(key) or ("–" if key != "reaction" else "none: events go to the log")
        lines = _lines(name)
        parts += [
            tag("rect", tag("title", name), class_=f"box {key}", x=x, y=y, width=BOX_W, height=BOX_H, rx=7),
            tag("text", title, class_="kind", x=x + BOX_W / 2, y=y + (18 if len(lines) > 1 else 25)),
        ]
        first = y + (36 if len(lines) > 1 else 46)
        parts += [tag("text", line, class_="name", x=x + BOX_W / 2, y=first + 17 * k) for k, line in enumerate(lines)]
    parts += _tall(names, reacts) if tall else _wide(names, reacts)
    title = "Block diagram: reference, controller, robot, observer, detection, reaction"
    return drawing(title, width, height, *parts, class_="tall" if tall else "wide")


def _lines(name: str) -> list[str]:
    """A name in at most two lines that fit their box."""
    lines = [""]
    for word in name.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) <= LINE or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    lines = [_short(line) for line in lines]
    return lines if len(lines) <= 2 else [lines[0], _short(" ".join(lines[1:]))]


def _short(name: str) -> str:
    return name if len(name) <= LINE else name[: LINE - 1] + "…"


def _loops(reacts: bool) -> list[Raw]:
    """Which boxes are in the inner loop and which in the outer one."""
    outer = "outer loop: touch" if reacts else "outer loop: touch, open"
    return [
        tag("rect", class_="loop", x=306, y=34, width=512, height=138, rx=10),
        tag("text", "inner loop: every period", class_="loop", x=316, y=50),
        tag("rect", class_="loop", x=2, y=198, width=816, height=106, rx=10),
        tag("text", outer, class_="loop", x=12, y=298),
    ]


def _wide(names: Mapping[str, str], reacts: bool) -> list[Raw]:
    out = [
        *_arrow([(198, 97), (318, 97)], "q, q̇, q̈ desired", 252, 88),
        *_arrow([(502, 97), (622, 97)], "torque τ", 562, 88),
        *_arrow([(676, 130), (676, 154), (410, 154), (410, 130)], "q, q̇ measured", 543, 148),
        *_arrow([(752, 130), (752, 214)], "q, q̇, τ", 760, 189, "start"),
        *_arrow([(622, 247), (502, 247)], "residual r", 562, 238),
        *_arrow([(318, 247), (198, 247)], "events", 258, 238),
    ]
    if reacts:
        out += _arrow([(106, 214), (106, 184), (364, 184), (364, 130)], "takes over", 206, 178)
    if names.get("push"):
        out += _arrow([(714, 12), (714, 64)], names["push"], 706, 24, "end", "outside")
    return out


def _tall(names: Mapping[str, str], reacts: bool) -> list[Raw]:
    labels = ("q, q̇, q̈ desired", "torque τ", "q, q̇, τ", "residual r", "events")
    out: list[Raw] = []
    for k, label in enumerate(labels):
        top = 26.0 + 108 * k + BOX_H
        out += _arrow([(156, top), (156, top + 42)], label, 166, top + 26, "start")
    out += _arrow([(64, 275), (26, 275), (26, 167), (64, 167)], "feedback", 31, 226, "start")
    if reacts:
        out += _arrow([(248, 599), (352, 599), (352, 167), (248, 167)], "takes over", 346, 590, "end")
    if names.get("push"):
        out += _arrow([(318, 275), (248, 275)], names["push"], 372, 262, "end", "outside")
    return out


def _arrow(points: Points, label: str, x: float, y: float, anchor: str = "middle", class_: str = "") -> list[Raw]:
    """A line from a box to a box that ends in a head, and its label."""
    line = np.array(points, dtype=np.float64)
    along = line[-1] - line[-2]
    u = along / np.hypot(*along)
    side, neck = np.array([-u[1], u[0]]), line[-1] - 9.0 * u
    head = np.stack([line[-1], neck + 4.5 * side, neck - 4.5 * side])
    line[-1] = neck
    return [
        tag("path", class_=f"arrow {class_}".strip(), d=polyline(line)),
        tag("path", class_=f"tip {class_}".strip(), d=polyline(head) + "Z"),
        tag("text", label, class_=f"flow {class_}".strip(), x=x, y=y, text_anchor=anchor),
    ]
