"""Environments whose arrays are torch's and stay on the GPU: a step is one launch, without a copy to the host.

Episodes are drawn on the host, ahead of time and for many environments at once, so that they are those of the CPU. The
host learns which environments are over at the next step, where they begin anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.codegen.trace import Graph
from tangere.errors import InvalidValue, MissingExtra
from tangere.kernels import dlpack
from tangere.kernels.closed_loop import SURFACE
from tangere.kernels.environments import OUT, STATE
from tangere.kernels.environments_cuda import Lessons
from tangere.kernels.table import Trace
from tangere.kernels.ur import DOF
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.apps.gym.vector import Rows, TouchVectorEnv


def judge_of(kind: type[TouchVectorEnv]) -> Trace:
    """The task's law as a trace."""
    graph = Graph()
    x = graph.inputs("x", OUT + kind.GOAL + SURFACE)
    y = kind.judge(x[:OUT], x[OUT : OUT + kind.GOAL], x[OUT + kind.GOAL :])
    return Trace(graph, [graph.lift(a) for a in y])


class Tensors:
    """The steps of a TouchVectorEnv on the device; limits as kernels.environments_cuda has them."""

    def __init__(self, envs: TouchVectorEnv, limits: Array, dtype: str) -> None:
        try:
            import torch
        except ImportError as error:
            raise MissingExtra(f"arrays='torch': torch is not installed ({error})") from None
        self._envs, self._kind = envs, np.dtype(dtype)
        single = self._kind == np.float32
        self._lessons = Lessons(
            envs._steps, judge_of(type(envs)), envs.GOAL, envs.wrench, limits, envs.horizon, single
        )
        self._torch = dlpack.torch_type(self._kind)
        self._like = torch.empty(0, dtype=self._torch, device="cuda:0")
        self._flag = torch.empty(0, dtype=torch.bool, device="cuda:0")
        self._all = torch.ones(envs.num_envs, dtype=torch.bool, device="cuda:0")
        # of the next episodes the last columns of the table: surface, state, goal, steps, below 0 as an episode begins
        self._next = np.full((envs.num_envs, SURFACE + STATE + envs.GOAL + 1), -1.0)
        self._next[:, SURFACE:-1] = 0.0
        self._drawn = np.zeros(envs.num_envs, bool)  # which of them there are

    def reset(self) -> tuple[Any, dict[str, Any]]:
        """All anew: observation and info."""
        self._drawn[:] = False
        stream = dlpack.current(self._like)
        self._lessons.over(stream)
        self._begin(self._envs._rows, stream, True)
        answer = self._launch(0, self._places(), 0, stream)
        return answer[0], answer[4]

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Any]:
        """One step under torques (num_envs, 6) on the device; those that were over begin anew."""
        envs = self._envs
        stream = dlpack.current(self._like)
        torque = dlpack.view(actions, "actions", self._kind, stream, own=self._torch)
        if torque.shape != (envs.num_envs, DOF):
            raise InvalidValue(f"actions: torques of shape ({envs.num_envs}, {DOF}) [Nm], got {torque.shape}")
        places = self._places()
        envs._steps.sample += envs.periods
        over = self._lessons.over(stream)
        if len(over):
            self._begin(over, stream, envs.arms_drawn)
        return self._launch(torque.pointer, places, envs.periods, stream)

    def state(self) -> Array:
        """As TouchVectorEnv.state."""
        return self._lessons.state()

    def _places(self) -> tuple[Any, Any, Any]:
        """New arrays: observations; rewards and what is told; flags."""
        n = self._envs.num_envs
        seen = self._like.new_empty((n, self._lessons.width))
        return seen, self._like.new_empty((1 + self._lessons.told, n)), self._flag.new_empty((2, n))

    def _launch(
        self, action: int, places: tuple[Any, Any, Any], periods: int, stream: int
    ) -> tuple[Any, Any, Any, Any, Any]:
        (seen, numbers, flags), steps, n = places, self._envs._steps, self._envs.num_envs
        reward, lost = numbers.data_ptr(), flags.data_ptr()
        at = (seen.data_ptr(), reward, reward + n * self._kind.itemsize, lost, lost + n)
        self._lessons.step(action, at, periods, steps.sample, steps.seed, stream)
        rows, (terminated, truncated) = numbers.unbind(0), flags.unbind(0)
        info = dict(zip(self._envs.TOLD, rows[1:], strict=True))
        return seen, rows[0], terminated, truncated, info | {f"_{name}": self._all for name in info}

    def _begin(self, rows: Rows, stream: int, arms: bool) -> None:
        """Begin the next episodes of these; arms: with arms that the table does not have yet."""
        if not self._drawn[rows].all():
            self._draw(np.flatnonzero(~self._drawn))
        given = self._next[rows]
        if arms:
            given = np.concatenate([self._envs._steps._robots[rows, :-SURFACE], given], axis=1)
        self._lessons.place(rows, given, stream)
        self._drawn[rows] = False
        self._envs._episodes[rows] += 1

    def _draw(self, rows: Rows) -> None:
        """The next episodes of all that have none: of many at once each costs little."""
        q, goal = self._envs.anew(rows)
        self._next[rows, :SURFACE] = self._envs._steps.surfaces[rows]
        self._next[rows, SURFACE : SURFACE + DOF] = q
        self._next[rows, SURFACE + STATE : -1] = goal
        self._drawn[rows] = True
