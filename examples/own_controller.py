"""A controller of one's own: an invisible table under the tool, in twenty lines.

A controller is anything with start, step and stop. This one lets the arm float, and only where the tool would leave a
horizontal plane does a spring with a damper act, through the one row of the Jacobian that means "up":

    tau = g(q) + J_z^T (k (z_0 - z) - d z') - D qd

Somebody leans on the tool and then slides it. Sideways it goes where it is pushed; downwards it gives way by F / k,
exactly so once it has come to rest, although no position of any joint is controlled. `result.save` leaves the same
folder as `tangere run`: log, summary and page, with the controller named in it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import tangere
from tangere.control import Guarded
from tangere.plants import Push, RigidPlant
from tangere.types import Command, State

Q = np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
PERIOD = 0.002  # s
TIP = (0.0, 0.0, 0.0)  # m: the tool, in the frame of link 6
LEAN = Push(link=6, point=TIP, force=(0.0, 0.0, -20.0), start=0.5, duration=7.5)  # N, base axes; s
SLIDE = Push(link=6, point=TIP, force=(0.0, 25.0, 0.0), start=1.0, duration=1.0)


class InvisibleTable:
    """Holds the height of the tool at the start, and nothing else."""

    stiffness = 5000.0  # N/m: 20 N sink in by 4 mm
    damping = 500.0  # Ns/m: a little over critical for the 8 kg that a vertical push has to move
    drag = 20.0  # Nm s/rad in every joint: otherwise a pushed arm never stops

    def __init__(self, robot: tangere.Robot) -> None:
        self.robot = robot

    def start(self, state: State) -> None:
        self.height = self.robot.pose(state.q)[2, 3]

    def step(self, state: State) -> Command:
        up = self.robot.jacobian(state.q)[2]  # z' = up . qd
        below = self.height - self.robot.pose(state.q)[2, 3]
        force = self.stiffness * below - self.damping * (up @ state.qd)
        return Command(self.robot.gravity_torque(state.q) + force * up - self.drag * state.qd)

    def stop(self) -> None:
        pass


def main() -> None:
    robot = tangere.robot("ur10e", rotor_inertia=True)
    # the guard limits torques and catches broken samples; any controller goes into it
    controller = Guarded(InvisibleTable(robot), robot, period=PERIOD)
    result = tangere.run(RigidPlant(robot, PERIOD, pushes=[LEAN, SLIDE]), controller, until=8.0, start=Q)

    log, p = result.log, result.log.position("T_true")
    moved = 1e3 * (p - p[0])  # mm
    print(f"{-LEAN.force[2]:g} N down from {LEAN.start:g} s on, {SLIDE.force[1]:g} N sideways from 1 s to 2 s")
    print("   t [s]   sideways [mm]   down [mm]")
    for t in (0.5, 1.0, 1.5, 2.0, 3.0, 8.0):
        k = min(round(t / PERIOD), len(log) - 1)
        print(f"   {t:5.1f}   {moved[k, 1]:13.1f}   {-moved[k, 2]:9.3f}")
    by_the_spring = -1e3 * LEAN.force[2] / InvisibleTable.stiffness
    print(f"at rest again: {-moved[-1, 2]:.4f} mm down; F / k = {by_the_spring:.4f} mm")
    print(f"interventions of the guard: {sum(result.interventions.values())}")
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tangere-"))
    print(f"page: {result.save(folder / 'invisible table') / 'report.html'}")


if __name__ == "__main__":
    main()
