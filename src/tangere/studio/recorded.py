"""A run or a log as the studio replays it: where the arm was, what it felt, and when something happened."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tangere.errors import InvalidValue
from tangere.report.data import RunData
from tangere.robots import Robot, robot
from tangere.types import Array, Event


@dataclass(frozen=True)
class Recorded:
    """Columns of a run that a page shows. time starts where the log's does."""

    name: str
    robot: Robot
    time: Array  # (N,) [s], rising
    q: Array  # (N, n) [rad]
    residual: Array | None  # (N, n) [Nm]
    tau: Array | None  # (N, n) [Nm]
    events: tuple[Event, ...]
    notes: tuple[tuple[float, str], ...]
    said: tuple[str, ...] = ()  # what is missing, in sentences

    def index(self, time: float) -> int:
        """The sample nearest to that time."""
        after = int(np.searchsorted(self.time, time))
        if after == 0:
            return 0
        if after == len(self.time):
            return after - 1
        return after if self.time[after] - time < time - self.time[after - 1] else after - 1

    @property
    def marks(self) -> tuple[tuple[float, str], ...]:
        """When something was felt, with what stands at the timeline."""
        return tuple((event.time_s, str(event.number)) for event in self.events)


def recorded(source: str | os.PathLike[str] | RunData, arm: Robot | str | None = None) -> Recorded:
    """A run's folder, a log (.mcap, .csv, .npz:KEY) or RunData; arm: whose it is, where the log does not say."""
    data = RunData.of(source)
    name = data.name if isinstance(source, RunData) else data.name or Path(os.fspath(source)).name
    if data.q is None or not len(data.time):
        raise InvalidValue(f"{name}: no joint positions in it, so there is nothing to show")
    found = arm if arm is not None else data.robot
    if found is None:
        raise InvalidValue(f"{name}: it does not say which arm it is of; name it with --robot NAME")
    body = found if isinstance(found, Robot) else robot(found)
    if body.dof != data.q.shape[1]:
        raise InvalidValue(f"{name}: {data.q.shape[1]} joints in the log, but {body.name} has {body.dof}")
    whole = np.isfinite(data.q).all(axis=1) & np.isfinite(data.time)
    whole[1:] &= np.diff(data.time) > 0.0
    if not whole.any():
        raise InvalidValue(f"{name}: no sample with finite joint positions")
    residual = next(iter(data.residuals.values()), None)
    said = []
    if data.tau is None:
        said.append("the log has no torque: what the arm felt cannot be shown, only how it moved")
    elif residual is None:
        said.append("the log has no residual; `tangere watch` finds touches in it")
    if data.aborted:
        said.append(data.aborted)
    return Recorded(
        name, body, data.time[whole], data.q[whole], None if residual is None else residual[whole],
        None if data.tau is None else data.tau[whole], data.events, data.notes, tuple(said),
    )  # fmt: skip
