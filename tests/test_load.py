"""Loading arms: the numbers are those of their sources, checked by models built from UR's own frames."""

from __future__ import annotations

import importlib
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import pinocchio_model, relative_error

import tangere
from tangere.errors import ModelFileError
from tangere.model import loading
from tangere.model.loading import load, names, parameter_sets
from tangere.model.model import Array
from tangere.model.toml_text import to_toml
from tangere.plants.twins import twin

UR = tuple(name for name in tangere.models() if name.startswith("ur"))
DATA = Path(importlib.import_module("tangere.model").__file__ or "").parent / "data"
PARTS = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")


def vendor(data_dir: Path, arm: str, file: str) -> dict[str, Any]:
    """One of UR's YAML files; `!degrees 90` becomes radians."""
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!degrees", lambda loader, node: math.radians(float(node.value)))
    content: dict[str, Any] = yaml.load((data_dir / "ur_description" / arm / file).read_text(), Loader=Loader)
    return content


def exact(value: float, unit: float) -> float:
    """The value as it was meant before it was printed: UR's pi/2 of nine digits, and the 2e-11 m that came of it."""
    meant = round(value / unit) * unit
    return meant if abs(value - meant) < 1e-9 else value


def mujoco_from_proximal_frames(data_dir: Path, arm: str) -> Any:
    """A MuJoCo model made only of UR's YAML: proximal frames, and tensors turned by the `rotation` section."""
    import mujoco
    from scipy.spatial.transform import Rotation

    places = vendor(data_dir, arm, "default_kinematics.yaml")["kinematics"]
    physical = vendor(data_dir, arm, "physical_parameters.yaml")["inertia_parameters"]
    spec = mujoco.MjSpec()
    spec.compiler.inertiafromgeom = False
    body = spec.worldbody
    for part in PARTS:
        place, turn = places[part], physical["rotation"][part]
        quarters = [exact(place[k] / (math.pi / 2), 1.0) for k in ("roll", "pitch", "yaw")]
        w = Rotation.from_euler("xyz", np.array(quarters) * math.pi / 2).as_quat(scalar_first=True)
        R = Rotation.from_euler("xyz", [turn[k] for k in ("roll", "pitch", "yaw")]).as_matrix()
        t = physical["tensor"][part]
        tensor = np.array(
            [[t["ixx"], t["ixy"], t["ixz"]], [t["ixy"], t["iyy"], t["iyz"]], [t["ixz"], t["iyz"], t["izz"]]]
        )
        tensor = R @ tensor @ R.T
        body = body.add_body(name=part, pos=[exact(place[k], 1e-9) for k in "xyz"], quat=w)
        body.explicitinertial = True
        body.mass = physical[f"{part}_mass"]
        body.ipos = [physical["center_of_mass"][f"{part}_cog"][k] for k in "xyz"]
        body.fullinertia = tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        body.add_joint(name=part, type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 0, 1])
    return spec.compile()


@pytest.mark.parametrize("arm", UR)
def test_frames_are_those_of_the_vendor(arm: str, data_dir: Path, rng: np.random.Generator) -> None:
    """FK, M and C qd + g of our DH model against MuJoCo on UR's proximal frames: two descriptions of one arm.

    Tolerance 1e-10 (relative to max(1, |value|)): MuJoCo diagonalises the tensors by iteration, and torques reach
    1000 Nm. UR's rounding of pi/2 (2e-10 rad, 1e-7 Nm) is taken out first.
    """
    import mujoco
    import pinocchio as pin

    peer = mujoco_from_proximal_frames(data_dir, arm)
    peer.opt.gravity[:] = (0.0, 0.0, -9.81)
    state = mujoco.MjData(peer)
    model = load(arm, parameters="ur-ros2")
    pm, pd = pinocchio_model(model)
    for _ in range(25):
        q, qd = rng.uniform(-np.pi, np.pi, 6), rng.uniform(-2.0, 2.0, 6)
        state.qpos[:], state.qvel[:] = q, qd
        mujoco.mj_forward(peer, state)
        M = np.zeros((6, 6))
        mujoco.mj_fullM(peer, state, M)
        assert relative_error(np.array(pin.crba(pm, pd, q)), M) < 1e-10
        assert relative_error(np.array(pin.nonLinearEffects(pm, pd, q, qd)), state.qfrc_bias) < 1e-10
        pin.framesForwardKinematics(pm, pd, q)
        flange = pd.oMf[pm.getFrameId("wrist_3")]
        assert relative_error(flange.translation, state.body("wrist_3").xpos) < 1e-10
        assert relative_error(flange.rotation, state.body("wrist_3").xmat.reshape(3, 3)) < 1e-10


