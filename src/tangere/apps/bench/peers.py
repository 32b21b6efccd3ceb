"""The peers of `tangere bench`: the same arm in other libraries, and how each is asked for the same answers.

A recipe is source text, because timeit compiles it in place: no function call of ours stands around theirs. Each is the
fastest documented way that we found to the complete answer as numpy arrays or floats; where a library offers several,
the alternatives that lost are named. Arrays that a library fills in place (MuJoCo) are bound outside the timed text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from tangere.model.inertia import with_payload
from tangere.model.model import Array, Model
from tangere.plants.scene.mjcf import to_mjcf

# What each method of the Robot takes; the order is that of the table on screen.
ARGUMENTS = {
    "pose": ("q",),
    "jacobian": ("q",),
    "jacobian_rate_times_velocity": ("q", "qd"),
    "mass_matrix": ("q",),
    "coriolis_matrix": ("q", "qd"),
    "gravity_torque": ("q",),
    "bias_torque": ("q", "qd"),
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
    "momentum_terms": ("q", "qd"),
    "inverse_dynamics_derivatives": ("q", "qd", "qdd"),
    "energy": ("q", "qd"),
    "regressor": ("q", "qd", "qdd"),
}


@dataclass(frozen=True)
class Recipe:
    """Python text for one method: statements, then the expressions that are the answer."""

    steps: tuple[str, ...]
    answer: tuple[str, ...]
    as_ours: Callable[[tuple[Array, ...]], tuple[Array, ...]] | None = None  # for the comparison, never timed

    def single(self) -> str:
        """One statement line for timeit."""
        return "; ".join((*self.steps, *self.answer))

    def looped(self, arguments: Iterable[str]) -> str:
        """A loop over the rows of `Q`, `QD`, ... that stores answer k of row i in `out_k[i]`."""
        names = list(arguments)
        rows = ", ".join(name.upper() for name in names)
        head = f"for i, {names[0]} in enumerate({rows}):"
        if len(names) > 1:
            head = f"for i, ({', '.join(names)}) in enumerate(zip({rows})):"
        stored = (f"out_{k}[i] = {expression}" for k, expression in enumerate(self.answer))
        return "\n".join([head, *(f"    {line}" for line in (*self.steps, *stored))])

    def raw(self, namespace: dict[str, Any]) -> tuple[Array, ...]:
        """The answer for the state in `namespace`, copied out of the library's own memory."""
        exec("\n".join(self.steps), namespace)
        return tuple(np.array(eval(expression, namespace), dtype=float) for expression in self.answer)

    def result(self, namespace: dict[str, Any]) -> tuple[Array, ...]:
        """The same in the form of our methods."""
        values = self.raw(namespace)
        return values if self.as_ours is None else self.as_ours(values)


@dataclass(frozen=True)
class Peer:
    """A library that has some of our methods. parallel: text over whole arrays that uses every core."""

    name: str
    version: str
    namespace: dict[str, Any]
    recipes: dict[str, Recipe]
    parallel: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class IKPeer:
    """A library with all inverse kinematics solutions of an arm.

    single: expression for one pose `T`. found: expression for its valid solutions (k, 6), from the value `answer` of
    `single`. batch: statement for a list of poses `poses` on `threads` threads, or "" where the library has none.
    """

    name: str
    version: str
    namespace: dict[str, Any]
    single: str
    found: str
    batch: str = ""


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def find(model: Model) -> tuple[list[Peer], list[IKPeer], list[str]]:
    """The peers that are installed and can hold this arm, and the names of those that are not installed."""
    peers: list[Peer] = []
    ik_peers: list[IKPeer] = []
    missing: list[str] = []
    for make in (pinocchio, mujoco):
        try:
            peers.append(make(model))
        except ImportError:
            missing.append(make.__name__)
    for make_ik in (eaik, ur_analytic_ik):
        try:
            ik_peers += make_ik(model)
        except ImportError:
            missing.append(make_ik.__name__.replace("_", "-"))
    return peers, ik_peers, missing


