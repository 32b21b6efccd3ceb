"""One of our blocks against the library: the arm is built anew from the file's numbers and asked the same questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tangere.apps.fmu.build import CompilerMissing
from tangere.apps.fmu.check_block import WARNING, begin
from tangere.apps.fmu.driver import DriverFailed, Talk
from tangere.apps.fmu.findings import Finding
from tangere.apps.fmu.opened import Opened
from tangere.apps.fmu.own_robot import groups_of, robot_of, start_of
from tangere.dynamics.friction import JointFriction
from tangere.kernels.solutions import IKSolutions
from tangere.kinematics.rotation import quaternion_from_matrix, ypr_from_matrix
from tangere.robots import Robot
from tangere.types import Array

PART = "answers"
EXACT = 1e-12  # the same arithmetic: only the folding of the parameters rounds differently
CLOSE = 1e-9  # where rounding is carried through many steps, or through M^-1
PERIOD = 1e-3  # s
STEPS = 200


class Asked:
    """An instance by the names of its groups, and the largest difference that was seen."""

    def __init__(self, fmu: Opened, prefix: str = "") -> None:
        self.talk = Talk(fmu)
        self.fmu, self.prefix, self.groups = fmu, prefix, groups_of(fmu)
        self.worst, self.time = 0.0, 0.0
        problem = begin(self.talk)
        if problem:
            self.talk.close()
            raise DriverFailed(problem)

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self.talk.close()

    def get(self, name: str) -> Array:
        """A group, flat."""
        variables = self.groups[self.prefix + name]
        status, got = self.talk.get(variables[0].kind, (v.reference for v in variables))
        if status > WARNING:
            raise DriverFailed(f"{name} cannot be read: {self.talk.messages[-1][2] if self.talk.messages else ''}")
        return np.array(got)

    def set(self, **given: Any) -> None:
        """Groups by name."""
        for name, values in given.items():
            variables = self.groups[self.prefix + name]
            if self.talk.set(variables[0].kind, (v.reference for v in variables), np.ravel(values)) > WARNING:
                raise DriverFailed(f"{name} cannot be set: {self.talk.messages[-1][2] if self.talk.messages else ''}")

    def start(self, name: str) -> Array:
        """Start values of a parameter; parameters of the whole block have no prefix."""
        own = self.prefix + name
        return start_of(self.groups[own if own in self.groups else name])

    def step(self) -> None:
        """One period."""
        if self.talk.ask("step", self.time, PERIOD)[0] > WARNING:
            raise DriverFailed(f"a step was refused: {self.talk.messages[-1][2] if self.talk.messages else ''}")
        self.time += PERIOD

    def compare(self, name: str, want: Any) -> None:
        """Keeps the largest |got - want| / max(1, |want|)."""
        wanted = np.ravel(np.asarray(want, dtype=np.float64))
        off = np.abs(self.get(name) - wanted) / np.maximum(1.0, np.abs(wanted))
        self.worst = max(self.worst, float(off.max()) if np.all(np.isfinite(off)) else np.inf)


def _torque(robot: Robot, friction: JointFriction | None, q: Array, qd: Array, qdd: Array) -> Array:
    tau = robot.inverse_dynamics(q, qd, qdd)
    return np.asarray(tau if friction is None else tau + friction.torque(qd))


def _fk(b: Asked, robot: Robot, _: JointFriction | None, rng: np.random.Generator) -> str:
    if not b.get("offsets")[0]:
        return "not checked: the file leaves the offsets out"
    continuous = b.start("quaternion_sign")[0] == 1
    before = b.get("quaternion")  # no step is made: its sign goes on from here
    for _k in range(40):
        q = rng.uniform(-6.0, 6.0, 6)
        b.set(q=q)
        T = robot.pose(q)
        b.compare("position", T[:3, 3])
        b.compare("R", T[:3, :3])
        b.compare("J", robot.jacobian(q))
        want = quaternion_from_matrix(T[:3, :3])
        b.compare("quaternion", -want if continuous and want @ before < 0.0 else want)
        if abs(T[2, 0]) < 0.99:  # near pitch = 90 deg yaw and roll lose digits
            b.compare("ypr", ypr_from_matrix(T[:3, :3]))
    return "40 random positions: pose in all forms, Jacobian"


def _ik(b: Asked, robot: Robot, _: JointFriction | None, rng: np.random.Generator) -> str:
    if b.get("orientation")[0] != 1:
        return "not checked: the file takes the orientation in another form than R"
    total, before = 0, b.get("q")  # what it goes on from, until a step is made
    for _k in range(40):
        T = robot.pose(rng.uniform(-3.0, 3.0, 6))
        b.set(position=T[:3, 3], R=T[:3, :3])
        found = robot.inverse_kinematics(T, before)
        assert isinstance(found, IKSolutions)  # one pose was asked for
        lanes = np.flatnonzero(b.get("valid"))
        if lanes.tolist() != found.lanes.tolist():
            b.worst = np.inf
            return f"branches {(lanes + 1).tolist()} instead of {(found.lanes + 1).tolist()}"
        off = b.get("solutions").reshape(8, 6)[lanes] - found.q
        b.worst = max(b.worst, float(np.abs(off).max()))
        b.worst = max(b.worst, float(np.abs(robot.pose(b.get("q")) - T).max()) if b.get("found")[0] else np.inf)
        total += len(found)
    return f"40 random poses: {total} solutions, the chosen one leads back"


def _inverse_dynamics(b: Asked, robot: Robot, friction: JointFriction | None, rng: np.random.Generator) -> str:
    for _k in range(40):
        q, qd, qdd = rng.uniform(-6, 6, 6), rng.uniform(-2, 2, 6), rng.uniform(-9, 9, 6)
        b.set(q=q, qd=qd, qdd=qdd)
        b.compare("tau", _torque(robot, friction, q, qd, qdd))
        b.compare("gravity_torque", robot.gravity_torque(q))
    return "40 random motions: torque, gravity"


def _controller(b: Asked, robot: Robot, friction: JointFriction | None, rng: np.random.Generator) -> str:
    kp, kv = b.start("kp"), b.start("kv")
    for _k in range(40):
        q, qd, q_des, qd_des, qdd_des = rng.uniform(-2, 2, (5, 6))
        b.set(q=q, qd=qd, q_des=q_des, qd_des=qd_des, qdd_des=qdd_des)
        b.compare("tau", _torque(robot, friction, q, qd, qdd_des + kp * (q_des - q) + kv * (qd_des - qd)))
    return "40 random errors: computed torque"


class _Motion:
    """The library's arm, integrated as the block says it does: Runge-Kutta of order 4 in equal short steps."""

    def __init__(self, b: Asked, robot: Robot, friction: JointFriction | None) -> None:
        self.robot, self.friction = robot, friction
        self.q, self.qd = b.start("q_start").copy(), b.start("qd_start").copy()
        self.step_max = float(b.start("step_max")[0])

    def acceleration(self, q: Array, qd: Array, tau: Array) -> Array:
        friction = 0.0 if self.friction is None else self.friction.torque(qd)
        return np.asarray(self.robot.forward_dynamics(q, qd, tau - friction))

    def step(self, tau: Array) -> None:
        """One period under tau + tau_ext."""
        rate = 0.0
        if self.friction is not None:  # 1/s: the fastest that friction can act, which bounds the step
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


