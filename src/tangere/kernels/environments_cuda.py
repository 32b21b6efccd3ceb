"""Learning environments on a CUDA device: the loop of kernels/c/env.h, a thread for each arm, with the CPU's bits.

The numbers of the arms live with the host, where tasks read and change them: each step takes them to the device and
back, 1 kB for an arm, which costs less than its periods do from some ten periods a step on.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tangere.kernels.device import EXACT, device
from tangere.kernels.emit import cuda
from tangere.kernels.environments import Steps
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
        self._robots_there: Any = None
        self._function = self._gpu.function(self.text(), "tg_environments", EXACT)
        numbers = np.concatenate([self._belief, self._common]).tobytes()
        self._told = (ctypes.c_char * len(numbers)).from_buffer_copy(numbers)

    def text(self) -> str:
        """The kernel's text."""
        return f"#define TG_NOISY_BITS {self._noisy}\n" + cuda.environments(False)

    def change(self, rows: Any, plants: Array, surfaces: Array) -> None:
        """Other arms and surfaces for these rows."""
        super().change(rows, plants, surfaces)
        self._robots_there = None

    def advance(self, action: Array, periods: int) -> None:
        """Hold the torques (count, n) [Nm] for some periods."""
        self._run(action, 0, self.count, periods)
        self.sample += periods

    def _run(self, action: Array, first: int, end: int, periods: int) -> None:
        gpu, whole = self._gpu, (first, end) == (0, self.count)
        columns, torques = np.ascontiguousarray(self.state[first:end].T), np.ascontiguousarray(action[first:end])
        out = np.empty((self.out.shape[1], end - first))
        if whole and self._room is None:
            self._room = [gpu.allocate(array.nbytes) for array in (columns, torques, out)]
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
        self.state[first:end], self.out[first:end] = columns.T, out.T
