"""The command that asks how good detection and isolation are: study."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere import ends
from tangere.apps.study.plan import LogsPlan, Plan
from tangere.apps.study.statistics import quantile, rate, share, span
from tangere.errors import CannotWrite, InvalidValue, NoSolution
from tangere.logs.files import Attempts
from tangere.options import add_options, group_from, refuse_foreign, told
from tangere.report.terminal import Bar, paint, say, table, wants_colour
from tangere.settings import Setting, settings_of

if TYPE_CHECKING:
    from tangere.apps.study.injected import InjectedStudy
    from tangere.apps.study.study import Study
    from tangere.loop.folder import Claim

OUT = "out/study"
SHARED = ("seed", "alarm_rate")  # of simulation and of real logs
SIMULATED = (
    "trials", "force", "mass", "friction", "noise", "frequency", "free_minutes", "learn_minutes", "step", "plant",
)  # fmt: skip
MANY = (
    Setting("collisions", "", None, "contacts", "count", low=1, high=1e9),
    Setting("promises", "h", None, "hours", low=0.0, high=1e6, above=True),
)

EXAMPLES = """examples:
  tangere study                             a UR10e in simulation: some 2 minutes on two cores
  tangere study --quick                     a tenth of it, to see how it works
  tangere study --robot ur5e --trials 5000 --seed 7 --out out/ur5e
  tangere study --out out/long --trials 100000
  tangere study --out out/long --trials 100000 --resume
                                            goes on where it was killed; the results are the same bytes,
                                            but for the measured time cost_s in observers.csv
  tangere study --collisions 1000000 --out out/million
                                            a million contacts in closed loop; --device cuda on a GPU
  tangere study --promises 1000 --frequency 250Hz
                                            false alarms promised against counted, 1000 h each: some hours of a core
  tangere study --workers dask://10.0.0.5:8786
                                            on a dask cluster that is there, with the same versions
  tangere study --mass 1.2 --noise 2        a model further off, sensors twice as noisy
  tangere study --logs 'runs.npz:*_free*' --rate 500 --robot ur3e --folds 4 --torque 4,10,5,2,1,1
                                            pushes injected into real free logs; each quarter of the logs is judged
                                            by a model and thresholds that come from the others
  tangere study --logs free_*.csv --robot ur10e --model tuned.toml
                                            the same with a model that `tangere identify` and `tangere tune` made

