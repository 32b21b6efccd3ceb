"""The elementary functions of the kernels as our own polynomials: branch-free arithmetic, the same bits everywhere.

The coefficients interpolate the functions at Chebyshev nodes in 50-digit arithmetic; beside each set stands the largest
error of the polynomial itself. With rounding, sin and cos are within 1.4e-16 and atan2 within 5e-16 of the true value
(absolute); tests/test_polynomials.py measures it.
"""

from __future__ import annotations

import math
from typing import Any

from tangere.codegen.functions import absolute, rounded, where

# pi/2 in two parts (Cody and Waite): 33 bits, so that n times it is exact for n < 2**20, and the rest to 53 bits,
# whose product with n is off by at most 1e-21.
_PI_2_HIGH = 1.5707963267341256
_PI_2_LOW = 6.077100506506192e-11

# (sin(r)/r - 1)/r^2 in r^2 on |r| <= pi/4: 2.1e-17.
_SIN = (
    -0.16666666666666666,
    0.008333333333330946,
    -0.0001984126983675497,
    2.755731610068303e-06,
    -2.5051131455427943e-08,
    1.5918101230273893e-10,
)
# (cos(r) - 1 + r^2/2)/r^4 in r^2 on |r| <= pi/4: 1.3e-18.
_COS = (
    0.041666666666666664,
    -0.0013888888888887395,
    2.4801587298763433e-05,
    -2.7557317270560326e-07,
    2.0876146024689743e-09,
    -1.1382614868556182e-11,
)
# (atan(t)/t - 1)/t^2 in t^2 on |t| <= tan(pi/8): 3.2e-17.
_ATAN = (
    -0.3333333333333333,
    0.19999999999995513,
    -0.1428571428466482,
    0.11111111015117626,
    -0.09090904572487347,
    0.07692183059894106,
    -0.06664509603255293,
    0.05858132894427219,
    -0.05085365922341002,
    0.03922923713827552,
    -0.019173922285454965,
)


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    """c0 + c1 x + c2 x^2 + ... by Estrin's scheme: pairs side by side, so that few operations wait for each other."""
    terms: list[Any] = list(coefficients)
    while len(terms) > 1:
        pairs = [terms[i] + terms[i + 1] * x for i in range(0, len(terms) - 1, 2)]
        terms = pairs + terms[2 * len(pairs) :]
        x = x * x
    return terms[0]


def sincos(x: Any) -> tuple[Any, Any]:
    """(sin x, cos x) for |x| <= ANGLE_MAX.

    x = n pi/2 + r with |r| <= pi/4; sin r and cos r by polynomials; n mod 4 swaps and negates them.
    """
    n = rounded(x * (2.0 / math.pi))
    r = (x - n * _PI_2_HIGH) - n * _PI_2_LOW
    z = r * r
    s = r + (r * z) * _polynomial(_SIN, z)
    half = 0.5 * z
    w = 1.0 - half
    c = w + (((1.0 - w) - half) + (z * z) * _polynomial(_COS, z))
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


def arctangent2(y: Any, x: Any) -> Any:
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
    angle = where(far, math.pi / 4, 0.0) + (t + (t * z) * _polynomial(_ATAN, z))
    angle = where(steep, math.pi / 2 - angle, angle)
    angle = where(x < 0.0, math.pi - angle, angle)
    return where(y < 0.0, -angle, angle)
