"""Loading arms: the numbers are those of their sources, checked by models built from UR's own frames, and bad files
are refused with the file and the field in the message."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import pinocchio_model, relative_error

from tangere.errors import InvalidValue, ModelFileError, UnknownName, UnphysicalModel
from tangere.model.load import load, names, parameter_sets
from tangere.model.model import Array, Model

UR = ("ur3e", "ur5e", "ur10e", "ur16e", "ur3", "ur5", "ur10", "ur20", "ur30")
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
    assert names()[:9] == UR
    assert load("UR5e").name == "ur5e"


def test_drives_are_known_or_nan() -> None:
    known = load("ur10e").drives
    assert known.rotor_inertia.tolist() == [6.0, 6.0, 1.9, 0.61, 0.61, 0.61]
    assert np.all(np.isfinite([known.gain, known.coulomb, known.viscous]))
    partly = load("ur3e").drives
    assert partly.gain.tolist() == [10.83, 10.83, 7.572, 3.6, 3.8, 3.7]
    assert np.all(np.isnan(partly.rotor_inertia))
    for arm in ("ur5e", "ur16e", "ur3", "ur5", "ur10", "ur20", "ur30"):
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


def test_ur30_tensors_are_copies_of_the_ur16e(data_dir: Path) -> None:
    """What the grade of the UR30's inertia says is so: but for one sign, the vendor lists the UR16e's tensors."""
    tensors = [vendor(data_dir, arm, "physical_parameters.yaml")["inertia_parameters"]["tensor"] for arm in UR[3::5]]
    assert UR[3::5] == ("ur16e", "ur30")
    tensors[1]["wrist_2"]["ixy"] *= -1.0
    assert tensors[0] == tensors[1]


def test_a_model_cannot_be_changed() -> None:
    model = load("ur10e")
    arrays: list[Array] = [model.gravity, model.T_flange_tcp, model.links[0].com, model.joints[0].T_joint_link]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array += 1.0


# ------------------------------------------------------------------------------------------------------- bad input


def edited(tmp_path: Path, old: str, new: str, arm: str = "ur10e") -> Path:
    """A copy of an arm's file with one piece of text replaced."""
    text = (DATA / f"{arm}.toml").read_text()
    assert old in text
    path = tmp_path / "edited.toml"
    path.write_text(text.replace(old, new, 1))
    return path


def test_a_file_is_loaded_like_the_name(tmp_path: Path) -> None:
    path = edited(tmp_path, 'title = "Universal Robots UR10e"', 'title = "mine"')
    model = load(path)
    assert model.title == "mine"
    assert load(str(path)).links[1].mass == load("ur10e").links[1].mass


@pytest.mark.parametrize("given", ["ur11", "", "UR-10e", "ur10e\n", "ur10e.exe", "..", "data"])
def test_unknown_robot_lists_the_known(given: str) -> None:
    with pytest.raises(UnknownName, match="ur3e, ur5e, ur10e") as caught:
        load(given)
    assert isinstance(caught.value, ValueError)


