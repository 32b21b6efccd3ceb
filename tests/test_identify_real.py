"""Identification on recordings of real arms: gains, and torque on logs that were not used."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere import Robot
from tangere.identification import Motion, drive_gains, identify, moving_rms
from tangere.identification.free_run import free_run, twin
from tangere.identification.identify_logs import identification
from tangere.identification.identify_motions import judged
from tangere.logs.recordings import Recording, recordings

CONTACT_COLUMNS = "t,q,qd,current,target_current,target_moment"


def _motion(recording: Recording, gain: np.ndarray | None = None, rows: slice = slice(None)) -> Motion:
    log = recording.log
    tau = log["tau"] if gain is None else log["actual_current"] * gain
    return Motion(log.time[rows], log["q"][rows], log["qd"][rows], tau[rows], recording.name, recording.digest)


def test_gains_of_a_ur10e_from_its_own_targets(data_dir: Path) -> None:
    (static,) = recordings(data_dir / "ur10e_contacts" / "ur-static.csv", columns=CONTACT_COLUMNS)
    got = drive_gains(static.log["target_current"], static.log["tau_cmd"], static.log["qd"])
    known = tangere.robot("ur10e").drives.gain
    assert got.observable == (False, True, True, True, True, False)
    np.testing.assert_allclose(got.gain[1:5], known[1:5], rtol=0.01)
    assert np.all(np.abs(got.gain[1:5] - known[1:5]) < 3.0 * got.sigma[1:5] + 5e-4)  # known is printed to 3 decimals
    assert "carries no load" in got.reasons[0]
    np.testing.assert_array_equal(got.filled(known)[[0, 5]], known[[0, 5]])


def test_gains_do_not_pretend_where_digits_are_missing(data_dir: Path) -> None:
    """The same arm upright, recorded with four decimals: wrists that carry almost nothing tell nothing."""
    (free,) = recordings(data_dir / "ur10e_contacts" / "no_torque.csv", columns=CONTACT_COLUMNS)
    got = drive_gains(free.log["target_current"], free.log["tau_cmd"], free.log["qd"])
    assert got.observable == (False, True, True, False, False, False)
    known = tangere.robot("ur10e").drives.gain
    assert np.all(np.abs(got.gain[1:3] - known[1:3]) < 2.0 * got.sigma[1:3])


def test_gains_of_made_up_targets(rng: np.random.Generator) -> None:
    """Ten poses, each held for 60 samples; then a motion, with friction in the current."""
    true = np.array([10.0, 5.0, 3.0])
    loads = rng.choice([-1.0, 1.0], (10, 3)) * rng.uniform(0.5, 1.5, (10, 3)) * np.array([20.0, 5.0, 0.0])
    qd = np.tile(np.repeat([[0.0], [0.1]], [60, 10], axis=0), (10, 3))  # on the way to the next pose for 10 samples
    moment = np.repeat(loads, 70, axis=0)
    current = moment / true + 20.0 * qd
    got = drive_gains(current, moment, qd)
    assert got.observable == (True, True, False)
    np.testing.assert_allclose(got.gain[:2], true[:2], rtol=1e-9)
    moving = drive_gains(current, moment, np.full_like(qd, 0.1))
    assert not any(moving.observable)
    assert "never rests" in moving.reasons[0]
    scattered = drive_gains(current + np.repeat(rng.normal(size=(10, 3)), 70, axis=0), moment, qd)
    assert "scatters" in scattered.reasons[1]
    guided = drive_gains(current, moment * np.linspace(1.0, 9.0, len(qd))[:, None], qd)
    assert "targets change while the arm rests" in guided.reasons[0]
    assert "opposite" in drive_gains(-current, moment, qd).reasons[0]
    with pytest.raises(tangere.InvalidValue, match="one shape"):
        drive_gains(current, moment[:-1], qd)


def _without_friction(robot: Robot) -> Robot:
    """The arm as its data sheet has it: nothing is known of its friction and rotors."""
    unknown = np.full(robot.dof, np.nan)
    drives = dataclasses.replace(robot.drives, rotor_inertia=unknown, coulomb=unknown, viscous=unknown)
    return Robot(dataclasses.replace(robot.model, drives=drives))


def test_ur10_first_half_predicts_the_second(data_dir: Path) -> None:
    (record,) = recordings(data_dir / "ur10_excitation" / "ur10_exciting_trajectory.csv")
    half = len(record.log) // 2
    first, second = _motion(record, rows=slice(0, half)), _motion(record, rows=slice(half, None))
    robot = tangere.robot("ur10")
    model = identify(robot, [first], held_out=[second])
    # what the project set itself for this log; reached: 1.00 1.51 .74 .43 .25 .75
    assert np.all(model.after <= [3.1, 2.7, 1.8, 0.46, 0.30, 0.85])
    assert np.all(judged(model, _without_friction(robot), [second]).before > 3.0 * model.after)
    assert np.all(model.before > 1.5 * model.after)  # with the friction that was published of another UR10
    assert 1.7 < model.drive.smoothing < 1.9  # Hz; nothing is left above 4 Hz, and friction's steps ring
    assert any("smoothed at 1.8 Hz" in found.sentence for found in model.findings)
    assert model.drive.delay == 0.0  # the filter ran both ways


def test_ur10_twin_runs_along_the_second_half(data_dir: Path) -> None:
    """Measured torque in, 200 ms of free running on unseen motion; a first estimate was 6 5 12 21 8 19 mrad."""
    (record,) = recordings(data_dir / "ur10_excitation" / "ur10_exciting_trajectory.csv")
    half, robot = len(record.log) // 2, tangere.robot("ur10")
    model = identify(robot, [_motion(record, rows=slice(0, half))])
    second = [_motion(record, rows=slice(half, None))]
    runs = twin(model, robot, second)
    whole = 1e3 * runs["identified"].median
    # reached 1.8 2.0 3.9 5.6 2.9 4.9, less than half of the first estimate. The drives that explain torque best give
    # 2.0 1.6 3.0 18 8.2 13: wrists without a rotor. 10 % above, for another order of rounding.
    assert np.all(whole < 1.1 * np.array([1.84, 2.04, 3.95, 5.65, 2.92, 4.94]))
    # with the torque as it was smoothed, nothing given back: 2.9 2.1 4.3 5.9 3.1 4.8
    assert model.twin is not None
    arm = tangere.Robot(model.model(robot.model), model.twin.rotor_inertia)
    plain = 1e3 * free_run(arm, dataclasses.replace(model.twin, smoothing=0.0), second).median
    assert np.all(plain < [3.0, 2.5, 6.0, 10.5, 4.0, 9.5])
    assert np.all(whole[3:] < 0.5 * 1e3 * runs["torque fit"].median[3:])
    assert np.all(1e3 * runs["without friction"].median > 5.0 * whole)
    assert np.all(1e3 * runs["without rotor inertia"].median > 5.0 * whole)


@pytest.fixture(scope="module")
def ur3e_runs(data_dir: Path) -> list[Motion]:
    """The 40 free runs, with the gains of the arm's data."""
    runs = recordings(data_dir / "ur3e_runs" / "ur3e_runs_500Hz.npz", rate=500.0)[19:]  # the first 19 end in a stop
    assert len(runs) == 40
    return [_motion(run, tangere.robot("ur3e").drives.gain) for run in runs]


