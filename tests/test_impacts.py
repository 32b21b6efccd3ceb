"""Pads and balls in the simulator, and what an encounter does with and without a reaction."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import tangere
from tangere.apps.scenarios.build import Built, build
from tangere.apps.scenarios.execute import again, execute, summary_of
from tangere.apps.scenarios.touch import MEETS, REACTIONS, Impact, encounters, given, measured
from tangere.control.computed_torque import ComputedTorque
from tangere.errors import InvalidValue
from tangere.loop.folder import difference
from tangere.loop.result import RunResult
from tangere.loop.run import run
from tangere.plants.mujoco_plant import MujocoPlant
from tangere.plants.scene.bodies import ball, pad, table
from tangere.plants.scene.scene import Pen, Scene
from tangere.types import Array, Command, Event, State

READY = np.deg2rad([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
PEN = Pen(length=0.1, radius=0.02)
ROBOT = tangere.robot("ur10e", tool=(0.0, 0.0, 0.1), payload=PEN.payload(0.5), rotor_inertia=True)
G = 9.81
QUASI_STATIC = 140.0  # N for hands and fingers: ISO/TS 15066:2016, table A.2


def encounter(**told: Any) -> tuple[Built, RunResult]:
    """One run of the scenario `touch` with these settings, in memory."""
    built = build("touch", told)
    result = run(
        built.plant, built.controller, built.observers, until=built.settings.duration,
        trajectory=built.motion.trajectory, detector=built.detector, reaction=built.motion.reaction,
    )  # fmt: skip
    return built, result


# --------------------------------------------------------------------------------------------------- what gives way


class Press:
    """Gravity and a constant force down at the tcp, with a lot of damping: comes to rest on whatever is below."""

    def __init__(self, force: float) -> None:
        self.force = np.array([0.0, 0.0, -force])

    def start(self, state: State) -> None: ...

    def step(self, state: State) -> Command:
        brake = 20.0 * ROBOT.mass_matrix(state.q) @ state.qd
        return Command(ROBOT.bias_torque(state.q, state.qd) + ROBOT.jacobian(state.q)[:3].T @ self.force - brake)

    def stop(self) -> None: ...


@pytest.mark.parametrize(("stiffness", "force"), [(75e3, 20.0), (75e3, 140.0), (5e3, 50.0), (5e5, 300.0)])
def test_a_pad_is_the_spring_it_says(stiffness: float, force: float) -> None:
    """At rest force / depth = stiffness: 0.1 % of MuJoCo's impedance and what the arm's pose adds to its weight."""
    tip = ROBOT.pose(READY)[:3, 3]
    hand = pad("hand", tuple(tip), (0.0, 0.0, 1.0), stiffness, size=(0.4, 0.4, 0.1))
    plant = MujocoPlant(ROBOT, scene=Scene(tool=PEN, bodies=(hand,)), record_contacts=True)
    result = run(plant, Press(force), until=1.5, start=READY)
    depth = -plant.data.contact[0].dist
    felt = plant.contact_forces[-1]
    assert felt[2] > 0.5 * force  # it does lie on the pad (some of the force goes sideways into the joints)
    assert felt[2] / depth == pytest.approx(stiffness, rel=0.01)
    assert plant.truth().wrench[:3] == pytest.approx(felt, abs=1e-9)
    assert len(plant.contact_forces) == len(result.log) + 1
    assert np.abs(np.diff(plant.contact_forces[-200:, 2])).max() < 0.01 * force  # it rests, and does not ring


def test_a_ball_is_held_and_then_falls() -> None:
    dropped = ball("ball", (1.0, 0.5, 1.5), mass=2.0, release=0.2)
    plant = MujocoPlant(ROBOT, scene=Scene(bodies=(dropped,)))

    def height() -> float:
        return float(plant.data.body("ball").xpos[2])

    for _ in range(2):  # a reset holds it again
        plant.reset(READY)
        for k in range(1, 501):
            plant.write(Command(ROBOT.gravity_torque(plant.read().q)))
            t = max(0.0, 1e-3 * k - 0.2)
            mujoco.mj_kinematics(plant.model, plant.data)
            # semi-implicit steps run ahead by g h t / 2
            assert height() == pytest.approx(1.5 - 0.5 * G * t**2, abs=0.5 * G * 1e-3 * t + 1e-9)
        assert plant.truth().q == pytest.approx(READY, abs=1e-6)  # the arm does not care


def test_a_ball_comes_to_rest_on_a_table_and_bounces_first() -> None:
    dropped = ball("ball", (1.0, 0.5, 0.55), radius=0.05)
    plant = MujocoPlant(ROBOT, scene=Scene((table(0.0), dropped)))
    speed = []
    for _ in range(2500):
        plant.write(Command(ROBOT.gravity_torque(plant.read().q)))
        speed.append(float(plant.data.qvel[8]))
    fall = math.sqrt(2.0 * G * 0.5)
    assert min(speed) == pytest.approx(-fall, rel=0.01)
    # damping ratio 0.3: exp(-0.3 pi / sqrt(1 - 0.09)) = 0.37 of the speed, more with a contact that cannot pull
    assert 0.3 * fall < max(speed) < 0.6 * fall
    assert float(plant.data.qpos[8]) == pytest.approx(0.05, abs=2e-3)
    assert abs(speed[-1]) < 1e-2


def test_impossible_things_are_refused() -> None:
    for options in ({"mass": 0.0}, {"radius": -1.0}, {"release": -0.1}, {"stiffness": math.nan}):
        with pytest.raises(InvalidValue, match="ball"):
            ball("b", (0.0, 0.0, 1.0), **options)
    for options in ({"stiffness": 0.0}, {"damping": -1.0}, {"size": (0.1, 0.0, 0.1)}, {"friction": math.inf}):
        with pytest.raises(InvalidValue, match="pad"):
            pad("p", (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="normal"):
        pad("p", (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
    with pytest.raises(InvalidValue, match="names of their own"):
        Scene((table(), ball("table", (0.0, 0.0, 1.0))))
    with pytest.raises(InvalidValue, match=r"stiffness at most .* got 1e\+09"):
        MujocoPlant(ROBOT, scene=Scene(bodies=(pad("p", (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), 1e9),)))


# -------------------------------------------------------------------------------------------------------- encounters


@cache
def met(obstacle: str, reaction: str, **settings: Any) -> tuple[Built, RunResult, Impact]:
    built, result = encounter(obstacle=obstacle, reaction=reaction, **settings)
    return built, result, measured(built, result)


@pytest.mark.parametrize(("obstacle", "stiffness"), [("wall", 1e6), ("hand", 75e3)])
def test_the_first_peak_is_what_mass_speed_and_stiffness_say(obstacle: str, stiffness: float) -> None:
    """v sqrt(k m) along the normal for a free mass with an ideal spring."""
    built, result, impact = met(obstacle, "none")
    assert impact.speed_m_s == pytest.approx(0.25, rel=1e-3)
    assert impact.contact_s == pytest.approx(MEETS, abs=2e-3)
    assert impact.effective_mass_kg is not None
    free = impact.speed_m_s * math.sqrt(stiffness * impact.effective_mass_kg)
    normal = np.abs(built.plant.contact_forces @ built_normal(obstacle))  # type: ignore[attr-defined]
    first = normal[: int(1e3 * MEETS) + 25].max()  # before the arm has pushed for long
    # -: damping of 5 % takes that much; +: friction holds the tool sideways, which makes it heavier, kp and kv push
    assert 0.95 * free < first < 1.5 * free
    assert impact.peak_after_ms is not None
    quarter = 1e3 * 0.5 * math.pi * math.sqrt(impact.effective_mass_kg / stiffness)
    assert 0.9 * quarter < impact.peak_after_ms < 2.0 * quarter
    assert result.aborted == ""


def built_normal(obstacle: str) -> Array:
    return np.array((0.0, 1.0, 0.0) if obstacle == "wall" else (0.0, 0.0, 1.0))


@pytest.mark.parametrize("reaction", REACTIONS)
def test_energy_that_left_the_arm_is_energy_it_lost(reaction: str) -> None:
    """-int tau_ext qd = work of the drives - (kinetic + potential) gained: contacts against the arm's own energy."""
    built, result, _ = met("hand", reaction)
    log, arm = result.log, built.world.true
    kinetic, potential = (np.array(part) for part in zip(*(energies(arm, q, v) for q, v in states(log)), strict=True))
    mean = 0.5 * (log["qd_true"][1:] + log["qd_true"][:-1])
    drives = np.concatenate([[0.0], np.cumsum(np.sum(log["tau"][1:] * mean, axis=1) * 1e-3)])
    total = kinetic + potential
    lost = drives[::10] - (total - total[0])
    # one step of first order: 1 ms of the power that flows, some 50 W while it pushes
    assert given(log)[::10] == pytest.approx(lost, abs=0.05)
    assert np.max(given(log)) > 0.3


