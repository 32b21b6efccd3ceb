"""Pictures and motions that once went wrong: lines at the border, bold letters, flat photographs, round numbers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cv2", reason="pictures are traced with OpenCV")
pytest.importorskip("ruckig", reason="motions are timed by ruckig")

import cv2

from tangere.apps.drawing.ink import distance
from tangere.apps.drawing.picture.picture import Picture, picture_from
from tangere.apps.drawing.picture.tracing import trace
from tangere.apps.drawing.strokes.make import strokes_of
from tangere.planning.timing import jerk_limited
from tangere.plants.sensors import SensorModel, Sensors


def covered(picture: Picture) -> tuple[float, float]:
    """Share of the centre line's pixels within 1 mm of a stroke at 200 mm; drawn length over that of the pixels."""
    tracing = trace(picture)
    assert tracing.centre_line is not None
    strokes = strokes_of(tracing, 0.2)
    scale = 0.2 / max(tracing.width, tracing.height)
    rows, columns = np.nonzero(tracing.centre_line)
    x, y = (columns + 0.5 - tracing.width / 2.0) * scale, (tracing.height / 2.0 - rows - 0.5) * scale
    away = distance(np.stack([x, y], axis=1), list(strokes.lines), reach=0.02)
    return float(np.mean(away < 1e-3)), strokes.draw_length


@pytest.mark.parametrize("width", [2, 9])
def test_lines_that_run_into_the_border_stay_inside(width: int) -> None:
    image = np.full((800, 800), 255, dtype=np.uint8)
    for k in range(0, 800, 24 if width == 2 else 80):
        cv2.line(image, (k, 0), (0, k), 0, width, cv2.LINE_AA)
        cv2.line(image, (800, k), (k, 800), 0, width, cv2.LINE_AA)
    strokes = strokes_of(picture_from(image), 0.2)
    low, high = strokes.bounds
    assert np.all(low >= -0.1)
    assert np.all(high <= 0.1)


@pytest.mark.parametrize("text", ["AB", "HR", "%8"])
def test_bold_letters_keep_their_shape(text: str) -> None:
    """The bar of a bold A is no longer than its lines are wide, and still no crossing."""
    image = np.full((500, 500), 255, dtype=np.uint8)
    cv2.putText(image, text, (60, 300), cv2.FONT_HERSHEY_TRIPLEX, 5, 0, 12, cv2.LINE_AA)
    share, _ = covered(picture_from(image))
    assert share >= 0.97


def hills(noise: float) -> np.ndarray:
    """(h, w, 3) two ridges before a sky and a sun: three flat tones, of which none covers half."""
    rows, columns = np.mgrid[0:600, 0:900]
    image = np.stack([220.0 - 0.1 * rows, 200.0 - 0.15 * rows, 120.0 + 0.1 * rows], axis=-1)
    image[rows > 300 + 60 * np.sin(columns / 70.0) + 30 * np.sin(columns / 23.0)] = (40, 90, 60)
    image[rows > 420 + 40 * np.sin(columns / 110.0 + 1.0)] = (30, 50, 30)
    cv2.circle(image, (700, 120), 60, (90, 220, 255), -1)
    image = cv2.GaussianBlur(image, (0, 0), 1.5) + noise * np.random.default_rng(5).normal(size=image.shape)
    return np.clip(image, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_a_photograph_of_flat_tones_is_no_line_drawing(noise: float) -> None:
    assert trace(picture_from(hills(noise))).style == "edges"


def test_ridges_and_sun_are_drawn_as_one_line_each() -> None:
    tracing = trace(picture_from(hills(3.0)))
    # both ridges from end to end, and the sun's circle
    lines = sorted(float(np.ptp(line[:, 0])) for line in tracing.lines)
    assert sum(length > 880 for length in lines) == 2
    assert any(abs(length - 120) < 4 for length in lines)


def test_a_scan_under_uneven_light_is_still_a_line_drawing() -> None:
    t = np.linspace(0.0, 60.0, 4000)
    line = np.stack([100 + 13 * t + 30 * np.sin(2.3 * t), 300 + 60 * np.sin(1.7 * t) + 40 * np.cos(3.1 * t)], axis=1)
    image = np.full((600, 1000), 255, dtype=np.uint8)
    cv2.polylines(image, [line.astype(np.int32)], False, 90, 3, cv2.LINE_AA)
    light = np.linspace(1.0, 0.6, 1000)
    noisy = image * light + 4.0 * np.random.default_rng(1).normal(size=image.shape)
    picture = picture_from(np.clip(noisy, 0, 255).astype(np.uint8))
    assert trace(picture).style == "lines"
    assert covered(picture)[0] >= 0.97


def test_a_motion_that_just_touches_its_acceleration_is_found() -> None:
    """d = 2 a^3 / j^2: at rounding's distance from it ruckig gives up one time in four."""
    rng = np.random.default_rng(0)
    cases = [(0.006000000000000005, 1.2, 24.0)]
    for _ in range(500):
        a, j = float(rng.uniform(0.1, 3.0)), float(rng.uniform(5.0, 40.0))
        cases.append((float(np.nextafter(2.0 * a**3 / j**2, 1e3)), a, j))
    for way, a, j in cases:
        motion = jerk_limited((0.0, 0.0, 0.0), (way, 0.0, 0.0), 5.0, a, j)
        assert motion.position[-1, 0] == pytest.approx(way, abs=1e-12)
        assert np.abs(motion.acceleration).max() <= a * (1.0 + 1e-9)
        assert np.abs(motion.jerk).max() <= j * (1.0 + 1e-9)
        assert motion.duration == pytest.approx(4.0 * (way / (2.0 * j)) ** (1.0 / 3.0), rel=1e-4)  # four equal phases


def test_noise_drawn_in_blocks_is_the_noise_drawn_one_by_one() -> None:
    sensors = Sensors(SensorModel(noise_qd=0.002, noise_tau=0.1, seed=3), 6, 1e-3)
    rng, still = np.random.default_rng(3), np.zeros(6)
    state = sensors.first(still, still, still, still)
    for k in range(1100):  # beyond two blocks
        noise = rng.standard_normal(24)
        assert np.array_equal(state.qd, 0.002 * noise[6:12])
        assert np.array_equal(state.tau, 0.1 * noise[12:18])
        assert np.array_equal(state.q, still)
        state = sensors.next((k + 1) * 1e-3, still, still, still, still)
