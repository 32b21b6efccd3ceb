"""What happened in a run, in one or two plain sentences under its title."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from tangere.figures.markup import number
from tangere.report.data import RunData, entries_of
from tangere.report.section import joint_units, origin, robot_of

TAKEN = {"stop": "a stop", "wanted": "a wanted contact", "payload": "a payload"}  # what a push may be taken for
WITHIN = 3  # touches that are told one by one
MOST_LIMITS = 6  # limits that are told one by one above everything else; the figures have all of them


def sentence(data: RunData) -> str:
    """A UR10e drew a circle for 6 s. A push of 20 Nm on joint 2 at 3 s was felt after 2 ms."""
    if not len(data.time):
        return ""
    told = [_first(data), *_touches(data)]
    return " ".join(text for text in told if text)


def _first(data: RunData) -> str:
    """Who did what for how long, and how well."""
    robot, _ = robot_of(data)
    who = robot.model.title if robot is not None else str(data.robot or "")
    did = data.did or "moved"
    long = f"for {number(float(data.time[-1] - data.time[0]) + (data.period or 0.0), 3)} s"
    words = f"{_article(who)} {did} {long}" if who else f"The arm {did} {long}"
    worst, force = data.summary.get("tracking_max_mm"), data.summary.get("force")
    if isinstance(force, Mapping) and _known(force.get("mean_n")):
        words += f", pressing with {number(force['mean_n'], 3)} N on average"
        least, most = force.get("min_n"), force.get("max_n")
        if _known(least) and _known(most) and number(least, 3) != number(most, 3):
            words += f" ({number(least, 3)} to {number(most, 3)} N)"
    elif _known(worst) and data.q_des is not None:
        words += f", its tool {_distance(worst)} from where it should be"
        if _known(pushed := data.summary.get("tracking_push_max_mm")) and pushed > worst:
            when = "once a drive had failed" if data.summary.get("faults") else "while it was touched"
            words += f" and {number(pushed, 2)} mm {when}"
    if limits := beyond(data):
        words += f", {next(iter(limits))}"
    return words + "."


def beyond(data: RunData) -> dict[str, int]:
    """Limits of the arm that the run went beyond, and in how many periods; the most often first."""
    noted, limits = data.summary.get("interventions"), data.summary.get("limits_exceeded")
    limits = limits if isinstance(limits, list | tuple) else ()
    found = noted.items() if isinstance(noted, Mapping) else ()
    return dict(sorted(((text, n) for text, n in found if text in limits), key=lambda one: -one[1]))


def beyond_words(data: RunData) -> str:
    """Each limit that was exceeded, in how many periods and since when; and what that means."""
    since = {text: time for time, text in reversed(data.notes)}
    told = [
        f"{text[:1].upper()}{text[1:]}: in {periods} of {data.summary.get('samples', len(data.time))} periods"
        + (f", first at {number(since[text], 4)} s." if text in since else ".")
        for text, periods in beyond(data).items()
    ]
    means = "A simulated arm goes on where a real one stops. Often gains are too large for the period of the loop."
    return "\n".join([*told[:MOST_LIMITS], means])


def _touches(data: RunData) -> Iterator[str]:
    """What was felt, and when; that nothing was, where events were looked for."""
    impact = data.summary.get("touch")
    units, pushes = joint_units(data, "Nm"), entries_of(data.summary, "pushes")
    alarms = [(event, entry) for event, entry in data.judged if event.alarm]
    if isinstance(impact, Mapping) and _known(impact.get("peak_n")):
        yield _impact(impact)
        alarms = [one for one in alarms if one[1].get("false")]
    for event, entry in alarms[:WITHIN]:
        if entry.get("false"):
            yield false_words(entry, units, data.summary.get("residual_rms_nm"))
            continue
        size, after, push = entry.get("torque_nm"), entry.get("delay_ms"), _push_of(entry, pushes)
        strong = f" of {number(abs(size), 3)} {units[event.joint]}" if _known(size) and abs(size) >= 0.01 else ""
        late = f" after {number(after, 2)} ms" if _known(after) else ""
        kind = {"push": "push", "collision": "collision", "fault": "fault"}.get(event.kind, "touch")
        at = f"at {number(event.time_s - origin(data), 3)} s was felt{late}"
        # what was given, then what was felt
        if push is not None and kind in ("push", "collision") and _known(push.get("force_n")):
            given = f"{number(push['force_n'], 3)} N on link {push.get('link')}"
            yield f"A push of {given} {at}, {f'as {strong[4:]} ' if strong else ''}at joint {event.joint}."
            continue
        if push is not None and kind in ("push", "collision") and push.get("joint") == event.joint and strong:
            given = f" of {number(abs(push['torque_nm']), 3)} {units[event.joint]}"
            yield f"A {kind}{given} on joint {event.joint} {at}{'' if given == strong else f', as{strong[3:]}'}."
            continue
        if push is None and isinstance(data.summary.get("force"), Mapping):  # what it presses against
            yield f"The contact {at}{f', as{strong[3:]}' if strong else ''} at joint {event.joint}."
            continue
        yield f"A {kind}{strong} on joint {event.joint} {at}."
    if len(alarms) > WITHIN:
        false = sum(bool(entry.get("false")) for _, entry in alarms[WITHIN:])
        yield f"{len(alarms) - WITHIN} more {f'alarms ({false} of them false)' if false else 'touches'} followed."
    missed = missed_words(pushes, units)
    yield from missed
    if impact is None and not alarms and not missed and data.residuals and "events" in data.summary:
        wanted = any(event.kind == "wanted" for event in data.events)
        yield "The contact was wanted and raised no alarm." if wanted else "No touch was felt."


def false_words(entry: Mapping[str, Any], units: Mapping[int, str], quiet: Sequence[float] | None) -> str:
    """An alarm though nothing touched the arm, by its entry in the summary; units of the joints' torques, by joint.

    quiet: rms of the residual by joint while nothing touched the arm: by as much its model is off.
    """
    joint, end = int(entry["joint"]), entry.get("end_s")
    until = "to the end" if not _known(end) else f"to {number(end, 3)} s"
    words = f"False alarm on joint {joint} from {number(entry['time_s'], 3)} s {until}: nothing touched the arm"
    if not quiet or quiet[joint - 1] < 0.01:
        return words + "."
    worst = max(range(len(quiet)), key=quiet.__getitem__)
    more = f", most on joint {worst + 1}: {number(quiet[worst], 3)} {units[worst + 1]}" if worst != joint - 1 else ""
    return f"{words}, its model is off by {number(false_size(entry, quiet), 3)} {units[joint]} there (rms){more}."


def false_size(entry: Mapping[str, Any], quiet: Any) -> float:
    """By how much the model is off at the joint of a false alarm: rms where it is known, else what was felt."""
    at = int(entry["joint"]) - 1
    known = isinstance(quiet, list | tuple) and at < len(quiet) and _known(quiet[at])
    return float(quiet[at]) if known else abs(float(entry["torque_nm"]))


def missed_words(pushes: Iterable[Mapping[str, Any]], units: Mapping[int, str]) -> list[str]:
    """A sentence for each push that was given and raised no alarm of its own; the last for all that are too many."""
    told = []
    for push in pushes:
        if _known(push.get("felt_ms")):
            continue
        joint, torque, link = push.get("joint"), push.get("torque_nm"), push.get("link")
        pressed, limit, unit = "", push.get("threshold_nm"), ""
        if isinstance(joint, int) and _known(torque):
            unit = units[joint]
            pressed = f"{number(abs(torque), 3)} {unit} on joint {joint}"
        size = f" of {pressed}" if link is None else f" of {number(push.get('force_n'), 3)} N on link {link}"
        became = "was not felt"
        if _known(push.get("hidden_s")):
            became = f"was not told apart from the alarm that had gone on since {number(push['hidden_s'], 3)} s"
        elif push.get("taken_for"):
            became = f"raised no alarm: it was taken for {TAKEN.get(str(push['taken_for']), push['taken_for'])}"
        elif _known(limit) and pressed:
            there = f"threshold there: {number(limit, 3)} {unit}"
            became += f" ({there if link is None else f'{pressed}, {there}'})"
        told.append(f"The push{size} at {number(push.get('start_s'), 3)} s {became}.")
    more = len(told) - WITHIN
    return told if more <= 0 else [*told[:WITHIN], f"{more} more pushes were not felt."]


def _push_of(entry: Mapping[str, Any], pushes: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The push that an alarm told of, by when it began."""
    began = entry.get("push_s")
    return next((push for push in pushes if _known(began) and push.get("start_s") == began), None)


