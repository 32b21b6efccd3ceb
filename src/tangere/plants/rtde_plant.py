"""A UR arm as a plant, real or virtual: torques through our loop inside its controller, samples from RTDE."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue, PlantLost
from tangere.plants import torque_loop as loop
from tangere.plants.simulated import initial
from tangere.plants.twins import twin
from tangere.robots import Robot, robot
from tangere.rtde import primary
from tangere.rtde.client import InputsTaken, Rtde, address_of
from tangere.rtde.consent import Consent, permit
from tangere.rtde.programs import STARTING, Programs
from tangere.rtde.rows import SILENT
from tangere.types import Array, Command, State

FIELDS = (
    "timestamp", "control_step", "actual_q", "actual_qd", "actual_TCP_force", "target_moment", "payload", "payload_cog",
    "payload_inertia", "target_gravity", "robot_mode", "safety_mode", "runtime_state",
)  # fmt: skip
NEAR = 0.02  # [rad] from where a run begins: 1 degree is seen, and no controller jumps over it
SLOW = 0.02  # [rad/s] below which the arm counts as at rest
# Share of a joint's limit, and Nm, by which the controller's own torque at rest may differ from our gravity: 1.6 Nm of
# a UR5e's shoulder. Beyond it payload, mounting or model differ, and torques would be wrong by as much.
GRAVITY_SHARE, GRAVITY_OFF = 0.01, 0.1
SAYING = 0.5  # [s] after its end for what a program has to say: another port, which may be slower
ENDING = 3.0  # [s] that the loop may take to stop the arm; it takes 0.3 s
RAMP = 1.0  # [s] in which torques grow from zero outside this computer: long enough to reach for the stop
# Share of late frames that ends a run, once there were that many [frames]. With a quarter of them late, torques act at
# 375 Hz on the average, and a motion that was stable at 500 Hz is no longer what was tried.
LATE_SHARE, LATE_AFTER = 0.25, 500
MODES = {7: "running", 5: "idle: release the brakes", 3: "powered off", 4: "powered on", 2: "booting"}
STOPS = {3: "protective stop", 4: "recovery mode", 5: "safeguard stop", 6: "emergency stop", 7: "emergency stop"}
_RUNS = itertools.count(1)


class RtdePlant:
    """A UR arm behind the four methods of a plant. Not a safety function.

        with_gravity = torque passed on + g(q at the sample before)          State.tau
        torque sent  = ramp (Command.tau - g(q))                             the controller adds its own gravity

    g is that of our model with payload and gravity as the controller has them; both are compared at rest before the
    first torque. Samples are numbered by control_step; the torque of a sample is the one that was really passed on, not
    the one wished for. One package is sent for each that is read. Late torques are held for `hold` frames, then they
    fade within `fade` frames and the arm is stopped; the next run starts anew.

    host: IPv4 address or rtde://HOST[:PORT]. arm: a robot or the name of one, for kinematics and dynamics; by default
    what the controller says it drives. consent: see tangere.consent; not needed on this computer. friction: shares of
    viscous and of Coulomb friction that the drives make up for, one number each or (6,). torque_max, speed_max: one
    number or (6,), lower than the arm's own. ramp [s]: in which torques grow from zero; 1 s, none on this computer.
    near [rad]: how far from `reset`'s q the arm may stand.
    """

    dof = 6
    period = loop.FRAME

    def __init__(
        self,
        host: str,
        arm: Robot | str | None = None,
        *,
        consent: Consent | None = None,
        friction: tuple[ArrayLike, ArrayLike] = (0.0, 0.0),
        torque_max: ArrayLike | None = None,
        speed_max: ArrayLike | None = None,
        hold: int = loop.HOLD,
        fade: int = loop.FADE,
        ramp: float | None = None,
        near: float = NEAR,
    ) -> None:
        self.address = address_of(host)
        permit(self.address, consent, "torque")
        self._consent, self._near = consent, near
        self._ramp = (0.0 if self.address.loopback else RAMP) if ramp is None else float(ramp)
        self._scales = tuple(float(x) for share in friction for x in _shares(share))
        if isinstance(arm, str) or arm is None:
            arm = robot(arm or primary.arm_name(primary.introduction(self.address.host, wait=3.0)))
        if arm.dof != self.dof:
            raise InvalidValue(f"RTDE drives UR arms with 6 joints; {arm.name} has {arm.dof}")
        self.robot: Robot = arm
        self.limits = loop.Limits.of(arm, _array(torque_max), _array(speed_max), hold, fade)
        self.said: list[str] = []
        self.late = 0  # frames in which no new torque had come, of
        self.frames = 0  # frames in torque mode
        self.lost = 0  # samples that were not read in time, or did not come
        self._rtde: Rtde | None = None
        self._programs: Programs | None = None
        self._running = False

    # ------------------------------------------------------------------------------------------------ the four methods

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> State:
        """Make ready: checks version, modes, gravity and that the arm stands at q (6,) [rad], starts the torque loop.

        It does not move the arm; the loop waits, and the controller holds the arm, until the first `write`.
        """
        start, speed = initial(q, qd, self.dof)
        if np.abs(speed).max() > SLOW:
            raise InvalidValue("qd: a real arm starts at rest")
        self.close()
        try:
            values = self._connected()
            self._refuse(values, start)
            self._begin(values)
        except BaseException:
            self.close()
            raise
        return self._state

    def read(self) -> State:
        """The next sample; the newest where several wait. PlantLost says why the arm has stopped."""
        values = self._received()
        self._check(values)
        step = self._step_of(values)
        self.lost += max(step - self._step - 1, 0)
        # The gravity that the controller added is that of the sample before; where samples were lost, of the newest
        # one that is known. Both differ by some mNm.
        tau = np.array([values[name] for name in loop.PASSED], dtype=np.float64) + self._gravity
        limit = self.robot.tau_max
        tau = np.minimum(np.maximum(tau, -limit), limit)
        self._state = self._sample(values, step, tau)
        return self._state

    def write(self, command: Command) -> None:
        """Send the torque (6,) [Nm, gravity included] for the coming frame."""
        tau = command.tau - self._gravity
        if not np.isfinite(tau.dot(tau)):
            raise InvalidValue(f"a torque that is no number: {command.tau.tolist()}")
        if self._sequence == 0:
            self._first()
        if self._state.time < self._ramp:
            tau = tau * (self._state.time / self._ramp)
        self._sequence += 1
        self._send(loop.Wish.TORQUE, tau.tolist())

    def close(self) -> None:
        """Stop the arm and let go; may be called twice. Where the loop does not answer, a program stops the arm."""
        if self._running:
            self._running = False
            stopped = False
            with contextlib.suppress(PlantLost):
                stopped = self._ended()
            if not stopped:
                with contextlib.suppress(PlantLost):
                    stop(self.address.host, self._consent)
                    self.said.append("the torque loop did not answer at the end; the arm was stopped by a program")
            if self.frames:
                share = f"{self.late} of {self.frames} torques came late ({100 * self.late_share:.2g} %)"
                self.said.append(share + (f", {self.lost} samples were lost" if self.lost else ""))
        for connection in (self._rtde, self._programs):
            if connection is not None:
                connection.close()
        self._rtde = self._programs = None

    @property
    def late_share(self) -> float:
        """Share of frames in torque mode in which the torque before had to be held."""
        return self.late / max(self.frames, 1)

    # ------------------------------------------------------------------------------------------------------- beginning

    def _connected(self) -> Mapping[str, Any]:
        """Connect, take the registers; the first values."""
        self._rtde = connection = Rtde(self.address.host, self.address.port)
        version = connection.version
        if not loop.torque_known(version):
            told = ".".join(map(str, version[:3]))
            raise InvalidValue(f"{self.address.host}: PolyScope {told} takes no torques; from 5.23 or 10.10 on it does")
        scaled = loop.scales_known(version)
        if not scaled and any(self._scales):
            self.said.append("this version makes up for friction wholly or not at all: wholly")
        connection.known_outputs((*FIELDS, *loop.OUTPUTS))
        try:
            self._recipe = connection.inputs(loop.INPUTS)
        except InputsTaken as problem:
            raise PlantLost(f"{problem}; {self._holder(connection)}") from None
        connection.start()
        self._run = (os.getpid() & 0x3FFFFF) << 8 | next(_RUNS) & 0xFF
        self._sequence, self.late, self.frames, self.lost = 0, 0, 0, 0
        self._send(loop.Wish.IDLE)  # one package for each that is read, from the first on: lock-step waits for it
        return self._received()

    def _holder(self, connection: Rtde) -> str:
        """Who holds the registers, as far as can be told."""
        connection.start()
        values = connection.receive(SILENT) or {}
        run = int(values.get(loop.RUN, 0))  # type: ignore[arg-type]
        if values.get("runtime_state") == 2 and values.get(loop.SPOKEN) == loop.PROTOCOL and run:
            return f"a torque client of Tangere runs there: process {run >> 8} of some computer, run number {run}"
        return "no torque client of Tangere runs there, so it is another program or a field bus"

    def _refuse(self, values: Mapping[str, Any], start: Array) -> None:
        """Raise where the arm is not ready, not where it should be, or not the one that we know."""
        host = self.address.host
        mode, safety = int(values["robot_mode"]), int(values["safety_mode"])
        if safety not in (1, 2):
            raise PlantLost(f"{host} is stopped: {STOPS.get(safety, f'safety mode {safety}')}")
        if mode != 7:
            raise PlantLost(f"{host} is not running: {MODES.get(mode, f'robot mode {mode}')}")
        if values["runtime_state"] == 2:
            raise PlantLost(f"{host} runs a program; end it first, it would be replaced")
        q, qd = np.array(values["actual_q"]), np.array(values["actual_qd"])
        off = np.abs(q - start)
        if off.max() > self._near:
            joint = int(off.argmax())
            raise InvalidValue(
                f"{host} stands elsewhere: joint {joint + 1} at {np.degrees(q[joint]):.1f} deg, the run begins at "
                f"{np.degrees(start[joint]):.1f} deg; tangere.arm(...).move_joints or --approach moves it there"
            )
        if np.abs(qd).max() > SLOW:
            raise InvalidValue(f"{host} moves; a run begins at rest")
        self._believed = controllers_arm(self.robot, values)
        ours, theirs = self._believed.gravity_torque(q), np.array(values["target_moment"])
        differs = np.abs(ours - theirs) - GRAVITY_SHARE * self.robot.tau_max
        if differs.max() > GRAVITY_OFF:
            joint = int(differs.argmax())
            raise InvalidValue(
                f"{host}: at rest the controller's torque of joint {joint + 1} is {theirs[joint]:.2f} Nm, by our model "
                f"of {self.robot.name} it is {ours[joint]:.2f} Nm; tangere doctor {host} --robot NAME says more"
            )

    def _begin(self, values: Mapping[str, Any]) -> None:
        """Start the loop; in the end it waits for the first torque."""
        assert self._rtde is not None
        self._programs = Programs(self.address, self._consent)
        friction = any(self._scales)
        self._programs.send(loop.program(self.limits, self._run, self._rtde.version, friction))
        self._running = True
        deadline = time.monotonic() + STARTING
        while not (values[loop.RUN] == self._run and values[loop.SPOKEN] == loop.PROTOCOL):
            said = self._programs.said()
            if said or time.monotonic() > deadline:
                raise PlantLost(
                    f"{self.address.host} did not run the torque loop: "
                    f"{said or 'is it in remote control? (tangere doctor says more)'}"
                )
            self._send(loop.Wish.IDLE)
            values = self._received()
        self._step0 = self._step = self._step_of(values)
        self._state = self._sample(values, self._step, self._believed.gravity_torque(values["actual_q"]))

    # --------------------------------------------------------------------------------------------------------- frames

    def _first(self) -> None:
        """The run's clock begins with its first torque, however long its maker took since `reset`; the arm stood."""
        connection = self._open()
        if connection.waiting:
            values = self._received()
            self._check(values)
            self._step0 = self._step = self._step_of(values)

    def _open(self) -> Rtde:
        if self._rtde is None:
            raise PlantLost(f"{self.address.host}: not started, or closed; reset comes first")
        return self._rtde

    def _received(self) -> Mapping[str, Any]:
        """The newest values; one package is enough of a backlog."""
        values, _ = self._open().newest(SILENT)
        if values is None:
            raise PlantLost(f"{self.address.host} has been silent for {SILENT:g} s")
        return values

    def _send(self, wish: loop.Wish, tau: list[float] | None = None) -> None:
        torque = [0.0] * 6 if tau is None else tau
        self._open().send(self._recipe, (self._sequence, int(wish), self._run, *torque, *self._scales))

    def _step_of(self, values: Mapping[str, Any]) -> int:
        """Number of the frame; of versions without control_step by the clock."""
        return int(values.get("control_step", round(values["timestamp"] / self.period)))

    def _sample(self, values: Mapping[str, Any], step: int, tau: Array) -> State:
        q, qd = np.array(values["actual_q"]), np.array(values["actual_qd"])
        wrench = np.array(values["actual_TCP_force"])
        since = max(step - self._step, 1) * self.period
        self._step = step
        self._gravity = self._believed.gravity_torque(q)
        return State((step - self._step0) * self.period, since, q, qd, tau, wrench)

    def _check(self, values: Mapping[str, Any]) -> None:
        """Raise PlantLost where the arm no longer does what we say."""
        host, mode = self.address.host, int(values[loop.MODE])
        self.late, self.frames = int(values[loop.LATE]), int(values[loop.FRAMES])
        if int(values["safety_mode"]) not in (1, 2):
            raise PlantLost(f"{host} has stopped: {STOPS.get(int(values['safety_mode']), 'safety')}")
        if values[loop.RUN] != self._run:
            raise PlantLost(f"{host}: another client has started a torque loop")
        if mode in (loop.Mode.FADING, loop.Mode.STOPPED):
            raise PlantLost(f"{host}: the torque loop has stopped the arm: {loop.reason(int(values[loop.WHY]))}")
        if values["runtime_state"] != 2:
            said = "" if self._programs is None else self._programs.said(SAYING)
            raise PlantLost(f"{host}: the torque loop has ended{f': {said}' if said else ''}")
        if self.frames > LATE_AFTER and self.late_share > LATE_SHARE:
            raise PlantLost(f"{host}: {100 * self.late_share:.0f} % of the torques came late, more than the loop bears")

    def _ended(self) -> bool:
        """End the loop; whether the arm stands."""
        deadline = time.monotonic() + ENDING
        while time.monotonic() < deadline:
            self._send(loop.Wish.END)
            values = self._received()
            over = values[loop.RUN] != self._run or values["runtime_state"] != 2
            if over and np.abs(values["actual_qd"]).max() < SLOW:
                return True
        return False


