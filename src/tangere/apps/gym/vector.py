"""The vector environment: UR arms under torque, each with its own surface, stepped together by one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from tangere.apps.gym.draws import Drawn, Parameter, refuse_unknown, uniforms
from tangere.apps.gym.tensors import Tensors
from tangere.codegen.polynomials import exponential_minus_one
from tangere.dynamics.friction import JointFriction
from tangere.errors import InvalidValue, unknown
from tangere.identification import prior_drive
from tangere.kernels import environments as kernel
from tangere.kernels import ur
from tangere.kernels.closed_loop import SURFACE
from tangere.kernels.device import DEVICES
from tangere.kernels.environments_cuda import DeviceSteps
from tangere.kernels.rollouts import refuse_more
from tangere.kinematics.checks import checked
from tangere.kinematics.vectors import Scalar, Vector
from tangere.observe.momentum import GAIN
from tangere.plants.sensors import SensorModel, sensor_model
from tangere.plants.simulated import refuse_stiff_friction
from tangere.plants.twins import twin
from tangere.robots import Robot, robot
from tangere.settings import Setting
from tangere.types import Array

Rows = NDArray[np.intp]  # numbers of environments

N = ur.DOF
TIP = 0.1  # [m] from the flange to the tip of the tool that an arm by name carries
PERIOD = 1e-3  # [s] of the simulation
PERIODS = 4  # of the simulation in a step of the environment: a torque is held for 4 ms
SECONDS = 2.0  # of an episode
FORCE_MAX = 250.0  # [N] on the tip: beyond it an episode ends, as a UR's protective stop would end it
CRASH = 10.0  # what an episode that ends so loses, for each second that was left
SLIP_MASS = 4.0  # [kg] an arm's tip weighs at least half of it: so friction on a surface stays stable
EACH = 4096  # [bytes] of memory that an environment takes
POSTURE = tuple(np.radians(ur.READY).tolist())  # [rad] tool down, elbow bent
SPREAD = 0.05  # [rad] joints start that far from the posture at most
TIMES = (
    Setting("period", "s", PERIOD, "of the simulation", low=0.0, above=True, high=0.1),
    Setting("seconds", "s", SECONDS, "of an episode", low=0.0, above=True, high=1e6),
    Setting("spread", "rad", SPREAD, "of the joints at the start", low=0.0, high=np.pi),
)
ARRAYS, DTYPES = ("numpy", "torch"), ("float64", "float32")
_MODES = {mode.value.lower(): mode for mode in AutoresetMode}

COMMON = (
    Parameter("payload", "kg", 0.0, 0.0, 50.0, "mass at the flange that nobody was told of"),
    Parameter("friction_scale", "1", 1.0, 0.0, 5.0, "times the joint friction that the observer believes in"),
)


class TouchVectorEnv(VectorEnv[Any, Any, Any]):
    """`num_envs` arms with torque actions and touch observations; a task says what is wanted.

    Action (6,) [Nm]: the full joint torque, gravity included, held for `periods` periods; cut at the arm's limits.
    Observation: q, qd (6 each), tau (6) the torque that was held, residual (6) [Nm] of the momentum observer, wrench
    (6) [N, Nm] on the tcp in base axes where the arm has a sensor, and the task's goal; `parts` has their places.

    robot: a UR's name (with a tool of 0.1 m, rotors and friction of an arm of its type), or a Robot. parameters of an
    arm or surface: a number, an array with one for each environment, or a range (least, most) that every episode draws
    from. Draws and noise follow from seed, environment and episode alone: environment 3 of 4 is environment 3 of 4096.
    device: "cpu", or "cuda" for a thread of a GPU for each: the same bits. arrays: "numpy", or "torch" for torques,
    observations, rewards and the rest as torch's tensors that stay on the GPU (device "cuda", mode NextStep): much
    faster, with dtype "float64", which has the CPU's bits, or "float32"; nobody looks at torques there, and one that is
    not finite ends its episode.
    autoreset_mode: "NextStep", "SameStep" or "Disabled", as gymnasium defines them; with Disabled
    reset(options={"reset_mask": mask}) starts some anew.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = ()
    GOAL: ClassVar[int] = 0  # numbers of the goal
    DRAWS: ClassVar[int] = 0  # numbers that `_task` draws
    TOLD: ClassVar[tuple[str, ...]] = ()  # what `judge` gives beside the reward

    def __init__(
        self,
        num_envs: int = 1,
        device: str = "cpu",
        *,
        robot: str | Robot = "ur10e",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        period: float = PERIOD,
        periods: int = PERIODS,
        seconds: float = SECONDS,
        posture: Sequence[float] | Array = POSTURE,
        spread: float = SPREAD,
        sensors: SensorModel | None = None,
        wrench: bool = True,
        arrays: str = "numpy",
        dtype: str = "float64",
        render_mode: None = None,
        **parameters: Any,
    ) -> None:
        for name, whole in (("num_envs", num_envs), ("periods", periods)):
            _whole(whole, name)
        refuse_more("num_envs: environments", num_envs, EACH)
        if device not in DEVICES:
            raise unknown("device", str(device), DEVICES)
        if not isinstance(wrench, bool | np.bool_):
            raise InvalidValue(f"wrench: True or False, got {wrench!r}")
        if render_mode is not None:
            raise InvalidValue(f"render_mode: None is the only one, got {render_mode!r}")
        known = {p.name: p for p in (*COMMON, *self.PARAMETERS)}
        refuse_unknown(parameters, known, "parameter")
        self._drawn = {n: p.checked(parameters.get(n, p.default), num_envs) for n, p in known.items()}
        self.num_envs, self.device, self.render_mode = num_envs, device, None
        self.mode = _mode(autoreset_mode)
        _refuse_arrays(arrays, dtype, device, self.mode)
        period, seconds, spread = (
            one.read(np.nan if given is None else given)
            for one, given in zip(TIMES, (period, seconds, spread), strict=True)
        )
        self.metadata = {"autoreset_mode": self.mode, "render_modes": []}
        self.period, self.periods, self.wrench = period, periods, bool(wrench)
        self.horizon = max(1, round(seconds / (period * periods)))
        self.robot, self.friction = _arm(robot)
        self.posture, self.spread = checked(posture, (N,), "posture").copy(), spread
        beyond = np.ravel((self.posture < self.robot.q_min) | (self.posture > self.robot.q_max))
        if self.posture.ndim > 1 or beyond.any():
            raise InvalidValue(f"posture: {N} angles [rad] within the limits of {self.robot.name}, got {posture!r}")
        refuse_stiff_friction(self.friction, self.robot.mass_matrix(self.posture), period)
        sensors = sensor_model(sensors)
        if sensors.delay or sensors.loss or np.any([np.any(x) for x in (sensors.step_q, sensors.noise_wrench)]):
            raise InvalidValue("sensors: environments have noise of positions, speeds and torques only")
        self._steps = self._kernel(sensors, DeviceSteps if (device, arrays) == ("cuda", "numpy") else kernel.Steps)
        self._refuse(self._drawn)
        self.parts = _places(self.wrench, self.GOAL)
        width = max(part.stop for part in self.parts.values())
        number = np.float32 if dtype == "float32" else np.float64
        most: Any = self.robot.tau_max.astype(number)
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (width,), number)
        self.single_action_space = gymnasium.spaces.Box(-most, most, dtype=number)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._rows = np.arange(num_envs)
        self._episodes, self._elapsed = np.zeros(num_envs, np.int64), np.zeros(num_envs, np.int64)
        self._over, self._placed = np.zeros(num_envs, bool), np.zeros(num_envs, bool)  # placed: its arm is known
        self.goal = np.zeros((num_envs, self.GOAL))
        self._begun = False
        limits = np.append(self.robot.qd_max, [FORCE_MAX, CRASH])
        self._tensors = Tensors(self, limits, dtype) if arrays == "torch" else None

    def _kernel(self, sensors: SensorModel, kind: type[kernel.Steps]) -> kernel.Steps:
        believed = ur.parameters_of(self.robot.model, rotor_inertia=self.robot.rotor_inertia)
        law, zero = self.friction, np.zeros(N)
        terms = [np.full(N, 1.0 / law.width), law.coulomb, law.viscous, zero, zero, zero, law.coulomb]
        belief = np.concatenate([believed, zero, zero, *terms, [0.0, 0.0, 1.0]])
        sigma = np.array([np.broadcast_to(x, (N,)) for x in (sensors.noise_qd, sensors.noise_tau, sensors.noise_q)])
        weight = 0.0 - exponential_minus_one(np.full(N, -GAIN * self.period))
        # moments of mass are linear in a mass at the flange
        heavy = twin(self.robot, payload=1.0), twin(self.robot, payload=2.0)
        one, two = (ur.parameters_of(arm.model, rotor_inertia=arm.rotor_inertia) for arm in heavy)
        self._own, self._one, self._slope = believed, one, two - one
        plants = self._plants(np.zeros(self.num_envs), np.ones(self.num_envs))
        return kind(
            self.period, belief, plants, np.zeros((self.num_envs, SURFACE)), self.robot.tau_max, sigma, weight
        )

    def _plants(self, payload: Array, scale: Array) -> Array:
        """Parameters of the true arms (m, PLANT); viscous friction is implicit, as if the rotors were heavier."""
        loaded = self._one + (payload[:, None] - 1.0) * self._slope
        P = np.where(payload[:, None] > 0.0, loaded, self._own)
        law, factor = self.friction, scale[:, None]
        P[:, ur.ROTOR : ur.ROTOR + N] += self.period * factor * law.viscous
        width = np.full_like(factor, 1.0 / law.width)
        return np.concatenate([P, factor * law.coulomb, factor * law.viscous, width], axis=1)

    # ------------------------------------------------------------------------------------------------ what a task says

    def _task(self, rows: Rows, values: dict[str, Array], tip: Array, uniform: Array) -> tuple[Array, Array]:
        """Surfaces (m, SURFACE) and goals (m, GOAL) of new episodes; tip (m, 3): where the tcp starts."""
        raise NotImplementedError

    def _refuse(self, drawn: dict[str, Drawn]) -> None:
        """Raise for parameters that cannot be simulated together."""

    @staticmethod
    def judge(sample: Vector, goal: Vector, surface: Vector) -> list[Scalar]:
        """Reward of the newest sample (kernels.environments.Steps.out), then the numbers of TOLD; any number type."""
        raise NotImplementedError

    # -------------------------------------------------------------------------------------------------- gymnasium's API

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Start anew, all or those of options["reset_mask"]; other options set parameters from now on."""
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
            raise InvalidValue(f"seed: one whole number for all environments, each has its own draws, got {seed!r}")
        super().reset(seed=None if seed is None else int(seed))
        if not isinstance(options, dict | None):
            raise InvalidValue(f"options: a dictionary or None, got {options!r}")
        given = dict(options or {})
        mask = given.pop("reset_mask", None)
        if mask is not None:
            self._refuse_tensors("reset_mask")
        refuse_unknown(given, self._drawn, "option")
        told = {n: self._drawn[n].of.checked(value, self.num_envs) for n, value in given.items()}
        self._refuse(self._drawn | told)
        self._drawn |= told
        self._placed &= not told
        rows = self._rows if mask is None else _masked(mask, self.num_envs)
        if seed is not None or not self._begun:
            # where none is given it is gymnasium's own: reset(seed=envs.np_random_seed) gives the same again
            self._steps.seed, self._steps.sample = (self.np_random_seed or 0) % 2**64, 0
            self._episodes[:] = 0
            if not self._begun:
                rows = self._rows
        self._begun = True
        if self._tensors is not None:
            return self._tensors.reset()
        self._begin(rows)
        return self._observation(), self._judged()[1]

    def step(self, actions: Any) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Any]:
        """One step of all; environments that were over before it are reset instead (NextStep)."""
        if self._tensors is not None and self._begun:
            return self._tensors.step(actions)
        torque = self._torques(actions)
        anew = self._rows[self._over] if self.mode is AutoresetMode.NEXT_STEP else self._rows[:0]
        self._steps.advance(torque, self.periods)
        self._elapsed += 1
        reward, info = self._judged()
        lost = self._lost()
        left = (self.horizon - self._elapsed) * self.period * self.periods
        reward = np.where(lost, -CRASH * np.maximum(left, 0.0) - 1.0, reward)
        terminated, truncated = lost, ~lost & (self._elapsed >= self.horizon)
        if len(anew):
            self._begin(anew)
            reward[anew], terminated[anew], truncated[anew] = 0.0, False, False
            fresh = self._judged()[1]
            for name, value in info.items():
                value[anew] = fresh[name][anew]
        self._over = terminated | truncated
        observation = self._observation()
        if self.mode is AutoresetMode.SAME_STEP and self._over.any():
            over = self._rows[self._over]
            final = np.full(self.num_envs, None, dtype=object)
            for i in over:
                final[i] = observation[i].copy()
            before = {name: value.copy() for name, value in info.items()}
            self._begin(over)
            observation, info = self._observation(), self._judged()[1]
            mask = np.zeros(self.num_envs, bool)
            mask[over] = True
            info |= {"final_obs": final, "_final_obs": mask, "final_info": before, "_final_info": mask.copy()}
        return observation, reward, terminated, truncated, info

    def _torques(self, actions: Any) -> Array:
        if not self._begun:
            raise InvalidValue("step: reset() comes first")
        torque = np.ascontiguousarray(checked(actions, (N,), "actions"))
        if torque.shape != (self.num_envs, N):
            raise InvalidValue(f"actions: torques of shape ({self.num_envs}, {N}) [Nm], got {torque.shape}")
        if self.mode is AutoresetMode.DISABLED and self._over.any():
            i = int(np.argmax(self._over))
            raise InvalidValue(f"step: environment {i} is over; reset(options={{'reset_mask': mask}}) starts it anew")
        return torque

    def close_extras(self, **kwargs: Any) -> None:
        """Nothing to release."""

    # ------------------------------------------------------------------------------------------------------- episodes

    def _begin(self, rows: Rows) -> None:
        """New episodes for these environments."""
        q, self.goal[rows] = self.anew(rows)
        self._steps.begin(rows, q, np.zeros_like(q))
        self._episodes[rows] += 1
        self._elapsed[rows], self._over[rows] = 0, False

    def anew(self, rows: Rows) -> tuple[Array, Array]:
        """Draw the next episodes of these environments: their arms and surfaces change; q at the start, and goals."""
        names = list(self._drawn)
        drawn = uniforms(self._steps.seed, rows, self._episodes[rows], len(names) + N + self.DRAWS)
        values = {name: self._drawn[name].of_rows(rows, drawn[:, k]) for k, name in enumerate(names)}
        q = self.posture + self.spread * (2.0 * drawn[:, len(names) : len(names) + N] - 1.0)
        tip = self.robot.pose(q)[:, :3, 3]
        surfaces, goal = self._task(rows, values, tip, drawn[:, len(names) + N :])
        plants = None
        if self.arms_drawn or not self._placed[rows].all():
            plants = self._plants(values["payload"], values["friction_scale"])
        self._steps.change(rows, surfaces, plants)
        self._placed[rows] = True
        return q, goal

    @property
    def arms_drawn(self) -> bool:
        """Whether every episode has an arm of its own, not a surface alone."""
        return any(self._drawn[p.name].ranged for p in COMMON)

    def _lost(self) -> NDArray[np.bool_]:
        """Episodes that ended badly: too much force, too fast, or no numbers any more."""
        out, state = self._steps.out, self._steps.state
        fast = np.any(np.abs(state[:, N : 2 * N]) > self.robot.qd_max, axis=1)
        lost: NDArray[np.bool_] = fast | (out[:, 4 * N + 9] > FORCE_MAX) | ~np.all(np.isfinite(state), axis=1)
        return lost

    def _observation(self) -> NDArray[np.float64]:
        out = self._steps.out
        sensed = [out[:, 4 * N : 4 * N + 3], np.zeros((self.num_envs, 3))] if self.wrench else []
        seen: Array = np.nan_to_num(np.concatenate([out[:, : 4 * N], *sensed, self.goal], axis=1))
        return seen

    def _judged(self) -> tuple[Array, dict[str, Any]]:
        reward, *told = self.judge(list(self._steps.out.T), list(self.goal.T), list(self._steps.surfaces.T))
        info: dict[str, Any] = {name: np.array(value) for name, value in zip(self.TOLD, told, strict=True)}
        return np.nan_to_num(reward), info | {f"_{name}": np.ones(self.num_envs, bool) for name in info}

    def split(self, observation: Array) -> dict[str, Array]:
        """The parts of an observation by name: q, qd, tau, residual, wrench, goal."""
        return {name: observation[..., part] for name, part in self.parts.items()}

    def _refuse_tensors(self, what: str) -> None:
        if self._tensors is not None:
            raise InvalidValue(f"{what}: environments with arrays='torch' do not have it")

    @property
    def state(self) -> Array:
        """All that the simulation remembers (num_envs, 37): q, qd, torque, residual, the observer's memory."""
        return self._steps.state.copy() if self._tensors is None else self._tensors.state()

    @property
    def tip(self) -> tuple[Array, Array, Array]:
        """The truth about the tcps, (num_envs, 3) each, base axes: force on the arm [N], place [m], speed [m/s]."""
        self._refuse_tensors("tip")
        out = self._steps.out
        return tuple(out[:, 4 * N + 3 * k : 4 * N + 3 * k + 3].copy() for k in range(3))  # type: ignore[return-value]

    def restore(self, state: Array, goal: Array | None = None) -> None:
        """Go on from a state that was kept, (37,) for all environments or one row each; goal likewise."""
        self._refuse_tensors("restore")
        rows = checked(state, (kernel.STATE,), "state")
        goals = self.goal if goal is None else checked(goal, (self.GOAL,), "goal")
        for name, array in (("state", rows), ("goal", goals)):
            if array.shape[:-1] not in ((), (self.num_envs,)):
                raise InvalidValue(f"{name}: one for all or {self.num_envs} rows, got shape {array.shape}")
        self._steps.state[:], self.goal[:] = rows, goals
        self._elapsed[:], self._over[:] = 0, False


