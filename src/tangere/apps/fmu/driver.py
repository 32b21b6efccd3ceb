"""An FMU driven by a small master in C of our own, in a child process with limits on time and memory.

The master needs nothing but libc: what it shows holds on a host without Python.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.resources import files
from pathlib import Path
from time import monotonic
from typing import Any

from tangere.apps.fmu.build import LINUX, WINDOWS, built, cache_folder
from tangere.apps.fmu.opened import Opened
from tangere.errors import TangereError

MEMORY = 2 << 30  # [bytes] of address space of the child: far beyond any block, below what hurts the host
SECONDS = 60.0  # of a child before it is ended; a check takes two
TOTAL = 120.0  # [s] of a whole check, all children together
WRITES = 100 << 20  # [bytes] of a file that the child may write
WINE_SPACE = 8 << 30  # [bytes] of address space below which wine is not tried
_end: ContextVar[float] = ContextVar("end", default=float("inf"))  # when the check that runs must be over, monotonic
OK, WARNING, DISCARD, ERROR = range(4)  # statuses of FMI
_FILES = (
    "driver.c", "driver.h", "driver_talk.h", "driver_fuzz.h", "driver_dice.h", "driver_fmi3.h", "driver_calls3.h",
    "fmi2.h", "fmi3.h",
)  # fmt: skip
_FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-lm")


class DriverFailed(TangereError):
    """The child ended early: a crash of the FMU, a limit, or a library that cannot be loaded."""


class NotLoaded(DriverFailed):
    """The shared library cannot be loaded on this machine."""


_CANNOT_LOAD = 3  # exit code of the driver


def driver(*, windows: bool = False) -> Path:
    """The compiled master, built once and kept in the cache folder; for Windows where asked."""
    folder = files("tangere.apps.fmu") / "c"
    texts = {name: (folder / name).read_text(encoding="ascii") for name in _FILES}
    # numbers are written and read as C99 has it, by mingw's own functions
    flags = (*_FLAGS, "-static", "-lpthread", "-D__USE_MINGW_ANSI_STDIO=1") if windows else (*_FLAGS, "-ldl")
    _, path = built(texts, WINDOWS if windows else LINUX, "driver.c", flags, ".exe" if windows else "")
    if not path.is_file():
        raise TangereError(f"{path.parent} cannot be written: the master that drives an FMU is kept there")
    return path


def wine() -> str | None:
    """The program that runs Windows programs here, None where it is not installed."""
    return shutil.which("wine64") or shutil.which("wine")


def narrow() -> bool:
    """Whether the address space is limited to less than wine maps."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return most != resource.RLIM_INFINITY and most < WINE_SPACE


def limits(memory: int = MEMORY, seconds: float = SECONDS) -> None:
    """For preexec_fn: what the child may take, never more than we may; no core files. memory 0: as much as there is."""
    import resource

    wanted = {
        resource.RLIMIT_CPU: (int(seconds) + 1, int(seconds) + 2),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_FSIZE: (WRITES, WRITES),
    }
    if memory:
        wanted[resource.RLIMIT_AS] = (memory, memory)
    for what, (soft, hard) in wanted.items():
        now = resource.getrlimit(what)[1]
        most = hard if now == resource.RLIM_INFINITY else min(hard, now)
        resource.setrlimit(what, (min(soft, most), most))


@contextmanager
def deadline(seconds: float = TOTAL) -> Iterator[None]:
    """All that is run in here is over after `seconds`, however many children it takes."""
    before = _end.set(monotonic() + seconds)
    try:
        yield
    finally:
        _end.reset(before)


def remaining(seconds: float) -> float:
    """[s] that a child may take: `seconds`, or what is left; DriverFailed where nothing is."""
    left = _end.get() - monotonic()
    if left <= 0.0:
        raise DriverFailed("the time of the whole check is over")
    return min(seconds, left)


def ending(code: int) -> str:
    """How a child ended, in words."""
    if code >= 0:
        return f"ended with code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"was ended by the time limit ({name})" if name in ("SIGKILL", "SIGXCPU") else f"crashed ({name})"


def run_driver(
    what: str, fmu: Opened, *words: object, seconds: float = SECONDS, wrapped: Sequence[str] = ()
) -> list[list[str]]:
    """One run of the master: `long`, `many` or `fuzz` with its arguments. The lines it prints, in words.

    wrapped: a command to run it under (valgrind, unshare), without the limit on memory.
    """
    command = [*wrapped, str(driver()), what, str(fmu.library), fmu.resources_uri, fmu.guid, *map(str, words)]
    return run_master(command, fmu.path.name, seconds, limited=not wrapped)


def run_master(
    command: list[str], name: str, seconds: float, *, limited: bool, env: dict[str, str] | None = None
) -> list[list[str]]:
    """The lines that a command with the master prints, in words. name: what it drives, for messages."""
    seconds = remaining(seconds)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False, env=env,
            preexec_fn=(lambda: limits(seconds=seconds)) if limited else None,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise DriverFailed(f"{name}: the driver was ended after {seconds:g} s") from None
    if done.returncode != 0:
        text = (done.stderr.strip() or done.stdout.strip())[-600:]
        raise DriverFailed(f"{name}: the driver {ending(done.returncode)}: {text}")
    return [line.split() for line in done.stdout.splitlines()]


