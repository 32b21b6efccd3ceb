"""identify, tune and watch on the reference logs of our own twin (simulated_logs.py): they are there on every clone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from simulated_logs import COLUMNS, FILE, FRICTION, RATE, STOPS, TOUCHES, logs

import tangere
from tangere.identification.belief import belief, learned
from tangere.identification.findings import Finding, Kind
from tangere.identification.identify_logs import Identification, identification
from tangere.identification.touch_logs import TouchLog, touch_log
from tangere.logs.recordings import recordings
from tangere.loop.tuning import tuning
from tangere.loop.watching import Watched, watch
from tangere.robots import Robot

ROBOT = tangere.robot("ur5e")
LATEST = 0.08  # [s] after the onset by which a touch of some 50 N is told without any model


def _read(key: str) -> TouchLog:
    (recording,) = recordings(f"{FILE}:{key}", columns=COLUMNS, rate=RATE)
    return touch_log(recording, ROBOT)


def _watched(key: str) -> Watched:
    log, believed = learned(_read(key), ROBOT)
    return watch(log, believed)


def _identified(*keys: str, hold_out: str = "0") -> Identification:
    sources = [f"{FILE}:{key}" for key in keys]
    return identification(ROBOT, sources, columns=COLUMNS, rate=RATE, inertial="none", hold_out=hold_out)


@pytest.fixture(scope="module")
def free() -> Identification:
    return _identified("free")


@pytest.fixture(scope="module")
def both() -> Identification:
    return _identified("free", "touched")


def test_the_file_is_what_the_twin_makes() -> None:
    with np.load(FILE) as file:
        assert sorted(file) == ["free", "stop", "touched"]
        for key, made in logs().items():
            np.testing.assert_array_equal(file[key], made.astype(np.float32))
    assert FILE.stat().st_size < 400_000  # bytes: it is in every clone


def test_every_touch_is_felt_and_nothing_else() -> None:
    seen = _watched("touched")
    assert len(seen.alarms) == len(seen.events) == len(TOUCHES)
    for event, (start, end, link, force) in zip(seen.events, TOUCHES, strict=True):
        assert start <= event.time_s <= start + LATEST
        assert event.onset_s == pytest.approx(start, abs=0.03)
        assert event.kind == ("push" if end - start > 0.5 else "collision")
        assert event.end_s == pytest.approx(end, abs=0.1)
        if event.link is not None:
            assert event.link == link
            assert event.force is not None
            assert np.linalg.norm(event.force) == pytest.approx(np.linalg.norm(force), rel=0.15)


def test_free_motion_and_stops_are_no_touches() -> None:
    assert _watched("free").events == ()
    stopped = _watched("stop")
    assert stopped.alarms == ()
    assert [event.kind for event in stopped.events] == ["stop"] * len(STOPS)
    for event, at in zip(stopped.events, STOPS, strict=True):
        assert at <= event.time_s <= at + LATEST


def test_friction_is_found(free: Identification) -> None:
    drive = free.model.drive
    np.testing.assert_allclose(drive.coulomb, FRICTION.coulomb, rtol=0.1)
    speed = np.full(6, 0.5)  # [rad/s] where the motion is: Coulomb and viscous terms trade at their ends
    np.testing.assert_allclose(drive.torque(speed), FRICTION.torque(speed), rtol=0.03)
    assert free.model.findings == ()
    assert np.all(free.model.after < 0.3 * free.model.before)


def test_touched_stretches_are_left_out_said_and_not_learned(free: Identification, both: Identification) -> None:
    (found,) = both.model.findings
    assert found.kind == "touched"
    assert found.sentence.startswith("touched: looks touched: joint ")
    assert "left out" in found.sentence
    assert any("left out" in text for text in both.used[1].problems)  # the page says it beside the log
    out = both.used[1].motion.free
    assert out is not None
    time = both.used[1].motion.time
    for start, end, _, _ in TOUCHES:
        if end - start > 1.2:  # the long pushes go whole
            assert not np.any(out[(time > start) & (time < end)])
    assert 0.5 < np.mean(out) < 0.9  # and most of the log stays
    speed = np.full(6, 0.5)
    np.testing.assert_allclose(both.model.drive.torque(speed), FRICTION.torque(speed), rtol=0.03)
    # judged on free motion: as if nobody had touched it; with the touches it would be ten times as much in some joint
    np.testing.assert_allclose(both.model.after, free.model.after, rtol=0.25)


def test_judges_are_judged_on_free_motion(free: Identification) -> None:
    judged = _identified("free", "touched", hold_out="touched")
    assert judged.model.unseen
    np.testing.assert_array_equal(judged.model.drive.coulomb, free.model.drive.coulomb)  # the same log taught it
    assert [found.kind for found in judged.model.findings] == ["touched"]
    np.testing.assert_allclose(judged.model.after, free.model.after, rtol=0.3)
    whole = dataclasses.replace(judged.judges[0].motion, free=None)
    assert np.all(judged.twin["identified"].median < 3e-3)  # [rad] after 200 ms
    assert np.isfinite(whole.tau).all()


def test_thresholds_of_free_logs_feel_the_touches(free: Identification) -> None:
    model, logs = free.model, [_read("free"), _read("stop")]
    done = tuning(Robot(ROBOT.model), logs, belief(ROBOT, model), 1.0)
    assert not any("touched" in text for text in done.doubts)
    seen = watch(_read("touched"), belief(ROBOT, done.model), isolate=False)
    assert len(seen.alarms) == len(TOUCHES)
    for event, (start, *_) in zip(seen.alarms, TOUCHES, strict=True):
        assert start <= event.time_s <= start + LATEST


@pytest.mark.parametrize(
    ("kind", "is_learned"),
    [("currents", False), ("other arm", False), ("better arm", True), ("misfit", True), ("gain", True)],
)
def test_nothing_is_learned_from_a_log_of_another_arm_or_unit(kind: Kind, is_learned: bool) -> None:
    """A slope that is merely off may be friction or a tool: then the log still tells its own friction."""
    log = dataclasses.replace(_read("free"), findings=(Finding(kind, "so it is"),))
    same, believed = learned(log, ROBOT)
    assert any("learned from this log itself" in text for text in believed.notes) == is_learned
    assert is_learned or same is log
