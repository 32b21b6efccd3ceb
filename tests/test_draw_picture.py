"""A picture drawn into a folder: every figure computed again from the files, and nothing written where nothing fits."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="drawing is simulated by mujoco")
pytest.importorskip("PIL", reason="pictures are read by Pillow")

from drawing_makers import rendered

from tangere.apps.drawing.draw_picture import (
    DrawingSettings,
    Drawn,
    canvas_of,
    draw_picture,
    execute_drawing,
    find_picture,
    prepare,
    write_preview,
)
from tangere.apps.drawing.drawing import drawing_robot
from tangere.apps.drawing.files import PEN, PREVIEW, ink_lines, ink_marks, ink_picture, png_bytes, preview_png
from tangere.apps.drawing.ink import Ink
from tangere.apps.drawing.picture.svg import read_svg
from tangere.apps.drawing.plan.fit import DoesNotFit
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import InvalidValue, NoSolution, UnknownName
from tangere.logs.mcap_read import read_mcap
from tangere.loop.folder import load_manifest

KEYS = {
    "strokes", "draw_length_mm", "pen_up_mm", "duration_s", "path_rms_mm", "path_max_mm", "force_rms_error_n",
    "force_max_n", "contact_lost_s", "ink_coverage", "ink_stray",
}  # fmt: skip
FILES = {"preview.png", "plan.svg", "manifest.json", "log.mcap", "ink.csv", "drawn.svg", "drawn.png", "summary.json"}
FILES |= {"picture"}  # the folder with a copy of it
# two strokes, 80 x 40 mm: a circle and a bent line beside it; two seconds of drawing
PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 80 40"><g fill="none" stroke="black">
<circle cx="20" cy="20" r="8"/><path d="M50 10 L70 10 L70 25"/></g></svg>"""
SMALL = DrawingSettings(size=0.08)


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("picture") / "two.svg"
    path.write_text(PICTURE)
    return path


