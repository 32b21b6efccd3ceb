"""Every quantity of every arm against Pinocchio and MuJoCo, which share no line with the library.

Errors are relative to max(1, |value|). Pinocchio is built from the Model (tests/oracles.py) and computes with
recursions in spatial vectors; ours are in moments of mass with regrouped parameters. MuJoCo is built from our own MJCF.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import bodies, pinocchio_model, random_arm, random_link, random_pose, relative_error

import tangere
from tangere.model.loading import load
from tangere.model.model import Array, Model, Payload
from tangere.model.urdf import from_urdf
from tangere.model.urdf_text import to_urdf
from tangere.plants.scene.mjcf import to_mjcf

pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed (extra test)")

URS = tuple(name for name in tangere.models() if name.startswith("ur"))
SETS = (
    ("ur10e", "ur-ros2"), ("ur10e", "000-C"), ("ur10e", "000-D"), ("ur10e", "000-E"), ("ur10e", "000-F"),
    ("ur10e", "000-H"), ("ur10e", "001-table8"), ("ur3e", "001-table8"), ("ur5e", "001-table8"),
    ("ur16e", "001-table8"), ("ur10", "002"), ("ur10", "002-centroid"),
)  # fmt: skip
STATES = 1000
# What is promised. Reached at the time of writing: 7e-16 for poses and Jacobians, 4e-13 for the worst, forward dynamics
# and d tau/dq, where the condition of M and sums of many terms multiply rounding.
TOLERANCE = 1e-10


def dressed(model: Model, seed: int) -> Model:
    """The model with a random payload, a random tool and gravity in any direction, as on a moving base."""
    rng = np.random.default_rng(seed)
    body = random_link(rng, "payload")
    gravity = rng.normal(size=3)
    return dataclasses.replace(
        model,
        payload=Payload(body.mass, body.com, body.inertia),
        T_flange_tcp=random_pose(rng),
        gravity=9.81 * gravity / np.linalg.norm(gravity),
    )


@dataclasses.dataclass(frozen=True)
class States:
    """Random states: two turns of angle, twice a UR's speed, tool accelerations of several g."""

    q: Array
    qd: Array
    qdd: Array
    point: Array


def states(model: Model, count: int, seed: int = 7) -> States:
    rng = np.random.default_rng(seed)
    shape = (count, model.dof)
    q, qd, qdd = rng.uniform(-2 * np.pi, 2 * np.pi, shape), rng.uniform(-4.0, 4.0, shape), rng.normal(size=shape) * 8.0
    return States(q, qd, qdd, rng.uniform(-0.5, 0.5, (model.dof, 3)))


def centres(model: Model) -> list[Array]:
    """Centre of mass of every link in its frame, the payload joined to the last."""
    m, h = np.zeros(model.dof), np.zeros((model.dof, 3))
    for link, mass, com, _ in bodies(model):
        m[link] += mass
        h[link] += mass * com
    return list(h / m[:, None])


def parameters(model: Model) -> Array:
    """(10 n): m, m c, and the six entries of the inertia about the origin of the link's frame."""
    out = np.zeros((model.dof, 10))
    for link, m, c, inertia in bodies(model):
        about_origin = inertia + m * (c @ c * np.eye(3) - np.outer(c, c))
        out[link] += [m, *(m * c), *about_origin[np.triu_indices(3)]]
    return out.ravel()


def to_joint_frame(T: Array) -> Array:
    """Linear map (10, 10) from our parameters in a link frame to Pinocchio's in its joint frame, at T_joint_link.

    By the pseudo-inertia [[S, h], [h^T, m]], which a change of frame takes to T P T^T; S = tr(I)/2 - I. Pinocchio
    stores Ixx Ixy Iyy Ixz Iyz Izz.
    """
    columns = []
    for unit in np.eye(10):
        inertia = np.zeros((3, 3))
        inertia[np.triu_indices(3)] = unit[4:]
        inertia = inertia + np.triu(inertia, 1).T
        P = np.zeros((4, 4))
        P[:3, :3] = np.trace(inertia) / 2 * np.eye(3) - inertia
        P[:3, 3] = P[3, :3] = unit[1:4]
        P[3, 3] = unit[0]
        P = T @ P @ T.T
        moved = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
        columns.append([P[3, 3], *P[:3, 3], *moved[(0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)]])
    return np.array(columns).T


