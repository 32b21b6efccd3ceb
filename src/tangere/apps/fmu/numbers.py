"""The numbers of one arm as an FMU carries them: start values of its parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tangere.codegen.functions import ANGLE_MAX
from tangere.dynamics.friction import WIDTH, JointFriction
from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.kinematics.rotation import quaternion_from_matrix, rotation_vector_from_matrix, ypr_from_matrix
from tangere.robots import Robot

UNLIMITED = ANGLE_MAX  # [rad] stands for "no limit" in a file that cannot hold infinity everywhere

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class ArmNumbers:
    """Everything about an arm, its tool and its load that any of the blocks needs, flat."""

    name: str  # "UR10e"
    title: str
    parameters: str  # name of the parameter set
    lengths: Numbers  # d1 a2 a3 d4 d5 d6
    tool: Numbers  # x y z rx ry rz
    gravity: Numbers
    mass: Numbers  # 6
    com: Numbers  # 18
    inertia: Numbers  # 36: xx yy zz xy xz yz per link, about the centre of mass
    payload_mass: float
    payload_com: Numbers
    payload_inertia: Numbers
    rotor_inertia: Numbers
    coulomb: Numbers
    viscous: Numbers
    width: float
    q_min: Numbers
    q_max: Numbers
    qd_max: Numbers
    tau_max: Numbers
    q_start: Numbers
    start_position: Numbers  # of the tcp at q_start
    start_R: Numbers
    start_quaternion: Numbers
    start_ypr: Numbers
    start_gravity_torque: Numbers
    start_frames: Numbers  # 8 times 16: base, link frames 1 to 6 and tcp at q_start, row by row
    sources: tuple[str, ...]


def _flat(values: ArrayLike) -> Numbers:
    return tuple(float(x) + 0.0 for x in np.ravel(np.asarray(values, dtype=np.float64)))  # + 0.0: no negative zeros


def _six(inertia: ArrayLike) -> list[float]:
    I = np.asarray(inertia)  # noqa: E741
    return [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]


def arm_of(robot: Robot, friction: JointFriction | None = None, q_start: ArrayLike | None = None) -> ArmNumbers:
    """The numbers of a UR arm; refuses other structures, whose kernels the blocks do not hold.

    friction: None for none. q_start (6,) [rad]: where the blocks begin; None: elbow bent, tool down.
    """
    model = robot.model
    if not ur.is_ur(model):
        raise InvalidValue(
            f"{model.name}: FMUs are made for arms with the structure of a UR (UR3 ... UR30, not calibrated ones)"
        )
    assert model.dh is not None
    a, d = model.dh.a, model.dh.d
    q = np.radians(ur.READY) if q_start is None else np.array(q_start, dtype=np.float64)
    if q.shape != (6,) or not np.all(np.abs(q) <= UNLIMITED):
        raise InvalidValue(f"q_start: six numbers in rad, at most {UNLIMITED:g} in size, got {q.tolist()}")
    outside = np.flatnonzero((q < robot.q_min) | (q > robot.q_max))
    if outside.size:
        i = int(outside[0])
        low, high = np.degrees([robot.q_min[i], robot.q_max[i]])
        raise InvalidValue(
            f"start: joint {i + 1} of {model.name} at {np.degrees(q[i]):.9g} deg is outside its limits, "
            f"{low:.9g} to {high:.9g} deg"
        )
    T, tool = robot.pose(q), model.T_flange_tcp
    load = model.payload
    return ArmNumbers(
        name=model.title.split()[-1] if model.title.split()[-1].isidentifier() else model.name,
        title=model.title,
        parameters=model.parameters,
        lengths=_flat([d[0], a[1], a[2], d[3], d[4], d[5]]),
        tool=_flat([*tool[:3, 3], *rotation_vector_from_matrix(tool[:3, :3])]),
        gravity=_flat(model.gravity),
        mass=_flat([link.mass for link in model.links]),
        com=_flat([link.com for link in model.links]),
        inertia=_flat([_six(link.inertia) for link in model.links]),
        payload_mass=0.0 if load is None else float(load.mass),
        payload_com=(0.0,) * 3 if load is None else _flat(load.com),
        payload_inertia=(0.0,) * 6 if load is None else _flat(_six(load.inertia)),
        rotor_inertia=_flat(robot.rotor_inertia),
        coulomb=(0.0,) * 6 if friction is None else _flat(friction.coulomb),
        viscous=(0.0,) * 6 if friction is None else _flat(friction.viscous),
        width=WIDTH if friction is None else friction.width,
        q_min=_flat(np.maximum(robot.q_min, -UNLIMITED)),
        q_max=_flat(np.minimum(robot.q_max, UNLIMITED)),
        qd_max=_flat(np.minimum(robot.qd_max, UNLIMITED)),
        tau_max=_flat(np.minimum(robot.tau_max, UNLIMITED)),
        q_start=_flat(q),
        start_position=_flat(T[:3, 3]),
        start_R=_flat(T[:3, :3]),
        start_quaternion=_flat(quaternion_from_matrix(T[:3, :3])),
        start_ypr=_flat(ypr_from_matrix(T[:3, :3])),
        start_gravity_torque=_flat(robot.gravity_torque(q)),
        start_frames=_flat([np.eye(4), *robot.link_poses(q), T]),
        sources=tuple(f"{s.group}: {s.text} ({s.grade})" for s in model.sources),
    )
