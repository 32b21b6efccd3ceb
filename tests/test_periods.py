"""What a loop does in every period: the compiled form against numpy, and values that are made in one call."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.control.computed_torque import ComputedTorque
from tangere.dynamics.laws import servo_acceleration
from tangere.kernels import backend
from tangere.kernels.periods import Records, Track, below, clipped, fill, finite, held, messages, put, squared
from tangere.types import Command, Reference, State, Truth

pytestmark = pytest.mark.skipif(not backend.COMPILED, reason="numpy itself computes")


def forms(x: np.ndarray) -> list[Any]:
    """The same numbers as they may come: as they are, every second of more, backwards, not writeable, as float32."""
    still = x.copy()
    still.flags.writeable = False
    return [x, np.repeat(x, 2)[::2], x[::-1].copy()[::-1], still, x.tolist()]


def test_fill_is_numpys_concatenate() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        parts: list[Any] = [random.normal(size=random.integers(1, 9)) for _ in range(4)]
        parts += [random.normal(size=(3, 4)), random.normal(size=(4, 3)).T, float(random.normal()), np.float64(2.0), 3]
        expected = np.concatenate([np.ravel(part) for part in parts])
        for k, first in enumerate(forms(parts[0])):
            block = np.zeros((5, len(expected)))
            fill(block, k, first, *parts[1:])
            assert np.array_equal(block[k], expected)
            assert not block[:k].any()
            assert not block[k + 1 :].any()


def test_fill_takes_lists_and_of_a_pose_three_rows() -> None:
    T, x = np.arange(16.0).reshape(4, 4), np.array([20.0, 21.0])
    for pose in (T, T.T.copy().T, T[::-1].copy()[::-1]):
        block = np.zeros((1, 16))
        fill(block, 0, [0.5, 1.5], (x, pose))
        assert np.array_equal(block[0], [0.5, 1.5, 20.0, 21.0, *range(12)])
    with pytest.raises(ValueError, match="15 numbers"):
        fill(np.zeros((1, 15)), 0, [0.5, 1.5], [x, T])
    with pytest.raises(TypeError):
        fill(np.zeros((1, 2)), 0, [0.5, object()])


def test_held_are_copies_that_nobody_writes_to() -> None:
    x = np.random.default_rng(3).normal(size=6)
    for form in forms(x):
        one, other = held(form, x)
        assert np.array_equal(one, x)
        assert np.array_equal(other, x)
        assert not np.shares_memory(other, x)
        for array in (one, other):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0
    with pytest.raises(ValueError, match="vectors"):
        held(np.zeros((2, 2)))


def test_put_is_a_sum_in_place() -> None:
    x, y = np.random.default_rng(4).normal(size=(2, 6))
    for form in forms(x):
        whole = np.zeros(12)
        for out in (whole[:6], whole[::2], whole[5::-1]):
            put(out, form, None)
            assert np.array_equal(out, x)
            put(out, form, y)
            assert np.array_equal(out, x + y)
    with pytest.raises(ValueError, match="5 numbers into 6"):
        put(np.zeros(6), np.zeros(5), None)
    with pytest.raises(TypeError, match="may be written to"):
        put(held(x)[0], x, None)


@pytest.mark.parametrize("things", [(np.zeros(3),), (np.zeros(5),), (np.zeros(4), 1.0), (1.0,) * 5, ()])
def test_a_row_that_does_not_fit_is_refused(things: Any) -> None:
    with pytest.raises(ValueError, match="4 numbers"):
        fill(np.zeros((2, 4)), 0, *things)


@pytest.mark.parametrize("k", [-1, 2])
def test_there_is_no_such_row(k: int) -> None:
    with pytest.raises(ValueError, match="one of them"):
        fill(np.zeros((2, 1)), k, 1.0)


def test_squared_and_clipped_are_numpys() -> None:
    random = np.random.default_rng(2)
    for n in (1, 6, 7):
        x, y, scale = random.normal(size=(3, n))
        for form in forms(x):
            assert squared(form) == pytest.approx(float(x @ x), rel=1e-14)
            assert squared(form, scale) == pytest.approx(float((x * scale) @ (x * scale)), rel=1e-14)
            assert squared(form, None, y) == pytest.approx(float((x - y) @ (x - y)), rel=1e-14)
            assert squared(form, scale, y) == pytest.approx(float(((x - y) * scale) @ ((x - y) * scale)), rel=1e-14)
            most = np.abs(y)
            assert np.array_equal(clipped(form, most), np.minimum(np.maximum(x, -most), most))
    for bad in (np.nan, np.inf, -np.inf):
        for k in range(3):
            x = np.array([1.0, 1e300, -2.0])
            assert finite(*forms(x))
            x[k] = bad
            assert not any(finite(np.zeros(2), form) for form in forms(x))
    assert np.isnan(squared(np.array([1.0, np.nan])))
    assert squared(np.array([1.0, np.inf])) == np.inf
    with pytest.raises(ValueError, match="2 and 3"):
        squared(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match="same length"):
        clipped(np.zeros(2), np.zeros(3))


def test_below_is_squared_of_vectors() -> None:
    x, y, scale = np.random.default_rng(5).normal(size=(3, 6))
    for form in forms(x)[:4]:  # a list is no vector
        size, apart = squared(form, scale) ** -0.5, squared(form, scale, y) ** -0.5
        for one in (1.0 - 1e-9, 1.0 + 1e-9):
            for other in (1.0 - 1e-9, 1.0 + 1e-9):
                expected = one < 1.0 and other < 1.0
                assert below(form, scale * size * one, None, form, scale * apart * other, y) is expected
    assert below()
    tiny = np.zeros(6)
    for k in range(6):
        for bad in (np.nan, np.inf):
            wrong = x.copy()
            wrong[k] = bad
            assert not below(x, tiny, None, wrong, tiny, None)
    for no_vector in (x.tolist(), x[None], x[:, None], None):
        assert not below(no_vector, tiny, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="6 and 5"):
        below(x, tiny[:5], None)


def test_a_track_is_a_window_over_samples() -> None:
    """Against a plain list, with jitter, gaps, stamps that go back and vectors of another size."""
    random = np.random.default_rng(6)
    track, kept, time, n, gap, span = Track(0.1, 0.2), [], 0.0, 6, 0.1, 0.2
    fallen = 0
    for k in range(3000):
        time += float(random.choice([1e-3, 2e-3, 0.02, 0.0, 0.09, 0.11, -0.01], p=[0.6, 0.3, 0.05, 0.02, *3 * [0.01]]))
        if k == 2000:
            n = 7
            kept.clear()
        v = random.normal(size=n) * (1.0 + np.sin(0.05 * k))
        if not kept or not 0.0 <= time - kept[-1][0] <= gap:
            kept.clear()
        before = kept[-1][2] if kept else 0.0
        kept.append((time, v, squared(v)))
        kept = [one for one in kept if time - one[0] <= span]
        said = track.add(time, forms(v)[k % 4], 0.64)
        most = squared(v) / 0.64
        assert said == (before > most or kept[0][2] > most or kept[len(kept) // 2][2] > most)
        fallen += said
        assert len(track) == len(kept)
        for i in (0, len(kept) // 2, -1):
            assert track[i][0] == kept[i][0]
            assert np.array_equal(track[i][1], kept[i][1])
            assert track[i][2] == kept[i][2]
    assert 300 < fallen < 2700
    with pytest.raises(IndexError):
        track[len(kept)]
    track.clear()
    assert len(track) == 0
    with pytest.raises(ValueError, match="vector"):
        track.add(0.0, np.zeros((2, 2)), 0.5)


def test_messages_are_the_template_with_its_holes_filled() -> None:
    random = np.random.default_rng(7)
    rows = random.normal(size=(9, 5))
    ns = random.integers(0, 2**62, 9)
    template = random.integers(0, 255, 61).astype(np.uint8)
    numbers, stamps = np.array([(4, 3), (0, 45)]), np.array([(0, 11), (1, 15), (2, 23), (3, 53)])
    for table in (rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2], rows[::-1].copy()[::-1]):
        made = messages(table, ns, 2**32 - 4, template, numbers, stamps).reshape(9, 61)
        for k, row in enumerate(made):
            assert np.frombuffer(row[3:11].tobytes(), "<f8") == rows[k, 4]
            assert np.frombuffer(row[45:53].tobytes(), "<f8") == rows[k, 0]
            assert int.from_bytes(row[11:15].tobytes(), "little") == (2**32 - 4 + k) % 2**32
            assert int.from_bytes(row[15:23].tobytes(), "little") == ns[k]
            assert int.from_bytes(row[23:27].tobytes(), "little") == ns[k] // 10**9 % 2**32
            assert int.from_bytes(row[53:57].tobytes(), "little") == ns[k] % 10**9
            rest = [*range(3), *range(27, 45), *range(57, 61)]
            assert np.array_equal(row[rest], template[rest])
    for wrong in ([(5, 0)], [(-1, 0)], [(0, 54)], [(0, -1)]):
        with pytest.raises(ValueError, match="column"):
            messages(rows, ns, 0, template, np.array(wrong), stamps)
    for wrong in ([(4, 0)], [(0, 58)], [(1, 54)], [(3, -1)]):
        with pytest.raises(ValueError, match="what"):
            messages(rows, ns, 0, template, numbers, np.array(wrong))
    with pytest.raises(ValueError, match="stamp"):
        messages(rows, ns[1:], 0, template, numbers, stamps)
    with pytest.raises(TypeError):
        messages(rows, ns.astype(np.int32), 0, template, numbers, stamps)  # type: ignore[arg-type]


MADE = ((State, 5, 8), (Reference, 3, 6), (Command, 1, 2), (Truth, 5, 5))


@pytest.mark.parametrize(("cls", "needed", "most"), MADE)
def test_values_are_made_as_dataclasses_are(cls: Any, needed: int, most: int) -> None:
    names = [field.name for field in dataclasses.fields(cls)]
    given = [object() for _ in names]
    for count in range(needed, most + 1):
        for positional in range(count + 1):
            value = cls(*given[:positional], **dict(zip(names[positional:count], given[positional:count], strict=True)))
            for name, thing in zip(names[:count], given[:count], strict=True):
                assert getattr(value, name) is thing
            for field in dataclasses.fields(cls)[count:]:
                assert getattr(value, field.name) == field.default
    value = cls(*range(most))
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, names[0], 1.0)
    assert pickle.loads(pickle.dumps(value)) == value == dataclasses.replace(value)
    assert getattr(dataclasses.replace(value, **{names[-1]: "x"}), names[-1]) == "x"
    name = "".join(["q", "_", "new"])  # not interned
    wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((0,) * (needed - 1), {}), ((0,) * (most + 1), {}), ((0,) * needed, {names[0]: 1}), ((0,) * needed, {name: 1}),
    ]  # fmt: skip
    for arguments, keywords in wrong:
        with pytest.raises(TypeError, match="__init__"):
            cls(*arguments, **keywords)


def test_nothing_is_kept_or_lost_of_what_a_value_was_given() -> None:
    import sys

    thing = object()
    before = sys.getrefcount(thing)
    for _ in range(100):
        Command(thing, note="x")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            Command(thing, tau=thing)  # type: ignore[call-arg,misc]
    assert sys.getrefcount(thing) == before


def test_records_are_rows_of_arrays() -> None:
    random = np.random.default_rng(3)
    q, T = random.normal(size=(5, 3)), random.normal(size=(5, 4, 4))
    T.flags.writeable = False
    every_second = np.repeat(q, 2, axis=1)[:, ::2]
    copied = pickle.loads(pickle.dumps(Records(Reference, q, q, q, T)))
    for records in (Records(Reference, q, every_second, q, T), copied):
        for k in range(5):
            one = records(k)
            assert isinstance(one, Reference)
            assert np.array_equal(one.q, q[k])
            assert np.array_equal(one.qd, q[k])
            assert one.T is not None
            assert np.array_equal(one.T, T[k])
    assert not Records(Reference, q, q, q, T)(1).T.flags.writeable  # type: ignore[union-attr]
    for k in (-1, 5):
        with pytest.raises(IndexError):
            Records(Command, q)(k)
    with pytest.raises(TypeError, match="up to 12"):
        Records(Command, np.zeros(3))


def test_gains_that_change_reach_the_compiled_servo() -> None:
    """Same bits as the law in numpy, with gains set anew while it runs."""
    random = np.random.default_rng(4)
    arm = tangere.robot("ur5e")
    controller = ComputedTorque(arm, random.normal(size=6))
    state = State(0.0, 1e-3, *random.normal(size=(3, 6)))
    controller.start(state)
    for _ in range(5):
        controller.kp, controller.kv = random.uniform(1.0, 100.0, (2, 6))
        reference = controller.trajectory.at(0.0)
        wanted = (reference.q, reference.qd, reference.qdd)
        qdd = servo_acceleration(controller.kp, controller.kv, state.q, state.qd, *wanted)
        assert np.array_equal(controller.step(state).tau, arm.inverse_dynamics(state.q, state.qd, qdd))
