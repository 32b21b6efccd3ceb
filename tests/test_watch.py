"""Watching logs: pushes put into simulated logs are found, streams tell what files tell, thresholds are learned."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue, ModelFileError
from tangere.model.model import Payload
from tangere.observe.detect import PayloadChange, Thresholds, wanted
from tangere.observe.identify import IdentifiedModel, prior_drive, read_model
from tangere.observe.identify.excitation import Excitation
from tangere.run.follow import Follower, Notice, lines_of
from tangere.run.log import Log
from tangere.run.recordings import Recording
from tangere.run.touch_logs import TouchLog
from tangere.run.watch import (
    Belief,
    Watched,
    belief,
    learned,
    read,
    tuning,
    watch,
    with_own_friction,
    with_stated_payload,
)

N = 6
ROBOT = tangere.robot("ur10e")
START = np.array([0.4, -1.3, 1.5, -1.1, -1.2, 0.3])
TORQUE = 30.0  # Nm on joint 2: above the thresholds that the prior's uncertainty makes (19.7 moving)


def _columns(
    seconds: float = 6.0, rate: float = 200.0, seed: int = 1, push: tuple[float, float, float] | None = None,
    delay: float = 0.0, load: float = 0.0,
) -> dict[str, np.ndarray]:  # fmt: skip
    """A UR10e that moves smoothly and is pushed from, to [s] with Nm on joint 2; torque reported `delay` later."""
    robot = tangere.robot("ur10e", payload=load) if load else ROBOT
    drive, rng = prior_drive(ROBOT), np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    speed, phase, size = rng.uniform(0.5, 1.0, N), rng.uniform(0.0, 6.0, N), rng.uniform(0.15, 0.3, N)

    def torque(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        angle = t[:, None] * speed + phase
        q, qd, qdd = START + size * np.sin(angle), size * speed * np.cos(angle), -size * speed**2 * np.sin(angle)
        tau = robot.inverse_dynamics(q, qd, qdd) + drive.rotor_inertia * qdd
        tau += drive.friction(q, qd, robot.gravity_torque(q))
        if push is not None:
            tau[(t >= push[0]) & (t < push[1]), 1] -= push[2]  # the drive gives what the push takes away
        return q, qd, tau

    q, qd, _ = torque(t)
    tau = torque(t - delay)[2] + 0.02 * rng.normal(size=q.shape)
    return {"time": 50.0 + t, "q": q, "qd": qd, "tau": tau}


def _log(columns: dict[str, np.ndarray], model: IdentifiedModel | None = None, name: str = "log") -> TouchLog:
    return read(Recording(name, Log(columns), (), "0" * 64), ROBOT, model)


def _model(delay: float = 0.0) -> IdentifiedModel:
    """An identified model that happens to be right, and knows it."""
    drive = prior_drive(ROBOT)
    drive = dataclasses.replace(drive, spread=0.02 * drive.coulomb, delay=delay)
    return IdentifiedModel(
        "ur10e", "none", drive, ROBOT.model.links, None, (), np.zeros(0), np.zeros((0, 0)), (),
        Excitation(1.0, 0, 36), (), (True,) * N, before=np.ones(N), after=np.ones(N), scale=np.ones(N),
    )  # fmt: skip


def _tuned(delay: float = 0.0) -> IdentifiedModel:
    logs = [_log(_columns(31.0, 100.0, seed=seed, delay=delay), _model(delay), f"free_{seed}") for seed in (2, 3)]
    return tuning(ROBOT, logs, belief(ROBOT, _model(delay)), 0.1).model


def test_little_free_motion_keeps_a_share_of_the_untuned_thresholds() -> None:
    wide = belief(ROBOT, _model()).thresholds
    for seconds, share in ((10.0, 1.0 - 9.7 / 60.0), (30.0, 1.0 - 29.7 / 60.0)):
        done = tuning(ROBOT, [_log(_columns(seconds, seed=2), _model())], belief(ROBOT, _model()), 0.1).thresholds
        np.testing.assert_allclose(done.level[0], share * wide.level[0], rtol=1e-3)  # free motion alone teaches less
        assert any("are little" in note for note in done.notes)
    long = tuning(ROBOT, [_log(_columns(61.0, rate=100.0), _model())], belief(ROBOT, _model()), 0.1).thresholds
    assert np.all(long.level[0] < 0.2 * wide.level[0])
    assert not any("are little" in note for note in long.notes)


@pytest.fixture(scope="module")
def tuned() -> IdentifiedModel:
    return _tuned()


def _watched(columns: dict[str, np.ndarray], model: IdentifiedModel | None = None, **masks: object) -> Watched:
    return watch(_log(columns, model), belief(ROBOT, model), **masks)  # type: ignore[arg-type]


# finding a push ------------------------------------------------------------------------------------------------------


def test_a_push_is_found_without_a_model_and_without_free_alarms_around_it() -> None:
    seen = _watched(_columns(push=(3.0, 4.0, TORQUE)))
    (event,) = seen.alarms
    assert event.joint == 2
    assert 53.0 <= event.time_s < 53.1  # five time constants of the observer
    assert abs(event.onset_s - 53.0) <= 0.02  # some samples of 5 ms: the noise is small
    assert event.end_s == pytest.approx(54.0, abs=0.1)
    # the observer's last 40 ms before the end, of a step of which 99 % are there after 0.1 s
    assert event.peak_nm[1] == pytest.approx(TORQUE, rel=0.05)


def test_free_motion_raises_nothing(tuned: IdentifiedModel) -> None:
    columns = _columns(20.0, seed=9)
    for model in (None, tuned):
        seen = _watched(columns, model)
        assert seen.events == ()
        assert seen.seconds == pytest.approx(19.7, abs=0.02)  # 0.3 s settle first


def test_a_tuned_model_finds_a_fifth_of_what_the_prior_needs(tuned: IdentifiedModel) -> None:
    columns = _columns(push=(3.0, 4.0, 0.2 * TORQUE), seed=4)
    assert _watched(columns).alarms == ()
    (event,) = _watched(columns, tuned).alarms
    assert event.joint == 2
    assert event.onset_s == pytest.approx(53.0, abs=0.03)


def test_the_traces_cross_their_bounds_where_the_events_are_and_nowhere_else() -> None:
    seen = _watched(_columns(push=(3.0, 4.0, TORQUE)))
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
    seen = _watched(_columns(push=(3.0, 4.0, TORQUE)), tuned)
    at = np.searchsorted(seen.log.motion.time, 53.5)
    np.testing.assert_allclose(seen.residual[at], [0, TORQUE, 0, 0, 0, 0], atol=0.3)  # 0.02 Nm noise, h^2 of beta


# masks ---------------------------------------------------------------------------------------------------------------


def test_what_is_wanted_raises_no_alarm_and_only_then(tuned: IdentifiedModel) -> None:
    columns = _columns(8.0, push=(3.0, 4.0, 0.3 * TORQUE))
    again = _columns(8.0, push=(6.0, 7.0, 0.3 * TORQUE))
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
        belief(tangere.robot("ur5e"), _model())


def test_thresholds_come_from_the_file_or_from_the_drive_model(tuned: IdentifiedModel) -> None:
    assert not belief(ROBOT).tuned
    assert not belief(ROBOT, _model()).tuned
    found = belief(ROBOT, tuned)
    assert found.tuned
    assert np.all(found.thresholds.level[0] < belief(ROBOT).thresholds.level[0])
    np.testing.assert_allclose(np.diag(found.robot.mass_matrix(START) - ROBOT.mass_matrix(START)),
                               found.drive.rotor_inertia, rtol=1e-12)  # fmt: skip


def test_the_payload_that_the_log_states_counts_where_nobody_says_another() -> None:
    columns = _columns(load=5.0)
    columns["payload"] = np.full(len(columns["time"]), 5.0)
    columns["payload_cog"] = np.zeros((len(columns["time"]), 3))
    log = _log(columns)
    own, said = with_stated_payload(belief(ROBOT), log)
    assert own.robot.model.payload is not None
    assert own.robot.model.payload.mass == 5.0
    assert "5 kg" in said[0]
    assert watch(log, own).events == ()
    bare = watch(log, belief(ROBOT))  # without it the mass is felt all the time: 5 kg at 1 m
    assert np.nanmax(np.abs(bare.residual[:, 1])) > 30.0
    other, said = with_stated_payload(belief(ROBOT, payload=Payload(1.0, np.zeros(3))), log)
    assert other.robot.model.payload is not None
    assert other.robot.model.payload.mass == 1.0
    assert "states a payload of 5 kg" in said[0]


def test_too_short_a_log_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"too short to watch: 0.295 s, 0.5 s"):
        _watched(_columns(0.3))


def test_samples_too_far_apart_are_said() -> None:
    seen = _watched(_columns(30.0, rate=5.0))
    assert seen.seconds == 0.0
    assert seen.events == ()
    assert "further apart" in seen.said[0]


# tuning --------------------------------------------------------------------------------------------------------------


def test_tuning_promises_keeps_quiet_on_its_logs_and_survives_the_file(tmp_path: Path) -> None:
    logs = [_log(_columns(20.0, seed=seed), _model(), f"free_{seed}") for seed in (2, 3)]
    done = tuning(ROBOT, logs, belief(ROBOT, _model()), 1.0)
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
    touched = _log(_columns(20.0, push=(9.0, 10.0, TORQUE)), _model(), "touched")
    done = tuning(ROBOT, [touched], belief(ROBOT, dataclasses.replace(_model(), logs=(("touched", "0" * 64),))), 1e-3)
    assert any("cannot be promised" in note for note in done.thresholds.notes)
    assert any("touched: looks touched 9.0" in text for text in done.doubts)
    assert any("used to identify" in text for text in done.doubts)
    with pytest.raises(InvalidValue, match="identified model"):
        tuning(ROBOT, [touched], belief(ROBOT), 0.1)
    with pytest.raises(InvalidValue, match="at least one log"):
        tuning(ROBOT, [], belief(ROBOT, _model()), 0.1)


# streams -------------------------------------------------------------------------------------------------------------

RTDE = ",".join(["timestamp"] + [f"{name}_{j}" for name in ("actual_q", "actual_qd", "tau") for j in range(N)])


def _lines(columns: dict[str, np.ndarray], header: bool = True) -> list[str]:
    rows = np.column_stack([columns[name] for name in ("time", "q", "qd", "tau")])
    text = [",".join(map(repr, row)) + "\n" for row in rows.tolist()]
    return [RTDE + "\n", *text] if header else text


@pytest.mark.parametrize("delay", [0.0, 0.004, 0.012])
def test_a_stream_tells_what_the_file_tells(delay: float) -> None:
    """Delays: none, less than a period of 5 ms, more than two."""
    model = _tuned(delay)
    columns = _columns(push=(3.0, 4.0, 0.3 * TORQUE), delay=delay)
    believed = belief(ROBOT, model)
    whole = watch(_log(columns, model), believed)
    assert len(whole.events) == 1
    follower = Follower(ROBOT, believed)
    notices = list(follower.follow(_lines(columns)))
    assert [notice.phase for notice in notices] == ["raised", "ended"]
    assert notices[0].event.time_s == notices[1].event.time_s
    assert follower.seconds == pytest.approx(whole.seconds, abs=0.006)
    for a, b in zip(whole.events, follower.events, strict=True):
        assert (a.time_s, a.onset_s, a.end_s, a.kind, a.joint, a.link) == (
            b.time_s, b.onset_s, b.end_s, b.kind, b.joint, b.link,
        )  # fmt: skip
        np.testing.assert_allclose(a.residual_nm, b.residual_nm, atol=1e-9)


def test_an_event_is_told_at_the_sample_that_raises_it(tuned: IdentifiedModel) -> None:
    """Lines one by one: nothing of the future is used."""
    columns = _columns(push=(3.0, 4.0, 0.3 * TORQUE))
    follower, told = Follower(ROBOT, belief(ROBOT, tuned)), []
    for k, line in enumerate(_lines(columns)):
        told += [(k, notice) for notice in follower.feed(line)]
    k, raised = told[0]
    assert raised.phase == "raised"
    assert columns["time"][k - 1] == raised.event.time_s  # line 0 is the header


def test_an_event_that_outlasts_the_stream_is_told_as_open(tuned: IdentifiedModel) -> None:
    notices = list(Follower(ROBOT, belief(ROBOT, tuned)).follow(_lines(_columns(4.0, push=(3.5, 9.0, TORQUE)))))
    assert [notice.phase for notice in notices] == ["raised", "open"]
    assert notices[-1].event.end_s is None


def test_a_stream_survives_bad_lines_and_counts_them(tuned: IdentifiedModel) -> None:
    columns = _columns(push=(3.0, 4.0, 0.3 * TORQUE))
    lines = _lines(columns, header=False)
    cells = lines[300].split(",")
    lines[300] = ",".join([cells[0], "nan", *cells[2:]])
    lines[310] = "3.0,4.0\n"
    lines.insert(320, lines[319])
    lines.insert(330, lines[100])
    lines[340] = lines[340].replace(lines[340].split(",")[3], "oops", 1)
    del lines[400:420]  # 0.1 s
    lines.insert(5, "\n")
    follower = Follower(ROBOT, belief(ROBOT, tuned), columns="t,q,qd,torque")
    notices = list(follower.follow(lines))
    assert [notice.phase for notice in notices] == ["raised", "ended"]
    assert follower.problems == {
        "samples with NaN or infinity": 1, "lines with another number of cells than 19": 1, "stamps that repeat": 1,
        "stamps that go backwards": 1, "lines with a cell that is no number": 1, "gaps": 1,
    }  # fmt: skip


def test_a_stream_whose_clock_is_set_back_goes_on_without_an_alarm(tuned: IdentifiedModel) -> None:
    """The second part begins anew, in another posture; a push in it is found at its own stamps."""
    first, second = _lines(_columns(4.0), header=False), _lines(
        _columns(4.0, seed=5, push=(2.0, 3.0, 0.3 * TORQUE)), header=False
    )  # fmt: skip
    follower = Follower(ROBOT, belief(ROBOT, tuned), columns="t,q,qd,torque")
    notices = list(follower.follow([*first, *second]))
    assert [notice.phase for notice in notices] == ["raised", "ended"]
    assert notices[0].event.onset_s == pytest.approx(52.0, abs=0.03)
    assert follower.problems["times that the clock was set back"] == 1
    assert any("the clock went back from 53.995 s to 50.005 s" in text for text in follower.said)


def test_an_event_that_is_open_when_the_clock_is_set_back_ends_there(tuned: IdentifiedModel) -> None:
    first = _lines(_columns(4.0, push=(3.0, 9.0, 0.3 * TORQUE)), header=False)
    follower = Follower(ROBOT, belief(ROBOT, tuned), columns="t,q,qd,torque")
    notices = list(follower.follow([*first, *_lines(_columns(4.0, seed=5), header=False)]))
    assert [notice.phase for notice in notices] == ["raised", "ended"]
    assert follower.events[0].end_s == pytest.approx(54.0, abs=0.02)


def test_line_ends_of_other_systems_and_empty_cells(tuned: IdentifiedModel) -> None:
    columns = _columns(push=(3.0, 4.0, 0.3 * TORQUE))
    lines = [line.rstrip("\n") + ",\n" for line in _lines(columns, header=False)]  # a column that nobody fills
    told = []
    for text in ("".join(lines), "".join(lines).replace("\n", "\r"), "".join(lines).replace("\n", "\r\n")):
        follower = Follower(ROBOT, belief(ROBOT, tuned), columns="t,q,qd,torque")
        told.append([(n.phase, n.event.time_s) for n in follower.follow([text])])
        assert not follower.problems
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == 2
    cells = lines[300].split(",")
    broken = [*lines[:300], ",".join([*cells[:4], "", *cells[5:]]), *lines[301:]]
    follower = Follower(ROBOT, belief(ROBOT, tuned), columns="t,q,qd,torque")
    list(follower.follow(broken))
    assert follower.problems == {"samples with NaN or infinity": 1}


def test_a_frictionless_arm_is_watched_without_a_model() -> None:
    """Simulated arms: what the type's friction would take off looks like a push all along, and is not taken off."""
    for push in (None, (3.0, 4.0, TORQUE)):
        columns = _columns(push=push)
        columns["tau"] -= prior_drive(ROBOT).friction(columns["q"], columns["qd"], ROBOT.gravity_torque(columns["q"]))
        for seconds in (1.2, 6.0):  # too short for identification, and long enough
            if push is not None and seconds < 6.0:
                continue
            part = {name: values[: round(200.0 * seconds)] for name, values in columns.items()}
            log, own = learned(_log(part), ROBOT)
            assert len(watch(log, own).alarms) == (push is not None)
            alone = with_own_friction(belief(ROBOT), _log(part))  # what a log that teaches nothing, or a stream, has
            assert np.all(alone.drive.coulomb < 0.3 * prior_drive(ROBOT).coulomb)
            np.testing.assert_array_equal(alone.thresholds.level, belief(ROBOT).thresholds.level)
            assert len(watch(_log(part), alone).alarms) == (push is not None)


