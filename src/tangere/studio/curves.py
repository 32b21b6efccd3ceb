"""Curves beside the arm: the newest seconds of a simulation, or the whole of a log with a cursor."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.types import Array

COLOURS = ("#1f77b4", "#d1495b", "#2e933c", "#c98a0b", "#7b4fa3", "#0f8b8d", "#8c564b", "#5f6c7b")  # do not repeat
CURSOR = "#8a94a0"  # of the line at the time that is shown: as the axes, and no joint's
POINTS = 400  # of one curve: more than the panel has pixels
FELT = (-1.2, 1.2)  # [Nm], [N] always in sight where torques felt are shown: less than anybody feels by hand
SEEN = 4  # digits after the point of what is drawn: rounding of 1e-14 Nm is not blown up to the height of a plot
_AXIS = {"stroke": "#8a94a0", "grid": {"stroke": "#8a94a030"}, "ticks": {"stroke": "#8a94a060"}}


class Curves:
    """One plot: a line per name over [start, end] s, and a dashed one where there is a limit.

    The range of time is fixed: viser keeps what is shown as a share of the data, which drifts where the data does.
    least: values that are always in sight, so that a thousandth of a Nm does not fill the plot.
    """

    def __init__(
        self, gui: Any, title: str, names: tuple[str, ...], span: tuple[float, float], *, height: int = 190,
        limit: float | None = None, label: str = "", least: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        self.limit = limit
        series: list[dict[str, Any]] = [{"label": "t [s]"}]
        for i, name in enumerate(names):
            colour = CURSOR if name == "now" else COLOURS[i % len(COLOURS)]
            series.append({"label": name, "stroke": colour, "width": 1.6})
        if limit is not None:
            series.append({"label": "limit", "stroke": "#e8920c", "width": 1.4, "dash": (6, 4)})
        x = np.array(span)
        scales: dict[str, Any] = {"x": {"time": False, "range": span}}
        if least is not None:
            ends = ({"pad": 0.1, "soft": end, "mode": 1} for end in least)  # mode 1: in sight, and more where there is
            scales["y"] = {"range": dict(zip(("min", "max"), ends, strict=True))}
        self.plot = gui.add_uplot(
            data=(x, *(np.zeros(2) for _ in names), *([] if limit is None else [np.full(2, limit)])),
            series=tuple(series), title=title, height=height, legend={"show": True, "live": False},
            scales=scales,
            axes=({"size": 48 if label else 28, "label": label, "labelSize": 20, **_AXIS}, {"size": 46, **_AXIS}),
        )  # fmt: skip

    def show(self, time: Array, values: Array) -> None:
        """time (N,) [s], values (N, k): every point where there are few, else evenly picked ones."""
        if len(time) < 2:
            return
        pick = np.unique(np.linspace(0, len(time) - 1, min(POINTS, len(time))).astype(int))
        x = np.ascontiguousarray(time[pick])
        values = np.round(values[pick], SEEN)
        lines = [np.ascontiguousarray(values[:, j]) for j in range(values.shape[1])]
        self.plot.data = (x, *lines, *([] if self.limit is None else [np.full(len(x), self.limit)]))

    def show_all(self, time: Array, values: Array) -> None:
        """The same with every point as it is: they were picked before."""
        lines = [np.ascontiguousarray(values[:, j]) for j in range(values.shape[1])]
        self.plot.data = (np.ascontiguousarray(time), *lines)


def picked(time: Array, values: Array, points: int = POINTS) -> NDArray[np.intp]:
    """Indices of samples that keep the least and the most of every bin: an event of a few samples stays seen.

    Samples that are not finite are left out: a plot with one of them shows nothing at all.
    """
    known = np.flatnonzero(np.isfinite(values).all(axis=1))
    count = len(known)
    if count <= points:
        return known
    size = np.abs(values[known]).max(axis=1)
    edges = np.unique(np.linspace(0, count, points // 2 + 1).astype(int))
    most = [a + int(np.argmax(size[a:b])) for a, b in pairwise(edges.tolist())]
    return np.asarray(known[np.unique(np.concatenate((edges[:-1], np.array(most), [count - 1])))])
