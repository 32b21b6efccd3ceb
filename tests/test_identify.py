"""Identification: a simulated arm must be found again; a real one must be predicted on logs that were not used."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere import Robot
from tangere.identification import IdentifiedModel, Motion, identify, momentum_residual, moving_rms, read_model
from tangere.model.model import Payload
from tangere.observe.drive_model import DriveModel
from tangere.observe.inertial import is_physical, link_of, parameters_of, parameters_of_link
from tangere.observe.momentum import MomentumObserver
from tangere.types import State

N = 6
COULOMB = np.array([4.0, 4.5, 2.0, 0.8, 1.1, 0.7])
VISCOUS = np.array([4.0, 5.0, 2.5, 1.3, 1.2, 1.0])
ROTOR = np.array([0.6, 0.6, 0.3, 0.1, 0.1, 0.1])


def _drive(orders: tuple[int, ...] = (), ripple: np.ndarray | None = None) -> DriveModel:
    zero = np.zeros(N)
    return DriveModel(
        gain=np.ones(N), rotor_inertia=ROTOR, coulomb=COULOMB, viscous=VISCOUS, offset=0.1 * COULOMB, quadratic=zero,
        load=zero, ripple=np.zeros((N, 0)) if ripple is None else ripple, stiction=COULOMB, spread=zero,
        mean_load=zero, orders=orders,
    )  # fmt: skip


def _motion(
    robot: Robot, drive: DriveModel, seed: int, seconds: float = 12.0, noise: float = 0.02, speed: float = 1.0
) -> Motion:
    """A sum of sines per joint, and the torque that moves the arm so; noise [Nm] per sample."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 0.002)
    rate = speed * rng.uniform(0.4, 1.6, (4, N))
    phase = rng.uniform(0.0, 2.0 * np.pi, (4, N))
    size = rng.uniform(0.1, 0.35, (4, N))
    angle = t[:, None, None] * rate + phase
    q = rng.uniform(-1.5, 1.5, N) + (size * np.sin(angle)).sum(axis=1)
    qd = (size * rate * np.cos(angle)).sum(axis=1)
    qdd = -(size * rate**2 * np.sin(angle)).sum(axis=1)
    tau = robot.inverse_dynamics(q, qd, qdd) + drive.friction(q, qd, robot.gravity_torque(q))
    return Motion(t, q, qd, tau + noise * rng.normal(size=q.shape), name=f"run {seed}", digest=f"{seed:064x}")


@pytest.fixture(scope="module")
def base() -> Robot:
    """A UR3e as its data sheet has it, with gains: of friction and rotors nothing is known."""
    model, unknown = tangere.robot("ur3e").model, np.full(N, np.nan)
    drives = dataclasses.replace(model.drives, rotor_inertia=unknown, coulomb=unknown, viscous=unknown)
    return Robot(dataclasses.replace(model, drives=drives))


@pytest.fixture(scope="module")
def true(base: Robot) -> Robot:
    """An arm whose links are not those of the data sheet: heavier by 10 to 20 %, and with a tool."""
    rng = np.random.default_rng(5)
    links = [dataclasses.replace(link, mass=link.mass * rng.uniform(1.1, 1.2)) for link in base.model.links]
    tool = Payload(0.6, np.array([0.01, 0.0, 0.05]), 0.0008 * np.eye(3))
    return Robot(dataclasses.replace(base.model, links=tuple(links), payload=tool), ROTOR)


@pytest.fixture(scope="module")
def found(base: Robot, true: Robot) -> IdentifiedModel:
    runs = [_motion(true, _drive(), seed) for seed in (1, 2, 3)]
    return identify(base, runs, held_out=[_motion(true, _drive(), 9, noise=0.0)])


def test_finds_the_friction_of_a_simulated_arm(found: IdentifiedModel) -> None:
    # 36 s of data with 0.02 Nm of noise tell these to a few per mille; 3 % leaves room for the prior's pull
    np.testing.assert_allclose(found.drive.coulomb, COULOMB, rtol=0.03)
    np.testing.assert_allclose(found.drive.viscous, VISCOUS, rtol=0.03)
    assert found.findings == ()
    assert all(found.moved)


def test_predicts_a_motion_that_it_has_not_seen(found: IdentifiedModel) -> None:
    """Where the data sheet leaves Newton metres, the identified model leaves hundredths."""
    assert found.unseen
    assert np.all(found.before > 0.7)
    assert np.all(found.after < 0.05)  # the noise of the training logs is 0.02 Nm per sample


