"""The commands about a live arm: doctor, record and calibration listen, dashboard asks and tells."""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tangere.errors import InvalidValue
from tangere.options import add_options, group_from, size_of
from tangere.report.terminal import Bar, paint, wants_colour
from tangere.rtde.consent import OPTION
from tangere.settings import flag, setting, word

if TYPE_CHECKING:
    from tangere.apps.arm.examination import Examination
    from tangere.rtde.client import Address

HOST = "the arm: an IPv4 address, or rtde://HOST[:PORT]"

DOCTOR = """examples:
  tangere doctor 192.168.0.10 --robot ur5e
  tangere doctor 192.168.0.10 --robot ur5e --calibration calibration.yaml --payload 1.2
  tangere doctor 192.168.0.10 --bundle arm.zip      what to send with a question; without serial numbers

Exit code 0: listening works (passive OK), or torque control, too (torque OK); 1: neither. It only listens; it asks
who holds the input registers and gives them back at once. Not a safety function."""
RECORD = """examples:
  tangere record 192.168.0.10 --out free_1.mcap --seconds 60
  tangere record rtde://127.0.0.1 --out log.csv --seconds 10

It only listens: works in local mode and with any version. A lost connection is made anew, and said."""
CALIBRATION = """examples:
  tangere calibration 192.168.0.10 --out calibration.yaml
  tangere doctor 192.168.0.10 --robot ur5e --calibration calibration.yaml
  tangere check ur5e --calibration calibration.yaml"""

DASHBOARD = """examples:
  tangere dashboard 192.168.0.10 robotmode
  tangere dashboard 192.168.0.10 "brake release"    asks for consent: it can move
  tangere dashboard 127.0.0.1 "push joint=2,torque=20,duration=1"
                                                    a virtual arm is pushed; start=5 among it: in 5 s"""


@dataclass(frozen=True)
class DoctorSettings:
    """What is known of an arm that is looked at."""

    robot: str | None = word(None, "the arm it should be, such as ur5e", metavar="NAME")
    calibration: str | None = word(None, "its calibration file (tangere calibration)", metavar="FILE")
    payload: float | None = setting(None, "kg", "what is mounted, if it is known", low=0.0)
    seconds: float = setting(10.0, "s", "how long the rate is measured", low=0.0, above=True)
    json: bool = flag(False, "everything as one JSON object")
    bundle: str | None = word(None, "also write what the ports say and a recording into this file", metavar="FILE.zip")


@dataclass(frozen=True)
class RecordSettings:
    """A recording of a live arm."""

    out: str = word("log.mcap", "the log: .mcap or .csv", metavar="FILE")
    seconds: float = setting(60.0, "s", "how long; Ctrl-C ends it early", low=0.0, above=True)
    robot: str | None = word(None, "the arm, so that viewers show it", metavar="NAME")
    max_log: str | None = word(None, "keep the newest so much only, in FILE and FILE.1", metavar="SIZE")
    durable: bool = flag(False, "the log survives a power cut, too: see docs/reliability.md")


def add(commands: Any) -> None:
    """Add the commands to the parser's."""
    p = commands.add_parser(
        "doctor", help="look at a live arm: what works, what does not, why, and what to do",
        description="Look at a live arm in the order in which things fail: network, ports, version, model, modes,\n"
        "inputs, rate, calibration, payload, torque commands, this computer.", epilog=DOCTOR,
    )  # fmt: skip
    p.add_argument("host", metavar="HOST", help=HOST)
    add_options(p, DoctorSettings)
    p.set_defaults(run=doctor)
    p = commands.add_parser(
        "record", help="record a live arm into a log",
        description="Record joints, currents, torques, targets, payload and modes of a live arm.", epilog=RECORD,
    )  # fmt: skip
    p.add_argument("host", metavar="HOST", help=HOST)
    add_options(p, RecordSettings)
    p.set_defaults(run=record)
    p = commands.add_parser(
        "calibration", help="read the factory calibration of a live arm into a file",
        description="Read the arm's own DH parameters from its controller and write them as calibration.yaml.",
        epilog=CALIBRATION,
    )  # fmt: skip
    p.add_argument("host", metavar="HOST", help=HOST)
    p.add_argument("--out", default="calibration.yaml", metavar="FILE", help="the file (default: calibration.yaml)")
    p.add_argument("--robot", metavar="NAME", help="the arm, where the controller does not say which it drives")
    p.set_defaults(run=calibration)
    p = commands.add_parser(
        "dashboard", help="say a line to the dashboard of a live arm, such as power on",
        description="Say one line to the arm's dashboard (port 29999) and print its answer. PolyScope X has none.",
        epilog=DASHBOARD,
    )  # fmt: skip
    p.add_argument("host", metavar="HOST", help=HOST)
    p.add_argument("line", metavar="LINE", nargs="+", help="as UR's manual of the dashboard has it")
    p.add_argument(OPTION, action="store_true", dest="beside", help="the confirmation of a line that can move the arm")
    p.set_defaults(run=dashboard)


