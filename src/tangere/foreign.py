"""The one boundary for data of others: files, streams and messages pass here before anything is unpacked.

What it keeps: sizes are judged by their headers first; depth, counts and memory have limits; what a library raises
becomes an error of ours that names the file and the place; what is repeated of a file is short and holds nothing that a
terminal obeys. `reading` is the net below all of it, for what no header says.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import Any, BinaryIO
from xml.etree import ElementTree

from tangere.errors import InvalidValue, TangereError

MB = 1_000_000  # [bytes]
LEAST = 50 * MB  # that reading may take, however small the file: libraries have tables of their own
TIMES = 20  # the file's size, that reading may take beyond LEAST
UNTOLD = 500 * MB  # above which nothing is read unless an option (--memory) allows more
SECONDS = 10.0  # [s] of computing for a file of up to PROMPT bytes; the largest real file of ours takes a third
PROMPT = 10 * MB
PER_MB = 0.3  # [s] for every MB beyond
DEPTH = 100  # levels of nesting: the deepest model file of ours has 4, of others 30
PARTS = 50  # of a dotted key in TOML; tomllib takes quadratic memory in them
DIGITS = 250  # of a number in TOML; a whole one of more, in hexadecimal digits, may be beyond what a float holds
TEXT_MAX = 10 * MB  # of a file of settings, a manifest or a model: the largest of ours has 30 kB
YAML_MAX = 1 * MB  # PyYAML takes 10 s for each
YAML_ITEMS = 20_000  # of a YAML file; a calibration has 50
ELEMENTS = 200_000  # of an XML file
FILES = 10_000  # in a zip archive; an FMU with sources and documentation has a hundred
LONGEST = 1_000_000  # characters of a line; more is no line of a log, whoever writes it
SHOWN = 80  # characters of a value that a message repeats
LINE = 600  # characters of an error line: more is not read

_allowed = UNTOLD
_told = False  # somebody has said how much may be taken: then that counts, whatever the file's size
_net = False  # the process is ours (the command line): its limits may be lowered while a file is read


def allow(size: int, *, net: bool = True) -> None:
    """Let reading take up to `size` [bytes]; net: `reading` may limit this whole process, that of a command."""
    global _allowed, _net, _told
    _allowed, _net, _told = max(int(size), LEAST), net, size != UNTOLD


def allowed() -> int:
    """[bytes] that reading may take, whatever the file."""
    return _allowed


def budget(size: int) -> int:
    """[bytes] that reading a file of `size` bytes may take."""
    return _allowed if _told else min(max(LEAST, TIMES * size), _allowed)


def seconds(size: int) -> float:
    """[s] of computing that reading a file of `size` bytes may take."""
    return SECONDS + PER_MB * max(0, size - PROMPT) / MB


def clean(text: str) -> str:
    """The text without characters that a terminal obeys (escapes, bells, direction marks), on one line."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def shown(value: object, most: int = SHOWN) -> str:
    """A value for a message: escaped, and not longer than a line."""
    try:
        text = clean(" ".join(str(value).split())) if isinstance(value, BaseException) else repr(value)
    except ValueError:  # Python refuses to write whole numbers of thousands of digits
        return "a whole number with thousands of digits"
    except RecursionError:
        return f"a {type(value).__name__} that holds itself"
    text = " ".join(text.split()) if "\n" in text else text  # an array's rows
    return text if len(text) <= most else f"{text[: most - 3]}..."


def line(text: str, most: int = LINE) -> str:
    """A sentence for the terminal: one line without escapes; a long one keeps its beginning and its end."""
    text = clean(" ".join(text.split()))
    return text if len(text) <= most else f"{text[: most - 200]} ... {text[-190:]}"


def file_name(text: str) -> str:
    """What a file of others calls itself, as the name of a file in the current folder: no path, nothing hidden."""
    return re.sub(r"[^\w.+-]+", "_", text).lstrip(".")[:SHOWN] or "_"


def names(given: Any, most: int = 12) -> str:
    """A list of names for a message: the first of them, each short, and how many more there are."""
    every = [clean(str(name)) for name in given]
    first = ", ".join(name if len(name) <= 60 else f"{name[:57]}..." for name in every[:most])
    return first + (f" and {len(every) - most} more" if len(every) > most else "")


