"""Kinematics as FMUs give the library's own numbers: driven by fmpy, compared with tangere.Robot."""

from __future__ import annotations

import numpy as np
import pytest
from fmu_block import EXACT, ROBOT, Block, Maker, continuous, difference, place

import tangere
from tangere.apps.fmu.build import LINUX
from tangere.apps.fmu.package import write_fmu
from tangere.kernels.solutions import FoundSolutions
from tangere.kinematics.rotation import matrix_from_ypr, quaternion_from_matrix, ypr_from_matrix


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    return Maker(tmp_path_factory.mktemp("fmus"))


# ---------------------------------------------------------------------------------------------- forward kinematics


def test_fk_is_the_pose_and_the_jacobian(make, rng):
    block = make("fk")
    before = block.get("quaternion")  # no step is made: the sign goes on from here
    for _ in range(100):
        q = rng.uniform(-6, 6, 6)
        block.set("q", q)
        T = ROBOT.pose(q)
        np.testing.assert_allclose(block.get("position"), T[:3, 3], atol=EXACT)
        np.testing.assert_allclose(block.get("R"), T[:3, :3], atol=EXACT)
        np.testing.assert_allclose(block.get("J"), ROBOT.jacobian(q), atol=EXACT)
        np.testing.assert_allclose(block.get("ypr"), ypr_from_matrix(T[:3, :3]), atol=1e-11)  # / cos(pitch)
        want = quaternion_from_matrix(T[:3, :3])
        np.testing.assert_allclose(block.get("quaternion"), want if want @ before > 0 else -want, atol=EXACT)


def test_fk_quaternion_continuous_or_canonical(make):
    start = [0.0, -1.0, 1.2, -0.5, 0.7, 0.0]
    free, canonical = make("fk", q=start), make("fk", q=start, quaternion_sign=2)
    before, last, jumps = free.get("quaternion"), canonical.get("quaternion"), 0
    for angle in np.linspace(0.0, 4 * np.pi, 200):
        for block in (free, canonical):
            block.set("q", [angle, -1.0, 1.2, -0.5, 0.7, 0.0])
            block.step()
        now, other = free.get("quaternion"), canonical.get("quaternion")
        assert now @ before > 0.9
        assert other[np.flatnonzero(other)[0]] > 0
        jumps += other @ last < 0
        before, last = now, other
    assert jumps >= 2  # two full turns of the base carry q through its sign twice: the canonical one jumps there


@pytest.mark.parametrize("sense", [1.0, -1.0])
@pytest.mark.parametrize("kind", ["fk", "dynamics", "all"])
def test_quaternion_goes_on_from_the_start(tmp_path, kind, sense):
    """With the tool down w is 4e-17: the canonical sign turns round in the first step, if it goes that way."""
    written = write_fmu(kind, tangere.robot("ur10e"), tmp_path, platforms=(LINUX,))
    prefix = {"fk": "", "dynamics": "", "all": "fk."}[kind]
    blocks = [Block(written, tmp_path, exchange=exchange, begin=False) for exchange in (False, True)]
    for block in blocks:
        if kind == "dynamics":
            block.set("qd_start", [0, 0, 0, sense, 0, 0])
        block.begin()
    steps, exchange = blocks
    first = steps.get(prefix + "quaternion")
    assert abs(first[0]) < 1e-9
    np.testing.assert_array_equal(exchange.get(prefix + "quaternion"), first)
    continuous(exchange)
    q = steps.get(prefix + "q")
    for k in range(1, 4):
        moved = q + [0, 0, 0, sense * 1e-2 * k, 0, 0]
        if kind != "dynamics":
            steps.set(prefix + "q", moved)
            exchange.set(prefix + "q", moved)
        steps.step()
        exchange.fmu.setTime(1e-3 * k)
        if kind == "dynamics":
            place(exchange, np.concatenate([steps.get("q"), steps.get("qd")]))
        exchange.fmu.completedIntegratorStep()
        now = steps.get(prefix + "quaternion")
        assert now @ first > 0.99
        np.testing.assert_array_equal(exchange.get(prefix + "quaternion"), now)
    assert abs(now[0]) > 1e-4  # it went somewhere


