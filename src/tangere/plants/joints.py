"""The joints of a simulated arm as settings tell them: rotors, friction, sensors; the one source for every app.

Light: the command line makes its options of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tangere.errors import InvalidValue
from tangere.settings import flag, word

if TYPE_CHECKING:
    from tangere.dynamics.friction import JointFriction
    from tangere.model.model import Model
    from tangere.plants.sensors import SensorModel
    from tangere.robots import Robot


@dataclass(frozen=True)
class JointSettings:
    """What may be told of joints; an app's group takes these fields by `altered`, with a default of its own."""

    drives: bool = flag(True, "rotor inertia of the arm's drives, where it is known, in plant and model")
    friction: str = word(
        "none", "of the plant's joints; typical: by joint size where it is not known",
        ("none", "viscous", "full", "stiction", "typical"),
    )  # fmt: skip
    friction_model: str = word("same", "what the controller compensates", ("same", "none"))
    sensors: str = word(
        "ideal", "noise of the measurements; typical: a UR10e's, scaled by joint size", ("ideal", "ur10e", "typical")
    )


def with_drives(arm: Robot, friction: str) -> Robot:
    """The arm with drives by joint size where its own are not known, if its friction is to be typical."""
    from tangere.model.joint_sizes import typical_drives
    from tangere.robots import Robot

    return Robot(typical_drives(arm.model)) if friction == "typical" else arm


def with_rotors(arm: Robot, drives: bool) -> Robot:
    """The arm with the rotor inertia of its drives, where that is asked for and known of every joint."""
    from tangere.robots import Robot

    return Robot(arm.model, True) if drives and np.all(np.isfinite(arm.drives.rotor_inertia)) else arm


def friction_of(true: Robot, friction: str) -> JointFriction | None:
    """The friction of an arm's joints; InvalidValue where nothing is known of it."""
    from tangere.dynamics.friction import JointFriction
    from tangere.model.joint_sizes import unknown_joints

    if friction == "none":
        return None
    law = JointFriction.of(true.drives)
    if friction == "viscous":
        law = JointFriction(np.zeros(true.dof), law.viscous)
    missing = unknown_joints(true.model, "coulomb", "viscous")
    if friction == "typical" and missing:
        sliding = true.model.joints[missing[0] - 1].kind == "prismatic"
        why = "slides, and only friction of turning joints is known" if sliding else "states no torque limit"
        raise InvalidValue(
            f"friction: typical friction follows from a joint's torque limit; joint {missing[0]} of {true.name} {why}: "
            "friction=none, or [drives] in its model file"
        )
    if not np.any(law.viscous) and not np.any(law.coulomb):
        raise InvalidValue(
            f"friction: the drives of {true.name} are not known; friction=none, or friction=typical for those of UR "
            "joints with such torque limits"
        )
    return law


def assumed(model: Model) -> tuple[str, ...]:
    """What is to be said where drives are taken by joint size; model: the arm as its data has it."""
    from tangere.model.joint_sizes import friction_spread, unknown_joints

    joints = unknown_joints(model, "rotor_inertia", "coulomb", "viscous")
    if not joints:
        return ()
    off = f"{100.0 * float(friction_spread(model)[np.array(joints) - 1].max()):g} %"
    named = f"joints {', '.join(map(str, joints))}" if len(joints) > 1 else f"joint {joints[0]}"
    return (f"friction and rotor inertia of {named} of {model.name} are not known: by joint size, perhaps {off} off",)


def sensors_of(arm: Robot, sensors: str, period: float, seed: int) -> SensorModel | None:
    """The sensors of an arm's joints; None: ideal ones."""
    from tangere.plants.sensors import SensorModel

    if sensors == "ideal":
        return None
    if sensors == "typical":
        return SensorModel.typical(arm.tau_max, period, seed)
    model = SensorModel.preset(sensors, period, seed)
    if arm.dof != np.size(model.noise_tau):
        count = np.size(model.noise_tau)
        raise InvalidValue(f"sensors: a {sensors} has {count} joints, {arm.name} {arm.dof}; sensors=typical")
    return model
