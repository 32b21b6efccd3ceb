"""What is believed of an arm before a log is read: its data sheet, and how far a real arm may be from it."""

from __future__ import annotations

import numpy as np

from tangere.identification.samples import LEAST_ROWS, TERMS, Motion, midpoints, thinned
from tangere.identification.solve import agreed
from tangere.model.joint_sizes import grades
from tangere.model.model import Link, Model
from tangere.observe.drive_model import STANDSTILL, DriveModel
from tangere.observe.inertial import SIZE, metric, parameters_of_link
from tangere.robots import Robot
from tangere.types import Array

# Relative standard deviation of a link's pseudo-inertia from the data sheet. Sheets leave out cables, covers and what
# was mounted; between 0.1 and 1 the held-out residual of a UR3e changes by less than 2 % in five joints and 10 % in
# the fifth (best from 0.3 on), while 1 moves masses from link to link that no motion can tell apart.
LINK_SIGMA = 0.3
# A tool that nobody mentioned is what is most often wrong: the last link may also differ by a body such as this one.
_TOOL = Link("tool", 1.0, np.array([0.0, 0.0, 0.05]), 0.0025 * np.eye(3))  # 1 kg, 5 cm out, 5 cm of gyration radius
PAYLOAD_MASS = 5.0  # [kg] standard deviation of an unknown payload's mass; its first moment: PAYLOAD_ARM times it
PAYLOAD_ARM = 0.15  # [m] from the flange: tools and what they hold are seldom further out
# Reflected rotor inertia where the arm's data has none, in kg m2 per Nm of peak torque: 0.011 to 0.018 in a UR10e's
# controller, 0.004 to 0.010 found on a UR3e; taken as known to its own size.
ROTOR_PER_TORQUE = 0.015
_OFFSET = 0.03  # of peak torque, standard deviation of a joint's offset; 0.016 is the largest that was seen
# [rad/s] at which friction as a whole is known to a share of itself (_SPREAD_SEEN, _SPREAD_UNSEEN), each apart: three
# numbers, Coulomb, viscous and quadratic, and three speeds up to what arms are moved at. Not the numbers themselves: a
# slow log that finds less Coulomb friction then says nothing of fast motion. Errors that are alike at all speeds
# (correlation 0.75) predicted fast motion of a UR10e from slow worse by a fifth.
_SPEEDS = (0.0, 1.0, 2.0)
# Of a rotor inertia that the arm's data has: a motor and its gear are the same in every arm of a type, unlike friction.
_KNOWN_ROTOR = 0.1
_SEEN_ROTOR = 0.5  # of one that was identified on another arm of the type
_LOAD = 0.2  # of the load itself; 0.05 to 0.1 was seen on a UR3e
_PEAK = 100.0  # [Nm] where the arm's data has no peak torque
# Friction of single arms of these types, identified from the recordings that the project is tried on: Coulomb [Nm],
# viscous [Nm s/rad], quadratic [Nm s2/rad2], load [-]. The UR10e's Coulomb and viscous terms are in its model file.
_SEEN: dict[str, dict[str, tuple[float, ...]]] = {
    "ur3e": {
        "coulomb": (3.57, 3.43, 1.43, 0.59, 0.96, 0.63),
        "viscous": (4.50, 2.76, 1.27, 2.00, 1.55, 1.69),
        "quadratic": (0.0, 0.0, 0.0, -1.25, -0.94, -1.04),
        "load": (0.0, 0.046, 0.074, 0.078, 0.074, 0.0),
        "rotor_inertia": (0.23, 0.23, 0.16, 0.073, 0.086, 0.088),  # joint 2 hardly told there: that of joint 1
    },
    "ur10": {
        "coulomb": (17.0, 13.4, 6.6, 3.3, 2.7, 3.0),
        "viscous": (12.6, 18.2, 10.2, 2.9, 2.7, 2.9),  # joint 3: 13.0 less its quadratic term at 1 rad/s
        "load": (0.0, 0.052, 0.036, 0.0, 0.0, 0.0),
    },
}
# Arms whose friction was measured at the factory only: warm and without load. On a cold arm at work it is off by more.
_FACTORY = ("ur5e",)
# Arms of the series before the e-Series: a rotor of an e-Series joint of the same size is no data of theirs. With it a
# UR10's twin ran 19 to 26 % worse in four joints, 6 and 11 % better in two.
_OLD_SERIES = ("ur3", "ur5", "ur10")
# Other arms: shares of the peak torque. UR3e, UR10e, UR10: Coulomb 0.041 to 0.107, viscous (at 1 rad/s) 0.038 to 0.087.
_COULOMB_SHARE, _VISCOUS_SHARE = 0.055, 0.06
# How far friction of another arm, or of this one at another temperature, is from the numbers: a share of the friction
# itself at a usual speed, one standard deviation. Grease halves its viscosity over some 20 K, single gears differ by a
# fifth; where not even the type was seen, the scatter of the shares above.
USUAL_SPEED = 0.5  # [rad/s]
_SPREAD_SEEN, _SPREAD_UNSEEN = 0.25, 0.5
SURE = 0.15  # standard error of a share of friction up to which it is believed: less than what arms of a type differ by
ONE_WAY = 0.1  # share of the motion in the rarer direction below which offset and friction cannot be told apart
MOST_SHARE = 1.5  # of the type's friction: more is an offset or a touch


