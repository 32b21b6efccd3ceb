"""The page of a simulated arm in a real browser: grab it, let go of it; and the command as people type it."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import numpy as np
import pytest
from studio_browser import Studio, browser, needs_browser, renderers, until

from tangere.cli.main import main
from tangere.studio.grab import ANSWER

SOAK = bool(os.environ.get("TANGERE_SOAK"))
# says chromium of the library that turns the view, at every drag; nothing follows from it
KNOWN = "Unable to preventDefault inside passive event listener invocation."


class Seen:
    """A studio in this process, and pages of it in a browser."""

    def __init__(self, server, door, live, open_page):
        self.server, self.door, self.live, self.open_page = server, door, live, open_page

    def page(self):
        """A new page, once the server knows of it and it has drawn; the page and its client."""
        from tangere.studio.door import address

        before = set(self.server.get_clients())
        page = self.open_page(address(self.server, self.door))
        client = until(lambda: [c for i, c in self.server.get_clients().items() if i not in before], "a client")[0]
        client.local_storage.get_item("tangere", timeout=60.0)  # it has gone through its messages
        page.page.add_style_tag(content=".mantine-Notifications-root { display: none }")  # that WebGL is slow here
        return page, client

    @property
    def now(self):
        ring = self.live.body.ring
        row = ring.newest(ring.count - 1)[0][-1]
        return {name: row[columns] for name, columns in ring.fields.items()}

    @property
    def force(self):
        return float(np.linalg.norm(self.now["force"]))

    def at_rest(self):
        until(lambda: np.abs(self.now["qd"]).max() < 1e-4, "at rest")

    def press(self, page, client, link, point, by=(0.04, 0.04, 0.03)):
        """Take a point of a link with the mouse and drag it by so many metres; the button stays down."""
        start = self.live.stage.arm.in_base(link, point)
        (x, y), (u, v) = page.pixel(client, start), page.pixel(client, start + np.array(by))
        page.page.mouse.move(x, y)
        page.page.mouse.down()
        for k in range(1, 6):
            page.page.mouse.move(x + (u - x) * k / 5, y + (v - y) * k / 5)
            time.sleep(0.06)
        until(lambda: self.force > 1.0, f"a force on link {link}")


@pytest.fixture(scope="module")
def seen():
    needs_browser()
    from tangere.studio.door import guarded_server, stop
    from tangere.studio.live import LivePage
    from tangere.studio.settings import WorldSettings

    server, door = guarded_server()
    live, end = LivePage(server, WorldSettings(), frames=8.0, plots=1.0, silence=30.0), threading.Event()
    live.grab.patience = 30.0  # a busy machine draws slowly; one test has that of everyday use
    worker = threading.Thread(target=live.work, args=(end,), daemon=True)
    worker.start()
    with browser((1280, 500)) as open_page:
        yield Seen(server, door, live, open_page)
    end.set()
    worker.join()
    live.close()
    stop(server)


@pytest.fixture(scope="module")
def first(seen):
    """The page that most tests look at, and its client."""
    return seen.page()


@pytest.fixture(autouse=True)
def hands_off(request):
    """A test that fails leaves no button down for those that follow."""
    yield
    if "first" in request.fixturenames:
        page = request.getfixturevalue("first")[0].page
        if not page.is_closed():
            page.mouse.up()
        request.getfixturevalue("seen").live.grab.release()


# a point of each link that is seen from where the camera starts [m, in the link's frame]
POINTS = {2: (0.3, 0.0, 0.17), 3: (0.3, 0.0, 0.04), 6: (0.0, 0.0, -0.02)}


@pytest.mark.parametrize("link", list(POINTS))
def test_what_is_pulled_is_felt_and_the_label_tells_the_force(seen, first, link):
    page, client = first
    seen.at_rest()
    seen.press(page, client, link, POINTS[link])
    pull = until(lambda: seen.live.grab.pull, "a pull")
    assert pull.link == link
    seen.at_rest()
    arm = seen.live.stage.robot

    def sprung():  # the newest pull: a busy page moves the mouse after the first one
        now, pull = seen.now, seen.live.grab.pull
        T = arm.link_poses(now["q"])[link - 1]
        stretched = np.array(pull.target) - (T[:3, :3] @ np.array(pull.point) + T[:3, 3])
        return (now, pull) if np.allclose(now["force"], pull.stiffness * stretched, rtol=0.01, atol=0.05) else None

    until(sprung, "the force that the spring has")
    seen.at_rest()
    now, pull = until(sprung, "the force that the spring has, at rest")
    assert seen.force < pull.force_max
    torque = arm.jacobian(now["q"], link=link, point=pull.point)[:3].T @ now["force"]
    assert now["residual"] == pytest.approx(torque, abs=0.05)
    label = until(lambda: seen.live.stage.force.text, "a label")
    assert float(label.removesuffix(" N")) == pytest.approx(seen.force, abs=1.0)
    event = until(lambda: next(reversed(seen.live.events.values()), None), "an event")
    assert event.alarm
    page.page.mouse.up()
    until(lambda: seen.force == 0.0, "let go")
    until(lambda: seen.live.stage.force.text == "", "no label")


@pytest.mark.skipif(not SOAK, reason="slow: set TANGERE_SOAK")
def test_a_second_page_watches_and_does_not_take_over(seen, first):
    page, client = first
    other, watching = seen.page()
    seen.at_rest()
    seen.press(page, client, 3, POINTS[3])
    x, y = other.pixel(watching, seen.live.stage.arm.in_base(2, POINTS[2]))
    other.page.mouse.move(x, y)
    other.page.mouse.down()
    other.page.mouse.move(x + 40, y)
    other.page.mouse.move(x + 60, y)
    until(lambda: "another page holds the arm" in " ".join(seen.live.said), "said so")
    assert seen.live.grab.pull.link == 3
    page.page.mouse.up()
    until(lambda: seen.force == 0.0, "let go")
    other.page.close()


def test_keys_are_letters_where_one_types_and_stop_is_one_after_a_box_or_a_choice(seen, first):
    page, client = first
    live, page = seen.live, page.page

    def pressed(key):
        page.keyboard.press(key)
        client.local_storage.get_item("tangere", timeout=60.0)  # whatever it told has come by now
        return live.speed.value

    page.get_by_role("tab", name="Push").click()
    fields = page.locator("input:visible:not([type=checkbox])").all()
    assert len(fields) == 5  # numbers beside three sliders, two choices
    for field in fields:
        field.click()
        assert pressed("s") == "real time"
        page.keyboard.press("Escape")
    page.get_by_role("tab", name="Push").click()  # no field is typed into
    page.keyboard.press("Control+k")
    page.wait_for_selector("input[placeholder='Search commands...']:focus")
    assert pressed("s") == "real time"
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Learn").click()
    page.get_by_text("ellipsoid", exact=True).click()
    until(lambda: live.learn._wanted["ellipsoid"], "the box is ticked")
    page.keyboard.press("s")
    until(lambda: live.speed.value == "paused", "stop after a box")
    page.get_by_text("ellipsoid", exact=True).click()
    page.get_by_role("tab", name="Push").click()
    next(field for field in page.locator("input:visible").all() if field.input_value() == "paused").click()
    page.get_by_role("option", name="real time").click()
    until(lambda: live.speed.value == "real time", "chosen")
    page.keyboard.press("s")
    until(lambda: live.speed.value == "paused", "stop after a choice")
    live.speed.value = "real time"
    live.body.pace(1.0)


def test_a_page_that_is_frozen_lets_go(seen, first, monkeypatch):
    """The renderer is stopped: its connection still answers pings, its own queue does not."""
    page, client = first
    seen.at_rest()
    seen.press(page, client, 3, POINTS[3])
    drawing = renderers()
    assert drawing
    monkeypatch.setattr(seen.live.grab, "patience", ANSWER)
    for pid in drawing:
        os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: seen.force == 0.0, "let go")
        until(lambda: "did not answer" in " ".join(seen.live.said), "said so")  # after it let go, by another thread
    finally:
        for pid in drawing:
            os.kill(pid, signal.SIGCONT)
    page.page.mouse.up()


def test_nothing_leaves_and_nothing_is_wrong_on_the_page(first):
    page, _ = first
    assert page.outside == []
    assert [text for text in page.errors if text != KNOWN] == []
    blocked = page.page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'came', e => 'blocked')")
    assert blocked == "blocked"


def test_a_page_that_is_closed_lets_go(seen, first):
    page, client = first  # the last that looks at it
    seen.at_rest()
    seen.press(page, client, 3, POINTS[3])
    page.page.close()
    until(lambda: seen.force == 0.0, "let go")
    assert seen.live.grab.owner is None


# ---- the command ----


def test_the_command_prints_one_line_and_ends_cleanly_on_sigterm():
    pytest.importorskip("viser")
    studio = Studio()
    address = studio.address
    with socket.create_connection(("127.0.0.1", int(address.split(":")[2].split("/")[0])), timeout=30):
        pass
    code, errors = studio.end()
    assert (code, errors) == (0, "")
    assert studio.lines.get(timeout=30) == ""  # one line, and no more


def test_sigint_ends_it_cleanly_too_before_and_after_it_is_up():
    pytest.importorskip("viser")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a script starts in the background ignores it
    studio = Studio()
    assert studio.address
    assert studio.end(signal.SIGINT)[0] == 0


def test_where_no_browser_opens_that_is_said():
    pytest.importorskip("viser")
    studio = Studio(shown=True, env={"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": "false"})
    assert studio.address
    assert studio.process.stderr is not None
    said = studio.process.stderr.readline()  # it comes after the address
    code, errors = studio.end()
    assert (code, said + errors) == (0, "no browser could be opened; open the address above by hand\n")


def test_a_port_that_is_taken_is_refused(capsys):
    pytest.importorskip("viser")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["studio", "--no-browser", "--port", str(port)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"error: --port: {port} is taken by another program; leave --port out to get the next one that is free\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--robot", "ur99"], "unknown robot 'ur99'"),
        (["--controller", "magic"], "computed torque"),
        (["--log", "run.csv"], "a file that ends with .mcap"),
        (["--payload", "-1"], "payload"),
    ],
)
def test_what_cannot_be_is_one_sentence(words, sentence, capsys):
    pytest.importorskip("viser")
    try:
        code = main(["studio", "--no-browser", *words])
    except SystemExit as end:
        code = end.code
    assert code in (1, 2)
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err


def test_without_viser_the_line_that_installs_it_is_said(monkeypatch, capsys):
    import sys

    monkeypatch.setitem(sys.modules, "viser", None)
    assert main(["studio", "--no-browser"]) == 1
    assert "pip install 'tangere[studio]'" in capsys.readouterr().err
