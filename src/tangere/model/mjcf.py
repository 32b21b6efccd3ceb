"""MJCF in: a serial arm from a MuJoCo model, read from what MuJoCo itself compiles.

Default classes, quaternions of any length, eulers, inertias from shapes and the like are thus MuJoCo's own business.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from tangere import foreign
from tangere.errors import ModelFileError, UnknownName, extra
from tangere.model.fields import check_name
from tangere.model.frames import inverse, transform
from tangere.model.inertia import check_body, joined, moved
from tangere.model.model import Array, Drives, Joint, JointKind, Link, Model, Source, frozen
from tangere.model.urdf import axis_to_z
from tangere.model.urdf_tree import read_xml

_TIPS = ("tcp", "attachment_site", "tool0", "pinch", "flange")  # usual names of a site at an arm's end, ours first
_POINT = 1.001e-12  # [kg m2] MuJoCo refuses zero: less than this stands for a point mass
# what multiplies memory: copies, cells of a grid, pixels of a texture; and how many are read
_COUNTS = {
    "texture": ("width", "height"), "hfield": ("nrow", "ncol"), "replicate": ("count",), "composite": ("count",),
    "flexcomp": ("count",),
}  # fmt: skip
_COUNT_MAX = 4096
_NO_GRAVITY = 1 << 7  # mjDSBL_GRAVITY
_KINDS: dict[int, JointKind] = {3: "revolute", 2: "prismatic"}  # MuJoCo's hinge and slide


def from_mjcf(path: Path, *, tip: str | None = None, base: str | None = None) -> Model:
    """The Model of the serial arm in a MuJoCo model file.

    The arm runs from the base to the tip. Bodies without a joint are merged into the one that carries them; a moving
    joint beside the way to the tip (a gripper's finger) is held at zero. A link's frame is its MuJoCo body frame.

    tip: the site or body whose frame is the tcp. Default: a site `tcp`, `attachment_site`, `tool0`, `pinch` or `flange`
        on the last link, else the last link's own frame; where several chains exist the error lists their ends.
    base: the body whose frame is the base. Default: MuJoCo's world.
    armature becomes the drives' rotor inertia, damping and frictionloss their friction (0: not known); a torque limit
    is the joint's own or that of its actuators. Nothing else of actuators is read, and a note says so. More than one
    joint in a body of the chain, ball and free joints, equalities, tendons and joints with a reference (`ref`) are
    refused. Mesh files that are not there are left out where no inertia hangs on them.
    """
    arm = _Arm(path)
    first = 0 if base is None else arm.known("body", base)
    T_base = arm.pose(first)
    last, T_last_tip = _tip(arm, tip)
    way = arm.way(last)
    if before := [arm.name(body) for body in arm.way(first) if arm.joints[body]]:
        raise ModelFileError(f"{path}: base {base!r} hangs on moving joints: those of {', '.join(before)}")
    moving = [body for body in way if arm.joints[body]]
    if not moving:
        raise ModelFileError(f"{path}: there is no moving joint between the world and the tip {tip or 'of the arm'!r}")
    if first and first not in way and any(arm.joints[body] for body in way if body in arm.way(first)):
        raise ModelFileError(f"{path}: base {base!r} stands on the moving arm")
    arm.refuse(moving)
    joints, links = [], []
    T = inverse(T_base)
    for body in way:
        T = T @ arm.place(body)
        if arm.joints[body]:
            turn = arm.turn(body)
            joints.append(arm.joint(body, T @ turn, inverse(turn)))
            links.append(arm.link(body, moving))
            T = np.eye(4)
    sources = tuple(
        Source(group, "approximated", f"MuJoCo model {path.name}, which does not say where its numbers come from")
        for group in ("kinematics", "limits", "mass", "com", "inertia", "drives")
    )
    gravity = T_base[:3, :3].T @ np.asarray(arm.m.opt.gravity, dtype=float)
    gravity = np.zeros(3) if arm.m.opt.disableflags & _NO_GRAVITY else gravity
    parts = (tuple(joints), tuple(links), arm.drives(moving), gravity, T @ T_last_tip, None, None, sources)
    arm.note(moving)
    return frozen(Model(arm.title, arm.title, "mjcf", *parts))


def _tip(arm: _Arm, tip: str | None) -> tuple[int, Array]:
    """The body that carries the tcp, and the tcp's frame in it."""
    if tip is not None:
        if tip in arm.sites:
            return arm.site(tip)
        return arm.known("body", tip, " or site"), np.eye(4)
    ends = [body for body in range(1, arm.m.nbody) if arm.joints[body] and not arm.moves_on(body)]
    if len(ends) > 1:
        names = ", ".join(arm.name(body) for body in ends)
        raise ModelFileError(f"{arm.path}: has several chains; choose one with tip=, they end at {names}")
    if not ends:
        raise ModelFileError(f"{arm.path}: has no moving joint")
    for name in _TIPS:
        if name in arm.sites and ends[0] in arm.way(arm.site(name)[0]):
            return arm.site(name)
    return ends[0], np.eye(4)


class _Arm:
    """MuJoCo's compiled arrays, as bodies with a place, joints and a mass."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.m, self.title, self.left_out = _compiled(path)
        m = self.m
        self.joints = [list(range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b])) for b in range(m.nbody)]
        self.sites = {name: i for i in range(m.nsite) if (name := m.site(i).name)}
        self.bodies = {name: i for i in range(m.nbody) if (name := m.body(i).name)}

    def name(self, body: int) -> str:
        """A body's name, or one made from its number."""
        return check_name(self.m.body(body).name or f"body_{body}", str(self.path), "a body's name")

    def known(self, kind: str, name: str, more: str = "") -> int:
        """The number of a body by its name."""
        if name not in self.bodies:
            raise UnknownName(f"{self.path}: {name!r} is no {kind}{more}; bodies: {', '.join(self.bodies)}")
        return self.bodies[name]

    def site(self, name: str) -> tuple[int, Array]:
        """The body that a site sits on, and its frame there (4, 4)."""
        i = self.sites[name]
        return int(self.m.site_bodyid[i]), _frame(self.m.site_pos[i], self.m.site_quat[i])

    def way(self, body: int) -> list[int]:
        """The bodies from the world (not counted) to this one."""
        found: list[int] = []
        while body:
            found.insert(0, body)
            body = int(self.m.body_parentid[body])
        return found

    def moves_on(self, body: int) -> bool:
        """Whether a joint comes after this body."""
        after = range(body + 1, self.m.nbody)
        return any(self.joints[other] and body in self.way(other) for other in after)

    def place(self, body: int) -> Array:
        """A body's frame in its parent's at zero (4, 4)."""
        return _frame(self.m.body_pos[body], self.m.body_quat[body])

    def pose(self, body: int) -> Array:
        """A body's frame in the world at zero (4, 4)."""
        T = np.eye(4)
        for one in self.way(body):
            T = T @ self.place(one)
        return T

    def turn(self, body: int) -> Array:
        """The joint's frame in its body, z along the axis, through the anchor (4, 4)."""
        joint = self.joints[body][0]
        turning = self.m.jnt_type[joint] == 3
        anchor = self.m.jnt_pos[joint] if turning else np.zeros(3)
        return transform(axis_to_z(np.asarray(self.m.jnt_axis[joint], dtype=float)), anchor)

    def joint(self, body: int, T_parent_joint: Array, T_joint_link: Array) -> Joint:
        """The joint of a body of the chain."""
        i = self.joints[body][0]
        low, high = self.m.jnt_range[i] if self.m.jnt_limited[i] else (-math.inf, math.inf)
        name = check_name(self.m.joint(i).name or f"joint_{i + 1}", str(self.path), "a joint's name")
        kind = _KINDS[int(self.m.jnt_type[i])]
        limits = (float(low), float(high), math.inf, self._torque(i))
        return frozen(Joint(name, kind, T_parent_joint, T_joint_link, *limits))

    def _torque(self, joint: int) -> float:
        """The most that the joint's own limit and its actuators' let through [Nm or N]; inf where none is said."""
        m = self.m
        own = float(np.max(np.abs(m.jnt_actfrcrange[joint]))) if m.jnt_actfrclimited[joint] else math.inf
        drives = [a for a in range(m.nu) if m.actuator_trntype[a] == 0 and m.actuator_trnid[a, 0] == joint]
        given = 0.0
        for a in drives:
            gear = abs(float(m.actuator_gear[a, 0]))
            limit = math.inf
            if m.actuator_forcelimited[a]:
                limit = float(np.max(np.abs(m.actuator_forcerange[a])))
            elif m.actuator_ctrllimited[a] and m.actuator_biastype[a] == 0:  # a plain motor: force = gain * control
                limit = float(np.max(np.abs(m.actuator_ctrlrange[a]))) * abs(float(m.actuator_gainprm[a, 0]))
            given += gear * limit
        return min(own, given) if drives and given > 0.0 else own

    def link(self, body: int, moving: list[int]) -> Link:
        """Everything that moves with a body of the chain, joined, in the body's frame."""
        total = self._body(body)
        pending = [(body, np.eye(4))]
        while pending:
            above, T_body_above = pending.pop()
            for other in self._children(above):
                if other not in moving:  # also where a body without a joint stands between two of the chain
                    T = T_body_above @ self.place(other)
                    total = joined(total, moved(self._body(other), T))
                    pending.append((other, T))
        name = self.name(body)
        check_body(f"{self.path}, body {name!r}", total.mass, total.com, total.inertia, point_mass=True)
        return frozen(Link(name, total.mass, total.com, total.inertia))

    def _children(self, body: int) -> list[int]:
        return [other for other in range(1, self.m.nbody) if self.m.body_parentid[other] == body]

    def _body(self, body: int) -> Link:
        R = _frame(np.zeros(3), self.m.body_iquat[body])[:3, :3]
        moments = np.asarray(self.m.body_inertia[body], dtype=float)
        inertia = R @ np.diag(moments if moments.max() > _POINT else np.zeros(3)) @ R.T
        com = np.array(self.m.body_ipos[body], dtype=float)
        return Link("", float(self.m.body_mass[body]), com, 0.5 * (inertia + inertia.T))

    def drives(self, moving: list[int]) -> Drives:
        """Rotor inertia and friction; nan where the file has none."""
        dofs = [int(self.m.jnt_dofadr[self.joints[body][0]]) for body in moving]
        arrays = (self.m.dof_armature, self.m.dof_frictionloss, self.m.dof_damping)
        # damping of MuJoCo 3.4 and later may have further columns for powers of the speed: the first is the linear one
        rotor, dry, viscous = (np.asarray(values, dtype=float).reshape(self.m.nv, -1)[dofs, 0] for values in arrays)
        known = (np.where(values > 0.0, values, math.nan) for values in (rotor, dry, viscous))
        return frozen(Drives(np.full(len(dofs), math.nan), *known))

    def refuse(self, moving: list[int]) -> None:
        """Raise for what a serial arm of simple joints cannot be."""
        m = self.m
        for body in moving:
            names = ", ".join(m.joint(i).name or f"joint_{i + 1}" for i in self.joints[body])
            if len(self.joints[body]) > 1:
                raise ModelFileError(f"{self.path}: body {self.name(body)!r} has several joints ({names}); one is read")
            joint = self.joints[body][0]
            if int(m.jnt_type[joint]) not in _KINDS:
                raise ModelFileError(f"{self.path}: joint {names!r} is a ball or free joint; hinge and slide are read")
            if m.qpos0[m.jnt_qposadr[joint]] != 0.0:
                raise ModelFileError(f"{self.path}: joint {names!r} has a reference (ref), not read: set it to 0")
        if m.neq or m.ntendon:
            what = "equality constraints" if m.neq else "tendons"
            raise ModelFileError(f"{self.path}: has {what}, which a serial arm has not; remove them from the file")

    def note(self, moving: list[int]) -> None:
        """Say what of the file is not in the model, or is to be doubted."""
        m, said = self.m, []
        if m.nu:
            said.append(f"its {m.nu} actuator{'s are' if m.nu > 1 else ' is'} not read, but for torque limits")
        dofs = [int(m.jnt_dofadr[self.joints[body][0]]) for body in moving]
        if np.any(np.asarray(m.dof_damping).reshape(m.nv, -1)[dofs]):
            said.append("its damping is taken as viscous friction: check it, such files often damp for the solver only")
        if np.any(m.body_gravcomp):
            said.append("its gravity compensation (gravcomp) is not read")
        if np.any(np.asarray(m.jnt_stiffness)[[self.joints[body][0] for body in moving]]):
            said.append("the springs of its joints (stiffness) are not read")
        if m.opt.density or m.opt.viscosity:
            said.append("the air or water around it (density, viscosity) is not read")
        if beside := sum(len(joints) for joints in self.joints) - len(moving):
            many = "s beside the arm are" if beside > 1 else " beside the arm is"
            said.append(f"{beside} joint{many} held at zero")
        if self.left_out:
            said.append(f"{self.left_out} mesh{'es' * (self.left_out > 1)} could not be read and left out")
        if said:
            warnings.warn(f"{self.path.name}: {'; '.join(said)}", stacklevel=5)


def _frame(position: Any, quaternion: Any) -> Array:
    """The pose (4, 4) of a position and a quaternion w x y z of any length."""
    w, x, y, z = (float(value) for value in quaternion)
    s = 2.0 / (w * w + x * x + y * y + z * z)
    R = np.array(
        [
            [1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
            [s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x)],
            [s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y)],
        ]
    )
    return transform(R, np.asarray(position, dtype=float))


