"""The arm inside a virtual controller: a plant that is moved by frames of 2 ms, and what nobody was told of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tangere.control.joint_servo import JointServo
from tangere.dynamics.friction import JointFriction, sliding_friction
from tangere.errors import InvalidValue
from tangere.model.calibration import calibrated_by, dh_frames
from tangere.model.joint_sizes import typical_drives
from tangere.model.model import Model, Payload
from tangere.plants.mujoco_plant import MujocoPlant
from tangere.plants.rigid import RigidPlant
from tangere.plants.scene.bodies import pad
from tangere.plants.scene.scene import Pen, Scene
from tangere.plants.sensors import SensorModel
from tangere.plants.twins import twin
from tangere.robots import Robot
from tangere.rtde.primary import Calibration
from tangere.types import Array, Command, State

STEP = 1e-3  # [s] of the plant; the servo's own rate
ROD = Pen(0.1, 0.01)  # [m] what the arm touches a wall with: it weighs nothing, its round end is the tool's point
# [N/m], [N s/m], [m]: a real arm with its joints and tool on a hard wall gives way by some 50 mm per kN; joints here
# are rigid, so that the wall has to. A tenth of critical damping for 10 kg.
WALL = (2e4, 90.0, (1.2, 1.2, 0.05))
HOME = (0.0, -1.5707963267948966, 1.5707963267948966, -1.5707963267948966, -1.5707963267948966, 0.0)  # [rad] elbow up


@dataclass(frozen=True, slots=True)
class Drawn:
    """What an arm is that nobody knows: calibration, friction, payload and noise of its own, by a seed."""

    seed: int | None = None  # None: nominal geometry, typical friction, nothing mounted

    def rng(self, purpose: int) -> np.random.Generator:
        """Independent numbers for each purpose, so that one more does not change the others."""
        return np.random.default_rng([0 if self.seed is None else self.seed, purpose])

    def calibration(self, model: Model) -> Calibration:
        """DH parameters of the arm, as its controller knows them."""
        assert model.dh is not None
        theta, a, d, alpha = np.zeros(6), np.array(model.dh.a), np.array(model.dh.d), np.array(model.dh.alpha)
        checksum: tuple[int, ...] = (0,) * 6
        if self.seed is not None:
            rng = self.rng(1)
            # Spread of factory calibrations: tenths of a millimetre and of a milliradian; axes 2 to 4 are nearly
            # parallel, where d is ill determined and comes out as metres that cancel one another.
            theta = rng.normal(0.0, 5e-4, 6)
            a[:5] += rng.normal(0.0, 2e-4, 5)
            d += rng.normal(0.0, 2e-4, 6)
            alpha[:5] += rng.normal(0.0, 4e-4, 5)
            alpha[1:3] = rng.normal(0.0, 2e-5, 2)
            far = float(rng.normal(0.0, 5.0))
            d[1] += far
            d[2] -= far
            checksum = tuple(int(n) for n in rng.integers(0, 2**32, 6))
        rows = [tuple(float(x) for x in row) for row in (theta, a, d, alpha)]
        return Calibration(rows[0], rows[1], rows[2], rows[3], checksum)


class Inside:
    """One frame after the other: a setpoint goes in, the plant moves on by 2 ms.

    wall: x of a wall before the arm [m]; it then has a rod at its flange, whose end is the tool's point.
    belief: what the controller knows (calibrated, with the payload that it was told). The plant holds the truth;
    payload [kg]: what really hangs at the flange, where it is said. sensors: whether samples are noisy.
    """

    def __init__(
        self,
        model: Model,
        *,
        plant: Literal["mujoco", "rigid"] = "mujoco",
        drawn: Drawn | None = None,
        frame: float = 2e-3,
        q: Array | None = None,
        wall: float | None = None,
        sensors: bool = True,
        payload: float | None = None,
    ) -> None:
        drawn = Drawn() if drawn is None else drawn
        if model.dh is None or model.dof != 6:
            raise InvalidValue(
                f"a virtual controller drives UR arms (six joints, standard DH); {model.name} is not one"
            )
        if wall is not None and plant != "mujoco":
            raise InvalidValue("a wall can be touched with --plant mujoco only: rigid bodies have no contacts")
        scene = None if wall is None else Scene((pad("wall", (wall, 0.0, 0.5), (-1.0, 0.0, 0.0), *WALL),), tool=ROD)
        if scene is not None:
            model = dataclasses.replace(model, T_flange_tcp=_along(ROD.length))
        self.nominal = model
        self.calibration = drawn.calibration(model)
        c = self.calibration
        table = dh_frames(model, *(np.array(row) for row in (c.theta, c.a, c.d, c.alpha)))
        believed = typical_drives(calibrated_by(model, table, "the virtual arm"))
        told, true = _payloads(drawn)
        self.belief = Robot(dataclasses.replace(believed, payload=told), True, typical_drives(model))
        self.typical = JointFriction.of(believed.drives)
        wear = 1.0 if drawn.seed is None else np.exp(drawn.rng(2).normal(0.0, 0.2, 6))
        truth = twin(self.belief, friction=wear, payload=true if payload is None else payload)
        self.friction = JointFriction.of(truth.drives)
        noise = _sensors(drawn, believed) if sensors else None
        if plant == "mujoco":
            self.plant: MujocoPlant | RigidPlant = MujocoPlant(
                truth, STEP, friction=self.friction, stiction=True, scene=scene, sensors=noise
            )
        else:
            self.plant = RigidPlant(truth, STEP, friction=self.friction, sensors=noise)
        self._steps = round(frame / STEP)
        if self._steps < 1 or abs(self._steps * STEP - frame) > 1e-9:
            raise InvalidValue(f"a frame of {frame:g} s is not a whole number of steps of {STEP:g} s")
        self.servo = JointServo(self.belief, self.typical)
        self.state = self.plant.reset(np.array(HOME) if q is None else q)
        self.braked = True
        self._scales: tuple[Array | None, Array | None] = (self.typical.viscous, None)  # shares of friction made up for
        self._made_up = (np.zeros(6), np.zeros(6))  # viscous and coulomb, times their shares
        self._hold = self.state.q

    def believe(self, robot: Robot) -> None:
        """The controller was told of another payload or gravity."""
        self.belief = self.servo.robot = robot

    def follow(self, q: Array, qd: Array, qdd: Array) -> State:
        """One frame in position mode: be at q (6,) with qd at its end."""
        self._braked(False)
        h = STEP
        for k in range(self._steps - 1):
            left = (self._steps - 1 - k) * h  # the target of each step on the way to that of the frame
            at = q - qd * left + qdd * (0.5 * left * left)
            self._step(self.servo.torque(self._sensed(), at, qd - qdd * left, qdd, h))
        self._step(self.servo.torque(self._sensed(), q, qd, qdd, h))
        self._hold = self.state.q
        return self.state

    def apply(self, tau: Array, viscous: Array | None, coulomb: Array | None) -> State:
        """One frame in torque mode: gravity of the believed arm and a share of its friction are added."""
        self._braked(False)
        self.servo.release()
        qd = self.state.qd
        total = self.belief.gravity_torque(self.state.q)
        total += tau
        if viscous is not self._scales[0] or coulomb is not self._scales[1]:
            self._scales = (viscous, coulomb)
            self._made_up = (
                self.typical.viscous * (0.0 if viscous is None else viscous),
                self.typical.coulomb * (0.0 if coulomb is None else coulomb),
            )
        total += sliding_friction(qd, 1.0 / self.typical.width, self._made_up[1], self._made_up[0])
        for _ in range(self._steps):  # the plant cuts what is beyond the drives' limits
            self._step(total)
        self._hold = self.state.q
        return self.state

    def stand(self) -> State:
        """One frame with the brakes on: modelled as a stiff servo at the place where they closed."""
        if not self.braked:
            self._hold = self.state.q
        self._braked(True)
        still = np.zeros(6)
        for _ in range(self._steps):
            self._step(self.servo.torque(self._sensed(), self._hold, still, still, STEP))
        return self.state

    def close(self) -> None:
        """Release the plant."""
        self.plant.close()

    def _step(self, tau: Array) -> None:
        self.plant.write(Command(tau))
        self.state = self.plant.read()

    def _sensed(self) -> State:
        """What the drives' own encoders say, at a rate far above the frames: taken as free of noise."""
        return self.plant.exact()

    def _braked(self, now: bool) -> None:
        if now != self.braked:
            self.servo.release()
        self.braked = now


def _along(length: float) -> Array:
    """T_flange_tcp of a point before the flange."""
    T = np.eye(4)
    T[2, 3] = length
    return T


def _payloads(drawn: Drawn) -> tuple[Payload | None, Payload | None]:
    """What the controller was told to hang at the flange, and what does: a user weighs to some per cent."""
    if drawn.seed is None:
        return None, None
    rng = drawn.rng(3)
    mass = float(rng.uniform(0.0, 2.0))
    com = rng.uniform((-0.02, -0.02, 0.02), (0.02, 0.02, 0.08))
    inertia = np.eye(3) * mass * 0.05**2 / 2.5
    told = Payload(round(mass * (1.0 + float(rng.normal(0.0, 0.01))), 2), np.round(com, 3), inertia)
    return told, Payload(mass, com, inertia)


def _sensors(drawn: Drawn, model: Model) -> SensorModel:
    """Encoders, tacho and torque by current, as a UR10e shows them, in proportion to the joint's size."""
    return SensorModel.typical(Robot(model).tau_max, STEP, 0 if drawn.seed is None else drawn.seed)
