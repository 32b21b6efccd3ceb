"""Watching logs: pushes put into simulated logs are found, what is not known is said, thresholds are learned."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from watched_logs import ROBOT, START, TORQUE, N, columns_of, log_of, model_of, tuned_model

import tangere
from tangere.apps.touch.watch_command import summary
from tangere.errors import InvalidValue, ModelFileError
from tangere.identification import IdentifiedModel, prior_drive, read_model
from tangere.identification.belief import Belief, belief, learned, read, with_own_friction, with_stated_payload
from tangere.logs.log import Log
from tangere.logs.recordings import Recording, recordings
from tangere.loop.tuning import tuning
from tangere.loop.watching import Watched, watch
from tangere.model.model import Payload
from tangere.observe.detect import PayloadChange, Thresholds, wanted
from tangere.observe.friction_state import MEMORY


@pytest.fixture(scope="module")
def tuned() -> IdentifiedModel:
    return tuned_model()


def _watched(columns: dict[str, np.ndarray], model: IdentifiedModel | None = None, **masks: object) -> Watched:
    return watch(log_of(columns, model), belief(ROBOT, model), **masks)  # type: ignore[arg-type]


# finding a push ------------------------------------------------------------------------------------------------------


def test_a_push_is_found_without_a_model_and_without_free_alarms_around_it() -> None:
    seen = _watched(columns_of(push=(3.0, 4.0, TORQUE)))
    (event,) = seen.alarms
    assert event.joint == 2
    assert 53.0 <= event.time_s < 53.1  # five time constants of the observer
    assert abs(event.onset_s - 53.0) <= 0.02  # some samples of 5 ms: the noise is small
    assert event.end_s == pytest.approx(54.0, abs=0.1)
    # the observer's last 40 ms before the end, of a step of which 99 % are there after 0.1 s
    assert event.peak_nm[1] == pytest.approx(TORQUE, rel=0.05)


def test_free_motion_raises_nothing(tuned: IdentifiedModel) -> None:
    columns = columns_of(20.0, seed=9)
    for model in (None, tuned):
        seen = _watched(columns, model)
        assert seen.events == ()
        assert seen.seconds == pytest.approx(19.7, abs=0.02)  # 0.3 s settle first


def test_a_tuned_model_finds_a_fifth_of_what_the_prior_needs(tuned: IdentifiedModel) -> None:
    columns = columns_of(push=(3.0, 4.0, 0.2 * TORQUE), seed=4)
    assert _watched(columns).alarms == ()
    (event,) = _watched(columns, tuned).alarms
    assert event.joint == 2
    assert event.onset_s == pytest.approx(53.0, abs=0.03)


def test_the_traces_cross_their_bounds_where_the_events_are_and_nowhere_else() -> None:
    seen = _watched(columns_of(push=(3.0, 4.0, TORQUE)))
    t, traces = seen.log.motion.time, seen.traces
    over = (np.abs(traces.level) > traces.level_bound) | (np.abs(traces.change) > traces.change_bound)
    (event,) = seen.events
    assert over.any()
    crossed = t[over.any(axis=1)]
    assert event.onset_s <= crossed[0] <= event.time_s + 0.05  # a faster channel may have raised it
    assert event.end_s is not None
    assert crossed[-1] <= event.end_s + 0.3
    assert np.isnan(traces.level[0]).all()
    assert np.isnan(traces.level_bound[t < 50.2]).all()


def test_the_residual_is_the_push(tuned: IdentifiedModel) -> None:
    seen = _watched(columns_of(push=(3.0, 4.0, TORQUE)), tuned)
    at = np.searchsorted(seen.log.motion.time, 53.5)
    np.testing.assert_allclose(seen.residual[at], [0, TORQUE, 0, 0, 0, 0], atol=0.3)  # 0.02 Nm noise, h^2 of beta


# masks ---------------------------------------------------------------------------------------------------------------


def test_what_is_wanted_raises_no_alarm_and_only_then(tuned: IdentifiedModel) -> None:
    columns = columns_of(8.0, push=(3.0, 4.0, 0.3 * TORQUE))
    again = columns_of(8.0, push=(6.0, 7.0, 0.3 * TORQUE))
    columns["tau"] = np.where((columns["time"] >= 55.0)[:, None], again["tau"], columns["tau"])
    assert [e.alarm for e in _watched(columns, tuned).events] == [True, True]
    masks = [wanted(N, factor=np.inf, start=52.0, end=54.5), wanted(N, (5, 6), start=55.5, end=58.0)]
    first, second = _watched(columns, tuned, wanted=masks).events
    assert (first.kind, first.alarm) == ("wanted", False)
    assert second.alarm  # joints 5 and 6 are wanted then, joint 2 is not
    # a contact that goes on after its window is an alarm then
    going_on = [wanted(N, factor=np.inf, start=52.0, end=53.5)]
    first, _ = _watched(columns, tuned, wanted=going_on).events
    assert (first.kind, first.alarm, first.first_kind) == ("push", True, "wanted")
    changes = [PayloadChange(52.0, 54.5)]
    first, second = _watched(columns, tuned, payload_changes=changes).events
    assert (first.kind, first.alarm, second.alarm) == ("payload", False, True)


# what is believed ----------------------------------------------------------------------------------------------------


def test_a_model_of_another_arm_is_refused() -> None:
    with pytest.raises(ModelFileError, match="ur10e"):
        belief(tangere.robot("ur5e"), model_of())


def test_thresholds_come_from_the_file_or_from_the_drive_model(tuned: IdentifiedModel) -> None:
    assert not belief(ROBOT).tuned
    assert not belief(ROBOT, model_of()).tuned
    found = belief(ROBOT, tuned)
    assert found.tuned
    assert np.all(found.thresholds.level[0] < belief(ROBOT).thresholds.level[0])
    np.testing.assert_allclose(np.diag(found.robot.mass_matrix(START) - ROBOT.mass_matrix(START)),
                               found.drive.rotor_inertia, rtol=1e-12)  # fmt: skip


def test_the_payload_that_the_log_states_counts_where_nobody_says_another() -> None:
    columns = columns_of(load=5.0)
    columns["payload"] = np.full(len(columns["time"]), 5.0)
    columns["payload_cog"] = np.zeros((len(columns["time"]), 3))
    log = log_of(columns)
    own, said = with_stated_payload(belief(ROBOT), log)
    assert own.robot.model.payload is not None
    assert own.robot.model.payload.mass == 5.0
    assert "5 kg" in str(said[0])
    assert watch(log, own).events == ()
    bare = watch(log, belief(ROBOT))  # without it the mass is felt all the time: 5 kg at 1 m
    assert np.nanmax(np.abs(bare.residual[:, 1])) > 30.0
    other, said = with_stated_payload(belief(ROBOT, payload=Payload(1.0, np.zeros(3))), log)
    assert other.robot.model.payload is not None
    assert other.robot.model.payload.mass == 1.0
    assert "states a payload of 5 kg" in str(said[0])


def test_too_short_a_log_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"too short to watch: 0.295 s, 0.5 s"):
        _watched(columns_of(0.3))


def test_samples_too_far_apart_are_said() -> None:
    seen = _watched(columns_of(30.0, rate=5.0))
    assert seen.seconds == 0.0
    assert seen.events == ()
    assert "further apart" in seen.said[0]
    assert seen.traces.nearest is None
    quiet = _watched(columns_of(5.0))
    score, joint = quiet.traces.nearest or (0.0, 0)
    assert score == np.nanmax(quiet.traces.score)
    assert f"no alarms in {quiet.seconds:.1f} s, largest score {score:.2g} of 1 on joint {joint}\n" in summary([quiet])
    assert summary([seen, quiet]).startswith(f"{seen.log.name}: nothing could be watched\n")  # not: no alarms in 0.0 s


# tuning --------------------------------------------------------------------------------------------------------------


def test_tuning_promises_keeps_quiet_on_its_logs_and_survives_the_file(tmp_path: Path) -> None:
    logs = [log_of(columns_of(20.0, seed=seed), model_of(), f"free_{seed}") for seed in (2, 3)]
    done = tuning(ROBOT, logs, belief(ROBOT, model_of()), 1.0)
    assert done.doubts == ()
    assert [seen.events for seen in done.logs] == [(), ()]
    assert done.thresholds.rate == 1.0
    assert done.thresholds.hours == pytest.approx(2 * 19.8 / 3600.0, rel=0.01)
    assert [name for name, _ in done.thresholds.logs] == ["free_2", "free_3"]
    done.model.write(tmp_path / "tuned.toml")
    again = belief(ROBOT, read_model(tmp_path / "tuned.toml")).thresholds
    for name in ("level", "change", "impact", "shock", "spread", "correlation"):
        np.testing.assert_array_equal(getattr(again, name), getattr(done.thresholds, name))
    assert tangere.robot("ur10e", parameters=tmp_path / "tuned.toml").name == "ur10e"  # still a parameter set


def test_tuning_says_what_cannot_be_promised_and_what_does_not_look_free() -> None:
    touched = log_of(columns_of(20.0, push=(9.0, 10.0, TORQUE)), model_of(), "touched")
    done = tuning(ROBOT, [touched], belief(ROBOT, dataclasses.replace(model_of(), logs=(("touched", "0" * 64),))), 1e-3)
    assert any("cannot be promised" in note for note in done.thresholds.notes)
    assert any("touched: looks touched 9.0" in text for text in done.doubts)
    assert any("used to identify" in text for text in done.doubts)
    with pytest.raises(InvalidValue, match="identified model"):
        tuning(ROBOT, [touched], belief(ROBOT), 0.1)
    with pytest.raises(InvalidValue, match="at least one log"):
        tuning(ROBOT, [], belief(ROBOT, model_of()), 0.1)


def test_little_free_motion_keeps_a_share_of_the_untuned_thresholds() -> None:
    wide = belief(ROBOT, model_of()).thresholds
    for seconds, share in ((10.0, 1.0 - 9.7 / 60.0), (30.0, 1.0 - 29.7 / 60.0)):
        log = log_of(columns_of(seconds, seed=2), model_of())
        done = tuning(ROBOT, [log], belief(ROBOT, model_of()), 0.1).thresholds
        np.testing.assert_allclose(done.level[0], share * wide.level[0], rtol=1e-3)  # free motion alone teaches less
        np.testing.assert_allclose(done.impact[0], 0.25 * wide.impact[0])  # of jolts they have shown too few
        assert any("are little" in note for note in done.notes)
    long = tuning(ROBOT, [log_of(columns_of(61.0, rate=100.0), model_of())], belief(ROBOT, model_of()), 0.1).thresholds
    assert np.all(long.level[0] < 0.2 * wide.level[0])
    assert not any("are little" in note for note in long.notes)


def test_the_friction_of_the_day_is_followed_and_a_push_is_not_taken_for_it() -> None:
    """Coulomb friction 3 Nm above its law on joint 2: found in seconds; during an event it is only forgotten."""
    drive = dataclasses.replace(model_of().drive, level_sigma=np.full(N, 2.0), level_noise=np.full(N, 1.0))
    model = dataclasses.replace(model_of(), drive=drive)
    level = 3.0
    for push in (None, (8.0, 12.0, TORQUE)):
        columns = columns_of(20.0, seed=4, push=push)
        turned = np.tanh(columns["qd"][:, 1] / drive.width[1])
        columns["tau"][:, 1] += level * turned
        believed = belief(ROBOT, model)
        plain = dataclasses.replace(believed, drive=dataclasses.replace(drive, level_sigma=np.zeros(N)))
        seen, raw = watch(log_of(columns, model), believed), watch(log_of(columns, model), plain)
        assert bool(seen.alarms) == (push is not None)
        away = (np.abs(turned) > 0.99) & (columns["time"] > 64.0)
        assert np.median(np.abs(raw.residual[away, 1])) == pytest.approx(level, rel=0.05)  # it lags by 20 ms
        # P = 4, noise 1: after 10 s of motion a level is known to 0.3 Nm, and a tenth of it is not learned yet
        assert np.median(np.abs(seen.residual[away, 1])) < 0.5
    event = seen.alarms[-1]
    assert event.end_s is not None
    assert event.end_s - event.time_s > 2.0
    first, last = (int(np.searchsorted(columns["time"], t)) for t in (event.time_s + 0.05, event.end_s - 0.05))
    taken = ((seen.residual - raw.residual)[:, 1] / turned)[[first, last]]
    forgotten = np.exp(-np.ptp(columns["time"][[first, last]]) / MEMORY)
    assert taken[1] == pytest.approx(taken[0] * forgotten, abs=0.005)  # looks are 10 ms apart, tanh is of now


def test_a_frictionless_arm_is_watched_without_a_model() -> None:
    """Simulated arms: what the type's friction would take off looks like a push all along, and is not taken off."""
    for push in (None, (3.0, 4.0, TORQUE)):
        columns = columns_of(push=push)
        columns["tau"] -= prior_drive(ROBOT).friction(columns["q"], columns["qd"], ROBOT.gravity_torque(columns["q"]))
        for seconds in (1.2, 6.0):  # too short for identification, and long enough
            if push is not None and seconds < 6.0:
                continue
            part = {name: values[: round(200.0 * seconds)] for name, values in columns.items()}
            log, own = learned(log_of(part), ROBOT)
            assert len(watch(log, own).alarms) == (push is not None)
            alone = with_own_friction(belief(ROBOT), log_of(part))  # what a log that teaches nothing, or a stream, has
            assert np.all(alone.drive.coulomb < 0.3 * prior_drive(ROBOT).coulomb)
            np.testing.assert_array_equal(alone.thresholds.level, belief(ROBOT).thresholds.level)
            assert len(watch(log_of(part), alone).alarms) == (push is not None)


