"""The documents' own parameter sets: each has the model mismatch it is known for, and the impossible is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oracles import mass_matrix, pinocchio_model, tcp_pose

from tangere.errors import ModelFileError, UnphysicalModel
from tangere.model.conventions import official_links, seed_link_transforms
from tangere.model.loading import load, parameter_sets
from tangere.model.model import Array, Link, Model

# The mean and the largest deviation from the official set over random configurations: |dM| (Frobenius, mean), relative
# |dM| (largest), |dG| (mean), |dG| per joint (largest).
TABLE = {
    "000-C": (3.072, 1.20, 54.0, 101.3),
    "000-D": (1.049, 0.35, 12.4, 22.7),
    "000-E": (0.724, 0.215, 0.18, 0.24),
    "000-F": (0.714, 0.213, 0.0, 0.0),
    "000-H": (0.064, 0.019, 0.18, 0.18),
}
# 000 tables 2, 3 and 4
MASS_000 = (7.37, 13.05, 3.99, 2.10, 1.98, 0.62)
COM_000 = ((0.021, 0, 0.027), (0.38, 0, 0.158), (0.24, 0, 0.068), (0, 0.007, 0.018), (0, 0.007, 0.018), (0, 0, -0.026))
LENGTH_000 = (0.181, 0.613, 0.572, 0.174, 0.120, 0.117)
RADIUS_000 = (0.075, 0.054, 0.049, 0.045, 0.045, 0.045)


def dynamics(model: Model, Q: Array) -> tuple[Array, Array]:
    """M (k, 6, 6) and g (k, 6) by Pinocchio."""
    import pinocchio as pin

    pm, pd = pinocchio_model(model)
    M = np.array([np.array(pin.crba(pm, pd, q)) for q in Q])
    return M, np.array([np.array(pin.computeGeneralizedGravity(pm, pd, q)) for q in Q])


@pytest.fixture(scope="module")
def states() -> Array:
    return np.random.default_rng(3).uniform(-np.pi, np.pi, (1500, 6))


@pytest.fixture(scope="module")
def reference(states: Array) -> tuple[Array, Array]:
    return dynamics(load("ur10e"), states)


@pytest.mark.parametrize("name", TABLE)
def test_mismatch_is_the_published_one(name: str, states: Array, reference: tuple[Array, Array]) -> None:
    """Means within 4 standard errors of a mean over 1500 draws (two draws are compared, so sqrt(2) wider) and half a
    printed digit; extremes within 3 %, as the largest of 1500 draws moves a little from draw to draw."""
    M, g = dynamics(load("ur10e", parameters=name), states)
    norm_M = np.linalg.norm(M - reference[0], axis=(1, 2))
    norm_g = np.linalg.norm(g - reference[1], axis=1)
    mean_M, top_M, mean_g, top_g = TABLE[name]
    for values, printed, digit in ((norm_M, mean_M, 5e-4), (norm_g, mean_g, 0.05 if mean_g > 1 else 0.005)):
        error = 4.0 * np.sqrt(2.0) * float(np.std(values)) / np.sqrt(len(values))
        assert abs(float(np.mean(values)) - printed) < error + digit
    relative = norm_M / np.linalg.norm(reference[0], axis=(1, 2))
    assert float(np.max(relative)) == pytest.approx(top_M, rel=0.03)
    assert float(np.max(np.abs(g - reference[1]))) == pytest.approx(top_g, rel=0.03, abs=1e-12)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_000_bodies_come_from_its_tables(sign: float) -> None:
    """Sets C (a < 0) and D (a > 0): 000's tables 3 and 4 in its own frames, moved to the official ones by D_i^-1."""
    a2, a3 = sign * 0.6127, sign * 0.5716
    seed = []
    for i, (m, L, r) in enumerate(zip(MASS_000, LENGTH_000, RADIUS_000, strict=True)):
        axial, across = m * r**2 / 2, m * (3 * r**2 + L**2) / 12
        diagonal = (axial, across, across) if i in (1, 2) else (across, across, axial)
        seed.append(Link(f"link {i}", m, np.array(COM_000[i], float), np.diag(diagonal)))
    loaded = load("ur10e", parameters="000-C" if sign < 0 else "000-D").links
    for ours, link in zip(loaded, official_links(seed, a2, a3), strict=True):
        assert ours.mass == link.mass
        np.testing.assert_allclose(ours.com, link.com, atol=1e-15)  # one subtraction of decimals
        np.testing.assert_allclose(ours.inertia, link.inertia, atol=1e-16)
    for i, link in enumerate(
        load("ur10e", parameters="000-E").links
    ):  # E: the same bodies, COM read in the right frame
        assert link.com.tolist() == list(COM_000[i])
        np.testing.assert_allclose(link.inertia, loaded[i].inertia, atol=1e-16)


