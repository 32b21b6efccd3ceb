"""From recordings to motions in Nm: which gain, from where; what does not fit is said."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere import Robot
from tangere.errors import InvalidValue
from tangere.identification import Motion, moving_rms, prior_drive
from tangere.identification.touch_logs import too_heavy, touch_log
from tangere.logs.log import Log
from tangere.logs.recordings import Recording, recordings

N = 6
CONTACT_COLUMNS = "t,q,qd,current,target_current,target_moment"


@pytest.fixture(scope="module")
def robot() -> Robot:
    return tangere.robot("ur3e")


def _columns(robot: Robot, seconds: float = 8.0, rest: float = 2.0) -> dict[str, np.ndarray]:
    """A rest, then sines; torque with the prior's friction, and what a controller would say of it."""
    rng = np.random.default_rng(3)
    t = np.arange(0.0, seconds, 0.01)
    s = np.maximum(t - rest, 0.0)[:, None]
    rate, size = rng.uniform(0.5, 1.5, N), rng.uniform(0.3, 0.8, N)
    grow = 1.0 - np.exp(-(s**2))
    q = np.array([0.3, -1.1, 1.3, -1.2, -1.0, 0.4]) + grow * size * np.sin(rate * s)
    qd = np.gradient(q, t, axis=0)
    qdd = np.gradient(qd, t, axis=0)
    moment = robot.inverse_dynamics(q, qd, qdd)
    drive = prior_drive(robot)
    tau = moment + drive.friction(q, qd, robot.gravity_torque(q)) + drive.rotor_inertia * qdd
    return {"time": t, "q": q, "qd": qd, "tau": tau, "tau_cmd": moment}


def _recording(columns: dict[str, np.ndarray]) -> Recording:
    return Recording("a", Log(columns), ("the end of the file is cut off",), "0" * 64)


def _currents(robot: Robot, gain: np.ndarray) -> dict[str, np.ndarray]:
    columns = _columns(robot)
    tau = columns.pop("tau")
    still = np.abs(columns["qd"]).max(axis=1, keepdims=True) < 1e-3
    extra = np.where(still, 0.0, tau - columns["tau_cmd"])  # friction feed-forward while moving
    target = (columns["tau_cmd"] + extra) / gain
    return columns | {"actual_current": tau / gain, "target_current": target}


def test_torque_is_taken_as_it_is(robot: Robot) -> None:
    columns = _columns(robot)
    got = touch_log(_recording(columns), robot)
    np.testing.assert_array_equal(got.motion.tau, columns["tau"])
    assert got.source == ("torque",) * N
    assert got.torque
    assert np.all(np.isnan(got.gain))
    assert got.problems == ("the end of the file is cut off",)
    np.testing.assert_array_equal(got.target_moment, columns["tau_cmd"])
    assert got.q_des is None


def test_gains_come_from_the_log_then_the_arm(robot: Robot) -> None:
    """A controller whose gains are 1 % off the arm's data: those of loaded joints are read, others are the data's."""
    gain = 1.01 * robot.drives.gain
    columns = _currents(robot, gain)
    got = touch_log(_recording(columns), robot)
    assert got.source == ("arm", "log", "log", "log", "log", "arm")
    np.testing.assert_allclose(got.gain[1:5], gain[1:5], rtol=1e-6)
    np.testing.assert_array_equal(got.gain[[0, 5]], robot.drives.gain[[0, 5]])
    np.testing.assert_allclose(got.motion.tau, columns["actual_current"] * got.gain)
    assert not got.torque
    columns.pop("target_current")
    assert touch_log(_recording(columns), robot).source == ("arm",) * N


def test_a_given_gain_wins_and_a_wrong_one_is_said(robot: Robot) -> None:
    columns = _currents(robot, robot.drives.gain)
    got = touch_log(_recording(columns), robot, gain=2.0)
    np.testing.assert_array_equal(got.motion.tau, 2.0 * columns["actual_current"])
    assert got.source == ("given",) * N
    for wrong in (-1.0, [1.0, 2.0], np.nan):
        with pytest.raises(InvalidValue, match="gain"):
            touch_log(_recording(columns), robot, gain=wrong)


def test_an_arm_without_gains_gets_them_from_gravity_or_by_size() -> None:
    robot = tangere.robot("ur18")
    assert np.all(np.isnan(robot.drives.gain))
    gain = np.array([11.0, 13.0, 9.0, 8.0, 8.0, 8.0])
    columns = _currents(robot, gain)
    columns.pop("target_current")
    got = touch_log(_recording(columns), robot)
    assert got.source == ("assumed", "gravity", "gravity", "assumed", "assumed", "assumed")
    np.testing.assert_allclose(got.gain[1:3], gain[1:3], rtol=0.05)  # load friction is not in the fit
    assert any("joint 1, 4, 5, 6" in text for text in got.problems)
    assert 5.0 < got.gain[0] < 15.0


