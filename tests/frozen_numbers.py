"""What the frozen numbers of the library share: reading, writing and comparing them, and the table of all constants.

The numbers lie in tests/frozen/numbers/*.json. `python tests/frozen_numbers.py` writes them anew from the code as it
is; that is right only after a change that is meant to change numbers, and the difference then belongs into the review.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tangere

FOLDER = Path(__file__).resolve().parent / "frozen" / "numbers"
DIGITS = 15


def plain(value: Any) -> Any:
    """A value as JSON knows it: arrays as lists, floats with 15 digits, NaN and the infinities as words."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return float(f"{number:.{DIGITS}g}") if math.isfinite(number) else repr(number)
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()] if value.ndim else plain(value.item())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(v) for v in value), key=repr)
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value if value is None or isinstance(value, str) else f"<{type(value).__name__}>"


def load(name: str) -> Any:
    """The frozen numbers of that name."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def store(name: str, value: Any) -> None:
    """Write the numbers of that name, one entry to a line."""
    entries = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in plain(value).items())
    (FOLDER / f"{name}.json").write_text("{\n" + entries + "\n}\n")


def differences(is_: Any, was: Any, rtol: float, atol: float = 0.0, at: str = "") -> list[str]:
    """Each place where the two differ, in words; numbers within rtol of the larger of both, or within atol."""
    if isinstance(is_, dict) and isinstance(was, dict):
        found = [f"{at}: {k!r} is missing" for k in was if k not in is_]
        found += [f"{at}: {k!r} is new" for k in is_ if k not in was]
        return found + [d for k in was if k in is_ for d in differences(is_[k], was[k], rtol, atol, f"{at}.{k}")]
    if isinstance(is_, list) and isinstance(was, list):
        if len(is_) != len(was):
            return [f"{at}: {len(is_)} values, {len(was)} frozen"]
        pairs = enumerate(zip(is_, was, strict=True))
        return [d for k, (a, b) in pairs for d in differences(a, b, rtol, atol, f"{at}[{k}]")]
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (is_, was))
    same = abs(is_ - was) <= max(atol, rtol * max(abs(is_), abs(was))) if numbers else is_ == was
    return [] if same else [f"{at}: {is_!r}, frozen {was!r}"]


def check(name: str, value: Any, rtol: float = 1e-12, atol: float = 1e-12) -> None:
    """Fail with the first places where a value differs from the frozen numbers of that name."""
    found = differences(plain(value), load(name), rtol, atol, name)
    assert not found, f"{len(found)} differ: " + "; ".join(found[:8])


# --- every constant of the package ------------------------------------------------------------------------------


def _numeric(value: Any) -> bool:
    """Whether a value is a number or holds one (bools are none)."""
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, (int, float, np.integer, np.floating)):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iuf" and value.size > 0
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(_numeric(getattr(value, f.name)) for f in dataclasses.fields(value))
    if isinstance(value, Mapping):
        return any(_numeric(v) for v in (*value.keys(), *value.values()))
    return isinstance(value, (tuple, list, set, frozenset)) and any(_numeric(v) for v in value)


def _numbers(value: Any) -> Any:
    """What a value has of numbers, as JSON knows it: words and functions are no matter of this table."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _numbers(v) for k, v in value.items() if _numeric(v) or _numeric(k)}
    if isinstance(value, (tuple, list, set, frozenset)):
        values = [_numbers(v) for v in value if _numeric(v)]
        return sorted(values, key=repr) if isinstance(value, (set, frozenset)) else values
    return plain(value) if _numeric(value) else None


def _names(body: list[ast.stmt]) -> list[str]:
    """The names that statements assign, those below if, try and with included."""
    names = []
    for node in body:
        if isinstance(node, ast.Assign):
            names += [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            names.append(node.target.id)
        for part in ("body", "orelse", "finalbody"):
            if isinstance(node, (ast.If, ast.Try, ast.With)):
                names += _names(getattr(node, part, []))
    return list(dict.fromkeys(names))


def _attribute(kind: type, name: str) -> Any:
    """The value of a class attribute: of a field of a dataclass its default."""
    field = getattr(kind, "__dataclass_fields__", {}).get(name)
    if field is None:
        return vars(kind).get(name)
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else None


def _parameters(node: ast.FunctionDef, namespace: dict[str, Any]) -> list[tuple[str, Any]]:
    """The defaults of a function's parameters."""
    spec = node.args
    places = [*spec.posonlyargs, *spec.args]
    given = list(zip(places[len(places) - len(spec.defaults) :], spec.defaults, strict=True))
    given += [(a, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None]
    found = []
    for argument, default in given:
        try:
            value = eval(compile(ast.Expression(default), "default", "eval"), namespace)
        except (NameError, TypeError):
            continue
        found.append((f"{node.name.lstrip('_')}({argument.arg})", value))
    return found


# rooms that are younger than the list: their names may be those of other rooms, their numbers have tests of their own
YOUNGER = {
    ("ends",), ("ros2",), ("rtde",), ("script",), ("apps", "arm"), ("apps", "virtual_ur"), ("apps", "gym"), ("gym",),
    ("jax",), ("studio",),
}  # fmt: skip


def constants() -> Counter[tuple[str, str]]:
    """Every numeric constant of the package by name and value: of modules, classes, defaults of parameters.

    Modules are not named and leading underscores are dropped, so that moving or publishing a constant changes nothing.
    """
    found: Counter[tuple[str, str]] = Counter()

    def note(name: str, value: Any) -> None:
        if _numeric(value):
            found[name.lstrip("_"), json.dumps(_numbers(value), sort_keys=True)] += 1

    top = Path(str(tangere.__file__)).parent
    for file in sorted(top.rglob("*.py")):
        parts = file.relative_to(top).with_suffix("").parts
        if "generated" in parts or file.stem == "__main__" or {parts[:1], parts[:2]} & YOUNGER:
            continue
        tree = ast.parse(file.read_text())
        module = importlib.import_module(".".join(("tangere", *(p for p in parts if p != "__init__"))))
        for name in _names(tree.body):
            note(name, vars(module).get(name))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and isinstance(vars(module).get(node.name), type):
                kind = vars(module)[node.name]
                for name in _names(node.body):
                    note(f"{node.name.lstrip('_')}.{name}", _attribute(kind, name))
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for name, value in _parameters(node, vars(module)):
                    note(name, value)
    return found


def constants_table() -> dict[str, list[Any]]:
    """The constants as they are stored: name -> its values, each as often as it occurs, sorted."""
    table: dict[str, list[str]] = {}
    for (name, value), times in sorted(constants().items()):
        table.setdefault(name, []).extend([value] * times)
    return {name: [json.loads(v) for v in values] for name, values in table.items()}


def write() -> None:
    """Write every file of numbers anew."""
    import frozen_control
    import frozen_observe
    from test_figures import fmu_attributes

    store("constants", constants_table())
    for name, case in (frozen_control.CASES | frozen_observe.CASES | {"fmu_attributes": fmu_attributes}).items():
        store(name, case())


if __name__ == "__main__":
    write()
