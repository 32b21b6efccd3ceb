"""A MuJoCo model as an arm: what MuJoCo computes with it is what we compute, and what is not read is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from oracles import relative_error, tcp_pose

import tangere
from tangere.errors import ModelFileError, UnknownName
from tangere.model.loading import load
from tangere.model.model import Model
from tangere.plants.mujoco_plant import MujocoPlant
from tangere.robots import Robot
from tangere.types import Command

# Default classes inside each other, quaternions of any length, eulers in degrees, armature, damping, an anchor off the
# body's origin, an inertia from shapes, a gripper with a finger, position actuators.
ARM = """<mujoco model="made by hand">
  <compiler angle="degree" autolimits="true"/>
  <option gravity="0 0 -9.7"/>
  <default>
    <default class="arm">
      <joint axis="0 1 0" range="-360 360" armature="0.1"/>
      <default class="big"><joint damping="10"/><position kp="2000" kv="200" forcerange="-150 150"/></default>
      <default class="small"><joint damping="2" axis="0 0 2" frictionloss="0.5"/>
        <position kp="500" forcerange="-28 28"/></default>
    </default>
  </default>
  <worldbody>
    <body name="foot" pos="0.1 0.2 0.3" quat="1 0 0 1" childclass="arm">
      <inertial mass="4" pos="0 0 0" diaginertia="0.01 0.02 0.02"/>
      <body name="shoulder" pos="0 0 0.16" quat="1 0 0 -1">
        <inertial mass="3.7" pos="0 0.01 0.02" quat="1 2 0 0.5" diaginertia="0.01 0.011 0.012"/>
        <joint name="pan" class="big" axis="0 0 1"/>
        <body name="upper" pos="0 0.138 0" euler="0 90 10">
          <inertial mass="8.4" pos="0 0 0.2125" fullinertia="0.2 0.21 0.02 0.001 -0.002 0.003"/>
          <joint name="lift" class="big" pos="0.01 0 -0.02"/>
          <body name="box" pos="0 -0.1 0.4" quat="3 0 0.4 0">
            <geom type="box" size="0.05 0.03 0.2" pos="0 0.02 0.1" density="1500"/>
            <joint name="slide" type="slide" range="-0.2 0.3"/>
            <body name="wrist" pos="0 0 0.39" quat="1 0 1 0">
              <inertial mass="1.2" pos="0 0.12 0" diaginertia="0.001 0.0011 0.0012"/>
              <joint name="roll" class="small" range="-180 180"/>
              <body name="hand" pos="0 0.05 0.1" euler="0 0 45">
                <geom type="sphere" size="0.04" density="2000"/>
                <site name="attachment_site" pos="0 0 0.1" quat="0 1 1 0"/>
                {finger}
              </body>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position class="big" name="pan" joint="pan"/><position class="small" name="roll" joint="roll"/>
    <motor name="lift" joint="lift" gear="50" ctrlrange="-2 2"/>
  </actuator>