@pytest.mark.parametrize("arm", UR)
def test_limits_are_those_of_the_vendor(arm: str, data_dir: Path) -> None:
    limits = vendor(data_dir, arm, "joint_limits.yaml")["joint_limits"]
    for joint in load(arm).joints:
        row = limits[joint.name]
        assert joint.qd_max == pytest.approx(row["max_velocity"], rel=1e-15)
        assert joint.tau_max == row["max_effort"]
        assert joint.q_min == pytest.approx(row.get("min_position", -math.inf), rel=1e-15)
        assert joint.q_max == pytest.approx(row.get("max_position", math.inf), rel=1e-15)


def test_endless_wrists() -> None:
    assert {arm for arm in UR if math.isinf(load(arm).joints[5].q_max)} == {"ur3e", "ur3"}


def test_ur10e_is_the_reference_table() -> None:
    """001's last table with I6xx = 0.0004 (the misprint 0.0000 repaired), to the last bit."""
    model = load("ur10e")
    assert model.parameters == "official"
    assert model.dh is not None
    assert model.dh.d.tolist() == [0.1807, 0, 0, 0.17415, 0.11985, 0.11655]
    assert model.dh.a.tolist() == [0, -0.6127, -0.57155, 0, 0, 0]
    assert model.dh.alpha.tolist() == [math.pi / 2, 0, 0, math.pi / 2, -math.pi / 2, 0]
    assert [link.mass for link in model.links] == [7.369, 13.051, 3.989, 2.1, 1.98, 0.615]
    wrist_com, wrist = [0, 0.007, 0.018], [[0.003, 0, 0], [0, 0.0022, -0.0002], [0, -0.0002, 0.0026]]
    com = [[0.021, 0, 0.027], [0.38, 0, 0.158], [0.24, 0, 0.068], wrist_com, wrist_com, [0, 0, -0.026]]
    assert [link.com.tolist() for link in model.links] == com
    inertia = [
        [[0.0341, 0, -0.0043], [0, 0.0353, 0.0001], [-0.0043, 0.0001, 0.0216]],
        [[0.0281, 0.0001, -0.0156], [0.0001, 0.7707, 0], [-0.0156, 0, 0.7694]],
        [[0.0101, 0.0001, 0.0092], [0.0001, 0.3093, 0], [0.0092, 0, 0.3065]],
        wrist,
        wrist,
        [[0.0004, 0, 0], [0, 0.0004, 0], [0, 0, 0.0003]],
    ]
    assert [link.inertia.tolist() for link in model.links] == inertia
    assert model.gravity.tolist() == [0, 0, -9.81]


def test_golden_numbers(golden: dict[str, Any]) -> None:
    """M, g and C qd of the loaded UR10e, computed by Pinocchio, against the golden numbers at 1e-10."""
    import pinocchio as pin

    pm, pd = pinocchio_model(load("ur10e"))
    for key in ("A", "B", "C"):
        case = golden[key]
        q, qd = np.array(case["q"]), np.array(case["qd"])
        g = np.array(pin.computeGeneralizedGravity(pm, pd, q))
        assert relative_error(np.array(pin.crba(pm, pd, q)), np.array(case["M"])) < 1e-10
        assert relative_error(g, np.array(case["G"])) < 1e-10
        assert relative_error(np.array(pin.nonLinearEffects(pm, pd, q, qd)) - g, np.array(case["Cqd"])) < 1e-10


@pytest.mark.parametrize("arm", names())
def test_every_set_loads_with_exact_right_angles(arm: str) -> None:
    """All UR rotations are quarter turns: exactly 0 and +-1, no 6e-17 and no -0.0, so that a tracer can fold them."""
    for parameters in parameter_sets(arm):
        if parameters == "001-literal":
            continue
        model = load(arm, parameters=parameters)
        assert model.parameters == parameters
        for joint in model.joints:
            for T in (joint.T_parent_joint, joint.T_joint_link):
                R = T[:3, :3]
                assert np.all((R == 0.0) | (np.abs(R) == 1.0))
                assert not np.any(np.signbit(R) & (R == 0.0))
                assert np.array_equal(R @ R.T, np.eye(3))
                assert np.linalg.det(R) == 1.0
        assert (model.dh is not None) == arm.startswith("ur")
        if model.dh is not None:
            assert all(np.array_equal(joint.T_parent_joint, np.eye(4)) for joint in model.joints)


def test_names_in_any_case() -> None:
    assert names()[:14] == UR
    assert load("UR5e").name == "ur5e"


