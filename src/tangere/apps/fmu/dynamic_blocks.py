"""The blocks of motion: forward dynamics (dynamics), inverse dynamics and the computed-torque controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tangere.apps.fmu.kinematic_blocks import DH_SOURCE, POSE, pose_of, quaternion_sign
from tangere.apps.fmu.part import (
    ACCELERATION,
    CLOSE,
    EXACT,
    FRICTION,
    POSITION,
    TORQUE,
    UNLIMITED,
    VELOCITY,
    Answer,
    ArmNumbers,
    Equations,
    Kind,
    Part,
    arm_parameters,
    motion_inputs,
)
from tangere.apps.fmu.variables import Group, parameter, real_input, real_output

if TYPE_CHECKING:
    from tangere.apps.fmu.check import Asked
    from tangere.types import Array

WRENCH = ("Force", "Force", "Force", "Torque", "Torque", "Torque")  # types of its elements
PERIOD = 1e-3  # [s] of the comparison with the library
STEPS = 200  # of it
_FEATHERSTONE = "R. Featherstone: Rigid Body Dynamics Algorithms, 2008"

MASS = Part("MASS", ("parameters", "plain_friction", "friction_slope"), header="part_mass.h")
PLANT = Part(
    "PLANT",
    ("forward_dynamics", "energy", "mass_matrix", "jacobian_rate", "inverse_dynamics_derivatives", "momentum_terms"),
    header="part_plant.h",
    memory=(("PL_before", 0, 4),),
    equations=Equations(
        "Forward dynamics",
        (
            "M(q) qdd + C(q, qd) qd + g(q) + friction(qd) = tau + tau_ext + J(q)^T wrench",
            "friction = coulomb tanh(qd / width) + viscous qd",
            "M contains rotor_inertia on its diagonal; kinetic energy = qd^T M qd / 2",
        ),
        "States q and qd. In co-simulation the inputs are held over a step, which is integrated by the classical "
        "Runge-Kutta method of order 4 in equal internal steps no longer than step_max, and short enough for friction. "
        "Error of a free swing of a UR10e over 0.5 s: 4e-9 J at 1 ms, 16 times less at half the step. Joint and torque "
        "limits are not applied.",
        (DH_SOURCE, _FEATHERSTONE),
    ),
)  # fmt: skip
INVERSE = Part(
    "INVERSE",
    ("inverse_dynamics", "inverse_dynamics_derivatives", "gravity_torque"),
    header="part_control.h",
    equations=Equations(
        "Inverse dynamics",
        ("tau = M(q) qdd + C(q, qd) qd + g(q) + friction(qd)", "friction = coulomb tanh(qd / width) + viscous qd"),
        "The torque that gives this motion with nothing touching the arm.",
        (DH_SOURCE, _FEATHERSTONE),
    ),
)  # fmt: skip
CONTROL = Part(
    "CONTROL",
    ("inverse_dynamics", "inverse_dynamics_derivatives", "jacobian", "jacobian_rate", "servo_acceleration"),
    header="part_control.h",
    equations=Equations(
        "Computed torque",
        (
            "e = q_des - q",
            "tau = M(q) (qdd_des + kp e + kv de/dt) + C(q, qd) qd + g(q) + friction(qd) - J^T wrench",
            "exact model:  d2e/dt2 + kv de/dt + kp e = 0   for every joint by itself",
        ),
        "The wrench is subtracted only with feed_wrench (the controller block). The arm block computes tau at every "
        "sample and holds it between.",
        ("J. Y. S. Luh, M. W. Walker, R. P. C. Paul: Resolved-acceleration control of mechanical manipulators, 1980",),
    ),
)  # fmt: skip


def held_torque(arm: ArmNumbers) -> Array:
    """Joint torques (n,) that hold the arm where it begins."""
    return arm.robot.gravity_torque(arm.q_start)


def plant(arm: ArmNumbers, tau: str) -> list[Group]:
    """The arm itself: torques and pushes in, motion out. tau: key of the torque, an input or held by a controller."""
    begin, forces, state = ("PL_q_start", "PL_qd_start"), (tau, "PL_wrench", "PL_tau_ext"), ("PL_q", "PL_qd")
    tau_max, n = np.minimum(arm.robot.tau_max, UNLIMITED), arm.dof
    at, speed, rate, torque = (arm.of_joints(*types) for types in (POSITION, VELOCITY, ACCELERATION, TORQUE))
    return [
        parameter("PL_q_start", "q_start", (n,), "joint positions at the start", at, arm.q_start, tunable=False),
        parameter("PL_qd_start", "qd_start", (n,), "joint velocities at the start", speed, 0.0, tunable=False),
        parameter("STEP_MAX", "step_max", (), "longest internal step of the integrator (co-simulation)", "Duration",
                  1e-3, low=1e-6),
        *([] if tau != "PL_tau" else [real_input(
            "PL_tau", "tau", (n,), "joint torques, gravity included", torque, held_torque(arm), nominal=10.0,
            limits=(-tau_max, tau_max))]),
        real_input("PL_wrench", "wrench", (6,), "force and moment of the environment on the tcp, base axes", WRENCH,
                   nominal=10.0),
        real_input("PL_tau_ext", "tau_ext", (n,), "external torque at the joints, beside the wrench", torque,
                   nominal=10.0),
        real_output("PL_q", "q", (n,), "joint positions", at, ("=PL_q",), ("PL_q_start",), nominal=1.0,
                    state=True),
        real_output("PL_qd", "qd", (n,), "joint velocities", speed, ("=PL_qd",), ("PL_qd_start",),
                    nominal=1.0, state=True),
        real_output("PL_dq", "der(q)", (n,), "rate of the joint positions", speed, ("=PL_qd",), begin,
                    causality="local", derivative_of="PL_q"),
        real_output("PL_qdd", "qdd", (n,), "joint accelerations", rate, (*state, *forces),
                    (*arm.dynamic, "TOOL", *FRICTION), nominal=10.0, derivative_of="PL_qd"),
        real_output("PL_kinetic", "kinetic_energy", (), "kinetic energy", "Energy", state, arm.dynamic, nominal=10.0),
        real_output("PL_potential", "potential_energy", (), "potential energy, 0 with all mass at the base", "Energy",
                    ("PL_q",), arm.static, nominal=100.0),
        *pose_of(arm, "PL", "PL_q"),
    ]  # fmt: skip


def inverse_dynamics(arm: ArmNumbers) -> list[Group]:
    """Motion in, torque out."""
    return [
        *motion_inputs(arm, "ID"),
        real_output("ID_tau", "tau", (arm.dof,), "joint torques that give this motion", arm.of_joints(*TORQUE),
                    ("ID_q", "ID_qd", "ID_qdd"), (*arm.dynamic, *FRICTION), nominal=10.0),
        real_output("ID_g", "gravity_torque", (arm.dof,), "joint torques that hold the arm", arm.of_joints(*TORQUE),
                    ("ID_q",), arm.static, nominal=10.0),
    ]  # fmt: skip


def gains(arm: ArmNumbers) -> list[Group]:
    """PD gains of computed torque."""
    from tangere.control.computed_torque import KP  # here: the list of kinds needs no controller

    return [
        parameter("KP", "kp", (arm.dof,), "gain of the position error", "SquaredRate", KP, low=0.0),
        parameter("KV", "kv", (arm.dof,), "gain of the velocity error; 2 sqrt(kp) is critical", "Rate",
                  2.0 * KP**0.5, low=0.0),
    ]  # fmt: skip


def desired(arm: ArmNumbers) -> list[Group]:
    """Where the arm should be."""
    return motion_inputs(arm, "CT", "desired ", suffix="_des")


def controller(arm: ArmNumbers) -> list[Group]:
    """Computed torque with PD."""
    inputs = ("CT_q_des", "CT_qd_des", "CT_qdd_des", "CT_q", "CT_qd", "CT_wrench")
    return [
        *gains(arm),
        Group("FEED", "feed_wrench", (), "Boolean", "parameter", "tunable",
              "subtract what the measured wrench does to the joints", start=(0,)),
        *desired(arm),
        *motion_inputs(arm, "CT", "measured ", count=2),
        real_input("CT_wrench", "wrench", (6,), "measured force and moment on the tcp, base axes", WRENCH,
                   nominal=10.0),
        real_output("CT_tau", "tau", (arm.dof,), "joint torques, gravity included", arm.of_joints(*TORQUE), inputs,
                    (*arm.dynamic, "TOOL", *FRICTION, "KP", "KV", "FEED"), nominal=10.0),
    ]  # fmt: skip


def torque_of(b: Asked, q: Array, qd: Array, qdd: Array) -> Array:
    """tau (n,) [Nm] that the motion needs, friction included."""
    tau = b.robot.inverse_dynamics(q, qd, qdd)
    return np.asarray(tau if b.friction is None else tau + b.friction.torque(qd))


class Motion:
    """The library's arm, integrated as the block says it does: Runge-Kutta of order 4 in equal short steps."""

    def __init__(self, b: Asked) -> None:
        self.robot, self.friction = b.robot, b.friction
        self.q, self.qd = b.start("q_start").copy(), b.start("qd_start").copy()
        self.step_max = float(b.start("step_max")[0])

    def acceleration(self, q: Array, qd: Array, tau: Array) -> Array:
        friction = 0.0 if self.friction is None else self.friction.torque(qd)
        return np.asarray(self.robot.forward_dynamics(q, qd, tau - friction))

    def step(self, tau: Array) -> None:
        """One period under tau + tau_ext."""
        rate = 0.0
        if self.friction is not None:  # [1/s] the fastest that friction can act, which bounds the step
            slope = self.friction.coulomb / self.friction.width + self.friction.viscous
            rate = float(np.diag(np.linalg.inv(self.robot.mass_matrix(self.q))) @ slope)
        n = max(1, int(np.ceil(PERIOD / self.step_max - 1e-9)), int(np.ceil(PERIOD * rate)))
        h = PERIOD / n
        for _k in range(n):
            q, v = self.q, self.qd
            a1 = self.acceleration(q, v, tau)
            v2 = v + 0.5 * h * a1
            a2 = self.acceleration(q + 0.5 * h * v, v2, tau)
            v3 = v + 0.5 * h * a2
            a3 = self.acceleration(q + 0.5 * h * v2, v3, tau)
            v4 = v + h * a3
            a4 = self.acceleration(q + h * v3, v4, tau)
            self.q = q + h / 6.0 * (v + 2.0 * (v2 + v3) + v4)
            self.qd = v + h / 6.0 * (a1 + 2.0 * (a2 + a3) + a4)


