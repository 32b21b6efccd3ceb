"""Simulated arms that stick and are handled: guided by hand, clamped, pushed while they stand, stopped abruptly.

Many arms at once, each with friction of its own, of one type. Gears have bristles (LuGre): a joint that stands is held
anywhere within its static friction, and gives way a little before it breaks away. What is logged is what an arm has of
itself: positions, velocities and currents times gain, with a UR's noise, and no targets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

import tangere
from tangere.identification import IdentifiedModel, prior_drive
from tangere.identification.model import Excitation
from tangere.logs.log import Log
from tangere.plants.sensors import SensorModel
from tangere.robots import Robot
from tangere.types import Array

STEP = 1e-3  # [s] of the integration
EVERY = 4  # steps from one row of the log to the next: 250 Hz
NOISE_QD = 1e-3  # [rad/s]
NOISE_TAU = np.array([0.4, 0.4, 0.3, 0.08, 0.08, 0.08])  # [Nm]
HOME = np.array([0.3, -1.4, 1.5, -1.2, -1.3, 0.2])
SERVO = 80.0  # [1/s] of the position servo
YIELD = np.array([60.0, 60.0, 60.0, 12.0, 12.0, 12.0])  # [Nm s/rad] of an arm that gives way to what it feels


@dataclass
class Hand:
    """A spring and a damper between a point of a link and an anchor that goes its way while it holds on."""

    link: int
    start: float  # [s]
    end: float
    way: Array  # (B, 3) [m] that the anchor goes from start to end, smoothly
    stiffness: float = 800.0  # [N/m]
    damping: float = 40.0  # [N s/m]
    point: Array | None = None  # (B, 3) where it took hold
    at: Array | None = None  # (3,) [m] of the link, None: its origin

    def force(self, time: float, x: Array, v: Array) -> Array:
        """On the link (B, 3) [N]."""
        if not self.start <= time < self.end:
            self.point = None
            return np.zeros_like(x)
        if self.point is None:
            self.point = x.copy()
        u = (time - self.start) / (self.end - self.start)
        share, rate = u * u * (3.0 - 2.0 * u), 6.0 * u * (1.0 - u) / (self.end - self.start)
        return self.stiffness * (self.point + share * self.way - x) + self.damping * (rate * self.way - v)


@dataclass
class Wall:
    """Something stiff in the way of a point of a link from `start` on: a plane across the motion of that moment."""

    link: int
    start: float
    end: float
    stiffness: float = 3e4  # [N/m]
    damping: float = 100.0  # [N s/m]
    point: Array | None = None
    normal: Array = field(default_factory=lambda: np.zeros(0))
    at: Array | None = None

    def force(self, time: float, x: Array, v: Array) -> Array:
        """On the link (B, 3) [N]."""
        if not self.start <= time < self.end:
            self.point = None
            return np.zeros_like(x)
        if self.point is None:
            self.point, self.normal = x.copy(), v / np.maximum(np.linalg.norm(v, axis=1), 1e-9)[:, None]
        deep = np.sum((x - self.point) * self.normal, axis=1)
        press = np.maximum(self.stiffness * deep + self.damping * np.sum(v * self.normal, axis=1), 0.0) * (deep > 0.0)
        return -press[:, None] * self.normal


@dataclass
class Push:
    """A force (B, 3) [N] on a link's origin that rises over 0.1 s."""

    link: int
    start: float
    end: float
    size: Array
    at: Array | None = None

    def force(self, time: float, x: Array, v: Array) -> Array:
        """On the link (B, 3) [N]."""
        share = min(max((time - self.start) / 0.1, 0.0), 1.0) * (time < self.end)
        return share * self.size


@dataclass
class Impact:
    """A knock of half a sine on a point of a link: `impulse` (B, 3) [N s] from start to end."""

    link: int
    start: float
    end: float
    impulse: Array
    at: Array | None = None

    def force(self, time: float, x: Array, v: Array) -> Array:
        """On the link (B, 3) [N]."""
        u = min(max((time - self.start) / (self.end - self.start), 0.0), 1.0)
        return 0.5 * np.pi / (self.end - self.start) * np.sin(np.pi * u) * self.impulse