def test_drives_are_known_or_nan() -> None:
    known = load("ur10e").drives
    assert known.rotor_inertia.tolist() == [6.0, 6.0, 1.9, 0.61, 0.61, 0.61]
    assert np.all(np.isfinite([known.gain, known.coulomb, known.viscous]))
    assert load("ur3e").drives.gain.tolist() == [10.83, 10.83, 7.572, 3.6, 3.8, 3.7]
    for arm in ("ur8long", "ur15", "ur18", "ur20", "ur30"):
        drives = load(arm).drives
        assert np.all(np.isnan([drives.gain, drives.rotor_inertia, drives.coulomb, drives.viscous]))


def test_grades() -> None:
    def grades(arm: str, group: str) -> set[str]:
        return {source.grade for source in load(arm).sources if source.group.startswith(group)}

    assert grades("ur10e", "drives.gain") == {"measured", "approximated"}
    for arm in UR:
        cylinders = arm in ("ur3", "ur5", "ur30")  # the UR30's tensors are a copy of the UR16e's
        assert grades(arm, "inertia") == ({"approximated"} if cylinders else {"vendor"})
        assert grades(arm, "kinematics") == {"vendor"}


def test_weights_are_those_of_the_data_sheets() -> None:
    """The links leave 2 to 6 kg for the base; UR's description has 4 (2 for the UR3e), "might be incorrect"."""
    stated = {arm: load(arm).weight for arm in UR}
    bare = {"ur3", "ur5", "ur10", "ur18", "ur8long"}  # nothing found
    assert {arm for arm, weight in stated.items() if weight is None} == bare
    for arm, weight in stated.items():
        model = load(arm)
        if weight is not None:
            assert 2.0 < weight - sum(link.mass for link in model.links) < 6.0
            assert [source.grade for source in model.sources if source.group == "weight"] == ["approximated"]


def test_a_weight_below_the_links_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "light.toml"
    file.write_text(re.sub("weight = .*", "weight = 17.0", (DATA / "ur5e.toml").read_text()))
    with pytest.raises(ModelFileError, match=r"weight is 17 kg, but the links alone weigh 17\.7 kg"):
        load(file)


def test_the_weight_is_written_with_the_arm(tmp_path: Path) -> None:
    file, heavy = tmp_path / "arm.toml", twin(tangere.robot("ur5e"), mass=2.0).model
    for model, weight in ((load("ur5e"), 20.6), (load("ur18"), None), (heavy, None)):
        file.write_text(to_toml(model))
        assert load(file).weight == weight


def test_ur30_tensors_are_copies_of_the_ur16e(data_dir: Path) -> None:
    """What the grade of the UR30's inertia says is so: but for one sign, the vendor lists the UR16e's tensors."""
    arms = ("ur16e", "ur30")
    tensors = [vendor(data_dir, arm, "physical_parameters.yaml")["inertia_parameters"]["tensor"] for arm in arms]
    tensors[1]["wrist_2"]["ixy"] *= -1.0
    assert tensors[0] == tensors[1]


def test_a_model_cannot_be_changed() -> None:
    model = load("ur10e")
    arrays: list[Array] = [model.gravity, model.T_flange_tcp, model.links[0].com, model.joints[0].T_joint_link]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array += 1.0


def test_arms_stand_in_the_order_of_their_families() -> None:
    families = ("ur3e", "ur5e", "ur10e", "ur16e", "ur7e", "ur12e"), ("ur3", "ur5", "ur10")
    families += (("ur8long", "ur15", "ur18", "ur20", "ur30"),)
    assert tangere.models() == (*(arm for family in families for arm in family), "pendulum", "planar3r", "scara")


def test_a_new_arm_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but a file in the folder of the arms: it is listed at its place, loads and computes."""
    shutil.copytree(loading._DATA, tmp_path / "data")
    text = (loading._DATA / "ur16e.toml").read_text().replace("ur16e", "ur17").replace("UR16e", "UR17")
    monkeypatch.setattr(loading, "_DATA", tmp_path / "data")
    (tmp_path / "data" / "ur17.toml").write_text(text.replace("order = 116", "order = 317"))
    (tmp_path / "data" / "zz.toml").write_text(re.sub("order = .*", "", text).replace("ur17", "zz"))
    names = tangere.models()
    assert names[10:13] == ("ur15", "ur17", "ur18")
    assert names[-1] == "zz"  # without a place of its own: last
    robot = tangere.robot("UR17")
    assert robot.name == "ur17"
    assert np.array_equal(robot.pose(np.zeros(6)), tangere.robot("ur16e").pose(np.zeros(6)))
    assert tangere.model.parameter_sets("ur17") == ("ur-ros2",)