def test_frames_of_000_put_the_upper_arm_behind_the_shoulder() -> None:
    """G2 at full stretch: -121.3 Nm officially, -20.5 Nm with 000's COM frames (masses of table 3)."""
    stretched = np.zeros((1, 6))
    assert dynamics(load("ur10e"), stretched)[1][0, 1] == pytest.approx(-121.3, abs=0.05)
    assert dynamics(load("ur10e", parameters="000-C"), stretched)[1][0, 1] == pytest.approx(-20.5, abs=0.1)


TABLE_8 = {  # 001 table 8 in mm: L_B, a2, a3, d4, d5, L_TP; then the mean tcp error that these lengths cause
    "ur3e": ((152, 244, 213, 131, 85, 92), 0.56),
    "ur5e": ((163, 425, 392, 133, 100, 100), 0.70),
    "ur10e": ((181, 613, 572, 174, 120, 117), 0.76),
    "ur16e": ((170, 476, 361, 194, 120, 112), 22.8),  # a wrong column, not a rounded one
}


@pytest.mark.parametrize("arm", TABLE_8)
def test_table_8_of_001(arm: str, rng: np.random.Generator) -> None:
    """The printed lengths, and the mean tcp error that was found for them on a small sample (hence within 0.1 mm for
    the rounded columns, whose errors scatter by 0.27 mm, and 0.5 mm for the wrong one, which scatters by 3.2 mm)."""
    nominal, rounded = load(arm), load(arm, parameters="001-table8")
    (d1, a2, a3, d4, d5, d6), mean = TABLE_8[arm]
    assert rounded.dh is not None
    np.testing.assert_allclose(1e3 * rounded.dh.d, (d1, 0, 0, d4, d5, d6), rtol=1e-15)
    np.testing.assert_allclose(1e3 * rounded.dh.a, (0, -a2, -a3, 0, 0, 0), rtol=1e-15)
    Q = rng.uniform(-np.pi, np.pi, (1000, 6))
    errors = [1e3 * np.linalg.norm((tcp_pose(rounded, q) - tcp_pose(nominal, q))[:3, 3]) for q in Q]
    assert np.mean(errors) == pytest.approx(mean, abs=0.5 if arm == "ur16e" else 0.1)
    assert [link.mass for link in rounded.links] == [link.mass for link in nominal.links]


def test_literal_table_of_001_is_refused_with_its_reason() -> None:
    assert "001-literal" in parameter_sets("ur10e")
    with pytest.raises(UnphysicalModel) as caught:
        load("ur10e", parameters="001-literal")
    message = str(caught.value)
    for piece in ("wrist_3", "triangle inequality", "0.0004 > 0 + 0.0003", "I6xx = 0.0000", "misprint", "0.00040"):
        assert piece in message


def test_002_has_its_lengths_and_its_pen() -> None:
    """The pen tip at 002's zero: S = (0, 356.1, 1428) mm in its base, which is ours yawed by 180 degrees."""
    from tangere.model.conventions import official_from_flipped_elbow

    for name in ("002", "002-centroid"):
        tip = tcp_pose(load("ur10", parameters=name), official_from_flipped_elbow(np.zeros(6)))[:3, 3]
        np.testing.assert_allclose(tip * (-1, -1, 1), (0.0, 0.3561, 1.428), atol=1e-12)
    assert [link.com.tolist() for link in load("ur10", parameters="002").links] == [
        link.com.tolist() for link in load("ur10").links
    ]


