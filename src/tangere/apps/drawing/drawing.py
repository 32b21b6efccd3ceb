"""A drawing, drawn: plan, arm, paper, sensor and controller put together."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from tangere.apps.drawing.force.height_pi import HeightPI
from tangere.apps.drawing.force.hybrid_force import DELAY, HybridForce
from tangere.apps.drawing.force.sense import ContactForce
from tangere.apps.drawing.force.task import MODES
from tangere.apps.drawing.ink import Ink
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.motion import DrawingPlan, PenMotion
from tangere.apps.drawing.plan.plan import plan_drawing
from tangere.apps.drawing.settings import BOTH, Controllers, DrawingSettings, SensorName
from tangere.apps.drawing.strokes.make import DOT
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.apps.drawing.summary import DrawingFigures, drawn_ink, figures_of
from tangere.dynamics.friction import JointFriction
from tangere.errors import NoSolution, UnknownName
from tangere.logs.log import Log
from tangere.loop.result import RunResult
from tangere.loop.run import run
from tangere.model.model import Payload
from tangere.observe.momentum import MomentumObserver
from tangere.plants.joints import friction_of, sensors_of
from tangere.plants.mujoco_plant import MujocoPlant
from tangere.plants.scene.bodies import Body, Bump, Hole
from tangere.plants.scene.bodies import paper as lay
from tangere.plants.scene.scene import Pen, Scene
from tangere.plants.sensors import NOISE_SPEED, NOISE_WRENCH, SensorModel, WithWrenchSensor, WrenchSensor
from tangere.plants.twins import twin
from tangere.robots import Robot
from tangere.robots import robot as make_robot
from tangere.settings import settings_of
from tangere.types import Array, Friction, Plant

PEN_LENGTH, PEN_MASS = 0.15, 0.1  # [m], [kg]: a pen in a holder; the flange then stays 150 mm off the paper
TIP_RADIUS = 5e-4  # [m]: a liner of 1 mm
MARGIN = 0.05  # [m] of paper beyond the canvas on each side
# [1/s]: momentum observer where it takes the sensor's place. A faster one hears the noise of the speed (M K 0.002
# rad/s, 0.4 Nm at 100/s), a slower one makes the force late
OBSERVER_GAIN = 200.0
LISTEN = {"ideal": 0.0, "builtin": 0.1, "none": 0.15}  # [s] in the air before each touch, for the tare
# [N] per sample of white noise that passes a slow filter alike: 0.1; 0.35 held for two periods; 0.5 of the observer for
# 10
FORCE_NOISE = {"ideal": 0.1, "builtin": 0.5, "none": 1.6}
# [s] beyond the plan's duration that a stroke may take to find the paper (20 mm and more at 2 mm/s, then settle)
PER_STROKE = 15.0
# [m]: a pen that would start nearer to the real paper than the second waits at the first instead
ABOVE, ABOVE_LEAST = 0.015, 0.001
# Share of the half sizes at which the corners are touched: on the paper even where it was put down 10 % off
INSET = 0.8
# N: enough to be told from noise (0.1 N per sample) and from the drives' friction, little enough to leave no mark
FORCE = 3.0
LIFT = 0.02  # m above the planned paper between two touches: higher than any paper that is looked for
NEWTON = 5  # steps to joints that are some centimetres away: the error is squared in each


@dataclass(frozen=True)
class CanvasError:
    """How the real paper differs from the planned one, unknown to planner and controller."""

    offset: float = 0.0  # m along the normal; > 0: towards the pen
    tilt: float = 0.0  # rad
    direction: float | None = None  # rad, axis of the tilt in the canvas plane; None: drawn by the seed
    bumps: tuple[Bump, ...] = ()
    hole: Hole | None = None


class Stage(Protocol):
    """Where a drawing is made: Simulated, OnPlant, or one's own."""

    @property
    def sensor(self) -> SensorName | WrenchSensor:
        """Where the force comes from: State.wrench ("ideal", "builtin"), or the joints' torques ("none")."""

    def plant(self, robot: Robot, plan: DrawingPlan) -> Plant:
        """The plant that draws; robot: as it is believed."""

    def start(self, robot: Robot, plan: DrawingPlan) -> Array:
        """Joints (n,) [rad] of the pen before anything moves."""

    def things(self, robot: Robot, plan: DrawingPlan) -> tuple[Robot, Body | None]:
        """The arm as it really is and the paper as it really lies, where that is known."""


