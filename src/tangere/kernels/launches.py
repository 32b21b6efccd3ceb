"""What a batch starts on a CUDA device: kernels over rows, and the inverse kinematics of cuda_ik.py."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.errors import InvalidValue
from tangere.kernels import cuda_ik, dlpack, ur
from tangere.kernels.device import EXACT, QUICK, device
from tangere.kernels.emit.cuda import BLOCK
from tangere.kernels.solutions import Branches

if TYPE_CHECKING:
    from tangere.kernels.batch import Batch

LISTED = 1 << 18  # threads that work off a list of poses: how long it is, only the device knows


class Ready:
    """`tg_batch` of emit/cuda.py with its constants; its arguments are kept, and filled anew for each start.

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
        self._last: tuple[Any, int, list[tuple[int, ...]]] = (None, 0, [])  # shape of a quick call, rows, its outputs'

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
        with self._lock:  # the driver has copied the arguments when it returns
            self._form.pack_into(self._numbers, 0, *numbers, count, self._each.pointer if self._each else 0)
            self._gpu.start(self._function, count, BLOCK, self._places, stream)

    def meet(self, torch: Any, dtype: Any) -> None:
        """From now on `quickly` knows torch; dtype: its name of the number type."""
        self._torch = (torch.Tensor, dtype, torch._C._cuda_getCurrentRawStream, torch.empty_like)

    def quickly(self, args: Sequence[Any], out: Any) -> Any:
        """The answer where all arrays are plain ones of torch with rows alike, on its own stream; None where not."""
        tensor, dtype, stream, like = self._torch
        first = args[0]
        if type(first) is not tensor or len(args) != len(self._sizes):
            return None
        shape, size = first.shape, self.usual
        numbers: list[int] = []
        made: Any
        known, count, wanted = self._last
        if shape != known:
            if shape[-1:] != (size,) or not first.numel():
                return None
            wanted = [(*shape[:-1], *own) for own in self.shapes]
            count = first.numel() // size
            self._last = shape, count, wanted
        for a in args:
            if type(a) is not tensor or a.dtype is not dtype or a.get_device() or not a.is_contiguous():
                return None
            if a is not first and a.shape != shape:
                return None
            numbers += (a.data_ptr(), size)
        if out is None:
            try:
                made = [like(first) if own == shape else first.new_empty(own) for own in wanted]
            except RuntimeError:  # too little memory: the longer way says so
                return None
        else:
            made = out if type(out) is tuple else (out,)
            if len(made) != len(wanted):
                return None
            for a, own in zip(made, wanted, strict=True):
                if type(a) is not tensor or a.dtype is not dtype or a.get_device() or not a.is_contiguous():
                    return None
                if a.shape != own:
                    return None
        numbers += [a.data_ptr() for a in made]
        self._start(numbers, count, stream(0))
        if out is not None:
            return out
        return made[0] if len(made) == 1 else tuple(made)


class Poses(ctypes.Structure):
    """tg_poses of kernels/cuda_ik.py."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("T", "reference", "q", "correction", "distance", "valid", "flags")),
        *((name, ctypes.c_void_p) for name in ("careful", "count", "again", "again_count")),
        *((name, ctypes.c_longlong) for name in ("n", "step")),
    ]  # fmt: skip


def inverse_on_device(batch: Batch, T: Any, reference: Any, number: int) -> Branches:
    """As Batch has it; number: of the stream."""
    robot, dtype, gpu = batch.robot, batch.dtype, device()
    if not ur.is_ur(robot.model):
        raise InvalidValue(f"inverse_kinematics: {robot.name} is no UR; the closed form is that of a UR")
    poses = dlpack.view(T, "T", dtype, number)
    if poses.shape[-2:] != (4, 4):
        raise InvalidValue(f"T: expected shape (..., 4, 4), got {poses.shape}")
    lead = poses.shape[:-2]
    held = None if reference is None else dlpack.view(reference, "reference", dtype, number)
    if held is not None and held.shape not in ((6,), (*lead, 6)):
        raise InvalidValue(f"reference: one joint vector (6,) or the leading axes of the poses, got {held.shape}")
    small = np.dtype(np.uint8)
    wanted = {
        "q": ((*lead, 8, 6), dtype), "valid": ((*lead, 8), np.dtype(bool)), "flags": ((*lead, 8), small),
        "correction": (lead, dtype), "distance": (lead, dtype),
        "lists": ((2, prod(lead) + 1), np.dtype(np.int32)),
    }  # fmt: skip
    made = {name: dlpack.like(T, shape, kind) for name, (shape, kind) in wanted.items()}
    place = {name: pair[1].pointer for name, pair in made.items()}
    count = prod(lead)
    if batch._inverse is None:
        text = cuda_ik.text(dtype == np.float32)
        kernels = {"tg_ik": QUICK if dtype == np.float32 else EXACT, "tg_ik_again": EXACT, "tg_ik_careful": EXACT}
        functions = [gpu.function(text, name, options) for name, options in kernels.items()]
        own = ur.parameters_of(robot.model, rotor_inertia=robot.rotor_inertia).tolist()
        values = cuda_ik.constants(own, dtype == np.float32)
        batch._inverse = (functions, (ctypes.c_char * len(values)).from_buffer_copy(values))
    (short, again, careful), u = batch._inverse
    job = Poses(
        poses.pointer, None if held is None else held.pointer, place["q"], place["correction"], place["distance"],
        place["valid"], place["flags"], place["lists"] + 8, place["lists"],
        place["lists"] + 4 * (count + 2), place["lists"] + 4, count, 0 if held is None or held.shape == (6,) else 6,
    )  # fmt: skip
    gpu.enter()
    gpu.zero(place["lists"], 2, number)  # how long they are stands before them
    if count:
        gpu.launch(short, count, BLOCK, [job, u], number)
        for kernel in (again, careful)[dtype == np.float64 :]:
            gpu.launch(kernel, min(count, LISTED), BLOCK, [job, u], number)
    kind = dlpack.kind_of(T)
    return Branches(*(dlpack.given_back(made[name][0], kind) for name in Branches._fields))
