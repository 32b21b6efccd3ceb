"""What friction remembers: the lubricant's film, which lags behind the speed, and how much of it there is today."""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from tangere.observe.drive_model import DriveModel
from tangere.types import Array

# [rad/s] by which a film has become thick, and [rad] of travel over which it follows the speed. Joint 1 of a UR3e at
# 0.03 to 0.1 rad/s needs 0.2 to 0.4 rad to reach its friction; the rms of 40 runs changes by less than 2 % between
# 0.05 and 0.1 rad/s and between 0.08 and 0.15 rad.
FILM_SPEED = 0.05
FILM_TRAVEL = 0.08
# [s] over which the level of a day is forgotten: grease warms up in minutes. On a UR3e 20 s and an hour differ by 2 %.
MEMORY = 60.0
# Standard deviations (of the level as it is known by then, and of what else is left, together) that one sample counts
# for at most: a push, ten times larger and more, teaches as little as that
LIMIT = 2.0
MOST = 3.0  # standard deviations that the level may reach: what is more is no friction
LONGEST = 0.1  # [s] without a sample, beyond which nothing is learned from the next
STEP = 0.01  # [s] from one look at film and level to the next: half the lag of the residual; between, samples are cheap


class FrictionState:
    """Takes off a residual what friction has beyond its law of q and qd, from what the log has shown up to now.

        r = -tanh(qd / width) (film (w - u) + a) + n
        u = exp(-|qd| / FILM_SPEED),   dw = (u - w) |dq| / FILM_TRAVEL,   w = 0 at first
        a <- a - k tanh(qd / width) clip(r + ...),    k = h P / (h P + level_noise),    P = level_sigma^2 at first

    The film of a gear is built up by speed and thins out at crawling, over a travel: friction is smaller than its law
    while a joint slows down or has just begun to crawl (the frictional lag of boundary lubrication). Beside it, Coulomb
    friction of one gear differs by some per cent with the day and its temperature: one number `a` [Nm] per joint by a
    Kalman filter whose variance P falls with the seconds of motion, and is forgotten over MEMORY; after the first
    seconds a long push is hardly learned, and never more than MOST level_sigma of it. A joint that stands
    (drive.moving) changes nothing. Where `film` and `level_sigma` are 0 the residual is handed back as it is.
    """

    __slots__ = (
        "_age", "_drive", "_film", "_more", "_most", "_noise", "_prior", "_scale", "_spread", "_standstill", "_thin",
        "_variance", "idle", "level",
    )  # fmt: skip

    def __init__(self, drive: DriveModel) -> None:
        self._drive = drive
        self._scale, self._standstill, self._film = 1.0 / drive.width, drive.standstill, drive.film
        self._prior = drive.level_sigma**2
        # a noise of 0 is none that was identified: 1 keeps k at 0 where the prior is 0
        self._noise = np.where(drive.level_noise > 0.0, drive.level_noise, 1.0)
        self._spread = drive.spread**2
        self._most = MOST * drive.level_sigma
        self.idle = not (np.any(drive.film) or np.any(drive.level_sigma))  # whether it never changes anything
        self.reset()

    def reset(self) -> None:
        """As before a log."""
        self.level = np.zeros(self._drive.dof)  # a (n,) Nm: more friction than the law has
        self._variance = self._prior.copy()
        self._thin = np.zeros(self._drive.dof)  # w (n,)
        self._more = np.zeros(self._drive.dof)  # (n,) [Nm], friction beyond its law as of the last look
        self._age = 0.0  # [s] since then

    @property
    def sigma(self) -> Array:
        """Standard deviation (n,) [Nm] of the level."""
        return np.asarray(np.sqrt(self._variance))

    def update(self, h: float, residual: Array, qd: Array, hold: bool = False) -> Array:
        """The residual (n,) [Nm] without what film and level explain; h [s] since the sample before.

        hold: during an alarm nothing is learned of the level. A residual or velocity that is not finite never is.
        """
        if self.idle:
            return residual
        turned = np.tanh(qd * self._scale)
        known = 0.0 < h <= LONGEST
        self._age = self._age + h if known else 0.0
        if known and self._age < STEP - 1e-9:  # sums of periods must not miss a step by their rounding
            turned *= self._more
            turned += residual
            return turned
        speed = np.abs(qd)
        if not isfinite(float(speed.dot(speed))):  # one sample that cannot be used must not stay in the film
            return np.asarray(residual + turned)
        moving = speed > self._standstill
        want = np.exp(speed * (-1.0 / FILM_SPEED))
        self._thin += -np.expm1(speed * moving * (-self._age / FILM_TRAVEL)) * (want - self._thin)
        film = self._film * (self._thin - want)
        left = np.asarray(residual + turned * (self.level + film))
        if known:
            self._learn(self._age, left, turned, moving, hold)
        self._more, self._age = self.level + film, 0.0
        return left

    def _learn(self, h: float, left: Array, turned: Array, moving: NDArray[np.bool_], hold: bool) -> None:
        """Level and variance after h seconds of which `left` is what they did not explain."""
        fade = h / MEMORY
        self._variance += 2.0 * fade * (self._prior - self._variance)
        level = self.level * (1.0 - fade)
        if not hold and isfinite(float(left.dot(left))):
            limit = LIMIT * np.sqrt(self._variance + self._spread)
            gain = h * self._variance
            gain /= gain + self._noise
            gain *= moving
            self._variance *= 1.0 - gain
            gain *= turned
            gain *= np.minimum(np.maximum(left, -limit), limit)
            level = np.minimum(np.maximum(level - gain, -self._most), self._most)
        self.level = level


def without_friction_state(drive: DriveModel, time: Array, residual: Array, qd: Array) -> Array:
    """A whole log (N, n) [Nm] as FrictionState.update gives it sample by sample, from its start, never held."""
    state = FrictionState(drive)
    if state.idle:
        return residual
    out = np.empty_like(residual)
    for k, h in enumerate(np.diff(time, prepend=np.nan).tolist()):
        out[k] = state.update(h, residual[k], qd[k])
    return out
