"""The dashboard of a virtual controller: one line asks, one line answers. Compared without case, as clients differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tangere.apps.virtual_ur.controller import Controller

GREETING = "Connected: Universal Robots Dashboard Server"
LINE_BYTES = 4096  # longer lines are cut: no command has them


class DashboardPort:
    """One client. Bytes in, bytes out; `ended` after quit."""

    def __init__(self, desk: Controller) -> None:
        self._desk, self._rest = desk, b""
        self.ended = False
        self.mode = "NONE"  # operational mode, as this client set it
        self._table = _table(desk, self)

    def greeting(self) -> bytes:
        """The first line of every connection."""
        return (GREETING + "\n").encode()

    def feed(self, data: bytes) -> bytes:
        """Answers to the whole lines that came."""
        self._rest = (self._rest + data)[-LINE_BYTES:]
        *lines, self._rest = self._rest.split(b"\n")
        said = [line.decode("utf-8", "replace").strip() for line in lines]
        return "".join(self._answer(line) + "\n" for line in said if line).encode()

    def clear_mode(self) -> None:
        """The client no longer sets the operational mode."""
        self.mode = "NONE"

    def _answer(self, line: str) -> str:
        known = " ".join(line.lower().split())
        if known in ("quit", "exit"):
            self.ended = True
            return "Disconnected"
        plain = self._table.get(known.replace(" ", ""))
        if plain is not None:
            return plain()
        for start, answer in (
            ("load installation ", lambda rest: f"Loading installation: {rest}"),
            ("load ", self._load),
            ("popup ", lambda rest: "showing popup"),
            ("addtolog ", self._log),
            ("set operational mode ", self._set_mode),
            ("push ", self._push),
        ):
            if known.startswith(start):
                return answer(line[len(start) :].strip())
        return f"could not understand: '{line[:80]}'"

    def _load(self, name: str) -> str:
        return f"Loading program: {name}" if self._desk.load(name) else f"File not found: {name}"

    def _push(self, text: str) -> str:
        """Not a command of real arms: something pushes this one."""
        return self._desk.push(text) or "Pushing"

    def _log(self, text: str) -> str:
        self._desk.log(text)
        return "Added log message"

    def _set_mode(self, mode: str) -> str:
        if mode.upper() not in ("MANUAL", "AUTOMATIC"):
            return f"could not understand: 'set operational mode {mode[:40]}'"
        self.mode = mode.upper()
        return f"Setting operational mode: {mode.upper()}"


def _table(desk: Controller, port: DashboardPort) -> dict[str, Callable[[], str]]:
    """Commands without arguments, blanks and case taken out -> answer."""

    def did(action: Callable[[], object], text: str) -> Callable[[], str]:
        def act() -> str:
            action()
            return text

        return act

    def version() -> str:
        return ".".join(map(str, desk.version))

    def state() -> str:
        return f"{'PAUSED' if desk.paused else 'PLAYING' if desk.playing else 'STOPPED'} {desk.loaded}"

    def play() -> str:
        return "Starting program" if desk.play() else "Failed to execute: play"

    def unlock() -> str:
        return desk.unlock() or "Protective stop releasing"

    return {
        "polyscopeversion": lambda: f"URSoftware {version()} (virtual)",
        "version": version,
        "robotmode": lambda: f"Robotmode: {desk.robot_mode_name}",
        "safetymode": lambda: f"Safetymode: {desk.safety_mode_name}",
        "safetystatus": lambda: f"Safetystatus: {desk.safety_mode_name}",
        "running": lambda: f"Program running: {str(desk.playing).lower()}",
        "programstate": state,
        "isinremotecontrol": lambda: str(desk.remote).lower(),
        "poweron": did(desk.power_on, "Powering on"),
        "poweroff": did(desk.power_off, "Powering off"),
        "brakerelease": did(desk.brake_release, "Brake releasing"),
        "unlockprotectivestop": unlock,
        "closesafetypopup": did(desk.close_popup, "closing safety popup"),
        "closepopup": did(desk.close_popup, "closing popup"),
        "restartsafety": did(desk.restart_safety, "Restarting safety"),
        "play": play,
        "pause": did(desk.pause, "Pausing program"),
        "stop": did(desk.stop, "Stopped"),
        "getloadedprogram": lambda: f"Loaded program: {desk.loaded}" if desk.loaded else "No program loaded",
        "getrobotmodel": lambda: desk.model,
        "getserialnumber": lambda: desk.serial,
        "getoperationalmode": lambda: port.mode,
        "clearoperationalmode": did(port.clear_mode, "No longer controlling the operational mode. Current mode: NONE"),
        "isprogramsaved": lambda: f"true {desk.loaded}",
        "getuserrole": lambda: "PROGRAMMER",
        "savelog": lambda: "Log saved to disk",
        "shutdown": did(desk.power_off, "Shutting down"),
    }
