"""Independent oracles: Pinocchio from a Model, and Lagrange and projected Newton-Euler written out literally.

Nothing here is recursive and nothing here is imported from the library except the data types, so that a mistake
in an algorithm of the library cannot hide by being made twice. Derivatives are taken by the complex step
f'(x) = Im f(x + i h) / h with h = 1e-30: it has no cancellation, so it is exact to rounding for any tiny h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from tangere.model.model import DH, Array, Drives, Joint, JointKind, Link, Model, Payload, Source

STEP = 1e-30  # complex step: only must be far below 1e-16, so that h^2 terms vanish against 1


# ---------------------------------------------------------------------------------------------- models to test with


def dh_model(
    name: str,
    a: Sequence[float],
    d: Sequence[float],
    alpha: Sequence[float],
    masses: Sequence[float],
    coms: Sequence[Sequence[float]],
    inertias: Sequence[Any],
) -> Model:
    """A Model from standard-DH numbers: A_i = Rz(q_i) Tz(d_i) Tx(a_i) Rx(alpha_i)."""
    n = len(a)
    joints = []
    for i in range(n):
        T = np.eye(4)
        T[:3, :3] = rot_x(alpha[i])
        T[:3, 3] = (a[i], 0.0, d[i])
        joints.append(Joint(f"joint_{i + 1}", "revolute", np.eye(4), T, -2 * np.pi, 2 * np.pi, np.inf, np.inf))
    links = [
        Link(f"link_{i + 1}", float(masses[i]), np.array(coms[i], float), np.array(inertias[i], float).reshape(3, 3))
        for i in range(n)
    ]
    dh = DH(np.array(a, float), np.array(d, float), np.array(alpha, float))
    return _model(name, joints, links, dh)


def golden_ur10e() -> Model:
    """The UR10e table at the end of 001, with its impossible I6xx = 0 replaced by 0.0004 (reference set, golden)."""
    inertias = [
        [0.0341, 0.0, -0.0043, 0.0, 0.0353, 0.0001, -0.0043, 0.0001, 0.0216],
        [0.0281, 0.0001, -0.0156, 0.0001, 0.7707, 0.0, -0.0156, 0.0, 0.7694],
        [0.0101, 0.0001, 0.0092, 0.0001, 0.3093, 0.0, 0.0092, 0.0, 0.3065],
        [0.0030, 0.0, 0.0, 0.0, 0.0022, -0.0002, 0.0, -0.0002, 0.0026],
        [0.0030, 0.0, 0.0, 0.0, 0.0022, -0.0002, 0.0, -0.0002, 0.0026],
        [0.0004, 0.0, 0.0, 0.0, 0.0004, 0.0, 0.0, 0.0, 0.0003],
    ]
    return dh_model(
        "ur10e",
        a=[0.0, -0.6127, -0.57155, 0.0, 0.0, 0.0],
        d=[0.1807, 0.0, 0.0, 0.17415, 0.11985, 0.11655],
        alpha=[np.pi / 2, 0.0, 0.0, np.pi / 2, -np.pi / 2, 0.0],
        masses=[7.369, 13.051, 3.989, 2.1, 1.98, 0.615],
        coms=[
            [0.021, 0.0, 0.027], [0.38, 0.0, 0.158], [0.24, 0.0, 0.068],
            [0.0, 0.007, 0.018], [0.0, 0.007, 0.018], [0.0, 0.0, -0.026],
        ],
        inertias=inertias,
    )  # fmt: skip


def random_arm(seed: int, kinds: str = "rrprr", payload: bool = True) -> Model:
    """A serial arm nobody would build: any axes, `kinds` of r(evolute) and p(rismatic) joints, tilted gravity."""
    rng = np.random.default_rng(seed)
    joints, links = [], []
    for i, letter in enumerate(kinds):
        kind: JointKind = "revolute" if letter == "r" else "prismatic"
        joints.append(Joint(f"j{i}", kind, random_pose(rng), random_pose(rng), -3.0, 3.0, np.inf, np.inf))
        links.append(random_link(rng, f"l{i}"))
    model = _model(f"random_{seed}", joints, links, None)
    tool = random_link(rng, "payload")
    return replace(
        model,
        gravity=rng.normal(size=3) * 9.81,
        T_flange_tcp=random_pose(rng),
        payload=Payload(tool.mass, tool.com, tool.inertia) if payload else None,
    )


def random_link(rng: np.random.Generator, name: str) -> Link:
    """A physical rigid body: the inertia of a few random mass points fulfils the triangle inequality by itself."""
    points = rng.normal(size=(5, 3)) * 0.2
    inertia = sum(0.3 * (p @ p * np.eye(3) - np.outer(p, p)) for p in points - points.mean(0))
    return Link(name, float(rng.uniform(0.5, 5.0)), rng.normal(size=3) * 0.2, np.asarray(inertia))


def random_rotation(rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
    """Rotations drawn evenly (Haar) by a normalised Gaussian quaternion; shape (*shape, 3, 3)."""
    v = rng.normal(size=(*shape, 4))
    w, x, y, z = np.moveaxis(v / np.linalg.norm(v, axis=-1, keepdims=True), -1, 0)
    return np.stack([
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ], axis=-1).reshape(*shape, 3, 3)  # fmt: skip


def random_pose(rng: np.random.Generator) -> Array:
    """A random 4x4 pose with a translation of about 0.3 m."""
    T = np.eye(4)
    T[:3, :3] = random_rotation(rng)
    T[:3, 3] = rng.normal(size=3) * 0.3
    return T


def relative_error(actual: Any, expected: Any) -> float:
    """Largest |actual - expected| / max(1, |expected|)."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"shapes differ: {actual.shape} and {expected.shape}"
    return float(np.max(np.abs(actual - expected) / np.maximum(1.0, np.abs(expected)), initial=0.0))


