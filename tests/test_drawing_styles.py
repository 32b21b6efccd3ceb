"""What a picture is taken for: lines, areas, outlines of colours, edges; small, faint, dithered and dirty ones."""

import numpy as np
import pytest

cv2 = pytest.importorskip("cv2", reason="OpenCV (extra `draw`) is not installed")
spatial = pytest.importorskip("scipy.spatial")

from drawing_benchmark import photograph  # noqa: E402
from drawing_makers import rendered  # noqa: E402
from drawing_truth import check_guarantee, dense, drawing, farthest, random_lines  # noqa: E402

from tangere.apps.drawing.draw_picture import find_picture  # noqa: E402
from tangere.apps.drawing.picture.line_art import otsu_of  # noqa: E402
from tangere.apps.drawing.picture.picture import picture_from, read_picture  # noqa: E402
from tangere.apps.drawing.picture.tracing import trace  # noqa: E402
from tangere.apps.drawing.strokes.make import strokes_of  # noqa: E402
from tangere.apps.drawing.strokes.strokes import closed  # noqa: E402
from tangere.errors import InvalidValue, UnknownName  # noqa: E402


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
    picture = read_picture(find_picture("still_life.png"))
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


def test_lines_in_falling_light_on_half_even_paper_are_lines():
    # half of the sheet is within the paper's own tones: even by its share, full of half-tones all the same
    rng = np.random.default_rng(1)
    rows, columns = np.mgrid[0:1000, 0:1000] / 1000.0
    truth = random_lines(2)
    light = 1.0 - 0.5 * (0.5 * columns + 0.4 * rows)
    image = (70.0 + 180.0 * rendered(truth, pen=1e-3) / 255.0) * light + 6.0 * rng.normal(size=rows.shape)
    tracing = trace(picture_from(np.clip(image, 0.0, 255.0).astype(np.uint8)))
    assert tracing.style == "lines"
    result = strokes_of(tracing, 0.2)
    assert farthest(dense(result.lines), truth.lines) < 1e-3
    assert result.draw_length < 1.1 * truth.draw_length


def comic(paper=(255, 255, 255)) -> np.ndarray:
    """A face: outlines of 7 pixels, a yellow fill, small black pupils, a red mouth; a border without an outline."""
    image = np.zeros((700, 900, 3), dtype=np.uint8)
    image[:] = paper
    image[640:] = (110, 190, 90)
    cv2.circle(image, (450, 350), 250, (255, 224, 130), -1)
    cv2.circle(image, (450, 350), 250, (0, 0, 0), 7)
    for x in (360, 540):
        cv2.circle(image, (x, 290), 9, (0, 0, 0), -1)
    cv2.ellipse(image, (450, 420), (120, 70), 0, 15, 165, (150, 20, 20), 8)
    return image


@pytest.mark.parametrize("paper", [(255, 255, 255), (150, 200, 250)])
def test_the_outlines_of_coloured_areas_are_drawn_once(paper):
    tracing = trace(picture_from(comic(paper)))
    assert tracing.style == "lines"
    assert "the outlines of coloured areas are drawn" in tracing.notes
    assert len(tracing.lines) == 5  # face, two pupils, mouth, horizon
    ring = next(line for line in tracing.lines if closed(line))
    assert np.abs(np.hypot(*(ring - [450.5, 350.5]).T) - 250.0).max() < 2.5
    check_guarantee(tracing, strokes_of(tracing, 0.2))


def test_a_photograph_has_no_outlines():
    for picture in (photograph(400, shapes=120), read_picture(find_picture("still_life.png"))):
        assert trace(picture).style == "edges"


def test_a_sun_is_a_disc_with_rays_and_a_hub_is_none():
    angles = 2.0 * np.pi * np.arange(12) / 12
    image = np.full((1000, 1000), 255, dtype=np.uint8)
    for a in angles:
        cv2.line(image, (500, 500), (round(500 + 400 * np.cos(a)), round(500 + 400 * np.sin(a))), 0, 8)
    assert not any("filled" in note for note in trace(picture_from(image)).notes)
    cv2.circle(image, (500, 500), 80, 0, -1)
    assert "1 filled area is drawn as outline" in trace(picture_from(image)).notes


@pytest.mark.parametrize("pixel", [0.25e-3, 0.4e-3])  # m: as it is, and enlarged twice
def test_dithered_lines_are_lines(pixel):
    image = pytest.importorskip("PIL.Image", reason="Pillow (extra `draw`) is not installed")
    truth = drawing([[[-0.08, -0.05], [0.08, 0.03]], [[-0.06, 0.06], [0.05, -0.07]]])
    grey = cv2.GaussianBlur(rendered(truth, pen=2e-3, pixel=pixel), (0, 0), 2.0)
    result = strokes_of(picture_from(np.asarray(image.fromarray(grey).convert("1"))), 0.2)
    # half a blurred width at the ends, a dot of dithering across
    assert farthest(dense(result.lines), truth.lines) < 1.5e-3
    assert result.draw_length == pytest.approx(truth.draw_length, rel=0.05)


def test_small_pictures_are_enlarged_and_their_single_pixels_are_lines_and_dots():
    icon = np.full((16, 16), 255, dtype=np.uint8)
    icon[2:14, 2] = icon[2:14, 13] = icon[2, 2:14] = icon[13, 2:14] = icon[9, 5:11] = icon[5, 5] = icon[5, 10] = 0
    tracing = trace(picture_from(icon))
    assert any(note.startswith("enlarged from 16 x 16") for note in tracing.notes)
    result = strokes_of(tracing, 0.16)
    # frame, mouth and two eyes, to a third of a pixel of 10 mm where corners become round
    assert len(result) == 4
    assert sum(closed(line) for line in result.lines) == 1
    assert farthest((np.array([[5.5, 5.5], [10.5, 5.5], [8.0, 9.5]]) - 8.0) * [0.01, -0.01], result.lines) < 3.5e-3
    assert not any("enlarged" in note for note in trace(picture_from(np.kron(icon, np.ones((40, 40), np.uint8)))).notes)


def test_specks_are_drawn_where_they_are_meant_and_left_out_where_they_are_dirt():
    image = np.full((1000, 1000), 255, dtype=np.uint8)
    cv2.line(image, (100, 500), (900, 520), 0, 5)
    image[200, 300] = image[700, 800] = 0
    assert len(trace(picture_from(image)).lines) == 3
    rows, columns = np.random.default_rng(0).integers(20, 980, (2, 200))
    dirty = image.copy()
    dirty[rows, columns] = 0
    assert len(trace(picture_from(dirty)).lines) < 10  # some touch each other or the line
    alone = np.full((500, 500), 255, dtype=np.uint8)
    alone[250, 250] = 0
    assert len(trace(picture_from(alone)).lines) == 1
