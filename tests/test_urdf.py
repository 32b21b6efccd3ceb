"""URDF: round trip of every arm, import of foreign ones with any axis and fixed joints, refusal of hostile files."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import pinocchio_model, random_arm, relative_error, tcp_pose
from scipy.spatial.transform import Rotation

from tangere.errors import InvalidValue, ModelFileError, UnknownName, UnphysicalModel
from tangere.model.loading import load, names
from tangere.model.model import Array, Model
from tangere.model.urdf import from_urdf
from tangere.model.urdf_text import to_urdf

ARM = """<?xml version="1.0"?>
<robot name="two">
  <link name="world"/>
  <link name="pedestal"><inertial><mass value="50"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0.02 -0.03" rpy="0.2 -0.4 0.9"/>
      <mass value="3"/>
      <inertia ixx="0.02" ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.003" izz="0.025"/>
    </inertial>
  </link>
  <link name="cover">
    <inertial><origin xyz="0 0.05 0"/><mass value="0.5"/>
      <inertia ixx="1e-3" ixy="0" ixz="0" iyy="2e-3" iyz="0" izz="1.5e-3"/></inertial>
  </link>
  <link name="slider"><inertial><mass value="1.2"/>
    <inertia ixx="1e-3" ixy="0" ixz="0" iyy="1e-3" iyz="0" izz="1e-3"/></inertial></link>
  <link name="tip"/>
  <joint name="stand" type="fixed"><parent link="world"/><child link="pedestal"/>
    <origin xyz="0.5 0 1" rpy="0 0 0.3"/></joint>
  <joint name="swing" type="revolute">
    <parent link="pedestal"/><child link="upper"/><origin xyz="0 0.1 0.2" rpy="0.5 0.2 -0.7"/><axis xyz="1 -2 0.5"/>
    <limit lower="-2" upper="2.5" effort="40" velocity="3"/><dynamics damping="0.7" friction="0.2"/>
  </joint>
  <joint name="screws" type="fixed"><parent link="upper"/><child link="cover"/>
    <origin xyz="0.2 0 0" rpy="1 2 3"/></joint>
  <joint name="slide" type="prismatic">
    <parent link="upper"/><child link="slider"/><origin xyz="0.3 0 0.1"/><axis xyz="0 -1 0"/>
    <limit lower="-0.1" upper="0.4" effort="100" velocity="0.5"/>
  </joint>
  <joint name="glue" type="fixed"><parent link="slider"/><child link="tip"/>
    <origin xyz="0 0 0.08" rpy="0 1.5707963267948966 0"/></joint>
