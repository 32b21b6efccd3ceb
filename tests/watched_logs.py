"""Logs of a simulated UR10e that is pushed, and models of it: what the tests of watching have in common."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np

import tangere
from tangere.identification import IdentifiedModel, prior_drive
from tangere.identification.belief import belief, read
from tangere.identification.model import Excitation
from tangere.identification.touch_logs import TouchLog
from tangere.logs.log import Log
from tangere.logs.recordings import Recording
from tangere.loop.tuning import tuning

N = 6
ROBOT = tangere.robot("ur10e")
START = np.array([0.4, -1.3, 1.5, -1.1, -1.2, 0.3])
TORQUE = 30.0  # Nm on joint 2: above the thresholds that the prior's uncertainty makes (19.7 moving)


def columns_of(
    seconds: float = 6.0, rate: float = 200.0, seed: int = 1, push: tuple[float, float, float] | None = None,
    delay: float = 0.0, load: float = 0.0,
) -> dict[str, np.ndarray]:  # fmt: skip
    """A UR10e that moves smoothly and is pushed from, to [s] with Nm on joint 2; torque reported `delay` later."""
    robot = tangere.robot("ur10e", payload=load) if load else ROBOT
    drive, rng = prior_drive(ROBOT), np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    speed, phase, size = rng.uniform(0.5, 1.0, N), rng.uniform(0.0, 6.0, N), rng.uniform(0.15, 0.3, N)

    def torque(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        angle = t[:, None] * speed + phase
        q, qd, qdd = START + size * np.sin(angle), size * speed * np.cos(angle), -size * speed**2 * np.sin(angle)
        tau = robot.inverse_dynamics(q, qd, qdd) + drive.rotor_inertia * qdd
        tau += drive.friction(q, qd, robot.gravity_torque(q))
        if push is not None:
            tau[(t >= push[0]) & (t < push[1]), 1] -= push[2]  # the drive gives what the push takes away
        return q, qd, tau

    q, qd, _ = torque(t)
    tau = torque(t - delay)[2] + 0.02 * rng.normal(size=q.shape)
    return {"time": 50.0 + t, "q": q, "qd": qd, "tau": tau}


def log_of(columns: dict[str, np.ndarray], model: IdentifiedModel | None = None, name: str = "log") -> TouchLog:
    return read(Recording(name, Log(columns), (), "0" * 64), ROBOT, model)


def model_of(delay: float = 0.0, remembers: float = 0.0) -> IdentifiedModel:
    """An identified model that happens to be right, and knows it; remembers [Nm]: film and level of its friction."""
    drive = prior_drive(ROBOT)
    drive = dataclasses.replace(
        drive, spread=0.02 * drive.coulomb, delay=delay, film=np.full(N, remembers),
        level_sigma=np.full(N, remembers), level_noise=np.full(N, remembers),
    )  # fmt: skip
    return IdentifiedModel(
        "ur10e", "none", drive, ROBOT.model.links, None, (), np.zeros(0), np.zeros((0, 0)), (),
        Excitation(1.0, 0, 36), (), (True,) * N, before=np.ones(N), after=np.ones(N), scale=np.ones(N),
    )  # fmt: skip


@cache
def tuned_model(delay: float = 0.0, remembers: float = 0.0) -> IdentifiedModel:
    """The same with thresholds from a minute of its free motion."""
    model = model_of(delay, remembers)
    logs = [log_of(columns_of(31.0, 100.0, seed=seed, delay=delay), model, f"free_{seed}") for seed in (2, 3)]
    return tuning(ROBOT, logs, belief(ROBOT, model), 0.1).model