def _arm(given: str | Robot) -> tuple[Robot, JointFriction]:
    bare = given if isinstance(given, Robot) else robot(given, tool=(0.0, 0.0, TIP))
    if not ur.is_ur(bare.model):
        raise InvalidValue(f"robot: {bare.name} is no UR; environments are for arms with UR kernels")
    drive = prior_drive(bare)
    arm = bare if np.any(bare.rotor_inertia) else Robot(bare.model, drive.rotor_inertia)
    return arm, JointFriction(drive.coulomb, drive.viscous)


def _places(wrench: bool, goal: int) -> dict[str, slice]:
    sizes = {"q": N, "qd": N, "tau": N, "residual": N} | ({"wrench": 6} if wrench else {}) | {"goal": goal}
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}


def _mode(given: str | AutoresetMode) -> AutoresetMode:
    if isinstance(given, AutoresetMode):
        return given
    mode = _MODES.get(str(given).lower().replace("_", ""))
    if mode is None:
        raise unknown("autoreset_mode", str(given), [m.value for m in AutoresetMode])
    return mode


def _refuse_arrays(arrays: str, dtype: str, device: str, mode: AutoresetMode) -> None:
    if arrays not in ARRAYS:
        raise unknown("arrays", str(arrays), ARRAYS)
    if dtype not in DTYPES:
        raise unknown("dtype", str(dtype), DTYPES)
    if arrays == "torch" and (device != "cuda" or mode is not AutoresetMode.NEXT_STEP):
        raise InvalidValue(
            f"arrays: 'torch' goes with device 'cuda' and autoreset_mode 'NextStep', got {device!r} and {mode.value!r}"
        )
    if arrays == "numpy" and dtype != "float64":
        raise InvalidValue("dtype: environments with arrays of numpy compute in float64; 'float32' goes with 'torch'")


def _whole(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidValue(f"{name}: a whole number >= 1, got {value!r}")


def _masked(mask: Any, count: int) -> Rows:
    array = np.asarray(mask)
    if array.shape != (count,) or array.dtype != bool:
        raise InvalidValue(f"reset_mask: {count} truth values, got {array.dtype} of shape {array.shape}")
    return np.flatnonzero(array)
