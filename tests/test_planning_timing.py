"""Time laws: the smooth start, and jerk-limited laws that use their limits and keep them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tangere.errors import InvalidValue, MissingExtra
from tangere.planning.paths import Circle, Line
from tangere.planning.polyline import Polyline
from tangere.planning.timing import (
    JerkLimited,
    SmoothRate,
    Stretched,
    TimeLaw,
    change_distance,
    jerk_limited,
    smooth_ramp,
)

DOWN = np.diag([1.0, -1.0, -1.0])
ZIGZAG = np.array([[0, 0, 0], [0.1, 0, 0], [0.1, 0.05, 0], [0.2, 0.05, 0.03], [0.3, 0.05, 0.03], [0.3, -0.1, 0.1]])


def laws() -> dict[str, TimeLaw]:
    return {
        "stop": SmoothRate(0.15, 1.0, 10.0),
        "on": SmoothRate(0.15, 1.0, 10.0, stop=False),
        "over": SmoothRate.over(1.0, 0.3, 0.7),
        "short": SmoothRate.over(0.05, 0.3, 0.7),
        "slow": Stretched(SmoothRate(0.15, 1.0, 10.0), 1.7),
    }


@pytest.mark.parametrize("name", laws())
def test_derivatives_and_continuity(name: str) -> None:
    """Rate and acceleration are the slopes, and continuous: nothing jumps by more than its slope allows."""
    law = laws()[name]
    h = 1e-5
    t = np.linspace(0.0, law.duration, 5001)
    ahead, behind, here = law.at(t + h), law.at(t - h), law.at(t)
    inner = slice(1, -1)
    for k in (0, 1):
        slope = (ahead[k] - behind[k]) / (2 * h)
        # h/2 times the largest third (fourth) derivative, which jumps at the ends of the ramps: 30 times rate/Tr^2
        assert np.max(np.abs(slope - here[k + 1])[inner]) < 1e-3 * 0.3
    # no jump of the acceleration: its slope is at most 10/sqrt(3) rate/Tr^2 ("short" has a ramp of 1/6 s)
    slope_max = {"stop": 0.15, "on": 0.15, "over": 0.3 / 0.7**2, "short": 0.3 * 36, "slow": 0.15 / 1.7**3}[name]
    assert np.max(np.abs(np.diff(here[2]))) < 5.8 * slope_max * (t[1] - t[0])
    assert here[0][0] == here[1][0] == here[2][0] == 0.0
    if name != "on":
        assert here[1][-1] == pytest.approx(0.0, abs=1e-15)
        assert here[2][-1] == pytest.approx(0.0, abs=1e-15)
        assert law.at(np.array([law.duration + 5.0]))[0] == pytest.approx(here[0][-1])


def test_smooth_start_is_the_quintic_ramp() -> None:
    """The printed polynomials, the constant rate after the ramp, and th = w (t - Tr/2)."""
    w, ramp = 1.0, 0.8
    t = np.array([0.1, 0.3, 0.5, 0.79, 0.8, 2.0])
    u = t / ramp
    th, thd, thdd = smooth_ramp(t, ramp)
    early = t < ramp
    expected = np.where(early, w * ramp * (2.5 * u**4 - 3 * u**5 + u**6), w * (t - ramp / 2))
    assert th == pytest.approx(expected, abs=1e-14)  # rounding of terms up to 15
    assert thd == pytest.approx(np.where(early, w * (10 * u**3 - 15 * u**4 + 6 * u**5), w), abs=1e-14)
    assert thdd == pytest.approx(np.where(early, w / ramp * (30 * u**2 - 60 * u**3 + 30 * u**4), 0.0), abs=1e-14)
    assert SmoothRate.over(1.0, 0.3, 0.7).at(np.array([99.0]))[0][0] == pytest.approx(1.0, rel=1e-15)


def test_mirrored_stop_is_the_start_backwards() -> None:
    law = SmoothRate(0.2, 1.5, 6.0)
    t = np.linspace(0.0, 6.0, 601)
    (s, sd, sdd), (r, rd, rdd) = law.at(t), law.at(6.0 - t)
    assert s == pytest.approx(0.2 * 4.5 - r, abs=1e-14)
    assert sd == pytest.approx(rd, abs=1e-14)
    assert sdd == pytest.approx(-rdd, abs=1e-13)


def test_one_line_takes_the_time_of_the_formula() -> None:
    """Seven phases with every limit reached: T = L/v + v/a + a/j."""
    pytest.importorskip("ruckig")
    length, v, a, j = 0.6, 0.25, 0.8, 6.0
    law = JerkLimited(Line((0, 0, 0), (length, 0, 0), DOWN), v, a, j)
    assert law.duration == pytest.approx(length / v + v / a + a / j, rel=1e-9)
    s, sd, sdd = law.at(np.linspace(0, law.duration, 10001))
    assert (s[0], s[-1]) == pytest.approx((0.0, length), abs=1e-12)
    assert (sd.max(), sdd.max(), sdd.min()) == pytest.approx((v, a, -a), rel=1e-6)


@pytest.mark.parametrize("tolerance", [2e-4, 2e-3, 1.0])
def test_limits_hold_in_space_on_a_finer_grid(tolerance: float) -> None:
    """Speed, acceleration along and across, jerk along; the finite differences of positions know nothing of the law."""
    pytest.importorskip("ruckig")
    speed, acceleration, jerk = 0.3, 1.2, 15.0
    path = Polyline(ZIGZAG, DOWN, tolerance=tolerance)
    law = JerkLimited(path, speed, acceleration, jerk)
    t = np.linspace(0.0, law.duration, 100001)
    h = t[1]
    s, sd, sdd = law.at(t)
    assert s[-1] == pytest.approx(path.length, abs=1e-12)
    assert np.all(np.diff(s) > -1e-15)
    assert sd.max() <= speed * (1 + 1e-8)
    assert np.max(np.abs(sdd)) <= acceleration * (1 + 1e-9)
    assert np.max(np.abs(np.diff(sdd))) / h <= jerk * (1 + 1e-6)
    points = path.at(s)
    across = points.second[:, :3] * (sd**2)[:, None]
    assert np.max(np.linalg.norm(across, axis=1)) <= acceleration * (1 + 1e-8)
    p = points.T[:, :3, 3]
    measured = np.linalg.norm(np.diff(p, n=2, axis=0), axis=1) / h**2
    assert measured.max() <= np.sqrt(2.0) * acceleration * (1 + 1e-4)  # rounding of p: 1e-16/h^2 = 5e-6
    assert measured.max() > 0.9 * acceleration  # and they are used
    # the corners are the slow places
    bends = [piece for piece in path.pieces if piece.curvature > 0.0]
    for piece in bends:
        inside = (s > piece.start) & (s < piece.end)
        assert sd[inside].max() <= min(speed, np.sqrt(acceleration / piece.curvature)) * (1 + 1e-8)


def test_circle_is_slowed_by_its_curvature() -> None:
    pytest.importorskip("ruckig")
    law = JerkLimited(Circle((0, 0, 0), 0.02, DOWN), 1.0, 0.5, 50.0)
    sd = law.at(np.linspace(0, law.duration, 2001))[1]
    assert sd.max() == pytest.approx(np.sqrt(0.5 * 0.02), rel=1e-6)


def test_change_of_speed_by_ruckig(rng: np.random.Generator) -> None:
    """The distance formula of the look-ahead against ruckig: with exactly that distance the time is dist/mean speed."""
    pytest.importorskip("ruckig")
    for v_0, v_1, a, j in rng.uniform(0.1, 2.0, (200, 4)):
        d = change_distance(v_0, v_1, a, j) * (1.0 + 1e-9)
        found = jerk_limited((0.0, v_0, 0.0), (d, v_1, 0.0), max(v_0, v_1) * (1 + 1e-9), a, j)
        assert found.duration == pytest.approx(2 * d / (v_0 + v_1), rel=1e-8)  # ten times the reserve of distance


def test_many_short_pieces_only_go_forward(rng: np.random.Generator) -> None:
    """A scribble whose pieces are too short for their speeds: the look-ahead must slow down early enough."""
    pytest.importorskip("ruckig")
    points = np.cumsum(rng.uniform(0.5e-3, 30e-3, (60, 1)) * rng.normal(size=(60, 3)), axis=0)
    path = Polyline(points, DOWN, tolerance=1e-3)
    law = JerkLimited(path, 0.5, 2.0, 20.0)
    s, sd, sdd = law.at(np.linspace(0.0, law.duration, 50001))
    assert s[-1] == pytest.approx(path.length, rel=1e-12)
    assert sd[1:-1].min() > 0.0
    assert sd.max() <= 0.5 * (1 + 1e-8)
    assert np.max(np.abs(sdd)) <= 2.0 * (1 + 1e-8)


def test_profile_meets_both_states(rng: np.random.Generator) -> None:
    """Six values from random states to random states, against ruckig's own evaluation at random times."""
    ruckig = pytest.importorskip("ruckig")
    for _ in range(30):
        x = rng.uniform(-1, 1, (2, 3, 6)) * np.array([3.0, 0.8, 0.5])[:, None]
        found = jerk_limited(tuple(x[0]), tuple(x[1]), np.ones(6), np.full(6, 2.0), np.full(6, 10.0))
        for t, state in ((0.0, x[0]), (found.duration, x[1])):
            assert np.array(found.at(np.array([t])))[:, 0] == pytest.approx(state, abs=1e-8)
        inputs = ruckig.InputParameter(6)
        for name, state in zip(("current", "target"), x, strict=True):
            for kind, value in zip(("position", "velocity", "acceleration"), state, strict=True):
                setattr(inputs, f"{name}_{kind}", value.tolist())
        inputs.max_velocity, inputs.max_acceleration, inputs.max_jerk = [1.0] * 6, [2.0] * 6, [10.0] * 6
        peer = ruckig.Trajectory(6)
        ruckig.Ruckig(6).calculate(inputs, peer)
        times = rng.uniform(0.0, found.duration, 50)
        ours = np.array(found.at(times))
        theirs = np.array([peer.at_time(t)[:3] for t in times]).swapaxes(0, 1)
        assert np.max(np.abs(ours - theirs)) < 1e-7  # knots are merged within 1e-12 s, states carry 1e-8


def test_missing_ruckig_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ruckig", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tangere\[plan\]'"):
        JerkLimited(Line((0, 0, 0), (1, 0, 0), DOWN), 0.1, 1.0, 10.0)


def test_refusals() -> None:
    with pytest.raises(InvalidValue, match="too short for two ramps"):
        SmoothRate(0.1, 2.0, 3.0)
    with pytest.raises(InvalidValue, match="rate"):
        SmoothRate(0.0, 1.0, 3.0)
    with pytest.raises(InvalidValue, match=r"jerk: must be positive and finite \[m/s3\]"):
        JerkLimited(Line((0, 0, 0), (1, 0, 0), DOWN), 0.1, 1.0, -1.0)


def test_the_first_value_alone_is_that_of_all(rng: np.random.Generator) -> None:
    """Within, at the knots, before the start and after the end; the same bits."""
    motion = jerk_limited(([0.0, 1.0],) * 3, ([0.4, -1.0], [0.0, 0.0], [0.0, 0.0]), 2.0, 5.0, 40.0)
    first = motion.first()
    times = np.concatenate([rng.uniform(-0.2, motion.duration + 0.2, 200), motion.knots])
    assert [first(t) for t in times.tolist()] == motion.at(times)[0][:, 0].tolist()
