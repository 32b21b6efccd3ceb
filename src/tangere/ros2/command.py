"""The command ros2: nodes of ROS 2 where ROS 2 is not installed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tangere import foreign
from tangere.errors import InvalidValue, TangereError
from tangere.options import add_options, group_from
from tangere.ros2.network import Network, NetworkSettings, network_of
from tangere.settings import numbers

if TYPE_CHECKING:
    from tangere.ros2.draw import DrawNode
    from tangere.ros2.node import Node
    from tangere.types import Event

EXAMPLES = """examples:
  tangere ros2 watch --robot ur5e                     feel: reads /joint_states, publishes /tangere/touch
  tangere virtual ur5e --ros2                         a robot: /joint_states, /tf, trajectories, torques, touch
  tangere ros2 ik --robot ur5e                        poses on /tangere/path or /tangere/target_pose -> joint targets
  tangere ros2 draw snail --out drawn.svg             a picture -> /tangere/path; with the two above a drawing arm
  tangere ros2 package ~/ws/src                       messages, launch file and examples for a ROS 2 workspace

Nodes stay on this computer unless --interface says otherwise; `ros2 topic list` in the same domain shows them.
Topics work with every middleware on DDS; services and actions with rmw_cyclonedds_cpp only.
Tried with Fast DDS and Cyclone DDS as peers, not with ROS 2 itself (docs/ros2.md). Not a safety function."""
DRAW_OPTIONS = ("robot", "size", "canvas", "style", "speed", "margin", "place", "tolerance")  # of a drawing


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    p = commands.add_parser(
        "ros2",
        help="nodes of ROS 2, which need not be installed",
        description="Nodes of ROS 2 for touch, inverse kinematics and drawing, on Cyclone DDS (pip install "
        "'tangere[ros2]').",
        epilog=EXAMPLES,
    )
    p.set_defaults(run=lambda arguments: p.print_help() or 0)
    kinds = p.add_subparsers(title="nodes", metavar="NODE")
    _add_watch(kinds)
    _add_draw(kinds)
    _add_ik(kinds)
    _add_package(kinds)


def _node(name: str, arguments: argparse.Namespace) -> tuple[Node, Network]:
    from tangere.ros2.node import Node

    network = network_of(group_from(NetworkSettings, arguments))
    return Node(name, network), network


def _ready(network: Network, name: str) -> None:
    print(f"ready {network.text}: node /{name}", flush=True)


def _serve(seconds: float | None, going: Callable[[], bool] = lambda: True) -> None:
    """Until the end of the time, or of what it does."""
    deadline = float("inf") if seconds is None else time.monotonic() + seconds
    while going() and time.monotonic() < deadline:
        time.sleep(0.05)


def _seconds(arguments: argparse.Namespace) -> float | None:
    return None if arguments.seconds is None else numbers(arguments.seconds, "--seconds", "s", (1,))[0]


# ------------------------------------------------------------------------------------------------------------- watch


def _add_watch(kinds: Any) -> None:
    from tangere.apps.touch.options import RecordedArm

    p = kinds.add_parser(
        "watch",
        help="feel touches in anybody's /joint_states with effort",
        description="Read joint states with efforts, of any robot of ROS 2, and publish what touched it as\n"
        "tangere_msgs/msg/Touch on /tangere/touch (the .msg file: `tangere ros2 package`).",
        epilog="examples:\n  tangere ros2 watch --robot ur5e\n"
        "  tangere ros2 watch --robot ur5e --model tuned.toml --json\n"
        "  tangere ros2 watch --robot ur10e --effort current      UR's driver before 2026: motor current in ampere\n\n"
        "effort: the whole joint torque in Nm, gravity included, or the motor's current. Not a safety function.",
    )
    add_options(p, RecordedArm, ("robot", "payload", "gravity"))
    p.add_argument("--model", metavar="FILE", help="a model file of `tangere identify` or `tangere tune`")
    p.add_argument("--topic", default="/joint_states", metavar="NAME", help="what to read (default: /joint_states)")
    p.add_argument(
        "--effort", choices=("torque", "current"), default="torque", help="what efforts are (default: torque)"
    )
    p.add_argument("--json", action="store_true", help="one JSON object per line and event instead of a table")
    p.add_argument("--log", metavar="FILE.mcap", help="record samples, residual and events, too")
    p.add_argument("--seconds", metavar="S", help="end after this time")
    add_options(p, NetworkSettings)
    p.set_defaults(run=_watch, text_is_all=True)


def _watch(arguments: argparse.Namespace) -> int:
    from tangere.apps.touch.event_table import HEAD, cells, json_line, stream_line
    from tangere.apps.touch.options import arm_of, model_of, tell
    from tangere.identification.belief import belief
    from tangere.ros2.touching import WatchNode

    arm, payload = arm_of(arguments)
    believed = belief(arm, model_of(arguments, arm), payload=payload)
    seconds = _seconds(arguments)
    node, network = _node("tangere_watch", arguments)
    name = arguments.topic

    def told(event: Event) -> None:
        first = watching.watch.follower.first
        if arguments.json:
            json_line(event, name, first, event.phase)
        else:
            print(stream_line(event.phase, cells(event, first, arm)), flush=True)

    with node:
        watching = WatchNode(
            node, arm, believed, topic=name, effort=arguments.effort, tell=told, log=arguments.log
        )  # fmt: skip
        try:
            with suppress(KeyboardInterrupt):  # the usual end of watching
                if not arguments.json:
                    _ready(network, node.name)
                    print(stream_line("", HEAD), flush=True)
                watching.wait()
                _serve(seconds, lambda: watching.watch.alive)
        finally:
            watching.close()
            tell(name, [*watching.watch.follower.said])
            counted = watching.problems + watching.watch.rows.problems
            tell(name, [f"{count} {what}" for what, count in counted.items()])
    if watching.watch.error and watching.used:
        raise TangereError(watching.watch.error)
    return 0


# ----------------------------------------------------------------------------------------------------------- ik, draw


def _add_ik(kinds: Any) -> None:
    p = kinds.add_parser(
        "ik",
        help="poses in, joint targets out",
        description="Inverse kinematics: a nav_msgs/Path on /tangere/path (each pose with its stamp) or a PoseStamped\n"
        "on /tangere/target_pose, of tool0 in base or base_link, becomes a JointTrajectory for the arm.",
        epilog="examples:\n  tangere ros2 ik --robot ur5e\n"
        "  tangere ros2 ik --robot ur10e --controller scaled_joint_trajectory_controller",
    )
    p.add_argument("--robot", required=True, metavar="NAME|FILE", help="the arm")
    p.add_argument(
        "--controller", default="joint_trajectory_controller", metavar="NAME",
        help="whose topic joint_trajectory is published (default: joint_trajectory_controller)",
    )  # fmt: skip
    p.add_argument("--seconds", metavar="S", help="end after this time")
    add_options(p, NetworkSettings)
    p.set_defaults(run=_ik)


def _ik(arguments: argparse.Namespace) -> int:
    from tangere.robots import robot
    from tangere.ros2.ik import IkNode

    arm = robot(arguments.robot)
    seconds = _seconds(arguments)
    node, network = _node("tangere_ik", arguments)
    with node:
        IkNode(node, arm, controller=arguments.controller, tell=lambda text: print(text, flush=True))
        with suppress(KeyboardInterrupt):
            _ready(network, node.name)
            _serve(seconds)
        for what, count in node.problems.items():
            print(f"note: {count} {what}", file=sys.stderr)
    return 0


def _add_draw(kinds: Any) -> None:
    from tangere.apps.drawing.settings import DrawingSettings

    p = kinds.add_parser(
        "draw",
        help="a picture, from a file or as a message, becomes the path of a pen",
        description="Trace a picture and publish the pen's way as nav_msgs/Path on /tangere/path, for `tangere ros2 "
        "ik`.\nWithout PICTURE it waits for sensor_msgs/Image on /image.",
        epilog="examples: three processes, one robot that draws\n  tangere virtual ur5e --ros2\n"
        "  tangere ros2 ik --robot ur5e\n  tangere ros2 draw snail --size 100mm --out drawn.svg\n\n"
        "The paper is where --canvas says; the pen is 100 mm long, along the flange. Nothing is pressed: the arm is\n"
        "moved in position. `tangere draw` presses with a force.",
    )
    p.add_argument("picture", nargs="?", metavar="PICTURE", help="a picture file, or the name of one that ships")
    p.add_argument("--out", metavar="FILE.svg", help="follow the arm and write what it drew")
    p.add_argument("--pictures", type=int, metavar="N", help="without PICTURE: end after so many")
    add_options(p, DrawingSettings, DRAW_OPTIONS)
    add_options(p, NetworkSettings)
    p.set_defaults(run=_draw)


def _draw(arguments: argparse.Namespace) -> int:
    from tangere.apps.drawing.settings import DrawingSettings
    from tangere.ros2.draw import DrawNode

    settings = group_from(DrawingSettings, arguments)
    if arguments.out is not None and Path(arguments.out).suffix != ".svg":
        raise InvalidValue(f"--out: a file that ends in .svg, got {arguments.out!r}")
    if arguments.picture is not None and arguments.pictures is not None:
        raise InvalidValue("--pictures: goes without PICTURE, for those that come as messages")
    node, network = _node("tangere_draw", arguments)
    with node:
        drawing = DrawNode(node, settings, listen=arguments.picture is None)
        if arguments.picture is not None:
            _ready(network, node.name)
            _draw_one(drawing, arguments.picture, arguments.out)
            return 0
        left = float("inf") if arguments.pictures is None else arguments.pictures

        def going() -> bool:
            nonlocal left
            message = drawing.picture(0.2)
            if message is not None:
                try:
                    _draw_one(drawing, message, arguments.out)
                    left -= 1
                except TangereError as problem:  # of this picture; another may come
                    print(f"note: {problem}", file=sys.stderr, flush=True)
            return left > 0

        with suppress(KeyboardInterrupt):
            _ready(network, node.name)
            _serve(None, going)
    return 0


def _draw_one(drawing: DrawNode, picture: Any, out: str | None) -> None:
    from tangere.apps.drawing.files import write_svg
    from tangere.apps.drawing.strokes.strokes import Strokes

    prepared = drawing.plan(picture)
    for text in prepared.notes:
        print(f"note: {text}", file=sys.stderr)
    count = drawing.send(prepared, follow=out is not None)
    print(f"{len(prepared.strokes)} strokes, {count} poses, {prepared.plan.duration:.1f} s", flush=True)
    if out is not None:
        done = drawing.drawn(prepared)
        write_svg(Strokes(done.lines, prepared.canvas.size), out)
        print(
            f"drawn: {done.length:.3f} m of ink in {len(done.lines)} lines, at most {1e3 * done.astray:.2f} mm from "
            f"the plan, which is at most {1e3 * done.missing:.2f} mm from the ink; {out}",
            flush=True,
        )


# ------------------------------------------------------------------------------------------------------------ package


def _add_package(kinds: Any) -> None:
    p = kinds.add_parser(
        "package",
        help="packages for a ROS 2 workspace: messages, launch file, examples",
        description="Copy the packages tangere_msgs (Touch.msg) and tangere_ros2 (launch file, ros2_control "
        "description,\nrclpy example, Dockerfile) into a folder, such as the src of a workspace.",
        epilog="examples:\n  tangere ros2 package ~/ws/src\n  cd ~/ws && colcon build && . install/setup.bash",
    )
    p.add_argument("folder", metavar="FOLDER", help="where to; packages that are there already are not overwritten")
    p.set_defaults(run=_package)


def _copied(source: str, target: str) -> str:
    """A file of ours in a workspace: programs of ROS 2 lie here as NAME.in, since they are none of this package's."""
    import shutil

    return str(shutil.copyfile(source, target.removesuffix(".in")))


def _package(arguments: argparse.Namespace) -> int:
    import shutil
    from tempfile import TemporaryDirectory

    from tangere.ros2.interfaces import SHARE

    folder = Path(arguments.folder).expanduser()
    packages = sorted(path for path in SHARE.iterdir() if path.is_dir())
    taken = [path.name for path in packages if (folder / path.name).exists()]
    if taken:
        raise InvalidValue(f"{folder}: {' and '.join(taken)} is there already; remove it first, or name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=folder) as part:  # a full disk leaves no half package behind
            for path in packages:
                shutil.copytree(path, Path(part) / path.name, copy_function=_copied)
            for path in packages:
                (Path(part) / path.name).rename(folder / path.name)
                print(folder / path.name)
    except shutil.Error as problem:  # a list of (from, to, why)
        raise TangereError(f"{folder}: {foreign.clean(str(problem.args[0][0][-1]))}") from None
    except OSError as problem:
        raise TangereError(f"{folder}: {problem.strerror or problem}") from None
    return 0
