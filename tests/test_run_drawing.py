"""Drawings in closed loop: a small one must reach the marks, a bad paper must be followed, a hole must be reported."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tangere.apps.drawing.drawing import CanvasError, DrawingResult, OnPlant, Simulated, draw, drawing_robot, heavier
from tangere.apps.drawing.force.task import MODES, PenTask
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.motion import DrawingPlan
from tangere.apps.drawing.plan.plan import plan_drawing
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.apps.drawing.summary import DrawingFigures, touch_delays
from tangere.errors import InvalidValue, UnknownName
from tangere.logs.mcap_read import read_mcap
from tangere.plants.joints import friction_of, sensors_of, with_rotors
from tangere.plants.scene.bodies import Bump, Hole
from tangere.types import Array, Command, State

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
    summary = draw(ROBOT, plan, Simulated(stiffness=stiffness, seed=seed)).summary
    assert summary["aborted"] == ""
    assert summary["stiffness_hat"] == pytest.approx(stiffness, rel=0.2)
    assert summary["force_rms_error_n"] <= 0.25
    assert summary["force_touch_max_n"] <= 8.0
    assert summary["ink_coverage"] >= 0.99


DRIVEN = with_rotors(ROBOT, True)
FRICTION = friction_of(DRIVEN, "full")


@pytest.mark.parametrize("controller", ["hybrid", "height-pi"])
def test_with_the_rotors_friction_and_noise_of_a_ur5e(plan: DrawingPlan, controller: Any) -> None:
    """Inertia of rotors above that of the links, 7 Nm of friction, 3 Nm of noise per sample: the same marks."""
    stage = Simulated(friction=FRICTION, sensors=sensors_of(DRIVEN, "typical", 1e-3, 0))
    result = draw(DRIVEN, plan, stage, controller=controller, friction=FRICTION)
    reached(result.summary)
    assert np.std(result.log["tau"][1:, 1] - result.log["tau_cmd"][:-1, 1]) > 1.0
    if controller == "hybrid":  # and friction that nobody makes up for is seen in the lines
        assert draw(DRIVEN, plan, stage).summary["path_rms_mm"] > 5.0 * result.summary["path_rms_mm"]


def test_rotors_on_soft_paper(plan: DrawingPlan) -> None:
    """The mass that the simulated paper adds to the pen must stay small against what rotors make of the arm."""
    summary = draw(DRIVEN, plan, Simulated(stiffness=2e3, seed=1)).summary
    assert summary["force_rms_error_n"] <= 0.15
    assert summary["force_touch_max_n"] <= 8.0


def test_a_canvas_off_by_3_mm_and_2_degrees_with_a_bump(plan: DrawingPlan) -> None:
    """No stroke is missing and the force is within 0.4 N rms, unknown to the planner."""
    error = CanvasError(-3e-3, np.radians(2.0), 0.3, bumps=(Bump(0.07, 0.08, 5e-4, 0.01),))
    summary = draw(ROBOT, plan, Simulated(canvas_error=error)).summary
    assert summary["aborted"] == ""
    assert summary["force_rms_error_n"] <= 0.4
    assert summary["ink_coverage"] >= 0.99


def test_without_a_sensor(plan: DrawingPlan) -> None:
    """Each touch is found within 10 ms, none in the air; nothing is missing."""
    result = draw(ROBOT, plan, Simulated(sensor="none"))
    summary = result.summary
    assert summary["aborted"] == ""
    delays = touch_delays(result.log, result.log["wrench_true"][:, :3] @ plan.canvas.T_base_canvas[:3, 2])
    assert len(delays) == 3
    assert delays.min() >= 0.0
    assert delays.max() == summary["touch_delay_ms"]["max"] <= 10.0 + 1e-6  # stamps are rounded
    assert summary["touch_delay_ms"]["mean"] <= 8.0
    assert summary["force_rms_error_n"] <= 0.3
    assert summary["ink_coverage"] >= 0.99


def test_soft_paper_without_a_sensor(plan: DrawingPlan) -> None:
    """2e3 N/m: the stiffness is learnt by the first press (10 % is sure, so 20 %), and the force is steady."""
    summary = draw(ROBOT, plan, Simulated(sensor="none", stiffness=2e3, seed=1)).summary
    assert summary["aborted"] == ""
    assert summary["stiffness_hat"] == pytest.approx(2e3, rel=0.2)
    assert summary["force_rms_error_n"] <= 0.4  # a third of it at the other strokes: the first is drawn while learning
    assert max(summary["force_max_n"], summary["force_touch_max_n"]) <= 9.0
    assert summary["touch_delay_ms"]["max"] <= 25.0  # what the matched filters look back; 10 ms is out of reach here
    assert summary["ink_coverage"] >= 0.99


def test_soft_paper_with_the_builtin_sensor() -> None:
    """The zero is taken in the air, above paper that rises by 2.5 mm: no creep from stroke to stroke, 3 mm apart."""
    lines = tuple(np.array([[0.0, y], [0.01, y]]) for y in (0.0, 0.003, 0.006, 0.009))
    plan = plan_drawing(ROBOT, Strokes(lines, (0.2, 0.2)), Canvas.table(ROBOT))
    result = draw(ROBOT, plan, Simulated(sensor="builtin", stiffness=2e3, seed=1))
    summary, mode = result.summary, result.log["mode"]
    true = result.log["wrench_true"][:, :3] @ plan.canvas.T_base_canvas[:3, 2]
    assert np.all(true[mode == MODES.index("listen")] <= 0.0)
    assert summary["aborted"] == ""
    assert summary["force_rms_error_n"] <= 0.38  # what was published of a real one, as a mean deviation
    assert max(summary["force_max_n"], summary["force_touch_max_n"]) <= 8.0
    assert summary["ink_coverage"] >= 0.99


@pytest.mark.parametrize("sensor", ["builtin", "none"])
def test_hard_paper_with_a_force_that_is_late(plan: DrawingPlan, sensor: Any) -> None:
    """1e5 N/m, where 1 N is 10 um: friction that begins and ends costs no more force than it is."""
    summary = draw(ROBOT, plan, Simulated(sensor=sensor, stiffness=1e5, seed=1)).summary
    assert summary["aborted"] == ""
    assert summary["force_rms_error_n"] <= 0.5  # 0.2 and 0.35 by what the sensors know
    assert max(summary["force_max_n"], summary["force_touch_max_n"]) <= 9.0  # a touch of 10 mm/s: 5 N on top of a ramp
    assert summary["ink_coverage"] >= 0.99


def heights(result: DrawingResult) -> np.ndarray:
    """(N,) m of the true tip above the real paper's plane."""
    tip = result.log["T_true"].reshape(-1, 3, 4)[:, :, 3]
    return (tip - result.paper.T[:3, 3]) @ result.paper.T[:3, 2]


