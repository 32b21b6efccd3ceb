"""SVG in and out: every path command and shape, transforms and references; nothing fetched, run or expanded.

svgelements, the reader inside vpype, is the second opinion.
"""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from tangere.apps.drawing.files import figures, svg_text, write_svg
from tangere.apps.drawing.picture.svg import read_svg
from tangere.apps.drawing.picture.svg_attributes import clipped, length_of, subpaths
from tangere.apps.drawing.strokes.make import on_grid, strokes_of
from tangere.apps.drawing.strokes.strokes import Strokes, closed, length
from tangere.errors import InvalidValue


def svg(body: str, attributes: str = 'viewBox="0 0 100 100"') -> bytes:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {attributes}>'
    return (head + body + "</svg>").encode()


def distances(points, line) -> np.ndarray:
    """Distance of points from a polyline, by its segments."""
    a, b = line[:-1], line[1:]
    along = b - a
    square = np.maximum((along**2).sum(axis=1), 1e-300)
    share = np.clip(((points[:, None] - a) * along).sum(axis=2) / square, 0.0, 1.0)
    return np.linalg.norm(points[:, None] - a - share[..., None] * along, axis=2).min(axis=1)


PATHS = [
    "M10 10 L90 10 90 90 Z",
    "m10,10 80,0 0,80z m-5,-5 l3 3",
    "M10 80 C 40 10, 65 10, 95 80 S 60 95, 20 90",
    "M10 80 c30-70,55-70,85,0s-35,15-75,10",
    "M10 80 Q 52.5 10, 95 80 T 20 40 t5 5",
    "M10 50 q20-40 40 0t40 0",
    "M20 50 A 25 15 30 0 1 70 60 a10 20 -45 1 0 5 5",
    "M30 50a20,20 0 1140,0a20 20 0 01-40 0z",
    "M10 10h50v20H20V60h1e1v-.5.5",
    "M10.5.5L20-3e0 30,40",
    "M50 50 A 1 1 0 0 0 80 50",
    "M10 10 S 20 30 50 50",
    "M10 10 L20 20 M30 30 L40 40 m5 5 l9 -9",
]


@pytest.mark.parametrize("data", PATHS)
def test_path_commands_agree_with_svgelements(data):
    svgelements = pytest.importorskip("svgelements", reason="svgelements (with vpype) is not installed")
    body = f'<path d="{data}" transform="rotate(10 50 50) scale(.9)"/>'
    ours = read_svg(svg(body, 'viewBox="-100 -100 300 300"')).lines
    path = abs(svgelements.Path(data) * svgelements.Matrix("rotate(10,50,50) scale(.9)"))
    theirs = []
    for part in path.as_subpaths():
        points = []
        for segment in svgelements.Path(part):
            if isinstance(segment, svgelements.Move):
                continue
            points += [segment.point(t) for t in np.linspace(0.0, 1.0, 50)]
        if points:
            theirs.append(np.array([[p.x, p.y] for p in points]) + 100.0)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        # curves are cut within 5e-5 of 300 units; their 50 samples of a curve miss it by more, so one way only
        assert distances(other, mine).max() < 0.02
        assert mine[0] == pytest.approx(other[0], abs=1e-9)
        assert mine[-1] == pytest.approx(other[-1], abs=1e-9)


@pytest.mark.parametrize("data", PATHS)
def test_a_transform_moves_every_point_of_a_path(data):
    matrix = np.array([[0.9, 0.3, 5.0], [-0.2, 0.6, 20.0]])
    frame = 'viewBox="-100 -100 300 300"'
    plain = read_svg(svg(f'<path d="{data}"/>', frame)).lines
    moved = read_svg(svg(f'<path transform="matrix(.9 -.2 .3 .6 5 20)" d="{data}"/>', frame)).lines
    for a, b in zip(plain, moved, strict=True):
        expected = (a - 100.0) @ matrix[:, :2].T + matrix[:, 2] + 100.0
        assert distances(expected, b).max() < 0.03  # both are cut within 5e-5 of 300 units


