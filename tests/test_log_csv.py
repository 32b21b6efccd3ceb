"""csv logs: RTDE's names, every bit back, recordings of a robot read."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.errors import InvalidValue
from tangere.logs.csv_log import CsvRows, read_csv, write_csv
from tangere.logs.log import Log, MissingColumn
from tangere.logs.recordings import follow


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


def test_what_is_no_log_is_refused(tmp_path):
    with pytest.raises(InvalidValue, match="cannot read"):
        read_csv(tmp_path / "absent.csv")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(InvalidValue, match=r"no column 'timestamp'.* among x, y; name them .* --columns"):
        read_csv(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("\n \n")
    with pytest.raises(InvalidValue, match="is empty"):
        read_csv(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("time,x\n1\n1,2\n")
    with pytest.raises(InvalidValue, match=r"only 1 of 2 lines .* another number of cells than 2 .*\(line 2\)"):
        read_csv(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("time,time\n1,2\n")
    with pytest.raises(InvalidValue, match="twice"):
        read_csv(tmp_path / "a.csv")


def _read(tmp_path, header, *rows):
    (tmp_path / "a.csv").write_text("\n".join([header, *rows]) + "\n")
    return read_csv(tmp_path / "a.csv")


def test_names_of_others(tmp_path):
    """RTDE's, ROS', people's: any letters of the stamp, numbers from 0 or 1, with and without a line before them."""
    for stamp in ("t", "time", "Time", "timestamp", "TimeStamp", "Timestamp", "time_stamp"):
        for names, ours in (
            (("actual_q_0", "actual_q_1"), "q"), (("q0", "q1"), "q"), (("q1", "q2"), "q"), (("Q_1", "Q_2"), "Q"),
            (("position[0]", "position[1]"), "q"), (("velocity_0", "velocity_1"), "qd"),
            (("effort1", "effort2"), "tau"),
            (("current_0", "current_1"), "actual_current"), (("target_moment_0", "target_moment_1"), "tau_cmd"),
            (("Actual_TCP_Force_0", "Actual_TCP_Force_1"), "wrench"),
        ):  # fmt: skip
            log = _read(tmp_path, ",".join([stamp, *names]), "0.5,1,2")
            assert list(log.columns) == ["time", ours]
            assert log[ours].tolist() == [[1.0, 2.0]]
            assert log.time.tolist() == [0.5]


def test_a_capital_t_is_no_time_and_our_own_name_wins(tmp_path):
    log = _read(tmp_path, "T,t,q_0,position_0", "20,0.5,1,2")
    assert {name: log[name].tolist() for name in log.columns} == {
        "T": [20.0], "time": [0.5], "q": [[1.0]], "position": [[2.0]],
    }  # fmt: skip


def test_numbers_with_gaps_are_no_vector(tmp_path):
    log = _read(tmp_path, "t,a_0,a_2,register_24,b_1,W01,W02,residual_2_0,residual_2_1", "1,2,3,4,5,6,7,8,9")
    assert {name: log[name].shape for name in log.columns} == {
        "time": (1,), "a_0": (1,), "a_2": (1,), "register_24": (1,), "b_1": (1,), "W01": (1,), "W02": (1,),
        "residual_2": (1, 2),
    }  # fmt: skip


def test_units_in_the_names_are_understood(tmp_path):
    log = _read(tmp_path, "time [ms],q_0 [deg],q_1 [deg],tau_0 (Nm),temperature [degC]", "250,180,-90,3,20")
    assert log.time.tolist() == [0.25]
    assert log["q"].tolist() == [[np.pi, -np.pi / 2]]
    assert [log.unit(name) for name in log.columns] == ["s", "rad", "Nm", "degC"]
    with pytest.raises(MissingColumn, match="no column 'qd'"):
        log.unit("qd")


def test_decimal_commas_where_they_do_not_stand_between(tmp_path):
    log = _read(tmp_path, "t;q_0;q_1", "0,5;1,25;-2", "0,75;1;1e-3")
    assert log.time.tolist() == [0.5, 0.75]
    assert log["q"].tolist() == [[1.25, -2.0], [1.0, 0.001]]


def test_bad_lines_cost_those_lines_and_are_listed(tmp_path):
    rows = [f"{k},{k}.5,{-k},{2 * k}" for k in range(100)]
    rows[10] = "10,1"  # line 12: a cell is missing
    rows[20] = "20,x,1,1"  # line 22: a joint position is no number
    rows[30] = "30,1,1,what"  # line 32: a column that nobody needs
    rows[40] = "40,,1,1"  # an empty cell is nan
    rows[50] = "50,1,1,1,1"  # line 52
    log = _read(tmp_path, "t,q_0,q_1,extra", *rows)
    assert log.complete
    assert len(log) == 97
    assert log.problems == (
        "2 lines with another number of cells than 4 were left out (line 12, 52)",
        "1 lines with a cell that is no number were left out (line 22)",
        "1 lines with a word for a number, read as nan, were kept (line 32)",
    )
    kept = np.delete(np.arange(100.0), [10, 20, 50])
    assert np.array_equal(log.time, kept)
    assert np.array_equal(np.flatnonzero(np.isnan(log["extra"])), [28])
    assert np.array_equal(np.flatnonzero(np.isnan(log["q"]).any(axis=1)), [38])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
