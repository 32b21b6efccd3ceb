"""A live arm for everyday use, against the virtual controller: it says where it is, moves, and is left stopped."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from virtual_arms import listening, until, virtual

import tangere
from tangere.apps.arm.live import BEGUN
from tangere.apps.virtual_ur.inside import HOME
from tangere.cli.main import main
from tangere.errors import InvalidValue, PlantLost
from tangere.kinematics.rotation import pose_from_ur
from tangere.plants import torque_loop as loop
from tangere.rtde.client import Address
from tangere.rtde.consent import ConsentNeeded
from tangere.rtde.dashboard import Dashboard
from tangere.types import Command

GOAL = np.array((0.3, -1.3, 1.4, -1.7, -1.5, 0.2))


def test_where_it_is_and_moves() -> None:
    with virtual("--sensors", "ideal") as host, tangere.arm(host) as arm:
        assert arm.robot.name == "ur5e"
        state = arm.state
        np.testing.assert_allclose(state.q, HOME, atol=1e-6)
        np.testing.assert_allclose(state.tau, arm.robot.gravity_torque(state.q), atol=0.1)  # [Nm] at rest
        assert not arm.moving
        with tangere.arm(host) as other:  # another client before: its programs are not ours
            other.move_joints(HOME)
        reached = arm.move_joints(GOAL, speed=1.0)
        np.testing.assert_allclose(reached.q, GOAL, atol=1e-4)  # [rad]
        T = pose_from_ur(arm.pose)
        np.testing.assert_allclose(T, arm.robot.pose(GOAL), atol=1e-3)
        T[2, 3] -= 0.05
        arm.move_linear(T, speed=0.25)
        np.testing.assert_allclose(pose_from_ur(arm.pose)[:3, 3], T[:3, 3], atol=1e-3)  # [m]
        for wrong in ([0.0] * 5, [7.0] * 6, [np.nan] * 6):
            with pytest.raises(InvalidValue, match="q:"):
                arm.move_joints(wrong)

def test_where_no_arm_is_the_sentence_says_what_to_start() -> None:
    with pytest.raises(PlantLost, match=r"nothing listens at 127\.79\.0\.1, port 30001: is a virtual arm running"):
        tangere.arm("127.79.0.1")


def test_another_arm_than_was_given_is_refused() -> None:
    """By its name, and where it has a name of its own by its geometry; a calibration and a tool make no other arm."""
    own = {name: dataclasses.replace(tangere.robot(name).model, name="mine") for name in ("ur5e", "ur5")}
    with virtual("--draw", "3") as host:
        for wrong in ("ur10e", tangere.Robot(own["ur5"])):
            with pytest.raises(InvalidValue, match="is a ur5e by its own controller"):
                tangere.arm(host, wrong)
        with tangere.arm(host, tangere.Robot(own["ur5e"])):
            pass
        with tangere.arm(host, tangere.robot("ur5e", tool=(0.0, 0.0, 0.2, 0.0, 0.0, 0.0))) as arm:
            arm.move_joints(GOAL)
            assert repr(arm).startswith(f"Arm(ur5e at {host}, PolyScope 5.")


def test_programs_and_their_errors() -> None:
    with virtual() as host, tangere.arm(host) as arm:
        arm.script("def go():\n  sleep(0.1)\nend")
        arm.script("sleep(0.02)\nset_digital_out(2, True)")
        assert arm.digital_outputs[2]
        with pytest.raises(PlantLost, match="line 3: "):
            arm.script("a = [1, 2]\nsync()\nb = a[5]\nsync()")
        arm.script("while True:\n  sync()\nend", wait=False)
        with pytest.raises(PlantLost, match="runs a program already"):
            arm.move_joints(GOAL)
        arm.stop()
        assert not arm.moving


def test_a_program_after_an_error_that_was_sooner_than_its_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes on another port than samples do; the next program's number must not be that of the failed one."""
    with virtual() as host, tangere.arm(host) as arm:
        arm.script("sleep(0.02)")
        begun = f"output_int_register_{BEGUN}"
        before = dict(arm._values())
        with pytest.raises(PlantLost, match="line 3: "):
            arm.script("a = [1, 2]\nsync()\nb = a[5]\nsync()")
        monkeypatch.setattr(arm, "_values", lambda: before)
        arm.script("while True:\n  sync()\nend", wait=False)
        assert arm._newest[begun] == before[begun] + 2


