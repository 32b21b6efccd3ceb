"""What a contact added to the residual: the model's own error is learned from the second before and taken off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.observe.inertial import SIZE, parameters_of
from tangere.robots import Robot
from tangere.types import Array

BLOCK = 0.05  # [s] averaged before anything is compared: at 100 Hz five samples, of which one may be wrong
FINE = 0.005  # [s] the same within the first BLOCK of a contact: an impact is over sooner
LONGEST = 0.5  # [s] of a contact that are averaged at most: the arm moves on, and one posture stands for all of it
LATEST = 2.0  # [s] after the onset that are looked at: later, what was learned before it is stale
MASS_ERROR = 0.1  # of each link's mass, standard deviation: what a data sheet and forgotten cables are worth
# of a joint's offset and Coulomb friction, standard deviation in spreads (Thresholds.spread): free motion shows about
# half of a wrong friction as change. 1 to 3 differ little in simulation
DOUBT = 2.0
WIDTH = 0.02  # [rad/s] over which a wrong Coulomb friction turns round: the standstill speed
SPEED = 1.0  # [rad/s] at which a wrong viscous friction counts as much as a wrong Coulomb one: a UR's default speed
# [s^0.5] density of white noise that gives the change channel a spread of 1. Two lags of 50 and 150/s leave 18.75 of
# its square, the mean before adds 2
NOISE = 0.22
# Of a push on an arm that stands gears take a share, up to their band: a joint gives way a little before it breaks
# away, and then its friction pulls against the push. TAKEN of what is felt, give or take LEFT, and BEYOND of the band
# whatever is felt, for a servo that stirs. Chosen on six simulated UR5e with bristles that give way by 0.3 to 1 mrad,
# whose joints had taken 0.33 of the band from large torques, give or take 0.28, and on four pushes of a real UR10e
TAKEN, LEFT, BEYOND = 0.35, 0.35, 0.2
PRIOR_BLOCKS = 5.0  # that this noise counts for against what the blocks before show, which is known to a third


@dataclass(frozen=True)
class Added:
    """Torque (n,) [Nm] as a mean over `seconds` around `time` [s], its covariance (n, n) [Nm2] and the posture (n,)."""

    torque: Array
    covariance: Array
    q: Array
    time: float
    seconds: float = 0.0  # that the mean is of: the whole course of an impact, the part of a push that says most
    # times this mean that the force may have had while it lasted, central 95 %: how long it lasted is not known either
    stretch: tuple[float, float] = (1.0, 1.0)
    shown: float = 1.0  # of this torque, share that the residual showed; the rest is what gears took


def added(
    robot: Robot,
    time: Array,
    y: Array,
    q: Array,
    qd: Array,
    onset: float,
    spread: Array,
    *,
    hidden: Array | None = None,
    band: Array | None = None,
    gain_error: float = 0.0,
) -> Added | None:
    """The mean of what a contact added, over the part of it that says most, and how well it is known.

        y = tau_ext + Phi(q, qd, qdd) x + noise,      x: masses of links; offset, Coulomb, viscous friction of joints
        x ~ N(0, D)  ->  N(x_hat, P) by y before the onset
        torque = mean y - mean Phi x_hat,   covariance = mean Phi P mean Phi^T + noise^2 / seconds
                                                         + diag(gain_error torque)^2 + diag(hidden)^2
        where the arm stood before: torque += TAKEN t, covariance += diag(LEFT t)^2 + diag(BEYOND band)^2,
                                    t = torque, within +- band
        over the part with the largest torque^T covariance^-1 torque

    torque times seconds is the impulse of that part. An impact is over within the first BLOCK, where parts begin and
    end every FINE seconds: its impulse over its whole course counts, and little noise beside it. Another part as likely
    (by exp of half that length) says how else the force may have been.

    A wrong mass moves the residual with the posture, a wrong friction with the velocity: what both did in the second
    before says what they do during the contact, where a mean of that second would go on as it was. A simulated UR10e
    whose masses and friction are 10 % off is known as well as one without error (0.6 Nm at the shoulder).

    time (m,) [s] from a second before the onset on; y (m, n) [Nm]: what acted since the sample before
    (observer_input); q, qd (m, n). spread (n,) [Nm]: of the change channel in free motion (Thresholds.spread). hidden
    (m, n) [Nm]: what a joint that sticks may hide at each sample. band (m, n) [Nm]: in place of it, of an arm that
    stood before the onset: static friction of joints that stick. None with less than two samples.
    """
    seen = time <= onset + LATEST
    time, y, q, qd = time[seen], y[seen], q[seen], qd[seen]
    if len(time) < 2:
        return None
    n = robot.dof
    h = np.minimum(np.diff(time), BLOCK)  # after a gap nobody knows what acted in it
    since = time[1:] - onset
    number = np.ceil(since / BLOCK - 1e-6)  # of the block; up to 0: before the onset; from 0 to 1 in FINE parts
    number = np.where(number == 1.0, np.ceil(since / FINE - 1e-6) * FINE / BLOCK, number)
    number[-1] = max(number[-1], FINE / BLOCK)  # whatever the onset is, the newest sample belongs to the contact
    first, row = np.unique(number, return_index=True)
    old, fine = int(np.sum(first <= 0.0)), int(np.sum((first > 0.0) & (first <= 1.0)))
    seconds = np.add.reduceat(h, row)

    def block(values: Array) -> Array:
        return np.asarray(np.add.reduceat(values[1:] * h[:, None], row, axis=0) / seconds[:, None])

    Y, Q, Qd = block(y), block(q), block(qd)
    last = np.append(row[1:], len(h))
    Phi = _errors(robot, Q, Qd, (qd[last] - qd[row]) / seconds[:, None])
    doubt = DOUBT * spread
    sigma = np.concatenate((np.full(n, MASS_ERROR), doubt, doubt, doubt / SPEED))

    # noise: pairs of blocks against the next pair, which hardly shows what changes slowly or the noise of a velocity
    pair = 0.5 * (Y[: max(0, old - 1)] + Y[1 : max(1, old)])
    own = 0.5 * BLOCK * np.sum((pair[2:] - pair[:-2]) ** 2, axis=0)  # half of the pairs overlap
    variance = (PRIOR_BLOCKS * (NOISE * spread) ** 2 + own) / (PRIOR_BLOCKS + 0.5 * max(0, old - 3))  # [Nm2 s]
    weight = np.sqrt(seconds[:old, None] / variance)
    A = (Phi[:old] * weight[:, :, None]).reshape(-1, 4 * n) * sigma
    P = np.linalg.inv(np.eye(4 * n) + A.T @ A)
    x = sigma * (P @ (A.T @ (Y[:old] * weight).ravel()))
    P *= np.outer(sigma, sigma)

    # every run of blocks of the contact up to LONGEST, and within the first every run of its parts
    total = np.concatenate(((0.0,), np.cumsum(seconds[old:])))
    start, stop = np.triu_indices(len(total), 1)
    keep = (total[stop] - total[start] <= LONGEST + 1e-6) | (stop == start + 1)
    keep &= (stop <= fine) | (start == 0) | (start >= fine)
    start, stop = start[keep], stop[keep]
    span = total[stop] - total[start]

    def mean(values: Array) -> Array:
        flat = values[old:].reshape(len(total) - 1, -1) * seconds[old:, None]
        sums = np.concatenate((np.zeros((1, flat.shape[1])), np.cumsum(flat, axis=0)))
        return np.asarray(((sums[stop] - sums[start]) / span[:, None]).reshape(-1, *values.shape[1:]))

    F = mean(Phi)
    torque = mean(Y) - F @ x
    alone = variance / span[:, None] + (gain_error * torque) ** 2
    felt = torque

    def most(values: Array) -> Array:
        top = np.maximum.reduceat(values[seen][1:], row, axis=0)[old:]
        return np.array([top[a:b].max(axis=0) for a, b in zip(start.tolist(), stop.tolist(), strict=True)])

    if hidden is not None:
        alone += most(hidden) ** 2
    if band is not None:
        limit = most(band)
        part = np.clip(torque, -limit, limit)
        torque = torque + TAKEN * part
        alone += (LEFT * part) ** 2 + (BEYOND * limit) ** 2
    S = F @ P @ np.swapaxes(F, 1, 2)
    S[:, range(n), range(n)] += alone
    against = np.linalg.solve(S, torque[:, :, None])[:, :, 0]
    length = np.sum(torque * against, axis=1)
    best = int(np.argmax(length))
    when = onset + 0.5 * (total[start[best]] + total[stop[best]])
    # each part's own size along the best one, and how likely that part is the whole of the contact
    size = torque @ against[best] / length[best]
    order = np.argsort(size)
    weight = np.exp(0.5 * (length - length[best]))[order]
    low, high = np.interp((0.025, 0.975), np.cumsum(weight) / weight.sum() - 0.5 * weight / weight.sum(), size[order])
    return Added(
        torque[best], 0.5 * (S[best] + S[best].T), mean(Q)[best], float(when), float(span[best]),
        (min(1.0, float(low)), max(1.0, float(high))), float(felt[best] @ against[best] / length[best]),
    )  # fmt: skip


def observer_input(time: Array, residual: Array, gain: float) -> Array:
    """y (m, n) [Nm] of a momentum observer's residual (m, n): y_k = (r_k - a r_{k-1}) / (1 - a), a = exp(-gain h).

    What acted since the sample before, without the observer's lag; the first is the residual itself.
    """
    a = np.exp(-gain * np.diff(time))[:, None]
    return np.concatenate((residual[:1], (residual[1:] - a * residual[:-1]) / (1.0 - a)))


def _errors(robot: Robot, q: Array, qd: Array, qdd: Array) -> Array:
    """Phi (b, n, 4 n): torque of each link's mass, of a constant, of Coulomb and of viscous friction, in this order."""
    b, n = q.shape
    Y = np.asarray(robot.regressor(q, qd, qdd)).reshape(b, n, n, SIZE)
    masses = np.einsum("bjkp,kp->bjk", Y, parameters_of(robot.model).reshape(n, SIZE))
    eye = np.eye(n)
    friction = (np.broadcast_to(eye, (b, n, n)), eye * np.tanh(qd / WIDTH)[:, None], eye * qd[:, None])
    return np.concatenate((masses, *friction), axis=2)