def test_gravity_free_torque_gets_its_gravity(robot: Robot) -> None:
    columns = _columns(robot)
    tau = columns.pop("tau")
    free = tau - robot.gravity_torque(columns["q"])
    got = touch_log(_recording(columns | {"actual_current_as_torque": free}), robot)
    np.testing.assert_allclose(got.motion.tau, tau, atol=1e-12)
    assert got.torque


def test_missing_velocities_are_differences(robot: Robot) -> None:
    columns = _columns(robot)
    qd = columns.pop("qd")
    got = touch_log(_recording(columns), robot)
    np.testing.assert_allclose(got.motion.qd, qd)
    assert any("no velocities" in text for text in got.problems)


def test_what_cannot_be_used_is_refused(robot: Robot) -> None:
    columns = _columns(robot)
    with pytest.raises(InvalidValue, match="no joint positions"):
        touch_log(_recording({k: v for k, v in columns.items() if k != "q"}), robot)
    with pytest.raises(InvalidValue, match="neither torque"):
        touch_log(_recording({k: v for k, v in columns.items() if k != "tau"}), robot)
    with pytest.raises(InvalidValue, match="3 joints"):
        touch_log(_recording(columns), tangere.robot("planar3r"))


def test_the_wrong_arm_is_said_and_the_right_one_named(robot: Robot) -> None:
    got = touch_log(_recording(_columns(robot)), tangere.robot("ur10e"))
    said = " / ".join(got.problems)
    assert "gravity does not fit ur10e" in said
    assert "it would fit" in said
    assert "ur3e" in said.partition("it would fit")[2]
    assert "target moment at rest does not fit ur10e" in said
    columns = _currents(robot, robot.drives.gain)
    columns.pop("target_current")  # a gain that is wrong for either arm: another arm is tried with its own
    currents = touch_log(_recording(columns), tangere.robot("ur10e"), gain=1.6 * robot.drives.gain)
    assert "ur3e" in " / ".join(currents.problems).partition("it would fit")[2]
    assert [found.kind for found in currents.misfit] == ["other arm"]


def test_currents_called_torques_and_the_reverse_are_said(robot: Robot) -> None:
    columns = _columns(robot)
    tau = columns["tau"]
    named = columns | {"tau": tau / robot.drives.gain}
    assert any("torques look like motor currents" in text for text in touch_log(_recording(named), robot).problems)
    columns.pop("tau")
    named = columns | {"actual_current": tau}
    assert any("currents look like torques" in text for text in touch_log(_recording(named), robot).problems)


def test_torques_called_currents_are_said_of_an_arm_that_stands(robot: Robot) -> None:
    """Gravity that does not change has no slope, but a size."""
    columns = _columns(robot, seconds=1.5)
    tau = columns.pop("tau")
    right = touch_log(_recording(columns | {"actual_current": tau / robot.drives.gain}), robot)
    wrong = touch_log(_recording(columns | {"actual_current": tau}), robot)
    assert right.misfit == ()
    assert len(wrong.misfit) == 1
    assert "currents look like torques" in wrong.misfit[0].sentence
    assert wrong.misfit[0] in wrong.findings


def test_stamps_in_milliseconds_are_refused(robot: Robot) -> None:
    columns = _columns(robot)
    with pytest.raises(InvalidValue, match=r"10 s apart .* look like milliseconds"):
        touch_log(_recording(columns | {"time": 1000.0 * columns["time"]}), robot)


def test_a_tool_that_no_arm_could_hold() -> None:
    """Rated payloads are held, three times as much stretched out is not (54 Nm / (9.8 m/s2 x 0.5 m) = 11 kg)."""
    for name, rated in (("ur3e", 3.0), ("ur5e", 5.0), ("ur10e", 12.5), ("ur16e", 16.0), ("ur20", 20.0)):
        arm = tangere.robot(name)
        assert too_heavy(arm, 1.2 * rated) == ()
        assert f"more than a {name} could hold" in too_heavy(arm, 5.0 * rated)[0].sentence
    assert too_heavy(tangere.robot("ur3e"), 23.0)


