"""Nothing moves an arm outside this computer without a person's word; everything that could is asked for it here."""

from __future__ import annotations

import socket
from collections.abc import Callable
from io import StringIO

import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.plants import RtdePlant
from tangere.rtde import consent as rule
from tangere.rtde.client import Address
from tangere.rtde.consent import ConsentNeeded, permit
from tangere.rtde.dashboard import MOVING, Dashboard
from tangere.rtde.programs import Programs

OUTSIDE = "192.0.2.1"  # a documentation address (RFC 5737): nobody is there


def test_words_are_needed_and_no_others() -> None:
    assert isinstance(tangere.consent("I stand beside it"), rule.Consent)
    assert isinstance(tangere.consent(" i stand beside it\n"), rule.Consent)
    for words in ("yes", "", "y", "I stand beside"):
        with pytest.raises(ConsentNeeded, match="I stand beside it"):
            tangere.consent(words)


def test_at_the_terminal_the_checklist_is_shown(monkeypatch) -> None:
    shown: list[str] = []

    def ask(text: str) -> str:
        shown.append(text)
        return "I stand beside it"

    tangere.consent(host=OUTSIDE, ask=ask)
    assert OUTSIDE in shown[0]
    assert "not a safety function" in shown[0]
    assert "emergency stop" in shown[0]
    monkeypatch.setattr("sys.stdin", StringIO("I stand beside it"))
    with pytest.raises(ConsentNeeded, match="--yes-i-stand-beside-it"):
        tangere.consent()


def test_it_counts_for_one_arm() -> None:
    given = tangere.consent("I stand beside it")
    permit(Address(OUTSIDE), given, "torque")
    permit(Address(OUTSIDE), given, "torque")
    with pytest.raises(ConsentNeeded, match="another arm"):
        permit(Address("192.0.2.2"), given, "torque")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.4.5", "localhost", "::1"])
def test_this_computer_is_not_asked(host: str) -> None:
    permit(Address(host), None, "torque")


@pytest.mark.parametrize("host", [OUTSIDE, "0.0.0.0", "10.0.0.1", "ur5e.local", "128.0.0.1", "localhost.example.com"])
@pytest.mark.parametrize("given", [None, True, "I stand beside it", 1])
def test_everything_else_is(host: str, given: object) -> None:
    with pytest.raises(ConsentNeeded, match="torque can move"):
        permit(Address(host), given, "torque")  # type: ignore[arg-type]


class Quiet:
    """Stands for a connection: nothing may be sent on it."""

    def sendall(self, data: bytes) -> None:
        raise AssertionError(f"sent: {data!r}")

    def close(self) -> None:
        pass


def quiet(*_: object, **__: object) -> Quiet:
    return Quiet()


def desk(command: str) -> Callable[[], object]:
    def ask() -> object:
        return Dashboard(OUTSIDE).ask(command)

    return ask


@pytest.mark.parametrize(
    "moves",
    [
        lambda: RtdePlant(OUTSIDE, "ur5e"),
        lambda: Programs(Address(OUTSIDE)).send("def go():\n  movej([0, 0, 0, 0, 0, 0])\nend"),
        *(desk(command) for command in MOVING),
        desk("  Brake   Release "),
        desk("load evil.urp"),
        desk("brakerelease"),
        desk("PowerOn"),
    ],
)
def test_nothing_that_moves_goes_out(moves: Callable[[], object], monkeypatch) -> None:
    monkeypatch.setattr("tangere.rtde.programs.connect", quiet)
    monkeypatch.setattr("tangere.rtde.dashboard.connect", quiet)
    monkeypatch.setattr(Dashboard, "_line", lambda self: "Connected")
    with pytest.raises(ConsentNeeded):
        moves()


@pytest.mark.parametrize("hidden", ["robotmode\nbrake release", "robotmode\r\nplay", "play\0", "running\x85power on"])
def test_no_command_hides_behind_another(hidden: str, monkeypatch) -> None:
    monkeypatch.setattr("tangere.rtde.dashboard.connect", quiet)
    monkeypatch.setattr(Dashboard, "_line", lambda self: "Connected")
    with pytest.raises(InvalidValue, match="one line of text"):
        desk(hidden)()


def test_what_only_asks_goes_out(monkeypatch) -> None:
    here, there = socket.socketpair()
    monkeypatch.setattr("tangere.rtde.dashboard.connect", lambda *_: here)
    there.sendall(b"Connected\nRobotmode: RUNNING\n")
    with there, Dashboard(OUTSIDE) as asked:
        assert asked.word("robotmode") == "RUNNING"
        assert there.recv(100) == b"robotmode\n"
