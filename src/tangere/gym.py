"""Learning environments for gymnasium (extra `gym`): UR arms with torque actions and touch observations.

    import tangere.gym
    envs = tangere.gym.make_vec("Tangere/Press-v0", num_envs=64)
    observation, info = envs.reset(seed=0)
    observation, reward, terminated, truncated, info = envs.step(torques)

After the import gymnasium.make("Tangere/Press-v0") and gymnasium.make_vec know them, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tangere.errors import MissingExtra, unknown

try:
    import gymnasium
except ImportError as error:
    raise MissingExtra(f"gymnasium is not installed ({error}): pip install 'tangere[gym]'") from None

from tangere.apps.gym import tasks

if TYPE_CHECKING:
    from tangere.apps.gym.vector import TouchVectorEnv

__all__ = ["ENVIRONMENTS", "make_vec"]

ENVIRONMENTS: dict[str, type[TouchVectorEnv]] = {
    "Tangere/Press-v0": tasks.PressVectorEnv,
    "Tangere/Reach-v0": tasks.ReachVectorEnv,
}
_ALONE = {"Tangere/Press-v0": tasks.PressEnv, "Tangere/Reach-v0": tasks.ReachEnv}
for _name, _kind in ENVIRONMENTS.items():
    if _name not in gymnasium.registry:
        gymnasium.register(_name, entry_point=_ALONE[_name], vector_entry_point=_kind)


def make_vec(id: str, num_envs: int = 1, device: str = "cpu", **options: Any) -> TouchVectorEnv:
    """The vector environment of that name; options as apps.gym.vector.TouchVectorEnv and its task take them.

    robot="ur10e", autoreset_mode="NextStep" | "SameStep" | "Disabled", seconds, period, periods, sensors, wrench, and
    parameters, each a number, a range (least, most) or an array (num_envs,): payload, friction_scale; of Press
    stiffness, damping, gap, friction, force; of Reach box.
    """
    if id not in ENVIRONMENTS:
        raise unknown("environment", str(id), ENVIRONMENTS)
    return ENVIRONMENTS[id](num_envs, device, **options)
