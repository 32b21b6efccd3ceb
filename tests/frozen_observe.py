"""Cases of tests/frozen_numbers.py: isolation, detection and identification."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from test_detect import _events, _push
from test_detect import _thresholds as made_up
from test_identify import _drive, _motion
from test_isolation import SD, push
from test_observe_compare import run as observed
from test_smoothing import _motion as _recorded
from test_smoothing import _smooth
from watched_logs import ROBOT as WATCHED
from watched_logs import columns_of, log_of, model_of

import tangere
from tangere.identification import identify, prior_drive
from tangere.identification.belief import belief
from tangere.identification.findings import sentences
from tangere.identification.recorder import smoothing
from tangere.identification.touch_logs import drive_gains
from tangere.loop.tuning import tuning
from tangere.loop.watching import watch
from tangere.model.link_shapes import link_surfaces
from tangere.model.loading import names
from tangere.model.model import Payload
from tangere.observe.compare import all_observers
from tangere.observe.detect import Detector, FreeMotion, tune
from tangere.observe.detect.refine import felt, sticking
from tangere.observe.isolation import ContactIsolator, tool_wrench
from tangere.observe.isolation_added import added
from tangere.observe.isolation_evidence import explain, placed
from tangere.robots import Robot


def rounded(value: Any, step: float) -> Any:
    """To a whole number of steps."""
    return None if value is None else np.round(np.asarray(value) / step).astype(int)


def isolation() -> dict[str, Any]:
    """200 seeded pushes: the hypothesis with the most evidence (link, point, evidence); of 40 the whole answer."""
    rng = np.random.default_rng(71)
    robot = tangere.robot("ur10e")
    isolator, skin = ContactIsolator(robot, spacing=0.04), link_surfaces(robot.model, 0.01)
    best, answers = [], []
    white = np.diag(1.0 / SD)
    for k in range(200):
        q = rng.uniform(-math.pi, math.pi, 6)
        size = float(rng.uniform(30.0, 120.0))
        link, _, _, tau = push(robot, skin, rng, q, size)
        residual = tau + SD * rng.standard_normal(6)
        patches = placed(robot, q, isolator.surfaces)
        found = explain(patches, isolator.prior, white, residual)
        top = int(np.argmax(found.log_evidence))
        others = found.log_evidence[found.patch != found.patch[top]]
        # the first link is round and feels one torque only: patches that explain it alike name no point
        tie = len(others) and found.log_evidence[top] - others.max() < 1e-6
        best.append([
            link, patches.link[found.patch[top]],
            None if tie else [found.patch[top], *rounded(found.point[top], 1e-5)],
            round(float(found.log_evidence[top]), 6), round(float(found.misfit[top]), 6),
            round(float(found.point_sd[top]), 8), round(float(found.size_sd[top]), 6), len(found.patch),
        ])  # fmt: skip
        if k % 5 == 0:
            one = isolator.isolate(q, residual, SD**2)
            answers.append([
                one.link, one.reason, round(one.probability, 8), rounded(one.point, 1e-5), rounded(one.force, 1e-4),
                round(one.explained, 8), one.wrench is not None,
                [[c.link, round(c.probability, 8)] for c in one.alternatives],
            ])  # fmt: skip
    return {"best": best, "answers": answers}


def wrenches() -> dict[str, Any]:
    """Tool wrenches with noise scaled to just within and just beyond each of the two limits, and in between."""
    robot, rng = tangere.robot("ur10e"), np.random.default_rng(72)
    rows = {}
    shapes = {"force": np.array([1, 1, 1, 0.1, 0.1, 0.1]), "moment": np.array([0.1, 0.1, 0.1, 1, 1, 1])}
    for name, shape in shapes.items():
        for k in range(4):
            q, r = rng.uniform(-2.0, 2.0, 6), 10.0 * rng.standard_normal(6)
            low, high = 1e-4, 1e4  # the scale at which the answer turns into a refusal
            for _ in range(60):
                middle = math.sqrt(low * high)
                given = tool_wrench(robot, q, r, np.diag((middle * shape * SD) ** 2)) is not None
                low, high = (middle, high) if given else (low, middle)
            one = tool_wrench(robot, q, r, np.diag((0.999 * low * shape * SD) ** 2))
            assert one is not None
            rows[f"{name} {k}"] = {"limit": low, "wrench": one.wrench, "sd": np.sqrt(np.diag(one.covariance))}
    return rows


def contact_added() -> dict[str, Any]:
    """What a contact added to a residual of a moving arm, with and without stiction; and of two samples."""
    robot, rng = tangere.robot("ur10e"), np.random.default_rng(73)
    t = np.arange(-1.0, 1.5, 0.01)
    q = 0.4 * np.sin(np.outer(t, np.arange(1, 7) / 3.0)) - 0.8
    qd = 0.4 * np.cos(np.outer(t, np.arange(1, 7) / 3.0)) * np.arange(1, 7) / 3.0
    y = 0.5 * np.sin(q) + 0.3 * rng.standard_normal(q.shape)
    y[(t > 0.1) & (t < 0.7)] += np.array([4.0, 9.0, 6.0, 1.0, 0.5, 0.1])
    spread, hidden = np.array([1.0, 1.0, 0.6, 0.2, 0.2, 0.2]), np.abs(qd) < 0.1
    return {
        "plain": added(robot, t, y, q, qd, 0.1, spread),
        "hidden": added(robot, t, y, q, qd, 0.1, spread, hidden=hidden * spread, gain_error=0.07),
        "two": added(robot, t[110:112], y[110:112], q[110:112], qd[110:112], 0.1, spread),
        "one": added(robot, t[110:111], y[110:111], q[110:111], qd[110:111], 0.1, spread),
    }


def free(seconds: float, seed: int, rate: float = 100.0) -> FreeMotion:
    """Residual of a motion that nobody touched: noise behind a lag, louder while moving; joints stand at times."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    qd = 0.5 * np.sin(np.outer(t, np.array([0.7, 0.9, 1.1, 1.3, 1.7, 2.3])) + rng.uniform(0.0, 6.0, 6))
    qd[(t % 30.0) > 22.0] = 0.0
    noise = rng.standard_normal((len(t), 6)) * np.array([0.5, 0.6, 0.4, 0.1, 0.1, 0.1]) * (1.0 + 2.0 * np.abs(qd))
    a, r = math.exp(-50.0 / rate), np.zeros_like(noise)
    for k in range(1, len(t)):
        r[k] = a * r[k - 1] + (1.0 - a) * noise[k]
    return FreeMotion(t, r, qd)


