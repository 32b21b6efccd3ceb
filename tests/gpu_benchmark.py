"""What a GPU gives: bits against the CPU, rates of the kernels and of rollouts. Run by hand, where there is one:

    PYTHONPATH=src python tests/gpu_benchmark.py [out.json]

Needs torch, cupy and jax. Kernels are timed by events over 1e7 rows, rollouts by the clock, after one that compiles.
At the end stands every figure beside what is wanted of it (MARKS): reached, SHORT or not seen.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from functools import partial
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

KINDS = ("float32", "float64")
RATES = {  # 1e9 rows/s
    "pose": (40, 22), "mass_matrix": (20, 11), "inverse_dynamics": (32, 17), "forward_dynamics": (25, 13),
    "momentum_terms": (28, 16),
}  # fmt: skip
STEP = "ms a step of 20 periods, 4096 environments"
# figure, of which row (""), what it is wanted to be at least (or, negative, at most; True: so)
MARKS: list[tuple[str, str, float | bool]] = [
    *((f"{name} {kind}", "G/s", rates[k]) for name, rates in RATES.items() for k, kind in enumerate(KINDS)),
    *((f"{name} {kind}", "error", -most) for name in RATES for kind, most in zip(KINDS, (1e-5, 1e-10), strict=True)),
    *((f"{name} float64", "same bits", True) for name in RATES),
    *((f"{name} {kind}", "first s", -3.0) for name in RATES for kind in KINDS),
    ("inverse kinematics float32", "G poses/s", 8), ("inverse kinematics float64", "G poses/s", 3.5),
    ("inverse kinematics float32", "largest error [rad]", -1e-5), ("inverse kinematics float64", "same bits", True),
    ("rk4 float32", "robot-steps/s", 2.8e9), ("rk4 float64", "robot-steps/s", 1.0e9),
    ("rk4 float64 exact", "robot-steps/s", 0.7e9), ("rk4 float32", "s", -2.0), ("rk4 float64", "s", -4.0),
    ("semi-implicit float32", "robot-steps/s", 6e9), ("semi-implicit float64", "robot-steps/s", 2.6e9),
    *((f"{method} {kind} exact", "cpu bits equal, 20000 robots", True)
      for method in ("rk4", "semi-implicit") for kind in KINDS),
    *((f"call us {kind}{word}", "", -10.0) for kind in KINDS for word in ("", ", an array made")),
    *((f"{STEP}, {kind}, episodes of {seconds} s", "", -0.15) for kind in KINDS for seconds in (60.0, 2.0)),
    (f"{STEP}, numpy", "", -0.15), ("environments, CPU's bits", "", True),
    *((f"Tangere/{task}-v0 in tensors, CPU's bits", "", True) for task in ("Press", "Reach")),
    *((f"jax, G/s at 1e6 {kind}", "", 15) for kind in KINDS), ("jax, first call s float32", "", -2.0),
    *((f"jax, {way}", "", True) for way in ("CPU's bits", "without jit", "vmap")),
    *((f"arrays of {name}", "", True) for name in ("torch", "cupy", "jax")), ("a stream and out=", "", True),
]  # fmt: skip


def judged(out: dict[str, Any]) -> list[str]:
    """Every mark: the figure, what is wanted, and whether that is reached."""
    lines = []
    for name, part, mark in MARKS:
        seen = out.get(name)
        seen = seen.get(part) if part and isinstance(seen, dict) else seen
        if seen is None:
            word = "not seen"
        else:
            reached = seen is True if mark is True else seen >= mark if mark > 0 else seen <= -mark
            word = "reached" if reached else "SHORT"
        wanted = "so" if mark is True else f"{'at least' if mark > 0 else 'at most'} {abs(mark):g}"
        figure = "-" if seen is None else str(seen) if isinstance(seen, bool) else f"{seen:.4g}"
        lines.append(f"{word:9} {name}{f', {part}' if part else ''}: {figure} ({wanted})")
    return sorted(lines, key=lambda line: not line.startswith("SHORT"))


def timed(call: Any, rounds: int = 12) -> float:
    """Seconds of the median call."""
    call()
    spans = []
    for _ in range(rounds):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        for _ in range(8):  # so that starting a kernel is hidden behind the one before
            call()
        b.record()
        b.synchronize()
        spans.append(1e-3 * a.elapsed_time(b) / 8)
    return float(np.median(spans))


def timed_calls(call: Any, arguments: list[Any]) -> float:
    """Seconds of a call into an array that is there."""
    place = call(*arguments)
    return timed(lambda: call(*arguments, out=place))


def calls(arm: tangere.Robot, out: dict[str, Any]) -> None:
    """A small call by the clock, into an array that is there and into a new one."""
    for dtype in KINDS:
        few = arm.batch(device="cuda", dtype=dtype)
        q = torch.rand((1000, 6), dtype=getattr(torch, dtype), device="cuda")
        place = few.gravity_torque(q)
        for word, given in (("", {"out": place}), (", an array made", {})):
            for _ in range(100):
                few.gravity_torque(q, **given)
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(2000):
                few.gravity_torque(q, **given)
            torch.cuda.synchronize()
            out[f"call us {dtype}{word}"] = 1e6 * (time.perf_counter() - begin) / 2000


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


def inverse(arm: tangere.Robot, out: dict[str, Any]) -> None:
    """Every branch against the CPU's, and rates."""
    q = np.random.default_rng(4).uniform(-3.0, 3.0, (100_000, 6))
    q[:300, 4] = 0.0  # singular wrists
    T = arm.pose(q)
    for dtype, count in (("float64", 4_000_000), ("float32", 10_000_000)):
        batch, kind = arm.batch(device="cuda", dtype=dtype), getattr(torch, dtype)
        given = T.astype(dtype)
        want = arm.inverse_kinematics(given.astype(np.float64))
        got = batch.inverse_kinematics(torch.tensor(given, device="cuda"))
        valid = got.valid.cpu().numpy()
        both = valid & want.valid
        gap = (got.q.cpu().numpy() - want.q + np.pi) % (2.0 * np.pi) - np.pi
        poses = batch.pose(6.0 * torch.rand((count, 6), dtype=kind, device="cuda") - 3.0)
        seconds = timed(partial(batch.inverse_kinematics, poses), 3)
        out[f"inverse kinematics {dtype}"] = {
            "G poses/s": round(count / seconds / 1e9, 2), "branches equal": float(np.mean(valid == want.valid)),
            "largest error [rad]": float(np.abs(gap[both]).max()),
            "999 of 1000": float(np.quantile(np.abs(gap[both]), 0.999)),
            "same bits": bool(np.array_equal(got.q.cpu().numpy(), want.q)),
        }  # fmt: skip
        print(out[f"inverse kinematics {dtype}"], flush=True)
        del poses


