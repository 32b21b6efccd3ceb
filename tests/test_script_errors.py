"""Runtime exceptions: each program fails in its line, with a message that helps; the machine never raises."""

from __future__ import annotations

import pytest
from script_programs import Bench, arm, outcome

import tangere
from tangere.errors import InvalidValue
from tangere.script.compiler import load
from tangere.script.machine import CRITICAL, THREADS, Machine

# program, line, a part of the message
FAILING = [
    ("x = 1 / 0", 1, "division by zero"),
    ("x = 1\nx = 1 % 0", 2, "division by zero"),
    ("x = [1, 2] / 0", 1, "division by zero"),
    ("if False:\n y = 1\nend\nx = y", 4, "'y' has no value"),
    ("def f():\n return y\nend\nif False:\n y = 1\nend\nx = f()", 2, "'y' has no value"),
    ("def f():\n if False:\n  local z = 1\n end\n return z\nend\nx = f()", 5, "'z' has no value"),
    ("global a\nx = a", 2, "'a' has no value"),
    ("x = [1, 2][2]", 1, "beyond the end"),
    ("a = [1, 2]\nx = a[2]", 2, "beyond the end"),
    ("a = [1, 2]\ni = 2\nx = a[i]", 3, "index 2 of a list with 2 entries"),
    ("a = [1, 2]\ni = -1\nx = a[i]", 3, "index -1"),
    ("a = [1, 2]\nx = a[-1]", 2, "index -1"),
    ("a = [1, 2]\nx = a[0.5]", 2, "whole number"),
    ('a = [1, 2]\nx = a["0"]', 2, "whole number"),
    ("a = [1, 2]\nx = a[True]", 2, "whole number"),
    ("a = [1, 2]\na[5] = 1", 2, "index 5"),
    ("a = [1, 2]\na[-1] = 1", 2, "index -1"),
    ("a = 5\na[0] = 1", 2, "has no elements"),
    ("a = 5\nx = a[0]", 2, "do not go together"),
    ("a = 5\ni = 0\nx = a[i]", 3, "has no elements"),
    ('a = "abc"\nx = a[0]', 2, "no elements"),
    ("x = 5[0]", 1, "has no elements"),
    ("a = 5\nx = a.b", 2, "has no members"),
    ("a = 5\na.b = 1", 2, "has no members"),
    ("s = struct(a=1)\nx = s.b", 2, "no member 'b'"),
    ("s = struct(a=1)\ns.b.c = 1", 2, "no member 'b'"),
    ('x = 1 + "a"', 1, "no arithmetic"),
    ('x = "a" + "b"', 1, "no arithmetic"),
    ('x = "a" * 3', 1, "no arithmetic"),
    ('x = "%d" % 3', 1, "no arithmetic"),
    ('x = -"a"', 1, "do not go together"),
    ('x = 1 < "a"', 1, "do not go together"),
    ("x = [1, 2] < [1, 3]", 1, "only compared by =="),
    ("x = [1, 2] + [1, 2, 3]", 1, "lists of 2 and 3 entries"),
    ("x = [[1, 2], [3, 4]] * [1, 2, 3]", 1, "a matrix with 2 columns times 3 rows"),
    ("if [1]:\n x = 1\nend", 1, "no condition"),
    ('while "a":\n x = 1\nend', 1, "no condition"),
    ("if struct(a=1):\n x = 1\nend", 1, "no condition"),
    ("x = sqrt(-1)", 1, "math domain error"),
    ("x = acos(2)", 1, "math domain error"),
    ("x = log(10, 0)", 1, "math domain error"),
    ("x = pow(10, 400)", 1, "too large"),
    ("x = sin([1])", 1, "do not go together"),
    ('x = to_num("abc")', 1, "is no number"),
    ('x = str_at("abc", 3)', 1, "index 3"),
    ('x = str_sub("abc", -1)', 1, "index -1"),
    ("x = str_len(3)", 1, "a text is needed"),
    ("x = length(3)", 1, "a list or a text"),
    ("x = inv([[1, 2], [2, 4]])", 1, "Singular"),
    ("x = inv([1, 2])", 1, "a matrix"),
    ("x = transpose([[1, 2], [3]])", 1, "a matrix"),
    ("x = pose_trans(1, p[0,0,0,0,0,0])", 1, "a pose"),
    ("x = pose_inv([1, 2, 3])", 1, "a pose"),
    ("x = [1, 2]\nx.remove(2)", 2, "index 2"),
    ("x = [1, 2]\nx.insert(3, 1)", 2, "index 3"),
    ("x = 5\nx.append(1)", 2, "a list is needed"),
    ("x = [1, 2]\ny = x.slice(1, 5)", 2, "1 to 5"),
    ("x = make_list(1000000, 0)", 1, "entries"),
    ("x = [1]\nwhile True:\n x = [x]\nend", 3, "nest at most"),
    ('x = "ab"\nwhile True:\n x = str_cat(x, x)\nend', 3, "characters"),
    ("enter_critical\nwhile True:\n x = 1\nend", 2, f"more than {CRITICAL} loops"),
    ("thread t():\n sleep(9)\nend\nwhile True:\n run t()\nend", 5, f"more than {THREADS} threads"),
    ("x = read_input_integer_register(48)", 1, "addresses 0 to 47"),
    ("x = read_input_float_register(-1)", 1, "addresses 0 to 47"),
    ("x = read_input_boolean_register(128)", 1, "addresses 0 to 127"),
    ("write_output_integer_register(0, 3000000000)", 1, "32 bits"),
    ("write_output_float_register(0.5, 1)", 1, "whole number"),
    ("x = get_digital_in(10)", 1, "signals 0 to 9"),
    ("set_standard_digital_out(8, True)", 1, "signals 0 to 7"),
    ("set_tool_voltage(5)", 1, "0, 12 or 24"),
    ('x = get_rtde_value("nonsense")', 1, "nonsense"),
    ('rtde_set_watchdog("input_int_register_0", 10, "explode")', 1, "pause, stop or ignore"),
    ("modbus_add_signal(1)", 1, "not modelled"),
    ("movej([0, 0])", 1, "six numbers"),
    ('movej("home")', 1, "six numbers"),
    ("movej([0, 0, 0, 0, 0, 7])", 1, "joint 6 cannot turn"),
    ("movej([0, 0, 0, 0, 0, 1], v=0)", 1, "speed of a move must be positive"),
    ("movej([0, 0, 0, 0, 0, 1], a=-1)", 1, "acceleration of a move must be positive"),
    ("movej(p[5, 0, 0, 0, 0, 0])", 1, "cannot be reached"),
    ("x = get_inverse_kin(p[5, 0, 0, 0, 0, 0])", 1, "no solution"),
    ("movel([0, 0])", 1, "six numbers"),
    ("movel(p[2, 0, 0, 0, 0, 0])", 1, "cannot be reached"),
    ("movec(get_target_tcp_pose(), get_target_tcp_pose())", 1, "no arc"),
    ("speedj([0, 0, 0, 0, 0, 0], a=0)", 1, "must be positive"),
    ("servoj([0, 0, 0, 0, 0])", 1, "six numbers"),
    ("direct_torque([0, 0, 0, 0, 0])", 1, "six numbers"),
    ("direct_torque([0,0,0,0,0,0], viscous_scale=[2,0,0,0,0,0])", 1, "from 0 to 1"),
    ("optimovej([0,0,0,0,0,0], v=2)", 1, "shares above 0"),
    ("force_mode(p[0,0,0,0,0,0], [0,0,1,0,0,0], [0,0,5,0,0,0], 5, [1,1,1,1,1,1])", 1, "type 1, 2 or 3"),
    ("set_payload(-1)", 1, "mass -1"),
    ("set_gravity([0, 0])", 1, "three numbers"),
    ("x = get_actual_joint_positions_history(5000)", 1, "steps"),
    ("protective_stop()", 1, "was called"),
    ("\n\ndef f():\n\n x = 1 / 0\nend\n\nf()", 5, "division by zero"),
    ("def f():\n sync()\n x = 1 / 0\nend\nf()", 3, "division by zero"),
    ("thread t():\n sync()\n x = 1 / 0\nend\nh = run t()\nwhile True:\n sync()\nend", 3, "division by zero"),
    ("x = [1,\n 2,\n 1 / 0]", 3, "division by zero"),
    ("x = sin(\n 1 +\n 1 / 0)", 3, "division by zero"),
]


