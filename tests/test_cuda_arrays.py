"""CUDA's batches without a GPU: arrays of others, memory, NVRTC and driver, mistakes."""

from __future__ import annotations

import ctypes
import re
import sys
import tomllib
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cuda import KERNELS, SOAK, built
from test_rollouts import parts as closed_loop

import tangere
from tangere.apps.bench import bench
from tangere.errors import InvalidValue, MissingExtra, UnknownName
from tangere.kernels import batch, device, dlpack, launches, rollouts_cuda, ur
from tangere.kernels.device import DeviceError
from tangere.kernels.emit import cuda
from tangere.kernels.table import trace
from tangere.types import Array

DRIVER = "libcuda.so.1"


@pytest.fixture(scope="module")
def arm() -> tangere.Robot:
    return tangere.robot("ur10e", rotor_inertia=True, payload=1.5, tool=[0.0, 0.05, 0.1])


class _Tensor:
    """A numpy array that answers as a tensor of torch on a GPU does."""

    dtype = "float64 of torch"

    def __init__(self, array: Array) -> None:
        self.array, self.shape = array, array.shape
        self.numel, self.data_ptr = (lambda: array.size), (lambda: array.ctypes.data)
        self.is_contiguous, self.get_device = (lambda: array.flags.c_contiguous), (lambda: 0)

    def new_empty(self, shape: tuple[int, ...]) -> _Tensor:
        return _Tensor(np.full(shape, np.nan))