@dataclass(frozen=True)
class OnPlant:
    """Any plant that measures a pose and a wrench, or torques; it stands at the beginning of the plan, or goes there.

    sensor: "ideal" (exact, no tare), "builtin" (tared in the air before each touch) or "none" (momentum observer).
    """

    made: Plant
    sensor: SensorName = "builtin"

    def plant(self, robot: Robot, plan: DrawingPlan) -> Plant:
        """As given."""
        return self.made

    def start(self, robot: Robot, plan: DrawingPlan) -> Array:
        """Where the plan begins."""
        return np.array(plan.at(0.0).q)

    def things(self, robot: Robot, plan: DrawingPlan) -> tuple[Robot, Body | None]:
        """The arm as it is believed; of the paper nothing is known."""
        return robot, None


@dataclass(frozen=True)
class Simulated:
    """A simulated arm over paper, and how both differ from what planner and controller believe.

    stiffness [N/m], paper_friction: of pen and paper. model_error: all masses and inertias are (1 + model_error) times
    those believed. noise: a factor on 0.1 N (of the built-in sensor: on its own) and 0.002 rad/s per sample.
    canvas_error: (offset [m], tilt [rad]) or a CanvasError; or the paper itself, as it really lies. sensor: "ideal",
    "builtin" (a UR5e's, see WrenchSensor), "none" (momentum observer), or one's own. friction: of the joints, stiction:
    whether they stick; sensors: of the joints' torques, their speeds are as `noise` says.
    """

    sensor: SensorName | WrenchSensor = "ideal"
    stiffness: float = DrawingSettings.stiffness
    paper_friction: float = DrawingSettings.paper_friction
    model_error: float = DrawingSettings.model_error
    noise: float = DrawingSettings.noise
    canvas_error: CanvasError | tuple[float, float] = field(default_factory=CanvasError)
    seed: int = DrawingSettings.seed
    paper: Body | None = None
    period: float = 1e-3  # s
    friction: JointFriction | None = None
    stiction: bool = False
    sensors: SensorModel | None = None

    def __post_init__(self) -> None:
        for name in ("stiffness", "paper_friction", "model_error", "noise", "sensor"):
            if name != "sensor" or isinstance(self.sensor, str):
                settings_of(DrawingSettings)[name].check(getattr(self, name))

    @classmethod
    def told(cls, settings: DrawingSettings, robot: Robot, canvas: Canvas) -> Simulated:
        """As the settings say of that arm, with the paper where it really lies when the canvas is the planned one."""
        s: Any = settings
        made = cls(s.sensor, s.stiffness, s.paper_friction, s.model_error, s.noise, s.surface, s.seed)
        sensors = sensors_of(robot, s.sensors, made.period, s.seed)
        friction, stiction = friction_of(robot, s.friction), s.friction == "stiction"
        return replace(made, paper=made.paper_under(canvas), friction=friction, stiction=stiction, sensors=sensors)

    def things(self, robot: Robot, plan: DrawingPlan) -> tuple[Robot, Body | None]:
        """The heavier arm and the paper."""
        return heavier(robot, self.model_error), self.paper_under(plan.canvas)

    def paper_under(self, canvas: Canvas) -> Body:
        """The paper as it really lies."""
        if self.paper is not None:
            return self.paper
        error = self.canvas_error if isinstance(self.canvas_error, CanvasError) else CanvasError(*self.canvas_error)
        width, height = canvas.size
        size = (width + 2.0 * MARGIN, height + 2.0 * MARGIN)
        direction = error.direction
        if direction is None:
            direction = float(np.random.default_rng(self.seed).uniform(0.0, 2.0 * math.pi))
        sheet = lay(canvas.T_base_canvas, size, self.paper_friction, self.stiffness, bumps=error.bumps, hole=error.hole)
        return sheet.misplaced(error.offset, error.tilt, direction)

    def wrench_sensor(self) -> WrenchSensor | None:
        """The sensor in the wrist, its noise times the factor."""
        if isinstance(self.sensor, WrenchSensor):
            return self.sensor
        if self.sensor == "ideal":
            return WrenchSensor.ideal(NOISE_WRENCH * self.noise, self.seed)
        preset = WrenchSensor.preset(self.sensor, self.seed)
        return None if preset is None else replace(preset, noise=np.asarray(preset.noise) * self.noise)

    def plant(self, robot: Robot, plan: DrawingPlan) -> Plant:
        """MuJoCo with pen and paper, the wrench as the sensor has it."""
        pen = Pen(length=float(robot.model.T_flange_tcp[2, 3]), tip_radius=TIP_RADIUS)
        joints = SensorModel(seed=self.seed) if self.sensors is None else self.sensors
        real = MujocoPlant(
            heavier(robot, self.model_error), self.period, scene=Scene((self.paper_under(plan.canvas),), pen),
            sensors=replace(joints, noise_qd=NOISE_SPEED * self.noise), friction=self.friction, stiction=self.stiction,
        )  # fmt: skip
        return WithWrenchSensor(real, self.wrench_sensor())

    def start(self, robot: Robot, plan: DrawingPlan) -> Array:
        """At the plan's beginning, or above the real paper if that is higher: no pen waits inside the paper."""
        reference, sheet = plan.at(0.0), self.paper_under(plan.canvas)
        assert reference.T is not None
        start = reference.T[:3, 3]
        gap = float((start - sheet.T[:3, 3]) @ sheet.T[:3, 2])
        lift = max(0.0, ABOVE - gap) if gap < ABOVE_LEAST else 0.0
        q = np.array(reference.q)
        goal = start + lift * plan.canvas.T_base_canvas[:3, 2]
        for _ in range(NEWTON if lift else 0):
            away = np.concatenate((goal - robot.pose(q)[:3, 3], np.zeros(3)))
            q = q + np.linalg.lstsq(robot.jacobian(q), away, rcond=None)[0]
        return q


