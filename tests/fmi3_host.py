"""A host of FMI 3.0 for tests: a library by its functions, variables by name; statuses come back as they are.

A test file that imports this is skipped where fmpy or a C compiler is missing.
"""

from __future__ import annotations

import ctypes
import math
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fmpy", reason="needs fmpy (tangere[test])")
if shutil.which("cc") is None:
    pytest.skip("needs a C compiler", allow_module_level=True)

from fmpy import extract

LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
OK, WARNING, DISCARD, ERROR = 0, 1, 2, 3
_TYPES: dict[str, Any] = {"Float64": ctypes.c_double, "Int32": ctypes.c_int32, "Boolean": ctypes.c_bool}
_NUMPY: dict[str, Any] = {"Float64": np.float64, "Int32": np.int32, "Boolean": np.bool_}


class Host3:
    """One instance, for co-simulation or model exchange."""

    def __init__(self, path: Path, folder: Path, *, exchange: bool = False, token: str | None = None) -> None:
        self.folder = folder / path.stem
        if not self.folder.is_dir():
            extract(str(path), str(self.folder))
        self.root = ET.parse(self.folder / "modelDescription.xml").getroot()
        listed = self.root.find("ModelVariables")
        assert listed is not None
        self.variables = {str(v.get("name")): v for v in listed}
        identifier = self.root.find("CoSimulation").get("modelIdentifier")  # type: ignore[union-attr]
        self.lib = ctypes.CDLL(str(self.folder / "binaries" / "x86_64-linux" / f"{identifier}.so"))
        self.lib.fmi3GetVersion.restype = ctypes.c_char_p
        self.said: list[tuple[int, str]] = []
        self._log = LOG(lambda _, status, category, text: self.said.append((status, text.decode())))
        kind = "ModelExchange" if exchange else "CoSimulation"
        make = getattr(self.lib, f"fmi3Instantiate{kind}")
        make.restype = ctypes.c_void_p
        words = (b"block", (token or str(self.root.get("instantiationToken"))).encode(),
                 f"{self.folder / 'resources'}/".encode(), ctypes.c_bool(False), ctypes.c_bool(True))  # fmt: skip
        more = () if exchange else (ctypes.c_bool(False), ctypes.c_bool(False), None, ctypes.c_size_t(0))
        last = () if exchange else (None,)
        self.instance = make(*words, *more, None, self._log, *last)

    def call(self, name: str, *arguments: Any) -> int:
        """A function of the instance: its status."""
        return int(getattr(self.lib, f"fmi3{name}")(ctypes.c_void_p(self.instance), *arguments))

    def begin(self, start: float = 0.0) -> Host3:
        """Through initialisation."""
        flag, zero = ctypes.c_bool(False), ctypes.c_double(0.0)
        assert self.call("EnterInitializationMode", flag, zero, ctypes.c_double(start), flag, zero) == OK
        assert self.call("ExitInitializationMode") <= WARNING
        return self

    def size(self, name: str) -> int:
        """Number of elements of a variable."""
        return math.prod(int(str(d.get("start"))) for d in self.variables[name].findall("Dimension"))

    def reference(self, name: str) -> int:
        """Its value reference."""
        return int(str(self.variables[name].get("valueReference")))

    def get(self, name: str) -> np.ndarray:
        """A variable, flat."""
        kind, count = self.variables[name].tag, self.size(name)
        out = (_TYPES[kind] * count)()
        vr = (ctypes.c_uint32 * 1)(self.reference(name))
        status = self.call(f"Get{kind}", vr, ctypes.c_size_t(1), out, ctypes.c_size_t(count))
        assert status <= WARNING, self.said[-1:]
        return np.array(out, dtype=_NUMPY[kind])

    def set(self, name: str, values: Any) -> int:
        """A variable: the status."""
        kind = self.variables[name].tag
        flat = np.ravel(values).tolist()
        vr = (ctypes.c_uint32 * 1)(self.reference(name))
        given = (_TYPES[kind] * len(flat))(*flat)
        return self.call(f"Set{kind}", vr, ctypes.c_size_t(1), given, ctypes.c_size_t(len(flat)))

    def step(self, time: float, h: float) -> tuple[int, float]:
        """fmi3DoStep: its status and the last successful time."""
        flags = [ctypes.c_bool(True) for _ in range(3)]
        last = ctypes.c_double(math.nan)
        given = (ctypes.c_double(time), ctypes.c_double(h), ctypes.c_bool(True))
        status = self.call("DoStep", *given, *map(ctypes.byref, flags), ctypes.byref(last))
        return status, last.value

    def derivative(self, which: str, unknown: list[str], known: list[str], seed: Any) -> np.ndarray:
        """Directional or Adjoint derivative of whole variables."""
        seeds = np.ravel(seed)
        count = sum(self.size(name) for name in (unknown if which == "Directional" else known))
        out = (ctypes.c_double * count)()
        u, k = ((ctypes.c_uint32 * len(names))(*map(self.reference, names)) for names in (unknown, known))
        status = self.call(
            f"Get{which}Derivative", u, ctypes.c_size_t(len(unknown)), k, ctypes.c_size_t(len(known)),
            (ctypes.c_double * len(seeds))(*seeds), ctypes.c_size_t(len(seeds)), out, ctypes.c_size_t(count),
        )  # fmt: skip
        assert status == OK, self.said[-1:]
        return np.array(out)

    def names(self, causality: str, kind: str = "Float64") -> list[str]:
        """Variables of a causality and type."""
        return [n for n, v in self.variables.items() if v.get("causality") == causality and v.tag == kind]

    def close(self) -> None:
        """Give it back."""
        self.lib.fmi3FreeInstance(ctypes.c_void_p(self.instance))
