"""The dynamics of the arm as the tool feels them: operational-space inertia, bias and gravity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import Array, checked

# Without damping J M^-1 J^T must be invertible with digits to spare: beyond this condition number fewer than four
# digits of Lambda are left. A UR10e has 5e4 at a generic pose.
CONDITION_MAX = 1e12


@dataclass(frozen=True)
class OperationalSpace:
    """Lambda wdot + mu + p = F, when tau = J^T F; at the point and in the axes of J."""

    Lambda: Array  # (..., m, m) inertia: kg, kg m, kg m2
    mu: Array  # (..., m) Coriolis and centrifugal force [N, Nm]
    p: Array  # (..., m) gravity [N, Nm]


class RigidBody(Protocol):
    """What `at_state` needs of a robot."""

    def jacobian(self, q: Array, /) -> Array: ...
    def jacobian_rate_times_velocity(self, q: Array, qd: Array, /) -> Array: ...
    def mass_matrix(self, q: Array, /) -> Array: ...
    def bias_torque(self, q: Array, qd: Array, /) -> Array: ...
    def gravity_torque(self, q: Array, /) -> Array: ...


def operational_space(
    J: ArrayLike, M: ArrayLike, c: ArrayLike, g: ArrayLike, Jdot_qd: ArrayLike, damping: float = 0.0
) -> OperationalSpace:
    """Operational-space inertia, bias and gravity: 003's Lambda, mu, p.

        Lambda = (J M^-1 J^T + lam^2 I)^-1,  mu = Lambda (J M^-1 c - Jdot qd),  p = Lambda J M^-1 g,  c = C qd

    Then tau = J^T (Lambda wdot + mu + p) accelerates the tool with wdot = J qdd + Jdot qd (003 prints Jdot^T for
    J^T). With lam = 0 this is exact and is refused at singularities, where Lambda is infinite. With lam > 0 every
    eigenvalue of Lambda is at most 1/lam^2: lam = 0.1 caps the apparent mass at 100 kg; directions whose apparent
    mass is m are wrong by the factor 1/(1 + lam^2 m).

    J (..., m, n) with m <= n, M (..., n, n), c and g (..., n), Jdot_qd (..., m); damping lam >= 0 [kg^-1/2].
    """
    X, L, Lambda = _core(J, M, damping)
    n, m = X.shape[-2:]
    c, g = checked(c, (n,), "c"), checked(g, (n,), "g")
    drift = checked(Jdot_qd, (m,), "Jdot_qd")
    Xt = np.swapaxes(X, -1, -2)
    mu = Lambda @ (Xt @ _solve(L, c[..., None]) - drift[..., None])
    p = Lambda @ (Xt @ _solve(L, g[..., None]))
    return OperationalSpace(Lambda, mu[..., 0], p[..., 0])


def dynamically_consistent_inverse(J: ArrayLike, M: ArrayLike, damping: float = 0.0) -> Array:
    """Jbar = M^-1 J^T Lambda (..., n, m): the right inverse of J that moves the arm with the least kinetic energy.

    (I - J^T Jbar^T) projects torques so that they do not accelerate the tool: J M^-1 (I - J^T Jbar^T) = 0
    (damping = 0). J (..., m, n), M (..., n, n).
    """
    X, L, Lambda = _core(J, M, damping)
    return np.asarray(np.linalg.solve(np.swapaxes(L, -1, -2), X @ Lambda))


def at_state(arm: RigidBody, q: ArrayLike, qd: ArrayLike, damping: float = 0.0) -> OperationalSpace:
    """`operational_space` of a robot at the tcp: q, qd (..., n)."""
    q, qd = checked(q, (None,), "q"), checked(qd, (None,), "qd")
    g = arm.gravity_torque(q)
    c = arm.bias_torque(q, qd) - g
    drift = arm.jacobian_rate_times_velocity(q, qd)
    return operational_space(arm.jacobian(q), arm.mass_matrix(q), c, g, drift, damping)


def _core(J: ArrayLike, M: ArrayLike, damping: float) -> tuple[Array, Array, Array]:
    """X = L^-1 J^T with M = L L^T, then J M^-1 J^T = X^T X, and Lambda from the singular values of X."""
    J = checked(J, (None, None), "J")
    m, n = J.shape[-2:]
    M = checked(M, (n, n), "M")
    if not (np.isfinite(damping) and damping >= 0.0):
        raise InvalidValue(f"damping: must be finite and not negative, got {damping!r}")
    if m > n:
        raise InvalidValue(f"J: {m} rows for {n} joints; choose at most {n} operational coordinates")
    try:
        L = np.asarray(np.linalg.cholesky(M), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise InvalidValue("M: a mass matrix is positive definite, this one is not") from None
    X = _solve(L, np.swapaxes(J, -1, -2))
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    if damping == 0.0 and np.any(s[..., -1] ** 2 * CONDITION_MAX < s[..., 0] ** 2):
        raise InvalidValue(
            f"J: singular pose (smallest singular value of J M^-1/2 is {np.min(s[..., -1]):.3g}), "
            "the operational inertia is infinite; give damping > 0"
        )
    Lambda = (np.swapaxes(Vt, -1, -2) / (s * s + damping**2)[..., None, :]) @ Vt
    return X, L, np.asarray(0.5 * (Lambda + np.swapaxes(Lambda, -1, -2)))


def _solve(L: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(L, right))
