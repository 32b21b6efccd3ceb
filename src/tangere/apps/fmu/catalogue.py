"""`tangere fmu catalogue`: every kind for every arm, with an index page and a data sheet each."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tangere.apps.fmu.package import Written

TITLE = "write every kind for every arm, with an index page"
EXAMPLES = """examples:
  tangere fmu catalogue --out blocks                       all kinds for all arms
  tangere fmu catalogue --robot ur10e --robot ur16e        for two arms
  tangere fmu catalogue --kind fk --kind ik --out blocks   two kinds for all arms

Open index.html in the folder. The first time the binaries are compiled (half a minute), later it takes seconds."""


def add(p: argparse.ArgumentParser) -> None:
    """Options."""
    from tangere.apps.fmu.kinds import KINDS

    p.epilog = EXAMPLES
    p.add_argument("--out", default="fmu-catalogue", metavar="DIR", help="where to (default: fmu-catalogue)")
    p.add_argument("--robot", action="append", metavar="NAME", help="an arm; may be repeated (default: all)")
    p.add_argument("--kind", action="append", choices=list(KINDS), metavar="KIND", help="a kind; may be repeated")


def arms() -> list[str]:
    """Names of all arms that blocks can be made for."""
    from tangere.kernels import ur
    from tangere.model.loading import names
    from tangere.robots import robot

    return [name for name in names() if ur.is_ur(robot(name).model)]


def write_catalogue(
    folder: str | Path,
    robots: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    *,
    tell: Callable[[int, int, str], None] | None = None,
) -> tuple[Path, list[Written]]:
    """Write FMUs, their data sheets and index.html into a folder; the page, and what was written.

    robots, kinds: names, None for all. tell: is told how many are done, how many there are, and which is next.
    """
    from tangere import __version__
    from tangere.apps.fmu.kinds import KINDS, kind_of
    from tangere.apps.fmu.numbers import arm_of
    from tangere.apps.fmu.package import folders, write_fmu
    from tangere.apps.fmu.pages import catalogue_html, documentation_html
    from tangere.logs.files import write_text
    from tangere.robots import robot

    names = list(dict.fromkeys(robots or arms()))
    wanted = [kind_of(k).name for k in dict.fromkeys(kinds or KINDS)]
    target = Path(folder)
    done: list[Written] = []
    made = [robot(name) for name in names]
    for arm in made:
        arm_of(arm)  # refuses what no block fits, before anything is written
    page = target / "index.html"
    with folders(target / "sheets"):
        for arm in made:
            for kind in wanted:
                if tell is not None:
                    tell(len(done), len(names) * len(wanted), f"{arm.name} {kind}")
                w = write_fmu(kind, arm, target)
                sheet = documentation_html(w.kind, w.arm, w.table, __version__)
                write_text(target / "sheets" / f"{w.path.stem}.html", sheet)
                done.append(w)
        write_text(page, catalogue_html(done, __version__))
    return page, done


def main(arguments: argparse.Namespace) -> int:
    """Write the catalogue and say where it is."""
    from tangere.report.terminal import Bar

    begin, bar = time.perf_counter(), Bar()

    def tell(done: int, total: int, what: str) -> None:
        bar(f"{done} of {total}  {what}", done / total)

    try:
        page, written = write_catalogue(arguments.out, arguments.robot, arguments.kind, tell=tell)
    finally:
        bar.end()
    platforms = sorted({p for w in written for p in w.platforms})
    size = sum(w.size for w in written) / 1e6
    took = time.perf_counter() - begin
    print(f"{len(written)} FMUs, {size:.1f} MB, {' and '.join(platforms)}, in {took:.1f} s")
    if "win64" not in platforms:
        print("no win64 binaries: x86_64-w64-mingw32-gcc is not installed (Debian: gcc-mingw-w64-x86-64)")
    print(page)
    return 0
