"""The closed loop of a UR as kernels: what a fused rollout calls in every period, traced from the laws.

A rollout (kernels/c/rollout.h) is a hand-written frame, loops and branches, around these parts:

    sense         measured state and reference -> torque of the controller, momentum p, beta of the observer
    watch         residual and measured velocity -> the detector's signals and score (kernels.laws.detection)
    accelerate    true state and torque -> acceleration of the true arm, friction included
    pushed        true posture, a point of a link and a force -> joint torque
    turned        true posture and a direction in a link's axes -> the direction in base axes
    feel          measured state -> momentum p and beta of the observer, where no controller is part of the loop
    touch         true state and a surface -> joint torque of what the tcp meets; force, place and speed of the tcp

The last two are those of learning environments (kernels/c/env.h), whose torques come from outside.

Everything that depends on parameters alone is computed once (Part.constants), not in every period: for `sense` and
`watch` once for all robots, for the others once per robot, since every robot may have masses and friction of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tangere.codegen.functions import sqrt, where
from tangere.codegen.trace import Graph, Symbol, hoisted
from tangere.dynamics import composite, laws, newton_euler
from tangere.kernels import ur
from tangere.kernels.emit.python import compiled
from tangere.kernels.laws import detection
from tangere.kinematics import forward
from tangere.kinematics import vectors as v
from tangere.kinematics.vectors import Scalar, Vector
from tangere.model.model import Array

N = ur.DOF
# Parameters of the true arm behind those of kernels.ur: friction as coulomb (n), viscous (n), 1 / width.
PLANT = ur.PARAMETER_COUNT + 2 * N + 1
# Parameters of what is believed behind those of kernels.ur: gains kp (n) and kv (n), friction (7, n) as 1 / width,
# coulomb, viscous, quadratic, offset, load, and coulomb as the controller has it; then whether the gains are those of
# springs and dampers at the joints instead of computed torque, and whether controller and observer believe in friction
# at all (1 or 0 each).
BELIEF = ur.PARAMETER_COUNT + 2 * N + 7 * N + 3
# Parameters of the detector's law: what its filters take over within a period, then its thresholds.
WATCHED = detection.LAGS - 1 + detection.limits_size(N)

# Numbers of a surface: normal (3) in base axes, offset [m], stiffness [N/m], damping [N s/m], coefficient of friction,
# and slip [m/s per N]: how fast friction lets a tip creep that it holds.
SURFACE = 8
TINY = 1e-30  # [m2/s2] under a root, where a tip stands still


def _sense(B: list[Scalar], x: Vector) -> list[Scalar]:
    """x: q, qd measured; q, qd, qdd wanted."""
    q, qd, q_des, qd_des, qdd_des = (x[N * i : N * i + N] for i in range(5))
    chain, rest = ur.chain(B[: ur.PARAMETER_COUNT]), B[ur.PARAMETER_COUNT :]
    kp, kv, scale, coulomb, viscous, quadratic, offset, load, mean = (rest[N * i : N * i + N] for i in range(9))
    springs, compensated, known = rest[9 * N :]
    wanted = [
        laws.servo_acceleration(kp[j], kv[j], q[j], qd[j], q_des[j], qd_des[j], qdd_des[j]) for j in range(N)
    ]
    tau = newton_euler.inverse_dynamics(chain, q, qd, wanted)
    y = newton_euler.momentum_terms(chain, q, qd)
    p, coriolis, g = y[:N], y[N : 2 * N], y[2 * N :]
    out, beta = [], []
    for j in range(N):
        loaded = laws.loaded_coulomb(coulomb[j], load[j], g[j])
        own, seen = (
            laws.drive_friction(qd[j], scale[j], dry, viscous[j], quadratic[j], offset[j]) for dry in (mean[j], loaded)
        )
        spring = laws.spring_torque(kp[j], kv[j], q[j], qd[j], q_des[j], qd_des[j], g[j])
        out.append(where(springs < 0.5, tau[j], spring) + compensated * own)
        beta.append(coriolis[j] - g[j] - known * seen)
    return [*out, *p, *beta]


def _watch(L: list[Scalar], x: Vector) -> list[Scalar]:
    """x: period [s] (-1: the first sample), residual, qd measured, state -> state, score, whether an event goes on.

    The law begins and ends events by itself, as it does in no ordinary run: there a Detector looks for the onset of an
    event and for stops of the arm as well.
    """
    period, residual, qd, state = x[0], x[1 : 1 + N], x[1 + N : 1 + 2 * N], x[1 + 2 * N :]
    y = detection.step(N, L[detection.LAGS - 1 :], [period, *L[: detection.LAGS - 1]], residual, qd, state)
    kept = detection.state_size(N)
    numbers = dict(zip(detection.NUMBERS, y[kept : kept + len(detection.NUMBERS)], strict=True))
    return [*y[:kept], numbers["score"], numbers["held"]]


def _accelerate(E: list[Scalar], x: Vector) -> list[Scalar]:
    """x: q, qd, torque of drives and pushes."""
    q, qd, tau = x[:N], x[N : 2 * N], x[2 * N :]
    coulomb, viscous, scale = E[-2 * N - 1 : -N - 1], E[-N - 1 : -1], E[-1]
    left = [tau[j] - laws.sliding_friction(qd[j], scale, coulomb[j], viscous[j]) for j in range(N)]
    return composite.forward_dynamics(ur.chain(E[: ur.PARAMETER_COUNT]), q, qd, left)


def _pushed(E: list[Scalar], x: Vector) -> list[Scalar]:
    """x: q, point in the link's frame, force in base axes, link (0 ... n - 1; below 0: none). J_point(q)^T force."""
    q, point, force, link = x[:N], x[N : N + 3], x[N + 3 : N + 6], x[N + 6]
    chain = ur.chain(E[: ur.PARAMETER_COUNT])
    f = forward.frames(chain, q)
    local = [v.add(chain.p_link[k], v.matvec(chain.R_link[k], point)) for k in range(N)]
    place = _of_link([v.add(f.o[k], v.matvec(f.R[k], local[k])) for k in range(N)], link)
    arms = [v.dot(v.cross(f.axis(j), v.subtract(place, f.o[j])), force) for j in range(N)]
    return [where(link < j - 0.5, 0.0, arms[j]) for j in range(N)]


