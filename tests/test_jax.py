"""The quantities as JAX functions: the numbers of the kernels, under jit, vmap and grad."""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from oracles import random_arm
from test_inverse import singular_states

import tangere
from tangere.errors import InvalidValue, MissingExtra
from tangere.kernels.table import KERNELS
from tangere.robots import Robot

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install 'tangere[jax]'")
import tangere.jax  # noqa: E402

COUNT = 20


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="module")
def arm() -> tangere.Robot:
    return tangere.robot("ur10e", rotor_inertia=True, payload=(2.0, [0.01, -0.02, 0.05]), tool=[0.1, 0.0, 0.2])


def states(dof: int, seed: int = 0) -> list[Any]:
    return list(np.random.default_rng(seed).uniform(-3.0, 3.0, (3, COUNT, dof)))


def close(got: Any, wanted: Any, bound: float) -> None:
    got, wanted = (x if isinstance(x, tuple) else (x,) for x in (got, wanted))
    for g, w in zip(got, wanted, strict=True):
        assert np.shape(g) == np.shape(w)
        assert np.abs(np.asarray(g) - w).max() <= bound * np.abs(w).max()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_every_quantity_of_the_table(kernel: Any, arm: tangere.Robot) -> None:
    """In float64 1e-12 of the largest entry, in float32 1e-5, with leading axes and alone."""
    x = states(6)[: len(kernel.inputs)]
    ours, function = getattr(arm, kernel.name), getattr(tangere.jax.robot(arm), kernel.name)
    close(function(*x), ours(*x), 1e-12)
    close(function(*(a[0] for a in x)), ours(*(a[0] for a in x)), 1e-12)
    single = function(*(a.astype(np.float32) for a in x))
    assert {s.dtype for s in (single if isinstance(single, tuple) else (single,))} == {np.dtype(np.float32)}
    close(single, ours(*(a.astype(np.float32).astype(float) for a in x)), 1e-5)


def test_points_of_links(arm: tangere.Robot) -> None:
    q, (point, *_) = states(6)[0], np.random.default_rng(3).uniform(-1, 1, (4, 3))
    mine = tangere.jax.robot(arm)
    for link in (1, 4, 6):
        close(mine.jacobian(q, link, point), arm.jacobian(q, link, point), 1e-12)
    close(mine.jacobian(q[0], 3), arm.jacobian(q[0], 3), 1e-12)


@pytest.mark.parametrize("kinds", ["rrprr", "rrrrrrr"])
def test_other_arms(kinds: str) -> None:
    other = Robot(random_arm(5, kinds))
    mine = tangere.jax.robot(other)
    x = states(len(kinds), 1)
    close(mine.inverse_dynamics(*x), other.inverse_dynamics(*x), 1e-12)
    close(mine.jacobian(x[0]), other.jacobian(x[0]), 1e-12)
    heavy = mine.with_payload(1.5)
    close(heavy.gravity_torque(x[0]), other.with_payload(1.5).gravity_torque(x[0]), 1e-12)
    with pytest.raises(InvalidValue, match="is no UR"):
        mine.inverse_kinematics(np.eye(4))


def test_what_does_not_depend_on_the_state_has_its_precision() -> None:
    """Of a SCARA gravity is a constant: float32 in, float32 out, as a loop under scan needs it."""
    scara, q = tangere.jax.robot("scara"), np.zeros(4, np.float32)
    assert scara.gravity_torque(q).dtype == np.float32
    assert scara.gravity_torque(q.astype(float)).dtype == np.float64
    close(scara.gravity_torque(q), scara.robot.gravity_torque(q), 1e-7)


def test_jit_vmap_and_derivatives(arm: tangere.Robot) -> None:
    """Derivatives by JAX are those of the table, which were traced: two ways to the same number."""
    mine, (q, qd, qdd) = tangere.jax.robot(arm), states(6)
    for whole in (np.ones((2, 6), int), np.ones((2, 6), bool), [[1] * 6] * 2):
        close(mine.pose(whole), arm.pose(np.ones((2, 6))), 1e-12)
    tau = jax.jit(jax.vmap(mine.inverse_dynamics))(q, qd, qdd)
    close(tau, arm.inverse_dynamics(q, qd, qdd), 1e-12)
    wanted = arm.inverse_dynamics_derivatives(q[0], qd[0], qdd[0])
    for k in range(3):
        close(jax.jacfwd(mine.inverse_dynamics, k)(q[0], qd[0], qdd[0]), wanted[k], 1e-11)
    power = jax.grad(lambda q: mine.energy(q, qd[0])[1])(q[0])  # the gradient of the potential is the weight
    close(power, arm.gravity_torque(q[0]), 1e-11)


def test_payloads_under_vmap_and_grad(arm: tangere.Robot) -> None:
    mine, q, masses, com = tangere.jax.robot(arm), states(6)[0][0], np.array([0.5, 2.0, 7.0]), [0.02, 0.03, 0.1]
    got = jax.vmap(lambda m: mine.with_payload(m, com).gravity_torque(q))(masses)
    close(got, np.array([arm.with_payload((m, com)).gravity_torque(q) for m in masses]), 1e-12)
    linear = arm.with_payload(3.0).gravity_torque(q) - arm.with_payload(2.0).gravity_torque(q)
    close(jax.jacfwd(lambda m: mine.with_payload(m).gravity_torque(q))(2.0), linear, 1e-11)
    heavy = mine.with_payload(2.0, com)
    close(pickle.loads(pickle.dumps(heavy)).gravity_torque(q), np.asarray(heavy.gravity_torque(q)), 0.0)
    jac = jax.vmap(lambda m: mine.with_payload(m).link_jacobians(q)[0])(masses)
    close(jac, np.array([arm.with_payload(m).link_jacobians(q)[0] for m in masses]), 1e-12)


