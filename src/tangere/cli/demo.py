"""The first look: a UR10e pose, all joint positions that reach it, and the terms of its equation of motion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tangere.report.terminal import matrix, number, paint, table

if TYPE_CHECKING:
    from tangere.robots import Robot

# An everyday working pose, tool pointing straight down (q2 + q3 + q4 = q5 = -90 deg), away from every singularity,
# so that all eight branches of the inverse kinematics exist.
Q_DEG = (30.0, -75.0, 100.0, -115.0, -90.0, 15.0)
# Moderate rates, every joint moving, so that no entry of C hides.
QD_DEG = (20.0, -30.0, 40.0, 25.0, -15.0, 60.0)
# The names that the teach pendant shows.
JOINTS = ("base", "shoulder", "elbow", "wrist 1", "wrist 2", "wrist 3")


def demo_text(robot: Robot, q: ArrayLike, qd: ArrayLike, colour: bool = False) -> str:
    """What `tangere demo` prints: pose, IK solutions, M, C and g of a six-joint arm, with units.

    robot: a UR arm. q, qd: (6,) rad, rad/s. colour: whether to use terminal escape codes.
    """
    q = np.asarray(q, dtype=float)
    qd = np.asarray(qd, dtype=float)
    T = robot.pose(q)
    solutions = robot.inverse_kinematics(T, reference=q)
    M = robot.mass_matrix(q)
    C = robot.coriolis_matrix(q, qd)
    g = robot.gravity_torque(q)

    def heading(text: str) -> str:
        return paint(text, "heading", colour)

    lines = [heading(f"{robot.model.title}, parameter set {robot.model.parameters}"), ""]
    lines += [heading("Joint positions q [deg] and rates qd [deg/s]")]
    lines += [*matrix(np.degrees([q, qd]), 2, header=JOINTS, names=("q", "qd")), ""]

    lines += [heading("Pose of the tool in the base frame, T_base_tcp = [R p], p in m")]
    lines += [*matrix(T[:3], 5), ""]

    rows = []
    for k, q_k in enumerate(solutions.q):
        labels = (solutions.shoulder[k], solutions.elbow[k], solutions.wrist[k])
        rows.append([str(k + 1), *labels, *(number(v, 2) for v in np.degrees(q_k))])
    nearest = int(np.argmin([np.abs(q_k - q).max() for q_k in solutions.q]))
    rows[nearest].append("<- q itself")
    error = max(float(np.abs(robot.pose(q_k) - T).max()) for q_k in solutions.q)
    lines += [heading(f"Inverse kinematics: {len(rows)} joint positions reach that pose [deg]")]
    ik = table(rows, ("", "shoulder", "elbow", "wrist", *JOINTS), "rlll" + "r" * 6)
    ik[2 + nearest] = paint(ik[2 + nearest], "good", colour)
    lines += [*ik, f"  largest deviation of their poses from it: {error:.0e}", ""]

    lines += [heading("Mass matrix M(q) [kg m2]")]
    lines += [*matrix(M, 4), ""]
    lines += [heading("Coriolis matrix C(q, qd) [Nm s]")]
    lines += [*matrix(C, 4), ""]
    lines += [heading("Torques [Nm]: M qdd + C qd + g + friction = tau + tau_ext")]
    lines += matrix([g, C @ qd], 3, header=JOINTS, names=("g", "C qd"))
    return "\n".join(lines)


def main(colour: bool = False) -> int:
    """Print the demonstration; returns the exit code."""
    import tangere

    print(demo_text(tangere.robot("ur10e"), np.radians(Q_DEG), np.radians(QD_DEG), colour))
    return 0
