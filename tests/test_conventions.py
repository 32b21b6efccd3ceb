"""Seed (modified DH) and 002 conventions against official DH: joint maps, frames, bodies."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import frames

from tangere.errors import InvalidValue
from tangere.model.conventions import (
    document_frames,
    flipped_elbow_forward,
    flipped_elbow_from_official,
    official_from_flipped_elbow,
    official_from_seed,
    official_links,
    seed_forward,
    seed_from_official,
    seed_link_transforms,
)
from tangere.model.loading import load

D = (0.1807, 0.0, 0.0, 0.17415, 0.11985, 0.11655)  # official UR10e
A2, A3 = 0.6127, 0.57155
B = (0.3, -1.1, 1.4, -0.9, 0.7, -0.4)  # golden configuration B


def test_seed_angles_of_configuration_b() -> None:
    """The golden file's ten digits."""
    negative = (0.3, -2.6707963268, 1.4, -2.4707963268, 0.7, -3.5415926536)
    positive = (0.3, 0.4707963268, 1.4, 0.6707963268, 0.7, -3.5415926536)
    np.testing.assert_allclose(seed_from_official(B, a_positive=False), negative, atol=5e-11)
    np.testing.assert_allclose(seed_from_official(B, a_positive=True), positive, atol=5e-11)


@pytest.mark.parametrize(("sign", "z6"), [(-1.0, -0.8837), (1.0, 1.4848)])
def test_seed_zero_pose(sign: float, z6: float) -> None:
    """a < 0 hangs straight down, a > 0 stands straight up; y6 = -0.2907 in both."""
    p = seed_forward(np.zeros(6), sign * A2, sign * A3, D)[5, :3, 3]
    np.testing.assert_allclose(p, (0.0, -0.2907, z6), atol=1e-12)


@pytest.mark.parametrize("positive", [False, True])
def test_d_joins_the_frames_everywhere(positive: bool, rng: np.random.Generator) -> None:
    """0_iT_official = 0_iT_seed D_i for all links at random angles, in a batch; 1e-14: six products of O(1)."""
    sign = 1.0 if positive else -1.0
    model = load("ur10e")
    Q = rng.uniform(-2 * np.pi, 2 * np.pi, (4, 5, 6))
    seed = seed_forward(seed_from_official(Q, a_positive=positive), sign * A2, sign * A3, D)
    assert seed.shape == (4, 5, 6, 4, 4)
    official = seed @ seed_link_transforms(sign * A2, sign * A3)
    for index in np.ndindex(4, 5):
        np.testing.assert_allclose(official[index], frames(model, Q[index])[1], atol=1e-14)
    np.testing.assert_allclose(official_from_seed(seed_from_official(Q, a_positive=positive), a_positive=positive), Q)


def test_closed_form_of_001(rng: np.random.Generator) -> None:
    """Position of frame 6 in closed form (001, with d1 and d6 added), seed angles."""
    for q in rng.uniform(-np.pi, np.pi, (20, 6)):
        s1, c1, s5, c5 = np.sin(q[0]), np.cos(q[0]), np.sin(q[4]), np.cos(q[4])
        q23, q234 = q[1] + q[2], q[1] + q[2] + q[3]
        r = A2 * np.sin(q[1]) + A3 * np.sin(q23) + D[4] * np.sin(q234)
        x = D[3] * s1 - c1 * r + D[5] * (c1 * np.cos(q234) * s5 + s1 * c5)
        y = -D[3] * c1 - s1 * r + D[5] * (s1 * np.cos(q234) * s5 - c1 * c5)
        z = D[0] + A2 * np.cos(q[1]) + A3 * np.cos(q23) + D[4] * np.cos(q234) + D[5] * np.sin(q234) * s5
        np.testing.assert_allclose(seed_forward(q, A2, A3, D)[5, :3, 3], (x, y, z), atol=1e-14)


