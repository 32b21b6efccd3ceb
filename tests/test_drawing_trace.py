"""Tracing: one centre line per line, nothing twice, crossings passed straight, all of it within stated distances.

The truth is known here: pictures are rendered from lines by our own distance renderer, or by OpenCV, and what is
traced is compared with those lines.
"""

from itertools import pairwise

import numpy as np
import pytest

from tangere.errors import InvalidValue, UnknownName
from tangere.planning.drawing import (
    Strokes,
    fitted,
    merged,
    picture_from,
    rendered,
    simplified,
    smoothed,
    strokes_of,
    trace,
)
from tangere.planning.drawing.demo_pictures import FOLDER, shipped_picture, shipped_pictures, snail, still_life
from tangere.planning.drawing.edges import otsu_of
from tangere.planning.drawing.graph import pixel_graph
from tangere.planning.drawing.picture import read_picture
from tangere.planning.drawing.skeleton import thinned
from tangere.planning.drawing.strokes import closed, length
from tangere.planning.drawing.trace import placing

cv2 = pytest.importorskip("cv2", reason="OpenCV (extra `draw`) is not installed")
spatial = pytest.importorskip("scipy.spatial")


def dense(lines, step: float = 1e-4) -> np.ndarray:
    """Points at most `step` apart along polylines."""
    parts = []
    for line in lines:
        for a, b in pairwise(line):
            count = max(1, int(np.ceil(np.hypot(*(b - a)) / step)))
            parts.append(a + (b - a) * (np.arange(count + 1) / count)[:, None])
    return np.concatenate(parts)


def farthest(points, lines, step: float = 1e-4) -> float:
    """How far the farthest of the points is from the lines."""
    return float(spatial.cKDTree(dense(lines, step)).query(points)[0].max())


def chain_length(mask: np.ndarray) -> float:
    """Length of one-pixel lines: 1 for neighbours by a side, sqrt 2 by a corner that no side replaces."""
    m = np.pad(mask, 1)
    sides = (m[:, 1:] & m[:, :-1]).sum() + (m[1:] & m[:-1]).sum()
    down = m[1:, 1:] & m[:-1, :-1] & ~m[1:, :-1] & ~m[:-1, 1:]
    up = m[1:, :-1] & m[:-1, 1:] & ~m[1:, 1:] & ~m[:-1, :-1]
    return float(sides + np.sqrt(2.0) * (down.sum() + up.sum()))


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


def drawing(lines, size=(0.2, 0.2)) -> Strokes:
    return Strokes(tuple(np.asarray(line, dtype=float) for line in lines), size)


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


def random_lines(seed: int) -> Strokes:
    """Curves that cross each other and themselves."""
    rng = np.random.default_rng(seed)
    lines = []
    t = np.linspace(0.0, 1.0, 300)[:, None]
    for _ in range(rng.integers(3, 12)):
        waves = sum(
            rng.normal(size=(1, 2)) / k * np.sin(np.pi * k * t + rng.uniform(0.0, 6.0, (1, 2))) for k in (1, 2, 3, 5)
        )
        line = waves - waves.mean(axis=0)
        line *= rng.uniform(0.02, 0.07) / np.abs(line).max()
        lines.append(line + rng.uniform(-0.025, 0.025, 2))
    return drawing(lines)


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


def check_guarantee(tracing, result) -> None:
    """97 % of the centre-line pixels within 1 mm at 200 mm, drawn length at most 1.1 of the centre line's."""
    scale, middle = placing(tracing, *result.size)
    rows, columns = np.nonzero(tracing.centre_line)
    pixels = (np.stack([columns + 0.5, rows + 0.5], axis=1) - middle) * [scale, -scale]
    distance = spatial.cKDTree(dense(result.lines)).query(pixels)[0]
    assert (distance < 1e-3).mean() >= 0.97
    assert result.draw_length <= 1.1 * chain_length(tracing.centre_line) * scale


@pytest.mark.parametrize("name", ["snail.png", "still_life.png"])
def test_guarantee_of_the_plan_on_the_shipped_pictures(name):
    tracing = trace(read_picture(shipped_picture(name)))
    assert tracing.style == {"snail.png": "lines", "still_life.png": "edges"}[name]
    check_guarantee(tracing, strokes_of(tracing, 0.2))


def test_the_same_picture_as_lines_and_as_pixels_gives_the_same_drawing():
    drawn, traced = strokes_of(shipped_picture("snail.svg"), 0.2), strokes_of(shipped_picture("snail.png"), 0.2)
    # a line of 0.9 mm ends half its width early; crossings at a small angle are thinned into one line for 1 mm
    assert farthest(dense(traced.lines), drawn.lines) < 0.6e-3
    assert farthest(dense(drawn.lines), traced.lines) < 1.0e-3
    assert traced.draw_length == pytest.approx(drawn.draw_length, rel=0.02)


