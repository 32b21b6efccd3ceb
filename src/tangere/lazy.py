"""Packages that load what they offer when it is first asked for (PEP 562).

What a package offers stands once, in the `__init__.pyi` beside its `__init__.py`, as ordinary imports: type checkers
and editors read them there, and so does `attach` at the first question. Nothing is read or loaded before.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def offered(package: str, stub: Path) -> dict[str, tuple[str, str]]:
    """Name -> (module, name there) for each import from our own modules in a package's stub.

    `from PACKAGE import folder` offers a module whole: its name there is "".
    """
    found: dict[str, tuple[str, str]] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tangere":
            for alias in node.names:
                whole = node.module == package
                where = (f"{package}.{alias.name}", "") if whole else (node.module, alias.name)
                found[alias.asname or alias.name] = where
    return found


def attach(package: str, more: Sequence[str] = ()) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package; more: names that the package makes itself.

        __getattr__, __dir__ = attach(__name__)

    A module or folder inside the package that the stub does not offer is found too, and not shown.
    """
    names: dict[str, tuple[str, str]] = {}

    def known() -> dict[str, tuple[str, str]]:
        if not names:
            names.update(offered(package, Path(str(sys.modules[package].__file__)).with_name("__init__.pyi")))
        return names

    def find(name: str) -> Any:
        if name == "__all__":
            return sorted(known())
        if name.startswith("_") or (name not in known() and find_spec(f"{package}.{name}") is None):
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        module, attribute = names.get(name, (f"{package}.{name}", ""))
        loaded = import_module(module)
        value = getattr(loaded, attribute) if attribute else loaded
        setattr(sys.modules[package], name, value)  # asked once
        return value

    def listed() -> list[str]:
        return sorted({*known(), *more, "__doc__", "__file__", "__name__", "__path__"})

    return find, listed
