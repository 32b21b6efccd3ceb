"""004's height PI: the sign, the bounds of its gains, and the rules of its integral."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.apps.drawing.drawing import drawing_robot
from tangere.apps.drawing.force.height_pi import CLAMP, HeightPI
from tangere.apps.drawing.force.surface import SHARE, height_gains
from tangere.apps.drawing.force.task import DRAW, FREE, LISTEN, SETTLE, TOUCH, PenTask, phases
from tangere.errors import InvalidValue
from tangere.types import Array, Reference, State

ROBOT = drawing_robot("ur5e")
Q = np.array([0.4, -1.3, 2.0, -2.2, -1.5, 0.3])
T = np.eye(4)
T[:3, 3] = ROBOT.pose(Q)[:3, 3]
H = 1e-3
SEGMENTS = (("travel", 0.1), ("approach", 0.2), ("draw", 0.5), ("lift", 0.1), ("travel", 0.1))


class Still:
    """A plan that stands at one place: only its phases go on. Heights: the plane is at the tip of Q."""

    duration = sum(d for _, d in SEGMENTS)

    def at(self, time: float) -> Reference:
        zero = np.zeros(6)
        return Reference(Q, zero, zero, ROBOT.pose(Q), zero, zero)

    def phase(self, time: float) -> str:
        for name, span in SEGMENTS:
            time -= span
            if time < 0.0:
                return name
        return SEGMENTS[-1][0]


def state(k: int, W: float, q: Array = Q) -> State:
    zero = np.zeros(6)
    return State(k * H, H, q, zero, zero, np.array((0.0, 0.0, W, 0.0, 0.0, 0.0)))


def roots(k: float, kp: float, kd: float, kp_w: float, ki_w: float) -> Array:
    """Real parts of the poles of the height loop, wrench compensated: s (s^2 + kd s + kp) + k kp (kp_w s + ki_w)."""
    return np.asarray(np.roots((1.0, kd, kp * (1.0 + k * kp_w), k * kp * ki_w)).real)


@pytest.mark.parametrize("stiffness", [2e3, 2e4, 1e5])
def test_gains_are_a_share_of_routh_s_bound(stiffness: float) -> None:
    """Poles of the loop: stable as given and at 0.99 of the bound, unstable at 1.01 of it; kp_w k below 1."""
    kp, kd = 2500.0, 100.0
    gains = height_gains(stiffness, 3.0, kp, kd)
    bound = gains.ki / SHARE
    assert bound == pytest.approx(kd * (1.0 / stiffness + gains.kp))
    assert gains.kp * stiffness == pytest.approx(SHARE)
    assert np.all(roots(stiffness, kp, kd, gains.kp, gains.ki) < -5.0)
    assert np.all(roots(stiffness, kp, kd, gains.kp, 0.99 * bound) < 0.0)
    assert np.any(roots(stiffness, kp, kd, gains.kp, 1.01 * bound) > 0.0)


def test_without_the_wrench_the_arm_yields_and_the_bound_is_wider() -> None:
    """1/k_eff = 1/k + 1/(Lambda kp): the poles of the spring-and-arm loop agree with the wider bound."""
    k, mass, kp, kd = 2e4, 3.0, 900.0, 60.0
    gains = height_gains(k, mass, kp, kd, fed=False)
    for share, stable in ((0.99, True), (1.01, False)):
        ki = share * gains.ki / SHARE
        # m x'' = m (kp (Z - x) - kd x') - k x, Z from the force k x: s (s^2 + kd s + kp + k/m) + kp k (kp_w s + ki)
        poles = np.roots((1.0, kd, kp + k / mass + kp * k * gains.kp, kp * k * ki))
        assert np.all(poles.real < 0.0) == stable
    assert gains.ki > height_gains(k, mass, kp, kd).ki


def driven(W: list[float], **options: float) -> HeightPI:
    """The controller through these forces, one a period, from the beginning."""
    law = HeightPI(ROBOT, Still(), T, 5.0, stiffness=2e4, **options)  # type: ignore[arg-type]
    law.start(state(0, 0.0))
    for k, force in enumerate(W):
        law.step(state(k, force))
    return law


def first_touch() -> int:
    """Periods until the pen looks for the paper."""
    law = HeightPI(ROBOT, Still(), T, 5.0, stiffness=2e4)
    law.start(state(0, 0.0))
    for k in range(1000):
        law.step(state(k, 0.0))
        if law.task.mode == TOUCH:
            return k + 1
    raise AssertionError


def test_nothing_is_integrated_before_the_touch_and_too_little_force_lowers_the_pen() -> None:
    before = [0.0] * (first_touch() + 20)
    assert driven(before)._integral == 0.0
    touched = driven([*before, 1.0, 1.0])
    assert touched.task.mode == SETTLE
    start = touched._z
    low = driven([*before, *[1.0] * 100])
    assert low.task.force == 5.0  # the ramp is over
    assert low._z < start - 1e-5
    high = driven([*before, 1.0, 1.0, *[5.0] * 100, *[9.0] * 100])
    assert high._z > driven([*before, 1.0, 1.0, *[5.0] * 100])._z + 1e-5


def test_the_touch_is_bumpless() -> None:
    """The height of the reference moves on by no more than a step of the descent (2 mm/s) when force takes over."""
    before = [0.0] * (first_touch() + 20)
    heights = [driven(before + [1.0] * k)._z for k in range(4)]
    assert np.max(np.abs(np.diff(heights))) < 1e-5


def test_z_is_clamped_and_comes_back_at_once() -> None:
    """A force that never comes but keeps the pen alive: Z stops at the clamp; too much force frees it at once."""
    before = [0.0] * (first_touch() + 20)
    law = driven([*before, 1.0, 1.0])
    k = len(before) + 2
    law.gains = height_gains(10.0, 3.0, 2500.0, 100.0)  # absurdly fast: the clamp is reached within periods
    law.task._listen = 0.0
    for _ in range(60):
        law.step(state(k, 1.0))
        k += 1
    assert law._z - law._touched == pytest.approx(-CLAMP)
    wound = law._integral
    law.step(state(k, 1.0))
    assert law._integral == wound  # frozen
    for _ in range(20):
        k += 1
        law.step(state(k, 30.0))
    assert law._z - law._touched > -CLAMP


def test_the_torque_is_computed_torque_with_the_wrench_taken_off() -> None:
    """At rest on the reference: tau = g - J^T F for the force part, by Robot's own kernels."""
    law = HeightPI(ROBOT, Still(), T, 5.0, stiffness=2e4)
    law.start(state(0, 0.0))
    law.task._goal = 0.0  # stay on the plane
    first = law.step(state(0, 2.0)).tau
    expected = ROBOT.gravity_torque(Q) - ROBOT.jacobian(Q).T @ np.array((0.0, 0.0, 2.0, 0.0, 0.0, 0.0))
    assert first == pytest.approx(expected, abs=1e-9)
    plain = HeightPI(ROBOT, Still(), T, 5.0, stiffness=2e4, feed_wrench=False)
    plain.start(state(0, 0.0))
    plain.task._goal = 0.0
    assert plain.step(state(0, 2.0)).tau == pytest.approx(ROBOT.gravity_torque(Q), abs=1e-9)


