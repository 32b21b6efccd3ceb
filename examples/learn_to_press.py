"""An arm learns to press with 10 N on surfaces that it has never met, from its sense of touch, within a minute.

What it starts from is an impedance law: a spring that pulls the tip to a point below the surface. How hard that presses
depends on where the surface is, which nobody knows. Five weights on what the arm feels are learned on top of it: on the
wanted force, the missing force, its integral, the speed of the tip, and the spring itself; all zero is the law alone.

The learner (the cross-entropy method) draws weights, lets each of them press on a set of surfaces, 5e3 to 5e4 N/m, with
payload, joint friction and noise drawn as well, keeps the best quarter and draws again around it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import tangere.gym
from tangere.plants import SensorModel
from tangere.types import Array

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 0
CANDIDATES, SURFACES, ROUNDS, KEPT = 24, 12, 10, 6
SPRING, DAMPER = 1000.0, 200.0  # N/m, N s/m of the impedance law
SCALE = np.array([1.0, 1.0, 10.0, 200.0, 1.0])  # of the weights, so that each is about 1
BELOW = 0.02  # m below the start lies the point that the spring pulls to
WORLD: dict[str, Any] = {
    "stiffness": (5e3, 5e4), "gap": (0.005, 0.02), "payload": (0.0, 0.5), "friction_scale": (0.7, 1.3),
    "sensors": SensorModel(noise_q=1e-5, noise_qd=1e-3, noise_tau=0.5),
}  # fmt: skip


def law(envs: Any, observation: Array, weights: Array, memory: dict[str, Array]) -> Array:
    """Torques (n, 6): springs that hold the tool upright and above its place, and the weights' force along z."""
    seen, arm = envs.split(observation), envs.robot
    q, qd, force, wanted = seen["q"], seen["qd"], seen["wrench"][:, 2], seen["goal"][:, 0]
    T, J = arm.pose(q), arm.jacobian(q)
    T_des = memory.setdefault("start", T.copy())
    speed = np.einsum("nij,nj->ni", J, qd)
    lean = 0.5 * np.cross(T[:, :3, :3], T_des[:, :3, :3], axis=1).sum(axis=2)  # small turns to where it was
    off = T_des[:, :3, 3] - T[:, :3, 3]
    missing = wanted - force
    touching = force > 0.5
    memory["sum"] = memory.get("sum", 0.0) + np.where(touching, missing, 0.0) * envs.period * envs.periods
    spring = SPRING * (off[:, 2] - BELOW)
    felt = np.stack([-wanted, -missing, -memory["sum"], -speed[:, 2], spring], axis=1)
    wrench = np.concatenate([SPRING * off, 200.0 * lean], axis=1) - np.array([DAMPER] * 3 + [20.0] * 3) * speed
    wrench[:, 2] = spring - DAMPER * speed[:, 2] + np.sum(weights * SCALE * felt, axis=1)
    return np.asarray(arm.gravity_torque(q) + np.einsum("nij,ni->nj", J, wrench))


def episode(envs: Any, weights: Array, seed: int) -> tuple[Array, Array]:
    """Return of each environment, and its rms force error [N] in the second half of the episode."""
    observation, _ = envs.reset(seed=seed)
    total, square, memory = np.zeros(envs.num_envs), np.zeros(envs.num_envs), dict[str, Array]()
    alive = np.ones(envs.num_envs, bool)
    for step in range(envs.horizon):
        observation, reward, lost, _, info = envs.step(law(envs, observation, weights, memory))
        total += np.where(alive, reward, 0.0)
        alive &= ~lost
        square += (step >= envs.horizon // 2) * np.where(alive, info["error"] ** 2, info["force"] * 0.0 + 1e4)
    return total, np.sqrt(square / (envs.horizon - envs.horizon // 2))


def main() -> None:
    rng, begin = np.random.default_rng(SEED), perf_counter()
    envs = tangere.gym.make_vec("Tangere/Press-v0", num_envs=CANDIDATES * SURFACES, **WORLD)
    mean, spread = np.zeros(5), np.full(5, 0.5)
    for number in range(ROUNDS):
        drawn = mean + spread * rng.standard_normal((CANDIDATES, 5))
        drawn[0] = mean
        total, _ = episode(envs, np.repeat(drawn, SURFACES, axis=0), seed=1000 * SEED + number)
        score = total.reshape(CANDIDATES, SURFACES).mean(axis=1)
        best = drawn[np.argsort(score)[-KEPT:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.02
        print(f"round {number:2}: return {score.mean():8.1f}, best {score.max():8.1f}")
    seconds = perf_counter() - begin

    others = WORLD | {"stiffness": np.geomspace(5e3, 5e4, 100)}
    unseen = tangere.gym.make_vec("Tangere/Press-v0", num_envs=100, **others)
    print(f"learned in {seconds:.0f} s; on 100 surfaces that it never met, rms force error after 1 s [N]:")
    for name, weights in (("impedance law", np.zeros(5)), ("learned", mean)):
        _, rms = episode(unseen, np.tile(weights, (100, 1)), seed=77_000 + SEED)
        print(f"  {name:14} all {np.sqrt(np.mean(rms**2)):7.2f}  median {np.median(rms):6.2f}  worst {rms.max():7.2f}")
    q = unseen.state[0, :6]
    print(f"picture: {unseen.robot.plot(q).save(Path(tempfile.mkdtemp(prefix='tangere-')) / 'pressing.svg')}")
    print("weights", np.array2string(mean, precision=2))


if __name__ == "__main__":
    main()
