"""Smoothed logs: the filter, that it is found where there is one and only there, and friction's steps given back."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere import Robot
from tangere.identification import IdentifiedModel, Motion, identify, moving_rms, prior_drive, read_model
from tangere.identification.free_run import free_run
from tangere.identification.recorder import smooth_log, smoothing, unsmoothed
from tangere.identification.samples import ORDER, TERMS, silent_above, smoothed, was_smoothed, windows
from tangere.observe.drive_model import DriveModel

N = 6
STEP = 0.008  # s
CUTOFF = 2.3  # Hz


def _arm() -> tuple[Robot, DriveModel]:
    base = tangere.robot("ur3e")
    zero = np.zeros(N)
    drive = dataclasses.replace(prior_drive(base), quadratic=zero, load=zero)
    return Robot(base.model, drive.rotor_inertia), drive


def _motion(seed: int, seconds: float = 16.0) -> Motion:
    """Slow sines, the torque that they need, and the noise of a recorder on speed and torque."""
    robot, drive = _arm()
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, STEP)[:, None]
    q, qd, qdd = np.tile([0.2, -1.2, 1.4, -0.5, 0.7, 0.1], (len(t), 1)), *np.zeros((2, len(t), N))
    for _ in range(3):
        w, p, a = rng.uniform(0.5, 1.8, N), rng.uniform(0.0, 6.0, N), rng.uniform(0.1, 0.4, N)
        q = q + a * np.sin(w * t + p)
        qd += a * w * np.cos(w * t + p)
        qdd -= a * w**2 * np.sin(w * t + p)
    tau = robot.inverse_dynamics(q, qd, qdd) + drive.friction(q, qd, robot.gravity_torque(q))
    tau += 0.05 * rng.normal(size=q.shape) * drive.coulomb
    return Motion(t[:, 0], q, qd + 1e-3 * rng.normal(size=qd.shape), tau, "sines")


def _smooth(motion: Motion, cutoff: float = CUTOFF) -> Motion:
    """As people do it: scipy's filter, forwards and backwards, over all columns."""
    signal = pytest.importorskip("scipy.signal")
    sections = signal.butter(ORDER, cutoff, fs=1.0 / STEP, output="sos")
    columns = {name: signal.sosfiltfilt(sections, getattr(motion, name), axis=0) for name in ("q", "qd", "tau")}
    return dataclasses.replace(motion, **columns)


@pytest.fixture(scope="module")
def logs() -> tuple[Motion, Motion]:
    raw = _motion(1)
    return raw, _smooth(raw)


@pytest.fixture(scope="module")
def model(logs: tuple[Motion, Motion]) -> IdentifiedModel:
    return identify(tangere.robot("ur3e"), [logs[1]], inertial="none")


def test_the_filter_is_the_one_that_people_use(logs: tuple[Motion, Motion]) -> None:
    raw, smooth = logs
    inner = slice(250, -250)  # 2 s from the ends, which are continued over other lengths
    ours = smoothed(raw.tau, STEP, CUTOFF)
    # the bilinear transform bends frequencies by (pi f STEP)^2 / 3 = 0.1 % at the cutoff
    assert np.max(np.abs(ours - smooth.tau)[inner]) < 2e-3 * np.max(np.abs(smooth.tau - raw.tau))
    stacked = smoothed(np.stack([raw.tau, raw.q], axis=-1), STEP, CUTOFF)
    np.testing.assert_allclose(stacked[..., 0], ours, rtol=0.0, atol=1e-12)


def test_the_filter_halves_its_cutoff_without_phase_and_keeps_straight_lines() -> None:
    t = np.arange(0.0, 20.0, STEP)
    middle = slice(1000, 1500)
    wave = np.sin(2.0 * np.pi * CUTOFF * t)
    # what is left of the sine's ends, continued 3 periods: 1e-4
    np.testing.assert_allclose(smoothed(wave, STEP, CUTOFF)[middle], 0.5 * wave[middle], atol=1e-3)
    # a step of 45 from the end to the start rings on for 3 periods, to 1e-4 of it; ends held would be off by 0.1
    np.testing.assert_allclose(smoothed(3.0 + 2.0 * t, STEP, CUTOFF), 3.0 + 2.0 * t, atol=0.01)


