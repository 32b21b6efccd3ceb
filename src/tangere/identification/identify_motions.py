"""From logs to a model: the drives, and the links or the payload, of one arm."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue
from tangere.identification.around_fit import (
    chosen_link_sigma,
    coulomb_widths,
    excitation,
    friction_states,
    payload_covariance,
    torque_scales,
)
from tangere.identification.findings import Finding, gravity_findings
from tangere.identification.free_run import late_friction, refined
from tangere.identification.model import Excitation, IdentifiedModel
from tangere.identification.prior import LINK_SIGMA, PAYLOAD_ARM, drive_information, link_prior, payload_prior
from tangere.identification.recorder import moving_rms, smooth_log, smoothing, torque_delay
from tangere.identification.ripples import ripples
from tangere.identification.samples import LEAST_WINDOWS, TERMS, Motion, Windows, window_torques, windows
from tangere.identification.solve import Problem, Solution, errors, solved, spread_of
from tangere.model.loading import load, names
from tangere.model.model import Link, Payload
from tangere.observe.drive_model import RIPPLE_ORDERS, WIDTH, DriveModel
from tangere.observe.inertial import SIZE, link_of, parameters_of_link
from tangere.robots import Robot
from tangere.types import Array

Inertial = Literal["links", "payload", "none"]
Mask = NDArray[np.bool_]
_POSITIVE = ("coulomb", "viscous", "rotor_inertia")
_OPTIONAL = ("quadratic", "load")
# Wald statistic per added number below which a term is dropped: 5 standard deviations. Neighbouring samples are alike
# and friction drifts with temperature, so that 3 would let in terms that the next log does not confirm.
SUPPORT = 25.0
STICTION_QUANTILE = 0.995  # of |residual| at standstill: one window in 200 beyond, without letting single shocks in


def identify(
    robot: Robot,
    motions: Sequence[Motion],
    *,
    inertial: Inertial = "links",
    gain: Array | None = None,
    held_out: Sequence[Motion] = (),
    orders: tuple[int, ...] = RIPPLE_ORDERS,
    refine_gains: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> IdentifiedModel:
    """The drives of an arm, and its links ("links"), its payload ("payload") or neither ("none"), from logs.

        tau = Y(q, qd, qdd) pi + friction(q, qd) + rotor_inertia qdd       while the joint moves

    Least squares over windows of 20 ms, each joint weighted by its own spread, contacts and stops bounded by Huber's
    weights; regularised towards the arm's data sheet where the logs say nothing; every link a body that can exist.
    Terms of friction that the logs do not support (SUPPORT) are left out; how far links may leave the data sheet is
    chosen on parts of the logs that the fit did not see (chosen_link_sigma); accelerations are such that noise does not
    shrink inertia (accelerations). Friction is smoothed as the logs were, where they were (smoothing). A payload's
    covariance counts what links and gains may be off (payload_covariance).

    robot: with the payload that is mounted, where it is known; its own rotor inertia does not matter. motions: tau in
    Nm. gain: Nm/A with which tau was made from currents, to be kept in the model; None (the log holds torques) also
    lets friction's lag behind reversals count as delay (torque_delay). held_out: logs for the figures
    before and after (the motions themselves where there are none). refine_gains: also let gravity correct the gains
    joint by joint (torque_scales): the model's gain is then another than the one given, `scale` says by how much, and
    logs must be turned into torque with the model's (touch_log does). progress: called with 0 to 1.
    """
    given = list(motions)
    if inertial not in ("links", "payload", "none"):
        raise InvalidValue(f"inertial: must be 'links', 'payload' or 'none', got {inertial!r}")
    if not motions:
        raise InvalidValue("identify: at least one log")
    cutoff = smoothing(robot, motions)
    task = _Task(robot, inertial, () if cutoff else orders, cutoff)  # ripple is faster than what such a log has left
    rows = windows(robot, list(motions), smoothing=cutoff)
    moved = _moved(rows)
    said = gravity_findings(robot, motions, gain)
    said += (smooth_log(cutoff),) if cutoff else ()
    progress(0.2)
    task, fit = _with_link_sigma(task, rows)
    progress(0.5)
    scale = _scale(fit, motions) if refine_gains else np.ones(robot.dof)
    motions = [_scaled(motion, scale) for motion in motions]
    if refine_gains:
        fit = _fit(task, dataclasses.replace(rows, tau=rows.tau * scale))
        gain = None if gain is None else gain * scale
    fit = _once_more(fit, motions, gain, lambda: progress(0.7))
    said += tuple(
        Finding("unmoved", f"joint {j + 1} hardly moves: its friction and rotor inertia cannot be told", int(j) + 1)
        for j in np.flatnonzero(~moved)
    )
    model = _model(fit, motions, gain, moved, said)
    progress(0.85)
    freely = refined(model, robot, motions)
    if freely is not None:
        model = dataclasses.replace(model, twin=freely, findings=(*said, late_friction(freely)))
    progress(0.95)
    model = dataclasses.replace(model, unseen=bool(held_out), scale=scale)
    model = judged(model, robot, list(held_out) or given)
    progress(1.0)
    return model


def judged(model: IdentifiedModel, robot: Robot, motions: Sequence[Motion]) -> IdentifiedModel:
    """The model with its figures before, after and following, on these logs; robot: as identify's.

    Torque of the logs as they were given: what the model makes of it (scale) is counted here.
    """
    before = moving_rms(Robot(robot.model), DriveModel.of(robot.drives), list(motions))
    scaled, fitted = [_scaled(motion, model.scale) for motion in motions], model.robot(robot)
    after, following = (moving_rms(fitted, model.drive, scaled, following=how) for how in (False, True))
    return dataclasses.replace(model, before=before, after=after, following=following)


@dataclasses.dataclass(frozen=True)
class _Task:
    """What is fitted, and what all fits of it have in common."""

    robot: Robot
    inertial: Inertial
    orders: tuple[int, ...]  # of the ripple
    cutoff: float  # [Hz] of the low-pass that the logs went through; 0: none
    link_sigma: float = LINK_SIGMA  # relative standard deviation of a link from the data sheet


@dataclasses.dataclass(frozen=True)
class _Fit:
    """One solution: the rows as they were given, the problem (less what is not estimated) and its answer."""

    task: _Task
    rows: Windows
    problem: Problem
    solution: Solution
    width: Array  # (n,) [rad/s] over which Coulomb friction turns round
    delay: float = 0.0  # [s] of the torque


def _fit(task: _Task, rows: Windows, width: Array | None = None, delay: float = 0.0) -> _Fit:
    solution, problem = _answer(task.robot, rows, task.inertial, task.link_sigma)
    return _Fit(task, rows, problem, solution, np.full(task.robot.dof, WIDTH) if width is None else width, delay)


def _moved(rows: Windows) -> Mask:
    """Which joints (n,) move long enough for their friction to be told; raises where none does."""
    moved: Mask = rows.moving.sum(axis=0) >= LEAST_WINDOWS
    if not np.any(moved):
        raise InvalidValue(
            f"not exciting enough: no joint moves faster than the standstill speed for {LEAST_WINDOWS * rows.period:g} "
            "s; friction needs motion of every joint in both directions"
        )
    return moved


def _with_link_sigma(task: _Task, rows: Windows) -> tuple[_Task, _Fit]:
    """The first fit; of links once more, as far from the data sheet as parts that the fit did not see allow."""
    fit = _fit(task, rows)
    if task.inertial != "links":
        return task, fit
    task = dataclasses.replace(task, link_sigma=chosen_link_sigma(fit.problem, fit.solution, len(fit.problem.bodies)))
    return task, _fit(task, rows)


def _scale(fit: _Fit, motions: Sequence[Motion]) -> Array:
    """What torque is to be multiplied by (n,), so that all joints feel one gravity."""
    load = _load(fit.task.robot, motions, fit.solution, fit.task.inertial)
    return torque_scales(fit.rows, fit.problem, fit.solution, load)


def _once_more(fit: _Fit, motions: Sequence[Motion], gain: Array | None, halfway: Callable[[], None]) -> _Fit:
    """The last fit: with the widths and the delay that the logs ask for, and the load found instead of the sheet's."""
    task = fit.task
    # a log that was smoothed tells no width, and a filter both ways has no delay: what then looks like one is
    # friction's lag, and predicts no better
    width = fit.width if task.cutoff else coulomb_widths(fit.problem.rows, fit.solution)
    loaded = _loaded(task.robot, fit.solution, task.inertial)
    rows = windows(task.robot, list(motions), loaded=loaded, width=width, smoothing=task.cutoff)
    halfway()
    # currents and positions of a sample are of one cycle: a delay must be shown apart from friction's own lag;
    # torques have been through somebody's filter, and then whatever lag predicts best is taken
    delay = 0.0 if task.cutoff else torque_delay(rows, list(motions), memory=gain is not None)
    if delay > 0.0:
        rows = dataclasses.replace(rows, tau=window_torques(list(motions), delay))
    fit = _fit(task, rows, width, delay)
    if task.inertial != "payload":
        return fit
    known = rows.tau - fit.problem.rows.tau
    wider = payload_covariance(fit.problem, fit.solution, known, link_prior(task.robot.model, 1.0)[1])
    return dataclasses.replace(fit, solution=dataclasses.replace(fit.solution, covariance=wider))


