"""One call for many states: where in its workspace does an arm find it hardest to hold a load?

Every method takes leading batch axes. A hundred thousand postures go through gravity torque and Jacobian as two arrays;
a Python loop would only add its own time. Reported is the share of postures in which a joint would need more than half
of its rated torque just to stand still, and how well the arm can move there (Yoshikawa's measure, sqrt det J J^T, which
for a six-joint arm is |det J|).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere

COUNT = 100_000
PAYLOAD = 10.0  # kg: the rated payload of a UR10e in its first release (12.5 today)


def main() -> None:
    robot = tangere.robot("ur10e", payload=(PAYLOAD, [0.0, 0.0, 0.05]))
    tau_max = np.array([joint.tau_max for joint in robot.model.joints])
    q = np.random.default_rng(1).uniform(-np.pi, np.pi, (COUNT, 6))

    load = np.abs(robot.gravity_torque(q)) / tau_max  # (COUNT, 6)
    mobility = np.abs(np.linalg.det(robot.jacobian(q)))  # (COUNT,)

    hardest = np.unravel_index(load.argmax(), load.shape)
    print(f"{COUNT} postures, {PAYLOAD:g} kg")
    print("share of rated torque to stand still, median and largest per joint [%]")
    for name, share in (("median", np.median(load, axis=0)), ("largest", load.max(axis=0))):
        print(f"  {name:<8}", *(f"{100 * value:6.1f}" for value in share))
    print(f"more than half of it on some joint: {100 * (load > 0.5).any(axis=1).mean():.1f} % of the postures")
    print(f"hardest: joint {hardest[1] + 1} at q =", np.degrees(q[hardest[0]]).round(0), "deg")
    print(f"median |det J| {np.median(mobility):.3f}, in the hardest posture {mobility[hardest[0]]:.3f}")

    one = robot.gravity_torque(q[hardest[0]])
    print("one state alone gives the same bits:", bool((np.abs(one) / tau_max == load[hardest[0]]).all()))
    picture = robot.plot(q[hardest[0]]).save(Path(tempfile.mkdtemp(prefix="tangere-")) / "hardest.svg")
    print(f"picture of it: {picture}")


if __name__ == "__main__":
    main()
