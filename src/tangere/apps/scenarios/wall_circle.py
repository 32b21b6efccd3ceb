"""002's circle on a wall with 5 N: in its own pose, which is singular all along, and in one where the arm can push.

In 002's pose the pen axis is parallel to axes 2, 3 and 4, and the wall's force passes through all of them: of the six
joints only joint 1 can press the pen against the wall, with the pen's sideways distance from the base axis as lever,
at most 0.1 m, none at top and bottom; friction of the pen, 0.36 m from that axis, would outweigh it, so that wall is
smooth. There tau = g - J^T F is what 002 plots, but no torque of the drives makes the
force; the structure carries it. In the regular pose (wall at y = -0.8 m, circle about 0.5 m height, elbow bent) every
direction can be pushed: springs along the wall, none across it, and the wrench fed forward.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.apps.scenarios.common import Findings, Motion, RunSettings, Scenario, World, possible_time
from tangere.control.cartesian_impedance import CartesianImpedance
from tangere.control.joint_impedance import QuasiStatic
from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.logs.log import Log
from tangere.model.conventions import official_from_flipped_elbow
from tangere.planning.path_trajectory import wall_circle
from tangere.planning.timing import SmoothRate
from tangere.planning.velocity_ik import CIRCLE_START, follow, singular_circle_path
from tangere.plants.scene.bodies import surface
from tangere.plants.scene.contacts import CalmSpring
from tangere.plants.scene.scene import Pen, Scene
from tangere.robots import Robot
from tangere.settings import altered, setting, word
from tangere.types import Controller, Trajectory

if TYPE_CHECKING:
    from tangere.apps.scenarios.build import Built
    from tangere.loop.result import RunResult

NORMAL = (0.0, 1.0, 0.0)  # out of both walls, towards the robot
CENTRE = (0.0, -0.8, 0.5)  # m, of the regular circle: 0.9 m from the shoulder, well inside the reach of 1.3 m
ALONG = 4000.0  # N/m along the wall: pen friction of 0.3 * 5 N then drags 0.4 mm
TURN = 100.0  # Nm/rad
# rad/s: joint springs of 002's own pose, M_ii OMEGA^2 each; 20 periods of 1 ms per radian keep the light wrist calm
OMEGA = 50.0
RAMP = 2.0  # s
# N s/m, of pen and wall: as little as a pen on paper has. A tip on a spring of its own before a hard wall chattered
# under friction of 0.3 (45 Hz, 0 to 14 N): at 10 s a round, with the UR10's rotors at 20 s
DAMPING = 10.0

# what a reader of the report must know
REMARKS = {
    "own": "002's own pose is singular all along: the torques are g − Jᵀ F with joint springs, but of the six joints "
    "only joint 1 can press the pen against the wall, with a lever of at most 0.1 m that vanishes at the top and the "
    'bottom of the circle. The force is in the drives\' hands only where that lever is long ("controllable": > 5 cm).',
    "regular": "Springs hold the pen along the wall, none across it; the force is fed forward through Jᵀ F.",
}


@dataclass(frozen=True)
class WallCircleSettings(RunSettings):
    """Which wall, how hard and how slowly; 002's own arm, and as long as once round takes."""

    robot: str = altered(RunSettings, "robot", "ur10")
    parameters: str | None = altered(RunSettings, "parameters", "002")
    duration: float | None = altered(RunSettings, "duration", None)
    pose: str = word("regular", "where the wall is", ("own", "regular"))
    force: float = setting(5.0, "N", "of the pen against the wall; it can only press", low=0.0)
    round_time: float = setting(200.0, "s", "once round")
    pen_mass: float = setting(0.1, "kg", "mass of the pen")
    wall_stiffness: float = setting(1e4, "N/m", "of pen and wall together")

    def __post_init__(self) -> None:
        super().__post_init__()
        possible_time("round_time", self.round_time, self.period)