def thresholds() -> dict[str, Any]:
    """Untuned thresholds of each arm; tuned ones, whole, from 30 s, 2 min and 10 min at different rates."""
    rows: dict[str, Any] = {}
    for name in names():
        robot = tangere.robot(name)
        if robot.dof == 6:
            table = belief(robot).thresholds.to_table()
            rows[name] = {k: v for k, v in table.items() if k not in ("logs", "model")}
    drive = prior_drive(tangere.robot("ur10e"))
    for seconds, rate, pace in ((30.0, 0.1, 100.0), (120.0, 1.0, 50.0), (600.0, 0.1, 20.0)):
        rows[f"tuned {seconds:g} s"] = tune([free(seconds, 5, pace)], rate, drive=drive).to_table()
    rows["tuned without a drive"] = tune([free(60.0, 6), free(40.0, 7)], 0.5).to_table()
    return rows


def held_up() -> dict[str, Any]:
    """Thresholds as `tangere tune` writes them from 40 s: rate of the log, floors of an arm that nobody tuned."""
    model = model_of()
    logs = [log_of(columns_of(20.0, 100.0, seed=seed), model, f"free_{seed}") for seed in (2, 3)]
    done = tuning(WATCHED, logs, belief(WATCHED, model), 0.1)
    return {"table": done.model.detection, "doubts": done.doubts}


def feeling() -> dict[str, Any]:
    """felt and sticking over time."""
    rng = np.random.default_rng(74)
    t = np.cumsum(rng.uniform(0.006, 0.014, 120))
    qd = 0.06 * np.sin(np.outer(t, [3.0, 5.0, 9.0, 2.0, 1.0, 4.0]) + np.arange(6.0)) + 0.01
    y = np.minimum(t / 0.3, 1.0)[:, None] * np.array([3.0, 8.0, 4.0, 0.5, 0.5, 0.1]) + rng.standard_normal((120, 6))
    spread, stiction = np.full(6, 0.7), np.full(6, 3.0)
    return {
        "sticking": np.round(sticking(t, qd)[::3], 12),
        "felt": [felt(t[:m], y[:m], qd[:m], spread, stiction) for m in (1, 5, 30, 80, 120)],
    }


