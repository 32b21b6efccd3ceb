"""twin(): each deviation changes what it says and nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from oracles import tcp_pose

import tangere
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, UnknownName, UnphysicalModel
from tangere.model import parameter_sets
from tangere.plants import twin
from tangere.robots import Robot
from tangere.types import Array

ARM = tangere.robot("ur10e")


@pytest.fixture
def q(rng: np.random.Generator) -> Array:
    return rng.uniform(-3.0, 3.0, (20, 6))


def test_without_arguments_it_is_the_same(q: Array) -> None:
    for arm in (ARM, tangere.robot("ur5e", tool=(0.0, 0.0, 0.2), payload=2.0, gravity="wall"), tangere.robot("scara")):
        same = twin(arm)
        x = q[:, : arm.dof]
        assert np.array_equal(same.mass_matrix(x), arm.mass_matrix(x))
        assert np.array_equal(same.gravity_torque(x), arm.gravity_torque(x))
        assert np.array_equal(same.pose(x), arm.pose(x))


def test_a_mass_factor_scales_the_dynamics(q: Array) -> None:
    """M, C qd and g are linear in masses and inertias: 1.05 of all is 1.05 of M, to rounding."""
    heavy = twin(ARM, mass=1.05)
    qd = q[::-1]
    for ours, theirs in (
        (heavy.mass_matrix(q), ARM.mass_matrix(q)),
        (heavy.bias_torque(q, qd), ARM.bias_torque(q, qd)),
    ):
        assert np.max(np.abs(ours - 1.05 * theirs)) < 1e-13 * np.max(np.abs(theirs))


def test_one_link_alone_by_superposition(q: Array) -> None:
    """Doubling link k adds what only link k contributes; the six contributions are the whole M."""
    M = ARM.mass_matrix(q)
    total = sum(twin(ARM, mass={k: 2.0}).mass_matrix(q) - M for k in range(1, 7))
    assert np.max(np.abs(total - M)) < 1e-12
    assert np.array_equal(twin(ARM, mass={3: 2.0}).mass_matrix(q), twin(ARM, mass=[1, 1, 2, 1, 1, 1]).mass_matrix(q))


def test_inertia_changes_no_gravity_and_a_moved_com_no_mass(q: Array) -> None:
    spun = twin(ARM, inertia=1.3)
    assert np.array_equal(spun.gravity_torque(q), ARM.gravity_torque(q))
    assert np.min(np.max(np.abs(spun.mass_matrix(q) - ARM.mass_matrix(q)), axis=(-1, -2))) > 0.01
    shift = (0.0, 0.0, 0.01)
    moved = twin(ARM, com={2: shift})
    # the torque of 13.051 kg moved by 10 mm along the joint's own axis: none on joint 2, and M11 changes
    assert np.max(np.abs((moved.gravity_torque(q) - ARM.gravity_torque(q))[:, 1])) < 1e-12
    assert np.max(np.abs((moved.mass_matrix(q) - ARM.mass_matrix(q))[:, 0, 0])) > 1e-3
    assert np.array_equal(twin(ARM, com=shift).gravity_torque(q), twin(ARM, com=[shift] * 6).gravity_torque(q))


def test_an_unknown_payload_is_its_weight_at_its_place(q: Array) -> None:
    com = np.array([0.02, -0.01, 0.06])
    loaded = twin(ARM, payload=(2.0, com))
    lever = ARM.jacobian(q, link=6, point=np.broadcast_to(com, (20, 3)))[:, :3]
    extra = np.einsum("kij,i->kj", lever, [0.0, 0.0, 2.0 * 9.81])
    assert np.max(np.abs(loaded.gravity_torque(q) - ARM.gravity_torque(q) - extra)) < 1e-11
    assert np.array_equal(loaded.pose(q), ARM.pose(q))


def test_lengths_scale_the_reach(q: Array) -> None:
    longer = twin(ARM, lengths=1.01)
    assert longer.pose(q)[:, :3, 3] == pytest.approx(1.01 * ARM.pose(q)[:, :3, 3], abs=1e-14)
    assert np.array_equal(longer.pose(q)[:, :3, :3], ARM.pose(q)[:, :3, :3])
    # by the joints' transforms too, which URDF, MJCF and everything but the UR kernels take
    assert longer.pose(q[0]) == pytest.approx(tcp_pose(longer.model, q[0]), abs=1e-14)
    one = twin(ARM, lengths={2: 1.02})
    assert one.model.dh is not None
    assert ARM.model.dh is not None
    assert one.model.dh.a[1] == pytest.approx(1.02 * ARM.model.dh.a[1], rel=1e-15)
    assert len(one.inverse_kinematics(one.pose(q[0]))) > 0


def test_friction_and_rotors() -> None:
    geared = tangere.robot("ur10e", rotor_inertia=True)
    worn = twin(geared, friction={1: 2.0}, rotor_inertia=0.5)
    qd = np.ones(6)
    ratio = JointFriction.of(worn.drives).torque(qd) / JointFriction.of(geared.drives).torque(qd)
    assert ratio == pytest.approx([2.0, 1.0, 1.0, 1.0, 1.0, 1.0], rel=1e-15)
    assert np.array_equal(worn.rotor_inertia, 0.5 * geared.rotor_inertia)
    difference = geared.mass_matrix(qd) - worn.mass_matrix(qd)
    assert difference == pytest.approx(np.diag(0.5 * geared.rotor_inertia), abs=1e-13)
    assert not np.any(twin(ARM).rotor_inertia)


def test_parameter_sets_keep_tool_payload_and_mounting(q: Array) -> None:
    for name in parameter_sets("ur10e"):
        if name == "001-literal":  # cannot exist, and is refused
            with pytest.raises(UnphysicalModel):
                twin(ARM, parameters=name)
            continue
        options = {"tool": (0.0, 0.01, 0.1), "payload": 1.0, "gravity": "wall"}
        wanted = tangere.robot("ur10e", parameters=name, **options)
        got = twin(tangere.robot("ur10e", **options), parameters=name)
        assert np.array_equal(got.gravity_torque(q), wanted.gravity_torque(q))
        assert np.array_equal(got.pose(q), wanted.pose(q))
    both = twin(ARM, parameters="000-F", mass=2.0)
    assert both.mass_matrix(q) == pytest.approx(2.0 * tangere.robot("ur10e", parameters="000-F").mass_matrix(q))


def test_misuse_is_refused() -> None:
    for options, message in (
        ({"mass": 0.0}, "must be positive"),
        ({"mass": {7: 1.1}}, "1 to 6, got 7"),
        ({"inertia": [1.0, 2.0]}, "6 factors"),
        ({"friction": -1.0}, "not negative"),
        ({"com": 0.1}, r"shape \(3,\)"),
        ({"com": {2: (0.0, 1.0)}}, "com"),
        ({"lengths": np.nan}, "finite"),
    ):
        with pytest.raises(InvalidValue, match=message):
            twin(ARM, **options)  # type: ignore[arg-type]
    other = Robot(dataclasses.replace(tangere.robot("scara").model, name="ur10e"))  # as a file may call it
    with pytest.raises(InvalidValue, match="6 joints, not 4"):
        twin(other, parameters="official")
    with pytest.raises(UnknownName):
        twin(ARM, parameters="nobody")
    with pytest.raises(UnphysicalModel):
        twin(ARM, payload=-1.0)
