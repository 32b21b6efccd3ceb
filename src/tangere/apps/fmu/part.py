"""What describes a kind of FMU: its parts (C code, memory, kernels, equations), variables, and answers to expect.

A new kind is a `Kind` in a file of blocks (kinematic_blocks.py, dynamic_blocks.py, observer_blocks.py) and its name in
kinds.py. A new part is a `Part` beside it, its C code in c/part_NAME.h, and its calls in c/block.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tangere.apps.fmu.variables import Group, Table, parameter

if TYPE_CHECKING:
    from tangere.apps.fmu.check_answers import Asked
    from tangere.apps.fmu.numbers import ArmNumbers

# keys of the parameters that poses, masses and friction depend on
KINEMATIC = ("LENGTHS", "TOOL")
DYNAMIC = ("LENGTHS", "GRAVITY", "MASS", "COM", "INERTIA", "LOAD_MASS", "LOAD_COM", "LOAD_INERTIA", "ROTOR")
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


def length_parameters(arm: ArmNumbers) -> list[Group]:
    """Lengths and tool."""
    return [
        parameter("LENGTHS", "arm.dh", (6,), "d1, a2, a3, d4, d5, d6 of the standard DH table", "Length",
                  arm.lengths, tunable=False),
        parameter("TOOL", "tool", (6,), "tcp in the flange frame: x, y, z and rotation vector rx, ry, rz",
                  ("Position",) * 3 + ("RotationVector",) * 3, arm.tool),
    ]  # fmt: skip


def arm_parameters(arm: ArmNumbers) -> list[Group]:
    """Lengths, tool, everything that has mass, friction: coulomb tanh(qd / width) + viscous qd.

    The order, up to friction, is that of the C kernel `parameters`.
    """
    inertia = "xx, yy, zz, xy, xz, yz"
    return [
        *length_parameters(arm),
        parameter("GRAVITY", "gravity", (3,), "gravity in base axes", "Acceleration", arm.gravity),
        parameter("MASS", "arm.mass", (6,), "mass of the links", "Mass", arm.mass, tunable=False, low=0.0),
        parameter("COM", "arm.com", (6, 3), "centre of mass of each link, in its DH frame", "Position", arm.com,
                  tunable=False),
        parameter("INERTIA", "arm.inertia", (6, 6), f"{inertia} of each link about its centre of mass, DH axes",
                  "Inertia", arm.inertia, tunable=False),
        parameter("LOAD_MASS", "payload.mass", (), "mass at the flange", "Mass", (arm.payload_mass,), low=0.0),
        parameter("LOAD_COM", "payload.com", (3,), "its centre of mass, flange axes", "Position", arm.payload_com),
        parameter("LOAD_INERTIA", "payload.inertia", (6,), f"its {inertia} about the centre of mass, flange axes",
                  "Inertia", arm.payload_inertia),
        parameter("ROTOR", "rotor_inertia", (6,), "rotor inertia of the drives at the joint side", "Inertia",
                  arm.rotor_inertia, low=0.0),
        parameter("COULOMB", "friction.coulomb", (6,), "dry friction", "Torque", arm.coulomb, low=0.0),
        parameter("VISCOUS", "friction.viscous", (6,), "viscous friction", "Damping", arm.viscous, low=0.0),
        parameter("WIDTH", "friction.width", (), "speed over which dry friction turns round", "AngularVelocity",
                  (arm.width,), low=1e-6),
    ]  # fmt: skip
