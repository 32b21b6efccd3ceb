"""An FMU under test, driven by fmpy: variables by the names of their groups, messages kept.

A test file that imports this is skipped where fmpy or a C compiler is missing.
"""

from __future__ import annotations

import ctypes
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fmpy", reason="needs fmpy (tangere[test])")
if shutil.which("cc") is None:
    pytest.skip("needs a C compiler", allow_module_level=True)

from fmpy import calloc, extract, free, read_model_description
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import (
    FMU2Model,
    FMU2Slave,
    fmi2CallbackAllocateMemoryTYPE,
    fmi2CallbackFreeMemoryTYPE,
    fmi2CallbackFunctions,
    fmi2CallbackLoggerTYPE,
)

import tangere
from tangere.apps.fmu.build import LINUX
from tangere.apps.fmu.package import Written, write_fmu
from tangere.dynamics.friction import JointFriction


class Block:
    """One instance. get("q") is the whole group; set("q", values); step(h) in co-simulation."""

    def __init__(
        self, written: Written, folder: Path, *, exchange: bool = False, begin: bool = True, logging: bool = True
    ) -> None:
        self.written = written
        self.unzipped = folder / written.guid.strip("{}")
        if not self.unzipped.is_dir():  # never over a library that is loaded
            extract(str(written.path), str(self.unzipped))
        self.description = read_model_description(str(self.unzipped))
        make = FMU2Model if exchange else FMU2Slave
        self.fmu = make(
            guid=self.description.guid,
            unzipDirectory=str(self.unzipped),
            modelIdentifier=written.kind.identifier(written.arm),
            instanceName="block",
        )
        self.messages: list[tuple[int, str, str]] = []
        self._callbacks = fmi2CallbackFunctions()
        self._callbacks.logger = fmi2CallbackLoggerTYPE(self._log)
        self._callbacks.allocateMemory = fmi2CallbackAllocateMemoryTYPE(calloc)
        self._callbacks.freeMemory = fmi2CallbackFreeMemoryTYPE(free)
        self.fmu.instantiate(callbacks=self._callbacks, loggingOn=logging)
        self.time = 0.0
        self._places = {p.group.name: p for p in written.table}
        if begin:
            self.begin()

    def _log(self, environment: Any, name: bytes, status: int, category: bytes, message: bytes) -> None:
        self.messages.append((status, category.decode(), message.decode()))

    def begin(self, **start: Any) -> Block:
        """Through initialisation, with parameters set before."""
        for name, value in start.items():
            self.set(name, value)
        self.fmu.setupExperiment(startTime=0.0)
        self.fmu.enterInitializationMode()
        self.fmu.exitInitializationMode()
        return self

    def references(self, name: str) -> list[int]:
        """Value references of a group."""
        p = self._places[name]
        return list(range(p.reference, p.reference + p.group.size))

    def get(self, name: str) -> Any:
        """The group in its shape."""
        p = self._places[name]
        read = {"Real": self.fmu.getReal, "Boolean": self.fmu.getBoolean}.get(p.group.kind, self.fmu.getInteger)
        values = np.array(read(self.references(name)))
        return values.reshape(p.group.shape) if p.group.shape else values[0]

    def set(self, name: str, values: Any) -> None:
        """The whole group."""
        p = self._places[name]
        write = {"Real": self.fmu.setReal, "Boolean": self.fmu.setBoolean}.get(p.group.kind, self.fmu.setInteger)
        flat = np.ravel(np.asarray(values, dtype=float if p.group.kind == "Real" else int)).tolist()
        write(self.references(name), flat)

    def step(self, h: float = 1e-3) -> None:
        """One communication step."""
        self.fmu.doStep(currentCommunicationPoint=self.time, communicationStepSize=h)
        self.time += h

    def directional(self, unknown: str, known: str, direction: Any) -> Any:
        """Rate of a group for a direction of another."""
        p = self._places[unknown]
        rates = self.fmu.getDirectionalDerivative(
            self.references(unknown), self.references(known), np.ravel(direction).tolist()
        )
        return np.array(rates).reshape(p.group.shape)

    def state(self) -> bytes:
        """The whole state, serialised."""
        kept = self.fmu.getFMUstate()
        data = bytes(self.fmu.serializeFMUstate(kept))
        self.fmu.freeFMUstate(kept)
        return data

    def restore(self, data: bytes) -> None:
        """Go back to a state."""
        kept = self.fmu.deSerializeFMUstate(data)
        self.fmu.setFMUstate(kept)
        self.fmu.freeFMUstate(kept)

    def close(self) -> None:
        """End."""
        self.fmu.freeInstance()


# what two files of tests share

EXACT = 1e-12  # the same arithmetic in the same order: what differs is how the parameters were folded
ROBOT = tangere.robot(
    "ur10e",
    tool=[0.01, 0.02, 0.13, 0.3, -0.2, 0.5],
    payload=(2.0, (0.01, 0.02, 0.03), np.diag([0.01, 0.02, 0.015])),
    gravity="wall",
    rotor_inertia=True,
)
FRICTION = JointFriction.of(ROBOT.drives)
FORCE = np.array([5.0, -3.0, 8.0, 0.2, 0.3, -0.1])


def refused(call: Any, *arguments: Any) -> int:
    """The status that the call is refused with."""
    with pytest.raises(FMICallException) as problem:
        call(*arguments)
    return problem.value.status


class Maker:
    """Blocks of an arm by kind; each file is written once, when it is first asked for."""

    def __init__(self, folder: Path, robot: tangere.Robot | None = None) -> None:
        self.folder = folder
        self.robot, self.friction = (ROBOT, FRICTION) if robot is None else (robot, None)
        self.files: dict[str, Written] = {}

    def block(self, kind: str, **options: Any) -> Block:
        """A block with the options of `Block`."""
        if kind not in self.files:
            out = self.folder / f"{kind}.fmu"
            self.files[kind] = write_fmu(kind, self.robot, out, friction=self.friction, platforms=(LINUX,))
        return Block(self.files[kind], self.folder, **options)

    def __call__(self, kind: str, *, exchange: bool = False, **start: Any) -> Block:
        """An initialised block with these start values."""
        return self.block(kind, exchange=exchange, begin=False).begin(**start)


def states(block: Block) -> np.ndarray:
    x = (ctypes.c_double * 12)()
    block.fmu.getContinuousStates(x, 12)
    return np.array(x)


def place(block: Block, x) -> None:
    block.fmu.setContinuousStates((ctypes.c_double * 12)(*x), 12)


def continuous(block: Block) -> Block:
    block.fmu.newDiscreteStates()
    block.fmu.enterContinuousTimeMode()
    return block


def difference(read, write, x, d, h=2e-3, levels=4):
    """Slope of read() along d at x by central differences of h, h/2, h/4, ... extrapolated to 0 (Romberg); x restored.

    Four levels leave an error of order h^8: 1e-8 of the slope even where dry friction turns round within 0.02 rad/s;
    the smallest difference is long enough that rounding of some 1e-13 becomes 1e-9.
    """
    rows = []
    for k in range(levels):
        step = h / 2**k
        write(x + step * d)
        up = read()
        write(x - step * d)
        rows.append((up - read()) / (2 * step))
    write(x)
    for k in range(1, levels):
        rows = [(4**k * b - a) / (4**k - 1) for a, b in pairwise(rows)]
    return rows[0]


def same_slope(rate, found, relative=1e-7):
    """Within 1e-7 of max(1, |value|)."""
    found = np.asarray(found)
    assert np.abs(rate - found).max() <= relative * max(1.0, np.abs(found).max())
