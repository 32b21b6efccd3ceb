"""Dynamics, controller, observer and arm as FMUs move as the library does: driven by fmpy, compared step by step."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from fmu_block import EXACT, FORCE, FRICTION, ROBOT, Maker, continuous, difference, place, same_slope, states

import tangere
from tangere.control.computed_torque import ComputedTorque
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.momentum import MomentumObserver
from tangere.plants.pushes import Push
from tangere.plants.rigid import RigidPlant
from tangere.types import Command, Reference


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    return Maker(tmp_path_factory.mktemp("fmus"))


# ---------------------------------------------------------------------------------------------------- dynamics


def test_inverse_dynamics(make, rng):
    block = make("inverse-dynamics")
    for _ in range(50):
        q, qd, qdd = rng.uniform(-6, 6, 6), rng.uniform(-2, 2, 6), rng.uniform(-9, 9, 6)
        for name, value in (("q", q), ("qd", qd), ("qdd", qdd)):
            block.set(name, value)
        want = ROBOT.inverse_dynamics(q, qd, qdd) + FRICTION.torque(qd)
        np.testing.assert_allclose(block.get("tau"), want, atol=EXACT, rtol=EXACT)
        np.testing.assert_allclose(block.get("gravity_torque"), ROBOT.gravity_torque(q), atol=EXACT, rtol=EXACT)
        for name, x in (("q", q), ("qd", qd), ("qdd", qdd)):
            d = rng.normal(size=6)
            rate = block.directional("tau", name, d)
            found = difference(lambda: block.get("tau"), lambda v, n=name: block.set(n, v), x, d)
            same_slope(rate, found)


def test_dynamics_is_the_rigid_plant(make, rng):
    """Step by step the same Runge-Kutta, under changing torques, a push at a joint, and a force at the tool."""
    block = make("dynamics")
    q0 = block.get("q")
    plant = RigidPlant(ROBOT, 1e-3, friction=FRICTION, pushes=[Push(joint=2, torque=20.0, start=0.1, duration=0.1)])
    state = plant.reset(q0)
    for k in range(300):
        tau = ROBOT.gravity_torque(state.q) + rng.normal(size=6) * [40, 40, 20, 5, 5, 5]
        block.set("tau", tau)
        block.set("tau_ext", [0, 20.0 if 100 <= k < 200 else 0.0, 0, 0, 0, 0])
        plant.write(Command(tau))
        block.step()
        state = plant.read()
        np.testing.assert_allclose(block.get("q"), state.q, atol=1e-9)
        np.testing.assert_allclose(block.get("qd"), state.qd, atol=1e-9)
    assert np.abs(state.q - q0).max() > 1e-3  # it moved
    np.testing.assert_allclose(block.get("position"), ROBOT.pose(state.q)[:3, 3], atol=1e-9)
    np.testing.assert_allclose(
        [block.get("kinetic_energy"), block.get("potential_energy")], ROBOT.energy(state.q, state.qd), atol=1e-9
    )
    block.set("wrench", FORCE)
    tau = block.get("tau") - FRICTION.torque(state.qd) + ROBOT.jacobian(state.q).T @ FORCE
    np.testing.assert_allclose(block.get("qdd"), ROBOT.forward_dynamics(state.q, state.qd, tau), atol=1e-9)


def test_energy_is_kept_to_the_order_of_the_integrator(make):
    """A free swing without friction: halving the step divides the loss by 2^4, within the next order."""
    loss = []
    for h in (2e-3, 1e-3):
        none = {"friction.coulomb": [0] * 6, "friction.viscous": [0] * 6, "step_max": h, "rotor_inertia": [0] * 6}
        speed = {"q_start": [0.3, -1, 1, -1, 0.5, 0.2], "qd_start": [0.5, -0.3, 0.2, 0.1, 0.4, 1.0]}
        block = make("dynamics", **none, **speed)
        block.set("tau", np.zeros(6))
        before = block.get("kinetic_energy") + block.get("potential_energy")
        for _ in range(round(0.5 / h)):
            block.step(h)
        loss.append(abs(block.get("kinetic_energy") + block.get("potential_energy") - before))
    assert loss[1] < 1e-6
    assert 12 < loss[0] / loss[1] < 20


def test_dynamics_model_exchange_and_its_derivatives(make, rng):
    block = make("dynamics", exchange=True, q_start=rng.uniform(-2, 2, 6), qd_start=rng.uniform(-1, 1, 6))
    block.set("wrench", FORCE)
    block.set("tau", rng.normal(size=6))
    continuous(block)
    x = states(block)
    rates = (ctypes.c_double * 12)()
    block.fmu.getDerivatives(rates, 12)
    np.testing.assert_array_equal(rates[:6], x[6:])
    np.testing.assert_array_equal(rates[6:], block.get("qdd"))
    tau = block.get("tau") - FRICTION.torque(x[6:]) + ROBOT.jacobian(x[:6]).T @ FORCE
    np.testing.assert_allclose(rates[6:], ROBOT.forward_dynamics(x[:6], x[6:], tau), atol=1e-10)
    for name in ("qdd", "der(q)", "kinetic_energy", "potential_energy", "position", "R", "quaternion", "ypr"):
        for known, at in (("q", 0), ("qd", 6)):
            d = np.zeros(12)
            d[at : at + 6] = rng.normal(size=6)
            rate = block.directional(name, known, d[at : at + 6])
            found = difference(lambda n=name: block.get(n), lambda v: place(block, v), x, d)
            same_slope(rate, found)
    for known in ("tau", "wrench", "tau_ext"):
        d = rng.normal(size=6)
        rate = block.directional("qdd", known, d)
        value = block.get(known)
        found = difference(lambda: block.get("qdd"), lambda v, n=known: block.set(n, v), value, d)
        same_slope(rate, found)


def test_steps_of_any_length_reach_the_same_point(make):
    """Inputs held: one long step is the sum of short ones, to the accuracy of the integrator."""
    ends = []
    for steps in ([0.1], [0.013, 0.05, 0.037], [1e-4] * 1000):
        block = make("dynamics", qd_start=[0.2, 0.1, -0.3, 0.5, 0.1, 0.2], step_max=1e-4)
        for h in steps:
            block.step(h)
        ends.append(block.get("q"))
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-10)
    np.testing.assert_allclose(ends[0], ends[2], atol=1e-10)


# ------------------------------------------------------------------------------------- controller, observer, arm


class Swing:
    """A reference that every joint follows."""

    duration = np.inf
    size = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.4])

    def __init__(self, q0):
        self.q0 = q0

    def at(self, time):
        w = 2.0
        s, c = np.sin(w * time), np.cos(w * time)
        return Reference(self.q0 + self.size * s, self.size * w * c, -self.size * w * w * s)


def test_controller_is_computed_torque(make, rng):
    block = make("controller", feed_wrench=True)
    for _ in range(50):
        values = {n: rng.uniform(-2, 2, 6) for n in ("q_des", "qd_des", "qdd_des", "q", "qd")}
        for name, value in (*values.items(), ("wrench", FORCE)):
            block.set(name, value)
        qdd = values["qdd_des"] + 100 * (values["q_des"] - values["q"]) + 20 * (values["qd_des"] - values["qd"])
        want = ROBOT.inverse_dynamics(values["q"], values["qd"], qdd) + FRICTION.torque(values["qd"])
        want -= ROBOT.jacobian(values["q"]).T @ FORCE
        np.testing.assert_allclose(block.get("tau"), want, atol=1e-10, rtol=EXACT)
        for name, x in (*values.items(), ("wrench", FORCE)):
            d = rng.normal(size=6)
            rate = block.directional("tau", name, d)
            found = difference(lambda: block.get("tau"), lambda v, n=name: block.set(n, v), x, d)
            same_slope(rate, found)


def test_observer_is_the_momentum_observer(make, rng):
    block = make("observer")
    observer = MomentumObserver(ROBOT, friction=FRICTION)
    detector = Detector(Thresholds.constant(5.0))
    plant = RigidPlant(ROBOT, 1e-3, friction=FRICTION, pushes=[Push(joint=2, torque=20.0, start=0.1, duration=0.1)])
    state = plant.reset(block.get("q"))
    observer.reset(state)
    touched = 0
    for k in range(400):
        tau = ROBOT.gravity_torque(state.q) + rng.normal(size=6)
        for name, value in (("q", state.q), ("qd", state.qd), ("tau", tau)):
            block.set(name, value)
        block.step()
        residual = observer.update(state) if k else observer.residual
        detector.update(state, residual)
        np.testing.assert_allclose(block.get("residual"), residual, atol=1e-9)
        assert bool(block.get("contact")) == detector.touching
        touched += bool(block.get("contact"))
        assert block.get("contact_joint") == (2 if block.get("contact") else 0)
        plant.write(Command(tau))
        state = plant.read()
    assert 60 < touched < 200  # felt, and let go again


def loop(steps, push, period=1e-3):
    """The library's own loop: plant, controller and observer exchange once per period."""
    plant = RigidPlant(ROBOT, period, friction=FRICTION, pushes=[push])
    q0 = np.radians([0.0, -90, 90, -90, -90, 0])
    state = plant.reset(q0)
    controller = ComputedTorque(ROBOT, Swing(q0), friction=FRICTION)
    observer = MomentumObserver(ROBOT, friction=FRICTION)
    controller.start(state)
    observer.reset(state)
    for k in range(steps):
        residual = observer.update(state) if k else observer.residual
        plant.write(controller.step(state))
        state = plant.read()
        yield state, residual


