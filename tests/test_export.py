"""Arms as files for other tools: what comes back is the same arm, and parsers that are not ours agree."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import frames, mass_matrix, random_arm, relative_error, tcp_pose

from tangere.cli.export import FORMATS, text_of
from tangere.cli.main import main
from tangere.model.frames import rotation_rpy, transform
from tangere.model.loading import load, names
from tangere.model.model import Array, Joint, Link, Model
from tangere.model.sdf_text import to_sdf
from tangere.model.toml_text import to_toml
from tangere.model.urdf_text import to_urdf
from tangere.robots import Robot

TEXT = 'a "quoted" \\ text\nof two lines'
TOOL = (0.01, -0.02, 0.1, 0.3, 0.1, -0.2)
ENDING = {"urdf": "urdf", "mjcf": "xml", "toml": "toml"}


def written(tmp_path: Path, text: str, ending: str) -> Path:
    path = tmp_path / f"arm.{ending}"
    path.write_text(text)
    return path


def same(ours: Model, theirs: Model, rng: np.random.Generator, bound: float = 1e-12) -> None:
    """M, C qd, g and the tool's pose of two arms, at ten states."""
    a, b = Robot(ours), Robot(theirs)
    for _ in range(10):
        q, qd = rng.uniform(-3.0, 3.0, a.dof), rng.uniform(-2.0, 2.0, a.dof)
        assert relative_error(b.mass_matrix(q), a.mass_matrix(q)) < bound
        assert relative_error(b.coriolis_matrix(q, qd) @ qd, a.coriolis_matrix(q, qd) @ qd) < bound
        assert relative_error(b.gravity_torque(q), a.gravity_torque(q)) < bound
        assert relative_error(tcp_pose(theirs, q), tcp_pose(ours, q)) < bound


@pytest.mark.filterwarnings("ignore:.*not read, but for torque limits")
@pytest.mark.filterwarnings("ignore:.*damping is taken as viscous")
@pytest.mark.parametrize("kind", ENDING)
@pytest.mark.parametrize("arm", names())
def test_round_trip(arm: str, kind: str, tmp_path: Path, rng: np.random.Generator) -> None:
    model = load(arm, tool=TOOL, payload=(0.7, (0.01, 0.02, 0.05), 0.001 * np.eye(3)))
    same(model, load(written(tmp_path, text_of(model, kind), ENDING[kind])), rng)


