"""A drawing's folder: read back into the same drawing and report, drawn once more bit by bit, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="drawing is simulated by mujoco")
pytest.importorskip("PIL", reason="pictures are read by Pillow")

from tangere.apps.drawing.api import draw_again, interrupted, is_drawing, read_drawing
from tangere.apps.drawing.draw_picture import COPY, DrawingSettings, Drawn, draw_picture
from tangere.apps.drawing.page import drawn_html
from tangere.apps.drawing.summary import drawn_ink, followed
from tangere.cli.main import main
from tangere.errors import InvalidValue
from tangere.logs import log as logs
from tangere.logs import mcap_read
from tangere.loop.folder import LOG, difference

PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" width="20mm" height="20mm" viewBox="0 0 20 20">
<path d="M2 2 L18 18 M18 2 L2 18" stroke="black" fill="none"/></svg>"""
SMALL = DrawingSettings(size=0.02, controller="both", canvas_error=(1e-3, 0.01), probe=True, seed=3)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    place = tmp_path_factory.mktemp("again")
    picture = place / "cross.svg"
    picture.write_text(PICTURE)
    drawn = draw_picture(picture, SMALL, out=place / "out", command=["tangere", "draw", "cross.svg"])
    picture.unlink()  # the folder alone must do
    return drawn


@pytest.fixture
def folder(done: Drawn, tmp_path: Path) -> Path:
    return Path(shutil.copytree(done.folder, tmp_path / "copy"))


def test_what_is_read_is_what_was_drawn(done: Drawn) -> None:
    read = read_drawing(done.folder)
    assert read.prepared.settings == done.prepared.settings
    assert read.prepared.notes == done.prepared.notes
    assert list(read.results) == ["hybrid", "height-pi"]
    # the paper that was found goes through JSON as a rotation vector: rounding only
    np.testing.assert_allclose(read.prepared.canvas.T_base_canvas, done.prepared.canvas.T_base_canvas, atol=1e-12)
    for name, result in done.results.items():
        assert difference(read.results[name].log, result.log) == ""
        for column in ("t", "x", "y", "force"):
            one, other = getattr(read.results[name].ink, column), getattr(result.ink, column)
            np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-11)
        np.testing.assert_array_equal(read.results[name].paper.T, result.paper.T)
        assert read.results[name].robot.model.links[1].mass == result.robot.model.links[1].mass
        assert read.results[name].run.realtime_factor == pytest.approx(result.run.realtime_factor)


def test_a_long_drawing_is_measured_part_by_part(done: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its poses and forces, nearly all of its log, are never in memory together; ink and figures are the same."""
    canvas, robot = done.prepared.canvas, done.prepared.robot
    whole = followed(done.main.log, canvas, robot)
    monkeypatch.setattr(logs, "WHOLE", 0)
    monkeypatch.setattr(logs, "PIECE", 500)
    monkeypatch.setattr(logs, "LONG", 1000)
    log = mcap_read.read_mcap(done.folder / LOG, own=True, long=True)
    assert isinstance(log.columns, logs.StoredColumns)
    assert len(list(log.pieces())) > 3
    assert isinstance(read_drawing(done.folder).main.log.columns, logs.StoredColumns)
    monkeypatch.setattr(logs.StoredColumns, "__getitem__", lambda self, name: {"time": self._time}[name])
    for one, other in zip(followed(log, canvas, robot), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-12)
    ink = drawn_ink(log, canvas, robot)
    for name in ("t", "x", "y", "force"):
        np.testing.assert_allclose(getattr(ink, name), getattr(done.main.ink, name), rtol=0.0, atol=1e-12)


def test_the_report_made_again_says_the_same(done: Drawn) -> None:
    """Line by line: figures over time are data, and may differ in the last digit by the found paper's rounding."""
    one, other = (drawn_html(d, "tangere draw cross.svg").splitlines() for d in (done, read_drawing(done.folder)))
    assert len(one) == len(other)
    assert sum(a != b for a, b in zip(one, other, strict=True)) <= len(one) // 20


def test_the_wall_times_are_those_of_the_run(folder: Path) -> None:
    """Reading plans again; how long that took is nobody's question."""
    summary = json.loads((folder / "summary.json").read_text())
    summary["plan"]["seconds"] = {"strokes": 123.0, "plan": 456.0}
    (folder / "summary.json").write_text(json.dumps(summary))
    assert read_drawing(folder).prepared.seconds == {"strokes": 123.0, "plan": 456.0}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("summary.json", {"plan": None}), ("summary.json", {"controllers": [1]}),
        ("manifest.json", {"scenario": {"picture": 5}}), ("manifest.json", {"scenario": {"picture": "cross.svg"}}),
    ],
)  # fmt: skip
def test_files_that_hold_something_else_are_refused(
    folder: Path, name: str, change: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(told | change))
    assert main(["report", str(folder)]) == 1
    assert re.match(r"error: .{10,}", capsys.readouterr().err)
    interrupted(folder)  # what the summary says of it, or nothing


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Both controllers were asked for; interrupted from the keyboard in the first one's drawing."""
    place = tmp_path_factory.mktemp("broken")
    (place / "cross.svg").write_text(PICTURE)

    def stop(done: float, duration: float) -> None:
        if done > 0.3 * duration:
            raise KeyboardInterrupt

    settings = DrawingSettings(size=0.02, controller="both")
    return draw_picture(place / "cross.svg", settings, out=place / "out", progress=stop)