def pinocchio(model: Model) -> Peer:
    """Pinocchio, built joint by joint from the model: its joint frame is ours before T_joint_link."""
    pin = import_module("pinocchio")

    def se3(T: Array) -> Any:
        return pin.SE3(np.ascontiguousarray(T[:3, :3]), np.ascontiguousarray(T[:3, 3]))

    arm, parent, T = pin.Model(), 0, np.eye(4)
    links = (*model.links[:-1], with_payload(model.links[-1], model.payload))
    for joint, link in zip(model.joints, links, strict=True):
        kind = pin.JointModelRZ() if joint.kind == "revolute" else pin.JointModelPZ()
        parent = arm.addJoint(parent, kind, se3(T @ joint.T_parent_joint), joint.name)
        T = np.asarray(joint.T_joint_link)
        arm.appendBodyToJoint(parent, pin.Inertia(link.mass, link.com, link.inertia), se3(T))
    tcp = arm.addFrame(pin.Frame("tcp", parent, se3(T @ model.T_flange_tcp), pin.FrameType.OP_FRAME))
    arm.gravity.linear = np.array(model.gravity, dtype=float)
    to_pin = _parameter_map(model)
    names = {
        "pin": pin, "model": arm, "data": arm.createData(), "tcp": tcp, "aligned": pin.LOCAL_WORLD_ALIGNED,
        "zero": np.zeros(model.dof), "threads": cores(), "pool": pin.ModelPool(arm, cores()),
    }  # fmt: skip
    recipes = {
        # framesForwardKinematics and data.oMf[tcp] costs 1.5 times as much
        "pose": Recipe(
            ("pin.forwardKinematics(model, data, q)",), ("pin.updateFramePlacement(model, data, tcp).homogeneous",)
        ),
        # computeJointJacobians and getFrameJacobian costs 1.2 times as much
        "jacobian": Recipe((), ("pin.computeFrameJacobian(model, data, q, tcp, aligned)",)),
        "jacobian_rate_times_velocity": Recipe(
            ("pin.forwardKinematics(model, data, q, qd, zero)",),
            ("pin.getFrameClassicalAcceleration(model, data, tcp, aligned).vector",),
        ),
        # crba of Pinocchio 4 fills both triangles: nothing to add. Convention.WORLD is slower for a short chain
        "mass_matrix": Recipe((), ("pin.crba(model, data, q)",)),
        "coriolis_matrix": Recipe((), ("pin.computeCoriolisMatrix(model, data, q, qd)",)),
        "gravity_torque": Recipe((), ("pin.computeGeneralizedGravity(model, data, q)",)),
        "bias_torque": Recipe((), ("pin.nonLinearEffects(model, data, q, qd)",)),
        "inverse_dynamics": Recipe((), ("pin.rnea(model, data, q, qd, qdd)",)),
        "forward_dynamics": Recipe((), ("pin.aba(model, data, q, qd, tau)",)),
        # .dot is faster than @ for small matrices. Slower: rnea(q, 0, qd) - g for p; computeRNEADerivatives of a second
        # model without gravity, from which C^T qd = 1/2 d(M qd)/dq^T qd; computeRNEADerivatives and getCoriolisMatrix
        "momentum_terms": Recipe(
            (),
            (
                "pin.crba(model, data, q).dot(qd)",
                "qd.dot(pin.computeCoriolisMatrix(model, data, q, qd))",
                "pin.computeGeneralizedGravity(model, data, q)",
            ),
        ),
        "inverse_dynamics_derivatives": Recipe(
            ("d = pin.computeRNEADerivatives(model, data, q, qd, qdd)",), ("d[0]", "d[1]", "d[2]")
        ),
        # computeMechanicalEnergy and reading both parts costs the same within 5 %
        "energy": Recipe(
            (), ("pin.computeKineticEnergy(model, data, q, qd)", "pin.computePotentialEnergy(model, data)")
        ),
        "regressor": Recipe(
            (), ("pin.computeJointTorqueRegressor(model, data, q, qd, qdd)",), lambda values: (values[0] @ to_pin,)
        ),
    }
    parallel = {  # the arrays are (N, n); their transposes are the column-major (n, N) that Pinocchio wants, no copies
        "inverse_dynamics": "pin.rneaInParallel(threads, pool, Q.T, QD.T, QDD.T, out_0.T)",
        "forward_dynamics": "pin.abaInParallel(threads, pool, Q.T, QD.T, TAU.T, out_0.T)",
    }
    return Peer("pinocchio", str(pin.__version__), names, recipes, parallel)


def _parameter_map(model: Model) -> Array:
    """Matrix (10 n, 10 n) that turns our inertial parameters into Pinocchio's, so that Y_ours = Y_pinocchio @ map.

    Ours: (m, h, Ixx, Ixy, Ixz, Iyy, Iyz, Izz) at the link frame; Pinocchio's: (m, h, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) at
    the joint frame. The pseudo-inertia P = [[tr(I)/2 1 - I, h], [h^T, m]] moves by P -> T P T^T, linear in both.
    """
    out = np.zeros((10 * model.dof, 10 * model.dof))
    ours = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    theirs = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
    for i, joint in enumerate(model.joints):
        T = np.asarray(joint.T_joint_link)
        for k in range(10):
            values = np.eye(10)[k]
            inertia = np.zeros((3, 3))
            for (row, column), value in zip(ours, values[4:], strict=True):
                inertia[row, column] = inertia[column, row] = value
            P = np.zeros((4, 4))
            P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
            P[:3, 3] = P[3, :3] = values[1:4]
            P[3, 3] = values[0]
            P = T @ P @ T.T
            inertia = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
            out[10 * i : 10 * i + 10, 10 * i + k] = [P[3, 3], *P[:3, 3], *(inertia[entry] for entry in theirs)]
    return out