# A standing joint may hide up to its Coulomb friction (UR10e: peaks 15 17 8 2.7 3.5 2.6 Nm at rest, Coulomb 16.8 16.9
# 7.2 2.8 3.4 2.7), itself known with the spread above.


def peak_torque(model: Model) -> Array:
    """Peak torque (n,) [Nm] of the joints, the scale of everything that a drive does."""
    peak = np.array([joint.tau_max for joint in model.joints])
    return np.where(np.isfinite(peak), peak, _PEAK)


def link_prior(model: Model, sigma: float = LINK_SIGMA) -> tuple[Array, Array]:
    """Mean (10 n,) and information (10 n, 10 n) of the links' parameters, without payload; sigma: relative."""
    mean = np.concatenate([parameters_of_link(link) for link in model.links])
    information = np.zeros((len(mean), len(mean)))
    for i in range(len(model.links)):
        own = slice(SIZE * i, SIZE * (i + 1))
        scale = mean[own]
        if i == len(model.links) - 1:
            scale = scale + parameters_of_link(_TOOL)
        information[own, own] = metric(scale) / sigma**2
    return mean, information


def payload_prior(model: Model) -> tuple[Array, Array]:
    """The same for a payload in the place of the last link, all other links taken as known (mean 0, no weight)."""
    size = SIZE * len(model.links)
    information = np.zeros((size, size))
    last = np.arange(size - SIZE, size - SIZE + 4)
    sigma = PAYLOAD_MASS * np.array([1.0, PAYLOAD_ARM, PAYLOAD_ARM, PAYLOAD_ARM])
    information[last, last] = 1.0 / sigma**2
    mean = np.zeros(size)
    mean[size - SIZE] = 1.0  # [kg] inside m > 0, far inside its own uncertainty
    return mean, information


def type_friction(model: Model) -> tuple[dict[str, Array], Array]:
    """Terms of friction, (n,) each, as its type, the arm's data or its peak torque have them; and how surely (n,).

    What was identified on the type goes first: its terms were fitted together, the data has two of them.

    The share of itself that friction may be off, one standard deviation. Not among them: what nobody has seen.
    """
    n, peak = len(model.joints), peak_torque(model)
    seen = {name: np.array(values) for name, values in _SEEN.get(model.name, {}).items() if len(values) == n}
    terms = {"coulomb": _COULOMB_SHARE * peak, "viscous": _VISCOUS_SHARE * peak, **seen}
    for name in ("coulomb", "viscous", "rotor_inertia"):
        told = getattr(model.drives, name)
        if name not in seen and np.any(np.isfinite(told)):
            terms[name] = np.where(np.isfinite(told), told, terms.get(name, np.full(n, np.nan)))
    tried = model.name not in _FACTORY
    measured = [tried and grade not in (None, "approximated") for grade in grades(model, "drives.coulomb")]
    sure = (np.isfinite(model.drives.coulomb) & measured) | bool(seen)
    return terms, np.where(sure, _SPREAD_SEEN, _SPREAD_UNSEEN)


def drive_prior(model: Model) -> tuple[Array, Array]:
    """Mean and standard deviation (n, terms) of the drives' terms, by TERMS.

    The standard deviations are those of the terms alone; drive_information has how they hang together.
    """
    peak = peak_torque(model)
    known, share = type_friction(model)
    mean = np.zeros((len(peak), len(TERMS)))
    sigma = np.empty_like(mean)
    at = {name: k for k, name in enumerate(TERMS)}
    # a quadratic term is an arm's own, and no prior for other speeds: the same friction at the usual speed, in a line
    mean[:, at["coulomb"]] = known["coulomb"]
    mean[:, at["viscous"]] = known["viscous"] + USUAL_SPEED * known.get("quadratic", 0.0)
    sigma[:, at["offset"]], sigma[:, at["load"]] = _OFFSET * peak, _LOAD
    rotor, told = known.get("rotor_inertia", np.full(len(peak), np.nan)), np.array(model.drives.rotor_inertia)
    guessed = np.array([grade == "approximated" for grade in grades(model, "drives.rotor_inertia")])
    told[guessed | ("rotor_inertia" in _SEEN.get(model.name, {}))] = np.nan
    rotor = np.where(guessed & (model.name in _OLD_SERIES), np.nan, rotor)
    mean[:, at["rotor_inertia"]] = np.where(rotor > 0.0, rotor, ROTOR_PER_TORQUE * peak)
    sure = np.where(told > 0.0, _KNOWN_ROTOR, np.where(rotor > 0.0, _SEEN_ROTOR, 1.0))
    sigma[:, at["rotor_inertia"]] = sure * mean[:, at["rotor_inertia"]]
    block = [at[name] for name in ("coulomb", "viscous", "quadratic")]
    for j, information in enumerate(_friction_information(mean, share)):
        sigma[j, block] = np.sqrt(np.diag(np.linalg.inv(information)))
    return mean, sigma


