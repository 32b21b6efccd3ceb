"""Figures of the documents: what is drawn is what is computed."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tangere
from tangere.apps.textbook import sketches
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
    from tangere.apps.textbook.coordinates import coordinates

    ends = [
        drawn_lines(sketches.coordinates_sketch(system, coordinates(system, p)), "strong")[0][-2:]
        for system in ("cartesian", "cylindrical", "spherical")
    ]
    assert ends[0] == ends[1] == ends[2]


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
    loops = sketches.computed_torque_sketch()
    assert len(drawn_lines(loops, "strong")) == 2
    assert loops.svg.count("loop:") == 2
    hold = tangere.robot("pendulum").gravity_torque([0.6])[0]
    assert f"g(q) = {hold:.2f} Nm" in sketches.pendulum_sketch(0.6).svg
