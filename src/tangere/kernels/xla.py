"""Functions of ours as custom calls of XLA: what jax.jit runs is then the CUDA kernel itself.

XLA calls a C function with a frame that lists addresses and shapes, laid out as xla/ffi/api/c_api.h has it (version 0,
which only ever grows at the ends). Ours is written with ctypes: it starts a kernel on XLA's stream and returns, so no
compiler and no header is needed. Only addresses pass through Python, never numbers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import POINTER, Structure, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any, NamedTuple

EXECUTE = 3  # stage of a call, XLA_FFI_ExecutionStage
_REPLAYED = 1  # XLA_FFI_Handler_Traits: what a call starts may be recorded in a graph of CUDA and started from there
_INTERNAL = 13  # XLA_FFI_Error_Code


class Rows(NamedTuple):
    """An array of XLA's: where it is, and its shape."""

    pointer: int
    shape: tuple[int, ...]


Start = Callable[[Sequence[Rows], Sequence[Rows], int], None]  # inputs, outputs, stream


class _Version(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("major", c_int), ("minor", c_int)]


class _Buffer(Structure):
    _fields_ = [
        ("size", c_size_t), ("extension", c_void_p), ("dtype", c_int), ("data", c_void_p), ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    ]  # fmt: skip


class _Buffers(Structure):
    _fields_ = [
        ("size", c_size_t), ("extension", c_void_p), ("count", c_int64), ("types", c_void_p),
        ("items", POINTER(POINTER(_Buffer))),
    ]  # fmt: skip


class _Api(Structure):
    _fields_ = [
        ("size", c_size_t), ("extension", c_void_p), ("version", _Version),
        *((name, c_void_p) for name in ("internal", "error", "message", "destroy", "register", "stream")),
    ]  # fmt: skip


class _Metadata(Structure):
    _fields_ = [("size", c_size_t), ("version", _Version), ("traits", c_uint32)]


class _Extension(Structure):
    _fields_ = [("size", c_size_t), ("kind", c_int), ("next", c_void_p), ("metadata", POINTER(_Metadata))]


class _Frame(Structure):
    _fields_ = [
        ("size", c_size_t), ("extension", POINTER(_Extension)), ("api", POINTER(_Api)), ("context", c_void_p),
        ("stage", c_int), ("inputs", _Buffers), ("outputs", _Buffers),
    ]  # fmt: skip


class _Stream(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("context", c_void_p), ("stream", c_void_p)]


class _Error(Structure):
    _fields_ = [("size", c_size_t), ("extension", c_void_p), ("message", ctypes.c_char_p), ("code", c_int)]


_HANDLER = ctypes.CFUNCTYPE(c_void_p, POINTER(_Frame))
_CALL = ctypes.CFUNCTYPE(c_void_p, c_void_p)
_kept: list[Any] = []  # XLA holds the addresses of these functions for as long as the process lives


def register(name: str, start: Start, platform: str = "CUDA") -> None:
    """Let jax.ffi.ffi_call(name, ...) call `start` on that platform; the stream is 0 where there are none."""
    from jax import ffi

    def answer(at: Any) -> int | None:
        frame = at.contents
        if frame.extension:  # asked at registration: for which version this is written
            told, version = frame.extension.contents.metadata.contents, frame.api.contents.version
            told.version.major, told.version.minor, told.traits = version.major, version.minor, _REPLAYED
            return None
        try:
            if frame.stage == EXECUTE:
                stream = _stream(frame) if platform == "CUDA" else 0
                start(_rows(frame.inputs), _rows(frame.outputs), stream)
        except Exception as error:  # nothing may leave a function that C has called
            given = _Error(ctypes.sizeof(_Error), None, f"tangere: {error}".encode(), _INTERNAL)
            made: int | None = _CALL(frame.api.contents.error)(ctypes.addressof(given))
            return made
        return None

    handler = _HANDLER(answer)
    _kept.append(handler)
    ffi.register_ffi_target(name, ffi.pycapsule(handler), platform=platform)


def _rows(buffers: _Buffers) -> list[Rows]:
    each = (buffers.items[k].contents for k in range(buffers.count))
    return [Rows(one.data or 0, tuple(one.dims[: one.rank])) for one in each]


def _stream(frame: _Frame) -> int:
    asked = _Stream(ctypes.sizeof(_Stream), None, frame.context, None)
    if _CALL(frame.api.contents.stream)(ctypes.addressof(asked)):
        raise RuntimeError("XLA names no stream")
    return int(asked.stream or 0)