def pushed(dof: int, k: int) -> Array:
    """tau_ext (n,) [Nm] of period k: 20 Nm on the second joint for a while (on the only one of an arm that has one)."""
    push = np.zeros(dof)
    push[min(1, dof - 1)] = 20.0 if 50 <= k < 100 else 0.0
    return push


def _ask_dynamics(b: Asked) -> str:
    motion = Motion(b)
    heavy = np.diag(b.robot.mass_matrix(motion.q))
    for k in range(STEPS):
        tau = b.robot.gravity_torque(motion.q) + 2.0 * b.rng.normal(size=b.robot.dof) * heavy
        push = pushed(b.robot.dof, k)
        b.set(tau=tau, tau_ext=push)
        b.step()
        motion.step(tau + push)
        b.compare("q", motion.q)
        b.compare("qd", motion.qd)
    kinetic, potential = b.robot.energy(motion.q, motion.qd)
    b.compare("kinetic_energy", kinetic)
    b.compare("potential_energy", potential)
    b.compare("position", b.robot.pose(motion.q)[:3, 3])
    return f"{STEPS} steps under random torques and a push: motion, energy, pose"


def _ask_inverse_dynamics(b: Asked) -> str:
    for _k in range(40):
        q, qd, qdd = (b.rng.uniform(-most, most, b.robot.dof) for most in (6.0, 2.0, 9.0))
        b.set(q=q, qd=qd, qdd=qdd)
        b.compare("tau", torque_of(b, q, qd, qdd))
        b.compare("gravity_torque", b.robot.gravity_torque(q))
    return "40 random motions: torque, gravity"


