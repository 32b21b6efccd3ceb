"""Text of an SVG: where it stands, in which font, and that what is not drawn is said where one looks."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest

from tangere.apps.drawing.picture.svg import read_svg
from tangere.apps.drawing.picture.svg_file import shown_svg
from tangere.apps.drawing.text.fonts import CAPITAL_EM, SingleLine, every_font, face
from tangere.apps.drawing.text.layout import line_curves

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100">'


def box(body: str, font: str = "single-line") -> np.ndarray:
    """(2, 2) lower and upper corner of what is drawn."""
    points = np.concatenate(read_svg(f"{HEAD}{body}</svg>".encode(), font=font).lines)
    return np.stack([points.min(axis=0), points.max(axis=0)])


def width(text: str) -> float:
    """How far a text moves on in the single-line font [em]."""
    return line_curves(text, SingleLine())[1]


def test_text_stands_on_its_line_and_is_as_high_as_its_font_says() -> None:
    low, high = box('<text x="30" y="60" font-size="20">HE</text>')
    assert low == pytest.approx([30.0, 60.0 - 20.0 * CAPITAL_EM])
    assert high[1] == pytest.approx(60.0)


@pytest.mark.parametrize(("anchor", "share"), [("start", 0.0), ("middle", 0.5), ("end", 1.0)])
def test_the_anchor_is_where_it_is_said(anchor: str, share: float) -> None:
    low, _ = box(f'<text x="100" y="50" font-size="10" text-anchor="{anchor}">HEH</text>')
    assert low[0] == pytest.approx(100.0 - share * 10.0 * width("HEH"))


def test_spans_go_on_or_begin_anew() -> None:
    whole = box('<text x="10" y="50" font-size="10">HE LL</text>')
    parts = box('<text x="10" y="50" font-size="10">H<tspan>E </tspan>\n  <tspan>L</tspan>L</text>')
    assert parts == pytest.approx(whole)
    two = box('<text x="10" y="30" font-size="10">H<tspan x="10" dy="20">H</tspan></text>')
    assert two == pytest.approx(np.array([[10.0, 30.0 - 7.2], [10.0 + 14.0 * 0.36, 50.0]]))
    em = box('<text x="10" y="30" font-size="10">H<tspan x="10" dy="2em">H</tspan></text>')
    assert em == pytest.approx(two)
    larger = box('<text x="10" y="50" font-size="10"><tspan style="font-size: 200%">H</tspan></text>')
    assert np.ptp(larger[:, 1]) == pytest.approx(14.4)


def test_each_letter_may_have_its_own_place() -> None:
    low, high = box('<text x="10 50 90" y="50" font-size="10">III</text>')
    assert (low[0], high[0]) == pytest.approx((10.0, 90.0))


def test_transforms_and_style_sheets_reach_text() -> None:
    plain = box('<text x="10" y="50" font-size="10">HEL</text>')
    turned = box('<g transform="translate(100 0) rotate(90)"><text x="10" y="50" font-size="10">HEL</text></g>')
    assert turned[:, 1] == pytest.approx(plain[:, 0])
    assert turned[:, 0] == pytest.approx(100.0 - plain[::-1, 1])
    sheet = box('<style>.a { font: bold 10px Nonesuch, "Other One" }</style><text class="a" x="10" y="50">HEL</text>')
    assert sheet == pytest.approx(plain)


def test_hidden_text_and_its_title_are_not_drawn() -> None:
    shown = '<text x="10" y="50" font-size="10">H<title>not this</title></text>'
    hidden = '<text x="90" y="50" visibility="hidden">E</text><text x="90" y="90" display="none">E</text>'
    assert box(shown + hidden) == pytest.approx(box('<text x="10" y="50" font-size="10">H</text>'))


def test_a_font_of_the_system_gives_outlines_and_one_that_is_missing_the_single_line() -> None:
    pytest.importorskip("fontTools")
    if not any(one.family == "DejaVu Sans" for one in every_font()):
        pytest.skip("DejaVu Sans is not on this machine")
    body = '<text x="10" y="50" font-size="20" font-family="Nonesuch, DejaVu Sans" font-weight="{}">O</text></svg>'
    plain, bold = (read_svg((HEAD + body.format(w)).encode()) for w in ("normal", "700"))
    assert len(plain.lines) == 2  # outer and inner border of the letter
    glyph = face("DejaVu Sans Bold").glyph("O")
    assert glyph is not None
    points = np.array([point for curve in glyph.curves for point in curve])
    assert np.concatenate(bold.lines)[:, 0].max() == pytest.approx(10.0 + 20.0 * points.real.max(), abs=1e-3)
    alone = read_svg((HEAD + body.replace(", DejaVu Sans", "").format("normal")).encode())
    assert len(alone.lines) == 1
    assert alone.notes == ("no font nonesuch here: its text is drawn in the single-line font",)


def test_what_no_font_has_is_said_as_missing() -> None:
    tracing = read_svg(f'{HEAD}<text x="9" y="50">H\u65e5<textPath href="#a">along</textPath></text></svg>'.encode())
    assert tracing.missing == (
        "text along a path is not drawn",
        "letters that no font here has are left out: \u65e5 (U+65E5)",
    )


def test_white_letters_are_seen_on_a_dark_area() -> None:
    pytest.importorskip("shapely")
    ground = '<rect x="10" y="10" width="180" height="80" fill="#114"/>'
    letter = '<text x="50" y="70" font-size="60" fill="white">I</text></svg>'
    (area,) = read_svg((HEAD + ground + letter).encode(), font="single-line", areas=True).areas
    assert area.tone == pytest.approx(0.93, abs=0.02)
    assert area.shape.area < 180.0 * 80.0 - 40.0 * 0.15  # the letter is cut out, as a line that stays white


def test_the_page_shows_the_picture_itself_and_says_at_its_top_what_is_not_drawn(tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="drawing is simulated by mujoco")
    from tangere.cli.main import main

    body = '<script>alert(1)</script><rect x="50" y="20" width="60" height="60" onclick="bad()" fill="red"/>'
    (tmp_path / "logo.svg").write_text(f'{HEAD}{body}<image href="a.png" width="9" height="9"/></svg>')
    words = ["draw", str(tmp_path / "logo.svg"), "--size", "40mm", "--speed", "100mm/s", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    head = page[: page.index('class="tiles"')]
    assert "Not all of the picture is drawn" in head
    assert "Pictures inside the SVG are not drawn; 1 filled shape or letter is drawn by the outline only" in head
    (shown,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    picture = base64.b64decode(shown).decode()
    assert '<rect x="50" y="20" width="60" height="60" fill="red"/>' in picture
    assert "alert" not in picture
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["not_drawn"] == [
        "pictures inside the SVG are not drawn",
        "1 filled shape or letter is drawn by the outline only: --hatch lines fills",
    ]


def test_a_shown_svg_is_the_same_but_for_scripts_and_handlers() -> None:
    plain = f'{HEAD}<a href="#x"><path d="M1 1 L2 2" stroke="red"/></a></svg>'
    assert shown_svg(plain.encode()).decode() == plain
    evil = f"<!DOCTYPE svg>{HEAD}<script href='x'/><script>a<b</script><g ONLOAD='x()'/></svg>"
    assert shown_svg(evil.encode()).decode() == f"{HEAD}<g/></svg>"
