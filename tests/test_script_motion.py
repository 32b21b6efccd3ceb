"""Moves of a program: where they end, how fast they go, how corners are rounded."""

from __future__ import annotations

import numpy as np
import pytest
from script_programs import GOAL, START, Bench, arm, done, places, targets

from tangere.script.host import FRAME
from tangere.script.segments import Trapezoid
from tangere.script.values import ScriptException


@pytest.mark.parametrize(
    ("length", "speed", "acceleration", "time", "duration"),
    [
        (1.0, 1.0, 1.0, 0.0, 2.0), (1.0, 10.0, 1.0, 0.0, 2.0), (1.0, 0.5, 1.0, 0.0, 2.5), (0.01, 1.05, 1.4, 0.0, None),
        (1.0, 1.0, 1.0, 5.0, 5.0), (1.0, 1.0, 1.0, 0.5, 0.5), (2.0, 0.1, 3.0, 4.0, 4.0),
    ],
)  # fmt: skip
def test_a_trapezoid_is_the_integral_of_its_speed(
    length: float, speed: float, acceleration: float, time: float, duration: float | None
) -> None:
    law = Trapezoid(length, speed, acceleration, time)
    assert duration is None or law.duration == pytest.approx(duration)
    t = np.linspace(0.0, law.duration, 20001)
    s, rate = np.array([law.at(x) for x in t]).T
    np.testing.assert_allclose(np.gradient(s, t)[1:-1], rate[1:-1], atol=1e-3 * law.speed)
    assert s[0] == 0.0
    assert s[-1] == length
    assert rate[0] == rate[-1] == 0.0
    assert rate.max() <= (speed if not time else law.speed) * (1 + 1e-9)
    assert np.abs(np.diff(rate)).max() / t[1] <= max(acceleration, 4 * length / time**2 if time else 0.0) * 1.01


def test_a_trapezoid_without_speed_is_refused() -> None:
    with pytest.raises(ScriptException, match="speed"):
        Trapezoid(1.0, 0.0, 1.0)
    assert Trapezoid(0.0, 1.0, 1.0).duration == 0.0


@pytest.mark.parametrize(
    "move",
    [
        f"movej({GOAL})", f"movej({GOAL}, a=3, v=2)", f"movej({GOAL}, t=2)", f"movel({GOAL})",
        f"movel(get_forward_kin({GOAL}))", f"movej(get_forward_kin({GOAL}))", f"movep(get_forward_kin({GOAL}), v=0.1)",
        f"optimovej({GOAL})", f"optimovel(get_forward_kin({GOAL}))", f"servoc(get_forward_kin({GOAL}))",
    ],
)  # fmt: skip
def test_moves_end_where_they_shall(move: str) -> None:
    bench = done(f"{move}\nx = get_target_joint_positions()\ny = get_target_joint_speeds()")
    goal = np.array(eval(GOAL))
    reached = arm().pose(np.array(bench["x"]))
    np.testing.assert_allclose(reached, arm().pose(goal), atol=1e-9)
    if "movej" in move:
        np.testing.assert_allclose(bench["x"], goal, atol=1e-9)
    assert bench["y"] == (0.0,) * 6
    _, qd = targets(bench)
    assert np.abs(np.diff(qd, axis=0)).max() / FRAME < 60.0  # rad/s2: no jump of the speed anywhere
    if "t=2" in move:
        assert bench.count * FRAME == pytest.approx(2.0, abs=2 * FRAME)


def test_movej_keeps_speed_and_acceleration_of_the_leading_joint() -> None:
    q, qd = targets(done(f"movej({GOAL}, a=1.4, v=0.5)"))
    assert np.abs(qd).max() == pytest.approx(0.5, rel=1e-6)
    assert np.abs(np.diff(qd, axis=0)).max() / FRAME == pytest.approx(1.4, rel=1e-3)
    share = (q - START) / (np.array(eval(GOAL)) - START)
    np.testing.assert_allclose(share, share[:, :1] @ np.ones((1, 6)), atol=1e-9)  # all joints together


