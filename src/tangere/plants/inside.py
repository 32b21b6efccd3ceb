"""Programs that run inside a controller, without a computer beside it: written from the kernels' own graphs.

The arithmetic is traced with the arm's numbers in it (kernels.emit.urscript); the loop around it, with its limits and
its ending, is in inside.script beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from tangere.codegen.functions import cos, sin
from tangere.codegen.trace import Graph, operation_count
from tangere.control.computed_torque import KP
from tangere.control.joint_impedance import OMEGA
from tangere.control.setpoint import critical, gain
from tangere.dynamics import composite, laws, newton_euler
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, unknown
from tangere.kernels import ur
from tangere.kernels.emit import urscript
from tangere.kinematics.chain import Chain, chain_of
from tangere.kinematics.vectors import Scalar, Vector
from tangere.observe.drive_model import DriveModel
from tangere.observe.momentum import GAIN
from tangere.plants.torque_loop import CHANGE, DAMPING, FRAME, STOP, Limits, scales_known, torque_known
from tangere.robots import Robot
from tangere.types import Array

Law = Literal["observer", "impedance", "computed-torque"]
LAWS: tuple[str, ...] = get_args(Law)
N = ur.DOF
THRESHOLD = 0.1  # share of a joint's torque limit that counts as felt unless told otherwise: 15 Nm of a UR5e's shoulder
CURRENT_FROM = (5, 9)  # get_rtde_value: the currents by name


@dataclass(frozen=True)
class Program:
    """A program's text, and how many operations of arithmetic its law takes in each frame of 2 ms."""

    law: str
    text: str
    operations: int
    torque: str = ""  # where an observer takes its torque from


def emitted(
    law: str,
    robot: Robot,
    *,
    version: Sequence[int],
    friction: JointFriction | DriveModel | None = None,
    gains: ArrayLike | None = None,
    stiffness: ArrayLike | None = None,
    kp: ArrayLike = KP,
    observer_gain: ArrayLike = GAIN,
    threshold: ArrayLike | None = None,
    output: int | None = None,
    amplitude: ArrayLike = 0.1,
    frequency: float = 0.25,
    seconds: float = 60.0,
) -> Program:
    """The URScript program of a law for one arm.

    observer: momentum observer with the robot's masses and `friction`; its torque is the motor currents times `gains`
    [Nm/A] (n,), or where they are not known what the controller makes of its currents. threshold [Nm]: one or n, told
    in a register and on the digital output `output`.
    impedance: springs of `stiffness` [Nm/rad] (None: M_ii OMEGA^2 where it starts) about the posture where it starts.
    computed-torque: follows amplitude sin^3(2 pi frequency t) [rad] about the posture where it starts with gains kp.
    Both end by themselves after `seconds`, and fade where a joint is too fast or at the end of its range.
    """
    if law not in LAWS:
        raise unknown("law", law, LAWS)
    if robot.dof != N:
        raise InvalidValue(f"a UR controller has six joints, {robot.model.name} has {robot.dof}")
    if law == "observer":
        return _observer(robot, version, friction, gains, observer_gain, threshold, output)
    if not torque_known(version):
        said = ".".join(map(str, version))
        raise InvalidValue(f"PolyScope {said} takes no torques: direct_torque is from 5.23 (PolyScope X: 10.10) on")
    if not 0.0 < seconds < math.inf:
        raise InvalidValue(f"seconds: above 0, got {seconds!r}")
    if law == "impedance":
        return _impedance(robot, version, stiffness, seconds)
    return _computed_torque(robot, version, kp, amplitude, frequency, seconds)


def _chain(robot: Robot, *, gravity: bool = True) -> Chain:
    """The arm with its numbers in it: the UR's short form where it is one; gravity False: the controller adds it."""
    model = robot.model
    if ur.is_ur(model):
        chain = ur.chain(ur.parameters_of(model, rotor_inertia=robot.rotor_inertia).tolist())
    else:
        chain = chain_of(model, rotor_inertia=robot.rotor_inertia).regrouped()
    return chain if gravity else replace(chain, gravity=[0.0, 0.0, 0.0])


def _function(name: str, inputs: Sequence[str], law: Callable[..., list[Any]], sizes: Sequence[int]) -> tuple[str, int]:
    """Text of a law as a function of lists (of numbers where a size is 1), and its operations."""
    graph = Graph()
    given = [graph.inputs(group, size) for group, size in zip(inputs, sizes, strict=True)]
    outputs = [graph.lift(y) for y in law(*given)]
    single = [group for group, size in zip(inputs, sizes, strict=True) if size == 1]
    return urscript.function(name, graph, inputs, outputs, scalars=single), operation_count(graph, outputs)


def _template(part: str, functions: Sequence[str], **values: object) -> str:
    text = files("tangere.plants").joinpath("inside.script").read_text(encoding="utf-8")
    body = text.split(f"# --- {part}\n")[1].split("# --- ")[0]
    inner = "\n".join([*urscript.called("".join(functions)), *functions])
    indented = "\n".join(f"  {line}" if line else "" for line in inner.splitlines())
    return body.format(functions=indented, **values)