def states(log: Any) -> Any:
    return zip(log["q_true"][::10], log["qd_true"][::10], strict=True)


def energies(arm: Any, q: Array, qd: Array) -> tuple[float, float]:
    found = arm.energy(q, qd)
    return float(found[0]), float(found[1])


@pytest.mark.parametrize("speed", [0.25, 0.5])
def test_what_every_reaction_does_to_a_clamped_hand(speed: float) -> None:
    none = met("hand", "none", speed=speed)[2]
    assert none.remaining_n is not None
    assert none.remaining_n > QUASI_STATIC  # what ISO/TS 15066 allows a clamped hand: this is why one reacts
    for reaction in REACTIONS[1:]:
        _, result, impact = met("hand", reaction, speed=speed)
        assert impact.felt_ms is not None
        assert impact.felt_ms <= 5.0
        assert impact.peak_n < 0.9 * none.peak_n  # it gives way slowly enough for every reaction to help
        assert impact.energy_j < 0.3 * none.energy_j
        assert impact.late_peak_n < 0.3 * none.late_peak_n
        assert impact.remaining_n is not None
        # springs are left pressing: the stop where the path went on to, the soft hold hardly
        assert impact.remaining_n < {"stop": 50.0, "soft": 5.0, "retreat": 0.1, "float": 0.1}[reaction]
        assert impact.torque_share <= 1.0
        assert impact.end_speed_rad_s < 0.01
        assert not any("rate" in note or "aborted" in note for note in result.interventions)