</robot>
"""
ELSE = '<limit lower="-0.1" upper="0.4" effort="100" velocity="0.5"/>'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(text)
    return path


def terms(model: Any, data: Any, q: Array, qd: Array, frame: str) -> tuple[Array, Array, Array]:
    """M, C qd + g and the pose of a frame by Pinocchio."""
    import pinocchio as pin

    M, bias = np.array(pin.crba(model, data, q)), np.array(pin.nonLinearEffects(model, data, q, qd))
    pin.framesForwardKinematics(model, data, q)
    return M, bias, np.array(data.oMf[model.getFrameId(frame)].homogeneous)


def same(first: Model, second: Model, rng: np.random.Generator, tolerance: float) -> None:
    one, two = pinocchio_model(first), pinocchio_model(second)
    for _ in range(10):
        q, qd = rng.uniform(-np.pi, np.pi, first.dof), rng.uniform(-2.0, 2.0, first.dof)
        for ours, theirs in zip(terms(*one, q, qd, "tcp"), terms(*two, q, qd, "tcp"), strict=True):
            assert relative_error(ours, theirs) < tolerance


@pytest.mark.parametrize("arm", names())
def test_round_trip(arm: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """Export and import give the same pose, M and C qd + g to 1e-12, and the same names and limits."""
    model = load(arm, tool=(0.01, -0.02, 0.1, 0.3, 0.1, -0.2))
    back = load(written(tmp_path, to_urdf(model)))
    same(model, back, rng, 1e-12)
    assert [link.name for link in back.links] == [link.name for link in model.links]
    for ours, theirs in zip(model.joints, back.joints, strict=True):
        assert (ours.name, ours.kind) == (theirs.name, theirs.kind)
        assert (ours.q_min, ours.q_max, ours.qd_max, ours.tau_max) == (
            theirs.q_min, theirs.q_max, theirs.qd_max, theirs.tau_max,
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_round_trip_of_arms_with_any_frames(seed: int, tmp_path: Path, rng: np.random.Generator) -> None:
    model = random_arm(seed)  # general joint frames, revolute and prismatic, with a payload
    back = load(written(tmp_path, to_urdf(model)))
    assert back.payload is None  # it is part of the last link now
    same(model, dataclasses.replace(back, gravity=model.gravity), rng, 1e-12)


def test_export_read_by_pinocchio(tmp_path: Path, rng: np.random.Generator) -> None:
    """Another reader of our text: base and the yawed base_link, tool0, and the proximal frames of UR's ROS files."""
    import pinocchio as pin

    model = load("ur10e", payload=(2.0, (0.01, 0.02, 0.03)))
    peer = pin.buildModelFromUrdf(str(written(tmp_path, to_urdf(model))))
    data, ours = peer.createData(), pinocchio_model(model)
    q, qd = rng.uniform(-np.pi, np.pi, 6), rng.uniform(-2.0, 2.0, 6)
    base = np.diag((-1.0, -1.0, 1.0, 1.0))
    M, bias, T = terms(*ours, q, qd, "wrist_3")
    M_peer, bias_peer, T_peer = terms(peer, data, q, qd, "tool0")
    assert relative_error(M_peer, M) < 1e-12
    assert relative_error(bias_peer, bias) < 1e-12
    assert relative_error(base @ T_peer, T) < 1e-12  # Pinocchio's world is the root, base_link
    np.testing.assert_allclose(data.oMf[peer.getFrameId("base")].homogeneous, base, atol=1e-15)
    forward = np.array(data.oMf[peer.getFrameId("flange")].rotation)
    np.testing.assert_allclose(forward[:, 0], T_peer[:3, 2], atol=1e-12)  # REP 103: x of the flange points out
    pin.framesForwardKinematics(peer, data, np.zeros(6))
    places = {"shoulder": (0, 0, 0.1807), "forearm": (0.6127, 0, 0.1807), "wrist_1": (1.18425, 0.17415, 0.1807)}
    for name, p in places.items():
        np.testing.assert_allclose(data.oMf[peer.getFrameId(name)].translation, p, atol=1e-12)


def test_foreign_arm_against_pinocchio(tmp_path: Path, rng: np.random.Generator) -> None:
    """Skew axes, turned inertias, fixed joints before, between and after: Pinocchio's own URDF reader as the judge."""
    import pinocchio as pin

    path = written(tmp_path, ARM)
    model, peer = load(path), pin.buildModelFromUrdf(str(path))
    data, ours = peer.createData(), pinocchio_model(model)
    assert [joint.kind for joint in model.joints] == ["revolute", "prismatic"]
    assert (model.joints[0].q_min, model.joints[0].q_max, model.joints[0].tau_max) == (-2.0, 2.5, 40.0)
    assert model.drives.viscous[0] == 0.7
    assert model.drives.coulomb[0] == 0.2
    assert np.isnan(model.drives.viscous[1])
    assert model.links[0].mass == 3.5
    for _ in range(20):
        q, qd = rng.uniform(-2.0, 2.0, 2), rng.uniform(-2.0, 2.0, 2)
        for a, b in zip(terms(*ours, q, qd, "tcp"), terms(peer, data, q, qd, "tip"), strict=True):
            assert relative_error(a, b) < 1e-12