@pytest.mark.parametrize("fold", [0])
def test_ur3e_ten_runs_from_thirty(ur3e_runs: list[Motion], fold: int) -> None:
    """One fold of four over the free runs; gravity corrects the gains of joints 2 to 5."""
    robot = tangere.robot("ur3e")
    used = [m for k, m in enumerate(ur3e_runs) if k % 4 != fold]
    model = identify(robot, used, gain=robot.drives.gain, refine_gains=True)
    unseen = [dataclasses.replace(m, tau=m.tau * model.scale) for m in ur3e_runs[fold::4]]
    after = moving_rms(model.robot(robot), model.drive, unseen)
    # reached .207 .222 .125 .059 .037 .031. 5 % above, for another order of rounding. With the gains as they are
    # joint 2 has .592.
    assert np.all(after <= 1.05 * np.array([0.207, 0.222, 0.125, 0.0586, 0.0366, 0.0307]))
    following = moving_rms(model.robot(robot), model.drive, unseen, following=True)
    assert np.all(following <= [0.19, 0.58, 0.25, 0.08, 0.085, 0.03])  # what the project set itself for these runs
    assert np.all(following < after)
    assert model.drive.film[0] > 0.5  # a quarter of these runs lets joint 1 crawl: its film shows
    assert np.all(np.abs(model.scale - 1.0) < 0.1)
    assert model.scale[0] == model.scale[5] == 1.0  # no gravity, nothing to compare with
    np.testing.assert_allclose(model.drive.gain, robot.drives.gain * model.scale)
    assert np.abs(model.drive.ripple[3]).max() > 0.05  # teeth of the gear, the strongest in the first wrist
    assert len(model.logs) == 30
    assert all(len(digest) == 64 for _, digest in model.logs)


def test_another_ur3e_from_its_own_short_records(data_dir: Path) -> None:
    """8 s at 25 samples per second, with the payload that the records state: judged on two that were not used."""
    files = [str(data_dir / "ur3e_rtde" / f"{name}.csv") for name in ("L0L1", "L1L2", "L2L3", "L3L4", "L4L5")]
    done = identification(_without_friction(tangere.robot("ur3e")), files, hold_out="L0L1.csv,L3L4.csv")
    assert done.payload_from == "log"
    assert done.model.payload is not None
    assert done.model.payload.mass == pytest.approx(1.07)
    assert np.all(done.model.after[:5] < 0.4 * done.model.before[:5])
    assert any("joint 6 hardly moves" in found.sentence for found in done.model.findings)
    known = identification(tangere.robot("ur3e"), files, hold_out="L0L1.csv,L3L4.csv").model
    assert np.all(known.after[:5] < known.before[:5])  # better than the friction of another UR3e, too
