"""A scenario run into a folder: log, manifest, summary; and run again from its manifest."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tangere.apps.scenarios.build import Built, build
from tangere.apps.scenarios.common import Findings, Scenario
from tangere.apps.scenarios.shares import error_shares
from tangere.control.computed_torque import ComputedTorque
from tangere.control.operational_space import OperationalSpace
from tangere.errors import InvalidValue
from tangere.logs.log import Log
from tangere.logs.mcap_read import read_mcap
from tangere.loop.folder import LOG, Manifest, cleared, load_manifest, scratch, write_manifest
from tangere.loop.result import RunResult, Told
from tangere.loop.run import Progress, run
from tangere.loop.summary import summarise
from tangere.plants.pushes import Push, PushForce
from tangere.settings import plain, settings_of


@dataclass(frozen=True)
class Executed:
    """A run that has been made, and the folder that holds it."""

    built: Built
    result: RunResult
    summary: dict[str, Any]
    folder: Path


def execute(
    scenario: str | Scenario,
    given: Mapping[str, Any],
    pushes: Sequence[Push | PushForce] = (),
    *,
    out: str | os.PathLike[str],
    command: Sequence[str] = (),
    progress: Progress | None = None,
    paced: bool = False,
    csv: bool | None = None,
) -> Executed:
    """Build the scenario, run it, leave log.mcap, log.csv, manifest.json and, last, summary.json in the folder.

    csv: whether log.csv is written; where not said, if it is small (RunResult.save).
    """
    built = build(scenario, given, pushes)
    folder = cleared(out)
    told = {"scenario": built.scenario.name, **plain(built.settings)}
    told["push"] = told.pop("push")  # at the end: a list in a table of numbers
    models = {"plant": built.world.true, "controller": built.world.believed}
    seeds = {"seed": built.settings.seed}
    units = {name: one.unit for name, one in settings_of(type(built.settings)).items() if one.unit}
    manifest = Manifest.of(command, told, seeds=seeds, models=models, units=units)
    write_manifest(manifest, folder)
    result = run(
        built.plant, built.controller, built.observers, until=built.duration, trajectory=built.motion.trajectory,
        detector=built.detector, reaction=built.motion.reaction, log=folder / LOG,
        joints=[j.name for j in built.world.true.model.joints], progress=progress, paced=paced,
    )  # fmt: skip
    summary = summary_of(built, result)
    result = replace(result, told=Told(built.scenario.name, manifest, summary, built.world.true))
    result.save(folder, report=False, csv=csv)
    return Executed(built, result, summary, folder)


def summary_of(built: Built, result: RunResult) -> dict[str, Any]:
    """The numbers of summary.json, with the thresholds, the shares of a wrong model and the scenario's own part."""
    settings, world, log = built.settings, built.world, result.log
    own = Findings({}) if built.scenario.findings is None else built.scenario.findings(built, result)
    summary = summarise(
        result, pushes=(*built.pushes, *own.touched), settle=built.motion.settle, robot=world.true,
        gain=settings.observer_gain,
    )  # fmt: skip
    summary["step_us"]["bare_mj_step"] = bare_step(built.plant)
    blocks = {"plant": settings.plant, "observer": "momentum", "detection": "threshold"}
    summary["blocks"] = {**blocks, **built.motion.blocks}
    summary |= own.entries
    if not own.settled:
        for event in summary["events"]:
            event["torque_nm"] = event["true_torque_nm"] = None
    follows_kp = isinstance(built.motion.controller, ComputedTorque | OperationalSpace)  # others give way by springs
    if follows_kp and len(log) and all(name in log for name in ("q_des", "qdd_des", "T_des")):
        shares = (log, world.true, world.believed, world.friction, world.believed_friction)
        summary["shares"] = error_shares(*shares, settings.kp, built.motion.settle)
    if built.notes:
        summary["notes"] = list(built.notes)
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


def again(folder: str | os.PathLike[str], *, progress: Progress | None = None) -> tuple[Executed, Log]:
    """The run of a folder made once more, in a temporary folder, and the log that the folder holds."""
    manifest = load_manifest(folder)
    told = dict(manifest.scenario)
    if "scenario" not in told:
        raise InvalidValue(f"{folder}: the manifest names no scenario, it cannot be run again")
    kept = read_mcap(Path(folder) / LOG)
    with scratch() as place:
        return execute(told.pop("scenario"), told, out=place, command=manifest.command, progress=progress), kept
