"""Laws that any rigid arm obeys: the quantities compared with each other, by differences and along a motion.

The numbers themselves are compared with peers in test_peers.py; what a call accepts is in test_calls.py.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from oracles import lagrange, random_arm, random_link, random_pose, relative_error, tcp_jacobian, tcp_pose

import tangere
from tangere.model.loading import load
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


METHODS: dict[str, int] = {
    "pose": 1, "link_poses": 1, "jacobian": 1, "link_jacobians": 1, "jacobian_rate_times_velocity": 2,
    "mass_matrix": 1, "coriolis_matrix": 2, "gravity_torque": 1, "bias_torque": 2, "inverse_dynamics": 3,
    "forward_dynamics": 3, "momentum_terms": 2, "inverse_dynamics_derivatives": 3, "energy": 2, "regressor": 3,
}  # fmt: skip


def call(robot: tangere.Robot, method: str, *args: Any) -> tuple[Array, ...]:
    result = getattr(robot, method)(*args)
    return result if isinstance(result, tuple) else (result,)


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


def times(A: Array, x: Array) -> Array:
    """Matrix times vector, row by row of a batch."""
    return np.asarray(np.einsum("...ij,...j->...i", A, x))


def test_torques_fit_together(robot: tangere.Robot) -> None:
    """tau = M qdd + C qd + g; p = M qd; forward undoes inverse. 1e-10: the condition of M times rounding."""
    q, qd, qdd = states(robot, 200)
    M, C, g = robot.mass_matrix(q), robot.coriolis_matrix(q, qd), robot.gravity_torque(q)
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
