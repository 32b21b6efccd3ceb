"""Names of ROS 2 and what DDS calls them."""

from __future__ import annotations

import re

from tangere.errors import InvalidValue

_FULL = re.compile(r"(/[A-Za-z_][A-Za-z0-9_]*)+")
_NODE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def full(name: str, namespace: str = "/") -> str:
    """A name with its leading slash; one without is taken to be in the namespace. Refused where ROS 2 refuses it."""
    found = name if name.startswith("/") else f"{namespace.rstrip('/')}/{name}"
    if not _FULL.fullmatch(found) or "__" in found:
        raise InvalidValue(
            f"{name!r} is no name of ROS 2: letters, digits and _ between slashes, no digit first, no __, no slash last"
        )
    return found


def node(name: str) -> str:
    """The name of a node, checked."""
    if not _NODE.fullmatch(name) or len(name) > 255:
        raise InvalidValue(f"{name!r} is no name of a node: letters, digits and _, no digit first")
    return name


def namespace(name: str) -> str:
    """A namespace, / by default, checked."""
    return "/" if name in ("", "/") else full(name if name.startswith("/") else f"/{name}")


def topic(name: str) -> str:
    """DDS topic of a topic's full name."""
    return f"rt{name}"


def request(name: str) -> str:
    """DDS topic of a service's requests."""
    return f"rq{name}Request"


def reply(name: str) -> str:
    """DDS topic of a service's replies."""
    return f"rr{name}Reply"


def dds_type(name: str) -> str:
    """sensor_msgs::msg::dds_::JointState_ of sensor_msgs/msg/JointState."""
    package, _, own = name.rpartition("/")
    return f"{package.replace('/', '::')}::dds_::{own}_"
