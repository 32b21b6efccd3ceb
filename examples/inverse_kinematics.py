"""All joint positions that reach a pose, and how to follow a path without jumping between them.

A UR arm reaches most poses in eight ways: shoulder left or right, elbow up or down, wrist flipped or not. Following a
path means staying on one branch: at every step take the solution nearest to the last one. Here the tool draws a
horizontal circle of 0.3 m diameter, pointing down.

    p = c + R (cos s, sin s, 0),   tool axis = -z of the base
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere

CENTRE = np.array([-0.60, -0.30, 0.30])  # m, in the base frame: in front of the arm, well inside its reach
RADIUS = 0.15  # m
STEPS = 240  # 1.5 degrees of the circle each: 4 mm


def circle(robot: tangere.Robot, q_start: np.ndarray) -> np.ndarray:
    """Joint positions (STEPS + 1, 6) along the circle, on the branch of q_start."""
    R_tool_down = np.diag([1.0, -1.0, -1.0])
    q, path = q_start, []
    for s in np.linspace(0.0, 2.0 * np.pi, STEPS + 1):
        T = np.eye(4)
        T[:3, :3] = R_tool_down
        T[:3, 3] = CENTRE + RADIUS * np.array([np.cos(s), np.sin(s), 0.0])
        solutions = robot.inverse_kinematics(T, reference=q)
        q = solutions.nearest(q)
        path.append(q)
    return np.array(path)


def main() -> None:
    robot = tangere.robot("ur10e")

    T = np.eye(4)
    T[:3, :3] = np.diag([1.0, -1.0, -1.0])
    T[:3, 3] = CENTRE + [RADIUS, 0.0, 0.0]
    solutions = robot.inverse_kinematics(T)
    print(f"{len(solutions.q)} ways to stand at the start:")
    for k, q in enumerate(solutions.q):
        branch = f"shoulder {solutions.shoulder[k]}, elbow {solutions.elbow[k]}, wrist {solutions.wrist[k]}"
        print(f"  {branch:<45}", np.degrees(q).round(1))

    q_start = solutions.nearest(np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0]))
    path = circle(robot, q_start)
    largest_step = np.degrees(np.abs(np.diff(path, axis=0)).max())
    back = np.degrees(np.abs(path[-1] - path[0]).max())
    print(f"largest joint step along the circle {largest_step:.2f} deg, back at the start within {back:.1e} deg")

    unreachable = T.copy()
    unreachable[:3, 3] = [-3.0, 0.0, 0.3]
    print(f"three metres away: {len(robot.inverse_kinematics(unreachable).q)} solutions, and no exception")
    print(f"picture of all: {solutions.plot().save(Path(tempfile.mkdtemp(prefix='tangere-')) / 'solutions.svg')}")


if __name__ == "__main__":
    main()
