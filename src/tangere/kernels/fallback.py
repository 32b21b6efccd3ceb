"""The classes of the compiled extension in Python, for machines where it could not be built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tangere.kernels.table import KERNELS


class Arm:
    """Same methods as tangere._kernels.Arm; everything is computed by `traced`."""

    __slots__ = ("_traced",)

    def __init__(self, parameters: object, traced: object = None) -> None:
        if traced is None:
            raise TypeError("the Python form needs traced kernels")
        self._traced = traced

    @property
    def compiled(self) -> bool:
        """Whether the compiled kernels compute: never here."""
        return False


def _method(name: str, text: str) -> Callable[..., Any]:
    def method(self: Arm, *args: Any, **keywords: Any) -> Any:
        return getattr(self._traced, name)(*args, **keywords)

    method.__name__, method.__doc__ = name, text
    return method


for _kernel in KERNELS:
    setattr(Arm, _kernel.name, _method(_kernel.name, _kernel.help))
setattr(Arm, "inverse_kinematics", _method("inverse_kinematics", "All solutions of the pose T_base_tcp."))  # noqa: B010
