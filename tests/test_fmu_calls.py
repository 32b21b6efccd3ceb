"""The FMI 2.0 calls themselves: states, modes, bad input. Nothing crashes, every refusal says why."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from fmu_block import Block, Maker, refused

import tangere
from tangere.apps.fmu.build import LINUX
from tangere.apps.fmu.kinds import KINDS
from tangere.apps.fmu.package import write_fmu

OK, WARNING, DISCARD, ERROR = range(4)


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    return Maker(tmp_path_factory.mktemp("fmus"), tangere.robot("ur5e")).block


@pytest.mark.parametrize("kind", list(KINDS))
def test_state_is_restored_bit_by_bit(make, kind):
    block = make(kind)
    inputs = [p.group for p in block.written.table.with_causality("input")]
    outputs = [p.group.name for p in block.written.table.with_causality("output", "parameter")]

    def go(steps):
        seen = []
        local = np.random.default_rng(4)
        for _ in range(steps):
            for g in inputs:
                block.set(g.name, np.array(g.start) + 0.01 * local.normal(size=g.size))
            block.step()
            seen.append([np.array(block.get(n)).tobytes() for n in outputs])
        return seen

    go(5)
    kept, time = block.state(), block.time
    first = go(20)
    block.restore(kept)
    block.time = time
    assert go(20) == first
    other = make(kind)  # and into another instance
    other.restore(kept)
    block.restore(kept)
    assert other.state() == block.state() == kept


def test_reset_is_a_fresh_instance(make):
    block = make("arm")
    fresh = make("arm").state()
    for _ in range(10):
        block.step()
    block.fmu.reset()
    block.begin()
    assert block.state() == fresh


def test_damaged_states_are_refused(make):
    block, other = make("fk"), make("dynamics")
    good = block.state()
    for bad in (good[:-1], good + b"x", good[:200] + bytes([good[200] ^ 1]) + good[201:], b"", bytes(len(good))):
        assert refused(block.restore, bad) == ERROR
    assert refused(block.restore, other.state()) == ERROR
    assert block.state() == good


@pytest.mark.parametrize("kind", ["fk", "dynamics"])
def test_states_of_other_arms_are_refused(make, tmp_path, kind):
    """One binary, one layout: only the GUID tells the numbers of two arms apart."""
    other = Block(write_fmu(kind, tangere.robot("ur10e"), tmp_path, platforms=(LINUX,)), tmp_path)
    block = make(kind)
    before = block.state()
    assert refused(block.restore, other.state()) == ERROR
    assert "another FMU" in block.messages[-1][2]
    kept = other.fmu.getFMUstate()
    assert refused(block.fmu.setFMUstate, kept) == ERROR
    assert "another FMU" in block.messages[-1][2]
    other.fmu.freeFMUstate(kept)
    assert block.state() == before


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e7])
def test_values_that_are_none_are_discarded(make, value):
    block = make("fk")
    before = block.get("q")
    assert refused(block.set, "q", [value, 0, 0, 0, 0, 0]) == DISCARD
    np.testing.assert_array_equal(block.get("q"), before)
    assert block.messages[-1][:2] == (DISCARD, "logStatusDiscard")
    assert "q" in block.messages[-1][2]
    block.step()  # and it goes on


def test_bounds_of_parameters(make):
    block = make("dynamics", begin=False)
    assert refused(block.set, "payload.mass", [-1.0]) == DISCARD
    assert refused(block.set, "friction.width", [0.0]) == DISCARD
    assert refused(block.set, "quaternion_sign", [3]) == DISCARD
    ik = make("ik", begin=False)
    for wrong in (0, 9):
        assert refused(ik.set, "wanted_branch", [wrong]) == DISCARD
    block.begin()


@pytest.mark.parametrize("h", [0.0, -1e-3, np.nan, np.inf, 1e-320])
def test_steps_that_are_none(make, h):
    block = make("dynamics")
    block.fmu.doStep(0.0, 0.5)
    assert refused(block.fmu.doStep, 0.5, h) == ERROR
    assert "fmi2DoStep" in block.messages[-1][2]
    block.fmu.doStep(0.5, 1e-3)


@pytest.mark.parametrize(("kind", "start", "longest"), [
    ("dynamics", {"step_max": 1e-6}, 0.1), ("arm", {"step_max": 1e-6, "period": 0.2}, 0.1),
    ("arm", {"period": 1e-5}, 10.0),
])  # fmt: skip
def test_steps_that_are_too_long_are_discarded(make, kind, start, longest):
    block = make(kind, begin=False).begin(**start)
    q = block.get("q")
    assert refused(block.step, 1.01 * longest) == DISCARD
    assert f"one of {longest:g} s would do" in block.messages[-1][2]
    np.testing.assert_array_equal(block.get("q"), q)
    if kind == "dynamics":
        block.step(longest)  # the others would take seconds
    block.step(0.01 * longest if kind == "arm" else longest)


@pytest.mark.parametrize("six", [
    [-1e-3, 0.02, 0.02, 0, 0, 0],  # a negative moment
    [0.01, 0.01, 0.03, 0, 0, 0],  # larger than the other two together
    [0.01, 0.01, 0.01, 0.02, 0, 0], [0.02, 0.02, 0.02, 0.012, 0.012, 0.012], [0, 0, 0, 0, 1e-6, 0],
])  # fmt: skip
@pytest.mark.parametrize("kind", ["dynamics", "observer"])
def test_inertias_of_no_body_are_refused(make, kind, six):
    block = make(kind, begin=False)
    good = np.array(block.written.arm.inertia).reshape(6, 6)
    wrong = good.copy()
    wrong[3] = six
    block.set("arm.inertia", wrong)
    block.fmu.setupExperiment(startTime=0.0)
    block.fmu.enterInitializationMode()
    assert refused(block.fmu.exitInitializationMode) == ERROR
    assert "inertia of link 4" in block.messages[-1][2]
    block.set("arm.inertia", good)
    block.set("payload.inertia", six)
    assert refused(block.fmu.exitInitializationMode) == ERROR
    assert "payload.inertia" in block.messages[-1][2]
    block.set("payload.inertia", [0.01, 0.02, 0.03, 0, 0, 0])  # a plate: on the border
    block.fmu.exitInitializationMode()
    block.step()


def test_steps_from_elsewhere_and_past_the_end(make):
    block = make("observer", begin=False)
    block.fmu.setupExperiment(startTime=0.0, stopTime=0.01)
    block.fmu.enterInitializationMode()
    block.fmu.exitInitializationMode()
    block.step()
    assert refused(block.fmu.doStep, 0.5, 1e-3) == ERROR
    assert "the block is at 0.001 s" in block.messages[-1][2]
    assert refused(block.fmu.doStep, 0.001, 0.02) == ERROR
    assert "stop time" in block.messages[-1][2]
    for _ in range(9):
        block.step()


def test_calls_out_of_order(make):
    block = make("dynamics", begin=False)
    f = block.fmu
    for call in (
        f.exitInitializationMode,
        f.terminate,
        lambda: f.doStep(0.0, 1e-3),
        lambda: f.getReal([0]),
        lambda: f.getDirectionalDerivative([0], [0], [1.0]),
    ):
        assert refused(call) == ERROR
        assert "must not be called in this state (instantiated)" in block.messages[-1][2]
    block.begin()
    for call in (f.enterInitializationMode, f.exitInitializationMode, lambda: f.setupExperiment()):
        assert refused(call) == ERROR
    assert refused(block.set, "arm.mass", [1.0] * 6) == ERROR  # fixed
    assert "fixed parameter" in block.messages[-1][2]
    assert refused(block.set, "q", [1.0] * 6) == ERROR  # an output
    assert "computed by the block" in block.messages[-1][2]
    block.step()
    f.terminate()
    assert refused(lambda: f.doStep(1e-3, 1e-3)) == ERROR
    block.get("q")  # still there
    f.reset()
    block.time = 0.0
    block.begin()
    block.step()


def test_exchange_calls_are_not_for_co_simulation(make):
    block = make("dynamics", exchange=True)
    f = block.fmu
    x = (ctypes.c_double * 12)()
    assert refused(f.setContinuousStates, x, 12) == ERROR  # event mode
    f.newDiscreteStates()
    f.enterContinuousTimeMode()
    assert refused(f.newDiscreteStates) == ERROR
    assert refused(f.setContinuousStates, x, 11) == ERROR
    x[3] = np.nan
    assert refused(f.setContinuousStates, x, 12) == DISCARD
    assert refused(f.getDerivatives, x, 3) == ERROR
    f.getEventIndicators((ctypes.c_double * 1)(), 0)
    assert refused(f.getEventIndicators, x, 1) == ERROR
    assert refused(block.set, "payload.mass", [1.0]) == ERROR  # tunable: in event mode only
    assert refused(f.setTime, np.nan) == ERROR
    f.enterEventMode()
    block.set("payload.mass", [1.0])


def test_unknown_references_and_null_pointers(make):
    block = make("all")
    f, c = block.fmu, block.fmu.component
    table = block.written.table
    for call, wrong in (
        (f.getReal, table.count["Real"]), (f.getReal, 4294967295), (f.getInteger, 0), (f.getInteger, 1999),
        (f.getBoolean, 5000), (f.getString, 0),
    ):  # fmt: skip
        assert refused(call, [wrong]) == ERROR
        assert f"value reference {wrong}" in block.messages[-1][2]
    for call, wrong in ((f.setReal, 999), (f.setInteger, 3000), (f.setBoolean, 0)):
        assert refused(call, [wrong], [1]) == ERROR
    assert refused(f.setString, [0], ["x"]) == ERROR
    vr = (ctypes.c_uint * 1)(0)
    value = (ctypes.c_double * 1)()
    for arguments in ((c, None, 1, value), (c, vr, 1, None), (None, vr, 1, value)):
        assert refused(f.fmi2GetReal, *arguments) == ERROR
        assert refused(f.fmi2SetReal, *arguments) == ERROR
    f.fmi2GetReal(c, None, 0, None)  # nothing asked, nothing needed
    for name, arguments in (
        ("fmi2GetFMUstate", (c, None)), ("fmi2SetFMUstate", (c, None)), ("fmi2SerializeFMUstate", (c, None, None, 5)),
        ("fmi2DeSerializeFMUstate", (c, None, 5, None)), ("fmi2SerializedFMUstateSize", (c, None, None)),
        ("fmi2GetDirectionalDerivative", (c, None, 1, None, 1, None, None)), ("fmi2Terminate", (None,)),
        ("fmi2Reset", (None,)), ("fmi2EnterInitializationMode", (None,)), ("fmi2GetRealStatus", (c, 2, None)),
        ("fmi2CancelStep", (c,)), ("fmi2SetDebugLogging", (c, 1, 1, None)),
    ):  # fmt: skip
        assert refused(getattr(f, name), *arguments) == ERROR, name
    f.fmi2FreeInstance(None)


def test_directional_derivatives_of_what_has_none(make):
    block = make("fk")
    f = block.fmu
    q, R = block.references("q"), block.references("R")
    assert refused(f.getDirectionalDerivative, R, block.references("tool"), [0.0] * 6) == ERROR
    assert "no continuous input" in block.messages[-1][2]
    assert refused(f.getDirectionalDerivative, q, q, [0.0] * 6) == ERROR
    assert refused(f.getDirectionalDerivative, R, q, [np.nan] * 6) == ERROR
    assert refused(f.getDirectionalDerivative, [4000], q, [0.0] * 6) == ERROR
    T = np.array([[0.0, 0, 1, 0.3], [0, 1, 0, -0.2], [-1, 0, 0, 0.4], [0, 0, 0, 1]])  # pitch 90 deg
    block.set("q", tangere.robot("ur5e").inverse_kinematics(T)[0])
    assert abs(block.get("ypr")[1]) == pytest.approx(np.pi / 2, abs=1e-7)
    assert refused(f.getDirectionalDerivative, block.references("ypr"), q, [1.0] * 6) == DISCARD
    f.getDirectionalDerivative(R, q, [1.0] * 6)  # the other forms have one
    ik = make("ik", begin=False).begin()
    ik.set("position", [9.0, 0, 0])
    assert (
        refused(ik.fmu.getDirectionalDerivative, ik.references("q"), ik.references("position"), [1.0, 0, 0]) == DISCARD
    )
    observer = make("observer")
    assert refused(observer.directional, "residual", "q", [1.0] * 6) == ERROR


@pytest.mark.parametrize(
    ("name", "guid", "resources", "sentence"),
    [
        ("block", "{wrong}", None, "the GUID is not that of modelDescription.xml"),
        ("block", "", None, "the GUID is not that of modelDescription.xml"),
        ("block", None, "/nowhere", "cannot be opened"),
        ("block", None, "file:///" + "x" * 5000, "no usable path"),
        ("", None, None, "the instance has no name"),
    ],
)
def test_instances_that_are_refused(make, name, guid, resources, sentence):
    block = make("fk")
    place = resources or (block.unzipped / "resources").as_uri()
    made = block.fmu.fmi2Instantiate(
        name.encode(), 1, (block.written.guid if guid is None else guid).encode(), place.encode(),
        ctypes.byref(block._callbacks), 0, 0,
    )  # fmt: skip
    assert not made
    assert sentence in block.messages[-1][2]


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "file://localhost{}", "{}", "{}/"])
def test_forms_of_the_resource_location(make, form):
    block = make("fk")
    place = form.format(block.unzipped / "resources").replace("resources", "%72esources")
    place = place if place.startswith("file:") else form.format(block.unzipped / "resources")
    made = block.fmu.fmi2Instantiate(
        b"other", 1, block.written.guid.encode(), place.encode(), ctypes.byref(block._callbacks), 0, 0
    )
    assert made
    block.fmu.fmi2FreeInstance(made)


def test_too_steep_friction_fails_the_step_and_says_so(make):
    block = make("dynamics", begin=False)
    block.begin(**{"friction.coulomb": [1e6] * 6, "friction.width": [1e-6]})
    assert refused(block.step) == ERROR
    assert "friction is too steep" in block.messages[-1][2]
    assert refused(block.step) == ERROR  # it has failed
    block.fmu.reset()
    block.time = 0.0
    block.begin()
    block.step()


def test_after_a_failed_step_the_last_good_values_are_read(make):
    block = make("dynamics")
    for _ in range(3):
        block.step()
    q, energy = block.get("q"), block.get("kinetic_energy")
    tau = block.get("tau")
    block.set("tau", [1e99] * 6)
    assert refused(block.step) == ERROR
    assert "left the finite numbers" in block.messages[-1][2]
    np.testing.assert_array_equal(block.get("q"), q)
    assert block.get("kinetic_energy") == energy
    assert np.all(np.isfinite(block.get("position")))
    assert refused(block.set, "tau", tau) == ERROR  # a failed block takes nothing but a reset


def test_stiff_friction_is_integrated_with_short_steps(make):
    """Dry friction on links without rotor inertia: at 1 ms an explicit step would blow up."""
    block = make("dynamics", begin=False)
    block.begin(**{"friction.coulomb": [10, 10, 5, 2, 2, 2], "qd_start": [0.5] * 6})
    for _ in range(100):
        block.step()
    assert np.abs(block.get("qd")).max() < 0.6


def test_many_instances_do_not_know_each_other(make):
    first = make("dynamics")
    others = [make("dynamics") for _ in range(20)]
    for k, block in enumerate(others):
        block.set("tau", np.full(6, float(k)))
        block.step()
    first.step()
    lone = make("dynamics")
    lone.step()
    np.testing.assert_array_equal(first.get("q"), lone.get("q"))
    assert len({block.get("q").tobytes() for block in others}) == 20
