"""Licences of everything that an extra brings, dependencies of dependencies too: permissive ones only.

Reads what is installed (importlib.metadata); what is not installed is named and not judged. Exit code 1 where a licence
binds those who pass the program on. The extras `test`, `lint` and `bench` are for developers and never shipped.

A wheel may carry libraries of others beside what it says of itself. Those that are known to be bound are looked for by
their file names and must stand in CARRIED, with the reason why they may come with an extra: none is in our wheel, all
are files of their own that anybody may replace, and an extra is somebody's choice.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

DEVELOPERS = {"test", "lint", "bench", "release"}
PERMISSIVE = re.compile(
    r"MIT|BSD|Apache|ISC|Zlib|PSF|Python Software Foundation|HPND|Unlicense|Public Domain|0BSD|CC0|EPL-2|BSL|Boost|EDL",
    re.IGNORECASE,
)
WEAK = re.compile(r"MPL|Mozilla", re.IGNORECASE)  # binds changed files of its own only
STRONG = re.compile(r"\bA?L?GPL|General Public", re.IGNORECASE)
# looked up by hand where a package does not say it in a way that a program understands, with the place that says it
KNOWN = {
    "fmpy": "BSD-2-Clause (LICENSE.txt in the package)",
    "nvidia-cuda-nvrtc-cu12": "NVIDIA's own: redistributable with a program that uses it (CUDA EULA, attachment A)",
}
CARRIED = {
    "shapely": "GEOS (LGPL-2.1), loaded as a library of its own: it cuts and joins the areas of a drawing",
    "opencv-python-headless": "libraries of FFmpeg (LGPL-2.1), loaded as libraries of their own and not called by us",
    "imageio-ffmpeg": "the program ffmpeg (GPL-3), run as a process of its own that writes a clip",
    "nvidia-cuda-nvrtc-cu12": "NVIDIA's compiler (CUDA EULA, attachment A: goes with a program that uses it)",
}
BOUND = re.compile(
    r"libgeos|libav(codec|format|util|filter)|(^|/)ffmpeg[^/]*$|libx26[45]|libnvrtc|libQt|libreadline|libgmp|libfftw"
)


def carries(name: str) -> list[str]:
    """Files of a package that are libraries of others with a licence that binds."""
    other = {".py", ".md", ".h", ".pyi", ".pyc", ".svg"}
    program = (str(f) for f in metadata.files(name) or [] if Path(str(f)).suffix not in other)
    return [file for file in program if BOUND.search(file)]


def licence(name: str) -> str:
    """What a package says of itself."""
    about = metadata.metadata(name)
    classes = [c.split("::")[-1].strip() for c in about.get_all("Classifier") or [] if c.startswith("License ::")]
    plain = (about.get("License") or "").strip().splitlines()
    return about.get("License-Expression") or "; ".join(classes) or (plain[0][:80] if plain else "")


def brought(requirement: str, seen: dict[str, str | None]) -> None:
    """A package and all that it needs here, with their licences; None: not installed."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    if not found or "extra ==" in requirement.replace("'", '"').replace('extra == "', "extra == "):
        return
    name = re.sub(r"[-_.]+", "-", found[0]).lower()
    if name in seen:
        return
    try:
        seen[name] = licence(name)
    except metadata.PackageNotFoundError:
        seen[name] = None
        return
    for one in metadata.requires(name) or []:
        brought(one, seen)


def main() -> int:
    """Print a line for each extra."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {"core": project["dependencies"], **project["optional-dependencies"]}
    wrong, carried = [], set()
    for extra, needs in extras.items():
        if extra in DEVELOPERS:
            continue
        seen: dict[str, str | None] = {}
        for need in needs:
            brought(need, seen)
        absent = [name for name, said in seen.items() if said is None]
        for name, said in seen.items():
            if said is not None and carries(name):
                carried.add(name)
                if name not in CARRIED:
                    wrong.append(f"{extra}: {name} carries {', '.join(carries(name))}")
            if said is None or name in KNOWN:
                continue
            free = PERMISSIVE.search(said) is not None  # of a choice, one is enough
            if not free and (STRONG.search(said) or not WEAK.search(said)):
                wrong.append(f"{extra}: {name}: {said or 'says nothing'}")
        more = f", not installed: {', '.join(absent)}" if absent else ""
        print(f"{extra}: {len(seen) - len(absent)} packages{more}")
    print("".join(f"{name} carries {CARRIED[name]}\n" for name in sorted(carried & set(CARRIED))), end="")
    print("\n".join(["", *wrong]) if wrong else "all permissive")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
