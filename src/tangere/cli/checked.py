"""What a model contains and how far to trust it, as text for people."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from tangere.model.inertia import principal_moments
from tangere.model.loading import load
from tangere.model.model import Joint, Model
from tangere.report.terminal import table, terminal_width

_WIDTH = 118  # characters per line of the report, where the terminal has no fewer
_INDENT = 6 * " "  # of a source below its group


def describe(model: Model) -> list[tuple[str, str, str]]:
    """(group, grade, source) of every group of numbers in a model, in the order of the file."""
    return [(source.group, source.grade, source.text) for source in model.sources]


def check_text(name_or_path: str | os.PathLike[str], **options: Any) -> str:
    """Load and validate an arm and describe it: joints, links, drives, and the source and grade of every group.

    options: as for load (parameters=, payload=, tool=, gravity=, calibration=, tip=). Lengths in mm, angles in degrees.
    Raises what load raises.
    """
    model = load(name_or_path, **options)
    parts = [f'{model.title} ({model.name}), parameters "{model.parameters}": valid, {model.dof} joints']
    parts += ["", "Joints", _joints(model), "", "Links (centre of mass in the link frame)", _links(model)]
    parts += ["", "Drives", _drives(model), "", "Mounting", _mounting(model), "", "Sources"]
    width = min(_WIDTH, terminal_width() or _WIDTH)
    for group, grade, text in describe(model):
        parts.append(f"  {group}: {grade}")
        parts += textwrap.wrap(text, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under their heads: the first column flush left, the others flush right."""
    return "\n".join(table([head, *rows], align="l" + "r" * (len(head) - 1)))


def _number(value: float, digits: str = ".6g", unknown: str = "unknown") -> str:
    if math.isnan(value):
        return unknown
    return "unlimited" if math.isinf(value) else format(value + 0.0, digits)


def _joints(model: Model) -> str:
    head = ["joint", "kind", "from", "to", "speed", "torque"]
    if model.dh is not None:
        head[2:2] = ["a [mm]", "d [mm]", "alpha"]
    rows = []
    for i, joint in enumerate(model.joints):
        row = [joint.name, joint.kind, *_limits(joint)]
        if model.dh is not None:
            a, d, alpha = model.dh.a[i], model.dh.d[i], model.dh.alpha[i]
            row[2:2] = [_number(1e3 * a), _number(1e3 * d), _number(float(np.rad2deg(alpha))) + " deg"]
        rows.append(row)
    note = "" if model.dh is not None else "\n  (general joint frames, not standard DH)"
    return _table(head, rows) + note


def _limits(joint: Joint) -> list[str]:
    scale, length, speed, effort = (
        (180.0 / math.pi, "deg", "deg/s", "Nm") if joint.kind == "revolute" else (1e3, "mm", "mm/s", "N")
    )
    reach = [_number(scale * value) for value in (joint.q_min, joint.q_max)]
    shown = [*reach, _number(scale * joint.qd_max, unknown="unlimited"), _number(joint.tau_max)]
    units = (length, length, speed, effort)
    return [text if text == "unlimited" else f"{text} {unit}" for text, unit in zip(shown, units, strict=True)]


def _links(model: Model) -> str:
    rows = []
    for link in model.links:
        com = " ".join(_number(1e3 * value, ".5g") for value in link.com)
        moments = " ".join(_number(float(value), ".4g") for value in principal_moments(link.inertia))
        rows.append([link.name, f"{link.mass:.6g}", com, moments if np.any(link.inertia) else "point mass"])
    total = sum(link.mass for link in model.links)
    rows.append(["total", f"{total:.6g}", "", ""])
    if model.weight is not None:
        rows.append(["whole arm, as stated", f"{model.weight:.6g}", "", ""])
        rows.append(["left for the base", f"{model.weight - total:.3g}", "", ""])
    return _table(["link", "mass [kg]", "com [mm]", "principal moments [kg m2]"], rows)


def _drives(model: Model) -> str:
    drives = model.drives
    values = (drives.gain, drives.rotor_inertia, drives.coulomb, drives.viscous)
    rows = [
        [joint.name, *(_number(float(value[i])) for value in values)] for i, joint in enumerate(model.joints)
    ]  # fmt: skip
    return _table(
        ["joint", "gain [Nm/A]", "rotor inertia [kg m2]", "Coulomb friction [Nm]", "viscous friction [Nm s/rad]"], rows
    )


def _mounting(model: Model) -> str:
    gravity = " ".join(_number(float(value)) for value in model.gravity)
    tool = " ".join(_number(1e3 * float(value)) for value in model.T_flange_tcp[:3, 3])
    turned = "" if np.array_equal(model.T_flange_tcp[:3, :3], np.eye(3)) else ", turned"
    load_text = "none"
    if model.payload is not None:
        com = " ".join(_number(1e3 * float(value)) for value in model.payload.com)
        load_text = f"{model.payload.mass:.6g} kg at {com} mm from the flange"
    return f"  gravity {gravity} m/s2 in base axes\n  tool {tool} mm from the flange{turned}\n  payload {load_text}"
