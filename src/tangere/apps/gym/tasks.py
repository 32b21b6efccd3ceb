"""The tasks: Press (a constant force on an unknown surface) and Reach (a point in space); many, or one alone."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from tangere.apps.gym.draws import Drawn, Parameter
from tangere.apps.gym.vector import SLIP_MASS, Rows, TouchVectorEnv
from tangere.codegen.functions import absolute, minimum, sqrt, where
from tangere.errors import InvalidValue
from tangere.kernels.closed_loop import SURFACE
from tangere.kernels.ur import DOF
from tangere.kinematics import vectors as v
from tangere.kinematics.vectors import Scalar, Vector
from tangere.types import Array

STIFFNESS = (5e3, 5e4)  # [N/m] a mattress on a board to a door of sheet metal
RELATIVE_DAMPING = 0.1  # of critical for 10 kg, where no damping is given: most surfaces hardly bounce
STEADY = 3.0  # of the 4 where a contact becomes unstable: episodes start near the posture, not in it
NEAR = 0.01  # [m] a point counts as reached
BOX = 0.2  # [m] goals of Reach lie that far from where the tip starts, at most, along each axis


def _damping(stiffness: Any) -> Any:
    """[N s/m] where none is given."""
    return 2.0 * RELATIVE_DAMPING * np.sqrt(10.0 * stiffness)


class PressVectorEnv(TouchVectorEnv):
    """Press on a horizontal surface below the tip with a constant force; its height and stiffness are not told.

    goal: the wanted force [N]. Reward of a step: -|force - wanted| / wanted, at least -2; an episode
    that ends early loses 10 for each second that was left. info: force [N], error [N], gap [m].
    """

    GOAL = 1
    PARAMETERS = (
        Parameter("stiffness", "N/m", STIFFNESS, 1.0, 2e5, "of the surface", log=True),
        Parameter("damping", "N s/m", 0.0, 0.0, 1e4, "of the surface; 0: a tenth of critical for 10 kg"),
        Parameter("gap", "m", (0.005, 0.02), -0.01, 0.5, "from the tip to the surface at the start"),
        Parameter("friction", "1", 0.3, 0.0, 2.0, "coefficient of friction on the surface"),
        Parameter("force", "N", 10.0, 0.1, 200.0, "that is wanted"),
    )

    def _refuse(self, drawn: dict[str, Drawn]) -> None:
        """A tip of mass m that moves in steps of h on a surface k, d: unstable where h^2 k + 2 h d exceeds 4 m."""
        up = self.robot.jacobian(self.posture)[2]
        mass = 1.0 / max(up @ np.linalg.solve(self.robot.mass_matrix(self.posture), up), 1e-9)
        k, given = drawn["stiffness"].values.max(), drawn["damping"].values
        d = given.max() if given.min() > 0.0 else max(given.max(), _damping(k))
        most = (STEADY * mass / self.period - self.period * k) / 2.0
        if d > most:
            raise InvalidValue(
                f"damping: the tip of {self.robot.name} weighs {mass:.2g} kg and moves in steps of {self.period:g} s: "
                f"on {k:g} N/m at most {max(most, 0.0):.3g} N s/m, got {d:.3g}"
            )

    def _task(self, rows: Rows, values: dict[str, Array], tip: Array, uniform: Array) -> tuple[Array, Array]:
        surfaces = np.zeros((len(rows), SURFACE))
        k = values["stiffness"]
        given = values["damping"]
        surfaces[:, 2], surfaces[:, 3], surfaces[:, 4] = 1.0, tip[:, 2] - values["gap"], k
        surfaces[:, 5] = np.where(given > 0.0, given, _damping(k))
        surfaces[:, 6], surfaces[:, 7] = values["friction"], self.period / SLIP_MASS
        return surfaces, values["force"][:, None]

    TOLD = ("force", "error", "gap")

    @staticmethod
    def judge(sample: Vector, goal: Vector, surface: Vector) -> list[Scalar]:
        """Reward, force [N], error [N] and gap [m]."""
        force = sample[4 * DOF + 2]
        error = force - goal[0]
        return [-minimum(absolute(error) / goal[0], 2.0), force, error, sample[4 * DOF + 5] - surface[3]]


class ReachVectorEnv(TouchVectorEnv):
    """Bring the tip to a point in space and stay there; nothing is in the way.

    goal: the point (3,) [m] in base axes. Reward of a step: -distance [m] - 0.05 speed [m/s]; an episode that ends
    early loses 10 for each second that was left. info: distance [m], reached.
    """

    GOAL, DRAWS = 3, 3
    PARAMETERS = (Parameter("box", "m", BOX, 0.0, 0.6, "how far goals lie from the start along each axis, at most"),)

    def _task(self, rows: Rows, values: dict[str, Array], tip: Array, uniform: Array) -> tuple[Array, Array]:
        surfaces = np.zeros((len(rows), SURFACE))
        surfaces[:, 2], surfaces[:, 3] = 1.0, -1e3  # far below everything
        return surfaces, tip + values["box"][:, None] * (2.0 * uniform[:, :3] - 1.0)

    TOLD = ("distance", "reached")

    @staticmethod
    def judge(sample: Vector, goal: Vector, surface: Vector) -> list[Scalar]:
        """Reward, distance [m], whether it is reached."""
        place, speed = sample[4 * DOF + 3 : 4 * DOF + 6], sample[4 * DOF + 6 : 4 * DOF + 9]
        away = v.subtract(place, goal)
        distance = sqrt(v.dot(away, away))
        return [-distance - 0.05 * sqrt(v.dot(speed, speed)), distance, where(distance < NEAR, 1.0, 0.0)]


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
