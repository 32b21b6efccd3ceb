"""An arm that gives way: force mode and freedrive of a program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from script_programs import START, Bench, arm, done, places

from tangere.script.host import FRAME


def test_damping_and_gain_of_force_mode_stay_set() -> None:
    """Clients set them before they switch it on."""
    far = []
    for gain in (0.5, 2.0):
        text = (
            f"force_mode_set_gain_scaling({gain})\nforce_mode_set_damping(0.1)\n"
            "force_mode(p[0,0,0,0,0,0], [0,0,1,0,0,0], [0,0,-10,0,0,0], 2, [1,1,1,1,1,1])\nsleep(1)"
        )
        p = places(done(text))
        far.append(p[0, 2] - p[-1, 2])
    assert far[1] == pytest.approx(4.0 * far[0], rel=0.05)


class Wall:
    """An arm that follows perfectly, and a springy table below its tool."""

    def __init__(self, text: str, stiffness: float, below: float) -> None:
        self.bench, self.stiffness = Bench(text), stiffness
        self.height = arm().pose(START)[2, 3] - below
        self.force: list[float] = []

    def run(self, frames: int) -> Bench:
        for _ in range(frames):
            if not self.bench.machine.running:
                break
            self.bench.frame()
            depth = self.height - arm().pose(self.bench.state.q)[2, 3]
            force = self.stiffness * max(0.0, depth)
            self.force.append(force)
            self.bench.state = replace(self.bench.state, wrench=np.array([0, 0, force, 0, 0, 0]))
        return self.bench


@pytest.mark.parametrize("stiffness", [5e3, 1e5])
def test_force_mode_presses_as_it_shall(stiffness: float) -> None:
    text = (
        "force_mode(p[0,0,0,0,0,0], [0,0,1,0,0,0], [0,0,-10,0,0,0], 2, [0.1,0.1,0.05,0.3,0.3,0.3])\n"
        "a = get_target_tcp_pose()\nsleep(3)\nmovel(pose_add(a, p[0.05,0,0,0,0,0]), v=0.02)\nsleep(1)\n"
        "end_force_mode()\nx = get_target_tcp_pose()\nsleep(0.2)"
    )
    wall = Wall(text, stiffness, below=0.005)
    bench = wall.run(20_000)
    assert bench.machine.ended is not None
    assert not bench.machine.ended.failed, bench.machine.ended
    touched = next(k for k, force in enumerate(wall.force) if force > 0)
    pressed = np.array(wall.force[touched + 500 : -100])
    assert len(pressed) > 2000
    assert np.abs(pressed - 10.0).max() < 1.0
    start = arm().pose(START)[:3, 3]
    np.testing.assert_allclose(bench["x"][:2], start[:2] + [0.05, 0.0], atol=1e-3)  # the program moved across it
    assert bench["x"][2] < wall.height


def test_force_mode_in_the_air_is_no_faster_than_its_limit() -> None:
    text = "force_mode(p[0,0,0,0,0,0], [0,0,1,0,0,0], [0,0,-500,0,0,0], 2, [0.1,0.1,0.03,0.3,0.3,0.3])\nsleep(1)"
    p = places(done(text))
    speed = np.diff(p[:, 2]) / FRAME
    assert speed.min() == pytest.approx(-0.03, rel=1e-3)
    assert np.abs(p[:, :2] - arm().pose(START)[:2, 3]).max() < 1e-4


@pytest.mark.parametrize(
    ("kind", "frame", "selected", "way"),
    [
        (1, "p[0,0,0,0,0,0]", "[0,1,0,0,0,0]", "origin"),  # towards the origin of the frame
        (2, "p[0,0,0,0,0,1.5707963267948966]", "[1,0,0,0,0,0]", "y"),  # x of the frame is y of the base
        (3, "p[0,0,0,0,0,0.3]", "[0,1,0,0,0,0]", "across"),  # the tool goes along x, y of the frame is across
    ],
)
def test_the_frame_of_force_mode(kind: int, frame: str, selected: str, way: str) -> None:
    """Where the tool is led by a wrench along the first or second axis, in the air."""
    wrench = "[20,0,0,0,0,0]" if selected[1] == "1" else "[0,20,0,0,0,0]"
    text = (
        f"force_mode({frame}, {selected}, {wrench}, {kind}, [0.1,0.1,0.1,0.1,0.1,0.1])\n"
        "speedl([0.02,0,0,0,0,0], 1, 1)"
    )
    bench = Bench(text)
    while bench.machine.running:
        bench.frame()
    p = places(bench)
    led = p[-1] - p[0]
    start = arm().pose(START)[:3, 3]
    if way == "origin":
        assert led @ (-start / np.linalg.norm(start)) == pytest.approx(0.01, rel=0.1)
    elif way == "y":
        assert led[1] == pytest.approx(0.01, rel=0.1)
        assert led[0] == pytest.approx(0.02, rel=0.1)
    else:
        assert led[1] == pytest.approx(0.01, rel=0.1)
        assert led[0] == pytest.approx(0.02, rel=0.1)
        assert abs(led[2]) < 1e-4


def test_freedrive_gives_way_along_free_axes_only() -> None:
    bench = Bench("freedrive_mode([1,1,0,1,1,1])\nsleep(9)")
    bench.frame()
    assert bench.setpoint is not None
    np.testing.assert_allclose(bench.setpoint.tau, np.zeros(6), atol=1e-9)  # nothing pushes where it began
    J = arm().jacobian(START)
    for axis, locked in ((0, False), (2, True)):
        step = np.zeros(6)
        step[axis] = 1e-3
        bench.state = replace(bench.state, q=START + np.linalg.solve(J, step), qd=np.zeros(6))
        bench.frame()
        assert bench.setpoint.tau is not None
        force = np.linalg.solve(J.T, bench.setpoint.tau)
        assert force[2] == pytest.approx(-4.0 if locked else 0.0, abs=0.2)
        assert np.abs(force[:2]).max() < 0.1


def test_after_freedrive_the_arm_stays_where_it_was_led() -> None:
    bench = Bench("freedrive_mode()\nsync()\nsync()\nend_freedrive_mode()\nsync()\nx = get_target_joint_positions()\nsync()")
    led = START + 0.1
    bench.frame()
    bench.state = replace(bench.state, q=led, qd=np.zeros(6))
    bench.run()
    np.testing.assert_allclose(bench["x"], led, atol=1e-9)
