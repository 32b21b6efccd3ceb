"""What a run is given, in the forms that people write it: sources, observers, detector, start and end."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tangere import foreign
from tangere.errors import InvalidValue, TangereError
from tangere.kernels.shapes import like_degrees
from tangere.logs.log import Log
from tangere.logs.recordings import Recording, cleaned, read
from tangere.observe.detect import Detector, Thresholds
from tangere.plants.replay import ReplaySource
from tangere.robots import Robot
from tangere.settings import numbers
from tangere.types import Detector as AnyDetector
from tangere.types import Observer, Plant, Reference, State, Trajectory


def parts_of(
    source: Any, observers: Any, detector: Any, robot: Robot | None
) -> tuple[Any, dict[str, Observer], AnyDetector | None]:
    """Source, observers by their column and detector of a run, from what it was given.

    A file is read. A recording without observer and detector is watched as `tangere.watch` does it without a model,
    where the arm is known (robot); else it is replayed, currents turned into torque by the arm's gains.
    """
    named = watchers(observers, None, None)[0]
    if isinstance(source, str | os.PathLike):
        source = read(source)
    if isinstance(source, Log):
        arms = [robot, *(getattr(observer, "robot", None) for observer in named.values())]
        known = next((arm for arm in arms if isinstance(arm, Robot)), None)
        if robot is not None and not named and detector is None:
            return _watched(cleaned("recording", source, ""), robot)
        source = ReplaySource.of(source.columns) if "tau" in source else _in_torque(source, known)
    elif isinstance(source, Recording):
        return parts_of(source.log, observers, detector, robot)
    if not hasattr(source, "read"):
        what = "a plant, a recording (Log or file), or an object with start, read and close"
        raise InvalidValue(f"source: {what}, got {source!r}")
    return source, *watchers(observers, detector, getattr(source, "dof", None))


def watchers(observers: Any, detector: Any, dof: int | None) -> tuple[dict[str, Observer], AnyDetector | None]:
    """Observers by their column, and the detector, of an arm of `dof` joints (None: not known yet)."""
    named = _named(observers)
    for observer in named.values():
        _refuse_other("observers", observer, dof)
    if detector is None:
        return named, None
    if not named:
        raise InvalidValue("detector: it watches the residual of an observer, give observers=MomentumObserver(robot)")
    felt = _detector(detector, 6 if dof is None else dof)
    count = getattr(getattr(felt, "thresholds", None), "dof", dof)
    if dof is not None and count != dof:
        raise InvalidValue(f"detector: it has thresholds of {count} joints, the arm has {dof}")
    return named, felt


def no_command(answer: Any, n: int) -> InvalidValue | None:
    """What is wrong with a controller's answer; None where it is a Command with n torques."""
    tau: Any = getattr(answer, "tau", None)
    if np.shape(tau) == (n,):
        return None
    got = "None" if answer is None else f"{type(answer).__name__} of shape {np.shape(answer if tau is None else tau)}"
    return InvalidValue(f"step() must return tangere.Command(tau) with {n} torques, got {got}")


def _watched(recording: Recording, robot: Robot) -> tuple[Any, dict[str, Observer], AnyDetector]:
    from tangere.identification.belief import belief
    from tangere.loop.follow import StreamSource, watching  # which run the loop themselves

    source = StreamSource(recording.rows(), robot, belief(robot), robot.model.payload, name=recording.name)
    return source, {"residual": source.observer}, watching(source)


def _in_torque(log: Log, robot: Robot | None) -> ReplaySource:
    """A recording of currents, or of torques without gravity, as samples in Nm."""
    if robot is None or not {"actual_current", "actual_current_as_torque"} & set(log.columns):
        return ReplaySource.of(log.columns)  # which says what is missing
    from tangere.identification.touch_logs import touch_log  # not needed where there are torques

    recording = cleaned("recording", log, "")
    found = touch_log(recording, robot)
    motion = found.motion
    return ReplaySource(motion.time, motion.q, motion.qd, motion.tau, recording.log.get("wrench"), found.qd_des)


def _named(observers: Sequence[Observer] | Mapping[str, Observer] | Observer) -> dict[str, Observer]:
    """Column name -> observer."""
    given: Any = observers
    if not isinstance(given, Mapping):
        given = [given] if hasattr(given, "update") or not isinstance(given, Sequence) else given
        given = {str(i + 1): observer for i, observer in enumerate(given)}
    for observer in given.values():
        if not (hasattr(observer, "reset") and hasattr(observer, "update")):
            raise InvalidValue(f"observers: one, or several, each with reset and update, got {observer!r}")
        _refuse_class("observers", observer)
    return {"residual" if i == 0 else f"residual_{name}": one for i, (name, one) in enumerate(given.items())}


