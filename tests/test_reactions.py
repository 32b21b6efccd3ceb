"""Reactions to a touch: what each of them does to an arm that moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_control_simulator import Run, simulate

import tangere
from tangere.control.computed_torque import ComputedTorque
from tangere.control.guard import RATE_TIME, Guarded
from tangere.control.reactions import FloatOnContact, PathClock, Retreat, StopOnContact, StopOnPath
from tangere.control.reactions.handover import BRAKING, LONGEST, SHORTEST, stopping_time
from tangere.control.reactions.retreat import EDGE, direction, stroke
from tangere.control.task_space import TORQUE
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue
from tangere.planning.joint_motions import JointMove
from tangere.types import Array, Event, State

ROBOT = tangere.robot("ur10e", rotor_inertia=True)
Q = np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
END = Q + np.array([1.0, -0.4, -0.6, 0.5, 0.3, 1.2])
MOVE = JointMove(ROBOT, Q, END)
TOUCH = 900  # period of the touch: MOVE is at full speed there
FORCE = np.array([20.0, -40.0, 30.0])  # N


def contact_at(state: State, r: Any = None) -> Event:
    """A force on the tool, as an observer would feel it."""
    residual = ROBOT.jacobian(state.q)[:3].T @ FORCE if r is None else np.asarray(r, dtype=float)
    return Event.sample(state.time, 1, residual)


def stop() -> StopOnPath:
    clock = PathClock(MOVE)
    return StopOnPath(ComputedTorque(ROBOT, clock), clock, ROBOT)


KINDS: dict[str, Callable[[], Any]] = {
    "stop": stop,
    "soft": lambda: StopOnContact(ComputedTorque(ROBOT, MOVE), ROBOT),
    "retreat": lambda: Retreat(ComputedTorque(ROBOT, MOVE), ROBOT),
    "float": lambda: FloatOnContact(ComputedTorque(ROBOT, MOVE), ROBOT),
}


def touched(reaction: Any, residual: Any = None, duration: float = 3.0, **options: Any) -> Run:
    """MOVE with a touch in its period TOUCH; nothing really pushes."""

    def touch(k: int, state: State) -> State:
        if k == TOUCH:
            reaction.on_event(contact_at(state, residual))
        return state

    return simulate(ROBOT, reaction, Q, duration=duration, measure=touch, **options)


# ------------------------------------------------------------------------------------------------------ every reaction


@pytest.mark.parametrize("kind", KINDS)
def test_a_touch_without_an_obstacle_leaves_the_arm_standing(kind: str) -> None:
    """Before the touch the task itself; after it every joint comes to rest, within torque and rate limits."""
    reaction = KINDS[kind]()
    guarded = Guarded(reaction, ROBOT, period=1e-3)

    def touch(k: int, state: State) -> State:
        if k == TOUCH:
            reaction.on_event(contact_at(state))
        return state

    run = simulate(ROBOT, guarded, Q, duration=4.0, measure=touch)
    plain = simulate(ROBOT, ComputedTorque(ROBOT, MOVE), Q, duration=0.9)
    assert np.array_equal(run.tau[:TOUCH], plain.tau)
    assert set(run.notes[:TOUCH]) == {""}
    # one word for all of it; a brake from 1 rad/s may ask for all the torque there is
    assert len({note.removesuffix("; torque limited") for note in run.notes[TOUCH:]}) == 1
    assert not any("limited" in note for note in run.notes[TOUCH + 100 :])
    assert "after a touch" in run.notes[-1]
    assert guarded.limited == guarded.rate_limited == guarded.held == 0
    assert np.abs(run.tau[TOUCH:] / ROBOT.tau_max).max() <= TORQUE
    change = np.abs(np.diff(run.tau[TOUCH - 1 :], axis=0)) / (ROBOT.tau_max / RATE_TIME * 1e-3)
    assert change.max() <= 1.0
    before = np.abs(run.qd[TOUCH]).max()
    assert before > 0.3  # it did move
    assert np.abs(run.qd[TOUCH + 800]).max() < 0.1 * before
    assert np.abs(run.qd[-1]).max() < 1e-3
    # no chatter: once it stands, the torque stands too (a millionth of the limit per period is the last of the decay)
    assert (np.abs(np.diff(run.tau[-500:], axis=0)) / ROBOT.tau_max).max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("residual", [np.full(6, np.nan), np.zeros(6), np.ones(3), [np.inf, 0, 0, 0, 0, 0]])
def test_a_broken_residual_still_stops_the_arm(kind: str, residual: Any) -> None:
    run = touched(KINDS[kind](), residual, duration=2.5)
    assert np.isfinite(run.tau).all()
    assert np.abs(run.qd[-1]).max() < 2e-2  # float: M_ii damping couples the joints, some coast longest
    # 0.9 rad/s braked within 0.1 s: some 5 degrees of way; 0.3 rad is three times that, and no retreat of 8 cm either
    assert np.abs(run.q[-1] - run.q[TOUCH]).max() < 0.3


@pytest.mark.parametrize("kind", KINDS)
def test_a_touch_at_the_first_sample_and_a_second_start(kind: str) -> None:
    reaction = KINDS[kind]()
    state = State(0.0, 1e-3, Q, np.zeros(6), np.zeros(6))
    reaction.start(state)
    reaction.on_event(contact_at(state))
    assert np.isfinite(reaction.step(state).tau).all()
    assert reaction.event is not None
    reaction.start(state)
    assert reaction.event is None
    assert reaction.step(state).note == ""
    reaction.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_friction_is_compensated_after_the_touch_as_before(kind: str) -> None:
    """With friction in arm and reaction the arm stands as without: it is neither stuck halfway nor driven on."""
    friction = JointFriction(np.array([8.0, 8.0, 5.0, 2.0, 1.5, 1.0]), np.array([15.0, 15.0, 9.0, 2.0, 2.0, 2.0]))
    clock = PathClock(MOVE)
    task = ComputedTorque(ROBOT, clock if kind == "stop" else MOVE, friction=friction)
    reaction: Any = {
        "stop": lambda: StopOnPath(task, clock, ROBOT),
        "soft": lambda: StopOnContact(task, ROBOT, friction=friction),
        "retreat": lambda: Retreat(task, ROBOT, friction=friction),
        "float": lambda: FloatOnContact(task, ROBOT, friction=friction),
    }[kind]()
    run = touched(reaction, friction=friction)
    assert np.abs(run.qd[-1]).max() < 1e-2
    if kind != "float":  # the others have a place that they go to
        free = touched(KINDS[kind]())
        assert run.q[-1] == pytest.approx(free.q[-1], abs=5e-3)


# -------------------------------------------------------------------------------------------------------- stop on path


def test_stop_on_path_stays_on_the_path_and_resumes() -> None:
    reaction = stop()

    def touch(k: int, state: State) -> State:
        if k == TOUCH:
            reaction.on_event(contact_at(state))
        if k == TOUCH + 500:
            reaction.resume()
        return state

    run = simulate(ROBOT, reaction, Q, duration=MOVE.duration + 1.5, measure=touch)
    # distance of every q from the path (finely sampled): what computed torque leaves at 1 ms while braking hard
    path = np.array([MOVE.at(t).q for t in np.linspace(0.0, MOVE.duration, 20001)])
    nearest = [np.abs(path - q).max(axis=1).min() for q in run.q[::20]]
    assert max(nearest) < 2e-3
    assert np.abs(run.qd[TOUCH + 450]).max() < 1e-2  # it stood
    plain = touched(stop())
    clock = PathClock(MOVE)
    clock.halt(TOUCH * 1e-3, stopping_time(ROBOT, plain.q[TOUCH], MOVE.at(TOUCH * 1e-3).qd))
    # the drives could do what was asked: the arm is where the clock says, to what 1 ms of held torque leaves
    assert plain.q == pytest.approx(np.array([clock.at(t).q for t in plain.time]), abs=2e-3)
    assert run.q[-1] == pytest.approx(END, abs=1e-3)  # and went on to the end
    assert run.notes[-1] == ""


def test_stop_on_path_can_be_touched_again_after_resuming() -> None:
    reaction = stop()

    def touch(k: int, state: State) -> State:
        if k in (600, 1150):
            reaction.on_event(contact_at(state))
        if k == 900:
            reaction.resume()
        return state

    run = simulate(ROBOT, reaction, Q, duration=2.5, measure=touch)
    assert run.notes[1000] == ""
    assert "stopped" in run.notes[-1]
    assert np.abs(run.qd[-1]).max() < 1e-3
    assert np.abs(run.q[-1] - END).max() > 0.1


def test_resume_without_a_touch_changes_nothing() -> None:
    reaction = stop()
    reaction.resume()
    run = simulate(ROBOT, reaction, Q, duration=0.3)
    assert np.array_equal(run.tau, simulate(ROBOT, ComputedTorque(ROBOT, MOVE), Q, duration=0.3).tau)


def test_the_stopping_time_is_what_the_torques_allow() -> None:
    rng = np.random.default_rng(9)
    bounded = 0
    for _ in range(200):
        q = rng.uniform(-2.0, 2.0, 6)
        qd = rng.uniform(-1.0, 1.0, 6) * ROBOT.qd_max
        T = stopping_time(ROBOT, q, qd)
        assert SHORTEST <= T <= LONGEST
        brake = 1.5 / T * np.abs(ROBOT.inverse_dynamics(q, 0 * q, qd) - ROBOT.gravity_torque(q))  # M qd
        room = BRAKING * (TORQUE * ROBOT.tau_max - np.abs(ROBOT.bias_torque(q, qd)))
        if SHORTEST < T < LONGEST:
            bounded += 1
            assert np.max(brake / room) == pytest.approx(1.0)
    assert bounded > 50
    assert stopping_time(ROBOT, Q, np.zeros(6)) == SHORTEST


# -------------------------------------------------------------------------------------------------------------- retreat


def test_the_retreat_moves_the_touched_point_out_of_the_touch() -> None:
    """F^T J e > 0 wherever it was touched, from the residual alone; straight along F where the point is known."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        q, F = rng.uniform(-2.5, 2.5, 6), rng.normal(size=3)
        link, point = int(rng.integers(1, 7)), rng.uniform(-0.1, 0.1, 3)
        J = ROBOT.jacobian(q, link=link, point=point)[:3]
        r = J.T @ F
        e = direction(ROBOT, Event.sample(0.0, 1, r), q)
        assert F @ J @ e > 0.0
        speeds = [np.linalg.norm((ROBOT.jacobian(q, link=i + 1)[:3]) @ e) for i in range(6)]
        assert max(*speeds, np.linalg.norm(ROBOT.jacobian(q)[:3] @ e)) == pytest.approx(1.0)
        if link >= 4 and np.linalg.svd(J, compute_uv=False)[-1] > 0.2:  # the point can move every way
            known = direction(ROBOT, Event.sample(0.0, 1, r, link=link, point=point, force=F), q)
            v = J @ known
            # damping 0.05 against 0.2 turns the weakest direction by at most 6 %
            assert v @ F / (np.linalg.norm(v) * np.linalg.norm(F)) > 0.97


