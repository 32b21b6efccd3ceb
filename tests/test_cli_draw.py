"""tangere draw on the command line: what it says, where it writes, how it refuses."""

from __future__ import annotations

import argparse
import json
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from foreign_arms import written

pytest.importorskip("mujoco", reason="drawing is simulated by mujoco")
pytest.importorskip("PIL", reason="pictures are read by Pillow")

import tangere
from tangere.apps.drawing.command import EXAMPLES, add
from tangere.apps.drawing.draw_picture import DrawingSettings
from tangere.apps.drawing.files import png_bytes
from tangere.apps.scenarios.common import RunSettings
from tangere.cli.main import main, parser
from tangere.errors import InvalidValue
from tangere.options import Parser, group_from
from tangere.settings import merged
from tangere.settings import settings_of as run_settings

Captured = pytest.CaptureFixture[str]
LINE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20">
<path fill="none" stroke="red" d="M5 5H35"/>{}</svg>"""


def parsed(*words: str) -> argparse.Namespace:
    root = Parser()
    add(root.add_subparsers())
    return root.parse_args(["draw", *words])


def settings_of(arguments: argparse.Namespace) -> DrawingSettings:
    return group_from(DrawingSettings, arguments)


@pytest.fixture
def line(tmp_path: Path) -> Path:
    path = tmp_path / "line.svg"
    path.write_text(LINE.format(""))
    return path


def test_the_defaults_are_those_of_the_settings() -> None:
    assert settings_of(parsed("x.png")) == DrawingSettings()


def test_joints_as_in_run(tmp_path: Path, line: Path, capsys: Captured) -> None:
    """The same settings, by the same words; of an arm without drive data it is said, before anything is written."""
    common = {name: run_settings(RunSettings)[name] for name in ("drives", "friction", "friction_model", "sensors")}
    own = run_settings(DrawingSettings)
    assert all(own[name].choices == one.choices for name, one in common.items())
    words = ["draw", str(line), "--robot", "ur15", "--size", "40mm", "--out", str(tmp_path / "out"), "--preview"]
    assert main([*words, "--friction", "full"]) == 1
    assert "friction=typical" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main([*words, "--drives"]) == 0
    assert "the rotor inertia of ur15 is not known" in capsys.readouterr().out
    assert main([*words, "--drives", "--friction", "typical", "--sensors", "typical"]) == 0
    assert "by joint size" in capsys.readouterr().out


def test_options_become_si_units() -> None:
    words = (
        "x.png --force 3N --size 150x80mm --margin 5mm --stiffness 20N/mm --noise off --canvas-error -3mm,2deg "
        "--speed 0.1 --hole -10,0,5,2cm --canvas -0.4,0.1,0,0,0,0 --model-error 0.1"
    )
    s = settings_of(parsed(*words.split()))
    assert (s.force, s.noise, s.speed, s.canvas, s.model_error) == (3.0, 0.0, 0.1, "-0.4,0.1,0,0,0,0", 0.1)
    assert s.size == pytest.approx((0.15, 0.08))
    assert (s.margin, s.stiffness) == pytest.approx((5e-3, 2e4))
    assert s.canvas_error == pytest.approx((-3e-3, np.radians(2.0)))
    assert s.hole == pytest.approx((-0.01, 0.0, 0.005, 0.02))
    assert settings_of(parsed("x", "--size", "0.15m")).size == pytest.approx(0.15)
    assert settings_of(parsed("x", "--size", "150mmx80mm")).size == pytest.approx((0.15, 0.08))
    assert settings_of(parsed("x", "--canvas-error", "2deg")).canvas_error == pytest.approx((0.0, np.radians(2.0)))
    assert settings_of(parsed("x", "--canvas-error", "2mm")).canvas_error == pytest.approx((2e-3, 0.0))
    assert settings_of(parsed("x", "--noise", "2.5")).noise == 2.5
    assert settings_of(parsed("x", "--thresholds", "8,20")).thresholds == (8.0, 20.0)
    assert settings_of(parsed("x", "--tolerance", "0.2mm")).tolerance == pytest.approx(2e-4)
    points = settings_of(parsed("x", "--canvas-points", "0.3,-0.1,0 0.5,-0.1,0 0.3,0.1,0")).canvas_points
    assert points == ((0.3, -0.1, 0.0), (0.5, -0.1, 0.0), (0.3, 0.1, 0.0))
    assert settings_of(parsed("x", "--probe")).probe
    assert settings_of(parsed("x", "--canvas", "400mm,0,10cm,0,0,-90deg")).canvas == "0.4,0,0.1,0,0,-1.5707963267949"
    assert settings_of(parsed("x", "--canvas", "0.5rad")).canvas == "28.6478897565deg"
    assert settings_of(parsed("x", "--model-error", "10%")).model_error == pytest.approx(0.1)
    points = settings_of(parsed("x", "--canvas-points", "30cm,-10cm,0 500,-100,0mm 0.3,0.1,0")).canvas_points
    assert np.array(points) == pytest.approx(np.array(((0.3, -0.1, 0.0), (0.5, -0.1, 0.0), (0.3, 0.1, 0.0))))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("size", "60mm", 0.06), ("size", "15x10cm", (0.15, 0.1)), ("margin", "5mm", 0.005), ("speed", "100mm/s", 0.1),
        ("canvas_error", "3mm,0.02rad", (0.003, 0.02)), ("hole", "1,2,3,4", (0.001, 0.002, 0.003, 0.004)),
        ("bump", "5,5,0.5,4", (0.005, 0.005, 0.0005, 0.004)), ("thresholds", "8,20", (8.0, 20.0)),
        ("noise", "off", 0.0), ("tolerance", "0.2mm", 2e-4),
        ("canvas", "400mm,0,10cm,0,0,-1.5rad", (0.4, 0, 0.1, 0, 0, -1.5)),
        ("canvas_points", "0.3,-0.1,0 0.5,-0.1,0 0.3,0.1,0", ((0.3, -0.1, 0.0), (0.5, -0.1, 0.0), (0.3, 0.1, 0.0))),
    ],
)  # fmt: skip
def test_python_says_it_in_si_or_in_the_words_of_the_option(name: str, text: str, value: object) -> None:
    """One rule for units: an option, a text and a number from Python, and what a manifest holds mean the same."""
    typed = getattr(settings_of(parsed("x.png", f"--{name.replace('_', '-')}", text)), name)
    for given in (text, value, json.loads(json.dumps(value)), typed):
        assert getattr(merged(DrawingSettings, {name: given}), name) == typed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--size 200", "200mm"), ("--size 1x2x3mm", "--size"), ("--size -5mm", "positive"), ("--size wide", "--size"),
        ("--force strong", "--force"), ("--force 0", "force"), ("--force 5mm", "valid units: N"),
        ("--noise loud", "default, off"), ("--noise -1", "from 0 on"), ("--canvas-error 3deg,2mm", "--canvas-error"),
        ("--canvas-error 1mm,1deg,1", "3mm,2deg"), ("--hole 1,2,3", "four lengths"), ("--bump 0,0,9,2", "bump"),
        ("--canvas-error 3,2", "with units"), ("--canvas-error 30mm", "-20 to 20 mm"), ("--thresholds 8", "LOW,HIGH"),
        ("--canvas-points 1,2,3", "three points in m"), ("--stiffness 1", "2000 to 100000 N/m"),
        ("--speed 5mm", "valid units: m/s, mm/s"), ("--seed -1", "seed"), ("--size 5m", "no arm reaches 5m"),
        ("--hole 0,0,-5,5", "width -5, height 5 mm"), ("--bump 0,0,100,5", "height 100, radius 5 mm"),
    ],
)  # fmt: skip
def test_wrong_values_are_refused_with_what_is_valid(words: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(said)):
        settings_of(parsed("x.png", *words.split()))


def test_help_explains_itself_and_its_examples_parse(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["draw", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "usage: tangere draw" in out
    assert not re.findall(r"^  (--[^ ]+)$", out, re.MULTILINE)  # an option without a word about it
    lines = [line.split("   ")[0].split() for line in EXAMPLES.splitlines()[1:] if line.startswith("  tangere")]
    assert len(lines) >= 8
    for word, *arguments in lines:
        assert word == "tangere"
        settings_of(parser().parse_args(arguments))


def test_the_pictures_that_ship_are_listed(capsys: Captured) -> None:
    assert main(["draw", "--list"]) == 0
    assert capsys.readouterr().out.split() == ["snail.png", "snail.svg", "still_life.png"]
    assert main(["draw"]) == 1
    assert "snail.png" in capsys.readouterr().err


def test_a_line_is_drawn_and_reported(line: Path, capsys: Captured) -> None:
    out = line.parent / "out"
    words = ["draw", str(line), "--size", "40mm", "--out", str(out)]
    assert main(words) == 0
    said = capsys.readouterr()
    assert re.search(r"1 stroke, 0\.03 m drawn, 0\.00 m pen up, 40 x 20 mm, about \d+ s", said.out)
    summary = json.loads((out / "summary.json").read_text())
    told = re.search(r"force error, rms +([\d.]+)  N", said.out)
    assert told is not None
    assert float(told[1]) == pytest.approx(summary["force_rms_error_n"], rel=1e-3)
    assert f"report: {out / 'report.html'}" in said.out
    assert json.loads((out / "manifest.json").read_text())["command"] == ["tangere", *words]
    page = (out / "report.html").read_text()
    assert page.count("<img ") == 2  # picture and drawing; the plan is drawn by the page
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)  # nothing is fetched
    for anchor in ("drawing", "figures", "pen-force", "line-error", "force-map", "error-map", "joints", "what"):
        assert f'id="{anchor}"' in page


def test_the_preview_moves_nothing(line: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(line.parent)
    out = line.parent / "out" / "line"  # where a drawing goes that is told no folder
    assert main(["draw", str(line), "--size", "40mm", "--preview"]) == 0
    said = capsys.readouterr().out
    assert "preview:" in said
    assert re.search(r"time: \d+ s drawing at \d+ mm/s on average.*, \d+ s touching down, \d+ s in the air", said)
    assert {path.name for path in out.iterdir()} == {"preview.png", "plan.svg"}


def test_a_picture_with_scripts_and_references_is_drawn_without_them_and_that_is_said(
    tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "<b>&.svg"
    path.write_text(LINE.format('<script>alert(1)</script><use href="http://there/a.svg#b"/><image href="x.png"/>'))
    assert main(["draw", str(path), "--size", "40mm", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "note: scripts were ignored" in out
    assert "note: references to elsewhere were ignored" in out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "alert(1)" not in page
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;.svg" in page


def test_a_pen_that_loses_the_paper_ends_with_an_exit_code(line: Path, capsys: Captured) -> None:
    out = line.parent / "out"
    assert main(["draw", str(line), "--size", "40mm", "--hole", "5,5,10,4", "--out", str(out)]) == 1
    said = capsys.readouterr().out
    assert "aborted: " in said
    summary = json.loads((out / "summary.json").read_text())
    assert summary["aborted"] in said
    assert summary["ink_coverage"] < 0.8
    assert "The drawing ended early" in (out / "report.html").read_text()


def huge_png() -> bytes:
    """A file of some bytes whose header claims 60000 x 60000 pixels."""
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)), (b"IDAT", b""), (b"IEND", b""))
    body = b"".join(struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("no.png", b"hello", "not a picture"),
        ("none.png", b"", "not a picture"),
        ("huge.png", huge_png(), "60000 x 60000|3600000000"),
        ("white.png", png_bytes(np.full((50, 50), 255, dtype=np.uint8)), "nothing to draw"),
        ("empty.svg", b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>', "nothing to draw"),
        ("bad.svg", b"<svg", "SVG|XML"),
    ],
)
def test_bad_pictures_are_one_line_and_leave_nothing(
    name: str, content: bytes, said: str, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / name).write_bytes(content)
    assert main(["draw", str(tmp_path / name), "--out", str(tmp_path / "out")]) == 1
    err = capsys.readouterr().err
    assert re.search(said, err)
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--canvas 1.3,0,0,0,0,-1.5708", "leaves the arm's reach by .* move it .*--place takes the first"),
        ("--canvas 0.4,0,-0.2,3.14159,0,0", "faces down|behind"),
        ("--force 400", r"more than the arm can exert there: \d+ N at most"),
        ("--canvas ceiling", "unknown canvas 'ceiling'; known: table, wall"),
        ("--robot ur7", "ur7.*ur5e"),
        ("--robot ur3e --size 900mm", r"reaches no place .*: \d+ mm of 900 would fit; --place takes the first"),
    ],
)
def test_what_cannot_be_drawn_there_is_said_with_a_way_out(
    words: str, said: str, line: Path, capsys: Captured
) -> None:
    out = line.parent / "out"
    assert main(["draw", str(line), "--size", "40mm", *words.split(), "--out", str(out)]) == 1
    assert re.search(said, capsys.readouterr().err)
    assert not out.exists()


@pytest.mark.parametrize(("name", "why"), [("six", "another geometry"), ("seven", "has 7"), ("sorter", "has 4")])
def test_an_arm_of_another_kind_is_refused_before_anything_is_planned(tmp_path: Path, name: str, why: str) -> None:
    """Its inverse kinematics would be searched for each pose of a canvas, for minutes."""
    with pytest.raises(InvalidValue, match=why):
        tangere.draw("snail", robot=str(written(tmp_path, name)), out=tmp_path / "drawn")
    assert not (tmp_path / "drawn").exists()
