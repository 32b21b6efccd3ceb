"""How well an arm reaches poses: for each branch of the inverse kinematics its room to singularities and limits.

Room is a share: the margin there is, over the margin there must be. 1 is just enough; the smallest of all kinds, over
all poses, says how good a placement is. One kind is how far the links stay from the paper, from what it lies on, and
from each other.

A factory-calibrated arm has no closed form of its own. It differs from its nominal twin by millimetres: the twin's
closed form gives every branch, and Newton's method on all poses together does the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue, NoSolution
from tangere.kernels import ur
from tangere.kernels.solutions import ELBOW_UP, IKBatch
from tangere.kinematics.rotation import inverse_pose, matrix_from_rotation_vector, rotation_error
from tangere.model.link_shapes import base_shape, link_shapes
from tangere.robots import Robot
from tangere.types import Array

# Links that are compared with each other lie at least this many joints apart: neighbours touch by construction, and
# those two apart share the housings at their ends.
APART = 3


@dataclass(frozen=True)
class LinkSpheres:
    """The links' shapes as spheres, for quick distances: centres in link frames, as robot.link_poses gives them.

    Spheres stand on the axes of the shapes, one radius apart: between two of them the shape is thinner by 14 % of the
    radius at most; at the ends of a cylinder they are larger than the shape.
    """

    centre: Array  # (m, 3)
    radius: Array  # (m,)
    link: NDArray[np.intp]  # (m,) from 0
    base: Array  # (b, 3) of the foot, base frame
    base_radius: Array  # (b,)

    @classmethod
    def of(cls, robot: Robot) -> LinkSpheres:
        """From the model alone."""
        model = robot.model
        centres, radii, links = [], [], []
        for i, (parts, joint) in enumerate(zip(link_shapes(model), model.joints, strict=True)):
            T_link_joint = inverse_pose(joint.T_joint_link)
            for part in parts:
                if part.colour == "cap":  # thinner and only 8 mm longer than the housing it closes
                    continue
                points = _along(part.start, part.end, part.radius)
                centres.append(points @ T_link_joint[:3, :3].T + T_link_joint[:3, 3])
                radii.append(np.full(len(points), part.radius))
                links.append(np.full(len(points), i))
        foot = base_shape(model)
        base = _along(foot.start, foot.end, foot.radius)
        return cls(
            np.concatenate(centres),
            np.concatenate(radii),
            np.concatenate(links),
            base,
            np.full(len(base), foot.radius),
        )

    def places(self, link_poses: Array) -> Array:
        """(..., m, 3) centres in the base frame, of link poses (..., n, 4, 4)."""
        T = link_poses[..., self.link, :, :]
        return np.asarray((T[..., :3, :3] @ self.centre[:, :, None])[..., 0] + T[..., :3, 3])


def surface_distance(
    spheres: LinkSpheres, places: Array, T_base_canvas: Array, size: tuple[float, float], border: float
) -> tuple[Array, NDArray[np.intp]]:
    """Smallest distance (...) [m] of links 2 to n from the surface around a canvas, and the link (from 0) it is of.

    The surface is a block below the paper's rectangle, widened by the border on every side; inside it the distance is
    negative. Link 1 turns in place on the foot, wherever the table is, and is left out. places (..., m, 3), base axes.
    T_base_canvas (..., 4, 4) of the same leading axes, or one.
    """
    moving = spheres.link > 0
    R, p = T_base_canvas[..., None, :3, :3], T_base_canvas[..., None, :3, 3]
    local = (np.swapaxes(R, -1, -2) @ (places[..., moving, :] - p)[..., None])[..., 0]
    outside = np.maximum(np.abs(local[..., :2]) - (0.5 * np.asarray(size) + border), 0.0)
    beside = np.hypot(outside[..., 0], outside[..., 1])
    above = local[..., 2]
    distance = np.where(beside > 0.0, np.hypot(beside, np.maximum(above, 0.0)), above) - spheres.radius[moving]
    worst = np.argmin(distance, axis=-1)
    return np.take_along_axis(distance, worst[..., None], axis=-1)[..., 0], spheres.link[moving][worst]


def self_distance(spheres: LinkSpheres, places: Array) -> Array:
    """Smallest distance (...) [m] between links at least three joints apart, the foot counted as link 0."""
    least = np.full(places.shape[:-2], np.inf)
    groups = [(0, spheres.base, spheres.base_radius)]
    n = int(spheres.link.max()) + 1
    groups += [(i + 1, places[..., spheres.link == i, :], spheres.radius[spheres.link == i]) for i in range(n)]
    for i, first, r_first in groups:
        for j, second, r_second in groups:
            if j - i >= APART:
                gap = np.linalg.norm(first[..., :, None, :] - second[..., None, :, :], axis=-1)
                gap = gap - r_first[:, None] - r_second[None, :]
                least = np.minimum(least, gap.min(axis=(-2, -1)))
    return least


def _along(start: Array, end: Array, radius: float) -> Array:
    count = max(2, int(np.ceil(np.linalg.norm(end - start) / radius)) + 1)
    share = np.linspace(0.0, 1.0, count)[:, None]
    return np.asarray(start + share * (end - start))


# From an error of 1e-2 (mm and mrad of a calibration) Newton's method needs 1e-4, 1e-8, 1e-16; one more for safety
STEPS = 5
# m and rad: what is left where it has converged, and the largest step [rad] that is still a correction
LEFT, STEP_MAX = 1e-9, 0.5


def closed_form(robot: Robot) -> Robot:
    """The arm whose closed form is used: the nominal twin of a calibrated UR, else the arm itself."""
    nominal = robot._nominal
    return Robot(nominal) if nominal is not None and not ur.is_ur(robot.model) else robot


def polished(robot: Robot, T: Array, q: Array) -> tuple[Array, NDArray[np.bool_]]:
    """q (k, 6) with pose(q) = T (k, 4, 4), from near ones, and where that was reached: q += J^-1 (T - pose(q))."""
    q = q.copy()
    error = _error(robot, T, q)
    for _ in range(STEPS):
        J = robot.jacobian(q)
        regular = np.abs(np.linalg.det(J)) > 1e-9  # near singularities the pose is left as it is, and said to be missed
        step = np.zeros_like(q)
        step[regular] = np.linalg.solve(J[regular], error[regular][:, :, None])[:, :, 0]
        q += np.where(np.abs(step).max(axis=1, keepdims=True) < STEP_MAX, step, 0.0)
        error = _error(robot, T, q)
        if np.abs(error).max(initial=0.0) < LEFT:
            break
    return q, np.asarray(np.abs(error).max(axis=1) < LEFT)


def _error(robot: Robot, T: Array, q: Array) -> Array:
    """(k, 6) what is missing: position [m], then rotation vector [rad], base axes."""
    here = robot.pose(q)
    return np.concatenate([T[:, :3, 3] - here[:, :3, 3], rotation_error(T[:, :3, :3], here[:, :3, :3])], axis=1)


TURN = 2.0 * math.pi
# |sin q5| and |sin q3| that must be left (12 degrees): joint speeds grow by 1/sin, at 0.2 five times; at 50 mm/s still
# 1 rad/s or less. Stretched to sin q3 = 0.2 an arm stands 0.5 % before its full reach.
WRIST = ELBOW = 0.2
# Lever of the wrist about joint 1's axis, in the arm's plane, as a share of the arm's length: below, joint 1 has to
# turn fast for sideways motion (ten times faster than for the same motion at full stretch).
SHOULDER = 0.1
# rad, from every joint limit: 3 degrees, what a corrected canvas (2 degrees, 3 mm) may take
JOINT = math.radians(3.0)
# m, links to the surface around the paper: the shapes are good to about 10 mm, and 5 mm of canvas error are expected
SURFACE = 0.015
# m, links to each other: what a UR's own limit of the kind keeps
SELF = 0.005
# A room beyond this is as good as any other
PLENTY = 3.0
# m above the paper, where pen-up moves go: checked as well as the paper itself
HOVER = 0.02
KINDS = ("wrist", "elbow", "shoulder", "joints", "surface", "self")


@dataclass(frozen=True)
class Postures:
    """All branches of many poses: (..., k poses, 8 branches)."""

    q: Array  # (..., k, 8, 6), without jumps along k, turned to lie nearest to zero
    valid: NDArray[np.bool_]  # (..., k, 8)
    elbow_up: NDArray[np.bool_]  # (..., 8), for most of the poses
    distance: Array  # (..., k) m out of reach
    room: dict[str, Array]  # by kind, (..., k, 8)

    def total(self) -> Array:
        """(..., 8) smallest room of a branch over all poses; 0 where a pose is out of reach."""
        least = np.where(self.valid, np.min(np.stack(list(self.room.values())), axis=0), 0.0)
        return np.asarray(np.maximum(least.min(axis=-2), 0.0))

    def best(self) -> tuple[NDArray[np.intp], Array]:
        """(...) the branch with most room and that room; elbow up (the usual posture) where both have enough."""
        total = self.total()
        value = np.minimum(total, PLENTY) + np.where(self.elbow_up & (total >= 1.0), PLENTY, 0.0)
        # of equals the one with the smallest joint angles: least wound-up cables
        value = value - 1e-6 * np.abs(self.q).max(axis=(-3, -1))
        lane = np.argmax(value, axis=-1)
        return lane, np.take_along_axis(total, lane[..., None], axis=-1)[..., 0]


def arm_length(robot: Robot) -> float:
    """Shoulder to wrist, stretched [m]: |a2| + |a3|."""
    frames = robot.link_poses(np.zeros(robot.dof))
    return float(np.linalg.norm(frames[2, :3, 3] - frames[0, :3, 3]))


def postures(
    robot: Robot, T: Array, T_base_canvas: Array | None = None, size: tuple[float, float] = (0.0, 0.0),
    border: float = 0.0, spheres: LinkSpheres | None = None,
) -> Postures:  # fmt: skip
    """Rooms of poses T (..., k, 4, 4); with T_base_canvas (..., 4, 4) also those of the links' clearance."""
    if robot.dof != 6:
        raise InvalidValue(f"drawing needs an arm of the UR kind with 6 joints, {robot.name} has {robot.dof}")
    shape = T.shape[:-2]
    solver = closed_form(robot)
    poses = T.reshape(-1, 4, 4)
    batch = solver.inverse_kinematics(poses)
    assert isinstance(batch, IKBatch)
    if batch.q.shape[-2] != 8:
        raise InvalidValue(f"drawing needs an arm with the eight branches of a UR, {robot.name} has none")
    found, there = np.where(batch.valid[..., None], batch.q, 0.0), batch.valid.copy()
    if solver is not robot:
        pose, lane = np.nonzero(there)
        found[pose, lane], there[pose, lane] = polished(robot, poses[pose], found[pose, lane])
    valid, q = there.reshape(*shape, 8), found.reshape(*shape, 8, 6)
    q = _unwound(robot, q, valid)
    frames = robot.link_poses(q)
    wrist = frames[..., 4, :3, 3]
    lever = np.abs(wrist[..., 0] * np.cos(q[..., 0]) + wrist[..., 1] * np.sin(q[..., 0]))
    inside = np.minimum(q - robot.q_min, robot.q_max - q).min(axis=-1)
    room = {
        "wrist": np.abs(np.sin(q[..., 4])) / WRIST,
        "elbow": np.abs(np.sin(q[..., 2])) / ELBOW,
        "shoulder": lever / (SHOULDER * arm_length(robot)),
        "joints": np.clip(inside / JOINT, 0.0, PLENTY),
    }
    if T_base_canvas is not None:
        spheres = LinkSpheres.of(robot) if spheres is None else spheres
        places = spheres.places(frames)
        distance, _ = surface_distance(spheres, places, T_base_canvas[..., None, None, :, :], size, border)
        room["surface"] = np.clip(distance / SURFACE, 0.0, PLENTY)
        room["self"] = np.clip(self_distance(spheres, places) / SELF, 0.0, PLENTY)
    up = np.mean(((batch.flags & ELBOW_UP) > 0).reshape(*shape, 8), axis=-2) > 0.5
    return Postures(q, valid, up, batch.distance.reshape(shape), room)


