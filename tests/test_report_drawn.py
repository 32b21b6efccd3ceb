"""The page of a drawing: what it must not hide, and whose figures it shows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="drawing is simulated by mujoco")
pytest.importorskip("PIL", reason="pictures are read by Pillow")

from tangere.apps.drawing.draw_picture import DrawingSettings, Drawn, draw_picture, lacking
from tangere.apps.drawing.ink import CLASSES, Ink, colour, coloured_map
from tangere.apps.drawing.page import alarm_of, drawn_html, stiffness_text

PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20">
<path d="M2 2 L18 18" stroke="black" fill="none"/></svg>"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    place = tmp_path_factory.mktemp("page")
    (place / "line.svg").write_text(PICTURE)
    return draw_picture(place / "line.svg", DrawingSettings(size=0.02, controller="both"), out=place / "out")


def with_figures(done: Drawn, **figures: Any) -> Drawn:
    """The same drawing by the first controller alone, with other figures."""
    name, result = next(iter(done.results.items()))
    changed = replace(result, figures=replace(result.figures, **figures))
    return Drawn(done.prepared, {name: changed}, done.summary | figures, done.folder)


def test_a_whole_drawing_has_no_alarm(done: Drawn) -> None:
    assert done.missing == 0
    assert done.incomplete == ""
    assert alarm_of(done) is None
    assert 'role="alert"' not in drawn_html(done)


def test_missing_strokes_and_a_pen_off_the_paper_are_an_alarm(done: Drawn) -> None:
    torn = with_figures(done, strokes=3, strokes_drawn=1)
    assert torn.missing == 2
    assert alarm_of(torn) == ("The drawing is not whole", "2 of 3 strokes were not drawn, or not whole.")
    assert "2 of 3 strokes were not drawn, or not whole" in drawn_html(torn)
    assert lacking(replace(done.main.figures, strokes=1, strokes_drawn=0, contact_lost_s=0.0, draw_s=9.0)) == (
        "1 of 1 stroke was not drawn, or not whole"
    )
    hopping = with_figures(done, contact_lost_s=0.06, draw_s=10.0)
    assert hopping.missing == 0
    assert hopping.incomplete == "the pen was off the paper for 0.06 s, 0.6 % of the time it drew"
    assert "The drawing is not whole" in drawn_html(hopping)
    assert with_figures(done, contact_lost_s=0.04, draw_s=10.0).incomplete == ""  # 0.4 %: within the mark


def test_with_two_controllers_it_is_said_whose(done: Drawn) -> None:
    second = done.results["height-pi"]
    both = {**done.results, "height-pi": replace(second, figures=replace(second.figures, strokes_drawn=0))}
    torn = replace(done, results=both)
    assert torn.incomplete == "height-pi: 1 of 1 stroke was not drawn, or not whole"
    assert drawn_html(done).count(" Controller: hybrid.") == 4  # two maps, two plots
    assert "Controller: hybrid" not in drawn_html(with_figures(done))


def test_a_stiffness_that_was_not_found_is_not_shown_as_found(done: Drawn) -> None:
    assert stiffness_text(replace(done.main.figures, stiffness_hat=20191.4, stiffness_learned=True)) == "20200"
    unknown = replace(done.main.figures, stiffness_hat=1e5, stiffness_learned=False)
    assert stiffness_text(unknown) == "none, the controller took 100000"
    page = drawn_html(with_figures(done, stiffness_hat=1e5, stiffness_learned=False))
    assert "none, the controller took 100000" in page


def test_the_force_scale_does_not_begin_below_0(done: Drawn) -> None:
    """Forces that scatter by more than their mean: the scale's left end is 0 N, where its first label stands."""
    ink = done.main.ink
    wild = Ink(ink.t, ink.x, ink.y, np.abs(5.0 + 8.0 * np.sin(0.1 * np.arange(len(ink)))))
    page = drawn_html(replace(done, results={"hybrid": replace(done.main, ink=wild)}))
    shown = page[page.index("ink coloured by force") : page.index("ink coloured by its distance")]
    labels = re.findall(r'<text x="([0-9.]+)"[^>]*>([^< ]+)', shown)
    assert labels[0] == ("0.0", "0")


def test_each_stroke_has_the_colour_of_its_own_values() -> None:
    """Two strokes, left and right, of least and most: each path lies in its half of the paper, in its end's colour."""
    x = np.concatenate((np.linspace(-0.04, -0.01, 50), np.linspace(0.01, 0.04, 50)))
    t = np.concatenate((np.arange(50) * 1e-3, 1.0 + np.arange(50) * 1e-3))
    values = np.repeat([1.0, 9.0], 50)
    shown = str(coloured_map(Ink(t, x, 0.0 * x, values), values, (0.1, 0.1), "N", "two", (0.0, 10.0)))
    paths = dict(re.findall(r'<path d="M([0-9.]+)[^"]*"[^>]*stroke="(#[0-9a-f]+)"', shown))
    # 520 px of 100 mm: -40 mm and 10 mm from the middle
    level = {start: (int(CLASSES * share) + 0.5) / CLASSES for start, share in (("52.0", 0.1), ("312.0", 0.9))}
    assert paths == {start: colour(share) for start, share in level.items()}


def test_one_stroke_is_not_strokes(done: Drawn) -> None:
    assert "1 stroke, " in drawn_html(done)
    assert "1 strokes" not in drawn_html(done)


def test_what_happened_while_the_pen_settled_is_shown(done: Drawn) -> None:
    page = drawn_html(with_figures(done, settle_s=1.234, force_settle_max_n=6.789))
    assert re.search(r"without drawing, to settle</th><td>1\.23\xa0s<", page)
    assert re.search(r"force while it settled, most</th><td>6\.79\xa0N<", page)


def test_a_page_can_be_written_where_nothing_was_found(tmp_path: Path) -> None:
    """A hole as large as the drawing: no contact, no ink, and the page says so."""
    (tmp_path / "line.svg").write_text(PICTURE)
    settings = DrawingSettings(size=0.02, hole=(0.0, 0.0, 0.1, 0.1))
    lost = draw_picture(tmp_path / "line.svg", settings, out=tmp_path / "out")
    page = drawn_html(lost)
    heading, sentence = alarm_of(lost) or ("", "")
    assert sentence[0].isupper()
    assert heading == "The drawing ended early"
    assert "No paper found" in sentence
    assert "1 of 1 stroke was not drawn" in sentence
    assert "none, the controller took 100000" in page
