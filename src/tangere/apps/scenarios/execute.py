"""A scenario run into a folder: log, manifest, summary; and run again from its manifest."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tangere import ends, foreign
from tangere.apps.scenarios.build import SIMULATED, Built, OnArm, build
from tangere.apps.scenarios.common import Findings, Scenario
from tangere.control.computed_torque import ComputedTorque
from tangere.control.operational_space import OperationalSpace
from tangere.control.setpoint import critical, gain
from tangere.errors import InvalidValue
from tangere.logs.files import Attempts
from tangere.logs.log import Log
from tangere.logs.mcap_read import read_mcap
from tangere.loop.folder import LOG, OURS, SUMMARY, Claim, Manifest, load_manifest, scratch, write_manifest
from tangere.loop.result import RunResult, Told
from tangere.loop.run import Progress, run
from tangere.loop.sinks import Sink
from tangere.loop.summary import joined_mean, summarise
from tangere.plants.pushes import Fault, Push, push_record
from tangere.plants.scene.bodies import Body
from tangere.robots import Robot
from tangere.settings import plain, settings_of
from tangere.types import Array

SETTLING = 0.2  # s: ten time constants of an observer with 50 1/s


class _Friction(Protocol):
    def torque(self, qd: Array, /) -> Array:
        """(..., n) Nm for qd (..., n)."""


def error_shares(
    log: Log,
    true: Robot,
    believed: Robot,
    friction: _Friction | None,
    believed_friction: _Friction | None,
    kp: ArrayLike,
    settle: float = 0.0,
    kv: ArrayLike | None = None,
) -> dict[str, Any]:
    """Error of the tool [mm rms] that each difference between plant and model alone would leave along the reference.

        edd + kv ed + kp e = Mhat^-1 ((M - Mhat) qdd + (C - Chat) qd + (g - ghat) + friction - believed friction)

    with e = q_des - q; kp, kv: one or n, kv None: 2 sqrt(kp). Each term on the right drives the computed-torque loop
    by itself, from rest; J e is its error at the tool. kinematics: how far the true arm's tool is from the path when
    the joints are where they should be. The causes add up as vectors, not as numbers: together_mm is the rms of their
    sum, to be compared with the error that was measured. Samples before `settle` [s] do not count. To first order in e;
    pushes and torque limits are not in it.
    """
    squares: dict[str, list[Any]] = {}  # cause -> mean of the squares of its error, part by part
    rows, loop = [], _Response(kp, kv, log.shapes()["q_des"], 3)
    for part in log.pieces():
        errors = _errors(part, true, believed, friction, believed_friction, loop)
        after = part.time >= settle
        rows += [int(after.sum())] if after.any() else []
        for cause, error in errors.items():
            squares.setdefault(cause, [])
            squares[cause] += [np.mean(np.sum(error[after] ** 2, axis=1))] if after.any() else []
    return {cause: float(1e3 * np.sqrt(joined_mean(means, rows))) if rows else 0.0 for cause, means in squares.items()}


def _errors(
    log: Log,
    true: Robot,
    believed: Robot,
    friction: _Friction | None,
    believed_friction: _Friction | None,
    loop: _Response,
) -> dict[str, Array]:
    """Error of the tool (N, 3) [m] by its cause, of some rows that follow those before."""
    q, qd, qdd = log["q_des"], log["qd_des"], log["qdd_des"]
    Mhat = believed.mass_matrix(q)
    gravity = true.gravity_torque(q) - believed.gravity_torque(q)
    rubbing = np.zeros_like(qd)
    for sign, law in ((1.0, friction), (-1.0, believed_friction)):
        if law is not None:
            rubbing = rubbing + sign * law.torque(qd)
    causes = {
        "inertia_mm": true.inverse_dynamics(q, qd, qdd) - believed.inverse_dynamics(q, qd, qdd) - gravity,
        "gravity_mm": gravity,
        "friction_mm": rubbing,
    }
    J = true.jacobian(q)[:, :3]
    drives = [np.linalg.solve(Mhat, torque[..., None])[..., 0] for torque in causes.values()]
    lags = np.split(loop.to(log.time, np.concatenate(drives, axis=1)), len(drives), axis=1)  # all in one pass
    # the tool lags where the joints lag
    errors = {cause: -(J @ e[..., None])[..., 0] for cause, e in zip(causes, lags, strict=True)}
    errors["kinematics_mm"] = true.pose(q)[:, :3, 3] - log.position("T_des")
    errors["together_mm"] = np.sum(list(errors.values()), axis=0)
    return errors


class _Response:
    """e (N, k n) of edd + kv ed + kp e = drive, from rest; drive (N, k n): k drives side by side, held for a sample.

    Semi-implicit steps with both gains implicit: stable at any step, first order (1 % at 1 ms and kp = 100).
    """

    def __init__(self, kp: ArrayLike, kv: ArrayLike | None, n: int, k: int) -> None:
        stiff = gain(kp, n, "kp")
        damp = critical(stiff) if kv is None else gain(kv, n, "kv")
        self._kp, self._kv = np.tile(stiff, k), np.tile(damp, k)
        self._e, self._rate = np.zeros(k * n), np.zeros(k * n)
        self._last: float | None = None  # [s] the stamp before

    def to(self, time: Array, drive: Array) -> Array:
        """The response to the next samples."""
        kp, kv, e, rate = self._kp, self._kv, self._e, self._rate
        out = np.empty_like(drive)
        for k, h in enumerate(np.diff(time, prepend=time[:1] if self._last is None else self._last)):
            rate = (rate + h * (drive[k] - kp * e)) / (1.0 + h * kv + h * h * kp)
            e = e + h * rate
            out[k] = e
        self._e, self._rate, self._last = e, rate, float(time[-1])
        return out


@dataclass(frozen=True)
class Executed:
    """A run that has been made, and the folder that holds it."""

    built: Built
    result: RunResult
    summary: dict[str, Any]
    folder: Path
    claim: Claim  # nobody else writes into the folder while this is here
    attempt: Attempts  # which of its files could be written


def execute(
    scenario: str | Scenario,
    given: Mapping[str, Any],
    pushes: Sequence[Push] = (),
    *,
    out: str | os.PathLike[str],
    command: Sequence[str] = (),
    progress: Progress | None = None,
    paced: bool = False,
    csv: bool | None = None,
    fresh: bool = False,
    durable: bool = False,
    arm: OnArm | None = None,
    before: Callable[[Built], None] | None = None,
    sinks: Sequence[Sink] = (),
) -> Executed:
    """Build the scenario, run it, leave log.mcap, log.csv, manifest.json and, last, summary.json in the folder.

    csv: whether log.csv is written; where not said, if it is small (RunResult.save). fresh: an earlier run there stays,
    the folder is out-2, out-3, ... (Claim). What cannot be written is in `attempt`. arm: a live one in place of the
    simulated one. before: called when all is checked, before the run. sinks: who sees it meanwhile.
    """
    built = build(scenario, given, pushes, arm)
    if before is not None:
        before(built)
    claim = Claim(out, OURS, fresh=fresh)
    folder = claim.path
    told = {"scenario": built.scenario.name, **plain(built.settings)}
    told["push"] = told.pop("push")  # at the end: a list in a table of numbers
    told = {name: value for name, value in told.items() if name not in ("fault", "tool") or value}
    if arm is not None:
        told = {"arm": arm.host} | {name: value for name, value in told.items() if name not in SIMULATED}
    models = {"plant": built.world.true, "controller": built.world.believed}
    seeds = {"seed": built.settings.seed}
    units = {name: one.unit for name, one in settings_of(type(built.settings)).items() if one.unit}
    units |= {name: built.world.believed.units(units[name]) for name in ("q", "threshold") if name in units}
    default = {name: one.default for name, one in settings_of(type(built.settings)).items()}
    changed = tuple(name for name in default if getattr(built.settings, name) != default[name])
    things = getattr(getattr(built.plant, "scene", None), "bodies", ())
    manifest = Manifest.of(
        command, told, seeds=seeds, models=models, units=units, did=built.scenario.did, changed=changed,
        bodies=tuple(_thing(body) for body in things),
    )  # fmt: skip
    write_manifest(manifest, folder)
    ends.hold()
    result = run(
        built.plant, built.controller, built.observers, until=built.duration, trajectory=built.motion.trajectory,
        detector=built.detector, reaction=built.motion.reaction, log=folder / LOG,
        joints=[j.name for j in built.world.true.model.joints], progress=progress, paced=paced,
        durable=durable, sinks=sinks,
    )  # fmt: skip
    summary = summary_of(built, result)
    if arm is not None:
        live: Any = built.plant
        summary["blocks"]["plant"] = f"arm {arm.host}"
        summary["arm"] = {
            "host": arm.host, "frames": live.frames, "late_frames": live.late, "late_share": live.late_share,
            "lost_samples": live.lost,
        }  # fmt: skip
        summary["notes"] = [*summary.get("notes", ()), *result.said]
    result = replace(result, told=Told(built.scenario.name, manifest, summary, built.world.true))
    attempt = Attempts()
    result.save(folder, report=False, csv=csv, attempt=attempt)
    return Executed(built, result, summary, folder, claim, attempt)


def _thing(body: Body) -> dict[str, Any]:
    """A body as a page draws it: name, kind, and its parts in the base frame."""
    parts = [
        {"kind": part.kind, "size": list(part.size), "T": (body.T @ part.T)[:3].ravel().tolist()}
        for part in body.shape.parts()
    ]
    return {"name": body.name, "kind": body.kind, "mass": body.mass, "parts": parts}


def summary_of(built: Built, result: RunResult) -> dict[str, Any]:
    """The numbers of summary.json, with the thresholds, the shares of a wrong model and the scenario's own part."""
    settings, world, log = built.settings, built.world, result.log
    own = Findings({}) if built.scenario.findings is None else built.scenario.findings(built, result)
    summary = summarise(
        result, pushes=(*built.pushes, *settings.fault, *own.touched), settle=built.motion.settle, robot=world.true,
        gain=settings.observer_gain,
    )  # fmt: skip
    summary["step_us"]["bare_mj_step"] = bare_step(built.plant)
    blocks = {"plant": settings.plant, "observer": "momentum", "detection": "threshold"}
    summary["blocks"] = {**blocks, **built.motion.blocks}
    summary |= own.entries
    if not own.settled:
        for event in summary["events"]:
            event["torque_nm"] = event["true_torque_nm"] = None
    alike = np.ndim(settings.kp) == 0 and np.ndim(0.0 if settings.kv is None else settings.kv) == 0
    follows_kp = isinstance(built.motion.controller, ComputedTorque) or (  # others give way by springs
        isinstance(built.motion.controller, OperationalSpace) and alike  # else they are of axes, not of joints
    )
    if follows_kp and len(log) and all(name in log for name in ("q_des", "qdd_des", "T_des")):
        shares = (log, world.true, world.believed, world.friction, world.believed_friction)
        summary["shares"] = error_shares(*shares, settings.kp, built.motion.settle, settings.kv)
    if settings.fault:
        summary["faults"] = [_fault_told(fault, summary["events"]) for fault in settings.fault]
    if settings.acceleration_residual:
        first = min((x.start for x in (*built.pushes, *settings.fault)), default=math.inf)
        summary["residual_noise_nm"] = residual_noise(log, first)
    if built.notes:
        summary["notes"] = list(built.notes)
    return summary


