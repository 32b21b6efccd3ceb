"""MuJoCo built from our own XML computes what Pinocchio computes from the Model."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from oracles import pinocchio_model, random_arm, relative_error, tcp_pose

from tangere.errors import InvalidValue
from tangere.model.loading import load, names
from tangere.model.model import Array, Model
from tangere.plants.scene.mjcf import to_mjcf

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed (extra test)")


def compare(model: Model, rng: np.random.Generator, *, states: int = 25, armature: Array | None = None) -> None:
    """FK, M and C qd + g at random states, 1e-9 relative to max(1, |value|).

    Why 1e-9: MuJoCo stores principal moments and axes found by an iterative eigen-decomposition, and keeps quaternions;
    all the rest is double precision.
    """
    import pinocchio as pin

    peer = mujoco.MjModel.from_xml_string(to_mjcf(model, rotor_inertia=armature is not None))
    peer.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # limits are not part of M, C and g
    data = mujoco.MjData(peer)
    pm, pd = pinocchio_model(model)
    assert (peer.nq, peer.nu) == (model.dof, model.dof)
    for _ in range(states):
        q, qd = rng.uniform(-np.pi, np.pi, model.dof), rng.uniform(-2.0, 2.0, model.dof)
        data.qpos[:], data.qvel[:] = q, qd
        mujoco.mj_forward(peer, data)
        M = np.zeros((model.dof, model.dof))
        mujoco.mj_fullM(peer, data, M)
        ours = np.array(pin.crba(pm, pd, q)) + (0.0 if armature is None else np.diag(armature))
        assert relative_error(M, ours) < 1e-9
        assert relative_error(data.qfrc_bias, np.array(pin.nonLinearEffects(pm, pd, q, qd))) < 1e-9
        T = tcp_pose(model, q)
        assert relative_error(data.site("tcp").xpos, T[:3, 3]) < 1e-9
        assert relative_error(data.site("tcp").xmat.reshape(3, 3), T[:3, :3]) < 1e-9


@pytest.mark.parametrize("arm", names())
def test_every_arm(arm: str, rng: np.random.Generator) -> None:
    compare(load(arm), rng)


def test_payload_tool_mounting_and_set(rng: np.random.Generator) -> None:
    tool = (0.01, -0.02, 0.15, 0.3, -0.4, 0.5)
    inertia = np.diag((0.01, 0.012, 0.007))
    for gravity in ("wall", "ceiling", (1.0, -2.0, 3.0)):
        payload = (2.5, (0.01, 0.02, 0.06), inertia)
        compare(load("ur10e", parameters="ur-ros2", payload=payload, tool=tool, gravity=gravity), rng, states=5)


@pytest.mark.parametrize("seed", range(5))
def test_arms_with_any_frames(seed: int, rng: np.random.Generator) -> None:
    """Random joint frames, revolute and prismatic, with a payload: no special angle to hide behind."""
    compare(random_arm(seed), rng, states=5)


def test_rotor_inertia_is_armature(rng: np.random.Generator) -> None:
    model = load("ur10e")
    compare(model, rng, states=5, armature=model.drives.rotor_inertia)
    with pytest.raises(InvalidValue, match="rotor inertia of ur15 is not known"):
        to_mjcf(load("ur15"), rotor_inertia=True)


def test_limits_and_motors() -> None:
    model = load("ur3e")
    peer = mujoco.MjModel.from_xml_string(to_mjcf(model))
    for i, joint in enumerate(model.joints):
        limited = np.isfinite(joint.q_max)
        assert bool(peer.jnt_limited[i]) == limited
        if limited:
            assert peer.jnt_range[i].tolist() == [joint.q_min, joint.q_max]
        assert peer.actuator(joint.name).ctrlrange.tolist() == [-joint.tau_max, joint.tau_max]
    assert not np.any(peer.geom_contype)
    assert not np.any(peer.geom_conaffinity)
    data = mujoco.MjData(peer)
    data.ctrl[:] = (1.0, -2.0, 3.0, -4.0, 5.0, -6.0)
    mujoco.mj_forward(peer, data)
    assert data.qfrc_actuator.tolist() == data.ctrl.tolist()


def test_names_are_escaped() -> None:
    """A name with markup stays a name."""
    hostile = '"/><plugin name="x'
    model = load("pendulum")
    joint = dataclasses.replace(model.joints[0], name=hostile)
    peer: Any = mujoco.MjModel.from_xml_string(to_mjcf(dataclasses.replace(model, joints=(joint,), name="a<b&c")))
    assert peer.joint(0).name == hostile
