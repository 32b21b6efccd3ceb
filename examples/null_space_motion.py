"""Null-space motion: the tip of the tool stands still while all six joints move.

Three coordinates of the tip on six joints leave three free directions, the null space of J (3 x 6). A velocity that is
projected into it moves the arm and not the tip, J N = 0:

    qd = J^+ w + N qd_0,   N = I - J^+ J

J^+ must be the Moore-Penrose inverse. With a damped inverse (which 003 calls by that name) or with the transpose J N is
not zero, and the tip moves. First the projectors, then the same by torque: the tip has the first priority, a swing of
all joints the second.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere
from tangere.control import JointTask, PrioritisedTasks, ToolTask
from tangere.kinematics.resolution import damped_inverse, null_space_projector
from tangere.planning import Sine
from tangere.plants import RigidPlant

Q = np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
PEN = [0.0, 0.0, 0.15]  # m: the tip, in the flange frame
PERIOD = 0.002  # s
SWING, FREQUENCY = np.radians(15.0), 0.25  # rad, Hz: wished for in every joint


def main() -> None:
    robot = tangere.robot("ur10e", tool=PEN, rotor_inertia=True)
    J = robot.jacobian(Q)[:3]
    projectors = {
        "I - J^+ J": null_space_projector(J),
        "I - J^D J, damping 0.1": np.eye(6) - damped_inverse(J, 0.1) @ J,
        "I - J^T J": np.eye(6) - J.T @ J,
    }
    qd_0 = np.full(6, 0.5)  # rad/s
    free = round(np.trace(projectors["I - J^+ J"]))  # the rank of a projector is its trace
    print(f"{len(J)} coordinates of the tip on {robot.dof} joints: {free} directions are free")
    for name, N in projectors.items():
        print(f"   {name:<24} moves the tip at {1e3 * np.linalg.norm(J @ N @ qd_0):8.2e} mm/s")

    swing = Sine(robot, Q, SWING, FREQUENCY, duration=6.0)
    tasks: dict[str, list[ToolTask | JointTask]] = {
        "tip first, swing second": [ToolTask(None, "position"), JointTask(swing)],
        "swing alone": [JointTask(swing)],
    }
    print("   by torque                  tip moves [mm]   tool turns [deg]   joints move [deg]")
    for name, wishes in tasks.items():
        plant = RigidPlant(robot, PERIOD)
        result = tangere.run(plant, PrioritisedTasks(robot, wishes), until=6.0, start=Q)
        log = result.log
        p, axes = log.position("T_true"), log["T_true"].reshape(-1, 3, 4)[:, :, :3]
        tip = 1e3 * np.linalg.norm(p - p[0], axis=1).max()
        # the angle of R_0^T R from its trace, 1 + 2 cos(angle)
        cosine = 0.5 * (np.einsum("ij,kij->k", axes[0], axes) - 1.0)
        turned = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)).max())
        joints = np.degrees(np.abs(log["q_true"] - Q).max())
        print(f"   {name:<24} {tip:16.4f}   {turned:16.1f}   {joints:17.1f}")
    picture = log.plot("q_true").save(Path(tempfile.mkdtemp(prefix="tangere-")) / "swing.svg")
    print(f"picture of the last: {picture}")


if __name__ == "__main__":
    main()
