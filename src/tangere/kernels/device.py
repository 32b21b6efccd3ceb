"""A CUDA device without a toolkit: NVRTC and the driver by ctypes, arrays by DLPack.

NVRTC comes with its own wheel (extra `cuda`), or with torch, jax or cupy, which bring one: whichever is found first.
What was compiled is kept in the user's cache and loaded from there the next time.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import hashlib
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tangere.errors import MissingExtra, TangereError

DEVICES = ("cpu", "cuda")
# products and sums are not fused: a device then gives the processor's bits, at no cost where memory is the limit
EXACT = ("-fmad=false",)
# in float32, where nobody's bits are promised: they are fused, and quotients and roots may miss the last digit
QUICK = ("--prec-div=false", "--prec-sqrt=false", "-DTG_QUICK")
OWN_STREAM = 2  # the driver's number for the stream that belongs to the thread that asks
_NOT_HERE = (201, 400)  # CUresult of a start in a thread that has no context, or another one
_P, _INT = ctypes.c_void_p, ctypes.c_int


class DeviceError(TangereError, RuntimeError):
    """A CUDA device that is missing, too small, or that reports an error."""


# ---------------------------------------------------------------------------------------------------------------- NVRTC


@cache
def nvrtc() -> ctypes.CDLL:
    """The compiler's library; a sentence where there is none."""
    found: list[str] = []
    for folder in sys.path:
        found += sorted(glob.glob(f"{folder}/nvidia/*/lib/libnvrtc.so.*"), reverse=True)
    system = ctypes.util.find_library("nvrtc")
    found += [system] if system else []
    found += sorted(glob.glob("/usr/local/cuda*/lib64/libnvrtc.so.*"), reverse=True)
    for name in found:
        if ".alt." in name:
            continue
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise MissingExtra("NVRTC, which compiles for a GPU, was not found: pip install 'tangere[cuda]'")


def compiled(text: str, architecture: str, options: Sequence[str] = ()) -> bytes:
    """The text as machine code (sm_NN) or PTX (compute_NN), from the cache where it was compiled before."""
    library = nvrtc()
    major, minor = _INT(), _INT()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    arguments = [f"--gpu-architecture={architecture}", "-std=c++17", *options]
    key = hashlib.sha256("\0".join([f"{major.value}.{minor.value}", *arguments, text]).encode()).hexdigest()[:32]
    kept = _cache() / f"{key}.bin"
    if kept.exists():
        return kept.read_bytes()
    program = _P()
    _nvrtc_ok(library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"tangere.cu", 0, None, None))
    words = (ctypes.c_char_p * len(arguments))(*(a.encode() for a in arguments))
    failed = library.nvrtcCompileProgram(program, len(arguments), words)
    size = ctypes.c_size_t()
    if failed:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise DeviceError(f"NVRTC refuses the kernel for {architecture}: {log.value.decode()[:600]}")
    kind = "CUBIN" if architecture.startswith("sm_") else "PTX"
    _nvrtc_ok(getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)))
    code = ctypes.create_string_buffer(size.value)
    _nvrtc_ok(getattr(library, f"nvrtcGet{kind}")(program, code))
    library.nvrtcDestroyProgram(ctypes.byref(program))
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(code.raw)
        part.replace(kept)
    except OSError:
        pass  # a cache that cannot be written costs a second the next time, nothing else
    return code.raw


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tangere" / "cuda"


def _nvrtc_ok(code: int) -> None:
    if code:
        raise DeviceError(f"NVRTC reports error {code}")


# --------------------------------------------------------------------------------------------------------------- driver


