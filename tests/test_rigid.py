"""RigidPlant: its integrators keep their order, and what pushes and limits do is what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_arms import written

import tangere
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, UnknownName
from tangere.plants import PlantLost, Push, RigidPlant
from tangere.plants.simulated import refuse_stiff_friction
from tangere.types import Array, Command, Plant

ARM = tangere.robot("ur10e", payload=(1.5, (0.01, 0.02, 0.05)), tool=(0.02, 0.0, 0.1))
START = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
SPEED = np.array([0.8, -0.6, 0.9, 1.1, -0.7, 0.5])
NOTHING = Command(np.zeros(6))


def after(plant: RigidPlant, seconds: float, tau: Array) -> Array:
    """q and qd (2 n,) after holding a torque from START."""
    plant.reset(START, SPEED)
    for _ in range(round(seconds / plant.period)):
        plant.write(Command(tau))
    return np.concatenate((plant.read().q, plant.read().qd))


def oracle(seconds: float, tau: Array, friction: JointFriction | None = None) -> Array:
    """The same motion by an integrator of order 8 at its tightest: error below 1e-11."""
    integrate = pytest.importorskip("scipy.integrate", reason="scipy is not installed (extra test)")

    def rate(_: float, y: Array) -> Array:
        drag = 0.0 if friction is None else friction.torque(y[6:])
        return np.concatenate((y[6:], ARM.forward_dynamics(y[:6], y[6:], tau - drag)))

    y0 = np.concatenate((START, SPEED))
    solution: Any = integrate.solve_ivp(rate, (0.0, seconds), y0, method="DOP853", rtol=3e-14, atol=1e-14)
    return np.asarray(solution.y[:, -1])


@pytest.mark.parametrize(("method", "order"), [("rk4", 4), ("semi-implicit", 1)])
@pytest.mark.parametrize("with_friction", [False, True])
def test_order_of_the_integrators(method: Any, order: int, with_friction: bool) -> None:
    """Halving the step divides the error by 2^order: within 30 %, the next order's share at these steps."""
    friction = JointFriction(np.zeros(6), np.array([2.0, 2.0, 1.0, 0.1, 0.05, 0.002])) if with_friction else None
    tau = np.array([3.0, -60.0, -30.0, -2.0, 0.05, 0.001])
    exact = oracle(0.16, tau, friction)
    # wrist 3 with friction relaxes in 0.15 s, all else is slower: both steps lie well inside the asymptotic range
    coarse, fine = (
        float(np.linalg.norm(after(RigidPlant(ARM, h, method=method, friction=friction), 0.16, tau) - exact))
        for h in (4e-3, 2e-3)
    )
    assert coarse / fine == pytest.approx(2.0**order, rel=0.3)


@pytest.mark.parametrize("name", ["ur10e", "ur3", "seven", "sorter", "six"])
@pytest.mark.parametrize("rubbed", [False, True])
def test_the_compiled_step_is_the_one_in_python(
    name: str, rubbed: bool, tmp_path: Path, rng: np.random.Generator
) -> None:
    """The same operations in the same order; friction's tanh may differ in its last digit. Far angles as well."""
    arm = tangere.robot(name if name.startswith("ur") else str(written(tmp_path, name)))
    n = arm.dof
    friction = JointFriction(rng.uniform(0.0, 0.01, n), rng.uniform(0.0, 0.01, n)) if rubbed else None
    quick, plain = (RigidPlant(arm, friction=friction) for _ in range(2))
    plain._quick = None  # the form in Python
    if not arm.compiled:
        pytest.skip("no compiled kernels here")
    for reach in (3.0, 1000.0):
        q, qd, tau = rng.uniform(-reach, reach, n), rng.uniform(-1.0, 1.0, n), rng.uniform(-0.1, 0.1, n)
        for plant in (quick, plain):
            plant.reset(q, qd)
            for _ in range(5):
                plant.write(Command(tau))
        for a, b in ((quick.read().q, plain.read().q), (quick.read().qd, plain.read().qd)):
            assert np.abs(a - b).max() <= (1e-12 if rubbed else 0.0)
    assert quick._quick(np.full(n, np.nan), qd, tau, quick._rubbed, 1e-3) is None
    assert quick._quick(q, qd, np.full(n, 1e308), quick._rubbed, 1e-3) is None
    with pytest.raises(InvalidValue, match="rows of coulomb"):
        quick._quick(q, qd, tau, np.zeros((n, 2)), 1e-3)


