"""What the joints must hold: the same pose with a gripper, on the ceiling, and on a wall.

Gravity torque is the gradient of the potential energy, g(q) = dU/dq. A payload adds to it, a mounting turns it, and the
kinematics do not change. Holding still needs exactly tau = g(q).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere

Q = np.radians([0.0, -45.0, 60.0, -105.0, -90.0, 0.0])  # arm half stretched, tool down
GRIPPER = (3.0, [0.0, 0.0, 0.08])  # kg, and the centre of mass in the flange frame [m]
TOOL = [0.0, 0.0, 0.16]  # m: the fingertips, in the flange frame


def main() -> None:
    arms = {
        "on a table": tangere.robot("ur10e"),
        "with a 3 kg gripper": tangere.robot("ur10e", payload=GRIPPER, tool=TOOL),
        "on the ceiling": tangere.robot("ur10e", gravity=[0.0, 0.0, 9.81]),
        "on a wall, x up": tangere.robot("ur10e", gravity=[-9.81, 0.0, 0.0]),
    }
    print(f"{'gravity torque [Nm]':<22}", *(f"{name:>9}" for name in ("base", "shoulder", "elbow", "wrist 1")))
    for name, robot in arms.items():
        g = robot.gravity_torque(Q)
        print(f"{name:<22}", *(f"{value + 0.0:9.2f}" for value in g[:4].round(2)))

    # a payload by the principle of virtual work: the torque it adds is J^T times its weight, at its centre of mass
    bare, loaded = arms["on a table"], arms["with a 3 kg gripper"]
    mass, com = GRIPPER
    at_com = tangere.robot("ur10e", tool=com)
    weight = np.array([0.0, 0.0, -9.81 * mass, 0.0, 0.0, 0.0])  # the wrench that gravity applies to it [N, Nm]
    added = -at_com.jacobian(Q).T @ weight
    deviation = np.abs(loaded.gravity_torque(Q) - bare.gravity_torque(Q) - added).max()
    print(f"payload against virtual work: {deviation:.0e} Nm")

    drop = bare.pose(Q)[2, 3] - loaded.pose(Q)[2, 3]
    print(f"the fingertips are {drop:.3f} m below the flange")
    picture = loaded.plot(Q, frames=True).save(Path(tempfile.mkdtemp(prefix="tangere-")) / "arm.svg")
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
