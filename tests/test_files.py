"""Files that appear whole or not at all, one by one, beside those that are there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tangere.apps.arm.command import _bundle
from tangere.apps.arm.examination import Examination
from tangere.apps.virtual_ur.command import keeper
from tangere.cli.main import main
from tangere.errors import CannotWrite, TangereError
from tangere.logs import files
from tangere.logs.files import Attempts, replacing
from tangere.rtde.client import address_of


def test_files_are_tried_one_by_one() -> None:
    attempt = Attempts()

    def full() -> None:
        raise CannotWrite("cannot write b: No space left on device")

    for name, write in (("a", lambda: None), ("b", full), ("c", lambda: None)):
        attempt(name, write)
    with pytest.raises(CannotWrite, match="cannot write b: No space left on device; kept in here: a, c"):
        attempt.settle("here")


def test_two_at_once_use_names_of_their_own(tmp_path: Path) -> None:
    with replacing(tmp_path / "model.toml") as one, replacing(tmp_path / "model.toml") as two:
        assert one != two
        one.write_text("one")
        two.write_text("two")
    assert [file.name for file in tmp_path.iterdir()] == ["model.toml"]


def test_programs_are_kept_beside_those_of_an_earlier_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And an arm whose disk is full goes on: it says so."""
    told: list[str] = []
    for name in ("first", "secönd"):
        keeper(tmp_path / "programs", told.append)(name)
    kept = sorted((tmp_path / "programs").iterdir())
    assert [file.read_text(encoding="utf-8") for file in kept] == ["first", "secönd"]
    keep = keeper(tmp_path / "programs", told.append)
    monkeypatch.setattr(files.os, "fsync", lambda number: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    keep("third")
    assert len(told) == 1
    assert "003.script: No space left on device" in told[0]
    assert len(list((tmp_path / "programs").iterdir())) == 2


def test_a_field_kit_that_is_cut_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "kit.zip").write_text("the old one")
    with pytest.raises(TangereError):
        _bundle(str(tmp_path / "kit.zip"), address_of("127.0.0.239"), Examination("127.0.0.239"))
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"kit.zip": "the old one"}


def test_a_workspace_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, room = shutil.copytree, [1]

    def full(*arguments: object, **how: object) -> object:
        if not room:
            raise OSError(28, "No space left on device")
        room.pop()
        return whole(*arguments, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(shutil, "copytree", full)
    words = ["ros2", "package", str(tmp_path / "workspace")]
    assert main(words) == 1
    assert capsys.readouterr().err.endswith("workspace: [Errno 28] No space left on device\n")
    assert list((tmp_path / "workspace").iterdir()) == []
    monkeypatch.undo()
    assert main(words) == 0
    assert main(words) == 1  # what is there stays
