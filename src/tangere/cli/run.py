"""The commands that run: run, scenarios, report, compare, rerun."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tangere import foreign
from tangere.apps.scenarios.common import RunSettings
from tangere.errors import InvalidValue
from tangere.options import add_about, add_foxglove, add_json, add_options
from tangere.report.terminal import Clock, filled, plural, show, table, terminal_width
from tangere.rtde.consent import OPTION

if TYPE_CHECKING:
    from tangere.apps.scenarios.build import Built, OnArm
    from tangere.report.data import About
    from tangere.robots import Robot

SPELLED = ("robot", "tool", "model", "plant", "seed")  # settings with an option of their own; others go by --set

EXAMPLES = """examples:
  tangere run circle --push joint=2,torque=20,start=3,duration=2 --out out/push
  tangere run circle --model 000-C --plant rigid --set drives=off period=2ms
  tangere run hold --push link=4,force=0/0/-30,start=2,duration=1 --set friction=full
  tangere run circle --fault joint=2,gain=0.8,start=2   a drive that gives too little: told from a touch?
  tangere run my_scenario.toml --out out/mine
  tangere run circle --arm 192.168.0.10 --approach   on a live arm, from where it stands; see docs/arm.md
  tangere scenarios                         what can be run, and every setting"""


def add(commands: Any) -> None:
    """Add the commands to the parser's."""
    p = commands.add_parser(
        "run",
        help="simulate a scenario: log, summary and report into a folder",
        description="Run a scenario, or a TOML file with `scenario = NAME` and settings, and leave log.mcap, log.csv,\n"
        "manifest.json, summary.json and report.html in a folder.",
        epilog=EXAMPLES,
    )
    p.add_argument("scenario", metavar="SCENARIO|FILE", help="a name from `tangere scenarios`, or a TOML file")
    add_run_options(p, "SCENARIO")
    p.add_argument("--arm", metavar="HOST", help="run on a live arm in place of the simulated one; it moves")
    p.add_argument("--approach", action="store_true", help="with --arm: first move slowly to where the run begins")
    p.add_argument(
        "--hold", type=int, default=3, metavar="FRAMES",
        help="with --arm: frames of 2 ms for which a torque is held when none comes, for a busy computer (default: 3)",
    )  # fmt: skip
    add_foxglove(p)
    p.add_argument(OPTION, action="store_true", dest="beside", help="with --arm: the confirmation, said in advance")
    p.set_defaults(run=run)

    p = commands.add_parser(
        "scenarios", help="list the scenarios and their settings", description=scenarios.__doc__,
        epilog="examples:\n  tangere scenarios\n  tangere scenarios circle                  every setting of one",
    )  # fmt: skip
    p.add_argument("scenario", nargs="?", metavar="NAME", help="one of them, with all its settings")
    p.set_defaults(run=scenarios)

    p = commands.add_parser(
        "report", help="make the report of a run, a drawing or a log again", description=report.__doc__,
        epilog="examples:\n  tangere report out/circle\n  tangere report log.csv --out page.html",
    )  # fmt: skip
    p.add_argument("source", metavar="LOG|DIR", help="the folder of a run or a drawing, or a log (.mcap, .csv)")
    p.add_argument("--columns", metavar="LIST", help="of a csv without header: t,q,qd,current,_:6")
    p.add_argument("--out", metavar="FILE", help="the HTML file (default: report.html in the folder, beside a log)")
    add_about(p)
    p.set_defaults(run=report)

    p = commands.add_parser(
        "compare", help="two or more runs on one page: what is different, curves over each other",
        description="Put runs on one page: settings and figures that differ, events, and curves over each other.\n"
        "The first is what the others are compared with.",
        epilog="examples:\n  tangere compare out/circle out/push --out compare.html\n"
        "  tangere compare out/a out/b log.csv --title 'before and after'",
    )  # fmt: skip
    p.add_argument("runs", nargs="+", metavar="LOG|DIR", help="folders of runs, or logs (.mcap, .csv): two to six")
    p.add_argument("--out", default="compare.html", metavar="FILE", help="the HTML file (default: compare.html)")
    p.add_argument("--title", default="", metavar="TEXT", help="title of the page (default: the names of the runs)")
    add_about(p, title=False)
    add_json(p)
    p.set_defaults(run=compare)

    p = commands.add_parser(
        "rerun", help="repeat a run or a drawing from its manifest and compare it bit by bit",
        description="Repeat a run or a drawing and compare. Exit code 1 if it differs.",
        epilog="examples:\n  tangere rerun out/circle",
    )  # fmt: skip
    p.add_argument("folder", metavar="DIR", help="the folder of a run or a drawing")
    p.set_defaults(run=rerun)


