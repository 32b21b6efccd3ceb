"""Formulas of arms as text: evaluated in the language they are written in, they are the kernels' numbers."""

from __future__ import annotations

import ast
import ctypes
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import foreign_arms
import numpy as np
import pytest

import tangere
from tangere.cli.main import main
from tangere.errors import InvalidValue
from tangere.kernels.emit.formulas import LANGUAGES, SET_WIDTH, WIDTH, function, set_width
from tangere.kernels.formulas import QUANTITIES, formula, formula_text
from tangere.model.loading import names
from tangere.robots import Robot
from tangere.types import Array

# all URs have one structure; a UR15's inertias have no zeros
ARMS = (*(names() if os.environ.get("TANGERE_SOAK") else ("ur5e", "ur15", "pendulum", "planar3r", "scara")),
        *foreign_arms.ARMS)  # fmt: skip
# quantity and link: what 000 wrote with MATLAB, and the rest
WANTED = [("jacobian", 5), ("jacobian", 6), ("jacobian", None), *((name, None) for name in list(QUANTITIES)[1:])]


def arm(name: str, folder: Path) -> Robot:
    return tangere.robot(str(foreign_arms.written(folder, name)) if name in foreign_arms.ARMS else name)


def states(robot: Robot, count: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(17)
    return rng.uniform(-3.0, 3.0, (count, robot.model.dof)), rng.uniform(-3.0, 3.0, (count, robot.model.dof))


def expected(robot: Robot, quantity: str, link: int | None, q: Array, qd: Array) -> Array:
    match quantity:
        case "jacobian" if link is not None:
            Jv, Jw = robot.link_jacobians(q)
            return np.concatenate([Jv[..., link - 1, :, :], Jw[..., link - 1, :, :]], axis=-2)
        case "jacobian":
            return robot.jacobian(q)
        case "mass-matrix":
            return robot.mass_matrix(q)
        case "coriolis":
            return robot.coriolis_matrix(q, qd)
    return robot.gravity_torque(q)


def called(text: str, quantity: str, q: Array, qd: Array) -> Array:
    """The values of a Python text at many states."""
    space: dict[str, Any] = {}
    exec(text, space)
    function = space[quantity.replace("-", "_")]
    return np.array([function(*(x if quantity == "coriolis" else x[:1])) for x in zip(q, qd, strict=True)])


@pytest.mark.parametrize(("quantity", "link"), WANTED)
def test_a_thousand_states_of_a_ur10e(quantity: Any, link: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    robot = tangere.robot("ur10e")
    q, qd = states(robot, 1000)
    assert main(["symbolic", quantity, "--robot", "ur10e", *([] if link is None else ["--link", str(link)])]) == 0
    text = capsys.readouterr().out
    wanted = expected(robot, quantity, link, q, qd)
    np.testing.assert_allclose(called(text, quantity, q, qd), wanted, rtol=0, atol=1e-10)
    assert "multiplied out and factored" in text


@pytest.mark.parametrize("name", ARMS)
def test_every_kind_of_arm_and_language(name: str, tmp_path: Path) -> None:
    """Teaching arms and arms of URDF files too; no text is long."""
    robot = arm(name, tmp_path)
    q, qd = states(robot, 20)
    for quantity, link in [*WANTED, ("jacobian", 1)]:
        if (link or 0) <= robot.model.dof:
            form = formula(robot.model, quantity, link=link)  # type: ignore[arg-type]
            texts = {language: function(form, language) for language in LANGUAGES}
            assert max(map(len, texts.values())) < 200_000
            found = called(texts["python"], quantity, q, qd)
            np.testing.assert_allclose(found, expected(robot, quantity, link, q, qd), rtol=0, atol=1e-10)


def test_the_origin_of_a_link() -> None:
    robot = tangere.robot("ur5e")
    q, qd = states(robot, 20)
    for link in range(1, 7):
        text = formula_text(robot.model, "jacobian", "python", link=link, at="origin")
        expected_here = np.array([robot.jacobian(x, link=link) for x in q])
        np.testing.assert_allclose(called(text, "jacobian", q, qd), expected_here, rtol=0, atol=1e-12)


def test_payload_tool_and_mounting_are_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--payload", "1.2,0.01,0,0.05", "--tool", "0,0.1,0.2,0.1,0.2,0.3", "--mounting", "wall"]
    robot = tangere.robot("ur5e", payload=(1.2, (0.01, 0, 0.05)), tool=(0, 0.1, 0.2, 0.1, 0.2, 0.3), gravity="wall")
    q, qd = states(robot, 10)
    for quantity in QUANTITIES:
        assert main(["symbolic", quantity, "--robot", "ur5e", *options]) == 0
        found = called(capsys.readouterr().out, quantity, q, qd)
        np.testing.assert_allclose(found, expected(robot, quantity, None, q, qd), rtol=0, atol=1e-10)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_the_number_of_operations_is_that_of_the_text(quantity: Any) -> None:
    text = formula_text(tangere.robot("ur3e").model, quantity, "python")
    said = re.search(r"# (\d+) operations: (\d+) sines and cosines, (\d+) products, (\d+) sums", text)
    assert said is not None
    body = ast.parse(text)
    calls = sum(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) for n in ast.walk(body))
    binary = [n.op for n in ast.walk(body) if isinstance(n, ast.BinOp)]
    products = sum(isinstance(op, ast.Mult) for op in binary)
    assert [int(x) for x in said.groups()] == [calls + len(binary), calls, products, len(binary) - products]


def test_c_runs(tmp_path: Path) -> None:
    robot = tangere.robot("ur10e")
    q, qd = states(robot, 1000)
    for quantity in QUANTITIES:
        source, library = tmp_path / f"{quantity}.c", tmp_path / f"{quantity}.so"
        source.write_text(formula_text(robot.model, quantity, "c"))
        strict = ["-std=c99", "-pedantic", "-Wall", "-Werror", "-O1", "-shared", "-fPIC"]
        subprocess.run(["cc", *strict, source, "-o", library, "-lm"], check=True)
        function = getattr(ctypes.CDLL(str(library)), quantity.replace("-", "_"))
        wanted = expected(robot, quantity, None, q, qd)
        for k in range(len(q)):
            given = (q[k], qd[k]) if quantity == "coriolis" else (q[k],)
            found = np.full(wanted.shape[1:], np.nan)
            function(*(np.ascontiguousarray(x).ctypes.data_as(ctypes.c_void_p) for x in given), _pointer(found))
            np.testing.assert_allclose(found, wanted[k], rtol=0, atol=1e-10)


def _pointer(x: Array) -> Any:
    return x.ctypes.data_as(ctypes.c_void_p)


@pytest.mark.skipif(shutil.which("octave") is None, reason="octave is not installed: the MATLAB text is not run")
def test_matlab_runs_in_octave(tmp_path: Path) -> None:
    robot = tangere.robot("ur10e")
    q, qd = states(robot, 20)
    lines = []
    for quantity, link in WANTED:
        name = quantity.replace("-", "_") + (f"_{link}" if link else "")
        text = formula_text(robot.model, quantity, "matlab", link=link)  # type: ignore[arg-type]
        (tmp_path / f"{name}.m").write_text(text.replace(f"= {quantity.replace('-', '_')}(", f"= {name}("))
        given = "q(:, k), qd(:, k)" if quantity == "coriolis" else "q(:, k)"
        lines.append(f"for k = 1:{len(q)}, printf('%.17g ', {name}({given})'); end, printf('\\n');")
    rows = {name: "; ".join(" ".join(map(repr, row)) for row in x.T.tolist()) for name, x in (("q", q), ("qd", qd))}
    table = [f"{name} = [{text}];" for name, text in rows.items()]
    command = ["octave", "--no-gui", "--norc", "--quiet", "--eval", "\n".join([*table, *lines])]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    for (quantity, link), row in zip(WANTED, told.strip().splitlines(), strict=True):
        found = np.array([float(x) for x in row.split()])
        np.testing.assert_allclose(found, expected(robot, quantity, link, q, qd).ravel(), rtol=0, atol=1e-10)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed: the LaTeX text is not set")
@pytest.mark.parametrize("name", ["ur10e", "ur5e"])
def test_latex_is_set(name: str, tmp_path: Path) -> None:
    """In a plain article no line is too wide, and none is wider than the estimate that breaks them."""
    model = tangere.robot(name).model
    parts = [formula_text(model, quantity, "latex", link=link) for quantity, link in WANTED]  # type: ignore[arg-type]
    rights = [r for part in parts for r in re.findall(r"& ?=? (.*?)(?: \\\\)?$", part, re.MULTILINE)]
    measured = [rf"\settowidth{{\w}}{{$\displaystyle {{}}{r}$}}\typeout{{width=\the\w}}" for r in rights]
    head = r"\documentclass{article}\usepackage{amsmath}\allowdisplaybreaks\newlength{\w}\begin{document}"
    (tmp_path / "all.tex").write_text("\n".join([head, *measured, *parts, r"\end{document}"]))
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "all.tex"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True).stdout
    assert (tmp_path / "all.pdf").stat().st_size > 20_000
    assert "Overfull" not in said
    widths = [float(x) for x in re.findall(r"width=([\d.]+)pt", said)]
    assert len(widths) == len(rights) > 200
    for right, width in zip(rights, widths, strict=True):
        assert width <= set_width(right) + 1.0 or width < 60.0, right


