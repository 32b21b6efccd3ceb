"""Load an arm by name or from a file, with its parameter set, payload, tool, mounting and calibration."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tangere.errors import InvalidValue, ModelFileError, UnknownName, unknown
from tangere.model.assemble import assemble, overlaid
from tangere.model.fields import read_toml
from tangere.model.frames import gravity_vector, tool_transform
from tangere.model.inertia import payload_body
from tangere.model.model import Array, Model, Payload
from tangere.model.tools import tool_named

_DATA = Path(__file__).parent / "data"
_SETS = _DATA / "sets"
_ENDINGS = (".toml", ".urdf", ".xml")  # of model files
# The file's own place in lists: the 100s are the e-Series, then CB3, the large ones, the teaching robots of 003.
_PLACE = re.compile(r"^order *= *(\d+)", re.MULTILINE)


def names() -> tuple[str, ...]:
    """Names of the arms that come with the package, one file each, in the `order` that the files state."""

    def place(path: Path) -> tuple[float, str]:
        found = _PLACE.search(path.read_text(encoding="utf-8"))
        return (float(found[1]) if found else float("inf"), path.stem)

    return tuple(path.stem for path in sorted(_DATA.glob("*.toml"), key=place))


def parameter_sets(name: str) -> tuple[str, ...]:
    """Names of the parameter sets of an arm, its default first.

    "001-literal" of the UR10e is among them although it cannot be loaded: it exists to be refused with its reason.
    """
    path = _arm(name)
    default = read_toml(path).name("parameters")
    return (default, *sorted(entry.stem for entry in (_SETS / path.stem).glob("*.toml")))


def load(
    name_or_path: str | os.PathLike[str],
    *,
    parameters: str | os.PathLike[str] | None = None,
    payload: Payload | float | Sequence[Any] | None = None,
    tool: str | Sequence[float] | Array | None = None,
    gravity: str | Sequence[float] | Array | None = None,
    calibration: str | os.PathLike[str] | None = None,
    tip: str | None = None,
    base: str | None = None,
) -> Model:
    """The Model of an arm, validated.

    name_or_path: a name out of names(), or a model file (.toml, .urdf or .xml for a serial arm in URDF, .xml for one
        in a MuJoCo model).
    parameters: another set of numbers: a name out of parameter_sets(name), or a TOML file of the same schema; what
        that file gives (lengths, links, drives, tool, sources, ...) replaces what the arm has. Also the
        robot_calibration_summary.txt of the arm's controller: gains and friction of its joints.
    payload: Payload, mass [kg], (mass, com) or (mass, com, inertia about the com), in flange axes.
    tool: T_flange_tcp as 4x4, as x y z rx ry rz (m and rotation vector, UR's TCP form) or as x y z; or the name of a
        tool out of model.tools.TOOLS, which is the payload, too.
    gravity: vector in base axes [m/s2], or "table", "wall" (the base y axis points up), "ceiling".
    calibration: a UR calibration.yaml, whose kinematics replace the nominal ones (needs the extra `calibration`).
    tip, base: for a URDF or a MuJoCo model, the links whose frames are the tcp and the base, where the defaults of
        from_urdf or from_mjcf do not do.

    Raises UnknownName, ModelFileError (names file and field) and UnphysicalModel, all of them ValueErrors.
    """
    path = _arm(name_or_path)
    if path.suffix.lower() != ".toml":
        model = _from_xml(path, tip, base)
        if parameters is not None:
            model = _over_file(model, parameters)
    else:
        if tip is not None or base is not None:
            raise InvalidValue("tip= and base= choose links of a URDF or MuJoCo model; TOML has one tip and one base")
        model = _from_toml(path, parameters)
    if calibration is not None:
        from tangere.model.calibration import calibrated

        model = calibrated(model, calibration)
    if isinstance(tool, str):
        model, tool = _with_tool(model, tool, payload), None
    if payload is not None:
        model = dataclasses.replace(model, payload=payload_body(payload))
    if tool is not None:
        model = dataclasses.replace(model, T_flange_tcp=tool_transform(tool))
    if gravity is not None:
        model = dataclasses.replace(model, gravity=gravity_vector(gravity))
    return model


def _with_tool(model: Model, name: str, payload: Any) -> Model:
    """The arm with a tool that has a name: its point, its mass, and where they are from."""
    found = tool_named(name)
    if payload is not None:
        raise InvalidValue(f"payload: the tool {name} has its own mass, {found.mass:g} kg; give its point for another")
    T = tool_transform((0.0, 0.0, found.tcp))
    return dataclasses.replace(
        model, T_flange_tcp=T, payload=found.payload, sources=(*model.sources, found.source)
    )


def _from_xml(path: Path, tip: str | None, base: str | None) -> Model:
    """A URDF or, where the root element says so, a MuJoCo model."""
    from tangere.model.urdf_tree import read_xml

    if read_xml(path).tag == "mujoco":
        from tangere.model.mjcf import from_mjcf

        return from_mjcf(path, tip=tip, base=base)
    from tangere.model.urdf import from_urdf

    return from_urdf(path, tip=tip, base=base)


def _from_toml(path: Path, parameters: str | os.PathLike[str] | None) -> Model:
    arm = read_toml(path)
    default = arm.name("parameters")
    if parameters is None or (isinstance(parameters, str) and parameters == default):
        return assemble([arm], default)
    if not isinstance(parameters, str | os.PathLike):
        raise InvalidValue(f"parameters: a set's name or a .toml file, got {parameters!r}")
    if _is_file(parameters):
        given = Path(parameters)
        if given.suffix.lower() == ".txt":
            from tangere.model.calibration import with_motor_calibration

            return with_motor_calibration(assemble([arm], default), given)
        if given.suffix.lower() != ".toml":
            whole = given.suffix.lower() in (".xml", ".urdf")
            raise ModelFileError(
                f"{given}: a parameter file must be TOML (.toml), or a controller's robot_calibration_summary (.txt)"
                + ("; this one is an arm of its own, with frames of its own: give it as the robot" if whole else "")
            )
        overlay = read_toml(given)
        return assemble([arm, overlay], overlay.name("parameters") if "parameters" in overlay else given.stem)
    sets = {entry.stem: entry for entry in (_SETS / path.stem).glob("*.toml")} if path.parent == _DATA else {}
    if parameters not in sets:
        known = ", ".join((default, *sorted(sets)))
        raise UnknownName(f"unknown parameters {parameters!r} for {arm.name()}; known: {known}, or a .toml file")
    return assemble([arm, read_toml(sets[str(parameters)])], str(parameters))


def _over_file(model: Model, parameters: str | os.PathLike[str]) -> Model:
    """The arm of a URDF or MJCF with links, drives, tool, ... of a TOML file, or its controller's motor calibration."""
    given = Path(parameters)
    if given.suffix.lower() == ".txt":
        from tangere.model.calibration import with_motor_calibration

        return with_motor_calibration(model, given)
    if given.suffix.lower() != ".toml":
        raise UnknownName(
            f"parameters={str(parameters)!r} of {model.name}: an arm from a file has no sets by name; give a "
            ".toml file with its own links or drives"
        )
    return overlaid(model, read_toml(given))


def _is_file(given: str | os.PathLike[str]) -> bool:
    """Whether the argument is meant as a path: a Path, or a text with a separator or a model file's ending."""
    if not isinstance(given, str):
        return True
    return "/" in given or os.sep in given or given.lower().endswith((*_ENDINGS, ".txt"))


def _arm(given: str | os.PathLike[str]) -> Path:
    """The file of an arm given by name (upper or lower case) or path."""
    if not isinstance(given, str | os.PathLike):
        raise InvalidValue(f"an arm is a name or a path, got {given!r}; known names: {', '.join(names())}")
    if _is_file(given):
        path = Path(given)
        if path.suffix.lower() not in _ENDINGS:
            raise ModelFileError(f"{path}: a model file ends in .toml, .urdf or .xml")
        return path
    if str(given).lower() in {path.stem for path in _DATA.glob("*.toml")}:
        return _DATA / f"{str(given).lower()}.toml"
    said = f"unknown robot {given!r}; known: {', '.join(names())}, or a file ending in .toml, .urdf or .xml"
    raise unknown("robot", str(given), names(), said)