# in the way of the far line, and under the circle, which crosses the hole's edges aslant and hangs there by friction
@pytest.mark.parametrize(("hole", "stroke"), [((0.07, 0.08, 0.01, 0.02), 3), ((-0.005, 0.0, 0.01, 0.01), 2)])
@pytest.mark.parametrize("controller", ["hybrid", "height-pi"])
def test_a_hole_stops_lifts_and_is_reported(
    plan: DrawingPlan, hole: tuple[float, float, float, float], stroke: int, controller: Any
) -> None:
    """Whatever the edge carries the pen sinks by 3 mm at most; it ends a lift of 20 mm (less 2 mm) above the paper."""
    result = draw(ROBOT, plan, Simulated(canvas_error=CanvasError(hole=Hole(*hole))), controller=controller)
    assert f"in stroke {stroke}" in result.aborted
    height = heights(result)
    assert height.min() > -3e-3
    assert height[-1] > 18e-3
    assert np.linalg.norm(result.log["wrench_true"][:, :3], axis=1).max() < 20.0
    assert any("stroke" in note.text for note in result.log.notes)
    assert result.summary["ink_coverage"] < 0.99
    assert result.summary["strokes_drawn"] == stroke - 1  # the broken one was touched but does not count
    assert result.summary["strokes_touched"] == stroke


def test_a_pen_that_sinks_is_in_a_hole_whatever_force_it_feels(plan: DrawingPlan) -> None:
    """Half the force by friction on an edge, 0.1 mm deeper each ms: lost 2 mm below the last firm point, not deeper."""
    task = PenTask(plan, plan.canvas.T_base_canvas, 5.0)
    deep = 0.0
    for k in range(20_000):
        x, y, z = task.place(task.reference.T[:3, 3])  # type: ignore[index]
        if task.mode == "draw":
            deep += 1e-4
        height = -deep if task.mode in ("settle", "draw") else z + task.rise
        W = 2.5 if deep else 5.0 if height <= 0.0 else 0.0
        task.update(1e-3 * k, 1e-3, (x, y, height), W, height)
        if task.lost:
            break
    assert "lost the paper in stroke 1" in task.lost
    assert 1e-3 < deep < 2.1e-3


