"""Fused rollouts of UR arms: what kernels/c/rollout.h takes, packed from plain arrays, and called by threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tangere.errors import InvalidValue
from tangere.kernels.closed_loop import WATCHED, N, parts
from tangere.kernels.laws import detection
from tangere.model.model import Array

try:
    from tangere import _kernels, _rollouts
    from tangere._kernels import instruction_sets
except ImportError:  # no compiler at installation: the Python loop serves
    _rollouts = None  # type: ignore[assignment]

COMPILED = _rollouts is not None and os.environ.get("TANGERE_KERNELS") != "python"
CHUNK = 64  # robots that a thread takes at a time: whole blocks of every width, 0.2 s of work for 5 s at 1 kHz
LISTEN = 0.05  # [s] at most before Ctrl-C is heard
PUSHES = 8  # per robot, at most (TG_PUSHES_MAX)
ENDLESS = 2.0**24  # a step that no rollout reaches; the largest whole number that float32 counts up to

ROW = 2 * 8 * 48  # [bytes] that a rollout's numbers take, and each of its samples that is kept: answer and result

_threads = 1


def threads(count: int | None = None) -> int:
    """How many threads long batches and rollouts use from now on (1 unless told); without a number: how many now."""
    global _threads
    if count is not None:
        cores = os.cpu_count() or 1
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= cores:
            raise InvalidValue(f"threads: a whole number from 1 to {cores}, the cores of this machine, got {count!r}")
        _threads = count
        if COMPILED:
            _kernels.threads(count)
    return _threads


def refuse_more(what: str, count: int, each: int) -> None:
    """Raise where so many rows of `each` bytes are more than this computer's memory; says how many fit."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # a system that does not tell: it refuses by itself
        return
    if count * each > memory:
        raise InvalidValue(
            f"{what} take {count * each / 1e9:.3g} GB of memory, this computer has {memory / 1e9:.3g}: "
            f"at most {memory // each} of {count} fit"
        )


@dataclass(frozen=True)
class Job:
    """Rollouts of `count` robots as arrays; SI units, joints first.

    belief (BELIEF,): of controller and observer. plants (count, PLANT): parameters of the true arms
    (kernels.closed_loop). start (count, 2 n): q and qd. pushes (count, k, 16): first step, last step + 1, whether the
    force is in the link's axes and turned when it begins, link (from 0; -1: none), point 3, force 3, joint torque n.
    reference (m, steps, 3 n): q, qd, qdd of m motions; robot i follows number i, over and over. sigma (3, n): noise of
    speeds, torques, positions. weight (n,): of the observer's lag per period, residual (n,): where it starts, first:
    whether with its first balance. on, off (n,): of the thresholds, raise_after, release_after: samples beyond them
    before a touch begins or ends. watch (WATCHED,): of the detector's law, which then decides instead.
    """

    period: float
    belief: Array
    plants: Array
    start: Array
    pushes: Array
    reference: Array
    tau_max: Array
    sigma: Array
    weight: Array
    residual: Array
    first: bool
    on: Array
    off: Array
    raise_after: int
    release_after: int
    runge_kutta: bool
    seed: int
    watch: Array | None = None
    robots: Array = field(init=False, repr=False)  # rows as rollout.h has them
    same: bool = field(init=False, repr=False)  # whether all true arms are one

    def __post_init__(self) -> None:
        count = len(self.plants)
        same = bool(np.all(self.plants == self.plants[:1]))
        plants = self.plants[:1] if same else self.plants
        constants = [parts()[name].constants(plants) for name in ("accelerate", "pushed", "turned")]
        wide = [np.broadcast_to(part, (count, part.shape[1])) for part in constants]
        rows = np.concatenate([*wide, self.start, self.pushes.reshape(count, -1)], axis=1)
        object.__setattr__(self, "robots", np.ascontiguousarray(rows))
        object.__setattr__(self, "same", same)


@dataclass(frozen=True)
class Answer:
    """What a rollout leaves, one row per robot; see loop.rollouts.Rollouts."""

    numbers: Array  # (count, 5 n + 6): q, qd, residual, peak, error; then score, events, alarm, found, early, touching
    forces: Array  # (count, k, 3) N, base axes, of the pushes
    log: Array | None  # (count, rows, 8, n): q, qd, q_meas, qd_meas, tau_meas, residual, tau_cmd, tau_ext


def available() -> list[str]:
    """Instruction sets that this processor can use, the widest first; empty where nothing was compiled."""
    return list(instruction_sets()) if COMPILED else []


def fused(
    job: Job,
    *,
    first: int = 0,
    single: bool = False,
    every: int = 0,
    instruction_set: str | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Answer:
    """Run the job. first: number of its first robot. single: in float32. every: log each n-th sample; 0: no log.

    progress(robots done): now and then. Ctrl-C ends the work within LISTEN seconds and is raised.
    """
    sets = available()
    name = sets[0] if instruction_set is None else instruction_set
    if name not in sets:
        raise InvalidValue(f"instruction set {name!r} is not available here; there are {', '.join(sets)}")
    count, (motions, steps), kinds = len(job.robots), job.reference.shape[:2], job.pushes.shape[1]
    watch = np.ones(WATCHED) if job.watch is None else job.watch
    belief = np.concatenate([parts()["sense"].constants(job.belief), parts()["watch"].constants(watch)])
    common = np.concatenate([
        [job.period], job.tau_max, job.sigma.ravel(), job.weight, job.residual, job.on, job.off, 1.0 / job.on,
        [job.raise_after, job.release_after], detection.start(N),
    ])  # fmt: skip
    results = np.empty((count, _rollouts.RESULT + 3 * kinds))
    rows = -(-steps // every) if every else 0
    log = np.empty((count, rows, _rollouts.LOGGED)) if every else None
    noisy = sum(1 << i for i in range(3) if np.any(job.sigma[i]))
    stop = bytearray(1)
    reference = np.ascontiguousarray(job.reference)

    def work(begin: int) -> int:
        end = min(begin + CHUNK, count)
        part: Any = None if log is None else log[begin:end]
        _rollouts.run(
            name, single, belief, reference, common, job.robots[begin:end], results[begin:end], part, stop,
            first + begin, end - begin, steps, max(every, 1), motions, kinds, job.runge_kutta, noisy, job.first,
            job.watch is not None, job.seed,
        )  # fmt: skip
        return end - begin

    _in_threads(work, range(0, count, CHUNK), workers or threads(), stop, progress)
    split = _rollouts.RESULT
    return Answer(
        results[:, :split], results[:, split:].reshape(count, kinds, 3),
        None if log is None else log.reshape(count, rows, -1, N),
    )  # fmt: skip


def _in_threads(
    work: Callable[[int], int], begins: range, workers: int, stop: bytearray, progress: Callable[[int], None] | None
) -> None:
    """Do the work in threads while this one listens: to Ctrl-C, and to what is done."""
    done, waiting = 0, iter(begins)
    with ThreadPoolExecutor(workers) as pool:
        try:
            pending: set[Future[int]] = set()
            while True:
                while len(pending) < 2 * workers and (begin := next(waiting, None)) is not None:
                    pending.add(pool.submit(work, begin))
                if not pending:
                    return
                finished, pending = wait(pending, LISTEN, FIRST_COMPLETED)
                done += sum(future.result() for future in finished)
                if finished and progress is not None:
                    progress(done)
        finally:
            stop[0] = 1  # after an error or Ctrl-C: nobody waits for what is left
            for future in pending:
                future.cancel()
