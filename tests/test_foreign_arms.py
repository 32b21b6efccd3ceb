"""Arms that are no UR: every scenario runs or says at once why not; postures in degrees and metres."""

from __future__ import annotations

import html
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_arms import ARMS, written

import tangere
from tangere.apps.scenarios.build import build, scenario_of, scenarios
from tangere.apps.scenarios.execute import summary_of
from tangere.cli.main import main
from tangere.errors import InvalidValue, NoSolution
from tangere.loop.run import run
from tangere.planning.posture import at_rest, posture
from tangere.planning.tool_motions import plane, room, tool_circle, ways
from tangere.settings import settings_of

LONG = 3.0  # s: what takes longer is cut
JOINTS = 6  # of URScript
SECONDS = 1.0  # of processor time: however busy the machine is


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("arms")
    for name in ARMS:
        written(made, name)
    return made


def arm_of(folder: Path, name: str) -> str:
    return str(folder / f"{name}.urdf") if name in ARMS else name


def refusal(arm: tangere.Robot, scenario: str) -> str:
    """Why an arm that is no UR does not run a scenario; empty: it does."""
    if scenario == "wall-circle":
        return f"wall-circle places its walls for UR arms, got {arm.name}"
    if scenario == "script" and arm.dof != JOINTS:
        return f"^URScript is for arms with 6 joints; {arm.name} has {arm.dof}"
    return "pendulum: its tool" if arm.name == "pendulum" and scenario in ("touch", "circle") else ""


@pytest.mark.parametrize("scenario", scenarios())
@pytest.mark.parametrize("name", [*ARMS, "pendulum", "planar3r", "scara"])
def test_every_scenario_runs_or_refuses_at_once(folder: Path, name: str, scenario: str) -> None:
    arm = tangere.robot(arm_of(folder, name))
    arm.pose(np.zeros(arm.dof))  # kernels are ready
    begin = time.process_time()
    given: dict[str, Any] = {"robot": arm_of(folder, name)}
    length = settings_of(scenario_of(scenario).settings)["duration"].default
    if scenario != "script" and length is not None and length > LONG:  # a script ends by itself
        given["duration"] = LONG
    if why := refusal(arm, scenario):
        with pytest.raises((InvalidValue, NoSolution), match=why):
            build(scenario, given)
        assert time.process_time() - begin < SECONDS
        return
    built = build(scenario, given)
    result = run(
        built.plant, built.controller, built.observers, until=built.duration, trajectory=built.motion.trajectory,
        detector=built.detector, reaction=built.motion.reaction,
    )  # fmt: skip
    assert result.aborted == ""
    moved = np.ptp(result.log["q_des"] if "q_des" in result.log else result.log["q"], axis=0).max()
    assert moved > 1e-3 or scenario in ("hold", "impedance")
    if scenario == "touch":
        summary = summary_of(built, result)
        assert summary["touch"]["contact_s"] is not None
        assert summary["touch"]["peak_n"] > 1.0
        assert any(event.alarm for event in result.events)
    elif scenario == "joint-fault":
        (fault,) = built.settings.fault
        assert [event.joint for event in result.events] == [fault.joint]  # felt
        assert 0.0 < result.events[0].time_s - fault.start < 0.02  # s: at once
        assert np.all((result.log["q"] >= arm.q_min) & (result.log["q"] <= arm.q_max))
    elif scenario in ("sine", "circle", "hold"):
        error = result.log.position("T_true") - result.log.position("T_des") if "T_des" in result.log else np.zeros(3)
        assert np.max(np.abs(error)) < 1e-4
        assert not result.events


def _pushed(folder: Path, name: str, light: float = 1.0) -> tuple[Any, Any]:
    """A run of `hold` as it is, push and all; light: the arm's masses and inertia times this."""
    path = arm_of(folder, name)
    if light != 1.0:
        text = Path(path).read_text()
        scaled = re.sub(
            r'((?:value|i[xyz]{2})=")([^"]+)(")', lambda m: f"{m[1]}{light * float(m[2]):.12g}{m[3]}", text
        )
        path = str(folder / f"{name}_light.urdf")
        Path(path).write_text(scaled)
    built = build("hold", {"robot": path, "duration": 5.5})
    return built, run(
        built.plant, built.controller, built.observers, until=5.5, trajectory=built.motion.trajectory,
        detector=built.detector,
    )  # fmt: skip


@pytest.mark.parametrize("light", [1.0, 0.3])
@pytest.mark.parametrize("name", ARMS)
def test_a_push_that_nobody_gave_is_one_that_the_arm_bears(folder: Path, name: str, light: float) -> None:
    """20 Nm throw a light arm about. What pushes by default moves a joint by 0.1 rad, by the masses where it starts."""
    built, result = _pushed(folder, name, light)
    assert result.aborted == ""
    assert not result.interventions
    assert [event.alarm for event in result.events] == [True]  # and it is felt
    settled = result.log["q"][(result.log.time > 4.5) & (result.log.time < 5.0)]
    assert 0.005 < np.abs(settled - result.log["q"][0]).max() < 0.125  # [rad, m] as it moves, the mass matrix changes
    assert built.settings.push[0].torque <= 20.0


