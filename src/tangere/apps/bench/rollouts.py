"""`tangere bench --rollouts`: closed loops in the fused kernel beside MuJoCo's rollout, interleaved in one run.

Ours is the whole loop: noisy sensors, computed torque, the arm with friction, a contact on every robot, the momentum
observer, thresholds. MuJoCo's is the arm alone: the same masses, no controller, no sensors, contacts switched off. Each
method stands beside its like: the semi-implicit step, which is MuJoCo's default (Euler with implicit damping), and
Runge-Kutta of fourth order. Both on one thread. Each round times all; the rates are those of the best rounds, a ratio
is that of two rates shown. The plain keys are those of the semi-implicit step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tangere.apps.bench.results import ROUNDS, Result, rounded
from tangere.control.computed_torque import ComputedTorque
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.identification import prior_drive
from tangere.kernels import rollouts as kernel
from tangere.kernels.ur import READY, is_ur
from tangere.loop.rollouts import Rollouts, rollouts
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.momentum import MomentumObserver
from tangere.plants.random_pushes import RandomPushes
from tangere.plants.scene.mjcf import to_mjcf
from tangere.plants.sensors import SensorModel
from tangere.report.terminal import table
from tangere.robots import Robot

PERIOD = 1e-3  # [s]
ROBOTS, STEPS = 64, 250  # of one round of ours: 5 ms, so that starting a thread is nothing
THEIRS, THEIR_STEPS = 4, 100  # of MuJoCo's: 4 ms
DEVICE_ROBOTS, DEVICE_STEPS = 1_000_000, 5000  # of a GPU: a million contacts of 5 s


def measured(bare: Robot, seconds: float, device: str = "cpu") -> Result:
    """Rates in robot-steps per second, as the JSON shows them; rotors and friction are those of an arm of its size."""
    if device != "cpu":
        return _on_device(bare)
    drive = prior_drive(bare)
    arm, friction = Robot(bare.model, drive.rotor_inertia), JointFriction(drive.coulomb, drive.viscous)
    contenders: dict[str, tuple[Callable[[], Any], int]] = {}
    for suffix, method in (("", "semi-implicit"), ("_rk4", "rk4")):
        for word, single in (("", False), ("_float32", True)):
            contenders[f"tangere{word}{suffix}_steps_per_s"] = (_ours(arm, friction, method, single), ROBOTS * STEPS)
        if (theirs := _theirs(arm, friction, method)) is not None:
            contenders[f"mujoco_rollout{suffix}_steps_per_s"] = (theirs, THEIRS * THEIR_STEPS)
    best = dict.fromkeys(contenders, np.inf)
    end, k = time.perf_counter() + seconds, 0
    while k < ROUNDS or time.perf_counter() < end:
        for name in contenders if k % 2 else reversed(contenders):
            begin = time.perf_counter()
            contenders[name][0]()
            best[name] = min(best[name], time.perf_counter() - begin)
        k += 1
    rates = {name: rounded(size / best[name]) for name, (_, size) in contenders.items()}
    result: Result = {"device": "cpu"}
    for suffix in ("", "_rk4"):
        ours, peer = rates[f"tangere{suffix}_steps_per_s"], rates.get(f"mujoco_rollout{suffix}_steps_per_s")
        result[f"tangere{suffix}_steps_per_s"], result[f"mujoco_rollout{suffix}_steps_per_s"] = ours, peer
        result[f"ratio{suffix}"] = None if peer is None else rounded(ours / peer)
    result |= {"threads": 1, "instruction_set": kernel.available()[0], "robot": arm.name, "rounds": k}
    return result | rates


def _on_device(bare: Robot) -> Result:
    """Of a GPU: DEVICE_ROBOTS closed loops of DEVICE_STEPS periods in one launch, the better of two; no peer there."""
    from tangere.kernels import rollouts_cuda
    from tangere.kernels.device import device

    gpu, drive = device(), prior_drive(bare)
    arm, friction = Robot(bare.model, drive.rotor_inertia), JointFriction(drive.coulomb, drive.viscous)
    result: Result = {"device": "cuda", "name": gpu.name, "robot": arm.name}
    for suffix, method in (("", "semi-implicit"), ("_rk4", "rk4")):
        job = _loops(arm, friction, method, DEVICE_STEPS * PERIOD, "cuda").plan.job(0, DEVICE_ROBOTS)
        for word, single in (("", False), ("_float32", True)):
            for exactly in ("", "_exact"):
                ready = rollouts_cuda.Prepared(job, single=single, exact=bool(exactly))
                spans = []
                for _ in range(2):
                    begin = time.perf_counter()
                    ready.launch()
                    gpu.wait()
                    spans.append(time.perf_counter() - begin)
                rate = rounded(DEVICE_ROBOTS * DEVICE_STEPS / min(spans))
                result[f"tangere{word}{exactly}{suffix}_steps_per_s"] = rate
    return result | {"robots": DEVICE_ROBOTS, "steps": DEVICE_STEPS}


def _device_text(result: Result) -> str:
    rows = []
    for suffix, method in (("", "semi-implicit"), ("_rk4", "Runge-Kutta")):
        kinds = ("", "_exact", "_float32", "_float32_exact")
        rows.append([method, *(f"{result[f'tangere{kind}{suffix}_steps_per_s'] / 1e6:.3g}" for kind in kinds)])
    head = ["million robot-steps/s", "float64", "same bits", "float32", "same bits"]
    where = f"{result['robot']}, {result['name']}, {result['robots']} robots, {result['steps']} periods of 1 ms."
    return "\n".join([*table(rows, head, "lrrrr"), "", f"  {where}"])


def text(result: Result) -> str:
    """The same in a few lines."""
    if result["device"] != "cpu":
        return _device_text(result)
    rows = []
    for suffix, method in (("", "semi-implicit"), ("_rk4", "Runge-Kutta")):
        peer = result[f"mujoco_rollout{suffix}_steps_per_s"]
        cells = [result[f"tangere{suffix}_steps_per_s"], result[f"tangere_float32{suffix}_steps_per_s"], peer]
        shown = ["-" if cell is None else f"{cell / 1e6:.3g}" for cell in cells]
        rows.append([method, *shown, "-" if peer is None else f"{result[f'ratio{suffix}']:.3g}"])
    head = ["million robot-steps/s", "closed loop", "float32", "mujoco.rollout", "ratio"]
    where = f"{result['robot']}, one thread, {result['instruction_set']}."
    what = "Ours: sensors, computed torque, friction, contacts, observer, thresholds, the arm. MuJoCo's: the arm alone."
    return "\n".join([*table(rows, head, "lrrrr"), "", f"  {where}", f"  {what}"])


def _ours(arm: Robot, friction: JointFriction, method: Any, single: bool) -> Callable[[], Any]:
    if not kernel.COMPILED:
        raise InvalidValue("--rollouts: the compiled rollouts are not available here")
    job = _loops(arm, friction, method, STEPS * PERIOD, "cpu").plan.job(0, ROBOTS)
    return lambda: kernel.fused(job, single=single, workers=1)


def _loops(arm: Robot, friction: JointFriction, method: Any, seconds: float, device: str) -> Rollouts:
    if not is_ur(arm.model):
        raise InvalidValue(f"--rollouts: {arm.name} has no fused kernel; it measures UR arms")
    return rollouts(
        arm, controller=ComputedTorque(arm, np.radians(READY), kp=900.0, friction=friction),
        observer=MomentumObserver(arm, friction=friction), detector=Detector(Thresholds.constant(20.0, arm.dof)),
        pushes=RandomPushes(start=(0.2 * seconds, 0.6 * seconds), duration=0.2 * seconds), friction=friction,
        sensors=SensorModel.preset("ur10e", PERIOD), count=1, seconds=seconds, period=PERIOD,
        method=method, device=device,
    )  # fmt: skip


def _theirs(arm: Robot, friction: JointFriction, method: str) -> Callable[[], Any] | None:
    try:
        import mujoco
        from mujoco import rollout
    except ImportError:
        return None
    made: Any = mujoco
    model = made.MjModel.from_xml_string(to_mjcf(arm.model, rotor_inertia=arm.rotor_inertia, damping=friction.viscous))
    model.opt.timestep = PERIOD
    kinds = made.mjtIntegrator
    model.opt.integrator = kinds.mjINT_RK4 if method == "rk4" else kinds.mjINT_EULER
    model.opt.disableflags |= int(made.mjtDisableBit.mjDSBL_CONTACT)
    data = made.MjData(model)
    data.qpos[:] = np.radians(READY)
    kind = made.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(made.mj_stateSize(model, kind))
    made.mj_getState(model, data, state, kind)
    states = np.tile(state, (THEIRS, 1))
    out = np.empty((THEIRS, THEIR_STEPS, len(state)))
    sensed = np.empty((THEIRS, THEIR_STEPS, model.nsensordata))
    return lambda: rollout.rollout(model, data, states, nstep=THEIR_STEPS, state=out, sensordata=sensed)
