"""Compiles C sources, once: what is made of them is kept in the user's cache folder by its content."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform as machine
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tangere.errors import InvalidValue, TangereError, UnknownName

_FLAGS = (
    "-std=c99", "-O2", "-Wall", "-Wextra", "-Werror",
    "-ffp-contract=off",  # one IEEE operation per C operation, as the library computes
    "-fno-math-errno", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections", "-g0",
    "-fno-ident", "-ffile-prefix-map=.=.",  # nothing of this machine in the file
    "-shared", "-s",
)  # fmt: skip
_GCC = ("-Wl,--gc-sections", "-static-libgcc")
ZIG = "pip install 'tangere[cross]'"  # what brings the compiler for all the others


@dataclass(frozen=True)
class Platform:
    """A platform: folder of its binaries in FMI 2.0 and (folder3) 3.0, ending, and how to compile for it.

    compilers: the first that is found. zig: the target of ziglang's compiler, which serves where none of them is; ""
    for none. Two platforms with one folder share one file there (macOS: a universal binary).
    """

    folder: str
    ending: str
    compilers: tuple[str, ...]
    flags: tuple[str, ...]
    folder3: str = ""
    package: str = ""  # of Debian that has the compiler
    zig: str = ""

    def folder_of(self, fmi: int) -> str:
        """Folder of its binaries in that version of FMI."""
        return self.folder3 if fmi == 3 else self.folder


LINUX = Platform(
    "linux64", ".so", ("cc", "gcc", "clang"), ("-fPIC", "-Wl,--build-id=none", "-Wl,--no-undefined", *_GCC),
    "x86_64-linux", "gcc", "x86_64-linux-gnu.2.17",
)  # fmt: skip
# no time stamp in the file: identical input, identical bytes
WINDOWS = Platform(
    "win64", ".dll", ("x86_64-w64-mingw32-gcc",), ("-Wl,--no-insert-timestamp", *_GCC), "x86_64-windows",
    "gcc-mingw-w64-x86-64",
)  # fmt: skip
# FMI 2.0 names no folder for it; this is what FMI 3.0 calls it. glibc 2.17: of 2012, older than any such machine
AARCH64 = Platform("aarch64-linux", ".so", (), ("-fPIC",), "aarch64-linux", zig="aarch64-linux-gnu.2.17")
DARWIN = (
    Platform("darwin64", ".dylib", (), ("-fPIC",), "x86_64-darwin", zig="x86_64-macos.11.0"),
    Platform("darwin64", ".dylib", (), ("-fPIC",), "aarch64-darwin", zig="aarch64-macos.11.0"),
)
PLATFORMS = (LINUX, WINDOWS, *DARWIN, AARCH64)
DEFAULT = (LINUX, WINDOWS)  # what blocks are mostly run on, and what can be run here
NAMES = tuple(dict.fromkeys(p.folder for p in PLATFORMS))


class CompilerMissing(TangereError):
    """No compiler for a platform that was asked for."""


def _here(platform: Platform) -> bool:
    """Whether this machine's own compiler makes binaries for it."""
    return platform is LINUX and sys.platform.startswith("linux") and machine.machine() == "x86_64"


def _chosen(platform: Platform) -> list[str]:
    """The compiler that $CC names, with its options; it counts for this machine's own platform only."""
    text = os.environ.get("CC", "") if _here(platform) else ""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidValue(f"$CC is {text!r}: {error}") from None


def compiler_of(platform: Platform) -> tuple[str, ...] | None:
    """The compiler for a platform and the options that $CC gives it, None where there is none on this machine."""
    first, *options = _chosen(platform) or [""]
    names = [first] if first else platform.compilers if platform is not LINUX or _here(platform) else ()
    path = next((c for c in map(shutil.which, names) if c), None)
    if path is not None:
        return (path, *options)
    if first or not platform.zig or importlib.util.find_spec("ziglang") is None:
        return None
    return (sys.executable, "-m", "ziglang", "cc", "-target", platform.zig)


def no_compiler(platform: Platform) -> CompilerMissing:
    """What to say where there is none."""
    chosen = _chosen(platform)
    names = ", ".join((*platform.compilers, *["zig"] * bool(platform.zig)))
    looked = f"$CC = {shlex.join(chosen)!r}" if chosen else names
    ways = [f"on Debian: apt install {platform.package}"] * bool(platform.package) + [ZIG] * bool(platform.zig)
    return CompilerMissing(
        f"no C compiler for {platform.folder} was found (looked for {looked}); "
        + ("set CC to one that is there, or unset it" if chosen else ", or ".join(ways))
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
        # what zig keeps between runs stays with our own files
        kept_by_zig = {"ZIG_GLOBAL_CACHE_DIR": str(cache_folder() / "zig"), "ZIG_LOCAL_CACHE_DIR": name}
        environment = os.environ | (kept_by_zig if "ziglang" in compiler else {})
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
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
    flags = (*_FLAGS, *(("-fPIC",) if "ziglang" in (compiler_of(platform) or ()) else platform.flags), "-lm")
    return built(sources, platform, main, flags, platform.ending)[0]


def universal(slices: Sequence[bytes]) -> bytes:
    """One Mach-O file for several processors from a file for each, after Apple's <mach-o/fat.h>."""
    page = 1 << 14  # [bytes] of memory on Apple's own processors, where each part must begin
    head, body, at = struct.pack(">II", 0xCAFEBABE, len(slices)), b"", page
    for part in slices:
        processor, variant = struct.unpack_from("<II", part, 4)
        head += struct.pack(">IIIII", processor, variant, at, len(part), 14)
        body += part + b"\0" * (-len(part) % page)
        at += len(part) + -len(part) % page
    return head.ljust(page, b"\0") + body


def binaries(
    sources: Mapping[str, str], platforms: Sequence[Platform], fmi: int, tell: Callable[[str], None]
) -> dict[tuple[str, str], bytes]:
    """Shared libraries by (folder, ending); platforms that share a folder share a file. tell: is told the folder."""
    found: dict[tuple[str, str], list[bytes]] = {}
    for platform in platforms:
        tell(platform.folder_of(fmi))
        found.setdefault((platform.folder_of(fmi), platform.ending), []).append(binary(sources, platform))
    return {place: parts[0] if len(parts) == 1 else universal(parts) for place, parts in found.items()}


def platforms_of(names: Sequence[str]) -> tuple[Platform, ...]:
    """The platforms of these names, all for "all"; CompilerMissing where one has no compiler here."""
    for name in names:
        if name not in (*NAMES, "all"):
            raise UnknownName(f"unknown platform {name!r}; known: {', '.join(NAMES)}, all")
    wanted = tuple(p for p in PLATFORMS if p.folder in names or "all" in names)
    for platform in wanted:
        if compiler_of(platform) is None:
            raise no_compiler(platform)
    return wanted


def default_platforms() -> tuple[Platform, ...]:
    """Linux, and Windows where this machine can compile for it."""
    return tuple(p for p in DEFAULT if p is LINUX or compiler_of(p) is not None)
