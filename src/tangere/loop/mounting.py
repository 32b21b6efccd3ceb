"""While an event lasts: whether something mounted explains it; once named it is taken off the residual."""

from __future__ import annotations

import dataclasses

import numpy as np

from tangere.identification.belief import Belief
from tangere.observe.payload import LEVEL, STEP, Mounted, PayloadEstimator
from tangere.types import Array, Event, State

LOOK = 0.1  # [s] between two looks at what the samples so far say
FOLLOWED = 10.0  # [s] of motion over which a payload that was named is known better and better; later little is gained
UNKNOWN_LEVEL = 0.3  # of Coulomb friction that may be otherwise where no model was identified: arms of a type differ so


class Mounting:
    """Looks for payloads in the events of one detector.

    From an alarm on (or from a change of payload that was announced), samples are collected until it ends. Where a mass
    at the flange explains them, the event is a payload with mass, centre and interval, and its gravity and inertia are
    taken off the residual from then on: what comes after is felt as before. Its figures go on getting better for
    FOLLOWED seconds of motion in which nothing else is felt. A second one is added to the first; what is taken off has
    a negative mass.
    """

    def __init__(self, believed: Belief) -> None:
        drive, told = believed.drive, believed.robot.model.payload
        self._told = 0.0 if told is None else told.mass  # [kg] that the model has
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
        self._followed: int | None = None  # number of the event whose payload is still getting better known

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
        """A sample, and the newest event; whether that was named a payload just now. residual: as `less` left it."""
        going = event is not None and event.end_s is None and (event.alarm or event.kind == "payload")
        if not going or event is None or event.number in self._events:
            self._number = 0
            self._follow(state, residual)
            return False
        if event.number != self._number:
            self._number, self._taken, self._looked = event.number, state.time - STEP, state.time
            self._followed = None
            self._estimator.begin()
        if not self._added(state, residual) or state.time - self._looked < LOOK:
            return False
        self._looked = state.time
        found = self._estimator.fit(self._total)
        if found is None:
            return False
        self._mounted.append(found)
        self._events[event.number] = found
        self._followed = event.number
        return True

    @property
    def _total(self) -> float:
        """[kg] that hang there, as far as is known."""
        return self._told + sum(one.mass for one in self._mounted)

    def _added(self, state: State, residual: Array) -> bool:
        """Whether this sample was taken."""
        if self._moves is None or not np.all(np.isfinite(residual)) or state.time - self._taken < STEP - 1e-9:
            return False
        self._estimator.add(min(state.time - self._taken, 2.0 * STEP), state.q, *self._moves, residual)
        self._taken = state.time
        return True

    def _follow(self, state: State, residual: Array) -> None:
        """What was named last is fitted again, to all that was felt of it so far."""
        if self._followed is None or self._moves is None:
            return
        last = self._events[self._followed]
        felt = residual - self._estimator.torque(last, state.q, *self._moves)
        if not self._added(state, felt) or state.time - self._looked < LOOK:
            return
        self._looked = state.time
        found = self._estimator.fit(self._total - last.mass)
        if found is not None and found.mass_sigma <= last.mass_sigma:
            self._mounted[-1] = self._events[self._followed] = found
        if found is None or self._estimator.seconds > FOLLOWED:
            self._followed = None

    def named(self, event: Event) -> Event:
        """The event as a payload, where it was named one."""
        found = self._events.get(event.number)
        if found is None:
            return event
        low, high = found.interval
        what = "at the flange" if found.mass > 0.0 else "at the flange (negative: taken off)"
        reason = f"a mass of {found.mass:.3g} kg ({low:.3g} to {high:.3g}) {what} explains "
        reason += f"{100.0 * found.explained:.0f} % of what is felt while the arm moves"
        others = ((event.kind, 0.05),) if event.kind != "payload" else ()
        return dataclasses.replace(
            event, kind="payload", first_kind=event.first_kind or event.kind, confidence=0.95, alternatives=others,
            mass_kg=found.mass, mass_interval_kg=found.interval, com=found.com, reason=reason,
        )  # fmt: skip