def test_what_it_is_told() -> None:
    with virtual() as host, tangere.arm(host) as arm:
        arm.set_digital_output(9, True)
        arm._until(lambda values: _bit(values, 9), 5.0)
        assert arm.digital_outputs[9]
        assert not arm.digital_outputs[8]
        arm.set_speed_slider(0.5)
        arm._until(lambda values: float(values["target_speed_fraction"]) == 0.5, 5.0)
        assert arm.speed_slider == 0.5
        arm.set_payload(1.25, (0.0, 0.01, 0.05))
        assert arm.payload == (1.25, (0.0, 0.01, 0.05))
        assert arm.dashboard("robotmode") == "Robotmode: RUNNING"
        with pytest.raises(InvalidValue, match="0 to 17"):
            arm.set_digital_output(18, True)


def _bit(values: dict, number: int) -> bool:
    return bool(int(values["actual_digital_output_bits"]) >> number & 1)


def test_the_end_of_the_with_stops_it() -> None:
    with virtual(clock="real") as host:
        with tangere.arm(host) as arm:
            arm.script("while True:\n  speedj([0.3, 0, 0, 0, 0, 0], 2, 0.1)\nend", wait=False)
            assert arm._until(lambda values: np.abs(values["qd"]).max() > 0.2, 10.0)
        with tangere.arm(host) as arm:
            assert not arm.moving
            with arm.freedrive():
                assert arm.moving
            assert not arm.moving


def test_programs_are_sent_and_the_dashboard_is_asked_by_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "go.script"
    program.write_text(f"def go():\n  movej({GOAL.tolist()}, a=4, v=2)\n  while True:\n    sync()\n  end\nend\n")
    with virtual("--sensors", "ideal") as host, tangere.arm(host) as arm:
        assert main(["dashboard", host, "robotmode"]) == 0
        assert capsys.readouterr().out == "Robotmode: RUNNING\n"
        assert main(["script", "send", str(program), host]) == 0
        assert capsys.readouterr().out == f"{program}: runs at {host}\n"
        assert arm._until(lambda values: bool(np.abs(values["q"] - GOAL).max() < 1e-3), 60.0)
        assert arm.moving  # the program goes on
        arm.stop()
        assert arm._until(lambda values: bool(np.abs(values["qd"]).max() < 1e-6), 60.0)
        rest = arm.state
        before = rest.time
        assert main(["dashboard", host, "push joint=2,torque=60,start=1,duration=60"]) == 0
        assert arm._until(lambda values: bool(np.abs(values["q"][1] - rest.q[1]) > 1e-4), 60.0)
        assert arm.state.time - before > 1.0  # [s] start counts from now
        program.write_text("movej([0, 0, 0], v=)\n")
        assert main(["script", "send", str(program), host]) == 1
        assert "line 1: " in capsys.readouterr().err
    with virtual("--profile", "remote-off") as host:
        program.write_text("sleep(1)\n")
        assert main(["script", "send", str(program), host]) == 1
        assert f"{host} did not run the program: " in capsys.readouterr().err


def test_commands_that_move_an_arm_elsewhere_ask_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", "192.0.2.1", "brake release"]) == 1
    assert "--yes-i-stand-beside-it" in capsys.readouterr().err


def test_remote_control_off_is_said() -> None:
    with virtual("--profile", "remote-off") as host, tangere.arm(host) as arm, pytest.raises(PlantLost, match="remote"):
        arm.move_joints(GOAL)


def test_a_lost_connection_is_made_anew_and_said() -> None:
    told: list[str] = []
    with virtual() as host:
        arm = tangere.arm(host, tell=told.append)
        assert not arm.moving
    with pytest.raises(PlantLost):
        _ = [arm.state for _ in range(100) if not time.sleep(0.1)]
    words = [sys.executable, "-m", "tangere", "virtual", "ur5e", "--address", host, "--clock", "fast"]
    again = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent)
    try:
        assert again.stdout is not None
        again.stdout.readline()
        assert arm._until(lambda values: True, 30.0)
        assert np.abs(arm.state.q - HOME).max() < 1e-3
        assert any("trying again" in text for text in told)
        assert any("answers again" in text for text in told)
        arm.close()
    finally:
        again.kill()
        again.wait()


def test_outside_this_computer_everything_that_moves_asks(monkeypatch) -> None:
    """A virtual arm stands for one that is elsewhere: the question whether it is on this computer is answered no."""
    with virtual("--sensors", "ideal", "--wait-for-ever", clock="lockstep") as host:
        monkeypatch.setattr(Address, "loopback", False)
        with tangere.arm(host) as arm:
            before = arm.state.q
            for move in (
                lambda: arm.move_joints(GOAL), lambda: arm.move_linear(arm.pose), lambda: arm.script("sync()"),
                lambda: arm.script("sec go():\n  set_digital_out(1, True)\nend"), lambda: arm.freedrive().__enter__(),
                lambda: arm.dashboard("brake release"), lambda: arm.set_speed_slider(1.0), arm.plant, arm.stop,
                lambda: arm.set_payload(1.0),
            ):  # fmt: skip
                with pytest.raises(ConsentNeeded):
                    move()
            assert arm.dashboard("robotmode") == "Robotmode: RUNNING"
            arm._until(lambda values: True)
            np.testing.assert_allclose(arm.state.q, before, atol=1e-6)
        with tangere.arm(host, consent=tangere.consent("I stand beside it")) as arm:
            arm.move_joints(GOAL, speed=1.0)
            plant = arm.plant()
            assert plant._ramp == 1.0
            state = plant.reset(GOAL)
            push = np.array((10.0, 0.0, 0.0, 0.0, 0.0, 0.0))  # [Nm]
            for _ in range(20):
                before = state
                plant.write(Command(arm.robot.gravity_torque(state.q) + push))
                state = plant.read()
                passed = state.tau - arm.robot.gravity_torque(before.q)
                np.testing.assert_allclose(passed, push * before.time, atol=1e-9)  # from zero, all of it after 1 s
            plant.close()