def test_states_its_uncertainty(found: IdentifiedModel) -> None:
    names = list(found.parameters)
    at = [names.index(f"joint {j + 1} coulomb") for j in range(N)]
    off = np.abs(found.values[at] - COULOMB) / found.sigma[at]
    assert np.all(found.sigma[at] > 0.0)
    assert np.all(off < 8.0)  # the prior's pull and the smooth sign are no noise; 80 would mean a wrong covariance
    assert np.linalg.eigvalsh(found.covariance)[0] > -1e-9
    told = dict(zip(names, found.told, strict=True))
    assert told["joint 2 coulomb"]
    assert not told["link 1 m"]  # the mass of the first link moves no joint at all
    assert found.excitation.base == 36  # the count that the literature gives for this structure on a table
    assert 10 < found.excitation.told <= 36


def test_links_can_exist_even_where_plain_least_squares_cannot(base: Robot, true: Robot) -> None:
    """Short, noisy logs: the answer of plain least squares has negative masses, ours has not."""
    run = _motion(true, _drive(), 4, seconds=3.0, noise=1.0)
    model = identify(base, [run])
    pi = np.concatenate([parameters_of_link(link) for link in model.links])
    assert is_physical(pi)
    assert np.all(model.drive.coulomb > 0.0)
    assert np.all(model.drive.rotor_inertia > 0.0)
    qdd = np.gradient(run.qd, run.time, axis=0)
    plain, *_ = np.linalg.lstsq(base.regressor(run.q, run.qd, qdd).reshape(-1, 60), run.tau.ravel(), rcond=None)
    assert not is_physical(plain)
    model.robot(base)  # and the library accepts it


def test_contacts_in_the_logs_do_little_harm(base: Robot, true: Robot, found: IdentifiedModel) -> None:
    """Three pushes of 15 Nm within 36 s, as plain least squares would take for friction."""
    runs = [_motion(true, _drive(), seed) for seed in (1, 2, 3)]
    for run in runs:
        run.tau[2000:2300] += np.array([15.0, 15.0, 8.0, 4.0, 4.0, 4.0])
    pushed = identify(base, runs)
    np.testing.assert_allclose(pushed.drive.coulomb, COULOMB, rtol=0.08)  # least squares alone errs by 10 to 30 %
    assert np.abs(pushed.drive.offset - 0.1 * COULOMB).max() < 0.15  # of a mean push of 0.4 to 1.5 Nm


def test_finds_ripple_where_there_is_some_and_none_where_there_is_none(base: Robot, true: Robot) -> None:
    amplitude = np.zeros((N, 2))
    amplitude[3] = (0.05, -0.03)
    loaded = np.zeros((N, 2))
    loaded[1] = (0.02, 0.01)  # of the load, some Nm
    rubbed = np.zeros((N, 2))
    rubbed[4] = (0.03, 0.06)
    drive = dataclasses.replace(_drive((101,), amplitude), ripple_load=loaded, ripple_drag=rubbed)
    found = identify(base, [_motion(true, drive, seed, 31.0) for seed in (1, 2)]).drive
    assert found.orders == (101,)  # orders without support are left out, not merely small
    kinds = (found.ripple, found.ripple_load, found.ripple_drag)
    for own, kind, joint in zip((amplitude, loaded, rubbed), kinds, (3, 1, 4), strict=True):
        np.testing.assert_allclose(kind[joint], own[joint], atol=0.005)
        assert np.all(np.delete(kind, joint, axis=0) == 0.0)
    short = identify(base, [_motion(true, drive, 1)]).drive  # seconds do not tell what load and direction add
    assert not np.any(short.ripple_load)
    assert not np.any(short.ripple_drag)
    assert np.abs(short.ripple[3]).max() > 0.03


def test_finds_how_late_the_torque_is(base: Robot, true: Robot, found: IdentifiedModel) -> None:
    """Two samples of 2 ms. In slow sines a lag hides behind other parameters; these are four times as fast."""
    run = _motion(true, _drive(), 1, speed=4.0)
    late = dataclasses.replace(run, tau=np.concatenate([run.tau[[0, 0]], run.tau[:-2]]))
    # a tenth of a sample: the parabola through three whole samples is not the cost itself
    assert identify(base, [late]).drive.delay == pytest.approx(0.004, abs=0.0002)
    assert identify(base, [run]).drive.delay == 0.0
    assert found.drive.delay == 0.0