def test_a_stream_says_what_it_lacks() -> None:
    believed = belief(ROBOT)
    lines = _lines(_columns(1.0), header=False)
    with pytest.raises(InvalidValue, match="has no header; say what its 19 columns"):
        list(Follower(ROBOT, believed).follow(lines))
    with pytest.raises(InvalidValue, match="stands for 13 columns, the first line has 19"):
        list(Follower(ROBOT, believed, columns="t,q,qd").follow(lines))
    with pytest.raises(InvalidValue, match="no stamps"):
        list(Follower(ROBOT, believed, columns="_,q,qd,tau").follow(lines))
    with pytest.raises(InvalidValue, match="neither torque"):
        list(Follower(ROBOT, believed, columns="t,q,qd,_:6").follow(lines))
    with pytest.raises(InvalidValue, match="too short to watch: 3 samples"):
        list(Follower(ROBOT, believed, columns="t,q,qd,tau").follow(lines[:3]))


def test_a_stream_without_stamps_counts_with_its_rate(tuned: IdentifiedModel) -> None:
    lines = [line.partition(",")[2] for line in _lines(_columns(push=(3.0, 4.0, 0.3 * TORQUE)), header=False)]
    follower = Follower(ROBOT, belief(ROBOT, tuned), columns="q,qd,tau", rate=200.0)
    notices: list[Notice] = list(follower.follow(lines))
    assert notices[0].event.onset_s == pytest.approx(3.0, abs=0.02)


def test_lines_of_a_growing_file_are_whole(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("1,2\n3,")
    lines = lines_of(file, patience=0.1)
    assert next(lines) == "1,2\n"
    with file.open("a") as more:
        more.write("4\n5,6")
    assert list(lines) == ["3,4\n", "5,6"]
    with pytest.raises(InvalidValue, match="cannot read"):
        next(lines_of(tmp_path / "nothing.csv"))


def test_a_belief_is_a_value() -> None:
    found = belief(ROBOT)
    assert isinstance(found, Belief)
    assert isinstance(found.thresholds, Thresholds)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.drive = prior_drive(ROBOT)  # type: ignore[misc]
