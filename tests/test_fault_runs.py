"""Drives that fail in a run: options, scenario, what they are called, and the raw acceleration residual."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.apps.scenarios import hold, joint_fault
from tangere.apps.scenarios.build import build
from tangere.apps.scenarios.execute import again, execute
from tangere.cli.main import main
from tangere.errors import InvalidValue
from tangere.planning.posture import posture
from tangere.plants.pushes import Stuck, TorqueLoss, TorqueOffset, fault_of, push_record


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("joint=3,offset=-15,start=2", TorqueOffset(3, -15.0, 2.0)),
        ("joint=2,gain=0.8", TorqueLoss(2, 0.8)),
        ("joint=3,dead,start=2,duration=1", TorqueLoss(3, 0.0, 2.0, 1.0)),
        ("dead, joint=1", TorqueLoss(1, 0.0)),
        ("joint=4,start=1,stuck", Stuck(4, 1.0)),
    ],
)
def test_faults_are_read_and_written(text: str, fault: Any) -> None:
    assert fault_of(text) == fault
    assert fault_of(push_record(fault)) == fault


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("offset=3,start=1", "'joint' is missing"),
        ("joint=3,start=1", "one of offset, gain, dead and stuck"),
        ("joint=3,offset=1,dead", "one of offset"),
        ("joint=3,gain=1.5", "gain"),
        ("joint=3,torque=5", "unknown 'torque'"),
        ("joint=3,dead=yes", "a word alone"),
    ],
)
def test_mistakes_are_said(text: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        fault_of(text)


def test_a_fault_that_no_joint_or_run_has() -> None:
    for given, said in (("joint=7,dead", "valid are 1 to 6"), ("joint=3,dead,start=99", "after the end")):
        with pytest.raises(InvalidValue, match=said):
            build("hold", {"fault": given})


# of a moving UR10e: what each is called, and what is felt of it after its lag
TOLD = {
    "joint=3,offset=-15,start=1.5": -15.0,
    "joint=2,gain=0.8,start=1.5": None,
    "joint=3,dead,start=1.5": None,
    "joint=2,stuck,start=1.5": None,
}


@pytest.mark.parametrize("text", TOLD)
def test_told_from_a_touch_while_the_arm_moves(text: str, tmp_path: Path) -> None:
    given = {"fault": text, "duration": 4.5, "plant": "rigid", "period": 2e-3}
    done = execute("circle", given, out=tmp_path, csv=False)
    fault = done.summary["faults"][0]
    assert (fault["kind"], fault["why"]) == ("fault", "")
    assert 0.0 < fault["felt_ms"] < 20.0
    if TOLD[text] is not None:
        assert fault["felt_nm"] == pytest.approx(TOLD[text], abs=0.01)

def test_a_run_with_a_fault_is_repeated_from_its_manifest(tmp_path: Path) -> None:
    given = {"fault": "joint=3,dead,start=0.2,duration=0.1", "duration": 0.5, "plant": "rigid"}
    execute("sine", given | {"ramp": 0.2}, out=tmp_path, csv=False)
    repeated, kept = again(tmp_path)
    assert repeated.built.settings.fault == (TorqueLoss(3, 0.0, 0.2, 0.1),)
    assert np.array_equal(repeated.result.log["q"], kept["q"])


def test_standing_still_it_is_not_told_and_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "hold", "--fault", "joint=3,offset=-15,start=1", "--set", "duration=4", "plant=rigid", "period=2ms"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert "-15.00 Nm" in told.out
    assert "not told from a touch" in told.out
    assert "the push of hold is left out" in told.err
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["faults"][0]["kind"] in ("push", "collision")


def test_a_push_stays_a_push_beside_a_fault(tmp_path: Path) -> None:
    """A force on a moving link is no fault, though faults are looked for."""
    given = {"fault": "joint=6,gain=0.99,start=4.9", "push": "link=4,force=0/0/20,start=1,duration=3"}
    done = execute("circle", given | {"duration": 5.0, "plant": "rigid", "period": 2e-3}, out=tmp_path, csv=False)
    assert [event["kind"] for event in done.summary["events"]] == ["push"]


@pytest.mark.parametrize("robot", ["ur10e", "pendulum", "scara"])
def test_the_scenario_runs_on_every_kind_of_arm(robot: str, tmp_path: Path) -> None:
    given = {"robot": robot, "duration": 2.2, "plant": "rigid", "period": 2e-3}
    done = execute("joint-fault", given, out=tmp_path, csv=False)
    assert done.result.aborted == ""
    assert done.summary["faults"][0]["joint"] == (3 if robot == "ur10e" else 1)
    assert [event["joint"] for event in done.summary["events"]] == [done.summary["faults"][0]["joint"]]  # it is felt


def test_noise_of_the_raw_acceleration_residual(tmp_path: Path) -> None:
    """000 section 5.1: raw it drowns in noise; through the same filter it is the momentum observer's."""
    noise = {}
    for how in ("raw", "on"):
        given = {"acceleration_residual": how, "sensors": "ur10e", "duration": 3.0, "period": 2e-3, "plant": "rigid"}
        noise[how] = execute("circle", given, out=tmp_path / how, csv=False).summary["residual_noise_nm"]
    momentum, raw, same = (np.array(x) for x in (noise["raw"]["momentum"], noise["raw"]["acceleration"],
                                                 noise["on"]["acceleration"]))  # fmt: skip
    assert np.all(raw[:3] > 8.0 * momentum[:3])
    np.testing.assert_allclose(same, noise["on"]["momentum"], rtol=0.02)
    with pytest.raises(InvalidValue, match="on, off, raw"):
        build("circle", {"acceleration_residual": "rough"})


def test_told_in_a_log_that_is_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody said that a drive fails; a push on a link in the same motion stays a push."""
    told = {"fault": "joint=3,offset=-15,start=2", "push": "link=4,force=0/0/30,start=2,duration=4"}
    for what, kind in (("fault", "fault"), ("push", "push")):
        given = {what: told[what], "duration": 6.0, "plant": "rigid", "period": 4e-3}
        execute("circle", given, out=tmp_path / what, csv=False)
        assert main(["watch", str(tmp_path / what / "log.mcap"), "--robot", "ur10e", "--json"]) == 0
        events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        last = {event["event"]: event["kind"] for event in events if "event" in event}
        assert list(last.values()) == [kind]


def test_the_fault_of_another_arm_is_what_its_drives_and_its_servo_bear() -> None:
    """Of an arm that is no UR the joint with the most to give, by no more than either bears."""
    settings = joint_fault.fitted(replace(joint_fault.FaultSettings(), robot="scara"), frozenset({"robot"}))
    arm = tangere.robot("scara")
    borne = hold.borne(arm, posture(settings.q, arm), float(np.min(settings.kp)))
    least = np.minimum(joint_fault.SHARE * arm.tau_max, borne)
    (fault,) = settings.fault
    assert (fault.joint, fault.torque) == (1 + int(np.argmax(least)), -float(least.max()))
    assert not np.allclose(joint_fault.SHARE * arm.tau_max, borne)