def test_a_smooth_curve_after_another_kind_starts_straight():
    curves, whole = subpaths("M10 10 S 20 30 50 50 T 80 20 M0 0 Q 1 1 2 0 S 4 1 5 5")
    assert whole
    assert curves[0][3:] == pytest.approx([50 + 50j, 50 + 50j, 60 + 40j, 80 + 20j])
    assert curves[1][3:] == pytest.approx([2 + 0j, 2 + 0j, 4 + 1j, 5 + 5j])


def test_shapes_are_where_they_should_be():
    body = """
    <line x1="10" y1="20" x2="30" y2="40" stroke="black"/>
    <polyline points="1,2 3,4 5,2" fill="none" stroke="#000"/>
    <polygon points="1 2, 3 4 5 2"/>
    <rect x="10" y="10" width="30" height="20"/>
    <rect x="50" y="10" width="30" height="20" rx="5"/>
    <circle cx="50" cy="60" r="20"/>
    <ellipse cx="50" cy="60" rx="30" ry="10"/>"""
    lines = read_svg(svg(body)).lines
    assert lines[0] == pytest.approx(np.array([[10, 20], [30, 40]]))
    assert lines[1] == pytest.approx(np.array([[1, 2], [3, 4], [5, 2]]))
    assert lines[2] == pytest.approx(np.array([[1, 2], [3, 4], [5, 2], [1, 2]]))
    assert lines[3] == pytest.approx(np.array([[10, 10], [40, 10], [40, 30], [10, 30], [10, 10]]))
    assert all(closed(line) for line in lines[2:])
    steps = np.hypot(*np.diff(lines[4], axis=0).T).sum()
    # chords that leave a circle by s are 2/3 s/r shorter: s = 5e-5 of 100, r = 5, on 31 units of arc
    assert steps == pytest.approx(2 * (20 + 10) + 2 * np.pi * 5, abs=0.021)
    assert np.hypot(*(lines[5] - [50, 60]).T) == pytest.approx(20.0, abs=1e-3)
    assert np.hypot(*((lines[6] - [50, 60]) / [30, 10]).T) == pytest.approx(1.0, abs=1e-3)


def test_transforms_nest_and_use_copies():
    body = """
    <defs><g id="mark"><path d="M0 0 L10 0"/></g><symbol id="s" viewBox="0 0 2 2"><path d="M0 0 L2 2"/></symbol></defs>
    <g transform="translate(20 30)"><g transform="rotate(90)"><path d="M0 0 L10 0"/></g></g>
    <use href="#mark" x="5" y="6" transform="scale(2)"/>
    <use xlink:href="#mark" transform="matrix(0 1 -1 0 50 50)"/>
    <use href="#s" x="10" y="10" width="20" height="20"/>
    <svg x="40" y="40" width="50" height="25" viewBox="0 0 10 10"><path d="M0 0 L10 10"/></svg>
    <path d="M1 0 L2 0" transform="skewX(45) translate(0 5)"/>"""
    lines = read_svg(svg(body)).lines
    expected = [
        [[20, 30], [20, 40]],
        [[10, 12], [30, 12]],
        [[50, 50], [50, 60]],
        [[10, 10], [30, 30]],
        [[52.5, 40], [77.5, 65]],
        [[6, 5], [7, 5]],
    ]
    assert len(lines) == len(expected)
    for line, points in zip(lines, expected, strict=True):
        assert line == pytest.approx(np.array(points, dtype=float), abs=1e-9)


