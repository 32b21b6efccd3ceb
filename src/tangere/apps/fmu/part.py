"""What describes a kind of FMU: its parts (C code, memory, kernels, equations), variables, and answers to expect.

A new kind is a `Kind` in a file of blocks (kinematic_blocks.py, dynamic_blocks.py, observer_blocks.py) and its name in
kinds.py. A new part is a `Part` beside it, its C code in c/part_NAME.h, and its calls in c/block.h. The numbers of an
arm are start values of parameters, see ArmNumbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tangere.apps.fmu.variables import Group, Table, parameter
from tangere.codegen.functions import ANGLE_MAX
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.kinematics.rotation import rotation_vector_from_matrix
from tangere.model.model import Model, Payload

if TYPE_CHECKING:
    from tangere.apps.fmu.check import Asked
    from tangere.robots import Robot
    from tangere.types import Array

UNLIMITED = ANGLE_MAX  # [rad] stands for "no limit" in a file that cannot hold infinity everywhere
# keys of the parameters that poses, masses and friction depend on
KINEMATIC = ("LENGTHS", "TOOL")
DYNAMIC = ("LENGTHS", "GRAVITY", "MASS", "COM", "INERTIA", "LOAD_MASS", "LOAD_COM", "LOAD_INERTIA", "ROTOR")
STATIC = tuple(key for key in DYNAMIC if key != "ROTOR")  # what gravity depends on
FRICTION = ("COULOMB", "VISCOUS", "WIDTH")
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
    memory: tuple[tuple[str, int], ...] = ()  # names and sizes of what it keeps between steps [doubles]
    equations: Equations | None = None


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

    def table(self, arm: ArmNumbers) -> Table:
        """All variables, placed."""
        return Table(self.groups(arm))

    def identifier(self, arm: ArmNumbers) -> str:
        """Model identifier and file name without ending."""
        return f"{arm.name}_{self.suffix}" if self.suffix else arm.name


@dataclass(frozen=True, eq=False)
class ArmNumbers:
    """An arm, its tool and its load as the blocks carry them."""

    name: str  # "UR10e"
    robot: Robot
    friction: JointFriction
    q_start: Array  # (6,) [rad] where the blocks begin

    @property
    def model(self) -> Model:
        """Of the robot: lengths, links, tool, load, sources."""
        return self.robot.model

    @property
    def T_start(self) -> Array:
        """Pose (4, 4) of the tcp at q_start."""
        return self.robot.pose(self.q_start)

    @property
    def lengths(self) -> tuple[float, ...]:
        """d1 a2 a3 d4 d5 d6 [m] of the DH table."""
        assert self.model.dh is not None
        a, d = self.model.dh.a.tolist(), self.model.dh.d.tolist()
        return d[0], a[1], a[2], d[3], d[4], d[5]

    @property
    def inertia(self) -> Array:
        """(6, 6) xx yy zz xy xz yz of every link about its centre of mass."""
        return np.array([_six(link.inertia) for link in self.model.links])

    @property
    def sources(self) -> list[str]:
        """Where the numbers come from, a line each."""
        return [f"{s.group}: {s.text} ({s.grade})" for s in self.model.sources]


def _six(inertia: Array) -> list[float]:
    return [float(inertia[i]) for i in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]


def arm_of(robot: Robot, friction: JointFriction | None = None, q_start: ArrayLike | None = None) -> ArmNumbers:
    """The numbers of a UR arm; refuses other structures, whose kernels the blocks do not hold.

    friction: None for none. q_start (6,) [rad]: where the blocks begin; None: elbow bent, tool down.
    """
    model = robot.model
    if not ur.is_ur(model):
        raise InvalidValue(
            f"{model.name}: FMUs are made for arms with the structure of a UR (UR3 ... UR30, not calibrated ones)"
        )
    q = np.radians(ur.READY) if q_start is None else np.array(q_start, dtype=np.float64)
    if q.shape != (6,) or not np.all(np.abs(q) <= UNLIMITED):
        raise InvalidValue(f"q_start: six numbers in rad, at most {UNLIMITED:g} in size, got {q.tolist()}")
    outside = np.flatnonzero((q < robot.q_min) | (q > robot.q_max))
    if outside.size:
        i = int(outside[0])
        low, high = np.degrees([robot.q_min[i], robot.q_max[i]])
        raise InvalidValue(
            f"start: joint {i + 1} of {model.name} at {np.degrees(q[i]):.9g} deg is outside its limits, "
            f"{low:.9g} to {high:.9g} deg"
        )
    last = model.title.removeprefix("Universal Robots ").replace(" ", "")  # UR8 Long: UR8Long
    last = last if model.title.startswith("Universal Robots ") else model.title.split()[-1]
    return ArmNumbers(last if last.isidentifier() else model.name, robot, friction or JointFriction.none(6), q)


def length_parameters(arm: ArmNumbers) -> list[Group]:
    """Lengths and tool."""
    T = arm.model.T_flange_tcp
    return [
        parameter("LENGTHS", "arm.dh", (6,), "d1, a2, a3, d4, d5, d6 of the standard DH table", "Length",
                  arm.lengths, tunable=False),
        parameter("TOOL", "tool", (6,), "tcp in the flange frame: x, y, z and rotation vector rx, ry, rz",
                  ("Position",) * 3 + ("RotationVector",) * 3, [*T[:3, 3], *rotation_vector_from_matrix(T[:3, :3])]),
    ]  # fmt: skip


def arm_parameters(arm: ArmNumbers) -> list[Group]:
    """Lengths, tool, everything that has mass, friction: coulomb tanh(qd / width) + viscous qd.

    The order, up to friction, is that of the C kernel `parameters`.
    """
    inertia, links, load = "xx, yy, zz, xy, xz, yz", arm.model.links, arm.model.payload or Payload(0.0)
    return [
        *length_parameters(arm),
        parameter("GRAVITY", "gravity", (3,), "gravity in base axes", "Acceleration", arm.model.gravity),
        parameter("MASS", "arm.mass", (6,), "mass of the links", "Mass", [link.mass for link in links], tunable=False,
                  low=0.0),
        parameter("COM", "arm.com", (6, 3), "centre of mass of each link, in its DH frame", "Position",
                  [link.com for link in links], tunable=False),
        parameter("INERTIA", "arm.inertia", (6, 6), f"{inertia} of each link about its centre of mass, DH axes",
                  "Inertia", arm.inertia, tunable=False),
        parameter("LOAD_MASS", "payload.mass", (), "mass at the flange", "Mass", load.mass, low=0.0),
        parameter("LOAD_COM", "payload.com", (3,), "its centre of mass, flange axes", "Position", load.com),
        parameter("LOAD_INERTIA", "payload.inertia", (6,), f"its {inertia} about the centre of mass, flange axes",
                  "Inertia", _six(load.inertia)),
        parameter("ROTOR", "rotor_inertia", (6,), "rotor inertia of the drives at the joint side", "Inertia",
                  arm.robot.rotor_inertia, low=0.0),
        parameter("COULOMB", "friction.coulomb", (6,), "dry friction", "Torque", arm.friction.coulomb, low=0.0),
        parameter("VISCOUS", "friction.viscous", (6,), "viscous friction", "Damping", arm.friction.viscous, low=0.0),
        parameter("WIDTH", "friction.width", (), "speed over which dry friction turns round", "AngularVelocity",
                  arm.friction.width, low=1e-6),
    ]  # fmt: skip
