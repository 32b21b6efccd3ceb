"""Folders and files of runs: in use, of others, of an earlier version, never overwritten, nowhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import fuzz_readers
import numpy as np
import pytest
from test_full_disk import RUN, limited, said

from tangere.cli.main import main
from tangere.errors import CannotWrite, InvalidValue
from tangere.logs.log import Log
from tangere.logs.mcap_log import write_mcap
from tangere.loop.folder import OURS, Claim, Manifest, holds, write_manifest


def test_a_second_run_into_a_folder_is_refused(tmp_path: Path) -> None:
    first = Claim(tmp_path / "out", OURS)
    again = Claim(tmp_path / "out", OURS)  # one after the other in the same process
    done = limited(100_000_000, *RUN, folder=tmp_path / "out")
    assert done.returncode == 1
    assert "is being written by another run" in done.stderr
    del first, again
    assert limited(100_000_000, *RUN[:4], "--set", "duration=0.2", folder=tmp_path / "out").returncode == 0


def test_a_manifest_of_others_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "my app"}')
    (tmp_path / "report.html").write_text("precious")
    assert main(["run", "hold", "--plant", "rigid", "--set", "duration=0.2", "--out", str(tmp_path)]) == 1
    assert "report.html, manifest.json of others" in capsys.readouterr().err
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "manifest.json": '{"name": "my app"}', "report.html": "precious",
    }  # fmt: skip


def test_a_manifest_of_an_earlier_version_is_ours(tmp_path: Path) -> None:
    write_manifest(Manifest(("a",), {}), tmp_path)
    told = json.loads((tmp_path / "manifest.json").read_text())
    assert told.pop("program") == "tangere"
    assert holds(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps(told))
    assert holds(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps(told | {"program": "another"}))
    assert not holds(tmp_path)


def test_a_default_folder_is_never_overwritten_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "hold", "--plant", "rigid", "--push", "none", "--set", "duration=0.2"]
    for name in ("hold", "hold-2", "hold-3"):
        assert main(words) == 0
        assert f"report: out/{name}/report.html" in capsys.readouterr().out
    before = (tmp_path / "out/hold/manifest.json").stat().st_mtime_ns
    assert main([*words, "--force"]) == 0
    out, err = capsys.readouterr()
    assert "report: out/hold/report.html" in out
    assert "out/hold held an earlier run, which this one replaced" in err
    assert (tmp_path / "out/hold/manifest.json").stat().st_mtime_ns > before
    (tmp_path / "out/hold/manifest.json").write_text("{}")  # no longer ours: not even by force
    assert main([*words, "--force"]) == 1
    assert {file.name for file in tmp_path.iterdir()} == {"out"}


def test_fresh_passes_over_what_is_in_use_or_of_others(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "log.csv").write_text("mine")
    one = Claim(tmp_path / "out", OURS, fresh=True)
    assert one.path == tmp_path / "out-2"
    assert "out is taken: this run is in" in one.said
    assert (tmp_path / "out" / "log.csv").read_text() == "mine"
    with pytest.raises(InvalidValue, match="of others"):
        Claim(tmp_path / "out", OURS)


def test_write_mcap_into_nowhere_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="cannot write"):
        write_mcap(Log({"time": np.zeros(1)}), tmp_path / "no" / "log.mcap")


def test_a_simulation_that_diverges_writes_nothing_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    words = ["--push", "joint=2,torque=1e9,start=0.2,duration=0.1", "--set", "duration=0.5"]
    assert main(["run", "hold", *words]) == 1
    out, err = capfd.readouterr()
    assert {file.name for file in tmp_path.iterdir()} == {"out"}
    assert "WARNING" not in err
    said = re.findall(r"^joint (\d) beyond", out, re.MULTILINE)
    assert said == sorted(said) != []


def test_no_file_is_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmu", "check", str(tmp_path / "nosuch.fmu")]) == 1
    out, _ = capsys.readouterr()
    assert "there is no such file, so nothing was checked" in out
    assert "WRONG" not in out


def test_what_mujoco_warns_of_in_a_file_is_written_nowhere(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    (tmp_path / "arm.xml").write_text(fuzz_readers.MJCF.decode().replace('pos="0 0 1"', 'pos="nan 0 1"'))
    done = said("check", "arm.xml", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: arm.xml")
    assert [file.name for file in tmp_path.iterdir()] == ["arm.xml"]
