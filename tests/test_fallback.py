"""The Python form, which serves where the extension could not be built, computes what the compiled form computes."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import relative_error
from test_import import python
from test_inverse import (
    FK,
    KINDS,
    NEAR,
    READY,
    SAME,
    duplicates,
    fk_error,
    gap,
    in_half_open_turn,
    missed,
    singular_states,
)
from test_robot import METHODS, call, loaded

import tangere
from tangere.kernels.backend import COMPILED
from tangere.kernels.table import KERNELS
from tangere.kernels.traced import TracedKernels
from tangere.model.model import Array

# Both forms perform the same operations in the same order; only sin, cos and atan2 differ, by an ulp.
TOLERANCE = 1e-12
needs_both = pytest.mark.skipif(not COMPILED, reason="the compiled kernels are not built: nothing to compare with")


@pytest.fixture(scope="module")
def pair() -> tuple[tangere.Robot, TracedKernels]:
    robot = loaded()
    traced = TracedKernels(robot.model, rotor_inertia=robot.rotor_inertia)
    traced.robot = lambda: robot  # as robot.py does, with a weak reference
    return robot, traced


@needs_both
@pytest.mark.parametrize("method", METHODS)
def test_kernels(method: str, pair: tuple[tangere.Robot, TracedKernels], rng: np.random.Generator) -> None:
    robot, traced = pair
    args = [rng.uniform(-3.0, 3.0, (2, 50, 6)) for _ in range(METHODS[method])]
    for rows in (slice(None), (0, 0)):
        wanted = call(robot, method, *(x[rows] for x in args))
        got = call(traced, method, *(x[rows] for x in args))  # type: ignore[arg-type]
        for a, b in zip(got, wanted, strict=True):
            assert type(a) is type(b)
            assert relative_error(a, b) < TOLERANCE


@needs_both
def test_jacobian_of_a_point(pair: tuple[tangere.Robot, TracedKernels], rng: np.random.Generator) -> None:
    robot, traced = pair
    q, point = rng.uniform(-3.0, 3.0, (20, 6)), rng.uniform(-1.0, 1.0, (20, 3))
    for link in range(1, 7):
        assert relative_error(traced.jacobian(q, link, point), robot.jacobian(q, link, point)) < TOLERANCE
        assert relative_error(traced.jacobian(q[0], link=link), robot.jacobian(q[0], link=link)) < TOLERANCE


@needs_both
@pytest.mark.parametrize("reference", [False, True])
def test_inverse_kinematics(
    reference: bool, pair: tuple[tangere.Robot, TracedKernels], rng: np.random.Generator
) -> None:
    """Random poses away from singularities (there an ulp is amplified by the condition), one and many; out of reach."""
    robot, traced = pair
    q = rng.uniform(-np.pi, np.pi, (400, 6))
    q = q[np.abs(np.linalg.det(robot.jacobian(q))) > 0.03]
    T = robot.pose(q)
    T[:10, :3, 3] *= 4.0
    ref = q if reference else None
    wanted, got = robot.inverse_kinematics(T, ref), traced.inverse_kinematics(T, ref)
    assert isinstance(wanted, tangere.IKBatch)
    assert isinstance(got, tangere.IKBatch)
    assert np.array_equal(got.valid, wanted.valid)
    assert np.max(gap(got.q, wanted.q), where=wanted.valid, initial=0.0) < TOLERANCE * 10  # J^-1 reaches 10 here
    assert np.array_equal(got.flags[wanted.valid], wanted.flags[wanted.valid])
    assert relative_error(got.distance, wanted.distance) < TOLERANCE
    assert np.max(np.abs(got.correction - wanted.correction)) < TOLERANCE
    for k in (0, 50, 100):
        one, two = robot.inverse_kinematics(T[k], q[k]), traced.inverse_kinematics(T[k], q[k])
        assert isinstance(one, tangere.IKSolutions)
        assert isinstance(two, tangere.IKSolutions)
        assert (one.shoulder, one.elbow, one.wrist) == (two.shoulder, two.elbow, two.wrist)
        assert np.array_equal(one.lanes, two.lanes)
        if len(one):
            assert np.max(gap(one.q, two.q)) < TOLERANCE * 10


@needs_both
@pytest.mark.parametrize("kind", KINDS)
def test_inverse_kinematics_at_singular_poses(kind: str, pair: tuple[tangere.Robot, TracedKernels]) -> None:
    """Exact and near: the source is recovered, the pose reached, nothing given twice; as in test_inverse.py."""
    robot, traced = pair
    rng = np.random.default_rng(8)
    q = np.concatenate([singular_states(robot, kind, off, 20, rng) for off in NEAR])
    T = robot.pose(q)
    got = traced.inverse_kinematics(T, q)
    assert isinstance(got, tangere.IKBatch)
    assert np.max(missed(got, q)) < SAME
    assert fk_error(robot, got, T) < FK
    assert duplicates(got) == 0
    assert in_half_open_turn(got)
    for k in range(0, len(q), 10):
        one = traced.inverse_kinematics(T[k], q[k])
        assert isinstance(one, tangere.IKSolutions)
        assert np.array_equal(one.lanes, np.nonzero(got.valid[k])[0])


@needs_both
def test_answers_of_both_forms_are_alike(pair: tuple[tangere.Robot, TracedKernels]) -> None:
    """The same attributes, and arrays that are the caller's own: writing into one changes nothing."""
    robot, traced = pair
    T = robot.pose(READY)
    one, two = robot.inverse_kinematics(T), traced.inverse_kinematics(T)

    def public(x: Any) -> set[str]:
        return {name for name in dir(x) if not name.startswith("_")}

    assert public(one) == public(two)
    for answer in (one, two):
        before = answer.q.copy()
        answer.q[...] = 7.0
        assert np.array_equal(answer.q, before)