def pen_orientation(lean: float = 0.0, towards: float = -0.5 * math.pi, spin: float = 0.0) -> Array:
    """R_canvas_tcp (3, 3) of a pen along tcp z: its tip down on the paper, the tool turned by `spin` about the pen.

    lean [rad]: angle between pen and normal; towards [rad]: direction on the paper, from its x axis, to which the
    pen's upper end leans (-pi/2: to the lower edge, as in a hand).
    """
    if not 0.0 <= lean < 0.45 * math.pi:
        raise InvalidValue(f"lean: from 0 to below 81 degrees, got {math.degrees(lean):g}")
    axis = np.array((-math.sin(towards), math.cos(towards), 0.0))
    down = np.diag([1.0, -1.0, -1.0])
    about = matrix_from_rotation_vector((0.0, 0.0, spin))
    return np.asarray(matrix_from_rotation_vector(lean * axis) @ down @ about)


def paper_points(size: tuple[float, float], hover: float = HOVER) -> Array:
    """(18, 3) corners, middles of the edges and the middle of a rectangle, on the paper and `hover` above it."""
    w, h = 0.5 * size[0], 0.5 * size[1]
    return np.array([(x, y, z) for z in (0.0, hover) for y in (-h, 0.0, h) for x in (-w, 0.0, w)])


