"""A controller that tries things out: ten thousand futures of a simulated arm for each decision, the best ones blended.

The arm's tip must come to a point. Nothing is planned: each decision draws 10 000 joint accelerations, plays all of
them 100 steps ahead in a vector of environments that stand where the arm stands, and takes the mean of the futures,
weighted by how well they end (model predictive path integral control). Then the arm moves on for a fifth of that time
and decides again. The futures know nothing of the payload that the arm carries.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

import tangere.gym
from tangere.types import Array

FUTURES, STEPS, DONE = 10_000, 100, 20  # per decision: futures, steps of each, steps before the next decision
DECISIONS = int(sys.argv[1]) if len(sys.argv) > 1 else 4
PERIOD = 2e-3  # s: 100 steps are 0.2 s
SPREAD = np.array([1.5, 1.5, 1.5, 3.0, 3.0, 3.0])  # rad/s2, of the accelerations that are drawn
BRAKE = 8.0  # 1/s: behind its first half every future slows down
COLDNESS = 200.0  # 1/m: a future that ends 5 mm farther away counts a third


def torques(arm: tangere.Robot, q: Array, qd: Array, acceleration: Array, step: int) -> Array:
    """The accelerations as torques; in the second half the joints brake."""
    wanted = acceleration if step < STEPS // 2 else -BRAKE * qd
    return np.asarray(arm.inverse_dynamics(q, qd, wanted))


def main() -> None:
    rng = np.random.default_rng(0)
    options = {"periods": 1, "period": PERIOD, "seconds": 60.0, "box": 0.1}
    real = tangere.gym.make_vec("Tangere/Reach-v0", num_envs=1, payload=0.5, **options)
    model = tangere.gym.make_vec("Tangere/Reach-v0", num_envs=FUTURES, autoreset_mode="Disabled", **options)
    real.reset(seed=4)
    model.reset(seed=0)
    arm, friction = real.robot, real.friction
    mean, spent, distance = np.zeros(6), 0.0, np.linalg.norm(real.tip[1][0] - real.goal[0])
    distances = [distance]
    print(f"start: {1e3 * distance:.0f} mm from the goal")
    for number in range(DECISIONS):
        begin = perf_counter()
        model.restore(real.state[0], real.goal[0])
        drawn = mean + SPREAD * rng.standard_normal((FUTURES, 6))
        for step in range(STEPS):
            state = model.state
            q, qd = state[:, :6], state[:, 6:12]
            model.step(torques(arm, q, qd, drawn, step) + friction.torque(qd))
        _, place, speed = model.tip
        cost = np.linalg.norm(place - real.goal[0], axis=1) + 0.05 * np.linalg.norm(speed, axis=1)
        weight = np.exp(-COLDNESS * (cost - cost.min()))
        mean = weight @ drawn / weight.sum()
        spent += perf_counter() - begin
        for step in range(DONE):
            state = real.state
            q, qd = state[:, :6], state[:, 6:12]
            _, _, _, _, info = real.step(torques(arm, q, qd, mean[None], step) + friction.torque(qd))
            distances.append(info["distance"][0])
        print(f"decision {number + 1}: {1e3 * info['distance'][0]:5.1f} mm")
    rate = DECISIONS * FUTURES * STEPS / spent
    print(f"{FUTURES} futures of {STEPS} steps: {spent / DECISIONS:.2f} s a decision, {rate / 1e6:.2g} million steps/s")
    log = tangere.Log({"time": PERIOD * np.arange(len(distances)), "distance": np.array(distances)})
    print(f"picture: {log.plot('distance').save(Path(tempfile.mkdtemp(prefix='tangere-')) / 'distance.svg')}")


if __name__ == "__main__":
    main()
