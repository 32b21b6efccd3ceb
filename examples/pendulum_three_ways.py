"""One torque by three mechanics: Newton-Euler, Lagrange and projected Newton-Euler, for 003's two teaching robots.

    Newton-Euler   forces from link to link, then along each axis: the library's own, robot.inverse_dynamics
    Lagrange       tau = d/dt dL/dqd - dL/dq,  L = T - V, differentiated by hand
    projected      tau = sum_i J_Si^T m_i (a_Si - g) + J_Ri^T I_i alpha_i

Pendulum: L = m l^2 theta'^2 / 2 + m g l cos theta, so dL/dtheta = -m g l sin theta (003 prints it with a plus).
Planar 3R: in the absolute angles phi = (q1, q1 + q2, q1 + q2 + q3), from the vertical,

    T = 1/2 sum_ij A_ij cos(phi_i - phi_j) phi_i' phi_j',   V = g sum_i B_i cos phi_i

with B_i = m_i c_i + l_i (mass beyond i), A_ij = l_i B_j for i < j, and A_ii = I_i + m_i c_i^2 + l_i^2 (mass beyond i).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere

G = 9.81  # m/s2, as in the models
LENGTH = np.array([0.5, 0.4, 0.2])  # m, of planar3r
S = np.tril(np.ones((3, 3)))  # phi = S q


def pendulum(robot: tangere.Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Torque (1,) [Nm] by Lagrange and projected; 1 m long."""
    m = robot.model.links[0].mass
    lagrange = m * qdd + m * G * np.sin(q)
    s, c = np.sin(q[0]), np.cos(q[0])
    J = np.array([c, 0.0, s])  # of the mass at (sin, 0, -cos)
    a = J * qdd[0] + np.array([-s, 0.0, c]) * qd[0] ** 2
    return lagrange, np.array([J @ (m * (a + [0.0, 0.0, G]))])


def planar(robot: tangere.Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Torque (3,) [Nm] by Lagrange and projected."""
    m = np.array([link.mass for link in robot.model.links])
    inertia = np.array([link.inertia[1, 1] for link in robot.model.links])  # about y, the axis of all joints
    c = LENGTH + [link.com[2] for link in robot.model.links]  # m from a link's joint to its centre of mass
    phi, phid, phidd = S @ q, S @ qd, S @ qdd

    beyond = np.array([m[1] + m[2], m[2], 0.0])
    B = m * c + LENGTH * beyond
    A = np.array([[LENGTH[min(i, j)] * B[max(i, j)] for j in range(3)] for i in range(3)])
    A[np.diag_indices(3)] = inertia + m * c**2 + LENGTH**2 * beyond
    between = phi[:, None] - phi
    # d/dt dL/dphi' - dL/dphi, then the virtual work tau . dq = force . dphi with dphi = S dq
    force = (A * np.cos(between)) @ phidd + (A * np.sin(between)) @ phid**2 - G * B * np.sin(phi)
    lagrange = S.T @ force

    along = np.stack([np.sin(phi), np.cos(phi)])  # (2, 3): x and z of the links' directions
    across = np.stack([np.cos(phi), -np.sin(phi)])  # their derivatives by phi
    projected = np.zeros(3)
    for i in range(3):
        reach = np.array([*LENGTH[:i], c[i], *np.zeros(2 - i)])  # of each link's length, up to this centre of mass
        a = across @ (reach * phidd) - along @ (reach * phid**2)
        J_S, J_R = (across * reach) @ S, S[i]
        projected += J_S.T @ (m[i] * (a + [0.0, G])) + J_R * (inertia[i] * phidd[i])
    return lagrange, projected


def main() -> None:
    rng = np.random.default_rng(1)
    for name, by_hand in (("pendulum", pendulum), ("planar3r", planar)):
        robot = tangere.robot(name)
        states = rng.uniform(-3.0, 3.0, (1000, 3, robot.dof))  # q [rad], qd [rad/s], qdd [rad/s2]
        newton = np.array([robot.inverse_dynamics(*state) for state in states])
        hands = np.array([by_hand(robot, *state) for state in states])  # (1000, 2, n)
        print(f"{name}: torques up to {np.abs(newton).max():.1f} Nm in {len(states)} random states")
        print(f"   at q = {states[0, 0].round(2)} rad")
        rows = (("Newton-Euler", newton[0]), ("Lagrange", hands[0, 0]), ("projected", hands[0, 1]))
        for way, tau in rows:
            print(f"   {way:<14}", *(f"{value:18.12f}" for value in tau), "Nm")
        print(f"   largest difference of the three: {np.abs(hands - newton[:, None]).max():.1e} Nm")
    picture = robot.plot(states[0, 0], frames=True).save(Path(tempfile.mkdtemp(prefix="tangere-")) / "planar.svg")
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
