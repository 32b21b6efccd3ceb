"""Damaged MCAP logs: a chunk costs itself only, and what is missing is said."""

from __future__ import annotations

import io
import re
import struct
from pathlib import Path

import numpy as np

from tangere.logs.log import Log
from tangere.logs.mcap_log import McapFile, write_mcap
from tangere.logs.mcap_read import read_mcap
from tangere.logs.mcap_records import CHUNK, _next_chunk


def some_log(rng: np.random.Generator, n: int) -> Log:
    columns = {name: rng.normal(size=(n, 6)) for name in ("q", "qd", "tau", "residual", "wrench")}
    return Log({"time": np.cumsum(rng.uniform(0.5e-3, 1.5e-3, n)), **columns, "cost": rng.random(n)})


def test_a_damaged_chunk_costs_itself_only(rng: np.random.Generator, tmp_path: Path) -> None:
    log = some_log(rng, 3000)
    write_mcap(log, tmp_path / "log.mcap")
    data = bytearray((tmp_path / "log.mcap").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad.mcap").write_bytes(data)
    part = read_mcap(tmp_path / "bad.mcap")
    assert not part.complete
    assert len(part) == 3000 - 1024
    kept = np.isin(log.time, part.time)
    assert np.array_equal(part["qd"], log["qd"][kept])
    first, last = log.time[~kept][[0, -1]]
    (said,) = part.problems
    begin, end = (float(word) for word in re.findall(r"[0-9.]+(?= s)", said))
    assert begin <= first < last <= end
    assert end - begin < last - first + 0.01


def test_a_flipped_bit_costs_a_chunk_at_most(rng: np.random.Generator, tmp_path: Path) -> None:
    """Wherever it is: never wrong numbers, never called complete where rows are missing."""
    log = some_log(rng, 300)
    rows = log.table()
    columns = {name: array.shape[1] if array.ndim == 2 else 0 for name, array in log.columns.items()}
    file = McapFile(tmp_path / "log.mcap", columns, start_ns=10**18)
    head = file.size
    begins = []
    for first in range(0, 300, 50):
        begins.append(file.size)
        file.write(rows[first : first + 50])
    body = file.size
    file.close()
    whole = (tmp_path / "log.mcap").read_bytes()
    seen = set()
    places = list(zip(rng.integers(head, body, 30).tolist(), rng.integers(0, 8, 30).tolist(), strict=True))
    places += [(begins[1], 7), (begins[2] + 8, 6), (begins[3] + 3, 7)]  # what a chunk is and how long
    for at, bit in places:
        data = bytearray(whole)
        data[at] ^= 1 << bit
        (tmp_path / "bad.mcap").write_bytes(data)
        part = read_mcap(tmp_path / "bad.mcap")
        kept = np.isin(log.time, part.time)
        assert len(part) >= 250
        assert np.array_equal(part["qd"], log["qd"][kept])
        assert part.complete == (len(part) == 300) or "missing" in part.problems[0]
        seen.add(len(part))
    assert 250 in seen


def test_after_damage_a_chunk_that_would_be_longer_than_the_file_is_none() -> None:
    def chunk(length: int) -> bytes:
        return bytes([CHUNK]) + struct.pack("<QQQQII", length, 5, 9, 0, 0, 0) + bytes(40)

    for junk in (3, 700):  # one behind the other, the first one's length beyond the end
        data = bytes(junk) + chunk(900) + bytes(junk) + chunk(32)
        assert _next_chunk(io.BytesIO(data), len(data), 1) == data.rindex(CHUNK)