@pytest.mark.parametrize("name", ["ur10e", "ur5e", "ur15", "seven"])
def test_no_line_is_too_wide(name: str, tmp_path: Path) -> None:
    """Also inside brackets: LaTeX by its estimated width, the others by characters."""
    model = arm(name, tmp_path).model
    for quantity in QUANTITIES:
        for language in LANGUAGES:
            text = formula_text(model, quantity, language)
            for line in text.splitlines():
                if language == "latex" and "&" in line:
                    left, right = line.removesuffix(r" \\").split("&")
                    assert set_width(right) <= SET_WIDTH + 30.0, line  # equals sign, \quad
                    assert set_width(left) <= 30.0, line
                elif "=" in line or line.startswith(" " * 6):
                    assert len(line) <= WIDTH + 24, line  # name, declaration, indentation


@pytest.mark.parametrize("name", ["ur10e", "scara", "seven"])
def test_latex_says_the_same(name: str, tmp_path: Path) -> None:
    """The formulas read back: every line of the align environment is an assignment."""
    robot = arm(name, tmp_path)
    q, qd = states(robot, 5)
    for quantity in QUANTITIES:
        text = formula_text(robot.model, quantity, "latex")
        inside = re.search(r"\\begin\{align\*\}\n(.*)\\end\{align\*\}", text, re.S)
        assert inside is not None
        body = inside[1].replace(r"\quad ", "").replace(" \\\\\n    & ", " ")
        body = body.replace(r"\,", "*").replace(r"\dot{q}", "qd")
        body = re.sub(r" \\cdot 10\^\{(-?\d+)\}", r"e\1", body).replace(r"\cos", "cos").replace(r"\sin", "sin")
        body = re.sub(r"_\{([\d,]+)\}", lambda m: "_" + m[1].replace(",", "_"), body)
        code = "\n".join(line.strip().removesuffix("\\\\").replace("&=", "=") for line in body.splitlines())
        wanted = expected(robot, quantity, None, q, qd)
        for k in range(len(q)):
            space: dict[str, Any] = {"cos": np.cos, "sin": np.sin}
            space |= {f"q_{i + 1}": x for i, x in enumerate(q[k])} | {f"qd_{i + 1}": x for i, x in enumerate(qd[k])}
            exec(code, space)
            symbol = {"jacobian": "J", "mass-matrix": "M", "coriolis": "C", "gravity": "g"}[quantity]
            for place, value in np.ndenumerate(wanted[k]):
                found = space.get(f"{symbol}_{'_'.join(str(i + 1) for i in place)}", 0.0)
                assert abs(found - value) < 1e-10


def test_mistakes_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["jacobian", "--link", "7"], "from 1 to 6, got 7"),
        (["gravity", "--link", "2"], "gravity belongs to the whole arm"),
        (["gravity", "--robot", "ur99"], "ur99"),
    ):
        assert main(["symbolic", *words]) == 1
        assert said in capsys.readouterr().err


def test_a_name_from_a_file_stays_a_comment() -> None:
    model = replace(tangere.robot("pendulum").model, title='x\nimport os; os.abort() \\\n*/ %{ """')
    for language in LANGUAGES:
        first, second, *_ = formula_text(model, "gravity", language).splitlines()
        assert "ximport os os.abort()" in first
        assert "operations" in second
    with pytest.raises(InvalidValue, match="link"):
        formula_text(model, "jacobian", "c", link=0)
