"""Fused rollouts on a CUDA device: the loop of kernels/c/rollout.h, a thread for each robot."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tangere.errors import InvalidValue
from tangere.kernels.closed_loop import WATCHED, N, parts
from tangere.kernels.device import EXACT, OWN_STREAM, QUICK, DeviceError, device
from tangere.kernels.emit import cuda
from tangere.kernels.laws import detection
from tangere.kernels.rollouts import Answer, Job

RESULT, LOGGED = 5 * N + 6, 8 * N  # as rollout.h has them
PLANT_CONSTANTS = sum(len(parts()[name].heads) for name in ("accelerate", "pushed", "turned"))
SLAB = 1 << 18  # robots of one launch: 220 MB of numbers, and enough to fill any GPU


class _Job(ctypes.Structure):
    """tg_job of rollout.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("belief", "reference", "common", "robots", "results", "log", "stop")),
        *((name, ctypes.c_longlong) for name in ("first", "count", "steps", "every", "rows", "references")),
        *((name, ctypes.c_int) for name in ("pushes", "runge_kutta", "noisy", "begins", "watched")),
        ("seed", ctypes.c_ulonglong),
    ]  # fmt: skip


def text(job: Job, single: bool) -> str:
    """The kernel's text for jobs of this kind."""
    noisy = sum(1 << i for i in range(3) if np.any(job.sigma[i]))
    known = {
        "TG_PUSH_COUNT": job.pushes.shape[1], "TG_NOISY_BITS": noisy, "TG_WATCHED_LAW": int(job.watch is not None),
        "TG_RUNGE_KUTTA": int(job.runge_kutta), "TG_SAME_PLANT": int(job.same),
    }  # fmt: skip
    return "".join(f"#define {name} {value}\n" for name, value in known.items()) + cuda.rollouts(single)


def told(job: Job, single: bool) -> bytes:
    """What all robots have in common: of controller and observer, limits and thresholds, then of the first arm."""
    watch = np.ones(WATCHED) if job.watch is None else job.watch
    common = np.concatenate([
        parts()["sense"].constants(job.belief), parts()["watch"].constants(watch),
        [job.period], job.tau_max, job.sigma.ravel(), job.weight, job.residual, job.on, job.off, 1.0 / job.on,
        [job.raise_after, job.release_after], detection.start(N), job.robots[0, :PLANT_CONSTANTS],
    ])  # fmt: skip
    return common.astype(np.float32 if single else np.float64).tobytes()


class Prepared:
    """A job whose numbers are on the device: `launch` it as often as wanted, then `answer`, all in one thread.

    Jobs of different threads run beside each other, which fills a GPU with small ones.
    """

    def __init__(self, job: Job, *, first: int = 0, single: bool = False, every: int = 0, exact: bool = True) -> None:
        gpu = self._gpu = device()
        count, (motions, steps), kinds = len(job.robots), job.reference.shape[:2], job.pushes.shape[1]
        rows = -(-steps // every) if every else 0
        needed = 8 * (job.robots.shape[1] + RESULT + 3 * kinds + rows * LOGGED)
        if needed * count > gpu.free():
            raise DeviceError(
                f"{count} rollouts need {needed * count / 1e9:.3g} GB of the GPU, {gpu.free() / 1e9:.3g} GB are free: "
                f"at most {int(0.95 * gpu.free()) // needed} fit"
            )
        options = EXACT if exact else QUICK if single else ()
        self._function = gpu.function(text(job, single), "tg_rollouts", options)
        columns = np.ascontiguousarray(job.robots.T)
        self._robots = gpu.put(columns, OWN_STREAM)
        self._reference = gpu.put(np.ascontiguousarray(job.reference), OWN_STREAM)
        self._results = gpu.allocate(8 * count * (RESULT + 3 * kinds), OWN_STREAM)
        self._log = gpu.allocate(8 * count * rows * LOGGED, OWN_STREAM) if every else None
        self._shape, self._block = (count, kinds, rows), cuda.loop_block(single)
        self._job = _Job(
            None, self._reference.pointer, None, self._robots.pointer, self._results.pointer,
            None if self._log is None else self._log.pointer, None, first, count, steps, max(every, 1), rows, motions,
            kinds, job.runge_kutta, 0, job.first, job.watch is not None, job.seed,
        )  # fmt: skip
        bytes_told = told(job, single)
        self._told = (ctypes.c_char * len(bytes_told)).from_buffer_copy(bytes_told)

    def launch(self) -> None:
        """Start the loops; does not wait."""
        self._gpu.enter()
        self._gpu.launch(self._function, self._shape[0], self._block, [self._job, self._told], OWN_STREAM)

    def answer(self) -> Answer:
        """Wait and fetch the results."""
        count, kinds, rows = self._shape
        results = np.empty((count, RESULT + 3 * kinds))
        self._gpu.get(self._results, results, OWN_STREAM)
        log: Any = None
        if self._log is not None:
            log = np.empty((count, rows, LOGGED // N, N))
            self._gpu.get(self._log, log, OWN_STREAM)
        return Answer(results[:, :RESULT], results[:, RESULT:].reshape(count, kinds, 3), log)


def fused(job: Job, *, first: int = 0, single: bool = False, every: int = 0, exact: bool = True) -> Answer:
    """Run the job on the device; arguments as kernels.rollouts.fused. exact: the processor's bits."""
    if not len(job.robots):
        raise InvalidValue("rollouts: at least one robot")
    prepared = Prepared(job, first=first, single=single, every=every, exact=exact)
    prepared.launch()
    return prepared.answer()
