"""The drive of each joint: motor current to torque, friction through standstill, rotor inertia, gear ripple."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import ArrayLike

from tangere.dynamics.laws import direction, drive_friction, loaded_coulomb, ripple_amplitude, ripple_torque
from tangere.errors import InvalidValue
from tangere.model.model import Drives
from tangere.types import Array

# [rad/s] over which Coulomb friction turns round, where no log says otherwise. On 40 runs of a UR3e what is left of the
# elbow's torque, on logs that were not used, falls from 0.190 to 0.172 Nm between 0.02 and 0.01 and no further below;
# the noise of a UR's velocity (some 1e-3 rad/s) forbids much less. Other recorders may need more: identification
# chooses, joint by joint. (Ten times as much, on a UR10, was a log that had been smoothed.)
WIDTH = 0.008
# [rad/s] below which a joint counts as standing: ten times the noise of a UR's velocity, and 2.5 widths, where the
# smooth Coulomb term has reached 98.7 %.
STANDSTILL = 0.02
# Orders of the ripple per turn of the joint that are looked for. The strain wave gears of UR arms have a ratio of 101:
# the motor turns 101 times against the housing, whose poles it feels (6, 7, 8, 9 and 11 times a turn were seen), and
# 100 times against the flexible ring, whose teeth its two lobes meet. Chosen on the residual of 40 runs of a UR3e.
RIPPLE_ORDERS = (100, 101, 200, 202, 400, 600, 606, 707, 808, 909, 1111)
RIPPLES = ("ripple", "ripple_load", "ripple_drag")  # of each order: plain, of the load, of the direction

_ONE_FOR_ALL = ("width", "film", "level_sigma", "level_noise", "lag")  # may be given as one number


@dataclass(frozen=True)
class DriveModel:
    """What a drive does between current and joint, with the sign of M qdd + C qd + g + friction = tau + tau_ext.

        tau = gain current
        friction = (coulomb + load |g(q)|) tanh(qd / width) + viscous qd + quadratic qd |qd| + offset
                   + sum_k (a_k + c_k g(q) + e_k s) sin(k q) + (b_k + d_k g(q) + f_k s) cos(k q)    k in orders
        s = tanh(qd / width)
        M(q) <- M(q) + diag(rotor_inertia)

    Coulomb friction in a loaded gear grows with the load that it carries (`load`, without unit); the ripple is the
    meshing of the gear's teeth, which the load bends and which rub (`s`), and the motor's poles. Smooth through qd = 0,
    where it says only the offset and the ripple: a standing joint is held by stiction anywhere within +- `stiction` of
    that, which no model of q and qd can tell. `moving` separates the two regimes, `band` says how much is not known in
    each.
    Entries are nan where not known (gain) and 0 where a term is not supported by data.
    """

    gain: Array  # (n,) [Nm/A] of motor current, nan where not known
    rotor_inertia: Array  # (n,) [kg m2] on the joint side
    coulomb: Array  # (n,) [Nm]
    viscous: Array  # (n,) [Nm s/rad]
    offset: Array  # (n,) [Nm]
    quadratic: Array  # (n,) [Nm s2/rad2], usually negative: shear thinning of the grease
    load: Array  # (n,) [Nm] of friction per Nm of gravity torque
    ripple: Array  # (n, 2 len(orders)) Nm: a, b of each order
    stiction: Array  # (n,) [Nm], half width of what a standing joint may hide
    spread: Array  # (n,) [Nm], standard deviation of what is left while moving
    mean_load: Array  # (n,) [Nm], mean |g| over the motions the model comes from, for torque(qd) without a position
    orders: tuple[int, ...] = ()
    ripple_load: Array = field(default_factory=lambda: np.array(0.0))  # (n, 2 len(orders)) c, d: without unit
    ripple_drag: Array = field(default_factory=lambda: np.array(0.0))  # (n, 2 len(orders)) [Nm] e, f
    width: Array = field(default_factory=lambda: np.array(WIDTH))  # (n,) [rad/s], or one for all
    standstill: float = STANDSTILL  # [rad/s]
    delay: float = 0.0  # [s] by which reported torque lags reported motion: tau at t belongs to q and qd of t - delay
    # What FrictionState takes off a residual, 0: nothing. (n,) Nm of friction that a lubricant's film hides while it
    # lags behind the speed; (n,) Nm, standard deviation of Coulomb friction from one log to the next; and what of the
    # rest still counts after a second of motion, (n,) Nm2 s
    film: Array = field(default_factory=lambda: np.array(0.0))
    level_sigma: Array = field(default_factory=lambda: np.array(0.0))
    level_noise: Array = field(default_factory=lambda: np.array(0.0))
    # (n,) [s] by which viscous and quadratic friction follow the speed when a twin runs freely (free_run, refined).
    # A law of the speed now (torque, friction) has none
    lag: Array = field(default_factory=lambda: np.array(0.0))
    # [Hz] cutoff of the low-pass, forwards and backwards, of the logs that the model comes from; 0: none. The law is
    # the arm's, with the steps that such logs have lost (unsmoothed gives them back)
    smoothing: float = 0.0
    # of each joint the orders that it has, and of sine and cosine the three kinds (2, 3, orders)
    _waves: tuple[tuple[Array, Array], ...] = field(init=False, repr=False, compare=False, default=())
    _scale: Array = field(init=False, repr=False, compare=False, default_factory=lambda: np.zeros(0))
    _coulomb: Array = field(init=False, repr=False, compare=False, default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        n = np.shape(self.coulomb)
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name.startswith("_") or entry.name in ("orders", "standstill", "delay", "smoothing"):
                continue
            want = (*n, 2 * len(self.orders)) if entry.name in RIPPLES else n
            array = np.array(value, dtype=np.float64)
            array = np.broadcast_to(array, n).copy() if entry.name in _ONE_FOR_ALL and array.ndim == 0 else array
            if entry.name in RIPPLES[1:] and not np.any(array):  # none, whatever the orders are
                array = np.zeros(want)
            if array.shape != want or (entry.name != "gain" and not np.all(np.isfinite(array))):
                raise InvalidValue(f"{entry.name}: finite numbers of shape {want}, got {value!r}")
            if entry.name not in ("offset", "quadratic", "load", *RIPPLES) and np.any(array < 0.0):
                raise InvalidValue(f"{entry.name}: must not be negative, got {array.tolist()}")
            array.flags.writeable = False
            object.__setattr__(self, entry.name, array)
        if not (np.all(self.width > 0.0) and self.standstill > 0.0):
            raise InvalidValue(f"width, standstill: > 0 [rad/s], got {self.width.tolist()}, {self.standstill!r}")
        if not 0.0 <= self.delay < 1.0:
            raise InvalidValue(f"delay: 0 to 1 s, got {self.delay!r}")
        if not 0.0 <= self.smoothing < np.inf:
            raise InvalidValue(f"smoothing: 0 (none) or a cutoff [Hz], got {self.smoothing!r}")
        object.__setattr__(self, "_scale", 1.0 / self.width)
        waves = np.stack([getattr(self, name) for name in RIPPLES]).reshape(3, *n, len(self.orders), 2)
        some, orders = np.asarray(waves.any(axis=(0, 3))), np.array(self.orders, dtype=np.float64)
        own = tuple((orders[has], waves[:, j, has].transpose(2, 0, 1)) for j, has in enumerate(some))
        object.__setattr__(self, "_waves", own)
        object.__setattr__(self, "_coulomb", self.coulomb + self.load * self.mean_load)

    @classmethod
    def of(cls, drives: Drives) -> DriveModel:
        """From an arm's data alone (robot.drives): what is not known there counts as 0, gains stay nan."""
        n = len(drives.gain)
        zero = np.zeros(n)
        known = {name: np.nan_to_num(getattr(drives, name), nan=0.0) for name in ("rotor_inertia", "viscous")}
        coulomb = np.nan_to_num(drives.coulomb, nan=0.0)
        return cls(
            gain=drives.gain, coulomb=coulomb, offset=zero, quadratic=zero, load=zero, ripple=np.zeros((n, 0)),
            stiction=coulomb, spread=zero, mean_load=zero, orders=(), **known,
        )  # fmt: skip

    @property
    def dof(self) -> int:
        """Number of joints."""
        return len(self.coulomb)

    def motor_torque(self, current: ArrayLike) -> Array:
        """tau = gain current (..., n) [Nm] from motor currents [A]; raises where a gain is not known."""
        if not np.all(np.isfinite(self.gain)):
            unknown = ", ".join(str(j + 1) for j in np.flatnonzero(~np.isfinite(self.gain)))
            raise InvalidValue(f"no gain [Nm/A] is known for joint {unknown}: currents cannot be turned into torque")
        return np.asarray(np.asarray(current, dtype=np.float64) * self.gain, dtype=np.float64)

    def torque(self, qd: Array) -> Array:
        """Friction (..., n) [Nm] at the mean load and without ripple, for observers that ask with the velocity only."""
        out: Array = drive_friction(qd, self._scale, self._coulomb, self.viscous, self.quadratic, self.offset)
        return out

    def friction(self, q: Array, qd: Array, gravity_torque: Array) -> Array:
        """The whole law (..., n) [Nm]; gravity_torque: g(q) (..., n) [Nm] of the robot. Not checked, cheap."""
        coulomb = loaded_coulomb(self.coulomb, self.load, gravity_torque)
        out: Array = drive_friction(qd, self._scale, coulomb, self.viscous, self.quadratic, self.offset)
        for j, (orders, waves) in enumerate(self._waves):
            if len(orders):
                own = slice(j, j + 1)
                turned = direction(qd[..., own], self._scale[own])
                load = gravity_torque[..., own]
                sine, cosine = (ripple_amplitude(a, c, e, load, turned) for a, c, e in waves)
                angle = q[..., own] * orders
                out[..., j] += np.sum(ripple_torque(sine, cosine, np.sin(angle), np.cos(angle)), axis=-1)
        return out

    def moving(self, qd: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which joints move (..., n): |qd| above the standstill speed."""
        return np.asarray(np.abs(qd) > self.standstill)

    def band(self, qd: Array) -> Array:
        """How far friction may differ from the law (..., n) [Nm]: `spread` while moving, `stiction` at standstill."""
        return np.where(self.moving(qd), self.spread, np.maximum(self.stiction, self.spread))
