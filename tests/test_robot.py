"""Laws that any rigid arm obeys, and what a call accepts: arrays of any layout, lists, leading axes.

The numbers themselves are compared with peers in test_peers.py; here the quantities are compared with each other.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from oracles import lagrange, random_arm, random_link, random_pose, relative_error, tcp_jacobian, tcp_pose

import tangere
from tangere.model.load import load
from tangere.model.model import Array, Payload

# Central differences with this step [rad, rad/s] leave h^2 f'''/6 = 1e-10 f''' and eps f / h = 1e-11 f; the third
# derivatives of torques reach 1e2 Nm and those of M and J 10, hence 1e-6 for torques and 1e-7 for the rest.
STEP = 1e-5
SLOPE, TORQUE_SLOPE = 1e-7, 1e-6


def loaded(name: str = "ur10e") -> tangere.Robot:
    """An arm with a payload, a tool and tilted gravity, so that nothing is zero by symmetry."""
    rng = np.random.default_rng(5)
    body = random_link(rng, "payload")
    model = dataclasses.replace(
        load(name),
        payload=Payload(body.mass, body.com, body.inertia),
        T_flange_tcp=random_pose(rng),
        gravity=np.array([3.0, -4.0, -8.0]),
    )
    return tangere.Robot(model, np.linspace(0.5, 0.1, model.dof))


ROBOTS = {
    "ur10e": loaded(),
    "ur3e": loaded("ur3e"),
    "scara": loaded("scara"),
    "any axes": tangere.Robot(random_arm(9, "rprrr"), np.full(5, 0.2)),
}


@pytest.fixture(params=list(ROBOTS))
def robot(request: pytest.FixtureRequest) -> tangere.Robot:
    return ROBOTS[request.param]


def states(robot: tangere.Robot, count: int, seed: int = 1) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    shape = (count, robot.dof)
    return rng.uniform(-3.0, 3.0, shape), rng.uniform(-2.0, 2.0, shape), rng.uniform(-5.0, 5.0, shape)


def slope(function: Any, x: Array) -> Array:
    """Central differences of a function of (count, n) by each of the n: result (count, ..., n)."""
    columns = []
    for k in range(x.shape[-1]):
        step = STEP * np.eye(x.shape[-1])[k]
        columns.append((function(x + step) - function(x - step)) / (2 * STEP))
    return np.stack(columns, axis=-1)


# --------------------------------------------------------------------------------------------- laws of the dynamics


def test_mass_matrix_is_symmetric_and_positive(robot: tangere.Robot) -> None:
    M = robot.mass_matrix(states(robot, 200)[0])
    assert np.array_equal(M, np.swapaxes(M, -1, -2))
    assert np.min(np.linalg.eigvalsh(M)) > 0.0


def test_mass_rate_is_c_plus_c_transposed(robot: tangere.Robot) -> None:
    """Mdot along the motion, by differences; with any other factorisation of C qd this fails."""
    q, qd, _ = states(robot, 200)
    rate = (robot.mass_matrix(q + STEP * qd) - robot.mass_matrix(q - STEP * qd)) / (2 * STEP)
    C = robot.coriolis_matrix(q, qd)
    assert relative_error(C + np.swapaxes(C, -1, -2), rate) < SLOPE


def test_coriolis_matrix_is_the_christoffel_one(robot: tangere.Robot) -> None:
    """C(q, x) y = C(q, y) x: only the Christoffel symbols are symmetric in the two velocities. 1e-12: rounding."""
    q, x, y = states(robot, 200)
    one = np.einsum("...ij,...j->...i", robot.coriolis_matrix(q, x), y)
    other = np.einsum("...ij,...j->...i", robot.coriolis_matrix(q, y), x)
    assert relative_error(one, other) < 1e-12


def test_against_lagrange(robot: tangere.Robot) -> None:
    """M, C and g by 000's eqs 71-86 with complex-step derivatives, nothing recursive (tests/oracles.py)."""
    q, qd, _ = states(robot, 10)
    for x, xd in zip(q, qd, strict=True):
        M, C, g = lagrange(robot.model, x, xd)
        assert relative_error(robot.mass_matrix(x), M + np.diag(robot.rotor_inertia)) < 1e-12
        assert relative_error(robot.coriolis_matrix(x, xd), C) < 1e-12
        assert relative_error(robot.gravity_torque(x), g) < 1e-12


