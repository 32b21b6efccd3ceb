"""The elementary functions of the kernels as our own polynomials: branch-free arithmetic, the same bits everywhere.

The coefficients interpolate the functions at Chebyshev nodes in 50-digit arithmetic; beside each set stands the largest
error of the polynomial itself. With rounding, sin and cos are within 1.4e-16 and atan2 within 5e-16 of the true value
(absolute); expm1 is within 1.8, tanh within 2.5 and log within 0.8 units of its last place, in float32 as well.
tests/test_polynomials.py measures it. Each function is written over any number type; `of` says for which precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tangere.codegen.functions import absolute, exponent, mantissa, power_of_two, rounded, where


@dataclass(frozen=True)
class Coefficients:
    """The numbers of one precision; beside each the largest error of the polynomial itself."""

    pi_2: tuple[float, ...]  # pi/2 in parts (Cody and Waite): n times all but the last is exact
    sin: tuple[float, ...]  # (sin(r)/r - 1)/r^2 in r^2 on |r| <= pi/4
    cos: tuple[float, ...]  # (cos(r) - 1 + r^2/2)/r^4 in r^2 on |r| <= pi/4
    atan: tuple[float, ...]  # (atan(t)/t - 1)/t^2 in t^2 on |t| <= tan(pi/8)
    ln2: tuple[float, ...]  # ln 2 in parts, as pi_2
    exp: tuple[float, ...]  # (e^r - 1 - r)/r^2 in r on |r| <= ln(2)/2: 1/k!, k = 2, 3, ...
    exp_range: tuple[float, float]  # below e^x - 1 is -1, above it is infinite
    log: tuple[float, ...]  # (log((1+s)/(1-s))/s - 2)/s^2 in s^2 on |s| <= 3 - 2 sqrt(2)


DOUBLE = Coefficients(
    # 33 bits, so that n times it is exact for n < 2**20, and the rest to 53 bits, whose product with n is off by 1e-21
    pi_2=(1.5707963267341256, 6.077100506506192e-11),
    sin=(
        -0.16666666666666666, 0.008333333333330946, -0.0001984126983675497, 2.755731610068303e-06,
        -2.5051131455427943e-08, 1.5918101230273893e-10,
    ),  # 2.1e-17
    cos=(
        0.041666666666666664, -0.0013888888888887395, 2.4801587298763433e-05, -2.7557317270560326e-07,
        2.0876146024689743e-09, -1.1382614868556182e-11,
    ),  # 1.3e-18
    atan=(
        -0.3333333333333333, 0.19999999999995513, -0.1428571428466482, 0.11111111015117626, -0.09090904572487347,
        0.07692183059894106, -0.06664509603255293, 0.05858132894427219, -0.05085365922341002, 0.03922923713827552,
        -0.019173922285454965,
    ),  # 3.2e-17
    ln2=(0.6931471803691238, 1.9082149292705877e-10),  # 33 bits and the rest
    exp=tuple(1.0 / math.factorial(k) for k in range(2, 14)),  # the next term is 1e-17 of the first
    exp_range=(-60.0, 710.0),
    log=(
        0.6666666666666666, 0.4000000000000088, 0.28571428570803614, 0.22222222391713917, 0.18181795640132906,
        0.15386239702814658, 0.13268773138656886, 0.13086626147840102,
    ),  # 2.1e-18
)  # fmt: skip

# For float32. pi/2 in parts of 8 and 12 bits and the rest: n times the first two is exact for n < 2**12 (6000 rad).
SINGLE = Coefficients(
    pi_2=(1.5703125, 0.0004837512969970703, 7.549790126404332e-08),
    sin=(-0.166666641831398, 0.008332747966051102, -0.00019587890710681677),  # 2.0e-8
    cos=(0.0416666641831398, -0.001388830249197781, 2.454794230288826e-05),  # 2.0e-9
    atan=(
        -0.3333333134651184, 0.19999539852142334, -0.14263956248760223, 0.10743731260299683, -0.06451927870512009,
    ),  # 1.6e-8
    ln2=(0.693359375, -0.00021219444170128554),  # 9 bits: exact for n < 2**15
    exp=(0.5, 0.1666666716337204, 0.0416666679084301, 0.008333333767950535, 0.0013888889225199819,
         0.00019841270113829523),
    exp_range=(-30.0, 89.0),
    log=(0.6666666865348816, 0.4000012278556824, 0.2855082154273987, 0.2333046793937683),  # 1.2e-9
)  # fmt: skip


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    """c0 + c1 x + c2 x^2 + ... by Estrin's scheme: pairs side by side, so that few operations wait for each other."""
    terms: list[Any] = list(coefficients)
    while len(terms) > 1:
        pairs = [terms[i] + terms[i + 1] * x for i in range(0, len(terms) - 1, 2)]
        terms = pairs + terms[2 * len(pairs) :]
        x = x * x
    return terms[0]


