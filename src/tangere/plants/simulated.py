"""What simulated arms have in common: sensors, actuators, pushes, and the sample that comes of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, PlantLost, UnknownName
from tangere.kernels.periods import held
from tangere.plants.pull import Load, Pull, Pulled, checked_load, checked_pull, pulled
from tangere.plants.pushes import Actuators, Fault, Push, Pushes
from tangere.plants.sensors import SensorModel, Sensors
from tangere.robots import Robot
from tangere.types import Array, Command, State


class SimulatedArm:
    """A plant without its law of motion: that is what RigidPlant and MujocoPlant add in `write`."""

    def __init__(
        self,
        robot: Robot,
        period: float,
        friction: JointFriction | None,
        sensors: SensorModel | None,
        faults: Sequence[Fault],
        pushes: Sequence[Push],
        force_sensor: bool,
    ) -> None:
        if not (math.isfinite(period) and period > 0.0):
            raise InvalidValue(f"period: must be positive and finite [s], got {period!r}")
        refuse_friction(friction, robot.dof)
        self.robot, self.period, self.dof = robot, period, robot.dof
        self.pushes = tuple(pushes)
        self._sensors = Sensors(sensors, robot.dof, period)
        self._actuators = Actuators(robot.tau_max, faults)
        self._pushes = Pushes(robot, pushes)
        self._pull: Pull | None = None
        self._load: Array | None = None
        self._held: Array | None = None  # torque of both in the newest period
        self.pulled: Pulled | None = None  # what the pull did in the newest period
        self._force_sensor, self._nothing = force_sensor, np.zeros(6)
        self._nothing.flags.writeable = False

    def read(self) -> State:
        """The newest sample."""
        if self._failed:
            raise PlantLost(f"the simulation left the finite numbers at {self._count * self.period:.6g} s")
        return self._state

    def exact(self) -> State:
        """The state as it is now, without sensors: what the drives' own encoders know, at a rate of their own."""
        return State(self._count * self.period, self.period, self._q, self._qd, self._actuators.reported)

    def push(self, push: Push) -> None:
        """One more push, while the plant runs."""
        self._pushes.add(push)

    def pull(self, pull: Pull | None) -> None:
        """A spring that pulls from the next period on, in place of the one before; None: lets go."""
        self._pull = None if pull is None else checked_pull(pull, self.dof)

    def load(self, load: Load) -> None:
        """Torques on all joints from the next period on, in place of those before."""
        torque = checked_load(load, self.dof)
        self._load = torque if torque.any() else None

    def force_of(self, push: Push) -> Array:
        """The force of a push in base axes (3,) [N], as far as it is known; zero for one on a joint."""
        return self._pushes.force_of(push)

    def _begin(self, q: Array, qd: Array) -> State:
        """The first sample, at rest or moving; nothing acts yet."""
        self._q, self._qd = held(q, qd)
        self._count, self._failed, self._pushed = 0, False, False
        self._stuck: tuple[int, ...] = ()
        self._actuators.reset()
        self._push, self._wrench = np.zeros(self.dof), self._nothing
        self._pull = self.pulled = self._load = self._held = None
        felt = self._wrench if self._force_sensor else None
        self._state = self._sensors.first(q, qd, self._actuators.reported, felt)
        return self._state

    def _loaded(self, command: Command) -> tuple[Array, float]:
        """The torque that the actuators make of a command, and the middle of the period [s]; pushes are at work."""
        middle = (self._count + 0.5) * self.period
        tau, pushes = self._actuators.apply(command.tau, middle), self._pushes
        self._pushed = pushes.schedule(middle)
        if self._pushed:
            self._push, self._wrench = pushes.torque(self._q), pushes.wrench(self._q)
        else:
            self._push, self._wrench = pushes.nothing, self._nothing
        if self._pull is None and self._load is None:
            self.pulled = self._held = None
            return tau, middle
        # set once a period: a sink reads it from a thread of its own, and None would be a hand that let go
        self.pulled = None if self._pull is None else pulled(self._pull, self.robot, self._q, self._qd)
        self._held = self._load
        if self._pull is not None and self.pulled is not None:
            self._held = self.pulled.torque if self._load is None else self.pulled.torque + self._load
            if self._pull.link == self.dof:
                arm = self.pulled.point - self.robot.pose(self._q)[:3, 3]
                self._wrench = self._wrench + np.concatenate((self.pulled.force, np.cross(arm, self.pulled.force)))
        if self._held is not None:
            self._pushed, self._push = True, self._push + self._held
        return tau, middle

    def _sampled(self) -> None:
        """The sample at the end of a period; q and qd are `held`: nobody can change them in place."""
        felt = self._wrench if self._force_sensor else None
        time, sensors = self._count * self.period, self._sensors
        if sensors.direct:
            self._state = State(time, self.period, self._q, self._qd, self._actuators.reported, felt)
        else:
            self._state = sensors.next(time, self._q, self._qd, self._actuators.reported, felt)


def changeable(name: str, value: float) -> str:
    """The name of what a plant can change while it runs, checked with its value."""
    if name not in ("payload", "friction"):
        raise UnknownName(f"unknown {name!r}; a plant can change: payload, friction")
    if not (math.isfinite(value) and value >= 0.0):
        raise InvalidValue(f"{name}: finite and not negative, got {value!r}")
    return name


def initial(q: ArrayLike, qd: ArrayLike | None, dof: int) -> tuple[Array, Array]:
    """Checked copies of a starting configuration and velocity, (n,) each."""
    start = np.array(q, dtype=np.float64)
    speed = np.zeros(dof) if qd is None else np.array(qd, dtype=np.float64)
    for what, array in (("q", start), ("qd", speed)):
        if array.shape != (dof,) or not np.all(np.isfinite(array)):
            raise InvalidValue(f"{what}: {dof} finite numbers, got {array.tolist()}")
    return start, speed


def refuse_friction(friction: Any, dof: int) -> None:
    """Raise for what is no friction of so many joints."""
    if friction is None:
        return
    if not hasattr(friction, "coulomb"):
        raise InvalidValue(f"friction: a JointFriction or None, got {friction!r}")
    if friction.coulomb.shape != (dof,):
        raise InvalidValue(f"friction: of {dof} joints, got {friction.coulomb.shape}")


def refuse_stiff_friction(friction: JointFriction, M: Array, step: float) -> None:
    """Raise InvalidValue where an explicit step under this friction diverges: step * slope / inertia > 2.

    slope = coulomb / width + viscous is the friction's derivative at rest; the largest eigenvalue of M^-1 diag(slope)
    counts. 2 is the limit of an Euler step (2.8 of Runge-Kutta).
    """
    root = np.sqrt(friction.coulomb / friction.width + friction.viscous)
    rate = float(np.linalg.eigvalsh(root[:, None] * np.linalg.inv(M) * root).max())
    if rate * step > 2.0:
        raise InvalidValue(
            f"friction is too steep for a step of {step:g} s: slope * step / inertia = {rate * step:.3g} > 2; make the "
            f"robot with rotor_inertia=True, widen JointFriction(width={friction.width:g}), take shorter steps, or use "
            f"MujocoPlant(..., stiction=True). As settings: drives=on, a shorter period, or friction=stiction"
        )
