"""Drawing from Python: one function, as `tangere draw` does it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from tangere.apps.drawing.draw_picture import Drawn, Progress, Say, draw_picture
from tangere.apps.drawing.settings import DrawingSettings
from tangere.errors import InvalidValue
from tangere.loop.folder import REPORT
from tangere.model.loading import load
from tangere.robots import Robot


def draw(
    picture: str | os.PathLike[str],
    robot: Robot | str = "ur5e",
    *,
    out: str | os.PathLike[str] | None = None,
    report: bool = True,
    say: Say | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Drawn:
    """Draw a picture with a simulated arm and leave log, ink, figures and page in a folder (`tangere draw`).

    picture: a file, or the name of one that ships ("snail"). robot: the arm, or its name; the drawing gives it its own
    pen. out: the folder, out/PICTURE where none is given. settings: those of apps.drawing.settings.DrawingSettings in
    SI: force=5 [N], size=0.2 [m], speed=0.05 [m/s], controller="hybrid", sensor="ideal", ... Needs the extra `draw`.
    """
    name = _plain(robot) if isinstance(robot, Robot) else robot
    folder = Path("out") / Path(picture).stem if out is None else Path(out)
    done = draw_picture(picture, DrawingSettings(robot=name, **settings), out=folder, say=say, progress=progress)
    if report:
        from tangere.apps.drawing.page import write_drawn

        write_drawn(done, folder / REPORT)
    return done


def _plain(robot: Robot) -> str:
    """The name of an arm that is as it ships: a drawing mounts its own pen and knows the arm by its name."""
    own, shipped = robot.model, load(robot.name)
    same = own.payload is None and own.parameters == shipped.parameters and np.array_equal(own.gravity, shipped.gravity)
    if not (same and np.array_equal(own.T_flange_tcp, shipped.T_flange_tcp)):
        raise InvalidValue(f"robot: a drawing mounts its own pen; give the arm as it ships ({robot.name!r}), or a file")
    return robot.name
