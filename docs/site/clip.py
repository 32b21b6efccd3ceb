"""The moving picture of the README: an arm is pushed, feels it and gives way; then one draws. Frames of the studio.

    python docs/site/clip.py docs/clip.webp

Two runs are made by the command, then shown again by the studio in chromium, with software WebGL, frame by frame.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

RATE = 10  # [1/s] frames of the clip
SIZE = (640, 360)
# [pixel] a window, and the part of it between the studio's panels and below its remark that there is no GPU
WINDOW, CLIP = (1560, 760), {"x": 400, "y": 200, "width": 800, "height": 450}
FLAGS = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
FLAGS += ["--no-sandbox"]
PUSH = "link=6,point=0/0/0,force=0/35/-25,start=1.2,duration=1.6"
RUNS = {
    "pushed": ["run", "impedance", "--set", "stiffness=150", "duration=5", "period=2ms", "--push", PUSH],
    "drawn": ["draw", "snail", "--size", "240mm"],
}


def shown(server: Any, door: Any, run: Any, times: Any, eye: tuple[Any, Any] | None, ink: Any = None) -> Iterator[Any]:
    """Pictures of a run at these times; ink: stamps and points of what the pen left."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    from tangere.studio.door import address
    from tangere.studio.replay import ReplayPage

    page, stop = ReplayPage(server, run), threading.Event()
    worker = threading.Thread(target=page.work, args=(stop,), daemon=True)
    worker.start()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        view = browser.new_page(viewport={"width": WINDOW[0], "height": WINDOW[1]})
        view.goto(address(server, door))
        view.wait_for_selector("canvas[data-engine]", timeout=60_000)
        view.wait_for_timeout(10_000)
        client = next(iter(server.get_clients().values()))
        if eye is not None:
            client.camera.position, client.camera.look_at = eye
        for time in times:
            page.go(float(time))
            if ink is not None and (ink[0] <= time).sum() > 1:
                points = ink[1][ink[0] <= time]
                near = np.linalg.norm(np.diff(points, axis=0), axis=1) < 3e-3  # a longer step is the pen in the air
                lines = np.stack([points[:-1], points[1:]], axis=1)[near]
                server.scene.add_line_segments("/ink", lines, colors=(20, 40, 120), line_width=1.5)
            if ink is not None:  # the pen: a line from the flange as far as the paper was when it first touched
                T, first = (run.robot.pose(run.q[run.index(float(t))]) for t in (time, ink[0][0]))
                pen = T[:3, 3] + T[:3, 2] * np.linalg.norm(first[:3, 3] - ink[1][0])
                server.scene.add_line_segments("/pen", np.array([[T[:3, 3], pen]]), colors=(60, 60, 60), line_width=6.0)
            wanted = tuple(page.stage.arm.frames[6].position)
            view.wait_for_function(
                "p => { const o = window.__viserMutable.nodeRefFromName['/arm/6'];"
                " return o && Math.hypot(o.position.x - p[0], o.position.y - p[1], o.position.z - p[2]) < 1e-4 }",
                arg=list(map(float, wanted)), timeout=60_000,
            )  # fmt: skip
            view.wait_for_timeout(300)
            picture = Image.open(io.BytesIO(view.screenshot(clip=CLIP))).convert("RGB")
            yield picture.resize(SIZE, Image.Resampling.LANCZOS)
        browser.close()
    stop.set()
    worker.join()


def captioned(picture: Any, text: str) -> Any:
    """With a line of text at its lower edge."""
    from PIL import ImageDraw, ImageFont

    ImageDraw.Draw(picture).text((14, SIZE[1] - 34), text, fill=(20, 30, 60), font=ImageFont.load_default(20))
    return picture


def drawn(folder: Path) -> tuple[Any, Any]:
    """Stamps (N,) [s] and points (N, 3) [m] in base axes of what the pen left."""
    from tangere.model.frames import tool_transform

    ink = np.genfromtxt(folder / "ink.csv", delimiter=",", names=True)
    T = tool_transform(json.loads((folder / "manifest.json").read_text())["scenario"]["canvas_pose"])
    flat = np.stack([ink["x"], ink["y"], np.full(len(ink), 2e-3)], axis=1)[::10]
    return ink["t"][::10], flat @ T[:3, :3].T + T[:3, 3]


def main(out: Path) -> None:
    """Make the runs, take the frames, write the clip."""
    from tangere.studio.door import guarded_server, stop
    from tangere.studio.recorded import recorded

    frames: list[Any] = []

    def take(folder: Path, times: Any, text: Callable[[float, Any], str], eye: Any = None, ink: Any = None) -> None:
        server, door = guarded_server()
        run = recorded(folder)
        for time, one in zip(times, shown(server, door, run, times, eye, ink), strict=True):
            frames.append(captioned(one, text(time, run)))
        stop(server)

    def pushed(time: float, run: Any) -> str:
        if time < 1.2:
            return "An arm with a soft place to stay"
        return f"43 N push it: felt after {1e3 * (run.events[0].time_s - 1.2):.0f} ms" if time < 2.8 else "Let go"

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, words in RUNS.items():
            command = [sys.executable, "-m", "tangere", *words, "--out", str(folder / name)]
            subprocess.run(command, check=True, capture_output=True)
        take(folder / "pushed", np.arange(0.0, 5.0, 1.0 / RATE), pushed, ((0.5, -1.5, 0.85), (-0.35, -0.1, 0.45)))
        stamps, points = drawn(folder / "drawn")
        eye = tuple(points.mean(axis=0) + np.array((0.45, -0.45, 0.5))), tuple(points.mean(axis=0) + (-0.05, 0.0, 0.08))
        times = np.linspace(stamps[0], stamps[-1], 5 * RATE)
        take(folder / "drawn", times, lambda *_: "It draws, with a steady 5 N", eye, (stamps, points))
    frames[0].save(out, save_all=True, append_images=frames[1:], duration=1000 // RATE, loop=0, quality=60, method=6)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