def _model(
    fit: _Fit, motions: Sequence[Motion], gain: Array | None, moved: Mask, said: tuple[Finding, ...]
) -> IdentifiedModel:
    """The value of a fit, not judged yet."""
    task, solution, robot = fit.task, fit.solution, fit.task.robot
    links, payload = _bodies(robot, solution.x, task.inertial)
    seen = excitation(robot, fit.rows, solution) if task.inertial == "links" else Excitation(np.nan, 0, 0)
    return IdentifiedModel(
        robot.name, task.inertial, _drive(fit, motions, gain, moved), links, payload, _names(robot.dof), solution.x,
        solution.covariance, _told(solution, fit.problem), seen,
        tuple((motion.name, motion.digest) for motion in motions), tuple(bool(m) for m in moved), said,
        gravity=_gravity(robot),
    )  # fmt: skip


def _loaded(robot: Robot, solution: Solution, inertial: Inertial) -> Robot:
    """The arm with the bodies of a solution."""
    links, payload = _bodies(robot, solution.x, inertial)
    return Robot(dataclasses.replace(robot.model, links=links, payload=payload))


def _load(robot: Robot, motions: Sequence[Motion], solution: Solution, inertial: Inertial) -> Array:
    """Mean |g| (n,) [Nm] over the logs, of the arm as the solution has it; every 50th sample is enough."""
    q = np.concatenate([motion.q[::50] for motion in motions])
    q = q[np.isfinite(q).all(axis=1)]
    return np.asarray(np.mean(np.abs(_loaded(robot, solution, inertial).gravity_torque(q)), axis=0))