def test_units_and_view_boxes():
    whole = read_svg(svg('<path d="M0 0 L96 48"/>', 'width="1in" height="0.5in"'))
    assert (whole.width, whole.height) == pytest.approx((96.0, 48.0))
    moved = read_svg(svg('<path d="M10 10 L20 20"/>', 'width="50mm" height="50mm" viewBox="10 10 10 10"'))
    assert (moved.width, moved.height) == (10.0, 10.0)
    assert moved.lines[0] == pytest.approx(np.array([[0, 0], [10, 10]]))
    percent = read_svg(svg('<rect width="50%" height="25%" x="1cm"/>', 'viewBox="0 0 200 100"'))
    assert percent.lines[0].max(axis=0) == pytest.approx([96 / 2.54 + 100.0, 25.0])
    bare = read_svg(svg('<path d="M7 8 L17 28"/>', ""))
    assert (bare.width, bare.height) == pytest.approx((10.0, 20.0))


def test_what_is_not_shown_is_not_drawn():
    shown = '<path d="M1 1 L2 2"/>'
    hidden = [
        '<g display="none">{}</g>',
        '<g style="display:none">{}</g>',
        '<g visibility="hidden">{}</g>',
        '<g opacity="0">{}</g>',
        '<g fill="none">{}</g>',
        "<defs>{}</defs>",
        "<clipPath>{}</clipPath>",
        '<style>.off{{fill:none;stroke:none}}</style><g class="off">{}</g>',
        '<style>#x {{ display : none }}</style><g id="x">{}</g>',
    ]
    for body in hidden:
        inside = body.format('<path d="M5 5 L9 9"/>')
        lines = read_svg(svg(shown + inside)).lines
        assert len(lines) == 1, body
    assert len(read_svg(svg(shown + '<g fill="none"><path stroke="red" d="M5 5 L9 9"/></g>')).lines) == 2
    paper = read_svg(svg('<rect width="100" height="100" fill="white"/>' + shown))
    assert len(paper.lines) == 1
    assert "paper" in paper.notes[0]


def test_scripts_references_text_and_pictures_are_ignored_and_said():
    body = """
    <script>alert(1)</script><path d="M1 1 L20 20" onclick="evil()"/>
    <image href="http://example.com/a.png" width="5" height="5"/>
    <use href="http://example.com/b.svg#x"/><use href="#nothing"/>
    <style>@import url(http://example.com/c.css);</style><foreignObject>Hello</foreignObject>"""
    tracing = read_svg(svg(body))
    assert len(tracing.lines) == 1
    said = "; ".join(tracing.notes)
    for word in ("scripts were", "references to elsewhere", "to nothing", "text in <foreignObject>", "pictures"):
        assert word in said


def test_entities_are_not_expanded_but_plain_names_are_filled_in():
    bomb = '<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9)
    )
    outside = '<!ENTITY file SYSTEM "file:///etc/passwd">]>'
    data = bomb.encode() + outside.encode() + svg('<title>&j;&file;</title><path id="&j;" d="M1 1 L9 9"/>')
    tracing = read_svg(data)
    assert len(tracing.lines) == 1
    assert "entities" in tracing.notes[0]
    plain = b'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY ns "http://www.w3.org/2000/svg">]>'
    named = plain + b'<svg xmlns="&ns;" viewBox="0 0 9 9"><path d="M1 1 L8 8"/></svg>'
    assert read_svg(named).notes == ()


def test_use_that_uses_itself_ends():
    body = '<g id="a"><path d="M1 1 L2 2"/><use href="#a"/></g>'
    tracing = read_svg(svg(body))
    assert "nested" in "; ".join(tracing.notes)
    twice = (
        "".join(f'<g id="g{k}"><use href="#g{k + 1}"/><use href="#g{k + 1}"/></g>' for k in range(40))
        + '<g id="g40"><path d="M1 1 L2 2"/></g>'
    )
    assert "copies" in "; ".join(read_svg(svg(f"<defs>{twice}</defs>" + '<use href="#g25"/><use href="#g0"/>')).notes)


@pytest.mark.parametrize(
    "data", [b"<svg", b"", b"<html></html>", b"\x00\x01", svg(""), svg("<foreignObject/>"), b"<svg/>"]
)
def test_broken_or_empty_files_are_our_errors(data):
    with pytest.raises(InvalidValue):
        read_svg(data)


