"""Errors of Tangere: one root, and a ValueError wherever a value is at fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class TangereError(Exception):
    """Root of every error that Tangere raises on purpose."""


class InvalidValue(TangereError, ValueError):
    """An argument has a wrong shape, is not finite, or lies outside what the call accepts."""


class UnknownName(InvalidValue):
    """A robot, parameter set or other name that does not exist; the message lists those that do."""


class CannotWrite(InvalidValue):
    """A file that could not be written: a full disk, a quota, a folder that is not ours."""


class UnphysicalModel(InvalidValue):
    """A mass or inertia that no rigid body can have."""


class ModelFileError(InvalidValue):
    """A model file (TOML, URDF, calibration) that cannot be read; names the file and the field."""


class BeyondLimits(UserWarning):
    """A simulated arm went beyond a limit of the real one (speed, torque, range), and the run went on."""


class MissingExtra(TangereError, ImportError):
    """A feature needs an optional dependency; the message says which extra installs it."""


@contextmanager
def extra(needed: str) -> Iterator[None]:
    """Imports of packages that may be missing; needed: the sentence that then says what for, and how to install it."""
    try:
        yield
    except ImportError as problem:
        raise MissingExtra(needed) from problem


class NoSolution(TangereError):
    """A choice was asked from an answer that holds none: a pose out of reach, or outside the joint limits."""


def unknown(what: str, name: str, known: Iterable[str], message: str = "") -> UnknownName:
    """The error for a name that does not exist: lists those that do, and names the one that was probably meant."""
    import difflib

    names = list(known)
    one_letter = [n for n in names if len(n) == len(name) and sum(a != b for a, b in zip(n, name, strict=True)) == 1]
    lower = {n.lower(): n for n in names}
    close = one_letter or [lower[n] for n in difflib.get_close_matches(name.lower(), lower, 1)]
    text = message or f"unknown {what} {name!r}; known: {', '.join(names)}"
    return UnknownName(f"{text}; did you mean {close[0]!r}?" if close else text)


class PlantLost(TangereError):
    """A plant gives no more samples: silent hardware, or a simulation that left the finite numbers."""
