"""What several test files share: where the reference data lies, and seeded randomness.

Recordings of real arms and UR's own description files are not part of the repository. They are looked for beside it;
TANGERE_DATA (a folder) says otherwise. Where they are absent the tests that need them are skipped with a sentence that
says so. Golden numbers and logs that our own twin simulated are in tests/data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.types import State

ROOT = Path(__file__).resolve().parent.parent
# what is printed in tests is printed into a pipe, whose width nobody knows; test processes are told one
os.environ.pop("COLUMNS", None)


def _folder(variable: str, default: str) -> Path:
    return Path(os.environ.get(variable) or ROOT.parent / "shared" / default).expanduser().resolve()


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of recordings and vendor files."""
    folder = _folder("TANGERE_DATA", "data")
    if not folder.is_dir():
        pytest.skip(f"no reference data: {folder} does not exist; set TANGERE_DATA to the folder that holds it")
    return folder


@pytest.fixture(scope="session")
def golden() -> dict[str, Any]:
    """The golden numbers of a UR10e (three configurations with FK, J, M, C, g, and the IK of one)."""
    numbers: dict[str, Any] = json.loads((ROOT / "tests" / "data" / "golden.json").read_text())
    return numbers


@pytest.fixture(scope="session")
def pushed_run() -> tuple[list[State], float]:
    """A moving UR10e in irregular periods of 0.2 to 4 ms, pushed from the stamp [s] that is given with it."""
    from test_observe_momentum import PUSH, simulate

    periods = np.random.default_rng(7).uniform(2e-4, 4e-3, 300)
    start = float(np.sum(periods[:100]))
    return simulate(tangere.robot("ur10e"), periods, PUSH, start=start), start


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator seeded afresh for every test, so that a failure repeats alone and in any order."""
    return np.random.default_rng(20240501)


@pytest.fixture(scope="module")
def walled() -> Iterator[str]:
    """The address of a virtual UR5e before a wall: every client finds it as the one before left it, as in a cell."""
    from virtual_arms import WALL, virtual

    with virtual("--wall", str(WALL)) as host:
        yield host


@pytest.fixture
def arm(walled: str) -> Iterator[str]:
    """The same; a test that fails does not leave it stopped for those that follow."""
    from virtual_arms import recover

    yield walled
    recover(walled)
