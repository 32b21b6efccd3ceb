"""Where an arm may be: inside a box of free space, and not in itself; by the simple shapes of its links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.kernels.ur import is_ur
from tangere.model.link_shapes import base_shape, link_shapes
from tangere.model.model import Model
from tangere.robots import Robot
from tangere.types import Array

Mask = NDArray[np.bool_]
MARGIN = 0.05  # [m] between two links, and between a link and the faces of the box: covers, cables, shapes by eye
TOOL = 0.1  # [m] from the flange out that are kept free for what is mounted, where nobody says how long it is
TOOL_RADIUS = 0.04  # [m] of the rod that it is taken for: a closed gripper's fingers
# Neighbours touch by construction, and so do links with one very short link between them (the wrists of a UR): pairs
# that meet in more than this share of random postures are not asked
_ALWAYS = 0.6
_POSTURES = 200  # random ones, for that question
_CHUNK = 4000  # postures looked at in one go: some 50 MB


@dataclass(frozen=True)
class Box:
    """A box of free space in base axes: its lowest and highest corner (3,) [m]."""

    low: Array
    high: Array

    @classmethod
    def of(cls, corners: Sequence[float]) -> Box:
        """From x, y, z [m] of two opposite corners."""
        ends = np.asarray(corners, dtype=np.float64)
        if ends.shape != (6,) or not np.all(np.isfinite(ends)):
            raise InvalidValue(f"box: x, y, z of two opposite corners, six numbers in m, got {corners!r}")
        low, high = np.minimum(ends[:3], ends[3:]), np.maximum(ends[:3], ends[3:])
        if np.any(high - low < 2.0 * MARGIN):
            raise InvalidValue(f"box: {' x '.join(f'{side:g}' for side in high - low)} m is too thin for an arm")
        return cls(low, high)

    @classmethod
    def around(cls, robot: Robot) -> Box:
        """All that the arm can reach; of a UR on its side of the surface that it is mounted on (z = 0 of the base)."""
        steps = (joint.T_parent_joint @ joint.T_joint_link for joint in robot.model.joints)
        reach = sum(float(np.linalg.norm(T[:3, 3])) for T in steps) + 0.3  # room for a tool
        return cls(np.array([-reach, -reach, 0.0 if is_ur(robot.model) else -reach]), np.array([reach, reach, reach]))

    def __str__(self) -> str:
        sides = zip("xyz", self.low, self.high, strict=True)
        return ", ".join(f"{axis} {low:.3g} to {high:.3g}" for axis, low, high in sides) + " m"

    def holds(self, point: Array) -> Mask:
        """Whether points (..., 3) [m] lie inside."""
        return np.asarray(np.all((point >= self.low) & (point <= self.high), axis=-1))


class FreeSpace:
    """Says of postures whether the arm is inside a box and clear of itself, each by MARGIN.

    Links are capsules (model.link_shapes): housings and tubes, and a rod of `tool` [m] beyond the flange (or to the
    tcp, where that is further). The whole arm beyond its first link must be in the box. Where the shoulder itself is
    outside the box it is the last two links and the tool alone (`whole` is False).
    """

    def __init__(self, robot: Robot, box: Box, tool: float = TOOL) -> None:
        self.robot, self.box = robot, box
        bodies, ends, radii = _capsules(robot.model, tool)
        self._body, self._ends, self._radius = bodies, ends, radii
        shoulder = robot.link_poses(np.zeros(robot.dof))[0, :3, 3]
        self.whole = bool(box.holds(shoulder))
        first = 2 if self.whole or robot.dof < 4 else robot.dof - 1
        self._inside = bodies >= first
        self._pairs = self._far_apart()

    def free(self, q: Array) -> Mask:
        """Which postures (K, n) are free (K,)."""
        parts = [self._free(q[k : k + _CHUNK]) for k in range(0, len(q), _CHUNK)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)

    def clearance(self, q: Array) -> tuple[Array, Array]:
        """Least distance [m] to the box's faces and between two links (K,) each, of postures (K, n); no margin."""
        points = self._points(q)
        return self._to_faces(points), self._apart(points)

    def face_in_the_way(self, q: Array, fewest: int) -> tuple[int, float] | None:
        """The face of the box that is moved the least to make at least so many of these postures (K, n) free.

        0 to 2: the lower x, y, z, 3 to 5: the upper ones; and where it had to be [m]. None where no face alone does it.
        """
        points = self._points(q)
        points = points[self._apart(points) >= MARGIN]
        own, r = points[:, self._inside], self._radius[self._inside][:, None, None]
        gaps = np.concatenate([own - self.box.low - r, self.box.high - own - r], axis=-1).min(axis=(1, 2)) - MARGIN
        best: tuple[float, int] | None = None
        for face in range(6):
            missing = np.sort(-gaps[(np.delete(gaps, face, axis=1) >= 0.0).all(axis=1), face])
            if len(missing) >= fewest and (best is None or missing[fewest - 1] < best[0]):
                best = float(missing[fewest - 1]), face
        if best is None:
            return None
        by, face = best
        return face, float(self.box.low[face] - by if face < 3 else self.box.high[face - 3] + by)

    def _free(self, q: Array) -> Mask:
        points = self._points(q)
        good = np.asarray(self._to_faces(points) >= MARGIN)
        good[good] = self._apart(points[good]) >= MARGIN
        return good

    def _points(self, q: Array) -> Array:
        """Ends of all capsules (K, S, 2, 3) [m], base axes."""
        frames = self.robot.link_poses(q)
        whole = np.concatenate([np.broadcast_to(np.eye(4), (len(q), 1, 4, 4)), frames], axis=1)[:, self._body]
        return np.asarray(np.einsum("ksij,sej->ksei", whole[..., :3, :3], self._ends) + whole[:, :, None, :3, 3])

    def _to_faces(self, points: Array) -> Array:
        own, r = points[:, self._inside], self._radius[self._inside][:, None]
        gaps = [(own - self.box.low).min(axis=-1) - r, (self.box.high - own).min(axis=-1) - r]
        return np.asarray(np.minimum(*gaps).min(axis=(1, 2), initial=np.inf))

    def _apart(self, points: Array) -> Array:
        if not len(self._pairs) or not len(points):
            return np.full(len(points), np.inf)
        a, b = self._pairs.T
        gap = segment_distances(points[:, a], points[:, b]) - (self._radius[a] + self._radius[b])
        return np.asarray(gap.min(axis=1))

    def _far_apart(self) -> NDArray[np.int64]:
        """Pairs (P, 2) of capsules whose distance is asked: of bodies that are not neighbours, nor always close."""
        count = len(self._body)
        pairs = [(a, b) for a in range(count) for b in range(a) if abs(self._body[a] - self._body[b]) > 1]
        self._pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        random = np.random.default_rng(0)
        q = random.uniform(-np.pi, np.pi, (_POSTURES, self.robot.dof))
        q = np.clip(q, self.robot.q_min, self.robot.q_max)
        points = self._points(q)
        a, b = self._pairs.T
        gap = segment_distances(points[:, a], points[:, b]) - (self._radius[a] + self._radius[b])
        return np.asarray(self._pairs[np.mean(gap < MARGIN, axis=0) < _ALWAYS])


