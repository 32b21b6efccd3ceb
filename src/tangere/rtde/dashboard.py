"""The dashboard server of a controller (port 29999): one line of text asks, one line answers."""

from __future__ import annotations

from tangere import foreign
from tangere.errors import InvalidValue, PlantLost
from tangere.rtde.client import WAIT, Address, connect
from tangere.rtde.consent import Consent, permit

PORT = 29999
ANSWER_BYTES = 4096  # [bytes] of one answer; a longer line is no answer of a dashboard
# commands that can lead to motion, or that take the arm out of service
MOVING = ("power on", "brake release", "play", "unlock protective stop", "restart safety", "load", "shutdown")


def moves(command: str) -> bool:
    """Whether a command can lead to motion. Blanks do not count: a controller may take `brakerelease`, too."""
    word = "".join(command.casefold().split())
    return any(word.startswith(moving.replace(" ", "")) for moving in MOVING)


class Dashboard:
    """One connection to the dashboard. A context manager. PolyScope X has none.

    consent: for commands that can lead to motion, where the arm is not on this computer (tangere.consent).
    """

    def __init__(self, host: str, port: int = PORT, *, wait: float = WAIT, consent: Consent | None = None) -> None:
        self.host, self._consent = host, consent
        self._sock = connect(host, port, wait)
        self._rest = b""
        self.greeting = self._line()

    def ask(self, command: str) -> str:
        """The answer to one command. InvalidValue for more than a line: what stands behind it would be asked, too."""
        if not command.strip().isprintable():
            raise InvalidValue(f"a command of the dashboard is one line of text, got {command[:80]!r}")
        if moves(command):
            permit(Address(self.host), self._consent, f"`{' '.join(command.casefold().split())}`")
        try:
            self._sock.sendall(command.strip().encode() + b"\n")
        except OSError as error:
            raise PlantLost(f"the dashboard of {self.host} is gone: {error.strerror or error}") from None
        return self._line()

    def word(self, command: str) -> str:
        """The answer behind its colon, or the whole: `robotmode` -> RUNNING."""
        return self.ask(command).rpartition(": ")[2].strip()

    def close(self) -> None:
        """End the connection; may be called twice."""
        self._sock.close()

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _line(self) -> str:
        while b"\n" not in self._rest:
            try:
                chunk = self._sock.recv(4096)
            except TimeoutError:
                raise PlantLost(f"the dashboard of {self.host} does not answer") from None
            except OSError as error:
                raise PlantLost(f"the dashboard of {self.host} is gone: {error.strerror or error}") from None
            if not chunk:
                raise PlantLost(f"{self.host} closed the dashboard's connection")
            self._rest += chunk
            if len(self._rest) > ANSWER_BYTES:
                raise PlantLost(f"{self.host}: what answers on the dashboard's port is no dashboard")
        line, _, self._rest = self._rest.partition(b"\n")
        return foreign.clean(line.decode("utf-8", "replace").strip())
