"""`tangere.show(thing)`: a robot or a run in the browser, or in a notebook, from Python."""

from __future__ import annotations

import atexit
import os
import threading
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kinematics.checks import checked
from tangere.logs.log import Log
from tangere.report.data import RunData, put_together
from tangere.robots import Robot
from tangere.studio.door import address, guarded_server, stop
from tangere.studio.learn import Learn
from tangere.studio.recorded import recorded
from tangere.studio.replay import ReplayPage
from tangere.studio.stage import Stage
from tangere.types import Array

HEIGHT = 520  # [px] of the frame in a notebook


class RobotPage:
    """An arm with a slider for each joint, and what is there to learn of it."""

    def __init__(
        self, server: Any, robot: Robot, q: Array, *, dark: bool = False, meshes: str | None = None
    ) -> None:
        self.server = server
        self.stage = Stage(server, robot, dark=dark, meshes=meshes)
        self.stage.arm.place(q)
        self.learn = Learn(server, self.stage.arm)
        gui = server.gui
        gui.main_panel.dock_right()
        gui.set_panel_label(robot.name)
        self.sliders = []
        low = np.where(np.isfinite(robot.q_min), robot.q_min, -np.pi)
        high = np.where(np.isfinite(robot.q_max), robot.q_max, np.pi)
        for i, joint in enumerate(robot.joint_names):
            turns = bool(robot.revolute[i])
            scale = 180.0 / np.pi if turns else 1e3
            ends = (float(np.floor(scale * low[i])), float(np.ceil(scale * high[i])))
            start = float(np.clip(round(scale * q[i], 1), *ends))
            name = f"{i + 1} {joint.removesuffix('_joint').replace('_', ' ')} [{'°' if turns else 'mm'}]"
            slider = gui.add_slider(name, *ends, 0.1, start)
            slider.on_update(self._turned(i, slider, scale))
            self.sliders.append(slider)
        self.tool = gui.add_markdown("")
        with gui.add_folder("Learn"):
            self.learn.gui()
        self._tell()

    def _turned(self, i: int, slider: Any, scale: float) -> Any:
        async def turned(_: Any) -> None:
            q = self.stage.arm.q.copy()
            q[i] = slider.value / scale
            with self.server.atomic():
                self.stage.arm.place(q)
                self.learn.place()
                self._tell()

        return turned

    def _tell(self) -> None:
        pose = self.stage.robot.pose(self.stage.arm.q, "ur")
        self.tool.content = "tool: " + ", ".join(f"{1e3 * x:.1f}" for x in pose[:3]) + " mm"

    def work(self, stop: threading.Event) -> None:
        """Nothing moves by itself."""
        stop.wait()

    def close(self) -> None:
        """Nothing runs beside the page."""


class Shown:
    """A page that is served by this process until it is closed or the process ends; a frame of it in a notebook."""

    def __init__(self, server: Any, door: Any, page: Any) -> None:
        self._server, self.page, self.address = server, page, address(server, door)
        self._stop = threading.Event()
        self._worker = threading.Thread(target=page.work, args=(self._stop,), daemon=True)
        self._worker.start()
        atexit.register(self.close)

    def close(self) -> None:
        """End it; may be called twice."""
        if not self._stop.is_set():
            self._stop.set()
            self._worker.join()
            self.page.close()
            stop(self._server)

    def __repr__(self) -> str:
        return f"Shown({self.address!r})"

    def _repr_html_(self) -> str:
        return f'<iframe src="{escape(framed(self.address))}" width="100%" height="{HEIGHT}" style="border:0"></iframe>'


def framed(where: str) -> str:
    """The address for a frame in a page of another site: its socket brings the token, as a cookie would not come."""
    return f"{where}&websocket={quote(where.replace('http://', 'ws://', 1), safe='')}"


def show(
    thing: Any, q: ArrayLike | None = None, *, ghost: Any = None, robot: Robot | str | None = None,
    browser: bool | None = None, port: int | None = None, meshes: str | None = None,
) -> Shown:  # fmt: skip
    """Show a robot, a run (result, folder, log) in the studio.

    q (n,) [rad]: where a robot stands. ghost: another run in the same scene. robot: whose log it is, where that does
    not say. browser: whether one is opened; by default it is, but not in a notebook, where the page is a frame of the
    answer. meshes: the folder of UR's description package, whose meshes are shown then. Needs the extra `studio`.
    """
    server, door = guarded_server(port)
    try:
        page: Any
        if isinstance(thing, Robot):
            start = resting(thing) if q is None else np.array(checked(q, (thing.dof,), "q"))
            page = RobotPage(server, thing, start, meshes=meshes)
        elif isinstance(thing, Log | str | os.PathLike | RunData) or hasattr(thing, "data"):
            other = None if ghost is None else _recorded(ghost, robot)
            page = ReplayPage(server, _recorded(thing, robot), other, meshes=meshes)
        else:
            raise InvalidValue(f"show: a robot, or a run (result, folder, log), got {type(thing).__name__}")
        shown = Shown(server, door, page)
    except BaseException:
        stop(server)
        raise
    if browser if browser is not None else not in_notebook():
        from tangere.studio.command import open_browser

        open_browser(shown.address)
    return shown


def _recorded(thing: Any, robot: Robot | str | None) -> Any:
    if isinstance(thing, Log):
        return recorded(put_together(thing), robot)
    return recorded(Path(thing) if isinstance(thing, str) else thing, robot)


def resting(robot: Robot) -> Array:
    """Where an arm stands if nothing is said."""
    from tangere.planning.posture import at_rest

    degrees = np.array(at_rest(robot))
    return np.asarray(np.where(robot.revolute, np.deg2rad(degrees), degrees))


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    import sys

    shell = sys.modules.get("IPython")
    return bool(shell and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell")
