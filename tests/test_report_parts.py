"""The parts of a report: markup, axes, encoding, path, scene, and the pictures of a run."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue, MissingExtra
from tangere.figures.arm import KINDS, painting_order, scene, view
from tangere.figures.axes import Axes, curve, legend, marks, polyline, span, ticks
from tangere.figures.markup import decode, extremes, floats, json_block, number, series, strided, tag, text, thinned
from tangere.figures.plots import Panel, Series, TimeFigure
from tangere.figures.stills import exaggeration, histogram, path_view, plane
from tangere.logs.log import Log
from tangere.report.video import write_still, write_video


@pytest.fixture(scope="module")
def robot() -> Any:
    return tangere.robot("ur10e")


@pytest.mark.parametrize("value", ["</script>", "<!--", "]]>", "\u2028", 'a"b\\', "é"])
def test_json_cannot_be_left(value: str) -> None:
    block = json_block("x", {"k": value})
    inner = block[block.index(">") + 1 : block.rindex("<")]
    assert not set(inner) & set("<>&\u2028")
    assert json.loads(inner) == {"k": value}


def test_json_refuses_what_it_cannot_say() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_block("x", float("nan"))


def test_text_and_attributes_are_escaped() -> None:
    assert tag("p", "<&>", title='"x"') == '<p title="&quot;x&quot;">&lt;&amp;&gt;</p>'
    assert text("a\x00b\udcff") == "a\ufffdb?"


def test_numbers_are_short_and_never_nan() -> None:
    shown = [number(v) for v in (0.0, 1.0, -0.5, 12345.678, 1e-7, float("nan"), float("inf"), None, 3, 1e300)]
    assert shown == ["0", "1", "−0.5", "12346", "1.000e-07", "–", "∞", "–", "3", "1.000e+300"]


def test_ticks_are_round_and_inside(rng: np.random.Generator) -> None:
    for _ in range(300):
        low = float(rng.normal() * 10.0 ** rng.integers(-6, 6))
        high = low + float(10.0 ** rng.uniform(-5, 6))
        marks = ticks(low, high, 5)
        assert 2 <= len(marks) <= 6
        assert low - 1e-6 * (high - low) <= marks[0] < marks[-1] <= high + 1e-6 * (high - low)
        step = marks[1] - marks[0]
        mantissa = step / 10.0 ** np.floor(np.log10(step) + 1e-6)
        assert min(abs(mantissa - m) for m in (1.0, 2.0, 5.0)) < 1e-3
    assert ticks(1.0, 1.0) == []
    assert ticks(0.0, float("inf")) == []


def test_span_survives_everything() -> None:
    assert span([]) == (-1.0, 1.0)
    assert span([np.array([np.nan])]) == (-1.0, 1.0)
    low, high = span([np.array([1e308, -1e308])])
    assert np.isfinite(high - low)
    low, high = span([np.array([5.0, 5.0])], at_least=1.0)
    assert low < 4.6
    assert high > 5.4


def test_a_curve_keeps_extremes_and_gaps() -> None:
    x = np.linspace(0.0, 500.0, 20_000)
    y = np.full(20_000, 50.0)
    y[9_999] = 3.0
    y[15_000:15_100] = np.nan
    d = curve(x, y)
    assert " 3L" in d
    assert d.count("M") == 2
    assert len(d) < 15_000


def test_floats_come_back(rng: np.random.Generator) -> None:
    values = rng.standard_normal(50)
    np.testing.assert_array_equal(decode(floats(values)), values.astype(np.float32))
    large = np.array([1e300, np.nan, -np.inf, 0.0])
    assert list(floats(large)) == ["f8"]
    np.testing.assert_array_equal(decode(floats(large)), large)


def test_thinning_keeps_ends_and_extremes(rng: np.random.Generator) -> None:
    values = rng.standard_normal(50_000)
    kept = thinned(values, 2000)
    assert kept[0] == 0
    assert kept[-1] == 49_999
    assert len(kept) <= 2000 // 3 + 2
    assert np.argmax(values) in kept
    assert np.argmin(values) in kept
    assert list(thinned(np.array([1.0, 1.0, 1.0, 2.0, 2.0, np.nan, np.nan, np.nan]))) == list(range(8))
    steps = np.repeat([1.0, 2.0, np.nan, 3.0], 6)
    assert list(thinned(steps)) == [0, 5, 6, 11, 12, 17, 18, 23]
    assert set(series(np.arange(4.0), np.array([1.0, 2.0, 1.0, 2.0]))) == {"v"}
    assert list(strided(10, 4)) == [0, 3, 6, 9]
    assert list(strided(11, 4)) == [0, 3, 6, 9, 10]
    assert len(strided(0, 4)) == 0


def test_extremes_are_the_first_of_each_stretch(rng: np.random.Generator) -> None:
    """As argmin and argmax have them; values repeat, some are not finite, and one stretch has none that is."""
    values = rng.integers(-3, 4, 400).astype(np.float64)
    values[rng.integers(0, 400, 60)] = rng.choice([np.nan, np.inf, -np.inf], 60)
    edges = np.concatenate(([0], np.sort(rng.choice(np.arange(1, 400), 30, replace=False)), [400]))
    values[edges[5] : edges[6]] = np.nan
    known = np.isfinite(values)
    for found, end, of in zip(extremes(values, edges), (np.inf, -np.inf), (np.argmin, np.argmax), strict=True):
        parts = np.split(np.where(known, values, end), edges[1:-1])
        assert found.tolist() == [int(first + of(part)) for first, part in zip(edges, parts, strict=False)]


def test_exaggeration_is_said_and_fits() -> None:
    assert exaggeration(np.full(10, 1e-5), 0.3) == 2000.0  # 7 % of 0.3 m is 21 mm; 2000 * 0.01 mm = 20 mm
    assert exaggeration(np.zeros(10), 0.3) == 1.0
    assert exaggeration(np.full(10, 1e-9), 0.3) == 1.0  # a millionth of a millimetre is nothing to be seen
    assert exaggeration(np.full(10, 1.0), 0.3) == 1.0
    angle = np.linspace(0.0, 2.0 * np.pi, 500)
    circle = np.stack([0.7 + 0.15 * np.cos(angle), 0.15 * np.sin(angle), np.full(500, 0.3)], axis=1)
    drawn, sentence = path_view(circle + [1e-5, 0.0, 0.0], circle)
    assert "seen from above" in sentence
    assert "2000 times larger" in sentence
    assert "nan" not in drawn
    pushed = np.arange(500) > 400
    _, sentence = path_view(circle + np.where(pushed, 1e-2, 1e-5)[:, None] * [1.0, 0.0, 0.0], circle, pushed)
    assert "2000 times larger" in sentence
    assert "2 times larger" in sentence.split(";")[1]
    _, sentence = path_view(circle + [1e-5, 0.0, 0.0], circle, pushed)
    assert sentence.endswith("2000 times larger than it is; other colour: from an event to 1 s after it.")


def test_numbers_at_a_histogram_do_not_stand_on_each_other() -> None:
    drawn = histogram(np.concatenate((np.full(9000, 10.0), np.linspace(11.0, 200.0, 60))))
    places = [float(y) for y in re.findall(r'<text x="[\d.]+" y="([\d.]+)" class="y"', drawn)]
    assert len(places) >= 2
    assert float(np.min(np.abs(np.diff(places)))) > 15.0  # px, of letters of at most 17 px


def test_a_limit_that_is_raised_for_a_moment_does_not_flatten_the_curves() -> None:
    time = np.linspace(0.0, 10.0, 1000)
    raised = np.where((time > 7.0) & (time < 7.3), 100.0, 2.0)
    curves = (Series("residual", np.sin(time), "a"), Series("threshold", raised, "limit"))
    drawn = str(TimeFigure("one", "", time, (Panel("joint 1", "Nm", curves),)).html(None))
    d = re.search(r'class="line a" d="([^"]+)"', drawn)
    assert d is not None
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", d[1])]
    assert max(heights) - min(heights) > 60.0  # px of some 180: the curve is seen, the limit leaves the panel


@pytest.mark.parametrize(("normal", "name"), [(0, "along x"), (1, "along y"), (2, "from above")])
def test_the_plane_of_a_path_is_found(normal: int, name: str) -> None:
    angle = np.linspace(0.0, 6.0, 50)
    points = np.insert(np.stack([np.cos(angle), np.sin(angle)], axis=1), normal, 0.4, axis=1)
    right, up, said = plane(points)
    assert name in said
    assert right[normal] == 0.0
    assert up[normal] == 0.0


def test_a_tool_that_stands_is_seen_from_above(rng: np.random.Generator) -> None:
    """Whatever rounding does to it: its view does not hang on the processor."""
    for _ in range(5):
        right, up, said = plane(np.array([0.3, -0.4, 0.5]) + 1e-15 * rng.normal(size=(50, 3)))
        assert (right.tolist(), up.tolist(), said) == ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], "seen from above")


def test_the_scene_is_the_arm(robot: Any, rng: np.random.Generator) -> None:
    q = rng.uniform(-2.0, 2.0, (5, 6))
    drawn = scene(robot, q, np.arange(5.0), "frames", frames=True)
    assert drawn.names == ("0", "1", "2", "3", "4", "5", "6 = tcp")
    np.testing.assert_allclose(drawn.triads[:, 1:, 0], robot.link_poses(q)[..., :3, 3], atol=1e-12)
    axes = drawn.triads[:, :, 1:] - drawn.triads[:, :, :1]
    np.testing.assert_allclose(axes[:, -1] / np.linalg.norm(axes[:, -1], axis=-1, keepdims=True),
                               np.swapaxes(robot.pose(q)[:, :3, :3], -1, -2), atol=1e-12)  # fmt: skip
    # rigid: tubes keep their lengths whatever q
    lengths = np.linalg.norm(drawn.points[:, :, 1] - drawn.points[:, :, 0], axis=-1)
    np.testing.assert_allclose(lengths, np.broadcast_to(lengths[0], lengths.shape), atol=1e-12)
    # the housing of joint i lies on its axis, z of frame i - 1
    before = np.concatenate([np.broadcast_to(np.eye(4), (5, 1, 4, 4)), robot.link_poses(q)[:, :-1]], axis=1)
    housings = [k for k, (_, kind, _) in enumerate(drawn.tubes) if KINDS[kind] == "joint"][-6:]
    for i, k in enumerate(housings):
        for end in (0, 1):
            arm = drawn.points[:, k, end] - before[:, i, :3, 3]
            np.testing.assert_allclose(np.cross(arm, before[:, i, :3, 2]), 0.0, atol=1e-12)
    tool = tangere.robot("ur10e", tool=(0.0, 0.0, 0.1))
    assert scene(tool, q, np.arange(5.0), "x", frames=True).names[-1] == "tcp"


def test_nearer_tubes_are_drawn_later() -> None:
    right, up, eye = view(0.3, 0.4)
    np.testing.assert_allclose(np.stack([right, up, eye]) @ np.stack([right, up, eye]).T, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(np.cross(right, up), eye, atol=1e-15)
    # a long tube that leans towards the eye: its middle is nearer than the cap at its far end, which still covers it
    tube = [[0.0, 0.0, 0.0], [0.0, 1.0, 0.8]]
    cap = [[0.0, 0.0, 0.1], [0.0, 0.01, 0.1]]
    far = [[0.0, 0.5, -1.0], [0.1, 0.5, -1.0]]
    assert painting_order(np.array([cap, tube, far]), [0.05, 0.04, 0.05]) == [2, 1, 0]


def screen() -> None:
    pytest.importorskip("mujoco")
    pytest.importorskip("imageio_ffmpeg")


def test_a_video_and_a_still(robot: Any, tmp_path: Path) -> None:
    screen()
    imageio = pytest.importorskip("imageio.v2")
    try:
        still = write_still(tmp_path / "still.png", size=(320, 180))
    except MissingExtra as missing:
        pytest.skip(str(missing))
    picture = imageio.imread(still)
    assert picture.shape == (180, 320, 3)
    assert picture.std() > 10.0  # something is seen
    # the line is there: its colour, much more red than blue, is nowhere else in the picture
    assert np.sum(picture[..., 0].astype(int) - picture[..., 2] > 90) > 50
    time = np.linspace(0.0, 2.0, 200)
    log = Log(
        {"time": time, "q": np.array([0.1, -1.2, 1.8, -2.1, -1.57, 0.0]) + np.outer(0.3 * np.sin(time), np.ones(6))}
    )
    clip = write_video(robot, log, tmp_path / "clip.mp4", frames=8, size=(160, 120), trail=False)
    with imageio.get_reader(clip) as reader:
        frames = [frame.astype(int) for frame in reader]
    assert len(frames) == 8
    assert np.abs(frames[0] - frames[4]).max() > 60  # it moves
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clip.mp4", "still.png"]


def test_a_video_says_what_is_wrong(robot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log({"time": np.arange(3.0), "q": np.full((3, 6), np.nan)})
    with pytest.raises(InvalidValue, match="frames: 1 to 150"):
        write_video(robot, log, tmp_path / "x.mp4", frames=151)
    with pytest.raises(InvalidValue, match="no motion to film"):
        write_video(robot, log, tmp_path / "x.mp4")
    with pytest.raises(InvalidValue, match="Robot or a plant"):
        write_video(3, log, tmp_path / "x.mp4")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    still = Log({"time": np.arange(3.0), "q": np.zeros((3, 6))})
    with pytest.raises(MissingExtra, match=r"pip install 'tangere\[video\]'"):
        write_video(robot, still, tmp_path / "x.mp4")
    assert not list(tmp_path.iterdir())


def test_axes_put_values_where_they_belong() -> None:
    axes = Axes(500, 200, (2.0, 4.0), (-1.0, 1.0), left=40, right=10, top=5, bottom=15)
    assert axes.inner == (450, 180)
    np.testing.assert_allclose(axes.across([2.0, 3.0, 4.0, 5.0]), [40.0, 265.0, 490.0, 715.0])
    np.testing.assert_allclose(axes.up([-1.0, 0.0, 1.0]), [185.0, 95.0, 5.0])
    assert np.all(np.isfinite(axes.up([1e300, -1e300])))
    decades = Axes(500, 200, (0.1, 1000.0), (0.0, 1.0), left=40, right=60, top=5, bottom=15, log=True, inside=True)
    np.testing.assert_allclose(decades.across([0.1, 1.0, 10.0, 1000.0]), [40.0, 140.0, 240.0, 440.0])
    np.testing.assert_allclose(decades.across([0.0, 1e9]), [40.0, 440.0])  # kept inside the frame
    np.testing.assert_allclose(decades.up([-5.0, 5.0]), [185.0, 5.0])
    (line, label) = axes.rows([(0.5, "half")])
    assert 'd="M40 50.0H490"' in line
    assert 'x="35" y="53.5" class="y">half<' in label
    assert len(axes.rows([(0.5, "")])) == 1
    (line, label) = axes.columns([(3.0, "three")])
    assert 'd="M265.0 5V185"' in line
    assert 'x="265.0" y="201" class="x">three<' in label
    assert len(axes.columns([(3.0, "three")], lines=False)) == 1
    bar = axes.bar(40.0, 20.0, 90.0, "ten")
    assert 'x="40.5" y="95.0" width="19.0" height="90.0"' in bar
    assert '"0 0 500 200"' in axes.svg("a drawing")


def test_marks_say_their_unit_once() -> None:
    assert marks(0.0, 2.0, 4, "s") == [(0.0, "0"), (0.5, "0.5"), (1.0, "1.0"), (1.5, "1.5"), (2.0, "2.0 s")]
    assert marks(1.0, 1.0) == []
    assert "dashed" in legend([("a curve", "b", True)])
    assert "dashed" not in legend([("a curve", "b", False)])


def test_a_polyline_has_gaps_where_nothing_is_known() -> None:
    nan = float("nan")
    assert polyline(np.array([[1.0, 2.0], [3.0, 4.0], [nan, 0.0], [5.0, 6.0]])) == "M1.0 2.0L3.0 4.0M5.0 6.0"
    assert polyline(np.array([[1.0, 2.0]])) == "M1.0 2.0h0.01"
    assert polyline(np.zeros((0, 2))) == ""


def test_whole_numbers_keep_every_digit_up_to_nine_of_them() -> None:
    assert [number(n) for n in (0, -7, 123_456_789, 1_234_567_890)] == ["0", "−7", "123456789", "1.2346e+09"]
