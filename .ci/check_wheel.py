"""Run where the wheel is installed and nothing else: it must work there, compiled, without a compiler."""

import importlib.machinery
import os
import shutil
import warnings
from pathlib import Path

warnings.simplefilter("error")  # "no compiled kernels here, numpy serves" would be a warning: in a wheel it is a fault

import tangere  # noqa: E402  (after the filter, on purpose)
from tangere.cli.main import main  # noqa: E402

package = Path(tangere.__file__).parent
assert "site-packages" in package.parts, f"not the installed wheel: {package}"
for compiler in ("cc", "gcc", "clang") if "CIBUILDWHEEL" not in os.environ else ():  # its containers have all of them
    assert shutil.which(compiler) is None, f"{compiler} is on the path, so this would prove nothing"
compiled = [f.name for f in package.rglob("*") if f.name.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))]
for extension in ("_kernels", "_rollouts", "_periods"):
    assert any(name.startswith(f"{extension}.") for name in compiled), f"the wheel holds no {extension}: {compiled}"
generated = [f.name for f in package.rglob("*.c") if f.name.startswith("_kernels")]
assert not generated, f"generated source was shipped: {generated}"

robot = tangere.robot("ur10e")
q = [0.0, -1.5707963267948966, 1.5707963267948966, -1.5707963267948966, -1.5707963267948966, 0.0]
# the ready pose, by hand: x = a3 - d5, y = -d4, z = d1 - a2 - d6; computed in about ten operations, hence 1e-14
by_hand = (-0.57155 - 0.11985, -0.17415, 0.1807 + 0.6127 - 0.11655)
for value, expected in zip(robot.pose(q)[:3, 3], by_hand, strict=True):
    assert abs(value - expected) < 1e-14, (value, expected)
assert len(robot.inverse_kinematics(robot.pose(q), reference=q).q) == 8
assert main(["models"]) == 0
assert main(["demo"]) == 0
print(f"wheel: tangere {tangere.__version__} works without a compiler, with {', '.join(compiled)}")