def _detector(given: Any, dof: int) -> AnyDetector:
    """As it is, or of thresholds, or of one constant threshold [Nm]."""
    if isinstance(given, Thresholds):
        return Detector(given)
    if isinstance(given, float | int | str):
        return Detector(Thresholds.constant(seconds_or(given, "detector", "Nm"), dof=dof))
    if not hasattr(given, "update"):
        raise InvalidValue(f"detector: a detector, thresholds, or one threshold [Nm] for all joints, got {given!r}")
    _refuse_class("detector", given)
    known: AnyDetector = given
    return known


def seconds_or(given: Any, name: str, unit: str = "s") -> float:
    """A number, with its unit or without."""
    (value,) = numbers(given, name, unit, (1,)) if isinstance(given, str) else (given,)
    return float(value)


def end_of(until: Any, trajectory: Trajectory | None, controller: Any, plant: Plant | None) -> float:
    """When the run ends at the latest [s]; inf: the controller or the source knows."""
    if until is None and trajectory is not None and not hasattr(controller, "finished"):
        until = trajectory.duration
    if until is None and (plant is None or hasattr(controller, "finished")):
        return inf
    if isinstance(until, str):
        until = seconds_or(until, "until")
    if until is None or not (isfinite(until) and until > 0.0):
        raise InvalidValue(
            f"until: positive and finite [s], or a trajectory that ends, or a controller with `finished`, got {until!r}"
        )
    return float(until)


def _refuse_class(name: str, given: Any) -> None:
    if isinstance(given, type):
        raise InvalidValue(f"{name}: the class {given.__name__} was given, not one of it; write {given.__name__}(...)")


def _refuse_other(name: str, part: Any, dof: int | None) -> None:
    """Raise for a part that believes in an arm of another number of joints."""
    arm = getattr(part, "robot", None)
    if isinstance(arm, Robot) and dof is not None and arm.dof != dof:
        raise InvalidValue(f"{name}: {type(part).__name__} is for {arm.name} with {arm.dof} joints, the arm has {dof}")


def refuse_controller(controller: Any, plant: Plant | Robot | None) -> None:
    """Raise where it cannot control: a plant without one, a class, another arm's, one without start, step or stop."""
    if controller is None:
        if plant is not None:
            raise InvalidValue("controller: a plant needs one, or nothing moves it on; recordings and streams do not")
        return
    name = controller.__name__ if isinstance(controller, type) else type(controller).__name__
    missing = [method for method in ("start", "step", "stop") if not callable(getattr(controller, method, None))]
    if missing == ["start", "step", "stop"]:
        raise InvalidValue(f"controller: an object with start, step and stop, got {foreign.shown(controller)}")
    if missing:
        raise InvalidValue(
            f"controller: {name} has no {' and no '.join(missing)}; it needs start(state), step(state) and stop(), "
            "which may do nothing (pass)"
        )
    _refuse_class("controller", controller)
    _refuse_other("controller", controller, getattr(plant, "dof", None))


def refuse_reaction(reaction: Any) -> None:
    """Raise for what cannot be told of a touch, before there is one."""
    if reaction is None:
        return
    if not callable(getattr(reaction, "on_event", None)):
        what = "an object with on_event(event), mostly the controller itself"
        raise InvalidValue(f"reaction: {what}, got {foreign.shown(reaction)}")
    _refuse_class("reaction", reaction)


def started(source: Any, plant: Any, start: ArrayLike | Reference | None, trajectory: Trajectory | None) -> State:
    """The first sample; a plant is placed."""
    if plant is None:
        state: State = source.start()
        return state
    if start is None and trajectory is None:
        raise InvalidValue("start: where the plant is placed (n,) [rad], or a trajectory that starts somewhere")
    if isinstance(start, Reference):
        state = plant.reset(start.q, start.qd)
    elif start is None and trajectory is not None:
        state = plant.reset(trajectory.at(0.0).q)
    else:
        q, arm = np.asarray(start, dtype=np.float64), getattr(plant, "robot", None)
        if isinstance(arm, Robot) and q.shape == (arm.dof,) and (why := like_degrees(arm, q)):
            raise InvalidValue(f"start: {why}")
        state = plant.reset(q)
    return state


def raised_at(problem: Exception) -> str:
    """File and line of somebody's own code that raised it; nothing for what this library or another says."""
    libraries = (Path(__file__).parent.parent, Path(os.__file__).parent, Path(np.__file__).parent.parent)
    frames = traceback.extract_tb(problem.__traceback__)
    theirs = [f for f in frames if not any(place in Path(f.filename).parents for place in libraries)]
    if isinstance(problem, TangereError) or not theirs:
        return ""
    return f" ({type(problem).__name__} in {Path(theirs[-1].filename).name}, line {theirs[-1].lineno})"