def test_a_stroke_that_begins_in_a_hole_ends_above_the_paper(plan: DrawingPlan) -> None:
    """The circle begins 8 mm right of the middle: the search ends 2.5 mm and 20 degrees below the first line."""
    result = draw(ROBOT, plan, Simulated(canvas_error=CanvasError(hole=Hole(0.008, 0.0, 0.006, 0.006))))
    assert "no paper found" in result.aborted
    assert heights(result).min() > -0.0205
    assert heights(result)[-1] > 18e-3


def test_no_paper_at_all_ends_above_the_plane(plan: DrawingPlan) -> None:
    """Paper 25 mm too low: the search ends at 20 mm, and the pen goes back to 20 mm (less 2) above the plan."""
    result = draw(ROBOT, plan, Simulated(canvas_error=(-0.025, 0.0)))
    assert "no paper found within 20 mm" in result.aborted
    assert heights(result)[-1] - 0.025 > 18e-3


@pytest.mark.parametrize("offset", [0.012, 0.02])
def test_paper_far_above_the_plan_is_met_gently_and_reported(plan: DrawingPlan, offset: float) -> None:
    """The guard is at 15 N; the pen then moves at 50 mm/s at most, v sqrt(k m) = 12 N more at the very worst."""
    result = draw(ROBOT, plan, Simulated(canvas_error=(offset, 0.0)))
    assert re.search(r"pressed with \d+ N where no paper was expected, .* mm above the planned paper", result.aborted)
    assert 15.0 <= result.summary["force_touch_max_n"] < 27.0
    assert heights(result)[-1] > 17e-3
    assert heights(result)[0] > 1e-3  # no pen starts inside the paper


def test_the_integral_at_its_limit_and_an_unknown_stiffness_are_said(plan: DrawingPlan) -> None:
    summary = draw(ROBOT, plan, Simulated(model_error=0.5)).summary
    assert summary["integral_limit_s"] > 1.0
    assert any("integral was at its limit" in remark for remark in summary["remarks"])


def test_defaults_have_no_remarks(drawn: DrawingResult) -> None:
    assert drawn.summary["remarks"] == []
    assert drawn.summary["integral_limit_s"] == 0.0
    assert drawn.summary["stiffness_learned"] is True
    assert drawn.summary["strokes_max_mm"] >= 0.0


def test_noise_off_silences_the_builtin_sensor_too() -> None:
    """Bias, drift and delay are no noise: they stay."""
    loud, quiet, double = (Simulated("builtin", noise=scale).wrench_sensor() for scale in (1.0, 0.0, 2.0))
    assert loud is not None
    assert quiet is not None
    assert double is not None
    assert not np.any(quiet.noise)
    assert np.all(np.asarray(loud.noise) > 0.0)
    assert np.asarray(double.noise) == pytest.approx(2.0 * np.asarray(loud.noise))
    assert np.array_equal(quiet.bias, loud.bias)
    assert quiet.delay == loud.delay


def test_misuse(plan: DrawingPlan) -> None:
    with pytest.raises(UnknownName, match="hybrid, height-pi"):
        draw(ROBOT, plan, controller="pid")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="ideal, builtin, none"):
        draw(ROBOT, plan, Simulated(sensor="skin"))  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="model_error"):
        draw(ROBOT, plan, Simulated(model_error=-0.6))
    with pytest.raises(InvalidValue, match=r"-0\.5 to 1"):
        draw(ROBOT, plan, Simulated(model_error=5.0))
    with pytest.raises(InvalidValue, match="noise"):
        draw(ROBOT, plan, Simulated(noise=-1.0))
    with pytest.raises(InvalidValue, match="force"):
        draw(ROBOT, plan, force=0.0)
    assert heavier(ROBOT, 0.0).mass_matrix(np.ones(6)) == pytest.approx(ROBOT.mass_matrix(np.ones(6)))


def test_nothing_is_hidden_beside_the_drawing_alone(drawn: DrawingResult, plan: DrawingPlan) -> None:
    """Pressing without drawing, sample by sample: each touch settles once, and what it did is in the summary."""
    log, normal = drawn.log, plan.canvas.T_base_canvas[:3, 2]
    rows = [k for k in range(len(log)) if MODES[int(log["mode"][k])] == "settle"]
    forces = [float(log["wrench_true"][k, :3] @ normal) for k in rows]
    summary = drawn.summary
    assert summary["settle_s"] == pytest.approx(1e-3 * len(rows))
    assert 3 * 0.03 < summary["settle_s"] < 3 * 0.7  # of three touches: what they wait for at least and at most
    assert summary["force_settle_max_n"] == pytest.approx(max(forces))
    square = sum((f - float(log["force_des"][k])) ** 2 for f, k in zip(forces, rows, strict=True))
    assert summary["force_settle_rms_error_n"] == pytest.approx(np.sqrt(square / len(rows)))
    assert max(summary["force_touch_max_n"], summary["force_max_n"]) >= summary["force_settle_max_n"]


