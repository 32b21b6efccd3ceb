"""Batch.inverse_kinematics on a CUDA device: the kernels of cuda_ik.py over poses that are there."""

from __future__ import annotations

import ctypes
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