def test_official_bodies_in_seed_frames() -> None:
    """000 table 3 should have read (a < 0): these centres of mass; the way back returns the official links."""
    links = load("ur10e").links
    right = [(0.021, -0.027, 0), (-0.2327, 0, 0.158), (-0.33155, 0, 0.068)]
    right += [(0, 0.018, 0.007), (0, -0.018, -0.007), (0, 0, -0.026)]
    from tangere.model.inertia import moved

    seed = [moved(link, D_i) for link, D_i in zip(links, seed_link_transforms(-A2, -A3), strict=True)]
    np.testing.assert_allclose([link.com for link in seed], right, atol=1e-15)
    for link, back in zip(links, official_links(seed, -A2, -A3), strict=True):
        np.testing.assert_allclose(back.com, link.com, atol=1e-15)
        np.testing.assert_allclose(back.inertia, link.inertia, atol=1e-16)


def test_002_is_the_same_mechanism(rng: np.random.Generator) -> None:
    """002's own D-H chain (alpha -90 180 180 -90 90 0) equals Rz(180) times the official chain at the mapped angles."""
    a = (0.0, -0.6127, -0.5716, 0.0, 0.0, 0.0)
    d = (0.128, 0.176, 0.1639, 0.1518, 0.1157, 0.1922)
    alpha, offset = np.deg2rad((-90, 180, 180, -90, 90, 0)), np.deg2rad((0, 90, 0, 90, 0, 0))
    model = load("ur10", parameters="002")
    for q in [np.zeros(6), *rng.uniform(-np.pi, np.pi, (20, 6))]:
        T = np.eye(4)
        for i in range(6):
            c, s, ca, sa = np.cos(q[i] + offset[i]), np.sin(q[i] + offset[i]), np.cos(alpha[i]), np.sin(alpha[i])
            step = [[c, -s * ca, s * sa, a[i] * c], [s, c * ca, -c * sa, a[i] * s], [0, sa, ca, d[i]], [0, 0, 0, 1]]
            T = T @ np.array(step)
        official = frames(model, official_from_flipped_elbow(q))[1][-1] @ model.T_flange_tcp
        np.testing.assert_allclose(T, np.diag((-1.0, -1.0, 1.0, 1.0)) @ official, atol=1e-14)
        np.testing.assert_allclose(flipped_elbow_from_official(official_from_flipped_elbow(q)), q, atol=1e-15)
        np.testing.assert_allclose(flipped_elbow_forward(q, a[1], a[2], d)[-1], official, atol=1e-14)


@pytest.mark.parametrize("document", ["000", "001", "002"])
def test_a_documents_frames_turn_about_the_axes_of_the_arm_and_end_at_its_flange(
    document: str, rng: np.random.Generator
) -> None:
    """Every joint's axis is a z axis of the document's frames, and its last frame turns with the last link."""
    model = load("ur10e")
    for q in rng.uniform(-np.pi, np.pi, (20, 6)):
        own = np.array(frames(model, q)[1])
        found = document_frames(document, q, -A2, -A3, D)
        np.testing.assert_allclose(found[5, :3, 3], own[5, :3, 3], atol=1e-12)
        axes = [np.array((0.0, 0.0, 1.0)), *own[:5, :3, 2]]
        # modified DH: frame i turns about its own z; standard DH: about that of the frame before
        theirs = [np.array((0.0, 0.0, 1.0)), *found[:5, :3, 2]] if document == "002" else list(found[:, :3, 2])
        for i, (axis, z) in enumerate(zip(axes, theirs, strict=True)):
            assert abs(axis @ z) == pytest.approx(1.0, abs=1e-12), (i, document)
        for i in range(6):  # fixed to its link: what link i does not carry along does not move it
            later = q.copy()
            later[i + 1 :] += 0.5
            np.testing.assert_allclose(document_frames(document, later, -A2, -A3, D)[i], found[i], atol=1e-12)
    with pytest.raises(InvalidValue, match="000, 001 or 002"):
        document_frames("003", np.zeros(6), -A2, -A3, D)


def test_misuse() -> None:
    with pytest.raises(InvalidValue, match="6 joints"):
        official_from_seed([0.0] * 5, a_positive=True)
    with pytest.raises(InvalidValue, match="same sign"):
        seed_link_transforms(-0.6, 0.5)
    with pytest.raises(InvalidValue, match="6 links"):
        official_links([], -0.6, -0.5)
