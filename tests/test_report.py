"""The text of `tangere check`: every number's source and grade, unknown shown as unknown."""

from __future__ import annotations

import pytest

from tangere.cli.checked import check_text, describe
from tangere.errors import UnphysicalModel
from tangere.model.loading import load, names


@pytest.mark.parametrize("arm", names())
def test_every_source_joint_and_link_is_shown(arm: str) -> None:
    model, text = load(arm), check_text(arm)
    squeezed = " ".join(text.split())
    for group, grade, source in describe(model):
        assert f"{group}: {grade}" in text
        assert " ".join(source.split()) in squeezed
    for name in [joint.name for joint in model.joints] + [link.name for link in model.links]:
        assert name in text
    assert max(len(line) for line in text.splitlines()) <= 120


def test_numbers_and_unknowns() -> None:
    ur10e = check_text("ur10e", payload=(2.0, (0.0, 0.0, 0.05)), tool=(0.0, 0.0, 0.1))
    assert "-571.55" in ur10e
    assert "29.104" in ur10e  # total mass
    assert "16.9" in ur10e
    assert "unknown" not in ur10e
    assert "2 kg at 0 0 50 mm" in ur10e
    assert "tool 0 0 100 mm" in ur10e
    assert check_text("ur15").count("unknown") == 24  # no drive data at all: six joints, four quantities
    assert "unlimited" in check_text("ur3e")
    assert "point mass" in check_text("pendulum")


def test_a_refused_model_is_not_described() -> None:
    with pytest.raises(UnphysicalModel):
        check_text("ur10e", parameters="001-literal")
