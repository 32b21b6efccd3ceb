"""TOML out: a model as a model file of our own, from which `load` makes the same model again."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

import numpy as np

from tangere.model.frames import rpy_from_rotation
from tangere.model.model import Array, Joint, Model, Source

_HEAD = """\
# SI units, angles in degrees. A link's frame is the frame at its far end (DH: the distal one); com and inertia (about
# the com) are in that frame. Every number needs a source and a grade: vendor, measured or approximated.
"""
_JOINTS = re.compile(r"^(.*) \(joints ([\d, ]+)\)$")


def to_toml(model: Model) -> str:
    """The model as the text of a model file (.toml): everything that a Model holds, numbers in full precision."""
    out = [_HEAD, "schema_version = 1", f"name = {quoted(model.name)}", f"title = {quoted(model.title)}"]
    out += [f"parameters = {quoted(model.parameters)}", f"gravity = {_list(model.gravity)}"]
    if model.weight is not None and model.weight > sum(link.mass for link in model.links):  # a heavier twin has none
        out.append(f"weight = {model.weight!r}")
    if not np.array_equal(model.T_flange_tcp, np.eye(4)):
        out.append(f"tool = {_place(model.T_flange_tcp)}")
    for i, joint in enumerate(model.joints):
        out += ["", "[[joints]]", *_joint(model, i, joint)]
    for link in model.links:
        out += ["", "[[links]]", f"name = {quoted(link.name)}", *_body(link.mass, link.com, link.inertia)]
        if not np.any(link.inertia):
            out[-1] = "point_mass = true"
    known = {key: getattr(model.drives, key) for key in ("gain", "rotor_inertia", "coulomb", "viscous")}
    if any(np.any(np.isfinite(values)) for values in known.values()):
        out += ["", "[drives]", *(f"{key} = {_list(values)}" for key, values in known.items() if not _blank(values))]
    if model.payload is not None:
        out += ["", "[payload]", *_body(model.payload.mass, model.payload.com, model.payload.inertia)]
    for source in model.sources:
        out += ["", "[[sources]]", *_source(source)]
    return "\n".join([*out, ""])


def _blank(values: Array) -> bool:
    return not np.any(np.isfinite(values))


def quoted(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for the delete character. Bytes that are no text are a ?."""
    text = text.encode("utf-8", "replace").decode()
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: float) -> str:
    return repr(float(value) + 0.0)  # inf and nan are TOML's words, too


def _list(values: Sequence[float] | Array) -> str:
    return f"[{', '.join(_number(value) for value in values)}]"


def _place(T: Array) -> str:
    rpy = [math.degrees(angle) for angle in rpy_from_rotation(T[:3, :3])]
    return f"{{ xyz = {_list(T[:3, 3])}, rpy_deg = {_list(rpy)} }}"


def _joint(model: Model, i: int, joint: Joint) -> list[str]:
    turning = joint.kind == "revolute"
    out = [f"name = {quoted(joint.name)}", *([] if turning else ['kind = "prismatic"'])]
    if model.dh is not None:
        a, d, alpha = float(model.dh.a[i]), float(model.dh.d[i]), math.degrees(model.dh.alpha[i])
        out.append(f"dh = {{ a = {_number(a)}, d = {_number(d)}, alpha_deg = {_number(alpha)} }}")
    else:
        out.append(f"parent_to_joint = {_place(joint.T_parent_joint)}")
        out.append(f"joint_to_link = {_place(joint.T_joint_link)}")
    names = ("range_deg", "speed_deg", "torque") if turning else ("range_m", "speed_m", "force")
    unit = 180.0 / math.pi if turning else 1.0
    out.append(f"{names[0]} = {_list([joint.q_min * unit, joint.q_max * unit])}")
    return [*out, f"{names[1]} = {_number(joint.qd_max * unit)}", f"{names[2]} = {_number(joint.tau_max)}"]


def _body(mass: float, com: Array, inertia: Array) -> list[str]:
    keys = (("xx", 0, 0), ("yy", 1, 1), ("zz", 2, 2), ("xy", 0, 1), ("xz", 0, 2), ("yz", 1, 2))
    entries = ", ".join(f"{key} = {_number(inertia[row, column])}" for key, row, column in keys)
    return [f"mass = {_number(mass)}", f"com = {_list(com)}", f"inertia = {{ {entries} }}"]


def _source(source: Source) -> list[str]:
    found = _JOINTS.match(source.group)
    group, joints = (found[1], [f"joints = [{found[2]}]"]) if found else (source.group, [])
    return [f"group = {quoted(group)}", *joints, f"grade = {quoted(source.grade)}", f"text = {quoted(source.text)}"]
