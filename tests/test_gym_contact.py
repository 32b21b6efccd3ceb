"""Contacts of the learning environments beside MuJoCo's: the same arm, law and surface in both."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.types import Array, Command

pytest.importorskip("gymnasium", reason="gymnasium is not installed: pip install 'tangere[gym]'")
pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install 'tangere[sim]'")
import tangere.gym
from tangere.plants import MujocoPlant
from tangere.plants.scene.bodies import pad
from tangere.plants.scene.scene import Pen, Scene

GAP, HELD, STEPS, PERIODS = 0.02, 20.0, 450, 2  # [m], [N]; steps of 2 ms
CASES = [(k, v) for k in (1e4, 1e5) for v in np.linspace(0.05, 0.25, 50)]  # [N/m], [m/s]
SHORT = CASES if os.environ.get("TANGERE_SOAK") else CASES[::9] + CASES[49:50] + CASES[99:]


def torque(arm: tangere.Robot, friction: Any, q: Array, qd: Array, speed: Array, touched: Array) -> Array:
    """Down at a speed until it has touched, then a constant force; the other directions are damped."""
    J = arm.jacobian(q)
    v = np.einsum("nij,nj->ni", J, qd)
    wrench = -np.array([200.0, 200.0, 0.0, 20.0, 20.0, 20.0]) * v
    wrench[:, 2] = np.where(touched, -HELD - 150.0 * v[:, 2], -400.0 * (v[:, 2] + speed))
    return arm.bias_torque(q, qd) + friction.torque(qd) + np.einsum("nij,ni->nj", J, wrench)


def ours(k: Array, v: Array, friction: float) -> tuple[Array, Array, Any]:
    damping = 0.1 * np.sqrt(10.0 * k)
    envs = tangere.gym.make_vec(
        "Tangere/Press-v0", num_envs=len(k), stiffness=k, damping=damping, gap=GAP, friction=friction, spread=0.0,
        periods=PERIODS, seconds=60.0,
    )  # fmt: skip
    envs.reset(seed=0)
    touched, peak, held = np.zeros(len(k), bool), np.zeros(len(k)), np.zeros(len(k))
    for step in range(STEPS):
        state = envs.state
        _, _, lost, _, info = envs.step(torque(envs.robot, envs.friction, state[:, :6], state[:, 6:12], v, touched))
        assert not lost.any()
        force = np.linalg.norm(envs.tip[0], axis=1)
        touched |= force > 0.0
        peak = np.maximum(peak, envs._steps.out[:, 4 * 6 + 9])
        held += force / 50 if step >= STEPS - 50 else 0.0
        assert np.array_equal(info["force"], envs.tip[0][:, 2])
    return peak, held, envs


def theirs(envs: Any, k: float, v: float, friction: float) -> tuple[float, float]:
    arm, q = envs.robot, envs.posture
    place = arm.pose(q)[:3, 3]
    face = (place[0], place[1], place[2] - GAP)
    sheet = pad("pad", face, (0.0, 0.0, 1.0), k, 0.1 * np.sqrt(10.0 * k), (0.5, 0.5, 0.05), friction)
    plant = MujocoPlant(
        arm, envs.period, friction=envs.friction, scene=Scene((sheet,), Pen(0.1, tip_radius=0.0005)),
        joint_limits=False, record_contacts=True,
    )  # fmt: skip
    state = plant.reset(q)
    touched = np.zeros(1, bool)
    for _ in range(STEPS):
        tau = torque(arm, envs.friction, state.q[None], state.qd[None], np.array([v]), touched)[0]
        for _ in range(PERIODS):
            plant.write(Command(tau))
        state = plant.read()
        touched |= plant.contact_forces[-1].any()
    force = np.linalg.norm(plant.contact_forces, axis=1)
    return float(force.max()), float(force[-50 * PERIODS :: PERIODS].mean())


@pytest.mark.parametrize("friction", [0.0, 0.3])
def test_peak_and_held_forces_are_those_of_mujoco(friction: float) -> None:
    """Peak within 10 %, held within 2 %, on 1e4 and 1e5 N/m at 0.05 to 0.25 m/s."""
    k, v = np.array(SHORT).T
    peak, held, envs = ours(k, v, friction)
    wanted = np.array([theirs(envs, *case, friction) for case in SHORT])
    assert np.abs(peak / wanted[:, 0] - 1.0).max() < 0.10
    assert np.abs(held / wanted[:, 1] - 1.0).max() < 0.02
    assert peak.max() > 150.0  # there was an impact
    assert held == pytest.approx(HELD, abs=1.0)
