"""What a call accepts and gives back: arrays of any layout, lists, leading axes; results, copies, threads."""

from __future__ import annotations

import copy
import pickle
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from oracles import relative_error
from test_robot import METHODS, ROBOTS, call, loaded, states

import tangere
from tangere.model.model import Array


class Marked(np.ndarray):
    """A subclass of ndarray, as units or tables bring along."""


def forms_of(x: Array) -> dict[str, Any]:
    strided = np.zeros((*x.shape[:-1], 2 * x.shape[-1]))
    strided[..., ::2] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    return {
        "list": x.tolist(),
        "tuple": tuple(x.tolist()) if x.ndim == 1 else tuple(map(tuple, x.tolist())),
        "Fortran order": np.asfortranarray(x),
        "every second": strided[..., ::2],
        "backwards": np.ascontiguousarray(x[..., ::-1])[..., ::-1],
        "read-only": frozen,
        "subclass": x.view(Marked),
        "big-endian": x.astype(">f8"),
        "list of arrays": list(x),
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["ur10e", "scara"])
def test_any_layout_gives_the_same(name: str, method: str) -> None:
    robot = ROBOTS[name]
    args = states(robot, 5)[: METHODS[method]]
    for single in (True, False):
        plain = [np.ascontiguousarray(x[0] if single else x) for x in args]
        expected = call(robot, method, *plain)
        kept = [x.copy() for x in plain]
        for form in forms_of(plain[0]):
            result = call(robot, method, *(forms_of(x)[form] for x in plain))
            for ours, wanted in zip(result, expected, strict=True):
                assert np.array_equal(ours, wanted), form
                assert type(ours) in (np.ndarray, float)
        for x, before in zip(plain, kept, strict=True):
            assert np.array_equal(x, before)  # arguments are never written to


def test_numbers_that_are_not_doubles() -> None:
    """Integers, truth values and float32 are read as what they are."""
    robot = ROBOTS["ur10e"]
    assert np.array_equal(robot.pose([0, -1, 1, 2, 0, 1]), robot.pose([0.0, -1.0, 1.0, 2.0, 0.0, 1.0]))
    assert np.array_equal(robot.pose(np.arange(6, dtype=np.int8)), robot.pose(np.arange(6.0)))
    assert np.array_equal(robot.pose([True] * 6), robot.pose(np.ones(6)))
    single = np.linspace(-1, 1, 6, dtype=np.float32)
    assert np.array_equal(robot.pose(single), robot.pose(single.astype(float)))
    assert robot.pose(single).dtype == np.float64


@pytest.mark.parametrize("name", ["ur10e", "scara"])
def test_leading_axes(name: str) -> None:
    """Any number of them, broadcast between the arguments, none lost where a batch is empty."""
    robot = ROBOTS[name]
    n = robot.dof
    q, qd, qdd = (x.reshape(3, 4, n) for x in states(robot, 12))
    for method, count in METHODS.items():
        args = (q, qd, qdd)[:count]
        whole = call(robot, method, *args)
        one = call(robot, method, *(x[1, 2] for x in args))
        for w, o in zip(whole, one, strict=True):
            assert np.shape(w) == (3, 4, *np.shape(o))
            assert relative_error(w[1, 2], o) < 1e-12
        for empty in ((0,), (3, 0)):
            for e, o in zip(call(robot, method, *(np.zeros((*empty, n)) for _ in args)), one, strict=True):
                assert np.shape(e) == (*empty, *np.shape(o))
    spread = np.broadcast_to(qd[0, 0], (3, 1, n))
    assert np.array_equal(robot.bias_torque(q[:, :1], qd[0, 0]), robot.bias_torque(q[:, :1], spread))
    assert robot.inverse_dynamics(q[:, :1], qd[:1], qdd[0, 0]).shape == (3, 4, n)
    point = np.zeros((4, 3))
    assert robot.jacobian(q, link=n, point=point).shape == (3, 4, 6, n)
    assert robot.jacobian(q[0, 0], link=n, point=point).shape == (4, 6, n)


def ways_to_hold(array: Any) -> dict[str, Any]:
    """What a caller may keep of a result, without keeping the array by its name."""
    return {
        "itself": array,
        "slice": array[..., :2],
        "transposed": array.T,
        "flat": array.reshape(-1),
        "view of a view": array[1:][..., 0],
        "subclass": array.view(Marked),
        "memory": memoryview(array),
        "data": array.data,
        "from buffer": np.frombuffer(array),
        "strided": np.lib.stride_tricks.as_strided(array, shape=(4,), strides=(8,)),
        "iterator": array.flat,
        "in a list": [array],
        "attribute": array[..., 0].base,
    }


@pytest.mark.parametrize("held", list(ways_to_hold(np.zeros((2, 2)))))
@pytest.mark.parametrize("name", ["ur10e", "scara"])
def test_a_held_result_never_changes(name: str, held: str) -> None:
    """Memory of results may be used again, but not while anybody can see it, however little of it is kept."""
    robot = ROBOTS[name]
    q = np.full(robot.dof, 0.3)
    for method, count in METHODS.items():
        if method == "energy":
            continue
        kept = [ways_to_hold(part)[held] for part in call(robot, method, *[q] * count) if part.ndim > 1]
        before = [np.array(k.copy() if held == "iterator" else k) for k in kept]
        for step in range(5):
            call(robot, method, *[q + step] * count)
        for k, b in zip(kept, before, strict=True):
            assert np.array_equal(np.array(k.copy() if held == "iterator" else k), b), method


