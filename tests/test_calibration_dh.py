"""A controller's own DH parameters become a calibration file that gives the same poses."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.model.calibration import calibrated_by, calibration_text, dh_frames
from tangere.model.loading import load


def chain(theta, a, d, alpha, q) -> np.ndarray:
    """The flange by the DH product itself."""
    T = np.eye(4)
    for t, x, z, w in zip(np.asarray(q) + theta, a, d, alpha, strict=True):
        c, s, ca, sa = np.cos(t), np.sin(t), np.cos(w), np.sin(w)
        T = T @ np.array([[c, -s * ca, s * sa, x * c], [s, c * ca, -c * sa, x * s], [0, sa, ca, z], [0, 0, 0, 1.0]])
    return T


def drawn(name: str, seed: int, metres: float) -> tuple[np.ndarray, ...]:
    """DH of a calibrated arm; metres: how far along the parallel axes 2 and 3 the frames wander and come back."""
    rng = np.random.default_rng(seed)
    dh = load(name).dh
    theta, a = rng.normal(0, 1e-3, 6), dh.a + rng.normal(0, 3e-4, 6)
    d, alpha = dh.d + rng.normal(0, 3e-4, 6), dh.alpha + rng.normal(0, 5e-4, 6)
    alpha[1:3] = rng.normal(0, 1e-5, 2)
    d[1] += metres
    d[2] -= metres
    a[5], alpha[5] = dh.a[5], dh.alpha[5]
    return theta, a, d, alpha


@pytest.mark.parametrize("name", ["ur3", "ur5e", "ur10e", "ur20"])
@pytest.mark.parametrize("metres", [0.0, 40.0])
def test_file_and_dh_give_the_same_pose(name: str, metres: float, tmp_path) -> None:
    for seed in range(5):
        given = drawn(name, seed, metres)
        table = dh_frames(load(name), *given)
        (tmp_path / "calibration.yaml").write_text(calibration_text(table, "123"))
        for robot in (
            tangere.robot(name, calibration=tmp_path / "calibration.yaml"),
            tangere.robots.Robot(calibrated_by(load(name), table, "the controller")),
        ):
            for q in np.random.default_rng(seed).uniform(-3, 3, (20, 6)):
                # [m] angles below 1e-9 rad are read as none, six of them on a reach of 2 m
                assert np.abs(robot.pose(q) - chain(*given, q)).max() < 1.2e-8


def test_nominal_parameters_give_the_nominal_arm() -> None:
    dh = load("ur5e").dh
    table = dh_frames(load("ur5e"), np.zeros(6), dh.a, dh.d, dh.alpha)
    assert calibrated_by(load("ur5e"), table, "the controller") is not None
    assert calibrated_by(load("ur5e"), table, "the controller").dh is not None


def test_refusals() -> None:
    dh = load("ur5e").dh
    with pytest.raises(InvalidValue, match="standard DH"):
        dh_frames(load("pendulum"), *np.zeros((4, 1)))
    with pytest.raises(InvalidValue, match="6 finite numbers"):
        dh_frames(load("ur5e"), np.zeros(6), dh.a, dh.d, dh.alpha * np.nan)
    with pytest.raises(InvalidValue, match="last joint"):
        dh_frames(load("ur5e"), np.zeros(6), dh.a + 0.001, dh.d, dh.alpha)
    with pytest.raises(InvalidValue, match="another arm"):
        calibrated_by(
            load("ur5e"),
            dh_frames(load("ur10e"), np.zeros(6), *(load("ur10e").dh.a, load("ur10e").dh.d, load("ur10e").dh.alpha)),
            "x",
        )