def _dynamics(b: Asked, robot: Robot, friction: JointFriction | None, rng: np.random.Generator) -> str:
    motion = _Motion(b, robot, friction)
    for k in range(STEPS):
        tau = robot.gravity_torque(motion.q) + rng.normal(size=6) * [20, 20, 10, 2, 2, 2]
        push = np.array([0.0, 20.0 if 50 <= k < 100 else 0.0, 0.0, 0.0, 0.0, 0.0])
        b.set(tau=tau, tau_ext=push)
        b.step()
        motion.step(tau + push)
        b.compare("q", motion.q)
        b.compare("qd", motion.qd)
    kinetic, potential = robot.energy(motion.q, motion.qd)
    b.compare("kinetic_energy", kinetic)
    b.compare("potential_energy", potential)
    b.compare("position", robot.pose(motion.q)[:3, 3])
    return f"{STEPS} steps under random torques and a push: motion, energy, pose"


class _Residual:
    """The momentum observer by its equations, from robot.momentum_terms."""

    def __init__(self, b: Asked, robot: Robot, friction: JointFriction | None) -> None:
        self.robot, self.friction, self.gain = robot, friction, b.start("gain")
        self.r = np.zeros(6)
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


def _observer(b: Asked, robot: Robot, friction: JointFriction | None, rng: np.random.Generator) -> str:
    if b.start("period")[0] != PERIOD:
        return "not checked: the file samples with another period than 1 ms"
    observer, rate, q0 = _Residual(b, robot, friction), rng.uniform(1.0, 3.0, 6), b.start("q")
    for k in range(STEPS):
        t = k * PERIOD
        q, qd = q0 + 0.2 * np.sin(rate * t), 0.2 * rate * np.cos(rate * t)
        tau = robot.gravity_torque(q) + rng.normal(size=6)
        b.set(q=q, qd=qd, tau=tau)
        b.step()
        b.compare("residual", observer.sample(q, qd, tau))
    return f"{STEPS} samples of a swing: residual"


