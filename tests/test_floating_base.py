"""Arms on a floating base against Pinocchio's free flyer, and by conserved momentum and energy.

Pinocchio's free flyer has the linear velocity in body axes, ours is inertial: u_pin = X u with X = blkdiag(R^T, I),
generalised forces go back with X^T, and accelerations differ by omega x v. 1e-10 relative is asked; 1e-13 is reached.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from oracles import golden_ur10e, lagrange, pinocchio_model, random_arm, random_link, random_pose, relative_error

from tangere.apps.textbook.floating_base import FloatingBase
from tangere.errors import InvalidValue
from tangere.kinematics.rotation import matrix_from_quaternion, quaternion_from_ypr

TOLERANCE = 1e-10
_rng = np.random.default_rng(0)
BODIES = {
    "ur10e on a satellite": FloatingBase(golden_ur10e(), random_link(_rng, "satellite"), T_body_arm=random_pose(_rng)),
    "five joints, one sliding": FloatingBase(random_arm(31, "rrprr"), random_link(_rng, "body")),
    "yaw-pitch-roll": FloatingBase(random_arm(32, "prr"), random_link(_rng, "body"), orientation="ypr"),
}


@pytest.fixture(params=list(BODIES))
def arm(request: pytest.FixtureRequest) -> FloatingBase:
    return BODIES[request.param]


def random_q(arm: FloatingBase, rng: np.random.Generator, count: int) -> np.ndarray:
    q = rng.uniform(-2, 2, (count, arm.coordinates))
    if arm.orientation == "quaternion":
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=-1, keepdims=True)
    else:
        q[:, 4] *= 0.7  # pitch within +-1.4 rad, off gimbal lock
    return q


class Peer:
    """One state of Pinocchio's free flyer."""

    def __init__(self, arm: FloatingBase, q: np.ndarray) -> None:
        import pinocchio as pin

        self.pin, n = pin, arm.model.dof
        self.model, self.data = pinocchio_model(arm.model, arm.body, arm.T_body_arm)
        quaternion = q[3:7] if arm.orientation == "quaternion" else quaternion_from_ypr(q[3:6])
        self.R = matrix_from_quaternion(quaternion)
        self.q = np.concatenate([q[:3], quaternion[[1, 2, 3, 0]], q[-n:]])
        self.X = np.eye(6 + n)
        self.X[:3, :3] = self.R.T

    def acceleration(self, u: np.ndarray, udot: np.ndarray) -> np.ndarray:
        a = self.X @ udot
        a[:3] -= np.cross(u[3:6], self.R.T @ u[:3])
        return np.asarray(a)