def test_substeps_are_shorter_steps() -> None:
    tau = np.array([3.0, -60.0, -30.0, -2.0, 0.05, 0.001])
    once = after(RigidPlant(ARM, 1e-3), 0.1, tau)
    assert np.array_equal(after(RigidPlant(ARM, 4e-3, substeps=4), 0.1, tau), once)


def test_energy_is_conserved_to_the_fourth_order() -> None:
    """Nothing drives, nothing brakes: kinetic + potential stays, with an error that falls 16-fold or faster."""
    before = sum(ARM.energy(START, SPEED))
    drift = []
    for h in (4e-3, 2e-3):
        y = after(RigidPlant(ARM, h), 0.4, np.zeros(6))
        drift.append(abs(sum(ARM.energy(y[:6], y[6:])) - before))
    assert drift[1] < 1e-5  # J, of a swing of tens of joules
    assert drift[0] / drift[1] > 12.0
    fallen = ARM.energy(y[:6], y[6:])[0] - ARM.energy(START, SPEED)[0]
    assert fallen > 1.0  # J: it did fall


def test_a_falling_pendulum_is_the_elliptic_function() -> None:
    """sin(a/2) = sin(a0/2) cd(w t) for the angle a from hanging at rest: the closed form, nothing integrated."""
    special = pytest.importorskip("scipy.special", reason="scipy is not installed (extra test)")
    arm = tangere.robot("pendulum")
    inertia = float(arm.mass_matrix([0.0])[0, 0])
    hang = min((0.0, np.pi / 2, np.pi, -np.pi / 2), key=lambda q: arm.energy([q], [0.0])[1])
    stiffness = float(arm.gravity_torque([hang + np.pi / 2])[0])  # m g l
    rate, a0 = np.sqrt(stiffness / inertia), 2.0
    plant = RigidPlant(arm, 1e-3)
    plant.reset([hang + a0])
    for _ in range(2000):
        plant.write(Command(np.zeros(1)))
    _, cn, dn, _ = special.ellipj(rate * 2.0, np.sin(a0 / 2) ** 2)
    expected = 2.0 * np.arcsin(np.sin(a0 / 2) * cn / dn)
    # RK4 at 1 ms of a swing with rate ~ 3 rad/s: (h w)^4 ~ 1e-10 per radian
    assert plant.read().q[0] - hang == pytest.approx(expected, abs=1e-9)


def test_viscous_friction_decays_as_it_must() -> None:
    """Without gravity and Coulomb: exp(-b t / I) by RK4, (1 + h b / I)^-k exactly by the implicit step."""
    arm = tangere.robot("pendulum", gravity=(0.0, 0.0, 0.0))
    inertia, b, h = float(arm.mass_matrix([0.0])[0, 0]), 0.7, 1e-3
    friction = JointFriction(np.zeros(1), np.array([b]))
    for method, factor in (("rk4", np.exp(-b * h / inertia)), ("semi-implicit", 1.0 / (1.0 + h * b / inertia))):
        plant = RigidPlant(arm, h, friction=friction, method=method)  # type: ignore[arg-type]
        plant.reset([0.0], [1.3])
        for _ in range(500):
            plant.write(Command(np.zeros(1)))
        assert plant.read().qd[0] == pytest.approx(1.3 * factor**500, rel=1e-11)  # rounding of 500 steps, h^4 below


# ------------------------------------------------------------------------------------------------------------- pushes


def test_a_push_acts_in_exactly_its_samples() -> None:
    """0.3 s for 0.2 s at 1 kHz: 200 samples, the first at 0.301 s (what acted since the sample before)."""
    plant = RigidPlant(ARM, 1e-3, pushes=[Push(joint=2, torque=20.0, start=0.3, duration=0.2), Push(2, 5.0, 0.4, 0.5)])
    quiet = RigidPlant(ARM, 1e-3)
    for p in (plant, quiet):
        p.reset(START)
    seen = []
    for k in range(1000):
        state = plant.read()
        seen.append(plant.truth().tau_ext.copy())
        if k == 300:
            assert np.array_equal(state.q, quiet.read().q)  # nothing before its time
        for p in (plant, quiet):
            p.write(Command(ARM.gravity_torque(START)))
        if k == 300:
            gained = plant.read().qd - quiet.read().qd
            push = np.array([0.0, 20.0, 0.0, 0.0, 0.0, 0.0])
            expected = np.linalg.solve(ARM.mass_matrix(state.q), push) * 1e-3
            assert np.max(np.abs(gained - expected)) < 1e-3 * np.max(np.abs(expected))  # h times the rates of a few 1/s
    assert not np.any(np.delete(np.array(seen), 1, axis=1))
    expected_torque = np.zeros(1000)
    expected_torque[301:501] += 20.0
    expected_torque[401:901] += 5.0
    assert np.array_equal(np.array(seen)[:, 1], expected_torque)