def _arm(b: Asked, robot: Robot, friction: JointFriction | None, rng: np.random.Generator) -> str:
    if b.start("period")[0] != PERIOD:
        return "not checked: the file samples with another period than 1 ms"
    motion, observer = _Motion(b, robot, friction), _Residual(b, robot, friction)
    kp, kv, rate, q0 = b.start("kp"), b.start("kv"), rng.uniform(1.0, 3.0, 6), b.start("q_start")
    for k in range(STEPS):
        t = k * PERIOD
        q_des, qd_des = q0 + 0.1 * np.sin(rate * t), 0.1 * rate * np.cos(rate * t)
        qdd_des = -0.1 * rate**2 * np.sin(rate * t)
        push = np.array([0.0, 20.0 if 50 <= k < 100 else 0.0, 0.0, 0.0, 0.0, 0.0])
        b.set(q_des=q_des, qd_des=qd_des, qdd_des=qdd_des, tau_ext=push)
        q, qd = motion.q, motion.qd
        tau = _torque(robot, friction, q, qd, qdd_des + kp * (q_des - q) + kv * (qd_des - qd))
        residual = observer.sample(q, qd, tau)
        motion.step(tau + push)
        b.step()
        b.compare("tau", tau)
        b.compare("residual", residual)
        b.compare("q", motion.q)
    return f"{STEPS} periods of a swing with a push: torque, motion, residual"


_Check = Callable[[Asked, Robot, JointFriction | None, np.random.Generator], str]
# kind: prefix of its variables, what is asked, how close the answers must be
CHECKS: dict[str, tuple[tuple[str, str, _Check, float], ...]] = {
    "fk": (("", "forward kinematics", _fk, EXACT),),
    "ik": (("", "inverse kinematics", _ik, EXACT),),
    "dynamics": (("", "dynamics", _dynamics, CLOSE),),
    "inverse-dynamics": (("", "inverse dynamics", _inverse_dynamics, EXACT),),
    "controller": (("", "controller", _controller, CLOSE),),
    "observer": (("", "observer", _observer, CLOSE),),
    "arm": (("", "arm", _arm, CLOSE),),
    "all": (
        ("fk.", "forward kinematics", _fk, EXACT), ("ik.", "inverse kinematics", _ik, EXACT),
        ("dynamics.", "dynamics", _dynamics, CLOSE),
    ),
}  # fmt: skip


def check_answers(fmu: Opened) -> list[Finding]:
    """The library's answers against the block's; nothing for FMUs of others."""
    if fmu.kind not in CHECKS or not fmu.library.is_file():
        return []
    found = []
    for prefix, what, ask, tolerance in CHECKS[fmu.kind]:
        try:
            robot, friction = robot_of(fmu)
            with Asked(fmu, prefix) as block:
                text = ask(block, robot, friction, np.random.default_rng(1))
                worst = block.worst
        except CompilerMissing as error:
            return [Finding(PART, what, "not checked", str(error))]
        except (DriverFailed, KeyError, ValueError) as error:
            found.append(Finding(PART, what, "bad", f"{type(error).__name__}: {error}"))
            continue
        if text.startswith("not checked: "):
            found.append(Finding(PART, what, "not checked", text.removeprefix("not checked: ")))
            continue
        outcome = "good" if worst <= tolerance else "bad"
        found.append(Finding(PART, what, outcome, f"{text}; within {worst:.1e} (allowed {tolerance:g})"))  # type: ignore[arg-type]
    return found
