"""The front door: lazy, clean, complete, and no name that hides a module."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import pkgutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from test_import import python

import tangere
from tangere.lazy import attach, offered

# what CONTRACT and README promise, beside the errors
PROMISED = {
    "Command", "Event", "IKBatch", "IKSolutions", "Log", "Model", "Payload", "Robot", "State", "control", "draw",
    "fmu", "identify", "logs", "models", "observe", "planning", "plants", "robot", "run", "tune", "watch",
}  # fmt: skip


def packages() -> Iterator[ModuleType]:
    """Every package below tangere, itself included."""
    yield tangere
    for found in pkgutil.walk_packages(tangere.__path__, "tangere."):
        if found.ispkg:
            yield importlib.import_module(found.name)


def modules(package: ModuleType) -> list[str]:
    """Names of the modules and folders in a package."""
    return [found.name for found in pkgutil.iter_modules(package.__path__)]


def hidden(package: ModuleType) -> list[str]:
    """Modules of a package that its attribute of that name is not, after all that it offers was asked for."""
    for name in getattr(package, "__all__", ()):
        getattr(package, name)
    out = []
    for name in modules(package):
        if name == "__main__":
            continue
        loaded = importlib.import_module(f"{package.__name__}.{name}")
        if getattr(package, name) is not loaded:
            out.append(f"{package.__name__}.{name}")
    return out


def test_what_is_promised_is_there_and_nothing_else_is_shown() -> None:
    assert set(tangere.__all__) >= PROMISED
    shown = {name for name in dir(tangere) if not name.startswith("_")}
    assert shown == set(tangere.__all__)
    for name in tangere.__all__:
        assert getattr(tangere, name) is not None


def test_every_package_keeps_what_it_offers() -> None:
    for package in packages():
        names = list(getattr(package, "__all__", ()))
        assert len(names) == len(set(names)), package.__name__
        for name in names:
            assert hasattr(package, name), f"{package.__name__} offers {name}, which is not there"


def test_no_name_hides_a_module() -> None:
    for package in packages():
        assert hidden(package) == []


def test_a_hiding_name_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tangere, "robots", tangere.robot)
    assert hidden(tangere) == ["tangere.robots"]


def test_stubs_say_the_same_to_type_checkers() -> None:
    """The list `__all__` of the top stub holds exactly what it imports, and the version is stated."""
    stub = Path(tangere.__file__).with_suffix(".pyi")
    assert set(offered("tangere", stub)) == set(tangere.__all__)
    tree = ast.parse(stub.read_text())
    stated = next(n for n in tree.body if isinstance(n, ast.Assign))
    assert ast.literal_eval(stated.value) == sorted(tangere.__all__)


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tangere' has no attribute 'circle'"):
        tangere.circle  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute '__wrapped__'"):
        tangere.control.__wrapped__  # noqa: B018 - as inspect asks


def test_folders_inside_are_reached_without_an_import(root: Path) -> None:
    code = "import tangere; print(tangere.observe.detect.Detector.__name__, tangere.errors.InvalidValue.__name__)"
    assert python(code, root).split() == ["Detector", "InvalidValue"]
    assert "detect" not in dir(tangere.observe)


def test_an_attribute_is_looked_up_once() -> None:
    find, listed = attach("tangere.control")
    assert find("Guarded") is tangere.control.Guarded
    assert "Guarded" in vars(tangere.control)
    assert "Guarded" in listed()
    assert "Guarded" in find("__all__")


def test_nothing_is_loaded_before_it_is_asked_for(root: Path) -> None:
    code = """
import sys, tangere
before = {name for name in sys.modules if name.startswith("tangere.")}
tangere.control, tangere.plants
folders = {name for name in sys.modules if name.startswith("tangere.")} - before
tangere.control.Guarded
after = {name for name in sys.modules if name.startswith("tangere.")} - before - folders
print(sorted(before), sorted(folders), "tangere.control.guard" in after, "tangere.control.joint_impedance" in after)
"""
    said = python(code, root).strip()
    assert said == "['tangere.lazy'] ['tangere.control', 'tangere.plants'] True False"


def test_a_checkout_knows_its_version(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an installed package: what pyproject.toml says; where that is not there either, "unknown"."""

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    stated = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert tangere.__version__ == stated
    monkeypatch.setattr(tangere, "__file__", str(tmp_path / "site-packages" / "tangere" / "__init__.py"))
    assert tangere.__version__ == "unknown"
    (tmp_path / "pyproject.toml").write_text("[tool.other]")
    assert tangere.__version__ == "unknown"


def test_fmu_takes_the_name_of_an_arm(tmp_path: Path) -> None:
    from tangere.apps.fmu.build import LINUX, compiler_of

    if compiler_of(LINUX) is None:
        pytest.skip("no C compiler")
    written = tangere.fmu("fk", robot="ur5e", out=tmp_path / "UR5e.fmu", platforms=[LINUX])
    assert written.path == tmp_path / "UR5e.fmu"
    assert written.size == written.path.stat().st_size


def test_draw_is_the_command_as_a_function(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    pytest.importorskip("cv2")
    picture = tmp_path / "line.svg"
    line = '<path d="M1 1L8 8" stroke="#000"/>'
    picture.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">{line}</svg>')
    done = tangere.draw(picture, tangere.robot("ur5e"), out=tmp_path / "drawn", force=3.0, size="30mm")
    assert done.missing == 0
    assert done.prepared.settings.force == 3.0
    assert done.prepared.settings.size == 0.03
    left = {path.name for path in (tmp_path / "drawn").iterdir()}
    assert {"report.html", "summary.json", "log.mcap", "ink.csv"} <= left
    with pytest.raises(tangere.InvalidValue, match="a drawing mounts its own pen"):
        tangere.draw(picture, tangere.robot("ur5e", payload=1.0), out=tmp_path / "no")
    with pytest.raises(tangere.InvalidValue, match="force"):
        tangere.draw(picture, out=tmp_path / "no", force=-3.0)
    assert not (tmp_path / "no").exists()
