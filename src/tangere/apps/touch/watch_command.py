"""The command that finds touches in a log or a stream: watch."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tangere import foreign
from tangere.apps.touch.event_table import ALIGN, HEAD, EventTable, cells, json_line, json_object, stream_line
from tangere.apps.touch.explained import alien, besides, reasons, record
from tangere.apps.touch.options import (
    RecordedArm,
    arm_of,
    extrapolated,
    hours_text,
    model_of,
    note,
    sample_rate,
    tell,
)
from tangere.errors import CannotWrite, InvalidValue
from tangere.kernels.laws import detection as law
from tangere.logs.recordings import LOGS
from tangere.options import add_foxglove, add_options, group_from, size_of
from tangere.report.section import links_meant
from tangere.report.terminal import Bar, paint, plural, table, terminal_width, wants_colour
from tangere.rtde.client import Address, address
from tangere.settings import count, flag, numbers, other, repeated, setting, word

if TYPE_CHECKING:
    from tangere.identification.findings import Finding
    from tangere.loop.watching import Watched
    from tangere.observe.detect import Event, Thresholds
    from tangere.robots import Robot

EXAMPLES = """examples:
  tangere watch log.csv --robot ur5e        an RTDE recording, nothing known of this arm but its type
  tangere watch log.csv --robot ur5e --model tuned.toml --report touches.html
                                            thresholds with a promise; a page with residuals, thresholds and events
  tangere watch 'runs.npz:*_105' --rate 500 --robot ur3e --model tuned.toml --json
                                            arrays of an npz (q, qd, current or --columns); one JSON object per event
  tangere watch push.csv --columns t,q,qd,current,_:6 --robot ur10e
                                            csv without a header: every name but t stands for six columns, _:6 skips six
  recorder | tangere watch - --robot ur10e --model tuned.toml --json
                                            lines of csv from a pipe, events as they happen
  tangere watch growing.csv --follow --robot ur10e
                                            a file that is still being written; Ctrl-C ends it
  tangere watch 192.168.0.10 --robot ur5e --model tuned.toml --on-event ./alarm.sh
                                            a live arm, read only; each event goes to a command as JSON
  tangere watch log.csv --robot ur5e --wanted 12,15:5,6 --payload-change 20,22
                                            from 12 to 15 s joints 5 and 6 may be touched; the gripper closes at 20 s

