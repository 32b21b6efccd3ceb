"""UR's external control program, as its ROS driver uploads it, drives a virtual arm over three sockets.

It is not part of the repository: TANGERE_UR_PROGRAMS is a folder with external_control.urscript of
Universal_Robots_Client_Library; else this is skipped and said.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_virtual_programs import MULTIPLY, Driven
from virtual_arms import HOME, listening, until, virtual

from tangere.script.compiler import load

STOPPED, SERVO, SPEED, FORWARD, SPEED_TOOL, POSE, FREEDRIVE, TORQUE = -2, 1, 2, 3, 4, 5, 6, 8  # modes
MOVE_J, MOVE_L, SPLINE, CUBIC, QUINTIC = 0, 1, 51, 1, 2  # kinds of points, and of splines
ZERO, PAYLOAD, TCP, SCALES = 0, 1, 10, 11  # commands
PER_TIME = 1000  # milliseconds
FIELDS = ("actual_q", "actual_qd", "actual_TCP_pose", "actual_TCP_speed", "payload", "runtime_state", "safety_mode")


@pytest.fixture(scope="module")
def program() -> str:
    """The program as UR publishes it, with its places to fill in."""
    folder = os.environ.get("TANGERE_UR_PROGRAMS")
    path = Path(folder or ".") / "external_control.urscript"
    if not folder or not path.is_file():
        pytest.skip(f"TANGERE_UR_PROGRAMS: a folder with {path.name} of UR's client library; not tried")
    return path.read_text()


def filled(program: str, version: tuple[int, ...], reverse: int = 1, points: int = 2, told: int = 3) -> str:
    """What the driver makes of it: places are filled, parts for other versions left out."""
    values = {
        "BEGIN_REPLACE": "", "JOINT_STATE_REPLACE": MULTIPLY, "TIME_REPLACE": PER_TIME,
        "SERVER_IP_REPLACE": "127.0.0.1",
        "SERVO_J_REPLACE": "lookahead_time=0.03, gain=2000", "SERVER_PORT_REPLACE": reverse,
        "TRAJECTORY_SERVER_PORT_REPLACE": points, "SCRIPT_COMMAND_SERVER_PORT_REPLACE": told,
    }  # fmt: skip
    lines: list[str] = []
    taken: list[tuple[bool, bool]] = []  # of each `if` we are in: whether this part counts, whether one has already
    for line in program.splitlines():
        if (word := re.match(r"\s*{% (\w+)(?: ROBOT_SOFTWARE_VERSION (<|>=) v([\d.]+))? %}", line)) is None:
            lines += [line] if all(now for now, _ in taken) else []
            continue
        of = tuple(int(part) for part in (word[3] or "0").split("."))
        so = word[1] == "else" or (version < of if word[2] == "<" else version >= of)
        before = word[1] != "if" and taken.pop()[1]
        if word[1] != "endif":
            taken.append((so and not before, so or before))
    assert not taken
    return re.sub(r"{{(\w+)}}", lambda place: str(values[place[1]]), "\n".join([*lines, ""]))


class Frames:
    """A client of RTDE that lets the arm do a frame for each package that it reads: the host is never late."""

    def __init__(self, host: str) -> None:
        self._rtde = listening(host, *FIELDS)
        self._recipe = self._rtde.inputs(("input_int_register_30",))

    def receive(self, timeout: float) -> dict[str, Any] | None:
        self._rtde.send(self._recipe, [0])
        return self._rtde.receive(timeout)

    def close(self) -> None:
        self._rtde.close()


class External(Driven):
    """The host of the program, as the driver has it: longer messages than ours."""

    def point(
        self, q: Sequence[float], kind: int, seconds: float = 0.0, spline: int = 0, more: Sequence[float] = ()
    ) -> None:
        """A point of a trajectory; more: 12 numbers (speed and acceleration at a point of a spline; of a move)."""
        rest = [*more, *(0.0,) * (12 - len(more))]
        whole = (*(round(MULTIPLY * x) for x in (*q, *rest)), round(PER_TIME * seconds), spline, kind)
        self.sockets[1].sendall(struct.pack(">21i", *whole))

    def trajectory(self, count: int) -> None:
        """So many points follow."""
        self.sockets[0].sendall(struct.pack(">8i", 3_600_000, 1, count, 0, 0, 0, 0, FORWARD))

    def result(self, rtde: Frames) -> int:
        """How the trajectory ended: 0 success, 1 cancelled, 2 failed."""
        self.sockets[1].settimeout(0.0)
        while True:
            until(rtde, lambda v: True)
            with suppress(BlockingIOError):
                return int(struct.unpack(">i", self.sockets[1].recv(4))[0])

    def command(self, kind: int, values: Sequence[float] = ()) -> None:
        """Beside the motion."""
        rest = [*values, *(0.0,) * (27 - len(values))]
        self.sockets[2].sendall(struct.pack(">28i", kind, *(round(MULTIPLY * x) for x in rest)))


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    with virtual("--sensors", "ideal", "--wait-for-ever", clock="lockstep") as address:
        yield address


@contextmanager
def driven(host: str, program: str) -> Iterator[tuple[External, Frames]]:
    """The program runs, and the arm's clock with whoever receives."""
    with closing(External(host, lambda *ports: filled(program, (5, 26, 0), *ports))) as driver:
        driver.hear("External control active")
        with closing(Frames(host)) as frames:
            yield driver, frames


