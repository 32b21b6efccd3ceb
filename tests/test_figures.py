"""Figures against their data: units of wall-clock figures by an invented clock, reports, CSV files, FMU attributes."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import frozen_numbers as frozen
import numpy as np
import pytest
from test_run_summary import made as summarised
from test_study import thresholds
from test_study_tables import answer, free, touch
from test_study_tables import made as studied

import tangere
from tangere.apps.drawing.drawing import draw, drawing_robot
from tangere.apps.drawing.force.task import MODES
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.plan import plan_drawing
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.apps.drawing.summary import touch_delays
from tangere.apps.fmu.description import description_text
from tangere.apps.fmu.kinds import KINDS
from tangere.apps.fmu.part import arm_of
from tangere.apps.scenarios import touch as touch_module
from tangere.apps.scenarios.build import build, scenario_of
from tangere.apps.scenarios.execute import error_shares, summary_of
from tangere.apps.study import collisions, trials
from tangere.apps.study.command import injected_text
from tangere.apps.study.files import write_injected
from tangere.apps.study.injected import InjectedStudy, LogResult
from tangere.apps.study.page import injected_html, studied_html
from tangere.apps.study.trials import FOUND_WITHIN, Injected, inject
from tangere.logs.log import Log
from tangere.loop.result import Timing
from tangere.loop.run import run
from tangere.loop.summary import summarise
from tangere.report.data import RunData
from tangere.report.sections_curves import _disturbed, timing, torques
from tangere.report.sections_run import _joint_table, summary
from tangere.types import Event


def _cells(page: Any) -> list[list[str]]:
    """The rows of all tables of a page, as text."""
    rows = re.findall(r"<tr>(.*?)</tr>", str(page), flags=re.S)
    cells = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.S) for row in rows)
    return [[re.sub(r"<[^>]*>", "", cell) for cell in row] for row in cells]


# --------------------------------------------------------------------------------------------------------- the clock


def test_wall_clock_figures_of_a_summary_are_microseconds() -> None:
    result = summarised()
    clock = dataclasses.replace(
        result.timing, median=1e-5, p99=2e-5, p9999=3e-5, worst=4e-5, busiest=5e-5, longest_pause=6e-5, waited=7e-5
    )
    told = summarise(dataclasses.replace(result, timing=clock))["period_us"]
    names = ("median", "p99", "p99.99", "worst", "busiest", "longest_pause", "waited")
    assert [told[name] for name in names] == pytest.approx([10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0])
    assert told["nominal"] == pytest.approx(1000.0)


@pytest.fixture(scope="module")
def circle() -> tuple[Any, Any]:
    built = build("circle", {"plant": "rigid", "duration": 4})
    parts = (built.plant, built.controller, built.observers)
    return built, run(*parts, until=0.5, trajectory=built.motion.trajectory, detector=built.detector)


def test_the_cost_of_a_step_and_the_blocks_are_in_the_summary(circle: tuple[Any, Any]) -> None:
    built, result = circle
    log = Log({**result.log.columns, "cost": np.full(len(result.log), 3e-5)})
    timing = Timing.of(log, result.period)
    summary = summary_of(built, dataclasses.replace(result, log=log, timing=timing))
    assert summary["step_us"]["controller_and_observer"] == pytest.approx(30.0)
    assert summary["thresholds_nm"] == built.detector.thresholds.level[0].tolist()
    own = {"plant": "rigid", "observer": "momentum", "detection": "threshold"}
    assert summary["blocks"] == {**own, **built.motion.blocks}
    assert built.motion.blocks


@pytest.mark.parametrize(("contact_ms", "kept"), [(2.0, False), (20.0, False), (90.0, False), (110.0, True)])
def test_a_touch_too_short_to_settle_has_no_mean_torque(
    circle: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, contact_ms: float, kept: bool
) -> None:
    """Five time constants of 1/50 s: 100 ms."""
    built, result = circle

    @dataclasses.dataclass
    class Touched:
        contact_ms: float

    monkeypatch.setattr(touch_module, "measured", lambda built, result: Touched(contact_ms))
    monkeypatch.setattr(touch_module, "encounters", lambda touched, result: ())
    felt = dataclasses.replace(result, events=(Event.sample(0.05, 2, np.zeros(6)),))
    settings = dataclasses.replace(built.settings, observer_gain=50.0)
    (event,) = summary_of(dataclasses.replace(built, scenario=scenario_of("touch"), settings=settings), felt)["events"]
    assert (event["torque_nm"] is not None) == kept


def _ticking(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    """One second later each time that the module looks at the clock."""
    ticks = itertools.count(1000)
    monkeypatch.setattr(module, "perf_counter", lambda: float(next(ticks)))


def test_the_cost_of_each_period_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    built = build("circle", {"plant": "rigid", "duration": 4})
    _ticking(monkeypatch, sys.modules[run.__module__])
    log = run(built.plant, built.controller, built.observers, until=0.05, trajectory=built.motion.trajectory).log
    assert set(log["cost"].tolist()) == {1.0}
    assert set(log["cost_log"][1:].tolist()) == {1.0}


def test_the_cost_of_each_period_of_a_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed (extra sim)")
    robot = drawing_robot("ur5e")
    lines = (np.array([[0.0, 0.0], [0.004, 0.0]]),)
    plan = plan_drawing(robot, Strokes(lines, (0.2, 0.2)), Canvas.table(robot))
    _ticking(monkeypatch, sys.modules[run.__module__])
    log = draw(robot, plan).log
    assert set(log["cost"].tolist()) == {1.0}
    assert set(log["cost_log"][1:].tolist()) == {1.0}


def test_touch_delays_are_counted_in_samples_from_the_first_contact() -> None:
    mode = np.full(60, MODES.index("touch"), dtype=float)
    mode[20:30], mode[50:] = MODES.index("settle"), MODES.index("settle")
    force = np.zeros(60)
    force[17:30], force[53:] = 1.0, 1.0  # felt 3 samples late; mistaken by 3
    log = Log({"time": np.arange(60) * 1e-3, "mode": mode})
    assert touch_delays(log, force) == pytest.approx([3.0, -3.0])


# ------------------------------------------------------------------------------------------------------------ shares


def test_gravity_friction_and_kinematics_add_up_as_vectors() -> None:
    """A standing arm, at last: the tool is where the true arm's is, less J e with e = M^-1 (torque) / kp."""
    believed, true = tangere.robot("ur10e"), tangere.robot("ur10e", payload=2.0, tool=(0.004, -0.006, 0.01))
    q = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
    n, kp = 1500, 100.0
    zero = np.zeros((n, 6))
    T = np.tile(believed.pose(q)[:3].ravel(), (n, 1))
    log = Log({"time": np.arange(n) * 2e-3, "q_des": zero + q, "qd_des": zero, "qdd_des": zero, "T_des": T})
    rubbing = np.array([3.0, -5.0, 4.0, 1.0, -0.5, 0.3])
    friction: Any = SimpleNamespace(torque=lambda qd: np.zeros_like(qd) + rubbing)
    shares = error_shares(log, true, believed, friction, None, kp, settle=2.9)
    J, M = true.jacobian(q)[:3], believed.mass_matrix(q)
    gravity = true.gravity_torque(q) - believed.gravity_torque(q)
    parts = [-J @ np.linalg.solve(M, torque) / kp for torque in (gravity, rubbing)]
    parts.append(true.pose(q)[:3, 3] - believed.pose(q)[:3, 3])
    names = ("gravity_mm", "friction_mm", "kinematics_mm")
    assert [shares[name] for name in names] == pytest.approx([1e3 * np.linalg.norm(p) for p in parts], rel=1e-6)
    assert shares["together_mm"] == pytest.approx(1e3 * np.linalg.norm(np.sum(parts, axis=0)), rel=1e-6)
    assert shares["inertia_mm"] == pytest.approx(0.0, abs=1e-9)


