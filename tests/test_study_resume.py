"""A study that was cut short goes on: the same bytes, whoever did the work and however often it ended."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.apps.study import collisions as many
from tangere.apps.study import promises, workers
from tangere.apps.study.files import claimed
from tangere.apps.study.plan import Plan
from tangere.apps.study.study import study
from tangere.apps.study.trials import Answer, FreeResult, Injected, TouchResult
from tangere.apps.study.workers import FOLDER, Chunks, Cluster, workers_of
from tangere.apps.study.world import World, with_arm, world_of
from tangere.cli.main import main
from tangere.errors import InvalidValue, NoSolution
from tangere.kernels import backend
from tangere.kernels.device import DeviceError

TABLES = ("contacts.csv", "steps.csv", "summary.csv", "roc.csv")
SMALL = ["study", "--trials", "24", "--minutes", "0.2", "--learn", "0.2", "--no-report"]
PLAN = Plan(trials=24, free_minutes=0.2, learn_minutes=0.2)


def tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in TABLES}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Done at once, in one process."""
    folder = tmp_path_factory.mktemp("whole") / "study"
    assert main([*SMALL, "--workers", "1", "--out", str(folder)]) == 0
    assert not (folder / FOLDER).exists()
    return tables(folder)


def started(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "tangere", *SMALL, "--out", str(folder), *more]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def wait_for_chunks(folder: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    while len(list((folder / FOLDER).glob("*.json"))) < count:
        if process.poll() is not None:
            return
        time.sleep(0.02)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_killed_and_resumed(workers: str, whole: dict[str, bytes], tmp_path: Path, capsys: Any) -> None:
    """Everything killed in the middle: no table, the chunks are there; afterwards the same bytes, and no chunks."""
    folder = tmp_path / "study"
    process = started(folder, "--workers", workers)
    wait_for_chunks(folder, 2, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = len(list((folder / FOLDER).glob("*.json")))
    assert done >= 2
    assert main([*SMALL, "--workers", "1", "--out", str(folder), "--resume"]) == 0
    assert tables(folder) == whole
    assert not (folder / FOLDER).exists()
    assert not list(folder.glob("unfinished-*"))


def test_what_is_there_is_not_done_again(tmp_path: Path) -> None:
    """Results of a store are taken as they are; a damaged or foreign chunk is done anew."""
    store = Chunks(tmp_path, asdict(PLAN))
    first = study(PLAN, workers=1, store=store)
    files = sorted((tmp_path / FOLDER).glob("*.json"))
    files[0].write_text("{half")
    other = json.loads(files[1].read_text())
    other["type" if isinstance(other, dict) else 0] = "Nothing"
    files[1].write_text(json.dumps(other))
    done: list[int] = []

    class Counting(Chunks):
        def put(self, task: int, result: Any) -> None:
            done.append(task)
            super().put(task, result)

    again = study(PLAN, workers=1, store=Counting(tmp_path, asdict(PLAN)))
    assert done == [0, 1]
    assert repr(again.touches) == repr(first.touches)
    assert [f.counts.tolist() for f in again.free] == [f.counts.tolist() for f in first.free]
    foreign = Chunks(tmp_path, asdict(Plan(trials=26)))
    assert foreign.get(2) is None  # another plan
    assert foreign.said.startswith(f"{len(files)} results of another tangere")
    assert store.said == ""


def test_chunks_keep_every_bit(tmp_path: Path, rng: np.random.Generator) -> None:
    store = Chunks(tmp_path, {})
    answer = Answer(3, None, 0.1 + 0.2, float("nan"), 1e-300)
    touch = TouchResult("wrong", 2, 1 / 3, 0.1, 7.0, float("inf"), 0, 1.5, "push", answer, answer)
    step = Injected(0.5, rng.normal(size=3), True, np.array([True, False]))
    free = FreeResult("exact", 20.0, 1, np.array([3, 2, 1]), (step,))
    for k, value in enumerate(((touch,), free)):
        store.put(k, value)
        assert repr(store.get(k)) == repr(value)
    assert store.get(0)[0].isolated.probability == 0.1 + 0.2
    back = store.get(1)
    assert back.steps[0].delay.tobytes() == step.delay.tobytes()
    assert back.counts.dtype == free.counts.dtype


def test_mistakes(whole: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "study"
    assert main([*SMALL, "--resume", "--out", str(folder)]) == 1
    assert "holds no study; leave --resume out" in capsys.readouterr().err
    process = started(folder, "--workers", "1")
    wait_for_chunks(folder, 1, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert main([*SMALL, "--seed", "9", "--resume", "--out", str(folder)]) == 1
    assert "has another seed" in capsys.readouterr().err
    for text in ("many", "dask://nowhere", "dask://127.0.0.1:99999", "-3", "100000"):
        with pytest.raises(InvalidValue, match="workers"):
            workers_of(text)


def test_another_arm_in_the_same_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By --resume, and by a task: whoever does it may find another file under that name."""
    file = tmp_path / "mine.toml"
    text = (Path(tangere.__file__).parent / "model" / "data" / "ur5e.toml").read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    begun = with_arm(Plan(robot=str(file), trials=24))
    assert with_arm(Plan(robot="ur5e")).arm == ""
    world = world_of(begun, "exact")
    folder = tmp_path / "study"
    claimed(folder, ["tangere"], begun.told)
    changed = re.sub(r"(?m)^mass = .*", "mass = 1.25", text, count=1)
    assert changed != text
    file.write_text(changed, encoding="utf-8")
    assert world_of(begun, "exact") is world  # one process goes on as it began
    with pytest.raises(InvalidValue, match=r"the arm in .*mine\.toml is not the one that this study began with"):
        World(begun, "exact")
    assert Chunks(folder, with_arm(replace(begun, arm="")).told).digest != Chunks(folder, begun.told).digest
    words = ["study", "--robot", str(file), "--trials", "24", "--resume", "--out", str(folder)]
    assert main(words) == 1
    assert "has another arm; give it as it was begun" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------------------- dask


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def dask(folder: Path, workers: int) -> tuple[str, list[subprocess.Popen[bytes]]]:
    """A scheduler and workers on loopback: its address, and the processes, the scheduler's last."""
    pytest.importorskip("distributed")
    port = free_port()
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    scheduler = subprocess.Popen([*words, "--no-dashboard"], **quiet)
    words = [*words[:2], "distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}", "--nthreads", "1", "--no-nanny"]
    words += ["--no-dashboard", "--host", "127.0.0.1"]
    return f"dask://127.0.0.1:{port}", [*(subprocess.Popen(words, **quiet) for _ in range(workers)), scheduler]


def killed(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Any:
    address, processes = dask(tmp_path_factory.mktemp("dask"), 2)
    yield address, processes
    killed(processes)


def wait_for_workers(address: str, count: int) -> None:
    import distributed

    client = distributed.Client(address.replace("dask", "tcp"), timeout=120, set_as_default=False)  # type: ignore[no-untyped-call]
    client.wait_for_workers(count, timeout=120)  # type: ignore[no-untyped-call]
    client.close()  # type: ignore[no-untyped-call]


def test_dask(cluster: Any, whole: dict[str, bytes], tmp_path: Path) -> None:
    """The same bytes from a cluster, also when one of its workers is killed in the middle."""
    address, workers = cluster
    wait_for_workers(address, 2)
    folder = tmp_path / "study"
    process = started(folder, "--workers", address)
    wait_for_chunks(folder, 1, process)
    workers[0].kill()
    assert process.wait(timeout=300) == 0
    assert tables(folder) == whole


def test_scheduler_then_client_are_killed(cluster: Any, whole: dict[str, bytes], tmp_path: Path) -> None:
    """A scheduler that is gone is said; the study goes on with another, and without any after the client is killed."""
    address, processes = dask(tmp_path, 1)
    folder = tmp_path / "study"
    try:
        wait_for_workers(address, 1)
        words = [sys.executable, "-m", "tangere", *SMALL, "--out", str(folder), "--workers", address]
        first = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_for_chunks(folder, 1, first)
        processes[-1].kill()
        said = first.communicate(timeout=300)[1].decode()
        assert first.returncode == 1
        assert f"the dask scheduler at {address.replace('dask', 'tcp')} is gone; with --resume" in said
        assert "Traceback" not in said
    finally:
        killed(processes)
    wait_for_workers(cluster[0], 1)
    done = len(list((folder / FOLDER).glob("*.json")))
    second = started(folder, "--workers", cluster[0], "--resume")
    wait_for_chunks(folder, done + 1, second)
    os.killpg(second.pid, signal.SIGKILL)
    second.wait()
    assert len(list((folder / FOLDER).glob("*.json"))) > done
    assert main([*SMALL, "--workers", "1", "--out", str(folder), "--resume"]) == 0
    assert tables(folder) == whole


def test_other_versions_are_refused(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address, _ = cluster
    wait_for_workers(address, 1)
    ours = Chunks(tmp_path, {}).digest
    changes = (
        (tangere, "__version__", "9.9.9", r"has tangere .* instead of 9\.9\.9 .*: results would not be the same"),
        (backend, "COMPILED", not backend.COMPILED, "has kernels .* instead of"),  # their last bits differ
    )
    for where, name, other, words in changes:
        with monkeypatch.context() as patched:
            patched.setattr(where, name, other)
            assert Chunks(tmp_path, {}).digest != ours  # nor does --resume take what the others did
            with pytest.raises(NoSolution, match=words), Cluster(address):
                pass
    source = workers._source()
    with monkeypatch.context() as patched:  # of the same version, but not the same state of the repository
        patched.setattr(workers, "_source", lambda: "source 0")
        with pytest.raises(NoSolution, match=rf"has tangere {tangere.__version__} \({source}\) instead of"):
            Cluster(address).__enter__()


def test_a_task_that_kills_its_workers_ends_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")  # else dask tries four workers
    address, processes = dask(tmp_path, 1)
    try:
        wait_for_workers(address, 1)
        with Cluster(address) as cluster:
            assert cluster.results([(os._exit, (1,))]) == []
            assert cluster.interrupted
            with pytest.raises(NoSolution, match="workers of the cluster were killed again and again"):
                cluster.need([], 1)
    finally:
        killed(processes)


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("tangere.apps.study.workers.WAIT", 0.5)
    with pytest.raises(NoSolution, match="no dask scheduler answers"), Cluster(f"dask://127.0.0.1:{free_port()}"):
        pass


@pytest.mark.parametrize("more", [[], ["--collisions", "100"], ["--resume"]])
def test_nobody_there_leaves_an_earlier_study(
    more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("tangere.apps.study.workers.WAIT", 0.5)
    earlier = tmp_path / "earlier"
    claimed(earlier, ["tangere"], with_arm(PLAN).told)
    (earlier / FOLDER).mkdir()
    for name in (*TABLES, "collisions.csv", "report.html", f"{FOLDER}/1.json"):
        (earlier / name).write_text("hours of work", encoding="utf-8")
    before = {path: path.read_bytes() for path in earlier.rglob("*") if path.is_file()}
    words = [*SMALL, *more, "--workers", f"dask://127.0.0.1:{free_port()}", "--out"]
    for folder in (earlier, tmp_path / "none"):
        assert main([*words, str(folder)]) == 1
    assert "no dask scheduler answers" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in earlier.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "none").exists()


# ---------------------------------------------------------------------------------------------------------- collisions

MANY = ["study", "--collisions", "600", "--learn", "0.2", "--frequency", "250", "--no-report"]


def test_collisions_by_rollouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The same bytes on one worker and two, and after a stop in the middle; stronger contacts are felt more often."""
    monkeypatch.setattr("tangere.apps.study.collisions.SLAB", 100)
    assert main([*MANY, "--workers", "1", "--out", str(tmp_path / "one")]) == 0
    told = capsys.readouterr().out
    assert "600 contacts of 5 s" in told
    once = (tmp_path / "one" / "collisions.csv").read_bytes()
    rows = [line.split(",") for line in once.decode().splitlines()[1:] if line.startswith("exact")]
    assert sum(int(row[3]) for row in rows) == 300
    felt = [float(row[4]) for row in rows]
    assert felt[-1] > felt[0] + 0.3
    # why some are not: a press on link 1 turns no joint but the first, and that hardly
    assert "of all contacts were not felt" in told
    assert "Link 1 has" in told
    lines = {link: line.split() for line in told.splitlines() for link in (1, 6) if f"link {link} " in line}
    assert float(lines[1][5]) < 5.0 < 70.0 < float(lines[6][5])  # [%] detectable
    folder = tmp_path / "two"
    true, calls = many.collide, []

    def cut(*arguments: Any) -> Any:
        calls.append(arguments[2])
        if len(calls) == 4:
            raise KeyboardInterrupt
        return true(*arguments)

    monkeypatch.setattr(many, "collide", cut)
    assert main([*MANY, "--workers", "1", "--out", str(folder)]) == 130
    assert "--resume" in capsys.readouterr().err
    monkeypatch.setattr(many, "collide", true)
    assert main([*MANY, "--workers", "1", "--out", str(folder), "--resume"]) == 0
    assert (folder / "collisions.csv").read_bytes() == once


def test_devices(tmp_path: Path, capsys: Any) -> None:
    assert main(["study", "--workers", "0", "--out", str(tmp_path / "a")]) == 1
    assert "workers: 1 to " in capsys.readouterr().err
    assert main(["study", "--device", "cuda", "--out", str(tmp_path / "a")]) == 1
    assert "--device cuda needs --collisions N" in capsys.readouterr().err
    for number, (words, said) in enumerate((
        ("--collisions 0", "--collisions: 1 to 1e+09, got 0"),
        ("--collisions 1.5", "--collisions: a whole number, got '1.5'"),
        ("--collisions many", "--collisions: "),
        ("--collisions 1e6 --workers 100000", "workers: 1 to "),
        ("--collisions 1e6 --robot scara", "need an arm and a law with a fused kernel: scara"),
    )):  # fmt: skip
        assert main(["study", *words.split(), "--out", str(tmp_path / f"b{number}")]) == 1
        assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())  # what is refused leaves nothing


def test_a_gpu_that_is_not_there_is_said_before_anything_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise DeviceError("no CUDA driver")

    monkeypatch.setattr(many, "opened", none)
    monkeypatch.setattr(many, "thresholds_of", None)  # not called
    for one in (many.collisions, promises.promises):
        with pytest.raises(DeviceError, match="no CUDA driver"):
            one(Plan(), 100, device="cuda", workers=1)


# ------------------------------------------------------------------------------------------------------------ promises


def test_promises_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Noise alone: what is counted agrees with what is promised where there are enough alarms to tell; same bytes."""
    monkeypatch.setattr("tangere.apps.study.promises.ARMS", 60)
    asked = ["study", "--promises", "0.5", "--learn", "0.5", "--frequency", "250Hz", "--workers", "1", "--no-report"]
    assert main([*asked, "--out", str(tmp_path / "one")]) == 0
    told = capsys.readouterr().out
    assert "counted against promised" in told
    rows = [line.split(",") for line in (tmp_path / "one" / "promises.csv").read_text().splitlines()[1:]]
    exact = {float(row[1]): [float(value) for value in row[2:]] for row in rows if row[0] == "exact"}
    assert list(exact) == [0.1, 1.0, 10.0, 60.0]
    promised, hours, alarms, counted, low, high = exact[60.0]
    assert hours == pytest.approx(0.5)
    assert promised == pytest.approx(60.0, rel=0.2)
    assert counted == pytest.approx(alarms / hours)
    assert low < 3.0 * promised  # half a minute of motion to learn from: some factor, no order of magnitude
    assert high > promised / 3.0
    assert exact[0.1][2] <= exact[60.0][2]
    assert main([*asked, "--collisions", "10", "--out", str(tmp_path / "both")]) == 1
    assert "two studies" in capsys.readouterr().err
    assert main(["study", "--promises", "0", "--out", str(tmp_path / "none")]) == 1
    assert "--promises: above 0 to 1e+06 h, got 0" in capsys.readouterr().err
