"""MuJoCo model (MJCF) of an arm: bodies, joints, limits, motors and simple shapes, no meshes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

import numpy as np

from tangere.errors import InvalidValue
from tangere.model.inertia import moved, with_payload
from tangere.model.model import Array, Joint, Link, Model

# MuJoCo refuses a moving body without inertia, so a point mass gets this much [kg m2]: 1e-12 of what the pendulum's
# mass has about its joint, below every tolerance we compare with.
_POINT_INERTIA = 1e-12
_RADIUS = 0.04  # m; thickness of the capsules, which are only looked at: nothing collides with them
_SHORT = 1e-3  # m; a link shorter than this is drawn as a ball, MuJoCo refuses capsules without a length


def to_mjcf(model: Model, *, rotor_inertia: bool = False) -> str:
    """The model as MuJoCo XML text, for mujoco.MjModel.from_xml_string.

    A MuJoCo body frame is the joint's frame after its motion: bodies, with the payload joined to the last one, are
    written there. M, C qd and g of the compiled model are those of the Model (MuJoCo diagonalises the inertias, which
    costs a few digits: 1e-9 relative is safe). Joint ranges are hard limits in MuJoCo, torque limits are the control
    ranges of the motors `<joint name>`; a site `tcp` sits at the tool point. Shapes do not collide (contype 0).
    No friction and no damping is written. rotor_inertia: add the drives' rotor inertia as armature; every joint's must
    be known. A point mass (inertia zero) gets 1e-12 kg m2, because MuJoCo refuses zero.
    """
    if rotor_inertia and not np.all(np.isfinite(model.drives.rotor_inertia)):
        raise InvalidValue(f"rotor inertia of {model.name} is not known for every joint: {model.drives.rotor_inertia}")
    links = (*model.links[:-1], with_payload(model.links[-1], model.payload))
    out = [
        f"<mujoco model={quoteattr(model.name)}>",
        '  <compiler angle="radian" autolimits="true" inertiafromgeom="false" balanceinertia="false"/>',
        f"  <option gravity={_numbers(model.gravity)}/>",
        '  <default><geom contype="0" conaffinity="0" rgba="0.6 0.7 0.8 1"/></default>',
        "  <worldbody>",
    ]
    T = np.eye(4)
    for i, (joint, link) in enumerate(zip(model.joints, links, strict=True)):
        indent = "    " + "  " * i
        out.append(f"{indent}<body name={quoteattr(link.name)} {_pose(T @ joint.T_parent_joint)}>")
        armature = float(model.drives.rotor_inertia[i]) if rotor_inertia else 0.0
        out.append(f"{indent}  {_joint(joint, armature)}")
        out.append(f"{indent}  {_inertial(moved(link, joint.T_joint_link))}")
        T = joint.T_joint_link
        end = T @ model.joints[i + 1].T_parent_joint if i + 1 < model.dof else T
        out += [f"{indent}  {shape}" for shape in _shapes(end[:3, 3])]
    inner = "    " + "  " * model.dof
    out.append(f'{inner}<site name="tcp" {_pose(T @ model.T_flange_tcp)} size="0.01"/>')
    out += ["    " + "  " * i + "</body>" for i in reversed(range(model.dof))]
    out += ["  </worldbody>", "  <actuator>", *(f"    {_motor(joint)}" for joint in model.joints), "  </actuator>"]
    return "\n".join([*out, "</mujoco>", ""])


def _numbers(values: Sequence[float] | Array) -> str:
    return quoteattr(" ".join(repr(float(value) + 0.0) for value in values))


def _quaternion(R: Array) -> list[float]:
    """Unit quaternion w x y z of a rotation (001 eqs 9a-d): the largest component first, the others from it."""
    trace = float(np.trace(R))
    squares = np.array([1.0 + trace, *(1.0 - trace + 2.0 * R[k, k] for k in range(3))])  # 4 w^2, 4 x^2, 4 y^2, 4 z^2
    k = int(np.argmax(squares))
    products = np.array(
        [
            [squares[0], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
            [R[2, 1] - R[1, 2], squares[1], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]],
            [R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], squares[2], R[1, 2] + R[2, 1]],
            [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], squares[3]],
        ]
    )
    q = products[k]
    return [float(value) for value in q / np.linalg.norm(q)]


def _pose(T: Array) -> str:
    return f"pos={_numbers(T[:3, 3])} quat={_numbers(_quaternion(T[:3, :3]))}"


def _joint(joint: Joint, armature: float) -> str:
    kind = "hinge" if joint.kind == "revolute" else "slide"
    reach = f" range={_numbers((joint.q_min, joint.q_max))}" if math.isfinite(joint.q_max - joint.q_min) else ""
    rotor = f" armature={_numbers([armature])}" if armature else ""
    return f'<joint name={quoteattr(joint.name)} type="{kind}" axis="0 0 1"{reach}{rotor}/>'


def _inertial(link: Link) -> str:
    inertia = link.inertia if np.any(link.inertia) else _POINT_INERTIA * np.eye(3)
    order = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    full = _numbers([float(inertia[row, column]) for row, column in order])
    return f"<inertial mass={_numbers([link.mass])} pos={_numbers(link.com)} fullinertia={full}/>"


def _shapes(end: Array) -> list[str]:
    """A capsule from the joint to the next one, or a ball where the two coincide."""
    if float(np.linalg.norm(end)) < _SHORT:
        return [f'<geom type="sphere" size="{_RADIUS}"/>']
    return [f'<geom type="capsule" fromto={_numbers([0.0, 0.0, 0.0, *end.tolist()])} size="{_RADIUS}"/>']


def _motor(joint: Joint) -> str:
    limit = f" ctrlrange={_numbers((-joint.tau_max, joint.tau_max))}" if math.isfinite(joint.tau_max) else ""
    return f"<motor name={quoteattr(joint.name)} joint={quoteattr(joint.name)}{limit}/>"
