"""Rollouts: what has no kernel, misuse, threads, Ctrl-C; no fused operations in the compiled code."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_rollouts import compiled, parts, wave

import tangere
from tangere.control.cartesian_impedance import CartesianImpedance
from tangere.control.computed_torque import ComputedTorque
from tangere.errors import InvalidValue
from tangere.observe.detect import Detector, Thresholds
from tangere.observe.momentum import MomentumObserver
from tangere.plants.random_pushes import RandomPushes
from tangere.plants.sensors import SensorModel
from tangere.types import Reference


@pytest.fixture(scope="module")
def robot() -> tangere.Robot:
    return tangere.robot("ur10e", rotor_inertia=True)


def test_without_a_kernel_the_python_loop_serves(robot: tangere.Robot) -> None:
    """And it is said why; the results have the same shape, a replay is the run itself."""
    given = parts(robot, 0.05, controller=CartesianImpedance(robot, wave(robot, 1.0)))
    with pytest.warns(RuntimeWarning, match="CartesianImpedance has no kernel; the Python loop serves"):
        rolls = tangere.rollouts(robot, count=2, record=5, **given)
    assert rolls.instruction_set == "python"
    assert "CartesianImpedance" in rolls.why
    assert rolls.q.shape == (2, 6)
    assert rolls.log["residual"].shape == (2, 10, 6)
    assert rolls.replay(1).log["q_true"][::5].tobytes() == rolls.log["q_true"][1].tobytes()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"payload": [1.0, np.nan]}, "payload: finite and positive .kg., got nan for robot 1"),
        ({"payload": [1.0, 2.0, 3.0]}, r"payload: one number or one for each of 2 robots .kg., got shape \(3,\)"),
        ({"friction_scale": -1.0}, "friction_scale: finite and positive"),
        ({"seed": 1.5}, r"seed: a whole number from 0 to 2\^64 - 1, got 1.5"),
        ({"seed": -1}, "seed: a whole number"),
        ({"seed": "3"}, "seed: a whole number"),
        ({"count": 0}, "count: a whole number >= 1, got 0"),
        ({"seconds": np.nan}, "seconds: positive and finite"),
        ({"seconds": 1e-5}, "seconds: one period"),
        ({"dtype": "float16"}, "dtype: float64 or float32, got 'float16'"),
        ({"dtype": "many"}, "dtype: float64 or float32"),
        ({"method": "euler"}, "unknown method 'euler'"),
        ({"record": -1}, "record: every how many samples"),
        ({"pushes": "joint=9,torque=1,start=0"}, "joint of a push: got 9"),
        ({"start": [0.0, 1.0]}, "start: 6 finite numbers"),
        ({"sensors": SensorModel(noise_qd=np.nan)}, "noise_qd: one number or 6"),
        ({"controller": None}, "controller: rollouts need one, or nothing moves the arms"),
        ({"controller": "computed torque"}, "controller: an object with start, step and stop, got 'computed"),
        ({"controller": ComputedTorque}, "controller: the class ComputedTorque was given"),
        ({"controller": ComputedTorque(tangere.robot("scara"), np.zeros(4))}, "is for scara with 4 joints"),
        ({"observer": 50.0}, "each with reset and update, got 50.0"),
        ({"observer": MomentumObserver(tangere.robot("scara"))}, "is for scara with 4 joints, the arm has 6"),
        ({"observer": None}, "detector: it watches the residual of an observer"),
        ({"detector": []}, "detector: a detector, thresholds, or one threshold"),
        ({"detector": Detector}, "detector: the class Detector was given"),
        ({"detector": Detector(Thresholds.constant(9.0, dof=7))}, "thresholds of 7 joints, the arm has 6"),
        ({"friction": 3.0}, "friction: a JointFriction or None, got 3.0"),
        ({"sensors": "noisy"}, "sensors: a SensorModel or None, got 'noisy'"),
        ({"payload": "heavy"}, "payload: one number or one for each of 2 robots .kg., got 'heavy'"),
        ({"start": "home"}, "start: 6 finite numbers .rad. or a Reference, got 'home'"),
        ({"start": [0.0, -90.0, 90.0, -90.0, -90.0, 0.0]}, "angles are in radians"),
        ({"start": Reference(np.full(6, np.nan), np.zeros(6), np.zeros(6))}, "start: a Reference of 6 finite numbers"),
        ({"start": Reference(np.zeros(5), np.zeros(5), np.zeros(5))}, "start: a Reference of 6 .* its q is"),
        ({"seconds": True}, "seconds: positive and finite"),
        ({"count": 10**12}, r"GB of memory, this computer has .*: at most \d+ of 1000000000000 fit"),
        ({"count": 10**8, "record": 1}, r"at most \d+ of 100000000 fit"),
    ],
)
def test_misuse_is_said_in_a_sentence(changes: dict[str, Any], said: str, robot: tangere.Robot) -> None:
    with pytest.raises(tangere.TangereError, match=said):
        tangere.rollouts(robot, **({"count": 2} | parts(robot, 0.05) | changes))


def test_a_goal_of_its_own_or_a_start(robot: tangere.Robot) -> None:
    given = parts(robot, 0.05, controller=ComputedTorque(robot, None))
    with pytest.raises(InvalidValue, match="start: where the arms start"):
        tangere.rollouts(robot, count=1, **given)
    for wrong, said in (
        ([robot] * 3, "robot: one, or one for each of 2 rollouts, got 3"),
        ([robot, "scara"], "robot: arms of 6 joints like the first, got scara with 4"),
        (None, "an arm is a name or a path, got None"),
    ):
        with pytest.raises(InvalidValue, match=said):
            tangere.rollouts(wrong, count=2, **parts(robot, 0.05))
    with pytest.raises(InvalidValue, match=r"force: one number or \(lowest, highest\).* got 'hard'"):
        RandomPushes(force="hard")  # type: ignore[arg-type]


def test_threads() -> None:
    before = tangere.threads()
    assert tangere.threads(1) == 1
    for bad in (0, 10_000, 1.5, True):
        with pytest.raises(InvalidValue, match="threads: a whole number from 1 to"):
            tangere.threads(bad)  # type: ignore[arg-type]
    assert tangere.threads(before) == before


LONG = """
import numpy as np, tangere, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tangere.control.computed_torque import ComputedTorque
robot = tangere.robot("ur10e", rotor_inertia=True)
controller = ComputedTorque(robot, np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0]))
tangere.rollouts(robot, controller=controller, count=64, seconds=0.01)
print("ready", flush=True)
tangere.rollouts(robot, controller=controller, count=1_000_000, seconds=1000.0)
"""


@compiled
def test_ctrl_c_is_heard() -> None:
    """Work for hours ends when it is asked to."""
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)
    assert process.returncode != 0
    assert b"KeyboardInterrupt" in said

FUSED = re.compile(r"\bv?f(n?m(add|sub)|maddsub|msubadd)\w*\b")


@compiled
@pytest.mark.parametrize("name", ["_kernels", "_rollouts"])
def test_instructions(name: str) -> None:
    """A product and a sum rounded once have other bits than rounded twice; GCC fuses in spite of -ffp-contract=off.

    And who leaves the upper halves of AVX's registers in use makes every call 0.1 us slower, and what follows it.
    """
    tool = shutil.which("objdump")
    if tool is None:
        pytest.skip("no objdump on this machine")
    (library,) = Path(tangere.__file__).parent.glob(f"{name}.*.so")
    text = subprocess.run([tool, "-d", "--no-show-raw-insn", str(library)], capture_output=True, text=True).stdout
    if "elf64-x86-64" not in text:
        pytest.skip("not an x86-64 library")
    assert text.count("mulpd") > 100
    assert sorted({line.split()[1] for line in text.splitlines() if FUSED.search(line)}) == []
    wide = [one for one in re.split(r"\n[0-9a-f]+ <", text) if "%ymm" in one or "%zmm" in one]
    assert [one.partition(">")[0] for one in wide if "vzeroupper" not in one] == []


@pytest.fixture(autouse=True)
def no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield
