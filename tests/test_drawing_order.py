"""The order of strokes: nothing is lost or changed but order and direction, and the travel is short.

Small drawings are compared with every order there is, larger ones with vpype on the same strokes.
"""

from itertools import permutations, product

import numpy as np
import pytest
from drawing_benchmark import photograph, sorted_by_vpype

from tangere.apps.drawing.files import write_svg
from tangere.apps.drawing.strokes.make import _ends, _start, on_grid, ordered, strokes_of, two_opt
from tangere.apps.drawing.strokes.strokes import Strokes, closed
from tangere.apps.drawing.strokes.tour import Tour, nearest


def scattered(count: int, seed: int, *, rings: bool = False, clustered: bool = False) -> Strokes:
    rng = np.random.default_rng(seed)
    lines = []
    for k in range(count):
        middle = (
            rng.uniform(-0.1, 0.1, 2)
            if not clustered
            else 0.09 * np.sign(rng.normal(size=2)) + 0.004 * rng.normal(size=2)
        )
        if rings and k % 3 == 0:
            t = np.linspace(0.0, 2.0 * np.pi, 25)
            line = middle + rng.uniform(0.003, 0.02) * np.stack([np.cos(t), np.sin(t)], axis=1)
            line[-1] = line[0]
        else:
            line = middle + np.cumsum(rng.normal(size=(rng.integers(2, 6), 2)) * 0.006, axis=0)
        lines.append(line)
    return on_grid(Strokes(tuple(lines), (0.4, 0.4)))


def canonical(line: np.ndarray) -> bytes:
    """The same for a line, its reverse and, where it is closed, every start."""
    if closed(line):
        body = line[:-1]
        k = np.lexsort(body.T)[0]
        body = np.roll(body, -k, axis=0)
        return min(body.tobytes(), np.roll(body[::-1], 1, axis=0).tobytes())
    return min(np.ascontiguousarray(line).tobytes(), np.ascontiguousarray(line[::-1]).tobytes())


def best_travel(strokes: Strokes) -> float:
    """The shortest travel over all orders and directions."""
    ends = [(line[0], line[-1]) for line in strokes.lines]
    count = len(ends)
    best = np.inf
    for order in permutations(range(count)):
        if order[0] > order[-1]:
            continue  # the way back is as long
        for turned in product((0, 1), repeat=count):
            travel = 0.0
            for (a, s), (b, t) in zip(
                zip(order[:-1], turned[:-1], strict=True), zip(order[1:], turned[1:], strict=True), strict=True
            ):
                step = ends[a][1 - s] - ends[b][t]
                travel += np.hypot(step[0], step[1])
                if travel >= best:
                    break
            best = min(best, travel)
    return best


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40, 150])
@pytest.mark.parametrize("rings", [False, True])
def test_only_order_direction_and_starts_change(count, rings):
    strokes = scattered(count, count, rings=rings)
    result = ordered(strokes)
    assert sorted(map(canonical, result.lines)) == sorted(map(canonical, strokes.lines))
    assert result.draw_length == pytest.approx(strokes.draw_length, rel=1e-12)
    assert result.pen_up_length <= strokes.pen_up_length
    assert result.size == strokes.size


@pytest.mark.parametrize("seed", range(6))
def test_small_drawings_get_the_best_order_there_is(seed):
    strokes = scattered(5, seed)
    assert ordered(strokes).pen_up_length == pytest.approx(best_travel(strokes), rel=1e-9)


def test_no_order_at_all_is_worse_than_ours():
    assert len(ordered(Strokes((), (1.0, 1.0)))) == 0
    same = scattered(1, 0)
    again = Strokes(same.lines * 30, same.size)
    assert ordered(again).pen_up_length <= again.pen_up_length


@pytest.mark.parametrize("seed", range(4))
def test_no_reversal_of_a_stretch_helps_any_more(seed):
    result = ordered(scattered(60, seed, rings=seed % 2 == 1))
    lines = list(result.lines)
    for i in range(len(lines)):
        for j in range(i, len(lines)):
            other = lines[:i] + [line[::-1] for line in reversed(lines[i : j + 1])] + lines[j + 1 :]
            assert Strokes(tuple(other), result.size).pen_up_length >= result.pen_up_length - 1e-10


