"""Forward kinematics as an FMU in Python, to compare with: what one would write for PythonFMU, numpy inside."""

from __future__ import annotations

from pathlib import Path

from tangere.errors import MissingExtra

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


def python_fmu(folder: Path, lengths: tuple[float, ...]) -> Path:
    """The FMU, with the same inputs and as many outputs as our block. lengths: d1 a2 a3 d4 d5 d6 [m]."""
    try:
        from pythonfmu.builder import FmuBuilder  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtra("the comparison needs PythonFMU: pip install pythonfmu") from None
    script = folder / "python_fk.py"
    script.write_text(SCRIPT.replace("LENGTHS = ()", f"LENGTHS = {lengths!r}"), encoding="utf-8")
    return Path(str(FmuBuilder.build_FMU(str(script), dest=str(folder))))
