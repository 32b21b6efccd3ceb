"""FMUs: blocks of a UR arm in plain C after FMI 2.0, made from the kernels of the library.

write_fmu(kind, robot, out) writes one, KINDS are the eight kinds; both are looked up when they are first used, so that
the command line can list the kinds without loading any of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tangere.apps.fmu.kinds import KINDS
    from tangere.apps.fmu.package import Written, write_fmu

__all__ = ["KINDS", "Written", "write_fmu"]


def __getattr__(name: str) -> Any:
    if name == "KINDS":
        from tangere.apps.fmu.kinds import KINDS

        return KINDS
    if name in ("Written", "write_fmu"):
        from tangere.apps.fmu import package

        return getattr(package, name)
    raise AttributeError(f"module 'tangere.apps.fmu' has no attribute {name!r}")
