"""The studio over minutes and with bad company: behind TANGERE_SOAK, as a busy machine says nothing about them."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from studio_browser import browser, nearest_hit, needs_browser, renderers, until

import tangere

pytest.importorskip("viser", reason="viser is not installed: pip install 'tangere[studio]'")
import viser

from tangere.studio.door import address, cookie_name, guarded_server, stop
from tangere.studio.live import LivePage
from tangere.studio.settings import WorldSettings

pytestmark = pytest.mark.skipif(not os.environ.get("TANGERE_SOAK"), reason="slow: set TANGERE_SOAK")
WARM = 15.0  # [s] after which the curves' window is full
SECONDS = float(os.environ.get("TANGERE_STUDIO_SECONDS", "60"))


def memory():
    """[bytes] of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def live():
    server, door = guarded_server()
    page, end = LivePage(server, WorldSettings(motion="sine"), frames=15.0, plots=5.0), threading.Event()
    worker = threading.Thread(target=page.work, args=(end,), daemon=True)
    worker.start()
    yield server, door, page
    end.set()
    worker.join()
    page.close()
    stop(server)


def late(page, seconds):
    """Share of periods that began more than a period late in so many seconds [s]."""
    time.sleep(0.5)
    ring = page.body.ring
    since = ring.count
    time.sleep(seconds)
    rows = ring.newest(since)[0]
    return float(np.mean(rows[:, ring.fields["lateness"]][:, 0] > 2e-3))


def test_the_link_that_is_hit_is_the_one_in_front():
    needs_browser()
    arm = tangere.robot("ur10e")
    shown = arm.show(browser=False)
    hit: list[int] = []
    stage = shown.page.stage
    for i, parts in enumerate(stage.arm.parts):
        for part in parts.values() if i else ():

            def dragged(link):
                async def noted(event):
                    if event.phase == "start":
                        hit.append(link)

                return noted

            part.on_drag("left")(dragged(i))
    rng = np.random.default_rng(11)
    tried = 0
    with browser((1280, 600)) as open_page:
        page = open_page(shown.address)
        client = until(lambda: list(shown._server.get_clients().values()), "a client")[0]
        client.local_storage.get_item("tangere", timeout=60.0)
        page.page.add_style_tag(content=".mantine-Notifications-root { display: none }")
        while tried < 20:
            q = rng.uniform(-2.0, 2.0, 6) + np.array([0.0, -1.2, 0.0, 0.0, 0.0, 0.0])
            stage.arm.place(q)
            link = int(rng.integers(1, 7))
            joints = stage.arm.links @ stage.arm._inverse
            x, y = page.pixel(client, joints[link - 1][:3, 3])
            box = page.box
            if not (box["x"] + 20 < x < box["x"] + box["width"] - 20 and 20 < y < box["height"] - 20):
                continue
            origin, way = page.ray(client, x, y)
            far = [nearest_hit(stage.arm.meshes[i + 1], joints[i], origin, way) for i in range(6)]
            far.insert(0, nearest_hit(stage.arm.meshes[0], np.eye(4), origin, way))
            order = np.argsort(far)
            if order[0] == 0 or not math.isfinite(far[order[0]]) or far[order[1]] - far[order[0]] < 0.01:
                continue  # the base cannot be pulled; two that touch each other there are one pixel apart
            client.local_storage.get_item("tangere", timeout=60.0)  # the page has placed it
            time.sleep(0.5)
            hit.clear()
            page.page.mouse.move(x, y)
            page.page.mouse.down()
            page.page.mouse.move(x + 12, y + 5)
            page.page.mouse.move(x + 20, y + 9)
            until(lambda: hit, f"something is hit at pose {tried}")
            page.page.mouse.up()
            assert hit == [int(order[0])], (tried, q.tolist(), far)
            tried += 1
    shown.close()


def test_a_client_that_never_reads_and_pages_cost_the_simulation_nothing(live):
    import websockets

    server, door, page = live
    quiet = late(page, 5.0)
    port = server.get_port()

    async def deaf(seconds):
        headers = {"Cookie": f"{cookie_name(port)}={door.token}"}
        async with websockets.connect(
            f"ws://127.0.0.1:{port}", subprotocols=[f"viser-v{viser.__version__}"], origin=f"http://127.0.0.1:{port}",
            additional_headers=headers, max_size=None, max_queue=1,
        ):  # fmt: skip
            await asyncio.sleep(seconds)

    client = threading.Thread(target=lambda: asyncio.run(deaf(SECONDS + WARM + 2.0)), daemon=True)
    client.start()
    time.sleep(WARM)
    before = memory()
    busy = late(page, SECONDS)
    grown = (memory() - before) / 1e6 * 60.0 / SECONDS
    client.join()
    print(f"late without {quiet:.4f}, with a client that never reads {busy:.4f}; {grown:.2f} MB a minute")
    assert busy < quiet + 0.02
    assert grown < 5.0