def add_run_options(p: Any, name: str) -> None:
    """The options of whatever runs a scenario; name: what its folder is called after."""
    add_options(p, RunSettings, SPELLED, defaults=False)
    p.add_argument(
        "--push", action="append", default=[], metavar="joint=2,torque=20,start=3,duration=2",
        help="something pushes; may be given several times; none: nothing does",
    )  # fmt: skip
    p.add_argument(
        "--fault", action="append", default=[], metavar="joint=3,offset=-15,start=2",
        help="a drive fails: offset=NM on top, gain=0.8 of its torque left, dead, stuck; may be given several times",
    )  # fmt: skip
    p.add_argument(
        "--out", metavar="DIR", help=f"folder for the run (default: out/{name}; out/{name}-2 where that holds one)"
    )
    p.add_argument(
        "--force", "--replace", dest="replace", action="store_true", help="replace an earlier run in the default folder"
    )
    p.add_argument("--set", action="append", nargs="+", default=[], metavar="key=value", help="any other setting")
    p.add_argument("--paced", action="store_true", help="in real time, periods by the clock")
    p.add_argument("--csv", action="store_true", help="log.csv however long the run is (else up to 20 000 samples)")
    p.add_argument("--durable", action="store_true", help="the log survives a power cut, too: see docs/reliability.md")
    p.add_argument("--video", action="store_true", help="also a clip of the motion (off-screen rendering)")
    add_about(p)
    add_json(p)


def run(arguments: argparse.Namespace) -> int:
    """Run a scenario into a folder."""
    from tangere.apps.scenarios.execute import execute
    from tangere.logs.csv_log import write_csv
    from tangere.loop.folder import CSV, CSV_MAX, REPORT, VIDEO
    from tangere.loop.foxglove import sink_of
    from tangere.report.data import clip_of

    about_page = _about(arguments)  # a logo that cannot be read is said before anything runs
    name, told = told_of(arguments)
    out, command = Path(arguments.out or Path("out") / name), ["tangere", *arguments.words]
    fresh = arguments.out is None and not arguments.replace  # a folder that nobody named is never overwritten silently
    arm, before = _live(arguments)
    shown = sink_of(getattr(arguments, "foxglove", None), lambda text: print(f"note: {text}", file=sys.stderr))
    with Clock() as bar:
        done = execute(name, told, out=out, command=command, progress=bar, paced=arguments.paced,
                       csv=False, fresh=fresh, durable=arguments.durable, arm=arm, before=before,
                       sinks=() if shown is None else (shown,))  # fmt: skip
    if arguments.video:
        _video(done)
    where = done.folder / REPORT
    done.attempt(REPORT, lambda: done.result.report(where, video=clip_of(done.folder), about=about_page))
    said = [done.claim.said] if done.claim.said else []
    if arguments.csv or len(done.result.log) <= CSV_MAX:
        done.attempt(CSV, lambda: write_csv(done.result.log, done.folder / CSV))
    else:
        said.append(f"no log.csv: {len(done.result.log)} samples make a large one; log.mcap has all, --csv writes both")
    for text in (*done.built.notes, *done.result.said, *said):
        print(f"note: {text}", file=sys.stderr)
    about = {"scenario": name, "folder": done.folder, "report": where}
    notes = done.result.log.notes
    program = [f"{n.time:.3f} s  {n.text}" for n in notes if n.text.startswith("program")]  # of URScript
    text = _told(done.summary, where if REPORT in done.attempt.kept else None, done.built.world.true)
    clip = done.folder / VIDEO
    if arguments.video and clip.is_file():
        about["video"], text = clip, f"{text}\nvideo: {clip}"
    show(about | done.summary, "\n".join([*program, text]), arguments.json)
    done.attempt.settle(done.folder)
    return 1 if done.result.aborted else 0


def _about(arguments: argparse.Namespace) -> About:
    """Title, author, logo and date of the page; `script run` has no such options."""
    from tangere.report.data import About

    return About.given(*(getattr(arguments, key, "") for key in ("title", "author", "logo", "date")))


def _live(arguments: argparse.Namespace) -> tuple[OnArm | None, Callable[[Built], None] | None]:
    """The arm of --arm with the consent of whoever stands beside it, and what is done before the run."""
    if getattr(arguments, "arm", None) is None:  # `script run` has no such option
        if getattr(arguments, "approach", False) or getattr(arguments, "beside", False):
            raise InvalidValue(f"--approach and {OPTION} belong to --arm HOST")
        return None, None
    if arguments.paced or arguments.video:
        raise InvalidValue("--paced and --video are for simulations; a live arm sets its own pace")
    from tangere.apps.arm.live import Arm
    from tangere.apps.scenarios.build import OnArm
    from tangere.rtde import primary
    from tangere.rtde.client import address_of
    from tangere.rtde.consent import asked

    address = address_of(arguments.arm)
    given = asked(address, arguments.beside)
    name = primary.arm_name(primary.introduction(address.host, wait=5.0))

    def approach(built: Built) -> None:
        with Arm(arguments.arm, built.world.believed, consent=given) as live:
            live.move_joints(built.motion.trajectory.at(0.0).q)

    return OnArm(arguments.arm, name, given, arguments.hold), approach if arguments.approach else None


