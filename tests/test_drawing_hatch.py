"""Hatching: tones are those of the picture, fills follow SVG's rules, nothing hidden is drawn and nothing twice."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tangere.apps.drawing.picture.areas import Area, area_of
from tangere.apps.drawing.picture.picture import picture_from
from tangere.apps.drawing.picture.svg import read_svg
from tangere.apps.drawing.strokes.hatch import PEN, Hatch, hatched
from tangere.apps.drawing.strokes.make import strokes_of
from tangere.apps.drawing.strokes.strokes import Strokes, along

cv2 = pytest.importorskip("cv2", reason="tones are read by OpenCV")
shapely = pytest.importorskip("shapely", reason="areas are cut by shapely")
spatial = pytest.importorskip("scipy.spatial")

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">'
LOGO = f"""{HEAD}<defs><clipPath id="Half"><rect x="55" y="5" width="20" height="40"/></clipPath></defs>
<path fill="#222" fill-rule="evenodd" d="M25 5 L37 42 5 18 45 18 13 42 Z"/>
<circle cx="75" cy="25" r="20" fill="#808080" clip-path="url(#Half)"/>
<rect x="5" y="50" width="40" height="40" fill="black"/><circle cx="25" cy="70" r="10" fill="white"/>
<rect x="55" y="50" width="20" height="20" fill="black"/><rect x="75" y="50" width="20" height="20" fill="black"/>
<text x="75" y="90" font-size="16" text-anchor="middle">Acme</text></svg>"""
PIXEL = PEN / 11.0  # m of the rendering: OpenCV makes a line of thickness 10 eleven pixels wide


def rendered(strokes: Strokes) -> np.ndarray:
    """(h, w) share of black, with a pen of its width."""
    columns, rows = (round(side / PIXEL) for side in strokes.size)
    image = np.zeros((rows, columns), np.uint8)
    middle = 0.5 * np.array(strokes.size)
    fine = 1 << 4
    for line in strokes.lines:
        points = np.rint(fine * (line * [1.0, -1.0] + middle) / PIXEL).astype(np.int32)
        cv2.polylines(image, [points], False, 255, 10, cv2.LINE_8, 4)
    return image / 255.0


def doubled(strokes: Strokes, near: float = 0.1e-3) -> float:
    """Share of all lines that runs along another line, or another part of the same, within `near` [m]."""
    points, ways, owner, at = [], [], [], []
    for number, line in enumerate(strokes.lines):
        s = along(line)
        middle = np.arange(0.05e-3, s[-1], 0.1e-3)
        place = np.stack([np.interp(middle, s, line[:, axis]) for axis in (0, 1)], axis=1)
        leg = np.clip(np.searchsorted(s, middle, side="right") - 1, 0, len(line) - 2)
        way = np.diff(line, axis=0)[leg]
        points.append(place)
        ways.append(way / np.hypot(*way.T)[:, None])
        owner.append(np.full(len(middle), number))
        at.append(middle)
    p, w, o, a = (np.concatenate(part) for part in (points, ways, owner, at))
    pairs = spatial.cKDTree(p).query_pairs(near, output_type="ndarray")
    i, j = pairs.T
    apart = (o[i] != o[j]) | (np.abs(a[i] - a[j]) > 1e-3)
    parallel = np.abs((w[i] * w[j]).sum(axis=1)) > math.cos(math.radians(10.0))
    return len(np.unique(pairs[apart & parallel])) / len(p)


def test_the_measure_sees_a_line_that_is_drawn_twice() -> None:
    line = np.array([[0.0, 0.0], [0.05, 0.0]])
    assert doubled(Strokes((line, line + [0.0, 1e-3]), (0.2, 0.2))) == 0.0
    assert doubled(Strokes((line, line + [0.0, 0.05e-3]), (0.2, 0.2))) > 0.95


@pytest.mark.parametrize(
    ("angle", "cross", "turned"), [(45.0, False, False), (0.0, False, True), (90.0, False, False), (30.0, True, False)]
)
def test_the_tone_of_a_ramp_is_drawn_within_a_tenth_of_the_grey_scale(angle: float, cross: bool, turned: bool) -> None:
    """Greys averaged over 8 mm, two periods of the lines, as an eye at some distance sees them."""
    ramp = np.tile(np.linspace(1.0, 0.0, 480), (160, 1))
    ramp = ramp.T if turned else ramp
    hatch = Hatch(cross, math.radians(angle))
    strokes = strokes_of(picture_from(ramp), 0.12, style="tones", hatch=hatch, kicks=0)
    ink = rendered(strokes)
    wanted = cv2.resize(1.0 - ramp, ink.shape[::-1], interpolation=cv2.INTER_LINEAR)
    window = round(8e-3 / PIXEL)
    error = np.abs(cv2.blur(ink, (window, window)) - cv2.blur(wanted, (window, window)))
    inner = error[window:-window, window:-window]
    assert inner.max() < 0.10
    assert doubled(strokes) < 0.005


def test_wider_lines_say_which_tones_they_cannot_draw() -> None:
    ramp = picture_from(np.tile(np.linspace(1.0, 0.0, 100), (40, 1)))
    strokes = strokes_of(ramp, 0.06, style="tones", hatch=Hatch(distance=1e-3), kicks=0)
    assert strokes.missing == ("tones darker than 50 % black: the lines are too far apart for them",)


def test_fill_rules_agree_with_angles_added_up() -> None:
    """Random rings that cross themselves and each other; the winding number of a point by the angles it sees."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        rings = [rng.uniform(0.0, 1.0, (rng.integers(3, 9), 2)) for _ in range(rng.integers(1, 4))]
        points = rng.uniform(0.0, 1.0, (300, 2))
        turns = np.zeros(len(points))
        for ring in rings:
            z = np.append(ring, ring[:1], axis=0) @ [1.0, 1j]
            seen = z - (points @ [1.0, 1j])[:, None]
            turns += np.angle(seen[:, 1:] / seen[:, :-1]).sum(axis=1) / (2.0 * np.pi)
        winding = np.rint(turns).astype(int)
        for rule, full in (("nonzero", winding != 0), ("evenodd", winding % 2 != 0)):
            inside = shapely.contains_xy(area_of(rings, rule), points)
            assert (inside == full).all(), rule


