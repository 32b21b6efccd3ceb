"""Learning environments: gymnasium's API and checker, draws that follow from the seed, lanes against Python."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue, UnknownName
from tangere.kernels import environments as kernel
from tangere.kernels import rollouts
from tangere.observe.momentum import MomentumObserver
from tangere.plants.rigid import RigidPlant
from tangere.plants.sensors import SensorModel
from tangere.types import Array, Command

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed: pip install 'tangere[gym]'")
import tangere.gym  # noqa: E402
from tangere.apps.gym import tasks  # noqa: E402
from tangere.apps.gym.vector import POSTURE  # noqa: E402

PRESS, REACH = "Tangere/Press-v0", "Tangere/Reach-v0"
NOISY = SensorModel(noise_q=1e-5, noise_qd=2e-3, noise_tau=0.5)


def pressing(envs: Any, observation: Array, force: float = 10.0) -> Array:
    """Gravity and a force downwards."""
    q, qd = envs.split(observation)["q"], envs.split(observation)["qd"]
    J = envs.robot.jacobian(q)
    return envs.robot.gravity_torque(q) - 2.0 * qd + np.einsum("nij,i->nj", J, np.array([0, 0, -force, 0, 0, 0]))


def played(steps: int = 30, **options: Any) -> tuple[list[Any], Any]:
    envs = tangere.gym.make_vec(options.pop("id", PRESS), **options)
    rows, (observation, _) = [], envs.reset(seed=3)
    for _ in range(steps):
        rows.append((observation, *(answer := envs.step(pressing(envs, observation)))[1:4]))
        observation = answer[0]
    return rows, envs


@pytest.mark.parametrize("name", [PRESS, REACH])
def test_gymnasium_checks_it(name: str) -> None:
    """Its own checker; what it says beside is advice: ranges of torque in Nm are not 1, and a speed has no bound."""
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_env(gymnasium.make(name).unwrapped, skip_render_check=True)
    texts = [str(w.message) for w in said]
    assert all("normalized space" in text or "infinity" in text for text in texts), texts
    envs = gymnasium.make_vec(name, num_envs=3, vectorization_mode="vector_entry_point")
    observation, _ = envs.reset(seed=1)
    assert envs.observation_space.contains(observation)
    answer = envs.step(envs.action_space.sample())
    assert envs.observation_space.contains(answer[0])
    assert [a.shape for a in answer[1:4]] == [(3,)] * 3


def test_an_environment_does_not_depend_on_the_others() -> None:
    """The same numbers, bit by bit, among 3 and among 70, in any number of threads; another seed is another world."""
    few, _ = played(num_envs=3, sensors=NOISY, payload=(0.0, 1.0))
    before = tangere.threads()
    try:
        tangere.threads(2)
        many, envs = played(num_envs=70, sensors=NOISY, payload=(0.0, 1.0))
    finally:
        tangere.threads(before)
    for a, b in zip(few, many, strict=True):
        for x, y in zip(a, b, strict=True):
            assert np.array_equal(x, y[:3])
    first, _ = envs.reset(seed=3)
    assert np.array_equal(first, many[0][0])
    assert not np.any(envs.reset(seed=4)[0][:, :6] == first[:, :6])


@pytest.mark.skipif(not rollouts.COMPILED, reason="the compiled rollouts are not built: there is only one form")
def test_lanes_give_the_numbers_of_the_python_form(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, envs = played(num_envs=19, sensors=NOISY, gap=0.0005)
    monkeypatch.setattr(rollouts, "COMPILED", False)
    slow, other = played(num_envs=19, sensors=NOISY, gap=0.0005)
    assert np.abs(fast[-1][0] - slow[-1][0]).max() < 1e-11
    assert np.abs(envs.state - other.state).max() < 1e-11
    assert envs.tip[0][:, 2].max() > 1.0  # they do touch


def test_the_arm_moves_and_feels_as_a_plant_and_an_observer_do() -> None:
    """Beside RigidPlant and MomentumObserver, period by period, where nothing is touched; noise included."""
    envs = tangere.gym.make_vec(REACH, num_envs=2, periods=1, sensors=NOISY, spread=0.0)
    observation, _ = envs.reset(seed=9)
    sensors = SensorModel(noise_q=1e-5, noise_qd=2e-3, noise_tau=0.5, seed=9, robot=1)
    plant = RigidPlant(
        envs.robot, envs.period, friction=envs.friction, method="semi-implicit", sensors=sensors, force_sensor=False
    )
    observer = MomentumObserver(envs.robot, friction=envs.friction)
    observer.reset(state := plant.reset(envs.posture))
    for k in range(200):
        seen = envs.split(observation)
        assert np.abs(seen["q"][1] - state.q).max() < 1e-12
        tau = envs.robot.gravity_torque(envs.posture) + 5.0 * np.sin(0.05 * k + np.arange(6.0))
        observation, *_ = envs.step(np.tile(tau, (2, 1)))
        plant.write(Command(tau))
        state = plant.read()
        residual = observer.update(state)
    assert np.abs(envs.split(observation)["residual"][1] - residual).max() < 1e-9
    assert np.abs(envs.split(observation)["tau"][1] - state.tau).max() < 1e-9
    assert np.abs(envs.split(observation)["residual"]).max() > 1e-3


def test_what_is_pressed_is_felt() -> None:
    """The wrench says the force; the residual says it in the joints, J^T F, with exact model and friction."""
    envs = tangere.gym.make_vec(PRESS, num_envs=4, stiffness=np.array([5e3, 1e4, 2e4, 5e4]), seconds=4.0)
    observation, _ = envs.reset(seed=0)
    for _ in range(700):
        observation, *_ = envs.step(pressing(envs, observation, 30.0))
    seen, (force, place, _) = envs.split(observation), envs.tip
    assert np.array_equal(seen["wrench"][:, :3], force)
    assert force[:, 2] == pytest.approx(30.0, abs=0.5)
    felt = np.einsum("nij,ni->nj", envs.robot.jacobian(seen["q"]), seen["wrench"])
    assert np.abs(felt - seen["residual"]).max() < 0.2
    assert place == pytest.approx(envs.robot.pose(seen["q"])[:, :3, 3], abs=1e-12)
    depth = -envs._judged()[1]["gap"]
    assert force[:, 2] == pytest.approx(depth * [5e3, 1e4, 2e4, 5e4], rel=0.02)
    plain = tangere.gym.make_vec(PRESS, num_envs=1, wrench=False)
    assert "wrench" not in plain.parts
    assert plain.reset(seed=0)[0].shape == (1, 25)


@pytest.mark.parametrize("make", [lambda: tangere.gym.make_vec(PRESS, 2), lambda: gymnasium.make(PRESS).unwrapped])
def test_a_seed_that_nobody_gave_is_told(make: Any) -> None:
    first, again = make(), make()
    (seen, _), (other, _) = first.reset(), again.reset()
    assert not np.array_equal(seen, other)
    assert np.array_equal(again.reset(seed=first.np_random_seed)[0], seen)
    assert not np.array_equal(again.reset()[0], seen)  # the next episode of the same seed
    assert again.np_random_seed == first.np_random_seed


@pytest.mark.parametrize("damping", [4e3, 6e3])
def test_what_is_refused_is_what_would_hammer(damping: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond what is accepted a tip that is let down on the surface hammers; within it, it comes to rest."""
    monkeypatch.setattr(tasks, "STEADY", 10.0)
    envs = tangere.gym.make_vec(PRESS, 1, robot="ur3e", stiffness=2e4, damping=damping, gap=0.001, spread=0.0)
    envs.reset(seed=0)
    arm, forces = envs.robot, []
    for _ in range(300):
        q, qd = envs.state[0, :6], envs.state[0, 6:12]
        J = arm.jacobian(q)
        down = J.T @ ([0.0, 0.0, -10.0, 0.0, 0.0, 0.0] - np.array([600.0] * 3 + [10.0] * 3) * (J @ qd))
        forces.append(envs.step((arm.bias_torque(q, qd) + envs.friction.torque(qd) + down)[None])[4]["force"][0])
    assert (np.std(forces[-100:]) < 0.5) == (damping < 5e3)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_autoreset_modes(mode: str) -> None:
    envs = tangere.gym.make_vec(REACH, num_envs=3, autoreset_mode=mode, seconds=0.02)  # five steps
    assert envs.metadata["autoreset_mode"].value == mode
    observation, _ = envs.reset(seed=0)
    first = observation.copy()
    hold = np.tile(envs.robot.gravity_torque(envs.posture), (3, 1))
    for _ in range(5):
        observation, _, terminated, truncated, info = envs.step(hold)
    assert truncated.all()
    assert not terminated.any()
    if mode == "NextStep":
        ended = observation
        observation, reward, terminated, truncated, _ = envs.step(1e9 * hold)  # the action is not used
        assert not np.any(observation[:, 30:] == ended[:, 30:]), "another episode has another goal"
        assert not (terminated | truncated).any()
        assert not reward.any()
    elif mode == "SameStep":
        assert info["_final_obs"].all()
        assert not np.any(np.stack(info["final_obs"])[:, :6] == observation[:, :6])
        assert np.all(info["final_info"]["distance"] != info["distance"])
    else:
        with pytest.raises(InvalidValue, match="environment 0 is over"):
            envs.step(hold)
        mask = np.array([True, True, False])
        again, _ = envs.reset(options={"reset_mask": mask})
        assert not np.any(again[:2, :6] == observation[:2, :6])
        assert np.array_equal(again[2], observation[2])
    assert not np.any(observation[:, :6] == first[:, :6])


