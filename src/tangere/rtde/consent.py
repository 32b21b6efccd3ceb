"""The one rule about arms that can hurt somebody: outside this computer nothing moves without a person's word.

Whatever can move an arm asks `permit` first: torque, moves, freedrive, programs, releasing brakes. On loopback, where
only a virtual controller answers, nothing is asked. The rule is a courtesy between careful people, not a safety
function: those are in the arm's controller, its emergency stop and the risk assessment of the cell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tangere.errors import TangereError
from tangere.rtde.client import Address

WORDS = "I stand beside it"
OPTION = "--yes-i-stand-beside-it"
CHECKLIST = """\
{host} is not on this computer: it may be an arm that can hurt somebody. Before it moves:
  1. a person stands beside it, with a hand at the emergency stop, and has tried that stop today
  2. nobody and nothing that may break is within its reach
  3. payload, tool and mounting of the installation are those of the arm (tangere doctor {host})
  4. joint speeds, forces and planes are limited in the safety configuration of the pendant
  5. the same command ran against a virtual arm (tangere virtual)
It starts with zero torque and a ramp. Tangere is not a safety function, and was never tried on a real arm."""


class ConsentNeeded(TangereError):
    """Something would move an arm that is not on this computer, and nobody has said that he stands beside it."""


class Consent:
    """A person's word for one arm: it counts for the first arm that it is used with, and for no other."""

    def __init__(self) -> None:
        self._host: str | None = None

    def covers(self, host: str) -> bool:
        """Whether it counts for this arm; from the first question on it counts for that arm alone."""
        self._host = self._host or host
        return self._host == host


def consent(words: str | None = None, *, host: str = "the arm", ask: Callable[[str], str] | None = None) -> Consent:
    """A person's word that somebody stands beside the arm, for `consent=` of what can move one.

        tangere.arm("192.168.0.10", consent=tangere.consent("I stand beside it"))

    words: these, and no others. Where they are not given, the checklist is shown on the terminal and they are asked
    for; without a terminal that is refused. ask: in place of the terminal. Raises ConsentNeeded for any other answer.
    """
    if words is None:
        words = (ask or _at_the_terminal)(f"{CHECKLIST.format(host=host)}\nType `{WORDS}` to go on: ")
    if words.strip().casefold() != WORDS.casefold():
        raise ConsentNeeded(f"nothing was moved: the words are {WORDS!r}, got {words.strip()[:60]!r}")
    return Consent()


def asked(address: Address, beside: bool) -> Consent | None:
    """The consent of a command that moves an arm: none on this computer; beside: the words were said as an option."""
    if address.loopback:
        return None
    if beside:
        sys.stderr.write(CHECKLIST.format(host=address.host) + "\n")
    return consent(WORDS if beside else None, host=address.host)


def permit(address: Address, given: Consent | None, what: str) -> None:
    """Raise ConsentNeeded where `what` would move an arm outside this computer without consent."""
    if address.loopback:
        return
    if not isinstance(given, Consent):
        raise ConsentNeeded(
            f"{what} can move {address.host}, which is not on this computer: consent=tangere.consent({WORDS!r}) "
            f"is needed, on the command line a confirmation or {OPTION}"
        )
    if not given.covers(address.host):
        raise ConsentNeeded(f"{what}: the consent was given for another arm than {address.host}; ask for one each")


def _at_the_terminal(text: str) -> str:
    if not sys.stdin.isatty():
        raise ConsentNeeded(f"there is no terminal to confirm at: {OPTION} says that somebody stands beside the arm")
    sys.stderr.write(text)
    sys.stderr.flush()
    return sys.stdin.readline()