@pytest.mark.parametrize(
    "axis",
    [(1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0), (0, -1, 0), (0, 0, -1), (0, 0, -1.001), (1e-9, 0, -1), (1, 1, -1)],
)  # fmt: skip
def test_any_axis(axis: tuple[float, ...], tmp_path: Path, rng: np.random.Generator) -> None:
    """The tip turns about the axis: rotation vector q * axis / |axis|."""
    text = " ".join(str(value) for value in axis)
    model = load(written(tmp_path, ARM.replace('<axis xyz="1 -2 0.5"/>', f'<axis xyz="{text}"/>')))
    q = float(rng.uniform(-2.0, 2.0))
    fixed = tcp_pose(model, (0.0, 0.0))[:3, :3]
    world_upper = Rotation.from_euler("z", 0.3) * Rotation.from_euler("xyz", (0.5, 0.2, -0.7))
    turned = world_upper * Rotation.from_rotvec(q * np.array(axis) / np.linalg.norm(axis)) * world_upper.inv()
    np.testing.assert_allclose(tcp_pose(model, (q, 0.0))[:3, :3], turned.as_matrix() @ fixed, atol=1e-14)


FINGERS = """
  <link name="finger"><inertial><mass value="0.1"/>
    <inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial></link>
  <joint name="grip" type="prismatic"><parent link="tip"/><child link="finger"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="0.05" effort="10" velocity="1"/></joint>
  <link name="tail"><inertial><mass value="0.3"/>
    <inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial></link>
  <joint name="wag" type="continuous"><parent link="upper"/><child link="tail"/></joint>
</robot>"""


def test_branches(tmp_path: Path) -> None:
    """Two chains: the error names both ends; a chosen tip carries the other branch with it, held at zero."""
    path = written(tmp_path, ARM.replace("</robot>", FINGERS))
    with pytest.raises(ModelFileError, match="choose one with tip=, they end at finger, tail"):
        load(path)
    assert [joint.name for joint in load(path, tip="finger").joints] == ["swing", "slide", "grip"]
    assert [joint.name for joint in load(path, tip="tail").joints] == ["swing", "wag"]
    cut = load(path, tip="tip")
    assert [joint.name for joint in cut.joints] == ["swing", "slide"]
    assert [link.mass for link in cut.links] == pytest.approx([3.8, 1.3], rel=1e-15)
    with pytest.raises(UnknownName, match="finger"):
        load(path, tip="nose")
    with pytest.raises(ModelFileError, match="no moving joint between 'world' and the tip 'pedestal'"):
        load(path, tip="pedestal")


def test_base(tmp_path: Path) -> None:
    path = written(tmp_path, ARM)
    root, pedestal = from_urdf(path), from_urdf(path, base="pedestal")
    q = (0.3, 0.1)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_euler("z", 0.3).as_matrix(), (0.5, 0.0, 1.0)
    np.testing.assert_allclose(tcp_pose(root, q), T @ tcp_pose(pedestal, q), atol=1e-15)
    with pytest.raises(ModelFileError, match="hangs on moving joints: swing"):
        from_urdf(path, base="upper")
    tilted = from_urdf(written(tmp_path, ARM.replace('rpy="0 0 0.3"', 'rpy="1.5707963267948966 0 0"')), base="pedestal")
    np.testing.assert_allclose(tilted.gravity, (0.0, -9.81, 0.0), atol=1e-15)


