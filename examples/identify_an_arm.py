"""Learn friction and drives of an arm from logs of free motion, and judge the model on a log that was not used.

A simulated UR10e plays the real one: its friction is 30 % larger than the data sheet's and differs from joint to joint,
its sensors are noisy. It swings every joint for 20 s, three times, at other speeds. `tangere.identify` fits

    tau = Y(q, qd, qdd) pi + coulomb sign(qd) + viscous qd + offset

and says what the logs could not tell. The page shows the fit, the friction of every joint and the free-running twin.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import tangere
from tangere.control import ComputedTorque
from tangere.dynamics.friction import JointFriction
from tangere.planning import Sine
from tangere.plants import Push, RigidPlant, SensorModel, twin

Q = np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
PERIOD = 0.004  # s: 250 Hz, half of what a UR's controller offers
WORN = np.array([1.3, 1.2, 1.4, 1.3, 1.5, 1.2])  # times the friction of the data sheet


def free_motion(seed: int, seconds: float = 20.0, pushes: tuple[Push, ...] = ()) -> tangere.Log:
    """What a robot would have recorded: a log of the worn arm that swings all its joints; pushes: on the way."""
    known = tangere.robot("ur10e", rotor_inertia=True)
    real = twin(known, friction=WORN)
    rng = np.random.default_rng(seed)
    amplitude, frequency = rng.uniform(0.3, 0.7, 6), rng.uniform(0.08, 0.25, 6)  # rad, Hz: slow and fast
    motion = Sine(known, Q, amplitude, frequency, duration=seconds)
    sensors = SensorModel(noise_qd=1e-3, noise_tau=0.05, seed=seed)  # rad/s, Nm
    friction = JointFriction.of(real.drives)
    plant = RigidPlant(real, PERIOD, friction=friction, sensors=sensors, pushes=pushes)
    controller = ComputedTorque(known, motion, friction=JointFriction.of(known.drives))
    # a recording knows what was measured and nothing else
    return tangere.run(plant, controller, trajectory=motion).log.without(["q_true", "qd_true", "tau_ext_true"])


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tangere-"))
    logs = [free_motion(seed) for seed in (1, 2, 3)]
    model = tangere.identify(logs, "ur10e", hold_out="log 3", inertial="none")

    sheet, found = tangere.robot("ur10e").drives, model.model.drive
    print(f"{model!r}, judged on the third")
    print("joint   Coulomb friction [Nm]: data sheet   truth   identified")
    for j in range(6):
        truth = WORN[j] * sheet.coulomb[j]
        print(f"{j + 1:5d}   {sheet.coulomb[j]:33.3f} {truth:7.3f} {found.coulomb[j]:12.3f}")
    worst = np.max(np.abs(found.coulomb / (WORN * sheet.coulomb) - 1.0))
    print(f"largest error of the identified friction: {100.0 * worst:.1f} %")
    print(f"residual while moving, all joints: {np.mean(model.model.before):.3f} Nm before, "
          f"{np.mean(model.model.after):.3f} Nm after")  # fmt: skip
    print(f"model: {model.save(folder / 'model.toml')}")
    print(f"page:  {model.report(folder / 'identified.html')}")


if __name__ == "__main__":
    main()