@pytest.mark.parametrize(
    ("link", "point", "force"),
    [(0, np.zeros(3), FORCE), (7, np.zeros(3), FORCE), (3, None, FORCE), (3, np.zeros(3), np.full(3, np.nan))],
)
def test_a_broken_place_is_not_used(link: int, point: Any, force: Any) -> None:
    r = ROBOT.jacobian(Q)[:3].T @ FORCE
    plain = direction(ROBOT, Event.sample(0.0, 1, r), Q)
    assert np.array_equal(direction(ROBOT, Event.sample(0.0, 1, r, link=link, point=point, force=force), Q), plain)


def test_the_retreat_goes_its_distance_at_its_speed() -> None:
    for distance, speed in ((0.08, 0.25), (0.05, 0.1), (0.005, 0.25)):
        reaction = Retreat(ComputedTorque(ROBOT, MOVE), ROBOT, distance=distance, speed=speed)
        run = touched(reaction, duration=4.0)
        e = direction(ROBOT, contact_at(State(0.0, 1e-3, run.q[TOUCH], run.qd[TOUCH], run.tau[0])), run.q[TOUCH])
        # critically damped at 10 rad/s for 2 s after the way's end
        assert run.q[-1] == pytest.approx(run.q[TOUCH] + distance * e, abs=1e-4)
        tool = np.linalg.norm(np.diff(run.position[TOUCH + 400 :], axis=0), axis=1) / 1e-3
        assert tool.max() <= 1.1 * speed + 0.02  # of the fastest point; catching up after the brake adds a little
        assert (run.position[-1] - run.position[TOUCH]) @ FORCE > 0.0


