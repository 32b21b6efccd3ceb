"""Figures of the documents: what is drawn is what is computed."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tangere
from tangere.apps.textbook import sketches
from tangere.apps.textbook.coordinates import System, coordinates
from tangere.errors import InvalidValue
from tangere.figures.plots import Figure
from tangere.model.conventions import document_frames

Q = np.radians([20.0, -75.0, 100.0, -115.0, -90.0, 15.0])


def drawn_lines(figure: Figure, ink: str) -> list[list[float]]:
    """Coordinates [px] of the lines of one ink."""
    found = re.findall(rf'<path d="([^"]*)"[^>]*stroke="{sketches.INK[ink]}"', figure.svg)
    return [[float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", d)] for d in found]


@pytest.mark.parametrize("document", ["000", "001", "002"])
def test_frames_end_at_the_flange_and_are_named(document: str) -> None:
    arm = tangere.robot("ur10e")
    dh = arm.model.dh
    assert dh is not None
    T = document_frames(document, Q, float(dh.a[1]), float(dh.a[2]), dh.d)
    assert np.allclose(T[-1, :3, 3], arm.link_poses(Q)[-1, :3, 3], atol=1e-15)
    text = sketches.frames_figure(arm, Q, document).svg
    assert all(f">{i}</text>" in text for i in range(7))
    with pytest.raises(InvalidValue, match="UR arms"):
        sketches.frames_figure(tangere.robot("planar3r"), [0.1, 0.2, 0.3], document)


def test_centres_of_mass_are_named() -> None:
    text = sketches.centres_figure(tangere.robot("ur5e"), Q).svg
    assert all(f">c{i}</text>" in text for i in range(1, 7))


def test_a_point_is_where_its_coordinates_say() -> None:
    """The same point in three systems ends the arrow at the same pixel."""
    p = np.array([0.8, 0.6, 0.7])
    ends = [
        drawn_lines(sketches.coordinates_sketch(system, coordinates(system, p)), "strong")[0][-2:]
        for system in ("cartesian", "cylindrical", "spherical")
    ]
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize(("system", "letters"), [
    ("cartesian", "xyz"), ("cylindrical", "ρθz"), ("spherical", "rθφ"),
])  # fmt: skip
def test_coordinates_are_labelled_and_angles_are_arcs(system: System, letters: str) -> None:
    """Every coordinate has its letter; an arc is as long as its angle and ends on the plane or ray that it shows."""
    chi = (1.3, 0.9, 0.7)
    figure = sketches.coordinates_sketch(system, chi)
    assert all(f">{x}</text>" in figure.svg for x in letters)
    arcs = [np.reshape(line, (-1, 2)) for line in drawn_lines(figure, "strong")[1:]]
    angles = {"cartesian": 0, "cylindrical": 1, "spherical": 2}[system]
    assert len(arcs) == angles
    if angles:  # theta begins on i and ends above the foot of the point
        foot = sketches._flat([[np.cos(0.9), np.sin(0.9), 0.0]])[0] - sketches._flat([np.zeros(3)])[0]
        for place, towards in ((0, [-0.55, 0.45]), (-1, foot)):
            ray = arcs[0][place] - sketches._flat([np.zeros(3)])[0]
            assert abs(ray[0] * towards[1] - ray[1] * towards[0]) < 0.1 * np.linalg.norm(towards)  # tenths of a pixel
    if angles == 2:  # phi begins on k and ends on r
        x0, y0, x1, y1 = drawn_lines(figure, "strong")[0]
        assert abs(arcs[1][0][0] - x0) < 0.1
        ray, r = arcs[1][-1] - [x0, y0], np.array([x1 - x0, y1 - y0])
        assert abs(ray[0] * r[1] - ray[1] * r[0]) < 0.1 * np.linalg.norm(r)


def test_the_mapping_is_the_arms() -> None:
    """The loop in task space is where the tool is; the velocity there is tangent to it."""
    arm, q = tangere.robot("planar3r"), np.array([0.5, 0.9, 0.4])
    figure = sketches.mapping_sketch(arm, q)
    here, there = (np.reshape(x, (-1, 2)) for x in drawn_lines(figure, "line") if len(x) > 100)
    for k in (0, 20, 50):
        dq = (here[k] - here[0]) * [1, -1] / sketches.SCALE
        moved = arm.pose(q + [0.45 + dq[0], dq[1], 0.0]) - arm.pose(q + [0.45, 0.0, 0.0])
        drawn = (there[k] - there[0]) * [1, -1] / sketches.SCALE / sketches.GROWN
        assert np.allclose(drawn, moved[[0, 2], 3], atol=2e-3)  # tenths of a pixel
    x0, y0, x1, y1 = drawn_lines(figure, "strong")[1]
    along = there[10] - there[8]
    assert np.allclose([x0, y0], there[9])
    assert abs(along[0] * (y1 - y0) - along[1] * (x1 - x0)) < 0.05 * np.linalg.norm(along) * np.hypot(x1 - x0, y1 - y0)


def test_a_body_s_point_is_the_sum_of_two_ways() -> None:
    AB, BP, AP = (np.reshape(x, (2, 2)) for x in drawn_lines(sketches.body_sketch(), "strong"))
    assert np.allclose(AP[1] - AP[0], (AB[1] - AB[0]) + (BP[1] - BP[0]), atol=0.2)
    turned = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]]) @ [0.45, 0.35]
    assert np.allclose((BP[1] - BP[0]) * [1, -1] / sketches.SCALE, turned, atol=2e-3)


def test_projected_weights_are_gravity_s_torque() -> None:
    arm, q = tangere.robot("planar3r"), (0.4, 0.5, 0.3)
    words = ", ".join(f"{x:.2f}" for x in arm.gravity_torque(q))
    assert f"= ({words}) Nm" in sketches.projected_sketch(arm, q).svg


def test_a_virtual_displacement_is_the_jacobian_s() -> None:
    arm, q, dq = tangere.robot("planar3r"), np.array([0.4, 0.5, 0.3]), 0.01
    x0, y0, x1, y1 = drawn_lines(sketches.virtual_displacement_sketch(arm, q, 2, dq), "strong")[0]
    moved = arm.pose(q + [0.0, dq, 0.0])[:3, 3] - arm.pose(q)[:3, 3]
    drawn = np.array([x1 - x0, y0 - y1]) / sketches.SCALE
    assert np.allclose(drawn, moved[[0, 2]], atol=2e-3)  # tenths of a pixel, and dq^2


def test_the_other_sketches_draw() -> None:
    arm = tangere.robot("planar3r")
    assert len(drawn_lines(sketches.action_sketch((-0.5, 0.5)), "faint")) == 2
    assert len(drawn_lines(sketches.floating_base_sketch(arm, (0.3, 0.6, -0.4)), "strong")) == 2
    assert all(f">{x}</text>" in sketches.scara_sketch().svg for x in "αβγζ")
    assert sketches.dynamics_sketch().svg.count("<rect") == 2
    loops = sketches.computed_torque_sketch()
    assert len(drawn_lines(loops, "strong")) == 2
    assert loops.svg.count("loop:") == 2
    assert all(f">{x}</text>" in sketches.pendulum_sketch().svg for x in "θℓ")
    hold = tangere.robot("pendulum").gravity_torque([0.6])[0]
    assert f"g(q) = {hold:.2f} Nm" in sketches.pendulum_sketch(0.6).svg
