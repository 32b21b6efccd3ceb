"""What was felt, on the arm and in words."""

from __future__ import annotations

from tangere.report.section import link_words
from tangere.robots import Robot
from tangere.studio.stage import Stage, words
from tangere.types import Event


def probability(event: Event, link: int) -> float:
    """How sure it is that this link (from 1) was touched."""
    if event.link == link:
        return event.link_probability
    return next((share for other, share in event.links if other == link), 0.0)


def draw_touch(stage: Stage, event: Event | None) -> None:
    """Links by their probability, and the force where it was felt; None: nothing is felt."""
    for link in range(1, stage.robot.dof + 1):
        stage.arm.paint(link, 0.0 if event is None else probability(event, link))
    if event is not None and event.link and event.point is not None and event.force is not None:
        text = f"felt: link {event.link}, {event.force_n or 0.0:.0f} N, {event.link_probability:.0%}"
        stage.felt.show(stage.arm.in_base(event.link, event.point), event.force, text)
    else:
        stage.felt.hide()


def sentence(event: Event, robot: Robot) -> str:
    """An event of an arm in one line of the page."""
    what = f"**{event.kind}** at {event.time_s:.2f} s, joint {event.joint}, {abs(event.torque_nm):.1f} "
    what += robot.unit(event.joint, "Nm")
    if event.link is not None and event.force_n is not None:
        after = "" if event.isolated_s is None else f", told after {event.isolated_s - event.onset_s:.1f} s"
        between = "" if event.force_interval_n is None else " ({:.0f} to {:.0f})".format(*event.force_interval_n)
        what += f": link {event.link} ({event.link_probability:.0%}), {event.force_n:.0f} N{between}{after}"
    elif event.why_no_link:
        what += f": cannot tell which link, {words(link_words(event))}"
    return what + ("" if event.end_s is None else f", ended after {event.end_s - event.onset_s:.1f} s")
