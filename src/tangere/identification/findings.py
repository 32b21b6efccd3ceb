"""What does not fit in a log: units that a recording gets wrong, and another arm than it is said to be of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tangere.identification.prior import ONE_WAY, USUAL_SPEED, type_friction
from tangere.identification.samples import LEAST_ROWS, Motion, midpoints, resting, simple_terms, thinned
from tangere.identification.solve import agreed
from tangere.model.loading import names
from tangere.observe.detect import Thresholds
from tangere.observe.detect.signals import FASTER
from tangere.observe.drive_model import STANDSTILL
from tangere.robots import Robot, robot
from tangere.types import Array

# The slope of measured over modelled torque of a right arm lies within these (an unknown tool of a few kg included);
# of currents taken for torques the same holds after multiplication by the gain, which is 3.6 to 12 Nm/A on the arms
# whose gains are known; of a wrong size of arm or a wrong mounting it lies outside or has no meaning.
_SLOPE = (0.6, 2.0)
_GAIN = 10.0  # [Nm/A] of the loaded joints, where the arm's data has none
_LEAST_LOAD = 2.0  # [Nm] standard deviation of a joint's gravity torque over the log below which it is no witness
_LEAST_R2 = 0.5  # share of the variance that gravity and friction must explain in a joint that carries a load
# The most that |slope - 1| may be for another arm to be named: a tool changes the slope by more only if it is heavy
_FITS = 0.25
# Share of all of a joint's torque that the rigid body and friction must explain before friction that drives it is a
# wrong sign: a push that comes and goes makes such friction, too, and leaves more (0.98 and above on free arms)
_WHOLLY = 0.9
_DRIVES = 0.25  # of the type's friction that must be there before its sign counts: so much do arms of a type differ
_SIGMAS = 4.0  # standard errors that a slope must be off before it is said: neighbours repeat more than blocks know
_NAMES = 2  # witnesses, on this arm or the other, before another is named: one alone fits some size by chance
_TARGET = 0.1  # the same for the controller's own target moment, which has no friction in it
SLOWEST, FASTEST = 0.5, 5e-5  # [s] between samples: no recorder of an arm is as slow as 2 Hz or faster than 20 kHz
FULL = 4.0 * np.pi  # [rad] joints of these arms turn at most 2 pi either way; twice that is no angle in radians
WINDOW = 0.1  # [s] over which travel and mean velocity are compared: filters and noise of the velocity do not count
MOVED = 0.1  # [rad] (or degrees) of travel of a joint in the log before it is a witness
RATIO = 1.25  # either way, that velocity times time may differ from the travel: the velocity is filtered
FEWEST = 10  # windows with motion
LOADED = 4.0  # [Nm] rms of gravity in a joint before it is a witness: below, friction is most of the current
# times gravity that currents times gains may be: right arms have 0.6 to 1.7, an unknown tool of the rated payload up to
# 3, on a UR16e or UR30 folded up 5; torques in the place of currents 7 to 15 (the gains of loaded joints)
HEAVY = 6.0
OTHER_RATE = 1.5  # times, either way: noise per sample and filters are others; less is a clock


Kind = Literal[
    "recording",  # what the reader of the file said of its rows
    "units",  # stamps, angles or velocities in another unit: nothing can be learned
    "velocities",  # no velocities, or not those of the positions
    "zero",  # no torque at all
    "impossible",  # samples whose torque no drive has
    "currents",  # torques that are currents, or the other way round
    "no witness",  # gravity cannot tell the arm
    "misfit",  # gravity fits neither this arm nor another
    "sign",  # torques of some joints have the wrong sign
    "mounting",  # gravity pulls the other way: the arm hangs
    "other arm",  # gravity does not fit this arm, but another
    "better arm",  # gravity fits another arm better; a payload may explain it
    "target",  # the controller's own target moment does not fit the arm
    "gain",  # where a gain is from, or that two sources differ
    "strange gain",  # gravity asks for gains that such drives do not have
    "smoothed",  # the log went through a low-pass
    "unmoved",  # a joint that hardly moves
    "late",  # friction that follows the speed late
    "touched",  # stretches that look touched, and are left out
    "stopped",  # the arm was stopped abruptly and stands to the end of the log: not learned from
    "hardly touched",  # stretches that look a little touched, and are learned from
    "held",  # something that no model explains acts all along, such as a hand
    "worse",  # the model predicts worse than the arm's data
    "own logs",  # thresholds are learned from logs that the model was identified from
    "rate",  # samples come at another rate than those that thresholds were learned from
    "faster",  # joints are faster than thresholds were learned for
    "payload",  # what the controller was told is mounted
    "belief",  # where what is believed of the arm comes from
    "doubt",  # what was found when the model was identified
    "clock",  # the clock was set back
    "unwatched",  # nothing, or less than was asked for, could be watched
    "unknown",  # of a model file that has sentences only
]
# what gravity tells of the arm, all logs together
GRAVITY: tuple[Kind, ...] = ("misfit", "mounting", "other arm", "better arm")
ALIEN: tuple[Kind, ...] = ("other arm", "currents", "sign")  # of such a log nothing is to be learned


@dataclass(frozen=True)
class Finding:
    """Something that whoever uses a log or a model should know."""

    kind: Kind
    sentence: str
    joint: int | None = None  # counted from 1, where it is about one joint

    def __str__(self) -> str:
        return self.sentence

    def record(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {"kind": self.kind, "joint": self.joint, "sentence": self.sentence}

    def of(self, name: str) -> Finding:
        """The same, said of the log of that name."""
        return replace(self, sentence=f"{name}: {self.sentence}")


def sentences(findings: Iterable[Finding]) -> tuple[str, ...]:
    """What they say, in their order."""
    return tuple(finding.sentence for finding in findings)


def gravity_slopes(arm: Robot, motions: Sequence[Motion]) -> tuple[Array, Array]:
    """Slope (n,) of measured torque over the rigid model's, and the share explained (n,); nan for no witness."""
    seen = _seen(arm, motions)
    return seen.slope, seen.share


