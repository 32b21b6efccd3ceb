"""Learning environments on a CUDA device: the loop of kernels/c/env.h, a thread for each arm.

Of DeviceSteps the numbers of the arms live with the host, where tasks read and change them: each step takes them to the
device and back, 1 kB for an arm, which costs less than its periods do from some ten periods a step on. Of Lessons they
stay on the device: a step is one launch (kernels/c/lesson.h).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.kernels.device import EXACT, QUICK, addresses, device
from tangere.kernels.emit import cuda
from tangere.kernels.environments import STATE, Steps
from tangere.kernels.table import Trace
from tangere.model.model import Array

BLOCK = 64  # threads; as the text has it


class Envs(ctypes.Structure):
    """tg_envs of env.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("belief", "common", "robots", "action", "state", "out")),
        *((name, ctypes.c_longlong) for name in ("first", "count", "periods", "sample")),
        ("noisy", ctypes.c_int), ("seed", ctypes.c_ulonglong),
    ]  # fmt: skip


class DeviceSteps(Steps):
    """kernels.environments.Steps on the device."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self._gpu = device()
        self._room: Any = None  # memory of states, torques and samples
        super().__init__(*given, **more)
        # as the device has them, a column after the other, so that nothing is turned in between
        self.state, self.out = np.zeros(self.state.T.shape).T, np.zeros(self.out.T.shape).T
        self._robots_there: Any = None
        self._function = self._gpu.function(self.text(), "tg_environments", EXACT)
        numbers = np.concatenate([self._belief, self._common]).tobytes()
        self._told = (ctypes.c_char * len(numbers)).from_buffer_copy(numbers)

    def text(self) -> str:
        """The kernel's text."""
        return f"#define TG_NOISY_BITS {self._noisy}\n" + cuda.environments(False)

    def change(self, rows: Any, surfaces: Array, plants: Array | None) -> None:
        """As Steps."""
        super().change(rows, surfaces, plants)
        self._robots_there = None

    def advance(self, action: Array, periods: int) -> None:
        """Hold the torques (count, n) [Nm] for some periods."""
        self._run(action, 0, self.count, periods)
        self.sample += periods

    def _run(self, action: Array, first: int, end: int, periods: int) -> None:
        gpu, whole = self._gpu, (first, end) == (0, self.count)
        columns, torques = np.ascontiguousarray(self.state[first:end].T), np.ascontiguousarray(action[first:end])
        out = np.ascontiguousarray(self.out[first:end].T)
        if whole and self._room is None:
            self._room = [gpu.allocate(array.nbytes, rows=self.count) for array in (columns, torques, out)]
        room = self._room if whole else [gpu.allocate(array.nbytes) for array in (columns, torques, out)]
        robots = self._robots_there if whole else None
        if robots is None:
            robots = gpu.put(np.ascontiguousarray(self._robots[first:end].T))
            self._robots_there = robots if whole else self._robots_there
        gpu.enter()
        gpu.fill(room[0], columns)
        gpu.fill(room[1], torques)
        job = Envs(
            None, None, robots.pointer, room[1].pointer, room[0].pointer, room[2].pointer, first, end - first, periods,
            self.sample, self._noisy, self.seed,
        )  # fmt: skip
        gpu.launch(self._function, end - first, BLOCK, [job, self._told])
        gpu.get(room[0], columns)
        gpu.get(room[2], out)
        if not whole:  # the whole is not a copy
            self.state[first:end], self.out[first:end] = columns.T, out.T


class Lesson(ctypes.Structure):
    """tg_lesson of lesson.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("table", "action", "seen", "reward", "told", "lost", "late", "over")),
        ("any", ctypes.c_void_p),
        *((name, ctypes.c_longlong) for name in ("count", "periods", "sample", "horizon")),
        ("seed", ctypes.c_ulonglong),
    ]  # fmt: skip


def lesson_text(noisy: int, single: bool, judge: Trace, goal: int, wrench: bool) -> str:
    """The kernels' text."""
    return f"#define TG_NOISY_BITS {noisy}\n" + cuda.lessons(single, judge, goal, wrench)


def taught(steps: Steps, limits: Array, single: bool) -> bytes:
    """What all environments have in common; limits: speeds [rad/s] and force [N] that end an episode, its price."""
    numbers = np.concatenate([steps._belief, steps._common, limits])
    return numbers.astype(np.float32 if single else np.float64).tobytes()


class Lessons:
    """`count` environments as kernels.environments.Steps has them, and what a learner is given of them.

    The table (count, columns) is that of lesson.h: robots, state, goal, steps of the episode. limits as `taught`.
    """

    def __init__(
        self, steps: Steps, judge: Trace, goal: int, wrench: bool, limits: Array, horizon: int, single: bool
    ) -> None:
        gpu = self._gpu = device()
        self._first = steps._robots.shape[1]  # column of the state
        self.columns = self._first + STATE + goal + 1
        self.width, self.told, self.count = 4 * 6 + 6 * wrench + goal, len(judge.outputs) - 1, steps.count
        source, options = lesson_text(steps._noisy, single, judge, goal, wrench), QUICK if single else EXACT
        kernels = [gpu.function(source, f"tg_lesson_{word}", options) for word in ("steps", "begin")]
        self._function, self._begin = kernels
        self._table = gpu.allocate(8 * self.columns * self.count, rows=self.count)
        self._over, self._any, self._mark = gpu.allocate(self.count), gpu.flag(), gpu.mark()
        self._flags = np.zeros(self.count, np.uint8)
        numbers = taught(steps, limits, single)
        self._taught = (ctypes.c_char * len(numbers)).from_buffer_copy(numbers)
        self._job = Lesson(
            self._table.pointer, over=self._over.pointer, any=ctypes.addressof(self._any), count=self.count,
            horizon=horizon,
        )  # fmt: skip
        self._arguments = addresses([self._job, self._taught])

    def place(self, which: NDArray[np.intp], rows: Array, stream: int) -> None:
        """Other rows (m, columns, or only the last ones) of the table, for the environments `which`."""
        gpu = self._gpu
        given, at = gpu.put(np.ascontiguousarray(rows), stream), gpu.put(which.astype(np.int32), stream)
        numbers = [self._table.pointer, given.pointer, at.pointer, len(which), self.count, rows.shape[1]]
        values = [ctypes.c_int64(number) for number in numbers]
        gpu.launch(self._begin, rows.size, BLOCK, values, stream)

    def over(self, stream: int) -> NDArray[np.intp]:
        """Which environments were over after the last step; waits for that step, and for nothing behind it."""
        self._gpu.wait_for(self._mark)
        if not self._any.value:
            return np.zeros(0, np.intp)
        self._any.value = 0
        self._gpu.get(self._over, self._flags, stream)
        return np.flatnonzero(self._flags)

    def step(self, action: int, places: tuple[int, ...], periods: int, sample: int, seed: int, stream: int) -> None:
        """Start a step; action: address of the torques. places: those of seen, reward, told, lost, late."""
        job = self._job
        job.action, job.periods, job.sample, job.seed = action, periods, sample, seed
        job.seen, job.reward, job.told, job.lost, job.late = places
        self._gpu.enter()
        self._gpu.start(self._function, self.count, BLOCK, self._arguments, stream)
        self._gpu.set_mark(self._mark, stream)

    def state(self) -> Array:
        """What the simulation remembers of each (count, STATE)."""
        table = np.empty((self.columns, self.count))
        self._gpu.wait()
        self._gpu.get(self._table, table)
        return np.ascontiguousarray(table[self._first : self._first + STATE].T)