def too_large(name: object, size: int, most: int, what: str = "has") -> InvalidValue:
    """The error for more bytes than are read."""
    raised = "; --memory allows more" if most == _allowed else ""
    return InvalidValue(f"{clean(str(name))}: {what} {size / MB:.6g} MB, at most {most / MB:.6g} are read{raised}")


@contextmanager
def reading(
    name: object, size: int = 0, kind: type[InvalidValue] = InvalidValue, *, limited: bool = True
) -> Iterator[None]:
    """While data of others is read: whatever is raised becomes an error of ours, `kind`, that names the file.

    In a command the process may take no more than `budget(size)` of memory and `seconds(size)` of computing meanwhile;
    in a program of others that only uses this library its limits are not touched. Nor are they with limited=False,
    for what is made of files whose reading was limited by itself.
    """
    shown_name = clean(str(name))
    try:
        with _limited(name, size) if limited else nullcontext():
            yield
    except (TangereError, ImportError):
        raise
    except MemoryError as problem:
        raise kind(
            f"{shown_name}: reading it takes more than {budget(size) / MB:.0f} MB, which no honest file of "
            f"{size / MB:.3g} MB needs; --memory SIZE allows more" if _net else
            f"{shown_name}: reading it takes more memory than there is"
        ) from problem  # fmt: skip
    except RecursionError as problem:
        raise kind(f"{shown_name}: is nested too deeply to be read") from problem
    except OSError as problem:
        raise kind(f"cannot read {shown_name}: {problem.strerror or shown(problem)}") from problem
    except UnicodeError as problem:
        at = f" at byte {problem.start}" if isinstance(problem, UnicodeDecodeError) else ""
        raise kind(f"{shown_name}: is not text: {getattr(problem, 'reason', problem)}{at}") from problem
    except Exception as problem:
        if "bad_alloc" in str(problem):  # a C++ library that was given no memory
            raise kind(f"{shown_name}: reading it takes more than {budget(size) / MB:.0f} MB") from problem
        raise kind(f"{shown_name}: is damaged or not what its name says ({shown(problem) or type(problem).__name__})") \
            from problem  # fmt: skip


@contextmanager
def _limited(name: object, size: int) -> Iterator[None]:
    """The net: less memory and computing time for the process, and as before afterwards."""
    if not _net or threading.current_thread() is not threading.main_thread() or signal.getitimer(_TIMER)[0]:
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    used = _data()

    def late(signum: int, frame: FrameType | None) -> None:
        raise InvalidValue(f"{clean(str(name))}: reading it takes more than {seconds(size):.0f} s of computing")

    if used:
        most = used + budget(size) + LEAST  # libraries that are first loaded meanwhile have their part, too
        soft = most if before[0] == resource.RLIM_INFINITY else min(most, before[0])
        resource.setrlimit(resource.RLIMIT_DATA, (soft, before[1]))
    handler = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(_TIMER, seconds(size))
    try:
        yield
    finally:
        signal.setitimer(_TIMER, 0.0)
        signal.signal(signal.SIGVTALRM, handler)
        resource.setrlimit(resource.RLIMIT_DATA, before)


_TIMER = getattr(signal, "ITIMER_VIRTUAL", 0)  # counts the process's own computing: a busy machine makes no file bad


def _data() -> int:
    """[bytes] of writable memory that this process has, 0 where the system does not say."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            return next((int(row.split()[1]) * 1024 for row in status if row.startswith("VmData")), 0)
    except OSError:
        return 0


def read_bytes(path: str | os.PathLike[str], most: int | None = None, kind: type[InvalidValue] = InvalidValue) -> bytes:
    """All bytes of a file; of one that has more than `most` none. Pipes and devices end there, too."""
    limit = _allowed if most is None else min(most, _allowed)
    name = clean(os.fspath(path))
    try:
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(size + 1) if size <= limit else b""
            # a pipe says no size; what is asked for is taken from memory at once, so never much more than there is
            while size <= limit and len(data) <= limit and (more := file.read(min(max(MB, len(data)), limit))):
                data += more
    except OSError as problem:
        raise kind(f"cannot read {name}: {problem.strerror or problem}") from problem
    except ValueError as problem:  # a null character in the path
        raise kind(f"cannot read {os.fspath(path)!r}: {problem}") from problem
    if max(size, len(data)) > limit:
        raise kind(str(too_large(name, max(size, len(data)), limit)))
    return data


def decoded(data: bytes, name: object, kind: type[InvalidValue] = InvalidValue) -> str:
    """The text of UTF-8 bytes, a byte order mark taken off."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise kind(f"{clean(str(name))}: is not UTF-8 text: {problem.reason} at byte {problem.start}") from problem