@pytest.mark.parametrize(("program", "line", "message"), FAILING, ids=range(len(FAILING)))
def test_fails_in_its_line(program: str, line: int, message: str) -> None:
    found = outcome(program)
    assert isinstance(found, str)
    assert found.startswith(f"line {line}: "), found
    assert message in found


def test_how_a_program_ended() -> None:
    for text, how in (
        ("x = 1", "finished"), ("halt", "halted"), ("x = 1 / 0", "exception"), ("protective_stop()", "protective stop")
    ):  # fmt: skip
        ended = Bench(text).run().machine.ended
        assert ended is not None
        assert ended.how == how
        assert bool(ended.failed) == (how in ("exception", "protective stop"))
    bench = Bench("while True:\n sync()\nend")
    bench.run(3)
    bench.machine.stop("somebody pressed stop")
    assert bench.machine.ended is not None
    assert bench.machine.ended.failed == "stopped: somebody pressed stop"


def test_after_a_failure_the_arm_stops_and_the_machine_goes_on_answering() -> None:
    bench = Bench("speedj([0.5,0,0,0,0,0], 5, 0.2)\nx = 1 / 0").run()
    assert bench.machine.ended is not None
    assert bench.setpoint is not None
    assert bench.setpoint.qd[0] > 0.1
    for _ in range(100):
        bench.frame()
    assert not bench.setpoint.qd.any()


def test_misuse_of_the_machine_is_told_at_once() -> None:
    program = load("x = 1")
    with pytest.raises(InvalidValue, match="six finite"):
        Machine(program, arm(), [0.0, 1.0])
    with pytest.raises(InvalidValue, match="where the arm stands"):
        Machine(program, arm())
    with pytest.raises(InvalidValue, match="six finite"):
        Machine(program, arm(), [float("nan")] * 6)
    with pytest.raises(InvalidValue, match="scara has 4"):
        Machine(program, tangere.robot("scara"), [0.0] * 6)


def test_functions_that_call_each_other_without_end() -> None:
    for text in ("def f(n):\n return f(n + 1) + 1\nend\nx = f(0)", "def f():\n g()\nend\ndef g():\n f()\nend\nf()"):
        ended = Bench(text).run().machine.ended
        assert ended is not None
        assert "too deep" in ended.message
