"""The figures of the documents, drawn by the code that computes what they show.

Frames as 000, 001 and 002 put them and frames shifted into the centres of mass (002 figure 3) on an arm to scale; and
003's sketches: coordinates of a point, a floating base, a virtual displacement, the action, the pendulum; and the two
loops of computed torque (000 figure 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tangere.apps.textbook.coordinates import System, position
from tangere.errors import InvalidValue
from tangere.figures.arm import HEIGHT, WIDTH, scene
from tangere.figures.axes import polyline
from tangere.figures.markup import Raw, join, tag
from tangere.figures.plots import Figure
from tangere.model.conventions import document_frames
from tangere.robots import Robot, robot
from tangere.types import Array

AXIS = 0.12  # m that an axis of a frame is long: readable on a UR10e of 1.3 m
SIDE = 320  # px of a sketch
SCALE = 110.0  # px per unit of a sketch
PLANE = [0, 2]  # of 003's planar arm: x and z
INK = {"line": "#456", "strong": "#b4490f", "faint": "#aab"}


def frames_figure(arm: Robot, q: ArrayLike, document: str) -> Figure:
    """A UR at q (6,) [rad, official angles] with its link frames as a document (000, 001, 002) puts them."""
    dh = arm.model.dh
    if dh is None or arm.dof != 6:
        raise InvalidValue(f"{arm.name}: the documents put frames on UR arms")
    T = document_frames(document, np.asarray(q, dtype=float), float(dh.a[1]), float(dh.a[2]), dh.d)
    return _with_frames(arm, q, T, [str(i + 1) for i in range(6)], f"frames as {document} puts them")


def centres_figure(arm: Robot, q: ArrayLike) -> Figure:
    """Every link frame shifted into the link's centre of mass (002 figure 3), at q (n,)."""
    T = arm.link_poses(q).copy()
    for i, link in enumerate(arm.model.links):
        T[i, :3, 3] += T[i, :3, :3] @ link.com
    return _with_frames(arm, q, T, [f"c{i + 1}" for i in range(arm.dof)], "centres of mass, axes of the link frames")


def _with_frames(arm: Robot, q: ArrayLike, T: Array, names: Sequence[str], what: str) -> Figure:
    states = np.atleast_2d(np.asarray(q, dtype=float))
    drawn = scene(arm, states, np.zeros(1), "frames", frames=False)
    every = np.concatenate([np.eye(4)[None], T])
    origins = every[:, None, :3, 3]
    triads = np.concatenate([origins, origins + AXIS * np.swapaxes(every[:, :3, :3], 1, 2)], axis=1)
    shown = replace(drawn, triads=triads[None], names=("0", *names))
    return Figure(f"{arm.model.title}: {what}", shown.drawn(0), WIDTH, HEIGHT)


def coordinates_sketch(system: System, chi: ArrayLike) -> Figure:
    """A point by its coordinates (003): how `position` gets from the origin to it, seen from above to the side."""
    chi = np.asarray(chi, dtype=float)
    p = position(system, chi)
    foot = np.array([p[0], p[1], 0.0])
    ways: dict[str, list[Array]] = {
        "cartesian": [np.array([p[0], 0.0, 0.0]), foot],
        "cylindrical": [*(position(system, [chi[0], a, 0.0]) for a in np.linspace(0.0, chi[1], 24)), foot],
        "spherical": [
            *(position(system, [chi[0], s * chi[1], 0.0]) for s in np.linspace(0.0, 1.0, 24)),
            *(position(system, [chi[0], chi[1], s * chi[2]]) for s in np.linspace(0.0, 1.0, 24)),
        ],
    }
    axes = [_line(_flat([np.zeros(3), 1.3 * e]), "faint") for e in np.eye(3)]
    names = [_text(_flat([1.38 * e])[0], n) for e, n in zip(np.eye(3), "xyz", strict=True)]
    way = _line(_flat([*ways[system], p]), "line")
    return _sketch(
        f"a point in {system} coordinates", *axes, *names, way, _line(_flat([np.zeros(3), p]), "strong"),
        _text(_flat([p])[0] + [8, -6], "r"),
    )  # fmt: skip