def _ask_controller(b: Asked) -> str:
    kp, kv = b.start("kp"), b.start("kv")
    for _k in range(40):
        q, qd, q_des, qd_des, qdd_des = b.rng.uniform(-2, 2, (5, b.robot.dof))
        b.set(q=q, qd=qd, q_des=q_des, qd_des=qd_des, qdd_des=qdd_des)
        b.compare("tau", torque_of(b, q, qd, qdd_des + kp * (q_des - q) + kv * (qd_des - qd)))
    return "40 random errors: computed torque"


KINDS = (
    Kind(
        name="dynamics",
        suffix="Dynamics",
        title="Forward dynamics",
        summary="the moving arm: torques and external forces in; motion, energy and pose out",
        text="The moving arm: joint torques and external forces in, motion, energy and pose of the tool out.",
        colour=(248, 113, 113),
        parts=(MASS, POSE, PLANT),
        groups=lambda arm: [*arm_parameters(arm), quaternion_sign(), *plant(arm, "PL_tau")],
        answers=(Answer("dynamics", _ask_dynamics, CLOSE),),
    ),
    Kind(
        name="inverse-dynamics",
        suffix="InverseDynamics",
        title="Inverse dynamics",
        summary="motion in; the joint torques that it needs out",
        text="Joint torques that a motion needs.",
        colour=(251, 146, 60),
        parts=(MASS, INVERSE),
        groups=lambda arm: [*arm_parameters(arm), *inverse_dynamics(arm)],
        answers=(Answer("inverse dynamics", _ask_inverse_dynamics, EXACT),),
        memory=False,
    ),
    Kind(
        name="controller",
        suffix="Controller",
        title="Computed-torque controller",
        summary="computed torque with PD: reference and measurement in; joint torques out",
        text="Joint torques that make the arm follow a reference: inverse dynamics with a PD per joint.",
        colour=(167, 139, 250),
        parts=(MASS, CONTROL),
        groups=lambda arm: [*arm_parameters(arm), *controller(arm)],
        answers=(Answer("controller", _ask_controller, CLOSE),),
        memory=False,
    ),
)  # fmt: skip
