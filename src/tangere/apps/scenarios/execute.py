"""A scenario run into a folder: log, manifest, summary; and run again from its manifest."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tangere.apps.scenarios.impacts import REMARK, encounters, measured
from tangere.apps.scenarios.scenarios import Built, build, keys_of, push_of
from tangere.apps.scenarios.shares import error_shares
from tangere.apps.scenarios.wall_circle import REMARKS, force_summary
from tangere.control.computed_torque import ComputedTorque
from tangere.control.operational_space import OperationalSpace
from tangere.errors import InvalidValue
from tangere.logs.log import Log
from tangere.logs.mcap_read import read_mcap
from tangere.loop.folder import LOG, cleared
from tangere.loop.manifest import Manifest, load_manifest, write_manifest
from tangere.loop.result import RunResult, Told
from tangere.loop.run import Progress, run
from tangere.loop.summary import SETTLED, summarise
from tangere.plants.pushes import Push, PushForce


@dataclass(frozen=True)
class Executed:
    """A run that has been made, and the folder that holds it."""

    built: Built
    result: RunResult
    summary: dict[str, Any]
    folder: Path


def execute(
    scenario: str,
    given: Mapping[str, Any],
    pushes: Sequence[Push | PushForce] = (),
    *,
    out: str | os.PathLike[str],
    command: Sequence[str] = (),
    progress: Progress | None = None,
    paced: bool = False,
) -> Executed:
    """Build the scenario, run it, leave log.mcap, log.csv, manifest.json and, last, summary.json in the folder."""
    built = build(scenario, given, tuple(pushes))
    folder = cleared(out)
    told = {"scenario": scenario, **built.settings, "push": [_plain(push) for push in pushes]}
    models = {"plant": built.world.true, "controller": built.world.believed}
    seeds = {"seed": built.settings["seed"]}
    units = {key: setting.unit for key, setting in keys_of(scenario).items() if setting.unit}
    manifest = Manifest.of(command, told, seeds=seeds, models=models, units=units)
    write_manifest(manifest, folder)
    duration = built.settings["duration"]
    if duration is None:
        duration = built.motion.trajectory.duration
    result = run(
        built.plant, built.controller, built.observers, until=duration, trajectory=built.motion.trajectory,
        detector=built.detector, reaction=built.motion.reaction, log=folder / LOG,
        joints=[j.name for j in built.world.true.model.joints], progress=progress, paced=paced,
    )  # fmt: skip
    summary = summary_of(built, result)
    result = replace(result, told=Told(scenario, manifest, summary, built.world.true))
    result.save(folder, report=False)
    return Executed(built, result, summary, folder)


def summary_of(built: Built, result: RunResult) -> dict[str, Any]:
    """The numbers of summary.json, with the thresholds and the shares of a wrong model."""
    touched = measured(built, result) if built.name == "touch" and len(result.log) else None
    met = () if touched is None else encounters(touched, result)
    summary = summarise(
        result, pushes=(*built.pushes, *met), settle=built.motion.settle, robot=built.world.true,
        gain=built.settings["observer_gain"],
    )  # fmt: skip
    summary["step_us"]["bare_mj_step"] = bare_step(built.plant)
    blocks = {"plant": built.settings["plant"], "observer": "momentum", "detection": "threshold"}
    summary["blocks"] = {**blocks, **built.motion.blocks}
    world = built.world
    if built.name == "wall-circle" and len(result.log) and "wrench_true" in result.log:
        summary["force"] = force_summary(result.log, built.settings["force"], built.motion.settle, world.true)
        summary["remark"] = REMARKS[built.settings["pose"]]
    if touched is not None:
        summary["touch"], summary["remark"] = asdict(touched), REMARK
        if touched.contact_ms < 1e3 * SETTLED / float(np.min(built.settings["observer_gain"])):
            for event in summary["events"]:  # over before the residual could settle: no mean says anything
                event["torque_nm"] = event["true_torque_nm"] = None
    follows_kp = isinstance(built.motion.controller, ComputedTorque | OperationalSpace)  # others give way by springs
    if follows_kp and len(result.log) and all(name in result.log for name in ("q_des", "qdd_des", "T_des")):
        shares = (result.log, world.true, world.believed, world.friction, world.believed_friction)
        summary["shares"] = error_shares(*shares, built.settings["kp"], built.motion.settle)
    return summary


def bare_step(plant: Any) -> float | None:
    """Median time [us] of MuJoCo's own step on the model of the run, at its last state; None without MuJoCo."""
    model, data = getattr(plant, "model", None), getattr(plant, "data", None)
    if model is None or data is None:
        return None
    import mujoco

    own, times = copy(data), []
    for _ in range(1000):
        begin = perf_counter()
        mujoco.mj_step(model, own)
        times.append(perf_counter() - begin)
    return 1e6 * float(np.median(times))


def _plain(push: Push | PushForce) -> dict[str, Any]:
    """A push as data that push_of reads back; one without end has no duration."""
    return {name: value for name, value in asdict(push).items() if value != math.inf}


def again(folder: str | os.PathLike[str], *, progress: Progress | None = None) -> tuple[Executed, Log]:
    """The run of a folder made once more, in a temporary folder, and the log that the folder holds."""
    manifest = load_manifest(folder)
    told = dict(manifest.scenario)
    if "scenario" not in told:
        raise InvalidValue(f"{folder}: the manifest names no scenario, it cannot be run again")
    name, pushes = told.pop("scenario"), tuple(push_of(p) for p in told.pop("push", ()))
    kept = read_mcap(Path(folder) / LOG)
    place = tempfile.mkdtemp(prefix="tangere-rerun-")
    try:
        return execute(name, told, pushes, out=place, command=manifest.command, progress=progress), kept
    finally:
        shutil.rmtree(place, ignore_errors=True)


# columns that are measured time, not part of what is computed
CLOCK = ("cost", "cost_log", "lateness", "cpu")


def difference(one: Log, other: Log) -> str:
    """"" if every column is the same bit by bit (the clock's aside); else the first that is not."""
    for name in dict.fromkeys((*one.columns, *other.columns)):
        if name in CLOCK:
            continue
        if name not in one:
            return f"column {name}: none against {other[name].shape}"
        if name not in other or one[name].shape != other[name].shape:
            return f"column {name}: {one[name].shape} against {other[name].shape if name in other else 'none'}"
        same = np.array_equal(one[name].view(np.uint64), other[name].view(np.uint64))
        if not same:
            row = int(np.argmax(np.any(np.atleast_2d((one[name] != other[name]).T).T, axis=-1)))
            return f"column {name} from {one.time[row]:.6f} s on"
    return ""