@pytest.fixture(scope="module")
def done(picture: Path, tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    out = tmp_path_factory.mktemp("out") / "deep" / "two"
    return draw_picture(picture, replace(SMALL, controller="both"), out=out, command=["tangere", "draw", "two.svg"])


def test_the_folder_holds_everything_and_nothing_half_written(done: Drawn) -> None:
    second = {"log-height-pi.mcap", "ink-height-pi.csv", "drawn-height-pi.svg", "drawn-height-pi.png"}
    assert {path.name for path in done.folder.iterdir()} == FILES | second
    assert all(path.stat().st_size > 0 for path in done.folder.iterdir())
    manifest = load_manifest(done.folder)
    assert manifest.command == ("tangere", "draw", "two.svg")
    assert manifest.scenario["force"] == 5.0
    assert manifest.scenario["picture"] == "two.svg"
    assert set(manifest.models) == {"controller", "plant"}


def test_the_summary_has_its_keys_and_both_controllers(done: Drawn) -> None:
    summary = json.loads((done.folder / "summary.json").read_text())
    assert set(summary) >= KEYS
    assert set(summary["controllers"]) == {"hybrid", "height-pi"}
    for one in summary["controllers"].values():
        assert set(one) >= KEYS
    assert summary["controller"] == "hybrid"
    assert summary["path_rms_mm"] == summary["controllers"]["hybrid"]["path_rms_mm"]
    assert summary["strokes"] == summary["strokes_drawn"] == 2
    assert summary["aborted"] == ""
    # the marks of a drawing with the defaults, which hold for a small one as well
    assert summary["path_rms_mm"] <= 0.15
    assert summary["path_max_mm"] <= 0.6
    assert summary["force_rms_error_n"] <= 0.15
    assert summary["force_max_n"] <= 8.0
    assert summary["contact_lost_s"] <= 0.005 * summary["draw_s"]
    assert summary["ink_coverage"] >= 0.99
    assert summary["ink_stray"] <= 0.005


def test_the_figures_follow_from_the_files_alone(done: Drawn) -> None:
    """Path and force again from log.mcap and plan.svg: other lines (the strokes), another distance (all to all)."""
    summary = json.loads((done.folder / "summary.json").read_text())
    log = read_mcap(done.folder / "log.mcap")
    drawing = log["mode"] == 4  # "draw"
    canvas = done.prepared.canvas
    tip = canvas.from_base(log["T_true"].reshape(-1, 3, 4)[drawing][:, :, 3])
    force = log["wrench_true"][drawing, :3] @ canvas.normal
    assert np.sqrt(np.mean((force - 5.0) ** 2)) == pytest.approx(summary["force_rms_error_n"], rel=1e-12)
    assert force.max() == pytest.approx(summary["force_max_n"], rel=1e-12)
    assert np.count_nonzero(drawing) * 1e-3 == pytest.approx(summary["draw_s"], abs=1e-9)
    plan = _canvas_lines(done.folder / "plan.svg")
    away = _away(tip[::7, :2], plan)
    # the pen's way may stray from the strokes by the plan's own deviation
    assert 1e3 * np.sqrt(np.mean(away**2)) <= summary["path_rms_mm"] + 1e3 * done.prepared.plan.check.deviation
    assert sum(np.linalg.norm(np.diff(line, axis=0), axis=1).sum() for line in plan) * 1e3 == pytest.approx(
        summary["draw_length_mm"], rel=0.01  # a rounded corner is shorter
    )  # fmt: skip
    # the circle of 8 units in a picture of 80 at 80 mm, and the two legs of 20 and 15
    assert summary["draw_length_mm"] == pytest.approx(2.0 * np.pi * 8.0 + 35.0, rel=0.01)


def test_ink_csv_is_the_ink(done: Drawn) -> None:
    path = done.folder / "ink.csv"
    assert path.read_text().splitlines()[0] == "t,x,y,force"
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    ink = done.main.ink
    # written to a millionth: half of that is rounding
    assert np.allclose(table, np.stack((ink.t, ink.x, ink.y, ink.force), axis=1), rtol=0.0, atol=0.51e-6)
    planned = np.concatenate([_dense(line) for line in _canvas_lines(done.folder / "plan.svg")])
    near = np.linalg.norm(planned[:, None] - table[None, ::3, 1:3], axis=2).min(axis=1) < 0.5e-3
    assert near.mean() >= 0.99


def test_drawn_svg_is_the_ink_within_its_tolerance(done: Drawn) -> None:
    lines = _canvas_lines(done.folder / "drawn.svg")
    assert len(lines) == 2
    # 0.01 mm of simplification, and rounding
    assert _away(done.main.ink.points[::11], lines).max() <= 0.011e-3


def test_drawn_png_is_dark_where_the_ink_is(done: Drawn) -> None:
    from PIL import Image

    grey = np.asarray(Image.open(done.folder / "drawn.png").convert("L"))
    assert grey.shape == (400, 800)  # 0.1 mm a pixel
    ink = done.main.ink
    column, row = np.floor(ink.x / 1e-4 + 400).astype(int), np.floor(200 - ink.y / 1e-4).astype(int)
    pressed = ink.force > 4.0
    assert grey[row[pressed], column[pressed]].max() < 60
    some = (slice(None, None, 3), slice(None, None, 3))
    far = _away(_pixels(grey.shape)[some].reshape(-1, 2), ink_lines(ink, (0.08, 0.04)).lines) > PEN
    assert (grey[some].ravel()[far] == 255).all()
    # the amount of ink is that of a line of the pen's width, drawn as a thing of its own
    same = 255.0 - rendered(done.prepared.strokes, pixel=1e-4, pen=PEN).astype(float)
    assert (255.0 - grey).sum() == pytest.approx(same.sum(), rel=0.03)  # overlap at start and end of the circle


@pytest.mark.parametrize("share", [0.5, 1.0, 2.0])
def test_a_harder_pen_draws_a_wider_line(share: float) -> None:
    x = np.linspace(-0.02, 0.02, 400)
    ink = Ink(np.arange(400) * 1e-3, x, np.zeros(400), np.full(400, 5.0 * share))
    dark = (255.0 - ink_picture(ink, (0.06, 0.01), 5.0)).sum() / 255.0 * 1e-8  # m2
    width = PEN * share ** (1.0 / 3.0)
    # the line and its two round ends; a pixel is a fifth of the width, its border is known to some hundredths of that
    assert dark == pytest.approx(0.04 * width + np.pi * (width / 2.0) ** 2, rel=0.03)


def test_a_pen_that_hardly_presses_leaves_a_paler_line() -> None:
    x = np.linspace(-0.02, 0.02, 400)
    inks = (Ink(np.arange(400) * 1e-3, x, np.zeros(400), np.full(400, force)) for force in (2.5, 1.25))
    half, quarter = (int(ink_picture(ink, (0.06, 0.01), 5.0).min()) for ink in inks)
    assert half == 0
    assert quarter == pytest.approx(127.5, abs=1.0)  # a grey level of rounding


def test_ink_off_the_paper_and_no_ink_at_all_are_pictures_too() -> None:
    ink = Ink(np.array([0.0, 0.001]), np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([5.0, 5.0]))
    assert ink_picture(ink, (0.02, 0.01), 5.0).shape == (100, 200)
    nothing = Ink(*(np.zeros(0) for _ in range(4)))
    assert (ink_picture(nothing, (0.02, 0.01), 5.0) == 255).all()
    assert ink_lines(nothing, (0.02, 0.01)).lines == ()


def test_marks_in_space_lie_on_the_ink_with_gaps_between_strokes(done: Drawn) -> None:
    times, points = ink_marks(done.main.ink, done.prepared.canvas, 200)
    assert 100 <= len(times) == len(points) <= 210
    assert np.all(np.diff(times) >= 0.0)
    gaps = np.isnan(points[:, 0])
    assert gaps.sum() == 2
    flat = done.prepared.canvas.from_base(points[~gaps])
    assert np.abs(flat[:, 2]).max() < 1e-12
    assert _away(flat[:, :2], ink_lines(done.main.ink, (0.08, 0.04)).lines).max() < 0.011e-3


def test_the_preview_comes_alone(picture: Path, tmp_path: Path) -> None:
    from PIL import Image

    folder = write_preview(prepare(picture, SMALL), tmp_path / "p")
    assert {path.name for path in folder.iterdir()} == {"preview.png", "plan.svg"}
    image = np.asarray(Image.open(folder / "preview.png").convert("RGB")).astype(int)
    assert ((image.max(axis=2) - image.min(axis=2)) > 60).any()  # coloured strokes
    write_preview(prepare(picture, SMALL), folder)  # again into the same folder


def test_a_preview_never_removes_a_drawing(done: Drawn, picture: Path) -> None:
    """Into the folder of a finished drawing: that one stays byte by byte, the preview is beside it."""
    before = {path.name: path.read_bytes() for path in done.folder.iterdir() if path.is_file()}
    folder = write_preview(prepare(picture, SMALL), done.folder)
    assert folder == done.folder.with_name("two-2")
    assert {path.name for path in folder.iterdir()} == {"preview.png", "plan.svg"}
    assert {path.name: path.read_bytes() for path in done.folder.iterdir() if path.is_file()} == before


def test_a_preview_of_any_shape_is_a_picture(done: Drawn) -> None:
    thin = replace(done.prepared.strokes, size=(0.3, 0.05))
    assert preview_png(thin, seconds=12.0, title="a \u4e2d <b> " * 40).startswith(b"\x89PNG")


def test_a_second_drawing_takes_the_place_of_the_first(picture: Path, done: Drawn, tmp_path: Path) -> None:
    out = tmp_path / "again"
    first = execute_drawing(done.prepared, out=out)
    assert (out / "log-height-pi.mcap").exists()
    (out / "notes.txt").write_text("mine")
    (out / "report.html").write_text("old")
    second = draw_picture(picture, SMALL, out=out)
    assert {path.name for path in out.iterdir()} == FILES | {"notes.txt"}
    assert np.array_equal(first.main.ink.force, second.main.ink.force)  # the same seed: the same drawing


def test_nothing_is_written_where_the_drawing_does_not_fit(picture: Path, tmp_path: Path) -> None:
    out = tmp_path / "none"
    with pytest.raises(DoesNotFit, match="reach"):
        draw_picture(picture, replace(SMALL, canvas="1.2,0,0,0,0,-1.5708"), out=out)
    with pytest.raises(DoesNotFit, match=r"more than the arm can exert there: \d+ N at most"):
        draw_picture(picture, replace(SMALL, force=500.0), out=out)
    empty = tmp_path / "white.png"
    empty.write_bytes(png_bytes(np.full((60, 60), 255, dtype=np.uint8)))
    with pytest.raises(InvalidValue, match="nothing to draw"):
        draw_picture(empty, SMALL, out=out)
    assert not out.exists()


def test_the_offered_placement_is_taken_when_asked(picture: Path) -> None:
    asked = replace(SMALL, canvas="1.2,0,0,0,0,-1.5708")
    with pytest.raises(DoesNotFit) as refused:
        prepare(picture, asked)
    offer = refused.value.offers[0]
    assert offer is not None
    placed = prepare(picture, replace(asked, place=True))
    assert np.allclose(placed.canvas.T_base_canvas, offer.canvas.T_base_canvas)
    assert any("placed elsewhere" in note for note in placed.notes)


def test_the_size_that_is_offered_can_be_planned(picture: Path) -> None:
    """Offered in whole millimetres; drawn at that size by --size as well as by --place."""
    asked = DrawingSettings(robot="ur3e", size=0.9)
    with pytest.raises(NoSolution) as refused:
        prepare(picture, asked)
    found = re.search(r"(\d+) mm of 900 would fit", str(refused.value))
    assert found is not None
    offered = 1e-3 * int(found[1])
    assert max(prepare(picture, replace(asked, size=offered)).strokes.size) == pytest.approx(offered)
    placed = prepare(picture, replace(asked, place=True))
    assert max(placed.strokes.size) == pytest.approx(offered)
    with pytest.raises(NoSolution):  # it is the largest, to 4 %
        prepare(picture, replace(asked, size=1.05 * offered))


def test_the_paper_is_found_by_touch_first(picture: Path, tmp_path: Path) -> None:
    """3 mm and 2 degrees, nobody is told: found to 0.1 mm and 0.1 degrees, and drawn on the plane that was found."""
    error = (3e-3, np.radians(2.0))
    found = draw_picture(picture, replace(SMALL, canvas_error=error, probe=True), out=tmp_path / "probed")
    probe = found.summary["probe"]
    assert probe["offset_mm"] == pytest.approx(3.0, abs=0.1)
    assert probe["tilt_deg"] == pytest.approx(2.0, abs=0.1)
    assert any("found 3." in note or "found 2.9" in note for note in found.summary["notes"])
    assert found.prepared.canvas.normal @ found.main.paper.T[:3, 2] == pytest.approx(1.0, abs=1e-5)
    assert found.aborted == ""
    assert found.summary["ink_coverage"] >= 0.99
    assert found.summary["force_rms_error_n"] <= 0.15


def test_three_touched_points_are_a_canvas(picture: Path) -> None:
    corners = ((0.30, 0.05, 0.02), (0.30, -0.05, 0.02), (0.40, 0.05, 0.02))
    prepared = prepare(picture, replace(SMALL, canvas_points=corners))
    corner = np.array((-0.5, -0.5)) * prepared.canvas.size
    assert prepared.canvas.to_base(corner) == pytest.approx(corners[0])
    assert prepared.canvas.normal == pytest.approx((0.0, 0.0, 1.0))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_error": -0.9}, "-0.5 to 1"), ({"model_error": 5.0}, "-0.5 to 1"),
        ({"stiffness": 1e3}, "2000 to 100000"), ({"stiffness": 3e5}, "2000 to 100000"),
        ({"size": 5e-3}, "size: 0.01 to 3 m"), ({"size": (0.1, 1e-3)}, "size"),
        ({"canvas_error": (0.025, 0.0)}, "-20 to 20 mm"), ({"canvas_error": (0.0, 0.6)}, "-20 to 20 deg"),
        ({"noise": -1.0}, "noise"), ({"noise": float("nan")}, "noise"), ({"tolerance": 0.0}, "tolerance"),
        ({"thresholds": (20.0, 8.0)}, "low <= high"), ({"force": 0.0}, "above 0"), ({"margin": -0.01}, "margin"),
        ({"canvas": "wall", "canvas_points": ((0.0,) * 3,) * 3}, "not both"),
    ],
)  # fmt: skip
def test_values_are_checked_before_anything_is_planned(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(said)):
        DrawingSettings(**change)


