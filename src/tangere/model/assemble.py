"""From the tables of a model file (and of a parameter set laid over it) to a Model."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import get_args

import numpy as np

from tangere.errors import UnphysicalModel
from tangere.model.fields import Fields
from tangere.model.frames import cos_sin_deg, rotation_rpy_deg, transform
from tangere.model.inertia import check_body, inertia_matrix
from tangere.model.model import DH, Array, Drives, Grade, Joint, Link, Model, Payload, Source, frozen

# Tables that an identified or tuned model file carries for others: any content, no number of the arm itself.
CARRIED = ("identified", "detection")
ROOT_KEYS = (
    "schema_version", "name", "title", "order", "parameters", "gravity", "joints", "lengths", "links", "drives", "tool",
    "payload", "sources", "weight", *CARRIED,
)  # fmt: skip
DRIVE_KEYS = ("gain", "rotor_inertia", "coulomb", "viscous")
# What a set must say the source of, when it changes it.
SOURCES_OF = {
    "joints": ("kinematics", "limits.q", "limits.qd", "limits.tau"),
    "lengths": ("kinematics",),
    "links": ("mass", "com", "inertia"),
}


def dh_transform(a: float, d: float, alpha_deg: float) -> Array:
    """What follows the joint in standard DH: Tz(d) Tx(a) Rx(alpha), (4, 4), exact at multiples of 90 degrees."""
    c, s = cos_sin_deg(alpha_deg)
    return np.array([[1.0, 0.0, 0.0, a], [0.0, c, 0.0 - s, 0.0], [0.0, s, c, d], [0.0, 0.0, 0.0, 1.0]])


def _place(table: Fields, key: str) -> Array:
    """An optional transform given as { xyz = [m], rpy_deg = [degrees] }; the identity where it is absent."""
    if key not in table:
        return np.eye(4)
    place = table.table(key)
    place.only("xyz", "rpy_deg")
    rpy = place.numbers("rpy_deg", 3) if "rpy_deg" in place else np.zeros(3)
    return transform(rotation_rpy_deg(rpy.tolist()), place.numbers("xyz", 3) if "xyz" in place else np.zeros(3))


def _limits(table: Fields, kind: str) -> tuple[float, float, float, float]:
    """q_min, q_max, qd_max, tau_max in SI from the joint's own units; inf where there is no limit or none is known."""
    names = ("range_deg", "speed_deg", "torque") if kind == "revolute" else ("range_m", "speed_m", "force")
    unit = math.pi / 180.0 if kind == "revolute" else 1.0
    low, high = table.numbers(names[0], 2, finite=False)
    speed, effort = (table.number(name, finite=False) for name in names[1:])
    if not low < high:
        raise table.error(names[0], f"must be [lowest, highest] with lowest < highest, got [{low:g}, {high:g}]")
    for name, value in zip(names[1:], (speed, effort), strict=True):
        if not value > 0.0:
            raise table.error(name, f"must be positive, got {value:g}")
    return float(low) * unit, float(high) * unit, speed * unit, effort


def _joint(table: Fields, length: tuple[float, float] | None) -> tuple[Joint, tuple[float, float, float] | None]:
    """One joint, and its (a, d, alpha in degrees) if it is given by standard DH; `length` overrides a and d."""
    kind = table.text("kind") if "kind" in table else "revolute"
    if kind not in ("revolute", "prismatic"):
        raise table.error("kind", f"must be revolute or prismatic, got {kind!r}")
    limit_keys = ("range_deg", "speed_deg", "torque") if kind == "revolute" else ("range_m", "speed_m", "force")
    row = None
    if "dh" in table:
        table.only("name", "kind", "dh", *limit_keys)
        dh = table.table("dh")
        dh.only("a", "d", "alpha_deg")
        a, d = length if length is not None else (dh.number("a"), dh.number("d"))
        row = (a, d, dh.number("alpha_deg"))
        before, after = np.eye(4), dh_transform(*row)
    else:
        table.only("name", "kind", "parent_to_joint", "joint_to_link", *limit_keys)
        before, after = _place(table, "parent_to_joint"), _place(table, "joint_to_link")
    name = table.name()
    q_min, q_max, qd_max, tau_max = _limits(table, kind)
    joint = Joint(name, kind, before, after, q_min, q_max, qd_max, tau_max)  # type: ignore[arg-type]
    return frozen(joint), row


