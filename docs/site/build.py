"""Make the documentation site: gather pages, run the examples for their pictures, call mkdocs, look for dead links.

    python docs/site/build.py [--out build/docs] [--thin]

--thin leaves out the examples' runs and the reference: what the tests build. What a run left is kept in
build/docs-runs under a hash of its file and of the package, so that a second build takes seconds.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "docs" / "site"), str(ROOT / "src")]

import commands  # noqa: E402
import links  # noqa: E402
import reference  # noqa: E402
import runs  # noqa: E402

REAL_TIME = {"integrator"}  # records a moving arm for minutes: the long form of the tests runs it
# files of the repository that are pages of the site
MOVED = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}


def page_of(path: Path) -> Path | None:
    """The page of the site, relative to its root, that shows a file of the repository; None where none does."""
    try:
        inside = path.relative_to(ROOT)
    except ValueError:
        return None
    if str(inside) in MOVED:
        return Path(MOVED[str(inside)])
    if inside.parts[0] == "docs" and inside.suffix in (".md", ".png", ".svg", ".webp"):
        return Path(*inside.parts[1:])
    if inside.parts[:2] == ("src", "tangere") and len(inside.parts) <= 3:
        return {"tangere": Path("reference/index.md")}.get(inside.stem, Path(f"reference/{inside.stem}.md"))
    if inside.parts[0] == "examples":
        return Path("examples", inside.name).with_suffix(".md") if inside.suffix == ".py" else Path("examples/index.md")
    return None


def rewritten(text: str, source: Path, page: Path, pictures: Path | None) -> str:
    """A page's text with links for its place in the site; a file that is no page becomes its name.

    A link titled "picture" shows the picture that the example behind it left in a folder (None: no pictures), one
    titled "picture NAME" that file. In the repository, where there are no pictures, both lead to what makes them.
    """

    def link(match: re.Match[str]) -> str:
        words, target, title = match[1], match[2], match[3] or ""
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return match[0]
        file, mark, anchor = target.partition("#")
        goal = page_of((source.parent / file).resolve())
        if goal is None:
            return f"`{words.strip('`')}`"
        if title.startswith("picture") and pictures is not None:
            name = title.partition(" ")[2] or next(p.name for p in pictures.glob(f"{goal.stem}.*") if p.suffix != ".md")
            words = f"![{words}]({os.path.relpath(Path('examples') / name, page.parent)})"
        return f"[{words}]({os.path.relpath(goal, page.parent)}{mark}{anchor})"

    pieces = re.split(r"(^```.*?^```)", text, flags=re.S | re.M)
    return "".join(
        piece if piece.startswith("```") else re.sub(r"\[([^\]]*)\]\(([^)\s]+)(?: \"([^\"]*)\")?\)", link, piece)
        for piece in pieces
    )


def gather(stage: Path, thin: bool) -> None:
    """Copy the pages of the repository to where mkdocs reads them; thin: without pictures that runs leave."""
    sources = [ROOT / name for name in MOVED if name != "README.md"]
    sources += [path for path in sorted((ROOT / "docs").rglob("*.md")) if "site" not in path.parts[-2:-1]]
    for source in sources:
        page = page_of(source)
        assert page is not None
        (stage / page).parent.mkdir(parents=True, exist_ok=True)
        text = rewritten(source.read_text(), source, page, None if thin else stage / "examples")
        (stage / page).write_text(text)
    for picture in (p for p in (ROOT / "docs").iterdir() if p.suffix in (".png", ".webp")):
        shutil.copy(picture, stage / picture.name)
    for name in ("site.css", "worker.js"):
        shutil.copy(ROOT / "docs" / "site" / name, stage)


def tutorials(stage: Path, keep: Path, run: bool) -> list[str]:
    """Each tutorial as a notebook beside its page, run where it takes seconds; lines of those that failed."""
    failed = []
    for page in sorted((stage / "tutorials").glob("*.md")):
        words = [sys.executable, str(ROOT / "docs" / "site" / "notebooks.py"), str(page)]
        place = keep / f"tutorial-{page.stem}-{runs.fingerprint(ROOT, page)}"
        if not (place / "done").is_file():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            words += [str(place / f"{page.stem}.ipynb"), *(["--run"] if run and page.stem not in REAL_TIME else [])]
            environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1"}
            done = subprocess.run(words, check=False, env=environment, capture_output=True, text=True)
            failed += [done.stderr] if done.returncode else []
            for drawing in place.glob("out/*/drawn.svg"):
                shutil.copy(drawing, place / f"drawn_{drawing.parent.name}.svg")
            shutil.rmtree(place / "out", ignore_errors=True)  # logs
            if run and not done.returncode:
                (place / "done").touch()
        shutil.copy(place / f"{page.stem}.ipynb", stage / "tutorials")
        text = page.read_text()
        page.write_text(f"{text}\nThis page is also a notebook: [{page.stem}.ipynb]({page.stem}.ipynb)\n")
        for drawing in place.glob("drawn_*.svg"):
            shutil.copy(drawing, stage / "examples")
    return failed


def expanded(entry: Any, stage: Path, named: set[str]) -> Any:
    """A part of the navigation in which folder/* is every page of the folder that nobody named."""
    if isinstance(entry, dict):
        return {key: expanded(value, stage, named) for key, value in entry.items()}
    if isinstance(entry, list):
        return [one for part in entry for one in _listed(expanded(part, stage, named))]
    if entry.endswith("/*"):
        pages = sorted(str(path.relative_to(stage)) for path in (stage / entry).parent.glob("*.md"))
        return [page for page in pages if page not in named]
    return entry


def _listed(part: Any) -> list[Any]:
    return part if isinstance(part, list) else [part]


def configuration(stage: Path, out: Path) -> str:
    """mkdocs.yml for these folders, with the navigation."""
    import yaml

    text = (ROOT / "mkdocs.yml").read_text()
    for key, value in (("docs_dir", stage), ("site_dir", out)):
        text = re.sub(rf"^{key}: .*$", f"{key}: {value}", text, flags=re.M)
    text = text.replace("paths: [src]", f"paths: [{ROOT / 'src'}]")
    nav = (ROOT / "docs" / "site" / "nav.yml").read_text()
    named = set(re.findall(r"[\w/-]+\.md", nav))
    return text + yaml.safe_dump({"nav": expanded(yaml.safe_load(nav), stage, named)}, sort_keys=False)


def main() -> int:
    """Build; the exit code is 1 where a link is dead, an example fails or mkdocs warns."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=ROOT / "build" / "docs", help="folder of the site")
    options.add_argument("--thin", action="store_true", help="without pictures of runs and without the reference")
    chosen = options.parse_args()
    began = time.monotonic()
    out = chosen.out.resolve()
    stage = out.with_name(out.name + "-source")
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    keep = out.with_name(out.name + "-runs")
    failed = runs.examples(stage, ROOT, keep, run=not chosen.thin)
    if not failed:
        gather(stage, chosen.thin)
        failed = tutorials(stage, keep, run=not chosen.thin)
    if failed:
        print("\n".join(failed), file=sys.stderr)
        return 1
    commands.write(stage)
    reference.write(stage, thin=chosen.thin)
    settings = stage.with_name(stage.name + ".yml")
    settings.write_text(configuration(stage, out))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(settings)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:  # not --quiet: mkdocs would not count the warnings that it does not print
        print("\n".join(line for line in done.stderr.splitlines() if not line.startswith("INFO")), file=sys.stderr)
        return 1
    index = (out / "search" / "search_index.json").read_text()  # a page that was opened as a file may load scripts only
    (out / "search" / "search_index.js").write_text(f"var __index = {index}")
    dead = links.dead(out)
    for line in dead:
        print(line, file=sys.stderr)
    pages, pictures = links.counted(out)
    took = time.monotonic() - began
    print(f"{out / 'index.html'}: {pages} pages, {pictures} pictures, {len(dead)} dead links, {took:.0f} s")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
