"""What ROS 2 adds to the command virtual: the arm as a robot of ROS 2."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from tangere.errors import InvalidValue
from tangere.foreign import line
from tangere.options import add_options, group_from, refuse_foreign
from tangere.ros2.network import NetworkSettings, network_of


def add(commands: Any) -> None:
    """Add the options to `virtual`, where that is among the commands."""
    virtual = commands.choices.get("virtual")
    if virtual is None:
        return
    group = virtual.add_argument_group("ROS 2", "The arm as a robot of ROS 2, which need not be installed.")
    group.add_argument("--ros2", action="store_true", help="publish and take what a ROS 2 robot does")
    add_options(group, NetworkSettings)
    virtual.set_defaults(faces=(*(virtual.get_default("faces") or ()), _virtual))


def _virtual(arguments: argparse.Namespace) -> Callable[[Any], None] | None:
    """What gives a server its face towards ROS 2, where that is wanted; wrong options are said before there is one."""
    if not arguments.ros2:
        refuse_foreign(NetworkSettings, arguments, "goes with --ros2")
        return None
    network = network_of(group_from(NetworkSettings, arguments))
    if not network.local and not arguments.anywhere:
        raise InvalidValue("--interface: other computers would reach the arm; give --anywhere, too, if that is meant")

    def begin(server: Any) -> None:
        from tangere.ros2.arm_node import ArmNode
        from tangere.ros2.node import Node

        def tell(reason: str) -> None:
            print(f"note: ROS 2: {line(reason)}", file=sys.stderr, flush=True)

        ArmNode(server, Node("tangere", network), tell=tell)
        print(f"{network.text}: node /tangere", flush=True)

    return begin