def drive_information(model: Model) -> tuple[Array, Array]:
    """Mean (n, terms) and information (n, terms, terms) of the drives' terms, those of friction as functions of speed.

        information = sum_v a a^T / (share friction(v))^2,    a = (1, v, v^2) of Coulomb, viscous, quadratic

    Added over _SPEEDS; the other terms are independent of one another.
    """
    mean, sigma = drive_prior(model)
    information = np.zeros((*mean.shape, mean.shape[1]))
    k = np.arange(mean.shape[1])
    information[:, k, k] = 1.0 / sigma**2
    block = [TERMS.index(name) for name in ("coulomb", "viscous", "quadratic")]
    information[:, np.array(block)[:, None], block] = _friction_information(mean, type_friction(model)[1])
    return mean, information


def _friction_information(mean: Array, share: Array) -> Array:
    """Of Coulomb, viscous and quadratic term (n, 3, 3)."""
    speed = np.array(_SPEEDS)
    a = np.stack([np.ones_like(speed), speed, speed**2], axis=1)  # (speeds, 3)
    friction = mean[:, [TERMS.index("coulomb")]] + mean[:, [TERMS.index("viscous")]] * speed  # (n, speeds)
    return np.asarray(np.einsum("js,sa,sb->jab", 1.0 / (share[:, None] * friction) ** 2, a, a))


def prior_drive(robot: Robot) -> DriveModel:
    """A drive model for an arm of which no log was read: friction as seen on its type, or scaled by peak torque.

    `spread` (one standard deviation while moving) and `stiction` (at rest) hold how little is known: 25 % of the
    friction at 0.5 rad/s where an arm of the type was seen (UR3e, UR10e, UR10), 50 % elsewhere, and at rest all of the
    Coulomb friction on top of that. Rotor inertia: the arm's data, else a share of the peak torque. Gains: the arm's.
    """
    drives, zero = robot.drives, np.zeros(robot.dof)
    known, share = type_friction(robot.model)
    coulomb, viscous = known["coulomb"], known["viscous"]
    rotor = drive_prior(robot.model)[0][:, TERMS.index("rotor_inertia")]
    return DriveModel(
        gain=drives.gain, rotor_inertia=rotor, coulomb=coulomb, viscous=viscous, offset=zero,
        quadratic=known.get("quadratic", zero), load=known.get("load", zero), ripple=np.zeros((robot.dof, 0)),
        stiction=(1.0 + share) * coulomb, spread=share * (coulomb + USUAL_SPEED * viscous), mean_load=zero, orders=(),
    )  # fmt: skip


def friction_share(arm: Robot, drive: DriveModel, motion: Motion) -> Array:
    """Times the friction of `drive` that a log shows, joint by joint (n,); 1 where it cannot be told.

    One number per joint, and an offset where it moves both ways, from however little motion: a simulated arm, or one
    whose controller has taken friction off its torques, shows none. Joints that cannot tell are as the others' median
    says, where two can.
    """
    n = arm.dof
    share = np.full(n, np.nan)
    if motion.q.shape[1] != n or len(motion.time) < 2:
        return np.ones(n)
    m = thinned(midpoints(motion))
    q, qd, qdd, tau = m.q, m.qd, m.qdd, m.tau
    left = tau - arm.inverse_dynamics(q, qd, qdd)
    law = drive.friction(q, qd, arm.gravity_torque(q)) - drive.offset
    for j in range(n):
        moving = np.abs(qd[:, j]) > STANDSTILL
        if moving.sum() < LEAST_ROWS:
            continue
        columns = [law[moving, j], qdd[moving, j]]
        forth = float(np.mean(qd[moving, j] > 0.0))
        if ONE_WAY < forth < 1.0 - ONE_WAY:  # in one direction alone, friction and offset are one number: friction
            columns.append(np.ones(int(moving.sum())))
        x, _, sigma = agreed(np.column_stack(columns), left[moving, j])
        if sigma[0] < SURE:
            share[j] = np.clip(x[0], 0.0, MOST_SHARE)
    told = np.isfinite(share)
    if told.sum() < 2:
        return np.ones(n)
    return np.where(told, share, np.median(share[told]))
