"""An arm on a satellite: nothing to push against, and yet it can turn round.

Without outer forces momentum is conserved, whatever the joints do:

    M(q) udot + b(q, u) = S^T tau   =>   linear and angular momentum of the whole stay zero

The centre of mass therefore stands still. The attitude does not: angular momentum zero does not mean angle zero. The
arm goes round a loop in its joints, out, over, back and over again, ends exactly as it began, and the satellite has
turned: what a falling cat does. The first six equations, which have no torque in them, give the motion of the body,

    M_bb udot_b = -(M_bj qdd + b_b)

and the momentum, computed from the velocities alone, is the check.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere
from tangere.apps.textbook.floating_base import FloatingBase
from tangere.model.model import Link

# a cube of 1 m and 150 kg: small enough to be turned by an arm of 29 kg; m a^2 / 6 on every axis
SATELLITE = Link("satellite", 150.0, np.zeros(3), np.eye(3) * 150.0 / 6.0)
T_BODY_ARM = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.5], [0, 0, 0, 1]])  # on the middle of the top
Q_0 = np.radians([0.0, -45.0, 60.0, -105.0, -90.0, 0.0])
# the loop: shoulder out, base round, shoulder back, base back; one second each
CORNERS = np.tile(Q_0, (5, 1))
CORNERS[:, :2] += np.radians([[0, 0], [0, 60], [90, 60], [90, 0], [0, 0]])
H = 0.025  # s: 40 steps a side; Runge-Kutta then errs by some 1e-5 of what moves, and by a sixteenth with half of H


def joint_acceleration(time: float) -> np.ndarray:
    """qdd (6,) [rad/s2] of the loop: each side is 10 x^3 - 15 x^4 + 6 x^5, which starts and ends at rest."""
    side = min(int(time + 1e-9), len(CORNERS) - 2)
    x = time - side
    return np.asarray((CORNERS[side + 1] - CORNERS[side]) * (60.0 * x - 180.0 * x**2 + 120.0 * x**3))


def slope(arm: FloatingBase, q: np.ndarray, u: np.ndarray, time: float) -> tuple[np.ndarray, np.ndarray]:
    """qdot and udot when the joints move as they are told."""
    udot = np.concatenate([np.zeros(6), joint_acceleration(time)])
    unbalanced = arm.inverse_dynamics(q, u, udot)[:6]  # what would have to hold a body that does not give way
    udot[:6] = np.linalg.solve(arm.mass_matrix(q)[:6, :6], -unbalanced)
    return arm.velocity_map_inverse(q) @ u, udot


def centre_of_mass(arm: FloatingBase, q: np.ndarray) -> np.ndarray:
    """(3,) [m], inertial axes."""
    poses = [arm.body_pose(q), *arm.link_poses(q)]
    bodies = [arm.body, *arm.model.links]
    moments = [body.mass * (T[:3, :3] @ body.com + T[:3, 3]) for body, T in zip(bodies, poses, strict=True)]
    return np.asarray(np.sum(moments, axis=0) / sum(body.mass for body in bodies))


def main() -> None:
    arm = FloatingBase(tangere.robot("ur10e", gravity=[0.0, 0.0, 0.0]).model, SATELLITE, T_body_arm=T_BODY_ARM)
    q = np.concatenate([np.zeros(3), [1.0, 0.0, 0.0, 0.0], Q_0])  # position, quaternion, joints
    u = np.zeros(arm.dof)
    path = [q]
    com, momentum, share = centre_of_mass(arm, q), 0.0, 0.0
    print("   t [s]   body turned [deg]   body moved [mm]   centre of mass moved [mm]")
    for k in range(round((len(CORNERS) - 1) / H)):
        t = k * H
        q1, u1 = slope(arm, q, u, t)
        q2, u2 = slope(arm, q + 0.5 * H * q1, u + 0.5 * H * u1, t + 0.5 * H)
        q3, u3 = slope(arm, q + 0.5 * H * q2, u + 0.5 * H * u2, t + 0.5 * H)
        q4, u4 = slope(arm, q + H * q3, u + H * u3, t + H)
        q, u = q + H / 6.0 * (q1 + 2 * q2 + 2 * q3 + q4), u + H / 6.0 * (u1 + 2 * u2 + 2 * u3 + u4)
        q[3:7] /= np.linalg.norm(q[3:7])
        path.append(q)
        momentum = max(momentum, float(np.abs(arm.momentum(q, u)).max()))
        joints = np.concatenate([np.zeros(6), u[6:]])  # the arm's motion alone, as if the body stood still
        share = max(share, float(np.abs(arm.momentum(q, joints)).max()))
        if (k + 1) % round(1.0 / H) == 0:
            turned = np.degrees(2.0 * np.arctan2(np.linalg.norm(q[4:7]), abs(q[3])))
            drift = 1e3 * np.linalg.norm(centre_of_mass(arm, q) - com)
            print(f"   {t + H:5.1f}   {turned:17.3f}   {1e3 * np.linalg.norm(q[:3]):15.1f}   {drift:25.1e}")
    print(f"largest momentum of the whole {momentum:.1e}, of the arm as its joints move it {share:.1f} kg m/s, kg m2/s")
    back = np.degrees(np.abs(q[7:] - Q_0).max())
    print(f"joints back where they began within {back:.0e} deg; the satellite is not")
    moved = np.array(path)
    columns = {"time": H * np.arange(len(moved)), "q": moved[:, 7:], "body": moved[:, :3], "turn": moved[:, 4:7]}
    figure = tangere.Log(columns).plot("q", "body", "turn")
    print(f"picture: {figure.save(Path(tempfile.mkdtemp(prefix='tangere-')) / 'satellite.svg')}")


if __name__ == "__main__":
    main()
