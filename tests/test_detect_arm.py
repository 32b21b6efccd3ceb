"""What all joints tell together, speeds that nobody has shown, and events that must end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tangere.kernels.laws.detection import CHANGE, EASE
from tangere.observe.detect import Detector, FreeMotion, Thresholds, detect, tune
from tangere.observe.detect.signals import FASTER, Signals, scores
from tangere.observe.detect.tuning import watched
from tangere.types import State

N = 6
H = 0.002
K = 50.0
SPEED = 0.3  # rad/s of every joint
FACTOR = np.eye(N)
FACTOR[2, 1] = 3.0  # joint 3 feels joint 2's noise three times as much as its own: correlation 0.95
FACTOR[2] /= np.sqrt(10.0)


def _free(seed: int, seconds: float) -> FreeMotion:
    """White torque noise of 5 Nm per sample, in joint 3 mostly that of joint 2, behind the observer's lag."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, H)
    y = 5.0 * rng.standard_normal((len(time), N)) @ FACTOR.T
    return FreeMotion(time, _lagged(y), np.full(y.shape, SPEED), f"{seed}")


def _lagged(y: np.ndarray) -> np.ndarray:
    r = np.zeros_like(y)
    a = -np.expm1(-K * H)
    for k in range(1, len(y)):
        r[k] = r[k - 1] + a * (y[k] - r[k - 1])
    return r


def _wide(n: int = N) -> Thresholds:
    table = np.full((3, n), 4.0)
    return Thresholds(table, table, 2.0 * table, 8.0 * table, 0.1 * table, np.eye(n), np.zeros((3, n, n)))


def test_a_row_of_arm_is_what_a_regression_on_the_other_joints_leaves() -> None:
    motion = _free(1, 60.0)
    thresholds = tune([motion], 1.0)
    seen = watched([motion], K, thresholds.standstill)
    z = seen.values[:, CHANGE] / np.einsum("ngj,gj->nj", seen.weights, thresholds.scale)
    for j in range(N):
        others = np.delete(np.arange(N), j)
        share = np.linalg.lstsq(z[:, others], z[:, j], rcond=None)[0]
        left = z[:, j] - z[:, others] @ share
        ours = z @ thresholds.arm[0, j]
        # towards none correlation is drawn by a tenth: 0.95 becomes 0.86, and no more than that differs
        assert np.corrcoef(left, ours)[0, 1] > (0.85 if j in (1, 2) else 0.99)
        assert np.abs(ours).max() < 1.0


def test_a_touch_that_the_other_joints_noise_hides_is_found() -> None:
    """Steps of 8 Nm on joint 3, whose noise is mostly joint 2's, in motion that thresholds were not learned from."""
    thresholds = tune([_free(1, 120.0)], 1.0)
    alone = replace(thresholds, arm=np.zeros((3, N, N)))
    found = []
    for seed in range(2, 14):
        motion = _free(seed, 1.5)
        step = np.zeros_like(motion.residual)
        step[motion.time > 1.0, 2] = 8.0
        r = motion.residual + _lagged(step)
        q = np.zeros_like(r)
        delays = []
        for each in (thresholds, alone):
            events = detect(Detector(each), motion.time, r, q, motion.qd)
            assert all(event.time_s > 1.0 for event in events)
            delays.append(events[0].time_s - 1.0 if events else np.inf)
        found.append(delays)
    with_arm, without = np.array(found).T
    assert np.all(with_arm <= without)
    assert np.median(with_arm) < 0.75 * np.median(without)
    event = detect(Detector(thresholds), motion.time, r, q, motion.qd)[0]
    assert (event.channel, event.joint) == ("arm", 3)


def test_free_motion_at_any_rate_has_the_thresholds_of_its_noise() -> None:
    """Normal noise exceeds 1/h at 6.0 to 6.4 standard deviations, over 72 signals; a quarter more for what two minutes
    do not tell. Taking the tail from the 99 % quantile on instead gives 7.9 at 500 Hz."""
    thresholds = tune([_free(3, 120.0)], 1.0)
    sigmas = thresholds.change[0] / thresholds.spread[0]
    assert np.all(sigmas > 5.5)
    assert np.all(sigmas < 7.6)