def tip_poses(T_base_canvas: Array, R_canvas_tcp: Array, points: Array) -> Array:
    """(..., k, 4, 4) T_base_tcp with the tip at points (k, 3) of canvases (..., 4, 4)."""
    T = np.zeros((len(points), 4, 4))
    T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = R_canvas_tcp, points, 1.0
    return np.asarray(T_base_canvas[..., None, :, :] @ T)


def best_place(
    robot: Robot, R: Array, outward: Array, size: tuple[float, float], border: float, height: float | None
) -> Array:
    """T_base_canvas (4, 4), turned as R (3, 3), with its middle in the direction `outward` (3,) where room is largest.

    A grid over distance and height, in steps of 5 % of the arm's length: first by reach and singularities, then the
    best hundred by clearance too.
    """
    length = arm_length(robot)
    shoulder = float(robot.link_poses(np.zeros(robot.dof))[0, 2, 3])
    steps = np.arange(0.2, 1.3, 0.05) * length
    # the paper's lower edge not below the plane the robot stands on: most often there is a table
    lowest = 0.5 * size[1] * float(R[2, 1]) + 0.02
    heights = np.array([height]) if height is not None else np.arange(lowest, shoulder + 0.9 * length, 0.05 * length)
    T = np.zeros((len(steps), len(heights), 4, 4))
    T[..., :3, :3], T[..., 3, 3] = R, 1.0
    T[..., :3, 3] = steps[:, None, None] * outward
    T[..., 2, 3] += heights
    places = T.reshape(-1, 4, 4)
    points, down = paper_points(size), pen_orientation()
    rough = postures(robot, tip_poses(places, down, points)).best()[1]
    order = np.argsort(-rough, kind="stable")[:100]
    order = order[rough[order] > 0.0]
    if len(order):
        room = postures(robot, tip_poses(places[order], down, points), places[order], size, border).best()[1]
        best = int(np.argmax(np.minimum(room, PLENTY) + 1e-3 * rough[order]))
        if room[best] >= 1.0:
            found: Array = places[order[best]]
            return found
    raise NoSolution(
        f"{robot.name} reaches no place for a canvas of {1e3 * size[0]:.0f} x {1e3 * size[1]:.0f} mm turned that way; "
        "take a smaller one or another tilt"
    )


def _unwound(robot: Robot, q: Array, valid: NDArray[np.bool_]) -> Array:
    """Whole turns taken out: no jumps against the first valid pose of a branch, then each joint nearest to zero."""
    first = np.argmax(valid, axis=-2)[..., None, :, None]
    start = np.take_along_axis(q, np.broadcast_to(first, (*q.shape[:-3], 1, *q.shape[-2:])), axis=-3)
    near = start + (q - start) - TURN * np.rint((q - start) / TURN)
    seen = valid[..., None]
    high = np.max(np.where(seen, near, -np.inf), axis=-3, keepdims=True, initial=-1e3)
    low = np.min(np.where(seen, near, np.inf), axis=-3, keepdims=True, initial=1e3)
    middle = np.where(np.any(seen, axis=-3, keepdims=True), 0.5 * (low + high), 0.0)
    return np.asarray(near - np.where(robot.revolute, TURN * np.rint(middle / TURN), 0.0))
