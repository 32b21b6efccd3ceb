"""Pages of the examples: each is run, and shows what it printed and the picture or page that it left."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

SHOT = ["--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu", "--virtual-time-budget=4000"]


def browser() -> str | None:
    """chromium, where there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def screenshot(page: Path, picture: Path, width: int = 1200, height: int = 900) -> None:
    """A picture of an HTML page as a reader sees it."""
    program = browser()
    if program is None:
        raise RuntimeError("pictures of pages need chromium (Debian: package chromium)")
    command = [program, *SHOT, f"--window-size={width},{height}", f"--screenshot={picture}", page.as_uri()]
    subprocess.run(command, capture_output=True, timeout=120, check=True)


def fingerprint(root: Path, file: Path) -> str:
    """Changes with the example, with those it imports, and with the package."""
    text = file.read_text()
    imported = [other for other in sorted(file.parent.glob("*.py")) if f"from {other.stem} import" in text]
    whole = hashlib.sha256(package(root) + text.encode())
    for path in imported:
        whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


@cache
def package(root: Path) -> bytes:
    """A hash of every source file of the package."""
    whole = hashlib.sha256()
    for path in sorted((root / "src").rglob("*.py")):
        whole.update(path.read_bytes())
    return whole.digest()


def run_example(root: Path, file: Path, keep: Path) -> str | None:
    """Run one example into a folder of its own, unless that was done; a line if it fails."""
    place = keep / f"{file.stem}-{fingerprint(root, file)}"
    if (place / "done").is_file():
        return None
    for old in keep.glob(f"{file.stem}-*"):
        shutil.rmtree(old)
    (place / "tmp").mkdir(parents=True)
    environment = os.environ | {
        "TMPDIR": str(place / "tmp"),
        "PYTHONPATH": str(root / "src"),
        "OPENBLAS_NUM_THREADS": "1",
        "NO_COLOR": "1",
    }
    command = [sys.executable, str(file)]
    at = {"cwd": place / "tmp", "env": environment}
    done = subprocess.run(command, **at, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        return f"{file.name}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}"
    (place / "printed.txt").write_text(re.sub(r"\S*/tangere-\w+/", "", done.stdout))
    left = [p for p in sorted((place / "tmp").rglob("*")) if p.suffix in (".svg", ".png", ".html")]
    left.sort(key=lambda path: (".svg", ".png", ".html").index(path.suffix))
    if left and left[0].suffix == ".html":
        screenshot(left[0], place / "picture.png")
    elif left:
        shutil.copy(left[0], place / f"picture{left[0].suffix}")
    for path in left:
        if path.suffix == ".html":
            shutil.copy(path, place / "page.html")
    shutil.rmtree(place / "tmp")
    (place / "done").touch()
    return None


def examples(stage: Path, root: Path, keep: Path, run: bool = True) -> list[str]:
    """examples/index.md with thumbnails and a page for each; lines of those that failed."""
    folder = stage / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    files = sorted((root / "examples").glob("*.py"))
    failed: list[str] = []
    if run:
        with ThreadPoolExecutor(2) as pool:
            failed = [line for line in pool.map(lambda file: run_example(root, file, keep), files) if line]
    cards = []
    for file in files:
        text = file.read_text()
        title, _, rest = (ast.get_docstring(ast.parse(text)) or file.stem).partition("\n")
        name = file.stem.replace("_", " ")
        place = keep / f"{file.stem}-{fingerprint(root, file)}"
        pictures = sorted(place.glob("picture.*")) if run else []
        lines = [f"# {name[0].upper() + name[1:]}", "", title, "", rest.strip(), ""]
        thumbnail = ""
        if pictures:
            picture = f"{file.stem}{pictures[0].suffix}"
            shutil.copy(pictures[0], folder / picture)
            lines += [f"![{name}: what it left]({picture})", ""]
            thumbnail = f"[![{name}]({picture})]({file.stem}.md)\n\n"
        if run and (place / "page.html").is_file():
            shutil.copy(place / "page.html", folder / f"{file.stem}_page.html")
            lines += [f"[The whole page that it left]({file.stem}_page.html){{ target=_blank }}", ""]
        if run and not failed:
            lines += ["It prints", "", "```text", (place / "printed.txt").read_text().rstrip(), "```", ""]
        lines += [f"The whole of `examples/{file.name}`:", "", "```python", text.rstrip(), "```", ""]
        (folder / f"{file.stem}.md").write_text("\n".join(lines))
        cards.append(f"<div markdown>\n{thumbnail}**[{name}]({file.stem}.md)**\n\n{title}\n</div>\n")
    head = "# Examples\n\nOne idea each, 40 to 110 lines, all run by the tests and by the build of these pages.\n\n"
    (folder / "index.md").write_text(head + '<div class="gallery" markdown>\n\n' + "\n".join(cards) + "\n</div>\n")
    return failed
