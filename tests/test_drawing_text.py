"""Text as strokes: the single-line font is whole and draws nothing twice, fonts of the system, lines of text, write."""

from __future__ import annotations

import io
import json
import string
import unicodedata
from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.apps.drawing.picture.svg import read_svg
from tangere.apps.drawing.picture.svg_attributes import flattened
from tangere.apps.drawing.strokes.make import strokes_of
from tangere.apps.drawing.strokes.strokes import length
from tangere.apps.drawing.text.fonts import SingleLine, every_font, face
from tangere.apps.drawing.text.layout import SetText, lines_in, named, set_text, text_svg
from tangere.apps.drawing.text.letters import CAPITAL, SMALL, letter
from tangere.apps.drawing.text.settings import TextSettings
from tangere.errors import InvalidValue, UnknownName

PRINTABLE = string.digits + string.ascii_letters + string.punctuation
LATIN = "".join(chr(c) for c in range(0xC0, 0x100))
POLISH_AND_OTHERS = "ąćęłńóśźżĄĆĘŁŃÓŚŹŻčďěňřšťůžőűğışİœŒ€„“”‚’–—…•"


def lines_of(text: SetText) -> list[np.ndarray]:
    return [flattened(curve, np.eye(3), 1e-6) for curve in text.curves]


def box(text: SetText) -> np.ndarray:
    points = np.concatenate(lines_of(text))
    return np.stack([points.min(axis=0), points.max(axis=0)])


def outline_font() -> str:
    pytest.importorskip("fontTools")
    if not every_font():
        pytest.skip("this machine has no fonts")
    return next((one.full for one in every_font() if one.family == "DejaVu Serif"), every_font()[0].full)


@pytest.mark.parametrize("character", PRINTABLE + LATIN + POLISH_AND_OTHERS)
def test_the_font_has_it_and_draws_no_line_of_it_twice(character: str) -> None:
    """The strokes, after what is drawn already is left out, are as long as the letter: none of it was double.

    Where a curve runs smoothly into a stem, both share up to 1 mm of these 20 within a tenth of a pen's line.
    """
    text = set_text(character, TextSettings(height=0.02))
    meant = sum(length(line) for line in lines_of(text))
    drawn = strokes_of(text_svg(text).encode(), text.size, join=1e-6)
    assert drawn.draw_length == pytest.approx(meant, abs=2e-3)


def test_no_two_letters_look_the_same() -> None:
    seen: dict[object, str] = {}
    for character in PRINTABLE + LATIN:
        found = letter(character)
        assert found is not None
        key = tuple(tuple(np.round(curve, 6)) for curve in found[1])
        assert seen.setdefault(key, character) == character
    assert letter("Ð") == letter("Đ")  # these two do: one is Icelandic, the other Croatian


def test_letters_stand_on_their_line_and_are_as_high_as_they_should_be() -> None:
    for character in "BDEFHIKLMNPRTXZ":
        curves = letter(character)[1]  # type: ignore[index]
        heights = np.concatenate([flattened(list(c), np.eye(3), 1e-3)[:, 1] for c in curves])
        assert (heights.min(), heights.max()) == pytest.approx((0.0, CAPITAL))
    for character in "acemnorsuvwxz":
        curves = letter(character)[1]  # type: ignore[index]
        heights = np.concatenate([flattened(list(c), np.eye(3), 1e-3)[:, 1] for c in curves])
        assert (heights.min(), heights.max()) == pytest.approx((0.0, SMALL), abs=0.2)
    for character in "ÄÉÑÅ":  # accents of capitals stand above them
        curves = letter(character)[1]  # type: ignore[index]
        assert max(p.imag for c in curves for p in c) > CAPITAL + 2.0


@pytest.mark.parametrize("font", ["single-line", ""])
def test_the_height_is_that_of_a_capital(font: str) -> None:
    font = font or outline_font()
    for height in (0.005, 0.012, 0.05):
        low, high = box(set_text("H", TextSettings(height=height, font=font)))
        assert high[1] - low[1] == pytest.approx(height, rel=1e-3)


def test_lines_are_aligned_and_evenly_apart() -> None:
    ends = {}
    for align in ("left", "centre", "right"):
        text = set_text("H\nHHHHH\\nHH", TextSettings(height=0.01, align=align, line_distance=2.0))
        points = np.concatenate(lines_of(text))
        low = points[:, 1].min()
        rows = [points[np.abs(points[:, 1] - low - 0.005 - 0.02 * k) < 0.0051] for k in range(3)]
        assert sum(map(len, rows)) == len(points)
        sides = np.array([(row[:, 0].min(), row[:, 0].max()) for row in rows])
        ends[align] = {"left": np.ptp(sides[:, 0]), "right": np.ptp(sides[:, 1]), "centre": np.ptp(sides.mean(axis=1))}
    for align, spread in ends.items():
        assert spread.pop(align) < 1e-6
        assert min(spread.values()) > 0.005


