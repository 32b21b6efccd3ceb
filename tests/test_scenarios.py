"""The scenarios, and the numbers that one command must show: tracking, residual, push, model table, wall."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tangere.apps.scenarios.build import Built, build, scenario_of, scenarios
from tangere.apps.scenarios.common import LONGEST, Motion, RunSettings, Scenario, World
from tangere.apps.scenarios.execute import summary_of
from tangere.errors import InvalidValue, UnknownName
from tangere.loop.result import RunResult
from tangere.loop.run import run
from tangere.planning.joint_motions import Hold
from tangere.plants.pushes import push_of
from tangere.settings import settings_of

pytest.importorskip("mujoco")

GAIN, THRESHOLD = 50.0, 5.0  # the scenarios' default, and a constant threshold
TORQUE, START, LASTING = 20.0, 1.5, 0.8  # the push of these tests: 40 time constants long


def go(name: str | Scenario, *pushes: str, **given: Any) -> tuple[Built, RunResult, dict[str, Any]]:
    """Build and run in memory."""
    built = build(name, given, tuple(push_of(push) for push in pushes))
    result = run(
        built.plant, built.controller, built.observers, until=built.duration, trajectory=built.motion.trajectory,
        detector=built.detector,
    )  # fmt: skip
    return built, result, summary_of(built, result)


@cache
def pushed_circle(friction: str) -> tuple[Built, RunResult, dict[str, Any]]:
    push = f"joint=2,torque={TORQUE},start={START},duration={LASTING}"
    return go("circle", push, duration=4.5, friction=friction, threshold=(THRESHOLD,))


@pytest.mark.parametrize("name", list(scenarios()))
def test_every_scenario_runs_quietly(name: str) -> None:
    _, result, summary = go(name, duration=2.0 if name in ("circle", "sine") else 0.3)
    assert summary["aborted"] == ""
    assert "torque limited" not in summary["interventions"]
    assert len(result.log) == summary["samples"] == round(summary["duration_s"] / result.period)
    if name != "wall-circle":  # there something does touch
        assert summary["events"] == []
        assert np.all(np.abs(result.log["residual"]) < 0.05)
        # sine: the loop's answer to 9.9 rad/s2 at 1 ms; the others are slower
        assert np.max(np.abs(result.log["q_true"] - result.log["q_des"])) < 1e-3


def test_exact_model_tracks_within_a_fiftieth_of_a_millimetre() -> None:
    _, _, summary = pushed_circle("none")
    assert 0.0 < summary["tracking_rms_mm"] <= 0.02
    assert 1.0 < summary["tracking_push_max_mm"] < 20.0  # 20 Nm do move it


@pytest.mark.parametrize("friction", ["none", "full"])
def test_quiet_residual_and_the_push_on_joint_2(friction: str) -> None:
    _, result, summary = pushed_circle(friction)
    log = result.log
    quiet = log.time < START
    # of every joint; with dry friction the model's sign at rest differs by a sample, hence its peak but not its rms
    assert max(summary["residual_rms_nm"]) <= 0.05
    if friction == "none":
        assert np.max(np.abs(log["residual"][quiet])) <= 0.05
    (event,) = summary["events"]
    assert event["joint"] == 2
    assert event["true_torque_nm"] == TORQUE
    assert abs(event["torque_nm"] - TORQUE) <= 0.01 * TORQUE


def test_the_residual_follows_the_exponential_all_along() -> None:
    _, result, _ = pushed_circle("none")
    time, felt = result.log.time, result.log["residual"][:, 1]
    since = np.clip(time - START, 0.0, LASTING)
    after = np.maximum(time - START - LASTING, 0.0)
    expected = TORQUE * (1.0 - np.exp(-GAIN * since)) * np.exp(-GAIN * after)
    assert np.max(np.abs(felt - expected)) <= 0.2
    others = np.delete(result.log["residual"], 1, axis=1)
    assert np.max(np.abs(others)) <= 0.2


def test_the_touch_is_raised_at_once_and_its_end_is_found() -> None:
    _, result, summary = pushed_circle("none")
    (event,) = summary["events"]
    could = START - math.log(1.0 - THRESHOLD / TORQUE) / GAIN  # when 20 (1 - exp(-K t)) passes the threshold
    assert could <= event["time_s"] <= could + 2e-3
    assert event["delay_ms"] == pytest.approx(1e3 * (event["time_s"] - START))
    gone = START + LASTING + math.log(TORQUE / (0.5 * THRESHOLD)) / GAIN  # it ends below half of the threshold
    (event,) = result.events
    assert event.end_s is not None
    assert gone <= event.end_s <= gone + 2e-3


def test_a_heavier_arm_shows_in_residual_and_tracking() -> None:
    _, result, summary = go("circle", duration=2.5, mass=1.05)
    # 5 % of the gravity torque of joint 2, some 90 Nm, at the circle's start
    assert np.max(np.abs(result.log["residual"][:, 1])) == pytest.approx(4.5, rel=0.1)
    assert 1.0 < summary["tracking_rms_mm"] < 10.0
    assert summary["tracking_rms_mm"] == pytest.approx(summary["shares"]["together_mm"], rel=0.1)


# Tracking rms after the ramp [mm] and largest residual [Nm] that believing each parameter set of 000 costs, as they
# were computed outside of this program with another integrator, trajectory and observer; hence the factor of 1.5.
TABLE = {
    "000-C": (54.0, 80.0),
    "000-D": (20.8, 10.5),
    "000-E": (4.75, 0.21),
    "000-F": (0.066, 0.12),
    "000-H": (4.96, 0.12),
}


@pytest.mark.parametrize("model", TABLE)
def test_what_each_parameter_set_of_000_costs(model: str) -> None:
    options = {"plant": "rigid", "drives": "off", "period": "2ms", "path_by": "plant", "duration": 7}
    _, result, summary = go("circle", model=model, **options)
    rms, residual = TABLE[model]
    assert rms / 1.5 < summary["tracking_rms_mm"] < rms * 1.5
    assert residual / 1.5 < np.max(np.abs(result.log["residual"])) < residual * 1.5


def test_the_exact_model_costs_nothing() -> None:
    options = {"plant": "rigid", "drives": "off", "period": "2ms", "path_by": "plant", "duration": 7}
    _, result, summary = go("circle", **options)
    assert summary["tracking_rms_mm"] < 0.007 * 1.5  # what a period of 2 ms costs
    assert np.max(np.abs(result.log["residual"])) < 1e-5 * 1.5


def test_reach_stays_below_the_limits_and_recovers() -> None:
    built, result, summary = go("reach", duration=9)  # the motion takes 7 s
    log, believed = result.log, built.world.believed
    # through both singularities indeed: sin q5 and the elbow's angle change sign or vanish
    assert log["q"][:, 4].min() < -0.3
    assert log["q"][:, 4].max() > 0.3
    assert np.min(np.abs(log["q"][:, 2])) < 0.01
    assert summary["interventions"]["near a singularity"] > 100
    assert set(summary["interventions"]) == {"near a singularity"}  # nothing was limited
    assert np.all(np.abs(log["tau_cmd"]).max(axis=0) < 0.5 * believed.tau_max)
    assert np.all(np.abs(log["qd"]).max(axis=0) < believed.qd_max)
    error = np.linalg.norm(log.position("T_true") - log.position("T_des"), axis=1)
    assert error.max() < 1e-3  # m, all along
    assert error[-1] < 1e-6  # recovered: exp(-10 * 1.9 s) of the error at the end is below a nanometre
    assert np.max(np.abs(log["q"][-1] - log["q_des"][-1])) < 1e-3


@pytest.mark.parametrize(("round_time", "drives"), [(20, True), (5, True), (5, False)])
def test_wall_circle_in_the_regular_pose_presses_with_5_N_within_2_percent(round_time: int, drives: bool) -> None:
    """With friction of 0.3, with rotors and without, however fast the pen slides."""
    _, _, summary = go("wall-circle", round_time=round_time, duration=5, drives=drives)
    force = summary["force"]
    assert force["samples"] == 3000
    assert force["within_2_percent"] == 1.0
    assert 4.9 <= force["min_n"] <= force["max_n"] <= 5.1
    assert force["lever_m"][0] > 0.25
    assert summary["aborted"] == ""


def test_gains_of_a_run_are_told_one_or_one_per_joint() -> None:
    """kv where it is told, 2 sqrt(kp) where not; in every scenario that has them."""
    for name in ("circle", "hold", "sine", "touch", "reach"):
        given = {"reaction": "none"} if name == "touch" else {}
        task: Any = build(name, {**given, "kp": 400}).motion.controller
        assert np.array_equal(task.kv, np.full(6, 40.0)), name
        task = build(name, {**given, "kp": "100,200,300,400,500,600", "kv": "30"}).motion.controller
        assert np.array_equal(task.kp, 100.0 * np.arange(1, 7)), name
        assert np.array_equal(task.kv, np.full(6, 30.0)), name
    assert build("hold", {"kp": "81"}).settings.kp == 81.0  # one number stays one: in the manifest, on the page
    with pytest.raises(InvalidValue, match="kv: expected one number or 6"):
        build("hold", {"kv": "1,2"})
    with pytest.raises(InvalidValue, match="kv: 0 1/s or more, got -1"):
        build("hold", {"kv": -1})


def test_a_payload_that_is_believed_is_no_touch() -> None:
    """The same 3 kg hang at the flange: told of them the controller holds still and nothing is felt."""
    _, result, summary = go("hold", plant="rigid", duration=0.8, push="none", payload=3)
    assert result.events
    assert summary["events"][0]["false"]
    _, result, summary = go("hold", plant="rigid", duration=0.8, push="none", payload=3, believed_payload="3000 g")
    assert not result.events
    assert summary["tracking_max_mm"] < 1e-6
    assert build("hold", {"believed_payload": 3}).world.true.model.payload is None  # the simulated arm has its own


def test_wall_circle_in_its_own_pose_survives() -> None:
    built, result, summary = go("wall-circle", pose="own", duration=4)
    assert summary["aborted"] == ""
    assert summary["interventions"] == {}
    assert summary["tracking_max_mm"] < 2.0
    log, world = result.log, built.world
    assert np.all(np.abs(log["tau_cmd"]) < world.believed.tau_max)
    # joint 1 has no spring that would hold the pen off the wall: it yields by millimetres, the others do not
    yielded = np.abs(log["q"][-1] - log["q_des"][-1])
    assert yielded[0] > 5e-4
    assert np.max(yielded[1:]) < 1e-4
    # only joint 1 has a lever: J^T of a force across the wall vanishes elsewhere (another way to the same lever)
    J = world.true.jacobian(log["q"])[:, 1]
    planned = np.abs(world.true.jacobian(log["q_des"])[:, 1])
    assert np.max(planned[:, 1:]) < 2e-3  # m; they would be 0.4 m in a regular pose
    assert summary["force"]["lever_m"][1] == pytest.approx(np.max(np.abs(J[log.time >= 2.0, 0])))
    assert summary["force"]["lever_m"][1] < 0.1


def test_impedance_gives_way_by_force_over_stiffness() -> None:
    # tool pushed with 10 N: 20 mm at 500 N/m once it is at rest
    _, result, summary = go("impedance", "link=6,force=0/0/10,start=0.1", duration=3, stiffness=500)
    moved = result.log.position("T_true")[-1] - result.log.position("T_des")[-1]
    assert moved[2] == pytest.approx(0.02, rel=0.05)
    assert "shares" not in summary  # they are those of a loop with kp, which this one does not have


def test_sensor_noise_is_seeded() -> None:
    one, same, other = (go("hold", duration=0.1, sensors="ur10e", seed=seed)[1].log for seed in (1, 1, 2))
    assert np.array_equal(one["qd"], same["qd"])
    assert not np.array_equal(one["qd"], other["qd"])


def test_the_acceleration_residual_is_a_second_column() -> None:
    _, result, _ = go("hold", duration=0.1, acceleration_residual="on")
    assert "residual_acceleration" in result.log


@pytest.mark.parametrize(("arm", "q"), [("pendulum", 30), ("planar3r", "10,20,30"), ("scara", (10, 20, 0, 0))])
@pytest.mark.parametrize("plant", ["rigid", "mujoco"])
def test_arms_with_fewer_joints_hold_too(arm: str, q: object, plant: str) -> None:
    _, result, summary = go("hold", robot=arm, q=q, plant=plant, duration=0.2)
    assert summary["aborted"] == ""
    assert np.max(np.abs(result.log["q"] - result.log["q_des"])) < 1e-6


@pytest.mark.parametrize("robot", ["pendulum", "planar3r", "scara", "seven.urdf"])
@pytest.mark.parametrize("name", ["hold", "sine"])
def test_any_arm_holds_and_swings_from_a_posture_of_its_own(name: str, robot: str, tmp_path: Path) -> None:
    if robot == "seven.urdf":
        (tmp_path / robot).write_text(seven_joints())
        robot = str(tmp_path / robot)
    swing = {"amplitude": 0.05} if name == "sine" else {}  # rad, m: the scara's spindle has a way of 0.2 m
    built, result, summary = go(name, robot=robot, plant="rigid", duration=2.5, **swing)
    assert summary["aborted"] == ""
    assert len(built.settings.q) == built.world.believed.dof
    limits = built.world.believed
    q = np.deg2rad(built.settings.q)
    assert np.all((limits.q_min < q) & (q < limits.q_max))
    assert np.max(np.abs(result.log["q"] - result.log["q_des"])) < 1e-3


def test_the_push_of_impedance_is_on_the_last_link(tmp_path: Path) -> None:
    (tmp_path / "seven.urdf").write_text(seven_joints())
    for robot, link in (("scara", 4), (str(tmp_path / "seven.urdf"), 7), ("ur5e", 6)):
        (push,) = build("impedance", {"robot": robot, "plant": "rigid"}).pushes
        assert push.link == link
        assert push.force == (0.0, 0.0, -20.0)


def seven_joints() -> str:
    """A URDF of seven links of 0.2 m, axes in turn along z and y, each joint free from -2 to 1.5 rad."""
    links = "".join(
        f'<link name="l{i}"><inertial><origin xyz="0 0 0.1"/><mass value="{4 - 0.4 * i}"/>'
        '<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for i in range(8)
    )
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/><origin xyz="0 0 0.2"/>'
        f'<axis xyz="0 {i % 2} {1 - i % 2}"/><limit lower="-2" upper="1.5" effort="100" velocity="3"/></joint>'
        for i in range(7)
    )
    return f'<robot name="seven">{links}{joints}</robot>'


@pytest.mark.parametrize(("name", "moved"), [("hold", 10.0), ("impedance", 35.0)])
def test_something_pushes_by_default_and_none_switches_it_off(name: str, moved: float) -> None:
    _, _, summary = go(name, plant="rigid", duration=6.0)
    (event,) = summary["events"]
    assert event["delay_ms"] < 20.0
    assert summary["tracking_push_max_mm"] > moved  # mm: it is seen
    assert build(name, {"push": "none"}).pushes == ()
    short = build(name, {"duration": 2.0})  # too short for the scenario's own push: left out, and said
    assert short.pushes == ()
    assert short.notes == (f"nothing pushes: the push of {name} starts at 3 s, the run ends at 2 s",)
    with pytest.raises(InvalidValue, match=r"push: it starts at 3 s, after the end of the run \(2 s\)"):
        build(name, {"duration": 2.0, "push": "joint=1,torque=5,start=3"})
    with pytest.raises(InvalidValue, match=r"push: it starts at 2 s, after the end of the run \(2 s\)"):
        build(name, {"duration": 2.0, "push": "joint=1,torque=5,start=2"})  # no period is left for it


def test_doubts_reach_the_summary() -> None:
    built, _, summary = go("hold", plant="rigid", duration=0.1, push="none", kp=1e6, q="0,-1.57,1.57,-1.57,-1.57,0")
    assert summary["notes"] == list(built.notes)
    assert [note.split(":")[0] for note in built.notes] == ["kp", "q"]
    quiet = {"plant": "rigid", "duration": 0.1, "push": "none"}
    assert "notes" not in go("hold", **quiet, q="0rad,-1.57rad,1.57rad,-1.57rad,-1.57rad,0rad")[2]
    assert build("hold", {"period": 0.1}).notes[0].startswith("period: 0.1 s is unusual")


def test_a_scenario_of_ones_own_runs_as_those_that_ship() -> None:
    built, result, _ = go(
        Scenario("mine", "stands elsewhere", RunSettings, lambda world: still(world, (0.1,) * 6)),
        plant="rigid", duration=0.1,
    )  # fmt: skip
    assert built.scenario.name == "mine"
    assert np.allclose(result.log["q"], 0.1)


def still(world: World, q: tuple[float, ...]) -> Motion:
    trajectory = Hold(world.believed, np.array(q), world.settings.duration)
    return Motion(trajectory, world.computed_torque(trajectory))


def test_keys_carry_the_defaults_of_their_scenario() -> None:
    assert settings_of(scenario_of("wall-circle").settings)["robot"].default == "ur10"
    assert settings_of(scenario_of("circle").settings)["robot"].default == "ur10e"
    assert settings_of(scenario_of("reach").settings)["duration"].default is None
    assert LONGEST * 1e-3 >= 600  # s: the ten minutes of a paced run fit
    with pytest.raises(UnknownName):
        scenario_of("")


def test_rotors_do_not_brake_the_joint_that_presses_in_002_s_own_pose() -> None:
    """5 N at 0.1 m push joint 1: a damper that grows with its rotor outweighs them."""
    dampers = [
        build("wall-circle", {"pose": "own", "drives": drives, "round_time": 5}).motion.controller.damping  # type: ignore[attr-defined]
        for drives in (False, True)
    ]
    assert dampers[0][0] == dampers[1][0]
    assert np.all(dampers[1][1:] > 1.4 * dampers[0][1:])  # the others hold a place, and rotors need more for it