# in the page: when the arm was seen to move, and when a frame was begun [s]
WATCH = """() => {
  window.moved = []; window.frames = []; let last = null
  const frame = () => { window.frames.push(Date.now() / 1e3); requestAnimationFrame(frame) }
  frame()
  setInterval(() => {
    const arm = window.__viserMutable.nodeRefFromName['/arm/6']
    if (arm && arm.position.x !== last) { last = arm.position.x; window.moved.push([Date.now() / 1e3, last]) }
  }, 4)
}"""


def test_the_page_follows_the_arm_and_memory_is_flat(live, monkeypatch):
    """From the moment at which the server sends where the arm is to that at which the page has it.

    A page takes what has come when it begins a frame, so that a frame that takes long to draw, as without a graphics
    card, is part of it; what is beyond two frames has waited in a queue.
    """
    needs_browser()
    server, door, page = live
    sent: list[tuple[float, float]] = []
    update = page.update

    def updated():
        update()
        sent.append((time.time(), float(page.stage.arm.frames[6].position[0])))

    monkeypatch.setattr(page, "update", updated)
    with browser((1280, 500)) as open_page:
        seen = open_page(address(server, door))
        client = until(lambda: list(server.get_clients().values()), "a client")[0]
        client.local_storage.get_item("tangere", timeout=60.0)
        seen.page.evaluate(WATCH)
        until(lambda: seen.page.evaluate("window.frames.length") > 20, "it draws", 300.0)
        time.sleep(WARM)
        before, start = memory(), time.time()
        time.sleep(SECONDS)
        grown = (memory() - before) / 1e6 * 60.0 / SECONDS
        moved, frames = seen.page.evaluate("[window.moved, window.frames]")
        at, x = np.array(sent).T
        frames = np.array(frames)
        lags, queued = [], []
        for when, value in moved:
            same = np.flatnonzero((np.abs(x - value) < 1e-6) & (at < when + 0.05))
            begun = frames[frames < when - 1e-3]
            if when > start and len(same) and len(begun) > 1:
                lags.append(when - at[same[-1]])
                queued.append(lags[-1] - (when - begun[-2]))  # less the frame before, which held this one up
        lag, waited = (1e3 * float(np.percentile(of, 95)) for of in (lags, queued))
        drawn = 1e3 * float(np.percentile(np.diff(frames[frames > start]), 95))
        print(f"lag p95 {lag:.0f} ms of {len(lags)}, beyond frames {waited:.0f} ms, frames p95 {drawn:.0f} ms, "
              f"{grown:.2f} MB a minute")  # fmt: skip
        assert len(lags) > 10
        assert waited < 300.0
        assert lag < 300.0
        assert grown < 5.0
        assert seen.outside == []


def test_a_browser_that_is_stopped_and_a_second_one_cost_the_simulation_nothing(live):
    """Periods with both browsers stopped by turns with periods with both running; the machine is the same for both."""
    needs_browser()
    server, door, page = live
    with browser((640, 400)) as open_page:
        for k in range(2):
            open_page(address(server, door))
            until(lambda k=k: len(server.get_clients()) > k, "a client")
        stopped: list[float] = []
        running: list[float] = []
        for _ in range(5):
            drawing = renderers()
            assert len(drawing) >= 2
            try:
                for pid in drawing:
                    os.kill(pid, signal.SIGSTOP)
                stopped.append(late(page, 3.0))
            finally:
                for pid in drawing:
                    os.kill(pid, signal.SIGCONT)
            running.append(late(page, 3.0))
        print(f"late: stopped {np.median(stopped):.4f}, running {np.median(running):.4f}")
        assert np.median(stopped) < np.median(running) + 0.02
        rows = page.body.ring.newest(0)[0]
        steps = np.diff(rows[:, page.body.ring.fields["time"]][:, 0])
        assert steps == pytest.approx(0.002)  # none is left out
        assert len(server.get_clients()) == 2
