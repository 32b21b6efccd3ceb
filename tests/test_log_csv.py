"""csv logs: RTDE's names, every bit back, recordings of a robot read."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.errors import InvalidValue
from tangere.logs.csv_log import read_csv, write_csv
from tangere.logs.log import Log


@pytest.fixture
def log(rng):
    n = 50
    columns = {name: rng.normal(size=(n, 6)) for name in ("q", "qd", "tau", "wrench", "q_des", "tau_cmd", "residual")}
    columns["q"][0] = [0.1 + 0.2, 1e-310, -0.0, np.nan, np.inf, 1e300]
    columns |= {"residual_2": rng.normal(size=(n, 6)), "T_true": rng.normal(size=(n, 12)), "cost": rng.random(n)}
    return Log({"time": np.cumsum(rng.random(n)), **columns})


def test_what_is_written_reads_back_to_the_same_bits(log, tmp_path):
    write_csv(log, tmp_path / "log.csv")
    assert read_csv(tmp_path / "log.csv") == log


def test_the_names_are_those_of_rtde_where_it_has_one(log, tmp_path):
    write_csv(log, tmp_path / "log.csv")
    header = (tmp_path / "log.csv").read_text().splitlines()[0].split(",")
    assert header[:7] == ["timestamp", *(f"actual_q_{i}" for i in range(6))]
    assert {"actual_qd_5", "tau_0", "actual_TCP_force_5", "target_q_0", "target_moment_3", "residual_5"} <= set(header)


def test_one_joint_and_no_rows(tmp_path):
    for n in (0, 3):
        log = Log({"time": np.arange(float(n)), "q": np.zeros((n, 1)), "tau": np.ones((n, 1))})
        write_csv(log, tmp_path / "log.csv")
        assert read_csv(tmp_path / "log.csv") == log


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_other_recorders_ways_of_writing(tmp_path, delimiter, end):
    rows = [["timestamp", "actual_q_0", "actual_q_1", "robot_mode", "day"], ["7.25", "1", "2.5", "7", "2021:10:05"]]
    (tmp_path / "a.csv").write_bytes(end.join(delimiter.join(row) for row in rows).encode())
    log = read_csv(tmp_path / "a.csv")
    assert log["q"].tolist() == [[1.0, 2.5]]
    assert log.time.tolist() == [7.25]
    assert list(log.columns) == ["time", "q", "robot_mode"]
    assert log.complete


@pytest.mark.parametrize("header", ["time,timestamp", "timestamp,time"])
def test_a_counter_called_time_gives_way_to_the_stamp(tmp_path, header):
    cells = {"time": "1", "timestamp": "7.25"}
    (tmp_path / "a.csv").write_text(header + "\n" + ",".join(cells[name] for name in header.split(",")) + "\n")
    assert read_csv(tmp_path / "a.csv").time.tolist() == [7.25]


def test_a_cut_off_last_line_is_left_out_and_said(log, tmp_path):
    write_csv(log, tmp_path / "log.csv")
    text = (tmp_path / "log.csv").read_text()
    (tmp_path / "cut.csv").write_text(text[:-500])
    cut = read_csv(tmp_path / "cut.csv")
    assert not cut.complete
    assert cut == log[:-1]


def test_recordings_of_a_robot(data_dir):
    for name, rows in (("L0L1", 29), ("L1L2", 65)):  # the second has the line ends of an old Macintosh
        log = read_csv(data_dir / "ur3e_rtde" / f"{name}.csv")
        assert log["q"].shape == log["qd"].shape == log["actual_current"].shape == (rows, 6)
        assert log.units["actual_current"] == "A"
        assert np.all(np.diff(log.time) > 0.0)
        # positions and velocities of one motion: the same columns twice, one by differences (samples 40 ms apart,
        # constant joint speed but for blends: within 0.1 rad/s in the mean)
        speed = np.diff(log["q"], axis=0) / np.diff(log.time)[:, None]
        assert np.abs(speed - (log["qd"][1:] + log["qd"][:-1]) / 2).mean() < 0.1


def test_what_is_no_log_is_refused(tmp_path, data_dir):
    with pytest.raises(InvalidValue, match="cannot read"):
        read_csv(tmp_path / "absent.csv")
    with pytest.raises(InvalidValue, match="no column 'timestamp'"):
        read_csv(data_dir / "ur3e_rtde" / "VELOCITY-PLOT.csv")
    (tmp_path / "a.csv").write_text("time,x\n1\n1,2\n")
    with pytest.raises(InvalidValue, match="line 2: 1 cells"):
        read_csv(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("time,time\n1,2\n")
    with pytest.raises(InvalidValue, match="twice"):
        read_csv(tmp_path / "a.csv")
