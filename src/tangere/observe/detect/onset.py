"""When an event began, estimated backwards from the sample that raised it."""

from __future__ import annotations

import numpy as np

from tangere.kernels.laws.onset import start
from tangere.kernels.step import joints_of, step
from tangere.types import Array


class Onset:
    """Searches the last samples of an arm of n joints for where the residual left its noise (kernels.laws.onset)."""

    def __init__(self, n: int) -> None:
        self._n, self._wide = n, joints_of(n)
        self._step = step("onset", self._wide, np.zeros(self._wide + 2))
        self._state, self._start = self._step.before[self._wide + 2 :], start(self._wide)

    def search(self, lines: list[Array], baseline: Array, spread: Array) -> int:
        """How many samples back the last one before the residual left its noise lies.

        lines: Past.lines, with the observer's input up to and with the sample that raised the event: without the
        observer's lag, so that nothing has to be subtracted for it; baseline (n,) [Nm]: the mean before, spread (n,)
        [Nm] of it. The k with the largest gain is the most likely one for white noise. raw_k is what acted between
        k - 1 and k: k - 1 is the answer.
        """
        n, wide = self._n, self._wide
        count = sum([len(line) for line in lines])
        if count < 2:
            return count
        newest = np.concatenate([line[:3] for line in lines])[:3]  # three: at 100 Hz a contact may be that young
        last = (np.add.reduce(newest[:, :n]) / len(newest) - baseline) / spread
        size = float(last.dot(last)) ** 0.5
        if size == 0.0:
            return 0
        weights = last / (size * spread)
        parameters = self._step.parameters
        parameters[:n], parameters[wide:] = weights, (weights.dot(baseline), newest[0, wide])
        self._state[:] = self._start
        for line in lines:
            found = self._step.rows(line)
        return int(found[-1, 0])