def test_unlimited_and_fillers(tmp_path: Path) -> None:
    """Effort and velocity 0 are fillers for unknown; a continuous joint needs no limit."""
    text = ARM.replace('effort="40" velocity="3"', 'effort="0" velocity="0"')
    joint = load(written(tmp_path, text)).joints[0]
    assert (joint.tau_max, joint.qd_max) == (np.inf, np.inf)
    endless = ARM.replace('type="revolute"', 'type="continuous"')
    assert load(written(tmp_path, endless)).joints[0].q_max == np.inf


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<child link="slider"/>', '<child link="pedestal"/>', "line .*<joint> 'slide' closes a loop"),
        ('<parent link="world"/>', '<parent link="tip"/>', "several roots|loop"),
        ('type="prismatic"', 'type="planar"', "<joint> 'slide' has type 'planar'; accepted: revolute"),
        ('<axis xyz="0 -1 0"/>', '<axis xyz="0 -1 0"/><mimic joint="swing"/>', "mimics"),
        ('<axis xyz="0 -1 0"/>', '<axis xyz="0 0 0"/>', "<axis> of joint 'slide'"),
        ('<axis xyz="0 -1 0"/>', '<axis xyz="0 nan 0"/>', "<axis> needs 3 finite numbers in xyz"),
        ('<mass value="3"/>', "", "<inertial> has no <mass>"),
        ('<mass value="3"/>', "<mass/>", "<mass> has no attribute value"),
        ('<mass value="3"/>', '<mass value="inf"/>', "<mass> needs 1 finite number in value, got 'inf'"),
        ('<mass value="3"/>', '<mass value="-3"/>', "must not be negative"),
        ('<mass value="3"/>', '<mass value="three"/>', "finite number"),
        ('ixx="0.02" ', "", "<inertia> has no attribute ixx"),
        ('xyz="0.3 0 0.1"', 'xyz="0.3 0"', "<origin> needs 3 finite numbers in xyz"),
        ('<child link="slider"/>', "", "<joint> 'slide' has no <child>"),
        ('<child link="slider"/>', '<child link="sliders"/>', "names the link 'sliders', which does not exist"),
        ('<joint name="slide"', '<joint name="swing"', "<joint> 'swing' is defined twice"),
        ('<link name="slider">', '<link name="upper">', "<link> 'upper' is defined twice"),
        (ELSE, "", "<joint> 'slide' has no <limit>"),
        (ELSE, ELSE.replace("0.4", "-0.4"), "lower < upper"),
        (ELSE, ELSE.replace('effort="100"', 'effort="-1"'), "effort >= 0"),
        (ELSE, ELSE + ELSE, "<limit> appears twice"),
        ('<joint name="slide"', '<joint name="sl&#x1b;[2Jide"', "not well-formed|printable"),
        ('<joint name="slide"', f'<joint name="{"s" * 129}"', "1 to 128 printable"),
        ('<joint name="slide"', '<joint name="sl&#x202e;ide"', "printable"),
        ('<joint name="slide"', '<joint name=""', "printable"),
        ('<robot name="two">', "<robot>", "<robot> has no attribute name"),
        ("</robot>", "", "not well-formed XML"),
    ],
)
def test_bad_files(old: str, new: str, message: str, tmp_path: Path) -> None:
    """Each names the file and the element."""
    assert old in ARM
    with pytest.raises(ModelFileError, match=rf"(?s)arm\.urdf.*({message})") as caught:
        load(written(tmp_path, ARM.replace(old, new, 1)))
    assert len(str(caught.value)) < 600


def test_loops_without_a_root(tmp_path: Path) -> None:
    link = '<link name="{0}"/>'
    joint = '<joint name="{0}{1}" type="fixed"><parent link="{0}"/><child link="{1}"/></joint>'
    ring = link.format("a") + link.format("b") + joint.format("a", "b") + joint.format("b", "a")
    with pytest.raises(ModelFileError, match="form a loop, no link is the root"):
        load(written(tmp_path, f'<robot name="ring">{ring}</robot>'))
    with pytest.raises(ModelFileError, match="the links a, b form a loop apart from 'c'"):
        load(written(tmp_path, f'<robot name="ring">{link.format("c")}{ring}</robot>'))
    with pytest.raises(ModelFileError, match="has no <link>"):
        load(written(tmp_path, '<robot name="none"/>'))
    with pytest.raises(ModelFileError, match="has no moving joint"):
        load(written(tmp_path, f'<robot name="stiff">{link.format("c")}</robot>'))
    with pytest.raises(ModelFileError, match="not a URDF"):
        load(written(tmp_path, "<sdf/>"))


