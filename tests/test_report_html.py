"""The report of a run: whole, self-contained, escaped, and holding the numbers that it was given."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.figures.markup import WHOLE, decode
from tangere.report.data import RunData
from tangere.report.page import report_html, write_report
from tangere.types import Event

EVIL = "<script>alert(1)</script>\"' onload=x </style></title>-->&amp;\x00\u2028\udcff"
SECTIONS = ("glance", "summary", "residual", "tracking", "joints", "torques", "setup", "timing", "what")
VOID = {"meta", "input", "br", "img"}


class Page(HTMLParser):
    """The elements of a page, and whether every one of them is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.scripts, self.open = list[str](), list[str](), list[str]()
        self.feed(page)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len(dict(attributes)) == len(attributes), f"an attribute twice in <{name}>"
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        (self.scripts if self.open and self.open[-1] == "script" else self.text).append(data)

    def names(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for element, attributes in self.elements if element == name]

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found


def parsed(data: RunData) -> Page:
    page = Page(report_html(data))
    assert page.open == []
    return page


def run_of(robot: Any, count: int = 400, **changes: Any) -> RunData:
    """A UR10e that swings about a pose, felt at joint 2 between 1 and 2 s."""
    time = np.linspace(0.0, 4.0, count)
    swing = np.outer(np.sin(2.0 * time), np.array([0.3, 0.1, 0.2, -0.1, 0.05, 0.4]))
    q_des = np.array([0.1, -1.2, 1.8, -2.1, -1.57, 0.0]) + swing
    push = np.where((time >= 1.0) & (time < 2.0), 20.0, 0.0)
    true = np.zeros((count, 6))
    true[:, 1] = push
    rng = np.random.default_rng(3)
    fields: dict[str, Any] = {
        "name": "swing",
        "command": "tangere run swing --seed 3",
        "parameters": {"kp [1/s2]": 100.0, "gains": [1.0, 2.0], "paced": False},
        "robot": robot,
        "blocks": {"controller": "computed torque", "push": "20 Nm at joint 2"},
        "time": time,
        "q": q_des + 1e-4 * rng.standard_normal(q_des.shape),
        "q_des": q_des,
        "tau": 30.0 * swing,
        "residuals": {"momentum": true + 0.01 * rng.standard_normal(true.shape)},
        "tau_ext_true": true,
        "timing_us": 10.0 + rng.random(count),
        "thresholds": np.full(6, 2.0),
        "period": 0.01,
        "events": (Event.sample(1.01, 2, np.array([0.0, 5.1, 0.0, 0.0, 0.0, 0.0]), end_s=2.02),),
        "notes": ((0.5, "torque limited"),),
        "summary": {"tracking_rms_mm": 0.0123, "residual_rms_nm": [0.01] * 6, "realtime_factor": 20.0,
                    "events": [{"time_s": 1.01, "torque_nm": 19.9, "true_torque_nm": 20.0, "delay_ms": 10.0}]},
    }  # fmt: skip
    return RunData(**(fields | changes))


@pytest.fixture(scope="module")
def robot() -> Any:
    return tangere.robot("ur10e")


@pytest.fixture(scope="module")
def data(robot: Any) -> RunData:
    return run_of(robot)


# --- structure -------------------------------------------------------------------------------------------------------


def test_every_section_is_there_in_order(data: RunData) -> None:
    page = parsed(data)
    assert tuple(a["id"] for a in page.names("section")) == SECTIONS
    assert [a["href"] for a in page.names("a") if a.get("class") != "again"] == [f"#{name}" for name in SECTIONS]
    anchors = [a["id"] for _, a in page.elements if a.get("id")]
    assert len(set(anchors)) == len(anchors)
    live = [figure["id"] for figure in page.data["figures"]]
    assert set(live) <= set(anchors)
    assert {"frames", "joint-position", "motion", "tracking-error", "torque", "residual-torque"} <= set(live)


def test_every_figure_says_how_to_make_it_again(data: RunData) -> None:
    page = report_html(data)
    figures = re.findall(r"<figure.*?</figure>", page, re.DOTALL)
    assert len(figures) >= 8
    assert all("tangere run swing --seed 3" in figure for figure in figures)


