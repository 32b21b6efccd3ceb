"""tangere tune and tangere watch: from files and pipes to events, and what they say of bad ones."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.apps.touch.event_table import cells
from tangere.cli.main import main
from tangere.identification import prior_drive, read_model
from tangere.observe.detect import Event, Thresholds

N = 6
NOISE = np.array([2.3, 2.0, 0.9, 0.29, 0.43, 0.30])  # Nm per sample at 100 Hz, as a UR10e has it
COLUMNS = "t,q,qd,current"
KEYS = ("time_s", "onset_s", "end_s", "kind", "link", "joint", "torque_nm", "residual_nm", "force_n", "confidence")


def _table(
    seed: int = 1, seconds: float = 12.0, push: tuple[float, float, float] | None = None, name: str = "ur10e"
) -> np.ndarray:
    """A moving arm as a recorder writes it: 100 samples per second with jitter, stamp, q, qd, motor currents."""
    robot = tangere.robot(name)
    drive, rng = prior_drive(robot), np.random.default_rng(seed)
    t = np.cumsum(rng.choice([0.008, 0.01, 0.012], size=round(100 * seconds)))
    rate, phase, size = rng.uniform(0.4, 1.2, (3, N)), rng.uniform(0.0, 6.0, (3, N)), rng.uniform(0.15, 0.3, (3, N))
    angle = t[:, None, None] * rate + phase
    q = np.array([0.4, -1.3, 1.5, -1.1, -1.2, 0.3]) + (size * np.sin(angle)).sum(axis=1)
    qd = (size * rate * np.cos(angle)).sum(axis=1)
    qdd = -(size * rate**2 * np.sin(angle)).sum(axis=1)
    tau = robot.inverse_dynamics(q, qd, qdd) + drive.rotor_inertia * qdd
    tau += drive.friction(q, qd, robot.gravity_torque(q))
    if push is not None:  # from, to [s], N downwards on the flange
        down = np.array([0.0, 0.0, -push[2], 0.0, 0.0, 0.0])
        tau -= np.where(((t >= push[0]) & (t < push[1]))[:, None], robot.jacobian(q).transpose(0, 2, 1) @ down, 0.0)
    current = (tau + NOISE * rng.normal(size=q.shape)) / robot.drives.gain
    return np.column_stack([100.0 + t, q, qd + 0.001 * rng.normal(size=q.shape), current])


def _write(file: Path, table: np.ndarray) -> Path:
    np.savetxt(file, table, fmt="%.8f", delimiter=",")
    return file


PUSH = (5.0, 6.0, 60.0)  # N on the flange


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three free logs, a touched one, a model of the first two and thresholds from the third."""
    place = tmp_path_factory.mktemp("logs")
    for k in (1, 2, 3):
        _write(place / f"free_{k}.csv", _table(k))
    _write(place / "touched.csv", _table(4, push=PUSH))
    free = [str(place / f"free_{k}.csv") for k in (1, 2, 3)]
    words = ["--robot", "ur10e", "--columns", COLUMNS]
    out = ["--out", str(place / "model.toml")]
    assert main(["identify", *free[:2], *words, "--holdout", "0", "--inertial", "none", "--no-report", *out]) == 0
    assert main(["tune", *free, *words, "--model", str(place / "model.toml"), "--rate", "1/h",
                 "--out", str(place / "tuned.toml")]) == 0  # fmt: skip
    return place


def _watch(*words: object) -> int:
    return main(["watch", *map(str, words)])


