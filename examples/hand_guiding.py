"""Hand guiding: an arm of 29 kg that follows a hand, and stays where it is left.

    tau = g(q) + c friction(qd) - d qd

Gravity is taken away entirely, friction in part (c < 1: at 1 the arm would never stop by itself, above 1 it would run
away), and a little damping d is added. The same hand pushes the same arm twice, with and without the friction
compensated. What is left for the hand are inertia, damping and the rest of the friction.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere
from tangere.control import Guarded, HandGuiding
from tangere.dynamics.friction import JointFriction
from tangere.loop.result import RunResult
from tangere.plants import Push, RigidPlant

Q = np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
PERIOD = 0.002  # s
HAND = Push(link=6, force=(0.0, 30.0, 0.0), start=0.5, duration=1.5)  # 30 N: one hand
SECONDS = 5.0
AT_REST = np.radians(0.1)  # rad/s: a millimetre per second at the tool, nothing an eye would see


def guided(robot: tangere.Robot, compensation: float) -> RunResult:
    """The arm under the hand, with that share of its friction taken away."""
    friction = JointFriction.of(robot.drives)
    controller = HandGuiding(robot, friction=friction, compensation=compensation)
    plant = RigidPlant(robot, PERIOD, friction=friction, pushes=[HAND])
    return tangere.run(plant, Guarded(controller, robot, period=PERIOD), until=SECONDS, start=Q)


def main() -> None:
    robot = tangere.robot("ur10e", rotor_inertia=True)
    mass = sum(link.mass for link in robot.model.links)
    print(f"{robot.name}, {mass:.1f} kg; a hand pushes with {HAND.force[1]:g} N for {HAND.duration:g} s")
    print("   friction compensated [%]   led by [mm]   coasts on [mm]   comes to rest after [s]   work of the hand [J]")
    for share in (0.0, 0.5, 0.7):
        result = guided(robot, share)
        log = result.log
        p = log.position("T_true")
        let_go = round((HAND.start + HAND.duration) / PERIOD)
        led = 1e3 * np.linalg.norm(p[let_go] - p[0])
        coast = 1e3 * np.linalg.norm(p[-1] - p[let_go])
        moving = np.abs(log["qd_true"][let_go:]).max(axis=1) > AT_REST
        rest = PERIOD * np.count_nonzero(moving)
        # work = sum of tau_ext . dq; the torque acted from one sample to the next
        work = np.sum(log["tau_ext_true"][1:] * np.diff(log["q_true"], axis=0))
        print(f"   {100 * share:24.0f}   {led:11.1f}   {coast:14.1f}   {rest:23.2f}   {work:20.2f}")

    print(f"page of the last: {result.report(Path(tempfile.mkdtemp(prefix='tangere-')) / 'guided.html')}")
    still = tangere.run(RigidPlant(robot, PERIOD), HandGuiding(robot), until=SECONDS, start=Q).log
    sunk = np.degrees(np.abs(still["q_true"][-1] - Q).max())
    print(f"left alone for {SECONDS:g} s without any friction it sinks by {sunk:.0e} deg")


if __name__ == "__main__":
    main()
