"""Whether a log fits the arm that it is said to come from: gravity is the witness."""

from __future__ import annotations

import numpy as np

from tangere.observe.identify.inertial import parameters_of
from tangere.observe.identify.samples import LEAST_WINDOWS, TERMS, Windows
from tangere.robot import Robot
from tangere.types import Array

# The slope of measured over modelled torque of a right arm lies within these (an unknown tool of a few kg included);
# of currents taken for torques the same holds after multiplication by the gain, which is 3.6 to 12 Nm/A on the arms
# whose gains are known; of a wrong size of arm or a wrong mounting it lies outside or has no meaning.
_SLOPE = (0.6, 2.0)
_GAIN = 10.0  # Nm/A of the loaded joints, where the arm's data has none
_LEAST_LOAD = 2.0  # Nm, standard deviation of a joint's gravity torque over the log below which it is no witness
_LEAST_R2 = 0.5  # share of the variance that gravity and friction must explain in a joint that carries a load


def gravity_slopes(robot: Robot, rows: Windows) -> tuple[Array, Array]:
    """Slope (n,) of measured torque over the rigid model's, and the share explained (n,); nan for no witness.

    Least squares of tau = slope (Y pi) + coulomb, viscous, offset while the joint moves.
    """
    n = robot.dof
    rigid = rows.Y @ parameters_of(robot.model)
    slopes, shares = np.full(n, np.nan), np.full(n, np.nan)
    friction = [TERMS.index(name) for name in ("coulomb", "viscous", "offset")]
    for j in range(n):
        m = rows.moving[:, j]
        if m.sum() < LEAST_WINDOWS or rigid[m, j].std() < _LEAST_LOAD:
            continue
        A = np.column_stack([rigid[m, j], rows.F[m, j][:, friction]])
        x, *_ = np.linalg.lstsq(A, rows.tau[m, j], rcond=None)
        error = A @ x - rows.tau[m, j]
        slopes[j], shares[j] = x[0], 1.0 - error.var() / max(float(rows.tau[m, j].var()), 1e-12)
    return slopes, shares


def findings(robot: Robot, rows: Windows) -> tuple[str, ...]:
    """Sentences about what does not fit; none where all is well or no joint can testify."""
    slopes, shares = gravity_slopes(robot, rows)
    witnesses = np.flatnonzero(np.isfinite(slopes))
    if witnesses.size == 0:
        return ("no joint carries a changing load: the log cannot tell whether it comes from this arm",)
    shown = ", ".join(f"joint {j + 1} {slopes[j]:.2f}" for j in witnesses)
    clear = [j for j in witnesses if shares[j] > _LEAST_R2]
    gain = np.where(np.isfinite(robot.drives.gain), robot.drives.gain, _GAIN)
    if clear and all(_SLOPE[0] < slopes[j] * gain[j] < _SLOPE[1] for j in clear):
        return (f"the torques look like motor currents: measured over modelled gravity is {shown} instead of 1",)
    wrong = [j for j in witnesses if not (_SLOPE[0] < slopes[j] < _SLOPE[1]) or shares[j] < _LEAST_R2]
    if 2 * len(wrong) > len(witnesses):
        return (
            f"gravity does not fit {robot.name}: measured over modelled is {shown} instead of 1; another arm, another "
            "mounting, or a payload that was not given",
        )
    return ()