def test_torques_fit_together(robot: tangere.Robot) -> None:
    """tau = M qdd + C qd + g; p = M qd; forward undoes inverse. 1e-10: the condition of M times rounding."""
    q, qd, qdd = states(robot, 200)
    M, C, g = robot.mass_matrix(q), robot.coriolis_matrix(q, qd), robot.gravity_torque(q)
    times = lambda A, x: np.einsum("...ij,...j->...i", A, x)  # noqa: E731
    tau = robot.inverse_dynamics(q, qd, qdd)
    assert relative_error(tau, times(M, qdd) + times(C, qd) + g) < 1e-12
    assert relative_error(robot.bias_torque(q, qd), times(C, qd) + g) < 1e-12
    p, CTqd, g_again = robot.momentum_terms(q, qd)
    assert relative_error(p, times(M, qd)) < 1e-12
    assert relative_error(CTqd, times(np.swapaxes(C, -1, -2), qd)) < 1e-12
    assert relative_error(g_again, g) < 1e-12
    assert relative_error(robot.forward_dynamics(q, qd, tau), qdd) < 1e-10


def test_energies_by_their_slopes(robot: tangere.Robot) -> None:
    """dU/dq = g, dT/dqd = p, dT/dq = C^T qd, and T = 1/2 qd^T M qd."""
    q, qd, _ = states(robot, 50)
    p, CTqd, g = robot.momentum_terms(q, qd)
    assert relative_error(slope(lambda x: robot.energy(x, qd)[1], q), g) < TORQUE_SLOPE
    assert relative_error(slope(lambda x: robot.energy(q, x)[0], qd), p) < TORQUE_SLOPE
    assert relative_error(slope(lambda x: robot.energy(x, qd)[0], q), CTqd) < TORQUE_SLOPE
    kinetic = 0.5 * np.einsum("...i,...ij,...j->...", qd, robot.mass_matrix(q), qd)
    assert relative_error(robot.energy(q, qd)[0], kinetic) < 1e-12


def test_derivatives_of_inverse_dynamics(robot: tangere.Robot) -> None:
    q, qd, qdd = states(robot, 50)
    dq, dqd, dqdd = robot.inverse_dynamics_derivatives(q, qd, qdd)
    assert relative_error(dq, slope(lambda x: robot.inverse_dynamics(x, qd, qdd), q)) < TORQUE_SLOPE
    assert relative_error(dqd, slope(lambda x: robot.inverse_dynamics(q, x, qdd), qd)) < TORQUE_SLOPE
    assert relative_error(dqdd, slope(lambda x: robot.inverse_dynamics(q, qd, x), qdd)) < TORQUE_SLOPE


def test_energy_balance_of_a_motion() -> None:
    """Two seconds of a driven arm by Runge-Kutta 4 at 2 ms: its energy changes by the work of the torques, no more.

    The method's own error is of fourth order: 1e-6 J of 100 J, and 16 times more at twice the step.
    """
    robot = loaded("ur5e")

    def torque(t: float, q: Array, qd: Array) -> Array:
        return np.asarray(robot.gravity_torque(q) + np.sin(3 * t + np.arange(6)) * (20, 20, 10, 3, 3, 1) - 0.5 * qd)

    def drift(h: float) -> float:
        def rate(t: float, x: Array) -> Array:
            q, qd = x[:6], x[6:12]
            tau = torque(t, q, qd)
            return np.concatenate([qd, robot.forward_dynamics(q, qd, tau), [tau @ qd]])

        x = np.array([0.1, -1.2, 1.0, -0.5, 0.8, 0.0, *np.zeros(6), 0.0])
        start = sum(robot.energy(x[:6], x[6:12]))
        for k in range(round(2.0 / h)):
            t = k * h
            a = rate(t, x)
            b = rate(t + h / 2, x + h / 2 * a)
            c = rate(t + h / 2, x + h / 2 * b)
            d = rate(t + h, x + h * c)
            x = x + h / 6 * (a + 2 * b + 2 * c + d)
        assert abs(x[12]) > 10.0  # work was done
        return abs(float(sum(robot.energy(x[:6], x[6:12])) - start - x[12]))

    coarse, fine = drift(4e-3), drift(2e-3)
    assert fine < 1e-6
    assert fine < coarse / 8


# ------------------------------------------------------------------------------------------------------- kinematics


def test_jacobian_is_the_slope_of_the_pose(robot: tangere.Robot) -> None:
    """Linear rows: dp/dq; angular rows: (dR/dq) R^T = skew(column), base axes."""
    q = states(robot, 50)[0]
    J, R = robot.jacobian(q), robot.pose(q)[:, :3, :3]
    assert relative_error(J[:, :3], slope(lambda x: robot.pose(x)[:, :3, 3], q)) < SLOPE
    dR = slope(lambda x: robot.pose(x)[:, :3, :3], q)
    for k in range(robot.dof):
        spin = dR[..., k] @ np.swapaxes(R, -1, -2)
        assert relative_error(J[:, 3:, k], np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=-1)) < SLOPE


