"""The twin of an arm with six axes: the exact UR nearest to it, whose closed form starts its inverse kinematics.

A calibrated UR has the nominal one as its twin. For an arm from a URDF the twin is read off its joint axes: axis 2
crosses axis 1 at a right angle, 3 and 4 are parallel to 2, 5 crosses 4 and 6 crosses 5 at right angles. How far the arm
is from that, in radians and metres at the tool, decides whether the twin is of use.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tangere.kernels import ur
from tangere.model.assemble import dh_transform
from tangere.model.frames import inverse
from tangere.model.model import DH, Array, Model

# [rad, m] at the tool: three times what a calibration file may change. Beyond, it is another arm.
TWIN_TILT_MAX, TWIN_SHIFT_MAX = 0.3, 0.1
# [1] the distance is measured at a few joint vectors and may be a little larger between them
TWIN_MARGIN = 1.5
# [rad] every joint at quarter turns that differ: where errors of all axes show, in all directions
_TWIN_PROBES = np.pi / 2 * np.stack(np.meshgrid(*[[0.3, 1.3, 2.3, 3.3]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)


def twin_of(model: Model, nominal: Model | None) -> Array | None:
    """What the compiled inverse kinematics wants of the twin (tg_twin in polished.h), or None where no UR is near."""
    if model.dof != ur.DOF or any(joint.kind != "revolute" for joint in model.joints):
        return None
    found = (nominal, np.eye(4), np.zeros(6)) if nominal is not None else _read_off(model)
    if found is None:
        return None
    twin, base, offset = found
    q = np.concatenate([_TWIN_PROBES, _TWIN_PROBES[::-1] + 0.4], axis=-1)
    ours, theirs = _pose(model, q), base @ _pose(twin, q + offset)
    off = ours - theirs
    turned = np.linalg.norm(off[..., :3, :3], axis=(-2, -1)) / np.sqrt(2.0)  # 2 sin(angle / 2)
    tilt = TWIN_MARGIN * float(np.max(turned))
    shift = TWIN_MARGIN * float(np.max(np.linalg.norm(off[..., :3, 3], axis=-1)))
    if tilt > TWIN_TILT_MAX or shift > TWIN_SHIFT_MAX:
        return None
    place = [*base[:3, :3].ravel(), *base[:3, 3], *offset, tilt, shift]
    return np.array([*ur.parameters_of(twin), *place])


def _pose(model: Model, q: Array) -> Array:
    """T_base_tcp (..., 4, 4) of a chain that turns only, joint by joint."""
    T = np.broadcast_to(np.eye(4), (*q.shape[:-1], 4, 4))
    for i, joint in enumerate(model.joints):
        turn = np.zeros((*q.shape[:-1], 4, 4))
        turn[..., 0, 0] = turn[..., 1, 1] = np.cos(q[..., i])
        turn[..., 1, 0] = np.sin(q[..., i])
        turn[..., 0, 1] = -turn[..., 1, 0]
        turn[..., 2, 2] = turn[..., 3, 3] = 1.0
        T = T @ joint.T_parent_joint @ turn @ joint.T_joint_link
    moved: Array = T @ model.T_flange_tcp
    return moved


def _read_off(model: Model) -> tuple[Model, Array, Array] | None:
    """The UR with the arm's joint axes at q = 0, its base in the arm's base frame, and its angles there."""
    T, axes, points = np.eye(4), [], []
    for joint in model.joints:
        at = T @ joint.T_parent_joint
        axes.append(at[:3, 2])
        points.append(at[:3, 3])
        T = at @ joint.T_joint_link
    tcp = T @ model.T_flange_tcp
    z1 = axes[0]
    z2, z5 = _across(axes[1], z1), _across(axes[4], axes[3])
    if z2 is None or z5 is None or (z6 := _across(axes[5], z5)) is None:
        return None
    z5 = _across(z5, z2)
    if z5 is None:
        return None
    x1 = np.cross(z1, z2)
    shoulder = points[0] + z1 * float((points[1] - points[0]) @ z1)
    base = _frame(x1, z1, shoulder)
    angles, lengths, at = [], [], shoulder
    for point in (points[2], points[3]):
        way = (point - at) - z2 * float((point - at) @ z2)
        lengths.append(-float(np.linalg.norm(way)))
        if lengths[-1] == 0.0:
            return None
        x = way / lengths[-1]
        angles.append(float(np.arctan2(x @ np.cross(z2, x1), x @ x1)))
        at = at + way
    x4, x5 = np.cross(z2, z5), -np.cross(z5, z6)
    angles.append(float(np.arctan2(x4 @ np.cross(z2, x1), x4 @ x1)))
    d4 = float((points[4] - at) @ z2)
    d5 = float((points[5] - at - d4 * z2) @ z5)
    if not (d4 > 0.0 and d5 > 0.0):
        return None
    wrist = at + d4 * z2 + d5 * z5
    t5 = float(np.arctan2(x5 @ np.cross(z5, x4), x5 @ x4))
    offset = np.array([0.0, angles[0], angles[1] - angles[0], angles[2] - angles[1], t5, 0.0])
    quarter = np.pi / 2
    dh = DH(
        a=np.array([0.0, *lengths, 0.0, 0.0, 0.0]),
        d=np.array([0.0, 0.0, 0.0, d4, d5, 0.0]),
        alpha=np.array([quarter, 0.0, 0.0, quarter, -quarter, 0.0]),
    )
    joints = tuple(
        dataclasses.replace(joint, T_parent_joint=np.eye(4), T_joint_link=_link(dh, i))
        for i, joint in enumerate(model.joints)
    )
    tool = inverse(_frame(x5, z6, wrist)) @ tcp
    return dataclasses.replace(model, joints=joints, dh=dh, T_flange_tcp=tool), base, offset


def _across(z: Array, other: Array) -> Array | None:
    """The axis z made perpendicular to the other; None where it is nearly along it."""
    rest = z - other * float(z @ other)
    length = float(np.linalg.norm(rest))
    perpendicular: Array = rest / length if length > 0.5 else np.zeros(3)
    return perpendicular if length > 0.5 else None


def _frame(x: Array, z: Array, origin: Array) -> Array:
    T = np.eye(4)
    T[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    T[:3, 3] = origin
    return T


def _link(dh: DH, i: int) -> Array:
    return dh_transform(float(dh.a[i]), float(dh.d[i]), round(float(np.rad2deg(dh.alpha[i])), 9))