@pytest.mark.parametrize(
    ("move", "speed", "acceleration"),
    [("movel", 0.25, 1.2), ("movep", 0.25, 1.2), ("movec", 0.25, 1.2)],
)
def test_a_tool_move_that_is_told_nothing_goes_as_the_manual_says(move: str, speed: float, acceleration: float) -> None:
    via = "pose_trans(a, p[0, 0, -0.1, 0, 0, 0]), " if move == "movec" else ""
    p = places(done(f"a = get_target_tcp_pose()\n{move}({via}pose_trans(a, p[0, 0.1, -0.1, 0, 0, 0]))"))
    speeds = np.linalg.norm(np.diff(p, axis=0), axis=1) / FRAME
    assert speeds.max() == pytest.approx(speed, rel=1e-3)
    assert np.diff(speeds).max() / FRAME == pytest.approx(acceleration, rel=0.01)


def test_a_joint_move_that_is_told_nothing_goes_as_the_manual_says() -> None:
    _, qd = targets(done("movej([1.1, -1.5, 1.6, -1.7, -1.5, 0.2])"))
    assert np.abs(qd).max() == pytest.approx(1.05, rel=1e-6)
    assert np.abs(np.diff(qd, axis=0)).max() / FRAME == pytest.approx(1.4, rel=1e-3)


def test_an_arm_that_nobody_commands_brakes() -> None:
    _, qd = targets(Bench("speedj([0.6, 0, 0, 0, 0, 0], 40, 0.1)\nwhile True:\n sync()\nend").run(120))
    slower = -np.diff(qd[:, 0]) / FRAME
    assert slower.max() == pytest.approx(15.0, rel=1e-6)
    assert qd[-1, 0] == 0.0


def test_movel_is_straight_and_as_fast_as_told() -> None:
    bench = done("a = get_target_tcp_pose()\nmovel(pose_add(a, p[0.1, -0.1, -0.1, 0, 0, 0.4]), a=1, v=0.1)")
    p = places(bench)
    start = arm().pose(START)[:3, 3]
    way = np.array([0.1, -0.1, -0.1]) / np.sqrt(0.03)
    across = (p - start) - np.outer((p - start) @ way, way)
    assert np.abs(across).max() < 1e-9
    speed = np.linalg.norm(np.diff(p, axis=0), axis=1) / FRAME
    assert speed.max() == pytest.approx(0.1, rel=1e-4)


def test_the_speed_that_is_told_is_the_derivative_of_the_place() -> None:
    """In a line, an arc and a blend between them: what feeds the drives forward."""
    text = (
        "a = get_target_tcp_pose()\nmovel(pose_add(a, p[0.1,0,0,0,0,0.3]), v=0.2, r=0.03)\n"
        "movec(pose_add(a, p[0.15,0.05,0,0,0,0]), pose_add(a, p[0.1,0.1,0,0,0,0]), v=0.2, r=0.02)\n"
        f"movej({GOAL}, r=0.02)\nmovel(a)"
    )
    bench, told = Bench(text), []
    while bench.machine.running:
        bench.frame()
        assert bench.setpoint is not None
        told.append(bench.setpoint.qd)
    assert bench.machine.ended is not None
    assert not bench.machine.ended.failed, bench.machine.ended
    _, qd = targets(bench)
    mean = 0.5 * (np.array(told)[1:] + np.array(told)[:-1])  # of a frame, from its ends
    assert np.abs(qd[1:] - mean).max() < 6e-3
    assert np.abs(np.array(told)).max() > 0.2


@pytest.mark.parametrize("mode", [0, 1])
def test_movec_stays_on_its_circle(mode: int) -> None:
    text = (
        "a = get_target_tcp_pose()\nvia = pose_add(a, p[0.1, 0.1, 0, 0, 0, 0])\nto = pose_add(a, p[0, 0.2, 0, 0, 0, 0])\n"
        f"movec(via, to, a=1, v=0.1, mode={mode})"
    )
    bench = done(text)
    p, start = places(bench), arm().pose(START)[:3, 3]
    centre = start + [0.0, 0.1, 0.0]
    np.testing.assert_allclose(np.linalg.norm(p - centre, axis=1), 0.1, atol=1e-9)
    np.testing.assert_allclose(p[-1], start + [0.0, 0.2, 0.0], atol=1e-9)
    assert p[:, 0].max() == pytest.approx(start[0] + 0.1, abs=1e-4)
    R = arm().pose(bench.targets[-1])[:3, :3] @ arm().pose(START)[:3, :3].T
    angle = np.arccos(np.clip((np.trace(R) - 1) / 2, -1, 1))
    assert angle == pytest.approx(np.pi if mode else 0.0, abs=1e-6)


