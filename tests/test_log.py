"""The log: columns of one length that cannot be changed, slices that are logs, and the recorder that fills it."""

from __future__ import annotations

import dataclasses
import sys
import threading
import types

import numpy as np
import pytest

from tangere.errors import InvalidValue, MissingExtra
from tangere.logs.log import Log, MissingColumn, Note, concatenate
from tangere.loop import recorder as recorder_module
from tangere.loop.recorder import BLOCK, Recorder


@pytest.fixture
def log(rng):
    time = np.arange(100) * 1e-2
    columns = {"time": time, "q": rng.normal(size=(100, 6)), "residual_x": rng.normal(size=(100, 6)), "odd": time * 2}
    return Log(columns, {"odd": "kg"}, (Note(0.25, "a"), Note(0.75, "b")))


def test_columns_and_units(log):
    assert log["q"].shape == (100, 6)
    assert log.time is log["time"]
    assert dict(log.units) == {"time": "s", "q": "rad", "residual_x": "Nm", "odd": "kg"}
    assert len(log) == 100
    assert log.duration == pytest.approx(0.99)
    assert "q" in log
    assert "tau" not in log
    assert log.get("tau") is None
    with pytest.raises(MissingColumn, match=r"no column 'tau' .* time, q, residual_x, odd"):
        log["tau"]
    with pytest.raises(TypeError):
        iter(log)


def test_nothing_in_it_can_be_changed_but_the_caller_keeps_his_array(log):
    with pytest.raises(ValueError, match="read-only"):
        log["q"][0, 0] = 1.0
    with pytest.raises(TypeError):
        log.columns["new"] = log.time
    mine = np.zeros(3)
    Log({"time": mine})
    mine[0] = 1.0


def test_slices_by_time_and_index_are_logs_with_their_notes(log):
    part = log.between(0.2, 0.3)
    assert np.array_equal(part["q"], log["q"][20:30])
    assert part.notes == (Note(0.25, "a"),)
    assert log[20:30] == part
    assert len(log[::10]) == 10
    assert len(log.between(5.0, 6.0)) == 0
    assert log[:30] + log[30:] == log
    assert concatenate([log[:10], log[10:20], log[20:]]) == log
    with pytest.raises(InvalidValue, match="logs of one kind"):
        log + log.without(["odd"])


def test_parts_keep_what_is_known_of_the_whole(log):
    whole = dataclasses.replace(log, problems=("bad",), events=({"time_s": 1.0},), start_ns=7, complete=False)
    for part in (whole[3:5], whole.between(0.2, 0.3), whole.without(["odd"])):
        assert (part.problems, part.events, part.start_ns, part.complete) == (("bad",), ({"time_s": 1.0},), 7, False)
    both = whole + log
    assert (both.problems, both.events, both.start_ns, both.complete) == (("bad",), ({"time_s": 1.0},), 7, False)


def test_a_table_for_pandas(log, monkeypatch):
    class Table(dict):
        def set_index(self, name):
            return {key: value for key, value in self.items() if key != name}

    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=Table))
    table = log.to_pandas()
    assert list(table) == [f"{name}_{i}" for name in ("q", "residual_x") for i in range(6)] + ["odd"]
    assert np.array_equal(table["q_3"], log["q"][:, 3])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="pandas"):
        log.to_pandas()


def test_equality_is_by_the_bit(log):
    def changed(value):
        q = log["q"].copy()
        q[3, 3] = value
        return Log({**log.columns, "q": q}, log.units, log.notes)

    assert changed(log["q"][3, 3]) == log
    assert changed(np.nextafter(log["q"][3, 3], np.inf)) != log
    assert changed(np.nan) == changed(np.nan)
    assert changed(0.0) != changed(-0.0)


def test_misuse_is_refused():
    with pytest.raises(InvalidValue, match="'time'"):
        Log({"q": np.zeros((3, 6))})
    with pytest.raises(InvalidValue, match="one length"):
        Log({"time": np.zeros(3), "q": np.zeros((4, 6))})
    with pytest.raises(InvalidValue, match="shape"):
        Log({"time": np.zeros(3), "T": np.zeros((3, 4, 4))})
    with pytest.raises(InvalidValue, match="'time' among the scalars"):
        Recorder(["cost"], {"q": 6})


def test_the_position_of_a_pose_column():
    T = np.arange(32.0).reshape(2, 16)[:, :12]
    log = Log({"time": np.arange(2.0), "T_des": T})
    assert log.position("T_des").tolist() == [[3, 7, 11], [19, 23, 27]]


class Sink:
    def __init__(self):
        self.blocks, self.notes = [], []

    def rows(self, block):
        self.blocks.append(block)

    def note(self, note):
        self.notes.append(note)

    def when_idle(self, call):
        self.idle = call


@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_the_recorder_keeps_every_row_and_hands_each_on_once(rng, count):
    sink = Sink()
    recorder = Recorder(["time", "cost"], {"q": 6, "T": 12}, sink)
    q, T = rng.normal(size=(count, 6)), rng.normal(size=(count, 12))
    for k in range(count):
        recorder.append((k * 1e-3, float(-k)), (q[k], T[k]))
    recorder.note(0.5, "half")
    recorder.flush()
    recorder.flush()
    log = recorder.log()
    assert recorder.samples == len(log) == count
    assert np.array_equal(log["q"], q)
    assert np.array_equal(log["T"], T)
    assert np.array_equal(log.time, np.arange(count) * 1e-3)
    assert np.array_equal(log["cost"], -np.arange(count))
    assert log.notes == (Note(0.5, "half"),) == tuple(sink.notes)
    handed = np.concatenate([np.zeros((0, 20)), *sink.blocks])
    assert np.array_equal(handed[:, recorder.layout["T"]], T)
    assert handed.shape == (count, 20)


def test_rows_that_wait_are_handed_on_when_the_sink_asks(rng):
    """A source that stalls: rows must not wait for the next one. From another thread, each row once."""
    sink = Sink()
    recorder = Recorder(["time"], {"q": 1}, sink)
    recorder.append((0.0,), (np.zeros(1),))
    sink.idle()
    sink.idle()
    assert [len(block) for block in sink.blocks] == [1]
    over = threading.Event()

    def ask():
        while not over.is_set():
            sink.idle()

    thread = threading.Thread(target=ask)
    thread.start()
    for k in range(1, 5 * BLOCK):
        recorder.append((float(k),), (np.zeros(1),))
    over.set()
    thread.join()
    recorder.flush()
    assert np.array_equal(np.concatenate(sink.blocks)[:, 0], np.arange(5.0 * BLOCK))
    assert np.array_equal(recorder.log().time, np.arange(5.0 * BLOCK))


def test_rows_are_handed_on_five_times_a_second_although_the_block_is_not_full(monkeypatch):
    monkeypatch.setattr(recorder_module, "perf_counter", lambda: 100.0)
    sink = Sink()
    recorder = Recorder(["time"], {"q": 1}, sink)
    for k in range(30):
        recorder.append((0.05 * k,), (np.zeros(1),), now=100.0 + 0.05 * k)
    # at 100.25, 100.5, ...: the first rows past each fifth of a second
    assert [len(block) for block in sink.blocks] == [6, 5, 5, 5, 5]