def test_a_crash_ends_an_episode() -> None:
    envs = tangere.gym.make_vec(PRESS, num_envs=2, gap=0.005)
    observation, _ = envs.reset(seed=0)
    for _ in range(200):
        pull = pressing(envs, observation, 10.0)
        pull[1] = pressing(envs, observation, 2000.0)[1]
        observation, reward, terminated, *_ = envs.step(pull)
        if terminated.any():
            break
    assert terminated.tolist() == [False, True]
    assert reward[1] < -10.0 < reward[0]
    assert np.isfinite(observation).all()


def test_parameters_per_environment_and_drawn() -> None:
    k = np.array([1e4, 2e4, 4e4])
    envs = tangere.gym.make_vec(PRESS, num_envs=3, stiffness=k, payload=np.array([0.0, 1.0, 2.0]), spread=0.0)
    envs.reset(seed=0)
    assert np.array_equal(envs._steps.surfaces[:, 4], k)
    state = envs.state
    envs.step(np.tile(envs.robot.gravity_torque(envs.posture), (3, 1)))
    fell = (envs.state - state)[:, 6:12]
    assert np.abs(fell[0]).max() < 1e-12  # held by its own weight
    arms = [envs.robot if not m else envs.robot.with_payload(m) for m in (0.0, 1.0, 2.0)]
    weights = [arm.gravity_torque(envs.posture) for arm in arms]
    assert (weights[2] - weights[0]) @ fell[2] < (weights[1] - weights[0]) @ fell[1] < 0.0
    envs.reset(seed=0, options={"stiffness": (5e3, 6e3)})
    assert np.all((envs._steps.surfaces[:, 4] > 5e3) & (envs._steps.surfaces[:, 4] < 6e3))
    arm = slice(0, -8)  # its numbers stand before those of the surface
    envs.reset(seed=0, options={"payload": 1.0})
    assert np.array_equal(envs._steps._robots[0, arm], envs._steps._robots[2, arm])
    envs.reset(seed=0, options={"payload": (0.0, 3.0)})
    first = envs._steps._robots[:, arm].copy()
    envs.reset()
    assert np.all(np.any(first != envs._steps._robots[:, arm], axis=1))  # every episode has another
    kept = envs.state
    envs.step(np.zeros((3, 6)))
    envs.restore(kept)
    assert np.array_equal(envs.state, kept)
    envs.restore(kept[1])
    assert np.array_equal(envs.state, kept[[1, 1, 1]])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: tangere.gym.make_vec("Tangere/Pres-v0"), "did you mean 'Tangere/Press-v0'"),
        (lambda: tangere.gym.make_vec(PRESS, num_envs=0), "num_envs: a whole number >= 1, got 0"),
        (lambda: tangere.gym.make_vec(PRESS, num_envs=10**12), r"GB of memory.* at most \d+ of 1000000000000 fit"),
        (lambda: gymnasium.make(PRESS, autoreset_mode="SameStep"), "autoreset_mode: is for many"),
        (lambda: gymnasium.make(PRESS, num_envs=3), "num_envs: is for many"),
        (lambda: tangere.gym.make_vec(PRESS, stiffness="soft"), "stiffness: .* got 'soft'"),
        (lambda: tangere.gym.make_vec(PRESS, device="tpu"), "device"),
        (lambda: tangere.gym.make_vec(PRESS, stifness=1e4), "did you mean 'stiffness'"),
        (lambda: tangere.gym.make_vec(PRESS, stiffness=np.nan), "stiffness: finite, 1 to 200000 N/m, got nan"),
        (lambda: tangere.gym.make_vec(PRESS, 3, payload=np.array([1.0, np.nan, 2.0])), "nan for environment 1"),
        (lambda: tangere.gym.make_vec(PRESS, 3, payload=np.ones(2)), "one for each of 3 environments"),
        (lambda: tangere.gym.make_vec(PRESS, stiffness=(2e4, 1e4)), "stiffness"),
        (lambda: tangere.gym.make_vec(PRESS, autoreset_mode="Never"), "known: NextStep, SameStep, Disabled"),
        (lambda: tangere.gym.make_vec(PRESS, robot="scara"), "is no UR"),
        (lambda: tangere.gym.make_vec(PRESS).step(np.zeros((1, 6))), "reset"),
        (lambda: played(1, num_envs=2)[1].step(np.zeros(6)), r"actions: torques of shape \(2, 6\)"),
        (lambda: played(1, num_envs=2)[1].step(np.full((2, 6), np.nan)), "must be finite"),
        (lambda: played(1, num_envs=2)[1].step("hard"), "actions: expected real numbers"),
        (lambda: tangere.gym.make_vec(PRESS, period=0.0), "period: above 0 to 0.1 s, got 0"),
        (lambda: tangere.gym.make_vec(PRESS, period=-1e-3), "period: above 0"),
        (lambda: tangere.gym.make_vec(PRESS, seconds=np.nan), "seconds: a finite number"),
        (lambda: tangere.gym.make_vec(PRESS, spread=None), "spread: a finite number"),
        (lambda: tangere.gym.make_vec(PRESS, posture=np.degrees(POSTURE)), "within the limits of ur10e"),
        (lambda: tangere.gym.make_vec(PRESS, sensors="good"), "sensors: a SensorModel or None"),
        (lambda: tangere.gym.make_vec(PRESS).reset(options=[1]), "options: a dictionary or None"),
        (lambda: tangere.gym.make_vec(PRESS).restore(np.full(37, np.nan)), "state: every entry must be finite"),
        (lambda: tangere.gym.make_vec(PRESS).restore(np.zeros((2, 37))), "state: one for all or 1 rows"),
        (lambda: tangere.gym.make_vec(PRESS).restore(np.zeros(37), [1.0, 2.0]), "goal: expected shape"),
        (lambda: tangere.gym.make_vec(PRESS, robot="ur3e", damping=6e3), r"damping: the tip of ur3e weighs 3\.1 kg"),
        (lambda: tangere.gym.make_vec(PRESS, robot="ur3e").reset(options={"damping": 6e3}), "at most 4.* got 6e.03"),
        (lambda: tangere.gym.make_vec(PRESS).reset(seed=[1, 2]), "seed: one whole number"),
        (lambda: tangere.gym.make_vec(PRESS, wrench="no"), "wrench: True or False, got 'no'"),
        (lambda: tangere.gym.make_vec(PRESS).reset(options={"mass": 1.0}), "unknown option 'mass'"),
    ],
)
def test_mistakes_have_sentences(wrong: Any, words: str) -> None:
    with pytest.raises((InvalidValue, UnknownName), match=words):
        wrong()


