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
from tangere.errors import InvalidValue, MissingExtra
from tangere.interfaces.report import Event, RunData, write_report
from tangere.interfaces.report.axes import curve, span, ticks
from tangere.interfaces.report.encode import WHOLE, decode, floats, series, strided, thinned
from tangere.interfaces.report.markup import json_block, number, tag, text
from tangere.interfaces.report.page import report_html
from tangere.interfaces.report.path_view import exaggeration, path_view, plane
from tangere.interfaces.report.scene import KINDS, painting_order, scene, view
from tangere.interfaces.report.video import write_still, write_video
from tangere.run.log import Log, Note

EVIL = "<script>alert(1)</script>\"' onload=x </style></title>-->&amp;\x00\u2028\udcff"
SECTIONS = ("what", "summary", "setup", "joints", "space", "tracking", "torques", "residual", "timing")
VOID = {"meta", "input", "br"}


class Page(HTMLParser):
    """The elements of a page, and whether every one of them is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.open: list[str] = []
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
        "events": (Event(1.01, 2, 2.02, 19.9, 20.0, 10.0),),
        "notes": ((0.5, "torque limited"),),
        "summary": {"tracking_rms_mm": 0.0123, "residual_rms_nm": [0.01] * 6, "realtime_factor": 20.0},
    }
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
    assert [a["href"] for a in page.names("a")] == [f"#{name}" for name in SECTIONS]
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
    assert len(panels) == 6 + 6 + 1 + 6 + 6
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


@pytest.mark.parametrize("value", ["</script>", "<!--", "]]>", "\u2028", 'a"b\\', "é"])
def test_json_cannot_be_left(value: str) -> None:
    block = json_block("x", {"k": value})
    inner = block[block.index(">") + 1 : block.rindex("<")]
    assert not set(inner) & set("<>&\u2028")
    assert json.loads(inner) == {"k": value}


def test_json_refuses_what_it_cannot_say() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_block("x", float("nan"))


def test_text_and_attributes_are_escaped() -> None:
    assert tag("p", "<&>", title='"x"') == '<p title="&quot;x&quot;">&lt;&amp;&gt;</p>'
    assert text("a\x00b\udcff") == "a\ufffdb?"


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
    assert tuple(a["id"] for a in page.names("section")) == SECTIONS
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


def log_of(data: RunData, **columns: Any) -> Log:
    assert data.q is not None
    assert data.tau is not None
    return Log(
        {"time": data.time, "q": data.q, "qd": np.gradient(data.q, data.time, axis=0), "tau": data.tau,
         "residual": data.residuals["momentum"], "residual_other": 2.0 * data.residuals["momentum"],
         "cost": np.full(len(data.time), 2e-5), "cost_log": np.full(len(data.time), 1e-6)} | columns,
        notes=(Note(0.5, "touch"),),
    )  # fmt: skip


def test_a_folder_becomes_a_report(data: RunData, tmp_path: Path) -> None:
    from tangere.run.manifest import Manifest, write_json, write_manifest
    from tangere.run.mcap_log import write_mcap

    log = log_of(data)
    write_mcap(log, tmp_path / "log.mcap")
    write_manifest(Manifest.of(["tangere", "run", "a b"], {"robot": "ur10e", "push": {"joint": 2}}), tmp_path)
    write_json(
        {
            "aborted": "stopped",
            "blocks": {"controller": "mine"},
            "thresholds_nm": [2.0] * 6,
            "events": [{"time_s": 1.0, "joint": 2, "torque_nm": 20.0}],
        },
        tmp_path / "summary.json",
    )
    found = RunData.of(tmp_path)
    assert found.command == "tangere run 'a b'"
    assert found.parameters["push joint"] == 2
    assert found.robot == "ur10e"
    assert found.aborted == "stopped"
    assert found.blocks["controller"] == "mine"
    assert found.thresholds is not None
    np.testing.assert_array_equal(found.thresholds, 2.0)
    assert found.events == (Event(1.0, 2, None, 20.0),)
    assert list(found.residuals) == ["", "other"]
    assert found.q is not None
    np.testing.assert_array_equal(found.q, log["q"])
    assert found.timing_us is not None
    np.testing.assert_allclose(found.timing_us[:-1], 21.0)
    path = write_report(tmp_path, tmp_path / "report.html", thresholds=np.full(6, 3.0))
    assert tuple(a["id"] for a in Page(path.read_text()).names("section")) == SECTIONS


def test_a_log_that_was_not_closed_is_said(data: RunData) -> None:
    log = log_of(data)
    cut = Log(log.columns, log.units, log.notes, complete=False)
    assert "not closed" in RunData.of(cut).aborted
    assert RunData.of(log, name="mine").name == "mine"
    with pytest.raises(InvalidValue, match="no such fields: \\['nmae'\\]"):
        RunData.of(log, nmae="mine")


def test_sources_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="no run at"):
        RunData.of(tmp_path / "missing")
    with pytest.raises(InvalidValue, match="no run in"):
        RunData.of(tmp_path)
    with pytest.raises(InvalidValue, match="got int"):
        RunData.of(3)
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(InvalidValue, match="cannot read"):
        RunData.of(tmp_path)


# --- parts -----------------------------------------------------------------------------------------------------------


def test_numbers_are_short_and_never_nan() -> None:
    shown = [number(v) for v in (0.0, 1.0, -0.5, 12345.678, 1e-7, float("nan"), float("inf"), None, 3, 1e300)]
    assert shown == ["0", "1", "−0.5", "12346", "1.000e-07", "–", "∞", "–", "3", "1.000e+300"]


def test_ticks_are_round_and_inside(rng: np.random.Generator) -> None:
    for _ in range(300):
        low = float(rng.normal() * 10.0 ** rng.integers(-6, 6))
        high = low + float(10.0 ** rng.uniform(-5, 6))
        marks = ticks(low, high, 5)
        assert 2 <= len(marks) <= 6
        assert low - 1e-6 * (high - low) <= marks[0] < marks[-1] <= high + 1e-6 * (high - low)
        step = marks[1] - marks[0]
        mantissa = step / 10.0 ** np.floor(np.log10(step) + 1e-6)
        assert min(abs(mantissa - m) for m in (1.0, 2.0, 5.0)) < 1e-3
    assert ticks(1.0, 1.0) == []
    assert ticks(0.0, float("inf")) == []


def test_span_survives_everything() -> None:
    assert span([]) == (-1.0, 1.0)
    assert span([np.array([np.nan])]) == (-1.0, 1.0)
    low, high = span([np.array([1e308, -1e308])])
    assert np.isfinite(high - low)
    low, high = span([np.array([5.0, 5.0])], at_least=1.0)
    assert low < 4.6
    assert high > 5.4


def test_a_curve_keeps_extremes_and_gaps() -> None:
    x = np.linspace(0.0, 500.0, 20_000)
    y = np.full(20_000, 50.0)
    y[9_999] = 3.0
    y[15_000:15_100] = np.nan
    d = curve(x, y)
    assert " 3L" in d
    assert d.count("M") == 2
    assert len(d) < 15_000


def test_floats_come_back(rng: np.random.Generator) -> None:
    values = rng.standard_normal(50)
    np.testing.assert_array_equal(decode(floats(values)), values.astype(np.float32))
    large = np.array([1e300, np.nan, -np.inf, 0.0])
    assert list(floats(large)) == ["f8"]
    np.testing.assert_array_equal(decode(floats(large)), large)


def test_thinning_keeps_ends_and_extremes(rng: np.random.Generator) -> None:
    values = rng.standard_normal(50_000)
    kept = thinned(values, 2000)
    assert kept[0] == 0
    assert kept[-1] == 49_999
    assert len(kept) <= 2000 // 3 + 2
    assert np.argmax(values) in kept
    assert np.argmin(values) in kept
    assert list(thinned(np.array([1.0, 1.0, 1.0, 2.0, 2.0, np.nan, np.nan, np.nan]))) == list(range(8))
    steps = np.repeat([1.0, 2.0, np.nan, 3.0], 6)
    assert list(thinned(steps)) == [0, 5, 6, 11, 12, 17, 18, 23]
    assert set(series(np.arange(4.0), np.array([1.0, 2.0, 1.0, 2.0]))) == {"v"}
    assert list(strided(10, 4)) == [0, 3, 6, 9]
    assert list(strided(11, 4)) == [0, 3, 6, 9, 10]
    assert len(strided(0, 4)) == 0


def test_exaggeration_is_said_and_fits() -> None:
    assert exaggeration(np.full(10, 1e-5), 0.3) == 2000.0  # 7 % of 0.3 m is 21 mm; 2000 * 0.01 mm = 20 mm
    assert exaggeration(np.zeros(10), 0.3) == 1.0
    assert exaggeration(np.full(10, 1.0), 0.3) == 1.0
    angle = np.linspace(0.0, 2.0 * np.pi, 500)
    circle = np.stack([0.7 + 0.15 * np.cos(angle), 0.15 * np.sin(angle), np.full(500, 0.3)], axis=1)
    drawn, sentence = path_view(circle + [1e-5, 0.0, 0.0], circle)
    assert "seen from above" in sentence
    assert "2000 times larger" in sentence
    assert "nan" not in drawn
    pushed = np.arange(500) > 400
    _, sentence = path_view(circle + np.where(pushed, 1e-2, 1e-5)[:, None] * [1.0, 0.0, 0.0], circle, pushed)
    assert "2000 times larger" in sentence
    assert "2 times larger" in sentence.split(";")[1]


@pytest.mark.parametrize(("normal", "name"), [(0, "along x"), (1, "along y"), (2, "from above")])
def test_the_plane_of_a_path_is_found(normal: int, name: str) -> None:
    angle = np.linspace(0.0, 6.0, 50)
    points = np.insert(np.stack([np.cos(angle), np.sin(angle)], axis=1), normal, 0.4, axis=1)
    right, up, said = plane(points)
    assert name in said
    assert right[normal] == 0.0
    assert up[normal] == 0.0


def test_the_scene_is_the_arm(robot: Any, rng: np.random.Generator) -> None:
    q = rng.uniform(-2.0, 2.0, (5, 6))
    drawn = scene(robot, q, np.arange(5.0), "frames", frames=True)
    assert drawn.names == ("0", "1", "2", "3", "4", "5", "6 = tcp")
    np.testing.assert_allclose(drawn.triads[:, 1:, 0], robot.link_poses(q)[..., :3, 3], atol=1e-12)
    axes = drawn.triads[:, :, 1:] - drawn.triads[:, :, :1]
    np.testing.assert_allclose(axes[:, -1] / np.linalg.norm(axes[:, -1], axis=-1, keepdims=True),
                               np.swapaxes(robot.pose(q)[:, :3, :3], -1, -2), atol=1e-12)  # fmt: skip
    # rigid: tubes keep their lengths whatever q
    lengths = np.linalg.norm(drawn.points[:, :, 1] - drawn.points[:, :, 0], axis=-1)
    np.testing.assert_allclose(lengths, np.broadcast_to(lengths[0], lengths.shape), atol=1e-12)
    # the housing of joint i lies on its axis, z of frame i - 1
    before = np.concatenate([np.broadcast_to(np.eye(4), (5, 1, 4, 4)), robot.link_poses(q)[:, :-1]], axis=1)
    housings = [k for k, (_, kind, _) in enumerate(drawn.tubes) if KINDS[kind] == "joint"][-6:]
    for i, k in enumerate(housings):
        for end in (0, 1):
            arm = drawn.points[:, k, end] - before[:, i, :3, 3]
            np.testing.assert_allclose(np.cross(arm, before[:, i, :3, 2]), 0.0, atol=1e-12)
    tool = tangere.robot("ur10e", tool=(0.0, 0.0, 0.1))
    assert scene(tool, q, np.arange(5.0), "x", frames=True).names[-1] == "tcp"


@pytest.mark.parametrize("name", ["pendulum", "planar3r", "scara", "ur3"])
def test_other_arms_are_drawn_too(name: str) -> None:
    arm = tangere.robot(name)
    parsed(RunData("x", robot=name, time=np.arange(3.0), q=np.zeros((3, arm.dof)), q_des=np.zeros((3, arm.dof))))


def test_nearer_tubes_are_drawn_later() -> None:
    right, up, eye = view(0.3, 0.4)
    np.testing.assert_allclose(np.stack([right, up, eye]) @ np.stack([right, up, eye]).T, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(np.cross(right, up), eye, atol=1e-15)
    # a long tube that leans towards the eye: its middle is nearer than the cap at its far end, which still covers it
    tube = [[0.0, 0.0, 0.0], [0.0, 1.0, 0.8]]
    cap = [[0.0, 0.0, 0.1], [0.0, 0.01, 0.1]]
    far = [[0.0, 0.5, -1.0], [0.1, 0.5, -1.0]]
    assert painting_order(np.array([cap, tube, far]), [0.05, 0.04, 0.05]) == [2, 1, 0]


def test_a_report_needs_no_heavy_module(root: Path) -> None:
    code = (
        "import sys, numpy as np; from tangere.interfaces.report import RunData, write_report\n"
        "from tangere.interfaces.report.page import report_html\n"
        "report_html(RunData('x', robot='ur10e', time=np.arange(3.0), q=np.zeros((3, 6))))\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=root
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
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    assert re.search(r'<html lang="en" class="live">', done.stdout)
    assert '<div class="zoombar" hidden="">' in done.stdout
    assert re.search(r'<div class="player">.*?<output>0.00 s</output>', done.stdout, re.DOTALL)


def screen() -> None:
    pytest.importorskip("mujoco")
    pytest.importorskip("imageio_ffmpeg")


def test_a_video_and_a_still(data: RunData, robot: Any, tmp_path: Path) -> None:
    screen()
    imageio = pytest.importorskip("imageio.v2")
    try:
        still = write_still(tmp_path / "still.png", size=(320, 180))
    except MissingExtra as missing:
        pytest.skip(str(missing))
    picture = imageio.imread(still)
    assert picture.shape == (180, 320, 3)
    assert picture.std() > 10.0  # something is seen
    # the line is there: its colour, much more red than blue, is nowhere else in the picture
    assert np.sum(picture[..., 0].astype(int) - picture[..., 2] > 90) > 50
    clip = write_video(robot, Log({"time": data.time, "q": data.q}), tmp_path / "clip.mp4", frames=8, size=(160, 120),
                       trail=False)  # fmt: skip
    with imageio.get_reader(clip) as reader:
        frames = [frame.astype(int) for frame in reader]
    assert len(frames) == 8
    assert np.abs(frames[0] - frames[4]).max() > 60  # it moves
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clip.mp4", "still.png"]


def test_a_video_says_what_is_wrong(robot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log({"time": np.arange(3.0), "q": np.full((3, 6), np.nan)})
    with pytest.raises(InvalidValue, match="frames: 1 to 150"):
        write_video(robot, log, tmp_path / "x.mp4", frames=151)
    with pytest.raises(InvalidValue, match="no motion to film"):
        write_video(robot, log, tmp_path / "x.mp4")
    with pytest.raises(InvalidValue, match="Robot or a plant"):
        write_video(3, log, tmp_path / "x.mp4")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    still = Log({"time": np.arange(3.0), "q": np.zeros((3, 6))})
    with pytest.raises(MissingExtra, match=r"pip install 'tangere\[video\]'"):
        write_video(robot, still, tmp_path / "x.mp4")
    assert not list(tmp_path.iterdir())