@pytest.mark.parametrize("speed", [0.25, 0.5])
def test_the_first_peak_on_a_wall_is_nobodys_to_lower(speed: float) -> None:
    none = met("wall", "none", speed=speed)[2]
    for reaction in REACTIONS[1:]:
        _, result, impact = met("wall", reaction, speed=speed)
        assert 0.9 * none.peak_n < impact.peak_n <= none.peak_n
        assert impact.peak_after_ms == none.peak_after_ms
        assert impact.late_peak_n < 0.35 * none.late_peak_n
        assert impact.impulse_ns < 0.15 * none.impulse_ns
        assert impact.remaining_n is not None
        assert impact.remaining_n < {"stop": 50.0, "soft": 5.0, "retreat": 0.1, "float": 0.1}[reaction]
        assert impact.torque_share <= 1.0
        assert not any("rate" in note or "aborted" in note for note in result.interventions)


@pytest.mark.parametrize("reaction", REACTIONS)
def test_what_falls_on_link_3_is_felt_there_and_the_arm_stops(reaction: str) -> None:
    built, result, impact = met("falling", reaction)
    assert impact.contact_s == pytest.approx(MEETS, abs=3e-3)
    k = round(1e3 * (impact.contact_s or 0.0)) + 2
    external = np.abs(result.log["tau_ext_true"][k])
    assert external[:3].max() > 50.0
    assert external[3:].max() < 1e-9  # joints beyond link 3 feel nothing of it
    assert not result.log["wrench_true"][k].any()  # nor does the tool
    free = math.sqrt(2.0 * G * 0.5 * 3e4 * 1.0)  # v sqrt(k m) of a ball on something that does not move
    assert 0.5 * free < impact.peak_n < free  # the tube slants, and gives way
    assert impact.felt_ms is not None
    assert impact.felt_ms <= 3.0
    assert impact.torque_share <= 1.0
    assert impact.end_speed_rad_s < 0.01
    ends = result.log.position("T_true")[-1]
    planned = built.motion.trajectory.at(10.0).T
    assert planned is not None
    off = float(np.linalg.norm(ends - planned[:3, 3]))
    assert (off < 1e-3) == (reaction in ("none", "stop"))  # a stopped path is where its reference is


