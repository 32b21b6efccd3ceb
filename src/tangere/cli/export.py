"""The command export: an arm as a file for other tools."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tangere import foreign
from tangere.errors import InvalidValue
from tangere.options import add_json, add_options, group_from
from tangere.settings import numbers, other, setting, word

if TYPE_CHECKING:
    from tangere.model.model import Model

FORMATS = {
    "urdf": "ROS 2, MoveIt, Pinocchio and most others; with ros2_control and Gazebo tags",
    "sdf": "Gazebo",
    "mjcf": "MuJoCo",
    "toml": "Tangere's own model file, to be changed by hand",
}
_ENDINGS = {".urdf": "urdf", ".sdf": "sdf", ".world": "sdf", ".xml": "mjcf", ".mjcf": "mjcf", ".toml": "toml"}
_LOST = {
    "urdf": "the strength of gravity, motor gains, rotor inertia, sources and grades",
    "sdf": "motor gains, rotor inertia, sources and grades",
    "mjcf": "speed limits, motor gains, sources and grades",
}


def _tool(given: Any, name: str) -> Any:
    return given if "," not in given and "/" not in given else numbers(given, name, "m,m,m,rad,rad,rad", (3, 6))


def _mounting(given: Any, name: str) -> Any:
    return numbers(given, name, "", (3,)) if "," in given else given


@dataclass(frozen=True)
class ArmSettings:
    """Which arm is meant, and what is on it."""

    robot: str = word("ur10e", "the arm", metavar="NAME|FILE")
    parameters: str | None = word(None, "a parameter set's name, or a model file with the numbers", metavar="SET")
    calibration: str | None = word(None, "UR's calibration.yaml of one arm, for its true lengths", metavar="FILE")
    tip: str | None = word(None, "of a file with several branches: the link at which the arm ends", metavar="LINK")
    payload: tuple[float, ...] | None = setting(
        None, "kg,m,m,m", "mass at the flange, and its centre of mass [m]", size=(1, 4), metavar="KG[,X,Y,Z]"
    )
    tool: str | tuple[float, ...] | None = other(
        None, "2f-85, hand-e or pen, with its mass; or the tool point in the flange [m, rad], as UR's TCP", _tool,
        metavar="NAME|X,Y,Z[,RX,RY,RZ]",
    )  # fmt: skip
    mounting: str | tuple[float, ...] | None = other(
        None, "table, wall, ceiling, or gravity in base axes as x,y,z [m/s2]", _mounting, metavar="HOW"
    )

    @property
    def held(self) -> Any:
        """The payload as `tangere.robot` takes it."""
        if self.payload is None:
            return None
        mass, *com = self.payload
        return (mass, com) if com else mass


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    from tangere.model.urdf_text import Hardware

    rows = "\n".join(f"  {name:<5} {what}" for name, what in FORMATS.items())
    p = commands.add_parser(
        "export",
        help="write an arm for other tools: URDF, SDF, MJCF, TOML",
        description="Write an arm with its inertias, limits, friction as far as it is known, tool, payload and simple\n"
        f"shapes, in full precision, as\n{rows}",
        epilog="examples:\n  tangere export --robot ur5e --format urdf --out ur5e.urdf\n"
        "  tangere export --robot ur10e --format sdf --world --out ur10e.world\n"
        "  tangere export --robot ur3e --calibration calibration.yaml --payload 1.2,0,0,0.05 --out mine.xml\n"
        "  tangere export --robot ur5e --format toml --out my.toml   then change it, and: tangere check my.toml\n"
        "  tangere export --robot ur5e --format urdf --out -         on standard output",
    )
    add_options(p, ArmSettings)
    p.add_argument("--format", choices=list(FORMATS), help="what to write (default: what the ending of --out says)")
    p.add_argument("--out", metavar="FILE", help="the file, or - for standard output (default: NAME.FORMAT)")
    p.add_argument("--no-shapes", action="store_true", help="without shapes to look at and to collide")
    choices = [*get_args(Hardware), "none"]
    p.add_argument(
        "--control", choices=choices, default="gazebo",
        help="URDF: what ros2_control loads to move the arm, or none (default: gazebo)",
    )  # fmt: skip
    p.add_argument("--world", action="store_true", help="SDF: a whole world with the arm, a floor and its gravity")
    add_json(p)
    p.set_defaults(run=export)


def model_of(arguments: argparse.Namespace) -> Model:
    """The arm that the options of ArmSettings say."""
    from tangere.model.loading import load

    told = group_from(ArmSettings, arguments)
    return load(
        told.robot, parameters=told.parameters, calibration=told.calibration, tip=told.tip, payload=told.held,
        tool=told.tool, gravity=told.mounting,
    )  # fmt: skip


def export(arguments: argparse.Namespace) -> int:
    """Write an arm as a file for other tools."""
    from tangere.logs.files import write_text
    from tangere.report.terminal import show

    kind = arguments.format or _ENDINGS.get(Path(arguments.out or "").suffix.lower())
    if kind is None:
        raise InvalidValue(f"--format says what to write: {', '.join(FORMATS)}")
    if arguments.world and kind != "sdf":
        raise InvalidValue("--world belongs to --format sdf")
    model = model_of(arguments)
    text = text_of(
        model, kind, shapes=not arguments.no_shapes, control=arguments.control, world=arguments.world
    )  # fmt: skip
    if arguments.out == "-":
        print(text, end="")
        return 0
    path = Path(arguments.out or f"{foreign.file_name(model.name)}.{'xml' if kind == 'mjcf' else kind}")
    write_text(path, text)
    lost = f"Not in this format: {_LOST[kind]}." if kind in _LOST else "Everything that the model holds is in it."
    said = {"file": str(path), "format": kind, "robot": model.name, "joints": model.dof, "bytes": path.stat().st_size}
    show(said, f"{path}: {model.title}, {model.dof} joints, as {kind.upper()}. {lost}", arguments.json)
    return 0


def text_of(model: Model, kind: str, *, shapes: bool = True, control: str = "gazebo", world: bool = False) -> str:
    """The model in one of FORMATS: friction and rotor inertia wherever they are known."""
    if kind == "toml":
        from tangere.model.toml_text import to_toml

        return to_toml(model)
    if kind == "sdf":
        from tangere.model.sdf_text import to_sdf

        return to_sdf(model, drives=True, shapes=shapes, world=world)
    if kind == "mjcf":
        import numpy as np

        from tangere.plants.scene.mjcf import to_mjcf

        rotor, viscous, dry = (
            np.nan_to_num(values) for values in (model.drives.rotor_inertia, model.drives.viscous, model.drives.coulomb)
        )
        return to_mjcf(model, rotor_inertia=rotor, damping=viscous, frictionloss=dry, shapes=shapes)
    from tangere.model.urdf_text import to_urdf

    hardware: Any = None if control == "none" else control
    return to_urdf(model, drives=True, shapes=shapes, collision=shapes, control=hardware)