def read_text(
    path: str | os.PathLike[str], most: int = TEXT_MAX, kind: type[InvalidValue] = InvalidValue
) -> str:  # fmt: skip
    """The text of a file (UTF-8)."""
    return decoded(read_bytes(path, most, kind), os.fspath(path), kind)


def standard_input() -> str:
    """The text of a pipe, which may be without end."""
    data = sys.stdin.buffer.read(TEXT_MAX + 1)
    if len(data) > TEXT_MAX:
        raise too_large("standard input", len(data), TEXT_MAX, "has more than")
    return decoded(data, "standard input")


def lines(stream: BinaryIO, told: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Lines of a pipe or a file, with their ends; bytes that are no UTF-8 are replaced.

    A line is cut after LONGEST characters, and `told` is called: what never ends must not fill the memory.
    """
    first, long = True, False
    while piece := stream.readline(LONGEST):
        whole = piece.endswith(b"\n")
        if not long:
            text = piece.decode("utf-8-sig" if first else "utf-8", errors="replace")
            yield text if whole or len(piece) < LONGEST else text + "\n"
        if not whole and len(piece) >= LONGEST and not long:
            told()
        first, long = False, not whole and len(piece) >= LONGEST


def toml(
    text: str, name: object, kind: type[InvalidValue] = InvalidValue, said: str = ": is not valid TOML"
) -> dict[str, Any]:
    """A TOML document; keys of more than 50 parts and deep nesting are refused before they cost anything."""
    import tomllib

    for number, row in enumerate(text.splitlines(), 1):
        if row.count(".") > PARTS and any(key.count(".") > PARTS for key in re.split(r"[=,\[\]{}]", row)):
            raise kind(f"{clean(str(name))}, line {number}: a key of more than {PARTS} parts is not read")
        if re.search(rf"[\da-fA-F_]{{{DIGITS},}}", row):
            raise kind(f"{clean(str(name))}, line {number}: a number of {DIGITS} digits or more is not read")
    if _deep(text):
        raise kind(f"{clean(str(name))}{said}: more than {DEPTH} levels of nesting are not read")
    try:
        with reading(name, len(text), kind):
            return tomllib.loads(text)
    except InvalidValue as problem:
        if isinstance(problem.__cause__, ValueError | RecursionError):  # TOMLDecodeError says line and column
            raise kind(f"{clean(str(name))}{said}: {shown(problem.__cause__, 200)}") from problem.__cause__
        raise


def _deep(text: str) -> bool:
    """Whether brackets are open more than DEPTH deep: parsers recurse there. Those in quotes count, too."""
    depth = deepest = 0
    for sign in text if text.count("[") + text.count("{") > DEPTH else "":
        if sign in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in "]}":
            depth = max(depth - 1, 0)
    return deepest > DEPTH


def _whole(digits: str) -> int | float:
    """A whole number of a JSON text; beyond 64 bits, which is more than arrays take, as a float."""
    number = int(digits) if len(digits) <= 20 else 2**63
    return number if -(2**63) <= number < 2**63 else float(digits)


def loads(text: str | bytes, name: object, kind: type[InvalidValue] = InvalidValue) -> Any:
    """What a JSON text holds."""
    try:
        with reading(name, len(text), kind):
            found = json.loads(text, parse_int=_whole)
    except InvalidValue as problem:
        if isinstance(problem.__cause__, ValueError):
            raise kind(f"{clean(str(name))}: is not valid JSON: {shown(problem.__cause__, 200)}") from problem.__cause__
        raise
    return found


def yaml(text: str, name: object, module: Any, kind: type[InvalidValue] = InvalidValue) -> Any:
    """What a YAML text holds: plain values, no tags that make objects, no aliases; module: PyYAML."""
    if len(text) > YAML_MAX:
        raise kind(str(too_large(name, len(text), YAML_MAX)))
    try:
        with reading(name, len(text), kind):
            depth = 0
            for count, event in enumerate(module.parse(text, Loader=module.SafeLoader)):
                depth += isinstance(event, module.CollectionStartEvent) - isinstance(event, module.CollectionEndEvent)
                if isinstance(event, module.AliasEvent):
                    raise kind(f"{clean(str(name))}, line {event.start_mark.line + 1}: an alias (*) is not accepted")
                if depth > DEPTH or count > YAML_ITEMS:
                    raise kind(f"{clean(str(name))}: more than {DEPTH} levels or {YAML_ITEMS} items are not read")
            return module.safe_load(text)
    except InvalidValue as problem:
        if isinstance(problem.__cause__, module.YAMLError | ValueError):
            raise kind(f"{clean(str(name))}: is not valid YAML: {shown(problem.__cause__, 200)}") from problem.__cause__
        raise


class _Counted(ElementTree.TreeBuilder):
    """A tree that stops growing at its limits."""

    def __init__(self, name: object, elements: int, kind: type[InvalidValue]) -> None:
        super().__init__()
        self._name, self._most, self._kind, self._count, self._depth = clean(str(name)), elements, kind, 0, 0

    def start(self, tag: Any, attrs: Any, /) -> Any:
        self._count += 1
        self._depth += 1
        if self._count > self._most or self._depth > 10 * DEPTH:
            raise self._kind(f"{self._name}: more than {self._most} elements or {10 * DEPTH} levels are not read")
        return super().start(tag, attrs)

    def end(self, tag: Any, /) -> Any:
        self._depth -= 1
        return super().end(tag)

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise self._kind(f"{self._name}: a document type is not accepted")


def xml(
    data: bytes | str, name: object, *, elements: int = ELEMENTS, kind: type[InvalidValue] = InvalidValue
) -> ElementTree.Element:
    """The root of an XML document without document type; elements: how many are read."""
    try:
        with reading(name, len(data), kind):
            parser = ElementTree.XMLParser(target=_Counted(name, elements, kind))
            for at in range(0, len(data), 1 << 16):  # piece by piece, so that a limit ends it
                parser.feed(data[at : at + (1 << 16)])
            root: ElementTree.Element = parser.close()
            return root
    except InvalidValue as problem:
        if isinstance(problem.__cause__, ElementTree.ParseError | LookupError):
            said = shown(problem.__cause__, 200)
            raise kind(f"{clean(str(name))}: is not well-formed XML: {said}") from problem.__cause__
        raise


def archive(path: str | os.PathLike[str], *, most: int | None = None, kind: type[InvalidValue] = InvalidValue) -> \
        zipfile.ZipFile:  # fmt: skip
    """An opened zip file whose directory was judged: how many files, how large unpacked, where their names lead."""
    name = clean(os.fspath(path))
    try:
        data = read_bytes(path, None, kind)
        with reading(name, len(data), kind):
            opened = zipfile.ZipFile(io.BytesIO(data))
    except InvalidValue as problem:
        if problem.__cause__ is not None and not isinstance(problem.__cause__, OSError):
            raise kind(f"{name}: not a zip file that can be read ({shown(problem.__cause__)})") from problem.__cause__
        raise
    entries = opened.infolist()
    if len(entries) > FILES:
        raise kind(f"{name}: holds {len(entries)} files, at most {FILES} are read")
    limit = budget(len(data)) if most is None else most
    for entry in entries:
        parts = PurePosixPath(entry.filename.replace("\\", "/")).parts
        if entry.filename.startswith(("/", "\\")) or ".." in parts or (parts and ":" in parts[0]):
            raise kind(f"{name}: the name {shown(entry.filename)} leads out of the archive")
        if entry.external_attr >> 28 == 0xA:
            raise kind(f"{name}: {shown(entry.filename)} is a link, which is not followed")
    if (total := sum(entry.file_size for entry in entries)) > limit:
        raise kind(str(too_large(name, total, limit, "unpacks to")))
    return opened


def member(opened: zipfile.ZipFile, entry: str, name: object, kind: type[InvalidValue] = InvalidValue) -> bytes:
    """The bytes of one file of an archive, as many as its directory says and no more."""
    size = opened.getinfo(entry).file_size
    with reading(f"{name}:{entry}", size, kind), opened.open(entry) as file:
        data = file.read(size + 1)
    if len(data) != size:
        raise kind(f"{clean(str(name))}: {shown(entry)} is not as long as the archive says")
    return data
