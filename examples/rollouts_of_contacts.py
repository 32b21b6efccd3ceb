"""A thousand contacts on a moving UR10e within seconds: how soon are they felt, and which are not?

Every rollout is a whole closed loop: an arm with friction and a payload that its controller does not know, noisy
sensors, computed torque, the momentum observer, a detector, and somewhere on some link a push. Noise and pushes follow
from the seed and the number of the rollout, so any of them can be looked at again: the one that was felt last is
replayed as an ordinary run, and its page is written.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

import tangere
from tangere.control import ComputedTorque
from tangere.dynamics.friction import JointFriction
from tangere.kernels.rollouts import available
from tangere.observe import MomentumObserver
from tangere.observe.detect import Detector, Thresholds
from tangere.planning import Sine
from tangere.plants import RandomPushes, SensorModel

COUNT = 1000 if available() else 3  # without a compiler the Python loop serves, some hundred times slower
SECONDS, PERIOD = 2.0, 1e-3
PAYLOAD = (0.1, 1.0)  # kg that nobody was told of, lightest and heaviest


def main() -> None:
    robot = tangere.robot("ur10e", rotor_inertia=True)
    friction = JointFriction.of(robot.drives)
    swing = Sine(robot, np.radians([0, -90, 90, -90, -90, 0]), amplitude=0.3, frequency=0.4, duration=SECONDS)

    begin = perf_counter()
    rolls = tangere.rollouts(
        robot,
        controller=ComputedTorque(robot, swing, kp=400.0, friction=friction),
        observer=MomentumObserver(robot, friction=friction),
        detector=Detector(Thresholds.constant(20.0, robot.dof)),
        sensors=SensorModel.preset("ur10e", PERIOD),
        pushes=RandomPushes(force=(50.0, 150.0), start=(0.6, 1.2)),
        friction=friction,
        payload=np.linspace(*PAYLOAD, COUNT),
        count=COUNT,
        seconds=SECONDS,
        period=PERIOD,
        seed=1,
    )
    rate = COUNT * SECONDS / PERIOD / (perf_counter() - begin)
    print(f"{COUNT} closed loops of {SECONDS:g} s, {rate / 1e6:.2g} million steps a second ({rolls.instruction_set})")

    found = np.isfinite(rolls.delay_s)
    half, most = 1e3 * np.quantile(rolls.delay_s[found], [0.5, 0.95])
    print(f"felt: {100 * found.mean():.0f} %, half of these within {half:.0f} ms, 95 % within {most:.0f} ms")
    print(f"alarms before the push: {rolls.early.sum()}; largest tracking error {rolls.error_peak.max():.3f} rad")

    last = int(np.nanargmax(rolls.delay_s))
    result = rolls.replay(last)
    same = np.array_equal(result.log["residual"][-1], rolls.residual[last])
    page = result.report(Path(tempfile.mkdtemp()) / "rollout.html")
    print(f"felt last: number {last}, after {1e3 * rolls.delay_s[last]:.0f} ms; replayed to the bit: {same}")
    print(f"its page: {page}")


if __name__ == "__main__":
    main()