class Talk:
    """A conversation with an FMU in a child process: ask("step", 0.0, 1e-3) gives (status, values).

    messages: (status, category, text) of everything that the FMU said. absent: functions that it does not offer.
    guid: another one than the file's, to see it refused. windows: the library for Windows, under wine.
    """

    def __init__(
        self, fmu: Opened, *, guid: str | None = None, seconds: float = SECONDS, windows: bool = False
    ) -> None:
        self.messages: list[tuple[int, str, str]] = []
        self.absent: list[str] = []
        self._name = fmu.path.name
        seconds = remaining(seconds)
        command = [str(driver()), "talk", str(fmu.library), fmu.resources, guid or fmu.guid]
        memory, environment = MEMORY, dict(os.environ)
        if windows:
            head = "file:///" if fmu.resources.startswith("file:///") else ""  # Z: is this machine's root
            place = f"{head}Z:/{fmu.resources[len(head) :].lstrip('/')}"
            library = f"Z:{fmu.library_of(WINDOWS)}"
            command = [wine() or "wine", str(driver(windows=True)), "talk", library, place, command[-1]]
            memory = 0  # wine maps what a whole process of Windows may use
            environment |= {"WINEPREFIX": str(cache_folder() / "wine"), "WINEDEBUG": "-all", "DISPLAY": ""}
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 (close() closes it)
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, errors="replace",
            preexec_fn=lambda: limits(memory, seconds), cwd=fmu.folder, env=environment,
        )  # fmt: skip
        self._timer = threading.Timer(seconds, self._child.kill)
        self._timer.daemon = True
        self._timer.start()
        words = self._answer()
        self.version, self.platform = words[1], words[2]
        for a in fmu.arrays:
            if self.ask("array", a.letter, a.first, a.reference, a.size)[0] != OK:
                raise DriverFailed(f"{self._name}: more or larger arrays than can be driven here")

    def _answer(self) -> list[str]:
        assert self._child.stdout is not None
        while True:
            line = self._child.stdout.readline()
            if not line:
                code = self._child.wait()
                self._errors.seek(0)
                said = self._errors.read().strip()[-400:]
                if code == _CANNOT_LOAD:
                    raise NotLoaded(f"the library cannot be loaded here: {said.rsplit('/', 1)[-1]}")
                raise DriverFailed(f"{self._name}: the process {ending(code)}{': ' if said else ''}{said}")
            if line.startswith("! "):
                status, category, text = (*line[2:].rstrip("\n").split(" ", 2), "", "")[:3]
                self.messages.append((int(status), category, text))
            elif line.startswith("- "):
                self.absent.append(line[2:].strip())
            elif (words := line.split()) and words[0].isdigit():
                return words  # anything else was printed by the FMU itself

    def ask(self, *words: Any) -> tuple[int, list[float]]:
        """One command; floats go over as hexadecimal numbers, no digit is lost."""
        assert self._child.stdin is not None
        line = " ".join(w.hex() if isinstance(w, float) else str(w) for w in words)
        try:
            self._child.stdin.write(line + "\n")
            self._child.stdin.flush()
        except OSError:
            pass  # it is gone; reading the answer says how
        answer = self._answer()
        status = int(answer[0])
        if status > 5:
            raise DriverFailed(f"{self._name}: {' '.join(answer[1:])}")
        values = [float.fromhex(w) if "x" in w or "n" in w else float(w) for w in answer[1:]]
        return status, values

    @property
    def said(self) -> str:
        """The last message, "" where there was none."""
        return self.messages[-1][2] if self.messages else ""

    def begin(self, slot: int = 0) -> Talk:
        """A new instance for co-simulation, initialised; DriverFailed where it is refused."""
        for words in (("new", slot, 1, f"check{slot}"), ("setup", 0.0), ("enter",), ("exit",)):
            status, _ = self.ask(*words)
            if status > WARNING:
                raise DriverFailed(f"{words[0]} was refused ({status}): {self.said or 'without a message'}")
        return self

    def get(self, kind: str, references: Iterable[int]) -> tuple[int, list[float]]:
        """Values of Real, Integer, Enumeration or Boolean variables."""
        refs = list(references)
        letter = {"Real": "r", "Boolean": "b"}.get(kind, "i")
        return self.ask(f"get{letter}", len(refs), *refs)

    def set(self, kind: str, references: Iterable[int], values: Iterable[float]) -> int:
        """Set variables; the status."""
        refs = list(references)
        letter = {"Real": "r", "Boolean": "b"}.get(kind, "i")
        given = [float(v) if letter == "r" else int(v) for v in values]
        return self.ask(f"set{letter}", len(refs), *refs, *given)[0]

    def close(self) -> None:
        """End the child."""
        self._timer.cancel()
        if self._child.poll() is None:
            assert self._child.stdin is not None
            try:
                self._child.stdin.close()
                self._child.wait(timeout=2.0)
            except (OSError, subprocess.TimeoutExpired):
                self._child.kill()
                self._child.wait()
        if self._child.stdout is not None:
            self._child.stdout.close()
        self._errors.close()

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
