"""A program that runs: threads, frames of 2 ms, critical sections, and how it ended.

In a frame each thread runs, in the order in which they were started, until it uses physical time or has spent its
slice. A thread that is started runs in the same frame, after the others. The end of the program's own body, `halt` or a
runtime exception end all threads.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from types import FrameType, GeneratorType
from typing import Any, Literal

from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, TangereError
from tangere.robots import Robot
from tangere.script.arm import Arm, ProtectiveStop
from tangere.script.compiler import ENTRY, FILE, Program
from tangere.script.functions_arm import ArmFunctions
from tangere.script.functions_host import HostFunctions
from tangere.script.functions_motion import MotionFunctions
from tangere.script.functions_values import Values, entries, members
from tangere.script.host import CB3_FRAME, FRAME, Host, QuietHost, Setpoint
from tangere.script.resolve import builtins
from tangere.script.values import (
    LONGEST,
    List,
    Pose,
    ScriptException,
    Value,
    element,
    exclusive,
    member,
    product,
    shown,
    stored,
)
from tangere.types import State

# Loops (and calls of functions that call themselves) that a thread may do in a frame before it loses its slice. The
# controller counts time; this counts, so that a run is the same on any machine. 250 empty ones take 25 us.
SLICE = 250
# The same inside a critical section, where it cannot lose its slice: beyond it the program has hung.
CRITICAL = 20_000
THREADS = 100  # at once; a program that starts threads in a loop and never ends them has run away

Thread_ = Generator[None, None, Value]


class _Halt(Exception):
    """halt: ends the program."""


class _Killed(Exception):
    """A thread that kills itself."""


@dataclass(frozen=True)
class Ended:
    """How a program ended: line (from 1; 0 where it does not matter) and a sentence for all but the good ends."""

    how: Literal["finished", "halted", "stopped", "exception", "protective stop"]
    message: str = ""
    line: int = 0

    @property
    def failed(self) -> str:
        """Why, in a sentence; "" where it came to its own end."""
        where = f"line {self.line}: " if self.line else ""
        return "" if self.how in ("finished", "halted") else f"{self.how}: {where}{self.message}".rstrip(": ")


class _Thread:
    __slots__ = ("generator", "name", "number")

    def __init__(self, name: str, generator: Thread_, number: int) -> None:
        self.name, self.generator, self.number = name, generator, number


class Machine:
    """Runs one program with one arm in one world.

        machine = Machine(load(text), robot, q)
        while machine.running:
            setpoint = machine.frame(state)

    arm: taken over from another machine, so that tool, payload and motion outlive a program; else made of robot and q.
    """

    def __init__(
        self, program: Program, robot: Robot, q: ArrayLike | None = None, host: Host | None = None, *,
        arm: Arm | None = None, slice: int = SLICE,
    ) -> None:  # fmt: skip
        self.program, self.host = program, QuietHost() if host is None else host
        if arm is None:
            if q is None:
                raise InvalidValue("q: where the arm stands (6,) [rad], or an arm of another machine")
            arm = Arm(robot, q, CB3_FRAME if program.version[0] == 3 else FRAME)
        self.arm = arm
        self.ended: Ended | None = None
        self._slice, self._left = slice, slice
        self._threads: list[_Thread] = []
        self._current: _Thread | None = None
        self._started, self._critical, self._depth = 0, False, 0
        names = self._names()
        exec(program.code, names)
        self.variables = names  # v_NAME: every variable that the whole program sees
        self._start("", names[ENTRY]())

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.ended is None

    @property
    def line(self) -> int:
        """The line (from 1) at which the program's own body waits; 0: it has ended."""
        return _line(self._threads[0].generator) if self._threads else 0

    def value(self, name: str) -> Value:
        """The variable of that name, None where it has no value (yet)."""
        return self.variables.get(f"v_{name}")

    def frame(self, state: State) -> Setpoint:
        """One frame (2 ms; 8 ms on CB3) with a new sample; never raises for what the program does."""
        arm = self.arm
        arm.begin(state)
        if self.ended is None:
            self._run()
        try:
            return arm.end(self.host.speed)
        except ScriptException as problem:  # the rest of a blended move that cannot be followed: brake instead
            arm.tail = None
            if self.ended is None:
                self._end(Ended("protective stop", problem.message))
            return arm.end(self.host.speed)

    def beside(self, program: Program) -> Ended:
        """Run a secondary program (sec), whole, between two frames; how it ended."""
        if program.kind != "sec":
            raise InvalidValue(f"{program.name} is no secondary program (sec)")
        other = Machine(program, self.arm.robot, host=self.host, arm=self.arm, slice=CRITICAL)
        other._run()
        if other.ended is None:
            other._end(Ended("exception", "a secondary program must end within a frame"))
        assert other.ended is not None
        return other.ended

    def stop(self, message: str = "") -> None:
        """End the program from outside."""
        if self.ended is None:
            self._end(Ended("stopped", message))

    # ------------------------------------------------------------------------------------------------------ threads

    def _run(self) -> None:
        threads, k = self._threads, 0
        while k < len(threads):
            thread = threads[k]
            self._current, self._left = thread, self._slice
            self._critical, self._depth = False, 0
            try:
                thread.generator.send(None)
            except StopIteration:
                if not thread.name:
                    self._end(Ended("finished"))
                    return
                _drop(threads, thread)
            except _Halt:
                self._end(Ended("halted"))
                return
            except _Killed:
                _drop(threads, thread)
            except Exception as problem:
                self._end(_ended(problem))
                return
            # threads before this one may be gone: killed by it, or ended
            k = threads.index(thread) + 1 if thread in threads else _next(threads, thread.number)
        self._current = None

    def _end(self, ended: Ended) -> None:
        self.ended = ended
        for thread in self._threads:
            if thread is not self._current:
                thread.generator.close()
        self._threads.clear()
        self._current = None
        if self.arm.compliance is not None:
            self.arm.compliance.released(self.arm)
            self.arm.compliance = None

    def _start(self, name: str, generator: Thread_) -> int:
        if len(self._threads) >= THREADS:
            raise ScriptException(f"more than {THREADS} threads at once")
        self._started += 1
        self._threads.append(_Thread(name, generator, self._started))
        return self._started

    def _find(self, number: Value) -> _Thread | None:
        return next((thread for thread in self._threads if thread.number == number), None)

    def _kill(self, number: Value) -> None:
        thread = self._find(number)
        if thread is None:  # 0, or one that has ended
            return
        if thread is self._current:
            raise _Killed
        if not thread.name:
            raise _Halt
        thread.generator.close()
        self._threads.remove(thread)

    def _join(self, number: Value) -> Generator[None, None, None]:
        while self._find(number) is not None:
            yield

    def _spent(self) -> bool:
        """Whether the thread has to wait for the next frame; called at every loop."""
        self._left -= 1
        if self._left >= 0:
            return False
        if self._critical:
            if self._left < -CRITICAL:
                raise ScriptException(f"more than {CRITICAL} loops of a critical section in one frame")
            return False
        return True

    def _enter(self) -> None:
        """A critical section forbids to be taken off within a frame; who waits inside lets the others run."""
        self._depth += 1
        self._critical = True

    def _exit(self) -> None:
        self._depth = max(0, self._depth - 1)
        self._critical = self._depth > 0

    # ---------------------------------------------------------------------------------------------------- the names

    def _names(self) -> dict[str, Any]:
        """What the code finds: builtins, helpers, constants."""
        arm, host = self.arm, self.host
        made = (Values(), ArmFunctions(arm), MotionFunctions(arm, host), HostFunctions(host, arm.frame))
        groups = {type(group).__name__: group for group in made}
        names: dict[str, Any] = {"__builtins__": {}, "v_PI": math.pi}
        known = [(name, one) for name, one in builtins().items() if one.owner]
        names |= {f"b_{name}": getattr(groups[one.owner], one.method) for name, one in known}
        return names | self.program.constants | {
            "Pose": Pose, "entries": entries, "struct": members, "product": product, "exclusive": exclusive,
            "element": element, "member": member, "stored": stored, "changed": changed, "asked": asked,
            "unset": _UNSET, "spent": self._spent, "started": self._start, "kill": self._kill, "join": self._join,
            "enter_critical": self._enter, "exit_critical": self._exit, "halt": _halt, "not_modelled": _not_modelled,
        }  # fmt: skip


