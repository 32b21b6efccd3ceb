"""Many states of one robot at once, on the CPU or on a GPU: robot.batch(device=, dtype=)."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, unknown
from tangere.kernels import dlpack, ur, xla
from tangere.kernels.device import DEVICES, EXACT, QUICK
from tangere.kernels.device import device as opened
from tangere.kernels.emit import cuda
from tangere.kernels.emit import python as emit_python
from tangere.kernels.launches import Ready, inverse_on_device
from tangere.kernels.payloads import payload_map
from tangere.kernels.solutions import Branches
from tangere.kernels.table import Kernel, Trace, all_kernels, trace
from tangere.kinematics.chain import chain_of
from tangere.kinematics.checks import checked
from tangere.model.model import Array

if TYPE_CHECKING:
    from tangere.robots import Robot


class Batch:
    """Every quantity of a robot over rows (N, n): arrays of numpy, torch, cupy or jax in, the same kind out.

        arm = tangere.robot("ur10e").batch(device="cuda", dtype="float32")
        tau = arm.inverse_dynamics(q, qd, qdd);  arm.inverse_dynamics(q, qd, qdd, out=tau, stream=stream)
        arm.with_parameters(payload=masses).gravity_torque(q)

    Names, shapes and units are those of tangere.Robot; leading axes may be any, and one row serves all. On a GPU
    nothing is copied, and nobody looks at the numbers: NaN goes through. float32 on the CPU is computed in float64 and
    rounded.
    """

    def __init__(
        self, robot: Robot, device: str = "cpu", dtype: Any = "float64", parameters: Array | None = None
    ) -> None:
        if device not in DEVICES:
            raise unknown("device", str(device), DEVICES)
        try:
            self.dtype = np.dtype(dtype).newbyteorder("=")
        except TypeError:
            self.dtype = np.dtype(object)
        if self.dtype.name not in ("float64", "float32"):
            raise InvalidValue(f"dtype: float64 or float32, got {dtype!r}")
        self.robot, self.device = robot, device
        self._kernels = {k.name: k for k in all_kernels(robot.dof)}
        self._sizes = {name: k.input_sizes(robot.dof) for name, k in self._kernels.items()}
        self._parameters = parameters  # (N, k), of a UR
        if device == "cuda":
            opened()
        self._ready: dict[str, Ready] = {}
        self._quick: dict[str, Ready] = {}  # of these, those that have met torch
        self._torch: Any = None  # torch's name of the dtype
        self._inverse: Any = None  # functions of the inverse kinematics on the device, and their constants

    def __repr__(self) -> str:
        many = "" if self._parameters is None else f", {len(self._parameters)} robots"
        return f"Batch({self.robot.name!r}, device={self.device!r}, dtype={self.dtype.name!r}{many})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, (self.robot, self.device, self.dtype.name, self._parameters)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(k for k in self._kernels if "_link" not in k[-7:])})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        kernels = self.__dict__.get("_kernels", {})
        if name not in kernels:
            raise AttributeError(f"there is no quantity {name!r} in a batch")
        kernel, quick = kernels[name], self._quick

        def call(*args: Any, out: Any = None, stream: Any = None) -> Any:
            if stream is None and name in quick and (answer := quick[name].quickly(args, out)) is not None:
                return answer
            if len(args) != len(kernel.inputs):
                raise TypeError(f"{name}() takes the arguments {', '.join(kernel.inputs)}")
            return self._call(kernel, args, out, stream)

        call.__name__, call.__qualname__, call.__doc__ = name, f"Batch.{name}", kernel.help
        self.__dict__[name] = call
        return call

    def jacobian(
        self, q: Any, link: int | None = None, point: Any = None, *, out: Any = None, stream: Any = None
    ) -> Any:
        """Geometric Jacobian (..., 6, n) at the tcp, or at a point (..., 3) of a link (1 ... n)."""
        if link is None:
            if point is not None:
                raise InvalidValue("point: given without a link; a point is in the frame of a link, 1 ... n")
            return self._call(self._kernels["jacobian"], (q,), out, stream)
        if not (isinstance(link, int | np.integer) and 1 <= link <= self.robot.dof):
            raise InvalidValue(f"link: got {link!r}, valid are 1 to {self.robot.dof}, or None for the tcp")
        if point is None:
            raise InvalidValue("point: (..., 3) [m] in the frame of the link, as an array of the same kind as q")
        return self._call(self._kernels[f"jacobian_link{int(link)}"], (q, point), out, stream)

    def inverse_kinematics(self, T: Any, reference: Any = None, *, stream: Any = None) -> Branches:
        """All solutions of poses T_base_tcp (..., 4, 4), eight branches each; reference (6,) or (..., 6).

        On a GPU, for a UR: the CPU's answer, but for poses where shoulder and elbow are singular at once, of which some
        solutions are found by an iteration only; what is no rotation within 1e-5 has no valid branch there.
        """
        if self._parameters is not None:
            raise InvalidValue("inverse_kinematics: does not depend on payloads; ask the batch without parameters")
        if self.device == "cuda":
            number = dlpack.current(T) if stream is None else _stream(stream)
            return inverse_on_device(self, T, reference, number)
        _refuse_stream(stream)
        poses = dlpack.on_host(T, "T")
        alone = np.ndim(poses) == 2
        held = None if reference is None else dlpack.on_host(reference, "reference")
        found = self.robot.inverse_kinematics(np.asarray(poses)[None] if alone else poses, held)
        parts = (found.q.astype(self.dtype), found.valid, found.flags, found.correction, found.distance)
        kind = dlpack.kind_of(T)
        return Branches(*(dlpack.like_host(part[0] if alone else part, kind) for part in parts))

    ik = inverse_kinematics

    def with_parameters(self, payload: ArrayLike, com: ArrayLike = (0.0, 0.0, 0.0)) -> Batch:
        """The same with a payload for each robot: masses (N,) [kg], com (3,) or (N, 3) [m] in flange axes."""
        if not ur.is_ur(self.robot.model):
            raise InvalidValue(f"with_parameters: {self.robot.name} is no UR; parameters of each robot are for URs")
        masses = np.atleast_1d(checked(dlpack.on_host(payload, "payload"), (), "payload"))
        centres = checked(dlpack.on_host(com, "com"), (3,), "com")
        if masses.ndim != 1 or not len(masses) or centres.shape not in ((3,), (len(masses), 3)):
            raise InvalidValue(f"payload: masses (N,), com (3,) or (N, 3), got {masses.shape} and {centres.shape}")
        if np.any(masses < 0.0):
            i = int(np.argmax(masses < 0.0))
            raise InvalidValue(f"payload: 0 kg or more, got {masses[i]:g} for robot {i}")
        plan = payload_map(self.robot.model, self.robot.rotor_inertia)
        c = np.broadcast_to(centres, (len(masses), 3))
        second = [c[:, i] * c[:, j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]
        moments = masses[:, None] * np.stack([np.ones(len(masses)), c[:, 0], c[:, 1], c[:, 2], *second], axis=1)
        P = plan.bare + moments @ plan.slope.T
        total = plan.last + moments @ plan.last_slope.T
        P[:, plan.com : plan.com + 3] = total[:, 1:] / total[:, :1]
        return Batch(self.robot, self.device, self.dtype, P)

    # ------------------------------------------------------------------------------------------------------- the call

    def _call(self, kernel: Kernel, args: Sequence[Any], out: Any, stream: Any) -> Any:
        outs = None if out is None else list(out) if isinstance(out, tuple | list) else [out]
        if outs is not None and len(outs) != len(shapes := kernel.outputs(self.robot.dof)):
            raise InvalidValue(f"out: {kernel.name} gives {len(shapes)} arrays, got {len(outs)}")
        if self.device == "cuda":
            answer = self._on_device(kernel, args, outs, stream)
        else:
            _refuse_stream(stream)
            answer = self._on_host(kernel, args, outs)
        return answer[0] if len(answer) == 1 else tuple(answer)

    def _lead(self, kernel: Kernel, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        sizes = self._sizes[kernel.name]
        for shape, name, size in zip(shapes, kernel.inputs, sizes, strict=True):
            if shape[-1:] != (size,):
                raise InvalidValue(f"{name}: expected shape (..., {size}), got {shape}")
        own, first = self._parameters, shapes[0][:-1]
        if own is None and all(shape[:-1] == first for shape in shapes):
            return first
        leads = {shape[:-1] for shape in shapes} - {(), (1,)} or {first}
        if len(leads) > 1:
            raise InvalidValue(f"leading axes do not fit together: shapes {', '.join(map(str, shapes))}")
        (lead,) = leads
        if own is not None and lead != (len(own),):
            if lead in ((), (1,)):
                return (len(own),)
            raise InvalidValue(f"{kernel.inputs[0]}: {len(own)} robots have parameters of their own, got rows {lead}")
        return lead

    def _on_host(self, kernel: Kernel, args: Sequence[Any], outs: list[Any] | None) -> list[Any]:
        arrays = [dlpack.on_host(a, n) for a, n in zip(args, kernel.inputs, strict=True)]
        lead = self._lead(kernel, [np.shape(a) for a in arrays])
        kind = dlpack.kind_of(args[0])
        if self._parameters is None:
            name = kernel.name
            if name.startswith("jacobian_link"):
                results: Any = self.robot.jacobian(arrays[0], int(name[13:]), arrays[1])
            else:
                results = getattr(self.robot, name)(*arrays)
            results = list(results) if isinstance(results, tuple) else [results]
        else:
            results = self._each(kernel, arrays, lead)
        if outs is None:
            return [dlpack.like_host(np.asarray(r, dtype=self.dtype), kind) for r in results]
        for target, result in zip(outs, results, strict=True):
            place = dlpack.on_host(target, "out")
            fits = np.shape(place) == np.shape(result) and place.dtype == self.dtype and place.flags.writeable
            if not (fits and hasattr(target, "__dlpack__")):  # of anything else `place` is a copy
                raise InvalidValue(f"out: {self.dtype.name} of shape {np.shape(result)} that can be written to")
            place[...] = result
        return outs

    def _each(self, kernel: Kernel, arrays: Sequence[Any], lead: tuple[int, ...]) -> list[Array]:
        P = self._parameters
        assert P is not None
        good = [checked(a, (None,), name) for a, name in zip(arrays, kernel.inputs, strict=True)]
        x = np.concatenate([np.broadcast_to(a, (*lead, a.shape[-1])) for a in good], axis=-1)
        columns = _form(kernel.name)([x[:, i] for i in range(x.shape[1])], [P[:, i] for i in range(P.shape[1])])
        y = np.stack(np.broadcast_arrays(*columns), axis=-1)
        shapes = kernel.outputs(self.robot.dof)
        ends = np.cumsum([prod(s) for s in shapes])[:-1]
        return [part.reshape(*lead, *s) for part, s in zip(np.split(y, ends, axis=-1), shapes, strict=True)]

    # ------------------------------------------------------------------------------------------------------ the device

    def _on_device(self, kernel: Kernel, args: Sequence[Any], outs: list[Any] | None, stream: Any) -> list[Any]:
        kind = dlpack.kind_of(args[0])
        number = dlpack.current(args[0]) if stream is None else _stream(stream)
        if kind == "torch" and self._torch is None:
            self._torch = dlpack.torch_type(self.dtype)
        own = self._torch if stream is None and kind == "torch" else None
        views = [dlpack.view(a, n, self.dtype, number, own=own) for a, n in zip(args, kernel.inputs, strict=True)]
        ready = self._ready.get(kernel.name) or self._prepared(kernel)
        first = views[0].shape
        usual = (ready.usual,) == first[-1:] and self._parameters is None and all(v.shape == first for v in views)
        lead = first[:-1] if usual else self._lead(kernel, [v.shape for v in views])
        shapes = [lead + s for s in ready.shapes]
        if outs is None:
            pairs = [dlpack.like(args[0], shape, self.dtype) for shape in shapes]
            made, places = [p[0] for p in pairs], [p[1] for p in pairs]
        else:
            if "jax" in map(dlpack.kind_of, outs):
                raise InvalidValue("out: JAX's arrays cannot be written to; take what the call returns")
            made, places = outs, [dlpack.view(o, "out", self.dtype, number, own=own) for o in outs]
            for place, shape in zip(places, shapes, strict=True):
                if place.shape != shape:
                    raise InvalidValue(f"out: expected shape {shape}, got {place.shape}")
        ready.start(views, places, prod(lead), number)
        if own is not None and ready.usual and self._parameters is None and kernel.name not in self._quick:
            ready.meet(sys.modules["torch"], own)
            self._quick[kernel.name] = ready
        return [dlpack.given_back(m, kind) for m in made] if kind == "jax" else made

    def _prepared(self, kernel: Kernel) -> Ready:
        """The function on the device with its constants: a ctypes array, or memory with a column for each."""
        sizes, shapes = kernel.input_sizes(self.robot.dof), kernel.outputs(self.robot.dof)
        own, single = self._parameters is not None, self.dtype == np.float32
        t = self._trace(kernel)
        options = QUICK if single else EXACT
        function = opened().function(cuda.batch(t, sizes, shapes, single, own), "tg_batch", options)
        if own:
            P = self._parameters
            assert P is not None
            columns = constant_values(t, [P[:, i] for i in range(P.shape[1])], own)
            rows = np.stack([np.broadcast_to(c, (len(P),)) for c in columns] or [np.zeros(len(P))])
            each: Any = opened().put(np.ascontiguousarray(rows, dtype=self.dtype))
            constants: Any = (ctypes.c_double * 1)()
        else:
            P = ur.parameters_of(self.robot.model, rotor_inertia=self.robot.rotor_inertia)
            given = P.tolist() if ur.is_ur(self.robot.model) else []
            values = np.array([*constant_values(t, given, own)] or [0.0], dtype=self.dtype)
            each, constants = None, (ctypes.c_char * values.nbytes).from_buffer_copy(values.tobytes())
        self._ready[kernel.name] = Ready(function, sizes, shapes, each, constants)
        return self._ready[kernel.name]

    def for_xla(self, name: str) -> tuple[str, tuple[tuple[int, ...], ...]]:
        """The kernel of that name as a custom call of XLA on this device: its name there, and its outputs' shapes."""
        ready = self._ready.get(name) or self._prepared(self._kernels[name])
        key = hashlib.sha256(f"{name} {self.dtype.name}".encode() + bytes(ready.constants)).hexdigest()[:24]
        known = f"tangere_{key}"
        if known not in _known_to_xla:
            rank = len(ready.shapes[0])

            def start(inputs: Sequence[xla.Rows], outputs: Sequence[xla.Rows], stream: int) -> None:
                shape = outputs[0].shape
                ready.start(inputs, outputs, prod(shape[: len(shape) - rank]), stream)

            xla.register(known, start)
            _known_to_xla.add(known)
        return known, tuple(ready.shapes)

    def _trace(self, kernel: Kernel) -> Trace:
        if ur.is_ur(self.robot.model):
            return _trace(kernel.name)
        chain = chain_of(self.robot.model, rotor_inertia=self.robot.rotor_inertia)
        return trace(kernel, self.robot.dof, lambda _: chain, 0)


_known_to_xla: set[str] = set()


def constant_values(t: Trace, parameters: Sequence[Any], each: bool) -> tuple[Any, ...]:
    """The constants that the emitted kernel reads, of numbers or columns of parameters."""
    _, heads = cuda.constants(t, each)
    if not heads:
        return ()
    return emit_python.compiled(heads[0].graph, [], heads, parameters="P", batch=True)(parameters)


@cache
def _trace(name: str) -> Trace:
    kernel = next(k for k in all_kernels(ur.DOF) if k.name == name)
    return trace(kernel, ur.DOF, ur.chain, ur.PARAMETER_COUNT)


@cache
def _form(name: str) -> Callable[..., tuple[Any, ...]]:
    t = _trace(name)
    return emit_python.compiled(t.graph, ["x"], t.outputs, batch=True)


def _refuse_stream(given: Any) -> None:
    if given is not None:
        raise InvalidValue(f"stream: there is none on device 'cpu', got {given!r}")


def _stream(given: Any) -> int:
    """A stream as a number: of torch, cupy, or plain."""
    for name in ("cuda_stream", "ptr"):
        given = getattr(given, name, given)
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise InvalidValue(f"stream: a stream of torch or cupy, or its number, got {given!r}")
    return int(given)