def test_gravity_is_that_of_the_controllers_payload() -> None:
    with virtual("--sensors", "ideal") as host, tangere.arm(host) as arm:
        arm.set_payload(2.0, (0.0, 0.0, 0.1))
        loaded = tangere.robot("ur5e", payload=(2.0, (0.0, 0.0, 0.1)))
        assert np.abs(loaded.gravity_torque(HOME) - arm.robot.gravity_torque(HOME)).max() > 5.0  # [Nm]
        plant = arm.plant()
        state = plant.reset(HOME)
        np.testing.assert_allclose(state.tau, loaded.gravity_torque(state.q), atol=1e-9)
        plant.close()


def test_a_scenario_runs_on_the_arm(tmp_path: Path) -> None:
    with virtual("--plant", "rigid", "--sensors", "ideal", "--wait-for-ever", robot="ur10e", clock="lockstep") as host:
        line = [sys.executable, "-m", "tangere", "run", "circle", "--arm", host, "--out", str(tmp_path / "run"),
                "--set", "duration=2.5", "friction=full"]  # fmt: skip
        done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 1
        assert "--approach" in done.stderr
        done = subprocess.run([*line, "--approach"], capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "torques came late" in done.stderr
        again = subprocess.run([*line, "--approach"], capture_output=True, text=True, timeout=600, check=False)
        assert again.returncode == 0, again.stdout + again.stderr  # it moved back by itself
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["blocks"]["plant"] == f"arm {host}"
    assert summary["aborted"] is None or summary["aborted"] == ""
    assert summary["tracking_rms_mm"] < 5.0
    assert summary["arm"] == {"host": host, "frames": 1250, "late_frames": 0, "late_share": 0.0, "lost_samples": 0}
    assert "0 of 1250 torques came late" in (tmp_path / "run" / "report.html").read_text()
    again = subprocess.run(
        [sys.executable, "-m", "tangere", "rerun", str(tmp_path / "run")], capture_output=True, text=True, check=False
    )
    assert again.returncode == 1
    assert "which no simulation repeats" in again.stderr


@pytest.mark.parametrize("friction", ["none", "full"])
def test_the_friction_of_an_arms_joints_is_no_touch(friction: str, tmp_path: Path) -> None:
    """Joints stick, and drives make up for a part of their friction. 60 Nm on joint 2 are felt all the same."""
    with virtual("--wait-for-ever", robot="ur10e", clock="lockstep") as host:
        line = [sys.executable, "-m", "tangere", "run", "circle", "--arm", host, "--out", str(tmp_path), "--approach",
                "--set", "duration=4", f"friction={friction}"]  # fmt: skip
        done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads((tmp_path / "summary.json").read_text())["events"] == []
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            with listening(host, loop.FRAMES, loop.MODE) as rtde, Dashboard(host) as desk:
                until(rtde, lambda v: v[loop.MODE] == loop.Mode.TORQUE and 1000 < v[loop.FRAMES] < 1500, 600.0)
                assert desk.ask("push joint=2,torque=-60,duration=0.3") == "Pushing"
            said = process.communicate(timeout=300)[0]
            assert process.returncode == 0, said
        events = json.loads((tmp_path / "summary.json").read_text())["events"]
        assert [event["joint"] for event in events] == [2], events


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "circle", "--approach"), "belong to --arm"),
        (("run", "circle", "--arm", "nowhere"), "rtde://HOST"),
        (("run", "circle", "--arm", "192.0.2.1"), "--yes-i-stand-beside-it"),
        (("run", "circle", "--arm", "192.0.2.1", "--yes-i-stand-beside-it"), "a hand at the emergency stop"),
        (("run", "circle", "--arm", "127.0.0.1", "--paced"), "its own pace"),
    ],
)
def test_mistakes_are_told_in_a_sentence(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "tangere", *words, "--out", str(tmp_path)]
    done = subprocess.run(
        line, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
