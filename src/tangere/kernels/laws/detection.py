"""The law of detection: signals of a residual, their thresholds and the score, one sample at a time.

Written over any number type: floats, or symbols that `kernels.table` traces, so that a loop, `watch`, `tune`, a study
and whatever else watches a residual run this one text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from tangere.codegen.functions import absolute, maximum, minimum, sqrt, where

Number = Any  # float or codegen.trace.Symbol
Row = list[Any]  # (n,) of them

LEVEL, CHANGE, IMPACT, SHOCK = 0, 1, 2, 3
CHANNELS = ("level", "change", "impact", "shock")
MOVING, TURNING, STANDING = 0, 1, 2
REGIMES = ("moving", "turning", "standing")
# 1/s of impact and shock: 78 % of a step within one sample at 100 Hz, 63 % within 7 ms at any rate above; faster, and
# the noise of the velocity times M / h is all that is left of a 100 Hz log
FAST = 150.0
# 1/s of the level channel: what stays. 50 ms of lag make short shocks of no net impulse (a servo that misses a sample)
# small; what comes quickly is left to the other two
SLOW = 20.0
# s over which the mean before an event is learned: 70 to 80 % are kept of a touch that builds up over 0.1 to 0.2 s;
# shorter by far than a motion takes to change the torque of a wrong mass (1 to 3 s). With 0.5 s the rarest changes of a
# UR3e's free motion are up to twice as large, with 0.15 s half of a touch by hand is lost; slower ones are the level's
BASELINE = 0.25
# s that a joint counts as turning after it started, stopped or reversed: on 40 runs of a UR3e the residual of a joint
# that starts is back to that of a moving one after 0.1 s. The last part fades into the regime that follows.
HOLD, FADE = 0.15, 0.05
TURN_BASELINE = 0.05  # s, the same for a turning joint: stiction that lets go is no change of the world
HARMLESS = 0.2  # K h below which one wrong sample counts for less than a fifth in d: from 250 Hz on at 50/s
GAP = 0.1  # s without a sample, or a clock that goes back: start again
# s after a start whose residuals are no part of the mean before: an observer that starts with its first input, which is
# mostly noise, needs five time constants to forget it
FORGET = 0.1
SETTLING = 0.3  # s after a start in which nothing is watched: the mean has then 0.2 s, the level six time constants
# Beyond the speed that its thresholds were learned from those of a joint grow with the square of the excess: what a
# friction law leaves wrong grows with the first to second power of the speed. For EASE seconds more, fading: such a
# joint also brakes as none did before. Simulated UR10e, 3 of 8 arms stopping from 2 to 3 times the speeds learned:
# level and change reached 1.1 to 3.0 of thresholds without this, 0.9 at most with it
EASE = 0.25
FORGOTTEN = 0.01  # of excess that is none any more
# An event ends where every signal is below OFF of its threshold, or below FALLEN of what it was at its largest (and
# below the threshold): stiction leaves something behind
OFF, FALLEN = 0.5, 0.35
RELEASE = 0.25  # s below before it is over: what was pushed swings back, and is one event with its swing
TICK = 1e-9  # s: sums of periods must not miss it by their rounding
AFTER_MOVING, AFTER_STANDING = 0.3, 1.0  # s after an event in which joints count as turning: stiction settles

LAGS = 8  # numbers that a period is given with, see `lags`


def lags(
    h: Number, gain: float, turning: float = TURN_BASELINE, expm1: Callable[[Any], Any] = math.expm1
) -> list[Number]:
    """A period h [s] as the law takes it: h, what each filter takes over within it, and whether K h < HARMLESS.

    Shares 1 - exp(-h rate) of SLOW, FAST, the observer's own gain K [1/s], the mean, the mean of a joint that turns,
    over `turning` [s], and of EASE. A period that is none (not within 0 to GAP, not a number) starts the law again: h
    is then -1.
    """
    good = (0.0 < h) & (h <= GAP)
    span = where(good, h, 1.0)
    rates = (SLOW, FAST, gain, 1.0 / BASELINE, 1.0 / turning, 1.0 / EASE)
    return [where(good, h, -1.0), *(-expm1(span * -rate) for rate in rates), where(gain * span < HARMLESS, 1.0, 0.0)]


# The state: rows of n, then numbers
#   s, f, g, d, b of `step`, the residual and which way joints went before, seconds for which each still counts as
#   turning, excess of speed, what is taken off the level, speed and acceleration behind their lags, how far the latter
#   has just jumped; seconds since the start; 1 while an event holds the mean; its largest score; seconds for which it
#   has been low, -1 while it is not; 1 where one was over with this sample
STATE_ROWS = ("s", "f", "g", "d", "b", "r", "way", "turn", "excess", "zero", "v", "a", "jump")
STATE_NUMBERS = ("age", "held", "peak", "below", "settles")


def state_size(n: int) -> int:
    """Numbers of a state of n joints."""
    return len(STATE_ROWS) * n + len(STATE_NUMBERS)


def start(n: int) -> list[float]:
    """The state before the first sample, flat."""
    rows = {"excess": 1.0}
    return [*(rows.get(name, 0.0) for name in STATE_ROWS for _ in range(n)), 0.0, 0.0, 0.0, -1.0, 0.0]


# The parameters: thresholds [Nm] by channel and regime, spread of the change [Nm] and scale [Nm] by regime, see
# observe.detect.Thresholds; arm (4, n, n) by TOGETHER; jolt (4, n, n) [Nm2/(rad/s2)2] by channel; 1 / speed [s/rad]
# from which thresholds grow, 0: never; stiction [Nm], what a standing joint keeps of a touch. Then standstill [rad/s];
# settling [s] after a start in which nothing is watched; alone: 1 where the law itself begins and ends events, 0 where
# whoever asks it does, by held
LIMITS = (len(CHANNELS) + 2) * len(REGIMES)  # rows before arm
TOGETHER = ("change", "impact", "shock", "level")  # channels of all joints together, in the order of arm


def limits_size(n: int) -> int:
    """Numbers of the parameters for n joints."""
    return (LIMITS + 2) * n + 8 * n * n + 3


# Outputs of a step: numbers, then rows of n
NUMBERS = ("score", "ready", "over", "held")
ROWS = (*CHANNELS, "raw", "bound_level", "bound_change", "sigma", *(f"ratio_{c}" for c in CHANNELS),
        *(f"arm_{c}" for c in TOGETHER), "jump", *REGIMES)  # fmt: skip


def output_size(n: int) -> int:
    """Numbers of an answer of `step` beside the state."""
    return len(NUMBERS) + len(ROWS) * n


def step(n: int, P: Row, period: Row, residual: Row, qd: Row, state: Row) -> list[Number]:
    """The state after a sample, then NUMBERS and ROWS.

        y_k = r_{k-1} + (r_k - r_{k-1}) / (1 - exp(-K h))     the observer's input again: what acted since the sample
                                                              before, without its lag ("raw")
        level   s             ds/dt = SLOW (y - s)
        change  two(d - b)    dd/dt = FAST (c - d), dc/dt = K (y - c), so c = r: noise of the velocity is white in r,
                              and the second lag takes most of it for some ms;
                              b: mean of c over BASELINE seconds, held during events
        impact  two(f - b)    df/dt = FAST (y - f)
        shock   g - b         dg/dt = FAST (f - g)

    two(x_k) is the smaller of x_k and x_{k-1}, 0 where their signs differ: a stamp or velocity that is wrong once
    makes two large y of opposite sign and vanishes here, for one sample of delay (at K h < HARMLESS d itself is slow
    enough for wrong samples, and change is d - b). Shock has no such delay, against a
    threshold that the wrong samples of this robot have set; at 500 Hz, where noise of the velocity is most of y, its
    second lag leaves 0.4 of that noise, and a step stands out further from 4 ms on (14 ms: 7.7 standard deviations
    of 20 Nm on a UR10e's joint 2, change 6.6, f 4.2). A wrong mass or a warm gear moves c and b alike: change,
    impact and shock stay quiet.

    Regimes per joint, as weights that sum to 1: moving; standing, while no joint of the arm moves; turning, where
    stiction may jump: for HOLD seconds after it started, stopped or reversed, and while it stands and another moves.

    Where an acceleration has just jumped, a model is less right than in steady motion, and torque and velocity, which
    are not of one instant, disagree: thresholds grow with the jumps of all joints, and fall back over 0.1 s:

        bound_cj^2 = threshold_cj(regimes)^2 + sum_k jolt_cjk jump_k^2
        jump_k = largest |acceleration_k - its mean over 1 / SLOW s|, fading with SLOW / 2

    score: the largest over channels and joints of |signal_cj| / (bound_cj excess_j^2) and of |arm z|_cj, z = signal /
    (scale excess^2 bound / threshold), of the level signal / (bound excess^2), see `_all_levels`; above 1 an event is
    raised. excess: speed against the fastest that the thresholds know, fading, 1 at least. ready: 1 where this sample
    is watched. over: 1 where an event has been low for RELEASE seconds. held: as in the state.

    period: LAGS numbers of `lags`; residual (n,) [Nm] of an observer of that gain, qd (n,) [rad/s]. The first sample
    and one after a gap are given with a period that is none. So are one that is not finite, and the one after it. A
    sample that repeats is not given at all.
    """
    h, slow, fast, own, mean, turning, ease, harmless = period
    rows = [P[k : k + n] for k in range(0, len(P) - 3, n)]
    standstill, settling, alone = P[-3:]
    age, held, peak, below, settles = state[-len(STATE_NUMBERS) :]
    fresh = h <= 0.0
    age = where(fresh, 0.0, age + h)
    part = maximum(mean, h / maximum(age - FORGET, h))  # at first the plain mean since FORGET
    way = [where(standstill < v, 1.0, where(v < -standstill, -1.0, 0.0)) for v in qd]
    moves = way[0] * way[0]
    for w in way[1:]:
        moves = maximum(moves, w * w)
    sample = _Sample(fresh, 0.5 < settles, 0.5 < held, h, slow, fast, own, ease, harmless, part, maximum(turning, part),
                     0.5 < moves)  # fmt: skip
    olds = [[state[k * n + j] for k in range(len(STATE_ROWS))] for j in range(n)]
    jumps = [_jump(sample, v, old[-3:]) for v, old in zip(qd, olds, strict=True)]
    squares = [x * x for *_, x in jumps]
    jolts = rows[LIMITS + 4 * n : LIMITS + 8 * n]
    joints = []
    for j in range(n):
        known = [row[j] for row in (*rows[:LIMITS], *rows[-2:])]
        shaken = [
            sum((a * x for a, x in zip(jolts[c * n + j], squares, strict=True)), 0.0) for c in range(len(CHANNELS))
        ]
        joints.append(_joint(sample, residual[j], absolute(qd[j]), way[j], olds[j][:-3], known, shaken, jumps[j]))
    out: dict[str, Row] = {name: [joint.out[name] for joint in joints] for name in joints[0].out}
    for c, name in enumerate(TOGETHER):
        A = rows[LIMITS + c * n : LIMITS + (c + 1) * n]
        shares = [[a * joint.scaled[c] for a, joint in zip(row, joints, strict=True)] for row in A]
        if name == "level":
            out[f"arm_{name}"] = [_all_levels(row, out["moving"]) for row in shares]
        else:
            out[f"arm_{name}"] = [absolute(sum(row, 0.0)) for row in shares]
    score = _largest([x for name in ROWS if name.startswith(("ratio_", "arm_")) for x in out[name]])
    watched, holding, top = settling < age, (0.5 < held) & (0.0 < h), maximum(peak, score)
    low = holding & (_largest([joint.lasts for joint in joints]) < minimum(1.0, maximum(OFF, FALLEN * top)))
    below = where(low, where(below < 0.0, 0.0, below + h), -1.0)
    over = low & (RELEASE - TICK <= below)
    acts = (0.5 < alone) & watched
    raises = acts & (held < 0.5) & (1.0 < score)
    ends = acts & over
    held = where(ends, 0.0, where(holding | raises, 1.0, 0.0))
    kept = [joint.kept[k] for k in range(len(STATE_ROWS)) for joint in joints]
    kept += [age, held, where(holding | raises, top, 0.0), below, where(ends, 1.0, 0.0)]
    numbers = [where(watched, score, 0.0), where(watched, 1.0, 0.0), where(over, 1.0, 0.0), held]
    return [*kept, *numbers, *(x for name in ROWS for x in out[name])]


class _Sample(NamedTuple):
    """What all joints share."""

    fresh: Number
    settled: Number  # an event was over with the sample before
    held: Number
    h: Number
    slow: Number
    fast: Number
    own: Number
    ease: Number
    harmless: Number
    part: Number  # that the mean takes over
    quick: Number  # the same of a joint that turns
    moves: Number  # whether any joint does


class _Joint(NamedTuple):
    """Of one joint: STATE_ROWS, some of ROWS, signals of TOGETHER over their scale, what keeps an event going."""

    kept: Row
    out: dict[str, Number]
    scaled: Row
    lasts: Number


def _jump(now: _Sample, speed: Number, old: Row) -> Row:
    """v, a and jump of STATE_ROWS after this sample: speed behind 1 / FAST s, the mean of its rate, and how far off."""
    v, a, jump = old
    v = where(now.fresh, speed, v)
    change = now.fast * (speed - v)
    rate = where(now.fresh, 0.0, change / where(now.fresh, 1.0, now.h))
    a = where(now.fresh, 0.0, a + now.slow * (rate - a))
    faded = where(now.fresh, 0.0, jump * sqrt(1.0 - now.slow))
    return [v + change, a, maximum(absolute(rate - a), faded)]


def _joint(
    now: _Sample, r: Number, speed: Number, way: Number, old: Row, limits: Row, shaken: Row, jump: Row
) -> _Joint:
    s, f, g, d, b, before, was, turn, excess, zero = (
        where(now.fresh, r, x) if k <= STATE_ROWS.index("r") else x for k, x in enumerate(old)
    )
    still = absolute(way) < 0.5
    # an event was over with the sample before: its residual is the mean, and stiction settles for a while
    rest = where(absolute(was) < 0.5, AFTER_STANDING, AFTER_MOVING)
    turn = where(now.settled, maximum(turn, rest), turn)
    turn = where(now.fresh, 0.0, where((way < was) | (was < way), HOLD, turn - now.h))
    turn = where(still & now.moves, maximum(turn, FADE), turn)
    share = minimum(maximum(turn, 0.0), FADE) / FADE
    weights = (where(still, 0.0, 1.0 - share), share, where(still, 1.0 - share, 0.0))
    b = where(now.held, b, where(now.settled, before, b))
    b = where(now.held, b, b + where(0.0 < turn, now.quick, now.part) * (r - b))
    y = before + (r - before) / now.own
    s, f_old, d_old = s + now.slow * (y - s), f, d
    f, d = f + now.fast * (y - f), d + now.fast * (r - d)
    g = g + now.fast * (f - g)
    change = where(0.5 < now.harmless, d - b, _two(d - b, d_old - b))
    values = (s - zero, change, _two(f - b, f_old - b), g - b)
    faded = (excess - 1.0) * (1.0 - now.ease)
    *table, per_speed, stiction = limits
    excess = maximum(speed * per_speed, where(FORGOTTEN < faded, 1.0 + faded, 1.0))
    bounds = [
        table[k] * weights[0] + table[k + 1] * weights[1] + table[k + 2] * weights[2] for k in range(0, len(table), 3)
    ]
    wide = excess * excess
    bounds_before = bounds[:4]
    bounds[:4] = [sqrt(bound * bound + more) for bound, more in zip(bounds_before, shaken, strict=True)]
    ratios = [absolute(value) / (bound * wide) for value, bound in zip(values, bounds[:4], strict=True)]
    # a joint that stands keeps what the touch has pressed into its stiction: no reason for an event to last, nor is a
    # mean before that held what stiction left, once the joint moves and nothing is left of the residual
    stuck = where(still, stiction, 0.0)
    left = minimum(absolute(change), absolute(r)) / (bounds[CHANGE] + stuck)
    lasts = maximum(absolute(values[LEVEL]) / (bounds[LEVEL] + stuck), left)
    out = dict(zip(CHANNELS, values, strict=True)) | dict(zip(REGIMES, weights, strict=True))
    out |= {"raw": y, "bound_level": bounds[LEVEL], "bound_change": bounds[CHANGE], "sigma": bounds[4]}
    out["jump"] = jump[-1]
    out |= {f"ratio_{name}": ratio for name, ratio in zip(CHANNELS, ratios, strict=True)}
    kept = [s, f, g, d, b, r, way, turn, excess, zero, *jump]
    grown = [bound / before for bound, before in zip(bounds[1:4], bounds_before[1:4], strict=True)]
    scaled = [value / (bounds[5] * wide * more) for value, more in zip(values[1:], grown, strict=True)]
    return _Joint(kept, out, [*scaled, values[LEVEL] / (bounds[LEVEL] * wide)], lasts)


def _all_levels(shares: Row, moving: Row) -> Number:
    """|sum of the shares|, the least that it may be: those of joints that do not move are anything from 0 to these.

    Stiction holds a joint at any level, so that its own says nothing of the others; but where a model is wrong, they
    explain each other, and one that is left out would leave the others unexplained.
    """
    sure = sum((m * x for m, x in zip(moving, shares, strict=True)), 0.0)
    low = sum(((1.0 - m) * minimum(x, 0.0) for m, x in zip(moving, shares, strict=True)), sure)
    high = sum(((1.0 - m) * maximum(x, 0.0) for m, x in zip(moving, shares, strict=True)), sure)
    return maximum(maximum(low, -high), 0.0)


def _two(new: Number, old: Number) -> Number:
    """The smaller of both, 0 where their signs differ."""
    return maximum(minimum(new, old), 0.0) + minimum(maximum(new, old), 0.0)


def _largest(values: Row) -> Number:
    top = values[0]
    for value in values[1:]:
        top = maximum(top, value)
    return top
