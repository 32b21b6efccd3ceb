"""Cases of tests/frozen_numbers.py: controllers, reactions, the pen's task and the plants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from test_control_force_touch import descent
from test_control_simulator import Wave, simulate
from test_reactions import KINDS, MOVE, ROBOT, Q, contact_at

from tangere.apps.drawing.drawing import CanvasError, Simulated, draw, drawing_robot
from tangere.apps.drawing.force.hybrid_force import speed_bandwidth
from tangere.apps.drawing.force.surface import (
    Found,
    StiffnessEstimate,
    blind_touch_speed,
    height_gains,
    hybrid_gains,
    touch_speed,
)
from tangere.apps.drawing.force.task import PenTask
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.plan import plan_drawing
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.control import CartesianImpedance, HandGuiding, JointImpedance, OperationalSpace, QuasiStatic
from tangere.control.computed_torque import ComputedTorque
from tangere.control.guard import Guarded
from tangere.dynamics.friction import JointFriction
from tangere.plants import MujocoPlant, Push, RigidPlant, Stuck, TorqueLoss
from tangere.plants.pushes import TorqueOffset
from tangere.plants.sensors import SensorModel, WithWrenchSensor, WrenchSensor
from tangere.types import Array, Command, Reference, State

TOUCH = 60  # period of the touch: 5 ms each
PERIOD = 5e-3


class Shifted:
    """A controller that is told times `by` later; what it is asked stays the same."""

    def __init__(self, inner: Any, by: float) -> None:
        self.inner, self.by = inner, by

    def later(self, state: State) -> State:
        parts = (state.q, state.qd, state.tau, state.wrench, state.tau_ext_hat)
        return State(state.time + self.by, state.period, *parts)

    def start(self, state: State) -> None:
        self.inner.start(self.later(state))

    def step(self, state: State) -> Command:
        return self.inner.step(self.later(state))  # type: ignore[no-any-return]

    def stop(self) -> None:
        self.inner.stop()


def reacting(kind: str, by: float = 0.0) -> Array:
    """Torque (N, 6) of a reaction to a touch on the way, guarded; the run begins at time `by`."""
    reaction = KINDS[kind]()
    guarded = Shifted(Guarded(reaction, ROBOT, period=PERIOD), by)

    def touch(k: int, state: State) -> State:
        if k == TOUCH:
            reaction.on_event(contact_at(guarded.later(state)))
        if k == TOUCH + 100 and hasattr(reaction, "resume"):
            reaction.resume()
        return state

    return simulate(ROBOT, guarded, Q, duration=1.1, period=PERIOD, measure=touch).tau


def _wave() -> Wave:
    return Wave(Q, [0.2, 0.1, 0.15, 0.2, 0.1, 0.3], [1.0, 1.3, 0.7, 1.6, 2.0, 0.9])


CONTROLLERS: dict[str, Callable[[], Any]] = {
    "computed torque": lambda: ComputedTorque(ROBOT, _wave()),
    "operational space": lambda: OperationalSpace(ROBOT, MOVE),
    "joint impedance": lambda: JointImpedance(ROBOT, _wave()),
    "cartesian impedance": lambda: CartesianImpedance(ROBOT, MOVE),
    "hand guiding": lambda: HandGuiding(ROBOT),
    "quasi static": lambda: QuasiStatic(ROBOT, np.array([4.0, -3.0, 8.0, 0.1, 0.2, 0.3])),
}


def controlled(kind: str, by: float = 0.0) -> Array:
    """Torque (N, 6) of a controller, guarded, on an arm that is pushed; some samples are broken."""

    def broken(k: int, state: State) -> State:
        q = state.q + (2.0 if k == 100 else 0.0)
        tau = np.full(6, np.nan) if k == 120 else state.tau
        return State(state.time, state.period, q, state.qd, tau, state.wrench)

    def push(time: float, q: Array) -> Array:
        return np.array([5.0, 20.0, -8.0, 1.0, 0.5, 0.2]) * (0.2 < time < 0.4)

    guarded = Shifted(Guarded(CONTROLLERS[kind](), ROBOT, period=PERIOD), by)
    return simulate(ROBOT, guarded, Q, duration=0.7, period=PERIOD, push=push, measure=broken).tau


def reactions() -> dict[str, Any]:
    """Torque of each reaction, every third sample."""
    return {kind: reacting(kind)[::3] for kind in KINDS}


def controllers() -> dict[str, Any]:
    """Torque of each controller, every third sample."""
    return {kind: controlled(kind)[::3] for kind in CONTROLLERS}


# ------------------------------------------------------------------------------------------------------------ the pen


class Line:
    """A plan of 30 mm: travel, approach, draw, lift, on the plane z = 0."""

    duration = 1.2

    def at(self, time: float) -> Reference:
        T = np.eye(4)
        height = 0.01 if time < 0.3 or time >= 1.0 else 0.0
        T[:3, 3] = (0.03 * min(max((time - 0.5) / 0.5, 0.0), 1.0), 0.0, height)
        zero = np.zeros(6)
        return Reference(zero, zero, zero, T, zero, zero)

    def phase(self, time: float) -> str:
        return "travel" if time < 0.3 else "approach" if time < 0.5 else "draw" if time < 1.0 else "lift"


def pen(
    stiffness: float,
    height: float,
    push: Callable[[float], tuple[float, float]],
    *,
    by: float = 0.0,
    listen: float = 0.02,
) -> Array:
    """A tip that follows the task over springy paper: (N, 8) mode, clock, rise, rate, force, stroke, found, lost.

    push(time): N added along the normal and sideways.
    """
    task = PenTask(Line(), np.eye(4), 5.0, listen=listen)
    task.approach(stiffness, stiffness, 3.0, blind=False)
    modes = ("free", "listen", "touch", "settle", "draw", "away")
    depth, rows = 0.0, []
    for k in range(6000):
        time = 1e-3 * k
        x, y, z = task.planned(task.reference)
        depth += 0.05 * ((task.force / stiffness if task.pressing else 0.0) - depth)
        z = height - depth if task.pressing else z + task.rise
        along, sideways = push(time)
        W = max(stiffness * (height - z), 0.0) + along
        task.update(by + time, 1e-3, (x, y, z), W, height, False, float(np.hypot(W, sideways)))
        rows.append((
            modes.index(task.mode), task.clock, task.rise, task.rise_rate, task.force, task.stroke,
            len(task.found.points), bool(task.lost),
        ))  # fmt: skip
        if task.finished:
            break
    return np.array(rows, dtype=float)


def _none(time: float) -> tuple[float, float]:
    return 0.0, 0.0


def _hit(along: float, sideways: float) -> Callable[[float], tuple[float, float]]:
    return lambda time: (along, sideways) if 0.9 < time < 0.95 else (0.0, 0.0)


PENS: dict[str, tuple[float, float, Callable[[float], tuple[float, float]]]] = {
    "hard": (1e5, 0.0, _none), "soft": (2e3, 0.0, _none), "high": (2e4, 0.004, _none),
    "pushed straight": (2e4, 0.0, _hit(30.0, 0.0)), "pushed sideways": (2e4, 0.0, _hit(0.0, 30.0)),
    "pushed both": (2e4, 0.0, _hit(30.0, 30.0)), "lightly": (2e4, 0.0, _hit(5.0, 5.0)),
}  # fmt: skip


def pens() -> dict[str, Any]:
    """Every 40th period, and how many there were."""
    rows = {name: pen(*given) for name, given in PENS.items()}
    return {name: {"periods": len(run), "rows": run[::40], "last": run[-1]} for name, run in rows.items()}


def force_parts() -> dict[str, Any]:
    """Stiffness estimates sample by sample, the touch statistic, the filter's crossovers, gains, touch speeds."""
    rng = np.random.default_rng(81)
    out: dict[str, Any] = {}
    for k in (2e3, 2e4, 1e5):
        estimate = StiffnessEstimate(0.1)
        rows = []
        for n in range(60):
            depth = 3e-6 * n * (2e4 / k)
            estimate.add(depth, k * depth + 0.1 * rng.standard_normal())
            rows.append((estimate.value, estimate.most))
            if n == 30:
                estimate.again()
        out[f"stiffness {k:g}"] = rows
    for name, given in {"touched": {"rate": 200.0, "at": 150}, "off": {"error": 0.1, "braking": 0.05}}.items():
        scores, found = descent(np.random.default_rng(82), steps=220, **given)  # type: ignore[arg-type]
        out[f"touch, {name}"] = {"scores": scores[::2], "found": found}
    robot = drawing_robot("ur5e")
    q = np.array([0.4, -1.3, 2.0, -2.2, -1.5, 0.3])
    out["bandwidth"] = [speed_bandwidth(robot, q, noise, 2e-3) for noise in (1e-3, 0.02, 0.1, 1.0)]
    out["hybrid gains"] = [hybrid_gains(k, 3.0, 60.0, 2e-3) for k in (2e3, 2e4, 1e5)]
    out["height gains"] = [height_gains(k, 3.0, 1e4, 200.0) for k in (2e3, 2e4, 1e5)]
    out["speeds"] = [(touch_speed(5.0, k, 3.0), blind_touch_speed(5.0, k, 3.0)) for k in (2e3, 2e4, 1e5)]
    found = Found()
    found.add((0.01, 0.02, 0.001))
    found.add((0.05, 0.0, -0.001))
    out["found"] = [(*found.expected(x, 0.01), found.lowest(x, 0.01)) for x in (0.0, 0.02, 0.04, 0.3)]
    return out


