"""A plane through touched points, by least squares, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import checked
from tangere.types import Array

# m: what one touch is worth where nothing better is known: the arm repeats within 0.03 to 0.1 mm (UR data sheets), and
# the moment of contact is found within a few 0.01 mm at touching speed
TOUCH_ERROR = 1e-4
# Points whose spread across is less than this share of that along lie in a line: no tilt about it is known
IN_LINE = 0.05
# m: points nearer together tell no tilt
NEAR = 0.01
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