_warned: deque[str] = deque(maxlen=20)  # what MuJoCo warned of lately


def mujoco_module(needed: str) -> Any:
    """MuJoCo, which writes nothing by itself; where it is not installed the error says what it is needed for."""
    with extra(f"{needed}: pip install 'tangere[sim]'"):
        import mujoco
    if mujoco.get_mju_user_warning() is None:
        # else MuJoCo writes MUJOCO_LOG.TXT into the current folder, and lines of its own onto the terminal; that a
        # simulation diverges the plant says itself
        mujoco.set_mju_user_warning(_warned.append)
    return mujoco


def _compiled(path: Path) -> tuple[Any, str, int]:
    """MuJoCo's compiled model, its name, and how many meshes were left out because their files are not there."""
    mujoco = mujoco_module("reading a MuJoCo model needs mujoco")
    _modest(path)
    with foreign.reading(path, _size(path), ModelFileError):
        try:
            _warned.clear()
            spec = mujoco.MjSpec.from_file(str(path))
            if _warned:  # such as a NaN, which MuJoCo takes for a number that was not given
                raise ModelFileError(f"{path}: MuJoCo warns of it: {foreign.shown(ValueError(_warned[0]), 300)}")
            title = check_name(spec.modelname or path.stem, str(path), "the model's name")
            if all(_there(path, spec, mesh) for mesh in spec.meshes):
                return spec.compile(), title, 0
        except ValueError as problem:
            raise ModelFileError(f"{path}: MuJoCo refuses it: {foreign.shown(problem, 300)}") from problem
        return (*_without_meshes(path, mujoco, spec, title),)


