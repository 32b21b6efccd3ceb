"""A page on paper and on a phone, in a real browser: nothing runs off, letters can be read, no word about a mouse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from studio_browser import browser, until
from test_report_told import made

from tangere.report.data import RunData
from tangere.report.page import report_html

SHEET = 688  # [px] width of A4 less its margins, 182 mm
SMALLEST = 6.0  # [pt] of a letter in a figure


@pytest.fixture(scope="module")
def page(tmp_path_factory: Any) -> Iterator[Any]:
    """A page of a run with tables and figures, in a window of a desk."""
    file = Path(tmp_path_factory.mktemp("page")) / "page.html"
    told: RunData = made()
    summary = {**told.summary, "residual_rms_nm": [0.000263, 0.00609, 0.000953, 0.0001, 0.0001, 0.0001]}
    file.write_text(report_html(made(summary=summary, tau=told.q)))
    with browser() as open_page:
        yield open_page(f"file://{file}", wait=".live").page


# what stands further right than the sheet, by its words; the sheet is as wide as the window
BEYOND = """() => Array.from(document.querySelectorAll('td, th, p, svg, figcaption, h2, li'))
  .filter((e) => e.getBoundingClientRect().width && e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => e.tagName + ' ' + e.textContent.slice(0, 40))"""
# [pt] of the smallest letter of a figure that is drawn, as it comes out on paper
LETTERS = """() => Math.min(...Array.from(document.querySelectorAll('figure svg text'))
  .filter((e) => e.getClientRects().length)
  .map((e) => 0.75 * parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a))"""


def sized(page: Any, width: int) -> None:
    """A window of that width, once the page has it."""
    page.set_viewport_size({"width": width, "height": 900})
    until(lambda: page.evaluate("innerWidth") == width, f"{width} px")


@pytest.fixture
def sheet(page: Any) -> Iterator[Any]:
    """The page while it is printed."""
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    sized(page, SHEET)
    yield page
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    sized(page, 1280)


def test_on_paper_nothing_runs_off_and_figures_can_be_read(sheet: Any) -> None:
    until(lambda: sheet.evaluate(BEYOND) == [], "nothing runs off", 20.0)  # figures are drawn anew in a frame or two
    until(lambda: sheet.evaluate(LETTERS) >= SMALLEST, "letters that can be read", 20.0)
    shown = sheet.evaluate("document.body.innerText")
    assert "Joint torques, gravity included." in shown
    assert "legend" not in shown
    assert "Drag" not in shown


def test_after_it_was_printed_it_is_as_before(page: Any) -> None:
    assert "Drag to turn" in page.evaluate("document.body.innerText")
    wide = "document.querySelector('.plot svg').viewBox.baseVal.width"
    until(lambda: page.evaluate(wide) > 350, "figures as large as before")


def test_on_a_phone_nothing_is_wider_than_the_screen(page: Any) -> None:
    sized(page, 420)
    until(lambda: page.evaluate("document.documentElement.scrollWidth") <= 420, "no wider than the screen", 20.0)
    # equations of a data sheet: one long line, which scrolls by itself
    page.evaluate("document.querySelector('section').append(Object.assign(document.createElement('pre'), "
                  "{id: 'long', textContent: 'M(q) qdd + '.repeat(30)}))")  # fmt: skip
    until(lambda: page.evaluate("document.documentElement.scrollWidth") <= 420, "no wider for a long line", 20.0)
    page.evaluate("document.getElementById('long').remove()")
    wide = page.locator(".scroll:has(table.joints)").first  # what its rows are stays while it is scrolled
    page.evaluate("document.querySelector('table.joints').style.width = '900px'")
    before = wide.locator("tbody th").first.bounding_box()["x"]
    wide.evaluate("e => { e.scrollLeft = 200 }")
    assert wide.evaluate("e => e.scrollLeft") == 200
    assert wide.locator("tbody th").first.bounding_box()["x"] == before
    page.evaluate("document.querySelector('table.joints').style.width = ''")
    sized(page, 1280)
