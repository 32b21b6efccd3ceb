"""What a rollout is made of, checked once: as rows for the fused kernel, and as the parts of an ordinary run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.codegen.polynomials import exponential_minus_one
from tangere.control.computed_torque import ComputedTorque
from tangere.control.joint_impedance import JointImpedance
from tangere.control.setpoint import started
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.kernels import rollouts as kernel
from tangere.kernels import ur
from tangere.kernels.laws import detection
from tangere.kernels.shapes import like_degrees
from tangere.model.link_shapes import LinkSurface
from tangere.observe.detect import Detector
from tangere.observe.detect.hysteresis import ROUNDING, Hysteresis
from tangere.observe.detect.signals import alone
from tangere.observe.drive_model import DriveModel
from tangere.observe.inputs import law_of
from tangere.observe.momentum import MomentumObserver
from tangere.plants.pushes import Push
from tangere.plants.random_pushes import RandomPushes
from tangere.plants.rigid import RigidPlant
from tangere.plants.sensors import SensorModel
from tangere.plants.simulated import refuse_stiff_friction
from tangere.plants.twins import twin
from tangere.robots import Robot
from tangere.types import Array, Controller, Observer, Reference, State, Trajectory
from tangere.types import Detector as AnyDetector


@dataclass(frozen=True, eq=False)
class Plan:
    """Checked arguments of tangere.rollouts; see there."""

    robots: Robot | Sequence[Robot]
    controllers: tuple[Controller, ...]  # rollout i has number i, over and over
    observer: Observer | None
    detector: AnyDetector | None
    pushes: tuple[Push, ...] | RandomPushes
    sensors: SensorModel
    friction: JointFriction | None
    payload: Array | None  # (count,) or (1,)
    friction_scale: Array  # (count,) or (1,)
    begins: tuple[Reference, ...]  # where the true arm of each controller starts, and what it follows from there
    trajectories: tuple[Trajectory, ...]
    period: float
    steps: int
    seed: int
    runge_kutta: bool

    def robot(self, i: int) -> Robot:
        """The true arm of rollout i."""
        arm = self.robots if isinstance(self.robots, Robot) else self.robots[i]
        return arm if self.payload is None else twin(arm, payload=float(self.payload[i % len(self.payload)]))

    @property
    def arms(self) -> list[Robot]:
        """The true arms without their payloads, each once."""
        return [self.robots] if isinstance(self.robots, Robot) else list({id(one): one for one in self.robots}.values())

    def motion(self, i: int) -> tuple[Controller, Reference, Trajectory]:
        """Controller of rollout i, where its arm starts, and what it follows."""
        k = i % len(self.controllers)
        return self.controllers[k], self.begins[k], self.trajectories[k]

    def pushes_of(self, i: int) -> tuple[Push, ...]:
        """What pushes robot i."""
        if isinstance(self.pushes, RandomPushes):
            return (self.pushes.drawn(self.skin, self.seed, [i]).push(0),)
        return self.pushes

    @cached_property
    def skin(self) -> list[LinkSurface]:
        """Where the arms can be touched, the first for all."""
        first = self.robots if isinstance(self.robots, Robot) else self.robots[0]
        return self.pushes.skin(first.model) if isinstance(self.pushes, RandomPushes) else []

    def plant(self, i: int) -> RigidPlant:
        """The true arm of rollout i as a plant of an ordinary run, with the same noise and pushes."""
        scale = float(self.friction_scale[i % len(self.friction_scale)])
        sensors = replace(self.sensors, seed=self.seed, robot=i)
        return RigidPlant(
            self.robot(i), self.period, friction=None if self.friction is None else self.friction.scaled(scale),
            method="rk4" if self.runge_kutta else "semi-implicit", sensors=sensors, pushes=self.pushes_of(i),
            force_sensor=False,
        )  # fmt: skip

    @property
    def limits(self) -> Hysteresis | None:
        """Of a detector with constant thresholds."""
        return getattr(getattr(self.detector, "thresholds", None), "hysteresis", None)

    # ------------------------------------------------------------------------------------------------- for the kernel

    @property
    def unfit(self) -> str:
        """Why no fused kernel serves on this processor, as the part of a sentence; "" where one does."""
        return self.unfit_for("cpu")

    def unfit_for(self, device: str) -> str:
        """The same for a device."""
        controller: Any = self.controllers[0]
        if not kernel.COMPILED and device == "cpu":
            return "the compiled rollouts are not available"
        for one in self.controllers:
            if type(one) not in (ComputedTorque, JointImpedance):
                return f"the controller {type(one).__name__} has no kernel"
        arms = self.arms
        for robot in (*arms, controller.robot):
            if not ((robot.compiled or device != "cpu") and ur.is_ur(robot.model)):
                return f"{robot.name} is not an arm with UR kernels"
        if any(not np.array_equal(one.tau_max, arms[0].tau_max) for one in arms[1:]):
            return "arms of which each has torque limits of its own have no kernel"
        if any(_choices(controller)):
            return "computed torque with friction_of_reference or feed_wrench has no kernel"
        if getattr(controller, "designs", False) and np.any(np.asarray(self.sensors.noise_q)):
            return "joint impedance whose gains follow from a noisy first sample has no kernel (give both gains)"
        observer: Any = self.observer
        if observer is not None:
            if type(observer) is not MomentumObserver or observer.choices.euler or observer.choices.delay:
                return f"the observer {type(observer).__name__} has no kernel in this form"
            if not _same_arm(observer.robot, controller.robot):
                return "controller and observer believe in different arms, for which there is no kernel"
            if self.period > observer.choices.gap:
                return "the observer's gap is shorter than the period, for which there is no kernel"
        laws = [law for law in (controller.friction, observer and observer.choices.friction) if law is not None]
        if any(_terms(law) is None for law in laws) or (len(laws) == 2 and laws[0] is not laws[1]):
            return "the friction that controller and observer believe in is not one law that has a kernel"
        detector: Any = self.detector
        if detector is not None and type(detector) is not Detector:
            return f"the detector {type(detector).__name__} has no kernel"
        told = (detector.memory, detector.wanted, detector.payload_change) if detector is not None else ()
        if any(part is not None for part in told):
            return "a detector with memory of friction or masks has no kernel"
        s = self.sensors
        if s.delay or s.loss or any(np.any(np.asarray(x)) for x in (s.step_q, s.step_qd, s.step_tau)):
            return "sensors with steps, delay or loss have no kernel"
        if not isinstance(self.pushes, RandomPushes) and len(self.pushes) > kernel.PUSHES:
            return f"more than {kernel.PUSHES} pushes have no kernel"
        forms = {(type(one), _choices(one), self._belief(k).tobytes()) for k, one in enumerate(self.controllers)}
        if len(forms) > 1:
            return "controllers that differ in more than what they follow have no kernel"
        return ""

    @cached_property
    def reference(self) -> Array:
        """q, qd, qdd of every period, for each controller (m, steps, 3 n)."""
        times = [k * self.period for k in range(self.steps)]
        wanted = [[trajectory.at(time) for time in times] for trajectory in self.trajectories]
        return np.array([[np.concatenate([r.q, r.qd, r.qdd]) for r in rows] for rows in wanted])

    def _belief(self, k: int) -> Array:
        """What controller k and the observer believe in, as kernels.closed_loop has it."""
        controller: Any = self.controllers[k]
        observer: Any = self.observer
        law = controller.friction if controller.friction is not None else observer and observer.choices.friction
        terms = np.zeros((7, ur.DOF)) if law is None else _terms(law)
        assert terms is not None
        springs, begin = isinstance(controller, JointImpedance), self.begins[k]
        if springs:  # it designs the gains that were left open where it starts
            controller.start(State(0.0, self.period, begin.q, begin.qd, np.zeros(ur.DOF)))
        gains = (controller.stiffness, controller.damping) if springs else (controller.kp, controller.kv)
        believes = [springs, controller.friction is not None, bool(observer and observer.choices.friction)]
        return np.concatenate([_parameters(controller.robot), *gains, terms.ravel(), believes])

    def job(self, first: int, count: int) -> kernel.Job:
        """The rollouts first ... first + count - 1 for the fused kernel."""
        observer: Any = self.observer
        n, zero = ur.DOF, np.zeros(ur.DOF)
        rows = np.arange(first, first + count)
        weight, residual, begins = zero, zero, False
        if observer is not None:
            # the observer's own exponential: the weights have its bits
            weight = 0.0 - exponential_minus_one(0.0 - observer.gain * self.period)
            residual, begins = observer.choices.residual, observer.choices.first
        limits = self.limits
        seconds = (0.0, 0.0) if limits is None else (limits.minimum_duration, limits.release_duration)
        waits = [math.ceil((span - ROUNDING) / self.period) if span else 0 for span in seconds]
        starts = np.array([np.concatenate([begin.q, begin.qd]) for begin in self.begins])
        detector: Any = self.detector
        watch = None
        if detector is not None and limits is None:
            watch = np.concatenate([detection.lags(self.period, detector.thresholds.gain)[1:], alone(detector)])
        return kernel.Job(
            self.period, self._belief(0), self._plants(rows), starts[rows % len(starts)], self.pushes_rows(rows),
            self.reference, self.robot(first).tau_max,
            np.array([_spread(self.sensors.noise_qd), _spread(self.sensors.noise_tau), _spread(self.sensors.noise_q)]),
            weight, residual, begins, np.full(n, np.inf) if limits is None else limits.on,
            np.full(n, np.inf) if limits is None else limits.off, waits[0], waits[1], self.runge_kutta, self.seed,
            watch,
        )  # fmt: skip

    def _plants(self, rows: Any) -> Array:
        """Parameters of the true arms, (m, PLANT)."""
        n = ur.DOF
        arms = [self.robots] if isinstance(self.robots, Robot) else [self.robots[i] for i in rows]
        P = np.array([_parameters(arm) for arm in arms])
        if self.payload is not None:
            # moments of mass are linear in a mass at the flange
            one, two = (np.array([_parameters(twin(arm, payload=kg)) for arm in arms]) for kg in (1.0, 2.0))
            P = one + (self.payload[rows % len(self.payload)][:, None] - 1.0) * (two - one)
        P = np.array(np.broadcast_to(P, (len(rows), P.shape[1])))
        law = JointFriction.none(n) if self.friction is None else self.friction
        scale = self.friction_scale[rows % len(self.friction_scale)][:, None]
        if not self.runge_kutta:
            # viscous friction is implicit there: (M + h B) qdd, as if the rotors were h B heavier
            rotor = slice(ur.ROTOR, ur.ROTOR + n)
            P[:, rotor] += self.period * scale * law.viscous
        width = np.full_like(scale, 1.0 / law.width)
        return np.concatenate([P, scale * law.coulomb, scale * law.viscous, width], axis=1)

    def pushes_rows(self, rows: Any) -> Array:
        """Pushes of the robots (m, k, 16), as kernels.rollouts.Job has them."""
        if isinstance(self.pushes, RandomPushes):
            drawn = self.pushes.drawn(self.skin, self.seed, rows)
            out = np.zeros((len(rows), 1, 16))
            out[:, 0, 0] = _first_step(drawn.start, self.period)
            out[:, 0, 1] = _first_step(drawn.start + drawn.duration, self.period)
            out[:, 0, 2], out[:, 0, 3] = 1.0, drawn.link - 1
            out[:, 0, 4:7], out[:, 0, 7:10] = drawn.point, drawn.force
            return out
        out = np.zeros((len(self.pushes), 16))
        for row, push in zip(out, self.pushes, strict=True):
            row[:2] = _first_step(np.array([push.start, push.start + push.duration]), self.period)
            if push.joint:
                row[3], row[9 + push.joint] = -1.0, push.torque
            else:
                row[2], row[3] = push.in_link_axes, push.link - 1
                row[4:7], row[7:10] = push.point, push.force
        return np.tile(out, (len(rows), 1, 1))


def _first_step(seconds: Array, period: float) -> Array:
    """The first period whose middle is not before that time: pushes act in whole periods."""
    near = np.minimum(np.maximum(np.ceil(seconds / period - 0.5), 0.0), kernel.ENDLESS)
    near = np.where((near > 0.0) & ((near - 0.5) * period >= seconds), near - 1.0, near)
    near = np.where((near + 0.5) * period < seconds, near + 1.0, near)
    return np.asarray(np.minimum(near, kernel.ENDLESS))


def _choices(controller: Any) -> tuple[bool, ...]:
    """What of computed torque no kernel knows."""
    return tuple(bool(getattr(controller, name, False)) for name in ("friction_of_reference", "feed_wrench"))


def _same_arm(a: Robot, b: Robot) -> bool:
    return a is b or bool(np.array_equal(_parameters(a), _parameters(b)))


def _parameters(robot: Robot) -> Array:
    return ur.parameters_of(robot.model, rotor_inertia=robot.rotor_inertia)


def _terms(friction: Any) -> Array | None:
    """(7, n): 1 / width, coulomb, viscous, quadratic, offset, load, coulomb at the mean load; None: no known law."""
    law = law_of(friction, ur.DOF)
    if law is None or law.terms is None or law.orders:
        return None
    coulomb, scale, viscous, quadratic, load, offset = law.terms
    mean = coulomb + load * friction.mean_load if isinstance(friction, DriveModel) else coulomb
    return np.array([scale, coulomb, viscous, quadratic, offset, load, mean])


def _spread(values: ArrayLike) -> Array:
    return np.broadcast_to(np.asarray(values, dtype=np.float64), (ur.DOF,))


def per_robot(value: ArrayLike, count: int, name: str, unit: str) -> Array:
    """One number for all robots or one for each, finite and positive -> (1,) or (count,)."""
    try:
        array = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidValue(f"{name}: one number or one for each of {count} robots [{unit}], got {value!r}") from None
    if array.shape not in ((1,), (count,)):
        raise InvalidValue(f"{name}: one number or one for each of {count} robots [{unit}], got shape {array.shape}")
    good = np.isfinite(array) & (array > 0.0)
    if not np.all(good):
        i = int(np.argmin(good))
        raise InvalidValue(f"{name}: finite and positive [{unit}], got {array[i]} for robot {i}")
    return array


def begun(
    controller: Any, start: ArrayLike | Reference | None, period: float, arm: Robot
) -> tuple[Reference, Trajectory]:
    """Where the arms start, and what the controller follows from there; arm: where it believes in none."""
    arm = getattr(controller, "robot", arm)
    goal: Trajectory | None = getattr(controller, "_goal", None)
    if start is None and goal is None:
        raise InvalidValue("start: where the arms start (n,) [rad], since the controller follows nothing of its own")
    begin = start if isinstance(start, Reference) else goal.at(0.0) if start is None and goal is not None else None
    if begin is None:
        try:
            q = np.asarray(start, dtype=np.float64)
        except (TypeError, ValueError):
            q = np.zeros(0)
        if q.shape != (arm.dof,) or not np.all(np.isfinite(q)):
            raise InvalidValue(f"start: {arm.dof} finite numbers [rad] or a Reference, got {start!r}")
        if why := like_degrees(arm, q):
            raise InvalidValue(f"start: {why}")
        begin = Reference(q, np.zeros_like(q), np.zeros_like(q))
    for name in ("q", "qd"):
        if np.shape(one := getattr(begin, name)) != (arm.dof,) or not np.all(np.isfinite(one)):
            raise InvalidValue(f"start: a Reference of {arm.dof} finite numbers, its {name} is {one}")
    state = State(0.0, period, begin.q, begin.qd, np.zeros_like(begin.q))
    return begin, started(arm, goal, state)


def refuse_stiff(plan: Plan) -> None:
    """As RigidPlant does where it is placed: friction that an explicit step cannot integrate."""
    law = plan.friction
    if law is not None and np.any(law.coulomb):
        worst = law.scaled(float(plan.friction_scale.max()))
        for arm in (plan.robot(0), *plan.arms[1:]):
            for begin in plan.begins:
                refuse_stiff_friction(worst, arm.mass_matrix(begin.q), plan.period)
