"""The momentum observer in `tangere bench`: one step and a whole log, beside the same observer written on Pinocchio.

The peer's text is the observer at its cheapest: no look at stamps or at numbers that are not finite, weights computed
beforehand, and no function call of its own around the step. Pinocchio's three terms, then plain lists: for six joints
one comprehension costs less than ten operations of numpy (7.4 against 8.5 us). Slower: rnea for p or for gravity, @
instead of .dot; computeAllTerms has no C. rnea in the middle of each period is faster (5.7 us), but that is the
acceleration residual, which equals this one only up to h^2.
"""

from __future__ import annotations

from collections.abc import Callable
from math import expm1
from timeit import Timer
from typing import Any

import numpy as np

from tangere.apps.bench.peers import Peer
from tangere.apps.bench.timing import Contender, Result, entry, race
from tangere.dynamics.friction import JointFriction
from tangere.observe.momentum import GAIN, MomentumObserver
from tangere.observe.replay import replay_momentum
from tangere.robots import Robot
from tangere.types import Array, State

PERIOD, SECONDS = 2e-3, 60.0  # s: a minute of a UR at 500 Hz
STEP, REPLAY = "step", "replay of 60 s at 500 Hz"
ROWS = tuple(f"{what}{friction}" for what in (STEP, REPLAY) for friction in ("", ", with friction"))
STEPS = 64  # samples that one execution of a step's text goes through
LOOPED = 250  # samples of the log that the peer goes through, as long as ours for all of it: its time is linear in them

_SETUP = "p, beta, r = p0, beta0, zero"
_STEP = """\
    p1 = pin.crba(model, data, q).dot(qd).tolist()
    force = qd.dot(pin.computeCoriolisMatrix(model, data, q, qd))
    force -= pin.computeGeneralizedGravity(model, data, q)
{friction}    beta1 = force.tolist()
    joints = zip(r, p, p1, beta, beta1, tau.tolist())
    r = [r + weight * ((b - a) / h - t - 0.5 * (c + d) - r) for r, a, b, c, d, t in joints]
    p, beta = p1, beta1
"""
_FRICTION = "    force -= viscous * qd + coulomb * np.tanh(qd * scale)\n"
_PEER_STEP = "for s in samples:\n    q, qd, tau, h = s.q, s.qd, s.tau, s.period\n"
_PEER_REPLAY = "for i, (q, qd, tau, h) in enumerate(zip(Q, QD, TAU, H)):\n"


def log(arm: Robot, count: int) -> tuple[Array, Array, Array, Array]:
    """time, q, qd, tau of a smooth motion with a torque that is not quite its own; the same one in every run."""
    rng = np.random.default_rng(11)
    rate, phase = rng.uniform(1.0, 4.0, (2, arm.dof))
    time = PERIOD * np.arange(float(count))
    angle = time[:, None] * rate + phase
    q, qd = np.asarray(np.sin(angle)), np.asarray(rate * np.cos(angle))
    return time, q, qd, np.asarray(arm.gravity_torque(q) + np.cos(3.0 * angle))


def friction_of(arm: Robot) -> JointFriction:
    """Some friction: what it costs does not depend on the numbers."""
    return JointFriction(np.full(arm.dof, 5.0), np.full(arm.dof, 8.0))


def _names(arm: Robot, peer: Peer, friction: JointFriction | None) -> dict[str, Any]:
    """What the peer's text needs besides its own namespace and the samples."""
    _, q, qd, _ = log(arm, 1)
    p, beta, g = arm.momentum_terms(q[0], qd[0])
    beta = beta - g - (0.0 if friction is None else friction.torque(qd[0]))
    law = {} if friction is None else {"viscous": friction.viscous, "coulomb": friction.coulomb}
    return {
        **peer.namespace, **law, "np": np, "scale": 0.0 if friction is None else 1.0 / friction.width,
        "zero": [0.0] * arm.dof, "p0": p.tolist(), "beta0": beta.tolist(), "weight": -expm1(-GAIN * PERIOD),
    }  # fmt: skip


def peer_residuals(arm: Robot, peer: Peer, friction: JointFriction | None, count: int) -> Array:
    """The peer's residuals (count - 1, n) of the log after its first sample, by the text that is timed."""
    names = _replay_names(arm, peer, friction, count)
    exec(_text(_PEER_REPLAY, friction, "    out[i] = r\n"), names)
    out: Array = names["out"]
    return out


def _text(head: str, friction: JointFriction | None, tail: str = "") -> str:
    return f"{_SETUP}\n{head}{_STEP.format(friction='' if friction is None else _FRICTION)}{tail}"


def _replay_names(arm: Robot, peer: Peer, friction: JointFriction | None, count: int) -> dict[str, Any]:
    _, q, qd, tau = log(arm, count)
    # the first sample is where the observer begins
    rows = {"Q": q[1:], "QD": qd[1:], "TAU": tau[1:], "H": [PERIOD] * (count - 1), "out": np.empty_like(q[1:])}
    return _names(arm, peer, friction) | rows


def observer_rows(
    arm: Robot,
    peers: list[Peer],
    share: float,
    agrees: Callable[[str, str, Array, Array], bool],
    tell: Callable[[str], None],
) -> Result:
    """Both ways, without and with friction: microseconds per sample. share: seconds for each row.

    agrees(peer, method, ours, theirs): whether the residuals are the same, so that the peer may be timed.
    """
    out: Result = {}
    time, q, qd, tau = log(arm, round(SECONDS / PERIOD))
    samples = list(map(State, time[:STEPS].tolist(), [PERIOD] * STEPS, q, qd, tau))
    laws = (None, friction_of(arm))
    matching: dict[int, list[Peer]] = {}
    for k, friction in enumerate(laws):
        ours = replay_momentum(arm, time[:LOOPED], q[:LOOPED], qd[:LOOPED], tau[:LOOPED], GAIN, friction)[1:]
        method = f"momentum observer{', with friction' * k}"
        able = [peer for peer in peers if peer.name == "pinocchio"]
        matching[k] = [p for p in able if agrees(p.name, method, ours, peer_residuals(arm, p, friction, LOOPED))]
    for k, friction in enumerate(laws):
        tell(f"momentum observer, {ROWS[k]}")
        observer = MomentumObserver(arm, GAIN, friction)
        observer.reset(samples[0])
        names = {"observer": observer, "samples": samples}
        contenders = [Contender("tangere", Timer("for s in samples: observer.update(s)", globals=names), STEPS)]
        for peer in matching[k]:
            theirs = _names(arm, peer, friction) | {"samples": samples}
            text = _text(_PEER_STEP, friction, "    np.array(r)\n")
            contenders.append(Contender(peer.name, Timer(text, globals=theirs), STEPS))
        out[ROWS[k]] = entry(race(contenders, share, lambda k: None), "pinocchio")
    for k, friction in enumerate(laws):
        tell(f"momentum observer, {ROWS[2 + k]}")
        names = {"replay": replay_momentum, "arm": arm, "log": (time, q, qd, tau), "gain": GAIN, "friction": friction}
        timer = Timer("replay(arm, *log, gain, friction)", globals=names)
        contenders = [Contender("tangere", timer, len(time))]
        for peer in matching[k]:
            text = _text(_PEER_REPLAY, friction, "    out[i] = r\n")
            timer = Timer(text, globals=_replay_names(arm, peer, friction, LOOPED))
            contenders.append(Contender(peer.name, timer, LOOPED - 1))
        out[ROWS[2 + k]] = entry(race(contenders, share, lambda k: None), "pinocchio")
    return out