def reduced(x: Any, of: Coefficients = DOUBLE) -> tuple[Any, Any, Any]:
    """(sin r, cos r, n) with x = n pi/2 + r, |r| <= pi/4, n whole; |x| <= ANGLE_MAX (6000 rad in float32)."""
    n = rounded(x * (2.0 / math.pi))
    r = x
    for part in of.pi_2:
        r = r - n * part
    z = r * r
    s = r + (r * z) * _polynomial(of.sin, z)
    half = 0.5 * z
    w = 1.0 - half
    c = w + (((1.0 - w) - half) + (z * z) * _polynomial(of.cos, z))
    return s, c, n


def sincos(x: Any, of: Coefficients = DOUBLE) -> tuple[Any, Any]:
    """(sin x, cos x) of `reduced`, which n mod 4 swaps and negates."""
    s, c, n = reduced(x, of)
    quadrant = n - 4.0 * rounded(0.25 * n)  # -2 ... 2
    size = absolute(quadrant)
    odd = (0.5 < size) & (size < 1.5)
    opposite = 1.5 < size
    sin_x = where(odd, c, s)
    cos_x = where(odd, s, c)
    return (
        where(opposite | (quadrant < -0.5), -sin_x, sin_x),
        where(opposite | (quadrant > 0.5), -cos_x, cos_x),
    )


def arctangent2(y: Any, x: Any, of: Coefficients = DOUBLE) -> Any:
    """Angle of the point (x, y) in [-pi, pi]; 0 at the origin; a negative zero counts as zero.

    The point is folded into 0 <= y <= x, its angle taken from 0 or pi/4, whichever is nearer.
    """
    ax, ay = absolute(x), absolute(y)
    steep = ax < ay
    small, large = where(steep, ax, ay), where(steep, ay, ax)
    far = math.tan(math.pi / 8) * large < small
    numerator = where(far, small - large, small)
    denominator = where(far, small + large, large)
    t = numerator / where(denominator <= 0.0, 1.0, denominator)
    z = t * t
    angle = where(far, math.pi / 4, 0.0) + (t + (t * z) * _polynomial(of.atan, z))
    angle = where(steep, math.pi / 2 - angle, angle)
    angle = where(x < 0.0, math.pi - angle, angle)
    return where(y < 0.0, -angle, angle)


def exponential_minus_one(x: Any, of: Coefficients = DOUBLE) -> Any:
    """e^x - 1, small x included; -1 from x = -60 down (float32: -30), infinite from 710 up (89).

    x = n ln 2 + r with |r| <= ln(2)/2:  2^n (e^r - 1) + (2^n - 1).
    """
    low, high = of.exp_range
    x = where(x < low, low, x)
    x = where(high < x, high, x)
    n = rounded(x * (1.0 / math.log(2.0)))
    r = (x - n * of.ln2[0]) - n * of.ln2[1]
    total: Any = of.exp[-1]
    for c in of.exp[-2::-1]:
        total = total * r + c
    power = power_of_two(n)
    return power * (r + r * r * total) + (power - 1.0)


def hyperbolic_tangent(x: Any, of: Coefficients = DOUBLE) -> Any:
    """tanh x = -e / (2 + e) with e = e^(-2 |x|) - 1, and the sign of x."""
    e = exponential_minus_one(-2.0 * absolute(x), of)
    t = e / (2.0 + e)
    return where(x < 0.0, t, 0.0 - t)


def logarithm(x: Any, of: Coefficients = DOUBLE) -> Any:
    """Natural logarithm of a normal number > 0 (at least 2.3e-308; float32: 1.2e-38). Else meaningless.

    x = 2^n (1 + f) with sqrt(1/2) < 1 + f <= sqrt(2), s = f / (2 + f), h = f^2 / 2:
    log(1 + f) = f - (h - s (h + R(s^2))).
    """
    n, m = exponent(x), mantissa(x)
    upper = math.sqrt(2.0) < m
    n = where(upper, n + 1.0, n)
    f = where(upper, 0.5 * m, m) - 1.0
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * (f * f)
    rest = s * (half + z * _polynomial(of.log, z))
    return n * of.ln2[0] - ((half - (rest + n * of.ln2[1])) - f)