def _capsules(model: Model, tool: float) -> tuple[NDArray[np.int64], Array, Array]:
    """Body (S,) (0: the foot), ends (S, 2, 3) [m] in the body's link frame and radius (S,) [m] of each shape."""
    bodies, ends, radii = [0], [_inset(base_shape(model).start, base_shape(model).end, 0.0)], [base_shape(model).radius]
    for i, parts in enumerate(link_shapes(model)):
        T = np.linalg.inv(model.joints[i].T_joint_link)
        for part in parts:
            if part.colour == "cap":
                continue
            inset = 0.0 if part.round else part.radius
            bodies.append(i + 1)
            ends.append(_inset(part.start, part.end, inset) @ T[:3, :3].T + T[:3, 3])
            radii.append(part.radius)
    tcp = model.T_flange_tcp[:3, 3]
    reach = tcp if np.linalg.norm(tcp) > tool else tool * model.T_flange_tcp[:3, 2]
    if np.linalg.norm(reach) > TOOL_RADIUS:
        bodies.append(model.dof)
        ends.append(_inset(np.zeros(3), reach, TOOL_RADIUS))
        radii.append(TOOL_RADIUS)
    return np.array(bodies), np.stack(ends), np.array(radii)


def _inset(start: Array, end: Array, by: float) -> Array:
    """Both ends (2, 3), moved inwards: a capsule inside a cylinder; what its corners lack is less than MARGIN."""
    along = end - start
    length = float(np.linalg.norm(along))
    step = along * (min(by, 0.5 * length) / length) if length > 0.0 else along
    return np.stack([start + step, end - step])


def segment_distances(one: Array, other: Array) -> Array:
    """Least distance (...,) [m] between straight segments (..., 2, 3).

    The nearest pair lies inside both, or has an end of one of them: the least of both cases.
    """
    a, u = one[..., 0, :], one[..., 1, :] - one[..., 0, :]
    b, v = other[..., 0, :], other[..., 1, :] - other[..., 0, :]
    w = a - b
    uu, vv, uv = (np.sum(x * y, axis=-1) for x, y in ((u, u), (v, v), (u, v)))
    uw, vw = np.sum(u * w, axis=-1), np.sum(v * w, axis=-1)
    across = uu * vv - uv**2
    flat = across < 1e-12 * np.maximum(uu * vv, 1e-12)  # parallel: an end is among the nearest points
    s = np.clip(np.where(flat, 0.0, (uv * vw - vv * uw) / np.where(flat, 1.0, across)), 0.0, 1.0)
    best = np.full(s.shape, np.inf)
    for start in (s, np.zeros_like(s), np.ones_like(s)):
        t = np.clip((uv * start + vw) / np.maximum(vv, 1e-18), 0.0, 1.0)
        foot = np.clip((uv * t - uw) / np.maximum(uu, 1e-18), 0.0, 1.0)
        gap = w + foot[..., None] * u - t[..., None] * v
        best = np.minimum(best, np.linalg.norm(gap, axis=-1))
    return best