def _events(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


# identify, tune, watch ----------------------------------------------------------------------------------------------


def test_identify_tune_watch_find_the_push(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--robot", "ur10e", "--columns", COLUMNS, "--json"]
    assert _watch(folder / "touched.csv", *words, "--model", folder / "tuned.toml") == 0
    said = capsys.readouterr()
    assert said.err == ""
    (event,) = _events(said.out)
    assert all(key in event for key in KEYS)
    assert event["log"] == "touched.csv"
    assert event["phase"] == "ended"
    first = float(np.loadtxt(folder / "touched.csv", delimiter=",")[0, 0])
    assert event["time_s"] == pytest.approx(105.0, abs=0.1)
    assert event["since_start_s"] == pytest.approx(event["time_s"] - first)  # type: ignore[operator]
    assert event["onset_s"] == pytest.approx(105.0, abs=0.03)
    assert event["end_s"] == pytest.approx(106.0, abs=0.2)
    assert event["alarm"] is True
    assert len(event["residual_nm"]) == N  # type: ignore[arg-type]
    assert np.loadtxt(folder / "touched.csv", delimiter=",")[:, 0].tolist().count(event["time_s"]) == 1  # a stamp


def test_without_a_model_it_is_found_too_and_free_motion_is_free(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--robot", "ur10e", "--columns", COLUMNS]
    assert _watch(folder / "touched.csv", *words) == 0
    said = capsys.readouterr()
    assert "1 alarm in" in said.out
    assert "no rate of false alarms is promised" in said.out
    assert "no model" in said.err
    for model in ([], ["--model", folder / "model.toml"], ["--model", folder / "tuned.toml"]):
        assert _watch(folder / "free_3.csv", *words, *model) == 0
        assert "free_3.csv: no alarms in" in capsys.readouterr().out


def test_the_tuned_file_is_a_model_file(folder: Path) -> None:
    model = read_model(folder / "tuned.toml")
    thresholds = Thresholds.from_table(dict(model.detection))
    assert thresholds.tuned
    assert [name for name, _ in thresholds.logs] == ["free_1.csv", "free_2.csv", "free_3.csv"]
    before = read_model(folder / "model.toml")
    np.testing.assert_array_equal(model.drive.coulomb, before.drive.coulomb)
    np.testing.assert_array_equal(model.covariance, before.covariance)


def test_tune_says_what_it_promises(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, page = tmp_path / "t.toml", tmp_path / "t.html"
    words = ["--robot", "ur10e", "--columns", COLUMNS, "--model", str(folder / "model.toml")]
    assert main(["tune", str(folder / "free_1.csv"), *words, "--rate", "0.1/day", "--out", str(out),
                 "--report", str(page)]) == 0  # fmt: skip
    said = capsys.readouterr()
    assert "was asked for" in said.out
    assert "cannot be promised" in said.out
    assert "used to identify" in said.err
    assert "Thresholds" in page.read_text()
    assert main(["tune", str(folder / "touched.csv"), *words, "--out", str(out)]) == 0
    assert "looks touched 5.0" in capsys.readouterr().err


def test_pipe_and_file_tell_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--robot", "ur10e", "--columns", COLUMNS, "--model", folder / "tuned.toml"]
    assert _watch(folder / "touched.csv", *words, "--json") == 0
    (whole,) = _events(capsys.readouterr().out)
    text = (folder / "touched.csv").read_text()
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert _watch("-", *words, "--json") == 0
    raised, ended = _events(capsys.readouterr().out)
    assert (raised["phase"], ended["phase"]) == ("raised", "ended")
    assert raised["time_s"] == whole["time_s"]
    for key in ("time_s", "onset_s", "end_s", "kind", "joint", "link"):
        assert ended[key] == whole[key]
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert _watch("-", *words) == 0
    said = capsys.readouterr().out
    assert "raised" in said
    assert "1 event in" in said


def test_following_ends_with_ctrl_c(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def enough(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", enough)  # the whole file is read, then the first wait for more
    words = ["--robot", "ur10e", "--columns", COLUMNS, "--model", folder / "tuned.toml", "--json", "--follow"]
    assert _watch(folder / "touched.csv", *words) == 0
    assert [event["phase"] for event in _events(capsys.readouterr().out)] == ["raised", "ended"]


def test_masks(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # 24 N are 17 Nm on joint 3: between its untuned threshold of 9 Nm and three times that
    log = _write(tmp_path / "soft.csv", _table(4, push=(5.0, 6.0, 24.0)))
    words = [log, "--robot", "ur10e", "--columns", COLUMNS, "--json", "--model", folder / "model.toml"]
    assert _watch(*words, "--payload-change", "104,107") == 0
    (event,) = _events(capsys.readouterr().out)
    assert (event["kind"], event["alarm"]) == ("payload", False)
    assert _watch(*words, "--wanted", "+4,+7") == 0
    (event,) = _events(capsys.readouterr().out)
    assert (event["kind"], event["alarm"]) == ("wanted", False)
    assert _watch(*words, "--wanted", "+7,+9", "--wanted", "+4,+7:6") == 0
    (event,) = _events(capsys.readouterr().out)
    assert event["alarm"] is True  # joint 6 is not what was pushed
    for wrong in ("5", "a,b", "7,4", "4,7:9", "4,7:x"):
        assert _watch(*words, "--wanted", wrong) == 1
        assert "error" in capsys.readouterr().err


def test_the_report_is_one_page_that_escapes(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = tmp_path / "a<b>&c.csv"
    odd.write_bytes((folder / "touched.csv").read_bytes())
    page = tmp_path / "page.html"
    words = [odd, "--robot", "ur10e", "--columns", COLUMNS, "--report", page, "--model", folder / "model.toml"]
    assert _watch(*words) == 0
    assert f"report: {page}" in capsys.readouterr().out
    text = page.read_text()
    assert "a&lt;b&gt;&amp;c.csv" in text
    assert "a<b>" not in text
    for word in ("Events", "Residual", "Where", "Thresholds", "Logs", "Not tuned"):
        assert word in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    # one line of JSON per event also with a report: its place is said elsewhere
    assert _watch(*words, "--json") == 0
    said = capsys.readouterr()
    assert len(_events(said.out)) == 1
    assert "report:" in said.err


def test_arrays_of_an_npz(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = _table(4, push=PUSH)
    even = np.arange(rows[0, 0], rows[-1, 0], 0.01)
    table = np.stack([np.interp(even, rows[:, 0], column) for column in rows[:, 1:].T], axis=1)
    np.savez(tmp_path / "runs.npz", push_1=table, free_1=table[:450], free_2=table[:400])
    words = ["--robot", "ur10e", "--json", "--model", folder / "model.toml"]
    assert _watch(f"{tmp_path / 'runs.npz'}:*", *words, "--rate", "100Hz") == 0
    (event,) = _events(capsys.readouterr().out)
    assert event["log"] == "push_1"
    assert event["time_s"] == pytest.approx(5.0, abs=0.1)
    assert _watch(f"{tmp_path / 'runs.npz'}:push*", *words) == 1
    assert "rate in samples per second" in capsys.readouterr().err
    assert _watch(f"{tmp_path / 'runs.npz'}:other*", *words, "--rate", "100") == 1
    assert "it has push_1" in capsys.readouterr().err


# what can be wrong --------------------------------------------------------------------------------------------------


def test_flaws_of_a_log_are_said_and_the_push_is_found(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = np.loadtxt(folder / "touched.csv", delimiter=",")
    rows = np.delete(rows, np.arange(200, 240), axis=0)  # 0.4 s
    rows[100, 3] = np.nan
    rows[300, 0] = rows[299, 0]
    rows[400, 0] -= 1.0
    _write(tmp_path / "flaws.csv", rows)
    words = ["--robot", "ur10e", "--columns", COLUMNS, "--json", "--model", folder / "tuned.toml"]
    assert _watch(tmp_path / "flaws.csv", *words) == 0
    said = capsys.readouterr()
    for word in ("1 samples hold NaN", "repeat the stamp", "clock goes backwards", "gaps, the longest 0.4"):
        assert word in said.err
    (event,) = _events(said.out)
    assert event["time_s"] == pytest.approx(105.0, abs=0.1)


@pytest.mark.parametrize(
    ("option", "value"), [("--on-event", "true"), ("--set-output", "1"), ("--seconds", "3"), ("--log", "new.mcap")]
)
def test_what_is_for_live_arms_and_streams_is_refused_for_a_file(
    folder: Path, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _watch(folder / "free_1.csv", "--robot", "ur10e", "--columns", COLUMNS, option, value) == 1
    said = capsys.readouterr().err
    assert f"{option}: " in said
    assert "file" in said


def test_wrong_columns(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = folder / "free_1.csv"
    for columns, word in (
        ("t,q,qd,current,target_current", "stands for 25 columns, the first line has 19"),
        ("t,q,qd", "stands for 13 columns"),
        ("t,q,qd,speed", "neither torque"),
        ("t,position,qd,current:6,_", "stands for 20 columns"),
        ("t,,q", "NAME or NAME:COUNT"),
        ("t,_:6,qd,current", "no joint positions"),
    ):
        assert _watch(log, "--robot", "ur10e", "--columns", columns) == 1
        assert word in capsys.readouterr().err
    assert _watch(log, "--robot", "ur10e") == 1
    assert "has no header; say what its 19 columns are" in capsys.readouterr().err
    lines = log.read_text().splitlines()
    (tmp_path / "ragged.csv").write_text("\n".join([*lines[:50], lines[50] + ",1.0", *lines[51:]]))
    assert _watch(tmp_path / "ragged.csv", "--robot", "ur10e", "--columns", COLUMNS) == 0
    said = capsys.readouterr().err
    assert "note: ragged.csv: 1 lines with another number of cells than 19 were left out (line 51)" in said


def test_another_arm_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = _write(tmp_path / "small.csv", _table(1, name="ur3e"))
    assert _watch(log, "--robot", "ur10e", "--columns", COLUMNS) == 0
    said = capsys.readouterr().err
    assert "gravity does not fit ur10e" in said
    assert "it would fit ur3e" in said
    assert "learned from this log itself" not in said  # nothing is learned from a log of another arm


def test_currents_as_torques_are_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _watch(folder / "free_1.csv", "--robot", "ur10e", "--columns", "t,q,qd,torque") == 0
    assert "look like motor currents" in capsys.readouterr().err


def test_too_short_a_log(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = _write(tmp_path / "short.csv", _table(1, 0.4))
    assert _watch(short, "--robot", "ur10e", "--columns", COLUMNS) == 1
    assert "too short to watch" in capsys.readouterr().err
    words = ["--robot", "ur10e", "--columns", COLUMNS, "--model", str(folder / "model.toml")]
    log = _write(tmp_path / "s.csv", _table(1, 3.0))
    assert main(["tune", str(log), *words, "--out", str(tmp_path / "o.toml")]) == 1
    assert "too short to learn thresholds" in capsys.readouterr().err
    assert not (tmp_path / "o.toml").exists()


def test_a_pickle_is_refused_and_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(tmp_path / "trapped"),)

    (tmp_path / "bad.npz").write_bytes(pickle.dumps(Trap()))
    np.savez(tmp_path / "object.npz", a=np.array([Trap()], dtype=object))
    for name in ("bad.npz", "object.npz"):
        assert _watch(tmp_path / name, "--robot", "ur10e", "--rate", "100") == 1
        assert "pickled data is never loaded" in capsys.readouterr().err
    assert not (tmp_path / "trapped").exists()


def test_the_wrong_model(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [folder / "free_1.csv", "--columns", COLUMNS]
    assert _watch(*words, "--robot", "ur5e", "--model", folder / "model.toml") == 1
    assert "is a model of a ur10e, --robot says ur5e" in capsys.readouterr().err
    assert _watch(*words, "--robot", "ur10e", "--model", tmp_path / "none.toml") == 1
    assert "none.toml" in capsys.readouterr().err
    plain = tmp_path / "plain.toml"
    plain.write_text('schema_version = 1\nname = "ur10e"\n')
    assert _watch(*words, "--robot", "ur10e", "--model", plain) == 1
    assert "tangere identify" in capsys.readouterr().err
    broken = tmp_path / "broken.toml"
    broken.write_text((folder / "tuned.toml").read_text().replace("arm = ", "leg = ", 1))
    assert _watch(*words, "--robot", "ur10e", "--model", broken) == 1
    assert f"{broken}: detection" in capsys.readouterr().err
    old = tmp_path / "old.toml"
    old.write_text((folder / "tuned.toml").read_text().replace("schema = 2", "schema = 1", 1))
    assert _watch(*words, "--robot", "ur10e", "--model", old) == 1
    assert f"{old}: detection: schema must be" in capsys.readouterr().err
    again = ["tune", *map(str, words), "--robot", "ur10e", "--model", str(old), "--out", str(tmp_path / "new.toml")]
    assert main(again) == 0  # as the sentence says


def test_a_payload_below_zero_is_a_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [folder / "free_1.csv", "--columns", COLUMNS, "--robot", "ur10e"]
    assert _watch(*words, "--payload", "-1,0,0,0") == 1
    assert "mass -1 kg must be positive" in capsys.readouterr().err


def test_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _watch(tmp_path / "nothing.csv", "--robot", "ur10e") == 1
    assert "cannot read" in capsys.readouterr().err
    assert _watch(tmp_path / "nothing.csv", "--robot", "ur10e", "--follow") == 1
    assert "cannot read" in capsys.readouterr().err
    assert _watch("-", "--robot", "ur10e", "--report", tmp_path / "page.html") == 1
    assert "of a stream no page" in capsys.readouterr().err


def test_masks_outside_the_stamps_are_said_and_why_no_link_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = _write(tmp_path / "free.csv", _table(1))
    words = ("--robot", "ur10e", "--columns", COLUMNS)
    assert _watch(log, *words, "--wanted=-20,-10", "--payload-change=+1,+2") == 0
    said = capsys.readouterr().err
    assert "--wanted -20,-10 lies outside the log's stamps" in said
    assert "--payload-change" not in said
    event = Event(1, 2.0, 1.9, "push", 2, 20.0, np.zeros(6), 2.0, 0.9, "level", why_no_link="ambiguous",
                  links=((3, 0.4), (None, 0.3)))  # fmt: skip
    arm = tangere.robot("ur10e")
    assert cells(event, 0.0, arm)[6] == "ambiguous: 3 40 % or two 30 %"
    assert event.record()["why_no_link"] == "ambiguous"
    assert cells(dataclasses.replace(event, links=(), why_no_link="too weak"), 0.0, arm)[6] == "too weak"


def test_samples_too_far_apart_to_be_watched_are_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """8 samples a second: every one is a gap, and "no events" would be no news."""
    rows = [f"{k / 8:.3f},0,-1,1,0,1,0," + "0," * 11 + "0" for k in range(400)]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(rows) + "\n"))
    assert main(["watch", "-", "--robot", "ur10e", "--columns", "t,q,qd,tau"]) == 0
    assert "only 0 of 50 s could be watched: samples must come at least every 0.1 s" in capsys.readouterr().err