@dataclass(frozen=True)
class _Seen:
    """What logs show of each joint (n,), nan where they do not."""

    slope: Array  # of measured torque over the rigid model's, where gravity changes
    share: Array  # of the torque's variance that is explained
    sigma: Array  # standard error of the slope
    friction: Array  # [Nm] at a usual speed, against the motion
    unsure: Array  # [Nm] its standard error
    bend: Array  # how far real friction, which is not exactly these two terms, can bend the slope over few moves
    whole: Array  # share of the variance of all its samples that is explained, touched ones too


def _seen(arm: Robot, motions: Sequence[Motion]) -> _Seen:
    """Joint by joint, from motion.

    tau = slope (M qdd + C qd + g) + coulomb sign(qd) + viscous qd + rotor qdd + offset in motion, as most of the log
    has it (agreed): a push of some seconds does not bend it.
    """
    m = thinned(*(midpoints(motion) for motion in motions))
    q, qd, qdd, tau = m.q, m.qd, m.qdd, m.tau
    slopes, shares, sigmas, friction, unsure, bend, whole = np.full((7, arm.dof), np.nan)
    seen = _Seen(slopes, shares, sigmas, friction, unsure, bend, whole)
    if len(q) == 0 or q.shape[1] != arm.dof:
        return seen
    rigid, load = arm.inverse_dynamics(q, qd, qdd), arm.gravity_torque(q)
    usual = _usual_friction(arm)
    for j in range(arm.dof):
        moving = np.abs(qd[:, j]) > STANDSTILL
        if moving.sum() < LEAST_ROWS:
            continue
        A = np.column_stack([rigid[moving, j], simple_terms(qd[moving, j], qdd[moving, j])])
        x, inside, sigma = agreed(A, tau[moving, j])
        forth = float(np.mean(qd[moving, j][inside] > 0.0))
        if ONE_WAY < forth < 1.0 - ONE_WAY:  # in one direction alone friction is an offset
            friction[j], unsure[j] = x[1] + USUAL_SPEED * x[2], np.hypot(sigma[1], USUAL_SPEED * sigma[2])
        whole[j] = 1.0 - (A @ x - tau[moving, j]).var() / max(float(tau[moving, j].var()), 1e-12)
        if load[moving, j][inside].std() < _LEAST_LOAD:
            continue
        told, terms = A[inside, 0], A[inside, 1:]
        part = np.std(told - terms @ np.linalg.lstsq(terms, told, rcond=None)[0])  # that they cannot imitate
        bend[j] = _DRIVES * usual[j] / max(float(part), 1e-12)
        error, own = (A @ x - tau[moving, j])[inside], tau[moving, j][inside]
        slopes[j], sigmas[j], shares[j] = x[0], sigma[0], 1.0 - error.var() / max(float(own.var()), 1e-12)
    return seen


