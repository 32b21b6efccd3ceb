"""The kernels in Python: for robots that are not URs, and for machines where the extension could not be built.

Each kernel is traced and compiled to a Python function when it is first called: floats for one state, arrays for a
batch. A UR keeps its parameters at run time, so all URs share the functions; other robots have their numbers folded
into them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.kernels.emit import runnable
from tangere.kernels.inverse_kinematics import closed_form, numeric
from tangere.kernels.shapes import MANY_TURNS, broadcast, far, formed, transforms
from tangere.kernels.solutions import IKBatch, IKSolutions
from tangere.kernels.table import Kernel, Trace, all_kernels, trace
from tangere.kinematics.chain import Chain, chain_of
from tangere.kinematics.checks import checked
from tangere.model.model import Array, Model

if TYPE_CHECKING:
    from tangere.robots import Robot

Form = Callable[..., tuple[Any, ...]]


def _forms(t: Trace, target: str) -> tuple[Form, Form]:
    """The kernel for one state and for a batch, by the emitter of that name."""
    compiled = runnable(target).compiled
    return (
        compiled(t.graph, ["x"], t.outputs, parameters="P", batch=False),
        compiled(t.graph, ["x"], t.outputs, parameters="P", batch=True),
    )


@cache
def _named(dof: int) -> dict[str, Kernel]:
    return {k.name: k for k in all_kernels(dof)}


@cache
def _ur_forms(name: str, target: str) -> tuple[Form, Form]:
    return _forms(trace(_named(ur.DOF)[name], ur.DOF, ur.chain, ur.PARAMETER_COUNT), target)


class TracedKernels:
    """All kernels of one model in Python; the methods have the names of the table.

    target: which emitter of kernels/emit makes the functions.
    """

    def __init__(
        self, model: Model, *, rotor_inertia: Array, nominal: Model | None = None, target: str = "python"
    ) -> None:
        self.model, self.target = model, target
        self.nominal = nominal  # a UR whose calibrated twin this is: its closed form starts the numeric search
        self.robot: Callable[[], Robot | None] = lambda: None  # weak: the robot owns its kernels
        self._kernels = _named(model.dof)
        self._is_ur = ur.is_ur(model)
        self._parameters = ur.parameters_of(model, rotor_inertia=rotor_inertia).tolist() if self._is_ur else []
        self._rotor = rotor_inertia
        self._chain: Chain | None = None  # made when it is first needed
        self._compiled: dict[str, tuple[Form, Form]] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        kernels = self.__dict__.get("_kernels", {})
        if name not in kernels:
            raise AttributeError(f"there is no kernel {name!r}")
        kernel = kernels[name]

        def call(*args: ArrayLike, **keywords: ArrayLike) -> Any:
            return self._call(kernel, args, keywords)

        call.__name__ = name
        call.__doc__ = kernel.help
        self.__dict__[name] = call
        return call

    def _functions(self, kernel: Kernel) -> tuple[Form, Form]:
        if self._is_ur:
            return _ur_forms(kernel.name, self.target)
        if kernel.name not in self._compiled:
            if self._chain is None:
                self._chain = chain_of(self.model, rotor_inertia=self._rotor)
            chain = self._chain
            self._compiled[kernel.name] = _forms(trace(kernel, self.model.dof, lambda _: chain, 0), self.target)
        return self._compiled[kernel.name]

    def _call(self, kernel: Kernel, args: tuple[ArrayLike, ...], keywords: dict[str, ArrayLike]) -> Any:
        if len(args) > len(kernel.inputs) or set(keywords) != set(kernel.inputs[len(args) :]):
            raise TypeError(f"{kernel.name}() takes the arguments {', '.join(kernel.inputs)}")
        values = [*args, *(keywords[name] for name in kernel.inputs[len(args) :])]
        sizes = kernel.input_sizes(self.model.dof)
        arrays = [checked(a, (s,), n) for a, n, s in zip(values, kernel.inputs, sizes, strict=True)]
        single, batch = self._functions(kernel)
        shapes = kernel.outputs(self.model.dof)
        if all(a.ndim == 1 for a in arrays):
            y = np.array(single([v for a in arrays for v in a.tolist()], self._parameters))
            outputs: list[Any] = [part.reshape(s) for part, s in zip(_split(y, shapes), shapes, strict=True)]
            outputs = [float(o) if s == () else o for o, s in zip(outputs, shapes, strict=True)]
        else:
            arrays = broadcast(*arrays)
            lead = arrays[0].shape[:-1]
            columns = batch([a[..., i] for a in arrays for i in range(a.shape[-1])], self._parameters)
            y = np.empty((*lead, len(columns)))
            for i, column in enumerate(columns):
                y[..., i] = column
            outputs = [part.reshape((*lead, *s)) for part, s in zip(_split(y, shapes), shapes, strict=True)]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def pose(self, q: ArrayLike, form: str = "matrix") -> Array:
        """T_base_tcp, or UR's x y z rx ry rz; angles that look like degrees are warned of."""
        T: Array = self._call(self._kernels["pose"], (q,), {})
        robot = self.robot()
        if robot is not None and np.any(np.abs(np.asarray(q)) > MANY_TURNS):
            far(robot, np.asarray(q, dtype=np.float64))
        return formed(T, form)

    def jacobian(self, q: ArrayLike, link: int | None = None, point: ArrayLike | None = None) -> Array:
        """Geometric Jacobian at the tcp, or at a point of a link (1 ... n)."""
        if link is None and point is None:
            result: Array = self._call(self._kernels["jacobian"], (q,), {})
            return result
        if link is None:
            raise InvalidValue(f"point: given without a link; a point is in the frame of link 1 ... {self.model.dof}")
        if not (isinstance(link, SupportsIndex) and 1 <= index(link) <= self.model.dof):
            raise InvalidValue(f"link: got {link!r}, valid are 1 to {self.model.dof}, or None for the tcp")
        at = np.zeros(3) if point is None else point
        result = self._call(self._kernels[f"jacobian_link{index(link)}"], (q, at), {})
        return result

    def inverse_kinematics(self, T: ArrayLike, reference: ArrayLike | None = None) -> IKSolutions | IKBatch:
        """Closed form for a UR; for a calibrated UR its closed form, polished; else a numeric search."""
        robot = self.robot()
        assert robot is not None
        poses = transforms(T)
        if self._is_ur:
            return closed_form(robot, self._parameters, poses, reference)
        return numeric(robot, self.nominal, poses, reference)


def _split(y: Array, shapes: tuple[tuple[int, ...], ...]) -> list[Array]:
    ends = np.cumsum([prod(s) for s in shapes])
    return np.split(y, ends[:-1], axis=-1)
