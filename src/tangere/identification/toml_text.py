"""Plain values as TOML text that reads back to the same values."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tangere.errors import InvalidValue

_WIDTH = 118  # characters of a line from which on a list gets a line per entry


def table(name: str, values: Mapping[str, Any]) -> list[str]:
    """Lines of [name] and of the tables inside it: plain entries first, as TOML asks, then tables and lists of them."""
    inner = {key: value for key, value in values.items() if _is_table(value)}
    lines = [f"[{name}]"]
    for key, value in values.items():
        if key not in inner and value is not None:
            lines += _entry(key, value)
    lines.append("")
    for key, value in inner.items():
        for part in [value] if isinstance(value, Mapping) else value:
            lines += table(f"{name}.{_key(key)}", part)
            if not isinstance(value, Mapping):
                lines[lines.index(f"[{name}.{_key(key)}]")] = f"[[{name}.{_key(key)}]]"
    return lines


def value_text(value: Any) -> str:
    """One value on one line: text, truth, number, or a list of these."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ("nan" if math.isnan(value) else f"{value:+f}")
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=True)  # its escapes are TOML's as well, up to \uXXXX
    if isinstance(value, Sequence):
        return "[" + ", ".join(value_text(entry) for entry in value) + "]"
    raise InvalidValue(f"a model file holds texts, numbers, truths, lists and tables, got {value!r}")


def _entry(key: str, value: Any) -> list[str]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    text = f"{_key(key)} = {value_text(value)}"
    if len(text) <= _WIDTH or not isinstance(value, Sequence) or isinstance(value, str):
        return [text]
    return [f"{_key(key)} = [", *(f"  {value_text(entry)}," for entry in value), "]"]


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def _is_table(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, Sequence) and len(value) > 0 and all(isinstance(entry, Mapping) for entry in value)
