"""`tangere fmu bench`: time and memory of the blocks, and of the same forward kinematics as an FMU in Python."""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tangere.apps.fmu.opened import Opened

TITLE = "time the blocks, against an FMU in Python where PythonFMU is installed"
EXAMPLES = """examples:
  tangere fmu bench                        every kind; forward kinematics against PythonFMU with numpy
  tangere fmu bench --steps 10000000       and memory over ten million steps of every kind (some minutes)

Everything is driven by a small master in C, without Python around it."""
ROUNDS = 5  # the best of them counts: another process may disturb one
RACE = 20_000  # steps of a round for ours; those of Python are a hundredth
CROWD = 1000  # instances at once
GROWTH = 512 * 1024  # [bytes] the kernel counts resident pages in lots; a byte lost per step would be more at 1e6
# what one would write for PythonFMU, numpy inside: the same inputs and as many outputs as our block
SCRIPT = """\
import numpy as np
from pythonfmu import Fmi2Causality, Fmi2Slave, Fmi2Variability, Real

LENGTHS = ()
ALPHA = np.radians([90.0, 0.0, 0.0, 90.0, -90.0, 0.0])


class PythonFK(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        d1, a2, a3, d4, d5, d6 = LENGTHS
        self.a = np.array([0.0, a2, a3, 0.0, 0.0, 0.0])
        self.d = np.array([d1, 0.0, 0.0, d4, d5, d6])
        self.ca, self.sa = np.cos(ALPHA), np.sin(ALPHA)
        self.q = np.zeros(6)
        self.out = np.zeros(55)
        for i in range(6):
            self.register_variable(Real(
                f"q[{i + 1}]", causality=Fmi2Causality.input, variability=Fmi2Variability.continuous,
                getter=lambda i=i: float(self.q[i]), setter=lambda v, i=i: self.q.__setitem__(i, v)))
        for i in range(55):
            self.register_variable(Real(
                f"out[{i + 1}]", causality=Fmi2Causality.output, variability=Fmi2Variability.continuous,
                getter=lambda i=i: float(self.out[i])))
        self.compute()

    def compute(self):
        c, s = np.cos(self.q), np.sin(self.q)
        T, axes, places = np.eye(4), [], []
        for i in range(6):
            axes.append(T[:3, 2])
            places.append(T[:3, 3])
            T = T @ np.array([
                [c[i], -s[i] * self.ca[i], s[i] * self.sa[i], self.a[i] * c[i]],
                [s[i], c[i] * self.ca[i], -c[i] * self.sa[i], self.a[i] * s[i]],
                [0.0, self.sa[i], self.ca[i], self.d[i]], [0.0, 0.0, 0.0, 1.0]])
        R, p = T[:3, :3], T[:3, 3]
        z = np.array(axes)
        J = np.concatenate([np.cross(z, p - np.array(places)).T, z.T])
        w = 0.5 * np.sqrt(max(0.0, 1.0 + np.trace(R)))
        x, y, k = (np.sqrt(max(0.0, 1.0 + 2.0 * R[i, i] - np.trace(R))) / 2.0 for i in range(3))
        quaternion = (w, np.copysign(x, R[2, 1] - R[1, 2]), np.copysign(y, R[0, 2] - R[2, 0]),
                      np.copysign(k, R[1, 0] - R[0, 1]))
        ypr = (np.arctan2(R[1, 0], R[0, 0]), np.arctan2(-R[2, 0], np.hypot(R[2, 1], R[2, 2])),
               np.arctan2(R[2, 1], R[2, 2]))
        self.out[:] = np.concatenate([p, R.ravel(), quaternion, ypr, J.ravel()])

    def do_step(self, current_time, step_size):
        self.compute()
        return True
"""