def _model(name: str, joints: list[Joint], links: list[Link], dh: DH | None) -> Model:
    unknown = np.full(len(joints), np.nan)
    return Model(
        name=name, title=name, parameters="test", joints=tuple(joints), links=tuple(links),
        drives=Drives(unknown, unknown, unknown, unknown), gravity=np.array([0.0, 0.0, -9.81]),
        T_flange_tcp=np.eye(4), payload=None, dh=dh, sources=(Source("all", "approximated", "made for tests"),),
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------------- Pinocchio


def pinocchio_model(model: Model, free_flyer: Link | None = None, T_body_arm: Array | None = None) -> tuple[Any, Any]:
    """(pin.Model, pin.Data) of a Model: same q, same link order, payload in the last body, frame "tcp".

    Pinocchio's joint frame is the one after motion(q) and before T_joint_link, so a link's inertia is moved by
    T_joint_link, and the next joint is placed by T_joint_link_prev @ T_parent_joint. Frames named like the links
    carry the poses of `link_poses`. With `free_flyer` the whole arm stands on that body, at T_body_arm, floating
    (first joint "free_flyer": q (x, y, z, qx, qy, qz, qw), velocities linear then angular, both in BODY axes).
    """
    import pinocchio as pin

    def se3(T: Array) -> Any:
        return pin.SE3(np.ascontiguousarray(T[:3, :3]), np.ascontiguousarray(T[:3, 3]))

    pm = pin.Model()
    parent, T_prev = 0, np.eye(4) if T_body_arm is None else T_body_arm
    if free_flyer is not None:
        parent = pm.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "free_flyer")
        body = pin.Inertia(free_flyer.mass, free_flyer.com, free_flyer.inertia)
        pm.appendBodyToJoint(parent, body, pin.SE3.Identity())
    for joint, link in zip(model.joints, model.links, strict=True):
        kind = pin.JointModelRZ() if joint.kind == "revolute" else pin.JointModelPZ()
        parent = pm.addJoint(parent, kind, se3(T_prev @ joint.T_parent_joint), joint.name)
        T_prev = np.asarray(joint.T_joint_link)
        pm.appendBodyToJoint(parent, pin.Inertia(link.mass, link.com, link.inertia), se3(T_prev))
        pm.addFrame(pin.Frame(link.name, parent, se3(T_prev), pin.FrameType.OP_FRAME))
    if model.payload is not None:
        load = pin.Inertia(model.payload.mass, model.payload.com, model.payload.inertia)
        pm.appendBodyToJoint(parent, load, se3(T_prev))
    pm.addFrame(pin.Frame("tcp", parent, se3(T_prev @ model.T_flange_tcp), pin.FrameType.OP_FRAME))
    pm.gravity.linear = np.asarray(model.gravity, float)
    return pm, pm.createData()


# ---------------------------------------------------------------------- kinematics, written out (complex q accepted)