def test_a_joint_that_only_creeps_keeps_the_friction_of_its_type(data_dir: Path) -> None:
    """Joint 3 of a UR3e at 0.005 rad/s: its Coulomb friction, not taken off, looked like a push from 0.5 s on."""
    robot = tangere.robot("ur3e")
    (run,) = recordings(f"{data_dir}/ur3e_runs/ur3e_runs_500Hz.npz:jtraj__trayectoria_044", rate=500.0)
    log, own = learned(read(run, robot), robot)
    known = prior_drive(robot).coulomb
    assert own.drive.coulomb[2] == known[2]
    assert np.all(own.drive.coulomb[[0, 1, 3, 4]] != known[[0, 1, 3, 4]])  # moved: learned
    assert [event.kind for event in watch(log, own, isolate=False).events] == ["stop"]


def test_a_belief_is_a_value() -> None:
    found = belief(ROBOT)
    assert isinstance(found, Belief)
    assert isinstance(found.thresholds, Thresholds)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.drive = prior_drive(ROBOT)  # type: ignore[misc]


def test_a_payload_that_is_given_counts_in_the_check_of_gravity_too() -> None:
    """The model knows of no payload; the arm carries 12 kg, and whoever watches says so."""
    columns, model = columns_of(load=12.0), model_of()
    record = Recording("log", Log(columns), (), "0" * 64)
    loaded = tangere.robot("ur10e", payload=12.0)
    assert read(record, loaded, model).misfit
    assert read(record, loaded, model, loaded.model.payload).misfit == ()


def test_a_promise_for_another_rate_is_said(tuned: IdentifiedModel) -> None:
    """Tuned with 100 samples per second."""
    assert Thresholds.from_table(dict(tuned.detection)).sampled == pytest.approx(100.0)
    for rate, said in ((100.0, False), (140.0, False), (200.0, True), (50.0, True)):
        seen = _watched(columns_of(rate=rate), tuned)
        assert any("samples per second" in text for text in seen.said) == said, rate
    assert not _watched(columns_of(rate=200.0), None).said  # nothing was promised


def test_a_belief_says_what_its_tuned_thresholds_say_of_themselves() -> None:
    tuned = tuned_model()
    detection = {**tuned.detection, "notes": ["learned from an hour of free motion"]}
    said = belief(ROBOT, dataclasses.replace(tuned, detection=detection)).notes
    assert any("learned from an hour of free motion" in str(text) for text in said)
