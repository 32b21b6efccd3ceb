"""Thresholds of detection: what they are, where they come from, how a model file carries them; what is expected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.kernels.laws.detection import CHANNELS, REGIMES, TOGETHER
from tangere.observe.detect.hysteresis import Hysteresis
from tangere.observe.detect.signals import GAIN
from tangere.observe.drive_model import STANDSTILL, DriveModel
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.observe.detect.noise import DryFriction, Noise
    from tangere.robots import Robot

_ROWS = (*CHANNELS, "spread")
SCHEMA = 2  # of the table [detection]; 1 had one number for the whole arm, and no speed
# Thresholds that nobody tuned, from a drive model's uncertainty (one standard deviation `spread` while moving, half
# width `stiction` at rest).
LEVEL_SIGMAS = 3.0  # a wrong friction stays wrong for a whole motion: three standard deviations of what is not known
CHANGE_SIGMAS = 2.0  # the same taken off by the mean before: what is left are its changes with speed and load
IMPACT_SIGMAS = 3.0  # as change, with the noise of a faster filter
SHOCK_MARGIN = 4.0  # times impact: a wrong stamp or velocity at 100 Hz is worth up to 45 Nm on a UR10e's shoulder
# Above what stiction can hide, which a type's data put at 1.25 of Coulomb: at rest a UR10e comes up to 1.1 of Coulomb,
# joint 3 of a UR3e up to 1.52 (two of 40 free runs that end at rest, on which this was chosen)
STICTION_MARGIN = 1.25
# Nm of threshold per Nm of spread below which nothing is believed: a model that fits its own logs to 0.05 Nm
FLOOR = 0.05
# Standard deviations at which thresholds of normal noise lie at most, learned from minutes for 0.1/h. Simulated UR10e:
# with 6, 20 Nm on a joint that turns are found later (80 % of all steps within 20 ms, 88 % with 8)
NORMAL_REACH = 8.0
# times the lower of level and change, from which nearly every push is felt: one that builds up over 0.1 to 0.2 s leaves
# a fifth to a third to the mean before, and the residual of free motion may point the other way. Eight simulated UR10e
# tuned on 100 s, pushes of 1 to 3 times that: 90 % of 139 with 1, 99 % of 124 with 1.25 (chosen on these)
FELT = 1.25
# constant thresholds stand this much above the largest residual of a quiet run: the maximum over another such run is
# rarely more than 1.3 times the first, and the rest is left to the temperature of the gears
QUIET_MARGIN = 2.0


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Per regime (rows moving, turning, standing) and joint, in Nm; and of all joints together.

    level, change, impact, shock (3, n): an event is raised where |signal| exceeds its own (Signals). arm (4, n, n), of
    change, impact, shock and level (given as 3: none of the level): an event is also raised where |arm z| exceeds 1 for
    some joint, z (n,) being the signals over `scale`, the level over its threshold: what the other joints do not
    explain of one. Noise of the velocities is felt in several joints at once (M is not diagonal), and a touch stands
    out further without it. jolt (4, n, n) [Nm2/(rad/s2)2], by channel: squares of thresholds grow by it times squared
    jumps of the joints' accelerations, for a tenth of a second (kernels.laws.detection). spread (3, n): standard
    deviation of `change`, correlation (n, n): of it between joints. speed (n,) [rad/s]: the fastest that was seen;
    where a joint is faster, all thresholds grow (Detector). gain: K [1/s] of the observer that they belong to. rate:
    false alarms per hour that they promise (nan: not tuned, nothing is promised). supported: the lowest rate that the
    data could promise. expected: false alarms per hour that left-out motion makes likely, from and to (95 %). hours
    and logs: what they were learned from. hysteresis: where it is given it alone decides, on the residual itself
    (`constant`), and the rows are no more than its own numbers.
    """

    level: Array
    change: Array
    impact: Array
    shock: Array
    spread: Array
    correlation: Array
    arm: Array
    gain: float = GAIN
    standstill: float = STANDSTILL
    rate: float = nan  # 1/h
    supported: float = inf  # 1/h
    hours: float = 0.0
    logs: tuple[tuple[str, str], ...] = ()  # name, sha256
    notes: tuple[str, ...] = field(default=())
    speed: Array | None = None  # (n,) rad/s, None: any
    sampled: float = nan  # 1/s, samples of the logs that they were learned from; nan: unknown
    hysteresis: Hysteresis | None = None
    jolt: Array = field(default_factory=lambda: np.zeros(0))  # (4, n, n); none given: never
    expected: tuple[float, float] | None = None  # 1/h
    sticks: bool = True  # whether a joint that turns may let go of stiction at once, which is then no change

    def __post_init__(self) -> None:
        n = np.shape(self.level)[-1] if np.ndim(self.level) == 2 else 0
        for name in _ROWS:
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (len(REGIMES), n) or n == 0 or not np.all(np.isfinite(array) & (array > 0.0)):
                raise InvalidValue(
                    f"{name}: a row of positive numbers [Nm] for each of {', '.join(REGIMES)}, "
                    f"got {getattr(self, name)!r}"
                )
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        R = np.array(self.correlation, dtype=np.float64)
        if R.shape != (n, n) or not np.all(np.isfinite(R)) or not np.allclose(R, R.T):
            raise InvalidValue(f"correlation: a symmetric ({n}, {n}) matrix, got {self.correlation!r}")
        if not (np.allclose(np.diag(R), 1.0) and np.linalg.eigvalsh(R)[0] > 0.0):
            raise InvalidValue(f"correlation: ones on the diagonal and positive eigenvalues, got {R.tolist()}")
        R.flags.writeable = False
        object.__setattr__(self, "correlation", R)
        for name, least in (("arm", -inf), ("jolt", 0.0)):
            given = getattr(self, name)
            array = np.array(given, dtype=np.float64)
            if name == "jolt" and array.size == 0:
                array = np.zeros((len(CHANNELS), n, n))
            if name == "arm" and array.shape == (len(TOGETHER) - 1, n, n):
                array = np.concatenate((array, np.zeros((1, n, n))))
            if array.shape != (len(TOGETHER), n, n) or not np.all(np.isfinite(array) & (array >= least)):
                of = ", ".join(TOGETHER if name == "arm" else CHANNELS)
                raise InvalidValue(f"{name}: a ({n}, {n}) matrix for each of {of}, got {given!r}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.speed is not None:
            speed = np.array(self.speed, dtype=np.float64)
            if speed.shape != (n,) or not np.all(np.isfinite(speed) & (speed > 0.0)):
                raise InvalidValue(f"speed: {n} positive numbers [rad/s], got {self.speed!r}")
            speed.flags.writeable = False
            object.__setattr__(self, "speed", speed)
        for name in ("gain", "standstill"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) > 0.0):
                raise InvalidValue(f"{name}: must be positive, got {getattr(self, name)!r}")
        if self.rate <= 0.0 or self.supported < 0.0 or not self.hours >= 0.0 or self.sampled <= 0.0:
            raise InvalidValue(
                f"rate > 0, supported >= 0, hours >= 0, sampled > 0, got {self.rate!r}, {self.supported!r}, "
                f"{self.hours!r}, {self.sampled!r}"
            )

    @property
    def dof(self) -> int:
        """Number of joints."""
        return int(self.level.shape[1])

    @property
    def tuned(self) -> bool:
        """Whether they were learned from free motion and promise a rate."""
        return isfinite(self.rate)

    def scaled(self, factor: float) -> Thresholds:
        """All thresholds times a factor (the promise then no longer holds)."""
        if not (isfinite(factor) and factor > 0.0):
            raise InvalidValue(f"factor: must be positive, got {factor!r}")
        return replace(
            self, level=self.level * factor, change=self.change * factor, impact=self.impact * factor,
            shock=self.shock * factor, arm=self.arm / factor, jolt=self.jolt * factor**2, rate=nan, supported=inf,
            hysteresis=None if (h := self.hysteresis) is None else replace(h, on=h.on * factor, off=h.off * factor),
        )  # fmt: skip

    @property
    def table(self) -> Array:
        """All of them (4 channels, 3 regimes, n)."""
        return np.stack([getattr(self, name) for name in CHANNELS])

    @property
    def scale(self) -> Array:
        """What signals are measured in where all joints count together (3 regimes, n) [Nm].

        The spread of `change`, or more where its tail is heavier than that of normal noise.
        """
        return np.maximum(self.spread, self.change / NORMAL_REACH)

    @classmethod
    def constant(
        cls,
        on: ArrayLike,
        off: ArrayLike | None = None,
        *,
        dof: int = 6,
        minimum_duration: float = 0.0,
        release_duration: float = 0.0,
    ) -> Thresholds:
        """A touch begins when |r_j| > on_j for some joint and ends when |r_j| < off_j for all of them (Hysteresis).

        on, off: [Nm], one or one per joint; off = on / 2 where not given. The residual itself is watched, from the
        first sample on, whatever gain its observer has; events are of kind unknown.
        """
        limits = Hysteresis.of(on, off, dof, minimum_duration, release_duration)
        rows = np.tile(limits.on, (len(REGIMES), 1))
        note = "a constant for each joint: no rate of false alarms is promised"
        return cls(
            rows, rows, rows, rows, rows, np.eye(dof), np.zeros((len(CHANNELS) - 1, dof, dof)), notes=(note,),
            hysteresis=limits,
        )  # fmt: skip

    @classmethod
    def of_noise(
        cls,
        robot: Robot,
        period: float,
        sensors: Noise | None = None,
        friction: DryFriction | None = None,
        **stated: Any,
    ) -> Thresholds:
        """Without any free motion, from what is declared: sensors, and how well the model is believed.

            level:                  hypot(mass_error |g + M qdd| + friction_error |law|, SIGMAS noise)
            change, impact, shock:  hypot(mass_error d|g + M qdd|, friction_error d|law|, SIGMAS noise)

        with the largest of each over the postures of `robot` (what is believed) at a UR's usual speed, d: within the
        time over which the mean before is learned, and the noise that each signal makes of the sensors' (its impulse
        response). A wrong model is slow and a touch is quick. period [s] of the samples; sensors: None for perfect
        ones; friction: the law that is believed, None for none; stated: gain [1/s], mass_error (0.05),
        friction_error (0.2), shares of what is believed; sticks: whether dry friction holds a joint that stands.
        Nothing is promised.
        """
        from tangere.observe.detect.noise import of_noise

        return of_noise(robot, period, sensors, friction, **stated)

    @classmethod
    def of_quiet(cls, residuals: ArrayLike, margin: float = QUIET_MARGIN, floor: float = 0.1) -> Thresholds:
        """Constant thresholds from residuals (N, n) [Nm] of a motion that nobody touched: max(margin max|r|, floor).

        The floor keeps a perfect simulation (1e-5 Nm) from thresholds that numerical noise crosses.
        """
        seen = np.asarray(residuals, dtype=np.float64)
        if seen.ndim != 2 or len(seen) == 0 or not np.all(np.isfinite(seen)):
            raise InvalidValue(f"residuals: a finite (N, n) array with N > 0, got shape {seen.shape}")
        return cls.constant(np.maximum(margin * np.max(np.abs(seen), axis=0), floor), dof=seen.shape[1])

    @classmethod
    def of_drive(cls, drive: DriveModel, gain: float = GAIN) -> Thresholds:
        """Without any free motion: from what the drive model does not know. Nothing is promised.

        level: LEVEL_SIGMAS spread while moving, STICTION_MARGIN stiction at rest and while turning (whichever is more).
        """
        spread = np.maximum(drive.spread, np.maximum(FLOOR * np.maximum(drive.coulomb, drive.stiction), 1e-3))
        hidden = np.maximum(STICTION_MARGIN * drive.stiction, LEVEL_SIGMAS * spread)
        moving = CHANGE_SIGMAS * spread
        level = np.stack((LEVEL_SIGMAS * spread, hidden, hidden))
        change = np.stack((moving, np.maximum(moving, hidden), np.maximum(moving, 0.5 * hidden)))
        impact = np.stack((IMPACT_SIGMAS * spread, np.maximum(IMPACT_SIGMAS * spread, hidden), hidden))
        note = "from the uncertainty of the drive model: no free motion was seen, no rate of false alarms is promised"
        n = drive.dof
        return cls(
            level, change, impact, SHOCK_MARGIN * impact, change / CHANGE_SIGMAS, np.eye(n), np.zeros((3, n, n)), gain,
            drive.standstill, notes=(note,),
        )  # fmt: skip

    def felt(self, stiction: ArrayLike) -> Array:
        """Torque (3, n) [Nm] from which on a push that lasts is felt, by regime: FELT times level or change, the lower.

        Of a joint that turns or stands stiction (n,) [Nm] first takes as much as it can hold; how much of that was
        already taken before nobody knows, up to twice as much is hidden where the load had held the other way.
        """
        hidden = np.outer((0.0, 1.0, 1.0), np.asarray(stiction, dtype=np.float64))
        return np.asarray(FELT * np.minimum(self.level, self.change) + hidden)

    def to_table(self) -> dict[str, Any]:
        """Plain numbers, lists and strings, for the table [detection] of a model file."""
        table: dict[str, Any] = {"schema": SCHEMA}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name == "logs":
                value = [{"name": name, "sha256": digest} for name, digest in value]
            elif isinstance(value, np.ndarray):
                value = value.tolist()
            elif isinstance(value, tuple):
                value = list(value)
            elif isinstance(value, Hysteresis):
                value = {**vars(value), "on": value.on.tolist(), "off": value.off.tolist()}
            if (entry.name == "sticks" and value) or (entry.name == "jolt" and not np.any(self.jolt)):
                continue  # as ever: only what is said to be otherwise is written
            if value is not None and not (isinstance(value, float) and not isfinite(value)):
                table[entry.name] = value
        return table

    @classmethod
    def from_table(cls, table: object, where: str = "detection") -> Thresholds:
        """From to_table's plain data; raises InvalidValue that names the field."""
        if not isinstance(table, dict):
            raise InvalidValue(f"{where}: must be a table, got {table!r}")
        data = dict(table)
        if data.pop("schema", None) != SCHEMA:
            raise InvalidValue(
                f"{where}: schema must be {SCHEMA}, got {table.get('schema')!r}; `tangere tune` learns it anew"
            )
        known = {entry.name for entry in fields(cls)}
        unknown = sorted(set(data) - known)
        missing = sorted({*_ROWS, "correlation", "arm"} - set(data))
        if unknown or missing:
            raise InvalidValue(
                f"{where}: " + "; ".join(f"{word} {', '.join(names)}"
                for word, names in (("does not know", unknown), ("lacks", missing)) if names)
            )  # fmt: skip
        try:
            for name in ({*_ROWS, "correlation", "arm", "jolt", "speed"} & set(data)):
                data[name] = np.array(data[name], dtype=np.float64)
            for name in {"gain", "standstill", "rate", "supported", "hours", "sampled"} & set(data):
                if isinstance(data[name], bool) or not isinstance(data[name], (int, float)):
                    raise InvalidValue(f"{name}: must be a number, got {data[name]!r}")
                data[name] = float(data[name])
            data["logs"] = tuple((str(log["name"]), str(log["sha256"])) for log in data.get("logs", ()))
            if "expected" in data:
                data["expected"] = tuple(float(number) for number in data["expected"])
            data["notes"] = tuple(str(note) for note in data.get("notes", ()))
            if "hysteresis" in data:
                data["hysteresis"] = Hysteresis(**data["hysteresis"])
            return cls(**data)
        except InvalidValue as problem:
            raise InvalidValue(f"{where}.{problem}") from problem
        except (TypeError, ValueError, KeyError) as problem:
            raise InvalidValue(f"{where}: cannot be read: {problem}") from problem