def test_inverse_kinematics(arm: tangere.Robot) -> None:
    """Every branch, label and distance of the kernels, singular poses and poses out of reach included."""
    mine = tangere.jax.robot(arm)
    rng, kinds = np.random.default_rng(2), ("wrist", "elbow", "shoulder")
    near = [singular_states(arm, kind, off, 4, rng) for kind in kinds for off in (0.0, 1e-4)]
    q = np.concatenate([states(6)[0], *near])
    T = arm.pose(q)
    T[0, :3, 3] *= 5.0
    for reference in (None, q[1]):
        got, wanted = mine.inverse_kinematics(T, reference), arm.inverse_kinematics(T, reference)
        assert np.array_equal(got.valid, wanted.valid)
        assert np.array_equal(np.asarray(got.flags)[wanted.valid], wanted.flags[wanted.valid])
        gap = np.where(wanted.valid[..., None], np.asarray(got.q) - wanted.q, 0.0)
        assert np.abs((gap + np.pi) % (2 * np.pi) - np.pi).max() < 1e-7  # a double root is known to 1e-8
        back = arm.pose(np.asarray(got.q)) - T[:, None]
        assert np.abs(np.where(wanted.valid[..., None, None], back, 0.0)).max() < 1e-11
        assert got.distance == pytest.approx(wanted.distance, abs=1e-12)
        assert np.asarray(got.valid)[1:].any(axis=-1).all()
    mirrored = T[1] * [[1], [1], [-1], [1]]
    assert not np.asarray(mine.inverse_kinematics(mirrored).valid).any()


def test_mistakes_have_sentences(arm: tangere.Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tangere.jax.robot("ur5e")
    for wrong, words in (
        (lambda: mine.pose(np.zeros(5)), r"q: expected shape \(..., 6\), got \(5,\)"),
        (lambda: mine.bias_torque(np.zeros((2, 6)), np.zeros((3, 6))), "leading axes do not fit"),
        (lambda: mine.jacobian(np.zeros(6), 7), "link: got 7, valid are 1 to 6"),
        (lambda: mine.jacobian(np.zeros(6), None, np.zeros(3)), "point: given without a link"),
        (lambda: mine.inverse_kinematics(np.eye(3)), r"T: expected shape \(..., 4, 4\)"),
        (lambda: mine.with_payload(np.zeros(3)), "vmap does many"),
        (lambda: mine.with_payload(np.nan), "mass: every entry must be finite, got nan"),
        (lambda: mine.with_payload(1.0, [0.0, np.inf, 0.0]), "com: every entry must be finite"),
        (lambda: mine.with_payload(-1.0), "mass: 0 kg or more, got -1"),
        (lambda: tangere.jax.robot("scara").with_payload("x"), "mass: expected real numbers, got 'x'"),
        (lambda: mine.pose("x"), "q: expected real numbers, got 'x'"),
        (lambda: mine.pose([[1.0, 2.0], [3.0]]), "q: expected real numbers, got"),
        (lambda: mine.pose(np.zeros(6, complex)), "q: expected real numbers, got complex128"),
        (lambda: mine.inverse_kinematics(None), "T: expected real numbers, got None"),
        (lambda: mine.inverse_kinematics(np.eye(4, dtype=np.float16)), "T: float32 or float64, got float16"),
        (lambda: tangere.jax.robot(arm, payload=1.0), "where the robot is made"),
    ):
        with pytest.raises(InvalidValue, match=words):
            wrong()
    jax.config.update("jax_enable_x64", False)
    monkeypatch.setattr(tangere.jax, "_said", False)
    with pytest.warns(UserWarning, match="jax_enable_x64"):
        tangere.jax.robot("ur5e")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tangere.jax.robot("ur5e")  # said once
    monkeypatch.setitem(sys.modules, "jax.numpy", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tangere\[jax\]'"):
        tangere.jax.robot("ur5e")


def test_a_custom_call_of_xla_is_given_addresses_and_shapes() -> None:
    """As a GPU's kernel is called, here with a function of numpy on the CPU: rows, vmap, and an error's sentence."""
    import ctypes

    from tangere.kernels import xla

    arm = tangere.robot("ur5e")

    def array(rows: xla.Rows) -> Any:
        size = int(np.prod(rows.shape))
        return np.ctypeslib.as_array((ctypes.c_double * size).from_address(rows.pointer)).reshape(rows.shape)

    def start(inputs: Any, outputs: Any, stream: int) -> None:
        if inputs[0].shape[0] == 3:
            raise ValueError("three are too many")
        assert stream == 0
        array(outputs[0])[...] = arm.bias_torque(*(array(rows) for rows in inputs))

    xla.register("tangere_test", start, "cpu")

    def call(q: Any, qd: Any) -> Any:
        wanted = jax.ShapeDtypeStruct(q.shape, q.dtype)
        return jax.ffi.ffi_call("tangere_test", wanted, vmap_method="broadcast_all")(q, qd)

    q, qd = np.random.default_rng(0).normal(size=(2, 5, 6))
    assert np.array_equal(jax.jit(call)(q, qd), arm.bias_torque(q, qd))
    spread = jax.vmap(call, (0, None))(q, qd[0])
    assert np.array_equal(spread, arm.bias_torque(q, np.broadcast_to(qd[0], (5, 6))))
    with pytest.raises(Exception, match="tangere: three are too many"):
        jax.jit(call)(q[:3], qd[:3]).block_until_ready()
