"""The page of a simulated arm: push it, change it, watch what it feels."""

from __future__ import annotations

import os
import threading
from collections import deque
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from tangere.errors import InvalidValue
from tangere.loop.sinks import Change
from tangere.plants.pull import Load
from tangere.robots import robot
from tangere.studio.body import SILENCE, Body
from tangere.studio.curves import FELT, Curves
from tangere.studio.grab import Grab
from tangere.studio.learn import Learn
from tangere.studio.scenery import Scenery
from tangere.studio.settings import CONTROLLERS, MOTIONS, REACTIONS, SCENES, WorldSettings
from tangere.studio.sketch import Sketch
from tangere.studio.stage import Stage, draw_touch, sentence, words
from tangere.types import Array, Event

FRAMES = 30.0  # [1/s] of the arm
PLOTS = 10.0  # [1/s] of the curves
WINDOW = 10.0  # [s] that they show
SHOWN = 0.5  # [N] below which no force is drawn
ALARMS = (0.0, 60.0, 10.0, 1.0)  # [1/h] to choose from; 42 s of free motion can promise some 0.3
LISTED = 2  # newest touches and sentences on the page: with more the tabs below them move away while one works
FADE = 3.0  # [s] for which a touch that has ended stays on the arm


class LivePage:
    """A page around a Body: one that was started already, or its own."""

    def __init__(
        self, server: Any, settings: WorldSettings, *, body: Body | None = None,
        log: str | os.PathLike[str] | None = None, start: Array | None = None, dark: bool = False,
        meshes: str | None = None, frames: float = FRAMES, plots: float = PLOTS, silence: float = SILENCE,
    ) -> None:  # fmt: skip
        self.server, self.settings, self.frames, self.plots = server, settings, frames, plots
        self._accepted = settings  # those of the world that runs
        self._widgets: dict[str, Any] = {}  # of the settings, by their name
        self._messages: deque[tuple[Any, ...]] = deque()
        self.body = body or Body(settings, log=log, start=start, silence=silence)
        arm = robot(settings.robot)
        self.stage = Stage(server, arm, dark=dark, meshes=meshes)
        self.scenery = Scenery(server)
        self.events: dict[tuple[int, int], Event] = {}
        self.said: deque[str] = deque(maxlen=6)
        self._run, self._since, self._held = 0, 0, 0.0
        self._history = np.zeros((0, self.body.ring.layout.width))
        self._next_plot = 0.0
        self._felt_until = 0.0
        self._stop = threading.Event()
        self.grab = Grab(self.stage.arm, self.body.send, self.say)
        server.on_client_disconnect(lambda client: self.grab.gone(client.client_id))
        self._gui()
        heard = self._messages.append
        self.body.begin(lambda *message: heard(message))

    # ---- what the page shows ----

    def say(self, text: str) -> None:
        """A sentence on the page."""
        self.said.append(words(text))
        self._told = ""  # drawn anew

    def work(self, stop: threading.Event) -> None:
        """Show what happens until told to stop."""
        due = perf_counter()
        while not stop.is_set() and self.body.alive:
            due = max(due + 1.0 / self.frames, perf_counter() - 0.5)
            if stop.wait(max(due - perf_counter(), 0.0)):
                break
            self.update()

    def update(self) -> None:
        """One picture."""
        while self._messages:
            self._heard(*self._messages.popleft())
        rows, self._since = self.body.ring.newest(self._since)
        if not len(rows):
            return
        at = self.body.ring.fields
        row, now = rows[-1], perf_counter()
        run = int(row[at["run"]][0])
        rows = rows[rows[:, at["run"]][:, 0] == run]
        if run != self._run:
            self._run, self._history = run, self._history[:0]
        history = np.concatenate((self._history, rows))
        time = history[:, at["time"]][:, 0]
        self._history = history[time > time[-1] - WINDOW]
        with self.server.atomic():
            self.stage.arm.place(row[at["q"]])
            force, point = row[at["force"]], row[at["point"]]
            size = float(np.linalg.norm(force))
            if size > SHOWN:
                self.stage.force.show(point, force, f"{size:.0f} N")
            else:
                self.stage.force.hide()
            self._draw_touch(now)
            self.learn.place()
            self.scenery.move(row[at["body"]])
            if now >= self._next_plot:
                self._next_plot = now + 1.0 / self.plots
                self._curves(at)
                self._status(row, at)

    def _curves(self, at: dict[str, slice]) -> None:
        history = self._history
        time = history[:, at["time"]][:, 0]
        time = time - time[-1]
        self.residual.show(time, history[:, at["residual"]])
        self.score.show(time, history[:, at["score"]])

    def _status(self, row: Array, at: dict[str, slice]) -> None:
        tempo = "" if self.speed.value == "real time" else f", {self.speed.value}"
        lines = [f"**t = {float(row[at['time']][0]):.1f} s**{tempo} · score {float(row[at['score']][0]):.2f} of 1"]
        lines += [f"- {sentence(event, self.stage.robot)}" for event in list(self.events.values())[-LISTED:][::-1]]
        lines += [f"- {text}" for text in list(self.said)[-LISTED:]]
        text = "\n".join(lines)
        if text != self._told:
            self._told = self.status.content = text

    def _draw_touch(self, now: float) -> None:
        """The newest touch on the arm, and for a moment after it has ended."""
        event = next(reversed(self.events.values()), None)
        shown = event is not None and (event.end_s is None or now < self._felt_until)
        draw_touch(self.stage, event if shown else None)

    def _heard(self, kind: str, *what: Any) -> None:
        if kind == "event":
            number, event = what
            self.events[number, event.number] = event
            while len(self.events) > 50:
                del self.events[next(iter(self.events))]
            if event.end_s is not None:
                self._felt_until = perf_counter() + FADE
        elif kind == "run":
            self._accepted = what[1]
            self.events.clear()
            self.scenery.show(what[1].scene, what[2])
        elif kind == "refused":
            self.say(f"not possible: {what[0]}")
            self.settings = self._accepted
            for name, widget in self._widgets.items():
                widget.value = shown(name, getattr(self.settings, name))
            self._copied()
        elif kind == "ended":
            self.say(f"the run ended: {what[0]}; reset starts it anew")
        elif kind == "released":
            self.grab.release(what[0])
        elif kind == "lost":
            self.say("the simulation has ended")
        self._told = ""

    # ---- what the page asks ----

    def _gui(self) -> None:
        gui = self.server.gui
        gui.main_panel.dock_right()
        gui.set_panel_label("Tangere studio")
        self._told = ""
        self.status = gui.add_markdown("Grab a link with the mouse and pull.")
        tabs = gui.add_tab_group()
        with tabs.add_tab("Push"):
            self._push_tab(gui)
        with tabs.add_tab("Change"):
            self._change_tab(gui)
        with tabs.add_tab("Learn"):
            self.learn = Learn(self.server, self.stage.arm)
            self.learn.gui()
        with tabs.add_tab("Draw"):
            self.sketch = Sketch(self.server, self.settings.robot)
            self.sketch.gui()
        with tabs.add_tab("Copy"):
            self.copy = gui.add_markdown("")
        self.tabs = tabs
        panel = gui.add_panel()
        joints = tuple(f"joint {i + 1}" for i in range(self.stage.robot.dof))
        with panel.add_tab("Touch"):
            span, before = (-WINDOW, 0.0), "s before now"
            felt = f"external torque felt [{self.stage.robot.units('Nm')}]"
            self.residual = Curves(gui, felt, joints, span, height=290, label=before, least=FELT)
            self.score = Curves(
                gui, "score: 1 is a touch", ("score",), span, limit=1.0, height=210, label=before, least=(0.0, 1.2)
            )
        panel.dock_left()
        panel.set_width(380)
        self._copied()

    def _push_tab(self, gui: Any) -> None:
        gui.add_markdown("Pull a link with the left mouse button; drag beside the arm to turn the view.")
        self.stiffness = gui.add_slider("spring [N/m]", 200, 5000, 100, int(self.grab.stiffness))
        self.cap = gui.add_slider("at most [N]", 20, 300, 10, int(self.grab.force_max))
        self.stop_button = gui.add_button("Let go and pause", color="red", hint="key S")
        joints = [str(i + 1) for i in range(self.stage.robot.dof)]
        with gui.add_folder("Torque on a joint"):
            self.joint = gui.add_dropdown("joint", joints, initial_value=joints[min(1, len(joints) - 1)])
            torque = f"torque [{self.stage.robot.units('Nm')}]"
            self.torque = gui.add_slider(torque, -60.0, 60.0, 1.0, 0.0, hint="acts while it is not 0")
        with gui.add_folder("Time"):
            self.speed = gui.add_dropdown("speed", ["real time", "1/4", "1/20", "paused"])
            self.step = gui.add_button("One period")
            self.reset = gui.add_button("Reset")
        self.stiffness.on_update(self._hand_changed)
        self.cap.on_update(self._hand_changed)
        self.torque.on_update(self._torque_changed)
        self.joint.on_update(self._torque_changed)
        self.speed.on_update(self._tempo)
        self.stop_button.on_click(self._halt)
        self.step.on_click(self._one_period)
        self.reset.on_click(self._reset)
        command = gui.add_command("Let go and pause", hotkey="S", description="releases the arm and stops time")
        command.on_trigger(self._halt)

    def _change_tab(self, gui: Any) -> None:
        s = self.settings
        self.controller = gui.add_dropdown("controller", CONTROLLERS, initial_value=s.controller)
        self.motion = gui.add_dropdown("motion", MOTIONS, initial_value=s.motion)
        self.reaction = gui.add_dropdown("reaction", REACTIONS, initial_value=s.reaction)
        self.scene = gui.add_dropdown("to touch", SCENES, initial_value=s.scene)

        def slider(name: str, low: float, high: float, step: float, value: float, hint: str | None = None) -> Any:
            """A slider that reaches to where an option has put it."""
            return gui.add_slider(name, min(low, value), max(high, value), step, value, hint=hint)

        with gui.add_folder("Gains"):
            self.kp = slider("kp [1/s²]", 5, 400, 5, int(s.kp), "computed torque")
            self.soft = slider("stiffness", 0.1, 3.0, 0.1, s.stiffness, "impedance controllers")
            self.gain = slider("observer [1/s]", 5, 200, 5, int(s.observer_gain))
        with gui.add_folder("Arm"):
            self.payload = slider("payload [kg]", 0.0, 12.0, 0.25, s.payload)
            self.believed = slider("believed [kg]", 0.0, 12.0, 0.25, s.believed_payload)
            self.friction = slider("friction", 0.0, 2.0, 0.1, s.friction, "1 is what is known of it")
            self.mass = slider("masses", 0.8, 1.2, 0.01, s.mass, "of the arm against those believed")
            self.noise = gui.add_checkbox("noise", s.sensors == "ur10e", hint="of a UR10e's sensors")
        self._rates = {shown("alarms", rate): rate for rate in sorted({*ALARMS, s.alarms})}
        self.alarms = gui.add_dropdown(
            "false alarms", list(self._rates), initial_value=shown("alarms", s.alarms),
            hint="what the detector promises; learned from free motion, with noise",
        )  # fmt: skip
        self.dark = gui.add_checkbox("dark page", False)
        self.dark.on_update(self._darkened)
        for name, widget, live in (
            ("kp", self.kp, True), ("payload", self.payload, True), ("controller", self.controller, False),
            ("motion", self.motion, False), ("reaction", self.reaction, False), ("scene", self.scene, False),
            ("stiffness", self.soft, False),
            ("observer_gain", self.gain, False), ("believed_payload", self.believed, False),
            ("friction", self.friction, False), ("mass", self.mass, False), ("sensors", self.noise, False),
            ("alarms", self.alarms, False),
        ):  # fmt: skip
            self._widgets[name] = widget
            widget.on_update(self._changer(name, widget, live))

    def _changer(self, name: str, widget: Any, live: bool) -> Any:
        """What a widget of the settings does: at once where the loop can, else the world is built anew."""

        async def changed(event: Any) -> None:
            if event.client_id is None:  # set by us
                return
            value: Any = widget.value
            if name == "sensors":
                value = "ur10e" if value else "ideal"
            elif name == "alarms":
                value = self._rates[value]
            self.change(name, float(value) if isinstance(value, int) else value, live)

        return changed

    def change(self, name: str, value: Any, live: bool = False) -> None:
        """A setting anew."""
        try:
            settings = replace(self.settings, **{name: value})
        except InvalidValue as problem:
            self.say(str(problem))
            return
        if live and not (name == "kp" and settings.controller != "computed torque"):
            self.body.send(Change("controller" if name == "kp" else "plant", name, value))
            if name == "kp":
                self.body.send(Change("controller", "kv", 2.0 * float(np.sqrt(value))))
        elif name != "kp":
            self.grab.release("the world was changed")
            self.torque.value = 0.0  # nothing acts in the new one
            if settings.alarms:
                self.say("thresholds are learned from simulated free motion, which takes some seconds")
            self.body.rebuild(settings)
        self.settings = settings
        self._copied()

    def _copied(self) -> None:
        """Command line and Python of what was changed."""
        command = self.settings.command(" \\\n  ")
        self.copy.content = (
            f"The same from a terminal:\n```\n{command}\n```\nand in Python, ten seconds of it:\n"
            f"```python\n{self.settings.python()}\n```"
        )

    async def _hand_changed(self, _: Any) -> None:
        self.grab.stiffness, self.grab.force_max = float(self.stiffness.value), float(self.cap.value)

    async def _torque_changed(self, _: Any) -> None:
        """The torque of the slider, on the joint that is chosen, in place of the one before."""
        torque = [0.0] * self.stage.robot.dof
        torque[int(self.joint.value) - 1] = float(self.torque.value)
        self.body.send(Load(tuple(torque)))

    async def _tempo(self, _: Any) -> None:
        self.body.pace({"real time": 1.0, "1/4": 0.25, "1/20": 0.05, "paused": 0.0}[self.speed.value])

    async def _halt(self, _: Any) -> None:
        self.grab.release("stopped")
        self.speed.value = "paused"
        self.body.pace(0.0)

    async def _one_period(self, _: Any) -> None:
        self.speed.value = "paused"
        self.body.pace(0.0, 1)

    async def _reset(self, _: Any) -> None:
        self.grab.release("reset")
        self.torque.value = 0.0
        self.speed.value = "real time"
        self.body.pace(1.0)
        self.body.rebuild(self.settings, home=True)

    async def _darkened(self, _: Any) -> None:
        self.stage.dark(bool(self.dark.value))

    def close(self) -> None:
        """End the simulation."""
        self.body.close()


def shown(name: str, value: Any) -> Any:
    """A setting as its widget has it."""
    if name == "alarms":
        return f"{value:g} an hour" if value else "no promise"
    if name == "sensors":
        return value != "ideal"
    return int(value) if name in ("kp", "observer_gain") else value
