"""Every example runs, says what it promises, and the README shows code and output that are true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NUMBER = r"(-?[\d.]+(?:e[+-]?\d+)?)"


LEFT: dict[str, dict[str, str]] = {}  # example -> page or picture that it left -> its text


@cache
def printed(name: str) -> str:
    """What examples/NAME.py prints, in a Python of its own, as a user runs it; a warning is an error."""
    slow = "ignore:tangere's compiled kernels are not available:RuntimeWarning"  # allowed: a machine without a compiler
    command = [sys.executable, "-W", "error", "-W", slow, str(ROOT / "examples" / f"{name}.py")]
    same = {"PYTHONPATH": str(Path(tangere.__file__).parents[1])}  # the package under test, not another installed one
    with tempfile.TemporaryDirectory() as place:
        environment = os.environ | same | {"TMPDIR": place}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        left = [path for path in Path(place).rglob("*") if path.suffix in (".html", ".svg")]
        LEFT[name] = {path.name: path.read_text(encoding="utf-8") for path in left}
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def numbers(pattern: str, text: str) -> list[float]:
    """The groups of the one place that fits; a # in the pattern stands for a number."""
    found = re.findall(pattern.replace("#", NUMBER), text)
    assert len(found) == 1, f"{pattern!r} fits {len(found)} times in:\n{text}"
    groups = found[0] if isinstance(found[0], tuple) else (found[0],)
    return [float(value) for value in groups]


