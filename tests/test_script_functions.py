"""Builtins against other computations: numpy, our own kinematics and dynamics, and each other."""

from __future__ import annotations

from math import cos, pi, sin, sqrt

import numpy as np
import pytest
from script_programs import START, Bench, arm, outcome

from tangere.kinematics.rotation import pose_from_ur, rotation_vector_from_matrix, ur_from_pose
from tangere.script import poses
from tangere.script.host import QuietHost

A, B = (0.1, 0.2, 0.3, 0.4, -0.5, 0.6), (-0.3, 0.1, 0.2, 1.0, 2.0, -0.5)
Q = "[0.1, -1.5, 1.6, -1.7, -1.5, 0.2]"
TCP = (0.01, -0.02, 0.13, 0.3, 0.1, -0.2)


def ur(T: np.ndarray) -> tuple[float, ...]:
    return tuple(ur_from_pose(T).tolist())


def text(pose: tuple[float, ...]) -> str:
    return f"p[{', '.join(map(repr, pose))}]"


NUMBERS = [
    ("x = sin(0.5)", sin(0.5)),
    ("x = cos(0.5)", cos(0.5)),
    ("x = tan(0.5)", sin(0.5) / cos(0.5)),
    ("x = asin(1)", pi / 2),
    ("x = acos(0)", pi / 2),
    ("x = atan(1)", pi / 4),
    ("x = atan2(1, -1)", 3 * pi / 4),
    ("x = sqrt(2)", sqrt(2)),
    ("x = pow(2, 0.5)", sqrt(2)),
    ("x = log(2, 8)", 3.0),
    ("x = log(10, 1000)", 3.0),
    ("x = floor(1.7)", 1),
    ("x = floor(-1.2)", -2),
    ("x = ceil(1.2)", 2),
    ("x = d2r(180)", pi),
    ("x = r2d(PI)", 180.0),
    ("x = norm(-3)", 3),
    ("x = norm([3, 4])", 5.0),
    ("x = norm(p[1,2,2,0,0,0])", 3.0),
    ("x = length([1,2,3])", 3),
    ("x = get_list_length([1,2])", 2),
    ("x = size([[1,2,3],[4,5,6]])", (2, 3)),
    ("x = make_list(3, 7)", (7, 7, 7)),
    ("x = transpose([[1,2,3],[4,5,6]])", ((1, 4), (2, 5), (3, 6))),
    ("x = inv([[2,0],[0,4]])", ((0.5, 0.0), (0.0, 0.25))),
    ("x = inv([[1,2],[3,4]]) * [[1,2],[3,4]]", ((1.0, 0.0), (0.0, 1.0))),
    ("x = binary_list_to_integer([True, False, True])", 5),
    ("x = binary_list_to_integer(integer_to_binary_list(-5))", -5),
    ("x = get_steptime()", 0.002),
    ("x = is_steady()", False),
    ("sleep(0.6)\nx = is_steady()", True),
    ("x = get_target_payload()", 0.0),
    ("set_payload(2.5, [0, 0, 0.1])\nx = [get_target_payload(), get_target_payload_cog()[2]]", (2.5, 0.1)),
    ("set_target_payload(1, [0,0,0], [0.1,0.2,0.25,0,0,0])\nx = get_target_payload_inertia()", (0.1, 0.2, 0.25, 0, 0, 0)),
    ("x = get_freedrive_status()", 0),
    ("freedrive_mode()\nx = get_freedrive_status()", 1),
    ("freedrive_mode()\nend_freedrive_mode()\nx = get_freedrive_status()", 0),
    ("x = force()", 0.0),
    ("x = tool_contact([0,0,1,0,0,0])", 0),
    ("digital_out[2] = True\nx = get_standard_digital_out(2)", True),
    ("set_tool_digital_out(1, True)\nx = get_digital_out(9)", True),
    ("set_configurable_digital_out(3, True)\nx = get_configurable_digital_out(3)", True),
    ("set_standard_analog_out(1, 0.5)\nx = get_standard_analog_out(1)", 0.5),
    ("set_analog_out(0, 7)\nx = get_analog_out(0)", 1.0),
    ("write_output_integer_register(3, 7)\nx = read_output_integer_register(3)", 7),
    ("write_output_float_register(3, 7)\nx = read_output_float_register(3)", 7.0),
    ("write_output_boolean_register(3, True)\nx = read_output_boolean_register(3)", True),
    ("x = read_input_integer_register(5)", 0),
    ('x = socket_send_string("a")', False),
    ('x = socket_read_line(timeout=0.01)', ""),
    ('x = socket_read_binary_integer(2, timeout=0.01)', (0,)),
    ("x = wrench_trans(p[0,0,1,0,0,0], [1,0,0,0,0,0])", (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)),
    ("x = rotvec2rpy([0,0,1.2])", (0.0, 0.0, 1.2)),
    ("x = rpy2rotvec([0.3,0,0])", (0.3, 0.0, 0.0)),
    ("x = rotvec2rpy(rpy2rotvec([0.3,-0.4,0.5]))", (0.3, -0.4, 0.5)),
    ("x = pose_dist(p[1,0,0,1,1,1], p[0,0,0,0,0,0])", 1.0),
    ("x = point_dist(p[3,4,0,1,1,1], p[0,0,0,0,0,0])", 5.0),
    ("x = is_within_safety_limits([0,0,0,0,0,0])", True),
    ("x = is_within_safety_limits([0,0,0,0,0,7])", False),
    ("x = is_within_safety_limits(p[9,0,0,0,0,0])", False),
    ("x = is_within_safety_limits(get_actual_tcp_pose())", True),
    ("x = get_inverse_kin_has_solution(p[9,0,0,0,0,0])", False),
    ("x = get_inverse_kin_has_solution(get_actual_tcp_pose())", True),
]