@pytest.mark.parametrize(
    ("data", "count"), [("M0 0 L5 5 L", 1), ("M0 0 L5 5 X 7 7", 1), ("L5 5", 0), ("M0 0 A1 1 0 2 1 5 5", 0)]
)
def test_a_path_with_an_error_is_drawn_up_to_it(data, count):
    curves, whole = subpaths(data)
    assert not whole
    assert len(curves) == count


def test_what_leaves_the_view_box_is_cut():
    tracing = read_svg(
        svg('<path fill="none" stroke="red" d="M-50 50 L150 50 M10 -10 L10 50 L-10 50 L-10 60 L20 60"/>')
    )
    assert "outside the view box" in tracing.notes[0]
    assert tracing.lines[0] == pytest.approx(np.array([[0, 50], [100, 50]]))
    assert tracing.lines[1] == pytest.approx(np.array([[10, 0], [10, 50], [0, 50]]))
    assert tracing.lines[2] == pytest.approx(np.array([[0, 60], [20, 60]]))


def test_clipping_agrees_with_points_along_the_line():
    rng = np.random.default_rng(0)
    for _ in range(50):
        line = rng.uniform(-1.0, 2.0, (8, 2))
        inside, _ = clipped([line], 1.0, 1.0)
        share = np.linspace(0.0, 1.0, 400)[:, None]
        points = np.concatenate([a + share * (b - a) for a, b in pairwise(line)])
        kept = ((points >= 0.0) & (points <= 1.0)).all(axis=1)
        drawn = sum(np.hypot(*np.diff(part, axis=0).T).sum() for part in inside)
        steps = np.hypot(*np.diff(points, axis=0).T)
        assert drawn == pytest.approx((steps * kept[1:]).sum(), abs=0.1)
        if kept.any():
            nearest = np.min([distances(points[kept], part) for part in inside if len(part) > 1], axis=0)
            assert nearest.max() < 1e-9


def some_strokes() -> Strokes:
    rng = np.random.default_rng(2)
    return on_grid(Strokes(tuple(rng.uniform(-0.09, 0.09, (k + 2, 2)) for k in range(12)), (0.2, 0.25)))