def test_without_gymnasium_a_sentence_says_how_to_get_it() -> None:
    code = "import sys; sys.modules['gymnasium'] = None\ntry: import tangere.gym\nexcept ImportError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'tangere[gym]'" in done.stdout


def test_sizes_are_those_of_the_compiled_form() -> None:
    if not rollouts.COMPILED:
        pytest.skip("the compiled rollouts are not built")
    from tangere import _rollouts

    assert (_rollouts.ENV_STATE, _rollouts.ENV_OUT) == (kernel.STATE, kernel.OUT)


def test_arrays_that_do_not_go_together_are_refused() -> None:
    """Tensors on a GPU are for one device and one mode; a word that nobody knows is said."""
    for wrong, words in (
        ({"arrays": "jax"}, "unknown arrays 'jax'; known: numpy, torch"),
        ({"dtype": "float16"}, "unknown dtype 'float16'; known: float64, float32"),
        ({"arrays": "torch"}, "'torch' goes with device 'cuda' and autoreset_mode 'NextStep', got 'cpu'"),
        ({"arrays": "torch", "device": "cuda", "autoreset_mode": "Disabled"}, "got 'cuda' and 'Disabled'"),
        ({"dtype": "float32"}, "arrays of numpy compute in float64"),
    ):
        with pytest.raises((InvalidValue, UnknownName), match=words):
            tangere.gym.make_vec("Tangere/Press-v0", 2, **wrong)