@dataclass(frozen=True)
class Handled:
    """What happened: logs of all arms, and what nobody tells the detector."""

    logs: list[Log]
    time: Array  # (N,)
    qd: Array  # (N, B, n) without noise
    tau_ext: Array  # (N, B, n) [Nm]


class Arms:
    """B arms of a type; friction and its bristles drawn from `seed`."""

    def __init__(self, count: int, seed: int, name: str = "ur5e", every: int = EVERY) -> None:
        """every: steps from one row of the logs to the next; UR10e: with the noise of its own sensors at that rate."""
        self.base, self.every = tangere.robot(name), every
        self.noise_qd, self.noise_tau = NOISE_QD, NOISE_TAU
        if name == "ur10e":
            sensors = SensorModel.preset(name, every * STEP)
            self.noise_qd, self.noise_tau = float(np.asarray(sensors.noise_qd)), np.asarray(sensors.noise_tau)
        drive, rng = prior_drive(self.base), np.random.default_rng(seed)
        self.rng, self.count, self.n = rng, count, self.base.dof
        self.robot = Robot(self.base.model, drive.rotor_inertia)
        shape = (count, self.n)
        self.coulomb = drive.coulomb * rng.uniform(0.7, 1.4, shape)
        self.static = self.coulomb * rng.uniform(1.05, 1.4, shape)
        self.viscous = drive.viscous * rng.uniform(0.7, 1.5, shape)
        self.bristle = self.coulomb / rng.uniform(3e-4, 1e-3, shape)  # [Nm/rad]
        inertia = np.diagonal(self.robot.mass_matrix(np.tile(HOME, (count, 1))), axis1=1, axis2=2)
        self.damping = 0.6 * np.sqrt(self.bristle * inertia)
        self.inertia = inertia
        self.heavy = 1.0 + 0.02 * rng.standard_normal(shape)  # what gains are off: the arm is not quite its data sheet
        self.low, self.high = HOME - 0.6, HOME + 0.6

    def waypoints(self, seconds: float, brisk: float, rest: float = 0.3, speed: float = 0.8) -> Array:
        """References (N, 3, B, n) of q, qd, qdd: from posture to posture, `brisk` [rad/s2], standing between."""
        N = round(seconds / STEP)
        out = np.zeros((N, 3, self.count, self.n))
        for b in range(self.count):
            q, k = HOME + self.rng.uniform(-0.3, 0.3, self.n), 0
            while k < N:
                goal = self.rng.uniform(self.low, self.high)
                far, fast = np.abs(goal - q).max(), speed * self.rng.uniform(0.4, 1.0)
                fast = min(fast, np.sqrt(far * brisk))
                ramp, total = fast / brisk, far / fast + fast / brisk
                t = np.arange(round((total + rest * self.rng.uniform(0.7, 1.5)) / STEP)) * STEP
                v = fast / far * np.clip(np.minimum(t, total - t) / ramp, 0.0, 1.0)
                a = fast / far / ramp * ((t < ramp) * 1.0 - ((t > total - ramp) & (t < total)))
                s = np.cumsum(v) * STEP
                part = slice(k, min(k + len(t), N))
                m = part.stop - part.start
                out[part, 0, b] = q + s[:m, None] * (goal - q)
                out[part, 1, b], out[part, 2, b] = v[:m, None] * (goal - q), a[:m, None] * (goal - q)
                q, k = q + s[-1] * (goal - q), part.stop
        return out

    def stand(self, seconds: float) -> Array:
        """References of arms that stand, each in its own posture."""
        out = np.zeros((round(seconds / STEP), 3, self.count, self.n))
        out[:, 0] = HOME + self.rng.uniform(-0.4, 0.4, (self.count, self.n))
        return out

    def model(self, b: int) -> IdentifiedModel:
        """What somebody who identified arm b knows of it: masses to 2 %, friction to 3 and 5 %."""
        n, rng, drive = self.n, self.rng, prior_drive(self.base)
        drive = dataclasses.replace(
            drive, coulomb=self.coulomb[b] * (1.0 + 0.03 * rng.standard_normal(n)),
            viscous=self.viscous[b] * (1.0 + 0.05 * rng.standard_normal(n)), stiction=1.1 * self.static[b],
            spread=0.05 * self.coulomb[b], quadratic=np.zeros(n), load=np.zeros(n), ripple=np.zeros((n, 0)), orders=(),
            film=np.zeros(n), level_sigma=0.02 * self.coulomb[b], level_noise=0.02 * self.coulomb[b] ** 2,
        )  # fmt: skip
        links = [
            dataclasses.replace(x, mass=x.mass * (1.0 + 0.02 * rng.standard_normal())) for x in self.base.model.links
        ]
        return IdentifiedModel(
            self.base.name, "links", drive, tuple(links), None, (), np.zeros(0), np.zeros((0, 0)), (),
            Excitation(1.0, 0, 36), (), (True,) * n, before=np.ones(n), after=np.ones(n), scale=np.ones(n),
        )  # fmt: skip

    def run(self, wanted: Array, hands: Sequence[Hand | Wall | Push | Impact] = (), how: str = "servo") -> Handled:
        """How: servo (stiff), floating (carries gravity and part of friction), yielding (a servo that gives way)."""
        N, B, n = len(wanted), self.count, self.n
        q, qd = wanted[0, 0].copy(), np.zeros((B, n))
        z = self.rng.uniform(-0.6, 0.6, (B, n)) * self.static / self.bristle
        shift = np.zeros((B, n))
        every = self.every
        rows = np.zeros((N // every, 4, B, n))
        robot = self.robot
        mean = np.zeros((B, n))
        for k in range(N):
            time = k * STEP
            ext = np.zeros((B, n))
            for hand in hands:
                if hand.start - STEP <= time < hand.end + STEP:
                    at = np.zeros(3) if hand.at is None else hand.at
                    J = robot.jacobian(q, link=hand.link, point=at)[:, :3]
                    T = robot.link_poses(q)[:, hand.link - 1]
                    x = T[:, :3, :3] @ at + T[:, :3, 3]
                    ext += np.einsum("bij,bi->bj", J, hand.force(time, x, np.einsum("bij,bj->bi", J, qd)))
            g = robot.gravity_torque(q)
            if how == "floating":
                tau = g + 0.6 * self.coulomb * np.tanh(qd / 0.05)
            else:
                v = ext / YIELD if how == "yielding" else np.zeros((B, n))
                shift += STEP * v
                want, speed = wanted[k, 0] + shift, wanted[k, 1] + v
                tau = robot.inverse_dynamics(q, speed, wanted[k, 2]) + 0.8 * self.coulomb * np.tanh(speed / 0.02)
                tau += self.inertia * (SERVO**2 * (want - q) + 2.0 * SERVO * (speed - qd))
                tau = np.clip(tau, -robot.tau_max, robot.tau_max)
            slip = self.coulomb + (self.static - self.coulomb) * np.exp(-((qd / 0.01) ** 2))
            new = (z + STEP * qd) / (1.0 + STEP * self.bristle * np.abs(qd) / slip)
            friction = self.bristle * new + self.damping * (new - z) / STEP + self.viscous * qd
            z = new
            qd = qd + STEP * robot.forward_dynamics(q, qd, tau + ext - friction)
            q = q + STEP * qd
            mean += tau / every
            if k % every == every - 1:
                rows[k // every] = q, qd, mean * self.heavy, ext
                mean = np.zeros((B, n))
        stamps = np.arange(len(rows)) * every * STEP
        logs = []
        for b in range(B):
            seen = rows[:, 1, b] + self.noise_qd * self.rng.standard_normal((len(rows), n))
            tau = rows[:, 2, b] + self.noise_tau * self.rng.standard_normal((len(rows), n))
            current = tau / self.base.drives.gain
            logs.append(Log({"time": stamps, "q": rows[:, 0, b], "qd": seen, "actual_current": current}))
        return Handled(logs, stamps, rows[:, 1], rows[:, 3])
