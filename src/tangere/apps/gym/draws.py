"""Parameters of environments: one number, one for each environment, or drawn anew in every episode."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.kernels import counter_noise
from tangere.types import Array


@dataclass(frozen=True)
class Parameter:
    """A parameter of an environment. scale "log": draws are even in its logarithm."""

    name: str
    unit: str
    default: Any
    low: float  # least that is accepted
    high: float
    help: str
    log: bool = False

    def checked(self, value: Any, count: int) -> Drawn:
        """A number, an array (count,) or a range as a tuple (least, most)."""
        ranged = isinstance(value, tuple)
        try:
            array = np.atleast_1d(np.asarray(value, dtype=np.float64))
        except (TypeError, ValueError):
            array = np.array([np.nan])
        sizes = ((2,),) if ranged else ((1,), (count,))
        if array.shape not in sizes:
            raise InvalidValue(
                f"{self.name}: a number, a range (least, most), or an array with one for each of {count} environments "
                f"[{self.unit}], got shape {array.shape}"
            )
        good = np.isfinite(array) & (self.low <= array) & (array <= self.high)
        if not np.all(good) or (ranged and array[0] > array[1]):
            worst = array[np.argmin(good)]
            several = len(array) > 1 and not ranged
            what = f"{worst} for environment {int(np.argmin(good))}" if several else f"{value!r}"
            raise InvalidValue(f"{self.name}: finite, {self.low:g} to {self.high:g} {self.unit}, got {what}")
        return Drawn(self, array, ranged)


@dataclass(frozen=True)
class Drawn:
    """A checked parameter, of which episodes take their values."""

    of: Parameter
    values: Array
    ranged: bool

    def of_rows(self, rows: NDArray[np.intp], uniform: Array) -> Array:
        """Values (m,) of the environments `rows`; uniform (m,): a number in (0, 1) for each."""
        if not self.ranged:
            picked: Array = self.values[rows % len(self.values)]
            return picked
        low, high = self.values
        if self.of.log and low > 0.0:
            return np.asarray(low * (high / low) ** uniform)
        return np.asarray(low + (high - low) * uniform)


def uniforms(seed: int, rows: NDArray[np.intp], episodes: NDArray[np.int64], count: int) -> Array:
    """(m, count) numbers in (0, 1): a function of seed, environment and episode alone."""
    groups = range(-(-count // 4))
    drawn = [counter_noise.uniforms(seed, rows, episodes, counter_noise.DRAWN + 64 + k) for k in groups]
    return np.concatenate(drawn, axis=-1)[:, :count]


def refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise for the first name that nobody knows."""
    from tangere.errors import unknown

    names = list(known)
    for name in given:
        if name not in names:
            raise unknown(what, name, names)