Rates come with their 95 % interval (Wilson; Poisson for false alarms; order statistics for delays). The same seed
gives the same results on any number of workers. Ctrl-C keeps what is done."""


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "study",
        help="how often, how soon and how rightly touches are found: simulation, or pushes injected into real logs",
        description="Monte-Carlo of touch. In simulation: random contacts on a moving arm with noisy sensors, once\n"
        "with the exact model, once with masses and friction 10 % off. With --logs: steps of torque injected into\n"
        "real recordings of free motion. Leaves report.html and csv files in a folder.",
        epilog=EXAMPLES,
    )
    p.add_argument("--robot", metavar="NAME|FILE", help="the arm (default in simulation: ur10e)")
    p.add_argument("--out", metavar="DIR", help="folder for results (default: out/study; out/study-2 if that is taken)")
    p.add_argument("--replace", action="store_true", help="replace the earlier study in the default folder")
    p.add_argument(
        "--workers", metavar="N|dask://HOST:PORT", help="processes (default: one per core), or a dask scheduler"
    )
    p.add_argument("--resume", action="store_true", help="go on with a study that was interrupted or killed")
    p.add_argument(
        "--collisions", metavar="N", help="in place of the trials: N contacts in closed loop, by force alone"
    )
    p.add_argument(
        "--promises", metavar="HOURS",
        help="in place of the trials: false alarms promised (0.1, 1, 10, 60 per hour) against counted, HOURS for each",
    )  # fmt: skip
    p.add_argument(
        "--device", choices=["cpu", "cuda"], default="cpu",
        help="with --collisions or --promises: where they run (default: cpu)",
    )  # fmt: skip
    p.add_argument("--quick", action="store_true", help="a tenth of the trials and of the free motion")
    p.add_argument("--no-report", action="store_true", help="table and csv only")
    add_options(p, Plan, SHARED)
    add_options(p.add_argument_group("simulation"), Plan, SIMULATED)
    logs = p.add_argument_group("real logs")
    logs.add_argument("--logs", nargs="+", metavar="LOG", help="free motion: FILE.csv, FILE.mcap, FILE.npz:KEY-GLOB")
    add_options(logs, LogsPlan)
    p.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Study, write, and say what was found."""
    logs = arguments.logs is not None
    if logs:
        refuse_foreign(Plan, arguments, "is for simulation, not for --logs", SIMULATED)
    else:
        refuse_foreign(LogsPlan, arguments, "needs --logs")
    if logs and arguments.robot is None:
        raise InvalidValue("--logs needs --robot: which arm was recorded?")
    many = [one.name for one in MANY if getattr(arguments, one.name) is not None]
    if not many and arguments.device != "cpu":
        raise InvalidValue("--device cuda needs --collisions N: the other trials of a study run on the CPU")
    if logs and many:
        raise InvalidValue(f"--{many[0]} is for simulation, not for --logs")
    if len(many) > 1:
        raise InvalidValue("--collisions and --promises are two studies: give one of them")
    for one in MANY:
        setattr(arguments, one.name, one.read(getattr(arguments, one.name), f"--{one.name}"))
    bar = Bar()
    try:
        if many:
            return _rolled(arguments, bar, many[0])
        return _injected(arguments, bar) if logs else _simulated(arguments, bar)
    except KeyboardInterrupt as interrupt:
        bar.end()
        say("interrupted before there was anything to show")
        return getattr(interrupt, "code", 130)
    finally:
        bar.end()


def _simulated(arguments: argparse.Namespace, bar: Bar) -> int:
    from tangere.apps.study.files import Kept, claimed, write_study
    from tangere.apps.study.study import quick, study
    from tangere.apps.study.trials import step_copies
    from tangere.apps.study.workers import Chunks, reached
    from tangere.apps.study.world import checked_world, with_arm, world_of

    plan = group_from(Plan, arguments)
    plan = with_arm(quick(plan) if arguments.quick else plan)
    words = [word for word in arguments.words if word != "--resume"]
    reached(arguments.workers)
    checked_world(plan)
    claim = claimed(arguments.out or OUT, ["tangere", *words], plan.told, _fresh(arguments), resume=arguments.resume)
    kept, attempt = Kept(claim.path, lambda free: step_copies(world_of(plan, free.world))), Attempts()
    chunks = Chunks(claim.path, plan.told)
    if chunks.said:
        say(f"note: {chunks.said}")
    done = study(plan, workers=arguments.workers, progress=bar, keep=kept, store=chunks)
    ends.hold()
    bar.end()
    write_study(done, claim.path, attempt)
    kept.done(attempt)
    if attempt.lost:
        attempt.kept.append("chunks (the same command with --resume makes the rest of them)")
    if done.interrupted:
        say(f"go on with: tangere {' '.join(words)} {'' if arguments.out else f'--out {claim.path} '}--resume")
    elif not attempt.lost:
        chunks.clear()
    return _finish(arguments, done, claim, study_text(done, wants_colour()), attempt)


