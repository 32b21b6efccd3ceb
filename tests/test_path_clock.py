"""The clock of a path: it halts, stands and resumes, and the motion stays on the path."""

from __future__ import annotations

import numpy as np
import pytest
from test_control_simulator import Wave

import tangere
from tangere.control.reactions import PathClock
from tangere.errors import InvalidValue
from tangere.planning.joint_motions import JointMove

ROBOT = tangere.robot("ur10e", rotor_inertia=True)
Q = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
END = Q + np.array([1.0, -0.4, -0.6, 0.5, 0.3, 1.2])
MOVE = JointMove(ROBOT, Q, END)


def test_the_clock_is_a_motion_along_the_same_path() -> None:
    """q on the path at s; qd and qdd are the derivatives; s never goes back. Seeded halts, resumes and halts again."""
    rng = np.random.default_rng(4)
    wave = Wave(Q, rng.uniform(0.2, 0.5, 6).tolist(), rng.uniform(1.0, 2.0, 6).tolist())
    h = 1e-4
    for _ in range(20):
        clock = PathClock(wave)
        T = rng.uniform(0.05, 0.25, 3)
        halt = float(rng.uniform(0.3, 2.0))
        resume = halt + T[0] + 0.1
        again = resume + float(rng.uniform(0.0, 1.2)) * T[1]
        s_before = 0.0
        for change, at, lasts, until in (
            (clock.halt, halt, T[0], resume),
            (clock.resume, resume, T[1], again),
            (clock.halt, again, T[2], again + 0.5),
        ):
            change(at, lasts)
            for t in np.linspace(at, until, 41)[1:-1]:
                s, rate, slope = clock.clock(t)
                assert s >= s_before - 1e-12  # standing, up to rounding
                assert -1e-12 <= rate < 1.15  # a halt while resuming begins with that acceleration: 4/27 sdd T more
                s_before = s
                assert np.array_equal(clock.at(t).q, wave.at(s).q)
                if min(t - at, abs(t - at - lasts)) < 2 * h:
                    continue  # the jerk jumps there: no central differences
                after, before, now = clock.at(t + h), clock.at(t - h), clock.at(t)
                # h^2/6 of the third derivatives: of the rate 12 / T^3 + 6 sdd / T^2, 2e5 1/s3 for the shortest T; of q
                # and qd these times joint speeds below 1 rad/s
                assert (clock.clock(t + h)[1] - clock.clock(t - h)[1]) / (2 * h) == pytest.approx(slope, abs=4e-4)
                assert (after.q - before.q) / (2 * h) == pytest.approx(now.qd, abs=1e-5)
                assert (after.qd - before.qd) / (2 * h) == pytest.approx(now.qdd, abs=1e-3)


def test_the_clock_halts_in_time_and_is_the_trajectory_before() -> None:
    clock = PathClock(MOVE)
    assert clock.at(0.4) is not None
    assert np.array_equal(clock.at(0.7).q, MOVE.at(0.7).q)
    assert np.array_equal(clock.at(0.7).qdd, MOVE.at(0.7).qdd)
    clock.halt(1.0, 0.2)
    s, rate, slope = clock.clock(1.2)
    assert s == pytest.approx(1.1)  # half of the time at full rate
    assert (rate, slope) == pytest.approx((0.0, 0.0), abs=1e-12)
    assert np.array_equal(clock.at(1.3).q, clock.at(5.0).q)
    assert np.abs(clock.at(5.0).qd).max() < 1e-12
    assert clock.resume(5.0, 0.5)
    assert clock.clock(6.0)[:2] == pytest.approx((1.1 + 0.25 + 0.5, 1.0))
    clock.reset()
    assert clock.clock(0.9) == (0.9, 1.0, 0.0)


def test_the_clock_only_resumes_where_it_stands() -> None:
    clock = PathClock(MOVE)
    assert not clock.resume(0.5, 0.2)
    clock.halt(0.5, 0.2)
    assert not clock.resume(0.6, 0.2)
    assert clock.resume(0.7, 0.2)
    for bad in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidValue, match="duration"):
            clock.halt(1.0, bad)


def test_the_tool_of_a_halted_path_moves_as_its_joints_do() -> None:
    clock = PathClock(MOVE)
    clock.halt(0.8, 0.3)
    for t in (0.85, 0.95, 1.05):
        r = clock.at(t)
        J = ROBOT.jacobian(r.q)
        assert r.v == pytest.approx(J @ r.qd, abs=1e-9)  # rounding, and J at an interpolated q
        assert r.a == pytest.approx(J @ r.qdd + ROBOT.jacobian_rate_times_velocity(r.q, r.qd), abs=1e-8)
