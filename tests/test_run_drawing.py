"""Drawings in closed loop: a small one must reach the marks, a bad paper must be followed, a hole must be reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tangere.errors import InvalidValue, UnknownName
from tangere.model.scene_paper import Bump, Hole
from tangere.planning.drawing.canvas import Canvas
from tangere.planning.drawing.drawing_plan import DrawingPlan
from tangere.planning.drawing.plan import plan_drawing
from tangere.planning.drawing.strokes import Strokes
from tangere.run.drawing import CanvasError, DrawingResult, draw, drawing_robot, heavier
from tangere.run.drawing_loop import MODES
from tangere.run.mcap_read import read_mcap

pytest.importorskip("mujoco", reason="MuJoCo is not installed (extra sim)")

ROBOT = drawing_robot("ur5e")
ANGLES = np.linspace(0.0, 2.0 * np.pi, 90)
# a corner, a circle and a far line: 140 mm of 200 x 200 mm
LINES = (
    np.array([[-0.08, -0.08], [-0.05, -0.08], [-0.05, -0.06]]),
    0.008 * np.stack((np.cos(ANGLES), np.sin(ANGLES)), axis=1),
    np.array([[0.05, 0.08], [0.085, 0.08]]),
)


@pytest.fixture(scope="module")
def plan() -> DrawingPlan:
    return plan_drawing(ROBOT, Strokes(LINES, (0.2, 0.2)), Canvas.table(ROBOT))


@pytest.fixture(scope="module")
def drawn(plan: DrawingPlan, tmp_path_factory: pytest.TempPathFactory) -> DrawingResult:
    """With all defaults, and a log file."""
    return draw(ROBOT, plan, log=tmp_path_factory.mktemp("draw") / "log.mcap")


def reached(summary: dict[str, Any]) -> None:
    """The marks of a flat table: path 0.15 mm rms and 0.6 mm, force 0.15 N rms and 8 N, 0.5 % of contact, ink."""
    assert summary["aborted"] == ""
    assert summary["strokes"] == summary["strokes_drawn"] == 3
    assert summary["path_rms_mm"] <= 0.15
    assert summary["path_time_rms_mm"] <= 0.15
    assert summary["path_max_mm"] <= 0.6
    assert summary["force_rms_error_n"] <= 0.15
    assert max(summary["force_max_n"], summary["force_touch_max_n"]) <= 8.0
    assert summary["contact_lost_s"] <= 0.005 * summary["draw_s"]
    assert summary["ink_coverage"] >= 0.99
    assert summary["ink_stray"] <= 0.005


def test_hybrid_reaches_the_marks_with_the_defaults(drawn: DrawingResult) -> None:
    reached(drawn.summary)
    assert drawn.summary["stiffness_hat"] == pytest.approx(2e4, rel=0.1)
    assert drawn.summary["touch_delay_ms"]["max"] < 20.0


def test_the_numbers_come_from_the_truth(drawn: DrawingResult, plan: DrawingPlan) -> None:
    """Force and path once more from the log by hand; friction of the paper is 0.3 of the force while it draws."""
    log, T = drawn.log, plan.canvas.T_base_canvas
    drawing = log["mode"] == MODES.index("draw")
    force = log["wrench_true"][drawing, :3] @ T[:3, :3]
    assert drawn.summary["force_rms_error_n"] == pytest.approx(np.sqrt(np.mean((force[:, 2] - 5.0) ** 2)))
    tip = log["T_true"][drawing].reshape(-1, 3, 4)[:, :, 3]
    assert drawn.robot.pose(log["q_true"][drawing][::100])[:, :3, 3] == pytest.approx(tip[::100], abs=1e-12)
    speed = np.linalg.norm(np.gradient(tip, 1e-3, axis=0), axis=1)
    moving = speed > 0.02
    ratio = np.hypot(force[moving, 0], force[moving, 1]) / force[moving, 2]
    assert np.median(ratio) == pytest.approx(0.3, rel=0.01)
    assert len(drawn.ink) >= np.count_nonzero(drawing)
    assert drawn.robot.mass_matrix(log["q"][0]) == pytest.approx(1.05 * ROBOT.mass_matrix(log["q"][0]), rel=1e-9)


def test_the_log_file_holds_what_the_result_holds(drawn: DrawingResult) -> None:
    assert isinstance(drawn.run.log_file, Path)
    again = read_mcap(drawn.run.log_file)
    assert np.array_equal(again["wrench_true"], drawn.log["wrench_true"])
    assert np.array_equal(again["mode"], drawn.log["mode"])


def test_height_pi_on_the_same_drawing(plan: DrawingPlan) -> None:
    """Its own level: half a millimetre and a quarter of a newton; a PD cannot take the model error away."""
    summary = draw(ROBOT, plan, controller="height-pi").summary
    assert summary["aborted"] == ""
    assert summary["path_max_mm"] <= 0.5
    assert summary["force_rms_error_n"] <= 0.25
    assert summary["ink_coverage"] >= 0.99


@pytest.mark.parametrize(("stiffness", "seed"), [(2e3, 1), (1e5, 2)])
def test_soft_and_hard_paper(plan: DrawingPlan, stiffness: float, seed: int) -> None:
    """Nobody tells the controller; 1e5 N/m is 10 um per newton, so it may have 0.25 N."""
    summary = draw(ROBOT, plan, stiffness=stiffness, seed=seed).summary
    assert summary["aborted"] == ""
    assert summary["stiffness_hat"] == pytest.approx(stiffness, rel=0.2)
    assert summary["force_rms_error_n"] <= 0.25
    assert summary["force_touch_max_n"] <= 8.0
    assert summary["ink_coverage"] >= 0.99


def test_a_canvas_off_by_3_mm_and_2_degrees_with_a_bump(plan: DrawingPlan) -> None:
    """No stroke is missing and the force is within 0.4 N rms, unknown to the planner."""
    error = CanvasError(-3e-3, np.radians(2.0), 0.3, bumps=(Bump(0.07, 0.08, 5e-4, 0.01),))
    summary = draw(ROBOT, plan, canvas_error=error).summary
    assert summary["aborted"] == ""
    assert summary["force_rms_error_n"] <= 0.4
    assert summary["ink_coverage"] >= 0.99


def test_without_a_sensor(plan: DrawingPlan) -> None:
    """The touch is found within 10 ms in the mean, 15 ms at worst; nothing is missing."""
    summary = draw(ROBOT, plan, sensor="none").summary
    assert summary["aborted"] == ""
    assert summary["touch_delay_ms"]["mean"] <= 10.0
    assert summary["touch_delay_ms"]["max"] <= 15.0
    assert summary["force_rms_error_n"] <= 0.6
    assert summary["ink_coverage"] >= 0.99


def test_a_hole_stops_lifts_and_is_reported(plan: DrawingPlan) -> None:
    result = draw(ROBOT, plan, canvas_error=CanvasError(hole=Hole(0.07, 0.08, 0.01, 0.02)))
    assert "lost the paper in stroke 3" in result.aborted
    tip = result.log["T_true"][-1].reshape(3, 4)[:, 3]
    height = (tip - result.paper.T[:3, 3]) @ result.paper.T[:3, 2]
    assert height > 5e-3
    assert any("lost" in note.text for note in result.log.notes)
    assert result.summary["ink_coverage"] < 0.99


def test_misuse(plan: DrawingPlan) -> None:
    with pytest.raises(UnknownName, match="hybrid, height-pi"):
        draw(ROBOT, plan, controller="pid")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="ideal, builtin, none"):
        draw(ROBOT, plan, sensor="skin")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="model_error"):
        draw(ROBOT, plan, model_error=-1.0)
    with pytest.raises(InvalidValue, match="noise"):
        draw(ROBOT, plan, noise=-1.0)
    with pytest.raises(InvalidValue, match="force"):
        draw(ROBOT, plan, force=0.0)
    assert heavier(ROBOT, 0.0).mass_matrix(np.ones(6)) == pytest.approx(ROBOT.mass_matrix(np.ones(6)))