def test_a_payload_that_was_not_given_shows_in_the_targets(robot: Robot) -> None:
    loaded = tangere.robot("ur3e", payload=(2.5, (0.0, 0.0, 0.08)))
    columns = _columns(loaded)
    assert not [text for text in touch_log(_recording(columns), loaded).problems if "target" in text]
    assert any("payload" in text for text in touch_log(_recording(columns), robot).problems)


def test_the_payload_that_the_log_states(robot: Robot, data_dir: Path) -> None:
    (record,) = recordings(data_dir / "ur3e_rtde" / "L1L2.csv")
    got = touch_log(record, robot)
    assert got.payload is not None
    assert got.payload.mass == pytest.approx(1.07)
    loaded = tangere.robot("ur3e", payload=got.payload)
    with_it = moving_rms(Robot(loaded.model), prior_drive(loaded), [got.motion])
    without = moving_rms(Robot(robot.model), prior_drive(robot), [got.motion])
    assert np.all(with_it[1:4] < 0.7 * without[1:4])  # 1.22 1.73 1.30 Nm without, .71 .81 .10 with


def test_real_gains_of_a_ur10e(data_dir: Path) -> None:
    """Joints 2 to 5 from the log's own targets, within 0.1 % of what is known; 1 and 6 cannot be seen there."""
    robot = tangere.robot("ur10e")
    (static,) = recordings(data_dir / "ur10e_contacts" / "ur-static.csv", columns=CONTACT_COLUMNS)
    got = touch_log(static, robot)
    assert got.source == ("arm", "log", "log", "log", "log", "arm")
    np.testing.assert_allclose(got.gain[1:5], robot.drives.gain[1:5], rtol=1e-3)
    assert got.problems == ()


def test_priors_spread_covers_another_arm_of_the_type(data_dir: Path) -> None:
    """A UR3e that the prior was not made from, at 25 samples per second: what is left is of the size it states."""
    motions, robot = [], tangere.robot("ur3e", payload=(1.07, (0.0, 0.0, 0.058)))
    for name in ("L0L1", "L1L2", "L2L3", "L3L4", "L4L5"):
        motions.append(touch_log(recordings(data_dir / "ur3e_rtde" / f"{name}.csv")[0], robot).motion)
    drive = prior_drive(robot)
    left = moving_rms(Robot(robot.model, drive.rotor_inertia), drive, motions)
    assert np.all(left[:5] < 2.0 * drive.spread[:5])
    assert np.all(left[:5] > 0.1 * drive.spread[:5])  # nor is it an empty promise


def test_every_arm_has_a_prior() -> None:
    for name in tangere.models():
        robot = tangere.robot(name)
        drive = prior_drive(robot)
        assert np.all(drive.spread > 0.0)
        assert np.all(drive.stiction >= drive.coulomb)
        assert np.all(drive.rotor_inertia > 0.0)
    seen, scaled = prior_drive(tangere.robot("ur10e")), prior_drive(tangere.robot("ur16e"))
    assert np.all(scaled.spread / scaled.coulomb > 1.5 * seen.spread / seen.coulomb)  # less known, and said so
    np.testing.assert_array_equal(seen.coulomb, tangere.robot("ur10e").drives.coulomb)


def test_the_model_goes_before_the_log(robot: Robot) -> None:
    """With a model its gains are used, so that its friction keeps its scale; a log that differs is said."""
    columns = _currents(robot, robot.drives.gain)
    from tangere.identification import identify

    base = touch_log(_recording(columns), robot)
    model = identify(robot, [Motion(base.motion.time, base.motion.q, base.motion.qd, base.motion.tau)], inertial="none")
    model = dataclasses.replace(model, drive=dataclasses.replace(model.drive, gain=1.05 * robot.drives.gain))
    got = touch_log(_recording(columns), robot, model=model)
    assert got.source == ("model",) * N
    np.testing.assert_array_equal(got.gain, model.drive.gain)
    assert sum("targets say" in text for text in got.problems) == 4


def test_gains_that_no_drive_has_are_said(data_dir: Path) -> None:
    """Currents of a UR10e taken for those of an arm whose gains nobody knows: gravity asks for thrice what is usual.

    Where gains are known, what gravity makes of them is said.
    """
    (log,) = recordings(data_dir / "ur10e_contacts" / "link4.csv", columns="t,q,qd,current,...")
    for name, words in (("ur3", "6.68 instead of 1"), ("ur20", "hardly have"), ("ur5e", "fits ur12e, ur10e better")):
        assert any(words in text for text in touch_log(log, tangere.robot(name)).problems)
    assert touch_log(log, tangere.robot("ur10e")).problems == ()