# ------------------------------------------------------------------------------------------------------------ studies


@pytest.mark.parametrize("off", [-1, 0])
def test_a_joint_moves_if_it_does_in_the_first_fifth_after_the_onset(off: int) -> None:
    time = np.arange(1500) * 2e-3
    row = 700
    after = int(np.searchsorted(time, time[row] + FOUND_WITHIN)) - row
    qd = np.full((1500, 6), 0.3)
    qd[row + 1 + after // 5 + off :, 3] = 0.0  # stands from the first sample that does not count on, or one before
    found = inject(
        thresholds(), time, np.zeros((1500, 6)), qd, lambda rows, added: np.zeros((rows.stop - rows.start, 6)), row,
        [(2, 10.0)],
    )  # fmt: skip
    assert found is not None
    assert found.moving.tolist() == [True, True, True, off == 0, True, True]


def test_a_step_is_injected_from_the_sample_after_its_onset_on() -> None:
    time, row, given = np.arange(1500) * 2e-3, 700, []

    def observer(rows: slice, added: np.ndarray) -> np.ndarray:
        given.append((time[rows], added.copy()))
        return np.zeros_like(added)

    free_of_touch, moving = np.zeros((1500, 6)), np.full((1500, 6), 0.3)
    assert inject(thresholds(), time, free_of_touch, moving, observer, row, [(2, 10.0)]) is not None
    stamps, added = given[0]
    assert np.array_equal(added, np.where(stamps > time[row], -1.0, 0.0)[:, None] * np.ones(6))  # taken off the torque
    assert not np.any(given[1][1])


def test_delays_in_steps_csv_are_those_of_the_study_and_the_residuals_own(tmp_path: Path) -> None:
    steps = (Injected(1.0, np.array([0.02, 0.05]), True, np.array([True, False, True, True, True, True])),)
    log = LogResult("a", 10.0, (), steps, 0.012)
    study = InjectedStudy("ur10e", (log,), np.ones(6), ((2, 5.0), (3, 7.0)), (), (), 0, False, 1.0)
    write_injected(study, tmp_path)
    with (tmp_path / "steps.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(r["delay_s"]) for r in rows] == pytest.approx([0.032, 0.062])
    assert [(r["joint"], float(r["torque_nm"]), r["moving"]) for r in rows] == [("2", 5.0, "0"), ("3", 7.0, "1")]


def test_page_and_terminal_tell_the_injected_steps_of_each_joint() -> None:
    """Nine onsets, joint j moves in j of them and its step is found after 10 j ms, and 12 ms more of the model."""
    joints = np.arange(1, 7)
    steps = tuple(Injected(1.0 + k, np.tile(0.01 * joints, 2), True, joints > k) for k in range(9))
    copies = tuple((int(j), float(size * j)) for size in (1.0, 2.0) for j in joints)
    logs = (LogResult("a", 10.0, (), steps, 0.012, fold=0), LogResult("b", 20.0, (), (), 0.012, fold=1))
    study = InjectedStudy("ur10e", logs, 1.0 * joints, copies, (), (), 0, False, 1.0)
    rows = {row[0]: row[1:] for row in reversed(_cells(injected_html(study))) if row}  # the first table of each
    assert (rows["a"][:2], rows["b"][:2]) == (["1", "10"], ["2", "20"])  # fold and seconds
    lines = {words[0]: words[1:] for words in map(str.split, injected_text(study).splitlines()[-6:])}
    for j in range(1, 7):
        row = rows[f"joint {j}"]
        assert (row[0], row[1], row[4]) == (f"{j}", f"{j}", f"{9 - j}")
        assert row[3].split()[0] == lines[f"{j}"][4] == f"{10 * j + 12}"
        assert lines[f"{j}"][:2] == [f"{j}", f"{j}"]


def test_figures_of_the_page_of_a_study() -> None:
    touches = [
        touch(2, answer(None, best=2) if k < 21 else answer(2 + (k > 35)), world=w, delay=d)  # link told: 20, right: 15
        for w in ("exact", "wrong") for k, d in enumerate(np.linspace(0.010, 0.030, 41))
    ]  # fmt: skip
    steps = [[0.015] * 67] * 6 + [[0.025] * 67] * 3
    motions = [dataclasses.replace(free(steps), world=w) for w in ("exact", "wrong")]
    done = studied(touches, motions)
    page = studied_html(done)
    size = done.plan.force
    rows = [row for row in _cells(page) if row and row[0] == f"{size:.0f} N"]
    assert len(rows) >= 2
    for row in rows[:2]:
        assert row[1] == "41"
        assert row[5].startswith("20 (")  # ms, the median
        assert row[6].startswith("29 (")
        low, high = map(float, re.findall(r"[\d.]+", row[5])[1:3])
        assert 10.0 <= low < 20.0 < high <= 30.0
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
    assert re.search(rf"100 % {size:g} N found of detectable|{size:g} N found of detectable 100 %", text), text[:600]
    assert re.search(r"15 ms its delay, median|its delay, median 15 ms", text)
    for figure, name in (("66.7", "within 20 ms"), ("48.8", "link named"), ("75", "then right")):  # 6 of 9, 20 of 41
        assert re.search(rf"\b{figure} % [^%]*{name}|{name} {figure} %", text), name


def test_the_ring_of_a_roc_is_where_the_thresholds_were_learned() -> None:
    done = studied([touch(2, answer(2), score=s) for s in (0.5, 1.5, 9.0)], [free([])])
    assert re.findall(r"the thresholds as learned, ([\d.]+)", studied_html(done)) == ["66.7"]  # two of three


# ------------------------------------------------------------------------------------------------------------ reports


def test_joints_are_numbered_from_one_with_their_own_figures() -> None:
    robot = tangere.robot("ur10e")
    rows = _cells(_joint_table(robot, np.arange(6.0)))[1:]
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert [float(row[4].replace("−", "-")) for row in rows] == pytest.approx(np.arange(6.0))
    assert robot.model.dh is not None
    assert [float(row[2].replace("−", "-")) for row in rows] == pytest.approx(robot.model.dh.d, rel=1e-4)


def test_costs_and_lateness_of_a_log_are_microseconds_and_recording_counts_with_its_own_row() -> None:
    time, cost, late = 1e-3 * np.arange(4), np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 5.0, 0.0, 7.0])
    columns = {"time": time, "q": np.zeros((4, 6))}
    data = RunData.of(Log(columns | {"cost": 1e-6 * cost, "cost_log": 1e-6 * cost, "lateness": 1e-6 * late}))
    assert data.lateness_us == pytest.approx(late)
    assert data.timing_us == pytest.approx(cost + np.array([2.0, 3.0, 4.0, 0.0]))  # known with the next row
    assert data.period == pytest.approx(1e-3)