@pytest.mark.parametrize("angle", [0.0, 45.0, 100.0])
@pytest.mark.parametrize("distance", [0.7e-3, 2e-3])
def test_lines_fill_an_area_evenly_and_stay_inside(angle: float, distance: float) -> None:
    ring = shapely.Point(0.0, 0.0).buffer(0.03).difference(shapely.box(-0.01, -0.008, 0.012, 0.01))
    lines = hatched([Area(ring, 1.0)], Hatch(angle=math.radians(angle), distance=distance))
    room = ring.buffer(-0.5 * PEN + 1e-5)
    assert all(room.covers(shapely.LineString(line)) for line in lines)
    ink = rendered(Strokes(tuple(lines), (0.07, 0.07)))
    middle = np.zeros(ink.shape, np.uint8)  # away from the borders, along which the pen goes from line to line
    inner = ring.buffer(-1.5e-3)
    for ways, value in (([inner.exterior], 1), (inner.interiors, 0)):
        corners = [np.rint((np.array(way.coords) * [1.0, -1.0] + 0.035) / PIXEL).astype(np.int32) for way in ways]
        cv2.fillPoly(middle, corners, value)
    assert ink[middle > 0].mean() == pytest.approx(PEN / distance, rel=0.05)
    assert len(lines) < 0.3 * 0.06 / distance  # of the rows most go on to the next along the border
    pale = hatched([Area(ring, 0.5)], Hatch(angle=math.radians(angle), distance=distance))
    length = [sum(along(line)[-1] for line in one) for one in (lines, pale)]
    assert length[1] == pytest.approx(0.5 * length[0], rel=0.12)


