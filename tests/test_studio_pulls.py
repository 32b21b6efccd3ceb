"""Pulls as a mouse makes them, on random points that are seen, without a browser: felt at once, and named rightly."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from studio_browser import nearest_hit

import tangere
from tangere.plants.pull import Pull
from tangere.studio.meshes import arm_meshes
from tangere.studio.settings import WorldSettings
from tangere.studio.stage import sentence
from tangere.studio.world import built
from tangere.types import Event

SOAK = bool(os.environ.get("TANGERE_SOAK"))
PULLS = 200 if SOAK else 20
FORCE = 60.0  # [N]
START = 0.3  # [s] when the hand pulls


class Once:
    """A hand that pulls once."""

    def __init__(self, pull):
        self.pull = pull

    def take(self, time):
        return [self.pull] if START <= time < START + 1e-3 else []


class Seen:
    """The arm as the page first shows it: which point of which link is seen from there."""

    def __init__(self, q):
        self.arm = tangere.robot("ur10e")
        self.meshes = arm_meshes(self.arm.model)
        self.links = self.arm.link_poses(q)
        self.joints = self.links @ np.stack([np.linalg.inv(joint.T_joint_link) for joint in self.arm.model.joints])
        reach = float(np.linalg.norm(self.arm.link_poses(np.zeros(6))[-1][:3, 3]))
        self.eye = reach * np.array((1.05, -1.1, 0.85))
        ahead = reach * np.array((0.1, 0.0, 0.3)) - self.eye
        self.ahead = ahead / np.linalg.norm(ahead)

    def point(self, rng, link):
        """A point (3,) of the link's surface that nothing hides, every m2 as likely as any other."""
        T = self.joints[link - 1]
        corners = np.concatenate([mesh.vertices[mesh.faces] for mesh in self.meshes[link].values()])
        sides = corners[:, 1:] - corners[:, :1]
        area = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
        while True:
            chosen = corners[rng.choice(len(area), p=area / area.sum())]
            point = T[:3, :3] @ (rng.dirichlet((1.0, 1.0, 1.0)) @ chosen) + T[:3, 3]
            far = float(np.linalg.norm(point - self.eye))
            way = (point - self.eye) / far
            met = [nearest_hit(self.meshes[i + 1], self.joints[i], self.eye, way) for i in range(6)]
            if int(np.argmin(met)) == link - 1 and abs(min(met) - far) < 1e-3:
                return point

    def pull(self, rng, link):
        """60 N at such a point, any way in the plane of the screen."""
        point = self.point(rng, link)
        way = np.cross(self.ahead, rng.normal(size=3))
        T = self.links[link - 1]
        held = T[:3, :3].T @ (point - T[:3, 3])
        target = point + 0.1 * way / np.linalg.norm(way)
        return Pull(link, tuple(held.tolist()), tuple(target.tolist()), stiffness=5000.0, force_max=FORCE)


def test_pulls_are_felt_at_once_and_four_of_five_that_are_named_are_right():
    rng = np.random.default_rng(2027)
    seen = Seen(built(WorldSettings()).start)
    late, named, right = [], 0, 0
    for k in range(PULLS):
        world, link = built(WorldSettings()), 3 + k % 4
        result = tangere.run(
            world.plant, world.controller, world.observer, detector=world.detector, start=world.start, until=1.2,
            live=Once(seen.pull(rng, link)),
        )  # fmt: skip
        event = result.events[0]
        assert event.alarm
        late.append(event.time_s - START)  # 60 N from there on: no later than the force passes any limit
        if event.link is None:
            assert event.why_no_link
            assert "cannot tell which link" in sentence(event, seen.arm)
            continue
        assert event.link_probability >= 0.84
        named += 1
        right += event.link == link and abs(event.force_n - FORCE) < 0.2 * FORCE
    print(f"{PULLS} pulls: latest {max(late):.3f} s, {named} named, {right} of them right")
    assert max(late) < 0.1
    assert named > 0.5 * PULLS  # who never answers is never wrong
    assert right >= 0.8 * named, (named, right)


def test_the_sentence_of_an_event_states_the_force_between_its_ends_or_which_links_it_may_be():
    arm = tangere.robot("ur10e")
    known = Event.sample(1.0, 2, np.array((0.0, 12.0, 0.0, 0.0, 0.0, 0.0)), kind="collision")
    one = replace(known, link=5, link_probability=0.98, force=np.array((0.0, 60.0, 0.0)), force_interval_n=(51.0, 71.0))
    assert sentence(one, arm).endswith("link 5 (98%), 60 N (51 to 71)")
    many = replace(known, why_no_link="ambiguous", links=((3, 0.64), (4, 0.32), (None, 0.02)))
    assert sentence(many, arm).endswith("cannot tell which link, ambiguous: link 3 64 % or link 4 32 %")
    two = replace(known, why_no_link="not one push", links=((None, 0.75), (5, 0.23)))
    assert sentence(two, arm).endswith("cannot tell which link, not one push 75 % or link 5 23 %")
    weak = replace(known, why_no_link="too weak", links=())
    assert sentence(weak, arm).endswith("cannot tell which link, too weak")


def test_units_follow_the_joint():
    """The fourth joint of a SCARA slides: it is felt in N, and stands in m."""
    arm = tangere.robot("scara")
    sliding = [joint for joint in (1, 2, 3, 4) if not arm.revolute[joint - 1]]
    assert sliding == [4]
    for joint, unit in ((1, "Nm"), (4, "N")):
        assert sentence(Event.sample(1.0, joint, np.full(4, 12.0)), arm).endswith(f"joint {joint}, 12.0 {unit}")
    pytest.importorskip("viser", reason="viser is not installed: pip install 'tangere[studio]'")
    from tangere.studio.show import show

    q = np.tile(np.zeros(4), (100, 1))
    log = tangere.Log({"time": 1e-2 * np.arange(100), "q": q, "residual": q})
    shown = show(log, robot="scara", browser=False)
    try:
        titles = [curves.plot.title for curves, *_ in shown.page.plots]
    finally:
        shown.close()
    assert titles == ["external torque felt [Nm, joint 4: N]", "joint positions [rad, joint 4: m]"]