def test_thresholds_of_a_joint_grow_beyond_the_speeds_they_were_learned_from() -> None:
    time = np.arange(0.0, 3.0, H)
    r, q = np.zeros((len(time), N)), np.zeros((len(time), N))
    qd = np.full((len(time), N), SPEED)
    fast = (time > 1.0) & (time < 1.5)
    qd[fast, 4] = 2.0 * FASTER * SPEED
    # three thresholds, which are four times as high while the joint is fast
    r[time > 1.1, 4] = 12.0 * -np.expm1(-K * (time[time > 1.1] - 1.1))
    plain, knows = _wide(), replace(_wide(), speed=np.full(N, SPEED))
    assert detect(Detector(plain), time, r, q, qd)[0].time_s < 1.2
    # the level waits until the excess has faded: 1 + exp(-t / EASE) squared below three
    event = detect(Detector(knows), time, r, q, qd)[0]
    assert abs(event.time_s - (1.5 - EASE * np.log(np.sqrt(3.0) - 1.0))) < 0.02
    r[:, 2], r[:, 4] = r[:, 4], 0.0  # another joint's thresholds are as ever
    assert detect(Detector(knows), time, r, q, qd)[0].time_s < 1.2


def test_the_scores_of_a_study_are_those_of_the_detector(rng: np.random.Generator) -> None:
    """Sample by sample, with several residuals along one motion, regimes that change and joints that are too fast."""
    time = np.cumsum(rng.uniform(0.002, 0.012, 400))
    qd = 0.5 * np.cumsum(rng.standard_normal((len(time), N)), axis=0) / 10.0
    qd[150:200] = 0.0
    r = 0.2 * np.cumsum(rng.standard_normal((len(time), 3, N)), axis=0)
    plain = replace(_wide(), speed=np.full(N, SPEED))
    whole = replace(plain, arm=0.3 * rng.standard_normal((3, N, N)))
    alone, found = (scores(thresholds, time, r, qd) for thresholds in (plain, whole))
    for c in range(3):
        detector = Detector(plain.scaled(1e6))  # nothing is raised: a score as of free motion
        signals = Signals(N, thresholds=whole)
        for k, t in enumerate(time.tolist()):
            detector.update(State(t, 0.0, qd[k], qd[k], qd[k], qd_target=np.zeros(N)), r[k, c])
            if not signals.update(t, r[k, c], qd[k]):
                assert np.isnan([alone[k, c], found[k, c]]).all()
                continue
            np.testing.assert_allclose(alone[k, c], 1e6 * detector.score, rtol=1e-12)
            np.testing.assert_allclose(found[k, c], signals.score, rtol=1e-12)
            assert signals.score == max(signals.ratio.max(), signals.arm.max())
        assert detector.events == ()
        assert detector.excess.max() > 1.0
    assert np.nanmax(found) > np.nanmax(alone) > 1.0



def test_an_event_ends_when_nothing_is_left_of_the_residual() -> None:
    """A joint that stood with 5 Nm of stiction in its residual is pushed, lets go and moves on without any."""
    time = np.arange(0.0, 6.0, H)
    y = np.zeros((len(time), N))
    y[time < 2.0, 1] = -5.0  # what stiction holds while it stands: more than the threshold of a moving joint
    y[(time > 1.9) & (time < 2.3), 3] = 20.0
    qd = np.full((len(time), N), SPEED)
    qd[time < 2.1, 1] = 0.0
    event, *rest = detect(Detector(_wide(), stiction=np.full(N, 3.0)), time, _lagged(y), np.zeros_like(y), qd)
    assert event.end_s is not None
    assert event.end_s < 2.6
    assert not rest