def test_unknown_parameters_list_the_known() -> None:
    with pytest.raises(UnknownName, match=r"official, 000-C, 000-D.*ur-ros2"):
        load("ur10e", parameters="001")
    with pytest.raises(InvalidValue, match="known names"):
        load(10)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("schema_version = 1", "schema_version = 2", "schema_version"),
        ("schema_version = 1\n", "", "schema_version"),
        ('name = "ur10e"', "name = 10", "name"),
        ('name = "ur10e"', 'name = "x\\u0007"', "name"),
        ('title = "Universal Robots UR10e"\n', "", "title"),
        ("mass = 13.051\n", "", r"links\[1\].mass"),
        ("mass = 13.051", 'mass = "13.051"', r"links\[1\].mass"),
        ("mass = 13.051", "mass = nan", r"links\[1\].mass"),
        ("mass = 13.051", "mass = true", r"links\[1\].mass"),
        ("mass = 13.051", "mas = 13.051", r"links\[1\].mas is unknown"),
        ("com = [0.38, 0.0, 0.158]", "com = [0.38, 0.158]", r"links\[1\].com"),
        ("com = [0.38, 0.0, 0.158]", "com = [0.38, inf, 0.158]", r"links\[1\].com\[1\]"),
        ("xx = 0.0341, ", "", r"links\[0\].inertia.xx"),
        ("xz = -0.0043", "zx = -0.0043", r"links\[0\].inertia.zx"),
        ("a = -0.6127, ", "", r"joints\[1\].dh.a"),
        ("speed_deg = 120", "speed = 120", r"joints\[0\].speed"),
        ("speed_deg = 120", "speed_deg = 0", r"joints\[0\].speed_deg"),
        ("range_deg = [-360, 360]", "range_deg = [360, -360]", r"joints\[0\].range_deg"),
        ("range_deg = [-360, 360]", "range_deg = [nan, nan]", r"joints\[0\].range_deg"),
        ('name = "elbow_joint"', 'name = "wrist_1_joint"', r"joints\[3\].name.*twice"),
        ('name = "upper_arm"', 'name = "shoulder"', r"links\[1\].name.*twice"),
        ('name = "elbow_joint"', 'name = "elbow_joint"\nkind = "helical"', r"joints\[2\].kind"),
        ("gain = [11.976, ", "gain = [", "drives.gain"),
        ("gain = [11.976, ", "gain = [-1.0, ", "drives.gain"),
        ("mass = 13.051", f"mass = {10**400}", r"links\[1\].mass must be finite"),
        ('name = "ur10e"', '"\\u001b[2J" = 1\nname = "ur10e"', r"'\\x1b\[2J' is unknown"),
        ("joints = [2, 3, 4, 5]", 'joints = "all"', r"sources\[\d+\].joints must be a list"),
        ('grade = "vendor"', 'grade = "excellent"', r"sources\[0\].grade"),
        ('group = "inertia"', 'group = "inertias"', "sources has no entry for inertia"),
        ('group = "drives.viscous"', 'group = "drives.other"', "sources has no entry for drives.viscous"),
        ("gravity = [0.0, 0.0, -9.81]", "gravity = -9.81", "gravity"),
        ("[[links]]\n", "[[unknown]]\n", "unknown is unknown"),
    ],
)
def test_bad_field_names_file_and_field(tmp_path: Path, old: str, new: str, field: str) -> None:
    with pytest.raises(ModelFileError, match=rf"edited\.toml: field .*{field}"):
        load(edited(tmp_path, old, new))


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"absent\.toml: cannot be read"):
        load(tmp_path / "absent.toml")
    (tmp_path / "broken.toml").write_text("schema_version = = 1")
    with pytest.raises(ModelFileError, match=r"broken\.toml: is not valid TOML"):
        load(tmp_path / "broken.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelFileError, match="not UTF-8"):
        load(tmp_path / "binary.toml")
    (tmp_path / "deep.toml").write_text(f"x = {'[' * 20000}")
    with pytest.raises(ModelFileError, match="not valid TOML"):
        load(tmp_path / "deep.toml")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load("nul\0.toml")
    with pytest.raises(ModelFileError, match="ends in"):
        load(tmp_path / "arm.json")
    with pytest.raises(ModelFileError, match=r"must be TOML"):
        load("ur10e", parameters=tmp_path / "set.urdf")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("mass = 13.051", "mass = -1.0", "upper_arm: mass -1 kg must be positive"),
        ("mass = 13.051", "mass = 0.0", "upper_arm: mass 0 kg must be positive"),
        ("xx = 0.0341", "xx = 0.0001", "shoulder: principal moments .* break the triangle inequality"),
        ("xx = 0.0341", "xx = -0.0341", "shoulder: principal moments -0.03"),
        ("xx = 0.0004, yy = 0.0004, zz = 0.0003", "xx = 0.0, yy = 0.0, zz = 0.0", "wrist_3: .* is positive"),
    ],
)
def test_impossible_bodies_are_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(UnphysicalModel, match=sentence) as caught:
        load(edited(tmp_path, old, new))
    assert "Source of the inertia" in str(caught.value)


