"""Joint friction: one law for plants, controllers and observers, so that all of them mean the same torque."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from tangere.dynamics import laws
from tangere.errors import InvalidValue
from tangere.kinematics.checks import Array, checked
from tangere.model.model import Drives

# rad/s (m/s) over which Coulomb friction turns round. Sharper and measured noise at rest (some 1e-3 rad/s on a UR)
# becomes torque: 16.9 Nm * 1e-3 / 0.02 = 0.8 Nm; at 1 kHz an explicit plant with a UR10e's rotor inertia needs > 0.005
# (coulomb h / inertia = 2.7 Nm * 1 ms / 0.61 kg m2). Wider and a slowly moving arm feels too light.
WIDTH = 0.02


sliding_friction: Callable[..., Array] = laws.sliding_friction  # the same law, of arrays


@dataclass(frozen=True)
class JointFriction:
    """Torque that opposes the motion of each joint, with the sign of M qdd + C qd + g + friction = tau + tau_ext.

        friction(qd) = coulomb tanh(qd / width) + viscous qd

    The tanh is the smooth form of sign(qd): within 1 % of it for |qd| > 2.7 width. There is no stiction in it: at
    qd = 0 it holds nothing, a resting arm creeps. 000 eq 98 has the viscous part only (F_v, printed in N: it is Nm).
    """

    coulomb: Array  # (n,) Nm
    viscous: Array  # (n,) Nm s/rad
    width: float = WIDTH  # [rad/s] > 0
    _scale: float = field(init=False, repr=False, compare=False, default=0.0)
    _dry: bool = field(init=False, repr=False, compare=False, default=True)

    def __post_init__(self) -> None:
        coulomb, viscous = checked(self.coulomb, (None,), "coulomb"), checked(self.viscous, (None,), "viscous")
        if coulomb.ndim != 1 or coulomb.shape != viscous.shape:
            raise InvalidValue(f"coulomb, viscous: one number per joint each, got {coulomb.shape} and {viscous.shape}")
        if np.any(coulomb < 0.0) or np.any(viscous < 0.0):
            raise InvalidValue(f"coulomb, viscous: must not be negative, got {coulomb.tolist()}, {viscous.tolist()}")
        if not (np.isfinite(self.width) and self.width > 0.0):
            raise InvalidValue(f"width: must be positive and finite [rad/s], got {self.width!r}")
        for name, array in (("coulomb", coulomb), ("viscous", viscous)):
            array = array.copy()
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "_scale", 1.0 / self.width)
        object.__setattr__(self, "_dry", bool(np.any(coulomb > 0.0)))

    @classmethod
    def of(cls, drives: Drives, width: float = WIDTH) -> JointFriction:
        """The friction of those drives (robot.drives); what is not known there (nan) counts as 0."""
        return cls(np.nan_to_num(drives.coulomb, nan=0.0), np.nan_to_num(drives.viscous, nan=0.0), width)

    @classmethod
    def none(cls, n: int) -> JointFriction:
        """No friction in any of n joints."""
        return cls(np.zeros(n), np.zeros(n))

    def scaled(self, factor: ArrayLike) -> JointFriction:
        """The same law times `factor` >= 0, one number or one per joint: a colder arm, or a partial compensation."""
        share = checked(factor, (), "factor")
        return JointFriction(np.asarray(self.coulomb * share), np.asarray(self.viscous * share), self.width)

    def torque(self, qd: Array) -> Array:
        """friction(qd) (..., n) [Nm] for qd (..., n) [rad/s]; not checked, it is called every period."""
        if not self._dry:
            viscous: Array = self.viscous * qd
            return viscous
        return sliding_friction(qd, self._scale, self.coulomb, self.viscous)
