"""What an exchange once per period costs: three FMUs wired by hand in fmpy, against the same arm in one block.

Wired as three blocks (dynamics, controller, observer), the torque reaches the arm one communication step after the
positions it was computed from. The block `arm` holds all three and exchanges inside, without that delay. Both draw the
same circle, both are pushed with 20 Nm; a stiffer controller shows the difference.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import tangere
from tangere.apps.fmu import write_fmu
from tangere.dynamics.friction import JointFriction
from tangere.planning import ramped_circle

PERIOD = 0.001  # s
STEPS = 2500
PUSHED = slice(1500, 2000)  # the steps in which joint 2 is pushed
PUSH = np.array([0.0, 20.0, 0.0, 0.0, 0.0, 0.0])  # Nm

ROBOT = tangere.robot("ur10e", rotor_inertia=True)
FRICTION = JointFriction.of(ROBOT.drives)
CIRCLE = ramped_circle(ROBOT, duration=5.0, period=PERIOD)


class Block:
    """An FMU in fmpy, its vectors by name."""

    def __init__(self, kind: str, folder: str, **parameters: Any) -> None:
        from fmpy import extract
        from fmpy.fmi2 import FMU2Slave

        self.file = write_fmu(kind, ROBOT, folder, friction=FRICTION, q_start=CIRCLE.at(0.0).q)
        name = self.file.path.stem
        unpacked = extract(str(self.file.path), str(Path(folder, name)))
        self.fmu = FMU2Slave(guid=self.file.guid, unzipDirectory=unpacked, modelIdentifier=name, instanceName=kind)
        self.fmu.instantiate()
        self.fmu.setupExperiment(startTime=0.0)
        for key, value in parameters.items():
            self.set(key, value)
        self.fmu.enterInitializationMode()
        self.fmu.exitInitializationMode()

    def references(self, name: str) -> list[int]:
        placed = next(p for p in self.file.table if p.group.name == name)
        return list(range(placed.reference, placed.reference + placed.group.size))

    def get(self, name: str) -> np.ndarray:
        return np.array(self.fmu.getReal(self.references(name)))

    def set(self, name: str, values: Any) -> None:
        self.fmu.setReal(self.references(name), [float(x) for x in values])


def circle(blocks: dict[str, Block]) -> np.ndarray:
    """Position of the tool and residual (STEPS, 9). One block does everything itself, three are wired here."""
    arm, observer = blocks.get("arm") or blocks["dynamics"], blocks.get("arm") or blocks["observer"]
    controller, rows = blocks.get("arm") or blocks["controller"], []
    for k in range(STEPS):
        if len(blocks) > 1:  # everything that was computed goes over at once, then all of them step
            q, qd, tau = arm.get("q"), arm.get("qd"), controller.get("tau")
            for target, name, value in (
                (controller, "q", q), (controller, "qd", qd), (observer, "q", q), (observer, "qd", qd),
                (observer, "tau", tau), (arm, "tau", tau),
            ):  # fmt: skip
                target.set(name, value)
        now = CIRCLE.at(k * PERIOD)
        for name, value in (("q_des", now.q), ("qd_des", now.qd), ("qdd_des", now.qdd)):
            controller.set(name, value)
        arm.set("tau_ext", PUSH if PUSHED.start <= k < PUSHED.stop else np.zeros(6))
        for block in blocks.values():
            block.fmu.doStep(currentCommunicationPoint=k * PERIOD, communicationStepSize=PERIOD)
        rows.append([*arm.get("position"), *observer.get("residual")])
    return np.array(rows)


def main() -> None:
    try:
        import fmpy  # noqa: F401
    except ImportError:
        print("fmpy is not installed: pip install 'tangere[fmu]'")
        return
    wanted = np.array([ROBOT.pose(CIRCLE.at((k + 1) * PERIOD).q)[:3, 3] for k in range(STEPS)])
    print("  kp [1/s2]   wiring         off the circle: before, because of the push [mm]   felt [Nm]")
    for kp in (100.0, 2500.0):
        gains = {"kp": [kp] * 6, "kv": [2.0 * kp**0.5] * 6}
        for name, kinds in (("three blocks", ("dynamics", "controller", "observer")), ("one block", ("arm",))):
            with tempfile.TemporaryDirectory() as folder:
                blocks = {k: Block(k, folder, **(gains if k in ("controller", "arm") else {})) for k in kinds}
                found = circle(blocks)
            off = 1e3 * np.linalg.norm(found[:, :3] - wanted, axis=1)
            felt = found[PUSHED.stop - 1, 4]
            print(f"  {kp:9.0f}   {name:<12}   {off[: PUSHED.start].max():28.4f}, {off.max():12.3f}   {felt:17.3f}")
    log = tangere.Log({"time": PERIOD * np.arange(1, STEPS + 1), "off": off, "felt": found[:, 4]})
    print(f"the last: {log.plot('off', 'felt').save(Path(tempfile.mkdtemp(prefix='tangere-')) / 'circle.svg')}")


if __name__ == "__main__":
    main()