class Device:
    """The first CUDA device and its primary context, which torch, cupy and jax use as well."""

    def __init__(self) -> None:
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
            self._start, self._enter = self._driver.cuLaunchKernel, self._driver.cuCtxSetCurrent
        except OSError:
            raise DeviceError(
                "device 'cuda': no CUDA driver is installed here (libcuda.so.1); device 'cpu' works everywhere"
            ) from None
        if code := self._driver.cuInit(0):
            raise DeviceError(f"device 'cuda': the driver finds no usable GPU (error {code}); device 'cpu' works")
        self._device, self._context = _INT(), _P()
        self._ok(self._driver.cuDeviceGet(ctypes.byref(self._device), 0))
        major, minor = (self._attribute(k) for k in (75, 76))
        self.architecture = f"sm_{major}{minor}"
        name = ctypes.create_string_buffer(128)
        self._ok(self._driver.cuDeviceGetName(name, 128, self._device))
        self.name = name.value.decode()
        self._ok(self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), self._device))
        self.enter()
        self._functions: dict[str, Any] = {}

    def _attribute(self, number: int) -> int:
        value = _INT()
        self._ok(self._driver.cuDeviceGetAttribute(ctypes.byref(value), number, self._device))
        return value.value

    def _ok(self, code: int) -> None:
        if code:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorString(code, ctypes.byref(text))
            raise DeviceError(f"the CUDA driver reports: {(text.value or b'unknown').decode()} (error {code})")

    def enter(self) -> None:
        """Make the context that of this thread."""
        if code := self._enter(self._context):
            self._ok(code)

    def function(self, text: str, name: str, options: Sequence[str] = ()) -> Any:
        """A kernel of a text, compiled and loaded once."""
        key = hashlib.sha256("\0".join([name, *options, text]).encode()).hexdigest()
        if key not in self._functions:
            self.enter()
            module, function = _P(), _P()
            code = compiled(text, self.architecture, options)
            self._ok(self._driver.cuModuleLoadData(ctypes.byref(module), code))
            self._ok(self._driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
            self._functions[key] = function
        return self._functions[key]

    def launch(self, function: Any, count: int, block: int, arguments: Sequence[Any], stream: int = 0) -> None:
        """Start `count` threads with these ctypes values as arguments."""
        self.start(function, count, block, addresses(arguments), stream)

    def start(self, function: Any, count: int, block: int, pointers: Any, stream: int = 0) -> None:
        """The same with the addresses of the arguments, which the driver copies before this returns."""
        blocks, on = -(-count // block), _P(stream) if stream else None
        code = self._start(function, blocks, 1, 1, block, 1, 1, 0, on, pointers, None)
        if code in _NOT_HERE:
            self.enter()
            code = self._start(function, blocks, 1, 1, block, 1, 1, 0, on, pointers, None)
        if code:
            self._ok(code)

    def zero(self, pointer: int, count: int, stream: int = 0) -> None:
        """Set `count` numbers of 32 bits to 0."""
        self._ok(self._driver.cuMemsetD32Async(ctypes.c_uint64(pointer), 0, ctypes.c_size_t(count), _P(stream)))

    def wait(self) -> None:
        """Until everything is done."""
        self._ok(self._driver.cuCtxSynchronize())

    def free(self) -> int:
        """Bytes of memory that are free."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._ok(self._driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
        return free.value

    def too_small(self, size: int, rows: int) -> DeviceError:
        """That so many bytes are not free, and how many of the rows that they are for would fit."""
        free = self.free()
        fit = f"at most {rows * free // max(size, 1)} of {rows} rows fit" if rows else "ask for fewer robots"
        return DeviceError(f"the GPU has {free / 1e9:.3g} GB free, {size / 1e9:.3g} GB are needed: {fit}")

    def allocate(self, size: int, stream: int = 0, rows: int = 0) -> Memory:
        """Memory of that many bytes for so many rows, which only this stream uses, if one is named."""
        pointer, room = ctypes.c_uint64(), ctypes.c_size_t(max(size, 1))
        self.enter()
        if stream:  # giving other memory back waits for everything on the device
            failed = self._driver.cuMemAllocAsync(ctypes.byref(pointer), room, _P(stream))
        else:
            failed = self._driver.cuMemAlloc_v2(ctypes.byref(pointer), room)
        if failed:
            raise self.too_small(size, rows)
        return Memory(self, pointer.value, size, stream)

    def put(self, array: Any, stream: int = 0) -> Memory:
        """A contiguous numpy array, copied to the device."""
        memory = self.allocate(array.nbytes, stream)
        self.fill(memory, array, stream)
        return memory

    def fill(self, memory: Memory, array: Any, stream: int = 0) -> None:
        """A contiguous numpy array, copied into memory of the device."""
        to, start, size = ctypes.c_uint64(memory.pointer), _P(array.ctypes.data), ctypes.c_size_t(array.nbytes)
        self._ok(self._driver.cuMemcpyHtoDAsync_v2(to, start, size, _P(stream)))
        self._ok(self._driver.cuStreamSynchronize(_P(stream)))

    def get(self, memory: Memory, array: Any, stream: int = 0) -> None:
        """Memory of the device into a contiguous numpy array; waits for what was launched before."""
        to, start, size = _P(array.ctypes.data), ctypes.c_uint64(memory.pointer), ctypes.c_size_t(array.nbytes)
        self._ok(self._driver.cuMemcpyDtoHAsync_v2(to, start, size, _P(stream)))
        self._ok(self._driver.cuStreamSynchronize(_P(stream)))

    def flag(self) -> Any:
        """A number of 32 bits that host and device share, 0 at first; it stays for good."""
        pointer = _P()
        self.enter()
        self._ok(self._driver.cuMemHostAlloc(ctypes.byref(pointer), ctypes.c_size_t(64), 2))
        shared = ctypes.c_int32.from_address(pointer.value or 0)
        shared.value = 0
        return shared

    def mark(self) -> Any:
        """Something that `set_mark` places in a stream and `wait_for` waits for."""
        event = _P()
        self.enter()
        self._ok(self._driver.cuEventCreate(ctypes.byref(event), 2))
        return event

    def set_mark(self, event: Any, stream: int = 0) -> None:
        """After what was started on the stream so far."""
        self._ok(self._driver.cuEventRecord(event, _P(stream)))

    def wait_for(self, event: Any) -> None:
        """Until what was started before the mark is done."""
        self._ok(self._driver.cuEventSynchronize(event))

    def release(self, pointer: int, stream: int = 0) -> None:
        """Give memory back."""
        self.enter()
        if stream:
            self._driver.cuMemFreeAsync(ctypes.c_uint64(pointer), _P(stream))
        else:
            self._driver.cuMemFree_v2(ctypes.c_uint64(pointer))


def addresses(arguments: Sequence[Any]) -> Any:
    """Where ctypes values lie, as a kernel's start wants to know it; they must outlive the start."""
    return (_P * len(arguments))(*[ctypes.addressof(a) for a in arguments])


class Memory:
    """Memory of a device, given back when nobody holds it any more."""

    def __init__(self, device: Device, pointer: int, size: int, stream: int = 0) -> None:
        self._device, self.pointer, self.size, self._stream = device, pointer, size, stream

    def __del__(self) -> None:
        self._device.release(self.pointer, self._stream)


@cache
def device() -> Device:
    """The device, opened once."""
    return Device()
