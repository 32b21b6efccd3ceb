"""Random numbers as a function of seed, robot, step and purpose: no state, so any part of a study repeats alone.

Philox 4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011) in numpy; kernels/c/rollout.h has the
same in C, with the same bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.codegen.polynomials import logarithm, sincos
from tangere.model.model import Array

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))  # of the generator's rounds, as published
_WEYL = (0x9E3779B9, 0xBB67AE85)  # what the key grows by in each round: golden ratio and sqrt(3) - 1 in 32 bits
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
ROUNDS = 10  # of Philox: seven pass every test known, ten is what the authors recommend
DRAWN = 1 << 16  # purposes from here on are drawn once per robot, those below once per sample


def words(seed: int, robot: ArrayLike, step: ArrayLike, purpose: int) -> list[NDArray[np.uint64]]:
    """Four numbers of 32 bits for each robot and step (broadcast)."""
    robots, steps = np.broadcast_arrays(np.asarray(robot, dtype=np.uint64), np.asarray(step, dtype=np.uint64))
    c = [robots & _LOW, steps & _LOW, np.full_like(robots, purpose), robots >> _HALF]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(ROUNDS):
        a, b = _MULTIPLIERS[0] * c[0], _MULTIPLIERS[1] * c[2]
        c = [(b >> _HALF) ^ c[1] ^ np.uint64(k0), b & _LOW, (a >> _HALF) ^ c[3] ^ np.uint64(k1), a & _LOW]
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return c


def uniforms(seed: int, robot: ArrayLike, step: ArrayLike, purpose: int) -> Array:
    """Four numbers (..., 4) inside (0, 1), evenly spread in steps of 2^-32."""
    return np.stack([(w.astype(np.float64) + 0.5) * 2.0**-32 for w in words(seed, robot, step, purpose)], axis=-1)


def normals(seed: int, robot: ArrayLike, step: ArrayLike, purpose: int) -> Array:
    """Four normal numbers (..., 4), by Box and Muller: none beyond 6.8 standard deviations."""
    u = uniforms(seed, robot, step, purpose)
    out = np.empty_like(u)
    for i in (0, 2):
        size = np.sqrt(-2.0 * logarithm(u[..., i]))
        s, c = sincos(2.0 * math.pi * u[..., i + 1])
        out[..., i], out[..., i + 1] = size * c, size * s
    return out


class CounterNoise:
    """The noise of one robot, sample by sample, in place of a numpy generator (plants.sensors)."""

    def __init__(self, seed: int, robot: int, joints: int) -> None:
        self._seed, self._robot, self._joints, self._step = seed, robot, joints, 0

    def standard_normal(self, shape: Any) -> Array:
        """Rows (..., 3 n + 6) of the next samples: positions, speeds, torques, wrench.

        A rollout mostly has noise of speeds and torques only: these come first in the numbering.
        """
        n, width = self._joints, 3 * self._joints + 6
        rows = 1 if np.ndim(shape) == 0 else int(shape[0])
        steps = np.arange(self._step, self._step + rows)
        self._step += rows
        purposes = range(-(-width // 4))
        z = np.concatenate([normals(self._seed, self._robot, steps, p) for p in purposes], axis=-1)
        out = np.concatenate([z[:, 2 * n : 3 * n], z[:, : 2 * n], z[:, 3 * n : width]], axis=-1)
        return out[0] if np.ndim(shape) == 0 else out