def test_quick_calls_hand_over_what_the_kernel_reads(
    arm: tangere.Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arguments as a driver would read them, given to the text compiled for the host; what is unusual is left."""
    kernel = KERNELS["bias_torque"]
    t = trace(kernel, 6, ur.chain, ur.PARAMETER_COUNT)
    run = built(tmp_path, cuda.batch(t, [6, 6], [(6,)], False, False)).tg_batch
    own = ur.parameters_of(arm.model, rotor_inertia=arm.rotor_inertia)
    values = np.array(batch.constant_values(t, own.tolist(), False))
    struct = type("u", (ctypes.Structure,), {"_fields_": [("v", ctypes.c_char * values.nbytes)]})
    started: list[tuple[int, int]] = []

    class Driver:
        def enter(self) -> None:
            pass

        def start(self, function: Any, count: int, block: int, places: Any, stream: int) -> None:
            started.append((count, stream))
            numbers = [ctypes.c_int64.from_address(place) for place in places[:7]]
            function(*numbers, struct.from_address(places[7]))

    monkeypatch.setattr(launches, "device", Driver)
    constants = (ctypes.c_char * values.nbytes).from_buffer_copy(values.tobytes())
    ready = launches.Ready(run, [6, 6], [(6,)], None, constants)
    raw = Namespace(_cuda_getCurrentRawStream=lambda number: 17)
    ready.meet(Namespace(Tensor=_Tensor, _C=raw, empty_like=lambda a: a.new_empty(a.shape)), _Tensor.dtype)
    q, qd = np.random.default_rng(2).uniform(-3.0, 3.0, (2, 5, 7, 6))
    want = arm.bias_torque(q, qd)
    assert np.array_equal(ready.quickly((_Tensor(q), _Tensor(qd)), None).array, want)
    place = _Tensor(np.zeros((5, 7, 6)))
    assert ready.quickly((_Tensor(q), _Tensor(qd)), place) is place
    assert np.array_equal(place.array, want)
    assert started == [(35, 17)] * 2
    other = _Tensor(q)
    other.dtype = "float32 of torch"
    elsewhere = _Tensor(q)
    elsewhere.get_device = lambda: 1
    for args, out in (
        ((_Tensor(q),), None), ((_Tensor(q), _Tensor(qd[0])), None), ((_Tensor(q), q), None), ((q, q), None),
        ((_Tensor(q), other), None), ((elsewhere, _Tensor(q)), None), ((_Tensor(q), _Tensor(qd)), _Tensor(q[0])),
        ((_Tensor(q.T), _Tensor(q.T)), None), ((_Tensor(q[:0]), _Tensor(q[:0])), None),
        ((_Tensor(q[:, ::2]), _Tensor(q[:, ::2])), None), ((_Tensor(q), _Tensor(qd)), (place, place)),
    ):  # fmt: skip
        assert ready.quickly(args, out) is None
    assert len(started) == 2


def test_too_little_memory_says_how_many_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With memory of ours, and where torch says no."""
    gpu = object.__new__(device.Device)
    gpu._driver, gpu._enter, gpu._context = Namespace(cuMemAlloc_v2=lambda *_: 2), lambda _: 0, None  # type: ignore[assignment]
    monkeypatch.setattr(device.Device, "free", lambda _: 2 * 10**9)
    monkeypatch.setattr(dlpack, "device", lambda: gpu)

    def refused(*_: Any, **more: Any) -> Any:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setitem(sys.modules, "torch", Namespace(empty=refused, float64=None))
    theirs = type("Tensor", (), {"__module__": "torch", "device": "cuda:0"})()
    for given in (theirs, np.zeros(1)):
        with pytest.raises(DeviceError, match=r"2 GB free, 4\.8 GB are needed: at most 41666666 of 100000000 rows"):
            dlpack.like(given, (10**8, 6), np.dtype(np.float64))


def test_what_a_gpu_compiles_is_installed() -> None:
    """The headers that texts are made of are data of the package."""
    kernels = Path(cuda.__file__).parent.parent
    source = (kernels / "emit" / "cuda.py").read_text() + (kernels / "cuda_ik.py").read_text()
    project = tomllib.loads((kernels.parents[2] / "pyproject.toml").read_text())
    installed = project["tool"]["setuptools"]["package-data"]["tangere.kernels"]
    assert {f"c/{name}" for name in re.findall(r'text_of\("([^"]+)"\)', source)} == set(installed)


def test_nvrtc_compiles_and_keeps(arm: tangere.Robot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        device.nvrtc()
    except MissingExtra:
        pytest.skip("NVRTC is not installed: pip install 'tangere[cuda]'")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel = KERNELS["mass_matrix"]
    t = trace(kernel, 6, ur.chain, ur.PARAMETER_COUNT)
    for single, each, target in ((False, False, "sm_90"), (True, True, "compute_75")):
        text = cuda.batch(t, [6], [(6, 6)], single, each)
        options = device.QUICK if single else device.EXACT
        code = device.compiled(text, target, options)
        assert b"tg_batch" in code
        (kept,) = [p for p in (tmp_path / "tangere" / "cuda").iterdir() if p.read_bytes() == code]
        kept.write_bytes(b"from the cache")
        assert device.compiled(text, target, options) == b"from the cache"
        kept.unlink()
    robot = tangere.robot("ur10e", rotor_inertia=True)
    job = tangere.rollouts(robot, count=1, method="semi-implicit", **closed_loop(robot, 0.01)).plan.job(0, 1)
    for single in (True, False) if SOAK else (True,):
        assert b"tg_rollouts" in device.compiled(rollouts_cuda.text(job, single), "sm_90")
    with pytest.raises(DeviceError, match=r"NVRTC refuses the kernel for sm_90: .*error"):
        device.compiled("no C at all", "sm_90")


def test_without_nvrtc_or_driver_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ctypes.CDLL

    def none(name: Any, *args: Any, **more: Any) -> Any:
        if "nvrtc" in str(name) or str(name) == DRIVER:
            raise OSError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(ctypes, "CDLL", none)
    device.nvrtc.cache_clear()
    device.device.cache_clear()
    arm = tangere.robot("ur5e")
    with pytest.raises(MissingExtra, match=r"pip install 'tangere\[cuda\]'"):
        device.nvrtc()
    with pytest.raises(DeviceError, match=r"no CUDA driver .* device 'cpu' works everywhere"):
        arm.batch(device="cuda")
    robot = tangere.robot("ur10e", rotor_inertia=True)
    with pytest.raises(DeviceError, match="no CUDA driver"):
        tangere.rollouts(robot, count=2, device="cuda", **closed_loop(robot, 0.01))
    with pytest.raises(DeviceError, match="no CUDA driver"):
        bench.main(Namespace(rollouts=True, device="cuda", json="-"))
    with pytest.raises(InvalidValue, match="goes with --rollouts"):
        bench.main(Namespace(device="cuda"))
    device.nvrtc.cache_clear()
    device.device.cache_clear()


def test_a_batch_on_the_cpu_takes_and_gives_anybodys_arrays(arm: tangere.Robot) -> None:
    q, qd, qdd = np.random.default_rng(1).uniform(-3, 3, (3, 7, 6))
    many = arm.batch()
    assert np.array_equal(many.inverse_dynamics(q, qd, qdd), arm.inverse_dynamics(q, qd, qdd))
    place = np.empty((7, 6))
    assert many.inverse_dynamics(q, qd, qdd, out=place) is place
    assert np.array_equal(place, arm.inverse_dynamics(q, qd, qdd))
    assert np.array_equal(many.jacobian(q, 3, q[:, :3]), arm.jacobian(q, 3, q[:, :3]))
    single = arm.batch(dtype="float32").momentum_terms(q, qd)
    assert [s.dtype for s in single] == [np.float32] * 3
    assert single[0] == pytest.approx(arm.momentum_terms(q, qd)[0], rel=1e-6)
    assert arm.batch(dtype=">f4").pose(q).dtype == np.dtype(np.float32)  # in the machine's own order
    odd = np.random.default_rng(2).uniform(-3, 3, (14, 12))[::-2, ::-2]
    assert np.array_equal(many.pose(odd), arm.pose(odd.copy()))
    T = arm.pose(q)
    found, want = many.inverse_kinematics(T, q[0]), arm.inverse_kinematics(T, q[0])
    assert all(np.array_equal(getattr(found, name), getattr(want, name)) for name in found._fields)
    assert many.inverse_kinematics(T[2]).q.shape == (8, 6)
    jax = pytest.importorskip("jax", reason="JAX is not installed: pip install 'tangere[jax]'")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        got = many.pose(jax.numpy.asarray(q))
        assert isinstance(got, jax.Array)
        assert np.array_equal(got, arm.pose(q))
        jax.config.update("jax_enable_x64", False)
        with pytest.raises(InvalidValue, match="JAX holds float32 only, this batch gives float64"):
            many.pose(jax.numpy.asarray(q))
        assert arm.batch(dtype="float32").pose(jax.numpy.asarray(q)).dtype == np.float32
    finally:
        jax.config.update("jax_enable_x64", before)


class OnAGpu:
    """An array that says so."""

    shape = (1, 6)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


class Nowhere(OnAGpu):
    """An array without memory, as torch's device 'meta' has them."""

    def __dlpack_device__(self) -> tuple[int, int]:
        raise ValueError("Unknown device type meta for Dlpack")


def test_mistakes_have_sentences(arm: tangere.Robot) -> None:
    many, q = arm.batch(), np.zeros((3, 6))
    robot = tangere.robot("ur10e", rotor_inertia=True)
    for wrong, words in (
        (lambda: arm.batch(device="gpu"), "unknown device 'gpu'; known: cpu, cuda"),
        (lambda: arm.batch(dtype="int8"), "dtype: float64 or float32, got 'int8'"),
        (lambda: many.pose(np.zeros((3, 5))), r"q: expected shape \(..., 6\), got \(3, 5\)"),
        (lambda: many.bias_torque(q, np.zeros((2, 6))), "leading axes do not fit"),
        (lambda: many.pose(np.full((3, 6), np.nan)), "must be finite"),
        (lambda: many.pose(q, out=np.empty((3, 4))), r"out: float64 of shape \(3, 4, 4\)"),
        (lambda: many.momentum_terms(q, q, out=q), "gives 3 arrays, got 1"),
        (lambda: many.jacobian(q, 9, q[:, :3]), "link: got 9"),
        (lambda: many.pose(OnAGpu()), "is in the memory of a GPU, but this batch computes on device 'cpu'"),
        (lambda: many.pose(Nowhere()), "q: cannot be read as an array of numbers: Unknown device type meta"),
        (lambda: many.pose(q, out=(np.empty((3, 4, 4)).tolist(),)), r"out: float64 of shape \(3, 4, 4\)"),
        (lambda: many.pose([[1.0, 2.0], [3.0]]), "q: cannot be read as an array of numbers"),
        (lambda: many.pose(q, stream=3), "stream: there is none on device 'cpu', got 3"),
        (lambda: many.ik(np.eye(4), stream=3), "stream: there is none"),
        (lambda: many.with_parameters(payload=[1.0, np.nan]), r"payload: every entry .* got nan at index .1"),
        (lambda: many.with_parameters(payload=[1.0, -2.0]), "payload: 0 kg or more, got -2 for robot 1"),
        (lambda: many.with_parameters([1.0, 2.0], [0.0, np.nan, 0.0]), "com: every entry must be finite, got nan"),
        (lambda: many.with_parameters("heavy"), "payload: expected real numbers"),
        (lambda: many.with_parameters(payload=[1.0, 2.0]).pose(q), "2 robots have parameters"),
        (lambda: many.with_parameters([1.0]).bias_torque(q[0], [np.nan] * 6), r"qd: every entry .* nan at index .0"),
        (lambda: many.with_parameters([1.0]).gravity_torque([1e60] * 6), r"q: 1e\+60 rad is no joint position"),
        (lambda: tangere.robot("scara").batch().with_parameters(payload=[1.0]), "is no UR"),
        (lambda: tangere.rollouts(robot, device="gpu", **closed_loop(robot, 0.01)), "unknown device 'gpu'"),
    ):
        with pytest.raises((InvalidValue, UnknownName), match=words):
            wrong()
    with pytest.raises(AttributeError, match="no quantity 'mass'"):
        many.mass  # noqa: B018