@dataclass(frozen=True)
class DrawingResult:
    """A drawing that was made: the log, the ink, and the numbers; against the true tip and force where known."""

    run: RunResult
    ink: Ink
    figures: DrawingFigures
    paper: Body | None  # as it really lay, where that is known
    robot: Robot  # as it really was, where that is known, else as believed

    @property
    def summary(self) -> dict[str, Any]:
        """The figures as summary.json has them."""
        return self.figures.record()

    @property
    def log(self) -> Log:
        """Every period."""
        return self.run.log

    @property
    def aborted(self) -> str:
        """Why it ended early, or "" ."""
        return self.run.aborted


def drawing_robot(name: str = "ur5e", *, length: float = PEN_LENGTH, mass: float = PEN_MASS, **options: Any) -> Robot:
    """An arm with a pen along its flange's z axis: tcp at the tip, the pen its payload. options: of tangere.robot."""
    pen = Pen(length=length, tip_radius=TIP_RADIUS)
    return make_robot(name, tool=(0.0, 0.0, length), payload=pen.payload(mass), **options)


def draw(
    robot: Robot, plan: DrawingPlan, stage: Stage | None = None, *, force: float = DrawingSettings.force,
    controller: Controllers = "hybrid", known_stiffness: float | None = None, friction: Friction | None = None,
    log: str | os.PathLike[str] | None = None, progress: Callable[[float, float], None] | None = None,
) -> DrawingResult:  # fmt: skip
    """Draw a plan, in simulation or on any other plant.

    robot: what planner and controller believe (drawing_robot). stage: where it is drawn; None: Simulated(). force [N].
    known_stiffness [N/m] of pen and paper; None: learned by pressing. friction: of the joints, as the controller makes
    up for it. progress(done, duration) in seconds of the plan.
    log: an .mcap file.
    """
    stage = Simulated() if stage is None else stage
    law = controller_of(robot, plan, stage.sensor, force, controller, known_stiffness, friction)
    observers = [MomentumObserver(robot, OBSERVER_GAIN, friction=friction)] if stage.sensor == "none" else []
    strokes = sum(phase == "draw" for phase, _, _ in law.task.segments)

    def clock(elapsed: float, until: float) -> None:
        if progress is not None:
            progress(plan.duration if law.finished and not law.failed else law.task.clock, plan.duration)

    result = run(
        stage.plant(robot, plan), law, observers, until=plan.duration + PER_STROKE * strokes, log=log,
        start=stage.start(robot, plan), robot=robot, progress=clock,
    )  # fmt: skip
    ink = drawn_ink(result.log, plan.canvas, robot)
    real, paper = stage.things(robot, plan)
    return DrawingResult(result, ink, figures_of(result, ink, plan, law, robot), paper, real)