def test_against_the_free_flyer_of_pinocchio(arm: FloatingBase) -> None:
    pytest.importorskip("pinocchio")
    rng = np.random.default_rng(1)
    q = random_q(arm, rng, 200)
    u, udot = rng.normal(size=(2, 200, arm.dof))
    tau, force = rng.normal(size=(200, arm.model.dof)), rng.normal(size=(200, arm.dof))
    M, b, g = arm.mass_matrix(q), arm.bias_force(q, u), arm.gravity_force(q)
    total, free = arm.inverse_dynamics(q, u, udot), arm.forward_dynamics(q, u, tau, force)
    momentum, (kinetic, potential) = arm.momentum(q, u), arm.energy(q, u)
    link, point = arm.model.dof - 2, np.array([0.1, -0.2, 0.3])
    J_tcp, J_point = arm.jacobian(q), arm.jacobian(q, link + 1, point)
    poses = arm.link_poses(q)
    for i in range(200):
        peer = Peer(arm, q[i])
        pin, pm, data, X = peer.pin, peer.model, peer.data, peer.X
        v, a = X @ u[i], peer.acceleration(u[i], udot[i])
        expected = np.array(pin.crba(pm, data, peer.q))
        expected = np.triu(expected) + np.triu(expected, 1).T
        assert relative_error(M[i], X.T @ expected @ X) < TOLERANCE
        assert relative_error(total[i], X.T @ pin.rnea(pm, data, peer.q, v, a)) < TOLERANCE
        gravity = X.T @ pin.computeGeneralizedGravity(pm, data, peer.q)
        assert relative_error(g[i], gravity) < TOLERANCE
        rest = peer.acceleration(u[i], np.zeros(arm.dof))
        assert relative_error(b[i], X.T @ pin.rnea(pm, data, peer.q, v, rest) - gravity) < TOLERANCE
        applied = np.concatenate([np.zeros(6), tau[i]]) + force[i]
        qdd = pin.aba(pm, data, peer.q, v, X @ applied)  # X^-T = X: its only block is a rotation
        # divides by the smallest inertia (3e-4 kg m2): the rounding of M and b is magnified to 2e-12
        assert relative_error(peer.acceleration(u[i], free[i]), qdd) < TOLERANCE
        assert relative_error(kinetic[i], pin.computeKineticEnergy(pm, data, peer.q, v)) < TOLERANCE
        assert relative_error(potential[i], pin.computePotentialEnergy(pm, data, peer.q)) < TOLERANCE
        h = pin.computeCentroidalMomentum(pm, data, peer.q, v)
        com = pin.centerOfMass(pm, data, peer.q)
        assert relative_error(momentum[i, :3], h.linear) < TOLERANCE
        assert relative_error(momentum[i, 3:], h.angular + np.cross(com, h.linear)) < TOLERANCE
        tcp = pm.getFrameId("tcp")
        J = pin.computeFrameJacobian(pm, data, peer.q, tcp, pin.LOCAL_WORLD_ALIGNED) @ X
        assert relative_error(J_tcp[i], J) < TOLERANCE
        pin.framesForwardKinematics(pm, data, peer.q)
        frame = pm.getFrameId(arm.model.links[link].name)
        assert relative_error(poses[i, link], data.oMf[frame].homogeneous) < TOLERANCE
        J = pin.computeFrameJacobian(pm, data, peer.q, frame, pin.LOCAL_WORLD_ALIGNED) @ X
        lever = data.oMf[frame].rotation @ point
        J[:3] += np.cross(J[3:].T, lever).T
        assert relative_error(J_point[i], J) < TOLERANCE


def test_composite_bodies_and_newton_euler_agree(arm: FloatingBase) -> None:
    """Column k of M is the force of a unit acceleration without speed and gravity: two algorithms, one matrix."""
    q = random_q(arm, np.random.default_rng(2), 20)
    weightless = replace(arm, model=replace(arm.model, gravity=np.zeros(3)))
    M = arm.mass_matrix(q)
    columns = weightless.inverse_dynamics(q[:, None], np.zeros(arm.dof), np.eye(arm.dof))
    assert relative_error(np.swapaxes(columns, -1, -2), M) < TOLERANCE
    assert np.linalg.eigvalsh(M).min() > 0.0


def test_forward_undoes_inverse_dynamics(arm: FloatingBase) -> None:
    rng = np.random.default_rng(3)
    q = random_q(arm, rng, 50)
    u, udot = rng.normal(size=(2, 50, arm.dof))
    total = arm.inverse_dynamics(q, u, udot)
    tau = total[:, 6:]
    force = np.concatenate([total[:, :6], np.zeros((50, arm.model.dof))], axis=-1)
    assert relative_error(arm.forward_dynamics(q, u, tau, force), udot) < 1e-9  # condition of M up to 1e5
    S = arm.selection()
    assert np.array_equal(force + tau @ S, total)


def test_a_resting_base_is_the_fixed_arm() -> None:
    model = golden_ur10e()
    arm = FloatingBase(model, random_link(np.random.default_rng(4), "body"))
    rng = np.random.default_rng(5)
    for _ in range(10):
        q, qd = rng.uniform(-3, 3, 6), rng.normal(size=6)
        M, C, g = lagrange(model, q, qd)
        whole = np.concatenate([[0.3, -0.2, 0.5, 1.0, 0.0, 0.0, 0.0], q])
        u = np.concatenate([np.zeros(6), qd])
        assert relative_error(arm.mass_matrix(whole)[6:, 6:], M) < TOLERANCE
        assert relative_error(arm.bias_force(whole, u)[6:], C @ qd) < TOLERANCE
        assert relative_error(arm.gravity_force(whole)[6:], g) < TOLERANCE