def test_damaged_files_raise_only_our_errors(tmp_path: Path, rng: np.random.Generator) -> None:
    """300 random deletions, copies and exchanges of pieces of a file: it loads, or one of our errors says why not."""
    text, path, refused = (DATA / "ur10e.toml").read_text(), tmp_path / "damaged.toml", 0
    for _ in range(300):
        start, other = (int(value) for value in rng.integers(0, len(text), 2))
        length = int(rng.integers(1, 40))
        piece = str(rng.choice(["", text[other : other + length], "nan", "[", '"', "-1e400", "\0", "\u202e"]))
        path.write_text(text[:start] + piece + text[start + length :])
        try:
            load(path)
        except InvalidValue:  # the root of ours that are ValueErrors
            refused += 1
    assert 150 < refused < 300  # most damage is noticed; some falls into comments and texts


def test_options_that_do_not_fit() -> None:
    with pytest.raises(InvalidValue, match="tip="):
        load("ur10e", tip="tool0")
    with pytest.raises(InvalidValue, match="base="):
        load("ur10e", base="base")


def mass_at_tip(model: Model, q: Array) -> float:
    """Gravity torque on joint 2, from Pinocchio."""
    import pinocchio as pin

    pm, pd = pinocchio_model(model)
    return float(pin.computeGeneralizedGravity(pm, pd, q)[1])


def test_payload_tool_gravity_reach_the_model() -> None:
    """A payload of 2 kg adds m g times its distance from joint 2; the ceiling flips gravity."""
    q = np.zeros(6)  # stretched out along -x: the flange is a2 + a3 = -1.18425 m from joint 2
    bare = mass_at_tip(load("ur10e"), q)
    loaded = mass_at_tip(load("ur10e", payload=2.0), q)
    assert loaded - bare == pytest.approx(2.0 * 9.81 * (-0.6127 - 0.57155), rel=1e-12)
    assert mass_at_tip(load("ur10e", gravity="ceiling"), q) == pytest.approx(-bare, rel=1e-12)
    model = load("ur10e", tool=[0.0, 0.0, 0.1])
    assert model.T_flange_tcp[2, 3] == 0.1


def test_numbers_too_long_to_print_are_refused_like_others(tmp_path: Path) -> None:
    """Python refuses to write whole numbers of thousands of digits; the error must still name file and field."""
    with pytest.raises(ModelFileError, match=r"edited\.toml.*mass.*thousands of digits"):
        load(edited(tmp_path, "mass = 7.369", "mass = 0x" + "f" * 6000))


def test_source_texts_cannot_steer_a_terminal(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="text must be printable"):
        load(edited(tmp_path, 'text = "', 'text = "\\u001b]0;mine\\u0007'))


def test_a_tool_that_is_nearly_a_rotation_becomes_one() -> None:
    tool = np.eye(4)
    tool[0, 1] = 4e-7
    R = load("ur10e", tool=tool).T_flange_tcp[:3, :3]
    assert np.max(np.abs(R.T @ R - np.eye(3))) < 1e-15
    assert np.max(np.abs(R - tool[:3, :3])) < 4e-7


def test_options_of_a_wrong_kind_raise_our_errors() -> None:
    for options in ({"tool": [0, 0, 0, 1e300, 0, 0]}, {"payload": object()}, {"payload": 1j}, {"parameters": 3}):
        with pytest.raises(InvalidValue):
            load("ur10e", **options)  # type: ignore[arg-type]


def test_tables_of_an_identified_model_are_carried_and_checked(tmp_path: Path) -> None:
    """[identified] and [detection] are no numbers of the arm: any content, but a table; and never for another arm."""
    file = tmp_path / "model.toml"
    source = '[[sources]]\ngroup = "drives"\ngrade = "measured"\ntext = "a log"\n'
    head = 'schema_version = 1\nname = "ur3e"\nparameters = "identified"\n'
    file.write_text(f'{head}[identified]\nanything = [1, "two"]\n[detection]\nx = 3\n{source}')
    model = load("ur3e", parameters=file)
    assert model.parameters == "identified"
    assert [link.mass for link in model.links] == [link.mass for link in load("ur3e").links]
    with pytest.raises(ModelFileError, match="identified on that arm, not on 'ur10e'"):
        load("ur10e", parameters=file)
    file.write_text("schema_version = 1\ndetection = 3\n")
    with pytest.raises(ModelFileError, match="detection must be a table"):
        load("ur3e", parameters=file)
    file.write_text("schema_version = 1\n[identifed]\nx = 3\n")
    with pytest.raises(ModelFileError, match="identifed is unknown"):
        load("ur3e", parameters=file)
