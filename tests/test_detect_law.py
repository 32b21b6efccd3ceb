"""Laws: compiled and traced they are one, and one constant changes whoever uses them."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.kernels import step as steps
from tangere.kernels.laws import detection
from tangere.kernels.table import LAW_DOFS, LAWS, Law
from tangere.observe.detect.detector import Detector
from tangere.observe.detect.signals import Signals, scores
from tangere.observe.detect.thresholds import Thresholds
from tangere.types import State

N = 6
ROWS = np.ones((3, N))
WIDE = Thresholds(5.0 * ROWS, 3.0 * ROWS, 4.0 * ROWS, 6.0 * ROWS, ROWS, np.eye(N), np.zeros((3, N, N)))


# laws of an arm are held against what they replaced in test_control_*; `modes` takes no inputs and is part of one
PLAIN = [law for law in LAWS if not law.arm and law.inputs(N)]


@pytest.mark.parametrize("law", PLAIN, ids=lambda law: law.name)
@pytest.mark.parametrize("dof", LAW_DOFS)
def test_compiled_and_traced_steps_agree(law: Law, dof: int, rng: np.random.Generator) -> None:
    parameters = rng.uniform(0.5, 2.0, law.parameters(dof))
    start = np.array(law.start(dof))
    sizes = law.inputs(dof)
    one, two = steps.step(law.name, dof, parameters), steps.TracedStep(law.name, dof, parameters, start)
    rows = rng.normal(size=(200, sum(sizes)))
    if law.name == "detection":
        h = np.where(rng.random(200) < 0.02, -1.0, rng.uniform(0.001, 0.02, 200))
        rows[:, : detection.LAGS] = np.array([detection.lags(float(x), 50.0) for x in h])
    else:
        rows[:, -2:] = -np.sort(rng.uniform(0.0, 1.0, (200, 2)), axis=1)[:, ::-1]
    found = one.rows(rows)
    np.testing.assert_allclose(found, two.rows(rows), rtol=1e-11, atol=1e-11)
    assert np.ptp(found, axis=0).max() > 0.0


def _push(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    time = 0.002 * np.arange(count)
    residual = np.zeros((count, N))
    residual[:, 2] = np.where(time > 0.8, 8.0 * -np.expm1(-50.0 * (time - 0.8)), 0.0)
    return time, residual, np.full((count, N), 0.3)


def test_one_constant_changes_loop_and_log_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """FAST, in a run sample by sample and in rows of a log: both feel the push later, at the same sample."""
    time, residual, qd = _push(800)
    felt = []
    for fast in (detection.FAST, 30.0):
        monkeypatch.setattr(detection, "FAST", fast)
        detector = Detector(WIDE)
        for k, t in enumerate(time.tolist()):
            detector.update(State(t, 0.002, qd[k], qd[k], qd[k]), residual[k])
        score = scores(WIDE, time, residual[:, None], qd)[:, 0]
        first = float(time[int(np.argmax(np.nan_to_num(score) > 1.0))])
        assert detector.events[0].time_s == first
        felt.append(first)
    assert felt[1] > felt[0] + 0.004


def test_the_law_alone_begins_and_ends_an_event() -> None:
    time, residual, qd = _push(1200)
    residual[time > 1.4] = 0.0
    signals = Signals(N, thresholds=WIDE)
    signals._step.parameters[-1] = 1.0
    held = []
    for k, t in enumerate(time.tolist()):
        signals.update(t, residual[k], qd[k])
        held.append(signals.frozen)
    turns = np.diff(np.array(held, dtype=int))
    begins, ends = (time[1:][turns == way] for way in (1, -1))
    assert len(begins) == len(ends) == 1
    assert 0.8 < begins[0] < 0.83
    assert 1.4 + detection.RELEASE <= ends[0] < 1.4 + detection.RELEASE + 0.1


# residual [Nm] of joints 1 and 2, 0.8 of the level's threshold each, which of them stands, and the score
LEVELS = [
    ((4.0, -4.0), (), 2.0 * 1.6), ((4.0, -4.0), (1,), 1.6), ((4.0, -4.0), (2,), 1.6), ((4.0, -4.0), (1, 2), 0.8),
    ((4.0, 4.0), (), 0.8), ((4.0, 4.0), (1,), 0.8), ((4.0, 4.0), (2,), 0.8),
    ((4.0, 2.0), (), 0.8), ((2.0, 4.0), (1,), 0.8),
]  # fmt: skip


@pytest.mark.parametrize(("felt", "stand", "score"), LEVELS)
def test_levels_of_standing_joints_say_nothing_of_each_other(
    felt: tuple[float, float], stand: tuple[int, ...], score: float
) -> None:
    """Stiction holds each of them anywhere, from 0 to what is felt: they may explain a level, but add none.

    Of all joints together twice the difference of the first two counts here: a model that is wrong moves both alike.
    """
    arm = np.zeros((4, N, N))
    arm[3, 0, :2] = 2.0, -2.0
    thresholds = Thresholds(5.0 * ROWS, 3.0 * ROWS, 4.0 * ROWS, 6.0 * ROWS, ROWS, np.eye(N), arm)
    residual, qd = np.zeros((1000, 1, N)), np.full((1000, N), 0.3)
    residual[:, 0, :2] = felt
    qd[:, [j - 1 for j in stand]] = 0.0
    assert scores(thresholds, 0.002 * np.arange(1000), residual, qd)[-1, 0] == pytest.approx(score, rel=1e-6)


@pytest.mark.parametrize(("stiction", "told"), [(6.0, 20.0), (1.0, 23.0), (0.0, 24.0)])
def test_what_stiction_held_is_no_part_of_a_push(stiction: float, told: float) -> None:
    """A standing joint at -4 Nm that a push takes to 20: as much of the 4 Nm as stiction can have held is left out."""
    time = 0.002 * np.arange(1200)
    residual, qd = np.zeros((1200, N)), np.zeros((1200, N))
    residual[:, 1] = -4.0 + 24.0 * (time > 1.0) * -np.expm1(-50.0 * (time - 1.0))
    wide = Thresholds(9.0 * ROWS, 9.0 * ROWS, 9.0 * ROWS, 9.0 * ROWS, ROWS, np.eye(N), np.zeros((3, N, N)))
    detector = Detector(wide, stiction=np.full(N, stiction))
    for k, t in enumerate(time.tolist()):
        detector.update(State(t, 0.002, qd[k], qd[k], qd[k]), residual[k])
    (event,) = detector.events
    assert (event.joint, event.torque_nm) == (2, pytest.approx(told, rel=0.02))
