"""Tracing: one centre line per line, nothing twice, crossings passed straight, all of it within stated distances.

The truth is known here: pictures are rendered from lines by our own distance renderer, or by OpenCV, and what is
traced is compared with those lines.
"""

import numpy as np
import pytest

cv2 = pytest.importorskip("cv2", reason="OpenCV (extra `draw`) is not installed")
spatial = pytest.importorskip("scipy.spatial")

from drawing_makers import rendered, snail, still_life  # noqa: E402
from drawing_truth import check_guarantee, covered, dense, drawing, farthest, random_lines, skeleton_of  # noqa: E402

from tangere.apps.drawing.draw_picture import SHIPPED, find_picture, shipped_pictures  # noqa: E402
from tangere.apps.drawing.picture.crossings import CORNER, END, _straight_end  # noqa: E402
from tangere.apps.drawing.picture.picture import picture_from, read_picture  # noqa: E402
from tangere.apps.drawing.picture.skeleton import pixel_graph, thinned  # noqa: E402
from tangere.apps.drawing.picture.tracing import fitted, trace  # noqa: E402
from tangere.apps.drawing.strokes.make import strokes_of  # noqa: E402
from tangere.apps.drawing.strokes.strokes import closed, length  # noqa: E402
from tangere.errors import InvalidValue, UnknownName  # noqa: E402


def blobs(seed: int, side: int = 160) -> np.ndarray:
    """A random mask of shapes of all widths that stays clear of the border."""
    rng = np.random.default_rng(seed)
    soft = cv2.GaussianBlur(rng.random((side, side)), (0, 0), 1.0 + 0.4 * (seed % 10))
    mask = soft > np.quantile(soft, rng.uniform(0.5, 0.85))
    mask[:2] = mask[-2:] = mask[:, :2] = mask[:, -2:] = False
    return mask


def pieces(mask: np.ndarray, connectivity: int) -> int:
    return int(cv2.connectedComponents(np.pad(mask, 1).astype(np.uint8), connectivity=connectivity)[0])


@pytest.mark.parametrize("seed", range(10))
def test_thinning_keeps_pieces_and_holes_and_stays_inside(seed):
    mask = blobs(seed)
    skeleton = thinned(mask)
    assert not (skeleton & ~mask).any()
    assert pieces(skeleton, 8) == pieces(mask, 8)
    assert pieces(~skeleton, 4) == pieces(~mask, 4)


def test_thinning_leaves_thin_lines_alone_and_ends_where_lines_end():
    skeleton = thinned(np.pad(np.ones((1, 50), dtype=bool), 5))
    assert skeleton.sum() == 50
    wide = thinned(np.pad(np.ones((9, 80), dtype=bool), 5))
    columns = np.nonzero(wide.any(axis=0))[0]
    assert columns.min() <= 5 + 5
    assert columns.max() >= 84 - 5


@pytest.mark.parametrize("seed", range(10))
def test_every_pixel_belongs_to_one_chain_or_one_junction(seed):
    skeleton = thinned(blobs(seed))
    graph = pixel_graph(skeleton, np.ones(skeleton.shape))
    used = [p for chain in graph.chains for p in chain.pixels] + [p for own in graph.pixels_of.values() for p in own]
    assert sorted(used) == list(range(int(skeleton.sum())))
    for chain in graph.chains:
        steps = np.abs(np.diff(graph.points[chain.pixels], axis=0))
        assert steps.size == 0 or steps.max() == 1.0


def circle(x: float, y: float, r: float, n: int = 400) -> np.ndarray:
    t = np.linspace(0.0, 2.0 * np.pi, n + 1)
    line = np.stack([x + r * np.cos(t), y + r * np.sin(t)], axis=1)
    line[-1] = line[0]
    return line


@pytest.mark.parametrize("pen", [0.3e-3, 0.8e-3, 2e-3, 5e-3])
def test_a_circle_is_one_closed_line_in_the_middle_of_its_ink(pen):
    truth = drawing([circle(0.013, -0.007, 0.07)])
    result = strokes_of(picture_from(rendered(truth, pen=pen)), 0.2)
    assert len(result) == 1
    assert closed(result.lines[0])
    # half a pixel (0.1 mm) of thinning, 0.1 mm of simplification
    assert np.abs(np.hypot(*(dense(result.lines) - [0.013, -0.007]).T) - 0.07).max() < 0.25e-3
    assert result.draw_length == pytest.approx(2.0 * np.pi * 0.07, rel=0.01)