def test_a_circle_of_ones_own_is_reached_or_refused(folder: Path) -> None:
    given: dict[str, Any] = {"robot": arm_of(folder, "seven"), "duration": 3.0, "radius": 0.05}
    log_of = build("circle", {**given, "centre": "0.45,0,0.35"}).motion.trajectory
    T = log_of.at(0.0).T
    assert T is not None
    assert np.allclose(T[:3, 3], (0.5, 0.0, 0.35), atol=1e-9)
    assert np.allclose(T[:3, 2], (0.0, 0.0, -1.0), atol=1e-9)  # the tool points down
    begin = time.process_time()
    with pytest.raises(NoSolution, match="seven does not reach the circle's start with the tool down"):
        build("circle", {**given, "centre": "3,0,0.3"})
    assert time.process_time() - begin < 4.0 * SECONDS
    with pytest.raises(InvalidValue, match="takes 6 joints, sorter has 4"):
        build("circle", {"robot": arm_of(folder, "sorter"), "centre": "0.4,0,0.2"})


def test_a_sliding_joint_is_in_metres() -> None:
    """`q` has degrees for what turns and metres for what slides: -0.05 is 5 cm, not a twentieth of a degree."""
    built = build("hold", {"robot": "scara", "q": "10,20,30,-0.05", "duration": 1.0})
    arm = built.world.believed
    (sliding,) = np.flatnonzero(~arm.revolute)
    given = np.array([10.0, 20.0, 30.0, -0.05])
    q = built.motion.trajectory.at(0.0).q
    assert q[sliding] == -0.05
    assert np.allclose(np.degrees(q[arm.revolute]), given[arm.revolute])
    with pytest.raises(InvalidValue, match=r"q: 4 numbers, in degrees \(joint 4: metres\), for scara, got 6"):
        build("hold", {"robot": "scara", "q": "1,2,3,4,5,6"})


@pytest.mark.parametrize("scenario", ["hold", "sine", "impedance", "joint-fault"])
def test_a_start_outside_the_limits_is_refused(scenario: str) -> None:
    with pytest.raises(InvalidValue, match=r"q: joint 4 of scara at -5 m is outside its limits, -0\.2 to 0 m"):
        build(scenario, {"robot": "scara", "q": "10,20,30,-5"})
    with pytest.raises(InvalidValue, match="q: joint 6 of ur10e at 400 deg is outside its limits, -360 to 360 deg"):
        build(scenario, {"q": "0,-90,90,-90,-90,400"})
    if scenario == "hold":
        build(scenario, {"q": "360,-360,180,-360,-90,0"})  # at the limit is inside


def words_of(page: Path) -> str:
    """What a page says, without its marks and scripts."""
    text = page.read_text(encoding="utf-8")
    return html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"(?s)<(script|style).*?</\1>", "", text)))