def _impact(impact: Mapping[str, Any]) -> str:
    what, speed = str(impact.get("obstacle") or "an obstacle"), impact.get("speed_m_s")
    fast = f" at {number(speed, 2)} m/s" if _known(speed) else ""
    met = {"hand": f"It met a hand{fast}", "wall": f"It met a wall{fast}", "falling": "A falling ball hit it"}
    words = f"{met.get(what, f'It met {what}{fast}')}: {number(impact['peak_n'], 3)} N at most"
    if _known(impact.get("felt_ms")):
        words += f", felt after {number(impact['felt_ms'], 2)} ms"
    if _known(left := impact.get("remaining_n")):
        words += ", no force left one second later" if abs(left) < 0.05 else f", {number(left, 2)} N one second later"
    return words + "."


def _distance(mm: float) -> str:
    """At most 0.019 mm; below a nanometre it is nothing but rounding."""
    if mm >= 1e-4:
        return f"at most {number(mm, 2)} mm"
    return "less than a micrometre" if mm >= 1e-6 else "less than a nanometre"


def _article(who: str) -> str:
    first = who.split(" ", 1)[0]
    # Universal, UR5e: a consonant is heard
    return f"{'An' if first[:1] in 'AEIOaeio' else 'A'} {who}"


def _known(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
