"""Isolation of a contact: the posterior over links against a brute-force integral, what it says of simulated pushes,
and what it refuses to say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.model.link_shapes import link_surfaces
from tangere.observe.isolation import FORCE_SD_MAX, MOMENT_SD_MAX, ContactIsolator, tool_wrench
from tangere.observe.isolation_evidence import _columns, _cone, explain, placed

# Nm, noise of a UR10e's torque per sample (measured at 100 Hz), after a momentum observer of 50/s at 500 Hz, which
# leaves sqrt((1 - a) / (1 + a)) of white noise, a = exp(-K h)
A = math.exp(-50.0 * 0.002)
SD = np.array([2.3, 2.0, 0.9, 0.29, 0.43, 0.30]) * math.sqrt((1 - A) / (1 + A))
MU = 0.5
Q = np.array([0.3, -1.1, 1.4, -0.7, 0.9, 0.2])


@pytest.fixture(scope="module")
def robot():
    return tangere.robot("ur10e")


@pytest.fixture(scope="module")
def isolator(robot):
    return ContactIsolator(robot)


@pytest.fixture(scope="module")
def skin(robot):
    """Finer than the isolator's own patches, so that true points are not among its candidates."""
    return link_surfaces(robot.model, 0.005)


def push(robot, skin, rng, q, size=60.0, link=None):
    """A random push: link, point and force in base axes, joint torque."""
    surface = skin[rng.integers(robot.dof) if link is None else link - 1]
    i = rng.choice(len(surface), p=surface.area / surface.area.sum())
    c, turn = rng.uniform(math.cos(math.atan(MU)), 1.0), rng.uniform(0.0, 2.0 * math.pi)
    along = math.cos(turn) * surface.t1[i] + math.sin(turn) * surface.t2[i]
    T = robot.link_poses(q)[surface.link - 1]
    force = size * T[:3, :3] @ (math.sqrt(1.0 - c * c) * along - c * surface.normal[i])
    J = robot.jacobian(q, link=surface.link, point=surface.point[i])
    return surface.link, T[:3, :3] @ surface.point[i] + T[:3, 3], force, J[:3].T @ force


def pushes(robot, skin, rng, count, sources=1):
    """Detectable ones, at random postures: some joint is six standard deviations off. (q, pushes, residual)"""
    while count:
        q = rng.uniform(-math.pi, math.pi, 6)
        drawn = [push(robot, skin, rng, q) for _ in range(sources)]
        tau = sum(p[3] for p in drawn)
        if np.any(np.abs(tau) > 6.0 * SD):
            count -= 1
            yield q, drawn, tau + SD * rng.standard_normal(6)


def directions(rng, count):
    """(u2, u3) with the density exp(-(|u| / 2)^8), by rejection."""
    u = rng.uniform(-2.8, 2.8, (3 * count, 2))  # exp(-1.4^8) = 4e-7; a square of 5.6 keeps 0.36 of its draws
    return u[rng.random(len(u)) < np.exp(-((np.sum(u * u, axis=1) / 4.0) ** 4))][:count]


def test_the_cone_is_weighted_as_a_dense_integral_does():
    x = np.linspace(-7.0, 7.0, 1401)
    square = x[:, None] ** 2 + x**2
    ratio = np.exp(0.5 * square - (square / 4.0) ** 4)
    ratio /= np.sum(ratio * np.exp(-0.5 * square)) / np.sum(np.exp(-0.5 * square))  # both densities have the integral 1
    inside = (((0, 0), (1, 1), 0), ((1, 0.5), (0.8, 0.5), 0.6), ((2, 0), (0.5, 0.3), 0))
    for mean, sd, rho in (*inside, ((0, 3), (0.3, 0.3), 0)):
        V = np.array(((sd[0] ** 2, rho * sd[0] * sd[1]), (rho * sd[0] * sd[1], sd[1] ** 2)))
        d = np.stack(np.meshgrid(x - mean[0], x - mean[1], indexing="ij"), axis=-1)
        p = np.exp(-0.5 * np.einsum("abi,ij,abj->ab", d, np.linalg.inv(V), d))
        want = math.log(np.sum(p * ratio) / p.sum())
        # NODES says within 10 % where a hypothesis counts; three standard deviations outside, a factor 1.3 of 1e-5
        assert _cone(np.array([mean]), V[None])[0] == pytest.approx(want, abs=0.1 if mean[1] < 3 else 0.3)