POSES = [
    (f"x = pose_trans({text(A)}, {text(B)})", ur(pose_from_ur(A) @ pose_from_ur(B))),
    (f"x = pose_inv({text(A)})", ur(np.linalg.inv(pose_from_ur(A)))),
    (f"x = inv({text(A)})", ur(np.linalg.inv(pose_from_ur(A)))),
    (f"x = pose_trans({text(A)}, pose_inv({text(A)}))", (0.0,) * 6),
    (f"x = pose_add({text(A)}, pose_sub({text(B)}, {text(A)}))[0]", B[0]),
    (f"x = interpolate_pose({text(A)}, {text(B)}, 0)", A),
    (f"x = interpolate_pose({text(A)}, {text(B)}, 1)", B),
    ("x = interpolate_pose(p[0,0,0,0,0,0], p[1,0,0,0,0,1], 0.25)", (0.25, 0.0, 0.0, 0.0, 0.0, 0.25)),
    ("x = get_forward_kin()", ur(arm().pose(START))),
    (f"x = get_forward_kin({Q})", ur(arm().pose(START))),
    (f"x = get_forward_kin({Q}, {text(TCP)})", ur(arm().pose(START) @ pose_from_ur(TCP))),
    (f"set_tcp({text(TCP)})\nx = get_forward_kin({Q})", ur(arm().pose(START) @ pose_from_ur(TCP))),
    (f"set_tcp({text(TCP)})\nx = get_actual_tool_flange_pose()", ur(arm().pose(START))),
    (f"set_tcp({text(TCP)})\nx = get_tcp_offset()", TCP),
    (f"set_tcp({text(TCP)})\nx = get_inverse_kin(get_actual_tcp_pose())", tuple(START)),
    (f"x = get_inverse_kin(get_forward_kin({Q}, {text(TCP)}), {Q}, tcp={text(TCP)})", tuple(START)),
    (f"x = get_inverse_kin(get_forward_kin({Q}), {Q})", tuple(START)),
    ("x = get_inverse_kin(get_forward_kin([0.5,-1,1,-1,-1,6]), [0.5,-1,1,-1,-1,6])", (0.5, -1.0, 1.0, -1.0, -1.0, 6.0)),
    ("x = get_actual_joint_positions()", tuple(START)),
    ("x = get_target_joint_positions()", tuple(START)),
    ("x = get_joint_torques()", (0.0,) * 6),
    ("x = get_actual_joint_speeds()", (0.0,) * 6),
    ("x = get_actual_tcp_speed()", (0.0,) * 6),
    ("x = get_actual_joint_positions_history(0)", tuple(START)),
]


