"""A bounded set of calls of the C extension: right ones, wrong ones and hostile ones. Run by itself it prints a count.

tests/test_c_calls.py runs it as it is, tests/test_sanitised.py with a build that watches memory (ASAN, UBSAN) and under
valgrind.
"""

from __future__ import annotations

import copy
import pickle
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
from foreign_arms import ARMS, urdf

import tangere
from tangere.control.computed_torque import ComputedTorque
from tangere.dynamics.friction import JointFriction
from tangere.errors import MissingExtra, TangereError
from tangere.kernels import rollouts
from tangere.kernels.periods import Records, clipped, fill, finite, plus, squared
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.momentum import MomentumObserver
from tangere.plants.random_pushes import RandomPushes
from tangere.plants.sensors import SensorModel
from tangere.types import Reference, State

ONE = ("pose", "link_poses", "jacobian", "link_jacobians", "mass_matrix", "gravity_torque")
TWO = ("jacobian_rate_times_velocity", "coriolis_matrix", "bias_torque", "momentum_terms", "energy")
THREE = ("inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives", "regressor")
LARGEST = (1e6, 1e50, 1e50)  # q, then qd and what comes third: finite input has a finite answer up to here


def arrays(answer: Any) -> list[Any]:
    """The arrays of an answer."""
    return [np.asarray(part) for part in answer] if isinstance(answer, tuple) else [np.asarray(answer)]


def right_calls(arm: Any, rng: np.random.Generator, count: int) -> int:
    """Single states and batches of every layout; every answer finite, whatever finite numbers come in."""
    n, done = arm.dof, 0
    for names, inputs in ((ONE, 1), (TWO, 2), (THREE, 3)):
        for name in names:
            call = getattr(arm, name)
            for k in range(count):
                scale = LARGEST if k % 5 == 4 else (3.0, 2.0, 10.0)
                shape = [(n,), (1, n), (7, n), (3, 5, n), (0, n)][k % 5 if k % 5 < 4 or k % 2 else 0]
                given = [rng.uniform(-s, s, shape) for s in scale[:inputs]]
                if k % 3 == 1:  # not contiguous
                    given = [np.repeat(value, 2, axis=-1)[..., ::2] for value in given]
                if k % 3 == 2 and len(shape) == 1:
                    given = [value.tolist() for value in given]
                for part in arrays(call(*given)):
                    assert np.all(np.isfinite(part)), (name, given)
                done += 1
    return done


def steps(arm: Any, rng: np.random.Generator, count: int) -> int:
    """Steps of a plant, with friction and without it, of states that are none as well: numbers, None or an error."""
    n = arm.dof
    rubbed = [None, rng.uniform(0.0, 1.0, (n, 3)), np.zeros((n, 2)), np.zeros((3, n))[:, ::-1], "x"]
    states = [rng.uniform(-3.0, 3.0, n), np.full(n, np.nan), np.full(n, 1e308), np.zeros(n + 1), None]
    for k in range(count):
        given = [states[int(i)] for i in rng.integers(0, len(states), 3)] if k % 2 else [states[0]] * 3
        try:
            answer = arm._runge_kutta(*given, rubbed[k % len(rubbed)], 1e-3)
        except TangereError:
            continue
        assert answer is None or all(part.shape == (n,) for part in answer)
    return count


def wrong_calls(arm: Any) -> int:
    """What is no state of an arm: an error of ours each time, never a number and never a crash."""
    n = arm.dof
    good = np.zeros(n)
    bad: list[Any] = [
        None, "x", 1.0, [], np.zeros(n + 1), np.zeros((n, 2)), np.full(n, np.nan), np.full(n, np.inf), [10**400] * n,
        np.full(n, 1e155), np.full(n, 1e308), np.full(n, 1j), [object()] * n, np.zeros((1,) * 40 + (n,)),
        np.zeros((1,) * 60 + (n,)), np.array([None] * n), {"q": 1}, [[0.0] * n, [0.0]], np.zeros(n, dtype="M8[s]"),
    ]  # fmt: skip
    done = 0
    for names, inputs in ((ONE, 1), (TWO, 2), (THREE, 3)):
        for name in names:
            for value in bad:
                for at in range(inputs):
                    given: list[Any] = [good] * inputs
                    given[at] = value
                    try:
                        answer = getattr(arm, name)(*given)
                    except TangereError:
                        done += 1
                    else:
                        raise AssertionError((name, at, value, answer))
    return done


def reused_results(arm: Any) -> int:
    """A result that nobody holds is filled again, but only where its numbers are still where they were made."""
    q = np.zeros(arm.dof)
    for name in ONE:
        for _ in range(20):
            held = arrays(getattr(arm, name)(q))[0]
            small = np.zeros(arm.dof)
            if held.ndim:
                held.__setstate__(small.__reduce__()[2])  # its memory is another one now, with less room
            del held
            before = [part.copy() for part in arrays(getattr(arm, name)(q))]
            after = arrays(getattr(arm, name)(q))
            assert all(part.base is not None for part in after), name  # the memory of one answer, not that of another
            assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)), name
    return 40 * len(ONE)


