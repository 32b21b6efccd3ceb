"""Events are judged again outside the control period: when they come, to whom, and as they would be in place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from tangere.apps.scenarios.build import Built, build
from tangere.logs.mcap_read import read_mcap
from tangere.loop.refining import LATENCY
from tangere.loop.result import RunResult
from tangere.loop.run import run
from tangere.observe.detect import Detector
from tangere.plants.pushes import Push
from tangere.types import Event, State

H = 0.002
PUSH = Push(2, 20.0, 0.5, 0.4)


@dataclass
class Told:
    """A reaction that notes what it is told and at which sample of the loop; a sink as well."""

    now: float = 0.0
    events: list[tuple[float, Event]] = field(default_factory=list)
    seen: list[Event] = field(default_factory=list)

    def on_event(self, event: Event) -> None:
        self.events.append((self.now, event))

    def open(self, run: Any) -> None: ...

    def row(self, *row: Any) -> None: ...

    def event(self, event: Event) -> None:
        self.seen.append(event)

    def close(self, result: RunResult) -> None: ...


class Watched:
    """A refiner that notes whether it works within an update."""

    def __init__(self, detector: Detector, told: Told) -> None:
        self.refiner, self.update, self.told = detector.refiner, detector.update, told
        self.within, self.asked = False, list[float]()
        detector.refiner, detector.update = self, self._update  # type: ignore[assignment, method-assign]

    def _update(self, state: State, residual: np.ndarray) -> Event | None:
        self.within, self.told.now = True, state.time
        event = self.update(state, residual)
        self.within = False
        return event

    def refine(self, known: Any) -> Event:
        assert not self.within
        self.asked.append(self.told.now)
        return self.refiner.refine(known)


def _built() -> Built:
    return build("sine", {"plant": "rigid", "period": H, "duration": 1.4, "ramp": 0.3, "drives": "off"}, (PUSH,))


def _run(built: Built, told: Told, **more: Any) -> RunResult:
    result = run(
        built.plant, built.controller, built.observers, until=built.duration, trajectory=built.motion.trajectory,
        detector=built.detector, reaction=told, sinks=[told], **more,
    )  # fmt: skip
    assert not result.aborted
    return result


def test_an_event_is_refined_between_periods_and_comes_at_a_defined_sample(tmp_path) -> None:
    results = []
    for _ in range(2):
        built, told = _built(), Told()
        assert isinstance(built.detector, Detector)
        watched = Watched(built.detector, told)
        result = _run(built, told, log=tmp_path / "run.mcap")
        (event,) = result.events
        assert len(watched.asked) == 3  # 0.1 and 0.5 s after the onset, and at the end
        assert event.phase == "ended"
        assert event.torque_interval_nm is not None
        assert event.first_kind is not None
        when, phases = zip(*[(t, e.phase) for t, e in told.events], strict=True)
        assert phases == ("raised", "refined", "refined", "refined")
        assert {e.number for _, e in told.events} == {1}
        assert watched.asked[0] - event.onset_s == pytest.approx(0.1, abs=1.5 * H)
        assert when[1:] == pytest.approx([t + LATENCY for t in watched.asked], abs=1e-6)
        assert [e.phase for e in told.seen] == ["raised", "refined", "refined", "ended", "refined"]
        logged = read_mcap(tmp_path / "run.mcap").events
        assert [e["phase"] for e in logged] == [e.phase for e in told.seen]
        # link and force are named after the alarm, and the log has them
        assert [e["link"] for e in logged[:2]] == [None, told.seen[1].link]
        assert event.link is not None
        assert event.impulse is not None
        first = f"touch 1: at first link {event.link} ("
        said = [note.text for note in result.log.notes if note.text.startswith(first)]
        assert len(said) >= 1  # and so has the page
        assert logged[-1]["force"] == pytest.approx(event.force.tolist())
        results.append([(t, e.record()) for t, e in told.events])
    assert results[0] == results[1]


def test_what_is_refined_later_is_what_would_be_refined_in_place() -> None:
    built, told = _built(), Told()
    result = _run(built, told)
    again = _built().detector
    assert isinstance(again, Detector)
    log, target = result.log, None
    for k, t in enumerate(log.time.tolist()):
        again.update(
            State(t, H, log["q"][k], log["qd"][k], log["tau"][k], qd_target=target), np.array(log["residual"][k])
        )
        target = log["qd_des"][k]
    assert [e.record() for e in again.events] == [e.record() for e in result.events] != []


@pytest.mark.parametrize("isolated", [False, True], ids=["thread", "process"])
def test_in_a_paced_run_a_worker_refines(isolated: bool) -> None:
    built, told = _built(), Told()
    detector = built.detector
    assert isinstance(detector, Detector)
    assert detector.isolator is not None
    if not isolated:
        detector = Detector(detector.thresholds, robot=detector.robot, answered=True)
        built = replace(built, detector=detector)
    result = _run(built, told, paced=True)
    (event,) = result.events
    assert event.torque_interval_nm is not None
    assert event.torque_nm == pytest.approx(20.0, abs=1.0)
    assert "refined" in [e.phase for e in told.seen]
    assert (event.isolated_s is not None) == isolated
    assert not [note.text for note in result.log.notes if "not refined" in note.text]
    assert detector.deferred is None


def test_an_event_that_cannot_be_refined_stays_as_it_was_and_the_run_says_so() -> None:
    class Broken:
        def refine(self, known: Any) -> Event:
            raise ValueError("no matrix")

    built, told = _built(), Told()
    built.detector.refiner = Broken()  # type: ignore[attr-defined, union-attr]
    result = _run(built, told)
    (event,) = result.events
    assert (event.alarm, event.phase, event.torque_interval_nm) == (True, "ended", None)
    assert next(note.text for note in result.log.notes if "refined" in note.text) == "event 1 not refined: no matrix"
