"""A drawing, drawn: plan, arm, paper, sensor and controller put together, and what came of it in numbers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from tangere.apps.drawing.force.height_pi import HeightPI
from tangere.apps.drawing.force.hybrid_force import DELAY, HybridForce
from tangere.apps.drawing.force.sense import ContactForce
from tangere.apps.drawing.force.task import MODES, PenPlan
from tangere.apps.drawing.ink import Ink, coverage, coverages, distance, ink_of, stray
from tangere.apps.drawing.settings import MODEL_ERROR, Controllers, SensorName
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import InvalidValue, UnknownName
from tangere.logs.log import Log
from tangere.loop.result import RunResult
from tangere.loop.run import run
from tangere.model.model import Payload
from tangere.observe.momentum import MomentumObserver
from tangere.plants.mujoco_plant import MujocoPlant
from tangere.plants.scene.bodies import Body, Bump, Hole
from tangere.plants.scene.bodies import paper as lay
from tangere.plants.scene.scene import Pen, Scene
from tangere.plants.sensors import SensorModel
from tangere.plants.twins import twin
from tangere.plants.wrench_sensor import WithWrenchSensor, WrenchSensor
from tangere.robots import Robot
from tangere.robots import robot as make_robot
from tangere.types import Array

PEN_LENGTH, PEN_MASS = 0.15, 0.1  # m, kg: a pen in a holder; the flange then stays 150 mm off the paper
TIP_RADIUS = 5e-4  # m: a liner of 1 mm
NOISE_WRENCH, NOISE_SPEED = 0.1, 0.002  # N and rad/s per 1 kHz sample
MARGIN = 0.05  # m of paper beyond the canvas on each side
# 1/s: momentum observer where it takes the sensor's place. A faster one hears the noise of the speed (M K 0.002 rad/s,
# 0.4 Nm at 100/s), a slower one makes the force late
OBSERVER_GAIN = 200.0
LISTEN = {"ideal": 0.0, "builtin": 0.1, "none": 0.15}  # s in the air before each touch, for the tare
SMOOTHING = {"ideal": 0.0, "builtin": 0.0, "none": 0.0}  # s, low-pass of the force: none, it would be late

# N per sample of white noise that passes a slow filter alike: 0.1; 0.35 held for two periods; 0.5 of
# the observer for 10
FORCE_NOISE = {"ideal": 0.1, "builtin": 0.5, "none": 1.6}

# [s] beyond the plan's duration that a stroke may take to find the paper (20 mm and more at 2 mm/s, then settle)
PER_STROKE = 15.0
DRAWN = 0.99  # of a stroke's line with ink: the mark for the whole drawing
TOUCH_MARK = 10.5  # ms: 10 ms by a clock of 1 ms
# of the drawing time with the integral at its limit, and s, from which on that is worth a remark
SATURATED, SATURATED_LEAST = 0.01, 0.1
# m: a pen that would start nearer to the real paper than the second waits at the first instead
ABOVE, ABOVE_LEAST = 0.015, 0.001
NEWTON = 5  # steps to joints that are some centimetres away: the error is squared in each

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


class CanvasLike(Protocol):
    """What is needed of planning.drawing.canvas.Canvas."""

    @property
    def T_base_canvas(self) -> Array:
        """(4, 4)."""

    @property
    def size(self) -> tuple[float, float]:
        """m."""


class DrawingPlanLike(PenPlan, Protocol):
    """What is needed of planning.drawing.plan.DrawingPlan."""

    @property
    def canvas(self) -> CanvasLike:
        """The nominal paper."""

    @property
    def draw_length(self) -> float:
        """m."""

    @property
    def pen_up_length(self) -> float:
        """m."""

    @property
    def strokes(self) -> Strokes:
        """What was to be drawn."""

    def polylines(self) -> Sequence[Array]:
        """Each (k, 2) m on the canvas."""


@dataclass(frozen=True)
class CanvasError:
    """How the real paper differs from the planned one, unknown to planner and controller."""

    offset: float = 0.0  # m along the normal; > 0: towards the pen
    tilt: float = 0.0  # rad
    direction: float | None = None  # rad, axis of the tilt in the canvas plane; None: drawn by the seed
    bumps: tuple[Bump, ...] = ()
    hole: Hole | None = None


@dataclass(frozen=True)
class DrawingResult:
    """A drawing that was made: the log, the ink, and the numbers; all against the true tip and force."""

    run: RunResult
    ink: Ink
    summary: dict[str, Any]
    paper: Body  # as it really lay
    robot: Robot  # as it really was

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
    robot: Robot,
    plan: DrawingPlanLike,
    *,
    force: float = 5.0,
    controller: Controllers = "hybrid",
    sensor: SensorName | WrenchSensor = "ideal",
    stiffness: float = 2e4,
    friction: float = 0.3,
    model_error: float = 0.05,
    noise: bool | float = True,
    canvas_error: CanvasError | tuple[float, float] | None = None,
    paper: Body | None = None,
    known_stiffness: float | None = None,
    seed: int = 0,
    log: str | os.PathLike[str] | None = None,
    progress: Callable[[float, float], None] | None = None,
    period: float = 1e-3,
) -> DrawingResult:
    """Draw a plan in simulation.

    robot: what planner and controller believe (drawing_robot); the real one has all masses and inertias (1 +
    model_error) times. stiffness [N/m], friction: of pen and paper, unknown to the controller unless known_stiffness
    is given. noise: True, False or a factor on 0.1 N (of the built-in sensor: on its own) and 0.002 rad/s per sample.
    canvas_error: (offset [m], tilt [rad]) or a CanvasError; or the paper itself, as it really lies. sensor: "ideal",
    "builtin" (a UR5e's, see WrenchSensor), "none" (momentum observer).
    progress(done, duration) in seconds of the plan. log: an .mcap file.
    """
    if controller not in ("hybrid", "height-pi"):
        raise UnknownName(f"unknown controller {controller!r}; known: hybrid, height-pi")
    low, high = MODEL_ERROR
    if not low <= model_error <= high:
        raise InvalidValue(f"model_error: {low:g} to {high:g}, got {model_error!r}")
    scale = float(noise)
    if not (math.isfinite(scale) and scale >= 0.0):
        raise InvalidValue(f"noise: True, False or a factor >= 0, got {noise!r}")
    named = sensor if isinstance(sensor, str) else "ideal" if not np.any(sensor.bias) else "builtin"
    felt_by = _sensor(sensor, scale, seed)
    canvas = plan.canvas
    paper = real_paper(canvas, canvas_error, stiffness, friction, seed) if paper is None else paper
    real = heavier(robot, model_error)
    pen = Pen(length=float(robot.model.T_flange_tcp[2, 3]), tip_radius=TIP_RADIUS)
    sensors = SensorModel(noise_qd=NOISE_SPEED * scale, seed=seed)
    plant = WithWrenchSensor(MujocoPlant(real, period, scene=Scene((paper,), pen), sensors=sensors), felt_by)
    source: Literal["sensor", "observer"] = "observer" if felt_by is None else "sensor"
    felt = ContactForce(source, smoothing=SMOOTHING[named], needs_tare=named != "ideal")
    delay = DELAY + (1.0 / OBSERVER_GAIN if felt_by is None else felt_by.delay)
    law: HybridForce | HeightPI
    if controller == "hybrid":
        law = HybridForce(
            robot, plan, canvas.T_base_canvas, force, stiffness=known_stiffness, felt=felt, listen=LISTEN[named],
            delay=delay, noise=FORCE_NOISE[named],
        )  # fmt: skip
    else:
        law = HeightPI(
            robot, plan, canvas.T_base_canvas, force, stiffness=known_stiffness, felt=felt, listen=LISTEN[named],
            noise=FORCE_NOISE[named],
        )  # fmt: skip
    observer = MomentumObserver(robot, OBSERVER_GAIN) if felt_by is None else None
    strokes = sum(phase == "draw" for phase, _, _ in law.task.segments)

    def clock(elapsed: float, until: float) -> None:
        if progress is not None:
            progress(plan.duration if law.finished and not law.failed else law.task.clock, plan.duration)

    result = run(
        plant, law, () if observer is None else [observer], until=plan.duration + PER_STROKE * strokes, log=log,
        start=_start(robot, plan, paper), robot=robot, progress=clock,
    )  # fmt: skip
    ink = drawn_ink(result.log, canvas)
    summary = summarise_drawing(result, ink, plan, law, force)
    return DrawingResult(result, ink, summary, paper, real)


def drawn_ink(log: Log, canvas: CanvasLike) -> Ink:
    """What the pen left on the canvas."""
    return ink_of(log.time, _tip(log), log["wrench_true"], canvas.T_base_canvas)


def real_paper(
    canvas: CanvasLike, error: CanvasError | tuple[float, float] | None, stiffness: float, friction: float, seed: int
) -> Body:
    """The paper as it really lies."""
    if error is None:
        error = CanvasError()
    elif not isinstance(error, CanvasError):
        error = CanvasError(*error)
    width, height = canvas.size
    size = (width + 2.0 * MARGIN, height + 2.0 * MARGIN)
    direction = error.direction
    if direction is None:
        direction = float(np.random.default_rng(seed).uniform(0.0, 2.0 * math.pi))
    paper = lay(canvas.T_base_canvas, size, friction, stiffness, bumps=error.bumps, hole=error.hole)
    return paper.misplaced(error.offset, error.tilt, direction)


def heavier(robot: Robot, share: float) -> Robot:
    """The same arm with every mass and inertia, payload included, (1 + share) times."""
    payload = robot.model.payload
    if payload is not None:
        payload = Payload(payload.mass * (1.0 + share), payload.com, payload.inertia * (1.0 + share))
    return twin(robot, mass=1.0 + share, payload=payload)


def summarise_drawing(
    result: RunResult, ink: Ink, plan: DrawingPlanLike, law: HybridForce | HeightPI, force: float
) -> dict[str, Any]:
    """The numbers of summary.json.

    path_*: distance of the true tip from the pen's smooth planned path while drawing (mode draw); path_time_*: from the
    planned point of that instant, along the paper; strokes_*_mm: as path_*, but from the strokes of plan.svg, whose
    corners the smooth path rounds. force_*: the true normal force while drawing; force_max_n from the end of each
    touch's ramp on; force_touch_max_n: the rest of the time, which is touch-down and, where the paper is not where it
    should be, whatever the pen met in the air. settle_s: time the pen pressed without drawing, after each touch;
    force_settle_*: the true force in it, its error against the force wanted at that instant (a ramp). contact_lost_s:
    drawing time without contact. strokes_drawn: those with ink along DRAWN of their line. touch_delay_ms: from the
    first true contact of each stroke to its detection. integral_limit_s: time in which the controller pressed with its
    integral at its limit; remarks: what that means.
    """
    log = result.log
    T = plan.canvas.T_base_canvas
    mode = log["mode"]
    drawing: Mask = mode == MODES.index("draw")
    tip = (_tip(log) - T[:3, 3]) @ T[:3, :3]
    planned = (log["T_des"].reshape(-1, 3, 4)[:, :, 3] - T[:3, 3]) @ T[:3, :3]
    true_force = log["wrench_true"][:, :3] @ T[:3, 2]
    lines = [np.asarray(line) for line in plan.polylines()]
    late = np.hypot(*(tip[drawing, :2] - planned[drawing, :2]).T)
    away = distance(tip[drawing, :2], lines, reach=0.05) if drawing.any() else np.zeros(0)
    strokes = [np.asarray(line) for line in plan.strokes.lines]
    strayed = distance(tip[drawing, :2], strokes, reach=0.05) if drawing.any() else np.zeros(0)
    pressed = true_force[drawing]
    settling: Mask = mode == MODES.index("settle")
    settled = true_force[settling]
    delays = touch_delays(log, true_force)
    return {
        "strokes": len(lines),
        "strokes_drawn": int(np.count_nonzero(coverages(lines, ink) >= DRAWN)),
        "strokes_touched": len(law.task.touches),
        "draw_length_mm": 1e3 * plan.draw_length,
        "pen_up_mm": 1e3 * plan.pen_up_length,
        "duration_s": result.duration,
        "draw_s": float(drawing.sum() * result.period),
        "path_rms_mm": _rms(1e3 * away),
        "path_max_mm": _largest(1e3 * away),
        "strokes_rms_mm": _rms(1e3 * strayed),
        "strokes_max_mm": _largest(1e3 * strayed),
        "path_time_rms_mm": _rms(1e3 * late),
        "path_time_max_mm": _largest(1e3 * late),
        "force_n": force,
        "force_mean_n": float(pressed.mean()) if len(pressed) else None,
        "force_rms_error_n": _rms(pressed - force),
        "force_mean_deviation_n": float(np.mean(np.abs(pressed - force))) if len(pressed) else None,
        "force_max_n": _largest(pressed),
        "force_min_n": float(pressed.min()) if len(pressed) else None,
        "force_touch_max_n": _largest(true_force[~drawing]),
        "settle_s": float(settling.sum() * result.period),
        "force_settle_rms_error_n": _rms(settled - log["force_des"][settling]),
        "force_settle_max_n": _largest(settled),
        "contact_lost_s": float(np.count_nonzero(pressed <= 0.0) * result.period),
        "ink_coverage": coverage(lines, ink),
        "ink_stray": stray(lines, ink),
        "touch_delay_ms": {"mean": float(np.mean(delays)), "max": float(np.max(delays))} if len(delays) else None,
        "touch_late": int(np.count_nonzero(delays > TOUCH_MARK)),
        "stiffness_hat": law.stiffness,
        "stiffness_learned": law.learned and len(ink) > 0,  # what was learned in the air is nothing
        "integral_limit_s": law.saturated,
        "remarks": _remarks(law, float(drawing.sum() * result.period), delays, felt_in_air(log, true_force)),
        "realtime_factor": result.realtime_factor,
        "aborted": result.aborted,
        "interventions": dict(result.interventions),
    }


def _remarks(law: HybridForce | HeightPI, draw_s: float, delays: Array, in_air: list[int]) -> list[str]:
    """What a reader of the figures should know."""
    remarks = []
    if law.saturated > max(SATURATED * draw_s, SATURATED_LEAST):
        remarks.append(
            f"the controller's integral was at its limit for {law.saturated:.1f} s: the model is more wrong than it "
            "can make up for, and the force is not what was asked for"
        )
    if law.task.touches and not law.learned:
        remarks.append("the stiffness of pen and paper was never learned: the stiffest one was assumed throughout")
    late = int(np.count_nonzero(delays > TOUCH_MARK))
    if late:
        remarks.append(
            f"{late} of {len(delays)} touches {'was' if late == 1 else 'were'} found later than {TOUCH_MARK:.0f} ms "
            f"after contact, the slowest after {delays.max():.0f}"
        )
    for stroke in in_air:
        remarks.append(
            f"a touch was felt in the air in stroke {stroke}, the paper was not found: noise or bias of the force "
            "beyond what the controller expects"
        )
    return remarks


def _start(robot: Robot, plan: DrawingPlanLike, paper: Body) -> Array:
    """Joints (n,) of the pen before anything moves: at the plan's beginning, or above the real paper if that is higher.

    No pen waits inside the paper.
    """
    reference = plan.at(0.0)
    assert reference.T is not None
    normal = plan.canvas.T_base_canvas[:3, 2]
    start = reference.T[:3, 3]
    gap = float((start - paper.T[:3, 3]) @ paper.T[:3, 2])
    lift = max(0.0, ABOVE - gap) if gap < ABOVE_LEAST else 0.0
    q = np.array(reference.q)
    goal = start + lift * normal
    for _ in range(NEWTON if lift else 0):
        away = np.concatenate((goal - robot.pose(q)[:3, 3], np.zeros(3)))
        q = q + np.linalg.lstsq(robot.jacobian(q), away, rcond=None)[0]
    return q


def touch_delays(log: Log, force: Array) -> Array:
    """ms from the first sample with true contact to the sample at which the controller knew, for each touch.

    Negative where it was mistaken and the pen touched only afterwards; none where it never touched.
    """
    mode, time = log["mode"], log.time
    begins = np.flatnonzero((mode[1:] == MODES.index("settle")) & (mode[:-1] == MODES.index("touch"))) + 1
    delays = []
    for i in begins:
        if force[i] > 0.0:
            off = np.flatnonzero(force[:i] <= 0.0)
            first = int(off[-1]) + 1 if len(off) else 0
        else:
            on = np.flatnonzero(force[i:] > 0.0)
            if not len(on):
                continue
            first = int(i + on[0])
        delays.append(1e3 * float(time[i] - time[first]))
    return np.array(delays)


def felt_in_air(log: Log, force: Array) -> list[int]:
    """Strokes, counted from 1, for which the pen pressed (settled, drew) without ever truly touching."""
    pressing = (log["mode"] == MODES.index("settle")) | (log["mode"] == MODES.index("draw"))
    pressed = set(log["stroke"][pressing].astype(int).tolist())
    return sorted(pressed - set(log["stroke"][pressing & (force > 0.0)].astype(int).tolist()))


def _tip(log: Log) -> Array:
    return log["T_true"].reshape(-1, 3, 4)[:, :, 3]


def _rms(values: Array) -> float | None:
    return float(np.sqrt(np.mean(values**2))) if len(values) else None


def _largest(values: Array) -> float | None:
    return float(np.max(values)) if len(values) else None


def _sensor(sensor: SensorName | WrenchSensor, scale: float, seed: int) -> WrenchSensor | None:
    if isinstance(sensor, WrenchSensor):
        return sensor
    if sensor == "ideal":
        return WrenchSensor.ideal(NOISE_WRENCH * scale, seed)
    preset = WrenchSensor.preset(sensor, seed)
    return None if preset is None else replace(preset, noise=np.asarray(preset.noise) * scale)
