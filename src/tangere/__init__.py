"""Tangere: torque-level control and the sense of touch for Universal Robots arms."""

from typing import Any

from tangere.errors import (
    InvalidValue,
    MissingExtra,
    ModelFileError,
    NoSolution,
    TangereError,
    UnknownName,
    UnphysicalModel,
)
from tangere.kernels.solutions import IKBatch, IKSolutions
from tangere.model.loading import names as models
from tangere.model.model import Model, Payload
from tangere.robots import Robot, robot

__all__ = [
    "IKBatch",
    "IKSolutions",
    "InvalidValue",
    "MissingExtra",
    "Model",
    "ModelFileError",
    "NoSolution",
    "Payload",
    "Robot",
    "TangereError",
    "UnknownName",
    "UnphysicalModel",
    "models",
    "robot",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("tangere")
    raise AttributeError(f"module 'tangere' has no attribute {name!r}")
