"""Readers of recordings: what they understand, and that they say what is wrong."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from tangere.errors import InvalidValue
from tangere.logs import recordings as reading
from tangere.logs.csv_log import cells_of, write_csv
from tangere.logs.log import Log
from tangere.logs.mcap_log import write_mcap
from tangere.logs.recordings import all_recordings, read, recordings

COLUMNS = "t,q,qd,current"


def _table(rng: np.random.Generator, n: int = 100) -> np.ndarray:
    return np.column_stack([10.0 + 0.01 * np.arange(n), rng.normal(size=(n, 18)).round(6)])


def _csv(path: Path, table: np.ndarray, header: str = "") -> Path:
    lines = [header] if header else []
    lines += [",".join(map(repr, row)) for row in table.tolist()]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_without_a_header(tmp_path: Path, rng: np.random.Generator) -> None:
    table = _table(rng)
    file = _csv(tmp_path / "a.csv", table)
    (got,) = recordings(file, columns=COLUMNS)
    assert got.problems == ()
    assert got.digest == hashlib.sha256(file.read_bytes()).hexdigest()
    np.testing.assert_array_equal(got.log.time, table[:, 0])
    for name, at in (("q", 1), ("qd", 7), ("actual_current", 13)):
        np.testing.assert_array_equal(got.log[name], table[:, at : at + 6])


def test_skipped_and_counted_columns_and_a_rate_instead_of_stamps(tmp_path: Path, rng: np.random.Generator) -> None:
    table = _table(rng)
    (got,) = recordings(_csv(tmp_path / "a.csv", table), columns="_,q,_:6,tau:6", rate=50.0)
    np.testing.assert_array_equal(got.log["tau"], table[:, 13:])
    np.testing.assert_allclose(got.log.time, np.arange(100) / 50.0)
    assert "qd" not in got.log


def test_columns_joint_by_joint(tmp_path: Path, rng: np.random.Generator) -> None:
    """A list with a name for every cell may have any order, units and gaps."""
    table = _table(rng)
    order = [0] + [6 * k + i for i in range(1, 7) for k in range(3)]
    names = ["t", *(name.format(i) for i in range(1, 7) for name in ("q_{} [deg]", "qd_{}", "effort_{}"))]
    (got,) = recordings(_csv(tmp_path / "a.csv", table[:, order]), columns=",".join(names))
    np.testing.assert_array_equal(got.log["q"], np.radians(table[:, 1:7]))
    np.testing.assert_array_equal(got.log["tau"], table[:, 13:])
    names[2::3] = ["_"] * 6
    (got,) = recordings(_csv(tmp_path / "a.csv", table[:, order]), columns=",".join(names))
    assert "qd" not in got.log
    np.testing.assert_array_equal(got.log["tau"], table[:, 13:])


def test_a_header_with_bare_numbers(tmp_path: Path, rng: np.random.Generator) -> None:
    table = _table(rng)
    header = ",".join(["t"] + [f"{name}{i}" for name in ("q", "qd", "effort") for i in range(6)])
    (got,) = recordings(_csv(tmp_path / "a.csv", table, header))
    np.testing.assert_array_equal(got.log["tau"], table[:, 13:])


def test_rtde_names(tmp_path: Path, rng: np.random.Generator) -> None:
    table = _table(rng)
    names = ["timestamp"] + [f"{n}_{i}" for n in ("actual_q", "actual_qd", "actual_current") for i in range(6)]
    (got,) = recordings(_csv(tmp_path / "a.csv", table, ",".join(names)))
    np.testing.assert_array_equal(got.log["actual_current"], table[:, 13:])


def test_npz_by_key_and_glob(tmp_path: Path, rng: np.random.Generator) -> None:
    arrays = {f"run_{i}": rng.normal(size=(20 + i, 18)).astype(np.float32) for i in range(3)}
    file = tmp_path / "a.npz"
    np.savez(file, **arrays, other=np.zeros((3, 2)))
    got = recordings(f"{file}:run_[02]", rate=500.0)
    assert [r.name for r in got] == ["run_0", "run_2"]
    np.testing.assert_array_equal(got[1].log["actual_current"], arrays["run_2"][:, 12:])
    with pytest.raises(InvalidValue, match="run_1"):
        recordings(f"{file}:nothing*", rate=500.0)
    with pytest.raises(InvalidValue, match="rate"):
        recordings(f"{file}:run_0")
    with pytest.raises(InvalidValue, match="18 columns"):
        recordings(f"{file}:other", rate=500.0)


class _Witness:
    """Leaves a file behind if anybody unpickles it."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.mark, "w")