def test_stop_ends_where_it_was_touched_and_the_others_beside_it() -> None:
    backed = {reaction: met("hand", reaction, threshold=(5.0,))[2].backed_mm for reaction in REACTIONS[1:]}
    assert backed["retreat"] == pytest.approx(80.0, abs=8.0)  # it is told 2 mm after the touch, and the tool slid
    assert abs(backed["stop"] or 0.0) < 2.0
    assert abs(backed["soft"] or 0.0) < 2.0
    assert 2.0 < (backed["float"] or 0.0) < 60.0  # pushed off by the hand


class Once:
    """A detector that is wrong once."""

    def __init__(self, time: float) -> None:
        self.time, self.touching, self.events, self.score = time, False, (), 0.0

    def reset(self) -> None:
        self.touching = False

    def update(self, state: State, residual: Array) -> Event | None:
        if self.touching or state.time < self.time:
            return None
        self.touching = True
        return Event.sample(state.time, 2, np.array([1.0, 6.0, 3.0, 0.0, 0.0, 0.0]))


def test_the_delay_of_a_second_touch_counts_from_that_touch() -> None:
    """The arm leaves the hand after 50 ms and meets it again a second later."""
    built, result = encounter(obstacle="hand", reaction="soft", duration=2.0)
    first, second, *_ = met = encounters(built, result)
    assert first.start == pytest.approx(MEETS, abs=0.02)
    assert second.start - first.start > 0.5
    assert all(one.start + one.duration == pytest.approx(result.duration) for one in met)
    told = [event["delay_ms"] for event in summary_of(built, result)["events"]]
    assert len(told) == 2
    assert all(0.0 < delay < 20.0 for delay in told)


@pytest.mark.parametrize("reaction", REACTIONS[1:])
def test_a_false_alarm_leaves_the_arm_standing(reaction: str) -> None:
    built = build("touch", {"obstacle": "nothing", "reaction": reaction, "speed": 0.5})
    detector: Any = Once(0.6)
    result = run(
        built.plant, built.controller, built.observers, until=3.0, trajectory=built.motion.trajectory,
        detector=detector, reaction=built.motion.reaction,
    )  # fmt: skip
    impact = measured(built, result)
    assert impact.contact_s is None
    assert impact.peak_n == 0.0
    assert impact.end_speed_rad_s < 0.01
    at = result.log.position("T_true")
    assert np.linalg.norm(at[-1] - at[600]) < (0.1 if reaction == "retreat" else 0.06)  # 0.5 m/s stop within 6 cm
    assert np.abs(result.log["residual"]).max() < 0.5  # nobody was there, and the observer knows
    share = np.abs(result.log["tau_cmd"]) / built.world.true.tau_max
    assert share.max() <= 1.0
    assert not any("rate" in note for note in result.interventions)