def test_two_opt_alone_leaves_no_reversal_that_helps():
    strokes = scattered(25, 9)
    ends = _ends(list(strokes.lines))

    def travel(order):
        return float(np.hypot(*(ends[np.array(order[1:])] - ends[np.array(order[:-1]) ^ 1]).T).sum())

    start = [2 * k for k in range(25)]
    sequence = two_opt(ends, start)
    assert sorted(end >> 1 for end in sequence) == list(range(25))
    assert travel(sequence) < 0.5 * travel(start)
    for i in range(25):
        for j in range(i, 25):
            other = sequence[:i] + [end ^ 1 for end in reversed(sequence[i : j + 1])] + sequence[j + 1 :]
            assert travel(other) >= travel(sequence) - 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_gains_of_the_tour_are_what_its_length_loses(seed):
    ends = _ends(list(scattered(120, seed).lines))
    sequence, near = _start(ends)

    def travel(order):
        out = ends[np.array(order[:-1]) ^ 1]
        return float(np.hypot(*(ends[np.array(order[1:])] - out).T).sum())

    tour = Tour(ends, sequence, near)
    before = travel(tour.sequence())
    assert before == pytest.approx(travel(sequence))
    gain = tour.improve()
    assert before - travel(tour.sequence()) == pytest.approx(gain, abs=1e-12)
    middle = travel(tour.sequence())
    gain = tour.perturb(200, np.random.default_rng(0))
    assert gain > 0.0
    assert middle - travel(tour.sequence()) == pytest.approx(gain, abs=1e-11)
    assert sorted(end >> 1 for end in tour.sequence()) == list(range(120))


def test_the_same_strokes_give_the_same_order():
    strokes = scattered(50, 3, rings=True)
    first, second = ordered(strokes), ordered(strokes)
    assert all(np.array_equal(a, b) for a, b in zip(first.lines, second.lines, strict=True))


@pytest.mark.parametrize("kind", ["even", "clustered", "line", "one place"])
def test_nearest_agrees_with_all_distances(kind):
    rng = np.random.default_rng(0)
    points = {
        "even": rng.random((300, 2)),
        "clustered": np.concatenate([1e-3 * rng.random((20, 2)) + rng.random(2) * 10 for _ in range(10)]),
        "line": np.stack([rng.random(300), np.zeros(300)], axis=1),
        "one place": np.concatenate([np.zeros((20, 2)), rng.random((30, 2))]),
    }[kind]
    found = nearest(points, 6)
    distance = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    np.fill_diagonal(distance, np.inf)
    expected = np.sort(distance, axis=1)[:, :6]
    assert np.allclose(np.take_along_axis(distance, found, axis=1), expected, atol=1e-15)
    assert (nearest(points[:3], 6)[:, 2:] == -1).all()


def vpype_travel(strokes: Strokes, folder) -> float:
    """Pen-up travel [m] after `vpype read FILE linesort --two-opt`, run in this process: starting it takes a second."""
    cli = pytest.importorskip("vpype_cli", reason="vpype is not installed")
    write_svg(strokes, folder / "in.svg")
    document = cli.execute(f"read {folder / 'in.svg'} linesort --two-opt")
    return document.pen_up_length() * 25.4e-3 / 96.0


@pytest.mark.parametrize(("count", "rings", "clustered"), [(30, True, False), (200, False, False), (150, True, True)])
def test_travel_is_not_longer_than_vpype_s(count, rings, clustered, tmp_path):
    result = ordered(scattered(count, 1, rings=rings, clustered=clustered))
    for given in (result, Strokes(result.lines[::2] + result.lines[1::2], result.size)):
        # vpype's millimetre is rounded to 5e-7
        assert result.pen_up_length <= vpype_travel(given, tmp_path) * (1.0 + 1e-6)


def test_travel_of_a_traced_photograph_is_not_longer_than_vpype_s(tmp_path):
    pytest.importorskip("cv2", reason="OpenCV (extra `draw`) is not installed")
    result = strokes_of(photograph(500, shapes=120), 0.2)
    assert len(result) > 40
    shuffled = tuple(result.lines[k] for k in np.random.default_rng(0).permutation(len(result)))
    for given in (result, Strokes(shuffled, result.size)):
        assert result.pen_up_length <= vpype_travel(given, tmp_path) * (1.0 + 1e-6)


def test_the_benchmark_measures_both(tmp_path):
    pytest.importorskip("vpype", reason="vpype is not installed")
    strokes = scattered(8, 0)
    seconds, travel = sorted_by_vpype(strokes)
    assert seconds > 0.0
    assert travel == pytest.approx(vpype_travel(strokes, tmp_path), rel=1e-6)