def test_the_evidence_of_every_link_equals_a_brute_force_integral(robot, isolator, skin, rng):
    """Sampled from the prior that the docstring of isolation_evidence states, on a finer surface, likelihoods averaged.
    Noise ten times the real one: else too few of the samples come near the residual."""
    noise = np.array([5.0, 5.0, 3.0, 1.5, 1.5, 1.0])
    prior, samples = isolator.prior, 100_000
    patches, fine = placed(robot, Q, isolator.surfaces), placed(robot, Q, skin)
    for link in (2, 3, 4, 5, 6):
        residual = push(robot, skin, rng, Q, size=40.0, link=link)[3] + noise * rng.standard_normal(6)
        found = explain(patches, prior, np.diag(1.0 / noise), residual)
        got, want, error = np.zeros(6), np.zeros(6), np.zeros(6)
        for k in range(6):
            got[k] = 6.0 * np.exp(found.log_evidence[patches.link[found.patch] == k + 1]).sum()  # links: a sixth each
            rows = np.flatnonzero(fine.link == k + 1)
            i = rng.choice(rows, samples, p=fine.weight[rows] / fine.weight[rows].sum())
            s = rng.choice(prior.sizes, samples)[:, None]
            u = directions(rng, samples)
            tangential = u[:, :1] * fine.t1[i] + u[:, 1:] * fine.t2[i]
            size = 1 - prior.sigma_n * rng.standard_normal((samples, 1))
            force = s * (-size * fine.normal[i] + prior.sigma_t * tangential)
            off = (residual - np.einsum("si,sij->sj", force, fine.linear[i])) / noise
            sample = np.exp(-0.5 * np.sum(off * off, axis=1))
            want[k], error[k] = sample.mean(), sample.std() / math.sqrt(samples)
        # three standard errors of the sampling and 2 % of all evidence for Laplace: a probability is right to 0.02
        assert np.all(np.abs(got - want) < 3.0 * error + 0.02 * want.sum()), (link, got, want, error)


def test_every_hypothesis_is_weighted_by_its_cone(robot, isolator, skin, rng, monkeypatch):
    residual = push(robot, skin, rng, Q, link=5)[3]
    patches = placed(robot, Q, isolator.surfaces)
    whole = explain(patches, isolator.prior, np.diag(1.0 / SD), residual).log_evidence
    monkeypatch.setattr("tangere.observe.isolation_evidence._cone", lambda mean, V: np.full(len(mean), 0.0))
    without = explain(patches, isolator.prior, np.diag(1.0 / SD), residual).log_evidence
    assert np.ptp(whole - without) > 1.0  # some lie near the edge, some in the middle
    assert (whole - without).max() < 1.1906 + math.log(2.0 / math.gamma(0.25)) + 1e-3  # largest ratio: |u| = 1.78


def test_the_coarse_search_is_linearised_rightly(robot, isolator, rng):
    """d torque / d u by central differences of J_point^T force, with the surface bent as the patch says."""
    prior, patches = isolator.prior, placed(robot, Q, isolator.surfaces)
    a, H = _columns(patches, prior, np.eye(6))
    poses = robot.link_poses(Q)

    def torque(k, u):
        x, t = patches.half[k] * u[3:], np.stack((patches.t1[k], patches.t2[k]))
        angle = patches.curvature[k] * x
        normal = patches.normal[k] + angle @ t
        point = patches.point[k] + x @ t
        along = prior.sigma_t * (u[1:3] @ (t - np.outer(angle, patches.normal[k])))
        T = poses[patches.link[k] - 1]
        J = robot.jacobian(Q, link=int(patches.link[k]), point=(point - T[:3, 3]) @ T[:3, :3])
        return J[:3].T @ (along - (1.0 - prior.sigma_n * u[0]) * normal)

    step = 1e-4
    for k in rng.integers(0, len(patches.link), 60):
        assert np.allclose(torque(k, np.zeros(5)), a[k], atol=1e-12)
        rows = [(torque(k, step * e) - torque(k, -step * e)) / (2.0 * step) for e in np.eye(5)]
        assert np.allclose(np.array(rows).T, H[k], atol=1e-9)  # bilinear: no error of second order; rounding / step


def test_the_force_at_the_point_explains_the_residual(robot, isolator, skin, rng):
    for q, _, residual in pushes(robot, skin, rng, 12):
        patches = placed(robot, q, isolator.surfaces)
        found = explain(patches, isolator.prior, np.diag(1.0 / SD), residual)
        poses = robot.link_poses(q)
        for h in rng.integers(0, len(found.patch), 10):
            link = int(patches.link[found.patch[h]])
            T = poses[link - 1]
            J = robot.jacobian(q, link=link, point=(found.point[h] - T[:3, 3]) @ T[:3, :3])
            left = (residual - J[:3].T @ found.force[h]) / SD
            assert found.misfit[h] == pytest.approx(left @ left, rel=1e-9, abs=1e-9)
            assert found.force[h] @ found.normal[h] < 0.0  # a push, never a pull


