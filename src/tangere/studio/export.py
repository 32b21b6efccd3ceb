"""A run as one page that needs no server: the arm as it moved, and its curves. Nothing is asked of anyone else."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tangere.errors import InvalidValue
from tangere.figures.markup import Raw, tag
from tangere.logs.files import write_text
from tangere.report.data import RunData
from tangere.report.page import head, page_html
from tangere.report.section import Section
from tangere.report.sections_curves import joints, residual
from tangere.studio.curves import picked
from tangere.studio.door import guarded_server, stop
from tangere.studio.recorded import recorded, shown_data
from tangere.studio.stage import Stage

PICTURES = 25.0  # [1/s] of the arm: smooth, and some 9 kB a second
MOST = 1500  # pictures in all: of a long run fewer a second, so that the page stays below 2 MB
SAMPLES = 240  # of a curve, the largest of each bin among them: two figures take some 150 kB


def export(source: str | os.PathLike[str] | RunData, out: str | os.PathLike[str], arm: Any = None) -> Path:
    """Write the page of a run to `out` and say where it is."""
    path = Path(out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidValue(f"--out: a file that ends with .html, got {os.fspath(out)!r}")
    data = shown_data(source)
    run = recorded(data, arm)
    length = float(run.time[-1] - run.time[0])
    count = int(np.clip(np.ceil(length * PICTURES), 2, MOST))
    server, _ = guarded_server()
    try:
        stage = Stage(server, run.robot)
        stage.arm.place(run.q[0])
        serializer = server.get_scene_serializer()
        times = np.linspace(run.time[0], run.time[-1], count)
        for time in times.tolist():
            stage.arm.place(run.q[run.index(time)])
            here = [e for e in run.events if e.time_s <= time <= (e.end_s or e.time_s + 1.0)]
            for link in range(1, run.robot.dof + 1):
                stage.arm.paint(link, here[-1].link_probability if here and here[-1].link == link else 0.0)
            serializer.insert_sleep(length / count)
        scene = serializer.as_html()
    finally:
        stop(server)
    frame = tag("iframe", srcdoc=scene, title="The arm in space; drag to turn", style=(
        "width:100%;height:min(70vh,640px);border:1px solid #8885;border-radius:8px"), sandbox="allow-scripts")
    said = [tag("p", sentence) for sentence in run.said]
    first = Section("arm", "The arm", Raw("".join(str(part) for part in (frame, *said))))
    few = _thinned(data)
    sections = [first, *(found for make in (residual, joints) if (found := make(few)) is not None)]
    return write_text(path, page_html(run.name, head(data), sections, few.time, frames=True))


def _thinned(data: RunData) -> RunData:
    """The run with some SAMPLES samples: those at which the residual is largest stay."""
    most = next(iter(data.residuals.values()), data.q)
    if most is None or len(data.time) <= SAMPLES:
        return data
    keep = picked(data.time, most, SAMPLES)
    columns = ("q", "qd", "q_des", "qd_des", "tau", "tau_ext_true", "tcp", "tcp_des", "wrench")
    changes: dict[str, Any] = {name: getattr(data, name)[keep] for name in columns if getattr(data, name) is not None}
    changes["residuals"] = {name: values[keep] for name, values in data.residuals.items()}
    return replace(data, time=data.time[keep], timing_us=None, lateness_us=None, **changes)
