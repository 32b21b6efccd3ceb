"""What a scenario can be told: keys with units, from the command line or a TOML file, checked before anything moves.

A value is a number in SI units (angles in degrees where the key says so), or a text with its unit: "150 mm", "2 ms",
"20 Nm". A unit of another kind, an unknown key or a value that is no number is refused with the valid ones.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tangere.errors import InvalidValue, ModelFileError, UnknownName

# unit -> (kind, factor to SI)
UNITS: dict[str, tuple[str, float]] = {
    "s": ("time", 1.0), "ms": ("time", 1e-3), "us": ("time", 1e-6), "min": ("time", 60.0),
    "m": ("length", 1.0), "mm": ("length", 1e-3), "cm": ("length", 1e-2),
    "rad": ("angle", 1.0), "deg": ("angle", math.pi / 180.0),
    "m/s": ("speed", 1.0), "mm/s": ("speed", 1e-3),
    "rad/s": ("rate", 1.0), "deg/s": ("rate", math.pi / 180.0),
    "Nm": ("torque", 1.0), "N": ("force", 1.0), "kg": ("mass", 1.0), "N/m": ("stiffness", 1.0),
    "N/mm": ("stiffness", 1e3),
    "Hz": ("frequency", 1.0), "1/s": ("gain", 1.0), "1/s2": ("stiffness of the error", 1.0),
}  # fmt: skip
_SI = {"time": "s", "length": "m", "angle": "rad", "rate": "rad/s", "torque": "Nm", "force": "N", "mass": "kg",
       "speed": "m/s", "stiffness": "N/m", "frequency": "Hz", "gain": "1/s",
       "stiffness of the error": "1/s2"}  # fmt: skip


@dataclass(frozen=True)
class Key:
    """One thing that can be set."""

    kind: str  # a kind of unit, "number", "count", "word" or "flag"
    default: Any
    help: str
    choices: tuple[str, ...] = ()  # for words
    size: tuple[int, ...] = ()  # lengths that a list may have (it becomes a tuple); empty: one number, no list

    @property
    def unit(self) -> str:
        """SI unit, "" for a plain number."""
        return _SI.get(self.kind, "")


def value_of(name: str, key: Key, given: Any) -> Any:
    """The given value in SI, checked; lists as tuples."""
    if given is None:
        return None
    if key.kind == "word":
        if not isinstance(given, str) or (key.choices and given not in key.choices):
            valid = ", ".join(key.choices) if key.choices else "a text"
            raise InvalidValue(f"{name}: got {given!r}, valid: {valid}")
        return given
    if key.kind == "flag":
        words = {"on": True, "off": False, "true": True, "false": False}
        found = words.get(given.lower()) if isinstance(given, str) else given
        if not isinstance(found, bool):
            raise InvalidValue(f"{name}: got {given!r}, valid: on, off")
        return found
    parts = _parts(given)
    if key.size:
        if len(parts) not in key.size:
            raise InvalidValue(f"{name}: {' or '.join(map(str, key.size))} numbers, got {len(parts)}: {given!r}")
        return tuple(_number(name, key, part) for part in parts)
    if len(parts) != 1:
        raise InvalidValue(f"{name}: one number, got {given!r}")
    number = _number(name, key, parts[0])
    if key.kind == "count" and number != int(number):
        raise InvalidValue(f"{name}: a whole number, got {given!r}")
    return int(number) if key.kind == "count" else number


def _parts(given: Any) -> list[Any]:
    if isinstance(given, str):
        parts = given.split(",") if "," in given else given.split("/") if _is_list(given) else [given]
        *before, unit = [_split(part)[1] for part in parts]
        if unit and not any(before):  # "700, 100, 300 mm": a unit at the end alone is that of all
            parts = [*(f"{part} {unit}" for part in parts[:-1]), parts[-1]]
        return [part.strip() for part in parts]
    if isinstance(given, Sequence):
        return list(given)
    return [given]


def _is_list(text: str) -> bool:
    """Whether a text is several numbers: 0.7/0.1/0.3 (units such as rad/s are no lists)."""
    *before, last = text.split("/")
    return bool(before) and all(_is_number(part) for part in [*before, _split(last)[0]])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _split(text: str) -> tuple[str, str]:
    """Number and unit: "150 mm" or "150mm"; a text that does not begin with a number has no unit."""
    number, _, unit = text.strip().partition(" ")
    if not unit and not _is_number(number):
        end = next((i for i, c in enumerate(number) if c.isalpha() and c not in "eE"), len(number))
        number, unit = number[:end], number[end:]
    return (number, unit.strip()) if _is_number(number) else (text.strip(), "")


def _number(name: str, key: Key, given: Any) -> float:
    if isinstance(given, bool):
        raise InvalidValue(f"{name}: a number, got {given!r}")
    text, factor = given, 1.0
    if isinstance(given, str):
        text, unit = _split(given)
        if unit:
            kind, factor = UNITS.get(unit, ("", 1.0))
            if kind != key.kind:
                fitting = ", ".join(u for u, (k, _) in UNITS.items() if k == key.kind) or "none"
                raise InvalidValue(f"{name}: {given!r} has the unit {unit!r}, valid units: {fitting}")
    try:
        number = float(text) * factor
    except (TypeError, ValueError):
        example = f", e.g. 1 or '1 {key.unit}'" if key.unit else ""
        raise InvalidValue(f"{name}: a number{example}, got {given!r}") from None
    except OverflowError:  # a whole number beyond every float
        number = math.inf
    if not math.isfinite(number):
        raise InvalidValue(f"{name}: a finite number, got {given!r}")
    return number


def merged(keys: Mapping[str, Key], *layers: Mapping[str, Any]) -> dict[str, Any]:
    """All settings: defaults, then each layer over the one before."""
    values = {name: key.default for name, key in keys.items()}
    for layer in layers:
        for name, given in layer.items():
            if name not in keys:
                close = ", ".join(sorted(keys))
                raise UnknownName(f"unknown setting {name!r}; known: {close}")
            values[name] = value_of(name, keys[name], given)
    return values


def read_scenario(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A scenario file: TOML with `scenario = "circle"` and settings, all at the top level; push may be a list."""
    file = Path(path)
    try:
        with file.open("rb") as stream:
            data = tomllib.load(stream)
    except OSError as problem:
        raise ModelFileError(f"cannot read {file}: {problem.strerror or problem}") from None
    except ValueError as problem:  # of TOML, or bytes that are no UTF-8
        raise ModelFileError(f"{file} is no TOML: {problem}") from None
    if not isinstance(data.get("scenario"), str):
        raise ModelFileError(f'{file}: the field scenario is missing, e.g. scenario = "circle"')
    return data


def assignments(texts: Sequence[str]) -> dict[str, str]:
    """--set key=value ... as a mapping."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InvalidValue(f"--set takes key=value, got {text!r}")
        found[name.strip()] = value.strip()
    return found
