"""Many UR arms under torques from outside, on surfaces: what learning environments step (kernels/c/env.h).

Compiled in the lanes of a vector where there is a compiler; else the same parts printed as Python, over arrays.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.dynamics import laws
from tangere.kernels import counter_noise, rollouts
from tangere.kernels.closed_loop import SURFACE, N, parts
from tangere.kernels.emit.python import compiled
from tangere.model.model import Array

STATE, OUT = 6 * N + 1, 4 * N + 11  # numbers of a robot that are remembered, and those that are given out
CHUNK = 64  # robots that a thread takes at a time


class Steps:
    """`count` arms, each with its state (count, STATE) and its newest sample (count, OUT).

    state: q, qd, torque held, residual, momentum and beta of the newest sample (n each), whether there is one.
    out: q, qd, tau measured and residual (n each); then, true, of the tcp: force on the arm, place, speed (3 each) in
    base axes, and largest and mean force of the last call. belief (BELIEF,), plants (count, PLANT) as kernels.rollouts
    has them; surfaces (count, SURFACE); tau_max, weight (n,); sigma (3, n): noise of speeds, torques, positions.
    """

    def __init__(
        self, period: float, belief: Array, plants: Array, surfaces: Array, tau_max: Array, sigma: Array, weight: Array,
        seed: int = 0,
    ) -> None:  # fmt: skip
        self.count, self.period, self.seed, self.sample = len(plants), period, seed, 0
        self.state, self.out = np.zeros((self.count, STATE)), np.zeros((self.count, OUT))
        self._belief = np.ascontiguousarray(parts()["feel"].constants(belief))
        self._common = np.concatenate([[period], tau_max, sigma.ravel(), weight])
        self._noisy = sum(1 << i for i in range(3) if np.any(sigma[i]))
        self._robots = np.zeros((self.count, sum(len(parts()[p].heads) for p in ("accelerate", "touch")) + SURFACE))
        self.surfaces = self._robots[:, -SURFACE:]
        self.change(slice(None), surfaces, plants)

    def change(self, rows: Any, surfaces: Array, plants: Array | None) -> None:
        """Other surfaces for these rows, and other arms where they are given."""
        self.surfaces[rows] = surfaces
        if plants is not None:
            constants = [parts()[name].constants(plants) for name in ("accelerate", "touch")]
            self._robots[rows, :-SURFACE] = np.concatenate(constants, axis=1)

    def begin(self, rows: NDArray[np.intp], q: Array, qd: Array) -> None:
        """Place these robots (indices) anew, at q and qd (m, n), and take their first sample."""
        self.state[rows] = 0.0
        self.state[rows, :N], self.state[rows, N : 2 * N] = q, qd
        idle = np.zeros((self.count, N))
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        for run in np.split(rows, breaks):
            if len(run):
                self._run(idle, int(run[0]), int(run[-1]) + 1, 0)

    def advance(self, action: Array, periods: int) -> None:
        """Hold the torques (count, n) [Nm] for some periods."""
        spans = range(0, self.count, CHUNK)
        workers = rollouts.threads()
        if workers == 1 or not rollouts.COMPILED or self.count <= CHUNK:
            self._run(action, 0, self.count, periods)
        else:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(lambda i: self._run(action, i, min(i + CHUNK, self.count), periods), spans))
        self.sample += periods

    def _run(self, action: Array, first: int, end: int, periods: int) -> None:
        if not rollouts.COMPILED:
            self._in_python(action, first, end, periods)
            return
        from tangere import _rollouts

        _rollouts.envs(
            rollouts.available()[0], self._belief, self._common, self._robots[first:end], action[first:end],
            self.state[first:end], self.out[first:end], first, end - first, periods, self.sample, self._noisy,
            self.seed,
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------- without a compiler

    def _in_python(self, action: Array, first: int, end: int, periods: int) -> None:
        """The loop of env.h over arrays, a column for each number."""
        h, limit = self._common[0], self._common[1 : 1 + N]
        s, out = self.state[first:end], self.out[first:end]
        u = self._robots[first:end]
        k = len(parts()["accelerate"].heads)
        surface, peak, total = u[:, -SURFACE:], np.zeros(end - first), np.zeros(end - first)
        if periods:
            s[:, 2 * N : 3 * N] = np.clip(action[first:end], -limit, limit)
        for i in range(periods + 1):
            met = _part("touch", np.concatenate([s[:, : 2 * N], surface], axis=1), u[:, k:-SURFACE])
            size = np.sqrt(met[:, N] * met[:, N] + met[:, N + 1] * met[:, N + 1] + met[:, N + 2] * met[:, N + 2])
            peak = np.maximum(peak, size)
            if i == periods:
                total = total if periods else size
                break
            total = total + size
            x = np.concatenate([s[:, : 2 * N], s[:, 2 * N : 3 * N] + met[:, :N]], axis=1)
            s[:, N : 2 * N] += h * _part("accelerate", x, u[:, :k])
            s[:, :N] += h * s[:, N : 2 * N]
            self._observe(s, out, first, self.sample + i + 1)
        if not periods:
            self._observe(s, out, first, self.sample)
        out[:, 4 * N : 4 * N + 9] = met[:, N:]
        out[:, 4 * N + 9], out[:, 4 * N + 10] = peak, total / max(periods, 1)

    def _observe(self, s: Array, out: Array, first: int, sample: int) -> None:
        robots = np.arange(first, first + len(s))
        z = np.zeros((len(s), 20))
        for group, wanted in enumerate((1, 1 | 2, 2, 4, 4)):
            if wanted & self._noisy:
                drawn = counter_noise.normals(self.seed, robots, np.full(len(s), sample), group)
                z[:, 4 * group : 4 * group + 4] = drawn
        speeds, torques, places = self._common[1 + N : 1 + 4 * N].reshape(3, N)
        out[:, :N] = s[:, :N] + places * z[:, 12:18]
        out[:, N : 2 * N] = s[:, N : 2 * N] + speeds * z[:, :6]
        out[:, 2 * N : 3 * N] = s[:, 2 * N : 3 * N] + torques * z[:, 6:12]
        y = _part("feel", out[:, : 2 * N], self._belief)
        p0, beta0, r = s[:, 4 * N : 5 * N], s[:, 5 * N : 6 * N], s[:, 3 * N : 4 * N]
        raw = laws.momentum_balance(p0, y[:, :N], beta0, y[:, N:], out[:, 2 * N : 3 * N], self._common[0])
        begun = s[:, -1:] > 0.5
        r[:] = np.where(begun, laws.lag(r, raw, self._common[1 + 4 * N :]), r)
        out[:, 3 * N : 4 * N] = r
        s[:, 4 * N : 6 * N], s[:, -1] = y, 1.0


@cache
def _form(name: str) -> Any:
    part = parts()[name]
    groups, parameters = (["x"], "u") if part.shared else (["x", "u"], "none")
    return compiled(part.outputs[0].graph, groups, part.outputs, parameters=parameters, batch=True)


def _part(name: str, x: Array, u: Array) -> Array:
    columns = [x[:, i] for i in range(x.shape[1])]
    shared = parts()[name].shared
    y = _form(name)(columns, u.tolist()) if shared else _form(name)(columns, [u[:, i] for i in range(u.shape[1])], [])
    return np.stack(np.broadcast_arrays(*y), axis=-1)
