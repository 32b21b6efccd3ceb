"""One controller object, twice: on a simulated arm in this process, and on a UR controller over the network.

The second is `tangere virtual`, a UR controller on this computer with an arm inside. It has the ports, programs and
modes of a real one; give its address as the argument, and the same lines run there. Outside this computer they also ask
for a person's word, `consent=tangere.consent("I stand beside it")`, and docs/arm.md comes first.

Only the plant differs. Over the network the torque goes out without gravity, which the controller adds by itself, and
a loop inside the controller holds it for 6 ms when no new one comes, then fades it and stops the arm.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import tangere
from tangere.control import ComputedTorque
from tangere.dynamics.friction import JointFriction
from tangere.loop.result import RunResult
from tangere.planning import ramped_circle
from tangere.plants import MujocoPlant

PERIOD = 0.002  # s, of a UR controller
ROBOT = tangere.robot("ur10e", rotor_inertia=True)
FRICTION = JointFriction.of(ROBOT.drives)
CIRCLE = ramped_circle(ROBOT, duration=4.0, period=PERIOD)


@contextmanager
def virtual_arm() -> Iterator[str]:
    """The address of a virtual UR10e. lockstep: it waits for our torques, so that a busy computer changes nothing."""
    host = f"127.77.{os.getpid() % 250}.1"
    words = ["virtual", "ur10e", "--address", host, "--clock", "lockstep", "--wait-for-ever", "--sensors", "ideal"]
    with subprocess.Popen([sys.executable, "-m", "tangere", *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()  # ready ...
            yield host
        finally:
            process.terminate()


def tracking(result: RunResult) -> float:
    """Distance of the tool from the circle [mm rms], by the joints that were measured."""
    away = ROBOT.pose(result.log["q"])[:, :3, 3] - ROBOT.pose(result.log["q_des"])[:, :3, 3]
    return 1e3 * float(np.sqrt(np.mean(np.sum(away**2, axis=1))))


def on_an_arm(host: str, controller: ComputedTorque) -> None:
    """To the start, then round the circle; the arm is left stopped, whatever happens."""
    with tangere.arm(host, ROBOT) as arm:
        arm.move_joints(CIRCLE.at(0.0).q, speed=1.0)
        result = tangere.run(arm.plant(), controller, until=4.0, trajectory=CIRCLE)
        print(f"on {arm.robot.name} over the network: {tracking(result):.2f} mm rms, {result.said[-1]}")
        if result.aborted:
            print(f"ended early: {result.aborted}")


def main() -> None:
    controller = ComputedTorque(ROBOT, CIRCLE, friction=FRICTION)
    plant = MujocoPlant(ROBOT, PERIOD, friction=FRICTION, stiction=True)
    result = tangere.run(plant, controller, until=4.0, trajectory=CIRCLE)
    print(f"in this process: {tracking(result):.2f} mm rms")
    print(f"page: {result.report(Path(tempfile.mkdtemp(prefix='tangere-')) / 'here.html')}")
    if len(sys.argv) > 1:
        on_an_arm(sys.argv[1], controller)
    else:
        with virtual_arm() as host:
            on_an_arm(host, controller)


if __name__ == "__main__":
    main()
