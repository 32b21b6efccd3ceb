"""What was found on a live arm, and the verdict; small helpers of the doctor."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tangere.errors import PlantLost
from tangere.rtde.client import Address, connect
from tangere.rtde.wire import ProtocolError

Status = Literal["ok", "warning", "fault", "skipped"]


@dataclass(frozen=True)
class Finding:
    """One check: what was found, why it may be so, what to do."""

    check: str
    status: Status
    found: str
    cause: str = ""
    cure: str = ""
    kind: str = ""  # a word for programs: remote_off, inputs_taken, old_version, wrong_model, wrong_payload, ...


@dataclass
class Examination:
    """Everything that was found, and the verdict."""

    host: str
    findings: list[Finding] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    torque_blocked: list[str] = field(default_factory=list)
    passive_blocked: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """In three words at most."""
        return "not OK" if self.passive_blocked else "passive OK" if self.torque_blocked else "torque OK"

    @property
    def sentence(self) -> str:
        """The verdict, and what stands in the way of more."""
        where = self.passive_blocked or self.torque_blocked
        what = "listening" if self.passive_blocked else "torque control"
        return self.verdict + (f"; in the way of {what}: {', '.join(dict.fromkeys(where))}" if where else "")

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "host": self.host,
            "verdict": self.verdict,
            "findings": [asdict(one) for one in self.findings],
            "problems": [one.kind for one in self.findings if one.kind],
            "figures": self.figures,
        }


def first_line(path: Path) -> str:
    try:
        return path.read_text().splitlines()[0]
    except (OSError, IndexError):
        return ""


def first_bytes(address: Address, port: int, seconds: float = 5.0) -> bytes:
    """What a port sends by itself in its first seconds, at most 4 MB; empty where it is closed."""
    got = b""
    try:
        with connect(address.host, port, 2.0) as sock:
            deadline = time.monotonic() + seconds
            while (left := deadline - time.monotonic()) > 0 and len(got) < 1 << 22:
                sock.settimeout(left)
                try:
                    chunk = sock.recv(1 << 16)
                except TimeoutError:
                    break
                if not chunk:
                    break
                got += chunk
    except (PlantLost, ProtocolError, OSError):
        pass
    return got