def test_folders_of_others_are_left_alone(done: Drawn, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "summary.json").write_text("{}")
    with pytest.raises(InvalidValue, match="not the folder of a drawing"):
        execute_drawing(done.prepared, out=mine)
    assert (mine / "summary.json").read_text() == "{}"
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InvalidValue, match="cannot write into"):
        execute_drawing(done.prepared, out=blocked / "sub")


def test_a_pen_that_loses_the_paper_stops_and_says_so(picture: Path, tmp_path: Path) -> None:
    """A hole under the bent line's second leg: the circle is drawn, the line up to the hole."""
    done = draw_picture(picture, replace(SMALL, hole=(0.03, 0.0, 0.02, 0.01)), out=tmp_path / "hole")
    assert done.aborted
    assert done.summary["aborted"] == done.aborted
    assert 0.5 < done.summary["ink_coverage"] < 0.95
    log = done.main.log
    height = done.prepared.canvas.from_base(log["T_true"].reshape(-1, 3, 4)[:, :, 3])[:, 2]
    assert height[-1] > 0.01  # lifted
    assert {path.name for path in done.folder.iterdir()} == FILES


def test_pictures_and_canvases_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_picture("snail").name == "snail.png"
    assert find_picture("snail.svg").name == "snail.svg"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "snail").mkdir()  # an --out of before
    assert find_picture("snail").name == "snail.png"
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidValue, match="folder"):
        find_picture("folder")
    with pytest.raises(UnknownName, match=r"nowhere.*snail\.png"):
        find_picture("nowhere")
    robot = drawing_robot("ur10e")
    for text, up in (("table", 1.0), ("wall", 0.0), ("30deg", np.cos(np.radians(30.0)))):
        assert canvas_of(text, robot, (0.2, 0.2)).normal[2] == pytest.approx(up, abs=1e-12)
    for bad in ("ceiling", "1,2,3", "200deg", "xdeg", "1,2,3,4,5,x", "400,0,0,0,0,0"):
        with pytest.raises(InvalidValue):
            canvas_of(bad, robot, (0.2, 0.2))