def loop(arm: tangere.Robot, method: Any, seconds: float = 5.0) -> Any:
    """A noisy closed loop with a contact on every robot."""
    friction = JointFriction.of(arm.drives)
    return tangere.rollouts(
        arm, controller=ComputedTorque(arm, np.radians(READY), kp=900.0, friction=friction),
        observer=MomentumObserver(arm, friction=friction), detector=Detector(Thresholds.constant(20.0, arm.dof)),
        pushes=RandomPushes(start=(0.2 * seconds, 0.6 * seconds)), friction=friction,
        sensors=SensorModel.preset("ur10e", 1e-3), count=1, seconds=seconds, method=method, seed=3, device="cuda",
    ).plan  # fmt: skip


def rollouts(arm: tangere.Robot, out: dict[str, Any], count: int = 1_000_000) -> None:
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


def environments(arm: tangere.Robot, out: dict[str, Any]) -> None:
    """Bits against the CPU, and steps of 20 periods: the whole step by the clock, the kernel alone by events."""
    import tangere.gym

    noise = SensorModel(noise_qd=1e-3, noise_tau=0.5)
    make, press = tangere.gym.make_vec, "Tangere/Press-v0"
    here, there = (make(press, 300, kind, gap=-0.0005, sensors=noise) for kind in ("cpu", "cuda"))
    first = [envs.reset(seed=0)[0] for envs in (here, there)]
    for _ in range(60):
        hold = np.tile(here.robot.gravity_torque(here.posture), (300, 1)) * 0.99
        last = [envs.step(hold)[0] for envs in (here, there)]
    out["environments, CPU's bits"] = bool(np.array_equal(*first) and np.array_equal(*last))
    for name, payload in zip(tangere.gym.ENVIRONMENTS, ((0.0, 3.0), 1.0), strict=True):  # arms drawn and given
        same = True
        options: dict[str, Any] = {"sensors": noise, "seconds": 0.2, "payload": payload}
        here, there = make(name, 300, **options), make(name, 300, "cuda", arrays="torch", **options)
        same &= np.array_equal(here.reset(seed=3)[0], there.reset(seed=3)[0].cpu().numpy())
        rng, hold = np.random.default_rng(0), here.robot.gravity_torque(here.posture)
        for _ in range(150):
            torque = hold + rng.normal(0.0, 30.0, (300, 6))
            ours, theirs = here.step(torque), there.step(torch.tensor(torque, device="cuda"))
            same &= all(np.array_equal(a, b.cpu().numpy()) for a, b in zip(ours[:4], theirs[:4], strict=True))
        out[f"{name} in tensors, CPU's bits"] = bool(same)
    for count in (4096, 65536):
        for dtype in ("float32", "float64"):
            for seconds in (60.0, 2.0):  # without an end in between, and with 2 s as every episode's length
                word = {"arrays": "torch", "dtype": dtype, "periods": 20, "seconds": seconds}
                envs = make(press, count, "cuda", **word)
                envs.reset(seed=0)
                one = torch.tensor(envs.robot.gravity_torque(envs.posture), dtype=getattr(torch, dtype), device="cuda")
                hold = one.repeat(count, 1)
                for _ in range(30):
                    envs.step(hold)
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for _ in range(300):
                    envs.step(hold)
                torch.cuda.synchronize()
                spent = 1e3 * (time.perf_counter() - begin) / 300
                out[f"ms a step of 20 periods, {count} environments, {dtype}, episodes of {seconds} s"] = spent
        envs = make(press, count, "cuda", periods=20, seconds=60.0)
        envs.reset(seed=0)
        hold = np.tile(envs.robot.gravity_torque(envs.posture), (count, 1))
        envs.step(hold)
        begin = time.perf_counter()
        for _ in range(20):
            envs.step(hold)
        out[f"ms a step of 20 periods, {count} environments, numpy"] = 50.0 * (time.perf_counter() - begin)