@pytest.mark.parametrize("angle", [0.0, 0.3, 0.8, 1.2])
@pytest.mark.parametrize("pen", [0.4e-3, 1.2e-3, 3e-3])
def test_two_lines_that_cross_are_two_strokes(angle, pen):
    first = np.array([[-0.08, 0.0], [0.08, 0.0]])
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    second = np.array([[0.0, -0.07], [0.01, 0.07]])
    truth = drawing([first @ turn, second @ turn])
    result = strokes_of(picture_from(rendered(truth, pen=pen)), 0.2)
    assert len(result) == 2
    assert farthest(dense(result.lines), truth.lines) < 0.3e-3
    # thinning and the straight ends leave out or add at most half a width at the four ends
    assert farthest(dense(truth.lines), result.lines) < 0.3e-3 + 0.6 * pen


def test_a_branch_ends_at_the_line_it_meets():
    truth = drawing([[[-0.08, 0.0], [0.08, 0.0]], [[0.0, 0.0], [0.0, 0.07]]])
    result = strokes_of(picture_from(rendered(truth, pen=1e-3)), 0.2)
    assert sorted(round(length(line), 2) for line in result.lines) == [0.07, 0.16]


def test_a_staircase_is_a_chain_without_junctions():
    stairs = np.zeros((12, 12), dtype=bool)
    for k in range(1, 10):
        stairs[k, k] = stairs[k, k + 1] = True
    stairs[10, 10] = True
    graph = pixel_graph(stairs, np.ones(stairs.shape))
    assert not graph.middles
    assert [len(chain.pixels) for chain in graph.chains] == [19]


@pytest.mark.parametrize(("degrees", "pen"), [(32.0, 0.6e-3), (40.0, 0.8e-3), (40.0, 1.6e-3), (55.0, 3e-3)])
def test_lines_that_cross_at_a_small_angle_go_straight_on(degrees, pen):
    turn = np.deg2rad(degrees)
    arm = 0.08 * np.array([np.cos(turn), np.sin(turn)])
    truth = drawing([[[-0.08, 0.0], [0.08, 0.0]], [-arm, arm]])
    result = strokes_of(picture_from(rendered(truth, pen=pen)), 0.2)
    assert len(result) == 2
    assert farthest(dense(result.lines), truth.lines) < 0.3e-3
    ends = sorted(tuple(np.round(np.abs(line[0] + line[-1]), 2)) for line in result.lines)
    assert ends == [(0.0, 0.0), (0.0, 0.0)]  # each line has its ends on opposite sides of the crossing


@pytest.mark.parametrize("degrees", [0.0, 8.0, 20.0, 45.0])
def test_the_blunt_ends_and_rough_borders_of_a_bar_make_no_branches(degrees):
    rng = np.random.default_rng(0)
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    along = np.concatenate([np.linspace(-300, 300, 60), np.linspace(300, -300, 60)])
    across = np.concatenate([np.full(60, -12.0), np.full(60, 12.0)]) + rng.uniform(-2.5, 2.5, 120)
    outline = np.stack([500 + c * along - s * across, 500 + s * along + c * across], axis=1)
    image = np.full((1000, 1000), 255, dtype=np.uint8)
    cv2.fillPoly(image, [np.round(outline).astype(np.int32)], 0)
    lines = trace(picture_from(image), "lines").lines
    assert len(lines) == 1
    off = np.abs((lines[0] - 500.5) @ [-s, c])
    assert off.max() < 6.0  # a branch would end in a corner or at the border, 12 pixels from the axis


@pytest.mark.parametrize(("width", "arm"), [(3, 2.0), (6, 1.3), (6, 2.0), (12, 1.3), (24, 1.3)])
def test_the_bar_of_a_t_stays(width, arm):
    # the bar reaches `arm` widths from the middle of the stem to either side, less than a width beyond its border
    image = np.full((1000, 1000), 255, dtype=np.uint8)
    half, reach = width // 2, round(arm * width)
    image[300:700, 500 - half : 500 + width - half] = 0
    image[420 : 420 + width, 500 - reach : 500 + reach] = 0
    result = strokes_of(picture_from(image), 0.2)
    ends = (np.array([[500 - reach, 420 + half], [500 + reach, 420 + half]]) - 500) * [0.2e-3, -0.2e-3]
    # a blunt end is thinned by half a width, and by a pixel or two of rounding
    assert farthest(ends, result.lines) < (0.6 * width + 2.0) * 0.2e-3


@pytest.mark.parametrize("seed", [0, 3, 4])
@pytest.mark.parametrize("pen", [3e-3, 4.5e-3])
def test_guarantee_where_thick_lines_run_into_each_other(seed, pen):
    image = rendered(random_lines(seed), pen=pen, pixel=0.2e-3)
    tracing = trace(picture_from(image), "lines")
    result = strokes_of(tracing, 0.2)
    check_guarantee(tracing, result)
    # nothing is drawn on bare paper: no bridge leaves the ink by more than a pen's line
    ink = cv2.distanceTransform((image > 127).astype(np.uint8), cv2.DIST_L2, 5) * 0.2e-3
    columns, rows = np.clip((dense(result.lines) / 0.2e-3 * [1, -1] + 500).astype(int), 0, 999).T
    assert ink[rows, columns].max() < 0.6e-3