def test_the_phases_of_a_plan_and_the_clock_that_waits() -> None:
    found = phases(Still())
    assert [name for name, _, _ in found] == [name for name, _ in SEGMENTS]
    assert np.diff([start for _, start, _ in found]) == pytest.approx([0.1, 0.2, 0.5, 0.1], abs=1e-5)
    task = PenTask(Still(), T, 5.0, listen=0.05)
    assert task.mode == LISTEN
    modes, clocks = [], []
    for k in range(4000):
        W = 5.0 if k > 600 and task.mode in (TOUCH, SETTLE, DRAW) else 0.0
        task.update(k * H, H, (0.0, 0.0, 0.0), W, 0.0)
        modes.append(task.mode)
        clocks.append(task.clock)
        if task.finished:
            break
    order = [mode for i, mode in enumerate(modes) if i == 0 or modes[i - 1] != mode]
    assert order == [LISTEN, FREE, LISTEN, TOUCH, SETTLE, DRAW, FREE]
    waiting = [clock for clock, mode in zip(clocks, modes, strict=True) if mode == TOUCH]
    assert len(waiting) > 300  # until the paper pushed back at 0.6 s
    assert max(waiting) == min(waiting)
    assert clocks[-1] == pytest.approx(Still.duration)
    assert task.lost == ""


def test_no_paper_is_reported_and_lifted_from() -> None:
    task = PenTask(Still(), T, 5.0)
    for k in range(60_000):
        task.update(k * H, H, (0.0, 0.0, task.rise), 0.0, 0.0)
        if task.finished:
            break
    assert "no paper found" in task.lost
    assert task.finished
    with pytest.raises(InvalidValue, match="force"):
        PenTask(Still(), T, -1.0)
    for kp in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidValue, match=r"kp: positive \[1/s2\]"):
            HeightPI(ROBOT, Still(), T, 5.0, kp=kp)  # type: ignore[arg-type]
