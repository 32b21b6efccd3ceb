"""tangere identify: from files to a model file and a report; and what it says of bad ones."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.apps.touch.learn_commands import rates
from tangere.apps.touch.options import sample_rate
from tangere.cli.main import main
from tangere.errors import InvalidValue
from tangere.identification import prior_drive, read_model
from tangere.identification.belief import belief
from tangere.identification.identify_logs import split
from tangere.identification.touch_logs import touch_log
from tangere.logs.recordings import recordings

N = 6
COLUMNS = "t,q,qd,current,target_current,target_moment"


def _table(seed: int = 1, seconds: float = 16.0, name: str = "ur10e", speed: float = 1.0) -> np.ndarray:
    """A UR10e as its recorder writes it: 100 samples per second with jitter, currents, the controller's targets."""
    robot = tangere.robot(name)
    drive, rng = prior_drive(robot), np.random.default_rng(seed)
    t = np.cumsum(rng.choice([0.008, 0.01, 0.012], size=round(100 * seconds)))
    s = np.maximum(t - 2.0, 0.0)[:, None, None]  # it rests for two seconds, and then starts softly
    soft = 1.0 - np.exp(-(s**2))
    rate, phase, size = rng.uniform(0.4, 1.4, (3, N)), rng.uniform(0.0, 6.0, (3, N)), rng.uniform(0.15, 0.35, (3, N))
    start = np.array([0.4, -1.3, 1.5, -1.1, -1.2, 0.3])
    q = start + (speed * soft * size * np.sin(s * rate + phase)).sum(axis=1)
    qd = np.gradient(q, t, axis=0)
    qdd = np.gradient(qd, t, axis=0)
    moment = robot.inverse_dynamics(q, qd, qdd)
    rubbing = drive.friction(q, qd, robot.gravity_torque(q)) + drive.rotor_inertia * qdd
    gain = robot.drives.gain
    noise = 0.005 * drive.coulomb * rng.normal(size=q.shape)
    still = np.abs(qd).max(axis=1, keepdims=True) < 1e-3
    current = (moment + rubbing + noise) / gain
    target = (moment + np.where(still, 0.0, rubbing)) / gain
    return np.column_stack([100.0 + t, q, qd, current, target, moment])


def _write(file: Path, table: np.ndarray) -> Path:
    np.savetxt(file, table, fmt="%.6f", delimiter=",")
    return file


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("logs")
    return [_write(folder / f"free_{k}.csv", _table(k)) for k in (1, 2, 3)]


def _identify(*words: object) -> int:
    return main(["identify", *map(str, words)])