def told_of(arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Name of the scenario and its settings as told: a file's, the options' over them, --set's over these."""
    from tangere.plants.pushes import faults_of, pushes_of
    from tangere.settings import assignments, read_scenario

    name: str = arguments.scenario
    told: dict[str, Any] = {}
    if name.endswith(".toml") or "/" in name:
        told = read_scenario(name)
        name = told.pop("scenario")
    said = {key: getattr(arguments, key) for key in SPELLED}
    told |= {key: value for key, value in said.items() if value is not None} | getattr(arguments, "given", {})
    told |= assignments([text for group in arguments.set for text in group])
    if arguments.push:  # added to those of a file; none: not even these
        before = () if "none" in arguments.push else pushes_of(told.get("push", ()))
        told["push"] = (*before, *pushes_of([text for text in arguments.push if text != "none"]))
    if arguments.fault:
        failed = () if "none" in arguments.fault else faults_of(told.get("fault", ()))
        told["fault"] = (*failed, *faults_of([text for text in arguments.fault if text != "none"]))
    return name, told


def _video(done: Any) -> None:
    from tangere.report.video import write_video

    try:
        write_video(done.built.plant, done.result.log, done.folder / "video.mp4")
    except Exception as problem:  # graphics libraries raise what they like; the report must not be lost over a clip
        print(f"no video: {problem}", file=sys.stderr)


# key of the summary or, with a blank, of a part of it -> words and unit, as a terminal shows them
_SHOWN = {
    "tracking_rms_mm": ("tracking rms", "mm"),
    "tracking_max_mm": ("tracking max", "mm"),
    "tracking_push_max_mm": ("tracking max while pushed", "mm"),
    "realtime_factor": ("faster than real time", "x"),
    "residual_rms_nm": ("quiet residual, largest rms", "Nm"),
    "force mean_n": ("force of the wall, mean", "N"),
    "force min_n": ("force of the wall, least", "N"),
    "force max_n": ("force of the wall, most", "N"),
    "touch peak_n": ("force of the obstacle, peak", "N"),
    "touch remaining_n": ("the same one second later", "N"),
    "touch felt_ms": ("felt after", "ms"),
    "touch impulse_ns": ("impulse", "Ns"),
    "touch energy_j": ("energy given to it, most", "J"),
}


def _told(summary: dict[str, Any], where: Path | None, arm: Robot) -> str:
    """The few numbers that matter, and where the rest is."""
    from tangere.report.sections_run import UNSEEN
    from tangere.report.sentence import false_words, missed_words

    lines = [f"aborted: {summary['aborted']}"] if summary["aborted"] else []
    if summary["log_error"]:
        lines.append(f"log.mcap is not complete: {summary['log_error']}")
    rows = []
    for key, (label, unit) in _SHOWN.items():
        part, _, name = key.rpartition(" ")
        value = ((summary.get(part) or {}) if part else summary).get(name)
        if key == "residual_rms_nm":  # in contact all along nothing is quiet
            unit = arm.unit(value.index(max(value)) + 1, unit) if value else unit
            value = max(value) if value and "force" not in summary else None
        if value is not None and not (key == "realtime_factor" and "arm" in summary):
            rows.append((label, "0" if abs(value) < UNSEEN else f"{value:.4g}", unit))
    lines += table(rows, ("", "", ""), "lrl", indent=0)[2:]
    units = {j: arm.unit(j, "Nm") for j in range(1, arm.dof + 1)}
    for event in summary["events"]:
        if not event.get("alarm", True):
            continue  # a stop, a wanted contact
        if event["false"]:
            lines.append(false_words(event, units, summary["residual_rms_nm"]))
            continue
        delay = "" if event["delay_ms"] is None else f", {event['delay_ms']:.0f} ms after it began"
        unit = arm.unit(event["joint"], "Nm")
        torque = "" if event["torque_nm"] is None else f", {event['torque_nm']:.2f} {unit}"
        true = "" if event["true_torque_nm"] is None else f" (true {event['true_torque_nm']:.2f} {unit})"
        what = "fault" if event["kind"] == "fault" else "touch"
        link = "" if event["link"] is None or what == "fault" else f", link {event['link']}"
        lines.append(f"{what} at {event['time_s']:.3f} s on joint {event['joint']}{torque}{true}{delay}{link}")
    lines += missed_words(summary.get("pushes", ()), units)
    if (summary.get("script") or {}).get("ended") == "still running" and not summary["aborted"]:
        lines.append(f"the program still ran when the run ended after {summary['duration_s']:g} s: --set duration=120s")
    for fault in summary.get("faults", ()):
        if fault["why"]:
            lines.append(f"the fault of joint {fault['joint']} was not told from a touch: {fault['why']}")
    for name, noise in (summary.get("residual_noise_nm") or {}).items():
        sizes = f"{' '.join(f'{x:.3g}' for x in noise)} {arm.units('Nm')}"
        lines.append(f"noise of the {name} residual: {sizes} (standard deviation)")
    lines += [f"{note}: in {plural(periods, 'period')}" for note, periods in summary["interventions"].items()]
    return "\n".join([*lines, *([] if where is None else [f"report: {where}"])])


def scenarios(arguments: argparse.Namespace) -> int:
    """List what can be run."""
    from tangere.apps.scenarios.build import own_settings, scenario_of
    from tangere.apps.scenarios.build import scenarios as shipped
    from tangere.options import rows
    from tangere.settings import settings_of

    width, common = terminal_width(), settings_of(RunSettings)
    if arguments.scenario is None:
        every = []
        for name, scenario in shipped().items():
            own = [key for key in own_settings(scenario) if key not in common]
            every.append((name, f"{scenario.title}; own settings: {', '.join(own)}" if own else scenario.title))
        print("\n".join(table(every, ("scenario", "what"), "ll", indent=0, width=width)))
        print("\n" + filled("every scenario also takes: " + ", ".join(common), width))
        hint = "`tangere scenarios NAME` shows each setting with its default; --set key=value changes it"
        print(filled(hint, width))
        return 0
    scenario = scenario_of(arguments.scenario)
    own = own_settings(scenario)
    names = [*own, *(name for name in settings_of(scenario.settings) if name not in own)]
    print("\n".join(table(rows(scenario.settings, names), ("setting", "what"), indent=0, width=width)))
    return 0


def report(arguments: argparse.Namespace) -> int:
    """Make a report again from what a run left."""
    from tangere.apps.drawing.api import is_drawing, read_drawing
    from tangere.logs.recordings import read
    from tangere.loop.folder import load_manifest
    from tangere.report.page import write_report

    source = Path(arguments.source)
    default = source / "report.html" if source.is_dir() else source.with_suffix(".html")
    out = Path(arguments.out) if arguments.out else default
    out = out / "report.html" if out.is_dir() else out
    if is_drawing(source):
        from tangere.apps.drawing.page import write_drawn

        with foreign.reading(source, limited=False):
            where = write_drawn(read_drawing(source), out, load_manifest(source).command)
    elif arguments.columns is not None:
        log = read(source, columns=arguments.columns)
        where = write_report(log, out, name=source.stem, about=_about(arguments))
    else:
        where = write_report(source, out, about=_about(arguments))
    print(f"report: {where}")
    return 0


def compare(arguments: argparse.Namespace) -> int:
    """Put runs on one page."""
    from tangere.logs.files import write_text
    from tangere.report.compare import compare_html, differences, labels, read_runs, worded

    if len(arguments.runs) < 2:
        raise InvalidValue("compare takes two runs or more: tangere compare out/a out/b")
    runs = read_runs(arguments.runs)
    names = labels(runs)
    where = write_text(arguments.out, compare_html(runs, title=arguments.title, about=_about(arguments)))
    settings, figures = differences(runs)
    head, form = ("different", *names), "l" + "r" * len(names)
    lines = table(worded(settings + figures, runs[0]), head, form, indent=0, width=terminal_width())
    told = {"runs": names, "settings": dict(settings), "figures": dict(figures), "report": where}
    words = lines if settings or figures else ["nothing differs"]
    show(told, "\n".join([*words, f"report: {where}"]), arguments.json)
    return 0


def rerun(arguments: argparse.Namespace) -> int:
    """Repeat a run or a drawing and compare."""
    from tangere.apps.drawing import api as drawing
    from tangere.apps.scenarios import execute as running
    from tangere.loop.folder import difference

    drawn = drawing.is_drawing(arguments.folder)
    broken = (drawing if drawn else running).interrupted(arguments.folder)
    with Clock() as bar:
        if drawn:
            pairs = list(drawing.draw_again(arguments.folder, progress=bar).values())
        else:
            done, kept = running.again(arguments.folder, progress=bar)
            if not len(kept):
                raise InvalidValue(f"{arguments.folder}: the run was {broken}, before there was anything to compare")
            pairs = [(kept, done.result.log[: len(kept)] if broken else done.result.log)]
    differs = next((text for text in (difference(*pair) for pair in pairs) if text), "")
    samples = sum(len(kept) for kept, _ in pairs)
    print(f"differs: {differs}" if differs else f"the same, bit by bit: {samples} samples")
    if broken:
        print(f"note: the {'drawing' if drawn else 'run'} was {broken}; compared up to there")
    return 1 if differs else 0
