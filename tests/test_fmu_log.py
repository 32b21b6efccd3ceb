"""What a block tells its host: the categories that were asked for, and no others."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from fmu_block import Maker, refused

import tangere

OK, WARNING, DISCARD, ERROR = range(4)


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    return Maker(tmp_path_factory.mktemp("fmus"), tangere.robot("ur5e")).block


def test_log_categories(make):
    block = make("arm", exchange=True)
    f = block.fmu
    f.newDiscreteStates()
    assert block.messages[-1] == (OK, "logEvents", "sample at 0 s")
    assert refused(f.setDebugLogging, True, ["logNothing"]) == ERROR
    assert "logNothing" in block.messages[-1][2]


CATEGORIES = {OK: "logEvents", WARNING: "logStatusWarning", DISCARD: "logStatusDiscard", ERROR: "logStatusError"}


def provoked(make, status: int, **options):
    """A block, and a call that it answers with this status and a message."""
    if status == OK:
        block = make("arm", exchange=True, **options)
        return block, block.fmu.newDiscreteStates
    block = make("ik", **options)
    if status == WARNING:
        block.set("position", [9.0, 0, 0])
        return block, lambda: block.get("found")
    if status == DISCARD:
        return block, lambda: refused(block.set, "position", [np.nan, 0, 0]) == DISCARD or pytest.fail("not discarded")
    return block, lambda: refused(block.fmu.getReal, [4000]) == ERROR or pytest.fail("not refused")


@pytest.mark.parametrize("status", list(CATEGORIES))
def test_only_the_categories_that_were_chosen_are_told(make, status):
    own = CATEGORIES[status]
    others = [c for c in (*CATEGORIES.values(), "logStatusFatal") if c != own]

    def told(logging, *chosen):
        block, call = provoked(make, status, logging=logging)
        if chosen:
            block.fmu.setDebugLogging(*chosen)
        call()
        assert {m[:2] for m in block.messages} <= {(status, own)}
        return len(block.messages)

    assert told(True) == told(False, True, []) == told(False, True, [own]) == told(False, True, ["logAll"]) == 1
    assert told(False) == told(True, False, []) == told(True, False, [own]) == told(True, True, others) == 0


def test_why_there_is_no_instance_is_told_to_all(make):
    """Also without logging: there is no status that could say it."""
    block = make("fk", logging=False)
    place = (block.unzipped / "resources").as_uri().encode()
    assert not block.fmu.fmi2Instantiate(b"other", 1, b"{wrong}", place, ctypes.byref(block._callbacks), 0, 0)
    assert "GUID" in block.messages[-1][2]