def _joints(roots: Sequence[Fields]) -> tuple[tuple[Joint, ...], DH | None]:
    """All joints; a set may bring its own joints, or only its own lengths a and d for an arm given by standard DH."""
    tables = list(_pick(roots, "joints").tables("joints"))
    lengths: list[tuple[float, float]] | None = None
    if "lengths" in roots[-1]:
        table = roots[-1].table("lengths")
        table.only("a", "d")
        a, d = (table.numbers(key, len(tables)).tolist() for key in ("a", "d"))
        lengths = list(zip(a, d, strict=True))
    built = [_joint(t, lengths[i] if lengths is not None else None) for i, t in enumerate(tables)]
    joints = tuple(joint for joint, _ in built)
    rows = [row for joint, row in built if row is not None and joint.kind == "revolute"]
    _distinct(tables, [joint.name for joint in joints])
    if len(rows) != len(joints):
        if lengths is not None:
            raise roots[-1].error("lengths", "needs an arm whose joints are all given by dh")
        return joints, None
    a_d_alpha = np.array(rows)
    return joints, frozen(DH(a_d_alpha[:, 0].copy(), a_d_alpha[:, 1].copy(), np.deg2rad(a_d_alpha[:, 2])))


def _distinct(tables: Sequence[Fields], names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise tables[i].error("name", f"{name!r} is used twice")


def _inertia(table: Fields, key: str = "inertia") -> Array:
    part = table.table(key)
    part.only("xx", "yy", "zz", "xy", "xz", "yz")
    xx, yy, zz = (part.number(name) for name in ("xx", "yy", "zz"))
    xy, xz, yz = (part.number(name) if name in part else 0.0 for name in ("xy", "xz", "yz"))
    return inertia_matrix(xx, yy, zz, xy, xz, yz)


def _links(root: Fields, count: int, label: str, reasons: Sequence[Source]) -> tuple[Link, ...]:
    links = []
    tables = list(root.tables("links"))
    if len(tables) != count:
        raise root.error("links", f"must have one entry per joint, {count}, got {len(tables)}")
    for table in tables:
        table.only("name", "mass", "com", "inertia", "point_mass")
        point = table.flag("point_mass")
        if point and "inertia" in table:
            raise table.error("point_mass", "and inertia exclude each other: a point mass has none")
        inertia = np.zeros((3, 3)) if point else _inertia(table)
        link = Link(table.name(), table.number("mass"), table.numbers("com", 3), inertia)
        try:
            check_body(f"{label}, link {link.name}", link.mass, link.com, link.inertia, point_mass=point)
        except UnphysicalModel as problem:
            why = [source.text for source in reasons if source.group.split(".")[0] == "inertia"]
            raise UnphysicalModel(f"{problem}. Source of the inertia: {'; '.join(why)}") from None
        links.append(frozen(link))
    _distinct(tables, [link.name for link in links])
    return tuple(links)


def _drives(roots: Sequence[Fields], count: int) -> Drives:
    """Drive data; nan where neither the set nor the arm knows it."""
    values = {key: np.full(count, math.nan) for key in DRIVE_KEYS}
    for root in roots:
        if "drives" not in root:
            continue
        table = root.table("drives")
        table.only(*DRIVE_KEYS)
        for key in DRIVE_KEYS:
            if key in table:
                values[key] = table.numbers(key, count, finite=False)
                if np.any(np.isinf(values[key])) or np.any(values[key] < 0.0):
                    raise table.error(
                        key, f"must be finite and not negative, or nan (unknown), got {values[key].tolist()}"
                    )
    return frozen(Drives(**values))


def _sources(root: Fields) -> list[Source]:
    found = []
    for table in root.tables("sources"):
        table.only("group", "joints", "grade", "text")
        grade = table.text("grade")
        if grade not in get_args(Grade):
            raise table.error("grade", f"must be one of {', '.join(get_args(Grade))}, got {grade!r}")
        group = table.name("group")
        if "joints" in table:  # counted from 1, as in the documents
            joints = table.get("joints")
            if not isinstance(joints, list) or not joints or any(type(i) is not int or i < 1 for i in joints):
                raise table.error("joints", "must be a list of joint numbers, counted from 1")
            group += f" (joints {', '.join(str(i) for i in joints)})"
        text = table.text("text")
        if not all(c.isprintable() or c == "\n" for c in text):  # it is shown in terminals
            raise table.error("text", "must be printable")
        found.append(Source(group, grade, text))  # type: ignore[arg-type]
    return found


def _covers(source: Source, group: str) -> bool:
    named = source.group.split(" (")[0]
    return group == named or group.startswith(named + ".")


def _merged_sources(roots: Sequence[Fields], drives: Drives) -> tuple[Source, ...]:
    """The arm's sources, replaced group by group by those of the set; every number must be covered."""
    sources = _sources(roots[0])
    if len(roots) > 1:
        sourced = any(key in roots[1] for key in (*SOURCES_OF, "drives", "weight", "sources"))
        own = _sources(roots[1]) if sourced else []  # a payload or a tool alone needs none
        for key, groups in SOURCES_OF.items():
            for group in groups if key in roots[1] else ():
                if not any(_covers(source, group) for source in own):
                    raise roots[1].error("sources", f"has no entry for {group}, although the file changes {key}")
        groups_own = {source.group.split(" (")[0] for source in own}
        sources = [s for s in sources if s.group.split(" (")[0] not in groups_own] + own
    needed = [group for groups in SOURCES_OF.values() for group in groups]
    needed += ["weight"] if "weight" in roots[0] else []
    needed += [f"drives.{key}" for key in DRIVE_KEYS if np.any(np.isfinite(getattr(drives, key)))]
    for group in dict.fromkeys(needed):
        if not any(_covers(source, group) for source in sources):
            raise roots[-1].error("sources", f"has no entry for {group}: every number needs a source and a grade")
    return tuple(sources)


def _pick(roots: Sequence[Fields], key: str) -> Fields:
    """The root that gives `key`: the set if it has it, else the arm."""
    return roots[-1] if key in roots[-1] else roots[0]


def assemble(roots: Sequence[Fields], parameters: str) -> Model:
    """Build and validate the Model of an arm's file (and, second, of a parameter set laid over it)."""
    for root in roots:
        root.only(*ROOT_KEYS)
        for key in CARRIED:
            if key in root:
                root.table(key)
    if "identified" in roots[-1] and roots[-1].name() != roots[0].name():
        raise roots[-1].error("name", f"is {roots[-1].name()!r}: identified on that arm, not on {roots[0].name()!r}")
    joints, dh = _joints(roots)
    drives = _drives(roots, len(joints))
    sources = _merged_sources(roots, drives)
    name, title = roots[0].name(), roots[0].name("title")
    links = _links(_pick(roots, "links"), len(joints), f'{name}, parameters "{parameters}"', sources)
    gravity = _pick(roots, "gravity").numbers("gravity", 3)
    tool = _place(_pick(roots, "tool"), "tool")
    payload = _payload(_pick(roots, "payload"))
    weight = _weight(roots[0], sum(link.mass for link in links))
    return frozen(Model(name, title, parameters, joints, links, drives, gravity, tool, payload, dh, sources, weight))


def overlaid(model: Model, root: Fields) -> Model:
    """The model with the links, drives, gravity, tool and payload that a file gives; its joints stay."""
    root.only(*ROOT_KEYS)
    for key in ("joints", "lengths"):
        if key in root:
            raise root.error(key, f"cannot replace those of {model.name}; a whole arm is given as the robot itself")
    sources = _sources(root) if "sources" in root else []
    drives = model.drives
    if "drives" in root:
        own = _drives([root], model.dof)
        both = [(getattr(own, key), getattr(model.drives, key)) for key in DRIVE_KEYS]
        drives = frozen(Drives(*(np.where(np.isfinite(told), told, known) for told, known in both)))
    needed = [group for group in SOURCES_OF["links"] if "links" in root]
    needed += [f"drives.{key}" for key in DRIVE_KEYS if "drives" in root and key in root.table("drives")]
    for group in needed:
        if not any(_covers(source, group) for source in sources):
            raise root.error("sources", f"has no entry for {group}: every number needs a source and a grade")
    groups = {source.group.split(" (")[0] for source in sources}
    kept = [source for source in model.sources if source.group.split(" (")[0] not in groups]
    return dataclasses.replace(
        model,
        parameters=root.name("parameters") if "parameters" in root else "own",
        links=_links(root, model.dof, f"{model.name}, {root.file}", sources) if "links" in root else model.links,
        drives=drives,
        gravity=root.numbers("gravity", 3) if "gravity" in root else model.gravity,
        T_flange_tcp=_place(root, "tool") if "tool" in root else model.T_flange_tcp,
        payload=_payload(root) if "payload" in root else model.payload,
        sources=(*kept, *sources),
    )


def _weight(root: Fields, links: float) -> float | None:
    """What the whole arm weighs [kg], where the file says so: more than its moving links."""
    if "weight" not in root:
        return None
    weight = root.number("weight")
    if not weight > links:
        raise root.error("weight", f"is {weight:g} kg, but the links alone weigh {links:g} kg")
    return weight


def _payload(root: Fields) -> Payload | None:
    if "payload" not in root:
        return None
    table = root.table("payload")
    table.only("mass", "com", "inertia")
    inertia = _inertia(table) if "inertia" in table else np.zeros((3, 3))
    payload = Payload(table.number("mass"), table.numbers("com", 3), inertia)
    check_body(f"{root.file}, payload", payload.mass, payload.com, payload.inertia, point_mass=True)
    return frozen(payload)
