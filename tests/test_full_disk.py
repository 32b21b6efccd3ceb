"""A full disk, a quota, two runs in one folder: what is done is kept and said, what is not ours is left alone."""

from __future__ import annotations

import csv
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.cli.main import main
from tangere.identification.model import read_model
from tangere.logs.csv_log import write_csv
from tangere.logs.log import Log, Note
from tangere.logs.mcap_log import McapFile
from tangere.logs.mcap_read import read_mcap

ROOT = Path(__file__).resolve().parent.parent
SOAK = bool(os.environ.get("TANGERE_SOAK"))
SEED = int(os.environ.get("TANGERE_SEED", "0"))
RUN = ("run", "hold", "--plant", "rigid", "--push", "none", "--set", "duration=4")
STUDY = ("study", "--trials", "4", "--minutes", "0.1", "--learn", "0.2", "--workers", "1")
# [bytes] that a single file may have: a quota at different moments
LIMITS = np.random.default_rng(SEED + 3).integers(5_000, 3_000_000, 30).tolist() if SOAK else [300_000]


def limited(size: int, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command whose files may have so many bytes each."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return subprocess.run(
        [sys.executable, "-m", "tangere", *words, "--out", str(folder)], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )  # fmt: skip


def nothing_half(folder: Path) -> None:
    assert [file.name for file in folder.rglob(".*")] == []
    for file in folder.glob("*.json"):
        json.loads(file.read_text())
    for file in folder.glob("*.html"):
        assert file.read_text(encoding="utf-8").endswith("</html>\n")
    for file in folder.glob("*.csv"):
        assert file.read_text().endswith("\n")