def _rolled(arguments: argparse.Namespace, bar: Bar, what: str) -> int:
    """A study by fused rollouts: collisions or promises."""
    from tangere.apps.study.collisions import refuse_early
    from tangere.apps.study.files import COLLISIONS, PROMISES, claimed
    from tangere.apps.study.study import quick
    from tangere.apps.study.workers import Chunks, reached
    from tangere.apps.study.world import with_arm

    simulate: Any
    write: Any
    write_page: Any
    text: Any
    if what == "collisions":
        from tangere.apps.study import collisions as by_force

        simulate, write, table_name = by_force.collisions, by_force.write_collisions, COLLISIONS
        write_page, text = by_force.write_collisions_page, by_force.collisions_text
    else:
        from tangere.apps.study import promises as by_rate

        simulate, write, table_name = by_rate.promises, by_rate.write_promises, PROMISES
        write_page, text = by_rate.write_promises_page, by_rate.promises_text
    plan = group_from(Plan, arguments)
    plan = with_arm(quick(plan) if arguments.quick else plan)
    words = [word for word in arguments.words if word != "--resume"]
    much = getattr(arguments, what)
    reached(arguments.workers)
    refuse_early(plan, arguments.device)
    about = plan.told | {what: much}
    claim = claimed(arguments.out or OUT, ["tangere", *words], about, _fresh(arguments), resume=arguments.resume)
    page, command = claim.path / "report.html", f"tangere {' '.join(words)}"
    chunks = Chunks(claim.path, about)
    if chunks.said:
        say(f"note: {chunks.said}")

    def shown(part: Any) -> None:
        if not arguments.no_report:
            with suppress(CannotWrite):  # it is written at the end, or said then
                write_page(part, page, command)

    done = simulate(
        plan, much, device=arguments.device, workers=arguments.workers, progress=bar, store=chunks, shown=shown
    )
    ends.hold()
    bar.end()
    attempt = Attempts()
    attempt(table_name, lambda: write(done, claim.path))
    if not arguments.no_report:
        attempt(page.name, lambda: write_page(done, page, command))
    if done.interrupted:
        say(f"go on with: {command} {'' if arguments.out else f'--out {claim.path} '}--resume")
    elif not attempt.lost:
        chunks.clear()
    if claim.said:
        print(f"note: {claim.said}", file=sys.stderr)
    print(text(done))
    print(f"\n{'' if arguments.no_report else f'report: {page}, '}csv: {claim.path / table_name}")
    attempt.settle(claim.path)
    if done.lost:
        raise NoSolution(f"not all was done: {done.lost}")
    return getattr(ends.told(), "code", 130) if done.interrupted else 0


def _fresh(arguments: argparse.Namespace) -> bool:
    """A folder that nobody named is never overwritten silently."""
    return arguments.out is None and not arguments.replace and not arguments.resume


def _injected(arguments: argparse.Namespace, bar: Bar) -> int:
    from tangere.apps.study.files import Kept, claimed, write_injected
    from tangere.apps.study.injected import inject_logs
    from tangere.apps.study.workers import reached
    from tangere.identification.model import read_model
    from tangere.robots import robot

    if arguments.resume:
        raise InvalidValue("--resume is for simulation: a study of logs is begun anew")
    arm, plan = robot(arguments.robot), group_from(LogsPlan, arguments)
    if plan.torque is not None and len(plan.torque) != arm.dof:
        raise InvalidValue(f"--torque: {arm.dof} numbers with commas between, got {arguments.torque!r}")
    shared = told(Plan, arguments)
    about = asdict(plan) | shared | {"robot": arguments.robot, "logs": arguments.logs}
    reached(arguments.workers)
    claim = claimed(arguments.out or OUT, ["tangere", *arguments.words], about, _fresh(arguments))
    kept, attempt = Kept(claim.path, lambda free: ()), Attempts()
    done = inject_logs(
        arm, arguments.logs, model=None if plan.model is None else read_model(plan.model), folds=plan.folds or 0,
        alarm_rate=shared.get("alarm_rate", settings_of(Plan)["alarm_rate"].default), torque=plan.torque,
        skip=_names(plan.skip), teach=_names(plan.teach), columns=plan.columns,
        sample_rate=plan.rate, seed=shared.get("seed", 0), workers=arguments.workers, progress=bar,
        keep=kept, every=plan.every * (10.0 if arguments.quick and arguments.every is None else 1.0),
    )  # fmt: skip
    ends.hold()
    bar.end()
    if not done.logs:
        raise ends.told() or KeyboardInterrupt
    write_injected(done, claim.path, attempt)
    kept.done(attempt)
    return _finish(arguments, done, claim, injected_text(done, wants_colour()), attempt)


