"""How far links may leave the data sheet, and what a payload's uncertainty owes to them."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

import tangere
from tangere import Robot
from tangere.identification import Motion, around_fit, identify
from tangere.identification.around_fit import CHOICES, chosen_link_sigma
from tangere.identification.samples import windows
from tangere.model.model import Payload

COULOMB, VISCOUS = np.array([16.0, 16.0, 7.0, 2.8, 3.4, 2.7]), np.array([20.0, 18.0, 9.0, 3.5, 2.2, 3.0])
NOISE = np.array([2.3, 2.0, 0.9, 0.29, 0.43, 0.30])  # Nm per sample of a UR10e at 100 Hz


def _arm(change: float, seed: int, payload: Payload | None = None) -> Robot:
    """A UR10e whose links weigh up to `change` (relative standard deviation) more or less than the data sheet's."""
    rng, base = np.random.default_rng(seed), tangere.robot("ur10e")
    links = [dataclasses.replace(link, mass=link.mass * np.exp(change * rng.normal())) for link in base.model.links]
    return Robot(dataclasses.replace(base.model, links=tuple(links), payload=payload), base.drives.rotor_inertia)


def _log(arm: Robot, seed: int, seconds: float) -> Motion:
    """Sums of sines at 100 Hz with the noise of a UR10e."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 0.01)
    rate, phase, size = rng.uniform(0.4, 1.6, (4, 6)), rng.uniform(0.0, 6.28, (4, 6)), rng.uniform(0.1, 0.35, (4, 6))
    angle = t[:, None, None] * rate + phase
    q = np.array([0.0, -1.2, 1.0, -0.5, 0.8, 0.0]) + (size * np.sin(angle)).sum(axis=1)
    qd, qdd = (size * rate * np.cos(angle)).sum(axis=1), -(size * rate**2 * np.sin(angle)).sum(axis=1)
    tau = arm.inverse_dynamics(q, qd, qdd) + COULOMB * np.tanh(qd / 0.01) + VISCOUS * qd
    return Motion(t, q, qd + 0.002 * rng.normal(size=q.shape), tau + NOISE * rng.normal(size=q.shape))


def test_what_cancels_on_paper_is_no_evidence() -> None:
    """Joint 1 feels nothing of link 2's inertia about joint 2's axis: 1e-16 there, scaled up, moved friction by 7 %."""
    arm = tangere.robot("ur10e")
    Y = np.abs(windows(arm, [_log(arm, 5, 8.0)]).Y)
    assert np.all(Y[:, 0, 19] == 0.0)
    assert np.all((Y == 0.0) | (Y > 1e-14))


def _choice(change: float) -> float:
    base = tangere.robot("ur10e")
    fit = sys.modules["tangere.identification.identify_motions"]._answer
    solution, problem = fit(base, windows(base, [_log(_arm(change, 3), 5, 30.0)]), "links")
    return chosen_link_sigma(problem, solution, 6)


def test_an_arm_like_its_data_sheet_keeps_it_and_another_leaves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between 0.1 and 0.3 half a minute outweighs either prior; between a thousandth and 0.3 the choice is clear."""
    assert _choice(0.0) == CHOICES[0]
    monkeypatch.setattr(around_fit, "CHOICES", (0.001, 0.3))
    assert _choice(0.0) == 0.001
    assert _choice(0.2) == 0.3


def test_too_short_to_judge_takes_the_narrowest() -> None:
    base = tangere.robot("ur10e")
    fit = sys.modules["tangere.identification.identify_motions"]._answer
    solution, problem = fit(base, windows(base, [_log(base, 5, 8.0)]), "links")
    assert chosen_link_sigma(problem, solution, 6) == CHOICES[0]


def test_a_payload_is_not_more_certain_than_the_links_before_it() -> None:
    """Links 8 % off the sheet: the error of the payload is that of the links, not that of the noise."""
    error, sigma = [], []
    for seed in (1, 2, 3, 4):
        arm = _arm(0.08, seed, Payload(2.0, np.array([0.01, 0.02, 0.06])))
        model = identify(tangere.robot("ur10e"), [_log(arm, 10 + seed, 15.0)], inertial="payload")
        assert model.payload is not None
        error.append(model.payload.mass - 2.0)
        sigma.append(model.sigma[model.parameters.index("link 6 m")])
    share = np.abs(error) / sigma
    assert np.all(share < 3.0)
    assert np.max(sigma) < 1.0  # kg: wide, not useless
    assert np.linalg.eigvalsh(model.covariance[50:54, 50:54]).min() > 0.0
    # without what links and gains may be off it would be more certain than it is wrong
    assert np.sqrt(np.mean(share**2)) < 1.0
    assert np.min(sigma) > 0.2  # kg; noise alone gives some 0.05
