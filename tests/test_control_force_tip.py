"""The arithmetic of hybrid control: the compiled form is the Python form, and the tip accelerates as asked."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from tip_oracle import Oracle

from tangere.apps.drawing.drawing import drawing_robot
from tangere.apps.drawing.force.hybrid_force import TipLaw, speed_bandwidth
from tangere.errors import InvalidValue
from tangere.kernels import backend
from tangere.types import Array, Reference, State

ROBOT = drawing_robot("ur5e")
Q = np.array([0.4, -1.3, 2.0, -2.2, -1.5, 0.3])
H = 1e-3
GAINS = (10800.0, 180.0, 216000.0)
LIMIT = np.repeat((3.0, 15.0), 3)

FORMS = ["compiled", "printed"]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The law as C, and the same graph printed as Python."""
    if request.param == "printed":
        monkeypatch.setattr(backend, "Step", None)
    elif backend.Step is None:
        pytest.skip("no compiled kernels here")
    return str(request.param)


def turned(rng: np.random.Generator, angle: float) -> Array:
    """A rotation (3, 3) by that angle about any axis."""
    axis = rng.standard_normal(3)
    x, y, z = axis / np.linalg.norm(axis)
    K = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
    return np.asarray(np.eye(3) + math.sin(angle) * K + (1.0 - math.cos(angle)) * K @ K)


def canvas(rng: np.random.Generator) -> Array:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = turned(rng, 0.4), (0.4, 0.05, 0.02)
    return T


def made(T: Array) -> TipLaw:
    return TipLaw(ROBOT, speed_bandwidth(ROBOT, Q, 0.1, 2e-3), T, GAINS, LIMIT)


def reference(rng: np.random.Generator, q: Array, away: float, angle: float) -> Reference:
    """Somewhere near the pose of q, moving."""
    T = ROBOT.pose(q).copy()
    T[:3, :3] = turned(rng, angle) @ T[:3, :3]
    T[:3, 3] += away * rng.standard_normal(3)
    v, a = 50.0 * away * rng.standard_normal(6), 1e3 * away * rng.standard_normal(6)
    return Reference(q, np.zeros(6), np.zeros(6), T, v, a)


def sample(rng: np.random.Generator, k: int, period: float = H, speed: float = 0.3) -> State:
    """Period k of a motion with a reported speed that has nothing to do with it."""
    q = Q + 0.3 * np.sin(speed * k / 30.0 + np.arange(6.0))
    qd = speed * rng.standard_normal(6)
    # as wild as the speeds: 1 Nm on the light last wrist is 2 rad/s within a period
    return State(k * H, period, q, qd, ROBOT.gravity_torque(q) + speed * rng.standard_normal(6))


def test_the_law_is_its_oracle_in_every_case(form: str, rng: np.random.Generator) -> None:
    """1e-9 of each quantity's own size: rounding of a solve (cond J about 1e2) that an integral of 500 steps keeps.

    Pressing and free, with and without a force, lost samples (a stamp that repeats), periods that change or are no
    period, references up to half a turn away (all four branches of the logarithm).
    """
    T = canvas(rng)
    one, two = made(T), Oracle(ROBOT, speed_bandwidth(ROBOT, Q, 0.1, 2e-3), T, GAINS, LIMIT)
    first = sample(rng, 0)
    one.start(first)
    two.start(first)
    seen: dict[tuple[bool, bool, bool], int] = {}
    for k in range(1, 500):
        period = (H, H, 2.0 * H, 0.0)[k % 4] if k > 250 else H
        now = sample(rng, k - (k % 7 == 0), period, 1e-3 if k < 250 else 0.3)
        F = None if k % 5 == 0 else np.concatenate((5.0 * rng.standard_normal(3), np.zeros(3)))
        a, b = one.sense(now, F), two.sense(now, F)
        assert a == pytest.approx(b, rel=1e-9, abs=1e-12)
        pressing = k % 3 == 0
        # first what a pen meets, then what no torque can follow
        angle = 1e-4 if k < 250 else (0.01, 1.0, 2.5, math.pi - 1e-3)[k % 4]
        wanted = reference(rng, now.q, 1e-5 if k < 250 else 1e-3, angle)
        along, integral = rng.standard_normal(2).tolist()
        values = (wanted, now.period, pressing, along, 0.1 * integral)
        tau, other = one.torque(*values), two.torque(*values)
        assert (tau is None) == (other is None)
        if tau is not None:
            assert tau == pytest.approx(other, rel=1e-9, abs=1e-8)
        assert one.qd == pytest.approx(two.qd, rel=1e-9, abs=1e-12)
        assert one.b == pytest.approx(two.b, rel=1e-9, abs=1e-10)
        assert one.pull == pytest.approx(two.pull, rel=1e-9, abs=1e-8)
        assert one.external == pytest.approx(two.external, rel=1e-9, abs=1e-12)
        assert one.full == two.full
        seen[pressing, F is None, tau is None] = seen.get((pressing, F is None, tau is None), 0) + 1
    assert len(seen) == 8  # all kinds of cases were there,
    assert min(seen.values()) > 10  # and none by chance alone