PUSH = Push(joint=2, torque=20.0, start=0.2, duration=0.1)


def test_arm_is_plant_controller_and_observer(make):
    block, swing = make("arm"), None
    for k, (state, residual) in enumerate(loop(500, PUSH)):
        swing = swing or Swing(block.get("q_start"))
        reference = swing.at(k * 1e-3)
        for name, value in (("q_des", reference.q), ("qd_des", reference.qd), ("qdd_des", reference.qdd)):
            block.set(name, value)
        block.set("tau_ext", [0, 20.0 if 200 <= k < 300 else 0.0, 0, 0, 0, 0])
        block.step()
        np.testing.assert_allclose(block.get("q"), state.q, atol=1e-9)
        np.testing.assert_allclose(block.get("tau"), state.tau, atol=1e-9)
        np.testing.assert_allclose(block.get("residual"), residual, atol=1e-9)
    assert np.abs(residual).max() < 1.0


def test_arm_samples_inside_a_long_step(make):
    """A communication step of ten periods samples ten times: the same as ten steps with the reference held."""
    fine, coarse = make("arm"), make("arm")
    for block in (fine, coarse):
        block.set("q_des", block.get("q_start") + 0.1)
    for _ in range(20):
        for _ in range(10):
            fine.step(1e-3)
        coarse.step(1e-2)
        np.testing.assert_allclose(coarse.get("q"), fine.get("q"), atol=1e-10)
        np.testing.assert_allclose(coarse.get("residual"), fine.get("residual"), atol=1e-8)


