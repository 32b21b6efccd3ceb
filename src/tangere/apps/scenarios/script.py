"""A URScript program moves the simulated arm, as a controller box would: position servo, or its torques."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tangere import foreign
from tangere.apps.scenarios import hold
from tangere.apps.scenarios.common import Findings, Motion, RunSettings, Scenario, World, reach_of
from tangere.apps.scenarios.hold import posture_setting
from tangere.control.joint_servo import JointServo
from tangere.dynamics.friction import JointFriction, sliding_friction
from tangere.errors import InvalidValue, ModelFileError
from tangere.kernels import ur
from tangere.planning.posture import at_rest, posture
from tangere.robots import Robot, robot
from tangere.script.arm import needs_six_joints
from tangere.script.builtin import NEWEST, version
from tangere.script.compiler import Program, load
from tangere.script.host import FRAME, Kind, QuietHost, Setpoint
from tangere.script.machine import Machine
from tangere.script.syntax import ScriptError
from tangere.settings import altered, other, setting, word
from tangere.types import Array, Command, Friction, Reference, State

# Pole of the position servo [1/s] times the period [s]: JointServo's own 150 1/s at 1 ms, slower at longer periods, so
# that its margin stays
SERVO = 0.15
# [s] for which a run goes on after its program has ended: the arm comes to rest and the page shows that it did
AFTER = 0.3
MESSAGES = 1000  # of a program that are kept

SIDE = 0.2  # m, of a UR's square
SHARE = 0.05  # of an arm's length: the square of one that is no UR, small as nobody knows which way it has room
SQUARE = """\
def square():
  # a square of {side:g} m in front of the arm, its corners rounded, then back
  start = get_target_joint_positions()
  corner = get_target_tcp_pose()
  movel(pose_add(corner, p[0, {side:g}, 0, 0, 0, 0]), a=1.2, v=0.25, r={corner:g})
  movel(pose_add(corner, p[0, {side:g}, -{side:g}, 0, 0, 0]), a=1.2, v=0.25, r={corner:g})
  movel(pose_add(corner, p[0, 0, -{side:g}, 0, 0, 0]), a=1.2, v=0.25, r={corner:g})
  movel(corner, a=1.2, v=0.25)
  movej(start)
  textmsg("a square of ", pose_dist(corner, pose_add(corner, p[0, {side:g}, 0, 0, 0, 0])))
end
"""


def square(robot: Robot) -> str:
    """The program that runs where none is told; for an arm that is no UR as large as suits it."""
    side = SIDE if ur.is_ur(robot.model) else SHARE * reach_of(robot, posture(at_rest(robot), robot))
    return SQUARE.format(side=round(side, 3), corner=round(0.1 * side, 4))


def _text(given: Any, name: str) -> str:
    """A program from its file; what has an end of line is the program itself, as a run's manifest keeps it."""
    if "\n" in str(given):
        return str(given)
    try:
        return foreign.read_text(given).rstrip("\n") + "\n"
    except InvalidValue as problem:
        cause = problem.__cause__
        raise ModelFileError(f"{name}: {given}: {getattr(cause, 'strerror', None) or problem}") from None


@dataclass(frozen=True)
class ScriptSettings(RunSettings):
    """Which program, and where the arm stands before it."""

    # a controller's frame; a shorter period divides it
    period: float = altered(RunSettings, "period", FRAME)
    duration: float | None = altered(RunSettings, "duration", 60.0)
    program: str | None = other(None, "file with URScript; none: a square", _text, metavar="FILE")
    polyscope: str = word(".".join(map(str, NEWEST)), "version of the controller")
    q: tuple[float, ...] = posture_setting()
    slider: float = setting(1.0, "", "share of the speed at which moves go", low=0.0, high=1.0, above=True)


class RunHost(QuietHost):
    """Hands on what the program says, for the log."""

    def __init__(self, slider: float) -> None:
        super().__init__()
        self.speed, self.count = slider, 0
        self.waiting: list[str] = []

    def message(self, kind: Kind, text: str) -> None:
        """Up to MESSAGES."""
        self.count += 1
        words = {"text": "says", "popup": "shows", "warning": "warns"}[kind]
        if self.count <= MESSAGES:
            self.waiting.append(f"program {words}: {text}")
        elif self.count == MESSAGES + 1:
            self.waiting.append(f"program: more than {MESSAGES} messages, the others are left out")