def test_silence(logs: tuple[Motion, Motion]) -> None:
    raw, smooth = logs
    half = 0.5 / STEP
    assert silent_above(raw.time, raw.tau) > 0.99 * half
    assert 1.5 * CUTOFF < silent_above(smooth.time, smooth.tau) < 4.0 * CUTOFF
    assert silent_above(smooth.time, np.column_stack([smooth.tau, raw.tau[:, 0]])) > 0.99 * half  # any column
    still = np.column_stack([smooth.tau, np.zeros(len(smooth.time))])
    assert silent_above(smooth.time, still) == silent_above(smooth.time, smooth.tau)
    late = smooth.time + np.where(np.arange(len(smooth.time)) == 700, 0.3 * STEP, 0.0)
    bad = np.where(np.arange(len(smooth.time))[:, None] == 700, np.nan, smooth.tau)
    for time, values in ((late, smooth.tau), (smooth.time, bad), (smooth.time, 0.0 * smooth.tau)):
        assert silent_above(time, values) == pytest.approx(half, rel=0.01)
    assert silent_above(smooth.time[::-1], smooth.tau) == np.inf
    assert silent_above(np.zeros(50), smooth.tau[:50]) == np.inf
    assert silent_above(smooth.time[:1], smooth.tau[:1]) == np.inf


@pytest.mark.parametrize("cutoff", [1.2, 2.3, 4.5])
def test_the_cutoff_is_found(cutoff: float) -> None:
    smooth = _smooth(_motion(2), cutoff)
    # found within 3 %: friction's steps are taken from speeds that were smoothed as well
    assert smoothing(tangere.robot("ur3e"), [smooth]) == pytest.approx(cutoff, rel=0.06)


def test_no_filter_is_made_up(logs: tuple[Motion, Motion]) -> None:
    base = tangere.robot("ur3e")
    raw, smooth = logs
    assert smoothing(base, [raw]) == 0.0
    assert smoothing(base, [dataclasses.replace(smooth, qd=raw.qd)]) == 0.0  # only the torque is smooth
    assert smoothing(base, [dataclasses.replace(smooth, tau=raw.tau)]) == 0.0  # only the motion is
    robot, _ = _arm()
    qdd = np.gradient(smooth.qd, STEP, axis=0)
    rigid = dataclasses.replace(smooth, tau=robot.inverse_dynamics(smooth.q, smooth.qd, qdd))
    assert smoothing(base, [rigid]) == 0.0  # smooth, but there is no friction whose steps could be missing
    short = Motion(smooth.time[:500], smooth.q[:500], smooth.qd[:500], smooth.tau[:500])
    assert smoothing(base, [short]) == 0.0
    still = dataclasses.replace(smooth, qd=1e-3 * smooth.qd)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert smoothing(base, [still]) == 0.0


def test_a_filter_that_delays_is_another(logs: tuple[Motion, Motion]) -> None:
    signal = pytest.importorskip("scipy.signal")
    sections = signal.butter(2 * ORDER, CUTOFF, fs=1.0 / STEP, output="sos")
    raw, smooth = logs
    late = dataclasses.replace(smooth, tau=signal.sosfilt(sections, raw.tau, axis=0))
    assert smoothing(tangere.robot("ur3e"), [late]) == 0.0


def test_steps_of_friction_are_given_back(logs: tuple[Motion, Motion]) -> None:
    raw, smooth = logs
    robot, drive = _arm()
    known = dataclasses.replace(drive, smoothing=CUTOFF)
    back = unsmoothed(robot, known, smooth)
    clean = smoothed(raw.tau - drive.friction(raw.q, raw.qd, 0.0 * raw.q), STEP, CUTOFF)
    clean += drive.friction(raw.q, raw.qd, 0.0 * raw.q)
    inner = slice(125, -125)
    moving = np.abs(raw.qd[inner]) > 0.05  # rad/s: a step may fall a sample apart, as the speeds were smoothed too
    off, lost = (
        np.sqrt(np.mean(np.where(moving, (tau - clean)[inner], 0.0) ** 2, axis=0)) for tau in (back.tau, smooth.tau)
    )
    assert np.all(off < 0.1 * lost)  # found: 0.015 to 0.053
    np.testing.assert_array_equal(back.qd, smooth.qd)
    delayed = unsmoothed(robot, dataclasses.replace(known, delay=5 * STEP), smooth)
    np.testing.assert_allclose((delayed.tau - smooth.tau)[5:], (back.tau - smooth.tau)[:-5], atol=1e-9)
    linear = dataclasses.replace(known, coulomb=np.zeros(N), offset=np.ones(N))  # has been smoothed with the speed
    np.testing.assert_allclose(unsmoothed(robot, linear, smooth).tau, smooth.tau, rtol=0.0, atol=1e-9)


