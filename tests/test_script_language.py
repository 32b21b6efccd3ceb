"""URScript as a language: each program leaves its result in `x`."""

from __future__ import annotations

from math import pi

import pytest
from script_programs import Bench, outcome

from tangere.script.compiler import load

ARITHMETIC = [
    ("x = 1 + 2", 3),
    ("x = 1 - 2 - 3", -4),
    ("x = 2 * 3 + 4", 10),
    ("x = 2 + 3 * 4", 14),
    ("x = (2 + 3) * 4", 20),
    ("x = 7 / 2", 3.5),
    ("x = 6 / 3", 2.0),
    ("x = 8 / 2 / 2", 2.0),
    ("x = 7 % 3", 1),
    ("x = 2 * 7 % 4", 2),
    ("x = 7.5 % 2", 1.5),
    ("x = -3", -3),
    ("x = --3", 3),
    ("x = -+-3", 3),
    ("x = 2 * -3", -6),
    ("x = -2 - -3", 1),
    ("x = .5", 0.5),
    ("x = 5.", 5.0),
    ("x = 1e3", 1000.0),
    ("x = 1.5E-2", 0.015),
    ("x = 0x1F", 31),
    ("x = 0b101", 5),
    ("x = 1 + 2.5", 3.5),
    ("x = 3 * 0.5", 1.5),
    ("x = 1 - 0.5", 0.5),
    ("x = PI", pi),
    ("x = 2 * PI / 4", pi / 2),
    ("x = 1000000 * 1000000", 1e12),
    ("x = 46340 * 46340", 2147395600),
    ("x = True", True),
    ("x = False", False),
]

LOGIC = [
    ("x = 1 < 2", True),
    ("x = 2 < 1", False),
    ("x = 2 <= 2", True),
    ("x = 2 >= 3", False),
    ("x = 3 > 2", True),
    ("x = 1 == 1.0", True),
    ("x = 1 != 1", False),
    ('x = "a" == "a"', True),
    ('x = "a" != "b"', True),
    ('x = "1" == 1', False),
    ("x = [1, 2] == [1, 2]", True),
    ("x = [1, 2] == [1, 3]", False),
    ("x = [1, 2] != [1, 2, 3]", True),
    ("x = p[1,2,3,4,5,6] == p[1,2,3,4,5,6]", True),
    ("x = not True", False),
    ("x = not not True", True),
    ("x = not 1 == 2", True),
    ("x = True and False", False),
    ("x = True or False", True),
    ("x = True xor True", False),
    ("x = True xor False", True),
    ("x = False or True and False", False),
    ("x = not False and True", True),
    ("x = True or False and False", True),
    ("x = 1 > 2 or 3 != 4", True),
    ("x = 1 > 2 or 3 != 4 xor 5 < -6", True),
    ("x = not 42 >= 87 and 87 <= 42", False),
    ("x = 1 + 1 == 2 and 2 * 2 == 4", True),
    ("x = False and 1 / 0 == 1", False),
    ("x = True or 1 / 0 == 1", True),
    ("x = (1 < 2) == True", True),
    ("x = False or\n True", True),
    ("x = True and\n # a comment\n True", True),
]

