"""What describes a kind of FMU: its parts (C code, memory, kernels, equations), variables, and answers to expect.

A new kind is a `Kind` in a file of blocks (kinematic_blocks.py, dynamic_blocks.py, observer_blocks.py) and its name in
kinds.py. A new part is a `Part` beside it, its C code in c/part_NAME.h, and its calls in c/block.h. The numbers of an
arm are start values of parameters, see ArmNumbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tangere.apps.fmu.families import Family, family_of
from tangere.apps.fmu.variables import REFERENCE_OF, Group, Table, parameter, real_input
from tangere.codegen.functions import ANGLE_MAX
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.kinematics.rotation import rotation_vector_from_matrix
from tangere.model.model import Model, Payload
from tangere.planning.posture import at_rest, posture, within_limits

if TYPE_CHECKING:
    from tangere.apps.fmu.check import Asked
    from tangere.robots import Robot
    from tangere.types import Array

UNLIMITED = ANGLE_MAX  # [rad] stands for "no limit" in a file that cannot hold infinity everywhere
FRICTION = ("COULOMB", "VISCOUS", "WIDTH")
FRAME = ("Position",) * 3 + ("RotationVector",) * 3  # types of a frame's six numbers
# types of what joints do, where they turn and where they slide
POSITION, VELOCITY = ("Angle", "Position"), ("AngularVelocity", "Velocity")
ACCELERATION, TORQUE = ("AngularAcceleration", "Acceleration"), ("Torque", "Force")
EXACT = 1e-12  # of an answer: the same arithmetic, only the folding of the parameters rounds differently
CLOSE = 1e-9  # of an answer: where rounding is carried through many steps, or through M^-1


@dataclass(frozen=True)
class Equations:
    """Title, lines of mathematics, what they mean, and where they come from."""

    title: str
    lines: tuple[str, ...]
    text: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A piece of C code that blocks are put together from; the macro HAS_NAME switches it on."""

    name: str
    kernels: tuple[str, ...]  # the traced kernels that it calls
    header: str = ""  # its C file, where it is not one of those that every block has
    # what it keeps between steps: names, and how many doubles for each joint and beside them
    memory: tuple[tuple[str, int, int], ...] = ()
    equations: Equations | None = None
    closed: bool = False  # needs the closed form of a UR arm's inverse kinematics
    serial: Equations | None = None  # in place of `equations` for arms that are no UR

    def equations_of(self, family: Family) -> Equations | None:
        """What it computes for an arm of that family."""
        return self.equations if family.closed or self.serial is None else self.serial


@dataclass(frozen=True)
class Answer:
    """What a block is asked to compare it with the library (`tangere fmu check`).

    prefix: of its variables. ask: sets inputs, compares outputs and says what it did; "not checked: ..." for nothing.
    tolerance: of every answer, times max(1, |answer|).
    """

    what: str
    ask: Callable[[Asked], str]
    tolerance: float
    prefix: str = ""


@dataclass(frozen=True)
class Kind:
    """A kind of block."""

    name: str
    suffix: str  # UR10e_FK
    title: str
    summary: str  # one line for the command line's help
    text: str
    colour: tuple[int, int, int]  # of the tool in its icon: tells the kinds apart
    parts: tuple[Part, ...]
    groups: Callable[[ArmNumbers], list[Group]]  # its variables for an arm
    answers: tuple[Answer, ...]
    directional: bool = True  # whether anything in it is smooth
    memory: bool = True  # whether a completed step changes anything

    def has(self, part: str) -> bool:
        """Whether the block has the part of that name."""
        return any(p.name == part for p in self.parts)

    @property
    def closed(self) -> bool:
        """Whether it is made for UR arms only."""
        return any(part.closed for part in self.parts)

    def table(self, arm: ArmNumbers) -> Table:
        """All variables, placed; refuses an arm that the kind cannot serve."""
        if self.closed and not arm.family.closed:
            raise InvalidValue(
                f"{self.name}: made of the inverse kinematics in closed form that UR arms have (not calibrated ones), "
                f"which {arm.model.name} has not; fk, dynamics, inverse-dynamics, controller, observer and arm serve "
                f"any serial arm"
            )
        table = Table(self.groups(arm))
        if max(table.count.values()) >= REFERENCE_OF["Integer"]:
            raise InvalidValue(f"{self.name}: {arm.model.name} has too many joints ({arm.dof}) for a block")
        return table

    def identifier(self, arm: ArmNumbers) -> str:
        """Model identifier and file name without ending."""
        return f"{arm.name}_{self.suffix}" if self.suffix else arm.name


