"""The virtual controller without its ports: modes, registers, the running program, one frame after the other."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tangere.apps.virtual_ur.exchange import Exchange
from tangere.apps.virtual_ur.inside import Inside
from tangere.apps.virtual_ur.modes import Profile, RobotMode, Runtime, SafetyMode
from tangere.errors import TangereError
from tangere.plants.pushes import push_of
from tangere.rtde import fields
from tangere.rtde.primary import MODELS, told_name
from tangere.script.arm import Arm
from tangere.script.compiler import load
from tangere.script.host import Kind, Registers, Setpoint, Signals
from tangere.script.machine import Ended, Machine
from tangere.script.values import ScriptException

BOOTED = 100.0  # [s] on the controller's clock at the start: clients take less than 40 s for "still booting"
UNLOCK = 5.0  # [s] before a protective stop may be unlocked (documented)
POWERING, RELEASING = 1.0, 1.0  # [s] from power on to idle, from idle to running (modelled)
# A joint that is so far from its target [rad], or so fast beyond its limit [share], stops the arm (modelled).
DEVIATION, OVERSPEED = 0.2, 1.1
BEYOND = 0.02  # [rad] beyond the range of a joint: what a servo overshoots by does not count
# External torque at which a moving arm takes it for a collision, as a share of the joint's limit (modelled).
COLLISION = 0.35
# [s] that it lasts. Drivers stream speeds with 40 rad/s2: a step of 0.1 rad/s asks a UR20 for more for 6 ms.
STRUCK = 0.01


@dataclass
class Watchdog:
    """A program watches that an input is written often enough."""

    name: str
    frames: int
    action: str
    age: int = 0


class Controller:
    """What a UR's control box does between two frames. Its ports read and write it; it knows no socket.

    It is the `Host` of script programs (see tangere.script.host).
    """

    def __init__(self, inside: Inside, profile: Profile, *, name: str = "ur5e") -> None:
        self.inside: Inside = inside
        self.profile, self.name = profile, name
        self.version = profile.version
        self.rate = 500 if profile.e_series else 125
        self.frame = 1.0 / self.rate
        self.step: int = 0
        self.time: float = BOOTED
        self.registers: Registers = Registers()
        self.signals: Signals = Signals()
        self.slider: float = 1.0
        self.speed: float = 1.0
        self.robot_mode: RobotMode = RobotMode.POWER_OFF if profile.booting else RobotMode.RUNNING
        self.safety_mode: SafetyMode = SafetyMode.NORMAL
        self.runtime: Runtime = Runtime.STOPPED
        self.remote = profile.remote
        self.arm: Arm = Arm(inside.belief, inside.state.q, self.frame)
        self.machine: Machine | None = None
        self.loaded = ""
        self.keep: Callable[[str], None] = lambda text: None  # the programs that come, for who wants to read them
        self.line: int = 0
        self.said: deque[tuple[float, str, str]] = deque(maxlen=1000)  # controller's time, kind, text
        self.listeners: list[Callable[[str, str, int], None]] = []  # kind, text, line: of what programs say
        self.guest: Callable[[Arm], None] | None = None  # who may move the arm in a frame while no program runs
        self.sockets: Any = None  # of the ports: programs may connect only through them
        self.setpoint: Setpoint = Setpoint(inside.state.q, np.zeros(6), np.zeros(6))
        self._limits: tuple[Any, list[tuple[float, ...]]] = (None, [])  # of the believed arm, by joint
        self._stopped_at = -math.inf  # controller's time of the protective stop
        self._struck = 0, 0.0  # the joint that needs more torque than a moving arm does, and for how long [s]
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._popup = False
        self._brakes = False  # a program waits until the arm rests that the one before it has moved
        self._watch: Watchdog | None = None
        self.written: set[str] = set()  # inputs that clients have sent since the last frame
        self.exchange = Exchange(self)

    # ------------------------------------------------------------------------------------------------------- frames

    def tick(self) -> None:
        """One frame: what is due, the program, the arm, what it shows."""
        self.step += 1
        self.time += self.frame
        if self._later:
            for due in [entry for entry in self._later if entry[0] <= self.time]:
                self._later.remove(due)
                due[1]()
        self._check_watchdog()
        self.speed = self.slider
        if not self.may_move:
            self._hold()
            return
        self._brakes = self._brakes and bool(self.arm.qd.any())
        if self.machine is not None and self.runtime == Runtime.PLAYING and not self._brakes:
            wanted = self.machine.frame(self.inside.state)
            self.line = self.machine.line
            ended = self.machine.ended
            if ended is not None:
                self._program_ended(ended)
        else:
            self.arm.begin(self.inside.state)
            if self.guest is not None and not self._brakes:
                self.guest(self.arm)
            wanted = self.arm.end(self.speed)
        if self._stopped():
            self._hold()
        else:
            self._move(wanted)
            self._guard()

    def _stopped(self) -> bool:
        """Whether the program of this frame has stopped the arm."""
        return not self.may_move

    @property
    def may_move(self) -> bool:
        """Whether the brakes are open and nothing has stopped the arm."""
        return self.robot_mode == RobotMode.RUNNING and self.safety_mode in (SafetyMode.NORMAL, SafetyMode.REDUCED)

    def _program_ended(self, ended: Ended) -> None:
        if ended.how == "protective stop":
            self.protective_stop(ended.message)
        elif ended.how == "exception":
            self.tell("exception", ended.message, ended.line)
        self.stop()

    def _move(self, wanted: Setpoint) -> None:
        if self.arm.robot is not self.inside.belief:
            self.inside.believe(self.arm.robot)
        self.setpoint = wanted
        if wanted.tau is None:
            self.inside.follow(wanted.q, wanted.qd, wanted.qdd)
        else:
            self.inside.apply(wanted.tau, wanted.viscous, wanted.coulomb)

    def _hold(self) -> None:
        state = self.inside.stand()
        self.arm.q, self.arm.qd, self.arm.qdd = state.q, np.zeros(6), np.zeros(6)
        self.setpoint = Setpoint(self.arm.q, self.arm.qd, self.arm.qdd)

    def _guard(self) -> None:
        """Limits and collisions stop the arm."""
        state, robot = self.inside.state, self.inside.belief
        if self._limits[0] is not robot:
            rows = (OVERSPEED * robot.qd_max, robot.q_min - BEYOND, robot.q_max + BEYOND, COLLISION * robot.tau_max)
            self._limits = (robot, list(zip(*(row.tolist() for row in rows), strict=True)))
        position = self.setpoint.tau is None
        targets = self.setpoint.q.tolist()
        careful = position and self.arm.compliance is None
        effort = self.inside.servo.effort.tolist() if careful else targets
        joint, lasts = 0, 0.0
        # plain numbers: six joints in a loop cost a third of what ten operations of numpy do
        for j, (q, qd, (fast, low, high, most)) in enumerate(
            zip(state.q.tolist(), state.qd.tolist(), self._limits[1], strict=True)
        ):
            if not -fast <= qd <= fast:
                return self.protective_stop(f"joint {j + 1} is faster than its limit")
            if position and not -DEVIATION <= targets[j] - q <= DEVIATION:
                return self.protective_stop(f"joint {j + 1} cannot follow: position deviates from path")
            if not low < q < high:
                return self.protective_stop(f"joint {j + 1} is beyond its range")
            if careful and not -most <= effort[j] <= most:
                joint, lasts = joint or self._struck[0] or j + 1, self._struck[1] + self.frame
        self._struck = joint, lasts
        if lasts > STRUCK - 0.5 * self.frame:
            return self.protective_stop(f"joint {joint}: collision")
        return None

    def _check_watchdog(self) -> None:
        dog = self._watch
        if dog is not None and self.runtime == Runtime.PLAYING:
            dog.age = 0 if dog.name in self.written else dog.age + 1
            if dog.age > dog.frames and dog.action != "ignore":
                self.tell("text", f"watchdog: {dog.name} was not written for {dog.age * self.frame:.3g} s", 0)
                if dog.action == "pause":
                    self.pause()
                else:
                    self.stop()
        self.written.clear()

    # ------------------------------------------------------------------------------------------------------ programs

    def upload(self, text: str) -> None:
        """A program that came on a script port: it replaces the one that runs once the arm rests, `sec` runs beside it.

        Where remote control is off, programs are refused, as a real controller does.
        """
        self.keep(text)
        if not self.remote:
            self.tell("text", "a program was refused: remote control is off", 0)
            return
        try:
            program = load(text, self.version[:3])
        except TangereError as problem:
            self.tell("exception", str(problem), 0)
            return
        if program.kind == "sec":
            machine = self.machine or Machine(load("pass"), self.arm.robot, host=self, arm=self.arm)
            ended = machine.beside(program)
            if ended.failed:
                self.tell("exception", ended.failed, ended.line)
            return
        self.stop()
        if self.may_move:
            self.machine = Machine(program, self.arm.robot, host=self, arm=self.arm)
            self.runtime, self._brakes = Runtime.PLAYING, True

    def stop(self) -> None:
        """End the program; the arm brakes."""
        if self.machine is not None:
            self.machine.stop()
        self.machine, self._watch, self.line = None, None, 0
        self.runtime = Runtime.STOPPED
        self.arm.tail = None

    def pause(self) -> None:
        """Hold the program where it is."""
        if self.runtime == Runtime.PLAYING:
            self.runtime = Runtime.PAUSED

    def play(self) -> bool:
        """Go on with a held program; False: there is none."""
        if self.runtime == Runtime.PAUSED:
            self.runtime = Runtime.PLAYING
            return True
        return False

    @property
    def playing(self) -> bool:
        """Whether a program runs."""
        return self.runtime == Runtime.PLAYING

    @property
    def paused(self) -> bool:
        """Whether a program is held."""
        return self.runtime == Runtime.PAUSED

    def load(self, name: str) -> bool:
        """There are no program files on a virtual controller."""
        return False

    # --------------------------------------------------------------------------------------------------------- modes

    def power_on(self) -> None:
        """Towards idle."""
        if self.robot_mode == RobotMode.POWER_OFF:
            self.robot_mode = RobotMode.POWER_ON
            self._after(POWERING, partial(self._mode, RobotMode.POWER_ON, RobotMode.IDLE))

    def brake_release(self) -> None:
        """Towards running; powers on first."""
        if self.robot_mode == RobotMode.POWER_OFF:
            self.power_on()
            self._after(POWERING, self.brake_release)
        elif self.robot_mode in (RobotMode.IDLE, RobotMode.POWER_ON):
            self._after(RELEASING, partial(self._mode, RobotMode.IDLE, RobotMode.RUNNING))

    def power_off(self) -> None:
        """The program ends, the brakes hold."""
        self.stop()
        self._later.clear()
        self.robot_mode = RobotMode.POWER_OFF

    def restart_safety(self) -> None:
        """Ends in power off, without a stop."""
        self.power_off()
        self.safety_mode = SafetyMode.NORMAL

    def protective_stop(self, why: str) -> None:
        """The program ends and the arm stands until somebody unlocks it."""
        if self.safety_mode != SafetyMode.PROTECTIVE_STOP:
            self.safety_mode, self._stopped_at = SafetyMode.PROTECTIVE_STOP, self.time
            self.tell("safety", f"protective stop: {why}", 0)
        self.stop()

    def unlock(self) -> str:
        """End a protective stop: "" or why not."""
        if self.safety_mode != SafetyMode.PROTECTIVE_STOP:
            return ""
        if self.time - self._stopped_at < UNLOCK:
            return "Cannot unlock protective stop until 5s after occurrence. Always inspect cause before unlocking"
        self.safety_mode = SafetyMode.NORMAL
        return ""

    def _after(self, delay: float, action: Callable[[], None]) -> None:
        self._later.append((self.time + delay, action))

    def _mode(self, before: RobotMode, after: RobotMode) -> None:
        if self.robot_mode == before:
            self.robot_mode = after

    @property
    def robot_mode_name(self) -> str:
        """As the dashboard spells it."""
        return self.robot_mode.name

    @property
    def safety_mode_name(self) -> str:
        """As the dashboard spells it."""
        return self.safety_mode.name

    @property
    def model(self) -> str:
        """The arm's name on the dashboard: without the series."""
        return told_name(self.name)

    @property
    def robot_type(self) -> int:
        """Number of the model in the configuration message."""
        return next((number for number, model in MODELS.items() if model == self.model), 0)

    @property
    def serial(self) -> str:
        """Serial numbers of UR begin with the year."""
        return "20260000001"

    def log(self, text: str) -> None:
        """Into the controller's own log."""
        self.said.append((self.time, "log", text))

    def push(self, text: str) -> str:
        """Something pushes the arm, as `tangere run --push` has it; start counts from now. "", or what is wrong."""
        try:
            push = push_of(text if "start" in text else f"{text},start=0")
            self.inside.plant.push(replace(push, start=push.start + self.inside.state.time))
        except TangereError as problem:
            return str(problem)
        return ""

    def close_popup(self) -> None:
        """The newest popup is read."""
        self._popup = False

    # ---------------------------------------------------------------------------------------------- host of programs

    def message(self, kind: Kind, text: str) -> None:
        """Something that a program says."""
        self._popup = self._popup or kind == "popup"
        self.tell(kind, text, 0)

    def popup_open(self) -> bool:
        """Whether a popup is still shown."""
        return self._popup

    def value(self, name: str) -> Any:
        """A field of the data exchange."""
        if fields.output_type(name, self.version) is None:
            raise ScriptException(
                f"get_rtde_value: there is no {name!r} in version {'.'.join(map(str, self.version[:2]))}"
            )
        return self.exchange.shown(name)()

    def watchdog(self, name: str, hertz: float, action: str) -> None:
        """Watch that an input is written."""
        if action == "ignore" or hertz <= 0.0:
            self._watch = None
        else:
            self._watch = Watchdog(name, max(1, round(self.rate / hertz)), action)

    def socket_open(self, name: str, address: str, port: int) -> bool:
        """Connect, where the ports allow it."""
        return self.sockets is not None and self.sockets.open(name, address, port)

    def socket_send(self, name: str, data: bytes) -> bool:
        """Send."""
        return self.sockets is not None and self.sockets.send(name, data)

    def socket_receive(self, name: str) -> bytes | None:
        """What has come since."""
        return None if self.sockets is None else self.sockets.receive(name)

    def socket_close(self, name: str) -> None:
        """Close."""
        if self.sockets is not None:
            self.sockets.close(name)

    def tell(self, kind: str, text: str, line: int) -> None:
        """Say something to whoever listens: kind, text, line of the program."""
        self.said.append((self.time, kind, text))
        for listener in self.listeners:
            listener(kind, text, line)
