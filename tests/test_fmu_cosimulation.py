"""Three FMUs wired by two masters (libcosim, fmpy) move as the library's loop with the same delay of one period."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

if shutil.which("cc") is None:
    pytest.skip("needs a C compiler", allow_module_level=True)

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CLOSE = 1e-9  # rad and Nm: rounding, carried through 2200 steps of a loop that forgets it


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def libcosim() -> ModuleType:
    module = example("cosimulation_libcosim")
    module.STEPS = 2200  # the push begins at 1.5 s and ends at 2 s
    return module


@pytest.fixture(scope="module")
def expected(libcosim) -> np.ndarray:
    return libcosim.with_the_library()


def test_the_library_feels_the_push(expected):
    residual = expected[:, 6:]
    assert np.abs(residual[:1500]).max() < 0.01
    assert residual[1999, 1] == pytest.approx(20.0, abs=0.05)
    assert np.abs(residual[-1]).max() < 0.05


def test_libcosim_agrees_with_the_library(libcosim, expected, tmp_path):
    pytest.importorskip("libcosimpy", reason="needs libcosimpy (tangere[fmu])")
    found = libcosim.with_libcosim(str(tmp_path))
    np.testing.assert_allclose(found, expected, atol=CLOSE)


def test_fmpy_agrees_with_the_library(libcosim, expected, tmp_path):
    pytest.importorskip("fmpy", reason="needs fmpy (tangere[fmu])")
    module = example("cosimulation_fmpy")
    module.STEPS = libcosim.STEPS
    blocks = {kind: module.Block(kind, str(tmp_path)) for kind in ("dynamics", "controller", "observer")}
    found = module.circle(blocks)
    np.testing.assert_allclose(found[:, :3], module.ROBOT.pose(expected[:, :6])[:, :3, 3], atol=CLOSE)
    np.testing.assert_allclose(found[:, 3:], expected[:, 6:], atol=CLOSE)


def test_the_delay_is_seen(libcosim, expected):
    """Without the delay the library moves otherwise: the comparison above can tell."""
    module = libcosim
    plant = module.RigidPlant(module.ROBOT, module.PERIOD, friction=module.FRICTION, pushes=[module.PUSH])
    controller = module.ComputedTorque(module.ROBOT, module.CIRCLE, friction=module.FRICTION)
    state = plant.reset(module.START.q)
    controller.start(state)
    for _ in range(module.STEPS):
        plant.write(controller.step(state))
        state = plant.read()
    assert np.abs(state.q - expected[-1, :6]).max() > 1e-6


@pytest.mark.parametrize("kind", ["fk", "ik", "inverse-dynamics", "all"])
def test_libcosim_loads_the_other_kinds(kind, tmp_path):
    """Their answers after a step, at the start values: those of the library."""
    pytest.importorskip("libcosimpy", reason="needs libcosimpy (tangere[fmu])")
    from libcosimpy.CosimExecution import CosimExecution
    from libcosimpy.CosimManipulator import CosimManipulator
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    import tangere
    from tangere.apps.fmu import write_fmu

    robot = tangere.robot("ur10e", tool=(0.01, 0.02, 0.1))
    w = write_fmu(kind, robot, tmp_path)
    execution = CosimExecution.from_step_size(step_size=1_000_000)
    at = execution.add_local_slave(CosimLocalSlave(fmu_path=str(w.path), instance_name="block"))
    hand, eye = CosimManipulator.create_override(), CosimObserver.create_last_value()
    execution.add_manipulator(hand)
    execution.add_observer(eye)

    def references(name: str) -> list[int]:
        p = next(p for p in w.table if p.group.name == name)
        return list(range(p.reference, p.reference + p.group.size))

    q, qd, qdd = np.random.default_rng(2).uniform(-2, 2, (3, 6))
    T, prefix = robot.pose(q), kind == "all"
    given = {
        "fk": {"q": q}, "ik": {"position": T[:3, 3], "R": T[:3, :3]},
        "inverse-dynamics": {"q": q, "qd": qd, "qdd": qdd},
        "all": {"fk.q": q, "ik.position": T[:3, 3], "ik.R": T[:3, :3]},
    }[kind]  # fmt: skip
    for name, values in given.items():
        assert hand.slave_real_values(at, references(name), np.ravel(values).tolist())
    assert execution.step(2)

    def last(name: str) -> np.ndarray:
        return np.array(eye.last_real_values(at, references(name)))

    if kind == "inverse-dynamics":
        np.testing.assert_allclose(last("tau"), robot.inverse_dynamics(q, qd, qdd), atol=1e-12)
    if kind in ("fk", "all"):
        np.testing.assert_allclose(last("fk.R" if prefix else "R").reshape(3, 3), T[:3, :3], atol=1e-12)
        np.testing.assert_allclose(last("fk.position" if prefix else "position"), T[:3, 3], atol=1e-12)
    if kind in ("ik", "all"):
        np.testing.assert_allclose(robot.pose(last("ik.q" if prefix else "q")), T, atol=1e-12)
