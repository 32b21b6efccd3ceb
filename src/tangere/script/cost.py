"""What a frame costs: the time that the machine itself takes, by what the program does in it."""

from __future__ import annotations

from statistics import median
from time import perf_counter

import numpy as np

from tangere.robots import Robot
from tangere.script.compiler import load
from tangere.script.host import FRAME
from tangere.script.machine import Machine
from tangere.types import State

# rad: a UR that is not singular, so that its tool can go anywhere nearby
POSTURE = (0.1, -1.5, 1.6, -1.7, -1.5, 0.2)
FRAMES = 2000  # of each program: its moves last longer than that
ROUNDS = 3  # all programs in turn, so that a busy moment of the computer hits each; the least median counts

PROGRAMS = {
    "nothing (sync)": "while True:\n sync()\nend",
    "servoj": "q = get_target_joint_positions()\nwhile True:\n servoj(q, t=0.002, lookahead_time=0.1, gain=300)\nend",
    "speedj": "while True:\n speedj([0.001, 0, 0, 0, 0, 0], 1.0, 0.002)\nend",
    "speedl": "while True:\n speedl([0.001, 0, 0, 0, 0, 0], 1.0, 0.002)\nend",
    "movej": "q = get_target_joint_positions()\nmovej(q + 0.2, v=0.04)",
    "movel": "movel(pose_trans(get_target_tcp_pose(), p[0.1, 0, 0, 0, 0, 0.3]), v=0.02)",
    "direct_torque": (
        "s = [0.9, 0.9, 0.8, 0.9, 0.9, 0.9]\nwhile True:\n"
        " direct_torque([0, 0, 0, 0, 0, 0], viscous_scale=s, coulomb_scale=s)\nend"
    ),
    "force_mode": (
        "force_mode(p[0,0,0,0,0,0], [0,0,1,0,0,0], [0,0,1,0,0,0], 2, [0.1,0.1,0.1,0.1,0.1,0.1])\n"
        "while True:\n sync()\nend"
    ),
    "get_mass_matrix": "while True:\n m = get_mass_matrix()\n sync()\nend",
    "get_inverse_kin": "x = get_actual_tcp_pose()\nwhile True:\n q = get_inverse_kin(x)\n sync()\nend",
}


def costs(robot: Robot, frames: int = FRAMES, rounds: int = ROUNDS) -> dict[str, float]:
    """Median time [s] of a frame for each of PROGRAMS, on an arm that is at once where it shall be."""
    found: dict[str, float] = {}
    for _ in range(rounds):
        for name, text in PROGRAMS.items():
            found[name] = min(found.get(name, np.inf), _cost(robot, text, frames))
    return found


def _cost(robot: Robot, text: str, frames: int) -> float:
    q = np.array(POSTURE)
    machine = Machine(load(text), robot, q)
    tau, wrench, times = robot.gravity_torque(q), np.zeros(6), []
    state = State(0.0, FRAME, q, np.zeros(6), tau, wrench)
    for k in range(1, frames):
        begin = perf_counter()
        setpoint = machine.frame(state)
        times.append(perf_counter() - begin)
        state = State(k * FRAME, FRAME, setpoint.q, setpoint.qd, tau, wrench)
    assert machine.running, machine.ended
    return median(times)
