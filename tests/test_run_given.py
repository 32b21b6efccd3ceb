"""What a run takes in the forms that people write it, and what it says of a controller or an arm that goes astray."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_run_loop import Q0, Arm, Hold
from watched_logs import ROBOT, TORQUE, columns_of

import tangere
from tangere.control.guard import Guarded
from tangere.errors import BeyondLimits, InvalidValue
from tangere.logs import write_csv
from tangere.logs.log import Log
from tangere.logs.recordings import recordings
from tangere.loop.recorder import by_joint
from tangere.loop.run import run
from tangere.observe.detect import Thresholds
from tangere.observe.momentum import MomentumObserver
from tangere.plants.pushes import Push
from tangere.plants.rigid import RigidPlant
from tangere.types import Command, Event, State


def currents(push: tuple[float, float, float] | None = (5.5, 6.5, TORQUE)) -> Log:
    """A log of motor currents, as a UR records them."""
    columns = columns_of(8.0, push=push)
    columns["actual_current"] = columns.pop("tau") / ROBOT.drives.gain
    return Log(columns)


def test_a_log_of_currents_goes_into_a_run(tmp_path: Path) -> None:
    log = currents()
    ran = run(log, observers=MomentumObserver(ROBOT), detector=Thresholds.constant(TORQUE))
    np.testing.assert_allclose(ran.log["tau"], log["actual_current"] * ROBOT.drives.gain)
    with pytest.raises(InvalidValue, match="missing: tau"):
        run(log)
    write_csv(log, tmp_path / "log.csv")
    watched = tangere.watch(tmp_path / "log.csv", "ur10e")
    assert len(watched.alarms) == 1
    ways = [run(tmp_path / "log.csv", robot=ROBOT), run(str(tmp_path / "log.csv"), robot=ROBOT)]
    ways += [run(log, robot=ROBOT), run(recordings(tmp_path / "log.csv")[0], robot=ROBOT)]
    for way in ways:
        told = [(e.number, e.time_s, e.onset_s, e.end_s, e.kind, e.joint, e.link) for e in way.events]
        assert told == [(e.number, e.time_s, e.onset_s, e.end_s, e.kind, e.joint, e.link) for e in watched.events]
        assert any("no model" in text for text in way.said)
        assert way.duration == pytest.approx(8.0)
    assert run(log, robot=ROBOT, until=3.0).duration == pytest.approx(3.0)


def test_each_observer_has_a_column_of_its_name() -> None:
    observers = {"one": MomentumObserver(ROBOT), "other": MomentumObserver(ROBOT, 20.0)}
    log = run(Arm(ROBOT), Hold(ROBOT), observers, until=0.02, start=Q0).log
    assert {name for name in log.columns if name.startswith("residual")} == {"residual", "residual_other"}


def test_numbers_with_units_and_single_parts() -> None:
    arm = Arm(ROBOT, (0.1, 0.3))
    result = run(arm, Hold(ROBOT), MomentumObserver(ROBOT), detector=1.0, until="400 ms", start=Q0)
    assert result.duration == pytest.approx(0.4)
    assert [event.joint for event in result.events] == [2]
    with pytest.raises(InvalidValue, match=r"until: .* unit"):
        run(arm, Hold(ROBOT), until="3 m", start=Q0)
    with pytest.raises(InvalidValue, match="it watches the residual of an observer"):
        run(arm, Hold(ROBOT), until=0.1, start=Q0, detector=5.0)
    with pytest.raises(InvalidValue, match="detector: a detector, thresholds, or one threshold"):
        run(arm, Hold(ROBOT), [MomentumObserver(ROBOT)], until=0.1, start=Q0, detector=[])
    with pytest.raises(InvalidValue, match="each with reset and update"):
        run(arm, Hold(ROBOT), "momentum", until=0.1, start=Q0)
    with pytest.raises(InvalidValue, match="observers: the class MomentumObserver was given, not one of it"):
        run(arm, Hold(ROBOT), MomentumObserver, until=0.1, start=Q0)
    with pytest.raises(InvalidValue, match="observers: MomentumObserver is for scara with 4 joints, the arm has 6"):
        run(arm, Hold(ROBOT), MomentumObserver(tangere.robot("scara")), until=0.1, start=Q0)
    with pytest.raises(InvalidValue, match="controller: Hold is for scara with 4 joints, the arm has 6"):
        run(arm, Hold(tangere.robot("scara")), until=0.1, start=Q0)
    with pytest.raises(InvalidValue, match="detector: it has thresholds of 7 joints, the arm has 6"):
        run(arm, Hold(ROBOT), MomentumObserver(ROBOT), detector=Thresholds.constant(5.0, dof=7), until=0.1, start=Q0)
    for wrong, said in (({"friction": 3.0}, "friction: a JointFriction or None"), ({"sensors": "x"}, "a SensorModel")):
        with pytest.raises(InvalidValue, match=said):
            RigidPlant(ROBOT, 1e-3, **wrong)
    with pytest.raises(InvalidValue, match="source: a plant, a recording"):
        run(5.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="controller: an object with start, step and stop"):
        run(arm, 5.0, until=0.1, start=Q0)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"the class Astray was given, not one of it; write Astray\(...\)"):
        run(arm, Astray, until=0.1, start=Q0)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"Unfinished has no start and no stop; it needs start"):
        run(arm, Unfinished(), until=0.1, start=Q0)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="start: -90 rad is 14 turns, far beyond the limits of ur10e"):
        run(arm, Hold(ROBOT), until=0.1, start=[0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
    with pytest.raises(InvalidValue, match="cannot read"):
        run("nowhere.csv")


class Unfinished:
    """Has one of three methods."""

    def step(self, state: tangere.State) -> Command:
        return Command(state.tau)


class Astray(Hold):
    """Holds, and from 20 ms on adds something to the torque of joint 3."""

    def __init__(self, more: float) -> None:
        super().__init__(ROBOT)
        self.more = more

    def step(self, state: tangere.State) -> Command:
        tau = super().step(state).tau.copy()
        if state.time > 0.0195:
            tau[2] += self.more
        return Command(tau)


class Careless(Hold):
    """Changes what it was shown in place."""

    def step(self, state: tangere.State) -> Command:
        if state.time > 0.0195:
            state.qd[:] *= -5.0
        return super().step(state)


@pytest.mark.parametrize("plant", [RigidPlant, tangere.plants.MujocoPlant])
def test_a_controller_cannot_change_the_arm_in_place(plant: type) -> None:
    """What it sees is the arm's own state: written to, a simulated arm would jump, and its log would agree."""
    result = run(plant(ROBOT), Careless(ROBOT), until=0.1, start=Q0)
    assert "read-only" in result.aborted
    assert np.abs(result.log["q"] - Q0).max() < 1e-6