@pytest.mark.parametrize("version", [(5, 4, 0), (5, 9, 4), (5, 22, 0), (5, 25, 1), (5, 26, 0), (10, 12, 1)])
def test_it_is_read_in_every_version(program: str, version: tuple[int, int, int]) -> None:
    found = load(f"def driver():\n{filled(program, version)}end\n", version)
    assert "trajectoryThread" in found.functions
    assert "servoThread" in found.coloured


def test_it_drives_the_arm(program: str, host: str) -> None:
    """Servo, speed of joints and of the tool, torque, poses, moves, splines, commands beside them, and the end."""
    with driven(host, program) as (driver, rtde):

        def send(mode: int, values: Sequence[float]) -> None:
            driver.send(mode, values, 3_600_000)

        def rests_at(q: Sequence[float], within: float) -> None:
            until(rtde, lambda v: np.abs(np.subtract(v["actual_q"], q)).max() < within, 600.0)
            still = until(rtde, lambda v: np.abs(v["actual_qd"]).max() < 2e-3, 600.0)
            assert np.abs(np.subtract(still["actual_q"], q)).max() < within

        at = np.array(until(rtde, lambda v: v["runtime_state"] == 2)["actual_q"])
        for _ in range(200):
            at = at + [5e-4, 0.0, 0.0, 0.0, 0.0, -1e-3]
            send(SERVO, at)
            until(rtde, lambda v: True)
        for _ in range(200):  # a driver that stops sending lets the program go on at the last speed
            send(SERVO, at)
            until(rtde, lambda v: True)
        rests_at(at, 1e-3)
        send(SPEED, [0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
        values = until(rtde, lambda v: v["actual_q"][0] > at[0] + 0.05, 600.0)
        assert values["actual_qd"][0] == pytest.approx(0.1, abs=0.02)
        send(SPEED_TOOL, [0.0, 0.0, 0.05, 0.0, 0.0, 0.0])
        high = until(rtde, lambda v: v["actual_TCP_speed"][2] > 0.049, 600.0)["actual_TCP_pose"][2]
        values = until(rtde, lambda v: v["actual_TCP_pose"][2] > high + 0.02, 600.0)
        assert values["actual_TCP_speed"][:3] == pytest.approx([0.0, 0.0, 0.05], abs=2e-3)
        driver.command(SCALES, [0.9] * 6 + [0.8] * 6)
        send(TORQUE, [0.0] * 6)
        still = until(rtde, lambda v: np.abs(v["actual_qd"]).max() < 0.01, 600.0)
        later = until(rtde, lambda v: v["timestamp"] > still["timestamp"] + 2.0, 600.0)
        assert np.abs(np.subtract(later["actual_q"], still["actual_q"])).max() < 1e-2  # gravity is made up for
        goal = np.add(HOME, [0.3, 0.1, -0.1, 0.2, 0.1, -0.3])
        driver.trajectory(3)
        driver.point(HOME, MOVE_J, more=(0.0,) * 6 + (1.0, 1.5))
        driver.point(np.add(HOME, 0.05), SPLINE, 1.0, QUINTIC)
        driver.point(goal, SPLINE, 1.5, QUINTIC)
        assert driver.result(rtde) == 0
        rests_at(goal, 5e-4)
        pose = np.array(until(rtde, lambda v: True)["actual_TCP_pose"])
        driver.trajectory(2)
        driver.point(pose + [0.0, 0.0, 0.05, 0.0, 0.0, 0.0], MOVE_L, more=(0.0,) * 6 + (0.2, 0.5))
        driver.point(goal, SPLINE, 1.0, CUBIC)
        assert driver.result(rtde) == 0
        rests_at(goal, 1e-3)
        for k in range(300):
            send(POSE, pose + [0.0, 0.0, 1e-4 * min(k, 100), 0.0, 0.0, 0.0])
            until(rtde, lambda v: True)
        until(rtde, lambda v: abs(v["actual_TCP_pose"][2] - pose[2] - 0.01) < 2e-4, 600.0)
        driver.command(PAYLOAD, [1.5, 0.0, 0.0, 0.05])
        until(rtde, lambda v: v["payload"] == 1.5, 600.0)
        driver.command(TCP, [0.0, 0.0, 0.1, 0.0, 0.0, 0.0])
        until(rtde, lambda v: np.linalg.norm(np.subtract(v["actual_TCP_pose"], pose)[:3]) > 0.09, 600.0)
        driver.command(ZERO)
        send(STOPPED, [0.0] * 6)
        values = until(rtde, lambda v: v["runtime_state"] == 1, 600.0)
        driver.hear("All threads ended")
        assert values["safety_mode"] == 1


def test_a_silent_host_ends_it(program: str, host: str) -> None:
    with driven(host, program) as (driver, rtde):
        driver.send(SPEED, [0.2, 0.0, 0.0, 0.0, 0.0, 0.0], 500)
        until(rtde, lambda v: v["actual_qd"][0] > 0.15, 600.0)
        until(rtde, lambda v: v["runtime_state"] == 1, 600.0)
        driver.hear("Socket timed out waiting for command on reverse_socket")
        values = until(rtde, lambda v: np.abs(v["actual_qd"]).max() < 0.01, 60.0)
        assert values["safety_mode"] == 1
