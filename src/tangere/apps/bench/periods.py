"""`tangere bench --run`: what a period of an ordinary run costs beside MuJoCo's bare step of the same run, interleaved.

The run is that of `tangere run circle`: MuJoCo, a guard around computed torque, the momentum observer, the detector, a
log in a file. Beside it the same model goes through the same torques with nothing but mj_step, called from Python. All
figures are processor time, user and system: of the loop (its own thread, from the first period to the last), of the run
(with what it sets up, and the thread that writes the log), and of the command without the start of an interpreter (with
imports, planning and the page). Times are the medians of the rounds, a ratio is that of two times shown.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tangere.apps.bench.results import ROUNDS, Result, rounded
from tangere.control.computed_torque import ComputedTorque
from tangere.control.guard import Guarded
from tangere.errors import InvalidValue
from tangere.kernels.ur import is_ur
from tangere.loop.run import run
from tangere.model.mjcf import mujoco_module
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.isolation import ContactIsolator
from tangere.observe.momentum import MomentumObserver
from tangere.planning.path_trajectory import UR10E_ARM, ramped_circle
from tangere.plants.joints import with_rotors
from tangere.report.terminal import table
from tangere.robots import Robot
from tangere.types import Array, Command, Controller, State

PERIOD, SECONDS = 1e-3, 10.0  # [s] of one round: a run of 10 000 periods
CENTRE, RADIUS = np.array((0.7, 0.1, 0.3)), 0.15  # [m] of a UR10e's circle; of others in proportion to their length
NAMES = {"loop": "the loop", "run": "with its log", "command": "the whole command"}


class _Clocked:
    """A controller that notes its thread's processor time before its first step and after the last period."""

    def __init__(self, controller: Controller) -> None:
        self._controller, self.start = controller, controller.start
        self.step: Callable[[State], Command] = self._first  # the controller's own from then on: the clock costs 0.5 us
        self.begin = self.end = 0.0

    def _first(self, state: State) -> Command:
        self.begin, self.step = time.thread_time(), self._controller.step
        return self.step(state)

    def stop(self) -> None:
        """The loop has ended."""
        self.end = time.thread_time()
        self._controller.stop()


def measured(bare: Robot, seconds: float) -> Result:
    """Microseconds of processor time per period, and times the bare step, as the JSON shows them."""
    if not is_ur(bare.model) or bare.model.dh is None:
        raise InvalidValue(f"--run: the circle is one of UR arms, got {bare.name}")
    mujoco_module("--run needs mujoco")
    arm, end = with_rotors(bare, True), time.perf_counter() + seconds
    rounds: list[tuple[float, ...]] = []
    with TemporaryDirectory() as folder:
        while len(rounds) < ROUNDS or time.perf_counter() < end:
            rounds.append((*_ours(arm, Path(folder) / "log.mcap"), _command(bare.name, Path(folder))))
    times = np.array(rounds) / (SECONDS / PERIOD) * 1e6
    result: Result = {"robot": bare.name, "periods": round(SECONDS / PERIOD), "rounds": len(rounds)}
    bare_us, *ours_us = (rounded(float(taken)) for taken in np.median(times, axis=0))
    result["mj_step_us"] = bare_us
    for name, taken in zip(NAMES, ours_us, strict=True):
        result |= {f"{name}_us": taken, f"{name}_ratio": rounded(taken / bare_us)}
    return result


def text(result: Result) -> str:
    """The same in a few lines."""
    rows = [["mj_step alone", f"{result['mj_step_us']:.3g}", ""]]
    rows += [[said, f"{result[f'{name}_us']:.3g}", f"{result[f'{name}_ratio']:.3g}"] for name, said in NAMES.items()]
    where = f"{result['robot']}, run circle, {result['periods']} periods of 1 ms, {result['rounds']} rounds."
    said = "Processor time, user and system; the command without the start of an interpreter."
    head = ["microseconds per period", "", "times mj_step"]
    return "\n".join([*table(rows, head, "lrr"), "", f"  {where}", f"  {said}"])


def _ours(arm: Robot, log: Path) -> tuple[float, float, float]:
    """Seconds of the bare steps of a run, of its loop and of the whole of it."""
    from tangere.plants.mujoco_plant import MujocoPlant

    assert arm.model.dh is not None
    scale = float(np.abs(arm.model.dh.a[[1, 2]]).sum()) / UR10E_ARM
    path = ramped_circle(arm, centre=scale * CENTRE, radius=scale * RADIUS, duration=SECONDS, period=PERIOD)
    plant = MujocoPlant(arm, PERIOD)
    controller = _Clocked(Guarded(ComputedTorque(arm, path), arm, period=PERIOD))
    thresholds = Thresholds.of_noise(arm, PERIOD, mass_error=0.05, friction_error=0.2)
    detector = Detector(thresholds, isolator=ContactIsolator(arm), answered=True)
    observer, begin = MomentumObserver(arm), time.process_time()
    result = run(plant, controller, observer, until=SECONDS, trajectory=path, detector=detector, log=log)
    whole = time.process_time() - begin
    return _bare(plant, result.log["q_true"][0], list(result.log["tau_cmd"])), controller.end - controller.begin, whole


def _bare(plant: Any, q: Array, torques: list[Array]) -> float:
    """Seconds that the steps take along these torques, without what giving the torques takes."""
    import mujoco

    model, data, step = plant.model, mujoco.MjData(plant.model), mujoco.mj_step
    data.qpos[:], applied = q, data.qfrc_applied
    mujoco.mj_forward(model, data)
    clock = [time.thread_time()]
    for tau in torques:
        applied[:] = tau
        step(model, data)
    clock.append(time.thread_time())
    for tau in torques:
        applied[:] = tau
    clock.append(time.thread_time())
    return 2.0 * clock[1] - clock[0] - clock[2]


def _command(name: str, folder: Path) -> float:
    """Seconds of `tangere run circle` in a process of its own, without the start of an interpreter."""
    words = ["-m", "tangere", "run", "circle", "--robot", name, "--set", f"duration={SECONDS}"]
    return _spent([*words, "--out", str(folder / "run")]) - _spent(["-c", "pass"])


def _spent(words: list[str]) -> float:
    before = os.times()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
