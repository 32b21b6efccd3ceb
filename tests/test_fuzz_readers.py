"""Every reader on mutated files: an answer or a sentence, never a traceback, never memory without measure.

Seeds are the numbers of the inputs and stand in what a failure says; `make fuzz` is the long form.
"""

from __future__ import annotations

import os
from pathlib import Path

import fuzz_readers
import pytest

COUNT = 5000 if os.environ.get("TANGERE_SOAK") else 60
READERS = (
    "toml", "scenario", "urdf", "calibration", "motors", "csv", "stream", "npz", "mcap", "db3", "manifest", "summary",
    "model", "fmu", "rtde", "primary", "dashboard", "ros2", "svg", "picture", "mjcf", "mesh", "triangles", "surfaces",
    "scene",
)  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.filterwarnings("ignore")
def test_mutated_files(reader: str, tmp_path: Path) -> None:
    if reader not in fuzz_readers.seeds(tmp_path):
        pytest.skip(f"what reads {reader} is not installed")
    first = int(os.environ.get("TANGERE_SEED", "0"))
    print(f"seeds {first} to {first + COUNT - 1}")
    assert fuzz_readers.fuzz(reader, range(first, first + COUNT), tmp_path) == []
