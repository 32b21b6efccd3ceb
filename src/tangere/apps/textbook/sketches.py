"""The figures of the documents, drawn by the code that computes what they show.

Frames as 000, 001 and 002 put them and frames shifted into the centres of mass (002 figure 3) on an arm to scale; and
003's sketches (its figures 1 to 10): dynamics, coordinates of a point, a body and its frames, the mapping between joint
space and task space, a SCARA, a floating base, a virtual displacement, the action, the pendulum, weights projected onto
the joints; and the two loops of computed torque (000 figure 2).
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
GROWN = 1.5  # how much larger an arm of half a metre is drawn beside its joint space
ARC = 0.45  # [m] radius of an arc that shows an angle
PLANE = [0, 2]  # of 003's planar arm: x and z
SUBS = "₀₁₂₃₄₅₆₇₈₉"
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
    """A point by its coordinates (003 figure 2): each of them where it is measured, angles as arcs with their letter.

    003 names the angles without drawing them: theta turns about k from i, phi leans from k.
    """
    chi = np.asarray(chi, dtype=float)
    p = position(system, chi)
    o, foot = np.zeros(3), np.array([p[0], p[1], 0.0])
    axes = [part for e, n in zip(np.eye(3), "ijk", strict=True)
            for part in (*_arrow(_flat([o, 1.3 * e]), "faint"), _text(_flat([1.4 * e])[0] + [-3, 4], n))]  # fmt: skip
    if system == "cartesian":
        corner = np.array([p[0], 0.0, 0.0])
        sides = [(o, corner, "x", "line"), (corner, foot, "y", "line"), (foot, p, "z", "line")]
        arcs, words = [], "r = x i + y j + z k"
    else:
        names = ("ρ", "z", "line") if system == "cylindrical" else ("", "", "faint")
        sides = [(o, foot, names[0], names[2]), (foot, p, names[1], names[2])]
        arcs = [([position("cylindrical", [ARC, a, 0.0]) for a in np.linspace(0.0, chi[1], 24)], "θ")]
        words = "r = ρ e_ρ + z k"
    if system == "spherical":
        arcs.append(([position(system, [ARC, chi[1], a]) for a in np.linspace(0.0, chi[2], 24)], "φ"))
        words = "r = r e_r"
    drawn = [_line(_flat([a, b]), ink) for a, b, _, ink in sides]
    drawn += [_text(_flat([(a + b) / 2])[0] + [6, 14], n) for a, b, n, _ in sides]
    drawn += [_line(_flat(arc), "strong") for arc, _ in arcs]
    drawn += [_text(1.3 * _flat([arc[12]])[0] - 0.3 * _flat([o])[0] + [-4, 4], n) for arc, n in arcs]
    return _sketch(
        f"a point in {system} coordinates", *_arrow(_flat([o, p]), "strong"), *axes, *drawn,
        _text(_flat([p])[0] + [8, -6], "r"), _text(np.array([10.0, SIDE - 12.0]), words),
    )  # fmt: skip


def body_sketch(place: ArrayLike = (1.2, 0.7), turned: float = 0.5, point: ArrayLike = (0.45, 0.35)) -> Figure:
    """A body with its frame B in the inertial frame A (003 figure 3): r_AP = r_AB + R_AB r_BP, place and point [m]."""
    at, r_BP, R = np.asarray(place, dtype=float), np.asarray(point, dtype=float), _turn(turned)
    o, P = np.zeros(2), at + R @ r_BP
    outline = [[0.75 * math.cos(a), 0.55 * math.sin(a)] for a in np.linspace(0.0, 2.0 * math.pi, 60)] @ R.T + at
    frames = [_arrow(_page([c, c + 0.5 * e]), "faint") for c, Q in ((o, np.eye(2)), (at, R)) for e in Q.T]
    ways = {"r_AB": (o, at), "R_AB r_BP": (at, P), "r_AP": (o, P)}
    return _sketch(
        "a body: inertial frame A, body frame B, r_AP = r_AB + R_AB r_BP", _line(_page(outline), "line"),
        *(part for frame in frames for part in frame),
        *(part for way in ways.values() for part in _arrow(_page(way), "strong")),
        *(_text(_page([(a + b) / 2])[0] + ([-40, -8] if n == "r_AP" else [8, 16]), n) for n, (a, b) in ways.items()),
        *(_text(_page([c])[0] + [-4, 16], n) for c, n in ((o, "A"), (at, "B"))), _text(_page([P])[0] + [6, -6], "P"),
    )  # fmt: skip


def mapping_sketch(arm: Robot, q: ArrayLike, reach: float = 0.45) -> Figure:
    """Joint space and task space of a planar arm (003 figure 4): a loop of q1 and q2 about q, and where the tool goes.

    x = f(q) takes each point of the loop (radius `reach` [rad]) to the other side, J(q) each velocity along it.
    """
    q = np.asarray(q, dtype=float)
    turns = np.linspace(0.0, 2.0 * math.pi, 73)
    loop = np.tile(q, (len(turns), 1))
    loop[:, :2] += reach * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    base = _joints(arm, q)[0]
    tool = GROWN * (arm.pose(loop)[:, PLANE, 3] - base)
    k = 9  # where on the loop: an eighth of a turn
    qd = np.zeros(arm.dof)
    qd[:2] = reach * np.array([-math.sin(turns[k]), math.cos(turns[k])])
    xd = GROWN * arm.jacobian(loop[k])[PLANE] @ qd
    left, right = np.array([0.75, 1.1]) - q[:2], np.array([3.2, 0.6])

    def axes(at: Array, names: tuple[str, str]) -> list[Raw]:
        ends = [at + 1.5 * e for e in np.eye(2)]
        return [part for end, n in zip(ends, names, strict=True)
                for part in (*_arrow(_page([at, end]), "faint"), _text(_page([end])[0] + [6, -4], n))]  # fmt: skip

    bent = [(1.9 + s, 2.0 + 0.25 * math.sin(math.pi * s)) for s in np.linspace(0.0, 1.0, 20)]
    back = [(2.9 - s, 0.25 - 0.25 * math.sin(math.pi * s)) for s in np.linspace(0.0, 1.0, 20)]
    here, there = loop[:, :2] + left, tool + right
    parts = [
        *axes(np.array([0.0, 0.3]), ("q₁", "q₂")), *axes(right - [0.2, 0.3], ("x", "z")),
        _line(_page(here), "line"), *_arrow(_page([here[k], here[k] + qd[:2]]), "strong"),
        _line(_page(GROWN * (_joints(arm, loop[k]) - base) + right), "faint"), _line(_page(there), "line"),
        *_arrow(_page([there[k], there[k] + xd]), "strong"), *_dots(np.stack([here[k], there[k]])),
        _text(_page([here[k] + qd[:2]])[0] + [4, -6], "q̇"), _text(_page([there[k]])[0] + [12, 4], "ẋ = J(q) q̇"),
        *_arrow(_page(bent), "line"), _text(_page([bent[8]])[0] + [-20, -10], "x = f(q)"),
        *_arrow(_page(back), "line"), _text(_page([back[12]])[0] + [-20, 18], "q = f⁻¹(x)"),
        _text(_page([(0.3, 2.35)])[0], "joint space"), _text(_page([(3.6, 2.35)])[0], "task space"),
    ]  # fmt: skip
    return Figure("mapping between joint space and task space", join(*parts), 2 * SIDE, SIDE)


def floating_base_sketch(arm: Robot, q: ArrayLike, turned: float = 0.5) -> Figure:
    """An arm in a plane on a base that floats: the base's frame against the world, joints and links (003)."""
    R = _turn(turned)
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
        _line(_page([here[-1], first]), "strong"),
        _text(_page([first])[0] + [6, -4], f"δr = J{SUBS[joint]} δq{SUBS[joint]}"),
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
    arc = [pivot + 0.5 * _turn(s * _angle(down, bob - pivot)) @ down for s in np.linspace(0.0, 1.0, 24)]
    return _sketch(
        "the pendulum", _line(_page(arc), "strong"), _text(_page([arc[12]])[0] + [-2, 16], "θ"),
        _text(_page([(pivot + bob) / 2])[0] + [8, 0], "ℓ"),
        _line(_page([pivot, pivot + 1.3 * down]), "faint"), _line(_page([pivot, bob]), "line"),
        *_dots(np.stack([pivot, bob])), _line(_page([bob, bob + 0.5 * down]), "strong"),
        _text(_page([bob + 0.5 * down])[0] + [6, 0], "m g"),
        _text(_page([pivot])[0] + [10, -8], f"g(q) = {hold:.2f} Nm"),
    )  # fmt: skip