RAISED = 3.0  # times the threshold: what a tool that presses with intent may add before it counts as something else


@dataclass(frozen=True, slots=True)
class Wanted:
    """A contact that is wanted from `start` to `end` [s]: thresholds of these joints are `factor` times higher."""

    factor: Array  # (n,) 1 for joints that are watched as ever
    start: float
    end: float


def wanted(
    n: int, joints: Iterable[int] | None = None, factor: float = RAISED, start: float = -inf, end: float = inf
) -> Wanted:
    """joints: counted from 1, None for the whole arm. factor: above 1, inf to ignore them altogether."""
    if not factor >= 1.0:
        raise InvalidValue(f"factor: at least 1, got {factor!r}")
    if not start <= end:
        raise InvalidValue(f"start, end: in this order [s], got {start!r}, {end!r}")
    raised = np.ones(n)
    for joint in range(1, n + 1) if joints is None else joints:
        if not (isinstance(joint, int) and 1 <= joint <= n):
            raise InvalidValue(f"joints: from 1 to {n}, got {joint!r}")
        raised[joint - 1] = factor
    return Wanted(raised, start, end)


@dataclass(frozen=True, slots=True)
class PayloadChange:
    """A payload is taken up or put down between start and end [s]: what happens then is kind "payload"."""

    start: float
    end: float

    def __post_init__(self) -> None:
        if not (self.start <= self.end and isfinite(self.end)):
            raise InvalidValue(f"start, end: in this order [s], got {self.start!r}, {self.end!r}")