def controllers_arm(arm: Robot, reported: Mapping[str, Any]) -> Robot:
    """The arm with payload and gravity as its controller has them, by the fields that it tells."""
    mass = float(reported.get("payload", 0.0))
    options: dict[str, Any] = {}
    if mass > 0.0:
        com = [float(x) for x in reported.get("payload_cog", (0.0, 0.0, 0.0))]
        xx, yy, zz, xy, xz, yz = (float(x) for x in reported.get("payload_inertia", (0.0,) * 6))
        options["payload"] = (mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if "target_gravity" in reported:
        options["gravity"] = [-float(x) for x in reported["target_gravity"]]
    bare = arm if arm.model.payload is None else twin(arm, payload=0.0)
    return twin(bare, **options) if options else bare


def stop(host: str, consent: Consent | None = None) -> None:
    """Stop what an arm does, by a program of one line; it replaces whatever program runs."""
    programs = Programs(address_of(host), consent)
    try:
        programs.send(f"def tangere_stop():\n  stopj({loop.STOP})\nend")
    finally:
        programs.close()


def _array(given: ArrayLike | None) -> Array | None:
    return None if given is None else np.asarray(given, dtype=np.float64)


def _shares(given: ArrayLike) -> Array:
    shares = np.broadcast_to(np.asarray(given, dtype=np.float64), (6,))
    if not np.all((shares >= 0.0) & (shares <= 1.0)):
        raise InvalidValue(f"friction: shares from 0 to 1, got {np.asarray(given).tolist()}")
    return shares
