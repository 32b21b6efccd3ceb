"""A live arm for everyday use: where it is, moves, freedrive, programs, signals, and its plant for torques."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, PlantLost, TangereError
from tangere.kinematics.rotation import ur_from_pose
from tangere.plants.rtde_plant import SAYING, SLOW, RtdePlant, controllers_arm
from tangere.plants.torque_loop import STOP
from tangere.robots import Robot, as_robot
from tangere.rtde import primary
from tangere.rtde.client import Address, Rtde, address_of
from tangere.rtde.consent import Consent, permit
from tangere.rtde.dashboard import Dashboard
from tangere.rtde.programs import STARTING, Programs
from tangere.rtde.rows import FIELDS, SILENT, RtdeRows
from tangere.rtde.wire import Value
from tangere.types import Array, State

# Output registers in which our programs say that they have begun and that they are done: the last two, which neither
# our torque loop nor usual clients use.
BEGUN, DONE = 46, 47
MORE = (
    "target_speed_fraction", "actual_digital_input_bits", "actual_digital_output_bits",
    f"output_int_register_{BEGUN}", f"output_int_register_{DONE}",
)  # fmt: skip
TOLD = ("payload", "payload_cog", "payload_inertia", "target_gravity")  # what the controller takes to hang there
PROTECTIVE_STOP = 3  # the safety mode
HEAD = 2  # lines that stand before a program of the user in ours
SIGNALS = (("standard", 8), ("configurable", 8), ("tool", 2))  # digital outputs, in the order of their numbers


def arm(
    host: str, robot: Robot | str | None = None, *, consent: Consent | None = None,
    tell: Callable[[str], None] | None = None,
) -> Arm:  # fmt: skip
    """The arm at an address, listened to at once; see Arm.

        with tangere.arm("192.168.0.10", consent=tangere.consent("I stand beside it")) as arm:
            arm.move_joints(q)
            result = tangere.run(arm.plant(), controller, until=5.0, start=q)
    """
    return Arm(host, robot, consent=consent, tell=tell)


class Arm:
    """A UR arm, real or virtual. A context manager that leaves it stopped. Not a safety function.

    host: an IPv4 address or rtde://HOST[:PORT]. robot: the arm or its name; by default what the controller says it
    drives; where the controller says that it is another one, it is refused. consent: needed for whatever can move
    an arm that is not on this computer (tangere.consent). A lost connection is made anew with growing pauses;
    tell(sentence) is called with that, else it is kept in `said`.
    """

    def __init__(
        self, host: str, robot: Robot | str | None = None, *, consent: Consent | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self.address: Address = address_of(host)
        self.said: list[str] = []
        self._consent, self._tell = consent, tell or self.said.append
        self.robot: Robot = as_robot(robot or primary.arm_name(primary.introduction(self.address.host, wait=3.0)))
        if robot is not None:
            primary.refuse_another(self.address.host, self.robot)
        self._believed: tuple[bytes, Robot] = (b"", self.robot)
        self._programs: Programs | None = None
        self._number = 0  # of the newest program of ours
        self._newest: dict[str, Any] = {}
        self._at, self._stamp, self._first = 0.0, 0.0, 0.0
        self._changed = threading.Condition()
        self._closing = False
        rows = RtdeRows(self.address, (*FIELDS, *MORE), tell=self._tell)
        self.version = rows.version
        self._listener = threading.Thread(target=self._listen, args=(rows,), name=f"arm {host}", daemon=True)
        self._listener.start()

    # ------------------------------------------------------------------------------------------------------- what it is

    @property
    def state(self) -> State:
        """Where it is now. tau: measured torque with gravity; before version 5.23 what its controller wants."""
        values = self._values()
        q = values["q"]
        tau = values.get("tau_cmd", np.zeros(6))
        if "actual_current_as_torque" in values:
            tau = values["actual_current_as_torque"] + self._loaded(values).gravity_torque(q)
        return State(
            self._stamp - self._first, 2e-3, q, values["qd"], tau, values.get("wrench"), None, values.get("qd_des")
        )

    @property
    def pose(self) -> Array:
        """The tool as the controller has it: x y z rx ry rz (6,) in base axes [m, rad]."""
        pose: Array = self._values()["actual_TCP_pose"]
        return pose

    @property
    def moving(self) -> bool:
        """Whether a program runs, or a joint turns."""
        values = self._values()
        return int(values["runtime_state"]) == 2 or bool(np.abs(values["qd"]).max() > SLOW)

    @property
    def payload(self) -> tuple[float, tuple[float, ...]]:
        """What its controller takes to hang at the flange: mass [kg], centre of mass [m]."""
        values = self._values()
        return float(values.get("payload", 0.0)), tuple(np.asarray(values.get("payload_cog", np.zeros(3))).tolist())

    @property
    def digital_inputs(self) -> tuple[bool, ...]:
        """0-7 standard, 8-15 configurable, 16 and 17 at the tool."""
        return _bits(self._values()["actual_digital_input_bits"])

    @property
    def digital_outputs(self) -> tuple[bool, ...]:
        """Numbered as the inputs are."""
        return _bits(self._values()["actual_digital_output_bits"])

    @property
    def speed_slider(self) -> float:
        """Share of the programmed speed, 0 to 1."""
        return float(self._values()["target_speed_fraction"])

    # --------------------------------------------------------------------------------------------------------- moves

    def move_joints(self, q: ArrayLike, *, speed: float = 0.5, acceleration: float = 1.0) -> State:
        """All joints together to q (6,) [rad], and wait. speed [rad/s], acceleration [rad/s2] of the fastest joint."""
        goal = _six(q, "q")
        outside = (goal < self.robot.q_min) | (goal > self.robot.q_max)
        if outside.any():
            joint = int(outside.argmax())
            raise InvalidValue(f"q: joint {joint + 1} cannot turn to {goal[joint]:.4g} rad")
        self._run(f"  movej({goal.tolist()}, {_pace(speed, acceleration)})")
        return self.state

    def move_linear(self, T: ArrayLike, *, speed: float = 0.1, acceleration: float = 0.5) -> State:
        """The tool straight to a pose, and wait. T: 4x4, or x y z rx ry rz; speed [m/s], acceleration [m/s2]."""
        given = np.asarray(T, dtype=np.float64)
        goal = _six(ur_from_pose(given) if given.shape == (4, 4) else given, "T")
        self._run(f"  movel(p{goal.tolist()}, {_pace(speed, acceleration)})")
        return self.state

    @contextlib.contextmanager
    def freedrive(self) -> Iterator[Arm]:
        """The arm can be moved by hand inside the `with`; after it the arm stands."""
        self._run("  freedrive_mode()\n  while True:\n    sync()\n  end", wait=False)
        try:
            yield self
        finally:
            self.stop()

    def script(self, text: str, *, wait: bool = True) -> None:
        """Run URScript: lines, or one `def`, and wait for its end. PlantLost says why where it failed.

        A `sec` runs beside a program, and nobody waits for it. wait: False ends the call when the program has begun.
        """
        found = re.match(r"\s*(def|sec|thread)\s+([A-Za-z_]\w*)", text)
        if found is not None and found[1] == "sec":
            self._open().send(text)
            return
        call = f"\n  {found[2]}()" if found is not None and found[1] == "def" else ""
        self._run(text.rstrip() + call, wait=wait)

    def stop(self) -> None:
        """Stop the arm; whatever program runs is replaced by the stop."""
        self._run(f"  stopj({STOP})", replace=True)

    def plant(self, **options: Any) -> RtdePlant:
        """The arm for torques: what tangere.run takes. options: as RtdePlant has them."""
        host = self.address.host if self.address.port == 30004 else f"rtde://{self.address.host}:{self.address.port}"
        return RtdePlant(host, self.robot, consent=self._consent, **options)

    # ----------------------------------------------------------------------------------------------- what it is told

    def dashboard(self, command: str) -> str:
        """The dashboard's answer to a command, such as `power on` or `brake release`. PolyScope X has none."""
        with Dashboard(self.address.host, consent=self._consent) as desk:
            return desk.ask(command)

    def set_digital_output(self, number: int, on: bool) -> None:
        """0-7 standard, 8-15 configurable, 16 and 17 at the tool."""
        first = 0
        for kind, count in SIGNALS:
            if first <= number < first + count:
                bit = 1 << (number - first)
                mask = f"{kind}_digital_output_mask", f"{kind}_digital_output"
                self._write(mask, (bit, bit if on else 0))
                return
            first += count
        raise InvalidValue(f"digital outputs have the numbers 0 to {first - 1}, got {number!r}")

    def set_speed_slider(self, share: float) -> None:
        """Share of the programmed speed, 0 to 1."""
        if not 0.0 <= share <= 1.0:
            raise InvalidValue(f"speed slider: a share from 0 to 1, got {share!r}")
        permit(self.address, self._consent, "the speed slider")
        self._write(("speed_slider_mask", "speed_slider_fraction"), (1, float(share)))

    def set_payload(self, mass: float, com: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        """What hangs at the flange: mass [kg], centre of mass [m] in flange axes. Waits until the controller has it."""
        centre = np.asarray(com, dtype=np.float64)
        if not (np.isfinite(mass) and mass >= 0.0) or centre.shape != (3,) or not np.isfinite(centre).all():
            raise InvalidValue(f"payload: a mass [kg] and three numbers [m], got {mass!r} and {com!r}")
        self.script(f"sec tangere_payload():\n  set_payload({float(mass)!r}, {centre.tolist()})\nend")
        self._until(lambda values: abs(float(values.get("payload", mass)) - mass) < 1e-6, STARTING)

    # --------------------------------------------------------------------------------------------------------- the rest

    def close(self) -> None:
        """Stop what we have started, and let go; may be called twice."""
        if self._closing:
            return
        try:
            if self._programs is not None and self.moving:
                self.stop()
        except PlantLost as problem:
            self._tell(f"{self.address.host} may still move: {problem}")
        finally:
            self._closing = True
            if self._programs is not None:
                self._programs.close()
            self._listener.join(1.0)

    def __repr__(self) -> str:
        return f"Arm({self.robot.name} at {self.address.host}, PolyScope {'.'.join(map(str, self.version[:3]))})"

    def __enter__(self) -> Arm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _listen(self, rows: RtdeRows) -> None:
        try:
            for row in rows:
                with self._changed:
                    self._first = self._first or row.time
                    self._newest, self._at, self._stamp = row.values, time.monotonic(), row.time
                    self._changed.notify_all()
                if self._closing:
                    return
        except TangereError as problem:  # bytes that are no RTDE: what asks for a sample then says that none comes
            self._tell(f"{self.address.host} is no longer listened to: {problem}")
        finally:
            rows.close()

    def _values(self) -> dict[str, Any]:
        """The newest sample, no older than what counts as silence."""
        with self._changed:
            fresh = self._changed.wait_for(lambda: time.monotonic() - self._at < SILENT, 2.0 * SILENT)
            if not fresh or self._closing:
                raise PlantLost(f"{self.address.host}: {'closed' if self._closing else 'no sample comes'}")
            return self._newest

    def _loaded(self, values: dict[str, Any]) -> Robot:
        """The arm with payload and gravity as its controller has them; made anew when they change."""
        told: dict[str, Any] = {name: values[name] for name in TOLD if name in values}
        key = b"".join(np.asarray(value).tobytes() for value in told.values())
        if self._believed[0] != key:
            self._believed = key, controllers_arm(self.robot, told)
        return self._believed[1]

    def _until(self, what: Callable[[dict[str, Any]], bool], seconds: float = SILENT) -> bool:
        """Wait for a new sample of which that is true; False: the time is over."""
        asked = time.monotonic()
        with self._changed:
            return self._changed.wait_for(lambda: self._at > asked and what(self._newest), seconds)

    def _open(self) -> Programs:
        if self._programs is None:
            self._programs = Programs(self.address, self._consent)
        return self._programs

    def _run(self, body: str, *, wait: bool = True, replace: bool = False) -> None:
        """A program of ours that says when it has begun and when it is done; replace: of one that runs."""
        values = self._values()
        # registers outlive programs and clients: a number that stands in neither of them, nor is that of a program
        # whose error came sooner than its samples
        number = (max(self._number, *(int(values[f"output_int_register_{k}"]) for k in (BEGUN, DONE))) + 1) % 2**30
        self._number = number
        told = "write_output_integer_register({}, {})"
        begun, done = told.format(BEGUN, number), told.format(DONE, number)
        if int(values["runtime_state"]) == 2 and not replace:
            raise PlantLost(f"{self.address.host} runs a program already; stop() ends it")
        programs = self._open()
        programs.send(f"def tangere_{number}():\n  {begun}\n{body}\n  {done}\nend", HEAD)

        def started(values: dict[str, Any]) -> bool:
            return int(values[f"output_int_register_{BEGUN}"]) == number or bool(programs.said())

        if not self._until(started, STARTING) or not started(self._newest):
            why = "is it in remote control, with its brakes released?"
            if int(self._newest.get("safety_mode", 1)) == PROTECTIVE_STOP:
                why = "it is in a protective stop; look why, then arm.dashboard('unlock protective stop')"
            raise PlantLost(f"{self.address.host} did not run the program: {programs.said() or why}")
        while wait:
            values = self._values()
            if int(values["runtime_state"]) != 2:
                if int(values[f"output_int_register_{DONE}"]) == number:
                    return
                safety = int(values["safety_mode"])
                why = "" if safety in (1, 2) else f"the arm was stopped (safety mode {safety})"
                why = why or programs.said(SAYING) or "it was ended from outside"
                raise PlantLost(f"{self.address.host}: the program did not come to its end: {why}")
            self._until(lambda values: True)

    def _write(self, names: tuple[str, ...], values: tuple[Value, ...]) -> None:
        """Inputs that are held no longer than it takes to send them."""
        with Rtde(self.address.host, self.address.port) as connection:
            connection.send(connection.inputs(names), values)
        self._until(lambda values: True)


def _bits(value: Any) -> tuple[bool, ...]:
    word = int(value)
    return tuple(bool(word >> k & 1) for k in range(18))


def _six(given: ArrayLike, name: str) -> Array:
    numbers = np.asarray(given, dtype=np.float64)
    if numbers.shape != (6,) or not np.isfinite(numbers).all():
        raise InvalidValue(f"{name}: six finite numbers, got {numbers.tolist()}")
    return numbers


def _pace(speed: float, acceleration: float) -> str:
    """As arguments of a move."""
    for name, value in (("speed", speed), ("acceleration", acceleration)):
        if not (np.isfinite(value) and value > 0.0):
            raise InvalidValue(f"{name}: positive, got {value!r}")
    return f"a={float(acceleration)!r}, v={float(speed)!r}"
