"""What happens to a simulated arm by schedule: torques on joints, forces on links, and actuators that fail."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tangere.errors import InvalidValue, unknown
from tangere.kernels.periods import clipped, finite
from tangere.robots import Robot
from tangere.settings import Setting
from tangere.types import Array


@dataclass(frozen=True)
class Push:
    """A torque on one joint, or a force on a point of a link, constant for start <= time < start + duration.

        joint: tau_ext[joint] = torque          link: tau_ext = J_point(q)^T force
    """

    joint: int = 0  # counted from 1; 0: a force on a link
    torque: float = 0.0  # Nm (N for a prismatic joint), positive along the joint's axis
    start: float = 0.0  # s
    duration: float = math.inf  # s
    link: int = 0  # counted from 1; 0: a torque on a joint
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)  # m, in the link's own frame (DH: the distal frame)
    force: tuple[float, float, float] = (0.0, 0.0, 0.0)  # N, base axes
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


def push_of(given: str | Mapping[str, Any] | Push) -> Push:
    """A push from joint=2,torque=20,start=3,duration=2 or link=4,force=0,0,-30,point=0/0/0,start=3, or a mapping."""
    if isinstance(given, Push):
        return given
    values = _values("push", given, PARTS, EXAMPLE)
    foreign = ("link", "force", "point") if "joint" in values else ("torque",)
    mixed = [name for name in foreign if name in values]
    if mixed and ("joint" in values or "link" in values):
        raise InvalidValue(f"push: {', '.join(mixed)} beside the other kind; give {EXAMPLE}")
    for name in ("joint", "torque", "start") if "joint" in values else ("link", "force", "start"):
        if name not in values:
            raise InvalidValue(f"push: {name!r} is missing; give {EXAMPLE}")
    return Push(**values)


def _values(what: str, given: Any, parts: Mapping[str, Setting], example: str) -> dict[str, Any]:
    """The parts of a push or a fault, of a text name=value,name=value or of a mapping; a bare word has no value."""
    if isinstance(given, str):  # a comma before a name begins the next part; others stand between numbers
        pairs = [part.partition("=") for part in re.split(r",(?=\s*[a-z_]*\s*(?:=|$|,))", given) if part.strip()]
        given = {name.strip(): value.strip() for name, _, value in pairs}
    if not isinstance(given, Mapping):
        raise InvalidValue(f"{what}: give {example}, got {given!r}")
    unknown_names = [name for name in given if name not in parts]
    if unknown_names:
        name = unknown_names[0]
        raise unknown(what, name, parts, f"{what}: unknown {name!r}; known: {', '.join(parts)}; such as {example}")
    return {name: parts[name].read(value, f"{what} {name}") for name, value in given.items()}


def pushes_of(given: Any) -> tuple[Push, ...]:
    """Pushes from one or a list of what push_of reads; "none" or an empty list: none."""
    return tuple(push_of(one) for one in _several(given))


def _several(given: Any) -> Sequence[Any]:
    if isinstance(given, str) and given.strip() == "none":
        return ()
    return given if isinstance(given, list | tuple) else [given]


def push_record(push: Push | Fault) -> dict[str, Any]:
    """A push or a fault as data that push_of or fault_of reads back; one without end has no duration."""
    told = asdict(push)
    if isinstance(push, Push):
        kind = ("joint", "torque") if push.joint else ("link", "point", "force")
        told = {name: told[name] for name in (*kind, "start", "duration", "in_link_axes")}
    told = {name: value for name, value in told.items() if value is not False and value != math.inf}
    renamed = {TorqueLoss: {"factor": "gain"}, TorqueOffset: {"torque": "offset"}}.get(type(push), {})
    record = {renamed.get(name, name): value for name, value in told.items()}
    return record | ({"stuck": ""} if isinstance(push, Stuck) else {})


class Pushes:
    """The pushes of one plant: tau_ext and the wrench at the tcp at a time and a configuration.

    A push acts in whole periods, those whose middle lies inside it: rounding of start / period decides nothing.
    """

    def __init__(self, robot: Robot, pushes: Sequence[Push]) -> None:
        self._robot = robot
        self.nothing = np.zeros(robot.dof)  # what acts where nobody pushes
        self.nothing.flags.writeable = False
        self._all = [_checked(push, robot.dof) for push in pushes]
        self._torque, self._active = self.nothing, False  # of the joint pushes at work; whether any push is
        self._forces: list[tuple[Push, Array, Array]] = []
        self._turned: dict[int, Array] = {}  # by id of the push: its force in base axes
        self._unturned = False  # whether one of them waits for the posture at which it begins
        self._until = -math.inf  # s; up to then nothing begins or ends
        self._since = math.inf

    def add(self, push: Push) -> None:
        """One more, from the next period on."""
        self._all.append(_checked(push, self._robot.dof))
        self._since, self._until = math.inf, -math.inf

    def schedule(self, middle: float) -> bool:
        """Take up the pushes whose interval holds `middle` [s]; whether any is at work."""
        if not self._since <= middle < self._until:
            self._look(middle)
        return self._active

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

    def force_of(self, push: Push) -> Array:
        """Its force in base axes (3,) [N], turned if it has begun; zero for one on a joint."""
        return np.zeros(3) if push.joint else self._turned.get(id(push), np.array(push.force, dtype=float))

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
        self._torque, self._forces, self._active = self.nothing, [], bool(active)
        for push in active:
            if push.joint:
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


def _checked(push: Push, dof: int) -> Push:
    if push.joint and push.link:
        raise InvalidValue(f"a push is on a joint or on a link, got joint {push.joint!r} and link {push.link!r}")
    number, what = (push.link, "link") if push.link else (push.joint, "joint")
    if not (isinstance(number, int) and 1 <= number <= dof):
        raise InvalidValue(f"{what} of a push: got {number!r}, valid are 1 to {dof}")
    if not math.isfinite(push.start) or not push.duration > 0.0:
        raise InvalidValue(f"a push starts at a finite time and lasts > 0 s, got {push.start} s for {push.duration} s")
    size = (push.torque, *push.point, *push.force)
    if len(size) != 7 or not all(math.isfinite(value) for value in size):
        raise InvalidValue(f"a push has a finite torque, or a point and a force of 3 numbers each, got {push!r}")
    return push


@dataclass(frozen=True)
class TorqueLoss:
    """The joint gives only a part of its torque: applied = factor * commanded."""

    joint: int  # counted from 1
    factor: float  # what is left: 0 is a dead motor, 1 a sound one
    start: float = 0.0  # s
    duration: float = math.inf  # s


@dataclass(frozen=True)
class TorqueOffset:
    """The joint gives something on top of what it is told: applied = commanded + torque."""

    joint: int
    torque: float  # Nm
    start: float = 0.0
    duration: float = math.inf


@dataclass(frozen=True)
class Stuck:
    """The joint's brake closes: its velocity is zero at once, whatever the torque, until the fault ends."""

    joint: int
    start: float = 0.0
    duration: float = math.inf


