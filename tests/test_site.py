"""The documentation site: it is built (without runs and reference), every link is alive, nothing is asked of other
computers, search finds, and every public name has its docstring and its place in the reference."""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib
import importlib.util
import inspect
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "docs" / "site"


def tool(name: str) -> ModuleType:
    """A module of docs/site."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", SITE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The thin site."""
    pytest.importorskip("material", reason="mkdocs-material is not installed: pip install 'tangere[docs]'")
    out = tmp_path_factory.mktemp("site") / "docs"
    command = [sys.executable, str(SITE / "build.py"), "--thin", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 dead links" in done.stdout
    return out


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Of a server that shows the site."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_site_has_its_pages(site: Path) -> None:
    assert len(list(site.rglob("*.html"))) >= 30
    for page in ("index", "examples/index", "commands/watch", "reference/control", "changelog", "glossary"):
        assert (site / f"{page}.html").is_file(), page


def test_a_browser_asks_nobody_else_and_search_finds(site: Path, address: str) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium: the site is not looked at")
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        asked: list[str] = []
        errors: list[str] = []
        context = browser.new_context()
        context.on("request", lambda request: asked.append(request.url))
        context.on("weberror", lambda error: errors.append(str(error.error)))
        for place in (address, site.as_uri()):  # of a server, and opened as a file
            page = context.new_page()
            page.goto(f"{place}/glossary.html")
            assert page.inner_text("h1").startswith("Glossary")
            for seconds in (2, 60, 120):  # what is typed before the page's script listens is lost
                page.fill("input.md-search__input", "")
                page.type("input.md-search__input", "momentum observer")
                with contextlib.suppress(api.TimeoutError):  # a busy machine needs longer to find
                    page.wait_for_selector(".md-search-result__link", state="attached", timeout=1e3 * seconds)
                if page.query_selector(".md-search-result__link"):
                    break
            else:
                pytest.fail(f"the search found nothing: {place}")
            page.goto(f"{place}/examples/index.html")
        assert [url for url in asked if not url.startswith((address, "file:", "data:", "blob:"))] == []
        assert any(url.startswith(address) for url in asked)
        assert errors == []
        browser.close()


def test_dead_links_and_loads_from_elsewhere_are_found(tmp_path: Path) -> None:
    links = tool("links")
    (tmp_path / "a.html").write_text(
        '<h1 id="here">x</h1><a href="b.html#there">1</a><a href="#here">2</a><a href="gone.html">3</a>'
        '<a href="https://example.org/x">4</a><script src="https://example.org/x.js"></script><a href="b.html#no">5</a>'
    )
    (tmp_path / "b.html").write_text('<p id="there">y</p><img src="no.png">')
    (tmp_path / "c.css").write_text("@font-face { src: url(https://example.org/f.woff) }")
    assert links.dead(tmp_path) == [
        "a.html: no file gone.html",
        "a.html: loads https://example.org/x.js",
        "a.html: no anchor b.html#no",
        "b.html: no file no.png",
        "c.css: loads https://example.org/f.woff",
    ]


def public(value: object) -> list[tuple[str, object]]:
    """The methods and properties of a class of ours that a user sees."""
    if not inspect.isclass(value):
        return []
    return [
        (name, member)
        for name, member in vars(value).items()
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property | classmethod))
    ]


def undocumented(module: str, names: list[str]) -> list[str]:
    """Public names without a docstring, methods and properties too."""
    found = []
    for name in names:
        value = getattr(importlib.import_module(module), name)
        if not (inspect.isclass(value) or callable(value)):
            continue
        missing = [""] if not inspect.getdoc(value) else []
        missing += [f".{part}" for part, member in public(value) if not inspect.getdoc(getattr(value, part, member))]
        found += [f"{module}.{name}{part}" for part in missing]
    return found


def test_no_public_name_is_undocumented() -> None:
    reference = tool("reference")
    missing = [line for module, _ in reference.PAGES.values() for line in undocumented(module, reference.names(module))]
    assert missing == []


def test_every_package_that_offers_names_has_a_page() -> None:
    reference = tool("reference")
    shown = {module for module, _ in reference.PAGES.values()}
    stubs = [path.parent for path in (ROOT / "src" / "tangere").glob("*/__init__.pyi")]
    offering = {f"tangere.{folder.name}" for folder in stubs}
    assert len(offering) > 5
    assert offering - shown == set()