@pytest.mark.parametrize("reaction", REACTIONS[1:])
@pytest.mark.parametrize("obstacle", ["wall", "hand"])
def test_nothing_chatters(obstacle: str, reaction: str) -> None:
    """A few bounces, then still: no limit cycle of contact and reaction."""
    built, result, _ = met(obstacle, reaction)
    force = np.linalg.norm(built.plant.contact_forces, axis=1)  # type: ignore[attr-defined]
    touching = force > 1.0
    begins = np.nonzero(touching[1:] & ~touching[:-1])[0] + 1
    assert 1 <= len(begins) <= 30
    peaks = [force[a:b].max() for a, b in pairwise((*begins, len(force)))]
    assert all(later < 0.98 * before for before, later in pairwise(peaks))  # every bounce is weaker than the one before
    tau = result.log["tau_cmd"][1800:] / built.world.true.tau_max
    assert np.abs(np.diff(tau, axis=0)).max() < 1e-3


def test_with_noise_friction_and_a_wrong_mass_it_still_lets_go() -> None:
    impact = met("hand", "retreat", friction="full", sensors="ur10e", mass=1.05, threshold=(12.0,))[2]
    assert impact.felt_ms is not None
    assert impact.felt_ms < 15.0
    assert impact.remaining_n == 0.0
    assert impact.end_speed_rad_s < 0.02


@pytest.mark.parametrize("arm", ["ur3e", "ur5", "ur16e", "ur20"])
@pytest.mark.parametrize("obstacle", ["wall", "hand"])
def test_other_arms_meet_things_too(arm: str, obstacle: str) -> None:
    told = {"robot": arm, "obstacle": obstacle, "speed": 0.2, "duration": 2.0}
    none, retreat = (measured(*encounter(reaction=reaction, **told)) for reaction in ("none", "retreat"))
    assert none.contact_s == pytest.approx(MEETS, abs=3e-3)
    assert none.remaining_n is not None
    assert none.remaining_n > 5.0
    assert retreat.peak_n <= none.peak_n
    assert retreat.remaining_n == 0.0
    assert retreat.torque_share <= 1.0


def test_what_a_short_run_cannot_tell_is_not_zero() -> None:
    impact = measured(*encounter(obstacle="hand", reaction="soft", duration=1.0))
    assert impact.contact_s is not None
    assert impact.remaining_n is None  # the run ended 0.4 s after the touch


# ------------------------------------------------------------------------------------------------------- the scenario


def test_the_scenario_leaves_its_numbers_and_can_be_repeated(tmp_path: Path) -> None:
    done = execute("touch", {"obstacle": "hand", "reaction": "float", "duration": 1.8}, out=tmp_path / "run")
    touch = done.summary["touch"]
    assert touch["peak_n"] == pytest.approx(met("hand", "float")[2].peak_n)
    assert done.summary["events"][0]["delay_ms"] == pytest.approx(touch["felt_ms"])
    assert done.summary["tracking_rms_mm"] < 0.1  # before the touch only
    assert "first peak" in done.summary["remark"]
    repeated, kept = again(tmp_path / "run")
    assert difference(kept, repeated.result.log) == ""
    assert repeated.summary["touch"] == touch


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"speed": 0.0}, "speed: above 0 m/s, got 0"),
        ({"speed": "3 m"}, "valid units: m/s"),
        ({"obstacle": "fridge"}, "valid: wall, hand, falling, nothing"),
        ({"reaction": "run"}, "valid: none, stop, soft, retreat, float"),
        ({"drop_height": 5.0, "obstacle": "falling"}, "drop_height: at most"),
        ({"robot": "planar3r", "obstacle": "hand"}, "for UR arms"),
        ({"plant": "rigid"}, "need plant=mujoco"),
    ],
)
def test_what_the_scenario_refuses(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        build("touch", settings)


def test_without_a_reaction_it_is_computed_torque() -> None:
    built = build("touch", {"reaction": "none"})
    assert isinstance(built.motion.controller, ComputedTorque)
    assert built.motion.reaction is None
