"""The motion worth recording: moves between postures that tell most of links and drives, in free space."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue, NoSolution
from tangere.identification.excite_files import save
from tangere.identification.forecast import WINDOW, Expectation, Forecast
from tangere.identification.prior import prior_drive
from tangere.kinematics.checks import checked
from tangere.kinematics.rotation import matrix_from_quaternion, normalised
from tangere.planning.free_space import MARGIN, TOOL, Box, FreeSpace
from tangere.robots import Robot
from tangere.types import Array

PERIOD = 0.002  # [s] between the rows: a UR's own frame
SECONDS = 60.0
SPEED = 0.6  # share of the joints' top speed: fast enough for viscous friction, with room for a controller's own limits
TOOL_SPEED = 1.0  # [m/s] of flange and elbow: two thirds of what a UR's safety settings allow as they come (1.5)
ACCELERATION = 5.0  # [rad/s2] UR's programs usually ask for 1.4; the torque limit below is what bounds a large arm
JERK = 60.0  # [rad/s3] the acceleration builds up over about a tenth of a second, see planning.joint_motions
TORQUE = 0.7  # share of the drives' peak torque, of what the model says with friction
PAUSE = 0.1  # [s] at each posture: with the slow ends of the moves it rests for long enough to read gains from targets
# Shares of the limits that each move is tried with: Coulomb friction shows itself in slow motion, viscous and inertia
# in fast
PACES = (0.12, 0.4, 1.0)
LEAST = 5.0  # [s] that a motion must last: two moves, there and back
_WIDE = np.pi  # [rad] either way of zero that a joint is used in: a full turn; cables are not wound up further
_EDGE = 0.05  # [rad] kept from the joint limits
_POSTURES = 240  # free ones that moves are made between
_TRIED = 60_000  # random postures, of which so many must be free
_AT_ONCE = 2000
_HINTED = 10_000  # random postures that a face of the box is judged by
_STARTS = 20  # postures that are tried as a start, where none is given
_LOCAL = 0.4  # [rad] standard deviation of goals near by, which also a narrow box has
_FEWEST = 8
_ROUNDS = 12  # of slowing down until tool speed and torque are kept
NEAR = 0.3  # [rad] between two postures below which it is hardly a move
_GOALS = 14  # postures that each next move is chosen from
_STEP = 0.04  # [rad] along a move between two looks at whether it is free
_SWING = 0.5  # [rad] that a joint may swing to the side of its way: joints then differ in their accelerations
_TURNS = (1, 2, 3)  # swings of a joint in one move
_BETWEEN = 1.01  # times the shortest time: between two looks at a move its peaks are higher, by less than 1 %
_LOOKS = np.linspace(0.0, 1.0, 81)  # of a move, for its speed, tool speed and torque
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Move:
    """From one posture to another, at rest at both ends; each joint swings to the side of its way and back.

        q = start + (end - start) (10 s^3 - 15 s^4 + 6 s^5) + swing 64 (s - s^2)^3 sin(2 pi turns s)

    s = t / duration. Velocity and acceleration are zero at both ends, and the jerk is bounded.
    """

    start: Array  # (n,) [rad]
    end: Array
    swing: Array  # (n,) [rad]
    turns: NDArray[np.int64]  # (n,)
    duration: float = 1.0  # [s]

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """q, qd, qdd (K, n) at times (K,) from 0 to the duration [s]."""
        s = (time / self.duration)[:, None]
        way, w = self.end - self.start, 2.0 * np.pi * self.turns
        r, d = s * (1.0 - s), 1.0 - 2.0 * s
        e, e1, e2 = 64.0 * r**3, 192.0 * r**2 * d, 384.0 * r * (d**2 - r)
        sin, cos = np.sin(w * s), np.cos(w * s)
        q = self.start + way * (s**3 * (10.0 + s * (6.0 * s - 15.0))) + self.swing * (e * sin)
        qd = way * (30.0 * r**2) + self.swing * (e1 * sin + e * w * cos)
        qdd = way * (60.0 * r * d) + self.swing * (e2 * sin + 2.0 * e1 * w * cos - e * w**2 * sin)
        return q, qd / self.duration, qdd / self.duration**2

    def rows(self, period: float) -> tuple[Array, Array, Array]:
        """q, qd, qdd (K, n) every `period` [s] from half a period on."""
        count = max(1, round(self.duration / period))
        return self.at(np.linspace(0.5, count - 0.5, count) * (self.duration / count))


@dataclass(frozen=True)
class ExcitingMotion:
    """A motion that starts and ends at rest: one move after the other, with a short pause after each."""

    robot: Robot
    box: Box
    whole: bool  # whether the whole arm stays in the box; else wrist and tool do (FreeSpace)
    seed: int
    moves: tuple[Move, ...]
    time: Array  # (N,) [s] every PERIOD
    q: Array  # (N, n)
    qd: Array
    qdd: Array
    forecast: Forecast

    @property
    def seconds(self) -> float:
        """From the first sample to the last."""
        return float(self.time[-1])

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it: FILE.csv (t, q, qd, qdd every 2 ms) or FILE.script (URScript). Returns the path."""
        return save(self, path)