@pytest.mark.parametrize("more", [np.nan, np.inf])
def test_a_torque_that_is_no_number_ends_the_run_with_its_log(more: float) -> None:
    result = run(RigidPlant(ROBOT), Astray(more), until=0.1, start=Q0)
    assert result.aborted.startswith("the controller failed: it answered a torque of")
    assert "for joint 3 at 0.02 s" in result.aborted
    assert len(result.log) == 20
    assert result.log.notes[-1].text == f"ended: {result.aborted}"
    assert result.summary["aborted"] == result.aborted


class Startled(Hold):
    """A controller that knows of touches, and cannot bear them."""

    def on_event(self, event: Event) -> None:
        raise ValueError("what now")


def test_a_reaction_is_refused_before_a_touch_and_blamed_after_one() -> None:
    plant = RigidPlant(ROBOT, pushes=[Push(joint=2, torque=20.0, start=0.05, duration=1.0)])
    given = {"observers": MomentumObserver(ROBOT), "detector": 5.0, "until": 0.2, "start": Q0}
    for wrong, said in (("stop", r"an object with on_event\(event\)"), (Startled, "write Startled")):
        with pytest.raises(InvalidValue, match=f"^reaction: .*{said}"):
            run(plant, Hold(ROBOT), reaction=wrong, **given)
    ran = run(plant, Hold(ROBOT), reaction=Startled(ROBOT), **given)
    assert ran.aborted.startswith("the reaction failed: what now (ValueError in test_run_given.py, line")
    assert 0.05 < ran.events[0].time_s == ran.log.time[-1] + plant.period


