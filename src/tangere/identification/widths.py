"""How fast Coulomb friction turns round at a reversal, joint by joint."""

from __future__ import annotations

import numpy as np

from tangere.identification.samples import LEAST_WINDOWS, TERMS, Windows
from tangere.identification.solve import HUBER, Solution
from tangere.observe.drive_model import WIDTH
from tangere.observe.inertial import SIZE
from tangere.types import Array

# rad/s, a factor of about two from one to the next; the error changes by a few percent between neighbours
WIDTHS = (0.004, 0.008, 0.015, 0.03, 0.06, 0.12)
_ROUNDS = 4  # of reweighting, for each width: contacts and stops must not choose it
_BETTER = 0.98  # a width other than the default must leave less than this share of the cost
_RIDGE = 1e-6  # of the largest column's square: only against columns that a log leaves at zero


def widths(rows: Windows, solution: Solution) -> Array:
    """The width (n,) [rad/s] that leaves the least of each joint's torque, its other terms fitted anew for each."""
    n, terms = rows.F.shape[1:]
    rest = rows.tau - rows.Y @ solution.x[: SIZE * n]
    best = np.full(n, WIDTH)
    coulomb, viscous, load = (TERMS.index(name) for name in ("coulomb", "viscous", "load"))
    for j in range(n):
        moving = rows.moving[:, j]
        if moving.sum() < LEAST_WINDOWS:
            continue
        F, target = rows.F[moving, j].copy(), rest[moving, j]
        sign, carried = F[:, coulomb].copy(), F[:, load].copy()
        lost: dict[float, float] = {}
        for width in WIDTHS:
            turned = np.tanh(F[:, viscous] / width)  # the velocity itself is the viscous column
            F[:, coulomb] = turned
            F[:, load] = carried * np.divide(turned, sign, out=np.ones_like(sign), where=sign != 0.0)
            scale = np.abs(F).max(axis=0) + 1e-12
            A = F / scale
            weight, limit = np.ones(len(A)), HUBER * solution.spread[j]
            for _ in range(_ROUNDS):
                W = A * weight[:, None]
                x = np.linalg.solve(W.T @ A + _RIDGE * len(A) * np.eye(terms), W.T @ target)
                size = np.abs(A @ x - target)
                weight = np.minimum(1.0, limit / np.maximum(size, 1e-12))
            lost[width] = float(np.sum(np.where(size < limit, 0.5 * size**2, limit * (size - 0.5 * limit))))
        choice = min(lost, key=lost.__getitem__)
        if lost[choice] < _BETTER * lost[WIDTH]:
            best[j] = choice
    return best
