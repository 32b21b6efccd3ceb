"""A simulated arm in MuJoCo, written from our own model: contacts, stiction, joint limits, pictures."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, UnknownName
from tangere.kernels.periods import finite, held, put
from tangere.model.mjcf import mujoco_module
from tangere.plants.pushes import Fault, Push, braked
from tangere.plants.render import Camera, OffScreen
from tangere.plants.scene.bodies import Body
from tangere.plants.scene.mjcf import to_mjcf
from tangere.plants.scene.scene import Pen, Scene
from tangere.plants.sensors import SensorModel
from tangere.plants.simulated import SimulatedArm, changeable, initial, refuse_stiff_friction
from tangere.robots import Robot
from tangere.types import Array, Command, State, Truth


class Moving:
    """Releases balls in time and, if asked to, records the force of all contacts on the arm in every period.

    arm: which bodies of the MuJoCo model are the arm's. forces: (N + 1, 3) [N], base axes: nothing, then one row per
    write; row k belongs to the sample k of a run, as Truth.wrench does.
    """

    def __init__(self, mujoco: Any, model: Any, data: Any, bodies: Sequence[Body], arm: range, record: bool) -> None:
        self._model, self._data, self._force_of = model, data, mujoco.mj_contactForce
        kinds = mujoco.mjtObj
        free = {b.name: b.release for b in bodies if b.mass is not None}
        self._balls = sorted((time, mujoco.mj_name2id(model, kinds.mjOBJ_BODY, name)) for name, time in free.items())
        self._of_arm = [int(body) in arm for body in model.geom_bodyid]
        self._record, self._local = record, np.zeros(6)
        self.reset()

    def reset(self) -> None:
        """Every ball is held again; the record is empty."""
        for _, body in self._balls:
            self._model.body_gravcomp[body] = 1.0
        self._held = list(self._balls)
        self._forces = array("d", (0.0, 0.0, 0.0))  # numbers, no objects: 24 bytes a period

    @property
    def forces(self) -> Array:
        """(N + 1, 3) N."""
        return np.array(self._forces).reshape(-1, 3)

    def before(self, middle: float) -> None:
        """Before the step whose middle is at this time [s]."""
        while self._held and self._held[0][0] <= middle:
            self._model.body_gravcomp[self._held.pop(0)[1]] = 0.0

    def after(self) -> None:
        """After the step."""
        if self._record:
            self._forces.extend(self._force())

    def _force(self) -> Array:
        """Sum of the contact forces on the arm in the last step; MuJoCo gives what acts on the second geom."""
        total = np.zeros(3)
        for i in range(self._data.ncon):
            contact = self._data.contact[i]
            sign = self._of_arm[contact.geom2] - self._of_arm[contact.geom1]
            if sign:
                self._force_of(self._model, self._data, i, self._local)
                total += sign * (self._local[:3] @ contact.frame.reshape(3, 3))
        return total


# kg m2 on a braked joint: 330 Nm then give 3e-10 rad/s2, and the other joints' equations lose no digit to it.
_BRAKED = 1e12


class MujocoPlant(SimulatedArm):
    """One write is one mj_step of the period, under a held torque.

    integrator "euler" is MuJoCo's default: semi-implicit, first order, with the viscous friction B implicit,

        M(q) (qd' - qd) / h + C qd + g + B qd' = tau + tau_ext,  q' = q + h qd'

    (the observer has an exact form for it: see tangere.observe). "implicitfast" and "rk4" are MuJoCo's others.
    Rotor inertia: what the robot was made with, as armature. Torques beyond robot.tau_max are cut at this border.

    friction: viscous as damping; Coulomb as a smooth torque (the law of JointFriction, so that it can be compensated
        exactly) or, with stiction=True, as frictionloss: below breakaway the joint stands still.
    scene: bodies, tool, and what collides. joint_limits: whether joint ranges are end stops.
    force_sensor: whether State.wrench is measured: the contacts and forces on the last link, at the tcp.
    record_contacts: whether the force of all contacts on the arm is kept in `contact_forces`.
    """

    def __init__(
        self,
        robot: Robot,
        period: float = 1e-3,
        *,
        friction: JointFriction | None = None,
        stiction: bool = False,
        scene: Scene | None = None,
        integrator: Literal["euler", "implicitfast", "rk4"] = "euler",
        joint_limits: bool = True,
        sensors: SensorModel | None = None,
        faults: Sequence[Fault] = (),
        pushes: Sequence[Push] = (),
        force_sensor: bool = True,
        record_contacts: bool = False,
    ) -> None:
        mujoco = mujoco_module("the MuJoCo plant needs mujoco")
        integrators = {"euler": "EULER", "implicitfast": "IMPLICITFAST", "rk4": "RK4"}
        if integrator not in integrators:
            raise UnknownName(f"unknown integrator {integrator!r}; known: {', '.join(integrators)}")
        super().__init__(robot, period, friction, sensors, faults, pushes, force_sensor)
        n = robot.dof
        friction = JointFriction.none(n) if friction is None else friction
        self.scene = Scene() if scene is None else scene
        if self.scene.sliding is not None:
            _refuse_stiff_tip(self.scene.sliding, period)
        self.xml = to_mjcf(
            robot.model,
            rotor_inertia=robot.rotor_inertia,
            damping=friction.viscous,
            frictionloss=friction.coulomb if stiction else None,
            scene=self.scene,
        )
        self.model: Any = mujoco.MjModel.from_xml_string(self.xml)
        self.data: Any = mujoco.MjData(self.model)
        self.model.opt.timestep = period
        self.model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrators[integrator]}")
        # a simulation that diverges must say so, not start again at zero by itself
        self.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
        if not joint_limits:
            self.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
        dry = JointFriction(friction.coulomb, np.zeros(n), friction.width)
        self._friction, self._stiction = friction, stiction
        self._smooth = dry if np.any(friction.coulomb) and not stiction else None
        self._mujoco, self._mj_step = mujoco, mujoco.mj_step
        self._mj_contact_force = mujoco.mj_contactForce
        self._qpos, self._qvel = self.data.qpos[:n], self.data.qvel[:n]
        self._applied = self.data.qfrc_applied[:n]
        self._constrained = self.data.qfrc_constraint[:n]  # J^T of all rows: equality, friction, limits, contacts
        self._armature = np.array(self.model.dof_armature[:n])
        site = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_SITE, "tcp")
        tool = int(self.model.site_bodyid[site])  # bodies are numbered from the base outwards
        self._sliding = self.scene.sliding is not None
        arm = range(1, n + 1 + self._sliding)  # what moves by itself comes after
        self._on_tool: list[bool] = [int(body) in arm and bool(body >= tool) for body in self.model.geom_bodyid]
        self._moving: Moving | None = None
        if record_contacts or any(body.mass is not None for body in self.scene.bodies):
            self._moving = Moving(mujoco, self.model, self.data, self.scene.bodies, arm, record_contacts)
        weight = float(self.model.body_invweight0[arm[-1], 0])  # what meets the bodies: a sliding tip, or the last link
        for body in self.scene.bodies:
            names = [body.name + part.name for part in body.shape.parts()]
            geoms = [mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_GEOM, name) for name in names]
            body.contact.tune(self.model, geoms, weight, f"{body.kind} {body.name!r}")
        self._tcp_at, self._local = self.data.site_xpos[site], np.zeros(6)
        self._pictures: OffScreen | None = None
        self.reset(np.clip(np.zeros(n), robot.q_min, robot.q_max))

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> State:
        """Place the arm at q (n,) [rad] with velocity qd (n,) (at rest if not given); time starts at 0."""
        start, speed = initial(q, qd, self.dof)
        if self._smooth is not None:
            refuse_stiff_friction(self._smooth, self.robot.mass_matrix(start), self.period)
        self._mujoco.mj_resetData(self.model, self.data)
        self._qpos[:], self._qvel[:] = start, speed
        self.model.dof_armature[: self.dof] = self._armature
        if self._moving is not None:
            self._moving.reset()
        self._mujoco.mj_forward(self.model, self.data)
        return self._begin(start, speed)

    def write(self, command: Command) -> None:
        """Hold the torque for one period and move on by it."""
        if self._failed:
            return
        tau, middle = self._loaded(command)
        if self._actuators.stuck != self._stuck:
            self._brake(self._actuators.stuck)
        applied, data, moving = self._applied, self.data, self._moving
        put(applied, tau, self._push if self._pushed else None)
        if self._smooth is not None:
            applied -= self._smooth.torque(self._qd)
        if moving is not None:
            moving.before(middle)
        self._mj_step(self.model, data)
        self._q, self._qd = held(self._qpos, self._qvel)
        qd = self._qd
        self._count += 1
        if not finite(qd):
            self._failed = True
            return
        if data.ncon:
            wrench = self._contact_wrench()
            self._wrench = self._wrench + wrench if self._pushed else wrench
        if moving is not None:
            moving.after()
        self._sampled()

    def change(self, name: str, value: float) -> None:
        """While the plant runs: payload [kg] at the flange, friction as a factor on the law it was made with."""
        if changeable(name, value) == "friction":
            law = self._friction.scaled(value)
            self.model.dof_damping[: self.dof] = law.viscous
            if self._stiction:
                self.model.dof_frictionloss[: self.dof] = law.coulomb
            elif self._smooth is not None:
                self._smooth = JointFriction(law.coulomb, np.zeros(self.dof), law.width)
            return
        self.robot = self.robot.with_payload(value or None)
        other = self._mujoco.MjModel.from_xml_string(
            to_mjcf(self.robot.model, rotor_inertia=self.robot.rotor_inertia, scene=self.scene)
        )
        for part in ("body_mass", "body_ipos", "body_iquat", "body_inertia"):
            getattr(self.model, part)[:] = getattr(other, part)
        self._mujoco.mj_setConst(self.model, self._mujoco.MjData(self.model))

    def truth(self) -> Truth:
        """The noise-free state now; tau_ext (pushes, contacts, end stops) and wrench as they acted in the last period.

        T is where the tcp is; with a sliding pen tip, pushed in with it. The wrench has what acts on the last link.
        """
        tau_ext, data = self._push, self.data
        # equality and friction rows come first; then limits and contacts
        if self._count and data.nefc and data.nefc > (inner := data.ne + data.nf):
            torque = self._constrained
            if inner:
                force, torque = np.array(data.efc_force), np.zeros(self.model.nv)
                force[:inner] = 0.0
                self._mujoco.mj_mulJacTVec(self.model, data, torque, force)
            tau_ext = tau_ext + torque[: self.dof]
        T = self.robot.pose(self._q)
        if self._sliding:
            T[:3, 3] += float(data.qpos[self.dof]) * self.robot.link_poses(self._q)[-1][:3, 2]
        return Truth(self._q, self._qd, tau_ext, T, self._wrench)

    @property
    def contact_forces(self) -> Array:
        """(N + 1, 3) N, base axes: all contacts on the arm, zero, then a row per write; needs record_contacts."""
        return np.zeros((1, 3)) if self._moving is None else self._moving.forces

    def render(self, width: int = 640, height: int = 480, camera: Camera | None = None) -> NDArray[np.uint8]:
        """A picture (height, width, 3) of the scene now, off screen."""
        if self._pictures is None or self._pictures.size != (width, height):
            if self._pictures is not None:
                self._pictures.close()
            self._pictures = OffScreen(self.model, width, height)
        self._mujoco.mj_kinematics(self.model, self.data)  # shapes where q is now; a step leaves them one behind
        self._mujoco.mj_camlight(self.model, self.data)
        return self._pictures.picture(self.data, camera)

    def close(self) -> None:
        """Release the picture's memory, if any; may be called twice."""
        if self._pictures is not None:
            self._pictures.close()
            self._pictures = None

    def _brake(self, stuck: tuple[int, ...]) -> None:
        self._stuck = stuck
        self.model.dof_armature[: self.dof] = self._armature
        if stuck:
            self.model.dof_armature[list(stuck)] = _BRAKED
            self._qvel[:] = braked(self.robot.mass_matrix(self._q), self._qd, stuck)

    def _contact_wrench(self) -> Array:
        """Wrench (6,) at the tcp, base axes, of the contacts of the last link and what it carries, last step.

        MuJoCo gives the force that the first geom exerts on the second, in the contact's axes.
        """
        data, local = self.data, self._local
        px, py, pz = self._tcp_at.tolist()
        fx = fy = fz = mx = my = mz = 0.0
        for i in range(data.ncon):  # plain numbers: a few contacts, and numpy's small products cost more than these
            contact = data.contact[i]
            sign = self._on_tool[contact.geom2] - self._on_tool[contact.geom1]  # the force acts on the second geom
            if not sign:
                continue
            self._mj_contact_force(self.model, data, i, local)
            a, b, c, u, v, w = local.tolist()
            if sign < 0:
                a, b, c, u, v, w = -a, -b, -c, -u, -v, -w
            e = contact.frame.tolist()
            x, y, z = contact.pos.tolist()
            x, y, z = x - px, y - py, z - pz
            gx, gy, gz = a * e[0] + b * e[3] + c * e[6], a * e[1] + b * e[4] + c * e[7], a * e[2] + b * e[5] + c * e[8]
            fx, fy, fz = fx + gx, fy + gy, fz + gz
            mx += u * e[0] + v * e[3] + w * e[6] + y * gz - z * gy
            my += u * e[1] + v * e[4] + w * e[7] + z * gx - x * gz
            mz += u * e[2] + v * e[5] + w * e[8] + x * gy - y * gx
        return np.array((fx, fy, fz, mx, my, mz))


def _refuse_stiff_tip(pen: Pen, period: float) -> None:
    """Raise InvalidValue for a sliding tip that this period cannot simulate.

    Its spring is explicit: w h < 1 (2 is where it explodes). Its damping D is implicit, which MuJoCo's contact solver
    does not know of: measured, a tip pressed on a table with 5 N bounced for ever (2 N rms) from h D / m between 1.1
    and 1.5 at 1 ms (1.5 and 3 at 0.5 ms) and was still (1e-7 N) below, whatever the damping ratio; with rk4, where
    damping is explicit, it was still. Hence h D / m <= 1.
    """
    swing = math.sqrt((pen.stiffness or 0.0) / pen.tip_mass) * period
    drag = pen.tip_damping() * period / pen.tip_mass
    if swing > 1.0 or drag > 1.0:
        raise InvalidValue(
            f"the pen's tip is too light for a period of {period:g} s: sqrt(stiffness / tip_mass) * period is "
            f"{swing:.3g} and damping * period / tip_mass = {drag:.3g}, both at most 1; "
            f"take less stiffness or damping, or more tip_mass"
        )