def rot_x(angle: Any) -> Any:
    """Turn about x."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def frames(model: Model, q: Any) -> tuple[list[Any], list[Any]]:
    """Joint frames (before the motion) and link frames of one state, in base axes; q may be complex."""
    T = np.eye(4, dtype=np.asarray(q).dtype)
    before, after = [], []
    for joint, value in zip(model.joints, q, strict=True):
        motion = np.eye(4, dtype=T.dtype)
        if joint.kind == "revolute":
            c, s = np.cos(value), np.sin(value)
            motion[:2, :2] = [[c, -s], [s, c]]
        else:
            motion[2, 3] = value
        before.append(T @ joint.T_parent_joint)
        T = before[-1] @ motion @ joint.T_joint_link
        after.append(T)
    return before, after


def bodies(model: Model) -> list[tuple[int, float, Array, Array]]:
    """(index of the carrying link, mass, centre of mass, inertia about it) of every link and of the payload."""
    out = [(i, k.mass, np.asarray(k.com), np.asarray(k.inertia)) for i, k in enumerate(model.links)]
    if model.payload is not None:
        load = model.payload
        out.append((model.dof - 1, load.mass, np.asarray(load.com), np.asarray(load.inertia)))
    return out


def point_jacobians(model: Model, q: Any, link: int, point: Any) -> tuple[Any, Any, Any, Any]:
    """Position (3,), rotation (3,3), Jv (3,n), Jw (3,n) of a point given in link axes; base axes.

    Jv column: z x (p - o) revolute, z prismatic; Jw column: z revolute, 0 prismatic; zero beyond the link.
    """
    before, after = frames(model, q)
    R, p = after[link][:3, :3], after[link][:3, :3] @ point + after[link][:3, 3]
    Jv = np.zeros((3, model.dof), dtype=R.dtype)
    Jw = np.zeros((3, model.dof), dtype=R.dtype)
    for i in range(link + 1):
        z, o = before[i][:3, 2], before[i][:3, 3]
        if model.joints[i].kind == "revolute":
            Jv[:, i], Jw[:, i] = np.cross(z, p - o), z
        else:
            Jv[:, i] = z
    return p, R, Jv, Jw


def tcp_jacobian(model: Model, q: Any) -> Any:
    """Geometric Jacobian (6, n) at the tcp, linear rows first, base axes."""
    _, _, Jv, Jw = point_jacobians(model, q, model.dof - 1, np.asarray(model.T_flange_tcp)[:3, 3])
    return np.vstack([Jv, Jw])


def tcp_pose(model: Model, q: Any) -> Any:
    """Pose (4, 4) of the tcp in the base."""
    return frames(model, q)[1][-1] @ model.T_flange_tcp


# ---------------------------------------------------------------------------------------------- (a) Lagrange, 000


def mass_matrix(model: Model, q: Any) -> Any:
    """M = sum_k m_k Jv_k^T Jv_k + Jw_k^T R_k I_k R_k^T Jw_k: 000 eqs 71-76, 84-86 with R_k link to base.

    000 calls R_k "base to link"; read literally that would turn the inertia the wrong way.
    """
    M = np.zeros((model.dof, model.dof), dtype=np.asarray(q).dtype)
    for link, m, com, inertia in bodies(model):
        _, R, Jv, Jw = point_jacobians(model, q, link, com)
        M = M + m * Jv.T @ Jv + Jw.T @ R @ inertia @ R.T @ Jw
    return M


def potential_energy(model: Model, q: Any) -> Any:
    """U = - sum_k m_k g . p_k [J], zero in the plane through the base origin: 000 eqs 80-81."""
    return -sum(m * (model.gravity @ point_jacobians(model, q, link, com)[0]) for link, m, com, _ in bodies(model))


def kinetic_energy(model: Model, q: Any, qd: Any) -> float:
    """K = 1/2 qd^T M qd [J]."""
    return float(0.5 * np.asarray(qd) @ mass_matrix(model, np.asarray(q, float)) @ np.asarray(qd))


def lagrange(model: Model, q: Any, qd: Any) -> tuple[Array, Array, Array]:
    """(M, C, g) of one state by Lagrange: Christoffel C (000 eqs 77-79), g = - sum m Jv^T g0 (000 eqs 82-83)."""
    q, qd, n = np.asarray(q, float), np.asarray(qd, float), model.dof
    dM = np.stack([mass_matrix(model, q + 1j * STEP * np.eye(n)[i]).imag / STEP for i in range(n)])  # dM[i] = dM/dq_i
    C = np.zeros((n, n))
    for k, j, i in product(range(n), repeat=3):
        C[k, j] += 0.5 * (dM[i, k, j] + dM[j, k, i] - dM[k, i, j]) * qd[i]
    g = -sum(m * point_jacobians(model, q, link, com)[2].T @ model.gravity for link, m, com, _ in bodies(model))
    return mass_matrix(model, q), C, np.asarray(g)


# -------------------------------------------------------------------------------- (b) projected Newton-Euler, 003


def projected_newton_euler(model: Model, q: Any, qd: Any) -> tuple[Array, Array, Array]:
    """(M, b, g) of one state by 003's projected Newton-Euler method, with the dots on J restored in b:

        b = sum J_S^T m Jdot_S qd + J_R^T (Theta Jdot_R qd + Omega x Theta Omega)

    J_S in base axes, J_R, Theta and Omega in body axes. As printed (without the dots) b is wrong by 15 Nm on a UR10e.
    """
    q, qd, n = np.asarray(q, float), np.asarray(qd, float), model.dof
    M, b, g = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for link, m, com, theta in bodies(model):
        _, R, Js, Jw = point_jacobians(model, q, link, com)
        _, R_step, Js_step, Jw_step = point_jacobians(model, q + 1j * STEP * qd, link, com)
        Jr, Jr_dot, Js_dot = R.T @ Jw, (R_step.T @ Jw_step).imag / STEP, Js_step.imag / STEP
        omega = Jr @ qd
        M += m * Js.T @ Js + Jr.T @ theta @ Jr
        b += m * Js.T @ Js_dot @ qd + Jr.T @ (theta @ Jr_dot @ qd + np.cross(omega, theta @ omega))
        g -= Js.T @ (m * model.gravity)
    return M, b, g


# ------------------------------------------------------------------------------------ 000's tool-down solution


def tool_down_ik(dh: DH, position: Any, yaw: float, tool_length: float = 0.0) -> Array:
    """Every q (k, 6), official convention, of a UR whose tool points straight down: 000 eqs 89-97, corrected.

    R_target = Rz(yaw) Rx(pi) (000 leaves the yaw open); `position` (3,) is the tip, `tool_length` beyond the flange.
    Corrected: eq 89 (q1 from the tip itself, d5 taken off along the arm, sign of s5), eq 90 (atan2, both branches),
    eq 91 (minus a3^2; its sign is tied to q3), eq 92 (this is the external angle), eqs 95-97 (both signs of q5).
    000 works in modified-DH angles with a2, a3 < 0; official = seed + (0, 90, 0, 90, 0, 180) degrees.
    """
    x, y, z = np.asarray(position, float)
    d1, d4, d5, d6, a2, a3 = dh.d[0], dh.d[3], dh.d[4], dh.d[5], dh.a[1], dh.a[2]
    rho = np.hypot(x, y)
    c, s = np.cos(yaw), np.sin(yaw)
    R_target = np.array([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]])
    found = []
    for shoulder, wrist, elbow in product((1.0, -1.0), repeat=3):
        if rho < d4:
            continue
        q1 = np.arctan2(y, x) + np.pi / 2 + shoulder * np.arccos(d4 / rho)  # eq 90
        c1, s1 = np.cos(q1), np.sin(q1)
        h = wrist * d5 - c1 * x - s1 * y  # eq 89: W lies at -h (c1, s1), h > 0 on the "+" branch; wrist = sgn(s5)
        dz = z + d6 + tool_length - d1
        A = np.hypot(h, dz)
        c3 = (A**2 - a2**2 - a3**2) / (2 * a2 * a3)
        if abs(c3) > 1.0:
            continue
        q3 = elbow * np.arccos(c3)  # eq 92
        inner = np.clip((A**2 + a2**2 - a3**2) / (2 * a2 * A), -1.0, 1.0)
        q2 = np.pi / 2 - np.arctan2(dz, h) + elbow * np.arccos(inner)  # eq 91: "+" with q3 >= 0 because a2, a3 < 0
        c23, s23 = np.cos(q2 + q3), np.sin(q2 + q3)
        R03 = np.array([[c1 * c23, -c1 * s23, s1], [s1 * c23, -s1 * s23, -c1], [s23, c23, 0.0]])  # eq 94
        r = R03.T @ R_target  # eq 93
        q5 = np.arctan2(wrist * np.hypot(r[0, 2], r[1, 2]), r[2, 2])  # eq 95
        q4 = np.arctan2(wrist * r[1, 2], wrist * r[0, 2])  # eq 96
        q6 = np.arctan2(wrist * r[2, 1], -wrist * r[2, 0])  # eq 97
        seed = np.array([q1, q2, q3, q4, q5, q6])
        official = seed + np.array([0.0, np.pi / 2, 0.0, np.pi / 2, 0.0, np.pi])
        found.append(np.arctan2(np.sin(official), np.cos(official)))
    return np.array(found).reshape(-1, 6)