@pytest.mark.filterwarnings("ignore:.*not read, but for torque limits")
@pytest.mark.parametrize("kind", ENDING)
@pytest.mark.parametrize("mounting", ["wall", "ceiling", (1.0, 2.0, -9.0)])
def test_mounting_survives(mounting: Any, kind: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """Gravity's direction comes back; its strength too, but for URDF, which has 9.81 m/s2."""
    model = load("ur5e", gravity=mounting)
    back = load(written(tmp_path, text_of(model, kind), ENDING[kind]))
    pull = 9.81 if kind == "urdf" else float(np.linalg.norm(model.gravity))
    np.testing.assert_allclose(back.gravity, model.gravity / np.linalg.norm(model.gravity) * pull, atol=1e-12)
    same(dataclasses.replace(model, gravity=back.gravity), back, rng)


@pytest.mark.parametrize("seed", range(4))
def test_toml_of_arms_with_any_frames(seed: int, tmp_path: Path, rng: np.random.Generator) -> None:
    """Everything that a model holds comes back: names, limits, drives, payload, sources."""
    sources = random_arm(seed).sources
    groups = ("kinematics", "limits", "mass", "com", "inertia", "drives (joints 1, 3)", "drives")
    model = random_arm(seed)
    known = dataclasses.replace(model.drives, coulomb=np.arange(1.0, 6.0), gain=np.array([1.0, np.nan, 3.0, 4.0, 5.0]))
    many = tuple(dataclasses.replace(sources[0], group=group, text=TEXT) for group in groups)
    model = dataclasses.replace(model, sources=many, drives=known)
    back = load(written(tmp_path, to_toml(model), "toml"))
    same(model, back, rng, 1e-11)  # angles of any size are written in degrees
    assert back.sources == model.sources
    assert back.payload is not None
    assert (back.name, back.title, back.parameters) == (model.name, model.title, model.parameters)
    np.testing.assert_array_equal(back.drives.coulomb, known.coulomb)
    np.testing.assert_array_equal(back.drives.gain, known.gain)
    for ours, theirs in zip(model.joints, back.joints, strict=True):
        assert (ours.name, ours.kind, ours.qd_max, ours.tau_max) == (
            theirs.name, theirs.kind, theirs.qd_max, theirs.tau_max,
        )  # fmt: skip
        assert (ours.q_min, ours.q_max) == pytest.approx((theirs.q_min, theirs.q_max), rel=1e-15)


@pytest.mark.parametrize("arm", names())
def test_toml_keeps_every_number(arm: str, tmp_path: Path) -> None:
    """Drives, sources and the DH rows, so that a UR stays a UR with its compiled kernels."""
    model = load(arm)
    back = load(written(tmp_path, to_toml(model), "toml"))
    assert back.sources == model.sources
    assert (back.dh is None) == (model.dh is None)
    for field in dataclasses.fields(model.drives):
        np.testing.assert_array_equal(getattr(back.drives, field.name), getattr(model.drives, field.name))
    if model.dh is not None and back.dh is not None:
        for key in ("a", "d", "alpha"):
            np.testing.assert_array_equal(getattr(back.dh, key), getattr(model.dh, key))


def place(element: ET.Element | None) -> Array:
    if element is None or element.text is None:
        return np.eye(4)
    values = [float(word) for word in element.text.split()]
    return transform(rotation_rpy(*values[3:]), values[:3])


def from_sdf(text: str, model: Model) -> Model:
    """What the SDF says, read by the standard library: joints and bodies in the order of the chain."""
    arm = ET.fromstring(text).find(".//model[plugin]")
    assert arm is not None
    links = {link.get("name"): link for link in arm.findall("link")}
    fixed = {frame.get("name"): frame for frame in arm.findall("frame")}
    joints, bodies = [], []
    T = np.eye(4)
    for joint in arm.findall("joint"):
        link = links[joint.findtext("child")]
        inertial = link.find("inertial")
        pose = joint.find("pose")
        assert inertial is not None
        if pose is None:  # the root in the world
            continue
        body = Link(link.get("name") or "", *_body(inertial))
        if joint.get("type") == "fixed":
            if link.get("name") == "payload":
                held = dataclasses.replace(body, name="payload")
                where = place(fixed["flange"].find("pose")) @ place(fixed["tool0"].find("pose")) @ place(pose)
                bodies.append(dataclasses.replace(held, com=where[:3, :3] @ held.com + where[:3, 3]))
            else:
                T = T @ place(pose)
            continue
        limit = joint.find("axis/limit")
        assert limit is not None
        low, high = (float(limit.findtext(key, default)) for key, default in (("lower", "-inf"), ("upper", "inf")))
        kind: Any = "prismatic" if joint.get("type") == "prismatic" else "revolute"
        joints.append(Joint(joint.get("name") or "", kind, T @ place(pose), np.eye(4), low, high, np.inf, np.inf))
        bodies.append(body)
        T = np.eye(4)
    end = place(fixed["flange"].find("pose")) @ place(fixed["tool0"].find("pose")) @ place(fixed["tcp"].find("pose"))
    turn = np.diag((-1.0, -1.0, 1.0, 1.0))  # from base, our frame, to base_link, the root
    first = dataclasses.replace(joints[0], T_parent_joint=turn @ joints[0].T_parent_joint)
    return dataclasses.replace(
        model, joints=(first, *joints[1:]), links=tuple(bodies[: len(joints)]), T_flange_tcp=end, payload=None, dh=None
    )


def _body(inertial: ET.Element) -> tuple[float, Array, Array]:
    keys = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    entry = {key: float(inertial.findtext(f"inertia/{key}", "nan")) for key in keys}
    full = np.array(
        [[entry["ixx"], entry["ixy"], entry["ixz"]], [entry["ixy"], entry["iyy"], entry["iyz"]],
         [entry["ixz"], entry["iyz"], entry["izz"]]]
    )  # fmt: skip
    return float(inertial.findtext("mass", "nan")), place(inertial.find("pose"))[:3, 3], full


@pytest.mark.parametrize("arm", names())
def test_sdf_says_the_same_arm(arm: str, rng: np.random.Generator) -> None:
    """Masses, frames and limits by a reader of a few lines (the oracle's M, not our kernels)."""
    model = load(arm, tool=TOOL)
    back = from_sdf(to_sdf(model, shapes=True), model)
    for _ in range(3):
        q = rng.uniform(-3.0, 3.0, model.dof)
        assert relative_error(mass_matrix(back, q), mass_matrix(model, q)) < 1e-11  # a point mass has 1e-12 kg m2
        assert relative_error(tcp_pose(back, q), tcp_pose(model, q)) < 1e-12
        assert len(frames(back, q)[1]) == len(frames(model, q)[1])
    for ours, theirs in zip(model.joints, back.joints, strict=True):
        assert (ours.name, ours.kind, ours.q_min, ours.q_max) == (theirs.name, theirs.kind, theirs.q_min, theirs.q_max)


def sdformat(path: Path) -> subprocess.CompletedProcess[str]:
    """Gazebo's own reader, from Debian's ignition-tools and libsdformat."""
    if shutil.which("ign") is None:
        pytest.skip("Gazebo's checker `ign sdf` is not installed (Debian: ignition-tools libsdformat-dev)")
    return subprocess.run(["ign", "sdf", "-k", str(path)], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("arm", "world", "mounting"), [("ur5e", False, "table"), ("ur10e", True, "wall"), ("scara", True, "table")]
)
def test_sdf_by_gazebos_own_reader(arm: str, world: bool, mounting: str, tmp_path: Path) -> None:
    model = load(arm, gravity=mounting, payload=1.0)
    answer = sdformat(written(tmp_path, to_sdf(model, drives=True, shapes=True, world=world), "sdf"))
    assert answer.stdout.strip() == "Valid.", answer.stdout + answer.stderr


def test_gazebos_reader_looks(tmp_path: Path) -> None:
    """A joint that names a link which is not there is found: the check above can fail."""
    text = to_sdf(load("ur5e")).replace("<child>forearm</child>", "<child>nothing</child>")
    assert "Valid." not in sdformat(written(tmp_path, text, "sdf")).stdout


@pytest.mark.parametrize("arm", ["ur3e", "ur10e", "ur20", "planar3r"])
def test_urdf_by_gazebos_physics(arm: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """DART, which Gazebo computes with: mass matrix and gravity."""
    dart = pytest.importorskip("dartpy")
    model = load(arm, payload=(1.0, (0.0, 0.01, 0.05), 0.001 * np.eye(3)))
    path = written(tmp_path, to_urdf(model, drives=True, shapes=True, collision=True, control="gazebo"), "urdf")
    loader = dart.io.DartLoader() if hasattr(dart, "io") else dart.utils.DartLoader()
    skeleton = loader.parseSkeleton(str(path))
    skeleton.setGravity([0.0, 0.0, -9.81])
    for name in ("base_link", "base", "flange", "tool0", "tcp"):  # DART gives a frame without a body 1 kg of its own
        skeleton.getBodyNode(name).setInertia(dart.dynamics.Inertia(1e-15, np.zeros(3), 1e-15 * np.eye(3)))
    dof, robot = model.dof, Robot(model)
    order = [skeleton.getDof(joint.name).getIndexInSkeleton() for joint in model.joints]
    for _ in range(5):
        q = rng.uniform(-3.0, 3.0, dof)
        positions = np.zeros(skeleton.getNumDofs())
        positions[order] = q
        skeleton.setPositions(positions)
        M = np.asarray(skeleton.getMassMatrix())[np.ix_(order, order)]
        assert relative_error(M, robot.mass_matrix(q)) < 1e-12
        assert relative_error(np.asarray(skeleton.getGravityForces())[order], robot.gravity_torque(q)) < 1e-12


def test_urdf_by_yourdfpy(tmp_path: Path) -> None:
    """A strict reader: valid, with visuals and collisions, and the tool where we have it."""
    yourdfpy = pytest.importorskip("yourdfpy")
    model = load("ur5e", tool=TOOL)
    path = written(tmp_path, to_urdf(model, drives=True, shapes=True, collision=True, control="ur"), "urdf")
    peer = yourdfpy.URDF.load(str(path), build_scene_graph=True, load_meshes=False)
    assert peer.validate()
    q = np.linspace(-1.0, 1.0, 6)
    peer.update_cfg(dict(zip([joint.name for joint in model.joints], q.tolist(), strict=True)))
    np.testing.assert_allclose(peer.get_transform("tcp", "base"), tcp_pose(model, q), atol=1e-12)
    assert all(peer.link_map[link.name].collisions for link in model.links)


def test_control_tags(tmp_path: Path) -> None:
    """ros2_control with what each joint takes, and Gazebo's plugin for Gazebo alone."""
    model = load("ur10e")
    for control, plugin in (("gazebo", "gz_ros2_control/GazeboSimSystem"), ("ur", "ur_robot_driver/")):
        root = ET.fromstring(text_of(model, "urdf", control=control))
        assert plugin in root.findtext("ros2_control/hardware/plugin", "")
        assert (root.find("gazebo") is not None) == (control == "gazebo")
        joints = root.findall("ros2_control/joint")
        assert [joint.get("name") for joint in joints] == [joint.name for joint in model.joints]
        effort = joints[1].find("command_interface[@name='effort']")
        assert effort is not None
        assert [float(param.text or "nan") for param in effort] == [-330.0, 330.0]
    assert ET.fromstring(text_of(model, "urdf", control="none")).find("ros2_control") is None


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says what was written and what the format cannot hold; mistakes are a sentence each."""
    for kind in FORMATS:
        out = tmp_path / f"ur3e.{kind}"
        assert main(["export", "--robot", "ur3e", "--format", kind, "--out", str(out)]) == 0
        assert f"as {kind.upper()}" in capsys.readouterr().out
        assert out.stat().st_size > 2000
    assert main(["export", "--robot", "ur3e", "--format", "toml", "--out", "-"]) == 0
    assert capsys.readouterr().out == to_toml(load("ur3e"))
    out = tmp_path / "mine.toml"
    held = ["--payload", "500g,0,0,50mm", "--tool", "0,0,100mm"]
    assert main(["export", "--robot", "ur3e", *held, "--out", str(out)]) == 0
    held = load(out).payload
    assert held is not None
    assert held.mass == 0.5
    assert held.com.tolist() == [0.0, 0.0, 0.05]
    capsys.readouterr()
    for words, said in (
        (["--robot", "ur3e"], "--format says what to write"),
        (["--out", str(tmp_path / "a.xml"), "--world"], "--world belongs to --format sdf"),
        (["--out", str(tmp_path / "a.xml"), "--payload", "1,2"], "payload"),
        (["--out", str(tmp_path / "no" / "such" / "a.xml")], "a.xml"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = main(["export", *words])
        assert code == 1, words
        assert said in capsys.readouterr().err, words
