"""The paper as the pen has found it so far, how stiff it is, and the gains and speeds that follow from that.

Gains come from the stability bounds of the force loops: nothing here is found by trial.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tangere.errors import InvalidValue

# share of a bound that is used. Routh's bound at 0.3 leaves a gain margin of 3.3 (10 dB) and, for these third-order
# loops, more than 45 degrees of phase
SHARE = 0.3
STIFFNESS = (1e3, 2e5)  # N/m, what an estimate is held within: a sponge, and steel on a wooden table
STIFFEST = 1e5  # N/m, what is assumed until a paper has been pressed: stable for all softer ones
DAMPING = 0.7  # of critical, of a pen on its paper: an overshoot of 5 %
DAMPING_MAX = 250.0  # 1/s: 0.5 rad (29 degrees) over the 2 ms from a joint's speed to the torque that answers it
TOUCH_SPEED_MAX = 1e-2  # m/s
# Without a sensor a touch is felt by how fast its force grows. N/s that are felt within 10 ms: 5 to 30 standard
# deviations of the joints' speeds, by how the pen sticks to the paper, for an alarm at 6: see JointTouch
BLIND_RATE = 300.0
BLIND_PEAK = 0.7  # of the force wanted, at most, by the touch itself
# m/s. Least: on hard paper a slower touch gains nothing (3e-3 m/s at 1e5 N/m: the same largest force in four drawings,
# that of the first touch, before k is known). Most: a wrong guess of k costs 10 N
BLIND_SPEED = (TOUCH_SPEED_MAX, 3e-2)


@dataclass(frozen=True)
class HybridGains:
    """Normal direction of hybrid control, as accelerations: a = kp e + integral of ki e - kv v."""

    kp: float  # m/s2 per N
    ki: float  # m/s2 per N s
    kv: float  # 1/s


@dataclass(frozen=True)
class HeightGains:
    """Height PI: Z = -(kp e + ki integral of e)."""

    kp: float  # m/N
    ki: float  # m/(N s)


def hybrid_gains(stiffness: float, mass: float, omega: float, delay: float) -> HybridGains:
    """Gains for three poles at omega [rad/s] against a spring, or what the spring itself does if that is faster.

    With the measured force k x compensated, `delay` [s] late, and kp on the same measurement,

        x'' = -k x / m + (1 / m - kp) k x(t - delay) - kv x' - ki k int x

    Poles at omega: k kp = 3 omega^2, k ki = omega^3, kv = 3 omega + (kp - 1 / m) k delay, the last against the negative
    damping of the delay. Its phase of about 3 omega delay is refused beyond 0.5 rad (29 degrees of the 71 that triple
    poles have). But kp is 1 / m at least: there compensation and kp cancel, what was measured late plays no part, and
    the paper holds the pen by k / m > 3 omega^2. With less kp the compensation would take that away: an acceleration
    d that nobody foresees (wrong masses, friction that begins or ends) makes up to d k / (3 omega^2) of force, 50 N per
    m/s2 at 1e5 N/m and 25 rad/s; with 1 / m it makes m d, 3 N.

    kv is then DAMPING of critical, if that is more, up to DAMPING_MAX. Routh, for kp = 1 / m: ki = omega / (3 m) <
    kv / m, used to 1/9 at most, whatever k is: also where the paper is softer than assumed.
    """
    _positive(stiffness=stiffness, mass=mass, omega=omega)
    if 3.0 * omega * delay > 0.5 * (1.0 + 1e-9):  # but for rounding
        raise InvalidValue(f"omega: at most {0.5 / (3.0 * delay):.3g} rad/s with a delay of {delay:g} s, got {omega!r}")
    kp = max(3.0 * omega**2 / stiffness, 1.0 / mass)
    damping = min(2.0 * DAMPING * math.sqrt(stiffness / mass), DAMPING_MAX)
    kv = max(3.0 * omega, damping) + (kp - 1.0 / mass) * stiffness * delay
    return HybridGains(kp, kp * omega / 3.0, kv)


def height_gains(stiffness: float, mass: float, kp: float, kd: float, *, fed: bool = True) -> HeightGains:
    """Gains of 004's height PI on computed torque with gains kp [1/s2], kd [1/s], against a spring k = stiffness.

        1/k_eff = 1/k + 1/(mass kp)      (fed: the measured wrench is compensated, the arm does not yield: k_eff = k)
        one period late, ideal position loop:  kp_w k_eff < 1
        Routh:                                 ki_w < kd (1/k_eff + kp_w)

    mass: Lambda_zz [kg], what the tip feels of the arm along the normal. Both bounds are used to SHARE.
    """
    _positive(stiffness=stiffness, mass=mass, kp=kp, kd=kd)
    yielding = 1.0 / stiffness + (0.0 if fed else 1.0 / (mass * kp))
    proportional = SHARE * yielding
    return HeightGains(proportional, SHARE * kd * (yielding + proportional))


def touch_speed(force: float, stiffness: float, mass: float) -> float:
    """Speed [m/s] of the last millimetre above the paper.

    A mass that meets a spring at v makes at most v sqrt(k m) before it is braked at all: a third of the force wanted,
    but between 2 mm/s, below which nothing is gained, and 10 mm/s, where a period is 10 um.
    """
    return min(max(force / (3.0 * math.sqrt(stiffness * mass)), 2e-3), TOUCH_SPEED_MAX)


def blind_touch_speed(force: float, stiffness: float | None, mass: float) -> float:
    """Speed [m/s] of the last millimetre where no sensor feels the touch; stiffness None: not known yet.

        v = min(BLIND_RATE / k, BLIND_PEAK force / sqrt(k m)),  held within BLIND_SPEED

    The first makes the force grow fast enough to be felt within 10 ms, the second limits what a mass that meets a
    spring at v makes, v sqrt(k m). They meet at k = (BLIND_RATE / (BLIND_PEAK force))^2 m, 2e4 N/m for 5 N and a UR5e's
    2.7 kg. Softer paper is felt later, what is felt growing with k v t^2.5: at 2e3 N/m after up to 19 ms, with the 3e-2
    m/s. Not known: TOUCH_SPEED_MAX, 5 N at 1e5 N/m and 200 N/s at 2e4.
    """
    if stiffness is None:
        return TOUCH_SPEED_MAX
    v = min(BLIND_RATE / stiffness, BLIND_PEAK * force / math.sqrt(stiffness * mass))
    return min(max(v, BLIND_SPEED[0]), BLIND_SPEED[1])


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0.0):
            raise InvalidValue(f"{name}: must be positive and finite, got {value!r}")


# m above the planned plane from where the pen comes slowly if nothing was touched: 3 mm, and 2 degrees at 170 mm
UNKNOWN = 0.009
NEAR = 7e-4  # m, margin right beside a touched point: the pen's own error and the spring under it
SLOPE = 0.06  # of the distance to the nearest point: a tilt of 2 deg (0.035) and the flank of a flat bump
FALL = 0.36  # of the distance from a touched point: paper does not fall steeper (20 degrees)
BELOW = 2.5e-3  # m, and right beside the point: a bump's height and the pen's own error
SURE = 0.1  # of k: the loop bears a k that is wrong by a factor 2 and more


class Found:
    """Points of the paper that the pen has touched (canvas frame), and what to expect elsewhere."""

    def __init__(self) -> None:
        self._points = np.zeros((64, 3))
        self._count = 0

    @property
    def points(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """(N, 3) x, y, height [m]."""
        return self._points[: self._count]

    def add(self, point: tuple[float, float, float]) -> None:
        """Remember a point that was touched."""
        if self._count == len(self._points):
            self._points = np.concatenate((self._points, np.zeros_like(self._points)))
        self._points[self._count] = point
        self._count += 1

    def expected(self, x: float, y: float) -> tuple[float, float]:
        """Height [m] of the paper at x, y as the nearest touched point has it, and a margin above which it is not."""
        if not self._count:
            return 0.0, UNKNOWN
        height, distance = self._nearest(x, y)
        return height, min(NEAR + SLOPE * distance, UNKNOWN)

    def lowest(self, x: float, y: float) -> float:
        """Height [m] below which there is no paper at x, y: a hole; minus infinity where nothing was touched."""
        if not self._count:
            return -math.inf
        height, distance = self._nearest(x, y)
        return height - BELOW - FALL * distance

    def _nearest(self, x: float, y: float) -> tuple[float, float]:
        """Height [m] of the nearest touched point, and how far [m] it is from x, y."""
        points = self.points
        squares = (points[:, 0] - x) ** 2 + (points[:, 1] - y) ** 2
        nearest = int(np.argmin(squares))
        return float(points[nearest, 2]), math.sqrt(float(squares[nearest]))


class StiffnessEstimate:
    """k from the first presses: the slope of force over depth, by least squares over the samples of a growing force.

        k = sum (x - mean x)(W - mean W) / sum (x - mean x)^2,    sums over all presses, means of each

    One press is enough with a good sensor; the paper's height may differ from press to press. noise [N]: standard
    deviation of W per sample (white). x is the tip by the joints, exact to micrometres while the arm hardly turns. Held
    within STIFFNESS.
    """

    def __init__(self, noise: float = 0.1) -> None:
        self._noise = noise
        self.clear()

    def clear(self) -> None:
        """Forget every sample."""
        self._before = (0, 0.0, 0.0)
        self._n, self._x, self._w, self._xx, self._xw = 0, 0.0, 0.0, 0.0, 0.0

    def again(self) -> None:
        """Another press begins, at another height."""
        self._before = self._sums()
        self._n, self._x, self._w, self._xx, self._xw = 0, 0.0, 0.0, 0.0, 0.0

    def _sums(self) -> tuple[int, float, float]:
        """Samples, sum (x - mean x)^2, sum (x - mean x)(W - mean W) of all presses so far."""
        n, spread, joint = self._before
        if self._n:
            spread += self._xx - self._x * self._x / self._n
            joint += self._xw - self._x * self._w / self._n
        return n + self._n, spread, joint

    def add(self, depth: float, W: float) -> None:
        """A sample: depth [m] from any fixed height, force [N]."""
        if not self._n:
            self._x0 = depth
        x = depth - self._x0
        self._n += 1
        self._x += x
        self._w += W
        self._xx += x * x
        self._xw += x * W

    @property
    def value(self) -> float | None:
        """N/m, or None while its standard deviation, noise / sqrt(sum (x - mean x)^2), is more than SURE of it."""
        k, doubt = self._slope()
        return min(max(k, STIFFNESS[0]), STIFFNESS[1]) if doubt < SURE * k else None

    @property
    def most(self) -> float:
        """N/m that the paper has at most: two standard deviations above the estimate."""
        k, doubt = self._slope()
        return min(max(k + 2.0 * doubt, STIFFNESS[0]), STIFFNESS[1])

    def _slope(self) -> tuple[float, float]:
        """k and its standard deviation [N/m], which has no bound before there are ten samples."""
        n, spread, joint = self._sums()
        if n < 10 or spread <= 0.0:
            return 0.0, math.inf
        return joint / spread, self._noise / math.sqrt(spread)