def test_jacobians_of_points_and_links(robot: tangere.Robot, rng: np.random.Generator) -> None:
    """At a point of a link (one point, or one per state), at its origin, and at its centre of mass."""
    q = states(robot, 20)[0]
    Jv, Jw = robot.link_jacobians(q)
    frames = robot.link_poses(q)
    for link in range(1, robot.dof + 1):
        point = rng.normal(size=3)

        def place(x: Array, link: int = link, point: Array = point) -> Array:
            T = robot.link_poses(x)[:, link - 1]
            return np.asarray(T[:, :3, :3] @ point + T[:, :3, 3])

        J = robot.jacobian(q, link=link, point=point)
        assert relative_error(J[:, :3], slope(place, q)) < SLOPE
        assert np.array_equal(J[:, 3:], robot.jacobian(q, link)[:, 3:])
        assert np.array_equal(Jw[:, link - 1], J[:, 3:])
        assert np.array_equal(J, robot.jacobian(q, link, np.broadcast_to(point, (20, 3))))
        assert np.array_equal(robot.jacobian(q, link=link), robot.jacobian(q, link, [0.0, 0.0, 0.0]))
        assert not np.any(J[:, :, link:])
        body, load_ = robot.model.links[link - 1], robot.model.payload if link == robot.dof else None
        centre = np.asarray(body.com)
        if load_ is not None:
            centre = (body.mass * centre + load_.mass * load_.com) / (body.mass + load_.mass)
        at_centre = robot.jacobian(q, link=link, point=centre)
        assert relative_error(Jv[:, link - 1], at_centre[:, :3]) < 1e-13
    assert relative_error(frames[:, -1] @ robot.model.T_flange_tcp, robot.pose(q)) < 1e-13


def test_jacobian_rate(robot: tangere.Robot) -> None:
    q, qd, _ = states(robot, 50)
    rate = (robot.jacobian(q + STEP * qd) - robot.jacobian(q - STEP * qd)) / (2 * STEP)
    expected = np.einsum("...ij,...j->...i", rate, qd)
    assert relative_error(robot.jacobian_rate_times_velocity(q, qd), expected) < TORQUE_SLOPE


def test_pose_and_jacobian_against_plain_products(robot: tangere.Robot) -> None:
    for q in states(robot, 20)[0]:
        assert relative_error(robot.pose(q), tcp_pose(robot.model, q)) < 1e-13
        assert relative_error(robot.jacobian(q), tcp_jacobian(robot.model, q)) < 1e-13


# ----------------------------------------------------------------------------------------------- what a call accepts

METHODS: dict[str, int] = {
    "pose": 1, "link_poses": 1, "jacobian": 1, "link_jacobians": 1, "jacobian_rate_times_velocity": 2,
    "mass_matrix": 1, "coriolis_matrix": 2, "gravity_torque": 1, "bias_torque": 2, "inverse_dynamics": 3,
    "forward_dynamics": 3, "momentum_terms": 2, "inverse_dynamics_derivatives": 3, "energy": 2, "regressor": 3,
}  # fmt: skip


def call(robot: tangere.Robot, method: str, *args: Any) -> tuple[Array, ...]:
    result = getattr(robot, method)(*args)
    return result if isinstance(result, tuple) else (result,)


class Marked(np.ndarray):
    """A subclass of ndarray, as units or tables bring along."""


def forms_of(x: Array) -> dict[str, Any]:
    strided = np.zeros((*x.shape[:-1], 2 * x.shape[-1]))
    strided[..., ::2] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    return {
        "list": x.tolist(),
        "tuple": tuple(x.tolist()) if x.ndim == 1 else tuple(map(tuple, x.tolist())),
        "Fortran order": np.asfortranarray(x),
        "every second": strided[..., ::2],
        "backwards": np.ascontiguousarray(x[..., ::-1])[..., ::-1],
        "read-only": frozen,
        "subclass": x.view(Marked),
        "big-endian": x.astype(">f8"),
        "list of arrays": list(x),
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["ur10e", "scara"])
def test_any_layout_gives_the_same(name: str, method: str) -> None:
    robot = ROBOTS[name]
    args = states(robot, 5)[: METHODS[method]]
    for single in (True, False):
        plain = [np.ascontiguousarray(x[0] if single else x) for x in args]
        expected = call(robot, method, *plain)
        kept = [x.copy() for x in plain]
        for form in forms_of(plain[0]):
            result = call(robot, method, *(forms_of(x)[form] for x in plain))
            for ours, wanted in zip(result, expected, strict=True):
                assert np.array_equal(ours, wanted), form
                assert type(ours) in (np.ndarray, float)
        for x, before in zip(plain, kept, strict=True):
            assert np.array_equal(x, before)  # arguments are never written to


