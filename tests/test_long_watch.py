"""A long file is watched row by row: the same events as whole, though few of its samples are ever held."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_same_events import told
from watched_logs import ROBOT, TORQUE, columns_of, tuned_model

from tangere.apps.touch.page_watched import watched_html
from tangere.cli.main import main
from tangere.identification.belief import belief
from tangere.logs import log as logs
from tangere.logs.csv_log import write_csv
from tangere.logs.log import Log
from tangere.logs.mcap_log import write_mcap
from tangere.logs.recordings import recordings
from tangere.logs.thinned import Thinner
from tangere.loop import follow, long_watch
from tangere.loop.follow import watch_recording
from tangere.loop.long_watch import LongFile, watch_file


@pytest.mark.parametrize("ending", ["csv", "mcap"])
@pytest.mark.parametrize("known", [False, True])
def test_a_long_file_has_the_events_of_a_short_one(
    ending: str, known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_watch, "PIECE", 300)  # samples that are held before they are thinned
    monkeypatch.setattr(long_watch, "Thinner", lambda: Thinner(300))
    log = Log(columns_of(8.0, push=(6.0, 7.0, TORQUE)))
    file = tmp_path / f"log.{ending}"
    write_csv(log, file) if ending == "csv" else write_mcap(log, file)
    believed = belief(ROBOT, tuned_model() if known else None)
    whole = watch_recording(recordings(file)[0], ROBOT, believed)
    seen = watch_file(LongFile(file), ROBOT, believed)
    assert whole.events
    assert told(seen.events) == told(whole.events)
    assert seen.seconds == pytest.approx(whole.seconds, abs=0.02)
    assert float(np.nanmax(seen.traces.score)) == float(np.nanmax(whole.traces.score))
    assert seen.log.motion.digest == whole.log.motion.digest
    assert len(seen.log.motion.time) <= 310
    event = seen.alarms[0]
    assert np.min(np.abs(seen.log.motion.time - event.residual_s)) < 0.0026  # it is drawn there
    assert event.kind in watched_html([seen])


def test_few_rows_stay_and_every_peak_is_among_them() -> None:
    keeper = Thinner(500)
    time = np.arange(40_000) * 1e-3
    rows = np.stack([time, np.sin(time), np.random.default_rng(1).normal(size=time.size)], axis=1)
    rows[12_345, 2], rows[777, 1] = 50.0, np.nan
    for first in range(0, len(rows), 1000):
        keeper.add(rows[first : first + 1000])
    kept = keeper.rows()
    assert len(kept) <= 500
    assert np.all(np.diff(kept[:, 0]) > 0.0)
    assert (kept[0, 0], kept[-1, 0]) == (0.0, time[-1])
    span = keeper._span
    for k in range(int(time[-1] / span)):
        here, there = (table[np.floor(table[:, 0] / span) == k] for table in (kept, rows))
        np.testing.assert_array_equal(np.nanmax(here, axis=0), np.nanmax(there, axis=0))
        np.testing.assert_array_equal(np.nanmin(here, axis=0), np.nanmin(there, axis=0))


def test_the_command_takes_a_long_csv_whose_last_line_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.csv"
    write_csv(Log(columns_of(8.0, push=(6.0, 7.0, TORQUE))), file)
    words = ["watch", str(file), "--robot", ROBOT.name, "--wanted", "+100,+101"]
    assert main(words) == 0
    whole = capsys.readouterr()
    monkeypatch.setattr(long_watch, "LONG_FILE", 1000)
    monkeypatch.setattr(logs, "LONG", 100)
    monkeypatch.setattr(follow, "watch_recording", None)  # which has the whole log in memory
    assert main([*words, "--report", str(tmp_path / "page.html")]) == 0
    seen = capsys.readouterr()
    table = [line for line in whole.out.splitlines() if "push" in line or "collision" in line]
    assert table
    assert all(line in seen.out for line in table)
    assert "lies outside the log's stamps" in seen.err
    assert (tmp_path / "page.html").stat().st_size > 10_000
    file.write_text(file.read_text()[:-30])
    assert main(words) == 0
    assert "the last line has no line end and may be cut" in capsys.readouterr().err