@pytest.mark.parametrize("size", LIMITS)
def test_a_run_beyond_its_quota_keeps_what_fits(tmp_path: Path, size: int) -> None:
    done = limited(size, *RUN, folder=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    nothing_half(tmp_path)
    log = read_mcap(tmp_path / "log.mcap")
    assert np.all(np.diff(log.time) > 0.0)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["samples"] == 4000
    if log.complete:  # its 0.7 MB fit, but not what is worth less
        assert len(log) == 4000
        assert re.match(r"error: cannot write .*log\.csv: File too large; kept in .*: log\.mcap, summary\.json", last)
        assert ("report.html" in last) == (tmp_path / "report.html").exists()
        assert not (tmp_path / "log.csv").exists()
        return
    assert last.startswith("error: log.mcap is not complete: the log could not be written: File too large; ")
    assert len(log) > 100
    assert "File too large" in summary["log_error"]
    assert re.search(r"kept in .*: log.mcap as far as it goes, summary.json", last)


@pytest.mark.skipif(not SOAK, reason="a drawing of half a minute; TANGERE_SOAK=1")
@pytest.mark.parametrize("size", LIMITS)
def test_a_drawing_beyond_its_quota(tmp_path: Path, size: int) -> None:
    done = limited(size, "draw", "snail", "--size", "60mm", folder=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
    nothing_half(tmp_path)


def test_a_study_keeps_its_contacts_where_the_page_does_not_fit(tmp_path: Path) -> None:
    done = limited(30_000, *STUDY, folder=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert re.match("error: cannot write .*report.html: File too large; kept in .*: contacts.csv", last)
    nothing_half(tmp_path)
    assert len(list(csv.DictReader((tmp_path / "contacts.csv").read_text().splitlines()))) == 4
    assert not list(tmp_path.glob("unfinished-contacts.csv"))


@pytest.mark.skipif(not SOAK, reason="a study for every quota; TANGERE_SOAK=1")
@pytest.mark.parametrize("size", [limit // 30 for limit in LIMITS])
def test_a_study_beyond_its_quota(tmp_path: Path, size: int) -> None:
    done = limited(size, *STUDY, folder=tmp_path)
    assert "Traceback" not in done.stderr
    nothing_half(tmp_path)
    if done.returncode != 0:  # else all of it was smaller
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("error: ")


@pytest.mark.skipif(not SOAK, reason="a watch for every quota; TANGERE_SOAK=1")
@pytest.mark.parametrize("size", LIMITS)
def test_a_watch_beyond_its_quota(tmp_path: Path, size: int) -> None:
    """Lines from a pipe go on being watched; the log has what fitted, and the last line says so."""
    time = np.arange(0.0, 20.0, 2e-3)
    q = 0.2 * np.sin(np.outer(time, np.linspace(0.5, 1.0, 6))) + np.array([0.0, -1.2, 1.3, -0.4, 1.1, 0.2])
    columns = {"time": time, "q": q, "qd": np.gradient(q, time, axis=0)}
    write_csv(Log(columns | {"tau": tangere.robot("ur10e").gravity_torque(q)}), tmp_path / "log.csv")
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    kept = tmp_path / "kept.mcap"
    with (tmp_path / "log.csv").open("rb") as lines:
        done = subprocess.run(
            [sys.executable, "-m", "tangere", "watch", "-", "--robot", "ur10e", "--log", str(kept)], stdin=lines,
            env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        )  # fmt: skip
    assert "Traceback" not in done.stderr
    if kept.exists() and not read_mcap(kept).complete:
        assert done.returncode == 1
        assert re.match("error: .*kept.mcap is not complete", done.stderr.splitlines()[-1])
    elif done.returncode:
        assert done.stderr.splitlines()[-1].startswith("error: ")


LINE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M1 5L8 5" stroke="red" fill="none"/></svg>'
# command -> [kB] of the smallest and of the largest disk: in both it is full before the end
DISKS = {"run": (RUN, 20, 1600), "draw": (("draw", "line.svg", "--size", "60mm"), 8, 900), "study": (STUDY, 8, 160)}
MOMENTS = [
    (kind, int(size)) for k, (kind, (_, low, high)) in enumerate(DISKS.items())
    for size in np.random.default_rng(SEED + k).integers(low, high, 30)
] if SOAK else [("run", 900)]  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="needs a small disk of its own: root")
@pytest.mark.parametrize(("kind", "size"), MOMENTS)
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, size: int) -> None:
    """At whatever moment: exit code 1, the last line says what is kept, and that is there and whole."""
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "line.svg").write_text(LINE)
    monkeypatch.chdir(tmp_path)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        done = limited(100_000_000, *DISKS[kind][0], folder=disk / "out")
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        last = done.stderr.splitlines()[-1]
        assert last.startswith("error: ")
        assert "No space left on device" in last
        nothing_half(disk / "out")
        for name in last.partition("kept in ")[2].partition(": ")[2].split(", "):
            assert not name or (disk / "out" / name.removesuffix(" as far as it goes").split()[0]).exists(), last
        if (disk / "out" / "summary.json").exists() and kind == "run":
            assert json.loads((disk / "out" / "summary.json").read_text())["samples"] == 4000
        if (disk / "out" / "log.mcap").exists():
            assert "log.mcap" in last
            assert np.all(np.diff(read_mcap(disk / "out" / "log.mcap").time) > 0.0)
        if (kind, size) == ("run", 900):
            assert len(read_mcap(disk / "out" / "log.mcap")) > 100
            assert (disk / "out" / "summary.json").exists()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


LOGS = ("watch", "identify")  # commands that read a log, and the largest disk [kB] that is full before their end
LOG_MOMENTS = [
    (kind, int(size)) for k, (kind, most) in enumerate(zip(LOGS, (160, 400), strict=True))
    for size in np.random.default_rng(SEED + k).integers(8, most, 30)
] if SOAK else [("identify", 200)]  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="needs a small disk of its own: root")
@pytest.mark.parametrize(("kind", "size"), LOG_MOMENTS)
def test_a_full_disk_of_what_reads_a_log(tmp_path: Path, kind: str, size: int) -> None:
    """A watch goes on to its usual end, and says that its log is cut; of identify the model is kept without a page."""
    time = np.arange(0.0, 6.0, 1e-2)
    q = 0.2 * np.sin(np.outer(time, np.linspace(0.5, 1.0, 6))) + np.array([0.0, -1.2, 1.3, -0.4, 1.1, 0.2])
    columns = {"time": time, "q": q, "qd": np.gradient(q, time, axis=0)}
    write_csv(Log(columns | {"tau": tangere.robot("ur10e").gravity_torque(q)}), tmp_path / "log.csv")
    disk = tmp_path / "disk"
    disk.mkdir()
    words = {
        "watch": ["--follow", "--log", str(disk / "log.mcap"), "--json", "--heartbeat", "0.1"],
        "identify": ["--out", str(disk / "model.toml"), "--inertial", "none"],
    }  # fmt: skip
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        started = subprocess.Popen(
            [sys.executable, "-m", "tangere", kind, str(tmp_path / "log.csv"), "--robot", "ur10e", *words[kind]],
            env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if kind == "watch":
            assert started.stdout is not None
            while (json.loads(started.stdout.readline())["time_s"] or 0.0) < time[-1]:
                pass
            started.terminate()
        out, err = started.communicate()
        assert started.returncode == 1, out + err
        assert "Traceback" not in err
        last = err.splitlines()[-1]
        assert last.startswith("error: ")
        assert "No space left on device" in last
        nothing_half(disk)
        left = {file.name for file in disk.iterdir()}
        if kind == "watch":
            assert left <= {"log.mcap"}
            assert not left or np.all(np.diff(read_mcap(disk / "log.mcap").time) > 0.0)
        else:
            assert left <= {"model.toml"}
            assert ("kept in" in last and last.endswith(": model.toml")) == bool(left)
            assert "Coulomb" in out  # what was found is said all the same
            assert not left or read_model(disk / "model.toml").name == "ur10e"
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_results_of_a_study_are_kept_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill in the second batch: what the first found is there."""
    from tangere.apps.study import study

    real, calls = study.touch_batch, []

    class Kill(BaseException):
        pass

    def batch(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 2:
            raise Kill
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(study, "touch_batch", batch)
    with pytest.raises(Kill):
        main([*STUDY, "--out", str(tmp_path)])
    rows = list(csv.DictReader((tmp_path / "unfinished-contacts.csv").read_text().splitlines()))
    assert len(rows) == 2
    assert {"world", "link", "force_n", "found"} <= rows[0].keys()
    assert list(csv.DictReader((tmp_path / "unfinished-steps.csv").read_text().splitlines()))
    assert main([*STUDY, "--out", str(tmp_path)]) == 0
    assert not list(tmp_path.glob("unfinished-*"))


def test_half_a_chunk_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a failing write left behind the last whole chunk is cut off: room for a summary."""
    log = Log({"time": np.arange(100.0), "q": np.ones((100, 6))})
    file = McapFile(tmp_path / "log.mcap", {"time": 0, "q": 6})
    file.write(log.table())
    size = (tmp_path / "log.mcap").stat().st_size
    real = file._file

    class Full:
        closed, close, truncate, seek = False, real.close, real.truncate, real.seek

        def write(self, data: bytes) -> int:
            if len(data) < 100:
                raise OSError(28, "No space left on device")
            return real.write(data[:-50]) or 0

    file._file = Full()  # type: ignore[assignment]
    with pytest.raises(OSError, match="No space"):
        file.write(log.table())
    real.close()
    assert (tmp_path / "log.mcap").stat().st_size == size
    assert len(read_mcap(tmp_path / "log.mcap")) == 100


def test_rows_wait_for_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full for a while costs nothing; one that stays full costs what does not fit into memory."""
    from tangere.logs import mcap_log

    monkeypatch.setattr(mcap_log, "RETRY", 0.0)
    monkeypatch.setattr(mcap_log, "ASK_AFTER", 0.01)
    full, tried = threading.Event(), threading.Semaphore(0)
    write = mcap_log.McapFile._write

    def limited(self: McapFile, data: bytes) -> None:
        if full.is_set():
            tried.release()
            raise OSError(28, "No space left on device")
        write(self, data)

    monkeypatch.setattr(mcap_log.McapFile, "_write", limited)
    table = np.arange(700.0)[:, None] * np.ones(7)

    def recorded(name: str, room_again: bool) -> mcap_log.McapSink:
        full.clear()
        sink = mcap_log.mcap_sink(tmp_path / name, {"time": 0, "q": 6})
        sink.rows(table[:100])
        sink.note(Note(1.0, "before"))
        while not (tmp_path / name).stat().st_size > size:
            time.sleep(0.001)
        full.set()
        for first in range(100, 700, 100):
            sink.rows(table[first : first + 100])
            tried.acquire()
        assert "No space left" in sink.error
        if room_again:
            full.clear()
        sink.close()
        return sink

    probe = McapFile(tmp_path / "probe.mcap", {"time": 0, "q": 6})
    size = probe.size
    probe.close()
    sink = recorded("a.mcap", room_again=True)
    log = read_mcap(tmp_path / "a.mcap")
    assert (sink.error, log.complete, len(log)) == ("", True, 700)
    np.testing.assert_array_equal(log.time, table[:, 0])
    assert [note.text for note in log.notes] == ["before"]
    assert "No space left" in recorded("b.mcap", room_again=False).error
    assert len(read_mcap(tmp_path / "b.mcap")) == 100
    monkeypatch.setattr(mcap_log, "WAITING", 250)
    monkeypatch.setattr(mcap_log, "CHUNK_ROWS", 100)
    sink = recorded("c.mcap", room_again=True)
    log = read_mcap(tmp_path / "c.mcap")
    assert len(log) == 400
    assert log.complete
    assert sink.error == "300 rows are missing from the log: the disk was full for too long"


# ------------------------------------------------------------------------------------------------------------- folders


def said(*words: str, folder: Path, stdout: Any = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """A command in a folder."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return subprocess.run(
        [sys.executable, "-m", "tangere", *words], cwd=folder, env={**os.environ, "PYTHONPATH": path}, stdout=stdout,
        stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_terminal_that_takes_nothing_is_said(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = said("models", folder=tmp_path, stdout=full)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith("error: ")
