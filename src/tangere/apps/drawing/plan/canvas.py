"""The paper: where it lies, how large it is, how a robot is told, and the plane through points that were touched.

Canvas frame: origin in the middle, x to the right and y up as seen by one who looks at the paper, z out of the paper
towards the pen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.apps.drawing.plan.reach import best_place
from tangere.errors import InvalidValue
from tangere.kinematics.checks import checked
from tangere.kinematics.rotation import (
    checked_rotation,
    matrix_from_rotation_vector,
    pose,
    pose_from_ur,
    rotation_vector_from_matrix,
)
from tangere.robots import Robot
from tangere.types import Array

# m: what one touch is worth where nothing better is known: the arm repeats within 0.03 to 0.1 mm (UR data sheets), and
# the moment of contact is found within a few 0.01 mm at touching speed
TOUCH_ERROR = 1e-4
# [m] and share: points nearer together than this, or this nearly in line (their spread across over that along), tell no
# tilt: with 0.1 mm of error in each touch the normal would be off by more than a degree
NEAR, IN_LINE = 0.01, 0.05
# A touched plane tilted more than this against the nominal one (z component of its normal: 60 degrees) is no correction
STEEP = 0.5


@dataclass(frozen=True)
class PlaneFit:
    """z = height + slope . (x, y) in canvas coordinates."""

    height: float  # m, at the canvas's middle
    slope: Array  # (2,) m/m
    residual: Array  # (k,) m, touched minus fitted, along z
    covariance: Array  # (3, 3) of (height, slope x, slope y); m, 1
    touch_error: float  # m, standard deviation of one touch that the covariance is based on

    @property
    def normal(self) -> Array:
        """(3,) unit normal in canvas axes."""
        n = np.array((-self.slope[0], -self.slope[1], 1.0))
        return np.asarray(n / np.linalg.norm(n))

    @property
    def tilt(self) -> float:
        """Angle [rad] between the nominal and the fitted plane."""
        return float(np.arctan(np.linalg.norm(self.slope)))

    @property
    def rms(self) -> float:
        """Root mean square of the residuals [m]: how uneven the paper is."""
        return float(np.sqrt(np.mean(self.residual**2)))

    def height_at(self, points: ArrayLike) -> Array:
        """z of the fitted plane (...) at points (..., 2) [m]."""
        return np.asarray(self.height + np.asarray(points, dtype=np.float64)[..., :2] @ self.slope)

    def uncertainty_at(self, points: ArrayLike) -> Array:
        """Standard deviation (...) [m] of `height_at`: sqrt(a^T covariance a), a = (1, x, y)."""
        p = np.asarray(points, dtype=np.float64)[..., :2]
        a = np.concatenate([np.ones((*p.shape[:-1], 1)), p], axis=-1)
        return np.asarray(np.sqrt(np.einsum("...i,ij,...j->...", a, self.covariance, a)))


def fit_plane(points: ArrayLike, touch_error: float = TOUCH_ERROR) -> PlaneFit:
    """The plane z = h + sx x + sy y with the smallest sum of squared z errors through points (k, 3), k >= 3 [m].

        covariance = sigma^2 (A^T A)^-1,  A = (1, x, y),  sigma^2 = max(touch_error^2, sum e^2/(k - 3))

    so that three points, which leave no residual, are not taken for perfect ones. Errors count along z: right for
    planes that are tilted a few degrees against the canvas they correct.
    """
    p = checked(points, (None, 3), "points")
    if p.ndim != 2 or len(p) < 3:
        raise InvalidValue(f"points: three or more touched points (k, 3) are needed, got shape {p.shape}")
    spread = np.linalg.svd(p[:, :2] - p[:, :2].mean(axis=0), compute_uv=False) / np.sqrt(len(p))
    if spread[0] < 0.5 * NEAR or spread[1] < IN_LINE * spread[0]:
        raise InvalidValue(f"points: lie in a line or on one spot and give no plane: {p.tolist()}")
    A = np.column_stack([np.ones(len(p)), p[:, :2]])
    solution = np.linalg.lstsq(A, p[:, 2], rcond=None)[0]
    slope = np.asarray(solution[1:], dtype=np.float64)
    if 1.0 / np.sqrt(1.0 + slope @ slope) < STEEP:
        raise InvalidValue(f"points: the touched plane is tilted by {np.rad2deg(np.arctan(np.hypot(*slope))):.0f} "
                           "degrees against the canvas; that is another surface, not a correction")
    residual = p[:, 2] - A @ solution
    variance = touch_error**2
    if len(p) > 3:
        variance = max(variance, float(residual @ residual) / (len(p) - 3))
    covariance = variance * np.linalg.inv(A.T @ A)
    return PlaneFit(float(solution[0]), slope, residual, covariance, float(np.sqrt(variance)))


# m: a sheet of 200 x 200 mm, what a UR3e reaches everywhere
SIZE = (0.2, 0.2)
# m: the table or wall goes on this far around the paper, more than any arm reaches
ENDLESS = 3.0
# m: a drawing board is this much larger than its paper on every side
BOARD = 0.05
# m: no UR reaches so far (UR20: 1.75 m); a larger number is most likely millimetres
FAR = 5.0


@dataclass(frozen=True)
class Canvas:
    """A flat rectangular paper in space, on a surface that goes on for `border` around it."""

    T_base_canvas: Array  # (4, 4); given so or as UR's x y z rx ry rz
    size: tuple[float, float] = SIZE  # m, width along x and height along y
    border: float = BOARD  # m; links of the arm must stay clear of the surface as far as that

    def __post_init__(self) -> None:
        given: Any = self.T_base_canvas
        T = np.array(checked(pose_from_ur(given) if np.shape(given) == (6,) else given, (4, 4), "T_base_canvas"))
        if T.shape != (4, 4) or not np.allclose(T[3], (0.0, 0.0, 0.0, 1.0)):
            raise InvalidValue(f"T_base_canvas: one pose (4, 4) with the last row 0 0 0 1 is needed, got {T.tolist()}")
        T[:3, :3] = checked_rotation(T[:3, :3])
        T.flags.writeable = False
        object.__setattr__(self, "T_base_canvas", T)
        object.__setattr__(self, "size", checked_size(self.size))
        if not (math.isfinite(self.border) and self.border >= 0.0):
            raise InvalidValue(f"border: must be finite and not negative [m], got {self.border!r}")

    # ---------------------------------------------------------------------------------------------------------- made

    @classmethod
    def table(
        cls, robot: Robot, size: tuple[float, float] = SIZE, *, height: float = 0.0, azimuth: float = 0.0
    ) -> Canvas:
        """On the table the robot stands on (`height` [m] above its base plane), where the arm has most room.

        azimuth [rad]: direction from the base, about base z from base x. Up on the paper is away from the robot.
        """
        return cls.tilted(robot, 0.0, size, azimuth=azimuth, height=height, border=ENDLESS)

    @classmethod
    def wall(cls, robot: Robot, size: tuple[float, float] = SIZE, *, azimuth: float = 0.0) -> Canvas:
        """On a wall in front of the robot, at the distance and height where the arm has most room."""
        return cls.tilted(robot, 0.5 * math.pi, size, azimuth=azimuth, border=ENDLESS)

    @classmethod
    def tilted(
        cls, robot: Robot, tilt: float, size: tuple[float, float] = SIZE, *, azimuth: float = 0.0,
        height: float | None = None, border: float = BOARD,
    ) -> Canvas:  # fmt: skip
        """On a board that leans by `tilt` [rad]: 0 is a table, pi/2 a wall, between a desk that faces the robot.

        Distance and (unless given) height of its middle are those where the arm, with the tool it holds, stays farthest
        from singularities, joint limits and the surface itself over the whole paper.
        """
        c, s = math.cos(tilt), math.sin(tilt)
        up = np.array((c, 0.0, s))
        normal = np.array((-s, 0.0, c))
        R = matrix_from_rotation_vector((0.0, 0.0, azimuth)) @ np.stack([np.cross(up, normal), up, normal], axis=1)
        outward = np.array((math.cos(azimuth), math.sin(azimuth), 0.0))
        T = best_place(robot, R, outward, checked_size(size), border, height)
        return cls(T, size, border)

    @classmethod
    def from_pose(cls, values: str | ArrayLike, size: tuple[float, float] = SIZE, *, border: float = BOARD) -> Canvas:
        """From "x,y,z,rx,ry,rz" of its middle in the robot's base: m and rotation vector in rad, as RTDE gives poses.

        The frame's z axis must point out of the paper, its y axis up. (The pendant shows the position in mm: divide by
        1000.)
        """
        if isinstance(values, str):
            words = values.replace(",", " ").split()
            try:
                values = [float(word) for word in words]
            except ValueError:
                raise InvalidValue(f"canvas pose {values!r}: six numbers x,y,z,rx,ry,rz in m and rad") from None
        numbers = np.asarray(values, dtype=np.float64)
        if numbers.shape != (6,) or not np.all(np.isfinite(numbers)):
            raise InvalidValue(f"canvas pose: six finite numbers x,y,z,rx,ry,rz in m and rad, got {numbers.tolist()}")
        if np.max(np.abs(numbers[:3])) > FAR:
            raise InvalidValue(f"canvas pose: {numbers[:3].tolist()} m is beyond any arm; millimetres? divide by 1000")
        return cls(pose(matrix_from_rotation_vector(numbers[3:]), numbers[:3]), size, border)

    @classmethod
    def from_points(
        cls, points: ArrayLike, size: tuple[float, float] | None = None, *, border: float = BOARD
    ) -> Canvas:
        """From three touched points (3, 3) [m], base axes: lower left, lower right and upper left corner of the paper.

        x = from the first to the second, y across it towards the third, z = x cross y. Without a size the corners give
        it; with one, the paper has its lower left corner at the first point.
        """
        p = checked(points, (3, 3), "points")
        if p.shape != (3, 3):
            raise InvalidValue(f"points: three points (3, 3) are needed, got shape {p.shape}")
        right, up = p[1] - p[0], p[2] - p[0]
        width = float(np.linalg.norm(right))
        if width < NEAR or np.linalg.norm(up) < NEAR:
            raise InvalidValue(f"points: must be {NEAR * 1e3:g} mm apart at least, got {p.tolist()}")
        x = right / width
        across = up - (up @ x) * x
        height = float(np.linalg.norm(across))
        if height < IN_LINE * float(np.linalg.norm(up)) or height < IN_LINE * width:
            raise InvalidValue(f"points: lie (nearly) in a line and give no plane: {p.tolist()}")
        y = across / height
        area = (width, height) if size is None else checked_size(size)
        T = np.eye(4)
        T[:3, 0], T[:3, 1], T[:3, 2] = x, y, np.cross(x, y)
        T[:3, 3] = p[0] + 0.5 * area[0] * x + 0.5 * area[1] * y
        return cls(T, area, border)

    # ---------------------------------------------------------------------------------------------------------- asked

    @property
    def R(self) -> Array:
        """(3, 3) R_base_canvas."""
        return self.T_base_canvas[:3, :3]

    @property
    def origin(self) -> Array:
        """(3,) the middle of the paper, base axes [m]."""
        return self.T_base_canvas[:3, 3]

    @property
    def normal(self) -> Array:
        """(3,) out of the paper, base axes."""
        return self.T_base_canvas[:3, 2]

    def to_base(self, points: ArrayLike) -> Array:
        """Points (..., 2) on the paper or (..., 3) with the height above it, in base axes [m]."""
        p = np.asarray(points, dtype=np.float64)
        if p.shape[-1] not in (2, 3):
            raise InvalidValue(f"points: (..., 2) or (..., 3) [m], got shape {p.shape}")
        return np.asarray(p @ self.R[:, : p.shape[-1]].T + self.origin)

    def from_base(self, points: ArrayLike) -> Array:
        """(..., 3) x, y on the paper and height above it, of points (..., 3) in base axes [m]."""
        return np.asarray((checked(points, (3,), "points") - self.origin) @ self.R)

    def as_pose(self) -> Array:
        """(6,) x, y, z, rx, ry, rz as `from_pose` reads it."""
        return np.concatenate([self.origin, rotation_vector_from_matrix(self.R)])

    def moved(self, shift: ArrayLike = (0.0, 0.0, 0.0), turn: float = 0.0, scale: float = 1.0) -> Canvas:
        """Moved by `shift` (3,) [m] along its own axes, turned by `turn` [rad] about its normal, its size scaled."""
        T = np.eye(4)
        T[:3, :3] = matrix_from_rotation_vector((0.0, 0.0, turn))
        T[:3, 3] = checked(shift, (3,), "shift")
        return replace(
            self, T_base_canvas=self.T_base_canvas @ T, size=(self.size[0] * scale, self.size[1] * scale)
        )

    def touched(self, points: ArrayLike) -> PlaneFit:
        """The plane through touched points (k, 3) [m], base axes, k >= 3, in this canvas's coordinates."""
        return fit_plane(self.from_base(checked(points, (None, 3), "points")))

    def corrected(self, points: ArrayLike) -> Canvas:
        """The canvas as found by touch: three or more points (k, 3) [m], base axes, touched by the pen's tip.

        The fitted plane replaces height and tilt; x, y and the turn about the normal, which touch does not tell, stay:
        the frame is tilted by the smallest rotation that brings z onto the found normal.
        """
        fit = self.touched(points)
        n = fit.normal
        axis = np.array((-n[1], n[0], 0.0))  # z cross n
        sine = float(np.linalg.norm(axis))
        R = np.eye(3) if sine < 1e-15 else matrix_from_rotation_vector(axis / sine * math.atan2(sine, n[2]))
        T = np.eye(4)
        T[:3, :3], T[2, 3] = R, fit.height
        return replace(self, T_base_canvas=self.T_base_canvas @ T)


def checked_size(size: tuple[float, float]) -> tuple[float, float]:
    """Two positive lengths [m]."""
    values = np.asarray(size, dtype=np.float64)
    if values.shape != (2,) or not np.all(np.isfinite(values)) or not np.all(values > 0.0):
        raise InvalidValue(f"size: two positive lengths (width, height) in m, got {size!r}")
    if np.max(values) > FAR:
        raise InvalidValue(f"size: {values.tolist()} m is larger than any arm draws; millimetres? divide by 1000")
    return float(values[0]), float(values[1])
