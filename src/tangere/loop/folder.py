"""The folder of a run: how it is found and made ready without touching what is not ours, locked while it is written,
and manifest.json, which says how the run was made, so that it can be made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tangere import foreign
from tangere.errors import CannotWrite, InvalidValue
from tangere.logs.files import InUse, locked, plain, write_text
from tangere.logs.log import Log

PROGRAM = "tangere"  # the mark of a manifest that is ours: other programs have files of that name, too
FORMAT = 1  # of the file; raised when a reader of the old form would misread the new one
MANIFEST = "manifest.json"
# packages whose version can change the numbers of a run
PACKAGES = ("tangere", "numpy", "mujoco", "ruckig")
LOG, CSV, SUMMARY, REPORT, VIDEO = "log.mcap", "log.csv", "summary.json", "report.html", "video.mp4"
MOST = 10_000  # folders of one name that are looked at: out/circle-2, out/circle-3, ...
# columns that are measured time, not part of what is computed
CLOCK = ("cost", "cost_log", "lateness", "cpu")
# samples up to which a run leaves a csv beside its MCAP without being asked: 2 kB each, and 0.1 ms of writing
CSV_MAX = 20_000


OURS = (SUMMARY, REPORT, LOG, CSV, VIDEO)  # what a run leaves beside its manifest, what makes it look whole first


def holds(out: str | os.PathLike[str]) -> bool:
    """Whether an earlier run or drawing lies in a folder: one whose manifest.json is ours."""
    try:
        load_manifest(Path(out) / MANIFEST)
    except InvalidValue:
        return False
    return True


@contextmanager
def scratch() -> Iterator[str]:
    """A folder for a run that is made again, gone afterwards."""
    place = tempfile.mkdtemp(prefix="tangere-rerun-")
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def difference(one: Log, other: Log) -> str:
    """ "" if every column is the same bit by bit (the clock's aside); else the first that is not."""
    for name in dict.fromkeys((*one.columns, *other.columns)):
        if name in CLOCK:
            continue
        if name not in one:
            return f"column {name}: none against {other[name].shape}"
        if name not in other or one[name].shape != other[name].shape:
            return f"column {name}: {one[name].shape} against {other[name].shape if name in other else 'none'}"
        same = np.array_equal(one[name].view(np.uint64), other[name].view(np.uint64))
        if not same:
            row = int(np.argmax(np.any(np.atleast_2d((one[name] != other[name]).T).T, axis=-1)))
            return f"column {name} from {one.time[row]:.6f} s on"
    return ""


@dataclass(frozen=True)
class Manifest:
    """Versions, platform, models, seeds, command and scenario of a run."""

    command: tuple[str, ...]  # the command line, word by word
    scenario: Mapping[str, Any]  # everything that the run was told, as plain data
    seeds: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)  # "plant", "controller" -> model_hash
    versions: Mapping[str, str] = field(default_factory=dict)
    platform: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)  # of the scenario's settings, where they have one
    did: str = ""  # what the arm did, after its name: "drew a circle"
    changed: tuple[str, ...] | None = None  # settings that are not at their defaults; None: not known
    bodies: tuple[
        Mapping[str, Any], ...
    ] = ()  # what stood around the arm: name, kind, parts (kind, size, T row by row)

    @classmethod
    def of(
        cls,
        command: Sequence[str],
        scenario: Mapping[str, Any],
        *,
        seeds: Mapping[str, int] | None = None,
        models: Mapping[str, Any] | None = None,
        units: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Manifest:
        """Of a run on this machine; models: name -> tangere.Robot or model, hashed here; more: any other field."""
        hashes = {name: model_hash(model) for name, model in (models or {}).items()}
        rest = (dict(seeds or {}), hashes, versions(), machine(), dict(units or {}))
        return cls(tuple(command), dict(scenario), *rest, **more)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that can change the numbers; "" where one is not installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = ""
    return found


def machine() -> dict[str, str]:
    """Platform that the bits of a run may depend on; nothing that names the machine or its user."""
    return {"system": platform.system(), "machine": platform.machine(), "byteorder": sys.byteorder}


def model_hash(model: Any) -> str:
    """SHA-256 of every number and name of a model (or of a robot's model and its rotor inertia), as 64 hex digits.

    Two models with the same hash compute the same; where a number came from (sources) does not count.
    """
    digest = hashlib.sha256()
    inner = getattr(model, "model", None)
    if inner is not None:
        _feed(digest, np.asarray(model.rotor_inertia))
        model = inner
    _feed(digest, model)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    if is_dataclass(value):
        for part in fields(value):
            if part.name != "sources":
                digest.update(f"{part.name}=".encode())
                _feed(digest, getattr(value, part.name))
    elif isinstance(value, tuple | list):
        digest.update(f"[{len(value)}]".encode())
        for entry in value:
            _feed(digest, entry)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.shape}".encode())
        digest.update(np.ascontiguousarray(value, dtype="<f8").tobytes())
    elif isinstance(value, float):
        digest.update(np.float64(value).tobytes())
    else:
        digest.update(f"{value!r};".encode())


