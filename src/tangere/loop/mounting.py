"""While an event lasts: whether something mounted explains it; once named it is taken off the residual."""

from __future__ import annotations

import dataclasses

import numpy as np

from tangere.identification.belief import Belief
from tangere.observe.payload import LEVEL, STEP, Mounted, PayloadEstimator
from tangere.types import Array, Event, State

LOOK = 0.1  # [s] between two looks at what the samples so far say
UNKNOWN_LEVEL = 0.3  # of Coulomb friction that may be otherwise where no model was identified: arms of a type differ so


class Mounting:
    """Looks for payloads in the events of one detector.

    From an alarm on, samples are collected until it ends. Where a mass at the flange explains them, the event is a
    payload with mass, centre and interval, and its gravity and inertia are taken off the residual from then on: what
    comes after is felt as before. A second one is added to the first.
    """

    def __init__(self, believed: Belief) -> None:
        drive = believed.drive
        level = LEVEL if believed.model is not None else UNKNOWN_LEVEL
        self._estimator = PayloadEstimator(believed.robot, drive.spread, drive.coulomb, level)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._estimator.restart()
        self._mounted: list[Mounted] = []
        self._events: dict[int, Mounted] = {}
        self._number, self._taken, self._looked = 0, -np.inf, -np.inf
        self._moves: tuple[Array, Array] | None = None

    @property
    def mounted(self) -> tuple[Mounted, ...]:
        """All that were named so far."""
        return tuple(self._mounted)

    def less(self, state: State, residual: Array) -> Array:
        """The residual (n,) without what is mounted and was named."""
        self._moves = self._estimator.acceleration(state.time, state.qd)
        if not self._mounted or self._moves is None:
            return residual
        qd, qdd = self._moves
        total = sum((self._estimator.torque(one, state.q, qd, qdd) for one in self._mounted), np.zeros(len(residual)))
        return np.asarray(residual + total)

    def look(self, state: State, residual: Array, event: Event | None) -> bool:
        """A sample during an event, if there is one; whether it was named a payload just now."""
        if event is None or event.end_s is not None or not event.alarm or event.number in self._events:
            self._number = 0
            return False
        if event.number != self._number:
            self._number, self._taken, self._looked = event.number, state.time - STEP, state.time
            self._estimator.begin()
        if self._moves is None or not np.all(np.isfinite(residual)) or state.time - self._taken < STEP - 1e-9:
            return False
        self._estimator.add(min(state.time - self._taken, 2.0 * STEP), state.q, *self._moves, residual)
        self._taken = state.time
        if state.time - self._looked < LOOK:
            return False
        self._looked = state.time
        found = self._estimator.fit()
        if found is None:
            return False
        self._mounted.append(found)
        self._events[event.number] = found
        return True

    def named(self, event: Event) -> Event:
        """The event as a payload, where it was named one."""
        found = self._events.get(event.number)
        if found is None:
            return event
        low, high = found.interval
        reason = f"a mass of {found.mass:.3g} kg ({low:.3g} to {high:.3g}) at the flange explains "
        reason += f"{100.0 * found.explained:.0f} % of what is felt while the arm moves"
        others = ((event.kind, 0.05),) if event.kind != "payload" else ()
        return dataclasses.replace(
            event, kind="payload", first_kind=event.first_kind or event.kind, confidence=0.95, alternatives=others,
            mass_kg=found.mass, mass_interval_kg=found.interval, com=found.com, reason=reason,
        )  # fmt: skip
