"""Guards and edges with one condition at a time: each alone is enough, and edges that are promised are given."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from frozen_control import Line
from test_identify import _drive, _motion
from watched_logs import model_of

import tangere
from tangere.apps.drawing.drawing import drawing_robot
from tangere.apps.drawing.force.surface import StiffnessEstimate
from tangere.apps.drawing.force.task import AWAY, PenTask
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.plan import plan_drawing
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.control.computed_torque import ComputedTorque
from tangere.errors import InvalidValue
from tangere.identification.around_fit import SIZE, WIDTH, _taken, coulomb_widths
from tangere.identification.belief import belief, with_own_friction
from tangere.identification.findings import Finding, Kind, gravity_findings
from tangere.identification.recorder import torque_delay
from tangere.identification.samples import LEAST_WINDOWS, TERMS, windows
from tangere.loop.run import run
from tangere.observe.isolation_added import added
from tangere.plants import RigidPlant
from tangere.types import Event

ROBOT = tangere.robot("ur3e")


@pytest.mark.parametrize(("x", "y"), [(0.11, 0.0), (-0.11, 0.0), (0.0, 0.11), (0.0, -0.11)])
def test_a_drawing_off_to_one_side_only_is_refused(x: float, y: float) -> None:
    robot = drawing_robot("ur5e")
    with pytest.raises(InvalidValue, match="the drawing goes from"):
        plan_drawing(robot, Strokes((np.array([[0.0, 0.0], [x, y]]),), (0.2, 0.2)), Canvas.table(robot))


@pytest.mark.parametrize("duration", [0.0, -1.0, float("nan"), float("inf"), None])
def test_a_run_without_length_is_refused(duration: Any) -> None:
    with pytest.raises(InvalidValue, match="until"):
        run(RigidPlant(ROBOT), ComputedTorque(ROBOT, None), until=duration, start=np.zeros(6))


def test_stiffness_needs_ten_samples_even_if_they_are_spread_and_spread_even_if_there_are_many() -> None:
    estimate = StiffnessEstimate(0.1)
    for n in range(9):
        estimate.add(1e-3 * n, 20.0 * n)
    assert estimate.value is None
    assert estimate.most == StiffnessEstimate(0.1).most
    estimate.add(9e-3, 180.0)
    assert estimate.value == pytest.approx(2e4)
    flat = StiffnessEstimate(0.1)
    for _ in range(20):
        flat.add(1e-3, 5.0)
    assert flat.value is None
    assert flat.most == StiffnessEstimate(0.1).most


@pytest.mark.parametrize(("along", "whole"), [(40.0, 0.0), (0.0, 40.0), (40.0, 40.0)])
def test_a_push_along_the_normal_or_from_anywhere_lifts_the_pen(along: float, whole: float) -> None:
    task = PenTask(Line(), np.eye(4), 5.0)
    for k in range(3):
        task.update(1e-3 * k, 1e-3, (0.0, 0.0, 0.01), along, 0.01, push=whole)
    assert task.mode == AWAY
    assert "pressed with 40 N" in task.lost


def test_two_samples_are_enough_for_what_a_contact_added_and_one_is_not() -> None:
    t, zero = np.array([0.0, 0.01]), np.zeros((2, 6))
    y = np.ones((2, 6))
    assert added(ROBOT, t, y, zero, zero, 0.0, np.ones(6)) is not None
    assert added(ROBOT, t[:1], y[:1], zero[:1], zero[:1], 0.0, np.ones(6)) is None
    late = np.array([0.0, 5.0])  # the second is too late to be looked at
    assert added(ROBOT, late, y, zero, zero, 0.0, np.ones(6)) is None


def test_a_log_with_one_usable_window_keeps_its_period() -> None:
    rows = windows(ROBOT, [_motion(ROBOT, _drive(), 1, 2.0)])
    assert _taken(rows, np.array([3])).period == rows.period
    assert _taken(rows, np.array([3, 7])).period == pytest.approx(4.0 * rows.period)


@pytest.mark.parametrize(("count", "width"), [(LEAST_WINDOWS - 1, WIDTH), (LEAST_WINDOWS, 0.06)])
def test_the_width_of_friction_is_looked_for_where_enough_windows_move(count: int, width: float) -> None:
    rows = windows(ROBOT, [_motion(ROBOT, _drive(), 1, 4.0)])
    speed = rows.F[:, :, TERMS.index("viscous")]
    moving = np.zeros_like(rows.moving)  # the slowest: they tell a width
    np.put_along_axis(moving, np.argsort(np.abs(speed), axis=0)[:count], True, axis=0)
    given = dataclasses.replace(rows, tau=np.tanh(speed / 0.06), moving=moving)
    solution: Any = SimpleNamespace(x=np.zeros(SIZE * 6), spread=np.ones(6))
    assert np.array_equal(coulomb_widths(given, solution), np.full(6, width))


def test_no_joint_that_tells_gives_no_delay() -> None:
    """None moves; and all move with a torque that the model explains exactly, to the last bit: zero."""
    motion = _motion(ROBOT, _drive(), 1, 4.0)
    rows = windows(ROBOT, [motion])
    still = dataclasses.replace(rows, moving=np.zeros_like(rows.moving))
    assert torque_delay(still, [motion]) == 0.0
    silent = dataclasses.replace(motion, tau=np.zeros_like(motion.tau))
    for memory in (True, False):
        assert torque_delay(dataclasses.replace(rows, tau=np.zeros_like(rows.tau)), [silent], memory=memory) == 0.0


@pytest.mark.parametrize(("gain", "factor"), [(None, 0.1), ((10.0, *5 * (np.nan,)), 0.1)])
def test_gains_known_for_some_joints_only_are_no_gains(gain: Any, factor: float) -> None:
    """Torques that look like currents are said to, whether no gain is known or some are not."""
    arm = tangere.robot("ur10e")
    motion = _motion(arm, _drive(), 2, 8.0)
    currents = dataclasses.replace(motion, tau=motion.tau * factor)
    (found,) = gravity_findings(arm, [currents], None if gain is None else np.array(gain))
    assert "look like motor currents" in found.sentence
    assert found.kind == "currents"


EXPLAINED: tuple[Kind, ...] = ("misfit", "other arm", "better arm", "target", "strange gain")
DOUBTS: tuple[Kind, ...] = (*EXPLAINED, "touched", "worse", "unknown")


@pytest.mark.parametrize("inertial", ["links", "payload", "none"])
@pytest.mark.parametrize("kind", DOUBTS)
def test_each_doubt_is_passed_on_for_each_kind_of_model(inertial: str, kind: Kind) -> None:
    found = (Finding(kind, "so it is"), Finding("unmoved", "merely cannot be told", 4))
    model = dataclasses.replace(model_of(), inertial=inertial, findings=found)
    explained = inertial == "payload" and kind in EXPLAINED  # gravity is no doubt once a payload explains it
    assert model.doubts == (() if explained else ("identified with a doubt: so it is",))


def test_an_event_is_told_to_reactions_with_its_own_time_and_joint() -> None:
    residual = np.arange(6.0)
    event = Event.sample(7.5, 3, residual)
    assert (event.number, event.time_s, event.onset_s, event.residual_s, event.joint) == (1, 7.5, 7.5, 7.5, 3)
    assert (event.torque_nm, event.kind, event.alarm, event.phase) == (2.0, "unknown", True, "raised")
    assert event.residual_nm is residual


@pytest.mark.parametrize(("share", "changed"), [(1.45, False), (0.55, False), (1.55, True), (0.45, True)])
def test_friction_of_the_type_counts_unless_a_log_is_half_of_it_off(
    share: float, changed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    believed = belief(ROBOT)
    shares = np.ones(6)
    shares[2] = share
    monkeypatch.setattr("tangere.identification.belief.friction_share", lambda *_: shares)
    found = with_own_friction(believed, SimpleNamespace(motion=None))  # type: ignore[arg-type]
    assert (found is not believed) == changed
    expected = np.where(np.arange(6) == 2, share if changed else 1.0, 1.0) * believed.drive.coulomb
    np.testing.assert_allclose(found.drive.coulomb, expected)