Times are the log's own stamps; --wanted and --payload-change are in these, or with a + (+12,+15) from the first one.
A JSON object has time_s (stamp of the sample that raised it), onset_s, end_s, kind (collision, push, payload, drift,
stop, fault, wanted, unknown: not known yet), alarm, link (or why_no_link: too weak, ambiguous, not one push, stronger
than a hand; links: the likeliest), joint, torque_nm, residual_nm, force_n, confidence, alternatives, masked_share (of a
file, that stops mask), ... and `phase`:
ended, open (lasts beyond the log); in a stream each event is told twice, raised and ended, and a payload once more when
it is named (refined: mass_kg, mass_interval_kg with 95 %, com in m from the flange).
joint: the one that raised the event first (from 1 at the base), whichever link was touched; torque_nm: what the event
added to its torque, as residual_nm has it for all joints.
Exit code 0, whether anything was found or not. Problems of the log are on standard error. Not a safety function."""


@dataclass(frozen=True)
class WatchSettings(RecordedArm):
    """What is believed of an arm that is watched, and what is said of it."""

    model: str | None = word(None, "a model file of `tangere identify` or `tangere tune`", metavar="FILE")
    rate: float | None = other(None, "samples per second of data without stamps", sample_rate, metavar="HZ")
    json: bool = flag(False, "one JSON object per line and event instead of a table")
    wanted: tuple[str, ...] = repeated(
        "a contact is wanted then [s], of these joints (default: all): thresholds three times higher; repeatable",
        metavar="FROM,TO[:J,..]",
    )  # fmt: skip
    payload_change: tuple[str, ...] = repeated(
        "something is taken up or put down then [s]: no alarm; repeatable", metavar="FROM,TO"
    )
    explain: bool = flag(False, (
        "of a file: what raised each event, in a sentence; with --json one more object per log (phase watched) "
        "with its near misses and its score, the largest of each second, 1 is an alarm"
    ))  # fmt: skip
    follow: bool = flag(False, "LOG is a csv that is still being written: go on until Ctrl-C")
    log: str | None = word(None, "live arm, pipe or --follow: record it too", metavar="FILE.mcap")
    max_log: str | None = word(None, "with --log: keep the newest so much, in FILE and FILE.1 (500MB)", metavar="SIZE")
    durable: bool = flag(False, "with --log: it survives a power cut, too")
    heartbeat: float | None = setting(
        None, "s", "of a stream: say every so many seconds that it is watched", low=0.0, above=True, metavar="S"
    )
    on_event: str | None = word(
        None, "of a live arm or a stream: run this for every event, which it finds as JSON on its standard input",
        metavar="COMMAND",
    )  # fmt: skip
    set_output: int | None = count(
        None, "of a live arm: digital output 0 to 7, high while it is touched and half a second longer",
        low=0, high=7, metavar="N",
    )  # fmt: skip
    seconds: float | None = setting(None, "s", "of a live arm: end after this time", metavar="S")
    report: str | None = word(None, "also write a page with residuals, thresholds and events (HTML)", metavar="FILE")


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "watch",
        help="find touches in a log, or in a stream as they happen",
        description="Replay or follow a log and tell what touched the arm: when, how, which link, how hard.\n"
        "Works with the arm's type alone; better with a model file of `tangere identify`, best with one of\n"
        "`tangere tune`.",
        epilog=EXAMPLES,
    )
    p.add_argument(
        "source", metavar="LOG|-|HOST", help=f"{LOGS}; - for a pipe; IPv4 address or rtde://HOST: a live arm"
    )
    add_options(p, WatchSettings)
    add_foxglove(p)
    p.set_defaults(run=watch, text_is_all=True)


def watch(arguments: argparse.Namespace) -> int:
    """Find events and tell them."""
    from tangere.identification.belief import belief

    told = group_from(WatchSettings, arguments)
    arm, payload = arm_of(arguments)
    model = model_of(arguments, arm)
    believed = belief(arm, model, payload=payload)
    live = address(arguments.source)
    stream = arguments.source == "-" or told.follow or live is not None
    # what a tuned file says of itself was said when it was made; without a model each log is learned from, and says so
    if not believed.tuned and (stream or model is not None):
        for text in believed.notes:
            note(text)
    if not stream and (told.heartbeat is not None or told.max_log is not None or told.durable):
        raise InvalidValue("--heartbeat, --max-log, --durable: go with a live arm, a pipe or --follow; LOG is a file")
    if stream:
        if told.explain:
            raise InvalidValue("--explain: goes with a file; each event of a stream says its reason in --json")
        if told.report:
            raise InvalidValue("--report: of a stream no page is written; record it and watch the file")
        return _stream(arguments, told, arm, believed, payload, live)
    for option, given in (("--set-output", told.set_output), ("--seconds", told.seconds)):
        if given is not None:
            raise InvalidValue(f"{option}: goes with a live arm, LOG is a file")
    if told.on_event:
        raise InvalidValue("--on-event: goes with a live arm or a stream; of a file take --json")
    if arguments.foxglove:
        raise InvalidValue("--foxglove: goes with a live arm or a stream; of a file, Foxglove opens FILE.mcap itself")
    if told.log:
        raise InvalidValue("--log: LOG is a file that is there already; it goes with a pipe (-) or --follow")
    return _files(arguments, told, arm, believed, payload)


def _files(arguments: argparse.Namespace, told: WatchSettings, arm: Robot, believed: Any, payload: Any) -> int:
    from tangere.logs.recordings import recordings
    from tangere.loop.follow import watch_recording
    from tangere.loop.long_watch import LongFile, is_long, watch_file

    done: list[Watched] = []

    def masks(first: float) -> dict[str, Any]:
        return {"wanted": _wanted(told, arm.dof, first), "payload_changes": _payloads(told, first)}

    def said(seen: Watched) -> None:
        bar.end()
        stamps = seen.log.motion.time
        first = float(stamps[0])
        done.append(dataclasses.replace(seen, findings=(*seen.findings, *_outside(masks(first), stamps))))
        tell(seen.log.name, (*seen.log.problems, *done[-1].said))
        for event in seen.events if told.json else ():
            phase = "open" if event.end_s is None else "ended"
            json_line(event, seen.log.name, first, phase, masked_share=seen.masked)
        if told.json and told.explain:
            json_object(record(seen))

    with Bar() as bar:
        bar(f"reading {arguments.source}", 0.0)
        if is_long(arguments.source):
            file = LongFile(
                arguments.source, columns=told.columns, rate=told.rate, progress=lambda share: bar(file.name, share)
            )
            said(watch_file(file, arm, believed, payload, masks=masks))
        else:
            read = recordings(arguments.source, columns=told.columns, rate=told.rate)
            for k, recording in enumerate(read):

                def shown(share: float, k: int = k, name: str = recording.name) -> None:
                    bar(name, (k + share) / len(read))

                own = masks(float(recording.log.time[0]))
                said(watch_recording(recording, arm, believed, payload, progress=shown, **own))
    if not told.json:
        print(summary(done, wants_colour(), explain=told.explain))
    if told.report:
        from tangere.apps.touch.page_watched import write_watched

        where = write_watched(done, told.report, "tangere " + " ".join(arguments.words))
        print(f"report: {where}", file=sys.stderr if told.json else sys.stdout)
    return 0


def _stream(
    arguments: argparse.Namespace, asked: WatchSettings, arm: Robot, believed: Any, payload: Any, live: Address | None
) -> int:
    from tangere.apps.touch.alerts import Alerts, Heartbeat
    from tangere.logs.growing import lines_of
    from tangere.loop.follow import Follower
    from tangere.loop.foxglove import sink_of

    name = arguments.source
    if any("+" in text for text in (*asked.wanted, *asked.payload_change)):
        raise InvalidValue("--wanted, --payload-change: of a stream in its own stamps, not with a +")
    follower = Follower(
        arm, believed, name="stdin" if name == "-" else name, columns=asked.columns, rate=asked.rate,
        wanted=_wanted(asked, arm.dof, 0.0), payload_changes=_payloads(asked, 0.0), payload=payload,
    )  # fmt: skip
    if live is not None:
        from tangere.rtde import primary
        from tangere.rtde.rows import RtdeRows

        seconds = float("inf") if asked.seconds is None else asked.seconds
        primary.refuse_another(live.host, arm)
        source: Any = RtdeRows(live, seconds=seconds, tell=lambda text: tell(name, [text]))
    else:
        piped = getattr(sys.stdin, "buffer", None) if name == "-" else None
        source = lines_of(name, tell=lambda text: tell(name, [text])) if name != "-" else sys.stdin
        if piped is not None:
            long = f"a line of more than {foreign.LONGEST} characters was cut"
            source = foreign.lines(piped, lambda: tell(name, [long]))
    most = size_of(asked.max_log, "--max-log")
    if asked.log is None and (most is not None or asked.durable):
        raise InvalidValue("--max-log, --durable: go with --log FILE.mcap")
    alerts = Alerts(asked.on_event, live, asked.set_output, lambda text: tell(name, [text]))
    seen = None if asked.json else EventTable(stream_line("", HEAD), lambda: _watched(follower))

    def told(event: Event) -> None:
        alerts.event(event)
        if seen is None:
            _said(follower, name)
            json_line(event, name, follower.first, event.phase)
            return
        if follower.said:
            with seen.above():
                _said(follower, name)
        seen.told(event.number, stream_line(event.phase, cells(event, follower.first, arm)))

    shown = sink_of(arguments.foxglove, note)
    sinks = () if shown is None else (shown,)
    try:
        with seen or nullcontext(), Heartbeat(asked.heartbeat, lambda: _alive(asked.json, follower, name)):
            follower.follow(source, told, log=asked.log, max_log=most, durable=asked.durable, sinks=sinks)
    except KeyboardInterrupt:
        pass  # the usual end of following
    finally:
        tell(name, alerts.close())
        _said(follower, name)
        tell(name, [f"{count} {what}" for what, count in follower.problems.items()])
    span = 0.0 if follower.source is None else follower.source.newest - follower.first
    if span > 2.0 * follower.seconds + 10.0:  # more than half of it, and more than a start and a few gaps
        used = f"only {follower.seconds:.0f} of {span:.0f} s could be watched"
        tell(name, [f"{used}: samples must come at least every {law.GAP:g} s, and stand in order"])
    if not asked.json:
        print(f"{plural(len(follower.events), 'event')} in {follower.seconds:.1f} s")
    if follower.log_error:
        raise CannotWrite(f"{asked.log} is not complete: {follower.log_error}")
    return 0


def _watched(follower: Any) -> str:
    """The line below a table that is kept up to date."""
    return f"watched {follower.seconds:.1f} s, {plural(len(follower.events), 'event')}; Ctrl-C ends it"


def _alive(json: bool, follower: Any, name: str) -> None:
    """A line that says that it is watched, and how far."""
    newest = None if follower.source is None else follower.source.newest
    if json:
        about = {"log": name, "phase": "heartbeat", "time_s": newest, "seconds": follower.seconds}
        json_object(about | {"events": len(follower.events)})
    else:
        at = "nothing came yet" if newest is None else f"newest stamp {newest:.3f} s"
        tell(name, [f"alive: {at}, {follower.seconds:.1f} s watched, {plural(len(follower.events), 'event')}"])


def _said(follower: Any, name: str) -> None:
    tell(name, follower.said)
    follower.said.clear()


def _span(text: str, option: str, first: float) -> tuple[float, float]:
    """FROM,TO in stamps; with a + from the first one."""
    start, end = numbers(text.replace("+", ""), option, "s", (2,))
    if "+" in text:
        start, end = start + first, end + first
    return start, end


def _wanted(told: WatchSettings, n: int, first: float) -> list[Any]:
    from tangere.observe.detect import wanted

    masks = []
    for text in told.wanted:
        span, _, joints = text.partition(":")
        start, end = _span(span, "--wanted FROM,TO", first)
        chosen = None
        if joints:
            if not re.fullmatch(r"\d+(,\d+)*", joints):
                raise InvalidValue(f"--wanted: joints with commas between after the colon, got {text!r}")
            chosen = [int(joint) for joint in joints.split(",")]
        masks.append(wanted(n, chosen, start=start, end=end))
    return masks


def _outside(masks: dict[str, Any], time: Any) -> list[Finding]:
    """Masks that never hold: the stamps of a robot count from its power-on."""
    from tangere.identification.findings import Finding

    first, last = float(time[0]), float(time[-1])
    text = f"lies outside the log's stamps, {first:.6g} to {last:.6g} s; with a + (+12,+15) times count from the first"
    return [
        Finding("unwatched", f"{option} {mask.start:g},{mask.end:g} {text}")
        for option, some in (("--wanted", masks["wanted"]), ("--payload-change", masks["payload_changes"]))
        for mask in some
        if mask.end < first or mask.start > last
    ]


def _payloads(told: WatchSettings, first: float) -> list[Any]:
    from tangere.observe.detect import PayloadChange

    return [PayloadChange(*_span(text, "--payload-change FROM,TO", first)) for text in told.payload_change]


def summary(done: list[Watched], colour: bool = False, explain: bool = False) -> str:
    """The events of all logs, for a terminal."""
    lines: list[str] = []
    quiet = [seen for seen in done if seen.seconds and not seen.events] if len(done) > 1 else []
    for seen in done:
        if any(seen is entry for entry in quiet):
            continue
        alarms = len(seen.alarms)
        others = len(seen.events) - alarms
        said = plural(alarms, "alarm") + (f", {plural(others, 'other event')}" if others else "")
        said = f"{said} in {seen.seconds:.1f} s" if seen.seconds else "nothing could be watched"
        if not seen.events and seen.period is None and (nearest := seen.traces.nearest) is not None:
            said += f", largest score {nearest[0]:.2g} of 1 on joint {nearest[1]}"
        lines.append(paint(f"{seen.log.name}: {said}", "heading", colour))
        if doubt := alien(seen):
            lines.append(f"  not to be trusted: {doubt}")
        if seen.events:
            rows = [cells(event, float(seen.log.motion.time[0]), seen.belief.robot) for event in seen.events]
            same = all(row[0] == row[1] for row in rows)  # stamps that count from the first sample say nothing new
            shown = [tuple(row[k] for k in range(len(row)) if not (same and k == 1)) for row in (HEAD, *rows)]
            align = ALIGN[:1] + ALIGN[2:] if same else ALIGN
            lines += table(shown[1:], shown[0], align, width=terminal_width())
        meant = links_meant(seen.belief.robot, seen.events)
        lines += [f"  {text}" for text in ([meant] if meant else []) + (reasons(seen) if explain else [])]
        lines += besides(seen)
    if quiet:
        seconds = sum(seen.seconds for seen in quiet)
        names = ", ".join(seen.log.name for seen in quiet[:4]) + (", ..." if len(quiet) > 4 else "")
        lines.append(f"{plural(len(quiet), 'log')} without any event in {seconds:.1f} s: {names}")
    if done:
        lines += ["", _standard(done[0].belief.thresholds)]
    return "\n".join(lines)


def _standard(thresholds: Thresholds) -> str:
    if thresholds.tuned:
        of = f"{hours_text(thresholds.hours)} of free motion"
        return f"thresholds tuned for {thresholds.rate:.3g} false alarms per hour, {extrapolated(thresholds, of)}"
    return "thresholds from the drive model's uncertainty: no rate of false alarms is promised"