def floating_base_sketch(arm: Robot, q: ArrayLike, turned: float = 0.5) -> Figure:
    """An arm in a plane on a base that floats: the base's frame against the world, joints and links (003)."""
    c, s = math.cos(turned), math.sin(turned)
    R = np.array([[c, -s], [s, c]])
    place = np.array([0.9, 0.5])
    box = np.array([[-0.25, -0.2], [0.25, -0.2], [0.25, 0.2], [-0.25, 0.2], [-0.25, -0.2]]) @ R.T + place
    joints = (_joints(arm, q) - _joints(arm, q)[0]) @ R.T + place
    world = [_line(_page([np.zeros(2), e]), "faint") for e in 0.5 * np.eye(2)]
    base = [_line(_page([place, place + R @ e]), "strong") for e in 0.4 * np.eye(2)]
    return _sketch(
        "a floating base: world frame, base frame, arm", *world, _line(_page(box), "line"), *base,
        _line(_page(joints), "line"), *_dots(joints), _text(_page([np.zeros(2)])[0] + [4, 14], "world"),
        _text(_page([place])[0] + [8, 22], "base"),
    )  # fmt: skip


def virtual_displacement_sketch(arm: Robot, q: ArrayLike, joint: int, dq: float = 0.25) -> Figure:
    """A planar arm and the same with one joint displaced by dq [rad]: where its tool would go, delta r = J delta q."""
    q = np.asarray(q, dtype=float)
    moved = q + dq * (np.arange(arm.dof) == joint - 1)
    here, there = _joints(arm, q), _joints(arm, moved)
    first = here[-1] + dq * arm.jacobian(q)[PLANE, joint - 1]
    return _sketch(
        "a virtual displacement", _line(_page(there), "faint"), _line(_page(here), "line"), *_dots(here),
        _line(_page([here[-1], first]), "strong"), _text(_page([first])[0] + [6, -4], f"J_{joint} dq_{joint}"),
    )  # fmt: skip


def action_sketch(disturbed: Sequence[float] = (-0.6, -0.3, 0.3, 0.6)) -> Figure:
    """Ways of 003's pendulum from one place to another in the same time: the true one, and disturbed ones."""
    arm, steps = robot("pendulum"), 400
    q, qd, h = np.array([0.6]), np.zeros(1), 1.0 / steps  # 1 s of free swing
    path = []
    for _ in range(steps + 1):
        path.append(float(q[0]))
        qd = qd + h * arm.forward_dynamics(q, qd, np.zeros(1))
        q = q + h * qd
    t = np.linspace(0.0, 1.0, steps + 1)
    wave = np.sin(np.pi * t)

    def curve(e: float, ink: str) -> Raw:
        return _line(_page(np.stack([2.0 * t, 1.2 + np.array(path) + e * wave], axis=1)), ink)

    others = [curve(e, "faint") for e in disturbed]
    ends = _page([[0.0, 1.2 + path[0]], [2.0, 1.2 + path[-1]]])
    labels = (_text(ends[0] + [6, -8], "q(0)"), _text(ends[1] + [-34, -8], "q(T)"))
    return _sketch("ways from q(0) to q(T): on the true one the action is stationary", *others, curve(0.0, "strong"),
                   *labels)  # fmt: skip


def pendulum_sketch(q: float = 0.6) -> Figure:
    """003's pendulum at the angle q [rad] from its rest, with weight and joint torque to hold it."""
    arm = robot("pendulum")
    com = arm.link_poses([q])[0, :3, :3] @ arm.model.links[0].com + arm.link_poses([q])[0, :3, 3]
    pivot = np.array([1.2, 2.2])  # where there is room
    bob, down = com[PLANE] + pivot, arm.model.gravity[PLANE] / np.linalg.norm(arm.model.gravity)
    hold = float(arm.gravity_torque([q])[0])
    return _sketch(
        "the pendulum", _line(_page([pivot, pivot + 1.3 * down]), "faint"), _line(_page([pivot, bob]), "line"),
        *_dots(np.stack([pivot, bob])), _line(_page([bob, bob + 0.5 * down]), "strong"),
        _text(_page([bob + 0.5 * down])[0] + [6, 0], "m g"),
        _text(_page([pivot])[0] + [10, -8], f"g(q) = {hold:.2f} Nm"),
    )  # fmt: skip