DRAWINGS: dict[str, dict[str, Any]] = {
    "hard": {"stage": Simulated(stiffness=1e5)},
    "soft": {"stage": Simulated(stiffness=2e3), "controller": "height-pi"},
    "tilted": {"stage": Simulated(canvas_error=CanvasError(0.002, 0.02))}, "no sensor": {"stage": Simulated("none")},
}  # fmt: skip


def drawings() -> dict[str, Any]:
    """Two short strokes on each paper: torque, mode, clock, forces every 40th period, and the summary."""
    robot = drawing_robot("ur5e")
    lines = (np.array([[-0.01, 0.0], [-0.004, 0.0]]), np.array([[0.004, 0.004], [0.004, -0.002]]))
    plan = plan_drawing(robot, Strokes(lines, (0.2, 0.2)), Canvas.table(robot))
    out = {}
    for name, given in DRAWINGS.items():
        done = draw(robot, plan, **given)
        log = done.log
        names = ("mode", "stroke", "clock", "force", "force_des", "tau", "wrench_true")
        rows = {column: log[column][::40] for column in names if column in log}
        told = {k: v for k, v in done.summary.items() if isinstance(v, int | float) and "realtime" not in k}
        out[name] = {"samples": len(log), **{k: np.round(v, 9) for k, v in rows.items()}, "summary": told}
    return out