def test_gravity_corrects_gains_that_contradict_one_another(base: Robot) -> None:
    """An arm of the data sheet's weight whose motors are 6 % stronger and weaker than their controller believes."""
    factor = np.array([1.0, 0.97, 1.06, 1.0, 1.0, 1.0])
    arm = Robot(base.model, ROTOR)
    logs = [_motion(arm, _drive(), seed, noise=0.2) for seed in (1, 2, 3)]
    wrong = [dataclasses.replace(run, tau=run.tau / factor) for run in logs]
    gain = base.drives.gain / factor
    unseen = _motion(arm, _drive(), 9, noise=0.0)
    held = [dataclasses.replace(unseen, tau=unseen.tau / factor)]
    plain = identify(base, wrong, gain=gain, held_out=held)
    model = identify(base, wrong, gain=gain, held_out=held, refine_gains=True)
    # relative to joint 2: the scale of all together is the data sheet's, known to the prior's 30 % of a link only
    np.testing.assert_allclose(model.scale[2] / model.scale[1], factor[2] / factor[1], rtol=0.02)
    np.testing.assert_allclose(model.drive.gain, gain * model.scale)
    assert np.all(plain.scale == 1.0)
    # links that stay near the data sheet let one joint bear the contradiction: .016 and .43 Nm with gains as they are
    assert model.after[2] < 0.2 * plain.after[2]
    assert model.after[1] < plain.after[1]
    honest = identify(base, logs, gain=base.drives.gain, refine_gains=True)
    np.testing.assert_allclose(honest.scale, 1.0, atol=0.01)  # and right ones are left alone


def test_finds_a_payload(base: Robot) -> None:
    payload = Payload(2.0, np.array([0.02, -0.03, 0.08]))
    loaded = Robot(dataclasses.replace(base.model, payload=payload), ROTOR)
    model = identify(base, [_motion(loaded, _drive(), seed) for seed in (1, 2)], inertial="payload")
    assert model.payload is not None
    assert model.payload.mass == pytest.approx(2.0, rel=0.01)
    np.testing.assert_allclose(model.payload.com, payload.com, atol=0.003)
    assert model.links == base.model.links


def test_a_known_payload_is_not_taken_for_the_last_link(base: Robot) -> None:
    payload = Payload(2.0, np.array([0.02, -0.03, 0.08]))
    loaded = Robot(dataclasses.replace(base.model, payload=payload), ROTOR)
    model = identify(Robot(loaded.model), [_motion(loaded, _drive(), 1)])
    assert model.payload is payload
    assert model.links[-1].mass < 1.0  # 0.261 in the data sheet


def test_inertial_parameters_are_those_of_the_regressor(true: Robot, rng: np.random.Generator) -> None:
    plain = Robot(true.model)
    q, qd, qdd = rng.normal(size=(3, 20, N))
    want = plain.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(plain.regressor(q, qd, qdd) @ parameters_of(true.model), want, atol=1e-10)
    link = true.model.links[1]
    back = link_of(parameters_of_link(link), link.name)
    np.testing.assert_allclose(back.com, link.com, atol=1e-15)
    np.testing.assert_allclose(back.inertia, link.inertia, atol=1e-15)


def test_batch_residual_is_that_of_the_observer(true: Robot) -> None:
    """Two ways of one equation: momentum step by step, and midpoints all at once."""
    drive = dataclasses.replace(_drive(), mean_load=np.zeros(N))
    run = _motion(true, drive, 7, seconds=4.0, noise=0.0)
    tau = run.tau.copy()
    tau[1000:] -= np.array([3.0, 6.0, 3.0, 1.0, 1.0, 1.0])  # a push from 2 s on
    run = dataclasses.replace(run, tau=tau)
    batch = momentum_residual(true, drive, run)
    observer = MomentumObserver(true, 50.0, drive)
    observer.reset(State(0.0, 0.002, run.q[0], run.qd[0], run.tau[0]))
    for k in range(1, len(tau)):
        mean = 0.5 * (run.tau[k] + run.tau[k - 1])
        last = observer.update(State(float(run.time[k]), 0.002, run.q[k], run.qd[k], mean))
    # the two differ by how they take the middle of a period: h^2 of the motion, and the sign of friction near zero
    np.testing.assert_allclose(batch[-1], last, atol=0.01)
    np.testing.assert_allclose(batch[-1], [3.0, 6.0, 3.0, 1.0, 1.0, 1.0], atol=0.01)