def test_fk_without_offsets_is_williams_frame_six(make, rng):
    """001: x6 = d4 s1 - c1 (a2 s2 + a3 s23 + d5 s234), ...; its angles are ours plus (0, 90, 0, 90, 0, 180) deg."""
    block = make("fk", offsets=False)
    _, a2, a3, d4, d5, _ = block.get("arm.dh")
    a2, a3 = -a2, -a3  # 001 counts them positive
    for _ in range(50):
        seed = rng.uniform(-3, 3, 6)
        block.set("q", seed + np.radians([0, -90, 0, -90, 0, 180]))
        q1, q2, q23, q234 = seed[0], seed[1], seed[1] + seed[2], seed[1] + seed[2] + seed[3]
        reach = a2 * np.sin(q2) + a3 * np.sin(q23) + d5 * np.sin(q234)
        want = [
            d4 * np.sin(q1) - np.cos(q1) * reach,
            -d4 * np.cos(q1) - np.sin(q1) * reach,
            a2 * np.cos(q2) + a3 * np.cos(q23) + d5 * np.cos(q234),
        ]
        np.testing.assert_allclose(block.get("position"), want, atol=EXACT)


def test_fk_directional_derivatives(make, rng):
    block = make("fk")
    for _ in range(20):
        q, d = rng.uniform(-3, 3, 6), rng.normal(size=6)
        for name in ("position", "R", "quaternion", "J"):
            block.set("q", q)
            rate = block.directional(name, "q", d)
            found = difference(lambda n=name: block.get(n), lambda x: block.set("q", x), q, d, 1e-6, 1)
            np.testing.assert_allclose(rate, found, atol=1e-8)
    block.set("q", [0.3, -1.2, 1.0, -0.4, 0.6, 0.2])  # cos(pitch) = 0.5: finite differences of ypr are good here
    q = block.get("q")
    rate = block.directional("ypr", "q", d)
    np.testing.assert_allclose(
        rate, difference(lambda: block.get("ypr"), lambda x: block.set("q", x), q, d, 1e-6, 1), atol=1e-7
    )


# ---------------------------------------------------------------------------------------------- inverse kinematics


def test_ik_finds_all_that_the_library_finds(make, rng):
    block = make("ik")
    before = block.get("q")
    for _ in range(150):
        T = ROBOT.pose(rng.uniform(-3, 3, 6))
        block.set("position", T[:3, 3])
        block.set("R", T[:3, :3])
        found = ROBOT.inverse_kinematics(T, before)
        valid = block.get("valid").astype(bool)
        assert np.flatnonzero(valid).tolist() == found.lanes.tolist()
        np.testing.assert_allclose(block.get("solutions")[valid], found.q, atol=EXACT)
        np.testing.assert_array_equal(block.get("flags")[valid], found.flags)
        np.testing.assert_allclose(block.get("q"), found.nearest(before), atol=EXACT)
        assert block.get("found")
        assert block.get("count") == len(found)
        assert valid[block.get("branch") - 1]
        block.step()
        before = block.get("q")


