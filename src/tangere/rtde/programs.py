"""Programs that we send to a controller, and what it says about them: the primary interface, written to."""

from __future__ import annotations

import select
import struct
import time

from tangere.errors import PlantLost
from tangere.rtde import primary
from tangere.rtde.client import WAIT, Address, Rtde, connect
from tangere.rtde.consent import Consent, permit
from tangere.rtde.wire import ProtocolError

RUNNING = 2  # runtime_state of a controller that runs a program
STARTING = 10.0  # [s] that a program may take to run, once it was sent: a second on a busy computer, ten on a hung one


def send(address: Address, text: str, consent: Consent | None = None) -> None:
    """Let a controller run a program, and let go when it has begun. PlantLost says why where it did not."""
    programs = Programs(address, consent)
    try:
        with Rtde(address.host, address.port) as listening:
            listening.outputs(("runtime_state",))
            listening.start()
            programs.send(text)
            deadline = time.monotonic() + STARTING
            while time.monotonic() < deadline and not programs.said():
                values, _ = listening.newest()
                if values is not None and values["runtime_state"] == RUNNING:
                    return
        why = programs.said() or "is it in remote control, with its brakes released? (tangere doctor says more)"
        raise PlantLost(f"{address.host} did not run the program: {why}")
    finally:
        programs.close()


class Programs:
    """A connection that takes URScript. Every program needs consent where the arm is not on this computer."""

    def __init__(self, address: Address, consent: Consent | None = None, *, wait: float = WAIT) -> None:
        self.address, self._consent = address, consent
        self._sock = connect(address.host, primary.PORT, wait)
        self._messages = primary.Messages()
        self._heard: list[str] = []
        self._head = 0

    def send(self, text: str, head: int = 0) -> None:
        """Run a program; it replaces the one that runs, unless it is a `sec`. PlantLost: the connection is gone.

        head: lines before those that the user knows; errors count from there.
        """
        permit(self.address, self._consent, "a program")
        self.said()
        self._heard.clear()
        self._head = head
        try:
            self._sock.sendall(text.rstrip("\n").encode() + b"\n")
        except OSError as error:
            why = error.strerror or error
            raise PlantLost(f"the primary interface of {self.address.host} is gone: {why}") from None

    def said(self, wait: float = 0.0) -> str:
        """What the controller has said since the last program was sent: runtime errors, text messages; "": nothing.

        wait [s]: for the first of it.
        """
        end = time.monotonic() + wait
        try:
            while select.select([self._sock], [], [], 0.0 if self._heard else max(0.0, end - time.monotonic()))[0]:
                chunk = self._sock.recv(1 << 16)
                if not chunk:
                    break
                for kind, content in self._messages.feed(chunk):
                    if kind == primary.Kind.ROBOT:
                        self._hear(content)
        except (OSError, ProtocolError):
            pass
        return "; ".join(dict.fromkeys(self._heard))

    def _hear(self, content: bytes) -> None:
        """Content of a robot message: 8 bytes of time, source, kind, and what belongs to the kind."""
        if len(content) > 18 and content[9] == primary.Note.EXCEPTION:
            line = struct.unpack_from(">i", content, 10)[0] - self._head
            where = f"line {line}: " if line > 0 else ""
            self._heard.append(where + content[18:].decode("utf-8", "replace").strip("\0 "))
        elif len(content) > 10 and content[9] == primary.Note.TEXT:
            self._heard.append(content[10:].decode("utf-8", "replace").strip("\0 "))

    def close(self) -> None:
        """End the connection; may be called twice. A program that runs goes on."""
        self._sock.close()