_UNSET = object()


def _halt() -> None:
    raise _Halt


def _not_modelled(name: str) -> None:
    raise ScriptException(f"{name} is not modelled")


def _drop(threads: list[_Thread], thread: _Thread) -> None:
    if thread in threads:
        threads.remove(thread)


def _next(threads: list[_Thread], number: int) -> int:
    """Where the first thread stands that was started after that one."""
    return next((k for k, thread in enumerate(threads) if thread.number > number), len(threads))


def changed(method: str, value: Value, *arguments: Value) -> List:
    """A list after one of the methods that change it."""
    if not isinstance(value, List):
        raise ScriptException(f"{method}: a list is needed, got {shown(value)[:60]}")
    found = list(value)
    if method == "append":
        found.append(arguments[0])
    elif method == "insert":
        if not 0 <= arguments[0] <= len(found):
            raise ScriptException(f"insert: index {shown(arguments[0])} of a list with {len(found)} entries")
        found.insert(int(arguments[0]), arguments[1])
    elif method == "extend":
        if not isinstance(arguments[0], tuple):
            raise ScriptException("extend: a list is needed")
        found.extend(arguments[0])
    elif method == "remove":
        element(value, arguments[0])
        del found[int(arguments[0])]
    else:
        found.clear()
    if len(found) > LONGEST:
        raise ScriptException(f"a list of {len(found)} entries, at most {LONGEST} are possible")
    return entries(tuple(found))