Fault = TorqueLoss | TorqueOffset | Stuck
# what a fault may be told; `dead` and `stuck` are words alone
FAULT_PARTS = {
    one.name: one
    for one in (
        PARTS["joint"],
        Setting("offset", "Nm", None, "what the joint gives on top of what it is told"),
        Setting("gain", "", None, "what is left of the torque that it is told, 0 to 1", low=0.0, high=1.0),
        Setting("dead", "", None, "no torque at all: gain=0", "word"),
        Setting("stuck", "", None, "its brake is closed", "word"),
        Setting("start", "s", None, "of the fault"),
        Setting("duration", "s", None, "of the fault; without it: to the end"),
    )
}
_FAULTS = ("offset", "gain", "dead", "stuck")
FAULT_EXAMPLE = "joint=3,offset=-15,start=2 or joint=2,gain=0.8,start=2 or joint=3,dead,start=2"


def fault_of(given: str | Mapping[str, Any] | Fault) -> Fault:
    """A fault from joint=3,offset=-15,start=2 or joint=2,gain=0.8 or joint=3,dead,start=2,duration=1, or a mapping."""
    if isinstance(given, Fault):
        return given
    values = _values("fault", given, FAULT_PARTS, FAULT_EXAMPLE)
    kinds = [name for name in _FAULTS if name in values]
    if "joint" not in values or len(kinds) != 1:
        problem = "one of offset, gain, dead and stuck is needed" if "joint" in values else "'joint' is missing"
        raise InvalidValue(f"fault: {problem}; give {FAULT_EXAMPLE}")
    said = values.pop(kinds[0])
    if kinds[0] == "offset":
        return TorqueOffset(torque=said, **values)
    if said and kinds[0] in ("dead", "stuck"):
        raise InvalidValue(f"fault: {kinds[0]} is a word alone, got {said!r}; give {FAULT_EXAMPLE}")
    return Stuck(**values) if kinds[0] == "stuck" else TorqueLoss(factor=said if kinds[0] == "gain" else 0.0, **values)