@pytest.mark.parametrize(
    "q",
    [
        (0.4, -1.2, 1.3, -0.9, 0.0, 0.7),  # wrist straight: only q4 + q6 is determined
        (0.4, -1.2, 1.3, -0.9, np.pi, 0.7),
        (0.4, -1.2, 0.0, -0.9, 0.8, 0.7),  # arm stretched
        (0.0, -np.pi / 2, np.pi / 2, -np.pi / 2, -np.pi / 2, 0.0),  # tool down with q6 = 0
    ],
)
def test_ik_at_singular_poses(make, q):
    T = ROBOT.pose(q)
    block = make("ik", q_previous=q, position=T[:3, 3], R=T[:3, :3])  # q_previous counts for the pose at the start
    found = ROBOT.inverse_kinematics(T, q)
    valid = block.get("valid").astype(bool)
    # of two branches that meet, either may be kept: the tool's rotation differs in its last bit
    assert valid.sum() == len(found)
    for solution, flags in zip(found.q, found.flags, strict=True):
        off = np.abs(np.angle(np.exp(1j * (block.get("solutions") - solution)))).max(axis=1)
        same = valid & (off < 1e-7)  # rounding splits a double root by some 1e-8
        assert same.sum() == 1
        assert block.get("singular")[same][0] == ((flags & 7) > 0)
    np.testing.assert_allclose(ROBOT.pose(block.get("q")), T, atol=EXACT)
    np.testing.assert_allclose(np.cos(block.get("q") - q), 1.0, atol=1e-14)  # 1e-7 rad from the reference


def test_ik_stays_on_its_branch_from_the_start(make, rng):
    """q of the first step is nearest to q at the start, not to q_previous: half way between two they differ."""
    left = 0
    for _ in range(150):
        T = ROBOT.pose(rng.uniform(-3, 3, 6))
        found = ROBOT.inverse_kinematics(T)
        a, b = rng.permutation(len(found))[:2] if len(found) > 1 else (0, 0)
        way = found.q[a] + (0.5 + 0.02 * rng.normal()) * (found.q[b] - found.q[a])
        block = make("ik", q_previous=way, position=T[:3, 3], R=T[:3, :3])
        first = block.get("q")
        np.testing.assert_allclose(first, found.nearest(way), atol=EXACT)
        if np.linalg.svd(ROBOT.jacobian(first))[1].min() > 0.1:  # elsewhere a short way is a long one for the joints
            T = ROBOT.pose(first + 0.03 * rng.normal(size=6))
            block.set("position", T[:3, 3])
            block.set("R", T[:3, :3])
            block.step()
            np.testing.assert_allclose(block.get("q"), ROBOT.inverse_kinematics(T, first).nearest(first), atol=EXACT)
            assert np.abs(block.get("q") - first).max() < 0.3
            left += np.abs(ROBOT.inverse_kinematics(T, way).nearest(way) - first).max() > 0.3
    assert left > 3  # nearest to q_previous would have been another branch


def test_ik_holds_q_previous_where_the_start_has_no_solution(make):
    q = [0.1, -1.2, 1.3, -0.9, 0.8, 0.7]
    block = make("ik", q_previous=q, position=[9.0, 0, 0])
    np.testing.assert_array_equal(block.get("q"), q)
    T = ROBOT.pose(q)
    block.set("position", T[:3, 3])
    block.set("R", T[:3, :3])
    np.testing.assert_allclose(block.get("q"), q, atol=1e-9)


def test_ik_where_shoulder_and_elbow_are_singular_at_once(make):
    """There rounding hides solutions from the closed form, and iteration finds them: here as in the library."""
    block, rng = make("ik"), np.random.default_rng(3)
    _, a2, a3, _, d5, _ = block.get("arm.dh")
    hidden, before = 0, block.get("q")
    for _ in range(300):
        q2 = np.pi / 2 + rng.uniform(-0.09, 0.09)
        q234 = np.arcsin(-(a2 + a3) * np.cos(q2) / d5)  # the wrist above the shoulder, the arm stretched
        q = np.array([rng.uniform(-3, 3), q2, 0.0, q234 - q2, rng.uniform(-2.8, 2.8), rng.uniform(-3, 3)])
        T = ROBOT.pose(q + rng.normal(size=6) * 10.0 ** rng.uniform(-12, -6))
        T[:3, 3] += rng.normal(size=3) * 10.0 ** rng.uniform(-17, -12)
        block.set("position", T[:3, 3])
        block.set("R", T[:3, :3])
        found = ROBOT.inverse_kinematics(T, before)
        hidden += isinstance(found, FoundSolutions) and len(found) > 0
        assert (block.get("count") > 0) == (len(found) > 0)
        if block.get("found"):
            np.testing.assert_allclose(ROBOT.pose(block.get("q")), T, atol=EXACT)
    assert hidden > 20


