"""Laws with their memory: compiled where they can be, else the same graph printed as Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from tangere.errors import InvalidValue
from tangere.kernels import backend
from tangere.kernels.emit import runnable
from tangere.kernels.laws.task import POSE
from tangere.kernels.table import LAW_DOFS, LAWS, Law, trace_law
from tangere.kinematics.chain import chain_of
from tangere.kinematics.checks import checked
from tangere.model.model import Array

if TYPE_CHECKING:
    from tangere.robots import Robot


class Step(Protocol):
    """A law of the table (kernels.table.LAWS) that is stepped sample by sample."""

    @property
    def parameters(self) -> Array:
        """What the law is told once; may be written to."""

    @property
    def before(self) -> Array:
        """Inputs of the newest sample, then the state; may be written to."""

    @property
    def after(self) -> Array:
        """The state after the newest sample, then the outputs; overwritten with each."""

    def update(self, *inputs: Sequence[float] | Array) -> float:
        """Take a sample; the first output."""

    def rows(self, inputs: Array) -> Array:
        """Outputs (N, o) of inputs (N, i), one sample after the other."""


class TracedStep:
    """The same without a compiler; numbers may differ from it in their last digit."""

    def __init__(self, name: str, dof: int, parameters: Array, state: Array, arm: Robot | None = None) -> None:
        self._law = law = law_of(name)
        self._dof, self._arm = dof, arm
        self._inputs, self._state = sum(law.inputs(dof)), law.state(dof)
        self._function = _compiled(name, dof, arm)
        self.parameters = np.array(parameters, dtype=np.float64)
        self.before = np.concatenate((np.zeros(self._inputs), np.asarray(state, dtype=np.float64)))
        self.after = np.zeros(self._state + law.outputs(dof))
        sizes = (law.parameters(dof), self._inputs + self._state)
        if (len(self.parameters), len(self.before)) != sizes:
            raise InvalidValue(f"{name}: {sizes[0]} parameters and {self._state} numbers of state are needed")

    def update(self, *inputs: Sequence[float] | Array) -> float:
        """Take a sample; the first output."""
        for value, name, size in zip(inputs, self._law.names, self._law.inputs(self._dof), strict=False):
            checked(value, (4, 4) if size == POSE else (size,), name)
        self.before[: self._inputs] = np.concatenate([np.ravel(x) for x in inputs]) if inputs else ()
        self._step()
        return float(self.after[self._state]) if len(self.after) > self._state else 0.0

    def rows(self, inputs: Array) -> Array:
        """Outputs (N, o) of inputs (N, i), one sample after the other."""
        out = np.empty((len(inputs), len(self.after) - self._state))
        for k, row in enumerate(inputs):
            self.before[: self._inputs] = row
            self._step()
            out[k] = self.after[self._state :]
        return out

    def _step(self) -> None:
        for _ in range(self._law.rounds):
            self.after[:] = self._function(self.before.tolist(), self.parameters.tolist())
            self.before[self._inputs :] = self.after[: self._state]

    def __reduce__(self) -> Any:
        return TracedStep, (self._law.name, self._dof, self.parameters, self.before[self._inputs :], self._arm)


_made: dict[tuple[str, int], Any] = {}
_made_for: WeakKeyDictionary[Robot, dict[tuple[str, int], Any]] = WeakKeyDictionary()  # laws of one arm


def _compiled(name: str, dof: int, arm: Robot | None) -> Any:
    """The law as a Python function, made once for each number of joints, or for an arm: its numbers are folded in."""
    made = _made if arm is None else _made_for.setdefault(arm, {})
    if (name, dof) not in made:
        if arm is None:
            t = trace_law(law_of(name), dof)
        else:
            chain = chain_of(arm.model, rotor_inertia=arm.rotor_inertia)
            t = trace_law(law_of(name), dof, lambda _: chain)
        made[name, dof] = runnable("python").compiled(t.graph, ["x"], t.outputs, parameters="P", batch=False)
    return made[name, dof]


@cache
def law_of(name: str) -> Law:
    """The law of that name."""
    return next(law for law in LAWS if law.name == name)


def joints_of(dof: int) -> int:
    """The number of joints that a law is compiled for which serves an arm of dof joints; dof itself where none is."""
    return next((n for n in LAW_DOFS if dof <= n), dof) if backend.Step is not None else dof


def compiled_step(name: str, dof: int) -> Step | None:
    """A law without parameters and memory for exactly dof joints; None where it is not compiled for them."""
    return step(name, dof, np.zeros(0)) if backend.Step is not None and dof in LAW_DOFS else None


def step(name: str, dof: int, parameters: Array, state: Array | None = None) -> Step:
    """The law `name` for dof joints (of `joints_of`), from the given state or its start."""
    begin = np.array(law_of(name).start(dof)) if state is None else state
    if backend.Step is not None and dof in LAW_DOFS:
        made: Step = backend.Step(f"{name}_{dof}", parameters, begin)
        return made
    return TracedStep(name, dof, parameters, begin)


def arm_step(name: str, robot: Robot, parameters: Array) -> Step:
    """A law of an arm, from its start: compiled for a UR, calibrated or not, and other arms with six turning axes."""
    begin = np.array(law_of(name).start(robot.dof))
    numbers = robot.kernel_parameters
    if backend.Step is None or numbers is None:
        return TracedStep(name, robot.dof, parameters, begin, robot)
    arm = "ur" if robot.ur_kernels else "six"
    made: Step = backend.Step(f"{name}_{arm}", np.concatenate((numbers, parameters)), begin)
    return made