def rows(text: str, columns: int) -> list[list[float]]:
    """The lines that are nothing but that many numbers."""
    line = r"^\s+" + r"\s+".join([NUMBER] * columns) + "$"
    return [[float(value) for value in found] for found in re.findall(line, text, flags=re.M)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_is_small(path: Path) -> None:
    text = printed(path.stem)
    assert text.strip()
    assert "nan" not in text.split()
    assert max(len(line) for line in text.splitlines()) <= 120
    lines = path.read_text().count("\n")
    assert 40 <= lines <= 110, f"{lines} lines; an example shows one idea"


def test_a_scenario_of_ones_own_has_settings_events_and_a_page() -> None:
    text = printed("own_scenario")
    assert numbers(r"joint 4 waves by # rad", text) == [pytest.approx(0.3491, abs=1e-4)]  # 20 deg
    assert 3.0 <= numbers(r"touch at # s on joint 4", text)[0] <= 3.005  # pushed from 3 s on, an exact model
    assert numbers(r"felt at most # Nm", text) == [pytest.approx(8.0, rel=0.01)]
    assert numbers(r"page of # bytes", text)[0] > 1e5
    assert "refused: swing: above 0 to 1 rad, got 20" in text


def test_a_program_of_urscript_runs_in_a_world_of_ones_own() -> None:
    text = printed("urscript_in_process")
    assert "did you mean 'movel'?" in text
    assert numbers(r"finished after # s", text)[0] > 1.0  # it waited for its register
    assert numbers(r"lowest point # mm", text) == [pytest.approx(100.0, abs=0.1)]
    assert "gripper True, register 2" in text


def test_a_controller_does_the_same_on_an_arm() -> None:
    text = printed("same_controller_on_an_arm")
    (here,), (there,) = numbers("in this process: # mm", text), numbers("over the network: # mm", text)
    assert there == pytest.approx(here, rel=0.1)  # friction of the same law, steps of 1 ms there and 2 ms here
    assert "0 of 2000 torques came late" in text


def test_inverse_kinematics_stays_on_its_branch() -> None:
    text = printed("inverse_kinematics")
    assert "8 ways to stand" in text
    assert "0 solutions, and no exception" in text
    step, back = numbers("circle # deg.*within # deg", text)
    # steps of 4 mm, half a metre from the first axis, are about 0.5 deg; a jump to another branch is more than 10 deg
    assert 0.0 < step < 2.0
    assert back < 1e-9  # the circle closes; IK is exact to 1e-12 rad or so


def test_computed_torque_follows_the_formula() -> None:
    (deviation,) = numbers("deviation from the formula: # rad", printed("computed_torque"))
    # Runge-Kutta, global error ~ (w h)^4 = 1e-8 of an amplitude below 1 rad
    assert deviation < 1e-8


def test_payload_is_virtual_work() -> None:
    text = printed("payload_and_mounting")
    assert numbers("virtual work: # Nm", text)[0] < 1e-11  # rounding of torques of 100 Nm
    assert "0.160 m below" in text


def test_a_batch_is_its_states() -> None:
    assert "the same bits: True" in printed("batches")


def test_the_push_on_the_circle_is_felt() -> None:
    text = printed("circle_with_push")
    before, because = numbers("at most # mm before the push, # mm because of it", text)
    assert before < 0.1  # a torque held for 2 ms: h/2 of delay in what the model feeds forward, 0.05 mm
    assert because > 5.0  # 20 Nm / (M_22 kp = 2000 Nm/rad), 0.7 m away: some 7 mm; the push was not fed back
    assert numbers("before the push: # Nm", text)[0] < 0.02  # the trapezium's h^2/12, 4 times that of 1 kHz
    joint, felt, delay, ended = numbers("felt on joint # at # s, # ms after onset; over at # s", text)
    assert joint == 2.0
    assert felt == 2.004  # 20 (1 - exp(-50 t)) passes 2 Nm after 2.1 ms: the second sample
    assert delay == 4.0
    assert ended == 3.56  # 20 exp(-50 t) is below 1 Nm after 59.9 ms
    table = rows(text, 3)
    assert len(table) == 5
    for _, residual, formula in table:
        assert residual == pytest.approx(formula, abs=0.02)  # as quiet as before the push
    assert numbers("constants: # Nm", text)[0] == pytest.approx(20.0, abs=0.02)


def test_the_own_controller_is_a_table() -> None:
    text = printed("own_controller")
    down, spring = numbers("at rest again: # mm down; F / k = # mm", text)
    assert spring == 4.0
    assert down == pytest.approx(spring, abs=1e-3)  # at rest; what is left of the sliding decays by e every second
    table = rows(text, 3)
    assert table[-1][1] > 200.0  # it slid
    assert max(depth for _, _, depth in table) < 6.0  # and stayed on the table, drag included
    assert "guard: 0" in text
    page = LEFT["own_controller"]["report.html"]
    assert "InvisibleTable in Guarded" in page
    assert "<h1>invisible table</h1>" in page


def test_identified_friction_is_that_of_the_worn_arm() -> None:
    text = printed("identify_an_arm")
    table = rows(text, 4)
    assert len(table) == 6
    for _, sheet, truth, found in table:
        assert abs(found - truth) < 0.2 * abs(sheet - truth)  # the data sheet is 20 to 50 % off
    assert numbers("identified friction: # %", text)[0] < 5.0
    before, after = numbers("all joints: # Nm before, # Nm after", text)
    assert after < 0.2 * before
    assert "Friction" in LEFT["identify_an_arm"]["identified.html"]


def test_tuned_thresholds_are_lower_and_hold() -> None:
    text = printed("tune_thresholds")
    table = rows(text, 3)
    assert len(table) == 6
    assert all(tuned < wide for _, tuned, wide in table)
    seconds, alarms, score = numbers(r"another # s of free motion: # alarms, largest score # of 1", text)
    assert seconds > 15.0
    assert alarms == 0
    assert 0.1 < score < 1.0
    assert list(LEFT["tune_thresholds"]) == ["tuned.html"]


def test_the_push_in_the_log_is_found_three_ways() -> None:
    text = printed("watch_a_log")
    for name in ("no model", "identified", "line by line"):
        at, late, torque, score = numbers(rf"{name} +\w+ +joint 2 at # s \(# ms after it began\), # Nm, score #", text)
        assert 6.0 < at < 6.1
        assert late == pytest.approx(1e3 * (at - 6.0), abs=1.0)
        assert torque == pytest.approx(-40.0, rel=0.15)
        assert score > 1.0
    assert "told: raised, " in text
    assert numbers("before the push: # of 1", text)[0] < 0.5
    assert "<svg" in LEFT["watch_a_log"]["log.svg"]
    assert "log.csv" in LEFT["watch_a_log"]["watched.html"]


def test_a_log_of_ones_own_is_watched() -> None:
    text = printed("own_log_format")
    assert "1 lines could not be read" in text
    joint, at, torque = numbers("on joint # at # s: # Nm; pushed", text)
    assert joint == 3
    assert 5.0 < at < 5.1
    assert torque == pytest.approx(-30.0, rel=0.2)
    assert "actual_current" in LEFT["own_log_format"]["mine.svg"]


def test_a_small_study_counts() -> None:
    text = printed("study_of_touches")
    assert "16 contacts on a ur10e" in text
    counts = [float(value) for value in re.findall(rf"N: +{NUMBER} contacts", text)]
    assert sum(counts) == 16
    for found, low, high in re.findall(rf"{NUMBER} % found \(95 %: {NUMBER} to {NUMBER} %\)", text):
        assert float(low) <= float(found) <= float(high)
    assert "study.html" in LEFT["study_of_touches"]


def test_hand_guiding_needs_less_force_with_compensation() -> None:
    text = printed("hand_guiding")
    table = rows(text, 5)
    assert [row[0] for row in table] == [0.0, 50.0, 70.0]
    for column in (1, 2, 3, 4):  # led farther, coasts longer
        values = [row[column] for row in table]
        assert values == sorted(values)
        assert values[-1] > 2.0 * values[0]
    assert table[-1][3] < 2.5  # and yet it comes to rest before the run ends
    for _, led, _, _, work in table:
        # the force is 30 N and the way is an arc about the first axis: the chord along it, or a little less
        assert 0.8 * 30.0 * led / 1e3 < work <= 30.0 * led / 1e3
    assert numbers("sinks by # deg", text)[0] < 1e-10  # gravity compensated to rounding


def test_a_reaction_lets_go_of_a_hand() -> None:
    text = printed("touch_reactions")
    found = {
        name: numbers(rf"\n +{name} +# +# +# +#\n", text)
        for name in ("none", "stop on path", "hold softly", "retreat", "float")
    }
    peak, later, _, lasting = found.pop("none")
    assert peak > 280.0  # N; with 140 N, what ISO/TS 15066 allows a hand: this is why one reacts
    assert later > 140.0
    assert lasting == pytest.approx(1.9, abs=0.01)  # until the end of the run
    for name, (first, remaining, impulse, _) in found.items():
        assert 0.6 * peak < first < 0.85 * peak  # the drives cannot take all of the speed out within 20 ms
        assert remaining < (20.0 if name == "stop on path" else 1.0)
        assert impulse < 30.0
    assert found["retreat"][3] < found["float"][3] < found["hold softly"][3]


def test_null_space_motion_leaves_the_tip() -> None:
    text = printed("null_space_motion")
    assert "3 directions are free" in text
    speeds = [float(value) for value in re.findall(rf"moves the tip at\s+{NUMBER} mm/s", text)]
    assert speeds[0] < 1e-10  # J N = 0 to rounding
    assert min(speeds[1:]) > 1.0
    tip, turned, joints = numbers(r"swing second\s+#\s+#\s+#", text)
    assert tip < 0.05  # mm: torques held for 2 ms
    assert turned > 10.0
    assert joints > 10.0
    assert numbers(r"swing alone\s+#\s+#\s+#", text)[0] > 100.0


def test_three_mechanics_are_one() -> None:
    text = printed("pendulum_three_ways")
    differences = [float(value) for value in re.findall(rf"difference of the three: {NUMBER} Nm", text)]
    assert len(differences) == 2
    assert max(differences) < 1e-12  # rounding of some fifty operations on torques of 40 Nm: 1e-14 reached


def test_the_action_is_stationary_and_not_always_least() -> None:
    text = printed("least_action")
    for name, duration, kind in (
        ("pendulum, 0.6 s", 0.6, "a minimum for this disturbance"),
        ("pendulum, 1.6 s", 1.6, "no minimum: a saddle"),
        ("ur10e falling, 0.1 s", 0.1, "a minimum for this disturbance"),
    ):
        _, first, false, second = numbers(rf"{re.escape(name)}\s+#\s+#\s+#\s+#\s+{kind}", text)
        assert abs(first) < 1e-8 * abs(false)  # e^2/6 d3S with e = 1e-5
        if name.startswith("pendulum"):
            # d2S = int eta'^2 - 9.81 cos(theta) eta^2, eta = sin(pi t / T), and cos(theta) between cos 0.5 and 1
            low, high = (4.9348 / duration - 9.81 * c * duration / 2.0 for c in (1.0, 0.8776))
            assert low < second < high
    changes = [float(value) for value in re.findall(rf"rad:\s+{NUMBER} J s", text)]
    for less, more in pairwise(changes):
        assert more / less == pytest.approx(100.0, rel=0.01)  # second order; the cubic term adds e d3S / (3 d2S)


def test_a_satellite_turns_without_momentum() -> None:
    text = printed("floating_base")
    whole, arm = numbers("of the whole #, of the arm as its joints move it #", text)
    assert arm > 10.0
    assert whole < 1e-5 * arm  # Runge-Kutta, h^4: 7e-6, and a sixteenth of it with half the step
    table = rows(text, 4)
    assert len(table) == 4
    assert max(row[3] for row in table) < 1e-4 * min(row[2] for row in table)  # the centre of mass stands still
    assert table[-1][1] > 5.0  # deg
    assert numbers("began within # deg", text)[0] < 1e-9


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)