def test_a_logo_is_filled_where_it_is_seen_and_nowhere_twice() -> None:
    strokes = strokes_of(LOGO.encode(), 0.1, hatch=Hatch(), font="single-line")
    ink = rendered(strokes)

    def dark(x: float, y: float, half: float = 2.5) -> float:
        a, b = (slice(round((v - half) * 1e-3 / PIXEL), round((v + half) * 1e-3 / PIXEL)) for v in (y, x))
        return float(ink[a, b].mean())

    assert dark(25.0, 70.0, 6.0) == 0.0  # the white circle hides the black square
    assert dark(10.0, 55.0) == pytest.approx(0.5, abs=0.1)
    assert dark(25.0, 25.0) == 0.0  # the middle of the star, by the even-odd rule
    assert dark(25.0, 14.0, 1.5) > 0.3
    assert dark(67.0, 25.0) == pytest.approx(0.25, abs=0.1)  # grey: half as many lines
    assert dark(85.0, 25.0) == 0.0  # outside of the clip path
    assert doubled(strokes) < 0.005
    assert strokes.missing == ()


@pytest.mark.parametrize("angle", [0.0, 30.0, 45.0, 90.0])
def test_lines_that_cross_do_not_run_along_each_other(angle: float) -> None:
    """Ways along the border of both sets, and ways of one along lines of the other, whatever grid and border are."""
    hatch = Hatch(cross=True, angle=math.radians(angle))
    for width in np.arange(10e-3, 12e-3, 0.1e-3):
        box = shapely.box(1.3e-3, 0.7e-3, 1.3e-3 + width, 0.7e-3 + 1.3 * width)
        assert doubled(Strokes(tuple(hatched([Area(box, 1.0)], hatch)), (0.1, 0.1))) < 0.001
    assert doubled(strokes_of(LOGO.encode(), 0.1, hatch=hatch, font="single-line")) < 0.005


