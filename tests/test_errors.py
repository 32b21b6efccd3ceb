"""Bad input: an error of our own, a ValueError where a value is at fault, and a message that names the argument.

The compiled form and the Python form refuse the same things; neither leaks memory by doing so.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from test_inverse import solved
from test_robot import METHODS, ROBOTS

import tangere
from tangere import errors
from tangere.model.model import Array

NAMES = {"forward_dynamics": ("q", "qd", "tau")}
FORMS = ("ur10e", "scara")  # the compiled kernels, and the traced ones


def names_of(method: str) -> tuple[str, ...]:
    return NAMES.get(method, ("q", "qd", "qdd"))[: METHODS[method]]


def bad_vectors(n: int) -> dict[str, Any]:
    good = np.zeros(n)
    return {
        "too short": good[:-1],
        "too long": np.zeros(n + 1),
        "a matrix of columns": np.zeros((n, 3)),
        "a number": 1.0,
        "nothing": None,
        "empty": [],
        "nan": np.where(np.arange(n) == n - 1, np.nan, 0.0),
        "inf": [np.inf] + [0.0] * (n - 1),
        "minus inf in a batch": np.where(np.arange(3 * n) == 2 * n, -np.inf, 0.0).reshape(3, n),
        "text": "zero",
        "a list of text": ["zero"] * n,
        "bytes": b"\x00" * n,
        "ragged": [[0.0] * n, [0.0]],
        "complex": good + 1j,
        "objects": [object()] * n,
        "a dictionary": {"q": 0.0},
    }


@pytest.mark.parametrize("what", list(bad_vectors(6)))
@pytest.mark.parametrize("name", FORMS)
def test_bad_vectors_are_refused_by_every_method(name: str, what: str) -> None:
    """In every place of every method; the message begins with the argument's name."""
    robot = ROBOTS[name]
    good = [0.0] * robot.dof
    bad = bad_vectors(robot.dof)[what]
    for method, count in METHODS.items():
        for place, argument in enumerate(names_of(method)):
            args = [bad if k == place else good for k in range(count)]
            with pytest.raises(tangere.InvalidValue) as caught:
                getattr(robot, method)(*args)
            assert isinstance(caught.value, ValueError)
            assert str(caught.value).startswith(f"{argument}:"), method
    if what not in ("nothing", "a matrix of columns"):  # no point is a point, and (3, 3) is three of them
        with pytest.raises(tangere.InvalidValue, match=r"^point:"):
            robot.jacobian(good, 2, bad_vectors(3)[what])


@pytest.mark.parametrize("name", FORMS)
def test_messages_say_what_was_given_and_what_is_wanted(name: str) -> None:
    robot = ROBOTS[name]
    n = robot.dof
    with pytest.raises(tangere.InvalidValue, match=rf"\(\.\.\., {n}\).*\({n + 1},\)"):
        robot.pose(np.zeros(n + 1))
    with pytest.raises(tangere.InvalidValue, match="nan"):
        robot.pose([np.nan] * n)
    with pytest.raises(tangere.InvalidValue, match=r"leading axes.*\(3, .*\(4, "):
        robot.bias_torque(np.zeros((3, n)), np.zeros((4, n)))


@pytest.mark.parametrize("name", FORMS)
def test_angles_that_are_too_large(name: str) -> None:
    """Beyond 1e6 rad sin and cos lose digits: refused as q, accepted as a velocity or torque."""
    robot = ROBOTS[name]
    n = robot.dof
    for size in (1.1e6, -1e300):
        with pytest.raises(tangere.InvalidValue, match=r"^q: .*rad"):
            robot.pose([size] + [0.0] * (n - 1))
        with pytest.raises(tangere.InvalidValue, match=r"^q: .*rad"):
            robot.pose([[0.0] * n, [size] * n])
    assert np.all(np.isfinite(robot.forward_dynamics([0.0] * n, [0.0] * n, [2e6] * n)))


@pytest.mark.parametrize("name", FORMS)
def test_links(name: str) -> None:
    robot = ROBOTS[name]
    n = robot.dof
    q = [0.1] * n
    for link in (0, -1, n + 1, 10**30, -(10**30)):
        with pytest.raises(tangere.InvalidValue, match=f"link: got .*, valid are 1 to {n}"):
            robot.jacobian(q, link=link)
    strange: tuple[Any, ...] = ("tool", 1.5, [1], np.array([1, 2]))  # neither a link's number nor nearly one
    for what in strange:
        with pytest.raises((tangere.InvalidValue, TypeError)):
            robot.jacobian(q, link=what)
    with pytest.raises(tangere.InvalidValue, match="link"):
        robot.jacobian(q, point=[0.0, 0.0, 0.0])
    assert np.array_equal(robot.jacobian(q, np.int64(2)), robot.jacobian(q, 2))  # type: ignore[arg-type]
    assert np.array_equal(robot.jacobian(q, None, None), robot.jacobian(q))