def _scaled(motion: Motion, scale: Array) -> Motion:
    return motion if np.all(scale == 1.0) else dataclasses.replace(motion, tau=motion.tau * scale)


def _gravity(robot: Robot) -> Array | None:
    """The mounting, where it is another than the arm's file has; an arm that is no longer a name keeps its own."""
    if robot.name in names() and np.array_equal(load(robot.name).gravity, robot.model.gravity):
        return None
    return robot.model.gravity


def _answer(robot: Robot, rows: Windows, inertial: Inertial, freedom: float = LINK_SIGMA) -> tuple[Solution, Problem]:
    """Solve, drop what is not supported, solve again; for a payload, once more with the inertia of its mass."""
    n, model = robot.dof, robot.model
    links = np.concatenate([parameters_of_link(link) for link in model.links])
    fixed = np.zeros(SIZE * n)
    if inertial == "payload":
        fixed = links
        mean, information = payload_prior(model)
    else:
        mean, information = link_prior(model, freedom)
        if model.payload is not None:
            body = Link("payload", model.payload.mass, model.payload.com, model.payload.inertia)
            fixed[-SIZE:] = parameters_of_link(body)
    rows = dataclasses.replace(rows, tau=rows.tau - rows.Y @ fixed)
    f, own = drive_information(model)
    x0 = np.concatenate([mean, f.ravel()])
    prior = np.zeros((len(x0), len(x0)))
    prior[: SIZE * n, : SIZE * n] = information
    terms = f.shape[1]
    for j in range(n):
        at = slice(SIZE * n + j * terms, SIZE * n + (j + 1) * terms)
        prior[at, at] = own[j]
    free = np.ones(len(x0), dtype=bool)
    if inertial != "links":
        free[: SIZE * n] = False
    positive = [SIZE * n + j * terms + TERMS.index(name) for j in range(n) for name in _POSITIVE]
    if inertial == "payload":
        free[SIZE * (n - 1) : SIZE * (n - 1) + 4] = True
        positive.append(SIZE * (n - 1))
    problem = Problem(
        rows, x0, prior, free, np.array(positive), np.zeros(len(positive)), range(n if inertial == "links" else 0)
    )
    solution = solved(problem)
    problem = dataclasses.replace(problem, free=free & _supported(solution, n, terms))
    if inertial == "payload":
        x0 = x0.copy()
        m, h = solution.x[SIZE * (n - 1)], solution.x[SIZE * (n - 1) + 1 : SIZE * (n - 1) + 4]
        x0[SIZE * n - 6 : SIZE * n] = parameters_of_link(Link("", float(m), h / m, np.zeros((3, 3))))[4:]
        moment = np.arange(SIZE * (n - 1) + 1, SIZE * (n - 1) + 4)
        prior[moment, moment] = 1.0 / (PAYLOAD_ARM * float(m)) ** 2
        problem = dataclasses.replace(problem, x0=x0, prior=prior)
    return solved(problem), problem