@pytest.mark.parametrize(("rays", "pen"), [(8, 1.6e-3), (24, 2.8e-3), (31, 2e-3)])
def test_guarantee_of_a_star_by_another_thinning(rays, pen):
    angles = 0.1 + 2.0 * np.pi * np.arange(rays) / rays
    star = drawing([0.09 * np.array([[0.0, 0.0], [np.cos(a), np.sin(a)]]) for a in angles])
    image = rendered(star, pen=pen, pixel=0.4e-3)
    share, ratio = covered(skeleton_of(image < 128), strokes_of(picture_from(image), 0.2))
    assert share >= 0.97
    assert ratio <= 1.1


def test_a_slit_between_two_lines_is_no_row_of_crossings():
    # there and back at a distance of a line's width and less: the slit between both is broken many times
    t = np.linspace(0.0, 2.0 * np.pi, 2000)
    curve = drawing([0.086 * np.stack([np.sin(5.0 * t), np.sin(4.0 * t + 0.3)], axis=1)])
    tracing = trace(picture_from(rendered(curve, pen=1.4e-3, pixel=0.2e-3)))
    check_guarantee(tracing, strokes_of(tracing, 0.2))


def test_dots_are_drawn():
    mask = np.full((1000, 1000), 255, dtype=np.uint8)
    for x in (100, 500, 900):
        cv2.circle(mask, (x, 300), 3, 0, -1)
    cv2.line(mask, (100, 700), (900, 700), 0, 5)
    result = strokes_of(picture_from(mask), 0.2)
    assert len(result) == 4
    assert min(length(line) for line in result.lines) >= 0.3e-3 - 1e-6
    assert farthest((np.array([[100.5, 300.5], [500.5, 300.5]]) - 500) * [0.2e-3, -0.2e-3], result.lines) < 0.3e-3


def test_a_filled_area_gives_its_outline_once_and_a_thick_line_its_middle():
    image = np.full((1000, 1000), 255, dtype=np.uint8)
    cv2.circle(image, (300, 300), 150, 0, -1, cv2.LINE_AA)
    cv2.line(image, (100, 800), (900, 750), 0, 20, cv2.LINE_AA)
    tracing = trace(picture_from(image))
    assert "1 filled area is drawn as outline" in tracing.notes
    result = strokes_of(tracing, 0.2)
    assert len(result) == 2
    ring = next(line for line in result.lines if closed(line))
    radius = np.hypot(*(ring - (np.array([300.5, 300.5]) - 500) * [0.2e-3, -0.2e-3]).T)
    assert 0.97 * 0.03 < radius.min()
    assert radius.max() < 0.0302
    assert length(next(line for line in result.lines if not closed(line))) == pytest.approx(0.16, rel=0.04)


@pytest.mark.parametrize("seed", range(6))
def test_guarantee_of_the_plan_on_random_line_drawings(seed):
    truth = random_lines(seed)
    tracing = trace(picture_from(rendered(truth, pen=[0.5e-3, 1e-3][seed % 2])))
    assert tracing.style == "lines"
    result = strokes_of(tracing, 0.2)
    check_guarantee(tracing, result)
    # and against the lines that were rendered: nothing is missing, nothing is far off
    covered = spatial.cKDTree(dense(result.lines)).query(dense(truth.lines))[0]
    assert (covered < 1e-3).mean() > 0.97
    assert farthest(dense(result.lines), truth.lines) < 1e-3
    assert result.draw_length < 1.1 * truth.draw_length


@pytest.mark.parametrize("name", ["snail.png", "still_life.png"])
def test_guarantee_of_the_plan_on_the_shipped_pictures(name):
    tracing = trace(read_picture(find_picture(name)))
    assert tracing.style == {"snail.png": "lines", "still_life.png": "edges"}[name]
    check_guarantee(tracing, strokes_of(tracing, 0.2))


def test_the_same_picture_as_lines_and_as_pixels_gives_the_same_drawing():
    drawn, traced = strokes_of(find_picture("snail.svg"), 0.2), strokes_of(find_picture("snail.png"), 0.2)
    # a line of 0.9 mm ends half its width early; crossings at a small angle are thinned into one line for 1 mm
    assert farthest(dense(traced.lines), drawn.lines) < 0.6e-3
    assert farthest(dense(drawn.lines), traced.lines) < 1.0e-3
    assert traced.draw_length == pytest.approx(drawn.draw_length, rel=0.02)