@dataclass(frozen=True, eq=False)
class ArmNumbers:
    """An arm, its tool and its load as the blocks carry them."""

    name: str  # "UR10e"
    robot: Robot
    friction: JointFriction
    q_start: Array  # (n,) [rad, m] where the blocks begin

    @property
    def model(self) -> Model:
        """Of the robot: lengths, links, tool, load, sources."""
        return self.robot.model

    @property
    def T_start(self) -> Array:
        """Pose (4, 4) of the tcp at q_start."""
        return self.robot.pose(self.q_start)

    @property
    def family(self) -> Family:
        """What its C code is made for."""
        return family_of(self.model)

    @property
    def dof(self) -> int:
        """Number of joints."""
        return self.model.dof

    def of_joints(self, turning: str, sliding: str) -> str | tuple[str, ...]:
        """Types of something that every joint has: one for all, or one each where a joint slides."""
        kinds = self.family.joints
        return turning if "P" not in kinds else tuple(sliding if kind == "P" else turning for kind in kinds)

    @property
    def geometry(self) -> tuple[str, ...]:
        """Keys of the parameters that poses depend on, but the tool."""
        return ("LENGTHS",) if self.family.closed else ("JOINT_AT", "JOINT_TURN", "LINK_AT", "LINK_TURN")

    @property
    def kinematic(self) -> tuple[str, ...]:
        """Keys of the parameters that poses depend on."""
        return (*self.geometry, "TOOL")

    @property
    def static(self) -> tuple[str, ...]:
        """Keys of what gravity depends on."""
        return (*self.geometry, "GRAVITY", "MASS", "COM", "INERTIA", "LOAD_MASS", "LOAD_COM", "LOAD_INERTIA")

    @property
    def dynamic(self) -> tuple[str, ...]:
        """Keys of what M depends on."""
        return (*self.static, "ROTOR")

    @property
    def lengths(self) -> tuple[float, ...]:
        """d1 a2 a3 d4 d5 d6 [m] of the DH table of a UR."""
        assert self.model.dh is not None
        a, d = self.model.dh.a.tolist(), self.model.dh.d.tolist()
        return d[0], a[1], a[2], d[3], d[4], d[5]

    @property
    def inertia(self) -> Array:
        """(n, 6) xx yy zz xy xz yz of every link about its centre of mass."""
        return np.array([_six(link.inertia) for link in self.model.links])

    @property
    def sources(self) -> list[str]:
        """Where the numbers come from, a line each."""
        return [f"{s.group}: {s.text} ({s.grade})" for s in self.model.sources]


def _six(inertia: Array) -> list[float]:
    return [float(inertia[i]) for i in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]


def six_of(T: Array) -> list[float]:
    """A frame as x, y, z and rotation vector."""
    return [*T[:3, 3].tolist(), *rotation_vector_from_matrix(T[:3, :3]).tolist()]


def arm_of(robot: Robot, friction: JointFriction | None = None, q_start: ArrayLike | None = None) -> ArmNumbers:
    """The numbers of a serial arm.

    friction: None for none. q_start (n,) [rad, m]: where the blocks begin; None: bent (a UR: elbow bent, tool down).
    """
    model = robot.model
    q = posture(at_rest(robot), robot) if q_start is None else np.array(q_start, dtype=np.float64)
    if q.shape != (model.dof,) or not np.all(np.abs(q) <= UNLIMITED):
        unit = "rad" if np.all(robot.revolute) else "rad (m for a joint that slides)"
        raise InvalidValue(f"q_start: {model.dof} numbers in {unit}, at most {UNLIMITED:g} in size, got {q.tolist()}")
    within_limits(q, robot, "start")
    last = model.title.removeprefix("Universal Robots ").replace(" ", "")  # UR8 Long: UR8Long
    last = last if model.title.startswith("Universal Robots ") else (model.title.split() or [""])[-1]
    name = last if last.isidentifier() else re.sub(r"\W|^(?=\d)", "_", model.name, flags=re.ASCII)
    return ArmNumbers(name, robot, friction or JointFriction.none(model.dof), q)