def excite(
    robot: Robot,
    box: Box | Sequence[float] | None = None,
    *,
    seconds: float = SECONDS,
    seed: int = 0,
    start: ArrayLike | None = None,
    speed: float = SPEED,
    tool_speed: float = TOOL_SPEED,
    tool: float = TOOL,
    progress: Progress = lambda share: None,
) -> ExcitingMotion:
    """Plan the motion that identification should be given, and say what it will learn from it.

    Random free postures; from each the move is taken that brings most information per second about links and drives
    (log det, in units of what data sheet and type of arm leave unknown). Every move stays in the box and clear of the
    arm itself, within joint limits, `speed`, `tool_speed`, ACCELERATION, JERK and TORQUE.

    box: free space in base axes (Box, or x, y, z of two corners [m]); None: all on the arm's side of its mounting.
    start (n,) [rad]: where the arm begins. speed: share of the joints' top speed. tool_speed [m/s]. tool [m]: length of
    what is mounted, beyond the flange. Raises NoSolution where hardly any posture fits into the box.
    """
    if not (math.isfinite(seconds) and LEAST <= seconds <= 3600.0):
        raise InvalidValue(f"seconds: from {LEAST:g} to 3600, got {seconds!r}")
    for name, value, most in (("speed", speed, 1.0), ("tool_speed", tool_speed, 10.0), ("tool", tool, 2.0)):
        if not (math.isfinite(value) and 0.0 <= value <= most) or (value == 0.0 and name != "tool"):
            raise InvalidValue(f"{name}: above 0, up to {most:g}, got {value!r}")
    where = Box.around(robot) if box is None else box if isinstance(box, Box) else Box.of(box)
    space = FreeSpace(robot, where, tool)
    limits = _Limits(space, speed, tool_speed)
    random = np.random.default_rng(seed)
    nodes = _postures(limits, random, start)
    progress(0.1)
    expected = Expectation(robot)
    information = np.zeros((expected.size, expected.size))
    moves: list[Move] = []
    left, starts = seconds, [nodes[0]] if start is not None else list(nodes[:_STARTS])
    here = starts.pop(0)
    while left > PAUSE:
        best = _next(limits, expected, information, here, nodes, random, left - PAUSE)
        if best is None and not moves and starts:  # a posture in a corner that nothing leads out of
            here = starts.pop(0)
            continue
        if best is None:
            break
        moves.append(best[0])
        information = information + best[1]
        here = moves[-1].end
        left -= moves[-1].duration + PAUSE
        progress(0.1 + 0.85 * (1.0 - left / seconds))
    if not moves:
        raise NoSolution(
            f"no move of {robot.name} from its start fits into the box ({where}) and into {seconds:g} s: a larger box, "
            "another start or more seconds"
        )
    # too little is left for one more: the last takes its time
    last = replace(moves[-1], duration=moves[-1].duration + left)
    information += expected.information(*last.rows(WINDOW)) - expected.information(*moves[-1].rows(WINDOW))
    moves[-1] = last
    time, q, qd, qdd = _sampled(moves)
    progress(1.0)
    said = expected.forecast(information, float(time[-1]))
    return ExcitingMotion(robot, where, space.whole, seed, tuple(moves), time, q, qd, qdd, said)