def _size(path: Path) -> int:
    """[bytes] of the model with the files beside it, which meshes and textures may be."""
    return path.stat().st_size + sum(file.stat().st_size for file in path.parent.glob("*/*") if file.is_file())


def _modest(path: Path, depth: int = 0) -> None:
    """Raise where a model, or one that it includes, asks MuJoCo for copies or tables without measure."""
    pending = [read_xml(path)]
    while pending:
        element = pending.pop()
        pending += element.children
        for key in _COUNTS.get(element.tag, ()):
            for word in element.attributes.get(key, "").split():
                if not word.isdigit() or len(word) > 9 or int(word) > _COUNT_MAX:
                    raise element.error(f"asks for {key} {word[:40]!r}; up to {_COUNT_MAX} are read")
        if element.tag == "include" and (file := element.attributes.get("file")):
            if depth > 8:
                raise element.error("includes files more than 8 levels deep")
            if (path.parent / file).is_file():
                _modest(path.parent / file, depth + 1)


def _there(path: Path, spec: Any, mesh: Any) -> bool:
    return not mesh.file or (path.parent / (spec.meshdir or "") / mesh.file).is_file()


def _without_meshes(path: Path, mujoco: Any, spec: Any, title: str) -> tuple[Any, str, int]:
    """The same without any mesh; a body whose inertia would come from one is refused."""
    shapes = [geom for geom in spec.geoms if geom.type == mujoco.mjtGeom.mjGEOM_MESH]
    for geom in shapes:
        body = geom.parent
        if not body.explicitinertial and body.name != "world":
            raise ModelFileError(
                f"{path}: body {body.name!r} takes its inertia from a mesh whose file is not there; "
                "put the mesh files beside the model or give the body an <inertial>"
            )
    count = len(spec.meshes)
    for thing in (*shapes, *spec.meshes):
        spec.delete(thing)
    try:
        return spec.compile(), title, count
    except ValueError as problem:
        raise ModelFileError(f"{path}: MuJoCo refuses it: {foreign.shown(problem, 300)}") from problem