def test_a_held_tuple_never_changes() -> None:
    """Several outputs, kept together: nothing but the tuple holds the arrays."""
    robot = ROBOTS["ur10e"]
    q = np.full(6, 0.3)
    for method, count in METHODS.items():
        kept = getattr(robot, method)(*[q] * count)
        before = copy.deepcopy(kept)
        for step in range(5):
            getattr(robot, method)(*[q + step] * count)
        pairs = zip(kept, before, strict=True) if isinstance(kept, tuple) else [(kept, before)]
        assert all(np.array_equal(a, b) for a, b in pairs), method


@pytest.mark.parametrize("name", ["ur10e", "scara"])
def test_a_result_that_was_changed_does_not_come_back(name: str) -> None:
    """Frozen, reshaped, retyped or overwritten by the caller and then dropped: the next result is a proper one."""
    robot = ROBOTS[name]
    q = np.full(robot.dof, 0.3)
    shapes = {method: [np.shape(p) for p in call(robot, method, *[q] * n)] for method, n in METHODS.items()}

    def freeze(a: Array) -> None:
        a.flags.writeable = False

    def reshape(a: Array) -> None:
        a.shape = (a.size,)

    def retype(a: Any) -> None:
        a.dtype = np.dtype(np.int64)

    def swap(a: Any) -> None:
        a.dtype = np.dtype(">f8")

    def overwrite(a: Array) -> None:
        a[...] = np.nan

    for change in (freeze, reshape, retype, swap, overwrite):
        for method, count in METHODS.items():
            wanted = [np.copy(p) for p in call(robot, method, *[q] * count)]
            for part in call(robot, method, *[q] * count):
                if isinstance(part, np.ndarray):
                    change(part)
                del part
            for _ in range(3):
                got = call(robot, method, *[q] * count)
                assert [np.shape(p) for p in got] == shapes[method]
                assert all(np.array_equal(a, b) for a, b in zip(got, wanted, strict=True)), (change.__name__, method)
                arrays = [p for p in got if isinstance(p, np.ndarray)]
                assert all(p.flags.writeable and p.dtype == np.float64 for p in arrays)


def test_results_outlive_their_robot() -> None:
    robot = loaded("ur5e")
    M, terms = robot.mass_matrix(np.zeros(6)), robot.momentum_terms(np.zeros(6), np.ones(6))
    copies = M.copy(), [t.copy() for t in terms]
    del robot
    other = loaded("ur5e")
    other.mass_matrix(np.ones(6))
    other.momentum_terms(np.ones(6), np.ones(6))
    assert np.array_equal(M, copies[0])
    assert all(np.array_equal(a, b) for a, b in zip(terms, copies[1], strict=True))


@pytest.mark.parametrize("name", list(ROBOTS))
def test_pickle_and_deepcopy(name: str) -> None:
    robot = ROBOTS[name]
    q, qd, qdd = states(robot, 3)
    for twin in (pickle.loads(pickle.dumps(robot)), copy.deepcopy(robot), copy.copy(robot)):
        assert repr(twin) == repr(robot)
        for method, count in METHODS.items():
            for a, b in zip(*(call(r, method, *(q, qd, qdd)[:count]) for r in (twin, robot)), strict=True):
                assert np.array_equal(a, b)
        assert np.array_equal(twin.rotor_inertia, robot.rotor_inertia)


def test_what_a_robot_says_about_itself() -> None:
    robot = tangere.robot("ur10e")
    assert (robot.name, robot.dof) == ("ur10e", 6)
    assert repr(robot) == "Robot('ur10e', parameters='official', dof=6)"
    assert robot.drives is robot.model.drives
    assert np.array_equal(robot.tau_max, [j.tau_max for j in robot.model.joints])
    for array in (robot.q_min, robot.q_max, robot.qd_max, robot.tau_max, robot.rotor_inertia, robot.revolute):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_threads_compute_at_the_same_time() -> None:
    """Batches release the interpreter: four threads on one robot, each with its own result."""
    robot = ROBOTS["ur10e"]
    q, qd, qdd = states(robot, 4000)
    T = robot.pose(q)
    expected = [robot.inverse_dynamics(q + k, qd, qdd) for k in range(4)]
    solutions = robot.inverse_kinematics(T).q
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(5):
            same = np.array_equal(robot.inverse_dynamics(q + k, qd, qdd), expected[k])
            if not (same and np.array_equal(robot.inverse_kinematics(T).q, solutions)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_too_many_leading_axes_are_refused() -> None:
    """numpy's own functions take 32 axes: room is left for those that an output adds."""
    robot = tangere.robot("ur10e")
    assert robot.link_poses(np.zeros((1,) * 23 + (6,))).shape == (1,) * 23 + robot.link_poses(np.zeros(6)).shape
    for leading in (24, 63):
        with pytest.raises(tangere.InvalidValue, match=f"q: at most 24 axes, got {leading + 1}"):
            robot.link_poses(np.zeros((1,) * leading + (6,)))


def test_a_result_that_is_weakly_referenced_is_not_used_again() -> None:
    robot = tangere.robot("ur10e")
    held = weakref.ref(robot.pose(np.zeros(6)))
    before = None if held() is None else held().copy()  # type: ignore[union-attr]
    for k in range(5):
        robot.pose(np.full(6, 0.1 * k))
    after = held()
    assert before is None or after is None or np.array_equal(after, before)
