"""`tangere script check`: what is wrong with a program, and where; and nothing wrong with what is right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tangere.script
from tangere.errors import InvalidValue
from tangere.script.builtin import NOT_MODELLED, exists, version
from tangere.script.resolve import builtins, check
from tangere.script.syntax import ScriptError

# program, line, column, a part of the message
WRONG = [
    ("x = ", 1, 5, "expected a value"),
    ("x = 1 +", 1, 8, "expected a value"),
    ("x = (1 + 2", 1, 11, "expected ')'"),
    ("x = [1, 2", 1, 10, "expected ','"),
    ("x = [1 2]", 1, 8, "expected ','"),
    ("if True\n x = 1\nend", 2, 2, "expected ':' after this 'if'"),
    ("if True:\n x = 1", 2, 7, "the 'if' of line 1 has no 'end'"),
    ("while True:\n sync()", 2, 8, "the 'while' of line 1 has no 'end'"),
    ("def f():\n return 1", 2, 10, "the 'def' of line 1 has no 'end'"),
    ("def f(:\nend", 1, 7, "expected a parameter"),
    ("def (a):\nend", 1, 5, "expected the name of a def"),
    ("def f(a, a):\nend", 1, 10, "stands here twice"),
    ("def f(a=1, b):\nend", 1, 12, "needs a default"),
    ("def f(a b):\nend", 1, 9, "expected ','"),
    ("end", 1, 1, "expected a value"),
    ("else:", 1, 1, "expected a value"),
    ("x = 1\n  end", 2, 3, "expected a value"),
    ("1 = x", 1, 3, "only be given to a variable"),
    ("f() = 1", 1, 5, "only be given to a variable"),
    ("x + 1 = 2", 1, 7, "only be given to a variable"),
    ('x = "abc', 1, 5, "does not end in its line"),
    ("x = 'abc\ny = 2'", 1, 5, "does not end in its line"),
    ("x = 1 ? 2", 1, 7, "means nothing"),
    ("x = @", 1, 5, "means nothing"),
    ("x = 1 $ 2", 1, 7, "a line of its own"),
    ("x = 99999999999999999999", 1, 5, "too large"),
    ("x = 1e999", 1, 5, "too large"),
    ("x = [1,2,3][0,1,2]", 1, 12, "one index or two"),
    ("x = [1,2,3][]", 1, 12, "one index or two"),
    ("x = 1(2)", 1, 6, "only a function"),
    ("x = sin(f=1, 2)", 1, 14, "all have one"),
    ("x = sin(f=1, f=2)", 1, 14, "stands here twice"),
    ("global 3 = 4", 1, 8, "the name of a global"),
    ("local", 1, 6, "the name of a local"),
    ("run 3()", 1, 5, "the name of a thread"),
    ("x = a.(3)", 1, 7, "a member's name"),
    ("break", 1, 1, "outside of a loop"),
    ("if True:\n continue\nend", 2, 2, "outside of a loop"),
    ("while True:\n def f():\n  break\n end\n sync()\nend", 3, 3, "outside of a loop"),
    ("x = y", 1, 5, "'y' is given no value"),
    ("x = sin", 1, 5, "call it with"),
    ("def f():\n return z\nend\nx = f()", 2, 9, "'z' is given no value"),
    ("def f():\n local a = 1\nend\nx = a\nf()", 4, 5, "'a' is given no value"),
    ("x = foo(1)", 1, 5, "no function 'foo'"),
    ("x = moveJ([0])", 1, 5, "did you mean 'movej'"),
    ("x = sin()", 1, 5, "'f' is missing"),
    ("x = sin(1, 2)", 1, 5, "2 arguments"),
    ("x = sin(g=2)", 1, 5, "no argument 'g'"),
    ("movej([0,0,0,0,0,0], q=[1])", 1, 1, "given twice"),
    ("def f(a):\nend\nf()", 3, 1, "'a' is missing"),
    ("def f(a):\nend\nf(1, 2)", 3, 1, "2 arguments"),
    ("def f(a):\nend\nf(b=1)", 3, 1, "no argument 'b'"),
    ("def f():\nend\ndef f():\nend", 3, 1, "already the name of a function, in line 1"),
    ("def f():\nend\nx = run f()", 3, 9, "run starts a thread"),
    ("thread t():\n sync()\nend\nt()", 4, 1, "is a thread"),
    ("x = run nobody()", 1, 9, "no thread 'nobody'"),
    ("sec s():\n sync()\nend", 1, 1, "may not move"),
    ("sec s():\n movej([0,0,0,0,0,0])\nend", 1, 1, "may not move"),
    ("sec s():\n def f():\n  sleep(1)\n end\n f()\nend", 1, 1, "may not move"),
    ("x = 1\nsec s():\nend", 2, 1, "stands alone"),
    ("x = struct(1)", 1, 5, "names only"),
    ("x = [1]\nx.push(2)", 2, 2, "no method 'push'"),
    ("x = [1]\nx.append()", 2, 2, "takes 1 arguments"),
    ("x = [1]\ny = x.append(2)", 2, 6, "a statement of its own"),
    ("[1].append(2)", 1, 4, "a statement of its own"),
    ("x = " + "(" * 70 + "1" + ")" * 70, 1, 65, "inside each other"),
    ("x = " + "1+" * 300 + "1", 1, 406, "in a row"),
    ("x = " + "-" * 80 + "1", 1, 65, "signs in a row"),
    ("".join(" " * k + "while True:\n" for k in range(25)), 19, 19, "loops inside each other"),
    ("if False:\n" + "elif False:\n" * 300 + "end", 251, 1, "arms of one if"),
]

RIGHT = [
    "",
    "# nothing",
    "$ 1 \"label\"\nx = 1",
    "x = 1 y = 2 z = x",
    "x = # comment\n0    global y = 3",
    "x = 1 or\n 2",
    "x = [1,\n 2,\n 3]",
    "x = 1; y = 2",
    "def f():\nend\nf()",
    "def program():\n x = 1\nend",
    "async = 1 type = 2 list = 3 time = 4 x = async + type",
    "p = [1, 2]\nx = p[0]",
    "q = p[0,0,0,0,0,0]",
    "x = .5 + 1. + 1e3 + 1.5E-3 + 0xff + 0b11",
    "return",
    "x = not not True",
    "x = --1",
    "thread t(a):\n x = a\nend\nh = run t(3)\njoin h\nkill h",
    "global a\na = 1",
    "digital_out[2] = True\nx = digital_in[3]",
    "sec s():\n set_digital_out(1, True)\nend",
    "x = 'text'\ny = \"it's\"",
    "if True: x = 1 elif False: x = 2 else: x = 3 end",
    "x = [[1,2],[3,4]]\ny = x[1,0]\nx[0,1] = 5",
    "s = struct(a=1, b=[1,2])\nx = s.a\ns.b[1] = 3",
    "movel(p[0,0,0,0,0,0], v=0.1, a=1.2)",
    "x = PI",
    "def f(a, b=2, c=[1,2]):\n return a\nend\nx = f(1, c=3)",
]


@pytest.mark.parametrize(("program", "line", "column", "message"), WRONG, ids=range(len(WRONG)))
def test_wrong(program: str, line: int, column: int, message: str) -> None:
    problems = check(program)
    assert problems
    assert any(p.error and (p.line, p.column) == (line, column) and message in p.message for p in problems), problems


@pytest.mark.parametrize("program", RIGHT, ids=range(len(RIGHT)))
def test_right(program: str) -> None:
    assert check(program) == []


def test_all_errors_are_told_in_the_order_of_their_lines() -> None:
    problems = check("x = foo(1)\ny = z\nbar()\nmovej()")
    assert [problem.line for problem in problems] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("program", "since"),
    [
        ("x = get_mass_matrix()", ("5.22.9", "5.23.0", "10.9.0", "10.10.0")),
        ("x = get_jacobian()", ("5.22.0", "5.23.0", "10.9.9", "10.10.0")),
        ("direct_torque([0,0,0,0,0,0])", ("5.22.9", "5.23.0", "3.15.0", "10.10.0")),
        ("direct_torque([0,0,0,0,0,0], viscous_scale=[1,1,1,1,1,1])", ("5.25.0", "5.25.1", "10.12.0", "10.12.1")),
        ("x = get_inverse_kin_has_solution(p[0,0,0,0,0,0])", ("3.14.9", "3.15.0", "5.9.0", "5.10.0")),
        ("x = tool_contact()", ("3.15.9", "5.4.0", "5.3.9", "10.0.0")),
        ("x = get_tcp_offset()", ("3.9.0", "3.10.0", "3.4.0", "5.0.0")),
        ("optimovej([0,0,0,0,0,0])", ("5.20.0", "5.21.0", "10.7.0", "10.8.0")),
        ("force_mode_set_damping(0.5)", ("3.4.0", "3.5.0", "3.0.0", "5.0.0")),
        ("ft_rtde_input_enable(True)", ("3.14.0", "3.14.1", "5.9.0", "5.9.1")),
    ],
)
def test_versions(program: str, since: tuple[str, str, str, str]) -> None:
    """In turn: a version without it, the first with it, and the same of another line."""
    for one, there in zip(since, (False, True, False, True), strict=True):
        problems = check(program, version(one))
        assert (not problems) == there, (one, problems)
        if not there:
            assert f"PolyScope {one}" in problems[0].message


def test_a_version_is_three_numbers() -> None:
    assert version("5.26") == (5, 26, 0)
    assert version("10.12.1.77") == (10, 12, 1)
    for wrong in ("5", "a.b", "7.1", "5.x.1", ""):
        with pytest.raises(InvalidValue):
            version(wrong)
    assert exists("", (3, 4, 0))


def test_functions_that_are_not_modelled_are_a_warning() -> None:
    (problem,) = check("x = 1\nmodbus_add_signal(1)")
    assert not problem.error
    assert problem.line == 2
    assert not NOT_MODELLED & set(builtins())


def test_the_package_knows_no_socket_and_no_clock() -> None:
    """What is outside comes through the host; layers (test_layers.py) keep plants away."""
    import ast

    files = sorted(Path(str(tangere.script.__file__)).parent.glob("*.py"))
    assert len(files) > 12
    for file in files:
        names = {
            alias.name.split(".")[0] for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Import) for alias in node.names
        } | {
            str(node.module).split(".")[0] for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.ImportFrom)
        }  # fmt: skip
        clock = {"time"} if file.stem != "cost" else set()  # what measures itself
        assert not names & ({"socket", "select", "asyncio", "threading", "subprocess"} | clock), file.name


def test_an_error_can_be_sent_to_another_process() -> None:
    import pickle

    again = pickle.loads(pickle.dumps(ScriptError("wrong", 3, 4)))
    assert (again.line, again.column, str(again)) == (3, 4, "line 3, column 4: wrong")


def _command(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tangere", "script", *words]
    return subprocess.run(command, capture_output=True, text=True, input=text, check=False)


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "a.script"
    file.write_text("def a():\n  x = 1\nend\n")
    good = _command("check", str(file))
    assert (good.returncode, good.stderr) == (0, "")
    assert "nothing wrong" in good.stdout
    file.write_text("def a():\n  x = foo()\n  modbus_add_signal(1)\nend\n")
    bad = _command("check", str(file))
    assert bad.returncode == 1
    assert f"{file}:2:7: error: there is no function 'foo'" in bad.stdout
    assert "1 error, 1 warning" in bad.stdout
    found = json.loads(_command("check", str(file), "--json").stdout)
    assert [(one["line"], one["column"], one["error"]) for one in found] == [(2, 7, True), (3, 3, False)]
    assert _command("check", "-", text="x = get_mass_matrix()").returncode == 0
    assert _command("check", "-", "--polyscope", "5.4.0", text="x = get_mass_matrix()").returncode == 1


@pytest.mark.parametrize("words", [("check",), ("check", "nowhere.script"), ("check", "-", "--polyscope", "7.0"), ()])
def test_wrong_usage(words: tuple[str, ...]) -> None:
    done = _command(*words, text="")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
