"""URDF in: a serial arm from a URDF file, with revolute, continuous, prismatic and fixed joints about any axis."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from tangere.errors import ModelFileError, UnknownName
from tangere.model.frames import MOUNTINGS, inverse, rotation_rpy, transform
from tangere.model.inertia import check_body, joined, moved
from tangere.model.model import Array, Drives, Joint, JointKind, Link, Model, Source, frozen
from tangere.model.urdf_tree import Edge, Element, Tree, read_tree

_TIPS = ("tcp", "tool0")  # what ROS calls the frame at the end of an arm, ours first


def from_urdf(path: Path, *, tip: str | None = None, base: str | None = None) -> Model:
    """The Model of the serial arm in a URDF file.

    The arm runs from the base to the tip. Fixed joints are merged and the bodies on both sides joined; a moving joint
    beside the way to the tip (a gripper's finger) is held at zero. A link's frame is its URDF frame.

    tip: the link whose frame is the tcp. Default: `tcp` or `tool0` if the file has one, else the end of the only chain
        of moving joints; where several chains exist the error lists them.
    base: the link whose frame is the base. Default: a link `base` fixed to the root (in ROS the controller's own base
        frame, yawed by 180 degrees against base_link), else the root.
    Gravity is 9.81 m/s2 along -z of the root. An effort or velocity of 0, or of 1e9 and more, counts as unknown (inf),
    a damping or friction of 0 as unknown (nan): such files use them as fillers.
    Meshes, collision shapes, transmissions and plugins are not read; mimic, floating and planar joints are refused.
    """
    tree = read_tree(path)
    base = _base(tree) if base is None else _known(tree, base, "base")
    T_root_base, before = _rigid(tree, base)
    if before:
        raise ModelFileError(f"{path}: base {base!r} hangs on moving joints: {', '.join(e.name for e in before)}")
    tip = _tip(tree) if tip is None else _known(tree, tip, "tip")
    way = tree.way(tip)
    moving = [edge for edge in way if edge.kind != "fixed"]
    if not moving:
        raise ModelFileError(f"{path}: there is no moving joint between {tree.root!r} and the tip {tip!r}")
    joints, links = [], []
    T = inverse(T_root_base)  # from the last link frame (at first the base) to the frame of the link at hand
    for edge in way:
        T = T @ edge.T_parent_child
        if edge.kind == "fixed":
            continue
        joints.append(_joint(edge, T))
        links.append(_body(tree, edge.child, way, f"{path}, link {edge.child!r}"))
        T = np.eye(4)
    R = T_root_base[:3, :3]
    gravity = R.T @ np.array(MOUNTINGS["table"])
    sources = tuple(
        Source(group, "approximated", f"URDF {path.name}, which does not say where its numbers come from")
        for group in ("kinematics", "limits", "mass", "com", "inertia", "drives")
    )
    name = tree.name
    arm = (tuple(joints), tuple(links), _drives(moving), gravity, T, None, None, sources)
    return frozen(Model(name, name, "urdf", *arm))


def _known(tree: Tree, link: str, what: str) -> str:
    if link not in tree.links:
        raise UnknownName(f"{tree.file}: {what} {link!r} is not a link; links: {', '.join(tree.links)}")
    return link


def _rigid(tree: Tree, link: str) -> tuple[Array, list[Edge]]:
    """Pose of a link in the root at zero, and the moving joints on the way to it."""
    T = np.eye(4)
    way = tree.way(link)
    for edge in way:
        T = T @ edge.T_parent_child
    return T, [edge for edge in way if edge.kind != "fixed"]


def _base(tree: Tree) -> str:
    return "base" if "base" in tree.links and not _rigid(tree, "base")[1] else tree.root


def _tip(tree: Tree) -> str:
    """The end of the only chain of moving joints, or one of the usual names at it."""
    ends = [edge.child for edge in tree.edges if edge.kind != "fixed" and not _moves_on(tree, edge.child)]
    if len(ends) > 1:
        raise ModelFileError(
            f"{tree.file}: several chains start at {tree.root!r}; choose one with tip=, they end at {', '.join(ends)}"
        )
    if not ends:
        raise ModelFileError(f"{tree.file}: has no moving joint")
    fixed = [link for link in tree.below(ends[0]) if not tree.children[link]]
    for name in _TIPS:
        if name in tree.below(ends[0]):
            return name
    return fixed[0] if len(fixed) == 1 else ends[0]


def _moves_on(tree: Tree, link: str) -> bool:
    below = set(tree.below(link))
    return any(edge.kind != "fixed" and edge.parent in below for edge in tree.edges)


def _joint(edge: Edge, T_link_child: Array) -> Joint:
    """The joint of an edge, its frame turned so that the axis is z; T_link_child: from the last link frame to it."""
    turn = transform(axis_to_z(_axis_of(edge.element)), (0.0, 0.0, 0.0))
    limit = edge.element.maybe("limit")
    q_min, q_max, qd_max, tau_max = -math.inf, math.inf, math.inf, math.inf
    if limit is not None:
        qd_max, tau_max = (_bound(limit, key) for key in ("velocity", "effort"))
    if edge.kind != "continuous":
        limit = edge.element.child("limit")
        q_min, q_max = limit.number("lower", 0.0), limit.number("upper", 0.0)
        if not q_min < q_max:
            raise limit.error(f"of joint {edge.name!r} needs lower < upper, got {q_min:g} and {q_max:g}")
        q_min = -math.inf if q_min <= -UNLIMITED else q_min
        q_max = math.inf if q_max >= UNLIMITED else q_max
    kind: JointKind = "prismatic" if edge.kind == "prismatic" else "revolute"
    return frozen(Joint(edge.name, kind, T_link_child @ turn, inverse(turn), q_min, q_max, qd_max, tau_max))


def _bound(limit: Element, key: str) -> float:
    value = limit.number(key, 0.0)
    if value < 0.0:
        raise limit.error(f"needs {key} >= 0, got {value:g}")
    return math.inf if value == 0.0 or value >= UNLIMITED else value


def _axis_of(element: Element) -> Array:
    """Unit vector of a joint's axis."""
    part = element.maybe("axis")
    axis = np.array((1.0, 0.0, 0.0)) if part is None else part.numbers("xyz", 3, (1.0, 0.0, 0.0))
    norm = float(np.linalg.norm(axis))
    if norm < 1e-6:  # shorter than any rounding of a unit vector: no direction was meant
        raise (part or element).error(f"of joint {element.name()!r} is no direction: {axis.tolist()}")
    return np.asarray(axis / norm)


def axis_to_z(axis: Array) -> Array:
    """A rotation R with R z = axis (unit): exact for the axes of the frame, else the shortest turn from z to it."""
    x, y, z = (float(value) for value in axis)
    for plain, rpy in (((0, 0, 1), (0, 0, 0)), ((1, 0, 0), (0, 90, 0)), ((0, 1, 0), (-90, 0, 0))):
        for sign in (1.0, -1.0):
            if (x, y, z) == tuple(sign * value for value in plain):
                R = rotation_rpy(*np.deg2rad(rpy))
                return R if sign > 0 else R @ np.diag((1.0, -1.0, -1.0)) + 0.0
    if z < 0.0:  # the formula below is singular at -z: turn over first
        flip = np.diag((1.0, -1.0, -1.0))
        return flip @ _shortest(x, -y, -z)
    return _shortest(x, y, z)


def _shortest(x: float, y: float, z: float) -> Array:
    """R = I + K + K^2 / (1 + z), K the cross-product matrix of z_axis x axis = (-y, x, 0); z >= 0."""
    K = np.array([[0.0, 0.0, x], [0.0, 0.0, y], [-x, -y, 0.0]])
    return np.asarray(np.eye(3) + K + K @ K / (1.0 + z))


def _body(tree: Tree, link: str, way: list[Edge], what: str) -> Link:
    """All bodies that move with a link, joined: over fixed joints, and over moving ones beside the way to the tip."""
    on_way = {edge.child for edge in way if edge.kind != "fixed"}
    total = tree.links[link]
    pending = [(edge, edge.T_parent_child) for edge in tree.children[link]]
    while pending:
        edge, T = pending.pop()
        if edge.child in on_way:
            continue
        total = joined(total, moved(tree.links[edge.child], T))
        pending += [(below, T @ below.T_parent_child) for below in tree.children[edge.child]]
    check_body(what, total.mass, total.com, total.inertia, point_mass=True)
    return frozen(Link(link, total.mass, total.com, total.inertia))


def _drives(moving: list[Edge]) -> Drives:
    unknown = np.full(len(moving), math.nan)
    coulomb, viscous = unknown.copy(), unknown.copy()
    for i, edge in enumerate(moving):
        part = edge.element.maybe("dynamics")
        if part is not None:
            friction, damping = part.number("friction", 0.0), part.number("damping", 0.0)
            coulomb[i] = friction if friction > 0.0 else math.nan
            viscous[i] = damping if damping > 0.0 else math.nan
    return frozen(Drives(unknown.copy(), unknown.copy(), coulomb, viscous))


# What stands for "no limit": URDF demands a number and has no infinity. Far beyond any joint; the importer knows it.
UNLIMITED = 1e9
