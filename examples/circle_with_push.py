"""A circle, a push, and the arm feels it: plant, controller, observer and detector joined by one call.

A UR10e draws a circle under computed torque while somebody turns its shoulder with 20 Nm. There is no sensor for that
in the joints: the push is found in the change of the momentum p = M qd that no known torque explains,

    dp/dt = tau + tau_ext + C^T qd - g - friction,    dr/dt = K (tau_ext - r)   (000 eqs 105 to 108)

so r follows tau_ext like 20 (1 - exp(-K t)), without any acceleration being measured.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere
from tangere.control import ComputedTorque
from tangere.dynamics.friction import JointFriction
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.momentum import MomentumObserver
from tangere.planning import ramped_circle
from tangere.plants import Push, RigidPlant

PERIOD = 0.002  # s: 500 Hz, what a UR e-Series takes
GAIN = 50.0  # 1/s: the estimate lags by 20 ms
THRESHOLD = 2.0  # Nm: far above the quiet residual of an exact model, a tenth of the push
PUSH = Push(joint=2, torque=20.0, start=2.0, duration=1.5)


def main() -> None:
    robot = tangere.robot("ur10e", rotor_inertia=True)  # the drives' inertia is most of the wrist's
    friction = JointFriction.of(robot.drives)
    circle = ramped_circle(robot, duration=5.0, period=PERIOD)

    result = tangere.run(
        RigidPlant(robot, PERIOD, friction=friction, pushes=[PUSH]),
        ComputedTorque(robot, circle, friction=friction),
        [MomentumObserver(robot, GAIN, friction)],
        trajectory=circle,
        detector=Detector(Thresholds.constant(THRESHOLD)),
    )

    log = result.log
    error = 1e3 * np.linalg.norm(log.position("T_true") - log.position("T_des"), axis=1)
    before = log.time < PUSH.start
    print(f"{result.duration:.1f} s simulated, {len(log)} periods of {1e3 * PERIOD:g} ms")
    print(f"off the circle: at most {error[before].max():.3f} mm before the push, {error.max():.1f} mm because of it")
    quiet = np.abs(log["residual"][before]).max()
    print(f"largest residual before the push: {quiet:.4f} Nm")
    for felt in result.events:
        when, late = f"{felt.time_s:.3f} s", 1e3 * (felt.time_s - PUSH.start)
        print(f"felt on joint {felt.joint} at {when}, {late:.0f} ms after onset; over at {felt.end_s:.3f} s")

    print("   since the push [ms]   residual [Nm]   20 (1 - exp(-K t)) [Nm]")
    r = log["residual"][:, PUSH.joint - 1]
    for t in (0.01, 0.02, 0.05, 0.1, 0.5):
        k = round((PUSH.start + t) / PERIOD)
        print(f"   {1e3 * t:19.0f}   {r[k]:13.3f}   {PUSH.torque * -np.expm1(-GAIN * t):23.3f}")
    settled = log.between(PUSH.start + 5.0 / GAIN, PUSH.start + PUSH.duration)
    estimate = settled["residual"][:, PUSH.joint - 1].mean()
    print(f"estimated after five time constants: {estimate:.2f} Nm, applied {PUSH.torque:g} Nm")
    print(f"page: {result.report(Path(tempfile.mkdtemp(prefix='tangere-')) / 'circle.html')}")


if __name__ == "__main__":
    main()