def controller_of(
    robot: Robot, plan: DrawingPlan, sensor: SensorName | WrenchSensor, force: float, controller: Controllers,
    stiffness: float | None, friction: Friction | None = None,
) -> HybridForce | HeightPI:  # fmt: skip
    """The controller, made for what is felt of the paper by such a sensor."""
    if controller not in BOTH:
        raise UnknownName(f"unknown controller {controller!r}; known: {', '.join(BOTH)}")
    named = sensor if isinstance(sensor, str) else "builtin" if np.any(sensor.bias) else "ideal"
    own = WrenchSensor.preset(sensor) if isinstance(sensor, str) else sensor
    felt = ContactForce("observer" if own is None else "sensor", needs_tare=named != "ideal")
    known: dict[str, Any] = {"stiffness": stiffness, "felt": felt, "listen": LISTEN[named], "noise": FORCE_NOISE[named]}
    known["friction"] = friction
    T = plan.canvas.T_base_canvas
    if controller == "height-pi":
        return HeightPI(robot, plan, T, force, **known)
    delay = DELAY + (1.0 / OBSERVER_GAIN if own is None else own.delay)
    return HybridForce(robot, plan, T, force, delay=delay, **known)


def heavier(robot: Robot, share: float) -> Robot:
    """The same arm with every mass and inertia, payload included, (1 + share) times."""
    payload = robot.model.payload
    if payload is not None:
        payload = Payload(payload.mass * (1.0 + share), payload.com, payload.inertia * (1.0 + share))
    return twin(robot, mass=1.0 + share, payload=payload)


@dataclass(frozen=True)
class Probed:
    """The paper as it was found."""

    canvas: Canvas  # the planned one, corrected
    points: Array  # (5, 3) m, touched, in the frame of the planned canvas
    offset: float  # m along the planned normal, at the middle
    tilt: float  # rad
    rms: float  # m, of the points off the plane: how uneven the paper is
    result: DrawingResult

    @property
    def summary(self) -> dict[str, Any]:
        """For summary.json."""
        return {
            "offset_mm": 1e3 * self.offset,
            "tilt_deg": math.degrees(self.tilt),
            "uneven_rms_mm": 1e3 * self.rms,
            "duration_s": self.result.run.duration,
            "force_max_n": self.result.figures.force_touch_max_n,
        }


def probe_points(size: tuple[float, float]) -> Array:
    """(5, 2) m: four corners, drawn in by INSET, counter-clockwise from the lower left, and the middle."""
    w, h = 0.5 * INSET * size[0], 0.5 * INSET * size[1]
    return np.array(((-w, -h), (w, -h), (w, h), (-w, h), (0.0, 0.0)))


def probe(
    robot: Robot, canvas: Canvas, stage: Stage | None = None, area: tuple[float, float] | None = None, *,
    force: float = FORCE, friction: Friction | None = None, progress: Callable[[float, float], None] | None = None,
) -> Probed:  # fmt: skip
    """Touch the paper at the corners and the middle of `area` (width, height) [m] about the canvas's middle.

    Each touch is a mark of 0.3 mm, pressed with `force` [N]. The height is that of the pen's tip by the joints and the
    robot that is believed in, less what the paper gives way: force / stiffness found. stage, friction: as for draw.
    Raises NoSolution where the paper is not found.
    """
    middle = probe_points(canvas.size if area is None else area)
    way = 0.5 * np.array((DOT, 0.0))
    marks = Strokes(tuple(np.stack((p - way, p + way)) for p in middle), canvas.size)
    plan = plan_drawing(robot, marks, canvas, PenMotion(force=force, lift=LIFT), offer=False)
    result = draw(robot, plan, stage, force=force, friction=friction, progress=progress)
    log = result.log
    drawing = log["mode"] == MODES.index("draw")
    strokes = log["stroke"]
    if result.aborted:
        raise NoSolution(f"the paper was not found by touch: {result.aborted}")
    tip = canvas.from_base(robot.pose(log["q"][drawing])[:, :3, 3])
    points = np.array([tip[strokes[drawing] == i + 1].mean(axis=0) for i in range(len(middle))])
    points[:, 2] += force / result.figures.stiffness_hat
    touched = canvas.to_base(points)
    fit = canvas.touched(touched)
    return Probed(canvas.corrected(touched), points, fit.height, fit.tilt, fit.rms, result)