def test_the_stroke_is_a_smooth_way() -> None:
    for distance, speed in ((0.08, 0.25), (0.01, 0.25), (0.3, 0.5)):
        t = np.linspace(0.0, 2.0, 20001)
        s, sd, sdd = np.array([stroke(float(x), distance, speed) for x in t]).T
        assert s[0] == 0.0
        assert s[-1] == pytest.approx(distance)
        assert 0.0 <= sd.min() <= sd.max() <= speed + 1e-12
        # second order in 1e-4 s, first order where the jerk jumps: 6 * speed / ramp^2 * 1e-4 / 2
        assert np.gradient(s, t) == pytest.approx(sd, abs=1e-5)
        assert np.gradient(sd, t) == pytest.approx(sdd, abs=6 * speed / 0.08**2 * 1e-4)
    assert stroke(1.0, 0.0, 0.25) == (0.0, 0.0, 0.0)


def test_the_retreat_keeps_off_the_joint_limits() -> None:
    q = Q.copy()
    q[2] = ROBOT.q_max[2] - 0.05
    reaction = Retreat(ComputedTorque(ROBOT, q), ROBOT, distance=0.3)

    def touch(k: int, state: State) -> State:
        if k == 10:
            reaction.on_event(contact_at(state, [0.0, 0.0, 30.0, 0.0, 0.0, 0.0]))
        return state

    run = simulate(ROBOT, reaction, q, duration=3.0, measure=touch)
    assert run.q[:, 2].max() < ROBOT.q_max[2] - 0.5 * EDGE
    assert run.q[-1, 2] > q[2] + 0.01  # it did go that way


