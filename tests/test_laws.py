"""The laws of controllers and observers: one text in C, in printed Python and on numbers; and the C they replaced."""

from __future__ import annotations

import ctypes
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_emit import library

import tangere
from tangere.control.computed_torque import ComputedTorque
from tangere.control.joint_impedance import JointImpedance
from tangere.dynamics import laws
from tangere.dynamics.friction import JointFriction
from tangere.identification import prior_drive
from tangere.kernels.backend import COMPILED
from tangere.kernels.emit import c as emit_c
from tangere.kernels.emit import python as emit_python
from tangere.kernels.joint_laws import JOINT_LAWS, JointLaw, trace_joint_law
from tangere.model.model import Array
from tangere.observe.inputs import law_of
from tangere.observe.momentum import MomentumObserver
from tangere.types import State

C_LAW = """
#include <math.h>
#include <string.h>
#define TG_WIDTH {width}
#define TG_SUFFIX test
#include "lanes.h"
{math}
{text}
void run(int n, const double *x, const double *P, double *out)
{{
    for (int i = 0; i < n; i += TG_WIDTH) {{
        V in[{inputs}], y[{outputs}];
        for (int k = 0; k < {inputs}; k++)
            memcpy(&in[k], x + k * n + i, sizeof(V));
        TG_FN({name})(in, P, y);
        for (int k = 0; k < {outputs}; k++)
            memcpy(out + k * n + i, &y[k], sizeof(V));
    }}
}}
"""


def values(law: JointLaw, count: int = 64) -> tuple[Array, Array]:
    """Inputs (k, count) and parameters of everyday size; a period is positive."""
    rng = np.random.default_rng(len(law.name))
    x = rng.uniform(-2.0, 2.0, (len(law.inputs), count))
    for k, name in enumerate(law.inputs):
        if name == "h":
            x[k] = rng.uniform(1e-4, 0.1, count)
    return x, rng.uniform(0.1, 30.0, len(law.parameters))


def pointer(a: Any) -> Any:
    return None if a is None else a.ctypes.data_as(ctypes.c_void_p)


@pytest.mark.parametrize("law", JOINT_LAWS, ids=lambda law: law.name)
def test_a_law_is_the_same_in_c_in_python_and_on_numbers(law: JointLaw, tmp_path: Path) -> None:
    """Bit by bit in lanes and printed Python; within 1e-13 of the equation on numpy's own functions."""
    t = trace_joint_law(law)
    x, P = values(law)
    text = emit_c.function(law.name, t.graph, ["x"], t.outputs, inline=True)
    math = emit_c.math_functions(("expm1", "tanh"))
    out = {}
    for width in (1, 4):
        (folder := tmp_path / str(width)).mkdir()
        sizes = {"inputs": len(law.inputs), "outputs": len(law.outputs)}
        whole = C_LAW.format(width=width, math=math, text=text, name=law.name, **sizes)
        out[width] = np.empty((len(law.outputs), x.shape[1]))
        library(folder, whole).run(x.shape[1], pointer(x), pointer(P), pointer(out[width]))
    assert np.array_equal(out[1], out[4])
    printed = emit_python.compiled(t.graph, ["x"], t.outputs, batch=True)(list(x), P.tolist())
    wanted = np.reshape(law.function(*x, *P.tolist()), (len(law.outputs), -1))
    size = np.abs(wanted).max()
    assert np.abs(out[1] - wanted).max() < 1e-13 * size
    assert np.abs(out[1] - printed).max() <= (1e-13 * size if law.name == "ripple" else 0.0)  # Python's own sine


def log(count: int = 600) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(4)
    q = np.cumsum(rng.normal(scale=1e-3, size=(count, 6)), axis=0)
    return 1e-3 * np.arange(count), q, np.gradient(q, 1e-3, axis=0), rng.normal(scale=20.0, size=(count, 6))


def frictions(robot: tangere.Robot) -> dict[str, Any]:
    rng = np.random.default_rng(9)
    drive = dataclasses.replace(
        prior_drive(robot), quadratic=-np.ones(6), load=np.full(6, 0.02), offset=rng.normal(size=6),
        orders=(101, 200, 202), ripple=rng.normal(size=(6, 6)),
    )  # fmt: skip
    return {"none": None, "plain": JointFriction.of(robot.drives), "drive": drive}


@pytest.mark.skipif(not COMPILED, reason="the compiled kernels are not built: there is no compiled observer")
@pytest.mark.parametrize("kind", ["none", "plain", "drive"])
def test_the_hand_written_observer_had_the_same_bits(kind: str, tmp_path: Path) -> None:
    robot = tangere.robot("ur10e")
    friction = frictions(robot)[kind]
    time, q, qd, tau = log()
    gain = np.array([50.0, 40.0, 30.0, 60.0, 70.0, 80.0])
    header = (Path(__file__).parent / "data" / "hand_written_momentum.h").read_text()
    head = '#include <math.h>\n#include <string.h>\n#define TG_WIDTH 1\n#define TG_SUFFIX test\n#include "lanes.h"\n'
    hand = library(tmp_path, head + emit_c.math_functions() + header).hand_residuals
    law = law_of(friction, 6)
    assert law is not None
    order = np.array(law.orders, dtype=np.float64)
    p, coriolis, g = robot.momentum_terms(q, qd)
    wanted = np.empty_like(q)
    hand(
        len(time), ctypes.c_double(1e-3), pointer(gain), pointer(law.terms), kind == "plain", len(order),
        pointer(order), pointer(np.ascontiguousarray(law.ripple[:, : 2 * len(order)])), pointer(q), pointer(qd),
        pointer(tau), pointer(p), pointer(coriolis), pointer(g), pointer(wanted),
    )  # fmt: skip
    observer = MomentumObserver(robot, gain, friction)
    states = [State(float(t), 1e-3, *rows) for t, *rows in zip(time, q, qd, tau, strict=True)]
    observer.reset(states[0])
    got = np.array([observer.update(state).copy() for state in states[1:]])
    assert np.array_equal(got, wanted[1:])
    assert np.abs(got).max() > 1.0


def test_controllers_follow_their_laws() -> None:
    """ComputedTorque and JointImpedance are their laws over floats, joint by joint."""
    robot = tangere.robot("ur10e")
    rng = np.random.default_rng(1)
    q, qd, goal = (rng.uniform(-1.0, 1.0, 6) for _ in range(3))
    state = State(0.0, 1e-3, q, qd, np.zeros(6))
    computed, spring = ComputedTorque(robot, goal, kp=50.0), JointImpedance(robot, goal, stiffness=30.0, damping=2.0)
    for controller in (computed, spring):
        controller.start(state)
    kv = 2.0 * np.sqrt(50.0)
    wanted = [laws.servo_acceleration(50.0, kv, a, b, c, 0.0, 0.0) for a, b, c in zip(q, qd, goal, strict=True)]
    np.testing.assert_allclose(computed.step(state).tau, robot.inverse_dynamics(q, qd, wanted), rtol=1e-13)
    g = robot.gravity_torque(q)
    wanted = [laws.spring_torque(30.0, 2.0, a, b, c, 0.0, w) for a, b, c, w in zip(q, qd, goal, g, strict=True)]
    np.testing.assert_allclose(spring.step(state).tau, wanted, rtol=1e-13)
