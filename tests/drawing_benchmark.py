"""Tracing and ordering beside vpype's sorting of the same strokes: time and pen-up travel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tangere.apps.drawing.files import write_svg
from tangere.apps.drawing.picture.picture import Picture, picture_from
from tangere.apps.drawing.strokes.make import strokes_of
from tangere.apps.drawing.strokes.strokes import Strokes
from tangere.errors import MissingExtra, TangereError


@dataclass(frozen=True)
class SortingBenchmark:
    """What was measured, best of the repeats."""

    strokes: int
    seconds: float  # tracing, simplification and ordering by us
    vpype_seconds: float  # `vpype read FILE linesort --two-opt write FILE` of our strokes in a scrambled order
    pen_up: float  # m
    vpype_pen_up: float  # m


def photograph(side: int = 1000, *, shapes: int = 700, seed: int = 0) -> Picture:
    """A picture with the detail of a photograph: overlapping shaded ellipses of all tones, soft borders, noise."""
    rng = np.random.default_rng(seed)
    image = np.full((side, side), 0.5)
    for _ in range(shapes):
        x, y = rng.uniform(0.0, side, 2)
        a, b = rng.uniform(0.006 * side, 0.06 * side, 2)
        c, s = np.cos(angle := rng.uniform(0.0, np.pi)), np.sin(angle)
        left, right = max(0, int(x - a - b)), min(side, int(x + a + b) + 1)
        top, bottom = max(0, int(y - a - b)), min(side, int(y + a + b) + 1)
        u, v = np.arange(left, right) - x, (np.arange(top, bottom) - y)[:, None]
        along, across = (c * u + s * v) / a, (c * v - s * u) / b
        inside = np.clip((1.0 - np.hypot(along, across)) * min(a, b) / 1.5 + 0.5, 0.0, 1.0)
        tone = np.clip(rng.uniform(0.1, 0.9) + 0.1 * along, 0.0, 1.0)
        window = image[top:bottom, left:right]
        window += inside * (tone - window)
    return picture_from(np.clip(image + 0.02 * rng.normal(size=image.shape), 0.0, 1.0))


def sorting_benchmark(picture: Picture | None = None, *, size: float = 0.2, repeats: int = 3) -> SortingBenchmark:
    """Trace and order a picture (default: a made photograph of 1000 x 1000 pixels), and let vpype sort the strokes.

    vpype's time is that of its command, starting up included, as ours is without: a library call against a program.
    """
    source = picture or photograph()
    ours = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        strokes = strokes_of(source, size)
        ours = min(ours, time.perf_counter() - start)
    shuffled = np.random.default_rng(0).permutation(len(strokes))
    scrambled = Strokes(tuple(strokes.lines[k] for k in shuffled), strokes.size)
    theirs, travel = float("inf"), float("inf")
    for given in (scrambled, strokes):  # from any order, and from ours: it keeps what it is given where that is better
        for _ in range(repeats):
            seconds, pen_up = sorted_by_vpype(given)
            theirs, travel = min(theirs, seconds), min(travel, pen_up)
    return SortingBenchmark(len(strokes), ours, theirs, strokes.pen_up_length, travel)


def sorted_by_vpype(strokes: Strokes) -> tuple[float, float]:
    """(seconds, pen-up travel [m]) of `vpype read ... linesort --two-opt write ...`."""
    program = shutil.which("vpype") or shutil.which("vpype", path=str(Path(sys.executable).parent))
    if program is None:
        raise MissingExtra("the comparison needs vpype: pip install vpype")
    with tempfile.TemporaryDirectory() as folder:
        given, result = Path(folder) / "in.svg", Path(folder) / "out.svg"
        write_svg(strokes, given)
        start = time.perf_counter()
        done = subprocess.run(
            [program, "read", str(given), "linesort", "--two-opt", "write", str(result)], capture_output=True, text=True
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            raise TangereError(f"vpype failed: {done.stderr.strip()[-300:]}")
        told = subprocess.run([program, "read", str(result), "stat"], capture_output=True, text=True)
    found = re.search(r"Pen-up length:\s*([\d.]+)", told.stdout + told.stderr)
    if not found:
        raise TangereError(f"vpype did not tell a pen-up length: {told.stdout[-300:]}")
    return seconds, float(found.group(1)) * 25.4e-3 / 96.0
