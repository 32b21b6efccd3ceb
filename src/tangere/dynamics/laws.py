"""The laws of controllers and observers over any number type: floats, arrays or traced symbols.

Each is one equation of one joint (arrays: of all joints), without checks. Classes of `control` and `observe` call them
with numbers; the kernels are traced from them.
"""

from __future__ import annotations

from tangere.codegen.functions import absolute, expm1, maximum, tanh, where
from tangere.kinematics.vectors import Scalar


def sliding_friction(qd: Scalar, scale: Scalar, coulomb: Scalar, viscous: Scalar) -> Scalar:
    """coulomb tanh(qd scale) + viscous qd [Nm]: what all laws of friction have in common.

    qd [rad/s], scale: 1 / width [s/rad], coulomb [Nm], viscous [Nm s/rad].
    """
    out = tanh(qd * scale)
    out *= coulomb  # in place for arrays, which saves a tenth of the time
    out += viscous * qd
    return out


def drive_friction(
    qd: Scalar, scale: Scalar, coulomb: Scalar, viscous: Scalar, quadratic: Scalar, offset: Scalar
) -> Scalar:
    """coulomb tanh(qd scale) + (viscous + quadratic |qd|) qd + offset [Nm]; quadratic [Nm s2/rad2], offset [Nm]."""
    out = sliding_friction(qd, scale, coulomb, viscous + quadratic * absolute(qd))
    out += offset
    return out


def direction(qd: Scalar, scale: Scalar) -> Scalar:
    """tanh(qd scale): which way a joint turns, smooth through standstill; scale: 1 / width [s/rad]."""
    return tanh(qd * scale)


def loaded_coulomb(coulomb: Scalar, load: Scalar, gravity_torque: Scalar) -> Scalar:
    """coulomb + load |g| [Nm]: what a gear rubs grows with the load that it carries; load without unit."""
    return coulomb + load * absolute(gravity_torque)


def ripple_torque(sine: Scalar, cosine: Scalar, sin_angle: Scalar, cos_angle: Scalar) -> Scalar:
    """One order of a gear's ripple: sine sin(k q) + cosine cos(k q) [Nm]."""
    return sine * sin_angle + cosine * cos_angle


def ripple_amplitude(plain: Scalar, load: Scalar, drag: Scalar, gravity_torque: Scalar, direction: Scalar) -> Scalar:
    """plain + load g + drag s [Nm]: teeth that carry more bend more, the other way for the other flank; and they rub.

    direction s: tanh(qd / width), as Coulomb friction has it. load without unit, drag [Nm].
    """
    return plain + load * gravity_torque + drag * direction


def momentum_balance(p0: Scalar, p1: Scalar, beta0: Scalar, beta1: Scalar, tau: Scalar, h: Scalar) -> Scalar:
    """Mean external torque of a period h [s]: (p1 - p0) / h - tau - (beta0 + beta1) / 2 [Nm] (000 eqs 105-107).

    p = M qd, beta = C^T qd - g - friction at its beginning and end, tau: the torque that was held.
    """
    return (p1 - p0) / h - tau - 0.5 * (beta0 + beta1)


def lag_weight(rate: Scalar, h: Scalar) -> Scalar:
    """1 - exp(-rate h): how far a first-order lag of 1 / rate [s] goes within h [s]."""
    return 0.0 - expm1(0.0 - rate * h)


def lag(r: Scalar, y: Scalar, weight: Scalar) -> Scalar:
    """r + weight (y - r): a first-order lag that follows y."""
    return r + weight * (y - r)


def servo_acceleration(
    kp: Scalar, kv: Scalar, q: Scalar, qd: Scalar, q_des: Scalar, qd_des: Scalar, qdd_des: Scalar
) -> Scalar:
    """kp (q_des - q) + kv (qd_des - qd) + qdd_des [rad/s2]: what computed torque asks of the arm (000 eq 100)."""
    out = kp * (q_des - q)
    out += kv * (qd_des - qd)
    out += qdd_des
    return out


def spring_torque(
    stiffness: Scalar, damping: Scalar, q: Scalar, qd: Scalar, q_des: Scalar, qd_des: Scalar, gravity_torque: Scalar
) -> Scalar:
    """g + k (q_des - q) + d (qd_des - qd) [Nm]: a joint on a spring and a damper, its weight taken away (003)."""
    out = gravity_torque + stiffness * (q_des - q)
    out += damping * (qd_des - qd)
    return out


# [m/s] speed at which a tip slides with two thirds of its friction: a felt pen creeps as slowly
CREEP = 0.002


def contact_force(stiffness: Scalar, damping: Scalar, depth: Scalar, away: Scalar) -> Scalar:
    """k x - d v, never a pull [N]: a spring and a damper behind a face; depth x [m], away v [m/s] along its normal."""
    return where(depth <= 0.0, 0.0, maximum(stiffness * depth - damping * away, 0.0))


def sliding_drag(most: Scalar, slip: Scalar, speed: Scalar) -> Scalar:
    """most tanh(v / w) / v [N s/m], w = CREEP + slip most: what a tip's speed v [m/s] meets along a face.

    most = mu times the normal force [N]. slip [m/s per N] softens it, so that an explicit step h stays stable: the drag
    is at most 1 / slip, and slip = h / m is safe for what weighs more than m / 2.
    """
    return most * tanh(speed / (CREEP + slip * most)) / speed
