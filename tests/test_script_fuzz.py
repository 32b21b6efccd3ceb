"""Nonsense: the parser answers every text with a tree or an error in its place, and what runs ends or goes on.

2 000 inputs here, 100 000 with TANGERE_SOAK=1.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from script_programs import Bench

from tangere.script.compiler import load
from tangere.script.parser import parse
from tangere.script.resolve import builtins, check
from tangere.script.syntax import KEYWORDS, ScriptError

COUNT = 100_000 if os.environ.get("TANGERE_SOAK") else 2_000
HANGS = 20  # s for one input, ten thousand times what the longest takes: a hang, however slow the machine

SEEDS = [
    "def f(a, b=2):\n  local c = [1, 2.5, a]\n  while c[0] < 10 and not False:\n    c[0] = c[0] + 1\n    sync()\n  end\n"
    "  return c[b - 1] * 2\nend\nx = f(3, b=1)\n",
    'thread t():\n  enter_critical\n  textmsg("hello ", p[0,1,2,3,4,5])\n  exit_critical\nend\nh = run t()\njoin h\nkill h\n',
    "if x > 1:\n  movej([0,0,0,0,0,0], a=1.4, v=1.05)\nelif x == 0 xor True:\n  servoj(q)\nelse:\n  halt\nend\n",
    "s = struct(a=1, b=[1,2])\ns.b[1] = -s.a / 3 % 2\nglobal g = 0x1F\n$ 1 \"label\"\ndigital_out[2] = True\nl.append(3)\n",
    "m = [[1,2],[3,4]]\nm[0,1] = inv(m)[1][0] + 1e-3\nx = str_cat('a', to_str(m)) y = 2 # comment\nreturn\n",
]
WORDS = [
    *sorted(KEYWORDS), *"()[],:.=+-*/%<>;#$\"'\n", "==", "!=", "<=", ">=", "p[", "0", "1", "2.5", "1e9", "0x", ".", "x",
    "y", "é", "\x00", "\t", "\r\n", "global x = ", "sync()", "x[0]", "[1,2]", "sin(", "end\n", "end\nend\n",
    *sorted(builtins())[::9],
]  # fmt: skip


def texts(count: int, seed: int) -> Iterator[str]:
    """Broken programs, words in any order, characters in any order."""
    dice = random.Random(seed)
    for k in range(count):
        kind = k % 5
        if kind == 0:
            yield "".join(chr(dice.randrange(1, 0x2FF)) for _ in range(dice.randrange(200)))
        elif kind == 1:
            yield " ".join(dice.choice(WORDS) for _ in range(dice.randrange(60)))
        elif kind == 2:
            one = list(dice.choice(SEEDS))
            for _ in range(dice.randrange(1, 12)):
                place = dice.randrange(len(one)) if one else 0
                if dice.random() < 0.4:
                    del one[place : place + dice.randrange(1, 9)]
                elif dice.random() < 0.5:
                    one.insert(place, dice.choice(WORDS))
                else:
                    one[place:place] = dice.choice(SEEDS)[dice.randrange(50) :][: dice.randrange(40)]
            yield "".join(one)
        elif kind == 3:
            part = dice.choice(["(", "[", "-", "not ", "if x:\n", "while x:\n", "def f():\n", "x[", "1+", "f(", "x.", '"'])
            yield part * dice.choice((3, 30, 70, 300, 3000))
        else:
            yield program(dice)


def value(dice: random.Random, deep: int) -> str:
    """Any expression."""
    if deep == 0 or dice.random() < 0.3:
        return dice.choice(["x", "y", "z", "1", "0", "-2", "0.5", "True", "False", '"a"', "[1, 2]", "p[0,0,0,0,0,0]", "PI"])
    a, b = value(dice, deep - 1), value(dice, deep - 1)
    forms = ["({a} {o} {b})", "{a}[{b}]", "[{a}, {b}]", "not {a}", "-{a}", "f({a}, {b})", "norm({a})", "str_cat({a}, {b})",
             "length({a})", "struct(a={a}, b={b})", "({a}).a", "pow({a}, {b})", "to_str({a})", "pose_trans({a}, {b})",
             "get_forward_kin({a})", "g({a})"]  # fmt: skip
    operator = dice.choice(["+", "-", "*", "/", "%", "<", "==", "!=", ">=", "and", "or", "xor"])
    return dice.choice(forms).format(a=a, b=b, o=operator)


def statements(dice: random.Random, deep: int, loop: bool) -> str:
    """Some statements of any kind."""
    found = []
    for _ in range(dice.randrange(1, 5)):
        a, b = value(dice, 3), value(dice, 2)
        name = dice.choice("xyz")
        kind = dice.randrange(12)
        if kind < 5:
            found.append(f"{name} = {a}")
        elif kind == 5:
            found.append(f"{name}[{b}] = {a}")
        elif kind == 6 and deep:
            inner, other = (statements(dice, deep - 1, loop) for _ in range(2))
            found.append(f"if {a}:\n{inner}\nelif {b}:\n{other}\nelse:\n{inner}\nend")
        elif kind == 7 and deep:
            found.append(f"while {a}:\n{statements(dice, deep - 1, True)}\nend")
        elif kind == 8:
            found.append(dice.choice(["sync()", "sleep(0.004)", "h = run t()", "join h", "kill h", "textmsg(x)", "x.append(y)"]))
        elif kind == 9 and loop:
            found.append(dice.choice(["break", "continue"]))
        elif kind == 10:
            found.append(dice.choice(["enter_critical", "exit_critical", f"movej({a})", f"servoj({a})", f"speedj({a}, 1, 0.002)"]))
        else:
            found.append(a)
    return "\n".join(found)


def program(dice: random.Random) -> str:
    """A program that is right, whatever comes of it."""
    body = statements(dice, 3, False)
    return (
        f"x = 1\ny = [1, 2, 3]\nz = 0.5\nh = 0\ndef f(a, b):\n{statements(dice, 1, False)}\n return a\nend\n"
        f"def g(a):\n sync()\n return a\nend\nthread t():\n{statements(dice, 2, False)}\nend\n{body}\n"
    )


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    """Raise where it takes longer."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def failure(read: Callable[[str], object], text: str) -> ScriptError | None:
    """Why a text is refused; None where it is not."""
    try:
        read(text)
    except ScriptError as problem:
        return problem
    return None