def test_a_note_in_the_words_of_a_limit_is_no_limit(tmp_path: Path) -> None:
    """What was exceeded is known by its kind: a controller may say what it likes."""

    class Says(Hold):
        def step(self, state: State) -> Command:
            return replace(super().step(state), note="beyond its means, joint 2 beyond its speed of 1 rad/s")

    result = run(RigidPlant(ROBOT), Says(ROBOT), until=0.1, start=Q0)
    assert len(result.interventions) == 1
    assert result.summary["limits_exceeded"] == [] == result.exceeded
    assert "went beyond its limits" not in result.report(tmp_path / "run.html").read_text()


def test_limits_that_were_reached_are_said(tmp_path: Path) -> None:
    quiet = run(RigidPlant(ROBOT), Hold(ROBOT), until=0.1, start=Q0)
    assert not quiet.interventions
    with pytest.warns(BeyondLimits, match="joint 3 beyond its torque of 150 Nm"):
        result = run(RigidPlant(ROBOT), Astray(600.0), until="0.6 s", start=Q0)
    said = {note.text: note.time for note in result.log.notes}
    torque = f"joint 3 beyond its torque of {ROBOT.tau_max[2]:.4g} Nm"
    speed = f"joint 3 beyond its speed of {ROBOT.qd_max[2]:.4g} rad/s"
    assert said[torque] == pytest.approx(0.02)
    first = result.log.time[np.argmax(np.abs(result.log["qd"][:, 2]) > ROBOT.qd_max[2])]
    assert said[speed] == first > 0.02
    assert result.summary["limits_exceeded"] == [*result.limits] == result.exceeded
    assert {torque, speed} <= set(result.exceeded)
    assert result.summary["interventions"][torque] == np.sum(np.abs(result.log["tau_cmd"][:, 2]) > ROBOT.tau_max[2])
    page = result.report(tmp_path / "run.html").read_text()
    first_words, _, rest = page.partition("The arm went beyond its limits")
    assert " beyond its " in first_words.partition("<h1>")[2]  # the sentence under the title
    periods = result.summary["interventions"][speed]
    assert f"Joint 3 beyond its speed of 3.142 rad/s: in {periods} of 600 periods, first at" in rest
    assert "Limits exceeded" in rest
    assert "Interventions of the controller" not in rest
    times = [time for time, _ in result.data().notes]
    assert len(times) > 2
    assert times == sorted(times)
    assert any("end of" in text for text in said)  # it turned on beyond its range


class Within(Astray):
    """The same, cut off at the limit by itself."""

    def step(self, state: tangere.State) -> Command:
        return Command(np.clip(super().step(state).tau, -ROBOT.tau_max, ROBOT.tau_max))


def test_a_torque_at_its_limit_is_said_once_by_whoever_cut_it_off(tmp_path: Path) -> None:
    at, limited = f"joint 3 at its torque of {ROBOT.tau_max[2]:.4g} Nm", "torque of joint 3 limited"
    own = run(RigidPlant(ROBOT), Within(600.0), until=0.023, start=Q0)
    assert own.interventions[at] == np.sum(own.log["tau_cmd"][:, 2] == ROBOT.tau_max[2]) > 1
    assert own.log.notes[0].text == at
    assert at in own.report(tmp_path / "run.html").read_text()
    assert repr(own).endswith("0 events, joint 3 at its torque)")
    guarded = run(RigidPlant(ROBOT), Guarded(Astray(600.0), ROBOT, period=1e-3, rate_max=1e6), until=0.05, start=Q0)
    assert limited in guarded.interventions
    assert at not in guarded.interventions


def test_interventions_come_in_the_order_of_the_joints() -> None:
    class Wild(Hold):
        """Joint after joint, the last one first."""

        def step(self, state: tangere.State) -> Command:
            tau = super().step(state).tau.copy()
            tau[5 - round(state.time * 1e3) % 6] += 0.05
            return Command(tau)

    guarded = Guarded(Wild(ROBOT), ROBOT, period=1e-3, rate_max=10.0)
    said = run(RigidPlant(ROBOT), guarded, until=0.03, start=Q0).interventions
    assert [text for text in said if text.startswith("torque rate")] == [
        f"torque rate of joint {j} limited" for j in range(1, 7)
    ]
    assert list(by_joint({"joint 10 x": 1, "joint 2 x": 1})) == ["joint 2 x", "joint 10 x"]