def test_three_points_in_a_line_are_passed_without_slowing_down() -> None:
    bench = done(
        "a = get_target_tcp_pose()\nmovel(pose_add(a, p[0,-0.1,0,0,0,0]), a=1, v=0.1, r=0.02)\n"
        "movel(pose_add(a, p[0,-0.2,0,0,0,0]), a=1, v=0.1)"
    )
    p = places(bench)
    speed = np.linalg.norm(np.diff(p, axis=0), axis=1) / FRAME
    middle = (np.abs(p[1:, 1] - (arm().pose(START)[1, 3] - 0.1)) < 0.05) & (speed > 0)
    np.testing.assert_allclose(speed[middle], 0.1, rtol=2e-2)


@pytest.mark.parametrize("radius", [0.01, 0.03])
def test_a_corner_is_left_and_joined_at_the_blend_radius(radius: float) -> None:
    bench = done(
        f"a = get_target_tcp_pose()\nmovel(pose_add(a, p[0,-0.1,0,0,0,0]), a=1, v=0.1, r={radius})\n"
        "movel(pose_add(a, p[0,-0.1,-0.1,0,0,0]), a=1, v=0.1)"
    )
    p = places(bench) - arm().pose(START)[:3, 3]
    corner = np.array([0.0, -0.1, 0.0])
    off = np.minimum(np.abs(p[:, 2]), np.abs(p[:, 1] + 0.1))  # from the nearer of the two lines
    away = np.linalg.norm(p - corner, axis=1)
    assert off[away > radius * 1.02 + 0.1 * FRAME].max() < 1e-6
    assert off.max() > 0.1 * radius  # it is rounded, not passed through
    assert away.min() > 0.2 * radius
    speed = np.linalg.norm(np.diff(p, axis=0), axis=1) / FRAME
    inside = away[1:] < radius
    assert speed[inside].min() > 0.05  # it does not stop
    assert np.abs(np.diff(np.diff(p, axis=0), axis=0)).max() / FRAME**2 < 2.0 * 1.05  # m/s2, along and across


def test_a_blend_without_another_move_goes_to_its_end() -> None:
    bench = done(f"movej({GOAL}, r=0.1)\nsleep(2)\nx = get_target_joint_positions()")
    np.testing.assert_allclose(bench["x"], eval(GOAL), atol=1e-9)
    assert np.abs(np.diff(targets(bench)[1], axis=0)).max() / FRAME < 1.5


def test_the_slider_slows_moves_down() -> None:
    times = []
    for speed in (1.0, 0.5):
        bench = Bench(f"movej({GOAL})")
        bench.host.speed = speed
        times.append(bench.run().count)
    assert times[1] == pytest.approx(2 * times[0], rel=0.01)


def test_servoj_follows_with_its_lookahead() -> None:
    text = (
        "q = get_target_joint_positions()\ni = 0\nwhile i < 500:\n i = i + 1\n q[0] = q[0] + 0.001\n"
        " servoj(q, t=0.002, lookahead_time=0.05, gain=300)\nend\nx = q[0] - get_target_joint_positions()[0]"
    )
    assert done(text)["x"] == pytest.approx(0.5 * 0.05, rel=0.05)  # 0.5 rad/s, 50 ms behind
    text = f"i = 0\nwhile i < 1500:\n i = i + 1\n servoj({GOAL})\nend"
    bench = done(text)
    np.testing.assert_allclose(bench.targets[-1], eval(GOAL), atol=1e-6)
    assert np.abs(targets(bench)[1]).max() <= arm().qd_max.max() * (1 + 1e-9)


def test_speedj_reaches_its_speed_and_lasts_its_time() -> None:
    bench = done("speedj([0.2, -0.1, 0, 0, 0, 0], 0.5, 1.0)\nx = get_target_joint_speeds()")
    np.testing.assert_allclose(bench["x"], [0.2, -0.1, 0, 0, 0, 0], atol=1e-12)
    assert bench.count == 501
    assert done("speedj([0.2, 0, 0, 0, 0, 0], 0.5)").count == 0.4 / FRAME + 1


def test_speedj_without_acceleration_keeps_its_speed() -> None:
    """Programs that compute the acceleration from a change of speed come to 0."""
    bench = done("speedj([0.2,0,0,0,0,0], 2, 0.5)\nspeedj([0.2,0,0,0,0,0], 0, 0.1)\nx = get_target_joint_speeds()")
    assert bench["x"][0] == 0.2
    assert bench.count == 301