LISTS = [
    ("x = [1, 2, 3]", (1, 2, 3)),
    ("x = []", ()),
    ("x = [1, 2, 3][1]", 2),
    ("a = [1, 2, 3]\nx = a[2]", 3),
    ("a = [1, 2, 3]\ni = 1\nx = a[i]", 2),
    ("a = [1, 2, 3]\ni = 1\nx = a[i + 1]", 3),
    ("a = [1, 2, 3]\nx = a[2.0]", 3),
    ("a = [1, 2, 3]\ni = 2.0\nx = a[i]", 3),
    ("x = [1, 2]\nx[0] = 5", (5, 2)),
    ("x = [1, 2]\ni = 1\nx[i] = x[i] + 5", (1, 7)),
    ("a = [1, 2]\nb = a\nb[0] = 9\nx = a", (1, 2)),
    ("a = [1, 2]\nb = a\na[0] = 9\nx = b", (1, 2)),
    ("def f(l):\n l[0] = 9\n return l\nend\na = [1, 2]\nb = f(a)\nx = [a[0], b[0]]", (1, 9)),
    ("x = [1, 2] + [3, 4]", (4, 6)),
    ("x = [1, 2] - [3, 5]", (-2, -3)),
    ("x = [1, 2] * [3, 4]", (3, 8)),
    ("x = [1, 2] / [2, 4]", (0.5, 0.5)),
    ("x = [1, 2] + 1", (2, 3)),
    ("x = 1 + [1, 2]", (2, 3)),
    ("x = [1, 2] - 1", (0, 1)),
    ("x = 1 - [1, 2]", (0, -1)),
    ("x = [1, 2] * 2", (2, 4)),
    ("x = 2 * [1, 2]", (2, 4)),
    ("x = [1, 2] / 2", (0.5, 1.0)),
    ("x = 2 / [1, 2]", (2.0, 1.0)),
    ("x = [5, 7] % 4", (1, 3)),
    ("x = -[1, -2]", (-1, 2)),
    ("x = [[1, 2], [3, 4]][1]", (3, 4)),
    ("x = [[1, 2], [3, 4]][1][0]", 3),
    ("x = [[1, 2], [3, 4]][1, 0]", 3),
    ("m = [[1, 2], [3, 4]]\nm[0, 1] = 7\nx = m", ((1, 7), (3, 4))),
    ("m = [[1, 2], [3, 4]]\nm[0][1] = 7\nx = m", ((1, 7), (3, 4))),
    ("m = [[1, 2], [3, 4]]\nm[1] = [5, 6]\nx = m", ((1, 2), (5, 6))),
    ("x = [[1, 2], [3, 4]] * [[0, 1], [1, 0]]", ((2, 1), (4, 3))),
    ("x = [[1, 2], [3, 4]] * [1, 1]", (3, 7)),
    ("x = [[1, 2], [3, 4]] * 2", ((2, 4), (6, 8))),
    ("x = [[1, 2], [3, 4]] + [[1, 1], [1, 1]]", ((2, 3), (4, 5))),
    ("x = [[1, 2, 3]] * [[1], [2], [3]]", ((14,),)),
    ("a = [[1, 2], [3, 4]]\nb = a\nb[0, 0] = 9\nx = a[0, 0]", 1),
    ("x = [1, True, \"a\"][1]", True),
    ("x = [1 + 1,\n 2 * 2]", (2, 4)),
    ("a = [0, 0]\ni = 0\nwhile i < 2:\n a[i] = i * 10\n i = i + 1\nend\nx = a", (0, 10)),
    ("x = [1]\nx.append(2)", (1, 2)),
    ("x = [1, 3]\nx.insert(1, 2)", (1, 2, 3)),
    ("x = [1]\nx.extend([2, 3])", (1, 2, 3)),
    ("x = [1, 2, 3]\nx.remove(0)", (2, 3)),
    ("x = [1, 2]\nx.clear()", ()),
    ("a = [1, 2]\nx = a.length()", 2),
    ("a = [1, 2, 3, 4]\nx = a.slice(1, 3)", (2, 3)),
    ("a = [[1], [2]]\na[0].append(5)\nx = a", ((1, 5), (2,))),
    ("s = struct(l=[1])\ns.l.append(2)\nx = s.l", (1, 2)),
    ("a = [1]\nb = a\nb.append(2)\nx = a", (1,)),
    ("a = [0]\ndef f():\n a.append(1)\nend\nf()\nx = a", (0, 1)),
    ("p = [4, 5]\nx = p[1]", 5),
    ("p = [4, 5]\np[0] = 1\nx = p", (1, 5)),
    ("p = [[1, 2], [3, 4]]\nx = p[1, 1]", 4),
    ("x = p[1, 2, 3, 4, 5, 6]", (1, 2, 3, 4, 5, 6)),
    ("a = p[1, 2, 3, 4, 5, 6]\nx = a[5]", 6),
    ("a = p[1, 2, 3, 4, 5, 6]\na[2] = 9\nx = a", (1, 2, 9, 4, 5, 6)),
    ("p = p[1, 2, 3, 4, 5, 6]\nx = p[0]", 1),
    ("i = 0\ndef f():\n i = i + 1\n return 0\nend\na = [[1, 2], [3, 4]]\na[f()][f()] = 7\nx = [a[0][0], i]", (7, 2)),
]