def test_the_tip_accelerates_as_asked(form: str, rng: np.random.Generator) -> None:
    """By forward dynamics, another algorithm, under the torque and the force: 1e-7 m/s2 of some 10.

    Pressing: exactly `along` (with b) in the normal's place, and the motion's own law along the paper.
    """
    T = canvas(rng)
    n = T[:3, 2]
    law = made(T)
    kp, kv, ki = GAINS
    for k in range(40):
        q = Q + 0.1 * rng.standard_normal(6)
        if k < 10:  # the tip above the base's x axis: J begins with a zero, and a solve without pivoting is lost
            q[0] -= math.atan2(*ROBOT.pose(q)[[1, 0], 3])
        start = State(0.0, H, q, 0.03 * rng.standard_normal(6), np.zeros(6))
        law.start(start)
        F = np.concatenate((5.0 * rng.standard_normal(3), np.zeros(3)))
        W, push, x, y, height, speed = law.sense(start, F)  # the stamp of the start: the filter keeps its speed
        qd = start.qd
        J, pose = ROBOT.jacobian(q), ROBOT.pose(q)
        assert W == pytest.approx(n @ F[:3], abs=1e-12)
        assert push == pytest.approx(np.linalg.norm(F), abs=1e-12)
        assert (x, y, height) == pytest.approx(np.linalg.inv(T) @ pose[:, 3] @ np.eye(4)[:, :3], abs=1e-12)
        assert speed == pytest.approx(n @ (J @ qd)[:3], abs=1e-12)
        wanted = Reference(q, qd, qd, pose.copy(), 0.01 * rng.standard_normal(6), rng.standard_normal(6))
        assert wanted.T is not None
        assert wanted.v is not None
        assert wanted.a is not None
        step = 1e-4 * rng.standard_normal(3)
        wanted.T[:3, 3] += step  # a pure shift: the error needs no logarithm
        pressing = bool(k % 2)
        tau = law.torque(wanted, H, pressing, 0.7, 0.02)
        assert tau is not None
        error = np.concatenate((step, np.zeros(3)))
        law_of_motion = wanted.a + kp * error + kv * (wanted.v - J @ qd)
        b = ki * H * error
        along = np.concatenate((n, np.zeros(3)))
        if pressing:
            law_of_motion += (0.7 - along @ law_of_motion) * along
            b -= (along @ b) * along
        else:
            law_of_motion += 0.7 * along
        b += 0.02 * along
        felt = J.T @ F
        qdd = ROBOT.forward_dynamics(q, qd, tau + felt)
        made_of_it = J @ qdd + ROBOT.jacobian_rate_times_velocity(q, qd)
        assert made_of_it == pytest.approx(law_of_motion + b, abs=1e-7)


def test_the_integral_ends_at_its_limit_and_says_so(form: str, rng: np.random.Generator) -> None:
    law = made(canvas(rng))
    still = State(0.0, H, Q, np.zeros(6), np.zeros(6))
    law.start(still)
    law.sense(still, None)
    T = ROBOT.pose(Q).copy()
    T[0, 3] += 1e-3
    wanted = Reference(Q, np.zeros(6), np.zeros(6), T, np.zeros(6), np.zeros(6))
    steps = 0
    while not law.full:
        steps += 1
        law.torque(wanted, H, False, 0.0, 0.0)
        assert law.b[0] == pytest.approx(min(steps * GAINS[2] * H * 1e-3, LIMIT[0]), rel=1e-9)
    assert steps == math.ceil(LIMIT[0] / (GAINS[2] * H * 1e-3))
    assert law.b[0] == LIMIT[0]
    T[0, 3] -= 2e-3
    law.torque(wanted, H, False, 0.0, 0.0)
    assert not law.full  # and comes off it at once


def test_a_singular_pose_gives_no_torque_but_what_was_wanted(form: str, rng: np.random.Generator) -> None:
    law = made(canvas(rng))
    q = np.array([0.1, -1.0, 0.0, 0.3, 0.0, 0.2])  # straight elbow, wrist axes in line
    state = State(0.0, H, q, np.zeros(6), np.zeros(6))
    law.start(state)
    law.sense(state, None)
    a = np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
    wanted = Reference(q, np.zeros(6), np.zeros(6), ROBOT.pose(q).copy(), np.zeros(6), a)
    assert law.torque(wanted, H, False, 0.0, 0.0) is None
    assert law.pull == pytest.approx(a, abs=1e-12)  # at rest Jdot qd is 0


@pytest.mark.parametrize("field", ["q", "qd", "tau"])
def test_what_is_no_number_is_refused(form: str, field: str, rng: np.random.Generator) -> None:
    law = made(canvas(rng))
    good = {"q": Q, "qd": np.zeros(6), "tau": np.zeros(6)}
    law.start(State(0.0, H, **good))
    for bad in (np.full(6, np.nan), np.zeros(5)):
        with pytest.raises(InvalidValue, match=field):
            law.sense(State(H, H, **(good | {field: bad})), None)
    with pytest.raises(InvalidValue, match="wrench"):
        law.sense(State(H, H, **good), np.full(6, np.inf))
    law.sense(State(H, H, **good), np.zeros(6))
    with pytest.raises(InvalidValue, match="T"):
        law.torque(Reference(Q, Q, Q), H, False, 0.0, 0.0)
    with pytest.raises(TypeError):
        law.torque(Reference(Q, Q, Q), H)


def test_a_copy_begins_anew(form: str, rng: np.random.Generator) -> None:
    law = made(canvas(rng))
    first, later = sample(rng, 0), sample(rng, 1)
    law.start(first)
    expected = law.sense(later, None)
    for other in (copy.deepcopy(law), pickle.loads(pickle.dumps(law))):
        other.start(first)
        assert other.sense(later, None) == expected