def test_late_samples_are_counted_against_the_period() -> None:
    taken = np.array([100.0, 900.0, 1100.0, 1500.0, 40.0])
    section = timing(RunData("run", time=np.arange(5.0), timing_us=taken, period=1e-3))
    assert section is not None
    rows = {row[0]: row[1] for row in _cells(section.body)[1:]}
    assert rows["longer than the period of 1 ms"] == "2"
    assert float(rows["median"].replace(" ", "")) == 900.0
    assert float(rows["worst"].replace(" ", "")) == 1500.0


# --------------------------------------------------------------------------------------------------------------- FMUs


def fmu_attributes() -> dict[str, Any]:
    """nominal of every variable of every kind, by variable without its index."""
    arm = arm_of(tangere.robot("ur10e"))
    out: dict[str, Any] = {}
    for kind, made in KINDS.items():
        root = ET.fromstring(description_text(made, arm, made.table(arm), "{}", "0"))
        rows: dict[str, list[Any]] = {}
        for variable in root.iter("ScalarVariable"):
            attributes = {k: v for child in variable for k, v in child.attrib.items()}
            kept = [attributes.get(k) for k in ("nominal", "min", "max", "unit", "declaredType")]
            name = re.sub(r"\[.*?\]", "", variable.get("name", ""))
            if kept not in rows.setdefault(name, []):
                rows[name].append(kept)
        out[kind] = rows
    return out