def _next(
    limits: _Limits, expected: Expectation, known: Array, here: Array, nodes: Array, random: np.random.Generator,
    most: float,
) -> tuple[Move, Array] | None:  # fmt: skip
    """The move that tells most per second, and its information; None where none fits."""
    base = np.eye(expected.size) + known
    size = float(np.linalg.slogdet(base)[1])
    best, found, goals = 0.0, None, 0
    near = np.clip(here + random.normal(0.0, _LOCAL, (_GOALS, len(here))), limits.low, limits.high)
    far = nodes[random.permutation(len(nodes))]
    for goal in (*near[: _GOALS // 4], *far, *near[_GOALS // 4 :]):
        swing, turns = random.uniform(-_SWING, _SWING, len(here)), random.choice(_TURNS, len(here))
        drawn = limits.fastest(here, goal, swing, turns)
        if drawn is None:  # without its swings it may be free
            drawn = limits.fastest(here, goal, np.zeros(len(here)), turns)
        if drawn is None:
            continue
        for pace in PACES:
            move = limits.paced(drawn, pace)
            if move.duration > most:
                continue
            gained = expected.information(*move.rows(WINDOW))
            rate = (float(np.linalg.slogdet(base + gained)[1]) - size) / (move.duration + PAUSE)
            if rate > best:
                best, found = rate, (move, gained)
        goals += 1
        if goals >= _GOALS:
            break
    return found


class _Limits:
    """What moves of an arm must keep: free space, joint limits, speed, acceleration, jerk, tool speed, torque."""

    def __init__(self, space: FreeSpace, speed: float, tool_speed: float) -> None:
        self.space, robot = space, space.robot
        self.robot, self.tool_speed = robot, tool_speed
        self.qd_max = speed * np.where(np.isfinite(robot.qd_max), robot.qd_max, np.pi)
        self.drive = prior_drive(robot)
        turn = np.where(robot.revolute, _WIDE, np.inf)
        self.low, self.high = np.maximum(robot.q_min + _EDGE, -turn), np.minimum(robot.q_max - _EDGE, turn)
        if not np.all(np.isfinite(self.low) & np.isfinite(self.high)):
            raise InvalidValue(f"{robot.name}: a joint that slides has no limits: excite cannot plan for it")

    def fastest(self, a: Array, b: Array, swing: Array, turns: NDArray[np.int64]) -> Move | None:
        """The move in the shortest time that its limits allow; None where it is not free."""
        move = Move(a, b, swing, turns)
        far = float(np.abs(b - a).max())
        if far < NEAR:
            return None
        count = max(len(_LOOKS), math.ceil((1.875 * far + 6.0 * float(np.abs(swing).max())) / _STEP))
        q, qd, qdd = move.at(np.linspace(0.0, 1.0, count))
        if np.any(q < self.low) or np.any(q > self.high) or not np.all(self.space.free(q)):
            return None
        jerk = float(np.abs(np.diff(qdd, axis=0)).max()) * (count - 1)
        move = replace(move, duration=_BETWEEN * max(
            float(np.max(np.abs(qd) / self.qd_max)), math.sqrt(float(np.abs(qdd).max()) / ACCELERATION),
            (jerk / JERK) ** (1.0 / 3.0),
        ))  # fmt: skip
        for _ in range(_ROUNDS):
            over = self._over(move)
            if over <= 1.0:
                return replace(move, duration=_whole(move.duration))
            move = replace(move, duration=move.duration * min(max(over, 1.02), 1.5))
        return None  # gravity alone asks for more torque

    def paced(self, move: Move, pace: float) -> Move:
        """The fastest move at a share of its speed: accelerations fall with the square of it."""
        return move if pace == 1.0 else replace(move, duration=_whole(move.duration / pace))

    def _over(self, move: Move) -> float:
        """The largest of tool speed, elbow speed and torque against its limit."""
        robot = self.robot
        q, qd, qdd = move.at(_LOOKS * move.duration)
        speeds = [robot.jacobian(q)]
        if robot.dof > 3:
            speeds.append(robot.jacobian(q, link=3, point=np.zeros(3)))
        fast = max(float(np.linalg.norm((J[:, :3] @ qd[:, :, None])[..., 0], axis=1).max()) for J in speeds)
        tau = robot.inverse_dynamics(q, qd, qdd) + self.drive.rotor_inertia * qdd + self.drive.torque(qd)
        most = TORQUE * np.where(np.isfinite(robot.tau_max), robot.tau_max, np.inf)
        return max(fast / self.tool_speed, float(np.max(np.abs(tau) / most)))


def _whole(duration: float) -> float:
    """A whole number of WINDOWs, not shorter [s]."""
    return math.ceil(duration / WINDOW - 1e-9) * WINDOW


def _hint(limits: _Limits, random: np.random.Generator) -> str:
    """Which face of the box is in the way, and where it would not be, to a centimetre; "" where none is alone."""
    q = random.uniform(limits.low, limits.high, (_HINTED, limits.robot.dof))
    found = limits.space.face_in_the_way(q, _FEWEST * _HINTED // _AT_ONCE)
    if found is None:
        return ""
    face, value = found
    there = (*limits.space.box.low, *limits.space.box.high)[face]
    cm = math.floor(100.0 * value) if face < 3 else math.ceil(100.0 * value)
    return f". The face {'xyz'[face % 3]} = {there:g} m is in the way: {0.01 * cm:g} m instead leaves room"


def _postures(limits: _Limits, random: np.random.Generator, start: ArrayLike | None) -> Array:
    """Free ones (K, n), the start first: as given, or those in the middle of all that were found."""
    space, robot = limits.space, limits.robot
    found: list[Array] = []
    for k in range(_TRIED // _AT_ONCE):
        q = random.uniform(limits.low, limits.high, (_AT_ONCE, robot.dof))
        if k % 2 and robot.compiled and robot.dof == 6:  # a small box is met by where the tool is, not by chance
            q = _by_tool(limits, random)
        found += list(q[space.free(q)])
        if len(found) >= _POSTURES:
            break
    if len(found) < _FEWEST:
        part = "the arm" if space.whole else "wrist and tool"
        raise NoSolution(
            f"hardly any posture of {robot.name} has {part} inside the box ({space.box}), {len(found)} of {_TRIED} "
            f"tried: x, y, z of two opposite corners in m, seen from the arm's base{_hint(limits, random)}"
        )
    nodes = np.stack(found[:_POSTURES])
    if start is None:
        return np.asarray(nodes[np.argsort(np.linalg.norm(nodes - np.median(nodes, axis=0), axis=1))])
    first = checked(start, (robot.dof,), "start").astype(np.float64)
    if np.any(first < limits.low) or np.any(first > limits.high):
        raise InvalidValue(f"start: outside the joint limits, or more than half a turn from zero: {first.tolist()} rad")
    if not space.free(first[None])[0]:
        faces, links = (float(value[0]) for value in space.clearance(first[None]))
        raise InvalidValue(
            f"start: not free: {faces:.2g} m to the faces of the box, {links:.2g} m between two links (by simple "
            f"shapes; {MARGIN:g} m are needed)"
        )
    return np.concatenate([first[None], nodes])


def _by_tool(limits: _Limits, random: np.random.Generator) -> Array:
    """Postures (K, n) within the joint limits that have the flange somewhere in the box, turned anyhow."""
    robot, box = limits.robot, limits.space.box
    T = np.tile(np.eye(4), (_AT_ONCE // 8, 1, 1))
    T[:, :3, :3] = matrix_from_quaternion(normalised(random.standard_normal((len(T), 4))))
    T[:, :3, 3] = random.uniform(box.low, box.high, (len(T), 3))
    found = robot.inverse_kinematics(T @ robot.model.T_flange_tcp)
    q = found.q[found.valid]
    q = np.where(robot.revolute, (q + np.pi) % (2.0 * np.pi) - np.pi, q)
    return np.asarray(q[np.all((q >= limits.low) & (q <= limits.high), axis=1)])


def _sampled(moves: Sequence[Move]) -> tuple[Array, Array, Array, Array]:
    """time (N,), q, qd, qdd (N, n) every PERIOD, with a PAUSE after each move."""
    parts: list[tuple[Array, Array, Array]] = []
    for move in moves:
        q, qd, qdd = move.at(np.arange(round(move.duration / PERIOD), dtype=np.float64) * PERIOD)
        rest = np.zeros((round(PAUSE / PERIOD), len(move.end)))
        parts.append((np.concatenate([q, move.end + rest]), np.concatenate([qd, rest]), np.concatenate([qdd, rest])))
    q, qd, qdd = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return np.arange(len(q), dtype=np.float64) * PERIOD, q, qd, qdd
