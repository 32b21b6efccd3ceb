"""Links of a folder of HTML pages: which lead nowhere, and which would ask another computer for something."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("link", "href")}


class _Page(HTMLParser):
    """What a page links to, loads, and which anchors it has."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[tuple[str, str]] = []  # tag, address
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "link" and found.get("rel") in ("canonical", "prev", "next"):
            return
        for name in ("id", "name"):
            if value := found.get(name):
                self.anchors.add(value)
        for name in ("href", "src"):
            if value := found.get(name):
                self.targets.append((tag, value))


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _has(page: Path, anchor: str) -> bool:
    """Whether a page has an anchor; those with two underscores are made by the theme's script."""
    return not anchor or anchor.startswith("__") or anchor in _read(page).anchors


def dead(folder: Path) -> list[str]:
    """One line for each link to a file or anchor that is not there, and for each thing loaded from elsewhere."""
    _read.cache_clear()
    found = []
    for path in sorted(folder.rglob("*.html")):
        if path.name == "404.html":  # its addresses are absolute: a server shows it at any depth
            continue
        for tag, target in _read(path).targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if any((tag, name) in LOADED for name in ("src", "href")) and parts.scheme != "data":
                    found.append(f"{path.relative_to(folder)}: loads {target}")
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if goal.is_dir():
                goal = goal / "index.html"
            if not goal.is_file():
                found.append(f"{path.relative_to(folder)}: no file {target}")
            elif goal.suffix == ".html" and not _has(goal, unquote(parts.fragment)):
                found.append(f"{path.relative_to(folder)}: no anchor {target}")
    for path in sorted(folder.rglob("*.css")):
        for address in re.findall(r"url\([\"']?(https?:[^)\"']+)", path.read_text(encoding="utf-8")):
            found.append(f"{path.relative_to(folder)}: loads {address}")
    return found


def counted(folder: Path) -> tuple[int, int]:
    """Pages, and pictures that pages show."""
    pages = [path for path in folder.rglob("*.html") if path.name != "404.html"]
    pictures = {
        (path.parent / unquote(target)).resolve()
        for path in pages
        for tag, target in _read(path).targets
        if tag in ("img", "video") and not target.startswith("data:") and "assets" not in target
    }
    return len(pages), len(pictures)