def doctor(arguments: argparse.Namespace) -> int:
    """Look at an arm and tell."""
    from tangere.apps.arm.doctor import examine
    from tangere.rtde.client import address_of

    settings = group_from(DoctorSettings, arguments)
    address = address_of(arguments.host)
    with Bar() as bar:
        seen = examine(
            address, settings.robot, calibration=settings.calibration, payload=settings.payload,
            seconds=settings.seconds, progress=bar,
        )  # fmt: skip
    if settings.bundle is not None:
        _bundle(settings.bundle, address, seen)
    print(json.dumps(seen.record()) if settings.json else _told(seen))
    return 1 if seen.passive_blocked else 0


def record(arguments: argparse.Namespace) -> int:
    """Record an arm."""
    from tangere.apps.arm.record import record as recorded
    from tangere.robots import robot
    from tangere.rtde.client import address_of

    settings = group_from(RecordSettings, arguments)
    arm = None if settings.robot is None else robot(settings.robot)
    with Bar() as bar:
        done = recorded(
            address_of(arguments.host), settings.out, seconds=settings.seconds, robot=arm,
            max_log=size_of(settings.max_log, "--max-log"), durable=settings.durable,
            progress=lambda share: bar(f"recording {arguments.host}", share),
            tell=lambda text: print(f"note: {text}", file=sys.stderr),
        )  # fmt: skip
    lost = "".join(f", {count} {what}" for what, count in done.problems.items())
    print(f"{done.path}: {done.samples} samples, {done.seconds:.1f} s{lost}")
    return 0


def calibration(arguments: argparse.Namespace) -> int:
    """Read a calibration."""
    from tangere.apps.arm.record import calibration as read
    from tangere.rtde.client import address_of

    path, told, name = read(address_of(arguments.host), arguments.out, arguments.robot)
    version = "" if told.version is None else f", PolyScope {'.'.join(map(str, told.version[:3]))}"
    print(f"{path}: calibration of a {name}{version}")
    return 0


def dashboard(arguments: argparse.Namespace) -> int:
    """One line and its answer."""
    from tangere.rtde.client import address_of
    from tangere.rtde.consent import asked
    from tangere.rtde.dashboard import Dashboard, moves

    line, address = " ".join(arguments.line), address_of(arguments.host)
    given = asked(address, arguments.beside) if moves(line) else None
    with Dashboard(address.host, consent=given) as desk:
        print(desk.ask(line))
    return 0


_COLOURS = {"ok": "good", "warning": "heading", "fault": "bad", "skipped": "dim"}


def _told(seen: Examination) -> str:
    colour = wants_colour()
    lines = []
    for one in seen.findings:
        lines.append(f"{paint(f'{one.status:8s}', _COLOURS[one.status], colour)} {one.check}: {one.found}")
        if one.cause:
            lines.append(f"         why: {one.cause}")
        if one.cure:
            lines.append(f"         do:  {one.cure}")
    return "\n".join([*lines, "", f"{seen.host}: {seen.sentence}"])


def _bundle(path: str, address: Address, seen: Examination) -> None:
    """The field kit: the first seconds of every port, a recording, and the verdict; serial numbers are left out."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from tangere.apps.arm.doctor import PORTS
    from tangere.apps.arm.examination import first_bytes
    from tangere.apps.arm.record import record as recorded
    from tangere.logs.files import replacing

    if not path.endswith(".zip"):
        raise InvalidValue(f"--bundle: a file that ends in .zip, got {path!r}")
    with (
        replacing(path) as part, TemporaryDirectory() as folder,
        zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive,
    ):  # fmt: skip
        archive.writestr("doctor.json", json.dumps(seen.record(), indent=1))
        for port, name in PORTS.items():
            archive.writestr(f"port_{port}_{name.replace(' ', '_')}.bin", first_bytes(address, port))
        log = Path(folder) / "recording.mcap"
        recorded(address, log, seconds=10.0)
        archive.write(log, "recording.mcap")
    print(f"{path}: the field kit, without serial numbers", file=sys.stderr)
