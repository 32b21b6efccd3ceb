"""Following a stream: it tells what the file tells, as early as it can, and survives what streams are like."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from watched_logs import ROBOT, START, TORQUE, N, columns_of, log_of, tuned_model

import tangere
from tangere.errors import InvalidValue
from tangere.identification import IdentifiedModel, prior_drive
from tangere.identification.belief import belief
from tangere.logs.recordings import StreamRow, lines_of, read
from tangere.loop.aside import Aside
from tangere.loop.follow import Follower, StreamSource
from tangere.loop.watching import watch


@pytest.fixture(scope="module")
def tuned() -> IdentifiedModel:
    return tuned_model()


RTDE = ",".join(["timestamp"] + [f"{name}_{j}" for name in ("actual_q", "actual_qd", "tau") for j in range(N)])


def _lines(columns: dict[str, np.ndarray], header: bool = True) -> list[str]:
    rows = np.column_stack([columns[name] for name in ("time", "q", "qd", "tau")])
    text = [",".join(map(repr, row)) + "\n" for row in rows.tolist()]
    return [RTDE + "\n", *text] if header else text


@pytest.mark.parametrize(("delay", "remembers", "scale"), [(0.0, 0.0, 0.8), (0.004, 0.1, 1.0), (0.012, 0.0, 1.0)])
def test_a_stream_tells_what_the_file_tells(delay: float, remembers: float, scale: float) -> None:
    """Delays: none, less than a period of 5 ms, more than two. remembers [Nm]: film and level of the friction.

    scale: that of the recorder's torques, which the model knows.
    """
    model = dataclasses.replace(tuned_model(delay, remembers), scale=np.full(N, scale))
    columns = columns_of(push=(3.0, 4.0, 0.3 * TORQUE), delay=delay)
    columns["tau"] = columns["tau"] / scale
    believed = belief(ROBOT, model)
    whole = watch(log_of(columns, model), believed)
    assert len(whole.events) == 1
    follower = Follower(ROBOT, believed)
    notices = list(follower.follow(_lines(columns)))
    assert [notice.phase for notice in notices] == ["raised", "ended"]
    assert notices[0].time_s == notices[1].time_s
    assert follower.seconds == pytest.approx(whole.seconds, abs=0.006)
    for a, b in zip(whole.events, follower.events, strict=True):
        assert (a.time_s, a.onset_s, a.end_s, a.kind, a.joint, a.link) == (
            b.time_s, b.onset_s, b.end_s, b.kind, b.joint, b.link,
        )  # fmt: skip
        np.testing.assert_allclose(a.residual_nm, b.residual_nm, atol=1e-9)


def test_an_event_is_told_at_the_sample_that_raises_it(tuned: IdentifiedModel) -> None:
    """Lines one by one: nothing of the future is used."""
    columns = columns_of(push=(3.0, 4.0, 0.3 * TORQUE))
    follower, told = Follower(ROBOT, belief(ROBOT, tuned)), []
    given = []

    def one_by_one():
        for k, line in enumerate(_lines(columns)):
            given.append(k)
            yield line

    follower.follow(one_by_one(), lambda event: told.append((given[-1], event)))
    k, raised = told[0]
    assert raised.phase == "raised"
    assert columns["time"][k - 1] == raised.time_s  # line 0 is the header


def test_what_is_followed_can_be_recorded(tuned: IdentifiedModel, tmp_path: Path) -> None:
    columns = columns_of(4.0, push=(2.0, 3.0, 0.3 * TORQUE))
    before = time.time_ns()
    told = Follower(ROBOT, belief(ROBOT, tuned)).follow(_lines(columns), log=tmp_path / "log.mcap")
    log = read(tmp_path / "log.mcap")
    np.testing.assert_array_equal(log.time, columns["time"])
    np.testing.assert_array_equal(log["q"], columns["q"])
    assert log["residual"].shape == log["q"].shape
    assert log.complete
    assert log.events[0]["time_s"] == told[0].time_s
    assert before <= log.start_ns + round(log.time[0] * 1e9) <= time.time_ns()  # the first sample is now


def test_an_event_that_outlasts_the_stream_is_told_as_open(tuned: IdentifiedModel) -> None:
    notices = list(Follower(ROBOT, belief(ROBOT, tuned)).follow(_lines(columns_of(4.0, push=(3.5, 9.0, TORQUE)))))
    assert [notice.phase for notice in notices] == ["raised", "open"]
    assert notices[-1].end_s is None


def test_a_stream_survives_bad_lines_and_counts_them(tuned: IdentifiedModel) -> None:
    columns = columns_of(push=(3.0, 4.0, 0.3 * TORQUE))
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
    first, second = _lines(columns_of(4.0), header=False), _lines(
        columns_of(4.0, seed=5, push=(2.0, 3.0, 0.3 * TORQUE)), header=False
    )  # fmt: skip
    follower = Follower(ROBOT, belief(ROBOT, tuned), columns="t,q,qd,torque")
    notices = list(follower.follow([*first, *second]))
    assert [notice.phase for notice in notices] == ["raised", "ended"]
    assert notices[0].onset_s == pytest.approx(52.0, abs=0.03)
    assert follower.problems["times that the clock was set back"] == 1
    assert any("the clock went back from 53.995 s to 50.005 s" in str(text) for text in follower.said)


def test_an_event_that_is_open_when_the_clock_is_set_back_ends_there(tuned: IdentifiedModel) -> None:
    first = _lines(columns_of(4.0, push=(3.0, 9.0, 0.3 * TORQUE)), header=False)
    follower = Follower(ROBOT, belief(ROBOT, tuned), columns="t,q,qd,torque")
    notices = list(follower.follow([*first, *_lines(columns_of(4.0, seed=5), header=False)]))
    assert [notice.phase for notice in notices] == ["raised", "ended"]
    assert follower.events[0].end_s == pytest.approx(54.0, abs=0.02)


def test_line_ends_of_other_systems_and_empty_cells(tuned: IdentifiedModel) -> None:
    columns = columns_of(push=(3.0, 4.0, 0.3 * TORQUE))
    lines = [line.rstrip("\n") + ",\n" for line in _lines(columns, header=False)]  # a column that nobody fills
    told = []
    for text in ("".join(lines), "".join(lines).replace("\n", "\r"), "".join(lines).replace("\n", "\r\n")):
        follower = Follower(ROBOT, belief(ROBOT, tuned), columns="t,q,qd,torque")
        told.append([(n.phase, n.time_s) for n in follower.follow([text])])
        assert not follower.problems
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == 2
    cells = lines[300].split(",")
    broken = [*lines[:300], ",".join([*cells[:4], "", *cells[5:]]), *lines[301:]]
    follower = Follower(ROBOT, belief(ROBOT, tuned), columns="t,q,qd,torque")
    list(follower.follow(broken))
    assert follower.problems == {"samples with NaN or infinity": 1}


def test_a_stream_says_what_it_lacks() -> None:
    believed = belief(ROBOT)
    lines = _lines(columns_of(1.0), header=False)
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
    lines = [line.partition(",")[2] for line in _lines(columns_of(push=(3.0, 4.0, 0.3 * TORQUE)), header=False)]
    follower = Follower(ROBOT, belief(ROBOT, tuned), columns="q,qd,tau", rate=200.0)
    notices = list(follower.follow(lines))
    assert notices[0].onset_s == pytest.approx(3.0, abs=0.02)


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


def _said(columns: dict[str, np.ndarray], name: str = "ur10e", seconds: float = np.inf) -> list[str]:
    """What a stream of q, qd, current says of an arm; only so long."""
    robot = tangere.robot(name)
    rows = np.column_stack([columns[key] for key in ("time", "q", "qd", "current")])
    rows = rows[rows[:, 0] - rows[0, 0] < seconds]
    follower = Follower(robot, belief(robot), columns="t,q,qd,current")
    list(follower.follow(",".join(map(repr, row)) + "\n" for row in rows.tolist()))
    return [str(finding) for finding in follower.said]


@pytest.mark.parametrize("seconds", [4.0, 20.0])
def test_a_stream_of_another_arm_or_of_torques_is_said_once(seconds: float) -> None:
    """As of a file; a stream that ends before the first look is looked at in the end."""
    t = np.arange(0.0, 20.0, 0.01)
    speed = np.linspace(0.8, 1.3, N)
    angle = t[:, None] * speed
    q, qd, qdd = START + 0.7 * np.sin(angle), 0.7 * speed * np.cos(angle), -0.7 * speed**2 * np.sin(angle)
    drive = prior_drive(ROBOT)
    tau = ROBOT.inverse_dynamics(q, qd, qdd) + drive.rotor_inertia * qdd
    tau += drive.friction(q, qd, ROBOT.gravity_torque(q))
    columns = {"time": t, "q": q, "qd": qd, "tau": tau}
    right = columns | {"current": tau / ROBOT.drives.gain}
    gravity = ("gravity", "look like")
    assert not [text for text in _said(right, seconds=seconds) if any(word in text for word in gravity)]
    (text,) = [text for text in _said(right, "ur3e", seconds) if any(word in text for word in gravity)]
    assert "gravity does not fit ur3e" in text
    assert "it would fit ur10e" in text
    (text,) = [
        text for text in _said(columns | {"current": columns["tau"]}, seconds=seconds)
        if any(word in text for word in gravity)
    ]  # fmt: skip
    assert "currents look like torques" in text


def test_a_stream_in_milliseconds_is_refused() -> None:
    columns = columns_of(2.0, 100.0)
    with pytest.raises(InvalidValue, match="look like milliseconds"):
        _said(columns | {"current": columns["tau"], "time": 1000.0 * columns["time"]})


def test_what_comes_during_a_look_is_kept_beside_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the samples so far are looked at rows are read on, into a file that goes when the log has them."""
    log = tmp_path / "log.mcap"
    columns, seen = columns_of(17.0), []
    look = StreamSource._look

    def long(source: StreamSource) -> None:
        give_up, aside = time.monotonic() + 60.0, tmp_path / f"unfinished-log.{len(seen)}.csv"
        while not aside.exists() or aside.read_text().count("\n") < 100:
            assert time.monotonic() < give_up
            time.sleep(0.01)
        seen.append(read(aside))
        look(source)

    monkeypatch.setattr(StreamSource, "_look", long)
    Follower(ROBOT, belief(ROBOT)).follow(_lines(columns), log=log)
    assert [part.time[0] - columns["time"][0] for part in seen] == pytest.approx([5.01, 15.01], abs=0.02)
    for part in seen:
        rows = np.searchsorted(columns["time"], part.time)
        np.testing.assert_array_equal(part["q"], columns["q"][rows])
    assert [file.name for file in tmp_path.iterdir()] == ["log.mcap"]
    np.testing.assert_array_equal(read(log)["q"], columns["q"])


@pytest.mark.parametrize("taken", [3, 2])
def test_a_stream_that_is_silent_when_it_ends_leaves_what_nobody_took(tmp_path: Path, taken: int) -> None:
    """The row that is waited for never comes: the file goes if all others were taken."""
    silent, file = threading.Event(), tmp_path / "unfinished-log.0.csv"

    def rows() -> Iterator[StreamRow]:
        yield from (StreamRow(0.01 * k, {"q": np.full(6, float(k))}) for k in range(3))
        silent.wait(60.0)

    aside = Aside(rows(), tmp_path / "log.mcap", 0)
    give_up = time.monotonic() + 60.0
    while not file.exists() or file.read_text().count("\n") < 4:
        assert time.monotonic() < give_up
        time.sleep(0.01)
    rest = aside.rest()
    assert [next(rest).time for _ in range(taken)] == [0.0, 0.01, 0.02][:taken]
    aside.close()
    assert file.exists() == (taken < 3)
    assert taken == 3 or read(file)["q"][:, 0].tolist() == [0.0, 1.0, 2.0]
    silent.set()
