"""CUDA without a GPU: the text compiled for the host gives the processor's bits, NVRTC takes it, mistakes are said."""

from __future__ import annotations

import ctypes
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_inverse import singular_states
from test_rollouts import parts as closed_loop

import tangere
from tangere.kernels import batch, cuda_ik, environments_cuda, launches, rollouts, rollouts_cuda, ur
from tangere.kernels.emit import cuda
from tangere.kernels.table import all_kernels, trace
from tangere.plants.sensors import SensorModel
from tangere.types import Array

SOAK = bool(os.environ.get("TANGERE_SOAK"))
KERNELS = {k.name: k for k in all_kernels(6)}
SHORT = ("pose", "mass_matrix", "inverse_dynamics", "momentum_terms", "jacobian_link4")
NAMES = tuple(KERNELS) if SOAK else SHORT


@pytest.fixture(scope="module")
def arm() -> tangere.Robot:
    return tangere.robot("ur10e", rotor_inertia=True, payload=1.5, tool=[0.0, 0.05, 0.1])


def built(folder: Path, text: str, *more: str) -> ctypes.CDLL:
    """The text as a host's compiler makes it, one IEEE operation for each of the text's."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler on this machine")
    source, library = folder / "text.cpp", folder / "text.so"
    source.write_text(text)
    flags = ["-std=c++17", "-O1", "-ffp-contract=off", "-fno-tree-slp-vectorize", "-shared", "-fPIC", "-w", *more]
    subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def placed(shape: tuple[int, int], kind: np.dtype[Any], off: int) -> Array:
    """An array of nothing that lies `off` bytes beside a multiple of 16."""
    room = np.full(shape[0] * shape[1] * kind.itemsize + 32, 255, np.uint8)
    first = -room.ctypes.data % 16 + off
    rows: Array = room[first : first + shape[0] * shape[1] * kind.itemsize].view(kind).reshape(shape)
    return rows


def called(
    folder: Path, arm: tangere.Robot, name: str, dtype: Any, x: list[Array], P: Array | None, off: int = 0
) -> list[Array]:
    """The outputs of the host-compiled kernel, flat rows. P: of each robot; off [bytes]: of arrays beside sixteens."""
    kernel, kind, each = KERNELS[name], np.dtype(dtype), P is not None
    t = trace(kernel, 6, ur.chain, ur.PARAMETER_COUNT)
    sizes, shapes = kernel.input_sizes(6), kernel.outputs(6)
    run = built(folder, cuda.batch(t, sizes, shapes, kind == np.float32, each)).tg_batch
    own = ur.parameters_of(arm.model, rotor_inertia=arm.rotor_inertia)
    given = [P[:, i] for i in range(P.shape[1])] if P is not None else own.tolist()
    values = batch.constant_values(t, given, each)
    count = len(x[0])
    columns = np.array([np.broadcast_to(v, (count,)) for v in values]) if each else np.array(values or [0.0])
    u = np.ascontiguousarray(columns, dtype=kind)
    arrays = [placed(a.shape, kind, off) for a in x]
    list(map(np.copyto, arrays, x))
    outs = [placed((count, int(np.prod(s))), kind, off) for s in shapes]
    # the constants are a structure by value: of real numbers, as a small one travels in other registers than bytes do
    real = ctypes.c_float if kind == np.float32 else ctypes.c_double
    struct = type("u", (ctypes.Structure,), {"_fields_": [("v", real * (1 if each else len(u)))]})
    arguments: list[Any] = []
    for a in arrays:
        arguments += [ctypes.c_void_p(a.ctypes.data), ctypes.c_longlong(a.shape[1])]
    arguments += [ctypes.c_void_p(o.ctypes.data) for o in outs]
    passed = struct.from_buffer_copy(u.tobytes() if not each else bytes(kind.itemsize))
    run(*arguments, ctypes.c_longlong(count), ctypes.c_void_p(u.ctypes.data), passed)
    return [o.reshape(count, *s) for o, s in zip(outs, shapes, strict=True)]


def inputs(name: str, count: int = 300) -> list[Array]:
    rng = np.random.default_rng(5)
    return [rng.uniform(-3.0, 3.0, (count, size)) for size in KERNELS[name].input_sizes(6)]


def wanted(arm: tangere.Robot, name: str, x: list[Array]) -> list[Array]:
    y: Any = arm.jacobian(x[0], int(name[13:]), x[1]) if "_link" in name[8:13] else getattr(arm, name)(*x)
    return list(y) if isinstance(y, tuple) else [y]


@pytest.mark.parametrize("name", NAMES)
def test_the_text_on_the_host_has_the_bits_of_the_kernels(name: str, arm: tangere.Robot, tmp_path: Path) -> None:
    x = inputs(name)
    for got, want in zip(called(tmp_path, arm, name, "float64", x, None), wanted(arm, name, x), strict=True):
        assert np.array_equal(got, want)


DEVICE = """
#include <barrier>
#include <thread>
#include <vector>
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __align__(size) __attribute__((aligned(size)))
#define __shared__ static
#define __syncthreads() tg_gate->arrive_and_wait()
static thread_local struct { unsigned x; } threadIdx, blockIdx;
static std::barrier<> *tg_gate;
"""
RUN = """
extern "C" void tg_in_blocks(%s)
{
    for (unsigned block = 0; block * TG_BLOCK < n; block++) {
        std::barrier<> gate(TG_BLOCK);
        tg_gate = &gate;
        std::vector<std::thread> threads;
        for (unsigned k = 0; k < TG_BLOCK; k++)
            threads.emplace_back([=] { threadIdx.x = k, blockIdx.x = block; tg_batch(%s); });
        for (std::thread &one : threads)
            one.join();
    }
}
"""


def in_blocks(text: str) -> str:
    """The text's own form for a device, run by the host: a block is as many threads, which wait for each other."""
    for start in ("typedef struct __align__", 'extern "C" __global__'):
        assert text.count(f"#ifdef __CUDACC__\n{start}") == 1
        text = text.replace(f"#ifdef __CUDACC__\n{start}", f"#if 1\n{start}")
    (signature,) = re.findall(r"__global__ void .* tg_batch\((.*)\)", text)
    names = ", ".join(part.split()[-1].lstrip("*") for part in signature.split(","))
    return DEVICE + text + RUN % (signature, names)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in NAMES for dtype in ("float32", "float64")] if SOAK else
    [("mass_matrix", "float32"), ("momentum_terms", "float64"), ("regressor", "float64")],
)  # fmt: skip
def test_rows_are_staged_where_they_belong(
    name: str, dtype: str, arm: tangere.Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a device does to its memory, with threads in place of the device's: the numbers of the plain loop."""
    x = inputs(name, 300)  # two whole blocks and a part of one
    want = called(tmp_path, arm, name, dtype, x, None)
    plain = built

    def blocks(folder: Path, text: str, *_: Any) -> Any:
        library = plain(folder / "blocks", in_blocks(text), "-std=c++20", "-pthread")
        return SimpleNamespace(tg_batch=library.tg_in_blocks)

    (tmp_path / "blocks").mkdir()
    monkeypatch.setattr(sys.modules[__name__], "built", blocks)
    for off in (0, np.dtype(dtype).itemsize):
        for got, wanted_rows in zip(called(tmp_path, arm, name, dtype, x, None, off), want, strict=True):
            assert np.array_equal(got, wanted_rows)


@pytest.mark.parametrize("name", NAMES if SOAK else ["inverse_dynamics"])
def test_single_precision_is_near(name: str, arm: tangere.Robot, tmp_path: Path) -> None:
    """1e-5 of the largest entry, of the same float32 states."""
    x = [a.astype(np.float32).astype(np.float64) for a in inputs(name)]
    for got, want in zip(called(tmp_path, arm, name, "float32", x, None), wanted(arm, name, x), strict=True):
        assert got.dtype == np.float32
        assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


def test_parameters_of_each_robot(arm: tangere.Robot, tmp_path: Path) -> None:
    """On the host-compiled text and on the CPU's batch: each row is that of a robot with that payload."""
    (q,), masses = inputs("gravity_torque", 40), np.linspace(0.0, 8.0, 40)
    many = arm.batch().with_parameters(payload=masses, com=[0.0, 0.02, 0.1])
    arms = [arm.with_payload((m, [0.0, 0.02, 0.1]) if m else None) for m in masses]
    want = np.array([one.gravity_torque(row) for one, row in zip(arms, q, strict=True)])
    assert many.gravity_torque(q) == pytest.approx(want, abs=1e-11)
    (got,) = called(tmp_path, arm, "gravity_torque", "float64", [q], many._parameters)
    assert got == pytest.approx(want, abs=1e-11)
    assert many.gravity_torque(q[0]).shape == (40, 6)
    assert np.array_equal(pickle.loads(pickle.dumps(many)).gravity_torque(q), many.gravity_torque(q))
    centres = np.array([arm.with_payload(m).link_jacobians(q[0])[0] for m in (1.0, 2.0)])
    got_centres = arm.batch().with_parameters(payload=[1.0, 2.0]).link_jacobians(q[0])[0]
    assert got_centres == pytest.approx(centres, abs=1e-12)


@pytest.mark.skipif(not rollouts.COMPILED, reason="the compiled rollouts are not built")
@pytest.mark.parametrize("single", [False, True] if SOAK else [False], ids=["float64", "float32"][: 1 + SOAK])
def test_rollouts_on_the_host_have_the_same_bits(arm: tangere.Robot, single: bool, tmp_path: Path) -> None:
    """The text that a GPU runs, noisy closed loops with contacts: every number of every robot."""
    robot = tangere.robot("ur10e", rotor_inertia=True)
    job = tangere.rollouts(robot, count=1, **closed_loop(robot, 0.3)).plan.job(0, 5)
    want = rollouts.fused(job, single=single)
    run = built(tmp_path, rollouts_cuda.text(job, single)).tg_rollouts
    kind = np.dtype(np.float32 if single else np.float64)
    numbers = np.frombuffer(rollouts_cuda.told(job, False))[: -rollouts_cuda.PLANT_CONSTANTS]
    from tangere import _rollouts

    belief, common = numbers[: -_rollouts.COMMON].copy(), numbers[-_rollouts.COMMON :].copy()
    results, stop = np.empty((5, rollouts_cuda.RESULT + 3)), np.zeros(1, np.uint8)
    arrays = [belief, job.reference, common, job.robots, results]
    given = rollouts_cuda._Job(
        *(a.ctypes.data for a in arrays), None, stop.ctypes.data, 0, 5, job.reference.shape[1], 1, 0, 1, 1,
        job.runge_kutta, sum(1 << i for i in range(3) if np.any(job.sigma[i])), job.first, job.watch is not None,
        job.seed,
    )  # fmt: skip
    believed, room = np.empty(len(belief), kind), np.empty(8 * job.robots.shape[1])
    run(ctypes.byref(given), ctypes.c_void_p(believed.ctypes.data), ctypes.c_void_p(room.ctypes.data))
    assert np.array_equal(results[:, : rollouts_cuda.RESULT], want.numbers)
    assert np.array_equal(results[:, rollouts_cuda.RESULT :].reshape(5, 1, 3), want.forces)
    assert np.isfinite(results[:, 33]).all()


def inverse_on_the_host(folder: Path, arm: tangere.Robot, T: Array, reference: Array | None = None) -> list[Any]:
    """q, correction, distance, valid and flags of the host-compiled text, and how many poses were listed."""
    n, kind = len(T), T.dtype
    run = built(folder, cuda_ik.text(kind == np.float32)).tg_ik
    u = cuda_ik.constants(ur.parameters_of(arm.model, rotor_inertia=arm.rotor_inertia).tolist(), kind == np.float32)
    small, lists = np.zeros((2, n, 8), np.uint8), np.zeros((2, n + 1), np.int32)
    out = [np.zeros((n, 8, 6), kind), *np.zeros((2, n), kind), *small]
    at, listed = [a.ctypes.data for a in out], lists.ctypes.data
    held = None if reference is None else reference.ctypes.data
    step = 0 if reference is None or reference.ndim == 1 else 6
    poses = launches.Poses(T.ctypes.data, held, *at, listed + 8, listed, listed + 4 * (n + 2), listed + 4, n, step)
    run(ctypes.byref(poses), u)
    return [*out[:3], out[3].astype(bool), out[4], lists.ravel()[:2].tolist()]


def test_inverse_kinematics_on_the_host_has_the_same_bits(arm: tangere.Robot, tmp_path: Path) -> None:
    """Branches, flags and distances; far from singularities, at them and next to them, with and without a reference."""
    rng, kinds = np.random.default_rng(0), ("wrist", "elbow", "shoulder")
    near = [singular_states(arm, kind, off, 20, rng) for kind in kinds for off in (0.0, 1e-7, 1e-4)]
    q = np.concatenate([rng.uniform(-3.0, 3.0, (500, 6)), *near])
    T = arm.pose(q)
    T[5, :3, 3] *= 4.0  # out of reach
    T[6, :3, :3] += 1e-7  # to be projected
    for reference in (None, q[3], q[::-1].copy()):
        angles, correction, distance, valid, flags, listed = inverse_on_the_host(tmp_path, arm, T, reference)
        want = arm.inverse_kinematics(T, reference)
        assert listed[1] == 0
        assert 180 <= listed[0] < 200
        assert np.array_equal(valid, want.valid)
        assert np.array_equal(flags, want.flags)
        assert np.array_equal(angles, want.q)
        assert np.array_equal([correction, distance], [want.correction, want.distance])


@pytest.mark.parametrize("name", ["ur10e", "ur3"])
def test_inverse_kinematics_in_single_precision(name: str, tmp_path: Path) -> None:
    """The same solutions as in float64 of the same float32 poses, each angle within 1e-5 rad; singular poses too."""
    arm, rng = tangere.robot(name), np.random.default_rng(3)
    near = [singular_states(arm, kind, 1e-2, 50, rng) for kind in ("wrist", "elbow", "shoulder")]
    T = arm.pose(np.concatenate([rng.uniform(-np.pi, np.pi, (20_000, 6)), *near])).astype(np.float32)
    T[7, :3, 3] *= 4.0  # out of reach
    angles, _, distance, valid, flags, listed = inverse_on_the_host(tmp_path, arm, T)
    want = arm.inverse_kinematics(T.astype(np.float64))
    assert listed[0] < 500 < 1000 < listed[1] < 6000  # of 20 150: the short form in float32 answers most poses
    assert np.array_equal(valid, want.valid)
    assert np.array_equal(flags[valid], want.flags[valid])
    gap = (angles.astype(np.float64) - want.q + np.pi) % (2.0 * np.pi) - np.pi
    assert np.abs(gap[valid]).max() <= 1e-5
    assert distance == pytest.approx(want.distance, abs=1e-6)


@pytest.mark.skipif(not rollouts.COMPILED, reason="the compiled rollouts are not built")
def test_environments_on_the_host_have_the_same_bits(tmp_path: Path) -> None:
    """The text that a GPU runs, against the lanes of the processor: states, samples and noise of noisy arms."""
    pytest.importorskip("gymnasium", reason="gymnasium is not installed: pip install 'tangere[gym]'")
    import tangere.gym

    noise = SensorModel(noise_q=1e-5, noise_qd=1e-3, noise_tau=0.5)
    envs = tangere.gym.make_vec("Tangere/Press-v0", num_envs=5, gap=-0.0005, sensors=noise)
    envs.reset(seed=1)
    steps = envs._steps
    run = built(tmp_path, "#define TG_NOISY_BITS 7\n" + cuda.environments(False)).tg_environments
    state, out = steps.state.copy(), np.zeros_like(steps.out)
    torque = np.tile(0.98 * envs.robot.gravity_torque(envs.posture), (5, 1))
    arrays = [steps._belief, steps._common, steps._robots, torque, state, out]
    job = environments_cuda.Envs(*(a.ctypes.data for a in arrays), 0, 5, 40, steps.sample, 7, steps.seed)
    believed = np.empty(len(steps._belief))
    run(ctypes.byref(job), ctypes.c_void_p(believed.ctypes.data))
    steps.advance(torque, 40)
    assert np.array_equal(state, steps.state)
    assert np.array_equal(out, steps.out)
    assert out[:, 26].max() > 1.0  # they touch


@pytest.mark.skipif(not rollouts.COMPILED, reason="the compiled rollouts are not built")
@pytest.mark.parametrize("name", ["Tangere/Press-v0", "Tangere/Reach-v0"])
def test_lessons_on_the_host_have_the_same_bits(name: str, tmp_path: Path) -> None:
    """What a learner is given by the text that a GPU runs, against environments of the CPU: ends and beginnings too."""
    pytest.importorskip("gymnasium", reason="gymnasium is not installed: pip install 'tangere[gym]'")
    import tangere.gym
    from tangere.apps.gym import tensors, vector

    noise = SensorModel(noise_q=1e-5, noise_qd=1e-3, noise_tau=0.5)
    options: dict[str, Any] = {"sensors": noise, "seconds": 0.1, "payload": (0.0, 3.0)}
    here, there = (tangere.gym.make_vec(name, 6, **options) for _ in range(2))
    steps, count, goals = there._steps, 6, there.GOAL
    text = environments_cuda.lesson_text(7, False, tensors.judge_of(type(there)), goals, True)
    run = built(tmp_path, text).tg_lesson_steps
    limits = np.append(there.robot.qd_max, [vector.FORCE_MAX, vector.CRASH])
    taught = environments_cuda.taught(steps, limits, False)
    robots = steps._robots.shape[1]
    table = np.zeros((count, robots + 37 + goals + 1))
    seen, numbers = np.empty((count, 30 + goals)), np.empty((1 + len(there.TOLD), count))
    flags, any_over = np.zeros((3, count), np.uint8), np.zeros(1, np.int32)

    def lesson(torque: Array | None, rows: Any, periods: int) -> None:
        if len(rows):
            q, goal = there.anew(rows)
            table[rows] = 0.0
            table[rows, :robots], table[rows, robots : robots + 6] = steps._robots[rows], q
            table[rows, -1 - goals : -1], table[rows, -1] = goal, -1.0
            there._episodes[rows] += 1
        steps.sample += periods
        given = None if torque is None else torque.ctypes.data
        places = [a.ctypes.data for a in (seen, numbers[0], numbers[1], *flags, any_over)]
        job = environments_cuda.Lesson(
            table.ctypes.data, given, *places, count, periods, steps.sample, there.horizon, steps.seed
        )
        run(ctypes.byref(job), taught)

    observation, info = here.reset(seed=4)
    steps.seed = 4
    lesson(None, np.arange(count), 0)
    assert np.array_equal(seen, observation)
    hold = np.tile(here.robot.gravity_torque(here.posture), (count, 1))
    hold[1] = here.robot.tau_max  # too fast soon
    ended = np.zeros((2, count), int)
    for _ in range(60):
        observation, reward, terminated, truncated, info = here.step(hold)
        lesson(hold, np.flatnonzero(flags[2]), here.periods)
        assert np.array_equal(seen, observation)
        assert np.array_equal(numbers[0], reward)
        assert np.array_equal(numbers[1:], [info[word] for word in here.TOLD])
        assert np.array_equal(flags[:2], [terminated, truncated])
        ended += [terminated, truncated]
    assert ended[0, 1] >= 1
    assert ended[1, 0] == 2
    assert any_over[0] == 1


# ------------------------------------------------------------------------------------------------------------- NVRTC


# ------------------------------------------------------------------------------------------------- batches on the CPU