def test_simulated_pushes_are_answered_rightly_and_with_honest_probabilities(robot, isolator, skin, rng):
    """A small form of a study with 2000 (answered 67.5 %, then right 97.3 %, 83 % of those points within 5 cm)."""
    said, right, answered, errors = [], [], [], []
    for q, [(link, point, _, _)], residual in pushes(robot, skin, rng, 150):
        answer = isolator.isolate(q, residual, SD**2)
        best = answer if answer.link is not None else answer.alternatives[0]
        said.append(answer.probability)
        right.append(best.link == link)
        answered.append(answer.link is not None)
        if answered[-1] and right[-1]:
            errors.append(np.linalg.norm(answer.point_in_base - point))
            assert answer.explained > 0.9
    said, right, answered = np.array(said), np.array(right), np.array(answered)
    # expected values less three standard deviations of 150 draws (0.675 +- 0.038, 0.973 +- 0.016 of some 101)
    assert answered.mean() > 0.56
    assert right[answered].mean() > 0.92
    assert np.mean(np.array(errors) < 0.05) > 0.68  # 0.83 +- 0.04
    gap = right.mean() - said.mean()
    assert abs(gap) < 3.0 * math.sqrt(np.mean(said * (1.0 - said)) / len(said))


def test_the_answer_beats_the_last_joint_rule(robot, isolator, skin, rng):
    """The rule: the touched link is the last whose joint has a residual. Half of a wrist's pushes pass its own axis."""
    ours = rule = 0
    for q, [(link, _, _, _)], residual in pushes(robot, skin, rng, 60):
        answer = isolator.isolate(q, residual, SD**2)
        best = answer if answer.link is not None else answer.alternatives[0]
        ours += best.link == link
        rule += int(np.flatnonzero(np.abs(residual) > 3.0 * SD)[-1]) + 1 == link
    assert ours > rule


def test_turning_the_base_turns_the_answer(robot, isolator, skin, rng):
    _, _, _, tau = push(robot, skin, rng, Q, link=5)
    turned = Q + np.array([1.1, 0, 0, 0, 0, 0])
    c, s = math.cos(1.1), math.sin(1.1)
    R = np.array(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)))
    here, there = isolator.isolate(Q, tau, SD**2), isolator.isolate(turned, tau, SD**2)
    assert here.link == there.link == 5
    assert there.probability == pytest.approx(here.probability, abs=1e-9)
    assert np.allclose(here.point, there.point, atol=1e-9)
    assert np.allclose(R @ here.force, there.force, atol=1e-6)
    assert np.allclose(R @ here.point_in_base, there.point_in_base, atol=1e-9)


def test_probabilities_add_up_and_the_alternatives_are_sorted(robot, isolator, skin, rng):
    for q, _, residual in pushes(robot, skin, rng, 20):
        answer = isolator.isolate(q, residual, SD**2)
        rest = [c.probability for c in answer.alternatives]
        assert rest == sorted(rest, reverse=True)
        total = sum(rest) + (answer.probability if answer.link is not None else 0.0)
        assert 0.94 < total <= 1.0 + 1e-9  # what is below 1 % each is not listed: at most six of seven
        if answer.link is None:
            assert answer.reason in ("ambiguous", "not one push")
            assert answer.probability == rest[0]
            assert answer.point is None
        else:
            assert answer.reason == ""
            assert answer.probability >= isolator.answer
            assert answer.force_range[0] <= answer.force_range[1]


def test_two_pushes_are_seen_where_no_single_one_explains_them(robot, isolator, skin, rng):
    """22 % of random pairs in a larger study, against 0.1 % of single pushes. Of the other pairs some are ambiguous and
    some are answered: with one of the two links in 92 %, as if it were alone."""
    reasons = [isolator.isolate(q, r, SD**2).reason for q, _, r in pushes(robot, skin, rng, 60, sources=2)]
    single = [isolator.isolate(q, r, SD**2).reason for q, _, r in pushes(robot, skin, rng, 60)]
    assert reasons.count("not one push") >= 7  # 13 +- 3.2 expected
    assert single.count("not one push") <= 1


def test_a_residual_within_its_noise_is_too_weak(isolator, rng):
    answers = [isolator.isolate(Q, SD * rng.standard_normal(6), SD**2) for _ in range(50)]
    assert all(a.reason == "too weak" and a.link is None and a.alternatives == () for a in answers)


def test_variances_and_a_covariance_matrix_are_the_same_and_correlation_counts(robot, isolator, skin, rng):
    residual = push(robot, skin, rng, Q, link=4)[3]
    a, b = isolator.isolate(Q, residual, SD**2), isolator.isolate(Q, residual, np.diag(SD**2))
    assert a.probability == b.probability
    correlated = np.outer(SD, SD) * (0.9 + 0.1 * np.eye(6))
    assert isolator.isolate(Q, residual, correlated).probability != pytest.approx(a.probability, abs=1e-6)


