"""A robot as a user meets it: UR's six numbers, aliases, names, warnings, types, pictures, short texts."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from oracles import random_arm
from test_import import python

import tangere
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.control import Setpoint
from tangere.errors import InvalidValue, MissingExtra
from tangere.figures.plots import columns_figure, columns_table
from tangere.kernels import shapes
from tangere.kernels.traced import TracedKernels
from tangere.kinematics.rotation import matrix_from_rotation_vector, pose_from_ur, ur_from_pose

Q = [0.3, -1.2, 1.4, -1.1, -1.5, 0.4]
UR = tangere.robot("ur5e", tool=(0.0, 0.0, 0.1))
TRACED = TracedKernels(UR.model, rotor_inertia=UR.rotor_inertia)
TRACED.robot = lambda: UR
OTHER = tangere.Robot(random_arm(3, "rrprr"))
FORMS = pytest.mark.parametrize("robot", [UR, TRACED], ids=["compiled", "Python"])


# ---- UR's x y z rx ry rz ----


@FORMS
@pytest.mark.parametrize("lead", [(), (5,), (2, 3)])
def test_a_pose_as_six_numbers(robot: tangere.Robot, lead: tuple[int, ...], rng: np.random.Generator) -> None:
    q = rng.uniform(-1.5, 1.5, (*lead, 6))
    T, six = robot.pose(q), robot.pose(q, form="ur")
    assert six.shape == (*lead, 6)
    np.testing.assert_array_equal(six[..., :3], T[..., :3, 3])
    np.testing.assert_allclose(matrix_from_rotation_vector(six[..., 3:]), T[..., :3, :3], atol=1e-14)
    np.testing.assert_array_equal(robot.pose(q, form="matrix"), T)
    np.testing.assert_array_equal(robot.pose(q=q, form="ur"), six)


@FORMS
def test_six_numbers_are_a_pose(robot: tangere.Robot) -> None:
    T, six = robot.pose(Q), robot.pose(Q, form="ur")
    for given in (six, six.tolist(), tuple(six)):
        found = robot.inverse_kinematics(given, reference=Q)
        assert isinstance(found, tangere.IKSolutions)
        np.testing.assert_allclose(found.nearest(Q), Q, atol=1e-9)
        assert len(found) == len(robot.inverse_kinematics(T))
    many = robot.inverse_kinematics(np.stack([six, six]))
    assert isinstance(many, tangere.IKBatch)
    assert many.q.shape == (2, 8, 6)
    assert robot.inverse_kinematics([T, T]).count.tolist() == many.count.tolist()


def test_other_arms_take_and_give_them_too() -> None:
    q = np.array([0.1, 0.4, 0.2, -0.3, 0.5])
    found = OTHER.inverse_kinematics(OTHER.pose(q, form="ur"), reference=q)
    np.testing.assert_allclose(OTHER.pose(found.nearest(q)), OTHER.pose(q), atol=1e-9)


def test_six_numbers_and_back(rng: np.random.Generator) -> None:
    six = np.concatenate([rng.normal(size=(20, 3)), rng.uniform(-1.0, 1.0, (20, 3))], axis=-1)
    np.testing.assert_allclose(ur_from_pose(pose_from_ur(six)), six, atol=1e-13)


@FORMS
@pytest.mark.parametrize(
    ("T", "said"),
    [
        ([0.3, -0.2, 0.4], r"T: expected shape \(..., 4, 4\), got \(3,\)"),
        ([0.3, -0.2, 0.4, 0.0, 3.14, np.nan], "x y z rx ry rz: every entry must be finite"),
        ([0.3, -0.2, 2e6, 0.0, 3.14, 0.0], "T: 2e.06 m is no place for an arm"),
        ("up", "T: expected real numbers"),
        ([[1.0, 2.0], [3.0]], "T: expected real numbers"),
    ],
)
def test_what_is_no_pose_is_refused(robot: tangere.Robot, T: object, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        robot.inverse_kinematics(T)  # type: ignore[call-overload]


@FORMS
def test_an_unknown_form_is_refused(robot: tangere.Robot) -> None:
    with pytest.raises(InvalidValue, match="form: got 'quaternion', valid are 'matrix', 'ur'"):
        robot.pose(Q, form="quaternion")
    with pytest.raises(TypeError):
        robot.pose(Q, shape="ur")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        robot.pose()  # type: ignore[call-arg]


# ---- degrees ----


@FORMS
@pytest.mark.parametrize("many", [False, True])
def test_degrees_are_noticed_once(robot: tangere.Robot, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "_said", False)
    degrees = np.array([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
    given = np.stack([np.zeros(6), degrees]) if many else degrees
    with pytest.warns(UserWarning, match=r"q: -90 rad is 14 turns, .* limits of ur5e: angles are in radians"):
        robot.pose(given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot.pose(given)  # said once


def test_two_turns_and_endless_joints_are_no_degrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "_said", False)
    endless = tangere.robot("ur3e")  # its joint 6 turns without end
    assert not np.isfinite(endless.q_max[5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        UR.pose([6.28, -6.28, 6.28, 12.5, -12.5, 6.28])
        T = endless.pose([0.0, -1.0, 1.0, 0.0, 0.0, 100.0])
        OTHER.pose([0.0, 0.0, 100.0, 0.0, 0.0])  # m: a slide
    np.testing.assert_allclose(T, endless.pose([0.0, -1.0, 1.0, 0.0, 0.0, 100.0 - 30 * np.pi - 2 * np.pi]), atol=1e-12)


def test_a_warning_that_is_an_error_gets_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "_said", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="angles are in radians"):
            UR.pose(np.full(6, 90.0))


def test_the_limit_is_the_same_in_both_forms() -> None:
    """Beyond MANY_TURNS of shapes.py, which is TG_FAR of core.c, and not before, Python is asked."""
    source = (Path(shapes.__file__).parent / "c" / "core.c").read_text()
    assert "#define TG_FAR (4.0 * 3.14159265358979323846)" in source
    assert shapes.MANY_TURNS == 4.0 * np.pi


# ---- names ----


def test_aliases_and_names() -> None:
    assert tangere.Robot.fk is tangere.Robot.pose
    assert tangere.Robot.ik is tangere.Robot.inverse_kinematics
    np.testing.assert_array_equal(UR.fk(Q), UR.pose(Q))
    assert UR.joint_names[0] == UR.model.joints[0].name
    assert len(UR.joint_names) == 6


def test_mounting_is_gravity() -> None:
    wall = tangere.robot("ur5e", mounting="wall")
    np.testing.assert_array_equal(wall.model.gravity, tangere.robot("ur5e", gravity="wall").model.gravity)
    with pytest.raises(InvalidValue, match="gravity= and mounting= say the same"):
        tangere.robot("ur5e", mounting="wall", gravity="table")


def test_short_texts() -> None:
    assert repr(UR.model) == "Model('ur5e', parameters='ur-ros2', dof=6)"
    assert len(repr(UR)) < 100
    many = UR.inverse_kinematics([UR.pose(Q), UR.pose(Q), np.eye(4) + 5.0 * np.eye(4, k=3)])
    assert repr(many) == "IKBatch: 3 poses (3,) of ur5e, 2 of them within reach"


def test_other_poses_may_be_six_numbers_too() -> None:
    six = UR.pose(Q, form="ur")
    reference = Setpoint(UR, Q, six).at(0.0)
    np.testing.assert_allclose(reference.T, UR.pose(Q), atol=1e-14)
    np.testing.assert_allclose(Canvas(six).T_base_canvas, UR.pose(Q), atol=1e-14)


# ---- types ----

SNIPPET = """
import numpy as np
import tangere
robot = tangere.robot("ur5e")
one = robot.inverse_kinematics([0.3, -0.2, 0.4, 0.0, 3.14, 0.0])
many = robot.ik([np.eye(4), np.eye(4)])
unknown = robot.ik(robot.pose([0.0] * 6))
reveal_type(one)
reveal_type(many)
reveal_type(unknown)
reveal_type(robot.pose([0.0] * 6, form="ur"))
reveal_type(robot.fk)
q: tangere.types.Array = unknown.nearest([0.0] * 6)
found: tangere.types.Array = unknown.valid
"""


def test_no_call_needs_a_cast(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(SNIPPET)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "snippet.py"],
        cwd=tmp_path, env={"MYPYPATH": str(Path(tangere.__file__).parents[1]), "PATH": ""},
        capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    revealed = [line.partition("Revealed type is ")[2].strip('"') for line in done.stdout.splitlines()]
    revealed = [text for text in revealed if text]
    assert revealed[:3] == ["tangere.kernels.solutions.IKSolutions", "tangere.kernels.solutions.IKBatch", "Any"]
    assert "ndarray" in revealed[3]
    assert re.search(r"form: (builtins\.)?str", revealed[4])  # the Python signature, not (*args, **keywords)
    assert not re.search(r"^snippet\.py.* error", done.stdout, re.MULTILINE), done.stdout


# ---- pictures ----


def test_an_arm_is_drawn() -> None:
    figure = UR.plot(Q)
    root = ElementTree.fromstring(figure.svg)
    assert root.tag.endswith("svg")
    bodies = [e for e in root.iter() if (e.get("class") or "").startswith("solid")]
    assert len(bodies) > UR.dof
    assert "Universal Robots UR5e" in figure.svg
    assert figure._repr_svg_() == figure.svg
    image = re.fullmatch(r'<img alt="[^"]+" src="data:image/svg\+xml;base64,([^"]+)">', figure._repr_html_())
    assert image is not None
    assert base64.b64decode(image[1]).decode() == figure.svg
    assert repr(figure) == "Figure('Universal Robots UR5e, drawn to scale', 640 x 480)"
    assert UR.plot(np.array([Q, Q]) + [[0.0], [0.1]], frames=True).svg.count('class="frame"') == 8
    assert OTHER.plot(np.zeros(5)).svg != figure.svg
    with pytest.raises(InvalidValue, match="several"):
        UR.plot(np.zeros((2, 3, 6)))
    with pytest.raises(InvalidValue, match="expected shape"):
        UR.plot([0.0, 1.0])


def test_a_figure_is_saved(tmp_path: Path) -> None:
    figure = UR.plot(Q)
    where = figure.save(tmp_path / "arm.svg")
    assert ElementTree.parse(where).getroot().get("viewBox") == "0 0 640 480"
    with pytest.raises(InvalidValue, match=r"a figure is saved as \.svg or \.png"):
        figure.save(tmp_path / "arm.jpg")


def test_a_png_needs_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(MissingExtra, match="pip install cairosvg"):
        UR.plot(Q).save(tmp_path / "arm.png")
    assert not list(tmp_path.iterdir())


def test_a_robot_as_a_table() -> None:
    html = tangere.robot("ur5e", payload=2.0)._repr_html_()
    assert html.count("<tr>") == 1 + 6
    for word in ("Universal Robots UR5e", "shoulder_pan_joint", "payload 2 kg", "−360 … 360", "150"):
        assert word in html
    assert "∞" in tangere.robot("ur3e")._repr_html_()


def test_drawing_loads_no_report(root: Path) -> None:
    code = f"import sys, tangere; tangere.robot('ur5e').plot({Q}); print(any('report' in m for m in sys.modules))"
    assert python(code, root).strip() == "False"


def test_solutions_are_drawn_and_listed() -> None:
    found = UR.inverse_kinematics(UR.pose(Q, form="ur").tolist())
    figure = found.plot()
    boxes = [e for e in ElementTree.fromstring(figure.svg).iter() if (e.get("transform") or "").startswith("translate")]
    assert len(boxes) == len(found) == 8
    assert (figure.width, figure.height) == (4 * 256, 2 * 192)
    html = found._repr_html_()
    assert html.count("<tr>") == 1 + 8
    for word in ("8 solutions of ur5e", "q1 [°]", "right, up, no flip", f"{np.degrees(Q[0]):.4g}"):
        assert word in html
    away = UR.inverse_kinematics([3.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert re.fullmatch(r"no solution: out of reach by \d+(\.\d)? mm", away._repr_html_())
    assert away.plot().parts == ""
    batch = UR.inverse_kinematics(np.stack([UR.pose(Q), pose_from_ur([3.0, 0.0, 0.0, 0.0, 0.0, 0.0])]))
    for words in ("2 poses", "<td>8</td><td>1</td>", "<td>0</td><td>1</td><td>out of reach by 2"):
        assert words in batch._repr_html_()
    folded = UR.inverse_kinematics(UR.pose([0.0, -1.0, 0.0, 0.0, 0.0, 0.0]).tolist(), reference=[0.0] * 6)
    assert "singular elbow, singular wrist" in folded._repr_html_()
    slide = OTHER.inverse_kinematics(OTHER.pose(np.zeros(5)), reference=np.zeros(5))
    assert "q3 [m]" in slide._repr_html_()


# ---- columns ----


def test_columns_are_drawn_over_time() -> None:
    time = np.linspace(2.0, 4.0, 900)
    waves = np.sin(time[:, None] * np.arange(1, 8))
    waves[100:110, 2] = np.nan
    figure = columns_figure("waves", time, {"q": (waves, "rad"), "cost": (np.full(900, 3.0), "")})
    assert (figure.width, figure.height) == (720, 340)
    root = ElementTree.fromstring(figure.svg)
    lines = [e.get("d") or "" for e in root.iter() if (e.get("class") or "").startswith("line")]
    assert len(lines) == 7 + 1
    assert lines[2].count("M") == 2  # a gap where the third is not a number
    texts = [e.text for e in root.iter() if e.tag.endswith("text")]
    assert {"q [rad]", "cost", "4.0 s"} <= set(texts)
    keys = [(e.text, float(e.get("x") or 0.0)) for e in root.iter() if " key " in (e.get("class") or "")]
    assert [name for name, _ in keys] == ["1", "2", "3", "4", "5", "6", "7"]  # one column alone needs none
    assert keys[-1][1] == pytest.approx(702.0)
    assert np.all(np.diff([at for _, at in keys]) > 10.0)  # px: side by side
    x = [float(pair.split()[0]) for pair in re.findall(r"[-\d.]+ [-\d.]+", lines[7])]
    assert min(x) == pytest.approx(46.0)
    assert max(x) == pytest.approx(702.0)
    nothing = columns_figure("nothing", np.zeros(0), {"q": (np.zeros((0, 6)), "rad")})
    assert "q [rad]" in nothing.svg


def test_columns_are_listed() -> None:
    table = columns_table({"q": (np.array([[1.0, -2.0], [np.nan, 5.25]]), "rad"), "no": (np.array([np.nan]), "")})
    assert "<td>q</td><td>rad</td><td>2</td><td>−2</td><td>5.25</td>" in table
    assert "<td>no</td><td></td><td>1</td><td>–</td><td>–</td>" in table


def test_an_event_as_a_table() -> None:
    event = tangere.Event.sample(1.25, 2, np.array([0.0, 12.34567, 0.0]), reason="joint 2 < 3 & more")
    html = event._repr_html_()
    ElementTree.fromstring(html)
    for part in ("<th>time_s</th><td>1.25</td>", "<td>0  12.35  0</td>", "joint 2 &lt; 3 &amp; more"):
        assert part in html
    assert "force" not in html  # not known, not said


def test_a_log_is_drawn_and_listed() -> None:
    time = np.linspace(0.0, 1.0, 50)
    log = tangere.Log({"time": time, "q": np.zeros((50, 6)), "tau": np.ones((50, 6)), "cost": time})
    assert repr(log.plot()) == "Figure('q, tau over 1 s', 720 x 340)"
    assert "cost [s]" in log.plot("cost").svg
    assert log.without(["q", "tau"]).plot().title == "cost over 1 s"
    with pytest.raises(tangere.UnknownName, match="no column 'qdd' in this log"):
        log.plot("qdd")
    html = log._repr_html_()
    assert html.startswith("50 samples, 1 s<table>")
    assert "<td>tau</td><td>Nm</td><td>6</td><td>1</td><td>1</td>" in html


def test_a_result_in_a_line_and_as_a_table() -> None:
    robot = tangere.robot("ur5e")
    q = np.array(Q)
    plant = tangere.plants.RigidPlant(robot, pushes=[tangere.plants.Push(2, 30.0, 0.1, 0.1)])
    hold = tangere.control.ComputedTorque(robot, tangere.planning.Hold(robot, q))
    detector = tangere.observe.detect.Detector(tangere.observe.detect.Thresholds.constant(5.0))
    observer = tangere.observe.MomentumObserver(robot)
    result = tangere.run(plant, hold, [observer], detector=detector, until=0.3, start=q)
    assert re.fullmatch(r"RunResult\(0\.3 s of ur5e, (1 event|2 events)\)", repr(result))
    html = result._repr_html_()
    assert html.count("<tr>") == 1 + len(result.events)
    assert result.summary["events"][0]["link"] == result.events[0].link
    ElementTree.fromstring(f"<div>{html}</div>")


def test_tool_and_mounting_of_a_run_stand_in_manifest_and_page(tmp_path: Path) -> None:
    robot = tangere.robot("ur5e", tool=(0.0, 0.0, 0.15), mounting="wall", payload=(2.0, (0.0, 0.0, 0.05)))
    hold = tangere.control.ComputedTorque(robot, tangere.planning.Hold(robot, np.array(Q)))
    folder = tangere.run(tangere.plants.RigidPlant(robot), hold, until=0.05, start=Q).save(tmp_path / "run")
    told = json.loads((folder / "manifest.json").read_text())["scenario"]
    assert (told["tool"], told["gravity"]) == ([0.0, 0.0, 0.15, 0.0, 0.0, 0.0], [0.0, -9.81, 0.0])
    assert told["payload"] == [2.0, 0.0, 0.0, 0.05]
    page = (folder / "report.html").read_text()
    for words in ("tool [m, rotation vector in rad]", "0, 0, 0.15, 0, 0, 0", "0, −9.81, 0", "2, 0, 0, 0.05"):
        assert words in page


def test_a_tool_in_millimetres_is_doubted() -> None:
    with pytest.warns(UserWarning, match="tool: 0, 0, 150 m is unusual"):
        tangere.robot("ur5e", tool=(0.0, 0.0, 150.0))