def test_nothing_is_fetched_from_elsewhere(data: RunData) -> None:
    page = parsed(replace(data, video=b"\x00clip"))
    assert not [
        name for name, _ in page.elements if name in ("link", "img", "iframe", "object", "embed", "base", "form")
    ]
    for name, attributes in page.elements:
        for key in ("src", "href", "xlink:href", "action", "poster", "data", "srcset"):
            value = attributes.get(key)
            assert value is None or value.startswith(("#", "data:video/mp4;base64,")), (name, key)
        assert not [key for key in attributes if key.startswith("on")], name
    style = re.search(r"<style>(.*?)</style>", report_html(data), re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    # the one address in the script is the name of SVG itself, which nobody opens
    assert set(re.findall(r"https?://[^\"'\s]+", page.scripts[1])) == {"http://www.w3.org/2000/svg"}


def test_only_our_script_may_run(data: RunData) -> None:
    page = parsed(data)
    policy = next(a["content"] for a in page.names("meta") if a.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert policy is not None
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy


def test_still_drawings_do_without_the_script(data: RunData) -> None:
    html = report_html(data)
    panels = re.findall(r'<div class="plot">(.*?)</div>', html, re.DOTALL)
    assert len(panels) == 1 + 6 + 6 + 1 + 6 + 6  # at a glance: that of the joint that was touched
    assert all(re.search(r'<path class="line [a-d]" d="M[-\d. L]+', panel) for panel in panels)
    assert "<noscript>" in html


# --- what comes from outside -----------------------------------------------------------------------------------------


def test_everything_from_outside_is_escaped(data: RunData) -> None:
    hostile = replace(
        data,
        name=EVIL,
        command=EVIL,
        parameters={EVIL: EVIL},
        blocks=dict.fromkeys(("reference", "controller", "plant", "observer", "detection", "push"), EVIL),
        residuals={EVIL: data.residuals["momentum"]},
        notes=((0.1, EVIL),),
        summary={EVIL: EVIL, "shares": {EVIL: 1.0}, "interventions": {EVIL: 3}},
        aborted=EVIL,
    )
    calm, page = parsed(data), parsed(hostile)
    assert len(page.names("script")) == 2
    assert len(page.scripts) == 2
    assert page.scripts[1] == calm.scripts[1]
    shown = "".join(page.text)
    assert shown.count("<script>alert(1)</script>") >= 8  # shown as text
    assert not [a for _, attributes in page.elements for a in attributes if a.startswith("on")]
    names = {s["name"] for f in page.data["figures"] if "panels" in f for p in f["panels"] for s in p["series"]}
    assert any("<script>" in name for name in names)  # and the legend still finds it by its name
    json.dumps(page.data).encode("utf-8")


def test_a_robot_that_cannot_be_loaded_is_said(data: RunData) -> None:
    page = parsed(replace(data, robot="no <b>such</b> robot", tcp=np.zeros((400, 3))))
    shown = "".join(page.text)
    assert "The frames of the arm are not drawn" in shown
    assert "no <b>such</b> robot" in shown
    assert "motion" not in [figure["id"] for figure in page.data["figures"]]


# --- numbers ---------------------------------------------------------------------------------------------------------


def columns(page: Page, identifier: str, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """(times, values) of a series, panel by panel."""
    figure = next(f for f in page.data["figures"] if f["id"] == identifier)
    shared = decode(figure.get("t", page.data["t"]))
    out = []
    for panel in figure["panels"]:
        found = next(s for s in panel["series"] if s["name"] == name)
        out.append((decode(found["t"]) if "t" in found else shared, decode(found["v"])))
    return out


def test_the_page_holds_the_numbers_of_the_run(data: RunData) -> None:
    page = parsed(data)
    given = {
        ("joint-position", "real"): data.q,
        ("joint-position", "reference"): data.q_des,
        ("torque", "torque"): data.tau,
        ("residual-torque", "residual, momentum"): data.residuals["momentum"],
    }
    for (figure, name), expected in given.items():
        assert expected is not None
        for j, (time, values) in enumerate(columns(page, figure, name)):
            # 4-byte floats: half a unit in the last of 24 bits
            np.testing.assert_allclose(time, data.time, rtol=6e-8, atol=1e-12)
            np.testing.assert_allclose(values, expected[:, j], rtol=6e-8, atol=1e-12)


def test_the_error_of_the_tool_is_that_of_the_kinematics(data: RunData, robot: Any) -> None:
    assert data.q is not None
    assert data.q_des is not None
    ((_, distance),) = columns(parsed(data), "tracking-error", "distance")
    expected = [
        1e3 * np.linalg.norm(robot.pose(a)[:3, 3] - robot.pose(b)[:3, 3])
        for a, b in zip(data.q, data.q_des, strict=True)
    ]
    np.testing.assert_allclose(
        distance, expected, rtol=1e-6
    )  # float32, after a difference of numbers near 1 m in 8 bytes


def test_a_piecewise_constant_column_keeps_its_corners_only(data: RunData) -> None:
    assert data.tau_ext_true is not None
    time, values = columns(parsed(data), "residual-torque", "true external torque")[1]
    assert len(values) <= 8
    np.testing.assert_allclose(np.interp(data.time, time, values), data.tau_ext_true[:, 1], atol=1e-4)


def test_ten_seconds_at_a_kilohertz_stay_below_two_megabytes(robot: Any) -> None:
    size = len(report_html(run_of(robot, 10_000)).encode())
    assert 1_000_000 < size < 2_000_000  # the lower bound: the columns are really in there


def test_a_long_run_stays_as_small_and_keeps_its_peaks(robot: Any) -> None:
    count = 100_000
    tau = np.zeros((count, 6)) + np.random.default_rng(1).standard_normal((count, 6))
    tau[77_777, 3] = 99.0
    page = report_html(run_of(robot, count, tau=tau))
    assert len(page.encode()) < 2_000_000
    time, values = columns(Page(page), "torque", "torque")[3]
    assert values.max() == 99.0
    assert len(values) <= WHOLE // 3 + 2
    assert np.all(np.diff(time) > 0.0)


# --- bad runs --------------------------------------------------------------------------------------------------------


def test_a_contact_force_has_a_section_of_its_own(data: RunData) -> None:
    wrench = np.zeros((400, 6))
    assert "force" not in [a["id"] for a in parsed(replace(data, wrench=wrench)).names("section")]
    wrench[100:200, :3] = [3.0, 0.0, 4.0]
    ((time, values),) = columns(parsed(replace(data, wrench=wrench)), "contact-force", "magnitude")
    np.testing.assert_allclose(np.interp(data.time[[50, 150]], time, values), [0.0, 5.0])


def test_an_abort_is_said_at_the_top(data: RunData) -> None:
    html = report_html(replace(data, aborted="joint 3 left its limits"))
    assert html.index("joint 3 left its limits") < html.index("<section")
    assert 'role="alert"' in html
    assert 'role="alert"' not in report_html(data)


def test_an_empty_run(robot: Any) -> None:
    page = parsed(RunData("nothing"))
    assert tuple(a["id"] for a in page.names("section")) == SECTIONS[1:]  # nothing to glance at
    assert "The log is empty" in "".join(page.text)
    empty = np.zeros((0, 6))
    parsed(run_of(robot, 0, time=np.zeros(0), q=empty, q_des=empty, tau=empty, residuals={"m": empty},
                  tau_ext_true=empty, timing_us=np.zeros(0)))  # fmt: skip


def test_a_single_sample(robot: Any) -> None:
    page = parsed(run_of(robot, 1))
    assert "h0.01" in report_html(run_of(robot, 1))  # a dot
    assert len(columns(page, "torque", "torque")[0][1]) == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300, -1e39])
def test_bad_values_are_gaps_or_clipped_and_break_nothing(robot: Any, bad: float) -> None:
    good = run_of(robot)
    assert good.q is not None
    assert good.tau is not None
    q, tau, timing = good.q.copy(), good.tau.copy(), np.full(400, 10.0)
    tau[100:120, 2] = bad
    q[50, 1] = bad
    timing[7] = bad
    changed = run_of(robot, q=q, tau=tau, timing_us=timing, thresholds=[bad] * 6, tau_max=[bad] * 6,
                     summary={"tracking_rms_mm": bad, "realtime_factor": bad}, notes=((bad, "x"),))  # fmt: skip
    html = report_html(changed)
    page = Page(html)
    stored = columns(page, "torque", "torque")[2][1]
    np.testing.assert_array_equal(stored[100:120], tau[100:120, 2])
    drawings = "".join(re.findall(r"<svg.*?</svg>", html, re.DOTALL))
    coordinates = "".join(re.findall(r' (?:d|x|y|cx|cy|width|height)="([^"]*)"', drawings))
    assert not re.search(r"nan|inf|e\+", coordinates)


def test_all_nan(robot: Any) -> None:
    nothing = np.full((400, 6), np.nan)
    parsed(run_of(robot, q=nothing, q_des=nothing, tau=nothing, residuals={"m": nothing}, tau_ext_true=nothing))


def test_columns_of_a_wrong_shape_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"q must be \(3, n\), got shape \(2, 6\)"):
        RunData("x", time=np.zeros(3), q=np.zeros((2, 6)))
    with pytest.raises(InvalidValue, match=r"tcp must be \(3, 3\)"):
        RunData("x", time=np.zeros(3), tcp=np.zeros((3, 2)))


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_report_is_whole_or_not_there(data: RunData, tmp_path: Path) -> None:
    path = write_report(data, tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == report_html(data)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(InvalidValue, match="cannot write"):
        write_report(data, tmp_path / "none" / "report.html")


@pytest.mark.parametrize("name", ["pendulum", "planar3r", "scara", "ur3"])
def test_other_arms_are_drawn_too(name: str) -> None:
    arm = tangere.robot(name)
    parsed(RunData("x", robot=name, time=np.arange(3.0), q=np.zeros((3, arm.dof)), q_des=np.zeros((3, arm.dof))))


def test_a_report_needs_no_heavy_module(root: Path) -> None:
    code = (
        "import sys, numpy as np; from tangere.report.data import RunData\n"
        "from tangere.report.page import report_html, write_report\n"
        "report_html(RunData('x', robot='ur10e', time=np.arange(3.0), q=np.zeros((3, 6))))\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True, cwd=root
    )
    assert not {"mujoco", "imageio", "matplotlib", "scipy", "mcap"} & set(done.stdout.split())


# --- in a browser, and pictures --------------------------------------------------------------------------------------


def test_the_page_comes_to_life_without_a_word(data: RunData, tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium to look at the page with")
    assert data.tau is not None
    tau = data.tau.copy()
    tau[3:9] = [[np.nan], [1e300], [np.inf], [0.0], [1e-300], [-1e39]]
    path = write_report(replace(data, name=EVIL, tau=tau), tmp_path / "report.html")
    done = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
         "--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--virtual-time-budget=2000",
         f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,1000", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    assert re.search(r'<html lang="en" class="live">', done.stdout)
    assert '<div class="zoombar" hidden="">' in done.stdout
    assert re.search(r'<div class="player">.*?<output>1.0\d s</output>', done.stdout, re.DOTALL)


def test_events_are_shaded_while_they_last_and_told_as_the_summary_knows_them(data: RunData) -> None:
    from tangere.report.section import event_bands

    (band,) = event_bands(data)
    assert (band.start, band.end) == (1.01, 2.02)
    lasting = replace(data, events=(replace(data.events[0], end_s=None),))
    assert event_bands(lasting)[0].end == data.time[-1]
    ((event, entry),) = data.judged
    assert (event.torque_nm, entry["torque_nm"], entry["true_torque_nm"]) == (5.1, 19.9, 20.0)
    stop = replace(data, events=(replace(data.events[0], kind="stop"),))
    assert "2 (stop, no alarm)" in report_html(stop)
    assert "felt at joint" not in report_html(stop)  # what raises no alarm is no touch
    assert "felt at joint 2" in report_html(data)
    assert replace(data, summary={}).judged[0][1] == {"torque_nm": 5.1}  # what the event itself says
