"""The command virtual: a UR controller on loopback, with one of our plants inside."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count as count_from
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tangere import ends
from tangere.errors import CannotWrite, InvalidValue
from tangere.options import add_foxglove, add_options, group_from
from tangere.settings import count, flag, setting, word

if TYPE_CHECKING:
    from tangere.apps.virtual_ur.controller import Controller
    from tangere.apps.virtual_ur.modes import Profile
    from tangere.loop.foxglove import FoxgloveSink

EXAMPLES = """examples:
  tangere virtual ur5e                                a UR5e on 127.0.0.1, in remote control, brakes released
  tangere virtual ur10e --address 127.0.0.42 --clock fast
  tangere virtual ur5e --draw 7                       an arm with calibration, friction and payload of its own
  tangere virtual ur5e --wall 0.6                     something to touch: contact, force mode
  tangere virtual ur5e --polyscope 5.9.0 --profile remote-off,ethernet-ip

While it runs, `tangere dashboard 127.0.0.1 "push joint=2,torque=20,duration=1"` pushes the arm (start=5: in 5 s).
Clients on this computer find RTDE (30004), dashboard (29999), primary, secondary and realtime interfaces (30001-30003,
read only: 30011-30013) at that address. What is not known of real controllers is listed in the documentation as
modelled. Not a safety function, and no substitute for trying with a real arm."""

NEWEST = {3: 15, 5: 26, 10: 13}  # PolyScope: the newest minor version that anything is known of
PROFILES = {
    "remote-off": "remote control is off: programs are refused",
    "ethernet-ip": "a field bus holds registers 0 to 23 and the speed slider",
    "booting": "the arm is powered off, as after switching on",
}


@dataclass(frozen=True)
class VirtualSettings:
    """A virtual arm."""

    address: str = word("127.0.0.1", "where it listens: 127.0.0.x", metavar="IP")
    polyscope: str | None = word(
        None, "version of the controller's software (default: 5.26.0; 3.15.8 of UR3, UR5, UR10)", metavar="X.Y.Z"
    )  # fmt: skip
    clock: str = word(
        "real", "500 frames a second, as fast as clients read, or one frame for each package of its clients",
        ("real", "fast", "lockstep"),
    )  # fmt: skip
    plant: str = word("mujoco", "what moves: with contacts, or rigid bodies alone", ("mujoco", "rigid"))
    profile: str | None = word(None, f"how it is set up: {', '.join(PROFILES)}; several with commas", metavar="NAMES")
    draw: int | None = count(
        None, "an arm with calibration, friction, noise and payload of its own, by this seed", low=0, metavar="SEED"
    )
    payload: float | None = setting(None, "kg", "mass at the flange that the controller is not told of", low=0.0)
    sensors: str = word("typical", "noise and resolution of what it measures", ("typical", "ideal"))
    start: tuple[float, ...] | None = setting(
        None, "rad", "joints at the start [deg]", typed="deg", size=(6,), metavar="Q1,...,Q6"
    )
    wall: float | None = setting(
        None, "m", "a wall before the arm, at x = this in base axes, and a rod of 10 cm at the flange to touch it with",
        low=0.1, high=3.0, metavar="X",
    )  # fmt: skip
    programs: str | None = word(None, "keep every program that comes, as FOLDER/001.script, ...", metavar="FOLDER")
    seconds: float | None = setting(None, "s", "end by itself after this time of the controller's clock", low=0.0)
    wait_for_ever: bool = flag(False, "lockstep: never step without its clients")
    anywhere: bool = flag(False, "listen on an address that other computers reach, too")


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "virtual",
        help="a virtual UR controller that real clients drive",
        description="A UR controller on this computer: RTDE, dashboard, script ports, and a simulated arm inside that\n"
        "moves under torque commands, too. Ends on Ctrl-C or SIGTERM.",
        epilog=EXAMPLES,
    )
    p.add_argument("robot", metavar="ROBOT", help="the arm, such as ur5e (see `tangere models`)")
    p.add_argument(
        "--push", action="append", default=[], metavar="joint=2,torque=20,start=3,duration=2",
        help="something pushes, start counts from the beginning; may be given several times",
    )  # fmt: skip
    add_foxglove(p)
    p.add_argument("--bench", action="store_true", help="measure how many frames a second it can do, and end")
    p.add_argument("--json", action="store_true", help="with --bench: the figures as JSON")
    add_options(p, VirtualSettings)
    p.set_defaults(run=main, detached=True)  # a server may outlive the shell that started it


def main(arguments: argparse.Namespace) -> int:
    """Serve until told to end."""
    with suppress(KeyboardInterrupt):  # a signal is the usual end, while it starts, too
        _serve(arguments)
    return 0


def _serve(arguments: argparse.Namespace) -> None:
    settings = group_from(VirtualSettings, arguments)
    faces = [face(arguments) for face in getattr(arguments, "faces", ())]  # of rooms above this one, such as ROS 2
    import numpy as np

    from tangere.apps.virtual_ur.controller import Controller
    from tangere.apps.virtual_ur.inside import Drawn, Inside
    from tangere.apps.virtual_ur.server import PORTS, Server
    from tangere.loop.foxglove import sink_of
    from tangere.model.loading import load
    from tangere.plants.pushes import pushes_of

    model = load(arguments.robot)
    polyscope = polyscope_of(model.name, settings.polyscope)
    profile = profile_of(polyscope, settings.profile)
    if arguments.bench:
        from tangere.apps.virtual_ur.bench import measured, text

        found = measured(model, settings.address)
        print(json.dumps(found) if arguments.json else text(found))
        return
    inside = Inside(
        model, plant=settings.plant, drawn=Drawn(settings.draw),  # type: ignore[arg-type]
        frame=2e-3 if profile.e_series else 8e-3, q=None if settings.start is None else np.array(settings.start),
        sensors=settings.sensors == "typical", payload=settings.payload, wall=settings.wall,
    )  # fmt: skip
    for push in pushes_of(arguments.push):
        inside.plant.push(push)
    controller = Controller(inside, profile, name=model.name)
    if settings.programs is not None:
        controller.keep = keeper(Path(settings.programs), lambda why: controller.tell("text", why, 0))
    server = Server(
        controller, settings.address, clock=settings.clock,  # type: ignore[arg-type]
        wait_for_ever=settings.wait_for_ever, anywhere=settings.anywhere,
    )  # fmt: skip
    if settings.anywhere:
        print("warning: other computers can reach this arm and upload programs to it", file=sys.stderr)
    ports = ", ".join(map(str, sorted(PORTS)))
    shown = sink_of(arguments.foxglove, lambda text: print(text, flush=True))
    mode = f"{controller.robot_mode_name}{'' if controller.remote else ', remote control off'}"
    try:
        if shown is not None:
            server.faces.append(Shown(controller, shown))
        for begin in filter(None, faces):
            begin(server)
        print(
            f"ready {model.name} at {settings.address}: PolyScope {polyscope}, {mode}, "
            f"clock {settings.clock}, ports {ports}",
            flush=True,
        )
        end = float("inf") if settings.seconds is None else controller.time + settings.seconds
        with ends.in_periods() as heard:
            server.serve(lambda: heard.take() is not None or controller.time >= end)
    finally:
        server.close()
        inside.close()


class Shown:
    """The arm in Foxglove, as a face of the controller."""

    def __init__(self, controller: Controller, sink: FoxgloveSink) -> None:
        from tangere.loop.sinks import Feed, RunInfo
        from tangere.types import Reference

        robot = controller.inside.belief
        joints = tuple(joint.name for joint in robot.model.joints)
        self._controller, self._reference = controller, Reference
        self._feed = Feed(sink, RunInfo(controller.frame, robot.dof, {}, robot, joints))

    def frame(self) -> None:
        """Hand the frame's sample on."""
        c = self._controller
        state = replace(c.inside.state, time=c.time)
        self._feed.row(state, None, None, self._reference(c.setpoint.q, c.setpoint.qd, c.setpoint.qdd), None)

    def close(self) -> None:
        """Stop listening."""
        self._feed.close(None)