def _usual_friction(arm: Robot) -> Array:
    """Friction (n,) [Nm] of the type at a usual speed."""
    usual = type_friction(arm.model)[0]
    return np.asarray(usual["coulomb"] + USUAL_SPEED * usual["viscous"])


def _signs(arm: Robot, seen: _Seen) -> tuple[Finding, ...]:
    """Torques of the wrong sign: friction drives these joints, and gravity, where it tells, pulls them up.

    Friction alone is no witness where another joint has friction that drives it and gravity as it should be: then
    somebody moves the arm. Gravity alone is none either: an arm that hangs has its gravity turned round, not its
    friction.
    """
    least = _DRIVES * _usual_friction(arm)
    with np.errstate(invalid="ignore"):
        driven = (seen.friction < -least) & (seen.friction < -_SIGMAS * seen.unsure) & (seen.whole > _WHOLLY)
        lifted = (seen.slope < -_SLOPE[0]) & (seen.share > _LEAST_R2)
        right = (seen.slope > _SLOPE[0]) & (seen.share > _LEAST_R2)
        rubs = (seen.friction > least) & (seen.friction > _SIGMAS * seen.unsure)
    shown = ", ".join(f"joint {j + 1} {seen.slope[j]:.2f}" for j in np.flatnonzero(lifted))
    wrong = np.flatnonzero(driven & (lifted | np.isnan(seen.slope)))
    if len(wrong) and not np.any(driven & right):
        which = "of all joints" if len(wrong) == arm.dof else "of joint " + ", ".join(str(j + 1) for j in wrong)
        text = f"the torques {which} have the wrong sign: friction would drive the motion"
        text += f", and measured over modelled gravity is {shown} instead of 1" if shown else ""
        return (Finding("sign", text, int(wrong[0]) + 1 if len(wrong) == 1 else None),)
    witnesses = np.isfinite(seen.slope)
    if np.any(lifted) and np.all(lifted[witnesses]) and not np.any(driven) and np.any(rubs):
        text = f"gravity pulls the other way: measured over modelled is {shown} instead of 1, while friction is as it "
        return (Finding("mounting", text + "should be; is it mounted the other way round (--gravity table, ceiling)?"),)
    return ()