def _names(given: str | None) -> list[str]:
    return [name.strip() for name in (given or "").split(",") if name.strip()]


def _finish(
    arguments: argparse.Namespace, done: Study | InjectedStudy, claim: Claim, text: str, attempt: Attempts
) -> int:
    """The page, then what is said: a reader of the text who leaves costs no file."""
    where = claim.path / "report.html"
    if not arguments.no_report:
        from tangere.apps.study.page import write_studied

        attempt(where.name, lambda: write_studied(done, where, "tangere " + " ".join(arguments.words)))
    if claim.said:
        print(f"note: {claim.said}", file=sys.stderr)
    print(text)
    if where.name in attempt.kept:
        print(f"\nreport: {where}")
    print(f"csv:    {claim.path}")
    attempt.settle(claim.path)
    if done.lost:
        raise NoSolution(f"not all was done: {done.lost}")
    return getattr(ends.told(), "code", 130) if done.interrupted else 0


_WORLD = {"exact": "exact model, noisy sensors", "wrong": "wrong model"}


def study_text(done: Study, colour: bool = False) -> str:
    """What was found in simulation, for a terminal."""
    from tangere.apps.study import tables
    from tangere.apps.study.world import WORLDS

    plan = done.plan
    lines = [
        f"{plan.robot}: {len(done.touches)} contacts, {60 * sum(map(done.hours, WORLDS)):.0f} min of free motion, "
        f"{done.seconds:.0f} s on {done.workers} processes, seed {plan.seed}"
    ]
    if done.interrupted:
        lines.append(paint("interrupted: what follows is what was done by then", "bad", colour))
    lines.append("rates in % with their 95 % interval")
    for name in WORLDS:
        what = _WORLD[name]
        if name == "wrong":
            what += f": true masses x {plan.mass:g}, friction x {plan.friction:g}"
        lines += ["", paint(what, "heading", colour)]
        alarms = tables.false_alarms(done, name)
        lines.append(
            f"  false alarms: {alarms.count} in {60 * done.hours(name):.1f} min, {span(alarms)} per hour; thresholds "
            f"learned for {done.learned[name].thresholds.rate:.2g} per hour"
        )
        delays = tables.step_delays(done, name)
        if len(delays):
            soon = rate(int(np.sum(delays <= tables.SOON + 1e-9)), len(delays))
            joint, torque = plan.step
            lines.append(
                f"  step of {torque:g} {done.unit(joint)} on joint {joint}, {len(delays)} times: within 20 ms "
                f"{share(soon)} %, delay {span(quantile(delays, 0.5), 1e3)} ms median, "
                f"{span(quantile(delays, 0.95), 1e3)} ms 95 %, {1e3 * max(delays):.0f} ms worst"
            )
        rows = [
            (f"{r.size:.0f}", str(r.trials), share(r.detectable), share(r.found), share(r.found_all),
             span(r.median, 1e3), span(r.late, 1e3))
            for r in tables.found_rows(done, name)
        ]  # fmt: skip
        head = ("N", "contacts", "detectable", "found of these", "found of all", "delay [ms] median", "95 %")
        lines += ["", *table(rows, head, "rrrrrrr")]
        steps = [
            (str(r.joint), span(r.smallest), str(r.smallest.count)) for r in tables.smallest_rows(done, name)
        ]  # fmt: skip
        lines += ["", *table(steps, ("joint", f"smallest step found in 99 % [{done.unit()}]", "steps"), "rrr")]
        for source, who in (("isolated", "isolator, noise known"), ("told", "events of the detector")):
            rows = [
                ("all" if r.link is None else str(r.link), str(r.trials), share(r.answered), share(r.right),
                 share(r.near), "-" if np.isnan(r.median_error) else f"{100 * r.median_error:.1f}", share(r.likeliest))
                for r in tables.isolation_rows(done, name, source, plan.force)  # type: ignore[arg-type]
            ]  # fmt: skip
            head = ("link", "detectable", "answered", "then right", "point in 5 cm", "median [cm]", "likeliest right")
            lines += ["", f"  isolation at {plan.force:g} N, {who}", *table(rows, head, "rrrrrrr")]
            claims = [
                (f"{100 * r.low:.0f}-{min(100.0, 100 * r.high):.0f}", str(r.right.count), f"{100 * r.stated:.1f}",
                 share(r.right), "yes" if r.right.low <= r.stated <= r.right.high else "no")
                for r in tables.calibration_rows(done, name, source)  # type: ignore[arg-type]
            ]  # fmt: skip
            claim = ("claimed for the likeliest link [%]", "contacts", "mean", "right", "within its interval")
            lines += ["", *table(claims, claim, "rrrrl")]
    if done.observers:
        compared = [
            (o.world, o.name, f"{1e3 * o.delay:.0f}" if isfinite(o.delay) else "never", f"{o.found}/{o.motions}",
             f"{1e3 * o.half_rise:.0f}", f"{o.peak_error:.2f}", f"{o.rms:.2f}", f"{1e6 * o.cost:.2f}")
            for o in done.observers
        ]  # fmt: skip
        unit = done.unit(plan.step[0])
        named = ("observer", "delay [ms]", "found", "half rise", f"peak error [{unit}]", f"rms [{unit}]", "us per step")
        lines += ["", f"  observers, step of {plan.step[1]:g} {unit} on joint {plan.step[0]}, medians"]
        lines += table(compared, ("model", *named), "llrrrrrr")
    return "\n".join(lines)


