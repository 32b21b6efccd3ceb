"""The command export: an arm as a file for other tools."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tangere import foreign
from tangere.errors import InvalidValue
from tangere.options import add_json
from tangere.settings import numbers

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
    p.add_argument("--robot", default="ur10e", metavar="NAME|FILE", help="the arm (default: ur10e)")
    p.add_argument("--format", choices=list(FORMATS), help="what to write (default: what the ending of --out says)")
    p.add_argument("--out", metavar="FILE", help="the file, or - for standard output (default: NAME.FORMAT)")
    add_model_options(p)
    p.add_argument("--no-shapes", action="store_true", help="without shapes to look at and to collide")
    choices = [*get_args(Hardware), "none"]
    p.add_argument(
        "--control", choices=choices, default="gazebo",
        help="URDF: what ros2_control loads to move the arm, or none (default: gazebo)",
    )  # fmt: skip
    p.add_argument("--world", action="store_true", help="SDF: a whole world with the arm, a floor and its gravity")
    add_json(p)
    p.set_defaults(run=export)


def add_model_options(p: Any) -> None:
    """What may be said about an arm beside its name."""
    p.add_argument("--parameters", metavar="SET", help="a parameter set's name, or a model file with the numbers")
    p.add_argument("--calibration", metavar="FILE", help="UR's calibration.yaml of one arm, for its true lengths")
    p.add_argument("--tip", metavar="LINK", help="of a file with several branches: the link at which the arm ends")
    p.add_argument("--payload", metavar="KG[,X,Y,Z]", help="mass at the flange, and its centre of mass [m]")
    p.add_argument(
        "--tool", metavar="NAME|X,Y,Z[,RX,RY,RZ]",
        help="2f-85, hand-e or pen, with its mass; or the tool point in the flange [m, rad], as UR's TCP",
    )  # fmt: skip
    p.add_argument("--mounting", metavar="HOW", help="table, wall, ceiling, or gravity in base axes as x,y,z [m/s2]")


def model_of(arguments: argparse.Namespace) -> Model:
    """The arm that --robot and the options of `add_model_options` say."""
    from tangere.model.loading import load

    return load(
        arguments.robot, parameters=arguments.parameters, calibration=arguments.calibration, tip=arguments.tip,
        payload=payload_of(arguments.payload), tool=_tool(arguments.tool),
        gravity=_mounting(arguments.mounting),
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


def _numbers(text: str | None, name: str, unit: str, size: tuple[int, ...]) -> tuple[float, ...] | None:
    return None if text is None else numbers(text, name, unit, size)


def _tool(text: str | None) -> Any:
    named = text is not None and "," not in text and "/" not in text
    return text if named else _numbers(text, "tool", "m,m,m,rad,rad,rad", (3, 6))


def payload_of(text: str | None) -> Any:
    """What --payload says: kg, or kg and where its centre of mass is [m]."""
    values = _numbers(text, "payload", "kg,m,m,m", (1, 4))
    return None if values is None else values[0] if len(values) == 1 else (values[0], values[1:])


def _mounting(text: str | None) -> Any:
    return _numbers(text, "mounting", "", (3,)) if text is not None and "," in text else text