</mujoco>
"""
FINGER = '<body name="finger" pos="0 0.03 0.05"><geom size="0.01"/><joint name="grip" type="slide"/></body>'


def read(tmp_path: Path, text: str, **options: Any) -> Model:
    path = tmp_path / "arm.xml"
    path.write_text(text)
    return load(path, **options)


def compare(text: str, model: Model, joints: list[str], tip: Any, rng: np.random.Generator) -> None:
    """M (with the armature), the bias C qd + g, and the pose of the tip, at ten states."""
    peer: Any = mujoco.MjModel.from_xml_string(text)
    peer.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data, robot = mujoco.MjData(peer), Robot(model)
    dofs = [int(peer.jnt_dofadr[peer.joint(name).id]) for name in joints]
    for _ in range(10):
        q, qd = rng.uniform(-2.0, 2.0, model.dof), rng.uniform(-2.0, 2.0, model.dof)
        data.qpos[:], data.qvel[:] = 0.0, 0.0
        data.qpos[dofs], data.qvel[dofs] = q, qd
        mujoco.mj_forward(peer, data)
        full = np.zeros((peer.nv, peer.nv))
        mujoco.mj_fullM(peer, data, full)
        M = full[np.ix_(dofs, dofs)] - np.diag(np.asarray(peer.dof_armature)[dofs])
        assert relative_error(robot.mass_matrix(q), M) < 1e-9
        bias = robot.inverse_dynamics(q, qd, np.zeros(model.dof))
        assert relative_error(bias, np.asarray(data.qfrc_bias)[dofs]) < 1e-9
        place = tip(data)
        T = tcp_pose(model, q)
        np.testing.assert_allclose(T[:3, 3], place.xpos, atol=1e-12)
        np.testing.assert_allclose(T[:3, :3].ravel(), place.xmat, atol=1e-12)


def test_by_hand(tmp_path: Path, rng: np.random.Generator) -> None:
    """Everything at once, the finger held at zero; each thing that is not read is said."""
    text = ARM.format(finger=FINGER)
    with pytest.warns(UserWarning, match="3 actuators are not read") as said:
        model = read(tmp_path, text, tip="attachment_site")
    assert all(word in str(said[0].message) for word in ("damping", "1 joint beside the arm is held at zero"))
    joints = ["pan", "lift", "slide", "roll"]
    assert model.name == "made by hand"
    assert [joint.name for joint in model.joints] == joints
    assert [joint.kind for joint in model.joints] == ["revolute", "revolute", "prismatic", "revolute"]
    compare(text, model, joints, lambda data: data.site("attachment_site"), rng)
    assert model.gravity.tolist() == [0.0, 0.0, -9.7]
    assert model.drives.rotor_inertia.tolist() == [0.1] * 4
    assert model.drives.viscous[[0, 1, 3]].tolist() == [10.0, 10.0, 2.0]
    assert np.isnan(model.drives.viscous[2])
    assert np.isnan(model.drives.coulomb[:3]).all()
    assert model.drives.coulomb[3] == 0.5
    assert [joint.tau_max for joint in model.joints] == [150.0, 100.0, np.inf, 28.0]
    assert model.joints[0].q_max == pytest.approx(2.0 * np.pi)
    assert model.joints[2].q_max == pytest.approx(0.3)


@pytest.mark.filterwarnings("ignore")
def test_tip_and_base(tmp_path: Path, rng: np.random.Generator) -> None:
    """The usual site is found by itself; a body may be tip or base; an unknown name lists those that there are."""
    plain = ARM.format(finger="")
    joints = ["pan", "lift", "slide", "roll"]
    compare(plain, read(tmp_path, plain), joints, lambda data: data.site("attachment_site"), rng)
    compare(plain, read(tmp_path, plain, tip="hand"), joints, lambda data: data.body("hand"), rng)
    foot = read(tmp_path, plain, base="foot")
    world = read(tmp_path, plain)
    q = rng.uniform(-1.0, 1.0, 4)
    data = mujoco.MjData(peer := mujoco.MjModel.from_xml_string(plain))
    mujoco.mj_forward(peer, data)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = data.body("foot").xmat.reshape(3, 3), data.body("foot").xpos
    np.testing.assert_allclose(T @ tcp_pose(foot, q), tcp_pose(world, q), atol=1e-12)
    np.testing.assert_allclose(Robot(foot).gravity_torque(q), Robot(world).gravity_torque(q), atol=1e-12)
    with pytest.raises(UnknownName, match="'nose' is no body or site; bodies: world, foot, shoulder"):
        read(tmp_path, plain, tip="nose")
    with pytest.raises(ModelFileError, match="base 'upper' hangs on moving joints: those of shoulder, upper"):
        read(tmp_path, plain, base="upper")


def random_text(seed: int) -> tuple[str, list[str]]:
    """A chain of four to seven bodies with anything at random that MJCF allows on the way."""
    rng = np.random.default_rng(seed)

    def numbers(count: int, scale: float = 1.0) -> str:
        return " ".join(repr(float(value)) for value in scale * rng.normal(size=count))

    names, inside = [], '<site name="tcp" pos="0.1 0 0.05" quat="1 2 3 4"/>'
    for i in reversed(range(int(rng.integers(4, 8)))):
        root = 0.1 * rng.normal(size=(3, 3))
        spread = root @ root.T  # second moments of a body: its inertia is trace * 1 - spread
        inertia = np.trace(spread) * np.eye(3) - spread
        order = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        full = " ".join(repr(float(inertia[row, column])) for row, column in order)
        names.insert(0, f"j{i}")
        kind = rng.choice(["hinge", "hinge", "hinge", "slide"])
        stiff = f'armature="{rng.uniform(0.0, 0.3)}" damping="{rng.uniform(0.0, 5.0)}"'
        joint = f'<joint name="j{i}" type="{kind}" axis="{numbers(3)}" pos="{numbers(3, 0.05)}" {stiff}/>'
        rigid = f'<body pos="{numbers(3, 0.1)}" quat="{numbers(4)}"><geom size="0.05" pos="{numbers(3, 0.1)}"/></body>'
        inertial = f'<inertial mass="{rng.uniform(0.5, 9.0)}" pos="{numbers(3, 0.1)}" fullinertia="{full}"/>'
        place = f'pos="{numbers(3, 0.3)}" quat="{numbers(4)}"'
        inside = f'<body name="b{i}" {place}>{inertial}{joint}{rigid}{inside}</body>'
        if rng.random() < 0.5:  # a bracket between two moving bodies, with a mass of its own
            inside = rigid.replace("</body>", f"{inside}</body>")
    options = f'<compiler angle="radian"/><option gravity="{numbers(3, 9.81)}"/>'
    return f"<mujoco>{options}<worldbody>{inside}</worldbody></mujoco>", names


@pytest.mark.filterwarnings("ignore:.*damping is taken as viscous")
@pytest.mark.parametrize("seed", range(10))
def test_random_chains(seed: int, tmp_path: Path, rng: np.random.Generator) -> None:
    text, joints = random_text(seed)
    compare(text, read(tmp_path, text), joints, lambda data: data.site("tcp"), rng)


MESH = '<asset><mesh name="skin" file="skin.stl"/></asset>'


def test_meshes_that_are_not_there(tmp_path: Path, rng: np.random.Generator) -> None:
    """Left out where the inertia is given; refused, with what to do, where it would come from the mesh."""
    plain = ARM.format(finger="")
    skin = plain.replace("<worldbody>", f"{MESH}<worldbody>").replace(
        '<joint name="pan"', '<geom type="mesh" mesh="skin"/><joint name="pan"'
    )
    with pytest.warns(UserWarning, match="1 mesh could not be read"):
        model = read(tmp_path, skin)
    compare(plain, model, ["pan", "lift", "slide", "roll"], lambda data: data.site("attachment_site"), rng)
    only = skin.replace('<inertial mass="3.7" pos="0 0.01 0.02" quat="1 2 0 0.5" diaginertia="0.01 0.011 0.012"/>', "")
    with pytest.raises(ModelFileError, match="body 'shoulder' takes its inertia from a mesh whose file is not there"):
        read(tmp_path, only)


TWO = '<joint name="more" axis="1 0 0"/><joint name="roll"'


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('<joint name="roll"', TWO), "body 'wrist' has several joints"),
        (('<joint name="slide" type="slide" range="-0.2 0.3"/>', '<joint name="b" type="ball" range="0 1"/>'),
         "'b' is a ball or free"),
        (('range="-180 180"', 'range="-180 180" ref="10"'), "has a reference"),
        (("<actuator>", '<equality><joint joint1="pan" joint2="lift"/></equality><actuator>'),
         "has equality constraints"),
        (('type="slide"', 'type="screw"'), "MuJoCo refuses it"),
        (("</mujoco>", ""), "not well-formed XML"),
        (('<joint name="', '<!-- <joint name="'), "not well-formed XML"),
    ],
)  # fmt: skip
def test_refused(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    text = ARM.format(finger="")
    assert change[0] in text
    with pytest.raises(ModelFileError, match=said):
        read(tmp_path, text.replace(*change))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('<joint name="roll"', '<joint name="roll" stiffness="3"'), "springs of its joints"),
        (('<body name="hand"', '<body name="hand" gravcomp="1"'), "gravity compensation"),
        (("<option ", '<option density="1.2" '), "air or water"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_said(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=said):
        read(tmp_path, ARM.format(finger="").replace(*change))


def test_it_is_an_arm_and_no_parameter_file(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(ARM.format(finger=""))
    with pytest.raises(ModelFileError, match="an arm of its own, with frames of its own: give it as the robot"):
        tangere.robot("ur10e", parameters=tmp_path / "arm.xml")


@pytest.mark.filterwarnings("ignore")
def test_gravity_that_is_switched_off(tmp_path: Path, rng: np.random.Generator) -> None:
    text = ARM.format(finger="").replace('-9.7"/>', '-9.7"><flag gravity="disable"/></option>')
    joints = ["pan", "lift", "slide", "roll"]
    compare(text, read(tmp_path, text), joints, lambda data: data.site("attachment_site"), rng)


@pytest.mark.filterwarnings("ignore")
def test_several_chains(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"several chains; choose one with tip=, they end at .*finger"):
        read(tmp_path, ARM.format(finger=FINGER + FINGER.replace("finger", "thumb").replace("grip", "hold")))


@pytest.mark.filterwarnings("ignore")
def test_runs_as_any_other_arm(tmp_path: Path) -> None:
    """A parameter set and a plant: the file's arm under a controller in our MuJoCo plant."""
    path = tmp_path / "arm.xml"
    path.write_text(ARM.format(finger="").replace('type="slide" range="-0.2 0.3"', 'range="-90 90"'))
    robot = tangere.robot(path)
    plant = MujocoPlant(robot)
    start = np.array([0.1, -0.4, 0.3, 0.2])
    plant.reset(start)
    for _ in range(50):
        plant.write(Command(robot.gravity_torque(plant.read().q)))
    assert np.max(np.abs(plant.read().q - start)) < 1e-6  # held by its own gravity torque
    plant.close()