def mujoco(model: Model) -> Peer:
    """MuJoCo from our own MJCF, asked through the stages of its pipeline that each answer needs."""
    mj = import_module("mujoco")
    arm = mj.MjModel.from_xml_string(to_mjcf(model))
    off = mj.mjtDisableBit  # what a bare arm does not need must not cost MuJoCo time in mj_forward
    arm.opt.disableflags = int(off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT | off.mjDSBL_ACTUATION)
    data = mj.MjData(arm)
    n = model.dof
    J = np.zeros((6, n))
    names = {
        "mj": mj, "model": arm, "data": data, "position": data.site_xpos[0], "rotation": data.site_xmat[0],
        "qpos": data.qpos, "qvel": data.qvel, "qacc": data.qacc, "applied": data.qfrc_applied, "parts": data.energy,
        "J": J, "Jv": J[:3], "Jw": J[3:], "M": np.zeros((n, n)), "torque": np.zeros(n), "last": arm.nbody - 1,
    }  # fmt: skip
    position = ("qpos[:] = q", "mj.mj_kinematics(model, data)")
    moments = (*position, "mj.mj_comPos(model, data)")
    rates = (*moments, "qvel[:] = qd", "mj.mj_comVel(model, data)")
    rest = (*moments, "qvel[:] = 0.0", "mj.mj_comVel(model, data)")
    inertia = "mj.mj_crb(model, data)"

    def pose(values: tuple[Array, ...]) -> tuple[Array, ...]:
        T = np.eye(4)
        T[:3, 3], T[:3, :3] = values[0], values[1].reshape(3, 3)
        return (T,)

    recipes = {
        "pose": Recipe(position, ("position", "rotation"), pose),
        "jacobian": Recipe((*moments, "mj.mj_jacSite(model, data, Jv, Jw, 0)"), ("J",)),
        "jacobian_rate_times_velocity": Recipe(
            (*rates, "mj.mj_jacDot(model, data, Jv, Jw, position, last)"), ("J.dot(qd)",)
        ),
        "mass_matrix": Recipe((*moments, inertia, "mj.mj_fullM(model, data, M)"), ("M",)),
        "gravity_torque": Recipe((*rest, "mj.mj_rne(model, data, 0, torque)"), ("torque",)),
        "bias_torque": Recipe((*rates, "mj.mj_rne(model, data, 0, torque)"), ("torque",)),
        "inverse_dynamics": Recipe((*rates, "qacc[:] = qdd", "mj.mj_rne(model, data, 1, torque)"), ("torque",)),
        # mj_crb, mj_factorM, mj_rne and mj_solveM one by one cost 1.4 times as much
        "forward_dynamics": Recipe(
            ("qpos[:] = q", "qvel[:] = qd", "applied[:] = tau", "mj.mj_forward(model, data)"), ("qacc",)
        ),
        "energy": Recipe(
            (*rates, inertia, "mj.mj_energyPos(model, data)", "mj.mj_energyVel(model, data)"), ("parts[1]", "parts[0]")
        ),
    }
    return Peer("mujoco", str(mj.__version__), names, recipes)


def eaik(model: Model) -> list[IKPeer]:
    """EAIK from the DH parameters, tool at the flange only. Its `Q` alone is timed, without the flags `is_LS`."""
    module = import_module("eaik.IK_DH")
    if model.dh is None or not _bare_flange(model):
        return []
    arm = module.DhRobot(np.array(model.dh.alpha), np.array(model.dh.a), np.array(model.dh.d))
    if not arm.hasKnownDecomposition():
        return []
    return [
        IKPeer(
            "eaik",
            version("eaik"),
            {"arm": arm},
            single="arm.IK(T).Q",
            found="(lambda s: s.Q[~s.is_LS])(arm.IK(T))",
            batch="for s in arm.IK_batched(poses, threads): s.Q",
        )
    ]


def ur_analytic_ik(model: Model) -> list[IKPeer]:
    """ur-analytic-ik, which has the nominal UR arms by name, tool at the flange only."""
    module = import_module("ur_analytic_ik")
    arm = getattr(module, model.name, None)
    if arm is None or not _bare_flange(model):
        return []
    text = "arm.inverse_kinematics(T)"
    return [IKPeer("ur-analytic-ik", version("ur_analytic_ik"), {"arm": arm}, single=text, found=text)]


def _bare_flange(model: Model) -> bool:
    return bool(np.array_equal(model.T_flange_tcp, np.eye(4)))
