"""Threads, frames and critical sections: who runs when. `said` is what the threads say, frame by frame."""

from __future__ import annotations

from itertools import pairwise

import pytest
from script_programs import Bench, outcome

from tangere.errors import InvalidValue
from tangere.script.compiler import load
from tangere.script.machine import SLICE

LOUD = "thread t(n):\n while True:\n  textmsg(n)\n  sync()\n end\nend\n"

# program, what was said in the first frames, each as one text
ORDER = [
    ('textmsg("a")\nsync()\ntextmsg("b")', ["a", "b"]),
    ('textmsg("a")\nsync()\nsync()\ntextmsg("b")', ["a", "", "b"]),
    ('textmsg("a")\nsleep(0.002)\ntextmsg("b")', ["a", "b"]),
    ('textmsg("a")\nsleep(0.006)\ntextmsg("b")', ["a", "", "", "b"]),
    ('textmsg("a")\nsleep(0)\ntextmsg("b")', ["a", "b"]),
    ('textmsg("a")\nsleep(0.003)\ntextmsg("b")', ["a", "", "b"]),
    (LOUD + 'h = run t(1)\ntextmsg("m")\nsync()\ntextmsg("m")\nsync()', ["m1", "m1", ""]),
    (LOUD + 'run t(1)\nrun t(2)\ntextmsg("m")\nsync()\ntextmsg("m")\nsync()\nsync()', ["m12", "m12", "12"]),
    (LOUD + 'run t(1)\nsync()\nrun t(2)\nsync()\nsync()', ["1", "12", "12"]),
    (LOUD + "a = run t(1)\nb = run t(2)\nsync()\nkill a\nsync()\nkill b\nsync()", ["12", "2", ""]),
    (LOUD + "a = run t(1)\nkill a\nsync()", [""]),
    (LOUD + "a = run t(1)\nkill a\nb = run t(2)\nsync()", ["2"]),
    ("thread t():\n textmsg(1)\nend\nrun t()\nsync()\nsync()", ["1", ""]),
    ("thread t():\n textmsg(1)\nend\nh = run t()\njoin h\ntextmsg(2)", ["1", "2"]),
    ("thread t():\n sync()\n textmsg(1)\nend\nh = run t()\njoin h\ntextmsg(2)", ["", "1", "2"]),
    ("thread t():\n textmsg(1)\nend\nh = run t()\nsync()\njoin h\ntextmsg(2)", ["1", "2"]),
    ("join 0\ntextmsg(1)", ["1"]),
    ("kill 0\ntextmsg(1)", ["1"]),
    ("kill 99\njoin 99\ntextmsg(1)", ["1"]),
    ("thread a():\n textmsg(1)\n run b()\n textmsg(2)\n sync()\nend\nthread b():\n textmsg(3)\n sync()\nend\n"
     "run a()\nsync()", ["123"]),
    ("thread a():\n sync()\n kill c\n textmsg(1)\nend\nthread b():\n while True:\n  textmsg(2)\n  sync()\n end\nend\n"
     "h = run a()\nc = run b()\nsync()\nsync()\nsync()", ["2", "1", ""]),
    ("thread b():\n while True:\n  textmsg(2)\n  sync()\n end\nend\nthread a():\n sync()\n kill c\n textmsg(1)\nend\n"
     "c = run b()\nh = run a()\nsync()\nsync()\nsync()", ["2", "21", ""]),
    ("thread a():\n textmsg(1)\n kill h\n textmsg(2)\nend\nh = run a()\nsync()\nsync()", ["1", ""]),
    ("thread a():\n def f():\n  kill h\n end\n f()\n textmsg(2)\nend\nh = run a()\nsync()\nsync()\ntextmsg(3)", ["", "", "3"]),
    ("thread a():\n halt\nend\nrun a()\ntextmsg(1)\nsync()\ntextmsg(2)", ["1"]),
    ("thread a():\n return 5\nend\nrun a()\ntextmsg(1)\nsync()\ntextmsg(2)", ["1", "2"]),
    ("thread a():\n while True:\n  textmsg(1)\n  sync()\n end\nend\nrun a()\ntextmsg(0)", ["0"]),
    ("enter_critical\ntextmsg(1)\nexit_critical\nsync()\ntextmsg(2)", ["1", "2"]),
    ("thread a():\n textmsg(2)\nend\nrun a()\nenter_critical\ntextmsg(1)\nsync()\ntextmsg(3)\nexit_critical", ["12", "3"]),
    ("exit_critical\ntextmsg(1)", ["1"]),
    ('popup("hello")\ntextmsg(1)', ["1"]),
    ('popup("hello", blocking=True)\ntextmsg(1)', ["", "1"]),
    ("x = get_target_joint_positions()\nmovej(x)\ntextmsg(1)", ["", "1"]),
    ("x = get_target_joint_positions()\nservoj(x)\ntextmsg(1)", ["", "1"]),
    ("x = get_target_joint_positions()\nservoj(x, t=0.008)\ntextmsg(1)", ["", "", "", "", "1"]),
    ("speedj([0,0,0,0,0,0])\ntextmsg(1)", ["", "1"]),
    ("stopj(2)\ntextmsg(1)", ["", "1"]),
    ("stopl(2)\ntextmsg(1)", ["", "1"]),
    ("direct_torque([0,0,0,0,0,0])\ntextmsg(1)", ["", "1"]),
    ('x = socket_open("127.0.0.1", 1)\ntextmsg(x)', ["", "False"]),
]