GREYS = '<stop offset="0" stop-color="black"/><stop offset="100%" stop-color="white"/>'
# each with the tone that SVG gives to (x, y) of a square of 90
GRADIENTS: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "box": ('<linearGradient id="g">STOPS</linearGradient>', lambda x, y: 1.0 - x / 90.0),
    "down": ('<linearGradient id="g" x2="0" y2="1">STOPS</linearGradient>', lambda x, y: 1.0 - y / 90.0),
    "slanted, referring": ('<linearGradient id="s">STOPS</linearGradient><linearGradient id="g" href="#s" '
                           'gradientUnits="userSpaceOnUse" x1="0" y1="0" x2="90" y2="90"/>',
                           lambda x, y: 1.0 - (x + y) / 180.0),
    "turned": ('<linearGradient id="g" gradientUnits="userSpaceOnUse" x1="0" x2="90" '
               'gradientTransform="rotate(90)">STOPS</linearGradient>', lambda x, y: 1.0 - y / 90.0),
    "repeated": ('<linearGradient id="g" x2="0.5" spreadMethod="reflect">STOPS</linearGradient>',
                 lambda x, y: abs(1.0 - x / 45.0)),
    "round": ('<radialGradient id="g" r="60%">STOPS</radialGradient>',
              lambda x, y: max(0.0, 1.0 - math.hypot(x - 45.0, y - 45.0) / 54.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_gradient_has_its_tones(name: str) -> None:
    """Lines get fewer as the gradient gets lighter: within a tenth of the grey scale, no line twice, nothing said."""
    text, tone = GRADIENTS[name]
    square = '<rect width="90" height="90" fill="url(#g)"/>'
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 90">'
    picture = f"{head}<defs>{text.replace('STOPS', GREYS)}</defs>{square}</svg>".encode()
    assert read_svg(picture, areas=True).missing == ()
    strokes = strokes_of(picture, 0.09, hatch=Hatch(distance=PEN))  # lines that touch are black
    ink, errors = rendered(strokes), []
    for x in range(10, 81, 10):
        for y in range(10, 81, 10):
            a, b = (slice(round((v - 5.0) * 1e-3 / PIXEL), round((v + 5.0) * 1e-3 / PIXEL)) for v in (y, x))
            mean = np.mean([tone(x + u, y + v) for u in np.linspace(-5, 5, 21) for v in np.linspace(-5, 5, 21)])
            errors.append(abs(float(ink[a, b].mean()) - mean))
    assert max(errors) < 0.1
    assert doubled(strokes) < 0.005


def test_a_pattern_is_black_and_that_is_said() -> None:
    dots = '<pattern id="p" width="3" height="3"><circle r="1"/></pattern>'
    picture = f'{HEAD}<defs>{dots}</defs><rect width="90" height="90" fill="url(#p)"/></svg>'
    tracing = read_svg(picture.encode(), areas=True)
    assert tracing.areas[0].tone == 1.0
    assert tracing.missing == ("a pattern is hatched in black",)


@pytest.mark.parametrize("areas", [False, True])
def test_a_mask_hides(areas: bool) -> None:
    """White lets through, black painted over it does not; nothing outside is drawn, and nothing has to be said."""
    mask = '<mask id="m"><rect width="50" height="90" fill="white"/><circle cx="25" cy="45" r="10"/></mask>'
    lines = '<path d="M0 45H90" stroke="black" fill="none"/><path d="M60 10H90" stroke="black" fill="none"/>'
    tracing = read_svg(f'{HEAD}{mask}<g mask="url(#m)">{lines}</g></svg>'.encode(), areas=areas)
    ends = sorted(sorted(line[[0, -1], 0].round(1).tolist()) for line in tracing.lines)
    assert ends == [[0.0, 15.0], [35.0, 50.0]]
    assert tracing.missing == ()
    grey = mask.replace("white", "#999")
    tracing = read_svg(f'{HEAD}{grey}<g mask="url(#m)">{lines}</g></svg>'.encode(), areas=areas)
    assert tracing.missing == ("a mask with tones is applied where it lets more than half through",)
    tracing = read_svg(f'{HEAD}{mask}<g mask="url(#nothing)">{lines}</g></svg>'.encode(), areas=areas)
    assert tracing.missing == ("masks are not applied: all of the lines are drawn",)
    assert len(tracing.lines) == 2


def test_without_hatching_it_is_said_that_fills_are_missing() -> None:
    tracing = read_svg(LOGO.encode(), font="single-line")
    assert tracing.areas == ()
    assert tracing.missing == ("5 filled shapes or letters are drawn by the outline only: --hatch lines fills",)
    clipped = [line for line in tracing.lines if line[:, 0].min() > 54.9 and line[:, 1].max() < 45.1]
    assert len(clipped) == 1  # the half of the circle, closed by the clip path
    assert np.ptp(clipped[0], axis=0) == pytest.approx([20.0, 40.0], abs=0.01)


def test_a_wide_line_is_an_area_of_its_own() -> None:
    body = '<path d="M10 50 H90" stroke="black" stroke-width="10" fill="none"/></svg>'
    thin = strokes_of((HEAD + body.replace('"10"', '"0.5"')).encode(), 0.1, hatch=Hatch())
    wide = strokes_of((HEAD + body).encode(), 0.1, hatch=Hatch())
    assert len(thin) == 1
    assert wide.draw_length > 8.0 * thin.draw_length
    assert np.ptp(np.concatenate(wide.lines), axis=0) == pytest.approx([0.08, 0.01], abs=1e-5)


def test_a_filled_area_of_pixels_is_said_to_be_outlined() -> None:
    image = np.ones((400, 400))
    image[100:300, 100:300] = image[50:53, 20:380] = 0.0
    assert strokes_of(picture_from(image), 0.1).missing == ("1 filled area is drawn as outline",)
    image[100:300, 100:300] = 1.0
    assert strokes_of(picture_from(image), 0.1).missing == ()
