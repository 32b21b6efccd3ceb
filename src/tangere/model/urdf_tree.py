"""The links and joints of a URDF file as a checked tree, before an arm is cut out of it.

Read by a small, safe XML reader: elements with attributes, no document types, no entities, nothing fetched. Beside it
the writer of XML elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np

from tangere import foreign
from tangere.errors import ModelFileError
from tangere.model.fields import check_name, read_text
from tangere.model.frames import TURNS_MAX, rotation_rpy, transform
from tangere.model.inertia import inertia_matrix
from tangere.model.model import Array, Link


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


def element(name: str, attributes: Mapping[str, str | None], children: Iterable[list[str]] = ()) -> list[str]:
    """Lines of an XML element with its children, indented; an attribute that is None is left out."""
    words = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items() if value is not None)
    inside = ["  " + line for child in children for line in child]
    return [f"<{name}{words}>", *inside, f"</{name}>"] if inside else [f"<{name}{words}/>"]


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

    count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > foreign.ELEMENTS:
            raise ModelFileError(
                f"{path}, line {parser.CurrentLineNumber}: more than {foreign.ELEMENTS} elements are not read"
            )
        element = Element(tag, attributes, str(path), parser.CurrentLineNumber)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(_: str) -> None:
        stack.pop()

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    text = read_text(path)
    try:
        with foreign.reading(path, len(text), ModelFileError):
            parser.Parse(text.encode(), True)
    except ModelFileError as problem:
        if isinstance(problem.__cause__, expat.ExpatError):
            raise ModelFileError(f"{path}: is not well-formed XML: {problem.__cause__}") from problem.__cause__
        raise
    return roots[0]


_KINDS = ("revolute", "continuous", "prismatic", "fixed")


@dataclass(frozen=True)
class Edge:
    """A URDF joint between two links."""

    name: str
    kind: str  # revolute, continuous, prismatic or fixed
    parent: str
    child: str
    T_parent_child: Array  # (4, 4) at zero
    element: Element


@dataclass(frozen=True)
class Tree:
    """All links (bodies in their own URDF frame, mass 0 where the file gives none) and joints."""

    file: str
    name: str
    root: str
    links: dict[str, Link]
    edges: tuple[Edge, ...]
    children: dict[str, list[Edge]]

    def way(self, link: str) -> list[Edge]:
        """The joints from the root to a link."""
        above = {edge.child: edge for edge in self.edges}
        found: list[Edge] = []
        while link != self.root:
            found.insert(0, above[link])
            link = above[link].parent
        return found

    def below(self, link: str) -> list[str]:
        """A link and everything fixed to it."""
        found = [link]
        for name in found:
            found += [edge.child for edge in self.children[name] if edge.kind == "fixed"]
        return found


def read_tree(path: Path) -> Tree:
    """Read and check a URDF file: known joint types, existing links, unique names, one root, no loop."""
    robot = read_xml(path)
    if robot.tag != "robot":
        raise robot.error("is not a URDF, whose root element is <robot>")
    links: dict[str, Link] = {}
    for element in robot.all("link"):
        link = _link(element)
        if link.name in links:
            raise element.error("is defined twice")
        links[link.name] = link
    edges = tuple(_edge(element, links) for element in robot.all("joint"))
    children: dict[str, list[Edge]] = {name: [] for name in links}
    parents: dict[str, Edge] = {}
    for i, edge in enumerate(edges):
        if any(edge.name == other.name for other in edges[:i]):
            raise edge.element.error("is defined twice")
        if edge.child in parents:
            raise edge.element.error(
                f"closes a loop: its child {edge.child!r} already hangs on joint {parents[edge.child].name!r}"
            )
        parents[edge.child] = edge
        children[edge.parent].append(edge)
    roots = [name for name in links if name not in parents]
    tree = Tree(str(path), robot.name(), roots[0] if roots else "", links, edges, children)
    _check_connected(tree, roots)
    return tree


def _check_connected(tree: Tree, roots: list[str]) -> None:
    if not tree.links:
        raise ModelFileError(f"{tree.file}: has no <link>")
    if not roots:
        raise ModelFileError(f"{tree.file}: the joints form a loop, no link is the root")
    if len(roots) > 1:
        raise ModelFileError(f"{tree.file}: has several roots, {', '.join(roots)}; one arm has one")
    reached = [tree.root]
    for name in reached:
        reached += [edge.child for edge in tree.children[name]]
    loose = [name for name in tree.links if name not in set(reached)]
    if loose:
        raise ModelFileError(f"{tree.file}: the links {', '.join(loose)} form a loop apart from {tree.root!r}")


def _origin(element: Element) -> Array:
    part = element.maybe("origin")
    if part is None:
        return np.eye(4)
    zero = (0.0, 0.0, 0.0)
    turn = part.numbers("rpy", 3, zero)
    if np.max(np.abs(turn)) > TURNS_MAX:
        raise part.error(f"has an angle beyond {TURNS_MAX:g} rad in rpy")
    return transform(rotation_rpy(*turn.tolist()), part.numbers("xyz", 3, zero))


def _link(element: Element) -> Link:
    name = element.name()
    part = element.maybe("inertial")
    if part is None:
        return Link(name, 0.0, np.zeros(3), np.zeros((3, 3)))
    mass, entries = part.child("mass").number("value"), part.child("inertia")
    if mass < 0.0:
        raise part.child("mass").error(f"of link {name!r} must not be negative, got {mass:g}")
    tensor = inertia_matrix(*(entries.number(key) for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")))
    T = _origin(part)
    R = T[:3, :3]
    inertia = R @ tensor @ R.T
    return Link(name, mass, T[:3, 3].copy(), 0.5 * (inertia + inertia.T))


def _edge(element: Element, links: dict[str, Link]) -> Edge:
    name, kind = element.name(), element.text("type")
    if kind not in _KINDS:
        raise element.error(f"has type {kind[:40]!r}; accepted: {', '.join(_KINDS)}")
    if element.maybe("mimic") is not None:
        raise element.error("mimics another joint, which a serial arm cannot")
    parent, child = (element.child(tag).text("link") for tag in ("parent", "child"))
    for link in (parent, child):
        if link not in links:
            raise element.error(f"names the link {link[:40]!r}, which does not exist")
    return Edge(name, kind, parent, child, _origin(element), element)
