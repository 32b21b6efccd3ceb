"""Which kernels serve: the compiled ones where they were built, else the Python form, saying so once.

TANGERE_KERNELS=python in the environment asks for the Python form.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from tangere.kernels.inverse_kinematics import batch_answer, rescue
from tangere.kernels.shapes import broadcast, refuse
from tangere.kernels.solutions import IKSolutions

COMPILED = False
Momentum: Any = None  # the compiled momentum observer, where there is one
TipLaw: Any = None  # the compiled arithmetic of hybrid force-motion control, where there is one
if TYPE_CHECKING:
    from tangere._kernels import Answer, Arm, register
elif os.environ.get("TANGERE_KERNELS") == "python":
    from tangere.kernels.fallback import Arm
else:
    try:
        from tangere._kernels import Answer, Arm, Momentum, TipLaw, register

        COMPILED = True
    except ImportError:
        from tangere.kernels.fallback import Arm

__all__ = ["COMPILED", "Arm", "Momentum", "TipLaw", "say_once"]

if COMPILED:

    class ClosedFormSolutions(IKSolutions, Answer):
        """Solutions that live in the compiled answer; arrays are built when they are asked for."""

        __slots__ = ()

        def __len__(self) -> int:
            return self.count

    register(ClosedFormSolutions, batch_answer, rescue, broadcast, refuse)

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