def replays(arm: Any, rounds: int) -> int:
    """A log is replayed while another thread makes the observer anew and lets the arm go: refused, and no harm."""
    time = np.arange(2000) * 1e-3
    q = 0.1 * np.sin(time)[:, None] * np.ones(arm.dof)
    observer = MomentumObserver(arm)
    core = next(v for v in (getattr(observer, s, None) for s in ("_core", "_compiled", "core")) if v is not None)
    made = core.__reduce__()[1]
    first = core.replay(time, None, q, q, q)[0].copy()
    refused = []

    def meddle() -> None:
        for _ in range(200):
            try:
                core.__init__(*made)
            except TypeError:
                refused.append(1)

    for _ in range(rounds):
        thread = threading.Thread(target=meddle)
        thread.start()
        for _ in range(5):
            assert np.array_equal(core.replay(time, None, q, q, q)[0], first)
        thread.join()
    assert len(refused) == 200 * rounds
    try:
        copy.copy(type(core).__new__(type(core)))
    except TypeError:
        pass
    else:
        raise AssertionError("an observer that was never made was copied")
    pickle.loads(pickle.dumps(core))
    return rounds


def observed(arm: Any, rng: np.random.Generator, count: int) -> int:
    """Samples of any kind into an observer; a residual that was handed out never changes."""
    observer = MomentumObserver(arm)
    observer.reset(State(0.0, 1e-3, *np.zeros((3, arm.dof))))
    held = []
    for k in range(1, count):
        q, qd, tau = rng.normal(size=(3, arm.dof)) * (1e300 if k % 97 == 0 else 1.0)
        qd[0] = np.nan if k % 89 == 0 else qd[0]
        residual = observer.update(State(1e-3 * k, 1e-3, q, qd, tau))
        if k % 50 == 0:
            held.append((residual, residual.copy()))
    assert all(np.array_equal(now, then, equal_nan=True) for now, then in held)
    return count


def fused(arm: Any, rounds: int) -> int:
    """Rollouts with noise, friction, pushes and a log: both numbers, both steps, every width, one thread and two."""
    rest = np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
    friction, first = JointFriction.of(arm.drives), []
    for dtype, method in (("float64", "rk4"), ("float32", "semi-implicit")):
        rolls = tangere.rollouts(
            arm, controller=ComputedTorque(arm, rest, kp=400.0, friction=friction),
            observer=MomentumObserver(arm, friction=friction), detector=Detector(Thresholds.constant(25.0, arm.dof)),
            friction=friction, sensors=SensorModel.preset("ur10e", 1e-3), count=11, seconds=5e-3 * rounds, dtype=dtype,
            pushes=RandomPushes(start=(1e-3, 2e-3), force=(40.0, 200.0)), method=method, record=2,
        )  # fmt: skip
        assert np.all(np.isfinite(rolls.q))
        for name in rollouts.available():
            for workers in (1, 2):
                done = rollouts.fused(
                    rolls.plan.job(0, 11), single=dtype == "float32", instruction_set=name, every=2, workers=workers
                )
                first.append(done.numbers.tobytes())
    assert len(set(first)) == 2  # one answer for each number
    return len(first)


def stepped(rounds: int) -> int:
    """Environments for learning, which have a kernel of their own; none without gymnasium."""
    try:
        from tangere import gym
    except MissingExtra:
        return 0
    for task in gym.ENVIRONMENTS:
        envs = gym.make_vec(task, 5)
        seen, _ = envs.reset(seed=1)
        for _ in range(rounds):
            seen = envs.step(np.zeros(envs.action_space.shape))[0]
        assert all(np.all(np.isfinite(part)) for part in (seen.values() if isinstance(seen, dict) else [seen]))
    return rounds * len(gym.ENVIRONMENTS)


def periods(arm: Any, rng: np.random.Generator, count: int) -> int:
    """What a loop does in every period: rows into a block, sums, cuts; and what is refused."""
    block, q = np.zeros((count, 1 + arm.dof)), rng.normal(size=(count, arm.dof))
    records = Records(Reference, q, q[::-1], np.repeat(q, 2, axis=1)[:, ::2])
    for k in range(count):
        fill(block, k, float(k), q[k])
        assert finite(block[k], records(k).q)
        assert squared(clipped(q[k], np.full(arm.dof, 0.5))) <= 0.25 * arm.dof
        assert np.array_equal(plus(q[k], block[k], 1), 2.0 * q[k])
    assert np.array_equal(block[:, 1:], q)
    for wrong in (-1, count, 2**62):
        beyond = wrong + 2 if wrong == count else wrong  # of a row that is one longer
        calls = (
            lambda k=wrong: fill(block, k, 1.0, q[0]), lambda k=wrong: records(k),
            lambda k=beyond: plus(q[0], block[0], k),
        )  # fmt: skip
        for call in calls:
            try:
                call()
            except (IndexError, ValueError):
                continue
            raise AssertionError(wrong)
    return 3 * count


def everything(count: int = 15) -> int:
    """All of it; how many calls."""
    rng, done = np.random.default_rng(1), 0
    for name in ("ur10e", "ur3"):
        arm = tangere.robot(name)
        done += right_calls(arm, rng, count) + wrong_calls(arm) + steps(arm, rng, 10 * count) + reused_results(arm)
        poses = arm.pose(rng.uniform(-3.0, 3.0, (count, arm.dof)))
        for T in poses:
            arm.inverse_kinematics(T, np.zeros(arm.dof))
        arm.inverse_kinematics(poses)
        done += 2 * count + replays(arm, 2) + observed(arm, rng, 40 * count) + periods(arm, rng, count)
    for name, rows in ARMS.items():  # no closed form: kernels of any arm
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "arm.urdf").write_text(urdf(name, rows))
            done += right_calls(tangere.robot(Path(folder) / "arm.urdf"), rng, min(count, 3))
    return done + fused(tangere.robot("ur10e", rotor_inertia=True), count) + stepped(count)


if __name__ == "__main__":
    print(everything(int(sys.argv[1]) if len(sys.argv) > 1 else 15), "calls")
