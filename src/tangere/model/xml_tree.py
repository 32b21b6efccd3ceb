"""A small, safe XML reader: elements with attributes, no document types, no entities, nothing fetched."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np

from tangere.errors import ModelFileError
from tangere.model.fields import check_name, read_text
from tangere.model.model import Array


@dataclass
class Element:
    """One XML element and its place in the file, so that every error can say where."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    children: list[Element] = field(default_factory=list)

    def error(self, message: str) -> ModelFileError:
        """The error that names this file and this element."""
        name = self.attributes.get("name", "")
        shown = f" {name[:40]!r}" if name else ""
        return ModelFileError(f"{self.file}, line {self.line}: <{self.tag}>{shown} {message}")

    def all(self, tag: str) -> Iterator[Element]:
        """Children with this tag, in the order of the file."""
        return (child for child in self.children if child.tag == tag)

    def maybe(self, tag: str) -> Element | None:
        """The child with this tag, or None; two of them are an error."""
        found = list(self.all(tag))
        if len(found) > 1:
            raise found[1].error(f"appears twice in <{self.tag}>")
        return found[0] if found else None

    def child(self, tag: str) -> Element:
        """The child with this tag, which must be there."""
        found = self.maybe(tag)
        if found is None:
            raise self.error(f"has no <{tag}>")
        return found

    def text(self, key: str) -> str:
        """An attribute that must be there."""
        if key not in self.attributes:
            raise self.error(f"has no attribute {key}")
        return self.attributes[key]

    def name(self, key: str = "name") -> str:
        """An attribute that serves as a name: printable, at most 128 characters."""
        return check_name(self.text(key), self.file, f"line {self.line}: attribute {key} of <{self.tag}>")

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number."""
        if default is not None and key not in self.attributes:
            return default
        return float(self._numbers(key, self.text(key), 1)[0])

    def numbers(self, key: str, count: int, default: tuple[float, ...]) -> Array:
        """`count` finite numbers separated by blanks; the default where the attribute is absent."""
        return self._numbers(key, self.attributes[key], count) if key in self.attributes else np.array(default)

    def _numbers(self, key: str, text: str, count: int) -> Array:
        try:
            values = [float(word) for word in text.split()]
        except ValueError:
            values = []
        if len(values) != count or not all(math.isfinite(value) for value in values):
            raise self.error(f"needs {count} finite number{'s' * (count > 1)} in {key}, got {text[:60]!r}")
        return np.array(values)


def read_xml(path: Path) -> Element:
    """The root element of an XML file.

    A document type is refused before any entity in it is looked at, so entity bombs and external entities do nothing.
    """
    parser = expat.ParserCreate("utf-8")  # whatever the file declares: read_text has decoded it
    roots: list[Element] = []
    stack: list[Element] = []

    def refuse(*_: object) -> None:
        raise ModelFileError(
            f"{path}, line {parser.CurrentLineNumber}: a document type or entity declaration is not accepted in a model"
        )

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, str(path), parser.CurrentLineNumber)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(_: str) -> None:
        stack.pop()

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(read_text(path).encode(), True)
    except expat.ExpatError as problem:
        raise ModelFileError(f"{path}: is not well-formed XML: {problem}") from problem
    return roots[0]
