"""What cannot be, of scenarios and pushes, is refused in a sentence before anything moves."""

from __future__ import annotations

from typing import Any

import pytest

from tangere.apps.scenarios.build import build
from tangere.apps.scenarios.common import RunSettings
from tangere.errors import InvalidValue, NoSolution
from tangere.plants.pushes import Push, push_of, push_record, pushes_of

pytest.importorskip("mujoco")


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("circel", {}, "unknown scenario 'circel'; known: circle, hold, impedance.*did you mean 'circle'"),
        ("circle", {"radios": 1}, "unknown setting 'radios'; known: .*radius"),
        ("hold", {"radius": 1}, "unknown setting 'radius'"),
        ("hold", {"period": 0}, "period: above 0 s, got 0"),
        ("hold", {"period": "1 us", "duration": "1 min"}, "duration: .* to 5 s with a period of 1e-06 s, got 60 s"),
        ("hold", {"duration": 0}, "duration: 0.001 to .* got 0 s"),
        ("reach", {"duration": 0}, "duration: 0.001 to"),
        ("wall-circle", {"round_time": 1e9}, "round_time: "),
        ("wall-circle", {"plant": "rigid"}, "contacts need plant=mujoco"),
        ("hold", {"friction": "stiction", "plant": "rigid"}, "stiction and contacts need plant=mujoco"),
        ("hold", {"friction": "full", "robot": "ur20"}, "the drives of ur20 are not known"),
        ("hold", {"seed": -1}, "seed: 0 or more, got -1"),
        ("hold", {"q": "1,2,3"}, "q: 6 angles in degrees for ur10e, got 3"),
        ("hold", {"q": 1}, "q: 6 angles in degrees for ur10e, got 1"),
        ("hold", {"threshold": "1,2,3"}, "threshold: 1 or 6 numbers for ur10e, got 3"),
        ("wall-circle", {"robot": "scara"}, "wall-circle places its walls for UR arms, got scara"),
        ("touch", {"robot": "scara", "obstacle": "hand"}, "hand is placed for UR arms; wall or nothing for scara"),
        ("wall-circle", {"force": -1}, "force: 0 N or more, got -1"),
        ("circle", {"centre": 0.5}, "centre: 3 numbers, got 1"),
        ("circle", {"centre": (1.3, 0, 0.3)}, r"start \(1.450, 0.000, 0.300\) m is out of reach by 0.156 m"),
        ("circle", {"centre": (1.0, 0, 0.3)}, "branch: 'left up no flip' does not reach .* one of .*'left up flip'"),
        ("circle", {"duration": 1.5}, "too short for two ramps"),
        ("circle", {"mass": -1}, "mass"),
        ("circle", {"model": "000-X"}, "unknown parameters '000-X' for ur10e; known: official, 000-C"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_moves(name: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        build(name, given)


def test_a_circle_that_leaves_the_reach_on_its_way_says_where_and_by_how_much() -> None:
    # behind the base the start, at centre + radius, is the point nearest to it: the far side is out of reach
    with pytest.raises(NoSolution, match=r"reach at t = [\d.]+ s, \(-1\.\d+, .*\) m, by [\d.]+ mm"):
        build("circle", {"centre": (-1.0, 0.0, 0.3), "radius": 0.3, "duration": 9, "branch": "right up no flip"})


def test_pushes() -> None:
    assert push_of("joint=2,torque=20,start=3,duration=2") == Push(2, 20.0, 3.0, 2.0)
    assert push_of(" joint = 2 , torque = 20 Nm , start = 300ms ") == Push(2, 20.0, 0.3)
    assert push_of({"joint": 2, "torque": "20 Nm", "start": 3}) == Push(2, 20.0, 3.0)
    whole = Push(link=4, point=(0.0, 0.0, 0.1), force=(0.0, 0.0, -30.0), start=2.0, duration=1.0)
    assert push_of("link=4,force=0/0/-30,point=0/0/100 mm,start=2,duration=1") == whole
    assert push_of("link=4,force=0,0,-30,point=0, 0, 10cm,start=2,duration=1000 ms") == whole
    assert push_of("start=2,duration=1,link=4,force=0,0,-30 N,point=0,0,0.1") == whole
    assert push_of(whole) is whole
    assert pushes_of("none") == pushes_of([]) == ()
    assert push_of(push_record(whole)) == whole
    assert push_record(Push(2, 20.0, 3.0)) == {"joint": 2, "torque": 20.0, "start": 3.0}
    assert push_of({"link": 4, "force": [0, 0, -30], "point": [0, 0, "0.1 m"], "start": 2, "duration": 1}) == whole


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("joint=2,torque=20", "'start' is missing; give joint=2,"),
        ("torque=20,start=1", "'link' is missing"),
        ("", "'link' is missing"),
        ("joint", "push joint: a number, got ''"),
        ("joint=2.5,torque=1,start=0", "push joint: a whole number"),
        ("joint=2,torque=20 N,start=0", "valid units: Nm"),
        ("joint=2,torqe=20,start=0", "push: unknown 'torqe'; known: joint, torque"),
        ("joint=2,torque=20,force=1/2/3,start=0", "force beside the other kind"),
        ("link=2,torque=20,force=1/2/3,start=0", "torque beside the other kind"),
        ("link=4,force=30,start=0", "push force: 3 numbers, got 1"),
        (5, "push: give joint=2,.* got 5"),
        (["joint=2"], "push: give joint=2,"),
    ],
)
def test_pushes_that_are_none(given: Any, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        push_of(given)


def test_a_push_on_a_joint_that_is_not_there() -> None:
    with pytest.raises(InvalidValue, match="joint of a push: got 7, valid are 1 to 6"):
        build("hold", {}, (push_of("joint=7,torque=1,start=0"),))


def test_settings_are_checked_however_they_are_made() -> None:
    for told in ({"period": -1e-3}, {"plant": "gazebo"}, {"believed_payload": -1.0}):
        with pytest.raises(InvalidValue, match=f"^{next(iter(told))}: "):
            RunSettings(**told)
