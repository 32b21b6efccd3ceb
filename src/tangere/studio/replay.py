"""The page of a recording: a timeline with its events, the arm at any time, a second run as a ghost, curves."""

from __future__ import annotations

import threading
from time import perf_counter
from typing import Any

import numpy as np

from tangere.errors import TangereError
from tangere.studio.curves import Curves, picked
from tangere.studio.recorded import Recorded, nearest
from tangere.studio.stage import GHOSTS, Arm, Stage, draw_touch, sentence, words
from tangere.types import Array

FRAMES = 30.0  # [1/s] of the arm
PLOTS = 8.0  # [1/s] of the cursor in the curves
NEAR = 0.25  # [s] before an event at which one is put by "next": what led to it is seen
LISTED = 12  # events and notes in the list


class ReplayPage:
    """A page around a Recorded, and around another one as a ghost."""

    def __init__(
        self, server: Any, run: Recorded, ghost: Recorded | None = None, *, dark: bool = False,
        meshes: str | None = None, frames: float = FRAMES,
    ) -> None:  # fmt: skip
        self.server, self.run, self.ghost, self.frames = server, run, ghost, frames
        self.stage = Stage(server, run.robot, dark=dark, meshes=meshes)
        self.arms = [self.stage.arm]
        if ghost is not None:
            self.arms.append(Arm(server, ghost.robot, "/ghost", ghost=GHOSTS[0], opacity=0.3))
            self.arms[1].uncover()
        self.time = float(run.time[0])
        self.playing = False
        self._cursor = -1.0
        self._lock = threading.RLock()
        self._pieces: dict[int, tuple[Array, Array]] = {}  # rows around the time that is shown, of a long log
        self._gui()
        self.go(self.time)

    @property
    def index(self) -> int:
        """The sample that is shown."""
        return self.run.index(self.time)

    def _samples(self, of: Recorded) -> tuple[Array, Array]:
        """Stamps and positions around the time that is shown."""
        if of.pieces is None:
            return of.time, of.q
        known = self._pieces.get(id(of))
        if known is None or not known[0][0] <= self.time <= known[0][-1]:
            known = self._pieces[id(of)] = of.samples(self.time)
        return known

    def _placed(self, arm: Arm, of: Recorded) -> None:
        stamps, q = self._samples(of)
        arm.place(q[nearest(stamps, self.time)])

    def go(self, time: float, *, slider: bool = True) -> None:
        """Show the sample nearest to that time [s]."""
        first, last = float(self.run.time[0]), float(self.run.time[-1])
        with self._lock, self.server.atomic():
            self.time = min(max(time, first), last)
            for arm, of in zip(self.arms, (self.run, self.ghost), strict=False):
                if of is not None:
                    self._placed(arm, of)
            self._touch()
            if slider:
                self.slider.value = min(max(round(self.time, 4), self.slider.min), self.slider.max)
            self.clock.content = f"**t = {self.time:.3f} s** of {last:.3f} s"

    def step(self, samples: int) -> None:
        """So many samples on, or back."""
        self.playing = False
        stamps = self._samples(self.run)[0]
        index = min(max(nearest(stamps, self.time) + samples, 0), len(stamps) - 1)
        self.go(float(stamps[index]))

    def jump(self, direction: int) -> None:
        """To the next event, or to the one before: to the sample that raised it."""
        self.playing = False
        times = [event.time_s for event in self.run.events]
        later = [t for t in times if t > self.time + 1e-9] if direction > 0 else []
        earlier = [t for t in times if t < self.time - 1e-9] if direction < 0 else []
        if later or earlier:
            self.go(later[0] if later else earlier[-1])

    def work(self, stop: threading.Event) -> None:
        """Play, where it plays, until told to stop."""
        last, next_plot = perf_counter(), 0.0
        if self.run.unfelt:
            threading.Thread(target=self._feel, args=(stop,), name="touches", daemon=True).start()
        while not stop.wait(1.0 / self.frames):
            now = perf_counter()
            if self.playing:
                speed = {"1/10": 0.1, "1/4": 0.25, "real time": 1.0, "4 times": 4.0}[self.speed.value]
                self.go(self.time + speed * (now - last))
                if self.time >= self.run.time[-1]:
                    self.playing = False
            last = now
            if self._cursor != self.time and now >= next_plot:
                next_plot = now + 1.0 / PLOTS
                self._draw_cursor()

    def close(self) -> None:
        """Nothing runs beside the page."""

    def _feel(self, stop: threading.Event) -> None:
        """Look for touches in a log that has none, while it can be looked at."""
        shown = -1.0

        def progress(share: float) -> None:
            nonlocal shown
            if stop.is_set():
                raise InterruptedError
            if share - shown > 0.02:
                shown = share
                self._list(f"looking for touches: {share:.0%}")

        try:
            felt = self.run.watched(progress)
        except (TangereError, OSError, ValueError) as problem:
            if not stop.is_set():
                self._list(f"touches cannot be looked for: {problem}")
            return
        with self._lock, self.server.atomic():
            if stop.is_set():
                return
            self.run = felt
            self.slider.remove()
            self._timeline()
            self._buttons(bool(felt.events))
            self._list()
            self._panel.remove()
            self._curves(self.server.gui)
        self.go(self.time)

    def _touch(self) -> None:
        """Links of the event at this time, by their probability."""
        here = [e for e in self.run.events if e.time_s <= self.time <= (e.end_s or e.time_s + 1.0)]
        draw_touch(self.stage, here[-1] if here else None)

    def _gui(self) -> None:
        gui, run = self.server.gui, self.run
        gui.set_panel_label(words(run.name)[:60])
        gui.main_panel.dock_right()
        self.clock = gui.add_markdown("")
        self._timeline()
        self.speed = gui.add_dropdown("speed", ["1/10", "1/4", "real time", "4 times"], initial_value="real time")
        self.play_button = gui.add_button("Play or pause", hint="key P")
        self.next_button = gui.add_button("Next event", hint="key N")
        self.before_button = gui.add_button("Event before", hint="key B")
        self._buttons(bool(run.events))
        self.told = gui.add_markdown("")
        self._list()
        with gui.add_folder("Notes of the log", expand_by_default=False):
            notes = [f"- {t:.3f} s: {words(text)}" for t, text in run.notes[:200]]
            self.notes = gui.add_markdown("\n".join(notes) or "none")
        self._curves(gui)
        self.play_button.on_click(self._play)
        self.next_button.on_click(self._next)
        self.before_button.on_click(self._before)
        for label, key, call in (
            ("Play or pause", "P", self._play), ("Next event", "N", self._next), ("Event before", "B", self._before),
            ("One sample on", "arrowright", self._on), ("One sample back", "arrowleft", self._back),
        ):  # fmt: skip
            gui.add_command(label, hotkey=key).on_trigger(call)

    def _timeline(self) -> None:
        """The slider of time, with a mark where something was felt; it stands below the clock."""
        run, (first, last) = self.run, (float(self.run.time[0]), float(self.run.time[-1]))
        stamps = self._samples(run)[0]
        step = float(np.median(np.diff(stamps))) if len(stamps) > 1 else 0.001
        # a slider of whole steps from the first sample; the last mark may lie within a step of the end
        marks = tuple((min(max(t, first), last), text) for t, text in run.marks)
        high = max(last, first + step)
        self.slider = self.server.gui.add_slider(
            "t [s]", first, high, max(round(step, 4), 1e-4), min(max(round(self.time, 4), first), high),
            marks=marks or None, order=self.clock.order + 1e-3,
        )  # fmt: skip
        self.slider.on_update(self._slid)

    def _buttons(self, events: bool) -> None:
        self.next_button.disabled = self.before_button.disabled = not events

    def _list(self, busy: str = "") -> None:
        """What was felt, in sentences; busy: what is being done about it."""
        run = self.run
        told = [f"- {sentence(event, run.robot)}" for event in run.events[:LISTED]]
        told += [f"- and {len(run.events) - LISTED} more"] if len(run.events) > LISTED else []
        told += [f"- near at {t:.2f} s: joint {joint}, {share:.0%} of an alarm" for t, joint, share in run.near[:4]]
        told += [f"- and {len(run.near) - 4} more near misses"] if len(run.near) > 4 else []
        told += [f"- {words(busy)}"] if busy else [f"- {words(text)}" for text in run.said]
        told = told or ["Nothing was felt in this run."]
        if self.ghost is not None:
            told.append(f"- the ghost is {words(self.ghost.name)}")
        self.told.content = "\n".join(told)

    def _curves(self, gui: Any) -> None:
        run, ghost, n = self.run, self.ghost, self.run.robot.dof
        first, last = float(run.time[0]), float(run.time[-1])
        joints = tuple(f"joint {i + 1}" for i in range(n))
        wanted: list[tuple[str, Array, Array]] = []
        torque, place = run.robot.units("Nm"), run.robot.units("rad")
        if run.residual is not None:
            wanted.append((f"external torque felt [{torque}]", run.time, run.residual))
        if ghost is not None and ghost.residual is not None:
            wanted.append((f"felt by {words(ghost.name)} [{ghost.robot.units('Nm')}]", ghost.time, ghost.residual))
        wanted.append((f"joint positions [{place}]", run.time, run.q))
        if ghost is not None and ghost.robot.dof == n:
            both = (run.time >= ghost.time[0]) & (run.time <= ghost.time[-1])
            at = np.array([ghost.index(t) for t in run.time[both].tolist()], dtype=int)
            if len(at) > 1:
                less = f"positions less those of the ghost [{place}]"
                wanted.append((less, run.time[both], run.q[both] - ghost.q[at]))
        elif ghost is None and run.tau is not None:
            wanted.append((f"joint torque [{torque}]", run.time, run.tau))
        self._panel = panel = gui.add_panel()
        self.plots: list[tuple[Curves, Array, Array]] = []
        with panel.add_tab("Curves"):
            for title, stamps, values in wanted:
                curves = Curves(gui, title, (*joints[: values.shape[1]], "now"), (first, last), height=240, label="s")
                pick = picked(stamps, values)
                if not len(pick):
                    continue  # nothing was watched: as before
                self.plots.append((curves, stamps[pick], values[pick]))
        panel.dock_left()
        panel.set_width(380)
        self._draw_cursor()

    def _draw_cursor(self) -> None:
        """The curves with a line at the time that is shown: three samples more, where one series goes up and down."""
        self._cursor = self.time
        with self.server.atomic():
            for curves, time, values in self.plots:
                at = int(np.searchsorted(time, self.time))
                row = values[min(at, len(values) - 1)]
                finite = values[np.isfinite(values)]
                ends = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
                x = np.insert(time, at, (self.time,) * 3)
                lines = np.insert(values, [at] * 3, row, axis=0)
                now = np.full((len(x), 1), ends[0])
                now[at + 1, 0] = ends[1]
                curves.show_all(x, np.hstack((lines, now)))

    async def _slid(self, event: Any) -> None:
        if event.client_id is not None:
            self.playing = False
            self.go(float(self.slider.value), slider=False)

    async def _play(self, _: Any) -> None:
        if not self.playing and self.time >= self.run.time[-1]:
            self.go(float(self.run.time[0]))
        self.playing = not self.playing

    async def _next(self, _: Any) -> None:
        self.jump(1)

    async def _before(self, _: Any) -> None:
        self.jump(-1)

    async def _on(self, _: Any) -> None:
        self.step(1)

    async def _back(self, _: Any) -> None:
        self.step(-1)
