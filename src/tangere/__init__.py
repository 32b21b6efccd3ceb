"""Tangere: torque-level control and the sense of touch for Universal Robots arms.

    robot = tangere.robot("ur5e");  robot.pose(q);  robot.inverse_kinematics(T);  robot.inverse_dynamics(q, qd, qdd)
    result = tangere.run(plant, controller, until=5.0);  result.save("out/mine")
    watched = tangere.watch("log.csv", robot="ur5e");  watched.events

What is offered is listed in __init__.pyi and is loaded when it is first used.
"""

from typing import Any

from tangere.lazy import attach

_find, __dir__ = attach(__name__, more=("__version__",))


def __getattr__(name: str) -> Any:
    return _version() if name == "__version__" else _find(name)


def _version() -> str:
    """Of the installed package; of a checkout that was never installed what its pyproject.toml says."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tangere")
    except PackageNotFoundError:
        import tomllib
        from pathlib import Path

        try:
            stated = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
            return str(stated["project"]["version"])
        except (OSError, KeyError, tomllib.TOMLDecodeError):
            return "unknown"