def test_shipped_pictures_are_what_their_makers_make():
    assert shipped_pictures() == ("snail.png", "snail.svg", "still_life.png")
    assert all((FOLDER / name).stat().st_size < 60_000 for name in shipped_pictures())
    shaded = cv2.imread(str(shipped_picture("still_life.png")), cv2.IMREAD_GRAYSCALE)
    lines = cv2.imread(str(shipped_picture("snail.png")), cv2.IMREAD_GRAYSCALE)
    # one step of the grey levels where another numpy rounds otherwise
    assert np.abs(still_life().astype(int) - shaded).max() <= 3
    assert np.abs(rendered(snail(), pixel=0.2e-3, pen=0.9e-3).astype(int) - lines).max() <= 1
    with pytest.raises(UnknownName, match=r"snail\.png"):
        shipped_picture("mona_lisa.png")


@pytest.mark.parametrize("ink", [(0, 0, 0), (250, 220, 0), (0, 160, 0)])
def test_light_on_dark_and_coloured_lines_are_lines(ink):
    for paper in ((255, 255, 255), (20, 30, 60), (200, 0, 0)):
        image = np.zeros((500, 500, 3), dtype=np.uint8)
        image[:] = paper
        if np.abs(np.subtract(paper, ink)).max() < 60:
            continue
        cv2.circle(image, (250, 250), 180, ink, 5, cv2.LINE_AA)
        tracing = trace(picture_from(image))
        assert tracing.style == "lines", (paper, ink)
        assert len(tracing.lines) == 1


def test_a_photographed_drawing_in_uneven_light_is_a_line_drawing():
    rng = np.random.default_rng(0)
    truth = random_lines(5)
    rows, columns = np.mgrid[0:1000, 0:1000]
    light = 0.95 - 0.55 * (0.6 * columns + 0.4 * rows) / 1000.0
    image = (60.0 + 195.0 * rendered(truth, pen=1e-3) / 255.0) * light + 4.0 * rng.normal(size=rows.shape)
    tracing = trace(picture_from(np.clip(image, 0.0, 255.0).astype(np.uint8)))
    assert tracing.style == "lines"
    result = strokes_of(tracing, 0.2)
    covered = spatial.cKDTree(dense(result.lines)).query(dense(truth.lines))[0]
    assert (covered < 1e-3).mean() > 0.97
    assert result.draw_length < 1.1 * truth.draw_length


def test_edges_of_a_shaded_disc_are_one_ring():
    rows, columns = np.mgrid[0:600, 0:600]
    r = np.hypot(rows - 300.0, columns - 300.0)
    image = 0.75 - 0.0003 * columns - 0.4 * np.clip((200.0 - r) / 3.0 + 0.5, 0.0, 1.0)
    noisy = np.clip(image + 0.02 * np.random.default_rng(0).normal(size=image.shape), 0.0, 1.0)
    tracing = trace(picture_from(noisy))
    assert tracing.style == "edges"
    assert len(tracing.lines) == 1
    radius = np.hypot(*(tracing.lines[0] - 300.5).T)
    assert np.abs(radius - 200.0).max() < 3.0
    assert any("thresholds" in note for note in tracing.notes)


def test_edge_thresholds_can_be_set():
    picture = read_picture(shipped_picture("still_life.png"))
    fine, coarse = trace(picture, "edges", thresholds=(1.0, 3.0)), trace(picture, "edges", thresholds=(8.0, 20.0))
    assert fine.centre_line.sum() > 1.3 * coarse.centre_line.sum()
    with pytest.raises(InvalidValue, match="thresholds"):
        trace(picture, "edges", thresholds=(9.0, 3.0))
    with pytest.raises(UnknownName, match="auto, lines, edges"):
        trace(picture, "sketch")


def test_otsu_splits_where_a_slow_search_does():
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = np.concatenate([rng.normal(60, 15, 500), rng.normal(rng.uniform(120, 200), 20, 200)])
        counts = np.bincount(np.clip(values, 0, 255).astype(int), minlength=256)
        levels = np.repeat(np.arange(256), counts)
        within = [
            (levels <= t).sum() * levels[levels <= t].var() + (levels > t).sum() * levels[levels > t].var()
            for t in range(levels.min(), levels.max())
        ]
        found = otsu_of(counts)
        assert within[int(found) - levels.min()] <= min(within) * (1.0 + 1e-9)


def zigzags(seed: int) -> Strokes:
    rng = np.random.default_rng(seed)
    lines = [np.cumsum(rng.normal(size=(rng.integers(2, 250), 2)) * 2e-4, axis=0) for _ in range(8)]
    ring = lines[0] - lines[0].mean(axis=0)
    lines.append(np.concatenate([ring, ring[:1]]))
    return drawing(lines)


