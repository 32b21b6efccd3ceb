"""Three FMUs, one loop: libcosim wires the arm, its controller and its observer, and a push is felt.

A master of co-simulation exchanges values between the blocks only at communication points, here every millisecond. So
the controller's torque reaches the arm one period late:

    tau_k = controller(reference_{k-1}, q_{k-1}, qd_{k-1})

The same delay in a loop of the library gives the same motion, to rounding: the blocks are the library's own C.
"""

from __future__ import annotations

import tempfile

import numpy as np

import tangere
from tangere.apps.fmu import Written, write_fmu
from tangere.control import ComputedTorque
from tangere.dynamics.friction import JointFriction
from tangere.observe.momentum import MomentumObserver
from tangere.planning import ramped_circle
from tangere.plants import Push, RigidPlant

PERIOD = 0.001  # s: the observer's own period, and the communication step
STEPS = 2500
PUSH = Push(joint=2, torque=20.0, start=1.5, duration=0.5)
ROBOT = tangere.robot("ur10e", rotor_inertia=True)
FRICTION = JointFriction.of(ROBOT.drives)
CIRCLE = ramped_circle(ROBOT, duration=5.0, period=PERIOD)
START = CIRCLE.at(0.0)


def references(block: Written, name: str) -> list[int]:
    """Value references of a vector of the block."""
    placed = next(p for p in block.table if p.group.name == name)
    return list(range(placed.reference, placed.reference + placed.group.size))


def with_libcosim(folder: str) -> np.ndarray:
    """q and residual (STEPS, 12), by three FMUs."""
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimLogging import CosimLogLevel, log_output_level
    from libcosimpy.CosimManipulator import CosimManipulator
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    log_output_level(CosimLogLevel.ERROR)
    execution = CosimExecution.from_step_size(step_size=int(PERIOD * 1e9))
    blocks, at = {}, {}
    for kind in ("dynamics", "controller", "observer"):
        blocks[kind] = write_fmu(kind, ROBOT, folder, friction=FRICTION, q_start=START.q)
        at[kind] = execution.add_local_slave(CosimLocalSlave(fmu_path=str(blocks[kind].path), instance_name=kind))
    for source, name, target in (
        ("dynamics", "q", "controller"), ("dynamics", "qd", "controller"), ("dynamics", "q", "observer"),
        ("dynamics", "qd", "observer"), ("controller", "tau", "dynamics"), ("controller", "tau", "observer"),
    ):  # fmt: skip
        for a, b in zip(references(blocks[source], name), references(blocks[target], name), strict=True):
            execution.connect_real_variables(at[source], a, at[target], b)
    hand, eye = CosimManipulator.create_override(), CosimObserver.create_last_value()
    execution.add_manipulator(hand)
    execution.add_observer(eye)
    q, residual = references(blocks["dynamics"], "q"), references(blocks["observer"], "residual")
    wanted = [r for name in ("q_des", "qd_des", "qdd_des") for r in references(blocks["controller"], name)]
    pushed = references(blocks["dynamics"], "tau_ext")[PUSH.joint - 1]
    rows = []
    for k in range(STEPS):
        now = CIRCLE.at(k * PERIOD)
        hand.slave_real_values(at["controller"], wanted, [*now.q, *now.qd, *now.qdd])
        middle = (k + 0.5) * PERIOD - PUSH.start  # a push acts in whole periods
        hand.slave_real_values(at["dynamics"], [pushed], [PUSH.torque if 0.0 < middle < PUSH.duration else 0.0])
        assert execution.step()
        rows.append([*eye.last_real_values(at["dynamics"], q), *eye.last_real_values(at["observer"], residual)])
    return np.array(rows)


def with_the_library() -> np.ndarray:
    """The same by plant, controller and observer of the library, the torque one period late."""
    plant = RigidPlant(ROBOT, PERIOD, friction=FRICTION, pushes=[PUSH])
    controller = ComputedTorque(ROBOT, CIRCLE, friction=FRICTION)
    observer = MomentumObserver(ROBOT, friction=FRICTION)
    state = plant.reset(START.q)
    controller.start(state)
    observer.reset(state)
    command, rows = controller.step(state), []
    for k in range(STEPS):
        residual = observer.update(state) if k else observer.residual
        following = controller.step(state)
        plant.write(command)
        state, command = plant.read(), following
        rows.append([*state.q, *residual])
    return np.array(rows)


def main() -> None:
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = with_libcosim(folder)
    except ImportError:
        raise SystemExit("libcosimpy is not installed: pip install 'tangere[fmu]'") from None
    off = np.abs(found - with_the_library())
    print(f"{STEPS} steps, three FMUs against the library: q {off[:, :6].max():.1e} rad, r {off[:, 6:].max():.1e} Nm")
    felt = found[round((PUSH.start + PUSH.duration) / PERIOD) - 1, 5 + PUSH.joint]
    print(f"a push of {PUSH.torque:g} Nm on joint {PUSH.joint} is felt as {felt:.2f} Nm")
    log = tangere.Log({"time": PERIOD * np.arange(1, STEPS + 1), "residual": found[:, 6:]})
    print("picture:", log.plot("residual").save(tempfile.mkdtemp(prefix="tangere-") + "/felt.svg"))


if __name__ == "__main__":
    main()