def test_numbers_that_are_not_doubles() -> None:
    """Integers, truth values and float32 are read as what they are."""
    robot = ROBOTS["ur10e"]
    assert np.array_equal(robot.pose([0, -1, 1, 2, 0, 1]), robot.pose([0.0, -1.0, 1.0, 2.0, 0.0, 1.0]))
    assert np.array_equal(robot.pose(np.arange(6, dtype=np.int8)), robot.pose(np.arange(6.0)))
    assert np.array_equal(robot.pose([True] * 6), robot.pose(np.ones(6)))
    single = np.linspace(-1, 1, 6, dtype=np.float32)
    assert np.array_equal(robot.pose(single), robot.pose(single.astype(float)))
    assert robot.pose(single).dtype == np.float64


@pytest.mark.parametrize("name", ["ur10e", "scara"])
def test_leading_axes(name: str) -> None:
    """Any number of them, broadcast between the arguments, none lost where a batch is empty."""
    robot = ROBOTS[name]
    n = robot.dof
    q, qd, qdd = (x.reshape(3, 4, n) for x in states(robot, 12))
    for method, count in METHODS.items():
        args = (q, qd, qdd)[:count]
        whole = call(robot, method, *args)
        one = call(robot, method, *(x[1, 2] for x in args))
        for w, o in zip(whole, one, strict=True):
            assert np.shape(w) == (3, 4, *np.shape(o))
            assert relative_error(w[1, 2], o) < 1e-12
        for empty in ((0,), (3, 0)):
            for e, o in zip(call(robot, method, *(np.zeros((*empty, n)) for _ in args)), one, strict=True):
                assert np.shape(e) == (*empty, *np.shape(o))
    spread = np.broadcast_to(qd[0, 0], (3, 1, n))
    assert np.array_equal(robot.bias_torque(q[:, :1], qd[0, 0]), robot.bias_torque(q[:, :1], spread))
    assert robot.inverse_dynamics(q[:, :1], qd[:1], qdd[0, 0]).shape == (3, 4, n)
    point = np.zeros((4, 3))
    assert robot.jacobian(q, link=n, point=point).shape == (3, 4, 6, n)
    assert robot.jacobian(q[0, 0], link=n, point=point).shape == (4, 6, n)


def test_results_are_fresh_and_writable() -> None:
    robot = ROBOTS["ur10e"]
    q = np.zeros(6)
    first = robot.mass_matrix(q)
    again = first.copy()
    robot.mass_matrix(np.ones(6))
    assert np.array_equal(first, again)
    first[0, 0] = 7.0
    assert robot.mass_matrix(q)[0, 0] != 7.0


@pytest.mark.parametrize("name", list(ROBOTS))
def test_pickle_and_deepcopy(name: str) -> None:
    robot = ROBOTS[name]
    q, qd, qdd = states(robot, 3)
    for twin in (pickle.loads(pickle.dumps(robot)), copy.deepcopy(robot), copy.copy(robot)):
        assert repr(twin) == repr(robot)
        for method, count in METHODS.items():
            for a, b in zip(*(call(r, method, *(q, qd, qdd)[:count]) for r in (twin, robot)), strict=True):
                assert np.array_equal(a, b)
        assert np.array_equal(twin.rotor_inertia, robot.rotor_inertia)


def test_what_a_robot_says_about_itself() -> None:
    robot = tangere.robot("ur10e")
    assert (robot.name, robot.dof) == ("ur10e", 6)
    assert repr(robot) == "Robot('ur10e', parameters='official', dof=6)"
    assert robot.drives is robot.model.drives
    assert np.array_equal(robot.tau_max, [j.tau_max for j in robot.model.joints])
    for array in (robot.q_min, robot.q_max, robot.qd_max, robot.tau_max, robot.rotor_inertia, robot.revolute):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_threads_compute_at_the_same_time() -> None:
    """Batches release the interpreter: four threads on one robot, each with its own result."""
    robot = ROBOTS["ur10e"]
    q, qd, qdd = states(robot, 4000)
    T = robot.pose(q)
    expected = [robot.inverse_dynamics(q + k, qd, qdd) for k in range(4)]
    solutions = robot.inverse_kinematics(T).q
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(5):
            same = np.array_equal(robot.inverse_dynamics(q + k, qd, qdd), expected[k])
            if not (same and np.array_equal(robot.inverse_kinematics(T).q, solutions)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