def test_an_interrupted_drawing_stops_and_is_read_as_far_as_it_went(broken: Drawn) -> None:
    assert list(broken.results) == ["hybrid"]  # the second was not begun
    assert broken.aborted == interrupted(broken.folder) == "interrupted from the keyboard"
    read = read_drawing(broken.folder)
    assert list(read.results) == ["hybrid"]
    assert "interrupted from the keyboard" in drawn_html(read)


def test_what_an_interrupted_drawing_left_is_compared(broken: Drawn, capsys: pytest.CaptureFixture[str]) -> None:
    ((kept, new),) = draw_again(broken.folder).values()
    assert len(kept) == len(new) == len(broken.main.log) > 100
    assert difference(kept, new) == ""
    assert main(["rerun", str(broken.folder)]) == 0
    said = capsys.readouterr().out
    assert f"the same, bit by bit: {len(kept)} samples" in said
    assert "note: the drawing was interrupted from the keyboard; compared up to there" in said


def test_a_killed_drawing_is_compared_and_one_without_a_log_refused(broken: Drawn, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(broken.folder, tmp_path / "killed"))
    (folder / "summary.json").unlink()
    assert interrupted(folder) == "killed before its end"
    ((kept, new),) = draw_again(folder).values()
    assert difference(kept, new) == ""
    (folder / "log.mcap").unlink()
    with pytest.raises(InvalidValue, match="interrupted before anything moved"):
        draw_again(folder)


def test_a_whole_drawing_was_not_interrupted(done: Drawn) -> None:
    assert interrupted(done.folder) == ""


def test_drawn_again_it_is_the_same_bit_by_bit(done: Drawn) -> None:
    pairs = draw_again(done.folder)
    assert list(pairs) == ["hybrid", "height-pi"]
    assert all(len(kept) > 1000 and difference(kept, new) == "" for kept, new in pairs.values())


def test_another_seed_is_not_the_same(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["scenario"] |= {"seed": 4, "controller": "hybrid", "probe": False}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert main(["rerun", str(folder)]) == 1


def test_the_report_command_knows_drawings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert is_drawing(folder)
    assert main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert "Picture, plan, drawing" in page
    assert "cross.svg drawn" in page
    assert capsys.readouterr().out == f"report: {folder / 'report.html'}\n"


def test_a_folder_without_its_picture_or_with_another_is_refused(folder: Path) -> None:
    picture = folder / COPY / "cross.svg"
    picture.write_text(PICTURE.replace("18 18", "18 17"))
    with pytest.raises(InvalidValue, match="is not the picture that was drawn"):
        draw_again(folder)
    picture.unlink()
    with pytest.raises(InvalidValue, match="the picture that was drawn is not there"):
        read_drawing(folder)


def test_a_drawing_that_never_ended_has_no_report(folder: Path) -> None:
    (folder / "summary.json").unlink()
    with pytest.raises(InvalidValue, match=r"the drawing is not whole: cannot read .*summary\.json: "):
        read_drawing(folder)


def test_other_folders_are_no_drawings(tmp_path: Path) -> None:
    assert not is_drawing(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 1, "command": [], "scenario": {"scenario": "hold"}}))
    assert not is_drawing(tmp_path)
    with pytest.raises(InvalidValue, match="names no picture"):
        read_drawing(tmp_path)


def test_a_drawing_can_be_made_from_the_copy_of_an_earlier_one(folder: Path) -> None:
    settings = DrawingSettings(size=0.02)
    drawn = draw_picture(folder / COPY / "cross.svg", settings, out=folder)
    assert (folder / COPY / "cross.svg").read_text() == PICTURE
    assert drawn.summary["strokes"] == 2
