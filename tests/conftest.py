"""What several test files share: where the reference data lies, and seeded randomness.

Recordings of real arms and UR's own description files are not part of the repository. They are looked for beside it;
TANGERE_DATA (a folder) says otherwise. Where they are absent the tests that need them are skipped with a sentence that
says so. Golden numbers and logs that our own twin simulated are in tests/data.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


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


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator seeded afresh for every test, so that a failure repeats alone and in any order."""
    return np.random.default_rng(20240501)