def test_other_logs_and_drives_are_left_alone(logs: tuple[Motion, Motion]) -> None:
    raw, smooth = logs
    robot, drive = _arm()
    known = dataclasses.replace(drive, smoothing=CUTOFF)
    assert unsmoothed(robot, drive, smooth) is smooth
    assert unsmoothed(robot, known, raw) is raw
    hole = dataclasses.replace(smooth, q=np.where(np.arange(len(smooth.time))[:, None] == 9, np.nan, smooth.q))
    assert unsmoothed(robot, known, hole) is hole
    pushed = dataclasses.replace(smooth, tau=smooth.tau + 5.0 * (smooth.time > 7.0)[:, None])  # a step, added later
    assert was_smoothed(pushed, CUTOFF)
    assert not was_smoothed(smooth, 0.0)
    plain, alike = (windows(robot, [raw], smoothing=cutoff) for cutoff in (0.0, CUTOFF))
    np.testing.assert_array_equal(plain.F, alike.F)


def test_only_what_is_not_linear_in_the_motion_is_smoothed_again(logs: tuple[Motion, Motion]) -> None:
    robot, _ = _arm()
    plain, alike = (windows(robot, [logs[1]], smoothing=cutoff) for cutoff in (0.0, CUTOFF))
    for k, name in enumerate(TERMS):
        linear = name in ("viscous", "offset", "rotor_inertia")
        assert np.array_equal(plain.F[..., k], alike.F[..., k]) == linear
    np.testing.assert_array_equal(plain.tau, alike.tau)


def test_identification_of_a_smoothed_log(logs: tuple[Motion, Motion], model: IdentifiedModel) -> None:
    """The drive that made the log is found as if it had not been smoothed, and the residual is that of its noise."""
    robot, drive = _arm()
    assert model.drive.smoothing == pytest.approx(CUTOFF, rel=0.06)
    assert smooth_log(model.drive.smoothing) in model.findings
    assert "smoothed at 2.3 Hz" in smooth_log(2.31).sentence
    assert model.drive.orders == ()
    # within 0.6 %; 2.5 % where only the first fit knows of the smoothing
    np.testing.assert_allclose(model.drive.coulomb, drive.coulomb, rtol=0.01)
    unseen = _smooth(_motion(7))
    given, kept = (
        moving_rms(model.robot(robot), dataclasses.replace(model.drive, smoothing=cutoff), [unseen])
        for cutoff in (model.drive.smoothing, 0.0)
    )
    assert np.all(given < 0.25 * kept)  # found: 0.07 to 0.17
    run, rounded = (
        free_run(model.robot(robot), dataclasses.replace(model.drive, smoothing=cutoff), [unseen]).median
        for cutoff in (model.drive.smoothing, 0.0)
    )
    assert np.all(run < rounded)


def test_the_raw_log_says_nothing_of_it(logs: tuple[Motion, Motion]) -> None:
    model = identify(tangere.robot("ur3e"), [logs[0]], inertial="none")
    assert model.drive.smoothing == 0.0
    assert not any("smoothed" in found.sentence for found in model.findings)


def test_it_is_in_the_model_file(model: IdentifiedModel, tmp_path: Path) -> None:
    model.write(tmp_path / "model.toml")
    assert read_model(tmp_path / "model.toml").drive.smoothing == model.drive.smoothing
    for wrong in (-1.0, np.nan, np.inf):
        with pytest.raises(tangere.InvalidValue, match="smoothing"):
            dataclasses.replace(model.drive, smoothing=wrong)