def test_rounding_decides_no_sample() -> None:
    """From sample k for d samples, also where `start <= i * period < start + duration` in floating point says no."""
    h, cases = 1e-3, [(k, d) for k in range(1, 120) for d in (3, 20)]

    def naive(k: int, d: int) -> list[int]:
        return [i for i in range(k + d + 2) if k / 1000 <= i * h < k / 1000 + d / 1000]

    hard = [(k, d) for k, d in cases if naive(k, d) != list(range(k, k + d))]
    assert len(hard) > 5  # there is something to get wrong
    pendulum = tangere.robot("pendulum")
    for k, d in hard:
        plant = RigidPlant(pendulum, h, pushes=[Push(1, 1.0, k / 1000, d / 1000)])
        acted = []
        for i in range(k + d + 2):
            plant.write(Command(np.zeros(1)))
            if plant.truth().tau_ext[0]:
                acted.append(i)
        assert acted == list(range(k, k + d))


def test_a_force_on_a_link_is_its_jacobian(rng: np.random.Generator) -> None:
    """tau_ext = J^T f at the point; on the last link the wrench at the tcp says the same; other links have none."""
    for link in range(1, 7):
        point, force = tuple(rng.uniform(-0.2, 0.2, 3)), tuple(rng.uniform(-30.0, 30.0, 3))
        plant = RigidPlant(ARM, 1e-3, pushes=[Push(link=link, point=point, force=force)])
        q = rng.uniform(-2.0, 2.0, 6)
        plant.reset(q)
        plant.write(NOTHING)
        truth = plant.truth()
        # computed again: virtual work of the force over a small motion of the point, 1e-6 for differences of 1e-6 rad
        for i in range(6):
            step = 1e-6 * np.eye(6)[i]
            high, low = (ARM.link_poses(q + s)[link - 1] @ [*point, 1.0] for s in (step, -step))
            work = float(np.dot(force, (high - low)[:3])) / 2e-6
            assert truth.tau_ext[i] == pytest.approx(work, abs=1e-6)
        assert np.any(truth.wrench) == (link == 6)
        if link == 6:
            assert ARM.jacobian(q).T @ truth.wrench == pytest.approx(truth.tau_ext, abs=1e-11)
            assert np.array_equal(plant.read().wrench, truth.wrench)  # type: ignore[arg-type]


def test_pushes_that_cannot_be() -> None:
    for push, message in (
        (Push(0, 20.0, 0.0, 1.0), "joint of a push: got 0, valid are 1 to 6"),
        (Push(link=7, force=(1.0, 0.0, 0.0)), "link of a push: got 7"),
        (Push(2, 1.0, link=3), "on a joint or on a link, got joint 2 and link 3"),
        (Push(1, np.nan, 0.0), "finite torque"),
        (Push(1, 1.0, 0.0, 0.0), "lasts > 0 s"),
    ):
        with pytest.raises(InvalidValue, match=message):
            RigidPlant(ARM, pushes=[push])


# -------------------------------------------------------------------------------------------------------------- border


def test_torque_limits_are_cut_and_reported() -> None:
    plant = RigidPlant(ARM)
    plant.reset(START)
    asked = np.array([1e3, -1e3, 10.0, 60.0, -54.0, 0.0])
    plant.write(Command(asked))
    assert plant.read().tau.tolist() == [330.0, -330.0, 10.0, 54.0, -54.0, 0.0]
    limited = plant.read().qd
    plant.reset(START)
    plant.write(Command(np.clip(asked, -ARM.tau_max, ARM.tau_max)))
    assert np.array_equal(plant.read().qd, limited)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_command_that_is_no_number_is_not_taken(bad: float) -> None:
    plant = RigidPlant(ARM)
    plant.reset(START)
    plant.write(Command(ARM.gravity_torque(START)))
    held = plant.read().tau
    plant.write(Command(np.array([0.0, bad, 0.0, 0.0, 0.0, 0.0])))
    assert np.array_equal(plant.read().tau, held)
    assert np.all(np.isfinite(plant.read().q))