def test_002_centroids_are_midpoints_of_its_origins(rng: np.random.Generator) -> None:
    """COMs in the base against the midpoints of consecutive origins of 002's own D-H table, at random angles."""
    from tangere.model.conventions import official_from_flipped_elbow

    a = (0.0, -0.6127, -0.5716, 0.0, 0.0, 0.0)
    d = (0.128, 0.176, 0.1639, 0.1518, 0.1157, 0.1922)
    alpha, offset = np.deg2rad((-90, 180, 180, -90, 90, 0)), np.deg2rad((0, 90, 0, 90, 0, 0))
    model = load("ur10", parameters="002-centroid")
    pm, pd = pinocchio_model(model)
    import pinocchio as pin

    q_flipped = rng.uniform(-np.pi, np.pi, 6)
    pin.framesForwardKinematics(pm, pd, official_from_flipped_elbow(q_flipped))
    T, yaw, theta = np.eye(4), np.diag((-1.0, -1.0, 1.0)), q_flipped + offset
    for i, link in enumerate(model.links):
        c, s, ca, sa = np.cos(theta[i]), np.sin(theta[i]), np.cos(alpha[i]), np.sin(alpha[i])
        step = [[c, -s * ca, s * sa, a[i] * c], [s, c * ca, -c * sa, a[i] * s], [0, sa, ca, d[i]], [0, 0, 0, 1]]
        T_next = T @ np.array(step)
        placed = pd.oMf[pm.getFrameId(link.name)].act(link.com)
        np.testing.assert_allclose(yaw @ placed, 0.5 * (T + T_next)[:3, 3], atol=1e-12)
        T = T_next


def test_002_centroids_cost_3_to_7_nm(states: Array) -> None:
    """Mean gravity error over random configurations, the reason why 5 N cannot be guaranteed open loop."""
    right, centroids = (dynamics(load("ur10", parameters=name), states)[1] for name in ("002", "002-centroid"))
    error = right - centroids
    assert 3.0 < float(np.mean(np.linalg.norm(error, axis=1))) < 7.0


# ------------------------------------------------------------------------------------------- sets from one's own file

OWN = """
schema_version = 1
parameters = "mine"
[lengths]
a = [0.0, -0.6, -0.5, 0.0, 0.0, 0.0]
d = [0.18, 0.0, 0.0, 0.17, 0.12, 0.11]
[drives]
viscous = [1.0, 2.0, 3.0, 4.0, 5.0, nan]
[payload]
mass = 1.5
com = [0.0, 0.0, 0.05]
[[sources]]
group = "kinematics"
grade = "measured"
text = "a tape measure"
[[sources]]
group = "drives.viscous"
grade = "measured"
text = "a spring scale"
"""


def test_own_parameter_file_replaces_what_it_gives(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    model, nominal = load("ur10e", parameters=str(tmp_path / "own.toml")), load("ur10e")
    assert model.parameters == "mine"
    assert model.dh is not None
    assert model.dh.a.tolist() == [0.0, -0.6, -0.5, 0.0, 0.0, 0.0]
    assert model.joints[1].T_joint_link[0, 3] == -0.6
    assert model.joints[1].tau_max == nominal.joints[1].tau_max
    assert model.drives.viscous[:5].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert model.drives.coulomb.tolist() == nominal.drives.coulomb.tolist()
    assert model.payload is not None
    assert model.payload.mass == 1.5
    texts = {source.group: source.text for source in model.sources}
    assert (texts["kinematics"], texts["drives.viscous"]) == ("a tape measure", "a spring scale")
    assert texts["mass"] == next(s.text for s in nominal.sources if s.group == "mass")
    np.testing.assert_allclose(mass_matrix(model, np.zeros(6))[5, 5], 0.0003, atol=1e-15)


def test_a_set_must_say_where_its_numbers_come_from(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN.replace('group = "kinematics"', 'group = "com"'))
    with pytest.raises(ModelFileError, match=r"own.toml: field sources has no entry for kinematics"):
        load("ur10e", parameters=tmp_path / "own.toml")
    (tmp_path / "own.toml").write_text(OWN.replace("d = [0.18,", "d = ["))
    with pytest.raises(ModelFileError, match=r"own.toml: field lengths.d must be a list of 6 numbers"):
        load("ur10e", parameters=tmp_path / "own.toml")
    (tmp_path / "own.toml").write_text(OWN)
    with pytest.raises(ModelFileError, match="lengths"):
        load("scara", parameters=tmp_path / "own.toml")


def test_seed_transforms_do_not_depend_on_the_set() -> None:
    """Guard of the test above: D_i of a < 0 and a > 0 really differ, so C and D are told apart."""
    assert not np.allclose(seed_link_transforms(-0.6, -0.5)[1], seed_link_transforms(0.6, 0.5)[1])
