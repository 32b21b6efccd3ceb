"""What the commands of touch have in common: the arm and the model that are meant, sample rates, notes."""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.errors import InvalidValue
from tangere.options import group_from
from tangere.report.terminal import paint, wants_colour
from tangere.settings import doubts, numbers, other, setting, word

if TYPE_CHECKING:
    from tangere.identification import IdentifiedModel
    from tangere.observe.detect import Thresholds
    from tangere.robots import Robot


def sample_rate(text: str | None, option: str) -> float | None:
    """Hz from 500, 500Hz or 500 Hz."""
    if text is None:
        return None
    try:
        value = float(re.sub(r"\s*hz$", "", text.strip(), flags=re.IGNORECASE))
    except ValueError:
        value = np.nan
    if not (np.isfinite(value) and value > 0.0):
        raise InvalidValue(f"{option}: samples per second, such as 500 or 500Hz, got {text!r}")
    return value


def _gravity(given: Any, name: str) -> Any:
    """A mounting by its word, or gravity's acceleration (3,) [m/s2] in the base frame."""
    return numbers(given, name, "m/s2", (3,)) if "," in str(given) else given


@dataclass(frozen=True)
class RecordedArm:
    """Which arm was recorded, and how."""

    robot: str = word(MISSING, "the arm that was recorded", metavar="NAME|FILE")
    columns: str | None = word(
        None, "columns of a csv without header or with other names, or of arrays: t,q,qd,current,_:6", metavar="LIST"
    )
    payload: tuple[float, ...] | None = setting(
        None, "kg,m,m,m", "what is mounted: kg, and centre of mass from the flange in m", size=(1, 4), metavar="M,X,Y,Z"
    )
    gravity: str | tuple[float, ...] | None = other(
        None, "mounting: table (default), wall, ceiling, or GX,GY,GZ in m/s2", _gravity, metavar="WHERE"
    )


def arm_of(arguments: argparse.Namespace) -> tuple[Robot, Any]:
    """The arm with its mounting, and the payload that was given (None: none was)."""
    from tangere.robots import robot

    told = group_from(RecordedArm, arguments)
    for text in doubts(told, {name: value for name, value in vars(arguments).items() if value is not None}):
        note(text)
    payload = None
    if told.payload is not None:
        mass, *com = told.payload
        payload = (mass, com or [0.0, 0.0, 0.0])
    arm = robot(told.robot, payload=payload, gravity=told.gravity)
    return arm, None if payload is None else arm.model.payload


def model_of(arguments: argparse.Namespace, arm: Robot, *, thresholds: bool = True) -> IdentifiedModel | None:
    """The model file that was named, None where none was; a model of another arm is refused.

    thresholds: False leaves those of the file out, of whatever schema they are, since others will be learned.
    """
    from tangere.identification import read_model
    from tangere.observe.detect import Thresholds

    if arguments.model is None:
        return None
    own = arguments.robot if arguments.robot.endswith((".toml", ".urdf")) else None
    model = read_model(arguments.model, own)
    if model.name != arm.name:
        raise InvalidValue(f"{arguments.model}: is a model of a {model.name}, --robot says {arm.name}")
    if not thresholds:
        return dataclasses.replace(model, detection={})
    if model.detection:
        Thresholds.from_table(dict(model.detection), f"{arguments.model}: detection")  # refused with the file's name
    return model


def model_file(path: str | os.PathLike[str], option: str = "path") -> Path:
    """Where a model file is written; another ending is refused."""
    where = Path(path)
    if where.suffix != ".toml":
        raise InvalidValue(f"{option}: a model file ends in .toml, got {os.fspath(path)!r}")
    return where


def hours_text(hours: float) -> str:
    """A duration as people read it."""
    return f"{3600.0 * hours:.0f} s" if hours < 0.1 else f"{hours:.3g} h"


def extrapolated(thresholds: Thresholds, of: str) -> str:
    """From how much motion a rate comes: of less than one alarm in that time nothing was counted."""
    if thresholds.rate * thresholds.hours < 1.0:
        return f"extrapolated from {of}"
    return f"from {of}"


def tell(name: str, problems: Iterable[object]) -> None:
    """Notes on a log."""
    for text in problems:
        note(f"{name}: {text}")


def note(text: str) -> None:
    """A line on standard error."""
    print(paint("note: ", "bad", wants_colour(sys.stderr)) + text, file=sys.stderr)