@pytest.mark.parametrize("name", FORMS)
def test_calls_with_the_wrong_arguments(name: str) -> None:
    """Too many, too few, misspelt: Python's own TypeError, never a swallowed keyword."""
    robot = ROBOTS[name]
    q = [0.1] * robot.dof
    for method, count in METHODS.items():
        function, argument = getattr(robot, method), names_of(method)
        with pytest.raises(TypeError):
            function()
        with pytest.raises(TypeError):
            function(*[q] * (count + 3))
        with pytest.raises(TypeError):
            function(*[q] * count, nonsense=1)
        with pytest.raises(TypeError):
            function(*[q] * count, q=q)
        by_name = function(**dict.fromkeys(argument, q))
        by_place = function(*[q] * count)
        pairs = zip(by_name, by_place, strict=True) if isinstance(by_place, tuple) else [(by_name, by_place)]
        assert all(np.array_equal(a, b) for a, b in pairs)
    with pytest.raises(TypeError):
        robot.inverse_kinematics()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        robot.inverse_kinematics(np.eye(4), near=q)  # type: ignore[call-arg]


# ------------------------------------------------------------------------------------------------------------ poses


def _bad_poses() -> dict[str, tuple[Any, str]]:
    good = np.eye(4)
    good[:3, 3] = (0.3, 0.2, 0.5)

    def changed(index: Any, value: Any) -> Array:
        T = good.copy()
        T[index] = value
        return T

    return {
        "reflection": (changed((2, 2), -1.0), "reflection"),
        "nearly nothing": (np.diag((1e-8, 1e-8, 1e-8, 1.0)), "not a rotation"),
        "minus identity": (np.diag((-1.0, -1.0, -1.0, 1.0)), "reflection"),
        "scaled": (np.diag((2.0, 2.0, 2.0, 1.0)), "not a rotation"),
        "zero": (changed((slice(0, 3), slice(0, 3)), 0.0), "not a rotation"),
        "sheared": (changed((0, 1), 0.1), "not a rotation"),
        "huge": (changed((0, 0), 1e5), "not a rotation"),
        "far away": (changed((0, 3), 1e78), "no place for an arm"),
        "nan": (changed((0, 0), np.nan), "nan"),
        "nan position": (changed((1, 3), np.nan), "nan"),
        "inf position": (changed((1, 3), np.inf), "inf"),
        "last row": (changed((3, 0), 0.5), "last row"),
        "transposed": (good.T, "last row"),
        "scale in the corner": (changed((3, 3), 2.0), "last row"),
        "3x3": (np.eye(3), r"\(\.\.\., 4, 4\)"),
        "flat": (good.ravel(), r"\(\.\.\., 4, 4\)"),
        "3x4": (good[:3], r"\(\.\.\., 4, 4\)"),
        "nothing": ([], r"\(\.\.\., 4, 4\)"),
        "text": ("pose", "real numbers"),
        "complex": (good + 0j, "real numbers"),
    }


@pytest.mark.parametrize("what", list(_bad_poses()))
def test_what_is_no_pose_is_refused(what: str) -> None:
    T, message = _bad_poses()[what]
    robot = ROBOTS["ur10e"]
    with pytest.raises(tangere.InvalidValue, match=message) as caught:
        robot.inverse_kinematics(T)
    assert isinstance(caught.value, ValueError)
    if isinstance(T, np.ndarray) and T.shape == (4, 4) and T.dtype == np.float64:
        many = np.stack([np.eye(4), np.eye(4), T])
        with pytest.raises(tangere.InvalidValue, match=f"(pose number 2.*|T.*){message}"):
            robot.inverse_kinematics(many)


@pytest.mark.parametrize("what", ["reflection", "scaled", "nan", "3x3", "text", "last row"])
def test_the_numeric_search_refuses_the_same(what: str) -> None:
    """A robot without a closed form is asked the same way."""
    T, _ = _bad_poses()[what]
    with pytest.raises(tangere.InvalidValue):
        tangere.robot("scara").inverse_kinematics(T)


# ---------------------------------------------------------------------------------------------------------- robots


