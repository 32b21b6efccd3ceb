"""An arm for the reader: drawn at a posture, and as a table of its joints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.figures.figure import Figure, number_row, small_table
from tangere.figures.markup import join, number, tag
from tangere.figures.scene import HEIGHT, WIDTH, scene

if TYPE_CHECKING:
    from tangere.kernels.solutions import IKSolutions
    from tangere.robots import Robot

ACROSS, SHRUNK = 4, 0.4  # small arms beside each other, and their size against a large one: eight fit a notebook


def arm_figure(robot: Robot, q: ArrayLike, *, frames: bool = False) -> Figure:
    """The arm at q (n,) [rad], drawn to scale; q (K, n): at the last of them, with the path of its tcp.

    frames: the frame of every link, x y z in orange, green and blue; else those of base and tcp.
    """
    T = robot.pose(q)  # checks q
    states = np.atleast_2d(np.asarray(q, dtype=np.float64))
    if states.ndim != 2 or not len(states):
        raise InvalidValue(f"q: one posture ({robot.dof},) or several (K, {robot.dof}), got shape {np.shape(q)}")
    path = np.asarray(T).reshape(-1, 4, 4)[:, :3, 3]
    paths = (("a", path),) if len(states) > 1 else ()
    drawn = scene(robot, states, np.arange(len(states), dtype=np.float64), "arm", frames=frames, paths=paths)
    return Figure(f"{robot.model.title}, drawn to scale", drawn.drawn(len(states) - 1), WIDTH, HEIGHT)


def solutions_figure(solutions: IKSolutions) -> Figure:
    """Every solution of a pose as a small arm of its own, with the names of its branches."""
    boxes = []
    for k, (q, branch) in enumerate(zip(solutions.q, _branches(solutions), strict=True)):
        place = f"translate({k % ACROSS * WIDTH * SHRUNK:g} {k // ACROSS * HEIGHT * SHRUNK:g}) scale({SHRUNK:g})"
        label = tag("text", branch, class_="title", x=24, y=34, style="font-size:22px")
        boxes.append(tag("g", arm_figure(solutions.robot, q).parts, label, transform=place))
    columns, rows = min(len(boxes), ACROSS) or 1, -(-len(boxes) // ACROSS) or 1
    title = f"{len(boxes)} solutions of {solutions.robot.model.title}"
    return Figure(title, join(*boxes), round(columns * WIDTH * SHRUNK), round(rows * HEIGHT * SHRUNK))


def _branches(solutions: IKSolutions) -> list[str]:
    """Shoulder, elbow and wrist of each solution in words; "" for an arm without branches."""
    words = zip(solutions.shoulder, solutions.elbow, solutions.wrist, strict=True)
    return [", ".join(word for word in three if word) for three in words]


def solutions_table(solutions: IKSolutions) -> str:
    """The solutions as HTML: joint positions in degrees (m for a slide), branches, and what is singular or too far."""
    robot = solutions.robot
    if not solutions:
        return join(f"no solution: out of reach by {number(1e3 * solutions.distance)} mm")
    turn = np.where(robot.revolute, 180.0 / np.pi, 1.0)
    flags = (
        (solutions.singular_shoulder, "singular shoulder"), (solutions.singular_elbow, "singular elbow"),
        (solutions.singular_wrist, "singular wrist"), (~solutions.within_limits, "beyond the limits"),
    )  # fmt: skip
    rows = [
        (*number_row(q * turn), branch, ", ".join(word for flag, word in flags if flag[k]))
        for k, (q, branch) in enumerate(zip(solutions.q, _branches(solutions), strict=True))
    ]
    units = ["°" if turning else "m" for turning in robot.revolute]
    head = (*(f"q{i + 1} [{unit}]" for i, unit in enumerate(units)), "shoulder, elbow, wrist", "")
    return join(f"{len(solutions)} solutions of {robot.name}", small_table(head, rows))


def robot_table(robot: Robot) -> str:
    """Name and joints of a robot as HTML: limits of position, speed and torque, what each link weighs."""
    model = robot.model
    turn = np.where(robot.revolute, 180.0 / np.pi, 1.0)
    low, high, speed = (number_row(x * turn) for x in (robot.q_min, robot.q_max, robot.qd_max))
    torque, mass = number_row(robot.tau_max), number_row(np.array([link.mass for link in model.links]))
    rows = [
        (str(i + 1), joint.name, f"{low[i]} … {high[i]}", speed[i], torque[i], mass[i])
        for i, joint in enumerate(model.joints)
    ]
    unit = "°" if robot.revolute.all() else "° or m"
    head = ("", "joint", f"position [{unit}]", f"speed [{unit}/s]", "torque [Nm]", "link [kg]")
    parts = [f"{number(sum(link.mass for link in model.links))} kg", f"parameters {model.parameters}"]
    parts += [f"payload {number(model.payload.mass)} kg"] if model.payload is not None else []
    return join(tag("b", model.title), f": {', '.join(parts)}", small_table(head, rows))