def test_python_of_the_readme_runs() -> None:
    (eight_lines,) = blocks("python")
    names: dict[str, Any] = {}
    exec(compile(eight_lines, "README.md", "exec"), names)
    assert np.allclose(names["q_next"], names["q"])  # the pose of q, solved: q itself is nearest to q


def test_output_in_the_readme_is_what_make_demo_prints(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command of the Makefile; shortened by lines that are "...", otherwise word for word, in order."""
    from tangere.cli.main import main

    (command,) = re.findall(r"^demo: .*\n(?:\t.*\n)*?\t.*/tangere (run .*)$", (ROOT / "Makefile").read_text(), re.M)
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 0
    printed = capsys.readouterr().out
    (shown,) = blocks("text")
    pieces = [piece.strip("\n") for piece in re.split(r"^\s*\.\.\.\n", shown, flags=re.M)]
    assert len(pieces) > 1
    place = 0
    for piece in pieces:
        found = printed.find(piece, place)
        assert found >= 0, f"make demo does not print:\n{piece}"
        place = found + len(piece)


def test_rollouts_of_contacts_are_felt_and_one_is_replayed() -> None:
    text = printed("rollouts_of_contacts")
    assert "replayed to the bit: True" in text
    assert "rollout.html" in LEFT["rollouts_of_contacts"]
    if "(python)" not in text:
        assert numbers(r"felt: # %", text)[0] > 60.0
        assert numbers(r"half of these within # ms", text)[0] < 20.0
        assert numbers(r"alarms before the push: #;", text) == [0.0]


def test_virtual_work_vanishes_with_the_square_of_the_displacement() -> None:
    text = printed("virtual_work")
    for joint in (1, 2, 3):
        (times,) = numbers(rf"joint {joint}: work .* rad: # times", text)
        assert times == pytest.approx(100.0, rel=0.02)
    assert numbers("too much on joint 2: # J", text) == [pytest.approx(5e-5, rel=0.02)]


def test_figures_of_the_documents_are_on_one_page() -> None:
    assert len(printed("document_figures").splitlines()) == 17
    page = LEFT["document_figures"]["document_figures.html"]
    assert page.count("<svg") == 16