@pytest.mark.parametrize("form", ["quaternion", "ypr"])
def test_ik_takes_any_form_of_orientation(make, rng, form):
    block = make("ik", orientation={"quaternion": 2, "ypr": 3}[form])
    for _ in range(20):
        ypr = rng.uniform(-1.4, 1.4, 3)
        R = matrix_from_ypr(ypr)
        block.set("position", rng.uniform(-0.4, 0.4, 3))
        block.set(form, ypr if form == "ypr" else 3.0 * quaternion_from_matrix(R))
        if not block.get("found"):
            continue
        T = ROBOT.pose(block.get("q"))
        np.testing.assert_allclose(T[:3, :3], R, atol=EXACT)
        np.testing.assert_allclose(T[:3, 3], block.get("position"), atol=EXACT)


def test_ik_by_branch_and_out_of_reach(make):
    block = make("ik", selection=2, wanted_branch=3)
    assert block.get("branch") == 3
    np.testing.assert_allclose(np.cos(block.get("q") - block.get("solutions")[2]), 1.0, atol=EXACT)
    held = block.get("q")
    block.step()
    block.messages.clear()
    block.set("position", [3.0, 0.0, 0.0])
    assert not block.get("found")
    assert block.get("distance") == pytest.approx(
        ROBOT.inverse_kinematics(_pose(block.get("R"), [3.0, 0, 0])).distance, abs=EXACT
    )
    np.testing.assert_array_equal(block.get("q"), held)
    assert (1, "logStatusWarning", "the pose is out of reach") in block.messages
    block.set("R", np.diag([1.0, 1.0, -1.0]))
    assert not block.get("found")
    assert "reflection" in block.messages[-1][2]
    for none in (np.ones((3, 3)), np.zeros((3, 3)), np.full((3, 3), 1e-160), 1e-8 * np.eye(3), 1.01 * np.eye(3)):
        block.messages.clear()
        block.set("R", none)
        assert not block.get("found")
        assert block.messages[-1][2].startswith("R is not a rotation")


def _pose(R, p):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


@pytest.mark.parametrize("form", ["R", "quaternion", "ypr"])
def test_ik_directional_derivatives(make, rng, form):
    block, tried = make("ik", orientation=["R", "quaternion", "ypr"].index(form) + 1), 0
    while tried < 10:
        q = rng.uniform(-3, 3, 6)
        # finite differences lose digits near singularities: the error grows with the third power of |J^-1|
        if np.linalg.svd(ROBOT.jacobian(q))[1].min() < 0.15:
            continue
        tried += 1
        T = ROBOT.pose(q)
        given = {
            "R": T[:3, :3], "quaternion": 1.5 * quaternion_from_matrix(T[:3, :3]), "ypr": ypr_from_matrix(T[:3, :3]),
        }  # fmt: skip
        block.set("position", T[:3, 3])
        block.set(form, given[form])
        block.step()
        lane = block.get("branch") - 1
        for name in ("position", form):
            x = block.get(name)
            d = rng.normal(size=x.shape)
            rate = block.directional("q", name, d)
            # one short difference: a matrix that is changed entry by entry soon is no rotation any more
            read, write = (lambda i=lane: block.get("solutions")[i]), (lambda v, n=name: block.set(n, v))
            found = difference(read, write, x, d, 1e-6, 1)
            np.testing.assert_allclose(rate, found, atol=1e-7)
        twist = ROBOT.jacobian(block.get("q")) @ block.directional("q", "position", [1.0, 0, 0])
        np.testing.assert_allclose(twist, [1.0, 0, 0, 0, 0, 0], atol=EXACT)
