"""tangere study: what it prints and writes, in simulation and on logs; and what it says of bad options."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest

from tangere.apps.study.plan import Plan
from tangere.apps.study.world import random_path, world_of
from tangere.cli.main import main

SMALL = ["study", "--trials", "4", "--minutes", "0.1", "--learn", "0.2", "--workers", "1"]


def rows(path):
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    assert main([*SMALL, "--seed", "5", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A UR10e whose friction is a little off, 250 samples per second, as a csv without header."""
    world = world_of(Plan(frequency=250.0, mass=1.0), "wrong")
    rng = np.random.default_rng(1)
    run = world.simulate(rng, random_path(world, rng, 6.0))
    file = tmp_path_factory.mktemp("logs") / "free.csv"
    np.savetxt(file, np.column_stack((run.time, run.q, run.qd, run.tau)), delimiter=",", fmt="%.9g")
    return file


def test_a_simulated_study_leaves_csv_and_a_report(simulated):
    contacts = rows(simulated / "contacts.csv")
    assert len(contacts) == 4
    assert {row["world"] for row in contacts} == {"exact", "wrong"}
    assert all(1 <= int(row["link"]) <= 6 for row in contacts)
    assert all(row["found"] == str(int(row["delay_s"] != "inf")) for row in contacts)
    assert {row["observer"] for row in rows(simulated / "observers.csv")} >= {"momentum", "kalman", "acceleration, raw"}
    assert len(rows(simulated / "roc.csv")) > 40
    assert any("smallest step" in row["what"] for row in rows(simulated / "summary.csv"))


def test_the_page_is_one_file_with_every_section(simulated):
    page = (simulated / "report.html").read_text()
    for anchor in ("found", "roc", "delays", "steps", "isolation", "calibration", "observers", "how"):
        assert f'id="{anchor}"' in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "nan" not in re.sub(r"<(script|style)[^>]*>.*?</\1>", "", page, flags=re.S).lower()
    assert "tangere study --trials 4" in page


def test_logs_are_injected_into_without_a_model(log, tmp_path, capsys):
    command = ["study", "--logs", str(log), "--robot", "ur10e", "--columns", "t,q,qd,tau", "--every", "0.7"]
    assert main([*command, "--workers", "1", "--torque", "60,60,40,15,15,15", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "1 free logs" in said
    steps = rows(tmp_path / "steps.csv")
    asked = [row for row in steps if row["joint"] == "2" and row["torque_nm"] == "60"]
    assert asked
    assert all(0.0 < float(row["delay_s"]) < 0.4 for row in asked if row["moving"] == "1")
    # what is a tenth of the thresholds is not found: 1 % of the peak torque against a friction that is not known
    small = [float(row["delay_s"]) for row in steps if row["joint"] == "2" and float(row["torque_nm"]) < 4.0]
    assert small
    assert np.all(np.isinf(small))
    page = (tmp_path / "report.html").read_text()
    assert "free.csv" in page
    assert rows(tmp_path / "logs.csv")[0]["false_alarms"] == "0"


def test_a_log_name_is_escaped(log, tmp_path):
    file = tmp_path / "a<b>&c.csv"
    file.write_bytes(log.read_bytes())
    command = ["study", "--logs", str(file), "--robot", "ur10e", "--columns", "t,q,qd,tau", "--every", "4"]
    assert main([*command, "--workers", "1", "--out", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "a<b>" not in page
    assert "a&lt;b&gt;&amp;c.csv" in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "x.toml"], "--model needs --logs"),
        (["--logs", "x.csv", "--robot", "ur3e", "--trials", "5"], "--trials is for simulation"),
        (["--logs", "x.csv"], "--logs needs --robot"),
        (["--logs", "no_such.csv", "--robot", "ur3e"], "no_such.csv"),
        (["--trials", "0"], "trials"),
        (["--robot", "ur99"], "ur99"),
        (["--step", "2"], "--step: 2 numbers"),
        (["--step", "9,20"], "step: joint from 1 to 6"),
        (["--workers", "0", "--trials", "4"], "workers"),
        (["--mass", "-1"], "mass"),
    ],
)
def test_what_cannot_be_is_one_line(words, said, tmp_path, capsys):
    assert main(["study", *words, "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_options_of_logs_are_checked(log, tmp_path, capsys):
    command = ["study", "--logs", str(log), "--robot", "ur10e", "--columns", "t,q,qd,tau", "--out", str(tmp_path)]
    for words, said in (
        (["--torque", "1,2"], "--torque: 6 numbers"), (["--torque", "0,1,1,1,1,1"], "torque: 6 numbers > 0"),
        (["--folds", "1"], "folds"), (["--folds", "3"], "at most one per log"), (["--skip", "*"], "no log is left"),
    ):  # fmt: skip
        assert main([*command, *words]) == 1
        assert said in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_said(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main([*SMALL, "--out", str(tmp_path / "file")]) == 1
    assert "cannot write into" in capsys.readouterr().err


def test_an_interruption_keeps_what_is_done(tmp_path, capsys, monkeypatch):
    """Ctrl-C in the second task of contacts: the first is in the files, the page says so, exit code 130."""
    from tangere.apps.study import study

    real, calls = study.touch_batch, []

    def batch(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(study, "touch_batch", batch)
    assert main([*SMALL, "--out", str(tmp_path)]) == 130
    assert "interrupted" in capsys.readouterr().out
    assert len(rows(tmp_path / "contacts.csv")) == 2
    assert "Interrupted" in (tmp_path / "report.html").read_text()


def test_an_interruption_before_anything_is_said(tmp_path, capsys, monkeypatch):
    from tangere.apps.study import study

    def never(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "learn_chunk", never)
    assert main([*SMALL, "--out", str(tmp_path)]) == 130
    assert "before there was anything" in capsys.readouterr().err


def test_the_help_has_examples(capsys):
    with pytest.raises(SystemExit):
        main(["study", "--help"])
    said = capsys.readouterr().out
    assert "--folds 4" in said
    assert "real logs" in said
