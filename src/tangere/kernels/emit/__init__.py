"""Emitters: each prints traced kernels for one target and is one file here, called like the target.

An emitter of functions that run in this process (python) offers `compiled`; one that prints text for a compiler (c)
offers `function`. A new target is a new file: nothing lists them by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol, cast

from tangere.errors import UnknownName

if TYPE_CHECKING:
    from tangere.codegen.trace import Graph, Symbol


class Runnable(Protocol):
    """An emitter of functions that run in this process."""

    def compiled(
        self, graph: Graph, inputs: Sequence[str], outputs: Sequence[Symbol], *, parameters: str, batch: bool
    ) -> Callable[..., tuple[Any, ...]]:
        """A function `kernel(inputs..., parameters)` of lists, which gives the outputs as a flat tuple.

        batch: whether the entries of the inputs are arrays instead of numbers.
        """


def targets() -> tuple[str, ...]:
    """Names of all emitters."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def runnable(target: str) -> Runnable:
    """The emitter of that name; UnknownName where there is none, or where it only prints text."""
    known = targets()
    module = import_module(f"{__name__}.{target}") if target in known else None
    if not hasattr(module, "compiled"):
        raise UnknownName(f"no emitter {target!r} of functions that run here; emitters: {', '.join(known)}")
    return cast(Runnable, module)