def length_parameters(arm: ArmNumbers) -> list[Group]:
    """Geometry and tool."""
    tool = parameter(
        "TOOL", "tool", (6,), "tcp in the flange frame: x, y, z and rotation vector rx, ry, rz", FRAME,
        six_of(arm.model.T_flange_tcp),
    )  # fmt: skip
    if arm.family.closed:
        return [
            parameter("LENGTHS", "arm.dh", (6,), "d1, a2, a3, d4, d5, d6 of the standard DH table", "Length",
                      arm.lengths, tunable=False),
            tool,
        ]  # fmt: skip
    out = []
    for key, name, text, frames in (
        ("JOINT", "arm.joints", "each joint in the frame of the link before",
         [j.T_parent_joint for j in arm.model.joints]),
        ("LINK", "arm.links", "each link's frame in that of its joint", [j.T_joint_link for j in arm.model.joints]),
    ):  # fmt: skip
        six = np.array([six_of(T) for T in frames])
        more = "; z is its axis" if key == "JOINT" else ""
        out += [
            parameter(f"{key}_AT", f"{name}.position", (arm.dof, 3), f"{text}: x, y, z", "Position", six[:, :3],
                      tunable=False),
            parameter(f"{key}_TURN", f"{name}.rotation", (arm.dof, 3), f"{text}: rotation vector{more}",
                      "RotationVector", six[:, 3:], tunable=False),
        ]  # fmt: skip
    return [*out, tool]


def arm_parameters(arm: ArmNumbers) -> list[Group]:
    """Geometry, tool, everything that has mass, friction: coulomb tanh(qd / width) + viscous qd.

    The order, up to friction, is that of the C kernel `parameters` (families.Family.dynamic).
    """
    inertia, links, load, n = "xx, yy, zz, xy, xz, yz", arm.model.links, arm.model.payload or Payload(0.0), arm.dof
    axes = "DH" if arm.family.closed else "link"
    slides = not arm.robot.revolute.all()
    return [
        *length_parameters(arm),
        parameter("GRAVITY", "gravity", (3,), "gravity in base axes", "Acceleration", arm.model.gravity),
        parameter("MASS", "arm.mass", (n,), "mass of the links", "Mass", [link.mass for link in links], tunable=False,
                  low=0.0),
        parameter("COM", "arm.com", (n, 3), f"centre of mass of each link, in its {axes} frame", "Position",
                  [link.com for link in links], tunable=False),
        parameter("INERTIA", "arm.inertia", (n, 6), f"{inertia} of each link about its centre of mass, {axes} axes",
                  "Inertia", arm.inertia, tunable=False),
        parameter("LOAD_MASS", "payload.mass", (), "mass at the flange", "Mass", load.mass, low=0.0),
        parameter("LOAD_COM", "payload.com", (3,), "its centre of mass, flange axes", "Position", load.com),
        parameter("LOAD_INERTIA", "payload.inertia", (6,), f"its {inertia} about the centre of mass, flange axes",
                  "Inertia", _six(load.inertia)),
        parameter("ROTOR", "rotor_inertia", (n,), "rotor inertia of the drives at the joint side",
                  arm.of_joints("Inertia", "Mass"), arm.robot.rotor_inertia, low=0.0),
        parameter("COULOMB", "friction.coulomb", (n,), "dry friction", arm.of_joints("Torque", "Force"),
                  arm.friction.coulomb, low=0.0),
        parameter("VISCOUS", "friction.viscous", (n,), "viscous friction", arm.of_joints("Damping", "LinearDamping"),
                  arm.friction.viscous, low=0.0),
        parameter("WIDTH", "friction.width", (),
                  "speed over which dry friction turns round" + " [rad/s, m/s]" * slides,
                  "" if slides else "AngularVelocity", arm.friction.width, low=1e-6),
    ]  # fmt: skip


def motion_inputs(arm: ArmNumbers, prefix: str, which: str = "", *, suffix: str = "", count: int = 3) -> list[Group]:
    """Joint positions, velocities and accelerations as inputs, the first `count` of them; which: "measured "."""
    rows = (("q", "positions", POSITION, arm.q_start, 1.0), ("qd", "velocities", VELOCITY, 0.0, 1.0),
            ("qdd", "accelerations", ACCELERATION, 0.0, 10.0))  # fmt: skip
    return [
        real_input(f"{prefix}_{name}{suffix}", f"{name}{suffix}", (arm.dof,), f"{which}joint {what}",
                   arm.of_joints(*declared), start, nominal=nominal)
        for name, what, declared, start, nominal in rows[:count]
    ]  # fmt: skip
