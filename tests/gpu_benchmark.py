"""What a GPU gives: bits against the CPU, rates of the kernels and of rollouts. Run by hand, where there is one:

    PYTHONPATH=src python tests/gpu_benchmark.py [out.json]

Needs torch. Kernels are timed by events over 1e7 rows, rollouts by the clock, after one run that compiles.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import torch

import tangere
from tangere.control.computed_torque import ComputedTorque
from tangere.dynamics.friction import JointFriction
from tangere.kernels import rollouts as host
from tangere.kernels import rollouts_cuda
from tangere.kernels.device import device
from tangere.kernels.ur import READY
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.momentum import MomentumObserver
from tangere.plants.random_pushes import RandomPushes
from tangere.plants.sensors import SensorModel

ROWS = 10_000_000
NAMES = ("pose", "mass_matrix", "inverse_dynamics", "forward_dynamics", "momentum_terms", "jacobian")
ARGUMENTS = {"inverse_dynamics": 3, "forward_dynamics": 3, "momentum_terms": 2}


def timed(call: Any, rounds: int = 12) -> float:
    """Seconds of the median call."""
    call()
    spans = []
    for _ in range(rounds):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        call()
        b.record()
        b.synchronize()
        spans.append(1e-3 * a.elapsed_time(b))
    return float(np.median(spans))


def timed_calls(call: Any, arguments: list[Any]) -> float:
    """Seconds of a call into an array that is there."""
    place = call(*arguments)
    return timed(lambda: call(*arguments, out=place))


def kernels(arm: tangere.Robot, out: dict[str, Any]) -> None:
    """Errors and bits against the CPU, and rates."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3.0, 3.0, (3, 8192, 6))
    x.flat[: x.size] = x.astype(np.float32).astype(np.float64).ravel()
    for dtype in ("float64", "float32"):
        batch, kind = arm.batch(device="cuda", dtype=dtype), getattr(torch, dtype)
        states = torch.tensor(x, dtype=kind, device="cuda")
        many = 6.0 * torch.rand((3, ROWS, 6), dtype=kind, device="cuda") - 3.0
        for name in NAMES:
            count = ARGUMENTS.get(name, 1)
            begin = time.perf_counter()
            got = getattr(batch, name)(*states[:count])
            first = time.perf_counter() - begin
            wanted = getattr(arm, name)(*x[:count])
            pairs = list(zip(got, wanted, strict=True)) if isinstance(got, tuple) else [(got, wanted)]
            errors = [np.abs(g.cpu().numpy() - w).max() / np.abs(w).max() for g, w in pairs]
            same = [np.array_equal(g.cpu().numpy(), w) for g, w in pairs]
            seconds = timed_calls(getattr(batch, name), [a.contiguous() for a in many[:count]])
            out[f"{name} {dtype}"] = {
                "G/s": round(ROWS / seconds / 1e9, 2), "error": float(max(errors)), "same bits": all(same),
                "first s": round(first, 2),
            }  # fmt: skip
            print(name, dtype, out[f"{name} {dtype}"], flush=True)
        few = arm.batch(device="cuda", dtype=dtype)
        q = states[0][:1000].contiguous()
        place = few.gravity_torque(q)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(200):
            few.gravity_torque(q, out=place)
        torch.cuda.synchronize()
        out[f"launch us {dtype}"] = 1e6 * (time.perf_counter() - begin) / 200


def loop(arm: tangere.Robot, method: Any, seconds: float = 5.0) -> Any:
    """A noisy closed loop with a contact on every robot."""
    friction = JointFriction.of(arm.drives)
    return tangere.rollouts(
        arm, controller=ComputedTorque(arm, np.radians(READY), kp=900.0, friction=friction),
        observer=MomentumObserver(arm, friction=friction), detector=Detector(Thresholds.constant(20.0, arm.dof)),
        pushes=RandomPushes(start=(0.2 * seconds, 0.6 * seconds)), friction=friction,
        sensors=SensorModel.preset("ur10e", 1e-3), count=1, seconds=seconds, method=method, seed=3, device="cuda",
    ).plan  # fmt: skip


def rollouts(arm: tangere.Robot, out: dict[str, Any], count: int) -> None:
    """Rates, bits and counts."""
    for method in ("rk4", "semi-implicit"):
        plan = loop(arm, method)
        begin = time.perf_counter()
        job = plan.job(0, count)
        out["prepare s"] = round(time.perf_counter() - begin, 2)
        for single in (True, False):
            for exact in (False, True):
                name = f"{method} {'float32' if single else 'float64'}{' exact' if exact else ''}"
                ready = rollouts_cuda.Prepared(job, single=single, exact=exact)
                ready.launch()
                device().wait()
                begin = time.perf_counter()
                ready.launch()
                device().wait()
                spent = time.perf_counter() - begin
                answer = ready.answer()
                row = {"robot-steps/s": count * plan.steps / spent, "s": round(spent, 3)}
                row["events"], row["found"] = int(answer.numbers[:, 31].sum()), int((answer.numbers[:, 33] >= 0).sum())
                if host.COMPILED and exact:
                    host.threads(16)
                    few = host.fused(plan.job(0, 20000), single=single)
                    row["cpu bits equal, 20000 robots"] = bool(np.array_equal(few.numbers, answer.numbers[:20000]))
                out[name] = row
                print(name, row, flush=True)


def main() -> None:
    arm = tangere.robot("ur10e", rotor_inertia=True)
    out: dict[str, Any] = {"device": device().name, "compiled": host.COMPILED}
    kernels(arm, out)
    rollouts(arm, out, 1_000_000)
    text = json.dumps(out, indent=1)
    print(text)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
