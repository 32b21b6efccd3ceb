"""A touch without a sensor: felt as early as noise allows, never in the air; speed and stiffness that go with it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from tangere.apps.drawing.drawing import drawing_robot, heavier
from tangere.apps.drawing.force.sense import AGES, ALARM, BETTER, LEARN, JointTouch, StiffnessLearner
from tangere.apps.drawing.force.surface import (
    BLIND_PEAK,
    BLIND_RATE,
    BLIND_SPEED,
    STIFFEST,
    TOUCH_SPEED_MAX,
    blind_touch_speed,
    hybrid_gains,
)
from tangere.apps.drawing.force.task import DRAW, SETTLE
from tangere.types import Array, State

ROBOT = drawing_robot("ur5e")
Q = np.array([0.4, -1.3, 2.0, -2.2, -1.5, 0.3])
N = np.array((0.0, 0.0, 1.0))
H, SIGMA = 1e-3, 2e-3
DOWN = np.array((0.0, 0.0, -0.01, 0.0, 0.0, 0.0))  # m/s


def descent(
    rng: np.random.Generator, *, rate: float = 0.0, at: int = 10**9, steps: int = 300, error: float = 0.0,
    braking: float = 0.0, told: bool = True, noise: float = SIGMA,
) -> tuple[list[float], int | None]:  # fmt: skip
    """Scores, and the sample of the first alarm, of an arm that sinks with 10 mm/s and meets `rate` [N/s] from `at` on.

    error: of all masses. braking [m/s2]: until sample 100, where the 10 mm/s are reached; told: to the filter.
    """
    real = heavier(ROBOT, error)
    touch = JointTouch(ROBOT, N, SIGMA)
    q = Q.copy()
    qd = np.linalg.solve(ROBOT.jacobian(q), DOWN * (1.0 + 99.0 * H * braking / 0.01))
    touch.start(State(0.0, H, q, qd + rng.normal(0.0, noise, 6), np.zeros(6)))
    scores: list[float] = []
    found = None
    for k in range(1, steps):
        acceleration = braking if k < 100 else 0.0
        J = ROBOT.jacobian(q)
        wanted = acceleration * np.concatenate((N, np.zeros(3))) - ROBOT.jacobian_rate_times_velocity(q, qd)
        tau = real.inverse_dynamics(q, qd, np.linalg.solve(J, wanted))  # as an integral has found it
        qdd = real.forward_dynamics(q, qd, tau + J[:3].T @ (rate * H * max(0, k - at) * N))
        qd = qd + H * qdd
        q = q + H * qd
        seen = State(k * H, H, q, qd + rng.normal(0.0, noise, 6), tau)
        if touch.update(seen, ROBOT.jacobian(q), acceleration if told else 0.0) and found is None:
            found = k
        scores.append(touch.score)
    return scores, found


def push(q: Array) -> float:
    """|a| [rad/s2 per N]."""
    return float(np.linalg.norm(np.linalg.solve(ROBOT.mass_matrix(q), ROBOT.jacobian(q)[2])))


def test_the_score_is_what_the_bound_says(rng: np.random.Generator) -> None:
    """Without noise, 8 samples after a touch of 200 N/s: |a| rate / (2 sigma) sqrt(sum t^4), less the 6 % learnt."""
    scores, _ = descent(rng, rate=200.0, at=200, steps=212, noise=0.0)
    for after in (5, 8, 10):
        t = H * np.arange(1, after + 1)
        # the force of sample k acts over the period before: speed after j samples is rate h^2 j (j + 1) / 2
        ideal = push(Q) * 200.0 / (2.0 * SIGMA) * math.sqrt(float(np.sum((t * (t + H)) ** 2)))
        assert scores[199 + after] == pytest.approx(0.94 * ideal, rel=0.06)
    assert max(scores[150:199]) < 0.1  # the descent itself is none


def test_noise_alone_has_the_variance_that_the_alarm_counts_on(rng: np.random.Generator) -> None:
    """Each filter by itself: mean 0, deviation 1; of 6000 samples 24 hang together, so 0.15 is 3 sigma and more."""
    touch = JointTouch(ROBOT, N, SIGMA)
    tau = ROBOT.gravity_torque(Q)
    J = ROBOT.jacobian(Q)
    touch.start(State(0.0, H, Q, np.zeros(6), tau))
    seen = []
    for k in range(1, 6001):
        assert not touch.update(State(k * H, H, Q, rng.normal(0.0, SIGMA, 6), tau), J)
        if k > 100:
            seen.append((touch._weights @ touch._errors).ravel())
    values = np.array(seen)
    assert values.shape[1] == 2 * len(AGES)
    assert np.abs(values.mean(axis=0)).max() < 0.2
    assert values.std(axis=0) == pytest.approx(np.ones(2 * len(AGES)), abs=0.15)


def test_directions_are_those_of_a_tip_that_slides_and_one_that_sticks(rng: np.random.Generator) -> None:
    """Once more by the accelerations: M qdd = J^T F with F along n, and with the tip's acceleration along n alone."""
    for _ in range(20):
        q = rng.uniform(-2.0, 2.0, 6)
        n = rng.normal(size=3)
        n /= np.linalg.norm(n)
        J, M = ROBOT.jacobian(q), ROBOT.mass_matrix(q)
        D = JointTouch(ROBOT, n, SIGMA).directions(q, J)
        assert D @ D.T == pytest.approx(np.eye(2), abs=1e-9)
        free = np.linalg.solve(M, n @ J[:3])
        assert D[0] == pytest.approx(free / np.linalg.norm(free))
        stuck = np.linalg.solve(M, J[:3].T @ np.linalg.solve(J[:3] @ np.linalg.solve(M, J[:3].T), n))
        stuck /= n @ (np.linalg.solve(J[:3] @ np.linalg.solve(M, J[:3].T), n))  # per N along n
        assert stuck - (stuck @ D.T) @ D == pytest.approx(np.zeros(6), abs=1e-8 * float(np.linalg.norm(stuck)))
        assert stuck @ D[1] > 0.0