class ScriptController:
    """Runs a program frame by frame and makes the torques of what it wants.

        position: JointServo
        torque:   tau = torque of the program + g + the shares of friction that it asks for

    Between two frames the reference goes on with constant acceleration. `finished` when the program has ended and the
    arm has rested, or at `until` [s]; `failed`: why the program ended early. It is its own trajectory: `at` is what is
    wanted now.
    """

    duration = float("inf")

    def __init__(
        self, robot: Robot, program: Program, q: Array, *, period: float, host: RunHost,
        friction: Friction | None = None, until: float = float("inf"),
    ) -> None:  # fmt: skip
        self.robot, self.program, self.host, self.friction = robot, program, host, friction
        self._period, self._until = period, until
        self._servo = JointServo(robot, friction, SERVO / period)
        self._begin(q)
        self._frame_s = self.machine.arm.frame
        self.every = round(self._frame_s / period)
        if self.every < 1 or abs(self.every * period - self._frame_s) > 1e-9:
            raise InvalidValue(f"period: {self._frame_s:g} s or a whole part of it for a script, got {period:g} s")

    def _begin(self, q: Array) -> None:
        self.machine = Machine(self.program, self.robot, q, self.host)
        rest = np.zeros(6)
        self._goal = Setpoint(q, rest, rest)
        self._q, self._qd, self._qdd = q, rest, rest  # reference now
        self._count, self._over, self._time = 0, 0.0, 0.0
        self.frames, self._told = 0, False

    def start(self, state: State) -> None:
        """The program begins where the arm is."""
        self._begin(state.q.copy())
        self._t0 = state.time

    def step(self, state: State) -> Command:
        """The torque for the coming period."""
        if self._count % self.every == 0:
            self._frame(state)
        else:
            h = self._period
            self._q, self._qd = self._q + self._qd * h + self._qdd * (0.5 * h * h), self._qd + self._qdd * h
        self._count += 1
        goal, servo = self._goal, self._servo
        servo.robot = self.machine.arm.robot  # with the payload that the program has told
        if goal.tau is not None:
            servo.release()
            return Command(goal.tau + servo.robot.gravity_torque(state.q) + self._compensated(goal, state.qd))
        return Command(servo.torque(state, self._q, self._qd, self._qdd, self._period))

    def _frame(self, state: State) -> None:
        """A new setpoint; the reference is where the one before ends."""
        before = self._goal
        self._time = state.time - self._t0
        self._goal = goal = self.machine.frame(state)
        self.frames += self.machine.running
        if goal.tau is not None or before.tau is not None:
            self._q, self._qd = state.q, state.qd
        else:
            self._q, self._qd = before.q, before.qd
        self._qdd = (goal.qd - self._qd) / self._frame_s
        still = not self.machine.running and not goal.qd.any()
        self._over = self._over + self._frame_s if still else 0.0

    def _compensated(self, goal: Setpoint, qd: Array) -> Array:
        law = self.friction
        assert goal.coulomb is not None
        assert goal.viscous is not None
        if isinstance(law, JointFriction):
            return sliding_friction(qd, 1.0 / law.width, law.coulomb * goal.coulomb, law.viscous * goal.viscous)
        return np.zeros(6) if law is None else law.torque(qd) * goal.coulomb

    def stop(self) -> None:
        """End the program."""
        self.machine.stop("the run was over")

    @property
    def finished(self) -> bool:
        """Whether the program has ended and the arm rests, or the time is up."""
        return self._over >= AFTER or self._time >= self._until - 1.5 * self._frame_s

    @property
    def failed(self) -> str:
        """Why the program ended early."""
        ended = self.machine.ended
        return "" if ended is None or not ended.failed else f"the program failed: {ended.failed}"

    def said(self) -> list[str]:
        """What the program has said since it was asked last, and how it ended."""
        found, self.host.waiting = self.host.waiting, []
        ended = self.machine.ended
        if ended is not None and not self._told:
            self._told = True
            found.append(f"program ended: {ended.failed or ended.how}")
        return found

    def at(self, time: float) -> Reference:
        """What is wanted now, whatever the time."""
        return Reference(self._q, self._qd, self._qdd, self.robot.pose(self._q))


def motion(world: World) -> Motion:
    """The program, read and checked before anything moves."""
    s = world.settings
    try:
        program = load(s.program or square(world.believed), version(s.polyscope))
    except ScriptError as problem:
        raise InvalidValue(f"program: {problem} (`tangere script check` tells all errors)") from None
    controller = ScriptController(
        world.believed, program, posture(s.q, world.believed), period=s.period, host=RunHost(s.slider),
        friction=world.believed_friction, until=s.duration,
    )  # fmt: skip
    return Motion(controller, controller, blocks={"controller": "URScript"})


def findings(built: Any, result: Any) -> Findings:
    """How the program ended and what it said."""
    controller: ScriptController = built.motion.controller
    machine = controller.machine
    ended = machine.ended
    told = {
        "name": machine.program.name, "frames": controller.frames,
        "ended": "still running" if ended is None or ended.how == "stopped" else ended.how,
        "line": None if ended is None or not ended.line else ended.line,
        "message": "" if ended is None or ended.how == "stopped" else ended.message,
    }  # fmt: skip
    return Findings({"script": told})


def fitted(s: Any, told: frozenset[str]) -> Any:
    """Nothing pushes a program's arm unless it is said; an arm that is no UR begins where it rests."""
    needs_six_joints(robot(s.robot, parameters=s.parameters))
    return hold.fitted(s if "push" in told else replace(s, push=()), told)


SCENARIO = Scenario(
    "script",
    "a URScript program moves the arm",
    ScriptSettings,
    motion,
    fitted,
    findings=findings,
    did="ran a URScript program",
)