def test_gaps_and_bad_samples_leave_no_mark(true: Robot) -> None:
    run = _motion(true, _drive(), 3, seconds=4.0, noise=0.0)
    keep = np.r_[0:500, 700:2000]
    tau = run.tau.copy()
    tau[700:] -= 2.0  # a push that began while nothing was recorded
    tau[1200] = np.nan
    gapped = Motion(run.time[keep], run.q[keep], run.qd[keep], tau[keep])
    residual = momentum_residual(true, _drive(), gapped)
    assert np.isnan(residual[[0, 500]]).all()  # the first, and the one after the gap: nothing to compare with
    assert np.isnan(residual[1000]).all()
    assert np.nanmax(np.abs(residual[:500])) < 0.1
    np.testing.assert_allclose(residual[501], 2.0, atol=0.1)  # known at once: the past before the gap does not count
    assert np.nanmax(np.abs(residual[501:] - 2.0)) < 0.1


def test_model_file_is_a_parameter_set_and_reads_back(found: IdentifiedModel, base: Robot, tmp_path: Path) -> None:
    file = tmp_path / "model.toml"
    found.write(file)
    back = read_model(file)
    assert back.text() == found.text()
    np.testing.assert_array_equal(back.covariance, found.covariance)
    assert back.logs == found.logs
    loaded = tangere.robot("ur3e", parameters=file, rotor_inertia=True)
    own = found.robot(base)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 10, N))
    np.testing.assert_allclose(loaded.inverse_dynamics(q, qd, qdd), own.inverse_dynamics(q, qd, qdd), rtol=1e-12)
    for name in ("gain", "rotor_inertia", "coulomb", "viscous"):
        np.testing.assert_array_equal(getattr(loaded.drives, name), getattr(found.drive, name))
    assert loaded.model.parameters == "identified"
    with pytest.raises(tangere.InvalidValue, match="cannot write"):
        found.write(tmp_path / "absent" / "model.toml")
    plain = tmp_path / "plain.toml"
    plain.write_text("schema_version = 1\n")
    with pytest.raises(tangere.ModelFileError, match="no identified model"):
        read_model(plain)


def test_says_when_the_log_is_of_another_arm_or_of_currents(base: Robot, true: Robot) -> None:
    run = _motion(true, _drive(), 2)
    big = identify(tangere.robot("ur10e"), [run], inertial="none")
    assert "gravity does not fit ur10e" in big.findings[0].sentence
    assert big.findings[0].kind == "misfit"
    gain = base.drives.gain
    currents = identify(base, [dataclasses.replace(run, tau=run.tau / gain)], inertial="none")
    assert "motor currents" in currents.findings[0].sentence
    ceiling = identify(tangere.robot("ur3e", gravity="ceiling"), [run], inertial="none")
    assert ceiling.findings[0].kind == "mounting"


def test_says_what_is_missing(base: Robot, true: Robot) -> None:
    run = _motion(true, _drive(), 2)
    still = dataclasses.replace(run, qd=np.zeros_like(run.qd), q=np.zeros_like(run.q))
    with pytest.raises(tangere.InvalidValue, match="not exciting enough"):
        identify(base, [still])
    short = Motion(run.time[:100], run.q[:100], run.qd[:100], run.tau[:100])
    with pytest.raises(tangere.InvalidValue, match="too short"):
        identify(base, [short])
    held = dataclasses.replace(run, qd=run.qd * (np.arange(N) != 5))
    model = identify(base, [held], inertial="none")
    (found,) = (found for found in model.findings if found.kind == "unmoved")
    assert (found.joint, "joint 6 hardly moves" in found.sentence) == (6, True)
    assert np.isnan(model.model(base.model).drives.coulomb[5])
    known = tangere.robot("ur3e")  # where the arm's data has the friction of a joint that did not move, it stays
    assert model.model(known.model).drives.coulomb[5] == known.drives.coulomb[5]
    with pytest.raises(tangere.InvalidValue, match="links"):
        identify(base, [run], inertial="everything")  # type: ignore[arg-type]
    with pytest.raises(tangere.InvalidValue, match="joints"):
        identify(tangere.robot("pendulum"), [run])


def test_a_mean_of_residuals_leaves_out_what_stands(true: Robot) -> None:
    drive = _drive()
    run = _motion(true, drive, 3, seconds=4.0, noise=0.0)
    wrong = run.tau + 5.0 * (np.abs(run.qd) < 0.01)  # only while a joint stands
    assert np.all(moving_rms(true, drive, [dataclasses.replace(run, tau=wrong)]) < 2.0)
    assert np.all(moving_rms(true, drive, [dataclasses.replace(run, tau=run.tau + 5.0)]) > 4.9)
