"""The layering is enforced: the contract holds and catches a wrong import; numpy is the only import from outside."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src" / "tangere").rglob("*.py"))


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """import-linter on the package below folder/src, with this repository's contract."""
    start = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", start, "--no-cache", "--no-logo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("model/fields.py", "import tangere.kinematics"),
        ("kinematics/checks.py", "def late():\n    import tangere.cli.main"),  # inside a function counts too
        ("stray/__init__.py", ""),  # a folder without a place in the layers
    ],
)
def test_a_wrong_import_is_caught(file: str, line: str, tmp_path: Path) -> None:
    pytest.importorskip("importlinter", reason="import-linter is not installed (extra `lint`)")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.c"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    clean = lint(tmp_path)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    wrong = tmp_path / "src" / "tangere" / file
    wrong.parent.mkdir(exist_ok=True)
    with wrong.open("a") as stream:
        stream.write(f"\n{line}\n")
    caught = lint(tmp_path)
    assert caught.returncode == 1
    assert "Imports go one way BROKEN" in caught.stdout, caught.stdout + caught.stderr


def imports_at_load(tree: ast.AST) -> set[str]:
    """Top names of what a module imports while it is loaded: not inside functions, not for type checkers only."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add("tangere" if node.level else (node.module or "").split(".")[0])
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found |= imports_at_load(node)
    return found


def test_the_finder_of_imports_finds() -> None:
    code = "import os.path\ntry:\n    import scipy.linalg\nexcept ImportError: pass\ndef f():\n    import yaml\n"
    assert imports_at_load(ast.parse(code)) == {"os", "scipy"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src" / "tangere")))
def test_numpy_is_the_only_outside_import(path: Path) -> None:
    """But for the learning environments, which are gymnasium's by birth; their door says what is missing."""
    inside = path.relative_to(ROOT / "src" / "tangere").as_posix()
    more = {"gymnasium"} if inside == "gym.py" or inside.startswith("apps/gym/") else set()
    outside = imports_at_load(ast.parse(path.read_text())) - set(sys.stdlib_module_names)
    assert outside <= {"numpy", "tangere"} | more