def scara_sketch(q: ArrayLike = (0.5, 0.9, -0.4, -0.05)) -> Figure:
    """003's SCARA (figure 5) at q [rad, m]: a frame at every joint's link with the letter of its coordinate."""
    arm = robot("scara")
    return _with_frames(arm, q, arm.link_poses(q), ["α", "β", "γ", "ζ"], "q = (α, β, γ, ζ), x = (x, y, z, φ)")


def dynamics_sketch() -> Figure:
    """What dynamics asks (003 figure 1): accelerations from forces, and forces from accelerations."""
    boxes = [(150, 30, 290, "forward: q̈ = M⁻¹(τ + Jᵀ F - b - g)"), (150, 120, 290, "inverse: τ = M q̈ + b + g - Jᵀ F")]
    drawn = [part for box in boxes for part in _box(*box)]
    for y, words in ((50, ("τ, F, q, q̇", "q̈")), (140, ("q, q̇, q̈, F", "τ"))):
        drawn += [*_arrow([(60, y), (150, y)], "line"), *_arrow([(440, y), (500, y)], "line")]
        drawn += [_text(np.array([62, y - 8]), words[0]), _text(np.array([455, y - 8]), words[1])]
    return Figure("dynamics: forward and inverse", join(*drawn), 520, 180)


