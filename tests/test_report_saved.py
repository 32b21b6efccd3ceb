"""What the figures of a page leave when they are saved: csv, SVG and PDF."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from test_report_told import made

from tangere.figures.markup import csv_text
from tangere.report.page import write_report


def test_csv_has_gaps_and_a_limit() -> None:
    text = csv_text({"a": np.array([1.0, np.nan, 3.0]), "b": np.array([0.5])})
    assert text == "a,b\n1,0.5\n,\n3,\n"
    assert csv_text({"a": np.arange(1e5)}, 100).count("\n") <= 103


# --- saved by a click ------------------------------------------------------------------------------------------------


def test_every_figure_is_saved_as_svg_pdf_and_csv(tmp_path: Path) -> None:
    """In a browser in the dark: light drawings, 85 and 178 mm wide, that hold what the page holds."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium to save figures with")
    path = write_report(made(timing_us=np.linspace(10.0, 20.0, 200)), tmp_path / "page.html")
    said: list[str] = []
    with sync.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(accept_downloads=True, color_scheme="dark").new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri())
        figures = page.locator("figure:has(svg)").count()
        words = page.locator(".tools button").all_inner_texts()
        for mm in (85, 178):
            assert words.count(f"SVG {mm}") == words.count(f"PDF {mm}") == figures >= 8
        for name in ("residual-torque", "setup"):
            page.goto("about:blank")  # of one visit a browser saves ten files within a second, and drops the next
            page.goto(path.as_uri())
            for button in page.locator(f"#{name} .tools button").all():
                with page.expect_download() as waiting:
                    button.click()
                waiting.value.save_as(tmp_path / waiting.value.suggested_filename)
        browser.close()
    assert said == []
    for mm in (85, 178):
        drawn = ElementTree.parse(tmp_path / f"residual-torque-{mm}mm.svg").getroot()
        assert drawn.get("width") == f"{mm}mm"
        curves = [e for e in drawn.iter("{http://www.w3.org/2000/svg}path") if e.get("stroke") == "rgb(0, 103, 168)"]
        assert len(curves) == 7  # the light blue of six residuals and of their key, whatever the page's scheme
        raw = (tmp_path / f"residual-torque-{mm}mm.pdf").read_bytes()
        (wide,) = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ", raw)
        assert float(wide) == pytest.approx(mm * 72 / 25.4, abs=0.5)
        _check_pdf(raw)
        _check_pdf((tmp_path / f"setup-{mm}mm.pdf").read_bytes())
    rows = (tmp_path / "residual-torque.csv").read_text().split("\n")
    head = rows[0].strip().split(",")
    column = head.index("Joint 2 · shoulder lift: residual [Nm]")
    told = {float(row.split(",")[0]): row.split(",")[column] for row in rows[1:] if row.strip()}
    assert float(told[1.2] if 1.2 in told else told[1.0]) == 20.0
    assert float(told[0.0]) == 0.0


def _check_pdf(raw: bytes) -> None:
    """Every object lies where the table of contents says, and a reader finds no fault where there is one."""
    start = int(re.findall(rb"startxref\n(\d+)", raw)[0])
    places = [int(p) for p in re.findall(rb"(\d{10}) 00000 n", raw[start:])]
    for k, place in enumerate(places, start=1):
        assert raw[place:].startswith(b"%d 0 obj" % k)
    (length,) = re.findall(rb"/Length (\d+) >>\nstream\n", raw)
    begin = raw.index(b"stream\n") + 7
    assert raw[begin + int(length) :].startswith(b"\nendstream")
    if tool := shutil.which("pdftotext"):
        done = subprocess.run([tool, "-", "-"], input=raw, capture_output=True, check=False)
        assert done.returncode == 0
        assert done.stderr == b""
