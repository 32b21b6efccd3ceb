"""Samples that a detector keeps, in blocks that are never rewritten, and when an event in them began."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from tangere.kernels.laws.onset import start
from tangere.kernels.periods import fill
from tangere.kernels.step import joints_of, step
from tangere.types import Array

WINDOW = 1.0  # s before the alarm that are searched for its onset: a hand pushes a standing arm that slowly
ROWS = ("residual", "qd", "baseline", "q", "tau")  # of a sample, beside the observer's input
BLOCK = 512  # samples for which memory is asked at once: some 150 kB, in a few us


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of a part of a log."""

    time: Array  # (m,) s
    raw: Array  # (m, n) Nm, the observer's input
    residual: Array  # (m, n) Nm
    q: Array
    tau: Array
    qd: Array


@dataclass(frozen=True, slots=True)
class _Block:
    first: int  # number of its first sample
    lines: Array  # (BLOCK, wide + 2): the observer's input, stamp, stamp before; as kernels.laws.onset takes them
    rows: Array  # (BLOCK, 5, n): ROWS, beside the lines in one table

    @property
    def end(self) -> int:
        return self.first + BLOCK


class Past:
    """Samples by their number, counted from 0; those before the window are let go of, but from `keep` on."""

    __slots__ = ("_blocks", "_left", "_n", "_rest", "_table", "_time", "_wide", "count", "first", "keep")

    def __init__(self, n: int) -> None:
        self._n, self._wide, self.count = n, joints_of(n), 0
        self._rest = [0.0] * (self._wide - n)
        self.clear()

    def clear(self) -> None:
        """Nothing before belongs to what follows."""
        self.first = self.count  # the oldest sample that may be asked for
        self.keep: int | None = None  # all from this one on
        self._blocks: deque[_Block] = deque()
        self._left = 0  # rows of the newest block that are free
        self._time = -inf

    def append(self, time: float, given: Array, raw: Array, baseline: Array, q: Array, tau: Array) -> None:
        """One sample, copied; given (2, n): residual and qd."""
        if self._left == 0:
            self._open(time)
        # an arm of fewer joints than the law was compiled for: the others stand
        fill(self._table, BLOCK - self._left, raw, self._rest, time, self._time, given, baseline, q, tau)
        self._time = time
        self._left -= 1
        self.count += 1

    def _open(self, time: float) -> None:
        blocks = self._blocks
        while blocks and time - blocks[0].lines[-1, -2] > WINDOW and (self.keep is None or blocks[0].end <= self.keep):
            self.first = blocks.popleft().end
        lines = self._wide + 2
        self._table = np.empty((BLOCK, lines + 5 * self._n))  # every row is filled whole before it is read
        blocks.append(_Block(self.count, self._table[:, :lines], self._table[:, lines:].reshape(BLOCK, 5, self._n)))
        self._left = BLOCK

    def lines(self) -> list[Array]:
        """Lines of the newest WINDOW seconds without their first sample, the newest first, block by block."""
        found, end, since = [], BLOCK - self._left, self._time - WINDOW
        for block in reversed(self._blocks):
            oldest = max(self.first - block.first, 0)
            begin = oldest + int(block.lines[oldest:end, -1].searchsorted(since))
            if begin < end:
                found.append(block.lines[begin:end][::-1])
            if begin > oldest:
                break
            end = BLOCK
        return found

    def since(self, time: float, first: int) -> int:
        """Number of the first sample from `first` on that is no older than `time` [s]."""
        return next((k for k in range(first, self.count) if self.stamp(k) >= time), self.count)

    def stamp(self, number: int) -> float:
        """[s] of one sample."""
        block = self._block_of(number)
        return float(block.lines[number - block.first, -2])

    def baseline(self, number: int) -> Array:
        """Mean before (n,) [Nm] at one sample."""
        block = self._block_of(number)
        return np.asarray(block.rows[number - block.first, ROWS.index("baseline")])

    def _block_of(self, number: int) -> _Block:
        return next(block for block in self._blocks if number < block.end)

    def part(self, first: int, last: int | None = None) -> Part:
        """Samples from number `first` on, up to and without `last`, or with the newest."""
        end = self.count if last is None else last
        return Part(tuple(block for block in self._blocks if block.end > first), first, end)


@dataclass(frozen=True, slots=True)
class Part:
    """Samples first to last - 1 of a Past, which goes on meanwhile."""

    blocks: tuple[_Block, ...]
    first: int
    last: int

    def samples(self, pause: Callable[[], None] | None = None) -> Samples:
        """All of it as arrays; pause: called after each column, which takes some 0.1 ms."""
        blocks = self.blocks
        spans = [slice(max(self.first - b.first, 0), min(max(self.last - b.first, 0), BLOCK)) for b in blocks]
        lines = np.concatenate([b.lines[span] for b, span in zip(blocks, spans, strict=True)])
        columns = [lines[:, -2].copy(), lines[:, : blocks[0].rows.shape[2]].copy()]
        for name in ("residual", "q", "tau", "qd"):
            which = ROWS.index(name)
            columns.append(np.concatenate([b.rows[span, which] for b, span in zip(blocks, spans, strict=True)]))
            if pause is not None:
                pause()
        return Samples(*columns)


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
