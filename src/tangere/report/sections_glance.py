"""What one sees first: the arm with what it met, and beside it the curve that tells most of the run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tangere.figures.arm import scene
from tangere.figures.markup import Raw, join, strided, tag
from tangere.figures.plots import Panel, Series, TimeFigure
from tangere.figures.things import thing
from tangere.report.data import RunData
from tangere.report.section import (
    Section,
    again,
    axis,
    by_hand,
    drawable,
    event_bands,
    event_marks,
    joint_titles,
    joint_units,
    residual_panel,
    robot_of,
    sized,
    staged,
    tool_paths,
)
from tangere.types import Array

_POSES = 160  # poses of the arm in the page: 16 a second for a 10 s run look like motion
_PATH = 600  # points of a path in space: a circle of 0.15 m radius drawn to 2 micrometres


def glance(data: RunData) -> Section | None:
    """The arm in motion beside the curve that matters: what was felt, the contact force, or the error of the tool."""
    parts: list[Raw] = []
    figures = []
    moving = _motion(data)
    if moving is not None:
        parts.append(moving[0])
        figures.append(moving[1])
    curve = _curve(data)
    if curve is not None:
        parts.append(curve.html(again(data.command, curve.identifier)))
        figures.append(curve.data())
    if data.video:
        parts.append(_clip(data))
    if not parts:
        return None
    return Section("glance", "At a glance", tag("div", *parts, class_="pair"), tuple(figures))


def space(data: RunData) -> Section:
    """The arm and the path of its tool alone."""
    moving = _motion(data)
    if moving is None:
        return Section("space", "In space", tag("p", "The log holds no path of the tool."))
    return Section("space", "In space", moving[0], (moving[1],))


def _motion(data: RunData) -> tuple[Raw, dict[str, object]] | None:
    """The arm, the path of its tool and what stands around it; None where its model is not known."""
    tcp, tcp_des = tool_paths(data)
    robot, _ = robot_of(data)
    if robot is None or data.q is None or data.dof != robot.dof or tcp is None:
        return None
    good = np.flatnonzero(drawable(data.q))
    if not len(good):
        return None
    poses = good[strided(len(good), _POSES)]
    rows = strided(len(tcp), _PATH)
    paths = ([("soft", tcp_des[rows])] if tcp_des is not None else []) + [("a", tcp[rows])]
    first = _telling(data, poses)
    seen = tcp[poses[first]]
    things = [thing(told, seen) for told in data.bodies] if np.all(np.isfinite(seen)) else []
    drawn = scene(
        robot, data.q[poses], axis(data)[poses], "motion", frames=False, paths=tuple(paths),
        things=tuple(one for one in things if one is not None), forces=_forces(data, poses), first=first,
    )  # fmt: skip
    slider = tag("input", type="range", min=0, max=len(poses) - 1, value=first, aria_label="time of the run")
    play = tag("button", "Play", type="button", class_="play")
    player = tag("div", play, slider, tag("output"), class_="player", hidden="")
    when = f" Shown at {axis(data)[poses[first]]:.2f} s." if first else ""
    turn = by_hand(" Drag to turn; the pose follows the cursor of every plot.")
    caption = join(f"The arm and the path of its tool.{when}", turn)
    line = again(data.command, "motion")
    return staged(drawn.still(), caption, line, player, id="motion", class_="scene"), drawn.data()


def _forces(data: RunData, poses: NDArray[np.intp]) -> Array | None:
    """(K, 3) N on the tool at these samples: the largest since the sample before, so that no peak is lost."""
    if data.wrench is None:
        return None
    force = np.nan_to_num(data.wrench[:, :3])
    size = np.linalg.norm(force, axis=1)
    ends = [*poses[1:].tolist(), len(force)]
    most = [a + int(np.argmax(size[a:b])) for a, b in zip(poses.tolist(), ends, strict=True)]
    return np.asarray(force[most])


def _telling(data: RunData, poses: NDArray[np.intp]) -> int:
    """Which of these samples shows most: the largest contact force, or the first touch, or the start."""
    forces = _forces(data, poses)
    if forces is not None and np.any(forces):
        return int(np.argmax(np.linalg.norm(forces, axis=1)))
    alarms = [event.time_s for event in data.events if event.alarm]
    return min(int(np.searchsorted(data.time[poses], alarms[0])), len(poses) - 1) if alarms else 0


def _curve(data: RunData) -> TimeFigure | None:
    """One panel of a figure further down: the force on the tool, else the joint that felt most, else the tool's error.

    It has no numbers of its own: the script takes those of that figure.
    """
    if not len(data.time):
        return None
    titles, bands, dof, time = joint_titles(data), event_marks(data), data.dof, axis(data)
    if data.wrench is not None and np.any(np.abs(np.nan_to_num(data.wrench)) > 1e-9):
        panel = Panel("Force on the tool", "N", sized("magnitude", data.wrench[:, :3]), at_least=1e-3)
        caption = "Force of the environment on the tool."
        return TimeFigure("glance-force", caption, time, (panel,), bands, tuple("xyz"), same=("contact-force", 0))
    alarms = [(e.joint - 1, entry.get("false")) for e, entry in data.judged if e.alarm and e.joint <= dof]
    if alarms and data.residuals:
        i, false = alarms[0]
        what = "false alarm" if false else "touch"
        caption = f"What joint {i + 1} felt. Shaded: while the {what} lasted."
        if bands != event_bands(data):  # it would be all grey
            caption = f"What joint {i + 1} felt. Marked: when the {what} began, which lasted for most of the run."
        panel = residual_panel(data, i, titles[i])
        return TimeFigure("glance-residual", caption, time, (panel,), bands, same=("residual-torque", i))
    tcp, tcp_des = tool_paths(data)
    if tcp is not None and tcp_des is not None:
        curves = sized("distance", (tcp - tcp_des) * 1e3)
        panel = Panel("Distance of the tool from its reference", "mm", curves, at_least=1e-6)
        caption = "How far the tool was from where it should be."
        return TimeFigure("glance-error", caption, time, (panel,), bands, tuple("xyz"), same=("tracking-error", 0))
    if data.residuals and dof:
        i = _busiest(next(iter(data.residuals.values())))
        panel, caption = residual_panel(data, i, titles[i]), f"What joint {i + 1} felt, the most of all joints."
        return TimeFigure("glance-residual", caption, time, (panel,), bands, same=("residual-torque", i))
    if data.tau is not None and data.tau.shape[1]:
        i = _busiest(data.tau)
        torque = Series("torque", data.tau[:, i], "a")
        panel = Panel(titles[i], joint_units(data, "Nm")[i + 1], (torque,), at_least=1e-3)
        caption = "Torque of the joint that works most."
        return TimeFigure("glance-torque", caption, time, (panel,), bands, same=("torque", i))
    return None


def _busiest(columns: Array) -> int:
    """Which column (N, n) has the largest value."""
    return int(np.argmax(np.max(np.abs(np.nan_to_num(columns)), axis=0)))


def _clip(data: RunData) -> Raw:
    import base64

    clip = "data:video/mp4;base64," + base64.b64encode(data.video or b"").decode("ascii")
    player = tag("video", src=clip, controls="", loop="", muted="")
    return tag("figure", player, tag("figcaption", "The run, filmed (video.mp4 in its folder).",
                                     again(data.command, "glance")))  # fmt: skip
