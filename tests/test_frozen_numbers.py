"""The numbers of the library as they were frozen: what moves code must not move them (tests/frozen/numbers)."""

from __future__ import annotations

import json
from collections import Counter

import frozen_numbers as frozen


def test_every_constant_and_default_is_what_it_was() -> None:
    """By name and value, without the module: a constant that moves passes, one that changes is named."""
    was = Counter((name, json.dumps(v)) for name, values in frozen.load("constants").items() for v in values)
    is_ = Counter((name, json.dumps(json.loads(v))) for (name, v), n in frozen.constants().items() for _ in range(n))
    gone, new = was - is_, is_ - was
    lines = [f"{name}: was {value}" for name, value in gone] + [f"{name}: is {value}" for name, value in new]
    assert not lines, f"{len(lines)} constants differ: " + "; ".join(sorted(lines)[:12])