def test_unknown_robot_lists_the_known() -> None:
    with pytest.raises(tangere.UnknownName, match="did you mean 'ur10e'"):
        tangere.robot("UR-10e")
    with pytest.raises(tangere.UnknownName, match="unknown robot 'ur11'") as caught:
        tangere.robot("ur11")
    assert isinstance(caught.value, ValueError)
    assert all(name in str(caught.value) for name in tangere.models())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"payload": -1.0}, "payload"),
        ({"payload": np.nan}, "payload"),
        ({"payload": "heavy"}, "payload"),
        ({"payload": (1.0, (0.0, 0.0))}, "payload com"),
        ({"payload": (1.0, (0.0, 0.0, 0.0), -np.eye(3))}, "payload"),
        ({"tool": (1.0, 2.0)}, "tool"),
        ({"tool": 2 * np.eye(4)}, "tool"),
        ({"tool": np.diag((1.0, 1.0, -1.0, 1.0))}, "tool"),
        ({"gravity": "moon"}, "table"),
        ({"gravity": (0.0, 0.0)}, "gravity"),
        ({"gravity": (0.0, 0.0, np.inf)}, "gravity"),
        ({"parameters": "fantasy"}, "fantasy"),
        ({"rotor_inertia": [0.1] * 5}, "rotor_inertia"),
        ({"rotor_inertia": [-0.1] * 6}, "rotor_inertia"),
        ({"rotor_inertia": [np.nan] * 6}, "rotor_inertia"),
        ({"rotor_inertia": "big"}, "rotor_inertia"),
        ({"rotor_inertia": 0.1}, "rotor_inertia"),
        ({"rotor_inertia": [[0.1], [0.2, 0.3]]}, "rotor_inertia"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tangere.InvalidValue, match=message):
        tangere.robot("ur10e", **options)


def test_options_that_do_not_exist() -> None:
    with pytest.raises(TypeError, match="colour"):
        tangere.robot("ur10e", colour="blue")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        tangere.robot()  # type: ignore[call-arg]
    for thing in (3, None, b"ur10e", ["ur10e"]):
        with pytest.raises((tangere.InvalidValue, TypeError)):
            tangere.robot(thing)  # type: ignore[arg-type]
    with pytest.raises(tangere.InvalidValue):
        tangere.robot("no/such/file.toml")


def test_rotor_inertia_that_is_not_known() -> None:
    with pytest.raises(tangere.InvalidValue, match=r"ur20.*not known"):
        tangere.robot("ur20", rotor_inertia=True)


def test_the_family_of_errors() -> None:
    for kind in (errors.InvalidValue, errors.UnknownName, errors.UnphysicalModel, errors.ModelFileError):
        assert issubclass(kind, (tangere.TangereError,))
        assert issubclass(kind, ValueError)
    assert issubclass(errors.MissingExtra, ImportError)
    assert issubclass(errors.NoSolution, tangere.TangereError)
    assert not issubclass(errors.NoSolution, ValueError)  # the pose was a good value


def test_a_robot_cannot_be_changed_by_accident() -> None:
    with pytest.raises(AttributeError):
        tangere.robot("ur10e").payload = 3.0  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------------------- memory


