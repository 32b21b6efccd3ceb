"""Virtual work: forces that balance do no work in any displacement that the joints allow (003).

    delta W = F . delta r + tau . delta q - g . delta q = 0  for every delta q,   delta r = J delta q

so that tau = g - J^T F holds the arm against a force F on its tool: no free-body diagram, no forces inside the joints.
The planar arm of 003 holds 10 N; each joint is displaced by itself, and the work of all forces is counted from the
displaced poses themselves, without the Jacobian: it vanishes with the square of the displacement.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere
from tangere.apps.textbook.sketches import virtual_displacement_sketch

FORCE = np.array([6.0, 0.0, -8.0])  # N on the tool, base axes
Q = np.array([0.4, 0.5, 0.3])  # rad


def work(arm: tangere.Robot, tau: np.ndarray, dq: np.ndarray) -> float:
    """Work [J] of force, weight and joint torques in the displacement dq, from the poses before and after."""
    dr = arm.pose(Q + dq)[:3, 3] - arm.pose(Q)[:3, 3]
    still = np.zeros(arm.dof)
    weight = arm.energy(Q, still)[1] - arm.energy(Q + dq, still)[1]
    return float(FORCE @ dr + weight + tau @ dq)


def main() -> None:
    arm = tangere.robot("planar3r")
    tau = arm.gravity_torque(Q) - arm.jacobian(Q)[:3].T @ FORCE
    print(f"torques that hold 10 N: {np.round(tau, 3)} Nm")
    for joint in range(arm.dof):
        dq = 1e-4 * np.eye(arm.dof)[joint]
        small, large = work(arm, tau, dq), work(arm, tau, 10.0 * dq)
        times = f"{large / small:.1f} times"
        print(f"joint {joint + 1}: work {small:.1e} J in 1e-4 rad, {large:.1e} J in 1e-3 rad: {times}")
    wrong = tau + np.array([0.0, 0.5, 0.0])
    print(f"with 0.5 Nm too much on joint 2: {work(arm, wrong, 1e-4 * np.eye(3)[1]):.1e} J, of first order")
    place = Path(tempfile.mkdtemp()) / "virtual_work.svg"
    print(virtual_displacement_sketch(arm, Q, 2).save(place))


if __name__ == "__main__":
    main()