def test_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    file = tmp_path / "a.npz"
    np.savez(file, run=np.array([_Witness(str(mark))], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidValue, match="pickled"):
        recordings(f"{file}:run", rate=500.0)
    bare = tmp_path / "b.npz"
    import pickle

    bare.write_bytes(pickle.dumps(_Witness(str(mark))))
    with pytest.raises(InvalidValue, match="pickled"):
        recordings(bare, rate=500.0)
    assert not mark.exists()


def test_bad_samples_are_left_out_and_said(tmp_path: Path, rng: np.random.Generator) -> None:
    table = _table(rng)
    table[20, 3] = np.nan  # a joint position
    table[31, 0] = table[30, 0]  # the same stamp again
    table[50, 0] -= 0.5  # the clock goes back for one sample
    table[70:, 0] += 2.0  # a gap
    (got,) = recordings(_csv(tmp_path / "a.csv", table), columns=COLUMNS)
    said = " / ".join(got.problems)
    for word in ("1 samples hold NaN", "1 samples repeat", "clock goes backwards", "1 gaps, the longest 2.01 s"):
        assert word in said
    keep = np.setdiff1d(np.arange(100), [20, 31, 50])
    np.testing.assert_array_equal(got.log["q"], table[keep, 1:7])
    assert np.all(np.diff(got.log.time) > 0.0)


def test_a_file_that_is_mostly_unusable_is_refused(tmp_path: Path, rng: np.random.Generator) -> None:
    table = _table(rng)
    table[:15, 2] = np.nan
    with pytest.raises(InvalidValue, match="only 85 of 100"):
        recordings(_csv(tmp_path / "a.csv", table), columns=COLUMNS)


def test_wrong_use_says_what_is_right(tmp_path: Path, rng: np.random.Generator) -> None:
    file = _csv(tmp_path / "a.csv", _table(rng))
    for options, words in (
        ({}, "no header.*19 columns"),
        ({"columns": "t,q,qd"}, "13 columns, the first line has 19"),
        ({"columns": "t,q,q,current"}, "twice"),
        ({"columns": "t,q,,current"}, "NAME"),
    ):
        with pytest.raises(InvalidValue, match=words):
            recordings(file, **options)
    with pytest.raises(InvalidValue, match="cannot read"):
        recordings(tmp_path / "absent.csv")
    ragged = tmp_path / "b.csv"
    ragged.write_text("1,2,3\n1,2\n1,2,3\n")
    with pytest.raises(InvalidValue, match=r"only 2 of 3 lines .* another number of cells than 3 .*\(line 2\)"):
        recordings(ragged, columns="t,a:2")


def test_real_recordings_are_read(data_dir: Path) -> None:
    (got,) = recordings(data_dir / "ur10_excitation" / "ur10_exciting_trajectory.csv")
    assert len(got.log) == 3441
    assert got.log["tau"].shape == (3441, 6)
    contacts = data_dir / "ur10e_contacts"
    (got,) = recordings(contacts / "ur-static.csv", columns="t,q,qd,current,target_current,target_moment")
    assert len(got.log) == 4259
    assert got.problems == ()
    runs = recordings(f"{data_dir / 'ur3e_runs' / 'ur3e_runs_500Hz.npz'}:*_239", rate=500.0)
    assert [len(r.log) for r in runs] == [5390, 5346]


def test_columns_that_nobody_names_are_skipped(tmp_path: Path, rng: np.random.Generator) -> None:
    table = _table(rng)
    file = _csv(tmp_path / "a.csv", table)
    (got,) = recordings(file, columns="t,q,qd,...")
    np.testing.assert_array_equal(got.log["qd"], table[:, 7:13])
    assert "actual_current" not in got.log
    with pytest.raises(InvalidValue, match="stands for 25 columns"):
        recordings(file, columns="t,q,qd,current,target_current,...")


def test_empty_cells_are_nan_and_commas_at_the_end_are_nothing(tmp_path: Path, rng: np.random.Generator) -> None:
    table = _table(rng)
    lines = [",".join(map(repr, row)) + "," for row in table.tolist()]
    cells = lines[40].split(",")
    lines[40] = ",".join([*cells[:3], "", *cells[4:]])
    for ends in ("\n", "\r", "\r\n"):
        file = tmp_path / "a.csv"
        file.write_bytes(ends.join(lines).encode())
        (got,) = recordings(file, columns=COLUMNS)
        assert got.problems[0] == "1 samples hold NaN or infinity and were left out"
        np.testing.assert_array_equal(got.log["q"], np.delete(table, 40, axis=0)[:, 1:7])
    assert cells_of("1,,3", ",") == ["1", "", "3"]
    assert cells_of("1  2 3", " ") == ["1", "2", "3"]
    with pytest.raises(InvalidValue, match="not a line of csv"):
        cells_of("1,2\r3,4", ",")


def test_read_gives_the_one_log_of_a_file_as_it_is(tmp_path: Path, rng: np.random.Generator) -> None:
    table = _table(rng)
    table[3, 2] = np.nan  # left out of recordings, but not of a log that somebody reads
    assert len(read(_csv(tmp_path / "a.csv", table), columns=COLUMNS)) == 100
    np.savez(tmp_path / "b.npz", one=table, two=table[:50])
    assert len(read(f"{tmp_path / 'b.npz'}:two", columns=COLUMNS)) == 50
    with pytest.raises(InvalidValue, match=r"holds 2 logs.*one, two"):
        read(tmp_path / "b.npz", columns=COLUMNS)
    np.savez(tmp_path / "c.npz", time=table[:, 0], q=table[:, 1:7])
    log = read(tmp_path / "c.npz")
    np.testing.assert_array_equal(log["q"], table[:, 1:7])
    with pytest.raises(InvalidValue, match="cannot read"):
        read(tmp_path / "absent.npz")
    with pytest.raises(InvalidValue, match="rate"):
        read(tmp_path / "b.npz:one", columns="_:13,current", rate=-1.0)


def test_lines_that_cannot_be_read_are_among_the_problems(tmp_path: Path, rng: np.random.Generator) -> None:
    file = _csv(tmp_path / "a.csv", _table(rng))
    lines = file.read_text().splitlines()
    lines[4], lines[-1] = "1,2", lines[-1][:20]
    file.write_text("\n".join(lines))
    (got,) = recordings(file, columns=COLUMNS)
    assert got.problems[0] == "1 lines with another number of cells than 19 were left out (line 5)"
    assert got.problems[1] == "the end of the file is cut off"
    assert len(got.log) == 98


def test_an_npz_with_an_array_for_each_quantity_is_one_log(tmp_path: Path) -> None:
    t, q = np.arange(50) / 100.0, np.random.default_rng(1).normal(size=(50, 6))
    np.savez(tmp_path / "log.npz", t=t, position=q, velocity=2.0 * q, effort=3.0 * q)
    log = read(tmp_path / "log.npz")
    assert list(log.columns) == ["time", "q", "qd", "tau"]
    np.testing.assert_array_equal(log.time, t)
    np.testing.assert_array_equal(log["tau"], 3.0 * q)
    np.savez(tmp_path / "bare.npz", q=q, qd=q, current=q)
    with pytest.raises(InvalidValue, match="no stamps"):
        read(tmp_path / "bare.npz")
    assert read(tmp_path / "bare.npz", rate=100.0).time[1] == 0.01


def test_cells_that_are_no_numbers_are_listed(tmp_path: Path) -> None:
    q = np.ones((50, 6))
    q[7:9, 2] = np.nan
    np.savez(tmp_path / "log.npz", time=np.arange(50.0), q=q, qd=q)
    log = read(tmp_path / "log.npz")
    assert log.problems[0] == "q (3): NaN or infinity in 2 rows, the first is row 8"
    assert len(log.problems) == 2  # every number stays as it is
    assert np.isnan(log["q"][7, 2])
    write_csv(log, tmp_path / "log.csv")
    assert read(tmp_path / "log.csv").problems == log.problems


@pytest.mark.parametrize("kind", ["csv", "mcap"])
def test_of_a_long_log_stretches_are_learned_from(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Rows stay as they are and in their order; no more than memory allows, spread from the first to the last."""
    from tangere import foreign
    from tangere.logs import log as logs
    from tangere.logs import recordings as module

    count, hertz, most = 4000, 10.0, 950  # three stretches of 30 s
    time = np.arange(count) / hertz
    noise = rng.normal(size=(3, count, 6))
    log = Log({"time": time, "q": noise[0], "qd": noise[1], "tau": noise[2], "score": time})
    file = tmp_path / f"long.{kind}"
    write_csv(log, file) if kind == "csv" else write_mcap(log, file)
    monkeypatch.setattr(module, "LONG_FILE", 1000)
    monkeypatch.setattr(logs, "LONG", 100)
    monkeypatch.setattr(foreign, "_allowed", most * module.TAKEN)
    found = recordings(file, share=1.0)
    assert [part.name for part in found] == [f"long.{kind} ({a} to {a + 30} s)" for a in (0, 185, 370)]
    assert found[0].problems[0].startswith("3 stretches of 30 s are used")
    assert "--memory allows more" in found[0].problems[0]
    assert [part.problems for part in found[1:]] == [()] * 2
    assert len({part.digest for part in found}) == 1
    for part in found:
        first = int(np.searchsorted(time, part.log.time[0]))
        assert len(part.log) in (299, 300)  # a csv's header is counted as a row
        for name in ("time", "q", "qd", "tau"):
            np.testing.assert_array_equal(part.log[name], log[name][first : first + len(part.log)])
    assert found[-1].log.time[-1] > time[-20]
    assert len(recordings(file, share=0.4)) == 1  # of several files each has its share
    monkeypatch.setattr(foreign, "_allowed", 2 * count * module.TAKEN)
    (whole,) = recordings(file, share=1.0)
    assert (whole.name, whole.problems, len(whole.log)) == (f"long.{kind}", (), count)
    np.testing.assert_array_equal(whole.log["tau"], log["tau"])
    assert [len(part.log) for part in recordings(file)] == [count]  # who does not learn reads all of it


def test_logs_that_are_read_together_share_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float] = []
    monkeypatch.setattr(reading, "recordings", lambda source, share, **how: shares.append(share) or [])
    assert all_recordings(["a.csv", "b.csv", "c.csv"]) == []
    assert len(shares) == 3
    assert sum(shares) == pytest.approx(1.0, rel=1e-12)