@pytest.mark.parametrize(("program", "wanted"), [*NUMBERS, *POSES], ids=range(len(NUMBERS) + len(POSES)))
def test_the_result(program: str, wanted: object) -> None:
    found = outcome(program)
    if isinstance(wanted, bool | str):
        assert found == wanted
        assert type(found) is type(wanted) or isinstance(wanted, str)
    else:
        assert not isinstance(found, str), found
        np.testing.assert_allclose(np.array(found, dtype=float), np.array(wanted, dtype=float), atol=1e-9)


def test_rotations_agree_with_the_kinematics() -> None:
    """Any turn up to half a round, none and nearly half among them, there and back."""
    rng = np.random.default_rng(3)
    for angle in (0.0, 1e-12, 1e-6, 0.1, 1.0, 3.0, pi - 1e-6, pi - 1e-10):
        for _ in range(20):
            v = rng.normal(size=3)
            v *= angle / np.linalg.norm(v)
            R = np.array(poses.rotation(v.tolist()))
            np.testing.assert_allclose(R, pose_from_ur([0, 0, 0, *v])[:3, :3], atol=1e-14)
            found = poses.rotation_vector(R.tolist())
            np.testing.assert_allclose(found, rotation_vector_from_matrix(R), atol=2e-9 if angle > 3.1 else 1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_dynamics_are_the_robots(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, qd = rng.uniform(-1.5, 1.5, 6), rng.normal(size=6)
    given = f"q = {q.tolist()}\nqd = {qd.tolist()}\n"
    robot = arm()
    np.testing.assert_allclose(np.array(outcome(given + "x = get_mass_matrix(q)")), robot.mass_matrix(q), atol=1e-12)
    rotors = np.diag(np.nan_to_num(np.asarray(robot.drives.rotor_inertia, dtype=float)))
    heavy = np.array(outcome(given + "x = get_mass_matrix(q, True)"))
    np.testing.assert_allclose(heavy, robot.mass_matrix(q) + rotors, atol=1e-12)
    coriolis = np.array(outcome(given + "x = get_coriolis_and_centrifugal_torques(q, qd)"))
    np.testing.assert_allclose(coriolis, robot.coriolis_matrix(q, qd) @ qd, atol=1e-10)
    np.testing.assert_allclose(np.array(outcome(given + "x = get_jacobian(q)")), robot.jacobian(q), atol=1e-12)
    rate = np.array(outcome(given + "x = get_jacobian_time_derivative(q, qd)"))
    np.testing.assert_allclose(rate @ qd, robot.jacobian_rate_times_velocity(q, qd), atol=1e-7)


def test_the_jacobian_at_a_tool_is_the_derivative_of_its_pose() -> None:
    program = f"set_tcp({text(TCP)})\nx = get_jacobian({Q})"
    J, h = np.array(outcome(program)), 1e-6
    np.testing.assert_allclose(J, np.array(outcome(f"x = get_jacobian({Q}, {text(TCP)})")), atol=1e-12)
    tool = pose_from_ur(TCP)
    for k in range(6):
        step = np.zeros(6)
        step[k] = h
        ahead, behind = (arm().pose(START + s) @ tool for s in (step, -step))
        np.testing.assert_allclose(J[:3, k], (ahead - behind)[:3, 3] / (2 * h), atol=1e-8)
        turn = rotation_vector_from_matrix(ahead[:3, :3] @ behind[:3, :3].T)
        np.testing.assert_allclose(J[3:, k], turn / (2 * h), atol=1e-8)


def test_a_payload_is_in_gravity_and_mass() -> None:
    bench = Bench("set_payload(3, [0, 0, 0.1])\nx = get_mass_matrix()\nsync()").run()
    import tangere

    loaded = tangere.robot("ur5e", payload=(3.0, (0.0, 0.0, 0.1)))
    np.testing.assert_allclose(np.array(bench["x"]), loaded.mass_matrix(START), atol=1e-12)
    np.testing.assert_allclose(bench.machine.arm.robot.gravity_torque(START), loaded.gravity_torque(START), atol=1e-12)
    hung = Bench("set_gravity([0, 0, -9.81])").run().machine.arm.robot
    np.testing.assert_allclose(hung.gravity_torque(START), -arm().gravity_torque(START), atol=1e-12)


def test_force_is_told_at_the_tool_and_can_be_zeroed() -> None:
    from dataclasses import replace

    program = f"set_tcp({text(TCP)})\nx = get_tcp_force()\nzero_ftsensor()\ny = get_tcp_force()\nsync()\nz = tool_contact([0,0,-1,0,0,0])"
    bench = Bench(program)
    wrench = np.array([1.0, 2.0, 30.0, 0.1, 0.2, 0.3])
    bench.state = replace(bench.state, wrench=wrench)
    bench.run(1)
    arm_to_tool = arm().pose(START)[:3, :3] @ np.array(TCP[:3])
    np.testing.assert_allclose(bench["x"][:3], wrench[:3])
    np.testing.assert_allclose(bench["x"][3:], wrench[3:] - np.cross(arm_to_tool, wrench[:3]), atol=1e-12)
    np.testing.assert_allclose(bench["y"], np.zeros(6), atol=1e-12)
    bench.state = replace(bench.state, wrench=wrench + [0, 0, 20.0, 0, 0, 0])
    bench.run(1)
    assert bench["z"] == 1


class _Line(QuietHost):
    """A host with one socket whose other side says what it was told to, a few bytes a frame."""

    def __init__(self, data: bytes, at_once: int = 3) -> None:
        super().__init__()
        self.data, self.sent, self.at_once, self.is_open = data, b"", at_once, False

    def socket_open(self, name: str, address: str, port: int) -> bool:
        self.is_open = (address, port) == ("192.168.0.7", 50002)
        return self.is_open

    def socket_send(self, name: str, data: bytes) -> bool:
        self.sent += data
        return self.is_open

    def socket_receive(self, name: str) -> bytes | None:
        if not self.data:
            return None
        part, self.data = self.data[: self.at_once], self.data[self.at_once :]
        return part

    def socket_close(self, name: str) -> None:
        self.is_open = False


SOCKETS = [
    ("x = socket_read_line()", b"hello\nworld\n", "hello"),
    ("y = socket_read_line()\nx = socket_read_line()", b"hello\r\nworld\r\n", "world"),
    ("x = socket_read_binary_integer(2)", b"\0\0\0\x07\xff\xff\xff\xff", (2, 7, -1)),
    ("x = socket_read_byte_list(3)", b"\x01\x02\xff", (3, 1, 2, 255)),
    ("x = socket_read_ascii_float(2)", b"(1.5, -2)", (2, 1.5, -2.0)),
    ("x = socket_read_ascii_float(3)", b"(1.5, -2)", (0,)),
    ('x = socket_read_string(prefix="<", suffix=">")', b"ab<cd>", "cd"),
    ("x = socket_read_line()", b"no end", ""),
    ("x = socket_read_binary_integer(2)", b"\0\0\0", (0,)),
    ('x = socket_send_line("a")', b"", True),
    ("x = socket_send_int(-2)", b"", True),
    ("x = socket_send_byte(65)", b"", True),
    ('socket_close()\nx = socket_send_string("a")', b"", False),
]


@pytest.mark.parametrize(("program", "data", "wanted"), SOCKETS, ids=range(len(SOCKETS)))
def test_sockets(program: str, data: bytes, wanted: object) -> None:
    host = _Line(data)
    opened = 'if not socket_open("192.168.0.7", 50002):\n halt\nend\n'
    assert outcome(opened + program, host=host) == wanted


def test_what_is_sent() -> None:
    host = _Line(b"")
    outcome('socket_open("192.168.0.7", 50002)\nsocket_send_string("ab")\nsocket_send_line(1.5)\nsocket_send_int(258)\n'
            "socket_send_byte(7)\nx = 1", host=host)  # fmt: skip
    assert host.sent == b"ab1.5\n\0\0\x01\x02\x07"
    assert outcome('x = socket_open("10.0.0.1", 1)', host=_Line(b"")) is False


def test_reading_waits_for_ever_where_no_time_is_given() -> None:
    host = _Line(b"")
    host.socket_receive = lambda name: b""  # type: ignore[method-assign]
    bench = Bench("x = socket_read_line(timeout=0)", host=host).run(5000)
    assert bench.machine.running