def shared(arm: tangere.Robot, out: dict[str, Any]) -> None:
    """Arrays of torch, cupy and jax: answers, and that none was copied."""
    import cupy
    import jax

    jax.config.update("jax_enable_x64", True)
    x = np.random.default_rng(2).uniform(-3, 3, (3, 1000, 6))
    batch, want = arm.batch(device="cuda"), arm.inverse_dynamics(*x)
    makers = {"torch": lambda a: torch.tensor(a, device="cuda"), "cupy": cupy.asarray, "jax": jax.numpy.asarray}
    for name, to in makers.items():
        given = [to(a) for a in x]
        got = batch.inverse_dynamics(*given)
        back = got.cpu().numpy() if name == "torch" else cupy.asnumpy(got) if name == "cupy" else np.asarray(got)
        out[f"arrays of {name}"] = type(got) is type(given[0]) and bool(np.array_equal(back, want))
    masses = np.linspace(0.1, 5.0, 1000)
    many = batch.with_parameters(payload=masses)
    got = many.gravity_torque(torch.tensor(x[0], device="cuda")).cpu().numpy()
    wanted = np.array([arm.with_payload(m).gravity_torque(q) for m, q in zip(masses, x[0], strict=True)])
    out["payloads, largest error [Nm]"] = float(np.abs(got - wanted).max())
    stream = torch.cuda.Stream()
    tau = torch.empty((1000, 6), dtype=torch.float64, device="cuda")
    batch.inverse_dynamics(*(torch.tensor(a, device="cuda") for a in x), out=tau, stream=stream)
    torch.cuda.synchronize()
    out["a stream and out="] = bool(np.array_equal(tau.cpu().numpy(), want))
    said = []
    for wrong in (
        lambda: batch.pose(x[0]), lambda: batch.pose(torch.zeros((4, 6), device="cuda")),
        lambda: batch.pose(torch.zeros((6, 8), dtype=torch.float64, device="cuda").T[:, :6]),
        lambda: rollouts_cuda.Prepared(loop(arm, "rk4", 1.0).job(0, 100_000), every=1),
    ):  # fmt: skip
        try:
            wrong()
            said.append("nothing was said")
        except tangere.TangereError as error:
            said.append(str(error))
    out["mistakes"] = said


def in_jax(arm: tangere.Robot, out: dict[str, Any]) -> None:
    """The CUDA kernel under jit, vmap and grad: answers, and the rate of a million rows."""
    import jax

    import tangere.jax

    jax.config.update("jax_enable_x64", True)
    own = tangere.jax.robot(arm)
    x = np.random.default_rng(2).uniform(-3, 3, (3, 1000, 6))
    want, call = arm.inverse_dynamics(*x), jax.jit(own.inverse_dynamics)
    out["jax, CPU's bits"] = bool(np.array_equal(np.asarray(call(*x)), want))
    out["jax, without jit"] = bool(np.array_equal(np.asarray(own.inverse_dynamics(*x)), want))
    out["jax, vmap"] = bool(np.array_equal(np.asarray(jax.vmap(own.inverse_dynamics)(*x)), want))
    slope = jax.vmap(jax.jacfwd(own.inverse_dynamics))(*x)
    back = jax.vmap(jax.jacrev(own.inverse_dynamics))(*x)
    truth = arm.inverse_dynamics_derivatives(*x)[0]
    out["jax, derivatives, largest error"] = [float(np.abs(np.asarray(d) - truth).max()) for d in (slope, back)]
    for dtype in (np.float32, np.float64):
        many = [jax.numpy.asarray(a, dtype) for a in np.random.default_rng(3).uniform(-3, 3, (3, 1_000_000, 6))]
        begin = time.perf_counter()
        jax.jit(own.inverse_dynamics)(*many).block_until_ready()
        out[f"jax, first call s {dtype.__name__}"] = round(time.perf_counter() - begin, 2)
        call(*many).block_until_ready()  # whose first call of a shape is told above
        begin = time.perf_counter()
        for _ in range(50):
            last = call(*many)
        last.block_until_ready()
        out[f"jax, G/s at 1e6 {dtype.__name__}"] = round(50e6 / (time.perf_counter() - begin) / 1e9, 2)


def main() -> None:
    arm = tangere.robot("ur10e", rotor_inertia=True)
    out: dict[str, Any] = {"device": device().name, "compiled": host.COMPILED}
    for part in (shared, calls, in_jax, environments, inverse, kernels, rollouts):  # first what the host's clock times
        try:
            part(arm, out)
        except Exception as error:  # the others go on
            out.setdefault("failed", []).append(repr(error))
            traceback.print_exc()
    text = json.dumps(out, indent=1)
    print(text, *judged(out), sep="\n")
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