def _supported(solution: Solution, n: int, terms: int) -> Mask:
    """Which numbers stay: all but the optional terms whose Wald statistic is below SUPPORT."""
    keep = np.ones(len(solution.x), dtype=bool)
    at = np.array([SIZE * n + j * terms + TERMS.index(name) for j in range(n) for name in _OPTIONAL])
    keep[at] = solution.x[at] ** 2 > SUPPORT * np.diag(solution.covariance)[at]
    return keep


def _told(solution: Solution, problem: Problem) -> tuple[bool, ...]:
    """Whether the data, not the prior, decide a number: at least half of its prior variance is gone."""
    free = np.flatnonzero(problem.free)
    before = np.zeros(len(solution.x))
    before[free] = np.diag(np.linalg.inv(problem.prior[np.ix_(free, free)]))
    after = np.diag(solution.covariance)
    return tuple(bool(a < 0.5 * b) for a, b in zip(after, before, strict=True))


def _drive(fit: _Fit, motions: Sequence[Motion], gain: Array | None, moved: Mask) -> DriveModel:
    """The drives of a solution; ripple, stiction, film and level from what it leaves."""
    robot, rows, solution = fit.task.robot, fit.problem.rows, fit.solution
    n = robot.dof
    f = solution.x[SIZE * n :].reshape(n, -1)
    term: dict[str, Any] = {name: f[:, k].copy() for k, name in enumerate(TERMS)}
    known = DriveModel.of(robot.drives)
    for name in ("coulomb", "viscous"):  # of a joint that did not move the log says nothing: what the arm's data says
        term[name][~moved] = getattr(known, name)[~moved]
    loaded = _loaded(robot, solution, fit.task.inertial)
    found = ripples(loaded, motions, rows, errors(rows, solution.x), solution.spread, fit.width, fit.task.orders)
    error = found.error
    spread = np.array([spread_of(error[:, j], rows, j)[0] for j in range(n)])
    stiction = term["coulomb"].copy()  # where the log never stands: all of it may hide
    for j in range(n):
        standing = rows.standing[:, j]
        if standing.sum() >= LEAST_WINDOWS:
            stiction[j] = np.quantile(np.abs(error[standing, j]), STICTION_QUANTILE)
    friction = term["coulomb"] + term["load"] * rows.mean_load
    film, level_sigma, level_noise = friction_states(rows, error, spread, friction)
    return DriveModel(
        gain=robot.drives.gain if gain is None else gain,
        ripple=found.plain,
        ripple_load=found.load,
        ripple_drag=found.drag,
        orders=found.orders,
        stiction=stiction,
        spread=spread,
        mean_load=rows.mean_load,
        width=fit.width,
        delay=fit.delay,
        smoothing=fit.task.cutoff,
        **term,
        film=np.where(moved, film, 0.0),
        level_sigma=np.where(moved, level_sigma, 0.0),
        level_noise=level_noise,
    )


def _bodies(robot: Robot, x: Array, inertial: Inertial) -> tuple[tuple[Link, ...], Payload | None]:
    n, model = robot.dof, robot.model
    if inertial == "links":
        bodies = x[: SIZE * n].reshape(n, SIZE)
        return tuple(link_of(pi, link.name) for pi, link in zip(bodies, model.links, strict=True)), model.payload
    if inertial == "payload":
        body = x[SIZE * (n - 1) : SIZE * n]
        return model.links, Payload(float(body[0]), body[1:4] / body[0])
    return model.links, model.payload


def _names(n: int) -> tuple[str, ...]:
    """Names of the numbers: link 1 m, ..., joint 1 coulomb, ..."""
    inertial = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
    names = [f"link {i + 1} {p}" for i in range(n) for p in inertial]
    return tuple(names + [f"joint {j + 1} {t}" for j in range(n) for t in TERMS])