def residual_noise(log: Log, until: float) -> dict[str, list[float]]:
    """Standard deviation by joint [Nm] of each observer's residual while nothing pushes, from 0.2 s on."""
    rows = (log.time >= SETTLING) & (log.time < until)
    others = [name for name in log.columns if name.startswith("residual_")]
    names = {"residual": "momentum"} | {name: name.removeprefix("residual_") for name in others}
    return {word: np.std(log[name][rows], axis=0).tolist() for name, word in names.items()} if rows.any() else {}


def _fault_told(fault: Fault, events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What became of a fault: when it was felt, how large it looked, what it was called, and why not a fault."""
    end = fault.start + fault.duration
    since = [e for e in events if e["joint"] == fault.joint and fault.start <= e["time_s"] <= end]
    record = push_record(fault)
    if not since:
        return {**record, "felt_ms": None, "felt_nm": None, "kind": None, "why": "it was not felt"}
    named = [e for e in since if e["kind"] == "fault"]
    best = named[0] if named else since[0]
    why = "" if named else (
        "a push on that joint alone looks the same: it takes a second and more of motion to tell a drive from it"
    )
    felt = 1e3 * (since[0]["time_s"] - fault.start)
    return {**record, "felt_ms": felt, "felt_nm": best["torque_nm"], "kind": best["kind"], "why": why}


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


def interrupted(folder: str | os.PathLike[str]) -> str:
    """How a run was stopped from outside (a signal, a kill), "" if it came to an end of its own."""
    try:
        summary = foreign.loads(foreign.read_bytes(Path(folder) / SUMMARY, foreign.TEXT_MAX), folder)
    except InvalidValue:
        return "killed before its end"
    aborted = str(summary.get("aborted", "")) if isinstance(summary, dict) else ""
    return aborted if aborted.startswith("interrupted") else ""


def again(folder: str | os.PathLike[str], *, progress: Progress | None = None) -> tuple[Executed, Log]:
    """The run of a folder made once more, in a temporary folder, and the log that the folder holds."""
    manifest = load_manifest(folder)
    told = dict(manifest.scenario)
    if not isinstance(told.get("scenario"), str):
        raise InvalidValue(f"{folder}: the manifest names no scenario, it cannot be run again")
    if "arm" in told:
        raise InvalidValue(f"{folder}: a run on the arm {told['arm']}, which no simulation repeats bit by bit")
    kept = read_mcap(Path(folder) / LOG)
    with scratch() as place:
        return execute(told.pop("scenario"), told, out=place, command=manifest.command, progress=progress), kept
