"""The studio in a real browser: the command as a process, chromium with software WebGL, and where a point is seen."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FLAGS = [
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist",
    "--no-sandbox", "--disable-accelerated-2d-canvas", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
]  # fmt: skip
PATIENCE = 60.0  # s: for a busy machine; what is awaited comes within a second on a quiet one


def needs_browser() -> str:
    """Path of chromium; skips where it, playwright or viser is absent."""
    pytest.importorskip("viser", reason="viser is not installed: pip install 'tangere[studio]'")
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no chromium: the studio is not looked at")
    return found


def until(what: Callable[[], Any], why: str, patience: float = PATIENCE) -> Any:
    """Wait until it is true; its value."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if value := what():
            return value
        time.sleep(0.02)
    raise AssertionError(f"{why}: not within {patience:g} s")


def turn(wxyz: Any) -> Any:
    """The rotation of a quaternion."""
    w, x, y, z = wxyz
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


class Page:
    """One page of a browser, with every request, socket and error that it had."""

    def __init__(self, context: Any, address: str, wait: str = "canvas[data-engine]") -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(2e3 * PATIENCE)  # of clicks: without a graphics card one waits for frames
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("websocket", lambda w: self.requests.append(w.url))
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.goto(address)
        self.page.wait_for_selector(wait, timeout=1e3 * PATIENCE)

    @property
    def box(self) -> dict[str, float]:
        """Where the scene is on the page."""
        found: dict[str, float] = self.page.locator("canvas[data-engine]").first.bounding_box()
        return found

    def pixel(self, client: Any, point: Any) -> tuple[float, float]:
        """Where a point of space is seen, by the camera that the page reported."""
        camera, box = client.camera, self.box
        R = turn(camera.wxyz)
        p = R.T @ (np.asarray(point) - camera.position)  # x right, y down, z forward
        f = 0.5 * box["height"] / np.tan(0.5 * camera.fov)
        return box["x"] + box["width"] / 2 + f * p[0] / p[2], box["y"] + box["height"] / 2 + f * p[1] / p[2]

    def ray(self, client: Any, x: float, y: float) -> tuple[Any, Any]:
        """Origin and direction (base axes) of what is seen at a pixel."""
        camera, box = client.camera, self.box
        f = 0.5 * box["height"] / np.tan(0.5 * camera.fov)
        seen = np.array(((x - box["x"] - box["width"] / 2) / f, (y - box["y"] - box["height"] / 2) / f, 1.0))
        return np.array(camera.position), turn(camera.wxyz) @ (seen / np.linalg.norm(seen))

    def slide(self, name: str, share: float) -> None:
        """Click a slider, by the words beside it, at that share of its length."""
        of = self.page.locator("label", has_text=name).first.get_attribute("for")
        track = self.page.locator(f"[id='{of}'] .mantine-Slider-trackContainer")
        track.scroll_into_view_if_needed()
        box = track.bounding_box()
        self.page.mouse.click(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])

    @property
    def outside(self) -> list[str]:
        """Requests that went elsewhere than to this machine."""
        own = ("http://127.0.0.1:", "ws://127.0.0.1:", "blob:", "data:", "file:")
        return [url for url in self.requests if not url.startswith(own)]


@contextlib.contextmanager
def browser(size: tuple[int, int] = (1280, 800), scheme: str = "light") -> Iterator[Callable[..., Page]]:
    """A browser; call what is given with an address to get a page of its own."""
    chromium = needs_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        made = play.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        view = {"width": size[0], "height": size[1]}
        yield lambda address, wait="canvas[data-engine]": Page(
            made.new_context(viewport=view, color_scheme=scheme), address, wait
        )
        made.close()


def nearest_hit(meshes: Any, T: Any, origin: Any, direction: Any) -> float:
    """How far along a ray (base axes) a link lies whose meshes are in frame T; inf: it is not met."""
    o, d = T[:3, :3].T @ (origin - T[:3, 3]), T[:3, :3].T @ direction
    best = math.inf
    for mesh in meshes.values():
        a, b, c = (mesh.vertices[mesh.faces[:, i]] for i in range(3))
        e1, e2, s = b - a, c - a, o - a
        p = np.cross(d, e2)
        det = np.einsum("ij,ij->i", e1, p)
        det = np.where(np.abs(det) < 1e-15, np.nan, det)
        u = np.einsum("ij,ij->i", s, p) / det
        r = np.cross(s, e1)
        v = r @ d / det
        t = np.einsum("ij,ij->i", e2, r) / det
        hit = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t > 0.0)
        best = min(best, float(t[hit].min(initial=math.inf)))
    return best


def renderers() -> list[int]:
    """Processes of this one's browser that draw pages."""
    parents = {os.getpid()}
    tasks: dict[int, tuple[int, bytes]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            tasks[int(folder.name)] = (
                int((folder / "stat").read_text().rpartition(")")[2].split()[1]), (folder / "cmdline").read_bytes()
            )
        except OSError:  # it has ended meanwhile
            continue
    for _ in range(6):
        parents |= {pid for pid, (parent, _) in tasks.items() if parent in parents}
    return [pid for pid in parents if b"--type=renderer" in tasks.get(pid, (0, b""))[1]]


class Studio:
    """`tangere studio` as a process."""

    def __init__(self, *words: str, shown: bool = False, env: dict[str, str] | None = None) -> None:
        root = Path(__file__).resolve().parent.parent
        paths = os.pathsep.join([str(root / "src"), *(p for p in sys.path if p)])
        told = {**os.environ, "PYTHONPATH": paths, **(env or {})}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tangere", "studio", *([] if shown else ["--no-browser"]), *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=told,
        )  # fmt: skip
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    @property
    def address(self) -> str:
        """What it printed; waits for it."""
        line = self.lines.get(timeout=PATIENCE)
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        assert found, f"no address in {line!r}: {self.process.stderr.read() if self.process.stderr else ''}"
        return found[0]

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """End it; its exit code and what it printed on standard error."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        return code, "" if self.process.stderr is None else self.process.stderr.read()