def race(fmus: list[Opened], steps: int, *, seconds: float = 300.0) -> list[tuple[float, float]]:
    """(s to instantiate, s per step) of each, all in one process of the driver: set inputs, step, get outputs."""
    import os
    import sys
    import sysconfig

    from tangere.apps.fmu.driver import driver, run_master

    words = [str(driver()), "speed", str(ROUNDS), str(steps)]
    for fmu in fmus:
        # a rotation that is changed entry by entry is none, and refused at once: inverse kinematics gets positions
        inputs = [v.reference for v in fmu.of("input", "Real") if not re.match(r"(ik\.)?(R|quaternion|ypr)\[", v.name)]
        outputs = [v.reference for v in fmu.of("output", "Real")]
        refs = [len(inputs), *inputs, len(outputs), *outputs]
        words += [str(fmu.library), fmu.resources_uri, fmu.guid, *map(str, refs)]
    environment = dict(os.environ)
    if len(fmus) > 1:  # the library of PythonFMU takes Python from its host
        python = Path(str(sysconfig.get_config_var("LIBDIR")), str(sysconfig.get_config_var("LDLIBRARY")))
        environment |= {
            "LD_PRELOAD": str(python), "PYTHONHOME": sys.base_prefix, "PYTHONPATH": sysconfig.get_path("purelib"),
            "OPENBLAS_NUM_THREADS": "1",
        }  # fmt: skip
    rows = run_master(words, ", ".join(fmu.path.name for fmu in fmus), seconds, limited=False, env=environment)
    return [(float(a), float(b)) for a, b in (r for r in rows if len(r) == 2)]


def python_fmu(folder: Path, lengths: tuple[float, ...]) -> Path:
    """The FMU, with the same inputs and as many outputs as our block. lengths: d1 a2 a3 d4 d5 d6 [m]."""
    from tangere.errors import extra

    with extra("the comparison needs PythonFMU: pip install pythonfmu"):
        from pythonfmu.builder import FmuBuilder  # type: ignore[import-untyped]
    script = folder / "python_fk.py"
    script.write_text(SCRIPT.replace("LENGTHS = ()", f"LENGTHS = {lengths!r}"), encoding="utf-8")
    return Path(str(FmuBuilder.build_FMU(str(script), dest=str(folder))))


def compared(folder: Path, robot_name: str, steps: int = RACE // 100) -> list[tuple[float, float]]:
    """Ours and PythonFMU's forward kinematics in one run."""
    import tangere
    from tangere.apps.fmu.opened import opened
    from tangere.apps.fmu.package import write_fmu

    ours = write_fmu("fk", tangere.robot(robot_name), folder)
    theirs = python_fmu(folder, ours.arm.lengths)
    return race([opened(ours.path, folder / "ours"), opened(theirs, folder / "theirs")], steps)


def main(arguments: argparse.Namespace) -> int:
    """Run and print."""
    import tangere
    from tangere import foreign
    from tangere.apps.fmu.driver import run_driver
    from tangere.apps.fmu.kinds import KINDS
    from tangere.apps.fmu.opened import opened
    from tangere.apps.fmu.package import write_fmu
    from tangere.errors import InvalidValue, TangereError
    from tangere.report.terminal import table

    if not 10 <= arguments.steps <= 10**10:  # that takes hours
        raise InvalidValue(f"--steps: 10 to 10000000000, got {foreign.shown(arguments.steps)}")
    robot, rows, failed = tangere.robot(arguments.robot), [], False
    with tempfile.TemporaryDirectory(prefix="fmu-") as name:
        folder = Path(name)
        for kind in KINDS:
            fmu = opened(write_fmu(kind, robot, folder).path, folder / kind)
            instantiate, step = race([fmu], RACE)[0]
            # a step of the arm takes some microseconds; ten times that is the limit
            n, _, first, highest, taken, left = (float(x) for x in run_driver(
                "long", fmu, arguments.steps, seconds=60.0 + 1e-4 * arguments.steps)[0])  # fmt: skip
            _, wrong, _, memory, leaked = (float(x) for x in run_driver("many", fmu, CROWD)[0])
            failed |= bool(highest > first + GROWTH or taken or left or wrong or leaked)
            rows.append([
                kind, f"{1e6 * instantiate:.0f}", f"{1e6 * step:.2f}", f"{n:.0g}", f"{(highest - first) / 1024:.0f}",
                f"{taken:.0f}", f"{memory / CROWD / 1024:.0f}",
            ])  # fmt: skip
        header = ("kind", "instantiate [us]", "step [us]", "steps", "growth [kB]", "allocations", "per instance [kB]")
        print("\n".join(table(rows, header, "lrrrrrr", indent=0)))
        print(f"\nsteps set all inputs and read all outputs; {CROWD} instances at once for the last column")
        try:
            (_, ours), (_, theirs) = compared(folder, robot.name)
        except TangereError as error:
            print(f"no comparison: {error}")
            return int(failed)
    print(f"forward kinematics, in one run: {1e6 * ours:.2f} us here, {1e6 * theirs:.0f} us by PythonFMU with numpy, "
          f"{theirs / ours:.0f} times faster")  # fmt: skip
    return int(failed)
