"""A kernel over rows that can be started at once: its arguments are kept, and filled anew for each start."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from math import prod
from typing import Any

from tangere.kernels.device import device
from tangere.kernels.emit.cuda import BLOCK


class Ready:
    """`tg_batch` of emit/cuda.py with its constants.

    sizes: numbers of a row of each input; shapes: of the outputs; each: memory with a column for each constant, where
    every robot has its own, else None; constants: their ctypes array.
    """

    def __init__(
        self, function: Any, sizes: Sequence[int], shapes: Sequence[tuple[int, ...]], each: Any, constants: Any
    ) -> None:
        self._gpu, self._function, self._lock = device(), function, threading.Lock()
        self.shapes, self.constants = [tuple(s) for s in shapes], constants
        self.usual = sizes[0] if len(set(sizes)) == 1 else 0  # the last axis of every input, where it is the same
        self._sizes, self._each = sizes, each
        # the arguments side by side, as numbers of 64 bits: address and step of each input, addresses of the outputs,
        # how many rows, address of the columns
        self._form = struct.Struct(f"{2 * len(sizes) + len(shapes) + 2}q")
        self._numbers = ctypes.create_string_buffer(self._form.size)
        begin = ctypes.addressof(self._numbers)
        places = [*range(begin, begin + self._form.size, 8), ctypes.addressof(constants)]
        self._places = (ctypes.c_void_p * len(places))(*places)
        self._torch: Any = None
        self._last: tuple[Any, list[tuple[int, ...]]] = (None, [])  # shape of a quick call's rows, and its outputs'

    def start(self, inputs: Sequence[Any], outputs: Sequence[Any], count: int, stream: int) -> None:
        """Start it over `count` rows; inputs and outputs have pointers and shapes, an input of one row serves all."""
        if not count:
            return
        numbers: list[int] = []
        for given, size in zip(inputs, self._sizes, strict=True):
            numbers += (given.pointer, size if prod(given.shape) == count * size else 0)
        numbers += [given.pointer for given in outputs]
        self._start(numbers, count, stream)

    def _start(self, numbers: list[int], count: int, stream: int) -> None:
        self._gpu.enter()
        with self._lock:  # the driver has copied the arguments when it returns
            self._form.pack_into(self._numbers, 0, *numbers, count, self._each.pointer if self._each else 0)
            self._gpu.start(self._function, count, BLOCK, self._places, stream)

    def meet(self, torch: Any, dtype: Any) -> None:
        """From now on `quickly` knows torch; dtype: its name of the number type."""
        self._torch = (torch.Tensor, dtype, torch._C._cuda_getCurrentRawStream)

    def quickly(self, args: Sequence[Any], out: Any) -> Any:
        """The answer where all arrays are plain ones of torch with rows alike, on its own stream; None where not."""
        tensor, dtype, stream = self._torch
        first = args[0]
        if type(first) is not tensor or len(args) != len(self._sizes):
            return None
        shape, size = first.shape, self.usual
        numbers: list[int] = []
        known, wanted = self._last
        if shape != known:
            if shape[-1:] != (size,) or not first.numel():
                return None
            wanted = [(*shape[:-1], *own) for own in self.shapes]
            self._last = shape, wanted
        for a in args:
            if type(a) is not tensor or a.dtype is not dtype or a.get_device() or not a.is_contiguous():
                return None
            if a is not first and a.shape != shape:
                return None
            numbers += (a.data_ptr(), size)
        made = [first.new_empty(own) for own in wanted] if out is None else out if type(out) is tuple else (out,)
        if len(made) != len(wanted):
            return None
        for a, own in zip(made, wanted, strict=True):
            if type(a) is not tensor or a.dtype is not dtype or a.get_device() or not a.is_contiguous():
                return None
            if a.shape != own:
                return None
            numbers.append(a.data_ptr())
        self._start(numbers, first.numel() // size, stream(0))
        if out is not None:
            return out
        return made[0] if len(made) == 1 else tuple(made)