def test_page_and_terminal_have_units_of_a_sliding_joint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """m, mm and N for the joint that slides, rad, mrad and Nm for those that turn."""
    push = "joint=4,torque=-2,start=0.2,duration=0.2"
    words = ["--set", "duration=1", "--set", "threshold=1", "--set", "q=10,20,30,-0.1"]
    assert main(["run", "hold", "--robot", "scara", "--push", push, *words, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert re.search(r"touch at 0\.2\d\d s on joint 4, -[\d.]+ N \(true -[\d.]+ N\)", said)
    shown = words_of(tmp_path / "run" / "report.html")
    for turning, sliding in (("rad", "m"), ("mrad", "mm"), ("Nm", "N")):
        assert f"Joint 3 · gamma [{turning}]" in shown
        assert f"Joint 4 · zeta [{sliding}]" in shown
        assert f"Joint 4 · zeta [{turning}]" not in shown
    for text in ("q [deg, joint 4: m]", "felt [Nm, joint 4: N]", "peak [Nm, joint 4: N]",
                 "-2 N at joint 4", "its threshold of 1 N.", "rms [Nm, joint 4: N]", "4: millimetres"):  # fmt: skip
        assert text in shown, text
    assert not re.search(r"joint 4[^.;]{0,12}, -?[\d.]+ Nm|[\d.]+ Nm (on|at) joint 4", shown + said)


@pytest.mark.parametrize("name", [*ARMS, *tangere.models()])
def test_where_an_arm_rests_is_inside_its_limits(folder: Path, name: str) -> None:
    arm = tangere.robot(arm_of(folder, name))
    q = posture(at_rest(arm), arm)
    assert np.all((q >= arm.q_min) & (q <= arm.q_max))
    assert arm.closed_form == name.startswith("ur")


def test_ways_of_a_tool(folder: Path) -> None:
    """A SCARA's tool goes everywhere without tilting, a pendulum's nowhere, a planar arm's in its plane."""
    scara = tangere.robot(arm_of(folder, "sorter"))
    q = posture(at_rest(scara), scara)
    assert np.all(ways(scara, q)[1] > 0.02)
    for axis in np.eye(3):
        step = 1e-6 * np.linalg.lstsq(scara.jacobian(q), np.concatenate([axis, np.zeros(3)]), rcond=None)[0]
        moved = scara.pose(q + step)[:3, 3] - scara.pose(q)[:3, 3]
        assert np.allclose(moved, 1e-6 * axis, atol=1e-10)
        assert room(scara, q, axis) == pytest.approx(1e-6 / np.linalg.norm(step), rel=0.05)
    pendulum = tangere.robot("pendulum")
    assert not np.any(ways(pendulum, np.zeros(1))[1])
    planar = tangere.robot("planar3r")
    rest = posture(at_rest(planar), planar)
    x, y = plane(planar, rest)
    out = np.cross(x, y)
    round_ = tool_circle(planar, rest, 0.05, rate=1.0, ramp=0.5, duration=2.0)
    assert np.max(np.abs((planar.pose(round_.q)[:, :3, 3] - planar.pose(rest)[:3, 3]) @ out)) < 1e-9
    assert np.max(round_.path_error) < 1e-5


def test_a_urdf_with_a_model_of_its_own(folder: Path, tmp_path: Path) -> None:
    """--robot X.urdf --model M.toml: links and drives from the file, joints from the URDF."""
    sources = "".join(f'[[sources]]\ngroup = "drives.{key}"\ngrade = "measured"\ntext = "own"\n'
                      for key in ("coulomb", "viscous"))  # fmt: skip
    file = tmp_path / "mine.toml"
    file.write_text(f"schema_version = 1\n[drives]\ncoulomb = {[1.0] * 7}\nviscous = {[2.0] * 7}\n{sources}")
    seven = arm_of(folder, "seven")
    model = tangere.robot(seven, parameters=str(file)).model
    assert model.drives.coulomb.tolist() == [1.0] * 7
    assert len(model.links) == 7
    built = build("hold", {"robot": seven, "model": str(file), "duration": 1.0})
    assert built.world.believed.drives.viscous.tolist() == [2.0] * 7
    assert np.all(np.isnan(built.world.true.drives.viscous))
    file.write_text("schema_version = 1\n[[joints]]\nname = 'a'\n")
    with pytest.raises(InvalidValue, match="joints cannot replace those of seven"):
        tangere.robot(seven, parameters=str(file))
    with pytest.raises(InvalidValue, match="an arm from a file has no sets by name"):
        tangere.robot(seven, parameters="official")


def test_the_file_of_the_docs_is_an_arm(tmp_path: Path) -> None:
    text = (Path(__file__).parent.parent / "docs" / "arms.md").read_text(encoding="utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(text.split("```toml\n")[1].split("```")[0])
    arm = tangere.robot(file)
    assert arm.revolute.tolist() == [True, False]
    assert arm.model.drives.coulomb[0] == 7.0
    assert arm.model.weight == 12.0
    assert build("sine", {"robot": str(file), "duration": 3.0}).world.believed.dof == 2


def test_compared_and_watched_runs_have_units_of_a_sliding_joint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The quill of a SCARA is felt in N and moves in m: curves, tables and the terminal of compare and watch."""
    for name, push in (("pushed", ["--push", "joint=4,torque=20,start=1,duration=1"]), ("free", [])):
        words = ["run", "sine", "--robot", "scara", *push, "--set", "duration=3", "--out", str(tmp_path / name)]
        assert main(words) == 0
    capsys.readouterr()
    page = tmp_path / "compare.html"
    assert main(["compare", str(tmp_path / "pushed"), str(tmp_path / "free"), "--out", str(page)]) == 0
    told = capsys.readouterr().out
    assert "joint 4 [N]" in told
    assert "joint 3 [Nm]" in told
    assert re.search(r"<td>4</td><td>[\d.]+ N</td>", page.read_text(encoding="utf-8"))  # of the event
    shown = words_of(page)
    for turning, sliding in (("rad", "m"), ("Nm", "N")):
        assert f"zeta [{sliding}]" in shown
        assert f"zeta [{turning}]" not in shown
        assert f"gamma [{turning}]" in shown
    page = tmp_path / "watched.html"
    assert main(["watch", str(tmp_path / "pushed" / "log.mcap"), "--robot", "scara", "--report", str(page)]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if " push " in line or " collision " in line)
    assert re.search(r" 4 +[\d.]+ N ", row)
    shown = words_of(page)
    assert "added [Nm, joint 4: N]" in shown
    assert "zeta [N]" in shown
    assert "zeta [Nm]" not in shown


def test_a_push_that_is_not_felt_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Terminal and page, with the threshold of that joint; a push that is felt is not among them."""
    words = ["--robot", "scara", "--set", "duration=3", "threshold=5"]
    words += ["--push", "joint=4,torque=3,start=1,duration=0.5"]
    words += ["--push", "joint=1,torque=20,start=2,duration=0.5", "--out", str(tmp_path / "run")]
    assert main(["run", "hold", *words]) == 0
    told = capsys.readouterr().out
    said = "The push of 3 N on joint 4 at 1 s was not felt (threshold there: 5 N)."
    assert said in told
    assert told.count("was not felt") == 1
    shown = words_of(tmp_path / "run" / "report.html")
    assert shown.count(said) == 1
    assert shown.count("was not felt") == 1
