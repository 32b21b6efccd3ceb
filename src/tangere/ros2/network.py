"""Where ROS 2 is looked for: domain, network and distribution, from options and from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast
from xml.sax.saxutils import quoteattr

from tangere.errors import InvalidValue, unknown
from tangere.ros2.interfaces import DEFAULT, DISTROS, Distro
from tangere.settings import count, word

LOOPBACK = "127.0.0.1"
DOMAINS = 232  # the highest number whose ports exist
PEERS = 99  # participants on one computer that find each other without multicast
# [bytes] of the largest sample that is sent or taken: an image of 4000 x 4000 pixels in colour has 48 MB
LARGEST = 64_000_000


@dataclass(frozen=True)
class NetworkSettings:
    """Where ROS 2 is."""

    domain: int | None = count(None, "ROS 2 domain, 0 to 232 (default: ROS_DOMAIN_ID, else 0)", metavar="N")
    interface: str = word(
        "lo", "network: lo (this computer only), all, or the name or address of one, such as eth0", metavar="NAME"
    )
    distro: str | None = word(
        None, f"distribution of the others: {', '.join(DISTROS)} (default: ROS_DISTRO, else {DEFAULT})", metavar="NAME"
    )


@dataclass(frozen=True)
class Network:
    """A domain of ROS 2 on a network.

    interface: "lo" stays on this computer, "all" is what ROS 2 does by itself, else the name or address of one. peers:
    addresses that are asked directly, for networks without multicast. own: CYCLONEDDS_URI is set and says it all.
    """

    domain: int = 0
    interface: str = "lo"
    distro: Distro = DEFAULT
    peers: tuple[str, ...] = ()
    own: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.domain <= DOMAINS:
            raise InvalidValue(f"domain: 0 to {DOMAINS}, got {self.domain}")
        if self.distro not in DISTROS:
            raise unknown("distribution of ROS 2", self.distro, DISTROS)

    @property
    def local(self) -> bool:
        """Whether it stays on this computer."""
        return self.interface == "lo" and not self.own

    @property
    def text(self) -> str:
        """Where it is, for a start message."""
        where = {"lo": f"this computer only ({LOOPBACK})", "all": "all networks that ROS 2 takes by itself"}.get(
            self.interface, f"network {self.interface}"
        )
        return f"ROS 2 domain {self.domain}, {'as CYCLONEDDS_URI says' if self.own else where}, as {self.distro}"

    def config(self) -> str:
        """Cyclone DDS's configuration; "" where the user's own holds."""
        if self.own:
            return ""
        general, discovery = "", ""
        peers = list(self.peers)
        if self.local:
            # without multicast everyone on this computer is asked directly, as ROS 2's own range LOCALHOST does it
            general = f"<Interfaces><NetworkInterface address={quoteattr(LOOPBACK)}/></Interfaces>"
            general += "<AllowMulticast>false</AllowMulticast>"
            peers = [LOOPBACK]
        elif self.interface != "all":
            key = "address" if self.interface[0].isdigit() or ":" in self.interface else "name"
            general = f"<Interfaces><NetworkInterface {key}={quoteattr(self.interface)}/></Interfaces>"
        if peers:
            discovery = "<ParticipantIndex>auto</ParticipantIndex>"
            discovery += f"<MaxAutoParticipantIndex>{PEERS}</MaxAutoParticipantIndex>"
            discovery += "<Peers>" + "".join(f"<Peer Address={quoteattr(peer)}/>" for peer in peers) + "</Peers>"
        return (
            f'<CycloneDDS><Domain Id="any"><General>{general}</General><Discovery>{discovery}</Discovery>'
            f"<Internal><MaxSampleSize>{LARGEST} B</MaxSampleSize></Internal></Domain></CycloneDDS>"
        )


def network_of(settings: NetworkSettings, environment: Mapping[str, str] | None = None) -> Network:
    """What was said, else what ROS 2's own variables say, else domain 0 on this computer.

    An interface other than lo is taken only where it is said: a variable that other nodes were given for a network
    (ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET) leads an arm out of this computer only together with --interface.
    """
    env = os.environ if environment is None else environment
    domain = settings.domain
    if domain is None:
        text = env.get("ROS_DOMAIN_ID", "").strip() or "0"
        if not text.isdecimal():
            raise InvalidValue(f"ROS_DOMAIN_ID: a number from 0 to {DOMAINS}, got {text!r}")
        domain = int(text)
    distro = settings.distro
    if distro is None:
        distro = env.get("ROS_DISTRO", "").strip().lower()
        distro = distro if distro in DISTROS else DEFAULT  # of older or newer ones: nearest to the default
    interface = settings.interface.strip()
    if not interface:
        raise InvalidValue("--interface: lo, all, or the name or address of a network interface")
    found = Network(domain, "lo" if interface in ("lo", "localhost", LOOPBACK) else interface, cast(Distro, distro))
    if found.local:
        return found
    peers = tuple(peer for peer in env.get("ROS_STATIC_PEERS", "").replace(",", ";").split(";") if peer.strip())
    return replace(found, peers=peers, own=bool(env.get("CYCLONEDDS_URI")) and interface == "all")