def test_velocity_map_and_its_inverse(arm: FloatingBase) -> None:
    rng = np.random.default_rng(6)
    q, u = random_q(arm, rng, 50), rng.normal(size=(50, arm.dof))
    E, inverse = arm.velocity_map(q), arm.velocity_map_inverse(q)
    assert relative_error(E @ inverse, np.broadcast_to(np.eye(arm.dof), (50, arm.dof, arm.dof))) < 1e-12
    # by finite differences: moving q along qdot = E^+ u moves the tcp with J u
    rate, h = (inverse @ u[..., None])[..., 0], 1e-6
    ahead, behind = arm.link_poses(q + h * rate), arm.link_poses(q - h * rate)
    velocity = (ahead - behind)[:, -1, :3, 3] / (2 * h)
    J = arm.jacobian(q, arm.model.dof)
    assert relative_error((J @ u[..., None])[:, :3, 0], velocity) < 1e-7  # second order, h = 1e-6: 1e-9 reached
    R_dot = (arm.body_pose(q + h * rate) - arm.body_pose(q - h * rate))[:, :3, :3] / (2 * h)
    W = np.swapaxes(arm.body_pose(q)[:, :3, :3], -1, -2) @ R_dot  # = skew(B_omega)
    assert relative_error(np.stack([W[:, 2, 1], W[:, 0, 2], W[:, 1, 0]], axis=-1), u[:, 3:6]) < 1e-7
    if arm.orientation == "quaternion":
        assert np.abs(np.sum(q[:, 3:7] * rate[:, 3:7], axis=-1)).max() < 1e-14  # stays on the unit sphere


