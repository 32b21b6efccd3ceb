"""What identification leaves: a frozen value."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tangere.identification.findings import GRAVITY, Finding, Kind
from tangere.model.inertia import check_body
from tangere.model.model import Drives, Link, Model, Payload, Source
from tangere.observe.drive_model import DriveModel
from tangere.robots import Robot
from tangere.types import Array

SOURCE = "identified from logs by Tangere; their hashes and the covariance are in the model file"
# Findings that make a model one of another arm or of a touched one; what logs merely cannot tell is no doubt
_DOUBTS: tuple[Kind, ...] = ("touched", "worse", "unknown")
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
        from tangere.identification.model_file import model_text

        return model_text(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; tangere.robot(name, parameters=path) accepts it, read_model reads it back."""
        from tangere.identification.model_file import write_model

        write_model(self, path)