def test_nominal_values_and_bounds_of_every_fmu_are_what_they_were() -> None:
    frozen.check("fmu_attributes", fmu_attributes())


def test_contacts_of_a_study_are_as_hard_as_its_hardest_push_at_most() -> None:
    assert collisions.BANDS[0] == 0.0
    assert collisions.BANDS[-1] == trials.SIZES[-1]
    assert sorted(collisions.BANDS) == list(collisions.BANDS)


def test_a_path_is_shown_by_what_was_not_pushed() -> None:
    """From 20 ms before an event was felt to 1 s after its end the error of the path is the push's."""
    felt = Event.sample(1.01, 2, np.ones(6), end_s=2.02)
    data = RunData("run", time=np.linspace(0.0, 5.0, 501), events=(felt,))
    out = data.time[_disturbed(data)]
    assert out[[0, -1]] == pytest.approx([0.99, 3.02])
    assert len(out) == 204


def test_torques_are_shown_as_a_share_of_their_limits() -> None:
    arm = tangere.robot("ur10e")
    tau = np.zeros((5, 6))
    tau[2, 0], tau[1, 3] = 0.5 * arm.tau_max[0], -0.25 * arm.tau_max[3]
    section = torques(RunData("run", robot=arm, time=np.arange(5.0), tau=tau))
    assert section is not None
    assert [row[3] for row in _cells(section.body)[1:]] == ["50.0 %", "0.0 %", "0.0 %", "25.0 %", "0.0 %", "0.0 %"]


def test_figures_of_every_joint_stand_in_a_row_of_their_own() -> None:
    found = {"residual_rms_nm": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "aborted": "", "marks": [True] * 6}
    rows = _cells(summary(RunData("run", time=np.arange(3.0), q=np.zeros((3, 6)), summary=found)).body)
    each = [row for row in rows if len(row) == 7]
    assert each[0][0] == "joint by joint"
    assert [row[1:] for row in each[1:]] == [["0.1", "0.2", "0.3", "0.4", "0.5", "0.6"]]  # yes and no are no figures