@pytest.mark.parametrize("tolerance", [5e-5, 3e-4, 2e-3])
def test_simplification_stays_within_its_tolerance_both_ways(tolerance):
    strokes = zigzags(0)
    fewer = simplified(strokes, tolerance)
    assert fewer.points < strokes.points
    for before, after in zip(strokes.lines, fewer.lines, strict=True):
        assert (before[0] == after[0]).all()
        assert (before[-1] == after[-1]).all()
        step = 1e-6 * max(1.0, length(before) / 0.05)
        assert farthest(before, [after], step) <= tolerance + step
        assert farthest(dense([after], 10 * step), [before], step) <= tolerance + step


def test_simplification_keeps_what_a_slow_one_keeps():
    def slow(line, tolerance):
        a, b = line[0], line[-1]
        along = b - a
        square = along @ along
        share = np.clip((line[1:-1] - a) @ along / square, 0, 1) if square > 0 else np.zeros(len(line) - 2)
        distance = np.hypot(*(line[1:-1] - a - share[:, None] * along).T)
        if len(line) < 3 or distance.max() <= tolerance:
            return [a, b]
        k = int(np.argmax(distance)) + 1
        return slow(line[: k + 1], tolerance)[:-1] + slow(line[k:], tolerance)

    strokes = zigzags(3)
    for before, after in zip(strokes.lines, simplified(strokes, 3e-4).lines, strict=True):
        assert np.array_equal(np.array(slow(before, 3e-4)), after)


def test_smoothing_moves_no_point_farther_than_its_tolerance_and_shortens_staircases():
    strokes = zigzags(1)
    soft = smoothed(strokes, 1e-4)
    for before, after in zip(strokes.lines, soft.lines, strict=True):
        assert np.hypot(*(after - before).T).max() <= 1e-4 * (1.0 + 1e-12)
        assert closed(before) == closed(after)
    stairs = np.stack([np.repeat(np.arange(200), 2)[1:], np.repeat(np.arange(200), 2)[:-1]], axis=1) * 2e-4
    line = drawing([stairs - stairs.mean(axis=0)])
    assert smoothed(line, 2e-4).draw_length < 1.01 * np.sqrt(2.0) * 199 * 2e-4
    assert (smoothed(line, 2e-4).lines[0][[0, -1]] == line.lines[0][[0, -1]]).all()


def test_merging_joins_near_ends_straightest_first_and_drops_doubles():
    a, b, c = [[-0.05, 0.0], [0.0, 0.0]], [[0.0001, 0.0], [0.05, 0.001]], [[0.0, 0.0002], [-0.04, 0.03]]
    result = merged(drawing([a, b, c, a[::-1], a]), 0.5e-3)
    assert sorted(len(line) for line in result.lines) == [2, 4]
    assert result.draw_length == pytest.approx(0.05 + np.hypot(0.0499, 0.001) + 1e-4 + np.hypot(0.04, 0.0298), rel=1e-9)
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * 0.05
    sides = [square[[k, (k + 1) % 4]] for k in range(4)]
    whole = merged(drawing(sides), 0.5e-3)
    assert len(whole) == 1
    assert closed(whole.lines[0])
    assert whole.draw_length == pytest.approx(0.2)


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
    with pytest.raises(InvalidValue, match="margin"):
        fitted(tracing, 0.1, 0.1, margin=0.05)
    for size in (0.0, -1.0, (0.1, 0.1, 0.1), float("nan")):
        with pytest.raises(InvalidValue, match="size"):
            strokes_of(tracing, size)


def test_strokes_helpers():
    strokes = drawing([[[0.0, 0.0], [0.03, 0.04]], [[0.03, 0.0], [0.0, 0.0]]])
    assert strokes.draw_length == pytest.approx(0.08)
    assert strokes.pen_up_length == pytest.approx(0.04)
    back = strokes.reversed()
    assert (back.draw_length, back.pen_up_length) == pytest.approx((0.08, 0.04))
    assert (back.lines[0][0] == [0.0, 0.0]).all()
    turned = strokes.transformed(scale=2.0, angle=np.pi / 2, offset=(0.01, 0.0))
    assert turned.lines[0][1] == pytest.approx([0.01 - 0.08, 0.06])
    full = strokes.fitted(0.1, 0.1, margin=0.01)
    low, high = full.bounds
    assert high - low == pytest.approx([0.06, 0.08])
    assert low + high == pytest.approx([0.0, 0.0])
    with pytest.raises(InvalidValue, match="line 1"):
        drawing([[[0.0, 0.0]]])
    with pytest.raises(InvalidValue, match="size"):
        drawing([], size=(0.0, 1.0))