@pytest.mark.parametrize("error", [-0.2, 0.0, 0.2])
def test_a_touch_is_found_within_10_ms_and_never_before(error: float) -> None:
    """20 descents each: 200 N/s without friction, whatever the masses; a tenth of it takes up to 20 ms."""
    for seed in range(20):
        _, found = descent(np.random.default_rng(seed), rate=200.0, at=200, steps=212, error=error)
        assert found is not None
        assert 200 < found <= 208
    _, found = descent(np.random.default_rng(1), rate=20.0, at=200, steps=230, error=error)
    assert found is not None
    assert 205 < found <= 220


def test_braking_is_no_touch_if_it_is_told(rng: np.random.Generator) -> None:
    """Masses 30 % wrong, and a descent that ends braking with 1 m/s2: a touch to one that is not told."""
    for error in (-0.3, 0.3):
        assert descent(rng, error=error, braking=1.0)[1] is None
        assert descent(rng, error=error, braking=1.0, told=False)[1] is not None


def test_nothing_is_said_before_the_motion_is_known(rng: np.random.Generator) -> None:
    """A push from the beginning on is taken for a wrong model; a stamp that repeats is no sample."""
    _, found = descent(rng, rate=2000.0, at=0, steps=LEARN + 1)
    assert found is None
    touch = JointTouch(ROBOT, N, SIGMA)
    tau, J = ROBOT.gravity_torque(Q), ROBOT.jacobian(Q)
    touch.start(State(0.0, H, Q, np.zeros(6), tau))
    for k in range(1, 100):
        touch.update(State(k * H, H, Q, np.zeros(6), tau), J)
    assert not touch.update(State(99 * H, H, Q, np.full(6, 10.0), tau), J)
    assert touch.score == pytest.approx(0.0, abs=1e-6)
    assert touch.update(State(100 * H, H, Q, 100.0 * np.linalg.solve(ROBOT.mass_matrix(Q), J[2]), tau), J)
    assert touch.score > ALARM


# ----------------------------------------------------------------------------------------------------- speed of a touch