def test_a_touch_from_the_other_side_ends_the_retreat() -> None:
    def with_second(sign: float) -> Run:
        reaction = Retreat(ComputedTorque(ROBOT, MOVE), ROBOT)

        def touch(k: int, state: State) -> State:
            if k == TOUCH:
                reaction.on_event(contact_at(state))
            if k == TOUCH + 250:
                reaction.on_event(contact_at(state, sign * ROBOT.jacobian(state.q)[:3].T @ FORCE))
            return state

        return simulate(ROBOT, reaction, Q, duration=3.0, measure=touch)

    alone, same, other = touched(KINDS["retreat"]()), with_second(1.0), with_second(-1.0)
    assert np.array_equal(same.tau, alone.tau)
    way = np.linalg.norm(alone.position[-1] - alone.position[TOUCH])
    assert np.linalg.norm(other.position[-1] - other.position[TOUCH + 250]) < 0.2 * way
    assert "touched from the other side" in other.notes[-1]
    change = np.abs(np.diff(other.tau[TOUCH:], axis=0)) / (ROBOT.tau_max / RATE_TIME * 1e-3)
    assert change.max() <= 1.0


@pytest.mark.parametrize("bad", [0.0, -0.1, np.nan, np.inf])
def test_an_impossible_retreat_is_refused(bad: float) -> None:
    for name in ("distance", "speed"):
        with pytest.raises(InvalidValue, match=name):
            Retreat(ComputedTorque(ROBOT, MOVE), ROBOT, **{name: bad})


# -------------------------------------------------------------------------------------------------- soft hold and float


def pushed_by_hand(kind: str) -> tuple[Run, Array]:
    """10 Nm on joint 1 from 1.0 s after the touch, for 1 s."""
    load = np.array([10.0, 0, 0, 0, 0, 0])
    begin = TOUCH * 1e-3 + 1.0
    return touched(KINDS[kind](), duration=5.0, push=lambda t, q: load * (begin <= t < begin + 1.0)), load


def test_the_soft_hold_gives_way_and_comes_back() -> None:
    run, load = pushed_by_hand("soft")
    k = ROBOT.mass_matrix(run.q[TOUCH])[0, 0] * 25.0
    given = run.q[TOUCH + 1999, 0] - run.q[TOUCH + 999, 0]
    assert given == pytest.approx(load[0] / k, rel=0.1)  # 5 rad/s, critically damped: 96 % after 1 s
    assert run.q[-1] == pytest.approx(run.q[TOUCH], abs=2e-3)


def test_the_floating_arm_is_led_away_and_stays() -> None:
    run, _ = pushed_by_hand("float")
    led = run.q[TOUCH + 2000, 0] - run.q[TOUCH + 999, 0]
    assert led > 0.1
    assert run.q[-1, 0] >= run.q[TOUCH + 2000, 0]  # nothing pulls it back
    assert np.abs(run.qd[-1]).max() < 0.02


def test_more_compensation_than_friction_is_refused_before_anything_moves() -> None:
    with pytest.raises(InvalidValue, match="compensation"):
        FloatOnContact(ComputedTorque(ROBOT, MOVE), ROBOT, compensation=1.0)


def test_only_a_touch_that_begins_halts_the_path_and_the_first_one_counts() -> None:
    reaction, state = stop(), State(0.0, 1e-3, Q, np.zeros(6), np.zeros(6))
    reaction.on_event(replace(contact_at(state), phase="ended", end_s=1.0))
    assert reaction.event is None
    first = contact_at(state)
    reaction.on_event(first)
    reaction.on_event(contact_at(replace(state, time=0.5)))
    assert reaction.event is first
