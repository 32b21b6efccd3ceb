"""summary.json: every number from a log that was made so that it is known beforehand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tangere
from tangere.logs.log import Log
from tangere.loop.folder import write_json
from tangere.loop.result import RunResult, Timing
from tangere.loop.summary import joined_mean, summarise, tracking_error
from tangere.plants.pushes import Push
from tangere.types import Event

K, H, N = 50.0, 1e-3, 10_000
PUSH = Push(2, 20.5, start=3.0, duration=2.0)


def made(detections=(), truth=True):
    """1 mm beside the path after a ramp of 2 s, 5 mm before, 30 mm while pushed; 20 Nm from 3 to 5 s on joint 2."""
    time = np.arange(N) * H
    error = np.where(time < 2.0, 5e-3, 1e-3)
    error[(time >= 3.0) & (time < 5.9)] = 30e-3
    error[7000] = 4e-3
    T = np.tile(np.eye(4).ravel()[:12], (N, 1))
    T_true = T.copy()
    T_true[:, 7] += error  # y
    r = np.where(time < 3.0, 0.0, 20 * -np.expm1(-K * (time - 3.0)))
    r[time >= 5.0] = 20 * np.exp(-K * (time[time >= 5.0] - 5.0))
    residual = np.zeros((N, 6))
    residual[:, 1] = r
    residual[:3000, 0] = 0.3 * (-1.0) ** np.arange(3000)
    ext = np.zeros((N, 6))
    ext[(time > 3.0) & (time <= 5.0), 1] = 20.5
    columns = {"time": time, "T_des": T, "residual": residual, "cost": np.full(N, 2e-5), "cost_log": np.full(N, 1e-5)}
    columns |= {"T_true": T_true, "tau_ext_true": ext} if truth else {}
    log = Log(columns)
    return RunResult(log, tuple(detections), "", Timing.of(log, H), 0.5, H, interventions={"limited": 3})


TOUCH = Event.sample(3.002, 2, np.array([0, 1.9, 0, 0, 0, 0.0]), end_s=5.074)


def test_every_number(tmp_path):
    summary = summarise(made([TOUCH]), pushes=[PUSH], settle=2.0)
    # 1000 + 3999 samples of 1 mm and one of 4 mm: [2, 3) and (6, 10)
    assert summary["tracking_rms_mm"] == pytest.approx(np.sqrt((4998 + 16.0) / 4999), rel=1e-12)
    assert summary["tracking_max_mm"] == pytest.approx(4.0)
    assert summary["tracking_push_max_mm"] == pytest.approx(30.0)
    assert summary["residual_rms_nm"] == pytest.approx([0.3, 0, 0, 0, 0, 0])
    (event,) = summary["events"]
    assert (event["time_s"], event["end_s"], event["joint"]) == (3.002, 5.074, 2)
    assert event["delay_ms"] == pytest.approx(2.0)
    # exp(-5.1) of 20 Nm at the beginning of the mean, over 1.9 s: 20 exp(-5.1) / K / 1.9 s = 1.3e-3 Nm
    assert event["torque_nm"] == pytest.approx(20.0 - 1.3e-3, abs=2e-4)
    assert event["true_torque_nm"] == pytest.approx(20.5)
    assert summary["realtime_factor"] == pytest.approx(20.0)
    assert summary["period_us"]["median"] == pytest.approx(30.0)
    assert summary["interventions"] == {"limited": 3}
    assert (event["kind"], event["alarm"]) == ("unknown", True)
    write_json(summary, tmp_path / "summary.json")


def test_an_alarm_is_false_where_nothing_touched_and_hides_the_push_within_it():
    """An alarm two seconds before the push: by the truth nothing touched; its mean ends where the push begins."""
    early = Event.sample(1.0, 2, np.array([0, 0.3, 0, 0, 0, 0.0]))
    summary = summarise(made([early]), pushes=[PUSH])
    (event,), (push,) = summary["events"], summary["pushes"]
    assert event["false"] is True
    assert event["true_torque_nm"] == 0.0
    assert event["torque_nm"] == 0.0  # the 20 Nm of the push are not in it
    assert (push["joint"], push["torque_nm"], push["felt_ms"], push["hidden_s"]) == (2, PUSH.torque, None, 1.0)
    over = replace(early, end_s=2.5)  # the push is then missed for its own sake
    assert summarise(made([over]), pushes=[PUSH])["pushes"][0]["hidden_s"] is None
    assert summarise(made([early], truth=False), pushes=[PUSH])["events"][0]["false"] is None


def test_a_push_that_was_felt_is_none_that_was_missed():
    summary = summarise(made([TOUCH]), pushes=[PUSH])
    assert summary["events"][0]["false"] is False
    assert summary["pushes"][0]["felt_ms"] == pytest.approx(2.0)
    assert summarise(made([TOUCH]))["events"][0]["false"] is False  # nobody told of the push: the truth has it
    masked = replace(TOUCH, kind="stop", masked=True)
    (push,) = summarise(made([masked]), pushes=[PUSH])["pushes"]
    assert (push["felt_ms"], push["taken_for"]) == (None, "stop")


def test_a_touch_that_no_push_explains(tmp_path):
    (event,) = summarise(made([TOUCH]))["events"]
    assert event["delay_ms"] is None
    assert event["torque_nm"] == pytest.approx(20.0, abs=2e-3)  # its end is cut by five time constants: no decay in it


def test_a_touch_that_lasts_and_one_that_is_over_too_soon():
    result = made([replace(TOUCH, end_s=None), replace(TOUCH, end_s=3.05)])
    lasting, short = summarise(result, pushes=[PUSH])["events"]
    assert lasting["torque_nm"] == pytest.approx(20.0, abs=2e-3)
    assert short["torque_nm"] is None


def test_without_pushes_everything_is_quiet():
    summary = summarise(made(), settle=2.0)
    assert summary["tracking_push_max_mm"] is None
    assert summary["tracking_max_mm"] == pytest.approx(30.0)
    assert summary["events"] == []
    assert summarise(made(truth=False))["residual_rms_nm"][1] > 1.0


def test_what_is_quiet_ends_where_a_simulated_arm_is_touched_not_where_an_alarm_says_so():
    early = replace(TOUCH, time_s=0.5, onset_s=0.5, end_s=None)
    for events in ([], [early]):  # 0.3 Nm until 3 s, where it is touched
        assert summarise(made(events))["residual_rms_nm"] == pytest.approx([0.3, 0, 0, 0, 0, 0], abs=1e-4)
    assert summarise(made([early], truth=False))["residual_rms_nm"] == pytest.approx([0.3, 0, 0, 0, 0, 0])
    touched = made([early])
    untouched = replace(touched, log=Log({**touched.log.columns, "tau_ext_true": np.zeros((N, 6))}))
    assert summarise(untouched)["residual_rms_nm"][1] > 1.0


def test_without_a_known_push_the_first_event_ends_what_is_quiet():
    quiet = summarise(made([TOUCH], truth=False))["residual_rms_nm"]
    assert quiet == pytest.approx([0.3, 0, 0, 0, 0, 0])


def test_the_tcp_is_placed_by_the_robot_where_the_log_has_joints_only(rng):
    robot = tangere.robot("ur10e")
    q, q_des = rng.normal(size=(5, 6)), rng.normal(size=(5, 6))
    log = Log({"time": np.arange(5.0), "q": q, "q_des": q_des})
    assert tracking_error(log) is None
    distance = [np.linalg.norm(robot.pose(a)[:3, 3] - robot.pose(b)[:3, 3]) for a, b in zip(q, q_des, strict=True)]
    assert tracking_error(log, robot) == pytest.approx(distance)
    T = robot.pose(q_des).reshape(5, 16)[:, :12]
    assert tracking_error(Log({"time": np.arange(5.0), "q": q, "T_des": T}), robot) == pytest.approx(distance)


def test_a_result_in_a_line_names_events_and_an_arm_beyond_its_limits():
    log = Log({"time": H * np.arange(5.0), "cost": np.zeros(5), "cost_log": np.zeros(5)})
    result = RunResult(log, (TOUCH,), "", Timing.of(log, H), 0.1, H, interventions={"limited": 3})
    assert repr(result).endswith(" s, 1 event)")
    wild = replace(result, events=(), limits={"joint 5 at its torque of 28 Nm": False})
    assert repr(wild).endswith(", 0 events, joint 5 at its torque)")
    wild = replace(wild, limits={**wild.limits, "joint 6 beyond its speed of 3.142 rad/s": True})
    assert repr(wild).endswith(", 0 events, joint 6 beyond its speed)")


def test_an_empty_log_has_no_numbers_but_a_summary():
    log = Log({"time": np.zeros(0), "cost": np.zeros(0), "cost_log": np.zeros(0)})
    result = RunResult(log, (), "the plant was lost", Timing.of(log, H), 0.1, H)
    summary = summarise(result, pushes=[PUSH])
    assert summary["tracking_rms_mm"] is None
    assert summary["residual_rms_nm"] is None
    assert summary["aborted"] == "the plant was lost"


def test_the_mean_of_parts_counts_rows_not_parts():
    np.testing.assert_allclose(joined_mean([np.array([1.0, 2.0]), np.array([3.0, 6.0])], [1, 3]), [2.5, 5.0])
    np.testing.assert_allclose(joined_mean([np.array([1.0, 2.0])], [7]), [1.0, 2.0])


def test_a_force_is_told_at_the_joint_that_it_presses_most_against_its_threshold():
    run = made()
    ext = np.zeros((N, 6))
    ext[(run.log.time > 3.0) & (run.log.time <= 5.0)] = [0.0, 9.0, -4.0, 0.0, 0.0, 0.0]
    run = replace(run, log=Log({**run.log.columns, "tau_ext_true": ext}))
    force = Push(link=4, force=(0.0, 3.0, -4.0), start=3.0, duration=2.0)
    for levels, joint, torque in ((None, 2, 9.0), (np.array([1.0, 9.0, 2.0, 1.0, 1.0, 1.0]), 3, 4.0)):
        judged = replace(run, setup=replace(run.setup, thresholds=levels))
        (told,) = summarise(judged, pushes=[force], settle=2.0)["pushes"]
        assert (told["joint"], told["torque_nm"], told["link"], told["force_n"]) == (joint, torque, 4, 5.0)