TEXTS = [
    ('x = "abc"', "abc"),
    ("x = 'abc'", "abc"),
    ('x = "it\'s"', "it's"),
    ("x = ''", ""),
    ('x = "a # b"', "a # b"),
    ('x = str_cat("a", "b")', "ab"),
    ('x = str_cat("a", 1)', "a1"),
    ('x = str_cat("a", 1.5)', "a1.5"),
    ('x = str_cat(1, [1, 2.5])', "1[1, 2.5]"),
    ('x = str_cat("p: ", p[1,2,3,4,5,6])', "p: p[1, 2, 3, 4, 5, 6]"),
    ('x = str_cat("", True)', "True"),
    ("x = to_str(0.1)", "0.1"),
    ("x = to_str(1000000)", "1000000"),
    ("x = to_str(1000000.0)", "1e+06"),
    ("x = to_str(-2)", "-2"),
    ('x = to_str([1, [2]])', "[1, [2]]"),
    ('x = to_str(struct(a=1))', "{a=1}"),
    ('x = to_num("12")', 12),
    ('x = to_num("-1.5")', -1.5),
    ('x = to_num("1e3")', 1000.0),
    ('x = str_len("abc")', 3),
    ('x = length("abc")', 3),
    ('x = str_at("abc", 1)', "b"),
    ('x = str_sub("abcdef", 2)', "cdef"),
    ('x = str_sub("abcdef", 2, 3)', "cde"),
    ('x = str_sub("abc", 1, 9)', "bc"),
    ('x = str_find("abcabc", "c")', 2),
    ('x = str_find("abcabc", "c", 3)', 5),
    ('x = str_find("abc", "z")', -1),
    ('x = str_empty("")', True),
    ('x = str_empty("a")', False),
]

FLOW = [
    ("x = 0\nif True:\n x = 1\nend", 1),
    ("x = 0\nif False:\n x = 1\nend", 0),
    ("if 1 > 2:\n x = 1\nelse:\n x = 2\nend", 2),
    ("if False:\n x = 1\nelif True:\n x = 2\nelse:\n x = 3\nend", 2),
    ("if False:\n x = 1\nelif False:\n x = 2\nelif True:\n x = 3\nend", 3),
    ("if True: x = 1 else: x = 2 end", 1),
    ("x = 5 if x == 5: x = 6 end", 6),
    ("x = 0\nwhile x < 10:\n x = x + 1\nend", 10),
    ("x = 0\nwhile x < 1000:\n x = x + 1\nend", 1000),
    ("x = 0\nwhile True:\n x = x + 1\n if x == 5:\n  break\n end\nend", 5),
    ("x = 0\ni = 0\nwhile i < 10:\n i = i + 1\n if i % 2 == 0:\n  continue\n end\n x = x + i\nend", 25),
    ("x = 0\ni = 0\nwhile i < 3:\n j = 0\n while j < 4:\n  x = x + 1\n  j = j + 1\n end\n i = i + 1\nend", 12),
    ("x = 0\ni = 0\nwhile i < 3:\n while True:\n  break\n end\n x = x + 1\n i = i + 1\nend", 3),
    ("x = 1\nwhile False:\n x = 2\nend", 1),
    ("x = 1\nhalt\nx = 2", 1),
    ("x = 1\nreturn\nx = 2", 1),
    ("x = 1\nif True:\n halt\nend\nx = 2", 1),
    ("def f():\n halt\nend\nx = 1\nf()\nx = 2", 1),
    ("x = 1\npass", 1),
    ("if True:\n pass\nend\nx = 3", 3),
    ("if True:\nend\nx = 3", 3),
    ("x = 0\nwhile x < 3: x = x + 1 end", 3),
    ("x = 1\n$ 1 \"label\"\nx = x + 1", 2),
    ("x = 1 # comment = 2", 1),
    ("x = # comment\n7", 7),
    ("x = # comment\n7    global y = 3\nx = x + y", 10),
    ("x = 1\n-2\nx = x + 0", 1),
    ("x = 3\n[1, 2]\n", 3),
    ("x = (1 +\n 2)", 3),
    ("x = 2; y = 3; x = x * y", 6),
    ("\ufeffx = 1", 1),
    ("x = 1\r\nx = x + 1\r\n", 2),
]