def _shares(values: Array) -> str:
    return f"[{', '.join(urscript.number(value) for value in values)}]"


# ------------------------------------------------------------------------------------------------------------ observer


def _observer(
    robot: Robot,
    version: Sequence[int],
    friction: JointFriction | DriveModel | None,
    gains: ArrayLike | None,
    observer_gain: ArrayLike,
    threshold: ArrayLike | None,
    output: int | None,
) -> Program:
    known = robot.model.drives.gain if gains is None else gain(gains, N, "gains")
    rate = gain(observer_gain, N, "observer_gain")
    limit = THRESHOLD * robot.tau_max if threshold is None else gain(threshold, N, "threshold")
    if not np.all((limit > 0.0) & np.isfinite(limit)):
        raise InvalidValue(f"threshold: a torque above 0 for each joint, got {limit.tolist()}")
    currents = bool(np.all(np.isfinite(known)))
    least = CURRENT_FROM if currents else (5, 23)
    if tuple(version[:2]) < least:
        said = "actual_current" if currents else "actual_current_as_torque (no gains of the motors are known)"
        raise InvalidValue(
            f"an observer inside reads {said} by name, from PolyScope {'.'.join(map(str, least))} on, "
            f"not in {'.'.join(map(str, version))}"
        )
    if output is not None and not 0 <= output <= 7:
        raise InvalidValue(f"output: a standard digital output, 0 to 7, got {output!r}")
    chain = _chain(robot)

    def terms(q: Vector, qd: Vector) -> list[Scalar]:
        y = newton_euler.momentum_terms(chain, q, qd)
        p, coriolis, g = y[:N], y[N : 2 * N], y[2 * N :]
        lost = _friction(friction, q, qd, g)
        return [*p, *(coriolis[j] - g[j] - lost[j] for j in range(N)), *g]

    def follow(*x: Vector) -> list[Scalar]:
        r, p0, p1, beta0, beta1, tau, weight = (value[0] for value in x)
        return [laws.lag(r, laws.momentum_balance(p0, p1, beta0, beta1, tau, FRAME), weight)]

    first, count = _function("tangere_terms", ("q", "qd"), terms, (N, N))
    second, each = _function("tangere_follow", ("r", "p0", "p1", "beta0", "beta1", "tau", "weight"), follow, (1,) * 7)
    weight = np.array([laws.lag_weight(value, FRAME) for value in rate.tolist()])
    text = _template(
        "observer", [first, second],
        weight=_shares(weight), threshold=_shares(limit),
        gain=f"  GAIN = {_shares(known)}\n" if currents else "",
        torque=f'get_rtde_value("{"actual_current" if currents else "actual_current_as_torque"}")',
        tau_j="GAIN[j] * tau[j]" if currents else "tau[j] + now[j + 12]",
        output="" if output is None else f"set_standard_digital_out({output}, felt > 0)",
        output_said="" if output is None else f"; digital output {output} while one does",
    )  # fmt: skip
    source = "motor currents times the gains of the model" if currents else "actual_current_as_torque, and gravity"
    return Program("observer", text, count + N * each, source)


def _friction(friction: JointFriction | DriveModel | None, q: Vector, qd: Vector, g: Vector) -> list[Scalar]:
    if friction is None:
        return [0.0] * N
    if isinstance(friction, JointFriction):
        scale = 1.0 / friction.width
        rows = zip(qd, friction.coulomb.tolist(), friction.viscous.tolist(), strict=True)
        return [laws.sliding_friction(v, scale, dry, viscous) for v, dry, viscous in rows]
    width = np.broadcast_to(friction.width, (N,)).tolist()
    out = []
    for j in range(N):
        values = (friction.coulomb, friction.load, friction.viscous, friction.quadratic, friction.offset)
        coulomb, load, viscous, quadratic, offset = (float(value[j]) for value in values)
        dry = laws.loaded_coulomb(coulomb, load, g[j])
        lost = laws.drive_friction(qd[j], 1.0 / width[j], dry, viscous, quadratic, offset)
        for k, order in enumerate(friction.orders):
            own = slice(2 * k, 2 * k + 2)
            waves = np.stack([kind[j, own] for kind in (friction.ripple, friction.ripple_load, friction.ripple_drag)])
            if np.any(waves):
                turned = laws.direction(qd[j], 1.0 / width[j]) if np.any(waves[2]) else 0.0
                load = g[j] if np.any(waves[1]) else 0.0
                sine, cosine = (laws.ripple_amplitude(a, c, e, load, turned) for a, c, e in waves.T.tolist())
                lost = lost + laws.ripple_torque(sine, cosine, sin(order * q[j]), cos(order * q[j]))
        out.append(lost)
    return out


# -------------------------------------------------------------------------------------------------------------- torque