def projected_sketch(arm: Robot, q: ArrayLike) -> Figure:
    """Weights at the links' centres of mass, projected onto the joints (003 figure 10): g = sum of -J_Si^T F_gi."""
    q = np.asarray(q, dtype=float)
    poses, (J, _) = arm.link_poses(q), arm.link_jacobians(q)
    joints, weight, g = _joints(arm, q), [link.mass * arm.model.gravity for link in arm.model.links], np.zeros(arm.dof)
    drawn = [_line(_page(joints), "line"), *_dots(joints)]
    for i, link in enumerate(arm.model.links):
        g -= J[i].T @ weight[i]
        com = (poses[i, :3, :3] @ link.com + poses[i, :3, 3])[PLANE]
        tip = com + 0.5 * (weight[i] / np.linalg.norm(weight[i]))[PLANE]
        drawn += [*_arrow(_page([com, tip]), "strong"), _text(_page([tip])[0] + [4, 10], f"F{SUBS[i + 1]}")]
    words = ", ".join(f"{x:.2f}" for x in g)
    return _sketch("weights projected onto the joints", *drawn,
                   _text(np.array([10.0, SIDE - 12.0]), f"g = -Σ Jᵀ F = ({words}) Nm"))  # fmt: skip


def computed_torque_sketch() -> Figure:
    """The two loops of computed torque (000 figure 2): the inner one cancels what the model knows, the outer one is PD.

    q̈* = q̈d + Kv (q̇d - q̇) + Kp (qd - q),    τ = M̂(q) q̈* + N̂(q, q̇)
    """
    boxes = {
        "reference": (10, 70, 90, "qd q̇d q̈d"), "pd": (160, 70, 120, "Kp e + Kv ė + q̈d"),
        "mass": (345, 70, 70, "M̂(q)"), "rest": (345, 150, 70, "N̂(q, q̇)"), "arm": (520, 70, 90, "arm: M, N"),
    }  # fmt: skip
    drawn = [part for box in boxes.values() for part in _box(*box)]
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


def _turn(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s], [s, c]])


def _angle(a: Array, b: Array) -> float:
    """From a to b in the plane [rad]."""
    return math.atan2(a[0] * b[1] - a[1] * b[0], float(a @ b))


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


def _arrow(points: Sequence[tuple[float, float]] | Array, ink: str) -> list[Raw]:
    line = np.array(points, dtype=float)
    along = 8.0 * (line[-1] - line[-2]) / np.linalg.norm(line[-1] - line[-2])
    across = 0.5 * along[::-1] * [1, -1]
    head = np.stack([line[-1], line[-1] - along + across, line[-1] - along - across])
    return [_line(line, ink), tag("path", d=polyline(head), fill=INK[ink])]


def _box(x: float, y: float, width: float, words: str) -> list[Raw]:
    frame = tag("rect", x=x, y=y, width=width, height=40, fill="none", stroke=INK["line"], stroke_width=2)
    return [frame, _text(np.array([x + 8, y + 25]), words)]


def _dots(points: Array) -> list[Raw]:
    return [tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=4, fill=INK["line"]) for x, y in _page(points)]


def _text(at: Array, words: str) -> Raw:
    return tag("text", words, x=f"{at[0]:.1f}", y=f"{at[1]:.1f}", font_size=13, fill="#234")


def _sketch(title: str, *parts: Raw) -> Figure:
    return Figure(title, join(*parts), SIDE, SIDE)