@pytest.mark.parametrize("kind", ["arm", "observer"])
def test_time_events_in_model_exchange(make, kind):
    """Every period a time event; the host integrates between (Runge-Kutta here) and meets the co-simulation."""
    block, other = make(kind, exchange=True), make(kind)
    for b in (block, other):
        if kind == "arm":
            b.set("q_des", b.get("q_start") + 0.1)
        else:
            b.set("q", np.zeros(6))
            b.set("qd", [0.1] * 6)
    for k in range(100):
        needed, stop, *_, defined, at = block.fmu.newDiscreteStates()
        assert not needed
        assert not stop
        assert defined
        assert at == pytest.approx((k + 1) * 1e-3, abs=1e-12)
        if kind == "observer":
            other.set("q", np.full(6, 0.1 * k * 1e-3))
        other.step()
        np.testing.assert_allclose(block.get("residual"), other.get("residual"), atol=1e-9)
        if kind == "arm":
            block.fmu.enterContinuousTimeMode()
            x, h = states(block), at - k * 1e-3

            def rate(v):
                place(block, v)
                out = (ctypes.c_double * 12)()
                block.fmu.getDerivatives(out, 12)
                return np.array(out)

            a = rate(x)
            b = rate(x + h / 2 * a)
            c = rate(x + h / 2 * b)
            d = rate(x + h * c)
            place(block, x + h / 6 * (a + 2 * b + 2 * c + d))
            block.fmu.setTime(at)
            assert block.fmu.completedIntegratorStep() == (0, 0)
            np.testing.assert_allclose(block.get("q"), other.get("q"), atol=1e-9)
            block.fmu.enterEventMode()
        else:
            block.fmu.setTime(at)
            block.set("q", np.full(6, 0.1 * at))


def test_all_is_the_three_blocks(make, rng):
    whole, fk, ik, moving = (make(kind) for kind in ("all", "fk", "ik", "dynamics"))
    q = rng.uniform(-2, 2, 6)
    T = ROBOT.pose(rng.uniform(-2, 2, 6))
    whole.set("fk.q", q)
    fk.set("q", q)
    for block, prefix in ((whole, "ik."), (ik, "")):
        block.set(prefix + "position", T[:3, 3])
        block.set(prefix + "R", T[:3, :3])
    for _ in range(20):
        for block in (whole, fk, ik, moving):
            block.step()
    for block, prefix in ((fk, "fk"), (ik, "ik"), (moving, "dynamics")):
        for p in block.written.table.with_causality("output"):
            np.testing.assert_array_equal(whole.get(f"{prefix}.{p.group.name}"), block.get(p.group.name), p.group.name)


def test_tunable_parameters_act_at_once(make):
    block = make("inverse-dynamics")
    heavy = tangere.robot("ur10e", payload=(7.5, (0.0, 0.1, 0.2)), gravity="ceiling", rotor_inertia=True)
    q = block.get("q")
    block.set("payload.mass", 7.5)
    block.set("payload.com", [0.0, 0.1, 0.2])
    block.set("payload.inertia", [0.0] * 6)
    block.set("gravity", heavy.model.gravity)
    np.testing.assert_allclose(block.get("gravity_torque"), heavy.gravity_torque(q), atol=EXACT, rtol=EXACT)
