"""A live arm as rows, the same that a recording of it would have: what `watch`, `record` and `doctor` listen to."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tangere.errors import PlantLost
from tangere.logs.columns import RTDE_NAMES
from tangere.logs.recordings import StreamRow
from tangere.rtde.client import Address, Rtde
from tangere.rtde.wire import Value
from tangere.types import Array

# What a recording of an arm should have; a controller that does not know one leaves it out.
FIELDS = (
    "timestamp", "control_step", "actual_q", "actual_qd", "target_q", "target_qd", "target_qdd", "actual_current",
    "actual_current_as_torque", "target_current", "target_moment", "joint_temperatures", "actual_TCP_pose",
    "actual_TCP_force", "tcp_offset", "payload", "payload_cog", "payload_inertia", "target_gravity", "speed_scaling",
    "robot_mode", "safety_mode", "safety_status_bits", "runtime_state", "joint_mode",
)  # fmt: skip
_OURS = {name: ours for ours, name in RTDE_NAMES.items()}
SILENT = 2.0  # [s] without a package after which a connection counts as lost
FIRST_WAIT, LONGEST_WAIT = 0.5, 10.0  # [s] before a new try: doubled each time


class RtdeRows:
    """Rows of a live arm, one each period, read only. A lost connection is made anew, with growing pauses.

    problems counts what went wrong, as CsvStream's does; `said` has sentences about it. seconds: how long, by the
    controller's clock. patience [s]: how long to try for a new connection; 0: not at all.
    """

    def __init__(
        self,
        address: Address,
        names: Sequence[str] = FIELDS,
        *,
        seconds: float = math.inf,
        patience: float = math.inf,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.name = address.host if address.port == 30004 else f"{address.host}:{address.port}"
        self.problems: Counter[str] = Counter()
        self.said: list[str] = []
        self._address, self._names, self._seconds, self._patience = address, tuple(names), seconds, patience
        self._tell = tell or self.said.append
        self._connection: Rtde | None = self._connect()
        self.version = self._connection.version if self._connection is not None else (0, 0, 0, 0)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields that this controller has, as RTDE spells them."""
        assert self._connection is not None
        assert self._connection.recipe is not None
        return self._connection.recipe.names

    @property
    def period(self) -> float:
        """[s] nominal."""
        return 2e-3 if self.version[0] >= 5 else 8e-3

    def close(self) -> None:
        """End the connection; may be called twice."""
        if self._connection is not None:
            self._connection.close()

    def __iter__(self) -> Iterator[StreamRow]:
        first = last = math.nan
        anew = False
        try:
            while True:
                try:
                    values = self._next()
                except PlantLost as problem:
                    if not self._again(str(problem)):
                        return
                    anew = True
                    continue
                now = float(values.pop("timestamp"))  # type: ignore[arg-type]
                if not now > last and not math.isnan(last):
                    if not anew:
                        self.problems["stamps that repeat or go back"] += 1
                        continue
                    self._tell(f"the controller's clock went back to {now:.3f} s: it was started anew")
                elif now - last > 1.5 * self.period:
                    self.problems["samples lost"] += round((now - last) / self.period) - 1
                restarted = anew and not now > last
                first = now if math.isnan(first) or restarted else first
                yield StreamRow(now, {_OURS.get(k, k): _array(v) for k, v in values.items()}, restarted)
                last, anew = now, False
                if now - first >= self._seconds:
                    return
        finally:
            self.close()

    def _next(self) -> dict[str, Value]:
        connection = self._connection
        assert connection is not None
        values = connection.receive(SILENT)
        if values is None:
            raise PlantLost(f"{self.name} has been silent for {SILENT:g} s")
        return values

    def _connect(self) -> Rtde:
        connection = Rtde(self._address.host, self._address.port)
        connection.known_outputs(self._names)
        connection.start()
        return connection

    def _again(self, why: str) -> bool:
        """A new connection, as soon as there is one; False: patience is over."""
        self.close()
        self.problems["connections lost"] += 1
        self._tell(f"{why}; trying again" if self._patience > 0.0 else why)
        deadline, pause = time.monotonic() + self._patience, FIRST_WAIT
        while time.monotonic() < deadline:
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(2.0 * pause, LONGEST_WAIT)
            try:
                self._connection = self._connect()
            except PlantLost:
                continue
            self._tell(f"{self.name} answers again")
            return True
        return False


def _array(value: Value) -> Array:
    return np.array(value, dtype=np.float64)