def test_a_touch_in_the_air_is_told_from_a_lost_paper(plan: DrawingPlan) -> None:
    """Noise that the controller does not know of; with a hole in the paper the pen did touch."""
    loud = draw(ROBOT, plan, Simulated(noise=8.0))
    normal = plan.canvas.T_base_canvas[:3, 2]
    assert loud.aborted
    assert not np.any(loud.log["wrench_true"][:, :3] @ normal > 0.0)
    assert loud.summary["touch_delay_ms"] is None  # no contact, no delay
    assert loud.summary["stiffness_learned"] is False
    assert any("felt in the air in stroke 1, the paper was not found" in remark for remark in loud.summary["remarks"])
    hole = draw(ROBOT, plan, Simulated(canvas_error=CanvasError(hole=Hole(0.07, 0.08, 0.01, 0.02))))
    assert hole.aborted
    assert not any("in the air" in remark for remark in hole.summary["remarks"])


class Untold:
    """A plant with the four methods of hardware: no truth, and no wrench if that is asked for."""

    def __init__(self, plant: Any, wrench: bool) -> None:
        self._plant, self._wrench = plant, wrench
        self.period, self.dof = plant.period, plant.dof

    def reset(self, q: Array, qd: Array | None = None) -> State:
        return self._seen(self._plant.reset(q, qd))

    def read(self) -> State:
        return self._seen(self._plant.read())

    def write(self, command: Command) -> None:
        self._plant.write(command)

    def close(self) -> None:
        self._plant.close()

    def _seen(self, state: State) -> State:
        return state if self._wrench else State(state.time, state.period, state.q, state.qd, state.tau)


@pytest.mark.parametrize("sensor", ["ideal", "none"])
def test_any_plant_with_a_pose_and_a_wrench_or_torques_draws(plan: DrawingPlan, sensor: str) -> None:
    """The same arm and paper once with truth and once without: the same torques, and figures by what was measured."""
    told: Any = Simulated(sensor, seed=2)  # type: ignore[arg-type]
    known = draw(ROBOT, plan, told)
    bare = draw(ROBOT, plan, OnPlant(Untold(told.plant(ROBOT, plan), sensor != "none"), sensor))  # type: ignore[arg-type]
    assert "T_true" not in bare.log
    assert np.array_equal(bare.log["tau"], known.log["tau"])
    assert bare.paper is None
    assert bare.robot is ROBOT
    one, two = bare.figures, known.figures
    assert one.strokes_drawn == two.strokes_drawn == 3
    assert one.path_rms_mm == pytest.approx(two.path_rms_mm, abs=0.02)
    assert one.force_mean_n == pytest.approx(two.force_mean_n, abs=0.1)
    assert one.touch_delay_ms is None  # nobody knows when it truly touched
    assert two.touch_delay_ms is not None
    assert one.remarks == ()
    assert len(bare.ink) == pytest.approx(len(known.ink), rel=0.05)  # without the ramps of touch and lift


def test_figures_go_into_a_summary_and_come_back(drawn: DrawingResult) -> None:
    record = json.loads(json.dumps(drawn.summary))
    assert DrawingFigures.of_record({**record, "something": "else"}) == drawn.figures


class Spun(Untold):
    """Its last joint reports 4 rad/s in one sample, more than it can turn."""

    def _seen(self, state: State) -> State:
        return replace(state, qd=np.array([*state.qd[:5], 4.0])) if abs(state.time - 0.1) < 2e-4 else state


def test_limits_that_a_drawing_reached_are_among_its_remarks() -> None:
    told: Any = Simulated("ideal")
    few = plan_drawing(ROBOT, Strokes(LINES[:1], (0.2, 0.2)), Canvas.table(ROBOT))
    drawn = draw(ROBOT, few, OnPlant(Spun(told.plant(ROBOT, few), True), "ideal"))
    text = f"joint 6 beyond its speed of {ROBOT.qd_max[5]:.4g} rad/s"
    assert drawn.figures.interventions[text] == 1
    assert f"{text}: in 1 period" in drawn.figures.remarks
