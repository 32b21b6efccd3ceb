"""The simulated arms of a study: what is believed, what is true, how it moves, who touches it, what sensors show."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from tangere.apps.study.plan import Plan
from tangere.control.computed_torque import ComputedTorque
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, NoSolution, TangereError
from tangere.identification import prior_drive
from tangere.identification.prior import peak_torque
from tangere.logs.files import plain
from tangere.loop.rollouts import rollouts
from tangere.model.link_shapes import LinkSurface, link_surfaces
from tangere.model.loading import names
from tangere.observe.detect import GAIN
from tangere.observe.drive_model import DriveModel
from tangere.observe.replay import replay_momentum
from tangere.planning.path_trajectory import UR10E_ARM, ramped_circle
from tangere.planning.samples import Sampled
from tangere.plants.pushes import Push, Pushes
from tangere.plants.sensors import SensorModel
from tangere.plants.twins import twin
from tangere.robots import Robot, robot
from tangere.types import Array

WorldName = Literal["exact", "wrong"]
WORLDS: tuple[WorldName, ...] = ("exact", "wrong")  # noise alone; noise and a wrong model
NOISE_SHARE = 0.0063  # Nm per Nm of peak torque and 100 Hz sample: the mean of a UR10e's joints, for other arms
MU = 0.5  # of the friction cone within which contacts press: what isolation assumes as well
SPACING = 0.007  # m between points that may be touched: finer than isolation's own 0.02, so that none coincides
REACH = 0.95 * math.pi  # rad: postures are drawn from +- this in every joint; the arm may be inside itself or a table
STRIDE = 1.2  # rad, largest change of a joint in one move
SPEED = (0.2, 1.05)  # rad/s, fastest joint of a move: from slow to UR's default speed
ACCELERATION = 1.4  # rad/s2, UR's default
CIRCLE = 0.25  # share of the motions that are circles of the tool; the others are moves from posture to posture
KP = 900.0  # 1/s2 of the closed loop (plant "rigid"): poles at -30 rad/s, a servo that a push hardly moves


@dataclass(frozen=True)
class Touch:
    """One drawn contact: a force on a point of a link, from `start` on for `duration`."""

    push: Push
    size: float  # N
    torque: Array  # (n,) Nm, tau_ext at its first period


@dataclass(frozen=True)
class Run:
    """Samples (N,), (N, n) as an observer gets them; tau and tau_ext: of the period that ended with each."""

    time: Array
    q: Array
    qd: Array
    tau: Array
    tau_ext: Array  # true


class World:
    """One arm: believed and true, with its noise. `simulate` makes runs of it, `residual` what the observer says."""

    def __init__(self, plan: Plan, name: WorldName) -> None:
        bare = robot(plan.robot, parameters=plan.parameters)
        if plan.arm not in ("", _digest(bare)):
            raise InvalidValue(f"the arm in {plan.robot} is not the one that this study began with")
        drive = prior_drive(bare)
        n = bare.dof
        # the law that a plant can integrate: Coulomb and viscous, turning round over a width that allows its steps
        smooth = JointFriction(drive.coulomb, drive.viscous)
        self.drive: DriveModel = dataclasses.replace(
            drive, quadratic=np.zeros(n), load=np.zeros(n), ripple=np.zeros((n, 0)), orders=(),
            width=np.full(n, smooth.width),
        )  # fmt: skip
        self.plan, self.name = plan, name
        self.robot = Robot(bare.model, drive.rotor_inertia)  # believed
        wrong = name == "wrong"
        self.true = twin(self.robot, mass=plan.mass) if wrong else self.robot
        self.friction = smooth.scaled(plan.friction if wrong else 1.0)
        self.period = 1.0 / plan.frequency
        sensors = SensorModel.preset("ur10e", self.period)
        self.noise_qd = plan.noise * float(np.asarray(sensors.noise_qd))
        tau = np.asarray(sensors.noise_tau, dtype=np.float64)
        if bare.name != "ur10e" or tau.shape != (n,):
            tau = NOISE_SHARE * peak_torque(bare.model) * math.sqrt(0.01 / self.period)
        self.noise_tau: Array = plan.noise * tau
        self._skin: list[LinkSurface] | None = None

    @property
    def skin(self) -> list[LinkSurface]:
        """Where the arm can be touched; made when first asked for."""
        if self._skin is None:
            self._skin = [surface for surface in link_surfaces(self.robot.model, SPACING) if len(surface)]
        return self._skin

    def residual(self, run: Run) -> Array:
        """Of the momentum observer that believes `robot` and `drive`, (N, n) [Nm]; it starts with its first y."""
        return replay_momentum(self.robot, run.time, run.q, run.qd, run.tau, GAIN, self.drive, start="first")

    def touch(self, rng: np.random.Generator, q: Array, size: float, start: float, duration: float) -> Touch:
        """A push at posture q: any link, any m2 of it, any direction within the friction cone."""
        surface = self.skin[int(rng.integers(len(self.skin)))]
        i = int(rng.choice(len(surface), p=surface.area / surface.area.sum()))
        c, turn = rng.uniform(math.cos(math.atan(MU)), 1.0), rng.uniform(0.0, 2.0 * math.pi)
        along = math.cos(turn) * surface.t1[i] + math.sin(turn) * surface.t2[i]
        R = self.robot.link_poses(q)[surface.link - 1][:3, :3]
        force = size * R @ (math.sqrt(1.0 - c * c) * along - c * surface.normal[i])
        point = surface.point[i]
        torque = force @ self.robot.jacobian(q, link=surface.link, point=point)[:3]
        x, f = (tuple(float(v) for v in vector) for vector in (point, force))
        push = Push(link=surface.link, point=x, force=f, start=start, duration=duration)  # type: ignore[arg-type]
        return Touch(push, size, torque)

    def simulate(self, rng: np.random.Generator, path: Array, pushes: tuple[Push, ...] = ()) -> Run:
        """Run along path (2 N + 1, 3, n): q, qd, qdd every half period. Noise is drawn from rng.

        servo: the arm follows exactly and the torque is what that takes; an observer of momentum, which asks what
        torque there was and not why, sees the same as with any controller. rigid: a rollout under a computed torque
        that believes `robot`; a push moves it.
        """
        if self.plan.plant == "rigid":
            q, qd, tau, tau_ext = self._closed_loop(path, pushes, int(rng.integers(2**31)))
        else:
            q, qd, tau, tau_ext = self._servo(path, pushes)
            qd = qd + self.noise_qd * rng.standard_normal(qd.shape)
            tau = tau + self.noise_tau * rng.standard_normal(tau.shape)
        return Run(np.asarray(self.period * np.arange(len(q)), dtype=np.float64), q, qd, tau, tau_ext)

    def _servo(self, path: Array, pushes: tuple[Push, ...]) -> tuple[Array, Array, Array, Array]:
        """tau of a period = (p' - p) / h - mean of (C^T qd - g - friction) - mean tau_ext; means by Simpson's rule."""
        h = self.period
        q, qd = path[:, 0], path[:, 1]
        p, beta, g = self.true.momentum_terms(q, qd)
        beta = beta - g - self.friction.torque(qd)
        mean = (beta[:-2:2] + 4.0 * beta[1:-1:2] + beta[2::2]) / 6.0
        acting = Pushes(self.true, pushes)
        tau_ext = np.zeros((len(path) // 2 + 1, self.true.dof))
        for k in range(1, len(tau_ext)):
            if acting.schedule((k - 0.5) * h):
                a, b, c = (acting.torque(q[i]) for i in (2 * k - 2, 2 * k - 1, 2 * k))
                tau_ext[k] = (a + 4.0 * b + c) / 6.0
        tau = np.diff(p[::2], axis=0) / h - mean - tau_ext[1:]
        return q[::2], qd[::2], np.concatenate((tau[:1], tau)), tau_ext

    def _closed_loop(
        self, path: Array, pushes: tuple[Push, ...], seed: int
    ) -> tuple[Array, Array, Array, Array]:
        h, q, qd, qdd = self.period, path[::2, 0], path[::2, 1], path[::2, 2]
        goal = Sampled(self.robot, q, qd, qdd, h, (len(q) - 1) * h)
        with warnings.catch_warnings():  # an arm without a fused kernel has the Python loop: nothing to be told of
            warnings.filterwarnings("ignore", "rollouts: ", RuntimeWarning)
            log = rollouts(
                self.true, controller=ComputedTorque(self.robot, goal, kp=KP, friction=self.drive), period=h,
                sensors=SensorModel(noise_qd=self.noise_qd, noise_tau=self.noise_tau), friction=self.friction,
                pushes=pushes, count=1, seconds=len(q) * h, seed=seed, record=1,
            ).log  # fmt: skip
        tau = log["tau"][0].copy()
        tau[0] = tau[1]
        return log["q"][0], log["qd"][0], tau, log["tau_ext_true"][0]


@lru_cache(maxsize=4)  # two worlds of a plan, and of the one before
def world_of(plan: Plan, name: WorldName) -> World:
    """The world, made once in each process."""
    return World(plan, name)


def random_path(world: World, rng: np.random.Generator, seconds: float) -> Array:
    """A motion of that length, q, qd, qdd (2 N + 1, 3, n) every half period, that may begin and end in full speed."""
    count = round(seconds / world.period)
    if rng.random() < CIRCLE:
        circle = _circle(world, rng, count)
        if circle is not None:
            return circle
    return _moves(world, rng, count)


def _circle(world: World, rng: np.random.Generator, count: int) -> Array | None:
    """The tool on a level circle before the arm, scaled to its size; None where this arm cannot."""
    lengths = [float(np.linalg.norm(joint.T_joint_link[:3, 3])) for joint in world.robot.model.joints]
    scale = sum(sorted(lengths)[-2:]) / UR10E_ARM
    turn, half = rng.uniform(0.0, 2.0 * math.pi), 0.5 * world.period
    out, up = rng.uniform(0.55, 0.8), rng.uniform(0.15, 0.5)
    centre = scale * np.array([out * math.cos(turn), out * math.sin(turn), up])
    radius, speed = scale * rng.uniform(0.06, 0.15), rng.uniform(0.4, 1.4)
    late = 1.0 + rng.uniform(0.0, 1.0)  # s: the start from rest is left out
    skip = round(late / half)
    try:
        path = ramped_circle(
            world.robot, centre=centre, radius=radius, rate=speed, duration=late + count * world.period + 1.0,
            stop=False, period=half, branch="best",
        )  # fmt: skip
    except TangereError:
        return None
    whole = np.stack((path.q, path.qd, path.qdd), axis=1)[skip : skip + 2 * count + 1]
    return whole if len(whole) == 2 * count + 1 else None


def _moves(world: World, rng: np.random.Generator, count: int) -> Array:
    """From posture to posture, rest to rest by the polynomial of degree five, each at a speed of its own."""
    n, half = world.robot.dof, 0.5 * world.period
    low = np.maximum(np.where(world.robot.revolute, -REACH, -1.0), world.robot.q_min)
    high = np.minimum(np.where(world.robot.revolute, REACH, 1.0), world.robot.q_max)
    q = rng.uniform(low, high)
    parts: list[Array] = []
    length, need = 0, 2 * count + 1
    skip = -1
    while length < need:
        goal = np.clip(q + rng.uniform(-STRIDE, STRIDE, n), low, high)
        far = float(np.abs(goal - q).max())
        speed = rng.uniform(*SPEED)
        # the polynomial peaks at 1.875 times the mean speed and 5.77 times far / T^2
        duration = max(1.875 * far / speed, math.sqrt(5.774 * far / ACCELERATION))
        steps = max(8, math.ceil(duration / half))
        u = np.arange(steps)[:, None] / steps
        T = steps * half
        s = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
        sd = 30.0 * u**2 * (1.0 - u) ** 2 / T
        sdd = 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / T**2
        way = goal - q
        part = np.stack((q + s * way, sd * way, sdd * way), axis=1)
        if skip < 0:  # the first move is joined anywhere in its course
            skip = int(rng.integers(steps))
            part = part[skip:]
        parts.append(part)
        length += len(part)
        q = goal
    return np.concatenate(parts)[:need]


def with_arm(plan: Plan) -> Plan:
    """The plan with the digest of its arm, where that is from a file: whoever finds another arm there refuses it."""
    if plan.arm or (plan.robot in names() and plan.parameters is None):
        return plan
    return dataclasses.replace(plan, arm=_digest(robot(plan.robot, parameters=plan.parameters)))


def _digest(arm: Robot) -> str:
    numbers = dataclasses.asdict(arm.model) | {"sources": ()}
    return hashlib.sha256(json.dumps(plain(numbers), sort_keys=True).encode()).hexdigest()[:16]


def checked_world(plan: Plan) -> World:
    """The wrong world, so that what cannot be simulated is said before a pool of processes is started."""
    world = world_of(plan, "wrong")
    if not 1 <= plan.step[0] <= world.robot.dof:
        raise InvalidValue(f"step: joint from 1 to {world.robot.dof}, got {plan.step[0]!r}")
    if not world.skin:
        raise NoSolution(f"{world.robot.name} has no surface that could be touched")
    return world