def injected_text(done: InjectedStudy, colour: bool = False) -> str:
    """What was found in real logs, for a terminal."""
    alarms = done.false_alarms
    lines = [
        f"{done.robot}: {sum(log.free for log in done.logs)} free logs, {60 * done.hours:.1f} min watched, "
        f"{len(done.steps())} onsets, "
        f"{done.seconds:.0f} s, seed {done.seed}"
    ]
    if done.interrupted:
        lines.append(paint("interrupted: what follows is what was done by then", "bad", colour))
    lines += [paint("note: ", "bad", colour) + text for text in done.notes[:8]]
    lines.append(
        f"false alarms: {alarms.count}, {span(alarms)} per hour; rates in % with their 95 % interval; stops mask "
        f"{100 * done.masked:.1f} % of the time"
    )
    for log in done.logs:
        for event in log.events:
            if not log.free:
                lines.append(f"  {log.name}, which only teaches, at {event.time_s:.2f} s: {event.kind}")
            elif event.alarm:
                lines.append(
                    f"  {log.name} at {event.time_s:.2f} s: {event.kind}, joint {event.joint}, "
                    f"{event.torque_nm:.2f} {done.unit(event.joint)} ({event.channel})"
                )
    ladder = {row.joint: row for row in done.ladder()}
    rows = []
    for j, torque in enumerate(done.torque.tolist()):
        moving, delay = done.asked(j + 1, True)
        standing, _ = done.asked(j + 1, False)
        rows.append((
            str(j + 1), f"{torque:.3g}", str(moving.count), share(moving), span(delay, 1e3), str(standing.count),
            share(standing), span(ladder[j + 1].smallest), span(done.twice(ladder[j + 1]), 1e3),
        ))  # fmt: skip
    head = (
        "joint", f"step [{done.unit()}]", "moving", "found", "delay [ms] median", "turning, standing", "found",
        f"99 % moving [{done.unit()}]", "twice that [ms]",
    )  # fmt: skip
    return "\n".join([*lines, "", *table(rows, head, "rrrrrrrrr", indent=0)])
