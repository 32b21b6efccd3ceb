"""Contacts that are drawn: any link, any place of its surface, any direction within the friction cone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue
from tangere.kernels.counter_noise import DRAWN, uniforms
from tangere.model.link_shapes import LinkSurface, link_surfaces
from tangere.model.model import Model
from tangere.plants.pushes import Push
from tangere.types import Array

MU = 0.5  # of the friction cone within which contacts press: what isolation assumes as well
SPACING = 0.007  # [m] between points that may be touched: finer than isolation's own 0.02, so that none coincides


@dataclass(frozen=True)
class RandomPushes:
    """One contact for every robot of a rollout, a function of seed and robot.

    force [N], start [s], duration [s]: lowest and highest, each drawn evenly (the duration evenly in its logarithm);
    one number is that number. links: counted from 1; None: all. Any square metre of a chosen link is as likely as any
    other; the force presses within the friction cone MU about the surface's normal, and stays as it is in base axes
    once it has begun.
    """

    force: float | tuple[float, float] = 60.0
    start: float | tuple[float, float] = (1.2, 3.0)
    duration: float | tuple[float, float] = (0.15, 1.0)
    links: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("force", "start", "duration"):
            given = getattr(self, name)
            try:
                low, high = _range(given)
            except (TypeError, ValueError):
                low, high = math.nan, math.nan
            if not (math.isfinite(high) and 0.0 <= low <= high) or (name == "duration" and low == 0.0):
                raise InvalidValue(f"{name}: one number or (lowest, highest), finite and > 0, got {given!r}")

    def skin(self, model: Model) -> list[LinkSurface]:
        """Where the arm can be touched; takes a second or so."""
        skin = [surface for surface in link_surfaces(model, SPACING) if len(surface)]
        skin = [surface for surface in skin if self.links is None or surface.link in self.links]
        if not skin:
            raise InvalidValue(f"links: {model.name} has none of {self.links!r} that could be touched")
        return skin

    def drawn(self, skin: list[LinkSurface], seed: int, robots: ArrayLike) -> DrawnPushes:
        """The contacts of those robots (m,) on that skin."""
        numbers = np.asarray(robots, dtype=np.uint64)
        first, second = (uniforms(seed, numbers, 0, DRAWN + i) for i in range(2))
        which = np.minimum((first[:, 0] * len(skin)).astype(np.int64), len(skin) - 1)
        point, force = np.empty((len(numbers), 3)), np.empty((len(numbers), 3))
        low, high = _range(self.force)
        size = low + (high - low) * second[:, 2]
        straight = math.cos(math.atan(MU))
        c = straight + (1.0 - straight) * first[:, 2]
        turn = 2.0 * math.pi * first[:, 3]
        for k, surface in enumerate(skin):
            mine = which == k
            share = np.cumsum(surface.area) / surface.area.sum()
            i = np.minimum(np.searchsorted(share, first[mine, 1]), len(surface) - 1)
            along = np.cos(turn[mine])[:, None] * surface.t1[i] + np.sin(turn[mine])[:, None] * surface.t2[i]
            aside = np.sqrt(1.0 - c[mine] ** 2)[:, None]
            point[mine] = surface.point[i]
            force[mine] = size[mine, None] * (aside * along - c[mine, None] * surface.normal[i])
        low, high = _range(self.start)
        start = low + (high - low) * second[:, 0]
        low, high = _range(self.duration)
        duration = low * (high / low) ** second[:, 1]
        return DrawnPushes(np.array([s.link for s in skin])[which], point, force, start, duration)


@dataclass(frozen=True)
class DrawnPushes:
    """Contacts of m robots; the force in the axes of its link."""

    link: NDArray[np.int64]  # (m,) counted from 1
    point: Array  # (m, 3) m, in the link's frame
    force: Array  # (m, 3) N
    start: Array  # (m,) s
    duration: Array  # (m,) s

    def push(self, i: int) -> Push:
        """That of one robot, as a plant takes it."""
        x, f = (tuple(map(float, rows[i])) for rows in (self.point, self.force))
        start, duration = float(self.start[i]), float(self.duration[i])
        return Push(link=int(self.link[i]), point=x, force=f, start=start, duration=duration, in_link_axes=True)  # type: ignore[arg-type]


def _range(given: float | tuple[float, float]) -> tuple[float, float]:
    low, high = (given, given) if isinstance(given, int | float) else given
    return float(low), float(high)