def test_entity_bomb_does_not_expand(tmp_path: Path) -> None:
    """Ten levels of ten entities, 10^10 characters if expanded: refused at once. So is an external entity."""
    levels = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY e0 "aaaaaaaaaa">{levels}]><robot name="&e9;"/>'
    start = time.process_time()
    with pytest.raises(ModelFileError, match="document type or entity declaration is not accepted"):
        load(written(tmp_path, bomb))
    assert time.process_time() - start < 1.0  # an expansion would take minutes
    (tmp_path / "secret.txt").write_text("secret")
    external = f'<!DOCTYPE robot [<!ENTITY x SYSTEM "file://{tmp_path}/secret.txt">]><robot name="&x;"/>'
    with pytest.raises(ModelFileError, match="not accepted") as caught:
        load(written(tmp_path, external))
    assert "secret" not in str(caught.value).replace("secret.txt", "")


def test_damaged_files_raise_only_our_errors(tmp_path: Path, rng: np.random.Generator) -> None:
    """300 random deletions, copies and exchanges of pieces: it loads, or one of our errors says why not."""
    refused = 0
    for _ in range(300):
        start, other = (int(value) for value in rng.integers(0, len(ARM), 2))
        length = int(rng.integers(1, 30))
        piece = str(rng.choice(["", ARM[other : other + length], "nan", "<", '"', "1e400", "&lt;", "&x;", "\u202e"]))
        try:
            load(written(tmp_path, ARM[:start] + piece + ARM[start + length :]))
        except InvalidValue:  # the root of ours that are ValueErrors
            refused += 1
    assert 150 < refused < 300


def test_declared_encodings_and_deep_nesting(tmp_path: Path) -> None:
    """The declared encoding is not believed, and 100000 nested elements are only data."""
    assert load(written(tmp_path, ARM.replace('version="1.0"', 'version="1.0" encoding="x-user-defined"'))).dof == 2
    deep = ARM.replace("</robot>", "<a>" * 100000 + "</a>" * 100000 + "</robot>")
    assert load(written(tmp_path, deep)).dof == 2


def test_impossible_inertia_is_refused(tmp_path: Path) -> None:
    flat = ARM.replace('ixx="1e-3" ixy="0" ixz="0" iyy="1e-3"', 'ixx="1" ixy="0" ixz="0" iyy="1e-3"')
    with pytest.raises(UnphysicalModel, match=r"link 'slider': .*triangle"):
        load(written(tmp_path, flat))
    massless = ARM.replace('<mass value="1.2"/>', '<mass value="0"/>')
    with pytest.raises(UnphysicalModel, match="link 'slider': mass 0 kg"):
        load(written(tmp_path, massless))


def test_hostile_names_are_escaped_on_export(tmp_path: Path) -> None:
    """Markup in a name stays a name, through export and back."""
    hostile = '"/><gazebo><plugin filename="x.so"/></gazebo><a b="'
    model = load("pendulum")
    joint, link = dataclasses.replace(model.joints[0], name=hostile), dataclasses.replace(model.links[0], name="tcp")
    text = to_urdf(dataclasses.replace(model, joints=(joint,), links=(link,), name="a<b&c"))
    back = load(written(tmp_path, text))
    assert (back.name, back.joints[0].name) == ("a<b&c", hostile)
    assert back.links[0].name == "tcp_link"  # `tcp` is the tool frame


def test_friction_is_written_only_when_asked_for(tmp_path: Path) -> None:
    model = load("ur10e")
    assert "<dynamics" not in to_urdf(model)
    back = load(written(tmp_path, to_urdf(model, drives=True)))
    assert back.drives.viscous.tolist() == model.drives.viscous.tolist()
    assert back.drives.coulomb.tolist() == model.drives.coulomb.tolist()


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="parameters="):
        load(written(tmp_path, ARM), parameters="official")