def test_blind_touch_speed_meets_both_bounds() -> None:
    """Fast enough to be felt, slow enough for the force; the first touch, of an unknown paper, as before."""
    mass = 2.7
    for stiffness in np.geomspace(1e3, 2e5, 30):
        v = blind_touch_speed(5.0, stiffness, mass)
        assert BLIND_SPEED[0] <= v <= BLIND_SPEED[1]
        if BLIND_SPEED[0] < v < BLIND_SPEED[1]:
            rate, peak = stiffness * v, v * math.sqrt(stiffness * mass)
            assert rate <= BLIND_RATE * (1.0 + 1e-12)
            assert peak <= BLIND_PEAK * 5.0 * (1.0 + 1e-12)
            assert rate == pytest.approx(BLIND_RATE) or peak == pytest.approx(BLIND_PEAK * 5.0)
    assert blind_touch_speed(5.0, 1e5, mass) == TOUCH_SPEED_MAX
    assert blind_touch_speed(5.0, 2e4, mass) == pytest.approx(15e-3)
    assert blind_touch_speed(5.0, 2e3, mass) == 30e-3
    assert blind_touch_speed(5.0, None, mass) == TOUCH_SPEED_MAX


def test_the_fastest_loop_that_a_delay_allows_is_not_refused_for_rounding() -> None:
    for delay in 2e-3 + 1.0 / np.arange(100.0, 600.0, 7.0):
        assert hybrid_gains(2e4, 3.0, 0.5 / (3.0 * delay), delay).kp > 0.0


# ------------------------------------------------------------------------------------------------------------- learning


class Task:
    """What a learner needs of a PenTask."""

    def __init__(self) -> None:
        self.mode, self.stroke, self.give, self.force_des = SETTLE, 1, 1.0, 5.0


def press(learner: StiffnessLearner, task: Task, k: float, depth: float, rng: np.random.Generator) -> list[float]:
    """Answers before it is sure, while the pen goes `depth` [m] into a spring k [N/m] within 0.3 s, 1.6 N of noise."""
    answers = []
    for x in np.linspace(0.0, depth, 300):
        answer = learner.press(task, 0.01 - x, k * x + rng.normal(0.0, 1.6))  # type: ignore[arg-type]
        if answer is not None and not learner.sure:
            answers.append(answer)
    return answers


@pytest.mark.parametrize("k", [2e3, 2e4])
def test_the_most_that_the_stiffness_can_be_falls_until_it_is_sure(k: float, rng: np.random.Generator) -> None:
    task = Task()
    learner = StiffnessLearner(None, 1.6, by_bounds=True)
    bounds = press(learner, task, k, 5.0 / k, rng)
    assert len(bounds) > 2
    assert bounds[0] <= BETTER * STIFFEST
    assert all(after <= BETTER * before for before, after in pairwise(bounds))
    assert all(bound > k for bound in bounds)  # two sigma each; they hang together
    assert bounds[-1] < 2.0 * k
    assert learner.sure
    assert learner.estimate.value == pytest.approx(k, rel=0.2)  # 2 sigma
    assert task.give < 1.0
    blunt = StiffnessLearner(None, 1.6)
    assert press(blunt, Task(), k, 1.0 / k, rng) == []
    assert not blunt.sure


def test_a_learner_that_starts_again_has_forgotten(rng: np.random.Generator) -> None:
    learner = StiffnessLearner(None, 1.6)
    press(learner, Task(), 2e3, 2.5e-3, rng)
    assert learner.estimate.value == pytest.approx(2e3, rel=0.2)
    learner.start()
    assert learner.estimate.value is None
    assert not learner.sure
    press(learner, Task(), 2e4, 2.5e-4, rng)
    assert learner.estimate.value == pytest.approx(2e4, rel=0.2)


def test_a_learner_that_knows_or_draws_learns_nothing(rng: np.random.Generator) -> None:
    task = Task()
    known = StiffnessLearner(2e4, 1.6, by_bounds=True)
    assert press(known, task, 2e3, 5e-3, rng) == []
    assert known.most == STIFFEST
    task.mode = DRAW
    drawing = StiffnessLearner(None, 1.6, by_bounds=True)
    assert press(drawing, task, 2e3, 5e-3, rng) == []
    assert not drawing.sure
