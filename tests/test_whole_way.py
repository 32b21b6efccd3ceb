"""The whole way with one drawn virtual arm, by commands and its network port; long: tests/whole_way.py."""

from __future__ import annotations

import os

import pytest
from whole_way import whole_way

PUSHES = 6


@pytest.mark.skipif(not os.environ.get("TANGERE_SOAK"), reason="minutes, by two clocks; TANGERE_SOAK=1")
@pytest.mark.xfail(reason="a joint that starts lets go of stiction: up to two false alarms", strict=False)
def test_an_arm_that_nobody_knows_feels_what_tune_says() -> None:
    """Doctor to watch, then six pushes of twice what tune says can be felt.

    The arm's clock and the clients' are not one, so that pushes meet other moments of the motion in each run: of the
    ten minutes and hundred pushes of tests/whole_way.py this one asks for what no luck can give.
    """
    found = whole_way(3, excite=40.0, free=90.0, count=PUSHES, hours=0.0)
    assert "OK" in found["doctor"], found
    assert found["arm_seconds"] < 3600.0, found
    assert found["felt"] >= PUSHES - 1, found
    assert len(found["false_between"]) <= 1, found
