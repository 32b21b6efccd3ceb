"""Tutorials as notebooks: the text of a page in cells, Python and commands as code, run from top to bottom.

    python docs/site/notebooks.py PAGE.md OUT.ipynb [--run]

A command is a line that begins with `!`, as notebooks have it. One that stays until it is ended, such as a virtual arm,
is started beside and ended by the last cell. --run executes the cells in one process, in the folder of OUT, and keeps
what they print; the first error ends it with exit code 1. Jupyter is not needed for that, only to open the file.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```\n?", re.S | re.M)
BESIDE = (
    "import subprocess\n\n"
    "beside = subprocess.Popen({words!r}, stdout=subprocess.PIPE, text=True)  # the other terminal\n"
    'print(beside.stdout.readline(), end="")  # it is ready'
)
LAST = "beside.terminate()\nbeside.wait()"
STAYS = re.compile(r"tangere (virtual|studio)\b")
LOOKS_ON = re.compile(r"tangere (studio|watch \d)")  # until somebody ends it: shown, not run


def cell(kind: str, text: str, number: int) -> dict[str, Any]:
    """One cell, as the file has it."""
    lines = text.strip("\n").splitlines(keepends=True)
    made: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines}
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def commands(text: str) -> list[tuple[str, str]]:
    """Cells of a block of commands."""
    cells = []
    for line in text.strip().splitlines():
        if LOOKS_ON.match(line):
            cells.append(("markdown", f"    {line}"))
        elif STAYS.match(line):
            cells.append(("code", BESIDE.format(words=line.split())))
        else:
            cells.append(("code", f"!{line}"))
    return cells


def notebook(text: str) -> dict[str, Any]:
    """A page of Markdown as a notebook; links to pages lead to those of the site."""
    cells: list[tuple[str, str]] = []
    end = 0
    for found in FENCE.finditer(text):
        cells.append(("markdown", text[end : found.start()]))
        kind, inside = found[1], found[2]
        if kind == "console":
            cells += commands(inside)
        else:
            cells.append(("code", inside) if kind == "python" else ("markdown", found[0]))
        end = found.end()
    cells.append(("markdown", text[end:]))
    if any("beside = " in inside for _, inside in cells):
        cells.append(("code", LAST))
    cells = [(kind, re.sub(r"\]\(([\w./-]+)\.md", r"](\1.html", t) if kind == "markdown" else t) for kind, t in cells]
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = [cell(kind, inside, k) for k, (kind, inside) in enumerate(c for c in cells if c[1].strip())]
    return {"cells": made, "metadata": {"kernelspec": python}, "nbformat": 4, "nbformat_minor": 5}


def run(book: dict[str, Any], folder: Path) -> str | None:
    """Execute the cells in a folder and keep what they print; the error of the first that fails."""
    names: dict[str, Any] = {"__name__": "__main__"}
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"  # our `tangere`
    here = Path.cwd()
    os.chdir(folder)
    try:
        for count, one in enumerate((c for c in book["cells"] if c["cell_type"] == "code"), start=1):
            text, said = "".join(one["source"]), io.StringIO()
            try:
                if text.startswith("!"):
                    done = subprocess.run(text[1:], shell=True, capture_output=True, text=True, check=False)
                    said.write(done.stdout)
                    assert done.returncode == 0, done.stderr
                else:
                    with contextlib.redirect_stdout(said):
                        exec(compile(text, f"cell {count}", "exec"), names)
            except Exception:
                return f"cell {count}: {text}\n{traceback.format_exc(limit=-1)}"
            one["execution_count"] = count
            printed = said.getvalue().splitlines(keepends=True)
            one["outputs"] = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
    finally:
        os.chdir(here)
        if "beside" in names:
            names["beside"].terminate()
    return None


def main() -> int:
    """Write one notebook."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("page", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--run", action="store_true")
    chosen = options.parse_args()
    book = notebook(chosen.page.read_text())
    wrong = run(book, chosen.out.resolve().parent) if chosen.run else None
    chosen.out.write_text(json.dumps(book, indent=1) + "\n")
    if wrong:
        print(f"{chosen.page.name}: {wrong}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