def test_every_text_is_read_or_refused() -> None:
    read = refused = 0
    for text in texts(COUNT, seed=1):
        with alarm(HANGS):
            problem = failure(parse, text)
        if problem is None:
            read += 1
            continue
        refused += 1
        assert 1 <= problem.line <= text.count("\n") + 1, (text, problem)
        assert problem.column >= 1
        assert problem.message
    assert read > COUNT // 40  # both ways are taken
    assert refused > COUNT // 3


def test_what_passes_the_check_compiles_and_runs() -> None:
    """A text without errors is a program; run for some frames it ends, fails in a line, or goes on: nothing else."""
    ran = 0
    ends = set()
    for text in texts(COUNT, seed=2):
        with alarm(HANGS):
            problems = check(text)
            if any(problem.error for problem in problems):
                continue
            problem = failure(load, text)
            if problem is not None:
                assert "nested too deep" in problem.message  # Python's own limits, which check does not know
                continue
            bench = Bench(text).run(20)
            ended = bench.machine.ended
            assert ended is None or not ended.failed or ended.message
            ends.add("running" if ended is None else ended.how)
            ran += 1
    assert ran > COUNT // 6
    assert {"running", "finished", "exception"} <= ends <= {"running", "finished", "exception", "halted", "protective stop"}


def test_the_alarm_rings() -> None:
    import time

    import pytest

    with pytest.raises(TimeoutError), alarm(1):
        time.sleep(3)
