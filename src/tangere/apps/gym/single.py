"""One environment alone, as gymnasium.make gives it."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from tangere.apps.gym.tasks import PressVectorEnv, ReachVectorEnv
from tangere.apps.gym.vector import TouchVectorEnv
from tangere.errors import InvalidValue


class SingleEnv(gymnasium.Env[Any, Any]):
    """A vector of one, without its axis."""

    KIND: ClassVar[type[TouchVectorEnv]] = TouchVectorEnv

    def __init__(self, **options: Any) -> None:
        for name in ("num_envs", "autoreset_mode"):
            if name in options:
                raise InvalidValue(f"{name}: is for many, tangere.gym.make_vec; one alone is reset by who steps it")
        self.vector = self.KIND(1, autoreset_mode="Disabled", **options)
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space
        self.metadata = {"render_modes": []}
        self.render_mode, self._begun = None, False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Start anew."""
        super().reset(seed=seed)
        if seed is None and not self._begun:
            seed = self.np_random_seed
        self._begun = True
        observation, info = self.vector.reset(seed=seed, options=options)
        return observation[0], _first(info)

    def step(self, action: Any) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """One step."""
        observation, reward, terminated, truncated, info = self.vector.step(np.asarray(action)[None])
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), _first(info)


class PressEnv(SingleEnv):
    """PressVectorEnv alone."""

    KIND = PressVectorEnv


class ReachEnv(SingleEnv):
    """ReachVectorEnv alone."""

    KIND = ReachVectorEnv


def _first(info: dict[str, Any]) -> dict[str, Any]:
    return {name: float(value[0]) for name, value in info.items() if not name.startswith("_")}