def calls(robot: tangere.Robot, q: Array, many: Array) -> dict[str, Callable[[], Any]]:
    """Every method, single and batch, good and refused, and everything that an answer gives out."""
    out: dict[str, Callable[[], Any]] = {}
    for method, count in METHODS.items():
        function = getattr(robot, method)
        out[method] = partial(function, *[q] * count)
        out[f"{method}, list"] = partial(function, *[q.tolist()] * count)
        out[f"{method}, batch"] = partial(function, *[many] * count)
        out[f"{method}, keywords"] = partial(function, **dict.fromkeys(names_of(method), q))
        out[f"{method}, refused"] = partial(function, *[q] * (count - 1), q[:-1])
        out[f"{method}, nan"] = partial(function, *[q] * (count - 1), np.nan * many)
        out[f"{method}, keyword"] = partial(function, *[q] * count, nonsense=q)
    out["broadcast"] = lambda: robot.bias_torque(many, q)
    out["no broadcast"] = lambda: robot.bias_torque(many, many[:2])
    out["link"] = lambda: robot.jacobian(q, 1)
    out["point"] = lambda: robot.jacobian(many, 1, [0.1, 0.2, 0.3])
    out["no link"] = lambda: robot.jacobian(q, 99)
    out["no number"] = lambda: robot.jacobian(q, "x")  # type: ignore[arg-type]
    if robot.dof == 6:
        T, Ts = robot.pose(q), robot.pose(many)

        def everything() -> None:
            answer = robot.inverse_kinematics(T, q)
            for name in ("q", "flags", "lanes", "robot", "count", "correction", "distance"):
                getattr(answer, name)

        def choices() -> None:
            answer: Any = robot.inverse_kinematics(T, q)
            for name in ("shoulder", "elbow", "wrist", "within_limits", "singular_wrist"):
                getattr(answer, name)
            answer.nearest(q)
            answer.elbow_up()

        out |= {
            "ik": everything,
            "ik, choices": choices,
            "ik, list": lambda: robot.inverse_kinematics(T.tolist(), q.tolist()),
            "ik, batch": lambda: robot.inverse_kinematics(Ts, many),
            "ik, one reference": lambda: robot.inverse_kinematics(Ts, q),
            "ik, far": lambda: robot.inverse_kinematics(np.eye(4) + 9 * np.eye(4, k=3)),
            "ik, refused": lambda: robot.inverse_kinematics(2 * T),
            "ik, batch refused": lambda: robot.inverse_kinematics(2 * Ts),
            "ik, bad reference": lambda: robot.inverse_kinematics(Ts, [np.nan] * 6),
            "ik, wrong reference": lambda: robot.inverse_kinematics(Ts, many[:2]),
            "ik, one pose, many references": lambda: robot.inverse_kinematics(T, many),
            "ik, shape": lambda: robot.inverse_kinematics(T[:3]),
        }
    return out


def repeat(call: Callable[[], Any], times: int) -> None:
    for _ in range(times):
        with contextlib.suppress(tangere.TangereError, TypeError):
            call()
    gc.collect()


def left_over(call: Callable[[], Any], times: int) -> int:
    """Objects (blocks of Python's allocator) that `times` calls leave behind once caches are filled.

    The interpreter itself keeps a few more for a while, so the smallest of up to ten rounds counts.
    """
    repeat(call, times)
    least, before = sys.maxsize, sys.getallocatedblocks()
    for _ in range(10):
        repeat(call, times)
        after = sys.getallocatedblocks()
        least, before = min(least, after - before), after
        if least < times // 4:
            break
    return least


@pytest.fixture
def _quick_collections() -> Iterator[None]:
    """What is there already need not be searched at each of many collections."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_quick_collections")
@pytest.mark.parametrize("name", FORMS)
def test_no_call_leaks(name: str) -> None:
    """Neither objects nor references to what it was given.

    Half an object per call, in every round, is a leak; a cache fills once. A lost reference to something that lives on
    (an argument, the robot, the type float64) leaves no object, but its count climbs.
    """
    robot, times = ROBOTS[name], 100
    q, many = np.full(robot.dof, 0.3), np.full((3, robot.dof), 0.3)
    double = np.dtype(float)
    leaks: dict[str, Any] = {}
    for what, call in calls(robot, q, many).items():
        if name != "ur10e" and not what.startswith(("mass_matrix", "energy", "bias_torque", "link", "no ")):
            continue  # the traced kernels share one way in and out
        # numpy's own Python functions lose references to their types; the compiled kernels do not call them
        held = (q, many, robot, robot.model) + ((double,) if name == "ur10e" and "choices" not in what else ())
        repeat(call, 2)
        before = [sys.getrefcount(x) for x in held]
        growth = left_over(call, times)
        climbed = [b - a for a, b in zip(before, (sys.getrefcount(x) for x in held), strict=True)]
        if growth > times // 2 or max(climbed) > times:
            leaks[what] = growth, climbed
    assert leaks == {}


def test_the_leak_test_would_notice() -> None:
    """A call that keeps a small object each time is caught, one that fills a cache is not."""
    kept: list[object] = []
    cache: dict[int, object] = {}
    assert left_over(lambda: kept.append(object()), 100) > 50
    assert left_over(lambda: cache.setdefault(len(cache) % 50, object()), 100) < 50


@pytest.mark.usefixtures("_quick_collections")
@pytest.mark.parametrize("name", FORMS)
def test_robots_are_freed(name: str) -> None:
    """Making robots over and over leaves nothing behind, with all that their methods kept."""

    def make() -> None:
        robot = tangere.Robot(ROBOTS[name].model)
        q = [0.1] * robot.dof
        held = robot.mass_matrix(q), robot.momentum_terms(q, q), robot.pose([q, q])
        if name == "ur10e":
            solved(robot, held[2][0], q).nearest(q)

    assert left_over(make, 10) < 100  # a robot that stayed would be more than 100 objects each
