"""The C extension under calls of every kind, absurd payloads, and what they must answer."""

from __future__ import annotations

import c_calls
import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue, TangereError


def test_calls_of_every_kind_answer_with_numbers_or_an_error_of_ours() -> None:
    assert c_calls.everything(10) > 1000


@pytest.mark.parametrize("payload", [1e16, (1e7, (0.0, 0.0, 0.1)), (5.0, (1e9, 0.0, 0.0)), 10**400, 1e308])
def test_absurd_payloads_are_refused(payload: object) -> None:
    with pytest.raises(TangereError):
        tangere.robot("ur10e", payload=payload)  # type: ignore[arg-type]


def test_the_largest_payload_leaves_a_mass_matrix_that_can_be_inverted() -> None:
    arm = tangere.robot("ur10e", payload=(1e6, (100.0, 100.0, 100.0)))
    for q in np.random.default_rng(3).uniform(-3.0, 3.0, (20, 6)):
        assert np.all(np.linalg.eigvalsh(arm.mass_matrix(q)) > 0.0)


def test_absurd_gravity_is_refused() -> None:
    with pytest.raises(InvalidValue, match="gravity"):
        tangere.robot("ur10e", gravity=(0.0, 0.0, -1e308))
