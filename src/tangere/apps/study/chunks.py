"""Results of tasks as files, one each, written as they are done: a study goes on after any end.

A chunk is plain JSON of our own result types: nothing in it is executed when it is read. What is not whole, or belongs
to another plan, counts as not there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tangere.apps.study.trials import Answer, Collided, FreeResult, Injected, TouchResult
from tangere.errors import CannotWrite
from tangere.kernels import backend
from tangere.logs.files import plain, write_text

FOLDER = "chunks"
_TYPES: dict[str, Any] = {one.__name__: one for one in (FreeResult, Injected, TouchResult, Answer, Collided)}


def versions() -> dict[str, str]:
    """What must be the same wherever a task is done: it decides the bits."""
    import tangere

    kernels = "compiled" if backend.COMPILED else "in Python"
    python = sys.version.split()[0]
    return {"tangere": tangere.__version__, "numpy": np.__version__, "python": python, "kernels": kernels}


class Chunks:
    """The chunks of one plan in the folder of a study."""

    def __init__(self, folder: Path, plan: Mapping[str, Any]) -> None:
        self.folder = folder / FOLDER
        told = json.dumps({"plan": plain(plan), "versions": versions()}, sort_keys=True)
        self.digest = hashlib.sha256(told.encode()).hexdigest()[:16]
        self.error = ""  # why nothing more is kept

    def _path(self, task: int) -> Path:
        return self.folder / f"{self.digest}-{task:07d}.json"

    def get(self, task: int) -> Any:
        """The result of a task, None where it has not been done."""
        try:
            found = _decoded(json.loads(self._path(task).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        touches = isinstance(found, tuple) and all(isinstance(one, TouchResult) for one in found)
        return found if touches or isinstance(found, FreeResult | Collided) else None

    def put(self, task: int, result: Any) -> None:
        """Keep a result: whole under its name, or not at all. A full disk costs chunks, never the study."""
        if self.error:
            return
        try:
            self.folder.mkdir(exist_ok=True)
            write_text(self._path(task), json.dumps(_encoded(result)) + "\n")
        except (OSError, CannotWrite) as problem:
            self.error = str(problem)

    def clear(self) -> None:
        """The study is whole: its chunks go."""
        with suppress(OSError):
            shutil.rmtree(self.folder)


def _encoded(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        inner = {entry.name: _encoded(getattr(value, entry.name)) for entry in fields(value)}
        return {"type": type(value).__name__, "of": inner}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.name, "shape": list(value.shape)}
    if isinstance(value, tuple | list):
        return [_encoded(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(one) for one in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"], dtype=value["dtype"]).reshape(value["shape"])
    return _TYPES[value["type"]](**{name: _decoded(one) for name, one in value["of"].items()})