def write_manifest(manifest: Manifest, folder: str | os.PathLike[str]) -> Path:
    """Write folder/manifest.json, whole or not at all."""
    path = Path(folder) / MANIFEST
    write_json({"program": PROGRAM, "format": FORMAT, **asdict(manifest)}, path)
    return path


def load_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Read folder/manifest.json (or that file itself)."""
    path = Path(folder)
    path = path / MANIFEST if path.is_dir() else path
    text = foreign.read_bytes(path, foreign.TEXT_MAX)
    try:
        data = foreign.loads(text, path)
    except InvalidValue as problem:
        raise InvalidValue(f"{path} is no manifest: {foreign.shown(problem.__cause__ or problem, 200)}") from problem
    ours = isinstance(data, dict) and data.pop("program", PROGRAM) == PROGRAM  # older ones do not say
    if not ours or data.pop("format", None) != FORMAT:
        raise InvalidValue(f"{path} is no manifest of format {FORMAT}, the one that this version reads")
    known = {part.name for part in fields(Manifest)}
    if not {"command", "scenario"} <= set(data) <= known:
        raise InvalidValue(f"{path}: fields {foreign.names(sorted(data))}, expected {', '.join(sorted(known))}")
    for part in fields(Manifest):
        kind: Any = {"command": list, "did": str, "changed": list, "bodies": list}.get(part.name, dict)
        given = data.get(part.name, kind())
        if not isinstance(given, kind) and not (part.name == "changed" and given is None):
            raise InvalidValue(f"{path}: field {part.name} has another type than a manifest's")
    if not all(isinstance(word, str) for word in data["command"]):
        raise InvalidValue(f"{path}: field command has another type than a manifest's")
    lists = {key: tuple(data[key]) for key in ("command", "changed", "bodies") if isinstance(data.get(key), list)}
    return Manifest(**{**data, **lists})


def write_json(data: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write JSON that every reader accepts: floats by their shortest exact form, NaN and infinity as null."""
    write_text(path, json.dumps(plain(data), indent=2, allow_nan=False, ensure_ascii=False) + "\n")


class _Lock:
    """No other process works in a folder while this object lives; it ends with the process, however that ends."""

    def __init__(self, folder: Path) -> None:
        if sys.platform == "win32":
            return
        self._fd = os.open(folder, os.O_RDONLY)
        if not locked(self._fd):
            raise InUse(folder, "--out")

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            with suppress(OSError):
                os.close(self._fd)


_held: WeakValueDictionary[tuple[int, int], _Lock] = WeakValueDictionary()  # locks of this process, by folder


def _locked(folder: Path) -> _Lock:
    about = folder.stat()
    lock = _held.get((about.st_dev, about.st_ino))
    if lock is None:
        lock = _held[about.st_dev, about.st_ino] = _Lock(folder)
    return lock


class Claim:
    """The folder `path`, made, proven writable and locked as long as this object lives.

    ours: names that a run leaves there, what makes the folder look whole first. Those of an earlier run are removed,
    files of others stay: where some of these names are there without a manifest.json of ours it is not the folder of a
    run (InvalidValue), unless all of them are `harmless`. what: "run", "drawing", for the message. fresh: an earlier
    run stays, too: the folder is then out-2, out-3, ...
    """

    def __init__(
        self,
        out: str | os.PathLike[str],
        ours: Sequence[str],
        *,
        what: str = "run",
        harmless: Collection[str] = (),
        fresh: bool = False,
    ) -> None:
        self.asked, self._what = Path(out), what
        self.path, self.replaced = self.asked, False  # replaced: an earlier run was there
        try:
            for path in _names(self.asked) if fresh else [self.asked]:
                self.path = path
                self.path.mkdir(parents=True, exist_ok=True)
                try:
                    self._lock = _locked(self.path)
                except InUse:
                    if not fresh:
                        raise
                    continue
                there = [name for name in (*ours, MANIFEST) if (self.path / name).exists()]
                if not (fresh and there):
                    break
            else:
                raise InvalidValue(f"{self.asked} and {MOST} more of the name are taken; choose another --out")
            self.replaced = holds(self.path)
            if there and not self.replaced and not set(there) <= set(harmless):
                also = "" if MANIFEST in there else f" but no {MANIFEST}"
                raise InvalidValue(
                    f"{self.path} holds {', '.join(there)}{also} of others: not the folder of a {what}, so nothing is "
                    "overwritten there; choose another --out"
                )
            with tempfile.NamedTemporaryFile(dir=self.path):
                pass
            for name in (*ours, MANIFEST):
                (self.path / name).unlink(missing_ok=True)
                for stray in self.path.glob(f".{name}.*.part"):  # of a run that was killed
                    stray.unlink(missing_ok=True)
        except OSError as problem:
            raise CannotWrite(f"cannot write into {self.path}: {problem.strerror or problem}") from None

    @property
    def said(self) -> str:
        """What became of an earlier run, in a sentence; "" where there was none."""
        if self.path != self.asked:
            return f"{self.asked} is taken: this {self._what} is in {self.path} (--replace replaces what is there)"
        return f"{self.path} held an earlier {self._what}, which this one replaced" if self.replaced else ""


def _names(folder: Path) -> Iterator[Path]:
    yield folder
    for k in count(2):
        if k > MOST:
            return
        yield folder.with_name(f"{folder.name}-{k}")
