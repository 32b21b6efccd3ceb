"""What logs get wrong is found and told by its kind: signs, mounting, another arm, a hand all along, moving targets."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import tangere
from tangere.apps.touch.watch_command import summary
from tangere.cli.main import main
from tangere.errors import InvalidValue
from tangere.identification import Motion, drive_gains, prior_drive
from tangere.identification.findings import Finding, Kind, gravity_findings, gravity_slopes
from tangere.identification.identify_logs import identification
from tangere.identification.touch_logs import touch_log
from tangere.logs.csv_log import write_csv
from tangere.logs.log import Log
from tangere.logs.recordings import cleaned, recordings
from tangere.loop.tuning import Tuned
from tangere.loop.watching import Watched
from tangere.robots import Robot
from tangere.types import Array


def _log(name: str, seed: int = 0, seconds: float = 24.0, hand: float = 0.0) -> Motion:
    """An arm of that type with friction of its own, all joints moving; hand [N]: a force at its tool that wanders."""
    arm, random = tangere.robot(name), np.random.default_rng(seed)
    drive = prior_drive(arm)
    own = {key: getattr(drive, key) * random.uniform(0.75, 1.25, 6) for key in ("coulomb", "viscous")}
    drive = dataclasses.replace(drive, **own)
    t = np.arange(0.0, seconds, 0.01)
    speed, phase, size = (random.uniform(*ends, (3, 6)) for ends in ((0.4, 1.3), (0.0, 6.0), (0.2, 0.4)))
    angle = t[:, None, None] * speed + phase
    q = np.array([0.3, -1.3, 1.4, -1.2, -1.3, 0.2]) + (size * np.sin(angle)).sum(axis=1)
    qd, qdd = (size * speed * np.cos(angle)).sum(axis=1), -(size * speed**2 * np.sin(angle)).sum(axis=1)
    robot = Robot(arm.model, drive.rotor_inertia)
    tau = robot.inverse_dynamics(q, qd, qdd) + drive.friction(q, qd, robot.gravity_torque(q))
    tau += 0.02 * drive.coulomb * random.normal(size=q.shape)
    if hand:
        wander = np.sin(t[:, None] * random.uniform(0.7, 4.0, 3) + random.uniform(0.0, 6.0, 3))
        tau -= np.einsum("kij,ki->kj", robot.jacobian(q)[:, :3], hand * wander)
    return Motion(t, q, qd, tau, "log")


def _turned(motion: Motion, sign: Array) -> Motion:
    return dataclasses.replace(motion, tau=motion.tau * sign)


def _recording(motion: Motion) -> object:
    return cleaned("log", Log({"time": motion.time, "q": motion.q, "qd": motion.qd, "tau": motion.tau}), "")


@pytest.mark.parametrize("name", ["ur3e", "ur5e", "ur10e"])
def test_torques_of_the_wrong_sign_are_told_joint_by_joint(name: str) -> None:
    motion = _log(name)
    assert gravity_findings(tangere.robot(name), [motion]) == ()
    for wrong in ((0, 1, 2, 3, 4, 5), (1,), (1, 3), (0,)):
        sign = np.ones(6)
        sign[list(wrong)] = -1.0
        (found,) = gravity_findings(tangere.robot(name), [_turned(motion, sign)])
        assert found.kind == "sign"
        which = "all joints" if len(wrong) == 6 else "joint " + ", ".join(str(j + 1) for j in wrong)
        assert f"of {which} have the wrong sign" in found.sentence
        assert found.joint == (wrong[0] + 1 if len(wrong) == 1 else None)


def test_of_wrong_signs_no_model_is_made() -> None:
    with pytest.raises(InvalidValue, match=r"wrong sign.*no model was made"):
        identification(tangere.robot("ur5e"), [_recording(_turned(_log("ur5e"), -np.ones(6)))], inertial="none")  # type: ignore[list-item]


def test_events_of_wrong_signs_are_marked(tmp_path: Path) -> None:
    motion = _log("ur5e")
    for sign, marked in ((-1.0, True), (1.0, False)):
        path = tmp_path / "log.csv"
        columns = {"time": motion.time, "q": motion.q, "qd": motion.qd, "tau": sign * motion.tau}
        write_csv(Log(columns), path)
        done = tangere.watch(path, robot="ur5e")
        page = done.report(tmp_path / "page.html").read_text()
        said = summary(list(done.logs))
        assert ("not to be trusted: the torques of all joints have the wrong sign" in said) == marked
        assert ("Not to be trusted: these are not the torques of this arm" in page) == marked


def test_a_single_move_of_an_arm_that_rubs_otherwise_tells_of_no_other() -> None:
    """A fifth of joint 2's friction in the worst of shapes: that of gravity where friction cannot imitate it."""
    arm, drive, t = tangere.robot("ur5e"), prior_drive(tangere.robot("ur5e")), np.arange(0.0, 1.0, 0.008)
    s = t[:, None]
    way = np.array([0.0, 0.5, 0.0, 0.0, 0.0, 0.0])
    q = np.array([0.0, -1.3, 1.5, -1.57, -1.57, 0.0]) + way * (10 * s**3 - 15 * s**4 + 6 * s**5)
    qd, qdd = way * 30 * (s**2 - 2 * s**3 + s**4), way * 60 * (s - 3 * s**2 + 2 * s**3)
    tau = Robot(arm.model, drive.rotor_inertia).inverse_dynamics(q, qd, qdd) + drive.torque(qd)
    terms = np.column_stack([np.tanh(qd[:, 1] / 0.01), qd[:, 1], qdd[:, 1], np.ones(len(t))])
    load = arm.inverse_dynamics(q, qd, qdd)[:, 1]
    own = load - terms @ np.linalg.lstsq(terms, load, rcond=None)[0]
    friction = drive.coulomb[1] + 0.5 * drive.viscous[1]
    tau[:, 1] -= 0.2 * friction * own / own.std()
    assert own.std() < 0.4 * friction
    slope = gravity_slopes(arm, [Motion(t, q, qd, tau)])[0]
    assert slope[1] < 0.6  # which would be another arm
    assert gravity_findings(arm, [Motion(t, q, qd, tau)]) == ()