def test_lines_one_by_one_are_read_as_the_file_is(log, tmp_path, delimiter):
    """The whole file goes another way where it can (all lines at once): the same bits."""
    write_csv(log, tmp_path / "log.csv")
    text = (tmp_path / "log.csv").read_text().replace(",", delimiter)
    (tmp_path / "log.csv").write_text(text)
    whole = read_csv(tmp_path / "log.csv")
    assert whole == log
    rows = list(follow(text.splitlines(keepends=True)))
    assert [row.time for row in rows] == log.time[1:].tolist()  # the first row holds a nan
    for name, values in list(log.columns.items())[1:]:
        assert np.array([row.values[name] for row in rows]).tobytes() == values[1:].tobytes()
    broken = text.splitlines()
    broken.insert(7, delimiter.join(["1"] * 3))  # now line by line: the same bits again
    (tmp_path / "log.csv").write_text("\n".join(broken) + "\n")
    again = read_csv(tmp_path / "log.csv")
    assert again == log
    assert again.problems == (f"1 lines with another number of cells than {len(broken[0].split(delimiter))} were left "
                              "out (line 8)",)  # fmt: skip


def test_a_table_that_opens_now(data_dir):
    log = read_csv(data_dir / "ur3e_rtde" / "WEIGHTS-PLOT.csv")
    assert log["W1"].shape == (len(log), 6)
    assert np.all(np.diff(log.time) == 1.0)


@pytest.mark.parametrize(
    ("unit", "ours", "factor"),
    [("deg", "rad", np.pi / 180), ("deg/s", "rad/s", np.pi / 180), ("ms", "s", 1e-3), ("us", "s", 1e-6),
     ("ns", "s", 1e-9), ("mm", "m", 1e-3), ("mA", "A", 1e-3), ("Nm", "Nm", 1.0)],
)  # fmt: skip
def test_every_unit_that_is_understood(tmp_path, unit, ours, factor):
    log = _read(tmp_path, f"t,x [{unit}]", "0,3")
    assert log["x"][0] == pytest.approx(3 * factor, rel=1e-15)
    assert log.unit("x") == ours


def test_units_of_a_column_list_and_at_the_end_of_names(tmp_path):
    cells = ",".join(str(k) for k in range(1, 14))
    path = tmp_path / "plain.csv"
    path.write_text(f"{cells}\n{cells.replace('1,', '2,', 1)}\n")
    listed = read_csv(path, columns="t [ms],q [deg],tau:6")
    joints = range(1, 7)
    header = ",".join(["time_ms", *(f"joint{j}_pos_deg" for j in joints), *(f"joint{j}_torque_Nm" for j in joints)])
    for log in (listed, _read(tmp_path, header, cells, cells.replace("1,", "2,", 1))):
        np.testing.assert_allclose(log.time, [1e-3, 2e-3], rtol=1e-15)
        np.testing.assert_allclose(log["q"][0], np.radians(np.arange(2.0, 8.0)), rtol=1e-15)
        np.testing.assert_allclose(log["tau"][0], np.arange(8.0, 14.0))
    kept = _read(tmp_path, "t,load_ms,q_rad", "0,1,2")  # the first is no name that we know
    assert kept["load_ms"][0] == 1.0
    assert kept["q"][0] == 2.0


@pytest.mark.parametrize("bad", [10, 11])
def test_a_tenth_of_the_lines_may_be_bad(tmp_path, bad):
    rows = [f"{k},1" for k in range(100)]
    rows[20 : 20 + bad] = ["1"] * bad
    if bad == 10:
        assert len(_read(tmp_path, "t,x", *rows)) == 90
    else:
        with pytest.raises(InvalidValue, match="only 89 of 100 lines can be used"):
            _read(tmp_path, "t,x", *rows)


def test_lines_at_once_are_counted_as_lines_one_by_one():
    lines = ["0,1,2", "1,2,3", "2,3,4"]
    rows, again = CsvRows(columns="t,x:2"), CsvRows(columns="t,x:2")
    first = [rows.numbers(line) for line in lines]
    assert np.array_equal(np.vstack([again.numbers(lines[0]), again.plain(lines[1:])]), first)
    assert (rows.rows, rows.lines) == (again.rows, again.lines) == (3, 3)
    assert again.plain(["3,4"]) is None
    assert again.plain(["3,x,4"]) is None
    assert (again.rows, again.lines) == (3, 3)