def test_long_lines_are_broken_between_words() -> None:
    words = "one two three four five six seven"
    whole = set_text(words, TextSettings(height=0.01))
    broken = set_text(words, TextSettings(height=0.01, wrap=0.08))
    assert whole.size[0] > 0.2
    assert broken.size[0] <= 0.081
    meant, kept = (sum(length(line) for line in lines_of(t)) for t in (whole, broken))
    assert kept == pytest.approx(meant, rel=1e-9)


def test_a_text_read_back_from_its_svg_is_the_text() -> None:
    for font in ("single-line", outline_font()):
        text = set_text("Straße 8%", TextSettings(font=font))
        tracing = read_svg(text_svg(text).encode())
        assert (tracing.width, tracing.height) == pytest.approx([1e3 * side for side in text.size], abs=1e-5)
        assert not [note for note in tracing.notes if "cut off" in note]
        meant = sum(length(line) for line in lines_of(text))
        assert sum(length(line) for line in tracing.lines) == pytest.approx(1e3 * meant, rel=1e-3)


def test_what_cannot_be_written_is_a_sentence() -> None:
    with pytest.raises(InvalidValue, match=r"single-line has no 日 \(U\+65E5\)"):
        set_text("日", TextSettings())
    with pytest.raises(InvalidValue, match="no letters"):
        set_text(" \n ", TextSettings())
    with pytest.raises(InvalidValue, match="at most"):
        lines_in("x" * 20_001)
    pytest.importorskip("fontTools")
    with pytest.raises(UnknownName, match="no font 'Nonesuch'; there are: single-line"):
        face("Nonesuch")
    with pytest.raises(InvalidValue, match="no such file"):
        face("missing.ttf")


def test_a_font_is_found_by_family_full_name_file_and_weight() -> None:
    pytest.importorskip("fontTools")
    found = [one for one in every_font() if one.family == "DejaVu Sans" and one.style == "Bold"]
    if not found:
        pytest.skip("DejaVu Sans is not on this machine")
    names = {face(name).name for name in ("DejaVu Sans Bold", "dejavusans-bold", str(found[0].path))}
    assert names == {"DejaVu Sans Bold"}
    assert face("DejaVu Sans", "bold").name == "DejaVu Sans Bold"
    assert face("DejaVu Sans").name == "DejaVu Sans"
    assert face("sans-serif").outlines
    assert isinstance(face("Single-Line"), SingleLine)


def test_file_names_are_plain() -> None:
    assert named("Hello, World/..\\n!") == "Hello_World"
    assert named("日本") == "text"
    assert len(named("x" * 100)) == 32


def test_write_leaves_a_drawing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mujoco", reason="drawing is simulated by mujoco")
    from tangere.cli.main import main

    out = tmp_path / "out"
    assert main(["write", "Öl", "--height", "12mm", "--speed", "100mm/s", "--out", str(out)]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["ink_coverage"] >= 0.97
    assert (out / "picture" / "l.svg").is_file()
    assert (out / "report.html").is_file()
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"from\na pipe\n")))
    assert main(["write", "-", "--preview", "--out", str(tmp_path / "pipe")]) == 0
    assert "strokes" in capsys.readouterr().out
    assert main(["write", "far " * 40, "--height", "50mm"]) == 1
    assert "--wrap" in capsys.readouterr().err


def test_write_in_python_takes_settings_of_the_text_and_of_the_drawing(tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="drawing is simulated by mujoco")
    done = tangere.write("I", out=tmp_path / "i", height="8mm", force=3, speed="100mm/s", report=False)
    low, high = done.prepared.strokes.bounds
    assert high[1] - low[1] == pytest.approx(8e-3, abs=2e-4)
    assert done.prepared.settings.force == 3.0
    assert done.prepared.picture == done.folder / "picture" / "I.svg"
    assert done.main.figures.force_mean_n == pytest.approx(3.0, abs=0.1)
    assert not (done.folder / "report.html").exists()
    with pytest.raises(InvalidValue, match="mounts its own pen"):
        tangere.write("I", tangere.robot("ur5e", payload=1.0), out=tmp_path / "loaded")


@pytest.mark.parametrize("character", "ÄÖÜÂÊÎÔÛäöüâêôû")
def test_a_mark_stands_over_the_middle_of_its_letter(character: str) -> None:
    base = unicodedata.normalize("NFD", character)[0]
    plain, marked = letter(base), letter(character)
    assert plain is not None
    assert marked is not None
    own = len(plain[1])
    middle = [
        0.5 * (min(p.real for c in curves for p in c) + max(p.real for c in curves for p in c))
        for curves in (marked[1][:own], marked[1][own:])
    ]
    assert middle[1] == pytest.approx(middle[0], abs=1e-9)
