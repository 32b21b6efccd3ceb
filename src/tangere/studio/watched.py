"""The page of an arm at an address, virtual or real: watched with its sense of touch, never moved."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np

from tangere.errors import TangereError
from tangere.identification.belief import belief
from tangere.loop.follow import StreamSource, ran, watching
from tangere.loop.sinks import RunInfo
from tangere.robots import Robot, robot
from tangere.rtde import primary
from tangere.rtde.client import Address
from tangere.rtde.rows import RtdeRows
from tangere.studio.curves import FELT, Curves
from tangere.studio.stage import Stage, draw_touch, sentence, words
from tangere.types import Array, Event

FRAMES = 30.0  # [1/s] of the arm
PLOTS = 8.0  # [1/s] of the curves
WINDOW = 10.0  # [s] that they show
KEPT = 6000  # rows of the curves: 12 s at 500 Hz
HEARD = 1.0  # [s] without a row after which the page says so


class Tee:
    """Rows as they come, of which the newest is kept for the page."""

    def __init__(self, rows: RtdeRows, stop: threading.Event) -> None:
        self._rows, self._stop = rows, stop
        self.q: Array | None = None
        self.time = 0.0
        self.at = perf_counter()

    def __iter__(self) -> Iterator[Any]:
        for row in self._rows:
            if self._stop.is_set():
                return
            self.q, self.time, self.at = row.values.get("q"), row.time, perf_counter()
            yield row


class WatchedPage:
    """A page that listens to an arm. There is nothing on it that could move one."""

    def __init__(
        self, server: Any, address: Address, arm: Robot | str | None = None, *, dark: bool = False,
        meshes: str | None = None, frames: float = FRAMES,
    ) -> None:  # fmt: skip
        name = arm or primary.arm_name(primary.introduction(address.host, wait=3.0))
        self.robot = name if isinstance(name, Robot) else robot(name)
        self.server, self.frames = server, frames
        self.said: deque[str] = deque(maxlen=6)
        self.events: dict[int, Event] = {}
        self._stop = threading.Event()
        self._rows = RtdeRows(address, tell=self.say)
        self.tee = Tee(self._rows, self._stop)
        self._felt: deque[tuple[float, Array]] = deque(maxlen=KEPT)
        self.stage = Stage(server, self.robot, dark=dark, meshes=meshes)
        self._gui(address)
        self._worker = threading.Thread(target=self._follow, name="watched arm", daemon=True)
        self._worker.start()

    def say(self, text: str) -> None:
        """A sentence on the page."""
        self.said.append(words(text))

    def work(self, stop: threading.Event) -> None:
        """Show what comes until told to stop."""
        next_plot = 0.0
        while not stop.wait(1.0 / self.frames):
            now = perf_counter()
            q = self.tee.q
            with self.server.atomic():
                if q is not None and np.isfinite(q).all():
                    self.stage.arm.place(q)
                event = next(reversed(list(self.events.values())), None)
                draw_touch(self.stage, event if event is not None and event.end_s is None else None)
                if now >= next_plot:
                    next_plot = now + 1.0 / PLOTS
                    self._show(now)

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        self._rows.close()

    # ---- the sink of the loop ----

    def open(self, run: RunInfo) -> None:
        """Nothing to prepare."""

    def row(self, state: Any, command: Any, residual: Any, reference: Any, truth: Any) -> None:
        """One sample."""
        if residual is not None:
            self._felt.append((state.time, residual))

    def event(self, event: Event) -> None:
        """An event in one of its phases."""
        self.events[event.number] = event
        while len(self.events) > 50:
            del self.events[next(iter(self.events))]

    def _follow(self) -> None:
        try:
            source = StreamSource(
                self.tee, self.robot, belief(self.robot), self.robot.model.payload, name=self._rows.name,
                problems=self._rows.problems,
            )  # fmt: skip
            result = ran(source, watching(source), sinks=[_Of(self)])
            if not self._stop.is_set():
                self.say(result.aborted or "the arm sends no more")
        except (TangereError, OSError, ValueError) as problem:
            if not self._stop.is_set():
                self.say(f"the sense of touch ended: {problem}")

    def _gui(self, address: Address) -> None:
        gui = self.server.gui
        gui.main_panel.dock_right()
        gui.set_panel_label("Tangere studio")
        gui.add_markdown(f"**{self.robot.name}** at {words(address.host)}: watched, never moved.")
        self.status = gui.add_markdown("waiting for the first samples")
        panel = gui.add_panel()
        joints = tuple(f"joint {i + 1}" for i in range(self.robot.dof))
        with panel.add_tab("Touch"):
            span = (-WINDOW, 0.0)
            felt = f"external torque felt [{self.robot.units('Nm')}]"
            self.residual = Curves(gui, felt, joints, span, height=320, label="s before now", least=FELT)
        panel.dock_left()
        panel.set_width(380)

    def _show(self, now: float) -> None:
        felt = list(self._felt)
        if len(felt) > 1:
            time = np.array([t for t, _ in felt])
            inside = time > time[-1] - WINDOW
            values = np.array([r for _, r in felt])
            self.residual.show(time[inside] - time[-1], values[inside])
        silent = now - self.tee.at
        lines = [f"**t = {self.tee.time:.1f} s** of the controller's clock"]
        lines += [f"- nothing was heard for {silent:.0f} s"] if silent > HEARD else []
        lines += [f"- {sentence(event, self.robot)}" for event in list(self.events.values())[-6:][::-1]]
        lines += [f"- {text}" for text in self.said]
        text = "\n".join(lines)
        if text != self.status.content:
            self.status.content = text


class _Of:
    """The sink's side of a page: closing the run does not close the page."""

    def __init__(self, page: WatchedPage) -> None:
        self.open, self.row, self.event = page.open, page.row, page.event

    def close(self, result: Any) -> None:
        """The page goes on."""
