"""One state, the same state anywhere in a batch, any instruction set: the same bits.

So a simulation in a batch repeats a single run exactly, and a report made on one machine repeats on another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from test_inverse import HOME, NEAR, singular_states
from test_robot import METHODS, call, loaded

import tangere
from tangere.kernels.backend import COMPILED
from tangere.model.model import Array

pytestmark = pytest.mark.skipif(not COMPILED, reason="the compiled kernels are not built: there is only one form")

COUNT = 1000
SIZES = (1, 7, 8, 9, COUNT)  # around the widest vector (8 lanes): a tail alone, one block, a block and a tail
if COMPILED:
    from tangere import _kernels

    SETS = _kernels.instruction_sets()
else:
    SETS = []


@pytest.fixture(params=SETS)
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    _kernels.use(request.param)
    yield request.param
    _kernels.use(SETS[0])  # the list begins with the widest, which is what an import takes


@pytest.fixture(scope="module")
def states() -> tuple[Array, Array, Array]:
    """Random states, and awkward ones: zeros, quarter turns, huge angles, tiny numbers."""
    rng = np.random.default_rng(4)
    q, qd, qdd = (rng.uniform(-6.0, 6.0, (COUNT, 6)) for _ in range(3))
    q[3] = 0.0
    q[4], qd[4], qdd[4] = -0.0, -0.0, 0.0
    q[5] = np.arange(-3, 3) * np.pi / 2
    q[6] = rng.uniform(-1e6, 1e6, 6)
    q[7], qd[7], qdd[7] = 1e-310, 1e-200, 5e-324
    q[8] = HOME
    return q, qd, qdd


def bits(x: Any) -> Array:
    """The numbers as integers, so that -0.0 and 0.0 differ and NaN equals itself."""
    return np.ascontiguousarray(np.asarray(x, dtype=np.float64)).view(np.int64)


@pytest.fixture(scope="module")
def robot() -> tangere.Robot:
    return loaded()


@pytest.mark.parametrize("method", [*METHODS, *(f"link {k}" for k in range(1, 7))])
def test_kernels(method: str, instruction_set: str, robot: tangere.Robot, states: tuple[Array, Array, Array]) -> None:
    point = np.array([0.1, -0.2, 0.3])
    if method.startswith("link "):
        link = int(method[5:])
        args: tuple[Any, ...] = (states[0], np.broadcast_to(point, (COUNT, 3)))

        def evaluate(*a: Any) -> tuple[Array, ...]:
            return (robot.jacobian(a[0], link, a[1]),)
    else:
        args = states[: METHODS[method]]

        def evaluate(*a: Any) -> tuple[Array, ...]:
            return call(robot, method, *a)

    rows = [evaluate(*(x[k] for x in args)) for k in range(COUNT)]
    singles = [bits([row[o] for row in rows]) for o in range(len(rows[0]))]
    for size in SIZES:
        for got, wanted in zip(evaluate(*(x[:size] for x in args)), singles, strict=True):
            assert np.array_equal(bits(got).reshape(wanted[:size].shape), wanted[:size]), f"batch of {size}"


def test_a_row_does_not_depend_on_its_neighbours(
    instruction_set: str, robot: tangere.Robot, states: tuple[Array, Array, Array]
) -> None:
    """The same state in every place of a block of 16, among other states."""
    q, qd, qdd = states
    wanted = bits(robot.inverse_dynamics(q[20], qd[20], qdd[20]))
    for place in range(16):
        a, b, c = (x[100:116].copy() for x in states)
        a[place], b[place], c[place] = q[20], qd[20], qdd[20]
        assert np.array_equal(bits(robot.inverse_dynamics(a, b, c)[place]), wanted)


def poses(robot: tangere.Robot) -> tuple[Array, Array]:
    """Random, singular (exact and near) and unreachable poses, with references."""
    rng = np.random.default_rng(6)
    parts = [rng.uniform(-np.pi, np.pi, (300, 6))]
    for kind in ("wrist", "elbow", "shoulder", "wrist elbow shoulder"):
        parts += [singular_states(robot, kind, off, 10, rng) for off in NEAR]
    q = np.concatenate(parts)
    T = robot.pose(q)
    T[:20, :3, 3] *= 3.0
    T[20:40, :3, :3] += rng.uniform(-1e-6, 1e-6, (20, 3, 3))
    return T, q


@pytest.mark.parametrize("with_reference", [True, False])
def test_inverse_kinematics(with_reference: bool, instruction_set: str, robot: tangere.Robot) -> None:
    """All eight lanes of every pose, the masked ones too, on every instruction set and in every batch size."""
    T, q = poses(robot)
    _kernels.use("scalar")
    wanted = robot.inverse_kinematics(T, q if with_reference else None)
    _kernels.use(instruction_set)
    assert isinstance(wanted, tangere.IKBatch)
    for size in (1, 7, 8, 9, len(T)):
        got = robot.inverse_kinematics(T[:size], q[:size] if with_reference else None)
        assert isinstance(got, tangere.IKBatch)
        assert np.array_equal(got.valid, wanted.valid[:size])
        assert np.array_equal(got.flags, wanted.flags[:size])
        for name in ("q", "correction", "distance"):
            assert np.array_equal(bits(getattr(got, name)), bits(getattr(wanted, name)[:size])), name
    for k in range(len(T)):
        one = robot.inverse_kinematics(T[k], q[k] if with_reference else None)
        assert isinstance(one, tangere.IKSolutions)
        assert np.array_equal(bits(one.q), bits(wanted.q[k][wanted.valid[k]]))
        assert np.array_equal(one.flags, wanted.flags[k][wanted.valid[k]])


def test_instruction_sets_are_named() -> None:
    assert SETS[-1] == "scalar"
    with pytest.raises(tangere.InvalidValue, match="not available"):
        _kernels.use("abacus")