def faults_of(given: Any) -> tuple[Fault, ...]:
    """Faults from one or a list of what fault_of reads; "none" or an empty list: none."""
    return tuple(fault_of(one) for one in _several(given))


class Actuators:
    """From commanded to applied torque: limits of the drives first, then the faults at work.

    The hardware does not know of its faults: `reported` is the limited command, `applied` what really acts, so that
    an observer sees applied - reported as if somebody had pushed. A command that is not finite is not taken: the
    torque of the period before goes on. Like pushes, faults act in whole periods.
    """

    def __init__(self, tau_max: Array, faults: Sequence[Fault] = ()) -> None:
        self._most = np.array(tau_max)
        self._faults = [_possible(fault, len(tau_max)) for fault in faults]
        self.stuck: tuple[int, ...] = ()  # joints (from 0) whose brake is closed
        self.reset()

    def reset(self) -> None:
        """No torque yet, every brake open."""
        self.reported = np.zeros(len(self._most))
        self.stuck = ()

    def apply(self, tau: Array, middle: float) -> Array:
        """The torque (n,) that acts in the period around `middle` [s]; sets `reported` and `stuck`."""
        if finite(tau):
            self.reported = clipped(tau, self._most)
        if not self._faults:
            return self.reported
        applied = self.reported.copy()
        stuck = set()
        for fault in self._faults:
            if fault.start <= middle < fault.start + fault.duration:
                if isinstance(fault, TorqueLoss):
                    applied[fault.joint - 1] *= fault.factor
                elif isinstance(fault, TorqueOffset):
                    applied[fault.joint - 1] += fault.torque
                else:
                    stuck.add(fault.joint - 1)
        self.stuck = tuple(sorted(stuck))
        return applied


def braked(M: Array, qd: Array, stuck: tuple[int, ...]) -> Array:
    """Velocities (n,) just after brakes closed: zero there, and the momentum of the free joints unchanged.

        M_ff (qd_f' - qd_f) = M_fs qd_s

    because the brakes' impulse acts on the stuck joints only.
    """
    held = np.array(stuck)
    free = np.setdiff1d(np.arange(len(qd)), held)
    after = np.zeros_like(qd)
    if free.size:
        after[free] = qd[free] + np.linalg.solve(M[np.ix_(free, free)], M[np.ix_(free, held)] @ qd[held])
    return after


def _possible(fault: Fault, dof: int) -> Fault:
    if not (isinstance(fault.joint, int) and 1 <= fault.joint <= dof):
        raise InvalidValue(f"joint of a fault: got {fault.joint!r}, valid are 1 to {dof}")
    if not math.isfinite(fault.start) or not fault.duration > 0.0:
        raise InvalidValue(f"a fault starts at a finite time and lasts > 0 s, got {fault!r}")
    if isinstance(fault, TorqueLoss) and not 0.0 <= fault.factor <= 1.0:
        raise InvalidValue(f"factor of a torque loss: what is left, 0 to 1, got {fault.factor!r}")
    if isinstance(fault, TorqueOffset) and not math.isfinite(fault.torque):
        raise InvalidValue(f"torque of a fault: must be finite [Nm], got {fault.torque!r}")
    return fault
