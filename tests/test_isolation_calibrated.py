"""Claimed probabilities of links are honest on arms whose masses and friction are not as believed; impacts and pushes.

A judge: contacts drawn on the skin of a moving arm, what the observer's input shows of them, what isolation claims. In
each tenth of claimed probability the share that is right must lie within its interval. TANGERE_SOAK=1: many more.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

import tangere
from tangere.apps.study.statistics import rate
from tangere.observe.detect.past import Samples
from tangere.observe.detect.refine import STRONGEST, Gathered, Refiner
from tangere.observe.isolation import ContactIsolator
from tangere.observe.isolation_added import NOISE, added
from tangere.plants.random_pushes import RandomPushes
from tangere.robots import Robot
from tangere.types import Array, Event

SOAK = os.environ.get("TANGERE_SOAK") == "1"
H = 0.004  # [s]
SPREAD = np.array([1.0, 0.9, 0.4, 0.12, 0.17, 0.12])  # [Nm]: a UR10e at 500 Hz
BELIEVED = tangere.robot("ur10e")
ISOLATOR = ContactIsolator(BELIEVED)
WRONG = 0.999999  # Wilson intervals of the judge below, all tenths together: none outside by chance


def _moving(rng: np.random.Generator, during: float) -> tuple[Array, Array, Array, Array]:
    time = H * np.arange(-250, round((during + 0.1) / H) + 1)
    rate_, size, phase = rng.uniform(0.5, 2.0, 6), rng.uniform(0.1, 0.6, 6), rng.uniform(0.0, 6.28, 6)
    angle = rate_ * time[:, None] + phase
    q = rng.uniform(-3.0, 3.0, 6) + size * np.sin(angle)
    return time, q, size * rate_ * np.cos(angle), -size * rate_**2 * np.sin(angle)


def _felt(rng: np.random.Generator, link: int, point: Array, direction: Array, impact: bool) -> tuple[Samples, float]:
    """What an observer has as its input, and the force [N]; masses 10 %, friction 1 spread off, the onset is 0."""
    lasts = float(np.exp(rng.uniform(np.log(0.01), np.log(0.04)) if impact else rng.uniform(np.log(0.15), 0.0)))
    force = float(np.exp(rng.uniform(np.log(0.5), np.log(3.0)))) / lasts if impact else float(rng.uniform(15.0, 150.0))
    time, q, qd, qdd = _moving(rng, lasts)
    scaled = zip(BELIEVED.model.links, 1.0 + 0.1 * rng.standard_normal(6), strict=True)
    links = tuple(replace(body, mass=body.mass * x, inertia=body.inertia * x) for body, x in scaled)
    true = Robot(replace(BELIEVED.model, links=links), np.zeros(6))
    y = Robot(BELIEVED.model, np.zeros(6)).inverse_dynamics(q, qd, qdd) - true.inverse_dynamics(q, qd, qdd)
    y += SPREAD * rng.standard_normal(6) * np.tanh(qd / 0.02) + SPREAD * rng.standard_normal(6)
    y += NOISE * SPREAD / np.sqrt(H) * rng.standard_normal(q.shape)
    on = (time > 0.5 * H) & (time <= lasts + 0.5 * H)
    J = BELIEVED.jacobian(q[on], link=link, point=point)
    R = BELIEVED.link_poses(q[int(np.argmax(on))])[link - 1][:3, :3]
    y[on] += np.einsum("i,kij->kj", force * R @ direction, J[:, :3])
    return Samples(time, y, y, q, np.zeros_like(q), qd), force


def _claims(count: int, impact: bool, seed: int) -> tuple[list[tuple[float, bool]], list[bool]]:
    """Claimed probability and whether it is right, of the likeliest link; whether the force's interval holds it."""
    drawn = RandomPushes(force=1.0)
    push = drawn.drawn(drawn.skin(BELIEVED.model), seed, np.arange(count))
    rng = np.random.default_rng(seed)
    claims, held = [], []
    for i in range(count):
        link = int(push.link[i])
        seen, force = _felt(rng, link, push.point[i], push.force[i], impact)
        best = added(BELIEVED, seen.time, seen.raw, seen.q, seen.qd, 0.0, SPREAD)
        assert best is not None
        found = ISOLATOR.isolate(best.q, best.torque, best.covariance)
        if found.reason == "too weak":
            continue
        first = found if found.link is not None else found.alternatives[0]
        claims.append((first.probability, first.link == link))
        if first.link == link:
            low, high = first.force_range[0] * best.stretch[0], first.force_range[1] * best.stretch[1]
            held.append(low <= force <= high)
    return claims, held


@pytest.mark.parametrize("impact", [True, False])
def test_probabilities_of_links_are_honest(impact: bool) -> None:
    claims, held = _claims(3000 if SOAK else 150, impact, 4)
    assert len(claims) > (1500 if SOAK else 75)
    for low in np.arange(0.0, 1.0, 0.1).tolist():
        mine = [(p, right) for p, right in claims if low <= p < low + 0.1 or (low > 0.85 and p >= low)]
        if mine:
            seen = rate(sum(right for _, right in mine), len(mine), WRONG if not SOAK else 0.99)
            claimed = float(np.mean([p for p, _ in mine]))
            assert seen.low <= claimed <= seen.high, (low, claimed, seen)
    assert rate(sum(held), len(held), 0.99).high >= 0.95
    assert np.mean(held) > 0.85


def test_a_force_that_no_hand_has_is_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A press of 320 N on the shoulder, which one joint feels a little: nobody knows. The same on the tool is named."""
    q = np.array([0.4, -1.2, 1.4, -0.8, 0.9, 0.3])
    time = H * np.arange(-250, 126)
    rows = np.tile(q, (len(time), 1))
    told = {}
    for link in (1, 6):
        surface = ISOLATOR.surfaces[link - 1]
        R = BELIEVED.link_poses(q)[link - 1][:3, :3]
        aside = -surface.normal + 0.45 * surface.t1  # within the cone of friction
        J = BELIEVED.jacobian(q, link=link, point=surface.point)[:, :3]
        torques = np.einsum("pi,pij->pj", 320.0 * aside @ R.T, J)
        y = np.where(time[:, None] > 0.5 * H, torques[int(np.argmax(np.linalg.norm(torques, axis=1)))], 0.0)
        parts = [Samples(time[k], y[k], y[k], rows[k], y[k], 0.0 * rows[k]) for k in (slice(250), slice(250, None))]
        event = Event.sample(0.01, link, y[-1], onset_s=0.0)
        # only the link that was pressed, so that no weaker push elsewhere explains it
        monkeypatch.setattr(ISOLATOR, "surfaces", [surface])
        refiner = Refiner(BELIEVED, ISOLATOR, np.zeros(6), 0.0)
        told[link] = refiner.refine(Gathered(event, np.zeros(6), 0.1 * SPREAD, 9.0, False, *parts))
        monkeypatch.undo()
    shoulder, tool = told.values()
    assert (shoulder.link, shoulder.force, shoulder.why_no_link) == (None, None, "stronger than a hand")
    assert shoulder.links[0][0] == 1
    assert (tool.link, tool.why_no_link) == (6, "")
    assert tool.force_n is not None
    assert tool.force_n > STRONGEST
    assert tool.point_spread_m is not None