FUNCTIONS = [
    ("def f():\n return 3\nend\nx = f()", 3),
    ("def f(a):\n return a * 2\nend\nx = f(4)", 8),
    ("def f(a, b):\n return a - b\nend\nx = f(5, 3)", 2),
    ("def f(a, b):\n return a - b\nend\nx = f(b=5, a=3)", -2),
    ("def f(a, b=7):\n return a + b\nend\nx = f(1)", 8),
    ("def f(a, b=7):\n return a + b\nend\nx = f(1, 2)", 3),
    ("def f(a, b=7, c=1):\n return a + b * c\nend\nx = f(1, c=2)", 15),
    ("y = 5\ndef f(a=y):\n return a\nend\ny = 6\nx = f()", 6),
    ("def f(a=[1, 2]):\n a[0] = a[0] + 1\n return a\nend\nx = f()\nx = f()", (2, 2)),
    ("def f():\n return\nend\nx = f()", 0),
    ("def f():\n x = 3\nend\nx = 1\nf()", 3),
    ("def f():\n y = 3\nend\nx = 1\nf()", 1),
    ("x = f()\ndef f():\n return 4\nend", 4),
    ("def f():\n return g() + 1\nend\ndef g():\n return 1\nend\nx = f()", 2),
    ("def f():\n def g():\n  return 5\n end\n return g()\nend\nx = f()", 5),
    ("def f(n):\n if n < 2:\n  return 1\n end\n return n * f(n - 1)\nend\nx = f(5)", 120),
    ("def f(n):\n if n < 2:\n  return n\n end\n return f(n - 1) + f(n - 2)\nend\nx = f(12)", 144),
    ("def even(n):\n if n == 0:\n  return True\n end\n return odd(n - 1)\nend\n"
     "def odd(n):\n if n == 0:\n  return False\n end\n return even(n - 1)\nend\nx = even(10)", True),
    ("def f():\n i = 0\n while i < 7:\n  i = i + 1\n end\n return i\nend\nx = f()", 7),
    ("def f():\n sync()\n return 8\nend\nx = f() + f()", 16),
    ("def f():\n sync()\n return True\nend\nx = f() and not f()", False),
    ("def f(a):\n sync()\n return a\nend\nx = [f(1), f(2)]", (1, 2)),
    ("def f(a):\n sync()\n return a\nend\na = [3, 4, 5]\nx = a[f(1)]", 4),
    ("def f(a):\n sync()\n return a\nend\nx = f(f(f(2)))", 2),
    ("def f(a):\n sync()\n return a\nend\nx = 0\nwhile x < f(3):\n x = x + 1\nend", 3),
    ("def f(a):\n sync()\n return a\nend\nif f(0) == 1:\n x = 1\nelif f(1) == 1:\n x = 2\nend", 2),
    ("def f(type, async, list):\n return type + async + list\nend\nx = f(1, 2, 3)", 6),
    ("def sin(a):\n return 42\nend\nx = sin(0)", 42),
    ("def program():\n x = 3\nend", 3),
    ("def program():\n def f():\n  return 2\n end\n x = f()\nend", 2),
    ("def f(a):\n a = a + 1\n return a\nend\ny = 1\nx = f(y) + y", 3),
]

SCOPE = [
    ("x = 1\ndef f():\n x = 2\nend\nf()", 2),
    ("x = 1\ndef f():\n local x = 2\nend\nf()", 1),
    ("x = 1\ndef f():\n local x = 2\n x = 3\nend\nf()", 1),
    ("x = 1\ndef f(x):\n x = 2\nend\nf(5)", 1),
    ("def f():\n global x = 2\nend\nf()", 2),
    ("def f():\n global x = 2\nend\ndef g():\n x = x + 1\nend\nf()\ng()", 3),
    ("def f():\n y = 2\n return y\nend\ny = 5\nx = f() + y", 4),
    ("def f():\n y = 2\nend\ndef g():\n y = 3\n return y\nend\nf()\nx = g()", 3),
    ("def f():\n local y = 2\n return y\nend\ny = 5\nx = f() + y", 7),
    ("x = 1\nif True:\n x = 2\n y = 3\nend\nx = x + y", 5),
    ("global x = 1\nx = x + 1", 2),
    ("global x\nx = 4", 4),
    ("local x = 4", 4),
    ("def f():\n return x\nend\nx = 6\nx = f()", 6),
    ("x = 0\ndef f():\n x = x + 1\nend\nf()\nf()\nf()", 3),
    ("x = [1, 2]\ndef f():\n x[0] = 9\nend\nf()", (9, 2)),
    ("x = [1, 2]\ndef f():\n local x = [5, 6]\n x[0] = 9\nend\nf()", (1, 2)),
    ("x = 1\nthread t():\n x = 2\nend\nh = run t()\njoin h", 2),
    ("x = 1\nthread t():\n local x = 2\n sync()\nend\nh = run t()\njoin h", 1),
    ("x = 1\ndef f():\n def g():\n  x = 7\n end\n g()\nend\nf()", 7),
    ("def f():\n i = 0\n while i < 3:\n  i = i + 1\n end\n return i\nend\ni = 10\nx = f() + i", 6),
]

