"""A program on a simulated arm, through the one loop: where moves end, what torques do, and what the command leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tangere.apps.scenarios.build import Built, build
from tangere.apps.scenarios.execute import again, execute, summary_of
from tangere.apps.scenarios.script import MESSAGES, RunHost
from tangere.errors import InvalidValue
from tangere.loop.folder import difference
from tangere.loop.result import RunResult
from tangere.loop.run import run

GOAL = np.array([0.4, -1.2, 1.3, -1.6, -1.4, -0.4])
HERE = "[0, -1.5707963, 1.5707963, -1.5707963, -1.5707963, 0]"


def go(text: str, **given: Any) -> tuple[Built, RunResult, dict[str, Any]]:
    built = build("script", {"program": text + "\n", "plant": "rigid", **given})
    result = run(
        built.plant, built.controller, built.observers, until=built.duration, trajectory=built.motion.trajectory,
        detector=built.detector,
    )  # fmt: skip
    return built, result, summary_of(built, result)


@pytest.mark.parametrize("given", [{}, {"friction": "full"}, {"plant": "mujoco"}, {"period": 1e-3}], ids=str)
def test_movej_ends_within_a_tenth_of_a_milliradian(given: dict[str, Any]) -> None:
    if given.get("plant") == "mujoco":
        pytest.importorskip("mujoco")
    _, result, summary = go(f"movej({GOAL.tolist()}, a=3, v=1.5)", **given)
    assert summary["aborted"] == ""
    assert summary["script"]["ended"] == "finished"
    assert np.abs(result.log["q_true"][-1] - GOAL).max() < 1e-4
    assert np.abs(result.log["q_true"] - result.log["q_des"]).max() < 2e-3
    assert result.events == ()


def test_between_two_frames_the_reference_goes_on() -> None:
    """At 1 kHz every other sample is between two frames of 2 ms: no step in position or velocity."""
    _, result, _ = go("movej([0.4, -1.2, 1.4, -1.7, -1.5, 0.3], a=1.0, v=0.5)", period=1e-3)
    assert np.abs(np.diff(result.log["q_des"], 2, axis=0)).max() < 2e-5  # [rad]; 1 rad/s2 for 1 ms are 1e-6
    assert np.abs(np.diff(result.log["qd_des"], axis=0)).max() < 1.5e-3  # [rad/s]; 1e-3


def test_movel_stays_on_its_line() -> None:
    _, result, summary = go("movel(pose_add(get_target_tcp_pose(), p[0, 0.2, -0.2, 0, 0, 0.5]), a=1.2, v=0.25)")
    p = result.log.position("T_true")
    way = p[-1] - p[0]
    np.testing.assert_allclose(way, [0.0, 0.2, -0.2], atol=1e-4)
    across = np.cross(p - p[0], way / np.linalg.norm(way))
    assert np.linalg.norm(across, axis=1).max() < 1e-3
    assert summary["tracking_max_mm"] < 0.5


def test_the_run_ends_a_moment_after_the_program() -> None:
    _, result, summary = go("sleep(0.5)")
    assert 0.5 < summary["duration_s"] < 1.0
    assert "program ended: finished" in [note.text for note in result.log.notes]


def test_a_program_without_end_is_run_for_its_time() -> None:
    _, _, summary = go("while True:\n sync()\nend", duration=0.5)
    assert summary["aborted"] == ""
    assert summary["script"]["ended"] == "still running"
    assert summary["duration_s"] == pytest.approx(0.5, abs=0.01)


def test_a_program_that_fails_ends_the_run_with_its_line() -> None:
    _, result, summary = go("movej([0,0,0,0,0,0] + 1)\nx = 1 / 0")
    assert summary["aborted"] == "the program failed: exception: line 2: division by zero"
    assert summary["script"]["line"] == 2
    assert np.abs(result.log["qd"][-1]).max() < 1e-3  # it came to rest first


def test_what_it_says_is_in_the_log() -> None:
    _, result, _ = go('textmsg("a ", 1)\ntextmsg("b")\nsync()\npopup("c")\nx = socket_open("1.2.3.4", 5)')
    said = [note.text for note in result.log.notes]
    assert said[:3] == ["program says: a 1", "program says: b", "program shows: c"]
    assert "no network" in said[3]
    _, result, _ = go("i = 0\nwhile i < 1100:\n i = i + 1\n textmsg(i)\nend")
    assert sum(note.text.startswith("program says") for note in result.log.notes) == 1000


TORQUE = "i = 0\nwhile i < {}:\n i = i + 1\n direct_torque([0,0,0,0,0,0]{})\nend"


@pytest.mark.parametrize("friction", ["none", "full"])
def test_zero_torque_holds(friction: str) -> None:
    _, result, summary = go(TORQUE.format(2500, ""), friction=friction)
    assert summary["aborted"] == ""
    assert np.abs(result.log["q_true"] - result.log["q_true"][0]).max() < 1e-3


def test_an_untold_payload_sags_as_the_model_says() -> None:
    built, result, _ = go(TORQUE.format(25, ""), payload=1.0)
    told, true = built.world.believed, built.world.true
    assert true.model.payload is not None
    q = result.log["q_true"][0]
    qdd = true.forward_dynamics(q, np.zeros(6), told.gravity_torque(q))
    sag = result.log["q_true"][25] - q
    np.testing.assert_allclose(sag, 0.5 * qdd * 0.05**2, rtol=0.1, atol=1e-6)
    assert np.abs(sag).max() > 1e-4


def test_a_payload_that_is_told_does_not_sag() -> None:
    _, result, _ = go("set_payload(1.0, [0,0,0])\n" + TORQUE.format(500, ""), payload=1.0)
    assert np.abs(result.log["q_true"] - result.log["q_true"][0]).max() < 1e-3


def test_friction_scales_change_how_far_a_push_goes() -> None:
    gone = []
    for scale in (0.0, 0.9):
        words = f", viscous_scale={[scale] * 6}, coulomb_scale={[scale] * 6}"
        _, result, _ = go(TORQUE.format(300, words), friction="full", push=("joint=1,torque=20,start=0.1,duration=0.3",))
        gone.append(abs(result.log["q_true"][290, 0] - result.log["q_true"][0, 0]))
    assert gone[1] > 2.0 * gone[0] > 0.0


def test_after_torque_the_arm_is_held_without_a_jump() -> None:
    text = TORQUE.format(200, "") + "\nsleep(0.5)"
    _, result, summary = go(text, push=("joint=2,torque=5,start=0.1,duration=0.2",))
    assert summary["aborted"] == ""
    assert np.abs(np.diff(result.log["tau_cmd"], axis=0)).max() < 60.0  # Nm from one period to the next
    assert np.abs(result.log["qd"][-1]).max() < 1e-3


def test_a_push_is_felt_while_a_program_moves_the_arm() -> None:
    text = f"movej({GOAL.tolist()}, a=1, v=0.5)\nmovej({HERE})\nmovej({GOAL.tolist()})"
    _, _, summary = go(text, push=("joint=2,torque=20,start=1,duration=0.5",))
    felt = [event for event in summary["events"] if event["alarm"]]
    assert len(felt) == 1
    assert felt[0]["joint"] == 2
    assert 0.0 <= felt[0]["delay_ms"] < 30.0


def test_wrong_settings_are_refused_before_anything_moves() -> None:
    for given, message in (
        ({"period": 3e-3}, "whole part"), ({"polyscope": "5.4"}, "direct_torque is not in PolyScope 5.4.0"),
        ({"program": "nowhere.script"}, "nowhere.script"), ({"program": "x = (1\n"}, "line 2, column 1"),
        ({"robot": "scara", "q": (0.0,) * 4}, "6 joints"),
    ):  # fmt: skip
        with pytest.raises(InvalidValue, match=message):
            build("script", {"program": "direct_torque([0,0,0,0,0,0])\n", "plant": "rigid", **given})


def test_a_run_can_be_repeated_bit_by_bit(tmp_path: Path) -> None:
    file = tmp_path / "program.script"
    file.write_text("movel(pose_add(get_target_tcp_pose(), p[0,0,-0.05,0,0,0]))")
    execute("script", {"program": str(file), "plant": "rigid"}, out=tmp_path / "out")
    file.unlink()
    done, kept = again(tmp_path / "out")
    assert difference(kept, done.result.log) == ""


def test_the_command(tmp_path: Path) -> None:
    file, out = tmp_path / "a.script", tmp_path / "out"
    file.write_text('def a():\n textmsg("hello")\n movej(get_target_joint_positions() + 0.1)\nend\n')
    words = [sys.executable, "-m", "tangere", "script", "run", str(file), "--plant", "rigid", "--robot", "ur3e"]
    done = subprocess.run([*words, "--out", str(out)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "program says: hello" in done.stdout
    summary = json.loads((out / "summary.json").read_text())
    assert summary["script"]["name"] == "a"
    page = (out / "report.html").read_text()
    assert "movej(get_target_joint_positions() + 0.1)" in page
    assert "program says: hello" in page
    file.write_text("x = 1 / 0")
    done = subprocess.run([*words, "--out", str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "line 1: division by zero" in done.stdout


def test_what_a_frame_costs_is_measured() -> None:
    import tangere
    from tangere.script.cost import PROGRAMS, costs

    found = costs(tangere.robot("ur5e"), frames=20, rounds=1)
    assert set(found) == set(PROGRAMS)
    assert all(cost > 0.0 for cost in found.values())


def test_of_a_program_that_talks_and_talks_a_thousand_messages_are_kept_and_that_is_said() -> None:
    host = RunHost(1.0)
    for k in range(MESSAGES + 5):
        host.message("text", str(k))
    assert host.waiting[MESSAGES - 1 :] == [
        f"program says: {MESSAGES - 1}", f"program: more than {MESSAGES} messages, the others are left out"
    ]  # fmt: skip
