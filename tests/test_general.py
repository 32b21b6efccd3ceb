"""Compiled kernels of arms that are no UR: any geometry, any kinds of joints, one to eight of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import random_arm

import tangere
from tangere.kernels import general
from tangere.kernels.backend import COMPILED
from tangere.kernels.table import KERNELS
from tangere.kernels.traced import TracedKernels
from tangere.kinematics.chain import chain_of
from tangere.model.model import Model
from tangere.model.urdf_text import to_urdf

pytestmark = pytest.mark.skipif(not COMPILED, reason="the extension was not built")

# a joint alone, fewer joints than any structure has, each structure filled, sliding joints first, last and between
KINDS = ("r", "p", "rr", "rpr", "rrpr", "rrrrr", "rrrrrr", "rrprrr", "rrrrrrr", "prrrrrr", "rrrrrrrr", "prprprpr")


def pair(model: Model, rng: np.random.Generator) -> tuple[tangere.Robot, TracedKernels]:
    """The compiled robot and the same arm in Python, with rotor inertia."""
    rotor = rng.uniform(0.1, 2.0, model.dof)
    return tangere.Robot(model, rotor), TracedKernels(model, rotor_inertia=rotor)


def flat(answer: Any) -> Any:
    """All numbers of an answer in a row."""
    parts = answer if isinstance(answer, tuple) else (answer,)
    return np.concatenate([np.ravel(part) for part in parts])


@pytest.mark.parametrize("kinds", KINDS)
def test_every_quantity_is_that_of_the_python_form(kinds: str, rng: np.random.Generator) -> None:
    """Another parametrisation and another text; 1e-12 of the largest entry, and never less than 1."""
    model = random_arm(len(kinds), kinds)
    robot, python = pair(model, rng)
    assert robot.compiled
    assert not robot.ur_kernels
    for _ in range(5):
        for kernel in KERNELS:
            x = [rng.uniform(-3.0, 3.0, model.dof) for _ in kernel.inputs]
            want = flat(getattr(python, kernel.name)(*x))
            np.testing.assert_allclose(
                flat(getattr(robot, kernel.name)(*x)), want, rtol=0.0, atol=1e-12 * max(1.0, np.max(np.abs(want)))
            )
        q, point, link = rng.uniform(-3.0, 3.0, model.dof), rng.uniform(-1.0, 1.0, 3), int(rng.integers(model.dof)) + 1
        np.testing.assert_allclose(robot.jacobian(q, link, point), python.jacobian(q, link, point), atol=1e-12)


@pytest.mark.parametrize("kinds", ["rrr", "rrrrrr", "rrrrrrr", "rrprr"])
def test_one_state_a_batch_and_every_instruction_set_have_the_same_bits(kinds: str, rng: np.random.Generator) -> None:
    from tangere import _kernels

    robot, _ = pair(random_arm(1, kinds), rng)
    sets = _kernels.instruction_sets()
    try:
        for kernel in KERNELS:
            x = [rng.uniform(-7.0, 7.0, (19, len(kinds))) for _ in kernel.inputs]
            rows = []
            for name in sets:
                _kernels.use(name)
                method = getattr(robot, kernel.name)
                batch = method(*x)
                parts = batch if isinstance(batch, tuple) else (batch,)
                rows += [[flat(tuple(p[i] for p in parts)) for i in range(19)]]
                rows += [[flat(method(*(a[i] for a in x))) for i in range(19)]]
            for row in rows[1:]:
                np.testing.assert_array_equal(row, rows[0])
    finally:
        _kernels.use(sets[0])


def test_frames_stay_small_where_axes_are_nearly_parallel(rng: np.random.Generator) -> None:
    """A common perpendicular of axes a microradian apart lies a thousand kilometres away; nothing here does."""
    model = tangere.robot("ur10e").model
    chain = chain_of(model)
    tilted = general.canonical(chain)
    reach = float(np.abs([*model.dh.a, *model.dh.d]).sum())  # type: ignore[union-attr]
    for angle in (1e-15, 1e-9, 1e-6, 1e-3):
        c, s = np.cos(angle), np.sin(angle)
        chain.R[2] = [[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]
        tilted = general.canonical(chain)
        assert max(abs(x) for p in tilted.p for x in p) < 2.0 * reach


def test_structures() -> None:
    """The smallest that fits; none for nine joints, which Python serves."""
    names = {kinds: general.structure_of(random_arm(0, kinds)) for kinds in KINDS}
    assert names["rrrrr"] is general.SIX
    assert names["rrrrrrr"] is general.SEVEN
    assert names["rpr"] is general.EIGHT
    assert names["rrrrrrrr"] is general.EIGHT
    nine = random_arm(0, "r" * 9)
    assert general.structure_of(nine) is None
    robot = tangere.Robot(nine)
    assert not robot.compiled
    assert robot.mass_matrix(np.zeros(9)).shape == (9, 9)


def test_bad_arguments_are_answered_as_for_a_ur() -> None:
    robot = tangere.Robot(random_arm(3, "rrpr"))
    with pytest.raises(tangere.errors.InvalidValue, match=r"q: expected shape \(..., 4\), got \(6,\)"):
        robot.pose(np.zeros(6))
    with pytest.raises(tangere.errors.InvalidValue, match="link: got 5, valid are 1 to 4"):
        robot.jacobian(np.zeros(4), 5)
    with pytest.raises(tangere.errors.InvalidValue, match=r"link 1 \.\.\. 4"):
        robot.jacobian(np.zeros(4), None, np.zeros(3))
    with pytest.raises(TypeError, match=r"mass_matrix\(\) needs the argument 'q'"):
        robot.mass_matrix()  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["ur3e", "ur5e", "ur10e"])
def test_a_urdf_of_a_ur_is_solved_by_the_closed_form(name: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """Its geometry is recognised though nothing in the file says DH: all solutions and branches are the UR's."""
    path = tmp_path / "arm.urdf"
    ur = tangere.robot(name, tool=(0.1, 0.0, 0.2, 0.3, 0.2, 0.1))
    path.write_text(to_urdf(ur.model))
    read = tangere.robot(path)
    assert read.compiled
    for q in rng.uniform(-3.0, 3.0, (200, 6)):
        ours, theirs = read.inverse_kinematics(read.pose(q)), ur.inverse_kinematics(ur.pose(q))
        np.testing.assert_array_equal(ours.lanes, theirs.lanes)
        np.testing.assert_allclose(ours.q, theirs.q, atol=1e-8)
        assert (ours.shoulder, ours.elbow, ours.wrist) == (theirs.shoulder, theirs.elbow, theirs.wrist)