def pinocchio_answers(model: Model, s: States, rotor: Array | None = None) -> dict[str, Array]:
    """Every quantity of every state, by Pinocchio; `rotor` goes in as Pinocchio's armature."""
    n, armature = model.dof, np.zeros(model.dof) if rotor is None else rotor
    pm, _ = pinocchio_model(model)
    pm.armature = armature
    tips = [pm.frames[pm.getFrameId(link.name)] for link in model.links]
    for i, (tip, centre) in enumerate(zip(tips, centres(model), strict=True)):
        for name, point in ((f"point {i}", s.point[i]), (f"centre {i}", centre)):
            place = tip.placement * pin.SE3(np.eye(3), point)
            pm.addFrame(pin.Frame(name, tip.parentJoint, place, pin.FrameType.OP_FRAME))
    data = pm.createData()
    tcp, here = pm.getFrameId("tcp"), pin.LOCAL_WORLD_ALIGNED
    link_ids = [pm.getFrameId(link.name) for link in model.links]
    point_ids = [pm.getFrameId(f"point {i}") for i in range(n)]
    centre_ids = [pm.getFrameId(f"centre {i}") for i in range(n)]
    A = np.zeros((10 * n, 10 * n))
    for i, joint in enumerate(model.joints):
        A[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = to_joint_frame(np.asarray(joint.T_joint_link))
    out: dict[str, list[Any]] = {}

    def keep(name: str, value: Any) -> None:
        out.setdefault(name, []).append(np.array(value))  # a copy: Pinocchio writes into the same data again

    for q, qd, qdd in zip(s.q, s.qd, s.qdd, strict=True):
        pin.forwardKinematics(pm, data, q, qd, np.zeros(n))
        pin.updateFramePlacements(pm, data)
        keep("pose", data.oMf[tcp].homogeneous)
        keep("link_poses", [data.oMf[i].homogeneous for i in link_ids])
        keep("jacobian_rate_times_velocity", pin.getFrameClassicalAcceleration(pm, data, tcp, here).vector)
        pin.computeJointJacobians(pm, data, q)
        keep("jacobian", pin.getFrameJacobian(pm, data, tcp, here).reshape(6, n))
        keep("point_jacobians", [pin.getFrameJacobian(pm, data, i, here).reshape(6, n) for i in point_ids])
        at_centres = np.array([pin.getFrameJacobian(pm, data, i, here).reshape(6, n) for i in centre_ids])
        keep("link_jacobians 0", at_centres[:, :3])
        keep("link_jacobians 1", at_centres[:, 3:])
        M = np.array(pin.crba(pm, data, q)).reshape(n, n)
        keep("mass_matrix", np.triu(M) + np.triu(M, 1).T)
        C = np.array(pin.computeCoriolisMatrix(pm, data, q, qd)).reshape(n, n)
        keep("coriolis_matrix", C)
        keep("momentum_terms 0", out["mass_matrix"][-1] @ qd)
        keep("momentum_terms 1", C.T @ qd)
        keep("momentum_terms 2", pin.computeGeneralizedGravity(pm, data, q))
        keep("gravity_torque", out["momentum_terms 2"][-1])
        keep("bias_torque", pin.nonLinearEffects(pm, data, q, qd))
        tau = np.array(pin.rnea(pm, data, q, qd, qdd))
        keep("inverse_dynamics", tau)
        keep("forward_dynamics", pin.aba(pm, data, q, qd, tau + 0.1 * qdd))
        pin.computeRNEADerivatives(pm, data, q, qd, qdd)
        keep("inverse_dynamics_derivatives 0", data.dtau_dq.reshape(n, n))
        keep("inverse_dynamics_derivatives 1", data.dtau_dv.reshape(n, n))
        keep("inverse_dynamics_derivatives 2", out["mass_matrix"][-1])
        keep("energy 0", 0.5 * qd @ out["mass_matrix"][-1] @ qd)
        keep("energy 1", pin.computePotentialEnergy(pm, data, q))
        keep("regressor", np.array(pin.computeJointTorqueRegressor(pm, data, q, qd, qdd)).reshape(n, 10 * n) @ A)
    return {name: np.array(value) for name, value in out.items()}


def our_answers(robot: tangere.Robot, s: States) -> dict[str, Array]:
    """The same by the robot, in one batch each."""
    q, qd, qdd = s.q, s.qd, s.qdd
    tau = robot.inverse_dynamics(q, qd, qdd)
    out: dict[str, Any] = {
        "pose": robot.pose(q),
        "link_poses": robot.link_poses(q),
        "jacobian_rate_times_velocity": robot.jacobian_rate_times_velocity(q, qd),
        "jacobian": robot.jacobian(q),
        "point_jacobians": np.stack(
            [robot.jacobian(q, link=i + 1, point=s.point[i]) for i in range(robot.dof)], axis=1
        ),
        "mass_matrix": robot.mass_matrix(q),
        "coriolis_matrix": robot.coriolis_matrix(q, qd),
        "gravity_torque": robot.gravity_torque(q),
        "bias_torque": robot.bias_torque(q, qd),
        "inverse_dynamics": tau,
        "forward_dynamics": robot.forward_dynamics(q, qd, tau + 0.1 * qdd),
        "regressor": robot.regressor(q, qd, qdd),
    }
    for name, parts in (
        ("link_jacobians", robot.link_jacobians(q)),
        ("momentum_terms", robot.momentum_terms(q, qd)),
        ("inverse_dynamics_derivatives", robot.inverse_dynamics_derivatives(q, qd, qdd)),
        ("energy", robot.energy(q, qd)),
    ):
        out |= {f"{name} {k}": part for k, part in enumerate(parts)}
    return out


def compare(robot: tangere.Robot, s: States, rotor: Array | None = None) -> None:
    """All quantities within TOLERANCE of Pinocchio, and tau = Y pi with the model's own parameters."""
    theirs, ours = pinocchio_answers(robot.model, s, rotor), our_answers(robot, s)
    assert set(ours) == set(theirs)
    errors = {name: relative_error(ours[name], value) for name, value in theirs.items()}
    assert {name: error for name, error in errors.items() if not error < TOLERANCE} == {}
    rigid = ours["inverse_dynamics"] - (0.0 if rotor is None else rotor * s.qdd)  # Y is of the links alone
    assert relative_error(ours["regressor"] @ parameters(robot.model), rigid) < TOLERANCE


@cache
def ur(name: str, *, dress: bool = False, parameters: str | None = None) -> tangere.Robot:
    model = load(name, parameters=parameters)
    return tangere.Robot(dressed(model, len(name)) if dress else model)


@pytest.mark.parametrize("dress", [False, True], ids=["bare", "payload, tool, gravity"])
@pytest.mark.parametrize("name", URS)
def test_every_ur_against_pinocchio(name: str, dress: bool) -> None:
    robot = ur(name, dress=dress)
    compare(robot, states(robot.model, STATES, seed=URS.index(name)))


@pytest.mark.parametrize(("name", "parameters"), SETS)
def test_every_parameter_set_against_pinocchio(name: str, parameters: str) -> None:
    robot = ur(name, parameters=parameters)
    compare(robot, states(robot.model, 50))


def test_the_nine_arms_are_all_there() -> None:
    assert set(URS) == set(tangere.models()) - {"pendulum", "planar3r", "scara"}


@pytest.mark.parametrize("rotor", [True, [0.9, 1.1, 0.7, 0.2, 0.1, 0.05]], ids=["of the drives", "given"])
def test_rotor_inertia_against_pinocchios_armature(rotor: Any) -> None:
    """M, p, inverse and forward dynamics, derivatives and kinetic energy all contain it; C, g and Y do not."""
    model = dressed(load("ur10e"), 3)
    robot = tangere.Robot(model, rotor)
    values = np.array(model.drives.rotor_inertia if rotor is True else rotor)
    assert np.array_equal(robot.rotor_inertia, values)
    assert np.min(values) > 0.0
    compare(robot, states(model, 100), values)
    q = states(model, 1).q[0]
    added = robot.mass_matrix(q) - tangere.Robot(model).mass_matrix(q)
    assert np.max(np.abs(added - np.diag(values))) < 1e-13


# ------------------------------------------------------------------------------------------ robots that are not URs

CALIBRATION = """
kinematics:
  shoulder: {x: 0, y: 0, z: 0.1809, roll: 0, pitch: 0, yaw: 2.1e-05}
  upper_arm: {x: 0.0002, y: 0, z: 0, roll: 1.5704, pitch: 0, yaw: -4e-05}
  forearm: {x: -0.613, y: 0, z: 0, roll: -0.0023, pitch: 0.0011, yaw: -5e-05}
  wrist_1: {x: -0.571, y: 0.0009, z: 0.1742, roll: 0.0054, pitch: 0.0003, yaw: 0.0001}
  wrist_2: {x: 5e-05, y: -0.1197, z: 0.0001, roll: 1.5698, pitch: 0, yaw: -1e-05}
  wrist_3: {x: -9e-05, y: 0.1167, z: -9e-05, roll: 1.5716, pitch: 3.1415926, yaw: -3.1413}
"""


@pytest.mark.parametrize("name", ["scara", "planar3r", "pendulum"])
def test_teaching_robots_against_pinocchio(name: str) -> None:
    robot = tangere.robot(name)
    compare(robot, states(robot.model, 100))


@pytest.mark.parametrize("kinds", ["r", "p", "rrprr", "prrrprr", "rrrrrr"])
def test_arms_with_any_frames_against_pinocchio(kinds: str) -> None:
    """Random axes, revolute and prismatic, payload and tool: nothing for a special case to hide behind."""
    robot = tangere.Robot(random_arm(5, kinds), np.linspace(0.1, 0.5, len(kinds)))
    compare(robot, states(robot.model, 50), robot.rotor_inertia)


def test_urdf_import_against_pinocchio(tmp_path: Path) -> None:
    """A UR that came back from URDF is the same arm to the digits of the text, in the traced form."""
    path = tmp_path / "arm.urdf"
    path.write_text(to_urdf(load("ur5e")))
    robot = tangere.robot(path, payload=(1.5, (0.01, 0.02, 0.03)), gravity=(1.0, 2.0, -9.0))
    compare(robot, states(robot.model, 50))
    assert from_urdf(path).dof == 6


def test_calibrated_arm_against_pinocchio(tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed (extra calibration)")
    path = tmp_path / "calibration.yaml"
    path.write_text(CALIBRATION)
    robot = tangere.robot("ur10e", calibration=path, payload=(3.0, (0.0, 0.0, 0.05)), tool=(0.0, 0.0, 0.1))
    moved = np.max(np.abs(robot.pose(np.zeros(6)) - tangere.robot("ur10e", tool=(0.0, 0.0, 0.1)).pose(np.zeros(6))))
    assert moved > 1e-4
    compare(robot, states(robot.model, 50))


# ----------------------------------------------------------------------------------------------------------- MuJoCo


@pytest.mark.parametrize("name", [*URS, "scara", "planar3r", "pendulum", "ur10e with rotors"])
def test_against_mujoco(name: str) -> None:
    """M, C qd + g, the tool's pose and forward dynamics at 1e-9.

    Why not 1e-10: MuJoCo keeps principal moments, found by an iterative eigen-decomposition, and quaternions.
    """
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed (extra test)")
    name, _, with_rotors = name.partition(" ")
    model = load(name) if with_rotors else dressed(load(name), 11)
    robot = tangere.Robot(model, bool(with_rotors))
    peer = mujoco.MjModel.from_xml_string(to_mjcf(model, rotor_inertia=bool(with_rotors)))
    peer.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # limits are not part of rigid-body dynamics
    data, n = mujoco.MjData(peer), model.dof
    s = states(model, 200)
    tau = robot.inverse_dynamics(s.q, s.qd, 1.1 * s.qdd)
    theirs: dict[str, list[Any]] = {"M": [], "bias": [], "p": [], "R": [], "qdd": []}
    for q, qd, torque in zip(s.q, s.qd, tau, strict=True):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, qd, torque
        mujoco.mj_forward(peer, data)
        M = np.zeros((n, n))
        mujoco.mj_fullM(peer, data, M)
        theirs["M"].append(M)
        for key, value in (("bias", data.qfrc_bias), ("p", data.site("tcp").xpos), ("qdd", data.qacc)):
            theirs[key].append(np.array(value))
        theirs["R"].append(np.array(data.site("tcp").xmat).reshape(3, 3))
    T = robot.pose(s.q)
    ours = {
        "M": robot.mass_matrix(s.q),
        "bias": robot.bias_torque(s.q, s.qd),
        "p": T[:, :3, 3],
        "R": T[:, :3, :3],
        "qdd": robot.forward_dynamics(s.q, s.qd, tau),
    }
    errors = {key: relative_error(value, np.array(theirs[key])) for key, value in ours.items()}
    assert {key: error for key, error in errors.items() if not error < 1e-9} == {}
