"""How far the arm's links stay from the paper, from what it lies on, and from each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.kinematics.rotation import inverse_pose
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
