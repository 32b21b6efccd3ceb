"""Any rollout alone is its row of the batch, and the ordinary run of the classes, whatever the setting."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from test_rollouts import compiled

import tangere
from tangere.control.computed_torque import ComputedTorque
from tangere.control.joint_impedance import JointImpedance
from tangere.dynamics.friction import JointFriction
from tangere.loop import rollouts as loop
from tangere.observe.momentum import MomentumObserver
from tangere.plants.pushes import Push
from tangere.plants.random_pushes import RandomPushes
from tangere.plants.sensors import SensorModel
from tangere.types import Reference

READY = np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
SEEDS = (0, 2**63, 2**64 - 1)


def drawn(rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    """A true arm, or one for each rollout, and the rest of the arguments."""

    name = str(rng.choice(["ur10e", "ur5e", "ur3e", "ur16e"]))

    def arm() -> tangere.Robot:
        tool, payload = rng.uniform(-0.1, 0.2, 3), float(rng.uniform(0.1, 2.0))
        mounting = rng.choice(["table", "wall", "ceiling"])
        rotors = rng.uniform(0.3, 2.0, 6)
        return tangere.robot(name, tool=tool, payload=payload, mounting=str(mounting), rotor_inertia=rotors)

    count, believed = int(rng.choice([1, 3, 5, 9])), arm()
    law = JointFriction(rng.uniform(0.0, 1.0, 6), rng.uniform(0.0, 2.0, 6), width=0.3) if rng.random() < 0.6 else None
    goals = [READY + rng.uniform(-0.6, 0.6, 6) for _ in range(rng.integers(1, 4))]
    springs = {"stiffness": np.full(6, 200.0), "damping": np.full(6, 30.0)}
    kind: Any = ComputedTorque if rng.random() < 0.6 else JointImpedance
    gains = {"kp": 100.0} if kind is ComputedTorque else springs
    given: dict[str, Any] = {
        "controller": [kind(believed, goal, friction=law, **gains) for goal in goals], "count": count, "record": 1,
        "observer": MomentumObserver(believed, rng.uniform(10.0, 60.0, 6), friction=law), "detector": 8.0,
        "seconds": float(rng.uniform(0.1, 0.2)), "period": float(rng.choice([1e-3, 2e-3, 1.3e-3])), "friction": law,
        "seed": int(rng.choice(np.array(SEEDS, np.uint64))), "method": str(rng.choice(["rk4", "semi-implicit"])),
        "pushes": (RandomPushes(start=0.05, duration=0.1, links=(3, 5)), Push(joint=2, torque=9.0, start=0.05))[
            rng.integers(2)
        ],
        "sensors": SensorModel(noise_q=rng.uniform(0.0, 1e-5, 6), noise_qd=1e-3, noise_tau=0.2),
    }  # fmt: skip
    if rng.random() < 0.4:
        given["payload"] = rng.uniform(0.1, 3.0, count)
    if law is not None and rng.random() < 0.5:
        given["friction_scale"] = rng.uniform(0.5, 1.5, count)
    if rng.random() < 0.3:
        given["start"] = Reference(READY, rng.uniform(-0.2, 0.2, 6), np.zeros(6))
    return [arm() for _ in range(count)] if rng.random() < 0.5 else believed, given


@compiled
@pytest.mark.filterwarnings("ignore::tangere.errors.BeyondLimits")
@pytest.mark.parametrize("seed", range(40 if os.environ.get("TANGERE_SOAK") else 6))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_rollout_is_the_same_alone(seed: int, dtype: str) -> None:
    """Bit by bit: samples, residuals, torques and the first alarm; in float64 the classes' numbers within 1e-9."""
    rng = np.random.default_rng(seed)
    robot, given = drawn(rng)
    rolls = tangere.rollouts(robot, dtype=dtype, **given)
    assert rolls.instruction_set != "python"
    i = int(rng.integers(len(rolls)))
    again = rolls.replay(i)
    for name in loop.LOGGED:
        np.testing.assert_array_equal(again.log[name], rolls.log[name][i], name)
    assert len(again.events) == rolls.events[i]
    if again.events:
        assert again.events[0].time_s == pytest.approx(rolls.alarm_s[i], abs=1e-9)
    if dtype == "float64":
        ordinary, _ = loop._ordinary(rolls.plan, i)
        for name in ("q", "qd", "tau", "residual"):
            assert np.abs(ordinary.log[name] - rolls.log[name][i]).max() < 1e-9, name


@pytest.mark.filterwarnings("ignore::tangere.errors.BeyondLimits")
def test_each_arm_has_its_own_torque_limits() -> None:
    """The kernel knows one set of them: arms of several kinds are left to the Python loop, which says so."""
    arms = [tangere.robot(name, rotor_inertia=np.full(6, 1.0)) for name in ("ur3e", "ur10e")]
    pulled = ComputedTorque(arms[1], READY + 0.3, kp=400.0)
    given: dict[str, Any] = {"controller": pulled, "count": 2, "seconds": 0.02, "record": 1, "start": READY}
    with pytest.warns(RuntimeWarning, match="arms of which each has torque limits of its own have no kernel"):
        rolls = tangere.rollouts(arms, **given)
    for i in range(2):
        alone = tangere.rollouts(arms[i], **given)
        assert np.abs(alone.log["tau"][i] - rolls.log["tau"][i]).max() < 1e-9
        assert np.all(np.abs(rolls.log["tau"][i]).max(axis=0) <= arms[i].tau_max + 1e-9)
    assert np.abs(rolls.log["tau"][1]).max() > arms[0].tau_max.max()