def test_shipped_pictures_are_what_their_makers_make():
    assert shipped_pictures() == ("snail.png", "snail.svg", "still_life.png")
    assert all((SHIPPED / name).stat().st_size < 60_000 for name in shipped_pictures())
    shaded = cv2.imread(str(find_picture("still_life.png")), cv2.IMREAD_GRAYSCALE)
    lines = cv2.imread(str(find_picture("snail.png")), cv2.IMREAD_GRAYSCALE)
    # one step of the grey levels where another numpy rounds otherwise
    assert np.abs(still_life().astype(int) - shaded).max() <= 3
    assert np.abs(rendered(snail(), pixel=0.2e-3, pen=0.9e-3).astype(int) - lines).max() <= 1
    with pytest.raises(UnknownName, match=r"snail\.png"):
        find_picture("mona_lisa.png")


@pytest.mark.parametrize("away", [-0.05, 0.05])
def test_an_end_is_laid_straight_where_it_lies_within_a_corner_of_its_width(away):
    """away [px]: how much farther than CORNER widths and a pixel the end lies from where it would be straight."""
    wide, long = 8.0, 12.0
    cut = round(END * wide)
    turn = 2.0 * np.arcsin(0.5 * (CORNER * wide + 1.0 + away) / long)
    bent = np.linspace(0.0, long, cut + 1)[1:, None] * [np.cos(turn), np.sin(turn)]
    line = np.concatenate([np.stack((np.arange(-30.0, 1.0), np.zeros(31)), axis=1), bent])
    laid = _straight_end(line, wide)
    if away > 0.0:
        assert laid is line
    else:
        assert np.abs(laid[:, 1]).max() < 1e-12
        assert laid[-1, 0] == pytest.approx(long)  # as long as it was


def test_a_tracing_is_fitted_with_its_aspect_y_up():
    image = np.full((300, 600), 255, dtype=np.uint8)
    cv2.line(image, (60, 30), (540, 30), 0, 3)
    tracing = trace(picture_from(image))
    strokes = fitted(tracing, 0.3, 0.3, margin=0.02)
    assert strokes.size == (0.3, 0.3)
    low, high = strokes.bounds
    assert high[1] == pytest.approx((150 - 30.5) * 0.26 / 600, abs=1e-3)
    assert high[0] - low[0] == pytest.approx(480 * 0.26 / 600, abs=1.5e-3)
    portrait = strokes_of(picture_from(image.T), 0.2)
    assert portrait.size == (0.1, 0.2)
    upright = fitted(trace(picture_from(image.T)), 0.3, 0.3, margin=0.02)  # its height is what fills the paper
    assert np.ptp(upright.bounds, axis=0)[1] == pytest.approx(480 * 0.26 / 600, abs=1.5e-3)
    with pytest.raises(InvalidValue, match="margin"):
        fitted(tracing, 0.1, 0.1, margin=0.05)
    for size in (0.0, -1.0, (0.1, 0.1, 0.1), float("nan")):
        with pytest.raises(InvalidValue, match="size"):
            strokes_of(tracing, size)


def test_hatching_gives_no_line_that_goes_back_on_itself() -> None:
    """A fan of thin lines that run into each other: its pinholes are no strokes there and back, nothing is twice."""
    image = np.full((600, 600), 255, np.uint8)
    for k in range(25):
        cv2.line(image, (0, 24 * k), (24 * k, 599), 0, 2)
    strokes = strokes_of(picture_from(image), style="lines")
    for line in strokes.lines:
        if len(line) > 2:
            z = np.diff(line, axis=0) @ np.array([1.0, 1j])
            assert np.abs(np.angle(z[1:] / z[:-1])).max() < np.deg2rad(179.0)
    tracing = trace(picture_from(image), "lines")
    on = 0.2 / tracing.width
    assert tracing.centre_line is not None
    # a skeleton of steps and diagonals is 1 to 1.41 pixels long per pixel, 1.2 on average over all directions
    assert strokes.draw_length < 1.3 * on * np.count_nonzero(tracing.centre_line)


@pytest.mark.parametrize("wide", [8, 14])
def test_a_dot_is_drawn_as_long_as_it_is_wide(wide):
    pixels = np.full((1000, 1000, 3), 255, np.uint8)
    cv2.line(pixels, (100, 100), (900, 100), (0, 0, 0), wide)
    cv2.circle(pixels, (500, 500), wide // 2, (0, 0, 0), -1, cv2.LINE_AA)
    dot = min(trace(picture_from(pixels), "lines").lines, key=length)
    np.testing.assert_allclose(dot.mean(axis=0), (500.5, 500.5), atol=0.5)
    assert length(dot) == pytest.approx(wide, abs=1.5)