def test_the_tool_wrench_is_exact_without_noise_and_as_uncertain_as_it_says(robot, rng):
    wrench = np.array([10.0, -40.0, 25.0, 1.0, 2.0, -0.5])
    tau = robot.jacobian(Q).T @ wrench
    S = np.diag(SD**2)
    assert np.allclose(tool_wrench(robot, Q, tau, S).wrench, wrench, atol=1e-9)
    found = [tool_wrench(robot, Q, tau + SD * rng.standard_normal(6), S) for _ in range(4000)]
    scatter = np.cov(np.array([f.wrench for f in found]).T)
    sd = np.sqrt(np.diag(found[0].covariance))
    # 4000 draws: 1 / sqrt(8000) = 1.1 % of each standard deviation, 5 % is four of these
    assert np.allclose(np.sqrt(np.diag(scatter)), sd, rtol=0.05)
    assert sd[:3].max() < FORCE_SD_MAX
    assert sd[3:].max() < MOMENT_SD_MAX


def test_no_tool_wrench_near_a_singularity(robot):
    q = Q.copy()
    q[4] = 1e-3  # the wrist's axes 4 and 6 nearly parallel
    assert tool_wrench(robot, q, np.ones(6), np.diag(SD**2)) is None


def test_a_push_on_the_tool_comes_with_its_wrench():
    robot = tangere.robot("ur10e", tool=[0.0, 0.0, 0.2])
    T = robot.pose(Q)
    force = T[:3, :3] @ np.array([8.0, 5.0, -60.0])  # against the tip
    tip = T[:3, 3] + 0.03 * T[:3, 2]
    wrench = np.concatenate((force, np.cross(tip - T[:3, 3], force)))
    answer = ContactIsolator(robot).isolate(Q, robot.jacobian(Q).T @ wrench, SD**2)
    assert answer.link == 6
    assert np.allclose(answer.wrench.wrench, wrench, atol=1e-9)
    assert np.linalg.norm(answer.point_in_base - tip) < 0.01
    assert np.linalg.norm(answer.force - force) < 2.0


def test_another_robot(rng):
    robot = tangere.robot("ur3e")
    isolator, skin = ContactIsolator(robot), link_surfaces(robot.model, 0.005)
    _, point, force, tau = push(robot, skin, rng, Q, link=6)
    answer = isolator.isolate(Q, tau, (0.3 * SD) ** 2)
    assert answer.link == 6
    assert np.linalg.norm(answer.point_in_base - point) < 0.02
    assert np.linalg.norm(answer.force - force) < 6.0


def test_a_robot_with_four_joints_one_of_them_sliding(rng):
    robot = tangere.robot("scara")
    q, sd = np.array([0.4, 0.8, 0.1, 0.2]), np.full(4, 0.05)
    T = robot.link_poses(q)[1]
    surface = link_surfaces(robot.model, 0.005)[1]
    side = np.flatnonzero(np.abs(surface.normal @ T[:3, :3].T[:, 2]) < 0.1)
    i = side[np.argmax(np.linalg.norm(surface.point[side], axis=1))]  # from the side, near the elbow: turns joint 1
    tau = robot.jacobian(q, link=2, point=surface.point[i])[:3].T @ (-60.0 * T[:3, :3] @ surface.normal[i])
    answer = ContactIsolator(robot).isolate(q, tau, sd**2)
    named = {answer.link} | {c.link for c in answer.alternatives}
    assert 2 in named
    assert answer.explained > 0.99
    assert answer.wrench is None


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"answer": 1.0}, "answer"),
        ({"answer": 0.2}, "answer"),
        ({"mu": 0.0}, "mu"),
        ({"forces": (50.0, 10.0)}, "forces"),
    ],
)
def test_misuse_of_the_options_is_refused(robot, options, word):
    with pytest.raises(InvalidValue, match=word):
        ContactIsolator(robot, **options)


def test_misuse_of_the_arguments_is_refused(isolator):
    ok = {"q": Q, "residual": np.ones(6), "covariance": SD**2}
    wrong = {
        "q": [Q[:5], np.full(6, np.nan)],
        "residual": [np.ones(7), np.full(6, np.inf)],
        "covariance": [np.ones(5), -SD, np.triu(np.ones((6, 6))), np.zeros((6, 6))],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InvalidValue, match=name):
                isolator.isolate(**{**ok, name: value})


def test_answers_are_frozen(isolator):
    answer = isolator.isolate(Q, np.zeros(6), SD**2)
    assert replace(answer, probability=0.5).probability == 0.5
    with pytest.raises(AttributeError):
        answer.link = 3  # type: ignore[misc]