def test_an_arm_that_hangs_is_no_wrong_sign() -> None:
    (found,) = gravity_findings(tangere.robot("ur5e", gravity="ceiling"), [_log("ur5e")])
    assert found.kind == "mounting"


def test_another_arm_is_named() -> None:
    """A UR16e taken for a UR10e is lighter than that, which no tool makes."""
    (found,) = gravity_findings(tangere.robot("ur10e"), [_log("ur16e", 1)])
    assert found.kind == "other arm"
    assert "ur16e" in found.sentence


@pytest.mark.parametrize(("hand", "held"), [(0.0, False), (50.0, True)])
def test_a_hand_all_along_is_told(hand: float, held: bool) -> None:
    done = identification(tangere.robot("ur5e"), [_recording(_log("ur5e", 3, hand=hand))], inertial="none")  # type: ignore[list-item]
    assert ("held" in [finding.kind for finding in done.model.findings]) == held
    assert any("hand" in text for text in done.model.doubts) == held


def test_degrees_are_not_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    motion = _log("ur5e", seconds=6.0)
    table = np.column_stack([motion.time, np.rad2deg(motion.q), np.rad2deg(motion.qd), motion.tau])
    file = tmp_path / "degrees.csv"
    np.savetxt(file, table, fmt="%.6f", delimiter=",")
    assert main(["watch", str(file), "--robot", "ur5e", "--columns", "t,q,qd,torque"]) == 1
    assert "look like degrees: radians are needed; nothing was watched" in capsys.readouterr().err


@pytest.mark.parametrize("head", ["effort", "torque", "joint_torque"])
def test_names_of_others_with_a_number_are_read(head: str, tmp_path: Path) -> None:
    motion = _log("ur5e", seconds=3.0)
    names = [f"{name}_{j}" for name in ("position", "velocity", head) for j in range(6)]
    table = np.column_stack([motion.time, motion.q, motion.qd, motion.tau])
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=",".join(["t", *names]), comments="")
    log = tangere.read(tmp_path / "log.csv")
    np.testing.assert_allclose(log["tau"], motion.tau)
    np.testing.assert_allclose(log["q"], motion.q)


def test_gains_come_from_targets_that_stay_as_they_are() -> None:
    """Two rests: one is held, in the other the targets wander by 3 % and their quotient is 3 % off."""
    rest = np.zeros((400, 1))
    moment = np.full((400, 1), 20.1234567)
    current = moment / 10.0
    wander = 0.6 * np.sin(np.linspace(0.0, 9.0, 200))[:, None]
    moment[200:] += wander
    current[200:] = (20.6 + 1.1 * wander) / 10.0
    rest[195:205] = 0.5  # it moves between them
    found = drive_gains(current, moment, rest)
    assert found.gain[0] == pytest.approx(10.0, rel=1e-6)
    guided = drive_gains(current[205:], moment[205:], rest[205:])
    assert not guided.observable[0]
    assert "change while the arm rests" in guided.reasons[0]


def test_every_finding_has_a_kind_that_is_listed() -> None:
    for kind in (Tuned, Watched):
        field = next(one for one in dataclasses.fields(kind) if one.name == "findings")
        assert "Finding" in str(field.type)
    record = Finding("sign", "text", 2).record()
    assert json.loads(json.dumps(record)) == {"kind": "sign", "joint": 2, "sentence": "text"}
    assert record["kind"] in get_args(Kind)


def test_runs_of_a_real_arm_have_no_wrong_sign(data_dir: Path) -> None:
    """One of these moves joint 4 one way only, where friction is an offset and may have any sign."""
    arm = tangere.robot("ur3e")
    for recording in recordings(f"{data_dir / 'ur3e_runs' / 'ur3e_runs_500Hz.npz'}:*_109", rate=500.0):
        assert touch_log(recording, arm).misfit == ()
        assert "sign" not in [finding.kind for finding in touch_log(recording, arm).findings]
