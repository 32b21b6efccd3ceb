"""What came of a drawing in numbers: by the true tip and force where a plant knows them, else by what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from tangere.apps.drawing.force.sense import PenController
from tangere.apps.drawing.force.task import MODES
from tangere.apps.drawing.ink import Ink, coverage, coverages, distance, ink_of, stray
from tangere.apps.drawing.plan.canvas import Canvas
from tangere.apps.drawing.plan.motion import DrawingPlan
from tangere.logs.log import Log
from tangere.loop.result import RunResult
from tangere.report.terminal import plural
from tangere.robots import Robot
from tangere.types import Array

DRAWN = 0.99  # of a stroke's line with ink: the mark for the whole drawing
TOUCH_MARK = 10.5  # [ms]: 10 ms by a clock of 1 ms
# of the drawing time with the integral at its limit, and [s], from which on that is worth a remark
SATURATED, SATURATED_LEAST = 0.01, 0.1
AWAY_MAX = 0.05  # [m] beyond which the distance from a line is not looked for

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True)
class DrawingFigures:
    """The figures of summary.json, one field each; None where there was nothing to measure."""

    strokes: int
    strokes_drawn: int  # with ink along DRAWN of their line
    strokes_touched: int
    draw_length_mm: float
    pen_up_mm: float
    duration_s: float
    draw_s: float
    path_rms_mm: float | None  # distance of the tip from the pen's smooth planned path while drawing (mode draw)
    path_max_mm: float | None
    strokes_rms_mm: float | None  # the same from the strokes of plan.svg, whose corners the smooth path rounds
    strokes_max_mm: float | None
    path_time_rms_mm: float | None  # from the planned point of that instant, along the paper
    path_time_max_mm: float | None
    force_n: float  # asked for
    force_mean_n: float | None  # normal force while drawing, from the end of each touch's ramp on
    force_rms_error_n: float | None
    force_mean_deviation_n: float | None
    force_max_n: float | None
    force_min_n: float | None
    # the rest of the time, which is touch-down and, where the paper is not where it should be, what the pen met in the
    # air
    force_touch_max_n: float | None
    settle_s: float  # the pen pressed without drawing, after each touch
    force_settle_rms_error_n: float | None  # the force in it, against the force wanted at that instant (a ramp)
    force_settle_max_n: float | None
    contact_lost_s: float  # drawing time without contact
    ink_coverage: float
    ink_stray: float
    touch_delay_ms: Mapping[str, float] | None  # mean, max: from the first true contact of each stroke to its detection
    touch_late: int
    stiffness_hat: float
    stiffness_learned: bool
    integral_limit_s: float  # the controller pressed with its integral at its limit
    remarks: tuple[str, ...]  # what a reader of the figures should know
    realtime_factor: float
    aborted: str
    interventions: Mapping[str, int]

    def record(self) -> dict[str, Any]:
        """As summary.json has them."""
        return {**asdict(self), "remarks": list(self.remarks)}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> DrawingFigures:
        """From what summary.json holds; other keys are left alone."""
        values = {field.name: record[field.name] for field in fields(cls)}
        return cls(**{**values, "remarks": tuple(values["remarks"])})


def drawn_ink(log: Log, canvas: Canvas, robot: Robot) -> Ink:
    """What the pen left on the canvas; robot: as it is believed, for a plant that knows no truth."""
    parts = [ink_of(part.time, *contact(part, canvas, robot), canvas.T_base_canvas) for part in log.pieces()]
    return Ink(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("t", "x", "y", "force")))


def contact(log: Log, canvas: Canvas, robot: Robot) -> tuple[Array, Array]:
    """Tip (N, 3) [m] and wrench (N, 6) of the paper on the pen, base axes, in every period.

    The true ones where the plant knew them. Else the tip is where the measured joints put it, and the force the one
    that the controller felt along the normal while it pressed.
    """
    if "T_true" in log and "wrench_true" in log:
        return log["T_true"].reshape(-1, 3, 4)[:, :, 3], log["wrench_true"]
    wrench = np.zeros((len(log), 6))
    pressing = np.isin(log["mode"], (MODES.index("settle"), MODES.index("draw")))
    wrench[:, :3] = np.where(pressing, log["force"], 0.0)[:, None] * canvas.T_base_canvas[:3, 2]
    return robot.pose(log["q"])[:, :3, 3], wrench


def followed(log: Log, canvas: Canvas, robot: Robot) -> tuple[Array, Array, Array]:
    """Tip on the paper (N, 2) [m], how far from its place then (N,) [m], force along the normal (N,) [N].

    Part by part: poses of an hour would take a gigabyte.
    """
    tip, late, force, at = np.empty((len(log), 2)), np.empty(len(log)), np.empty(len(log)), 0
    for part in log.pieces():
        place, wrench = contact(part, canvas, robot)
        here, there = canvas.from_base(place), canvas.from_base(part["T_des"].reshape(-1, 3, 4)[:, :, 3])
        rows = slice(at, at := at + len(part))
        tip[rows], late[rows] = here[:, :2], np.hypot(*(here[:, :2] - there[:, :2]).T)
        force[rows] = wrench[:, :3] @ canvas.T_base_canvas[:3, 2]
    return tip, late, force


def figures_of(result: RunResult, ink: Ink, plan: DrawingPlan, law: PenController, robot: Robot) -> DrawingFigures:
    """The figures of a drawing; robot: as it is believed."""
    log = result.log
    mode = log["mode"]
    drawing: Mask = mode == MODES.index("draw")
    tip, late, force = followed(log, plan.canvas, robot)
    tip, late = tip[drawing], late[drawing]
    lines = [np.asarray(line) for line in plan.polylines()]
    away = distance(tip, lines, reach=AWAY_MAX) if drawing.any() else np.zeros(0)
    strokes = [np.asarray(line) for line in plan.strokes.lines]
    strayed = distance(tip, strokes, reach=AWAY_MAX) if drawing.any() else np.zeros(0)
    pressed = force[drawing]
    settling: Mask = mode == MODES.index("settle")
    settled = force[settling]
    wanted = law.task.force_des
    known = "wrench_true" in log  # when it truly touched
    delays = touch_delays(log, force) if known else np.zeros(0)
    draw_s = float(drawing.sum() * result.period)
    return DrawingFigures(
        strokes=len(lines),
        strokes_drawn=int(np.count_nonzero(coverages(lines, ink) >= DRAWN)),
        strokes_touched=len(law.task.touches),
        draw_length_mm=1e3 * plan.draw_length,
        pen_up_mm=1e3 * plan.strokes.pen_up_length,
        duration_s=result.duration,
        draw_s=draw_s,
        path_rms_mm=_rms(1e3 * away),
        path_max_mm=_largest(1e3 * away),
        strokes_rms_mm=_rms(1e3 * strayed),
        strokes_max_mm=_largest(1e3 * strayed),
        path_time_rms_mm=_rms(1e3 * late),
        path_time_max_mm=_largest(1e3 * late),
        force_n=wanted,
        force_mean_n=float(pressed.mean()) if len(pressed) else None,
        force_rms_error_n=_rms(pressed - wanted),
        force_mean_deviation_n=float(np.mean(np.abs(pressed - wanted))) if len(pressed) else None,
        force_max_n=_largest(pressed),
        force_min_n=float(pressed.min()) if len(pressed) else None,
        force_touch_max_n=_largest(force[~drawing]),
        settle_s=float(settling.sum() * result.period),
        force_settle_rms_error_n=_rms(settled - log["force_des"][settling]),
        force_settle_max_n=_largest(settled),
        contact_lost_s=float(np.count_nonzero(pressed <= 0.0) * result.period),
        ink_coverage=coverage(lines, ink),
        ink_stray=stray(lines, ink),
        touch_delay_ms={"mean": float(np.mean(delays)), "max": float(np.max(delays))} if len(delays) else None,
        touch_late=int(np.count_nonzero(delays > TOUCH_MARK)),
        stiffness_hat=law.stiffness,
        stiffness_learned=law.learned and len(ink) > 0,  # what was learned in the air is nothing
        integral_limit_s=law.saturated,
        remarks=(
            *_remarks(law, draw_s, delays, felt_in_air(log, force) if known else []),
            *(
                f"{note}: in {plural(periods, 'period')}"
                for note, periods in result.interventions.items()
                if note not in result.aborted  # that is said already
            ),
        ),
        realtime_factor=result.realtime_factor,
        aborted=result.aborted,
        interventions=dict(result.interventions),
    )


def _remarks(law: PenController, draw_s: float, delays: Array, in_air: list[int]) -> list[str]:
    """What a reader of the figures should know."""
    remarks = []
    if law.saturated > max(SATURATED * draw_s, SATURATED_LEAST):
        remarks.append(
            f"the controller's integral was at its limit for {law.saturated:.1f} s: the model is more wrong than it "
            "can make up for, and the force is not what was asked for"
        )
    if law.task.touches and not law.learned:
        remarks.append("the stiffness of pen and paper was never learned: the stiffest one was assumed throughout")
    late = int(np.count_nonzero(delays > TOUCH_MARK))
    if late:
        remarks.append(
            f"{late} of {len(delays)} touches {'was' if late == 1 else 'were'} found later than {TOUCH_MARK:.0f} ms "
            f"after contact, the slowest after {delays.max():.0f}"
        )
    for stroke in in_air:
        remarks.append(
            f"a touch was felt in the air in stroke {stroke}, the paper was not found: noise or bias of the force "
            "beyond what the controller expects"
        )
    return remarks


def touch_delays(log: Log, force: Array) -> Array:
    """ms from the first sample with true contact to the sample at which the controller knew, for each touch.

    Negative where it was mistaken and the pen touched only afterwards; none where it never touched.
    """
    mode, time = log["mode"], log.time
    begins = np.flatnonzero((mode[1:] == MODES.index("settle")) & (mode[:-1] == MODES.index("touch"))) + 1
    delays = []
    for i in begins:
        if force[i] > 0.0:
            off = np.flatnonzero(force[:i] <= 0.0)
            first = int(off[-1]) + 1 if len(off) else 0
        else:
            on = np.flatnonzero(force[i:] > 0.0)
            if not len(on):
                continue
            first = int(i + on[0])
        delays.append(1e3 * float(time[i] - time[first]))
    return np.array(delays)


def felt_in_air(log: Log, force: Array) -> list[int]:
    """Strokes, counted from 1, for which the pen pressed (settled, drew) without ever truly touching."""
    pressing = (log["mode"] == MODES.index("settle")) | (log["mode"] == MODES.index("draw"))
    pressed = set(log["stroke"][pressing].astype(int).tolist())
    return sorted(pressed - set(log["stroke"][pressing & (force > 0.0)].astype(int).tolist()))


def _rms(values: Array) -> float | None:
    return float(np.sqrt(np.mean(values**2))) if len(values) else None


def _largest(values: Array) -> float | None:
    return float(np.max(values)) if len(values) else None