def test_from_logs_to_a_model_and_a_report(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "model.toml"
    assert _identify(*logs, "--robot", "ur10e", "--columns", COLUMNS, "--out", out, "--holdout", "free_1.csv") == 0
    said = capsys.readouterr().out
    assert "identified from 2 logs" in said
    assert "judged on 1 that was not used" in said
    assert "11.976 log" in said  # joint 2: read from the log's own targets
    assert re.search(r"^ +1 +11.976 arm", said, re.MULTILINE)  # joint 1 carries nothing there
    model = read_model(out)
    assert model.unseen
    assert [name for name, _ in model.logs] == ["free_2.csv", "free_3.csv"]
    true = prior_drive(tangere.robot("ur10e"))
    # velocities are differences at 100 samples per second: 5 % is what that costs
    np.testing.assert_allclose(model.drive.coulomb, true.coulomb, rtol=0.05)
    np.testing.assert_allclose(model.drive.viscous, true.viscous, rtol=0.05)
    assert np.all(model.after < 0.1 * true.coulomb)
    page = (tmp_path / "model.html").read_text()
    for word in ("How well it fits", "Friction", "The twin", "How exciting", "free_1.csv"):
        assert word in page
    twin = [float(row) for row in re.findall(r"^ +\d +[\d.]+ (?:arm|log) .* (\S+)$", said, re.MULTILINE)]  # [mrad]
    assert len(twin) == N
    assert 0.005 < max(twin) < 1.0
    assert f"<dt>twin after 200 ms, worst joint</dt><dd>{max(twin):g}<small>" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    # and it is accepted wherever a parameter set is
    assert main(["check", "ur10e", "--parameters", str(out)]) == 0
    assert 'parameters "identified"' in capsys.readouterr().out
    assert tangere.robot("ur10e", parameters=out, rotor_inertia=True).drives.coulomb[1] == model.drive.coulomb[1]
    (record,) = recordings(logs[0], columns=COLUMNS)
    again = touch_log(record, tangere.robot("ur10e"), model=model)
    assert again.source == ("model",) * N


def test_bad_samples_are_said_and_do_no_harm(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = _table(1)
    table[300, 4] = np.nan
    table[501, 0] = table[500, 0]
    table[700, 0] -= 3.0
    table[900:, 0] += 1.5
    bad = _write(tmp_path / "bad.csv", table)
    out = tmp_path / "m.toml"
    words = ("--robot", "ur10e", "--columns", COLUMNS, "--out", out, "--inertial", "none", "--no-report")
    assert _identify(bad, logs[1], "--holdout", "0", *words) == 0
    said = capsys.readouterr().out
    for word in ("1 samples hold NaN", "1 samples repeat", "clock goes backwards", "1 gaps, the longest 1.5"):
        assert word in said
    assert "judged on the same" in said
    np.testing.assert_allclose(read_model(out).drive.coulomb, prior_drive(tangere.robot("ur10e")).coulomb, rtol=0.05)
    assert not (tmp_path / "m.html").exists()


def test_the_wrong_robot_is_said(logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--columns", "t,q,qd,current,...", "--inertial", "none", "--no-report", "--out", tmp_path / "m.toml")
    assert _identify(logs[0], "--robot", "ur3e", *words) == 0
    said = capsys.readouterr().out
    assert "gravity does not fit ur3e" in said
    assert "ur10e" in said.partition("it would fit")[2]
    model = read_model(tmp_path / "m.toml")
    assert [found.kind for found in model.findings].count("other arm") == 1  # the file keeps it, said once of all logs
    assert any("does not fit ur3e" in text for text in belief(tangere.robot("ur3e"), model).notes)  # watch tells it


def _refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert _identify(*words) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1  # one line
    return captured.err


def test_logs_in_other_units_make_no_model(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--robot", "ur10e", "--inertial", "none", "--no-report", "--out", tmp_path / "m.toml", "--holdout", "0")
    said = _refused(capsys, logs[0], "--columns", "t,q,qd,torque,...", *words)
    assert "torques look like motor currents" in said
    table = _table(1)
    table[:, 13:19] *= tangere.robot("ur10e").drives.gain
    torques = _write(tmp_path / "torques.csv", table)
    said = _refused(capsys, torques, "--columns", "t,q,qd,current,...", *words)
    assert "currents look like torques" in said
    table = _table(1)
    table[:, 1:13] *= 180.0 / np.pi
    degrees = _write(tmp_path / "degrees.csv", table)
    assert "look like degrees" in _refused(capsys, degrees, "--columns", COLUMNS, *words)
    assert not (tmp_path / "m.toml").exists()


def test_a_spike_is_left_out_and_said(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = np.loadtxt(logs[0], delimiter=",")
    table[700, 15] = 1e6  # A
    spike = _write(tmp_path / "spike.csv", table)
    models = []
    for log in (logs[0], spike):
        out = tmp_path / f"{log.stem}.toml"
        words = ("--robot", "ur10e", "--columns", COLUMNS, "--inertial", "none", "--no-report", "--out", out)
        assert _identify(log, *words, "--holdout", "0") == 0
        models.append(read_model(out))
    said = capsys.readouterr().out
    assert "spike.csv: 1 sample left out as impossible" in said
    assert "in joint 3, whose drive has 150" in said
    # one sample of 1600 less, and windows of two samples that begin elsewhere after it
    np.testing.assert_allclose(models[1].drive.coulomb, models[0].drive.coulomb, rtol=0.02)


def test_what_cannot_be_used_says_what_is_missing(
    logs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--robot", "ur10e", "--out", tmp_path / "m.toml", "--no-report")
    named = ("--columns", COLUMNS)
    assert "19 columns" in _refused(capsys, logs[0], "--columns", "t,q,qd,current", *out)
    assert "has no header" in _refused(capsys, logs[0], *out)
    short = _write(tmp_path / "short.csv", _table(1)[:60])
    assert "too short" in _refused(capsys, short, *named, *out)
    still = _write(tmp_path / "still.csv", _table(1, speed=0.0))
    assert "not exciting enough" in _refused(capsys, still, *named, *out)
    pickled = tmp_path / "a.npz"
    pickled.write_bytes(pickle.dumps({"a": 1}))
    assert "pickled" in _refused(capsys, pickled, "--rate", "500", *out)
    assert "cannot read" in _refused(capsys, tmp_path / "absent.csv", *out)
    assert "--payload: 1 or 4 numbers" in _refused(capsys, logs[0], *named, "--payload", "1,2", *out)
    assert "no log is called" in _refused(capsys, logs[0], *named, "--holdout", "other.csv", *out)
    assert "0 to below 1" in _refused(capsys, logs[0], *named, "--holdout", "1.5", *out)
    assert "ends in .toml" in _refused(capsys, logs[0], *named, "--robot", "ur10e", "--out", "model.txt")
    assert "unknown robot" in _refused(capsys, logs[0], *named, "--robot", "ur11", "--out", tmp_path / "m.toml")
    assert not (tmp_path / "m.toml").exists()


def test_logs_are_split_evenly_or_by_name(logs: list[Path]) -> None:
    robot = tangere.robot("ur10e")
    read = [touch_log(recordings(log, columns=COLUMNS)[0], robot) for log in logs]
    used, judges = split([*read, *read], 0.25)
    assert (len(used), len(judges)) == (4, 2)
    used, judges = split(read, "free_[13].csv")
    assert [log.name for log in judges] == ["free_1.csv", "free_3.csv"]
    used, judges = split(read[:1], None)  # one log: its last quarter judges
    assert len(judges[0].motion.time) == pytest.approx(len(read[0].motion.time) / 4, rel=0.02)
    assert used[0].motion.time[-1] < judges[0].motion.time[0]
    assert judges[0].target_moment is not None
    assert len(judges[0].target_moment) == len(judges[0].motion.time)
    assert split(read, 0.0)[1] == []


def test_a_payload_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = _table(1)
    loaded = tangere.robot("ur10e", payload=(4.0, (0.0, 0.02, 0.08)))
    bare = tangere.robot("ur10e")
    q, qd = table[:, 1:7], table[:, 7:13]
    qdd = np.gradient(qd, table[:, 0], axis=0)
    extra = loaded.inverse_dynamics(q, qd, qdd) - bare.inverse_dynamics(q, qd, qdd)
    table[:, 13:19] += extra / bare.drives.gain
    file = _write(tmp_path / "loaded.csv", table)
    words = ("--robot", "ur10e", "--columns", "t,q,qd,current,...", "--out", tmp_path / "m.toml")
    assert _identify(file, "--inertial", "payload", *words) == 0
    assert "(identified)" in capsys.readouterr().out
    payload = read_model(tmp_path / "m.toml").payload
    assert payload is not None
    assert payload.mass == pytest.approx(4.0, rel=0.02)
    np.testing.assert_allclose(payload.com, [0.0, 0.02, 0.08], atol=0.01)
    assert "Payload" in (tmp_path / "m.html").read_text()


# rates --------------------------------------------------------------------------------------------------------------


def test_rates_are_told_apart() -> None:
    assert rates(["0.1/h"], None) == (0.1, None)
    assert rates(["2.4/day"], None)[0] == pytest.approx(0.1)
    assert rates(["0.5/min"], 500.0) == (30.0, 500.0)
    assert rates(["500", "1 / h"], None) == (1.0, 500.0)
    assert rates(["500Hz"], None) == (0.1, 500.0)
    assert rates(["2"], None) == (0.1, 2.0)  # from two a second on a bare number may be a recording's
    assert rates([], None) == (0.1, None)
    assert sample_rate("125 Hz", "--rate") == 125.0
    assert sample_rate(None, "--rate") is None


@pytest.mark.parametrize("word", ["0.1", "1.99", "0/h", "-1/h", "1/year", "fast", "nan/h", "inf", "-5Hz"])
def test_rates_that_mean_nothing_are_refused(word: str) -> None:
    with pytest.raises(InvalidValue, match="--rate"):
        rates([word], None)


def test_logs_of_the_same_name_stay_apart(logs: list[Path], tmp_path: Path) -> None:
    """Every run's log is log.mcap: one row each in the page, each with its own hash; tune knows its own again."""
    runs = []
    for file in logs:
        runs.append(tmp_path / file.stem / "log.csv")
        runs[-1].parent.mkdir()
        runs[-1].write_bytes(file.read_bytes())
    out, arm = tmp_path / "model.toml", ("--robot", "ur10e", "--columns", COLUMNS)
    assert _identify(*runs, *arm, "--out", out, "--holdout", "log.csv (2)", "--inertial", "none") == 0
    assert [name for name, _ in read_model(out).logs] == ["log.csv (1)", "log.csv (3)"]
    page = (tmp_path / "model.html").read_text()
    digests = [recordings(run, columns=COLUMNS)[0].digest[:16] for run in runs]
    rows = re.findall(r">(log\.csv \(\d\))</th><td>(used|judges)</td>.*?<code[^>]*>(\w+)<", page)
    assert sorted(rows) == [(f"log.csv ({k})", "judges" if k == 2 else "used", d) for k, d in enumerate(digests, 1)]