def _turned(E: list[Scalar], x: Vector) -> list[Scalar]:
    """x: q, direction in the link's axes, link (0 ... n - 1)."""
    q, direction, link = x[:N], x[N : N + 3], x[N + 3]
    chain = ur.chain(E[: ur.PARAMETER_COUNT])
    f = forward.frames(chain, q)
    return _of_link([v.matvec(f.R[k], v.matvec(chain.R_link[k], direction)) for k in range(N)], link)


def _feel(B: list[Scalar], x: Vector) -> list[Scalar]:
    """x: q, qd measured -> p, beta as `_sense` has them."""
    q, qd = x[:N], x[N:]
    y = newton_euler.momentum_terms(ur.chain(B[: ur.PARAMETER_COUNT]), q, qd)
    p, coriolis, g = y[:N], y[N : 2 * N], y[2 * N :]
    rest = B[ur.PARAMETER_COUNT :]
    scale, coulomb, viscous, quadratic, offset, load = (rest[N * i : N * i + N] for i in range(2, 8))
    known = rest[-1]
    beta = []
    for j in range(N):
        dry = laws.loaded_coulomb(coulomb[j], load[j], g[j])
        seen = laws.drive_friction(qd[j], scale[j], dry, viscous[j], quadratic[j], offset[j])
        beta.append(coriolis[j] - g[j] - known * seen)
    return [*p, *beta]


def _touch(E: list[Scalar], x: Vector) -> list[Scalar]:
    """x: q, qd, surface (SURFACE) -> J^T force, force on the arm, place and speed of the tcp, base axes.

    A plane n . p = offset that gives way as a spring and a damper, never pulls, and rubs (laws.sliding_drag).
    """
    q, qd = x[:N], x[N : 2 * N]
    normal, (offset, stiffness, damping, friction, slip) = x[2 * N : 2 * N + 3], x[2 * N + 3 :]
    chain = ur.chain(E[: ur.PARAMETER_COUNT])
    f = forward.frames(chain, q)
    place = v.add(f.o[-1], v.matvec(f.R[-1], chain.p_tcp))
    J = [v.cross(f.axis(j), v.subtract(place, f.o[j])) for j in range(N)]
    speed: Vector = [0.0, 0.0, 0.0]
    for j in range(N):
        speed = v.add(speed, v.scale(qd[j], J[j]))
    depth, away = offset - v.dot(normal, place), v.dot(normal, speed)
    pressed = laws.contact_force(stiffness, damping, depth, away)
    along = v.subtract(speed, v.scale(away, normal))
    drag = laws.sliding_drag(friction * pressed, slip, sqrt(v.dot(along, along) + TINY))
    force = v.subtract(v.scale(pressed, normal), v.scale(drag, along))
    return [*(v.dot(J[j], force) for j in range(N)), *force, *place, *speed]


def _of_link(choices: list[Vector], link: Scalar) -> Vector:
    out = choices[0]
    for k in range(1, N):
        out = [where(link < k - 0.5, a, b) for a, b in zip(out, choices[k], strict=True)]
    return out


@dataclass(frozen=True)
class Part:
    """One traced part: inputs x[0...], outputs, and `constants` u[0...] that follow from the parameters."""

    name: str
    inputs: int
    outputs: list[Symbol]
    shared: bool  # whether u is the same for all robots
    heads: list[Symbol]  # the constants' expressions

    def constants(self, parameters: Array) -> Array:
        """u (..., m) of parameters (..., BELIEF or PLANT)."""
        if not self.heads:
            return np.zeros((*parameters.shape[:-1], 0))
        columns = _compute(self.name)([parameters[..., i] for i in range(parameters.shape[-1])])
        return np.stack(np.broadcast_arrays(*columns), axis=-1)


_PARTS: dict[str, tuple[Callable[..., list[Scalar]], int, int]] = {
    "sense": (_sense, BELIEF, 5 * N), "watch": (_watch, WATCHED, 1 + 2 * N + detection.state_size(N)),
    "accelerate": (_accelerate, PLANT, 3 * N),
    "pushed": (_pushed, PLANT, N + 7), "turned": (_turned, PLANT, N + 4),
    "feel": (_feel, BELIEF, 2 * N), "touch": (_touch, PLANT, 2 * N + SURFACE),
}  # fmt: skip


@cache
def _compute(name: str) -> Callable[..., tuple[Any, ...]]:
    heads = parts()[name].heads
    return compiled(heads[0].graph, [], heads, parameters="P", batch=True)


@cache
def parts() -> dict[str, Part]:
    """All parts, traced once."""
    out = {}
    for name, (function, parameters, inputs) in _PARTS.items():
        graph = Graph()
        P, x = graph.inputs("P", parameters, uniform=True), graph.inputs("x", inputs)
        outputs: list[Any] = [graph.lift(y) for y in function(P, x)]
        shared = name in ("sense", "watch", "feel")
        moved, heads = hoisted(graph, outputs, "u", uniform=shared)
        out[name] = Part(name, inputs, moved, shared, heads)
    return out
