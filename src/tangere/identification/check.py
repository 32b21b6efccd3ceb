"""Whether a log fits the arm that it is said to come from: gravity is the witness."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tangere.identification.consensus import agreed
from tangere.identification.gains import resting
from tangere.identification.samples import Midpoints, Motion, midpoints
from tangere.model.loading import names
from tangere.observe.drive_model import STANDSTILL, WIDTH
from tangere.robots import Robot, robot
from tangere.types import Array

# The slope of measured over modelled torque of a right arm lies within these (an unknown tool of a few kg included);
# of currents taken for torques the same holds after multiplication by the gain, which is 3.6 to 12 Nm/A on the arms
# whose gains are known; of a wrong size of arm or a wrong mounting it lies outside or has no meaning.
_SLOPE = (0.6, 2.0)
_GAIN = 10.0  # Nm/A of the loaded joints, where the arm's data has none
_LEAST_LOAD = 2.0  # Nm, standard deviation of a joint's gravity torque over the log below which it is no witness
_LEAST_R2 = 0.5  # share of the variance that gravity and friction must explain in a joint that carries a load
_ROWS = 2000  # samples looked at, evenly taken: a slope needs no more
_LEAST_ROWS = 50  # of a joint in motion
# The most that |slope - 1| may be for another arm to be named: a tool changes the slope by more only if it is heavy
_FITS = 0.25
_SIGMAS = 4.0  # standard errors that a slope must be off before it is said: neighbours repeat more than blocks know
_NAMES = 2  # witnesses, on this arm or the other, before another is named: one alone fits some size by chance
NO_WITNESS = "no joint carries a changing load: the log cannot tell whether it comes from this arm"
_TARGET = 0.1  # the same for the controller's own target moment, which has no friction in it


def gravity_slopes(arm: Robot, motions: Sequence[Motion]) -> tuple[Array, Array]:
    """Slope (n,) of measured torque over the rigid model's, and the share explained (n,); nan for no witness."""
    slopes, shares, _ = _slopes(arm, motions)
    return slopes, shares


def _slopes(arm: Robot, motions: Sequence[Motion]) -> tuple[Array, Array, Array]:
    """gravity_slopes, and the slopes' standard errors (n,).

    tau = slope (M qdd + C qd + g) + coulomb sign(qd) + viscous qd + rotor qdd + offset in motion, as most of the log
    has it (agreed): a push of some seconds does not bend it.
    """
    q, qd, qdd, tau = _rows(motions)
    slopes, shares, sigmas = np.full((3, arm.dof), np.nan)
    if len(q) == 0 or q.shape[1] != arm.dof:
        return slopes, shares, sigmas
    rigid, load = arm.inverse_dynamics(q, qd, qdd), arm.gravity_torque(q)
    for j in range(arm.dof):
        m = np.abs(qd[:, j]) > STANDSTILL
        if m.sum() < _LEAST_ROWS or load[m, j].std() < _LEAST_LOAD:
            continue
        speed = qd[m, j]
        A = np.column_stack([rigid[m, j], np.tanh(speed / WIDTH), speed, qdd[m, j], np.ones(len(speed))])
        x, inside, sigma = agreed(A, tau[m, j])
        if load[m, j][inside].std() < _LEAST_LOAD:
            continue
        error, own = (A @ x - tau[m, j])[inside], tau[m, j][inside]
        slopes[j], sigmas[j], shares[j] = x[0], sigma[0], 1.0 - error.var() / max(float(own.var()), 1e-12)
    return slopes, shares, sigmas


