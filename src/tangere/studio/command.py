"""The command studio: an arm in the browser that can be touched."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Any

from tangere.errors import InvalidValue
from tangere.options import add_options, group_from
from tangere.studio.settings import WorldSettings

EXAMPLES = """examples:
  tangere studio                                      a UR10e: grab a link with the mouse and pull
  tangere studio --robot ur5e --reaction retreat      a UR5e that backs off when it is touched
  tangere studio --log pulled.mcap                    keeps what is done by hand as a log
  tangere studio out/run                              a run again: timeline, events, curves
  tangere studio log.csv --robot ur3e --ghost out/run a recording, and another run beside it
  tangere studio rtde://192.168.0.10                  an arm, watched with its sense of touch, never moved
  tangere studio export out/run --out run.html        one page of a run, which opens without a server

The page is for this computer only: nobody else can open it. Ends on Ctrl-C or SIGTERM."""


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "studio",
        help="an arm in the browser that can be touched",
        description="A simulated arm in the browser, under torque control and in real time: pull it with the mouse,\n"
        "see what it feels, change gains, payload and friction while it runs. With RUN or LOG: that again, on a\n"
        "timeline. `export RUN --out FILE.html` writes one page that opens without a server.",
        epilog=EXAMPLES,
    )
    p.add_argument("source", nargs="?", metavar="RUN|LOG|rtde://HOST",
                   help="a run's folder, a log (.mcap, .db3, .csv, .npz:KEY), or an arm to watch")  # fmt: skip
    p.add_argument("of", nargs="?", metavar="RUN", help="after `export`: what is exported")
    p.add_argument("--out", metavar="FILE.html", help="with `export`: the page that is written")
    p.add_argument("--ghost", metavar="RUN|LOG", help="with RUN or LOG: another one in the same scene")
    p.add_argument("--columns", metavar="LIST", help="of a csv without header or an npz, such as t,q,qd,current")
    p.add_argument("--rate", metavar="HZ", help="samples per second, for a log without stamps")
    p.add_argument("--port", type=int, metavar="N", help="of the page; refused if taken (default: the next free one)")
    p.add_argument("--no-browser", action="store_true", help="print the address and open nothing")
    p.add_argument("--log", metavar="FILE.mcap", help="keep the run, with all that was done by hand")
    p.add_argument("--meshes", metavar="FOLDER",
                   help="UR's package ur_description: its meshes in place of our shapes")  # fmt: skip
    p.add_argument("--dark", action="store_true", help="a dark page")
    add_options(p, WorldSettings)
    p.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    """Serve the page until told to end, or write one."""
    if arguments.source == "export":
        return _export(arguments)
    if arguments.of is not None or arguments.out is not None:
        raise InvalidValue("a second RUN and --out belong to `tangere studio export RUN --out FILE.html`")
    if arguments.source is None and arguments.ghost is not None:
        raise InvalidValue("--ghost: stands beside a RUN or LOG, which is missing")
    stop = threading.Event()
    settings = group_from(WorldSettings, arguments)
    if arguments.log is not None and Path(arguments.log).suffix != ".mcap":
        raise InvalidValue(f"--log: a file that ends with .mcap, got {arguments.log!r}")
    from tangere.studio.door import address, free_port, guarded_server
    from tangere.studio.door import stop as stop_server

    free_port(arguments.port)  # a port that is taken is said before anything else is begun
    live = address_of_arm(arguments.source)
    if live is not None and arguments.ghost is not None:
        raise InvalidValue("--ghost: stands beside a RUN or LOG, not beside a live arm")
    prepared = None if live is not None else _recordings(arguments)
    server, door, body = None, None, None
    page: Any = None
    look: dict[str, Any] = {"dark": arguments.dark, "meshes": arguments.meshes}
    try:
        if live is None and prepared is None:
            from tangere.studio.body import Body

            body = Body(settings, log=arguments.log)  # it starts while the page's library is being read
        server, door = guarded_server(arguments.port)
        if live is not None:
            from tangere.studio.watched import WatchedPage

            page = WatchedPage(server, live, arguments.robot, **look)
        elif prepared is None:
            from tangere.studio.live import LivePage

            page = LivePage(server, settings, body=body, **look)
        else:
            from tangere.studio.replay import ReplayPage

            page = ReplayPage(server, *prepared, **look)
        with suppress(KeyboardInterrupt):  # a signal is the usual end
            where = address(server, door)
            print(f"studio at {where}", flush=True)
            if not arguments.no_browser and not open_browser(where):
                print("no browser could be opened; open the address above by hand", file=sys.stderr)
            page.work(stop)
            raise InvalidValue("the simulation ended by itself; what it said is above")
    finally:
        stop.set()
        for begun in (page, body):  # a page ends its body; what had no page yet ends by itself
            if begun is not None:
                begun.close()
        if server is not None:
            stop_server(server)
    return 0


def _recordings(arguments: argparse.Namespace) -> tuple[Any, ...] | None:
    """What is replayed, with its ghost; None: an arm is simulated."""
    if arguments.source is None:
        return None
    from tangere.apps.touch.options import sample_rate
    from tangere.report.terminal import Bar
    from tangere.studio.recorded import recorded

    told = [arguments.source] if arguments.ghost is None else [arguments.source, arguments.ghost]
    how = {"columns": arguments.columns, "rate": sample_rate(arguments.rate, "--rate")}
    with Bar() as bar:
        return tuple(recorded(source, arguments.robot, bar, **how) for source in told)


def address_of_arm(source: str | None) -> Any:
    """The live arm that is meant; None: a run, a log, or nothing."""
    from tangere.rtde.client import address

    return None if source is None else address(source)


def _export(arguments: argparse.Namespace) -> int:
    if arguments.of is None or arguments.out is None:
        raise InvalidValue("export: say what and where to, as in `tangere studio export out/run --out run.html`")
    from tangere.studio.recorded import export

    print(export(arguments.of, arguments.out, arguments.robot))
    return 0


def open_browser(where: str) -> bool:
    """Whether a browser took the address."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False  # a browser of the terminal would take the terminal
    try:
        return webbrowser.open(where)
    except webbrowser.Error:
        return False