# ----------------------------------------------------------------------------------- a whole process without C

SCRIPT = """
import json, sys, warnings
import numpy as np
{before}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import tangere
    robot = tangere.robot("ur10e", payload=(2.0, (0.01, 0.02, 0.03)), tool=(0.0, 0.1, 0.2))
    tangere.robot("ur5e")
    tangere.robot("scara")
q, qd, qdd = (np.array(x) for x in json.loads(sys.argv[1]))
out = {{"warnings": [[w.category.__name__, str(w.message)] for w in caught]}}
for method, count in json.loads(sys.argv[2]).items():
    for rows in (0, slice(None)):
        result = getattr(robot, method)(*(x[rows] for x in (q, qd, qdd)[:count]))
        parts = result if isinstance(result, tuple) else (result,)
        out[f"{{method}} {{rows}}"] = [np.asarray(p).tolist() for p in parts]
answer = robot.inverse_kinematics(robot.pose(q[0]), q[0])
out["ik"] = [answer.q.tolist(), list(answer.elbow), answer.nearest(q[0]).tolist()]
out["batch"] = robot.inverse_kinematics(robot.pose(q)).count.tolist()
refused = []
for bad in ([0.0] * 5, "text", [np.nan] * 6, [[1.0], [2.0, 3.0]], [1j] * 6, [2e6] * 6, None):
    try:
        robot.pose(bad)
    except tangere.InvalidValue as error:
        refused.append(str(error))
    for keywords in ({{"link": 7}}, {{"link": 0}}, {{"point": [0.0] * 3}}, {{"link": 2, "point": [0.0] * 2}}):
        try:
            robot.jacobian(q[0], **keywords)
        except tangere.InvalidValue as error:
            refused.append(str(error))
out["refused"] = refused
print(json.dumps(out))
"""


def run(before: str, q: Array, environment: dict[str, str]) -> dict[str, Any]:
    source = Path(tangere.__file__).resolve().parent.parent
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(before=before), json.dumps(q.tolist()), json.dumps(METHODS)],
        capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, "PYTHONPATH": str(source), **environment},
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    answer: dict[str, Any] = json.loads(finished.stdout)
    return answer


@needs_both
@pytest.mark.parametrize("how", ["asked for", "not built"])
def test_a_process_without_the_extension(how: str, rng: np.random.Generator) -> None:
    """Everything works, to 1e-12; the one warning says that the slow form serves."""
    q = rng.uniform(-1.5, 1.5, (3, 4, 6)) + READY
    asked = how == "asked for"
    before = "" if asked else "sys.modules['tangere._kernels'] = None  # what an import of a missing module finds"
    got = run(before, q, {"TANGERE_KERNELS": "python"} if asked else {})
    assert len(got["warnings"]) == 1
    category, message = got["warnings"][0]
    assert category == "RuntimeWarning"
    assert "compiled kernels are not available" in message
    robot = tangere.robot("ur10e", payload=(2.0, (0.01, 0.02, 0.03)), tool=(0.0, 0.1, 0.2))
    for method, count in METHODS.items():
        for rows in (0, slice(None)):
            wanted = call(robot, method, *(x[rows] for x in q[:count]))
            for a, b in zip(got[f"{method} {rows}"], wanted, strict=True):
                assert relative_error(a, b) < TOLERANCE
    answer = robot.inverse_kinematics(robot.pose(q[0][0]), q[0][0])
    assert isinstance(answer, tangere.IKSolutions)
    assert np.max(gap(got["ik"][0], answer.q)) < 1e-10  # the condition of a random pose times an ulp
    assert tuple(got["ik"][1]) == answer.elbow
    assert np.max(np.abs(got["ik"][2] - answer.nearest(q[0][0]))) < 1e-10
    many = robot.inverse_kinematics(robot.pose(q[0]))
    assert isinstance(many, tangere.IKBatch)
    assert got["batch"] == many.count.tolist()
    assert len(got["refused"]) == 7 * 5
    assert all(text.startswith(("q", "link", "point", "jacobian()")) for text in got["refused"])


def test_no_warning_where_the_compiled_form_serves() -> None:
    if not COMPILED:
        pytest.skip("the compiled kernels are not built")
    assert run("", np.zeros((3, 4, 6)) + READY, {"TANGERE_KERNELS": ""})["warnings"] == []


def test_both_forms_have_the_same_methods() -> None:
    """Names, arguments and first lines of the documentation; robots.py declares them once for both."""
    names = {kernel.name for kernel in KERNELS} | {"inverse_kinematics"}
    assert names == set(METHODS) | {"inverse_kinematics"}
    code = """
import inspect, json, os
os.environ["TANGERE_KERNELS"] = "python"
import tangere
from tangere.kernels.backend import Kernels
said = ""
try:
    Kernels(None)
except TypeError as problem:
    said = str(problem)
methods = {n: f for n, f in vars(tangere.Robot).items() if callable(f)}
print(json.dumps([said, {n: [list(inspect.signature(f).parameters), f.__doc__] for n, f in methods.items()}]))
"""
    said, methods = json.loads(python(code, Path(tangere.__file__).parents[2]))
    assert said == "the Python form needs traced kernels"
    for name in names:
        method = getattr(tangere.Robot, name)
        arguments, text = methods[name]
        assert list(inspect.signature(method).parameters) == arguments, name
        assert method.__doc__.splitlines()[0] == text.splitlines()[0], name
