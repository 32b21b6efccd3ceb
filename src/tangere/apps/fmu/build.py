"""Compiles C sources, once: what is made of them is kept in the user's cache folder by its content."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tangere.errors import InvalidValue, TangereError

_FLAGS = (
    "-std=c99", "-O2", "-Wall", "-Wextra", "-Werror",
    "-ffp-contract=off",  # one IEEE operation per C operation, as the library computes
    "-fno-math-errno", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections", "-g0",
    "-fno-ident", "-ffile-prefix-map=.=.",  # nothing of this machine in the file
    "-shared", "-Wl,--gc-sections", "-s", "-static-libgcc",
)  # fmt: skip


@dataclass(frozen=True)
class Platform:
    """A platform: folder of its binaries in FMI 2.0 and (folder3) 3.0, ending, and how to compile for it."""

    folder: str
    ending: str
    compilers: tuple[str, ...]  # the first that is found
    flags: tuple[str, ...]
    folder3: str = ""

    def folder_of(self, fmi: int) -> str:
        """Folder of its binaries in that version of FMI."""
        return self.folder3 if fmi == 3 else self.folder


LINUX = Platform(
    "linux64", ".so", ("cc", "gcc", "clang"), ("-fPIC", "-Wl,--build-id=none", "-Wl,--no-undefined"), "x86_64-linux"
)
# no time stamp in the file: identical input, identical bytes
WINDOWS = Platform("win64", ".dll", ("x86_64-w64-mingw32-gcc",), ("-Wl,--no-insert-timestamp",), "x86_64-windows")
PLATFORMS = (LINUX, WINDOWS)


class CompilerMissing(TangereError):
    """No compiler for a platform that was asked for."""


def _chosen(platform: Platform) -> list[str]:
    """The compiler that $CC names, with its options; it counts for this machine's own platform only."""
    text = os.environ.get("CC", "") if platform is LINUX else ""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidValue(f"$CC is {text!r}: {error}") from None


def compiler_of(platform: Platform) -> tuple[str, ...] | None:
    """The compiler for a platform and the options that $CC gives it, None where there is none on this machine."""
    first, *options = _chosen(platform) or [""]
    found = (shutil.which(c) for c in ([first] if first else platform.compilers))
    path = next((c for c in found if c), None)
    return None if path is None else (path, *options)


def no_compiler(platform: Platform) -> CompilerMissing:
    """What to say where there is none."""
    chosen = _chosen(platform)
    looked = f"$CC = {shlex.join(chosen)!r}" if chosen else ", ".join(platform.compilers)
    package = "gcc" if platform is LINUX else "gcc-mingw-w64-x86-64"
    return CompilerMissing(
        f"no C compiler for {platform.folder} was found (looked for {looked}); "
        + ("set CC to one that is there, or unset it" if chosen else f"on Debian: apt install {package}")
    )


def cache_folder() -> Path:
    """Where binaries are kept: tangere/fmu under $XDG_CACHE_HOME or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tangere" / "fmu"


@cache
def _version(compiler: tuple[str, ...]) -> str:
    return subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]


def built(
    sources: Mapping[str, str], platform: Platform, main: str, flags: Sequence[str], ending: str = ""
) -> tuple[bytes, Path]:
    """What a compiler makes of these sources, and where it is kept in the cache: it is built once.

    A cache that cannot be written costs time only: the file is then not there.
    """
    compiler = compiler_of(platform)
    if compiler is None:
        raise no_compiler(platform)
    digest = hashlib.sha256()
    for text in (_version(compiler), *compiler[1:], *flags, *(x for pair in sorted(sources.items()) for x in pair)):
        digest.update(text.encode() + b"\0")
    kept = cache_folder() / f"{digest.hexdigest()[:32]}{ending}"
    if kept.is_file():
        return kept.read_bytes(), kept
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in sources.items():
            (folder / file).write_text(text, encoding="ascii")
        out = folder / f"out{ending}"
        command = [*compiler, main, *flags, "-o", out.name]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise TangereError(f"{' '.join(command)} failed: {done.stderr.strip()[-800:]}")
        content = out.read_bytes()
        with suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            part = kept.with_suffix(f".{os.getpid()}.part")
            shutil.copy(out, part)  # with its right to be run
            part.replace(kept)  # whole or not at all, also with several processes
    return content, kept


def binary(sources: Mapping[str, str], platform: Platform) -> bytes:
    """The shared library of an FMU's sources for a platform."""
    main = "fmu3.c" if "fmu3.c" in sources else "fmu.c"
    return built(sources, platform, main, (*_FLAGS, *platform.flags, "-lm"), platform.ending)[0]
