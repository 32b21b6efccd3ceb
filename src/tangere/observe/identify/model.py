"""What identification leaves: a frozen value, and the model file that carries it."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from tangere.errors import InvalidValue, ModelFileError, UnphysicalModel
from tangere.model.inertia import check_body
from tangere.model.model import Drives, Link, Model, Payload, Source
from tangere.observe.drive_model import DriveModel
from tangere.observe.identify.excitation import Excitation
from tangere.robot import Robot
from tangere.types import Array

# Lines of the file that begin so hold what the schema of a model has no field for (covariance, logs, the finer terms
# of friction), as one JSON object: to every reader of models they are a comment.
MARK = "#: "
_TEXT = "identified from logs by Tangere; their hashes and the covariance are in the model file"


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
    findings: tuple[str, ...] = ()  # what does not fit or cannot be told, in sentences
    before: Array = field(default_factory=lambda: np.zeros(0))  # (n,) Nm, residual rms while moving, arm's data alone
    after: Array = field(default_factory=lambda: np.zeros(0))  # (n,) Nm, the same with this model
    unseen: bool = False  # whether `before` and `after` are of logs that were not used

    @property
    def sigma(self) -> Array:
        """Standard deviation (m,) of the values."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

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
        sources = (*base.sources, Source("identified", "measured", _TEXT))
        return dataclasses.replace(
            base, parameters="identified", links=self.links, payload=self.payload, drives=drives, sources=sources
        )

    def robot(self, base: Robot) -> Robot:
        """The robot with these numbers, rotor inertia in its mass matrix."""
        return Robot(self.model(base.model), self.drive.rotor_inertia)

    def text(self) -> str:
        """The model file: TOML of the models' schema, with everything else in marked comment lines."""
        drive = self.drive
        lines = [
            f"# {self.name}, identified from {len(self.logs)} logs. Links in their DH frames, SI units.",
            "schema_version = 1",
            f'name = "{self.name}"',
            'parameters = "identified"',
            "",
        ]
        if self.payload is not None:
            lines += ["[payload]", *_body(self.payload.mass, self.payload.com, self.payload.inertia), ""]
        if self.inertial == "links":
            for link in self.links:
                lines += ["[[links]]", f"name = {json.dumps(link.name)}"]
                lines += [*_body(link.mass, link.com, link.inertia), ""]
        coulomb, viscous = (np.where(self.moved, a, np.nan) for a in (drive.coulomb, drive.viscous))
        rows = {"gain": drive.gain, "rotor_inertia": drive.rotor_inertia, "coulomb": coulomb, "viscous": viscous}
        lines += ["[drives]", *(f"{key} = {_list(value)}" for key, value in rows.items()), ""]
        groups = ["drives"] + (["mass", "com", "inertia"] if self.inertial == "links" else [])
        for group in groups:
            lines += ["[[sources]]", f'group = "{group}"', 'grade = "measured"', f'text = "{_TEXT}"', ""]
        return "\n".join(lines + [MARK + json.dumps(_record(self))]) + "\n"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; tangere.robot(name, parameters=path) accepts it, read_model reads it back."""
        temporary = Path(f"{os.fspath(path)}.part")
        try:
            temporary.write_text(self.text(), encoding="utf-8")
            temporary.replace(path)
        except OSError as problem:
            raise InvalidValue(f"cannot write {os.fspath(path)}: {problem.strerror or problem}") from problem


def read_model(path: str | os.PathLike[str]) -> IdentifiedModel:
    """The IdentifiedModel of a file that IdentifiedModel.write made, bit by bit."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ModelFileError(f"{path}: cannot be read: {problem}") from problem
    marked = [line[len(MARK) :] for line in text.splitlines() if line.startswith(MARK)]
    if not marked:
        raise ModelFileError(f"{path}: is no identified model: no line begins with {MARK!r}")
    try:
        data: dict[str, Any] = json.loads(marked[-1])
        data["drive"] = DriveModel(**{**data["drive"], "orders": tuple(data["drive"]["orders"])})
        data["links"] = tuple(_link(entry) for entry in data["links"])
        given = data["payload"]
        data["payload"] = (
            None if given is None else Payload(given["mass"], *map(np.array, (given["com"], given["inertia"])))
        )
        data["excitation"] = Excitation(**data["excitation"])
        data["logs"] = tuple((str(name), str(digest)) for name, digest in data["logs"])
        for key in ("parameters", "told", "moved", "findings"):
            data[key] = tuple(data[key])
        for key in ("values", "covariance", "before", "after"):
            data[key] = np.array(data[key], dtype=np.float64)
        model = IdentifiedModel(**data)
    except (ValueError, KeyError, TypeError) as problem:
        if isinstance(problem, UnphysicalModel):
            raise
        raise ModelFileError(f"{path}: the identified part cannot be read: {problem}") from problem
    return model


def _link(data: dict[str, Any]) -> Link:
    return Link(data["name"], data["mass"], np.array(data["com"]), np.array(data["inertia"]))


def _record(model: IdentifiedModel) -> dict[str, Any]:
    """Everything as plain lists and numbers; json writes floats so that they read back to the same bits."""
    data = {entry.name: getattr(model, entry.name) for entry in fields(model)}
    data["drive"] = {
        entry.name: _plain(getattr(model.drive, entry.name))
        for entry in fields(DriveModel)
        if not entry.name.startswith("_")
    }
    data["links"] = [_record_of(link) for link in model.links]
    data["payload"] = None if model.payload is None else _record_of(model.payload)
    data["excitation"] = dataclasses.asdict(model.excitation)
    return {key: _plain(value) for key, value in data.items()}


def _record_of(body: Link | Payload) -> dict[str, Any]:
    return {entry.name: _plain(getattr(body, entry.name)) for entry in fields(body)}


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _number(value: float) -> str:
    return "nan" if np.isnan(value) else repr(float(value))


def _list(values: Array) -> str:
    return "[" + ", ".join(_number(v) for v in values) + "]"


def _body(mass: float, com: Array, inertia: Array) -> list[str]:
    lines = [f"mass = {_number(mass)}", f"com = {_list(com)}"]
    if np.any(inertia):
        keys = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
        inner = ", ".join(f"{key} = {_number(inertia[at])}" for key, at in keys.items())
        lines.append(f"inertia = {{ {inner} }}")
    return lines
