"""Bodies and tools of a scene: one family, whatever the shape, the contact law and whether it moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from test_mujoco_plant import DOWN, pressed

import tangere
from tangere.errors import InvalidValue
from tangere.plants import MujocoPlant
from tangere.plants.scene.bodies import Body, Box, Sphere, ball, pad, paper, surface, table, wall
from tangere.plants.scene.contacts import Contact, Rebound, Rigid, Spring
from tangere.plants.scene.scene import Block, Pen, Scene, Tool
from tangere.types import Command

pytest.importorskip("mujoco", reason="MuJoCo is not installed (extra sim)")

G = 9.81  # m/s2


def carrying(tool: Tool, body: Body) -> MujocoPlant:
    arm = tangere.robot("ur10e", tool=(0.0, 0.0, tool.length), payload=tool.payload(0.2))
    return MujocoPlant(arm, scene=Scene((body,), tool), record_contacts=True)


def below(tool: Tool) -> float:
    """m: a tenth of a millimetre under the tool's end in the pose DOWN."""
    return float(tangere.robot("ur10e", tool=(0.0, 0.0, tool.length)).pose(DOWN)[2, 3]) - 1e-4


def test_a_block_on_a_table_feels_what_it_presses() -> None:
    """A gripper-like box, flat on the table: 5 N are answered by 5 N, and the box does not tilt."""
    tool = Block()
    plant = carrying(tool, table(below(tool)))
    _, truth = pressed(plant, np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.0]))
    assert truth.wrench[2] == pytest.approx(5.0, abs=0.025)
    assert truth.T[2, 2] == pytest.approx(-1.0, abs=1e-6)
    assert truth.T[2, 3] == pytest.approx(below(tool), abs=1e-5)


def test_a_block_is_a_solid_box() -> None:
    load = Block((0.1, 0.2, 0.3)).payload(1.2)
    assert load.com == pytest.approx((0.0, 0.0, 0.15))
    assert np.diag(load.inertia) == pytest.approx((0.1 * (0.04 + 0.09), 0.1 * (0.01 + 0.09), 0.1 * (0.01 + 0.04)))
    for size in ((0.0, 0.1, 0.1), (0.1, 0.1, 2.0), (0.1, float("nan"), 0.1)):
        with pytest.raises(InvalidValue, match="every edge"):
            Block(size)


def test_a_box_may_fall_as_a_ball_does() -> None:
    """A free box with the contact of a ball: held, let go in time, at rest on the table with its own weight."""
    T = np.eye(4)
    T[:3, 3] = (1.0, 0.5, 0.25)
    box = Body("box", Box((0.2, 0.1, 0.06)), T, Rebound(3e4, damping_ratio=1.0), mass=2.0, release=0.1)
    plant = MujocoPlant(tangere.robot("ur10e"), scene=Scene((table(), box)))
    arm = plant.robot
    heights = []
    for _ in range(1500):
        plant.write(Command(arm.gravity_torque(plant.read().q)))
        heights.append(float(plant.data.qpos[8]))
    assert heights[99] == pytest.approx(0.25, abs=1e-12)
    # semi-implicit steps: h^2 n (n + 1) / 2 of free fall
    assert heights[249] == pytest.approx(0.25 - 0.5 * G * 1e-6 * 150 * 151, abs=1e-9)
    assert heights[-1] == pytest.approx(0.03, abs=1e-3)
    assert np.array(plant.model.body_inertia[-1]) == pytest.approx(
        2.0 / 12.0 * np.array((0.1**2 + 0.06**2, 0.2**2 + 0.06**2, 0.2**2 + 0.1**2))
    )


@dataclass(frozen=True)
class Sponge(Contact):
    """A contact law of one's own: MuJoCo's time constant, as soft as one likes."""

    friction_ratio: float = 1.0

    def solver(self, mass: float | None) -> tuple[tuple[float, float] | None, float]:
        return (0.1, 1.0), 0.5

    def tune(self, model: Any, geoms: Sequence[int], weight: float, what: str) -> None:
        model.geom_solimp[geoms[0], :2] = 0.6