@pytest.mark.parametrize(
    "wrong",
    [
        {"controller": "pid"}, {"sensor": "magic"}, {"force": 0.0}, {"force": float("nan")}, {"stiffness": -1.0},
        {"speed": float("inf")}, {"seed": -1}, {"hole": (0.0, 0.0, -1.0, 1.0)}, {"bump": (0.0, 0.0, 1.0, 1.0)},
    ],
    ids=str,
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        replace(SMALL, **wrong)  # type: ignore[arg-type]


def _canvas_lines(path: Path) -> list[np.ndarray]:
    """Lines of an SVG in mm, in canvas metres."""
    read = read_svg(path)
    scale = np.array([1.0, -1.0]) * 0.08 / read.width
    return [(line - [read.width / 2.0, read.height / 2.0]) * scale for line in read.lines]


def _dense(line: np.ndarray, step: float = 1e-4) -> np.ndarray:
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    at = np.arange(0.0, along[-1], step)
    return np.stack([np.interp(at, along, line[:, k]) for k in (0, 1)], axis=1)


def _away(points: np.ndarray, lines: object) -> np.ndarray:
    """Distance of each point to the nearest place on any line, segment by segment, without any grid."""
    best = np.full(len(points), np.inf)
    for line in lines:  # type: ignore[attr-defined]
        for a, b in pairwise(line):
            way = b - a
            share = np.clip((points - a) @ way / max(way @ way, 1e-300), 0.0, 1.0)
            best = np.minimum(best, np.linalg.norm(points - a - share[:, None] * way, axis=1))
    return best


def _pixels(shape: tuple[int, int]) -> np.ndarray:
    rows, columns = np.mgrid[0 : shape[0], 0 : shape[1]]
    x, y = (columns + 0.5 - shape[1] / 2.0) * 1e-4, (shape[0] / 2.0 - rows - 0.5) * 1e-4
    return np.stack([x, y], axis=-1)


@pytest.mark.parametrize(("width", "height"), [(0.2, 0.05), (0.05, 0.2)])
def test_a_preview_is_as_large_as_it_is_on_either_side(width: float, height: float) -> None:
    from PIL import Image

    corners = np.array([[-width, -height], [width, -height], [width, height], [-width, height]]) / 2.0
    image = Image.open(io.BytesIO(preview_png(Strokes((corners,), (width, height)))))
    longest = PREVIEW * np.array([width, height]) / max(width, height)
    assert image.size == (max(round(longest[0]), 700) + 80, round(longest[1]) + 80 + 66)
