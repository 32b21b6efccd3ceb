"""The numbers of the library as they were frozen: what moves code must not move them (tests/frozen/numbers)."""

from __future__ import annotations

import json

import frozen_control
import frozen_numbers as frozen
import frozen_observe
import pytest

# Where MuJoCo, a closed loop, a near singular solve or a fit of many rows computes: other processors round otherwise
LOOSE = dict.fromkeys(("drawings", "mujoco_plants", "held_up", "thresholds", "reactions", "controllers"), 1e-9)
LOOSE["smoothings"] = LOOSE["observers"] = 1e-8
LOOSE["wrenches"] = 1e-7
LOOSE["identified"] = 1e-8


def test_every_constant_and_default_is_what_it_was() -> None:
    """By name and value, without the module: a constant that moves passes, one that changes is named.

    New names are welcome, and one constant may take the place of two equal ones.
    """
    was = {(name, json.dumps(v)) for name, values in frozen.load("constants").items() for v in values}
    is_ = {(name, json.dumps(json.loads(v))) for name, v in frozen.constants()}
    known = {name for name, _ in was}
    lines = [f"{name}: was {value}" for name, value in was - is_]
    lines += [f"{name}: is {value}" for name, value in is_ - was if name in known]
    assert not lines, f"{len(lines)} constants differ: " + "; ".join(sorted(lines)[:12])


@pytest.mark.parametrize("name", [*frozen_observe.CASES, *frozen_control.CASES])
def test_numbers_are_what_they_were(name: str) -> None:
    case = (frozen_observe.CASES | frozen_control.CASES)[name]
    tolerance = LOOSE.get(name, 1e-12)
    # 2e-6: the last digit of what was rounded to 6 places before it was frozen
    frozen.check(name, case(), tolerance, 2e-6 if name == "isolation" else max(2e-9 * (tolerance > 1e-12), 1e-12))
