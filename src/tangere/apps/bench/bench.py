"""`tangere bench`: ours beside the peers that are installed, interleaved in one process.

Before a row is timed, the answers are compared; a contender whose answer differs is reported, not timed. Each round of
single calls has another state, so that no branch predictor learns one by heart.

One thread throughout: our kernels, MuJoCo and Pinocchio's algorithms start none, and BLAS does not for 6x6 matrices.
The parallel forms of Pinocchio and EAIK are timed beside, after the rounds, so that their threads disturb no round.

The momentum observer, one step and a whole log, stands beside the same observer written on Pinocchio.
The peer's text is the observer at its cheapest: no look at stamps or at numbers that are not finite, weights computed
beforehand, and no function call of its own around the step. Pinocchio's three terms, then plain lists: for six joints
one comprehension costs less than ten operations of numpy (7.4 against 8.5 us). Slower: rnea for p or for gravity, @
instead of .dot; computeAllTerms has no C. rnea in the middle of each period is faster (5.7 us), but that is the
acceleration residual, which equals this one only up to h^2.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import expm1
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np

from tangere.apps.bench import peers as bench_peers
from tangere.apps.bench.peers import ARGUMENTS, IKPeer, Peer
from tangere.apps.bench.results import (
    Contender,
    Result,
    bench_text,
    best_time,
    difference,
    entry,
    machine,
    own_version,
    poses,
    race,
    rounded,
    solution_difference,
    states,
)
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.logs.files import replacing
from tangere.model.model import Array
from tangere.observe.momentum import GAIN, MomentumObserver
from tangere.observe.replay import replay_momentum
from tangere.report.terminal import Line, wants_colour
from tangere.robots import Robot, robot
from tangere.types import State

SECONDS = 42.0  # of measuring by default: with imports and comparisons the whole run stays below a minute
ROLLOUT_SECONDS = 10.0  # at most with --rollouts: there is one row
QUICK_SECONDS = 5.0  # with --quick: below ten seconds altogether
SIZES = (1_000, 100_000)
TOLERANCE = 1e-9  # two libraries agree to about 1e-12 (MuJoCo diagonalises inertias); a wrong convention is off by 1e-3
STATES = 64  # states that single calls go through, round by round
COMPARED = 8  # states compared before timing; a difference in convention shows in any of them
LOOPED = 2_000  # samples that a peer loops over in a larger batch: its time is linear in them
# 1e5 regressors of a six-joint arm are 288 MB: that would time the memory of the machine, not the library
LARGEST = {"regressor": 10_000}
PERIOD, LOG_SECONDS = 2e-3, 60.0  # [s] a minute of a UR at 500 Hz
STEP, REPLAY = "step", "replay of 60 s at 500 Hz"
ROWS = tuple(f"{what}{friction}" for what in (STEP, REPLAY) for friction in ("", ", with friction"))
STEPS = 64  # samples that one execution of a step's text goes through
OBSERVED = 250  # samples of the log that the peer goes through: its time is linear in them, ours takes as long for all

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
    exec(_replay_text(friction), names)
    out: Array = names["out"]
    return out


def _text(head: str, friction: JointFriction | None, tail: str = "") -> str:
    return f"{_SETUP}\n{head}{_STEP.format(friction='' if friction is None else _FRICTION)}{tail}"


def _replay_text(friction: JointFriction | None) -> str:
    return _text(_PEER_REPLAY, friction, "    out[i] = r\n")


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
    time, q, qd, tau = whole = log(arm, round(LOG_SECONDS / PERIOD))
    samples = list(map(State, time[:STEPS].tolist(), [PERIOD] * STEPS, q, qd, tau))
    laws = (None, friction_of(arm))
    matching: list[list[Peer]] = []
    for friction in laws:
        ours = replay_momentum(arm, time[:OBSERVED], q[:OBSERVED], qd[:OBSERVED], tau[:OBSERVED], GAIN, friction)[1:]
        method = f"momentum observer{'' if friction is None else ', with friction'}"
        able = [peer for peer in peers if peer.name == "pinocchio"]
        matching.append([p for p in able if agrees(p.name, method, ours, peer_residuals(arm, p, friction, OBSERVED))])
    for k, row in enumerate(ROWS):
        tell(f"momentum observer, {row}")
        friction, stepped = laws[k % 2], row.startswith(STEP)
        observer = MomentumObserver(arm, GAIN, friction)
        observer.reset(samples[0])
        names = {
            "observer": observer, "samples": samples, "replay": replay_momentum, "arm": arm, "log": whole,
            "gain": GAIN, "friction": friction,
        }  # fmt: skip
        text = "for s in samples: observer.update(s)" if stepped else "replay(arm, *log, gain, friction)"
        contenders = [Contender("tangere", Timer(text, globals=names), STEPS if stepped else len(time))]
        for peer in matching[k % 2]:
            if stepped:
                text, names = _text(_PEER_STEP, friction, "    np.array(r)\n"), _names(arm, peer, friction)
                contenders.append(Contender(peer.name, Timer(text, globals=names | {"samples": samples}), STEPS))
            else:
                text, names = _replay_text(friction), _replay_names(arm, peer, friction, OBSERVED)
                contenders.append(Contender(peer.name, Timer(text, globals=names), OBSERVED - 1))
        out[row] = entry(race(contenders, share), "pinocchio")
    return out


def _silent(text: str) -> None:
    """Tell nobody."""


class Bench:
    """One run over one arm: compares, times, and collects what the JSON holds."""

    def __init__(self, arm: Robot, seconds: float, sizes: Sequence[int], tell: Callable[[str], None] = _silent):
        self.arm = arm
        self.sizes = sizes
        self.tell = tell
        self.peers, self.ik_peers, self.missing = bench_peers.find(arm.model)
        self.disagreements: list[Result] = []
        batches = sum(size <= LARGEST.get(method, size) for size in sizes for method in ARGUMENTS)
        inverse = (1 + len(sizes)) if self.ik_peers else 0
        self.share = seconds / (len(ARGUMENTS) + batches + inverse + len(ROWS))  # seconds for one row of the tables
        self.states = states(arm, STATES)
        self.agreeing = {method: [p for p in self.peers if self._agrees(p, method)] for method in ARGUMENTS}
        self.agreeing_ik = [p for p in self.ik_peers if self._agrees_ik(p)]

    def run(self) -> Result:
        """Everything, as the JSON shows it."""
        single = {method: self.single(method) for method in ARGUMENTS}
        batch = {
            str(size): {m: self.batch(m, size) for m in ARGUMENTS if size <= LARGEST.get(m, size)}
            for size in self.sizes
        }
        versions = {"tangere": own_version(), "numpy": np.__version__}
        versions |= {p.name: p.version for p in self.peers} | {p.name: p.version for p in self.ik_peers}
        return {
            "robot": self.arm.name, "single": single, "batch": batch, "ik": self.inverse_kinematics(),
            "observer": observer_rows(self.arm, self.peers, self.share, self._same, self.tell),
            "machine": machine(), "missing": self.missing, "disagreements": self.disagreements,
            "versions": versions,
        }  # fmt: skip

    def _report(self, peer: str, method: str, worst: float) -> bool:
        if worst > TOLERANCE:
            off = worst if np.isfinite(worst) else "another shape or number of solutions"  # infinity is no JSON
            self.disagreements.append({"peer": peer, "method": method, "difference": off})
        return worst <= TOLERANCE

    def _same(self, peer: str, method: str, ours: Array, theirs: Array) -> bool:
        return self._report(peer, method, difference((ours,), (theirs,)))

    def _agrees(self, peer: Peer, method: str) -> bool:
        recipe = peer.recipes.get(method)
        if recipe is None:
            return False
        call = getattr(self.arm, method)
        whole = _parts(call(*(self.states[name][:COMPARED] for name in ARGUMENTS[method])))
        worst = 0.0
        for k in range(COMPARED):
            state = {name: self.states[name][k] for name in ARGUMENTS[method]}
            theirs = recipe.result({**peer.namespace, **state})
            alone = _parts(call(*state.values()))
            worst = max(worst, difference(alone, theirs), difference([part[k] for part in whole], theirs))
        return self._report(peer.name, method, worst)

    def _agrees_ik(self, peer: IKPeer) -> bool:
        worst = 0.0
        for T in poses(self.arm, COMPARED):
            theirs = eval(peer.found, {**peer.namespace, "T": T})
            worst = max(worst, solution_difference(self.arm.inverse_kinematics(T).q, theirs))
        return self._report(peer.name, "inverse_kinematics", worst)

    def single(self, method: str) -> Result:
        """One call at a time."""
        self.tell(f"{method}, single call")
        state = {name: self.states[name][0].copy() for name in self.states}
        text = f"robot.{method}({', '.join(ARGUMENTS[method])})"
        contenders = [Contender("tangere", Timer(text, globals={"robot": self.arm, **state}))]
        for peer in self.agreeing[method]:
            names = {**peer.namespace, **state}
            contenders.append(Contender(peer.name, Timer(peer.recipes[method].single(), globals=names)))

        def refresh(k: int) -> None:
            for name, values in state.items():
                values[...] = self.states[name][k % STATES]

        return entry(race(contenders, self.share, refresh), "pinocchio")

    def batch(self, method: str, size: int) -> Result:
        """`size` states: ours in one call, a peer in a Python loop that stores its answers in arrays made before."""
        self.tell(f"{method}, batch of {size}")
        arguments = ARGUMENTS[method]
        whole = states(self.arm, size)
        inputs = {name.upper(): whole[name] for name in arguments}
        text = f"robot.{method}({', '.join(inputs)})"
        contenders = [Contender("tangere", Timer(text, globals={"robot": self.arm, **inputs}), size)]
        first = {name: whole[name][0] for name in arguments}
        rows = min(size, LOOPED)
        few = {name: values[:rows] for name, values in inputs.items()}
        parallel: dict[str, Timer] = {}
        for peer in self.agreeing[method]:
            recipe = peer.recipes[method]
            shapes = [part.shape for part in recipe.raw({**peer.namespace, **first})]
            out = {f"out_{k}": np.empty((rows, *shape)) for k, shape in enumerate(shapes)}
            names = {**peer.namespace, **few, **out}
            contenders.append(Contender(peer.name, Timer(recipe.looped(arguments), globals=names), rows))
            if method in peer.parallel:
                out = {"out_0": np.empty((size, *shapes[0]))}
                parallel[peer.name] = Timer(peer.parallel[method], globals={**peer.namespace, **inputs, **out})
        result = entry(race(contenders, self.share), "pinocchio")
        result["million_per_second"] = rounded(1.0 / result["tangere_us"])
        for name, timer in parallel.items():
            result[f"{name}_parallel_us"] = rounded(1e6 / size * best_time(timer, self.share / 4))
        return result

    def inverse_kinematics(self) -> Result:
        """All solutions of a pose, single and in batches, against each peer."""
        if not self.agreeing_ik:
            return {}
        self.tell("inverse_kinematics, single call")
        # the number of solutions, and with it the time, differs from pose to pose: every slice goes through all poses
        names = {"robot": self.arm, "poses": list(poses(self.arm, STATES))}
        contenders = [
            Contender("tangere", Timer("for T in poses: robot.inverse_kinematics(T).q", globals=names), STATES)
        ]
        for p in self.agreeing_ik:
            timer = Timer(f"for T in poses: {p.single}", globals={**names, **p.namespace})
            contenders.append(Contender(p.name, timer, STATES))
        times = race(contenders, self.share)
        out = {p.name: entry({n: times[n] for n in ("tangere", p.name)}, p.name) for p in self.agreeing_ik}
        for size in self.sizes:
            self.tell(f"inverse_kinematics, batch of {size}")
            for name, result in self._ik_batch(size).items():
                out[name].setdefault("batch", {})[str(size)] = result
        return out

    def _ik_batch(self, size: int) -> dict[str, Result]:
        whole = poses(self.arm, size)
        few = list(whole[:LOOPED])
        text = "robot.inverse_kinematics(T).q"
        contenders = [Contender("tangere", Timer(text, globals={"robot": self.arm, "T": whole}), len(whole))]
        for p in self.agreeing_ik:
            names = {**p.namespace, "poses": few, "threads": 1}
            loop = p.batch or f"for T in poses: {p.single}"
            contenders.append(Contender(p.name, Timer(loop, globals=names), len(few)))
        times = race(contenders, self.share)
        out = {}
        for p in self.agreeing_ik:
            result = entry({n: times[n] for n in ("tangere", p.name)}, p.name)
            result["million_per_second"] = rounded(1.0 / result["tangere_us"])
            if p.batch:
                timer = Timer(p.batch, globals={**p.namespace, "poses": few, "threads": bench_peers.cores()})
                result[f"{p.name}_parallel_us"] = rounded(1e6 / len(few) * best_time(timer, self.share / 4))
            out[p.name] = result
        return out


def _parts(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def _shown(result: Result, target: Any, place: Path | None, table: str) -> None:
    """JSON to the screen or into a file, else (and beside the file) the table."""
    text = json.dumps(result, indent=2, allow_nan=False)
    if place is not None:
        place.write_text(text + "\n", encoding="utf-8")
    print(text if target is True or target == "-" else table)


def main(arguments: Namespace) -> int:
    """Measure and show; returns the exit code: 1 where a peer's answer differs from ours, else 0.

    arguments: json (True or "-": JSON instead of the tables; a file name: JSON there and the tables here), quick,
    seconds (of measuring), robot, goals (show what each row has to reach), rollouts (those alone), device (of
    rollouts), ordinary (a period of a run alone); each may be absent.
    """
    target: Any = getattr(arguments, "json", None)
    named = isinstance(target, (str, os.PathLike)) and target != "-"
    with replacing(target) if named else nullcontext() as place:  # what cannot be written is said before it is measured
        return _measured(arguments, target, place)


def _measured(arguments: Namespace, target: Any, place: Path | None) -> int:
    seconds = getattr(arguments, "seconds", None)
    if seconds is None:
        seconds = QUICK_SECONDS if getattr(arguments, "quick", False) else SECONDS
    if not 0.0 <= seconds < np.inf:
        raise InvalidValue(f"--seconds must be a number >= 0, got {seconds}")
    if getattr(arguments, "rollouts", False):
        from tangere.apps.bench import rollouts

        arm = robot(getattr(arguments, "robot", None) or "ur10e")
        closed = rollouts.measured(arm, min(seconds, ROLLOUT_SECONDS), getattr(arguments, "device", None) or "cpu")
        _shown(closed, target, place, rollouts.text(closed))
        return 0
    if getattr(arguments, "ordinary", False):
        from tangere.apps.bench import periods

        taken = periods.measured(robot(getattr(arguments, "robot", None) or "ur10e"), min(seconds, ROLLOUT_SECONDS))
        _shown(taken, target, place, periods.text(taken))
        return 0
    if (getattr(arguments, "device", None) or "cpu") != "cpu":
        raise InvalidValue("--device cuda: goes with --rollouts; the other rows are of the CPU")
    with Line() as line:
        bench = Bench(robot(getattr(arguments, "robot", None) or "ur10e"), seconds, SIZES, line)
        result = bench.run()
    _shown(result, target, place, bench_text(result, wants_colour(), getattr(arguments, "goals", False)))
    if bench.missing:
        print(f"not installed: {', '.join(bench.missing)}; pip install 'tangere[bench]' adds them", file=sys.stderr)
    return 1 if bench.disagreements else 0
