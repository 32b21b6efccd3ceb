"""Arrays of anybody by DLPack: numpy, torch, cupy, jax, without a copy; and memory of a device as such an array."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tangere.errors import InvalidValue
from tangere.kernels.device import Memory, device

CPU, CUDA = 1, 2  # DLPack's numbers of devices
_HOST_TOO = (1, 3)  # plain and pinned memory of the host
_FLOAT = 2  # DLPack's code
_CODES = {"f": _FLOAT, "u": 1, "i": 0, "b": 6}
_REFUSED = (TypeError, ValueError, RuntimeError, BufferError)  # what packages raise that do not give an array


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Managed(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]

_api = ctypes.PyDLL(None)  # not ctypes.pythonapi, whose functions other packages describe in their own way
_pointer_of = _api.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_capsule = _api.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class View(NamedTuple):
    """An array of somebody else's on the device: address and shape; `owner` keeps it alive."""

    pointer: int
    shape: tuple[int, ...]
    owner: Any


def kind_of(array: Any) -> str:
    """Whose array it is: numpy, torch, cupy, jax, or another package's name."""
    of = type(array)
    if of not in _kinds:
        name = of.__module__.split(".")[0]
        _kinds[of] = "jax" if name in ("jax", "jaxlib") else name
    return _kinds[of]


_kinds: dict[type, str] = {}


def current(array: Any) -> int:
    """The stream that the array's own package works on now; 0: the default one."""
    kind = kind_of(array)
    if kind == "torch" and array.is_cuda:
        import torch

        quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # the same number in a tenth of the time
        if quick is not None:
            return int(quick(array.get_device()))
        return int(torch.cuda.current_stream(array.device).cuda_stream)
    if kind == "cupy":
        import cupy

        return int(cupy.cuda.get_current_stream().ptr)
    return 0


def torch_type(dtype: np.dtype[Any]) -> Any:
    """Torch's own name of a number type; None where nobody has torch."""
    return getattr(sys.modules.get("torch"), dtype.name, None)


def view(array: Any, name: str, dtype: np.dtype[Any], stream: int, *, own: Any = None) -> View:
    """A contiguous array on the device, of that dtype; own: torch's name of it, where the stream is torch's own."""
    # the same answer as below, in a tenth of the time
    plain = own is not None and kind_of(array) == "torch" and array.dtype is own
    if plain and array.is_cuda and array.get_device() == 0 and array.is_contiguous():
        return View(array.data_ptr(), tuple(array.shape), array)
    where = _place(array, name)
    if where is None:
        raise InvalidValue(f"{name}: an array on the GPU is needed (torch, cupy, jax, any DLPack), got {type(array)}")
    if where[0] != CUDA:
        raise InvalidValue(f"{name}: is in the memory of the CPU, but this batch computes on device 'cuda'")
    if where[1] != 0:
        raise InvalidValue(f"{name}: is on GPU {where[1]}; batches compute on the first one, 0")
    try:
        capsule = array.__dlpack__(stream=stream or 1)
    except _REFUSED as problem:
        raise _unreadable(name, problem) from None
    tensor = ctypes.cast(_pointer_of(capsule, b"dltensor"), ctypes.POINTER(_Managed)).contents.tensor
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    if (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) != (_FLOAT, 8 * dtype.itemsize, 1):
        raise InvalidValue(f"{name}: this batch computes in {dtype.name}, the array has another dtype")
    if tensor.strides and prod(shape):
        expected = [prod(shape[k + 1 :]) for k in range(len(shape))]
        if any(tensor.strides[k] != expected[k] for k in range(len(shape)) if shape[k] > 1):
            raise InvalidValue(f"{name}: its rows must lie one after the other in memory (a contiguous array)")
    return View((tensor.data or 0) + tensor.byte_offset, shape, (capsule, array))


def _place(array: Any, name: str) -> tuple[int, int] | None:
    """Kind and number of the device that an array is on; None: it does not say."""
    where = getattr(array, "__dlpack_device__", None)
    try:
        return None if where is None else where()
    except _REFUSED as problem:  # torch's tensors without memory
        raise _unreadable(name, problem) from None


def _unreadable(name: str, problem: Exception) -> InvalidValue:
    return InvalidValue(f"{name}: cannot be read as an array of numbers: {str(problem).splitlines()[0]}")


class DeviceArray:
    """Memory of the device as an array that any package with DLPack takes."""

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self.memory: Memory = device().allocate(prod(self.shape) * dtype.itemsize, rows=prod(self.shape[:1]))

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        device().wait()
        shape = (ctypes.c_int64 * max(len(self.shape), 1))(*self.shape)
        managed = _Managed()
        managed.tensor = _Tensor(
            self.memory.pointer, _Device(CUDA, 0), len(self.shape),
            _Type(_CODES[self.dtype.kind], 8 * self.dtype.itemsize, 1),
            ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)), None, 0,
        )  # fmt: skip
        key = ctypes.addressof(managed)
        managed.deleter = _DELETER(lambda _: _kept.pop(key, None) and None)
        _kept[key] = (managed, shape, self.memory)
        return _capsule(key, b"dltensor", None)


_kept: dict[int, Any] = {}  # what is lent out, until its deleter is called


def like(array: Any, shape: Sequence[int], dtype: np.dtype[Any]) -> tuple[Any, View]:
    """A new array of the same kind on the device, and the view to write to."""
    kind = kind_of(array)
    made: Any
    try:
        if kind == "torch":
            import torch

            made = torch.empty(tuple(shape), dtype=getattr(torch, dtype.name), device=array.device)
            return made, View(made.data_ptr(), tuple(shape), made)
        if kind == "cupy":
            import cupy

            made = cupy.empty(tuple(shape), dtype)
            return made, View(made.data.ptr, tuple(shape), made)
    except (RuntimeError, MemoryError):  # what torch and cupy call too little memory
        raise device().too_small(prod(shape) * dtype.itemsize, prod(shape[:1])) from None
    made = DeviceArray(shape, dtype)
    return made, View(made.memory.pointer, made.shape, made)


def given_back(made: Any, kind: str) -> Any:
    """An array of ours as one of that kind."""
    if isinstance(made, DeviceArray) and kind == "jax":
        from jax import dlpack

        return dlpack.from_dlpack(made)
    return made


def on_host(array: Any, name: str) -> Any:
    """An array in the memory of the host as numpy's, without a copy."""
    where = _place(array, name)
    if where is not None and where[0] not in _HOST_TOO:
        raise InvalidValue(f"{name}: is in the memory of a GPU, but this batch computes on device 'cpu'")
    try:
        return np.asarray(array) if where is None or hasattr(array, "__array__") else np.from_dlpack(array)
    except _REFUSED as problem:
        raise _unreadable(name, problem) from None


def like_host(result: Any, kind: str) -> Any:
    """A numpy array as one of that kind, without a copy, which JAX alone makes for itself."""
    if kind == "torch":
        import torch

        return torch.from_numpy(result)
    if kind == "jax":
        import jax.numpy as jnp

        made = jnp.asarray(result)
        if made.dtype != result.dtype:
            raise InvalidValue(
                f"JAX holds {made.dtype} only, this batch gives {result.dtype}: dtype='float32' makes another, or "
                'jax.config.update("jax_enable_x64", True) lets JAX hold it'
            )
        return made
    return result
