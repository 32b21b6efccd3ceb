"""What the environment does to a simulated arm by schedule: torques on joints and forces on links."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tangere.errors import InvalidValue, unknown
from tangere.robots import Robot
from tangere.settings import Setting
from tangere.types import Array


@dataclass(frozen=True)
class Push:
    """A torque on one joint, constant while it lasts: tau_ext[joint] = torque for start <= time < start + duration."""

    joint: int  # counted from 1
    torque: float  # Nm (N for a prismatic joint), positive along the joint's axis
    start: float  # s
    duration: float = math.inf  # s


@dataclass(frozen=True)
class PushForce:
    """A force on a point of a link, constant in base axes while it lasts: tau_ext = J_point(q)^T force."""

    link: int  # counted from 1
    point: tuple[float, float, float]  # m, in the link's own frame (DH: the distal frame)
    force: tuple[float, float, float]  # N, base axes
    start: float  # s
    duration: float = math.inf  # s
    in_link_axes: bool = False  # the force is given in the link's axes, and turned into base axes once: when it begins


# what a push may be told
PARTS = {
    one.name: one
    for one in (
        Setting("joint", "", None, "counted from 1", "count"),
        Setting("torque", "Nm", None, "on that joint"),
        Setting("link", "", None, "counted from 1", "count"),
        Setting("force", "N", None, "on that link, base axes", size=(3,)),
        Setting("point", "m", None, "of the link's own frame at which the force acts", size=(3,)),
        Setting("start", "s", None, "of the push"),
        Setting("duration", "s", None, "of the push; without it: to the end"),
    )
}
EXAMPLE = "joint=2,torque=20,start=3,duration=2 or link=4,force=0/0/20,start=3,duration=2"


def push_of(given: str | Mapping[str, Any] | Push | PushForce) -> Push | PushForce:
    """A push from joint=2,torque=20,start=3,duration=2 or link=4,force=0,0,-30,point=0/0/0,start=3, or a mapping."""
    if isinstance(given, Push | PushForce):
        return given
    if isinstance(given, str):  # a comma before a name begins the next part; others stand between numbers
        pairs = [part.partition("=") for part in re.split(r",(?=\s*[a-z_]*\s*(?:=|$))", given) if part.strip()]
        given = {name.strip(): value.strip() for name, _, value in pairs}
    if not isinstance(given, Mapping):
        raise InvalidValue(f"push: give {EXAMPLE}, got {given!r}")
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in PARTS:
            raise unknown("push", name, PARTS, f"push: unknown {name!r}; known: {', '.join(PARTS)}")
        values[name] = PARTS[name].read(value, f"push {name}")
    foreign = ("link", "force", "point") if "joint" in values else ("torque",)
    mixed = [name for name in foreign if name in values]
    if mixed and ("joint" in values or "link" in values):
        raise InvalidValue(f"push: {', '.join(mixed)} beside the other kind; give {EXAMPLE}")
    for name in ("joint", "torque", "start") if "joint" in values else ("link", "force", "start"):
        if name not in values:
            raise InvalidValue(f"push: {name!r} is missing; give {EXAMPLE}")
    return Push(**values) if "joint" in values else PushForce(**({"point": (0.0, 0.0, 0.0)} | values))


def pushes_of(given: Any) -> tuple[Push | PushForce, ...]:
    """Pushes from one or a list of what push_of reads; "none" or an empty list: none."""
    if isinstance(given, str) and given.strip() == "none":
        return ()
    several = given if isinstance(given, list | tuple) else [given]
    return tuple(push_of(one) for one in several)


def push_record(push: Push | PushForce) -> dict[str, Any]:
    """A push as data that push_of reads back; one without end has no duration."""
    return {name: value for name, value in asdict(push).items() if value is not False and value != math.inf}


class Pushes:
    """The pushes of one plant: tau_ext and the wrench at the tcp at a time and a configuration.

    A push acts in whole periods, those whose middle lies inside it: rounding of start / period decides nothing.
    """

    def __init__(self, robot: Robot, pushes: Sequence[Push | PushForce]) -> None:
        self._robot = robot
        self._nothing = np.zeros(robot.dof)
        self._nothing.flags.writeable = False
        self._all = [_checked(push, robot.dof) for push in pushes]
        self._torque = self._nothing  # of the joint pushes at work
        self._forces: list[tuple[PushForce, Array, Array]] = []
        self._turned: dict[int, Array] = {}  # by id of the push: its force in base axes
        self._unturned = False  # whether one of them waits for the posture at which it begins
        self._until = -math.inf  # s; up to then nothing begins or ends
        self._since = math.inf

    def add(self, push: Push | PushForce) -> None:
        """One more, from the next period on."""
        self._all.append(_checked(push, self._robot.dof))
        self._since, self._until = math.inf, -math.inf

    def schedule(self, middle: float) -> bool:
        """Take up the pushes whose interval holds `middle` [s]; whether any is at work."""
        if not self._since <= middle < self._until:
            self._look(middle)
        return self._torque is not self._nothing or bool(self._forces)

    def torque(self, q: Array) -> Array:
        """tau_ext (n,) of the scheduled pushes at q. Not to be written to."""
        if not self._forces:
            return self._torque
        total = self._torque.copy()
        if self._unturned:
            self._turn(q)
        for push, point, force in self._forces:
            total += force @ self._robot.jacobian(q, link=push.link, point=point)[:3]
        return total

    def force_of(self, push: Push | PushForce) -> Array:
        """Its force in base axes (3,) [N], turned if it has begun; zero for one on a joint."""
        return np.zeros(3) if isinstance(push, Push) else self._turned.get(id(push), np.array(push.force, dtype=float))

    def wrench(self, q: Array) -> Array:
        """Wrench (6,) at the tcp, base axes, of the scheduled forces on the last link; other links have none there."""
        total = np.zeros(6)
        last = [entry for entry in self._forces if entry[0].link == self._robot.dof]
        if last:
            T = self._robot.link_poses(q)[-1]
            tcp = self._robot.pose(q)[:3, 3]
            for _, point, force in last:
                total[:3] += force
                total[3:] += np.cross(T[:3, :3] @ point + T[:3, 3] - tcp, force)
        return total

    def _look(self, middle: float) -> None:
        active = [push for push in self._all if push.start <= middle < push.start + push.duration]
        edges = [edge for push in self._all for edge in (push.start, push.start + push.duration)]
        self._since = max((edge for edge in edges if edge <= middle), default=-math.inf)
        self._until = min((edge for edge in edges if edge > middle), default=math.inf)
        self._torque, self._forces = self._nothing, []
        for push in active:
            if isinstance(push, Push):
                self._torque = self._torque.copy()
                self._torque[push.joint - 1] += push.torque
            else:
                self._forces.append((push, np.array(push.point, dtype=float), np.array(push.force, dtype=float)))
                self._unturned |= push.in_link_axes

    def _turn(self, q: Array) -> None:
        """Forces given in a link's axes into base axes, at the posture of now."""
        turns = self._robot.link_poses(q)[:, :3, :3]
        for i, (push, point, force) in enumerate(self._forces):
            if push.in_link_axes and id(push) not in self._turned:
                self._turned[id(push)] = turns[push.link - 1] @ force
            self._forces[i] = (push, point, self._turned.get(id(push), force))
        self._unturned = False


def _checked(push: Push | PushForce, dof: int) -> Push | PushForce:
    number, what = (push.joint, "joint") if isinstance(push, Push) else (push.link, "link")
    if not (isinstance(number, int) and 1 <= number <= dof):
        raise InvalidValue(f"{what} of a push: got {number!r}, valid are 1 to {dof}")
    if not math.isfinite(push.start) or not push.duration > 0.0:
        raise InvalidValue(f"a push starts at a finite time and lasts > 0 s, got {push.start} s for {push.duration} s")
    size = (push.torque,) if isinstance(push, Push) else (*push.point, *push.force)
    if len(size) not in (1, 6) or not all(math.isfinite(value) for value in size):
        raise InvalidValue(f"a push has a finite torque, or a point and a force of 3 numbers each, got {push!r}")
    return push
