"""What is expected: a wanted contact, a payload change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from tangere.errors import InvalidValue
from tangere.types import Array

RAISED = 3.0  # times the threshold: what a tool that presses with intent may add before it counts as something else


@dataclass(frozen=True, slots=True)
class Wanted:
    """A contact that is wanted from `start` to `end` [s]: thresholds of these joints are `factor` times higher."""

    factor: Array  # (n,) 1 for joints that are watched as ever
    start: float
    end: float


def wanted(
    n: int, joints: Iterable[int] | None = None, factor: float = RAISED, start: float = -inf, end: float = inf
) -> Wanted:
    """joints: counted from 1, None for the whole arm. factor: above 1, inf to ignore them altogether."""
    if not factor >= 1.0:
        raise InvalidValue(f"factor: at least 1, got {factor!r}")
    if not start <= end:
        raise InvalidValue(f"start, end: in this order [s], got {start!r}, {end!r}")
    raised = np.ones(n)
    for joint in range(1, n + 1) if joints is None else joints:
        if not (isinstance(joint, int) and 1 <= joint <= n):
            raise InvalidValue(f"joints: from 1 to {n}, got {joint!r}")
        raised[joint - 1] = factor
    return Wanted(raised, start, end)


@dataclass(frozen=True, slots=True)
class PayloadChange:
    """A payload is taken up or put down between start and end [s]: what happens then is kind "payload"."""

    start: float
    end: float

    def __post_init__(self) -> None:
        if not (self.start <= self.end and isfinite(self.end)):
            raise InvalidValue(f"start, end: in this order [s], got {self.start!r}, {self.end!r}")