def keeper(folder: Path, tell: Callable[[str], None]) -> Callable[[str], None]:
    """What keeps programs as folder/001.script, ...: those of an earlier arm stay, and a full disk stops no arm."""
    from tangere.logs.files import write_text

    folder.mkdir(parents=True, exist_ok=True)
    numbers = count_from(1)

    def keep(text: str) -> None:
        file = next(file for number in numbers if not (file := folder / f"{number:03d}.script").exists())
        try:
            write_text(file, text)
        except CannotWrite as problem:
            tell(str(problem))

    return keep


def polyscope_of(arm: str, given: str | None) -> str:
    """The version of PolyScope: as given, where it drives that arm; else the newest of the arm's series."""
    from tangere.rtde.primary import older

    old = older(arm)
    if given is None:
        return "3.15.8" if old else "5.26.0"
    if arm.startswith("ur") and given.startswith("3.") is not old:
        raise InvalidValue(
            f"--polyscope: PolyScope 3 drives UR3, UR5 and UR10, 5 and 10 drive the other arms; got {given} for {arm}"
        )
    return given


def profile_of(polyscope: str, names: str | None) -> Profile:
    """A profile by version and the words of --profile."""
    from tangere.apps.virtual_ur.modes import Profile

    found = re.fullmatch(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?(?:\.(\d{1,9}))?", polyscope)
    if found is None:
        raise InvalidValue(f"--polyscope: a version such as 5.26.0, got {polyscope!r}")
    major, minor, bugfix, build = (int(part or 0) for part in found.groups())
    if major not in NEWEST:
        raise InvalidValue(f"--polyscope: 3.x, 5.x or 10.x, got {polyscope!r}")
    if minor > NEWEST[major]:
        known = f"it behaves as {major}.{NEWEST[major]}, the newest known"
        print(f"note: nothing is known of PolyScope {polyscope}; {known}", file=sys.stderr)
    words = [word.strip() for word in (names or "").split(",") if word.strip()]
    for one in words:
        if one not in PROFILES:
            raise InvalidValue(f"--profile: unknown {one!r}; known: {', '.join(PROFILES)}")
    return Profile((major, minor, bugfix, build), "remote-off" not in words, "ethernet-ip" in words, "booting" in words)