def test_a_cb3_has_frames_of_eight_milliseconds() -> None:
    bench = Bench(f"movej({GOAL}, v=0.5)\nx = get_steptime()", version=(3, 15, 0)).run()
    assert bench["x"] == 0.008
    q = np.array([START, *bench.targets])
    assert np.abs(np.diff(q, axis=0)).max() / 0.008 == pytest.approx(0.5, rel=1e-6)


def test_the_waypoint_is_the_end_of_the_move() -> None:
    text = (
        "thread t():\n sleep(0.5)\n x = get_target_waypoint()\nend\nx = 0\nrun t()\n"
        f"movej({GOAL}, v=0.2)\ny = get_target_waypoint()"
    )
    bench = done(text)
    end = arm().pose(np.array(eval(GOAL)))
    np.testing.assert_allclose(bench["x"][:3], end[:3, 3], atol=1e-9)
    np.testing.assert_allclose(bench["y"][:3], end[:3, 3], atol=1e-9)


def test_speedl_moves_the_tool() -> None:
    text = "speedl([0, 0.05, 0.02, 0, 0, 0.1], 0.5, 1.0)\nx = get_target_tcp_speed()\nstopl(0.5)\ny = get_target_joint_speeds()"
    bench = done(text)
    np.testing.assert_allclose(bench["x"], [0, 0.05, 0.02, 0, 0, 0.1], atol=2e-4)
    assert bench["y"] == (0.0,) * 6
    p = places(bench) - arm().pose(START)[:3, 3]
    np.testing.assert_allclose(p[500] @ [0, 1, 0], 0.05 * (1 - 0.5 * 0.1), rtol=0.02)
    assert np.abs(p[:, 0]).max() < 2e-4


def test_stopj_takes_its_time() -> None:
    bench = done("speedj([0.4, 0, 0, 0, 0, 0], 2, 0.5)\nstopj(1)\nx = get_target_joint_speeds()")
    assert bench["x"] == (0.0,) * 6
    assert bench.count == 250 + 0.4 / FRAME + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("while True:\n speedl([0.3, 0, 0, 0, 0, 0], 2, 0.1)\nend", ""),
        ("speedj([9, 0, 0, 0, 0, 0], 100, 1)", "joint 1 would turn"),
    ],
)
def test_what_the_arm_cannot_do_is_a_protective_stop(text: str, message: str) -> None:
    bench = Bench(text).run()
    ended = bench.machine.ended
    assert ended is not None
    assert ended.how == "protective stop"
    assert message in ended.message
    assert np.abs(targets(bench)[1]).max() < arm().qd_max.max() * 1.01


DIRECT = [
    ("direct_torque([1,2,3,4,5,6])", "5.26.0", (0.9, 0.8)),
    ("direct_torque([1,2,3,4,5,6], friction_comp=True)", "5.23.0", (0.9, 0.8)),
    ("direct_torque([1,2,3,4,5,6], friction_comp=False)", "5.23.0", (0.0, 0.0)),
    ("direct_torque([1,2,3,4,5,6], False)", "5.23.0", (0.0, 0.0)),
    ("s = [0.5,0.5,0.5,0.5,0.5,0.5]\ndirect_torque([1,2,3,4,5,6], s, s)", "5.25.1", (0.5, 0.5)),
    ("s = [0.5,0.5,0.5,0.5,0.5,0.5]\ndirect_torque([1,2,3,4,5,6], viscous_scale=s)", "5.26.0", (0.5, 0.8)),
    ("s = [0,0,0,0,0,0]\ndirect_torque([1,2,3,4,5,6], coulomb_scale=s)", "5.26.0", (0.9, 0.0)),
    ("s = [0.5,0.5,0.5,0.5,0.5,0.5]\ndirect_torque([1,2,3,4,5,6], viscous_scale=s, coulomb_scale=s, friction_comp=False)",
     "5.26.0", (0.5, 0.5)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "polyscope", "shares"), DIRECT, ids=range(len(DIRECT)))
def test_direct_torque(text: str, polyscope: str, shares: tuple[float, float]) -> None:
    from tangere.script.builtin import version

    bench = Bench(text, version=version(polyscope))
    bench.frame()
    found = bench.setpoint
    assert found is not None
    assert found.tau is not None
    np.testing.assert_array_equal(found.tau, [1, 2, 3, 4, 5, 6])
    assert found.viscous is not None
    assert found.coulomb is not None
    assert (found.viscous[0], found.coulomb[0]) == shares
    bench.frame()
    assert bench.setpoint is not None
    assert bench.setpoint.tau is None  # one frame only: then the arm is held
