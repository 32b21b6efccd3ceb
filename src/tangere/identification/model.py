"""What identification leaves: a frozen value, and the file that carries it, a parameter set of the arm in TOML."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tangere.errors import InvalidValue, ModelFileError, UnphysicalModel
from tangere.identification.findings import GRAVITY, Finding, Kind
from tangere.logs.files import write_text
from tangere.model.assemble import DRIVE_KEYS
from tangere.model.fields import Fields, read_toml
from tangere.model.inertia import check_body
from tangere.model.loading import load
from tangere.model.model import Drives, Link, Model, Payload, Source
from tangere.model.toml_text import quoted
from tangere.observe.drive_model import RIPPLES, DriveModel
from tangere.robots import Robot
from tangere.types import Array

SOURCE = "identified from logs by Tangere; their hashes and the covariance are in the model file"
# Findings that make a model one of another arm or of a touched one; what logs merely cannot tell is no doubt
_DOUBTS: tuple[Kind, ...] = ("touched", "held", "worse", "unknown")
_EXPLAINED: tuple[Kind, ...] = (*GRAVITY, "target", "strange gain")  # doubts only as long as no payload explains them


@dataclass(frozen=True)
class Excitation:
    """Base parameters: combinations of link parameters that move the joints at all, and those that this motion told."""

    condition: float  # ratio of the best to the worst seen of the base parameters, in units of their prior
    told: int  # base parameters for which the data say more than the data sheet
    base: int  # base parameters that any motion can tell


@dataclass(frozen=True, eq=False)
class IdentifiedModel:
    """Drives, links and payload of one arm as logs tell them, with covariance, excitation and the logs' hashes."""

    name: str  # of the arm
    inertial: str  # "links", "payload" or "none": what was identified beside the drives
    drive: DriveModel
    links: tuple[Link, ...]
    payload: Payload | None
    parameters: tuple[str, ...]  # names of the numbers below
    values: Array  # (m,)
    covariance: Array  # (m, m), units of the values; zero where a number was not estimated
    told: tuple[bool, ...]  # (m,) whether the logs decide the number; else it is the data sheet's
    excitation: Excitation
    logs: tuple[tuple[str, str], ...]  # name and sha256 of each log
    moved: tuple[bool, ...]  # (n,) whether the joint moved enough for its friction to be told
    findings: tuple[Finding, ...] = ()  # what does not fit or cannot be told
    before: Array = field(default_factory=lambda: np.zeros(0))  # (n,) [Nm], residual rms while moving, arm's data alone
    after: Array = field(default_factory=lambda: np.zeros(0))  # (n,) [Nm], the same with this model
    unseen: bool = False  # whether these figures are of logs that were not used
    # (n,) what torque was multiplied by, against the gains that were given, so that all joints feel one gravity
    scale: Array = field(default_factory=lambda: np.ones(0))
    gravity: Array | None = None  # (3,) m/s2 in base axes, where it is not that of the arm's own file
    detection: Mapping[str, Any] = field(default_factory=dict)  # thresholds of a tuned model, as its file has them
    # (n,) [Nm], as `after`, with what each log had shown of its friction before a sample taken off (FrictionState)
    following: Array = field(default_factory=lambda: np.zeros(0))
    # drives for running freely, where those that explain the torque best have no rotor and run away (refined)
    twin: DriveModel | None = None

    @property
    def sigma(self) -> Array:
        """Standard deviation (m,) of the values."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def doubts(self) -> tuple[str, ...]:
        """Findings that whoever uses the model should hear of again; gravity is no doubt once a payload explains it."""
        kinds = _DOUBTS if self.inertial == "payload" else (*_DOUBTS, *_EXPLAINED)
        return tuple(f"identified with a doubt: {finding}" for finding in self.findings if finding.kind in kinds)

    def model(self, base: Model) -> Model:
        """`base` with the identified links, payload and drives. Raises UnphysicalModel if a link cannot exist."""
        for link in self.links:
            check_body(f"{self.name}, identified link {link.name}", link.mass, link.com, link.inertia, point_mass=True)
        drive = self.drive
        known = base.drives
        drives = Drives(
            drive.gain, drive.rotor_inertia,
            np.where(self.moved, drive.coulomb, known.coulomb), np.where(self.moved, drive.viscous, known.viscous),
        )  # fmt: skip
        sources = (*base.sources, Source("identified", "measured", SOURCE))
        gravity = base.gravity if self.gravity is None else self.gravity
        return dataclasses.replace(
            base, parameters="identified", links=self.links, payload=self.payload, drives=drives, sources=sources,
            gravity=gravity,
        )  # fmt: skip

    def robot(self, base: Robot) -> Robot:
        """The robot with these numbers, rotor inertia in its mass matrix."""
        return Robot(self.model(base.model), self.drive.rotor_inertia)

    def text(self) -> str:
        """The model file as text: TOML of the models' schema with the tables [identified] and [detection]."""
        return model_text(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; tangere.robot(name, parameters=path) accepts it, read_model reads it back."""
        write_text(path, self.text())


_INERTIA = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
_PLAIN = ("before", "after", "following", "scale")
_WIDTH = 118  # characters of a line from which on a list gets a line per entry


def model_text(model: IdentifiedModel) -> str:
    """The file's text. The first part is what every reader of models takes; [identified] is the rest, [detection] the
    thresholds of a tuned model, as they were given.
    """
    drive, text = model.drive, value_text
    lines = [
        f"# {model.name}, identified from {len(model.logs)} logs. Links in their DH frames; SI units and radians.",
        "schema_version = 1",
        f"name = {text(model.name)}",
        'parameters = "identified"',
    ]
    if model.gravity is not None:
        lines.append(f"gravity = {text(model.gravity)}")
    lines.append("")
    if model.payload is not None:
        lines += ["[payload]", *_body(model.payload.mass, model.payload.com, model.payload.inertia), ""]
    if model.inertial == "links":
        for link in model.links:
            lines += ["[[links]]", f"name = {text(link.name)}", *_body(link.mass, link.com, link.inertia), ""]
    shown = {key: getattr(drive, key) for key in DRIVE_KEYS}
    for key in ("coulomb", "viscous"):  # of a joint that did not move nothing is known
        shown[key] = np.where(model.moved, shown[key], np.nan)
    lines += table("drives", shown)
    for group in ["drives"] + (["mass", "com", "inertia"] if model.inertial == "links" else []):
        lines += ["[[sources]]", f'group = "{group}"', 'grade = "measured"', f"text = {text(SOURCE)}", ""]
    lines += table("identified", _identified(model))
    if model.detection:
        lines += table("detection", model.detection)
    return "\n".join(lines)


def _identified(model: IdentifiedModel) -> dict[str, Any]:
    twin = {} if model.twin is None else {"twin": _drive_table(model.twin)}
    estimated = np.flatnonzero(np.diag(model.covariance) > 0.0)
    rows = [model.covariance[at, estimated[: k + 1]].tolist() for k, at in enumerate(estimated)]
    return {
        "inertial": model.inertial,
        "unseen": model.unseen,
        "moved": model.moved,
        **_findings_table(model.findings),
        **{key: getattr(model, key) for key in _PLAIN},
        "excitation": dataclasses.asdict(model.excitation),
        "drive": _drive_table(model.drive),
        **twin,
        "logs": [{"name": name, "sha256": digest} for name, digest in model.logs],
        # value, standard deviation, whether the logs decide it (else it is the data sheet's), one line for each
        "parameters": {
            name: [float(value), float(sigma), told]
            for name, value, sigma, told in zip(model.parameters, model.values, model.sigma, model.told, strict=True)
        },
        # of the estimated ones in their order: the lower triangle, row by row
        "covariance": {"of": [model.parameters[at] for at in estimated], "rows": rows},
    }


def _findings_table(findings: tuple[Finding, ...]) -> dict[str, Any]:
    """Sentences for readers, and beside each its kind and joint (0: none); no kinds where there are no findings."""
    table: dict[str, Any] = {"findings": [finding.sentence for finding in findings]}
    if findings:
        table["finding_kinds"] = [finding.kind for finding in findings]
        table["finding_joints"] = [finding.joint or 0 for finding in findings]
    return table


def _findings_of(data: Mapping[str, Any]) -> tuple[Finding, ...]:
    """The findings of a file; files of earlier versions have sentences alone, whose kind is not known."""
    texts = [str(text) for text in data["findings"]]
    kinds, joints = data.get("finding_kinds", ["unknown"] * len(texts)), data.get("finding_joints", [0] * len(texts))
    return tuple(Finding(kind, text, joint or None) for kind, text, joint in zip(kinds, texts, joints, strict=True))


def _drive_table(drive: DriveModel) -> dict[str, Any]:
    entries = [entry.name for entry in dataclasses.fields(DriveModel) if not entry.name.startswith("_")]
    waves = {name: [row.tolist() for row in getattr(drive, name)] for name in RIPPLES}
    return {name: getattr(drive, name) for name in entries} | waves


def _drive_of(table: Fields) -> DriveModel:
    data = dict(table.data)
    orders = tuple(int(order) for order in data.pop("orders"))
    size = (len(data["coulomb"]), 2 * len(orders))
    for name in set(RIPPLES) & set(data):  # files of earlier versions have not all
        data[name] = np.array(data[name], dtype=np.float64).reshape(size)
    return DriveModel(**data, orders=orders)


def _body(mass: float, com: Array, inertia: Array) -> list[str]:
    lines = [f"mass = {value_text(float(mass))}", f"com = {value_text(com)}"]
    if np.any(inertia):
        inner = ", ".join(f"{key} = {value_text(inertia[at])}" for key, at in _INERTIA.items())
        lines.append(f"inertia = {{ {inner} }}")
    return lines


def read_model(path: str | os.PathLike[str], arm: str | os.PathLike[str] | None = None) -> IdentifiedModel:
    """The IdentifiedModel of a file that IdentifiedModel.write made, bit by bit; links that it has not are the arm's.

    arm: the arm's own file, where it is not one of those that come with the package.
    """
    file = Path(path)
    if not file.exists():
        raise ModelFileError(f"{file}: no such file; a model file is wanted here, which `tangere identify` makes")
    root = read_toml(file)
    if "identified" not in root:
        raise ModelFileError(
            f"{file}: is no identified model, it has no table [identified]: `tangere identify` makes one"
        )
    name = root.name()
    base = load(name if arm is None else arm, parameters=file)  # checks the part that every reader takes
    table = root.table("identified")
    try:
        return _model(name, root, table, base.links, base.payload if "payload" in root else None)
    except (ValueError, TypeError, AttributeError, ArithmeticError, LookupError) as problem:
        if isinstance(problem, UnphysicalModel | ModelFileError):
            raise
        raise ModelFileError(f"{file}: the table [identified] cannot be read: {problem}") from problem


def _model(name: str, root: Fields, table: Fields, links: tuple[Link, ...], payload: Payload | None) -> IdentifiedModel:
    data = table.data
    parameters: Mapping[str, Any] = table.table("parameters").data
    names = tuple(parameters)
    at = [names.index(entry) for entry in data["covariance"]["of"]]
    covariance = np.zeros((len(names), len(names)))
    for k, row in enumerate(data["covariance"]["rows"]):
        if len(row) != k + 1:
            raise table.error("covariance.rows", f"must be a lower triangle: row {k + 1} has {len(row)} numbers")
        covariance[at[k], at[: k + 1]] = covariance[at[: k + 1], at[k]] = row
    return IdentifiedModel(
        name=name,
        drive=_drive_of(table.table("drive")),
        twin=_drive_of(table.table("twin")) if "twin" in table else None,
        links=links,
        payload=payload,
        parameters=names,
        values=np.array([float(entry[0]) for entry in parameters.values()]),
        covariance=covariance,
        told=tuple(bool(entry[2]) for entry in parameters.values()),
        excitation=Excitation(**data["excitation"]),
        logs=tuple((str(log["name"]), str(log["sha256"])) for log in data.get("logs", [])),
        gravity=root.numbers("gravity", 3) if "gravity" in root else None,
        detection=dict(root.table("detection").data) if "detection" in root else {},
        inertial=str(data["inertial"]),
        unseen=bool(data["unseen"]),
        moved=tuple(bool(entry) for entry in data["moved"]),
        findings=_findings_of(data),
        # files of earlier versions have nothing for `following`
        **{key: np.array(data.get(key, []) if key == "following" else data[key], dtype=np.float64) for key in _PLAIN},
    )


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
        return quoted(value)
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
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else quoted(key)


def _is_table(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, Sequence) and len(value) > 0 and all(isinstance(entry, Mapping) for entry in value)
