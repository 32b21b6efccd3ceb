"""The skin of an arm: patches lie on their shapes, normals point out, areas add up, nothing buried is left."""

from __future__ import annotations

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.model.link_shapes import Segment, _patches, link_shapes, link_surfaces

NAMES = ("ur3e", "ur10e", "ur20")


def distance(points, part):
    """Signed distance (m,) to the surface of a shape, negative inside: an oracle of its own."""
    a = (part.end - part.start) / np.linalg.norm(part.end - part.start)
    length = np.linalg.norm(part.end - part.start)
    h = (points - part.start) @ a
    off = points - part.start - np.outer(h, a)
    rho = np.sqrt(np.sum(off * off, axis=1))
    if part.round:
        return np.hypot(rho, h - np.clip(h, 0, length)) - part.radius
    d = np.stack((rho - part.radius, np.abs(h - length / 2) - length / 2))
    return np.minimum(d.max(axis=0), 0.0) + np.linalg.norm(np.maximum(d, 0.0), axis=0)


def nearest(model, surface, points):
    """Signed distance of points (link frame) to the union of the link's shapes."""
    T = model.joints[surface.link - 1].T_joint_link
    there = points @ T[:3, :3].T + T[:3, 3]
    return np.min([distance(there, part) for part in link_shapes(model)[surface.link - 1]], axis=0)


@pytest.mark.parametrize("name", NAMES)
def test_patches_lie_on_the_surface_with_normals_out_of_it(name):
    model = tangere.robot(name).model
    step = 2e-3  # m: larger than the 0.5 mm under which a face counts as covered
    for surface in link_surfaces(model):
        assert len(surface) > 50
        off = nearest(model, surface, surface.point)
        assert off.max() < 1e-12
        assert off.min() > -5e-4  # as deep as a point may lie in another shape of the link without being covered
        assert np.mean(off > -1e-12) > 0.95  # and that is at seams only
        assert nearest(model, surface, surface.point - step * surface.normal).max() < -0.5 * step
        # a step out meets another shape in the fold between two of them, nowhere else
        assert np.mean(nearest(model, surface, surface.point + step * surface.normal) > 0.5 * step) > 0.95
        frame = np.stack((surface.t1, surface.t2, surface.normal), axis=1)
        assert np.allclose(frame @ frame.swapaxes(1, 2), np.eye(3), atol=1e-12)
        assert np.allclose(np.linalg.det(frame), 1.0)


def test_the_curvature_keeps_a_step_along_the_tangents_on_the_surface(rng):
    model = tangere.robot("ur10e").model
    for surface in link_surfaces(model):
        x = rng.uniform(-4e-3, 4e-3, (len(surface), 2))
        bent = surface.point + x[:, :1] * surface.t1 + x[:, 1:] * surface.t2
        bent = bent - 0.5 * np.sum(surface.curvature * x * x, axis=1)[:, None] * surface.normal
        # fourth order: x^4 / (8 r^3) = 0.9 um for 5.7 mm on a radius of 41 mm cubed; flat would be 0.2 mm off. Patches
        # at an edge step over it: they are the few with more.
        off = np.abs(nearest(model, surface, bent))
        assert np.median(off) < 1e-6
        assert np.mean(off < 2e-6) > 0.7


@pytest.mark.parametrize("round_ends", [False, True])
def test_the_patches_of_a_shape_have_its_area(round_ends):
    part = Segment("tube", np.array((0.1, 0.2, 0.3)), np.array((0.1, -0.1, 0.7)), 0.05, round=round_ends)
    rows = _patches(part, 0.01)
    area = np.sum(rows[:, 11] * rows[:, 12])
    expected = 2 * np.pi * 0.05 * (0.5 + (2 * 0.05 if round_ends else 0.05))
    # the middle rule over a meridian errs by (pi/2/bands)^2 / 24 of the ends, 1.6e-3 with 8 bands; discs are exact
    assert area == pytest.approx(expected, rel=1e-3)


def test_the_area_hardly_depends_on_the_spacing():
    model = tangere.robot("ur10e").model
    coarse, fine = (np.array([s.area.sum() for s in link_surfaces(model, h)]) for h in (0.02, 0.005))
    # a seam where two shapes meet is cut along patches: half a patch along seams of one or two circumferences
    assert np.allclose(coarse, fine, rtol=0.08)


def test_a_tool_is_part_of_the_last_link():
    bare = link_surfaces(tangere.robot("ur10e").model)
    tool = link_surfaces(tangere.robot("ur10e", tool=[0.0, 0.0, 0.2]).model)
    assert [len(s) for s in bare[:5]] == [len(s) for s in tool[:5]]
    assert len(tool[5]) > len(bare[5])
    assert bare[5].point[:, 2].max() == pytest.approx(0.0, abs=1e-12)  # the flange's face
    assert 0.2 < tool[5].point[:, 2].max() <= 0.2 + 0.03 + 1e-12  # the rod's round end


@pytest.mark.parametrize("spacing", [0.0, -1.0, np.nan, 1.0])
def test_an_impossible_spacing_is_refused(spacing):
    with pytest.raises(InvalidValue, match="spacing"):
        link_surfaces(tangere.robot("ur10e").model, spacing)