def rk4(arm: FloatingBase, q: Any, u: Any, tau: Any, h: float, steps: int) -> tuple[Any, Any, float]:
    """Classical Runge-Kutta of fourth order over (q, u) and the work of the joints; constant tau."""

    def slope(q: Any, u: Any) -> tuple[Any, Any, float]:
        return arm.velocity_map_inverse(q) @ u, arm.forward_dynamics(q, u, tau), float(tau @ u[6:])

    work = 0.0
    for _ in range(steps):
        k1 = slope(q, u)
        k2 = slope(q + h / 2 * k1[0], u + h / 2 * k1[1])
        k3 = slope(q + h / 2 * k2[0], u + h / 2 * k2[1])
        k4 = slope(q + h * k3[0], u + h * k3[1])
        dq, du, dw = ((a + 2 * b + 2 * c + d) * h / 6 for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
        q, u, work = q + dq, u + du, work + dw
        if arm.orientation == "quaternion":
            q[3:7] /= np.linalg.norm(q[3:7])
    return q, u, work


def start(arm: FloatingBase) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(7)
    q, u = random_q(arm, rng, 1)[0], rng.normal(size=arm.dof) * 0.5
    return q, u, rng.normal(size=arm.model.dof) * 0.1


@pytest.mark.parametrize("name", ["five joints, one sliding", "yaw-pitch-roll"])
def test_momentum_is_conserved_in_free_space(name: str) -> None:
    """The joints may do what they like: with no gravity, momentum only drifts by the integrator, as h^4."""
    arm = BODIES[name]
    arm = replace(arm, model=replace(arm.model, gravity=np.zeros(3)))
    q, u, tau = start(arm)
    before, drift = arm.momentum(q, u), []
    for h, steps in ((4e-3, 50), (2e-3, 100)):
        q1, u1, _ = rk4(arm, q, u, tau, h, steps)
        drift.append(np.max(np.abs(arm.momentum(q1, u1) - before)))
        assert np.max(np.abs(u1 - u)) > 0.01  # it did move
    assert drift[1] < 1e-10  # 5e-12 reached at 2 ms over 0.2 s
    assert drift[1] < drift[0] / 8 or drift[0] < 1e-12  # fourth order: 16 in theory


@pytest.mark.parametrize("name", ["five joints, one sliding", "yaw-pitch-roll"])
def test_energy_balance_and_falling(name: str) -> None:
    """Kinetic + potential energy changes by the work of the joints; momentum changes by weight times time."""
    arm = BODIES[name]
    q, u, tau = start(arm)
    q1, u1, work = rk4(arm, q, u, tau, 2e-3, 100)
    assert sum(arm.energy(q1, u1)) - sum(arm.energy(q, u)) == pytest.approx(work, abs=1e-9)  # 6e-11 J reached
    mass = arm.body.mass + sum(link.mass for link in arm.model.links)
    mass += arm.model.payload.mass if arm.model.payload else 0.0
    gained = (arm.momentum(q1, u1) - arm.momentum(q, u))[:3]
    assert gained == pytest.approx(mass * arm.model.gravity * 0.2, rel=1e-8)


def test_contact_force_enters_by_its_jacobian() -> None:
    """A force at a point changes the momentum at exactly that rate, wherever on the chain it acts."""
    arm = BODIES["ur10e on a satellite"]
    arm = replace(arm, model=replace(arm.model, gravity=np.zeros(3)))
    q, u, tau = start(arm)
    F = np.array([3.0, -5.0, 7.0])
    for link, point in ((0, [0.1, 0.2, 0.3]), (3, [0.0, 0.1, 0.0]), (None, None)):
        J = arm.jacobian(q, link, point)
        udot = arm.forward_dynamics(q, u, tau, J[:3].T @ F)
        h = 1e-6  # second-order central difference along the motion: error 1e-8
        rate = arm.velocity_map_inverse(q) @ u
        change = (arm.momentum(q + h * rate, u + h * udot) - arm.momentum(q - h * rate, u - h * udot)) / (2 * h)
        assert change[:3] == pytest.approx(F, abs=1e-6)


def test_batch_axes_and_lists(arm: FloatingBase) -> None:
    rng = np.random.default_rng(8)
    q = random_q(arm, rng, 6).reshape(2, 3, -1)
    u, udot = rng.normal(size=(2, 2, 3, arm.dof))
    whole = arm.inverse_dynamics(q, u, udot)
    assert whole.shape == (2, 3, arm.dof)
    assert arm.mass_matrix(q).shape == (2, 3, arm.dof, arm.dof)
    assert arm.link_poses(q).shape == (2, 3, arm.model.dof, 4, 4)
    for i in np.ndindex(2, 3):
        assert relative_error(arm.inverse_dynamics(q[i].tolist(), u[i].tolist(), udot[i].tolist()), whole[i]) < 1e-13


def test_bad_input() -> None:
    arm = BODIES["ur10e on a satellite"]
    with pytest.raises(InvalidValue, match=r"q: expected shape \(\.\.\., 13\), got \(12,\)"):
        arm.mass_matrix(np.zeros(12))
    with pytest.raises(InvalidValue, match=r"valid are 0 \(the body\), 1 to 6"):
        arm.jacobian([0, 0, 0, 1, 0, 0, 0] + [0] * 6, link=7)
    with pytest.raises(InvalidValue, match="'quaternion' and 'ypr'"):
        FloatingBase(golden_ur10e(), arm.body, orientation="euler")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="mass"):
        FloatingBase(golden_ur10e(), replace(arm.body, mass=-1.0))
    with pytest.raises(InvalidValue, match="zero quaternion"):
        arm.mass_matrix(np.zeros(13))
    locked = np.array([0, 0, 0, 0.1, np.pi / 2, 0.2, 0, 0, 0])
    with pytest.raises(InvalidValue, match="gimbal lock"):
        BODIES["yaw-pitch-roll"].velocity_map_inverse(locked)