def computed_torque_sketch() -> Figure:
    """The two loops of computed torque (000 figure 2): the inner one cancels what the model knows, the outer one is PD.

    q̈* = q̈d + Kv (q̇d - q̇) + Kp (qd - q),    τ = M̂(q) q̈* + N̂(q, q̇)
    """
    boxes = {
        "reference": (10, 70, 90, "qd q̇d q̈d"), "pd": (160, 70, 120, "Kp e + Kv ė + q̈d"),
        "mass": (345, 70, 70, "M̂(q)"), "rest": (345, 150, 70, "N̂(q, q̇)"), "arm": (520, 70, 90, "arm: M, N"),
    }  # fmt: skip
    drawn: list[Raw] = []
    for x, y, width, words in boxes.values():
        drawn.append(tag("rect", x=x, y=y, width=width, height=40, fill="none", stroke=INK["line"], stroke_width=2))
        drawn.append(_text(np.array([x + 8, y + 25]), words))
    ways = {
        "": [(100, 90), (160, 90)], "q̈*": [(280, 90), (345, 90)], "+": [(415, 90), (460, 90)],
        "τ": [(480, 90), (520, 90)], "N̂": [(415, 170), (470, 170), (470, 100)],
    }  # fmt: skip
    for words, points in ways.items():
        drawn += [*_arrow(points, "line"), _text(np.array(points[0]) + [12, -8], words)]
    drawn.append(tag("circle", cx=470, cy=90, r=10, fill="none", stroke=INK["line"], stroke_width=2))
    inner = [(565, 110), (565, 215), (380, 215), (380, 190)]
    outer = [(600, 110), (600, 265), (220, 265), (220, 110)]
    for points, words in ((inner, "inner loop: q, q̇ into the model"), (outer, "outer loop: q, q̇ measured")):
        drawn += [*_arrow(points, "strong"), _text(np.array(points[2]) + [8, -6], words)]
    return Figure("computed torque: its inner and outer loop", join(*drawn), 630, 290)


def _joints(arm: Robot, q: ArrayLike) -> Array:
    """Joints and tool (n + 1, 2) of 003's planar arm, which moves in the plane of x and z."""
    first = arm.model.joints[0].T_parent_joint[PLANE, 3]
    return np.concatenate([first[None], arm.link_poses(q)[:-1][:, PLANE, 3], arm.pose(q)[None, PLANE, 3]])


def _flat(points: Sequence[ArrayLike]) -> Array:
    """Points in space (m, 3) on the sketch [px]: x towards the reader to the left, y to the right, z up."""
    p = np.array([np.asarray(x, dtype=float) for x in points])
    return np.stack([130 + SCALE * (0.95 * p[:, 1] - 0.55 * p[:, 0]), 210 - SCALE * (p[:, 2] - 0.45 * p[:, 0])], axis=1)


def _page(points: Sequence[ArrayLike] | Array) -> Array:
    """Points of the plane (m, 2) on the sketch [px]."""
    p = np.array([np.asarray(x, dtype=float) for x in points])
    return np.stack([40 + SCALE * p[:, 0], SIDE - 40 - SCALE * p[:, 1]], axis=1)


def _line(points: Array, ink: str) -> Raw:
    return tag("path", d=polyline(points), fill="none", stroke=INK[ink], stroke_width=2)


def _arrow(points: Sequence[tuple[float, float]], ink: str) -> list[Raw]:
    line = np.array(points, dtype=float)
    along = 8.0 * (line[-1] - line[-2]) / np.linalg.norm(line[-1] - line[-2])
    across = 0.5 * along[::-1] * [1, -1]
    head = np.stack([line[-1], line[-1] - along + across, line[-1] - along - across])
    return [_line(line, ink), tag("path", d=polyline(head), fill=INK[ink])]


def _dots(points: Array) -> list[Raw]:
    return [tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=4, fill=INK["line"]) for x, y in _page(points)]


def _text(at: Array, words: str) -> Raw:
    return tag("text", words, x=f"{at[0]:.1f}", y=f"{at[1]:.1f}", font_size=13, fill="#234")


def _sketch(title: str, *parts: Raw) -> Figure:
    return Figure(title, join(*parts), SIDE, SIDE)
