"""The scenario `touch`: a straight motion of the tool into a wall or a hand, or under something that falls.

What the touch does - peak force, impulse, energy, what keeps pressing - is measured, with and without a reaction.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.apps.scenarios.common import Encounter, Findings, Motion, RunSettings, Scenario, World
from tangere.control.computed_torque import ComputedTorque
from tangere.control.reactions import FloatOnContact, PathClock, Retreat, StopOnContact, StopOnPath
from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.kinematics.rotation import pose
from tangere.logs.log import Log
from tangere.loop.summary import SETTLED
from tangere.model.frames import G0
from tangere.model.link_shapes import link_shapes
from tangere.planning.path_trajectory import TOOL_DOWN, UR10E_ARM, PathTrajectory, facing
from tangere.planning.paths import Line
from tangere.planning.posture import at_rest, posture
from tangere.planning.timing import SmoothRate
from tangere.planning.tool_motions import best_line
from tangere.plants.scene.bodies import Body, ball, pad
from tangere.plants.scene.scene import Pen, Scene
from tangere.robots import Robot
from tangere.settings import altered, setting, word
from tangere.types import Array, Controller, Friction, Trajectory

if TYPE_CHECKING:
    from tangere.apps.scenarios.build import Built
    from tangere.loop.result import RunResult

OBSTACLES = ("wall", "hand", "falling", "nothing")
REACTIONS = ("none", "stop", "soft", "retreat", "float")
# places below are for a UR10e; for other arms they are scaled with the arm's length
WALL = (0.0, -0.5, 0.5)  # m: where the tool meets the wall, elbow bent (see wall_circle), and farther by
BEFORE = 0.2  # m and the tool's length, which do not scale: room for wrist and run-up beside a small arm's base
TABLE = (0.7, 0.1, 0.1)  # m: a place on the table that every joint can push at
ABOVE = (0.7, 0.1, 0.3)  # m: where the tool is when something falls on the forearm
RAMP = 0.4  # s to full speed: 15/8 * 0.5 / 0.4 = 2.3 m/s2 at 0.5 m/s, gentle
STEADY = 0.2  # s at full speed before the obstacle: ten time constants of the observer, its residual is quiet
MEETS = RAMP + STEADY  # s: when the tool is there
SHORT = 0.05  # m, the same for an arm that is no UR and may be small
BEYOND = 0.1  # m that the path goes on behind the obstacle: what a wrong program would do
HAND = 0.03  # m, thickness of a hand flat on a table
FINGER = 0.02  # m, radius of the finger's round end
CONTACT = 1.0  # N from which something touches: far above rounding, far below what hurts
APART = 0.05  # s without a touch after which the next one is another: a bounce is none
LATER = 1.0  # s after the first touch at which the force that remains is taken
WINDOW = 0.05  # s either side of it, averaged: a bounce must not decide
LATE = 0.05  # s after the touch: pressing from then on, no longer impact

REMARK = (
    "Against something hard the force is at its peak within some 10 ms of the touch. It is felt before that, but no "
    "drive takes the speed out of an arm in so little time: no reaction lowers this first peak by more than a few per "
    "cent, only a lower speed or a lighter arm does. What a reaction changes is what comes after it: how hard and "
    "how long the arm goes on pressing. Where the touched thing gives way (a hand), the peak comes later, and a fast "
    "reaction lowers it too. The arm's gears and links are rigid here; real ones give way and lower the first peak."
)


@dataclass(frozen=True)
class TouchSettings(RunSettings):
    """What is in the way, how fast the tool meets it, and what the arm does then."""

    duration: float | None = altered(RunSettings, "duration", 3.0)
    obstacle: str = word("wall", "what is in the way", OBSTACLES)
    reaction: str = word("retreat", "what the arm does when it feels a touch", REACTIONS)
    speed: float = setting(0.25, "m/s", "of the tool when it meets the obstacle", low=0.0, above=True)
    distance: float = setting(0.08, "m", "how far `retreat` backs off", low=0.0, above=True)
    retreat_speed: float = setting(0.25, "m/s", "how fast `retreat` backs off", low=0.0, above=True)
    wall_stiffness: float = setting(1e6, "N/m", "of the wall where the tool meets it", low=0.0, above=True)
    hand_stiffness: float = setting(
        75e3, "N/m", "of the hand (ISO/TS 15066:2016, table A.3)", low=0.0, above=True
    )  # fmt: skip
    drop_mass: float = setting(1.0, "kg", "of what falls on link 3", low=0.0, above=True)
    drop_height: float = setting(0.5, "m", "from which it falls", low=0.0, above=True)
    tool_mass: float = setting(0.5, "kg", "of the round finger at the flange")


def motion(world: World) -> Motion:
    """Straight into the obstacle, with the reaction asked for."""
    robot, s = world.believed, world.settings
    if not ur.is_ur(robot.model) or robot.model.dh is None:
        return _elsewhere(world)
    scale = float(np.abs(robot.model.dh.a[[1, 2]]).sum()) / UR10E_ARM
    trajectory = _approach(robot, s, scale)
    pen = Pen(length=float(robot.model.T_flange_tcp[2, 3]), radius=FINGER)
    followed, controller, reaction = with_reaction(robot, trajectory, s, world.believed_friction)
    return Motion(
        followed,
        controller,
        RAMP,
        {"controller": "computed torque", "reaction": s.reaction},
        scene=_scene(robot, s, trajectory, pen, scale),
        record_contacts=True,
        reaction=reaction,
    )


def _elsewhere(world: World) -> Motion:
    """Of an arm that is no UR: from where it rests straight along the way that its tool can go best, into a wall."""
    robot, s = world.believed, world.settings
    if s.obstacle not in ("wall", "nothing"):
        raise InvalidValue(f"obstacle: {s.obstacle} is placed for UR arms; wall or nothing for {robot.name}")
    rest = posture(at_rest(robot), robot)
    before, beyond = s.speed * (STEADY + 0.5 * RAMP), max(SHORT, s.speed * RAMP)
    law = SmoothRate.over(before + beyond, s.speed, RAMP)
    trajectory, way = best_line(robot, rest, before + beyond, law)
    middle = tuple(float(x) for x in robot.pose(rest)[:3, 3] + before * way)
    pen = Pen(length=float(robot.model.T_flange_tcp[2, 3]), radius=FINGER)
    normal = tuple(float(-x) for x in way)
    wall = pad("wall", middle, normal, s.wall_stiffness, size=(1.2, 1.2, 0.05))  # type: ignore[arg-type]
    followed, controller, reaction = with_reaction(robot, trajectory, s, world.believed_friction)
    blocks = {"controller": "computed torque", "reaction": s.reaction}
    scene = Scene(tool=pen, bodies=(wall,) if s.obstacle == "wall" else ())
    return Motion(followed, controller, RAMP, blocks, scene=scene, record_contacts=True, reaction=reaction)


def with_reaction(
    robot: Robot, trajectory: Trajectory, s: TouchSettings, friction: Friction | None
) -> tuple[Trajectory, Controller, Any]:
    """What is followed, computed torque wrapped into the reaction of that name, and the reaction (None: none)."""
    if s.reaction == "stop":
        clock = PathClock(trajectory)
        stop = StopOnPath(ComputedTorque(robot, clock, kp=s.kp, kv=s.kv, friction=friction), clock, robot)
        return clock, stop, stop
    task = ComputedTorque(robot, trajectory, kp=s.kp, kv=s.kv, friction=friction)
    if s.reaction == "none":
        return trajectory, task, None
    reaction: StopOnContact | Retreat | FloatOnContact
    if s.reaction == "soft":
        reaction = StopOnContact(task, robot, friction=friction)
    elif s.reaction == "retreat":
        reaction = Retreat(task, robot, distance=s.distance, speed=s.retreat_speed, friction=friction)
    else:
        reaction = FloatOnContact(task, robot, friction=friction)
    return trajectory, reaction, reaction


def _approach(robot: Robot, s: TouchSettings, scale: float) -> PathTrajectory:
    """Straight towards the obstacle, at full speed there, and on."""
    middle, way, orientation = _place(s.obstacle, scale, float(robot.model.T_flange_tcp[2, 3]))
    speed = s.speed
    before, beyond = speed * (STEADY + 0.5 * RAMP), max(BEYOND * scale, speed * RAMP)
    path = Line(middle - before * way, middle + beyond * way, orientation)
    law = SmoothRate.over(path.length, speed, RAMP)
    found: Any = robot.inverse_kinematics(pose(orientation, path.start))
    # elbow up where there is a choice, and always the same of the rest: the mass that a tool has depends on it
    up = [q for q, elbow in zip(found.q, found.elbow, strict=True) if elbow == "up"] or list(found.q)
    return PathTrajectory(robot, path, law, q_start=up[0] if up else None, period=s.period)


def _place(obstacle: str, scale: float, tool: float) -> tuple[Array, Array, Array]:
    """Where the tool meets it (3,), its direction then (3,) and its orientation (3, 3)."""
    if obstacle in ("wall", "nothing"):
        place = scale * np.array(WALL) - (0.0, BEFORE + tool, 0.0)
        return place, np.array((0.0, -1.0, 0.0)), facing((0.0, 1.0, 0.0))
    if obstacle == "hand":
        return scale * np.array(TABLE) + (0.0, 0.0, HAND), np.array((0.0, 0.0, -1.0)), TOOL_DOWN
    return scale * np.array(ABOVE), np.array((0.0, 1.0, 0.0)), TOOL_DOWN


def _scene(robot: Robot, s: TouchSettings, trajectory: Trajectory, pen: Pen, scale: float) -> Scene:
    middle = tuple(float(x) for x in _place(s.obstacle, scale, pen.length)[0])
    if s.obstacle == "nothing":
        return Scene(tool=pen)
    if s.obstacle == "wall":
        wall = pad("wall", middle, (0.0, 1.0, 0.0), s.wall_stiffness, size=(1.2, 1.2, 0.05))  # type: ignore[arg-type]
        return Scene(tool=pen, bodies=(wall,))
    if s.obstacle == "hand":
        # wider than a hand: without a reaction the finger is dragged sideways, and must not slip off. The table is the
        # other end of the hand's spring, so the finger does not meet it
        edge = (0.3, 0.3, HAND)
        hand = pad("hand", middle, (0.0, 0.0, 1.0), s.hand_stiffness, size=edge)  # type: ignore[arg-type]
        return Scene(tool=pen, bodies=(hand,))
    return Scene(tool=pen, links_collide=True, bodies=(_ball(robot, s, trajectory.at(MEETS).q),))


def _ball(robot: Robot, s: TouchSettings, q: Array) -> Body:
    """A ball that reaches the middle of link 3 at the time MEETS if the arm is at q then."""
    shapes = link_shapes(robot.model)[2]
    shape = next((shape for shape in shapes if shape.colour == "tube"), shapes[0])
    T = robot.link_poses(q)[2] @ np.linalg.inv(robot.model.joints[2].T_joint_link)
    start, end = (T[:3, :3] @ point + T[:3, 3] for point in (shape.start, shape.end))
    along = (end - start) / np.linalg.norm(end - start)
    fall = math.sqrt(2.0 * s.drop_height / G0)
    if fall > MEETS:
        raise InvalidValue(f"drop_height: at most {0.5 * G0 * MEETS**2:.3g} m, got {s.drop_height:g} m")
    radius = 0.05
    # centre above the tube's axis: both radii across it, longer along the vertical where the tube slants
    lift = (shape.radius + radius) / max(math.hypot(along[0], along[1]), 0.3) + s.drop_height
    position = 0.5 * (start + end) + (0.0, 0.0, lift)
    return ball("ball", tuple(float(x) for x in position), s.drop_mass, radius, MEETS - fall)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Impact:
    """One encounter in numbers. Forces are sizes of the sum of all contacts on the arm."""

    obstacle: str
    reaction: str
    speed_m_s: float  # of the tcp just before the touch
    effective_mass_kg: float | None  # felt at the tcp along its motion, 1 / (u^T J M^-1 J^T u); None: touched elsewhere
    contact_s: float | None  # time of the first touch; None: there was none
    felt_ms: float | None  # from the first touch to the detector's event
    peak_n: float
    peak_after_ms: float | None  # from the first touch
    late_peak_n: float  # the largest force from 50 ms after the touch on: pressing, no longer impact
    impulse_ns: float  # integral of the force's size
    energy_j: float  # most energy that the arm had given to what it touched, max(-int tau_ext qd dt)
    received_j: float  # most energy that it had been given (by what fell on it), max(int tau_ext qd dt)
    contact_ms: float  # time in contact, all of it
    remaining_n: float | None  # mean force from 0.95 to 1.05 s after the first touch
    torque_share: float  # largest |tau| / tau_max
    end_speed_rad_s: float  # fastest joint at the end of the run
    backed_mm: float | None  # tcp at the end, back from where it was at the touch, against its motion then


def measured(built: Built, result: RunResult) -> Impact:
    """The numbers of a run of the scenario `touch`."""
    log, s = result.log, built.settings
    arm = built.world.true
    force = contact_force(built, len(log))
    touched = np.nonzero(force > CONTACT)[0]
    first = int(touched[0]) if len(touched) else None
    start = first if first is not None else int(np.searchsorted(log.time, built.motion.settle))
    before = log[start - 1 : start] if start else log[-1:]
    q, qd = before["q_true"][0], before["qd_true"][0]
    J = arm.jacobian(q)[:3]
    v = J @ qd
    speed = float(np.linalg.norm(v))
    limits = np.where(np.isfinite(arm.tau_max), arm.tau_max, np.inf)
    common = {
        "obstacle": s.obstacle,
        "reaction": s.reaction,
        "speed_m_s": speed,
        "torque_share": max(float(np.max(np.abs(part["tau_cmd"]) / limits)) for part in log.pieces()),
        "end_speed_rad_s": float(np.max(np.abs(log[-1:]["qd_true"]))),
    }
    if first is None:
        return Impact(
            **common, effective_mass_kg=None, contact_s=None, felt_ms=None, peak_n=0.0, peak_after_ms=None,
            late_peak_n=0.0, impulse_ns=0.0, energy_j=0.0, received_j=0.0, contact_ms=0.0, remaining_n=None,
            backed_mm=None,
        )  # fmt: skip
    onset = float(log.time[first]) - result.period  # a row holds the force of the period before it
    time, energy = log.time - onset, given(log)
    felt = [e.time_s - onset for e in result.events if e.alarm and e.time_s >= onset]
    window = np.abs(time - LATER) <= WINDOW
    end = (log[-1:].position("T_true") - log[first : first + 1].position("T_true"))[0]
    mass = None
    if s.obstacle != "falling":
        mass = float(1.0 / (v @ J @ np.linalg.solve(arm.mass_matrix(q), J.T @ v)) * speed**2)
    return Impact(
        **common,
        effective_mass_kg=mass,
        contact_s=onset,
        felt_ms=1e3 * felt[0] if felt else None,
        peak_n=float(force.max()),
        peak_after_ms=1e3 * float(time[int(force.argmax())]),
        late_peak_n=float(force[time >= LATE].max(initial=0.0)),
        impulse_ns=float(force.sum() * result.period),
        energy_j=float(np.max(energy, initial=0.0)) + 0.0,  # + 0.0: no minus before a zero
        received_j=float(np.max(-energy, initial=0.0)) + 0.0,
        contact_ms=1e3 * result.period * len(touched),
        remaining_n=float(force[window].mean()) if window.any() and time[-1] >= LATER + 0.5 * WINDOW else None,
        backed_mm=-1e3 * float(end @ v) / max(speed, 1e-9),
    )


def contact_force(built: Built, rows: int) -> Array:
    """The force (N,) [N] of what the arm touches."""
    force: Array = np.linalg.norm(built.plant.contact_forces, axis=1)[:rows]  # type: ignore[attr-defined]
    return force


def encounters(built: Built, result: RunResult) -> tuple[Encounter, ...]:
    """From each touch to the end of the run: from the first on nothing is free motion."""
    at = result.log.time[contact_force(built, len(result.log)) > CONTACT] - result.period  # the force before a row
    return tuple(Encounter(one, result.duration - one) for one in at[np.diff(at, prepend=-np.inf) > APART].tolist())


def settled(impact: Impact, gain: ArrayLike) -> bool:
    """Whether the touch lasted long enough for a residual of this gain [1/s] to settle."""
    return impact.contact_ms >= 1e3 * SETTLED / float(np.min(gain))


def given(log: Log) -> Array:
    """Energy (N,) [J] that the arm has given to what touches it so far, -int tau_ext qd dt.

    Row k holds the torque of the period before it: work of a period is its torque times the mean speed.
    """
    energy, last = [np.zeros(1)], log[:1]
    for part in log.pieces():
        qd, tau = (np.concatenate([last[name], part[name]]) for name in ("qd_true", "tau_ext_true"))
        time = np.concatenate([last.time, part.time])
        power = np.sum(tau[1:] * 0.5 * (qd[1:] + qd[:-1]), axis=1)
        energy.append((energy[-1][-1] - np.cumsum(power * np.diff(time)))[len(energy) == 1 :])  # the first row twice
        last = part[-1:]
    return np.concatenate(energy)


def findings(built: Built, result: RunResult) -> Findings:
    """What the touch did; from then on nothing is free motion."""
    if not len(result.log):
        return Findings({})
    impact = measured(built, result)
    entries = {"touch": asdict(impact), "remark": REMARK}
    return Findings(entries, encounters(built, result), settled(impact, built.settings.observer_gain))


SCENARIO = Scenario(
    "touch",
    "the tool meets a wall, a clamped hand or a falling ball, with a reaction or without",
    TouchSettings,
    motion,
    tool_mass="tool_mass",
    findings=findings,
    did="moved",
)