def test_a_simulation_that_diverges_says_so() -> None:
    """Damping far beyond what a step of 50 ms bears: read raises, write does not."""
    friction = JointFriction(np.zeros(6), np.full(6, 1e-2))
    plant = RigidPlant(ARM, 0.05, friction=friction)
    plant.reset(START, SPEED)

    def run() -> None:
        for _ in range(2000):
            plant.write(Command(-300.0 * plant.read().qd))

    with pytest.raises(PlantLost, match="left the finite numbers at"):
        run()
    plant.write(NOTHING)
    assert np.isfinite(plant.reset(START).q).all()


def test_the_same_run_twice_is_the_same_bit_by_bit() -> None:
    plant = RigidPlant(ARM, pushes=[Push(3, 7.0, 0.02, 0.05)])
    tau = np.array([3.0, -60.0, -30.0, -2.0, 0.05, 0.001])
    first = after(plant, 0.1, tau)
    assert np.array_equal(after(plant, 0.1, tau), first)
    assert np.array_equal(after(RigidPlant(ARM, pushes=[Push(3, 7.0, 0.02, 0.05)]), 0.1, tau), first)


def test_samples_do_not_change_once_given() -> None:
    """A State handed out stays what it was while the plant moves on."""
    plant: Plant = RigidPlant(ARM)
    state = plant.reset(START, SPEED)
    copies = state.q.copy(), state.qd.copy(), state.tau.copy()
    for _ in range(5):
        plant.write(Command(np.ones(6)))
    assert all(np.array_equal(a, b) for a, b in zip((state.q, state.qd, state.tau), copies, strict=True))
    assert plant.read().time == pytest.approx(0.005, abs=1e-15)
    assert plant.read() is plant.read()
    plant.close()
    plant.close()


def test_misuse_is_refused() -> None:
    with pytest.raises(UnknownName, match="known: rk4, semi-implicit"):
        RigidPlant(ARM, method="euler")  # type: ignore[arg-type]
    for options in ({"period": 0.0}, {"period": np.nan}, {"substeps": 0}, {"friction": JointFriction.none(5)}):
        with pytest.raises(InvalidValue):
            RigidPlant(ARM, **options)  # type: ignore[arg-type]
    plant = RigidPlant(ARM)
    for q in ([0.0] * 5, [np.nan] * 6):
        with pytest.raises(InvalidValue, match="q: 6 finite numbers"):
            plant.reset(q)
    # wrist 3 without its rotor: 135 Nm s/rad on 3e-4 kg m2 cannot be stepped at 1 ms
    with pytest.raises(InvalidValue, match="rotor_inertia=True"):
        RigidPlant(ARM, friction=JointFriction.of(ARM.drives))
    geared = tangere.robot("ur10e", rotor_inertia=True)
    RigidPlant(geared, friction=JointFriction.of(geared.drives))


def test_a_payload_of_nothing_is_none() -> None:
    """What changes while the plant runs: 0 kg takes the payload off."""
    plant = RigidPlant(ARM)
    plant.change("payload", 0.0)
    assert plant.robot.model.payload is None
    plant.change("payload", 2.0)
    assert plant.robot.model.payload is not None
    assert plant.robot.model.payload.mass == 2.0


def test_friction_is_too_steep_by_the_largest_eigenvalue() -> None:
    """step * max eig(M^-1 diag(slope)) > 2, by numpy's own eigenvalues of the unsymmetric matrix."""
    arm = tangere.robot("ur10e")
    slope = np.array([4.0, 3.0, 2.0, 9.0, 1.0, 5.0])
    M = arm.mass_matrix(np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4]))
    friction = JointFriction(0.1 * slope, 0.5 * slope, 0.2)
    rate = float(np.linalg.eigvals(np.linalg.solve(M, np.diag(slope))).real.max())
    refuse_stiff_friction(friction, M, 1.999 / rate)
    with pytest.raises(InvalidValue, match=f"inertia = {2.01:.3g} > 2"):
        refuse_stiff_friction(friction, M, 2.01 / rate)