def asked(method: str, value: Value, *arguments: Value) -> Value:
    """What a list answers."""
    if not isinstance(value, List):
        raise ScriptException(f"{method}: a list is needed, got {shown(value)[:60]}")
    if method == "slice":
        first, last = arguments
        if not 0 <= first <= last <= len(value):
            raise ScriptException(f"slice: {shown(first)} to {shown(last)} of a list with {len(value)} entries")
        return List(tuple(value)[int(first) : int(last)])
    return len(value)


# ------------------------------------------------------------------------------------------------------------ failures


def _line(generator: Any) -> int:
    """Where a generator waits: the innermost line that is the program's."""
    line = 0
    while isinstance(generator, GeneratorType) and generator.gi_frame is not None:
        if generator.gi_code.co_filename == FILE:
            line = generator.gi_frame.f_lineno
        generator = generator.gi_yieldfrom
    return line


def _ended(problem: Exception) -> Ended:
    line, trace = 0, problem.__traceback__
    while trace is not None:
        frame: FrameType = trace.tb_frame
        if frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(problem, ProtectiveStop):
        return Ended("protective stop", problem.message, line)
    return Ended("exception", _sentence(problem), line)


def _sentence(problem: Exception) -> str:
    """A failure of the Python code in words of the program."""
    if isinstance(problem, ScriptException):
        return problem.message
    if isinstance(problem, NameError):  # also of a local variable
        name = (problem.name or str(problem).split("'")[1]).removeprefix("v_")
        return f"the variable {name!r} has no value yet"
    if isinstance(problem, ZeroDivisionError):
        return "division by zero"
    if isinstance(problem, IndexError):
        return "an index beyond the end of the list"
    if isinstance(problem, RecursionError):
        return "functions call each other too deep"
    if isinstance(problem, OverflowError):
        return "a number is too large"
    if isinstance(problem, TypeError | KeyError):
        return f"values that do not go together: {problem}"
    if isinstance(problem, ValueError | TangereError):
        return str(problem) or "a value that is not possible"
    return f"{type(problem).__name__}: {problem}"
