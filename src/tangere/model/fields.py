"""Reading a model file: typed access to its fields, and errors that name the file and the field."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tangere import foreign
from tangere.errors import ModelFileError
from tangere.foreign import shown as _shown
from tangere.model.model import Array

MAX_NAME = 128  # characters; longer than any real joint name, short enough for a message


def check_name(name: str, file: str, where: str) -> str:
    """Return a name that is printable, not blank and at most 128 characters, or raise ModelFileError.

    Names are data only: they are shown, compared and escaped on export, never executed or used as a path.
    """
    if not name or len(name) > MAX_NAME or not name.isprintable() or name != name.strip():
        raise ModelFileError(
            f"{file}: {where} must be 1 to {MAX_NAME} printable characters, no blanks at its ends, got {name[:40]!r}"
        )
    return name


class Fields:
    """One table of a model file with its place in the file, so that every error can say where."""

    def __init__(self, data: Mapping[str, Any], file: str, place: str = "") -> None:
        self.data, self.file, self.place = data, file, place

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def error(self, key: str, message: str) -> ModelFileError:
        """The error that names this file and the field `key`."""
        return ModelFileError(f"{self.file}: field {self._where(key)} {message}")

    def _where(self, key: str) -> str:
        key = key if key.isprintable() and len(key) <= MAX_NAME else _shown(key)
        return f"{self.place}.{key}" if self.place else key

    def only(self, *known: str) -> None:
        """Raise if the table has a field that nobody reads: a typo must not be swallowed."""
        for key in self.data:
            if key not in known:
                raise self.error(key, f"is unknown; known here: {', '.join(known)}")

    def get(self, key: str) -> Any:
        """The raw value of a field that must be there."""
        if key not in self.data:
            raise self.error(key, "is missing")
        return self.data[key]

    def text(self, key: str) -> str:
        """A text field."""
        value = self.get(key)
        if not isinstance(value, str):
            raise self.error(key, f"must be a text, got {_shown(value)}")
        return value

    def name(self, key: str = "name") -> str:
        """A text field that serves as a name."""
        return check_name(self.text(key), self.file, f"field {self._where(key)}")

    def flag(self, key: str, default: bool = False) -> bool:
        """A field that is true or false."""
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, got {_shown(value)}")
        return value

    def number(self, key: str, *, finite: bool = True) -> float:
        """A number; with finite=False also inf and nan."""
        return self._number(key, self.get(key), finite)

    def _number(self, key: str, value: Any, finite: bool) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(key, f"must be a number, got {_shown(value)}")
        try:
            number = float(value)
        except OverflowError:  # an integer of more than 308 digits
            number = math.inf
        if finite and not math.isfinite(number):
            raise self.error(key, f"must be finite, got {_shown(value)}")
        return number

    def numbers(self, key: str, count: int, *, finite: bool = True) -> Array:
        """A list of `count` numbers, (count,)."""
        value = self.get(key)
        if not isinstance(value, list) or len(value) != count:
            raise self.error(key, f"must be a list of {count} numbers, got {_shown(value)}")
        return np.array([self._number(f"{key}[{i}]", entry, finite) for i, entry in enumerate(value)])

    def table(self, key: str) -> Fields:
        """A table inside this one."""
        value = self.get(key)
        if not isinstance(value, dict):
            raise self.error(key, f"must be a table, got {_shown(value)}")
        return Fields(value, self.file, self._where(key))

    def tables(self, key: str) -> Iterator[Fields]:
        """The tables of a list of tables, which must not be empty."""
        value = self.get(key)
        if not isinstance(value, list) or not value:
            raise self.error(key, f"must be a list of tables ([[{key}]]), got {_shown(value)}")
        for i, entry in enumerate(value):
            if not isinstance(entry, dict):
                raise self.error(f"{key}[{i}]", f"must be a table, got {_shown(entry)}")
            yield Fields(entry, self.file, self._where(f"{key}[{i}]"))


def read_text(path: Path) -> str:
    """The text of a file (UTF-8), or ModelFileError saying why not."""
    try:
        return foreign.read_text(path, kind=ModelFileError)
    except ModelFileError as problem:
        cause = problem.__cause__
        if isinstance(cause, UnicodeError) or cause is None:
            raise
        why = getattr(cause, "strerror", None) or cause  # a ValueError: a null character in the path
        raise ModelFileError(f"{foreign.clean(str(path))}: cannot be read: {why}") from cause


def read_toml(path: Path) -> Fields:
    """The root table of a TOML model file of schema version 1."""
    text = read_text(path)
    root = Fields(foreign.toml(text, path, ModelFileError), str(path))
    version = root.get("schema_version")
    if version != 1 or isinstance(version, bool):
        raise root.error("schema_version", f"must be 1, the only version there is, got {_shown(version)}")
    return root