# ------------------------------------------------------------------------------------------------------------- plants


def _driven(plant: Any) -> Array:
    state = plant.reset(Q, np.full(6, 0.1))
    rows = []
    for k in range(240):
        wave = np.array([20.0, 15.0, 9.0, 2.0, 1.5, 1.0]) * np.sin(k / 40)
        plant.write(Command(ROBOT.gravity_torque(state.q) + wave))
        state = plant.read()
        wrench = np.zeros(6) if state.wrench is None else state.wrench
        rows.append(np.concatenate(([state.time, state.period], state.q, state.qd, state.tau, wrench)))
    return np.array(rows)[2::12]


def _pushes() -> tuple[Any, ...]:
    """They begin and end between samples, on both sides of the middle of a period."""
    return (
        Push(2, 20.0, 0.05052, 0.05), Push(3, -9.0, 0.07048, 0.02004), Push(1, 7.0, 0.00051, 0.0304),
        Push(link=6, point=(0.0, 0.05, 0.02), force=(5, -4, 8), start=0.09, duration=0.0303),
    )  # fmt: skip


def plants() -> dict[str, Any]:
    """States of the rigid plant: pushes between samples, faults, lost samples, noise, the wrist's sensor."""
    faults = (TorqueLoss(3, 0.8, 0.0305), Stuck(5, 0.05052, 0.06), TorqueOffset(2, 5.0, 0.1005, 0.05))
    friction = JointFriction.of(ROBOT.drives)
    noisy = SensorModel.preset("ur10e", 1e-3, seed=3)
    return {
        "pushes": _driven(RigidPlant(ROBOT, pushes=_pushes())),
        "faults": _driven(RigidPlant(ROBOT, faults=faults, method="semi-implicit")),
        "friction": _driven(RigidPlant(ROBOT, friction=friction, substeps=2, sensors=noisy)),
        "lost": _driven(RigidPlant(ROBOT, sensors=SensorModel(loss=0.1, seed=4))),
        "wrench": _driven(WithWrenchSensor(RigidPlant(ROBOT, pushes=_pushes()), WrenchSensor.builtin(5))),
    }


def mujoco_plants() -> dict[str, Any]:
    """The same with MuJoCo."""
    faults = (TorqueLoss(3, 0.8, 0.0305), Stuck(5, 0.05052, 0.06))
    return {
        "pushes": _driven(MujocoPlant(ROBOT, pushes=_pushes())),
        "faults": _driven(MujocoPlant(ROBOT, faults=faults, friction=JointFriction.of(ROBOT.drives))),
    }


CASES = {
    "reactions": reactions, "controllers": controllers, "pens": pens, "force_parts": force_parts, "drawings": drawings,
    "plants": plants, "mujoco_plants": mujoco_plants,
}  # fmt: skip
