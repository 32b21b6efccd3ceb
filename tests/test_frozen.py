"""Every command still leaves what it left when `tests/frozen` was written (see frozen_cases.py)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from frozen_cases import CASES, FOLDER, Case, execute
from frozen_reduce import difference


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_frozen(case: Case, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if case.slow and not os.environ.get("TANGERE_SOAK"):
        pytest.skip("slow: set TANGERE_SOAK")
    data = request.getfixturevalue("data_dir") if case.data else None
    frozen = json.loads((FOLDER / f"{case.name}.json").read_text())
    now = json.loads(json.dumps(execute(case, tmp_path, data)))
    found = difference(frozen, now, case.rtol)
    assert found is None, f"{case.name}: {found}"


def test_nothing_frozen_is_forgotten() -> None:
    assert sorted(p.stem for p in FOLDER.glob("*.json")) == sorted(case.name for case in CASES)