STRUCTS = [
    ("s = struct(a=1, b=2)\nx = s.a + s.b", 3),
    ("s = struct(a=1)\ns.a = 5\nx = s.a", 5),
    ("s = struct(a=1)\ns.b = 5\nx = s.b", 5),
    ("s = struct(a=1)\nt = s\nt.a = 5\nx = s.a", 1),
    ("s = struct(a=struct(b=1))\nx = s.a.b", 1),
    ("s = struct(a=struct(b=1))\ns.a.b = 4\nx = s.a.b", 4),
    ("s = struct(a=[1, 2])\ns.a[1] = 4\nx = s.a", (1, 4)),
    ("l = [struct(a=1), struct(a=2)]\nl[1].a = 7\nx = l[1].a + l[0].a", 8),
    ("def f(s):\n s.a = 3\n return s\nend\ns = struct(a=1)\nt = f(s)\nx = [s.a, t.a]", (1, 3)),
    ("s = struct(q=[1, 2, 3])\nx = s.q[2]", 3),
]


def close(found: object, wanted: object) -> bool:
    """Equal, numbers to 1e-12; whole numbers, floats and truth values are told apart."""
    if isinstance(wanted, tuple):
        return isinstance(found, tuple) and len(found) == len(wanted) and all(map(close, found, wanted))
    if isinstance(wanted, bool) or isinstance(found, bool):
        return found is wanted
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return type(found) is type(wanted) and abs(found - wanted) <= 1e-12 * max(1.0, abs(wanted))
    return isinstance(found, str) and found == wanted


EVERY = [*ARITHMETIC, *LOGIC, *LISTS, *TEXTS, *FLOW, *FUNCTIONS, *SCOPE, *STRUCTS]


@pytest.mark.parametrize(("program", "wanted"), EVERY, ids=range(len(EVERY)))
def test_the_result(program: str, wanted: object) -> None:
    found = outcome(program)
    assert close(found, wanted), found


def test_the_comparison_can_fail() -> None:
    assert not close(1, 1.0)
    assert not close(1, True)
    assert not close((1, 2), (1, 3))
    assert not close(1.0, 1.0 + 1e-9)
    assert not close("line 1: wrong", 3)


def test_only_what_may_wait_becomes_a_generator() -> None:
    program = load(
        "def plain():\n return 1\nend\ndef calls():\n return plain()\nend\ndef loops():\n while True:\n  break\n end\nend\n"
        "def waits():\n sync()\nend\ndef indirect():\n waits()\nend\ndef itself(n):\n return itself(n)\nend\n"
        "thread t():\n plain()\nend\ndef starts():\n return run t()\nend\n"
    )
    assert program.coloured == {"loops", "waits", "indirect", "itself", "t"}


def test_a_program_runs_as_often_as_wanted() -> None:
    """Two machines of one program share nothing."""
    text = "x = 0\nwhile True:\n x = x + 1\n sync()\nend"
    a, b = Bench(text), Bench(text)
    a.run(5)
    b.run(2)
    assert (a["x"], b["x"]) == (5, 2)


def test_line_numbers_are_the_programs() -> None:
    bench = Bench("x = 1\nsync()\n\ndef f():\n\n sync()\nend\nf()\nsync()")
    lines = []
    while bench.machine.running:
        lines.append(bench.machine.line)
        bench.frame()
    assert lines == [1, 2, 6, 9]
    assert bench.machine.line == 0
