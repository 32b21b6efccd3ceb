"""SVG files as text: known by their content, their document type taken off; nothing is fetched or expanded."""

from __future__ import annotations

import re
from pathlib import Path


def is_svg(source: str | Path | bytes) -> bool:
    """Whether a file (or its bytes) is an SVG: by its content, by its name where it cannot be read."""
    named = not isinstance(source, bytes) and Path(source).suffix.lower() == ".svg"
    try:
        head = source[:4096] if isinstance(source, bytes) else read_bytes(Path(source), 4096)
    except OSError:
        return named
    text = head.decode("utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1", errors="ignore")
    return "<svg" in text or (named and text.lstrip("\ufeffï»¿ \t\r\n").startswith(("<?xml", "<!--", "<!DOCTYPE")))


def without_dtd(text: str, notes: dict[str, int]) -> str:
    """The document without its document type: short plain entities are filled in, every other is dropped and noted."""
    found = re.search(r"<!DOCTYPE[^\[>]*(\[.*?\]\s*)?>", text, flags=re.DOTALL)
    if not found:
        return text
    rest = text[: found.start()] + text[found.end() :]
    subset = found.group(1) or ""
    plain = {}
    for entity, _, value in re.findall(r"<!ENTITY\s+([\w.:-]+)\s+([\"'])(.*?)\2\s*>", subset, flags=re.DOTALL):
        # drawing programs name their namespaces this way; anything nested or long is no such name
        if len(value) <= 100 and "&" not in value and "<" not in value:
            plain[entity] = value
    if len(re.findall(r"<!ENTITY", subset)) > len(plain):
        notes["entities of the document type were ignored"] = 1
    if rest.count("&") > 10_000:
        plain = {}
    known = {"amp", "lt", "gt", "quot", "apos"}

    def fill(match: re.Match[str]) -> str:
        entity = match.group(1)
        return match.group(0) if entity in known or entity.startswith("#") else plain.get(entity, "")

    return re.sub(r"&([\w.:#-]+);", fill, rest)


def text_of(data: bytes) -> str:
    """The document as text, without the declaration of its encoding."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16")
    else:
        declared = re.match(rb"(?:\xef\xbb\xbf)?\s*<\?xml[^>]*encoding=[\"']([\w-]+)", data[:200])
        text = data.decode(declared.group(1).decode() if declared else "utf-8").lstrip("\ufeff")
    return re.sub(r"^\s*<\?xml[^>]*\?>", "", text, count=1).lstrip()


def read_bytes(path: Path, size: int) -> bytes:
    """The first `size` bytes of a file."""
    with path.open("rb") as file:
        return file.read(size)


def shown_svg(data: bytes) -> bytes:
    """An SVG as a page may hold it in an image: without document type, scripts and handlers of events."""
    text = without_dtd(text_of(data), {})
    text = re.sub(r"<script\b.*?(</script\s*>|/>)", "", text, flags=re.DOTALL | re.IGNORECASE)
    return re.sub(r"\son\w+\s*=\s*(\"[^\"]*\"|'[^']*')", "", text, flags=re.IGNORECASE).encode("utf-8")