def test_a_contact_law_is_one_class() -> None:
    """What the law writes and what it tunes are in the compiled model, nothing else knows of it."""
    tool = Pen()
    hard = table(below(tool))
    plant = carrying(tool, Body("sponge", hard.shape, hard.T, Sponge()))
    geom = plant.model.geom("sponge")
    assert geom.solref == pytest.approx((0.1, 1.0))
    assert geom.solimp[:2] == pytest.approx(0.6)
    asked = np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.0])
    depths = [
        below(tool) - float(pressed(p, asked)[1].T[2, 3]) for p in (plant, carrying(tool, hard))
    ]  # fmt: skip
    assert depths[0] > 100.0 * abs(depths[1])


def test_friction_is_as_stiff_as_the_law_that_asks_for_most() -> None:
    tool = Pen()
    soft, sheet = pad("hand", (0.0, 0.9, 0.5), (0.0, -1.0, 0.0)), paper(np.eye(4), (0.4, 0.4), 0.3, 2e4)
    arm = tangere.robot("ur10e", tool=(0.0, 0.0, tool.length), payload=tool.payload(0.2))
    for bodies, ratio in (((table(),), 1.0), ((table(), soft), 100.0), ((soft, sheet), 1000.0)):
        assert MujocoPlant(arm, scene=Scene(bodies, tool)).model.opt.impratio == ratio


def test_a_spring_is_tuned_to_the_arm() -> None:
    """solref is per kg of what meets: N/m times the inverse weight of the last link, as MuJoCo has it."""
    hand = pad("hand", (0.7, 0.1, 0.4), (0.0, 0.0, 1.0), 5e4, 40.0)
    plant = carrying(Pen(), hand)
    weight = float(plant.model.body_invweight0[6, 0])
    assert plant.model.geom("hand").solref == pytest.approx((-5e4 * weight, -40.0 * weight))


def test_bodies_stand_where_they_were_put() -> None:
    """Faces: the point in the face, z its normal, x horizontal; the slab behind it."""
    for body, thick in (
        (surface("s", (0.3, 0.2, 0.5), (1.0, 2.0, 2.0)), 0.05),
        (pad("p", (0.3, 0.2, 0.5), (1.0, 2.0, 2.0), size=(0.1, 0.2, 0.03)), 0.03),
    ):
        assert body.T[:3, 2] == pytest.approx(np.array((1.0, 2.0, 2.0)) / 3.0)
        assert body.T[2, 0] == pytest.approx(0.0)
        assert body.T[:3, :3].T @ body.T[:3, :3] == pytest.approx(np.eye(3))
        assert body.T[:3, 3] + 0.5 * thick * body.T[:3, 2] == pytest.approx((0.3, 0.2, 0.5))
    assert wall(0.8, 0.5).T[:3, 2] == pytest.approx((-np.cos(0.5), -np.sin(0.5), 0.0))
    assert ball("b", (1.0, 2.0, 3.0)).T[:3, 3] == pytest.approx((1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"mass": 0.0}, "mass 0.0"),
        ({"release": -1.0}, "release -1.0"),
        ({"friction": -0.1}, "friction -0.1"),
        ({"shape": Sphere(0.0)}, "radius 0.0"),
        ({"shape": Box((0.1, float("nan"), 0.1))}, "size nan"),
        ({"contact": Spring(0.0, 1.0)}, "stiffness 0.0"),
        ({"contact": Spring(1e3, -1.0)}, "damping -1.0"),
        ({"contact": Rigid(time_constant=0.0)}, "time_constant 0.0"),
        ({"T": np.eye(3)}, "4x4"),
    ],
)
def test_each_wrong_number_of_a_body_is_named(wrong: dict[str, Any], words: str) -> None:
    good = {"name": "x", "shape": Sphere(0.1), "T": np.eye(4), "contact": Rigid()}
    Body(**good)
    with pytest.raises(InvalidValue, match=words):
        Body(**(good | wrong))


def test_a_rebound_needs_a_mass() -> None:
    with pytest.raises(InvalidValue, match="has a mass"):
        MujocoPlant(tangere.robot("ur10e"), scene=Scene((Body("x", Sphere(0.1), np.eye(4), Rebound(1e3)),)))