def events() -> dict[str, Any]:
    """Every field of the events of made-up residuals and of a watched log."""
    robot = tangere.robot("ur10e")
    time = np.arange(0.0, 16.0, 0.004)
    both = _push(time, 3.0, 3.2, 12.0) + _push(time, 6.0, 9.0, 7.0, joint=3, rise=0.4) + _push(time, 12.0, 14.0, 1.5, 4)
    plain = _events(both, time, detector=Detector(made_up(), robot=robot))
    log = log_of(columns_of(6.0, 200.0, push=(3.0, 4.0, 45.0)), model_of())
    seen = watch(log, belief(WATCHED, model_of()), isolate=True)
    return {"made up": [dataclasses.asdict(e) for e in plain], "watched": [dataclasses.asdict(e) for e in seen.events]}


def _whole(model: Any) -> dict[str, Any]:
    return {
        "drive": model.drive, "values": model.values, "sigma": model.sigma, "told": model.told, "moved": model.moved,
        "findings": sentences(model.findings), "doubts": model.doubts, "scale": model.scale, "before": model.before,
        "after": model.after, "following": model.following, "payload": model.payload,
    }  # fmt: skip


def identified() -> dict[str, Any]:
    """Whole models of simulated arms: widths other than the default; a payload; gains known for some joints only."""
    base = tangere.robot("ur3e")
    wide = dataclasses.replace(_drive(), width=np.array([0.05, 0.08, 0.04, 0.1, 0.06, 0.05]))
    true = Robot(dataclasses.replace(base.model, payload=Payload(0.6, np.array([0.01, 0.0, 0.05]), 8e-4 * np.eye(3))))
    links = identify(base, [_motion(true, wide, seed, 8.0) for seed in (1, 2)], held_out=[_motion(true, wide, 9, 4.0)])
    touched = _motion(true, wide, 3, 8.0)
    touched.tau[1000:3000] += np.array([20.0, 20.0, 10.0, 5.0, 5.0, 5.0])
    payload = identify(base, [touched], inertial="payload")
    late = _motion(true, _drive(), 4, 8.0)
    late = dataclasses.replace(late, tau=np.concatenate((late.tau[:8], late.tau[:-8])))
    some = np.array([12.0, 12.0, 10.0, np.nan, np.nan, np.nan])
    partly = identify(base, [dataclasses.replace(late, tau=late.tau * 1.3)], inertial="none", gain=some)
    return {"links": _whole(links), "payload": _whole(payload), "partly": _whole(partly)}


def gains() -> dict[str, Any]:
    """Gains with sigma of targets that were rounded to 2 and 3 digits, some joints without load."""
    rng = np.random.default_rng(75)
    n = 400
    moment = np.repeat(rng.uniform(5.0, 50.0, (4, 6)), n // 4, axis=0)
    moment[:, 0] = 0.0
    current = np.round(moment / np.array([12.0, 11.0, 10.0, 9.0, 8.0, 7.0]), 2)
    moment = np.round(moment, 3)
    moment[:, 5] += 4.0 * rng.standard_normal(n)
    speed = np.zeros((n, 6))
    speed[:: n // 4] = 0.5  # it moves from one pose to the next
    found = drive_gains(current, moment, speed)
    return dataclasses.asdict(found)


def smoothings() -> dict[str, Any]:
    """The cutoff that is found of logs smoothed at different ones, and of one that was not."""
    robot, raw = tangere.robot("ur3e"), _recorded(1)
    found = {f"{cutoff} Hz": smoothing(robot, [_smooth(raw, cutoff)]) for cutoff in (1.7, 2.3, 4.0)}
    return {"none": smoothing(robot, [raw]), **found}


def observers() -> dict[str, Any]:
    """Residuals of every observer around the onset of a push, every 20th sample, with a model 10 % off and noise."""
    robot = tangere.robot("ur10e", rotor_inertia=True)
    samples = observed(robot, mass=1.1)[0][2800:3200]
    rows = {}
    for name, observer in all_observers(robot).items():
        observer.reset(samples[0])
        rows[name] = np.array([np.array(observer.update(s)) for s in samples[1:]])[::20]
    return rows


CASES = {
    "isolation": isolation, "wrenches": wrenches, "contact_added": contact_added, "thresholds": thresholds,
    "held_up": held_up, "feeling": feeling, "events": events, "identified": identified, "gains": gains,
    "smoothings": smoothings, "observers": observers,
}  # fmt: skip