def _torque(
    name: str, said: str, robot: Robot, version: Sequence[int], functions: list[str], prepared: str, arguments: str,
    seconds: float, operations: int,
) -> Program:  # fmt: skip
    limits = Limits.of(robot)
    # a joint must not be damped harder than its inertia takes within a frame, or the damping itself shakes it
    slowed = np.minimum(DAMPING * limits.torque_max, 0.25 * np.diag(robot.mass_matrix(np.deg2rad(ur.READY))) / FRAME)
    scales = ", viscous_scale=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0], coulomb_scale=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]"
    call = f"direct_torque(passed{scales})" if scales_known(version) else "direct_torque(passed, friction_comp=False)"
    text = _template(
        "torque", functions, name=name.replace("-", "_"), said=said, torque_max=_shares(limits.torque_max),
        change_max=_shares(CHANGE * limits.torque_max), speed_max=_shares(limits.speed_max),
        q_min=_shares(limits.q_min), q_max=_shares(limits.q_max), damping=_shares(slowed),
        fade=limits.fade, seconds=urscript.number(seconds), frame=urscript.number(FRAME), prepared=prepared,
        arguments=arguments, direct_torque=call, stop=STOP,
    )  # fmt: skip
    return Program(name, text, operations)


def _impedance(robot: Robot, version: Sequence[int], stiffness: ArrayLike | None, seconds: float) -> Program:
    chain = _chain(robot, gravity=False)

    def design(q: Vector) -> list[Scalar]:
        M = composite.mass_matrix(chain, q)
        return [M[j * N + j] for j in range(N)]

    def law(q: Vector, qd: Vector, wanted: Vector, k: Vector, d: Vector) -> list[Scalar]:
        rows = range(N)
        return [laws.spring_torque(k[j], d[j], q[j], qd[j], wanted[j], wanted[j + N], 0.0) for j in rows]

    first, _ = _function("tangere_inertia", ("q",), design, (N,))
    second, count = _function("tangere_law", ("q", "qd", "wanted", "k", "d"), law, (N, N, 2 * N, N, N))
    rest = "def tangere_reference(start, t):\n  return [" + ", ".join(
        [*(f"start[{j}]" for j in range(N)), *("0.0" for _ in range(N))]
    )
    springs = None if stiffness is None else gain(stiffness, N, "stiffness")
    one = f"inertia[i] * {urscript.number(OMEGA**2)}" if springs is None else "springs[i]"
    prepared = "\n".join(
        [
            "  local inertia = tangere_inertia(start)",
            *([] if springs is None else [f"  local springs = {_shares(springs)}"]),
            "  local k = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]",
            "  local d = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]",
            "  local i = 0",
            "  while i < 6:",
            f"    k[i] = {one}",
            "    d[i] = 2.0 * sqrt(k[i] * inertia[i])",
            "    i = i + 1",
            "  end",
        ]
    )
    said = "Holds the posture where it starts with springs and critical damping, each joint by itself."
    functions = [first, second, f"{rest}]\nend\n"]
    return _torque("impedance", said, robot, version, functions, prepared, "q, qd, wanted, k, d", seconds, count)


def _computed_torque(
    robot: Robot, version: Sequence[int], kp: ArrayLike, amplitude: ArrayLike, frequency: float, seconds: float
) -> Program:
    chain = _chain(robot, gravity=False)
    stiff = gain(kp, N, "kp")
    damp, stiff = critical(stiff).tolist(), stiff.tolist()
    swing = np.broadcast_to(np.asarray(amplitude, dtype=np.float64), (N,)).tolist()
    if not (0.0 < frequency <= 2.0 and all(math.isfinite(value) for value in swing)):
        raise InvalidValue(f"frequency: above 0 and at most 2 Hz, got {frequency!r}; amplitude in rad, got {swing}")
    omega = 2.0 * math.pi * frequency

    def law(q: Vector, qd: Vector, wanted: Vector) -> list[Scalar]:
        asked = [
            laws.servo_acceleration(stiff[j], damp[j], q[j], qd[j], wanted[j], wanted[j + N], wanted[j + 2 * N])
            for j in range(N)
        ]
        return newton_euler.inverse_dynamics(chain, q, qd, asked)

    def reference(start: Vector, t: Vector) -> list[Scalar]:
        """A sin^3(w t): from rest, without a step in the acceleration; change this function for a motion of yours."""
        s, c = sin(omega * t[0]), cos(omega * t[0])
        place, speed = s * s * s, 3.0 * omega * (s * s * c)
        rate = 3.0 * omega * omega * (2.0 * (s * c * c) - s * s * s)
        q = [start[j] + swing[j] * place for j in range(N)]
        return [*q, *(a * speed for a in swing), *(a * rate for a in swing)]

    first, count = _function("tangere_law", ("q", "qd", "wanted"), law, (N, N, 3 * N))
    second, _ = _function("tangere_reference", ("start", "t"), reference, (N, 1))
    said = "Follows a motion by computed torque: put your own into tangere_reference (q, qd, qdd of six joints)."
    functions = [first, second]
    return _torque("computed-torque", said, robot, version, functions, "", "q, qd, wanted", seconds, count)
