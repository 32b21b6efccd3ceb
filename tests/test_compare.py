"""Two or more runs on one page: what is said to differ differs, and nothing else is said."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tangere.cli.main import main
from tangere.errors import InvalidValue
from tangere.report.compare import _change, _grid, compare_html, differences, labels
from tangere.report.data import RunData
from tangere.types import Event


def made(name: str = "a", period: float = 1e-2, count: int = 200, **more: object) -> RunData:
    time = period * np.arange(count)
    q = np.sin(time)[:, None] * np.ones(6)
    fields: dict[str, object] = {"robot": "ur10e", "q": q, "tau": 2.0 * q, "residuals": {"": 0.1 * q}}
    parameters = {"friction": "none", "mass": 1.0}
    summary = {"tracking_rms_mm": 0.5, "residual_rms_nm": [0.1, 0.2], "events": []}
    return RunData(name, time=time, parameters=parameters, summary=summary, **(fields | more))  # type: ignore[arg-type]


def test_what_differs() -> None:
    """Settings and figures that are equal to the last digits are left out; one that a run does not have is there."""
    a = made()
    b = replace(a, name="b", parameters={"friction": "full", "mass": 1.0 + 1e-12, "seed": 3},
                summary={"tracking_rms_mm": 1.0, "residual_rms_nm": [0.1, 0.2 + 1e-13], "events": []})  # fmt: skip
    settings, figures = differences([a, b])
    assert settings == [("friction", ["none", "full"]), ("seed", [None, 3])]
    assert figures == [("tracking_rms_mm", [0.5, 1.0])]
    assert differences([a, a]) == ([], [])
    assert differences([a, replace(a, robot="ur5e")])[0] == [("robot", ["ur10e", "ur5e"])]


def test_page() -> None:
    """Each run has its curves, on its own time; a shorter run ends where it ends."""
    runs = [made("first"), made("second", period=5e-3, count=100), made("third")]
    page = compare_html(runs, title="one <two>")
    assert "one &lt;two&gt;" in page
    assert "<two>" not in page
    data = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    for identifier in ("joints-curves", "torques-curves", "residual-curves"):
        figure = next(one for one in data["figures"] if one["id"] == identifier)
        assert len(figure["panels"]) == 6
        assert all([s["name"] for s in panel["series"]] == ["first", "second", "third"] for panel in figure["panels"])
        assert len({s["style"] for s in figure["panels"][0]["series"]}) == 3
    assert "All settings are the same." in page
    assert page.count("no event") == 3


def test_what_changed_most_is_looked_for_in_every_run_and_a_false_alarm_is_called_so() -> None:
    a = made("first")
    event = Event(1, 1.0, 0.99, "push", 1, 20.0, np.zeros(6), 1.0, 0.9, "level")
    told = {"time_s": 1.0, "joint": 1, "torque_nm": 20.04, "false": True}
    b = replace(a, name="second", summary={"tracking_rms_mm": 36.0, "events": [told]}, events=(event,))
    c = replace(a, name="third", summary={"tracking_rms_mm": 3.0})
    page = compare_html([a, b, c]).replace("\N{NO-BREAK SPACE}", " ")
    assert "without pushes, 0.5 mm in first, 36 mm in second." in page
    assert "<td>20</td><td>–</td><td>false alarm</td>" in page


def test_names() -> None:
    assert labels([made("a"), made("a"), made("b")]) == ["a (1)", "a (2)", "b"]


def test_mistakes() -> None:
    with pytest.raises(InvalidValue, match="two to 6 runs, got 1"):
        compare_html([made()])
    with pytest.raises(InvalidValue, match="two to 6 runs, got 7"):
        compare_html([made()] * 7)
    assert "no samples" in compare_html([made(), RunData("empty")])


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs of one scenario: told apart by their folders, the changed setting named, the page written."""
    for name, more in (("soft", "kp=50"), ("stiff", "kp=200")):
        words = ["run", "hold", "--plant", "rigid", "--set", "duration=0.2", more, "--out", str(tmp_path / name)]
        assert main(words) == 0
    capsys.readouterr()
    out = tmp_path / "page.html"
    assert main(["compare", str(tmp_path / "soft"), str(tmp_path / "stiff"), "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == ["soft", "stiff"]
    assert told["settings"]["kp [1/s2]"] == [50.0, 200.0]
    assert "soft against stiff" in out.read_text()
    assert main(["compare", str(tmp_path / "soft")]) == 1
    assert "two runs or more" in capsys.readouterr().err
    assert main(["compare", str(tmp_path / "soft"), str(tmp_path / "none")]) == 1
    assert "no run at" in capsys.readouterr().err


def test_how_many_times_rounding_is_larger_than_rounding_is_not_told() -> None:
    from tangere.report.compare import _change, _said

    assert _change(2e-12, 3e-27) == "–"
    assert _change(0.0, 1.0) == "–"
    assert _change(2.0, 3.0) == "+50\xa0%"
    assert _change(1.0, 4.0) == "×\xa04"
    assert (_said(2.1e-14, "mm"), _said(None, ""), _said("soft", "")) == ("0", "–", "soft")


def test_runs_of_other_periods_share_an_even_time() -> None:
    a, b = made(period=1e-2, count=101), made(period=4e-3, count=126)
    grid = _grid([a, b])
    np.testing.assert_allclose(grid, 4e-3 * np.arange(251), atol=1e-12)  # the finer period, from first to last
    assert len(_grid([made(count=1), made(count=1, period=2e-2)])) == 1  # one sample each at the same time


def test_a_change_is_told_in_one_number_where_there_is_one() -> None:
    told = [_change(before, 1.0).replace("\N{NO-BREAK SPACE}", " ") for before in (0.8, 1.25, 0.25, 0.004, 1e-4, 5e3)]
    assert _change(2.0, 2.0 + 1e-9).replace("\N{NO-BREAK SPACE}", " ") == "0 %"
    assert told == ["+25 %", "−20 %", "× 4", "× 250", "> a thousand times", "< a thousandth"]
