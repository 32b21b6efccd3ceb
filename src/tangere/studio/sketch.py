"""A picture that is dropped on the page: its strokes on the paper, in their order, and the arm's way along them."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tangere.errors import TangereError
from tangere.kinematics.rotation import (
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_vector_from_matrix,
)
from tangere.studio.stage import Arm, words
from tangere.types import Array

FAST = 4.0  # times as fast as the plan: a picture of a minute is looked at in 15 s
FRAMES = 20.0  # [1/s] of the arm that draws
INK = (28, 34, 48)
PAPER = (214, 196, 158)  # cream: white would not be seen on the floor of a light page
FIRST, LAST = np.array((46, 134, 193)), np.array((232, 146, 12))  # colours of the first stroke and of the last
ABOVE = 1.5e-3  # [m] by which lines are drawn above the paper, so that they are seen
LARGEST = 30_000_000  # [bytes] of a picture
ENDINGS = (".png", ".jpg", ".jpeg", ".svg", ".bmp", ".gif", ".webp", ".tif", ".tiff")


class Sketch:
    """The tab of a picture. Planning takes seconds and happens in a thread; the simulated arm goes on meanwhile."""

    def __init__(self, server: Any, robot_name: str, *, name: str = "/sketch") -> None:
        self.server, self.robot_name, self._name = server, robot_name, name
        self.prepared: Any = None
        self.ink = 0  # points of the drawing that are on the paper
        self._parts: list[Any] = []
        self._pen: Arm | None = None
        self._busy = threading.Lock()
        self._run = 0  # a newer drawing ends the one before
        self.handle: Any = None  # moves the paper
        self._place: Array | None = None  # where it was put by hand; None: on the table in front of the arm
        self._picture: tuple[str, bytes] | None = None
        self._stale = False  # size or place were changed since it was planned

    def gui(self) -> None:
        """The widgets, in whatever container is open."""
        gui = self.server.gui
        self.upload = gui.add_upload_button("Picture to draw", mime_type="image/*", hint="PNG, JPEG, SVG ...")
        self.text = gui.add_markdown("Strokes, their order and the arm's way along them; nothing is moved but a ghost.")
        self.size = gui.add_slider("longer side [mm]", 50, 600, 10, 200)
        self.watch = gui.add_button("Watch it drawn", disabled=True)
        self.size.on_update(self._sized)
        self.upload.on_upload(self._uploaded)
        self.watch.on_click(self._watched)

    async def _uploaded(self, _: Any) -> None:
        given = self.upload.value
        threading.Thread(target=self.take, args=(given.name, given.content), daemon=True).start()

    async def _sized(self, event: Any) -> None:
        if event.client_id is not None:
            self._again()

    async def _moved(self, event: Any) -> None:
        """The handle of the paper: while it is dragged the paper follows, and when it is let go all is planned anew."""
        T = np.eye(4)
        T[:3, :3] = matrix_from_quaternion(np.asarray(self.handle.wxyz, dtype=np.float64))
        T[:3, 3] = self.handle.position
        with self.server.atomic():
            self._parts[0].position, self._parts[0].wxyz = T[:3, 3], self.handle.wxyz
            self._parts[1].visible = False  # where the lines will lie is not known before
        if event.phase == "end":
            self._place = T
            self._again()

    def _again(self) -> None:
        """Plan the same picture anew, where and as large as it is wanted now."""
        self._stale = True
        threading.Thread(target=self._replan, daemon=True).start()

    def _replan(self) -> None:
        """Wait for a plan that is being made, then make the newest that is wanted."""
        with self._busy:
            if self._stale and self._picture is not None:
                self._stale = False
                self._read(*self._picture)

    async def _watched(self, _: Any) -> None:
        threading.Thread(target=self.play, daemon=True).start()

    def take(self, name: str, content: bytes) -> None:
        """A picture by its file name and bytes: planned and shown, or why it cannot be."""
        if not self._busy.acquire(blocking=False):
            self._say("one picture at a time: the one before is being planned")
            return
        try:
            self._read(name, content)
        finally:
            self._busy.release()

    def _read(self, name: str, content: bytes) -> None:
        ending = Path(name).suffix.lower()
        if ending not in ENDINGS:
            self._say(f"{words(name)}: a picture ends with one of {', '.join(ENDINGS)}")
            return
        if len(content) > LARGEST:
            self._say(f"{words(name)}: {len(content) / 1e6:.0f} MB, at most {LARGEST / 1e6:.0f} are read")
            return
        self._say("planning strokes, order and reach")
        self._picture = (name, content)
        with tempfile.TemporaryDirectory(prefix="tangere-studio-") as folder:
            file = Path(folder) / f"picture{ending}"  # its own name is not trusted with a path
            file.write_bytes(content)
            try:
                self._plan(file)
            except TangereError as problem:
                self._say(words(str(problem).replace(str(file), name)))
            except Exception as problem:  # a file that is no picture, whatever its reader says of it
                self._say(f"{words(name)} cannot be read as a picture: {words(type(problem).__name__)}")

    def _plan(self, file: Path) -> None:
        from tangere.apps.drawing.draw_picture import prepare
        from tangere.apps.drawing.settings import DrawingSettings
        from tangere.settings import merged

        told: dict[str, Any] = {"robot": self.robot_name, "size": 1e-3 * float(self.size.value)}
        if self._place is not None:
            turn = rotation_vector_from_matrix(self._place[:3, :3])
            told["canvas"] = ",".join(f"{x:.6f}" for x in (*self._place[:3, 3], *turn))
        self._run += 1  # what is being drawn is drawn no more
        self.watch.disabled = True
        self.prepared = found = prepare(file, merged(DrawingSettings, told))
        self._show()
        strokes, plan = found.strokes, found.plan
        lines = [
            f"**{len(strokes.lines)} strokes**, {strokes.draw_length:.2f} m of ink, {strokes.pen_up_length:.2f} m in "
            f"the air, {plan.duration:.0f} s; blue is drawn first, amber last",
            *(f"- {words(note)}" for note in found.notes),
        ]
        self._say("\n".join(lines))
        self.watch.disabled = False

    def _show(self) -> None:
        """Paper and strokes."""
        for part in self._parts:
            part.remove()
        scene, canvas, strokes = self.server.scene, self.prepared.canvas, self.prepared.strokes
        T, size = canvas.T_base_canvas, canvas.size
        with self.server.atomic():
            paper = scene.add_box(
                f"{self._name}/paper", color=PAPER, dimensions=(size[0], size[1], 1e-3),
                position=T[:3, 3], wxyz=quaternion_from_matrix(T[:3, :3]),
            )  # fmt: skip
            points, shares = segments(strokes.lines)
            colours = FIRST + shares[:, None] * (LAST - FIRST)
            both = np.repeat(np.rint(colours).astype(np.uint8)[:, None, :], 2, axis=1)
            lines = scene.add_line_segments(
                f"{self._name}/strokes", self._on_paper(points).astype(np.float32), both, thickness=2.0,
                thickness_units="screen",
            )  # fmt: skip
            self._parts = [paper, lines]
            if self.handle is None:
                # without its three small planes, which cover the drawing
                self.handle = scene.add_transform_controls(
                    f"{self._name}/move", scale=0.25, depth_test=False, disable_sliders=True
                )
                self.handle.on_update(self._moved)
            self.handle.position, self.handle.wxyz = T[:3, 3], quaternion_from_matrix(T[:3, :3])

    def _on_paper(self, points: Array) -> Array:
        """Points (k, 2, 2) of the canvas in space (k, 2, 3), a little above the paper."""
        flat = points.reshape(-1, 2)
        place = self.prepared.canvas.to_base(flat) + ABOVE * self.prepared.canvas.normal
        return np.asarray(place, dtype=np.float64).reshape(len(points), 2, 3)

    def play(self, stop: threading.Event | None = None) -> None:
        """The planned motion by a ghost, with the ink behind its pen."""
        if self.prepared is None:
            return
        self._run += 1
        run, plan = self._run, self.prepared.plan
        robot = self.prepared.robot
        if self._pen is None:
            self._pen = Arm(self.server, robot, f"{self._name}/arm", ghost=(90, 100, 116), opacity=0.45)
        points, _ = segments(self.prepared.strokes.lines)
        counts = np.array([len(line) - 1 for line in self.prepared.strokes.lines])
        ends = np.concatenate(([0], np.cumsum(counts)))
        place, pause = self._on_paper(points).astype(np.float32), threading.Event() if stop is None else stop
        black = np.tile(np.array(INK, dtype=np.uint8), (len(points), 2, 1))
        begin, ink, thick = perf_counter(), None, {"thickness": 4.0, "thickness_units": "screen"}
        self._pen.uncover()
        while run == self._run:
            time = FAST * (perf_counter() - begin)
            self.ink = int(drawn(time, plan.stroke_times, ends))
            with self.server.atomic():
                self._pen.place(plan.at(time).q)
                if self.ink:
                    if ink is not None:
                        ink.remove()
                    ink = self.server.scene.add_line_segments(
                        f"{self._name}/ink", place[: self.ink], black[: self.ink], **thick
                    )
            if time >= plan.duration or pause.wait(1.0 / FRAMES):
                break
        if run == self._run:
            self._pen.visible = False

    def _say(self, text: str) -> None:
        self.text.content = text


def segments(lines: Any) -> tuple[Array, Array]:
    """Pieces of all strokes (k, 2, 2) [m] in the order of drawing, and how late each stroke comes (k,), 0 to 1."""
    pieces = [np.stack((line[:-1], line[1:]), axis=1) for line in lines]
    last = max(len(pieces) - 1, 1)
    shares = [np.full(len(piece), i / last) for i, piece in enumerate(pieces)]
    return np.concatenate(pieces), np.concatenate(shares)


def drawn(time: float, stroke_times: Array, ends: Any) -> int:
    """How many pieces are on the paper at that time [s] of the plan."""
    count = 0
    for i, (start, end) in enumerate(stroke_times.tolist()):
        if time >= end:
            count = int(ends[i + 1])
        elif time > start:
            return int(ends[i] + (ends[i + 1] - ends[i]) * (time - start) / (end - start))
        else:
            return count
    return count
