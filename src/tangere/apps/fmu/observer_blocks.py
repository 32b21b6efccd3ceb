"""The blocks that feel: the momentum observer (observer), and the arm under control that has one (arm)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tangere.apps.fmu.dynamic_blocks import (
    CONTROL,
    MASS,
    PERIOD,
    PLANT,
    STEPS,
    Motion,
    desired,
    gains,
    held_torque,
    plant,
    pushed,
    torque_of,
)
from tangere.apps.fmu.kinematic_blocks import POSE, quaternion_sign
from tangere.apps.fmu.part import (
    CLOSE,
    FRICTION,
    TORQUE,
    Answer,
    ArmNumbers,
    Equations,
    Kind,
    Part,
    arm_parameters,
    motion_inputs,
)
from tangere.apps.fmu.variables import Group, parameter, real_input

if TYPE_CHECKING:
    from tangere.apps.fmu.check import Asked
    from tangere.types import Array

# [Nm] residual that counts as a touch where nothing else is said; a fifth of the push that the documents show
THRESHOLD = 5.0
_MOMENTUM = "A. De Luca et al.: Collision detection and safe reaction with the DLR-III lightweight arm, IROS 2006"

OBSERVER = Part(
    "OBSERVER",
    ("momentum_terms", "momentum_balance", "lag_weight", "lag"),
    header="part_observer.h",
    memory=(
        # the first three must follow each other: the C code reads them as one
        ("OB_terms", 2, 0), ("OB_torque", 1, 0), ("OB_time", 0, 1), ("OB_old", 3, 1), ("OB_old_residual", 1, 0),
        ("OB_old_contact", 0, 1), ("OB_old_joint", 0, 1), ("OB_anchored", 0, 1), ("OB_held", 0, 1), ("TICK", 0, 1),
    ),
    equations=Equations(
        "Momentum observer",
        (
            "p = M qd,   beta = C^T qd - g - friction(qd)",
            "y_k = (p_k - p_k-1) / h - tau_k-1 - (beta_k-1 + beta_k) / 2",
            "r_k = r_k-1 + (1 - exp(-K h)) (y_k - r_k-1)      =>      dr/dt = K (tau_ext - r)",
        ),
        "Sampled every period; in co-simulation the observer block samples at the first communication point that is "
        "due, with the time h that has really passed, before it steps. tau is the torque that is held from this "
        "sample to the next: the same signal that goes to the arm. A contact begins when |r| > threshold_on at any "
        "joint and ends when |r| < threshold_off at all. It is not a safety function.",
        (_MOMENTUM,),
    ),
)  # fmt: skip


def detection(arm: ArmNumbers) -> list[Group]:
    """Gain of the observer and thresholds of the touch."""
    from tangere.observe.detect.hysteresis import OFF_RATIO
    from tangere.observe.momentum import GAIN  # here: the list of kinds needs no observer

    n, torque = (arm.dof,), arm.of_joints(*TORQUE)
    return [
        parameter("GAIN", "gain", n, "K of the momentum observer", "Rate", GAIN, low=0.0),
        parameter("ON", "threshold_on", n, "a touch begins above, at any joint", torque, THRESHOLD, low=0.0),
        parameter("OFF", "threshold_off", n, "a touch ends below, at all joints", torque, OFF_RATIO * THRESHOLD,
                  low=0.0),
        parameter("PERIOD", "period", (), "time between samples", "Duration", 1e-3, low=1e-5, tunable=False),
    ]  # fmt: skip


def touch(arm: ArmNumbers, *, depends: tuple[str, ...]) -> list[Group]:
    """What the observer says; changes at samples only."""
    return [
        Group("OB_residual", "residual", (arm.dof,), "Real", "output", "discrete",
              "estimate of the external joint torque", arm.of_joints(*TORQUE), nominal=10.0, depends=depends),
        Group("OB_contact", "contact", (), "Boolean", "output", "discrete", "something touches the arm",
              depends=depends),
        Group("OB_joint", "contact_joint", (), "Integer", "output", "discrete",
              "joint with the largest residual against its threshold when the touch began, 0 while there is none",
              depends=depends),
    ]  # fmt: skip


def observer(arm: ArmNumbers) -> list[Group]:
    """Momentum observer, sampled."""
    return [
        *detection(arm),
        *motion_inputs(arm, "OB", "measured ", count=2),
        real_input("OB_tau", "tau", (arm.dof,), "joint torques that are applied from now to the next sample",
                   arm.of_joints(*TORQUE), held_torque(arm), nominal=10.0),
        *touch(arm, depends=("OB_q", "OB_qd", "OB_tau")),
    ]  # fmt: skip


def arm_with_controller(arm: ArmNumbers) -> list[Group]:
    """The arm, its controller and its observer: reference and pushes in."""
    torque = Group(
        "CT_tau", "tau", (arm.dof,), "Real", "output", "discrete", "joint torques of the controller, gravity included",
        arm.of_joints(*TORQUE), nominal=10.0, depends=("CT_q_des", "CT_qd_des", "CT_qdd_des", "PL_q", "PL_qd"),
        initially=(*arm.dynamic, *FRICTION, "KP", "KV"),
    )  # fmt: skip
    return [
        *arm_parameters(arm), *gains(arm), *detection(arm), quaternion_sign(),
        *desired(arm), *plant(arm, "CT_tau"), torque, *touch(arm, depends=("PL_q", "PL_qd")),
    ]  # fmt: skip


class _Residual:
    """The momentum observer by its equations, from robot.momentum_terms."""

    def __init__(self, b: Asked) -> None:
        self.robot, self.friction, self.gain = b.robot, b.friction, b.start("gain")
        self.r = np.zeros(b.robot.dof)
        self.before: tuple[Array, Array, Array] | None = None

    def sample(self, q: Array, qd: Array, tau: Array) -> Array:
        """r at this sample; tau is held to the next."""
        p, transposed, g = self.robot.momentum_terms(q, qd)
        beta = transposed - g - (0.0 if self.friction is None else self.friction.torque(qd))
        if self.before is not None:
            p0, beta0, tau0 = self.before
            y = (p - p0) / PERIOD - tau0 - 0.5 * (beta0 + beta)
            self.r = self.r - np.expm1(-PERIOD * self.gain) * (y - self.r)
        self.before = (p, beta, tau)
        return self.r


def _ask_observer(b: Asked) -> str:
    if b.start("period")[0] != PERIOD:
        return "not checked: the file samples with another period than 1 ms"
    observer, rate, q0 = _Residual(b), b.rng.uniform(1.0, 3.0, b.robot.dof), b.start("q")
    for k in range(STEPS):
        t = k * PERIOD
        q, qd = q0 + 0.2 * np.sin(rate * t), 0.2 * rate * np.cos(rate * t)
        tau = b.robot.gravity_torque(q) + b.rng.normal(size=b.robot.dof)
        b.set(q=q, qd=qd, tau=tau)
        b.step()
        b.compare("residual", observer.sample(q, qd, tau))
    return f"{STEPS} samples of a swing: residual"


def _ask_arm(b: Asked) -> str:
    if b.start("period")[0] != PERIOD:
        return "not checked: the file samples with another period than 1 ms"
    motion, observer = Motion(b), _Residual(b)
    kp, kv, rate, q0 = b.start("kp"), b.start("kv"), b.rng.uniform(1.0, 3.0, b.robot.dof), b.start("q_start")
    for k in range(STEPS):
        t = k * PERIOD
        q_des, qd_des = q0 + 0.1 * np.sin(rate * t), 0.1 * rate * np.cos(rate * t)
        qdd_des = -0.1 * rate**2 * np.sin(rate * t)
        push = pushed(b.robot.dof, k)
        b.set(q_des=q_des, qd_des=qd_des, qdd_des=qdd_des, tau_ext=push)
        q, qd = motion.q, motion.qd
        tau = torque_of(b, q, qd, qdd_des + kp * (q_des - q) + kv * (qd_des - qd))
        residual = observer.sample(q, qd, tau)
        motion.step(tau + push)
        b.step()
        b.compare("tau", tau)
        b.compare("residual", residual)
        b.compare("q", motion.q)
    return f"{STEPS} periods of a swing with a push: torque, motion, residual"


KINDS = (
    Kind(
        name="observer",
        suffix="Observer",
        title="Momentum observer",
        summary="momentum observer: torques and motion in; external torques and contact flag out",
        text="External joint torques from applied torques and motion, and whether something touches the arm.",
        colour=(244, 114, 182),
        parts=(MASS, OBSERVER),
        groups=lambda arm: [*arm_parameters(arm), *observer(arm)],
        answers=(Answer("observer", _ask_observer, CLOSE),),
        directional=False,
    ),
    Kind(
        name="arm",
        suffix="Arm",
        title="Arm with controller and observer",
        summary="arm, controller and observer in one block: reference and pushes in; motion and touch out",
        text="The moving arm under computed torque, with the momentum observer: reference and pushes in.",
        colour=(45, 212, 191),
        parts=(MASS, POSE, PLANT, CONTROL, OBSERVER),
        groups=arm_with_controller,
        answers=(Answer("arm", _ask_arm, CLOSE),),
    ),
)  # fmt: skip