def test_what_is_written_is_read_back_exactly(tmp_path):
    strokes = some_strokes()
    write_svg(strokes, tmp_path / "out.svg")
    tracing = read_svg(tmp_path / "out.svg")
    assert (tracing.width, tracing.height) == (200.0, 250.0)
    for line, again in zip(strokes.lines, tracing.lines, strict=True):
        assert (again - [100.0, 125.0]) * [1e-3, -1e-3] == pytest.approx(line, abs=1e-9)
    with pytest.raises(InvalidValue, match="cannot write"):
        write_svg(strokes, tmp_path / "nowhere" / "out.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["out.svg"]


def test_vpype_reads_what_is_written(tmp_path):
    vpype = pytest.importorskip("vpype", reason="vpype is not installed")
    strokes = some_strokes()
    write_svg(strokes, tmp_path / "out.svg")
    lines, width, height = vpype.read_svg(str(tmp_path / "out.svg"), quantization=0.1)
    millimetre = 96.0 / 25.4
    assert (width, height) == pytest.approx((200 * millimetre, 250 * millimetre), rel=1e-6)
    assert len(lines) == len(strokes)
    for line, theirs in zip(strokes.lines, lines, strict=True):
        points = np.stack([theirs.real, theirs.imag], axis=1) / millimetre  # vpype rounds its millimetre to 5e-7
        assert points == pytest.approx(1e3 * (line * [1, -1] + [0.1, 0.125]), rel=1e-6)
    assert lines.pen_up_length()[0] / millimetre == pytest.approx(1e3 * strokes.pen_up_length, rel=1e-6)


def test_an_svg_becomes_strokes_of_the_size_asked_for(tmp_path):
    (tmp_path / "a.svg").write_bytes(svg('<circle cx="50" cy="25" r="20"/>', 'viewBox="0 0 100 50"'))
    strokes = strokes_of(tmp_path / "a.svg", 0.2)
    assert strokes.size == pytest.approx((0.2, 0.1))
    assert np.hypot(*strokes.lines[0].T) == pytest.approx(0.04, abs=1e-6)
    assert strokes.draw_length == pytest.approx(2 * np.pi * 0.04, rel=1e-2)


def test_the_figures_in_words_and_a_path_for_every_stroke():
    strokes = some_strokes()
    root = ElementTree.fromstring(svg_text(strokes))
    assert len([element for element in root.iter() if element.tag.endswith("path")]) == len(strokes)
    said = figures(strokes, seconds=83.0)
    assert f"12 strokes, {strokes.draw_length:.2f} m drawn, {strokes.pen_up_length:.2f} m pen up" in said
    assert said.endswith("about 1 min 23 s")
    assert re.search(r'd="M[-\d.]+,', svg_text(strokes))


def test_dashes_are_drawn_as_long_as_they_are_said_to_be():
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100" fill="none" stroke="black">'
    line = '<path d="M10 50 H50 V90" stroke-dasharray="6 4" stroke-dashoffset="3"/>'
    twice = '<g transform="scale(2)"><line x1="5" y1="5" x2="45" y2="5" style="stroke-dasharray:5"/></g>'
    whole = '<line x1="10" y1="20" x2="90" y2="20" stroke-dasharray="0.01"/>'
    tracing = read_svg((head + line + twice + whole + "</svg>").encode())
    lengths = [round(length(dash), 6) for dash in tracing.lines]
    # 80 units from the third on: 3 left of the first dash, then 6 of every 10, 3 of the last; around the corner too
    assert lengths[:9] == [3.0, *[6.0] * 7, 3.0]
    assert any(len(dash) == 3 for dash in tracing.lines[:9])
    assert lengths[9:] == [10.0] * 4 + [80.0]
    assert tracing.notes == ("dashes too fine to draw became whole lines",)


def test_a_picture_is_stretched_or_cut_to_its_size_where_it_says_so():
    body = 'viewBox="0 0 100 100" {}><rect x="10" y="10" width="80" height="80" fill="none" stroke="black"/></svg>'
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="300" height="100" '
    plain = read_svg((head + body.format("")).encode())
    assert (plain.width, plain.height) == (100.0, 100.0)
    stretched = read_svg((head + body.format('preserveAspectRatio="none"')).encode())
    assert (stretched.width, stretched.height) == (300.0, 100.0)
    assert np.ptp(stretched.lines[0], axis=0) == pytest.approx([240.0, 80.0])
    cut = read_svg((head + body.format('preserveAspectRatio="xMidYMid slice"')).encode())
    assert [np.ptp(line, axis=0).tolist() for line in cut.lines] == [pytest.approx([0.0, 100.0])] * 2


def test_what_is_not_applied_is_said():
    text = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10" stroke="black"><g clip-path="url(#a)">'
        '<line x1="1" y1="1" x2="9" y2="1" marker-end="url(#b)"/></g>'
        '<line x1="1" y1="3" x2="9" y2="3" mask="none"/></svg>'
    )
    notes = " ".join(read_svg(text.encode()).notes)
    assert "clip paths are not applied" in notes
    assert "markers (arrow heads) are not drawn" in notes
    assert "masks" not in notes


def test_a_length_has_a_unit_that_is_known_and_a_finite_number():
    assert length_of("2.54cm", None) == pytest.approx(96.0)
    assert length_of(" 50% ", 30.0) == 15.0
    for text, whole in (("50%", None), ("3 parsec", 1.0), ("", 1.0), (None, 1.0), ("1e999", 1.0), ("-1e999%", 1.0)):
        assert length_of(text, whole) is None