def gravity_findings(arm: Robot, motions: Sequence[Motion], gain: Array | None = None) -> tuple[Finding, ...]:
    """What does not fit the arm by its gravity; nothing where all is well.

    gain (n,) [Nm/A]: with which the torques were made from currents, None (or nan) where they are torques themselves.
    """
    seen = _seen(arm, motions)
    if turned := _signs(arm, seen):
        return turned
    slopes, shares, sigmas = seen.slope, seen.share, seen.sigma
    witnesses = np.flatnonzero(np.isfinite(slopes))
    if witnesses.size == 0:
        text = "no joint carries a changing load: the log cannot tell whether it comes from this arm"
        return (Finding("no witness", text),)
    shown = ", ".join(f"joint {j + 1} {slopes[j]:.2f}" for j in witnesses)
    clear = [j for j in witnesses if shares[j] > _LEAST_R2]
    sure = np.abs(slopes - 1.0) > _SIGMAS * sigmas
    off = int(np.sum(sure & (np.abs(slopes - 1.0) > _FITS)))
    wrong = [
        j for j in witnesses
        if (sure[j] and abs(slopes[j] - 1.0) > seen.bend[j] and not _SLOPE[0] < slopes[j] < _SLOPE[1])
        or (shares[j] < _LEAST_R2 and seen.bend[j] < 1.0 - _SLOPE[0])
    ]  # fmt: skip
    mute = (seen.bend >= 1.0 - _SLOPE[0]) & (seen.bend >= np.abs(slopes - 1.0))
    if 2 * len(wrong) <= len(witnesses) - int(np.sum(mute[witnesses])):
        if off < max(_NAMES, len(witnesses) // 2 + 1):
            return ()
        lighter = bool(np.all(slopes[witnesses] < 1.0))
        return _neighbours(arm, motions, gain, shown, lighter)
    made = gain is not None and bool(np.all(np.isfinite(gain)))
    scale = gain if gain is not None and made else np.where(np.isfinite(arm.drives.gain), arm.drives.gain, _GAIN)
    if clear and not made and all(_SLOPE[0] < slopes[j] * scale[j] < _SLOPE[1] for j in clear):
        text = f"the torques look like motor currents: measured over modelled gravity is {shown} instead of 1"
        return (Finding("currents", text),)
    if clear and made and all(_SLOPE[0] < slopes[j] / scale[j] < _SLOPE[1] for j in clear):
        text = "the currents look like torques: times the gains, measured over modelled gravity is"
        return (Finding("currents", f"{text} {shown} instead of 1"),)
    better = fitting_arms(arm, motions, gain)
    hint = f"it would fit {', '.join(better)}; otherwise " if better else ""
    text = f"gravity does not fit {arm.name}: measured over modelled is {shown} instead of 1; {hint}another arm, "
    text += "another mounting, or a payload that was not given"
    return (Finding("other arm" if better else "misfit", text),)


def _neighbours(
    arm: Robot, motions: Sequence[Motion], gain: Array | None, shown: str, lighter: bool
) -> tuple[Finding, ...]:
    """Of a log most of whose witnesses are off, as by a heavy tool: whether another arm explains it without one.

    lighter: all witnesses carry less than they should, which no tool makes.
    """
    better = fitting_arms(arm, motions, gain)
    if not better:
        return ()
    text = f"gravity fits {', '.join(better)} better than {arm.name}, where measured over modelled is {shown} instead"
    if lighter:
        return (Finding("other arm", f"{text} of 1: it is rather that arm, as nothing mounted makes an arm lighter"),)
    return (Finding("better arm", f"{text} of 1: is it that arm? Otherwise a payload was not given"),)


def fitting_arms(arm: Robot, motions: Sequence[Motion], gain: Array | None = None) -> tuple[str, ...]:
    """Names of the arms that come with the package and fit a log clearly, the best first; without `arm` itself.

    gain: as gravity_findings; currents are then tried with the other arm's own gains, and with these where it has none.
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


def target_findings(arm: Robot, q: Array, qd: Array, target_moment: Array) -> tuple[Finding, ...]:
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
    text = f"the controller's target moment at rest does not fit {arm.name}: over modelled gravity it is {shown}"
    return (Finding("target", f"{text} instead of 1; another arm, another mounting, or a payload that was not given"),)


def unit_findings(time: Array, q: Array, qd: Array | None, effort: Array | None, what: str) -> list[Finding]:
    """What units are wrong; nothing where all is well.

    time (N,), q, qd, effort (N, n) as recorded; what: "currents" or "torques".
    """
    said: list[Finding] = []
    period = float(np.median(np.diff(time))) if len(time) > 1 else np.nan
    if period >= SLOWEST:
        said.append(Finding("units", slow_stamps(period)))
    elif period < FASTEST:
        text = f"samples lie {period:.2g} s apart (median): the stamps do not look like seconds"
        said.append(Finding("units", text))
    bounded = np.abs(q[:, :-1] if q.shape[1] > 1 else q)  # the last joint of a UR3 turns without end
    if float(np.mean(bounded.max(axis=1) > FULL)) > 0.5:
        said.append(Finding("units", f"angles up to {bounded.max():.4g} look like degrees: radians are needed"))
    if qd is not None and FASTEST <= period < SLOWEST:
        said += _velocity(time, q, qd, period)
    if effort is not None and len(effort) and not np.any(effort):
        said.append(Finding("zero", f"all {what} are zero: nothing can be felt in this log"))
    return said


def slow_stamps(period: float) -> str:
    """What is said of samples that lie `period` >= SLOWEST [s] apart."""
    text = "the stamps look like milliseconds or microseconds, seconds are needed"
    return f"samples lie {period:.3g} s apart (median): {text}"


def torque_findings(g: Array, current: Array, gain: Array) -> list[Finding]:
    """Whether currents are torques, by their size alone: also of an arm that stands still.

    g (N, n) [Nm] modelled gravity, current (N, n) [A], gain (n,) [Nm/A] of the joints' sizes, not of this log.
    gain (i . g) / (g . g) over the log is about 1 for currents, and about the gain for torques.
    """
    power = np.sum(g**2, axis=0)
    loaded = np.flatnonzero(power > LOADED**2 * len(g))
    ratio = gain[loaded] * np.sum(g * current, axis=0)[loaded] / power[loaded]
    if not loaded.size or not np.all(ratio > HEAVY):
        return []
    shown = ", ".join(f"joint {j + 1} {r:.1f}" for j, r in zip(loaded.tolist(), ratio.tolist(), strict=True))
    text = "the currents look like torques, or like those of a larger arm: times the gains of such joints, measured"
    return [Finding("currents", f"{text} over modelled gravity is {shown} instead of 1")]


def promised_at(thresholds: Thresholds, time: Array, qd: Array | None = None) -> tuple[Finding, ...]:
    """Where a log is none of those that tuned thresholds promise something for: another rate, or faster.

    time (N,) [s], qd (N, n) [rad/s], None: not known yet.
    """
    if not thresholds.tuned:
        return ()
    said = []
    here = 1.0 / float(np.median(np.diff(time)))
    if abs(np.log(here / thresholds.sampled)) > np.log(OTHER_RATE):
        text = f"{here:.3g} samples per second, the thresholds were learned from logs of {thresholds.sampled:.3g}: "
        said.append(Finding("rate", text + "their promise was not made for this; tune with logs of this rate"))
    if qd is not None and thresholds.speed is not None:
        fastest = np.nanmax(np.abs(qd), axis=0)
        if np.any(beyond := fastest > FASTER * thresholds.speed):
            j = int(np.argmax(fastest / thresholds.speed))
            rest = "" if beyond.sum() == 1 else f", {int(beyond.sum()) - 1} more alike"
            text = f"joint {j + 1} reaches {fastest[j]:.2g} rad/s, thresholds were learned up to "
            text += f"{thresholds.speed[j]:.2g}{rest}: they grow there, and what they promise does not hold; tune with "
            said.append(Finding("faster", text + "logs that are as fast", j + 1))
    return tuple(said)


def _velocity(time: Array, q: Array, qd: Array, period: float) -> list[Finding]:
    """Whether qd is the derivative of q: travel over windows against the integral of the velocity."""
    size = max(1, round(WINDOW / period))
    total = np.concatenate((np.zeros((1, q.shape[1])), np.cumsum(0.5 * np.diff(time)[:, None] * (qd[1:] + qd[:-1]), 0)))
    at = np.arange(0, len(time) - size, size)
    at = at[time[at + size] - time[at] < 1.5 * size * period]  # none with a gap inside
    travel, integral = q[at + size] - q[at], total[at + size] - total[at]
    ratios, bad = [], []
    for j in range(q.shape[1]):
        power = float(np.sum(travel[:, j] ** 2))
        if len(at) < FEWEST or np.ptp(q[:, j]) < MOVED or power == 0.0:
            continue
        ratio = float(np.sum(travel[:, j] * integral[:, j])) / power
        ratios.append(ratio)
        if not 1.0 / RATIO < ratio < RATIO:
            bad.append(j)
    if not bad or 2 * len(bad) <= len(ratios):
        return []
    ratio = float(np.median(ratios))
    for scale, text in (
        (180.0 / np.pi, "the velocities look like degrees per second, the positions like radians"),
        (np.pi / 180.0, "the positions look like degrees, the velocities like radians per second"),
    ):
        if scale / RATIO < ratio < RATIO * scale:
            return [Finding("units", text)]
    shown = ", ".join(str(j + 1) for j in bad)
    text = f"the velocities are not those of the positions (joint {shown}: {ratio:.3g} times the travel)"
    return [Finding("velocities", f"{text}: other columns?", bad[0] + 1 if len(bad) == 1 else None)]
