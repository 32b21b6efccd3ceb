"""Which kernels serve: the compiled ones where they were built, else the Python form, saying so once.

TANGERE_KERNELS=python in the environment asks for the Python form.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from tangere.kernels.inverse_kinematics import batch_answer, rescue
from tangere.kernels.shapes import broadcast, far, formed, refuse, transforms
from tangere.kernels.solutions import FoundSolutions, IKSolutions

COMPILED = False
Momentum: Any = None  # the compiled momentum observer, where there is one
Step: Any = None  # a compiled law with its memory, where there is one
if TYPE_CHECKING:
    from tangere._kernels import Answer, Kernels, register
elif os.environ.get("TANGERE_KERNELS") != "python":
    try:
        from tangere._kernels import Answer, Kernels, Momentum, Step, register

        COMPILED = True
    except ImportError:
        pass

__all__ = ["COMPILED", "Kernels", "Momentum", "Step", "kernel", "say_once"]

Method = TypeVar("Method", bound=Callable[..., Any])

if COMPILED:

    class ClosedFormSolutions(IKSolutions, Answer):
        """Solutions that live in the compiled answer; arrays are built when they are asked for."""

        __slots__ = ()

        def __len__(self) -> int:
            return self.count

    register(ClosedFormSolutions, batch_answer, rescue, broadcast, refuse, far, formed, transforms, FoundSolutions)

elif not TYPE_CHECKING:

    class Kernels:
        """What the compiled type of that name is, where there is none: `traced` computes everything."""

        __slots__ = ("_traced",)

        def __init__(self, parameters: object, traced: object = None) -> None:
            if traced is None:
                raise TypeError("the Python form needs traced kernels")
            self._traced = traced

        @property
        def compiled(self) -> bool:
            """Whether compiled kernels compute: never here."""
            return False

        ur_kernels = compiled


def kernel(declared: Method) -> Method:
    """The method of a robot that computes what `declared` says: the compiled one of that name, or the Python form's.

    `declared` has signature and docstring, and no body. The compiled method takes its place as it is: declaring it
    costs a call nothing.
    """
    name = declared.__name__
    if COMPILED:
        compiled: Method = getattr(Kernels, name)
        return compiled

    @wraps(declared)
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        return getattr(self._traced, name)(*args, **keywords)

    return method  # type: ignore[return-value]  # what wraps() gives has the signature of `declared`


_said = False


def say_once() -> None:
    """Warn, the first time only, that the slow form computes."""
    global _said
    if not COMPILED and not _said:
        _said = True
        warnings.warn(
            "tangere's compiled kernels are not available (no C compiler at installation, or TANGERE_KERNELS=python): "
            "the Python form computes the same, about 20 times slower per call",
            RuntimeWarning,
            stacklevel=4,
        )