def frames(program: str, count: int) -> list[str]:
    bench, found = Bench(program), []
    for _ in range(count):
        before = len(bench.said)
        bench.frame()
        found.append("".join(bench.said[before:]))
    assert bench.machine.ended is None or not bench.machine.ended.failed, bench.machine.ended
    return found


@pytest.mark.parametrize(("program", "wanted"), ORDER, ids=range(len(ORDER)))
def test_who_runs_when(program: str, wanted: list[str]) -> None:
    assert frames(program, len(wanted)) == wanted


RESULTS = [
    ("x = 0\nthread t():\n while True:\n  x = x + 1\n  sync()\n end\nend\nrun t()\nsleep(0.1)", 50),
    ("x = 0\nthread t():\n x = x + 1\nend\ni = 0\nwhile i < 10:\n h = run t()\n join h\n i = i + 1\nend", 10),
    ("thread t():\n sync()\nend\nx = run t()", 2),
    ("thread t():\n sync()\nend\na = run t()\nx = run t()", 3),
    ("x = 0\nthread t(a, b):\n x = a - b\nend\nh = run t(5, 3)\njoin h", 2),
    ("x = 0\nthread t(a, b=4):\n x = a - b\nend\nh = run t(5)\njoin h", 1),
    ("x = [0]\nthread t():\n x[0] = x[0] + 1\n sync()\n x[0] = x[0] + 1\nend\na = run t()\nb = run t()\njoin a\njoin b", (4,)),
    ("x = 0\nthread t():\n while True:\n  x = x + 1\n end\nend\nrun t()\nsync()\n", SLICE),
    ("x = 0\ny = 0\nthread t():\n while True:\n  y = y + 1\n  sync()\n end\nend\nrun t()\n"
     f"while x < {4 * SLICE}:\n x = x + 1\nend\nx = y", 3),
    (f"x = 0\nenter_critical\nwhile x < {4 * SLICE}:\n x = x + 1\nend\nexit_critical", 4 * SLICE),
    ("x = 0\ni = 0\nthread t():\n while True:\n  x = x + 1\n  sync()\n end\nend\nrun t()\nenter_critical\n"
     f"while i < {4 * SLICE}:\n i = i + 1\nend\nexit_critical", 0),
    ("x = 0\nenter_critical\nenter_critical\nexit_critical\ni = 0\nthread t():\n x = x + 1\nend\nrun t()\n"
     f"while i < {2 * SLICE}:\n i = i + 1\nend\nexit_critical", 0),
]


@pytest.mark.parametrize(("program", "wanted"), RESULTS, ids=range(len(RESULTS)))
def test_the_result(program: str, wanted: object) -> None:
    assert outcome(program) == wanted


def test_a_loop_that_never_waits_loses_its_slice() -> None:
    bench = Bench("x = 0\nwhile True:\n x = x + 1\nend")
    bench.run(1)
    assert bench["x"] == SLICE
    bench.run(9)
    assert 10 * SLICE <= bench["x"] < 10 * SLICE + 10  # the loop in which it was taken off goes on


def test_a_loop_that_only_goes_on_loses_its_slice_too() -> None:
    bench = Bench("while True:\n continue\nend").run(5)
    assert bench.machine.running


def test_calls_without_end_lose_their_slice() -> None:
    bench = Bench("def f(n):\n if n > 0:\n  f(n - 1)\n  f(n - 1)\n end\nend\nf(40)").run(20)
    assert bench.machine.running


def test_two_threads_cannot_move_the_arm() -> None:
    program = "thread t():\n while True:\n  servoj(get_target_joint_positions())\n end\nend\nrun t()\nspeedj([0,0,0,0,0,0], 1, 1)"
    ended = Bench(program).run().machine.ended
    assert ended is not None
    assert "another thread already controls the robot" in ended.message
    assert ended.line == 3


def test_a_thread_that_is_killed_in_a_move_leaves_the_arm_braking() -> None:
    program = "thread t():\n speedj([1,0,0,0,0,0], 10, 9)\nend\nh = run t()\nsleep(0.5)\nkill h\nsleep(0.5)\nx = get_target_joint_speeds()"
    bench = Bench(program).run()
    assert bench["x"] == (0.0,) * 6
    speeds = [b[0] - a[0] for a, b in pairwise(bench.targets)]
    assert max(speeds) > 1.9e-3
    assert max(abs(b - a) for a, b in pairwise(speeds)) < 15.0 * 0.002**2 * 1.01


def test_a_secondary_program_runs_beside_another() -> None:
    bench = Bench("x = 0\nwhile True:\n x = x + 1\n sync()\nend")
    bench.run(3)
    ended = bench.machine.beside(load("sec s():\n set_digital_out(3, True)\n write_output_integer_register(1, 7)\nend"))
    assert ended.how == "finished"
    assert bench.host.signals.digital_out[3]
    assert bench.host.registers.out_int[1] == 7
    bench.run(3)
    assert bench["x"] == 6
    assert bench.machine.beside(load("sec s():\n x = 1 / 0\nend")).how == "exception"
    assert bench.machine.running
    assert "within a frame" in bench.machine.beside(load("sec s():\n while True:\n  y = 1\n end\nend")).message
    with pytest.raises(InvalidValue, match="no secondary"):
        bench.machine.beside(load("x = 1"))
