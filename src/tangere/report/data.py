"""What a report is made of: one run as plain columns, from a result, a folder, or put together by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue

if TYPE_CHECKING:
    from tangere.robots import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Event:
    """A touch that was detected, and what was true where that is known."""

    time: float  # s, stamp of the sample that raised it
    joint: int  # counted from 1
    end: float | None = None  # s; None where it had not ended with the run
    torque_nm: float | None = None  # mean residual of that joint while it lasted
    true_torque_nm: float | None = None
    delay_ms: float | None = None  # from the true onset to `time`


@dataclass(frozen=True)
class RunData:
    """One run as the report shows it. Every column may be absent (None) or hold NaN: that is said, not drawn.

    Columns: time (N,) s; q, qd, q_des, qd_des, tau, tau_ext_true (N, n) rad, rad/s, Nm; tcp, tcp_des (N, 3) m in the
    base frame; timing_us (N,) what controller and observer took in each period. residuals: name of the observer ->
    (N, n) Nm. Signs as everywhere: tau includes gravity, tau_ext is what the environment does to the robot.
    """

    name: str
    command: str = ""  # what makes the run again
    parameters: Mapping[str, Any] = field(default_factory=dict)  # "radius [m]" -> 0.15
    robot: Robot | str | None = None
    blocks: Mapping[str, str] = field(default_factory=dict)  # reference, controller, plant, observer, detection
    time: Array = field(default_factory=lambda: np.zeros(0))
    q: Array | None = None
    qd: Array | None = None
    q_des: Array | None = None
    qd_des: Array | None = None
    tau: Array | None = None
    residuals: Mapping[str, Array] = field(default_factory=dict)
    tau_ext_true: Array | None = None
    tcp: Array | None = None
    tcp_des: Array | None = None
    wrench: Array | None = None  # (N, 6) at the tcp, of the environment on the robot, base axes [N, Nm]
    timing_us: Array | None = None
    lateness_us: Array | None = None  # (N,) how long after its due time a paced period began
    thresholds: Array | None = None  # (n,) Nm
    tau_max: Array | None = None  # (n,) Nm; the robot's where it is absent
    period: float | None = None  # s, nominal
    events: tuple[Event, ...] = ()
    notes: tuple[tuple[float, str], ...] = ()  # (s, what the controller had to limit, hold or ramp down)
    summary: Mapping[str, Any] = field(default_factory=dict)
    aborted: str = ""  # why the run ended early; "" if it did not
    video: bytes | None = None  # an mp4 to embed

    def __post_init__(self) -> None:
        time = np.asarray(self.time, dtype=np.float64)
        if time.ndim != 1:
            raise InvalidValue(f"time must be (N,), got shape {time.shape}")
        object.__setattr__(self, "time", time)
        for name, width in (("q", 0), ("qd", 0), ("q_des", 0), ("qd_des", 0), ("tau", 0), ("tau_ext_true", 0),
                            ("tcp", 3), ("tcp_des", 3), ("wrench", 6)):  # fmt: skip
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _column(name, value, len(time), width))
        object.__setattr__(
            self, "residuals", {str(k): _column(f"residual {k!r}", v, len(time), 0) for k, v in self.residuals.items()}
        )
        for name in ("timing_us", "lateness_us"):
            value = getattr(self, name)
            if value is not None:
                array = np.asarray(value, dtype=np.float64)
                if array.ndim != 1:
                    raise InvalidValue(f"{name} must be (N,), got shape {array.shape}")
                object.__setattr__(self, name, array)
        for name in ("thresholds", "tau_max"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, np.atleast_1d(np.asarray(value, dtype=np.float64)))

    @classmethod
    def of(cls, source: Any, **changes: Any) -> RunData:
        """Of a run's folder, its log (.mcap, .csv, Log) or its result; `changes` are fields that are known better."""
        if isinstance(source, RunData) or hasattr(source, "data"):
            data: RunData = source if isinstance(source, RunData) else source.data()
            return replace(data, **changes)
        from tangere.report.source import run_data

        return run_data(source, **changes)

    @property
    def dof(self) -> int:
        """Number of joints, from the first column that has any; 0 for an empty run."""
        for column in (self.q, self.q_des, self.tau, self.tau_ext_true, *self.residuals.values()):
            if column is not None:
                return int(column.shape[1])
        return 0


def _column(name: str, value: ArrayLike, rows: int, width: int) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != rows or (width and array.shape[1] != width):
        raise InvalidValue(f"{name} must be ({rows}, {width or 'n'}), got shape {array.shape}")
    return array
