"""Every example runs, says what it promises, and the README shows code and output that are true."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(path), run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_is_small(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(path, capsys).strip()
    lines = path.read_text().count("\n")
    assert 40 <= lines <= 110, f"{lines} lines; an example shows one idea"


def test_inverse_kinematics_stays_on_its_branch(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(ROOT / "examples" / "inverse_kinematics.py", capsys)
    assert "8 ways to stand" in text
    assert "0 solutions, and no exception" in text
    step, back = (float(v) for v in re.findall(r"circle ([\d.]+) deg.*within ([\d.e+-]+) deg", text)[0])
    # steps of 4 mm, half a metre from the first axis, are about 0.5 deg; a jump to another branch is more than 10 deg
    assert 0.0 < step < 2.0
    assert back < 1e-9  # the circle closes; IK is exact to 1e-12 rad or so


def test_computed_torque_follows_the_formula(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(ROOT / "examples" / "computed_torque.py", capsys)
    deviation = float(re.findall(r"deviation from the formula: ([\d.e+-]+) rad", text)[0])
    # Runge-Kutta, global error ~ (w h)^4 = 1e-8 of an amplitude below 1 rad
    assert deviation < 1e-8


def test_payload_is_virtual_work(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(ROOT / "examples" / "payload_and_mounting.py", capsys)
    assert float(re.findall(r"virtual work: ([\d.e+-]+) Nm", text)[0]) < 1e-11  # rounding of torques of 100 Nm
    assert "0.160 m below" in text


def test_a_batch_is_its_states(capsys: pytest.CaptureFixture[str]) -> None:
    assert "the same bits: True" in run(ROOT / "examples" / "batches.py", capsys)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)


def test_python_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {})


def test_output_in_the_readme_is_what_the_demo_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Shortened by lines that are "...", otherwise word for word, in order."""
    from tangere.interfaces import demo

    assert demo.main() == 0
    printed = capsys.readouterr().out
    (shown,) = blocks("text")
    pieces = [piece.strip("\n") for piece in re.split(r"^\s*\.\.\.\n", shown, flags=re.M)]
    assert len(pieces) > 1
    place = 0
    for piece in pieces:
        found = printed.find(piece, place)
        assert found >= 0, f"the demo does not print:\n{piece}"
        place = found + len(piece)
