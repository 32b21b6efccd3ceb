"""The argument check: what passes, what is refused, and that the message names the argument and the fault."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.errors import InvalidValue, TangereError
from tangere.kinematics.checks import checked


def test_lists_integers_and_batches_pass_as_floats() -> None:
    assert checked([1, 2, 3], (3,), "v").dtype == np.float64
    assert checked(np.ones((4, 5, 3), dtype=np.float32), (3,), "v").shape == (4, 5, 3)
    assert checked(np.ones((2, 7)), (None,), "q").shape == (2, 7)
    assert checked(2, (), "damping").shape == ()


def test_an_array_is_not_copied() -> None:
    v = np.ones(3)
    assert checked(v, (3,), "v") is v


@pytest.mark.parametrize(
    ("value", "tail", "message"),
    [
        ([1.0, 2.0], (3,), r"v: expected shape \(\.\.\., 3\), got \(2,\)"),
        (1.0, (3,), r"v: expected shape \(\.\.\., 3\), got \(\)"),
        (np.eye(3), (None, 4), r"v: expected shape \(\.\.\., n, 4\), got \(3, 3\)"),
        ([1.0, np.nan, 0.0], (3,), r"v: every entry must be finite, got nan at index \(1,\)"),
        ([[1.0, 0.0, np.inf]], (3,), r"got inf at index \(0, 2\)"),
        (["a", 0, 0], (3,), "v: expected real numbers"),
        ([1j, 0, 0], (3,), "v: expected real numbers"),
        ([[1.0], [1.0, 2.0]], (2,), "v: expected real numbers"),
        (None, (3,), "v:"),
    ],
)
def test_refusals(value: object, tail: tuple[int | None, ...], message: str) -> None:
    with pytest.raises(InvalidValue, match=message) as caught:
        checked(value, tail, "v")  # type: ignore[arg-type]
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TangereError)