def motion(world: World) -> Motion:
    """Once round the circle on the wall, the pen pressed against it."""
    robot, s, friction = world.believed, world.settings, world.believed_friction
    if not ur.is_ur(robot.model):
        raise InvalidValue(f"robot: wall-circle places its walls for UR arms, got {robot.name}")
    force = np.array((*np.multiply(s.force, NORMAL), 0.0, 0.0, 0.0))  # of the wall on the pen
    trajectory: Trajectory
    controller: Controller
    if s.pose == "own":
        path = singular_circle_path()
        law = SmoothRate.over(path.length, path.length / s.round_time, RAMP)
        trajectory = follow(robot, path, law, official_from_flipped_elbow(CIRCLE_START))
        inertia = np.diag(robot.mass_matrix(trajectory.at(0.0).q))
        springs, dampers = OMEGA**2 * inertia, 2.0 * OMEGA * inertia
        springs[0] = 0.0  # joint 1 only pushes: a spring there would hold the pen off the wall
        # and it is pushed by 5 N at 0.1 m at most: a damper for its rotor too would outweigh that
        dampers[0] = 2.0 * OMEGA * Robot(robot.model).mass_matrix(trajectory.at(0.0).q)[0, 0]
        controller = QuasiStatic(robot, force, trajectory, stiffness=springs, damping=dampers, friction=friction)
        name = "quasi-static torque"
    else:
        trajectory = wall_circle(
            robot, centre=CENTRE, normal=NORMAL, round_time=s.round_time, ramp=RAMP, period=s.period
        )
        across = np.abs(NORMAL)
        stiffness = (*(ALONG * (1.0 - across)), TURN, TURN, TURN)
        controller = CartesianImpedance(robot, trajectory, stiffness=stiffness, wrench=force, friction=friction)
        name = "Cartesian impedance, force fed forward"
    start = trajectory.at(0.0).T
    assert start is not None
    point = tuple(float(x) for x in start[:3, 3])
    length = float(robot.model.T_flange_tcp[2, 3])
    rubbing = 0.0 if s.pose == "own" else 0.3
    wall = surface("wall", point, NORMAL, friction=rubbing)  # type: ignore[arg-type]
    scene = Scene((replace(wall, contact=CalmSpring(s.wall_stiffness, DAMPING)),), Pen(length=length))
    return Motion(trajectory, controller, RAMP, {"controller": name}, scene=scene, presses=True)


def findings(built: Built, result: RunResult) -> Findings:
    """What the wall felt, and what a reader must know of the pose."""
    if not len(result.log) or "wrench_true" not in result.log:
        return Findings({})
    s = built.settings
    force = force_summary(result.log, s.force, built.motion.settle, built.world.true)
    return Findings({"force": force, "remark": REMARKS[s.pose]})


def force_summary(log: Log, wanted: float, settle: float, robot: Robot) -> dict[str, Any]:
    """What the wall felt after the ramp: mean, rms error, extremes, and the share of time within 2 %.

    lever_m: the longest lever of any joint for a force across the wall, over the run: where it is nearly zero no drive
    can make the force. controllable: the same numbers where the lever exceeds 0.05 m.
    """
    force = log.each(lambda part: part["wrench_true"] @ np.array((*NORMAL, 0.0, 0.0, 0.0)))
    normal = np.array(NORMAL)
    lever = log.each(
        lambda part: np.max(np.abs(np.swapaxes(robot.jacobian(part["q"]), -1, -2)[..., :3] @ normal), axis=-1)
    )
    after = log.time >= settle
    if not after.any():
        return {"samples": 0}
    return {
        "lever_m": [float(lever[after].min()), float(lever[after].max())],
        **_figures(force[after], wanted),
        "controllable": _figures(force[after & (lever > 0.05)], wanted),
    }


def _figures(force: Any, wanted: float) -> dict[str, Any]:
    if not len(force):
        return {"samples": 0}
    return {
        "samples": len(force),
        "mean_n": float(force.mean()),
        "rms_error_n": float(np.sqrt(np.mean((force - wanted) ** 2))),
        "min_n": float(force.min()),
        "max_n": float(force.max()),
        "within_2_percent": float(np.mean(np.abs(force - wanted) <= 0.02 * wanted)),
    }


SCENARIO = Scenario(
    "wall-circle",
    "002's circle on a wall with 5 N, in its own singular pose or in a regular one",
    WallCircleSettings,
    motion,
    tool_mass="pen_mass",
    findings=findings,
    did="drew a circle on a wall",
)