def findings(arm: Robot, motions: Sequence[Motion], gain: Array | None = None) -> tuple[str, ...]:
    """Sentences about what does not fit; none where all is well.

    gain (n,) [Nm/A]: with which the torques were made from currents, None (or nan) where they are torques themselves.
    """
    slopes, shares, sigmas = _slopes(arm, motions)
    witnesses = np.flatnonzero(np.isfinite(slopes))
    if witnesses.size == 0:
        return (NO_WITNESS,)
    shown = ", ".join(f"joint {j + 1} {slopes[j]:.2f}" for j in witnesses)
    clear = [j for j in witnesses if shares[j] > _LEAST_R2]
    sure = np.abs(slopes - 1.0) > _SIGMAS * sigmas
    off = int(np.sum(sure & (np.abs(slopes - 1.0) > _FITS)))
    wrong = [
        j for j in witnesses if (sure[j] and not _SLOPE[0] < slopes[j] < _SLOPE[1]) or shares[j] < _LEAST_R2
    ]  # fmt: skip
    if 2 * len(wrong) <= len(witnesses):
        return _neighbours(arm, motions, gain, shown) if off >= max(_NAMES, len(witnesses) // 2 + 1) else ()
    made = gain is not None and bool(np.all(np.isfinite(gain)))
    scale = gain if gain is not None and made else np.where(np.isfinite(arm.drives.gain), arm.drives.gain, _GAIN)
    if clear and not made and all(_SLOPE[0] < slopes[j] * scale[j] < _SLOPE[1] for j in clear):
        return (f"the torques look like motor currents: measured over modelled gravity is {shown} instead of 1",)
    if clear and made and all(_SLOPE[0] < slopes[j] / scale[j] < _SLOPE[1] for j in clear):
        return (
            f"the currents look like torques: times the gains, measured over modelled gravity is {shown} instead of 1",
        )
    better = fitting_arms(arm, motions, gain)
    hint = f"it would fit {', '.join(better)}; otherwise " if better else ""
    return (
        f"gravity does not fit {arm.name}: measured over modelled is {shown} instead of 1; {hint}another arm, another "
        "mounting, or a payload that was not given",
    )


def _neighbours(arm: Robot, motions: Sequence[Motion], gain: Array | None, shown: str) -> tuple[str, ...]:
    """Of a log most of whose witnesses are off, as by a heavy tool: whether another arm explains it without one."""
    better = fitting_arms(arm, motions, gain)
    if not better:
        return ()
    return (
        f"gravity fits {', '.join(better)} better than {arm.name}, where measured over modelled is {shown} instead of "
        "1: is it that arm? Otherwise a payload was not given",
    )


def fitting_arms(arm: Robot, motions: Sequence[Motion], gain: Array | None = None) -> tuple[str, ...]:
    """Names of the arms that come with the package and fit a log clearly, the best first; without `arm` itself.

    gain: as findings; currents are then tried with the other arm's own gains, and with these where it has none.
    """
    found = []
    own = int(np.isfinite(gravity_slopes(arm, motions)[0]).sum())
    for name in names():
        if name == arm.name:
            continue
        other = robot(name, gravity=arm.model.gravity.tolist())
        if other.dof != arm.dof:
            continue
        factor = np.ones(arm.dof)
        if gain is not None:
            factor = np.nan_to_num(other.drives.gain / gain, nan=1.0)
        slopes, shares = gravity_slopes(other, motions)
        slopes = slopes * factor
        seen = np.isfinite(slopes)
        enough = bool(np.any(seen)) and max(own, int(seen.sum())) >= _NAMES
        if enough and np.all(np.abs(slopes[seen] - 1.0) < _FITS) and np.all(shares[seen] > _LEAST_R2):
            found.append((float(np.mean(np.abs(slopes[seen] - 1.0))), name))
    return tuple(name for _, name in sorted(found))


def target_findings(arm: Robot, q: Array, qd: Array, target_moment: Array) -> tuple[str, ...]:
    """The same for a log that holds what the controller wants (N, n) [Nm]: at rest that is gravity, exactly.

    Within a few per mille on the right arm with the right payload (UR10e: 0.002 Nm with g = 9.82), so that a
    payload that was not given shows as well.
    """
    rest = resting(qd)
    if not np.any(rest):
        return ()
    g, want = arm.gravity_torque(q[rest]), target_moment[rest]
    power = np.sum(g**2, axis=0)
    slopes = np.sum(g * want, axis=0) / np.maximum(power, 1e-12)
    seen = np.flatnonzero(power / len(g) > _LEAST_LOAD**2)
    off = [j for j in seen if abs(slopes[j] - 1.0) > _TARGET]
    if 2 * len(off) <= len(seen) or not off:
        return ()
    shown = ", ".join(f"joint {j + 1} {slopes[j]:.2f}" for j in seen)
    return (
        f"the controller's target moment at rest does not fit {arm.name}: over modelled gravity it is {shown} instead "
        "of 1; another arm, another mounting, or a payload that was not given",
    )


def _rows(motions: Sequence[Motion]) -> tuple[Array, Array, Array, Array]:
    parts: list[Midpoints] = [midpoints(motion) for motion in motions]
    q, qd, qdd, tau = (np.concatenate([getattr(m, key) for m in parts]) for key in ("q", "qd", "qdd", "tau"))
    use = slice(None, None, max(1, len(q) // _ROWS))
    return q[use], qd[use], qdd[use], tau[use]
